// fold.c: the engine of reductions. Where the innermost dimension is reduced, a row goes into
// several accumulators at once; where it is kept, a block of neighbouring results is accumulated
// row by row. Both read memory in its order, floats as they are; they are accumulated in double.
#include "core/eager/fold.h"

#include <math.h>
#include <string.h>

#include "core/eager/loops.h"
#include "core/eager/single.h"

enum { BLOCK = 512, LANES = 32, FEW = 8, FOUR = 4, GRAIN = 32768 };

typedef struct Dims {
    int n;
    int64_t size[TENSOR_DIMS], stride[TENSOR_DIMS]; // outermost first
} Dims;

typedef struct Fold {
    FoldId id;
    const Tensor *in;
    Dims kept, gone; // dimensions of the results, and reduced ones
    int64_t n_kept, n_gone;
    const double *m;
    double p;
    double *out_d; // one of the two
    int64_t *out_i;
} Fold;

#define EXP(x)      exp(x)
#define ROUND(x)    (x)
#define POWER(x, y) pow(x, y)
static double start_d(FoldId id) {
    const double INF = (double)INFINITY;
    switch (id) {
#define FOLD(name, start, step, join)                                                              \
    case FOLD_##name:                                                                              \
        return start;
#include "core/eager/folds.def"
#undef FOLD
    case FOLD_count:
        break;
    }
    return 0;
}

static int64_t start_i(FoldId id) {
    return id == FOLD_prod ? 1 : id == FOLD_amax ? INT64_MIN : id == FOLD_amin ? INT64_MAX : 0;
}

// One row into one accumulator, if it has `most` elements through several; S is what is in memory.
#define IN_LANES(count, most, step, joined, from)                                                  \
    if (n - i >= (most)) {                                                                         \
        double lane[count];                                                                        \
        for (int j = 0; j < (count); j++)                                                          \
            lane[j] = start_d(from);                                                               \
        for (; i + (count) <= n; i += (count))                                                     \
            for (int j = 0; j < (count); j++) {                                                    \
                double a = lane[j], v = (double)x[i + j];                                          \
                lane[j] = step;                                                                    \
            }                                                                                      \
        for (int w = (count) / 2; w; w /= 2)                                                       \
            for (int j = 0; j < w; j++) {                                                          \
                double a = lane[j], v = lane[j + w];                                               \
                lane[j] = joined;                                                                  \
            }                                                                                      \
        double a = acc, v = lane[0];                                                               \
        acc = joined;                                                                              \
    }
#define FOLD_OF(S, row, column, name, start, step, joined)                                         \
    VECTORED static double row##name(double acc, int64_t n, const S *x, double m, double p) {      \
        int64_t i = 0;                                                                             \
        (void)m, (void)p;                                                                          \
        IN_LANES(LANES, 8 * LANES, step, joined, FOLD_##name)                                      \
        IN_LANES(FEW, FEW, step, joined, FOLD_##name)                                              \
        for (; i < n; i++) {                                                                       \
            double a = acc, v = (double)x[i];                                                      \
            acc = step;                                                                            \
        }                                                                                          \
        return acc;                                                                                \
    }                                                                                              \
    /* rows of x, `next` elements apart, FOUR at a time: the accumulators are read less often */   \
    VECTORED static void column##name(int64_t rows, int64_t next, int64_t n, double *acc,          \
                                      const S *x, const double *mean, double p) {                  \
        (void)p;                                                                                   \
        for (; rows >= FOUR; rows -= FOUR, x += FOUR * next)                                       \
            for (int64_t i = 0; i < n; i++) {                                                      \
                double a = acc[i], m = mean[i];                                                    \
                (void)m;                                                                           \
                for (int r = 0; r < FOUR; r++) {                                                   \
                    double v = (double)x[r * next + i];                                            \
                    a = step;                                                                      \
                }                                                                                  \
                acc[i] = a;                                                                        \
            }                                                                                      \
        for (; rows > 0; rows--, x += next)                                                        \
            for (int64_t i = 0; i < n; i++) {                                                      \
                double a = acc[i], v = (double)x[i], m = mean[i];                                  \
                (void)m;                                                                           \
                acc[i] = step;                                                                     \
            }                                                                                      \
    }
#define FOLD(...) FOLD_OF(double, row_, column_, __VA_ARGS__)
#include "core/eager/folds.def"
#undef FOLD
#undef EXP
#undef ROUND
#define EXP(x)    single_exp_below(x)
#define ROUND(x)  (double)(float)(x)
#define FOLD(...) FOLD_OF(float, rowf_, columnf_, __VA_ARGS__)
#include "core/eager/folds.def"
#undef FOLD

