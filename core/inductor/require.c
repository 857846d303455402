// require.c: what library kernels and graph outputs ask of a value: to be in memory, with such
// strides, or copied. Source: torch/_inductor/ir.py ExternKernel.realize_input, require_strides,
// copy_input, MutationLayoutSHOULDREMOVE.
#include "core/inductor/lower.h"

#include <assert.h>

// ---- inputs of library kernels

Data *data_copy(Lower *l, Data *d) {
    Box *b = clone_box(l, &(Box){d});
    box_realize(l, b, "copied for a kernel");
    return b->data;
}

// Index into the storage below a chain of views.
static const Expr *chain_index(Lower *l, Data *d, Index idx) {
    const Expr *out[64];
    if (d->kind == D_view) {
        d->reindex(l, d->ctx, idx, out);
        return chain_index(l, d->base, out);
    }
    return layout_index(l, data_layout(d), idx);
}

static Data *reinterpret(Lower *l, Data *d, bool bounded) {
    if (d->kind == D_reinterpret)
        return d;
    Data *store = data_unwrap(d);
    LBuf *b = store->buf;
    const Node *origin = b->node >= 0 ? graph_by_id(l->g, b->node) : NULL;
    const TensorMeta *m = origin ? node_meta(l, origin) : NULL;
    IrLayout *y = b->ir->layout;
    MemoryFormat last = y->ndim == 5 ? MF_channels_last_3d : MF_channels_last;
    if (y->kind == IRL_flexible && m && m->ndim == y->ndim && (y->ndim == 4 || y->ndim == 5) &&
        meta_is_contiguous(l->sym, m, last)) // also of one channel
        buf_freeze_same_order(l, b, strides_channels_last(l, y->ndim, y->size));
    buf_freeze(l, b);
    int n = data_ndim(d), next = 0;
    const Expr *const *size = data_size(d);
    const Expr **idx = loop_vars(l, "r", n, size, &next);
    const Expr **vars = ARENA_ARRAY(&l->tmp, n, const Expr *),
               **sizes = ARENA_ARRAY(&l->tmp, n, const Expr *);
    const Expr **s = ARENA_ARRAY(&l->tmp, n, const Expr *),
               **stride = ARENA_ARRAY(&l->tmp, n, const Expr *);
    for (int i = 0, j = 0; i < n; i++)
        if (!expr_is(idx[i], 0)) {
            vars[j] = idx[i];
            sizes[j++] = size[i];
        }
    const Expr *e = sym_simplify_with_ranges(l->sym, chain_index(l, d, idx), vars, sizes, next);
    if (bounded)
        e = sym_simplify_bounded(l->sym, e, vars, sizes, next);
    sym_stride_vars(l->sym, e, vars, next, vars, next, s);
    const Expr *offset = sym_offset_of(l->sym, e, vars, next), *want = offset;
    for (int i = 0, j = 0; i < n; i++) {
        stride[i] = expr_is(idx[i], 0) ? sym_int(l->sym, 0) : s[j];
        if (!expr_is(idx[i], 0))
            want = sym_add(l->sym, want, sym_mul(l->sym, vars[j], s[j])), j++;
    }
    if (want != e && sym_expand(l->sym, want) != sym_expand(l->sym, e))
        return NULL;
    return view_strided(
        l, store, layout_new(l, IRL_fixed, y->device, data_dtype(d), n, size, stride, offset));
}

Data *data_reinterpret(Lower *l, Data *d) {
    return reinterpret(l, d, false);
}

Data *data_as_place(Lower *l, Data *d) {
    return reinterpret(l, d, true);
}

Data *data_as_input(Lower *l, Data *d) {
    if (d->kind == D_const || d->kind == D_index)
        return data_copy(l, d);
    data_realize(l, d, "input of a kernel");
    if (d->kind != D_view)
        return d;
    Data *r = is_storage_and_layout(data_unwrap(d)) ? data_reinterpret(l, d) : NULL;
    return r ? r : data_copy(l, d);
}

// ---- strides asked for

static bool significant_equal(Lower *l, int n, const Expr *const *a, const Expr *const *b,
                              const Expr *const *size) {
    for (int i = 0; i < n; i++)
        if (!size_is_one(l, size[i]) && a[i] != b[i] && !sym_known_eq(l->sym, a[i], b[i]))
            return false;
    return true;
}

