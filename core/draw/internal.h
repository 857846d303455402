// internal.h: what the files of core/draw share: the drawing in bands. Ranks and the gaps between
// them take turns from top to bottom.
#ifndef CORE_DRAW_INTERNAL_H
#define CORE_DRAW_INTERNAL_H

#include "core/draw/draw.h"

typedef VEC(int) Ints;

// Something that takes columns of a rank: a box, a line that passes through, or a group's side.
typedef enum SlotKind { SLOT_box, SLOT_pass, SLOT_left, SLOT_right } SlotKind;
typedef struct Slot {
    SlotKind kind;
    int thing;      // box; pass: the box that the line comes from; side: the group
    int rank, last; // ranks that it stands in, first to last
    double x;       // middle, in cells, as the layout found it
    int col, cols;  // leftmost column, width
} Slot;

// A vertical or a horizontal piece of a line, inside one gap or rank.
typedef struct Piece {
    int net;                        // box that the line comes from
    int row, row_end, col, col_end; // both ends included; a horizontal has row == row_end
    bool tip;                       // a vertical: an arrow at its lower end
    bool from_track, to_track;      // its upper, its lower end turns into a track there
} Piece;

typedef struct Band {
    int row, rows;
    Ints boxes; // of a rank, from left to right
    VEC(Piece) pieces;
} Band;

typedef struct GroupRect {
    int first, last; // ranks; first -1: the group is empty
    DrawRect at;
} GroupRect;

struct Drawing {
    const DrawGraph *graph;
    Arena *arena;
    int n_ranks;
    int *rank_of; // by box
    DrawRect *rect;
    VEC(Slot) slots;
    Ints *in_rank; // by rank: its slots from left to right
    GroupRect *group;
    Band *band; // 2 * n_ranks - 1: rank 0, gap 0, rank 1, …
    int rows, cols;
};

// A line's columns at a rank: of its box, or where it passes through; -1: it is not there.
typedef struct Route {
    int from_rank, to_rank; // of the box; of the last rank that it reaches
    int *pass;              // by rank - from_rank: its slot there, -1: none
} Route;

int draw_box_cols(const DrawBox *b);
int draw_box_rows(const DrawBox *b);

// places.c: reads the layout's text.
typedef struct Places {
    double *x, *y;        // by box, cells and points
    double *left, *right; // by group, cells
    VEC(double) * line;   // by edge: x, y pairs, cells and points
} Places;
bool places_read(Places *p, Arena *a, const DrawGraph *g, const char *text, Diag *d);

// snap.c: ranks, slots and their columns. routes: one a box.
void drawing_snap(Drawing *d, const Places *p, Route *routes);
// route.c: heights of the gaps, pieces of the lines, rectangles of boxes and groups.
void drawing_route(Drawing *d, const Route *routes);

#endif
