// along.h: inside of core/eager: reading and writing at places that an index names.
#ifndef CORE_EAGER_ALONG_H
#define CORE_EAGER_ALONG_H

#include "core/eager/kernel.h"

typedef enum AlongWay { ALONG_take, ALONG_set, ALONG_add } AlongWay;

// For every element of index: place[…, i at dim, …] goes to other, or other to it, or is added to
// it. Sizes are checked before; other's may be larger than index's, place's too apart from dim.
typedef struct Along {
    AlongWay way;
    const Tensor *place, *index, *other;
    int dim;
} Along;
bool along_can(const Along *a); // dimensions agree, and the dtype has a loop
// false: an index is out of [0, size of dim); it is in bad.
bool along_run(const Eager *x, const Along *a, int64_t *bad);

// Dense rows of n elements are copied or (float32 only) added to places of a dense tensor, in
// order.
typedef struct RowsInto {
    DType dtype;
    char *to;          // its first element
    const int64_t *at; // (rows): offset in elements, -1: left out
    const char *from;  // row i at from_step * i elements
    int64_t from_step, rows, n;
    bool add;
} RowsInto;
void rows_into(const Eager *x, const RowsInto *r);

#endif
