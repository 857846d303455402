// derive_pointwise.c: derivatives of elementwise ops that are more than a formula: rounding modes,
// powers, bounds, copies. The others are the text of their rows (derive_formula.c).
#include "core/aot/derive.h"

#include <float.h>
#include <math.h>

// zeros_like(grad) with another dtype: x's
static Value zeros_typed(Trace *t, Value grad, Value x) {
    return CALL(t, aten_zeros_like_default, grad, DTY(dtype_of(x)), layout_like(grad),
                device_like(grad));
}

static Value zeros_contiguous(Trace *t, Value x) {
    Value mf = {.kind = VAL_memory_format, .mf = MF_contiguous};
    return CALL(t, aten_zeros_like_default, x, NONE, NONE, NONE, NONE, mf);
}

void derive_div_mode(Back *b) {
    Trace *t = b->t;
    bool by_tensor = b->op->args[1].type == AT_tensor, rounds = ARG(2).kind == VAL_str;
    if (by_tensor && NEEDS(1)) {
        if (rounds) {
            OUT(1) = zeros_typed(t, GRAD, ARG(1));
        } else {
            Value x = CALL(t, aten_div_Tensor, ARG(0), ARG(1));
            x = CALL(t, aten_div_Tensor, x, ARG(1));
            Value minus = CALL(t, aten_neg_default, GRAD);
            OUT(1) = CALL(t, aten_mul_Tensor, minus, x);
        }
    }
    if (!NEEDS(0))
        return;
    OUT(0) = rounds      ? zeros_typed(t, GRAD, ARG(0))
             : by_tensor ? CALL(t, aten_div_Tensor, GRAD, ARG(1))
                         : CALL(t, aten_div_Scalar, GRAD, ARG(1));
}

void derive_atan2(Back *b) {
    Trace *t = b->t;
    Value x2 = CALL(t, aten_mul_Tensor, ARG(1), ARG(1));
    Value y2 = CALL(t, aten_mul_Tensor, ARG(0), ARG(0));
    Value denom = CALL(t, aten_add_Tensor, y2, x2);
    Value recip = CALL(t, aten_reciprocal_default, denom);
    Value at_zero = CALL(t, aten_eq_Scalar, denom, INT(0));
    recip = CALL(t, aten_masked_fill_Scalar, recip, at_zero, INT(0));
    if (NEEDS(0)) {
        Value x = CALL(t, aten_mul_Tensor, GRAD, ARG(1));
        OUT(0) = CALL(t, aten_mul_Tensor, x, recip);
    }
    if (NEEDS(1)) {
        Value x = CALL(t, aten_neg_default, ARG(0));
        x = CALL(t, aten_mul_Tensor, GRAD, x);
        OUT(1) = CALL(t, aten_mul_Tensor, x, recip);
    }
}

void derive_copysign(Back *b) {
    Trace *t = b->t;
    if (ARG(1).kind == VAL_tensor && NEEDS(1))
        OUT(1) = zeros_like(t, ARG(1));
    if (!NEEDS(0))
        return;
    Value ratio = CALL(t, aten_div_Tensor, RES(0), ARG(0));
    Value at_zero = CALL(t, aten_eq_Scalar, ARG(0), INT(0));
    CALL(t, aten_masked_fill__Scalar, ratio, at_zero, INT(0));
    OUT(0) = CALL(t, aten_mul_Tensor, GRAD, ratio);
}

// powers

void derive_pow_scalar(Back *b) {
    Trace *t = b->t;
    double e;
    if (value_is_zero(&ARG(1))) {
        OUT(0) = zeros_contiguous(t, ARG(0));
        return;
    }
    if (!val_as_float(&ARG(1), &e)) {
        trace_fail(t, "the derivative of pow needs an exponent that is known");
        return;
    }
    Value x = CALL(t, aten_pow_Tensor_Scalar, ARG(0), FLT(e - 1));
    x = CALL(t, aten_mul_Scalar, x, FLT(e));
    OUT(0) = CALL(t, aten_mul_Tensor, GRAD, x);
}

// d(a^b)/db is 0 where a is 0 and b is not negative
static Value pow_exponent_grad(Back *b) {
    Trace *t = b->t;
    Value positive = CALL(t, aten_ge_Scalar, ARG(1), INT(0));
    Value at_zero = CALL(t, aten_eq_Scalar, ARG(0), INT(0));
    Value cond = CALL(t, aten_logical_and_default, at_zero, positive);
    Value self = to_dtype(t, ARG(0), ops_result_type(b->args, 2));
    Value x = CALL(t, aten_log_default, self);
    x = CALL(t, aten_mul_Tensor, RES(0), x);
    Value zero = scalar_like(t, FLT(0), GRAD);
    x = CALL(t, aten_where_self, cond, zero, x);
    return CALL(t, aten_mul_Tensor, GRAD, x);
}

