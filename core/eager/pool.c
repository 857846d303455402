// pool.c: pooling over one to three dimensions: windows, adaptive windows, with indices or
// gradients, plane by plane.
#include "core/eager/kernel.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "core/eager/loops.h"

enum { SPACE = 3 };

typedef struct Pool {
    int space;      // spatial dimensions
    int64_t planes; // batch times channels
    int64_t in[SPACE], out[SPACE], k[SPACE], stride[SPACE], pad[SPACE], dil[SPACE];
    int64_t in_n, out_n; // their products
    const Tensor *x;     // dense (planes, in)
    Tensor *y, *where;   // dense (planes, out): values, and flat indices or NULL
    bool offsets;        // where holds places in the window instead
    bool count_pad, adaptive;
    int64_t divisor; // 0: the window's size
} Pool;

static bool read_dims(K *k, int i, int space, int64_t dflt, int64_t *out) {
    int64_t v[SPACE];
    int n = i >= 0 && k_given(k, i) ? kints(k, i, v, SPACE) : 0;
    if (n != 0 && n != 1 && n != space)
        return k_fail(k, "RuntimeError: %s: %s must either be a single int, or a tuple of %d ints",
                      k->op->name, k->op->args[i].name, space);
    for (int j = 0; j < SPACE; j++)
        out[j] = 1;
    for (int j = 0; j < space; j++)
        out[SPACE - space + j] = n == 0 ? dflt : v[n == 1 ? 0 : j];
    return true;
}

// Spatial dimensions by the op's name: max_pool2d, adaptive_avg_pool3d; prims by the input.
static int space_of(const K *k) {
    const char *digit = strpbrk(k->op->name, "123");
    int64_t kernel[SPACE];
    int list = op_arg_index(k->op, "kernel_size");
    return digit ? *digit - '0' : list >= 0 ? kints(k, list, kernel, SPACE) : k->in[0]->ndim - 2;
}

static bool setup(K *k, Pool *p, const Tensor *in, const Tensor *out) {
    if (p->space < 1 || p->space > SPACE || in->ndim < p->space || in->ndim > p->space + 2 ||
        out->ndim != in->ndim)
        return k_fail(k, "RuntimeError: %s: expected an input of %d or %d dimensions, got %d",
                      k->op->name, p->space + 1, p->space + 2, in->ndim);
    p->planes = p->in_n = p->out_n = 1;
    for (int i = 0; i < in->ndim - p->space; i++)
        p->planes *= in->size[i];
    for (int i = 0; i < SPACE; i++) {
        int d = in->ndim - SPACE + i;
        bool there = i >= SPACE - p->space;
        p->in[i] = there ? in->size[d] : 1;
        p->out[i] = there ? out->size[d] : 1;
        if (!there) {
            p->k[i] = p->stride[i] = p->dil[i] = 1;
            p->pad[i] = 0;
        }
        p->in_n *= p->in[i];
        p->out_n *= p->out[i];
        if (p->k[i] < 1 || p->stride[i] < 1 || p->dil[i] < 1 || p->pad[i] < 0)
            return k_fail(k, "RuntimeError: %s: kernel size, stride and dilation must be positive",
                          k->op->name);
    }
    return true;
}

static bool window_args(K *k, Pool *p, const Tensor *in, const Tensor *out) {
    p->space = space_of(k);
    int stride = op_arg_index(k->op, "stride");
    bool ok = p->space >= 1 && p->space <= SPACE &&
              read_dims(k, op_arg_index(k->op, "kernel_size"), p->space, 1, p->k) &&
              read_dims(k, stride, p->space, 0, p->stride) &&
              read_dims(k, op_arg_index(k->op, "padding"), p->space, 0, p->pad) &&
              read_dims(k, op_arg_index(k->op, "dilation"), p->space, 1, p->dil);
    for (int i = 0; ok && i < SPACE; i++)
        p->stride[i] = p->stride[i] ? p->stride[i] : p->k[i];
    return ok && setup(k, p, in, out);
}

