// decomp_pointwise.c: the table of decompositions.def, and decompositions of pointwise ops. Names
// and order of the calls are those of torch/_refs and torch/_decomp, since nodes are named and
// numbered by them.
#include "core/aot/decomp.h"
#include "core/record/fault.h"

#include <math.h>
#include <string.h>

#define TABLE(table) IN_##table
const DecompRule decomp_rules[OP_count] = {
#define DECOMP(op, table, rule, doc) [OP_##op] = {decomp_##rule, TABLE(table), doc},
#include "core/aot/decompositions.def"
#undef DECOMP
};

// Numbers take the type of the tensor they meet, as dtype_to_type(dtype)(number) does.
static Value number_like(Value v, DType d) {
    double f;
    if (v.kind == VAL_tensor || !val_as_float(&v, &f))
        return v;
    switch (dtype_info[d].cls) {
    case DTC_FLOAT:
        return FLT(f);
    case DTC_INT:
        return v.kind == VAL_int ? v : INT((int64_t)f);
    case DTC_BOOL:
        return BOOL(f != 0);
    case DTC_none:
    case DTC_COMPLEX:
        break;
    }
    return v;
}

bool decomp_itself(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)t, (void)op;
    *out = a[0];
    return true;
}

bool decomp_addcdiv(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    Wide w = decomp_widen_to_float(t, a, 3);
    Value r = CALL(t, aten_mul_Tensor, w.a[1], a[3]);
    r = CALL(t, aten_div_Tensor, r, w.a[2]);
    r = CALL(t, aten_add_Tensor, w.a[0], r);
    return decomp_narrow(t, &w, r, out);
}

// A kernel takes 0.5 beside integers for 0; what it is taken apart into would not.
bool decomp_addcmul(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    if (a[3].kind == VAL_float && dtype_is_int(dtype_of(a[0]))) {
        trace_fail(t, "ValueError: value argument of type <class 'float'> cannot be safely cast to "
                      "type <class 'int'>!");
        return false;
    }
    Wide w = decomp_widen(t, a, 3);
    Value r = CALL(t, aten_mul_Tensor, w.a[1], a[3]);
    r = CALL(t, aten_mul_Tensor, r, w.a[2]);
    r = CALL(t, aten_add_Tensor, w.a[0], r);
    return decomp_narrow(t, &w, r, out);
}

// Numbers take part in the promotion: an integer tensor clamped by a float computes in float.
bool decomp_clamp(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    DType d = ops_result_type(a, 3);
    Wide w = {.compute = dtype_compute(d), .result = d};
    for (int i = 0; i < 3; i++)
        w.a[i] = cast_list(t, a[i], w.compute);
    Value x = w.a[0];
    if (a[1].kind == VAL_tensor)
        x = CALL(t, aten_clamp_min_Tensor, x, w.a[1]);
    else if (a[1].kind != VAL_none)
        x = CALL(t, aten_clamp_min_default, x, a[1]);
    if (a[2].kind == VAL_tensor)
        x = CALL(t, aten_clamp_max_Tensor, x, w.a[2]);
    else if (a[2].kind != VAL_none)
        x = CALL(t, aten_clamp_max_default, x, a[2]);
    return decomp_narrow(t, &w, x, out);
}

// clamp_min, clamp_max of core ATen
bool decomp_clamp_one(Trace *t, const Op *op, const Value *a, Value *out) {
    bool tensor = a[1].kind == VAL_tensor, min = strcmp(op->name, "clamp_min") == 0;
    Value low = min ? a[1] : NONE, high = min ? NONE : a[1];
    *out = tensor ? CALL(t, aten_clamp_Tensor, a[0], low, high)
                  : CALL(t, aten_clamp_default, a[0], low, high);
    return true;
}

