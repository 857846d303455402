// session_why.c: why answers by any name; and fusions forced or forbidden over random pairs keep
// every value, or are refused with a reason.
#include <math.h>
#include <string.h>

#include "core/base/file.h"
#include "core/session_private.h"
#include "tests/unit/unit.h"

static Arena arena;
static Diag diag;
static Session *session;

static void setup(void) {
    arena = (Arena){0};
    diag = (Diag){.arena = &arena};
}

static void teardown(void) {
    if (session)
        session_close(session);
    session = NULL;
    arena_free(&arena);
}

static void open_with(const char *path, const char *grad) {
    SessionOptions o = {.grad = grad, .toolchain = "tcc"};
    session = session_open(path, &o, &diag);
    ck_assert_msg(session != NULL, "%s", diag_first(&diag));
}

static void open_model(const char *path) {
    open_with(path, "none");
}

static const char *why(const char *a, const char *b) {
    Buf out = {.arena = &arena};
    diag = (Diag){.arena = &arena};
    return session_why(session, 0, a, b, &arena, &out, &diag) ? buf_str(&out) : diag_first(&diag);
}

static void says(const char *a, const char *b, const char *what) {
    const char *text = why(a, b);
    ck_assert_msg(strstr(text, what) != NULL, "why %s %s: no '%s' in:\n%s", a, b, what, text);
}

#define GELU  "tests/corpus/layernorm_gelu/graph_code.txt"
#define BLOCK "samples/block.pt2"

// layernorm_gelu: op0, op1 the two results of Welford's algorithm, op3 the normalised value, op4
// and op6 addmm, op5 gelu, op7 the sum at the end.
START_TEST(test_why_names) {
    open_model(GELU);
    says("op0", "op1", "fused: horizontal");
    says("op1", "op3", "as op0_op1 with op3");
    says("op1", "op3", "to change it: nofuse op1 op3");
    says("op3", "op7", "intermediate nodes between node1 & node2");
    says("op3", "op7", "between them: op4 (extern_kernels.addmm), op5, op6");
    says("op7", "op3", "node1 op3"); // in the order of execution, however asked
    says("buf0", "buf3", "fused: outer loop");
    says("buf4", "op5", "node1 is extern or nop");
    says("op0_op1_op3", "op7", "intermediate nodes");
    says("addmm", "op5", "extern_kernels.addmm");
    says("cpp_fused_native_layer_norm_0", "op7", "not fused");
    says("erf", "op5", "computed in the same node op5");
    says("erf", "op3", "erf is inlined into op5: cheap to compute again in each user");
    says("arg0_1", "op3", "it is there when the kernels start");
    says("op2", "op3", "removed before fusion");
    says("op99", "op3", "no scheduler node 'op99'");
}
END_TEST

// Forward and backward number their nodes from 0 each.
START_TEST(test_why_in_two_graphs) {
    open_with(GELU, "params");
    says("op0", "op1", "forward\nop0 op1: fused: horizontal");
    says("op0", "op1", "backward\nop0 op1: not fused: node1 is extern or nop");
    says("backward/op7", "op8", "op7 op8: fused: horizontal");
    says("forward/op0", "backward/op8", "each graph is compiled by itself");
    says("forward/op99", "op0", "no scheduler node 'op99'");
    int unit = 0;
    const char *names[2] = {"op0", "op1"}, *backward[2] = {"backward/op8", "op7"};
    diag = (Diag){.arena = &arena};
    ck_assert(!session_pair(session, &unit, names, &arena, &diag));
    ck_assert_str_eq(diag_first(&diag), "op0 and op1 are in forward and in backward");
    diag = (Diag){.arena = &arena};
    ck_assert(session_pair(session, &unit, backward, &arena, &diag));
    ck_assert_int_eq(unit, pipeline_unit(session->pipeline, 0)->backward->index);
    const char *key = session_fusion_key(session, unit, backward[0], backward[1], &arena);
    ck_assert_str_eq(key, "backward/op7+op8");
    // A wish about one graph leaves the pair of the same name in the other one alone.
    decide_override(session_overrides(session), DECIDE_fuse, "backward/op0+op1", false);
    decide_override(session_overrides(session), DECIDE_fuse, key, false);
    session_changed(session, STAGE_post_fusion);
    says("op0", "op1", "forward\nop0 op1: fused: horizontal");
    says("backward/op7", "op8", "not fused: a decision keeps them apart");
}
END_TEST

