// softmax.c: softmax, log_softmax and their gradients. Exponentials are summed in double; where the
// dimension is dense in memory row by row, else some neighbouring rows at once, as memory has them.
#include <math.h>
#include <string.h>

#include "core/eager/loops.h"
#include "core/eager/single.h"

enum { GRAIN = 16384, WIDE = 32 };

typedef struct Job {
    Runs in, out, grad;
    const Tensor *t, *g; // input (or output of the forward), gradient
    Tensor *to;
    bool log, safe;
    bool wide;       // of doubles
    DType sum_dtype; // of the sum under a logarithm: the result's along the last dimension
} Job;

// What is computed of a row x of S, which o may be: its maximum, NaN if it has one; the sum of
// e^(x - m); the shares of the sum; the gradient of shares y.
#define ROW_OF(S, sfx, EXP)                                                                        \
    VECTORED static double max_##sfx(int64_t n, const S *x) {                                      \
        S lane[WIDE], m = -(S)INFINITY;                                                            \
        int nan[WIDE] = {0}, nans = 0;                                                             \
        int64_t i = 0;                                                                             \
        for (int j = 0; j < WIDE; j++)                                                             \
            lane[j] = m;                                                                           \
        for (; i + WIDE <= n; i += WIDE)                                                           \
            for (int j = 0; j < WIDE; j++) {                                                       \
                lane[j] = x[i + j] > lane[j] ? x[i + j] : lane[j];                                 \
                nan[j] |= x[i + j] != x[i + j];                                                    \
            }                                                                                      \
        for (; i < n; i++) {                                                                       \
            m = x[i] > m ? x[i] : m;                                                               \
            nans |= x[i] != x[i];                                                                  \
        }                                                                                          \
        for (int j = 0; j < WIDE; j++) {                                                           \
            m = lane[j] > m ? lane[j] : m;                                                         \
            nans |= nan[j];                                                                        \
        }                                                                                          \
        return nans ? (double)NAN : (double)m;                                                     \
    }                                                                                              \
    VECTORED static double sum_##sfx(int64_t n, const S *x, double m, double *e) {                 \
        double lane[WIDE] = {0}, sum = 0;                                                          \
        int64_t i = 0;                                                                             \
        for (; i + WIDE <= n; i += WIDE)                                                           \
            for (int j = 0; j < WIDE; j++) {                                                       \
                double v = EXP((double)x[i + j] - m);                                              \
                e[i + j] = v;                                                                      \
                lane[j] += v;                                                                      \
            }                                                                                      \
        for (; i < n; i++) {                                                                       \
            e[i] = EXP((double)x[i] - m);                                                          \
            sum += e[i];                                                                           \
        }                                                                                          \
        for (int w = WIDE / 2; w; w /= 2)                                                          \
            for (int j = 0; j < w; j++)                                                            \
                lane[j] += lane[j + w];                                                            \
        return sum + lane[0];                                                                      \
    }                                                                                              \
    VECTORED static void share_##sfx(int64_t n, const double *e, double sum, S *o) {               \
        for (int64_t i = 0; i < n; i++)                                                            \
            o[i] = (S)(e[i] / sum);                                                                \
    }                                                                                              \
    VECTORED static void less_##sfx(int64_t n, const S *x, double m, double log_sum, S *o) {       \
        for (int64_t i = 0; i < n; i++)                                                            \
            o[i] = (S)((double)x[i] - m - log_sum);                                                \
    }                                                                                              \
    VECTORED static void slope_##sfx(int64_t n, const S *y, const S *g, S *o, bool log) {          \
        double lane[WIDE] = {0}, sum = 0;                                                          \
        int64_t i = 0;                                                                             \
        for (; i + WIDE <= n; i += WIDE)                                                           \
            for (int j = 0; j < WIDE; j++)                                                         \
                lane[j] += (double)g[i + j] * (log ? 1.0 : (double)y[i + j]);                      \
        for (; i < n; i++)                                                                         \
            sum += (double)g[i] * (log ? 1.0 : (double)y[i]);                                      \
        for (int j = 0; j < WIDE; j++)                                                             \
            sum += lane[j];                                                                        \
        if (log)                                                                                   \
            for (i = 0; i < n; i++)                                                                \
                o[i] = (S)((double)g[i] - EXP((double)y[i]) * sum);                                \
        else                                                                                       \
            for (i = 0; i < n; i++)                                                                \
                o[i] = (S)(((double)g[i] - sum) * (double)y[i]);                                   \
    }                                                                                              \
    static void softmax_##sfx(const Job *j, int64_t n, const S *x, S *o, double *part) {           \
        double m = max_##sfx(n, x);                                                                \
        if (j->log) {                                                                              \
            double sum = 0;                                                                        \
            for (int64_t i = 0; i < n; i += PART)                                                  \
                sum += sum_##sfx(n - i < PART ? n - i : PART, x + i, m, part);                     \
            /* -inf - (-inf) is NaN. */                                                            \
            less_##sfx(n, x, m, log(round_to(j->sum_dtype, sum)), o);                              \
        } else if (j->safe && isinf(m) && m < 0) {                                                 \
            memset(o, 0, (size_t)n * sizeof *o);                                                   \
        } else {                                                                                   \
            share_##sfx(n, part, sum_##sfx(n, x, m, part), o);                                     \
        }                                                                                          \
    }
