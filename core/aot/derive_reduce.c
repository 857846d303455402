// derive_reduce.c: derivatives of reductions: the gradient of a result is spread over what was
// reduced to it.
#include "core/aot/derive.h"

#include <math.h>

static Value sum_over(Trace *t, Value x, Value dims) {
    return CALL(t, aten_sum_dim_IntList, x, dims, BOOL(true));
}

static Value no_dims(Trace *t) {
    return val_list(t->arena, VAL_list, 0);
}

static bool is_given(const Value *dims) {
    return dims->kind == VAL_list && dims->n;
}

// dims as a mask over ndim dimensions; none: all of them.
static bool *dim_mask(Trace *t, Value dims, int ndim) {
    bool *mask = ARENA_ARRAY(t->arena, ndim + 1, bool);
    for (int i = 0; is_none(&dims) && i < ndim; i++)
        mask[i] = true;
    for (int i = 0; i < dims.n; i++)
        mask[wrap_dim(t, int_arg(&dims.at[i], 0), ndim)] = true;
    return mask;
}

static Value unsqueeze_multiple(Trace *t, Value x, Value dims, int ndim) {
    if (!is_none(&dims) && dims.n < 2)
        return dims.n ? CALL(t, aten_unsqueeze_default, x, dims.at[0]) : x;
    bool *mask = dim_mask(t, dims, ndim);
    for (int i = 0; i < ndim; i++)
        if (mask[i])
            x = CALL(t, aten_unsqueeze_default, x, INT(i));
    return x;
}

static Value sum_backward(Trace *t, Value grad, Value sizes, Value dims, bool keepdim) {
    if (!keepdim && sizes.n && is_given(&dims))
        grad = unsqueeze_multiple(t, grad, dims, sizes.n);
    return CALL(t, aten_expand_default, grad, sizes);
}

// Number of elements in the dimensions (_safe_size), or in all.
static const Expr *count_in(Trace *t, Value x, Value dims) {
    const TensorMeta *m = meta_of(x);
    if (!is_given(&dims))
        return meta_numel(t->sym, m);
    const Expr *n = sym_int(t->sym, 1);
    for (int i = 0; m->ndim && i < dims.n; i++)
        n = sym_mul(t->sym, n, size_of(t, x, (int)int_arg(&dims.at[i], 0)));
    return n;
}

static Value mean_backward(Trace *t, Value grad, Value x, Value dims, bool keepdim) {
    Value n = val_sym(count_in(t, x, dims));
    return CALL(t, aten_div_Scalar, sum_backward(t, grad, sizes_arg(t, x), dims, keepdim), n);
}

// sums and means

void derive_sum(Back *b) {
    OUT(0) = CALL(b->t, aten_expand_default, GRAD, sizes_arg(b->t, ARG(0)));
}

void derive_sum_dim(Back *b) {
    OUT(0) = sum_backward(b->t, GRAD, sizes_arg(b->t, ARG(0)), ARG(1), bool_arg(&ARG(2)));
}

void derive_nansum(Back *b) {
    Trace *t = b->t;
    Value grad = to_dtype(t, GRAD, dtype_of(ARG(0)));
    Value number = CALL(t, aten_logical_not_default, CALL(t, aten_isnan_default, ARG(0)));
    OUT(0) =
        times(t, sum_backward(t, grad, sizes_arg(t, ARG(0)), ARG(1), bool_arg(&ARG(2))), number);
}

void derive_mean(Back *b) {
    Trace *t = b->t;
    Value spread = CALL(t, aten_expand_default, GRAD, sizes_arg(t, ARG(0)));
    OUT(0) = CALL(t, aten_div_Scalar, spread, numel_of(t, ARG(0)));
}

void derive_mean_dim(Back *b) {
    OUT(0) = mean_backward(b->t, GRAD, ARG(0), ARG(1), bool_arg(&ARG(2)));
}

// products: of all elements but one, from both sides, so that zeros do no harm

