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
} Conv;

static inline const char *conv_at(const Conv *v, const void *p, int64_t elem) {
    return (const char *)p + elem * dtype_info[v->dtype].bytes;
}
Gemm conv_gemm(const Conv *v, int64_t m, int64_t n, int64_t k); // dense along columns, beta 1

// conv_flat.c: y = bias + w * windows of x for images and groups [begin, end), if that fits.
bool conv_flat_fits(const Conv *v);
void conv_flat_range(void *ctx, int64_t begin, int64_t end);

#endif
