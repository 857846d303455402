// resample.c: resizing of images: each output position along a dimension is a few input positions
// with weights (nearest, linear, cubic), a position in space the product over dimensions; gradients
// the same weights backwards. Positions are computed in float for all but float64, as the recorded
// results were.
#include "core/eager/kernel.h"

#include <math.h>
#include <string.h>

enum { SPACE = 3, TAPS = 4 };

typedef struct Taps {
    int n;       // weights a position: 1, 2 or 4
    int64_t *at; // (positions, n) input positions
    double *w;   // (positions, n)
} Taps;

typedef enum Filter { FILTER_nearest, FILTER_exact, FILTER_linear, FILTER_cubic } Filter;

typedef struct Resize {
    Filter filter;
    int space;
    bool align;          // the corners' centres coincide
    bool single;         // positions in float
    bool bytes;          // images of bytes: rounded after each direction
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

static void make_taps(Eager *x, Resize *r, int d) {
    Taps *t = &r->taps[d];
    t->n = r->filter <= FILTER_exact ? 1 : r->filter == FILTER_linear ? 2 : 4;
    t->at = ARENA_ARRAY(x->arena, r->out[d] * t->n + 1, int64_t);
    t->w = ARENA_ARRAY(x->arena, r->out[d] * t->n + 1, double);
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
            w[1] = w[1] < 0 ? 0 : w[1] > 1 ? 1 : w[1];
            w[0] = narrow(r, 1 - w[1]);
            continue;
        }
        double base = floor(src), f = narrow(r, src - base);
        const double x4[4] = {f + 1, f, 1 - f, 2 - f}, near[4] = {2, 1, 1, 2};
        for (int i = 0; i < 4; i++) {
            at[i] = bounded((int64_t)base - 1 + i, r->in[d]);
            w[i] = cubic(x4[i], near[i]);
        }
    }
}

static bool setup(K *k, Resize *r, const Tensor *wide, const Tensor *out) {
    const char *name = k->op->name;
    r->filter = strstr(name, "nearest_exact") ? FILTER_exact
                : strstr(name, "nearest")     ? FILTER_nearest
                : strstr(name, "bicubic")     ? FILTER_cubic
                                              : FILTER_linear;
    r->space = wide->ndim - 2;
    r->single = wide->dtype != DT_f64;
    r->bytes = wide->dtype == DT_u8;
    if (r->space < 1 || r->space > SPACE || out->ndim != wide->ndim ||
        wide->size[0] != out->size[0] || wide->size[1] != out->size[1])
        return k_fail(k, "RuntimeError: %s: input of %d dimensions", name, wide->ndim);
    for (int d = 0; d < SPACE; d++) {
        bool there = d >= SPACE - r->space;
        r->in[d] = there ? wide->size[d - SPACE + wide->ndim] : 1;
        r->out[d] = there ? out->size[d - SPACE + out->ndim] : 1;
        if (r->in[d] == 0 && r->out[d])
            return k_fail(k, "RuntimeError: %s: Input and output sizes should be greater than 0",
                          name);
        if (there) {
            make_taps(k->x, r, d);
        } else {
            static int64_t zero[1];
            static double one[1] = {1};
            r->taps[d] = (Taps){1, zero, one};
        }
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
            if (r->bytes)
                row = floor((row < 0 ? 0 : row > 255 ? 255 : row) + 0.5);
            sum += a->w[z * a->n + i] * (b->w[y * b->n + j] * row);
        }
    return sum;
}

