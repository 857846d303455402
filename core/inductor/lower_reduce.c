// lower_reduce.c: reductions. A reduction is realized at once; a short one (below eight elements)
// over more than one output becomes a pointwise chain instead; variance goes through Welford's
// algorithm, or in two steps where it would be unrolled. Source: torch/_inductor/lowering.py, ir.py
// Reduction.create.
#include "core/inductor/lower.h"
#include "core/inductor/lowerings.h"
#include "core/record/fault.h"

#include <assert.h>
#include <string.h>

// Values by the axes of a tensor.
typedef struct AxisCtx {
    Fn in;
    int ndim;      // of the input
    bool axis[64]; // reduced dimensions
    bool keepdim;
} AxisCtx;

// A reduction that becomes a pointwise chain.
typedef struct RedCtx {
    Fn inner;         // value at (index, reduction index)
    const char *type; // how to combine
    int n_red;
    const Expr **red; // sizes, all constant if unrolled
    DType dtype;
} RedCtx;

static TVal run_reduction(Tracer *t, const void *ctx, Index idx, Index red) {
    const AxisCtx *c = ctx;
    const Expr *full[64];
    for (int d = 0, k = 0, r = 0; d < c->ndim; d++) {
        bool reduced = c->axis[d];
        full[d] = reduced ? red[r++] : idx[c->keepdim ? d : k];
        k += !reduced;
    }
    return t_call(t, c->in, full, NULL);
}

static LoopOpKind combine_op(const char *type) {
    static const struct {
        const char *type;
        LoopOpKind op;
    } ops[] = {
        {"sum", LOOP_add},     {"prod", LOOP_mul},       {"max", LOOP_maximum},
        {"min", LOOP_minimum}, {"any", LOOP_logical_or}, {"xor_sum", LOOP_bitwise_xor},
    };
    for (int i = 0; i < COUNT(ops); i++)
        if (!strcmp(type, ops[i].type))
            return ops[i].op;
    return LOOP_add;
}

static bool is_arg(const char *type) {
    return !strcmp(type, "argmax") || !strcmp(type, "argmin");
}

// (value, index) pairs: the better one, NaN best, the lower index of equals.
static void combine_arg(Tracer *t, bool is_max, bool is_float, TVal *av, TVal *ai, TVal bv,
                        TVal bi) {
    TVal better = t_op2(t, is_max ? LOOP_gt : LOOP_lt, *av, bv), equal = t_op2(t, LOOP_eq, *av, bv);
    if (is_float) {
        TVal a_nan = t_op2(t, LOOP_ne, *av, *av), b_nan = t_op2(t, LOOP_ne, bv, bv);
        better = t_op2(t, LOOP_logical_or, better, t_op2(t, LOOP_gt, a_nan, b_nan));
        equal = t_op2(t, LOOP_logical_or, equal, t_op2(t, LOOP_logical_and, a_nan, b_nan));
    }
    better = t_op2(t, LOOP_logical_or, better,
                   t_op2(t, LOOP_logical_and, equal, t_op2(t, LOOP_lt, *ai, bi)));
    *av = t_op3(t, LOOP_where, better, *av, bv);
    *ai = t_op3(t, LOOP_where, better, *ai, bi);
}

static TVal run_unrolled(Tracer *t, const void *ctx, Index idx, Index none) {
    const RedCtx *c = ctx;
    const Expr *red[64];
    int64_t at[64] = {0}, flat = 0;
    TVal acc = {0}, acc_index = {0};
    (void)none;
    for (bool more = true; more; flat++) {
        for (int i = 0; i < c->n_red; i++)
            red[i] = sym_int(t->sym, at[i]);
        TVal v = t_call(t, c->inner, idx, red);
        if (is_arg(c->type)) {
            TVal i = t_index(t, sym_int(t->sym, flat), DT_i64);
            if (flat == 0)
                acc = v, acc_index = i;
            else
                combine_arg(t, !strcmp(c->type, "argmax"), dtype_is_float(v.dtype), &acc,
                            &acc_index, v, i);
        } else {
            acc = flat == 0 ? v : t_op2(t, combine_op(c->type), acc, v);
        }
        more = false;
        for (int i = c->n_red - 1; i >= 0 && !more; i--) {
            more = ++at[i] < expr_int_or(c->red[i], 1);
            at[i] = more ? at[i] : 0;
        }
    }
    return is_arg(c->type) ? acc_index : acc;
}

