// conv.c: convolutions of one to three dimensions as matrix products: windows are laid out as
// columns (im2col), a slice of output positions at a time. A transposed convolution is the other's
// gradient; grouped ones with one channel a group go tap by tap.
#include "core/eager/conv.h"

#include <string.h>

#include "core/eager/loops.h"

enum { SLICE_BYTES = 1 << 21 };

static int64_t product(const int64_t *v) {
    return v[0] * v[1] * v[2];
}

static const char *at(const Conv *v, const void *p, int64_t elem) {
    return conv_at(v, p, elem);
}

// Runs over the taps of columns [p0, p1): for each row of a column matrix and each run of positions
// along the last dimension, the elements [lo, hi) that lie in the input's line, the others in
// padding. SOME does n of them from a line on, NONE as many outside.
#define WINDOWS(T, name, SOME, NONE, CONST)                                                        \
    VECTORED static void name(const Conv *v, CONST T *plane0, T *col, int64_t p0, int64_t p1) {    \
        int64_t width = p1 - p0, step = v->stride[2], wide = v->in[2];                             \
        for (int64_t row = 0; row < v->c * v->k_n; row++) {                                        \
            int64_t tap = row % v->k_n, kx = tap % v->k[2], ky = tap / v->k[2] % v->k[1],          \
                    kz = tap / v->k[2] / v->k[1];                                                  \
            CONST T *plane = plane0 + row / v->k_n * v->in_n;                                      \
            T *to = col + row * width;                                                             \
            int64_t ox = p0 % v->out[2], oy = p0 / v->out[2] % v->out[1],                          \
                    oz = p0 / v->out[2] / v->out[1], lead = kx * v->dil[2] - v->pad[2];            \
            for (int64_t p = p0; p < p1; ox = 0) {                                                 \
                int64_t n = v->out[2] - ox < p1 - p ? v->out[2] - ox : p1 - p;                     \
                int64_t y = oy * v->stride[1] - v->pad[1] + ky * v->dil[1];                        \
                int64_t z = oz * v->stride[0] - v->pad[0] + kz * v->dil[0];                        \
                bool inside = y >= 0 && y < v->in[1] && z >= 0 && z < v->in[0];                    \
                int64_t first = ox * step + lead, lo = first < 0 ? (-first + step - 1) / step : 0; \
                int64_t hi = first < wide ? (wide - first + step - 1) / step : 0;                  \
                lo = lo < n && inside ? lo : n;                                                    \
                hi = hi < n ? hi : n;                                                              \
                hi = hi > lo ? hi : lo;                                                            \
                CONST T *line =                                                                    \
                    plane + (inside ? (z * v->in[1] + y) * wide : 0) + (lo < hi ? first : 0);      \
                NONE(to, 0, lo)                                                                    \
                SOME(to, lo, hi)                                                                   \
                NONE(to, hi, n)                                                                    \
                to += n;                                                                           \
                p += n;                                                                            \
                oy++;                                                                              \
                oz += oy == v->out[1];                                                             \
                oy = oy == v->out[1] ? 0 : oy;                                                     \
            }                                                                                      \
        }                                                                                          \
    }
#define TAKE(to, lo, hi)                                                                           \
    if (step == 1)                                                                                 \
        for (int64_t i = lo; i < hi; i++)                                                          \
            (to)[i] = line[i];                                                                     \
    else                                                                                           \
        for (int64_t i = lo; i < hi; i++)                                                          \
            (to)[i] = line[i * step];
#define ADD(to, lo, hi)                                                                            \
    if (step == 1)                                                                                 \
        for (int64_t i = lo; i < hi; i++)                                                          \
            line[i] += (to)[i];                                                                    \
    else                                                                                           \
        for (int64_t i = lo; i < hi; i++)                                                          \
            line[i * step] += (to)[i];
#define ZERO(to, lo, hi)                                                                           \
    for (int64_t i = lo; i < (hi); i++)                                                            \
        (to)[i] = 0;
#define NOTHING(to, lo, hi)
WINDOWS(float, columns_f, TAKE, ZERO, const)
WINDOWS(double, columns_d, TAKE, ZERO, const)
WINDOWS(float, scatter_f, ADD, NOTHING, )
WINDOWS(double, scatter_d, ADD, NOTHING, )

