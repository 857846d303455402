// decomp_index.c: decompositions of indexing, padding, pooling, resampling, and of random ops.
#include "core/aot/decomp.h"

#include <math.h>

#include "core/aot/composite.h"

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
    *out = CALL(t, aten_index_Tensor, a[0], index_at(t, dim, index));
    return true;
}

static bool put(Trace *t, const Value *a, Value index, Value v, bool add, Value *out) {
    int dim = wrap_dim(t, int_arg(&a[1], 0), dim_of(a[0]));
    bool scalar = dim_of(a[0]) == 0;
    Value x = scalar ? CALL(t, aten_unsqueeze_default, a[0], INT(0)) : a[0];
    Value r = CALL(t, aten_index_put_default, x, index_at(t, dim, index), v, BOOL(add));
    *out = scalar ? CALL(t, aten_squeeze_dim, r, INT(0)) : contiguous(t, r, MF_contiguous);
    return true;
}

// Low-precision additions to the same place stay one op, which adds in float.
bool decomp_index_add(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    if (!out)
        return trace_accepts(t, dtype_of(a[0]) != DT_bf16, "bfloat16 is added in float");
    Value v = value_is_one(&a[4]) ? a[3] : CALL(t, aten_mul_Tensor, a[3], a[4]);
    return put(t, a, a[2], v, true, out);
}

bool decomp_index_copy(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    Value index = dim_of(a[2]) == 0 ? CALL(t, aten_unsqueeze_default, a[2], INT(0)) : a[2];
    return put(t, a, index, a[3], false, out);
}

bool decomp_index_fill(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    Value v = scalar_tensor(t, a[3], dtype_of(a[0]), a[0].tensor->device);
    Value index = dim_of(a[2]) == 0 ? CALL(t, aten_unsqueeze_default, a[2], INT(0)) : a[2];
    return put(t, a, index, v, false, out);
}

bool decomp_take(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    Value x = reshape(t, a[0], list_of(t, INT(-1), END));
    *out = CALL(t, aten_index_Tensor, x, index_at(t, 0, a[1]));
    return true;
}

bool decomp_unsafe_index(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    *out = CALL(t, aten_index_Tensor, a[0], a[1]);
    return true;
}

bool decomp_isin(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    double tests = (double)expr_int_or(meta_numel(t->sym, a[1].tensor), -1);
    double elements = (double)expr_int_or(meta_numel(t->sym, a[0].tensor), -1);
    if (!out)
        return trace_accepts(t, tests >= 0 && elements > 0 && tests < 10 * pow(elements, 0.145),
                             "too many test elements: sorting is faster");
    int n = dim_of(a[0]), k = dim_of(a[1]);
    Value shape = val_list(t->arena, VAL_list, n + k), dims = val_list(t->arena, VAL_list, k);
    for (int i = 0; i < n + k; i++)
        shape.at[i] = i < n ? val_sym(size_of(t, a[0], i)) : INT(1);
    for (int i = 0; i < k; i++)
        dims.at[i] = INT(-1 - i);
    Value x = CALL(t, aten_view_default, a[0], shape);
    x = bool_arg(&a[3]) ? CALL(t, aten_ne_Tensor, x, a[1]) : CALL(t, aten_eq_Tensor, x, a[1]);
    *out = CALL(t, aten_any_dims, x, dims);
    return true;
}

// pooling

static Value spread(Trace *t, Value v, int n, Value dflt) {
    if (v.kind != VAL_list && v.kind != VAL_tuple)
        v = v.kind == VAL_none ? dflt : list_of(t, v, END);
    if (!v.n)
        v = dflt;
    if (v.n == n)
        return v;
    Value out = val_list(t->arena, VAL_list, n);
    for (int i = 0; i < n; i++)
        out.at[i] = item_of(v, 0);
    return out;
}

