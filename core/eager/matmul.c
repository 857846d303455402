// matmul.c: matrix products on top of blas_gemm, and the ops that choose among them.
#include "core/eager/kernel.h"

#include <string.h>

static int64_t stride_of(const Tensor *t, int dim) {
    return t->size[dim] == 1 ? 1 : t->stride[dim];
}

// Of matrices, or of batches of them.
static void gemm(const K *k, const Tensor *c, const Tensor *a, const Tensor *b, double alpha,
                 double beta) {
    int o = c->ndim - 2;
    Gemm g = {.dtype = c->dtype,
              .m = c->size[o],
              .n = c->size[o + 1],
              .k = a->size[o + 1],
              .a = tensor_data(a),
              .b = tensor_data(b),
              .c = tensor_data(c),
              .a_row = a->stride[o],
              .a_col = a->stride[o + 1],
              .b_row = b->stride[o],
              .b_col = b->stride[o + 1],
              .c_row = stride_of(c, o),
              .c_col = stride_of(c, o + 1),
              .alpha = alpha,
              .beta = beta};
    if (g.n == 1 && g.m > 1)
        g.c_col = g.m;
    if (o) {
        g.batches = c->size[0];
        g.a_next = a->stride[0];
        g.b_next = b->stride[0];
        g.c_next = c->stride[0];
    }
    if (!o || g.batches)
        blas_gemm(&g, k->x->c->threads);
}

static Tensor matrix_of(const Tensor *t, int64_t batch) {
    Tensor m = *t;
    m.offset += batch * t->stride[0];
    m.ndim = 2;
    for (int i = 0; i < 2; i++) {
        m.size[i] = t->size[i + 1];
        m.stride[i] = t->stride[i + 1];
    }
    return m;
}

static bool same_dtypes(K *k, const Tensor *const *t, int n) {
    for (int i = 1; i < n; i++)
        if (t[i]->dtype != t[0]->dtype && tensor_numel(t[i]) && tensor_numel(t[0]))
            return k_fail(
                k, "RuntimeError: expected m1 and m2 to have the same dtype, but got: %s != %s",
                dtype_info[t[0]->dtype].torch_name, dtype_info[t[i]->dtype].torch_name);
    return true;
}

// The product of (m, k) and (k, n), or of batches of them, into res[0], which holds what beta
// scales.
static bool multiply(K *k, const Tensor *c, const Tensor *a, const Tensor *b, double alpha,
                     double beta) {
    const Tensor *all[] = {a, b, c};
    if (!same_dtypes(k, all, 3))
        return false;
    bool fits = a->ndim == c->ndim && b->ndim == c->ndim && (c->ndim == 2 || c->ndim == 3);
    int o = c->ndim - 2;
    fits = fits && a->size[o + 1] == b->size[o] && c->size[o] == a->size[o] &&
           c->size[o + 1] == b->size[o + 1];
    fits = fits && (!o || (a->size[0] == c->size[0] && b->size[0] == c->size[0]));
    if (!fits)
        return k_fail(k, "RuntimeError: mat1 and mat2 shapes cannot be multiplied");
    gemm(k, c, a, b, alpha, beta);
    return true;
}

bool kern_mm(K *k) {
    return multiply(k, k->res[0], k->in[0], k->in[1], 1, 0);
}

// addmm, baddbmm: beta self + alpha a b.
bool kern_addmm(K *k) {
    double beta = kf(k, karg(k, "beta"), 1), alpha = kf(k, karg(k, "alpha"), 1);
    if (beta != 0 && !copy_into(k->x, k->res[0], k->in[0]))
        return false;
    return multiply(k, k->res[0], k->in[1], k->in[2], alpha, beta);
}

static Tensor as_matrix(const Tensor *v, bool column) {
    Tensor m = *v;
    m.ndim = 2;
    m.size[column ? 0 : 1] = v->size[0];
    m.stride[column ? 0 : 1] = v->stride[0];
    m.size[column ? 1 : 0] = 1;
    m.stride[column ? 1 : 0] = 1;
    return m;
}

bool kern_mv(K *k) {
    Tensor v = as_matrix(k->in[1], true), c = as_matrix(k->res[0], true);
    return multiply(k, &c, k->in[0], &v, 1, 0);
}

bool kern_addmv(K *k) {
    double beta = kf(k, karg(k, "beta"), 1), alpha = kf(k, karg(k, "alpha"), 1);
    Tensor v = as_matrix(k->in[2], true), c = as_matrix(k->res[0], true);
    if (beta != 0 && !copy_into(k->x, k->res[0], k->in[0]))
        return false;
    return multiply(k, &c, k->in[1], &v, alpha, beta);
}

