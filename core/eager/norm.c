// norm.c: the normalisations, row by row in double.
#include "core/eager/fold.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "core/eager/loops.h"

enum { GRAIN = 16384 };

// layer and group norm: rows of a contiguous input are normalised, then scaled per element or per
// channel.

typedef struct Affine {
    const double *w, *b; // NULL: 1 and 0
    int64_t period;      // elements in a row that share one weight; 0: one weight an element
    int64_t channels;    // weights there are
    int64_t first;       // weights of row r begin at r * first % channels
} Affine;

typedef struct Rows {
    const Tensor *x;
    Tensor *y;
    int64_t rows, len;
    double eps;
    double *mean, *rstd; // (rows)
    Affine a;
    bool rms; // no mean is taken off
} Rows;

VECTORED static void moments(int64_t n, const double *x, double *mean, double *var) {
    double lane[8] = {0}, sum = 0;
    int64_t i = 0;
    for (; i + 8 <= n; i += 8)
        for (int j = 0; j < 8; j++)
            lane[j] += x[i + j];
    for (; i < n; i++)
        sum += x[i];
    for (int j = 0; j < 8; j++)
        sum += lane[j];
    *mean = sum / (double)n;
    double m = *mean;
    memset(lane, 0, sizeof lane);
    sum = 0;
    for (i = 0; i + 8 <= n; i += 8)
        for (int j = 0; j < 8; j++)
            lane[j] += (x[i + j] - m) * (x[i + j] - m);
    for (; i < n; i++)
        sum += (x[i] - m) * (x[i] - m);
    for (int j = 0; j < 8; j++)
        sum += lane[j];
    *var = sum / (double)n;
}

// The same of floats.
VECTORED static void moments_f(int64_t n, const float *x, double *mean, double *var) {
    double lane[16] = {0}, sum = 0;
    int64_t i = 0;
    for (; i + 16 <= n; i += 16)
        for (int j = 0; j < 16; j++)
            lane[j] += (double)x[i + j];
    for (; i < n; i++)
        sum += (double)x[i];
    for (int j = 0; j < 16; j++)
        sum += lane[j];
    double m = *mean = sum / (double)n;
    memset(lane, 0, sizeof lane);
    sum = 0;
    for (i = 0; i + 16 <= n; i += 16)
        for (int j = 0; j < 16; j++)
            lane[j] += ((double)x[i + j] - m) * ((double)x[i + j] - m);
    for (; i < n; i++)
        sum += ((double)x[i] - m) * ((double)x[i] - m);
    for (int j = 0; j < 16; j++)
        sum += lane[j];
    *var = sum / (double)n;
}

// y = (x - mean) rstd w + b, one weight an element or one for all.
VECTORED static void scale_f(int64_t n, const float *x, double mean, double rstd, const double *w,
                             const double *b, float *y) {
    if (w && b)
        for (int64_t i = 0; i < n; i++)
            y[i] = (float)(((double)x[i] - mean) * rstd * w[i] + b[i]);
    else
        for (int64_t i = 0; i < n; i++)
            y[i] = (float)(((double)x[i] - mean) * rstd * (w ? w[i] : 1) + (b ? b[i] : 0));
}

VECTORED static void affine_f(int64_t n, const float *x, double mean, double rstd, double scale,
                              double shift, float *y) {
    for (int64_t i = 0; i < n; i++)
        y[i] = (float)(((double)x[i] - mean) * rstd * scale + shift);
}

static void scale_row_f(const Affine *a, int64_t row, int64_t n, const float *x, double mean,
                        double rstd, float *y) {
    if (!a->period) {
        scale_f(n, x, mean, rstd, a->w, a->b, y);
        return;
    }
    for (int64_t i = 0, c = row * a->first % a->channels; i < n; i += a->period, c++)
        affine_f(a->period, x + i, mean, rstd, a->w ? a->w[c] : 1, a->b ? a->b[c] : 0, y + i);
}