bool decomp_max_pool2d(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    Value kernel = spread(t, a[1], 2, NONE), k0 = item_of(kernel, 0), k1 = item_of(kernel, 1);
    if (!out)
        return trace_accepts(t, int_arg(&k0, 99) * int_arg(&k1, 99) <= 25,
                             "a window of more than 25 elements");
    Value stride = spread(t, a[2], 2, kernel),
          padding = spread(t, a[3], 2, list_of(t, INT(0), END));
    Value dilation = spread(t, a[4], 2, list_of(t, INT(1), END));
    Value r = CALL(t, prims__low_memory_max_pool_with_offsets_default, a[0], kernel, stride,
                   padding, dilation, a[5]);
    Value size = list_of(t, val_sym(size_of(t, a[0], -2)), val_sym(size_of(t, a[0], -1)), END);
    Value places = CALL(t, prims__low_memory_max_pool_offsets_to_indices_default, item_of(r, 1),
                        kernel, size, stride, padding, dilation);
    *out = tuple_of(t, item_of(r, 0), places, END);
    return true;
}

// padding

typedef Value PadIndex(Trace *t, Value x, const Expr *left, const Expr *middle, const Expr *right);

static Value places(Trace *t, Value x, const Expr *left, const Expr *middle, const Expr *right) {
    return CALL(t, aten_arange_start, val_sym(sym_neg(t->sym, left)),
                val_sym(sym_add(t->sym, middle, right)), NONE, NONE, device_of_tensor(x), BOOL(false));
}

static Value mirrored(Trace *t, Value x, const Expr *left, const Expr *middle, const Expr *right) {
    Value last = val_sym(sym_add_int(t->sym, middle, -1));
    Value i = places(t, x, left, middle, right);
    i = CALL(t, aten_abs_default, i);
    i = CALL(t, aten_rsub_Scalar, i, last);
    i = CALL(t, aten_abs_default, i);
    return CALL(t, aten_rsub_Scalar, i, last);
}

static Value clamped(Trace *t, Value x, const Expr *left, const Expr *middle, const Expr *right) {
    Value i = places(t, x, left, middle, right);
    return CALL(t, aten_clamp_default, i, INT(0), val_sym(sym_add_int(t->sym, middle, -1)));
}

static bool padded(Trace *t, const Value *a, PadIndex *index, Value *out) {
    int spatial = a[1].n / 2, first = dim_of(a[0]) - spatial;
    Promotion p = promote_default(t, a, 1);
    Value x = to_dtype(t, a[0], p.compute);
    for (int i = 0; i < spatial && !t->failed; i++) {
        const Expr *left, *right;
        int at = 2 * (spatial - 1 - i);
        if (!val_as_expr(t->sym, &a[1].at[at], &left) ||
            !val_as_expr(t->sym, &a[1].at[at + 1], &right))
            return false;
        Value where = index(t, x, left, size_of(t, a[0], first + i), right);
        x = CALL(t, aten__unsafe_index_Tensor, x, index_at(t, first + i, where));
    }
    x = contiguous(t, x, suggest_memory_format(t, x));
    *out = to_dtype(t, x, p.result);
    return true;
}

bool decomp_reflection_pad(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    return padded(t, a, mirrored, out);
}

bool decomp_replication_pad(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    return padded(t, a, clamped, out);
}

bool decomp_upsample_nearest(Trace *t, const Op *op, const Value *a, Value *out) {
    Value scales = op->n_args == 3 ? list_of(t, a[2], END) : list_of(t, a[2], a[3], END);
    *out = upsample_nearest(t, a[0], a[1], scales, false);
    return true;
}

bool decomp_upsample_linear(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    *out = upsample_linear(t, a[0], a[1], list_of(t, a[3], a[4], END), bool_arg(&a[2]));
    return true;
}

// Rows or columns of each window: start of the block plus place in the kernel.
static Value window_places(Trace *t, Value x, int64_t len, int64_t k, int64_t dilation,
                           int64_t padding, int64_t stride) {
    Value dev = device_of_tensor(x);
    int64_t blocks = len + padding * 2 - dilation * (k - 1);
    Value start = CALL(t, aten_arange_start_step, INT(0), INT(blocks), INT(stride), DTY(DT_i64),
                       NONE, dev, BOOL(false));
    start = CALL(t, aten_unsqueeze_default, start, INT(0));
    Value in = CALL(t, aten_arange_start_step, INT(0), INT(k * dilation), INT(dilation),
                    DTY(DT_i64), NONE, dev, BOOL(false));
    in = CALL(t, aten_unsqueeze_default, in, INT(-1));
    return CALL(t, aten_add_Tensor, start, in);
}

