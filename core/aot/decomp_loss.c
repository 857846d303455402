// decomp_loss.c: decompositions of losses: an elementwise part and a reduction.
#include "core/aot/decomp.h"

enum { REDUCE_none, REDUCE_mean, REDUCE_sum };

Value loss_reduced(Trace *t, Value loss, const Value *reduction) {
    int64_t r = int_arg(reduction, REDUCE_mean);
    return r == REDUCE_mean  ? CALL(t, aten_mean_default, loss)
           : r == REDUCE_sum ? CALL(t, aten_sum_default, loss)
                             : loss;
}

static bool finish(Trace *t, Value loss, const Value *reduction, DType d, Value *out) {
    loss = loss_reduced(t, loss, reduction);
    *out = to_dtype(t, loss, d);
    return true;
}

typedef struct Pair {
    Value x, y;
    DType result;
} Pair;

static Pair widened(Trace *t, const Value *a) {
    Promotion p = promote_default(t, a, 2);
    Pair w = {.result = p.result};
    w.x = to_dtype(t, a[0], p.compute);
    w.y = to_dtype(t, a[1], p.compute);
    return w;
}

bool decomp_mse_loss(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    Pair p = widened(t, a);
    Value d = CALL(t, aten_sub_Tensor, p.x, p.y);
    d = CALL(t, aten_pow_Tensor_Scalar, d, INT(2));
    return finish(t, d, &a[2], p.result, out);
}

static Value distance(Trace *t, const Pair *p) {
    Value d = CALL(t, aten_sub_Tensor, p->x, p->y);
    return CALL(t, aten_abs_default, d);
}

bool decomp_l1_loss(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    Pair p = {a[0], a[1], promote_default(t, a, 2).result};
    return finish(t, distance(t, &p), &a[2], p.result, out);
}

bool decomp_smooth_l1_loss(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    Pair p = widened(t, a);
    double beta = float_arg(&a[3], 1);
    Value d = distance(t, &p);
    Value near = CALL(t, aten_lt_Scalar, d, FLT(beta));
    Value sq = CALL(t, aten_pow_Tensor_Scalar, d, INT(2));
    sq = CALL(t, aten_mul_Tensor, sq, FLT(0.5));
    sq = CALL(t, aten_div_Tensor, sq, FLT(beta));
    Value lin = CALL(t, aten_sub_Tensor, d, FLT(0.5 * beta));
    return finish(t, CALL(t, aten_where_self, near, sq, lin), &a[2], p.result, out);
}

bool decomp_huber_loss(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    Pair p = widened(t, a);
    double delta = float_arg(&a[3], 1);
    Value d = distance(t, &p);
    Value near = CALL(t, aten_lt_Scalar, d, FLT(delta));
    Value sq = CALL(t, aten_mul_Tensor, d, FLT(0.5));
    sq = CALL(t, aten_mul_Tensor, sq, d);
    Value lin = CALL(t, aten_sub_Tensor, d, FLT(0.5 * delta));
    lin = CALL(t, aten_mul_Tensor, lin, FLT(delta));
    return finish(t, CALL(t, aten_where_self, near, sq, lin), &a[2], p.result, out);
}

bool decomp_bce(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    Pair p = widened(t, a);
    Value none = val_list(t->arena, VAL_list, 0);
    Value y1 = CALL(t, aten_sub_Tensor, p.y, INT(1));
    Value neg = CALL(t, aten_neg_default, p.x);
    Value l1 = CALL(t, aten_log1p_default, neg);
    Value floor1 = CALL(t, aten_new_full_default, p.x, none, INT(-100));
    l1 = CALL(t, aten_maximum_default, l1, floor1);
    Value first = CALL(t, aten_mul_Tensor, y1, l1);
    Value l2 = CALL(t, aten_log_default, p.x);
    Value floor2 = CALL(t, aten_new_full_default, p.x, none, INT(-100));
    l2 = CALL(t, aten_maximum_default, l2, floor2);
    Value second = CALL(t, aten_mul_Tensor, p.y, l2);
    Value loss = CALL(t, aten_sub_Tensor, first, second);
    if (a[2].kind == VAL_tensor)
        loss = CALL(t, aten_mul_Tensor, loss, a[2]);
    return finish(t, loss, &a[3], p.result, out);
}