static Value pow_self_grad(Back *b) {
    Trace *t = b->t;
    Value x = CALL(t, aten_sub_Scalar, ARG(1), INT(1));
    x = CALL(t, aten_pow_Tensor_Tensor, ARG(0), x);
    x = CALL(t, aten_mul_Tensor, ARG(1), x);
    x = CALL(t, aten_mul_Tensor, GRAD, x);
    Value zero = scalar_like(t, FLT(0), GRAD);
    Value cond = CALL(t, aten_eq_Scalar, ARG(1), FLT(0));
    return CALL(t, aten_where_self, cond, zero, x);
}

void derive_pow_tensor(Back *b) {
    if (NEEDS(1))
        OUT(1) = pow_exponent_grad(b);
    if (NEEDS(0))
        OUT(0) = pow_self_grad(b);
}

void derive_pow_base(Back *b) {
    Trace *t = b->t;
    double base;
    if (!val_as_float(&ARG(0), &base)) {
        trace_fail(t, "the derivative of pow needs a base that is known");
        return;
    }
    Value x = CALL(t, aten_mul_Scalar, RES(0), FLT(log(base)));
    if (base == 0) {
        Value zero = zeros_of(t, list_of(t, END), GRAD);
        Value cond = CALL(t, aten_ge_Scalar, ARG(1), INT(0));
        x = CALL(t, aten_where_self, cond, zero, x);
    }
    OUT(1) = CALL(t, aten_mul_Tensor, GRAD, x);
}

// x log(y) with a number for y; where x is 0 and y is out of range the gradient is 0.
static Value unless_zero(Back *b, Value x, double least) {
    if (float_arg(&ARG(1), 0) > least)
        return x;
    Value at_zero = CALL(b->t, aten_eq_Scalar, ARG(0), FLT(0));
    return CALL(b->t, aten_masked_fill_Scalar, x, at_zero, FLT(0));
}

void derive_xlogy_number(Back *b) {
    OUT(0) = unless_zero(b, CALL(b->t, aten_xlogy_Scalar_Other, GRAD, ARG(1)), 0);
}

void derive_xlog1py_number(Back *b) {
    Value x = CALL(b->t, aten_special_xlog1py_other_scalar, GRAD, ARG(1));
    OUT(0) = unless_zero(b, x, -1);
}

// bounds

static Value at_least(Trace *t, Value x, Value min) {
    return min.kind == VAL_tensor ? CALL(t, aten_ge_Tensor, x, min)
                                  : CALL(t, aten_ge_Scalar, x, min);
}

static Value at_most(Trace *t, Value x, Value max) {
    return max.kind == VAL_tensor ? CALL(t, aten_le_Tensor, x, max)
                                  : CALL(t, aten_le_Scalar, x, max);
}

void derive_clamp(Back *b) {
    Trace *t = b->t;
    Value min = ARG(1), max = ARG(2);
    if (is_none(&min) && is_none(&max)) {
        OUT(0) = GRAD;
        return;
    }
    Value zero = scalar_like(t, FLT(0), GRAD), cond;
    if (is_none(&max)) {
        cond = at_least(t, ARG(0), min);
    } else if (is_none(&min)) {
        cond = at_most(t, ARG(0), max);
    } else {
        cond = at_least(t, ARG(0), min);
        Value below = at_most(t, ARG(0), max);
        cond = CALL(t, aten_logical_and_default, cond, below);
    }
    OUT(0) = CALL(t, aten_where_self, cond, GRAD, zero);
}

static void clamp_bounds(Back *b) {
    Trace *t = b->t;
    Value x = ARG(0), min = ARG(1), max = ARG(2);
    bool both = !is_none(&min) && !is_none(&max);
    Value zero = scalar_like(t, FLT(0), GRAD);
    if (NEEDS(1)) {
        Value cond = CALL(t, aten_lt_Tensor, x, min);
        if (both) {
            Value order = CALL(t, aten_lt_Tensor, min, max);
            cond = CALL(t, aten_logical_and_default, cond, order);
        }
        OUT(1) = CALL(t, aten_where_self, cond, GRAD, zero);
    }
    if (NEEDS(2)) {
        Value cond = CALL(t, aten_gt_Tensor, x, max);
        if (both) {
            Value order = CALL(t, aten_lt_Tensor, max, min);
            cond = CALL(t, aten_logical_or_default, cond, order);
        }
        OUT(2) = CALL(t, aten_where_self, cond, GRAD, zero);
    }
}

