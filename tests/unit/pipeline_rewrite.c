// pipeline_rewrite.c: states inside a step are whole graphs that compute what the step computes,
// each one rewrite further than the one before; asking for them leaves no trace in the pipeline.
#include "core/session.h"
#include "tests/unit/unit.h"

#include <math.h>
#include <string.h>

static Session *open_model(const char *path, const char *grad, Arena *a) {
    Diag d = {.arena = a};
    SessionOptions o = {.grad = grad};
    Session *s = session_open(path, &o, &d);
    ck_assert_msg(s != NULL, "%s: %s", path, diag_first(&d));
    return s;
}

// The sum of all outputs, weighted by place; inputs are the session's.
static double value_of(Session *s, const Graph *g, Arena *a) {
    Diag d = {.arena = a};
    RtValue *in;
    int n;
    double sum = 0;
    ck_assert_msg(session_inputs(s, 0, a, &in, &n, &d), "%s", diag_first(&d));
    EagerCtx c = {.arena = a, .diag = &d, .threads = 1};
    EagerRun r = {.graph = g, .inputs = in, .n_inputs = n};
    ck_assert_msg(eager_run(&c, &r), "%s", diag_first(&d));
    for (int o = 0; o < r.n_outputs; o++) {
        const Tensor *x = &r.outputs[o].tensor;
        ck_assert_int_eq(r.outputs[o].kind, RT_tensor);
        for (int64_t k = 0; k < tensor_numel(x); k++)
            sum += (1.0 + (double)(k % 7)) * tensor_get_f64(x, k);
        rt_drop(&r.outputs[o]);
    }
    for (int i = 0; i < n; i++)
        rt_drop(&in[i]);
    return sum;
}

static int calls_of(const Graph *g, const char *target) {
    int n = 0;
    GRAPH_EACH (g, node)
        n += !strcmp(node->target, target);
    return n;
}

START_TEST(every_state_computes_the_model) {
    Arena a = {0};
    Session *s = open_model("samples/block.pt2", "none", &a);
    Pipeline *p = session_pipeline(s);
    Diag d = {.arena = &a};
    ck_assert_ptr_nonnull(pipeline_build(p, 0, STAGE_kernels));
    const Unit *u = pipeline_unit(p, 0);
    double want = value_of(s, pipeline_at(p, 0, STAGE_fx)->graph, &a);
    int states = 0;
    for (int i = 0; i < unit_n_steps(u); i++) {
        const Artifact *step = unit_step(u, i);
        for (int k = 0; k <= step->n_rewrites && step->kind == ART_graph; k++) {
            const Artifact *state = pipeline_state(p, 0, step, k, &d);
            ck_assert_msg(state != NULL, "%s %d: %s", artifact_title(step), k, diag_first(&d));
            ck_assert_msg(graph_verify(state->graph, &d), "%s %d: %s", artifact_title(step), k,
                          diag_first(&d));
            if (k == 0 || k == step->n_rewrites)
                continue;
            double got = value_of(s, state->graph, &a);
            ck_assert_msg(fabs(got - want) < 1e-4 * fmax(1, fabs(want)), "%s %d: %g, not %g",
                          artifact_title(step), k, got, want);
            states++;
        }
    }
    ck_assert_int_gt(states, 40); // 24 ops taken apart, 16 reshapes, the rest
    session_close(s);
    arena_free(&a);
}
END_TEST

static const Artifact *pass_of(const Unit *u, const char *name) {
    for (int i = 0; i < unit_n_steps(u); i++)
        if (unit_step(u, i)->pass && !strcmp(unit_step(u, i)->pass, name))
            return unit_step(u, i);
    return NULL;
}