bool decomp_bce_logits(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    DType d = promote_default(t, a, 2).result;
    Value weight = NONE;
    if (a[3].kind == VAL_tensor) {
        weight = CALL(t, aten_sub_Tensor, a[3], INT(1));
        weight = CALL(t, aten_mul_Tensor, weight, a[1]);
        weight = CALL(t, aten_add_Tensor, weight, INT(1));
    }
    Value rest = CALL(t, aten_rsub_Scalar, a[1], INT(1));
    rest = CALL(t, aten_mul_Tensor, rest, a[0]);
    Value log = CALL(t, aten_log_sigmoid_default, a[0]);
    if (weight.kind == VAL_tensor)
        log = CALL(t, aten_mul_Tensor, weight, log);
    Value loss = CALL(t, aten_sub_Tensor, rest, log);
    if (a[2].kind == VAL_tensor)
        loss = CALL(t, aten_mul_Tensor, loss, a[2]);
    return finish(t, loss, &a[4], d, out);
}

static Value shaped_weight(Trace *t, const Value *a, int channel) {
    int n = dim_of(a[0]);
    if (n <= 1)
        return a[2];
    Value shape = val_list(t->arena, VAL_list, n);
    for (int i = 0; i < n; i++)
        shape.at[i] = i == channel ? val_sym(size_of(t, a[2], 0)) : INT(1);
    return CALL(t, aten_view_default, a[2], shape);
}

// The value of each row's target, none where it is to be ignored.
static Value picked(Trace *t, Value x, Value target, Value ignore, Value safe, int channel,
                    bool negate) {
    Value r = CALL(t, aten_gather_default, x, INT(channel), safe);
    r = CALL(t, aten_squeeze_dim, r, INT(channel));
    if (negate)
        r = CALL(t, aten_neg_default, r);
    Value counts = CALL(t, aten_ne_Scalar, target, ignore);
    return CALL(t, aten_where_ScalarOther, counts, r, INT(0));
}

bool decomp_nll_loss(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    int n = dim_of(a[0]), channel = n < 2 ? 0 : 1;
    int64_t reduction = int_arg(&a[3], REDUCE_mean);
    Value x = a[0], w = NONE;
    if (a[2].kind == VAL_tensor) {
        w = shaped_weight(t, a, channel);
        x = CALL(t, aten_mul_Tensor, x, w);
    }
    Value counts = CALL(t, aten_ne_Scalar, a[1], a[4]);
    Value safe = CALL(t, aten_where_ScalarOther, counts, a[1], INT(0));
    safe = CALL(t, aten_unsqueeze_default, safe, INT(channel));
    Value r = picked(t, x, a[1], a[4], safe, channel, true), total;
    if (reduction == REDUCE_none && n > 1) {
        total = CALL(t, aten_new_full_default, x, val_list(t->arena, VAL_list, 0), FLT(0));
        *out = tuple_of(t, r, total, END);
        return true;
    }
    if (w.kind == VAL_tensor) {
        w = CALL(t, aten_expand_default, w, sizes_of(t, x));
        total = picked(t, w, a[1], a[4], safe, channel, false);
        total = CALL(t, aten_sum_default, total);
    } else {
        total = CALL(t, aten_ne_Scalar, a[1], a[4]);
        total = CALL(t, aten_sum_default, total);
        total = to_dtype(t, total, dtype_of(x));
    }
    if (reduction != REDUCE_none)
        r = CALL(t, aten_sum_default, r);
    if (reduction == REDUCE_mean)
        r = CALL(t, aten_div_Tensor, r, total);
    *out = tuple_of(t, r, total, END);
    return true;
}

// backward: the gradient of the mean is that of the sum over the number of elements

static Value share(Trace *t, double num, const Value *reduction, Value x) {
    return int_arg(reduction, REDUCE_mean) == REDUCE_mean ? py_ratio(t, num, numel_of(t, x))
                                                          : FLT(num);
}

