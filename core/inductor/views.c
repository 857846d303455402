// views.c: views of values. Over a value that is not a buffer yet, or has no strides for it, a view
// is a change of the index; over a buffer it is a reinterpretation with strides of its own
// (ReinterpretView), which fixes the buffer's layout. Source: torch/_inductor/ir.py, BaseView and
// its kinds.
#include "core/inductor/lower.h"
#include "core/ops/meta.h"
#include "core/record/fault.h"

#include <assert.h>

Box *box_new(Lower *l, Data *d) {
    Box *b = ARENA_NEW(l->arena, Box);
    b->data = d;
    return b;
}

static Data *data_new(Lower *l, DataKind kind) {
    Data *d = ARENA_NEW(l->arena, Data);
    *d = (Data){.kind = kind, .origins = l->origins};
    return d;
}

Data *data_loops(Lower *l, Loops *p) {
    Data *d = data_new(l, D_store);
    d->loops = p;
    return d;
}

Data *data_const(Lower *l, Value v, DType dtype, Device dev) {
    Data *d = data_new(l, D_const);
    d->k = v;
    d->dtype = dtype;
    d->device = dev;
    return d;
}

Data *data_index(Lower *l, const Expr *e, DType dtype, Device dev) {
    Data *d = data_new(l, D_index);
    d->expr = e;
    d->dtype = dtype;
    d->device = dev;
    return d;
}

int data_ndim(const Data *d) {
    switch (d->kind) {
    case D_store:
        return d->buf ? d->buf->ir->layout->ndim : d->loops->ndim;
    case D_view:
        return d->ndim;
    case D_reinterpret:
        return d->layout->ndim;
    case D_const:
    case D_index:
        break;
    }
    return 0;
}

const Expr *const *data_size(const Data *d) {
    switch (d->kind) {
    case D_store:
        return d->buf ? d->buf->ir->layout->size : d->loops->ranges;
    case D_view:
        return d->size;
    case D_reinterpret:
        return d->layout->size;
    case D_const:
    case D_index:
        break;
    }
    return NULL;
}

DType data_dtype(const Data *d) {
    switch (d->kind) {
    case D_store:
        return d->buf ? d->buf->ir->layout->dtype : d->loops->dtype;
    case D_view:
        return data_dtype(d->base);
    case D_reinterpret:
        return d->layout->dtype;
    case D_const:
    case D_index:
        break;
    }
    return d->dtype;
}

Device data_device(const Data *d) {
    switch (d->kind) {
    case D_store:
        return d->buf ? d->buf->ir->layout->device : d->loops->device;
    case D_view:
        return data_device(d->base);
    case D_reinterpret:
        return d->layout->device;
    case D_const:
    case D_index:
        break;
    }
    return d->device;
}

Data *data_unwrap(Data *d) {
    while (d->kind == D_view || d->kind == D_reinterpret)
        d = d->base;
    return d;
}

IrLayout *data_layout(const Data *d) {
    if (d->kind == D_reinterpret)
        return d->layout;
    return d->kind == D_store && d->buf ? d->buf->ir->layout : NULL;
}

bool is_storage_and_layout(const Data *d) {
    const IrLayout *y = data_layout(d);
    return y && y->kind != IRL_none && y->kind != IRL_multi_output;
}

bool is_contiguous_storage(Lower *l, const Data *d) {
    return is_storage_and_layout(d) && layout_is_contiguous(l, data_layout(d));
}

// ---- loaders

static TVal load_buffer(Tracer *t, const void *ctx, Index idx, Index red) {
    const LBuf *b = ctx;
    (void)red;
    const IrLayout *y = b->ir->layout;
    if (y->kind == IRL_mutation)
        y = b->into;
    return t_load(t, b->ir->name, b->ir->layout->dtype, layout_index(t->l, y, idx));
}

// Planted: by the strides of another call.
static TVal load_stale(Tracer *t, const void *ctx, Index idx, Index red) {
    const LBuf *b = ctx;
    IrLayout y = *b->ir->layout;
    (void)red;
    y.stride = strides_contiguous(t->l, y.ndim, y.size);
    return t_load(t, b->ir->name, y.dtype, layout_index(t->l, &y, idx));
}

// The buffer is that of when the loader is made: another may take its place later.
typedef struct StridedLoad {
    const LBuf *buf;
    const IrLayout *layout;
} StridedLoad;

