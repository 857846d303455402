// composite_loss.c: CompositeImplicit losses and distances, call by call as ATen's Loss.cpp and
// Distance.cpp make them (operands of C++ from right to left).
#include "core/aot/composite.h"

#include <math.h>

static Value with_format(Trace *t, OpId id, Value x, MemoryFormat mf) {
    return trace_call(t, id, x, NONE, NONE, NONE, NONE,
                      (Value){.kind = VAL_memory_format, .mf = mf}, END);
}

// Scalar minus tensor: an empty tensor is filled and subtracted from.
static Value scalar_minus(Trace *t, Value s, Value x) {
    Value y = with_format(t, OP_aten_empty_like_default, x, MF_preserve);
    y = CALL(t, aten_fill__Scalar, y, s);
    return CALL(t, aten_sub__Tensor, y, x);
}

static Value zeros(Trace *t, Value x) {
    return with_format(t, OP_aten_zeros_like_default, x, MF_contiguous);
}

static Value mul(Trace *t, Value a, Value b) {
    return CALL(t, aten_mul_Tensor, a, b);
}

static Value sub(Trace *t, Value a, Value b) {
    return CALL(t, aten_sub_Tensor, a, b);
}

static Value reduced(Trace *t, Value loss, const Value *reduction) {
    int64_t how = int_arg(reduction, 1);
    return how == 1   ? CALL(t, aten_mean_default, loss)
           : how == 2 ? CALL(t, aten_sum_default, loss)
                      : loss;
}

bool rule_l1_loss(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    *out = reduced(t, CALL(t, aten_abs_default, sub(t, a[0], a[1])), &a[2]);
    return true;
}

// (input1, input2, target, margin, reduction)
bool rule_cosine_embedding_loss(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    const double eps = (double)1e-12f;
    Value dims = list_of(t, INT(dim_of(a[2])), END);
    Value product = CALL(t, aten_sum_dim_IntList, mul(t, a[0], a[1]), dims);
    Value size1 = CALL(t, aten_sum_dim_IntList, mul(t, a[0], a[0]), dims);
    size1 = CALL(t, aten_add_Scalar, size1, FLT(eps));
    Value size2 = CALL(t, aten_sum_dim_IntList, mul(t, a[1], a[1]), dims);
    size2 = CALL(t, aten_add_Scalar, size2, FLT(eps));
    Value both = CALL(t, aten_sqrt__default, mul(t, size1, size2));
    Value cos = CALL(t, aten_div_Tensor, product, both), none = zeros(t, cos);
    Value near = scalar_minus(t, INT(1), cos);
    Value far = CALL(t, aten_clamp_min__default, CALL(t, aten_sub_Scalar, cos, a[3]), INT(0));
    near = CALL(t, aten_where_self, CALL(t, aten_eq_Scalar, a[2], INT(1)), near, none);
    far = CALL(t, aten_where_self, CALL(t, aten_eq_Scalar, a[2], INT(-1)), far, none);
    *out = reduced(t, CALL(t, aten_add_Tensor, near, far), &a[4]);
    return true;
}

// (self, target, margin, reduction)
bool rule_hinge_embedding_loss(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    Value none = zeros(t, a[0]);
    Value far = CALL(t, aten_clamp_min__default, scalar_minus(t, a[2], a[0]), INT(0));
    far = CALL(t, aten_where_self, CALL(t, aten_ne_Scalar, a[1], INT(1)), far, none);
    Value near = CALL(t, aten_where_self, CALL(t, aten_ne_Scalar, a[1], INT(-1)), a[0], none);
    *out = reduced(t, CALL(t, aten_add_Tensor, far, near), &a[3]);
    return true;
}

// (input1, input2, target, margin, reduction)
bool rule_margin_ranking_loss(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    Value d = sub(t, a[0], a[1]);
    Value loss = mul(t, CALL(t, aten_neg_default, a[2]), d);
    loss = CALL(t, aten_add_Scalar, loss, a[3]);
    *out = reduced(t, CALL(t, aten_clamp_min__default, loss, INT(0)), &a[4]);
    return true;
}

