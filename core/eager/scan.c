// scan.c: running sums and products, and histograms.
#include "core/eager/kernel.h"

#include <math.h>
#include <string.h>

#include "core/eager/loops.h"

typedef struct Scan {
    Runs in, out;
    const Tensor *t;
    Tensor *to;
    char how; // + * l
} Scan;

static void scan_run(const Scan *s, int64_t r, double *x, int64_t *n) {
    const char *from = at_elem(s->t, run_start(&s->in, r));
    char *to = at_elem(s->to, run_start(&s->out, r));
    int64_t len = s->in.len;
    if (is_int_like(s->to->dtype)) {
        uint64_t acc = s->how == '*';
        bool in_place = s->t->dtype == DT_i64 && s->to->dtype == DT_i64 && s->in.step == 1 &&
                        s->out.step == 1;
        const int64_t *v = in_place ? (const int64_t *)(const void *)from : n;
        int64_t *sum = in_place ? (int64_t *)(void *)to : n;
        if (!in_place)
            load_i(s->t->dtype, from, s->in.step, len, n);
        if (s->how == '*')
            for (int64_t i = 0; i < len; i++)
                sum[i] = (int64_t)(acc *= (uint64_t)v[i]);
        else
            for (int64_t i = 0; i < len; i++)
                sum[i] = (int64_t)(acc += (uint64_t)v[i]);
        if (!in_place)
            store_i(s->to->dtype, to, s->out.step, len, n);
        return;
    }
    double acc = s->how == '*' ? 1 : s->how == '+' ? 0 : -(double)INFINITY;
    load_d(s->t->dtype, from, s->in.step, len, x);
    for (int64_t i = 0; i < len; i++)
        x[i] = acc = s->how == '*'                ? acc * x[i]
                     : s->how == '+'              ? acc + x[i]
                     : acc != acc || x[i] != x[i] ? (double)NAN
                                                  : special_logaddexp(acc, x[i]);
    store_d(s->to->dtype, to, s->out.step, len, x);
}

// Neighbouring runs whose elements lie apart: a row of sums goes down them.
enum { COLUMNS = 128 };
VECTORED static void scan_block(const Scan *s, int64_t r, int64_t wide) {
    const float *x = (const float *)(const void *)at_elem(s->t, run_start(&s->in, r));
    float *to = (float *)(void *)at_elem(s->to, run_start(&s->out, r));
    double acc[COLUMNS];
    for (int64_t c = 0; c < wide; c++)
        acc[c] = s->how == '*';
    for (int64_t i = 0; i < s->in.len; i++, x += s->in.step, to += s->out.step)
        if (s->how == '*')
            for (int64_t c = 0; c < wide; c++)
                to[c] = (float)(acc[c] *= (double)x[c]);
        else
            for (int64_t c = 0; c < wide; c++)
                to[c] = (float)(acc[c] += (double)x[c]);
}

static void columns_range(void *ctx, int64_t begin, int64_t end) {
    const Scan *s = ctx;
    int64_t width = s->in.size[s->in.ndim - 1];
    for (int64_t r = begin; r < end;) {
        int64_t wide = width - r % width;
        wide = wide < COLUMNS ? wide : COLUMNS;
        wide = wide < end - r ? wide : end - r;
        scan_block(s, r, wide);
        r += wide;
    }
}

static bool by_columns(const Scan *s) {
    int last = s->in.ndim - 1;
    return s->how != 'l' && s->t->dtype == DT_f32 && s->to->dtype == DT_f32 && last >= 0 &&
           s->in.step > 1 && s->in.stride[last] == 1 && s->out.stride[last] == 1 &&
           s->in.size[last] >= 8;
}

