// factors.c: ops on matrices made of factorisations and products that have kernels of their own:
// norms, ranks, conditions, old names of decompositions, convolutions by old names.
#include "core/eager/kernel.h"

#include <float.h>
#include <math.h>
#include <string.h>

static Value item(Value tuple, int i) {
    return (tuple.kind == VAL_tuple || tuple.kind == VAL_list) && i < tuple.n ? tuple.at[i] : NONE;
}

static double number(const Value *v, double fallback) {
    double f = fallback;
    val_as_float(v, &f);
    return f;
}

// norms

// Of the matrices in the dimensions a (rows) and b. ord NaN: Frobenius or nuclear, by `how`.
static Value matrix_norm(K *k, Value v, double ord, const char *how, int a, int b, bool keep) {
    Value dims = list_value(k->x, INT(a), INT(b), END);
    int ndim = tensor_at(&v) ? tensor_at(&v)->ndim : 0;
    if (ord != ord && strcmp(how, "fro") == 0)
        return CALL(k, aten_linalg_vector_norm_default, v, FLT(2), dims, BOOL(keep));
    if (ord != ord && strcmp(how, "nuc") != 0) {
        k_fail(k, "RuntimeError: linalg.matrix_norm: Order %s not supported.", how);
        return NONE;
    }
    if (ord != ord || fabs(ord) == 2) {
        Value s = CALL(k, aten_movedim_intlist, v, dims, list_value(k->x, INT(-2), INT(-1), END));
        s = CALL(k, aten_linalg_svdvals_default, s);
        Value last = list_value(k->x, INT(-1), END);
        s = ord != ord ? CALL(k, aten_sum_dim_IntList, s, last)
            : ord > 0  ? CALL(k, aten_amax_default, s, last)
                       : CALL(k, aten_amin_default, s, last);
        for (int d = 0; keep && d < ndim; d++)
            if (d == a || d == b)
                s = CALL(k, aten_unsqueeze_default, s, INT(d));
        return s;
    }
    if (fabs(ord) != 1 && !isinf(ord)) {
        k_fail(k, "RuntimeError: linalg.matrix_norm: Order %g not supported.", ord);
        return NONE;
    }
    int summed = isinf(ord) ? b : a, rest = isinf(ord) ? a : b;
    v = CALL(k, aten_sum_dim_IntList, CALL(k, aten_abs_default, v),
             list_value(k->x, INT(summed), END), BOOL(keep));
    Value other = list_value(k->x, INT(rest - (!keep && summed < rest)), END);
    return ord > 0 ? CALL(k, aten_amax_default, v, other, BOOL(keep))
                   : CALL(k, aten_amin_default, v, other, BOOL(keep));
}

// linalg_norm(self, ord, dim, keepdim, *, dtype), linalg_matrix_norm alike
bool kern_linalg_norm(K *k) {
    bool matrices = strcmp(k->op->name, "linalg_matrix_norm") == 0;
    bool text = k->args[1].kind == VAL_str, given = k->args[1].kind != VAL_none;
    int64_t dims[2] = {-2, -1};
    const Tensor *t = k->in[0];
    Value v = k->args[0];
    int n = k_given(k, 2) ? kints(k, 2, dims, 2) : -1, d[2];
    if (k_given(k, 4))
        v = CALL(k, aten_to_dtype, v, k->args[4]);
    if (!given || (n == 1 && !text) || (n < 0 && t->ndim == 1 && !text && !matrices)) {
        k->out = CALL(k, aten_linalg_vector_norm_default, v, given ? k->args[1] : FLT(2),
                      k->args[2], k->args[3]);
        return eager_ok(k->x);
    }
    if (n < 0)
        n = t->ndim;
    if (n != 2 || !k_dim(k, dims[0], t->ndim, &d[0]) || !k_dim(k, dims[1], t->ndim, &d[1]) ||
        d[0] == d[1])
        return eager_ok(k->x) &&
               k_fail(k,
                      "RuntimeError: %s: dim must be a 2-tuple of different dimensions, or the "
                      "input must be 1-D or 2-D, but got %d",
                      k->op->name, n);
    k->out = matrix_norm(k, v, text ? (double)NAN : number(&k->args[1], 2),
                         text ? k->args[1].s : "", d[0], d[1], kb(k, 3));
    return eager_ok(k->x);
}

