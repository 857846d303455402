// decomp_reduce.c: decompositions of reductions and of normalizations, which are reductions and a
// scale.
#include "core/aot/decomp.h"

#include <math.h>

static Value converted(Trace *t, Value x, DType d) {
    return dtype_of(x) == d ? x : CALL(t, prims_convert_element_type_default, x, DTY(d));
}

static Value one_dim(Trace *t, Value dim) {
    return dim.kind == VAL_int ? list_of(t, dim, END) : dim;
}

bool decomp_all(Trace *t, const Op *op, const Value *a, Value *out) {
    Value x = CALL(t, aten_logical_not_default, a[0]);
    if (op->id == OP_aten_all_default)
        x = CALL(t, aten_any_default, x);
    else if (op->id == OP_aten_all_dim)
        x = CALL(t, aten_any_dim, x, a[1], a[2]);
    else
        x = CALL(t, aten_any_dims, x, a[1], a[2]);
    x = CALL(t, aten_logical_not_default, x);
    *out = dtype_of(a[0]) == DT_u8 ? to_dtype(t, x, DT_u8) : x;
    return true;
}

bool decomp_amax_bool(Trace *t, const Op *op, const Value *a, Value *out) {
    if (!out)
        return trace_accepts(t, dtype_of(a[0]) == DT_b8, "not of bools");
    Value dims = a[1].n ? a[1] : dims_range(t, 0, dim_of(a[0]));
    *out = op->id == OP_aten_amax_default ? CALL(t, aten_any_dims, a[0], dims, a[2])
                                          : CALL(t, aten_all_dims, a[0], dims, a[2]);
    return true;
}

bool decomp_aminmax(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    Value dims = a[1].kind == VAL_none ? val_list(t->arena, VAL_list, 0) : list_of(t, a[1], END);
    Value min = CALL(t, aten_amin_default, a[0], dims, a[2]);
    Value max = CALL(t, aten_amax_default, a[0], dims, a[2]);
    *out = tuple_of(t, min, max, END);
    return true;
}

bool decomp_count_nonzero(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    Value x = CALL(t, aten_ne_Scalar, a[0], INT(0));
    *out = a[1].kind == VAL_none ? CALL(t, aten_sum_default, x)
                                 : CALL(t, aten_sum_dim_IntList, x, one_dim(t, a[1]));
    return true;
}

bool decomp_logsumexp(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    Value max = CALL(t, aten_amax_default, a[0], a[1], BOOL(true));
    Value abs = CALL(t, aten_abs_default, max);
    Value inf = CALL(t, aten_eq_Scalar, abs, FLT(INFINITY));
    max = CALL(t, aten_masked_fill_Scalar, max, inf, INT(0));
    Value shown = max;
    if (!bool_arg(&a[2]))
        shown = CALL(t, aten_squeeze_dims, max, a[1]);
    Value x = CALL(t, aten_sub_Tensor, a[0], max);
    x = CALL(t, aten_exp_default, x);
    x = CALL(t, aten_sum_dim_IntList, x, a[1], a[2]);
    x = CALL(t, aten_log_default, x);
    *out = CALL(t, aten_add_Tensor, x, shown);
    return true;
}

bool decomp_nansum(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    Value nan = CALL(t, aten_isnan_default, a[0]);
    Value x = CALL(t, aten_where_ScalarSelf, nan, INT(0), a[0]);
    *out = CALL(t, aten_sum_dim_IntList, x, a[1], a[2], a[3]);
    return true;
}

// utils.set_correction: always a float, 1 if none is said.
static Value correction_of(Value v) {
    double f = 1;
    if (v.kind != VAL_none)
        val_as_float(&v, &f);
    return FLT(f);
}

bool decomp_std(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    DType d = dtype_of(a[0]);
    Value x = converted(t, a[0], dtype_compute(d));
    x = CALL(t, aten_var_correction, x, a[1], correction_of(a[2]), a[3]);
    x = CALL(t, aten_sqrt_default, x);
    *out = converted(t, x, d);
    return true;
}