// A sum waits for the one before it: so several runs go side by side.
enum { SIDES = 4 };
static void scan_sides(const Scan *s, int64_t r) {
    const float *x[SIDES];
    float *to[SIDES];
    double acc[SIDES];
    for (int j = 0; j < SIDES; j++) {
        x[j] = (const float *)(const void *)at_elem(s->t, run_start(&s->in, r + j));
        to[j] = (float *)(void *)at_elem(s->to, run_start(&s->out, r + j));
        acc[j] = s->how == '*';
    }
    if (s->how == '*')
        for (int64_t i = 0; i < s->in.len; i++)
            for (int j = 0; j < SIDES; j++)
                to[j][i] = (float)(acc[j] *= (double)x[j][i]);
    else
        for (int64_t i = 0; i < s->in.len; i++)
            for (int j = 0; j < SIDES; j++)
                to[j][i] = (float)(acc[j] += (double)x[j][i]);
}

static void scan_range(void *ctx, int64_t begin, int64_t end) {
    const Scan *s = ctx;
    Arena tmp = {0};
    bool plain = s->how != 'l' && s->t->dtype == DT_f32 && s->to->dtype == DT_f32 &&
                 s->in.step == 1 && s->out.step == 1;
    for (; plain && begin + SIDES <= end; begin += SIDES)
        scan_sides(s, begin);
    double *x = ARENA_ARRAY(&tmp, s->in.len + 1, double);
    int64_t *n = ARENA_ARRAY(&tmp, s->in.len + 1, int64_t);
    for (int64_t r = begin; r < end; r++)
        scan_run(s, r, x, n);
    arena_free(&tmp);
}

// (self, dim, *, dtype): the cast comes first.
static bool scan(K *k, char how) {
    const Tensor *t = k->in[0];
    Tensor *out = k->res[0];
    int dim;
    bool narrows = is_int_like(out->dtype) && !is_int_like(t->dtype);
    if (!k_dim(k, ki(k, 1, 0), t->ndim, &dim) ||
        ((narrows || out->dtype != t->dtype) && !(t = eager_contiguous(k->x, t, out->dtype))))
        return false;
    Scan s = {.in = runs_of(t, dim), .out = runs_of(out, dim), .t = t, .to = out, .how = how};
    if (s.in.len)
        parallel_for(k->x->c->threads, s.in.n, 16384 / s.in.len + 1,
                     by_columns(&s) ? columns_range : scan_range, &s);
    return true;
}

bool kern_cumsum(K *k) {
    return scan(k, '+');
}

bool kern_cumprod(K *k) {
    return scan(k, '*');
}

bool kern_logcumsumexp(K *k) {
    return scan(k, 'l');
}

// diff(self, n, dim, prepend, append)
bool kern_diff(K *k) {
    const Tensor *t = k->in[0];
    Value v = k->args[0];
    int dim;
    if (!t->ndim || !k_dim(k, ki(k, 2, -1), t->ndim, &dim))
        return k_fail(k, "RuntimeError: diff expects input to be at least one-dimensional");
    int64_t times = ki(k, 1, 1);
    if (times < 0)
        return k_fail(k, "RuntimeError: order must be non-negative but got %lld",
                      (long long)times);
    if (times == 0) {
        k->out = CALL(k, aten_clone_default, v);
        return eager_ok(k->x);
    }
    if (k_given(k, 3) || k_given(k, 4)) {
        Value parts = val_list(k->x->arena, VAL_list, 3);
        parts.n = 0;
        for (int i = 3; i != 5; i = i == 3 ? 0 : i == 0 ? 4 : 5)
            if (k_given(k, i))
                parts.at[parts.n++] = k->args[i];
        v = CALL(k, aten_cat_default, parts, INT(dim));
    }
    for (int64_t n; times > 0 && v.kind == VAL_tensor; times = n ? times - 1 : 0) {
        n = tensor_at(&v)->size[dim];
        int64_t len = n > 0 ? n - 1 : 0;
        Value hi = CALL(k, aten_narrow_default, v, INT(dim), INT(n > 0), INT(len));
        Value lo = CALL(k, aten_narrow_default, v, INT(dim), INT(0), INT(len));
        v = tensor_at(&v)->dtype == DT_b8 ? CALL(k, aten_logical_xor_default, hi, lo)
                                          : CALL(k, aten_sub_Tensor, hi, lo);
    }
    k->out = v;
    return eager_ok(k->x);
}