static TVal run_single(Tracer *t, const void *ctx, Index idx, Index none) {
    const RedCtx *c = ctx;
    const Expr *red[64];
    (void)none;
    if (is_arg(c->type))
        return t_int(t, 0, DT_i64);
    for (int i = 0; i < c->n_red; i++)
        red[i] = sym_int(t->sym, 0);
    return t_call(t, c->inner, idx, red);
}

static TVal run_empty(Tracer *t, const void *ctx, Index idx, Index none) {
    const RedCtx *c = ctx;
    (void)idx, (void)none;
    return t_int(t, !strcmp(c->type, "prod"), c->dtype);
}

typedef struct Shape {
    Fn inner;
    int n, n_red;
    const Expr **size, **red; // of the result; reduced
    const Expr *numel;        // reduced elements
} Shape;

static Shape reduction_shape(Lower *l, Box *x, const bool *axis, bool keepdim) {
    int ndim = data_ndim(x->data);
    const Expr *const *old = data_size(x->data);
    Shape s = {.size = ARENA_ARRAY(l->arena, ndim, const Expr *),
               .red = ARENA_ARRAY(l->arena, ndim, const Expr *)};
    AxisCtx *c = ARENA_NEW(l->arena, AxisCtx);
    assert(ndim <= 64);
    *c = (AxisCtx){.in = data_loader(l, x->data), .ndim = ndim, .keepdim = keepdim};
    for (int d = 0; d < ndim; d++) {
        c->axis[d] = axis[d];
        if (axis[d])
            s.red[s.n_red++] = old[d];
        if (keepdim || !axis[d])
            s.size[s.n++] = axis[d] ? sym_int(l->sym, 1) : old[d];
    }
    s.inner = (Fn){run_reduction, c};
    s.numel = sym_product(l->sym, s.red, s.n_red);
    return s;
}

static bool is_unrolled(Lower *l, const Shape *s, int threshold) {
    int64_t n = 0;
    return expr_int(s->numel, &n) && n < threshold &&
           !expr_is(sym_product(l->sym, s->size, s->n), 1);
}

static Box *reduce_shape(Lower *l, const char *type, const Shape *s, DType dst, DType src,
                         Device dev, int threshold) {
    RedCtx *c = ARENA_NEW(l->arena, RedCtx);
    *c = (RedCtx){s->inner, type, s->n_red, s->red, dst};
    if (expr_is(s->numel, 0))
        return pointwise_new(l, dst, dev, s->n, s->size, (Fn){run_empty, c});
    if (expr_is(s->numel, 1))
        return pointwise_new(l, dst, dev, s->n, s->size, (Fn){run_single, c});
    if (is_unrolled(l, s, threshold))
        return pointwise_new(l, dst, dev, s->n, s->size, (Fn){run_unrolled, c});
    Loops *p = loops_new(l, LK_reduction, dst, dev, s->n, s->size, s->inner);
    p->n_red = s->n_red;
    p->red = s->red;
    p->reduction = type;
    p->src_dtype = src;
    loops_decide_reads(l, p);
    Box *b = box_new(l, data_loops(l, p));
    box_realize(l, b, "a reduction");
    return b;
}

Box *reduce_box(Lower *l, const char *type, Box *x, const bool *axis, bool keepdim, DType dst) {
    Shape s = reduction_shape(l, x, axis, keepdim);
    return reduce_shape(l, type, &s, dst, data_dtype(x->data), data_device(x->data),
                        l->req->config->unroll_reductions_threshold);
}

Box *reduce_window(Lower *l, const char *type, Fn inner, int n, const Expr **size, int n_red,
                   const Expr **red, DType dst, DType src, Device dev, int threshold) {
    Shape s = {inner, n, n_red, size, red, sym_product(l->sym, red, n_red)};
    return reduce_shape(l, type, &s, dst, src, dev, threshold);
}

// ---- axes

