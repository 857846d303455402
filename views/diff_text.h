// diff_text.h: the two sides of a diff as lines with keys, and which line of one is which of the
// other.
#ifndef VIEWS_DIFF_TEXT_H
#define VIEWS_DIFF_TEXT_H

#include "views/brief.h"

typedef struct DiffText { // one side
    const char **key;     // what a line is about
    const char **text;    // as it is shown
    const char **same;    // as it is compared: names as the other side has them
    int *item;            // of the artifact
    int n, cap;
} DiffText;

// The lines of an artifact.
DiffText diff_text(ViewCtx *c, const Artifact *art);

// diff_match.c: gives lines of b the keys of the lines of a that compute the same, and writes their
// names as a has them. Graphs: by origins between stages, else by what nodes compute, from the
// inputs on; names do not count.
void diff_match(ViewCtx *c, const Artifact *art_a, const Artifact *art_b, const DiffText *a,
                DiffText *b);

// diff_side.c: one side of a diff: a stage, a pass, #N (a step), #N.K (after K of its rewrites),
// each with @U of graph U; `theirs[:STAGE[:FOLDER]]`, PyTorch's own; `pane:N`, `held`, `run:N`,
// `bisect:on`, `bisect:off`, texts. False: why not is said.
typedef struct DiffSide {
    const Artifact *art;
    const char *title;    // what it is
    const char *settings; // under which it came about
} DiffSide;
bool diff_side(ViewCtx *c, const char *word, DiffSide *out, Buf *why);

#endif
