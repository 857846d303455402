// results.c: places found by `grep` and `find`, graph by graph and stage by stage, the match lit.
#include "views/results.h"

#include "core/session.h"
#include "views/brief.h"

#include <string.h>

typedef struct Row {
    int result; // -1: the heading of those behind it
    int first;  // heading: its first result
} Row;

typedef struct Doc {
    VEC(Row) rows;
    int name_cols;
} Doc;

enum { NAME_MAX = 22 };

static bool results_open(ViewCtx *c, Buf *why) {
    const Results *r = c->results;
    Doc *d = ARENA_NEW(c->arena, Doc);
    c->doc = d;
    if (!r || (!r->at.n && !r->looking)) {
        buf_puts(why, r ? "nothing was found"
                        : "nothing was searched for: grep RE looks through all stages");
        return false;
    }
    for (int i = 0; i < r->at.n; i++) {
        const Result *x = &r->at.at[i];
        int cols = utf8_columns(x->name);
        bool fresh = !i || r->at.at[i - 1].stage != x->stage || r->at.at[i - 1].unit != x->unit;
        d->name_cols = cols > d->name_cols ? cols : d->name_cols;
        if (fresh)
            vec_push(c->arena, &d->rows, (Row){-1, i});
        vec_push(c->arena, &d->rows, (Row){i, i});
    }
    d->name_cols = d->name_cols > NAME_MAX ? NAME_MAX : d->name_cols;
    return true;
}

static int results_count(ViewCtx *c) {
    return ((Doc *)c->doc)->rows.n;
}

static void heading(ViewCtx *c, const Result *first, Line *l) {
    const Results *r = c->results;
    int n = 0;
    for (const Result *x = first; x < r->at.at + r->at.n; x++, n++)
        if (x->stage != first->stage || x->unit != first->unit)
            break;
    l->kind = LINE_section;
    line_printf(l, ST_text, "%c %s", stage_info[first->stage].key, stage_info[first->stage].name);
    if (c->session && pipeline_n_units(session_pipeline(c->session)) > 1)
        line_printf(l, ST_dim, " · %s",
                    pipeline_unit(session_pipeline(c->session), first->unit)->kind);
    line_printf(l, ST_dim, "   %d", n);
}

static void results_line(ViewCtx *c, int row, Line *l) {
    const Doc *d = c->doc;
    const Row *r = &d->rows.at[row];
    if (r->result < 0) {
        heading(c, &c->results->at.at[r->first], l);
        return;
    }
    const Result *x = &c->results->at.at[r->result];
    if (d->name_cols) {
        line_cell(l, ST_text, x->name, d->name_cols);
        line_add(l, ST_text, "  ");
        l->frozen = d->name_cols + 2;
    }
    const char *text = x->text + strspn(x->text, " ");
    int skip = (int)(text - x->text), at = x->at - skip;
    if (!x->len || at < 0) {
        line_add(l, ST_dim, text);
        return;
    }
    // The match stays in sight though the line is long.
    int from = at > 40 && c->opt.cols < VIEW_UNCUT && at + x->len > c->opt.cols - l->frozen - 2
                   ? at - 30
                   : 0;
    while (from > 0 && ((unsigned char)text[from] & 0xc0) == 0x80)
        from--;
    line_printf(l, ST_dim, "%s%.*s", from ? "…" : "", at - from, text + from);
    line_printf(l, ST_match, "%.*s", x->len, text + at);
    line_add(l, ST_dim, text + at + x->len);
}

static void results_title(ViewCtx *c, Buf *left, Buf *right) {
    const Results *r = c->results;
    buf_puts(left, r && r->title ? r->title : "results");
    if (r)
        buf_printf(right, "%d%s", r->at.n,
                   r->looking ? " so far" : r->left_off ? " and more" : "");
}

static void results_node(ViewCtx *c, int row, Buf *out) {
    const Row *r = &((Doc *)c->doc)->rows.at[row];
    const Result *x = &c->results->at.at[r->first];
    buf_printf(out, "%s: %s", stage_info[x->stage].name, x->text + strspn(x->text, " "));
}

static const char *results_enter(ViewCtx *c, int row) {
    const Row *r = &((Doc *)c->doc)->rows.at[row];
    return c->results->at.at[r->first].enter;
}

static int results_start(ViewCtx *c) {
    return ((Doc *)c->doc)->rows.n > 1;
}

const View view_results = {
    .name = "results",
    .doc = "what grep and find found last",
    .flags = VIEW_free | VIEW_live,
    .stage = -1,
    .open = results_open,
    .count = results_count,
    .line = results_line,
    .title = results_title,
    .node = results_node,
    .enter = results_enter,
    .start = results_start,
};
