// linalg.c: linear systems: LU, Cholesky and LDL factors, triangles, determinants, inverses, matrix
// exponentials.
#include "core/eager/linalg.h"

#include <math.h>
#include <string.h>

bool mats_read(K *k, const Tensor *t, Mats *out) {
    *out = (Mats){0};
    if (!t || t->ndim < 2 || t->ndim >= TENSOR_DIMS)
        return k_fail(
            k, "RuntimeError: linalg.%s: The input tensor A must have at least 2 dimensions.",
            k->op->name);
    if (!dtype_is_float(t->dtype) && tensor_numel(t) && k->op->id != OP_aten_lu_unpack_default)
        return k_fail(k,
                      "RuntimeError: linalg.%s: Expected a floating point tensor as input. Got %s",
                      k->op->name, dtype_info[t->dtype].torch_name);
    Tensor *d = eager_like(k->x, t, DT_f64);
    if (!d || !copy_into(k->x, d, t))
        return false;
    *out = (Mats){.batch = 1,
                  .m = t->size[t->ndim - 2],
                  .n = t->size[t->ndim - 1],
                  .at = tensor_data(d),
                  .t = d};
    for (int i = 0; i < t->ndim - 2; i++)
        out->batch *= t->size[i];
    return true;
}

bool mats_make(K *k, const Tensor *shape, Mats *out) {
    Tensor *d = shape ? eager_like(k->x, shape, DT_f64) : NULL;
    *out = (Mats){.batch = 1};
    if (!d)
        return false;
    out->m = d->ndim > 1 ? d->size[d->ndim - 2] : 1;
    out->n = d->ndim ? d->size[d->ndim - 1] : 1;
    for (int i = 0; i < d->ndim - 2; i++)
        out->batch *= d->size[i];
    out->at = tensor_data(d);
    out->t = d;
    return true;
}

bool mats_store(K *k, int res, const Mats *v) {
    return res < k->n_res && k->res[res] && copy_into(k->x, k->res[res], v->t);
}

bool mats_broadcast(K *k, const Tensor *v, const Tensor *like, Mats *out) {
    int64_t size[TENSOR_DIMS];
    if (v->ndim < 2 || like->ndim < 2)
        return k_fail(k, "RuntimeError: %s: matrices expected", k->op->name);
    memcpy(size, like->size, sizeof size);
    size[like->ndim - 2] = v->size[v->ndim - 2];
    size[like->ndim - 1] = v->size[v->ndim - 1];
    Value view =
        CALL(k, aten_expand_default, eager_view(k->x, v), ints_value(k->x, size, like->ndim));
    return view.kind == VAL_tensor && mats_read(k, tensor_at(&view), out);
}

static bool square(K *k, const Mats *a) {
    return a->m == a->n || k_fail(k,
                                  "RuntimeError: linalg.%s: A must be batches of square matrices, "
                                  "but they are %lld by %lld "
                                  "matrices",
                                  k->op->name, (long long)a->m, (long long)a->n);
}

static void put_pivots(const Tensor *t, const int64_t *pivot, int64_t b, int64_t n) {
    for (int64_t i = 0; t && i < n; i++)
        tensor_set_i64((Tensor *)(uintptr_t)t, b * n + i, pivot[i] + 1);
}

static void put_info(K *k, int res, int64_t b, int info) {
    if (res < k->n_res && k->res[res])
        tensor_set_i64(k->res[res], b, info);
}

static int64_t *read_pivots(K *k, const Tensor *t) {
    int64_t n = tensor_numel(t), *p = ARENA_ARRAY(k->x->arena, n + 1, int64_t);
    for (int64_t i = 0; i < n; i++)
        p[i] = (int64_t)((uint64_t)tensor_get_i64(t, i) - 1);
    return p;
}