static void columns(const Conv *v, const void *plane, void *col, int64_t p0, int64_t p1) {
    if (v->dtype == DT_f32)
        columns_f(v, plane, col, p0, p1);
    else
        columns_d(v, plane, col, p0, p1);
}

static void scatter(const Conv *v, void *plane, void *col, int64_t p0, int64_t p1) {
    if (v->dtype == DT_f32)
        scatter_f(v, plane, col, p0, p1);
    else
        scatter_d(v, plane, col, p0, p1);
}

static int64_t slice_of(const Conv *v) {
    int64_t n = SLICE_BYTES / (v->c * v->k_n * dtype_info[v->dtype].bytes + 1);
    n = n < 64 ? 64 : n;
    return n < v->out_n ? n : v->out_n > 0 ? v->out_n : 1;
}

// Memory for one slice of columns, or NULL if none is needed.
static Storage *column_space(const Conv *v) {
    int64_t bytes = v->c * v->k_n * slice_of(v) * dtype_info[v->dtype].bytes;
    return v->pointwise ? NULL : storage_new_raw((size_t)bytes, v->eager->c->diag);
}

Gemm conv_gemm(const Conv *v, int64_t m, int64_t n, int64_t k) {
    return (Gemm){.dtype = v->dtype,
                  .m = m,
                  .n = n,
                  .k = k,
                  .a_col = 1,
                  .b_col = 1,
                  .c_col = 1,
                  .alpha = 1,
                  .beta = 1};
}

// y = w * columns(x), added to the bias if there is one; an image and group a step.
static void forward_range(void *ctx, int64_t begin, int64_t end) {
    const Conv *v = ctx;
    int64_t slice = slice_of(v), depth = v->c * v->k_n;
    Storage *space = column_space(v);
    void *col = space ? storage_data(space) : NULL;
    for (int64_t i = begin; i < end; i++) {
        int64_t group = i % v->groups;
        const char *x = at(v, v->x, i * v->c * v->in_n);
        for (int64_t p = 0; p < v->out_n; p += slice) {
            int64_t q = v->out_n - p < slice ? v->out_n : p + slice;
            Gemm g = conv_gemm(v, v->o, q - p, depth);
            if (!v->pointwise)
                columns(v, x, col, p, q);
            g.a = at(v, v->w, group * v->o * depth);
            g.a_row = depth;
            g.b = v->last ? at(v, x, p * v->c) : v->pointwise ? at(v, x, p) : col;
            g.b_row = v->last ? 1 : v->pointwise ? v->in_n : q - p;
            g.b_col = v->last ? v->c : 1;
            g.c = (char *)(uintptr_t)at(v, v->y, i * v->o * v->out_n + (v->last ? p * v->o : p));
            g.c_row = v->last ? 1 : v->out_n;
            g.c_col = v->last ? v->o : 1;
            g.beta = v->bias != NULL;
            blas_gemm(&g, v->n * v->groups == 1 ? v->eager->c->threads : 1);
        }
    }
    storage_drop(space);
}

// x += the windows of w^T y.
static void input_range(void *ctx, int64_t begin, int64_t end) {
    const Conv *v = ctx;
    int64_t slice = slice_of(v), depth = v->c * v->k_n;
    Storage *space = column_space(v);
    void *col = space ? storage_data(space) : NULL;
    for (int64_t i = begin; i < end; i++) {
        int64_t group = i % v->groups;
        char *x = (char *)(uintptr_t)at(v, v->x, i * v->c * v->in_n);
        for (int64_t p = 0; p < v->out_n; p += slice) {
            int64_t q = v->out_n - p < slice ? v->out_n : p + slice;
            Gemm g = conv_gemm(v, depth, q - p, v->o);
            g.a = at(v, v->w, group * v->o * depth);
            g.a_row = 1;
            g.a_col = depth;
            g.b = at(v, v->y, i * v->o * v->out_n + p);
            g.b_row = v->out_n;
            g.c = v->pointwise ? x + p * dtype_info[v->dtype].bytes : col;
            g.c_row = v->pointwise ? v->in_n : q - p;
            g.beta = v->pointwise;
            blas_gemm(&g, v->n * v->groups == 1 ? v->eager->c->threads : 1);
            if (!v->pointwise)
                scatter(v, x, col, p, q);
        }
    }
    storage_drop(space);
}

