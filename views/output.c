// output.c: the text that a command printed, when it is more than one line. Long lines go on in the
// next row, below the last column of the first one.
#include "views/view.h"

#include "core/base/vec.h"

#include <string.h>

enum { LEAST_COLS = 20, INDENT = 2 };

typedef struct Row {
    const char *text;  // of the part shown
    const char *whole; // of the line
    int indent;        // blanks before it
} Row;

typedef struct Doc {
    VEC(Row) rows;
} Doc;

// Where the last column of a line begins, if that leaves room for more than it takes: behind two
// blanks or more.
static int hang_of(const char *text, int cols) {
    int first = (int)strspn(text, " "), hang = first + INDENT, at = 0;
    for (const char *p = text; *p && at < cols * 2 / 5;) {
        const char *from = p;
        at += utf8_cluster(&p);
        if (*from == ' ' && from > text && from[-1] == ' ' && *p && *p != ' ' && at > first)
            hang = at;
    }
    return hang < cols * 2 / 5 ? hang : INDENT;
}

// The longest beginning of a text that fits, ending at a blank if there is one.
static size_t part_of(const char *text, int cols) {
    const char *p = text, *blank = NULL;
    for (int w = 0; *p;) {
        const char *from = p;
        w += utf8_cluster(&p);
        if (w > cols)
            return (size_t)((blank && blank > text + strspn(text, " ") ? blank : from) - text);
        if (*p == ' ')
            blank = p;
    }
    return (size_t)(p - text);
}

// The document outlives the output: the next command's takes its place.
static void add_line(ViewCtx *c, Doc *d, const char *line) {
    const char *text = arena_strdup(c->arena, line), *whole = text;
    int cols = c->opt.cols, hang = hang_of(text, cols);
    if (cols < LEAST_COLS || str_starts(text, "── ") || utf8_columns(text) <= cols) {
        vec_push(c->arena, &d->rows, (Row){text, whole, 0});
        return;
    }
    for (int indent = 0; *text; indent = hang) {
        size_t n = part_of(text, cols - indent);
        n = n ? n : strlen(text);
        vec_push(c->arena, &d->rows, (Row){arena_strndup(c->arena, text, n), whole, indent});
        text += n;
        text += strspn(text, " ");
    }
}

static bool output_open(ViewCtx *c, Buf *why) {
    Doc *d = ARENA_NEW(c->arena, Doc);
    c->doc = d;
    (void)why;
    for (int i = 0; c->output && i < c->output->n; i++)
        add_line(c, d, c->output->at[i]);
    return true;
}

static int output_count(ViewCtx *c) {
    return ((const Doc *)c->doc)->rows.n;
}

static void output_line(ViewCtx *c, int row, Line *l) {
    const Row *r = &((const Doc *)c->doc)->rows.at[row];
    // A text that begins with two rules is a heading.
    if (str_starts(r->text, "── ")) {
        l->kind = LINE_section;
        line_add(l, ST_head_focus, r->text + strlen("── "));
        return;
    }
    if (r->indent)
        line_pad(l, r->indent, false);
    line_add(l, ST_text, r->text);
}

static void output_title(ViewCtx *c, Buf *left, Buf *right) {
    buf_puts(left, c->output && c->output->title ? c->output->title : "output");
    (void)right;
}

static void output_node(ViewCtx *c, int row, Buf *out) {
    const char *text = ((const Doc *)c->doc)->rows.at[row].whole;
    buf_puts(out, text + strspn(text, " "));
}

const View view_output = {
    .name = "output",
    .doc = "what the last command printed",
    .flags = VIEW_free | VIEW_live | VIEW_width,
    .stage = -1,
    .open = output_open,
    .count = output_count,
    .line = output_line,
    .title = output_title,
    .node = output_node,
};
