// select.h: inside of core/eager: partial orders that leave equal elements where PyTorch's CPU
// leaves them.
#ifndef CORE_EAGER_SELECT_H
#define CORE_EAGER_SELECT_H

#include <stdbool.h>
#include <stdint.h>

typedef struct Rank {
    uint64_t key;  // orders as the value does
    int64_t index; // of the element
} Rank;

// The k first of n in the order of `largest`, as topk leaves them.
void select_top(Rank *a, int64_t n, int64_t k, bool largest, bool sorted);
// Puts the element that belongs at place k there, as kthvalue does.
void select_nth(Rank *a, int64_t n, int64_t k);

// By key, stable: from byte to byte of the keys, short runs by merging. tmp: (n).
void sort_ranks(Rank *a, Rank *tmp, int64_t n, bool descending);

#endif