// w += y columns(x)^T, a group a step.
static void weight_range(void *ctx, int64_t begin, int64_t end) {
    const Conv *v = ctx;
    int64_t slice = slice_of(v), depth = v->c * v->k_n;
    Storage *space = column_space(v);
    void *col = space ? storage_data(space) : NULL;
    for (int64_t group = begin; group < end; group++)
        for (int64_t image = 0; image < v->n; image++)
            for (int64_t p = 0, i = image * v->groups + group; p < v->out_n; p += slice) {
                int64_t q = v->out_n - p < slice ? v->out_n : p + slice;
                Gemm g = conv_gemm(v, v->o, depth, q - p);
                const char *x = at(v, v->x, i * v->c * v->in_n);
                if (!v->pointwise)
                    columns(v, x, col, p, q);
                g.a = at(v, v->y, i * v->o * v->out_n + p);
                g.a_row = v->out_n;
                g.b = v->pointwise ? at(v, x, p) : col;
                g.b_row = 1;
                g.b_col = v->pointwise ? v->in_n : q - p;
                g.c = (char *)(uintptr_t)at(v, v->w, group * v->o * depth);
                g.c_row = depth;
                blas_gemm(&g, v->groups == 1 ? v->eager->c->threads : 1);
            }
    storage_drop(space);
}

static bool is_depthwise(const Conv *v) {
    return v->c == 1 && v->o == 1;
}

static void run_forward(Conv *v) {
    parallel_for(v->eager->c->threads, v->n * v->groups, 1,
                 is_depthwise(v)     ? conv_depth_range
                 : conv_flat_fits(v) ? conv_flat_range
                                     : forward_range,
                 v);
}

// With steps of one the windows' side is a convolution of the other, with each filter turned
// around. False: not such.
static bool turned_around(const Conv *v, Conv *u) {
    *u = *v;
    u->c = v->o;
    u->o = v->c;
    u->x = v->y;
    u->y = v->x;
    u->pointwise = false;
    for (int i = 0; i < SPACE; i++) {
        u->in[i] = v->out[i];
        u->out[i] = v->in[i];
        u->pad[i] = v->dil[i] * (v->k[i] - 1) - v->pad[i];
        if (v->stride[i] != 1 || u->pad[i] < 0)
            return false;
    }
    u->in_n = v->out_n;
    u->out_n = v->in_n;
    return !v->pointwise && (is_depthwise(u) || conv_flat_fits(u));
}

// (groups o, c, k) -> (groups c, o, k), last taps first.
static void turn_filters(const Conv *v, char *to) {
    int64_t bytes = dtype_info[v->dtype].bytes;
    for (int64_t i = 0; i < v->groups * v->c * v->o; i++) {
        int64_t o = i % v->o, c = i / v->o % v->c, group = i / v->o / v->c;
        const char *from = at(v, v->w, ((group * v->o + o) * v->c + c) * v->k_n);
        for (int64_t tap = v->k_n - 1; tap >= 0; tap--, to += bytes)
            memcpy(to, from + tap * bytes, (size_t)bytes);
    }
}

static void run_input(Conv *v) {
    Conv u;
    if (!turned_around(v, &u)) {
        parallel_for(v->eager->c->threads, v->n * v->groups, 1, input_range, v);
        return;
    }
    int64_t weights = v->groups * v->c * v->o * v->k_n;
    Storage *w = storage_new_raw((size_t)(weights * dtype_info[v->dtype].bytes), v->eager->c->diag);
    if (!w)
        return;
    turn_filters(v, storage_data(w));
    u.w = storage_data(w);
    run_forward(&u);
    storage_drop(w);
}

static void run_weight(Conv *v) {
    parallel_for(v->eager->c->threads, v->groups, 1,
                 conv_flat_weights_fit(v) ? conv_flat_weights : weight_range, v);
}

// geometry

typedef struct ConvArgs {
    int space; // spatial dimensions
    int64_t stride[SPACE], pad[SPACE], dil[SPACE];
    bool transposed;
    int64_t groups;
} ConvArgs;