static void scale_row(const Affine *a, int64_t row, int64_t n, double *x) {
    if (!a->w && !a->b)
        return;
    if (!a->period) {
        for (int64_t i = 0; a->w && i < n; i++)
            x[i] *= a->w[i];
        for (int64_t i = 0; a->b && i < n; i++)
            x[i] += a->b[i];
        return;
    }
    for (int64_t i = 0, c = row * a->first % a->channels; i < n; i += a->period, c++)
        for (int64_t j = 0; j < a->period; j++)
            x[i + j] = x[i + j] * (a->w ? a->w[c] : 1) + (a->b ? a->b[c] : 0);
}

static void norm_range(void *ctx, int64_t begin, int64_t end) {
    const Rows *v = ctx;
    bool floats = v->x->dtype == DT_f32 && v->y->dtype == DT_f32;
    Arena tmp = {0};
    double *x = floats ? NULL : ARENA_ARRAY(&tmp, v->len + 1, double);
    for (int64_t r = begin; r < end; r++) {
        double var;
        const float *f = (const float *)(const void *)at_elem(v->x, r * v->len);
        if (floats) {
            moments_f(v->len, f, &v->mean[r], &var);
        } else {
            load_d(v->x->dtype, at_elem(v->x, r * v->len), 1, v->len, x);
            moments(v->len, x, &v->mean[r], &var);
        }
        if (v->rms) {
            var += v->mean[r] * v->mean[r];
            v->mean[r] = 0;
        }
        v->rstd[r] = 1 / sqrt(var + v->eps);
        if (floats) {
            scale_row_f(&v->a, r, v->len, f, v->mean[r], v->rstd[r],
                        (float *)(void *)at_elem(v->y, r * v->len));
            continue;
        }
        for (int64_t i = 0; i < v->len; i++)
            x[i] = (x[i] - v->mean[r]) * v->rstd[r];
        scale_row(&v->a, r, v->len, x);
        store_d(v->y->dtype, at_elem(v->y, r * v->len), 1, v->len, x);
    }
    arena_free(&tmp);
}

static double *weights(K *k, const Tensor *t, int64_t n, double fill) {
    double *w = ARENA_ARRAY(k->x->arena, n + 1, double);
    if (!t) {
        for (int64_t i = 0; i < n; i++)
            w[i] = fill;
        return w;
    }
    int64_t i = 0;
    WALK (walk, walk_tensors(&t, 1))
        if (i < n)
            w[i++] = get_d(t, walk.at[0]);
    return w;
}

static bool normalise(K *k, const Tensor *t, int64_t rows, int64_t len, double eps, Affine a,
                      bool rms, double **mean, double **rstd) {
    const Tensor *x = eager_contiguous(k->x, t, t->dtype);
    Tensor *y = x ? dense_res(k, 0, k->res[0]->dtype) : NULL;
    if (!y)
        return false;
    Rows v = {.x = x, .y = y, .rows = rows, .len = len, .eps = eps, .a = a, .rms = rms};
    *mean = v.mean = ARENA_ARRAY(k->x->arena, rows + 1, double);
    *rstd = v.rstd = ARENA_ARRAY(k->x->arena, rows + 1, double);
    if (len == 0)
        for (int64_t i = 0; i < rows; i++) {
            v.mean[i] = (double)NAN;
            v.rstd[i] = (double)NAN;
        }
    else
        parallel_for(k->x->c->threads, rows, GRAIN / len + 1, norm_range, &v);
    return dense_done(k, 0, y);
}

static void put_rows(Tensor *t, const double *v, int64_t n) {
    int64_t i = 0;
    const Tensor *c = t;
    assert(v || !n);
    if (t)
        WALK (w, walk_tensors(&c, 1))
            if (i < n)
                put_d(t, w.at[0], v[i++]);
}

