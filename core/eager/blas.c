// blas.c: matrix products of any strides: operands are packed into panels and multiplied by a
// register-blocked kernel for the machine's vectors (K. Goto, R. van de Geijn, "Anatomy of
// high-performance matrix multiplication", 2008). bf16 and f16 are packed as floats and rounded
// once; integers wrap.
#include "core/eager/kernel.h"

#include <string.h>

#include "core/eager/loops.h"

#if defined(__x86_64__)
#include <immintrin.h>
#define WITH_X86 1
#else
#define WITH_X86 0
#endif

enum {
    KC = 256, // depth of a panel
    MC = 264, // rows of a block of A: a multiple of every kernel's rows
    NC = 384, // columns of a block of B: a multiple of every kernel's columns
    MAX_TILE = 8 * 48
};

// acc (rows, cols, row-major) = A panel (kc, rows) times B panel (kc, cols).
typedef void FloatKernel(int64_t kc, const float *a, const float *b, float *acc);
typedef void DoubleKernel(int64_t kc, const double *a, const double *b, double *acc);

// Narrow panels at the right edge have kernels of their own: column k is for (k + 1) * step
// columns.
typedef struct Kernels {
    const char *name;
    int rows_f, cols_f, rows_d, cols_d;
    int step_f, step_d; // columns in steps of which there are kernels, up to cols
    FloatKernel *f[3];
    DoubleKernel *d[3];
} Kernels;

#define PLAIN_KERNEL(name, T)                                                                      \
    static void name(int64_t kc, const T *a, const T *b, T *acc) {                                 \
        T c[4][8] = {{0}};                                                                         \
        for (int64_t k = 0; k < kc; k++, a += 4, b += 8)                                           \
            for (int i = 0; i < 4; i++)                                                            \
                for (int j = 0; j < 8; j++)                                                        \
                    c[i][j] += a[i] * b[j];                                                        \
        memcpy(acc, c, sizeof c);                                                                  \
    }
PLAIN_KERNEL(plain_f, float)
PLAIN_KERNEL(plain_d, double)
static const Kernels plain = {"plain C", 4, 8, 4, 8, 8, 8, {plain_f}, {plain_d}};

#if WITH_X86
// ROWS rows by V vectors of W elements.
#define X86_KERNEL(name, isa, T, VEC, ROWS, V, W, ZERO, LOAD, SET, FMA, STORE)                     \
    __attribute__((target(isa))) static void name(int64_t kc, const T *a, const T *b, T *acc) {    \
        VEC c[ROWS][V];                                                                            \
        _Pragma("GCC unroll 8") for (int i = 0; i < ROWS; i++)                                     \
            _Pragma("GCC unroll 3") for (int j = 0; j < V; j++) c[i][j] = ZERO();                  \
        for (int64_t k = 0; k < kc; k++, a += ROWS, b += V * W) {                                  \
            VEC y[V];                                                                              \
            _Pragma("GCC unroll 3") for (int j = 0; j < V; j++) y[j] = LOAD(b + j * W);            \
            _Pragma("GCC unroll 8") for (int i = 0; i < ROWS; i++) {                               \
                VEC x = SET(a[i]);                                                                 \
                _Pragma("GCC unroll 3") for (int j = 0; j < V; j++) c[i][j] =                      \
                    FMA(x, y[j], c[i][j]);                                                         \
            }                                                                                      \
        }                                                                                          \
        _Pragma("GCC unroll 8") for (int i = 0; i < ROWS; i++)                                     \
            _Pragma("GCC unroll 3") for (int j = 0; j < V; j++)                                    \
                STORE(acc + (i * V + j) * W, c[i][j]);                                             \
    }
#define AVX512(V)                                                                                  \
    X86_KERNEL(avx512_f##V, "avx512f", float, __m512, 8, V, 16, _mm512_setzero_ps,                 \
               _mm512_loadu_ps, _mm512_set1_ps, _mm512_fmadd_ps, _mm512_storeu_ps)                 \
    X86_KERNEL(avx512_d##V, "avx512f", double, __m512d, 8, V, 8, _mm512_setzero_pd,                \
               _mm512_loadu_pd, _mm512_set1_pd, _mm512_fmadd_pd, _mm512_storeu_pd)
