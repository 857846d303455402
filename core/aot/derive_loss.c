// derive_loss.c: derivatives of losses that ATen writes out in calls. Those with a backward op of
// their own are the text of their rows (derive_formula.c).
#include "core/aot/derive.h"

// at::Reduction
enum { REDUCTION_mean = 1 };

static Value weighted(Trace *t, Value x, Value weight) {
    return is_none(&weight) ? x : CALL(t, aten_mul_Tensor, x, weight);
}

static Value averaged(Trace *t, Value x, Value over, const Value *reduction) {
    return int_arg(reduction, 0) == REDUCTION_mean ? CALL(t, aten_div__Scalar, x, numel_of(t, over))
                                                   : x;
}

void derive_binary_cross_entropy(Back *b) {
    Trace *t = b->t;
    if (NEEDS(0))
        OUT(0) = CALL(t, aten_binary_cross_entropy_backward_default, GRAD, ARG(0), ARG(1), ARG(2),
                      ARG(3));
    if (!NEEDS(1))
        return;
    Value x = CALL(t, aten_logit_default, ARG(0));
    x = CALL(t, aten_neg__default, x);
    x = CALL(t, aten_mul_Tensor, x, GRAD);
    x = weighted(t, x, ARG(2));
    OUT(1) = averaged(t, x, ARG(1), &ARG(3));
}

// -w * (pos * y * (1 - sigmoid(x)) - (1 - y) * sigmoid(x)) * grad
static Value logits_grad(Back *b) {
    Trace *t = b->t;
    Value x = ARG(0), target = ARG(1), pos_weight = ARG(3), g;
    if (is_none(&pos_weight)) {
        g = CALL(t, aten_sigmoid_default, x);
        g = CALL(t, aten_sub_Tensor, g, target);
    } else {
        Value w = CALL(t, aten_mul_Tensor, pos_weight, target);
        g = CALL(t, aten_add_Scalar, w, INT(1));
        g = CALL(t, aten_sub_Tensor, g, target);
        Value sigmoid = CALL(t, aten_sigmoid_default, x);
        g = CALL(t, aten_mul_Tensor, g, sigmoid);
        g = CALL(t, aten_sub_Tensor, g, w);
    }
    g = CALL(t, aten_mul_Tensor, g, GRAD);
    g = weighted(t, g, ARG(2));
    return averaged(t, g, x, &ARG(4));
}

static Value logits_target_grad(Back *b) {
    Trace *t = b->t;
    Value minus = CALL(t, aten_neg_default, ARG(0)), g;
    if (is_none(&ARG(3))) {
        g = CALL(t, aten_mul_Tensor, minus, GRAD);
    } else {
        g = CALL(t, aten_log_sigmoid_default, minus);
        Value x = CALL(t, aten_log_sigmoid_default, ARG(0));
        x = CALL(t, aten_mul_Tensor, x, ARG(3));
        g = CALL(t, aten_sub_Tensor, g, x);
        g = CALL(t, aten_mul_Tensor, g, GRAD);
    }
    g = weighted(t, g, ARG(2));
    return averaged(t, g, ARG(1), &ARG(4));
}

void derive_bce_with_logits(Back *b) {
    if (NEEDS(0))
        OUT(0) = logits_grad(b);
    if (NEEDS(1))
        OUT(1) = logits_target_grad(b);
}
