// loops_float.h: the loops of loops.def in a float type T, included once for float and once for
// double. Functions of the C library are called in double, where their vector forms are exact
// enough for float's last bit. Needs: T, SUFFIX(fn) (fnf for float), TABLE (name of the table).
#ifndef CORE_EAGER_LOOPS_FLOAT_H
#define CORE_EAGER_LOOPS_FLOAT_H

#include <math.h>

#include "core/eager/loops.h"

#define P(i) ((T)p->f[i])
#define M1(fn, x) ((T)fn((double)(x)))
#define M2(fn, x, y) ((T)fn((double)(x), (double)(y)))
#define FABS(x) SUFFIX(fabs)(x)
#define CEIL(x) SUFFIX(ceil)(x)
#define FLOOR(x) SUFFIX(floor)(x)
#define TRUNC(x) SUFFIX(trunc)(x)
#define RINT(x) SUFFIX(nearbyint)(x)
#define SQRT(x) SUFFIX(sqrt)(x)
#define FMOD(x, y) SUFFIX(fmod)(x, y)
#define COPYSIGN(x, y) SUFFIX(copysign)(x, y)
#define NEXTAFTER(x, y) SUFFIX(nextafter)(x, y)

// Python's a // b: from fmod, since a / b rounded up may cross an integer.
static inline T div_floor(T a, T b) {
    if (b == 0)
        return a / b;
    T mod = FMOD(a, b), div = (a - mod) / b;
    if (mod != 0 && (b < 0) != (mod < 0))
        div -= 1;
    if (div == 0)
        return COPYSIGN(0, a / b);
    T floor_div = FLOOR(div);
    return div - floor_div > (T)0.5 ? floor_div + 1 : floor_div;
}

static inline T remainder_f(T a, T b) {
    T mod = FMOD(a, b);
    return mod != 0 && (b < 0) != (mod < 0) ? mod + b : mod;
}

static inline T power(T a, T b) {
    return b == 2 ? a * a : b == (T)0.5 ? SQRT(a) : b == 3 ? a * a * a : b == 1 ? a : M2(pow, a, b);
}

static inline T round_decimals(T a, T decimals) {
    T ten = M2(pow, 10, FABS(decimals));
    return decimals < 0 ? RINT(a / ten) * ten : RINT(a * ten) / ten;
}

static inline T clamp_f(T a, T lo, T hi) {
    if (a != a)
        return a;
    if (lo != lo)
        return lo;
    if (hi != hi)
        return hi;
    T low = a < lo ? lo : a;
    return low > hi ? hi : low;
}

// In the low floats PyTorch rounds at each of its three steps.
static inline T logit(T z, DType d) {
    if (!dtype_is_low(d))
        return M1(log, z / (1 - z));
    double rest = round_to(d, 1 - (double)z), odds = round_to(d, round_to(d, (double)z) / rest);
    return M1(log, odds);
}

// As PyTorch computes it in T: near the poles its sine has T's error.
static inline T trigamma(T x) {
    T sign = 1, sum = 0;
    if (x < (T)0.5) {
        T s = M1(sin, (T)M_PI * x);
        sign = -1;
        sum = -((T)M_PI * (T)M_PI) / (s * s);
        x = 1 - x;
    }
    for (int i = 0; i < 6; i++, x += 1)
        sum += 1 / (x * x);
    T y = 1 / (x * x);
    sum += (1 + 1 / (2 * x) + y * ((T)1 / 6 - y * ((T)1 / 30 - y * ((T)1 / 42)))) / x;
    return sign * sum;
}

static inline T logit_slope(T g, T x, T eps) {
    bool out = eps < 0 ? x < 0 || x > 1 : x < eps || x > 1 - eps;
    return out ? (eps < 0 ? (T)NAN : 0) : g / (x * (1 - x));
}

static inline bool is_close(T a, T b, T rtol, T atol, T equal_nan) {
    if (a != a || b != b)
        return equal_nan != 0 && a != a && b != b;
    if (a == b)
        return true;
    T diff = FABS(a - b);
    return diff <= atol + FABS(rtol * b) && diff < (T)INFINITY;
}

static inline T gelu_tanh(T a) {
    const T k = (T)0.7978845608028654;
    return (T)0.5 * a * (1 + M1(tanh, k * (a + (T)0.044715 * a * a * a)));
}

static inline T gelu_slope(T x, T tanh_form) {
    if (tanh_form != 0) {
        const T k = (T)0.7978845608028654, c = (T)0.044715;
        T t = M1(tanh, k * (x + c * x * x * x));
        return (T)0.5 * (1 + t) + (T)0.5 * x * (1 - t * t) * k * (1 + 3 * c * x * x);
    }
    T cdf = (T)0.5 * (1 + M1(erf, x * (T)0.7071067811865476));
    return cdf + x * (T)0.3989422804014327 * M1(exp, (T)-0.5 * x * x);
}

static inline T silu_slope(T x) {
    T s = 1 / (1 + M1(exp, -x));
    return s * (1 + x * (1 - s));
}

static inline T mish_slope(T x) {
    T s = 1 / (1 + M1(exp, -x)), t = M1(tanh, M1(log1p, M1(exp, x)));
    return t + x * s * (1 - t * t);
}

static inline T softplus_slope(T x) {
    T z = M1(exp, x);
    return z / (z + 1);
}

// f: alpha, scale, input_scale, is_result.
static inline T elu_slope(T g, T v, const double *f) {
    T neg = (T)(f[0] * f[1]), pos = (T)f[1], in = (T)f[2];
    if (v > 0)
        return g * pos;
    return f[3] != 0 ? g * in * (v + neg) : g * in * neg * M1(exp, v * in);
}

static inline T smooth_l1(T d, T beta) {
    T z = FABS(d);
    return z < beta ? (T)0.5 * z * z / beta : z - (T)0.5 * beta;
}

static inline T smooth_l1_slope(T d, T beta) {
    return d <= -beta ? -1 : d >= beta ? 1 : d / beta;
}

static inline T huber(T d, T delta) {
    T z = FABS(d);
    return z <= delta ? (T)0.5 * z * z : delta * (z - (T)0.5 * delta);
}

static inline T huber_slope(T d, T delta) {
    return d <= -delta ? -delta : d >= delta ? delta : d;
}

static inline T bce(T x, T y) {
    T a = M1(log, x), b = M1(log1p, -x);
    a = a < -100 ? -100 : a;
    b = b < -100 ? -100 : b;
    return (y - 1) * b - y * a;
}

#define BODY(O, expr) \
    const T *x = in[0], *y = in[1], *z = in[2]; \
    O *o = out; \
    _Pragma("GCC ivdep") for (int64_t i = 0; i < n; i++) { \
        T a = x[i], b = y[i], c = z[i]; \
        (void)a, (void)b, (void)c, (void)p; \
        o[i] = (O)(expr); \
    }
#define NOT 0
#define LOOP(name, expr, int_expr) \
    VECTORED static void loop_##name(int64_t n, void *out, const void *const *in, \
                                     const Param *p) { \
        BODY(T, expr) \
    }
#define CMP(name, expr, int_expr) \
    VECTORED static void loop_##name(int64_t n, void *out, const void *const *in, \
                                     const Param *p) { \
        BODY(uint8_t, expr) \
    }
#include "core/eager/loops.def"
#undef LOOP
#undef CMP

LoopFn *const TABLE[LOOP_count] = {
#define LOOP(name, ...) [LOOP_##name] = loop_##name,
#define CMP(name, ...) [LOOP_##name] = loop_##name,
#include "core/eager/loops.def"
};

#endif