#define AVX2(V)                                                                                    \
    X86_KERNEL(avx2_f##V, "avx2,fma", float, __m256, 6, V, 8, _mm256_setzero_ps, _mm256_loadu_ps,  \
               _mm256_set1_ps, _mm256_fmadd_ps, _mm256_storeu_ps)                                  \
    X86_KERNEL(avx2_d##V, "avx2,fma", double, __m256d, 6, V, 4, _mm256_setzero_pd,                 \
               _mm256_loadu_pd, _mm256_set1_pd, _mm256_fmadd_pd, _mm256_storeu_pd)
AVX512(1)
AVX512(2)
AVX512(3)
AVX2(1)
AVX2(2)
static const Kernels avx512 = {"AVX-512, 8x48",
                               8,
                               48,
                               8,
                               24,
                               16,
                               8,
                               {avx512_f1, avx512_f2, avx512_f3},
                               {avx512_d1, avx512_d2, avx512_d3}};
static const Kernels avx2 = {"AVX2, 6x16",      6, 16, 6, 8, 8, 4, {avx2_f1, avx2_f2},
                             {avx2_d1, avx2_d2}};
#endif

static const Kernels *kernels(void) {
#if WITH_X86
    if (__builtin_cpu_supports("avx512f"))
        return &avx512;
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        return &avx2;
#endif
    return &plain;
}

const char *blas_name(void) {
    return kernels()->name;
}

static const char *elem(DType d, const void *base, int64_t at) {
    return (const char *)base + at * dtype_info[d].bytes;
}

typedef struct Job {
    const Gemm *g;
    const Kernels *k;
    int64_t row_blocks; // blocks of MC rows, the last one short
    int64_t mc;         // rows of a block
} Job;

// Panels of `wide` rows (columns of B): element (i, k) at i + k * wide, missing ones 0.
typedef struct Pack {
    int64_t n, kc;        // rows, depth
    int64_t step, k_step; // from one row to the next, along the depth
    int wide;
} Pack;

#define PACKER(name, T, LOAD)                                                                      \
    static void name(DType d, const void *src, const Pack *p, T *to) {                             \
        for (int64_t i = 0; i < p->n; i += p->wide, to += (int64_t)p->wide * p->kc) {              \
            int64_t m = p->n - i < p->wide ? p->n - i : p->wide;                                   \
            if (p->step == 1 || p->k_step != 1) {                                                  \
                for (int64_t k = 0; k < p->kc; k++) {                                              \
                    LOAD(d, elem(d, src, i * p->step + k * p->k_step), p->step, m,                 \
                         to + k * p->wide);                                                        \
                    for (int64_t j = m; j < p->wide; j++)                                          \
                        to[k * p->wide + j] = 0;                                                   \
                }                                                                                  \
                continue;                                                                          \
            }                                                                                      \
            T row[KC];                                                                             \
            for (int64_t j = 0; j < p->wide; j++) {                                                \
                if (j < m)                                                                         \
                    LOAD(d, elem(d, src, (i + j) * p->step), 1, p->kc, row);                       \
                for (int64_t k = 0; k < p->kc; k++)                                                \
                    to[k * p->wide + j] = j < m ? row[k] : 0;                                      \
            }                                                                                      \
        }                                                                                          \
    }
PACKER(pack_any_f, float, load_f)
PACKER(pack_any_d, double, load_d)

// The same of what is in memory as it is computed: rows next to each other are moved whole, rows
// that lie along the depth are turned in pieces that the cache holds.
#define PACK_DENSE(name, T, WIDE)                                                                  \
    VECTORED static void name(const T *src, const Pack *p, T *to) {                                \
        enum { PIECE = 16 };                                                                       \
        for (int64_t i = 0; i + WIDE <= p->n; i += WIDE, to += WIDE * p->kc) {                     \
            const T *from = src + i * p->step;                                                     \
            for (int64_t k = 0; p->step == 1 && k < p->kc; k++)                                    \
                for (int j = 0; j < WIDE; j++)                                                     \
                    to[k * WIDE + j] = from[k * p->k_step + j];                                    \
            for (int64_t k0 = 0; p->step != 1 && k0 < p->kc; k0 += PIECE) {                        \
                int64_t n = p->kc - k0 < PIECE ? p->kc - k0 : PIECE;                               \
                for (int j = 0; j < WIDE; j++)                                                     \
                    for (int64_t k = 0; k < n; k++)                                                \
                        to[(k0 + k) * WIDE + j] = from[j * p->step + k0 + k];                      \
            }                                                                                      \
        }                                                                                          \
    }