bool decomp_std_mean(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    DType d = dtype_of(a[0]);
    Value x = converted(t, a[0], dtype_compute(d));
    Value both = CALL(t, aten_var_mean_correction, x, a[1], correction_of(a[2]), a[3]);
    Value std = CALL(t, aten_sqrt_default, item_of(both, 0));
    std = converted(t, std, d);
    Value mean = converted(t, item_of(both, 1), d);
    *out = tuple_of(t, std, mean, END);
    return true;
}

bool decomp_sum(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    *out = CALL(t, aten_sum_dim_IntList, a[0], val_list(t->arena, VAL_list, 0), BOOL(false), a[1]);
    return true;
}

bool decomp_trace(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    Value d = CALL(t, aten_diagonal_default, a[0]);
    *out = CALL(t, aten_sum_default, d);
    return true;
}

static bool one_element(Trace *t, Value x, Value dims) {
    if (dims.kind == VAL_none || !dims.n)
        return expr_known_is(t, meta_numel(t->sym, x.tensor), 1);
    bool all = dim_of(x) > 0;
    for (int i = 0; i < dims.n; i++)
        all = all && expr_known_is(t, size_of(t, x, (int)int_arg(&dims.at[i], 0)), 1);
    return all;
}

static Value sum_over(Trace *t, Value x, Value dims, Value keepdim) {
    bool all = dims.kind == VAL_none;
    return all && !bool_arg(&keepdim) ? CALL(t, aten_sum_default, x)
                                      : CALL(t, aten_sum_dim_IntList, x, dims, keepdim);
}

bool decomp_vector_norm(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    double ord = float_arg(&a[1], 2);
    DType result = a[4].kind == VAL_dtype ? a[4].dtype : dtype_of(a[0]);
    Value dims = a[2].kind == VAL_list && !a[2].n ? NONE : a[2], x = a[0];
    if (isinf(ord)) {
        Value abs = CALL(t, aten_abs_default, x),
              d = dims.kind == VAL_none ? val_list(t->arena, VAL_list, 0) : dims;
        x = ord > 0 ? CALL(t, aten_amax_default, abs, d, a[3])
                    : CALL(t, aten_amin_default, abs, d, a[3]);
        *out = converted(t, x, result);
        return true;
    }
    if (ord == 0) {
        x = CALL(t, aten_ne_Scalar, x, FLT(0));
        *out = dims.kind == VAL_none && !bool_arg(&a[3])
                   ? CALL(t, aten_sum_default, x, DTY(result))
                   : CALL(t, aten_sum_dim_IntList, x, dims, a[3], DTY(result));
        return true;
    }
    x = converted(t, x, dtype_compute(result));
    if (one_element(t, x, dims) && (bool_arg(&a[3]) || dim_of(x) == 0)) {
        x = CALL(t, aten_abs_default, x);
        *out = contiguous(t, converted(t, x, result), MF_contiguous);
        return true;
    }
    if (fmod(ord, 2) != 0)
        x = CALL(t, aten_abs_default, x);
    x = CALL(t, aten_pow_Tensor_Scalar, x, a[1]);
    x = sum_over(t, x, dims, a[3]);
    x = CALL(t, aten_pow_Tensor_Scalar, x, FLT(1 / ord));
    *out = converted(t, x, result);
    return true;
}

// softmax

static Value shifted(Trace *t, const Value *a, Promotion *p) {
    Value x = contiguous(t, a[0], MF_contiguous);
    *p = promote_default(t, &x, 1);
    x = to_dtype(t, x, p->compute);
    if (expr_guard_is(t, meta_numel(t->sym, x.tensor), 0))
        return x;
    Value max = CALL(t, aten_amax_default, x, list_of(t, a[1], END), BOOL(true));
    return CALL(t, aten_sub_Tensor, x, max);
}

bool decomp_softmax(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    Promotion p;
    Value x = shifted(t, a, &p);
    x = CALL(t, aten_exp_default, x);
    Value sum = CALL(t, aten_sum_dim_IntList, x, list_of(t, a[1], END), BOOL(true));
    x = CALL(t, aten_div_Tensor, x, sum);
    *out = bool_arg(&a[2]) ? x : to_dtype(t, x, p.result);
    return true;
}

