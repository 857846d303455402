// composite_grad.c: CompositeImplicit ops that formulas of derivatives are written with, as ATen's
// C++ carries them out on tensors that are traced: zeros, and a scatter that is no write.
#include "core/aot/composite.h"

#include <math.h>

// at::zeros(sizes, like.options())
static Value zeros_of(Trace *t, Value sizes, Value like) {
    return CALL(t, aten_zeros_default, sizes, DTY(dtype_of(like)), strided(),
                (Value){.kind = VAL_device, .device = like.tensor->device});
}

// (grad, dim, indices, sizes, keepdim)
bool rule_value_selecting_backward(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    Value grad = a[0], index = a[2];
    if (!bool_arg(&a[4]) && a[3].n) {
        grad = CALL(t, aten_unsqueeze_default, grad, a[1]);
        index = CALL(t, aten_unsqueeze_default, index, a[1]);
    }
    Value x = zeros_of(t, a[3], grad);
    *out = CALL(t, aten_scatter_src, x, a[1], index, grad);
    return true;
}

// (grad, self_sizes, dim, index)
bool rule_index_select_backward(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    Value x = CALL(t, aten_new_zeros_default, a[0], a[1]);
    *out = CALL(t, aten_index_add_default, x, a[2], a[3], a[0]);
    return true;
}

// (grad, self, dim, index, sparse_grad)
bool rule_gather_backward(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    Value x = CALL(t, aten_new_zeros_default, a[0], sizes_of(t, a[1]));
    *out = CALL(t, aten_scatter_add_default, x, a[2], a[3], a[0]);
    return true;
}

// (grad, input, mask)
bool rule_masked_select_backward(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    Value both = CALL(t, aten_broadcast_tensors_default, list_of(t, a[1], a[2], END));
    Value x = CALL(t, aten_zeros_like_default, item_of(both, 0), NONE, NONE, NONE, NONE,
                   (Value){.kind = VAL_memory_format, .mf = MF_contiguous});
    *out = CALL(t, aten_masked_scatter_default, x, a[2], a[0]);
    return true;
}

// (grad, sizes): the gradient on the diagonal; of tall matrices behind its end, too, as in PyTorch
bool rule_trace_backward(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    const Expr *rows, *cols;
    if (a[1].n != 2 || !val_as_expr(t->sym, &a[1].at[0], &rows) ||
        !val_as_expr(t->sym, &a[1].at[1], &cols))
        return false;
    Value n = val_sym(sym_mul(t->sym, rows, cols));
    Value x = zeros_of(t, list_of(t, n, END), a[0]);
    Value at =
        CALL(t, aten_arange_start_step, INT(0), n, val_sym(sym_add_int(t->sym, cols, 1)),
             DTY(DT_i64), strided(), (Value){.kind = VAL_device, .device = a[0].tensor->device});
    x = CALL(t, aten_index_fill_int_Tensor, x, INT(0), at, a[0]);
    *out = CALL(t, aten_view_default, x, a[1]);
    return true;
}

// (grad, input, indices, dim)
bool rule_cummaxmin_backward(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    Value x = zeros_of(t, sizes_of(t, a[1]), a[1]);
    *out = CALL(t, aten_scatter_add_default, x, a[3], a[2], a[0]);
    return true;
}

// (grad, indices, num_weights, padding_idx, scale_grad_by_freq, sparse)
bool rule_embedding_backward(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    if (bool_arg(&a[5]))
        return false;
    *out = CALL(t, aten_embedding_dense_backward_default, a[0], a[1], a[2], a[3], a[4]);
    return true;
}

// (grad, self): cdf + x * pdf, without writes
bool rule_gelu_backward_again(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    Value x = a[1];
    Value cdf = CALL(t, aten_erf_default, CALL(t, aten_mul_Tensor, x, FLT(M_SQRT1_2)));
    cdf = CALL(t, aten_mul_Tensor, CALL(t, aten_add_Tensor, cdf, FLT(1)), FLT(0.5));
    Value pdf = CALL(t, aten_mul_Tensor, CALL(t, aten_mul_Tensor, x, FLT(-0.5)), x);
    pdf = CALL(t, aten_exp_default, pdf);
    Value r = CALL(t, aten_addcmul_default, cdf, x, pdf, FLT(M_2_SQRTPI * M_SQRT1_2 * 0.5));
    *out = CALL(t, aten_mul_Tensor, r, a[0]);
    return true;
}
