// grad.c: backward ops of activations and losses, written as loops or as calls of other kernels.
#include "core/eager/kernel.h"

static bool finish(K *k, int i, Value v) {
    return v.kind == VAL_tensor && copy_into(k->x, k->res[i], tensor_at(&v));
}

// (grad_output, self, weight) -> (of self, of weight)
bool kern_prelu_backward(K *k) {
    Value x = point_loop3(k, "prelu_backward", k->args[0], k->args[1], k->args[2], 0, 0);
    Value w = point_loop(k, "prelu_backward_w", k->args[0], k->args[1], 0);
    return finish(k, 0, x) && finish(k, 1, w);
}

// (grad_output, self, noise, lower, upper, training, self_is_result)
bool kern_rrelu_backward(K *k) {
    double low = kf(k, 3, 0), high = kf(k, 4, 0);
    bool noisy = kb(k, 5) && high - low > 1e-6;
    return finish(k, 0,
                  noisy ? CALL(k, aten_mul_Tensor, k->args[0], k->args[2])
                        : CALL(k, aten_leaky_relu_backward_default, k->args[0], k->args[1],
                               FLT((low + high) / 2), k->args[6]));
}

// (grad_output, self, target, reduction)
bool kern_soft_margin_backward(K *k) {
    enum { MEAN = 1 };
    double n = (double)tensor_numel(k->in[1]), norm = ki(k, 3, MEAN) == MEAN ? 1 / n : 1;
    return finish(k, 0,
                  point_loop3(k, "soft_margin_backward", k->args[0], k->args[1], k->args[2], norm,
                              0));
}
