// conv_depth.c: convolutions of one channel a group: each tap scales its part of the input. Floats
// of two dimensions go over the whole plane at once (conv_flat.c's layout), or over neighbouring
// channels where these are next to each other in memory.
#include <string.h>

#include "core/eager/conv.h"
#include "core/eager/loops.h"

// One channel a group: each tap scales a row of the input.
#define DEPTHWISE(T, name)                                                                         \
    VECTORED static void name(const Conv *v, int64_t begin, int64_t end) {                         \
        for (int64_t i = begin; i < end; i++) {                                                    \
            const T *plane = (const T *)v->x + i * v->in_n,                                        \
                    *w = (const T *)v->w + i % v->groups * v->k_n;                                 \
            T *y = (T *)(uintptr_t)v->y + i * v->out_n;                                            \
            for (int64_t tap = 0; tap < v->k_n; tap++) {                                           \
                int64_t kx = tap % v->k[2], ky = tap / v->k[2] % v->k[1],                          \
                        kz = tap / v->k[2] / v->k[1];                                              \
                int64_t step = v->stride[2], lead = kx * v->dil[2] - v->pad[2];                    \
                int64_t from = lead < 0 ? (-lead + step - 1) / step : 0;                           \
                int64_t to = v->in[2] - lead > 0 ? (v->in[2] - lead + step - 1) / step : 0;        \
                to = to < v->out[2] ? to : v->out[2];                                              \
                for (int64_t r = 0; r < v->out[0] * v->out[1]; r++) {                              \
                    int64_t sy = r % v->out[1] * v->stride[1] - v->pad[1] + ky * v->dil[1];        \
                    int64_t sz = r / v->out[1] * v->stride[0] - v->pad[0] + kz * v->dil[0];        \
                    if (sy < 0 || sy >= v->in[1] || sz < 0 || sz >= v->in[0])                      \
                        continue;                                                                  \
                    const T *line = plane + (sz * v->in[1] + sy) * v->in[2];                       \
                    T *row = y + r * v->out[2];                                                    \
                    for (int64_t o = from; o < to; o++)                                            \
                        row[o] += w[tap] * line[lead + o * step];                                  \
                }                                                                                  \
            }                                                                                      \
        }                                                                                          \
    }
DEPTHWISE(float, depthwise_f)
DEPTHWISE(double, depthwise_d)

// n results from tap offsets on, added to `first`.
typedef float Piece __attribute__((vector_size(64)));

VECTORED static void flat_row(int64_t n, const float *x, const float *w, const int64_t *tap,
                              int64_t taps, float first, float *y) {
    for (int64_t i = 0; i < n; i += 64) {
        Piece a = (Piece){0} + first, b = a, c = a, d = a, v[4];
        for (int64_t t = 0; t < taps; t++) {
            memcpy(v, x + i + tap[t], sizeof v);
            a += w[t] * v[0];
            b += w[t] * v[1];
            c += w[t] * v[2];
            d += w[t] * v[3];
        }
        memcpy(y + i, &a, sizeof a);
        memcpy(y + i + 16, &b, sizeof b);
        memcpy(y + i + 32, &c, sizeof c);
        memcpy(y + i + 48, &d, sizeof d);
    }
}

static bool is_plane(const Conv *v) {
    return v->dtype == DT_f32 && v->in[0] == 1 && v->k[0] == 1;
}

// The bias is the first summand, but with steps of one the last.
static bool bias_first(const Conv *v) {
    return v->stride[1] != 1 || v->stride[2] != 1;
}

static void flat_range(void *ctx, int64_t begin, int64_t end) {
    const Conv *v = ctx;
    Arena tmp = {0};
    Flat f = flat_of(v);
    float *x = ARENA_ARRAY(&tmp, f.phases * f.lines * f.pitch + 128, float),
          *y = ARENA_ARRAY(&tmp, f.positions + 64, float);
    int64_t *tap = ARENA_ARRAY(&tmp, v->k_n + 1, int64_t);
    flat_taps(v, &f, tap);
    for (int64_t i = begin; i < end; i++) {
        const float *bias = v->bias;
        float *to = (float *)(uintptr_t)v->y + i * v->out_n, b = bias ? bias[i % v->groups] : 0;
        bool first = bias_first(v);
        flat_lay_out(v, &f, (const float *)v->x + i * v->in_n, x);
        flat_row(f.positions, x, (const float *)v->w + i % v->groups * v->k_n, tap, v->k_n,
                 first ? b : 0, y);
        for (int64_t r = 0; r < v->out[1]; r++)
            for (int64_t c = 0; c < v->out[2]; c++)
                to[r * v->out[2] + c] = first ? y[r * f.pitch + c] : b + y[r * f.pitch + c];
    }
    arena_free(&tmp);
}

void conv_depth_range(void *ctx, int64_t begin, int64_t end) {
    const Conv *v = ctx;
    if (is_plane(v) && flat_is_short(v))
        flat_range(ctx, begin, end);
    else if (v->dtype == DT_f32)
        depthwise_f(v, begin, end);
    else
        depthwise_d(v, begin, end);
}

// channels next to each other

bool conv_depth_last_fits(const Conv *v) {
    return v->c == 1 && v->o == 1 && is_plane(v);
}

