// drawing.c: a graph drawn: boxes and lines in cells, groups as frames or folded to one box. The
// cursor is a box, not a line; Graphviz finds the places.
#include "views/drawing.h"

#include <string.h>

enum { COLUMNS_MAX = 4096, FEW = 24 };

typedef struct Doc {
    Boxes boxes;
    Drawing *drawing;
    int selected; // box
    int part;     // in it, that the cursor is on
    BoxDetail detail;
    bool by_graphviz;
    bool *from_selected; // by box: the selected one reads it
} Doc;

static bool draw(ViewCtx *c, Doc *d, Buf *why) {
    Diag diag = {.arena = c->arena};
    Buf places = {.arena = c->tmp};
    boxes_draw(&d->boxes, d->detail);
    d->by_graphviz = session_layout(c->session, &d->boxes.graph, c->opt.plain_layout, &places);
    d->drawing = draw_new(c->arena, &d->boxes.graph, buf_str(&places), &diag);
    d->from_selected = ARENA_ARRAY(c->arena, d->boxes.graph.box.n + 1, bool);
    if (!d->drawing)
        buf_puts(why, diag_first(&diag));
    return d->drawing != NULL;
}

static void choose(Doc *d, int part) {
    const DrawGraph *g = &d->boxes.graph;
    int box = d->boxes.parts.at[part].box;
    d->selected = box;
    d->part = part;
    memset(d->from_selected, 0, (size_t)g->box.n + 1);
    for (int i = 0; i < g->edge.n; i++)
        if (g->edge.at[i].to == box)
            d->from_selected[g->edge.at[i].from] = true;
}

// Types as well, if all of it is seen then.
static bool draw_detail(ViewCtx *c, Doc *d, Buf *why) {
    if (d->detail)
        return draw(c, d, why);
    d->detail = DETAIL_types;
    if (boxes_count(&d->boxes) <= FEW && draw(c, d, why) &&
        draw_rows(d->drawing) <= c->opt.rows && draw_cols(d->drawing) <= c->opt.cols)
        return true;
    d->detail = DETAIL_names;
    return draw(c, d, why);
}

static bool drawing_open(ViewCtx *c, Buf *why) {
    Doc *d = ARENA_NEW(c->arena, Doc);
    c->doc = d;
    // What a schedule's kernels are is seen best by kernel; a graph's nodes by module.
    BoxesBy first = c->art && c->art->kind == ART_graph ? BY_module : BY_kernel;
    if (!boxes_open(&d->boxes, c, (BoxesBy)((first + c->opt.alter) % BOXES_BYS), why))
        return false;
    if (!d->boxes.parts.n) {
        buf_puts(why, "there is nothing to draw");
        return false;
    }
    d->detail = (BoxDetail)c->opt.detail;
    if (!draw_detail(c, d, why))
        return false;
    choose(d, 0);
    return true;
}

static int drawing_count(ViewCtx *c) {
    return draw_rows(((Doc *)c->doc)->drawing);
}

static int selected_row(const Doc *d) {
    DrawRect r = draw_box_rect(d->drawing, d->selected);
    return r.row + r.rows / 2;
}

static void choose_box(Doc *d, int box) {
    if (d->boxes.parts.at[d->part].box != box || box != d->selected)
        choose(d, d->boxes.first_part[box]);
}

static const BoxPart *part_of_box(const Doc *d, int box) {
    return &d->boxes.parts.at[d->boxes.first_part[box]];
}

static BoxPart *part_here(const Doc *d) {
    return &d->boxes.parts.at[d->part];
}

static int parts_of_box(const Doc *d, int box, int *last) {
    int n = 0;
    for (int i = d->boxes.first_part[box]; i >= 0; i = d->boxes.next_part[i], n++)
        *last = i;
    return n;
}

static const BoxGroup *folded(const Doc *d, int box) {
    const BoxPart *p = part_of_box(d, box);
    return p->group >= 0 && !d->boxes.groups.at[p->group].open ? &d->boxes.groups.at[p->group]
                                                               : NULL;
}

// The strongest link of the cursor's thing to what a box stands for.
static int strength(const ViewCtx *c, const Doc *d, int box) {
    int best = 0;
    for (int i = d->boxes.first_part[box]; c->linked && i >= 0; i = d->boxes.next_part[i]) {
        int item = d->boxes.parts.at[i].item;
        if (item < c->n_linked && c->linked[item] > best)
            best = c->linked[item];
    }
    return best;
}

