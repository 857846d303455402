// composite_nn.c: CompositeImplicit ops of neural networks: normalization, pooling, padding,
// losses.
#include "core/aot/composite.h"
#include "core/aot/tape.h"

#include <float.h>
#include <string.h>

static Value first(Value tuple) {
    return item_of(tuple, 0);
}

bool rule_dropout(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    if (bool_arg(&a[2]) && float_arg(&a[1], 0) != 0)
        *out = first(CALL(t, aten_native_dropout_default, a[0], a[1], a[2]));
    else
        *out = CALL(t, aten_clone_default, a[0]);
    return true;
}

// Writes the mask's product back, as the in-place form of ATen does.
bool rule_dropout_(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    *out = a[0];
    double p = float_arg(&a[1], 0);
    if (!bool_arg(&a[2]) || p == 0)
        return true;
    Value noise = CALL(t, aten_empty_like_default, a[0]);
    noise = CALL(t, aten_bernoulli__float, noise, FLT(1 - p));
    noise = CALL(t, aten_div__Scalar, noise, FLT(1 - p));
    *out = CALL(t, aten_mul__Tensor, a[0], noise);
    return true;
}

bool rule_feature_dropout(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)t, (void)op;
    if (bool_arg(&a[2]) && float_arg(&a[1], 0) != 0)
        return false;
    *out = a[0];
    return true;
}

// Of nothing: what keeps the chain of gradients whole.
static Value batch_norm_of_nothing(Trace *t, const Value *a) {
    Value x = CALL(t, aten_clone_default, a[0]);
    if (a[1].kind == VAL_tensor)
        x = CALL(t, aten_mul_Tensor, x, CALL(t, aten_select_int, a[1], INT(0), INT(0)));
    if (a[2].kind == VAL_tensor)
        x = CALL(t, aten_add_Tensor, x, CALL(t, aten_select_int, a[2], INT(0), INT(0)));
    return x;
}

bool rule_batch_norm(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    if (expr_known_is(t, meta_numel(t->sym, a[0].tensor), 0)) {
        *out = batch_norm_of_nothing(t, a);
        return true;
    }
    *out = first(
        CALL(t, aten_native_batch_norm_default, a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7]));
    return true;
}

// The forms whose schema tells what they write.
bool rule_native_batch_norm(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    if (t->below)
        return false;
    if (a[3].kind != VAL_tensor && a[4].kind != VAL_tensor)
        *out = CALL(t, aten__native_batch_norm_legit_no_stats, a[0], a[1], a[2], a[5], a[6], a[7]);
    else if (bool_arg(&a[5]))
        *out = CALL(t, aten__native_batch_norm_legit_default, a[0], a[1], a[2], a[3], a[4], a[5],
                    a[6], a[7]);
    else
        *out = CALL(t, aten__native_batch_norm_legit_no_training_default, a[0], a[1], a[2], a[3],
                    a[4], a[6], a[7]);
    return true;
}

bool rule_instance_norm(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    const TensorMeta *m = meta_of(a[0]);
    const Expr *b = m->size[0], *c = m->size[1];
    Value shape = sizes_of(t, a[0]), per[4];
    shape.at[0] = INT(1);
    shape.at[1] = val_sym(sym_mul(t->sym, b, c));
    for (int i = 0; i < 4; i++)
        per[i] = a[1 + i].kind == VAL_tensor
                     ? CALL(t, aten_repeat_default, a[1 + i], list_of(t, val_sym(b), END))
                     : NONE;
    Value x = contiguous(t, a[0], MF_contiguous);
    x = CALL(t, aten_view_default, x, shape);
    Value r =
        CALL(t, aten_batch_norm_default, x, per[0], per[1], per[2], per[3], a[5], a[6], a[7], a[8]);
    for (int i = 2; i < 4; i++)
        if (per[i].kind == VAL_tensor) {
            Value v = CALL(t, aten_view_default, per[i], list_of(t, val_sym(b), val_sym(c), END));
            v = CALL(t, aten_mean_dim, v, list_of(t, INT(0), END));
            CALL(t, aten_copy__default, a[1 + i], v);
        }
    *out = CALL(t, aten_view_default, r, sizes_of(t, a[0]));
    return true;
}

bool rule_layer_norm(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    *out = first(CALL(t, aten_native_layer_norm_default, a[0], a[1], a[2], a[3], a[4]));
    return true;
}

