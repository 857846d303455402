// resample.c: resizing of images: each output position along a dimension is a few input positions
// with weights (nearest, linear, cubic; with antialiasing as wide as the image shrinks), a position
// in space the product over dimensions; gradients the same weights backwards. Positions are
// computed in float for all but float64, as the recorded results were.
#include "core/eager/iterate.h"

#include <math.h>
#include <string.h>

#include "core/eager/loops.h"

enum { SPACE = 3 };

typedef struct Taps {
    int n;       // weights a position: 1, 2, 4, or as many as antialiasing needs
    int64_t *at; // (positions, n) input positions
    double *w;   // (positions, n)
    double unit; // what weights are multiples of: of bytes they are whole numbers, 1/unit each
} Taps;

typedef enum Filter { FILTER_nearest, FILTER_exact, FILTER_linear, FILTER_cubic } Filter;

typedef struct Resize {
    Filter filter;
    int space;
    bool align;          // the corners' centres coincide
    bool antialias;      // every input position under an output's is weighed
    bool single;         // positions in float
    bool bytes;          // images of bytes: weights of 16 bits, rounded after each direction
    DType kept;          // weights are rounded to it
    double scale[SPACE]; // factors given, 0: from the sizes
    int64_t in[SPACE], out[SPACE];
    Taps taps[SPACE];
} Resize;

static double narrow(const Resize *r, double v) {
    return r->single ? (double)(float)v : v;
}

// Input steps an output step.
static double step_of(const Resize *r, int d) {
    int64_t in = r->in[d], out = r->out[d];
    if (r->align)
        return out > 1 ? narrow(r, (double)(in - 1) / (double)(out - 1)) : 0;
    return narrow(r, r->scale[d] > 0 ? 1 / r->scale[d] : (double)in / (double)out);
}

static double cubic(double x, double near) {
    const double a = -0.75;
    return near <= 1 ? ((a + 2) * x - (a + 3)) * x * x + 1
                     : ((a * x - 5 * a) * x + 8 * a) * x - 4 * a;
}

static int64_t bounded(int64_t i, int64_t n) {
    return i < 0 ? 0 : i >= n ? n - 1 : i;
}

static int64_t nearest(const Resize *r, int d, int64_t o) {
    double step = step_of(r, d),
           at = r->filter == FILTER_exact ? ((double)o + 0.5) * step : (double)o * step;
    if (r->filter == FILTER_nearest && r->out[d] == r->in[d])
        return o;
    if (r->filter == FILTER_nearest && r->out[d] == 2 * r->in[d])
        return o / 2;
    return bounded((int64_t)floor(narrow(r, at)), r->in[d]);
}

// A triangle, or the cubic of Keys, with a = -0.5 under antialiasing; 0 outside of it.
static double window(const Resize *r, double x) {
    double a = r->antialias ? -0.5 : -0.75;
    x = fabs(x);
    if (r->filter == FILTER_linear)
        return x < 1 ? 1 - x : 0;
    return x < 1   ? ((a + 2) * x - (a + 3)) * x * x + 1
           : x < 2 ? (((x - 5) * x + 8) * x - 4) * a
                   : 0;
}

static void make_wide_taps(Eager *x, Resize *r, int d) {
    Taps *t = &r->taps[d];
    double step = step_of(r, d), reach = r->filter == FILTER_linear ? 1 : 2;
    double support = step >= 1 ? reach * step : reach, inverse = step >= 1 ? 1 / step : 1;
    t->n = (int)ceil(support) * 2 + 1;
    t->at = ARENA_ARRAY(x->arena, r->out[d] * t->n + 1, int64_t);
    t->w = ARENA_ARRAY(x->arena, r->out[d] * t->n + 1, double);
    for (int64_t o = 0; o < r->out[d]; o++) {
        double centre = step * ((double)o + 0.5), total = 0, *w = t->w + o * t->n;
        int64_t first = (int64_t)(centre - support + 0.5), end = (int64_t)(centre + support + 0.5);
        first = first < 0 ? 0 : first;
        end = end > r->in[d] ? r->in[d] : end;
        for (int i = 0; i < t->n; i++) {
            bool there = first + i < end;
            t->at[o * t->n + i] = bounded(first + i, r->in[d]);
            w[i] = there ? window(r, ((double)(first + i) - centre + 0.5) * inverse) : 0;
            total += w[i];
        }
        for (int i = 0; i < t->n && total != 0; i++)
            w[i] /= total;
    }
}