static Value prod_safe_zeros(Trace *t, Value grad, Value x, int dim) {
    if (t->failed)
        return grad;
    if (expr_guard_is(t, meta_numel(t->sym, meta_of(x)), 0))
        return CALL(t, aten_expand_default, grad, sizes_arg(t, x));
    const Expr *n = size_of(t, x, dim);
    if (expr_guard_is(t, n, 1))
        return grad;
    Value one_size = sizes_arg(t, x), along = list_of(t, INT(dim), END);
    one_size.at[dim] = INT(1);
    Value ones = ones_of(t, one_size, grad), rest = val_sym(sym_add_int(t->sym, n, -1));
    Value before = list_of(t, ones, CALL(t, aten_narrow_default, x, INT(dim), INT(0), rest), END);
    before = CALL(t, aten_cumprod_default, CALL(t, aten_cat_default, before, INT(dim)), INT(dim));
    Value after = CALL(t, aten_narrow_default, x, INT(dim), INT(1), rest);
    after = list_of(t, ones, CALL(t, aten_flip_default, after, along), END);
    after = CALL(t, aten_cumprod_default, CALL(t, aten_cat_default, after, INT(dim)), INT(dim));
    after = CALL(t, aten_flip_default, after, along);
    return times(t, grad, times(t, before, after));
}

void derive_prod(Back *b) {
    Trace *t = b->t;
    Value x = to_dtype(t, ARG(0), dtype_of(GRAD));
    OUT(0) = GRAD;
    if (!dim_of(x) || t->failed)
        return;
    Value flat = contiguous(t, x, MF_contiguous);
    flat = CALL(t, aten_view_default, flat, list_of(t, INT(-1), END));
    OUT(0) = CALL(t, aten_view_default, prod_safe_zeros(t, GRAD, flat, 0), sizes_arg(t, x));
}

void derive_prod_dim(Back *b) {
    Trace *t = b->t;
    Value x = to_dtype(t, ARG(0), dtype_of(GRAD)), grad = GRAD;
    OUT(0) = grad;
    if (!dim_of(x) || t->failed)
        return;
    int dim = wrap_dim(t, int_arg(&ARG(1), 0), dim_of(x));
    if (!bool_arg(&ARG(2))) {
        grad = CALL(t, aten_unsqueeze_default, grad, INT(dim));
        CALL(t, aten_unsqueeze_default, RES(0), INT(dim)); // unused, but it takes its number
    }
    OUT(0) = prod_safe_zeros(t, grad, x, dim);
}

// variance

// A float computed from a size, as a node of the graph; text: as sympy writes it.
static Value sym_float(Trace *t, OpId id, Value a, Value b, int n, const char *text) {
    const Op *op = op_at(id);
    Value args[2] = {trace_node_value(t, &a), trace_node_value(t, &b)};
    if (t->failed)
        return NONE;
    Node *node = graph_call(t->graph, op, op->name, args, n, NULL, 0);
    node->stack = t->stack;
    node->seq_nr = t->seq_nr;
    node->flags |= t->flags;
    node->val = (Value){.kind = VAL_symfloat, .s = text};
    map_put_id(&t->floats, (uintptr_t)text, node);
    return node->val;
}

static const char *float_text(Trace *t, double f) {
    Buf b = {.arena = t->arena};
    buf_py_float(&b, f);
    return buf_str(&b);
}

static Value float_of(Trace *t, const Expr *n) {
    int64_t known;
    if (expr_int(n, &known))
        return FLT((double)known);
    const char *text = arena_printf(t->arena, "ToFloat(%s)", sym_str(t->arena, n));
    return sym_float(t, OP_torch_sym_float, val_sym(n), NONE, 1, text);
}

static Value float_minus(Trace *t, Value a, double b) {
    if (a.kind == VAL_float)
        return FLT(a.f - b);
    const char *text = arena_printf(t->arena, "%s - %s", a.s, float_text(t, b));
    return a.kind == VAL_symfloat ? sym_float(t, OP_operator_sub, a, FLT(b), 2, text) : a;
}

static Value two_over(Trace *t, Value a) {
    if (a.kind == VAL_float)
        return FLT(2.0 / a.f);
    const char *text = arena_printf(t->arena, "FloatTrueDiv(2.0, %s)", a.s);
    return a.kind == VAL_symfloat ? sym_float(t, OP_operator_truediv, FLT(2.0), a, 2, text) : a;
}

// Of all elements. Without a degree of freedom: infinite, or NaN at the mean itself.
static Value var_all_backward(Trace *t, Value grad, Value x, double correction) {
    const Expr *n = meta_numel(t->sym, meta_of(x));
    Value dof = float_minus(t, float_of(t, n), correction);
    const Expr *least = sym_int(t->sym, (int64_t)floor(correction));
    bool none = expr_guard(t, sym_cmp(t->sym, SYM_le, n, least));
    Value mean = CALL(t, aten_mean_default, x);
    if (none) {
        Value at_mean = CALL(t, aten_eq_Tensor, x, mean);
        return times(t, grad,
                     CALL(t, aten_where_Scalar, at_mean, FLT((double)NAN), FLT((double)INFINITY)));
    }
    Value away = CALL(t, aten_sub_Tensor, x, mean);
    return times(t, CALL(t, aten_mul_Scalar, grad, two_over(t, dof)), away);
}

