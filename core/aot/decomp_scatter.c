// decomp_scatter.c: decompositions of the backward ops of views and of indexing, which put a
// gradient into zeros, and of the unsafe and masked forms of index and index_put.
#include "core/aot/decomp.h"

static Value zeros_like_grad(Trace *t, Value g, Value sizes) {
    return CALL(t, aten_new_zeros_default, g, sizes);
}

bool decomp_slice_backward(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    Value x = zeros_like_grad(t, a[0], a[1]);
    *out = CALL(t, aten_slice_scatter_default, x, a[0], a[2], a[3], a[4], a[5]);
    return true;
}

bool decomp_select_backward(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    Value x = zeros_like_grad(t, a[0], a[1]);
    *out = CALL(t, aten_select_scatter_default, x, a[0], a[2], a[3]);
    return true;
}

bool decomp_diagonal_backward(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    Value x = zeros_like_grad(t, a[0], a[1]);
    *out = CALL(t, aten_diagonal_scatter_default, x, a[0], a[2], a[3], a[4]);
    return true;
}

// A mask over the dimension's places, and the source spread over it.
bool decomp_select_scatter(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    int n = dim_of(a[0]), dim = wrap_dim(t, int_arg(&a[2], 0), n);
    Value mask_shape = val_list(t->arena, VAL_list, n), index = a[3];
    for (int i = 0; i < n; i++)
        mask_shape.at[i] = INT(i == dim ? -1 : 1);
    if (index.kind == VAL_int && index.i < 0)
        index = val_sym(sym_add_int(t->sym, size_of(t, a[0], dim), index.i));
    Value mask = py_arange(t, val_sym(size_of(t, a[0], dim)), DT_none, a[0]);
    mask = CALL(t, aten_view_default, mask, mask_shape);
    mask = py_eq(t, mask, index);
    Value src = py_unsqueeze(t, a[1], dim);
    src = CALL(t, aten_expand_default, src, sizes_of(t, a[0]));
    *out = py_where(t, mask, src, a[0]);
    return true;
}

bool decomp_unfold_backward(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    if (!a[1].n) {
        *out = CALL(t, aten_squeeze_copy_dim, a[0], INT(0));
        return true;
    }
    int dim = wrap_dim(t, int_arg(&a[2], 0), a[1].n);
    Value i = py_arange(t, a[1].at[dim], DT_i32, a[0]);
    i = CALL(t, aten_unfold_default, i, INT(0), a[3], a[4]);
    i = flatten(t, i);
    Value g = CALL(t, aten_movedim_int, a[0], INT(-1), INT(dim + 1));
    g = CALL(t, aten_flatten_using_ints, g, INT(dim), INT(dim + 1));
    Value x = zeros_like_grad(t, g, a[1]);
    x = CALL(t, aten__unsafe_index_put_default, x, index_at(t, dim + 1, dim, i), g, BOOL(true));
    *out = contiguous(t, x, MF_contiguous);
    return true;
}

// XPU keeps the op.
bool decomp_embedding_dense_backward(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    Wide w = decomp_widen(t, a, 1);
    Value g = w.a[0], i = to_dtype(t, a[1], DT_i64), weights = list_of(t, a[2], END);
    if (bool_arg(&a[4])) {
        Value counts = CALL(t, aten_new_zeros_default, i, weights);
        Value ones = CALL(t, aten_ones_like_default, i);
        counts =
            CALL(t, aten__unsafe_index_put_default, counts, list_of(t, i, END), ones, BOOL(true));
        Value scale = CALL(t, aten_index_Tensor, counts, list_of(t, i, END));
        scale = py_unsqueeze(t, scale, -1);
        g = py_div(t, g, scale);
    }
    Value mask = py_eq(t, i, a[3]);
    mask = unsqueeze_to(t, mask, dim_of(g));
    Value x = CALL(t, aten_masked_fill_Scalar, g, mask, INT(0));
    Value shape = val_list(t->arena, VAL_list, 1 + dim_of(g) - dim_of(i));
    shape.at[0] = a[2];
    for (int k = 1; k < shape.n; k++)
        shape.at[k] = val_sym(size_of(t, g, dim_of(i) + k - 1));
    Value zeros = CALL(t, aten_new_zeros_default, g, shape);
    x = CALL(t, aten__unsafe_index_put_default, zeros, list_of(t, i, END), x, BOOL(true));
    *out = to_dtype(t, x, w.result);
    return true;
}

