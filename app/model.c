// model.c: the session through the screen's eyes: counts for the rail, names and neighbours of
// items.
#include "app/model.h"

#include "views/brief.h"
#include "core/base/work.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int model_units(Session *s) {
    return pipeline_n_units(session_pipeline(s));
}

static Unit *unit_at(Session *s, int unit) {
    if (unit < 0 || unit >= model_units(s))
        return NULL;
    return pipeline_unit(session_pipeline(s), unit);
}

int model_unit_for(Session *s, int unit, int stage) {
    const Unit *u = unit_at(s, unit);
    return u && u->forward && stage > STAGE_partition ? u->forward->index : unit;
}

static int count_of(const Artifact *a) {
    switch (a->kind) {
    case ART_graph:
        return graph_ops(a->graph);
    case ART_schedule:
        return a->schedule->nodes.n;
    case ART_code:
        return a->code->kernels.n;
    case ART_text:
        return a->n_items;
    case ART_none:
        break;
    }
    return -1;
}

StageState stage_state(Session *s, int unit, int stage) {
    StageState state = {.count = -1};
    Unit *u = unit_at(s, unit);
    if (!u || stage_info[stage].kind == ART_none) {
        state.never = true;
        return state;
    }
    const Unit *bad = unit_to_blame(u);
    state.failed = bad && stage >= (int)bad->failed;
    state.never =
        (stage != STAGE_source && stage < (int)pipeline_first_stage(session_pipeline(s), unit)) ||
        (u->forward && stage > STAGE_partition);
    const Artifact *a = pipeline_at(session_pipeline(s), unit, (StageId)stage);
    if (!a)
        return state;
    state.there = true;
    state.count = count_of(a);
    for (int i = 0; i < unit_n_steps(u); i++)
        state.changed |= (int)unit_step(u, i)->stage == stage && unit_step(u, i)->changed;
    return state;
}

void model_unit_error(Session *s, int unit, Diag *d) {
    const Unit *bad = unit_to_blame(unit_at(s, unit));
    for (int i = 0; bad && i < bad->diag.n; i++) {
        const DiagItem *item = &bad->diag.at[i];
        if (item->kind != DIAG_error)
            continue;
        DiagItem *copy = diag_error(d, (Place){item->file, item->line, item->col, item->source},
                                    "%s", item->text);
        copy->hint = item->hint;
        copy->cause = item->cause;
        return;
    }
    diag_fail(d, "the stage could not be built");
}

const Artifact *model_artifact(Session *s, int unit, int stage, Diag *d) {
    Unit *u = unit_at(s, unit);
    if (!u) {
        diag_fail(d, "no graph %d: the model has %d", unit, model_units(s));
        return NULL;
    }
    if (stage_info[stage].kind == ART_none) {
        diag_fail(d, "stage %s has no artifact here", stage_info[stage].name);
        return NULL;
    }
    const Artifact *a = pipeline_build(session_pipeline(s), unit, (StageId)stage);
    if (!a && work_stopped())
        diag_fail(d, "stopped")->hint = "the stage's key begins anew";
    else if (!a && stage < (int)pipeline_first_stage(session_pipeline(s), unit))
        diag_fail(d, "this form of model begins at %s: it has no %s",
                  stage_info[pipeline_first_stage(session_pipeline(s), unit)].name,
                  stage_info[stage].name);
    else if (!a && !unit_to_blame(u) && u->forward)
        diag_fail(d,
                  "a joint graph ends at partition: graph %d is its forward, graph %d its backward",
                  u->forward->index, u->backward->index);
    else if (!a)
        model_unit_error(s, unit, d);
    return a;
}

const Artifact *model_step(Session *s, int unit, int step) {
    Unit *u = unit_at(s, unit);
    return u && step >= 0 && step < unit_n_steps(u) ? unit_step(u, step) : NULL;
}

int model_step_of(Session *s, int unit, const Artifact *art) {
    Unit *u = unit_at(s, unit);
    int k;
    const Artifact *of = art ? pipeline_state_of(session_pipeline(s), art, &k) : NULL;
    art = of ? of : art;
    for (int i = 0; u && art && i < unit_n_steps(u); i++)
        if (unit_step(u, i) == art)
            return i;
    return -1;
}

uint64_t model_version(Session *s) {
    uint64_t v = overrides_version(session_overrides(s));
    for (int i = 0; i < model_units(s); i++) {
        Unit *u = unit_at(s, i);
        v = hash_mix(v, (uint64_t)u->steps.n);
        if (u->steps.n)
            v = hash_mix(v, (uint64_t)vec_last(&u->steps)->id);
    }
    return v;
}

// Decisions that were overridden, and settings that are not as they begin; --grad is no change.
static int changes_of(Session *s) {
    Arena tmp = {0};
    int n = overrides_count(session_overrides(s));
    for (int i = 0; i < settings_count(); i++) {
        SettingInfo now = settings_at(s, i, &tmp);
        n += strcmp(now.name, "grad") && strcmp(now.value, settings_at(NULL, i, &tmp).value);
    }
    arena_free(&tmp);
    return n;
}

