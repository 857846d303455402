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
    Value near = CALL(t, aten_le_Scalar, d, FLT(delta));
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