// Of bytes: positions beyond the image lend their weights to its edge.
static void make_byte_taps(Resize *r, int d) {
    Taps *t = &r->taps[d];
    int64_t reach = t->n / 2, in = r->in[d];
    double step = step_of(r, d);
    for (int64_t o = 0; o < r->out[d]; o++) {
        double src = r->align ? step * (double)o : step * ((double)o + 0.5) - 0.5,
               *w = t->w + o * t->n;
        src = fmin(fmax(src, r->filter == FILTER_linear ? 0 : (double)-reach), (double)in);
        int64_t base = (int64_t)floorf((float)src), place = 0;
        base = base < in - 1 ? base : in - 1;
        double f = src - (double)base;
        f = f < 0 ? 0 : f > 1 ? 1 : f;
        int64_t lowest = base - reach + 1, first = lowest < 0 ? 0 : lowest,
                end = base + reach + 1 < in ? base + reach + 1 : in;
        for (int j = 0; j < t->n; j++, place++) {
            t->at[o * t->n + j] = bounded(first + j, in);
            w[j] = 0;
            if (lowest + j <= 0)
                place = 0;
            else if (lowest + j >= in - 1)
                place = end - first - 1;
            w[place] += window(r, (double)(j + 1 - reach) - f);
        }
    }
}

// Weights as whole numbers of 16 bits, as many bits as the largest leaves.
static void round_weights(Taps *t, int64_t n) {
    enum { MOST_BITS = 22 };
    double most = 0;
    int bits = 0;
    for (int64_t i = 0; i < n * t->n; i++)
        most = t->w[i] > most ? t->w[i] : most;
    while (bits < MOST_BITS && (int64_t)(0.5 + most * ldexp(1, bits + 1)) < 1 << 15)
        bits++;
    t->unit = ldexp(1, bits);
    for (int64_t i = 0; i < n * t->n; i++)
        t->w[i] = trunc(t->w[i] * t->unit + (t->w[i] < 0 ? -0.5 : 0.5));
}

static void make_taps(Eager *x, Resize *r, int d) {
    Taps *t = &r->taps[d];
    t->unit = 1;
    if (r->antialias) {
        make_wide_taps(x, r, d);
        return;
    }
    t->n = r->filter <= FILTER_exact ? 1 : r->filter == FILTER_linear ? 2 : 4;
    t->at = ARENA_ARRAY(x->arena, r->out[d] * t->n + 1, int64_t);
    t->w = ARENA_ARRAY(x->arena, r->out[d] * t->n + 1, double);
    if (r->bytes && t->n > 1) {
        make_byte_taps(r, d);
        return;
    }
    double step = step_of(r, d);
    for (int64_t o = 0; o < r->out[d]; o++) {
        int64_t *at = t->at + o * t->n;
        double *w = t->w + o * t->n;
        if (t->n == 1) {
            at[0] = nearest(r, d, o);
            w[0] = 1;
            continue;
        }
        double src = r->align ? narrow(r, step * (double)o)
                              : narrow(r, narrow(r, step * ((double)o + 0.5)) - 0.5);
        if (t->n == 2) {
            src = src < 0 ? 0 : src;
            at[0] = bounded((int64_t)src, r->in[d]);
            at[1] = at[0] + (at[0] < r->in[d] - 1);
            w[1] = narrow(r, src - (double)at[0]);
            w[1] = round_to(r->kept, w[1] < 0 ? 0 : w[1] > 1 ? 1 : w[1]);
            w[0] = round_to(r->kept, narrow(r, 1 - w[1]));
            continue;
        }
        double base = floor(src), f = narrow(r, src - base);
        const double x4[4] = {f + 1, f, 1 - f, 2 - f}, near[4] = {2, 1, 1, 2};
        for (int i = 0; i < 4; i++) {
            at[i] = bounded((int64_t)base - 1 + i, r->in[d]);
            w[i] = round_to(r->kept, cubic(x4[i], near[i]));
        }
    }
}

