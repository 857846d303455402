// blas.c: matrix products of any strides: operands are packed into panels and multiplied by a
// register-blocked loop for the machine's vectors (K. Goto, R. van de Geijn, "Anatomy of
// high-performance matrix multiplication", 2008). bf16 and f16 are summed as floats and rounded
// once; integers wrap.
#include "core/eager/blas.h"

#include <string.h>

#include "core/eager/loops.h"

const char *blas_name(void) {
    return blas_tiles()->name;
}

static const char *elem(DType d, const void *base, int64_t at) {
    return (const char *)base + at * dtype_info[d].bytes;
}

// What a product is computed in.
typedef struct Way {
    const Tiles *tiles;
    PackAFn *pack_a;
    PackBFn *pack_b;
    int per; // elements of the depth in a word
} Way;

static Way way_of(const Gemm *g) {
    const TileSet *t = blas_tiles();
    if (g->dtype == DT_f64)
        return (Way){&t->f64, blas_a_f64, blas_b_f64, 1};
    if (g->dtype == DT_bf16 && t->pairs.rows)
        return (Way){&t->pairs, blas_a_pairs, blas_b_pairs, 2};
    return (Way){&t->f32, blas_a_f32, blas_b_f32, 1};
}

typedef struct Job {
    const Gemm *g;
    Way way;
    int64_t high, row_blocks; // rows of a block of C, the last one is short; blocks
    bool direct;              // sums are kept in C itself
} Job;

// A part of C: rows and columns from (i, j) on.
typedef struct Part {
    int64_t i, m, j, n;
} Part;

// Panels of B for depths [k, k + depth): whole ones, then one as narrow as the right edge needs.
static void pack_b(const Job *job, const Part *p, int64_t k, int64_t depth, void *to, int *edge) {
    const Gemm *g = job->g;
    const Tiles *t = job->way.tiles;
    int64_t whole = p->n / t->cols * t->cols, words = (depth + job->way.per - 1) / job->way.per;
    int64_t at = (g->b_cols ? 0 : p->j * g->b_col) + (g->b_rows ? 0 : k * g->b_row);
    Side s = {.dtype = g->dtype,
              .from = elem(g->dtype, g->b, at),
              .n = whole,
              .depth = depth,
              .step = g->b_col,
              .k_step = g->b_row,
              .k_start = g->b_rows ? g->b_rows + k : NULL,
              .start = g->b_cols ? g->b_cols + p->j : NULL};
    int64_t word = g->dtype == DT_f64 ? 8 : 4;
    *edge = (int)((p->n - whole + t->step - 1) / t->step * t->step);
    job->way.pack_b(&s, t->cols, to);
    if (s.start)
        s.start += whole;
    else
        s.from = elem(g->dtype, s.from, whole * g->b_col);
    s.n = p->n - whole;
    if (s.n)
        job->way.pack_b(&s, *edge,
                        (char *)to + whole / t->cols * blas_panel(words, t->cols) * word);
}

static Panel pack_a(const Job *job, int64_t i, int64_t m, int64_t k, int64_t depth, void *to) {
    const Gemm *g = job->g;
    Side s = {.dtype = g->dtype,
              .from = elem(g->dtype, g->a, i * g->a_row + k * g->a_col),
              .n = m,
              .depth = depth,
              .step = g->a_row,
              .k_step = g->a_col};
    int64_t rows = job->way.tiles->rows, words = (depth + job->way.per - 1) / job->way.per;
    bool along = job->way.pack_a(&s, (int)rows, to);
    return (Panel){to, along ? words : 1, along ? 1 : rows};
}

// Packed blocks of A (m rows) and B (n columns), and where their product goes.
typedef struct Packed {
    Panel a;
    const void *b;
    int edge;      // columns of B's last panel
    int64_t words; // of the depth
    int64_t m, n, c_row;
    bool first; // of the depth: C is what beta scales
} Packed;

// A tile of C, before it is computed: rows of it are far apart in memory.
static void look_at(const char *c, int64_t rows, int64_t row_bytes, int64_t bytes) {
    for (int64_t i = 0; i < rows; i++)
        for (int64_t at = 0; at < bytes; at += 64)
            __builtin_prefetch(c + i * row_bytes + at, 1);
}