static bool pivots_fit(K *k, const int64_t *p, int64_t n, int64_t rows) {
    for (int64_t i = 0; i < n; i++)
        if (p[i] < 0 || p[i] >= rows)
            return k_fail(k, "RuntimeError: Pivots given to %s must all be greater or equal to 1.",
                          k->op->name);
    return true;
}

// Contiguous matrices are factored transposed, since LAPACK reads columns first.
static void turn(Mats *a) {
    for (int64_t b = 0; b < a->batch; b++)
        for (int64_t i = 0; i < a->m; i++)
            for (int64_t j = 0; j < i; j++) {
                double *x = &mat(a, b)[i * a->n + j], *y = &mat(a, b)[j * a->n + i], t = *x;
                *x = *y;
                *y = t;
            }
}

// linalg_lu_factor_ex(A, pivot, check_errors) -> LU, pivots, info
bool kern_lu_factor(K *k) {
    Mats a = {0};
    if (!mats_read(k, k->in[0], &a))
        return false;
    int64_t r = a.m < a.n ? a.m : a.n, *pivot = ARENA_ARRAY(k->x->arena, r + 1, int64_t);
    for (int64_t b = 0; b < a.batch; b++) {
        put_info(k, 2, b, lu_factor(mat(&a, b), a.m, a.n, pivot, kb(k, 1)));
        put_pivots(k->res[1], pivot, b, r);
    }
    return mats_store(k, 0, &a);
}

// _linalg_det(A) -> result, LU, pivots; _linalg_slogdet(A) -> sign, logabsdet, LU, pivots
static bool determinant(K *k, bool logs) {
    Mats a = {0};
    if (!mats_read(k, k->in[0], &a) || !square(k, &a))
        return false;
    if (tensor_is_contiguous(k->in[0]))
        turn(&a);
    int64_t *pivot = ARENA_ARRAY(k->x->arena, a.n + 1, int64_t);
    for (int64_t b = 0; b < a.batch; b++) {
        double det = 1, log_sum = 0, sign = 1;
        lu_factor(mat(&a, b), a.n, a.n, pivot, true);
        for (int64_t i = 0; i < a.n; i++) {
            double d = mat(&a, b)[i * a.n + i];
            sign *= pivot[i] != i ? -1 : 1;
            det *= d;
            sign *= d < 0 ? -1 : d == 0 ? 0 : 1;
            log_sum += log(fabs(d));
        }
        double swaps = 1;
        for (int64_t i = 0; i < a.n; i++)
            swaps *= pivot[i] != i ? -1 : 1;
        tensor_set_f64(k->res[0], b, logs ? sign : det * swaps);
        if (logs)
            tensor_set_f64(k->res[1], b, log_sum);
        if (k->n_res > 1 + logs)
            put_pivots(k->res[2 + logs], pivot, b, a.n);
    }
    return k->n_res <= 1 + logs || mats_store(k, 1 + logs, &a);
}

bool kern_det(K *k) {
    return determinant(k, false);
}

bool kern_slogdet(K *k) {
    return determinant(k, true);
}

bool kern_logdet(K *k) {
    Value r = CALL(k, aten__linalg_slogdet_default, k->args[0]);
    if (r.kind != VAL_tuple)
        return false;
    for (int64_t b = 0; b < tensor_numel(k->res[0]); b++) {
        double sign = tensor_get_f64(tensor_at(&r.at[0]), b);
        tensor_set_f64(k->res[0], b,
                       sign < 0 ? (double)NAN : tensor_get_f64(tensor_at(&r.at[1]), b));
    }
    return true;
}

static bool singular(K *k) {
    return k_fail(
        k, "_LinAlgError: torch.linalg.%s: The solver failed because the input matrix is singular.",
        k->op->name);
}

