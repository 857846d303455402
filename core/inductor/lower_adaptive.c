// lower_adaptive.c: pooling to a given size: window i begins at in * i / out, its length varies, so
// the longest is unrolled and what lies behind a window's end is masked; and the gradient of
// upsampling to nearest, which sums such windows. Source: torch/_inductor/lowering.py
// _adaptive_avg_pool2d, adaptive_max_pool2d, upsample_nearest2d_backward.
#include "core/inductor/lower.h"
#include "core/inductor/lowerings.h"

// Larger windows are left to the library.
enum { ADAPTIVE_UNROLL = 25 };

typedef struct Adaptive {
    Fn x, ones; // ones: average, how many elements a window has
    int n;      // dimensions
    const Expr *width;
    int64_t in[2], out[2]; // sizes of the last two dimensions
    int64_t longest[2];    // windows
    bool from_ceil;        // begins at ceil(in * i / out)
    LoopOpKind combine;
    Value pad;
    DType dtype;
    bool indices; // yields where the maximum was
} Adaptive;

static const Expr *ceil_div(Sym *s, const Expr *a, int64_t b) {
    const Expr *by = sym_int(s, b);
    if (expr_is(sym_mod(s, a, by), 0))
        return sym_cleandiv(s, a, by);
    return sym_floordiv(s, sym_add_int(s, a, b - 1), by);
}

static const Expr *window_start(Sym *s, const Adaptive *c, int d, const Expr *i) {
    const Expr *at = sym_mul_int(s, i, c->in[d]);
    return c->from_ceil ? ceil_div(s, at, c->out[d]) : sym_floordiv(s, at, sym_int(s, c->out[d]));
}

static const Expr *window_end(Sym *s, const Adaptive *c, int d, const Expr *i) {
    const Expr *next = sym_add_int(s, i, 1);
    if (c->from_ceil)
        return window_start(s, c, d, next);
    const Expr *at = sym_add_int(s, sym_mul_int(s, next, c->in[d]), c->out[d] - 1);
    return sym_floordiv(s, at, sym_int(s, c->out[d]));
}

typedef struct Window {
    const Expr *start[2], *end[2];
} Window;

static Window window_of(Tracer *t, const Adaptive *c, Index idx) {
    Window w;
    for (int d = 0; d < 2; d++)
        w.start[d] = window_start(t->sym, c, d, idx[c->n - 2 + d]);
    for (int d = 0; d < 2; d++)
        w.end[d] = window_end(t->sym, c, d, idx[c->n - 2 + d]);
    return w;
}

// Element (i, j) of the window, or the padding behind its end.
static TVal window_load(Tracer *t, const Adaptive *c, Fn x, Index idx, const Window *w, int i,
                        int j) {
    const Expr *at[64];
    TVal below[2];
    for (int d = 0; d < c->n - 2; d++)
        at[d] = idx[d];
    for (int d = 0; d < 2; d++) {
        at[c->n - 2 + d] = sym_add_int(t->sym, w->start[d], d ? j : i);
        TVal pos = t_index(t, at[c->n - 2 + d], DT_i64);
        below[d] = t_op2(t, LOOP_lt, pos, t_index(t, w->end[d], DT_i64));
    }
    TVal mask = t_op2(t, LOOP_and_, below[0], below[1]);
    return t_masked(t, mask, x, at, c->pad, c->dtype);
}

static TVal window_combined(Tracer *t, const Adaptive *c, Fn x, Index idx) {
    Window w = window_of(t, c, idx);
    TVal r = {0};
    for (int i = 0; i < c->longest[0] * c->longest[1]; i++) {
        TVal v = window_load(t, c, x, idx, &w, i / (int)c->longest[1], i % (int)c->longest[1]);
        r = i ? t_op2(t, c->combine, v, r) : v;
    }
    return r;
}

static TVal run_adaptive(Tracer *t, const void *ctx, Index idx, Index red) {
    const Adaptive *c = ctx;
    (void)red;
    TVal r = window_combined(t, c, c->x, idx);
    return c->ones.fn ? t_op2(t, LOOP_truediv, r, window_combined(t, c, c->ones, idx)) : r;
}

static TVal run_adaptive_index(Tracer *t, const void *ctx, Index idx, Index red) {
    const Adaptive *c = ctx;
    Window w = window_of(t, c, idx);
    TVal best = {0}, where = {0};
    (void)red;
    for (int i = 0; i < c->longest[0] * c->longest[1]; i++) {
        int row = i / (int)c->longest[1], column = i % (int)c->longest[1];
        TVal v = window_load(t, c, c->x, idx, &w, row, column);
        const Expr *at = sym_mul(t->sym, sym_add_int(t->sym, w.start[0], row), c->width);
        at = sym_add_int(t->sym, sym_add(t->sym, at, w.start[1]), column);
        TVal flat = t_index(t, at, DT_i64);
        where = i ? t_op3(t, LOOP_where, t_op2(t, LOOP_gt, v, best), flat, where) : flat;
        best = i ? t_op2(t, c->combine, v, best) : v;
    }
    return where;
}