bool decomp_celu(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    Wide w = decomp_widen(t, a, 1);
    Value x = w.a[0];
    Value e;
    if (value_is_one(&a[1])) {
        e = CALL(t, aten_expm1_default, x);
    } else {
        e = CALL(t, aten_div_Tensor, x, a[1]);
        e = CALL(t, aten_expm1_default, e);
        e = CALL(t, aten_mul_Tensor, e, a[1]);
    }
    Value pos = CALL(t, aten_gt_Scalar, x, INT(0));
    return decomp_narrow(t, &w, CALL(t, aten_where_self, pos, x, e), out);
}

bool decomp_elu(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    Wide w = decomp_widen(t, a, 1);
    Value x = w.a[0];
    double alpha = float_arg(&a[1], 1), scale = float_arg(&a[2], 1), in = float_arg(&a[3], 1);
    Value pos = CALL(t, aten_gt_Scalar, x, INT(0));
    Value keep = CALL(t, aten_mul_Tensor, x, FLT(scale));
    Value e = CALL(t, aten_mul_Tensor, x, FLT(in));
    e = CALL(t, aten_expm1_default, e);
    e = CALL(t, aten_mul_Tensor, e, FLT(alpha * scale));
    return decomp_narrow(t, &w, CALL(t, aten_where_self, pos, keep, e), out);
}

bool decomp_gelu(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    Wide w = decomp_widen(t, a, 1);
    Value x = w.a[0], half, f;
    bool tanh_form = a[1].kind == VAL_str && a[1].s[0] == 't';
    if (tanh_form) {
        Value x2 = CALL(t, aten_mul_Tensor, x, x);
        Value x3 = CALL(t, aten_mul_Tensor, x2, x);
        Value in = CALL(t, aten_mul_Tensor, x3, FLT(0.044715));
        in = CALL(t, aten_add_Tensor, x, in);
        in = CALL(t, aten_mul_Tensor, in,
                  FLT(1.41421356237309504880 * 1.12837916709551257390 * 0.5));
        half = CALL(t, aten_mul_Tensor, x, FLT(0.5));
        f = CALL(t, aten_tanh_default, in);
    } else {
        half = CALL(t, aten_mul_Tensor, x, FLT(0.5));
        bool wrong = fault(t->req->decisions, FAULT_gelu_constant, trace_op_key(op));
        Value in = CALL(t, aten_mul_Tensor, x, FLT(wrong ? 0.7 : 0.70710678118654752440));
        f = CALL(t, aten_erf_default, in);
    }
    f = CALL(t, aten_add_Tensor, f, INT(1));
    return decomp_narrow(t, &w, CALL(t, aten_mul_Tensor, half, f), out);
}

bool decomp_hardshrink(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    Value in = CALL(t, aten_abs_default, a[0]);
    in = py_le(t, in, a[1]);
    *out = py_where(t, in, INT(0), a[0]);
    return true;
}

// clamp(clamp(x + 3, min=0), max=6)
static Value relu6_shifted(Trace *t, Value x) {
    Value r = CALL(t, aten_add_Tensor, x, INT(3));
    r = CALL(t, aten_clamp_default, r, INT(0));
    return CALL(t, aten_clamp_default, r, NONE, INT(6));
}

bool decomp_hardsigmoid(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    Wide w = decomp_widen(t, a, 1);
    Value r = relu6_shifted(t, w.a[0]);
    return decomp_narrow(t, &w, CALL(t, aten_div_Tensor, r, INT(6)), out);
}

bool decomp_hardswish(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    Wide w = decomp_widen(t, a, 1);
    Value r = relu6_shifted(t, w.a[0]);
    r = CALL(t, aten_mul_Tensor, w.a[0], r);
    return decomp_narrow(t, &w, CALL(t, aten_div_Tensor, r, INT(6)), out);
}