static const char apart[] =
    "class GraphModule(torch.nn.Module):\n"
    "    def forward(self, x: \"f32[8, 4]\", y: \"f32[8, 4]\", z: \"f32[7]\"):\n"
    "        a = x.sin()\n        b = y.cos()\n        c = z.exp()\n        return (a, b, c)\n";

// A rule of thumb can be passed, other loops cannot; the answer says which.
START_TEST(test_what_can_be_forced) {
    char *folder = dir_temp(&arena, &diag), *path = path_join(&arena, folder, "apart.txt");
    ck_assert(file_write(path, apart, strlen(apart), &diag));
    open_model(path);
    dir_remove(folder, &diag);
    says("op0", "op1", "not fused: no shared data");
    says("op0", "op1", "`fuse op0 op1` passes this rule");
    says("op0", "op2", "and then: loops differ: (32,), () and (7,), ()");
    decide_override(session_overrides(session), DECIDE_fuse, "op0+op1", true);
    decide_override(session_overrides(session), DECIDE_fuse, "op0+op2", true);
    session_changed(session, STAGE_post_fusion);
    says("op0", "op1", "fused: forced, past `no shared data`");
    says("op0", "op2", "not fused: no shared data");
}
END_TEST

// ---- forced and forbidden, at random

enum { SEEDS = 3, PAIRS = 24, OPS_MAX = 64 };

static uint64_t state;

static uint32_t next_random(uint32_t below) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(state >> 33) % below;
}

static void run(RunResult *r) {
    RunRequest what = {.backend = BACKEND_full, .toolchain = toolchain_find("tcc")};
    diag = (Diag){.arena = &arena};
    ck_assert_msg(session_run(session, &what, r, &arena, &diag), "%s", diag_first(&diag));
}

static void same_outputs(const RunResult *a, const RunResult *b, const char *key) {
    ck_assert_int_eq(a->n_outputs, b->n_outputs);
    for (int i = 0; i < a->n_outputs; i++) {
        const Tensor *x = &a->outputs[i].tensor, *y = &b->outputs[i].tensor;
        ck_assert_int_eq(tensor_numel(x), tensor_numel(y));
        for (int64_t k = 0; k < tensor_numel(x); k++) {
            double p = tensor_get_f64(x, k), q = tensor_get_f64(y, k);
            ck_assert_msg(fabs(p - q) <= 1e-5 + 1e-5 * fabs(q), "%s: output %d [%lld]: %g, was %g",
                          key, i, (long long)k, p, q);
        }
    }
}

static int op_names(const char **names) {
    const Artifact *a = pipeline_build(session->pipeline, 0, STAGE_pre_fusion);
    int n = 0;
    for (int i = 0; i < a->schedule->nodes.n && n < OPS_MAX; i++)
        if (a->schedule->nodes.at[i]->kind == SCHED_node)
            names[n++] = arena_strdup(&arena, a->schedule->nodes.at[i]->name);
    return n;
}

static bool in_one_node(const char *a, const char *b) {
    const Artifact *art = pipeline_build(session->pipeline, 0, STAGE_post_fusion);
    for (int i = 0; i < art->schedule->nodes.n; i++) {
        const SchedNode *n = art->schedule->nodes.at[i];
        int found = 0;
        for (int k = 0; k < n->snodes.n; k++)
            found += !strcmp(n->snodes.at[k]->name, a) || !strcmp(n->snodes.at[k]->name, b);
        if (found == 2)
            return true;
    }
    return false;
}

// Wishes gather: each run is under all that came before.
static void random_wishes(const char *path, uint64_t seed) {
    const char *names[OPS_MAX];
    RunResult plain, changed;
    open_model(path);
    run(&plain);
    int n = op_names(names);
    state = seed;
    for (int i = 0; i < PAIRS; i++) {
        uint32_t x = next_random((uint32_t)n), y = next_random((uint32_t)n);
        bool together = next_random(3) > 0;
        const char *a = names[x < y ? x : y], *b = names[x < y ? y : x];
        if (x == y)
            continue;
        const char *key = arena_printf(&arena, "%s+%s", a, b);
        decide_override(session_overrides(session), DECIDE_fuse, key, together);
        session_changed(session, STAGE_post_fusion);
        if (!together)
            ck_assert_msg(!in_one_node(a, b), "%s: together against the wish", key);
        if (together && !in_one_node(a, b))
            ck_assert_msg(strstr(why(a, b), "not fused: ") != NULL, "%s: no reason", key);
        run(&changed);
        same_outputs(&changed, &plain, key);
        session_run_free(&changed);
    }
    session_run_free(&plain);
    session_close(session);
    session = NULL;
}

