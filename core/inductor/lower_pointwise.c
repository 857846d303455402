// lower_pointwise.c: elementwise operations: type promotion, broadcasting, constants, and the few
// that are more than one loop operation. Source: torch/_inductor/lowering.py make_pointwise and its
// users.
#include "core/inductor/lower.h"
#include "core/inductor/lowerings.h"
#include "core/record/fault.h"

#include <assert.h>
#include <math.h>

// ---- type promotion

static DTypeClass scalar_class(const Value *v) {
    switch ((int)v->kind) {
    case VAL_bool:
        return DTC_BOOL;
    case VAL_float:
    case VAL_symfloat:
        return DTC_FLOAT;
    case VAL_complex:
        return DTC_COMPLEX;
    default:
        return DTC_INT;
    }
}

DType args_promoted(const DType *tensors, const int *ndims, int n, const Value *scalars,
                    int n_scalars, Promote p) {
    DTypeClass top = DTC_BOOL;
    for (int i = 0; i < n; i++)
        top = dtype_info[tensors[i]].cls > top ? dtype_info[tensors[i]].cls : top;
    for (int i = 0; i < n_scalars; i++)
        top = scalar_class(&scalars[i]) > top ? scalar_class(&scalars[i]) : top;
    DType zero_dim = DT_none, more = DT_none;
    for (int i = 0; i < n; i++) {
        if (dtype_info[tensors[i]].cls != top)
            continue;
        DType *d = ndims[i] ? &more : &zero_dim;
        *d = *d == DT_none ? tensors[i] : dtype_promote(*d, tensors[i]);
    }
    DType d = more != DT_none ? more : zero_dim;
    if (d == DT_none)
        d = top == DTC_FLOAT     ? DT_f32
            : top == DTC_INT     ? DT_i64
            : top == DTC_COMPLEX ? DT_c64
                                 : DT_b8;
    if (p == PK_int_to_float && (dtype_is_int(d) || d == DT_b8))
        d = DT_f32;
    if (p == PK_bool_to_long && d == DT_b8)
        d = DT_i64;
    return p == PK_always_bool ? DT_b8 : d;
}

// ---- pointwise nodes

typedef struct PwCtx {
    LoopOpKind kind;
    int n;
    DType rounded; // a low dtype that the result is rounded to; none: it is kept as computed
    Fn in[4];
} PwCtx;

static TVal run_pointwise(Tracer *t, const void *ctx, Index idx, Index red) {
    const PwCtx *c = ctx;
    TVal v[4] = {0};
    (void)red;
    for (int i = 0; i < c->n; i++)
        v[i] = t_call(t, c->in[i], idx, NULL);
    TVal r = t_op(t, c->kind, v);
    return c->rounded ? t_cast(t, t_cast(t, r, DT_f32, c->rounded), c->rounded, DT_f32) : r;
}

Box *pointwise_op(Lower *l, LoopOpKind kind, DType out, Box *const *in, int n) {
    PwCtx *c = ARENA_NEW(l->arena, PwCtx);
    assert(n > 0 && n <= 4 && in[0]);
    const Data *shape = in[0]->data;
    c->kind = kind;
    c->n = n;
    c->rounded = l->req->config->emulate_precision_casts && dtype_is_low(out) ? out : DT_none;
    for (int i = 0; i < n; i++) {
        c->in[i] = data_loader(l, in[i]->data);
        if (shape->kind == D_const || shape->kind == D_index)
            shape = in[i]->data;
    }
    return pointwise_new(l, out, data_device(shape), data_ndim(shape), data_size(shape),
                         (Fn){run_pointwise, c});
}

typedef struct CastCtx {
    Fn in;
    DType to, from;
} CastCtx;

static TVal run_cast(Tracer *t, const void *ctx, Index idx, Index red) {
    const CastCtx *c = ctx;
    (void)red;
    return t_cast(t, t_call(t, c->in, idx, NULL), c->to, c->from);
}