bool rule_group_norm(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    const TensorMeta *m = meta_of(a[0]);
    const Expr *inner = sym_int(t->sym, 1);
    for (int i = 2; i < m->ndim; i++)
        inner = sym_mul(t->sym, inner, m->size[i]);
    Value x = contiguous(t, a[0], on_cpu(a[0]) ? suggest_memory_format(t, a[0]) : MF_contiguous);
    Value w = a[2].kind == VAL_tensor ? contiguous(t, a[2], MF_contiguous) : NONE;
    Value b = a[3].kind == VAL_tensor ? contiguous(t, a[3], MF_contiguous) : NONE;
    *out = first(CALL(t, aten_native_group_norm_default, x, w, b, val_sym(m->size[0]),
                      val_sym(m->size[1]), val_sym(inner), a[1], a[4]));
    return true;
}

// Where there is no fused kernel. C++ holds eps in the type that it computes in.
static Value rms_norm_in_parts(Trace *t, const Value *a) {
    DType d = dtype_of(a[0]), c = dtype_compute(d);
    double least = c == DT_f64 ? DBL_EPSILON : FLT_EPSILON;
    double eps = a[3].kind == VAL_none ? least : float_arg(&a[3], 0);
    Value dims = val_list(t->arena, VAL_list, a[1].n);
    for (int i = 0; i < dims.n; i++)
        dims.at[i] = INT(dim_of(a[0]) - i - 1);
    Value x = to_dtype(t, a[0], c);
    Value r = CALL(t, aten_pow_Tensor_Scalar, x, INT(2));
    r = CALL(t, aten_mean_dim, r, dims, BOOL(true));
    r = CALL(t, aten_add__Scalar, r, FLT(c == DT_f64 ? eps : (double)(float)eps));
    r = CALL(t, aten_rsqrt_default, r);
    Value y = CALL(t, aten_mul_Tensor, x, r);
    if (a[2].kind == VAL_tensor)
        y = CALL(t, aten_mul_Tensor, y, a[2]);
    if (suggest_memory_format(t, a[0]) == MF_contiguous) {
        r = contiguous(t, r, MF_contiguous); // C++ evaluates the last argument first
        y = contiguous(t, y, MF_contiguous);
    }
    return tuple_of(t, to_dtype(t, y, d), r, END);
}

bool rule_fused_rms_norm(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    if (t->below || !on_cpu(a[0]) || !dtype_is_float(dtype_of(a[0])))
        return false;
    *out = rms_norm_in_parts(t, a);
    return true;
}

bool rule_rms_norm(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    bool mixed = a[2].kind == VAL_tensor && dtype_of(a[2]) != dtype_of(a[0]);
    *out = first(mixed || suggest_memory_format(t, a[0]) != MF_contiguous
                     ? rms_norm_in_parts(t, a)
                     : CALL(t, aten__fused_rms_norm_default, a[0], a[1], a[2], a[3]));
    return true;
}

// pooling: one dimension is a row of two

static Value with_one(Trace *t, Value v, int64_t one) {
    Value x = v.kind == VAL_list || v.kind == VAL_tuple ? item_of(v, 0) : v;
    return list_of(t, INT(one), x, END);
}

bool rule_max_pool1d(Trace *t, const Op *op, const Value *a, Value *out) {
    bool both = op->id == OP_aten_max_pool1d_with_indices_default;
    bool stride = (a[2].kind == VAL_list || a[2].kind == VAL_tuple) && a[2].n > 0;
    Value x = CALL(t, aten_unsqueeze_default, a[0], INT(-2));
    Value r = CALL(t, aten_max_pool2d_with_indices_default, x, with_one(t, a[1], 1),
                   with_one(t, stride ? a[2] : a[1], 1), with_one(t, a[3], 0), with_one(t, a[4], 1),
                   a[5]);
    Value values = CALL(t, aten_squeeze_dim, item_of(r, 0), INT(-2));
    Value places = CALL(t, aten_squeeze_dim, item_of(r, 1), INT(-2));
    *out = both ? tuple_of(t, values, places, END) : values;
    return true;
}

bool rule_max_pool(Trace *t, const Op *op, const Value *a, Value *out) {
    const Op *form =
        op_find_overload("aten", arena_printf(t->arena, "%s_with_indices", op->name), "default");
    *out = first(trace_dispatch(t, form, a));
    return true;
}

bool rule_avg_pool1d(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    bool stride = (a[2].kind == VAL_list || a[2].kind == VAL_tuple) && a[2].n > 0;
    Value x = CALL(t, aten_unsqueeze_default, a[0], INT(-2));
    x = CALL(t, aten_avg_pool2d_default, x, with_one(t, a[1], 1),
             with_one(t, stride ? a[2] : a[1], 1), with_one(t, a[3], 0), a[4], a[5]);
    *out = CALL(t, aten_squeeze_dim, x, INT(-2));
    return true;
}

