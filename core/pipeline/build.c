// build.c: one function a stage: from the artifact before to the next one, through the stage's own
// module.
#include <string.h>

#include "core/aot/aot.h"
#include "core/base/file.h"
#include "core/pipeline/internal.h"
#include "core/base/work.h"

static int count_lines(const char *text) {
    int n = 0;
    for (const char *c = text; *c; c++)
        n += *c == '\n';
    return n + 1;
}

static bool build_source(Pipeline *p, Unit *u) {
    int64_t start = clock_ns();
    Artifact *a = artifact_new(p, STAGE_source, NULL, ART_text);
    a->text = p->model->source;
    a->n_items = count_lines(a->text);
    unit_add(p, u, a, start);
    return true;
}

// The frame of a stack that lies in the user's own file.
static const StackFrame *frame_in(const StackFrame *f, const char *path) {
    for (; f; f = f->outer)
        if (f->file && !strcmp(path_base(f->file), path_base(path)))
            return f;
    return NULL;
}

static Origins *origins_of_lines(const Pipeline *p, Artifact *a, const Artifact *source) {
    Origins *o = origins_new(&a->arena);
    GRAPH_EACH (a->graph, n) {
        const StackFrame *f =
            frame_in(n->stack, p->model->source_path ? p->model->source_path : "");
        if (f && f->line > 0 && f->line <= source->n_items)
            origins_add(o, n->id, f->line - 1, LINK_part);
    }
    return o;
}

// The graph that the file holds enters the chain at the stage of its level.
static bool build_loaded(Pipeline *p, Unit *u, StageId stage) {
    int64_t start = clock_ns();
    if (!graph_check_sizes(u->loaded->graph, &u->diag))
        return false;
    Artifact *a = artifact_new(p, stage, NULL, ART_graph);
    artifact_set_graph(a, u->loaded->graph);
    a->parent = unit_at(u, STAGE_source);
    if (a->parent)
        a->origins = origins_of_lines(p, a, a->parent);
    unit_add(p, u, a, start);
    return true;
}

// The table that the setting chose, in the order of its values.
static DecompTable table_chosen(const Pipeline *p) {
    static const DecompTable of[] = {DECOMP_inductor, DECOMP_core_aten, DECOMP_empty};
    return of[p->options.decomposition_table];
}

static bool build_trace(Pipeline *p, Unit *u, StageId stage, DecompTable decomps) {
    int64_t start = clock_ns();
    const Artifact *from = unit_traced(u);
    Artifact *a = artifact_new(p, stage, NULL, ART_graph);
    AotRequest request = {
        .graph = from->graph,
        .unhidden = u->merged ? u->merged->unhidden : NULL,
        .arena = &a->arena,
        .decisions = u->decisions,
        .decomps = decomps,
        .diag = &u->diag,
        .stage = (int)stage,
        .fallback_random = p->options.fallback_random,
        .keep_input_mutations = true,
    };
    AotResult result = aot_trace_inference(&request);
    if (!result.graph || !graph_check_sizes(result.graph, &u->diag)) {
        artifact_drop(a);
        return false;
    }
    artifact_set_graph(a, result.graph);
    a->parent = from;
    a->origins = result.origins;
    a->meta = result.meta;
    a->log = result.log;
    unit_add(p, u, a, start);
    return true;
}

// Kept nodes have kept their ids: they are the same; the pass told about the others.
static Origins *origins_of_pass(Artifact *a, const Graph *before, const Origins *fresh) {
    Origins *o = origins_new(&a->arena);
    GRAPH_EACH (a->graph, n) {
        int count = 0;
        const Link *links = fresh ? origins_from(fresh, n->id, &count) : NULL;
        for (int i = 0; i < count; i++)
            origins_add(o, n->id, links[i].item, links[i].strength);
        if (!count && graph_by_id(before, n->id))
            origins_add(o, n->id, n->id, LINK_same);
    }
    return o;
}

static void add_merge_step(Pipeline *p, Unit *u, const char *name, const Graph *g,
                           const Origins *fresh, int matches) {
    int64_t start = clock_ns();
    const Artifact *from = unit_traced(u);
    if (g == from->graph)
        return;
    Artifact *a = artifact_new(p, STAGE_functional, name, ART_graph);
    artifact_set_graph(a, g);
    a->parent = from;
    a->origins = origins_of_pass(a, from->graph, fresh);
    a->matches = matches;
    unit_add(p, u, a, start);
}