static Value var_backward(Trace *t, Value grad, Value x, Value dims, Value correction_arg,
                          bool keepdim) {
    double correction = float_arg(&correction_arg, 1);
    if (!dim_of(x) || is_none(&dims))
        return var_all_backward(t, grad, x, correction);
    if (!keepdim && dim_of(x) > 1)
        grad = unsqueeze_multiple(t, grad, dims, dim_of(x));
    Value n = float_of(t, dims.n ? count_in(t, x, dims) : sym_int(t->sym, 1));
    Value away = CALL(t, aten_sub_Tensor, x, CALL(t, aten_mean_dim, x, dims, BOOL(true)));
    Value scale = two_over(t, float_minus(t, n, correction));
    return times(t, CALL(t, aten_mul_Scalar, grad, scale), away);
}

static Value std_backward(Trace *t, Value std, Value grad, Value x, Value dims, Value correction,
                          bool keepdim) {
    Value g = CALL(t, aten_div_Tensor, grad, CALL(t, aten_mul_Scalar, std, INT(2)));
    Value zero = CALL(t, aten_eq_Scalar, std, INT(0));
    CALL(t, aten_masked_fill__Scalar, g, zero, INT(0));
    return var_backward(t, g, x, dims, correction, keepdim);
}

void derive_var(Back *b) {
    OUT(0) = var_backward(b->t, GRAD, ARG(0), ARG(1), ARG(2), bool_arg(&ARG(3)));
}

void derive_std(Back *b) {
    OUT(0) = std_backward(b->t, RES(0), GRAD, ARG(0), ARG(1), ARG(2), bool_arg(&ARG(3)));
}

// What came through the mean is added to what came through the deviation.
static void with_mean(Back *b, Value own) {
    Trace *t = b->t;
    OUT(0) = own;
    if (is_none(&GRADS(1)))
        return;
    Value dims = is_none(&ARG(1)) ? no_dims(t) : ARG(1);
    Value mean = mean_backward(t, GRADS(1), ARG(0), dims, bool_arg(&ARG(3)));
    OUT(0) = is_none(&own) ? mean : CALL(t, aten_add_Tensor, own, mean);
}

void derive_var_mean(Back *b) {
    with_mean(b, is_none(&GRAD)
                     ? NONE
                     : var_backward(b->t, GRAD, ARG(0), ARG(1), ARG(2), bool_arg(&ARG(3))));
}

void derive_std_mean(Back *b) {
    with_mean(b, is_none(&GRAD)
                     ? NONE
                     : std_backward(b->t, RES(0), GRAD, ARG(0), ARG(1), ARG(2), bool_arg(&ARG(3))));
}

// extremes: shared out evenly among all that are equal to the result

static Value restore_reduced_dims(Trace *t, Value x, Value dims, bool keepdim) {
    if (keepdim || t->failed)
        return x;
    int n = dim_of(x) + dims.n, from = 0;
    bool *reduced = dim_mask(t, dims, n);
    Value size = val_list(t->arena, VAL_list, n);
    for (int i = 0; i < n; i++)
        size.at[i] = reduced[i] || from >= dim_of(x) ? INT(1) : val_sym(size_of(t, x, from++));
    return reshape(t, x, size);
}

void derive_amax(Back *b) {
    Trace *t = b->t;
    bool keepdim = bool_arg(&ARG(2));
    Value result = restore_reduced_dims(t, RES(0), ARG(1), keepdim);
    Value mask = CALL(t, aten_eq_Tensor, result, ARG(0));
    Value grad = restore_reduced_dims(t, GRAD, ARG(1), keepdim);
    OUT(0) = times(t, CALL(t, aten_div_Tensor, grad, sum_over(t, mask, ARG(1))), mask);
}

void derive_max_all(Back *b) {
    Trace *t = b->t;
    Value x_nan = CALL(t, aten_isnan_default, ARG(0)), nan = CALL(t, aten_isnan_default, RES(0));
    Value both = CALL(t, aten_logical_and_default, x_nan, nan);
    Value mask = CALL(t, aten_eq_Tensor, ARG(0), RES(0));
    mask = CALL(t, aten_logical_or_default, mask, both);
    Value share = CALL(t, aten_div_Tensor, GRAD, CALL(t, aten_sum_default, mask));
    OUT(0) = times(t, mask, share);
}