Box *box_to_dtype(Lower *l, Box *b, DType dtype) {
    DType from = data_dtype(b->data);
    if (from == dtype || dtype == DT_none)
        return b;
    CastCtx *c = ARENA_NEW(l->arena, CastCtx);
    *c = (CastCtx){data_loader(l, b->data), dtype, from};
    return pointwise_new(l, dtype, data_device(b->data), data_ndim(b->data), data_size(b->data),
                         (Fn){run_cast, c});
}

Box *clone_box(Lower *l, Box *b) {
    Data *d = b->data;
    return pointwise_new(l, data_dtype(d), data_device(d), data_ndim(d), data_size(d),
                         data_loader(l, d));
}

Box *expand_box(Lower *l, Box *b, int n, const Expr *const *size) {
    int old_n = data_ndim(b->data);
    const Expr *const *old = data_size(b->data);
    if (old_n == n && sizes_equal(l, n, old, size))
        return b;
    int64_t from = size_hint(l, sym_product(l->sym, old, old_n)), to = 1;
    for (int i = 0; i < n; i++)
        to *= expr_is(size[i], -1) ? size_hint(l, old[i - (n - old_n)]) : size_hint(l, size[i]);
    if (from > 0)
        box_mark_reuse(l, b, to / from);
    return box_new(l, view_expand(l, b->data, n, size));
}

void broadcast_boxes(Lower *l, Box **in, int n) {
    int ndim = 0;
    for (int i = 0; i < n; i++)
        ndim = data_ndim(in[i]->data) > ndim ? data_ndim(in[i]->data) : ndim;
    const Expr **size = ARENA_ARRAY(l->arena, ndim, const Expr *);
    for (int d = 0; d < ndim; d++) {
        size[d] = sym_int(l->sym, 1);
        for (int i = 0; i < n; i++) {
            int k = d - (ndim - data_ndim(in[i]->data));
            if (k >= 0 && size_is_one(l, size[d]))
                size[d] = data_size(in[i]->data)[k];
            else if (k >= 0 && !size_is_one(l, data_size(in[i]->data)[k]) &&
                     size[d] != data_size(in[i]->data)[k])
                sym_guard_eq(l->sym, size[d], data_size(in[i]->data)[k], l->req->stage,
                             "broadcast");
        }
    }
    for (int i = 0; i < n; i++) {
        int k = data_ndim(in[i]->data);
        bool differs = k != ndim;
        for (int d = 0; d < ndim && !differs; d++)
            differs = size_is_one(l, size[d]) != size_is_one(l, data_size(in[i]->data)[d]);
        if (differs)
            in[i] = expand_box(l, in[i], ndim, size);
    }
}

// Operands: tensors (converted to one dtype, broadcast) and Python scalars (constants of the
// first's dtype).
typedef struct Operands {
    Box *box[4];
    int n;
    DType dtype; // promoted
} Operands;

static Operands operands(Lower *l, const Value *args, int n, Promote p) {
    Operands o = {.n = n};
    DType dt[4] = {0};
    int nd[4] = {0}, k = 0, n_scalars = 0;
    Value scalars[4] = {0};
    Box *tensors[4];
    LVal v[4];
    for (int i = 0; i < n; i++) {
        v[i] = l_of(l, &args[i]);
        if (v[i].kind == L_box) {
            dt[k] = data_dtype(v[i].box->data);
            nd[k] = data_ndim(v[i].box->data);
            tensors[k++] = v[i].box;
        } else {
            scalars[n_scalars++] = v[i].v;
        }
    }
    o.dtype = p == PK_none ? (k ? dt[0] : DT_f32) : args_promoted(dt, nd, k, scalars, n_scalars, p);
    for (int i = 0; i < k; i++)
        tensors[i] = p == PK_none ? tensors[i] : box_to_dtype(l, tensors[i], o.dtype);
    if (k > 1)
        broadcast_boxes(l, tensors, k);
    Device dev = k ? data_device(tensors[0]->data) : (Device){DEV_cpu, -1};
    DType of_const = k ? data_dtype(tensors[0]->data) : o.dtype;
    for (int i = 0, at = 0; i < n; i++) {
        o.box[i] = v[i].kind == L_box
                       ? tensors[at++]
                       : scalar_box(l, &v[i].v, of_const, dev, k ? tensors[0]->data : NULL);
    }
    return o;
}

