// session_train.c: training as a tree of graphs, and a step of it: what needs a gradient, how
// folders are numbered, what is linked to what, and gradients on every rung. Gradients are held
// against values worked out by hand (the loss of a run gives output i the tangent i mod 7 - 3) and
// against those that PyTorch recorded.
#include "tests/unit/unit.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/base/file.h"
#include "core/session.h"

#define F44       "\"f32[4, 4][4, 1]cpu\""
#define LAYERNORM "tests/corpus/layernorm_gelu/"

static Arena arena;
static Diag diag;
static char *folder;

static void begin(void) {
    arena_free(&arena);
    diag = (Diag){.arena = &arena};
}

// One captured graph as text; statements are parted by "; ".
static void put_graph(Buf *b, const char *inputs, const char *body, const char *result) {
    buf_printf(b, "class GraphModule(torch.nn.Module):\n    def forward(self, %s):\n", inputs);
    for (const char *p = body; *p;) {
        size_t n = strcspn(p, ";");
        buf_printf(b, "        %.*s\n", (int)n, p);
        p += n;
        p += strspn(p, "; ");
    }
    buf_printf(b, "        return %s\n\n", result);
}

static Session *open_text(const Buf *text, const char *grad, const char *backend) {
    SessionOptions o = {.grad = grad, .backend = backend, .toolchain = "tcc"};
    folder = dir_temp(&arena, &diag);
    char *path = path_join(&arena, folder, "model.txt");
    ck_assert(file_write(path, buf_str((Buf *)text), text->len, &diag));
    Session *s = session_open(path, &o, &diag);
    Diag quiet = {.arena = &arena};
    ck_assert(dir_remove(folder, &quiet));
    ck_assert_msg(s != NULL, "%s", diag_first(&diag));
    return s;
}

static Session *open_layernorm(const char *form, const char *grad) {
    SessionOptions o = {.grad = grad, .toolchain = "tcc"};
    begin();
    Session *s = session_open(arena_printf(&arena, LAYERNORM "%s", form), &o, &diag);
    ck_assert_msg(s != NULL, "%s", diag_first(&diag));
    return s;
}

static const Unit *unit(Session *s, int i) {
    ck_assert_int_lt(i, pipeline_n_units(session_pipeline(s)));
    return pipeline_unit(session_pipeline(s), i);
}

START_TEST(a_joint_graph_has_a_forward_and_a_backward) {
    Session *s = open_layernorm("graph_code.txt", "params");
    Pipeline *p = session_pipeline(s);
    ck_assert_int_eq(pipeline_n_units(p), 3);
    const Unit *joint = unit(s, 0), *forward = unit(s, 1), *backward = unit(s, 2);
    ck_assert_ptr_eq(joint->forward, forward);
    ck_assert_ptr_eq(joint->backward, backward);
    ck_assert_ptr_eq(backward->parent, joint);
    ck_assert_str_eq(forward->name, "model__0_forward_1.0");
    ck_assert_str_eq(backward->name, "model__0_backward_3.1");
    ck_assert_msg(pipeline_build(p, 2, STAGE_kernels) != NULL, "%s", diag_first(&backward->diag));
    ck_assert_ptr_null(pipeline_build(p, 0, STAGE_kernels));
    ck_assert_ptr_null(unit_to_blame(joint));
    ck_assert_ptr_eq(pipeline_at(p, 2, STAGE_fx), pipeline_at(p, 0, STAGE_fx));
    ck_assert_ptr_ne(pipeline_at(p, 2, STAGE_partition), pipeline_at(p, 0, STAGE_partition));
    ck_assert_ptr_eq(unit_step(backward, 0), unit_step(joint, 0));
    // As PyTorch parted it: three inputs and five values of forward's.
    const PartitionResult *r = pipeline_at(p, 0, STAGE_partition)->partition;
    ck_assert_int_eq(r->n_saved, 8);
    ck_assert_int_eq(r->saved_bytes, 32576);
    session_close(s);
}
END_TEST