typedef double RowFold(double acc, int64_t n, const double *x, double m, double p);
typedef double RowFoldF(double acc, int64_t n, const float *x, double m, double p);
typedef void ColumnFold(int64_t rows, int64_t next, int64_t n, double *acc, const double *x,
                        const double *m, double p);
typedef void ColumnFoldF(int64_t rows, int64_t next, int64_t n, double *acc, const float *x,
                         const double *m, double p);
static const struct {
    RowFold *row;
    RowFoldF *row_f;
    ColumnFold *column;
    ColumnFoldF *column_f;
} folds[FOLD_count] = {
#define FOLD(name, ...) [FOLD_##name] = {row_##name, rowf_##name, column_##name, columnf_##name},
#include "core/eager/folds.def"
#undef FOLD
};

// Largest or smallest of floats as floats; NaN if there is one.
static double extreme_f(double acc, int64_t n, const float *x, bool least) {
    int nans = 0;
    double v = (double)row_peak(n, x, least ? -1.0f : 1.0f, &nans);
    acc = (least ? v < acc : v > acc) ? v : acc;
    return nans ? (double)NAN : acc;
}

static double fold_row_f(FoldId id, double acc, int64_t n, const float *x, double m, double p) {
    bool extreme = (id == FOLD_amax || id == FOLD_amin) && n >= 256;
    return extreme ? extreme_f(acc, n, x, id == FOLD_amin) : folds[id].row_f(acc, n, x, m, p);
}

// Integers wrap.
VECTORED static int64_t step_i(FoldId id, int64_t acc, int64_t n, const int64_t *v) {
    uint64_t u = (uint64_t)acc;
    switch (id) {
    case FOLD_sum:
    case FOLD_nansum:
        for (int64_t i = 0; i < n; i++)
            u += (uint64_t)v[i];
        return (int64_t)u;
    case FOLD_prod:
        for (int64_t i = 0; i < n; i++)
            u *= (uint64_t)v[i];
        return (int64_t)u;
    case FOLD_amax:
        for (int64_t i = 0; i < n; i++)
            acc = v[i] > acc ? v[i] : acc;
        return acc;
    case FOLD_amin:
        for (int64_t i = 0; i < n; i++)
            acc = v[i] < acc ? v[i] : acc;
        return acc;
    case FOLD_any:
        for (int64_t i = 0; i < n; i++)
            acc += v[i] != 0;
        return acc;
    case FOLD_zeros:
        for (int64_t i = 0; i < n; i++)
            acc += v[i] == 0;
        return acc;
    default:
        return acc;
    }
}

static void add_dim(Dims *d, int64_t size, int64_t stride) {
    if (size == 1)
        return;
    if (d->n && d->stride[d->n - 1] == stride * size) {
        d->size[d->n - 1] *= size;
        d->stride[d->n - 1] = stride;
        return;
    }
    d->size[d->n] = size;
    d->stride[d->n++] = stride;
}

static void close_dims(Dims *d) {
    if (!d->n) {
        d->size[0] = d->stride[0] = 1;
        d->n = 1;
    }
}

// Larger strides outside: the order of what is reduced is free.
static void sort_dims(Dims *d) {
    for (int i = 1; i < d->n; i++)
        for (int j = i; j > 0 && d->stride[j] > d->stride[j - 1]; j--) {
            int64_t s = d->size[j], t = d->stride[j];
            d->size[j] = d->size[j - 1];
            d->stride[j] = d->stride[j - 1];
            d->size[j - 1] = s;
            d->stride[j - 1] = t;
        }
}

static int64_t offset_of(const Dims *d, int n, int64_t index) {
    int64_t at = 0;
    for (int i = n - 1; i > 0; i--) {
        at += index % d->size[i] * d->stride[i];
        index /= d->size[i];
    }
    return n ? at + index * d->stride[0] : 0;
}

int64_t fold_outputs(const Tensor *in, uint64_t mask) {
    int64_t n = 1;
    for (int i = 0; i < in->ndim; i++)
        n *= mask >> i & 1 ? 1 : in->size[i];
    return n;
}

int64_t fold_elements(const Tensor *in, uint64_t mask) {
    int64_t n = 1;
    for (int i = 0; i < in->ndim; i++)
        n *= mask >> i & 1 ? in->size[i] : 1;
    return n;
}