// _linalg_solve_ex(A, B, *, left, check_errors) -> result, LU, pivots, info; linalg_solve(A, B, *,
// left) -> result
bool kern_solve(K *k) {
    const Tensor *B = k->in[1];
    bool left = kb(k, karg(k, "left")),
         vector = B && k->in[0]->ndim >= 1 &&
                  (B->ndim == 1 || (B->ndim == k->in[0]->ndim - 1 && k->res[0]->ndim == B->ndim));
    bool strict = str_starts(k->op->name, "linalg_");
    Mats a = {0}, b = {0}, x = {0}, own = {0};
    if (!B || B->ndim >= TENSOR_DIMS || !mats_read(k, k->in[0], &own) || !square(k, &own))
        return false;
    for (int i = 0; vector && i < B->ndim - 1; i++)
        vector = B->size[i] == k->in[0]->size[i];
    Tensor like = *k->res[0], column = *B;
    if (vector) {
        like.size[like.ndim] = column.size[column.ndim] = 1;
        like.stride[like.ndim++] = column.stride[column.ndim++] = 1;
    }
    if (!mats_broadcast(k, k->in[0], &like, &a) || !mats_broadcast(k, &column, &like, &b) ||
        !mats_make(k, &like, &x) || (left ? b.m != a.n : b.n != a.n))
        return k_fail(
            k,
            "RuntimeError: linalg.solve: Incompatible shapes of A and B for the equation AX = B");
    int64_t n = a.n, cols = left ? b.n : b.m, *pivot = ARENA_ARRAY(k->x->arena, n + 1, int64_t);
    double *t = ARENA_ARRAY(k->x->arena, n * cols + 1, double);
    for (int64_t i = 0; i < a.batch; i++) {
        int info = lu_factor(mat(&a, i), n, n, pivot, true);
        if (info && strict)
            return singular(k);
        if (left)
            memcpy(t, mat(&b, i), (size_t)(n * cols) * sizeof *t);
        else
            transpose_into(mat(&b, i), b.m, b.n, t);
        lu_solve(mat(&a, i), pivot, n, t, cols, !left);
        if (left)
            memcpy(mat(&x, i), t, (size_t)(n * cols) * sizeof *t);
        else
            transpose_into(t, n, cols, mat(&x, i));
    }
    for (int64_t i = 0; k->n_res > 1 && i < own.batch; i++) {
        put_info(k, 3, i, lu_factor(mat(&own, i), n, n, pivot, true));
        put_pivots(k->res[2], pivot, i, n);
    }
    Tensor flat = *x.t;
    if (vector)
        flat.ndim--;
    for (int i = 0; vector && i < flat.ndim; i++)
        flat.stride[i] = x.t->stride[i];
    return copy_into(k->x, k->res[0], &flat) && (k->n_res < 2 || mats_store(k, 1, &own));
}

// linalg_lu_solve(LU, pivots, B, *, left, adjoint)
bool kern_lu_solve(K *k) {
    Mats lu = {0}, b = {0};
    bool left = kb(k, karg(k, "left")), adjoint = kb(k, karg(k, "adjoint"));
    if (!k->in[1] || !k->in[2] || !mats_broadcast(k, k->in[0], k->res[0], &lu) || !square(k, &lu) ||
        !mats_broadcast(k, k->in[2], k->res[0], &b) || (left ? b.m : b.n) != lu.n)
        return k_fail(k, "RuntimeError: linalg.lu_solve: Incompatible shapes");
    int64_t n = lu.n, cols = left ? b.n : b.m, *pivot = read_pivots(k, k->in[1]),
            given = tensor_numel(k->in[1]) / (n ? n : 1);
    double *t = ARENA_ARRAY(k->x->arena, n * cols + 1, double);
    if (!pivots_fit(k, pivot, given * n, n))
        return false;
    for (int64_t i = 0; i < lu.batch; i++) {
        if (left)
            memcpy(t, mat(&b, i), (size_t)(n * cols) * sizeof *t);
        else
            transpose_into(mat(&b, i), b.m, b.n, t);
        lu_solve(mat(&lu, i), pivot + (given ? i % given : 0) * n, n, t, cols,
                 left ? adjoint : !adjoint);
        if (left)
            memcpy(mat(&b, i), t, (size_t)(n * cols) * sizeof *t);
        else
            transpose_into(t, n, cols, mat(&b, i));
    }
    return mats_store(k, 0, &b);
}