// bincount(self, weights, minlength)
bool kern_bincount(K *k) {
    const Tensor *in = k->in[0], *w = k->in[1];
    int64_t n = ki(k, 2, 0), top = -1;
    if (in->ndim != 1 || !is_int_like(in->dtype) || n < 0 ||
        (w && (w->ndim != 1 || w->size[0] != in->size[0])))
        return k_fail(k, "RuntimeError: bincount only supports 1-d non-negative integral inputs.");
    for (int64_t i = 0; i < in->size[0]; i++) {
        int64_t v = get_i(in, i * in->stride[0]);
        if (v < 0)
            return k_fail(k,
                          "RuntimeError: bincount only supports 1-d non-negative integral inputs.");
        top = v > top ? v : top;
    }
    n = top + 1 > n ? top + 1 : n;
    Tensor *out = eager_new(k->x, !w ? DT_i64 : w->dtype == DT_f32 ? DT_f32 : DT_f64, 1, &n);
    if (!out)
        return false;
    for (int64_t i = 0; i < in->size[0]; i++) {
        int64_t v = get_i(in, i * in->stride[0]);
        if (w)
            put_d(out, v, get_d(out, v) + get_d(w, i * w->stride[0]));
        else
            put_i(out, v, get_i(out, v) + 1);
    }
    k->out = tensor_value(k->x, out);
    return true;
}

// histograms

static bool data_range(K *k, const Tensor *in, double *lo, double *hi, double widen) {
    if (*lo == *hi && tensor_numel(in)) {
        *lo = (double)INFINITY;
        *hi = -(double)INFINITY;
        WALK (w, walk_tensors(&in, 1)) {
            double v = get_d(in, w.at[0]);
            *lo = v < *lo ? v : *lo;
            *hi = v > *hi ? v : *hi;
        }
    }
    if (*lo == *hi && !tensor_numel(in) && *lo == 0 && widen < 1) {
        *hi = 1; // histogram of nothing
    } else if (*lo == *hi) {
        *lo -= widen;
        *hi += widen;
    }
    return (isfinite(*lo) && isfinite(*hi)) ||
           k_fail(k, "RuntimeError: %s: range of [%g, %g] is not finite", k->op->name, *lo, *hi);
}

// Computed in the tensor's type, as the recorded results were.
static int64_t bin_of(DType d, double v, double lo, double hi, int64_t bins) {
    double at = d == DT_f64
                    ? (v - lo) * (double)bins / (hi - lo)
                    : (double)(((float)v - (float)lo) * (float)bins / ((float)hi - (float)lo));
    if (dtype_is_low(d)) {
        lo = round_to(d, lo);
        hi = round_to(d, hi);
        at = round_to(d, round_to(d, round_to(d, v - lo) * (double)bins) / round_to(d, hi - lo));
    }
    // A range that overflows gives NaN or infinity here.
    return !(at > 0) ? 0 : at >= (double)bins ? bins - 1 : (int64_t)at;
}

// histc(self, bins, min, max)
bool kern_histc(K *k) {
    const Tensor *in = k->in[0];
    Tensor *out = k->res[0];
    int64_t bins = tensor_numel(out);
    double lo = kf(k, 2, 0), hi = kf(k, 3, 0);
    if (bins < 1 || !data_range(k, in, &lo, &hi, 1))
        return bins < 1 ? k_fail(k, "RuntimeError: bins must be > 0") : false;
    WALK (w, walk_tensors(&in, 1)) {
        double v = get_d(in, w.at[0]);
        if (v >= lo && v <= hi) {
            int64_t b = bin_of(in->dtype, v, lo, hi, bins);
            put_d(out, b, get_d(out, b) + 1);
        }
    }
    return true;
}