bool decomp_im2col(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    bool single = dim_of(a[0]) == 3;
    Value x = single ? CALL(t, aten_unsqueeze_default, a[0], INT(0)) : a[0], at[2];
    int64_t v[4][2];
    for (int i = 0; i < 2; i++)
        for (int k = 0; k < 4; k++) {
            Value e = item_of(spread(t, a[1 + k], 2, NONE), i);
            v[k][i] = int_arg(&e, k == 2 ? 0 : 1);
        }
    for (int i = 0; i < 2; i++) {
        int64_t len = expr_int_or(size_of(t, x, 2 + i), -1);
        if (len < 0)
            return false;
        at[i] = window_places(t, x, len, v[0][i], v[1][i], v[2][i], v[3][i]);
    }
    Value pad = list_of(t, INT(v[2][1]), INT(v[2][1]), INT(v[2][0]), INT(v[2][0]), END);
    Value p = CALL(t, aten_constant_pad_nd_default, x, pad, FLT(0));
    at[0] = unsqueeze_to(t, at[0], 4);
    Value index = val_list(t->arena, VAL_list, 4);
    index.at[2] = at[0];
    index.at[3] = at[1];
    Value r = CALL(t, aten_index_Tensor, p, index);
    r = CALL(t, aten_permute_default, r,
             list_of(t, INT(0), INT(1), INT(2), INT(4), INT(3), INT(5), END));
    Value rows = val_sym(sym_mul_int(t->sym, size_of(t, x, 1), v[0][0] * v[0][1]));
    Value cols = val_sym(sym_mul(t->sym, size_of(t, r, -2), size_of(t, r, -1)));
    r = reshape(t, r, list_of(t, val_sym(size_of(t, x, 0)), rows, cols, END));
    *out = single ? CALL(t, aten_squeeze_dim, r, INT(0)) : r;
    return true;
}

// random

bool decomp_rand_like(Trace *t, const Op *op, const Value *a, Value *out) {
    DType d = a[1].kind == VAL_dtype ? a[1].dtype : dtype_of(a[0]);
    Value dev = a[3].kind == VAL_device ? a[3] : device_of_tensor(a[0]), size = sizes_of(t, a[0]);
    Value x = op->id == OP_aten_rand_like_default
                  ? CALL(t, aten_rand_default, size, DTY(d), NONE, dev, BOOL(false))
                  : CALL(t, aten_randn_default, size, DTY(d), NONE, dev, BOOL(false));
    bool keep = a[5].kind != VAL_memory_format || a[5].mf == MF_preserve;
    Value mf = {.kind = VAL_memory_format, .mf = keep ? suggest_memory_format(t, a[0]) : a[5].mf};
    *out = CALL(t, aten_to_dtype_layout, x, NONE, NONE, NONE, NONE, BOOL(false), BOOL(false), mf);
    return true;
}

bool decomp_native_dropout(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    double p = float_arg(&a[1], 0);
    if (!bool_arg(&a[2]) || p == 0) {
        *out = tuple_of(t, a[0], CALL(t, aten_ones_like_default, a[0], DTY(DT_b8)), END);
        return true;
    }
    if (p == 1) {
        Value zero = CALL(t, aten_zeros_like_default, a[0]);
        Value mask = CALL(t, aten_zeros_like_default, a[0], DTY(DT_b8));
        *out = tuple_of(t, zero, mask, END);
        return true;
    }
    Value mask = CALL(t, aten_rand_like_default, a[0]);
    mask = CALL(t, aten_gt_Scalar, mask, FLT(p));
    Value r = CALL(t, aten_mul_Tensor, mask, a[0]);
    r = CALL(t, aten_mul_Tensor, r, FLT(1 / (1 - p)));
    *out = tuple_of(t, r, mask, END);
    return true;
}

bool decomp_bernoulli(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    Value r = CALL(t, aten_rand_like_default, a[0], DTY(DT_f32));
    r = CALL(t, aten_lt_Tensor, r, a[0]);
    *out = to_dtype(t, r, dtype_of(a[0]));
    return true;
}