// nuclear_norm(self, keepdim), (self, dim, keepdim), frobenius_norm(self, dim, keepdim)
bool kern_old_norm(K *k) {
    int64_t dims[2] = {0, 1};
    int d[2], n = k->op->args[1].type == AT_ints ? kints(k, 1, dims, 2) : 2;
    bool keep = kb(k, k->op->n_args - 1);
    if (strcmp(k->op->name, "frobenius_norm") == 0) {
        k->out =
            CALL(k, aten_linalg_vector_norm_default, k->args[0], FLT(2), k->args[1], BOOL(keep));
        return eager_ok(k->x);
    }
    if (n != 2)
        return k_fail(k, "RuntimeError: nuclear norm requires a 'dim' argument of size 2");
    if (!k_dim(k, dims[0], k->in[0]->ndim, &d[0]) || !k_dim(k, dims[1], k->in[0]->ndim, &d[1]))
        return false;
    k->out = matrix_norm(k, k->args[0], (double)NAN, "nuc", d[0], d[1], keep);
    return eager_ok(k->x);
}

static bool cond_checked(K *k, bool text, double ord) {
    const Tensor *t = k->in[0];
    int n = t->ndim;
    bool sizes = text || (fabs(ord) != 2 && tensor_numel(t) > 0); // are asked for squares
    if (n < 2)
        return k_fail(k, "RuntimeError: linalg.cond: The input tensor A must have at least 2 "
                         "dimensions.");
    if (!text && fabs(ord) != 2 && fabs(ord) != 1 && !isinf(ord))
        return k_fail(k, "RuntimeError: linalg.cond got an invalid norm type: %g", ord);
    if (sizes && t->size[n - 1] != t->size[n - 2])
        return k_fail(k,
                      "RuntimeError: linalg.cond: A must be batches of square matrices, but they "
                      "are %lld by %lld matrices",
                      (long long)t->size[n - 2], (long long)t->size[n - 1]);
    if (text && strcmp(k->args[1].s, "fro") != 0 && strcmp(k->args[1].s, "nuc") != 0)
        return k_fail(k, "RuntimeError: linalg.cond got an invalid norm type: %s", k->args[1].s);
    return true;
}

// By singular values: the largest over the smallest, or the sum times the sum of reciprocals.
static Value cond_by_values(K *k, double ord) {
    Value s = CALL(k, aten_linalg_svdvals_default, k->args[0]);
    if (ord != ord) {
        Value last = list_value(k->x, INT(-1), END);
        return CALL(k, aten_mul_Tensor, CALL(k, aten_sum_dim_IntList, s, last),
                    CALL(k, aten_sum_dim_IntList, CALL(k, aten_reciprocal_default, s), last));
    }
    Value first = CALL(k, aten_select_int, s, INT(-1), INT(0)),
          last = CALL(k, aten_select_int, s, INT(-1), INT(-1));
    return ord > 0 ? CALL(k, aten_div_Tensor, first, last) : CALL(k, aten_div_Tensor, last, first);
}

// By norms of the matrix and its inverse, which is infinite where there is none.
static Value cond_by_inverse(K *k, double ord) {
    const Value *p = &k->args[1];
    int n = k->in[0]->ndim;
    Value pair = CALL(k, aten_linalg_inv_ex_default, k->args[0]), info = item(pair, 1);
    for (int i = 0; i < 2; i++)
        info = CALL(k, aten_unsqueeze_default, info, INT(-1));
    Value inverse = CALL(k, aten_masked_fill_Scalar, item(pair, 0),
                         CALL(k, aten_gt_Scalar, info, INT(0)), FLT(INFINITY));
    const char *how = ord != ord ? p->s : "";
    Value all = CALL(k, aten_mul_Tensor, matrix_norm(k, k->args[0], ord, how, n - 2, n - 1, false),
                     matrix_norm(k, inverse, ord, how, n - 2, n - 1, false));
    return CALL(k, aten_nan_to_num_default, all, FLT(INFINITY), FLT(INFINITY), FLT(-INFINITY));
}