static void edges(const Tensor *out, double lo, double hi, int64_t bins) {
    bool single = out->dtype != DT_f64;
    for (int64_t i = 0; i <= bins; i++) {
        double step =
            single ? (double)(((float)hi - (float)lo) / (float)bins) : (hi - lo) / (double)bins;
        double v = i < (bins + 1) / 2 ? lo + step * (double)i : hi - step * (double)(bins - i);
        if (single)
            v = i < (bins + 1) / 2 ? (double)((float)lo + (float)step * (float)i)
                                   : (double)((float)hi - (float)step * (float)(bins - i));
        put_d(out, i, v);
    }
}

// The bin of v among increasing edges, the last one closed; -1 outside.
static int64_t find_bin(const Tensor *edge, double v) {
    int64_t n = tensor_numel(edge), lo = 0, hi = n;
    if (n < 2 || !(v >= get_d(edge, 0)) || !(v <= get_d(edge, n - 1)))
        return -1;
    while (hi - lo > 1) {
        int64_t mid = (lo + hi) / 2;
        if (get_d(edge, mid) <= v)
            lo = mid;
        else
            hi = mid;
    }
    return lo >= n - 1 ? n - 2 : lo;
}

static void densities(Tensor *hist, Tensor *const *edge, int dims) {
    double sum = 0;
    int64_t n = tensor_numel(hist);
    for (int64_t i = 0; i < n; i++)
        sum += get_d(hist, i);
    for (int64_t i = 0; i < n; i++) {
        double volume = 1;
        int64_t rest = i;
        for (int d = dims - 1; d >= 0; d--) {
            int64_t b = rest % (tensor_numel(edge[d]) - 1);
            rest /= tensor_numel(edge[d]) - 1;
            volume *= get_d(edge[d], b + 1) - get_d(edge[d], b);
        }
        put_d(hist, i, get_d(hist, i) / (sum * volume));
    }
}

// Points (n, dims) into bins; uniform: edges are evenly spaced and the bin is computed.
static bool fill_histogram(K *k, const Tensor *points, const Tensor *weight, Tensor *hist,
                           Tensor *const *edge, int dims, bool uniform) {
    int64_t n = dims ? tensor_numel(points) / dims : 0, total = tensor_numel(hist);
    const Tensor *p = eager_contiguous(k->x, points, points->dtype),
                 *w = weight ? eager_contiguous(k->x, weight, weight->dtype) : NULL;
    if (!p || (weight && (!w || tensor_numel(w) != n)))
        return k_fail(k, "RuntimeError: %s: weight of another size than the input", k->op->name);
    double *sum = ARENA_ARRAY(k->x->arena, total + 1, double);
    for (int64_t i = 0; i < n; i++) {
        int64_t at = 0;
        bool inside = true;
        for (int d = 0; inside && d < dims; d++) {
            double v = get_d(p, i * dims + d), lo = get_d(edge[d], 0),
                   hi = get_d(edge[d], tensor_numel(edge[d]) - 1);
            int64_t bins = tensor_numel(edge[d]) - 1, b = find_bin(edge[d], v);
            if (uniform && b >= 0) {
                // Near an edge the computed bin is corrected by the edges themselves.
                int64_t guess = bin_of(points->dtype, v, lo, hi, bins);
                b = guess < bins && guess >= 0 ? find_bin(edge[d], v) : b;
            }
            inside = b >= 0;
            at = at * bins + b;
        }
        if (inside)
            sum[at] += w ? get_d(w, i) : 1;
    }
    store_d(hist->dtype, tensor_data(hist), 1, total, sum);
    return true;
}

