// diff.c: how far two tensors are apart: absolute, relative, in units in the last place; which
// element first.
#include "core/tensor/tensor.h"

#include <assert.h>
#include <math.h>
#include <string.h>

// torch.testing's defaults.
static const struct {
    DType dtype;
    double rtol, atol;
} tolerances[] = {
    {DT_f16, 1e-3, 1e-5}, {DT_bf16, 1.6e-2, 1e-5}, {DT_f32, 1.3e-6, 1e-5}, {DT_f64, 1e-7, 1e-7},
    {DT_c32, 1e-3, 1e-5}, {DT_c64, 1.3e-6, 1e-5},  {DT_c128, 1e-7, 1e-7},
};

void dtype_tolerance(DType d, double *rtol, double *atol) {
    *rtol = *atol = 0;
    for (size_t i = 0; i < sizeof tolerances / sizeof *tolerances; i++)
        if (tolerances[i].dtype == d) {
            *rtol = tolerances[i].rtol;
            *atol = tolerances[i].atol;
        }
}

// Floats of one dtype as integers that count its steps; both zeros are 0.
static int64_t step_of(DType d, double v) {
    int64_t i;
    if (d == DT_f64 || d == DT_c128) {
        memcpy(&i, &v, sizeof i);
        return i < 0 ? -(i & INT64_MAX) : i;
    }
    if (dtype_is_low(d) || d == DT_c32) {
        int bits = d == DT_bf16 ? f32_to_bf16((float)v) : f64_to_f16(v);
        return bits & 0x8000 ? -(bits & 0x7fff) : bits;
    }
    float f = (float)v;
    int32_t w;
    memcpy(&w, &f, sizeof w);
    return w < 0 ? -(int64_t)(w & INT32_MAX) : w;
}

int64_t dtype_ulp_distance(DType d, double a, double b) {
    int64_t diff;
    if (__builtin_sub_overflow(step_of(d, a), step_of(d, b), &diff) || diff == INT64_MIN)
        return INT64_MAX;
    return diff < 0 ? -diff : diff;
}

static void mark_bad(TensorDiff *out, int64_t i) {
    if (out->bad++ == 0)
        out->first_bad = i;
}

static void compare_float(TensorDiff *out, DType d, int64_t i, double g, double w, double rtol,
                          double atol) {
    if (isnan(g) || isnan(w)) {
        if (isnan(g) && isnan(w))
            return;
        out->nan_differs = true;
        out->same_bits = false;
        mark_bad(out, i);
        return;
    }
    if (g != w || signbit(g) != signbit(w))
        out->same_bits = false;
    if (g == w)
        return;
    if (!isfinite(g) || !isfinite(w)) {
        mark_bad(out, i);
        return;
    }
    double diff = fabs(g - w), rel = w != 0 ? diff / fabs(w) : (double)INFINITY;
    int64_t ulp = dtype_ulp_distance(d, g, w);
    out->max_abs = diff > out->max_abs ? diff : out->max_abs;
    if (isfinite(rel) && rel > out->max_rel)
        out->max_rel = rel;
    out->max_ulp = ulp > out->max_ulp ? ulp : out->max_ulp;
    if (diff > atol + rtol * fabs(w))
        mark_bad(out, i);
}

static void compare_int(TensorDiff *out, int64_t i, int64_t g, int64_t w) {
    if (g == w)
        return;
    double diff = fabs((double)g - (double)w);
    out->same_bits = false;
    out->max_ulp = -1;
    out->max_abs = diff > out->max_abs ? diff : out->max_abs;
    if (w && diff / fabs((double)w) > out->max_rel)
        out->max_rel = diff / fabs((double)w);
    mark_bad(out, i);
}

// A complex tensor as one of its parts' dtype with a last dimension of 2.
static Tensor parts(const Tensor *t) {
    Tensor p = *t;
    p.dtype = t->dtype == DT_c64 ? DT_f32 : t->dtype == DT_c128 ? DT_f64 : DT_f16;
    for (int i = 0; i < p.ndim; i++)
        p.stride[i] *= 2;
    p.offset *= 2;
    p.size[p.ndim] = 2;
    p.stride[p.ndim++] = 1;
    return p;
}

