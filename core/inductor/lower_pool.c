// lower_pool.c: pooling over windows: loads at shifted indexes, masked where the window leaves the
// input, unrolled. Source: torch/_inductor/lowering.py _max_pool_with_offsets, _avg_poolnd.
#include "core/inductor/lower.h"
#include "core/inductor/lowerings.h"

#include <assert.h>

typedef struct Pool {
    Fn x;
    int n, dim;       // dimensions; spatial ones
    const Expr *h[3]; // input size
    int64_t kernel[3], stride[3], pad[3], dilation[3];
    bool masked; // some window leaves the input
    Value fill;
    DType dtype;
    bool include_pad; // average: padding counts
} Pool;

static TVal load_masked(Tracer *t, const Pool *p, const Expr **at) {
    const Expr **ih = at + (p->n - p->dim);
    TVal both[3] = {0};
    for (int i = 0; i < p->dim; i++) {
        TVal pos = t_index(t, ih[i], DT_i64), zero = t_index(t, sym_int(t->sym, 0), DT_i64);
        TVal low = t_op2(t, LOOP_ge, pos, zero);
        TVal high = t_op2(t, LOOP_lt, pos, t_index(t, p->h[i], DT_i64));
        both[i] = t_op2(t, LOOP_and_, low, high);
    }
    TVal mask = both[0];
    for (int i = 1; i < p->dim; i++)
        mask = t_op2(t, LOOP_and_, mask, both[i]);
    return t_masked(t, mask, p->x, at, p->fill, p->dtype);
}

static TVal run_window(Tracer *t, const void *ctx, Index idx, Index red) {
    const Pool *p = ctx;
    const Expr *at[64] = {0};
    int first = p->n - p->dim;
    for (int i = 0; i < p->n; i++) {
        if (i < first) {
            at[i] = idx[i];
            continue;
        }
        int k = i - first;
        const Expr *out = sym_mul_int(t->sym, idx[i], p->stride[k]),
                   *in = sym_mul_int(t->sym, red[k], p->dilation[k]);
        at[i] = sym_add_int(t->sym, sym_add(t->sym, out, in), -p->pad[k]);
    }
    return p->masked ? load_masked(t, p, at) : t_call(t, p->x, at, NULL);
}

static void ints(Lower *l, const Value *v, int dim, int64_t fallback, int64_t *out) {
    int n = 0;
    const Expr **e = arg_exprs(l, v, &n);
    for (int i = 0; i < dim; i++)
        out[i] = n == 0 ? fallback : expr_int_or(e[n == 1 ? 0 : i], fallback);
}

// Result size from the node's metadata; whether a ceiling made the last window leave the input.
static Pool *pool_new(Lower *l, Box *x, int dim, const Value *kernel, const Value *stride,
                      const Value *pad, const Value *dilation, const TensorMeta *out) {
    Pool *p = ARENA_NEW(l->arena, Pool);
    p->n = data_ndim(x->data);
    p->dim = dim;
    p->dtype = data_dtype(x->data);
    ints(l, kernel, dim, 1, p->kernel);
    for (int i = 0; i < dim; i++)
        p->stride[i] = p->kernel[i];
    if (stride->kind != VAL_none && stride->n)
        ints(l, stride, dim, 1, p->stride);
    ints(l, pad, dim, 0, p->pad);
    ints(l, dilation, dim, 1, p->dilation);
    for (int i = 0; i < dim; i++) {
        p->h[i] = data_size(x->data)[p->n - dim + i];
        int64_t last = (size_hint(l, out->size[p->n - dim + i]) - 1) * p->stride[i] +
                       (p->kernel[i] - 1) * p->dilation[i];
        p->masked |=
            p->pad[i] != 0 || p->dilation[i] > 1 || last - p->pad[i] >= size_hint(l, p->h[i]);
    }
    p->x = data_loader(l, x->data);
    return p;
}

static const Expr **window_sizes(Lower *l, const Pool *p) {
    const Expr **s = ARENA_ARRAY(l->arena, p->dim, const Expr *);
    for (int i = 0; i < p->dim; i++)
        s[i] = sym_int(l->sym, p->kernel[i]);
    return s;
}

// Both results are unrolled up to this many elements of a window.
enum { POOL_UNROLL = 25 };

static Value lowest(DType d) {
    if (d == DT_b8)
        return val_bool(false);
    if (dtype_is_float(d))
        return val_float(-__builtin_inf());
    int bits = dtype_info[d].bytes * 8;
    return d == DT_u8 ? val_int(0) : val_int(bits == 64 ? INT64_MIN : -((int64_t)1 << (bits - 1)));
}

LVal lower_max_pool(Lower *l, const Value *args, LoopOpKind kind) {
    Box *x = arg_box(l, args, 0);
    const Value *outs = node_val(l, l->node);
    (void)kind;
    if (outs->kind != VAL_tuple && outs->kind != VAL_list)
        return lower_fallback(l, l->node->def, args);
    const TensorMeta *m = outs->at[0].tensor;
    box_realize_hint(l, x);
    Pool *p = pool_new(l, x, args[1].n, &args[1], &args[2], &args[3], &args[4], m);
    p->fill = lowest(p->dtype);
    const Expr **red = window_sizes(l, p);
    Fn fn = {run_window, p};
    Device dev = data_device(x->data);
    Box *v = reduce_window(l, "max", fn, p->n, m->size, p->dim, red, p->dtype, p->dtype, dev,
                           POOL_UNROLL);
    Box *i = reduce_window(l, "argmax", fn, p->n, m->size, p->dim, red, DT_i64, p->dtype, dev,
                           POOL_UNROLL);
    LVal both = lv_list(l, 2);
    both.at[0] = lv_box(v);
    both.at[1] = lv_box(box_to_dtype(l, i, DT_i8));
    return both;
}