// The window of output position o in dimension d: [from, to), steps of dil.
static void window_of(const Pool *p, int d, int64_t o, int64_t *from, int64_t *to) {
    if (p->adaptive) {
        int64_t n = p->out[d] > 0 ? p->out[d] : 1;
        *from = o * p->in[d] / n;
        *to = ((o + 1) * p->in[d] + n - 1) / n;
        return;
    }
    *from = o * p->stride[d] - p->pad[d];
    *to = *from + (p->k[d] - 1) * p->dil[d] + 1;
}

static void split3(const int64_t *size, int64_t flat, int64_t *at) {
    assert(size[1] > 0 && size[2] > 0);
    at[2] = flat % size[2];
    at[1] = flat / size[2] % size[1];
    at[0] = flat / size[2] / size[1];
}

// The steps of a window that lie inside, one dimension of it.
typedef struct Inside {
    int64_t first, end, step; // positions
    int64_t before, steps;    // steps of the window before the first; all of them
} Inside;

static Inside inside_of(const Pool *p, int d, int64_t o) {
    Inside in = {.step = p->adaptive ? 1 : p->dil[d]};
    int64_t from, to;
    window_of(p, d, o, &from, &to);
    in.steps = (to - from + in.step - 1) / in.step;
    in.before = from < 0 ? (in.step - 1 - from) / in.step : 0;
    in.first = from + in.before * in.step;
    in.end = to < p->in[d] ? to : p->in[d];
    return in;
}

// The largest element of a window; NaN wins, the first of equals. offset: its step in the window.
static double window_max(const Pool *p, const double *x, int64_t o, int64_t *place,
                         int64_t *offset) {
    int64_t at[SPACE];
    Inside in[SPACE];
    double best = -(double)INFINITY;
    split3(p->out, o, at);
    for (int d = 0; d < SPACE; d++)
        in[d] = inside_of(p, d, at[d]);
    *place = -1;
    *offset = 0;
    for (int64_t z = in[0].first, nz = in[0].before; z < in[0].end; z += in[0].step, nz++)
        for (int64_t y = in[1].first, ny = in[1].before; y < in[1].end; y += in[1].step, ny++)
            for (int64_t w = in[2].first, nw = in[2].before; w < in[2].end; w += in[2].step, nw++) {
                int64_t i = (z * p->in[1] + y) * p->in[2] + w;
                if (*place < 0 || x[i] > best || x[i] != x[i]) {
                    best = x[i];
                    *place = i;
                    *offset = (nz * in[1].steps + ny) * in[2].steps + nw;
                }
            }
    return best;
}

static void max_range(void *ctx, int64_t begin, int64_t end) {
    const Pool *p = ctx;
    Arena tmp = {0};
    double *x = ARENA_ARRAY(&tmp, p->in_n + 1, double),
           *y = ARENA_ARRAY(&tmp, p->out_n + 1, double);
    for (int64_t c = begin; c < end; c++) {
        load_d(p->x->dtype, at_elem(p->x, c * p->in_n), 1, p->in_n, x);
        for (int64_t o = 0; o < p->out_n; o++) {
            int64_t place, offset;
            y[o] = window_max(p, x, o, &place, &offset);
            if (p->where)
                put_i(p->where, c * p->out_n + o, p->offsets ? offset : place < 0 ? 0 : place);
        }
        store_d(p->y->dtype, at_elem(p->y, c * p->out_n), 1, p->out_n, y);
    }
    arena_free(&tmp);
}

// Integers of 64 bits do not fit into double: their maximum is moved by its index.
static void max_wide_ints(const Pool *p) {
    for (int64_t i = 0; i < p->planes * p->out_n; i++) {
        int64_t place = get_i(p->where, i);
        put_i(p->y, i, get_i(p->x, i / p->out_n * p->in_n + place));
    }
}

