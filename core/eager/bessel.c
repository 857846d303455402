// bessel.c: Bessel and Airy functions and orthogonal polynomials, in double. I by its series and
// its asymptotic expansion, K by the trapezoidal rule on its integral, which converges
// exponentially.
#include <math.h>

#include "core/eager/loops.h"

// e^-|x| I_n(x) for n = 0, 1.
static double scaled_i(int n, double x) {
    double a = fabs(x), sign = n && x < 0 ? -1 : 1;
    if (isnan(x))
        return x;
    if (isinf(a))
        return 0;
    if (a < 25) {
        double q = a * a / 4, term = n ? a / 2 : 1, sum = term;
        for (int k = 1; k < 200 && term > 1e-18 * sum; k++) {
            term *= q / ((double)k * (k + n));
            sum += term;
        }
        return sign * sum * exp(-a);
    }
    double mu = 4.0 * n * n, term = 1, sum = 1;
    for (int k = 1; k < 30; k++) {
        double odd = 2 * k - 1, next = term * -(mu - odd * odd) / (k * 8 * a);
        if (fabs(next) > fabs(term) || fabs(next) < 1e-17)
            break;
        term = next;
        sum += term;
    }
    return sign * sum / sqrt(2 * M_PI * a);
}

double special_i0e(double x) {
    return scaled_i(0, x);
}

double special_i1e(double x) {
    return scaled_i(1, x);
}

static double unscaled(double scaled, double x) {
    double a = fabs(x);
    return isinf(a) ? (scaled < 0 || x < 0 ? x : a) : scaled * exp(a / 2) * exp(a / 2);
}

double special_i0(double x) {
    return isinf(x) ? (double)INFINITY : unscaled(scaled_i(0, x), x);
}

double special_i1(double x) {
    return unscaled(scaled_i(1, x), x);
}

// e^x K_nu(x) = integral over t >= 0 of e^(-x (cosh t - 1)) cosh(nu t).
static double scaled_k(double nu, double x) {
    const double h = 0.125;
    if (x == 0)
        return INFINITY;
    if (!(x > 0))
        return (double)NAN;
    double sum = 0.5;
    for (int i = 1; i < 8000; i++) {
        double t = i * h, s = sinh(t / 2), e = 2 * x * s * s, term = exp(-e) * cosh(nu * t);
        sum += term;
        if (e > 745 || (term < 1e-18 * sum && e > 1))
            break;
    }
    return sum * h;
}

double special_k0e(double x) {
    return scaled_k(0, x);
}

double special_k1e(double x) {
    return scaled_k(1, x);
}

double special_k0(double x) {
    return isinf(x) && x > 0 ? 0 : scaled_k(0, x) * exp(-x);
}

double special_k1(double x) {
    return isinf(x) && x > 0 ? 0 : scaled_k(1, x) * exp(-x);
}

double special_y0(double x) {
    return x < 0 ? (double)NAN : y0(x);
}

double special_y1(double x) {
    return x < 0 ? (double)NAN : y1(x);
}

double special_spherical_j0(double x) {
    if (isinf(x))
        return 0;
    if (fabs(x) < 0.5) {
        double q = x * x;
        return 1 -
               q / 6 * (1 - q / 20 * (1 - q / 42 * (1 - q / 72 * (1 - q / 110 * (1 - q / 156)))));
    }
    return sin(x) / x;
}

// Asymptotic form for large negative x.
static double airy_waves(double x) {
    double z = -x, zeta = 2.0 / 3 * z * sqrt(z), u = 1, p = 1, q = 0;
    for (int k = 1; k < 40; k++) {
        double next =
            u * (6 * k - 5) * (6 * k - 3) * (6 * k - 1) / (216.0 * k * (2 * k - 1)) / zeta;
        if (fabs(next) > fabs(u))
            break;
        u = next;
        if (k % 2)
            q += k % 4 == 1 ? u : -u;
        else
            p += k % 4 == 0 ? u : -u;
    }
    double phase = zeta - M_PI / 4;
    return (cos(phase) * p + sin(phase) * q) / (sqrt(M_PI) * sqrt(sqrt(z)));
}

double special_airy(double x) {
    if (isnan(x) || isinf(x))
        return (double)NAN;
    if (x > 103.892)
        return 0;
    if (x > 1) {
        double zeta = 2.0 / 3 * x * sqrt(x);
        return sqrt(x / 3) / M_PI * scaled_k(1.0 / 3, zeta) * exp(-zeta);
    }
    if (x < -9)
        return airy_waves(x);
    // Maclaurin's series, in more digits since its terms cancel.
    long double cube = (long double)x * x * x, f = 1, g = x, sf = 1, sg = x;
    for (int k = 1; k < 200; k++) {
        f *= cube / ((3.0L * k - 1) * (3.0L * k));
        g *= cube / ((3.0L * k) * (3.0L * k + 1));
        sf += f;
        sg += g;
    }
    return (double)(0.355028053887817239260063186004L * sf -
                    0.258819403792806798405183560189L * sg);
}