static LoopOpKind bool_variant(LoopOpKind kind) {
    switch ((int)kind) {
    case LOOP_add:
        return LOOP_logical_or;
    case LOOP_mul:
        return LOOP_logical_and;
    case LOOP_bitwise_not:
        return LOOP_logical_not;
    case LOOP_abs:
    case LOOP_sign:
        return LOOP_identity;
    default:
        return kind;
    }
}

static LVal pointwise_of(Lower *l, LoopOpKind kind, const Operands *o) {
    LoopClass cls = loop_op_info[kind].cls;
    DType out = cls == LC_COMPARE || cls == LC_LOGIC ? DT_b8 : o->dtype;
    if (out == DT_b8 && cls != LC_COMPARE)
        kind = bool_variant(kind);
    return lv_box(pointwise_op(l, kind, out, o->box, o->n));
}

Box *box_binary(Lower *l, LoopOpKind kind, Box *a, Box *b, Promote p) {
    DType dt[2] = {data_dtype(a->data), data_dtype(b->data)};
    int nd[2] = {data_ndim(a->data), data_ndim(b->data)};
    DType d = p == PK_none ? dt[0] : args_promoted(dt, nd, 2, NULL, 0, p);
    Operands o = {.box = {box_to_dtype(l, a, d), box_to_dtype(l, b, d)}, .n = 2, .dtype = d};
    broadcast_boxes(l, o.box, 2);
    return pointwise_of(l, kind, &o).box;
}

Box *box_binary_scalar(Lower *l, LoopOpKind kind, Box *a, Value v, Promote p) {
    DType dt = data_dtype(a->data);
    int nd = data_ndim(a->data);
    DType d = p == PK_none ? dt : args_promoted(&dt, &nd, 1, &v, 1, p);
    a = box_to_dtype(l, a, d);
    Box *c = scalar_box(l, &v, d, data_device(a->data), a->data);
    Operands o = {.box = {a, c}, .n = 2, .dtype = d};
    return pointwise_of(l, kind, &o).box;
}

LVal lower_pointwise(Lower *l, const Value *args, LoopOpKind kind) {
    Operands o = operands(l, args, loop_op_info[kind].n_args, l->promote);
    return pointwise_of(l, kind, &o);
}

// The first half times the sigmoid of the second.
LVal lower_glu(Lower *l, const Value *args, LoopOpKind kind) {
    Box *x = arg_box(l, args, 0);
    int64_t dim = arg_int(l, args, 1);
    int d = (int)(dim < 0 ? dim + data_ndim(x->data) : dim);
    const Expr *zero = sym_int(l->sym, 0), *one = sym_int(l->sym, 1);
    const Expr *half = sym_floordiv(l->sym, data_size(x->data)[d], sym_int(l->sym, 2));
    const Expr *end = sym_mul_int(l->sym, half, 2);
    (void)kind;
    Box *a = box_new(l, view_slice(l, x->data, d, zero, half, one, false));
    Box *b = box_new(l, view_slice(l, x->data, d, half, end, one, false));
    b = pointwise_op(l, LOOP_sigmoid, data_dtype(b->data), &b, 1);
    return lv_box(box_binary(l, LOOP_mul, a, b, PK_default));
}