// linalg_cond(self, p), of PyTorch's BatchLinearAlgebra: no matrix has the condition 0
bool kern_cond(K *k) {
    bool text = k->args[1].kind == VAL_str;
    double ord = text ? (double)NAN : number(&k->args[1], 2);
    const Tensor *t = k->in[0];
    if (!cond_checked(k, text, ord))
        return false;
    if (tensor_numel(t) == 0)
        k->out = CALL(k, aten_zeros_default, ints_value(k->x, t->size, t->ndim - 2), DTY(t->dtype));
    else if (fabs(ord) == 2 || (text && strcmp(k->args[1].s, "nuc") == 0))
        k->out = cond_by_values(k, ord);
    else
        k->out = cond_by_inverse(k, ord);
    return eager_ok(k->x);
}

// linalg_matrix_rank: by tol, by atol and rtol, numbers or tensors
bool kern_matrix_rank(K *k) {
    bool pair = str_starts(k->op->overload, "atol");
    Value atol = k->args[1], rtol = pair ? k->args[2] : FLT(0), a = k->args[0];
    const Tensor *t = k->in[0];
    int64_t wide = t->ndim > 1 ? t->size[t->ndim - 1] : 1,
            high = t->ndim > 1 ? t->size[t->ndim - 2] : 1;
    if (t->ndim > 1 && tensor_numel(t) == 0) { // no rank: 0 a matrix
        k->out = CALL(k, aten_zeros_default, ints_value(k->x, t->size, t->ndim - 2), DTY(DT_i64));
        return eager_ok(k->x);
    }
    double eps = t->dtype == DT_f64 ? DBL_EPSILON : (double)FLT_EPSILON;
    if (rtol.kind == VAL_none)
        rtol = FLT(atol.kind == VAL_none || (atol.kind == VAL_float && atol.f == 0)
                       ? eps * (double)(wide > high ? wide : high)
                       : 0);
    if (atol.kind == VAL_none)
        atol = FLT(0);
    Value s = kb(k, k->op->n_args - 1)
                  ? CALL(k, aten_abs_default, CALL(k, aten_linalg_eigvalsh_default, a))
                  : CALL(k, aten_linalg_svdvals_default, a);
    Value top = CALL(k, aten_amax_default, s, list_value(k->x, INT(-1), END), BOOL(true));
    if (rtol.kind == VAL_tensor)
        rtol = CALL(k, aten_unsqueeze_default, rtol, INT(-1));
    if (atol.kind == VAL_tensor)
        atol = CALL(k, aten_unsqueeze_default, atol, INT(-1));
    Value tol = CALL(k, aten_mul_Tensor, top, rtol);
    tol = atol.kind == VAL_tensor ? CALL(k, aten_maximum_default, tol, atol)
                                  : CALL(k, aten_clamp_min_default, tol, atol);
    k->out = CALL(k, aten_sum_dim_IntList, CALL(k, aten_gt_Tensor, s, tol),
                  list_value(k->x, INT(-1), END));
    return eager_ok(k->x);
}

// decompositions by other names

bool kern_lu_pair(K *k) {
    Value f = CALL(k, aten_linalg_lu_factor_ex_default, k->args[0], k->args[1]);
    if (strcmp(k->op->name, "linalg_lu") == 0)
        k->out = CALL(k, aten_lu_unpack_default, item(f, 0), item(f, 1));
    else if (strcmp(k->op->name, "linalg_lu_factor") == 0)
        k->out = tuple_value(k->x, item(f, 0), item(f, 1), END);
    else
        k->out = f;
    return eager_ok(k->x);
}

