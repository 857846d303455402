// source.c: the user's file with its lines, or the model's text if the source is not at hand.
#include "views/brief.h"

#include <string.h>

typedef struct Doc {
    const char **lines;
    int n;
    int digits; // columns of a line number
} Doc;

static bool source_open(ViewCtx *c, Buf *why) {
    const LoadedModel *m = session_model(c->session);
    const char *text = c->art && c->art->kind == ART_text ? c->art->text
                       : m->source                        ? m->source
                                                          : m->text;
    if (!text) {
        buf_puts(why, "the model's file holds no source text");
        return false;
    }
    Doc *d = ARENA_NEW(c->arena, Doc);
    c->doc = d;
    d->lines = split_lines(c->arena, text, &d->n);
    for (int n = d->n; n; n /= 10)
        d->digits++;
    return true;
}

static int source_count(ViewCtx *c) {
    return ((Doc *)c->doc)->n;
}

static void source_line(ViewCtx *c, int row, Line *l) {
    const Doc *d = c->doc;
    line_printf(l, ST_dim, "%*d  ", d->digits, row + 1);
    l->frozen = d->digits + 2;
    l->name = l->n;
    line_code(l, d->lines[row], python_keywords, "#");
    if (c->art)
        l->item = (Item){c->art->id, row};
}

static int source_row_of(ViewCtx *c, Item item) {
    return c->art && item.artifact == c->art->id && item.id < ((Doc *)c->doc)->n ? item.id : -1;
}

static void source_title(ViewCtx *c, Buf *left, Buf *right) {
    const LoadedModel *m = session_model(c->session);
    const char *path = m->source_path ? m->source_path : m->path;
    const char *slash = strrchr(path, '/');
    buf_printf(left, "1 source · %s", slash ? slash + 1 : path);
    (void)right;
}

static void source_node(ViewCtx *c, int row, Buf *out) {
    const char *text = ((Doc *)c->doc)->lines[row];
    buf_printf(out, "line %d: %s", row + 1, text + strspn(text, " "));
}

const View view_source = {
    .name = "source",
    .doc = "the model's source, line by line",
    .flags = VIEW_stage,
    .stage = -1,
    .open = source_open,
    .count = source_count,
    .line = source_line,
    .row_of = source_row_of,
    .title = source_title,
    .node = source_node,
};
