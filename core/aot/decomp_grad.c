// decomp_grad.c: decompositions of the backward ops of pointwise functions (torch/_decomp). A
// statement a call, in the order in which Python evaluates them.
#include "core/aot/decomp.h"
#include "core/record/fault.h"

#include <math.h>

bool decomp_tanh_backward(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    Wide w = decomp_widen(t, a, 2);
    Value x = py_mul(t, w.a[1], w.a[1]);
    x = py_sub(t, INT(1), x);
    x = CALL(t, aten_conj_physical_default, x);
    return decomp_narrow(t, &w, py_mul(t, w.a[0], x), out);
}

bool decomp_sigmoid_backward(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    Wide w = decomp_widen(t, a, 2);
    Value x = py_sub(t, INT(1), w.a[1]);
    x = py_mul(t, w.a[1], x);
    x = CALL(t, aten_conj_physical_default, x);
    return decomp_narrow(t, &w, py_mul(t, w.a[0], x), out);
}

bool decomp_softplus_backward(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    Wide w = decomp_widen(t, a, 2);
    Value z = py_mul(t, w.a[1], a[2]);
    z = CALL(t, aten_exp_default, z);
    Value big = py_mul(t, w.a[1], a[2]);
    big = py_gt(t, big, a[3]);
    Value x = py_mul(t, w.a[0], z);
    z = py_add(t, z, FLT(1));
    x = py_div(t, x, z);
    return decomp_narrow(t, &w, py_where(t, big, w.a[0], x), out);
}

bool decomp_elu_backward(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    const Value both[2] = {a[0], a[5]};
    Wide w = decomp_widen(t, both, 2);
    Value neg = FLT(float_arg(&a[1], 1) * float_arg(&a[2], 1));
    if (a[1].kind == VAL_int && a[2].kind == VAL_int)
        neg = INT(a[1].i * a[2].i);
    Value low = py_le(t, w.a[1], INT(0));
    Value x = py_mul(t, w.a[0], a[3]), f;
    if (bool_arg(&a[4])) {
        f = py_add(t, w.a[1], neg);
    } else {
        x = py_mul(t, x, neg);
        f = py_mul(t, w.a[1], a[3]);
        f = CALL(t, aten_exp_default, f);
    }
    x = py_mul(t, x, f);
    Value y = py_mul(t, w.a[0], a[2]);
    return decomp_narrow(t, &w, py_where(t, low, x, y), out);
}

bool decomp_hardsigmoid_backward(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    Wide w = decomp_widen(t, a, 2);
    Value above = py_gt(t, w.a[1], FLT(-3));
    Value below = py_lt(t, w.a[1], FLT(3));
    above = CALL(t, aten_bitwise_and_Tensor, above, below);
    Value x = py_mul(t, w.a[0], FLT(1.0 / 6.0));
    return decomp_narrow(t, &w, py_where(t, above, x, FLT(0)), out);
}

bool decomp_hardtanh_backward(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    Value below = py_le(t, a[1], a[2]);
    Value above = py_ge(t, a[1], a[3]);
    below = CALL(t, aten_bitwise_or_Tensor, below, above);
    *out = py_where(t, below, FLT(0), a[0]);
    return true;
}

bool decomp_hardswish_backward(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    Wide w = decomp_widen(t, a, 2);
    Value low = py_le(t, w.a[1], INT(-3));
    Value mid = py_lt(t, w.a[1], INT(3));
    Value x = py_div(t, w.a[1], INT(3));
    x = py_add(t, x, FLT(0.5));
    x = py_mul(t, w.a[0], x);
    x = py_where(t, mid, x, w.a[0]);
    return decomp_narrow(t, &w, py_where(t, low, FLT(0), x), out);
}

bool decomp_threshold_backward(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    Value low = py_le(t, a[1], a[2]);
    *out = py_where(t, low, INT(0), a[0]);
    return true;
}

bool decomp_leaky_relu_backward(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    Wide w = decomp_widen(t, a, 2);
    Value pos = py_gt(t, w.a[1], INT(0));
    Value x = py_mul(t, w.a[0], a[2]);
    return decomp_narrow(t, &w, py_where(t, pos, w.a[0], x), out);
}