START_TEST(settings_rebuild_from_their_stage) {
    Session *s = open_layernorm("graph_code.txt", "params");
    Pipeline *p = session_pipeline(s);
    pipeline_build(p, 1, STAGE_kernels);
    const Artifact *joint = pipeline_at(p, 0, STAGE_joint);
    ck_assert(session_set(s, "activation_memory_budget", "0", &diag));
    ck_assert_ptr_eq(pipeline_at(p, 0, STAGE_joint), joint);
    ck_assert_ptr_null(pipeline_at(p, 1, STAGE_kernels));
    const PartitionResult *r = pipeline_build(p, 0, STAGE_partition)->partition;
    for (int i = 0; i < r->n_saved; i++)
        ck_assert_msg(r->values[i].is_input, "value %d is saved with a budget of 0", i);
    ck_assert(session_set(s, "partitioner", "default", &diag));
    r = pipeline_build(p, 0, STAGE_partition)->partition;
    int made = 0;
    for (int i = 0; i < r->n_saved; i++)
        made += !r->values[i].is_input;
    ck_assert_int_gt(made, 5); // recomputes nothing
    ck_assert(!session_set(s, "activation_memory_budget", "2", &diag));
    ck_assert(session_set(s, "grad", "none", &diag));
    ck_assert_int_eq(pipeline_n_units(p), 1);
    ck_assert_str_eq(unit(s, 0)->name, "model__0_inference_0.0");
    ck_assert_ptr_nonnull(pipeline_build(p, 0, STAGE_kernels));
    session_close(s);
}
END_TEST

// A C line of the backward leads to the captured node, and back.
START_TEST(links_hold_from_a_backward_line_to_the_captured_graph) {
    Session *s = open_layernorm("graph_code.txt", "params");
    Pipeline *p = session_pipeline(s);
    const Artifact *code = pipeline_build(p, 2, STAGE_kernels), *fx = pipeline_at(p, 2, STAGE_fx);
    ck_assert(code && fx);
    const Node *gelu = graph_find(fx->graph, "gelu");
    int lines = 0;
    ck_assert_ptr_nonnull(gelu);
    for (int i = 0; i < code->n_items; i++) {
        Link *links;
        int n = pipeline_links(p, code, i, fx, &arena, &links);
        if (!n || links[0].item != gelu->id)
            continue;
        lines++;
        Link *back;
        int m = pipeline_links(p, fx, gelu->id, code, &arena, &back), found = 0;
        for (int k = 0; k < m; k++)
            found += back[k].item == i;
        ck_assert_msg(found == 1, "line %d leads to gelu, gelu not to it", i + 1);
    }
    ck_assert_int_gt(lines, 5);
    // Across the halves: what forward saves is what backward takes.
    const Artifact *f = pipeline_at(p, 1, STAGE_partition), *b = pipeline_at(p, 2, STAGE_partition);
    Link *links;
    int n = pipeline_links(p, f, graph_find(f->graph, "addmm")->id, b, &arena, &links);
    ck_assert_int_ge(n, 1);
    ck_assert_int_eq(links[0].item, graph_find(b->graph, "addmm")->id);
    session_close(s);
}
END_TEST

// PyTorch numbers two frames of one call 1, 4 and their backwards 6, 7, the last first; with sizes
// that are saved a backward is compiled at once.
START_TEST(folders_are_numbered_as_pytorch_does) {
    static const struct {
        const char *first, *second;
        const char *names[4]; // forward, backward of each
    } cases[] = {
        {"x: " F44,
         "z: " F44,
         {"model__0_forward_1.0", "model__0_backward_7.3", "model__1_forward_4.1",
          "model__1_backward_6.2"}},
        {"s0: \"Sym(s0)\", x: \"f32[s0, 4][4, 1]cpu\"",
         "z: " F44,
         {"model__0_forward_1.0", "model__0_backward_2.1", "model__1_forward_4.2",
          "model__1_backward_6.3"}},
    };
    for (int i = 0; i < COUNT(cases); i++) {
        begin();
        Buf b = {.arena = &arena};
        put_graph(&b, cases[i].first, "y = x.sin()", "(y,)");
        put_graph(&b, cases[i].second, "y = z.sin()", "(y,)");
        Session *s = open_text(&b, "all", "eager");
        ck_assert_int_eq(pipeline_n_units(session_pipeline(s)), 6);
        for (int k = 0; k < 4; k++)
            ck_assert_str_eq(unit(s, k / 2 * 3 + 1 + k % 2)->name, cases[i].names[k]);
        session_close(s);
    }
}
END_TEST