static void forward_range(void *ctx, int64_t begin, int64_t end) {
    const Job *j = ctx;
    const Resize *r = j->r;
    Arena tmp = {0};
    int64_t in = r->in[0] * r->in[1] * r->in[2], out = r->out[0] * r->out[1] * r->out[2];
    double *x = ARENA_ARRAY(&tmp, in + 1, double), *y = ARENA_ARRAY(&tmp, out + 1, double);
    for (int64_t p = begin; p < end; p++) {
        load_d(j->x->dtype, at_elem(j->x, p * in), 1, in, x);
        for (int64_t o = 0; o < out; o++)
            y[o] =
                gather(r, x, o / r->out[2] / r->out[1], o / r->out[2] % r->out[1], o % r->out[2]);
        for (int64_t o = 0; r->bytes && o < out; o++)
            y[o] = floor((y[o] < 0 ? 0 : y[o] > 255 ? 255 : y[o]) + 0.5);
        store_d(j->y->dtype, at_elem(j->y, p * out), 1, out, y);
    }
    arena_free(&tmp);
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
    if (!x || !y || !setup(k, &r, x, y))
        return false;
    Job j = {&r, x, y};
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

// grid_sampler: values at given places

typedef struct Grid {
    int space, mode, padding;
    bool align, single;
    int64_t in[SPACE]; // sizes of the last dimensions, slowest first
    int64_t in_n;
} Grid;

static double in_single(const Grid *g, double v) {
    return g->single ? (double)(float)v : v;
}

static double reflected(double x, double twice_low, double twice_high) {
    if (twice_low == twice_high)
        return 0;
    double low = twice_low / 2, span = (twice_high - twice_low) / 2;
    x = fabs(x - low);
    double extra = fmod(x, span), flips = floor(x / span);
    return fmod(flips, 2) == 0 ? extra + low : span - extra + low;
}

static double padded(const Grid *g, double x, int64_t n) {
    double top = (double)(n - 1);
    if (g->padding == 2)
        x = g->align ? reflected(x, 0, 2 * top) : reflected(x, -1, 2 * (double)n - 1);
    if (g->padding != 0)
        x = x < 0 ? 0 : x > top ? top : x != x ? 0 : x;
    return x;
}

static double unnormalised(const Grid *g, double c, int64_t n) {
    return g->align ? in_single(g, in_single(g, (c + 1) / 2) * (double)(n - 1))
                    : in_single(g, (in_single(g, in_single(g, c + 1) * (double)n) - 1) / 2);
}

static double value_at(const Grid *g, const double *x, const int64_t *at) {
    int64_t i = 0;
    for (int d = 0; d < g->space; d++) {
        if (at[d] < 0 || at[d] >= g->in[d])
            return 0;
        i = i * g->in[d] + at[d];
    }
    return x[i];
}

static int64_t whole(double v) {
    return v >= -4611686018427387904.0 && v <= 4611686018427387904.0 ? (int64_t)v : -1;
}

// The weighted corners of the cell that holds the place.
static double linear_at(const Grid *g, const double *x, const double *place) {
    double sum = 0;
    for (int corner = 0; corner < 1 << g->space; corner++) {
        int64_t at[SPACE];
        double w = 1;
        for (int d = 0; d < g->space; d++) {
            double base = floor(place[d]), f = place[d] - base;
            bool up = corner >> d & 1;
            at[d] = whole(base) + up;
            w *= up ? f : 1 - f;
        }
        bool inside = true;
        for (int d = 0; d < g->space; d++)
            inside = inside && at[d] >= 0 && at[d] < g->in[d];
        if (inside)
            sum += w * value_at(g, x, at);
    }
    return sum;
}

static double cubic_at(const Grid *g, const double *x, const double *place) {
    double w[2][4], base[2], sum = 0;
    for (int d = 0; d < 2; d++) {
        base[d] = floor(place[d]);
        double f = place[d] - base[d];
        w[d][0] = cubic(f + 1, 2);
        w[d][1] = cubic(f, 1);
        w[d][2] = cubic(1 - f, 1);
        w[d][3] = cubic(2 - f, 2);
    }
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < 4; j++) {
            int64_t at[SPACE] = {whole(padded(g, base[0] - 1 + i, g->in[0])),
                                 whole(padded(g, base[1] - 1 + j, g->in[1]))};
            sum += w[0][i] * w[1][j] * value_at(g, x, at);
        }
    return sum;
}

