// doc.h: a document of ready lines, for views that show a page rather than a long artifact: each
// line is made once, when the view opens, from a few styled pieces.
#ifndef VIEWS_DOC_H
#define VIEWS_DOC_H

#include "views/brief.h"

typedef struct DocLine {
    LineKind kind;
    Span *span;
    int n;
    Item item;
    const char *enter;      // command line of Enter, NULL none
    const char *node;       // text of the node line, NULL: the line itself
    const char *name;       // of the thing that the line is about, for commands about it; NULL
    const char *sign;
    StyleId sign_style;
    int frozen;
} DocLine;

typedef struct Page {
    Arena *arena;
    VEC(DocLine) lines;
} Page;

Page *page_new(ViewCtx *c);                 // also ctx->doc
DocLine *page_line(Page *p);                // a new empty line; valid until the next
void page_add(Page *p, StyleId style, const char *fmt, ...) FX_PRINTF(3, 4);    // to the last line
void page_cell(Page *p, StyleId style, int columns, const char *fmt, ...) FX_PRINTF(4, 5);
void page_bar(Page *p, StyleId style, double value, double full, int columns);
void page_section(Page *p, const char *fmt, ...) FX_PRINTF(2, 3);
// `label   text`, the label dim.
void page_field(Page *p, const char *label, const char *fmt, ...) FX_PRINTF(3, 4);

// A line of a page that is a part of a view's document.
void page_put(const Page *p, int row, Line *out);
// The functions of a View whose document is a Page.
int page_count(ViewCtx *c);
void page_line_of(ViewCtx *c, int row, Line *out);
int page_row_of(ViewCtx *c, Item item);
void page_node(ViewCtx *c, int row, Buf *out);
const char *page_enter(ViewCtx *c, int row);
const char *page_name(ViewCtx *c, int row); // NULL: about nothing with a name
int page_start(ViewCtx *c);                 // the first line that Enter opens

#endif
