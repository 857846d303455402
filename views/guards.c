// guards.c: what the compiled code relies on: the guards of the shape environment, with the stage
// and the reason of each.
#include "views/doc.h"

static bool guards_open(ViewCtx *c, Buf *why) {
    const SymGuard *guards;
    int n = sym_guards(pipeline_sym(session_pipeline(c->session)), &guards);
    Page *p = page_new(c);
    (void)why;
    if (!n) {
        page_line(p);
        page_add(p, ST_dim,
                 "no guard: every size is a number, and nothing was assumed about a symbol");
    }
    for (int i = 0; i < n; i++) {
        page_line(p);
        page_cell(p, ST_text, 40, "%s", sym_str(c->arena, guards[i].cond));
        page_cell(p, ST_dim, 14, " %s",
                  guards[i].stage >= 0 && guards[i].stage < STAGE_count
                      ? stage_info[guards[i].stage].name
                      : "");
        page_add(p, ST_dim, " %s", guards[i].reason ? guards[i].reason : "");
    }
    return true;
}

static void guards_title(ViewCtx *c, Buf *left, Buf *right) {
    const SymGuard *guards;
    buf_puts(left, "guards");
    buf_printf(right, "%d", sym_guards(pipeline_sym(session_pipeline(c->session)), &guards));
}

const View view_guards = {
    .name = "guards",
    .doc = "what the compiled code relies on",
    .stage = -1,
    .open = guards_open,
    .count = page_count,
    .line = page_line_of,
    .title = guards_title,
    .node = page_node,
};