// The elements in row-major order as a vector: a walk without divisions.
static Tensor flat(const Tensor *t) {
    Tensor f;
    Arena a = {0};
    Diag d = {.arena = &a};
    if (tensor_is_contiguous(t))
        f = tensor_keep(t);
    else if (!tensor_to(&f, t, t->dtype, &d))
        die("%s", diag_first(&d));
    arena_free(&a);
    f.size[0] = tensor_numel(t);
    f.stride[0] = 1;
    f.ndim = 1;
    return f;
}

void tensor_diff(const Tensor *got, const Tensor *want, double rtol, double atol, TensorDiff *out) {
    assert(got->ndim == want->ndim && got->dtype == want->dtype);
    if (dtype_info[want->dtype].cls == DTC_COMPLEX && want->ndim < TENSOR_DIMS) {
        Tensor g = parts(got), w = parts(want);
        tensor_diff(&g, &w, rtol, atol, out);
        out->numel /= 2;
        out->first_bad = out->first_bad < 0 ? -1 : out->first_bad / 2;
        return;
    }
    *out = (TensorDiff){.numel = tensor_numel(want), .first_bad = -1, .same_bits = true};
    bool is_float = dtype_is_float(want->dtype);
    Tensor g = flat(got), w = flat(want);
    for (int64_t i = 0; i < out->numel; i++) {
        if (is_float)
            compare_float(out, want->dtype, i, tensor_get_f64(&g, i), tensor_get_f64(&w, i), rtol,
                          atol);
        else
            compare_int(out, i, tensor_get_i64(&g, i), tensor_get_i64(&w, i));
    }
    tensor_drop(&g);
    tensor_drop(&w);
}

static double largest(const Tensor *t) {
    double most = 0;
    for (int64_t i = 0, n = tensor_numel(t); i < n; i++) {
        double v = fabs(tensor_get_f64(t, i));
        most = isfinite(v) && v > most ? v : most;
    }
    return most;
}

// How far rounding can bring a result from float64, as a part of the largest value. What is further
// away was not computed by the same formula, and then float64 says nothing about ours.
static double plausible(DType d) {
    return d == DT_bf16 ? 0.1 : d == DT_f16 ? 0.02 : d == DT_f32 ? 1e-3 : 1e-9;
}

// Further from float64 than this the reference is no rounding of it. Sums that cancel (the gradient
// of a bias in front of a normalization) are small against what they are made of: a tenth is
// allowed for, as torch._dynamo.utils.same does with a tenth of its tolerance.
static double far_off(DType d, double most) {
    return plausible(d) * fmax(most, 0.1);
}

static double ulp_of_one(DType d) {
    return d == DT_bf16 ? 0x1p-8 : d == DT_f16 ? 0x1p-11 : d == DT_f32 ? 0x1p-23 : 0x1p-52;
}

bool tensor_near_exact(const Tensor *got, const Tensor *want, const Tensor *exact) {
    double most = largest(exact), bound = far_off(want->dtype, most), ours = 0, theirs = 0;
    for (int64_t i = 0, n = tensor_numel(got); i < n; i++) {
        double g = tensor_get_f64(got, i), w = tensor_get_f64(want, i),
               x = tensor_get_f64(exact, i);
        if (isnan(g) != isnan(w))
            return false;
        if (isnan(g) || g == w)
            continue;
        if (!(fabs(w - x) <= bound))
            return false;
        ours = fmax(ours, fabs(g - x));
        theirs = fmax(theirs, fabs(w - x));
    }
    return ours <= 2 * theirs + ulp_of_one(want->dtype) * most;
}

bool tensor_close_to_exact(const Tensor *got, const Tensor *want, const Tensor *exact, double rtol,
                           double atol) {
    double bound = far_off(want->dtype, largest(exact)), step = ulp_of_one(want->dtype);
    for (int64_t i = 0, n = tensor_numel(got); i < n; i++) {
        double g = tensor_get_f64(got, i), w = tensor_get_f64(want, i),
               x = tensor_get_f64(exact, i), off = fabs(g - x);
        if (isnan(g) != isnan(w))
            return false;
        if (isnan(g) || g == w)
            continue;
        if (!(fabs(w - x) <= bound))
            return false;
        if (!(off <= atol + rtol * fabs(x)) && !(off <= 2 * fabs(w - x) + step * fabs(x)))
            return false;
    }
    return true;
}