// lu_unpack(LU, pivots, unpack_data, unpack_pivots) -> P, L, U
bool kern_lu_unpack(K *k) {
    Mats lu = {0}, p = {0}, l = {0}, u = {0};
    if (!mats_read(k, k->in[0], &lu) || !mats_make(k, k->res[0], &p) ||
        !mats_make(k, k->res[1], &l) || !mats_make(k, k->res[2], &u))
        return false;
    int64_t r = lu.m < lu.n ? lu.m : lu.n, *pivot = kb(k, 3) ? read_pivots(k, k->in[1]) : NULL;
    if (pivot &&
        (tensor_numel(k->in[1]) != lu.batch * r || !pivots_fit(k, pivot, lu.batch * r, lu.m)))
        return k_fail(k,
                      "RuntimeError: lu_unpack: LU_pivots of another shape than LU_data asks for");
    int64_t *row = ARENA_ARRAY(k->x->arena, lu.m + 1, int64_t);
    for (int64_t b = 0; b < lu.batch; b++) {
        for (int64_t i = 0; pivot && i < lu.m; i++)
            row[i] = i;
        for (int64_t i = 0; pivot && i < r; i++) {
            int64_t t = row[i];
            row[i] = row[pivot[b * r + i]];
            row[pivot[b * r + i]] = t;
        }
        for (int64_t i = 0; pivot && i < lu.m; i++)
            mat(&p, b)[row[i] * lu.m + i] = 1;
        for (int64_t i = 0; kb(k, 2) && i < lu.m; i++)
            for (int64_t j = 0; j < lu.n; j++) {
                double v = mat(&lu, b)[i * lu.n + j];
                if (j < r)
                    mat(&l, b)[i * r + j] = i == j ? 1 : i > j ? v : 0;
                if (i < r)
                    mat(&u, b)[i * lu.n + j] = i <= j ? v : 0;
            }
    }
    return mats_store(k, 0, &p) && mats_store(k, 1, &l) && mats_store(k, 2, &u);
}

// linalg_inv_ex(A) -> inverse, info; linalg_inv, inverse
bool kern_inverse(K *k) {
    Mats a = {0}, x = {0};
    if (!mats_read(k, k->in[0], &a) || !square(k, &a) || !mats_make(k, k->in[0], &x))
        return false;
    int64_t *pivot = ARENA_ARRAY(k->x->arena, a.n + 1, int64_t);
    for (int64_t b = 0; b < a.batch; b++) {
        int info = lu_factor(mat(&a, b), a.n, a.n, pivot, true);
        if (info && k->n_res < 2)
            return singular(k);
        for (int64_t i = 0; i < a.n; i++)
            mat(&x, b)[i * a.n + i] = 1;
        lu_solve(mat(&a, b), pivot, a.n, mat(&x, b), a.n, false);
        put_info(k, 1, b, info);
    }
    return mats_store(k, 0, &x);
}

// cholesky(self, upper), linalg_cholesky_ex(self, *, upper, check_errors) -> L, info,
// linalg_cholesky
bool kern_cholesky(K *k) {
    Mats a = {0}, l = {0};
    bool upper = kb(k, karg(k, "upper"));
    if (k->op->id == OP_aten_cholesky_default && tensor_numel(k->in[0]) == 0)
        return true; // of any dtype and shape
    if (!mats_read(k, k->in[0], &a) || !square(k, &a) || !mats_make(k, k->in[0], &l))
        return false;
    for (int64_t b = 0; b < a.batch; b++) {
        double *to = mat(&l, b);
        // The triangle that is asked for is the one that is read.
        if (upper)
            transpose_into(mat(&a, b), a.n, a.n, to);
        else
            memcpy(to, mat(&a, b), (size_t)(a.n * a.n) * sizeof *to);
        int info = cholesky(to, a.n);
        if (info && k->n_res < 2)
            return k_fail(
                k,
                "_LinAlgError: linalg.cholesky: The factorization could not be completed because "
                "the input is not "
                "positive-definite (the leading minor of order %d is not positive-definite).",
                info);
        put_info(k, 1, b, info);
    }
    if (upper)
        turn(&l);
    return mats_store(k, 0, &l);
}

