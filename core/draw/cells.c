// cells.c: a row of a drawing as characters: lines from their pieces, joints where pieces of one
// value meet, frames, texts on top.
#include "core/draw/internal.h"

#include <stdlib.h>
#include <string.h>

enum { UP = 1, DOWN = 2, LEFT = 4, RIGHT = 8 };

static const uint32_t joint[16] = {
    [0] = ' ',
    [UP] = 0x2502,
    [DOWN] = 0x2502,
    [UP | DOWN] = 0x2502,
    [LEFT] = 0x2500,
    [RIGHT] = 0x2500,
    [LEFT | RIGHT] = 0x2500,
    [DOWN | RIGHT] = 0x256d,
    [DOWN | LEFT] = 0x256e,
    [UP | LEFT] = 0x256f,
    [UP | RIGHT] = 0x2570,
    [UP | DOWN | RIGHT] = 0x251c,
    [UP | DOWN | LEFT] = 0x2524,
    [LEFT | RIGHT | DOWN] = 0x252c,
    [LEFT | RIGHT | UP] = 0x2534,
    [UP | DOWN | LEFT | RIGHT] = 0x253c,
};

typedef struct RowOut {
    DrawCell *cell;
    uint8_t *bits; // of the lines
    int left, n, first;
} RowOut;

static void put(RowOut *o, int col, uint32_t code, DrawInk ink, int thing) {
    if (col >= o->left && col < o->left + o->n)
        o->cell[col - o->left] = (DrawCell){code, (uint8_t)ink, thing};
}

static void put_bits(RowOut *o, int col, int bits, int net, bool tip) {
    if (col < o->left || col >= o->left + o->n)
        return;
    DrawCell *c = &o->cell[col - o->left];
    bool mine = c->ink == DRAW_line && c->thing == net;
    o->bits[col - o->left] |= (uint8_t)bits;
    if (c->ink != DRAW_line || !mine) {
        // Of two that cross the wanted one lies on top, else the one that goes down.
        if (c->ink != DRAW_line || net == o->first || (c->thing != o->first && bits & (UP | DOWN)))
            c->thing = net;
    }
    c->ink = DRAW_line;
    c->code = tip ? 0x25bc : joint[o->bits[col - o->left]];
}

static int vertical_bits(const Piece *p, int row) {
    int bits = UP | DOWN;
    if (row == p->row && p->from_track)
        bits &= ~UP;
    if (row == p->row_end && p->to_track)
        bits &= ~DOWN;
    return bits;
}

static void put_piece(RowOut *o, const Piece *p, int row) {
    if (row < p->row || row > p->row_end)
        return;
    if (p->col == p->col_end) {
        bool tip = p->tip && row == p->row_end;
        put_bits(o, p->col, vertical_bits(p, row), p->net, tip);
        return;
    }
    int from = p->col > o->left ? p->col : o->left,
        to = p->col_end < o->left + o->n - 1 ? p->col_end : o->left + o->n - 1;
    for (int c = from; c <= to; c++)
        put_bits(o, c, (c > p->col ? LEFT : 0) | (c < p->col_end ? RIGHT : 0), p->net, false);
}

static int put_text(RowOut *o, int col, int end, const char *text, DrawInk ink, int thing) {
    for (const char *p = text; *p && col < end;) {
        uint32_t code = utf8_next(&p);
        int w = utf8_width(code);
        if (w < 1 || col + w > end)
            continue;
        put(o, col, code, ink, thing);
        if (w == 2)
            put(o, col + 1, 0, ink, thing);
        col += w;
    }
    return col;
}

static void put_frame_row(RowOut *o, DrawRect r, bool top, DrawInk ink, int thing,
                          const uint32_t *corner) {
    put(o, r.col, corner[top ? 0 : 2], ink, thing);
    for (int c = r.col + 1; c < r.col + r.cols - 1; c++)
        put(o, c, corner[4], ink, thing);
    put(o, r.col + r.cols - 1, corner[top ? 1 : 3], ink, thing);
}

static void put_box(RowOut *o, const Drawing *d, int box, int row) {
    static const uint32_t corner[] = {0x250c, 0x2510, 0x2514, 0x2518, 0x2500};
    const DrawBox *b = &d->graph->box.at[box];
    DrawRect r = d->rect[box];
    int at = row - r.row, end = r.col + r.cols;
    if (at < 0 || at >= r.rows)
        return;
    if (b->framed && (at == 0 || at == r.rows - 1)) {
        put_frame_row(o, r, at == 0, DRAW_frame, box, corner);
        return;
    }
    if (b->framed) {
        put(o, r.col, 0x2502, DRAW_frame, box);
        put(o, end - 1, 0x2502, DRAW_frame, box);
    }
    for (int c = r.col + b->framed; c < end - b->framed; c++)
        put(o, c, ' ', DRAW_more, box);
    int line = at - b->framed;
    for (int i = 0; i < DRAW_LINES; i++)
        if (b->text[i] && line-- == 0)
            put_text(o, r.col + (r.cols - utf8_columns(b->text[i])) / 2, end - b->framed,
                     b->text[i], i ? DRAW_more : DRAW_name, box);
}

