// norm_backward.c: gradients of the normalisations: layer, RMS, group and batch norm, of floats or
// doubles, sums in double.
// For a row of n elements with x^ = (x - mean) rstd and g = gradient times weight:
//   gradient of x = rstd (g - mean(g) - x^ mean(g x^))
#include "core/eager/kernel.h"

#include <math.h>
#include <string.h>

#include "core/eager/loops.h"

enum { GRAIN = 16384, ROWS = 4, PARTS = 16 };

typedef struct Grads {
    Tensor *x, *w, *b; // results, NULL where they are not asked for
    double *gw, *gb;   // sums for weight and bias
} Grads;

static Grads grads_of(K *k, int64_t weights) {
    Grads g = {0};
    bool list = k->out.kind == VAL_tuple;
    g.x = list && k->out.n > 0 ? tensor_at(&k->out.at[0]) : NULL;
    g.w = list && k->out.n > 1 ? tensor_at(&k->out.at[1]) : NULL;
    g.b = list && k->out.n > 2 ? tensor_at(&k->out.at[2]) : NULL;
    g.gw = ARENA_ARRAY(k->x->arena, weights + 1, double);
    g.gb = ARENA_ARRAY(k->x->arena, weights + 1, double);
    return g;
}

static void put_all(Tensor *t, const double *v) {
    const Tensor *c = t;
    int64_t i = 0;
    if (t)
        WALK (w, walk_tensors(&c, 1))
            put_d(t, w.at[0], v[i++]);
}

static double *all_of(K *k, const Tensor *t, int64_t n, double fill) {
    double *v = ARENA_ARRAY(k->x->arena, n + 1, double);
    int64_t i = 0;
    if (!t)
        for (; i < n; i++)
            v[i] = fill;
    else
        WALK (w, walk_tensors(&t, 1))
            if (i < n)
                v[i++] = get_d(t, w.at[0]);
    return v;
}

// Rows of n elements; the gradient of a row's x into `to`, the shares of weight and bias in sums of
// their own.
typedef struct Back {
    const void *x, *g; // (rows, n): input, gradient
    void *to;          // (rows, n)
    bool wide;         // of doubles
    int64_t rows, n;
    const double *mean, *rstd; // (rows)
    const double *w;           // (n), or (channels) if hw
    int64_t hw, channels;      // group norm: elements that share a weight, weights; else 0
    bool rms;                  // no mean was taken off
    int64_t parts;             // of the rows, with sums of their own
    double *gw, *gb;           // (parts, n), or (rows, n / hw)
} Back;

typedef double Lanes __attribute__((vector_size(64)));
enum { LANES = 8 };