// cholesky_inverse(self, upper): of the product that the factor stands for
bool kern_cholesky_inverse(K *k) {
    Mats l = {0}, x = {0};
    bool upper = kb(k, 1);
    if (!mats_read(k, k->in[0], &l) || !square(k, &l) || !mats_make(k, k->in[0], &x))
        return false;
    for (int64_t b = 0; b < l.batch; b++) {
        for (int64_t i = 0; i < l.n; i++)
            mat(&x, b)[i * l.n + i] = 1;
        solve_triangle(mat(&l, b), l.n, mat(&x, b), l.n, upper, upper, false);
        solve_triangle(mat(&l, b), l.n, mat(&x, b), l.n, upper, !upper, false);
    }
    return mats_store(k, 0, &x);
}

// cholesky_solve(self, input2, upper): input2 is the factor
bool kern_cholesky_solve(K *k) {
    Mats b = {0}, l = {0};
    bool upper = kb(k, 2);
    if (!k->in[1] || !mats_broadcast(k, k->in[0], k->res[0], &b) ||
        !mats_broadcast(k, k->in[1], k->res[0], &l) || !square(k, &l) || b.m != l.n)
        return k_fail(k, "RuntimeError: cholesky_solve: Incompatible matrix sizes");
    for (int64_t i = 0; i < b.batch; i++) {
        solve_triangle(mat(&l, i), l.n, mat(&b, i), b.n, upper, upper, false);
        solve_triangle(mat(&l, i), l.n, mat(&b, i), b.n, upper, !upper, false);
    }
    return mats_store(k, 0, &b);
}

static bool triangular(K *k, const Tensor *A, const Tensor *B, bool upper, bool left,
                       bool transpose, bool unit) {
    Mats a = {0}, b = {0};
    if (!A || !B || !mats_broadcast(k, A, k->res[0], &a) || !square(k, &a) ||
        !mats_broadcast(k, B, k->res[0], &b) || (left ? b.m : b.n) != a.n)
        return k_fail(k, "RuntimeError: %s: Incompatible shapes of A and B", k->op->name);
    double *t = ARENA_ARRAY(k->x->arena, b.m * b.n + 1, double);
    for (int64_t i = 0; i < a.batch; i++) {
        if (left) {
            solve_triangle(mat(&a, i), a.n, mat(&b, i), b.n, upper, transpose, unit);
            continue;
        }
        transpose_into(mat(&b, i), b.m, b.n, t);
        solve_triangle(mat(&a, i), a.n, t, b.m, upper, !transpose, unit);
        transpose_into(t, b.n, b.m, mat(&b, i));
    }
    return mats_store(k, 0, &b);
}

// linalg_solve_triangular(A, B, *, upper, left, unitriangular)
bool kern_solve_triangular(K *k) {
    const Tensor *b = eager_contiguous(k->x, k->in[1], k->in[0]->dtype);
    return b && triangular(k, k->in[0], b, kb(k, 2), kb(k, 3), false, kb(k, 4));
}

// triangular_solve(self, A, upper, transpose, unitriangular) -> solution, A's copy
bool kern_triangular_solve(K *k) {
    return triangular(k, k->in[1], k->in[0], kb(k, 2), true, kb(k, 3), kb(k, 4)) &&
           copy_into(k->x, k->res[1], k->in[1]);
}