// native_layer_norm, layer_norm, rms_norm, _fused_rms_norm: (input, normalized_shape, weight,
// [bias,] eps)
static bool layer_norm(K *k, bool rms) {
    const Tensor *t = k->in[0], *w = kt(k, 2), *b = rms ? NULL : kt(k, 3);
    int64_t shape[TENSOR_DIMS], len = 1, rows = 1;
    int n = kints(k, 1, shape, TENSOR_DIMS), lead = t->ndim - n;
    bool fits = n >= 1 && lead >= 0;
    for (int i = 0; fits && i < n; i++) {
        fits = shape[i] == t->size[lead + i];
        len *= shape[i];
    }
    if (!fits || (w && tensor_numel(w) != len) || (b && tensor_numel(b) != len))
        return k_fail(k, "RuntimeError: Given normalized_shape, expected input with its sizes at "
                         "the end, and weight and "
                         "bias of that shape");
    for (int i = 0; i < lead; i++)
        rows *= t->size[i];
    // Of the type that it is computed in.
    double unit = t->dtype == DT_f64 ? 2.220446049250313e-16 : 1.1920928955078125e-07;
    double eps = kf(k, karg(k, "eps"), rms ? unit : 1e-5), *mean, *rstd;
    Affine a = {.w = w ? weights(k, w, len, 1) : NULL, .b = b ? weights(k, b, len, 0) : NULL};
    if (!normalise(k, t, rows, len, eps, a, rms, &mean, &rstd))
        return false;
    if (rms) {
        put_rows(k->res[1], rstd, rows);
        return true;
    }
    put_rows(k->res[1], mean, rows);
    put_rows(k->res[2], rstd, rows);
    return true;
}

bool kern_layer_norm(K *k) {
    return layer_norm(k, false);
}

bool kern_rms_norm(K *k) {
    return layer_norm(k, true);
}

enum { MOST_EMPTY = 1 << 24 }; // groups without an element; others are no more than elements

static bool group_norm(K *k, const Tensor *t, const Tensor *w, const Tensor *b, int64_t n,
                       int64_t c, int64_t hw, int64_t groups, double eps) {
    if (groups < 1 || c % groups || n < 0 || c < 0 || hw < 0 || n * c * hw != tensor_numel(t) ||
        (w && tensor_numel(w) != c) || (b && tensor_numel(b) != c))
        return k_fail(k,
                      "RuntimeError: Expected number of channels in input to be divisible by "
                      "num_groups, but got input "
                      "with %lld channels and num_groups=%lld",
                      (long long)c, (long long)groups);
    double *mean, *rstd;
    int64_t rows;
    if (__builtin_mul_overflow(n, groups, &rows) || (rows > MOST_EMPTY && rows > tensor_numel(t)))
        return k_fail(k, "RuntimeError: %s: statistics of %lld x %lld empty groups are too many",
                      k->op->name, (long long)n, (long long)groups);
    Affine a = {.w = w ? weights(k, w, c, 1) : NULL,
                .b = b ? weights(k, b, c, 0) : NULL,
                .period = hw,
                .channels = c,
                .first = c / groups};
    if (!normalise(k, t, rows, c / groups * hw, eps, a, false, &mean, &rstd))
        return false;
    put_rows(k->res[1], mean, rows);
    put_rows(k->res[2], rstd, rows);
    return true;
}

// (input, weight, bias, N, C, HxW, group, eps)
bool kern_native_group_norm(K *k) {
    return group_norm(k, k->in[0], k->in[1], k->in[2], ki(k, 3, 0), ki(k, 4, 0), ki(k, 5, 0),
                      ki(k, 6, 1), kf(k, 7, 1e-5));
}

// (input, num_groups, weight, bias, eps, cudnn_enabled)
bool kern_group_norm(K *k) {
    const Tensor *t = k->in[0];
    int64_t hw = 1;
    if (t->ndim < 2)
        return k_fail(
            k, "RuntimeError: Expected at least 2 dimensions for input tensor but received %d",
            t->ndim);
    for (int i = 2; i < t->ndim; i++)
        hw *= t->size[i];
    return group_norm(k, t, kt(k, 2), kt(k, 3), t->size[0], t->size[1], hw, ki(k, 1, 1),
                      kf(k, 4, 1e-5));
}

