// along.c: loops of gather and scatter: an index of the same dimensions names places along one of
// them. Rows of the index are taken one by one; where the rows cannot meet they go to threads.
#include "core/eager/along.h"

#include <string.h>

#include "core/eager/loops.h"

enum { GRAIN = 16384 };

typedef struct Rows {
    const Along *a;
    int last;            // dimension of a row
    int64_t n, rows;     // elements of a row, rows
    int64_t limit;       // of the index
    int64_t step[3];     // along a row: of place, of index, of the other tensor
    int64_t along;       // stride of place along the dimension
    _Atomic int64_t bad; // an index out of range; INT64_MIN: none
} Rows;

// Indices of a row as they are, or brought to int64.
static const int64_t *row_index(const Rows *r, int64_t at, int64_t n, int64_t *buf) {
    const Tensor *index = r->a->index;
    const void *p = at_elem(index, at);
    if (index->dtype == DT_i64 && r->step[1] == 1)
        return p;
    load_i(index->dtype, p, r->step[1], n, buf);
    return buf;
}

VECTORED static bool all_within(const int64_t *i, int64_t n, int64_t limit, int64_t *bad) {
    uint64_t out = 0;
    for (int64_t j = 0; j < n; j++)
        out |= (uint64_t)((uint64_t)i[j] >= (uint64_t)limit);
    for (int64_t j = 0; out && j < n; j++)
        if ((uint64_t)i[j] >= (uint64_t)limit) {
            *bad = i[j];
            return false;
        }
    return true;
}

#define TAKE(T)                                                                                    \
    {                                                                                              \
        T *dst = (T *)(void *)other;                                                               \
        const T *src = (const T *)(const void *)place;                                             \
        for (int64_t j = 0; j < n; j++)                                                            \
            dst[j * r->step[2]] = src[j * r->step[0] + i[j] * r->along];                           \
        return;                                                                                    \
    }
#define GIVE(T)                                                                                    \
    {                                                                                              \
        T *dst = (T *)(void *)place;                                                               \
        const T *src = (const T *)(const void *)other;                                             \
        for (int64_t j = 0; j < n; j++)                                                            \
            dst[j * r->step[0] + i[j] * r->along] = src[j * r->step[2]];                           \
        return;                                                                                    \
    }
#define BY_SIZE(DO)                                                                                \
    switch (dtype_info[r->a->place->dtype].bytes) {                                                \
    case 1:                                                                                        \
        DO(uint8_t)                                                                                \
    case 2:                                                                                        \
        DO(uint16_t)                                                                               \
    case 4:                                                                                        \
        DO(uint32_t)                                                                               \
    default:                                                                                       \
        DO(uint64_t)                                                                               \
    }

static void take(const Rows *r, char *place, const int64_t *i, char *other, int64_t n) {
    BY_SIZE(TAKE)
}

static void give(const Rows *r, char *place, const int64_t *i, const char *other, int64_t n) {
    BY_SIZE(GIVE)
}

static void add_f32(const Rows *r, char *place, const int64_t *i, const char *other, int64_t n) {
    float *dst = (float *)(void *)place;
    const float *src = (const float *)(const void *)other;
    for (int64_t j = 0; j < n; j++)
        dst[j * r->step[0] + i[j] * r->along] += src[j * r->step[2]];
}

static void rows_range(void *ctx, int64_t begin, int64_t end) {
    enum { PART = 512 };
    Rows *r = ctx;
    const Along *a = r->a;
    int64_t buf[PART];
    for (int64_t row = begin; row < end; row++) {
        int64_t rest = row, at[3] = {0};
        for (int d = a->index->ndim - 2; d >= 0; d--) {
            int64_t i = rest % a->index->size[d];
            rest /= a->index->size[d];
            at[0] += d == a->dim ? 0 : i * a->place->stride[d];
            at[1] += i * a->index->stride[d];
            at[2] += i * a->other->stride[d];
        }
        for (int64_t j = 0; j < r->n; j += PART) {
            int64_t n = r->n - j < PART ? r->n - j : PART, bad = -1;
            const int64_t *i = row_index(r, at[1] + j * r->step[1], n, buf);
            char *place = at_elem(a->place, at[0] + j * r->step[0]),
                 *other = at_elem(a->other, at[2] + j * r->step[2]);
            if (!all_within(i, n, r->limit, &bad)) {
                r->bad = bad;
                return;
            }
            if (a->way == ALONG_take)
                take(r, place, i, other, n);
            else if (a->way == ALONG_set)
                give(r, place, i, other, n);
            else
                add_f32(r, place, i, other, n);
        }
    }
}

bool along_can(const Along *a) {
    int bytes = dtype_info[a->place->dtype].bytes;
    return a->place->ndim && a->place->ndim == a->index->ndim && a->place->ndim == a->other->ndim &&
           a->place->dtype == a->other->dtype && bytes <= 8 && (bytes & (bytes - 1)) == 0 &&
           (a->way != ALONG_add || a->place->dtype == DT_f32);
}

bool along_run(const Eager *x, const Along *a, int64_t *bad) {
    int last = a->index->ndim - 1;
    Rows r = {.a = a,
              .last = last,
              .n = a->index->size[last],
              .limit = a->place->size[a->dim],
              .along = a->place->stride[a->dim],
              .step = {a->dim == last ? 0 : a->place->stride[last], a->index->stride[last],
                       a->other->stride[last]},
              .bad = INT64_MIN};
    int64_t total = tensor_numel(a->index);
    if (!total)
        return true;
    r.rows = total / r.n;
    // Rows of a scatter along an outer dimension meet at the same places.
    bool apart = a->way == ALONG_take || a->dim == last;
    parallel_for(apart ? x->c->threads : 1, r.rows, GRAIN / r.n + 1, rows_range, &r);
    *bad = r.bad;
    return r.bad == INT64_MIN;
}

// Rows that meet are written in order: threads share out the columns.

typedef struct Spread {
    const RowsInto *r;
    int bytes;
} Spread;

VECTORED static void add_row_f32(int64_t n, float *to, const float *from) {
    for (int64_t j = 0; j < n; j++)
        to[j] += from[j];
}

static void columns_range(void *ctx, int64_t begin, int64_t end) {
    const Spread *s = ctx;
    const RowsInto *r = s->r;
    for (int64_t i = 0; i < r->rows; i++) {
        if (r->at[i] < 0)
            continue;
        char *to = r->to + (r->at[i] + begin) * s->bytes;
        const char *from = r->from + (i * r->from_step + begin) * s->bytes;
        if (r->add)
            add_row_f32(end - begin, (float *)(void *)to, (const float *)(const void *)from);
        else
            memcpy(to, from, (size_t)((end - begin) * s->bytes));
    }
}

void rows_into(const Eager *x, const RowsInto *r) {
    Spread s = {r, dtype_info[r->dtype].bytes};
    int64_t grain = GRAIN / (r->rows + 1) + 64;
    parallel_for(x->c->threads, r->n, grain, columns_range, &s);
}
