// decomp_index.c: decompositions of indexing, searching and pooling.
#include "core/aot/decomp.h"

#include <math.h>
#include <string.h>

bool decomp_index_select(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    int dim = wrap_dim(t, int_arg(&a[1], 0), dim_of(a[0]));
    Value index = dim_of(a[2]) == 0 ? CALL(t, aten_unsqueeze_default, a[2], INT(0)) : a[2];
    if (dim_of(a[0]) == 0) {
        Value x = CALL(t, aten_expand_default, a[0], sizes_of(t, index));
        Value e = CALL(t, aten_empty_like_default, a[0]);
        *out = CALL(t, aten_index_copy_default, e, INT(0), index, x);
        return true;
    }
    Value x = CALL(t, aten_index_Tensor, a[0], index_at(t, dim + 1, dim, index));
    *out = contiguous(t, x, MF_contiguous);
    return true;
}

static bool put(Trace *t, const Value *a, Value index, Value v, bool add, Value *out) {
    int dim = wrap_dim(t, int_arg(&a[1], 0), dim_of(a[0]));
    bool scalar = dim_of(a[0]) == 0;
    Value x = scalar ? CALL(t, aten_unsqueeze_default, a[0], INT(0)) : a[0];
    Value r = CALL(t, aten_index_put_default, x, index_at(t, dim + 1, dim, index), v, BOOL(add));
    *out = scalar ? CALL(t, aten_squeeze_dim, r, INT(0)) : contiguous(t, r, MF_contiguous);
    return true;
}

// Low-precision additions to the same place stay one op in Inductor, which adds in float.
bool decomp_index_add(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    if (!out)
        return dtype_of(a[0]) != DT_bf16 || t->req->decomps != DECOMP_inductor;
    Value v = value_is_one(&a[4]) ? a[3] : CALL(t, aten_mul_Tensor, a[3], a[4]);
    return put(t, a, a[2], v, true, out);
}

bool decomp_index_copy(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    Value index = dim_of(a[2]) == 0 ? CALL(t, aten_unsqueeze_default, a[2], INT(0)) : a[2];
    return put(t, a, index, a[3], false, out);
}

static bool same_strides(Trace *t, const TensorMeta *x, const TensorMeta *y) {
    bool same = x->ndim == y->ndim;
    for (int i = 0; same && i < x->ndim; i++)
        same = sym_known_eq(t->sym, x->stride[i], y->stride[i]);
    return same;
}

bool decomp_index_fill(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    bool scalar = dim_of(a[0]) == 0;
    Value v = a[3].kind == VAL_tensor
                  ? a[3]
                  : py_scalar_tensor(t, a[3], dtype_of(a[0]), strided(), a[0].tensor->device);
    Value x = scalar ? py_unsqueeze(t, a[0], 0) : a[0], shape = sizes_of(t, x);
    shape.at[wrap_dim(t, int_arg(&a[1], 0), shape.n)] = numel_of(t, a[2]);
    v = CALL(t, aten_expand_default, v, shape);
    x = CALL(t, aten_index_copy_default, x, a[1], a[2], v);
    if (scalar) {
        x = CALL(t, aten_squeeze_dim, x, INT(0));
        x = CALL(t, aten_clone_default, x);
    }
    if (!t->failed && !same_strides(t, x.tensor, a[0].tensor)) {
        Value fresh = CALL(t, aten_empty_like_default, a[0]);
        x = CALL(t, aten_copy_default, fresh, x);
    }
    *out = x;
    return true;
}

bool decomp_take(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    Value x = reshape(t, a[0], list_of(t, INT(-1), END));
    *out = CALL(t, aten_index_Tensor, x, index_at(t, 1, 0, a[1]));
    return true;
}

bool decomp_unsafe_index(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    *out = CALL(t, aten_index_Tensor, a[0], a[1]);
    return true;
}

static bool isin_compared(Trace *t, const Value *a, Value *out) {
    int n = dim_of(a[0]), k = dim_of(a[1]);
    Value shape = val_list(t->arena, VAL_list, n + k), dims = val_list(t->arena, VAL_list, k);
    for (int i = 0; i < n + k; i++)
        shape.at[i] = i < n ? val_sym(size_of(t, a[0], i)) : INT(1);
    for (int i = 0; i < k; i++)
        dims.at[i] = INT(-1 - i);
    Value x = a[0];
    if (k)
        x = CALL(t, aten_view_default, x, shape);
    x = py_eq(t, x, a[1]);
    if (k)
        x = CALL(t, aten_any_dims, x, dims);
    *out = bool_arg(&a[3]) ? CALL(t, aten_bitwise_not_default, x) : x;
    return true;
}