// (input, target, log_input, full, eps, reduction)
bool rule_poisson_nll_loss(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    Value x = a[0], y = a[1], loss;
    if (bool_arg(&a[2])) {
        Value product = mul(t, y, x);
        loss = sub(t, CALL(t, aten_exp_default, x), product);
    } else {
        Value l = CALL(t, aten_log_default, CALL(t, aten_add_Scalar, x, a[4]));
        loss = sub(t, x, mul(t, y, l));
    }
    if (bool_arg(&a[3])) { // Stirling's approximation of log y!
        Value l = CALL(t, aten_log_default, CALL(t, aten_mul_Scalar, y, FLT(2 * M_PI)));
        l = CALL(t, aten_mul_Scalar, l, FLT(0.5));
        Value s = sub(t, mul(t, y, CALL(t, aten_log_default, y)), y);
        s = CALL(t, aten_add_Tensor, s, l);
        Value small = CALL(t, aten_le_Scalar, y, INT(1));
        loss = CALL(t, aten_add__Tensor, loss, CALL(t, aten_masked_fill_Scalar, s, small, INT(0)));
    }
    *out = reduced(t, loss, &a[5]);
    return true;
}

static Value distance(Trace *t, Value x, Value y, Value p, Value eps, Value keepdim) {
    int dim = (dim_of(x) > dim_of(y) ? dim_of(x) : dim_of(y)) - 1;
    Value d = CALL(t, aten_add_Scalar, sub(t, x, y), eps);
    return CALL(t, aten_norm_ScalarOpt_dim, d, p, list_of(t, INT(dim), END), keepdim);
}

// (x1, x2, p, eps, keepdim)
bool rule_pairwise_distance(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    *out = distance(t, a[0], a[1], a[2], a[3], a[4]);
    return true;
}

// (anchor, positive, negative, margin, p, eps, swap, reduction)
bool rule_triplet_margin_loss(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    Value near = distance(t, a[0], a[1], a[4], a[5], BOOL(false));
    Value far = distance(t, a[0], a[2], a[4], a[5], BOOL(false));
    if (bool_arg(&a[6]))
        far = CALL(t, aten_minimum_default, far, distance(t, a[1], a[2], a[4], a[5], BOOL(false)));
    Value loss = sub(t, CALL(t, aten_add_Scalar, near, a[3]), far);
    *out = reduced(t, CALL(t, aten_clamp_min_default, loss, INT(0)), &a[7]);
    return true;
}

bool rule_multilabel_margin_loss(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    *out = item_of(CALL(t, aten_multilabel_margin_loss_forward_default, a[0], a[1], a[2]), 0);
    return true;
}

// A list of numbers as a tensor.
static Value as_tensor(Trace *t, const Value *v, DType d) {
    Value list = val_list(t->arena, VAL_list, v->n);
    for (int i = 0; i < v->n; i++)
        list.at[i] = CALL(t, aten_scalar_tensor_default, v->at[i], DTY(d));
    return CALL(t, aten_stack_default, list);
}

// (log_probs, targets, input_lengths, target_lengths, blank, reduction, zero_infinity)
bool rule_ctc_loss(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    bool one = meta_of(a[0])->ndim != 3, tensors = a[3].kind == VAL_tensor;
    int64_t how = int_arg(&a[5], 1);
    Value x = one ? CALL(t, aten_unsqueeze_default, a[0], INT(1)) : a[0];
    Value targets = CALL(t, aten_to_dtype, a[1], DTY(DT_i64));
    Value r = tensors ? CALL(t, aten__ctc_loss_Tensor, x, targets, a[2], a[3], a[4], a[6])
                      : CALL(t, aten__ctc_loss_default, x, targets, a[2], a[3], a[4], a[6]);
    r = item_of(r, 0);
    if (bool_arg(&a[6]))
        r = CALL(t, aten_where_ScalarSelf, CALL(t, aten_eq_Scalar, r, FLT((double)INFINITY)),
                 FLT(0), r);
    if (how == 1) {
        Value n = tensors ? a[3] : as_tensor(t, &a[3], meta_of(r)->dtype);
        r = CALL(t, aten_mean_default,
                 CALL(t, aten_div_Tensor, r, CALL(t, aten_clamp_min_default, n, INT(1))));
    } else if (how == 2)
        r = CALL(t, aten_sum_default, r);
    else if (one)
        r = CALL(t, aten_squeeze_dim, r, INT(0));
    *out = r;
    return true;
}