// Sums of a piece of a row: of g w, and of g w x^.
#define BACK_OF(S, sfx)                                                                            \
    typedef S Lanes_##sfx __attribute__((vector_size(LANES * sizeof(S))));                         \
    VECTORED static void sums_##sfx(int64_t n, const S *x, const S *g, const double *w,            \
                                    double mean, double *sum, double *dot) {                       \
        Lanes s[2] = {0}, d[2] = {0}, weight;                                                      \
        Lanes_##sfx from_g, from_x;                                                                \
        int64_t i = 0;                                                                             \
        for (; i + 2 * LANES <= n; i += 2 * LANES)                                                 \
            for (int j = 0; j < 2; j++) {                                                          \
                memcpy(&from_g, g + i + j * LANES, sizeof from_g);                                 \
                memcpy(&from_x, x + i + j * LANES, sizeof from_x);                                 \
                Lanes v = __builtin_convertvector(from_g, Lanes);                                  \
                if (w) {                                                                           \
                    memcpy(&weight, w + i + j * LANES, sizeof weight);                             \
                    v *= weight;                                                                   \
                }                                                                                  \
                s[j] += v;                                                                         \
                d[j] += v * (__builtin_convertvector(from_x, Lanes) - mean);                       \
            }                                                                                      \
        for (; i < n; i++) {                                                                       \
            double v = (double)g[i] * (w ? w[i] : 1.0);                                            \
            s[0][0] += v;                                                                          \
            d[0][0] += v * ((double)x[i] - mean);                                                  \
        }                                                                                          \
        for (int j = 0; j < 2 * LANES; j++) {                                                      \
            *sum += s[j / LANES][j % LANES];                                                       \
            *dot += d[j / LANES][j % LANES];                                                       \
        }                                                                                          \
    }                                                                                              \
    /* to = (g w c - a) - (x - mean) b */                                                          \
    VECTORED static void slopes_##sfx(int64_t n, const S *x, const S *g, const double *w,          \
                                      double c, double mean, double a, double b, S *to) {          \
        if (w)                                                                                     \
            for (int64_t i = 0; i < n; i++)                                                        \
                to[i] = (S)((double)g[i] * w[i] * c - a - ((double)x[i] - mean) * b);              \
        else                                                                                       \
            for (int64_t i = 0; i < n; i++)                                                        \
                to[i] = (S)((double)g[i] * c - a - ((double)x[i] - mean) * b);                     \
    }                                                                                              \
    /* of ROWS rows, `next` elements apart */                                                      \
    VECTORED static void shares_##sfx(int64_t n, int64_t next, const S *x, const S *g,             \
                                      const double *mean, const double *rstd, double *gw,          \
                                      double *gb) {                                                \
        for (int64_t i = 0; i < n; i++) {                                                          \
            double w = gw[i], b = gb[i];                                                           \
            for (int r = 0; r < ROWS; r++) {                                                       \
                double v = (double)g[r * next + i];                                                \
                w += v * (((double)x[r * next + i] - mean[r]) * rstd[r]);                          \
                b += v;                                                                            \
            }                                                                                      \
            gw[i] = w, gb[i] = b;                                                                  \
        }                                                                                          \
    }                                                                                              \
    VECTORED static void share_##sfx(int64_t n, const S *x, const S *g, double mean, double rstd,  \
                                     double *gw, double *gb) {                                     \
        for (int64_t i = 0; i < n; i++) {                                                          \
            gw[i] += (double)g[i] * (((double)x[i] - mean) * rstd);                                \
            gb[i] += (double)g[i];                                                                 \
        }                                                                                          \
    }                                                                                              \
    static void row_##sfx(const Back *b, int64_t row) {                                            \
        const S *x = (const S *)b->x + row * b->n, *g = (const S *)b->g + row * b->n;              \
        S *to = (S *)b->to + row * b->n;                                                           \
        double sum = 0, dot = 0, r = b->rstd[row], m = b->mean[row], n = (double)b->n;             \
        int64_t hw = b->hw ? b->hw : b->n, each = b->n / hw;                                       \
        const double *wc = b->w + (b->hw ? row * each % b->channels : 0);                          \
        for (int64_t c = 0; c < each; c++) {                                                       \
            double s = 0, d = 0;                                                                   \
            sums_##sfx(hw, x + c * hw, g + c * hw, b->hw ? NULL : b->w, m, &s, &d);                \
            if (b->hw) {                                                                           \
                b->gw[row * each + c] = d * r;                                                     \
                b->gb[row * each + c] = s;                                                         \
            }                                                                                      \
            sum += s * (b->hw ? wc[c] : 1.0);                                                      \
            dot += d * (b->hw ? wc[c] : 1.0);                                                      \
        }                                                                                          \
        sum = b->rms ? 0 : sum / n;                                                                \
        for (int64_t c = 0; c < each; c++)                                                         \
            slopes_##sfx(hw, x + c * hw, g + c * hw, b->hw ? NULL : b->w,                          \
                         r * (b->hw ? wc[c] : 1.0), m, r * sum, r * r * r * dot / n, to + c * hw); \
    }                                                                                              \
    /* Gradients of rows and their shares of the weights', while they are in the cache. */         \
    static void part_##sfx(const Back *b, int64_t row, int64_t end, double *gw, double *gb) {      \
        for (int64_t n; row < end; row += n) {                                                     \
            const S *x = (const S *)b->x + row * b->n, *g = (const S *)b->g + row * b->n;          \
            n = end - row < ROWS ? end - row : ROWS;                                               \
            for (int64_t r = 0; r < n; r++)                                                        \
                row_##sfx(b, row + r);                                                             \
            if (n == ROWS)                                                                         \
                shares_##sfx(b->n, b->n, x, g, b->mean + row, b->rstd + row, gw, gb);              \
            for (int64_t r = 0; n < ROWS && r < n; r++)                                            \
                share_##sfx(b->n, x + r * b->n, g + r * b->n, b->mean[row + r], b->rstd[row + r],  \
                            gw, gb);                                                               \
        }                                                                                          \
    }
BACK_OF(float, f)
BACK_OF(double, d)

static void rows_range(void *ctx, int64_t begin, int64_t end) {
    const Back *b = ctx;
    for (int64_t row = begin; row < end; row++)
        if (b->wide)
            row_d(b, row);
        else
            row_f(b, row);
}

// Weights and biases of one per element of a row: parts of the rows have sums of their own, which
// do not depend on the threads.
static void parts_range(void *ctx, int64_t begin, int64_t end) {
    const Back *b = ctx;
    for (int64_t k = begin; k < end; k++) {
        int64_t from = b->rows * k / b->parts, to = b->rows * (k + 1) / b->parts;
        if (b->wide)
            part_d(b, from, to, b->gw + k * b->n, b->gb + k * b->n);
        else
            part_f(b, from, to, b->gw + k * b->n, b->gb + k * b->n);
    }
}