typedef struct Hostile {
    const char *inputs, *body, *result, *grad;
    int units; // 3: it trains
    int code;  // of `run`
} Hostile;

static const Hostile hostiles[] = {
    {"x: \"i64[4][1]cpu\"", "y = x + 1", "(y,)", "all", 1, 0},
    {"x: " F44, "y = torch.argmax(x)", "(y,)", "all", 1, 0},
    {"x: " F44, "y = x.detach(); z = y * 2", "(z,)", "all", 1, 0},
    {"x: " F44 ", i: \"i64[4][1]cpu\"", "y = x + i", "(y, i)", "all", 3, 0},
    {"x: " F44, "", "(x,)", "all", 1, 0}, // an alias of an input is no result of its own
    {"x: " F44, "", "()", "all", 1, 0},
    {"x: " F44, "y = x * 2", "()", "all", 1, 0},
    {"x: " F44 ", L_self_parameters_w_: " F44, "y = x * 2", "(y,)", "params", 1, 0},
    {"x: " F44, "y = x * 2", "(y,)", "params", 3, 0}, // without parameters: every float
    {"x: " F44, "y = x * 2", "(y,)", "none", 1, 0},
    {"x: " F44, "y = x * 2", "(y,)", "auto", 1, 0},
    {"x: \"f32[0, 4][4, 1]cpu\"", "y = x * 2; s = y.sum(0)", "(y, s)", "all", 3, 0},
    {"x: " F44, "y = x.mul_(2)", "(y,)", "all", 3, 2}, // a leaf is written
    {"x: " F44, "y = torch.nosuchop(x)", "(y,)", "all", 1, 2},
    {"x: " F44, "y = x.clone(); v = torch.as_strided(y, (3, 3), (1, 1), 20)", "(v,)", "all", 3, 2},
};

START_TEST(odd_models_train_or_say_why_not) {
    for (int i = 0; i < COUNT(hostiles); i++) {
        const Hostile *h = &hostiles[i];
        begin();
        Buf b = {.arena = &arena}, out = {.arena = &arena};
        put_graph(&b, h->inputs, h->body, h->result);
        Session *s = open_text(&b, h->grad, "eager");
        ck_assert_msg(pipeline_n_units(session_pipeline(s)) == h->units, "%s: %d graphs", h->body,
                      pipeline_n_units(session_pipeline(s)));
        int code = session_report_run(s, NULL, &out, false, &diag);
        ck_assert_msg(code == h->code, "%s: exit code %d, %s", h->body, code, diag_first(&diag));
        session_close(s);
    }
}
END_TEST

static double tangent(int i) {
    return i % 7 - 3;
}

static double sum_with_transposed(int i) { // y = 2x, and y.t()
    return 2 * (tangent(i) + tangent(i % 4 * 4 + i / 4));
}

static double input_and_triple(int i) { // x itself, and 3x
    return tangent(i) + 3 * tangent(i);
}

static double rows_of_one(int i) { // rows 0 and 1 of 2x
    return i < 8 ? 2 * tangent(i % 4) : 0;
}

static double halves_of_written(int i) { // y = 2x; y[0] *= 3: x sees 6 there
    return (i < 4 ? 6 : 2) * tangent(i);
}

static double times_two(int i) { // x * 2, the 2 in a buffer that forward writes
    return 2 * tangent(i);
}