bool decomp_unsafe_index_put(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    *out = CALL(t, aten_index_put_default, a[0], a[1], a[2], a[3]);
    return true;
}

// Indices within the tensor, counted from `low` sizes below its start.
static Value clamped_indices(Trace *t, Value x, Value indices, bool negative) {
    Value list = val_list(t->arena, VAL_list, indices.n);
    for (int i = 0; i < indices.n; i++) {
        list.at[i] = indices.at[i];
        if (list.at[i].kind != VAL_tensor)
            continue;
        const Expr *len = size_of(t, x, i);
        Value low = negative ? val_sym(sym_neg(t->sym, len)) : INT(0);
        list.at[i] =
            CALL(t, aten_clamp_default, list.at[i], low, val_sym(sym_add_int(t->sym, len, -1)));
    }
    return list;
}

// The shape of x[indices].
static Value indexed_shape(Trace *t, Value x, Value indices) {
    MetaCtx m = trace_meta_ctx(t);
    const Value args[2] = {x, indices};
    Value r = NONE;
    if (!op_meta(&m, op_at(OP_aten_index_Tensor), args, &r)) {
        t->failed = true;
        return NONE;
    }
    return sizes_of(t, r);
}

bool decomp_unsafe_masked_index(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    if (expr_guard_is(t, meta_numel(t->sym, a[0].tensor), 0)) {
        Value shape = indexed_shape(t, a[0], a[2]);
        *out = CALL(t, aten_new_full_default, a[0], shape, a[3]);
        return true;
    }
    Value i = clamped_indices(t, a[0], a[2], false);
    Value x = CALL(t, aten__unsafe_index_Tensor, a[0], i);
    Value not = CALL(t, aten_bitwise_not_default, a[1]);
    *out = CALL(t, aten_masked_fill_Scalar, x, not, a[3]);
    return true;
}

bool decomp_unsafe_masked_index_put(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    if (expr_guard_is(t, meta_numel(t->sym, a[0].tensor), 0)) {
        *out = CALL(t, aten_clone_default, a[0]);
        return true;
    }
    Value i = clamped_indices(t, a[0], a[2], true);
    Value not = CALL(t, aten_bitwise_not_default, a[1]);
    Value v = CALL(t, aten_masked_fill_Scalar, a[3], not, INT(0));
    *out = CALL(t, aten__unsafe_index_put_default, a[0], i, v, BOOL(true));
    return true;
}

bool decomp_put(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    Value flat = flatten(t, a[0]);
    Value src = reshape(t, a[2], sizes_of(t, a[1]));
    flat = CALL(t, aten_index_put_default, flat, list_of(t, a[1], END), src, a[3]);
    *out = reshape(t, flat, sizes_of(t, a[0]));
    return true;
}

// Indices count in each image: (…, places) become places of the whole batch.
bool decomp_max_unpool(Trace *t, const Op *op, const Value *a, Value *out) {
    int n = dim_of(a[0]), spatial = op->id == OP_aten_max_unpool2d_default ? 2 : 3;
    int batch = n - spatial;
    Value shape = val_list(t->arena, VAL_list, n), ones = val_list(t->arena, VAL_list, n);
    const Expr *images = sym_int(t->sym, 1), *area = images, *len;
    for (int i = 0; i < n; i++) {
        shape.at[i] = i < batch ? val_sym(size_of(t, a[0], i)) : item_of(a[2], i - batch);
        ones.at[i] = i < batch ? shape.at[i] : INT(1);
        if (!val_as_expr(t->sym, &shape.at[i], &len))
            return false;
        if (i < batch)
            images = sym_mul(t->sym, images, len);
        else
            area = sym_mul(t->sym, area, len);
    }
    if (expr_guard_is(t, sym_mul(t->sym, images, area), 0)) {
        *out = CALL(t, aten_new_zeros_default, a[0], shape);
        return true;
    }
    Value at = py_arange(t, val_sym(images), DT_none, a[0]), flat = list_of(t, INT(-1), END);
    at = CALL(t, aten_view_default, at, ones);
    at = py_mul(t, at, val_sym(area));
    at = py_add(t, a[1], at);
    at = reshape(t, at, flat);
    Value x = CALL(t, aten_new_zeros_default, a[0], shape);
    x = reshape(t, x, flat);
    Value v = reshape(t, a[0], flat);
    x = CALL(t, aten__unsafe_index_put_default, x, list_of(t, at, END), v, BOOL(false));
    *out = CALL(t, aten_view_default, x, shape);
    return true;
}