// Each position as it is.
static void same_taps(Eager *x, Resize *r, int d) {
    Taps *t = &r->taps[d];
    *t = (Taps){1, ARENA_ARRAY(x->arena, r->out[d] + 1, int64_t),
                ARENA_ARRAY(x->arena, r->out[d] + 1, double), 1};
    for (int64_t o = 0; o < r->out[d]; o++) {
        t->at[o] = o;
        t->w[o] = 1;
    }
}

// Linear kernels that go by channels hold their weights in float; the others in the image's dtype.
static bool by_channels(const K *k, const Resize *r, const Tensor *out) {
    const Tensor *x = k->in[0];
    bool last = x->size[1] > 3 && x->stride[1] == 1;
    bool small = r->space == 2 && out->size[2] + out->size[3] <= 128;
    return r->filter == FILTER_linear && r->space > 1 && (last || small);
}

static bool setup(K *k, Resize *r, const Tensor *wide, const Tensor *out) {
    const char *name = k->op->name;
    r->filter = strstr(name, "nearest_exact") ? FILTER_exact
                : strstr(name, "nearest")     ? FILTER_nearest
                : strstr(name, "bicubic")     ? FILTER_cubic
                                              : FILTER_linear;
    r->antialias = strstr(name, "_aa") != NULL;
    r->space = wide->ndim - 2;
    r->bytes = wide->dtype == DT_u8;
    r->single = wide->dtype != DT_f64 && !(r->bytes && r->filter > FILTER_exact);
    if (r->space < 1 || r->space > SPACE || out->ndim != wide->ndim ||
        wide->size[0] != out->size[0] || wide->size[1] != out->size[1])
        return k_fail(k, "RuntimeError: %s: input of %d dimensions", name, wide->ndim);
    bool low = dtype_is_low(wide->dtype) && !by_channels(k, r, out);
    r->kept = low ? wide->dtype : DT_f64;
    for (int d = 0; d < SPACE; d++) {
        bool there = d >= SPACE - r->space;
        r->in[d] = there ? wide->size[d - SPACE + wide->ndim] : 1;
        r->out[d] = there ? out->size[d - SPACE + out->ndim] : 1;
        if (r->in[d] == 0 && r->out[d])
            return k_fail(k, "RuntimeError: %s: Input and output sizes should be greater than 0",
                          name);
        bool weighs = r->bytes && r->filter > FILTER_exact;
        if (!there || (weighs && r->in[d] == r->out[d]))
            same_taps(k->x, r, d);
        else
            make_taps(k->x, r, d);
        if (there && weighs && r->taps[d].n > 1)
            round_weights(&r->taps[d], r->out[d]);
    }
    return true;
}

// Factors: `scales`, `scales_d` … in order, or one list.
static void read_scales(const K *k, Resize *r) {
    int first = -1, space = k->in[0]->ndim - 2;
    for (int i = 0; i < k->op->n_args; i++)
        if (str_starts(k->op->args[i].name, "scale") && first < 0)
            first = i;
    if (first < 0 || space < 1 || space > SPACE)
        return;
    const Value *list = &k->args[first];
    for (int d = 0; d < space; d++) {
        double v = 0;
        if (list->kind == VAL_list || list->kind == VAL_tuple)
            v = d < list->n && val_as_float(&list->at[d], &v) ? v : 0;
        else
            v = first + d < k->op->n_args ? kf(k, first + d, 0) : 0;
        r->scale[SPACE - space + d] = v;
    }
}