// Planes that are worth a thread. Windows may be of any size, so their product is no integer.
static int64_t grain_of(const Pool *p) {
    enum { WORK = 16384 };
    double work = (double)p->out_n * (double)p->k[0] * (double)p->k[1] * (double)p->k[2] + 1;
    return work < WORK ? (int64_t)(WORK / work) + 1 : 1;
}

static bool run_max(K *k, Pool *p) {
    bool pair = k->n_res > 1, wide = k->in[0]->dtype == DT_i64;
    p->x = eager_contiguous(k->x, k->in[0], k->in[0]->dtype);
    p->y = dense_res(k, 0, k->res[0]->dtype);
    p->where = pair           ? dense_res(k, 1, k->res[1]->dtype)
               : wide && p->y ? eager_like(k->x, p->y, DT_i64)
                              : NULL;
    if (!p->x || !p->y || ((pair || wide) && !p->where))
        return false;
    parallel_for(k->x->c->threads, p->planes, grain_of(p), max_range, p);
    if (wide && !p->offsets)
        max_wide_ints(p);
    return dense_done(k, 0, p->y) && (!pair || dense_done(k, 1, p->where));
}

// max_poolNd[_with_indices](self, kernel, stride, padding, dilation, ceil_mode),
// prims._low_memory_max_pool…
bool kern_max_pool(K *k) {
    Pool p = {.offsets = str_starts(k->op->name, "_low_memory")};
    return window_args(k, &p, k->in[0], k->res[0]) && run_max(k, &p);
}

static bool adaptive_args(K *k, Pool *p, const Tensor *in, const Tensor *out) {
    p->space = space_of(k);
    p->adaptive = true;
    for (int i = 0; i < SPACE; i++)
        p->k[i] = p->stride[i] = p->dil[i] = 1;
    if (!setup(k, p, in, out))
        return false;
    for (int i = 0; i < SPACE; i++)
        if (p->in[i] == 0 && p->out_n)
            return k_fail(
                k,
                "RuntimeError: %s(): Expected input to have non-zero size for non-batch dimensions",
                k->op->name);
    return true;
}

bool kern_adaptive_max_pool(K *k) {
    Pool p = {0};
    return adaptive_args(k, &p, k->in[0], k->res[0]) && run_max(k, &p);
}

// The part of a window that lies inside, and what its sum is divided by. False if it is empty.
static bool window_inside(const Pool *p, int64_t o, int64_t *from, int64_t *to, int64_t *divisor) {
    int64_t at[SPACE], padded = 1, inside = 1;
    split3(p->out, o, at);
    for (int d = 0; d < SPACE; d++) {
        window_of(p, d, at[d], &from[d], &to[d]);
        // A window that starts inside the padding ends at the padded edge.
        int64_t edge = p->in[d] + p->pad[d];
        to[d] = to[d] < edge ? to[d] : edge;
        padded *= to[d] - from[d];
        from[d] = from[d] > 0 ? from[d] : 0;
        to[d] = to[d] < p->in[d] ? to[d] : p->in[d];
        inside *= to[d] > from[d] ? to[d] - from[d] : 0;
    }
    *divisor = p->divisor ? p->divisor : p->count_pad && !p->adaptive ? padded : inside;
    return inside > 0;
}

// Of integers: sums wrap, the quotient is cut.
static int64_t window_mean_i(const Pool *p, const int64_t *x, int64_t o) {
    int64_t from[SPACE], to[SPACE], divisor;
    uint64_t sum = 0;
    if (!window_inside(p, o, from, to, &divisor) || !divisor)
        return 0;
    for (int64_t z = from[0]; z < to[0]; z++)
        for (int64_t y = from[1]; y < to[1]; y++)
            for (int64_t w = from[2]; w < to[2]; w++)
                sum += (uint64_t)x[(z * p->in[1] + y) * p->in[2] + w];
    return divisor == -1 ? (int64_t)(0 - sum) : (int64_t)sum / divisor;
}

// The windows of one dimension, and how many elements each counts.
typedef struct Spans {
    int64_t *from, *to, *count; // (out)
} Spans;