enum { PART = 512 };
ROW_OF(float, f, single_exp_below)
ROW_OF(double, d, exp)

// A row of a tensor in the type that is computed in: where it is, or in buf.
static const void *row_at(const Job *j, const Tensor *t, const Runs *r, int64_t row, void *buf) {
    const void *p = at_elem(t, run_start(r, row));
    if (r->step == 1 && t->dtype == (j->wide ? DT_f64 : DT_f32))
        return p;
    if (j->wide)
        load_d(t->dtype, p, r->step, r->len, buf);
    else
        load_f(t->dtype, p, r->step, r->len, buf);
    return buf;
}

static bool in_place(const Job *j) {
    return j->out.step == 1 && j->to->dtype == (j->wide ? DT_f64 : DT_f32);
}

static void put_row(const Job *j, int64_t row, const void *buf) {
    void *p = at_elem(j->to, run_start(&j->out, row));
    if (in_place(j))
        return;
    if (j->wide)
        store_d(j->to->dtype, p, j->out.step, j->out.len, buf);
    else
        store_f(j->to->dtype, p, j->out.step, j->out.len, buf);
}

static void softmax_range(void *ctx, int64_t begin, int64_t end) {
    const Job *j = ctx;
    Arena tmp = {0};
    int64_t n = j->in.len;
    double *part = ARENA_ARRAY(&tmp, (j->log && n > PART ? PART : n) + 1, double),
           *buf = ARENA_ARRAY(&tmp, n + 1, double);
    for (int64_t r = begin; r < end; r++) {
        const void *x = row_at(j, j->t, &j->in, r, buf);
        void *o = in_place(j) ? at_elem(j->to, run_start(&j->out, r)) : (void *)buf;
        if (j->wide)
            softmax_d(j, n, x, o, part);
        else
            softmax_f(j, n, x, o, part);
        put_row(j, r, buf);
    }
    arena_free(&tmp);
}

// Columns: neighbouring runs of floats whose elements lie apart, COLUMNS at a time.
enum { COLUMNS = 64 };
typedef struct Block {
    const float *x;
    float *o;
    int64_t n, wide; // elements of a run, runs
    int64_t in, out; // from one element of a run to the next
} Block;

VECTORED static void block_peaks(const Block *b, double *m) {
    float top[COLUMNS];
    int nan[COLUMNS] = {0};
    for (int64_t c = 0; c < b->wide; c++)
        top[c] = -(float)INFINITY;
    for (int64_t i = 0; i < b->n; i++)
        for (int64_t c = 0; c < b->wide; c++) {
            float v = b->x[i * b->in + c];
            top[c] = v > top[c] ? v : top[c];
            nan[c] |= v != v;
        }
    for (int64_t c = 0; c < b->wide; c++)
        m[c] = nan[c] ? (double)NAN : (double)top[c];
}

VECTORED static void block_sums(const Block *b, const double *m, double *sum) {
    for (int64_t i = 0; i < b->n; i++)
        for (int64_t c = 0; c < b->wide; c++)
            sum[c] += single_exp_below((double)b->x[i * b->in + c] - m[c]);
}

VECTORED static void block_shares(const Block *b, const double *m, const double *sum) {
    for (int64_t i = 0; i < b->n; i++)
        for (int64_t c = 0; c < b->wide; c++)
            b->o[i * b->out + c] =
                (float)(single_exp_below((double)b->x[i * b->in + c] - m[c]) / sum[c]);
}

VECTORED static void block_less(const Block *b, const double *m, const double *log_sum) {
    for (int64_t i = 0; i < b->n; i++)
        for (int64_t c = 0; c < b->wide; c++)
            b->o[i * b->out + c] = (float)((double)b->x[i * b->in + c] - m[c] - log_sum[c]);
}