PACK_DENSE(dense_8_f, float, 8)
PACK_DENSE(dense_32_f, float, 32)
PACK_DENSE(dense_48_f, float, 48)
PACK_DENSE(dense_6_f, float, 6)
PACK_DENSE(dense_16_f, float, 16)
PACK_DENSE(dense_8_d, double, 8)
PACK_DENSE(dense_24_d, double, 24)

static bool dense_pack_f(const float *src, const Pack *p, float *to) {
    if (p->wide == 8)
        dense_8_f(src, p, to);
    else if (p->wide == 32)
        dense_32_f(src, p, to);
    else if (p->wide == 48)
        dense_48_f(src, p, to);
    else if (p->wide == 6)
        dense_6_f(src, p, to);
    else if (p->wide == 16)
        dense_16_f(src, p, to);
    else
        return false;
    return true;
}

static bool dense_pack_d(const double *src, const Pack *p, double *to) {
    if (p->wide == 8)
        dense_8_d(src, p, to);
    else if (p->wide == 24)
        dense_24_d(src, p, to);
    else
        return false;
    return true;
}

// Whole panels the quick way if there is one, the rest any way.
#define PACK(name, T, DTYPE, DENSE, ANY)                                                           \
    static void name(DType d, const void *src, const Pack *given, T *to) {                         \
        Pack p = *given;                                                                           \
        int64_t whole = p.wide ? p.n / p.wide * p.wide : 0;                                        \
        if (d == DTYPE && (p.step == 1 || p.k_step == 1) && DENSE(src, &p, to)) {                  \
            src = elem(d, src, whole * p.step);                                                    \
            to += whole * p.kc;                                                                    \
            p.n -= whole;                                                                          \
        }                                                                                          \
        ANY(d, src, &p, to);                                                                       \
    }
PACK(pack_f, float, DT_f32, dense_pack_f, pack_any_f)
PACK(pack_d, double, DT_f64, dense_pack_d, pack_any_d)

// B's part of `p->n` columns from column j on, depths from k on.
#define PACK_B(name, rows_name, T, PACKS)                                                          \
    VECTORED static void rows_name(const T *b, const int64_t *row, const Pack *p, T *to) {         \
        enum { PIECE = 8 }; /* every width is a multiple of it */                                  \
        for (int64_t i = 0; i < p->n; i += p->wide)                                                \
            for (int64_t k = 0; k < p->kc; k++, to += p->wide) {                                   \
                const T *from = b + row[k] + i;                                                    \
                int64_t m = p->n - i < p->wide ? p->n - i : p->wide, j = 0;                        \
                for (; j + PIECE <= m; j += PIECE)                                                 \
                    memcpy(to + j, from + j, PIECE * sizeof *to);                                  \
                for (; j < m; j++)                                                                 \
                    to[j] = from[j];                                                               \
                for (; j < p->wide; j++)                                                           \
                    to[j] = 0;                                                                     \
            }                                                                                      \
    }                                                                                              \
    static void name(const Gemm *g, int64_t k, int64_t j, const Pack *p, T *to) {                  \
        if (g->b_rows)                                                                             \
            rows_name((const T *)g->b + j, g->b_rows + k, p, to);                                  \
        else                                                                                       \
            PACKS(g->dtype, elem(g->dtype, g->b, j * g->b_col + k * g->b_row), p, to);             \
    }
PACK_B(pack_b_f, pack_rows_f, float, pack_f)
PACK_B(pack_b_d, pack_rows_d, double, pack_d)

#define ADDER(name, T)                                                                             \
    VECTORED static void name(int64_t n, T *c, T alpha, const T *acc) {                            \
        for (int64_t s = 0; s < n; s++)                                                            \
            c[s] += alpha * acc[s];                                                                \
    }
ADDER(add_f, float)
ADDER(add_d, double)

