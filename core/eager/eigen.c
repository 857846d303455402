// eigen.c: eigenvalues and vectors of symmetric matrices as LAPACK finds them: reflections to
// tridiagonal form (dsytd2), then implicit QL or QR steps (dsteqr), in its order and with its
// signs, since a vector's sign is seen in whatever is computed from it. (From 26 rows on LAPACK
// divides and conquers: signs may differ there.)
#include "core/eager/linalg.h"

#include <float.h>
#include <math.h>
#include <string.h>

typedef struct Tri {
    int64_t n;
    double *d, *e; // diagonal; beside it
    double *v;     // (n, n): reflector i in row i
    double *tau;
    double *z;  // (n, n): vectors, in columns
    double eps; // of the input's type: when an element counts as zero
} Tri;

// The reflection that takes (alpha, x) to (beta, 0): x becomes its vector behind a 1. Returns tau.
static double reflector(double *alpha, double *x, int64_t n) {
    double norm = 0;
    for (int64_t i = 0; i < n; i++)
        norm = hypot(norm, x[i]);
    if (norm == 0)
        return 0;
    double beta = -copysign(hypot(*alpha, norm), *alpha), tau = (beta - *alpha) / beta;
    for (int64_t i = 0; i < n; i++)
        x[i] /= *alpha - beta;
    *alpha = beta;
    return tau;
}

// a -= v w^T + w v^T over rows and columns [from, to), w made from v and tau.
static void reflect_both(double *a, int64_t n, const double *v, double tau, int64_t from,
                         int64_t to, double *w) {
    double dot = 0;
    for (int64_t i = from; i < to; i++) {
        w[i] = 0;
        for (int64_t j = from; j < to; j++)
            w[i] += a[i * n + j] * v[j];
        w[i] *= tau;
        dot += w[i] * v[i];
    }
    for (int64_t i = from; i < to; i++)
        w[i] -= tau * dot / 2 * v[i];
    for (int64_t i = from; i < to; i++)
        for (int64_t j = from; j < to; j++)
            a[i * n + j] -= v[i] * w[j] + w[i] * v[j];
}

// From the last column up, or from the first down.
static void reduce(Tri *t, double *a, bool upper, double *w) {
    int64_t n = t->n;
    for (int64_t step = 0; step + 1 < n; step++) {
        int64_t i = upper ? n - 2 - step : step, pivot = upper ? i : i + 1,
                column = upper ? i + 1 : i;
        int64_t from = upper ? 0 : i + 2, to = upper ? i : n;
        double *v = t->v + step * n, alpha = a[pivot * n + column];
        for (int64_t k = from; k < to; k++)
            v[k] = a[k * n + column];
        t->tau[step] = reflector(&alpha, v + from, to - from);
        t->e[i] = alpha;
        v[pivot] = 1;
        if (t->tau[step] != 0)
            reflect_both(a, n, v, t->tau[step], upper ? 0 : i + 1, upper ? i + 1 : n, w);
    }
    for (int64_t i = 0; i < n; i++)
        t->d[i] = a[i * n + i];
}

static void rotate(Tri *t, int64_t j, double c, double s) {
    for (int64_t i = 0; i < t->n; i++) {
        double *a = &t->z[i * t->n + j], x = a[1];
        a[1] = c * x - s * a[0];
        a[0] = s * x + c * a[0];
    }
}

static double rotation(double f, double g, double *c, double *s) {
    if (g == 0) {
        *c = 1;
        *s = 0;
        return f;
    }
    if (f == 0) {
        *c = 0;
        *s = 1;
        return g;
    }
    double r = hypot(f, g);
    if (fabs(f) > fabs(g) && f < 0)
        r = -r;
    *c = f / r;
    *s = g / r;
    return r;
}

// Of [[a, b], [b, c]]: the eigenvalues, the larger in size first, and the first one's vector.
static void two_by_two(double a, double b, double c, double *first, double *second, double *cs,
                       double *sn) {
    double sum = a + c, df = a - c, tb = 2 * b, root = hypot(df, tb);
    double big = fabs(a) > fabs(c) ? a : c, small = fabs(a) > fabs(c) ? c : a;
    int sign = sum < 0 ? -1 : 1, turn = df >= 0 ? 1 : -1;
    *first = (sum + sign * root) / 2;
    *second = sum == 0 ? -root / 2 : big / *first * small - b / *first * b;
    double x = df + turn * root;
    if (fabs(x) > fabs(tb)) {
        double ct = -tb / x;
        *sn = 1 / sqrt(1 + ct * ct);
        *cs = ct * *sn;
    } else if (tb == 0) {
        *cs = 1;
        *sn = 0;
    } else {
        double tn = -x / tb;
        *cs = 1 / sqrt(1 + tn * tn);
        *sn = tn * *cs;
    }
    if (sign == turn) {
        double was = *cs;
        *cs = -*sn;
        *sn = was;
    }
}

