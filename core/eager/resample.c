// resample.c: upsample_* and their gradients. Along each spatial dimension an output place is a
// weighted sum of few input places (one, two or four); their products over the dimensions are what
// is added up.
#include "core/eager/kernel.h"

#include <math.h>
#include <string.h>

enum { SPACE = 3, TAPS = 4 };

typedef enum Method { NEAREST, NEAREST_EXACT, LINEAR, CUBIC } Method;

typedef struct Tap {
    int64_t at[TAPS]; // input places
    double weight[TAPS];
    int n;
} Tap;

typedef struct Resample {
    Method method;
    int space;
    bool align;
    bool narrow;      // weights are rounded to the type of the values
    const Tensor *in; // the smaller index space: (…, spatial)
    const Tensor *out;
    Tap *taps[SPACE]; // (out size), by spatial dimension
} Resample;

static Method method_of(const char *name) {
    return strstr(name, "nearest_exact") ? NEAREST_EXACT
           : strstr(name, "nearest")     ? NEAREST
           : strstr(name, "cubic")       ? CUBIC
                                         : LINEAR;
}

// Input elements an output element: by the factor if one is given, else by the sizes.
static double scale_of(const Resample *r, int64_t in, int64_t out, double factor) {
    if (r->align && r->method >= LINEAR)
        return out > 1 ? (double)(in - 1) / (double)(out - 1) : 0;
    double s = factor > 0 ? 1 / factor : (double)in / (double)out;
    return r->in->dtype == DT_f64 ? s : (float)s;
}

static int64_t clamped(int64_t i, int64_t n) {
    return i < 0 ? 0 : i >= n ? n - 1 : i;
}

// Keys' kernel with a = -0.75.
static double cubic(double x) {
    double a = -0.75, d = fabs(x);
    return d <= 1  ? ((a + 2) * d - (a + 3)) * d * d + 1
           : d < 2 ? ((a * d - 5 * a) * d + 8 * a) * d - 4 * a
                   : 0;
}

static Tap tap_of(const Resample *r, int64_t i, int64_t in, double scale) {
    Tap t = {.n = 1, .weight = {1}};
    bool exact = r->method == NEAREST_EXACT;
    if (r->method <= NEAREST_EXACT) {
        double at = r->in->dtype == DT_f64
                        ? ((double)i + (exact ? 0.5 : 0)) * scale
                        : (double)(((float)i + (exact ? 0.5F : 0.0F)) * (float)scale);
        t.at[0] = clamped((int64_t)floor(at), in);
        return t;
    }
    double at = r->align ? scale * (double)i : scale * ((double)i + 0.5) - 0.5;
    if (r->in->dtype != DT_f64)
        at = r->align ? (float)scale * (float)i : (float)scale * ((float)i + 0.5F) - 0.5F;
    if (r->method == LINEAR && at < 0)
        at = 0;
    int64_t low = (int64_t)floor(at);
    double part = at - (double)low;
    if (r->method == LINEAR) {
        low = clamped(low, in);
        if (r->narrow)
            part = round_to(r->in->dtype, part);
        t = (Tap){.n = 2, .at = {low, clamped(low + 1, in)}, .weight = {1 - part, part}};
        return t;
    }
    t.n = 4;
    for (int k = 0; k < 4; k++) {
        t.at[k] = clamped(low - 1 + k, in);
        t.weight[k] = cubic(part - (double)(k - 1));
    }
    return t;
}

static double factor_of(const K *k, int dim, int space) {
    int list = op_arg_index(k->op, "scale_factors");
    const Value *v = list >= 0 ? &k->args[list] : &k->args[k->op->n_args - space + dim];
    if (list >= 0 && (v->kind == VAL_list || v->kind == VAL_tuple))
        v = dim < v->n ? &v->at[dim] : NULL;
    double f;
    return v && val_as_float(v, &f) ? f : 0;
}