// The elements stand in one sorted row with what is looked for; equal neighbours are hits.
static bool isin_unique(Trace *t, const Value *a, Value x, Value y, Value *out) {
    Value all = CALL(t, aten_cat_default, list_of(t, x, y, END));
    Value sorted = CALL(t, aten_sort_stable, all, BOOL(true)), row = item_of(sorted, 0);
    Value next = CALL(t, aten_slice_Tensor, row, INT(0), INT(1), INT(INT64_MAX));
    Value here = CALL(t, aten_slice_Tensor, row, INT(0), INT(0), INT(-1));
    Value hit = py_eq(t, next, here);
    hit = CALL(t, aten_constant_pad_nd_default, hit, list_of(t, INT(0), INT(1), END), BOOL(false));
    if (bool_arg(&a[3]))
        hit = CALL(t, aten_logical_not_default, hit);
    Value mask = CALL(t, aten_empty_like_default, hit);
    mask = CALL(t, aten_index_copy_default, mask, INT(0), item_of(sorted, 1), hit);
    mask = CALL(t, aten_slice_Tensor, mask, INT(0), INT(0), numel_of(t, a[0]));
    *out = reshape(t, mask, sizes_of(t, a[0]));
    return true;
}

static bool isin_sorted(Trace *t, const Value *a, Value *out) {
    Value x = flatten(t, a[0]);
    Value y = flatten(t, a[1]);
    if (bool_arg(&a[2]))
        return isin_unique(t, a, x, y, out);
    Value row = item_of(CALL(t, aten_sort_default, y), 0);
    Value at = CALL(t, aten_searchsorted_Tensor, row, x);
    Value in = py_lt(t, at, numel_of(t, row));
    at = py_where(t, in, at, INT(0));
    Value hit = CALL(t, aten_index_Tensor, row, list_of(t, at, END));
    hit = py_eq(t, hit, x);
    if (bool_arg(&a[3]))
        hit = CALL(t, aten_logical_not_default, hit);
    *out = reshape(t, hit, sizes_of(t, a[0]));
    return true;
}

// Few test elements are compared one by one, many are sorted.
bool decomp_isin(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    Value v[4] = {a[0], a[1], a[2], a[3]};
    if (v[1].kind != VAL_tensor) {
        *out = bool_arg(&a[3]) ? CALL(t, aten_ne_Scalar, v[0], v[1])
                               : CALL(t, aten_eq_Scalar, v[0], v[1]);
        return true;
    }
    if (v[0].kind != VAL_tensor)
        v[0] = CALL(t, aten_scalar_tensor_default, v[0], NONE, NONE, device_of_tensor(v[1]));
    if (t->failed)
        return true;
    double tests = (double)expr_int_or(meta_numel(t->sym, v[1].tensor), 1);
    double elements = (double)expr_int_or(meta_numel(t->sym, v[0].tensor), 1);
    if (!(tests < 10 * pow(elements, 0.145)))
        return isin_sorted(t, v, out);
    if (elements > 0)
        return isin_compared(t, v, out);
    *out = CALL(t, aten_empty_like_default, v[0], DTY(DT_b8));
    return true;
}

// One number among a sorted row: a tensor of one, then its only place.
static Value one_number(Trace *t, Value v, Value like) {
    DType d = v.kind == VAL_float || v.kind == VAL_symfloat ? DT_f32 : DT_i64;
    return full_of(t, list_of(t, INT(1), END), v, d, like.tensor->device);
}

bool decomp_searchsorted_scalar(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    Value x = one_number(t, a[1], a[0]);
    x = CALL(t, aten_searchsorted_Tensor, a[0], x, a[2], a[3], a[4], a[5]);
    *out = CALL(t, aten_select_int, x, INT(0), INT(0));
    return true;
}

bool decomp_bucketize_scalar(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    Value x = one_number(t, a[0], a[1]);
    x = CALL(t, aten_bucketize_Tensor, x, a[1], a[2], a[3]);
    *out = CALL(t, aten_squeeze_dim, x, INT(0));
    return true;
}

// Place i belongs to the first run that ends beyond it. The length must be a number.
bool decomp_repeat_interleave(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    if (!out)
        return a[1].kind == VAL_int;
    Value ends = CALL(t, aten_cumsum_default, a[0], INT(0));
    Value places = py_arange(t, a[1], DT_none, a[0]);
    Value i =
        CALL(t, aten_searchsorted_Tensor, ends, places, BOOL(dtype_of(a[0]) == DT_i32), BOOL(true));
    *out =
        CALL(t, aten_clamp_default, i, NONE, val_sym(sym_add_int(t->sym, size_of(t, a[0], 0), -1)));
    return true;
}

