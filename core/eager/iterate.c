// iterate.c: strided loops over tensors of one shape, as TensorIterator makes them: dimensions in
// the order of the result's strides, merged where all tensors allow, the innermost handed out as
// rows, rows to threads.
#include "core/eager/iterate.h"

#include <string.h>

#include "core/eager/loops.h"

enum { GRAIN = 32768 }; // elements worth a thread

static bool goes_inside(const Iter *it, int a, int b) {
    for (int j = 0; j < it->n; j++) {
        int64_t x = it->stride[j][a], y = it->stride[j][b];
        if (x != y && x && y)
            return x < y;
    }
    return false;
}

static void swap_dims(Iter *it, int a, int b) {
    int64_t s = it->size[a];
    it->size[a] = it->size[b];
    it->size[b] = s;
    for (int j = 0; j < it->n; j++) {
        int64_t v = it->stride[j][a];
        it->stride[j][a] = it->stride[j][b];
        it->stride[j][b] = v;
    }
}

static bool merges(const Iter *it, int in, int out) {
    for (int j = 0; j < it->n; j++)
        if (it->stride[j][out] != it->stride[j][in] * it->size[in])
            return false;
    return true;
}

static void merge(Iter *it) {
    int n = 0;
    for (int i = 0; i < it->ndim; i++) {
        if (it->size[i] == 1)
            continue;
        if (n && merges(it, n - 1, i)) {
            it->size[n - 1] *= it->size[i];
            continue;
        }
        if (n != i)
            swap_dims(it, n, i);
        n++;
    }
    it->ndim = n;
    if (n == 0) {
        it->ndim = 1;
        it->size[0] = 1;
    }
}

bool iter_init(Iter *it, const Tensor *const *t, int n) {
    const Tensor *out = t[0];
    *it = (Iter){.n = n, .ndim = out->ndim};
    for (int j = 0; j < n; j++) {
        int64_t stride[TENSOR_DIMS];
        if (!broadcast_strides(t[j], out->ndim, out->size, stride))
            return false;
        it->base[j] = tensor_data(t[j]);
        it->bytes[j] = dtype_info[t[j]->dtype].bytes;
        for (int i = 0; i < out->ndim; i++)
            it->stride[j][i] = stride[out->ndim - 1 - i];
    }
    for (int i = 0; i < out->ndim; i++) {
        it->size[i] = out->size[out->ndim - 1 - i];
        if (it->size[i] == 0) {
            it->ndim = 1;
            it->size[0] = 0;
            return true;
        }
    }
    for (int i = 1; i < it->ndim; i++)
        for (int k = i; k > 0 && goes_inside(it, k, k - 1); k--)
            swap_dims(it, k, k - 1);
    merge(it);
    return true;
}

typedef struct Job {
    const Iter *it;
    RowFn *fn;
    void *ctx;
} Job;

// Elements [begin, end) in the iterator's order, row by row.
static void run_range(void *ctx, int64_t begin, int64_t end) {
    const Job *job = ctx;
    const Iter *it = job->it;
    int64_t index[TENSOR_DIMS] = {0}, left = end - begin, stride[ITER_TENSORS];
    char *p[ITER_TENSORS];
    for (int i = 0; i < it->ndim; i++) {
        index[i] = begin % it->size[i];
        begin /= it->size[i];
    }
    for (int j = 0; j < it->n; j++) {
        int64_t at = 0;
        for (int i = 0; i < it->ndim; i++)
            at += index[i] * it->stride[j][i];
        p[j] = it->base[j] + at * it->bytes[j];
        stride[j] = it->stride[j][0];
    }
    while (left > 0) {
        int64_t n = it->size[0] - index[0] < left ? it->size[0] - index[0] : left;
        job->fn(job->ctx, n, p, stride);
        left -= n;
        if (left <= 0)
            return;
        for (int j = 0; j < it->n; j++)
            p[j] -= index[0] * it->stride[j][0] * it->bytes[j];
        index[0] = 0;
        for (int i = 1; i < it->ndim; i++) {
            for (int j = 0; j < it->n; j++)
                p[j] += it->stride[j][i] * it->bytes[j];
            if (++index[i] < it->size[i])
                break;
            for (int j = 0; j < it->n; j++)
                p[j] -= it->size[i] * it->stride[j][i] * it->bytes[j];
            index[i] = 0;
        }
    }
}

