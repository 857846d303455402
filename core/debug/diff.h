// diff.h: differences of two texts, line by line, up to the renaming of the values that they
// define. Myers' algorithm (E. Myers, "An O(ND) difference algorithm and its variations", 1986);
// above a bound of differences the rest is one changed block.
#ifndef CORE_DEBUG_DIFF_H
#define CORE_DEBUG_DIFF_H

#include "core/base/buf.h"

typedef struct DiffLine {
    int a, b; // line numbers from 0; -1: not in this text. Both set: the same up to renaming
} DiffLine;

typedef struct TextDiff {
    const char **a, **b; // (n_a), (n_b) the lines, without newline
    int n_a, n_b;
    DiffLine *lines; // aligned, in order
    int n;
    int added, removed; // only in b, only in a
} TextDiff;

// Names that a line defines (`x: "f32[2]" = …`, `buf0 = …`, parameters of a def, `op3: …`) count as
// the same if they are computed in the same way, or where a change makes that impossible if their
// lines are alike; everything else is compared by its text; blank lines and comments are left out.
void text_diff(TextDiff *out, Arena *a, const char *text_a, const char *text_b, bool rename);
// Unified text with `-`, `+`, ` ` in column 1 and `context` lines round each change.
void text_diff_print(Buf *out, const TextDiff *d, int context);

#endif
