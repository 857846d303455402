// output.c: the text that a command printed, when it is more than one line.
#include "views/view.h"

#include <string.h>

static int output_count(ViewCtx *c) {
    return c->output ? c->output->n : 0;
}

static void output_line(ViewCtx *c, int row, Line *l) {
    const char *text = c->output->at[row];
    // A text that begins with two rules is a heading.
    if (str_starts(text, "── ")) {
        l->kind = LINE_section;
        line_add(l, ST_head_focus, text + strlen("── "));
        return;
    }
    line_add(l, ST_text, text);
}

static void output_title(ViewCtx *c, Buf *left, Buf *right) {
    buf_puts(left, c->output && c->output->title ? c->output->title : "output");
    (void)right;
}

static void output_node(ViewCtx *c, int row, Buf *out) {
    buf_puts(out, c->output->at[row] + strspn(c->output->at[row], " "));
}

const View view_output = {
    .name = "output",
    .doc = "what the last command printed",
    .flags = VIEW_free | VIEW_live,
    .stage = -1,
    .count = output_count,
    .line = output_line,
    .title = output_title,
    .node = output_node,
};