static void spans_of(Arena *a, const Pool *p, Spans *all) {
    for (int d = 0; d < SPACE; d++) {
        Spans *s = &all[d];
        s->from = ARENA_ARRAY(a, p->out[d] + 1, int64_t);
        s->to = ARENA_ARRAY(a, p->out[d] + 1, int64_t);
        s->count = ARENA_ARRAY(a, p->out[d] + 1, int64_t);
        for (int64_t o = 0; o < p->out[d]; o++) {
            int64_t from, to;
            window_of(p, d, o, &from, &to);
            // A window that starts inside the padding ends at the padded edge.
            int64_t edge = p->in[d] + p->pad[d];
            to = to < edge ? to : edge;
            s->count[o] = to - from;
            s->from[o] = from > 0 ? from : 0;
            s->to[o] = to < p->in[d] ? to : p->in[d];
            s->to[o] = s->to[o] > s->from[o] ? s->to[o] : s->from[o];
            if (!p->count_pad || p->adaptive)
                s->count[o] = s->to[o] - s->from[o];
        }
    }
}

// What a line of results is divided by, apart from the counts along it.
static double line_divisor(const Pool *p, const Spans *s, int64_t z, int64_t y) {
    return p->divisor ? (double)p->divisor : (double)(s[0].count[z] * s[1].count[y]);
}

VECTORED static void add_line(int64_t n, double *to, const double *from) {
    for (int64_t i = 0; i < n; i++)
        to[i] += from[i];
}

// A plane: the lines of a window are added up, then the elements along them.
static void avg_plane(const Pool *p, const Spans *s, const double *x, double *line, double *out) {
    const Spans *c = &s[2];
    for (int64_t z = 0; z < p->out[0]; z++)
        for (int64_t y = 0; y < p->out[1]; y++, out += p->out[2]) {
            double divisor = line_divisor(p, s, z, y);
            memset(line, 0, (size_t)p->in[2] * sizeof *line);
            for (int64_t i = s[0].from[z]; i < s[0].to[z]; i++)
                for (int64_t j = s[1].from[y]; j < s[1].to[y]; j++)
                    add_line(p->in[2], line, x + (i * p->in[1] + j) * p->in[2]);
            for (int64_t o = 0; o < p->out[2]; o++) {
                double sum = 0, by = p->divisor ? divisor : divisor * (double)c->count[o];
                for (int64_t w = c->from[o]; w < c->to[o]; w++)
                    sum += line[w];
                out[o] = by != 0 ? sum / by : 0;
            }
        }
}

static void avg_range(void *ctx, int64_t begin, int64_t end) {
    const Pool *p = ctx;
    Arena tmp = {0};
    Spans s[SPACE];
    double *x = ARENA_ARRAY(&tmp, p->in_n + 1, double),
           *y = ARENA_ARRAY(&tmp, p->out_n + 1, double),
           *line = ARENA_ARRAY(&tmp, p->in[2] + 1, double);
    spans_of(&tmp, p, s);
    for (int64_t c = begin; c < end; c++) {
        if (p->x->dtype == DT_i64) {
            for (int64_t o = 0; o < p->out_n; o++)
                put_i(p->y, c * p->out_n + o,
                      window_mean_i(p, (const int64_t *)(void *)at_elem(p->x, c * p->in_n), o));
            continue;
        }
        load_d(p->x->dtype, at_elem(p->x, c * p->in_n), 1, p->in_n, x);
        avg_plane(p, s, x, line, y);
        store_d(p->y->dtype, at_elem(p->y, c * p->out_n), 1, p->out_n, y);
    }
    arena_free(&tmp);
}

