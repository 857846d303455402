// blas_pack.c: the operands of a product as its loops read them. Lines that lie along the depth are
// kept as they are in A, which is read a word at a time, and turned in B, which is read by vectors.
#include <string.h>

#include "core/eager/blas.h"
#include "core/eager/loops.h"

static const void *elem(const Side *s, int64_t i, int64_t k) {
    int64_t at =
        (s->start ? s->start[i] : i * s->step) + (s->k_start ? s->k_start[k] : k * s->k_step);
    return (const char *)s->from + at * dtype_info[s->dtype].bytes;
}

// Words of the depth k: in memory, or brought to buf (n).
#define LINE(name, T, DTYPE, LOAD)                                                                 \
    static const T *name(const Side *s, int64_t k, T *buf) {                                       \
        if (s->dtype == DTYPE && s->step == 1)                                                     \
            return elem(s, 0, k);                                                                  \
        LOAD(s->dtype, elem(s, 0, k), s->step, s->n, buf);                                         \
        return buf;                                                                                \
    }
// Words of row i from depth k on, `depth` of them, which lie next to each other.
#define ROW(name, T, DTYPE, LOAD)                                                                  \
    static const T *name(const Side *s, int64_t i, T *buf) {                                       \
        if (s->dtype == DTYPE)                                                                     \
            return elem(s, i, 0);                                                                  \
        LOAD(s->dtype, elem(s, i, 0), 1, s->depth, buf);                                           \
        return buf;                                                                                \
    }
LINE(line_f32, float, DT_f32, load_f)
LINE(line_f64, double, DT_f64, load_d)
ROW(row_f32, float, DT_f32, load_f)
ROW(row_f64, double, DT_f64, load_d)

// Of pairs the first is the lower half.
VECTORED static void join_lines(const uint16_t *low, const uint16_t *high, int64_t step, int64_t n,
                                uint32_t *to) {
    if (step == 1)
        for (int64_t i = 0; i < n; i++)
            to[i] = low[i] | (uint32_t)high[i] << 16;
    else
        for (int64_t i = 0; i < n; i++)
            to[i] = low[i * step] | (uint32_t)high[i * step] << 16;
}

static const uint32_t *line_pairs(const Side *s, int64_t k, uint32_t *buf) {
    bool alone = 2 * k + 1 == s->depth;
    join_lines(elem(s, 0, 2 * k), elem(s, 0, 2 * k + !alone), s->step, s->n, buf);
    for (int64_t i = 0; alone && i < s->n; i++)
        buf[i] &= 0xffff;
    return buf;
}

static const uint32_t *row_pairs(const Side *s, int64_t i, uint32_t *buf) {
    if (s->depth % 2)
        buf[s->depth / 2] = 0;
    memcpy(buf, elem(s, i, 0), (size_t)s->depth * sizeof(uint16_t));
    return buf;
}

// n words of a line to their places in panels.
#define DEAL(name, T)                                                                              \
    VECTORED static void name(const T *line, int64_t n, int wide, int64_t panel, T *to) {          \
        enum { PIECE = 8 };                                                                        \
        int64_t i = 0;                                                                             \
        for (; i + wide <= n; i += wide, to += panel) {                                            \
            int64_t j = 0;                                                                         \
            for (; j + PIECE <= wide; j += PIECE)                                                  \
                memcpy(to + j, line + i + j, PIECE * sizeof *to);                                  \
            for (; j < wide; j++)                                                                  \
                to[j] = line[i + j];                                                               \
        }                                                                                          \
        if (i < n)                                                                                 \
            for (int64_t j = 0; j < wide; j++)                                                     \
                to[j] = i + j < n ? line[i + j] : 0;                                               \
    }
DEAL(deal_f32, float)
DEAL(deal_f64, double)
DEAL(deal_pairs, uint32_t)

// to[k * wide + i] = row[i][k]: by halves of ever closer vectors laid between each other.
typedef uint32_t Eight __attribute__((vector_size(32)));