bool decomp_log_softmax(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    Promotion p;
    Value x = shifted(t, a, &p);
    Value sum = CALL(t, aten_exp_default, x);
    sum = CALL(t, aten_sum_dim_IntList, sum, list_of(t, a[1], END), BOOL(true));
    sum = CALL(t, aten_log_default, sum);
    x = CALL(t, aten_sub_Tensor, x, sum);
    *out = bool_arg(&a[2]) ? x : to_dtype(t, x, p.result);
    return true;
}

bool decomp_safe_softmax(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    Value x = CALL(t, aten_softmax_int, a[0], a[1], a[2]);
    Value low = CALL(t, aten_eq_Scalar, a[0], FLT(-INFINITY));
    Value rows = CALL(t, aten_all_dim, low, a[1], BOOL(true));
    Value zeros = CALL(t, aten_zeros_like_default, x);
    *out = CALL(t, aten_where_self, rows, zeros, x);
    return true;
}

// normalizations

bool decomp_layer_norm(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    DType d = dtype_of(a[0]);
    int n = dim_of(a[0]);
    Value x = converted(t, a[0], dtype_compute(d)), dims = dims_range(t, n - a[1].n, n);
    Value both = CALL(t, aten_var_mean_correction, x, dims, INT(0), BOOL(true));
    Value rstd = CALL(t, aten_add_Tensor, item_of(both, 0), a[4]);
    rstd = CALL(t, aten_rsqrt_default, rstd);
    Value mean = item_of(both, 1);
    Value r = CALL(t, aten_sub_Tensor, x, mean);
    r = CALL(t, aten_mul_Tensor, r, rstd);
    if (a[2].kind == VAL_tensor)
        r = CALL(t, aten_mul_Tensor, r, a[2]);
    if (a[3].kind == VAL_tensor)
        r = CALL(t, aten_add_Tensor, r, a[3]);
    r = converted(t, r, d);
    if (on_cpu(a[0])) {
        mean = converted(t, mean, d);
        rstd = converted(t, rstd, d);
    }
    *out = tuple_of(t, r, mean, rstd, END);
    return true;
}

static Value unsqueeze_at(Trace *t, Value x, int from, int to) {
    for (int i = from; i < to; i++)
        x = CALL(t, aten_unsqueeze_default, x, INT(i));
    return x;
}

// On the CPU scale and shift are folded per channel first.
static Value group_scaled(Trace *t, const Value *a, Value x, Value mean, Value rstd, Value group) {
    Value per = list_of(t, INT(1), a[6], group, INT(1), END), two = list_of(t, a[3], a[4], END);
    Value w = reshape(t, a[1], per);
    w = CALL(t, aten_mul_Tensor, rstd, w);
    Value b = CALL(t, aten_neg_default, mean);
    b = CALL(t, aten_mul_Tensor, b, w);
    if (a[2].kind == VAL_tensor) {
        Value shift = reshape(t, a[2], per);
        b = CALL(t, aten_add_Tensor, b, shift);
    }
    w = contiguous(t, w, MF_contiguous);
    w = CALL(t, aten_as_strided_default, w, two, list_of(t, a[4], INT(1), END));
    b = contiguous(t, b, MF_contiguous);
    b = CALL(t, aten_as_strided_default, b, two, list_of(t, a[4], INT(1), END));
    w = unsqueeze_at(t, w, 2, dim_of(a[0]));
    b = unsqueeze_at(t, b, 2, dim_of(a[0]));
    x = CALL(t, aten_mul_Tensor, x, w);
    return CALL(t, aten_add_Tensor, x, b);
}