bool kern_ldl_pair(K *k) {
    Value f = CALL(k, aten_linalg_ldl_factor_ex_default, k->args[0], k->args[1]);
    k->out = tuple_value(k->x, item(f, 0), item(f, 1), END);
    return eager_ok(k->x);
}

// linalg_solve_ex(A, B, *, left, check_errors): the solution, and 0 for each matrix
bool kern_solve_pair(K *k) {
    Value x = CALL(k, aten_linalg_solve_default, k->args[0], k->args[1], k->args[2]);
    const Tensor *a = k->in[0];
    Value info = CALL(k, aten_zeros_default,
                      ints_value(k->x, a->size, a->ndim > 2 ? a->ndim - 2 : 0), DTY(DT_i32));
    k->out = tuple_value(k->x, x, info, END);
    return eager_ok(k->x);
}

bool kern_lu_solve_old(K *k) {
    k->out = CALL(k, aten_linalg_lu_solve_default, k->args[1], k->args[2], k->args[0]);
    return eager_ok(k->x);
}

bool kern_cholesky_helper(K *k) {
    k->out = CALL(k, aten_cholesky_solve_default, k->args[0], k->args[1], k->args[2]);
    return eager_ok(k->x);
}

// qr(self, some), into given tensors too
bool kern_qr_old(K *k) {
    Value r =
        CALL(k, aten_linalg_qr_default, k->args[0], val_str(kb(k, 1) ? "reduced" : "complete"));
    if (strcmp(k->op->overload, "Q") == 0) {
        for (int i = 0; i < 2 && eager_ok(k->x); i++) {
            Value part = item(r, i);
            CALL(k, aten_resize__default, k->args[2 + i], sizes_value(k->x, tensor_at(&part)));
            CALL(k, aten_copy__default, k->args[2 + i], part);
        }
        r = tuple_value(k->x, k->args[2], k->args[3], END);
    }
    k->out = r;
    return eager_ok(k->x);
}

// svd(self, some, compute_uv): V, not its transpose; zeros if only the values are wanted
bool kern_svd_old(K *k) {
    const Tensor *t = k->in[0];
    if (t->ndim < 2)
        return k_fail(k, "RuntimeError: linalg.svd: The input tensor A must have at least 2 "
                         "dimensions.");
    if (kb(k, 2)) {
        Value r = CALL(k, aten_linalg_svd_default, k->args[0], BOOL(!kb(k, 1)));
        k->out = tuple_value(k->x, item(r, 0), item(r, 1),
                             CALL(k, aten_transpose_int, item(r, 2), INT(-2), INT(-1)), END);
        return eager_ok(k->x);
    }
    Value zeros[2];
    for (int i = 0; i < 2; i++) {
        int64_t size[TENSOR_DIMS];
        memcpy(size, t->size, sizeof size);
        size[t->ndim - 2] = size[t->ndim - 1] = t->size[t->ndim - 2 + i];
        zeros[i] = CALL(k, aten_zeros_default, ints_value(k->x, size, t->ndim), DTY(t->dtype));
    }
    k->out = tuple_value(k->x, zeros[0], CALL(k, aten_linalg_svdvals_default, k->args[0]),
                         CALL(k, aten_transpose_int, zeros[1], INT(-2), INT(-1)), END);
    return eager_ok(k->x);
}

// matrix_exp_backward(self, grad): the upper right block of exp([[A^T, G], [0, A^T]])
bool kern_matrix_exp_backward(K *k) {
    Value a = CALL(k, aten_transpose_int, k->args[0], INT(-2), INT(-1)), g = k->args[1];
    int64_t n = k->in[0]->ndim > 1 ? k->in[0]->size[k->in[0]->ndim - 1] : 0;
    Value top = CALL(k, aten_cat_default, list_value(k->x, a, g, END), INT(-1));
    Value low = CALL(k, aten_cat_default,
                     list_value(k->x, CALL(k, aten_zeros_like_default, a), a, END), INT(-1));
    Value e = CALL(k, aten_linalg_matrix_exp_default,
                   CALL(k, aten_cat_default, list_value(k->x, top, low, END), INT(-2)));
    e = CALL(k, aten_narrow_default, e, INT(-2), INT(0), INT(n));
    k->out = CALL(k, aten_narrow_default, e, INT(-1), INT(n), INT(n));
    return eager_ok(k->x);
}