static StyleId box_style(const ViewCtx *c, const Doc *d, int box, DrawInk ink) {
    static const StyleId by_strength[] = {ST_text, ST_link_kin, ST_link_part, ST_link_same};
    const BoxPart *p = part_of_box(d, box);
    int k = strength(c, d, box);
    if (k && ink != DRAW_more)
        return ink == DRAW_frame && k == 3 ? ST_link_part : by_strength[k];
    if (ink == DRAW_more)
        return ST_type;
    bool whole = ink == DRAW_frame || d->detail == DETAIL_dots || folded(d, box);
    if (p->kernel >= 0 && whole)
        return style_kernel(p->kernel);
    return ink == DRAW_frame || p->quiet ? ST_dim : ST_text;
}

static StyleId cell_style(const ViewCtx *c, const Doc *d, const DrawCell *cell) {
    switch ((DrawInk)cell->ink) {
    case DRAW_name:
    case DRAW_more:
    case DRAW_frame:
        return box_style(c, d, cell->thing, (DrawInk)cell->ink);
    case DRAW_line:
        if (cell->thing == d->selected)
            return ST_link_part;
        return d->from_selected[cell->thing] ? ST_link_kin : ST_dim;
    case DRAW_group:
    case DRAW_title: {
        int kernel = d->boxes.groups.at[cell->thing].kernel;
        return kernel >= 0 ? style_kernel(kernel) : cell->ink == DRAW_title ? ST_name : ST_dim;
    }
    case DRAW_blank:
        break;
    }
    return ST_text;
}

static void drawing_line(ViewCtx *c, int row, Line *l) {
    const Doc *d = c->doc;
    int cols = c->opt.cols > COLUMNS_MAX ? COLUMNS_MAX : c->opt.cols;
    if (cols <= 0)
        return; // no room beside the gutter
    DrawCell *cell = ARENA_ARRAY(l->arena, cols + 1, DrawCell);
    draw_row(d->drawing, row, c->opt.left, cols, d->selected, cell);
    while (cols > 0 && cell[cols - 1].ink == DRAW_blank)
        cols--;
    for (int i = 0; i < cols;) {
        Buf text = {.arena = l->arena};
        StyleId style = cell_style(c, d, &cell[i]);
        bool last = l->n == LINE_SPANS - 1;
        for (;
             i < cols && (last || cell[i].ink == DRAW_blank || cell_style(c, d, &cell[i]) == style);
             i++)
            if (cell[i].code)
                buf_utf8(&text, cell[i].code);
        line_add(l, style, buf_str(&text));
    }
    if (row == selected_row(d) && c->art)
        l->item = (Item){c->art->id, part_here(d)->item};
}

static int drawing_row_of(ViewCtx *c, Item item) {
    Doc *d = c->doc;
    if (!c->art || item.artifact != c->art->id || item.id < 0 || item.id >= d->boxes.n_items)
        return -1;
    int part = d->boxes.part_of[item.id];
    if (part < 0)
        return -1;
    choose(d, part);
    return selected_row(d);
}

// The box at a place, else the one nearest to it; rows count for more, they are farther apart.
static int drawing_near(ViewCtx *c, int row, int col) {
    Doc *d = c->doc;
    DrawRect now = draw_box_rect(d->drawing, d->selected);
    if (col < 0 && row >= now.row && row < now.row + now.rows)
        return selected_row(d);
    int best = d->selected;
    int64_t least = INT64_MAX;
    if (col < 0)
        col = now.col + now.cols / 2;
    for (int i = 0; i < d->boxes.graph.box.n; i++) {
        DrawRect r = draw_box_rect(d->drawing, i);
        int64_t dy = row < r.row             ? r.row - row
                     : row >= r.row + r.rows ? row - r.row - r.rows + 1
                                             : 0;
        int64_t dx = col < r.col             ? r.col - col
                     : col >= r.col + r.cols ? col - r.col - r.cols + 1
                                             : 0;
        if (dy * 8 + dx < least) {
            least = dy * 8 + dx;
            best = i;
        }
    }
    choose_box(d, best);
    return selected_row(d);
}

static int drawing_walk(ViewCtx *c, int dx, int dy) {
    Doc *d = c->doc;
    int to = draw_beside(d->drawing, d->selected, dx, dy);
    if (to >= 0)
        choose_box(d, to);
    return to < 0 ? -1 : selected_row(d);
}