// Inputs that share memory, before anything is traced.
static bool build_merged(Pipeline *p, Unit *u) {
    const MergedInputs *m = u->merged;
    if (!m)
        return true;
    if (m->error) {
        diag_fail(&u->diag, "%s", m->error)->hint =
            "PyTorch refuses it in the same words; eager shows what it would do";
        return false;
    }
    add_merge_step(p, u, "dedupe_inputs", m->deduped, m->deduped_origins, m->n_dropped);
    add_merge_step(p, u, "synthetic_bases", m->graph, m->origins, m->n_bases);
    return true;
}

bool run_pass(Pipeline *p, Unit *u, StageId stage, const GraphPass *pass) {
    int64_t start = clock_ns();
    const Artifact *from = u->steps.at[u->steps.n - 1];
    Artifact *a = artifact_new(p, stage, pass->name, ART_graph);
    PassCtx ctx = {
        .arena = &a->arena,
        .decisions = u->decisions,
        .diag = &u->diag,
        .origins = origins_new(&a->arena),
        .inference = !strcmp(u->kind, "inference"),
    };
    int errors = u->diag.errors;
    if (p->options.on_step)
        p->options.on_step(p->options.step_ctx, stage, pass->name);
    if (!work_goes_on(&u->diag, 0, 1)) {
        artifact_drop(a);
        return false;
    }
    const Graph *g = pass->run(&ctx, from->graph);
    if (!g || u->diag.errors > errors || (g != from->graph && !graph_verify(g, &u->diag))) {
        diag_note(&u->diag, (Place){0}, "in pass %s", pass->name);
        artifact_drop(a);
        return false;
    }
    artifact_set_graph(a, g);
    a->parent = from;
    a->changed = g != from->graph;
    a->matches = ctx.matches;
    if (a->changed)
        a->origins = origins_of_pass(a, from->graph, ctx.origins);
    unit_add(p, u, a, start);
    return true;
}

static bool run_passes(Pipeline *p, Unit *u, StageId stage, const GraphPass *const passes[],
                       int n) {
    if (!custom_passes_after(p, u, stage, ""))
        return false;
    for (int i = 0; i < n; i++) {
        bool kept = p->options.fallback_random && passes[i] == &pass_replace_random;
        WorkPart part = work_enter(NULL, (double)i / n, (i + 1.0) / n);
        bool ok = (kept || run_pass(p, u, stage, passes[i])) &&
                  custom_passes_after(p, u, stage, passes[i]->name);
        work_leave(part);
        if (!ok)
            return false;
    }
    return custom_passes_after(p, u, stage, "*");
}

// Without training there is nothing to part: the compiler gets the graph as the joint passes left
// it.
static bool build_partition(Pipeline *p, Unit *u) {
    int64_t start = clock_ns();
    const Artifact *from = u->steps.at[u->steps.n - 1];
    Artifact *a = artifact_new(p, STAGE_partition, NULL, ART_graph);
    artifact_set_graph(a, from->graph);
    a->parent = from;
    a->changed = false;
    unit_add(p, u, a, start);
    return true;
}

static Origins *origins_of_ops(Artifact *a, const IrModule *m) {
    Origins *o = origins_new(&a->arena);
    for (int i = 0; i < m->ops.n; i++) {
        const IrOp *op = m->ops.at[i];
        for (int k = 0; k < op->origins.n; k++)
            origins_add(o, op->number, op->origins.at[k],
                        op->origins.n == 1 ? LINK_same : LINK_part);
    }
    return o;
}

static ScheduleRequest schedule_request(const Pipeline *p, Unit *u, Artifact *a) {
    return (ScheduleRequest){
        .arena = &a->arena,
        .decisions = u->decisions,
        .diag = &u->diag,
        .config = &p->options.config,
        .stage = (int)a->stage,
        .overrides = p->options.overrides,
        .graph = pipeline_unit_label(p, u->index),
    };
}

// Of a forward's outputs those that are not saved for backward.
static int visible_outputs(const Unit *u) {
    const Artifact *joint =
        u->parent && u->parent->forward == u ? unit_at(u->parent, STAGE_joint) : NULL;
    return joint && joint->meta ? joint->meta->n_mutated + joint->meta->n_outputs : 0;
}

