// lower_pool_fractional.c: max pooling over windows that random numbers place: where the window of
// an output begins is computed, its elements are read at that place. Source:
// torch/_inductor/lowering.py _fractional_max_pool, _fractional_pooling_offsets.
#include "core/inductor/lowerings.h"

typedef struct Fractional {
    Fn x, samples, offsets;       // the input, a number in [0, 1) a plane and dimension, the result
    int n, dim;                   // dimensions; spatial ones
    const Expr *in[3], *out[3];   // spatial sizes
    const Expr *kernel[3], *span; // of a window, and its elements
    DType sampled;                // of samples
} Fractional;

// Elements are unrolled in windows of fewer than so many.
enum { UNROLL = 25 };

// Where the window of idx begins in spatial dimension d: steps of one size, the last at the end.
static const Expr *begin(Tracer *t, const Fractional *f, Index idx, int d) {
    int first = f->n - f->dim;
    Sym *s = t->sym;
    const Expr *zero = sym_int(s, 0), *i = idx[first + d];
    const Expr *at[3] = {first > 1 ? idx[0] : zero, idx[first - 1], sym_int(s, f->dim - 1 - d)};
    TVal sample = t_call(t, f->samples, at, NULL), here = t_index(t, i, f->sampled);
    TVal room = t_index(t, sym_sub(s, f->in[d], f->kernel[d]), DT_i64);
    TVal last = t_index(t, sym_add_int(s, f->out[d], -1), DT_i64);
    TVal step =
        t_op2(t, LOOP_truediv, t_cast(t, room, DT_f64, DT_i64), t_cast(t, last, DT_f64, DT_i64));
    step = t_op3(t, LOOP_where, t_op2(t, LOOP_eq, last, t_int(t, 0, DT_i64)), t_float(t, 0, DT_f64),
                 step);
    TVal far = t_op1(t, LOOP_trunc, t_op2(t, LOOP_mul, t_op2(t, LOOP_add, here, sample), step));
    TVal near = t_op1(t, LOOP_trunc, t_op2(t, LOOP_mul, sample, step));
    TVal from = t_cast(t, t_op2(t, LOOP_sub, far, near), DT_i64, DT_f64);
    TVal before = t_op2(t, LOOP_lt, t_index(t, i, DT_i64), last);
    from = t_op3(t, LOOP_where, before, from, room);
    return t_indirect(t, from, f->in[d], true, true);
}

static TVal run_window(Tracer *t, const void *ctx, Index idx, Index red) {
    const Fractional *f = ctx;
    int first = f->n - f->dim;
    const Expr *at[8];
    for (int i = 0; i < first; i++)
        at[i] = idx[i];
    for (int d = 0; d < f->dim; d++)
        at[first + d] = sym_add(t->sym, begin(t, f, idx, d), red[d]);
    return t_call(t, f->x, at, NULL);
}

// The place in a plane of the element that is the largest of its window.
static TVal run_place(Tracer *t, const void *ctx, Index idx, Index none) {
    const Fractional *f = ctx;
    Sym *s = t->sym;
    const Expr *rest = t_indirect(t, t_call(t, f->offsets, idx, NULL), f->span, true, true), *in[3],
               *flat = NULL;
    (void)none;
    for (int d = f->dim - 1; d >= 0; d--) {
        const Expr *q = d ? sym_floordiv(s, rest, f->kernel[d]) : sym_int(s, 0);
        in[d] = sym_sub(s, rest, sym_mul(s, q, f->kernel[d]));
        rest = q;
    }
    for (int d = 0; d < f->dim; d++) {
        const Expr *at = sym_add(s, begin(t, f, idx, d), in[d]);
        flat = d ? sym_add(s, sym_mul(s, flat, f->in[d]), at) : at;
    }
    return t_index(t, sym_expand(s, flat), DT_i64);
}

// (self, kernel_size, output_size, random_samples): values and places. kind: LOOP_add for three
// dimensions.
LVal lower_fractional_max_pool(Lower *l, const Value *args, LoopOpKind kind) {
    Box *x = arg_box(l, args, 0), *samples = arg_box(l, args, 3);
    const Value *outs = node_val(l, l->node);
    int dim = kind == LOOP_add ? 3 : 2, n = data_ndim(x->data), given = 0;
    const Expr **kernel = arg_exprs(l, &args[1], &given);
    if ((outs->kind != VAL_tuple && outs->kind != VAL_list) || given != dim || n < dim + 1 ||
        n > dim + 2 || data_ndim(samples->data) != 3)
        return lower_fallback(l, l->node->def, args);
    const TensorMeta *m = outs->at[0].tensor;
    box_realize_hint(l, x);
    Fractional *f = ARENA_NEW(l->arena, Fractional);
    *f = (Fractional){.x = data_loader(l, x->data),
                      .samples = data_loader(l, samples->data),
                      .n = n,
                      .dim = dim,
                      .sampled = data_dtype(samples->data)};
    for (int d = 0; d < dim; d++) {
        f->in[d] = data_size(x->data)[n - dim + d];
        f->out[d] = m->size[n - dim + d];
        f->kernel[d] = kernel[d];
    }
    f->span = sym_product(l->sym, kernel, dim);
    DType dtype = data_dtype(x->data);
    Device dev = data_device(x->data);
    Fn window = {run_window, f};
    LVal both = lv_list(l, 2);
    both.at[0] =
        lv_box(reduce_window(l, "max", window, n, m->size, dim, kernel, dtype, dtype, dev, UNROLL));
    Box *offsets =
        reduce_window(l, "argmax", window, n, m->size, dim, kernel, DT_i64, dtype, dev, UNROLL);
    f->offsets = data_loader(l, offsets->data);
    both.at[1] = lv_box(pointwise_new(l, DT_i64, dev, n, m->size, (Fn){run_place, f}));
    return both;
}
