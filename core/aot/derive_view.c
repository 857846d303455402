// derive_view.c: derivatives of views and of their copying and scattering twins: the gradient goes
// back through the inverse, zeros where nothing was looked at.
#include "core/aot/derive.h"

// one step back

void derive_t(Back *b) {
    OUT(0) = CALL(b->t, aten_t_default, GRAD);
}

void derive_transpose(Back *b) {
    OUT(0) = CALL(b->t, aten_transpose_int, GRAD, ARG(1), ARG(2));
}

void derive_permute(Back *b) {
    Trace *t = b->t;
    Value fwd = ARG(1), back = val_list(t->arena, VAL_list, fwd.n);
    for (int i = 0; i < fwd.n && !t->failed; i++)
        back.at[wrap_dim(t, int_arg(&fwd.at[i], 0), fwd.n)] = INT(i);
    OUT(0) = CALL(t, aten_permute_default, GRAD, back);
}

void derive_reshape(Back *b) {
    OUT(0) = reshape(b->t, GRAD, sizes_arg(b->t, ARG(0)));
}

void derive_expand(Back *b) {
    const TensorMeta *m = meta_of(ARG(0));
    OUT(0) = sum_to(b->t, GRAD, m->size, m->ndim);
}

void derive_unsqueeze(Back *b) {
    OUT(0) = CALL(b->t, aten_squeeze_dim, GRAD, ARG(1));
}

// unsqueeze_to: the dimensions of size 1 that mask names come back. NULL: all of them.
static void unsqueeze_masked(Back *b, const bool *mask) {
    Trace *t = b->t;
    Value x = GRAD;
    for (int i = 0; i < dim_of(ARG(0)) && !t->failed; i++)
        if ((!mask || mask[i]) && expr_guard_is(t, size_of(t, ARG(0), i), 1))
            x = CALL(t, aten_unsqueeze_default, x, INT(i));
    OUT(0) = x;
}

void derive_squeeze(Back *b) {
    unsqueeze_masked(b, NULL);
}

void derive_squeeze_dim(Back *b) {
    int ndim = dim_of(ARG(0));
    bool *mask = ARENA_ARRAY(b->t->arena, ndim + 1, bool);
    mask[wrap_dim(b->t, int_arg(&ARG(1), 0), ndim)] = true;
    unsqueeze_masked(b, mask);
}

void derive_squeeze_dims(Back *b) {
    int ndim = dim_of(ARG(0));
    bool *mask = ARENA_ARRAY(b->t->arena, ndim + 1, bool);
    for (int i = 0; i < ARG(1).n; i++)
        mask[wrap_dim(b->t, int_arg(&ARG(1).at[i], 0), ndim)] = true;
    unsqueeze_masked(b, mask);
}

// windows: an op of its own lays the gradient into zeros

void derive_select(Back *b) {
    OUT(0) =
        CALL(b->t, aten_select_backward_default, GRAD, sizes_arg(b->t, ARG(0)), ARG(1), ARG(2));
}

void derive_slice(Back *b) {
    Value start = is_none(&ARG(2)) ? INT(0) : ARG(2);
    Value end = is_none(&ARG(3)) ? INT(INT64_MAX) : ARG(3);
    OUT(0) = CALL(b->t, aten_slice_backward_default, GRAD, sizes_arg(b->t, ARG(0)), ARG(1), start,
                  end, ARG(4));
}

void derive_narrow_copy(Back *b) {
    Trace *t = b->t;
    const Expr *start, *length;
    if (!val_as_expr(t->sym, &ARG(2), &start) || !val_as_expr(t->sym, &ARG(3), &length))
        return;
    OUT(0) = CALL(t, aten_slice_backward_default, GRAD, sizes_arg(t, ARG(0)), ARG(1), ARG(2),
                  val_sym(sym_add(t->sym, start, length)), INT(1));
}

void derive_diagonal(Back *b) {
    OUT(0) = CALL(b->t, aten_diagonal_backward_default, GRAD, sizes_arg(b->t, ARG(0)), ARG(1),
                  ARG(2), ARG(3));
}

void derive_unfold(Back *b) {
    OUT(0) = CALL(b->t, aten_unfold_backward_default, GRAD, sizes_arg(b->t, ARG(0)), ARG(1), ARG(2),
                  ARG(3));
}

void derive_select_backward(Back *b) {
    OUT(0) = CALL(b->t, aten_select_int, GRAD, ARG(2), ARG(3));
}

void derive_slice_backward(Back *b) {
    OUT(0) = CALL(b->t, aten_slice_Tensor, GRAD, ARG(2), ARG(3), ARG(4), ARG(5));
}

