// lower_pool_grad.c: gradients of max pooling: where each window's maximum was, as an index into
// the input, and the gradients of the windows that an element may have won, gathered without
// atomics. Source: torch/_inductor/lowering.py max_pool2d_with_indices_backward.
#include "core/inductor/lower.h"
#include "core/inductor/lowerings.h"

typedef struct Geometry {
    int64_t kernel[3], stride[3], pad[3], dilation[3];
} Geometry;

static bool ints_of(Lower *l, const Value *v, int dim, const int64_t *fallback, int64_t *out) {
    int n = 0;
    const Expr **e = arg_exprs(l, v, &n);
    for (int i = 0; i < dim; i++)
        if (n == 0)
            out[i] = fallback[i];
        else if (!expr_int(e[n == 1 ? 0 : i], &out[i]))
            return false;
    return true;
}

static bool geometry(Lower *l, const Value *kernel, const Value *stride, const Value *pad,
                     const Value *dilation, int dim, Geometry *g) {
    static const int64_t zero[3] = {0}, one[3] = {1, 1, 1};
    return dim <= 3 && ints_of(l, kernel, dim, one, g->kernel) &&
           ints_of(l, stride, dim, g->kernel, g->stride) && ints_of(l, pad, dim, zero, g->pad) &&
           ints_of(l, dilation, dim, one, g->dilation);
}

// ---- offsets within a window to flat indexes into the input

typedef struct OffsetCtx {
    Fn offsets;
    int n, dim;
    Geometry g;
    const Expr *input[3];
    const Expr *window; // elements of one
} OffsetCtx;

static TVal run_offsets(Tracer *t, const void *ctx, Index idx, Index red) {
    const OffsetCtx *c = ctx;
    Sym *s = t->sym;
    (void)red;
    const Expr *rest = t_indirect(t, t_call(t, c->offsets, idx, NULL), c->window, true, true),
               *inc[3], *flat = NULL;
    for (int d = c->dim - 1; d > 0; d--) {
        const Expr *k = sym_int(s, c->g.kernel[d]), *q = sym_floordiv(s, rest, k);
        inc[d] = sym_sub(s, rest, sym_mul(s, q, k));
        rest = q;
    }
    inc[0] = rest;
    for (int d = 0; d < c->dim; d++) {
        const Expr *at = sym_mul_int(s, idx[c->n - c->dim + d], c->g.stride[d]);
        at = sym_add_int(s, sym_add(s, at, sym_mul_int(s, inc[d], c->g.dilation[d])), -c->g.pad[d]);
        flat = d ? sym_add(s, sym_mul(s, flat, c->input[d]), at) : at;
    }
    return t_index(t, sym_expand(s, flat), DT_i64);
}

LVal lower_pool_indices(Lower *l, const Value *args, LoopOpKind kind) {
    Box *x = arg_box(l, args, 0);
    OffsetCtx *c = ARENA_NEW(l->arena, OffsetCtx);
    int n_in = 0;
    int64_t window = 1;
    (void)kind;
    c->n = data_ndim(x->data);
    c->dim = args[1].n;
    const Expr **input = arg_exprs(l, &args[2], &n_in);
    if (!geometry(l, &args[1], &args[3], &args[4], &args[5], c->dim, &c->g) || n_in != c->dim)
        return lower_fallback(l, l->node->def, args);
    for (int i = 0; i < c->dim; i++) {
        c->input[i] = input[i];
        window *= c->g.kernel[i];
    }
    c->window = sym_int(l->sym, window);
    c->offsets = data_loader(l, x->data);
    return lv_box(pointwise_new(l, DT_i64, data_device(x->data), c->n, data_size(x->data),
                                (Fn){run_offsets, c}));
}

// ---- gradient

typedef struct GradCtx {
    Fn indices, grad;
    int n;
    Geometry g;
    const Expr *width, *pooled[2];
    int windows[2]; // windows that one row (column) may lie in
    DType dtype;
} GradCtx;

typedef struct Bounds {
    TVal start, end;
} Bounds;

// First window and the one behind the last that position p (padding included) lies in.
static Bounds window_bounds(Tracer *t, const GradCtx *c, int d, const Expr *p) {
    Sym *s = t->sym;
    const Expr *k = sym_int(s, c->g.stride[d]);
    const Expr *first = sym_floordiv(s, sym_add_int(s, p, c->g.stride[d] - c->g.kernel[d]), k);
    const Expr *last = sym_add_int(s, sym_floordiv(s, p, k), 1);
    TVal start = t_index(t, first, DT_i32), end = t_index(t, last, DT_i32);
    start = t_op2(t, LOOP_maximum, start, t_int(t, 0, DT_i32));
    end = t_op2(t, LOOP_minimum, end, t_index(t, c->pooled[d], DT_i32));
    return (Bounds){start, end};
}

