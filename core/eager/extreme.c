// extreme.c: places of the largest or smallest floats along a dimension, the first of equals, NaN
// above all. Dense rows find the value first and then its place; where the dimension is not dense,
// neighbouring runs are looked through together.
#include "core/eager/extreme.h"

#include <math.h>

#include "core/eager/loops.h"

enum { WIDE = 64, GRAIN = 16384 };

typedef struct Search {
    const Tensor *in;
    Runs runs;
    bool least;
    int64_t *place; // (runs)
} Search;

VECTORED float row_peak(int64_t n, const float *x, float sign, int *nans) {
    float lane[WIDE];
    int32_t nan[WIDE] = {0};
    int64_t i = 0;
    for (int j = 0; j < WIDE; j++)
        lane[j] = -(float)INFINITY;
    for (; i + WIDE <= n; i += WIDE)
        for (int j = 0; j < WIDE; j++) {
            float v = sign * x[i + j];
            lane[j] = v > lane[j] ? v : lane[j];
            nan[j] |= v != v;
        }
    for (; i < n; i++) {
        float v = sign * x[i];
        lane[0] = v > lane[0] ? v : lane[0];
        nan[0] |= v != v;
    }
    for (int j = 0; j < WIDE; j++) {
        lane[0] = lane[j] > lane[0] ? lane[j] : lane[0];
        *nans |= nan[j];
    }
    return sign * lane[0];
}

// The first element that is v, or that is NaN.
VECTORED static int64_t first_place(int64_t n, const float *x, float v, bool nan) {
    int64_t i = 0;
    for (; i + WIDE <= n; i += WIDE) {
        int32_t hit = 0;
        for (int j = 0; j < WIDE; j++)
            hit |= nan ? x[i + j] != x[i + j] : x[i + j] == v;
        if (hit)
            break;
    }
    for (; i < n - 1; i++)
        if (nan ? x[i] != x[i] : x[i] == v)
            return i;
    return n - 1;
}

static void rows_range(void *ctx, int64_t begin, int64_t end) {
    const Search *s = ctx;
    for (int64_t r = begin; r < end; r++) {
        const float *x = (const float *)(const void *)at_elem(s->in, run_start(&s->runs, r));
        int nans = 0;
        float v = row_peak(s->runs.len, x, s->least ? -1.0f : 1.0f, &nans);
        s->place[r] = first_place(s->runs.len, x, v, nans);
    }
}

VECTORED static void block_places(const float *x, int64_t n, int64_t step, int64_t wide, float sign,
                                  int64_t *place) {
    float best[WIDE];
    int32_t at[WIDE] = {0};
    for (int64_t c = 0; c < wide; c++)
        best[c] = sign * x[c];
    for (int64_t i = 1; i < n; i++)
        for (int64_t c = 0; c < wide; c++) {
            float v = sign * x[i * step + c];
            int better = (v > best[c]) | ((v != v) & (best[c] == best[c]));
            best[c] = better ? v : best[c];
            at[c] = better ? (int32_t)i : at[c];
        }
    for (int64_t c = 0; c < wide; c++)
        place[c] = at[c];
}

static void columns_range(void *ctx, int64_t begin, int64_t end) {
    const Search *s = ctx;
    int64_t width = s->runs.size[s->runs.ndim - 1];
    for (int64_t r = begin; r < end;) {
        int64_t wide = width - r % width;
        wide = wide < WIDE ? wide : WIDE;
        wide = wide < end - r ? wide : end - r;
        block_places((const float *)(const void *)at_elem(s->in, run_start(&s->runs, r)),
                     s->runs.len, s->runs.step, wide, s->least ? -1.0f : 1.0f, s->place + r);
        r += wide;
    }
}

int64_t *extreme_places(const Eager *x, const Tensor *in, int dim, bool least) {
    Search s = {.in = in, .runs = runs_of(in, dim), .least = least};
    int last = s.runs.ndim - 1;
    bool rows = s.runs.step == 1,
         columns = last >= 0 && s.runs.stride[last] == 1 && s.runs.size[last] >= 8;
    if (in->dtype != DT_f32 || !in->ndim || !s.runs.len || s.runs.len > INT32_MAX ||
        (!rows && !columns))
        return NULL;
    s.place = ARENA_ARRAY(x->arena, s.runs.n + 1, int64_t);
    parallel_for(x->c->threads, s.runs.n, GRAIN / s.runs.len + 1, rows ? rows_range : columns_range,
                 &s);
    return s.place;
}
