// matrix_exp.c: exponentials of matrices. In float32 and float64 by scaling, Taylor's series and
// squaring in double. In bfloat16 and float16 PyTorch evaluates the polynomials of Bader, Blanes
// and Casas ("Computing the matrix exponential with an optimized Taylor polynomial approximation",
// 2019) with coefficients that it keeps as float64 and whose memory it then reads as the small
// dtype: what comes out is no exponential, mostly NaN, and it is what PyTorch gives; so it is done
// here as it does it, each step rounded to the dtype.
#include <math.h>
#include <string.h>

#include "core/eager/linalg.h"

static double norm_1(const double *m, int64_t n) {
    double norm = 0;
    for (int64_t j = 0; j < n; j++) {
        double column = 0;
        for (int64_t i = 0; i < n; i++)
            column += fabs(m[i * n + j]);
        norm = column > norm || column != column ? column : norm;
    }
    return norm;
}

static void by_series(double *m, double *sum, int64_t n, double *t, double *u) {
    int64_t nn = n * n;
    double norm = norm_1(m, n);
    int s = norm > 0.5 && isfinite(norm) ? (int)ceil(log2(norm)) + 2 : 0;
    for (int64_t i = 0; i < nn; i++) {
        m[i] = ldexp(m[i], -s);
        sum[i] = t[i] = i % (n + 1) == 0;
    }
    for (int term = 1; term < 24; term++) {
        multiply_into(t, m, n, n, n, u);
        for (int64_t i = 0; i < nn; i++)
            sum[i] += t[i] = u[i] / term;
    }
    for (; s > 0; s--) {
        multiply_into(sum, sum, n, n, n, u);
        memcpy(sum, u, (size_t)nn * sizeof *u);
    }
}

// Matrices of a small dtype as doubles, (n, n) each.
typedef struct Small {
    DType d;
    int64_t n;
    double *power[5]; // I, A, A², A³, A⁶
    double *mix[5];   // linear combinations of them
    double *tmp;
} Small;

static void product(const Small *s, const double *a, const double *b, double *to) {
    multiply_into(a, b, s->n, s->n, s->n, s->tmp);
    for (int64_t i = 0; i < s->n * s->n; i++)
        to[i] = round_to(s->d, s->tmp[i]);
}

static void add(const Small *s, double *to, const double *b) {
    for (int64_t i = 0; i < s->n * s->n; i++)
        to[i] = round_to(s->d, to[i] + b[i]);
}

// Element i of the memory of float64 numbers, read as the small dtype.
static double as_small(const Small *s, const double *coef, int i) {
    uint16_t bits;
    memcpy(&bits, (const char *)coef + i * (int)sizeof bits, sizeof bits);
    double v;
    load_d(s->d, &bits, 1, 1, &v);
    return v;
}

// to = sum of n matrices, by the coefficients from place `row * n` on.
static void combine(const Small *s, double *const *of, int n, const double *coef, int row,
                    double *to) {
    for (int64_t i = 0; i < s->n * s->n; i++) {
        double sum = 0;
        for (int k = 0; k < n; k++)
            sum = round_to(s->d, sum + round_to(s->d, of[k][i] * as_small(s, coef, row * n + k)));
        to[i] = sum;
    }
}

static void fill_powers(Small *s, const double *a, int n) {
    for (int64_t i = 0; i < s->n * s->n; i++)
        s->power[0][i] = i % (s->n + 1) == 0;
    memcpy(s->power[1], a, (size_t)(s->n * s->n) * sizeof *a);
    for (int i = 2; i < n; i++)
        product(s, s->power[i == 2 ? 1 : i == 3 ? 1 : 3], s->power[i == 2 ? 1 : i == 3 ? 2 : 3],
                s->power[i]);
}

static void degree_1_2(Small *s, int degree, double *out) {
    fill_powers(s, s->power[1], degree + 1);
    for (int64_t i = 0; i < s->n * s->n; i++) {
        double sum = s->power[0][i] + s->power[1][i];
        out[i] = round_to(s->d, degree == 1 ? sum : sum + round_to(s->d, s->power[2][i] / 2));
    }
}

static void degree_4(Small *s, double *out) {
    static const double inner[] = {1 / 2.0, 1 / 6.0, 1 / 24.0}, outer[] = {1, 1, 0, 1};
    fill_powers(s, s->power[1], 3);
    combine(s, s->power, 3, inner, 0, s->mix[0]);
    product(s, s->power[2], s->mix[0], s->power[3]);
    combine(s, s->power, 4, outer, 0, out);
}