// C tile of (m, n) += alpha acc; c points to floats of a buffer or of the result.
#define BLOCK(name, T, ROWS, COLS, STEP, KERNEL, PACKS, PACK_B, ADD, LOAD, STORE)                  \
    static void name(const Job *job, int64_t i0, int64_t m, int64_t j0, int64_t n) {               \
        static _Thread_local _Alignas(64) T a_panel[MC * KC], b_panel[KC * NC], c_block[MC * NC];  \
        const Gemm *g = job->g;                                                                    \
        int rows = job->k->ROWS, cols = job->k->COLS;                                              \
        int64_t whole = n / cols * cols;                                                           \
        int edge = (int)((n - whole + job->k->STEP - 1) / job->k->STEP * job->k->STEP);            \
        T alpha = (T)g->alpha, beta = (T)g->beta, acc[MAX_TILE];                                   \
        for (int64_t i = 0; i < m; i++) {                                                          \
            if (g->beta != 0)                                                                      \
                LOAD(g->dtype, elem(g->dtype, g->c, (i0 + i) * g->c_row + j0 * g->c_col),          \
                     g->c_col, n, c_block + i * NC);                                               \
            for (int64_t j = 0; j < n; j++)                                                        \
                c_block[i * NC + j] = g->beta != 0 ? beta * c_block[i * NC + j] : 0;               \
        }                                                                                          \
        for (int64_t k0 = 0; k0 < g->k; k0 += KC) {                                                \
            int64_t kc = g->k - k0 < KC ? g->k - k0 : KC;                                          \
            PACKS(g->dtype, elem(g->dtype, g->a, i0 * g->a_row + k0 * g->a_col),                   \
                  &(Pack){m, kc, g->a_row, g->a_col, rows}, a_panel);                              \
            PACK_B(g, k0, j0, &(Pack){whole, kc, g->b_col, g->b_row, cols}, b_panel);              \
            PACK_B(g, k0, j0 + whole, &(Pack){n - whole, kc, g->b_col, g->b_row, edge},            \
                   b_panel + whole * kc);                                                          \
            for (int64_t j = 0; j < n; j += cols) {                                                \
                int wide = j < whole ? cols : edge;                                                \
                for (int64_t i = 0; i < m; i += rows) {                                            \
                    job->k->KERNEL[wide / job->k->STEP - 1](kc, a_panel + i * kc,                  \
                                                            b_panel + j * kc, acc);                \
                    int64_t mm = m - i < rows ? m - i : rows, nn = n - j < wide ? n - j : wide;    \
                    for (int64_t r = 0; r < mm; r++)                                               \
                        ADD(nn, c_block + (i + r) * NC + j, alpha, acc + r * wide);                \
                }                                                                                  \
            }                                                                                      \
        }                                                                                          \
        for (int64_t i = 0; i < m; i++)                                                            \
            STORE(g->dtype,                                                                        \
                  (char *)(uintptr_t)elem(g->dtype, g->c, (i0 + i) * g->c_row + j0 * g->c_col),    \
                  g->c_col, n, c_block + i * NC);                                                  \
    }
BLOCK(block_f, float, rows_f, cols_f, step_f, f, pack_f, pack_b_f, add_f, load_f, store_f)
BLOCK(block_d, double, rows_d, cols_d, step_d, d, pack_d, pack_b_d, add_d, load_d, store_d)

static void blocks(void *ctx, int64_t begin, int64_t end) {
    const Job *job = ctx;
    const Gemm *g = job->g;
    for (int64_t b = begin; b < end; b++) {
        int64_t i = b % job->row_blocks * job->mc, j = b / job->row_blocks * NC;
        int64_t m = g->m - i < job->mc ? g->m - i : job->mc, n = g->n - j < NC ? g->n - j : NC;
        if (g->dtype == DT_f64)
            block_d(job, i, m, j, n);
        else
            block_f(job, i, m, j, n);
    }
}

// Integers: C a row at a time, B in the order of memory.
static void rows_int(void *ctx, int64_t begin, int64_t end) {
    enum { WIDE = 256 };
    const Gemm *g = ((const Job *)ctx)->g;
    int64_t c[WIDE], b[WIDE] = {0};
    for (int64_t i = begin; i < end; i++)
        for (int64_t j = 0; j < g->n; j += WIDE) {
            int64_t n = g->n - j < WIDE ? g->n - j : WIDE;
            char *to = (char *)(uintptr_t)elem(g->dtype, g->c, i * g->c_row + j * g->c_col);
            memset(c, 0, sizeof c);
            for (int64_t k = 0; k < g->k; k++) {
                int64_t a = 0;
                load_i(g->dtype, elem(g->dtype, g->a, i * g->a_row + k * g->a_col), 1, 1, &a);
                load_i(g->dtype, elem(g->dtype, g->b, k * g->b_row + j * g->b_col), g->b_col, n, b);
                for (int64_t s = 0; s < n; s++)
                    c[s] = (int64_t)((uint64_t)c[s] + (uint64_t)a * (uint64_t)b[s]);
            }
            if (g->beta != 0)
                load_i(g->dtype, to, g->c_col, n, b);
            for (int64_t s = 0; s < n; s++)
                c[s] = (int64_t)((uint64_t)c[s] * (uint64_t)(int64_t)g->alpha +
                                 (g->beta != 0 ? (uint64_t)b[s] * (uint64_t)(int64_t)g->beta : 0));
            store_i(g->dtype, to, g->c_col, n, c);
        }
}