// NULL: no sizes known as numbers.
static Adaptive *adaptive_new(Lower *l, Box *x, const TensorMeta *out) {
    Adaptive *c = ARENA_NEW(l->arena, Adaptive);
    c->n = data_ndim(x->data);
    if (!out || c->n < 3 || c->n > 64 || out->ndim != c->n)
        return NULL;
    for (int d = 0; d < 2; d++) {
        c->in[d] = size_hint(l, data_size(x->data)[c->n - 2 + d]);
        c->out[d] = size_hint(l, out->size[c->n - 2 + d]);
        if (c->out[d] <= 0 || c->in[d] <= 0)
            return NULL;
        c->longest[d] = (c->in[d] + 2 * c->out[d] - 2) / c->out[d];
    }
    c->width = data_size(x->data)[c->n - 1];
    c->dtype = data_dtype(x->data);
    c->x = data_loader(l, x->data);
    c->combine = LOOP_add;
    c->pad = val_float(0);
    return c;
}

static bool divides(const Adaptive *c) {
    return c->in[0] % c->out[0] == 0 && c->in[1] % c->out[1] == 0;
}

// Windows of one length are those of avg_pool2d.
static LVal even_windows(Lower *l, Box *x, const Adaptive *c, const TensorMeta *out,
                         const Value *divisor) {
    Value kernel = val_list(l->arena, VAL_list, 2);
    for (int d = 0; d < 2; d++)
        kernel.at[d] = val_int(c->in[d] / c->out[d]);
    return lv_box(avg_pool_box(l, x, &kernel, divisor, out));
}

LVal lower_adaptive_avg_pool(Lower *l, const Value *args, LoopOpKind kind) {
    Box *x = arg_box(l, args, 0);
    const TensorMeta *m = node_meta(l, l->node);
    (void)kind;
    box_realize_hint(l, x);
    Adaptive *c = adaptive_new(l, x, m);
    if (!c)
        return lower_fallback(l, l->node->def, args);
    if (c->in[0] == c->out[0] && c->in[1] == c->out[1])
        return lv_box(clone_box(l, x));
    if (divides(c))
        return even_windows(l, x, c, m, &(Value){.kind = VAL_none});
    if (c->longest[0] * c->longest[1] > ADAPTIVE_UNROLL)
        return lower_fallback(l, l->node->def, args);
    Box *ones = full_box(l, val_int(1), c->dtype, data_device(x->data), c->n, data_size(x->data));
    c->ones = data_loader(l, ones->data);
    return lv_box(
        pointwise_new(l, c->dtype, data_device(x->data), c->n, m->size, (Fn){run_adaptive, c}));
}

LVal lower_adaptive_max_pool(Lower *l, const Value *args, LoopOpKind kind) {
    Box *x = arg_box(l, args, 0);
    const Value *outs = node_val(l, l->node);
    bool pair = (outs->kind == VAL_tuple || outs->kind == VAL_list) && outs->n == 2;
    (void)kind;
    box_realize_hint(l, x);
    Adaptive *c = pair ? adaptive_new(l, x, outs->at[0].tensor) : NULL;
    if (!c || divides(c) || c->longest[0] * c->longest[1] > ADAPTIVE_UNROLL)
        return lower_fallback(l, l->node->def, args);
    const TensorMeta *m = outs->at[0].tensor;
    Device dev = data_device(x->data);
    c->combine = LOOP_maximum;
    c->pad = val_float(-__builtin_inf());
    LVal both = lv_list(l, 2);
    both.at[0] = lv_box(pointwise_new(l, c->dtype, dev, c->n, m->size, (Fn){run_adaptive, c}));
    both.at[1] = lv_box(pointwise_new(l, DT_i64, dev, c->n, m->size, (Fn){run_adaptive_index, c}));
    return both;
}

LVal lower_upsample_nearest_backward(Lower *l, const Value *args, LoopOpKind kind) {
    Box *x = arg_box(l, args, 0);
    const TensorMeta *m = node_meta(l, l->node);
    (void)kind;
    box_realize_hint(l, x);
    Adaptive *c = adaptive_new(l, x, m);
    if (!c)
        return lower_fallback(l, l->node->def, args);
    if (divides(c))
        return even_windows(l, x, c, m, &(Value){.kind = VAL_int, .i = 1});
    for (int d = 0; d < 2; d++)
        c->longest[d] = (c->in[d] + c->out[d] - 1) / c->out[d];
    c->from_ceil = true;
    return lv_box(
        pointwise_new(l, c->dtype, data_device(x->data), c->n, m->size, (Fn){run_adaptive, c}));
}