// Orthogonal polynomials of degree n, as PyTorch computes them: closed forms inside (-1, 1) for
// larger n, else recurrences from p0 = 1 and p1.

enum { MAX_DEGREE = 10000000 };

static double recur_chebyshev(double x, double p1, int64_t n) {
    double p = 1, q = p1;
    for (int64_t k = 2; k <= n && k < MAX_DEGREE && isfinite(q); k++) {
        double r = (x + x) * q - p;
        p = q;
        q = r;
    }
    return q;
}

static int64_t degree(double n) {
    return n >= -4611686018427387904.0 && n <= 4611686018427387904.0 ? (int64_t)n
           : n > 0                                                   ? INT64_MAX / 4
                                                                     : -1;
}

static double odd_sign(int64_t n) {
    return n % 2 ? -1 : 1;
}

double special_chebyshev_t(double x, double nf) {
    int64_t n = degree(nf);
    if (n < 0)
        return 0;
    if (fabs(x) == 1)
        return x > 0 ? 1 : odd_sign(n);
    if (n > 6 && fabs(x) < 1)
        return cos((double)n * acos(x));
    return n == 0 ? 1 : recur_chebyshev(x, x, n);
}

double special_chebyshev_u(double x, double nf) {
    int64_t n = degree(nf);
    if (n < 0)
        return 0;
    if (fabs(x) == 1)
        return (x > 0 ? 1 : odd_sign(n)) * (double)(n + 1);
    if (n > 8 && fabs(x) < 1) {
        double angle = acos(x), s = sin(angle);
        return s != 0 ? sin((double)(n + 1) * angle) / s
                      : (double)(n + 1) * cos((double)(n + 1) * angle) / x;
    }
    return n == 0 ? 1 : recur_chebyshev(x, x + x, n);
}

double special_chebyshev_v(double x, double nf) {
    int64_t n = degree(nf);
    if (n < 0)
        return 0;
    if (fabs(x) == 1)
        return x > 0 ? 1 : odd_sign(n) * (double)(n + n + 1);
    if (n > 8 && fabs(x) < 1) {
        double angle = acos(x);
        return sin(angle / 2) != 1 ? cos(((double)n + 0.5) * angle) / cos(angle / 2)
                                   : odd_sign(n) * (double)(n + n + 1);
    }
    return n == 0 ? 1 : recur_chebyshev(x, x + x - 1, n);
}

double special_chebyshev_w(double x, double nf) {
    int64_t n = degree(nf);
    if (n < 0)
        return 0;
    if (fabs(x) == 1)
        return x > 0 ? (double)(n + n + 1) : odd_sign(n);
    if (n > 8 && fabs(x) < 1) {
        double angle = acos(x);
        if (cos(angle / 2) != 1)
            return sin(((double)n + 0.5) * angle) / sin(angle / 2);
        return x > 0 ? (double)(n + n + 1) : odd_sign(n);
    }
    return n == 0 ? 1 : recur_chebyshev(x, x + x + 1, n);
}

double special_hermite_h(double x, double nf) {
    int64_t n = degree(nf);
    double p = 1, q = x + x;
    if (n <= 0)
        return n == 0;
    for (int64_t k = 2; k < n + n && k < MAX_DEGREE && isfinite(q); k += 2) {
        double r = (x + x) * q - (double)k * p;
        p = q;
        q = r;
    }
    return q;
}

double special_hermite_he(double x, double nf) {
    int64_t n = degree(nf);
    double p = 1, q = x;
    if (n <= 0)
        return n == 0;
    for (int64_t k = 1; k < n && k < MAX_DEGREE && isfinite(q); k++) {
        double r = x * q - (double)k * p;
        p = q;
        q = r;
    }
    return q;
}

double special_laguerre(double x, double nf) {
    int64_t n = degree(nf);
    double p = 1, q = 1 - x;
    if (n < 0)
        return 0;
    if (x == 0 || n == 0)
        return 1;
    for (int64_t k = 1; k < n && k < MAX_DEGREE && isfinite(q); k++) {
        double r = (((double)(k + k) + (1 - x)) * q - (double)k * p) / (double)(k + 1);
        p = q;
        q = r;
    }
    return q;
}

double special_legendre(double x, double nf) {
    int64_t n = degree(nf);
    double p = 1, q = x;
    if (n < 0)
        return 0;
    if (fabs(x) == 1)
        return x > 0 ? 1 : odd_sign(n);
    if (n == 0)
        return 1;
    for (int64_t k = 1; k < n && k < MAX_DEGREE && isfinite(q); k++) {
        double r = ((double)(k + k + 1) * x * q - (double)k * p) / (double)(k + 1);
        p = q;
        q = r;
    }
    return q;
}