// batch norm: statistics of each channel, or the running ones.

typedef struct Channels {
    const Tensor *x;
    Tensor *y;
    int64_t c, inner;
    const double *scale, *shift; // (c): y = x scale + shift
} Channels;

static void channel_range(void *ctx, int64_t begin, int64_t end) {
    enum { PART = 512 };
    const Channels *v = ctx;
    double buf[PART];
    for (int64_t p = begin; p < end; p++) {
        double scale = v->scale[p % v->c], shift = v->shift[p % v->c];
        if (v->x->dtype == DT_f32 && v->y->dtype == DT_f32) {
            affine_f(v->inner, (const float *)(const void *)at_elem(v->x, p * v->inner), 0, 1,
                     scale, shift, (float *)(void *)at_elem(v->y, p * v->inner));
            continue;
        }
        for (int64_t i = 0; i < v->inner; i += PART) {
            int64_t n = v->inner - i < PART ? v->inner - i : PART;
            load_d(v->x->dtype, at_elem(v->x, p * v->inner + i), 1, n, buf);
            for (int64_t j = 0; j < n; j++)
                buf[j] = buf[j] * scale + shift;
            store_d(v->y->dtype, at_elem(v->y, p * v->inner + i), 1, n, buf);
        }
    }
}

typedef struct Stats {
    double *mean, *var, *rstd, *unbiased; // (c)
} Stats;

static uint64_t all_but_channels(const Tensor *t) {
    return ((1ull << t->ndim) - 1) & ~2ull;
}

static void batch_stats(K *k, const Tensor *x, double eps, Stats *s) {
    int64_t c = x->size[1];
    double count = (double)fold_elements(x, all_but_channels(x));
    fold_d(k->x, FOLD_sum, x, all_but_channels(x), NULL, 0, s->mean);
    for (int64_t i = 0; i < c; i++)
        s->mean[i] /= count;
    fold_d(k->x, FOLD_spread, x, all_but_channels(x), s->mean, 0, s->var);
    for (int64_t i = 0; i < c; i++) {
        s->unbiased[i] = s->var[i] / (count - 1);
        s->var[i] /= count;
        double var = x->dtype == DT_f64 ? s->var[i] : (double)(float)s->var[i]; // may overflow
        s->rstd[i] = 1 / sqrt(var + eps);
    }
}

static bool channels_last(const Tensor *x) {
    static const int order[] = {1, 3, 2, 0};
    int64_t step = 1;
    for (int i = 0; x->ndim == 4 && i < 4; i++) {
        int d = order[i];
        if (x->size[d] != 1 && x->stride[d] != step)
            return false;
        step *= x->size[d];
    }
    return x->ndim == 4;
}

// Where all is bfloat16, a dense input has its sum of squares stored in it, and the quotient by its
// count; channels that lie innermost have their mean so before the squares. float16 keeps floats.
static bool sums_are_low(const Tensor *x, DType saved) {
    return saved == DT_bf16 && (tensor_is_contiguous(x) || channels_last(x));
}

static void round_stats(K *k, const Tensor *x, double eps, Stats *s) {
    double count = (double)fold_elements(x, all_but_channels(x));
    int64_t c = x->size[1];
    bool innermost = !tensor_is_contiguous(x) || axis_of(x, 1).inner == 1;
    for (int64_t i = 0; innermost && i < c; i++)
        s->mean[i] = round_to(DT_bf16, s->mean[i]);
    if (innermost)
        fold_d(k->x, FOLD_spread, x, all_but_channels(x), s->mean, 0, s->var);
    for (int64_t i = 0; i < c; i++) {
        double sum = round_to(DT_bf16, innermost ? s->var[i] : s->var[i] * count);
        s->var[i] = round_to(DT_bf16, sum / count);
        s->unbiased[i] = round_to(DT_bf16, sum / (count - 1));
        s->rstd[i] = 1 / sqrt(s->var[i] + eps);
    }
}

