// layout.c: columns of stacked panes; splitting, closing, sizing. A tree would allow more shapes
// and make every key harder to foresee.
#include "app/layout.h"

#include <assert.h>
#include <string.h>

enum { UNIT = 1000 }; // weight of a fresh column or pane
enum { READABLE_COLS = 38, READABLE_ROWS = 5 };

void layout_widen(Windows *l) {
    l->zoom_by_hand = l->zoom && l->zoom_by_hand;
    l->zoom = true;
}

void layout_columns(Windows *l, int n) {
    assert(n >= 1 && n <= PANES);
    memset(l->col, 0, sizeof l->col);
    l->n = n;
    for (int i = 0; i < n; i++)
        l->col[i] = (Column){.weight = UNIT, .n = 1, .pane = {i}, .share = {UNIT}};
    l->focus = l->focus < n ? l->focus : n - 1;
}

void layout_tiles(Windows *l, int n, int cols, int rows) {
    int deep = 1;
    while (deep < n && cols / ((n + deep - 1) / deep) < READABLE_COLS &&
           rows / (deep + 1) >= READABLE_ROWS)
        deep++;
    int columns = (n + deep - 1) / deep, pane = 0, focus = l->focus < n ? l->focus : n - 1;
    layout_columns(l, columns);
    l->focus = focus;
    for (int c = 0; c < columns; c++) {
        Column *col = &l->col[c];
        col->n = (n - pane) / (columns - c);
        for (int i = 0; i < col->n; i++) {
            col->pane[i] = pane++;
            col->share[i] = UNIT;
        }
    }
}

int layout_auto(int cols, int rows) {
    if (cols < 72 || rows < 8)
        return 1;
    return cols < 120 ? 2 : cols < 150 ? 3 : 4;
}

static bool find(const Windows *l, int pane, int *col, int *place) {
    for (int c = 0; c < l->n; c++)
        for (int i = 0; i < l->col[c].n; i++)
            if (l->col[c].pane[i] == pane) {
                *col = c;
                *place = i;
                return true;
            }
    return false;
}

bool layout_has(const Windows *l, int pane) {
    int c, i;
    return find(l, pane, &c, &i);
}

int layout_panes(const Windows *l) {
    int n = 0;
    for (int c = 0; c < l->n; c++)
        n += l->col[c].n;
    return n;
}

static int unused(const Windows *l) {
    for (int p = 0; p < PANES; p++)
        if (!layout_has(l, p))
            return p;
    return -1;
}

// Columns of one width, which nobody has changed, share it evenly with a new one.
static bool is_even(const Windows *l) {
    for (int c = 1; c < l->n; c++)
        if (l->col[c].weight != l->col[0].weight)
            return false;
    return true;
}

int layout_split(Windows *l, bool below) {
    int p = unused(l), c, i;
    if (p < 0 || !find(l, l->focus, &c, &i))
        return -1;
    if (below) {
        Column *col = &l->col[c];
        for (int k = col->n; k > i + 1; k--) {
            col->pane[k] = col->pane[k - 1];
            col->share[k] = col->share[k - 1];
        }
        col->share[i] = (col->share[i] + 1) / 2;
        col->share[i + 1] = col->share[i];
        col->pane[i + 1] = p;
        col->n++;
    } else {
        bool even = is_even(l);
        for (int k = l->n; k > c + 1; k--)
            l->col[k] = l->col[k - 1];
        l->col[c].weight = even ? l->col[c].weight : (l->col[c].weight + 1) / 2;
        l->col[c + 1] = (Column){.weight = l->col[c].weight, .n = 1, .pane = {p}, .share = {UNIT}};
        l->n++;
    }
    l->focus = p;
    l->zoom = false;
    l->by_hand = true;
    return p;
}

bool layout_close(Windows *l, int pane) {
    int c, i;
    if (layout_panes(l) == 1 || !find(l, pane, &c, &i))
        return false;
    int next = layout_next(l, pane, i > 0 || c > 0 ? -1 : 1);
    Column *col = &l->col[c];
    if (col->n > 1) {
        int give = i > 0 ? i - 1 : 1;
        col->share[give] += col->share[i];
        for (int k = i; k + 1 < col->n; k++) {
            col->pane[k] = col->pane[k + 1];
            col->share[k] = col->share[k + 1];
        }
        col->n--;
    } else {
        l->col[c > 0 ? c - 1 : 1].weight += col->weight;
        for (int k = c; k + 1 < l->n; k++)
            l->col[k] = l->col[k + 1];
        l->n--;
    }
    if (l->focus == pane)
        l->focus = next;
    l->zoom = false;
    l->by_hand = true;
    return true;
}