// norms

static Value masked_zero(Trace *t, Value x, Value zero_of) {
    return CALL(t, aten_masked_fill_Scalar, x, CALL(t, aten_eq_Scalar, zero_of, INT(0)), INT(0));
}

static Value power(Trace *t, Value x, double p) {
    return CALL(t, aten_pow_Tensor_Scalar, x, FLT(p));
}

static Value sgn(Trace *t, Value x) {
    return CALL(t, aten_sgn_default, x);
}

static Value max_norm_backward(Trace *t, Value grad, Value x, Value norm, Value dims) {
    Value size = CALL(t, aten_abs_default, x);
    Value mask = CALL(t, aten_eq_Tensor, size, norm);
    mask = CALL(t, aten_logical_or_default, mask, CALL(t, aten_isnan_default, size));
    Value share = CALL(t, aten_div_Tensor, grad, sum_over(t, mask, dims));
    share = times(t, share, mask);
    return times(t, sgn(t, x), share);
}

// dims: a list; without keepdim grad and norm get the reduced dimensions back first.
static Value norm_backward(Trace *t, Value grad, Value x, Value p_arg, Value norm, Value dims,
                           bool keepdim) {
    double p = float_arg(&p_arg, 2);
    if (!keepdim && dim_of(x)) {
        grad = unsqueeze_multiple(t, grad, dims, dim_of(x));
        norm = unsqueeze_multiple(t, norm, dims, dim_of(x));
    }
    if (p == 0)
        return NONE;
    if (p == 1)
        return times(t, sgn(t, x), grad);
    if (p == 2)
        return times(t, grad, masked_zero(t, CALL(t, aten_div_Tensor, x, norm), norm));
    if (isinf(p))
        return max_norm_backward(t, grad, x, norm, dims);
    if (p < 1) {
        Value s = masked_zero(t, power(t, CALL(t, aten_abs_default, x), p - 1), x);
        s = times(t, sgn(t, x), s);
        Value n = power(t, norm, 1 - p);
        return times(t, times(t, s, grad), n);
    }
    Value s = power(t, CALL(t, aten_abs_default, x), p < 2 ? p - 1 : p - 2);
    s = times(t, p < 2 ? sgn(t, x) : x, s);
    Value v = CALL(t, aten_div_Tensor, grad, power(t, norm, p - 1));
    return times(t, s, masked_zero(t, v, norm));
}

void derive_norm(Back *b) {
    OUT(0) = norm_backward(b->t, GRAD, ARG(0), ARG(1), RES(0), no_dims(b->t), true);
}

void derive_norm_dtype(Back *b) {
    Value x = to_dtype(b->t, ARG(0), dtype_of(GRAD));
    OUT(0) = norm_backward(b->t, GRAD, x, ARG(1), RES(0), no_dims(b->t), true);
}

void derive_norm_dim(Back *b) {
    OUT(0) = norm_backward(b->t, GRAD, ARG(0), ARG(1), RES(0), ARG(2), bool_arg(&ARG(3)));
}

void derive_norm_dim_dtype(Back *b) {
    Value x = to_dtype(b->t, ARG(0), dtype_of(GRAD));
    OUT(0) = norm_backward(b->t, GRAD, x, ARG(1), RES(0), ARG(2), bool_arg(&ARG(3)));
}

void derive_vector_norm(Back *b) {
    Value dims = is_none(&ARG(2)) ? no_dims(b->t) : ARG(2);
    OUT(0) = norm_backward(b->t, GRAD, ARG(0), ARG(1), RES(0), dims, bool_arg(&ARG(3)));
}

static Value dist_backward(Back *b) {
    Value away = CALL(b->t, aten_sub_Tensor, ARG(0), ARG(1));
    return norm_backward(b->t, GRAD, away, ARG(2), RES(0), no_dims(b->t), true);
}

void derive_dist(Back *b) {
    if (NEEDS(1)) {
        Value g = dist_backward(b);
        OUT(1) = is_none(&g) ? g : CALL(b->t, aten_neg_default, g);
    }
    if (NEEDS(0))
        OUT(0) = dist_backward(b);
}

// at::toAccumulateType of a floating type
static DType accumulate_type(DType d, bool cpu) {
    return d == DT_f16 || d == DT_bf16 ? DT_f32 : d == DT_f32 && cpu ? DT_f64 : d;
}

