// passes.c: the steps of the compilation in order, with what each changed and how long it took.
#include "views/doc.h"

#include <string.h>

static int size_of(const Artifact *a) {
    if (a->kind == ART_graph)
        return a->graph->n_nodes;
    return a->kind == ART_schedule ? a->schedule->nodes.n
           : a->kind == ART_code   ? a->code->kernels.n
                                   : -1;
}

// What a custom pass said, line by line.
static void put_note(Page *p, const char *note) {
    while (note && *note) {
        size_t len = strcspn(note, "\n");
        page_line(p);
        page_add(p, ST_dim, "  %.*s", (int)len, note);
        note += len + (note[len] == '\n');
    }
}

static bool passes_open(ViewCtx *c, Buf *why) {
    Pipeline *pl = session_pipeline(c->session);
    (void)why;
    pipeline_build(pl, c->unit, STAGE_kernels);
    const Unit *u = pipeline_unit(pl, c->unit);
    Page *p = page_new(c);
    int64_t most = 1;
    for (int i = 0; i < unit_n_steps(u); i++)
        most = unit_step(u, i)->ns > most ? unit_step(u, i)->ns : most;
    int before = -1;
    StageId stage = STAGE_count;
    for (int i = 0; i < unit_n_steps(u); i++) {
        const Artifact *a = unit_step(u, i);
        if (a->stage != stage)
            page_section(p, "%c %s", stage_info[a->stage].key, stage_info[a->stage].name);
        stage = a->stage;
        DocLine *l = page_line(p);
        l->sign = a->changed ? "▪" : "·";
        l->sign_style = a->changed ? ST_link_part : ST_dim;
        l->enter = arena_printf(c->arena, "diff #%d #%d", i > 0 ? i - 1 : 0, i);
        l->node = arena_printf(c->arena, "step %d, %s%s.  Enter: what it changed", i,
                               artifact_title(a), a->changed ? "" : " changed nothing");
        page_cell(p, a->changed ? ST_text : ST_dim, 34, "%s",
                  a->pass ? a->pass : stage_info[a->stage].doc);
        int n = size_of(a);
        if (n >= 0)
            page_cell(p, ST_number, -6, "%d", n);
        else
            page_cell(p, ST_dim, -6, "·");
        if (n >= 0 && before >= 0 && n != before && a->kind == ART_graph)
            page_cell(p, n > before ? ST_diff_add : ST_diff_del, -6, "%+d", n - before);
        else
            page_cell(p, ST_dim, 6, "%s", "");
        before = a->kind == ART_graph ? n : -1;
        page_add(p, ST_text, " ");
        page_bar(p, ST_bar, c->opt.hide_times ? 0 : (double)a->ns, (double)most, 10);
        page_cell(p, ST_number, -9, "%s", view_time(c, c->arena, (double)a->ns));
        if (a->matches)
            page_add(p, ST_dim, "  %d match%s", a->matches, a->matches == 1 ? "" : "es");
        if (a->file)
            page_add(p, ST_edited, "  %s", a->file);
        put_note(p, a->note);
    }
    const Unit *bad = unit_to_blame(u);
    if (bad) {
        DocLine *l = page_line(p);
        l->sign = "!";
        l->sign_style = ST_bad;
        page_add(p, ST_bad, "%s: %s", stage_info[bad->failed].name, diag_first(&bad->diag));
    }
    return true;
}

static void passes_title(ViewCtx *c, Buf *left, Buf *right) {
    const Unit *u = pipeline_unit(session_pipeline(c->session), c->unit);
    int changed = 0;
    for (int i = 0; i < unit_n_steps(u); i++)
        changed += unit_step(u, i)->changed;
    buf_printf(left, "passes · %s", u->kind);
    buf_printf(right, "%d steps, %d changed something", unit_n_steps(u), changed);
}

const View view_passes = {
    .name = "passes",
    .doc = "every step of the compilation: what it changed, how long it took",
    .stage = -1,
    .open = passes_open,
    .count = page_count,
    .line = page_line_of,
    .title = passes_title,
    .node = page_node,
    .enter = page_enter,
    .start = page_start,
};