// Bounds of integers are integers; others stay as they were given.
bool decomp_hardtanh(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    DType d = dtype_of(a[0]);
    Wide w = decomp_widen(t, a, 1);
    Value low = dtype_is_int(d) ? number_like(a[1], d) : a[1];
    Value high = dtype_is_int(d) ? number_like(a[2], d) : a[2];
    return decomp_narrow(t, &w, CALL(t, aten_clamp_default, w.a[0], low, high), out);
}

bool decomp_leaky_relu(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    Wide w = decomp_widen(t, a, 1);
    Value pos = CALL(t, aten_gt_Scalar, w.a[0], INT(0));
    Value neg = CALL(t, aten_mul_Tensor, w.a[0], a[1]);
    return decomp_narrow(t, &w, CALL(t, aten_where_self, pos, w.a[0], neg), out);
}

bool decomp_log_sigmoid(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    Wide w = decomp_widen(t, a, 1);
    Value x = w.a[0];
    Value zero = CALL(t, aten_new_zeros_default, x, val_list(t->arena, VAL_list, 0));
    Value min = CALL(t, aten_minimum_default, zero, x);
    Value z = CALL(t, aten_abs_default, x);
    z = CALL(t, aten_neg_default, z);
    z = CALL(t, aten_exp_default, z);
    Value buffer = on_cpu(x) ? z : CALL(t, aten_new_zeros_default, x, list_of(t, INT(0), END));
    Value l = CALL(t, aten_log1p_default, z);
    Value r = CALL(t, aten_sub_Tensor, min, l);
    r = to_dtype(t, r, w.result);
    buffer = to_dtype(t, buffer, w.result);
    *out = tuple_of(t, r, buffer, END);
    return true;
}

// A decomposition never sees trailing arguments that have their default values: softplus without
// any of its own does not scale.
static Value softplus(Trace *t, Value x, const Value *beta, const Value *threshold) {
    bool plain = value_is_one(beta) && float_arg(threshold, 20) == 20;
    if (plain) {
        Value r = CALL(t, aten_exp_default, x);
        r = CALL(t, aten_log1p_default, r);
        Value big = CALL(t, aten_gt_Scalar, x, *threshold);
        return CALL(t, aten_where_self, big, x, r);
    }
    Value s = CALL(t, aten_mul_Tensor, x, *beta);
    Value r = CALL(t, aten_exp_default, s);
    r = CALL(t, aten_log1p_default, r);
    r = CALL(t, aten_div_Tensor, r, *beta);
    Value big = CALL(t, aten_gt_Scalar, s, *threshold);
    return CALL(t, aten_where_self, big, x, r);
}

bool decomp_softplus(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    Wide w = decomp_widen(t, a, 1);
    return decomp_narrow(t, &w, softplus(t, w.a[0], &a[1], &a[2]), out);
}

bool decomp_mish(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    Wide w = decomp_widen(t, a, 1);
    Value s = CALL(t, aten_softplus_default, w.a[0]);
    s = CALL(t, aten_tanh_default, s);
    return decomp_narrow(t, &w, CALL(t, aten_mul_Tensor, w.a[0], s), out);
}

bool decomp_prelu(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    Value pos = CALL(t, aten_gt_Scalar, a[0], INT(0));
    Value neg = CALL(t, aten_mul_Tensor, a[1], a[0]);
    *out = CALL(t, aten_where_self, pos, a[0], neg);
    return true;
}

bool decomp_silu(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    Wide w = decomp_widen(t, a, 1);
    if (t->req->decomps == DECOMP_core_aten) {
        Value s = CALL(t, aten_sigmoid_default, w.a[0]);
        return decomp_narrow(t, &w, CALL(t, aten_mul_Tensor, w.a[0], s), out);
    }
    Value d = CALL(t, aten_neg_default, w.a[0]);
    d = CALL(t, aten_exp_default, d);
    d = CALL(t, aten_add_Tensor, d, INT(1));
    return decomp_narrow(t, &w, CALL(t, aten_div_Tensor, w.a[0], d), out);
}

