// conv_flat.c: convolutions as matrix products without columns (im2col). The padded image is laid
// out as the phases of its steps: the lines and columns that a window at (0, 0), (0, 1) and so on
// up to the step sees. One tap of the windows of all positions is then a run of memory, if
// positions are counted along the padded lines; those past a line's end are computed and left out.
#include <string.h>

#include "core/eager/conv.h"

// Positions at once: so many that the product stays in the cache; all if threads share them.
static int64_t slice_of(const Conv *v, const Flat *f) {
    enum { SLICE = 768 };
    bool shared = v->n * v->groups == 1 && v->eager->c->threads > 1;
    return shared || f->positions < SLICE ? f->positions : SLICE;
}

Flat flat_of(const Conv *v) {
    Flat f = {.phases = v->stride[1] * v->stride[2]};
    f.lines = (v->in[1] + 2 * v->pad[1] + v->stride[1] - 1) / v->stride[1];
    f.pitch = (v->in[2] + 2 * v->pad[2] + v->stride[2] - 1) / v->stride[2];
    f.positions = (v->out[1] - 1) * f.pitch + v->out[2];
    return f;
}

bool flat_is_short(const Conv *v) {
    int64_t most = 1 << 20;
    if (v->in[1] + v->pad[1] > most || v->in[2] + v->pad[2] > most || v->out_n < 2)
        return false;
    bool few_phases = v->stride[1] <= v->k[1] && v->stride[2] <= v->k[2];
    return few_phases && flat_of(v).positions * 6 <= v->out_n * 7;
}

bool conv_flat_fits(const Conv *v) {
    bool plane = v->in[0] == 1 && v->k[0] == 1 && v->out[0] == 1;
    return plane && !v->pointwise && v->o > 1 && v->c > 0 && flat_is_short(v);
}

// One image's channels of a group; what is padding stays 0.
#define LAY_OUT(name, T)                                                                           \
    static void name(const Conv *v, const Flat *f, const T *x, T *to) {                            \
        int64_t s = v->stride[2], phase = f->lines * f->pitch;                                     \
        for (int64_t c = 0; c < v->c; c++)                                                         \
            for (int64_t y = 0; y < v->in[1]; y++, x += v->in[2]) {                                \
                int64_t line = y + v->pad[1], first = line % v->stride[1] * s;                     \
                T *row = to + (c * f->phases + first) * phase + line / v->stride[1] * f->pitch;    \
                if (s == 1)                                                                        \
                    memcpy(row + v->pad[2], x, (size_t)v->in[2] * sizeof *x);                      \
                for (int64_t p = 0; s > 1 && p < s; p++) {                                         \
                    int64_t i = ((p - v->pad[2]) % s + s) % s, at = (i + v->pad[2]) / s;           \
                    for (; i < v->in[2]; i += s)                                                   \
                        row[p * phase + at++] = x[i];                                              \
                }                                                                                  \
            }                                                                                      \
    }
LAY_OUT(lay_out_f, float)
LAY_OUT(lay_out_d, double)

void flat_lay_out(const Conv *v, const Flat *f, const float *x, float *to) {
    lay_out_f(v, f, x, to);
}

void flat_taps(const Conv *v, const Flat *f, int64_t *at) {
    int64_t phase = f->lines * f->pitch;
    for (int64_t row = 0; row < v->c * v->k_n; row++) {
        int64_t tap = row % v->k_n, y = tap / v->k[2] * v->dil[1], x = tap % v->k[2] * v->dil[2];
        int64_t which = y % v->stride[1] * v->stride[2] + x % v->stride[2];
        at[row] = (row / v->k_n * f->phases + which) * phase + y / v->stride[1] * f->pitch +
                  x / v->stride[2];
    }
}

// Rows of `slice` results each, to begin with: the bias.
static void start(const Conv *v, int64_t group, int64_t slice, void *to) {
    for (int64_t o = 0; v->bias && o < v->o; o++)
        for (int64_t i = 0; i < slice; i++)
            memcpy((char *)(uintptr_t)conv_at(v, to, o * slice + i),
                   conv_at(v, v->bias, group * v->o + o), (size_t)dtype_info[v->dtype].bytes);
}

// The wanted ones of positions [p, q) to their places in y.
static void put(const Conv *v, const Flat *f, int64_t p, int64_t q, const void *from, void *y) {
    for (int64_t o = 0; o < v->o; o++)
        for (int64_t i = p; i < q;) {
            int64_t line = i / f->pitch, x = i % f->pitch, end = (line + 1) * f->pitch;
            int64_t n = (q < end ? q : end) - i, wanted = v->out[2] - x < n ? v->out[2] - x : n;
            if (wanted > 0)
                memcpy((char *)(uintptr_t)conv_at(v, y, o * v->out_n + line * v->out[2] + x),
                       conv_at(v, from, o * (q - p) + i - p),
                       (size_t)(wanted * dtype_info[v->dtype].bytes));
            i += n;
        }
}

