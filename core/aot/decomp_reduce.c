// decomp_reduce.c: decompositions of reductions, and of softmax with its backward.
#include "core/aot/decomp.h"
#include "core/record/fault.h"

#include <math.h>
#include <string.h>

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
    Value x = py_ne(t, a[0], INT(0));
    *out = CALL(t, aten_sum_dim_IntList, x, one_dim(t, a[1]));
    return true;
}

bool decomp_logsumexp(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    Wide w = decomp_widen_to_float(t, a, 1);
    Value x = w.a[0];
    if (expr_guard_is(t, meta_numel(t->sym, x.tensor), 0)) {
        x = CALL(t, aten_exp_default, x);
        x = CALL(t, aten_sum_dim_IntList, x, a[1], a[2]);
        return decomp_narrow(t, &w, CALL(t, aten_log_default, x), out);
    }
    Value max = CALL(t, aten_amax_default, x, a[1], BOOL(true));
    Value inf = CALL(t, aten_abs_default, max);
    inf = py_eq(t, inf, FLT(INFINITY));
    max = CALL(t, aten_masked_fill_Scalar, max, inf, INT(0));
    Value shown = bool_arg(&a[2]) ? max : CALL(t, aten_squeeze_dims, max, a[1]);
    x = py_sub(t, x, max);
    x = CALL(t, aten_exp_default, x);
    x = CALL(t, aten_sum_dim_IntList, x, a[1], a[2]);
    x = CALL(t, aten_log_default, x);
    return decomp_narrow(t, &w, py_add(t, x, shown), out);
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
    Value x = to_dtype(t, a[0], dtype_compute(d));
    x = CALL(t, aten_var_correction, x, a[1], correction_of(a[2]), a[3]);
    x = CALL(t, aten_sqrt_default, x);
    *out = to_dtype(t, x, d);
    return true;
}

bool decomp_std_mean(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    DType d = dtype_of(a[0]);
    Value x = to_dtype(t, a[0], dtype_compute(d));
    Value both = CALL(t, aten_var_mean_correction, x, a[1], correction_of(a[2]), a[3]);
    Value std = CALL(t, aten_sqrt_default, item_of(both, 0));
    std = to_dtype(t, std, d);
    Value mean = to_dtype(t, item_of(both, 1), d);
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
    Value d = CALL(t, aten_diag_default, a[0], INT(0));
    *out = CALL(t, aten_sum_default, d);
    return true;
}

static bool one_element(Trace *t, Value x, Value dims) {
    if (dims.kind == VAL_none)
        return expr_known_is(t, meta_numel(t->sym, x.tensor), 1);
    bool all = dim_of(x) > 0;
    for (int i = 0; i < dims.n; i++)
        all = all && expr_known_is(t, size_of(t, x, (int)int_arg(&dims.at[i], 0)), 1);
    return all;
}

// |x| of dimensions that are all 1.
static Value norm_of_one(Trace *t, Value x, Value dims, bool keepdim, DType d) {
    x = CALL(t, aten_abs_default, x);
    x = to_dtype(t, x, d);
    if (keepdim || !dim_of(x))
        return contiguous(t, x, MF_contiguous);
    if (dims.kind == VAL_none) {
        x = flatten(t, x);
        return CALL(t, aten_select_int, x, INT(0), INT(0));
    }
    Value shape = val_list(t->arena, VAL_list, dim_of(x));
    shape.n = 0;
    for (int i = 0; i < dim_of(x); i++) {
        bool gone = false;
        for (int k = 0; k < dims.n; k++) // as Python asks: a negative one is not found
            gone = gone || int_arg(&dims.at[k], 0) == i;
        if (!gone)
            shape.at[shape.n++] = val_sym(size_of(t, x, i));
    }
    x = CALL(t, aten_view_default, x, shape);
    return contiguous(t, x, MF_contiguous);
}