void iter_run(const Iter *it, int threads, RowFn *fn, void *ctx) {
    int64_t total = 1;
    for (int i = 0; i < it->ndim; i++)
        total *= it->size[i];
    Job job = {it, fn, ctx};
    if (total > 0)
        parallel_for(threads, total, GRAIN, run_range, &job);
}

bool overlaps(const Tensor *a, const Tensor *b) {
    if (a->storage != b->storage || !tensor_numel(a) || !tensor_numel(b))
        return false;
    bool same = a->offset == b->offset && a->dtype == b->dtype && a->ndim == b->ndim;
    for (int i = 0; same && i < a->ndim; i++)
        same = a->size[i] == b->size[i] && (a->stride[i] == b->stride[i] || a->size[i] == 1);
    if (same)
        return false;
    int64_t ab = dtype_info[a->dtype].bytes, bb = dtype_info[b->dtype].bytes;
    return a->offset * ab < (b->offset + tensor_reach(b)) * bb &&
           b->offset * bb < (a->offset + tensor_reach(a)) * ab;
}

// copying

typedef enum CopyWay { COPY_bits, COPY_int, COPY_f32, COPY_f64 } CopyWay;
typedef struct Copy {
    DType to, from;
    CopyWay way;
} Copy;

static bool fits_f32(DType d) {
    return d == DT_f32 || d == DT_bf16 || d == DT_f16;
}

#define COPY_LOOP(T)                                                                               \
    {                                                                                              \
        T *dst = (T *)(void *)p[0];                                                                \
        const T *src = (const T *)(const void *)p[1];                                              \
        if (stride[1] == 0 && stride[0] == 1) {                                                    \
            T v = *src;                                                                            \
            for (int64_t i = 0; i < n; i++)                                                        \
                dst[i] = v;                                                                        \
            return;                                                                                \
        }                                                                                          \
        for (int64_t i = 0; i < n; i++)                                                            \
            dst[i * stride[0]] = src[i * stride[1]];                                               \
        return;                                                                                    \
    }

VECTORED static void copy_bits(int bytes, int64_t n, char *const *p, const int64_t *stride) {
    if (stride[0] == 1 && stride[1] == 1) {
        memmove(p[0], p[1], (size_t)(n * bytes));
        return;
    }
    switch (bytes) {
    case 1:
        COPY_LOOP(uint8_t)
    case 2:
        COPY_LOOP(uint16_t)
    case 4:
        COPY_LOOP(uint32_t)
    case 8:
        COPY_LOOP(uint64_t)
    default:
        break;
    }
    for (int64_t i = 0; i < n; i++)
        memcpy(p[0] + i * stride[0] * bytes, p[1] + i * stride[1] * bytes, (size_t)bytes);
}