// Dimensions of an int, a list of ints, or None (all); negative ones count from the end.
bool reduction_axes(Lower *l, const Value *v, int ndim, bool *axis) {
    int n = 0;
    const Expr **e = arg_exprs(l, v, &n);
    for (int d = 0; d < ndim; d++)
        axis[d] = n == 0;
    for (int i = 0; i < n; i++) {
        int64_t d = expr_int_or(e[i], 0);
        d = d < 0 ? d + ndim : d;
        if (d >= 0 && d < ndim)
            axis[d] = true;
    }
    return true;
}

typedef struct RedArgs {
    Box *x;
    bool axis[64];
    bool keepdim;
    DType dtype; // asked for, DT_none
} RedArgs;

// Arguments by name: dim, keepdim, dtype; prims have dims and output_dtype.
static RedArgs reduction_args(Lower *l, const Value *args) {
    const Op *op = l->node->def;
    RedArgs r = {.x = arg_box(l, args, 0)};
    const Value *dim = &(Value){.kind = VAL_none};
    for (int i = 1; i < op->n_args; i++) {
        if (!strcmp(op->args[i].name, "dim") || !strcmp(op->args[i].name, "dims"))
            dim = &args[i];
        else if (!strcmp(op->args[i].name, "keepdim"))
            r.keepdim = arg_bool(args, i);
        else if (str_ends(op->args[i].name, "dtype") && args[i].kind == VAL_dtype)
            r.dtype = args[i].dtype;
    }
    reduction_axes(l, dim, data_ndim(r.x->data), r.axis);
    return r;
}

Box *sum_box(Lower *l, Box *x, const bool *axis, bool keepdim, DType dtype) {
    DTypeClass cls = dtype_info[data_dtype(x->data)].cls;
    if (dtype == DT_none && (cls == DTC_INT || cls == DTC_BOOL))
        dtype = DT_i64;
    x = box_to_dtype(l, x, dtype);
    return reduce_box(l, "sum", x, axis, keepdim, data_dtype(x->data));
}

LVal lower_sum(Lower *l, const Value *args, LoopOpKind kind) {
    RedArgs r = reduction_args(l, args);
    (void)kind;
    if (r.dtype == DT_none && l->node->def->id == OP_prims_sum_default) // in the input's dtype
        r.dtype = data_dtype(r.x->data);
    return lv_box(sum_box(l, r.x, r.axis, r.keepdim, r.dtype));
}

// A scalar `dim` takes part in type promotion, as it does in PyTorch's lowering: bool becomes
// int64.
static Box *promoted_by_dim(Lower *l, const Value *args, Box *x) {
    const Op *op = l->node->def;
    bool scalar = false;
    for (int i = 1; i < op->n_args; i++)
        scalar |= args[i].kind == VAL_int || args[i].kind == VAL_sym;
    return scalar && data_dtype(x->data) == DT_b8 ? box_to_dtype(l, x, DT_i64) : x;
}

LVal lower_prod(Lower *l, const Value *args, LoopOpKind kind) {
    RedArgs r = reduction_args(l, args);
    Box *x = promoted_by_dim(l, args, r.x);
    DTypeClass cls = dtype_info[data_dtype(x->data)].cls;
    (void)kind;
    if (r.dtype == DT_none && (cls == DTC_INT || cls == DTC_BOOL))
        r.dtype = DT_i64;
    x = box_to_dtype(l, x, r.dtype);
    return lv_box(reduce_box(l, "prod", x, r.axis, r.keepdim, data_dtype(x->data)));
}

LVal lower_amax(Lower *l, const Value *args, LoopOpKind kind) {
    RedArgs r = reduction_args(l, args);
    Box *x = promoted_by_dim(l, args, r.x);
    return lv_box(reduce_box(l, kind == LOOP_maximum ? "max" : "min", x, r.axis, r.keepdim,
                             data_dtype(x->data)));
}

LVal lower_xor_sum(Lower *l, const Value *args, LoopOpKind kind) {
    RedArgs r = reduction_args(l, args);
    Box *x = box_to_dtype(l, r.x, r.dtype);
    (void)kind;
    return lv_box(reduce_box(l, "xor_sum", x, r.axis, false, data_dtype(x->data)));
}