// LDL^T of Bunch and Kaufman, lower form (LAPACK's sytf2): pivots from 1, negative for blocks of
// two.
static void swap_symmetric(double *a, int64_t n, int64_t p, int64_t q) {
    for (int64_t i = q + 1; i < n; i++) {
        double t = a[i * n + p];
        a[i * n + p] = a[i * n + q];
        a[i * n + q] = t;
    }
    for (int64_t i = p + 1; i < q; i++) {
        double t = a[i * n + p];
        a[i * n + p] = a[q * n + i];
        a[q * n + i] = t;
    }
    double t = a[p * n + p];
    a[p * n + p] = a[q * n + q];
    a[q * n + q] = t;
}

static int64_t ldl_pivot(const double *a, int64_t n, int64_t j, int64_t *step) {
    const double alpha = (1 + sqrt(17.0)) / 8;
    int64_t r = j + 1;
    double top = 0, row = 0;
    *step = 1;
    for (int64_t i = j + 1; i < n; i++)
        if (fabs(a[i * n + j]) > top) {
            top = fabs(a[i * n + j]);
            r = i;
        }
    if (top == 0 || fabs(a[j * n + j]) >= alpha * top)
        return j;
    for (int64_t i = j; i < r; i++)
        row = fmax(row, fabs(a[r * n + i]));
    for (int64_t i = r + 1; i < n; i++)
        row = fmax(row, fabs(a[i * n + r]));
    if (fabs(a[j * n + j]) >= alpha * top * (top / row))
        return j;
    if (fabs(a[r * n + r]) >= alpha * row)
        return r;
    *step = 2;
    return r;
}

static void ldl_factor(double *a, int64_t n, int64_t *pivot) {
    for (int64_t j = 0, step; j < n; j += step) {
        int64_t p = ldl_pivot(a, n, j, &step), at = j + step - 1;
        if (p != at) {
            swap_symmetric(a, n, at, p);
            if (step == 2) {
                double t = a[(j + 1) * n + j];
                a[(j + 1) * n + j] = a[p * n + j];
                a[p * n + j] = t;
            }
        }
        pivot[j] = p + 1;
        if (step == 1) {
            double d = a[j * n + j];
            for (int64_t i = n - 1; i > j && d != 0; i--) {
                for (int64_t c = j + 1; c <= i; c++)
                    a[i * n + c] -= a[i * n + j] * a[c * n + j] / d;
            }
            for (int64_t i = j + 1; i < n && d != 0; i++)
                a[i * n + j] /= d;
            continue;
        }
        pivot[j] = pivot[j + 1] = -(p + 1);
        double off = a[(j + 1) * n + j], d11 = a[(j + 1) * n + j + 1] / off,
               d22 = a[j * n + j] / off, t = 1 / (d11 * d22 - 1) / off;
        for (int64_t c = j + 2; c < n; c++) {
            double w = t * (d11 * a[c * n + j] - a[c * n + j + 1]),
                   v = t * (d22 * a[c * n + j + 1] - a[c * n + j]);
            for (int64_t i = c; i < n; i++)
                a[i * n + c] -= a[i * n + j] * w + a[i * n + j + 1] * v;
            a[c * n + j] = w;
            a[c * n + j + 1] = v;
        }
    }
}

// linalg_ldl_factor_ex(self, *, hermitian, check_errors) -> LD, pivots, info
bool kern_ldl_factor(K *k) {
    Mats a = {0};
    if (!mats_read(k, k->in[0], &a) || !square(k, &a))
        return false;
    int64_t *pivot = ARENA_ARRAY(k->x->arena, a.n + 1, int64_t);
    for (int64_t b = 0; b < a.batch; b++) {
        ldl_factor(mat(&a, b), a.n, pivot);
        for (int64_t i = 0; i < a.n; i++) {
            tensor_set_i64(k->res[1], b * a.n + i, pivot[i]);
            for (int64_t j = i + 1; j < a.n; j++)
                mat(&a, b)[i * a.n + j] = 0;
        }
        put_info(k, 2, b, 0);
    }
    return mats_store(k, 0, &a);
}

