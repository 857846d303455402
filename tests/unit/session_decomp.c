// session_decomp.c: decompositions chosen by hand: names, tables, what is counted, undo.
#include <string.h>

#include "app/app.h"
#include "core/base/file.h"
#include "core/session.h"
#include "tests/unit/unit.h"

static App app;

static void open_model(const char *path) {
    static SessionOptions options = {.grad = "none", .toolchain = "tcc"};
    app_init(&app, 80, 24);
    app.options = &options;
    ck_assert_msg(app_open(&app, path), "%s", diag_first(&app.diag));
}

static void close_model(void) {
    app_close(&app);
    memset(&app, 0, sizeof app);
}

static void run(const char *line) {
    ck_assert_msg(app_run(&app, line), "%s: %s", line, diag_first(&app.diag));
}

static int joint_count(const char *op) {
    const Artifact *a = pipeline_build(session_pipeline(app.session), 0, STAGE_joint);
    int n = 0;
    ck_assert_ptr_nonnull(a);
    GRAPH_EACH (a->graph, node)
        n += !strcmp(node->target, op);
    return n;
}

static DecompRow row_of(const char *key) {
    Arena a = {0};
    DecompRow *rows, found = {0};
    int n = session_decomps(app.session, &a, &rows);
    for (int i = 0; i < n; i++)
        if (!strcmp(rows[i].key, key))
            found = rows[i];
    ck_assert_ptr_nonnull(found.key);
    arena_free(&a);
    return found;
}

START_TEST(names_stand_for_all_overloads) {
    Arena a = {0};
    Diag d = {.arena = &a};
    OpId *ops;
    ck_assert_int_eq(session_decomp_find("gelu", &a, &ops, &d), 1);
    ck_assert_int_eq(ops[0], OP_aten_gelu_default);
    ck_assert_int_eq(session_decomp_find("torch.ops.aten.gelu.default", &a, &ops, &d), 1);
    ck_assert_int_eq(session_decomp_find("aten.pixel_sh", &a, &ops, &d), 1);
    ck_assert_int_eq(ops[0], OP_aten_pixel_shuffle_default);
    int n = session_decomp_find("lerp", &a, &ops, &d); // lerp.Scalar, lerp.Tensor
    ck_assert_int_eq(n, 2);
    ck_assert_int_eq(session_decomp_find("lerp.Scalar", &a, &ops, &d), 1);
    ck_assert_int_eq(d.errors, 0);
    arena_free(&a);
}
END_TEST

START_TEST(wrong_names_are_told) {
    static const struct {
        const char *name, *says, *hint;
    } wrong[] = {
        {"conv", "aten.conv1d, aten.conv2d", NULL},
        {"gellu", "no op 'gellu'", "did you mean aten.gelu?"},
        {"relu", "is in no table", NULL}, // though relu6 begins so
        {"", "no op ''", NULL},
    };
    for (int i = 0; i < COUNT(wrong); i++) {
        Arena a = {0};
        Diag d = {.arena = &a};
        OpId *ops;
        ck_assert_int_eq(session_decomp_find(wrong[i].name, &a, &ops, &d), 0);
        ck_assert_msg(strstr(diag_first(&d), wrong[i].says) != NULL, "%s", diag_first(&d));
        if (wrong[i].hint)
            ck_assert_str_eq(d.at[0].hint, wrong[i].hint);
        arena_free(&a);
    }
}
END_TEST

// gelu is 5 ops by Inductor's table and none of core ATen's; addmm is taken apart for degenerate
// sizes only.
START_TEST(tables_and_counts) {
    open_model("tests/corpus/layernorm_gelu/graph_code.txt");
    DecompRow gelu = row_of("aten.gelu.default"), addmm = row_of("aten.addmm.default");
    ck_assert(gelu.on && !gelu.yours && gelu.info.inductor && !gelu.info.core);
    ck_assert_int_eq(gelu.fired, 1);
    ck_assert(addmm.info.asked);
    ck_assert_int_eq(addmm.declined, 2);
    ck_assert_int_eq(addmm.fired, 0);
    ck_assert_ptr_nonnull(addmm.why);
    ck_assert_int_eq(joint_count("torch.ops.aten.erf.default"), 1);
    run("set decomposition_table=core_aten");
    ck_assert_int_eq(row_of("aten.gelu.default").kept, 1);
    ck_assert_int_eq(joint_count("torch.ops.aten.gelu.default"), 1);
    ck_assert_int_eq(joint_count("torch.ops.aten.native_layer_norm.default"), 1);
    ck_assert_int_eq(joint_count("torch.ops.aten.t.default"), 0); // both tables have it
    run("set decomposition_table=none");
    ck_assert_int_eq(joint_count("torch.ops.aten.t.default"), 2);
    run("decomp on gelu"); // out of an empty table too
    ck_assert_int_eq(joint_count("torch.ops.aten.erf.default"), 1);
    close_model();
}
END_TEST

START_TEST(off_on_undo) {
    open_model("tests/corpus/layernorm_gelu/graph_code.txt");
    run("decomp off gelu linear");
    ck_assert_int_eq(joint_count("torch.ops.aten.gelu.default"), 1);
    ck_assert_int_eq(joint_count("torch.ops.aten.linear.default"), 2);
    ck_assert_int_eq(row_of("aten.gelu.default").kept, 1);
    ck_assert(row_of("aten.linear.default").yours && !row_of("aten.linear.default").on);
    run("undo"); // both, since they were one command
    ck_assert_int_eq(joint_count("torch.ops.aten.gelu.default"), 0);
    ck_assert_int_eq(joint_count("torch.ops.aten.linear.default"), 0);
    run("redo");
    ck_assert_int_eq(joint_count("torch.ops.aten.gelu.default"), 1);
    run("decomp rule gelu");
    ck_assert_int_eq(joint_count("torch.ops.aten.gelu.default"), 0);
    // A rule that declines is not forced: for a real product it would compute something else.
    run("decomp on addmm ; decomp rule linear");
    ck_assert_int_eq(joint_count("torch.ops.aten.addmm.default"), 2);
    // A setting is a change like any other.
    run("set decomposition_table=core_aten ; undo");
    ck_assert_int_eq(joint_count("torch.ops.aten.erf.default"), 1);
    close_model();
}
END_TEST

// A wrong name among right ones changes nothing.
START_TEST(all_or_nothing) {
    open_model("tests/corpus/layernorm_gelu/graph_code.txt");
    ck_assert(!app_run(&app, "decomp off gelu nosuch"));
    ck_assert_int_eq(overrides_count(session_overrides(app.session)), 0);
    ck_assert(!app_run(&app, "decomp off"));
    ck_assert(!app_run(&app, "decomp wild gelu"));
    close_model();
}
END_TEST

Suite *suite_session_decomp(void) {
    static const TTest *tests[5];
    int n = 0;
    tests[n++] = names_stand_for_all_overloads;
    tests[n++] = wrong_names_are_told;
    tests[n++] = tables_and_counts;
    tests[n++] = off_on_undo;
    tests[n++] = all_or_nothing;
    return unit_suite("session_decomp", tests, n);
}