static bool spread(K *k, int i, int space, int64_t *out) {
    int64_t v[SPACE];
    int n = kints(k, i, v, SPACE);
    if (n != space && n != 1)
        return k_fail(k,
                      "RuntimeError: expected %s to be a single integer value or a list of %d "
                      "values to match the "
                      "convolution dimensions",
                      k->op->args[i].name, space);
    for (int j = 0; j < space; j++)
        out[SPACE - space + j] = v[n == 1 ? 0 : j];
    return true;
}

static bool conv_args(K *k, int space, ConvArgs *c) {
    *c = (ConvArgs){.space = space,
                    .stride = {1, 1, 1},
                    .dil = {1, 1, 1},
                    .groups = ki(k, karg(k, "groups"), 1)};
    int t = op_arg_index(k->op, "transposed");
    c->transposed = t >= 0 ? kb(k, t) : str_starts(k->op->name, "conv_transpose");
    if (space < 1 || space > SPACE)
        return k_fail(k,
                      "RuntimeError: Expected 3D to 5D input to convolution, but got %d dimensions",
                      space + 2);
    bool ok = spread(k, karg(k, "stride"), space, c->stride) &&
              spread(k, karg(k, "padding"), space, c->pad) &&
              spread(k, karg(k, "dilation"), space, c->dil);
    for (int i = 0; ok && i < SPACE; i++)
        if (c->stride[i] < 1 || c->dil[i] < 1 || c->pad[i] < 0 || c->groups < 1)
            return k_fail(k, "RuntimeError: non-positive stride, dilation or groups, or negative "
                             "padding is not supported");
    return ok;
}

static void spatial(const Tensor *t, int space, int64_t *out) {
    for (int i = 0; i < SPACE; i++)
        out[i] = 1;
    for (int i = 0; i < space; i++)
        out[SPACE - space + i] = t->size[t->ndim - space + i];
}

// `wide` has the windows, `narrow` one element a window; w is (narrow channels, wide channels /
// groups, …).
static bool geometry(K *k, const ConvArgs *a, const Tensor *wide, const Tensor *w,
                     const Tensor *narrow, Conv *v) {
    *v = (Conv){.dtype = w->dtype, .groups = a->groups, .eager = k->x};
    if (w->ndim != a->space + 2 || wide->ndim != w->ndim || narrow->ndim != w->ndim)
        return k_fail(
            k, "RuntimeError: convolution: input of %d dimensions and weight of %d do not fit",
            wide->ndim, w->ndim);
    v->n = wide->size[0];
    v->c = wide->size[1] / a->groups;
    v->o = narrow->size[1] / a->groups;
    spatial(wide, a->space, v->in);
    spatial(narrow, a->space, v->out);
    spatial(w, a->space, v->k);
    memcpy(v->stride, a->stride, sizeof v->stride);
    memcpy(v->pad, a->pad, sizeof v->pad);
    memcpy(v->dil, a->dil, sizeof v->dil);
    v->in_n = product(v->in);
    v->out_n = product(v->out);
    v->k_n = product(v->k);
    bool fits = wide->size[1] == v->c * a->groups && narrow->size[1] == v->o * a->groups &&
                w->size[1] == v->c && w->size[0] == narrow->size[1] && narrow->size[0] == v->n;
    if (!fits)
        return k_fail(k,
                      "RuntimeError: Given groups=%lld, weight of size [%lld, %lld, ...], expected "
                      "input to have %lld "
                      "channels, but got %lld channels instead",
                      (long long)a->groups, (long long)w->size[0], (long long)w->size[1],
                      (long long)(w->size[1] * a->groups), (long long)wide->size[1]);
    v->pointwise = v->k_n == 1;
    for (int i = 0; i < SPACE; i++)
        v->pointwise = v->pointwise && v->stride[i] == 1 && v->pad[i] == 0 && v->in[i] == v->out[i];
    return true;
}

static bool check_bias(K *k, const Tensor *y, const Tensor *b) {
    return !b || (b->ndim == 1 && b->size[0] == y->size[1]) ||
           k_fail(k, "RuntimeError: expected bias to be 1-dimensional with %lld elements",
                  (long long)y->size[1]);
}

