// decomp_special.c: decompositions of special functions and of integer arithmetic (torch/_refs and
// its `special`).
#include "core/aot/decomp.h"

#include <math.h>

bool decomp_entr(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    Wide w = decomp_widen_to_float(t, a, 1);
    Value x = w.a[0];
    Value nan = CALL(t, aten_isnan_default, x);
    Value pos = py_gt(t, x, INT(0));
    Value r = CALL(t, aten_neg_default, x);
    Value l = CALL(t, aten_log_default, x);
    r = py_mul(t, r, l);
    Value zero = py_eq(t, x, INT(0));
    Value other = py_where(t, zero, INT(0), FLT(-INFINITY));
    r = py_where(t, pos, r, other);
    return decomp_narrow(t, &w, py_where(t, nan, x, r), out);
}

bool decomp_log_ndtr(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    Wide w = decomp_widen_to_float(t, a, 1);
    Value x = py_mul(t, w.a[0], FLT(0.70710678118654752440));
    Value low = py_lt(t, w.a[0], FLT(1));
    Value l = CALL(t, aten_neg_default, x);
    l = CALL(t, aten_special_erfcx_default, l);
    l = py_div(t, l, INT(2));
    l = CALL(t, aten_log_default, l);
    Value sq = py_mul(t, x, x);
    l = py_sub(t, l, sq);
    Value h = CALL(t, aten_erfc_default, x);
    h = CALL(t, aten_neg_default, h);
    h = py_div(t, h, INT(2));
    h = CALL(t, aten_log1p_default, h);
    return decomp_narrow(t, &w, py_where(t, low, l, h), out);
}

bool decomp_mvlgamma(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    Wide w = decomp_widen_to_float(t, a, 1);
    int64_t p = int_arg(&a[1], 1);
    double c = 0.25 * (double)p * (double)(p - 1) * log(3.141592653589793);
    Value b = CALL(t, aten_arange_start_step, INT(1 - p), INT(1), INT(1), DTY(dtype_of(w.a[0])),
                   NONE, device_of_tensor(w.a[0]), BOOL(false));
    b = py_mul(t, b, FLT(0.5));
    Value x = py_unsqueeze(t, w.a[0], -1);
    x = py_add(t, x, b);
    x = CALL(t, aten_lgamma_default, x);
    x = py_sum(t, x, list_of(t, INT(-1), END), false);
    return decomp_narrow(t, &w, py_add(t, x, FLT(c)), out);
}

// int8 and int16 multiply in int32.
bool decomp_lcm(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    Promotion p = promote_default(t, a, 2);
    Value x = to_dtype(t, a[0], p.compute);
    Value y = to_dtype(t, a[1], p.compute);
    bool narrow = p.compute == DT_i8 || p.compute == DT_i16;
    if (narrow) {
        x = CALL(t, prims_convert_element_type_default, x, DTY(DT_i32));
        y = CALL(t, prims_convert_element_type_default, y, DTY(DT_i32));
    }
    Value g = CALL(t, aten_gcd_default, x, y);
    Value zero = py_eq(t, g, INT(0));
    g = py_where(t, zero, INT(1), g);
    Value r = CALL(t, prims_div_default, x, g);
    r = py_mul(t, r, y);
    r = CALL(t, aten_abs_default, r);
    *out = narrow ? CALL(t, prims_convert_element_type_default, r, DTY(p.result)) : r;
    return true;
}

// A real number's angle: pi below zero, 0 above, NaN for NaN.
bool decomp_angle(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    if (dtype_info[dtype_of(a[0])].cls == DTC_COMPLEX) {
        Value parts = CALL(t, aten_view_as_real_default, a[0]);
        Value re = CALL(t, aten_select_int, parts, INT(-1), INT(0));
        Value nan = CALL(t, aten_isnan_default, re);
        parts = CALL(t, aten_view_as_real_default, a[0]);
        Value im = CALL(t, aten_select_int, parts, INT(-1), INT(1));
        parts = CALL(t, aten_view_as_real_default, a[0]);
        re = CALL(t, aten_select_int, parts, INT(-1), INT(0));
        Value r = CALL(t, aten_atan2_default, im, re);
        *out = py_where(t, nan, FLT(NAN), r);
        return true;
    }
    Promotion p = promote_int_to_float(t, a, 1);
    Value pi = py_scalar_tensor(t, FLT(3.141592653589793), p.result, NONE, a[0].tensor->device);
    Value neg = py_lt(t, a[0], INT(0));
    Value r = py_where(t, neg, pi, FLT(0));
    Value nan = CALL(t, aten_isnan_default, a[0]);
    *out = py_where(t, nan, FLT(NAN), r);
    return true;
}