bool rule_adaptive_avg_pool1d(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    Value x = CALL(t, aten_unsqueeze_default, a[0], INT(-2));
    x = CALL(t, aten_adaptive_avg_pool2d_default, x, with_one(t, a[1], 1));
    *out = CALL(t, aten_squeeze_dim, x, INT(-2));
    return true;
}

bool rule_adaptive_avg_pool(Trace *t, const Op *op, const Value *a, Value *out) {
    int spatial = op->id == OP_aten_adaptive_avg_pool2d_default ? 2 : 3;
    bool one = true;
    for (int i = 0; i < spatial; i++) {
        Value v = item_of(a[1], i);
        one = one && int_arg(&v, 0) == 1;
    }
    if (one) {
        Value dims = spatial == 2 ? list_of(t, INT(-1), INT(-2), END)
                                  : list_of(t, INT(-1), INT(-2), INT(-3), END);
        *out = CALL(t, aten_mean_dim, a[0], dims, BOOL(true));
        if (spatial == 2 && suggest_memory_format(t, a[0]) == MF_channels_last) {
            Value n = val_sym(size_of(t, *out, 0)), c = val_sym(size_of(t, *out, 1));
            *out = CALL(t, aten_as_strided_default, *out, list_of(t, n, c, INT(1), INT(1), END),
                        list_of(t, c, INT(1), c, c, END));
        }
    } else if (spatial == 2) {
        *out = CALL(t, aten__adaptive_avg_pool2d_default, a[0], a[1]);
    } else {
        *out = CALL(t, aten__adaptive_avg_pool3d_default, a[0], a[1]);
    }
    return true;
}

bool rule_adaptive_max_pool1d(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    Value x = CALL(t, aten_unsqueeze_default, a[0], INT(-2));
    Value r = CALL(t, aten_adaptive_max_pool2d_default, x, with_one(t, a[1], 1));
    Value values = CALL(t, aten_squeeze_dim, item_of(r, 0), INT(-2));
    Value places = CALL(t, aten_squeeze_dim, item_of(r, 1), INT(-2));
    *out = tuple_of(t, values, places, END);
    return true;
}

bool rule_pad(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    const char *mode = a[2].kind == VAL_str ? a[2].s : "constant";
    if (strcmp(mode, "constant") == 0) {
        *out = CALL(t, aten_constant_pad_nd_default, a[0], a[1],
                    a[3].kind == VAL_none ? FLT(0) : a[3]);
        return true;
    }
    if (strcmp(mode, "circular") == 0) {
        *out = pad_circular(t, a[0], a[1]);
        return out->kind == VAL_tensor;
    }
    const char *stem = strcmp(mode, "reflect") == 0     ? "reflection"
                       : strcmp(mode, "replicate") == 0 ? "replication"
                                                        : NULL;
    const Op *form =
        stem ? op_find_overload("aten", arena_printf(t->arena, "%s_pad%dd", stem, a[1].n / 2),
                                "default")
             : NULL;
    if (!form)
        return false;
    *out = trace_dispatch(t, form, a);
    return true;
}

bool rule_embedding_bag(Trace *t, const Op *op, const Value *a, Value *out) {
    OpId id = tape_requires_grad(t, a[0]) ? OP_aten__embedding_bag_default
                                          : OP_aten__embedding_bag_forward_only_default;
    bool padded = op->n_args > 8 && a[8].kind != VAL_none;
    *out = trace_call(t, id, a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7],
                      padded ? a[8] : INT(-1), END);
    return true;
}

// losses

bool rule_nll_loss(Trace *t, const Op *op, const Value *a, Value *out) {
    *out = op->id == OP_aten_nll_loss_default
               ? first(CALL(t, aten_nll_loss_forward_default, a[0], a[1], a[2], a[3], a[4]))
               : first(CALL(t, aten_nll_loss2d_forward_default, a[0], a[1], a[2], a[3], a[4]));
    return true;
}