static void ldl_solve(const double *a, const int64_t *p, int64_t n, double *b, int64_t cols) {
    for (int64_t j = 0; j < n;) {
        int64_t step = p[j] > 0 ? 1 : 2;
        swap_rows(b, cols, j + step - 1, (p[j] > 0 ? p[j] : -p[j]) - 1);
        for (int64_t i = j + step; i < n; i++)
            for (int64_t c = 0; c < cols; c++)
                for (int64_t s = 0; s < step; s++)
                    b[i * cols + c] -= a[i * n + j + s] * b[(j + s) * cols + c];
        for (int64_t c = 0; c < cols; c++)
            if (step == 1) {
                b[j * cols + c] /= a[j * n + j];
            } else {
                double off = a[(j + 1) * n + j], x = a[j * n + j] / off,
                       y = a[(j + 1) * n + j + 1] / off, d = x * y - 1;
                double u = b[j * cols + c] / off, v = b[(j + 1) * cols + c] / off;
                b[j * cols + c] = (y * u - v) / d;
                b[(j + 1) * cols + c] = (x * v - u) / d;
            }
        j += step;
    }
    for (int64_t j = n - 1; j >= 0;) {
        int64_t step = p[j] > 0 ? 1 : 2, first = j - step + 1;
        for (int64_t s = 0; s < step; s++)
            for (int64_t i = j + 1; i < n; i++)
                for (int64_t c = 0; c < cols; c++)
                    b[(first + s) * cols + c] -= a[i * n + first + s] * b[i * cols + c];
        swap_rows(b, cols, j, (p[j] > 0 ? p[j] : -p[j]) - 1);
        j = first - 1;
    }
}

// linalg_ldl_solve(LD, pivots, B)
bool kern_ldl_solve(K *k) {
    Mats a = {0}, b = {0};
    if (!k->in[1] || !k->in[2] || !mats_broadcast(k, k->in[0], k->res[0], &a) || !square(k, &a) ||
        !mats_broadcast(k, k->in[2], k->res[0], &b) || b.m != a.n)
        return k_fail(k, "RuntimeError: torch.linalg.ldl_solve: Incompatible shapes");
    int64_t n = a.n, count = tensor_numel(k->in[1]),
            *p = ARENA_ARRAY(k->x->arena, count + 1, int64_t);
    for (int64_t i = 0; i < count; i++) {
        p[i] = tensor_get_i64(k->in[1], i);
        if (p[i] == 0 || p[i] > n || p[i] < -n)
            return k_fail(k, "RuntimeError: torch.linalg.ldl_solve: a pivot is out of range");
    }
    for (int64_t i = 0; i < a.batch && count >= n && n; i++) {
        const int64_t *own = p + i % (count / n) * n;
        for (int64_t j = 0; j<n; j += own[j]> 0 ? 1 : 2)
            if (own[j] < 0 && (j + 1 >= n || own[j + 1] >= 0))
                return k_fail(
                    k, "RuntimeError: torch.linalg.ldl_solve: a block of two pivots is torn");
        ldl_solve(mat(&a, i), own, n, mat(&b, i), b.n);
    }
    return mats_store(k, 0, &b);
}

// _linalg_check_errors(info, api_name, *, is_matrix)
bool kern_check_errors(K *k) {
    const Tensor *info = k->in[0];
    k->out = NONE;
    for (int64_t i = 0; i < tensor_numel(info); i++)
        if (tensor_get_i64(info, i) != 0)
            return k_fail(
                k, "RuntimeError: %s: (Batch element %lld): the computation failed with code %lld",
                ks(k, 1, "linalg"), (long long)i, (long long)tensor_get_i64(info, i));
    return true;
}