static void copy_row(void *ctx, int64_t n, char *const *p, const int64_t *stride) {
    enum { CHUNK = 512 };
    const Copy *c = ctx;
    if (c->way == COPY_bits) {
        copy_bits(dtype_info[c->to].bytes, n, p, stride);
        return;
    }
    int db = dtype_info[c->to].bytes, sb = dtype_info[c->from].bytes;
    for (int64_t at = 0; at < n; at += CHUNK) {
        int64_t m = n - at < CHUNK ? n - at : CHUNK;
        char *dst = p[0] + at * stride[0] * db;
        const char *src = p[1] + at * stride[1] * sb;
        union {
            double d[CHUNK];
            float f[CHUNK];
            int64_t i[CHUNK];
        } buf;
        if (c->way == COPY_int) {
            load_i(c->from, src, stride[1], m, buf.i);
            store_i(c->to, dst, stride[0], m, buf.i);
        } else if (c->way == COPY_f32 && c->from == DT_f32 && stride[1] == 1) {
            store_f(c->to, dst, stride[0], m, (const float *)(const void *)src);
        } else if (c->way == COPY_f32 && c->to == DT_f32 && stride[0] == 1) {
            load_f(c->from, src, stride[1], m, (float *)(void *)dst);
        } else if (c->way == COPY_f32) {
            load_f(c->from, src, stride[1], m, buf.f);
            store_f(c->to, dst, stride[0], m, buf.f);
        } else {
            load_d(c->from, src, stride[1], m, buf.d);
            store_d(c->to, dst, stride[0], m, buf.d);
        }
    }
}

// Rows of one are columns of the other: tile by tile, so that both are read and written by cache
// lines.
typedef struct Turned {
    const Iter *it;
    int fast;      // dimension in which the source is dense
    int64_t tiles; // along it
} Turned;

enum { TILE = 32 };

// By way of a tile in the cache: rows far apart would push each other out of it.
#define TURN(T)                                                                                    \
    {                                                                                              \
        T tile[TILE][TILE + 1], *to_t = (T *)(void *)dst;                                          \
        const T *from_t = (const T *)(const void *)src + i0;                                       \
        int64_t m = i1 - i0;                                                                       \
        for (int64_t j = 0; j < n; j++)                                                            \
            for (int64_t i = 0; i < m; i++)                                                        \
                tile[j][i] = from_t[j * ss + i];                                                   \
        for (int64_t i = 0; i < m; i++)                                                            \
            for (int64_t j = 0; j < n; j++)                                                        \
                to_t[(i0 + i) * ds + j] = tile[j][i];                                              \
    }

VECTORED static void turn_tiles(void *ctx, int64_t begin, int64_t end) {
    const Turned *t = ctx;
    const Iter *it = t->it;
    int64_t ds = it->stride[0][t->fast], ss = it->stride[1][0], size = it->size[t->fast];
    for (int64_t k = begin; k < end; k++) {
        int64_t i0 = k % t->tiles * TILE, i1 = i0 + TILE < size ? i0 + TILE : size,
                rest = k / t->tiles, to = 0, from = 0;
        for (int d = 1; d < it->ndim; d++) {
            if (d == t->fast)
                continue;
            to += rest % it->size[d] * it->stride[0][d];
            from += rest % it->size[d] * it->stride[1][d];
            rest /= it->size[d];
        }
        for (int64_t j0 = 0; j0 < it->size[0]; j0 += TILE) {
            int64_t n = it->size[0] - j0 < TILE ? it->size[0] - j0 : TILE;
            char *dst = it->base[0] + (to + j0) * it->bytes[0];
            const char *src = it->base[1] + (from + j0 * ss) * it->bytes[1];
            if (it->bytes[0] == 4) {
                TURN(uint32_t)
            } else if (it->bytes[0] == 2) {
                TURN(uint16_t)
            } else if (it->bytes[0] == 8) {
                TURN(uint64_t)
            } else {
                TURN(uint8_t)
            }
        }
    }
}

static bool copy_turned(const Eager *x, const Iter *it) {
    Turned t = {.it = it};
    int64_t tasks = 1;
    if (it->stride[0][0] != 1 || it->stride[1][0] <= 1 || it->size[0] < 8 || it->bytes[0] > 8)
        return false;
    for (int d = 1; d < it->ndim; d++)
        if (it->stride[1][d] == 1 && it->size[d] >= 8)
            t.fast = d;
    if (!t.fast)
        return false;
    t.tiles = (it->size[t.fast] + TILE - 1) / TILE;
    for (int d = 1; d < it->ndim; d++)
        tasks *= d == t.fast ? t.tiles : it->size[d];
    parallel_for(x->c->threads, tasks, 32768 / (it->size[0] * TILE) + 1, turn_tiles, &t);
    return true;
}

