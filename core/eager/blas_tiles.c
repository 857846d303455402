// blas_tiles.c: the innermost loops of products, blocked for a machine's registers and vectors.
#include <string.h>

#include "core/eager/blas.h"

#if defined(__x86_64__)
#include <immintrin.h>
#define WITH_X86 1
#else
#define WITH_X86 0
#endif

#define PLAIN(name, T)                                                                             \
    static void name(int64_t depth, const Panel *p, const void *panel, void *acc) {                \
        const T *a = p->words, *b = panel;                                                         \
        T c[4][8] = {{0}};                                                                         \
        for (int64_t k = 0; k < depth; k++, a += p->col, b += 8)                                   \
            for (int i = 0; i < 4; i++)                                                            \
                for (int j = 0; j < 8; j++)                                                        \
                    c[i][j] += a[i * p->row] * b[j];                                               \
        memcpy(acc, c, sizeof c);                                                                  \
    }
PLAIN(plain_f, float)
PLAIN(plain_d, double)
static const TileSet plain = {"plain C", {4, 8, 8, {plain_f}}, {4, 8, 8, {plain_d}}, {0}};

#if WITH_X86
// ROWS rows by V vectors of W words.
#define X86_TILE(name, isa, T, ACC, VEC, ROWS, V, W, ZERO, LOAD, SET, FMA, STORE)                  \
    __attribute__((target(isa))) static void name(int64_t depth, const Panel *p,                   \
                                                  const void *panel, void *acc) {                  \
        const T *a = p->words, *b = panel;                                                         \
        const int64_t row = p->row, col = p->col;                                                  \
        VEC c[ROWS][V];                                                                            \
        _Pragma("GCC unroll 8") for (int i = 0; i < ROWS; i++)                                     \
            _Pragma("GCC unroll 3") for (int j = 0; j < V; j++) c[i][j] = ZERO();                  \
        for (int64_t k = 0; k < depth; k++, a += col, b += V * W) {                                \
            VEC y[V];                                                                              \
            _Pragma("GCC unroll 3") for (int j = 0; j < V; j++) y[j] = LOAD(b + j * W);            \
            _Pragma("GCC unroll 8") for (int i = 0; i < ROWS; i++) {                               \
                VEC x = SET(a[i * row]);                                                           \
                _Pragma("GCC unroll 3") for (int j = 0; j < V; j++) c[i][j] =                      \
                    FMA(x, y[j], c[i][j]);                                                         \
            }                                                                                      \
        }                                                                                          \
        ACC *to = acc;                                                                             \
        _Pragma("GCC unroll 8") for (int i = 0; i < ROWS; i++)                                     \
            _Pragma("GCC unroll 3") for (int j = 0; j < V; j++)                                    \
                STORE(to + (i * V + j) * W, c[i][j]);                                              \
    }
#define AVX512(V)                                                                                  \
    X86_TILE(avx512_f##V, "avx512f", float, float, __m512, 8, V, 16, _mm512_setzero_ps,            \
             _mm512_loadu_ps, _mm512_set1_ps, _mm512_fmadd_ps, _mm512_storeu_ps)                   \
    X86_TILE(avx512_d##V, "avx512f", double, double, __m512d, 8, V, 8, _mm512_setzero_pd,          \
             _mm512_loadu_pd, _mm512_set1_pd, _mm512_fmadd_pd, _mm512_storeu_pd)
#define AVX2(V)                                                                                    \
    X86_TILE(avx2_f##V, "avx2,fma", float, float, __m256, 6, V, 8, _mm256_setzero_ps,              \
             _mm256_loadu_ps, _mm256_set1_ps, _mm256_fmadd_ps, _mm256_storeu_ps)                   \
    X86_TILE(avx2_d##V, "avx2,fma", double, double, __m256d, 6, V, 4, _mm256_setzero_pd,           \
             _mm256_loadu_pd, _mm256_set1_pd, _mm256_fmadd_pd, _mm256_storeu_pd)
// Both products of a pair are added to a float, as PyTorch's library has it on such a machine.
#define LOAD_PAIRS(p)      _mm512_castsi512_ps(_mm512_loadu_si512(p))
#define SET_PAIR(w)        _mm512_castsi512_ps(_mm512_set1_epi32((int)(w)))
#define FMA_PAIRS(x, y, c) _mm512_dpbf16_ps(c, (__m512bh)(x), (__m512bh)(y))
#define BF16(V)                                                                                    \
    X86_TILE(avx512_p##V, "avx512f,avx512bf16", uint32_t, float, __m512, 8, V, 16,                 \
             _mm512_setzero_ps, LOAD_PAIRS, SET_PAIR, FMA_PAIRS, _mm512_storeu_ps)
AVX512(1)
AVX512(2)
AVX512(3)
AVX2(1)
AVX2(2)
BF16(1)
BF16(2)
BF16(3)
#define AVX512_FLOATS                                                                              \
    .f32 = {8, 48, 16, {avx512_f1, avx512_f2, avx512_f3}},                                         \
    .f64 = {8, 24, 8, {avx512_d1, avx512_d2, avx512_d3}}
static const TileSet bf16 = {"AVX-512 with bf16, 8x48", AVX512_FLOATS,
                             .pairs = {8, 48, 16, {avx512_p1, avx512_p2, avx512_p3}}};
static const TileSet avx512 = {"AVX-512, 8x48", AVX512_FLOATS};
static const TileSet avx2 = {
    "AVX2, 6x16", {6, 16, 8, {avx2_f1, avx2_f2}}, {6, 8, 4, {avx2_d1, avx2_d2}}, {0}};
#endif

const TileSet *blas_tiles(void) {
#if WITH_X86
    if (__builtin_cpu_supports("avx512bf16"))
        return &bf16;
    if (__builtin_cpu_supports("avx512f"))
        return &avx512;
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        return &avx2;
#endif
    return &plain;
}