static void put_group(RowOut *o, const Drawing *d, int group, int row) {
    static const uint32_t corner[] = {0x250f, 0x2513, 0x2517, 0x251b, 0x2501};
    DrawRect r = d->group[group].at;
    int end = r.row + r.rows - 1;
    if (d->group[group].first < 0 || row < r.row || row > end)
        return;
    if (row == r.row || row == end) {
        for (int c = r.col; c < r.col + r.cols; c++) {
            int at = c - o->left;
            bool line = at >= 0 && at < o->n && o->bits[at] & UP && o->bits[at] & DOWN;
            uint32_t code = line ? 0x253f : corner[4];
            if (c == r.col || c == r.col + r.cols - 1)
                code = corner[(row == end ? 2 : 0) + (c != r.col)];
            put(o, c, code, DRAW_group, group);
        }
        if (row == r.row) {
            put(o, r.col + 2, ' ', DRAW_group, group);
            int col = put_text(o, r.col + 3, r.col + r.cols - 2, d->graph->group.at[group],
                               DRAW_title, group);
            put(o, col, ' ', DRAW_group, group);
        }
        return;
    }
    for (int side = 0; side < 2; side++) {
        int c = side ? r.col + r.cols - 1 : r.col, at = c - o->left;
        bool line = at >= 0 && at < o->n && o->bits[at] & LEFT && o->bits[at] & RIGHT;
        put(o, c, line ? 0x2542 : 0x2503, DRAW_group, group);
    }
}

// The band that a row lies in: the last that begins at it or before and has rows.
static int band_at(const Drawing *d, int row) {
    int lo = 0, hi = 2 * d->n_ranks;
    while (lo < hi) {
        int mid = (lo + hi + 1) / 2;
        if (d->band[mid].row <= row)
            lo = mid;
        else
            hi = mid - 1;
    }
    return lo;
}

void draw_row(const Drawing *d, int row, int left, int n, int first, DrawCell *out) {
    Arena tmp = {0};
    RowOut o = {out, ARENA_ARRAY(&tmp, n + 1, uint8_t), left, n, first};
    for (int i = 0; i < n; i++)
        out[i] = (DrawCell){' ', DRAW_blank, -1};
    if (row >= 0 && row < d->rows) {
        const Band *b = &d->band[band_at(d, row)];
        for (int i = 0; i < b->pieces.n; i++)
            put_piece(&o, &b->pieces.at[i], row);
        for (int i = 0; i < d->graph->group.n; i++)
            put_group(&o, d, i, row);
        for (int i = 0; i < b->boxes.n; i++)
            put_box(&o, d, b->boxes.at[i], row);
    }
    arena_free(&tmp);
}

int draw_rows(const Drawing *d) {
    return d->rows;
}

int draw_cols(const Drawing *d) {
    return d->cols;
}

DrawRect draw_box_rect(const Drawing *d, int box) {
    return d->rect[box];
}

// Sideways within the rank; up and down to the nearest of the next rank that has boxes.
int draw_beside(const Drawing *d, int box, int dx, int dy) {
    int rank = d->rank_of[box] + dy, best = -1;
    DrawRect from = d->rect[box];
    int middle = from.col + from.cols / 2;
    for (; rank >= 0 && rank < d->n_ranks && best < 0; rank += dy) {
        const Band *b = &d->band[2 * rank + 1];
        int64_t least = INT64_MAX;
        for (int i = 0; i < b->boxes.n; i++) {
            DrawRect r = d->rect[b->boxes.at[i]];
            int64_t off = (int64_t)(r.col + r.cols / 2) - middle;
            if (b->boxes.at[i] == box || (dx && off * dx <= 0))
                continue;
            off = off < 0 ? -off : off;
            if (off < least) {
                least = off;
                best = b->boxes.at[i];
            }
        }
        if (!dy)
            break;
    }
    return best;
}

Drawing *draw_new(Arena *a, const DrawGraph *g, const char *text, Diag *d) {
    Places places = {0};
    Drawing *drawing = ARENA_NEW(a, Drawing);
    drawing->graph = g;
    drawing->arena = a;
    if (!places_read(&places, a, g, text, d))
        return NULL;
    Route *routes = ARENA_ARRAY(a, g->box.n + 1, Route);
    drawing_snap(drawing, &places, routes);
    for (int i = 0; i < g->edge.n; i++)
        if (drawing->rank_of[g->edge.at[i].from] >= drawing->rank_of[g->edge.at[i].to]) {
            diag_tool(d, "the layout does not go downwards from box %d to %d", g->edge.at[i].from,
                      g->edge.at[i].to);
            return NULL;
        }
    drawing_route(drawing, routes);
    return drawing;
}