static TVal load_reinterpret(Tracer *t, const void *ctx, Index idx, Index red) {
    const StridedLoad *s = ctx;
    (void)red;
    DType from = s->buf->ir->layout->dtype, to = s->layout->dtype;
    TVal v = t_load(t, s->buf->ir->name, from, layout_index(t->l, s->layout, idx));
    return from == to ? v : t_bitcast(t, v, to, from);
}

static Fn strided_loader(Lower *l, Data *d) {
    StridedLoad *s = ARENA_NEW(l->arena, StridedLoad);
    *s = (StridedLoad){data_unwrap(d->base)->buf, d->layout};
    return (Fn){load_reinterpret, s};
}

static TVal load_const(Tracer *t, const void *ctx, Index idx, Index red) {
    const Data *d = ctx;
    (void)idx, (void)red;
    return t_const(t, d->k, d->dtype);
}

static TVal load_index(Tracer *t, const void *ctx, Index idx, Index red) {
    const Data *d = ctx;
    (void)idx, (void)red;
    return t_index(t, d->expr, d->dtype);
}

typedef struct ViewLoad {
    const Data *view;
    Fn inner;
    int base_ndim;
} ViewLoad;

static TVal load_view(Tracer *t, const void *ctx, Index idx, Index red) {
    const ViewLoad *v = ctx;
    const Expr *out[64];
    assert(v->base_ndim <= 64);
    (void)red;
    v->view->reindex(t->l, v->view->ctx, idx, out);
    return t_call(t, v->inner, out, NULL);
}

// As of now: a value that is realized later is still computed anew by who made its loader before.
Fn data_loader(Lower *l, Data *d) {
    switch (d->kind) {
    case D_const:
        return (Fn){load_const, d};
    case D_index:
        return (Fn){load_index, d};
    case D_reinterpret:
        return strided_loader(l, d);
    case D_view: {
        ViewLoad *v = ARENA_NEW(l->arena, ViewLoad);
        *v = (ViewLoad){d, data_loader(l, d->base), data_ndim(d->base)};
        return (Fn){load_view, v};
    }
    case D_store:
        break;
    }
    if (!d->buf)
        return loops_fn(d->loops);
    // A buffer of constants or of indexes only is cheaper to make than to load.
    if (d->buf->loops && d->buf->loops->kind == LK_pointwise && !d->buf->mutated &&
        d->buf->ir->layout->kind != IRL_mutation && loops_count(l, d->buf->loops)->reads.n == 0)
        return loops_fn(d->buf->loops);
    if (l->node &&
        d->buf->is_input && !layout_is_contiguous(l, d->buf->ir->layout) &&
        fault(l->req->decisions, FAULT_stale_guard, l->node->name))
        return (Fn){load_stale, d->buf};
    return (Fn){load_buffer, d->buf};
}

// ---- making views

Data *view_generic(Lower *l, Data *x, int n, const Expr *const *size, Reindex *fn,
                   const void *ctx) {
    Data *d = data_new(l, D_view);
    d->base = x;
    d->ndim = n;
    d->size = ARENA_ARRAY(l->arena, n, const Expr *);
    for (int i = 0; i < n; i++)
        d->size[i] = size[i];
    d->reindex = fn;
    d->ctx = ctx;
    return d;
}

// Storage of a reinterpretable value, its layout fixed by how it is filled.
static Data *storage_of(Lower *l, Data *x) {
    if (x->kind == D_reinterpret)
        return x->base;
    buf_decide(l, x->buf);
    return x;
}

Data *view_strided(Lower *l, Data *storage, IrLayout *y) {
    assert(storage->kind == D_store && storage->buf);
    Data *d = data_new(l, D_reinterpret);
    d->base = storage;
    d->layout = y;
    return d;
}

typedef struct ExpandCtx {
    int skip, n; // dimensions added in front; of the base
    bool *one; // (n) the base's size is 1
} ExpandCtx;

static void reindex_expand(Lower *l, const void *ctx, Index in, const Expr **out) {
    const ExpandCtx *c = ctx;
    for (int i = 0; i < c->n; i++)
        out[i] = c->one[i] ? sym_int(l->sym, 0) : in[c->skip + i];
}

