// overview_facts.c: what stands beside the funnel of the first screen: how many ops some nodes
// became, fusions, memory, time, decisions, guards.
#include "views/overview.h"

static const Artifact *at(ViewCtx *c, int unit, int stage) {
    return pipeline_at(session_pipeline(c->session), unit, (StageId)stage);
}

static void add_fact(ViewCtx *c, Facts *d, const char *text) {
    vec_push(c->arena, d, text);
}

enum { NARROW = 96, FACT_COLS = 24 }; // screens with so little room beside the bars

// Which nodes of the captured graph became how many ops: layer_norm→9.
static void decomposition_facts(ViewCtx *c, Facts *d, int unit) {
    const Artifact *fx = at(c, unit, STAGE_fx), *joint = at(c, unit, STAGE_joint);
    Buf b = {.arena = c->arena};
    int shown = 0;
    if (!fx || !joint || fx->kind != ART_graph || joint->kind != ART_graph)
        return;
    for (const Node *n = fx->graph->first; n && shown < 4; n = n->next) {
        Link *links = NULL;
        if (n->op == FX_placeholder || n->op == FX_output)
            continue;
        int count = pipeline_links(session_pipeline(c->session), fx, n->id, joint, c->tmp, &links);
        if (count <= 2)
            continue;
        const char *one = arena_printf(c->arena, "%s%s→%d", shown ? "  " : "", n->name, count);
        int columns = utf8_columns(buf_str(&b)) + utf8_columns(one);
        if (shown++ && c->opt.cols < NARROW && columns > FACT_COLS)
            break;
        buf_puts(&b, one);
    }
    if (shown)
        add_fact(c, d, buf_str(&b));
}

static void saved_fact(ViewCtx *c, Facts *d, const Artifact *parted) {
    const PartitionResult *r = parted ? parted->partition : NULL;
    const char *bytes = r ? text_bytes(c->arena, r->saved_bytes) : "";
    if (r)
        add_fact(c, d, arena_printf(c->arena, "%d saved for backward, %s", r->n_saved, bytes));
}

static int64_t own_time(const Unit *u) {
    int64_t ns = 0;
    for (int i = 0; i < u->steps.n; i++)
        ns += u->steps.at[i]->ns;
    return ns;
}

void overview_facts(ViewCtx *c, int unit, Facts *d) {
    const Artifact *post = at(c, unit, STAGE_post_fusion);
    const Unit *u = pipeline_unit(session_pipeline(c->session), unit);
    bool narrow = c->opt.cols < NARROW;
    Arena *a = c->arena;
    decomposition_facts(c, d, unit);
    if (post) {
        int fused = 0, refused = 0;
        for (int i = 0; i < post->schedule->attempts.n; i++)
            *(post->schedule->attempts.at[i].fused ? &fused : &refused) += 1;
        add_fact(c, d,
                 arena_printf(a, "%d fusion%s  %d pair%s refused", fused, fused == 1 ? "" : "s",
                              refused, refused == 1 ? "" : "s"));
        const MemoryPlan *plan = post->plan;
        if (plan && plan->peak_unplanned > 0)
            add_fact(c, d, arena_printf(a, "peak %s, %s%s%s", text_bytes(a, plan->peak_planned),
                                        narrow ? "was " : "", text_bytes(a, plan->peak_unplanned),
                                        narrow ? "" : " before planning"));
    }
    if (u->forward)
        saved_fact(c, d, at(c, unit, STAGE_partition));
    int64_t ns = own_time(u) + (u->forward ? own_time(u->forward) + own_time(u->backward) : 0);
    add_fact(c, d, arena_printf(a, "pipeline %s", view_time(c, a, (double)ns)));
    if (u->decisions && decisions_count(u->decisions))
        add_fact(c, d, arena_printf(a, "%d decisions on record", decisions_count(u->decisions)));
    const SymGuard *guards;
    int n = sym_guards(pipeline_sym(session_pipeline(c->session)), &guards);
    if (n)
        add_fact(c, d, arena_printf(c->arena, "%d guard%s on shapes", n, n == 1 ? "" : "s"));
}
