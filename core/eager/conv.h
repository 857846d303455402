// conv.h: inside of core/eager: a convolution as its kernels see it.
#ifndef CORE_EAGER_CONV_H
#define CORE_EAGER_CONV_H

#include "core/eager/kernel.h"

enum { SPACE = 3 };

typedef struct Conv {
    DType dtype; // f32 or f64
    int64_t n, groups;
    int64_t c, o; // channels of a group, on the side of the windows and on the other
    int64_t in[SPACE], out[SPACE], k[SPACE], stride[SPACE], pad[SPACE], dil[SPACE];
    int64_t in_n, out_n, k_n; // their products
    const void *x, *w,
        *y; // (n, groups c, in), (groups o, c, k), (n, groups o, out); one of them is written
    const void *bias; // (groups o), NULL: none
    const Eager *eager;
    bool pointwise; // 1x1 windows, step 1: columns are the input itself
    bool last;      // x and y have their channels last in memory
} Conv;

static inline const char *conv_at(const Conv *v, const void *p, int64_t elem) {
    return (const char *)p + elem * dtype_info[v->dtype].bytes;
}
Gemm conv_gemm(const Conv *v, int64_t m, int64_t n, int64_t k); // dense along columns, beta 1

// conv_depth.c: one channel a group. The first adds to y, which holds the bias or 0.
void conv_depth_range(void *ctx, int64_t begin, int64_t end);
bool conv_depth_last_fits(const Conv *v);
void conv_depth_last(const Conv *v); // of v->last: y is written

// conv_flat.c: the padded image as the phases of its steps, of two dimensions.
typedef struct Flat {
    int64_t pitch, lines; // of a phase
    int64_t phases;       // of a channel
    int64_t positions;    // up to the last that is wanted
} Flat;
Flat flat_of(const Conv *v);
bool flat_is_short(const Conv *v); // few positions are computed in vain
void flat_taps(const Conv *v, const Flat *f, int64_t *at);                // (c k): where they begin
void flat_lay_out(const Conv *v, const Flat *f, const float *x, float *to); // to: 0 in the padding
// y = bias + w * windows of x for images and groups [begin, end), if that fits.
bool conv_flat_fits(const Conv *v);
void conv_flat_range(void *ctx, int64_t begin, int64_t end);
// w += y windows(x)^T of groups [begin, end), where that fits.
bool conv_flat_weights_fit(const Conv *v);
void conv_flat_weights(void *ctx, int64_t begin, int64_t end);

#endif