static bool run_avg(K *k, Pool *p) {
    p->x = eager_contiguous(k->x, k->in[0], k->in[0]->dtype);
    p->y = dense_res(k, 0, k->res[0]->dtype);
    if (p->y && tensor_numel(p->y) == 0)
        return dense_done(k, 0, p->y);
    int64_t most = 2 * k->x->c->threads;
    if (!p->x || !p->y || !k_room(k, most * p->in_n, sizeof(double)) ||
        !k_room(k, most * p->out_n, sizeof(double)))
        return false;
    parallel_for(k->x->c->threads, p->planes, grain_of(p), avg_range, p);
    return dense_done(k, 0, p->y);
}

static void avg_options(K *k, Pool *p) {
    int count = op_arg_index(k->op, "count_include_pad"),
        divisor = op_arg_index(k->op, "divisor_override");
    p->count_pad = count < 0 || kb(k, count);
    p->divisor = divisor >= 0 ? ki(k, divisor, 0) : 0;
}

bool kern_avg_pool(K *k) {
    Pool p = {0};
    avg_options(k, &p);
    return window_args(k, &p, k->in[0], k->res[0]) && run_avg(k, &p);
}

bool kern_adaptive_avg_pool(K *k) {
    Pool p = {0};
    return adaptive_args(k, &p, k->in[0], k->res[0]) && run_avg(k, &p);
}

// Gradients: (grad_output, self, …) -> gradient of self. Sums of what fell on each element.
typedef struct AvgBack {
    const Pool *p;
    const Tensor *g, *to; // dense
} AvgBack;

static void avg_back_plane(const Pool *p, const Spans *s, const double *g, double *line,
                           double *x) {
    const Spans *c = &s[2];
    for (int64_t z = 0; z < p->out[0]; z++)
        for (int64_t y = 0; y < p->out[1]; y++, g += p->out[2]) {
            double divisor = line_divisor(p, s, z, y);
            memset(line, 0, (size_t)p->in[2] * sizeof *line);
            for (int64_t o = 0; o < p->out[2]; o++) {
                double by = p->divisor ? divisor : divisor * (double)c->count[o];
                double share = g[o] / (by != 0 ? by : 1);
                for (int64_t w = c->from[o]; w < c->to[o]; w++)
                    line[w] += share;
            }
            for (int64_t i = s[0].from[z]; i < s[0].to[z]; i++)
                for (int64_t j = s[1].from[y]; j < s[1].to[y]; j++)
                    add_line(p->in[2], x + (i * p->in[1] + j) * p->in[2], line);
        }
}

static void avg_back_range(void *ctx, int64_t begin, int64_t end) {
    const AvgBack *b = ctx;
    const Pool *p = b->p;
    Arena tmp = {0};
    Spans s[SPACE];
    double *x = ARENA_ARRAY(&tmp, p->in_n + 1, double),
           *g = ARENA_ARRAY(&tmp, p->out_n + 1, double),
           *line = ARENA_ARRAY(&tmp, p->in[2] + 1, double);
    spans_of(&tmp, p, s);
    for (int64_t c = begin; c < end; c++) {
        load_d(b->g->dtype, at_elem(b->g, c * p->out_n), 1, p->out_n, g);
        memset(x, 0, (size_t)p->in_n * sizeof *x);
        avg_back_plane(p, s, g, line, x);
        store_d(b->to->dtype, at_elem(b->to, c * p->in_n), 1, p->in_n, x);
    }
    arena_free(&tmp);
}

static bool avg_backward(K *k, Pool *p) {
    if (tensor_numel(k->in[0]) != p->planes * p->out_n)
        return k_fail(k,
                      "RuntimeError: %s: expected a gradient of %lld planes as the input's, got "
                      "%lld elements for planes of %lld",
                      k->op->name, (long long)p->planes, (long long)tensor_numel(k->in[0]),
                      (long long)p->out_n);
    const Tensor *g = eager_contiguous(k->x, k->in[0], k->in[0]->dtype);
    Tensor *to = g ? dense_res(k, 0, k->res[0]->dtype) : NULL;
    if (!to)
        return false;
    AvgBack b = {p, g, to};
    parallel_for(k->x->c->threads, p->planes, 16384 / (p->out_n + p->in_n + 1) + 1, avg_back_range,
                 &b);
    return dense_done(k, 0, to);
}