static const struct Known {
    const char *inputs, *body, *result;
    double (*grad)(int i); // of x
} known[] = {
    {"x: " F44, "y = x * 2; z = y.t()", "(y, z)", sum_with_transposed},
    {"x: " F44, "z = x * 3", "(x, z)", input_and_triple},
    {"x: " F44, "y = x * 2; a = y[0]; b = y[1]", "(a, b)", rows_of_one},
    {"x: " F44, "y = x * 2; v = y[0]; w = v.mul_(3)", "(y,)", halves_of_written},
    // What backward needs of an input that forward writes is what it was before.
    {"x: " F44 ", L_self_buffers_b_: " F44,
     "b = L_self_buffers_b_.zero_(); c = b.add_(2); y = x * c", "(y,)", times_two},
};

START_TEST(gradients_are_those_worked_out_by_hand_on_every_rung) {
    static const char *const rungs[] = {"eager", "aot_eager", "aot_eager_decomp_partition", "full"};
    for (int i = 0; i < COUNT(known); i++)
        for (int k = 0; k < COUNT(rungs); k++) {
            begin();
            Buf b = {.arena = &arena};
            put_graph(&b, known[i].inputs, known[i].body, known[i].result);
            Session *s = open_text(&b, "all", rungs[k]);
            RunRequest q = {.backend = session_backend(s), .toolchain = toolchain_find("tcc")};
            RunResult r;
            ck_assert_msg(session_run(s, &q, &r, &arena, &diag), "%s %s: %s", known[i].body,
                          rungs[k], diag_first(&diag));
            ck_assert_int_ge(r.n_grads, 1);
            ck_assert_int_eq(r.grads[0].kind, RT_tensor);
            for (int e = 0; e < 16; e++)
                ck_assert_msg(tensor_get_f64(&r.grads[0].tensor, e) == known[i].grad(e),
                              "%s %s: element %d is %g, not %g", known[i].body, rungs[k], e,
                              tensor_get_f64(&r.grads[0].tensor, e), known[i].grad(e));
            session_run_free(&r);
            session_close(s);
        }
}
END_TEST

static int check(const char *model, const char *values, const char *grad, const char *backend,
                 Buf *out) {
    SessionOptions o = {
        .grad = grad, .values = values, .backend = backend, .toolchain = "tcc", .seed = 1};
    Session *s = session_open(model, &o, &diag);
    ck_assert_msg(s != NULL, "%s: %s", model, diag_first(&diag));
    int code = session_check(s, out, false, &diag);
    session_close(s);
    return code;
}

START_TEST(recorded_gradients_are_compared) {
    static const char *const rungs[] = {"eager", "aot_eager", "aot_eager_decomp_partition", "full"};
    for (int k = 0; k < COUNT(rungs); k++) {
        begin();
        Buf out = {.arena = &arena};
        int code =
            check(LAYERNORM "model.pt2", LAYERNORM "values.safetensors", "params", rungs[k], &out);
        ck_assert_msg(code == 0, "%s: %s %s", rungs[k], buf_str(&out), diag_first(&diag));
        ck_assert_msg(strstr(buf_str(&out), "8 rows compared, 0 wrong, 0 not compared"), "%s",
                      buf_str(&out));
    }
    begin();
    Buf out = {.arena = &arena};
    ck_assert_int_eq(
        check(LAYERNORM "model.pt2", LAYERNORM "values.safetensors", "none", "eager", &out), 0);
    ck_assert_ptr_nonnull(strstr(buf_str(&out), "2 rows compared, 0 wrong, 6 not compared"));
}
END_TEST