// linalg_tensorinv(self, ind), linalg_tensorsolve(self, other, dims)
bool kern_tensorinv(K *k) {
    const Tensor *t = k->in[0];
    int64_t ind = ki(k, 1, 2), rows = 1, size[TENSOR_DIMS];
    if (ind <= 0 || ind > t->ndim)
        return k_fail(k, "RuntimeError: Expected a strictly positive integer for 'ind', given %lld",
                      (long long)ind);
    for (int i = 0; i < t->ndim; i++) {
        rows *= i < ind ? t->size[i] : 1;
        size[i] = t->size[(i + ind) % t->ndim];
    }
    Value v = CALL(k, aten_reshape_default, k->args[0], list_value(k->x, INT(rows), INT(-1), END));
    v = item(CALL(k, aten_linalg_inv_ex_default, v, BOOL(true)), 0);
    k->out = CALL(k, aten_reshape_default, v, ints_value(k->x, size, t->ndim));
    return eager_ok(k->x);
}

bool kern_tensorsolve(K *k) {
    Value a = k->args[0];
    const Tensor *b = k->in[1];
    int64_t dims[TENSOR_DIMS], to[TENSOR_DIMS];
    int n = k_given(k, 2) ? kints(k, 2, dims, TENSOR_DIMS) : 0;
    for (int i = 0; i < n; i++)
        to[i] = k->in[0]->ndim - n + i;
    if (n > 0)
        a = CALL(k, aten_movedim_intlist, a, ints_value(k->x, dims, n), ints_value(k->x, to, n));
    const Tensor *t = tensor_at(&a);
    if (!t || !b || n < 0 || t->ndim < b->ndim)
        return k_fail(k, "RuntimeError: linalg.tensorsolve: self has fewer dimensions than other");
    Value shape = ints_value(k->x, t->size + b->ndim, t->ndim - b->ndim);
    int64_t rows = tensor_numel(b);
    a = CALL(k, aten_reshape_default, a, list_value(k->x, INT(rows), INT(-1), END));
    Value right = CALL(k, aten_reshape_default, k->args[1], list_value(k->x, INT(rows), END));
    k->out = CALL(k, aten_reshape_default, CALL(k, aten_linalg_solve_default, a, right), shape);
    return eager_ok(k->x);
}

// products

// _addmm_activation(self, mat1, mat2, *, beta, alpha, use_gelu)
bool kern_addmm_activation(K *k) {
    Value v =
        CALL(k, aten_addmm_default, k->args[0], k->args[1], k->args[2], k->args[3], k->args[4]);
    v = kb(k, 5) ? CALL(k, aten_gelu_default, v) : CALL(k, aten_relu_default, v);
    const Tensor *t = tensor_at(&v);
    return t && copy_into(k->x, k->res[0], t);
}

// _int_mm(self, mat2): int8 by int8 in int32
bool kern_int_mm(K *k) {
    if (k->in[0]->dtype != DT_i8 || !k->in[1] || k->in[1]->dtype != DT_i8)
        return k_fail(k, "RuntimeError: Expected self and mat2 of dtype int8, but got %s and %s",
                      dtype_info[k->in[0]->dtype].torch_name,
                      k->in[1] ? dtype_info[k->in[1]->dtype].torch_name : "none");
    Value v = CALL(k, aten_mm_default, CALL(k, aten_to_dtype, k->args[0], DTY(DT_i32)),
                   CALL(k, aten_to_dtype, k->args[1], DTY(DT_i32)));
    const Tensor *t = tensor_at(&v);
    return t && copy_into(k->x, k->res[0], t);
}

