// linalg_qr.c: QR factors, singular values, eigenvalues of symmetric matrices, and what rests on
// them.
#include <math.h>
#include <string.h>

#include "core/eager/linalg.h"

// geqrf(self) -> a, tau
bool kern_geqrf(K *k) {
    Mats a = {0};
    if (!mats_read(k, k->in[0], &a))
        return false;
    int64_t r = a.m < a.n ? a.m : a.n;
    double *tau = ARENA_ARRAY(k->x->arena, r + 1, double);
    for (int64_t b = 0; b < a.batch; b++) {
        qr_factor(mat(&a, b), a.m, a.n, tau);
        for (int64_t i = 0; i < r; i++)
            tensor_set_f64(k->res[1], b * r + i, tau[i]);
    }
    return mats_store(k, 0, &a);
}

// linalg_qr(A, mode) -> Q, R; mode reduced, complete, r
bool kern_qr(K *k) {
    Mats a = {0}, q = {0}, r = {0};
    const char *mode = ks(k, 1, "reduced");
    bool only_r = strcmp(mode, "r") == 0;
    if (!mats_read(k, k->in[0], &a) || (!only_r && !mats_make(k, k->res[0], &q)) ||
        !mats_make(k, k->res[1], &r))
        return false;
    int64_t least = a.m < a.n ? a.m : a.n;
    double *tau = ARENA_ARRAY(k->x->arena, least + 1, double);
    for (int64_t b = 0; b < a.batch; b++) {
        qr_factor(mat(&a, b), a.m, a.n, tau);
        for (int64_t i = 0; i < r.m; i++)
            for (int64_t j = i; j < r.n; j++)
                mat(&r, b)[i * r.n + j] = mat(&a, b)[i * a.n + j];
        for (int64_t i = 0; !only_r && i < q.n && i < q.m; i++)
            mat(&q, b)[i * q.n + i] = 1;
        if (!only_r)
            apply_reflectors(mat(&a, b), a.n, tau, a.m, least, mat(&q, b), q.n, false);
    }
    return (only_r || mats_store(k, 0, &q)) && mats_store(k, 1, &r);
}

static const double *taus(K *k, const Tensor *t, int64_t batch, int64_t n) {
    double *v = ARENA_ARRAY(k->x->arena, batch * n + 1, double);
    for (int64_t i = 0; i < batch * n && i < tensor_numel(t); i++)
        v[i] = tensor_get_f64(t, i);
    return v;
}

// linalg_householder_product(input, tau)
bool kern_householder(K *k) {
    Mats v = {0}, q = {0};
    const Tensor *tau = k->in[1];
    if (!tau || !tau->ndim || !mats_read(k, k->in[0], &v) || !mats_make(k, k->in[0], &q))
        return k_fail(
            k,
            "RuntimeError: torch.linalg.householder_product: tau must have at least 1 dimension");
    int64_t n = tau->size[tau->ndim - 1];
    if (n > v.n || v.n > v.m || tensor_numel(tau) != v.batch * n)
        return k_fail(k, "RuntimeError: torch.linalg.householder_product: input.shape[-1] must be "
                         "greater than or equal to tau.shape[-1]");
    const double *t = taus(k, tau, v.batch, n);
    for (int64_t b = 0; b < v.batch; b++) {
        for (int64_t i = 0; i < q.n; i++)
            mat(&q, b)[i * q.n + i] = 1;
        apply_reflectors(mat(&v, b), v.n, t + b * n, v.m, n, mat(&q, b), q.n, false);
    }
    return mats_store(k, 0, &q);
}

// ormqr(self, tau, other, left, transpose): Q other, or other Q
bool kern_ormqr(K *k) {
    Mats v = {0}, c = {0};
    const Tensor *tau = k->in[1];
    bool left = kb(k, 3), transpose = kb(k, 4);
    if (!tau || !tau->ndim || !k->in[2] || !mats_read(k, k->in[0], &v) ||
        !mats_read(k, k->in[2], &c))
        return false;
    int64_t n = tau->size[tau->ndim - 1];
    if ((left ? c.m : c.n) != v.m || n > v.n || n > v.m || v.batch != c.batch ||
        tensor_numel(tau) != v.batch * n)
        return k_fail(k, "RuntimeError: torch.ormqr: sizes of input, tau and other do not fit");
    const double *t = taus(k, tau, v.batch, n);
    double *turned = ARENA_ARRAY(k->x->arena, c.m * c.n + 1, double);
    for (int64_t b = 0; b < v.batch; b++) {
        if (left) {
            apply_reflectors(mat(&v, b), v.n, t + b * n, v.m, n, mat(&c, b), c.n, transpose);
            continue;
        }
        transpose_into(mat(&c, b), c.m, c.n, turned);
        apply_reflectors(mat(&v, b), v.n, t + b * n, v.m, n, turned, c.m, !transpose);
        transpose_into(turned, c.n, c.m, mat(&c, b));
    }
    return mats_store(k, 0, &c);
}