void derive_diagonal_backward(Back *b) {
    OUT(0) = CALL(b->t, aten_diagonal_default, GRAD, ARG(2), ARG(3), ARG(4));
}

void derive_unfold_backward(Back *b) {
    OUT(0) = CALL(b->t, aten_unfold_default, GRAD, ARG(2), ARG(3), ARG(4));
}

// a window overwritten: zeros for what was there, the window of the gradient for what came

void derive_select_scatter(Back *b) {
    Trace *t = b->t;
    if (NEEDS(0))
        OUT(0) = CALL(t, aten_select_scatter_default, GRAD, zeros_like(t, ARG(1)), ARG(2), ARG(3));
    if (NEEDS(1))
        OUT(1) = CALL(t, aten_select_int, GRAD, ARG(2), ARG(3));
}

void derive_slice_scatter(Back *b) {
    Trace *t = b->t;
    if (NEEDS(0))
        OUT(0) = CALL(t, aten_slice_scatter_default, GRAD, zeros_like(t, ARG(1)), ARG(2), ARG(3),
                      ARG(4), ARG(5));
    if (NEEDS(1))
        OUT(1) = CALL(t, aten_slice_Tensor, GRAD, ARG(2), ARG(3), ARG(4), ARG(5));
}

void derive_diagonal_scatter(Back *b) {
    Trace *t = b->t;
    if (NEEDS(0))
        OUT(0) = CALL(t, aten_diagonal_scatter_default, GRAD, zeros_like(t, ARG(1)), ARG(2), ARG(3),
                      ARG(4));
    if (NEEDS(1))
        OUT(1) = CALL(t, aten_diagonal_default, GRAD, ARG(2), ARG(3), ARG(4));
}

// as_strided: the gradient is laid into a flat storage by the view's strides and read by the
// input's. Where elements of the view overlap they add up; where those of the input do, their place
// is shared out among them.

typedef struct Geometry {
    const Expr **size, **stride; // without dimensions of size 1
    int n;
} Geometry;

static Geometry geometry_new(Trace *t, int ndim) {
    return (Geometry){.size = ARENA_ARRAY(t->arena, ndim + 1, const Expr *),
                      .stride = ARENA_ARRAY(t->arena, ndim + 1, const Expr *)};
}

static void geometry_prepend(Geometry *g, const Expr *size, const Expr *stride) {
    for (int i = g->n++; i > 0; i--) {
        g->size[i] = g->size[i - 1];
        g->stride[i] = g->stride[i - 1];
    }
    g->size[0] = size;
    g->stride[0] = stride;
}

static bool less(Trace *t, SymKind kind, const Expr *a, const Expr *b) {
    return expr_guard(t, sym_cmp(t->sym, kind, a, b));
}

// By increasing stride each must be larger than all that lies within a step of it.
static bool may_overlap(Trace *t, const Geometry *g) {
    int *order = ARENA_ARRAY(t->arena, g->n + 1, int);
    for (int i = 0; i < g->n; i++) {
        int k = i;
        for (; k > 0 && less(t, SYM_lt, g->stride[i], g->stride[order[k - 1]]); k--)
            order[k] = order[k - 1];
        order[k] = i;
    }
    const Expr *reach = sym_int(t->sym, 0);
    for (int i = 0; i < g->n; i++) {
        const Expr *size = g->size[order[i]], *stride = g->stride[order[i]];
        if (less(t, SYM_le, stride, reach))
            return true;
        reach = sym_add(t->sym, reach, sym_mul(t->sym, stride, sym_add_int(t->sym, size, -1)));
    }
    return false;
}

static const Expr *storage_size(Trace *t, const Geometry *g, const Expr *offset) {
    const Expr *n = sym_add_int(t->sym, offset, 1);
    for (int i = 0; i < g->n; i++) {
        const Expr *last = sym_add_int(t->sym, g->size[i], -1);
        n = sym_add(t->sym, n, sym_mul(t->sym, last, g->stride[i]));
    }
    return n;
}

static Value strided_view(Trace *t, Value x, const Geometry *g, const Expr *offset) {
    return CALL(t, aten_as_strided_default, x, size_list(t, g->size, g->n),
                size_list(t, g->stride, g->n), val_sym(offset));
}

static Value flat(Trace *t, Value x) {
    return reshape(t, x, list_of(t, INT(-1), END));
}

