// rewrites.c: every single rewrite of a graph's compilation in order, step by step: the pattern
// that matched, where, and the time. Enter goes to the state behind it; `d` there shows the change.
#include "core/pipeline/rewrite.h"
#include "views/doc.h"

#include <string.h>

static const char *where_of(const Rewrite *r) { // keys of joint passes are `pass:node`
    const char *key = r->asked.ask.key, *colon = strchr(key, ':');
    return r->asked.ask.kind == DECIDE_rewrite && colon ? colon + 1 : key;
}

static int64_t slowest(const Rewrite *list, int n) {
    int64_t most = 1;
    for (int i = 0; i < n; i++)
        most = list[i].ns > most ? list[i].ns : most;
    return most;
}

static void step_rows(ViewCtx *c, Page *p, int step, const Artifact *a) {
    static const char *const words[] = {
        [DECIDE_decomposition] = "apart", [DECIDE_rewrite] = "rewrite", [DECIDE_fuse] = "fuse"};
    Rewrite *list;
    int n = pipeline_rewrites(session_pipeline(c->session), c->unit, a, c->arena, &list);
    int64_t most = slowest(list, n);
    if (!n)
        return;
    page_section(p, "%c %s%s%s   %d", stage_info[a->stage].key, stage_info[a->stage].name,
                 a->pass ? " · " : "", a->pass ? a->pass : "", n);
    for (int i = 0; i < n; i++) {
        const Decide *ask = &list[i].asked.ask;
        DocLine *l = page_line(p);
        l->enter = i + 1 < n ? arena_printf(c->arena, "scrub %d.%d", step + 1, i + 1)
                             : arena_printf(c->arena, "scrub %d", step + 1);
        l->node = arena_printf(c->arena, "%s %s%s%s   Enter: the state behind it", words[ask->kind],
                               where_of(&list[i]), ask->reason ? ": " : "",
                               ask->reason ? ask->reason : "");
        page_cell(p, ST_dim, -5, "%d", i + 1);
        page_add(p, ST_text, " ");
        page_cell(p, ST_text, 31, "%s", where_of(&list[i]));
        page_add(p, ST_text, " ");
        page_bar(p, ST_bar, c->opt.hide_times ? 0 : (double)list[i].ns, (double)most, 6);
        page_cell(p, ST_number, -9, "%s", view_time(c, c->arena, (double)list[i].ns));
        page_add(p, ST_dim, "  %s", ask->reason ? ask->reason : "");
    }
}

static bool rewrites_open(ViewCtx *c, Buf *why) {
    Pipeline *pl = session_pipeline(c->session);
    pipeline_build(pl, c->unit, STAGE_kernels);
    const Unit *u = pipeline_unit(pl, c->unit);
    Page *p = page_new(c);
    for (int i = 0; i < unit_n_steps(u); i++)
        step_rows(c, p, i, unit_step(u, i));
    if (!p->lines.n)
        buf_puts(why, "no step of this graph consists of single rewrites");
    return p->lines.n > 0;
}

static void rewrites_title(ViewCtx *c, Buf *left, Buf *right) {
    const Unit *u = pipeline_unit(session_pipeline(c->session), c->unit);
    int n = 0;
    for (int i = 0; i < unit_n_steps(u); i++)
        n += unit_step(u, i)->n_rewrites;
    buf_printf(left, "rewrites · %s", u->kind);
    buf_printf(right, "%d", n);
}

const View view_rewrites = {
    .name = "rewrites",
    .doc = "every single rewrite: what matched, where, how long it took",
    .stage = -1,
    .open = rewrites_open,
    .count = page_count,
    .line = page_line_of,
    .title = rewrites_title,
    .node = page_node,
    .enter = page_enter,
    .start = page_start,
};