void model_status(Session *s, Buf *out) {
    buf_printf(out, "%s  %s", session_name(s), backend_info[session_backend(s)].name);
    if (session_backend(s) == BACKEND_full && session_toolchain(s))
        buf_printf(out, "  %s", session_toolchain(s)->name);
    int n = changes_of(s);
    if (n)
        buf_printf(out, "  *%d changed", n);
}

// ---- items ----

int item_count(const Artifact *art) {
    return art ? art->n_items : 0;
}

const char *item_name(const Artifact *art, int item) {
    if (!art || item < 0)
        return "";
    switch (art->kind) {
    case ART_graph: {
        Node *n = item < art->graph->by_id.n ? graph_by_id(art->graph, item) : NULL;
        return n ? n->name : "";
    }
    case ART_schedule: {
        const IrOp *op = ir_op(art->schedule->module, item);
        return op ? op->name : "";
    }
    case ART_code:
        for (int i = 0; i < art->code->kernels.n; i++) {
            const CKernel *k = &art->code->kernels.at[i];
            if (item + 1 >= k->first_line && item + 1 <= k->last_line)
                return k->name;
        }
        return "";
    case ART_text:
    case ART_none:
        break;
    }
    return "";
}

int item_find(const Artifact *art, const char *name) {
    if (!art)
        return -1;
    char *end;
    long line = strtol(name, &end, 10);
    bool is_line = end != name && !*end && line > 0 && line <= art->n_items;
    switch (art->kind) {
    case ART_graph: {
        Node *n = graph_find(art->graph, name);
        return n ? n->id : -1;
    }
    case ART_schedule: {
        const IrModule *m = art->schedule->module;
        for (int i = 0; i < m->ops.n; i++) {
            if (!strcmp(m->ops.at[i]->name, name))
                return m->ops.at[i]->number;
            for (int k = 0; k < m->ops.at[i]->outputs.n; k++)
                if (!strcmp(m->ops.at[i]->outputs.at[k]->name, name))
                    return m->ops.at[i]->number;
        }
        for (int i = 0; i < art->schedule->nodes.n; i++) {
            const SchedNode *n = art->schedule->nodes.at[i];
            if (!strcmp(n->name, name) && n->snodes.n)
                return n->snodes.at[0]->op->number;
        }
        return -1;
    }
    case ART_code:
        for (int i = 0; i < art->code->kernels.n; i++)
            if (!strcmp(art->code->kernels.at[i].name, name))
                return art->code->kernels.at[i].first_line - 1;
        return is_line ? (int)line - 1 : -1;
    case ART_text:
        return is_line ? (int)line - 1 : -1;
    case ART_none:
        break;
    }
    return -1;
}

typedef struct Inputs {
    int id[256];
    int n;
} Inputs;

static void add_input(Node *input, void *ctx) {
    Inputs *in = ctx;
    for (int i = 0; i < in->n; i++)
        if (in->id[i] == input->id)
            return;
    if (in->n < COUNT(in->id))
        in->id[in->n++] = input->id;
}

static void graph_neighbours(const Graph *g, int item, int dir, Inputs *out) {
    Node *n = item < g->by_id.n ? graph_by_id(g, item) : NULL;
    if (!n)
        return;
    if (dir < 0)
        node_each_input(n, add_input, out);
    else
        for (int i = 0; i < n->n_users; i++)
            add_input(n->users[i], out);
}

static const SchedNode *single(const Schedule *s, int number) {
    for (int i = 0; i < s->nodes.n; i++) {
        const SchedNode *n = s->nodes.at[i];
        if (n->op && n->op->number == number)
            return n;
        for (int k = 0; k < n->snodes.n; k++)
            if (n->snodes.at[k]->op && n->snodes.at[k]->op->number == number)
                return n->snodes.at[k];
    }
    return NULL;
}

static void sched_neighbours(const Schedule *s, int number, int dir, Inputs *out) {
    const SchedNode *n = single(s, number);
    if (!n)
        return;
    for (int i = 0; dir < 0 && i < n->reads.n; i++) {
        const SchedBuffer *b = map_get(&s->buffers, n->reads.at[i].buf);
        if (b && b->defining && b->defining->op && out->n < COUNT(out->id))
            out->id[out->n++] = b->defining->op->number;
    }
    for (int i = 0; dir > 0 && i < n->outputs.n; i++)
        for (int k = 0; k < n->outputs.at[i]->users.n; k++) {
            const SchedNode *user = n->outputs.at[i]->users.at[k].node;
            if (user && user->op && out->n < COUNT(out->id))
                out->id[out->n++] = user->op->number;
        }
}

int item_neighbour(const Artifact *art, int item, int dir, int k) {
    Inputs in = {.n = 0};
    if (!art || item < 0)
        return -1;
    if (art->kind == ART_graph)
        graph_neighbours(art->graph, item, dir, &in);
    else if (art->kind == ART_schedule)
        sched_neighbours(art->schedule, item, dir, &in);
    return in.n ? in.id[k % in.n] : -1;
}
