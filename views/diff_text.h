// diff_text.h: the two sides of a diff as lines with keys, and which line of one is which of the
// other.
#ifndef VIEWS_DIFF_TEXT_H
#define VIEWS_DIFF_TEXT_H

#include "views/brief.h"

typedef struct DiffText { // one side
    const Artifact *art;
    const char **name; // what a line is about; NULL: of a graph, the node item is
    const char **text; // as it is shown; of a node NULL until diff_text_at made it
    const char **same; // as it is compared; NULL: by its node, or as it is shown
    int *key;          // lines of two sides that are about one thing have one: diff_match
    int *item;         // of the artifact
    int n, cap;
} DiffText;

// The lines of an artifact; those of a graph are made when they are asked for.
DiffText diff_text(ViewCtx *c, const Artifact *art);
const char *diff_text_at(ViewCtx *c, const DiffText *t, int line);
// A node as a line: without the type as it is compared, since others than a tensor's are not in
// every text.
const char *diff_node_text(ViewCtx *c, const Node *n, bool typed);

typedef struct DiffMatch { // two graphs
    const Graph *a, *b;
    const Node **to; // by id of b: the node of a that computes the same; NULL: a and b are one
    bool *used;      // by id of a
    int paired;      // nodes of a that have one, outputs left out
} DiffMatch;

// diff_match.c: gives lines of both sides that are about the same their keys, 0 to the count that
// is returned. Of graphs, nodes are told by origins between stages, else by what they compute, from
// the inputs on; names do not count. m: which node is which, for diff_same.
int diff_match(ViewCtx *c, DiffText *a, DiffText *b, DiffMatch *m);

// diff_same.c: whether two lines of one key say the same, with b's names as a has them.
bool diff_same(ViewCtx *c, const DiffMatch *m, const DiffText *a, int i, const DiffText *b, int j);
// Whether two texts are the same but for blanks.
bool same_words(const char *a, const char *b);

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