void derive_renorm(Back *b) {
    Trace *t = b->t;
    Value x = ARG(0), grad = GRAD, max = ARG(3), dims = val_list(t->arena, VAL_list, 0);
    int ndim = dim_of(x), dim = wrap_dim(t, int_arg(&ARG(2), 0), ndim);
    dims.at = ARENA_ARRAY(t->arena, ndim + 1, Value);
    for (int i = 0; i < ndim; i++)
        if (i != dim)
            dims.at[dims.n++] = INT(i);
    Value type = DTY(accumulate_type(dtype_of(x), on_cpu(x)));
    Value norm = CALL(t, aten_linalg_vector_norm_default, x, ARG(1), dims, BOOL(true), type);
    Value sums = CALL(t, aten_sum_dim_IntList, times(t, x, grad), dims, BOOL(true), type);
    Value nb = norm_backward(t, sums, x, ARG(1), norm, dims, true);
    Value inverse = CALL(t, aten_add_Scalar, norm, FLT(1e-7));
    inverse = CALL(t, aten_reciprocal_default, inverse);
    if (is_none(&nb)) { // p is 0, which has no gradient
        trace_fail(t, "RuntimeError: derivative for renorm with p = 0 is not implemented");
        return;
    }
    Value rest = CALL(t, aten_sub_Tensor, grad, times(t, inverse, nb));
    Value scaled = times(t, CALL(t, aten_mul_Scalar, inverse, max), rest);
    scaled = to_dtype(t, scaled, dtype_of(grad));
    OUT(0) = CALL(t, aten_where_self, CALL(t, aten_gt_Scalar, norm, max), scaled, grad);
}

// exponentials

void derive_logsumexp(Back *b) {
    Trace *t = b->t;
    Value grad = GRAD, result = RES(0);
    int ndim = dim_of(ARG(0));
    if (!bool_arg(&ARG(2)) && ndim) {
        grad = unsqueeze_multiple(t, grad, ARG(1), ndim);
        result = unsqueeze_multiple(t, result, ARG(1), ndim);
    }
    Value share = CALL(t, aten_exp_default, CALL(t, aten_sub_Tensor, ARG(0), result));
    OUT(0) = times(t, grad, share);
}

void derive_softmax(Back *b) {
    OUT(0) = CALL(b->t, aten__softmax_backward_data_default, GRAD, RES(0), ARG(1),
                  DTY(dtype_of(ARG(0))));
}

// The gradient of the first backward, (grad_output, output, dim, input_dtype).
void derive_softmax_backward(Back *b) {
    Trace *t = b->t;
    Value go = ARG(0), y = ARG(1), dims = list_of(t, ARG(2), END);
    if (NEEDS(0))
        OUT(0) = CALL(t, aten__softmax_backward_data_default, to_dtype(t, GRAD, dtype_of(y)), y,
                      ARG(2), ARG(3));
    if (NEEDS(1)) {
        Value g = to_dtype(t, GRAD, dtype_of(y));
        Value third = times(t, go, sum_over(t, times(t, y, g), dims));
        Value second = times(t, sum_over(t, times(t, y, go), dims), g);
        Value both = CALL(t, aten_sub_Tensor, times(t, go, g), second);
        OUT(1) = to_dtype(t, CALL(t, aten_sub_Tensor, both, third), dtype_of(y));
    }
}

void derive_log_softmax_backward(Back *b) {
    Trace *t = b->t;
    Value go = ARG(0), y = ARG(1), dims = list_of(t, ARG(2), END);
    if (NEEDS(0)) {
        Value weighted = CALL(t, aten_exp_default, y);
        weighted = times(t, to_dtype(t, GRAD, dtype_of(y)), weighted);
        weighted = sum_over(t, weighted, dims);
        OUT(0) = CALL(t, aten_sub_Tensor, to_dtype(t, GRAD, dtype_of(y)), weighted);
    }
    if (NEEDS(1)) {
        Value g = to_dtype(t, GRAD, dtype_of(y)), e = CALL(t, aten_exp_default, y);
        Value s = CALL(t, aten_neg_default, sum_over(t, go, dims));
        OUT(1) = to_dtype(t, times(t, times(t, s, e), g), dtype_of(y));
    }
}

void derive_log_softmax(Back *b) {
    OUT(0) = CALL(b->t, aten__log_softmax_backward_data_default, GRAD, RES(0), ARG(1),
                  DTY(dtype_of(ARG(0))));
}