bool decomp_softshrink(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    Value big = CALL(t, aten_abs_default, a[0]);
    big = py_gt(t, big, a[1]);
    Value s = CALL(t, aten_sign_default, a[0]);
    s = py_mul(t, s, a[1]);
    s = py_sub(t, a[0], s);
    Value zero = py_mul(t, a[0], INT(0));
    *out = py_where(t, big, s, zero);
    return true;
}

bool decomp_threshold(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    Wide w = decomp_widen(t, a, 1);
    Value low = CALL(t, aten_le_Scalar, w.a[0], a[1]);
    return decomp_narrow(t, &w, CALL(t, aten_where_ScalarSelf, low, a[2], w.a[0]), out);
}

bool decomp_rsub(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    *out = CALL(t, aten_sub_Tensor, a[1], a[0], a[2]);
    return true;
}

bool decomp_deg2rad(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    *out = CALL(t, aten_mul_Tensor, a[0], FLT(3.141592653589793 / 180));
    return true;
}

bool decomp_rad2deg(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    *out = CALL(t, aten_mul_Tensor, a[0], FLT(180 / 3.141592653589793));
    return true;
}

bool decomp_floor_divide(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    *out = CALL(t, aten_div_Tensor_mode, a[0], a[1], val_str("floor"));
    return true;
}

bool decomp_frac(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    Wide w = decomp_widen(t, a, 1);
    Value f = CALL(t, aten_abs_default, w.a[0]);
    f = CALL(t, aten_floor_default, f);
    Value s = CALL(t, aten_sign_default, w.a[0]);
    f = CALL(t, aten_mul_Tensor, f, s);
    return decomp_narrow(t, &w, CALL(t, aten_sub_Tensor, w.a[0], f), out);
}

bool decomp_heaviside(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    Value zero = CALL(t, aten_eq_Scalar, a[0], INT(0));
    Value neg = CALL(t, aten_lt_Scalar, a[0], INT(0));
    Value nan = CALL(t, aten_isnan_default, a[0]);
    neg = CALL(t, aten_logical_or_default, neg, nan);
    Value step = CALL(t, aten_where_Scalar, neg, INT(0), INT(1));
    Value r = CALL(t, aten_where_self, zero, a[1], step);
    *out = to_dtype(t, r, dtype_of(a[0]));
    return true;
}

bool decomp_isneginf(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    *out = dtype_is_float(dtype_of(a[0])) ? CALL(t, aten_eq_Scalar, a[0], FLT(-INFINITY))
                                          : CALL(t, aten_zeros_like_default, a[0], DTY(DT_b8));
    return true;
}

bool decomp_isposinf(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    *out = dtype_is_float(dtype_of(a[0])) ? CALL(t, aten_eq_Scalar, a[0], FLT(INFINITY))
                                          : CALL(t, aten_zeros_like_default, a[0], DTY(DT_b8));
    return true;
}

bool decomp_lerp(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    Wide w = decomp_widen(t, a, 3);
    Value weight = w.a[2];
    if (weight.kind != VAL_tensor)
        weight = CALL(t, aten_new_full_default, w.a[0], no_sizes(t), weight);
    Value high = CALL(t, aten_abs_default, weight);
    high = py_ge(t, high, FLT(0.5));
    Value less = py_sub(t, weight, INT(1));
    Value coeff = py_where(t, high, less, weight);
    Value base = py_where(t, high, w.a[1], w.a[0]);
    Value d = py_sub(t, w.a[1], w.a[0]);
    d = py_mul(t, coeff, d);
    return decomp_narrow(t, &w, py_add(t, d, base), out);
}