static const Expr *window_index(Tracer *t, const GradCtx *c, int d, TVal at, const Bounds *b) {
    TVal last = t_op2(t, LOOP_sub, b->end, t_int(t, 1, DT_i32));
    return t_indirect(t, t_op2(t, LOOP_minimum, at, last), c->pooled[d], false, true);
}

static TVal run_grad(Tracer *t, const void *ctx, Index idx, Index red) {
    const GradCtx *c = ctx;
    const Expr *at[64], *h = idx[c->n - 2], *w = idx[c->n - 1];
    (void)red;
    TVal test = t_index(t, sym_add(t->sym, sym_mul(t->sym, h, c->width), w), DT_i32), sum = {0};
    Bounds bh = window_bounds(t, c, 0, sym_add_int(t->sym, h, c->g.pad[0]));
    Bounds bw = window_bounds(t, c, 1, sym_add_int(t->sym, w, c->g.pad[1]));
    for (int i = 0; i < c->n; i++)
        at[i] = idx[i];
    for (int i = 0; i < c->windows[0] * c->windows[1]; i++) {
        TVal ph = t_op2(t, LOOP_add, bh.start, t_int(t, i / c->windows[1], DT_i32));
        TVal pw = t_op2(t, LOOP_add, bw.start, t_int(t, i % c->windows[1], DT_i32));
        at[c->n - 2] = window_index(t, c, 0, ph, &bh);
        at[c->n - 1] = window_index(t, c, 1, pw, &bw);
        TVal won = t_call(t, c->indices, at, NULL), part = t_call(t, c->grad, at, NULL);
        TVal check = t_op2(t, LOOP_eq, won, test);
        if (i == 0) {
            sum = t_op3(t, LOOP_where, check, part, t_float(t, 0, DT_f32));
            continue;
        }
        TVal in_h = t_op2(t, LOOP_lt, ph, bh.end), in_w = t_op2(t, LOOP_lt, pw, bw.end);
        TVal mask = t_op2(t, LOOP_and_, t_op2(t, LOOP_and_, in_h, in_w), check);
        sum = t_op3(t, LOOP_where, mask, t_op2(t, LOOP_add, sum, part), sum);
    }
    return sum;
}

static int windows_of(int64_t kernel, int64_t stride) {
    int64_t most = 1;
    for (int64_t h = 0; h < 2 * kernel; h++) {
        int64_t before = h - kernel >= 0 ? (h - kernel) / stride : 0, n = h / stride - before;
        most = n > most ? n : most;
    }
    return (int)most;
}

static bool has_unit_channel_stride(Lower *l, Data *d) {
    IrLayout *y = data_layout(d);
    if (!y && d->kind == D_store && d->loops) { // as it would be laid out
        LBuf b = {.ir = &(IrBuffer){0}, .loops = d->loops};
        b.ir->layout = layout_new(l, IRL_flexible, d->loops->device, d->loops->dtype,
                                  d->loops->ndim, d->loops->ranges, NULL, NULL);
        buf_decide(l, &b);
        y = b.ir->layout;
    }
    return y && y->ndim == 4 && expr_is(y->stride[1], 1);
}

LVal lower_max_pool_backward(Lower *l, const Value *args, LoopOpKind kind) {
    Box *grad = arg_box(l, args, 0), *x = arg_box(l, args, 1), *indices = arg_box(l, args, 7);
    GradCtx *c = ARENA_NEW(l->arena, GradCtx);
    (void)kind;
    bool ok = geometry(l, &args[2], &args[3], &args[4], &args[5], 2, &c->g) &&
              c->g.dilation[0] == 1 && c->g.dilation[1] == 1 && c->g.stride[0] > 0 &&
              c->g.stride[1] > 0 && c->g.kernel[0] < 64 && c->g.kernel[1] < 64;
    for (int d = 0; ok && d < 2; d++)
        c->windows[d] = windows_of(c->g.kernel[d], c->g.stride[d]);
    if (!ok || c->windows[0] * c->windows[1] > 25)
        return lower_fallback(l, l->node->def, args);
    box_realize_hint(l, grad);
    bool last = has_unit_channel_stride(l, x->data) || has_unit_channel_stride(l, grad->data);
    c->n = data_ndim(x->data);
    c->width = data_size(x->data)[c->n - 1];
    for (int d = 0; d < 2; d++)
        c->pooled[d] = data_size(grad->data)[c->n - 2 + d];
    c->indices = data_loader(l, indices->data);
    c->grad = data_loader(l, grad->data);
    Box *out = pointwise_new(l, data_dtype(grad->data), data_device(grad->data), c->n,
                             data_size(x->data), (Fn){run_grad, c});
    return lv_box(last ? box_require_channels_last(l, out) : out);
}