// One gradient in the file is changed: its row, and no other, is wrong at that element.
START_TEST(a_changed_gradient_is_found) {
    begin();
    Arena a = {0};
    TensorFile f;
    Map rows = {.arena = &arena};
    Tensor fresh;
    ck_assert(safetensors_open(&f, &a, LAYERNORM "values.safetensors", &diag));
    const Tensor *old = map_get(&f.tensors, "grad.state.up.bias");
    ck_assert(old && tensor_to(&fresh, old, old->dtype, &diag));
    tensor_set_f64(&fresh, 5, tensor_get_f64(&fresh, 5) + 1);
    for (MapEntry *e = map_first(&f.tensors); e; e = map_next(&f.tensors, e))
        map_put(&rows, e->key, e->ptr == old ? (void *)&fresh : e->ptr);
    folder = dir_temp(&arena, &diag);
    char *path = path_join(&arena, folder, "values.safetensors");
    ck_assert(safetensors_write(path, &rows, &diag));
    tensor_drop(&fresh);
    safetensors_close(&f);
    arena_free(&a);
    Buf out = {.arena = &arena};
    int code = check(LAYERNORM "model.pt2", path, "params", "eager", &out);
    Diag quiet = {.arena = &arena};
    ck_assert(dir_remove(folder, &quiet));
    ck_assert_int_eq(code, 1);
    const char *row = strstr(buf_str(&out), "grad.state.up.bias");
    ck_assert_ptr_nonnull(row);
    ck_assert_msg(strstr(row, "[5]"), "%s", buf_str(&out));
    ck_assert_ptr_nonnull(strstr(buf_str(&out), "8 rows compared, 1 wrong"));
}
END_TEST

// All recordings at hand, if they are: the random stream of dropout_train is its own below eager.
START_TEST(every_recorded_model_trains) {
    static const char *const roots[] = {"../shared/corpus", "../shared/corpus_large"};
    static const char *const rungs[] = {"eager", "aot_eager", "aot_eager_decomp_partition"};
    for (int i = 0; i < COUNT(roots); i++) {
        Arena a = {0};
        int n = 0;
        Diag d = {.arena = &a};
        char **names = file_is_dir(roots[i]) ? dir_list(&a, roots[i], &n, &d) : NULL;
        for (int k = 0; k < n; k++) {
            const char *dir = path_join(&a, roots[i], names[k]);
            const char *model = path_join(&a, dir, "model.pt2");
            if (!file_exists(path_join(&a, dir, "aot_joint_graph.txt")) || !file_exists(model))
                continue;
            for (int r = 0; r < COUNT(rungs); r++) {
                begin();
                Buf out = {.arena = &arena};
                int code = check(model, path_join(&a, dir, "values.safetensors"), "params",
                                 rungs[r], &out);
                bool other = r == 2 && !strcmp(names[k], "dropout_train");
                ck_assert_msg(code == 0 || other, "%s %s: %s %s", names[k], rungs[r], buf_str(&out),
                              diag_first(&diag));
            }
        }
        arena_free(&a);
    }
}
END_TEST

static double worst(const Tensor *got, const Tensor *exact) {
    double most = 0, err = 0;
    for (int64_t i = 0, n = tensor_numel(got); i < n; i++) {
        double x = tensor_get_f64(exact, i), g = tensor_get_f64(got, i);
        if (!isfinite(x) || !isfinite(g))
            continue;
        most = fmax(most, fabs(x));
        err = fmax(err, fabs(g - x));
    }
    return err / fmax(most, 1e-2); // a gradient that is zero but for rounding is as good as any
}

static int compare_rung(Session *s, const char *name, const RunResult *exact, const char *rung) {
    Arena a = {0};
    Diag d = {.arena = &a};
    RunResult r = {0};
    RunRequest q = {.backend = (Backend)backend_find(rung), .toolchain = toolchain_find("tcc")};
    int bad = 0;
    if (!session_run(s, &q, &r, &a, &d)) {
        fprintf(stderr, "%s %s: %s\n", name, rung, diag_first(&d));
        bad = 1;
    }
    for (int i = 0; !bad && i < exact->n_grads; i++) {
        bool there = exact->grads[i].kind == RT_tensor;
        if (there != (i < r.n_grads && r.grads[i].kind == RT_tensor)) {
            fprintf(stderr, "%s %s: gradient %d is %s\n", name, rung, i,
                    there ? "missing" : "too much");
            bad++;
            continue;
        }
        double err = there ? worst(&r.grads[i].tensor, &exact->grads[i].tensor) : 0;
        DType dt = there ? r.grads[i].tensor.dtype : DT_f32;
        if (!(err < (dt == DT_bf16 ? 0.1 : dt == DT_f16 ? 0.02 : 2e-4))) {
            fprintf(stderr, "%s %s: gradient %d is off by %g\n", name, rung, i, err);
            bad++;
        }
    }
    session_run_free(&r);
    arena_free(&a);
    return bad;
}