// Rows that are short and dense on both sides (heads of attention): moved by whole vectors, with
// nothing called for a row.
typedef struct Strips {
    const Iter *it;
    int64_t bytes; // of a row
} Strips;

typedef struct Block64 {
    char at[64];
} Block64;

VECTORED static void copy_strips(void *ctx, int64_t begin, int64_t end) {
    const Strips *s = ctx;
    const Iter *it = s->it;
    int64_t bytes = s->bytes, size = it->size[1];
    int64_t to_step = it->stride[0][1] * it->bytes[0], from_step = it->stride[1][1] * it->bytes[1];
    for (int64_t k = begin; k < end;) {
        int64_t rest = k / size, i = k % size, to = 0, from = 0;
        int64_t n = size - i < end - k ? size - i : end - k;
        for (int d = 2; d < it->ndim; d++) {
            to += rest % it->size[d] * it->stride[0][d];
            from += rest % it->size[d] * it->stride[1][d];
            rest /= it->size[d];
        }
        char *dst = it->base[0] + to * it->bytes[0] + i * to_step;
        const char *src = it->base[1] + from * it->bytes[1] + i * from_step;
        k += n;
        for (; n > 0; n--, dst += to_step, src += from_step) {
            int64_t b = 0;
            for (; b + 64 <= bytes; b += 64)
                __builtin_prefetch((const void *)((uintptr_t)src + (uintptr_t)(8 * from_step + b)));
            for (b = 0; b + 64 <= bytes; b += 64)
                *(Block64 *)(void *)(dst + b) = *(const Block64 *)(const void *)(src + b);
            for (; b < bytes; b++)
                dst[b] = src[b];
        }
    }
}

static bool copy_in_strips(const Eager *x, const Iter *it) {
    Strips s = {it, it->size[0] * it->bytes[0]};
    if (it->ndim < 2 || it->stride[0][0] != 1 || it->stride[1][0] != 1 || s.bytes < 64 ||
        s.bytes > 2048)
        return false;
    int64_t rows = 1;
    for (int d = 1; d < it->ndim; d++)
        rows *= it->size[d];
    parallel_for(x->c->threads, rows, 131072 / s.bytes, copy_strips, &s);
    return true;
}

bool copy_into(Eager *x, Tensor *dst, const Tensor *src) {
    const Tensor *both[2] = {dst, src};
    Copy c = {dst->dtype, src->dtype, COPY_f64};
    if (dtype_info[src->dtype].cls == DTC_COMPLEX || dtype_info[dst->dtype].cls == DTC_COMPLEX) {
        Iter probe;
        if (dst->ndim != src->ndim || !iter_init(&probe, both, 2))
            return eager_fail(x,
                              "RuntimeError: complex tensors are copied between equal shapes only");
        tensor_copy(dst, src);
        return true;
    }
    c.way = dst->dtype == src->dtype                       ? COPY_bits
            : is_int_like(src->dtype)                      ? COPY_int
            : fits_f32(src->dtype) && fits_f32(dst->dtype) ? COPY_f32
                                                           : COPY_f64;
    if (overlaps(dst, src)) {
        Tensor *apart = eager_like(x, src, src->dtype);
        if (!apart || !copy_into(x, apart, src))
            return false;
        both[1] = apart;
    }
    Iter it;
    if (!iter_init(&it, both, 2))
        return eager_fail(x,
                          "RuntimeError: a tensor of %d dimensions cannot be copied into one of "
                          "%d: the sizes differ",
                          src->ndim, dst->ndim);
    if (c.way != COPY_bits || !(copy_in_strips(x, &it) || copy_turned(x, &it)))
        iter_run(&it, x->c->threads, copy_row, &c);
    return true;
}