// add and sub: the second operand times alpha.
LVal lower_add(Lower *l, const Value *args, LoopOpKind kind) {
    Operands o = operands(l, args, 2, PK_default);
    bool one = (args[2].kind == VAL_int && args[2].i == 1) ||
               (args[2].kind == VAL_float && args[2].f == 1);
    if (!one && args[2].kind != VAL_none) {
        Data *k = data_const(l, args[2], o.dtype, data_device(o.box[0]->data));
        Box *in[2] = {o.box[1], box_new(l, k)};
        o.box[1] = pointwise_op(l, LOOP_mul, o.dtype, in, 2);
        if (o.box[1]->data->kind == D_store &&
            data_ndim(o.box[1]->data) != data_ndim(o.box[0]->data))
            broadcast_boxes(l, o.box, 2);
    }
    return pointwise_of(l, kind, &o);
}

// Operations that see whether their operands are zero.
LVal lower_logical(Lower *l, const Value *args, LoopOpKind kind) {
    int n = loop_op_info[kind].n_args;
    Operands o = {.n = n, .dtype = DT_b8};
    for (int i = 0; i < n; i++)
        o.box[i] = box_to_dtype(l, arg_box(l, args, i), DT_b8);
    if (n > 1)
        broadcast_boxes(l, o.box, n);
    return pointwise_of(l, kind, &o);
}

// floor, ceil, round, trunc: integers are what they are.
LVal lower_rounding(Lower *l, const Value *args, LoopOpKind kind) {
    Box *x = arg_box(l, args, 0);
    if (dtype_is_int(data_dtype(x->data)))
        return lv_box(clone_box(l, x));
    return lv_box(pointwise_op(l, kind, data_dtype(x->data), &x, 1));
}

LVal lower_frexp(Lower *l, const Value *args, LoopOpKind kind) {
    Box *x = arg_box(l, args, 0);
    DType d = data_dtype(x->data);
    LVal both = lv_list(l, 2);
    (void)kind;
    both.at[0] = lv_box(pointwise_op(l, LOOP_frexp, d, &x, 1));
    Box *e = pointwise_op(l, LOOP_frexp_exponent, dtype_compute(d), &x, 1);
    both.at[1] = lv_box(box_to_dtype(l, e, DT_i32));
    return both;
}

LVal lower_isnan(Lower *l, const Value *args, LoopOpKind kind) {
    Box *x = arg_box(l, args, 0);
    if (!dtype_is_float(data_dtype(x->data)))
        return lv_box(full_box(l, val_bool(false), DT_b8, data_device(x->data), data_ndim(x->data),
                               data_size(x->data)));
    return lv_box(pointwise_op(l, kind, DT_b8, &x, 1));
}

// ---- quotients

static bool all_integral(const Operands *o) {
    for (int i = 0; i < o->n; i++)
        if (dtype_info[data_dtype(o->box[i]->data)].cls > DTC_INT)
            return false;
    return true;
}

LVal lower_div(Lower *l, const Value *args, LoopOpKind kind) {
    (void)kind;
    Operands o = operands(l, args, 2, PK_int_to_float);
    return pointwise_of(l, LOOP_truediv, &o);
}

// Of integers what C's division gives.
LVal lower_div_prim(Lower *l, const Value *args, LoopOpKind kind) {
    (void)kind;
    Operands o = operands(l, args, 2, PK_default);
    return pointwise_of(l, all_integral(&o) ? LOOP_truncdiv : LOOP_truediv, &o);
}

LVal lower_div_mode(Lower *l, const Value *args, LoopOpKind kind) {
    (void)kind;
    bool floor = args[2].kind == VAL_str && args[2].s[0] == 'f',
         trunc = args[2].kind == VAL_str && args[2].s[0] == 't';
    if (!floor && !trunc)
        return lower_div(l, args, LOOP_truediv);
    floor = floor && !fault(l->req->decisions, FAULT_division_truncates, l->node->name);
    Operands o = operands(l, args, 2, PK_default);
    if (all_integral(&o))
        return pointwise_of(l, floor ? LOOP_floordiv : LOOP_truncdiv, &o);
    Box *q = pointwise_of(l, LOOP_truediv, &o).box;
    return lv_box(pointwise_op(l, floor ? LOOP_floor : LOOP_trunc, o.dtype, &q, 1));
}

