// doc.c: pages of ready lines.
#include "views/doc.h"

#include <string.h>

Page *page_new(ViewCtx *c) {
    Page *p = ARENA_NEW(c->arena, Page);
    p->arena = c->arena;
    c->doc = p;
    return p;
}

DocLine *page_line(Page *p) {
    vec_push(p->arena, &p->lines, (DocLine){.item = ITEM_NONE});
    return &vec_last(&p->lines);
}

enum { FEW_SPANS = 14 };

static void add_span(Page *p, StyleId style, const char *text) {
    DocLine *l = &vec_last(&p->lines);
    if (l->n == LINE_SPANS || !*text)
        return;
    if (!l->span) { // few lines need as many as there may be
        l->span = ARENA_ARRAY(p->arena, FEW_SPANS, Span);
    } else if (l->n == FEW_SPANS) {
        Span *more = ARENA_ARRAY(p->arena, LINE_SPANS, Span);
        memcpy(more, l->span, FEW_SPANS * sizeof *more);
        l->span = more;
    }
    l->span[l->n++] = (Span){text, style};
}

void page_add(Page *p, StyleId style, const char *fmt, ...) {
    va_list args;
    va_start(args, fmt);
    add_span(p, style, arena_vprintf(p->arena, fmt, args));
    va_end(args);
}

// Moves what a Line function built over to the page's last line.
static void take(Page *p, const Line *l) {
    for (int i = 0; i < l->n; i++)
        add_span(p, l->span[i].style, l->span[i].text);
}

void page_cell(Page *p, StyleId style, int columns, const char *fmt, ...) {
    Line l;
    va_list args;
    line_init(&l, p->arena);
    va_start(args, fmt);
    const char *text = arena_vprintf(p->arena, fmt, args);
    va_end(args);
    if (columns < 0)
        line_right(&l, style, text, -columns);
    else
        line_cell(&l, style, text, columns);
    take(p, &l);
}

void page_bar(Page *p, StyleId style, double value, double full, int columns) {
    Line l;
    line_init(&l, p->arena);
    line_bar(&l, style, value, full, columns);
    take(p, &l);
}

void page_section(Page *p, const char *fmt, ...) {
    va_list args;
    page_line(p)->kind = LINE_section;
    va_start(args, fmt);
    add_span(p, ST_dim, arena_vprintf(p->arena, fmt, args));
    va_end(args);
}

void page_field(Page *p, const char *label, const char *fmt, ...) {
    va_list args;
    page_line(p);
    page_cell(p, ST_dim, 10, "%s", label);
    va_start(args, fmt);
    add_span(p, ST_text, arena_vprintf(p->arena, fmt, args));
    va_end(args);
}

int page_count(ViewCtx *c) {
    return ((Page *)c->doc)->lines.n;
}

void page_line_of(ViewCtx *c, int row, Line *out) {
    page_put(c->doc, row, out);
}

void page_put(const Page *p, int row, Line *out) {
    const DocLine *l = &p->lines.at[row];
    out->kind = l->kind;
    for (int i = 0; i < l->n; i++)
        line_add(out, l->span[i].style, l->span[i].text);
    out->item = l->item;
    out->sign = l->sign;
    out->sign_style = l->sign_style;
    out->frozen = l->frozen;
    out->name = l->n ? 0 : -1;
}

int page_row_of(ViewCtx *c, Item item) {
    const Page *p = c->doc;
    for (int i = 0; i < p->lines.n; i++)
        if (p->lines.at[i].item.id == item.id && p->lines.at[i].item.artifact == item.artifact)
            return i;
    return -1;
}

void page_node(ViewCtx *c, int row, Buf *out) {
    const DocLine *l = &((Page *)c->doc)->lines.at[row];
    if (l->node) {
        buf_puts(out, l->node);
        return;
    }
    for (int i = 0; i < l->n; i++)
        buf_puts(out, l->span[i].text);
}

const char *page_enter(ViewCtx *c, int row) {
    return ((Page *)c->doc)->lines.at[row].enter;
}

const char *page_name(ViewCtx *c, int row) {
    const Page *p = c->doc;
    return row >= 0 && row < p->lines.n ? p->lines.at[row].name : NULL;
}

int page_start(ViewCtx *c) {
    const Page *p = c->doc;
    for (int i = 0; i < p->lines.n; i++)
        if (p->lines.at[i].enter)
            return i;
    return 0;
}