// The mean over what falls on a place; other reductions stay one op.
bool decomp_index_reduce(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    DType d = dtype_of(a[0]);
    bool mean = a[4].kind == VAL_str && strcmp(a[4].s, "mean") == 0;
    if (!out)
        return mean && d != DT_i64 && d != DT_b8 && d != DT_bf16;
    Value ones = CALL(t, aten_ones_like_default, a[3]), x = a[0], counts;
    if (bool_arg(&a[5])) {
        counts = CALL(t, aten_ones_like_default, a[0]);
        counts = CALL(t, aten_index_add_default, counts, a[1], a[2], ones);
    } else {
        x = CALL(t, aten_index_fill_int_Scalar, a[0], a[1], a[2], INT(0));
        counts = CALL(t, aten_zeros_like_default, a[0]);
        counts = CALL(t, aten_index_add_default, counts, a[1], a[2], ones);
        Value none = py_lt(t, counts, INT(1));
        counts = CALL(t, aten_masked_fill_Scalar, counts, none, INT(1));
    }
    x = CALL(t, aten_index_add_default, x, a[1], a[2], a[3]);
    *out = dtype_is_float(d) ? py_div(t, x, counts) : CALL(t, aten_floor_divide_default, x, counts);
    return true;
}

// GPUs number the places of the mask; the CPU keeps the op.
bool decomp_masked_scatter(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    if (!out)
        return !on_cpu(a[0]);
    Value both = CALL(t, aten_broadcast_tensors_default, list_of(t, a[0], a[1], END));
    Value mask = item_of(both, 1), x = item_of(both, 0);
    Value i = reshape(t, mask, list_of(t, INT(-1), END));
    i = CALL(t, aten_cumsum_default, i, INT(0));
    i = py_sub(t, i, INT(1));
    Value flat = flatten(t, x);
    Value hit = flatten(t, mask);
    Value src = flatten(t, a[2]);
    Value r = CALL(t, aten__unsafe_masked_index_default, src, hit, list_of(t, i, END), INT(0));
    r = py_where(t, hit, r, flat);
    *out = CALL(t, aten_view_default, r, sizes_of(t, x));
    return true;
}

// pooling

// Pooling that remembers offsets within the window, of windows of at most 25 places.
static bool max_pool(Trace *t, const Value *a, int n, Value *out) {
    Value kernel = spread(t, a[1], n, NONE), size = val_list(t->arena, VAL_list, n);
    int64_t window = 1;
    for (int i = 0; i < n; i++) {
        Value k = item_of(kernel, i);
        window *= int_arg(&k, 99);
        size.at[i] = val_sym(size_of(t, a[0], i - n));
    }
    if (!out)
        return window <= 25;
    Value stride = spread(t, a[2], n, kernel),
          padding = spread(t, a[3], n, list_of(t, INT(0), END));
    Value dilation = spread(t, a[4], n, list_of(t, INT(1), END));
    Value r = CALL(t, prims__low_memory_max_pool_with_offsets_default, a[0], kernel, stride,
                   padding, dilation, a[5]);
    Value places = CALL(t, prims__low_memory_max_pool_offsets_to_indices_default, item_of(r, 1),
                        kernel, size, stride, padding, dilation);
    *out = tuple_of(t, item_of(r, 0), places, END);
    return true;
}

bool decomp_max_pool2d(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    return max_pool(t, a, 2, out);
}

bool decomp_max_pool3d(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    return max_pool(t, a, 3, out);
}

// Windows of one size are a plain pooling.
bool decomp_adaptive_max_pool2d(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    Value size = spread(t, a[1], 2, NONE), kernel = val_list(t->arena, VAL_list, 2);
    bool even = true, empty = false;
    for (int i = 0; i < 2; i++) {
        Value o = item_of(size, i);
        int64_t in = expr_int_or(size_of(t, a[0], i - 2), -1), to = int_arg(&o, -1);
        empty = empty || to == 0;
        even = even && in >= 0 && to > 0 && in % to == 0;
        kernel.at[i] = INT(even ? in / to : 1);
    }
    if (!out)
        return empty || even;
    if (!empty) {
        *out = CALL(t, aten_max_pool2d_with_indices_default, a[0], kernel);
        return true;
    }
    Value shape = sizes_of(t, a[0]);
    shape.at[shape.n - 2] = item_of(size, 0);
    shape.at[shape.n - 1] = item_of(size, 1);
    Value x = CALL(t, aten_new_empty_default, a[0], shape);
    Value i = CALL(t, aten_new_empty_default, a[0], shape, DTY(DT_i64));
    *out = tuple_of(t, x, i, END);
    return true;
}