// LAPACK leaves signs of singular and eigenvectors open; here the largest component of each is
// positive.
static void fix_sign(double *u, int64_t m, int64_t u_cols, double *v, int64_t n, int64_t v_cols,
                     int64_t j) {
    int64_t top = 0;
    for (int64_t i = 1; i < m; i++)
        if (fabs(u[i * u_cols + j]) > fabs(u[top * u_cols + j]) * (1 + 1e-9))
            top = i;
    if (m == 0 || u[top * u_cols + j] >= 0)
        return;
    for (int64_t i = 0; i < m; i++)
        u[i * u_cols + j] = -u[i * u_cols + j];
    for (int64_t i = 0; v && i < n; i++)
        v[i * v_cols + j] = -v[i * v_cols + j];
}

// An orthonormal basis that begins with the given columns.
static void extend(Arena *tmp, const double *u, int64_t m, int64_t r, double *full) {
    double *a = ARENA_ARRAY(tmp, m * m + 1, double), *tau = ARENA_ARRAY(tmp, m + 1, double);
    for (int64_t i = 0; i < m; i++)
        memcpy(a + i * r, u + i * r, (size_t)r * sizeof *a);
    qr_factor(a, m, r, tau);
    memset(full, 0, (size_t)(m * m) * sizeof *full);
    for (int64_t i = 0; i < m; i++)
        full[i * m + i] = 1;
    apply_reflectors(a, r, tau, m, r, full, m, false);
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < r; j++)
            full[i * m + j] = u[i * r + j];
}

// _linalg_svd(A, full_matrices, compute_uv, *, driver) -> U, S, Vh
bool kern_svd(K *k) {
    Mats a = {0};
    if (!mats_read(k, k->in[0], &a))
        return false;
    bool values_only = k->n_res == 1,
         vectors =
             !values_only && (k->op->n_args < 3 || k->op->args[2].type != AT_bool || kb(k, 2));
    int64_t m = a.m, n = a.n, r = m < n ? m : n;
    Mats u = {0}, vh = {0};
    if (vectors && (!mats_make(k, k->res[0], &u) || !mats_make(k, k->res[2], &vh)))
        return false;
    Tensor *S = k->res[values_only ? 0 : 1];
    for (int64_t b = 0; b < a.batch; b++) {
        Arena tmp = {0};
        double *uu = ARENA_ARRAY(&tmp, m * r + 1, double),
               *vv = ARENA_ARRAY(&tmp, n * r + 1, double), *s = ARENA_ARRAY(&tmp, r + 1, double);
        double *full = ARENA_ARRAY(&tmp, (m > n ? m * m : n * n) + 1, double);
        svd(&tmp, mat(&a, b), m, n, uu, s, vv);
        for (int64_t i = 0; i < r; i++) {
            tensor_set_f64(S, b * r + i, s[i]);
            fix_sign(uu, m, r, vv, n, r, i);
        }
        if (vectors && u.n == r) {
            memcpy(mat(&u, b), uu, (size_t)(m * r) * sizeof *uu);
        } else if (vectors) {
            extend(&tmp, uu, m, r, full);
            memcpy(mat(&u, b), full, (size_t)(m * m) * sizeof *full);
        }
        if (vectors && vh.m == r) {
            transpose_into(vv, n, r, mat(&vh, b));
        } else if (vectors) {
            extend(&tmp, vv, n, r, full);
            transpose_into(full, n, n, mat(&vh, b));
        }
        arena_free(&tmp);
    }
    return !vectors || (mats_store(k, 0, &u) && mats_store(k, 2, &vh));
}

static double unit_of(DType d) {
    return d == DT_f64 ? 2.220446049250313e-16 : 1.1920928955078125e-07;
}

// One triangle becomes the other's mirror.
static void mirror(double *m, int64_t n, bool upper) {
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < i; j++)
            upper ? (m[i * n + j] = m[j * n + i]) : (m[j * n + i] = m[i * n + j]);
}

