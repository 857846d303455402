// blas.h: inside of core/eager: what the operands of a product are packed into, and the loops that
// multiply that. A word is what lies next to each other along the depth and is multiplied at once:
// a float, a double, or two bf16.
#ifndef CORE_EAGER_BLAS_H
#define CORE_EAGER_BLAS_H

#include "core/eager/kernel.h"

enum {
    KC = 256, // words of the depth at once
    MC = 264, // rows of a block of A: a multiple of every loop's rows
    NC = 384, // columns of a block of B: a multiple of every loop's columns
    MAX_TILE = 8 * 48,
    GAP = 16, // words between panels, which would else begin in the same sets of a cache
    A_WORDS = MC * KC + MC / 4 * GAP,
    B_WORDS = NC * KC + NC / 4 * GAP
};

// Words from one panel to the next.
static inline int64_t blas_panel(int64_t words, int wide) {
    return words * wide + GAP;
}

// A panel of rows of A, packed: the word of row i and depth k lies at i * row + k * col.
typedef struct Panel {
    const void *words;
    int64_t row, col;
} Panel;

// blas_tiles.c
// acc (rows, cols, row-major) = A's panel (rows, depth) times one of B (depth, cols). acc: floats,
// of doubles doubles.
typedef void TileFn(int64_t depth, const Panel *a, const void *b, void *acc);

// Narrow panels at the right edge have loops of their own: fn[i] is for (i + 1) * step columns.
typedef struct Tiles {
    int rows, cols, step;
    TileFn *fn[3];
} Tiles;

typedef struct TileSet {
    const char *name;
    Tiles f32, f64;
    Tiles pairs; // of bf16; without a loop: they are computed as floats
} TileSet;
const TileSet *blas_tiles(void); // the machine's best

// blas_pack.c
// One operand's part of a block: n rows of A or columns of B, `depth` elements each.
typedef struct Side {
    DType dtype;
    const void *from;
    int64_t n, depth;
    int64_t step, k_step;   // elements from one to the next, and along the depth
    const int64_t *k_start; // (depth) instead of k_step, with steps of 1; or NULL
    const int64_t *start;   // (n) instead of step, with k_step 1; or NULL
} Side;

// A in panels of `rows`, blas_panel apart; the last one is filled up with 0. True: its rows are one
// after the other; false: its columns.
typedef bool PackAFn(const Side *s, int rows, void *to);
// B in panels of `cols`: word (k, j) at k * cols + j, missing ones 0.
typedef void PackBFn(const Side *s, int cols, void *to);
PackAFn blas_a_f32, blas_a_f64, blas_a_pairs;
PackBFn blas_b_f32, blas_b_f64, blas_b_pairs;

#endif
