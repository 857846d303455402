// abi_prelude.c: the text that generated C begins with: the declarations of abi.h and helper
// functions with PyTorch's rules for NaN, division, overflow and small floats. Plain C99, no
// #include: tcc compiles it in memory.
#include "core/inductor/abi.h"

#include <stddef.h>

// The layout that the text declares again.
_Static_assert(offsetof(FxTensor, size) == 2 * sizeof(void *), "FxTensor.size");
_Static_assert(offsetof(FxTensor, ndim) == 2 * sizeof(void *) + 32 * sizeof(int64_t),
               "FxTensor.ndim");
_Static_assert(sizeof(FxArg) == 8 + 2 * sizeof(void *), "FxArg");
_Static_assert(sizeof(int64_t) == sizeof(long), "int64_t is long");

static const char *const lines[] = {
    "/* Types and declarations shared with the runtime; no header is needed. */",
    "typedef signed char int8_t;",
    "typedef short int16_t;",
    "typedef int int32_t;",
    "typedef long int64_t;",
    "typedef unsigned char uint8_t;",
    "typedef unsigned short uint16_t;",
    "typedef unsigned int uint32_t;",
    "typedef unsigned long uint64_t;",
    "typedef uint8_t fx_bool;",
    "typedef uint16_t fx_bf16;",
    "typedef uint16_t fx_f16;",
    "typedef struct FxTensor {",
    "    void *data, *base;",
    "    int64_t size[16], stride[16];",
    "    int32_t ndim, dtype;",
    "} FxTensor;",
    "typedef struct FxArg {",
    "    int32_t tag, n;",
    "    const char *kw;",
    "    union { int64_t i; double f; const char *s; const FxTensor *t; const int64_t *ints; const "
    "FxTensor *const *tensors; } v;",
    "} FxArg;",
    "typedef struct FxRuntime FxRuntime;",
    "struct FxRuntime {",
    "    void *(*alloc)(FxRuntime *, int64_t);",
    "    void (*free)(FxRuntime *, void *);",
    "    void (*call)(FxRuntime *, const char *, FxTensor *const *, int32_t, const FxArg *, "
    "int32_t);",
    "    void (*fail)(FxRuntime *, const char *);",
    "    void (*kernel)(FxRuntime *, const char *, int32_t);",
    "    int32_t threads;",
    "};",
    "/* Functions of libm; declared this way gcc finds their vector forms. */",
    "#if defined(__GNUC__) && !defined(__clang__) && !defined(__TINYC__)",
    "#define FX_VECTOR __attribute__((simd(\"notinbranch\"), nothrow, leaf, const))",
    "#else",
    "#define FX_VECTOR",
    "#endif",
    "#define FX_MATH1(name) FX_VECTOR extern double name(double); FX_VECTOR extern float "
    "name##f(float);",
    "#define FX_MATH2(name) extern double name(double, double); extern float name##f(float, "
    "float);",
    "FX_MATH1(exp) FX_MATH1(exp2) FX_MATH1(expm1) FX_MATH1(log) FX_MATH1(log1p) FX_MATH1(log2) "
    "FX_MATH1(log10)",
    "FX_MATH1(sin) FX_MATH1(cos) FX_MATH1(tan) FX_MATH1(asin) FX_MATH1(acos) FX_MATH1(atan) "
    "FX_MATH1(sinh) FX_MATH1(cosh)",
    "FX_MATH1(tanh) FX_MATH1(asinh) FX_MATH1(acosh) FX_MATH1(atanh) FX_MATH1(erf) FX_MATH1(erfc)",
    "#undef FX_VECTOR",
    "#define FX_VECTOR",
    "FX_MATH1(sqrt) FX_MATH1(ceil) FX_MATH1(floor) FX_MATH1(trunc) FX_MATH1(rint) FX_MATH1(fabs) "
    "FX_MATH1(lgamma)",
    "FX_MATH2(pow) FX_MATH2(fmod) FX_MATH2(atan2) FX_MATH2(hypot) FX_MATH2(nextafter) "
    "FX_MATH2(copysign)",
    "extern double fma(double, double, double);",
    "extern float fmaf(float, float, float);",
    "extern void *memcpy(void *, const void *, unsigned long);",
    "#if defined(__GNUC__) && !defined(__TINYC__)",
    "#define FX_UNLIKELY(x) __builtin_expect(!!(x), 0)",
    "#else",
    "#define FX_UNLIKELY(x) (x)",
    "#endif",
    "static const char *volatile fx_oob;",
    "/* bf16 and f16 are held in float; conversion rounds to nearest even, NaN stays NaN. */",
    "static inline float fx_bf16_to_f32(fx_bf16 h) { uint32_t u = (uint32_t)h << 16; float f; "
    "memcpy(&f, &u, 4); return f; }",
    "static inline fx_bf16 fx_f32_to_bf16(float f) {",
    "    uint32_t u; memcpy(&u, &f, 4);",
    "    return f != f ? 0x7fc0 : (fx_bf16)((u + 0x7fff + ((u >> 16) & 1)) >> 16);",
    "}",
    "static inline float fx_f16_to_f32(fx_f16 h) {",
    "    uint32_t sign = (uint32_t)(h & 0x8000) << 16, e = h >> 10 & 31, m = h & 1023, u; float f;",
    "    if (e == 31) u = sign | 0x7f800000 | m << 13;",
    "    else if (e) u = sign | (e + 112) << 23 | m << 13;",
    "    else { f = (float)(int32_t)m * 0x1p-24f; memcpy(&u, &f, 4); u |= sign; }",
    "    memcpy(&f, &u, 4); return f;",
    "}",
    "static inline fx_f16 fx_f32_to_f16(float f) {",
    "    uint32_t u, sign, r; memcpy(&u, &f, 4); sign = u >> 16 & 0x8000; u &= 0x7fffffff;",
    "    if (u > 0x7f800000) return (fx_f16)(sign | 0x7e00);",
    "    if (u >= 0x477ff000) return (fx_f16)(sign | 0x7c00);",
    "    if (u < 0x38800000) { float a; memcpy(&a, &u, 4); a += 0.5f; memcpy(&r, &a, 4); return "
    "(fx_f16)(sign | (r - 0x3f000000)); }",
    "    return (fx_f16)(sign | ((u + 0xfff + (u >> 13 & 1) - 0x38000000) >> 13));",
    "}",
    "static inline float fx_round_bf16(float f) { return fx_bf16_to_f32(fx_f32_to_bf16(f)); }",
    "static inline float fx_round_f16(float f) { return fx_f16_to_f32(fx_f32_to_f16(f)); }",
    "#define FX_BITS(A, SA, B, SB) static inline B fx_bits_##SA##_##SB(A a) { B b; memcpy(&b, &a, "
    "sizeof b); return b; }",
    "FX_BITS(float, f32, int32_t, i32) FX_BITS(int32_t, i32, float, f32) FX_BITS(double, f64, "
    "int64_t, i64) FX_BITS(int64_t, i64, double, f64)",
    "/* Arithmetic with PyTorch's rules: NaN wins in maximum, remainders and quotients of integers "
    "round down, division by",
    "   zero and the one overflowing quotient end in a defined number. */",
    "#define FX_FLOAT(T, S, f) \\",
    "    static inline T fx_relu_##S(T x) { return x < 0 ? (T)0 : x; } \\",
    "    static inline T fx_maximum_##S(T a, T b) { return a > b || a != a ? a : b; } \\",
    "    static inline T fx_minimum_##S(T a, T b) { return a < b || a != a ? a : b; } \\",
    "    static inline T fx_abs_##S(T x) { return fabs##f(x); } \\",
    "    static inline T fx_sign_##S(T x) { return (T)((x > 0) - (x < 0)); } \\",
    "    static inline int fx_isinf_##S(T x) { return x - x != x - x && x == x; } \\",
    "    static inline T fx_fmod_##S(T a, T b) { return fmod##f(a, b); } \\",
    "    static inline T fx_remainder_##S(T a, T b) { T r = fmod##f(a, b); return r != 0 && (r < "
    "0) != (b < 0) ? r + b : r; } \\",
    "    static inline T fx_truncdiv_##S(T a, T b) { return trunc##f(a / b); } \\",
    "    static inline T fx_floordiv_##S(T a, T b) { \\",
    "        T r, q, n; if (b == 0) return a / b; r = fmod##f(a, b); q = (a - r) / b; \\",
    "        if (r != 0 && (b < 0) != (r < 0)) q -= 1; \\",
    "        if (q == 0) return copysign##f(0, a / b); \\",
    "        n = floor##f(q); return q - n > (T)0.5 ? n + 1 : n; } \\",
    "    static inline T fx_pow_##S(T a, T b) { return pow##f(a, b); }",
    "FX_FLOAT(float, f32, f) FX_FLOAT(double, f64, )",
    "static inline int fx_signbit_f32(float x) { return fx_bits_f32_i32(x) < 0; }",
    "static inline int fx_signbit_f64(double x) { return fx_bits_f64_i64(x) < 0; }",
    "#define FX_INT(T, S, W) \\",
    "    static inline T fx_relu_##S(T x) { return x < 0 ? 0 : x; } \\",
    "    static inline T fx_maximum_##S(T a, T b) { return a > b ? a : b; } \\",
    "    static inline T fx_minimum_##S(T a, T b) { return a < b ? a : b; } \\",
    "    static inline T fx_abs_##S(T x) { return x < 0 ? (T)(0 - (W)x) : x; } \\",
    "    static inline T fx_sign_##S(T x) { return (T)((x > 0) - (x < 0)); } \\",
    "    static inline T fx_truncdiv_##S(T a, T b) { return b == 0 ? 0 : b == (T)-1 ? (T)(0 - "
    "(W)a) : (T)(a / b); } \\",
    "    static inline T fx_fmod_##S(T a, T b) { return b == 0 || b == (T)-1 ? 0 : (T)(a % b); } "
    "\\",
    "    static inline T fx_floordiv_##S(T a, T b) { T q = fx_truncdiv_##S(a, b), r = "
    "fx_fmod_##S(a, b); return r != 0 && (r < 0) != (b < 0) ? (T)(q - 1) : q; } \\",
    "    static inline T fx_remainder_##S(T a, T b) { T r = fx_fmod_##S(a, b); return r != 0 && (r "
    "< 0) != (b < 0) ? (T)(r + b) : r; } \\",
    "    static inline T fx_shl_##S(T a, T b) { return b < 0 || b >= (T)(8 * sizeof(T)) ? 0 : "
    "(T)((W)a << b); } \\",
    "    static inline T fx_shr_##S(T a, T b) { return b < 0 || b >= (T)(8 * sizeof(T)) ? (T)(a < "
    "0 ? -1 : 0) : (T)(a >> b); } \\",
    "    static inline T fx_pow_##S(T a, T b) { W r = 1, x = (W)a; if (b < 0) return a == 1 ? 1 : "
    "a == (T)-1 ? (b & 1 ? (T)-1 : 1) : 0; for (; b; b >>= 1) { if (b & 1) r *= x; x *= x; } "
    "return (T)r; } \\",
    "    static inline int fx_signbit_##S(T x) { return x < 0; } \\",
    "    static inline int fx_isinf_##S(T x) { (void)x; return 0; }",
    "FX_INT(int64_t, i64, uint64_t) FX_INT(int32_t, i32, uint32_t) FX_INT(int16_t, i16, uint32_t) "
    "FX_INT(int8_t, i8, uint32_t)",
    "FX_INT(uint8_t, u8, uint32_t) FX_INT(fx_bool, b8, uint32_t)",
    "/* Functions that compilers leave to a library: short polynomials where there are fused "
    "multiply-adds, NaN and infinities",
    "   as in libm. exp: 1.3 units of 2^-24; tanh, erf: rational functions, 5 of them. */",
    "static inline double fx_exp_f64(double x) { return exp(x); }",
    "static inline double fx_tanh_f64(double x) { return tanh(x); }",
    "static inline double fx_erf_f64(double x) { return erf(x); }",
    "#if defined(__FMA__) && !defined(__TINYC__)",
    "static inline float fx_exp_f32(float x) {",
    "    float c = x < -104.0f ? -104.0f : x, z, n, r, p; int32_t k, h;",
    "    c = c > 89.0f ? 89.0f : c;",
    "    z = fmaf(c, 0x1.715476p0f, 0x1.8p23f); n = z - 0x1.8p23f; k = fx_bits_f32_i32(z) - "
    "0x4b400000; h = k >> 1;",
    "    r = fmaf(n, -0x1.62e400p-1f, c); r = fmaf(n, -0x1.7f7d1cp-20f, r);",
    "    p = fmaf(0x1.6a98dap-10f, r, 0x1.1272cap-7f); p = fmaf(p, r, 0x1.555a20p-5f); p = fmaf(p, "
    "r, 0x1.55542ep-3f);",
    "    p = fmaf(p, r, 0x1.fffff6p-2f); p = fmaf(p, r, 1.0f); p = fmaf(p, r, 1.0f);",
    "    return p * fx_bits_i32_f32((int32_t)((uint32_t)(h + 127) << 23)) * "
    "fx_bits_i32_f32((int32_t)((uint32_t)(k - h + 127) << 23));",
    "}",
    "static inline float fx_tanh_f32(float x) {",
    "    float c = x < -7.90531111f ? -7.90531111f : x, y, p, q;",
    "    c = c > 7.90531111f ? 7.90531111f : c; y = c * c;",
    "    p = fmaf(-2.76076847742355e-16f, y, 2.00018790482477e-13f); p = fmaf(p, y, "
    "-8.60467152213735e-11f); p = fmaf(p, y, 5.12229709037114e-08f);",
    "    p = fmaf(p, y, 1.48572235717979e-05f); p = fmaf(p, y, 6.37261928875436e-04f); p = fmaf(p, "
    "y, 4.89352455891786e-03f);",
    "    q = fmaf(1.19825839466702e-06f, y, 1.18534705686654e-04f); q = fmaf(q, y, "
    "2.26843463243900e-03f); q = fmaf(q, y, 4.89352518554385e-03f);",
    "    return c * p / q;",
    "}",
    "static inline float fx_erf_f32(float x) {",
    "    float c = x < -4.0f ? -4.0f : x, y, p, q;",
    "    c = c > 4.0f ? 4.0f : c; y = c * c;",
    "    p = fmaf(-2.72614225801306e-10f, y, 2.77068142495902e-08f); p = fmaf(p, y, "
    "-2.10102402082508e-06f); p = fmaf(p, y, -5.69250639462346e-05f);",
    "    p = fmaf(p, y, -7.34990630326855e-04f); p = fmaf(p, y, -2.95459980854025e-03f); p = "
    "fmaf(p, y, -1.60960333262415e-02f);",
    "    q = fmaf(-1.45660718464996e-05f, y, -2.13374055278905e-04f); q = fmaf(q, y, "
    "-1.68282697438203e-03f); q = fmaf(q, y, -7.37332916720468e-03f);",
    "    q = fmaf(q, y, -1.42647390514189e-02f);",
    "    return c * p / q;",
    "}",
    "#else",
    "static inline float fx_exp_f32(float x) { return expf(x); }",
    "static inline float fx_tanh_f32(float x) { return tanhf(x); }",
    "static inline float fx_erf_f32(float x) { return erff(x); }",
    "#endif",
    "/* erfinv: Newton from a logarithmic start; digamma: series behind the recurrence, reflection "
    "below zero. */",
    "static inline double fx_erfinv_f64(double y) {",
    "    double l, t, x; int i;",
    "    if (!(fabs(y) < 1)) return y == 1 ? 1.0 / 0.0 : y == -1 ? -1.0 / 0.0 : 0.0 / 0.0;",
    "    l = log1p(-y * y); t = 4.330746750799873 + l / 2; x = copysign(sqrt(sqrt(t * t - l / "
    "0.147) - t), y);",
    "    for (i = 0; i < 4; i++) x -= (erf(x) - y) / (1.1283791670955126 * exp(-x * x));",
    "    return x;",
    "}",
    "static inline double fx_digamma_f64(double x) {",
    "    double sum = 0, y, whole;",
    "    if (x == 0) return copysign(1.0 / 0.0, -x);",
    "    if (x < 0) { whole = floor(x); if (whole == x) return 0.0 / 0.0; sum = -3.141592653589793 "
    "/ tan(3.141592653589793 * (x - whole)); x = 1 - x; }",
    "    for (; x < 10; x += 1) sum -= 1 / x;",
    "    y = 1 / (x * x);",
    "    return sum + log(x) - 0.5 / x - y * (1.0 / 12 - y * (1.0 / 120 - y * (1.0 / 252 - y * "
    "(1.0 / 240 - y * (1.0 / 132)))));",
    "}",
    "static inline float fx_erfinv_f32(float y) { return (float)fx_erfinv_f64(y); }",
    "static inline float fx_digamma_f32(float x) { return (float)fx_digamma_f64(x); }",
    "/* Philox 4x32-10 (J. Salmon et al., 2011), as PyTorch's seeds and offsets use it. */",
    "static inline uint32_t fx_philox(int64_t seed, int64_t offset, uint32_t *second) {",
    "    uint32_t c0 = (uint32_t)offset, c1 = (uint32_t)((uint64_t)offset >> 32), c2 = 0, c3 = 0;",
    "    uint32_t k0 = (uint32_t)seed, k1 = (uint32_t)((uint64_t)seed >> 32);",
    "    int i;",
    "    for (i = 0; i < 10; i++) {",
    "        uint64_t p0 = (uint64_t)c0 * 0xD2511F53u, p1 = (uint64_t)c2 * 0xCD9E8D57u;",
    "        uint32_t n0 = (uint32_t)(p1 >> 32) ^ c1 ^ k0, n2 = (uint32_t)(p0 >> 32) ^ c3 ^ k1;",
    "        c1 = (uint32_t)p1; c3 = (uint32_t)p0; c0 = n0; c2 = n2; k0 += 0x9E3779B9u; k1 += "
    "0xBB67AE85u;",
    "    }",
    "    *second = c1;",
    "    return c0;",
    "}",
    "static inline float fx_unit(uint32_t v) { return (float)(v & 0x7fffffff) * 4.6566127342e-10f; "
    "}",
    "static inline float fx_rand(int64_t seed, int64_t offset) { uint32_t b; return "
    "fx_unit(fx_philox(seed, offset, &b)); }",
    "static inline float fx_randn(int64_t seed, int64_t offset) {",
    "    uint32_t b, a = fx_philox(seed, offset, &b);",
    "    return (float)(sqrt(-2.0 * log((double)(1 - fx_unit(a)))) * cos(6.283185307179586 * "
    "(double)(1 - fx_unit(b))));",
    "}",
    "static inline int64_t fx_randint64(int64_t seed, int64_t offset, int64_t low, int64_t high) {",
    "    uint32_t b, a = fx_philox(seed, offset, &b);",
    "    uint64_t range = (uint64_t)high - (uint64_t)low;",
    "    return range ? low + (int64_t)((range > 0xffffffffu ? ((uint64_t)b << 32 | a) : a) % "
    "range) : low;",
    "}",
    "/* Turns a tile over: to[64 * i + j] = from[i + pitch * j], i < rows, j < columns. */",
    "static void fx_turn_part(float *to, const float *from, int64_t pitch, int64_t i0, int64_t i1, "
    "int64_t j0, int64_t j1) {",
    "    int64_t i, j;",
    "    for (i = i0; i < i1; i++) for (j = j0; j < j1; j++) to[64 * i + j] = from[i + pitch * j];",
    "}",
    "#if defined(__AVX512F__) && defined(__GNUC__) && !defined(__clang__) && !defined(__TINYC__)",
    "typedef float fx_v16 __attribute__((vector_size(64)));",
    "typedef int fx_i16 __attribute__((vector_size(64)));",
    "/* Sixteen rows of sixteen: rows i and i + h trade half their blocks of h, for h = 8, 4, 2, "
    "1. */",
    "#define FX_TRADE(h) for (i = 0; i < 16; i++) if (!(i & h)) { fx_v16 a = v[i], b = v[i + h]; "
    "\\",
    "    v[i] = __builtin_shuffle(a, b, (fx_i16){FX_S(h, 0), FX_S(h, 1), FX_S(h, 2), FX_S(h, 3), "
    "FX_S(h, 4), FX_S(h, 5), FX_S(h, 6), FX_S(h, 7), FX_S(h, 8), FX_S(h, 9), FX_S(h, 10), FX_S(h, "
    "11), FX_S(h, 12), FX_S(h, 13), FX_S(h, 14), FX_S(h, 15)}); \\",
    "    v[i + h] = __builtin_shuffle(a, b, (fx_i16){FX_U(h, 0), FX_U(h, 1), FX_U(h, 2), FX_U(h, "
    "3), FX_U(h, 4), FX_U(h, 5), FX_U(h, 6), FX_U(h, 7), FX_U(h, 8), FX_U(h, 9), FX_U(h, 10), "
    "FX_U(h, 11), FX_U(h, 12), FX_U(h, 13), FX_U(h, 14), FX_U(h, 15)}); }",
    "#define FX_S(h, k) ((k) & (h) ? 16 + (k) - (h) : (k))",
    "#define FX_U(h, k) ((k) & (h) ? 16 + (k) : (k) + (h))",
    "static inline void fx_turn_16(float *to, const float *from, int64_t pitch) {",
    "    fx_v16 v[16]; int i;",
    "    _Pragma(\"GCC unroll 16\") for (i = 0; i < 16; i++) memcpy(&v[i], from + pitch * i, 64);",
    "    _Pragma(\"GCC unroll 16\") FX_TRADE(8)",
    "    _Pragma(\"GCC unroll 16\") FX_TRADE(4)",
    "    _Pragma(\"GCC unroll 16\") FX_TRADE(2)",
    "    _Pragma(\"GCC unroll 16\") FX_TRADE(1)",
    "    _Pragma(\"GCC unroll 16\") for (i = 0; i < 16; i++) memcpy(to + 64 * i, &v[i], 64);",
    "}",
    "static void fx_turn_f32(float *to, const float *from, int64_t pitch, int64_t rows, int64_t "
    "columns) {",
    "    int64_t i, j;",
    "    for (j = 0; j + 16 <= columns; j += 16) for (i = 0; i + 16 <= rows; i += 16) "
    "fx_turn_16(to + 64 * i + j, from + i + pitch * j, pitch);",
    "    fx_turn_part(to, from, pitch, 0, rows, columns & ~15L, columns);",
    "    fx_turn_part(to, from, pitch, rows & ~15L, rows, 0, columns & ~15L);",
    "}",
    "#else",
    "static void fx_turn_f32(float *to, const float *from, int64_t pitch, int64_t rows, int64_t "
    "columns) { fx_turn_part(to, from, pitch, 0, rows, 0, columns); }",
    "#endif",
    "/* Tensors of call(). */",
    "static FxTensor fx_tensor(void *data, void *base, int32_t dtype, int32_t ndim, const int64_t "
    "*size, const int64_t *stride) {",
    "    FxTensor t; int i;",
    "    t.data = data; t.base = base; t.dtype = dtype; t.ndim = ndim;",
    "    for (i = 0; i < ndim; i++) { t.size[i] = size[i]; t.stride[i] = stride[i]; }",
    "    return t;",
    "}",
    "static FxTensor fx_empty(FxRuntime *rt, int32_t dtype, int32_t bytes, int32_t ndim, const "
    "int64_t *size, const int64_t *stride) {",
    "    int64_t span = 1; int i; void *p;",
    "    for (i = 0; i < ndim; i++) span = size[i] == 0 || span == 0 ? 0 : span + (size[i] - 1) * "
    "stride[i];",
    "    p = rt->alloc(rt, span * bytes);",
    "    return fx_tensor(p, p, dtype, ndim, size, stride);",
    "}",
    "static FxTensor fx_view(const FxTensor *t, int32_t dtype, int32_t bytes, int32_t ndim, const "
    "int64_t *size, const int64_t *stride, int64_t offset) {",
    "    return fx_tensor((char *)t->data + offset * bytes, t->base, dtype, ndim, size, stride);",
    "}",
    "static FxTensor fx_number(FxRuntime *rt, int32_t dtype, int64_t v) {",
    "    int64_t *p = rt->alloc(rt, 8);",
    "    *p = v;",
    "    return fx_tensor(p, p, dtype, 0, 0, 0);",
    "}",
    "static void fx_free(FxRuntime *rt, FxTensor *t) { rt->free(rt, t->base); t->base = t->data = "
    "0; }",
    "static void fx_check(FxRuntime *rt, const FxTensor *t, const char *what, int32_t dtype, "
    "int32_t ndim, const int64_t *size, const int64_t *stride) {",
    "    int i, ok = t->ndim == ndim && t->dtype == dtype;",
    "    for (i = 0; ok && i < ndim; i++) ok = t->size[i] == size[i] && (size[i] < 2 || "
    "t->stride[i] == stride[i]);",
    "    if (!ok) rt->fail(rt, what);",
    "}",
    "static inline void fx_call(const char *name, FxRuntime *rt, FxTensor *const *out, int32_t "
    "n_out, const FxArg *args, int32_t n_args) {",
    "    rt->call(rt, name, out, n_out, args, n_args);",
    "}",
    "#define FX_DIMS(...) (const int64_t[]){__VA_ARGS__}",
    "#define FX_OUT(...) (FxTensor *const[]){__VA_ARGS__}, sizeof((FxTensor "
    "*const[]){__VA_ARGS__}) / sizeof(FxTensor *)",
    "#define FX_ARGS(...) (const FxArg[]){__VA_ARGS__}, sizeof((const FxArg[]){__VA_ARGS__}) / "
    "sizeof(FxArg)",
    "#define FX_KERNEL(name, call) rt->kernel(rt, name, 0); call; rt->kernel(rt, name, 1); if "
    "(fx_oob) { const char *what = fx_oob; fx_oob = 0; rt->fail(rt, what); }",
    NULL,
};

const char *const *abi_prelude(void) {
    return lines;
}