Data *view_expand(Lower *l, Data *x, int n, const Expr *const *size) {
    int old_n = data_ndim(x), skip = n - old_n;
    const Expr *const *old = data_size(x);
    const Expr **want = ARENA_ARRAY(l->arena, n, const Expr *);
    for (int i = 0; i < n; i++)
        want[i] = i >= skip && (expr_is(size[i], -1) || !size_is_one(l, old[i - skip]))
                      ? old[i - skip]
                      : size[i];
    if (is_storage_and_layout(x)) {
        Data *s = storage_of(l, x);
        const IrLayout *y = data_layout(x);
        const Expr **stride = ARENA_ARRAY(l->arena, n, const Expr *);
        for (int i = 0; i < n; i++)
            stride[i] = i < skip || size_is_one(l, y->size[i - skip]) ? sym_int(l->sym, 0)
                                                                      : y->stride[i - skip];
        return view_strided(
            l, s,
            layout_new(l, IRL_fixed, y->device, y->dtype, n, want, stride, layout_offset(l, y)));
    }
    ExpandCtx *c = ARENA_NEW(l->arena, ExpandCtx);
    *c = (ExpandCtx){skip, old_n, ARENA_ARRAY(l->arena, old_n, bool)};
    for (int i = 0; i < old_n; i++)
        c->one[i] = size_is_one(l, old[i]);
    return view_generic(l, x, n, want, reindex_expand, c);
}

typedef struct PermuteCtx {
    int n;
    const int *dims;
} PermuteCtx;

static void reindex_permute(Lower *l, const void *ctx, Index in, const Expr **out) {
    const PermuteCtx *c = ctx;
    (void)l;
    for (int i = 0; i < c->n; i++)
        out[c->dims[i]] = in[i];
}

Data *view_permute(Lower *l, Data *x, const int *dims) {
    int n = data_ndim(x);
    const Expr *const *old = data_size(x);
    const Expr **size = ARENA_ARRAY(l->arena, n, const Expr *);
    int *copy = ARENA_ARRAY(l->arena, n, int);
    for (int i = 0; i < n; i++) {
        copy[i] = dims[i];
        size[i] = old[dims[i]];
    }
    if (is_storage_and_layout(x)) {
        Data *s = storage_of(l, x);
        const IrLayout *y = data_layout(x);
        const Expr **stride = ARENA_ARRAY(l->arena, n, const Expr *);
        for (int i = 0; i < n; i++)
            stride[i] = y->stride[dims[i]];
        return view_strided(
            l, s,
            layout_new(l, IRL_fixed, y->device, y->dtype, n, size, stride, layout_offset(l, y)));
    }
    PermuteCtx *c = ARENA_NEW(l->arena, PermuteCtx);
    *c = (PermuteCtx){n, copy};
    return view_generic(l, x, n, size, reindex_permute, c);
}

typedef struct SliceCtx {
    int n, dim;
    const Expr *start, *step;
} SliceCtx;

static void reindex_slice(Lower *l, const void *ctx, Index in, const Expr **out) {
    const SliceCtx *c = ctx;
    for (int i = 0; i < c->n; i++)
        out[i] = in[i];
    out[c->dim] = sym_add(l->sym, sym_mul(l->sym, in[c->dim], c->step), c->start);
}

static const Expr *clamp_to(Lower *l, const Expr *v, const Expr *lo, const Expr *hi) {
    Sym *s = l->sym;
    if (sym_range(s, v).hi < 0)
        v = sym_add(s, v, hi);
    int64_t big = 0;
    if (expr_int(v, &big) && big == INT64_MAX)
        return hi;
    if (sym_known_le(s, v, lo))
        return lo;
    if (sym_known_le(s, hi, v))
        return hi;
    if (sym_known_le(s, lo, v) && sym_known_le(s, v, hi))
        return v;
    if (sym_guard(s, sym_cmp(s, SYM_le, hi, v), l->req->stage, "slice bound", NULL))
        return hi;
    return v;
}

void slice_bounds(Lower *l, const Expr *size, const Expr **start, const Expr **end) {
    *start = clamp_to(l, *start, sym_int(l->sym, 0), size);
    *end = clamp_to(l, *end, *start, size);
}

bool data_same_size(Lower *l, const Data *a, const Data *b) {
    return data_ndim(a) == data_ndim(b) && sizes_equal(l, data_ndim(a), data_size(a), data_size(b));
}