// Input, gradient and result in float, or in double if one of them is; false after an error.
// gx: the gradient that is asked for, NULL if none is; it is written in place if it can be.
static bool dense_args(K *k, const Tensor *g, const Tensor *x, const Tensor *gx, Back *b,
                       const Tensor **to) {
    DType d = work_dtype(x->dtype) == DT_f64 || work_dtype(g->dtype) == DT_f64 ? DT_f64 : DT_f32;
    const Tensor *dense_g = eager_contiguous(k->x, g, d), *dense_x = eager_contiguous(k->x, x, d);
    bool in_place = gx && gx->dtype == d && tensor_is_contiguous(gx);
    *to = !dense_g || !dense_x ? NULL : in_place ? gx : eager_like(k->x, x, d);
    if (!*to)
        return false;
    b->wide = d == DT_f64;
    b->g = tensor_data(dense_g);
    b->x = tensor_data(dense_x);
    b->to = tensor_data(*to);
    return true;
}

// native_layer_norm_backward(grad_out, input, normalized_shape, mean, rstd, weight, bias,
// output_mask), _fused_rms_norm_backward(grad_out, input, normalized_shape, rstd, weight,
// output_mask)
bool kern_layer_norm_backward(K *k) {
    bool rms = str_starts(k->op->name, "_fused_rms");
    const Tensor *gy = k->in[0], *x = k->in[1], *gx;
    const Tensor *mean = rms ? NULL : k->in[3], *rstd = k->in[rms ? 3 : 4],
                 *weight = k->in[rms ? 4 : 5];
    int64_t shape[TENSOR_DIMS], n = 1;
    int dims = kints(k, 2, shape, TENSOR_DIMS);
    bool fits = dims >= 0 && x && dims <= x->ndim;
    for (int i = 0; fits && i < dims; i++) {
        n *= shape[i];
        fits = shape[i] == x->size[x->ndim - dims + i];
    }
    if (!fits || !gy || !rstd || n < 1 || tensor_numel(x) % n ||
        tensor_numel(gy) != tensor_numel(x) || tensor_numel(rstd) != tensor_numel(x) / n ||
        (mean && tensor_numel(mean) != tensor_numel(rstd)) || (weight && tensor_numel(weight) != n))
        return k_fail(k, "RuntimeError: %s: sizes of gradient, input and statistics do not fit",
                      k->op->name);
    int64_t rows = tensor_numel(x) / n;
    Grads out = grads_of(k, n);
    bool shares = out.w || out.b;
    int64_t parts = !shares || rows < 8 ? 1 : rows / 8 < PARTS ? rows / 8 : PARTS;
    Back b = {.rows = rows,
              .n = n,
              .mean = all_of(k, mean, rows, 0),
              .rstd = all_of(k, rstd, rows, 1),
              .w = all_of(k, weight, n, 1),
              .rms = rms,
              .parts = parts,
              .gw = ARENA_ARRAY(k->x->arena, parts * n + 1, double),
              .gb = ARENA_ARRAY(k->x->arena, parts * n + 1, double)};
    if (!dense_args(k, gy, x, out.x, &b, &gx))
        return false;
    if (shares)
        parallel_for(k->x->c->threads, parts, GRAIN * parts / (rows * n + 1) + 1, parts_range, &b);
    else
        parallel_for(k->x->c->threads, rows, GRAIN / n + 1, rows_range, &b);
    for (int64_t part = 0; part < parts; part++)
        for (int64_t i = 0; i < n; i++) {
            out.gw[i] += b.gw[part * n + i];
            out.gb[i] += b.gb[part * n + i];
        }
    put_all(out.w, out.gw);
    put_all(out.b, out.gb);
    return !out.x || gx == out.x || copy_into(k->x, out.x, gx);
}