// _linalg_eigh(A, UPLO, compute_v) -> eigenvalues, eigenvectors; linalg_eigh, linalg_eigvalsh
bool kern_eigh(K *k) {
    Mats a = {0}, v = {0};
    bool upper = strcmp(ks(k, 1, "L"), "U") == 0 || strcmp(ks(k, 1, "L"), "u") == 0;
    bool vectors = k->n_res > 1 && (k->op->n_args < 3 || kb(k, 2));
    if (!mats_read(k, k->in[0], &a) || a.m != a.n || (vectors && !mats_make(k, k->res[1], &v)))
        return k_fail(k, "RuntimeError: linalg.eigh: A must be batches of square matrices");
    int64_t n = a.n;
    for (int64_t b = 0; b < a.batch; b++) {
        Arena tmp = {0};
        double *m = mat(&a, b), *w = ARENA_ARRAY(&tmp, n + 1, double),
               *vv = ARENA_ARRAY(&tmp, n * n + 1, double);
        eigen_symmetric(&tmp, m, n, upper, unit_of(k->in[0]->dtype) / 2, w, vv);
        for (int64_t j = 0; j < n; j++)
            tensor_set_f64(k->res[0], b * n + j, w[j]);
        if (vectors)
            memcpy(mat(&v, b), vv, (size_t)(n * n) * sizeof *vv);
        arena_free(&tmp);
    }
    return !vectors || mats_store(k, 1, &v);
}

// x = V diag(1 / s) U^T with small s left out; to (n, m). Returns the rank.
static int64_t pseudo_inverse(const double *a, int64_t m, int64_t n, double limit_abs,
                              double limit_rel, double *to, double *s) {
    Arena tmp = {0};
    int64_t r = m < n ? m : n, rank = 0;
    double *u = ARENA_ARRAY(&tmp, m * r + 1, double), *v = ARENA_ARRAY(&tmp, n * r + 1, double);
    svd(&tmp, a, m, n, u, s, v);
    double limit = fmax(limit_abs, r ? limit_rel * s[0] : 0);
    memset(to, 0, (size_t)(n * m) * sizeof *to);
    for (int64_t t = 0; t < r; t++) {
        if (!(s[t] > limit))
            continue;
        rank++;
        for (int64_t i = 0; i < n; i++)
            for (int64_t j = 0; j < m; j++)
                to[i * m + j] += v[i * r + t] * u[j * r + t] / s[t];
    }
    arena_free(&tmp);
    return rank;
}

static double bound(const Tensor *t, int64_t b, double dflt) {
    int64_t n = t ? tensor_numel(t) : 0;
    return n ? tensor_get_f64(t, b % n) : dflt;
}

// linalg_pinv.atol_rtol_tensor(self, *, atol, rtol, hermitian), .atol_rtol_float; pinv(self,
// rcond), pinverse
bool kern_pinv(K *k) {
    Mats a = {0}, x = {0};
    if (!mats_read(k, k->in[0], &a) || !mats_make(k, k->res[0], &x))
        return false;
    int at = op_arg_index(k->op, "atol"), rt = op_arg_index(k->op, "rtol"),
        rc = op_arg_index(k->op, "rcond");
    double dflt = unit_of(k->in[0]->dtype) * (double)(a.m > a.n ? a.m : a.n),
           *s = ARENA_ARRAY(k->x->arena, a.m + a.n + 1, double);
    const Tensor *ta = at >= 0 ? kt(k, at) : NULL, *tr = rt >= 0   ? kt(k, rt)
                                                         : rc >= 0 ? kt(k, rc)
                                                                   : NULL;
    int h = op_arg_index(k->op, "hermitian");
    bool hermitian = h >= 0 && kb(k, h) && a.m == a.n;
    for (int64_t b = 0; b < a.batch; b++) {
        if (hermitian) // the lower triangle counts
            mirror(mat(&a, b), a.n, false);
        double atol = ta ? bound(ta, b, 0) : at >= 0 ? kf(k, at, 0) : 0;
        double none = at >= 0 && k_given(k, at) && atol > 0 ? 0 : dflt;
        double rtol = tr        ? bound(tr, b, none)
                      : rt >= 0 ? kf(k, rt, none)
                      : rc >= 0 ? kf(k, rc, none)
                                : none;
        pseudo_inverse(mat(&a, b), a.m, a.n, atol, rtol, mat(&x, b), s);
    }
    return mats_store(k, 0, &x);
}

// |a x - b|^2 of each column.
static void residuals(const Mats *a, const Mats *b, int64_t i, const double *x, const Tensor *out) {
    for (int64_t c = 0; c < b->n; c++) {
        double sum = 0;
        for (int64_t p = 0; p < a->m; p++) {
            double e = mat(b, i)[p * b->n + c];
            for (int64_t q = 0; q < a->n; q++)
                e -= mat(a, i)[p * a->n + q] * x[q * b->n + c];
            sum += e * e;
        }
        put_d(out, i * b->n + c, sum);
    }
}