Data *view_slice(Lower *l, Data *x, int dim, const Expr *start, const Expr *end, const Expr *step,
                 bool clamp) {
    Sym *s = l->sym;
    int n = data_ndim(x);
    const Expr *const *old = data_size(x);
    if (clamp)
        slice_bounds(l, old[dim], &start, &end);
    if (expr_is(start, 0) && expr_is(step, 1) && end == old[dim])
        return x;
    const Expr **size = ARENA_ARRAY(l->arena, n, const Expr *);
    for (int i = 0; i < n; i++)
        size[i] = old[i];
    size[dim] = sym_floordiv(s, sym_add(s, sym_sub(s, end, start), sym_add_int(s, step, -1)), step);
    if (is_storage_and_layout(x)) {
        Data *st = storage_of(l, x);
        const IrLayout *y = data_layout(x);
        const Expr *offset = layout_offset(l, y);
        IrLayout *v = layout_new(l, IRL_fixed, y->device, y->dtype, n, size, y->stride, offset);
        v->stride[dim] = sym_mul(s, y->stride[dim], step);
        v->offset = sym_add(s, offset, sym_mul(s, y->stride[dim], start));
        return view_strided(l, st, v);
    }
    SliceCtx *c = ARENA_NEW(l->arena, SliceCtx);
    *c = (SliceCtx){n, dim, start, step};
    return view_generic(l, x, n, size, reindex_slice, c);
}

// Without dimensions of size 1. On a buffer a view of its own even if there are none.
Data *view_squeeze(Lower *l, Data *x) {
    const Expr *const *old = data_size(x);
    int n = 0, *from = ARENA_ARRAY(l->arena, data_ndim(x) + 1, int);
    const Expr **size = ARENA_ARRAY(l->arena, data_ndim(x) + 1, const Expr *);
    for (int i = 0; i < data_ndim(x); i++)
        if (!size_is_one(l, old[i])) {
            from[n] = i;
            size[n++] = old[i];
        }
    if (!is_storage_and_layout(x))
        return view_reshape(l, x, n, size);
    Data *st = storage_of(l, x);
    const IrLayout *y = data_layout(x);
    IrLayout *v =
        layout_new(l, IRL_fixed, y->device, y->dtype, n, size, y->stride, layout_offset(l, y));
    for (int i = 0; i < n; i++)
        v->stride[i] = y->stride[from[i]];
    return view_strided(l, st, v);
}

// ---- reshape

typedef struct ReshapeCtx {
    int n_old, n_new;
    const Expr **vars; // (n_new) symbols view0 …
    const Expr **expr; // (n_old) old index over them
} ReshapeCtx;

static void reindex_reshape(Lower *l, const void *ctx, Index in, const Expr **out) {
    const ReshapeCtx *c = ctx;
    for (int i = 0; i < c->n_old; i++)
        out[i] = sym_subst(l->sym, c->expr[i], c->vars, in, c->n_new);
}

// Old index over new variables, dimension by dimension from the right; false if the sizes do not
// line up.
static bool reshape_exprs(Lower *l, int n_old, const Expr *const *old, int n_new,
                          const Expr *const *size, const Expr *const *vars, const Expr **out) {
    Sym *s = l->sym;
    int i = n_old - 1, j = n_new - 1, at = n_old - 1;
    while (i >= 0 && j >= 0) {
        const Expr *so = old[i], *sn = size[j], *v = vars[j];
        int64_t ho = size_hint(l, so), hn = size_hint(l, sn);
        if (expr_is(so, 1)) {
            out[at--] = sym_int(s, 0);
            i--;
        } else if (expr_is(sn, 1)) {
            j--;
        } else if (ho == hn) {
            out[at--] = v;
            i--, j--;
        } else if (hn < ho) {
            for (j--; hn < ho; j--) {
                if (j < 0)
                    return false;
                v = sym_add(s, sym_mul(s, vars[j], sn), v);
                sn = sym_mul(s, sn, size[j]);
                hn = size_hint(l, sn);
            }
            if (hn != ho)
                return false;
            out[at--] = v;
            i--;
        } else {
            const Expr *divisor = sym_int(s, 1), *modulus = so;
            out[at--] = sym_modular(s, v, divisor, modulus);
            divisor = modulus;
            for (i--; ho < hn; i--) {
                if (i < 0)
                    return false;
                modulus = old[i];
                out[at--] = sym_modular(s, v, divisor, modulus);
                divisor = sym_mul(s, divisor, modulus);
                so = sym_mul(s, so, modulus);
                ho = size_hint(l, so);
            }
            if (hn != ho)
                return false;
            j--;
        }
    }
    for (; i >= 0; i--) {
        if (size_hint(l, old[i]) != 1)
            return false;
        out[at--] = sym_int(s, 0);
    }
    for (; j >= 0; j--)
        if (size_hint(l, size[j]) != 1)
            return false;
    return true;
}