VECTORED static void turn_4(const void *const *row, int64_t n, int wide, void *out) {
    int64_t k = 0;
    uint32_t *to = out;
    for (; k + 8 <= n; k += 8) {
        Eight v[8], w[8];
        for (int i = 0; i < 8; i++)
            memcpy(&v[i], (const uint32_t *)row[i] + k, sizeof v[i]);
        for (int round = 0; round < 3; round++) {
            for (int i = 0; i < 4; i++) {
                w[2 * i] = __builtin_shufflevector(v[i], v[i + 4], 0, 8, 1, 9, 2, 10, 3, 11);
                w[2 * i + 1] = __builtin_shufflevector(v[i], v[i + 4], 4, 12, 5, 13, 6, 14, 7, 15);
            }
            memcpy(v, w, sizeof v);
        }
        for (int i = 0; i < 8; i++)
            memcpy(to + (k + i) * wide, &v[i], sizeof v[i]);
    }
    for (; k < n; k++)
        for (int i = 0; i < 8; i++)
            to[k * wide + i] = ((const uint32_t *)row[i])[k];
}

VECTORED static void turn_8(const void *const *row, int64_t n, int wide, void *out) {
    uint64_t *to = out;
    for (int64_t k = 0; k < n; k++)
        for (int i = 0; i < 8; i++)
            to[k * wide + i] = ((const uint64_t *)row[i])[k];
}

// PER: elements of a word. Lines are dealt out; where rows are in one piece, B's are turned eight
// at a time, and A's stay.
#define PACKERS(name, T, PER, TURN)                                                                \
    static void lines_##name(const Side *s, int wide, T *to) {                                     \
        T buf[NC];                                                                                 \
        int64_t words = (s->depth + PER - 1) / PER;                                                \
        for (int64_t k = 0; k < words; k++)                                                        \
            deal_##name(line_##name(s, k, buf), s->n, wide, blas_panel(words, wide),               \
                        to + k * wide);                                                            \
    }                                                                                              \
    bool blas_a_##name(const Side *s, int rows, void *to) {                                        \
        T *out = to;                                                                               \
        int64_t words = (s->depth + PER - 1) / PER, i = 0;                                         \
        if (s->k_step != 1) {                                                                      \
            lines_##name(s, rows, to);                                                             \
            return false;                                                                          \
        }                                                                                          \
        for (; i < s->n; i++, out += words) {                                                      \
            out += i && i % rows == 0 ? GAP : 0;                                                   \
            const T *row = row_##name(s, i, out);                                                  \
            if (row != out)                                                                        \
                memcpy(out, row, (size_t)words * sizeof *out);                                     \
        }                                                                                          \
        memset(out, 0, (size_t)((rows - i % rows) % rows * words) * sizeof *out);                  \
        return true;                                                                               \
    }                                                                                              \
    void blas_b_##name(const Side *s, int cols, void *to) {                                        \
        enum { ROWS = 8 };                                                                         \
        static const T zero[KC] = {0};                                                             \
        T buf[ROWS][KC], *out = to;                                                                \
        int64_t words = (s->depth + PER - 1) / PER;                                                \
        if (!s->start && (s->k_start || s->k_step != 1 || s->step == 1)) {                         \
            lines_##name(s, cols, to);                                                             \
            return;                                                                                \
        }                                                                                          \
        for (int64_t i = 0; i < s->n; i += cols, out += blas_panel(words, cols))                   \
            for (int64_t j = 0; j < cols; j += ROWS) {                                             \
                const void *row[ROWS];                                                             \
                for (int64_t r = 0; r < ROWS; r++)                                                 \
                    row[r] = i + j + r < s->n ? row_##name(s, i + j + r, buf[r]) : zero;           \
                if (cols - j >= ROWS)                                                              \
                    TURN(row, words, cols, out + j);                                               \
                for (int64_t k = 0; cols - j < ROWS && k < words; k++)                             \
                    for (int64_t r = 0; r < cols - j; r++)                                         \
                        out[k * cols + j + r] = ((const T *)row[r])[k];                            \
            }                                                                                      \
    }
PACKERS(f32, float, 1, turn_4)
PACKERS(f64, double, 1, turn_8)
PACKERS(pairs, uint32_t, 2, turn_4)