static void columns_range(void *ctx, int64_t begin, int64_t end) {
    const Job *j = ctx;
    int64_t width = j->in.size[j->in.ndim - 1];
    for (int64_t r = begin; r < end;) {
        int64_t column = r % width, wide = width - column;
        wide = wide < COLUMNS ? wide : COLUMNS;
        wide = wide < end - r ? wide : end - r;
        Block b = {(const float *)(const void *)at_elem(j->t, run_start(&j->in, r)),
                   (float *)(void *)at_elem(j->to, run_start(&j->out, r)),
                   j->in.len,
                   wide,
                   j->in.step,
                   j->out.step};
        double m[COLUMNS], sum[COLUMNS] = {0};
        block_peaks(&b, m);
        block_sums(&b, m, sum);
        if (j->log)
            for (int64_t c = 0; c < wide; c++)
                sum[c] = log((double)(float)sum[c]);
        if (j->log)
            block_less(&b, m, sum);
        else
            block_shares(&b, m, sum);
        r += wide;
    }
}

static bool by_columns(const Job *j) {
    int last = j->in.ndim - 1;
    return !j->wide && !j->safe && j->t->dtype == DT_f32 && j->to->dtype == DT_f32 &&
           j->in.step > 1 && j->out.step > 1 && last >= 0 && j->in.stride[last] == 1 &&
           j->out.stride[last] == 1 && j->in.size[last] >= 8;
}

static bool softmax(K *k, int dim_arg, bool log, bool safe) {
    const Tensor *t = k->in[0];
    int dim;
    if (!k_dim(k, ki(k, dim_arg, -1), t->ndim, &dim))
        return false;
    if (is_int_like(t->dtype)) {
        if (is_int_like(k->res[0]->dtype))
            return tensor_numel(t) == 0 ||
                   k_fail(
                       k,
                       "NotImplementedError: \"%s_lastdim_kernel_impl\" not implemented for '%s'",
                       log ? "log_softmax" : "softmax", dtype_info[t->dtype].scalar_name);
    }
    // The cast to `dtype` comes first.
    if (k->res[0]->dtype != t->dtype && dtype_is_low(k->res[0]->dtype) &&
        !(t = eager_contiguous(k->x, t, k->res[0]->dtype)))
        return false;
    Job j = {.in = runs_of(t, dim),
             .out = runs_of(k->res[0], dim),
             .t = t,
             .to = k->res[0],
             .log = log,
             .safe = safe,
             .sum_dtype = k->res[0]->dtype,
             .wide = work_dtype(t->dtype) == DT_f64 || work_dtype(k->res[0]->dtype) == DT_f64};
    if (dtype_is_low(j.sum_dtype) && dim != t->ndim - 1)
        j.sum_dtype = DT_f32;
    if (j.in.len)
        parallel_for(k->x->c->threads, j.in.n, GRAIN / j.in.len + 1,
                     by_columns(&j) ? columns_range : softmax_range, &j);
    return true;
}

bool kern_softmax(K *k) {
    return softmax(k, 1, false, false);
}

bool kern_log_softmax(K *k) {
    return softmax(k, 1, true, false);
}

bool kern_safe_softmax(K *k) {
    return softmax(k, 1, false, true);
}

static void softmax_backward_range(void *ctx, int64_t begin, int64_t end) {
    const Job *j = ctx;
    Arena tmp = {0};
    int64_t n = j->in.len;
    double *y_buf = ARENA_ARRAY(&tmp, n + 1, double), *g_buf = ARENA_ARRAY(&tmp, n + 1, double);
    for (int64_t r = begin; r < end; r++) {
        const void *y = row_at(j, j->t, &j->in, r, y_buf), *g = row_at(j, j->g, &j->grad, r, g_buf);
        void *o = in_place(j) ? at_elem(j->to, run_start(&j->out, r)) : (void *)g_buf;
        if (j->wide)
            slope_d(n, y, g, o, j->log);
        else
            slope_f(n, y, g, o, j->log);
        put_row(j, r, g_buf);
    }
    arena_free(&tmp);
}

static bool softmax_backward(K *k, bool log) {
    const Tensor *g = k->in[0], *y = k->in[1];
    int dim;
    if (!k_dim(k, ki(k, 2, -1), y->ndim, &dim))
        return false;
    Job j = {.in = runs_of(y, dim),
             .grad = runs_of(g, dim),
             .out = runs_of(k->res[0], dim),
             .t = y,
             .g = g,
             .to = k->res[0],
             .log = log,
             .wide = work_dtype(y->dtype) == DT_f64 || work_dtype(g->dtype) == DT_f64 ||
                     work_dtype(k->res[0]->dtype) == DT_f64};
    if (j.in.n != j.grad.n || j.in.len != j.grad.len)
        return k_fail(k, "RuntimeError: gradient and output of softmax have different sizes");
    if (j.in.len)
        parallel_for(k->x->c->threads, j.in.n, GRAIN / j.in.len + 1, softmax_backward_range, &j);
    return true;
}

bool kern_softmax_backward(K *k) {
    return softmax_backward(k, false);
}

bool kern_log_softmax_backward(K *k) {
    return softmax_backward(k, true);
}
