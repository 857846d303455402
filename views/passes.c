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

static int64_t slowest(const Unit *u) {
    int64_t most = 1;
    for (int i = 0; i < u->steps.n; i++)
        most = u->steps.at[i]->ns > most ? u->steps.at[i]->ns : most;
    return most;
}

static void size_cells(Page *p, const Artifact *a, int before) {
    int n = size_of(a);
    if (n >= 0)
        page_cell(p, ST_number, -6, "%d", n);
    else
        page_cell(p, ST_dim, -6, "·");
    if (n >= 0 && before >= 0 && n != before && a->kind == ART_graph)
        page_cell(p, n > before ? ST_diff_add : ST_diff_del, -6, "%+d", n - before);
    else
        page_cell(p, ST_dim, 6, "%s", "");
}

static void step_line(ViewCtx *c, Page *p, const Unit *u, int i, int before, int64_t most) {
    const Artifact *a = unit_step(u, i);
    DocLine *l = page_line(p);
    l->sign = a->changed ? "▪" : "·";
    l->sign_style = a->changed ? ST_link_part : ST_dim;
    l->enter = arena_printf(c->arena, "graph %d ; diff #%d #%d", u->index, i > 0 ? i : 1, i + 1);
    l->node = arena_printf(c->arena, "step %d, %s%s%s.  Enter: what it changed", i + 1,
                           artifact_title(a), a->changed ? "" : " changed nothing",
                           a->partition ? ": it is parted in forward and backward" : "");
    page_cell(p, a->changed ? ST_text : ST_dim, 34, "%s",
              a->pass        ? a->pass
              : a->partition ? "parted in forward and backward"
                             : stage_info[a->stage].doc);
    size_cells(p, a, before);
    page_add(p, ST_text, " ");
    page_bar(p, ST_bar, c->opt.hide_times ? 0 : (double)a->ns, (double)most, 10);
    page_cell(p, ST_number, -9, "%s", view_time(c, c->arena, (double)a->ns));
    if (a->matches)
        page_add(p, ST_dim, "  %d match%s", a->matches, a->matches == 1 ? "" : "es");
    if (a->partition)
        page_add(p, ST_dim, "  %d + %d", a->partition->forward->n_nodes,
                 a->partition->backward->n_nodes);
    if (a->file)
        page_add(p, ST_edited, "  %s", a->file);
    put_note(p, a->note);
}

// The steps of a unit from one on. What a graph before had, a half of it does not lose by a pass.
static void step_lines(ViewCtx *c, Page *p, const Unit *u, int from, int64_t most) {
    int before = -1;
    StageId stage = STAGE_count;
    for (int i = from; i < unit_n_steps(u); i++) {
        const Artifact *a = unit_step(u, i);
        if (a->stage != stage)
            page_section(p, "%c %s%s%s", stage_info[a->stage].key, stage_info[a->stage].name,
                         from ? " · " : "", from ? u->kind : "");
        stage = a->stage;
        bool half = u->parent && a->stage == STAGE_partition;
        step_line(c, p, u, i, half ? -1 : before, most);
        before = a->kind == ART_graph ? size_of(a) : -1;
    }
    const Unit *bad = unit_to_blame(u);
    if (bad) {
        DocLine *l = page_line(p);
        l->sign = "!";
        l->sign_style = ST_bad;
        page_add(p, ST_bad, "%s: %s", stage_info[bad->failed].name, diag_first(&bad->diag));
    }
}

// Of a joint graph the steps of its halves follow.
static bool passes_open(ViewCtx *c, Buf *why) {
    Pipeline *pl = session_pipeline(c->session);
    (void)why;
    pipeline_build(pl, c->unit, STAGE_kernels);
    const Unit *u = pipeline_unit(pl, c->unit);
    const Unit *halves[] = {u->forward, u->backward};
    Page *p = page_new(c);
    int64_t most = slowest(u);
    if (u->parent && slowest(u->parent) > most)
        most = slowest(u->parent);
    for (int i = 0; i < COUNT(halves); i++)
        if (halves[i]) {
            pipeline_build(pl, halves[i]->index, STAGE_kernels);
            most = slowest(halves[i]) > most ? slowest(halves[i]) : most;
        }
    step_lines(c, p, u, 0, most);
    for (int i = 0; i < COUNT(halves); i++)
        if (halves[i] && halves[i]->steps.n)
            step_lines(c, p, halves[i], unit_n_steps(halves[i]) - halves[i]->steps.n, most);
    return true;
}

static void count_steps(const Unit *u, int *all, int *changed) {
    for (int i = 0; u && i < u->steps.n; i++) {
        ++*all;
        *changed += u->steps.at[i]->changed;
    }
}

static void passes_title(ViewCtx *c, Buf *left, Buf *right) {
    const Unit *u = pipeline_unit(session_pipeline(c->session), c->unit);
    int all = 0, changed = 0;
    count_steps(u, &all, &changed);
    count_steps(u->parent, &all, &changed);
    count_steps(u->forward, &all, &changed);
    count_steps(u->backward, &all, &changed);
    buf_printf(left, "passes · %s%s", u->kind, u->forward ? ", forward, backward" : "");
    buf_printf(right, "%d steps, %d changed something", all, changed);
}

// The step that is shown.
static int passes_start(ViewCtx *c) {
    const Page *p = c->doc;
    const Unit *u = pipeline_unit(session_pipeline(c->session), c->unit);
    int step = 0;
    for (int i = 0; i < unit_n_steps(u); i++)
        if (unit_step(u, i) == c->art)
            step = i + 1;
    const char *end = arena_printf(c->tmp, " #%d", step);
    for (int i = 0; i < p->lines.n && step; i++) {
        const char *line = p->lines.at[i].enter, *hash = line ? strrchr(line, ' ') : NULL;
        if (hash && !strcmp(hash, end))
            return i;
    }
    return page_start(c);
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
    .start = passes_start,
};