bool decomp_mse_loss_backward(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    Wide w = decomp_widen(t, a, 3);
    Value norm = share(t, 2, &a[3], w.a[1]);
    Value d = py_sub(t, w.a[1], w.a[2]);
    d = py_mul(t, norm, d);
    return decomp_narrow(t, &w, py_mul(t, d, w.a[0]), out);
}

bool decomp_smooth_l1_loss_backward(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    Wide w = decomp_widen(t, a, 3);
    Value norm = share(t, 1, &a[3], w.a[1]);
    Value d = py_sub(t, w.a[1], w.a[2]);
    Value abs = CALL(t, aten_abs_default, d);
    Value g = py_mul(t, norm, w.a[0]);
    Value near = py_lt(t, abs, a[4]);
    Value x = py_mul(t, g, d);
    x = py_div(t, x, a[4]);
    Value sign = CALL(t, aten_sign_default, d);
    Value y = py_mul(t, g, sign);
    return decomp_narrow(t, &w, py_where(t, near, x, y), out);
}

bool decomp_huber_loss_backward(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    Wide w = decomp_widen(t, a, 3);
    double delta = float_arg(&a[4], 1);
    Value norm = share(t, 1, &a[3], w.a[1]);
    Value d = py_sub(t, w.a[1], w.a[2]);
    Value low = py_lt(t, d, FLT(-delta));
    Value minus = norm.kind == VAL_float ? FLT(-norm.f) : CALL(t, operator_neg, norm);
    Value x = py_mul(t, minus, w.a[0]);
    x = py_mul(t, x, FLT(delta));
    Value high = py_gt(t, d, FLT(delta));
    Value y = py_mul(t, norm, w.a[0]);
    y = py_mul(t, y, FLT(delta));
    Value z = py_mul(t, norm, d);
    z = py_mul(t, z, w.a[0]);
    y = py_where(t, high, y, z);
    return decomp_narrow(t, &w, py_where(t, low, x, y), out);
}

bool decomp_bce_backward(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    Wide w = decomp_widen(t, a, 4);
    Value d = py_sub(t, w.a[1], w.a[2]);
    Value r = py_mul(t, w.a[0], d);
    Value v = py_sub(t, INT(1), w.a[1]);
    v = py_mul(t, w.a[1], v);
    v = CALL(t, aten_clamp_default, v, FLT(1e-12));
    r = py_div(t, r, v);
    if (w.a[3].kind == VAL_tensor)
        r = py_mul(t, r, w.a[3]);
    if (int_arg(&a[4], REDUCE_mean) == REDUCE_mean)
        r = py_div(t, r, numel_of(t, w.a[1]));
    return decomp_narrow(t, &w, r, out);
}

bool decomp_soft_margin_loss(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    Wide w = decomp_widen(t, a, 2);
    Value x = CALL(t, aten_neg_default, w.a[0]);
    x = py_mul(t, x, w.a[1]);
    x = CALL(t, aten_exp_default, x);
    x = CALL(t, aten_log1p_default, x);
    return decomp_narrow(t, &w, loss_reduced(t, x, &a[2]), out);
}

bool decomp_soft_margin_loss_backward(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    Wide w = decomp_widen(t, a, 3);
    Value g = py_mul(t, w.a[2], w.a[0]);
    Value s = py_mul(t, w.a[2], w.a[1]);
    s = CALL(t, aten_sigmoid_default, s);
    s = py_sub(t, s, INT(1));
    g = py_mul(t, g, s);
    if (int_arg(&a[3], REDUCE_mean) == REDUCE_mean)
        g = py_div(t, g, numel_of(t, w.a[1]));
    return decomp_narrow(t, &w, g, out);
}