LVal lower_any(Lower *l, const Value *args, LoopOpKind kind) {
    RedArgs r = reduction_args(l, args);
    Box *x = box_to_dtype(l, promoted_by_dim(l, args, r.x), DT_b8);
    (void)kind;
    // A list of no dimensions is none here; elsewhere it is all of them.
    bool none = l->node->def->id == OP_aten_any_dims && args[1].kind != VAL_none && !args[1].n;
    Box *any = none ? clone_box(l, x) : reduce_box(l, "any", x, r.axis, r.keepdim, DT_b8);
    const TensorMeta *m = node_meta(l, l->node); // of uint8 it is a uint8 itself
    return lv_box(box_to_dtype(l, any, m ? m->dtype : DT_b8));
}

LVal lower_arg_extreme(Lower *l, const Value *args, LoopOpKind kind) {
    RedArgs r = reduction_args(l, args);
    Box *x = promoted_by_dim(l, args, r.x);
    return lv_box(
        reduce_box(l, kind == LOOP_maximum ? "argmax" : "argmin", x, r.axis, r.keepdim, DT_i64));
}

// max.dim, min.dim: values and where they are.
LVal lower_extreme_dim(Lower *l, const Value *args, LoopOpKind kind) {
    RedArgs r = reduction_args(l, args);
    Box *x = r.x;
    bool is_max = kind == LOOP_maximum;
    LVal out = lv_list(l, 2);
    out.at[0] =
        lv_box(reduce_box(l, is_max ? "max" : "min", x, r.axis, r.keepdim, data_dtype(x->data)));
    out.at[1] = lv_box(reduce_box(l, is_max ? "argmax" : "argmin", x, r.axis, r.keepdim, DT_i64));
    return out;
}

// ---- mean and variance

static const Expr *reduced_numel(Lower *l, Box *x, const bool *axis) {
    const Expr *n = sym_int(l->sym, 1);
    for (int d = 0; d < data_ndim(x->data); d++)
        n = axis[d] ? sym_mul(l->sym, n, data_size(x->data)[d]) : n;
    return n;
}

static Box *divided(Lower *l, Box *sum, const Expr *by, DType dtype) {
    Box *in[2] = {sum, box_new(l, data_index(l, by, dtype, data_device(sum->data)))};
    return pointwise_op(l, LOOP_truediv, dtype, in, 2);
}

static Box *mean_box(Lower *l, Box *x, const bool *axis, bool keepdim) {
    DType out = data_dtype(x->data);
    x = box_to_dtype(l, x, dtype_is_low(out) ? DT_f32 : out);
    Box *sum = sum_box(l, x, axis, keepdim, DT_none);
    int64_t more = fault(l->req->decisions, FAULT_mean_count, l->node->name);
    const Expr *count = sym_add_int(l->sym, reduced_numel(l, x, axis), more);
    return box_to_dtype(l, divided(l, sum, count, data_dtype(x->data)), out);
}

LVal lower_mean(Lower *l, const Value *args, LoopOpKind kind) {
    RedArgs r = reduction_args(l, args);
    (void)kind;
    return lv_box(mean_box(l, box_to_dtype(l, r.x, r.dtype), r.axis, r.keepdim));
}

typedef struct ScaleCtx {
    Fn in;
    Value correction;
    const Expr *numel;
    DType dtype;
} ScaleCtx;

static TVal number(Tracer *t, const Expr *e, DType dtype) {
    int64_t k = 0;
    if (expr_int(e, &k))
        return t_int(t, k, dtype);
    return t_cast(t, t_index(t, e, DT_i64), dtype, DT_i64);
}

static TVal run_scale(Tracer *t, const void *ctx, Index idx, Index red) {
    const ScaleCtx *c = ctx;
    (void)red;
    TVal v = t_call(t, c->in, idx, NULL);
    TVal corr = t_const(t, c->correction, c->dtype), n = number(t, c->numel, c->dtype),
         zero = t_int(t, 0, c->dtype);
    TVal by = t_op2(t, LOOP_maximum, zero, t_op2(t, LOOP_sub, n, corr));
    return t_op2(t, LOOP_truediv, v, by);
}