// n elements of a row at p, in pieces where they must be converted.
static double row_d(const Fold *f, double acc, int64_t n, const char *p, double m) {
    DType d = f->in->dtype;
    int64_t stride = f->gone.stride[f->gone.n - 1];
    bool narrow = d == DT_f32 || dtype_is_low(d);
    union {
        double d[BLOCK];
        float f[BLOCK];
    } buf;
    if (d == DT_f32 && stride == 1)
        return fold_row_f(f->id, acc, n, (const float *)(const void *)p, m, f->p);
    if (d == DT_f64 && stride == 1)
        return folds[f->id].row(acc, n, (const double *)(const void *)p, m, f->p);
    for (int64_t i = 0; i < n; i += BLOCK, p += BLOCK * stride * dtype_info[d].bytes) {
        int64_t k = n - i < BLOCK ? n - i : BLOCK;
        if (narrow) {
            load_f(d, p, stride, k, buf.f);
            acc = fold_row_f(f->id, acc, k, buf.f, m, f->p);
        } else {
            load_d(d, p, stride, k, buf.d);
            acc = folds[f->id].row(acc, k, buf.d, m, f->p);
        }
    }
    return acc;
}

static int64_t row_i(const Fold *f, int64_t acc, int64_t n, const char *p) {
    DType d = f->in->dtype;
    int64_t stride = f->gone.stride[f->gone.n - 1], buf[BLOCK];
    if (d == DT_i64 && stride == 1)
        return step_i(f->id, acc, n, (const int64_t *)(const void *)p);
    for (int64_t i = 0; i < n; i += BLOCK, p += BLOCK * stride * dtype_info[d].bytes) {
        int64_t k = n - i < BLOCK ? n - i : BLOCK;
        load_i(d, p, stride, k, buf);
        acc = step_i(f->id, acc, k, buf);
    }
    return acc;
}

static void row_of(const Fold *f, int64_t at, double m, double *acc_d, int64_t *acc_i) {
    int last = f->gone.n - 1;
    int64_t n = f->gone.size[last], rows = last ? f->n_gone / n : 1;
    for (int64_t r = 0; r < rows; r++) {
        const char *p = at_elem(f->in, at + (last ? offset_of(&f->gone, last, r) : 0));
        if (f->out_d)
            *acc_d = row_d(f, *acc_d, n, p, m);
        else
            *acc_i = row_i(f, *acc_i, n, p);
    }
}

// The same for sums and products of rows that lie one behind another; false: not such.
static bool sums_range(const Fold *f, int64_t begin, int64_t end) {
    int last = f->kept.n - 1;
    int64_t width = f->kept.size[last], step = f->kept.stride[last];
    if ((f->id != FOLD_sum && f->id != FOLD_prod) || f->gone.n != 1 || f->gone.stride[0] != 1)
        return false;
    for (int64_t k = begin, n; k < end; k += n) {
        n = width - k % width < end - k ? width - k % width : end - k;
        const char *x = at_elem(f->in, offset_of(&f->kept, last + 1, k));
        if (!fold_sums(f->id, f->in->dtype, n, f->n_gone, x, step, f->out_d + k))
            return false;
    }
    return true;
}

static void rows_range(void *ctx, int64_t begin, int64_t end) {
    const Fold *f = ctx;
    if (f->out_d && sums_range(f, begin, end))
        return;
    for (int64_t k = begin; k < end; k++) {
        double d = start_d(f->id);
        int64_t i = start_i(f->id);
        row_of(f, offset_of(&f->kept, f->kept.n, k), f->m ? f->m[k] : 0, &d, &i);
        if (f->out_d)
            f->out_d[k] = d;
        else
            f->out_i[k] = i;
    }
}

// Results [k, k + n), which are neighbours, from the rows along the innermost reduced dimension.
static void columns_of(const Fold *f, int64_t k, int64_t n, const char *p) {
    int inner = f->gone.n - 1;
    int64_t rows = f->gone.size[inner], next = f->gone.stride[inner],
            stride = f->kept.stride[f->kept.n - 1];
    static const double zero[BLOCK] = {0};
    const double *m = f->m ? f->m + k : zero;
    double buf[BLOCK], *acc = f->out_d + k;
    if (f->in->dtype == DT_f32 && stride == 1) {
        folds[f->id].column_f(rows, next, n, acc, (const float *)(const void *)p, m, f->p);
        return;
    }
    if (f->in->dtype == DT_f64 && stride == 1) {
        folds[f->id].column(rows, next, n, acc, (const double *)(const void *)p, m, f->p);
        return;
    }
    for (int64_t r = 0; r < rows; r++) {
        load_d(f->in->dtype, p + r * next * dtype_info[f->in->dtype].bytes, stride, n, buf);
        folds[f->id].column(1, 0, n, acc, buf, m, f->p);
    }
}