static bool fits(Lower *l, const IrLayout *y, const int *order, const Expr *const *exact) {
    assert(order || exact);
    return order ? layout_is_stride_ordered(l, y, order)
                 : significant_equal(l, y->ndim, exact, y->stride, y->size);
}

// Strides of dimensions of size 1 as asked.
static Box *match_insignificant(Lower *l, Box *b, const Expr *const *exact) {
    const IrLayout *y = data_layout(b->data);
    if (sizes_equal(l, y->ndim, y->stride, exact))
        return b;
    IrLayout *v = layout_new(l, IRL_fixed, y->device, y->dtype, y->ndim, y->size, y->stride,
                             layout_offset(l, y));
    for (int i = 0; i < y->ndim; i++)
        if (size_is_one(l, y->size[i]))
            v->stride[i] = exact[i];
    Data *s = b->data->kind == D_reinterpret ? b->data->base : b->data;
    return box_new(l, view_strided(l, s, v));
}

static void freeze_as(Lower *l, LBuf *b, const int *order, const Expr *const *exact) {
    if (order)
        buf_freeze_order(l, b, order);
    else
        buf_freeze_strides(l, b, exact);
}

static Box *require_strides(Lower *l, Box *b, const int *order, const Expr *const *exact) {
    Data *d = b->data;
    int n = data_ndim(d), current[64];
    const Expr *numel = sym_product(l->sym, data_size(d), n);
    if (!exact && (expr_is(numel, 0) || expr_is(numel, 1)))
        return b;
    if (is_storage_and_layout(d)) {
        IrLayout *y = data_layout(d);
        if (y->kind == IRL_flexible) {
            if (order && layout_is_stride_ordered(l, y, order)) {
                strides_order(l, n, y->stride, current);
                order = current;
            }
            freeze_as(l, d->buf, order, exact);
            return b;
        }
        if (y->kind == IRL_fixed && fits(l, y, order, exact))
            return exact ? match_insignificant(l, b, exact) : b;
        if (y->kind == IRL_mutation && fits(l, d->buf->into, order, exact))
            return b;
    }
    Data *store = data_unwrap(d);
    if (d->kind == D_view && is_storage_and_layout(store) && !store->buf->is_extern_alloc) {
        Data *r = data_reinterpret(l, d);
        if (r) {
            b->data = r;
            return require_strides(l, b, order, exact);
        }
    }
    Box *copy = box_new(l, data_copy(l, d));
    freeze_as(l, copy->data->buf, order, exact);
    return copy;
}

Box *box_require_order(Lower *l, Box *b, const int *order) {
    return require_strides(l, b, order, NULL);
}

// A dimension of stride 0 is copied once and expanded again.
Box *box_require_exact(Lower *l, Box *b, const Expr *const *stride) {
    int n = data_ndim(b->data);
    const Expr *const *size = data_size(b->data);
    bool expanded = false;
    for (int i = 0; i < n; i++)
        expanded |= expr_is(stride[i], 0) && !size_is_one(l, size[i]);
    if (!expanded || (is_storage_and_layout(b->data) && data_layout(b->data)->kind == IRL_fixed &&
                      fits(l, data_layout(b->data), NULL, stride)))
        return require_strides(l, b, NULL, stride);
    Data *d = b->data;
    for (int i = 0; i < n; i++)
        if (expr_is(stride[i], 0) && !size_is_one(l, size[i]))
            d = view_slice(l, d, i, sym_int(l->sym, 0), sym_int(l->sym, 1), sym_int(l->sym, 1),
                           true);
    Data *copy = data_copy(l, d);
    buf_freeze_strides(l, copy->buf, stride);
    return box_new(l, view_expand(l, copy, n, size));
}

Box *box_require_contiguous(Lower *l, Box *b) {
    int order[64], n = data_ndim(b->data);
    for (int i = 0; i < n; i++)
        order[i] = n - 1 - i;
    return box_require_order(l, b, order);
}

Box *box_require_channels_last(Lower *l, Box *b) {
    static const int nhwc[] = {3, 0, 2, 1};
    return box_require_order(l, b, nhwc);
}