static Box *welford_output(Lower *l, const Shape *s, DType dtype, Device dev, int output) {
    Loops *p = loops_new(l, LK_welford, dtype, dev, s->n, s->size, s->inner);
    p->n_red = s->n_red;
    p->red = s->red;
    p->reduction = "welford_reduce";
    p->src_dtype = dtype;
    p->output = output;
    loops_decide_reads(l, p);
    Box *b = box_new(l, data_loops(l, p));
    box_realize(l, b, "Welford's algorithm");
    return b;
}

static void welford(Lower *l, Box *x, const RedArgs *r, Value correction, Box **var, Box **mean) {
    Shape s = reduction_shape(l, x, r->axis, r->keepdim);
    DType dtype = data_dtype(x->data);
    Device dev = data_device(x->data);
    Box *out[3];
    bool trivial = expr_is(s.numel, 0) || expr_is(s.numel, 1);
    for (int i = 0; i < 3; i++)
        if (!trivial)
            out[i] = welford_output(l, &s, dtype, dev, i);
        else if (i == 0 && expr_is(s.numel, 1))
            out[i] = reduce_shape(l, "sum", &s, dtype, dtype, dev, 0);
        else
            out[i] = full_box(l, val_int(i == 2 && expr_is(s.numel, 1)), dtype, dev, s.n, s.size);
    box_realize(l, out[1], "variance");
    ScaleCtx *c = ARENA_NEW(l->arena, ScaleCtx);
    *c = (ScaleCtx){data_loader(l, out[1]->data), correction, s.numel, dtype};
    *var = pointwise_new(l, dtype, dev, s.n, s.size, (Fn){run_scale, c});
    if (mean) {
        box_realize(l, out[0], "mean");
        *mean = out[0];
    }
}

static void two_step_variance(Lower *l, Box *x, const RedArgs *r, Value correction, Box **var,
                              Box **mean) {
    DType dtype = data_dtype(x->data);
    double corr = 0;
    val_as_float(&correction, &corr);
    Box *m = mean_box(l, x, r->axis, true);
    if (mean)
        box_realize(l, m, "mean");
    Box *diff = box_binary(l, LOOP_sub, x, m, PK_default);
    Box *square = pointwise_op(l, LOOP_square, dtype, &diff, 1);
    Box *sum = sum_box(l, square, r->axis, r->keepdim, DT_none);
    const Expr *n = reduced_numel(l, x, r->axis);
    if (corr != (double)(int64_t)corr) { // a fraction: the count is constant, since it is unrolled
        double by = (double)expr_int_or(n, 1) - corr;
        *var = box_binary_scalar(l, LOOP_truediv, sum, val_float(by > 0 ? by : 0), PK_none);
    } else {
        if (corr != 0)
            n = sym_max(l->sym, sym_add_int(l->sym, n, -(int64_t)corr), sym_int(l->sym, 0));
        *var = divided(l, sum, n, dtype);
    }
    if (mean)
        *mean = r->keepdim ? m : squeeze_box(l, m, r->axis);
}

LVal lower_var(Lower *l, const Value *args, LoopOpKind kind) {
    RedArgs r = reduction_args(l, args);
    const Op *op = l->node->def;
    Value correction = val_int(1);
    for (int i = 1; i < op->n_args; i++) {
        if (!strcmp(op->args[i].name, "correction") && args[i].kind != VAL_none)
            correction = args[i];
        if (!strcmp(op->args[i].name, "unbiased") && args[i].kind == VAL_bool)
            correction = val_int(args[i].b);
    }
    bool with_mean = kind == LOOP_add;
    DType out = data_dtype(r.x->data);
    Box *x = box_to_dtype(l, r.x, dtype_compute(out)), *var = NULL, *mean = NULL;
    Shape s = reduction_shape(l, x, r.axis, r.keepdim);
    if (is_unrolled(l, &s, l->req->config->unroll_reductions_threshold))
        two_step_variance(l, x, &r, correction, &var, with_mean ? &mean : NULL);
    else
        welford(l, x, &r, correction, &var, with_mean ? &mean : NULL);
    if (!with_mean)
        return lv_box(box_to_dtype(l, var, out));
    LVal both = lv_list(l, 2);
    both.at[0] = lv_box(box_to_dtype(l, var, out));
    both.at[1] = lv_box(box_to_dtype(l, mean, out));
    return both;
}