typedef struct Last {
    const Conv *v;
    const float *w; // (k, groups)
} Last;

// Taps [lo, hi) of one dimension that lie inside, of the window at `at`.
static void inside(int64_t at, int64_t k, int64_t dil, int64_t size, int64_t *lo, int64_t *hi) {
    *lo = at < 0 ? (-at + dil - 1) / dil : 0;
    *hi = at < size ? (size - at + dil - 1) / dil : 0;
    *hi = *hi < k ? *hi : k;
}

// The window of one position: its taps inside the input, the first one's place in x and w.
typedef struct Window {
    int64_t high, wide;     // taps
    int64_t x_line, x_next; // elements from one to the next below and beside
    int64_t w_line, w_next; // the same of w
    bool bias_first;
} Window;

enum { CHANNELS = 64 };

typedef float Loose __attribute__((vector_size(64), aligned(4), may_alias));

// y of CHANNELS channels from x, w and bias (NULL: none) on.
VECTORED static void last_many(const Window *d, const float *x, const float *w, const float *bias,
                               float *y) {
    const Loose *add = (const Loose *)bias;
    Loose *out = (Loose *)y, a = {0}, b = a, c = a, e = a;
    if (bias && d->bias_first)
        a = add[0], b = add[1], c = add[2], e = add[3];
    for (int64_t ky = 0; ky < d->high; ky++)
        for (int64_t kx = 0; kx < d->wide; kx++) {
            const Loose *v = (const Loose *)(x + ky * d->x_line + kx * d->x_next),
                        *f = (const Loose *)(w + ky * d->w_line + kx * d->w_next);
            a += f[0] * v[0];
            b += f[1] * v[1];
            c += f[2] * v[2];
            e += f[3] * v[3];
        }
    if (bias && !d->bias_first)
        a += add[0], b += add[1], c += add[2], e += add[3];
    out[0] = a, out[1] = b, out[2] = c, out[3] = e;
}

static void last_few(const Window *d, int64_t n, const float *x, const float *w, const float *bias,
                     float *y) {
    for (int64_t i = 0; i < n; i++) {
        float acc = bias && d->bias_first ? bias[i] : 0;
        for (int64_t ky = 0; ky < d->high; ky++)
            for (int64_t kx = 0; kx < d->wide; kx++)
                acc +=
                    w[ky * d->w_line + kx * d->w_next + i] * x[ky * d->x_line + kx * d->x_next + i];
        y[i] = bias && !d->bias_first ? acc + bias[i] : acc;
    }
}

// All channels of one position; x: the input's image.
static void last_pixel(const Last *l, const float *x, int64_t oy, int64_t ox, float *y) {
    const Conv *v = l->v;
    const float *bias = v->bias, *w = l->w;
    int64_t y0, y1, x0, x1, channels = v->groups;
    int64_t top = oy * v->stride[1] - v->pad[1], left = ox * v->stride[2] - v->pad[2];
    inside(top, v->k[1], v->dil[1], v->in[1], &y0, &y1);
    inside(left, v->k[2], v->dil[2], v->in[2], &x0, &x1);
    Window d = {.high = y1 - y0,
                .wide = x1 - x0,
                .x_line = v->dil[1] * v->in[2] * channels,
                .x_next = v->dil[2] * channels,
                .w_line = v->k[2] * channels,
                .w_next = channels,
                .bias_first = bias_first(v)};
    if (d.high > 0 && d.wide > 0) {
        x += ((top + y0 * v->dil[1]) * v->in[2] + left + x0 * v->dil[2]) * channels;
        w += (y0 * v->k[2] + x0) * channels;
    }
    for (int64_t c = 0, n; c < channels; c += n) {
        n = channels - c < CHANNELS ? channels - c : CHANNELS;
        const float *b = bias ? bias + c : NULL;
        if (n == CHANNELS)
            last_many(&d, x + c, w + c, b, y + c);
        else
            last_few(&d, n, x + c, w + c, b, y + c);
    }
}

static void last_lines(void *ctx, int64_t begin, int64_t end) {
    const Last *l = ctx;
    const Conv *v = l->v;
    for (int64_t line = begin; line < end; line++) {
        int64_t image = line / v->out[1], oy = line % v->out[1];
        const float *x = (const float *)v->x + image * v->in_n * v->groups;
        float *y = (float *)(uintptr_t)v->y + line * v->out[2] * v->groups;
        for (int64_t ox = 0; ox < v->out[2]; ox++)
            last_pixel(l, x, oy, ox, y + ox * v->groups);
    }
}

void conv_depth_last(const Conv *v) {
    const float *w = v->w;
    float *turned = ARENA_ARRAY(v->eager->arena, v->k_n * v->groups + 1, float);
    for (int64_t c = 0; c < v->groups; c++)
        for (int64_t t = 0; t < v->k_n; t++)
            turned[t * v->groups + c] = w[c * v->k_n + t];
    Last l = {v, turned};
    int64_t grain = 16384 / (v->out[2] * v->groups * v->k_n + 1) + 1;
    parallel_for(v->eager->c->threads, v->n * v->out[1], grain, last_lines, &l);
}