// The solution lies column by column where LAPACK left it: in the memory of the right sides.
static Tensor *by_columns(K *k, const Tensor *x, DType d, int batch, int64_t rows, int64_t cols) {
    int64_t stride[TENSOR_DIMS], step = (rows > 0 ? rows : 1) * (cols > 0 ? cols : 1);
    for (int i = batch - 1; i >= 0; i--) {
        stride[i] = step;
        step *= x->size[i] > 0 ? x->size[i] : 1;
    }
    stride[batch] = 1;
    if (x->ndim > batch + 1)
        stride[batch + 1] = rows > 0 ? rows : 1;
    Tensor t;
    if (!tensor_new_strided(&t, d, x->ndim, x->size, stride, k->x->c->diag))
        return NULL;
    Tensor *out = &live_new(k->x, &t)->t;
    return copy_into(k->x, out, x) ? out : NULL;
}

// Results of linalg_lstsq being filled.
typedef struct Least {
    Mats a, b;
    Tensor *x, *res, *rank,
        *sv; // x and res in float64; rank and sv empty where the driver has none
    bool ranked, with_sv, residuals;
    bool full; // every system has full rank and more rows than columns
} Least;

static bool least_make(K *k, Least *l, int batch) {
    int64_t size[TENSOR_DIMS], none = 0;
    DType d = k->in[0]->dtype;
    memcpy(size, k->in[0]->size, sizeof size);
    size[batch] = l->a.n;
    size[batch + 1] = l->b.n;
    l->x = eager_new(k->x, DT_f64, batch + 2, size);
    size[batch] = l->a.m < l->a.n ? l->a.m : l->a.n;
    l->sv = l->with_sv ? eager_new(k->x, d, batch + 1, size) : eager_new(k->x, d, 1, &none);
    l->rank = l->ranked ? eager_new(k->x, DT_i64, batch, size) : eager_new(k->x, DT_i64, 1, &none);
    size[batch] = l->b.n;
    l->res = eager_new(k->x, DT_f64, batch + 1, size);
    return l->x && l->sv && l->rank && l->res;
}

static void least_solve(K *k, Least *l, double rcond) {
    const Mats *a = &l->a, *b = &l->b;
    int64_t least = a->m < a->n ? a->m : a->n;
    double *inv = ARENA_ARRAY(k->x->arena, a->m * a->n + 1, double), *x = tensor_data(l->x);
    double *s = ARENA_ARRAY(k->x->arena, least + 1, double);
    l->full = a->m > a->n && l->residuals;
    for (int64_t i = 0; i < a->batch; i++, x += a->n * b->n) {
        int64_t r = pseudo_inverse(mat(a, i), a->m, a->n, 0, rcond, inv, s);
        multiply_into(inv, mat(b, i), a->n, a->m, b->n, x);
        if (l->ranked)
            put_i(l->rank, i, r);
        l->full = l->full && (!l->ranked || r == a->n);
        for (int64_t j = 0; l->with_sv && j < least; j++)
            put_d(l->sv, i * least + j, s[j]);
        residuals(a, b, i, x, l->res);
    }
}

// linalg_lstsq(self, b, rcond, *, driver) -> solution, residuals, rank, singular_values
bool kern_lstsq(K *k) {
    Least l = {.full = false};
    const Tensor *A = k->in[0], *B = k->in[1];
    const char *driver = ks(k, 3, "gelsy");
    int64_t none = 0;
    if (!B || !mats_read(k, A, &l.a))
        return false;
    bool vector = B->ndim == A->ndim - 1;
    Tensor column = *B;
    if (vector) {
        column.size[column.ndim] = 1;
        column.stride[column.ndim++] = 1;
    }
    if (!mats_read(k, &column, &l.b) || l.b.m != l.a.m || l.b.batch != l.a.batch)
        return k_fail(
            k, "RuntimeError: torch.linalg.lstsq: input.size(-2) should match other.size(-2)");
    int batch = A->ndim - 2;
    l.with_sv = strcmp(driver, "gelsd") == 0 || strcmp(driver, "gelss") == 0;
    l.ranked = strcmp(driver, "gels") != 0;
    l.residuals = strcmp(driver, "gelsy") != 0;
    if (!least_make(k, &l, batch))
        return false;
    int64_t rows = l.a.m > l.a.n ? l.a.m : l.a.n;
    least_solve(k, &l, kf(k, 2, unit_of(A->dtype) * (double)rows));
    Tensor flat = *l.x;
    flat.ndim -= vector;
    for (int i = 0; vector && i < flat.ndim; i++)
        flat.stride[i] = l.x->stride[i];
    Tensor *x = by_columns(k, &flat, A->dtype, batch, rows, l.b.n);
    Tensor *res =
        l.full ? eager_contiguous(k->x, l.res, A->dtype) : eager_new(k->x, A->dtype, 1, &none);
    if (!x || !res)
        return false;
    k->out = tuple_value(k->x, tensor_value(k->x, x), tensor_value(k->x, res),
                         tensor_value(k->x, l.rank), tensor_value(k->x, l.sv), END);
    return true;
}