START_TEST(a_state_is_one_rewrite_further) {
    Arena a = {0};
    Diag d = {.arena = &a};
    Session *s = open_model("samples/block.pt2", "none", &a);
    Pipeline *p = session_pipeline(s);
    pipeline_build(p, 0, STAGE_kernels);
    const Artifact *pass = pass_of(pipeline_unit(p, 0), "view_to_reshape");
    ck_assert_ptr_nonnull(pass);
    ck_assert_int_eq(pass->n_rewrites, pass->matches);
    int before = calls_of(pass->parent->graph, "torch.ops.aten.reshape.default");
    for (int k = 1; k <= pass->n_rewrites; k++) {
        const Artifact *state = pipeline_state(p, 0, pass, k, &d);
        ck_assert_int_eq(calls_of(state->graph, "torch.ops.aten.reshape.default"), before + k);
        RewriteDelta delta;
        ck_assert(pipeline_delta(p, 0, pass, k, &a, &delta, &d));
        ck_assert_int_eq(delta.altered.n, 1);
        ck_assert_int_eq(delta.made.n + delta.gone.n, 0);
    }
    ck_assert_ptr_eq(pipeline_state(p, 0, pass, pass->n_rewrites, &d), pass);
    // Fusing two nodes leaves one less, whatever fuses.
    const Artifact *post = pipeline_at(p, 0, STAGE_post_fusion);
    int nodes = post->parent->schedule->nodes.n;
    ck_assert_int_eq(nodes - post->n_rewrites, post->schedule->nodes.n);
    for (int k = 0; k <= post->n_rewrites; k++)
        ck_assert_int_eq(pipeline_state(p, 0, post, k, &d)->schedule->nodes.n, nodes - k);
    session_close(s);
    arena_free(&a);
}
END_TEST

START_TEST(an_op_taken_apart_is_told) {
    Arena a = {0};
    Diag d = {.arena = &a};
    Session *s = open_model("tests/corpus/layernorm_gelu/graph_code.txt", "none", &a);
    Pipeline *p = session_pipeline(s);
    const Artifact *joint = pipeline_build(p, 0, STAGE_joint);
    Rewrite *list;
    RewriteDelta delta;
    int n = pipeline_rewrites(p, 0, joint, &a, &list), found = 0;
    for (int i = 0; i < n; i++) {
        if (strcmp(list[i].asked.ask.key, "aten.gelu.default"))
            continue;
        found++;
        ck_assert(pipeline_delta(p, 0, joint, i + 1, &a, &delta, &d));
        ck_assert_int_eq(delta.gone.n, 1);
        ck_assert_str_eq(delta.gone.at[0], "gelu");
        ck_assert_int_eq(delta.made.n, 5); // mul, mul, erf, add, mul
    }
    ck_assert_int_eq(found, 1);
    session_close(s);
    arena_free(&a);
}
END_TEST

// Through training too; and the pipeline is as it was.
START_TEST(asking_changes_nothing) {
    Arena a = {0};
    Diag d = {.arena = &a};
    Session *s = open_model("tests/corpus/layernorm_gelu/graph_code.txt", "params", &a);
    Pipeline *p = session_pipeline(s);
    for (int unit = 0; unit < pipeline_n_units(p); unit++)
        pipeline_build(p, unit, unit ? STAGE_kernels : STAGE_partition);
    int states = 0;
    for (int unit = 0; unit < pipeline_n_units(p); unit++) {
        const Unit *u = pipeline_unit(p, unit);
        int steps = unit_n_steps(u), log = decisions_count(u->decisions);
        for (int i = 0; i < steps; i++) {
            const Artifact *step = unit_step(u, i);
            for (int k = 0; k <= step->n_rewrites; k++, states++)
                ck_assert_msg(pipeline_state(p, unit, step, k, &d), "%s %d: %s",
                              artifact_title(step), k, diag_first(&d));
            ck_assert_ptr_eq(unit_step(u, i), step);
        }
        ck_assert_int_eq(unit_n_steps(u), steps);
        ck_assert_int_eq(decisions_count(u->decisions), log);
    }
    ck_assert_int_gt(states, 100);
    pipeline_drop_from(p, STAGE_functional);
    ck_assert_ptr_nonnull(pipeline_build(p, 0, STAGE_partition));
    session_close(s);
    arena_free(&a);
}
END_TEST

Suite *suite_pipeline_rewrite(void) {
    const TTest *const tests[] = {
        every_state_computes_the_model,
        a_state_is_one_rewrite_further,
        an_op_taken_apart_is_told,
        asking_changes_nothing,
    };
    return unit_suite("pipeline_rewrite", tests, COUNT(tests));
}