// The view's geometry; its gradient, summed where the view stands still. False: it has no element.
static bool view_geometry(Back *b, Geometry *g, Value *grad) {
    Trace *t = b->t;
    for (int i = ARG(1).n - 1; i >= 0 && !t->failed; i--) {
        const Expr *size, *stride;
        if (!val_as_expr(t->sym, &ARG(1).at[i], &size) ||
            !val_as_expr(t->sym, &ARG(2).at[i], &stride) || expr_guard_is(t, size, 0))
            return false;
        if (expr_guard_is(t, size, 1))
            *grad = CALL(t, aten_squeeze_dim, *grad, INT(i));
        else if (expr_guard_is(t, stride, 0))
            *grad = CALL(t, aten_sum_dim_IntList, *grad, list_of(t, INT(i), END), BOOL(false));
        else
            geometry_prepend(g, size, stride);
    }
    return !t->failed;
}

static bool input_geometry(Trace *t, const TensorMeta *m, Geometry *g) {
    for (int i = m->ndim - 1; i >= 0; i--) {
        if (expr_guard_is(t, m->size[i], 0))
            return false;
        if (!expr_guard_is(t, m->size[i], 1))
            geometry_prepend(g, m->size[i], m->stride[i]);
    }
    return true;
}

// How often the input shows each place of the storage.
static Value shared_out(Trace *t, Value storage, Value places, const Geometry *in,
                        const Expr *offset, Value grad) {
    Value count = CALL(t, aten_zeros_like_default, storage, NONE, NONE, NONE, NONE,
                       (Value){.kind = VAL_memory_format, .mf = MF_contiguous});
    Value at = flat(t, strided_view(t, places, in, offset));
    Value one = ones_of(t, list_of(t, INT(1), END), grad);
    one = CALL(t, aten_expand_default, one, sizes_arg(t, at));
    count = CALL(t, aten_index_add_default, count, INT(0), at, one);
    return CALL(t, aten_div_Tensor, storage, count);
}

void derive_as_strided(Back *b) {
    Trace *t = b->t;
    const TensorMeta *m = meta_of(ARG(0));
    Value grad = GRAD;
    Geometry out = geometry_new(t, ARG(1).n), in = geometry_new(t, m->ndim);
    if (!view_geometry(b, &out, &grad) || !input_geometry(t, m, &in)) {
        OUT(0) = zeros_of(t, sizes_arg(t, ARG(0)), grad);
        return;
    }
    bool out_overlaps = may_overlap(t, &out), in_overlaps = may_overlap(t, &in);
    const Expr *offset = m->offset;
    if (!is_none(&ARG(3)))
        val_as_expr(t->sym, &ARG(3), &offset);
    const Expr *shared = sym_min(t->sym, m->offset, offset);
    const Expr *in_offset = sym_sub(t->sym, m->offset, shared);
    const Expr *out_offset = sym_sub(t->sym, offset, shared);
    const Expr *size =
        sym_max(t->sym, storage_size(t, &in, in_offset), storage_size(t, &out, out_offset));
    Value storage = CALL(t, aten_new_zeros_default, grad, list_of(t, val_sym(size), END));
    Value places = NONE;
    if (out_overlaps || in_overlaps)
        places = arange_like(t, INT(0), val_sym(size), NONE, grad);
    if (out_overlaps) {
        Value at = strided_view(t, places, &out, out_offset), g = flat(t, grad);
        storage = CALL(t, aten_index_add_default, storage, INT(0), flat(t, at), g);
    } else {
        CALL(t, aten_copy__default, strided_view(t, storage, &out, out_offset), grad);
    }
    if (in_overlaps)
        storage = shared_out(t, storage, places, &in, in_offset, grad);
    OUT(0) = CALL(t, aten_as_strided_default, storage, sizes_arg(t, ARG(0)),
                  size_list(t, m->stride, m->ndim), val_sym(in_offset));
}

void derive_as_strided_scatter(Back *b) {
    Trace *t = b->t;
    const TensorMeta *m = meta_of(ARG(0));
    if (NEEDS(0)) {
        Value grad = contiguous(t, GRAD, MF_contiguous);
        Value window = CALL(t, aten_as_strided_default, grad, ARG(2), ARG(3), ARG(4));
        Value buffer = CALL(t, aten_new_zeros_default, grad, sizes_arg(t, ARG(0)));
        Value result = CALL(t, aten_as_strided_default, buffer, sizes_arg(t, ARG(0)),
                            size_list(t, m->stride, m->ndim));
        CALL(t, aten_copy__default,
             CALL(t, aten_as_strided_default, buffer, ARG(2), ARG(3), ARG(4)), window);
        OUT(0) = result;
    }
    if (NEEDS(1))
        OUT(1) = CALL(t, aten_as_strided_default, contiguous(t, GRAD, MF_contiguous), ARG(2),
                      ARG(3), ARG(4));
}
