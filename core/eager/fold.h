// fold.h: inside of core/eager: reductions over some dimensions.
#ifndef CORE_EAGER_FOLD_H
#define CORE_EAGER_FOLD_H

#include "core/eager/kernel.h"

typedef enum FoldId {
#define FOLD(name, ...) FOLD_##name,
#include "core/eager/folds.def"
#undef FOLD
    FOLD_count
} FoldId;

// out[k] for each combination of the dims not in mask, row-major; m[k] goes into the step; n:
// elements folded.
void fold_d(const Eager *x, FoldId id, const Tensor *in, uint64_t mask, const double *m, double p,
            double *out);
void fold_i(const Eager *x, FoldId id, const Tensor *in, uint64_t mask, int64_t *out);
// sums.c: out[r] of n neighbouring elements at x + r * step, FOLD_sum or FOLD_prod, to the bit as
// fold_d computes it; false if there is no such loop.
bool fold_sums(FoldId id, DType d, int64_t rows, int64_t n, const void *x, int64_t step,
               double *out);
int64_t fold_outputs(const Tensor *in, uint64_t mask);
int64_t fold_elements(const Tensor *in, uint64_t mask);

#endif