bool decomp_conj_physical(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)t, (void)op;
    if (!out)
        return dtype_info[dtype_of(a[0])].cls != DTC_COMPLEX;
    *out = a[0];
    return true;
}

bool decomp_vdot(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    if (!out)
        return dtype_info[dtype_of(a[0])].cls != DTC_COMPLEX;
    *out = CALL(t, aten_dot_default, a[0], a[1]);
    return true;
}

// sqrt(|x|^2 - 2 x y + |y|^2) as one product of padded rows
bool decomp_euclidean_dist(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    Value norm[2], ones[2], last = list_of(t, INT(-1), END);
    for (int i = 0; i < 2; i++) {
        norm[i] = CALL(t, aten_pow_Tensor_Scalar, a[i], INT(2));
        norm[i] = py_sum(t, norm[i], last, true);
        ones[i] = CALL(t, aten_ones_like_default, norm[i], NONE, NONE, NONE, NONE,
                       memory_format_of(MF_contiguous));
    }
    Value x = py_mul(t, a[0], INT(-2));
    x = CALL(t, aten_cat_default, list_of(t, x, norm[0], ones[0], END), INT(-1));
    Value y = CALL(t, aten_cat_default, list_of(t, a[1], ones[1], norm[1], END), INT(-1));
    y = CALL(t, aten_transpose_int, y, INT(-2), INT(-1));
    x = CALL(t, aten_matmul_default, x, y);
    x = CALL(t, aten_clamp_min_default, x, INT(0));
    *out = CALL(t, aten_sqrt_default, x);
    return true;
}

bool decomp_weight_norm(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    int n = dim_of(a[0]), dim = (int)int_arg(&a[2], 0);
    Value dims = dims_range(t, 0, n);
    dims.n = 0;
    for (int i = 0; i < n; i++)
        if (i != dim)
            dims.at[dims.n++] = INT(i);
    Value norm = CALL(t, aten_linalg_vector_norm_default, a[0], INT(2), dims, BOOL(true),
                      dtype_of(a[1]) == DT_bf16 ? DTY(DT_f32) : NONE);
    Value k = to_dtype(t, norm, dtype_of(a[1]));
    k = py_div(t, a[1], k);
    *out = tuple_of(t, py_mul(t, a[0], k), norm, END);
    return true;
}

// Complex numbers are added as pairs of real ones: for tensors whose last stride is 1.
static Value pairs(Trace *t, Value x, DType real) {
    x = CALL(t, aten_view_dtype, x, DTY(real));
    Value shape = sizes_of(t, x), split = val_list(t->arena, VAL_list, shape.n + 1);
    for (int i = 0; i + 1 < shape.n; i++)
        split.at[i] = shape.at[i];
    split.at[shape.n - 1] = val_sym(sym_floordiv(t->sym, size_of(t, x, -1), sym_int(t->sym, 2)));
    split.at[shape.n] = INT(2);
    return CALL(t, aten_view_default, x, split);
}

static bool is_complex(Value v) {
    return v.kind == VAL_tensor && dtype_info[v.tensor->dtype].cls == DTC_COMPLEX;
}

static bool dense_last(Value v) {
    int n = dim_of(v);
    return !n || expr_is(v.tensor->stride[n - 1], 1);
}

bool decomp_add_complex(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    if (!out)
        return is_complex(a[0]) && is_complex(a[1]) && dense_last(a[0]) && dense_last(a[1]);
    DType d = dtype_promote(dtype_of(a[0]), dtype_of(a[1]));
    DType real = d == DT_c128 ? DT_f64 : d == DT_c32 ? DT_f16 : DT_f32;
    bool scalar = !dim_of(a[0]) && !dim_of(a[1]);
    Value one = list_of(t, INT(1), END), v[2];
    for (int i = 0; i < 2; i++)
        v[i] = dim_of(a[i]) ? a[i] : reshape(t, a[i], one);
    if (!value_is_one(&a[2]))
        v[1] = py_mul(t, a[2], v[1]);
    for (int i = 0; i < 2; i++)
        v[i] = py_add(t, v[i], INT(0));
    for (int i = 0; i < 2; i++)
        v[i] = pairs(t, v[i], real);
    Value r = py_add(t, v[0], v[1]);
    r = CALL(t, aten_flatten_using_ints, r, INT(-2), INT(-1));
    r = CALL(t, aten_view_dtype, r, DTY(d));
    *out = scalar ? CALL(t, aten_select_int, r, INT(0), INT(0)) : r;
    return true;
}