// _convolution_mode(input, weight, bias, stride, padding, dilation, groups), thnn_conv2d
bool kern_conv_old(K *k) {
    if (strcmp(k->op->name, "thnn_conv2d") == 0)
        k->out = CALL(k, aten_conv2d_default, k->args[0], k->args[1], k->args[3], k->args[4],
                      k->args[5]);
    else if (k->in[0]->ndim == 3)
        k->out = CALL(k, aten_conv1d_padding, k->args[0], k->args[1], k->args[2], k->args[3],
                      k->args[4], k->args[5], k->args[6]);
    else if (k->in[0]->ndim == 4)
        k->out = CALL(k, aten_conv2d_padding, k->args[0], k->args[1], k->args[2], k->args[3],
                      k->args[4], k->args[5], k->args[6]);
    else
        k->out = CALL(k, aten_conv3d_padding, k->args[0], k->args[1], k->args[2], k->args[3],
                      k->args[4], k->args[5], k->args[6]);
    return eager_ok(k->x);
}

// _pad_circular(self, pad), _pad_enum(self, pad, mode, value)
bool kern_pad_old(K *k) {
    static const char *const modes[] = {"reflect", "replicate", "circular", "constant"};
    bool circular = strcmp(k->op->name, "_pad_circular") == 0;
    int64_t mode = circular ? 2 : ki(k, 2, 3);
    if (mode < 0 || mode >= COUNT(modes))
        return k_fail(k, "NotImplementedError: Unrecognised padding mode %lld", (long long)mode);
    k->out = CALL(k, aten_pad_default, k->args[0], k->args[1], val_str(modes[mode]),
                  circular ? NONE : k->args[3]);
    return eager_ok(k->x);
}

// _batch_norm_impl_index(…): native_batch_norm, no reserve, and the plain implementation's number
bool kern_batch_norm_index(K *k) {
    Value r = CALL(k, aten_native_batch_norm_default, k->args[0], k->args[1], k->args[2],
                   k->args[3], k->args[4], k->args[5], k->args[6], k->args[7]);
    int64_t none = 0;
    Tensor *reserve = eager_new(k->x, DT_u8, 1, &none);
    if (!reserve || !eager_ok(k->x))
        return false;
    k->out = tuple_value(k->x, item(r, 0), item(r, 1), item(r, 2), tensor_value(k->x, reserve),
                         INT(0), END);
    return true;
}

bool kern_batch_norm_index_backward(K *k) {
    k->out =
        CALL(k, aten_native_batch_norm_backward_default, k->args[2], k->args[1], k->args[3],
             k->args[4], k->args[5], k->args[6], k->args[7], k->args[8], k->args[9], k->args[10]);
    return eager_ok(k->x);
}

// batch_norm_update_stats(input, running_mean, running_var, momentum)
bool kern_batch_norm_update_stats(K *k) {
    const Tensor *x = k->in[0];
    int64_t dims[TENSOR_DIMS];
    if (x->ndim < 2)
        return k_fail(k,
                      "RuntimeError: batch_norm_update_stats: at least 2 dimensions expected, "
                      "but got %d",
                      x->ndim);
    for (int i = 1; i < x->ndim; i++)
        dims[i - 1] = i == 1 ? 0 : i;
    double n = (double)tensor_numel(x) / (double)(x->size[1] ? x->size[1] : 1);
    Value r =
        CALL(k, aten_var_mean_correction, k->args[0], ints_value(k->x, dims, x->ndim - 1), INT(0));
    Value var = item(r, 0), mean = item(r, 1), m = k->args[3];
    if (k_given(k, 1))
        CALL(k, aten_lerp__Scalar, k->args[1], mean, m);
    if (k_given(k, 2))
        CALL(k, aten_lerp__Scalar, k->args[2],
             CALL(k, aten_mul_Scalar, var, FLT(n / (n > 1 ? n - 1 : 1))), m);
    k->out = tuple_value(k->x, mean, var, END);
    return eager_ok(k->x);
}
