// sums.c: sums (and products) of rows of floats, the most frequent reduction, in the order of
// fold.c's rows to the last bit. A processor's units for widening, adding and multiplying work side
// by side here: to add is to multiply by one and add, and half as wide vectors leave widening no
// second step.
#include "core/eager/fold.h"

#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__)
#include <immintrin.h>

#define WIDE   __attribute__((target("avx2,fma")))
#define INLINE __attribute__((target("avx2,fma"), always_inline)) static inline

enum { PIECE = 512 }; // elements of a row that is widened first: fold.c's BLOCK

// Not known to the compiler, which would make an addition of it.
static const volatile double one = 1;

typedef struct Way {
    bool product;
    __m256d by; // ones
} Way;

// A product has the range of floats, folds.def's ROUND.
INLINE __m256d product_of(__m256d a, __m256d b) {
    return _mm256_cvtps_pd(_mm256_cvtpd_ps(_mm256_mul_pd(a, b)));
}

INLINE __m256d step(Way w, __m256d acc, const float *x) {
    __m256d v = _mm256_cvtps_pd(_mm_loadu_ps(x));
    return w.product ? product_of(acc, v) : _mm256_fmadd_pd(v, w.by, acc);
}

INLINE __m256d both(Way w, __m256d a, __m256d b) {
    return w.product ? product_of(a, b) : _mm256_add_pd(a, b);
}

INLINE double one_more(Way w, double a, double b) {
    return w.product ? (double)(float)(a * b) : a + b;
}

// All lanes, halves onto each other.
INLINE double join(Way w, __m256d v) {
    __m256d two = both(w, v, _mm256_permute2f128_pd(v, v, 1));
    return one_more(w, two[0], two[1]);
}

// acc and n elements at x. As in fold.c: long rows go into 32 lanes, what is left into 8.
INLINE double fold_of(Way w, double acc, int64_t n, const float *x) {
    int64_t i = 0;
    __m256d start = _mm256_set1_pd(w.product ? 1 : 0);
    if (n >= 256) {
        __m256d v[8];
        for (int j = 0; j < 8; j++)
            v[j] = start;
        for (; i + 32 <= n; i += 32)
            for (int j = 0; j < 8; j++)
                v[j] = step(w, v[j], x + i + 4L * j);
        __m256d even = both(w, both(w, v[0], v[4]), both(w, v[2], v[6]));
        __m256d odd = both(w, both(w, v[1], v[5]), both(w, v[3], v[7]));
        acc = one_more(w, acc, join(w, both(w, even, odd)));
    }
    if (n - i >= 8) {
        __m256d v[2] = {start, start};
        for (; i + 8 <= n; i += 8) {
            v[0] = step(w, v[0], x + i);
            v[1] = step(w, v[1], x + i + 4);
        }
        acc = one_more(w, acc, join(w, both(w, v[0], v[1])));
    }
    for (; i < n; i++)
        acc = one_more(w, acc, (double)x[i]);
    return acc;
}

INLINE void widen_eight(const uint16_t *x, float *out) {
    __m128i half = _mm_loadu_si128((const __m128i *)(const void *)x);
    __m256i bits = _mm256_slli_epi32(_mm256_cvtepu16_epi32(half), 16);
    _mm256_store_si256((__m256i *)(void *)out, bits);
}

INLINE void widen(int64_t n, const uint16_t *x, float *out) {
    int64_t i = 0;
    for (; i + 32 <= n; i += 32)
        for (int j = 0; j < 32; j += 8)
            widen_eight(x + i + j, out + i + j);
    for (; i + 8 <= n; i += 8)
        widen_eight(x + i, out + i);
    for (; i < n; i++)
        out[i] = bf16_to_f32(x[i]);
}

typedef struct Rows {
    DType dtype; // f32 or bf16
    int64_t rows, n, step;
    const void *x;
    double *out; // (rows)
} Rows;

INLINE void rows_of(const Rows *r, Way w) {
    _Alignas(32) float buf[PIECE];
    for (int64_t k = 0; k < r->rows; k++) {
        double acc = w.product ? 1 : 0;
        if (r->dtype == DT_f32) {
            r->out[k] = fold_of(w, acc, r->n, (const float *)r->x + k * r->step);
            continue;
        }
        const uint16_t *x = (const uint16_t *)r->x + k * r->step;
        for (int64_t at = 0; at < r->n; at += PIECE) {
            int64_t m = r->n - at < PIECE ? r->n - at : PIECE;
            widen(m, x + at, buf);
            acc = fold_of(w, acc, m, buf);
        }
        r->out[k] = acc;
    }
}

WIDE static void sums(const Rows *r) {
    rows_of(r, (Way){.by = _mm256_set1_pd(one)});
}

WIDE static void products(const Rows *r) {
    rows_of(r, (Way){.product = true});
}

bool fold_sums(FoldId id, DType d, int64_t rows, int64_t n, const void *x, int64_t step,
               double *out) {
    Rows r = {d, rows, n, step, x, out};
    if ((d != DT_f32 && d != DT_bf16) || !__builtin_cpu_supports("avx2") ||
        !__builtin_cpu_supports("fma"))
        return false;
    if (id == FOLD_sum)
        sums(&r);
    else
        products(&r);
    return true;
}

#else

bool fold_sums(FoldId id, DType d, int64_t rows, int64_t n, const void *x, int64_t step,
               double *out) {
    (void)id, (void)d, (void)rows, (void)n, (void)x, (void)step, (void)out;
    return false;
}

#endif