int layout_next(const Windows *l, int pane, int dir) {
    int order[PANES], n = 0, at = 0;
    for (int c = 0; c < l->n; c++)
        for (int i = 0; i < l->col[c].n; i++) {
            if (l->col[c].pane[i] == pane)
                at = n;
            order[n++] = l->col[c].pane[i];
        }
    return n ? order[((at + dir) % n + n) % n] : pane;
}

void layout_swap(Windows *l, int a, int b) {
    int ca, ia, cb, ib;
    if (!find(l, a, &ca, &ia) || !find(l, b, &cb, &ib))
        return;
    l->col[ca].pane[ia] = b;
    l->col[cb].pane[ib] = a;
}

// Splits `total` cells among weights, `gap` cells between; exact to the cell, each at least
// `least`.
static void divide(int total, int gap, const int *weight, int n, int least, int *out) {
    int room = total - gap * (n - 1), sum = 0, used = 0, so_far = 0;
    for (int i = 0; i < n; i++)
        sum += weight[i];
    for (int i = 0; i < n; i++) {
        so_far += weight[i];
        int end = sum ? (int)((int64_t)room * so_far / sum) : 0;
        out[i] = end - used;
        used = end;
    }
    for (int i = 0; i < n; i++)
        while (out[i] < least) {
            int rich = 0;
            for (int k = 1; k < n; k++)
                if (out[k] > out[rich])
                    rich = k;
            if (out[rich] <= least)
                return;
            out[rich]--;
            out[i]++;
        }
}

static void weights(const Windows *l, int *w) {
    for (int c = 0; c < l->n; c++)
        w[c] = l->col[c].weight;
}

void layout_place(const Windows *l, Rect area, Rect out[PANES]) {
    int w[PANES] = {0}, width[PANES], height[PANES], x = area.col;
    memset(out, 0, PANES * sizeof *out);
    if (l->zoom) {
        out[l->focus] = area;
        return;
    }
    weights(l, w);
    divide(area.cols, 1, w, l->n, 8, width);
    for (int c = 0; c < l->n; c++) {
        int y = area.row;
        divide(area.rows, 0, l->col[c].share, l->col[c].n, 3, height);
        for (int i = 0; i < l->col[c].n; i++) {
            out[l->col[c].pane[i]] = (Rect){y, x, height[i], width[c]};
            y += height[i];
        }
        x += width[c] + 1;
    }
}

// Gives cell a `delta` cells of its neighbour's, leaving both at least `least`.
static void shift(int *a, int *b, int delta, int least) {
    int both = *a + *b, to = *a + delta;
    if (both < 2 * least)
        return;
    *a = to < least ? least : to > both - least ? both - least : to;
    *b = both - *a;
}

void layout_grow(Windows *l, Rect area, int pane, int cols, int rows) {
    int c, i, w[PANES] = {0}, cells[PANES];
    if (!find(l, pane, &c, &i))
        return;
    Column *col = &l->col[c];
    if (cols && l->n > 1) {
        weights(l, w);
        divide(area.cols, 1, w, l->n, 8, cells);
        shift(&cells[c], &cells[c + 1 < l->n ? c + 1 : c - 1], cols, 8);
        for (int k = 0; k < l->n; k++)
            l->col[k].weight = cells[k]; // weights are cells from now on
    }
    if (rows && col->n > 1) {
        divide(area.rows, 0, col->share, col->n, 3, cells);
        shift(&cells[i], &cells[i + 1 < col->n ? i + 1 : i - 1], rows, 3);
        memcpy(col->share, cells, sizeof col->share);
    }
    l->by_hand = true;
}

int layout_hit(const Rect rect[PANES], int row, int col) {
    for (int p = 0; p < PANES; p++)
        if (row >= rect[p].row && row < rect[p].row + rect[p].rows && col >= rect[p].col &&
            col < rect[p].col + rect[p].cols)
            return p;
    return -1;
}

int layout_border(const Windows *l, const Rect rect[PANES], int col) {
    for (int c = 0; c + 1 < l->n; c++) {
        const Rect *r = &rect[l->col[c].pane[0]];
        if (r->rows && r->col + r->cols == col)
            return c;
    }
    return -1;
}