LVal lower_fmod(Lower *l, const Value *args, LoopOpKind kind) {
    (void)kind;
    Operands o = operands(l, args, 2, PK_default);
    return pointwise_of(l, dtype_is_int(o.dtype) ? LOOP_mod : LOOP_fmod, &o);
}

// ---- powers

typedef struct PowCtx {
    Fn in;
    int64_t exponent;
    DType dtype;
} PowCtx;

static TVal pow_by_squaring(Tracer *t, TVal x, int64_t y, DType dtype) {
    if (y < 0)
        return pow_by_squaring(t, t_op1(t, LOOP_reciprocal, x), -y, dtype);
    if (y == 0)
        return t_int(t, 1, dtype);
    if (y == 1)
        return x;
    TVal half = pow_by_squaring(t, x, y / 2, dtype);
    TVal r = t_op2(t, LOOP_mul, half, half);
    return y % 2 ? t_op2(t, LOOP_mul, r, x) : r;
}

static TVal run_pow(Tracer *t, const void *ctx, Index idx, Index red) {
    const PowCtx *c = ctx;
    (void)red;
    return pow_by_squaring(t, t_call(t, c->in, idx, NULL), c->exponent, c->dtype);
}

LVal lower_pow(Lower *l, const Value *args, LoopOpKind kind) {
    Box *a = arg_box(l, args, 0), *b = arg_box(l, args, 1);
    Value e = args[1];
    if (!b && e.kind == VAL_float && e.f == floor(e.f) && fabs(e.f) < 1e6)
        e = val_int((int64_t)e.f);
    Operands o = operands(l, (Value[]){args[0], e}, 2, PK_default);
    a = a ? o.box[0] : NULL;
    bool integral = dtype_is_int(o.dtype);
    if (a && !b && e.kind == VAL_float && e.f == 0.5)
        return lv_box(pointwise_op(l, LOOP_sqrt, o.dtype, &a, 1));
    if (a && !b && e.kind == VAL_int && e.i == 1)
        return lv_box(clone_box(l, a));
    if (a && !b && e.kind == VAL_int && ((e.i > -32 && e.i < 32) || (integral && e.i >= 0))) {
        PowCtx *c = ARENA_NEW(l->arena, PowCtx);
        *c = (PowCtx){data_loader(l, a->data), e.i, o.dtype};
        return lv_box(pointwise_new(l, o.dtype, data_device(a->data), data_ndim(a->data),
                                    data_size(a->data), (Fn){run_pow, c}));
    }
    double base = 0;
    if (!a && val_as_float(&args[0], &base)) {
        b = o.box[1];
        if (base == 1)
            return lv_box(full_box(l, val_int(1), o.dtype, data_device(b->data), data_ndim(b->data),
                                   data_size(b->data)));
        if (base == 2 && dtype_is_float(o.dtype))
            return lv_box(pointwise_op(l, LOOP_exp2, o.dtype, &b, 1));
    }
    if (integral)
        return lower_fallback(l, l->node->def, args);
    return pointwise_of(l, kind, &o);
}

// ---- choices, conversions, constants

LVal lower_where(Lower *l, const Value *args, LoopOpKind kind) {
    Box *in[3] = {arg_box(l, args, 0), NULL, NULL};
    DType dt[2] = {0};
    int nd[2] = {0}, n = 0, n_scalars = 0;
    Value scalars[2] = {0};
    bool swapped = fault(l->req->decisions, FAULT_where_swapped, l->node->name);
    LVal v[2] = {l_of(l, &args[1 + swapped]), l_of(l, &args[2 - swapped])};
    for (int i = 0; i < 2; i++)
        if (v[i].kind == L_box) {
            dt[n] = data_dtype(v[i].box->data);
            nd[n++] = data_ndim(v[i].box->data);
        } else {
            scalars[n_scalars++] = v[i].v;
        }
    DType d = args_promoted(dt, nd, n, scalars, n_scalars, PK_default);
    Box *tensors[3] = {in[0]};
    int k = 1;
    for (int i = 0; i < 2; i++)
        if (v[i].kind == L_box)
            tensors[k++] = v[i].box;
    broadcast_boxes(l, tensors, k);
    in[0] = tensors[0];
    for (int i = 0, at = 1; i < 2; i++)
        in[i + 1] = v[i].kind == L_box
                        ? box_to_dtype(l, tensors[at++], d)
                        : box_new(l, data_const(l, v[i].v, d, data_device(in[0]->data)));
    return lv_box(pointwise_op(l, kind, d, in, 3));
}

