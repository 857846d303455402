// dot.c: a graph in Graphviz's language: for its layout, sizes in cells and numbers for names; or
// as a picture to look at.
#include "core/draw/internal.h"

// A cell is a tenth of an inch wide for Graphviz; rows do not matter, ranks are made of one height.
#define DOT_CELL 0.1

int draw_box_cols(const DrawBox *b) {
    int cols = 1;
    for (int i = 0; i < DRAW_LINES; i++) {
        int w = b->text[i] ? utf8_columns(b->text[i]) : 0;
        cols = w > cols ? w : cols;
    }
    cols = b->framed ? cols + 4 : cols;
    int ports = 2 * b->ports - 1 + 2 * b->framed;
    return cols > ports ? cols : ports;
}

int draw_box_rows(const DrawBox *b) {
    int rows = 0;
    for (int i = 0; i < DRAW_LINES; i++)
        rows += b->text[i] != NULL;
    rows = rows ? rows : 1;
    return b->framed ? rows + 2 : rows;
}

// Inside quotes of DOT.
static void put_text(Buf *out, const char *text) {
    for (const char *p = text; *p; p++) {
        if (*p == '"' || *p == '\\')
            buf_putc(out, '\\');
        if (*p == '\n')
            buf_puts(out, "\\n");
        else if ((unsigned char)*p >= ' ')
            buf_putc(out, *p);
    }
}

static void put_label(Buf *out, const DrawBox *b) {
    const char *before = "";
    buf_puts(out, "label=\"");
    if (b->label)
        put_text(out, b->label);
    for (int i = 0; i < DRAW_LINES && !b->label; i++)
        if (b->text[i]) {
            buf_puts(out, before);
            put_text(out, b->text[i]);
            before = "\\n";
        }
    buf_putc(out, '"');
}

static void put_box(Buf *out, const DrawGraph *g, int i, bool cells) {
    const DrawBox *b = &g->box.at[i];
    buf_printf(out, "  n%d [", i);
    if (cells) {
        int tenths = draw_box_cols(b); // no %f: its comma depends on the locale
        buf_printf(out, "width=%d.%d", tenths / 10, tenths % 10);
    } else {
        put_label(out, b);
    }
    buf_puts(out, "];\n");
}

static void put_group(Buf *out, const DrawGraph *g, int group, const Ints *members, bool cells) {
    buf_printf(out, "  subgraph cluster_%d {\n", group);
    if (cells) {
        buf_puts(out, "  margin=14;\n");
    } else {
        buf_puts(out, "  style=rounded; fontname=\"monospace\"; label=\"");
        put_text(out, g->group.at[group]);
        buf_puts(out, "\";\n");
    }
    for (int i = 0; i < members->n; i++)
        put_box(out, g, members->at[i], cells);
    buf_puts(out, "  }\n");
}

// Chains are drawn straight: the line from the last box before one weighs more than those that come
// from farther up.
static int *last_above(const DrawGraph *g, Arena *a) {
    int *last = ARENA_ARRAY(a, g->box.n + 1, int);
    for (int i = 0; i < g->edge.n; i++)
        if (g->edge.at[i].from + 1 > last[g->edge.at[i].to])
            last[g->edge.at[i].to] = g->edge.at[i].from + 1;
    return last;
}

void draw_dot(Buf *out, const DrawGraph *g, bool cells) {
    buf_puts(out, "digraph \"");
    put_text(out, g->name && !cells ? g->name : "g");
    buf_puts(out, "\" {\n");
    if (cells)
        buf_puts(out, "  graph [nodesep=0.2, ranksep=0.3, newrank=true];\n"
                      "  node [shape=box, fixedsize=true, height=0.2, label=\"\"];\n"
                      "  edge [dir=none];\n");
    else
        buf_puts(out, "  node [shape=box, fontname=\"monospace\"];\n");
    Ints *members = ARENA_ARRAY(out->arena, g->group.n + 1, Ints);
    for (int i = 0; i < g->box.n; i++) {
        int group = g->box.at[i].group;
        if (group < 0)
            put_box(out, g, i, cells);
        else
            vec_push(out->arena, &members[group], i);
    }
    for (int i = 0; i < g->group.n; i++)
        if (members[i].n)
            put_group(out, g, i, &members[i], cells);
    const int *last = last_above(g, out->arena);
    for (int i = 0; i < g->edge.n; i++) {
        DrawEdge e = g->edge.at[i];
        buf_printf(out, "  n%d -> n%d [weight=%d", e.from, e.to, last[e.to] == e.from + 1 ? 8 : 1);
        buf_printf(out, cells ? ", id=%d];\n" : "];\n", i);
    }
    buf_puts(out, "}\n");
}