START_TEST(test_wishes_keep_values) {
    for (uint64_t seed = 1; seed <= SEEDS; seed += UNIT_EVERY(4)) {
        random_wishes(BLOCK, seed);
        random_wishes(GELU, seed + 100);
        random_wishes("tests/corpus/mlp_softmax/graph_code.txt", seed + 200);
    }
}
END_TEST

static bool has_decision(const Artifact *art, const char *node, DecisionKind kind,
                         const char *key) {
    const Decision *const *list;
    int n = session_decisions_about(session, 0, art, graph_find(art->graph, node)->id, &arena,
                                    &list);
    for (int i = 0; i < n; i++)
        if (list[i]->ask.kind == kind && !strcmp(list[i]->ask.key, key))
            return true;
    return false;
}

// Keys are names of the stage that asked: the captured graph's `view` is `view_2` when lowered,
// and its lowered namesake comes of `linear`.
START_TEST(test_decisions_about) {
    open_model(BLOCK);
    Pipeline *pl = session_pipeline(session);
    ck_assert_ptr_nonnull(pipeline_build(pl, 0, STAGE_kernels));
    const Artifact *fx = pipeline_at(pl, 0, STAGE_fx), *joint = pipeline_at(pl, 0, STAGE_joint);
    ck_assert(has_decision(fx, "gelu", DECIDE_decomposition, "aten.gelu.default"));
    ck_assert(has_decision(fx, "gelu", DECIDE_realize, "erf"));
    ck_assert(has_decision(fx, "gelu", DECIDE_inplace, "buf21 over buf20"));
    ck_assert(!has_decision(fx, "gelu", DECIDE_decomposition, "aten.softmax.int"));
    ck_assert(has_decision(fx, "view", DECIDE_lowering, "view_2"));
    ck_assert(!has_decision(fx, "view", DECIDE_lowering, "view"));
    ck_assert(has_decision(fx, "linear", DECIDE_lowering, "view"));
    ck_assert(has_decision(fx, "softmax", DECIDE_rewrite, "pass_pattern_1:sub_1"));
    ck_assert(has_decision(fx, "layer_norm", DECIDE_fuse, "var_mean+var_mean.1"));
    ck_assert(has_decision(joint, "erf", DECIDE_decomposition, "aten.gelu.default"));
    ck_assert(!has_decision(joint, "erf", DECIDE_realize, "mul_4"));
}
END_TEST

// Operations: of products as PyTorch counts them, named so or not; of others one an element.
START_TEST(test_flops) {
    open_model(BLOCK);
    Pipeline *pl = session_pipeline(session);
    ck_assert_ptr_nonnull(pipeline_build(pl, 0, STAGE_joint));
    static const struct {
        StageId stage;
        const char *node;
        double flops;
    } want[] = {{STAGE_fx, "linear", 2.0 * 64 * 64 * 192},
                {STAGE_fx, "matmul", 2.0 * 8 * 32 * 16 * 32},
                {STAGE_fx, "gelu", 2 * 32 * 256},
                {STAGE_fx, "permute", 0},
                {STAGE_fx, "x", 0},
                {STAGE_functional, "bmm", 2.0 * 8 * 32 * 16 * 32},
                {STAGE_joint, "addmm", 2.0 * 64 * 64 * 192},
                {STAGE_joint, "bmm", 2.0 * 8 * 32 * 16 * 32},
                {STAGE_joint, "view", 0},
                {STAGE_joint, "getitem", 0},
                {STAGE_joint, "amax", 8 * 32 * 32}}; // what it reads
    for (int i = 0; i < COUNT(want); i++) {
        const Node *n = graph_find(pipeline_at(pl, 0, want[i].stage)->graph, want[i].node);
        ck_assert_msg(session_flops(n) == want[i].flops, "%s: %g", want[i].node, session_flops(n));
    }
}
END_TEST

Suite *suite_session_why(void) {
    Suite *s = suite_create("session_why");
    TCase *t = tcase_create("why");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_set_timeout(t, 120);
    tcase_add_test(t, test_why_names);
    tcase_add_test(t, test_decisions_about);
    tcase_add_test(t, test_flops);
    tcase_add_test(t, test_why_in_two_graphs);
    tcase_add_test(t, test_what_can_be_forced);
    tcase_add_test(t, test_wishes_keep_values);
    suite_add_tcase(s, t);
    return s;
}
