// loops_i64.c: elementwise loops in int64, for all integers and bool: results wrap when they are
// stored.
#include <math.h>

#include "core/eager/loops.h"

typedef int64_t T;

#define P(k)           (p->i[k])
#define WRAP(op, x, y) ((int64_t)((uint64_t)(x)op(uint64_t)(y)))

// Python's //, which rounds down. Zero divisors are refused before.
static inline T floor_div_i(T a, T b) {
    if (b == -1)
        return WRAP(-, 0, a);
    T q = a / b;
    return a % b != 0 && (a < 0) != (b < 0) ? q - 1 : q;
}

static inline T floor_mod_i(T a, T b) {
    T r = a % b;
    return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}

static inline T power_i(T a, T b) {
    if (b < 0)
        return a == 1 ? 1 : a == -1 ? (b & 1 ? -1 : 1) : 0;
    uint64_t r = 1, base = (uint64_t)a;
    for (; b; b >>= 1, base *= base)
        if (b & 1)
            r *= base;
    return (T)r;
}

static inline uint64_t magnitude(T a) {
    return a < 0 ? 0 - (uint64_t)a : (uint64_t)a;
}

static inline T gcd_i(T a, T b) {
    uint64_t x = magnitude(a), y = magnitude(b);
    while (x) {
        uint64_t r = y % x;
        y = x;
        x = r;
    }
    return (T)y;
}

static inline T lcm_i(T a, T b) {
    T g = gcd_i(a, b);
    if (g == 0)
        return 0;
    uint64_t v = magnitude(a) / (uint64_t)g * magnitude(b);
    return (T)magnitude((T)v);
}

static inline bool is_close(double a, double b, double rtol, double atol, double equal_nan) {
    (void)equal_nan;
    return a == b || fabs(a - b) <= atol + fabs(rtol * b);
}

#define BODY(O, expr)                                                                              \
    const T *x = in[0], *y = in[1], *z = in[2];                                                    \
    O *o = out;                                                                                    \
    _Pragma("GCC ivdep") for (int64_t i = 0; i < n; i++) {                                         \
        T a = x[i], b = y[i], c = z[i];                                                            \
        (void)a, (void)b, (void)c, (void)p;                                                        \
        o[i] = (O)(expr);                                                                          \
    }
#define NOT 0
#define LOOP(name, float_expr, expr)                                                               \
    VECTORED static void loop_##name(int64_t n, void *out, const void *const *in,                  \
                                     const Param *p) {                                             \
        BODY(T, expr)                                                                              \
    }
#define CMP(name, float_expr, expr)                                                                \
    VECTORED static void loop_##name(int64_t n, void *out, const void *const *in,                  \
                                     const Param *p) {                                             \
        BODY(uint8_t, expr)                                                                        \
    }
#include "core/eager/loops.def"
#undef LOOP
#undef CMP

LoopFn *const loops_i64[LOOP_count] = {
#define LOOP(name, ...) [LOOP_##name] = loop_##name,
#define CMP(name, ...)  [LOOP_##name] = loop_##name,
#include "core/eager/loops.def"
};