bool decomp_logaddexp(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    Wide w = decomp_widen(t, a, 2);
    Value ge = py_ge(t, w.a[0], w.a[1]);
    Value max = py_where(t, ge, w.a[0], w.a[1]);
    Value min = py_where(t, ge, w.a[1], w.a[0]);
    Value inf = CALL(t, aten_isfinite_default, w.a[0]);
    inf = CALL(t, aten_logical_not_default, inf);
    Value eq = py_eq(t, w.a[0], w.a[1]);
    inf = CALL(t, aten_logical_and_default, inf, eq);
    Value d = py_sub(t, min, max);
    d = CALL(t, aten_exp_default, d);
    d = CALL(t, aten_log1p_default, d);
    d = py_add(t, max, d);
    return decomp_narrow(t, &w, py_where(t, inf, w.a[0], d), out);
}

bool decomp_logaddexp2(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    Wide w = decomp_widen(t, a, 2);
    Value ge = py_ge(t, w.a[0], w.a[1]);
    Value max = py_where(t, ge, w.a[0], w.a[1]);
    Value min = py_where(t, ge, w.a[1], w.a[0]);
    Value inf = CALL(t, aten_isinf_default, w.a[0]);
    Value eq = py_eq(t, w.a[0], w.a[1]);
    inf = CALL(t, aten_logical_and_default, inf, eq);
    Value d = py_sub(t, min, max);
    d = CALL(t, aten_exp2_default, d);
    d = CALL(t, aten_log1p_default, d);
    d = py_mul(t, d, FLT(1 / log(2)));
    d = py_add(t, max, d);
    return decomp_narrow(t, &w, py_where(t, inf, w.a[0], d), out);
}

bool decomp_logit(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    Wide w = decomp_widen_to_float(t, a, 1);
    double eps = a[1].kind == VAL_none ? -1 : float_arg(&a[1], -1);
    Value low = py_lt(t, w.a[0], FLT(eps));
    Value high = py_gt(t, w.a[0], FLT(1 - eps));
    Value x = py_where(t, high, FLT(1 - eps), w.a[0]);
    x = py_where(t, low, FLT(eps), x);
    Value d = CALL(t, aten_sub_Tensor, INT(1), x);
    d = py_div(t, x, d);
    return decomp_narrow(t, &w, CALL(t, aten_log_default, d), out);
}

bool decomp_masked_fill(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    DType d = dtype_of(a[0]);
    Value r;
    if (a[2].kind == VAL_tensor)
        r = CALL(t, aten_where_self, a[1], to_dtype(t, a[2], d), a[0]);
    else
        r = CALL(t, aten_where_ScalarSelf, a[1], number_like(a[2], d), a[0]);
    *out = contiguous(t, r, MF_contiguous);
    return true;
}

static double largest(DType d) {
    return d == DT_f64    ? 1.7976931348623157e308
           : d == DT_bf16 ? 3.3895313892515355e38
           : d == DT_f16  ? 65504.0
                          : 3.4028234663852886e38;
}

bool decomp_nan_to_num(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    DType d = dtype_of(a[0]);
    if (!dtype_is_float(d)) {
        *out = CALL(t, aten_clone_default, a[0]);
        return true;
    }
    Value nan = a[1].kind == VAL_none ? FLT(0) : FLT(float_arg(&a[1], 0));
    Value pos = FLT(a[2].kind == VAL_none ? largest(d) : float_arg(&a[2], 0));
    Value neg = FLT(a[3].kind == VAL_none ? -largest(d) : float_arg(&a[3], 0));
    Value is_nan = CALL(t, aten_isnan_default, a[0]);
    Value r = CALL(t, aten_where_ScalarSelf, is_nan, nan, a[0]);
    Value is_neg = CALL(t, aten_eq_Scalar, a[0], FLT(-INFINITY));
    r = CALL(t, aten_where_ScalarSelf, is_neg, neg, r);
    Value is_pos = CALL(t, aten_eq_Scalar, a[0], FLT(INFINITY));
    *out = CALL(t, aten_where_ScalarSelf, is_pos, pos, r);
    return true;
}

bool decomp_sgn(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    *out = CALL(t, aten_sign_default, a[0]);
    return true;
}