static bool build_pre_fusion(Pipeline *p, Unit *u) {
    int64_t start = clock_ns();
    const Artifact *from = unit_at(u, STAGE_post_grad);
    Artifact *a = artifact_new(p, STAGE_pre_fusion, NULL, ART_schedule);
    LowerRequest lower = {
        .graph = from->graph,
        .arena = &a->arena,
        .decisions = u->decisions,
        .diag = &u->diag,
        .config = &p->options.config,
        .stage = STAGE_pre_fusion,
        .n_visible = visible_outputs(u),
    };
    WorkPart part = work_enter(NULL, 0, 0.7);
    const IrModule *m = inductor_lower(&lower);
    work_leave(part);
    ScheduleRequest request = schedule_request(p, u, a);
    part = work_enter(NULL, 0.7, 1);
    a->schedule = m ? schedule_new(&request, m) : NULL;
    work_leave(part);
    if (!a->schedule) {
        artifact_drop(a);
        return false;
    }
    a->n_items = m->ops.n;
    a->parent = from;
    a->origins = origins_of_ops(a, m);
    unit_add(p, u, a, start);
    return true;
}

static bool build_post_fusion(Pipeline *p, Unit *u) {
    int64_t start = clock_ns();
    const Artifact *from = unit_at(u, STAGE_pre_fusion);
    Artifact *a = artifact_new(p, STAGE_post_fusion, NULL, ART_schedule);
    ScheduleRequest request = schedule_request(p, u, a);
    WorkPart part = work_enter(NULL, 0, 0.7);
    a->schedule = schedule_fuse(&request, from->schedule);
    work_leave(part);
    part = work_enter(NULL, 0.7, 1);
    a->plan = a->schedule ? memory_plan(&request, a->schedule) : NULL;
    work_leave(part);
    if (!a->plan || !memory_plan_verify(a->plan, a->schedule, &u->diag)) {
        artifact_drop(a);
        return false;
    }
    a->n_items = from->n_items;
    a->parent = from;
    a->origins = origins_identity(&a->arena, a->n_items);
    a->changed = a->schedule->nodes.n != from->schedule->nodes.n;
    unit_add(p, u, a, start);
    return true;
}

// C lines point straight at the nodes of the lowered graph.
static bool build_kernels(Pipeline *p, Unit *u) {
    int64_t start = clock_ns();
    const Artifact *from = unit_at(u, STAGE_post_fusion);
    Artifact *a = artifact_new(p, STAGE_kernels, NULL, ART_code);
    CodegenRequest request = {
        .arena = &a->arena,
        .schedule = from->schedule,
        .plan = from->plan,
        .decisions = u->decisions,
        .diag = &u->diag,
        .config = &p->options.config,
        .stage = STAGE_kernels,
        .comments = true,
        .taps = p->options.taps,
    };
    a->code = codegen_c(&request);
    if (!a->code) {
        artifact_drop(a);
        return false;
    }
    a->n_items = a->code->lines.n;
    a->parent = unit_at(u, STAGE_post_grad);
    a->origins = origins_new(&a->arena);
    for (int i = 0; i < a->code->lines.n; i++) {
        const CLine *line = &a->code->lines.at[i];
        for (int k = 0; k < line->n_origins; k++)
            origins_add(a->origins, i, line->origins[k], line->strength);
    }
    unit_add(p, u, a, start);
    return true;
}

bool build_stage(Pipeline *p, Unit *u, StageId stage) {
    if (stage == pipeline_first_stage(p, u->index))
        return build_loaded(p, u, stage);
    if (stage != STAGE_source && !load_check_shapes(u->loaded, &u->diag))
        return false;
    bool joint = u->forward != NULL;
    switch (stage) {
    case STAGE_source:
        return build_source(p, u);
    case STAGE_functional:
        return build_merged(p, u) && (joint ? build_joint_trace(p, u, stage, DECOMP_none)
                                            : build_trace(p, u, stage, DECOMP_none));
    case STAGE_joint:
        return joint ? build_joint_trace(p, u, stage, table_chosen(p))
                     : build_trace(p, u, stage, table_chosen(p));
    case STAGE_joint_passes:
        return run_passes(p, u, stage, joint_passes, n_joint_passes);
    case STAGE_partition:
        return joint ? build_parts(p, u) : build_partition(p, u);
    case STAGE_post_grad:
        return (!u->parent || u->parent->backward != u || build_restrided(p, u)) &&
               run_passes(p, u, stage, post_grad_passes, n_post_grad_passes);
    case STAGE_pre_fusion:
        return build_pre_fusion(p, u);
    case STAGE_post_fusion:
        return build_post_fusion(p, u);
    case STAGE_kernels:
        return build_kernels(p, u);
    case STAGE_bytecode:
    case STAGE_fx:
    case STAGE_run:
    case STAGE_count:
        break;
    }
    return false;
}
