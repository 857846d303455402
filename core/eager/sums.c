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

INLINE __m256d step(__m256d by, __m256d acc, const float *x) {
    return _mm256_fmadd_pd(_mm256_cvtps_pd(_mm_loadu_ps(x)), by, acc);
}

// All lanes, halves onto each other.
INLINE double join(__m256d v) {
    __m256d two = _mm256_add_pd(v, _mm256_permute2f128_pd(v, v, 1));
    return two[0] + two[1];
}

// acc and n elements at x. As in fold.c: long rows go into 32 lanes, what is left into 8.
INLINE double sum_of(double acc, int64_t n, const float *x) {
    int64_t i = 0;
    __m256d by = _mm256_set1_pd(one), v[8] = {0};
    if (n >= 256) {
        for (; i + 32 <= n; i += 32)
            for (int j = 0; j < 8; j++)
                v[j] = step(by, v[j], x + i + 4L * j);
        __m256d even = _mm256_add_pd(_mm256_add_pd(v[0], v[4]), _mm256_add_pd(v[2], v[6]));
        __m256d odd = _mm256_add_pd(_mm256_add_pd(v[1], v[5]), _mm256_add_pd(v[3], v[7]));
        acc += join(_mm256_add_pd(even, odd));
    }
    if (n - i >= 8) {
        v[0] = v[1] = _mm256_setzero_pd();
        for (; i + 8 <= n; i += 8) {
            v[0] = step(by, v[0], x + i);
            v[1] = step(by, v[1], x + i + 4);
        }
        acc += join(_mm256_add_pd(v[0], v[1]));
    }
    for (; i < n; i++)
        acc += (double)x[i];
    return acc;
}

INLINE float join_product(__m256 v) {
    __m128 four = _mm_mul_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
    return (four[0] * four[2]) * (four[1] * four[3]);
}

// The same of products, in floats: folds.def's ROUND of a product of two is the float product.
INLINE float product_of(float acc, int64_t n, const float *x) {
    int64_t i = 0;
    __m256 ones = _mm256_set1_ps(1);
    if (n >= 256) {
        __m256 v[4] = {ones, ones, ones, ones};
        for (; i + 32 <= n; i += 32)
            for (int j = 0; j < 4; j++)
                v[j] = _mm256_mul_ps(v[j], _mm256_loadu_ps(x + i + 8L * j));
        acc *= join_product(_mm256_mul_ps(_mm256_mul_ps(v[0], v[2]), _mm256_mul_ps(v[1], v[3])));
    }
    if (n - i >= 8) {
        __m256 v = ones;
        for (; i + 8 <= n; i += 8)
            v = _mm256_mul_ps(v, _mm256_loadu_ps(x + i));
        acc *= join_product(v);
    }
    for (; i < n; i++)
        acc *= x[i];
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

INLINE double piece_of(bool product, double acc, int64_t n, const float *x) {
    return product ? (double)product_of((float)acc, n, x) : sum_of(acc, n, x);
}

INLINE void rows_of(const Rows *r, bool product) {
    _Alignas(32) float buf[PIECE];
    for (int64_t k = 0; k < r->rows; k++) {
        double acc = product;
        if (r->dtype == DT_f32) {
            r->out[k] = piece_of(product, acc, r->n, (const float *)r->x + k * r->step);
            continue;
        }
        const uint16_t *x = (const uint16_t *)r->x + k * r->step;
        for (int64_t at = 0; at < r->n; at += PIECE) {
            int64_t m = r->n - at < PIECE ? r->n - at : PIECE;
            widen(m, x + at, buf);
            acc = piece_of(product, acc, m, buf);
        }
        r->out[k] = acc;
    }
}

WIDE static void sums(const Rows *r) {
    rows_of(r, false);
}

WIDE static void products(const Rows *r) {
    rows_of(r, true);
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