bool kern_dot(K *k) {
    const Tensor *a = k->in[0], *b = k->in[1];
    if (a->ndim != 1 || b->ndim != 1 || a->size[0] != b->size[0])
        return k_fail(k,
                      "RuntimeError: inconsistent tensor size, expected tensor [%lld] and src "
                      "[%lld] to have the same "
                      "number of elements",
                      (long long)tensor_numel(a), (long long)tensor_numel(b));
    Tensor row = as_matrix(a, false), column = as_matrix(b, true), c = *k->res[0];
    c.ndim = 2;
    c.size[0] = c.size[1] = c.stride[0] = c.stride[1] = 1;
    return multiply(k, &c, &row, &column, 1, 0);
}

// A factor as a number of the result's dtype.
static Value factor_of(const K *k, int i) {
    DType d = k->res[0]->dtype;
    return dtype_is_low(d) ? FLT(round_to(d, kf(k, i, 1))) : k->args[i];
}

// Each step is rounded, as PyTorch's loop over vectors of the dtype does.
bool kern_addr(K *k) {
    Value alpha = factor_of(k, 4), beta = factor_of(k, 3);
    Value column =
        CALL(k, aten_unsqueeze_default, CALL(k, aten_mul_Scalar, k->args[1], alpha), INT(1));
    Value scaled =
        CALL(k, aten_mul_Tensor, column, CALL(k, aten_unsqueeze_default, k->args[2], INT(0)));
    if (kf(k, 3, 1) != 0)
        scaled = CALL(k, aten_add_Tensor, scaled, CALL(k, aten_mul_Scalar, k->args[0], beta));
    return scaled.kind == VAL_tensor && copy_into(k->x, k->res[0], tensor_at(&scaled));
}

// The products of the batch are added one after the other, each rounded.
bool kern_addbmm(K *k) {
    const Tensor *a = k->in[1], *b = k->in[2];
    double beta = kf(k, karg(k, "beta"), 1), alpha = kf(k, karg(k, "alpha"), 1);
    if (a->ndim != 3 || b->ndim != 3)
        return k_fail(k, "RuntimeError: batch1 and batch2 must be 3D tensors");
    if (beta != 0 && !copy_into(k->x, k->res[0], k->in[0]))
        return false;
    if (a->size[0] == 0 && beta != 0 && beta != 1) {
        Value v = CALL(k, aten_mul_Scalar, k->args[0], k->args[3]);
        return v.kind == VAL_tensor && copy_into(k->x, k->res[0], tensor_at(&v));
    }
    for (int64_t i = 0; i < a->size[0]; i++) {
        Tensor am = matrix_of(a, i), bm = matrix_of(b, i);
        if (b->size[0] != a->size[0] || !multiply(k, k->res[0], &am, &bm, alpha, i ? 1 : beta))
            return k_fail(k, "RuntimeError: batch1 and batch2 must have same number of batches");
    }
    return true;
}

// torch.matmul: by the numbers of dimensions.
static Value folded(K *k, Value a, Value b, const Tensor *x, const Tensor *y) {
    int64_t rows[2] = {-1, x->size[x->ndim - 1]}, size[TENSOR_DIMS];
    memcpy(size, x->size, sizeof size);
    bool vector = y->ndim == 1;
    rows[0] = 1;
    for (int i = 0; i < x->ndim - 1; i++)
        rows[0] *= x->size[i];
    Value flat = CALL(k, aten_reshape_default, a, ints_value(k->x, rows, 2));
    Value r = vector ? CALL(k, aten_mv_default, flat, b) : CALL(k, aten_mm_default, flat, b);
    size[x->ndim - 1] = vector ? 0 : y->size[1];
    return CALL(k, aten_view_default, r, ints_value(k->x, size, x->ndim - vector));
}