static bool add_bias(K *k, Tensor *y, const Tensor *bias) {
    Tensor b = *bias;
    for (int i = 1; i < y->ndim - 1; i++) {
        b.size[i] = 1;
        b.stride[i] = 0;
    }
    b.ndim = y->ndim - 1;
    return copy_into(k->x, y, &b);
}

// Channels next to each other, positions in order: channels_last without gaps.
static bool is_last(const Tensor *t, DType d) {
    int64_t dense = t->size[1];
    if (t->dtype != d || t->stride[1] != 1 || dense < 2)
        return false;
    for (int n = 0; n < t->ndim - 1; n++) {
        int i = n == t->ndim - 2 ? 0 : t->ndim - 1 - n; // the images are outermost
        if (t->size[i] != 1 && t->stride[i] != dense)
            return false;
        dense *= t->size[i];
    }
    return true;
}

// x and y as they lie in memory, if there is a loop for that.
static bool convolve_last(K *k, const Tensor *x, const Tensor *w, const Tensor *bias,
                          const ConvArgs *a) {
    DType d = k->res[0]->dtype;
    Conv *v = ARENA_NEW(k->x->arena, Conv);
    if ((d != DT_f32 && d != DT_f64) || a->transposed || w->dtype != d || x->ndim < 3 ||
        k->res[0]->ndim != x->ndim || !is_last(x, d) || !is_last(k->res[0], d) ||
        !geometry(k, a, x, w, k->res[0], v) || !check_bias(k, k->res[0], bias))
        return false;
    v->last = true;
    v->x = tensor_data(x);
    v->y = tensor_data(k->res[0]);
    const Tensor *cw = eager_contiguous(k->x, w, d),
                 *cb = bias ? eager_contiguous(k->x, bias, d) : NULL;
    bool points = v->pointwise && v->groups == 1;
    if (!cw || (bias && !cb) || (!points && !conv_depth_last_fits(v)))
        return false;
    v->w = tensor_data(cw);
    v->bias = cb ? tensor_data(cb) : NULL;
    if (points && cb && !add_bias(k, k->res[0], cb))
        return false;
    if (points)
        parallel_for(k->x->c->threads, v->n, 1, forward_range, v);
    else
        conv_depth_last(v);
    return true;
}

static bool convolve(K *k, const Tensor *x, const Tensor *w, const Tensor *bias,
                     const ConvArgs *a) {
    if (convolve_last(k, x, w, bias, a) || !eager_ok(k->x))
        return eager_ok(k->x);
    DType d = work_dtype(k->res[0]->dtype);
    const Tensor *cx = eager_contiguous(k->x, x, d), *cw = eager_contiguous(k->x, w, d);
    const Tensor *cb = bias ? eager_contiguous(k->x, bias, d) : NULL;
    Tensor *y = cx && cw && (cb || !bias) ? dense_res(k, 0, d) : NULL;
    Conv v;
    if (!y || !geometry(k, a, a->transposed ? y : cx, cw, a->transposed ? cx : y, &v) ||
        !check_bias(k, y, cb))
        return false;
    v.bias = cb ? tensor_data(cb) : NULL;
    bool adds = a->transposed || is_depthwise(&v);
    if (adds && !cb)
        memset(tensor_data(y), 0, (size_t)(tensor_numel(y) * dtype_info[d].bytes));
    if (cb && (adds || !conv_flat_fits(&v)) && !add_bias(k, y, cb))
        return false;
    v.x = tensor_data(a->transposed ? y : cx);
    v.y = tensor_data(a->transposed ? cx : y);
    v.w = tensor_data(cw);
    if (a->transposed)
        run_input(&v);
    else
        run_forward(&v);
    return dense_done(k, 0, y);
}

// All forms: (input, weight, bias, …); an input without a batch gets one.
bool kern_convolution(K *k) {
    const Tensor *x = k->in[0], *w = k->in[1], *bias = k->in[2];
    ConvArgs a;
    if (!w || !conv_args(k, w->ndim - 2, &a))
        return false;
    Tensor one = *x;
    if (x->ndim == w->ndim - 1) {
        Value batch = CALL(k, aten_unsqueeze_default, k->args[0], INT(0));
        if (!eager_ok(k->x))
            return false;
        one = *tensor_at(&batch);
        Tensor *res = k->res[0], plain = *res;
        memmove(res->size + 1, plain.size, (size_t)plain.ndim * sizeof *plain.size);
        memmove(res->stride + 1, plain.stride, (size_t)plain.ndim * sizeof *plain.stride);
        res->size[0] = 1;
        res->stride[0] = tensor_reach(&plain);
        res->ndim++;
        bool ok = convolve(k, &one, w, bias, &a);
        *res = plain;
        return ok;
    }
    return convolve(k, &one, w, bias, &a);
}