// grid_sampler_2d, grid_sampler_3d: (input, grid, interpolation_mode, padding_mode, align_corners)
bool kern_grid_sampler(K *k) {
    const Tensor *x = eager_contiguous(k->x, k->in[0], DT_f64),
                 *grid = k->in[1] ? eager_contiguous(k->x, k->in[1], DT_f64) : NULL;
    Tensor *y = dense_res(k, 0, k->res[0]->dtype);
    Grid g = {.space = k->in[0]->ndim - 2,
              .mode = (int)ki(k, 2, 0),
              .padding = (int)ki(k, 3, 0),
              .align = kb(k, 4),
              .single = k->in[0]->dtype != DT_f64,
              .in_n = 1};
    if (!x || !grid || !y || (g.space != 2 && g.space != 3) || grid->ndim != x->ndim ||
        grid->size[grid->ndim - 1] != g.space || grid->size[0] != x->size[0] ||
        (g.mode == 2 && g.space != 2) || y->ndim != x->ndim)
        return k_fail(
            k, "RuntimeError: grid_sampler(): expected grid to have size %d in last dimension",
            g.space);
    for (int d = 0; d < g.space; d++) {
        g.in[d] = x->size[2 + d];
        g.in_n *= g.in[d];
    }
    int64_t places = tensor_numel(grid) / (grid->size[0] > 0 ? grid->size[0] * g.space : 1),
            planes = x->size[1];
    for (int64_t n = 0; n < x->size[0]; n++)
        for (int64_t p = 0; p < places; p++) {
            double place[SPACE];
            for (int d = 0; d < g.space; d++) {
                place[d] = unnormalised(
                    &g, get_d(grid, (n * places + p) * g.space + g.space - 1 - d), g.in[d]);
                if (g.mode != 2)
                    place[d] = in_single(&g, padded(&g, place[d], g.in[d]));
                if (g.mode == 1)
                    place[d] = nearbyint(place[d]);
            }
            for (int64_t c = 0; c < planes; c++) {
                const double *plane = (const double *)tensor_data(x) + (n * planes + c) * g.in_n;
                int64_t at[SPACE] = {0};
                for (int d = 0; d < g.space && g.mode == 1; d++)
                    at[d] = whole(place[d]);
                double v = g.mode == 0   ? linear_at(&g, plane, place)
                           : g.mode == 1 ? value_at(&g, plane, at)
                                         : cubic_at(&g, plane, place);
                put_d(y, (n * planes + c) * places + p, v);
            }
        }
    return dense_done(k, 0, y);
}

// affine_grid_generator(theta, size, align_corners)
bool kern_affine_grid(K *k) {
    const Tensor *theta = k->in[0];
    Tensor *out = dense_res(k, 0, k->res[0]->dtype);
    int space = out ? out->ndim - 2 : 0;
    if (!out || (space != 2 && space != 3) || theta->ndim != 3 || theta->size[1] != space ||
        theta->size[2] != space + 1)
        return k_fail(
            k,
            "RuntimeError: affine_grid_generator: theta of another shape than the size asks for");
    const Tensor *o = out;
    WALK (w, walk_tensors(&o, 1)) {
        double sum = 0;
        for (int j = 0; j <= space; j++) {
            double v = 1;
            if (j < space) {
                int d = space - j;
                int64_t n = out->size[d];
                v = n > 1 ? 2 * (double)w.index[d] / (double)(n - 1) - 1 : 0;
                if (!kb(k, 2))
                    v = n > 1 ? v * (double)(n - 1) / (double)n : 0;
            }
            sum +=
                v * get_d(theta, w.index[0] * theta->stride[0] +
                                     w.index[space + 1] * theta->stride[1] + j * theta->stride[2]);
        }
        put_d(out, w.at[0], sum);
    }
    return dense_done(k, 0, out);
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