LVal lower_convert(Lower *l, const Value *args, LoopOpKind kind) {
    Box *x = arg_box(l, args, 0);
    (void)kind;
    if (args[1].kind == VAL_dtype && args[1].dtype != data_dtype(x->data))
        return lv_box(box_to_dtype(l, x, args[1].dtype));
    return lv_box(clone_box(l, x));
}

LVal lower_clone(Lower *l, const Value *args, LoopOpKind kind) {
    (void)kind;
    return lv_box(clone_box(l, arg_box(l, args, 0)));
}

LVal lower_identity(Lower *l, const Value *args, LoopOpKind kind) {
    (void)kind;
    return lv_box(arg_box(l, args, 0));
}

typedef struct FullCtx {
    Value k;
    const Expr *e;
    DType dtype;
} FullCtx;

static TVal run_full(Tracer *t, const void *ctx, Index idx, Index red) {
    const FullCtx *c = ctx;
    (void)idx, (void)red;
    if (c->e && c->dtype == DT_b8)
        return t_op2(t, LOOP_ne, t_index(t, c->e, DT_i64), t_int(t, 0, DT_i64));
    return c->e ? t_index(t, c->e, c->dtype) : t_const(t, c->k, c->dtype);
}

Box *full_box(Lower *l, Value fill, DType dtype, Device dev, int n, const Expr *const *size) {
    FullCtx *c = ARENA_NEW(l->arena, FullCtx);
    if (fill.kind == VAL_node)
        fill = l_of(l, &fill).v;
    *c = (FullCtx){.k = fill, .dtype = dtype};
    if (fill.kind == VAL_sym)
        val_as_expr(l->sym, &fill, &c->e);
    return pointwise_new(l, dtype, dev, n, size, (Fn){run_full, c});
}

// Tensors of one value: dtype, device and size as the node's metadata has them.
LVal lower_full(Lower *l, const Value *args, LoopOpKind kind) {
    const TensorMeta *m = node_meta(l, l->node);
    const Op *op = l->node->def;
    Value fill = val_int(kind == LOOP_identity ? 1 : 0);
    for (int i = 0; i < op->n_args; i++)
        if (!args[i].kind)
            continue;
        else if (str_index(op->args[i].name, (const char *const[]){"fill_value", "s"}, 2) >= 0)
            fill = args[i];
    return lv_box(full_box(l, fill, m->dtype, m->device, m->ndim, m->size));
}

typedef struct IotaCtx {
    const Expr *start, *step;
    DType dtype;
} IotaCtx;

static TVal run_iota(Tracer *t, const void *ctx, Index idx, Index red) {
    const IotaCtx *c = ctx;
    (void)red;
    return t_index(t, sym_add(t->sym, sym_mul(t->sym, c->step, idx[0]), c->start), c->dtype);
}

LVal lower_iota(Lower *l, const Value *args, LoopOpKind kind) {
    const TensorMeta *m = node_meta(l, l->node);
    IotaCtx *c = ARENA_NEW(l->arena, IotaCtx);
    (void)kind;
    *c = (IotaCtx){arg_expr(l, args, 1), arg_expr(l, args, 2),
                   args[3].kind == VAL_dtype ? args[3].dtype : DT_i64};
    const Expr *n = arg_expr(l, args, 0);
    return lv_box(pointwise_new(l, c->dtype, m ? m->device : (Device){DEV_cpu, -1}, 1, &n,
                                (Fn){run_iota, c}));
}