bool rule_nll_loss_nd(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    int n = dim_of(a[0]);
    if (n == 1 || n == 2) {
        *out = CALL(t, aten_nll_loss_default, a[0], a[1], a[2], a[3], a[4]);
        return true;
    }
    if (n == 4) {
        *out = CALL(t, aten_nll_loss2d_default, a[0], a[1], a[2], a[3], a[4]);
        return true;
    }
    Value b = val_sym(size_of(t, a[0], 0)), c = val_sym(size_of(t, a[0], 1));
    Value x = contiguous(t, a[0], MF_contiguous), target = contiguous(t, a[1], MF_contiguous);
    x = CALL(t, aten_view_default, x, list_of(t, b, c, INT(1), INT(-1), END));
    target = CALL(t, aten_view_default, target, list_of(t, b, INT(1), INT(-1), END));
    Value r = CALL(t, aten_nll_loss2d_default, x, target, a[2], a[3], a[4]);
    *out = int_arg(&a[3], 1) == 0 ? CALL(t, aten_view_default, r, sizes_of(t, a[1])) : r;
    return true;
}

static Value reduced(Trace *t, Value loss, int64_t reduction) {
    return reduction == 1   ? CALL(t, aten_mean_default, loss)
           : reduction == 2 ? CALL(t, aten_sum_default, loss)
                            : loss;
}

// The weights of classes as they meet x, whose classes lie in dimension c.
static Value class_weights(Trace *t, Value weight, Value x, int c) {
    Value shape = val_list(t->arena, VAL_list, dim_of(x));
    for (int i = 0; i < shape.n; i++)
        shape.at[i] = i == c ? val_sym(size_of(t, weight, 0)) : INT(1);
    return CALL(t, aten_view_default, weight, shape);
}

static Value probability_loss(Trace *t, const Value *a) {
    Value x = a[0], target = a[1];
    int c = dim_of(x) == 1 ? 0 : 1;
    double smooth = float_arg(&a[5], 0), classes = (double)expr_int_or(size_of(t, x, c), 1);
    x = CALL(t, aten_log_softmax_int, x, INT(c), DTY(dtype_of(x)));
    if (smooth > 0) {
        target = CALL(t, aten_mul_Scalar, target, FLT(1 - smooth));
        target = CALL(t, aten_add_Scalar, target, FLT(smooth / classes));
    }
    Value loss = CALL(t, aten_mul_Tensor, x, target);
    if (a[2].kind == VAL_tensor)
        loss = CALL(t, aten_mul_Tensor, loss, class_weights(t, a[2], x, c));
    int64_t reduction = int_arg(&a[3], 1);
    if (reduction == 0) {
        loss = CALL(t, aten_sum_dim_IntList, loss, list_of(t, INT(c), END));
        return CALL(t, aten_neg_default, loss);
    }
    loss = CALL(t, aten_sum_default, loss);
    loss = CALL(t, aten_neg_default, loss);
    const Expr *n = meta_numel(t->sym, x.tensor);
    Value rows = val_sym(sym_floordiv(t->sym, n, size_of(t, x, c)));
    return reduction == 1 ? CALL(t, aten_div_Scalar, loss, rows) : loss;
}

// What the mean of a smoothed loss is divided by: the targets that count, or their weights.
static Value counted(Trace *t, Value weight, Value target, Value ignored) {
    if (weight.kind != VAL_tensor)
        return CALL(t, aten_sum_default, CALL(t, aten_bitwise_not_default, ignored));
    Value places = flatten(t, CALL(t, aten_masked_fill_Scalar, target, ignored, INT(0)));
    Value w = CALL(t, aten_gather_default, weight, INT(0), places);
    w = CALL(t, aten_masked_fill__Scalar, w, flatten(t, ignored), INT(0));
    return CALL(t, aten_sum_default, w);
}

// A part of the probability is spread over all classes.
static Value smoothed_loss(Trace *t, const Value *a) {
    int c = dim_of(a[0]) == 1 ? 0 : 1;
    double smooth = float_arg(&a[5], 0);
    Value x = CALL(t, aten_log_softmax_int, a[0], INT(c), DTY(dtype_of(a[0])));
    Value nll = CALL(t, aten_nll_loss_nd_default, x, a[1], a[2], a[3], a[4]), loss = x;
    double classes = (double)expr_int_or(size_of(t, x, c), 1);
    if (a[2].kind == VAL_tensor)
        loss = CALL(t, aten_mul_Tensor, x, class_weights(t, a[2], x, c));
    loss = CALL(t, aten_sum_dim_IntList, loss, list_of(t, INT(c), END));
    loss = CALL(t, aten_neg_default, loss);
    Value ignored = CALL(t, aten_eq_Scalar, a[1], a[4]);
    loss = CALL(t, aten_masked_fill__Scalar, loss, ignored, FLT(0));
    int64_t reduction = int_arg(&a[3], 1);
    if (reduction == 1) { // C++ evaluates the right operand first
        Value n = counted(t, a[2], a[1], ignored);
        loss = CALL(t, aten_div_Tensor, CALL(t, aten_sum_default, loss), n);
    } else if (reduction == 2) {
        loss = CALL(t, aten_sum_default, loss);
    }
    loss = CALL(t, aten_mul_Scalar, loss, FLT(smooth / classes));
    return CALL(t, aten_add_Tensor, CALL(t, aten_mul_Scalar, nll, FLT(1 - smooth)), loss);
}