// C's tile (m, n) = beta C + alpha acc; acc has rows of `wide`.
#define ADDER(name, T)                                                                             \
    VECTORED static void name(int64_t m, int64_t n, T *c, int64_t c_row, T alpha, const T *acc,    \
                              int wide, T beta) {                                                  \
        for (int64_t i = 0; i < m; i++, c += c_row, acc += wide) {                                 \
            if (beta == 0)                                                                         \
                for (int64_t j = 0; j < n; j++)                                                    \
                    c[j] = 0 + alpha * acc[j];                                                     \
            else if (beta == 1)                                                                    \
                for (int64_t j = 0; j < n; j++)                                                    \
                    c[j] += alpha * acc[j];                                                        \
            else                                                                                   \
                for (int64_t j = 0; j < n; j++)                                                    \
                    c[j] = beta * c[j] + alpha * acc[j];                                           \
        }                                                                                          \
    }
ADDER(add_f, float)
ADDER(add_d, double)

#define MULTIPLY(name, T, ADD)                                                                     \
    static void name(const Job *job, const Packed *p, T *c) {                                      \
        const Tiles *t = job->way.tiles;                                                           \
        T alpha = (T)job->g->alpha, beta = p->first ? (T)job->g->beta : 1, acc[MAX_TILE];          \
        int64_t a_panel = blas_panel(p->words, t->rows), b_panel = blas_panel(p->words, t->cols);  \
        const T *b = p->b;                                                                         \
        for (int64_t j = 0; j < p->n; j += t->cols, b += b_panel) {                                \
            Panel a = p->a;                                                                        \
            int64_t n = p->n - j < t->cols ? p->n - j : t->cols;                                   \
            int wide = p->n - j < t->cols ? p->edge : t->cols;                                     \
            for (int64_t i = 0; i < p->m; i += t->rows, a.words = (const T *)a.words + a_panel) {  \
                int64_t m = p->m - i < t->rows ? p->m - i : t->rows;                               \
                T *to = c + i * p->c_row + j;                                                      \
                look_at((const char *)to, m, p->c_row *(int)sizeof *to, n *(int)sizeof *to);       \
                t->fn[wide / t->step - 1](p->words, &a, b, acc);                                   \
                ADD(m, n, to, p->c_row, alpha, acc, wide, beta);                                   \
            }                                                                                      \
        }                                                                                          \
    }
MULTIPLY(multiply_f, float, add_f)
MULTIPLY(multiply_d, double, add_d)

// Sums go to C, or to a block of floats that is rounded at the end.
#define BLOCK(name, T, MULTIPLIES, LOAD, STORE)                                                    \
    static void name(const Job *job, const Part *p) {                                              \
        static _Thread_local _Alignas(64) T a_words[A_WORDS], b_words[B_WORDS], block[MC * NC];    \
        const Gemm *g = job->g;                                                                    \
        char *c0 = (char *)(uintptr_t)elem(g->dtype, g->c, p->i * g->c_row + p->j * g->c_col);     \
        T *c = job->direct ? (T *)(void *)c0 : block;                                              \
        int64_t k = 0, deepest = KC * job->way.per, bytes = dtype_info[g->dtype].bytes;            \
        Packed q = {.b = b_words, .n = p->n, .c_row = job->direct ? g->c_row : NC, .first = true}; \
        for (int64_t i = 0; c == block && g->beta != 0 && i < p->m; i++)                           \
            LOAD(g->dtype, c0 + i * g->c_row * bytes, g->c_col, p->n, block + i * NC);             \
        do {                                                                                       \
            int64_t depth = g->k - k < deepest ? g->k - k : deepest;                               \
            q.words = (depth + job->way.per - 1) / job->way.per;                                   \
            pack_b(job, p, k, depth, b_words, &q.edge);                                            \
            for (int64_t i = 0; i < p->m; i += MC) {                                               \
                q.m = p->m - i < MC ? p->m - i : MC;                                               \
                q.a = pack_a(job, p->i + i, q.m, k, depth, a_words);                               \
                MULTIPLIES(job, &q, c + i * q.c_row);                                              \
            }                                                                                      \
            q.first = false;                                                                       \
            k += depth;                                                                            \
        } while (k < g->k);                                                                        \
        for (int64_t i = 0; c == block && i < p->m; i++)                                           \
            STORE(g->dtype, c0 + i * g->c_row * bytes, g->c_col, p->n, block + i * NC);            \
    }
