// linalg.h: inside of core/eager: small dense linear algebra in double, row-major matrices.
#ifndef CORE_EAGER_LINALG_H
#define CORE_EAGER_LINALG_H

#include "core/eager/kernel.h"

// A batch of matrices as dense doubles.
typedef struct Mats {
    int64_t batch, m, n;
    double *at;      // (batch, m, n)
    const Tensor *t; // dense float64 tensor that holds them
} Mats;

bool mats_read(K *k, const Tensor *t, Mats *out);     // a copy
bool mats_make(K *k, const Tensor *shape, Mats *out); // zeros of the shape of a result
bool mats_store(K *k, int res, const Mats *v);        // into a result
// v broadcast to the leading sizes of `like`, its last two dimensions its own.
bool mats_broadcast(K *k, const Tensor *v, const Tensor *like, Mats *out);
static inline double *mat(const Mats *v, int64_t b) {
    return v->at + b * v->m * v->n;
}

// a (m, n) becomes L and U; pivot[i]: row swapped with row i, from 0. Returns the first zero pivot
// from 1, or 0.
int lu_factor(double *a, int64_t m, int64_t n, int64_t *pivot, bool pivoting);
// Solves with L, U and pivots of (n, n): b (n, cols). transpose: A^T x = b.
void swap_rows(double *b, int64_t cols, int64_t i, int64_t j);
void lu_solve(const double *lu, const int64_t *pivot, int64_t n, double *b, int64_t cols,
              bool transpose);
// Triangular systems: a (n, n), b (n, cols).
void solve_triangle(const double *a, int64_t n, double *b, int64_t cols, bool upper, bool transpose,
                    bool unit);
int cholesky(double *a, int64_t n); // lower; 0 or the order of the bad minor
void transpose_into(const double *a, int64_t m, int64_t n, double *to);
void multiply_into(const double *a, const double *b, int64_t m, int64_t k, int64_t n, double *c);
// Householder: a (m, n) becomes R above and reflectors below; tau (min(m, n)).
void qr_factor(double *a, int64_t m, int64_t n, double *tau);
// Applies H1 H2 … Hk (or its transpose) of reflectors v (m, k) from the left to c (m, n).
void apply_reflectors(const double *v, int64_t v_cols, const double *tau, int64_t m, int64_t k,
                      double *c, int64_t n, bool transpose);
// a = u diag(s) v^T, s falling: a (m, n) is lost, u (m, r), v (n, r) with r = min(m, n).
void svd(Arena *tmp, const double *a, int64_t m, int64_t n, double *u, double *s, double *v);
// eigen.c: a symmetric = v diag(w) v^T, w rising; only its upper or its lower triangle is read.
// eps: half the distance from 1 to the next number of the input's type.
void eigen_symmetric(Arena *tmp, const double *a, int64_t n, bool upper, double eps, double *w,
                     double *v);

#endif
