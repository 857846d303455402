// norm_backward.c: gradients of the normalisations: layer, RMS, group and batch norm, in double.
// For a row of n elements with x^ = (x - mean) rstd and g = gradient times weight:
//   gradient of x = rstd (g - mean(g) - x^ mean(g x^))
#include "core/eager/kernel.h"

#include <math.h>
#include <string.h>

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

static const double *all_of(K *k, const Tensor *t, int64_t n, double fill) {
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

// One row: x^ and g in place of x and gradient; the gradient of x into g. rms: no mean was taken
// off.
static void row_backward(int64_t n, double *x, double *g, double rstd, bool rms) {
    double sum = 0, dot = 0;
    for (int64_t i = 0; i < n; i++) {
        sum += g[i];
        dot += g[i] * x[i];
    }
    sum = rms ? 0 : sum / (double)n;
    dot /= (double)n;
    for (int64_t i = 0; i < n; i++)
        g[i] = rstd * (g[i] - sum - x[i] * dot);
}

// native_layer_norm_backward(grad_out, input, normalized_shape, mean, rstd, weight, bias,
// output_mask), _fused_rms_norm_backward(grad_out, input, normalized_shape, rstd, weight,
// output_mask)
bool kern_layer_norm_backward(K *k) {
    bool rms = str_starts(k->op->name, "_fused_rms");
    const Tensor *gy = eager_contiguous(k->x, k->in[0], DT_f64),
                 *x = eager_contiguous(k->x, k->in[1], DT_f64);
    const Tensor *mean = rms ? NULL : k->in[3], *rstd = k->in[rms ? 3 : 4],
                 *weight = k->in[rms ? 4 : 5];
    int64_t shape[TENSOR_DIMS], n = 1;
    int dims = kints(k, 2, shape, TENSOR_DIMS);
    for (int i = 0; i < dims; i++)
        n *= shape[i];
    if (!gy || !x || !rstd || n < 1 || tensor_numel(x) % n || tensor_numel(gy) != tensor_numel(x) ||
        tensor_numel(rstd) != tensor_numel(x) / n ||
        (mean && tensor_numel(mean) != tensor_numel(rstd)) || (weight && tensor_numel(weight) != n))
        return k_fail(k, "RuntimeError: %s: sizes of gradient, input and statistics do not fit",
                      k->op->name);
    int64_t rows = tensor_numel(x) / n;
    const double *m = all_of(k, mean, rows, 0), *r = all_of(k, rstd, rows, 1),
                 *w = all_of(k, weight, n, 1);
    Grads out = grads_of(k, n);
    double *px = tensor_data(x), *hat = ARENA_ARRAY(k->x->arena, n + 1, double),
           *g = ARENA_ARRAY(k->x->arena, n + 1, double);
    Tensor *gx = eager_like(k->x, k->in[1], DT_f64);
    if (!gx)
        return false;
    for (int64_t row = 0; row < rows; row++) {
        const double *gr = (const double *)tensor_data(gy) + row * n;
        for (int64_t i = 0; i < n; i++) {
            hat[i] = (px[row * n + i] - m[row]) * r[row];
            out.gw[i] += gr[i] * hat[i];
            out.gb[i] += gr[i];
            g[i] = gr[i] * w[i];
        }
        row_backward(n, hat, g, r[row], rms);
        memcpy((double *)tensor_data(gx) + row * n, g, (size_t)n * sizeof *g);
    }
    put_all(out.w, out.gw);
    put_all(out.b, out.gb);
    return !out.x || copy_into(k->x, out.x, gx);
}

// native_group_norm_backward(grad_out, input, mean, rstd, weight, N, C, HxW, group, output_mask)
bool kern_group_norm_backward(K *k) {
    const Tensor *gy = eager_contiguous(k->x, k->in[0], DT_f64),
                 *x = eager_contiguous(k->x, k->in[1], DT_f64);
    int64_t N = ki(k, 5, 0), C = ki(k, 6, 0), hw = ki(k, 7, 0), groups = ki(k, 8, 1);
    if (!gy || !x || groups < 1 || C % groups || N * C * hw != tensor_numel(x) ||
        tensor_numel(gy) != tensor_numel(x) || tensor_numel(k->in[2]) != N * groups ||
        tensor_numel(k->in[3]) != N * groups || (k->in[4] && tensor_numel(k->in[4]) != C))
        return k_fail(k, "RuntimeError: %s: sizes of gradient, input and statistics do not fit",
                      k->op->name);
    int64_t each = C / groups, n = each * hw;
    const double *m = all_of(k, k->in[2], N * groups, 0), *r = all_of(k, k->in[3], N * groups, 1),
                 *w = all_of(k, k->in[4], C, 1);
    Grads out = grads_of(k, C);
    double *hat = ARENA_ARRAY(k->x->arena, n + 1, double),
           *g = ARENA_ARRAY(k->x->arena, n + 1, double);
    Tensor *gx = eager_like(k->x, k->in[1], DT_f64);
    if (!gx)
        return false;
    for (int64_t row = 0; row < N * groups; row++) {
        const double *gr = (const double *)tensor_data(gy) + row * n,
                     *xr = (const double *)tensor_data(x) + row * n;
        for (int64_t i = 0; i < n; i++) {
            int64_t c = row % groups * each + i / hw;
            hat[i] = (xr[i] - m[row]) * r[row];
            out.gw[c] += gr[i] * hat[i];
            out.gb[c] += gr[i];
            g[i] = gr[i] * w[c];
        }
        row_backward(n, hat, g, r[row], false);
        memcpy((double *)tensor_data(gx) + row * n, g, (size_t)n * sizeof *g);
    }
    put_all(out.w, out.gw);
    put_all(out.b, out.gb);
    return !out.x || copy_into(k->x, out.x, gx);
}

// native_batch_norm_backward(grad_out, input, weight, running_mean, running_var, save_mean,
// save_invstd, train, eps, mask)
bool kern_batch_norm_backward(K *k) {
    const Tensor *gy = eager_contiguous(k->x, k->in[0], DT_f64),
                 *x = eager_contiguous(k->x, k->in[1], DT_f64);
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
    const double *m = all_of(k, mean, a.n, 0), *s = all_of(k, spread, a.n, 1),
                 *w = all_of(k, k->in[2], a.n, 1);
    Grads out = grads_of(k, a.n);
    Tensor *gx = eager_like(k->x, k->in[1], DT_f64);
    if (!gx)
        return false;
    double *to = tensor_data(gx), n = (double)(a.outer * a.inner);
    const double *px = tensor_data(x), *pg = tensor_data(gy);
    for (int64_t c = 0; c < a.n; c++) {
        double rstd = train ? s[c] : 1 / sqrt(s[c] + eps), sum = 0, dot = 0;
        for (int64_t o = 0; o < a.outer; o++)
            for (int64_t i = 0, at = (o * a.n + c) * a.inner; i < a.inner; i++, at++) {
                sum += pg[at];
                dot += pg[at] * (px[at] - m[c]);
            }
        out.gw[c] = dot * rstd;
        out.gb[c] = sum;
        for (int64_t o = 0; o < a.outer; o++)
            for (int64_t i = 0, at = (o * a.n + c) * a.inner; i < a.inner; i++, at++) {
                double hat = (px[at] - m[c]) * rstd;
                to[at] = w[c] * rstd * (train ? pg[at] - sum / n - hat * (dot * rstd / n) : pg[at]);
            }
    }
    put_all(out.w, out.gw);
    put_all(out.b, out.gb);
    return !out.x || copy_into(k->x, out.x, gx);
}