// Blocks of neighbouring results; ctx's kept.size[last] is the row that they lie in.
static void columns_range(void *ctx, int64_t begin, int64_t end) {
    const Fold *f = ctx;
    int inner = f->gone.n - 1;
    int64_t width = f->kept.size[f->kept.n - 1], planes = f->n_gone / f->gone.size[inner];
    for (int64_t k = begin, n; k < end; k += n) {
        n = width - k % width;
        n = n < BLOCK ? n : BLOCK;
        n = n < end - k ? n : end - k;
        for (int64_t i = 0; i < n; i++)
            f->out_d[k + i] = start_d(f->id);
        int64_t at = offset_of(&f->kept, f->kept.n, k);
        for (int64_t g = 0; g < planes; g++)
            columns_of(f, k, n, at_elem(f->in, at + (inner ? offset_of(&f->gone, inner, g) : 0)));
    }
}

// A whole tensor into one result: parts, then their join.
typedef struct Parts {
    Fold fold;
    int64_t size; // elements of a part
    double out[64];
} Parts;

static void parts_range(void *ctx, int64_t begin, int64_t end) {
    Parts *parts = ctx;
    for (int64_t k = begin; k < end; k++) {
        Fold f = parts->fold;
        int64_t from = k * parts->size,
                n = f.n_gone - from < parts->size ? f.n_gone - from : parts->size, i = 0;
        parts->out[k] = start_d(f.id);
        if (n <= 0)
            continue;
        f.gone = (Dims){.n = 1, .size = {n}, .stride = {f.gone.stride[0]}};
        f.n_gone = n;
        const char *x = at_elem(f.in, from);
        if (f.id != FOLD_sum || f.gone.stride[0] != 1 ||
            !fold_sums(f.id, f.in->dtype, 1, n, x, 0, &parts->out[k]))
            row_of(&f, from * f.gone.stride[0], f.m ? f.m[0] : 0, &parts->out[k], &i);
    }
}

static double join(FoldId id, double a, double v) {
    switch (id) {
#define FOLD(name, start, step, joined)                                                            \
    case FOLD_##name:                                                                              \
        return joined;
#include "core/eager/folds.def"
#undef FOLD
    case FOLD_count:
        break;
    }
    return a;
}

static Fold fold_setup(FoldId id, const Tensor *in, uint64_t mask) {
    Fold f = {
        .id = id, .in = in, .n_kept = fold_outputs(in, mask), .n_gone = fold_elements(in, mask)};
    Dims gone = {0};
    for (int i = 0; i < in->ndim; i++)
        if (mask >> i & 1) {
            gone.size[gone.n] = in->size[i];
            gone.stride[gone.n++] = in->stride[i];
        } else {
            add_dim(&f.kept, in->size[i], in->stride[i]);
        }
    sort_dims(&gone);
    for (int i = 0; i < gone.n; i++)
        add_dim(&f.gone, gone.size[i], gone.stride[i]);
    close_dims(&f.kept);
    close_dims(&f.gone);
    return f;
}

void fold_d(const Eager *x, FoldId id, const Tensor *in, uint64_t mask, const double *m, double p,
            double *out) {
    Fold f = fold_setup(id, in, mask);
    int threads = x->c->threads;
    f.m = m;
    f.p = p;
    f.out_d = out;
    if (f.n_gone == 0)
        for (int64_t k = 0; k < f.n_kept; k++)
            out[k] = start_d(id);
    if (f.n_kept == 0 || f.n_gone == 0)
        return;
    if (f.n_kept == 1 && f.gone.n == 1 && f.n_gone > 2 * GRAIN) {
        Parts parts = {.fold = f, .size = (f.n_gone + 63) / 64};
        parallel_for(threads, 64, 1, parts_range, &parts);
        out[0] = start_d(id);
        for (int i = 0; i < 64; i++)
            out[0] = join(id, out[0], parts.out[i]);
        return;
    }
    int64_t kept_step = f.kept.stride[f.kept.n - 1], gone_step = f.gone.stride[f.gone.n - 1];
    bool columns = f.kept.size[f.kept.n - 1] >= 8 && kept_step < gone_step;
    int64_t grain = GRAIN / f.n_gone + 1;
    parallel_for(threads, f.n_kept, columns && grain < 64 ? 64 : grain,
                 columns ? columns_range : rows_range, &f);
}

void fold_i(const Eager *x, FoldId id, const Tensor *in, uint64_t mask, int64_t *out) {
    Fold f = fold_setup(id, in, mask);
    f.out_i = out;
    if (f.n_gone == 0)
        for (int64_t k = 0; k < f.n_kept; k++)
            out[k] = start_i(id);
    else if (f.n_kept)
        parallel_for(x->c->threads, f.n_kept, GRAIN / f.n_gone + 1, rows_range, &f);
}
