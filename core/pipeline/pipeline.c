// pipeline.c: the tree of artifacts: units of a model, building up to a stage, dropping from one.
#include "core/base/work.h"
#include "core/pipeline/internal.h"

#include <string.h>

#include "core/base/file.h"

const StageInfo stage_info[STAGE_count] = {
#define STAGE(id, ...) [STAGE_##id] = {#id, __VA_ARGS__},
#include "core/pipeline/stages.def"
#undef STAGE
};

int stage_find(const char *name) {
    int found = -1;
    size_t len = strlen(name);
    for (int i = 0; i < STAGE_count; i++) {
        if (!strcmp(name, stage_info[i].name) || !strcmp(name, stage_info[i].brief))
            return i;
        if (len && !strncmp(name, stage_info[i].name, len))
            found = found < 0 ? i : STAGE_count;
    }
    return found == STAGE_count ? -1 : found;
}

Artifact *artifact_new(Pipeline *p, StageId stage, const char *pass, ArtifactKind kind) {
    Arena arena = {0};
    Artifact *a = ARENA_NEW(&arena, Artifact);
    a->arena = arena;
    a->id = p->next_id++;
    a->stage = stage;
    a->pass = pass;
    a->kind = kind;
    a->changed = true;
    return a;
}

void artifact_set_graph(Artifact *a, const Graph *g) {
    a->graph = g;
    a->n_items = g->by_id.n;
}

void artifact_drop(Artifact *a) {
    Arena arena = a->arena; // the artifact itself lies in it
    arena_free(&arena);
}

const char *artifact_title(const Artifact *a) {
    return a->pass ? a->pass : stage_info[a->stage].name;
}

void unit_add(Pipeline *p, Unit *u, Artifact *a, int64_t start_ns) {
    a->end_ns = clock_ns();
    a->ns = a->end_ns - start_ns;
    rewrites_close(u, a);
    vec_push(&p->arena, &u->steps, a);
}

Artifact *unit_at(const Unit *u, StageId stage) {
    for (int i = u->steps.n - 1; i >= 0; i--)
        if (u->steps.at[i]->stage == stage)
            return u->steps.at[i];
    return NULL;
}

const Artifact *unit_graph_before(const Unit *u, StageId stage) {
    for (int i = u->steps.n - 1; i >= 0; i--) {
        const Artifact *a = u->steps.at[i];
        // The functional graph is a side view: the trace starts again from the fx graph.
        if (a->stage < stage && a->kind == ART_graph && a->stage != STAGE_functional)
            return a;
    }
    return NULL;
}

const Artifact *unit_traced(const Unit *u) {
    for (int i = u->steps.n - 1; i >= 0; i--)
        if (u->steps.at[i]->stage == STAGE_functional && u->steps.at[i]->pass)
            return u->steps.at[i];
    return unit_at(u, STAGE_fx);
}

static StageId stage_of_level(GraphLevel level) {
    static const StageId of[] = {
        [LEVEL_torch] = STAGE_fx,
        [LEVEL_export] = STAGE_fx,
        [LEVEL_aot] = STAGE_joint,
        [LEVEL_compiler] = STAGE_partition,
        [LEVEL_post_grad] = STAGE_post_grad,
    };
    return of[level];
}

PipelineOptions pipeline_options_default(void) {
    return (PipelineOptions){.grad = GRAD_auto,
                             .config = inductor_config_default(),
                             .partition = partition_config_default,
                             .partitioner = PARTITION_min_cut,
                             .repro_level = 2};
}

Pipeline *pipeline_new(const LoadedModel *model, const PipelineOptions *options) {
    Arena arena = {0};
    Pipeline *p = ARENA_NEW(&arena, Pipeline);
    p->arena = arena;
    p->model = model;
    p->options = *options;
    tree_make(p);
    return p;
}

static void drop_all(Pipeline *p) {
    states_drop(p);
    p->generation++;
    for (int i = 0; i < p->units.n; i++)
        for (int k = 0; k < p->units.at[i]->steps.n; k++)
            artifact_drop(p->units.at[i]->steps.at[k]);
}

void pipeline_free(Pipeline *p) {
    drop_all(p);
    Arena arena = p->arena;
    arena_free(&arena);
}

void pipeline_set_options(Pipeline *p, const PipelineOptions *options) {
    bool same_tree = p->options.grad == options->grad &&
                     p->options.aliases_version == options->aliases_version;
    p->options = *options;
    if (same_tree)
        return;
    drop_all(p);
    tree_make(p);
}

Sym *pipeline_sym(const Pipeline *p) {
    return p->model->sym;
}

uint64_t pipeline_generation(const Pipeline *p) {
    return p->generation;
}

// The address is compared before anything is read through it.
bool pipeline_has(const Pipeline *p, const Artifact *a, int id) {
    for (int i = 0; i < p->units.n; i++)
        for (int k = 0; k < p->units.at[i]->steps.n; k++)
            if (p->units.at[i]->steps.at[k] == a)
                return a->id == id;
    for (int i = 0; i < p->states.n; i++)
        if (p->states.at[i].art == a)
            return a->id == id;
    return false;
}

int pipeline_n_units(const Pipeline *p) {
    return p->units.n;
}

Unit *pipeline_unit(const Pipeline *p, int i) {
    return p->units.at[i];
}

const char *pipeline_unit_label(const Pipeline *p, int unit) {
    const Unit *u = p->units.at[unit];
    int roots = 0;
    for (int i = 0; i < p->units.n; i++)
        roots += !p->units.at[i]->parent;
    return p->units.n == 1 ? NULL : roots == 1 && u->parent ? u->kind : u->name;
}