bool decomp_group_norm(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    DType d = dtype_of(a[0]);
    const Expr *c, *g;
    if (!val_as_expr(t->sym, &a[4], &c) || !val_as_expr(t->sym, &a[6], &g))
        return false;
    Value group = val_sym(sym_floordiv(t->sym, c, g)), dims = list_of(t, INT(2), INT(3), END);
    Value acc = converted(t, a[0], dtype_compute(d));
    Value x = reshape(t, acc, list_of(t, a[3], a[6], group, a[5], END));
    Value both = CALL(t, aten_var_mean_correction, x, dims, INT(0), BOOL(true));
    Value rstd = CALL(t, aten_add_Tensor, item_of(both, 0), a[7]), mean = item_of(both, 1), r;
    rstd = CALL(t, aten_rsqrt_default, rstd);
    if (on_cpu(a[0]) && a[1].kind == VAL_tensor) {
        r = group_scaled(t, a, acc, mean, rstd, group);
    } else {
        r = CALL(t, aten_sub_Tensor, x, mean);
        r = CALL(t, aten_mul_Tensor, r, rstd);
        r = CALL(t, aten_view_default, r, sizes_of(t, a[0]));
        for (int k = 1; k <= 2; k++) {
            if (a[k].kind != VAL_tensor)
                continue;
            Value w = CALL(t, aten_unsqueeze_default, a[k], INT(0));
            w = unsqueeze_at(t, w, 2, dim_of(a[0]));
            r = k == 1 ? CALL(t, aten_mul_Tensor, r, w) : CALL(t, aten_add_Tensor, r, w);
        }
    }
    r = converted(t, r, d);
    mean = converted(t, mean, d);
    rstd = converted(t, rstd, d);
    mean = CALL(t, aten_squeeze_dims, mean, dims);
    rstd = CALL(t, aten_squeeze_dims, rstd, dims);
    *out = tuple_of(t, r, mean, rstd, END);
    return true;
}

static double epsilon_of(DType d) {
    return d == DT_f64 ? 2.220446049250313e-16 : 1.1920928955078125e-07;
}

bool decomp_rms_norm(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    DType d = dtype_of(a[0]), c = dtype_compute(d);
    int n = dim_of(a[0]);
    Value dims = val_list(t->arena, VAL_list, a[1].n);
    for (int i = 0; i < dims.n; i++)
        dims.at[i] = INT(n - i - 1);
    Value x = to_dtype(t, a[0], c);
    Value r = CALL(t, aten_pow_Tensor_Scalar, x, INT(2));
    r = CALL(t, aten_mean_dim, r, dims, BOOL(true));
    r = CALL(t, aten_add_Scalar, r, a[3].kind == VAL_none ? FLT(epsilon_of(c)) : a[3]);
    r = CALL(t, aten_rsqrt_default, r);
    Value y = CALL(t, aten_mul_Tensor, x, r);
    if (a[2].kind == VAL_tensor)
        y = CALL(t, aten_mul_Tensor, y, a[2]);
    y = to_dtype(t, y, d);
    *out = tuple_of(t, y, r, END);
    return true;
}

// batch norm

typedef struct Batch {
    Value x, weight, bias, mean, var; // running statistics may be none
    Value momentum, eps;
} Batch;

typedef struct BatchOut {
    Value y, mean, rstd, new_mean, new_var;
} BatchOut;

static Value channel_dims(Trace *t, Value x) {
    Value dims = dims_range(t, 1, dim_of(x));
    if (dims.n)
        dims.at[0] = INT(0);
    return dims;
}

static Value scaled(Trace *t, const Batch *b, Value y) {
    int n = dim_of(b->x) - 1;
    if (b->weight.kind == VAL_tensor) {
        Value w = flatten(t, b->weight);
        y = CALL(t, aten_mul_Tensor, y, unsqueeze_to(t, w, n));
    }
    if (b->bias.kind == VAL_tensor) {
        Value w = flatten(t, b->bias);
        y = CALL(t, aten_add_Tensor, y, unsqueeze_to(t, w, n));
    }
    return y;
}

static Value blended(Trace *t, Value now, Value running, Value momentum) {
    Value a = CALL(t, aten_mul_Tensor, now, momentum);
    Value b = CALL(t, aten_mul_Tensor, running, FLT(1 - float_arg(&momentum, 0)));
    return CALL(t, aten_add_Tensor, a, b);
}