bool kern_avg_pool_backward(K *k) {
    Pool p = {0};
    avg_options(k, &p);
    return window_args(k, &p, k->in[1], k->in[0]) && avg_backward(k, &p);
}

bool kern_adaptive_avg_pool_backward(K *k) {
    Pool p = {0};
    return adaptive_args(k, &p, k->in[1], k->in[0]) && avg_backward(k, &p);
}

// (grad_output, self, …, indices): each gradient goes to the place of its maximum.
bool kern_max_pool_backward(K *k) {
    const Tensor *index = kt(k, karg(k, "indices"));
    int space = space_of(k);
    const Tensor *g = eager_contiguous(k->x, k->in[0], DT_f64),
                 *at = index ? eager_contiguous(k->x, index, DT_i64) : NULL;
    Tensor *acc = g && at ? eager_like(k->x, k->res[0], DT_f64) : NULL;
    if (!acc || tensor_numel(g) != tensor_numel(at) || acc->ndim < space || g->ndim != acc->ndim)
        return k_fail(k, "RuntimeError: %s: gradient and indices of different sizes", k->op->name);
    int64_t in_n = 1, out_n = 1;
    for (int i = acc->ndim - space; i < acc->ndim; i++) {
        in_n *= acc->size[i];
        out_n *= g->size[i];
    }
    for (int64_t i = 0, n = tensor_numel(g); i < n; i++) {
        int64_t place = get_i(at, i);
        if (place < 0 || place >= in_n)
            return k_fail(k, "RuntimeError: %s: index %lld out of the plane", k->op->name,
                          (long long)place);
        int64_t to = i / out_n * in_n + place;
        put_d(acc, to, get_d(acc, to) + get_d(g, i));
    }
    return copy_into(k->x, k->res[0], acc);
}

// max_unpoolNd(self, indices, output_size, …)
bool kern_max_unpool(K *k) {
    int space = space_of(k);
    const Tensor *x = eager_contiguous(k->x, k->in[0], k->in[0]->dtype),
                 *at = eager_contiguous(k->x, k->in[1], DT_i64);
    Tensor *y = dense_res(k, 0, k->res[0]->dtype);
    if (!x || !at || !y || tensor_numel(x) != tensor_numel(at))
        return k_fail(
            k, "RuntimeError: Expected shape of indices to be same as that of the input tensor");
    int64_t in_n = 1, out_n = 1;
    for (int i = y->ndim - space; i < y->ndim; i++) {
        in_n *= x->size[i];
        out_n *= y->size[i];
    }
    for (int64_t i = 0, n = tensor_numel(x); i < n; i++) {
        int64_t place = get_i(at, i);
        if (place < 0 || place >= out_n)
            return k_fail(k, "RuntimeError: Found an invalid max index: %lld", (long long)place);
        memcpy(at_elem(y, i / in_n * out_n + place), at_elem(x, i),
               (size_t)dtype_info[x->dtype].bytes);
    }
    return dense_done(k, 0, y);
}

// prims._low_memory_max_pool_offsets_to_indices(offsets, kernel, input_size, stride, padding,
// dilation)
bool kern_pool_offsets(K *k) {
    int64_t kernel[SPACE], in[SPACE], stride[SPACE], pad[SPACE], dil[SPACE];
    int space = kints(k, 1, kernel, SPACE);
    const Tensor *both[2] = {k->res[0], k->in[0]};
    if (space < 1 || kints(k, 2, in, SPACE) != space || kints(k, 3, stride, SPACE) != space ||
        kints(k, 4, pad, SPACE) != space || kints(k, 5, dil, SPACE) != space ||
        both[0]->ndim < space)
        return k_fail(k, "RuntimeError: %s: lists of different lengths", k->op->name);
    for (int d = 0; d < space; d++)
        if (kernel[d] < 1)
            return k_fail(k, "RuntimeError: %s: kernel size must be positive, given %lld",
                          k->op->name, (long long)kernel[d]);
    WALK (w, walk_tensors(both, 2)) {
        int64_t offset = get_i(both[1], w.at[1]), flat = 0, place[SPACE] = {0};
        for (int d = space - 1; d >= 0; d--) {
            int64_t o = w.index[w.ndim - space + d];
            place[d] = o * stride[d] - pad[d] + offset % kernel[d] * dil[d];
            offset /= kernel[d];
        }
        for (int d = 0; d < space; d++)
            flat = flat * in[d] + place[d];
        put_i(both[0], w.at[0], flat);
    }
    return true;
}