bool decomp_vector_norm(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    double ord = float_arg(&a[1], 2);
    DType result = a[4].kind == VAL_dtype ? a[4].dtype : dtype_of(a[0]);
    Value dims = a[2], x = a[0];
    if (ord == 0) {
        x = py_ne(t, x, FLT(0));
        *out = CALL(t, aten_sum_dim_IntList, x, dims, a[3], DTY(result));
        return true;
    }
    if (isinf(ord)) {
        Value d = dims.kind == VAL_none ? no_sizes(t) : dims;
        x = CALL(t, aten_abs_default, x);
        x = ord > 0 ? CALL(t, aten_amax_default, x, d, a[3])
                    : CALL(t, aten_amin_default, x, d, a[3]);
        *out = to_dtype(t, x, result);
        return true;
    }
    x = to_dtype(t, x, dtype_compute(result));
    if (one_element(t, x, dims.kind == VAL_list && !dims.n ? NONE : dims)) {
        *out = norm_of_one(t, x, dims.n ? dims : NONE, bool_arg(&a[3]), result);
        return true;
    }
    if (fmod(ord, 2) != 0)
        x = CALL(t, aten_abs_default, x);
    x = CALL(t, aten_pow_Tensor_Scalar, x, a[1]);
    x = CALL(t, aten_sum_dim_IntList, x, dims, a[3]);
    x = CALL(t, aten_pow_Tensor_Scalar, x, FLT(1 / ord));
    *out = to_dtype(t, x, result);
    return true;
}

// norm and dist: vector norms by other arguments
bool decomp_norm(Trace *t, const Op *op, const Value *a, Value *out) {
    bool by_dim = strstr(op->overload, "dim") != NULL;
    Value p = a[1].kind == VAL_none ? INT(2) : a[1], dtype = NONE;
    for (int i = 2; i < op->n_args; i++)
        if (strcmp(op->args[i].name, "dtype") == 0)
            dtype = a[i];
    *out = CALL(t, aten_linalg_vector_norm_default, a[0], p, by_dim ? a[2] : NONE,
                by_dim ? a[3] : BOOL(false), dtype);
    return true;
}

bool decomp_dist(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    Value d = py_sub(t, a[0], a[1]);
    *out = CALL(t, aten_norm_Scalar, d, a[2]);
    return true;
}

bool decomp_renorm(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    int n = dim_of(a[0]), dim = wrap_dim(t, int_arg(&a[2], 0), n);
    DType d = dtype_of(a[0]), c = dtype_compute(d);
    Value dims = dims_range(t, 0, n);
    for (int i = dim; i + 1 < n; i++)
        dims.at[i] = dims.at[i + 1];
    dims.n = n ? n - 1 : 0;
    Value norm = CALL(t, aten_linalg_vector_norm_default, a[0], a[1], dims, BOOL(true),
                      c == d ? NONE : DTY(c));
    Value big = py_gt(t, norm, a[3]);
    Value f = py_add(t, norm, FLT(1e-7));
    f = py_div(t, a[3], f);
    f = py_where(t, big, f, FLT(1));
    if (c != d)
        f = CALL(t, prims_convert_element_type_default, f, DTY(d));
    *out = contiguous(t, py_mul(t, a[0], f), MF_contiguous);
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
    if (fault(t->req->decisions, FAULT_softmax_sum_offset, trace_op_key(op)))
        sum = CALL(t, aten_add_Tensor, sum, FLT(0.01));
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

static Value in_input_type(Trace *t, Value grad, Value x, const Value *dtype) {
    return dtype->kind == VAL_dtype && dtype->dtype != dtype_of(grad) ? to_dtype(t, x, dtype->dtype)
                                                                      : x;
}

bool decomp_softmax_backward(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    Wide w = decomp_widen(t, a, 2);
    Value dims = list_of(t, a[2], END);
    Value x = py_mul(t, w.a[0], w.a[1]);
    Value sum = py_sum(t, x, dims, true);
    if (t->req->decomps == DECOMP_inductor) {
        Value neg = CALL(t, aten_neg_default, w.a[1]);
        x = CALL(t, prims_fma_default, neg, sum, x);
    } else {
        sum = py_mul(t, w.a[1], sum);
        x = py_sub(t, x, sum);
    }
    x = in_input_type(t, w.a[0], x, &a[3]);
    x = contiguous(t, x, MF_contiguous);
    *out = x;
    return t->req->decomps == DECOMP_inductor ? decomp_narrow(t, &w, x, out) : true;
}

bool decomp_log_softmax_backward(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    Wide w = decomp_widen(t, a, 2);
    Value e = CALL(t, aten_exp_default, w.a[1]);
    Value sum = py_sum(t, w.a[0], list_of(t, a[2], END), true);
    e = py_mul(t, e, sum);
    e = py_sub(t, w.a[0], e);
    *out = in_input_type(t, w.a[0], e, &a[3]);
    return true;
}