static void drawing_columns(ViewCtx *c, int *col, int *cols) {
    const Doc *d = c->doc;
    DrawRect r = draw_box_rect(d->drawing, d->selected);
    *col = r.col;
    *cols = r.cols;
}

static void drawing_title(ViewCtx *c, Buf *left, Buf *right) {
    const Doc *d = c->doc;
    buf_printf(left, "drawing · %s · by %s · %s", artifact_title(c->art),
               boxes_by[d->boxes.by], box_details[d->detail - 1]);
    buf_printf(right, "%d box%s of %d", d->boxes.graph.box.n,
               d->boxes.graph.box.n == 1 ? "" : "es", d->boxes.parts.n);
    if (!d->by_graphviz && !c->opt.plain_layout)
        buf_puts(right, " · plain layout: graphviz took too long");
}

static void drawing_node(ViewCtx *c, int row, Buf *out) {
    const Doc *d = c->doc;
    const BoxGroup *g = folded(d, d->selected);
    BoxPart *p = part_here(d);
    int last = 0, n = parts_of_box(d, d->selected, &last);
    (void)row;
    if (n > 1) {
        const char *last_name = d->boxes.parts.at[last].name;
        if (g && g->n == n)
            buf_printf(out, "%s: %d ops, %s to %s   Space unfolds them", g->title, n,
                       d->boxes.parts.at[g->first].name, last_name);
        else
            buf_printf(out, "%s  %s   in a chain of %d ops, %s to %s   ) draws them", p->name,
                       boxes_type(&d->boxes, p), n, part_of_box(d, d->selected)->name, last_name);
        return;
    }
    buf_printf(out, "%s  %s", p->name, boxes_type(&d->boxes, p));
    if (p->group >= 0)
        buf_printf(out, "   in %s", d->boxes.groups.at[p->group].title);
    if (d->boxes.inputs_hidden)
        buf_printf(out, "   not drawn: %d input%s, parameters, unused or read by many",
                   d->boxes.inputs_hidden, d->boxes.inputs_hidden == 1 ? "" : "s");
}

// Draws anew with the same thing under the cursor.
static bool redraw(ViewCtx *c, Doc *d) {
    Buf why = {.arena = c->tmp};
    if (!draw(c, d, &why))
        return false;
    choose(d, d->part);
    return true;
}

static int drawing_detail(ViewCtx *c) {
    return (int)((const Doc *)c->doc)->detail;
}

static bool drawing_toggle(ViewCtx *c, int row, const char **command) {
    Doc *d = c->doc;
    const BoxPart *p = part_here(d);
    (void)row;
    (void)command;
    if (p->group < 0)
        return false;
    d->boxes.groups.at[p->group].open ^= true;
    return redraw(c, d);
}

static int drawing_zoom(ViewCtx *c, int detail) {
    Doc *d = c->doc;
    if (detail < DETAIL_dots || detail >= DETAIL_end)
        return -1;
    d->detail = (BoxDetail)detail;
    return redraw(c, d) ? selected_row(d) : -1;
}

static const char *drawing_enter(ViewCtx *c, int row) {
    const Doc *d = c->doc;
    (void)row;
    int last, n = parts_of_box(d, d->selected, &last);
    const BoxGroup *g = folded(d, d->selected);
    return n == 1 ? "view node" : g && g->n == n ? "toggle" : "detail more";
}

static int drawing_start(ViewCtx *c) {
    return selected_row(c->doc);
}

const DrawGraph *drawing_graph(const ViewCtx *c) {
    return &((const Doc *)c->doc)->boxes.graph;
}

static const Plane plane = {.near = drawing_near,
                            .walk = drawing_walk,
                            .columns = drawing_columns,
                            .levels = box_details,
                            .detail = drawing_detail,
                            .zoom = drawing_zoom};

const View view_drawing = {
    .name = "drawing",
    .doc = "the graph drawn, in groups by kernel, module, line, half or block; Space folds a group",
    .stage = -1,
    .open = drawing_open,
    .count = drawing_count,
    .line = drawing_line,
    .row_of = drawing_row_of,
    .title = drawing_title,
    .node = drawing_node,
    .enter = drawing_enter,
    .toggle = drawing_toggle,
    .start = drawing_start,
    .plane = &plane,
    .alters = BOXES_BYS,
};