// A vector times a matrix whose columns (b_row == 1) or rows (b_col == 1) are dense.
VECTORED static void vector_f(const Gemm *g, int64_t j0, int64_t j1) {
    const float *a = g->a, *b = g->b;
    float *c = g->c;
    float alpha = (float)g->alpha, beta = (float)g->beta;
    if (g->b_row == 1 && g->a_col == 1) {
        for (int64_t j = j0; j < j1; j++) {
            const float *y = b + j * g->b_col;
            float lane[16] = {0}, sum = 0;
            int64_t k = 0;
            for (; k + 16 <= g->k; k += 16)
                for (int l = 0; l < 16; l++)
                    lane[l] += a[k + l] * y[k + l];
            for (int l = 0; l < 16; l++)
                sum += lane[l];
            for (; k < g->k; k++)
                sum += a[k] * y[k];
            float *to = c + j * g->c_col;
            *to = alpha * sum + (g->beta != 0 ? beta * *to : 0);
        }
        return;
    }
    enum { WIDE = 512 };
    for (int64_t j = j0; j < j1; j += WIDE) {
        int64_t n = j1 - j < WIDE ? j1 - j : WIDE;
        float acc[WIDE] = {0};
        for (int64_t k = 0; k < g->k; k++) {
            float x = a[k * g->a_col];
            const float *y = b + k * g->b_row + j;
            for (int64_t s = 0; s < n; s++)
                acc[s] += x * y[s];
        }
        for (int64_t s = 0; s < n; s++) {
            float *to = c + (j + s) * g->c_col;
            *to = alpha * acc[s] + (g->beta != 0 ? beta * *to : 0);
        }
    }
}

static void vector_range(void *ctx, int64_t begin, int64_t end) {
    vector_f(((const Job *)ctx)->g, begin, end);
}

static Gemm transposed(const Gemm *g) {
    Gemm t = *g;
    t.m = g->n;
    t.n = g->m;
    t.a = g->b;
    t.b = g->a;
    t.a_row = g->b_col;
    t.a_col = g->b_row;
    t.b_row = g->a_col;
    t.b_col = g->a_row;
    t.c_row = g->c_col;
    t.c_col = g->c_row;
    return t;
}

void blas_gemm(const Gemm *given, int threads) {
    Gemm g = *given;
    if (g.m <= 0 || g.n <= 0)
        return;
    // C is written by rows: rather along its dense dimension.
    if (!g.b_rows && ((g.c_col != 1 && g.c_row == 1) || (g.n == 1 && g.m > 1)))
        g = transposed(&g);
    Job job = {.g = &g, .k = kernels()};
    int64_t work = g.k > 0 ? g.k : 1;
    if (is_int_like(g.dtype)) {
        parallel_for(threads, g.m, 65536 / (g.n * work + 1) + 1, rows_int, &job);
        return;
    }
    if (g.dtype == DT_f32 && g.m == 1 && !g.b_rows &&
        (g.b_col == 1 || (g.b_row == 1 && g.a_col == 1))) {
        parallel_for(threads, g.n, 65536 / work + 1, vector_range, &job);
        return;
    }
    int64_t column_blocks = (g.n + NC - 1) / NC;
    int rows = g.dtype == DT_f64 ? job.k->rows_d : job.k->rows_f;
    int64_t high = (g.m + MC - 1) / MC;
    job.mc = ((g.m + high - 1) / high + rows - 1) / rows * rows; // blocks of one size
    // Enough blocks for the threads, in whole kernel tiles.
    int64_t wanted = threads > 1 && g.m * g.n * work > 200000 ? 2 * threads : 1;
    while (job.mc > 4 * rows && column_blocks * ((g.m + job.mc - 1) / job.mc) < wanted)
        job.mc = (job.mc / 2 + rows - 1) / rows * rows;
    job.row_blocks = (g.m + job.mc - 1) / job.mc;
    parallel_for(wanted > 1 ? threads : 1, job.row_blocks * column_blocks, 1, blocks, &job);
}