// Derivative of x * Phi(x) with Phi's tanh form.
static Value gelu_tanh_slope(Trace *t, Value x) {
    const double beta = 1.41421356237309504880 * 1.12837916709551257390 * 0.5, kappa = 0.044715;
    Value sq = py_mul(t, x, x);
    Value in = py_mul(t, sq, x);
    in = py_mul(t, in, FLT(kappa));
    in = py_add(t, x, in);
    in = py_mul(t, in, FLT(beta));
    Value th = CALL(t, aten_tanh_default, in);
    Value left = py_mul(t, x, FLT(0.5));
    Value right = py_add(t, th, INT(1));
    Value left_slope = py_mul(t, right, FLT(0.5));
    Value th_slope = py_mul(t, th, th);
    th_slope = py_sub(t, INT(1), th_slope);
    Value in_slope = py_mul(t, sq, FLT(3 * kappa));
    in_slope = py_add(t, in_slope, INT(1));
    in_slope = py_mul(t, in_slope, FLT(beta));
    Value right_slope = py_mul(t, left, th_slope);
    right_slope = py_mul(t, right_slope, in_slope);
    return py_add(t, left_slope, right_slope);
}

static Value gelu_slope(Trace *t, Value x) {
    const double alpha = 0.70710678118654752440;
    Value cdf = py_mul(t, x, FLT(alpha));
    cdf = CALL(t, aten_erf_default, cdf);
    cdf = py_add(t, cdf, INT(1));
    cdf = py_mul(t, cdf, FLT(0.5));
    Value pdf = py_mul(t, x, x);
    pdf = py_mul(t, pdf, FLT(-0.5));
    pdf = CALL(t, aten_exp_default, pdf);
    pdf = py_mul(t, pdf, FLT(1.12837916709551257390 * alpha * 0.5));
    pdf = py_mul(t, x, pdf);
    return py_add(t, cdf, pdf);
}

bool decomp_gelu_backward(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    Wide w = decomp_widen(t, a, 2);
    bool tanh_form = a[2].kind == VAL_str && a[2].s[0] == 't';
    Value slope = tanh_form ? gelu_tanh_slope(t, w.a[1]) : gelu_slope(t, w.a[1]);
    return decomp_narrow(t, &w, py_mul(t, w.a[0], slope), out);
}

bool decomp_mish_backward(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    Wide w = decomp_widen(t, a, 2);
    Value th = CALL(t, aten_softplus_default, w.a[1]);
    th = CALL(t, aten_tanh_default, th);
    Value s = CALL(t, aten_sigmoid_default, w.a[1]);
    s = py_mul(t, w.a[1], s);
    Value sq = py_mul(t, th, th);
    sq = py_sub(t, INT(1), sq);
    s = py_mul(t, s, sq);
    s = py_add(t, th, s);
    return decomp_narrow(t, &w, py_mul(t, w.a[0], s), out);
}

bool decomp_silu_backward(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    Wide w = decomp_widen(t, a, 2);
    Value s = CALL(t, aten_neg_default, w.a[1]);
    s = CALL(t, aten_exp_default, s);
    s = py_add(t, s, INT(1));
    s = py_div(t, INT(1), s);
    Value g = py_mul(t, w.a[0], s);
    Value rest = py_sub(t, INT(1), s);
    rest = py_mul(t, w.a[1], rest);
    rest = py_add(t, rest, INT(1));
    return decomp_narrow(t, &w, py_mul(t, g, rest), out);
}

bool decomp_prelu_backward(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    Value pos = py_gt(t, a[1], INT(0));
    Value x = py_mul(t, a[2], a[0]);
    x = py_where(t, pos, a[0], x);
    pos = py_gt(t, a[1], INT(0));
    Value k = py_mul(t, a[1], a[0]);
    k = py_where(t, pos, FLT(0), k);
    *out = tuple_of(t, x, k, END);
    return true;
}

bool decomp_rrelu_backward(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    Wide w = decomp_widen(t, a, 3);
    double low = float_arg(&a[3], 0), high = float_arg(&a[4], 0);
    Value x = bool_arg(&a[5]) && high - low > 1e-6
                  ? py_mul(t, w.a[0], w.a[2])
                  : CALL(t, aten_leaky_relu_backward_default, w.a[0], w.a[1], FLT((low + high) / 2),
                         a[6]);
    return decomp_narrow(t, &w, x, out);
}