bool rule_cross_entropy(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    if (dtype_is_float(dtype_of(a[1]))) {
        *out = probability_loss(t, a);
        return true;
    }
    if (float_arg(&a[5], 0) > 0) {
        *out = smoothed_loss(t, a);
        return true;
    }
    Value x =
        CALL(t, aten_log_softmax_int, a[0], INT(dim_of(a[0]) == 1 ? 0 : 1), DTY(dtype_of(a[0])));
    *out = CALL(t, aten_nll_loss_nd_default, x, a[1], a[2], a[3], a[4]);
    return true;
}

bool rule_kl_div(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    Value loss;
    if (bool_arg(&a[3])) {
        Value d = CALL(t, aten_sub_Tensor, a[1], a[0]);
        Value e = CALL(t, aten_exp_default, a[1]);
        loss = CALL(t, aten_mul_Tensor, e, d);
    } else {
        Value p = CALL(t, aten_mul_Tensor, a[1], a[0]); // C++ evaluates the right operand first
        Value x = CALL(t, aten_xlogy_Tensor, a[1], a[1]);
        loss = CALL(t, aten_sub_Tensor, x, p);
    }
    *out = reduced(t, loss, int_arg(&a[2], 1));
    return true;
}

// grids

static Value from_minus_one(Trace *t, Value like, Value n, bool align) {
    int64_t steps = int_arg(&n, 2);
    Value dev = {.kind = VAL_device, .device = like.tensor->device};
    if (steps <= 1)
        return scalar_tensor(t, INT(0), dtype_of(like), like.tensor->device);
    Value x = CALL(t, aten_linspace_default, INT(-1), INT(1), n, DTY(dtype_of(like)), strided(),
                   dev, BOOL(false));
    if (align)
        return x;
    x = CALL(t, aten_mul_Scalar, x, INT(steps - 1));
    return CALL(t, aten_div_Scalar, x, INT(steps));
}

// The grid of the identity: (N, …, space + 1), the coordinate of the last dimension first, then 1.
static Value base_grid(Trace *t, Value like, Value size, bool align) {
    int space = size.n - 2;
    Value shape = val_list(t->arena, VAL_list, size.n);
    shape.at[0] = size.at[0];
    for (int d = 0; d < space; d++)
        shape.at[1 + d] = size.at[2 + d];
    shape.at[space + 1] = INT(space + 1);
    Value dev = {.kind = VAL_device, .device = like.tensor->device};
    Value grid = CALL(t, aten_empty_memory_format, shape, DTY(dtype_of(like)), strided(), dev);
    for (int d = 0; d < space; d++) {
        Value to = CALL(t, aten_select_int, grid, INT(-1), INT(d));
        Value x = from_minus_one(t, like, size.at[size.n - 1 - d], align);
        for (int k = 0; k < d && dim_of(x); k++)
            x = CALL(t, aten_unsqueeze__default, x, INT(-1));
        CALL(t, aten_copy__default, to, x);
    }
    CALL(t, aten_fill__Scalar, CALL(t, aten_select_int, grid, INT(-1), INT(space)), INT(1));
    return grid;
}

bool rule_affine_grid_backward(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    int space = a[1].n - 2;
    if (space != 2 && space != 3)
        return false;
    const Expr *places = sym_int(t->sym, 1), *e;
    for (int d = 0; d < space; d++)
        if (val_as_expr(t->sym, &a[1].at[2 + d], &e))
            places = sym_mul(t->sym, places, e);
    Value n = a[1].at[0], grid = base_grid(t, a[0], a[1], bool_arg(&a[2]));
    grid = CALL(t, aten_view_default, grid, list_of(t, n, val_sym(places), INT(space + 1), END));
    grid = CALL(t, aten_transpose_int, grid, INT(1), INT(2));
    Value grad = reshape(t, a[0], list_of(t, n, val_sym(places), INT(space), END));
    Value theta = CALL(t, aten_bmm_default, grid, grad);
    *out = CALL(t, aten_transpose_int, theta, INT(1), INT(2));
    return true;
}