// fractional_max_poolNd(self, kernel, output_size, random_samples): windows at pseudo-random steps.
bool kern_fractional_max_pool(K *k) {
    Pool p = {.space = space_of(k)};
    const Tensor *r = k->in[3], *x = eager_contiguous(k->x, k->in[0], k->in[0]->dtype);
    Tensor *y = dense_res(k, 0, k->res[0]->dtype), *where = dense_res(k, 1, DT_i64);
    if (!read_dims(k, 1, p.space, 1, p.k) || !x || !y || !where)
        return false;
    for (int i = 0; i < SPACE; i++)
        p.stride[i] = p.dil[i] = 1, p.pad[i] = 0;
    if (!setup(k, &p, k->in[0], k->res[0]) || !r || r->ndim != 3 || r->size[2] != p.space ||
        r->size[0] * r->size[1] < p.planes)
        return k_fail(k, "RuntimeError: %s: random_samples of another shape", k->op->name);
    double *plane = ARENA_ARRAY(k->x->arena, p.in_n + 1, double);
    for (int64_t c = 0; c < p.planes; c++) {
        load_d(x->dtype, at_elem(x, c * p.in_n), 1, p.in_n, plane);
        for (int64_t o = 0; o < p.out_n; o++) {
            int64_t at[SPACE], from[SPACE], best = -1;
            double top = -(double)INFINITY;
            split3(p.out, o, at);
            for (int d = 0; d < SPACE; d++) {
                int sample = d - (SPACE - p.space);
                // 2-d samples are (width, height), 3-d ones (time, height, width).
                if (p.space == 2)
                    sample = 1 - sample;
                double u = d < SPACE - p.space ? 0
                                               : get_d(r, c / r->size[1] * r->stride[0] +
                                                              c % r->size[1] * r->stride[1] +
                                                              sample * r->stride[2]);
                double alpha =
                    p.out[d] > 1 ? (double)(p.in[d] - p.k[d]) / (double)(p.out[d] - 1) : 0;
                if (x->dtype != DT_f64)
                    alpha = (double)(float)alpha;
                from[d] = at[d] == p.out[d] - 1 ? p.in[d] - p.k[d]
                          : x->dtype == DT_f64
                              ? (int64_t)(((double)at[d] + u) * alpha) - (int64_t)(u * alpha)
                              : (int64_t)(((float)at[d] + (float)u) * (float)alpha) -
                                    (int64_t)((float)u * (float)alpha);
                if (from[d] < 0 || from[d] + p.k[d] > p.in[d])
                    return k_fail(k, "RuntimeError: %s: the kernel is larger than the input",
                                  k->op->name);
            }
            for (int64_t z = from[0]; z < from[0] + p.k[0]; z++)
                for (int64_t v = from[1]; v < from[1] + p.k[1]; v++)
                    for (int64_t w = from[2]; w < from[2] + p.k[2]; w++) {
                        int64_t i = (z * p.in[1] + v) * p.in[2] + w;
                        if (best < 0 || plane[i] > top || plane[i] != plane[i]) {
                            top = plane[i];
                            best = i;
                        }
                    }
            put_d(y, c * p.out_n + o, top);
            put_i(where, c * p.out_n + o, best);
        }
    }
    return dense_done(k, 0, y) && dense_done(k, 1, where);
}
