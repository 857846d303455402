// launch.c: bytes and times of the calls of a compiled graph. See launch.h.
#include "views/launch.h"

#include <string.h>

int launch_call_of(const CModule *code, int node) {
    for (int i = 0; i < code->calls.n; i++)
        for (int k = 0; k < code->calls.at[i].nodes.n; k++)
            if (code->calls.at[i].nodes.at[k] == node)
                return i;
    return -1;
}

static bool makes(const SchedNode *n, int op) {
    for (int k = 0; k < n->snodes.n; k++)
        if (n->snodes.at[k]->op && n->snodes.at[k]->op->number == op)
            return true;
    return n->op && n->op->number == op;
}

int launch_of_item(const ViewCtx *c, int unit, const Artifact *art, int item) {
    Pipeline *p = session_pipeline(c->session);
    const Artifact *post = pipeline_at(p, unit, STAGE_post_fusion),
                   *code = pipeline_at(p, unit, STAGE_kernels);
    Link *links = NULL;
    if (!post || !code || !pipeline_links(p, art, item, post, c->tmp, &links) ||
        links[0].strength < LINK_part)
        return -1;
    for (int i = 0; i < post->schedule->nodes.n; i++)
        if (makes(post->schedule->nodes.at[i], links[0].item))
            return launch_call_of(code->code, i);
    return -1;
}

static int64_t bytes_of_node(const Schedule *s, const SchedNode *n) {
    Sym *sym = s->module->sym;
    int64_t bytes = 0;
    for (int i = 0; i < n->reads.n; i++) {
        const Dep *d = &n->reads.at[i];
        bool again = false;
        for (int k = 0; k < i && !again; k++)
            again = !strcmp(n->reads.at[k].buf, d->buf);
        if (!again && d->kind != DEP_weak && d->ir)
            bytes += bytes_of_layout(sym, d->ir->layout);
    }
    for (int i = 0; i < n->outputs.n; i++)
        bytes += bytes_of_layout(sym, n->outputs.at[i]->ir->layout);
    return bytes;
}

int64_t launch_bytes(const Schedule *s, const CModule *code, int call) {
    if (call < 0)
        return 0;
    const CCall *at = &code->calls.at[call];
    int64_t bytes = 0;
    if (at->kernel >= 0)
        return code->kernels.at[at->kernel].bytes;
    for (int i = 0; i < at->nodes.n; i++)
        bytes += bytes_of_node(s, s->nodes.at[at->nodes.at[i]]);
    return bytes;
}

static double flops_of_node(const Schedule *s, const SchedNode *n) {
    double flops = 0;
    const Graph *g = s->module->graph;
    for (int i = 0; n->op && g && i < n->op->origins.n; i++) {
        int id = n->op->origins.at[i];
        const Node *x = id >= 0 && id < g->by_id.n ? graph_by_id(g, id) : NULL;
        if (x && x->op == FX_call_function && x->val.kind != VAL_none)
            flops += session_flops(x);
    }
    return flops;
}

double launch_flops(const Schedule *s, const CModule *code, int call) {
    const CCall *at = &code->calls.at[call];
    double flops = 0;
    if (at->kernel >= 0)
        return (double)code->kernels.at[at->kernel].flops;
    for (int i = 0; i < at->nodes.n; i++)
        flops += flops_of_node(s, s->nodes.at[at->nodes.at[i]]);
    return flops;
}

const RunRow *launch_training_run(Session *s, const RunLog *runs, const Unit *joint) {
    const RunRow *run = NULL;
    for (int i = 0; runs && i < runs->rows.n; i++) {
        const RunRow *r = &runs->rows.at[i];
        const Unit *u = r->unit < pipeline_n_units(session_pipeline(s))
                            ? pipeline_unit(session_pipeline(s), r->unit)
                            : NULL;
        if (u != joint || r->backend != BACKEND_full)
            continue;
        const Artifact *code =
            pipeline_at(session_pipeline(s), joint->forward->index, STAGE_kernels);
        if (code && code->id == r->code_id && (!run || i == runs->last))
            run = r;
    }
    return run;
}

const RunRow *launch_run(const ViewCtx *c, int unit) {
    const Artifact *code = pipeline_at(session_pipeline(c->session), unit, STAGE_kernels);
    const RunRow *run = NULL;
    for (int i = 0; code && c->runs && i < c->runs->rows.n; i++) {
        const RunRow *r = &c->runs->rows.at[i];
        if (r->unit == unit && r->backend == BACKEND_full && r->timing.n_kernels &&
            r->code_id == code->id && (!run || i == c->runs->last))
            run = r;
    }
    return run;
}

double launch_ns(const RunRow *run, const CModule *code, int call) {
    if (!run || call < 0 || run->timing.n_kernels != code->calls.n)
        return -1;
    return (double)run->timing.kernels[call].median_ns;
}

double launch_most_ns(const RunRow *run) {
    double most = 0;
    for (int i = 0; i < run->timing.n_kernels; i++)
        if ((double)run->timing.kernels[i].median_ns > most)
            most = (double)run->timing.kernels[i].median_ns;
    return most;
}

double launch_total_ns(const RunRow *run) {
    double total = 0;
    for (int i = 0; i < run->timing.n_kernels; i++)
        total += (double)run->timing.kernels[i].median_ns;
    return total;
}

double launch_share(const ViewCtx *c, int64_t bytes, double ns) {
    if (!c->runs || c->runs->bytes_per_s <= 0 || bytes <= 0 || ns <= 0)
        return 0;
    return (double)bytes / (ns * 1e-9) / c->runs->bytes_per_s;
}
