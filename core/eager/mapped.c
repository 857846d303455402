// mapped.c: copies whose source is found dimension by dimension: element (i, j, …) comes from
// at[0][i] + at[1][j] + …. flip, roll, repeat, mirrored padding, nearest resampling and selection
// by an index are such. Runs of neighbours along the last dimension are moved as one.
#include "core/eager/iterate.h"

#include <string.h>

#include "core/eager/loops.h"

typedef struct Piece {
    int64_t to, from, n; // elements of the result's row, of the source's, how many
} Piece;

typedef struct Mapped {
    const Tensor *out, *in;
    const int64_t *const *at; // by dimension of out
    int bytes;
    const Piece *pieces; // of a row, if there are few
    int n_pieces;
} Mapped;

// n elements from places that a table names.
#define PICK(T)                                                                                    \
    {                                                                                              \
        T *dst = (T *)(void *)to;                                                                  \
        const T *src = (const T *)(const void *)from;                                              \
        for (int64_t j = 0; j < n; j++)                                                            \
            dst[j * stride] = src[at[j]];                                                          \
        return;                                                                                    \
    }
VECTORED static void pick(int bytes, int64_t n, char *to, int64_t stride, const char *from,
                          const int64_t *at) {
    switch (bytes) {
    case 1:
        PICK(uint8_t)
    case 2:
        PICK(uint16_t)
    case 4:
        PICK(uint32_t)
    case 8:
        PICK(uint64_t)
    default:
        break;
    }
    for (int64_t j = 0; j < n; j++)
        memcpy(to + j * stride * bytes, from + at[j] * bytes, (size_t)bytes);
}

// Short runs of any alignment: by vectors, where memcpy would set up a long move.
VECTORED static void move_run(char *to, const char *from, int64_t bytes) {
    int64_t i = 0;
    for (; i + 64 <= bytes; i += 64)
        memcpy(to + i, from + i, 64);
    if (i < bytes)
        memcpy(to + i, from + i, (size_t)(bytes - i));
}

static void mapped_rows(void *ctx, int64_t begin, int64_t end) {
    const Mapped *m = ctx;
    const Tensor *out = m->out;
    int last = out->ndim - 1;
    for (int64_t r = begin; r < end; r++) {
        int64_t rest = r, to = 0, from = 0;
        for (int d = last - 1; d >= 0; d--) {
            int64_t i = rest % out->size[d];
            rest /= out->size[d];
            to += i * out->stride[d];
            from += m->at[d][i];
        }
        char *dst = at_elem(out, to);
        const char *src = at_elem(m->in, from);
        for (int i = 0; i < m->n_pieces; i++) {
            const Piece *p = &m->pieces[i];
            move_run(dst + p->to * m->bytes, src + p->from * m->bytes, p->n * m->bytes);
        }
        if (!m->pieces)
            pick(m->bytes, out->size[last], dst, out->stride[last], src, m->at[last]);
    }
}

// The runs of a row; NULL if they are short.
static const Piece *pieces_of(Eager *x, const int64_t *at, int64_t n, int *count) {
    int64_t runs = 1;
    for (int64_t j = 1; j < n; j++)
        runs += at[j] != at[j - 1] + 1;
    if (runs * 8 > n)
        return NULL;
    Piece *p = ARENA_ARRAY(x->arena, runs, Piece);
    int k = 0;
    p[0] = (Piece){0, at[0], 1};
    for (int64_t j = 1; j < n; j++)
        if (at[j] == at[j - 1] + 1)
            p[k].n++;
        else
            p[++k] = (Piece){j, at[j], 1};
    *count = k + 1;
    return p;
}

void copy_mapped(Eager *x, const Tensor *out, const Tensor *in, const int64_t *const *at) {
    Mapped m = {.out = out, .in = in, .at = at, .bytes = dtype_info[out->dtype].bytes};
    int last = out->ndim - 1;
    if (!tensor_numel(out))
        return;
    if (!out->ndim) {
        memcpy(at_elem(out, 0), at_elem(in, 0), (size_t)m.bytes);
        return;
    }
    int64_t n = out->size[last];
    if (out->stride[last] == 1 || n == 1)
        m.pieces = pieces_of(x, at[last], n, &m.n_pieces);
    parallel_for(x->c->threads, tensor_numel(out) / n, 16384 / n + 1, mapped_rows, &m);
}
