// draw.h: a graph drawn in character cells: boxes in ranks from top to bottom, right-angled lines
// between them, frames round groups. Places come from Graphviz's `dot` (Gansner, Koutsofios, North
// and Vo, "A technique for drawing directed graphs", 1993), which runs in a helper process, or from
// a plain layering where that fails; both as the same text. From there on everything is in cells:
// columns by the order that the layout found, lines on tracks of the gaps between ranks, as channel
// routers of circuit boards do it.
#ifndef CORE_DRAW_DRAW_H
#define CORE_DRAW_DRAW_H

#include "core/base/buf.h"
#include "core/base/diag.h"
#include "core/base/vec.h"

enum { DRAW_LINES = 2 };

typedef struct DrawBox {
    const char *text[DRAW_LINES]; // NULL: no such line
    const char *label;            // in exported pictures; NULL: the lines
    bool framed;
    int ports; // lines that come in: it is made wide enough for them
    int group; // of DrawGraph.group, -1: in none
} DrawBox;
typedef struct DrawEdge {
    int from, to; // boxes, from < to; from lies above
} DrawEdge;
typedef struct DrawGraph {
    Arena *arena;
    const char *name; // of exported pictures
    VEC(DrawBox) box;
    VEC(DrawEdge) edge;
    VEC(const char *) group; // titles of the groups
} DrawGraph;

// dot.c: the graph in Graphviz's language. With `cells` the sizes are those of the boxes in cells,
// names are numbers and there is no text: what draw_read_places wants laid out. Else a picture to
// look at, text and all.
void draw_dot(Buf *out, const DrawGraph *g, bool cells);

// graphviz.c: run these in a helper only, they can take long and cannot be interrupted.
// Places of a text of draw_dot(cells): lines `box N X Y`, `edge N X Y X Y …`,
// `group N LEFT RIGHT`; points, Y downwards.
bool draw_graphviz_places(const char *dot, Buf *out, Diag *d);
// The picture in a format of Graphviz: svg, png. Binary.
bool draw_graphviz_picture(const char *dot, const char *format, Buf *out, Diag *d);

// layers.c: the same text without Graphviz: boxes by longest path, then by the middle of what they
// are joined to; groups, which must be runs of neighbours here, one below the other.
void draw_layer_places(Buf *out, const DrawGraph *g);

typedef struct Drawing Drawing;
typedef struct DrawRect {
    int row, col, rows, cols;
} DrawRect;

// From the text of places to cells. NULL and an error if it is not about this graph.
Drawing *draw_new(Arena *a, const DrawGraph *g, const char *text, Diag *d);
int draw_rows(const Drawing *d);
int draw_cols(const Drawing *d);
DrawRect draw_box_rect(const Drawing *d, int box);

// What is in a cell.
typedef enum DrawInk {
    DRAW_blank,
    DRAW_name,  // first line of a box
    DRAW_more,  // its second
    DRAW_frame, // of a box
    DRAW_line,
    DRAW_group, // frame of a group
    DRAW_title, // of a group
} DrawInk;
typedef struct DrawCell {
    uint32_t code; // 0: right half of a wide character
    uint8_t ink;   // DrawInk
    int thing;     // box; of a line the box that it comes from; of a group its number; -1
} DrawCell;
// Columns [left, left + n) of one row. Where lines cross, those of box `first` lie on top.
void draw_row(const Drawing *d, int row, int left, int n, int first, DrawCell *out);

// The next box from one, in a direction: the nearest one that lies that way. -1: none.
int draw_beside(const Drawing *d, int box, int dx, int dy);

#endif
