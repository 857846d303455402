// derive_scan.c: derivatives of scans, of sorting, and of reductions that choose one element.
#include "core/aot/derive.h"

#include <float.h>

// choices: the gradient goes to where the value came from

static void scatter_choice(Back *b, int dim_arg, bool keepdim) {
    Trace *t = b->t;
    Value grad = GRAD, at = RES(1), dim = ARG(dim_arg);
    if (!keepdim && dim_of(ARG(0))) {
        grad = CALL(t, aten_unsqueeze_default, grad, dim);
        at = CALL(t, aten_unsqueeze_default, at, dim);
    }
    OUT(0) = CALL(t, aten_scatter_src, zeros_of(t, sizes_arg(t, ARG(0)), grad), dim, at, grad);
}

void derive_max_dim(Back *b) {
    scatter_choice(b, 1, bool_arg(&ARG(2)));
}

void derive_kthvalue(Back *b) {
    scatter_choice(b, 2, bool_arg(&ARG(3)));
}

void derive_sort(Back *b) {
    scatter_choice(b, 1, true);
}

// sort.stable and topk have one argument more before the dimension
void derive_topk(Back *b) {
    scatter_choice(b, 2, true);
}

void derive_cummax(Back *b) {
    Trace *t = b->t;
    OUT(0) = ARG(0);
    if (expr_guard_is(t, meta_numel(t->sym, meta_of(ARG(0))), 0))
        return;
    Value zeros = zeros_of(t, sizes_arg(t, ARG(0)), ARG(0));
    OUT(0) = CALL(t, aten_scatter_add_default, zeros, ARG(1), RES(1), GRAD);
}

// scans

static bool is_one_element(Trace *t, Value x) {
    const Expr *n = meta_numel(t->sym, meta_of(x));
    return expr_guard(t, sym_cmp(t->sym, SYM_le, n, sym_int(t->sym, 1)));
}

void derive_cumsum(Back *b) {
    Trace *t = b->t;
    Value grad = to_dtype(t, GRAD, dtype_of(ARG(0)));
    OUT(0) = grad;
    if (t->failed || is_one_element(t, grad) ||
        expr_guard_is(t, size_of(t, grad, (int)int_arg(&ARG(1), 0)), 1))
        return;
    Value along = list_of(t, ARG(1), END);
    grad = CALL(t, aten_flip_default, grad, along);
    grad = CALL(t, aten_cumsum_default, grad, ARG(1));
    OUT(0) = CALL(t, aten_flip_default, grad, along);
}

// The products of which element k is left out, from place k on.
static Value omitted_products(Trace *t, Value x, int dim, int64_t k, int64_t n, Value ones) {
    Value d = INT(dim);
    if (k == n - 1)
        return CALL(t, aten_prod_dim_int, CALL(t, aten_slice_Tensor, x, d, INT(0), INT(k)), d,
                    BOOL(true));
    Value until = ones;
    if (k)
        until = CALL(t, aten_prod_dim_int, CALL(t, aten_slice_Tensor, x, d, INT(0), INT(k)), d,
                     BOOL(true));
    Value after = CALL(t, aten_cumprod_default, CALL(t, aten_slice_Tensor, x, d, INT(k + 1)), d);
    if (k) {
        Value spread = CALL(t, aten_expand_default, until, sizes_arg(t, after));
        after = CALL(t, aten_mul_Tensor, spread, after);
    }
    return CALL(t, aten_cat_default, list_of(t, until, after, END), d);
}

void derive_cumprod(Back *b) {
    Trace *t = b->t;
    Value x = ARG(0), grad = to_dtype(t, GRAD, dtype_of(x));
    OUT(0) = grad;
    if (t->failed || is_one_element(t, x))
        return;
    int dim = wrap_dim(t, int_arg(&ARG(1), 0), dim_of(x));
    int64_t n;
    if (!sym_guard_int(t->sym, size_of(t, x, dim), t->req->stage, "cumprod_backward", &n)) {
        trace_fail(t, "RuntimeError: cumprod's gradient needs a size that is known");
        return;
    }
    if (n == 1)
        return;
    CALL(t, aten_mul_Tensor, RES(0), grad); // unused, but they take their numbers
    CALL(t, aten_eq_Scalar, x, INT(0));
    Value size = sizes_arg(t, x);
    size.at[dim] = INT(1);
    Value ones = CALL(t, aten_expand_default, ones_of(t, list_of(t, INT(1), END), grad), size);
    Value slices = val_list(t->arena, VAL_list, (int)n);
    for (int64_t k = 0; k < n && !t->failed; k++) {
        Value products = omitted_products(t, x, dim, k, n, ones);
        Value g = CALL(t, aten_slice_Tensor, grad, INT(dim), INT(k));
        g = CALL(t, aten_mul_Tensor, g, products);
        slices.at[k] = CALL(t, aten_sum_dim_IntList, g, list_of(t, INT(dim), END));
    }
    OUT(0) = CALL(t, aten_stack_default, slices, INT(dim));
}

// exp(logcumsumexp from the end of (log of the gradient's part - result) + x)
static Value reversed_part(Trace *t, Value log_grad, Value result, Value x, Value dim) {
    Value along = list_of(t, dim, END);
    Value y = CALL(t, aten_sub_Tensor, log_grad, result);
    y = CALL(t, aten_logcumsumexp_default, CALL(t, aten_flip_default, y, along), dim);
    y = CALL(t, aten_add_Tensor, CALL(t, aten_flip_default, y, along), x);
    return CALL(t, aten_exp_default, y);
}

static double lowest(DType d) {
    return d == DT_f64 ? -DBL_MAX : d == DT_f16 ? -65504.0 : d == DT_bf16 ? -0x1.fep127 : -FLT_MAX;
}

void derive_logcumsumexp(Back *b) {
    Trace *t = b->t;
    Value grad = GRAD;
    OUT(0) = grad;
    if (!dim_of(grad) || expr_guard_is(t, meta_numel(t->sym, meta_of(grad)), 0))
        return;
    Value least =
        scalar_tensor(t, FLT(lowest(dtype_of(grad))), dtype_of(grad), meta_of(grad)->device);
    Value size = CALL(t, aten_log_default, CALL(t, aten_abs_default, grad));
    Value positive = CALL(t, aten_where_self, CALL(t, aten_gt_Scalar, grad, INT(0)), size, least);
    Value negative = CALL(t, aten_where_self, CALL(t, aten_lt_Scalar, grad, INT(0)), size, least);
    positive = reversed_part(t, positive, RES(0), ARG(0), ARG(1));
    negative = reversed_part(t, negative, RES(0), ARG(0), ARG(1));
    OUT(0) = CALL(t, aten_sub_Tensor, positive, negative);
}