bool decomp_nll_loss_backward(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    int n = dim_of(a[1]), channel = n < 2 ? 0 : 1;
    Value g = a[0];
    if (int_arg(&a[4], REDUCE_mean) == REDUCE_mean)
        g = py_div(t, g, a[6]);
    Value target = py_unsqueeze(t, a[2], channel);
    Value counts = py_ne(t, target, a[5]);
    Value safe = py_where(t, counts, target, INT(0));
    Value x = CALL(t, aten_zeros_like_default, a[1]);
    x = CALL(t, aten_scatter_value, x, INT(channel), safe, FLT(-1));
    if (dim_of(x) > dim_of(g) && dim_of(g) > 0)
        g = py_unsqueeze(t, g, channel);
    if (a[3].kind == VAL_tensor) {
        Value shape = val_list(t->arena, VAL_list, n);
        for (int i = 0; i < n; i++)
            shape.at[i] = i == channel ? val_sym(size_of(t, a[3], 0)) : INT(1);
        Value weight = reshape(t, a[3], shape);
        g = py_mul(t, g, weight);
    }
    counts = py_ne(t, target, a[5]);
    g = py_where(t, counts, g, INT(0));
    *out = py_mul(t, x, g);
    return true;
}

// margin losses

bool decomp_multi_margin_loss(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    Value x = CALL(t, aten_atleast_2d_default, a[0]);
    Value target = CALL(t, aten_atleast_1d_default, a[1]), weight = a[4];
    if (weight.kind == VAL_tensor)
        weight = CALL(t, aten_atleast_1d_default, weight);
    target = py_unsqueeze(t, target, 1);
    Value u = CALL(t, aten_gather_default, x, INT(1), target);
    Value z = py_sub(t, a[3], u);
    z = py_add(t, z, x);
    z = CALL(t, aten_clamp_min_default, z, INT(0));
    if (!value_is_one(&a[2]))
        z = py_mul(t, z, z);
    if (weight.kind == VAL_tensor) {
        Value of = CALL(t, aten_index_Tensor, weight, list_of(t, target, END));
        z = py_mul(t, z, of);
    }
    Value places = py_arange(t, val_sym(size_of(t, x, 1)), DT_none, x);
    Value other = py_ne(t, places, target);
    z = py_where(t, other, z, INT(0));
    int64_t reduction = int_arg(&a[5], REDUCE_mean);
    if (reduction == REDUCE_mean) {
        *out = CALL(t, aten_mean_default, z);
    } else if (reduction == REDUCE_sum) {
        Value width = val_sym(size_of(t, z, 1));
        z = CALL(t, aten_sum_default, z);
        *out = py_div(t, z, width);
    } else {
        *out = CALL(t, aten_mean_dim, z, list_of(t, INT(1), END));
    }
    return true;
}

bool decomp_multilabel_margin_loss(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    int64_t reduction = int_arg(&a[2], REDUCE_mean);
    Value x = CALL(t, aten_atleast_2d_default, a[0]);
    Value target = CALL(t, aten_atleast_2d_default, a[1]);
    Value dim = val_sym(size_of(t, x, 1)), last = list_of(t, INT(-1), END);
    Value places = py_arange(t, dim, DT_none, target);
    // Labels end at the first -1.
    Value end = py_eq(t, target, INT(-1));
    end = py_where(t, end, places, dim);
    end = CALL(t, aten_amin_default, end, last, BOOL(true));
    Value mask = py_lt(t, places, end);
    Value safe = py_where(t, mask, target, INT(0));
    Value u = CALL(t, aten_gather_default, x, INT(-1), safe);
    Value label = py_where(t, mask, target, INT(-1));
    label = py_unsqueeze(t, label, -1);
    label = py_eq(t, places, label);
    Value is_target = CALL(t, aten_any_dim, label, INT(1));
    u = CALL(t, aten_numpy_T_default, u);
    u = py_unsqueeze(t, u, -1);
    Value z = py_sub(t, FLT(1), u);
    z = py_add(t, z, x);
    z = CALL(t, aten_clamp_min_default, z, INT(0));
    z = py_div(t, z, dim);
    z = py_where(t, is_target, INT(0), z);
    if (reduction == REDUCE_sum) {
        z = CALL(t, aten_sum_default, z);
    } else {
        z = py_sum(t, z, list_of(t, INT(0), INT(-1), END), false);
        if (reduction == REDUCE_mean)
            z = CALL(t, aten_mean_default, z);
    }
    is_target = to_dtype(t, is_target, dtype_of(x));
    is_target = reshape(t, is_target, sizes_of(t, a[1]));
    *out = tuple_of(t, z, is_target, END);
    return true;
}