// ---- average

static TVal run_count(Tracer *t, const void *ctx, Index idx, Index red) {
    const Pool *p = ctx;
    Sym *s = t->sym;
    TVal product = {0};
    (void)red;
    for (int i = 0; i < p->dim; i++) {
        const Expr *from =
            sym_add_int(s, sym_mul_int(s, idx[p->n - p->dim + i], p->stride[i]), -p->pad[i]);
        const Expr *to =
            sym_min(s, sym_add_int(s, from, p->kernel[i]), sym_add_int(s, p->h[i], p->pad[i]));
        if (!p->include_pad) {
            from = sym_max(s, from, sym_int(s, 0));
            to = sym_min(s, to, p->h[i]);
        }
        TVal k = t_index(t, sym_sub(s, to, from), DT_i32);
        product = i ? t_op2(t, LOOP_mul, product, k) : k;
    }
    return product;
}

typedef struct AvgArgs {
    const Value *kernel, *stride, *pad, *divisor;
    bool include_pad;
} AvgArgs;

// Sums are of the computation's type until they are divided.
static Box *avg_pool(Lower *l, Box *x, const AvgArgs *a, int dim, const TensorMeta *m) {
    Pool *p = pool_new(l, x, dim, a->kernel, a->stride, a->pad, &(Value){0}, m);
    p->fill = val_float(0);
    p->include_pad = a->include_pad;
    int64_t window = 1;
    for (int i = 0; i < dim; i++)
        window *= p->kernel[i];
    DType dtype = p->dtype, sums = dtype_compute(dtype);
    Device dev = data_device(x->data);
    int unroll = window <= POOL_UNROLL ? POOL_UNROLL : l->req->config->unroll_reductions_threshold;
    Box *sum = reduce_window(l, "sum", (Fn){run_window, p}, p->n, m->size, dim, window_sizes(l, p),
                             sums, dtype, dev, unroll);
    LoopOpKind div = dtype_is_int(dtype) ? LOOP_truncdiv : LOOP_truediv;
    if (!p->masked || a->divisor->kind != VAL_none) {
        Value by = a->divisor->kind != VAL_none ? *a->divisor : val_int(window);
        return box_to_dtype(l, box_binary_scalar(l, div, sum, by, PK_none), dtype);
    }
    Box *count = pointwise_new(l, dtype, dev, p->n, m->size, (Fn){run_count, p});
    Box *in[2] = {sum, count};
    return box_to_dtype(l, pointwise_op(l, div, sums, in, 2), dtype);
}

Box *avg_pool_box(Lower *l, Box *x, const Value *kernel, const Value *divisor,
                  const TensorMeta *out) {
    const Value none = {.kind = VAL_none};
    AvgArgs a = {kernel, &none, &none, divisor, true};
    box_realize_hint(l, x);
    return avg_pool(l, x, &a, kernel->n, out);
}

// A large window that does not go on where the one before it ended is left to the library.
static bool is_large_and_overlaps(Lower *l, const Value *kernel, const Value *stride, int dim) {
    int64_t k[3], s[3], window = 1;
    bool differs = false;
    ints(l, kernel, dim, 1, k);
    for (int i = 0; i < dim; i++)
        s[i] = k[i];
    if (stride->kind != VAL_none && stride->n)
        ints(l, stride, dim, 1, s);
    for (int i = 0; i < dim; i++) {
        window *= k[i];
        differs |= k[i] != s[i];
    }
    return window > POOL_UNROLL && differs;
}

// kind: LOOP_add for avg_pool3d.
LVal lower_avg_pool(Lower *l, const Value *args, LoopOpKind kind) {
    Box *x = arg_box(l, args, 0);
    const TensorMeta *m = node_meta(l, l->node);
    int dim = kind == LOOP_add ? 3 : 2;
    AvgArgs a = {&args[1], &args[2], &args[3], &args[6], arg_bool(args, 5)};
    if (m)
        box_realize_hint(l, x);
    if (!m || is_large_and_overlaps(l, a.kernel, a.stride, dim))
        return lower_fallback(l, l->node->def, args);
    return lv_box(avg_pool(l, x, &a, dim, m));
}

// The overloads that PyTorch took apart into offsets: values, and indexes from the offsets.
LVal lower_max_pool_indices(Lower *l, const Value *args, LoopOpKind kind) {
    Box *x = arg_box(l, args, 0);
    const Value *outs = node_val(l, l->node);
    int dim = kind == LOOP_add ? 3 : 2;
    if (outs->kind != VAL_tuple && outs->kind != VAL_list)
        return lower_fallback(l, l->node->def, args);
    const TensorMeta *m = outs->at[0].tensor;
    box_realize_hint(l, x);
    Pool *p = pool_new(l, x, dim, &args[1], &args[2], &args[3], &args[4], m);
    p->fill = lowest(p->dtype);
    LVal both = lv_list(l, 2);
    Box *v[2];
    for (int i = 0; i < 2; i++)
        v[i] = reduce_window(l, i ? "argmax" : "max", (Fn){run_window, p}, p->n, m->size, dim,
                             window_sizes(l, p), i ? DT_i64 : p->dtype, p->dtype,
                             data_device(x->data), l->req->config->unroll_reductions_threshold);
    both.at[0] = lv_box(v[0]);
    both.at[1] = lv_box(pool_offsets_box(l, v[1], &args[1], &args[2], &args[3], &args[4], p->h));
    if (!both.at[1].box)
        return lower_fallback(l, l->node->def, args);
    return both;
}