// native_group_norm_backward(grad_out, input, mean, rstd, weight, N, C, HxW, group, output_mask)
bool kern_group_norm_backward(K *k) {
    const Tensor *gy = k->in[0], *x = k->in[1], *gx;
    int64_t N = ki(k, 5, 0), C = ki(k, 6, 0), hw = ki(k, 7, 0), groups = ki(k, 8, 1);
    if (!gy || !x || groups < 1 || C % groups || N * C * hw != tensor_numel(x) ||
        tensor_numel(gy) != tensor_numel(x) || tensor_numel(k->in[2]) != N * groups ||
        tensor_numel(k->in[3]) != N * groups || (k->in[4] && tensor_numel(k->in[4]) != C))
        return k_fail(k, "RuntimeError: %s: sizes of gradient, input and statistics do not fit",
                      k->op->name);
    int64_t each = C / groups, n = each * hw;
    Grads out = grads_of(k, C);
    Back b = {.rows = N * groups,
              .n = n,
              .mean = all_of(k, k->in[2], N * groups, 0),
              .rstd = all_of(k, k->in[3], N * groups, 1),
              .w = all_of(k, k->in[4], C, 1),
              .hw = hw,
              .channels = C,
              .gw = ARENA_ARRAY(k->x->arena, N * C + 1, double),
              .gb = ARENA_ARRAY(k->x->arena, N * C + 1, double)};
    if (!dense_args(k, gy, x, out.x, &b, &gx))
        return false;
    if (n)
        parallel_for(k->x->c->threads, b.rows, GRAIN / n + 1, rows_range, &b);
    for (int64_t i = 0; i < N * C; i++) {
        out.gw[i % C] += b.gw[i];
        out.gb[i % C] += b.gb[i];
    }
    put_all(out.w, out.gw);
    put_all(out.b, out.gb);
    return !out.x || gx == out.x || copy_into(k->x, out.x, gx);
}

// Batch norm: channels of a (outer, channels, inner) input.
typedef struct Batch {
    Back b; // mean, rstd, w, gw, gb: (channels)
    Axis a;
    bool train; // statistics of the batch, which depend on x
} Batch;

static void channels_range(void *ctx, int64_t begin, int64_t end) {
    const Batch *v = ctx;
    const Back *b = &v->b;
    double n = (double)(v->a.outer * v->a.inner);
    for (int64_t c = begin; c < end; c++) {
        double sum = 0, dot = 0, m = b->mean[c], r = b->rstd[c], scale = b->w[c] * r;
        for (int64_t o = 0; o < v->a.outer; o++) {
            int64_t at = (o * v->a.n + c) * v->a.inner;
            if (b->wide)
                sums_d(v->a.inner, (const double *)b->x + at, (const double *)b->g + at, NULL, m,
                       &sum, &dot);
            else
                sums_f(v->a.inner, (const float *)b->x + at, (const float *)b->g + at, NULL, m,
                       &sum, &dot);
        }
        b->gw[c] = dot * r;
        b->gb[c] = sum;
        double less = v->train ? scale * sum / n : 0, by = v->train ? scale * r * r * dot / n : 0;
        for (int64_t o = 0; o < v->a.outer; o++) {
            int64_t at = (o * v->a.n + c) * v->a.inner;
            if (b->wide)
                slopes_d(v->a.inner, (const double *)b->x + at, (const double *)b->g + at, NULL,
                         scale, m, less, by, (double *)b->to + at);
            else
                slopes_f(v->a.inner, (const float *)b->x + at, (const float *)b->g + at, NULL,
                         scale, m, less, by, (float *)b->to + at);
        }
    }
}

// native_batch_norm_backward(grad_out, input, weight, running_mean, running_var, save_mean,
// save_invstd, train, eps, mask)
bool kern_batch_norm_backward(K *k) {
    const Tensor *gy = k->in[0], *x = k->in[1], *gx;
    bool train = kb(k, 7);
    double eps = kf(k, 8, 1e-5);
    if (!gy || !x || x->ndim < 2 || tensor_numel(gy) != tensor_numel(x))
        return k_fail(k, "RuntimeError: %s: sizes of gradient and input do not fit", k->op->name);
    Axis a = axis_of(x, 1);
    const Tensor *mean = train ? k->in[5] : k->in[3], *spread = train ? k->in[6] : k->in[4];
    const Tensor *each[] = {mean, spread, k->in[2]};
    for (int i = 0; i < 3; i++)
        if ((i < 2 && !each[i]) || (each[i] && tensor_numel(each[i]) != a.n))
            return k_fail(k, "RuntimeError: %s: statistics should contain %lld elements",
                          k->op->name, (long long)a.n);
    double *rstd = all_of(k, spread, a.n, 1);
    for (int64_t c = 0; !train && c < a.n; c++)
        rstd[c] = 1 / sqrt(rstd[c] + eps);
    Grads out = grads_of(k, a.n);
    Batch v = {.a = a,
               .train = train,
               .b = {.mean = all_of(k, mean, a.n, 0),
                     .rstd = rstd,
                     .w = all_of(k, k->in[2], a.n, 1),
                     .gw = out.gw,
                     .gb = out.gb}};
    if (!dense_args(k, gy, x, out.x, &v.b, &gx))
        return false;
    parallel_for(k->x->c->threads, a.n, GRAIN / (a.outer * a.inner + 1) + 1, channels_range, &v);
    put_all(out.w, out.gw);
    put_all(out.b, out.gb);
    return !out.x || gx == out.x || copy_into(k->x, out.x, gx);
}