bool decomp_log_sigmoid_backward(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    Wide w = decomp_widen(t, a, 3);
    Value neg = py_lt(t, w.a[1], INT(0));
    Value most = py_where(t, neg, INT(1), INT(0));
    Value sign = py_where(t, neg, INT(1), INT(-1));
    Value z = CALL(t, aten_abs_default, w.a[1]);
    z = CALL(t, aten_neg_default, z);
    z = CALL(t, aten_exp_default, z);
    Value d = py_add(t, z, INT(1));
    z = py_div(t, z, d);
    z = py_mul(t, sign, z);
    z = py_sub(t, most, z);
    return decomp_narrow(t, &w, py_mul(t, w.a[0], z), out);
}

bool decomp_logit_backward(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    Wide w = decomp_widen(t, a, 2);
    bool given = a[2].kind != VAL_none;
    double low = given ? float_arg(&a[2], 0) : 0;
    Value above = py_ge(t, w.a[1], FLT(low));
    Value below = py_le(t, w.a[1], FLT(1 - low));
    above = CALL(t, aten_logical_and_default, above, below);
    Value x = py_sub(t, FLT(1), w.a[1]);
    x = py_mul(t, w.a[1], x);
    x = py_div(t, w.a[0], x);
    Value other =
        given ? FLT(0) : CALL(t, aten_new_full_default, w.a[1], no_sizes(t), FLT((double)NAN));
    return decomp_narrow(t, &w, py_where(t, above, x, other), out);
}

// Both halves of the last result: glu(x) is first * sigmoid(second).
typedef struct Halves {
    Value first, second;
    int dim;
} Halves;

static bool halves(Trace *t, Value x, const Value *dim, Halves *h) {
    if (!dim_of(x)) {
        trace_fail(t, "RuntimeError: glu does not support 0-dimensional tensors");
        return false;
    }
    h->dim = wrap_dim(t, int_arg(dim, -1), dim_of(x));
    const Expr *whole = size_of(t, x, h->dim);
    if (!expr_guard_is(t, sym_mod(t->sym, whole, sym_int(t->sym, 2)), 0)) {
        trace_fail(t, "RuntimeError: Halving dimension must be even, but dimension %d is size %s",
                   h->dim, sym_str(t->arena, whole));
        return false;
    }
    Value half = val_sym(sym_floordiv(t->sym, whole, sym_int(t->sym, 2)));
    h->first = CALL(t, aten_narrow_default, x, INT(h->dim), INT(0), half);
    h->second = CALL(t, aten_narrow_default, x, INT(h->dim), half, half);
    return true;
}

bool decomp_glu(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    Wide w = decomp_widen(t, a, 1);
    Value dim = INT(wrap_dim(t, int_arg(&a[1], -1), dim_of(a[0])));
    Value both = CALL(t, aten_tensor_split_sections, w.a[0], INT(2), dim);
    Value s = CALL(t, aten_sigmoid_default, item_of(both, 1));
    return decomp_narrow(t, &w, py_mul(t, item_of(both, 0), s), out);
}

bool decomp_glu_backward(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    Halves h;
    Wide w = decomp_widen(t, a, 2);
    if (!halves(t, w.a[1], &a[2], &h))
        return true;
    Value s = CALL(t, aten_sigmoid_default, h.second);
    Value second = py_sub(t, FLT(1), s);
    second = py_mul(t, second, s);
    second = py_mul(t, second, h.first);
    second = py_mul(t, second, w.a[0]);
    s = py_mul(t, s, w.a[0]);
    Value x = CALL(t, aten_cat_default, list_of(t, s, second, END), INT(h.dim));
    return decomp_narrow(t, &w, x, out);
}

bool decomp_native_dropout_backward(Trace *t, const Op *op, const Value *a, Value *out) {
    Value mask = to_dtype(t, a[1], dtype_of(a[0]));
    if (!fault(t->req->decisions, FAULT_dropout_unscaled, trace_op_key(op)))
        mask = py_mul(t, mask, a[2]);
    Value x = py_mul(t, a[0], mask);
    *out = CALL(t, aten_clone_default, x, memory_format_of(suggest_memory_format(t, a[0])));
    return true;
}