bool decomp_sinc(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    Wide w = decomp_widen_to_float(t, a, 1);
    Value x = CALL(t, aten_mul_Tensor, w.a[0], FLT(3.141592653589793));
    Value zero = CALL(t, aten_eq_Scalar, x, INT(0));
    Value s = CALL(t, aten_sin_default, x);
    s = CALL(t, aten_div_Tensor, s, x);
    return decomp_narrow(t, &w, CALL(t, aten_where_ScalarSelf, zero, INT(1), s), out);
}

// A number becomes a tensor of the other operand's type.
static void both_tensors(Trace *t, Wide *w) {
    for (int i = 0; i < 2; i++)
        if (w->a[i].kind != VAL_tensor && w->a[1 - i].kind == VAL_tensor)
            w->a[i] = CALL(t, prims_scalar_tensor_default, FLT(float_arg(&w->a[i], 0)),
                           DTY(dtype_of(w->a[1 - i])), device_of_tensor(w->a[1 - i]));
}

static bool x_log(Trace *t, const Value *a, bool plus_one, Value *out) {
    Wide w = decomp_widen_to_float(t, a, 2);
    both_tensors(t, &w);
    Value zero = py_eq(t, w.a[0], INT(0));
    Value l = plus_one ? CALL(t, aten_log1p_default, w.a[1]) : CALL(t, aten_log_default, w.a[1]);
    l = py_mul(t, w.a[0], l);
    Value r = py_where(t, zero, INT(0), l);
    Value nan = CALL(t, aten_isnan_default, w.a[1]);
    return decomp_narrow(t, &w, py_where(t, nan, FLT(NAN), r), out);
}

bool decomp_xlogy(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    return x_log(t, a, false, out);
}

bool decomp_xlog1py(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    return x_log(t, a, true, out);
}

static bool other_if_nan(Trace *t, const Value *a, bool max, Value *out) {
    Value nan = CALL(t, aten_isnan_default, a[1]);
    Value cmp = max ? CALL(t, aten_lt_Tensor, a[1], a[0]) : CALL(t, aten_gt_Tensor, a[1], a[0]);
    nan = CALL(t, aten_bitwise_or_Tensor, nan, cmp);
    *out = CALL(t, aten_where_self, nan, a[0], a[1]);
    return true;
}

bool decomp_fmin(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    return other_if_nan(t, a, false, out);
}

bool decomp_fmax(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    return other_if_nan(t, a, true, out);
}

bool decomp_round_decimals(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    double ten = pow(10, (double)int_arg(&a[1], 0));
    Value r = CALL(t, aten_mul_Tensor, a[0], FLT(ten));
    r = CALL(t, aten_round_default, r);
    *out = CALL(t, aten_mul_Tensor, r, FLT(1 / ten));
    return true;
}

bool decomp_fill_scalar(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    *out = CALL(t, aten_full_like_default, a[0], a[1]);
    return true;
}

bool decomp_fill_tensor(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    *out = CALL(t, aten_copy_default, a[0], a[1]);
    return true;
}

bool decomp_to_copy(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    Value x = a[0], dtype = a[1], device = a[3], mf = a[6];
    if (device.kind == VAL_none && dtype.kind == VAL_none && mf.kind == VAL_none) {
        *out = CALL(t, aten_clone_default, x);
        return true;
    }
    bool moves = device.kind == VAL_device && device.device.type != x.tensor->device.type,
         done = false;
    if (moves && dtype.kind == VAL_dtype && device.device.type == DEV_cpu) {
        x = CALL(t, prims_convert_element_type_default, x, dtype);
        done = true;
    }
    if (moves)
        x = CALL(t, prims_device_put_default, x, device);
    if (dtype.kind == VAL_dtype && !done)
        x = CALL(t, prims_convert_element_type_default, x, dtype);
    *out = mf.kind == VAL_memory_format ? CALL(t, aten_clone_default, x, mf) : x;
    return true;
}
