// dense.c: small dense linear algebra in double: elimination, triangles, reflections, Jacobi
// rotations. Algorithms as in G. Golub, C. Van Loan, "Matrix Computations"; LAPACK's order of
// operations where signs or pivots depend on it.
#include <math.h>
#include <string.h>

#include "core/eager/linalg.h"

int lu_factor(double *a, int64_t m, int64_t n, int64_t *pivot, bool pivoting) {
    int info = 0;
    int64_t r = m < n ? m : n;
    for (int64_t j = 0; j < r; j++) {
        int64_t p = j;
        for (int64_t i = j + 1; pivoting && i < m; i++)
            if (fabs(a[i * n + j]) > fabs(a[p * n + j]))
                p = i;
        pivot[j] = p;
        for (int64_t c = 0; p != j && c < n; c++) {
            double t = a[j * n + c];
            a[j * n + c] = a[p * n + c];
            a[p * n + c] = t;
        }
        double d = a[j * n + j];
        if (d == 0) {
            info = info ? info : (int)j + 1;
            continue;
        }
        for (int64_t i = j + 1; i < m; i++) {
            double f = a[i * n + j] /= d;
            for (int64_t c = j + 1; c < n; c++)
                a[i * n + c] -= f * a[j * n + c];
        }
    }
    return info;
}

void solve_triangle(const double *a, int64_t n, double *b, int64_t cols, bool upper, bool transpose,
                    bool unit) {
    bool down = upper == transpose; // first unknown first
    for (int64_t s = 0; s < n; s++) {
        int64_t i = down ? s : n - 1 - s;
        for (int64_t t = 0; t < s; t++) {
            int64_t j = down ? t : n - 1 - t;
            double f = transpose ? a[j * n + i] : a[i * n + j];
            for (int64_t c = 0; f != 0 && c < cols; c++)
                b[i * cols + c] -= f * b[j * cols + c];
        }
        for (int64_t c = 0; !unit && c < cols; c++)
            b[i * cols + c] /= a[i * n + i];
    }
}

void swap_rows(double *b, int64_t cols, int64_t i, int64_t j) {
    for (int64_t c = 0; i != j && c < cols; c++) {
        double t = b[i * cols + c];
        b[i * cols + c] = b[j * cols + c];
        b[j * cols + c] = t;
    }
}

void lu_solve(const double *lu, const int64_t *pivot, int64_t n, double *b, int64_t cols,
              bool transpose) {
    if (!transpose) {
        for (int64_t i = 0; i < n; i++)
            swap_rows(b, cols, i, pivot[i]);
        solve_triangle(lu, n, b, cols, false, false, true);
        solve_triangle(lu, n, b, cols, true, false, false);
        return;
    }
    solve_triangle(lu, n, b, cols, true, true, false);
    solve_triangle(lu, n, b, cols, false, true, true);
    for (int64_t i = n - 1; i >= 0; i--)
        swap_rows(b, cols, i, pivot[i]);
}

int cholesky(double *a, int64_t n) {
    for (int64_t j = 0; j < n; j++) {
        double d = a[j * n + j];
        for (int64_t t = 0; t < j; t++)
            d -= a[j * n + t] * a[j * n + t];
        if (!(d > 0))
            return (int)j + 1;
        a[j * n + j] = d = sqrt(d);
        for (int64_t i = j + 1; i < n; i++) {
            double s = a[i * n + j];
            for (int64_t t = 0; t < j; t++)
                s -= a[i * n + t] * a[j * n + t];
            a[i * n + j] = s / d;
        }
    }
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = i + 1; j < n; j++)
            a[i * n + j] = 0;
    return 0;
}

void transpose_into(const double *a, int64_t m, int64_t n, double *to) {
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++)
            to[j * m + i] = a[i * n + j];
}

void multiply_into(const double *a, const double *b, int64_t m, int64_t k, int64_t n, double *c) {
    memset(c, 0, (size_t)(m * n) * sizeof *c);
    for (int64_t i = 0; i < m; i++)
        for (int64_t t = 0; t < k; t++)
            for (int64_t j = 0; j < n; j++)
                c[i * n + j] += a[i * k + t] * b[t * n + j];
}

void qr_factor(double *a, int64_t m, int64_t n, double *tau) {
    int64_t r = m < n ? m : n;
    for (int64_t j = 0; j < r; j++) {
        double norm = 0, alpha = a[j * n + j];
        for (int64_t i = j + 1; i < m; i++)
            norm = hypot(norm, a[i * n + j]);
        tau[j] = 0;
        if (norm == 0)
            continue;
        double beta = -copysign(hypot(alpha, norm), alpha);
        tau[j] = (beta - alpha) / beta;
        for (int64_t i = j + 1; i < m; i++)
            a[i * n + j] /= alpha - beta;
        a[j * n + j] = beta;
        for (int64_t c = j + 1; c < n; c++) {
            double s = a[j * n + c];
            for (int64_t i = j + 1; i < m; i++)
                s += a[i * n + j] * a[i * n + c];
            a[j * n + c] -= tau[j] * s;
            for (int64_t i = j + 1; i < m; i++)
                a[i * n + c] -= tau[j] * s * a[i * n + j];
        }
    }
}

