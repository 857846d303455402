// case_part.c: a graph of a case through the pipeline to the artifact that a rung runs, and its
// run, in this process.
#include <string.h>

#include "core/debug/case.h"

static const StageId stage_of_rung[] = {
#define BACKEND(id, name, alias, executes, ...) [RUNG_##id] = executes,
#include "core/pipeline/backends.def"
#undef BACKEND
};

static void copy_errors(Diag *to, const Diag *from) {
    for (int i = 0; i < from->n; i++)
        if (from->at[i].kind == DIAG_error)
            diag_fail(to, "%s", from->at[i].text);
    if (!from->errors)
        diag_fail(to, "the graph could not be built");
}

bool case_part_build(Case *c, CasePart *p, const Graph *g, GraphLevel level, const char *kind) {
    LoadedGraph *loaded = ARENA_NEW(&c->arena, LoadedGraph);
    *loaded = (LoadedGraph){.graph = g, .title = "case", .kind = kind, .level = level};
    p->model = (LoadedModel){
        .arena = &c->arena, .sym = g->sym, .path = "case", .name = "case", .form = "case"};
    p->model.state.arena = &c->arena;
    vec_push(&c->arena, &p->model.graphs, *loaded);
    PipelineOptions options = {
        .grad = "none", .device = {DEV_cpu, -1}, .config = inductor_config_default()};
    p->pipeline = pipeline_new(&p->model, &options);
    c->n_parts++;
    StageId stage = stage_of_rung[c->setup->rung], first = pipeline_first_stage(p->pipeline, 0);
    const Artifact *made = pipeline_build(p->pipeline, 0, stage < first ? first : stage);
    if (!made) {
        copy_errors(&c->diag, &pipeline_unit(p->pipeline, 0)->diag);
        return false;
    }
    p->graph = made->kind == ART_graph ? made->graph : unit_last_graph(p->pipeline, 0);
    if (made->kind == ART_code) {
        p->code = made->code->text;
        p->module = pipeline_at(p->pipeline, 0, STAGE_post_fusion)->schedule->module;
    }
    return true;
}

static int count_outputs(const Graph *g) {
    const Value *v = &graph_output_node(g)->args[0];
    return v->kind == VAL_tuple || v->kind == VAL_list ? v->n : 1;
}

static bool run_code(Case *c, CasePart *p, RtValue *in, int n_in, RtValue *out, int n_out) {
    int n_consts = p->module->constants.n;
    RtValue *all = ARENA_ARRAY(&c->arena, n_in + n_consts + 1, RtValue);
    if (n_in)
        memcpy(all, in, (size_t)n_in * sizeof *in);
    for (int i = 0; i < n_consts; i++)
        for (int k = 0; k < p->module->graph->consts.n; k++) {
            const GraphConst *known = &p->module->graph->consts.at[k];
            if (!strcmp(known->name, p->module->constants.at[i]->name) && known->tensor)
                all[n_in + i] = (RtValue){.kind = RT_tensor,
                                          .tensor = *(const Tensor *)known->tensor};
        }
    ExecRun run = {.code = p->compiled,
                   .inputs = all,
                   .n_in = n_in + n_consts,
                   .outputs = out,
                   .n_out = n_out,
                   .threads = 1,
                   .seed = c->seed,
                   .where = c->where};
    return exec_run(&run, &c->arena, &c->diag);
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
        *n_out = count_outputs(p->graph);
        *out = ARENA_ARRAY(&c->arena, *n_out + 1, RtValue);
        ok = run_code(c, p, in, n_in, *out, *n_out);
    } else {
        ok = run_graph(c, p, in, n_in, out, n_out);
    }
    for (int i = 0; i < *n_out; i++)
        case_own(c, &(*out)[i]);
    return ok;
}

void case_part_free(CasePart *p) {
    if (p->compiled)
        exec_unload(p->compiled);
    if (p->pipeline)
        pipeline_free(p->pipeline);
}