int unit_n_steps(const Unit *u) {
    return (u->parent ? u->parent->steps.n : 0) + u->steps.n;
}

Artifact *unit_step(const Unit *u, int i) {
    int before = u->parent ? u->parent->steps.n : 0;
    return i < before ? u->parent->steps.at[i] : u->steps.at[i - before];
}

const Unit *unit_to_blame(const Unit *u) {
    if (u->failed == STAGE_count && u->parent)
        u = u->parent;
    return u->failed == STAGE_count ? NULL : u;
}

Unit *pipeline_owner(const Pipeline *p, int unit, StageId stage) {
    Unit *u = p->units.at[unit];
    return u->parent && stage < STAGE_partition ? u->parent : u;
}

const Graph *unit_last_graph(const Pipeline *p, int unit) {
    const Unit *u = p->units.at[unit];
    const Artifact *a = unit_graph_before(u, STAGE_pre_fusion);
    if (!a && u->parent)
        a = unit_graph_before(u->parent, STAGE_pre_fusion);
    return a ? a->graph : NULL;
}

StageId pipeline_first_stage(const Pipeline *p, int unit) {
    return stage_of_level(p->units.at[unit]->loaded->level);
}

const Artifact *pipeline_at(const Pipeline *p, int unit, StageId stage) {
    return unit_at(pipeline_owner(p, unit, stage), stage);
}

// What a stage costs beside the others, as measured on graphs of 30,000 nodes: for telling how long
// it will take.
static const int cost[STAGE_count] = {
    [STAGE_functional] = 10, [STAGE_joint] = 20,      [STAGE_joint_passes] = 9,
    [STAGE_partition] = 8,   [STAGE_post_grad] = 14,  [STAGE_pre_fusion] = 35,
    [STAGE_post_fusion] = 35, [STAGE_kernels] = 25,
};

static bool has_to_be_built(const Pipeline *p, const Unit *u, int s) {
    bool exists = s == STAGE_source ? p->model->source != NULL
                                    : s >= (int)pipeline_first_stage(p, u->index);
    return exists && stage_info[s].kind != ART_none && !unit_at(u, (StageId)s);
}

static int cost_of(const Pipeline *p, const Unit *u, StageId from, StageId to) {
    int sum = 0;
    for (int s = (int)from; s <= (int)to && s < (int)u->failed; s++)
        if (has_to_be_built(p, u, s))
            sum += cost[s];
    return sum;
}

static void drop_unit_from(Pipeline *p, Unit *u, StageId stage);

// A stage that was stopped in the middle has not failed: it is as if it had not been begun.
static void forget_stopped(Pipeline *p, Unit *u, StageId stage) {
    u->failed = stage;
    if (u->forward && stage == STAGE_partition) {
        drop_unit_from(p, u->forward, stage);
        drop_unit_from(p, u->backward, stage);
    }
    drop_unit_from(p, u, stage);
}

// done of total: what was built of a longer walk, by cost; done is moved on. False: no further.
static bool build_to(Pipeline *p, Unit *u, StageId from, StageId to, int *done, int total) {
    for (int s = (int)from; s <= (int)to && s < (int)u->failed; s++) {
        if (!has_to_be_built(p, u, s))
            continue;
        WorkPart part = work_enter(stage_info[s].name, (double)*done / (total + 1),
                                   (double)(*done + cost[s]) / (total + 1));
        decisions_set_stage(u->decisions, s);
        if (p->options.on_step)
            p->options.on_step(p->options.step_ctx, (StageId)s, NULL);
        bool ok = work_goes_on(NULL, 0, 1) && build_stage(p, u, (StageId)s);
        work_leave(part);
        *done += cost[s];
        if (work_stopped()) {
            forget_stopped(p, u, (StageId)s);
            return false;
        }
        if (!ok)
            u->failed = (StageId)s;
    }
    return true;
}

const Artifact *pipeline_build(Pipeline *p, int unit, StageId stage) {
    Unit *u = pipeline_owner(p, unit, stage);
    if (stage < pipeline_first_stage(p, unit) && stage != STAGE_source)
        return NULL;
    int done = 0;
    if (!u->parent) {
        StageId to = u->forward && stage > STAGE_partition ? STAGE_partition : stage;
        build_to(p, u, STAGE_source, to, &done, cost_of(p, u, STAGE_source, to));
        return u->failed <= stage ? NULL : unit_at(u, stage);
    }
    int total = cost_of(p, u->parent, STAGE_source, STAGE_partition) +
                cost_of(p, u, STAGE_post_grad, stage);
    if (build_to(p, u->parent, STAGE_source, STAGE_partition, &done, total) && u->steps.n)
        build_to(p, u, STAGE_post_grad, stage, &done, total);
    return u->failed <= stage ? NULL : unit_at(u, stage);
}

// The log holds the decisions of dropped stages, so it starts anew; what the earlier stages decided
// is asked again when they are built again, and their artifacts do not depend on the log.
static void drop_unit_from(Pipeline *p, Unit *u, StageId stage) {
    int keep = 0;
    for (int i = 0; i < u->steps.n; i++) {
        Artifact *a = u->steps.at[i];
        if (a->stage >= stage) {
            artifact_drop(a);
            p->generation++;
        } else {
            u->steps.at[keep++] = a;
        }
    }
    u->steps.n = keep;
    if (u->failed >= stage) {
        u->failed = STAGE_count;
        u->diag = (Diag){.arena = &p->arena};
    }
    decisions_truncate(u->decisions, stage);
}

void pipeline_drop_from(Pipeline *p, StageId stage) {
    states_drop(p);
    for (int i = 0; i < p->units.n; i++)
        drop_unit_from(p, p->units.at[i], stage);
    sym_drop_guards_from(p->model->sym, stage);
}