static void update(const Tensor *running, const double *v, double momentum) {
    if (running)
        for (int64_t i = 0; i < running->size[0]; i++) {
            int64_t e = i * running->stride[0];
            put_d(running, e, momentum * v[i] + (1 - momentum) * get_d(running, e));
        }
}

typedef struct BatchNorm {
    const Tensor *x, *w, *b, *mean, *var;
    bool train;
    double momentum, eps;
    Tensor *mean_out, *var_out; // new running statistics; NULL: kept
} BatchNorm;

static bool batch_norm(K *k, const BatchNorm *n, Stats *s) {
    const Tensor *x = n->x;
    if (x->ndim < 2)
        return k_fail(k,
                      "RuntimeError: batch_norm expects an input of at least 2 dimensions, got %d",
                      x->ndim);
    int64_t c = x->size[1];
    const Tensor *per_channel[] = {n->w, n->b, n->mean, n->var};
    for (int i = 0; i < 4; i++)
        if (per_channel[i] && (per_channel[i]->ndim != 1 || per_channel[i]->size[0] != c))
            return k_fail(k,
                          "RuntimeError: batch_norm: weight, bias and running statistics should "
                          "contain %lld elements",
                          (long long)c);
    if (!n->train && (!n->mean || !n->var))
        return k_fail(
            k, "RuntimeError: running_mean and running_var must be defined in evaluation mode");
    double **all[] = {&s->mean, &s->var, &s->rstd, &s->unbiased};
    for (int i = 0; i < 4; i++)
        *all[i] = ARENA_ARRAY(k->x->arena, c + 1, double);
    // Saved statistics are read back as they are stored.
    DType saved = k->n_res > 2 && k->res[1]->dtype != DT_none ? k->res[1]->dtype
                  : n->w                                      ? n->w->dtype
                                                              : x->dtype;
    if (n->train) {
        batch_stats(k, x, n->eps, s);
        if (sums_are_low(x, saved))
            round_stats(k, x, n->eps, s);
        update(n->mean_out, s->mean, n->momentum);
        update(n->var_out, s->unbiased, n->momentum);
    } else {
        s->mean = weights(k, n->mean, c, 0);
        s->var = weights(k, n->var, c, 0);
        for (int64_t i = 0; i < c; i++)
            s->rstd[i] = 1 / sqrt(s->var[i] + n->eps);
    }
    for (int64_t i = 0; n->train && i < c; i++) {
        s->mean[i] = round_to(saved, s->mean[i]);
        s->rstd[i] = round_to(saved, s->rstd[i]);
    }
    double *scale = weights(k, n->w, c, 1), *shift = weights(k, n->b, c, 0);
    for (int64_t i = 0; i < c; i++) {
        scale[i] *= s->rstd[i];
        shift[i] -= s->mean[i] * scale[i];
    }
    const Tensor *dense = eager_contiguous(k->x, x, x->dtype);
    Tensor *y = dense ? dense_res(k, 0, k->res[0]->dtype) : NULL;
    if (!y)
        return false;
    Channels v = {
        .x = dense, .y = y, .c = c, .inner = axis_of(x, 1).inner, .scale = scale, .shift = shift};
    if (v.inner && c)
        parallel_for(k->x->c->threads, x->size[0] * c, GRAIN / v.inner + 1, channel_range, &v);
    return dense_done(k, 0, y);
}

static int64_t fill_stats(K *k, const BatchNorm *n, const Stats *s) {
    int64_t c = n->x->size[1];
    for (int r = 1; r <= 2 && r < k->n_res; r++)
        if (k->res[r] && tensor_numel(k->res[r]) == c)
            put_rows(k->res[r], r == 1 ? s->mean : s->rstd, c);
    return c;
}

