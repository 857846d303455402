// special.c: functions of statistics that the C library lacks, in double: the gamma family, the
// error function's inverse and scaled forms. Values at poles and outside the domains are PyTorch's.
#include <math.h>

#include "core/eager/loops.h"

double special_lgamma(double x) {
    int sign;
    return lgamma_r(x, &sign);
}

double special_digamma(double x) {
    double shift = 0;
    if (x == 0)
        return copysign(INFINITY, -x);
    if (x < 0) {
        if (x == floor(x))
            return (double)NAN;
        double r = x - trunc(x); // of a small x itself
        return special_digamma(1 - x) - M_PI / tan(M_PI * r);
    }
    while (x < 12) {
        shift -= 1 / x;
        x += 1;
    }
    double y = 1 / (x * x);
    static const double b[] = {1.0 / 12,  -1.0 / 120,     1.0 / 252, -1.0 / 240,
                               1.0 / 132, -691.0 / 32760, 1.0 / 12};
    double sum = 0;
    for (int i = COUNT(b) - 1; i >= 0; i--)
        sum = (sum + b[i]) * y;
    return isinf(x) ? x : shift + log(x) - 0.5 / x - sum;
}

// erfc's inverse near p = 0 by Newton's method on log erfc, which is almost a parabola.
static double erfc_inverse(double p) {
    double t = sqrt(-2 * log(p / 2));
    double x = -0.70711 * ((2.30753 + t * 0.27061) / (1 + t * (0.99229 + t * 0.04481)) - t);
    for (int i = 0; i < 4; i++) {
        double err = erfc(x) - p;
        x += err / (1.12837916709551257 * exp(-x * x) - x * err);
    }
    return x;
}

double special_erfinv(double y) {
    double a = fabs(y);
    if (!(a <= 1))
        return (double)NAN;
    if (a == 1)
        return copysign(INFINITY, y);
    if (a > 0.5)
        return copysign(erfc_inverse(1 - a), y);
    double w = -log1p(-y * y);
    double x = copysign(
        sqrt(sqrt((4.3307 + w / 2 * -1) * (4.3307 + w / 2 * -1) + w / 0.147) - (4.3307 - w / 2)),
        y);
    for (int i = 0; i < 4; i++) {
        double err = erf(x) - y;
        x -= err / (1.12837916709551257 * exp(-x * x) + x * err);
    }
    return y == 0 ? y : x;
}

double special_erfcx(double x) {
    if (x < -26.7)
        return INFINITY;
    if (x < 25)
        return exp(x * x) * erfc(x);
    double y = 1 / (2 * x * x);
    return 0.56418958354775629 / x * (1 - y * (1 - 3 * y * (1 - 5 * y * (1 - 7 * y))));
}

double special_ndtri(double p) {
    if (!(p >= 0 && p <= 1))
        return (double)NAN;
    if (p == 0 || p == 1)
        return p == 0 ? -(double)INFINITY : (double)INFINITY;
    if (p < 0.25)
        return -M_SQRT2 * erfc_inverse(2 * p);
    if (p > 0.75)
        return M_SQRT2 * erfc_inverse(2 * (1 - p));
    return M_SQRT2 * special_erfinv(2 * p - 1);
}

double special_ndtr(double x) {
    double z = x * M_SQRT1_2;
    return fabs(z) < 1 ? 0.5 + 0.5 * erf(z) : z > 0 ? 1 - 0.5 * erfc(z) : 0.5 * erfc(-z);
}

double special_log_ndtr(double x) {
    double z = x * M_SQRT1_2;
    return x < -1 ? log(special_erfcx(-z) / 2) - z * z : log1p(-erfc(z) / 2);
}

// Hurwitz's zeta by Euler and Maclaurin's summation.
double special_zeta(double x, double q) {
    if (x == 1)
        return INFINITY;
    if (x < 1)
        return (double)NAN;
    if (q <= 0) {
        if (q == floor(q))
            return INFINITY;
        if (x != floor(x))
            return (double)NAN;
    }
    double s = pow(q, -x), a = q, b = 0;
    for (int i = 0; i < 9 || a <= 9; i++) {
        a += 1;
        b = pow(a, -x);
        s += b;
        if (fabs(b) < 1.1e-16 * fabs(s))
            return s;
    }
    s += b * a / (x - 1) - 0.5 * b;
    // 2k! / B2k
    static const double c[] = {12.0,
                               -720.0,
                               30240.0,
                               -1209600.0,
                               47900160.0,
                               -1.8924375803183791606e9,
                               7.47242496e10,
                               -2.950130727918164224e12,
                               1.1646782814350067249e14,
                               -4.5979787224074726105e15,
                               1.8152105401943546773e17,
                               -7.1661652561756670113e18};
    double f = 1, k = 0;
    for (int i = 0; i < COUNT(c); i++) {
        f *= x + k;
        b /= a;
        double t = f * b / c[i];
        s += t;
        if (fabs(t / s) < 1.1e-16)
            break;
        k += 1;
        f *= x + k;
        b /= a;
        k += 1;
    }
    return s;
}

