// lower_pool_grad.c: gradients of pooling: where each window's maximum was, as an index into the
// input, and the gradients of the windows that an element may have won, or that it is an average
// of, gathered without atomics. Source: torch/_inductor/lowering.py
// max_pool2d_with_indices_backward, avg_pool2d_backward, avg_pool3d_backward.
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

// NULL: the window is not made of numbers.
Box *pool_offsets_box(Lower *l, Box *offsets, const Value *kernel, const Value *stride,
                      const Value *pad, const Value *dilation, const Expr *const *input) {
    OffsetCtx *c = ARENA_NEW(l->arena, OffsetCtx);
    int64_t window = 1;
    int n = 0;
    c->n = data_ndim(offsets->data);
    arg_exprs(l, kernel, &n);
    c->dim = n;
    if (!geometry(l, kernel, stride, pad, dilation, c->dim, &c->g))
        return NULL;
    for (int i = 0; i < c->dim; i++) {
        c->input[i] = input[i];
        window *= c->g.kernel[i];
    }
    c->window = sym_int(l->sym, window);
    c->offsets = data_loader(l, offsets->data);
    return pointwise_new(l, DT_i64, data_device(offsets->data), c->n, data_size(offsets->data),
                         (Fn){run_offsets, c});
}

LVal lower_pool_indices(Lower *l, const Value *args, LoopOpKind kind) {
    int n_in = 0;
    const Expr **input = arg_exprs(l, &args[2], &n_in);
    (void)kind;
    Box *b = n_in == args[1].n ? pool_offsets_box(l, arg_box(l, args, 0), &args[1], &args[3],
                                                  &args[4], &args[5], input)
                               : NULL;
    return b ? lv_box(b) : lower_fallback(l, l->node->def, args);
}

// ---- gradient

// More windows an element are left to the library (three dimensions: five times as many).
enum { GRAD_UNROLL = 25 };

