// decomp_batch_norm.c: decompositions of batch normalization in its many forms and of its backward
// (torch/_decomp's native_batch_norm_helper and native_batch_norm_backward).
#include "core/aot/decomp.h"

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

// The forms with a reserve for cuDNN, which is empty here.
static Value no_reserve(Trace *t, Value x) {
    return CALL(t, aten_empty_memory_format, list_of(t, INT(0), END), DTY(DT_u8), strided(),
                device_of_tensor(x));
}

bool decomp_batch_norm_reserve(Trace *t, const Op *op, const Value *a, Value *out) {
    Batch b = {a[0], a[1], a[2], a[3], a[4], a[5], a[6]};
    BatchOut r = batch_norm(t, &b, op->id != OP_aten__batch_norm_no_update_default);
    Value none = no_reserve(t, a[0]);
    *out = op->n_returns == 6 ? tuple_of(t, r.y, r.mean, r.rstd, none, r.new_mean, r.new_var, END)
                              : tuple_of(t, r.y, r.mean, r.rstd, none, END);
    return true;
}

// backward

// x (channels) with a 1 for each other dimension of `like`.
static Value along_channels(Trace *t, Value x, Value like) {
    for (int i = 0; i < dim_of(like); i++) {
        bool one = i != 1 || expr_known_is(t, size_of(t, like, 1), 1);
        if (one && !(i < dim_of(x) && expr_known_is(t, size_of(t, x, i), 1)))
            x = py_unsqueeze(t, x, i);
    }
    return x;
}

// 1 / (elements of x / channels of x)
static Value one_by_count(Trace *t, Value x) {
    Value n = numel_of(t, x), c = val_sym(size_of(t, x, 1));
    double elements, channels;
    if (val_as_float(&n, &elements) && val_as_float(&c, &channels))
        return FLT(1 / (elements / channels));
    Value count = CALL(t, operator_truediv, n, c);
    return CALL(t, operator_truediv, FLT(1), count);
}

static bool backward(Trace *t, const Value *a, bool training, Value *out) {
    DType d = dtype_of(a[1]), wd = a[2].kind == VAL_tensor ? dtype_of(a[2]) : d;
    DType c = dtype_compute(d);
    Value w[7]; // grad, input, weight, running mean and var, saved mean and invstd
    for (int i = 0; i < 7; i++)
        w[i] = cast_list(t, a[i], c);
    if (dim_of(a[1]) < 2) {
        trace_fail(t, "RuntimeError: rank of the input must be at least 2, got %d", dim_of(a[1]));
        return true;
    }
    Value mean = w[5], invstd = w[6], x = w[1], dims = channel_dims(t, x);
    if (!training) {
        mean = w[3];
        invstd = py_add(t, w[4], a[8]);
        invstd = CALL(t, aten_rsqrt_default, invstd);
    }
    Value norm = one_by_count(t, x);
    mean = along_channels(t, mean, x);
    Value sum = py_sum(t, w[0], dims, false);
    Value dot = py_sub(t, x, mean);
    dot = py_mul(t, w[0], dot);
    dot = py_sum(t, dot, dims, false);
    Value grad_mean = along_channels(t, py_mul(t, sum, norm), x);
    Value scale = py_mul(t, dot, norm);
    Value sq = py_mul(t, invstd, invstd);
    scale = along_channels(t, py_mul(t, scale, sq), x);
    Value grad_scale = w[2].kind == VAL_tensor ? along_channels(t, py_mul(t, invstd, w[2]), x)
                                               : py_mul(t, along_channels(t, invstd, x), FLT(1));
    Value g = w[0];
    if (training) {
        Value proj = py_sub(t, x, mean);
        proj = py_mul(t, proj, scale);
        g = py_sub(t, g, proj);
        g = py_sub(t, g, grad_mean);
    }
    g = py_mul(t, g, grad_scale);
    Value m1 = item_of(a[9], 1), m2 = item_of(a[9], 2), dw = NONE;
    if (bool_arg(&m1))
        dw = py_mul(t, dot, invstd);
    g = to_dtype(t, g, d);
    dw = cast_list(t, dw, wd);
    Value db = bool_arg(&m2) ? to_dtype(t, sum, wd) : NONE;
    *out = tuple_of(t, g, dw, db, END);
    return true;
}

bool decomp_batch_norm_backward(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    return backward(t, a, bool_arg(&a[7]), out);
}