static void degree_8(Small *s, double *out) {
    static const double root = 13.30413469565007072504, x3 = 2. / 3.;
    const double x12[] = {x3 * ((1. + root) / 88.), x3 * ((1. + root) / 352.)};
    const double x31[] = {x3, 1};
    const double x4567[] = {(-271. + 29. * root) / (315. * x3), (-11. + 11. * root) / (1260. * x3),
                            (-99. + 11. * root) / (5040. * x3), (89. - root) / (5040. * x3)};
    const double last[] = {1, 1, (857. - 58. * root) / 630., 0, 1};
    fill_powers(s, s->power[1], 3);
    combine(s, s->power + 1, 2, x12, 0, s->mix[0]);
    product(s, s->power[2], s->mix[0], s->power[3]);
    combine(s, s->power + 2, 2, x31, 0, s->mix[0]);
    combine(s, s->power, 4, x4567, 0, s->mix[1]);
    product(s, s->mix[0], s->mix[1], s->power[4]);
    combine(s, s->power, 5, last, 0, out);
}

static void degree_12(Small *s, double *out) {
    static const double b[] = {9.0198e-16, 0.46932117595418237389, -0.20099424927047284052,
                               -0.04623946134063071740}; // of 16: what the memory of 16 reaches
    fill_powers(s, s->power[1], 4);
    for (int i = 0; i < 4; i++)
        combine(s, s->power, 4, b, i, s->mix[i]);
    product(s, s->mix[3], s->mix[3], s->power[0]);
    add(s, s->mix[2], s->power[0]);
    add(s, s->mix[1], s->mix[2]);
    product(s, s->mix[1], s->mix[2], out);
    add(s, out, s->mix[0]);
}

static void degree_18(Small *s, double *out) {
    static const double b[] = {0, -1.00365581030144618291e-01, -8.02924648241156932449e-03,
                               -8.92138498045729985177e-04, 0, 0,
                               3.97849749499645077844e-01}; // of 25
    fill_powers(s, s->power[1], 5);
    for (int i = 0; i < 5; i++)
        combine(s, s->power, 5, b, i, s->mix[i]);
    product(s, s->mix[0], s->mix[4], s->power[0]);
    add(s, s->mix[3], s->power[0]);
    add(s, s->mix[2], s->mix[3]);
    product(s, s->mix[2], s->mix[3], out);
    add(s, out, s->mix[1]);
}

// a (n, n) is lost.
static void by_pytorchs_small(Small *s, double *a, double *out) {
    static const double theta[] = {2.220446049250313e-16, 2.580956802971767e-08,
                                   3.397168839976962e-04, 4.991228871115323e-02,
                                   2.996158913811580e-01, 1.090863719290036e+00};
    double limit[6], norm = 0;
    int64_t nn = s->n * s->n;
    for (int i = 0; i < 6; i++)
        limit[i] = round_to(s->d, theta[i]);
    for (int64_t j = 0; j < s->n; j++) {
        double column = 0;
        for (int64_t i = 0; i < s->n; i++)
            column += fabs(a[i * s->n + j]);
        column = round_to(s->d, column);
        norm = column > norm || column != column ? column : norm;
    }
    memcpy(s->power[1], a, (size_t)nn * sizeof *a);
    if (norm <= limit[1])
        degree_1_2(s, norm <= limit[0] ? 1 : 2, out);
    else if (norm <= limit[2])
        degree_4(s, out);
    else if (norm <= limit[3])
        degree_8(s, out);
    else if (norm < limit[4])
        degree_12(s, out);
    else if (norm >= limit[4]) {
        double times = ceil(log2(round_to(s->d, norm / theta[5])));
        int64_t squarings = times > 0 && isfinite(times) ? (int64_t)times : 0;
        for (int64_t i = 0; i < nn; i++)
            s->power[1][i] = round_to(s->d, ldexp(a[i], -(int)squarings));
        degree_18(s, out);
        for (; squarings > 0; squarings--) {
            product(s, out, out, a);
            memcpy(out, a, (size_t)nn * sizeof *a);
        }
    } else // a norm that is NaN chooses nothing: fresh memory is left as it is
        memset(out, 0, (size_t)nn * sizeof *out);
}

bool kern_matrix_exp(K *k) {
    Mats a = {0}, x = {0};
    if (!mats_read(k, k->in[0], &a))
        return false;
    if (a.m != a.n)
        return k_fail(k,
                      "RuntimeError: linalg.matrix_exp: A must be batches of square matrices, but "
                      "they are %lld by %lld matrices",
                      (long long)a.m, (long long)a.n);
    if (!mats_make(k, k->in[0], &x))
        return false;
    DType d = k->in[0]->dtype;
    Small s = {.d = d, .n = a.n};
    int64_t nn = a.n * a.n;
    double *room = ARENA_ARRAY(k->x->arena, 11 * nn + 1, double);
    for (int i = 0; i < 5; i++) {
        s.power[i] = room + i * nn;
        s.mix[i] = room + (5 + i) * nn;
    }
    s.tmp = room + 10 * nn;
    for (int64_t b = 0; b < a.batch && nn; b++)
        if (a.n == 1)
            *mat(&x, b) = exp(*mat(&a, b));
        else if (d == DT_f32 || d == DT_f64 || k->x->in_f64)
            by_series(mat(&a, b), mat(&x, b), a.n, s.mix[0], s.mix[1]);
        else
            by_pytorchs_small(&s, mat(&a, b), mat(&x, b));
    return mats_store(k, 0, &x);
}