static bool splits(const Tri *t, int64_t i) {
    double e = t->e[i] * t->e[i];
    return e <= t->eps * t->eps * fabs(t->d[i]) * fabs(t->d[i + 1]) + DBL_MIN;
}

// One step over d[l … m], up (way 1, QL) or down (way -1, QR); w holds the rotations.
static void sweep(Tri *t, int64_t l, int64_t m, int way, double *w) {
    double *d = t->d, *e = t->e, p = d[l], beside = e[way > 0 ? l : l - 1];
    double g = (d[l + way] - p) / (2 * beside), r = hypot(g, 1), s = 1, c = 1;
    g = d[m] - p + beside / (g + copysign(r, g));
    p = 0;
    for (int64_t i = m; i != l; i -= way) {
        double *next = &e[way > 0 ? i - 1 : i], f = s * *next, b = c * *next;
        r = rotation(g, f, &c, &s);
        if (i != m)
            e[way > 0 ? i : i - 1] = r;
        g = d[i] - p;
        r = (d[i - way] - g) * s + 2 * c * b;
        p = s * r;
        d[i] = g + p;
        g = c * r - b;
        w[2 * i] = c;
        w[2 * i + 1] = way > 0 ? -s : s;
    }
    for (int64_t i = m; i != l; i -= way)
        rotate(t, way > 0 ? i - 1 : i, w[2 * i], w[2 * i + 1]);
    d[l] -= p;
    e[way > 0 ? l : l - 1] = g;
}

// The block [from, to], which no zero splits: from the end whose diagonal is the smaller.
static bool settle(Tri *t, int64_t from, int64_t to, int64_t *left, double *w) {
    bool down = fabs(t->d[to]) < fabs(t->d[from]);
    int64_t l = down ? to : from, end = down ? from : to;
    int way = down ? -1 : 1;
    while ((end - l) * way >= 0) {
        int64_t m = l;
        while (m != end && !splits(t, down ? m - 1 : m))
            m += way;
        if (m != end)
            t->e[down ? m - 1 : m] = 0;
        if (m == l) {
            l += way;
        } else if (m == l + way) {
            int64_t i = down ? m : l;
            double c, s, a, b;
            two_by_two(t->d[i], t->e[i], t->d[i + 1], &a, &b, &c, &s);
            rotate(t, i, c, s);
            t->d[i] = a;
            t->d[i + 1] = b;
            t->e[i] = 0;
            l += 2 * way;
        } else if (--*left < 0) {
            return false;
        } else {
            sweep(t, l, m, way, w);
        }
    }
    return true;
}

static void diagonalise(Tri *t, double *w) {
    int64_t left = 30 * t->n;
    for (int64_t from = 0; from < t->n;) {
        int64_t to = from;
        for (; to + 1 < t->n; to++) {
            double e = fabs(t->e[to]);
            if (e <= sqrt(fabs(t->d[to])) * sqrt(fabs(t->d[to + 1])) * t->eps) {
                t->e[to] = 0;
                break;
            }
        }
        if (!settle(t, from, to, &left, w))
            return;
        from = to + 1;
    }
}

static void sort(Tri *t) {
    int64_t n = t->n;
    for (int64_t i = 0; i + 1 < n; i++) {
        int64_t k = i;
        for (int64_t j = i + 1; j < n; j++)
            k = t->d[j] < t->d[k] ? j : k;
        double was = t->d[i];
        t->d[i] = t->d[k];
        t->d[k] = was;
        for (int64_t r = 0; k != i && r < n; r++) {
            was = t->z[r * n + i];
            t->z[r * n + i] = t->z[r * n + k];
            t->z[r * n + k] = was;
        }
    }
}

void eigen_symmetric(Arena *tmp, const double *a, int64_t n, bool upper, double eps, double *w,
                     double *v) {
    double *x = ARENA_ARRAY(tmp, n * n + 1, double), *room = ARENA_ARRAY(tmp, 2 * n + 2, double);
    Tri t = {.n = n, .d = w, .z = v, .eps = eps};
    t.e = ARENA_ARRAY(tmp, n + 1, double);
    t.v = ARENA_ARRAY(tmp, n * n + 1, double);
    t.tau = ARENA_ARRAY(tmp, n + 1, double);
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < n; j++) {
            x[i * n + j] = (i < j) == upper ? a[i * n + j] : a[j * n + i];
            v[i * n + j] = i == j;
        }
    reduce(&t, x, upper, room);
    diagonalise(&t, room);
    sort(&t);
    for (int64_t step = n - 2; step >= 0; step--) {
        const double *h = t.v + step * n;
        for (int64_t j = 0; j < n; j++) {
            double dot = 0;
            for (int64_t i = 0; i < n; i++)
                dot += h[i] * v[i * n + j];
            for (int64_t i = 0; i < n; i++)
                v[i * n + j] -= t.tau[step] * dot * h[i];
        }
    }
}