typedef struct Job {
    const Resize *r;
    const Tensor *x; // dense input
    Tensor *y;       // dense output
} Job;

static double byte_of(double sum, double unit) {
    double v = floor(sum / unit + 0.5);
    return v < 0 ? 0 : v > 255 ? 255 : v;
}

static double gather(const Resize *r, const double *x, int64_t z, int64_t y, int64_t w) {
    const Taps *a = &r->taps[0], *b = &r->taps[1], *c = &r->taps[2];
    double sum = 0;
    for (int i = 0; i < a->n; i++)
        for (int j = 0; j < b->n; j++) {
            const double *line =
                x + (a->at[z * a->n + i] * r->in[1] + b->at[y * b->n + j]) * r->in[2];
            double row = 0;
            for (int l = 0; l < c->n; l++)
                row += c->w[w * c->n + l] * line[c->at[w * c->n + l]];
            sum += b->w[y * b->n + j] * byte_of(row, c->unit);
        }
    return byte_of(sum, b->unit);
}

VECTORED static void add_line(int64_t n, double *to, double w, const double *from) {
    for (int64_t i = 0; i < n; i++)
        to[i] += w * from[i];
}

VECTORED static void along_line(const Taps *t, int64_t n, const double *line, double *to) {
    if (t->n == 2) {
        for (int64_t o = 0; o < n; o++)
            to[o] = t->w[2 * o] * line[t->at[2 * o]] + t->w[2 * o + 1] * line[t->at[2 * o + 1]];
        return;
    }
    for (int64_t o = 0; o < n; o++) {
        double sum = 0;
        for (int l = 0; l < t->n; l++)
            sum += t->w[o * t->n + l] * line[t->at[o * t->n + l]];
        to[o] = sum;
    }
}

// A plane: the lines that a line of the result takes part in are added up, then taken along.
static void plane_by_lines(const Resize *r, const double *x, double *line, double *y) {
    const Taps *a = &r->taps[0], *b = &r->taps[1];
    for (int64_t z = 0; z < r->out[0]; z++)
        for (int64_t v = 0; v < r->out[1]; v++, y += r->out[2]) {
            memset(line, 0, (size_t)r->in[2] * sizeof *line);
            for (int i = 0; i < a->n; i++)
                for (int j = 0; j < b->n; j++)
                    add_line(r->in[2], line, a->w[z * a->n + i] * b->w[v * b->n + j],
                             x + (a->at[z * a->n + i] * r->in[1] + b->at[v * b->n + j]) * r->in[2]);
            along_line(&r->taps[2], r->out[2], line, y);
        }
}

static void forward_range(void *ctx, int64_t begin, int64_t end) {
    const Job *j = ctx;
    const Resize *r = j->r;
    Arena tmp = {0};
    int64_t in = r->in[0] * r->in[1] * r->in[2], out = r->out[0] * r->out[1] * r->out[2];
    double *x = ARENA_ARRAY(&tmp, in + 1, double), *y = ARENA_ARRAY(&tmp, out + 1, double),
           *line = ARENA_ARRAY(&tmp, r->in[2] + 1, double);
    for (int64_t p = begin; p < end; p++) {
        load_d(j->x->dtype, at_elem(j->x, p * in), 1, in, x);
        if (!r->bytes)
            plane_by_lines(r, x, line, y);
        for (int64_t o = 0; r->bytes && o < out; o++)
            y[o] =
                gather(r, x, o / r->out[2] / r->out[1], o / r->out[2] % r->out[1], o % r->out[2]);
        store_d(j->y->dtype, at_elem(j->y, p * out), 1, out, y);
    }
    arena_free(&tmp);
}

