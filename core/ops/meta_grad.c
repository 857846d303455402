// meta_grad.c: metadata of gradients of activations that are no plain elementwise op.
#include <math.h>

#include "core/ops/meta.h"

// rrelu_with_noise_backward: grad * noise, or leaky_relu_backward(grad, self).
bool meta_rrelu_backward(MetaCtx *m, const Op *op, const Value *args, Value *out) {
    double low = args[3].kind == VAL_float ? args[3].f : (double)meta_arg_int(op, args, "lower", 0);
    double high =
        args[4].kind == VAL_float ? args[4].f : (double)meta_arg_int(op, args, "upper", 0);
    bool noisy = meta_arg_bool(op, args, "training") && fabs(high - low) > 1e-6;
    const Value both[2] = {args[0], args[noisy ? 2 : 1]};
    const TensorMeta *t[2] = {both[0].tensor, both[1].tensor};
    if (both[0].kind != VAL_tensor || both[1].kind != VAL_tensor)
        return false;
    return meta_out(out, meta_iterate(m, ops_result_type(both, 2), t, 2, false));
}

// infinitely_differentiable_gelu_backward: written in place into what is made of self.
bool meta_gelu_backward_again(MetaCtx *m, const Op *op, const Value *args, Value *out) {
    const TensorMeta *self = meta_arg_tensor(op, args, "self"), *grad = meta_self(m, op, args);
    if (!self || !grad)
        return false;
    const TensorMeta *both[2] = {self, grad};
    int ndim;
    const Expr **size = ops_broadcast(m, both, 2, &ndim);
    bool fits = size && ndim == self->ndim;
    for (int i = 0; fits && i < ndim; i++)
        fits = meta_eq(m, size[i], self->size[i]);
    if (size && !fits)
        meta_fail(m, "RuntimeError: output with shape %s doesn't match the broadcast shape %s",
                  meta_sizes_text(m, self->size, self->ndim), meta_sizes_text(m, size, ndim));
    return fits && meta_out(out, meta_iterate(m, meta_float_of(self->dtype), &self, 1, true));
}