void apply_reflectors(const double *v, int64_t v_cols, const double *tau, int64_t m, int64_t k,
                      double *c, int64_t n, bool transpose) {
    for (int64_t s = 0; s < k; s++) {
        int64_t j = transpose ? s : k - 1 - s;
        for (int64_t col = 0; col < n; col++) {
            double dot = c[j * n + col];
            for (int64_t i = j + 1; i < m; i++)
                dot += v[i * v_cols + j] * c[i * n + col];
            dot *= tau[j];
            c[j * n + col] -= dot;
            for (int64_t i = j + 1; i < m; i++)
                c[i * n + col] -= dot * v[i * v_cols + j];
        }
    }
}

// One-sided Jacobi: columns of w (m, n), m >= n, become orthogonal; v (n, n) collects the
// rotations.
static void orthogonalise(double *w, int64_t m, int64_t n, double *v) {
    for (int sweep = 0; sweep < 60; sweep++) {
        double off = 0;
        for (int64_t p = 0; p < n; p++)
            for (int64_t q = p + 1; q < n; q++) {
                double a = 0, b = 0, g = 0;
                for (int64_t i = 0; i < m; i++) {
                    a += w[i * n + p] * w[i * n + p];
                    b += w[i * n + q] * w[i * n + q];
                    g += w[i * n + p] * w[i * n + q];
                }
                if (g == 0 || fabs(g) <= 1e-16 * sqrt(a * b))
                    continue;
                off = fmax(off, fabs(g) / sqrt(a * b));
                double zeta = (b - a) / (2 * g),
                       t = copysign(1, zeta) / (fabs(zeta) + sqrt(1 + zeta * zeta));
                double cs = 1 / sqrt(1 + t * t), sn = cs * t;
                for (int64_t i = 0; i < m; i++) {
                    double x = w[i * n + p], y = w[i * n + q];
                    w[i * n + p] = cs * x - sn * y;
                    w[i * n + q] = sn * x + cs * y;
                }
                for (int64_t i = 0; i < n; i++) {
                    double x = v[i * n + p], y = v[i * n + q];
                    v[i * n + p] = cs * x - sn * y;
                    v[i * n + q] = sn * x + cs * y;
                }
            }
        if (off < 1e-15)
            return;
    }
}

// Columns without a direction get one that is orthogonal to the others.
static void complete_basis(double *u, int64_t m, int64_t cols, int64_t from) {
    for (int64_t j = from; j < cols; j++)
        for (int64_t e = 0; e < m; e++) {
            for (int64_t i = 0; i < m; i++)
                u[i * cols + j] = i == e;
            for (int pass = 0; pass < 2; pass++)
                for (int64_t p = 0; p < j; p++) {
                    double dot = 0;
                    for (int64_t i = 0; i < m; i++)
                        dot += u[i * cols + p] * u[i * cols + j];
                    for (int64_t i = 0; i < m; i++)
                        u[i * cols + j] -= dot * u[i * cols + p];
                }
            double norm = 0;
            for (int64_t i = 0; i < m; i++)
                norm = hypot(norm, u[i * cols + j]);
            if (norm < 0.1 / sqrt((double)m))
                continue;
            for (int64_t i = 0; i < m; i++)
                u[i * cols + j] /= norm;
            break;
        }
}

static void svd_tall(Arena *tmp, const double *a, int64_t m, int64_t n, double *u, double *s,
                     double *v) {
    double *w = ARENA_ARRAY(tmp, m * n + 1, double), *r = ARENA_ARRAY(tmp, n * n + 1, double),
           *norm = ARENA_ARRAY(tmp, n + 1, double);
    int64_t *order = ARENA_ARRAY(tmp, n + 1, int64_t), full = 0;
    memcpy(w, a, (size_t)(m * n) * sizeof *w);
    for (int64_t i = 0; i < n; i++)
        r[i * n + i] = 1;
    orthogonalise(w, m, n, r);
    for (int64_t j = 0; j < n; j++) {
        for (int64_t i = 0; i < m; i++)
            norm[j] = hypot(norm[j], w[i * n + j]);
        int64_t k = j;
        for (; k > 0 && norm[order[k - 1]] < norm[j]; k--)
            order[k] = order[k - 1];
        order[k] = j;
    }
    for (int64_t j = 0; j < n; j++) {
        int64_t o = order[j];
        s[j] = norm[o];
        bool zero = norm[o] <= 1e-300 || norm[o] < 1e-15 * norm[order[0]];
        full += !zero;
        for (int64_t i = 0; i < m; i++)
            u[i * n + j] = zero ? 0 : w[i * n + o] / norm[o];
        for (int64_t i = 0; i < n; i++)
            v[i * n + j] = r[i * n + o];
    }
    complete_basis(u, m, n, full);
}

void svd(Arena *tmp, const double *a, int64_t m, int64_t n, double *u, double *s, double *v) {
    if (m >= n) {
        svd_tall(tmp, a, m, n, u, s, v);
        return;
    }
    double *t = ARENA_ARRAY(tmp, m * n + 1, double);
    transpose_into(a, m, n, t);
    svd_tall(tmp, t, n, m, v, s, u);
}