#define T        double
#define M1(f, x) f(x)
#define TRIGAMMA trigamma
#include "core/eager/trigamma.inc"
#undef T
#undef M1
#undef TRIGAMMA
#define T         float
#define M1(fn, x) fn##f(x)
#define TRIGAMMA  trigamma_f32
#include "core/eager/trigamma.inc"
#undef T
#undef M1
#undef TRIGAMMA

double special_polygamma_factor(double n) {
    return (fmod(n, 2) != 0 ? 1 : -1) * exp(special_lgamma(n + 1));
}

double special_polygamma(double n, double x) {
    if (n == 0)
        return special_digamma(x);
    if (n == 1)
        return trigamma(x);
    return special_polygamma_factor(n) * special_zeta(n + 1, x);
}

double special_polygamma_f32(double n, double x) {
    if (n == 0)
        return special_digamma(x);
    if (n == 1)
        return (double)trigamma_f32((float)x);
    return (double)((float)special_polygamma_factor(n) * (float)special_zeta(n + 1, x));
}

double special_mvlgamma(double x, double p) {
    double sum = p * (p - 1) / 4 * 1.1447298858494001741;
    for (int i = 0; i < p && i < 100000; i++)
        sum += special_lgamma(x - i / 2.0);
    return sum;
}

// x^a e^-x / Gamma(a), by logs where the factors overflow.
static double gamma_factor(double a, double x) {
    if (fabs(a - x) > 0.4 * fabs(a)) {
        double ax = a * log(x) - x - special_lgamma(a);
        return ax < -709.78 ? 0 : exp(ax);
    }
    // Stirling around x = a: a (log1p(t) - t) with t = (x - a) / a.
    double t = (x - a) / a;
    double stirling = a < 10 ? special_lgamma(a) - ((a - 0.5) * log(a) - a + 0.91893853320467274178)
                             : 1 / (12 * a) - 1 / (360 * a * a * a) + 1 / (1260 * pow(a, 5));
    return sqrt(a / (2 * M_PI)) * exp(a * (log1p(t) - t) - stirling);
}

static double igamma_series(double a, double x) {
    double factor = gamma_factor(a, x), term = 1, sum = 1, r = a;
    for (int i = 0; i < 100000 && term > 1e-17 * sum; i++) {
        r += 1;
        term *= x / r;
        sum += term;
    }
    return sum * factor / a;
}

// Lentz's continued fraction.
static double igammac_fraction(double a, double x) {
    double b = x + 1 - a, c = 1e300, d = 1 / b, h = d;
    for (int i = 1; i < 100000; i++) {
        double an = -i * (i - a);
        b += 2;
        d = an * d + b;
        d = fabs(d) < 1e-300 ? 1e-300 : d;
        c = b + an / c;
        c = fabs(c) < 1e-300 ? 1e-300 : c;
        d = 1 / d;
        double delta = d * c;
        h *= delta;
        if (fabs(delta - 1) < 1e-16)
            break;
    }
    return gamma_factor(a, x) * h;
}

// P and Q of the incomplete gamma function; -1 if the general formulas apply.
static double igamma_edge(double a, double x, bool upper) {
    if (x < 0 || a < 0)
        return (double)NAN;
    if (a == 0)
        return x > 0 ? !upper : (double)NAN;
    if (x == 0)
        return upper;
    if (isinf(a))
        return isinf(x) ? (double)NAN : upper;
    if (isinf(x))
        return !upper;
    return isnan(a) || isnan(x) ? (double)NAN : -1;
}

double special_igamma(double a, double x) {
    double edge = igamma_edge(a, x, false);
    if (edge != -1)
        return edge;
    return x > 1 && x > a ? 1 - igammac_fraction(a, x) : igamma_series(a, x);
}

double special_igammac(double a, double x) {
    double edge = igamma_edge(a, x, true);
    if (edge != -1)
        return edge;
    return x > 1 && x > a ? igammac_fraction(a, x) : 1 - igamma_series(a, x);
}

double special_logaddexp(double a, double b) {
    if (isinf(a) && a == b)
        return a;
    double m = a > b ? a : b;
    return m + log1p(exp(-fabs(a - b)));
}

double special_logaddexp2(double a, double b) {
    if (isinf(a) && a == b)
        return a;
    double m = a > b ? a : b;
    return m + log1p(exp2(-fabs(a - b))) * M_LOG2E;
}
