// case_part.c: a graph of a case through the pipeline to the artifact that a rung runs, and its
// run, in this process.
#include <string.h>

#include "core/debug/case.h"

static const StageId stage_of_rung[] = {
#define BACKEND(id, name, alias, executes, ...) [RUNG_##id] = executes,
#include "core/pipeline/backends.def"
#undef BACKEND
};

bool case_is_lowered(const Case *c) {
    return stage_of_rung[c->setup->rung] >= STAGE_pre_fusion;
}

void case_pipeline(Case *c, const Graph *g, const bool *needs) {
    if (c->pipeline)
        pipeline_free(c->pipeline);
    Node **inputs;
    LoadedGraph loaded = {.graph = g, .title = "case", .kind = "", .level = LEVEL_export};
    loaded.n_inputs = graph_placeholders(g, &inputs, &c->arena);
    loaded.inputs = ARENA_ARRAY(&c->arena, loaded.n_inputs + 1, InputSpec);
    for (int i = 0; i < loaded.n_inputs; i++)
        loaded.inputs[i] =
            (InputSpec){.kind = needs && needs[i] ? IN_parameter : IN_constant, .user = -1};
    c->model = (LoadedModel){
        .arena = &c->arena, .sym = g->sym, .path = "case", .name = "case", .form = "case"};
    c->model.state.arena = &c->arena;
    vec_push(&c->arena, &c->model.graphs, loaded);
    PipelineOptions options = pipeline_options_default();
    options.device = (Device){DEV_cpu, -1};
    options.grad = needs ? GRAD_params : GRAD_none;
    options.config.emulate_precision_casts = c->setup->emulate_precision_casts;
    c->pipeline = pipeline_new(&c->model, &options);
}

const Artifact *case_build(Case *c, int unit) {
    Pipeline *p = c->pipeline;
    const Artifact *a = pipeline_build(p, unit, stage_of_rung[c->setup->rung]);
    const Unit *blamed = a ? NULL : unit_to_blame(pipeline_unit(p, unit));
    if (!a)
        diag_fail(&c->diag, "%s",
                  blamed && blamed->diag.errors ? diag_first(&blamed->diag)
                                                : "the graph could not be built");
    return a;
}

void case_add_part(Case *c, const Artifact *a, int unit, const Graph *g) {
    CasePart *p = &c->parts[c->n_parts++];
    p->graph = g ? g : a->kind == ART_graph ? a->graph : unit_last_graph(c->pipeline, unit);
    if (a && a->kind == ART_schedule) {
        p->schedule = a->schedule;
        p->plan = a->plan;
    } else if (a && a->kind == ART_code) {
        p->code = a->code->text;
        p->schedule = pipeline_at(c->pipeline, unit, STAGE_post_fusion)->schedule;
    }
}

// The inputs, then the constants of the module.
static RtValue *with_constants(Case *c, const IrModule *m, const RtValue *in, int n_in, int *n) {
    int n_consts = m->constants.n;
    RtValue *all = ARENA_ARRAY(&c->arena, n_in + n_consts + 1, RtValue);
    if (n_in)
        memcpy(all, in, (size_t)n_in * sizeof *in);
    for (int i = 0; i < n_consts; i++)
        for (int k = 0; k < m->graph->consts.n; k++) {
            const GraphConst *known = &m->graph->consts.at[k];
            if (!strcmp(known->name, m->constants.at[i]->name) && known->tensor)
                all[n_in + i] =
                    (RtValue){.kind = RT_tensor, .tensor = *(const Tensor *)known->tensor};
        }
    *n = n_in + n_consts;
    return all;
}

static bool run_code(Case *c, CasePart *p, RtValue *in, int n_in, RtValue *out, int n_out) {
    ExecRun run = {.code = p->compiled,
                   .outputs = out,
                   .n_out = n_out,
                   .threads = 1,
                   .seed = c->seed,
                   .where = c->where};
    run.inputs = with_constants(c, p->schedule->module, in, n_in, &run.n_in);
    return exec_run(&run, &c->arena, &c->diag);
}

static bool run_loops(Case *c, CasePart *p, RtValue *in, int n_in, RtValue **out, int *n_out) {
    LoopRun run = {
        .schedule = p->schedule, .plan = p->plan, .threads = 1, .seed = c->seed, .where = c->where};
    run.inputs = with_constants(c, p->schedule->module, in, n_in, &run.n_in);
    bool ok = exec_interpret(&run, &c->arena, &c->diag);
    *out = run.outputs;
    *n_out = ok ? run.n_out : 0;
    return ok;
}

static bool run_graph(Case *c, CasePart *p, RtValue *in, int n_in, RtValue **out, int *n_out) {
    Generator generator;
    generator_seed(&generator, c->seed);
    EagerCtx e = {.arena = &c->arena, .diag = &c->diag, .threads = 1, .generator = &generator};
    EagerRun run = {.graph = p->graph, .inputs = in, .n_inputs = n_in};
    bool ok = eager_run(&e, &run);
    *out = run.outputs;
    *n_out = ok ? run.n_outputs : 0;
    return ok;
}

bool case_part_run(Case *c, CasePart *p, RtValue *in, int n_in, RtValue **out, int *n_out) {
    bool ok;
    if (p->compiled) {
        *n_out = graph_n_outputs(p->graph);
        *out = ARENA_ARRAY(&c->arena, *n_out + 1, RtValue);
        ok = run_code(c, p, in, n_in, *out, *n_out);
    } else if (p->schedule) {
        ok = run_loops(c, p, in, n_in, out, n_out);
    } else {
        ok = run_graph(c, p, in, n_in, out, n_out);
    }
    for (int i = 0; i < *n_out; i++)
        case_own(c, &(*out)[i]);
    return ok;
}