static void copy_nearest(K *k, const Resize *r, const Tensor *x, const Tensor *y) {
    const int64_t *at[TENSOR_DIMS];
    for (int d = 0; d < x->ndim; d++) {
        int64_t n = y->size[d], *table = ARENA_ARRAY(k->x->arena, n + 1, int64_t);
        const Taps *t = d < 2 ? NULL : &r->taps[d - x->ndim + SPACE];
        for (int64_t i = 0; i < n; i++)
            table[i] = (t ? t->at[i] : i) * x->stride[d];
        at[d] = table;
    }
    copy_mapped(k->x, y, x, at);
}

// upsample_*: (self, output_size, [align_corners,] scales …), .vec: (input, output_size,
// [align_corners,] scale_factors)
bool kern_upsample(K *k) {
    Resize r = {0};
    int align = op_arg_index(k->op, "align_corners");
    r.align = align >= 0 && kb(k, align);
    read_scales(k, &r);
    const Tensor *x = eager_contiguous(k->x, k->in[0], k->in[0]->dtype);
    Tensor *y = dense_res(k, 0, k->res[0]->dtype);
    if (y && tensor_numel(y) == 0) // its sizes may be absurd
        return dense_done(k, 0, y);
    if (!x || !y || !setup(k, &r, x, y))
        return false;
    Job j = {&r, x, y};
    if (r.filter <= FILTER_exact && !r.bytes) {
        copy_nearest(k, &r, x, y);
        return dense_done(k, 0, y);
    }
    parallel_for(k->x->c->threads, x->size[0] * x->size[1],
                 4096 / (r.out[0] * r.out[1] * r.out[2] + 1) + 1, forward_range, &j);
    return dense_done(k, 0, y);
}

// (grad_output, output_size, input_size, [align_corners,] scales …)
bool kern_upsample_backward(K *k) {
    Resize r = {0};
    int align = op_arg_index(k->op, "align_corners");
    r.align = align >= 0 && kb(k, align);
    read_scales(k, &r);
    const Tensor *g = eager_contiguous(k->x, k->in[0], DT_f64);
    Tensor *acc = eager_like(k->x, k->res[0], DT_f64);
    if (!g || !acc || !setup(k, &r, acc, g))
        return false;
    r.single = k->res[0]->dtype != DT_f64;
    int64_t in = r.in[0] * r.in[1] * r.in[2], out = r.out[0] * r.out[1] * r.out[2];
    for (int d = SPACE - r.space; d < SPACE; d++)
        make_taps(k->x, &r, d);
    double *to = tensor_data(acc);
    const double *from = tensor_data(g);
    const Taps *a = &r.taps[0], *b = &r.taps[1], *c = &r.taps[2];
    for (int64_t i = 0, n = acc->size[0] * acc->size[1] * out; i < n; i++) {
        int64_t p = i / out, o = i % out, z = o / r.out[2] / r.out[1], y = o / r.out[2] % r.out[1],
                w = o % r.out[2];
        for (int u = 0; u < a->n; u++)
            for (int v = 0; v < b->n; v++)
                for (int l = 0; l < c->n; l++)
                    to[p * in + (a->at[z * a->n + u] * r.in[1] + b->at[y * b->n + v]) * r.in[2] +
                       c->at[w * c->n + l]] +=
                        from[i] * a->w[z * a->n + u] * b->w[y * b->n + v] * c->w[w * c->n + l];
    }
    return copy_into(k->x, k->res[0], acc);
}

// im2col(self, kernel, dilation, padding, stride), col2im(self, output_size, kernel, …): windows as
// columns, and back

typedef struct Windows {
    int64_t k[2], dil[2], pad[2], stride[2], in[2], out[2], c;
} Windows;

