// layout.c: sizes and strides of buffers: contiguous and channels_last strides, stride orders and
// fill orders (a fill order lists dimensions from the fastest; a stride order gives each dimension
// its rank).
#include "core/inductor/lower.h"

#include <assert.h>
#include <string.h>

int64_t size_hint(Lower *l, const Expr *e) {
    return hint_of(l->sym, e);
}

bool size_is_one(Lower *l, const Expr *e) {
    (void)l;
    return expr_is(e, 1);
}

bool sizes_equal(Lower *l, int n, const Expr *const *a, const Expr *const *b) {
    for (int i = 0; i < n; i++)
        if (a[i] != b[i] && !sym_known_eq(l->sym, a[i], b[i]))
            return false;
    return true;
}

const Expr **strides_contiguous(Lower *l, int ndim, const Expr *const *size) {
    const Expr **s = ARENA_ARRAY(l->arena, ndim, const Expr *);
    const Expr *next = sym_int(l->sym, 1);
    for (int i = ndim - 1; i >= 0; i--) {
        s[i] = next;
        next = sym_mul(l->sym, next, expr_is(size[i], 0) ? sym_int(l->sym, 1) : size[i]);
    }
    return s;
}

const Expr **strides_filled(Lower *l, int n, const Expr *const *size, const int *fill) {
    const Expr **s = ARENA_ARRAY(l->arena, n, const Expr *);
    const Expr *next = sym_int(l->sym, 1);
    for (int i = 0; i < n; i++) {
        s[fill[i]] = next;
        next = sym_mul(l->sym, next, size[fill[i]]);
    }
    return s;
}

const Expr **strides_channels_last(Lower *l, int ndim, const Expr *const *size) {
    static const int fill4[] = {1, 3, 2, 0}, fill5[] = {1, 4, 3, 2, 0};
    return strides_filled(l, ndim, size, ndim == 5 ? fill5 : fill4);
}

// Rank of each dimension's stride; of equal strides the later dimension is the faster one.
void strides_order(Lower *l, int n, const Expr *const *stride, int *order) {
    for (int i = 0; i < n; i++) {
        int rank = 0;
        int64_t s = size_hint(l, stride[i]);
        for (int j = 0; j < n; j++) {
            int64_t o = size_hint(l, stride[j]);
            rank += o < s || (o == s && j > i);
        }
        order[i] = rank;
    }
}

void strides_order_to_fill(int n, const int *order, int *fill) {
    for (int i = 0; i < n; i++)
        fill[order[i]] = i;
}

IrLayout *layout_new(Lower *l, IrLayoutKind kind, Device dev, DType dtype, int ndim,
                     const Expr *const *size, const Expr *const *stride, const Expr *offset) {
    IrLayout *y = ARENA_NEW(l->arena, IrLayout);
    *y = (IrLayout){.kind = kind, .device = dev, .dtype = dtype, .ndim = ndim, .offset = offset};
    y->size = ARENA_ARRAY(l->arena, ndim, const Expr *);
    y->stride = ARENA_ARRAY(l->arena, ndim, const Expr *);
    assert(!ndim || size);
    if (!stride && size)
        stride = strides_contiguous(l, ndim, size);
    for (int i = 0; i < ndim; i++) {
        y->size[i] = size[i];
        y->stride[i] = stride[i];
    }
    if (!offset)
        y->offset = sym_int(l->sym, 0);
    return y;
}

bool layout_is_contiguous(Lower *l, const IrLayout *y) {
    const Expr **want = strides_contiguous(l, y->ndim, y->size);
    for (int i = 0; i < y->ndim; i++)
        if (expr_is(y->size[i], 0))
            return true;
    for (int i = 0; i < y->ndim; i++)
        if (!size_is_one(l, y->size[i]) && want[i] != y->stride[i] &&
            !sym_known_eq(l->sym, want[i], y->stride[i]))
            return false;
    return true;
}

bool layout_is_channels_last(Lower *l, int ndim, const Expr *const *size,
                             const Expr *const *stride) {
    if (ndim != 4 && ndim != 5)
        return false;
    if (size_is_one(l, size[1]))
        return false;
    const Expr **want = strides_channels_last(l, ndim, size);
    for (int i = 0; i < ndim; i++)
        if (!size_is_one(l, size[i]) && want[i] != stride[i] &&
            !sym_known_eq(l->sym, want[i], stride[i]))
            return false;
    return true;
}

bool layout_is_stride_ordered(Lower *l, const IrLayout *y, const int *order) {
    int64_t last = -1;
    int prev = -1;
    for (int k = 0; k < y->ndim; k++) { // next higher rank among dimensions that matter
        int at = -1;
        for (int i = 0; i < y->ndim; i++)
            if (!size_is_one(l, y->size[i]) && order[i] > prev && (at < 0 || order[i] < order[at]))
                at = i;
        if (at < 0)
            break;
        prev = order[at];
        int64_t s = size_hint(l, y->stride[at]);
        if (s < last)
            return false;
        last = s;
    }
    return true;
}

const Expr *layout_offset(Lower *l, const IrLayout *y) {
    return y->kind == IRL_non_owning ? sym_int(l->sym, 0) : y->offset;
}

const Expr *layout_index(Lower *l, const IrLayout *y, Index idx) {
    const Expr *e = layout_offset(l, y);
    for (int i = 0; i < y->ndim; i++)
        if (!size_is_one(l, y->size[i]))
            e = sym_add(l->sym, e, sym_mul(l->sym, idx[i], y->stride[i]));
    return e;
}

// ---- what convolutions like (decide_layout_opt, find_nodes_prefer_channels_last of graph.py)

// What a convolution reads or makes, what leads to it, and what follows from that up to the last
// one; products of batches pass nothing on.
bool *layout_prefers_channels_last(Lower *l) {
    bool *set = ARENA_ARRAY(l->arena, l->g->by_id.n, bool);
    const Node *last = NULL;
    for (const Node *n = l->g->last; n; n = n->prev) {
        if (node_is(n, OP_aten_convolution_default)) {
            set[n->id] = true;
            last = last ? last : n;
            continue;
        }
        bool stops = node_is(n, OP_aten_bmm_default);
        for (int i = 0; i < n->n_users && !set[n->id] && !stops; i++)
            set[n->id] = set[n->users[i]->id];
    }
    GRAPH_EACH (l->g, n) {
        if (n == last)
            break;
        for (int i = 0; set[n->id] && i < n->n_users; i++)
            set[n->users[i]->id] |= !node_is(n->users[i], OP_aten_bmm_default);
    }
    return set;
}

bool layout_opt_decided(Lower *l) {
    if (!l->req->config->layout_optimization)
        return false;
    bool any = false;
    GRAPH_EACH (l->g, n)
        if (node_is(n, OP_aten_convolution_default)) {
            const TensorMeta *m = node_meta(l, n);
            any = true;
            if (m && m->device.type != DEV_cpu)
                return false;
        }
    return any;
}