typedef struct GradCtx {
    Fn indices, grad;
    int n, dim; // dimensions; spatial ones
    Geometry g;
    const Expr *size[3], *pooled[3]; // of the input; of the windows
    int windows[3];                  // windows that one row (column …) may lie in
    Value divisor; // average: what is divided by; none: the elements of each window
    bool with_pad; // elements of the padding count as those of the input do
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
    TVal test = t_index(t, sym_add(t->sym, sym_mul(t->sym, h, c->size[1]), w), DT_i32), sum = {0};
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

// False: the geometry is not made of numbers, or too many windows reach one element.
static bool grad_ctx(GradCtx *c, Box *grad, Box *x, int most) {
    int all = 1;
    c->n = data_ndim(x->data);
    if (c->n < c->dim || c->n > 64)
        return false;
    for (int d = 0; d < c->dim; d++) {
        if (c->g.stride[d] <= 0 || c->g.kernel[d] >= 64 || c->g.dilation[d] != 1)
            return false;
        c->windows[d] = windows_of(c->g.kernel[d], c->g.stride[d]);
        all *= c->windows[d];
        c->size[d] = data_size(x->data)[c->n - c->dim + d];
        c->pooled[d] = data_size(grad->data)[c->n - c->dim + d];
    }
    return all <= most;
}

LVal lower_max_pool_backward(Lower *l, const Value *args, LoopOpKind kind) {
    Box *grad = arg_box(l, args, 0), *x = arg_box(l, args, 1), *indices = arg_box(l, args, 7);
    GradCtx *c = ARENA_NEW(l->arena, GradCtx);
    (void)kind;
    c->dim = 2;
    if (!geometry(l, &args[2], &args[3], &args[4], &args[5], 2, &c->g) ||
        !grad_ctx(c, grad, x, GRAD_UNROLL))
        return lower_fallback(l, l->node->def, args);
    box_realize_hint(l, grad);
    bool last = has_unit_channel_stride(l, x->data) || has_unit_channel_stride(l, grad->data);
    c->indices = data_loader(l, indices->data);
    c->grad = data_loader(l, grad->data);
    Box *out = pointwise_new(l, data_dtype(grad->data), data_device(grad->data), c->n,
                             data_size(x->data), (Fn){run_grad, c});
    return lv_box(last ? box_require_channels_last(l, out) : out);
}

// ---- gradient of an average

// Elements of the window that lie in the input, or in its padding.
static TVal window_elements(Tracer *t, const GradCtx *c, const TVal *at) {
    TVal start[3], end[3], product = {0};
    for (int d = 0; d < c->dim; d++)
        start[d] = t_op2(t, LOOP_sub, t_op2(t, LOOP_mul, at[d], t_int(t, c->g.stride[d], DT_i32)),
                         t_int(t, c->g.pad[d], DT_i32));
    for (int d = 0; d < c->dim; d++) {
        TVal to = t_op2(t, LOOP_add, start[d], t_int(t, c->g.kernel[d], DT_i32));
        TVal most =
            t_op2(t, LOOP_add, t_index(t, c->size[d], DT_i32), t_int(t, c->g.pad[d], DT_i32));
        end[d] = t_op2(t, LOOP_minimum, to, most);
    }
    for (int d = 0; d < c->dim && !c->with_pad; d++)
        start[d] = t_op2(t, LOOP_maximum, start[d], t_int(t, 0, DT_i32));
    for (int d = 0; d < c->dim && !c->with_pad; d++)
        end[d] = t_op2(t, LOOP_minimum, end[d], t_index(t, c->size[d], DT_i32));
    for (int d = 0; d < c->dim; d++) {
        TVal k = t_op2(t, LOOP_sub, end[d], start[d]);
        product = d ? t_op2(t, LOOP_mul, product, k) : k;
    }
    return product;
}

// One window's share: at: its number in each dimension.
static TVal average_part(Tracer *t, const GradCtx *c, Index idx, const TVal *at, const Bounds *b) {
    const Expr *in[64];
    TVal scale;
    if (c->divisor.kind == VAL_none)
        scale = window_elements(t, c, at);
    for (int i = 0; i < c->n - c->dim; i++)
        in[i] = idx[i];
    for (int d = 0; d < c->dim; d++)
        in[c->n - c->dim + d] = window_index(t, c, d, at[d], &b[d]);
    TVal part = t_call(t, c->grad, in, NULL);
    if (c->divisor.kind != VAL_none)
        scale = t_literal(t, c->divisor, c->divisor.kind == VAL_float ? DT_f32 : DT_i64);
    return t_op2(t, LOOP_truediv, part, scale);
}

static TVal run_average_grad(Tracer *t, const void *ctx, Index idx, Index red) {
    const GradCtx *c = ctx;
    Bounds b[3];
    TVal sum = {0};
    int all = 1;
    (void)red;
    for (int d = 0; d < c->dim; d++) {
        b[d] = window_bounds(t, c, d, sym_add_int(t->sym, idx[c->n - c->dim + d], c->g.pad[d]));
        all *= c->windows[d];
    }
    for (int i = 0; i < all; i++) {
        TVal at[3], mask = {0};
        for (int d = c->dim - 1, rest = i; d >= 0; rest /= c->windows[d--])
            at[d] = t_op2(t, LOOP_add, b[d].start, t_int(t, rest % c->windows[d], DT_i32));
        TVal part = average_part(t, c, idx, at, b);
        for (int d = 0; d < c->dim; d++) {
            TVal in = t_op2(t, LOOP_lt, at[d], b[d].end);
            mask = d ? t_op2(t, LOOP_and_, mask, in) : in;
        }
        sum = i ? t_op3(t, LOOP_where, mask, t_op2(t, LOOP_add, sum, part), sum)
                : t_op3(t, LOOP_where, mask, part, t_float(t, 0, DT_f32));
    }
    return sum;
}

static bool has_padding(Lower *l, const GradCtx *c) {
    bool any = false;
    for (int d = 0; d < c->dim; d++) {
        int64_t last = (size_hint(l, c->pooled[d]) - 1) * c->g.stride[d] + c->g.kernel[d];
        any |= c->g.pad[d] != 0 || last > size_hint(l, c->size[d]);
    }
    return any;
}

// The last window may reach behind the padding, too (ceil_mode).
static bool reaches_out(Lower *l, const GradCtx *c) {
    bool any = false;
    for (int d = 0; d < c->dim; d++) {
        int64_t last = (size_hint(l, c->pooled[d]) - 1) * c->g.stride[d] + c->g.kernel[d];
        any |= last > size_hint(l, c->size[d]) + 2 * c->g.pad[d];
    }
    return any;
}

// kind: LOOP_add for three dimensions. Where padding counts, PyTorch 2.11 divides by the whole
// window, though the forward pass counts what of it lies within the padded input.
LVal lower_avg_pool_backward(Lower *l, const Value *args, LoopOpKind kind) {
    Box *grad = arg_box(l, args, 0), *x = arg_box(l, args, 1);
    GradCtx *c = ARENA_NEW(l->arena, GradCtx);
    const Value none = {.kind = VAL_none};
    c->dim = kind == LOOP_add ? 3 : 2;
    box_realize_hint(l, grad);
    if (!geometry(l, &args[2], &args[3], &args[4], &none, c->dim, &c->g) ||
        !grad_ctx(c, grad, x, c->dim == 2 ? GRAD_UNROLL : GRAD_UNROLL * 5))
        return lower_fallback(l, l->node->def, args);
    c->divisor = args[7];
    c->with_pad = arg_bool(args, 6);
    if (c->divisor.kind == VAL_none && !(c->with_pad ? reaches_out(l, c) : has_padding(l, c))) {
        int64_t window = 1;
        for (int d = 0; d < c->dim; d++)
            window *= c->g.kernel[d];
        c->divisor = val_int(window);
    }
    c->grad = data_loader(l, grad->data);
    return lv_box(pointwise_new(l, data_dtype(x->data), data_device(grad->data), c->n,
                                data_size(x->data), (Fn){run_average_grad, c}));
}
