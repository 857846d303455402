// loops.h: inside of core/eager: the elementwise loops of loops.def, one set a compute type.
#ifndef CORE_EAGER_LOOPS_H
#define CORE_EAGER_LOOPS_H

#include "core/eager/kernel.h"

enum { POINT_PARAMS = 6 };

typedef struct Param {
    double f[POINT_PARAMS];  // parameters in order
    int64_t i[POINT_PARAMS]; // the same as integers
    DType common;            // dtype that the op is computed in
    int bits;                // of it
} Param;

// out[i] = f(in[0][i], in[1][i], in[2][i]); out may be one of the inputs.
typedef void LoopFn(int64_t n, void *out, const void *const *in, const Param *p);

typedef enum LoopId {
#define LOOP(name, ...) LOOP_##name,
#define CMP(name, ...)  LOOP_##name,
#include "core/eager/loops.def"
#undef LOOP
#undef CMP
    LOOP_count
} LoopId;

extern LoopFn *const loops_f32[LOOP_count];
extern LoopFn *const loops_f64[LOOP_count];
extern LoopFn *const loops_i64[LOOP_count]; // NULL: not defined on integers
extern LoopFn *const loops_i32[LOOP_count];
extern LoopFn *const loops_u8[LOOP_count]; // of truth values

// The same source for several instruction sets, chosen when the program starts.
#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__) && !defined(__clang__)
#define VECTORED __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define VECTORED
#endif

// libmvec's forms of these are used inside loops (glibc 2.22 and newer on x86).
#if defined(__x86_64__) && defined(__GLIBC__) && !defined(__clang__)
#define SIMD_MATH __attribute__((simd("notinbranch"), nothrow, leaf, const))
SIMD_MATH double exp(double);
SIMD_MATH double log(double);
SIMD_MATH double sin(double);
SIMD_MATH double cos(double);
SIMD_MATH double pow(double, double);
#if __GLIBC_PREREQ(2, 35)
SIMD_MATH double exp2(double);
SIMD_MATH double expm1(double);
SIMD_MATH double log2(double);
SIMD_MATH double log10(double);
SIMD_MATH double log1p(double);
SIMD_MATH double tan(double);
SIMD_MATH double asin(double);
SIMD_MATH double acos(double);
SIMD_MATH double atan(double);
SIMD_MATH double atan2(double, double);
SIMD_MATH double sinh(double);
SIMD_MATH double cosh(double);
SIMD_MATH double tanh(double);
SIMD_MATH double asinh(double);
SIMD_MATH double acosh(double);
SIMD_MATH double atanh(double);
SIMD_MATH double erf(double);
SIMD_MATH double erfc(double);
SIMD_MATH double cbrt(double);
SIMD_MATH double hypot(double, double);
#endif
#endif

// special.c: functions that the C library lacks, in double.
double special_lgamma(double x);
double special_digamma(double x);
double special_erfinv(double y);
double special_erfcx(double x);
double special_ndtri(double p);
double special_ndtr(double x);
double special_log_ndtr(double x);
double special_polygamma(double n, double x);
double special_polygamma_f32(double n, double x); // as PyTorch computes it in float
double special_polygamma_factor(double n); // what zeta is multiplied by
double special_mvlgamma(double x, double p);
double special_zeta(double x, double q);
double special_igamma(double a, double x);
double special_igammac(double a, double x);
double special_logaddexp(double a, double b);
double special_logaddexp2(double a, double b);
// bessel.c
double special_i0(double x);
double special_i0e(double x);
double special_i1(double x);
double special_i1e(double x);
double special_k0(double x);
double special_k0e(double x);
double special_k1(double x);
double special_k1e(double x);
double special_j0(double x);
double special_j1(double x);
double special_y0(double x);
double special_y1(double x);
double special_airy(double x);
double special_spherical_j0(double x);

// extreme.c: the largest of sign * x, times sign; *nans is set if there is one.
float row_peak(int64_t n, const float *x, float sign, int *nans);

#endif
