// pipeline.c: the tree of artifacts: units of a model, building up to a stage, dropping from one.
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
    a->ns = clock_ns() - start_ns;
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

// Folder name of a unit: the file's own, or the one that PyTorch gives to the i-th compiled graph
// of a run without training (model number, graph number and folder counter grow together).
static void name_unit(Pipeline *p, Unit *u) {
    const LoadedGraph *g = u->loaded;
    u->kind = g->kind && *g->kind ? g->kind : "inference";
    if (g->folder) {
        u->name = g->folder;
        u->number = g->number;
        u->nth = g->nth;
        u->counter = g->counter;
        return;
    }
    u->number = u->nth = u->counter = u->index;
    u->name = arena_printf(&p->arena, "model__%d_%s_%d.%d", u->number, u->kind, u->nth, u->counter);
}

// A dump folder holds the same graph before and after the post-grad passes, a log the captured
// graph and what AOTAutograd made of it: the earliest is opened.
static bool is_duplicate(const LoadedModel *m, int i) {
    const LoadedGraph *g = &m->graphs.at[i];
    for (int k = 0; k < m->graphs.n; k++) {
        const LoadedGraph *o = &m->graphs.at[k];
        bool same_folder = g->folder && o->folder && !strcmp(g->folder, o->folder);
        bool captured = !g->folder && !o->folder && o->level == LEVEL_torch;
        if (k != i && (same_folder || captured) && o->level < g->level)
            return true;
    }
    return false;
}

Pipeline *pipeline_new(const LoadedModel *model, const PipelineOptions *options) {
    Arena arena = {0};
    Pipeline *p = ARENA_NEW(&arena, Pipeline);
    p->arena = arena;
    p->model = model;
    p->options = *options;
    for (int i = 0; i < model->graphs.n; i++) {
        if (is_duplicate(model, i))
            continue;
        Unit *u = ARENA_NEW(&p->arena, Unit);
        u->index = p->units.n;
        u->loaded = &model->graphs.at[i];
        u->failed = STAGE_count;
        u->diag.arena = &p->arena;
        u->decisions = decisions_new(&p->arena, options->overrides);
        name_unit(p, u);
        vec_push(&p->arena, &p->units, u);
    }
    return p;
}

void pipeline_free(Pipeline *p) {
    for (int i = 0; i < p->units.n; i++)
        for (int k = 0; k < p->units.at[i]->steps.n; k++)
            artifact_drop(p->units.at[i]->steps.at[k]);
    Arena arena = p->arena;
    arena_free(&arena);
}

void pipeline_set_options(Pipeline *p, const PipelineOptions *options) {
    p->options = *options;
}

Sym *pipeline_sym(const Pipeline *p) {
    return p->model->sym;
}

int pipeline_n_units(const Pipeline *p) {
    return p->units.n;
}

Unit *pipeline_unit(const Pipeline *p, int i) {
    return p->units.at[i];
}

const Graph *unit_last_graph(const Pipeline *p, int unit) {
    const Artifact *a = unit_graph_before(p->units.at[unit], STAGE_pre_fusion);
    return a ? a->graph : NULL;
}

StageId pipeline_first_stage(const Pipeline *p, int unit) {
    return stage_of_level(p->units.at[unit]->loaded->level);
}

const Artifact *pipeline_at(const Pipeline *p, int unit, StageId stage) {
    return unit_at(p->units.at[unit], stage);
}

const Artifact *pipeline_build(Pipeline *p, int unit, StageId stage) {
    Unit *u = p->units.at[unit];
    StageId first = pipeline_first_stage(p, unit);
    if (stage < first && stage != STAGE_source)
        return NULL;
    for (int s = STAGE_source; s <= (int)stage && s < (int)u->failed; s++) {
        bool exists = s == STAGE_source ? p->model->source != NULL : s >= (int)first;
        if (!exists || stage_info[s].kind == ART_none || unit_at(u, (StageId)s))
            continue;
        decisions_set_stage(u->decisions, s);
        if (!build_stage(p, u, (StageId)s)) {
            u->failed = (StageId)s;
            break;
        }
    }
    return unit_at(u, stage);
}

// The log holds the decisions of dropped stages, so it starts anew; what the earlier stages decided
// is asked again when they are built again, and their artifacts do not depend on the log.
static void drop_unit_from(Pipeline *p, Unit *u, StageId stage) {
    int keep = 0;
    for (int i = 0; i < u->steps.n; i++) {
        Artifact *a = u->steps.at[i];
        if (a->stage >= stage)
            artifact_drop(a);
        else
            u->steps.at[keep++] = a;
    }
    u->steps.n = keep;
    if (u->failed >= stage) {
        u->failed = STAGE_count;
        u->diag = (Diag){.arena = &p->arena};
    }
    decisions_truncate(u->decisions, stage);
}

void pipeline_drop_from(Pipeline *p, StageId stage) {
    for (int i = 0; i < p->units.n; i++)
        drop_unit_from(p, p->units.at[i], stage);
    sym_drop_guards_from(p->model->sym, stage);
}