BLOCK(block_f, float, multiply_f, load_f, store_f)
BLOCK(block_d, double, multiply_d, load_d, store_d)

static void blocks(void *ctx, int64_t begin, int64_t end) {
    const Job *job = ctx;
    const Gemm *g = job->g;
    for (int64_t b = begin; b < end; b++) {
        Part p = {.i = b % job->row_blocks * job->high, .j = b / job->row_blocks * NC};
        p.m = g->m - p.i < job->high ? g->m - p.i : job->high;
        p.n = g->n - p.j < NC ? g->n - p.j : NC;
        if (g->dtype == DT_f64)
            block_d(job, &p);
        else
            block_f(job, &p);
    }
}

// Integers: C a row at a time, B in the order of memory.
static void rows_int(void *ctx, int64_t begin, int64_t end) {
    enum { WIDE = 256 };
    const Gemm *g = ctx;
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
    vector_f(ctx, begin, end);
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

// One product, whose threads share C.
static void product(const Gemm *given, int threads) {
    Gemm g = *given;
    // C is written by rows: rather along its dense dimension.
    bool listed = g.b_rows || g.b_cols;
    if (!listed && ((g.c_col != 1 && g.c_row == 1) || (g.n == 1 && g.m > 1)))
        g = transposed(&g);
    int64_t work = g.k > 0 ? g.k : 1;
    if (is_int_like(g.dtype)) {
        parallel_for(threads, g.m, 65536 / (g.n * work + 1) + 1, rows_int, &g);
        return;
    }
    if (g.dtype == DT_f32 && g.m == 1 && !listed &&
        (g.b_col == 1 || (g.b_row == 1 && g.a_col == 1))) {
        parallel_for(threads, g.n, 65536 / work + 1, vector_range, &g);
        return;
    }
    Job job = {.g = &g, .way = way_of(&g), .high = g.m};
    job.direct = g.c_col == 1 && !dtype_is_low(g.dtype);
    int64_t column_blocks = (g.n + NC - 1) / NC, rows = job.way.tiles->rows;
    // Enough blocks for the threads, of one size, in whole tiles: each packs its part of B anew.
    int64_t wanted = threads > 1 && g.m * g.n * work > 200000 ? 2 * threads : 1;
    int64_t most = job.direct ? g.m : MC, cuts = (wanted + column_blocks - 1) / column_blocks;
    int64_t least = (g.m + most - 1) / most, possible = (g.m + 4 * rows - 1) / (4 * rows);
    cuts = cuts < possible ? cuts : possible;
    cuts = cuts > least ? cuts : least;
    job.high = ((g.m + cuts - 1) / cuts + rows - 1) / rows * rows;
    job.row_blocks = (g.m + job.high - 1) / job.high;
    parallel_for(wanted > 1 ? threads : 1, job.row_blocks * column_blocks, 1, blocks, &job);
}

typedef struct Batch {
    const Gemm *g;
    int threads; // of each product
} Batch;

static void products(void *ctx, int64_t begin, int64_t end) {
    const Batch *b = ctx;
    for (int64_t i = begin; i < end; i++) {
        Gemm g = *b->g;
        g.a = elem(g.dtype, g.a, i * g.a_next);
        g.b = elem(g.dtype, g.b, i * g.b_next);
        g.c = (char *)(uintptr_t)elem(g.dtype, g.c, i * g.c_next);
        product(&g, b->threads);
    }
}

void blas_gemm(const Gemm *g, int threads) {
    if (g->m <= 0 || g->n <= 0)
        return;
    // Where there are products enough, each thread has its own.
    bool spread = g->batches >= 2 * threads;
    int64_t work = g->m * g->n * (g->k > 0 ? g->k : 1);
    Batch b = {g, spread ? 1 : threads};
    parallel_for(spread ? threads : 1, g->batches ? g->batches : 1, 200000 / work + 1, products,
                 &b);
}