static const Expr **view_vars(Lower *l, int n) {
    const Expr **v = ARENA_ARRAY(l->arena, n, const Expr *);
    for (int i = 0; i < n; i++)
        v[i] = sym_symbol(l->sym, arena_printf(l->arena, "view%d", i));
    return v;
}

static ReshapeCtx *reshape_ctx(Lower *l, int n_old, const Expr *const *old, int n_new,
                               const Expr *const *size) {
    ReshapeCtx *c = ARENA_NEW(l->arena, ReshapeCtx);
    *c =
        (ReshapeCtx){n_old, n_new, view_vars(l, n_new), ARENA_ARRAY(l->arena, n_old, const Expr *)};
    if (reshape_exprs(l, n_old, old, n_new, size, c->vars, c->expr))
        return c;
    // Through one flat dimension.
    const Expr *flat = sym_product(l->sym, old, n_old), *var = sym_symbol(l->sym, "flat"),
               *value = NULL;
    bool ok = reshape_exprs(l, n_old, old, 1, &flat, &var, c->expr);
    ok = reshape_exprs(l, 1, &flat, n_new, size, c->vars, &value) && ok;
    if (!ok)
        return NULL;
    for (int i = 0; i < n_old; i++)
        c->expr[i] = sym_subst(l->sym, c->expr[i], &var, &value, 1);
    return c;
}

static void reindex_zero(Lower *l, const void *ctx, Index in, const Expr **out) {
    (void)in;
    for (int i = 0; i < *(const int *)ctx; i++)
        out[i] = sym_int(l->sym, 0);
}

// Memory that is not contiguous, if its strides allow the sizes; else NULL.
static Data *reshape_by_strides(Lower *l, Data *x, int n, const Expr *const *size) {
    IrLayout *y = data_layout(x);
    if (!is_storage_and_layout(x) || y->kind == IRL_flexible)
        return NULL;
    MetaCtx c = {.arena = l->arena, .sym = l->sym, .stage = l->req->stage};
    TensorMeta m = {.dtype = y->dtype, .ndim = y->ndim, .size = y->size, .stride = y->stride};
    const Expr **stride = ARENA_ARRAY(l->arena, n + 1, const Expr *);
    if (!meta_view_strides(&c, &m, n, size, stride))
        return NULL;
    return view_strided(
        l, storage_of(l, x),
        layout_new(l, IRL_fixed, y->device, y->dtype, n, size, stride, layout_offset(l, y)));
}

Data *view_reshape(Lower *l, Data *x, int n, const Expr *const *size) {
    int old_n = data_ndim(x);
    const Expr *const *old = data_size(x);
    if (old_n == n && sizes_equal(l, n, old, size))
        return x;
    if (is_contiguous_storage(l, x)) {
        Data *s = x->kind == D_reinterpret ? x->base : x;
        if (x->kind == D_store)
            buf_freeze(l, x->buf);
        const IrLayout *y = data_layout(x);
        return view_strided(
            l, s,
            layout_new(l, IRL_fixed, y->device, y->dtype, n, size, NULL, layout_offset(l, y)));
    }
    for (int i = 0; i < n; i++)
        if (expr_is(size[i], 0)) {
            int *c = ARENA_NEW(l->arena, int);
            *c = old_n;
            return view_generic(l, x, n, size, reindex_zero, c);
        }
    Data *strided = reshape_by_strides(l, x, n, size);
    if (strided)
        return strided;
    ReshapeCtx *c = reshape_ctx(l, old_n, old, n, size);
    if (!c) {
        diag_fail(l->req->diag, "%s: a view does not fit the size of its input", l->node->name);
        l->failed = true;
        return x;
    }
    return view_generic(l, x, n, size, reindex_reshape, c);
}