static bool read_windows(K *k, int first, Windows *v) {
    int64_t *lists[] = {v->k, v->dil, v->pad, v->stride};
    for (int i = 0; i < 4; i++)
        if (kints(k, first + i, lists[i], 2) != 2)
            return k_fail(k, "RuntimeError: %s: expected two numbers for %s", k->op->name,
                          k->op->args[first + i].name);
    for (int d = 0; d < 2; d++) {
        if (v->k[d] < 1 || v->dil[d] < 1 || v->stride[d] < 1 || v->pad[d] < 0)
            return k_fail(
                k, "RuntimeError: %s: kernel size, dilation and stride should be greater than zero",
                k->op->name);
        v->out[d] = (v->in[d] + 2 * v->pad[d] - v->dil[d] * (v->k[d] - 1) - 1) / v->stride[d] + 1;
    }
    return true;
}

// Calls for each column element its place in the image; -1 in the padding.
static int64_t image_place(const Windows *v, int64_t row, int64_t column) {
    int64_t kx = row % v->k[1], ky = row / v->k[1] % v->k[0], c = row / v->k[1] / v->k[0];
    int64_t y = column / v->out[1] * v->stride[0] - v->pad[0] + ky * v->dil[0];
    int64_t x = column % v->out[1] * v->stride[1] - v->pad[1] + kx * v->dil[1];
    return y < 0 || x < 0 || y >= v->in[0] || x >= v->in[1] ? -1
                                                            : (c * v->in[0] + y) * v->in[1] + x;
}

bool kern_im2col(K *k) {
    const Tensor *x = eager_contiguous(k->x, k->in[0], k->in[0]->dtype);
    Tensor *y = dense_res(k, 0, k->res[0]->dtype);
    int lead = k->in[0]->ndim - 3;
    if (!x || !y || lead < 0 || lead > 1)
        return k_fail(k, "RuntimeError: im2col: Expected 3D or 4D (batch mode) tensor");
    Windows v = {.in = {x->size[lead + 1], x->size[lead + 2]}, .c = x->size[lead]};
    if (!read_windows(k, 1, &v))
        return false;
    int64_t rows = v.c * v.k[0] * v.k[1], columns = v.out[0] * v.out[1],
            image = v.c * v.in[0] * v.in[1];
    size_t bytes = (size_t)dtype_info[x->dtype].bytes;
    for (int64_t i = 0, n = tensor_numel(y); i < n; i++) {
        int64_t at = image_place(&v, i / columns % rows, i % columns);
        if (at >= 0)
            memcpy(at_elem(y, i), at_elem(x, i / columns / rows * image + at), bytes);
    }
    return dense_done(k, 0, y);
}

bool kern_col2im(K *k) {
    const Tensor *x = eager_contiguous(k->x, k->in[0], DT_f64);
    Tensor *acc = eager_like(k->x, k->res[0], DT_f64);
    int lead = acc ? acc->ndim - 3 : -1;
    if (!x || !acc || lead < 0 || lead > 1)
        return k_fail(k, "RuntimeError: col2im: Expected 2D or 3D (batch mode) tensor");
    Windows v = {.in = {acc->size[lead + 1], acc->size[lead + 2]}, .c = acc->size[lead]};
    if (!read_windows(k, 2, &v))
        return false;
    int64_t rows = v.c * v.k[0] * v.k[1], columns = v.out[0] * v.out[1],
            image = v.c * v.in[0] * v.in[1];
    if (x->size[lead] != rows || x->size[lead + 1] != columns)
        return k_fail(k,
                      "RuntimeError: col2im: Given output_size, expected size of input's dimension "
                      "to match the calculated "
                      "number of sliding blocks %lld",
                      (long long)columns);
    for (int64_t i = 0, n = tensor_numel(x); i < n; i++) {
        int64_t at = image_place(&v, i / columns % rows, i % columns);
        if (at >= 0) {
            at += i / columns / rows * image;
            put_d(acc, at, get_d(acc, at) + get_d(x, i));
        }
    }
    return copy_into(k->x, k->res[0], acc);
}