// padding='same' or 'valid'
bool kern_conv_padding(K *k) {
    const Tensor *x = k->in[0], *w = k->in[1];
    const char *mode = ks(k, karg(k, "padding"), "valid");
    int space = w ? w->ndim - 2 : 0;
    if (space < 1 || space > SPACE || x->ndim < space)
        return k_fail(k, "RuntimeError: %s: weight of %d dimensions", k->op->name, w ? w->ndim : 0);
    int64_t dil[SPACE], pads[2 * SPACE], none[SPACE] = {0};
    int nd = kints(k, karg(k, "dilation"), dil, SPACE);
    Value input = k->args[0];
    if (strcmp(mode, "same") == 0) {
        for (int i = 0; i < space; i++) {
            int64_t total = dil[nd == 1 ? 0 : i] * (w->size[2 + i] - 1);
            pads[2 * (space - 1 - i)] = total / 2;
            pads[2 * (space - 1 - i) + 1] = total - total / 2;
        }
        input = CALL(k, aten_constant_pad_nd_default, input, ints_value(k->x, pads, 2 * space));
    } else if (strcmp(mode, "valid") != 0) {
        return k_fail(k, "RuntimeError: Invalid padding string: '%s'", mode);
    }
    k->out = CALL(k, aten_convolution_default, input, k->args[1], k->args[2], k->args[3],
                  ints_value(k->x, none, space), k->args[5], BOOL(false),
                  ints_value(k->x, none, space), k->args[6]);
    return eager_ok(k->x);
}

static bool bias_gradient(K *k, const Tensor *gy, Tensor *out) {
    int64_t d[TENSOR_DIMS];
    int n = 0;
    for (int i = 0; i < gy->ndim; i++)
        if (i != 1)
            d[n++] = i;
    Value sum = CALL(k, aten_sum_dim_IntList, k->args[0], ints_value(k->x, d, n));
    return sum.kind == VAL_tensor && copy_into(k->x, out, tensor_at(&sum));
}

// (grad_output, input, weight, bias_sizes, …, output_mask) -> gradients of input, weight, bias.
bool kern_convolution_backward(K *k) {
    const Tensor *gy = k->in[0], *x = k->in[1], *w = k->in[2];
    ConvArgs a;
    if (!gy || !x || !w || !conv_args(k, w->ndim - 2, &a))
        return false;
    DType d = work_dtype(w->dtype);
    const Tensor *cy = eager_contiguous(k->x, gy, d), *cx = eager_contiguous(k->x, x, d),
                 *cw = eager_contiguous(k->x, w, d);
    Conv v;
    if (!cy || !cx || !cw ||
        !geometry(k, &a, a.transposed ? cy : cx, cw, a.transposed ? cx : cy, &v))
        return false;
    Tensor *res[3] = {NULL};
    for (int i = 0; i < 3; i++)
        res[i] = k->out.kind == VAL_tuple && i < k->out.n ? tensor_at(&k->out.at[i]) : NULL;
    v.x = tensor_data(a.transposed ? cy : cx);
    v.y = tensor_data(a.transposed ? cx : cy);
    v.w = tensor_data(cw);
    if (res[0]) {
        Tensor *gx = eager_like(k->x, x, d);
        Conv u = v;
        if (!gx)
            return false;
        if (a.transposed) {
            u.y = tensor_data(gx);
            run_forward(&u);
        } else {
            u.x = tensor_data(gx);
            run_input(&u);
        }
        if (!copy_into(k->x, res[0], gx))
            return false;
    }
    if (res[1]) {
        Tensor *gw = eager_like(k->x, w, d);
        Conv u = v;
        if (!gw)
            return false;
        u.w = tensor_data(gw);
        run_weight(&u);
        if (!copy_into(k->x, res[1], gw))
            return false;
    }
    return !res[2] || bias_gradient(k, gy, res[2]);
}