void derive_clamp_tensor(Back *b) {
    if (NEEDS(1) || NEEDS(2))
        clamp_bounds(b);
    if (NEEDS(0))
        derive_clamp(b);
}

// copies

// x.to(like.options())
static Value to_options(Trace *t, Value x, Value like) {
    return CALL(t, aten_to_dtype_layout, x, DTY(dtype_of(like)), layout_like(like),
                device_like(like));
}

void derive_to_copy(Back *b) {
    OUT(0) = to_options(b->t, GRAD, ARG(0));
}

void derive_copy(Back *b) {
    if (NEEDS(0))
        OUT(0) = zeros_contiguous(b->t, GRAD);
    if (NEEDS(1))
        OUT(1) = to_options(b->t, GRAD, ARG(1));
}

void derive_native_dropout(Back *b) {
    double p = float_arg(&ARG(1), 0);
    double scale = !bool_arg(&ARG(2)) ? 1 : p == 1 ? 0 : 1 / (1 - p);
    OUT(0) = CALL(b->t, aten_native_dropout_backward_default, GRAD, RES(1), FLT(scale));
}

void derive_prelu(Back *b) {
    Value pair = CALL(b->t, aten__prelu_kernel_backward_default, GRAD, ARG(0), ARG(1));
    OUT(0) = item_of(pair, 0);
    OUT(1) = item_of(pair, 1);
}

// special functions

void derive_sinc(Back *b) {
    Trace *t = b->t;
    Value pi_x = CALL(t, aten_mul_Scalar, ARG(0), FLT(M_PI));
    Value x2 = CALL(t, aten_mul_Tensor, ARG(0), ARG(0));
    Value pi_x2 = CALL(t, aten_mul_Scalar, x2, FLT(M_PI));
    Value sin = CALL(t, aten_sin_default, pi_x);
    Value x = CALL(t, aten_cos_default, pi_x);
    x = CALL(t, aten_mul_Tensor, pi_x, x);
    x = CALL(t, aten_sub_Tensor, x, sin);
    x = CALL(t, aten_div_Tensor, x, pi_x2);
    x = CALL(t, aten_mul_Tensor, GRAD, x);
    Value zero = zeros_of(t, list_of(t, END), GRAD);
    Value at_zero = CALL(t, aten_eq_Scalar, pi_x2, FLT(0));
    OUT(0) = CALL(t, aten_where_self, at_zero, zero, x);
}

static Value full_like(Trace *t, double v, Value like) {
    return CALL(t, aten_full_default, list_of(t, END), FLT(v), DTY(dtype_of(like)),
                layout_like(like), device_like(like));
}

// The derivatives of i1 and i1e divide by x; at 0 they are 1/2.
static void bessel(Back *b, bool scaled) {
    Trace *t = b->t;
    double eps = dtype_of(ARG(0)) == DT_f64 ? DBL_EPSILON : FLT_EPSILON;
    Value far = CALL(t, aten_abs_default, ARG(0));
    far = CALL(t, aten_gt_Scalar, far, FLT(eps));
    Value x = full_like(t, eps, ARG(0));
    x = CALL(t, aten_where_self, far, ARG(0), x);
    Value inner = CALL(t, aten_reciprocal_default, x);
    if (scaled) {
        Value sign = CALL(t, aten_sgn_default, x);
        inner = CALL(t, aten_add_Tensor, sign, inner);
    }
    inner = CALL(t, aten_mul_Tensor, RES(0), inner);
    x = scaled ? CALL(t, aten_special_i0e_default, x) : CALL(t, aten_i0_default, x);
    x = CALL(t, aten_sub_Tensor, x, inner);
    Value half = full_like(t, 0.5, ARG(0));
    x = CALL(t, aten_where_self, far, x, half);
    OUT(0) = CALL(t, aten_mul_Tensor, GRAD, x);
}

void derive_i1(Back *b) {
    bessel(b, false);
}

void derive_i1e(Back *b) {
    bessel(b, true);
}

void derive_mvlgamma(Back *b) {
    Trace *t = b->t;
    double from = -(double)int_arg(&ARG(1), 1) / 2. + 0.5;
    Value args = CALL(t, aten_arange_start_step, FLT(from), FLT(0.5), FLT(0.5),
                      DTY(dtype_of(ARG(0))), layout_like(ARG(0)), device_like(ARG(0)));
    Value x = CALL(t, aten_unsqueeze_default, ARG(0), INT(-1));
    args = CALL(t, aten_add_Tensor, args, x);
    args = CALL(t, aten_digamma__default, args);
    x = CALL(t, aten_sum_dim_IntList, args, list_of(t, INT(-1), END));
    OUT(0) = CALL(t, aten_mul_Tensor, GRAD, x);
}