// PyTorch's general kernel keeps weights in the type of the values; bilinear images that are small,
// or channels_last with more than three channels, go through one that does not.
static bool rounds_weights(const Resample *r) {
    const Tensor *in = r->in;
    bool bilinear = r->method == LINEAR && r->space == 2;
    bool last = bilinear && in->stride[1] == 1 && in->size[1] > 3;
    return dtype_is_float(in->dtype) && !last &&
           !(bilinear && r->out->size[2] + r->out->size[3] <= 128);
}

static bool prepare(K *k, Resample *r) {
    const char *digit = strpbrk(k->op->name, "123");
    r->method = method_of(k->op->name);
    r->space = digit ? *digit - '0' : 0;
    int align = op_arg_index(k->op, "align_corners");
    r->align = align >= 0 && kb(k, align);
    if (r->space < 1 || r->in->ndim != r->space + 2 || r->out->ndim != r->in->ndim ||
        strstr(k->op->name, "_aa"))
        return k_fail(k, "RuntimeError: %s: input and output of %d dimensions are expected",
                      k->op->name, r->space + 2);
    r->narrow = rounds_weights(r);
    for (int d = 0; d < r->space; d++) {
        int64_t in = r->in->size[d + 2], out = r->out->size[d + 2];
        if (in < 1)
            return k_fail(k, "RuntimeError: %s: an empty spatial dimension", k->op->name);
        double scale = scale_of(r, in, out, factor_of(k, d, r->space));
        r->taps[d] = ARENA_ARRAY(k->x->arena, out + 1, Tap);
        for (int64_t i = 0; i < out; i++) {
            Tap *t = &r->taps[d][i];
            *t = tap_of(r, i, in, scale);
            for (int n = 0; n < t->n && r->narrow; n++)
                t->weight[n] = round_to(r->in->dtype, t->weight[n]);
        }
    }
    return true;
}

// The k-th product of taps at an output place: its offset in the input and its weight; false behind
// the last.
static bool product(const Resample *r, const int64_t *index, const Tensor *in, int k, int64_t *at,
                    double *weight) {
    *at = index[0] * in->stride[0] + index[1] * in->stride[1];
    *weight = 1;
    for (int d = r->space - 1; d >= 0; d--) {
        const Tap *t = &r->taps[d][index[d + 2]];
        *at += t->at[k % t->n] * in->stride[d + 2];
        *weight *= t->weight[k % t->n];
        k /= t->n;
    }
    return k == 0;
}

bool kern_upsample(K *k) {
    Resample r = {.in = k->in[0], .out = k->res[0]};
    if (!prepare(k, &r))
        return false;
    WALK(w, walk_tensors((const Tensor *const[]){r.out}, 1)) {
        double sum = 0, weight;
        int64_t at;
        for (int i = 0; product(&r, w.index, r.in, i, &at, &weight); i++)
            sum += weight == 0 && r.method == LINEAR ? 0 : weight * get_d(r.in, at);
        if (r.out->dtype == DT_u8 && r.method >= LINEAR)
            sum = sum < 0 ? 0 : sum > 255 ? 255 : floor(sum + 0.5);
        put_d(r.out, w.at[0], sum);
    }
    return true;
}

bool kern_upsample_backward(K *k) {
    Tensor *acc = eager_like(k->x, k->res[0], DT_f64);
    Resample r = {.in = acc, .out = k->in[0]};
    if (!acc)
        return false;
    Tensor typed = *acc; // places are computed in the type of the values
    typed.dtype = k->in[0]->dtype;
    r.in = &typed;
    if (!prepare(k, &r))
        return false;
    WALK(w, walk_tensors((const Tensor *const[]){r.out}, 1)) {
        double weight, g = get_d(r.out, w.at[0]);
        int64_t at;
        for (int i = 0; product(&r, w.index, acc, i, &at, &weight); i++)
            put_d(acc, at, get_d(acc, at) + weight * g);
    }
    return copy_into(k->x, k->res[0], acc);
}