// histogram.bin_ct(self, bins, *, range, weight, density), histogram.bins_tensor(self, bins, *,
// weight, density)
bool kern_histogram(K *k) {
    const Tensor *in = k->in[0], *bins = kt(k, 1);
    Tensor *edge = k->res[1];
    if (bins) {
        if (!copy_into(k->x, edge, bins))
            return false;
    } else {
        double range[2] = {0, 0};
        int r = karg(k, "range");
        for (int i = 0; i < 2 && k->args[r].kind != VAL_none && k->args[r].n == 2; i++)
            val_as_float(&k->args[r].at[i], &range[i]);
        if (tensor_numel(edge) < 2 || !data_range(k, in, &range[0], &range[1], 0.5))
            return false;
        edges(edge, range[0], range[1], tensor_numel(edge) - 1);
    }
    if (!fill_histogram(k, in, kt(k, karg(k, "weight")), k->res[0], &edge, 1, !bins))
        return false;
    if (kb(k, karg(k, "density")))
        densities(k->res[0], &edge, 1);
    return true;
}

static int64_t columns(const Tensor *t) {
    return t->ndim ? t->size[t->ndim - 1] : 0;
}

static bool histogramdd_edges(K *k, Tensor **edge) {
    const Tensor *in = eager_contiguous(k->x, k->in[0], k->in[0]->dtype);
    int64_t bins[TENSOR_DIMS], dims = columns(k->in[0]),
                               n = dims ? tensor_numel(k->in[0]) / dims : 0;
    const Value *range = &k->args[karg(k, "range")];
    if (!in || dims > TENSOR_DIMS || kints(k, 1, bins, TENSOR_DIMS) != dims)
        return k_fail(k, "RuntimeError: torch.histogramdd(): bins and dimensions differ");
    for (int64_t d = 0; d < dims; d++) {
        double lo = (double)INFINITY, hi = -(double)INFINITY;
        for (int64_t i = 0; i < n; i++) {
            double v = get_d(in, i * dims + d);
            lo = v < lo ? v : lo;
            hi = v > hi ? v : hi;
        }
        if (n == 0)
            lo = hi = 0;
        if (range->kind != VAL_none && range->n == 2 * dims) {
            val_as_float(&range->at[2 * d], &lo);
            val_as_float(&range->at[2 * d + 1], &hi);
        }
        if (lo == hi) {
            lo -= 0.5;
            hi += 0.5;
        }
        int64_t size = bins[d] + 1;
        edge[d] = bins[d] < 1 ? NULL : eager_new(k->x, in->dtype, 1, &size);
        if (!edge[d])
            return false;
        edges(edge[d], lo, hi, bins[d]);
    }
    return true;
}

bool kern_histogramdd_edges(K *k) {
    Tensor *edge[TENSOR_DIMS];
    int dims = (int)columns(k->in[0]);
    if (!histogramdd_edges(k, edge))
        return false;
    k->out = val_list(k->x->arena, VAL_list, dims);
    for (int d = 0; d < dims; d++)
        k->out.at[d] = tensor_value(k->x, edge[d]);
    return true;
}

// _histogramdd_from_bin_cts, _histogramdd_from_bin_tensors
bool kern_histogramdd(K *k) {
    Tensor *edge[TENSOR_DIMS] = {NULL};
    int dims = (int)columns(k->in[0]);
    int64_t size[TENSOR_DIMS];
    bool counts = strcmp(k->op->name, "_histogramdd_from_bin_cts") == 0;
    if (dims > TENSOR_DIMS || (counts && !histogramdd_edges(k, edge)))
        return false;
    for (int d = 0; d < dims; d++) {
        const Tensor *t = counts ? edge[d] : d < k->args[1].n ? tensor_at(&k->args[1].at[d]) : NULL;
        edge[d] = t ? eager_contiguous(k->x, t, t->dtype) : NULL;
        if (!edge[d] || tensor_numel(edge[d]) < 1)
            return k_fail(k, "RuntimeError: torch.histogramdd(): a sequence of edges is missing");
        size[d] = tensor_numel(edge[d]) - 1;
    }
    Tensor *hist = eager_new(k->x, k->in[0]->dtype, dims, size);
    if (!hist || !fill_histogram(k, k->in[0], kt(k, karg(k, "weight")), hist, edge, dims, counts))
        return false;
    if (kb(k, karg(k, "density")))
        densities(hist, edge, dims);
    k->out = tensor_value(k->x, hist);
    return true;
}
