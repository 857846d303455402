// extreme.h: inside of core/eager: where the extremes of floats are.
#ifndef CORE_EAGER_EXTREME_H
#define CORE_EAGER_EXTREME_H

#include "core/eager/kernel.h"

// By run along dim (runs_of) the index of the largest element, or the smallest; NULL: not for this
// dtype or layout.
int64_t *extreme_places(const Eager *x, const Tensor *in, int dim, bool least);

#endif