static bool finish_batch_norm(K *k, BatchNorm *n, bool functional) {
    Stats s = {0};
    if (functional) {
        int first = k->n_res - 2;
        n->mean_out = k->res[first];
        n->var_out = k->res[first + 1];
        bool given = n->mean && n->var && n->mean->ndim == 1 && n->var->ndim == 1 &&
                     n->mean_out->ndim == 1 && n->var_out->ndim == 1;
        if (!given || !copy_into(k->x, n->mean_out, n->mean) ||
            !copy_into(k->x, n->var_out, n->var))
            return k_fail(k, "RuntimeError: running statistics are missing");
    } else if (n->train) {
        n->mean_out = (Tensor *)(uintptr_t)n->mean;
        n->var_out = (Tensor *)(uintptr_t)n->var;
    }
    if (!batch_norm(k, n, &s))
        return false;
    fill_stats(k, n, &s);
    return true;
}

// (input, weight, bias, running_mean, running_var, training, momentum, eps)
bool kern_native_batch_norm(K *k) {
    BatchNorm n = {k->in[0], k->in[1],      k->in[2],       k->in[3], k->in[4],
                   kb(k, 5), kf(k, 6, 0.1), kf(k, 7, 1e-5), NULL,     NULL};
    return finish_batch_norm(k, &n, str_ends(k->op->name, "_functional"));
}

// The same without running statistics, always of the batch.
bool kern_batch_norm_no_stats(K *k) {
    BatchNorm n = {k->in[0], k->in[1],      k->in[2],       NULL, NULL,
                   kb(k, 3), kf(k, 4, 0.1), kf(k, 5, 1e-5), NULL, NULL};
    return finish_batch_norm(k, &n, false);
}

// (input, weight, bias, running_mean, running_var, momentum, eps), evaluating or updating
bool kern_batch_norm_eval(K *k) {
    BatchNorm n = {k->in[0], k->in[1],      k->in[2],       k->in[3], k->in[4],
                   false,    kf(k, 5, 0.1), kf(k, 6, 1e-5), NULL,     NULL};
    return finish_batch_norm(k, &n, false);
}

bool kern_batch_norm_update(K *k) {
    BatchNorm n = {k->in[0], k->in[1],      k->in[2],       k->in[3], k->in[4],
                   true,     kf(k, 5, 0.1), kf(k, 6, 1e-5), NULL,     NULL};
    return finish_batch_norm(k, &n, str_ends(k->op->name, "_functional"));
}

// (input, …, use_input_stats, …): a batch norm of one image each.
bool kern_instance_norm(K *k) {
    const Tensor *t = k->in[0];
    if (t->ndim < 3)
        return k_fail(k, "RuntimeError: instance_norm expects an input of at least 3 dimensions");
    int64_t n = t->size[0], c = t->size[1], size[TENSOR_DIMS];
    memcpy(size, t->size, sizeof size);
    size[0] = 1;
    size[1] = n * c;
    Value x = CALL(k, aten_reshape_default, k->args[0], ints_value(k->x, size, t->ndim)), p[4];
    int64_t times[1] = {n};
    for (int i = 0; i < 4; i++)
        p[i] = k_given(k, 1 + i)
                   ? CALL(k, aten_repeat_default, k->args[1 + i], ints_value(k->x, times, 1))
                   : NONE;
    Value y = CALL(k, aten_batch_norm_default, x, p[0], p[1], p[2], p[3], k->args[5], k->args[6],
                   k->args[7], BOOL(false));
    int64_t shape[2] = {n, c};
    for (int i = 2; i < 4; i++)
        if (k_given(k, 1 + i) && kb(k, 5)) {
            int64_t first[1] = {0};
            Value mean =
                CALL(k, aten_mean_dim, CALL(k, aten_view_default, p[i], ints_value(k->x, shape, 2)),
                     ints_value(k->x, first, 1), BOOL(false));
            if (mean.kind != VAL_tensor || !copy_into(k->x, kt(k, 1 + i), tensor_at(&mean)))
                return false;
        }
    Value back = CALL(k, aten_view_default, y, sizes_value(k->x, t));
    return back.kind == VAL_tensor && copy_into(k->x, k->res[0], tensor_at(&back));
}
