// iterate.h: inside of core/eager: strided loops over several tensors of one shape.
#ifndef CORE_EAGER_ITERATE_H
#define CORE_EAGER_ITERATE_H

#include "core/eager/kernel.h"

enum { ITER_TENSORS = 8 };

typedef struct Iter {
    int n, ndim; // tensors; dimensions left after merging, innermost first
    int64_t size[TENSOR_DIMS];
    int64_t stride[ITER_TENSORS][TENSOR_DIMS]; // elements
    char *base[ITER_TENSORS];
    int bytes[ITER_TENSORS]; // of an element
} Iter;

// n elements of each tensor from p[i] on, stride[i] elements apart.
typedef void RowFn(void *ctx, int64_t n, char *const *p, const int64_t *stride);

// t[0] is the result, the others are broadcast to it; false if one does not fit.
bool iter_init(Iter *it, const Tensor *const *t, int n);
void iter_run(const Iter *it, int threads, RowFn *fn, void *ctx);
// mapped.c: element (i, j, …) of out is in's at at[0][i] + at[1][j] + …, offsets in elements.
void copy_mapped(Eager *x, const Tensor *out, const Tensor *in, const int64_t *const *at);
// move.c: the window of t along dim from `start` on.
Tensor window_along(const Tensor *t, int dim, int64_t start, int64_t len);
// Do two windows share memory without being the same window?
bool overlaps(const Tensor *a, const Tensor *b);

#endif
