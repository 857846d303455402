// single.h: inside of core/eager: functions whose results are rounded to float, computed in double
// with an error far below float's, by plain arithmetic that vectorises. NaN stays NaN.
#ifndef CORE_EAGER_SINGLE_H
#define CORE_EAGER_SINGLE_H

#include <stdint.h>

#define FMA(a, b, c) __builtin_fma((a), (b), (c))

// 2^n e^r with r at most half of log 2; n goes into the exponent as an integer.
static inline double single_exp_within(double c) {
    union {
        double d;
        uint64_t u;
    } z, p;
    z.d = FMA(c, 0x1.71547652b82fep0, 0x1.8p52);
    double n = z.d - 0x1.8p52, r = FMA(n, -0x1.62e42fefa39efp-1, c);
    p.d = FMA(r, 0x1.a17e00d4cc8d1p-13, 0x1.6da762c0bbd6bp-10);
    p.d = FMA(p.d, r, 0x1.1110a619d432dp-7);
    p.d = FMA(p.d, r, 0x1.5554648e21d60p-5);
    p.d = FMA(p.d, r, 0x1.5555557e75f6cp-3);
    p.d = FMA(p.d, r, 0x1.0000005c94bcap-1);
    p.d = FMA(p.d, r, 0x1.fffffffff61e4p-1);
    p.d = FMA(p.d, r, 0x1.ffffffffa7056p-1);
    p.u += z.u << 52;
    return p.d;
}

// e^x in double to 2^-34: 0 below -104 and infinity above 89 once it is rounded to float.
static inline double single_exp(float x) {
    float f = x < -105.0f ? -105.0f : x;
    return single_exp_within((double)(f > 90.0f ? 90.0f : f));
}

// The same of a double: exactly 0 far below, finite far above.
static inline double single_exp_below(double x) {
    double e = single_exp_within(x < -600.0 ? -600.0 : x > 600.0 ? 600.0 : x);
    return x < -600.0 ? 0.0 : e;
}

// The error function to 2^-30 of itself: x P(x^2) / Q(x^2), fitted on [0, 3.95]; beyond, float
// rounds it to 1.
static inline double single_erf(float x) {
    float f = x < -3.95f ? -3.95f : x;
    f = f > 3.95f ? 3.95f : f;
    double c = (double)f, y = c * c;
    double p = FMA(y, -0x1.ea7c01921659dp-30, 0x1.254f7354c030fp-21);
    double q = FMA(y, 0x1.dc1b9013a17c5p-18, 0x1.8d3d5f484c453p-13);
    p = FMA(p, y, 0x1.75cbed976bb4ap-15);
    q = FMA(q, y, 0x1.6cd125b4cfd03p-9);
    p = FMA(p, y, 0x1.7fc0268e42de5p-11);
    q = FMA(q, y, 0x1.af61114c2994cp-6);
    p = FMA(p, y, 0x1.2b302af3f8becp-7);
    q = FMA(q, y, 0x1.4b5fa5c2761c0p-3);
    p = FMA(p, y, 0x1.2540082aae8b1p-4);
    q = FMA(q, y, 0x1.30ac43b818ac1p-1);
    p = FMA(p, y, 0x1.2e6b71a255d34p-2);
    q = FMA(q, y, 1.0);
    p = FMA(p, y, 0x1.20dd750429b6bp+0);
    return c * p / q;
}

#undef FMA
#endif