void conv_flat_range(void *ctx, int64_t begin, int64_t end) {
    const Conv *v = ctx;
    Flat f = flat_of(v);
    int64_t depth = v->c * v->k_n, bytes = dtype_info[v->dtype].bytes, slice = slice_of(v, &f);
    Diag *diag = v->eager->c->diag;
    Arena tmp = {0};
    Storage *image = storage_new((size_t)(v->c * f.phases * f.lines * f.pitch * bytes), diag),
            *block = storage_new_raw((size_t)(v->o * slice * bytes), diag);
    int64_t *at = ARENA_ARRAY(&tmp, depth + 1, int64_t);
    flat_taps(v, &f, at);
    for (int64_t i = begin; image && block && i < end; i++) {
        const void *x = conv_at(v, v->x, i * v->c * v->in_n);
        void *y = (char *)(uintptr_t)conv_at(v, v->y, i * v->o * v->out_n);
        if (v->dtype == DT_f32)
            lay_out_f(v, &f, x, storage_data(image));
        else
            lay_out_d(v, &f, x, storage_data(image));
        for (int64_t p = 0; p < f.positions; p += slice) {
            int64_t n = f.positions - p < slice ? f.positions - p : slice;
            Gemm g = conv_gemm(v, v->o, n, depth);
            g.a = conv_at(v, v->w, i % v->groups * v->o * depth);
            g.a_row = depth;
            g.b = conv_at(v, storage_data(image), p);
            g.b_rows = at;
            g.c = storage_data(block);
            g.c_row = n;
            g.beta = v->bias != NULL;
            start(v, i % v->groups, n, g.c);
            blas_gemm(&g, v->n * v->groups == 1 ? v->eager->c->threads : 1);
            put(v, &f, p, p + n, g.c, y);
        }
    }
    storage_drop(image);
    storage_drop(block);
    arena_free(&tmp);
}

bool conv_flat_weights_fit(const Conv *v) {
    return conv_flat_fits(v) && v->c * v->k_n >= 32;
}

// y's lines at the pitch of x's, between them 0.
static void spread(const Conv *v, const Flat *f, const void *y, char *to) {
    int64_t bytes = dtype_info[v->dtype].bytes;
    for (int64_t o = 0; o < v->o; o++)
        for (int64_t line = 0; line < v->out[1]; line++)
            memcpy(to + (o * f->positions + line * f->pitch) * bytes,
                   conv_at(v, y, o * v->out_n + line * v->out[2]), (size_t)(v->out[2] * bytes));
}

// Windows are columns of a matrix that begin where their tap does.
void conv_flat_weights(void *ctx, int64_t begin, int64_t end) {
    const Conv *v = ctx;
    Flat f = flat_of(v);
    int64_t depth = v->c * v->k_n, bytes = dtype_info[v->dtype].bytes;
    Diag *diag = v->eager->c->diag;
    Arena tmp = {0};
    Storage *image = storage_new((size_t)(v->c * f.phases * f.lines * f.pitch * bytes), diag),
            *y = storage_new((size_t)(v->o * f.positions * bytes), diag);
    int64_t *at = ARENA_ARRAY(&tmp, depth + 1, int64_t);
    flat_taps(v, &f, at);
    for (int64_t i = begin * v->n; image && y && i < end * v->n; i++) {
        int64_t group = i / v->n, part = i % v->n * v->groups + group;
        const void *x = conv_at(v, v->x, part * v->c * v->in_n);
        if (v->dtype == DT_f32)
            lay_out_f(v, &f, x, storage_data(image));
        else
            lay_out_d(v, &f, x, storage_data(image));
        spread(v, &f, conv_at(v, v->y, part * v->o * v->out_n), storage_data(y));
        Gemm g = conv_gemm(v, v->o, depth, f.positions);
        g.a = storage_data(y);
        g.a_row = f.positions;
        g.b = storage_data(image);
        g.b_row = 1;
        g.b_cols = at;
        g.c = (char *)(uintptr_t)conv_at(v, v->w, group * v->o * depth);
        g.c_row = depth;
        blas_gemm(&g, v->groups == 1 ? v->eager->c->threads : 1);
    }
    storage_drop(image);
    storage_drop(y);
    arena_free(&tmp);
}
