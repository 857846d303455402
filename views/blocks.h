// blocks.h: a long row of things in runs that mean something: what repeats, as the layers of a
// model do without having names, and between that runs which end where few values are alive.
#ifndef VIEWS_BLOCKS_H
#define VIEWS_BLOCKS_H

#include "core/base/vec.h"

typedef struct Block {
    int first, n;    // things
    int from, to;    // repetitions that it holds, from 1; 0: it repeats nothing
    int of;          // how many there are
    int row;         // which row of repetitions, from 0
} Block;
typedef VEC(Block) BlockVec;

// Runs that together are things [first, end), about `want` of them. kind: what a thing does; two
// rows of things that do the same are repetitions. alive: by thing, values made before it that are
// read from it on. Returns how many rows of repetitions there are.
int blocks_find(Arena *a, const uint64_t *kind, const int *alive, int first, int end, int want,
                BlockVec *out);

#endif
