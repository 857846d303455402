// layout.h: where the panes are: columns side by side, each a stack of panes. Pure arithmetic.
#ifndef APP_LAYOUT_H
#define APP_LAYOUT_H

#include "app/screen.h"

enum { PANES = 6 };

typedef struct Column {
    int weight;             // share of the width
    int n;                  // panes in it, top to bottom
    int pane[PANES];        // their numbers
    int share[PANES];       // share of the height, by place in the column
} Column;

typedef struct Windows {
    Column col[PANES];
    int n;                  // columns, at least one
    int focus;              // number of the pane with the keys
    bool zoom;              // only that pane is shown
    bool zoom_by_hand;      // and somebody wished so; else until it shows a stage again
    bool by_hand;           // arranged by the user: a resize does not rearrange
} Windows;

// A pane alone for as long as it shows what wants the whole width.
void layout_widen(Windows *l);
// n panes side by side, numbered 0..n-1.
void layout_columns(Windows *l, int n);
// n panes numbered down the columns, side by side as far as they are wide enough to be read, the
// last columns in stacks.
void layout_tiles(Windows *l, int n, int cols, int rows);
// How many panes suit a terminal: 1 below 72 columns, 2 below 120, 3 below 150, else 4.
int layout_auto(int cols, int rows);
// A new pane right of the focused one, or below it; takes the focus. Its number, -1 if there are
// six. Columns of one width stay so, else it gets half of the focused one's room.
int layout_split(Windows *l, bool below);
// Takes a pane away; false if it is the last. The focus goes to a neighbour.
bool layout_close(Windows *l, int pane);
// The pane after (dir 1) or before (-1), in reading order.
int layout_next(const Windows *l, int pane, int dir);
// Exchanges the places of two panes.
void layout_swap(Windows *l, int a, int b);
// Makes a pane wider (or narrower) and taller by some cells of the given area.
void layout_grow(Windows *l, Rect area, int pane, int cols, int rows);
// The rectangle of each pane, header row included; rows 0: not shown.
void layout_place(const Windows *l, Rect area, Rect out[PANES]);
bool layout_has(const Windows *l, int pane);
int layout_panes(const Windows *l);
// Pane at a cell, -1 if none (a border).
int layout_hit(const Rect rect[PANES], int row, int col);
// The column whose right border is at screen column `col`, -1 if none.
int layout_border(const Windows *l, const Rect rect[PANES], int col);

#endif