static Value batched(K *k, Value a, Value b) {
    const Tensor *x = tensor_at(&a), *y = tensor_at(&b);
    int nx = x->ndim, ny = y->ndim;
    Value left = nx == 1 ? CALL(k, aten_unsqueeze_default, a, INT(0)) : a;
    Value right = ny == 1 ? CALL(k, aten_unsqueeze_default, b, INT(1)) : b;
    if (!eager_ok(k->x))
        return NONE;
    x = tensor_at(&left);
    y = tensor_at(&right);
    int n = x->ndim > y->ndim ? x->ndim : y->ndim;
    int64_t xs[TENSOR_DIMS + 2], ys[TENSOR_DIMS + 2], out[TENSOR_DIMS + 2], batch = 1;
    for (int i = 0; i < n - 2; i++) {
        int64_t p = i - (n - x->ndim) >= 0 ? x->size[i - (n - x->ndim)] : 1;
        int64_t q = i - (n - y->ndim) >= 0 ? y->size[i - (n - y->ndim)] : 1;
        xs[i] = ys[i] = out[i] = p == 1 ? q : p;
        batch *= out[i];
    }
    int64_t m = x->size[x->ndim - 2], kk = x->size[x->ndim - 1], k2 = y->size[y->ndim - 2],
            p = y->size[y->ndim - 1];
    xs[n - 2] = m, xs[n - 1] = kk, ys[n - 2] = k2, ys[n - 1] = p;
    int64_t x3[3] = {batch, m, kk}, y3[3] = {batch, k2, p};
    left =
        CALL(k, aten_reshape_default, CALL(k, aten_expand_default, left, ints_value(k->x, xs, n)),
             ints_value(k->x, x3, 3));
    right =
        CALL(k, aten_reshape_default, CALL(k, aten_expand_default, right, ints_value(k->x, ys, n)),
             ints_value(k->x, y3, 3));
    Value r = CALL(k, aten_bmm_default, left, right);
    int rank = n - 2;
    if (nx > 1)
        out[rank++] = m;
    if (ny > 1)
        out[rank++] = p;
    return CALL(k, aten_view_default, r, ints_value(k->x, out, rank));
}

bool kern_matmul(K *k) {
    Value a = k->args[0], b = k->args[1];
    const Tensor *x = k->in[0], *y = k->in[1];
    if (!x->ndim || !y->ndim)
        return k_fail(k,
                      "RuntimeError: both arguments to matmul need to be at least 1D, but they are "
                      "%dD and %dD",
                      x->ndim, y->ndim);
    if (x->ndim == 1 && y->ndim == 1)
        k->out = CALL(k, aten_dot_default, a, b);
    else if (x->ndim == 2 && y->ndim == 1)
        k->out = CALL(k, aten_mv_default, a, b);
    else if (x->ndim == 2 && y->ndim == 2)
        k->out = CALL(k, aten_mm_default, a, b);
    else if (x->ndim >= 3 && y->ndim <= 2 && tensor_is_contiguous(x))
        k->out = folded(k, a, b, x, y);
    else
        k->out = batched(k, a, b);
    return eager_ok(k->x);
}

// x (…, in), weight (out, in), bias (out).
bool kern_linear(K *k) {
    const Tensor *x = k->in[0], *w = k->in[1];
    if (!x || !w || w->ndim > 2 || !x->ndim)
        return k_fail(
            k,
            "RuntimeError: linear(): weight must have one or two dimensions, input at least one");
    Value t = CALL(k, aten_t_default, k->args[1]);
    if (w->ndim == 1 || !eager_ok(k->x)) {
        k->out = CALL(k, aten_matmul_default, k->args[0], t);
        if (k_given(k, 2))
            k->out = CALL(k, aten_add_Tensor, k->out, k->args[2]);
        return eager_ok(k->x);
    }
    int64_t rows[2] = {1, x->size[x->ndim - 1]}, size[TENSOR_DIMS];
    for (int i = 0; i < x->ndim - 1; i++)
        rows[0] *= size[i] = x->size[i];
    size[x->ndim - 1] = w->size[0];
    Value flat = x->ndim == 2
                     ? k->args[0]
                     : CALL(k, aten_reshape_default, k->args[0], ints_value(k->x, rows, 2));
    Value r = k_given(k, 2) ? CALL(k, aten_addmm_default, k->args[2], flat, t)
                            : CALL(k, aten_mm_default, flat, t);
    k->out = x->ndim == 2 ? r : CALL(k, aten_view_default, r, ints_value(k->x, size, x->ndim));
    return eager_ok(k->x);
}

// weight of size (out, a, b): x1 W x2 + bias.
bool kern_bilinear(K *k) {
    const Tensor *w = k->in[2];
    if (!w || w->ndim != 3)
        return k_fail(k, "RuntimeError: bilinear(): weight must have three dimensions");
    Value x1 = CALL(k, aten_unsqueeze_default, CALL(k, aten_unsqueeze_default, k->args[0], INT(-2)),
                    INT(-2));
    Value xw = CALL(k, aten_matmul_default, x1, k->args[2]); // (…, out, 1, b)
    Value x2 = CALL(k, aten_unsqueeze_default, CALL(k, aten_unsqueeze_default, k->args[1], INT(-1)),
                    INT(-3));
    Value r =
        CALL(k, aten_squeeze_dim,
             CALL(k, aten_squeeze_dim, CALL(k, aten_matmul_default, xw, x2), INT(-1)), INT(-1));
    k->out = k_given(k, 3) ? CALL(k, aten_add_Tensor, r, k->args[3]) : r;
    return eager_ok(k->x);
}