// Every captured model at hand, all its floats wanting gradients: each rung against eager in
// float64.
START_TEST(rungs_agree_on_gradients) {
    static const char *const rungs[] = {"eager", "aot_eager", "aot_eager_decomp_partition", "full"};
    const char *root = getenv("FX_TRAIN_ROOT") ? getenv("FX_TRAIN_ROOT") : "../shared/corpus";
    Arena a = {0};
    int n = 0, bad = 0;
    Diag d = {.arena = &a};
    char **names = file_is_dir(root) ? dir_list(&a, root, &n, &d) : NULL;
    for (int k = 0; k < n; k++) {
        begin();
        SessionOptions o = {.grad = "all", .toolchain = "tcc"};
        const char *dir = path_join(&a, root, names[k]), *model = path_join(&a, dir, "model.pt2");
        Session *s = file_exists(model) ? session_open(model, &o, &diag) : NULL;
        RunRequest q = {.backend = BACKEND_eager, .in_f64 = true};
        RunResult exact = {0};
        if (!s)
            continue;
        if (!session_run(s, &q, &exact, &arena, &diag))
            fprintf(stderr, "%s: %s\n", names[k], diag_first(&diag));
        else
            for (int r = 0; r < COUNT(rungs) && (r < 2 || strcmp(names[k], "dropout_train")); r++)
                bad += compare_rung(s, names[k], &exact, rungs[r]);
        session_run_free(&exact);
        session_close(s);
    }
    ck_assert_int_eq(bad, 0);
    arena_free(&a);
}
END_TEST

// Processor time of the kernels of both halves of a chain.
static double time_of_kernels(int length) {
    begin();
    Buf b = {.arena = &arena}, body = {.arena = &arena};
    buf_puts(&body, "v0 = x.sin()");
    for (int i = 1; i < length; i++)
        buf_printf(&body, "; v%d = v%d.sin()", i, i - 1);
    put_graph(&b, "x: " F44, buf_str(&body), arena_printf(&arena, "(v%d,)", length - 1));
    Session *s = open_text(&b, "all", "eager");
    Pipeline *p = session_pipeline(s);
    ck_assert(pipeline_build(p, 1, STAGE_post_fusion) && pipeline_build(p, 2, STAGE_post_fusion));
    clock_t start = clock();
    ck_assert(pipeline_build(p, 1, STAGE_kernels) && pipeline_build(p, 2, STAGE_kernels));
    double seconds = (double)(clock() - start) / CLOCKS_PER_SEC;
    session_close(s);
    return seconds;
}

START_TEST(kernels_of_a_long_chain_take_time_in_proportion) {
    double one = time_of_kernels(500), eight = time_of_kernels(4000);
    ck_assert_msg(eight < 20 * one + 0.2, "%.2f s for 500 ops, %.2f s for 4000", one, eight);
}
END_TEST

Suite *suite_session_train(void) {
    static const TTest *tests[11];
    int n = 0;
    tests[n++] = a_joint_graph_has_a_forward_and_a_backward;
    tests[n++] = settings_rebuild_from_their_stage;
    tests[n++] = links_hold_from_a_backward_line_to_the_captured_graph;
    tests[n++] = folders_are_numbered_as_pytorch_does;
    tests[n++] = odd_models_train_or_say_why_not;
    tests[n++] = gradients_are_those_worked_out_by_hand_on_every_rung;
    tests[n++] = recorded_gradients_are_compared;
    tests[n++] = a_changed_gradient_is_found;
    tests[n++] = every_recorded_model_trains;
    tests[n++] = rungs_agree_on_gradients;
    tests[n++] = kernels_of_a_long_chain_take_time_in_proportion;
    return unit_suite("session_train", tests, n);
}