static BatchOut train(Trace *t, const Batch *b) {
    Value dims = channel_dims(t, b->x), x = to_dtype(t, b->x, dtype_compute(dtype_of(b->x)));
    Value both = CALL(t, aten_var_mean_correction, x, dims, INT(0), BOOL(true));
    Value var = item_of(both, 0), mean = item_of(both, 1);
    Value rstd = CALL(t, aten_add_Tensor, var, b->eps);
    rstd = CALL(t, aten_rsqrt_default, rstd);
    Value y = CALL(t, aten_sub_Tensor, b->x, mean);
    y = CALL(t, aten_mul_Tensor, y, rstd);
    BatchOut r = {.new_mean = b->mean, .new_var = b->var};
    r.mean = CALL(t, aten_squeeze_dims, mean, dims);
    r.rstd = CALL(t, aten_squeeze_dims, rstd, dims);
    if (b->mean.kind == VAL_tensor)
        r.new_mean = blended(t, r.mean, b->mean, b->momentum);
    if (b->var.kind == VAL_tensor) {
        Value n = numel_of(t, b->x), s = CALL(t, aten_squeeze_dims, var, dims);
        double count = float_arg(&n, 0) / (double)expr_int_or(size_of(t, b->x, 1), 1);
        Value unbiased = CALL(t, aten_mul_Tensor, s, FLT(count / (count - 1)));
        r.new_var = blended(t, unbiased, b->var, b->momentum);
    }
    r.y = scaled(t, b, y);
    return r;
}

static BatchOut eval(Trace *t, const Batch *b) {
    DType c = dtype_compute(dtype_of(b->x));
    int n = dim_of(b->x) - 1;
    BatchOut r = {0};
    Value mean = CALL(t, aten__to_copy_default, b->mean, DTY(c));
    Value var = CALL(t, aten__to_copy_default, b->var, DTY(c));
    Value inv = CALL(t, aten_add_Tensor, var, b->eps);
    inv = CALL(t, aten_sqrt_default, inv);
    inv = CALL(t, aten_reciprocal_default, inv);
    inv = CALL(t, aten_mul_Tensor, inv, INT(1));
    r.mean = mean;
    r.rstd = inv;
    if (on_cpu(b->x)) {
        r.mean = CALL(t, aten_new_zeros_default, b->x, list_of(t, INT(0), END));
        r.rstd = CALL(t, aten_new_zeros_default, b->x, list_of(t, INT(0), END));
    }
    r.new_mean = mean;
    r.new_var = var;
    Value m = unsqueeze_to(t, mean, n);
    Value k = unsqueeze_to(t, inv, n);
    Value y = CALL(t, aten_sub_Tensor, b->x, m);
    y = CALL(t, aten_mul_Tensor, y, k);
    r.y = scaled(t, b, y);
    return r;
}

static BatchOut batch_norm(Trace *t, const Batch *b, bool training) {
    BatchOut r = training ? train(t, b) : eval(t, b);
    DType d = dtype_of(b->x);
    if (on_cpu(b->x)) {
        r.mean = to_dtype(t, r.mean, d);
        r.rstd = to_dtype(t, r.rstd, d);
    }
    r.y = to_dtype(t, r.y, d);
    return r;
}

bool decomp_batch_norm_eval(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    Batch b = {a[0], a[1], a[2], a[3], a[4], a[5], a[6]};
    BatchOut r = batch_norm(t, &b, false);
    *out = tuple_of(t, r.y, r.mean, r.rstd, END);
    return true;
}

bool decomp_batch_norm(Trace *t, const Op *op, const Value *a, Value *out) {
    Batch b = {a[0], a[1], a[2], a[3], a[4], a[6], a[7]};
    BatchOut r = batch_norm(t, &b, bool_arg(&a[5]));
    *out = op->n_returns == 5 ? tuple_of(t, r.y, r.mean, r.rstd, r.new_mean, r.new_var, END)
                              : tuple_of(t, r.y, r.mean, r.rstd, END);
    return true;
}

bool decomp_batch_norm_no_stats(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    Batch b = {a[0], a[1], a[2], NONE, NONE, a[4], a[5]};
    BatchOut r = batch_norm(t, &b, true);
    *out = tuple_of(t, r.y, r.mean, r.rstd, END);
    return true;
}
