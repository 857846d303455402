// session_pass.c: custom passes: what the samples do, and that no pass, however broken, does more
// than fail with its name and line.
#include <string.h>

#include "core/base/file.h"
#include "core/fx/edit.h"
#include "core/session_private.h"
#include "tests/unit/unit.h"

static Arena arena;
static Diag diag;
static Session *session;

static void setup(void) {
    arena = (Arena){0};
    diag = (Diag){.arena = &arena};
    unit_folder_make();
}

static void teardown(void) {
    if (session)
        session_close(session);
    session = NULL;
    unit_folder_drop();
    arena_free(&arena);
}

static const char *write_pass(const char *name, const char *body) {
    return unit_file(name, body, strlen(body));
}

// The limit is for what never ends: an honest pass on a busy machine gets a minute.
static void open_limited(const char *model, const char *hook, const char *path, int ms) {
    const char *sets[] = {arena_printf(&arena, "%s=%s", hook, path),
                          arena_printf(&arena, "custom_pass_timeout_ms=%d", ms), NULL};
    SessionOptions o = {.grad = "none", .toolchain = "tcc", .sets = sets};
    session = session_open(model, &o, &diag);
    ck_assert_msg(session != NULL, "%s", diag_first(&diag));
}

static void open_with(const char *model, const char *hook, const char *path) {
    open_limited(model, hook, path, 60000);
}

#define CHAIN   "tests/corpus/chain/graph_code.txt"
#define BLOCK   "samples/block.pt2"
#define INCLUDE "#include \"fxray_pass.h\"\n"

typedef struct Hostile {
    const char *what, *body, *says; // body: behind the include, so that its first line is 2
    int line;                       // 0: unknown
    DiagCause cause;
} Hostile;

#define FIRST_CALL "FxNode *n = fx_first(g); while (!*fx_op(n)) n = fx_next(n);\n"
#define PASS(body) INCLUDE "int fxray_pass(FxGraph *g) {\n" body "return 0;\n}\n"

static const Hostile hostiles[] = {
    {"writes to null", PASS("fx_first(g);\n*(int *)0 = 1;\n"), "Segmentation fault", 3, CAUSE_tool},
    {"divides by zero", PASS("int z = fx_n_args(fx_first(g));\nz = 1 / z; if (z)\n"),
     "Floating point exception", 3, CAUSE_tool},
    {"never ends", PASS("for (;;)\nfx_first(g);\n"), "no answer within 500 ms", 4, CAUSE_tool},
    {"never ends, without a call", PASS("fx_first(g);\nfor (;;);\n"), "no answer within 500 ms", 3,
     CAUSE_tool},
    {"recurses for ever",
     INCLUDE "int down(FxGraph *g, int n) {\nchar b[4096];\nmemset(b, n, 4096);"
             "return fx_first(g) ? down(g, n + 1) + b[n & 4095] : 0; }\n"
             "int fxray_pass(FxGraph *g) { return down(g, 0); }\n",
     "Segmentation fault", 4, CAUSE_tool},
    {"erases a used node", PASS(FIRST_CALL "fx_erase(n);\n"), "is still used by", 4, CAUSE_input},
    {"erases an input",
     PASS("FxNode *n = fx_first(g);\nFxNode *m = fx_next(n);\n"
          "fx_replace_uses(n, m);\nfx_erase(n);\n"),
     "placeholder", 6, CAUSE_input},
    {"erases the output",
     PASS("FxNode *n = fx_first(g);\nwhile (fx_next(n)) n = fx_next(n);\n"
          "fx_erase(n);\n"),
     "the output", 5, CAUSE_input},
    {"goes on with an erased node",
     PASS(FIRST_CALL "const FxValue *a[1] = {fx_arg(n, 0)};\nFxNode *m = fx_insert_before(n, "
                     "\"aten.relu.default\", "
                     "a, 1);\nfx_erase(m);\nfx_next(m);\n"),
     "it was erased", 7, CAUSE_input},
    {"takes null for a node", PASS("fx_name(0);\n"), "the pointer is null", 3, CAUSE_input},
    {"another shape of the result",
     PASS("FxNode *n = fx_first(g), *last = 0;\n"
          "for (; n; n = fx_next(n)) if (*fx_op(n)) last = n;\n"
          "const FxValue *d[1] = {fx_of_int(0)};\nconst FxValue *a[2] = {fx_of_node(last), "
          "fx_of_list(d, 1)};\nn = fx_insert_after(last, \"aten.sum.dim_IntList\", a, 2);\n"
          "fx_replace_uses(last, n);\n"),
     "a pass keeps the results' shapes", 7, CAUSE_input},
    {"arguments that the op refuses", PASS(FIRST_CALL "fx_set_arg(n, 0, fx_of_int(3));\n"), "", 4,
     CAUSE_input},
    {"uses a later node",
     PASS(FIRST_CALL "FxNode *first = n;\nwhile (fx_next(n) && "
                     "*fx_op(fx_next(n))) n = fx_next(n);\nconst FxValue *a[1] = {fx_of_node(n)};\n"
                     "fx_insert_before(first, \"aten.relu.default\", a, 1);\n"),
     "comes later", 7, CAUSE_input},
    {"an op that is none", PASS(FIRST_CALL "fx_insert_before(n, \"aten.nosuch.default\", 0, 0);\n"),
     "unknown op 'aten.nosuch.default'", 4, CAUSE_input},
    {"an op that writes",
     PASS(FIRST_CALL "const FxValue *a[1] = {fx_arg(n, 0)};\n"
                     "fx_insert_before(n, \"aten.relu_.default\", a, 1);\n"),
     "writes its arguments", 5, CAUSE_input},
    {"too many arguments",
     PASS(FIRST_CALL "const FxValue *a[9];\nfx_insert_before(n, "
                     "\"aten.relu.default\", a, 9);\n"),
     "9 arguments", 5, CAUSE_input},
    {"a keyword that the op lacks", PASS(FIRST_CALL "fx_set_kwarg(n, \"wild\", fx_of_int(1));\n"),
     "has no argument 'wild'", 4, CAUSE_input},
    {"returns 7", INCLUDE "int fxray_pass(FxGraph *g) { return 7; }\n", "returned 7", 0,
     CAUSE_input},
    {"says why it fails", PASS("return fx_fail(g, \"no %s\\n\\033[31m\", \"matmul\");\n"),
     "no matmul  [31m", 3, CAUSE_input},
    {"is no C", PASS("FxNode *n = fx_first(g)\n"), "';' expected", 4, CAUSE_tool},
    {"calls what is not there", PASS("fx_nosuch(g);\n"), "undefined symbol 'fx_nosuch'", 0,
     CAUSE_tool},
    {"opens files",
     INCLUDE "void *fopen(const char *, const char *);\n"
             "int fxray_pass(FxGraph *g) { return fopen(\"/etc/passwd\", \"r\") != 0; }\n",
     "undefined symbol 'fopen'", 0, CAUSE_tool},
    {"includes a header",
     "#include <stdio.h>\n" INCLUDE "int fxray_pass(FxGraph *g) { return 0; }\n",
     "include file 'stdio.h' not found", 1, CAUSE_tool},
    {"has no pass", INCLUDE "int another(FxGraph *g) { return 0; }\n", "no function fxray_pass", 0,
     CAUSE_input},
    {"is empty", "", "no function fxray_pass", 0, CAUSE_input},
};

static void check_hostile(const Hostile *h) {
    const char *path = write_pass("hostile.c", h->body);
    bool endless = str_starts(h->what, "never ends");
    open_limited(BLOCK, "joint_custom_pre_pass", path, endless ? 500 : 60000);
    ck_assert_ptr_null(pipeline_build(session->pipeline, 0, STAGE_kernels));
    const Unit *u = pipeline_unit(session->pipeline, 0);
    ck_assert_int_eq(u->failed, STAGE_joint_passes);
    ck_assert_ptr_nonnull(pipeline_at(session->pipeline, 0, STAGE_joint)); // the stage before stays
    ck_assert_msg(u->diag.errors == 1, "%s: %d errors", h->what, u->diag.errors);
    const DiagItem *e = &u->diag.at[0];
    ck_assert_msg(strstr(e->text, h->says) != NULL, "%s: %s", h->what, e->text);
    ck_assert_msg(str_starts(e->text, "joint_custom_pre_pass: "), "%s: %s", h->what, e->text);
    ck_assert_str_eq(e->file, path);
    ck_assert_msg(e->line == h->line, "%s: line %d, not %d: %s", h->what, e->line, h->line,
                  e->text);
    ck_assert_msg(e->cause == h->cause, "%s: cause %d", h->what, (int)e->cause);
    // Without the pass all is well again, in the same session.
    ck_assert(session_set(session, "joint_custom_pre_pass", "", &diag));
    ck_assert_ptr_nonnull(pipeline_build(session->pipeline, 0, STAGE_joint_passes));
    session_close(session);
    session = NULL;
}

START_TEST(broken_passes_fail_alone) {
    setup();
    for (int i = 0; i < COUNT(hostiles); i++)
        check_hostile(&hostiles[i]);
    teardown();
}
END_TEST

// A pass that wrote over the graph it was given, or over all memory it can reach, changes nothing
// here, whether or not it lives to answer.
START_TEST(damage_stays_outside) {
    static const char *const bodies[] = {
        PASS("memset(g, 0x41, 256);\n"),
        PASS("for (FxNode *n = fx_first(g), *m; n; n = m) { m = fx_next(n); memset(n, 0xff, 64); "
             "}\n"),
    };
    for (int i = 0; i < COUNT(bodies); i++) {
        setup();
        open_with(BLOCK, "joint_custom_post_pass", write_pass("damage.c", bodies[i]));
        const Artifact *a = pipeline_build(session->pipeline, 0, STAGE_joint);
        uint64_t before = graph_hash(a->graph);
        pipeline_build(session->pipeline, 0, STAGE_joint_passes);
        ck_assert_uint_eq(graph_hash(a->graph), before);
        Diag d = {.arena = &arena};
        ck_assert(graph_verify(a->graph, &d));
        teardown();
    }
}
END_TEST

START_TEST(header_versions) {
    setup();
    Buf header = {.arena = &arena};
    pass_header_print(&header);
    const char *pass = write_pass("pass.c", PASS(""));
    // The program's own header beside the pass is fine; one of another version is told.
    write_pass("fxray_pass.h", buf_str(&header));
    open_with(CHAIN, "joint_custom_pre_pass", pass);
    ck_assert_ptr_nonnull(pipeline_build(session->pipeline, 0, STAGE_joint_passes));
    static const char *const others[] = {
        "#define FXRAY_PASS_VERSION 99\ntypedef struct FxGraph FxGraph;\n", "/* nothing */\n"};
    for (int i = 0; i < COUNT(others); i++) {
        write_pass("fxray_pass.h", others[i]);
        session_changed(session, STAGE_joint_passes);
        ck_assert_ptr_null(pipeline_build(session->pipeline, 0, STAGE_joint_passes));
        const DiagItem *e = &pipeline_unit(session->pipeline, 0)->diag.at[0];
        ck_assert_msg(
            strstr(e->text, i ? "tells no version"
                              : "version 99 of fxray_pass.h, this program takes version 1"),
            "%s", e->text);
        ck_assert_ptr_nonnull(strstr(e->hint, "table pass_header"));
    }
    teardown();
}
END_TEST

// The header of the samples is the one that the program prints.
START_TEST(header_is_printed) {
    setup();
    Buf header = {.arena = &arena};
    pass_header_print(&header);
    Str text = file_read(&arena, "samples/passes/fxray_pass.h", &diag);
    ck_assert_ptr_nonnull(text.ptr);
    ck_assert_str_eq(text.ptr, buf_str(&header));
    teardown();
}
END_TEST

static int step_of(const char *pass) {
    const Unit *u = pipeline_unit(session->pipeline, 0);
    for (int i = 0; i < u->steps.n; i++)
        if (u->steps.at[i]->pass && !strcmp(u->steps.at[i]->pass, pass))
            return i;
    return -1;
}

static const Artifact *step(int i) {
    return pipeline_unit(session->pipeline, 0)->steps.at[i];
}

// Where torch/_inductor/fx_passes/{joint_graph,post_grad}.py call them.
START_TEST(places_of_the_hooks) {
    setup();
    const char *path =
        write_pass("nothing.c", PASS("fx_log(g, \"%d\", fx_n_users(fx_first(g)));\n"));
    open_with(BLOCK, "joint_custom_pre_pass", path);
    ck_assert(session_set(session, "joint_custom_post_pass", path, &diag));
    ck_assert(session_set(session, "post_grad_custom_pre_pass", path, &diag));
    ck_assert(session_set(session, "post_grad_custom_post_pass", path, &diag));
    ck_assert_ptr_nonnull(pipeline_build(session->pipeline, 0, STAGE_post_grad));
    int pre = step_of("joint_custom_pre_pass"), post = step_of("joint_custom_post_pass");
    ck_assert_int_eq(step(pre - 1)->stage, STAGE_joint);
    ck_assert_int_eq(step(post + 1)->stage, STAGE_partition);
    ck_assert_str_eq(step(step_of("post_grad_custom_pre_pass") - 1)->pass, "reorder_for_locality");
    ck_assert_str_eq(step(step_of("post_grad_custom_post_pass") + 1)->pass, "stable_sort");
    ck_assert(!step(pre)->changed);
    ck_assert_ptr_eq(step(pre)->graph, step(pre - 1)->graph); // nothing changed, nothing copied
    ck_assert_str_eq(step(pre)->note, "1\n");
    ck_assert_str_eq(step(pre)->file, "nothing.c");
    // One of them may be left out like any pass.
    decide_override(session->overrides, DECIDE_pass, "joint_custom_pre_pass", false);
    session_changed(session, STAGE_joint_passes);
    ck_assert_ptr_nonnull(pipeline_build(session->pipeline, 0, STAGE_joint_passes));
    ck_assert_ptr_null(step(step_of("joint_custom_pre_pass"))->note);
    teardown();
}
END_TEST

// A run of forward and backward tells why the joint graph that they are parted from is not there.
START_TEST(training_runs_tell_why) {
    setup();
    const char *hook = arena_printf(&arena, "joint_custom_post_pass=%s",
                                    write_pass("fails.c", PASS("return 7;\n")));
    const char *sets[] = {hook, NULL};
    SessionOptions o = {.grad = "all", .toolchain = "tcc", .sets = sets};
    session = session_open(CHAIN, &o, &diag);
    ck_assert_msg(session != NULL, "%s", diag_first(&diag));
    RunRequest q = {.backend = BACKEND_aot_eager_decomp_partition};
    RunResult r;
    ck_assert(!session_run(session, &q, &r, &arena, &diag));
    ck_assert_msg(strstr(diag_first(&diag), "joint_custom_post_pass: the pass returned 7"), "%s",
                  diag_first(&diag));
    teardown();
}
END_TEST

START_TEST(no_hook_no_helper) {
    setup();
    SessionOptions o = {.grad = "none", .toolchain = "tcc"};
    session = session_open(BLOCK, &o, &diag);
    ck_assert_ptr_nonnull(pipeline_build(session->pipeline, 0, STAGE_kernels));
    ck_assert_ptr_null(session->helpers);
    teardown();
}
END_TEST

static int count(const Graph *g, const char *op) {
    int n = 0;
    GRAPH_EACH (g, node)
        n += !strcmp(node->target, op);
    return n;
}

// x + a * b is one node, which comes from the sum and, in part, from the product.
START_TEST(sample_fuse_addcmul) {
    setup();
    open_with(BLOCK, "joint_custom_post_pass", "samples/passes/fuse_addcmul.c");
    const Artifact *a = pipeline_build(session->pipeline, 0, STAGE_joint_passes);
    ck_assert_msg(a != NULL, "%s", diag_first(&pipeline_unit(session->pipeline, 0)->diag));
    const Graph *before = a->parent->graph;
    int fused = count(a->graph, "torch.ops.aten.addcmul.default");
    ck_assert_int_gt(fused, 0);
    ck_assert_int_eq(a->matches, fused);
    ck_assert_int_eq(count(before, "torch.ops.aten.add.Tensor") - fused,
                     count(a->graph, "torch.ops.aten.add.Tensor"));
    ck_assert_int_eq(a->graph->n_nodes, before->n_nodes - fused);
    GRAPH_EACH (a->graph, n) {
        if (strcmp(n->target, "torch.ops.aten.addcmul.default") != 0)
            continue;
        ck_assert_int_eq(n->val.kind, VAL_tensor);
        int links;
        const Link *l = origins_from(a->origins, n->id, &links);
        ck_assert_int_eq(links, 2);
        int sums = 0, products = 0;
        for (int i = 0; i < links; i++) {
            const Node *from = graph_by_id(before, l[i].item);
            sums += node_is(from, OP_aten_add_Tensor) && l[i].strength == LINK_same;
            products += node_is(from, OP_aten_mul_Tensor) && l[i].strength == LINK_part;
        }
        ck_assert_int_eq(sums, 1);
        ck_assert_int_eq(products, 1);
    }
    teardown();
}
END_TEST

// Dividing by 8, a power of two, and multiplying by its reciprocal give the same bits.
START_TEST(sample_reciprocal_runs) {
    setup();
    open_with(BLOCK, "post_grad_custom_post_pass", "samples/passes/reciprocal.c");
    Buf with = {.arena = &arena}, without = {.arena = &arena};
    ck_assert_int_eq(session_report_run(session, NULL, &with, false, &diag), 0);
    const Artifact *a = step(step_of("post_grad_custom_post_pass"));
    ck_assert(a->changed);
    ck_assert_int_eq(a->matches, 1);
    ck_assert_ptr_nonnull(strstr(a->note, "now times 0.25"));
    ck_assert(session_set(session, "post_grad_custom_post_pass", "", &diag));
    ck_assert_int_eq(session_report_run(session, NULL, &without, false, &diag), 0);
    const char *out = strstr(buf_str(&with), "out0"), *was = strstr(buf_str(&without), "out0");
    ck_assert(out && was);
    ck_assert_int_eq(strncmp(out, was, strcspn(out, "\n")), 0);
    teardown();
}
END_TEST

START_TEST(sample_count_ops) {
    setup();
    open_with(BLOCK, "joint_custom_post_pass", "samples/passes/count_ops.c");
    const Artifact *a = pipeline_build(session->pipeline, 0, STAGE_joint_passes);
    ck_assert_ptr_nonnull(a);
    ck_assert(!a->changed);
    ck_assert_ptr_nonnull(strstr(a->note, "   4  aten.addmm.default"));
    teardown();
}
END_TEST

// Every argument given anew is the same graph: text there, edits back, on every kind of value.
START_TEST(arguments_survive_the_way) {
    setup();
    const char *path =
        write_pass("same.c", PASS("for (FxNode *n = fx_first(g); n; n = fx_next(n))\n"
                                  "for (int i = 0; *fx_op(n) && i < fx_n_args(n); i++)\n"
                                  "fx_set_arg(n, i, fx_arg(n, i));\n"));
    static const char *const models[] = {"chain", "cnn_pool", "inplace_view", "layernorm_gelu",
                                         "mlp_softmax"};
    for (int i = 0; i < COUNT(models); i++) {
        open_with(arena_printf(&arena, "tests/corpus/%s/graph_code.txt", models[i]),
                  "joint_custom_pre_pass", path);
        pipeline_build(session->pipeline, 0, STAGE_joint_passes);
        const Artifact *a = step(step_of("joint_custom_pre_pass"));
        ck_assert(a->changed);
        ck_assert_uint_eq(graph_hash(a->graph), graph_hash(a->parent->graph));
        session_close(session);
        session = NULL;
    }
    teardown();
}
END_TEST

// ---- edits as text

static const char graph_text[] =
    "class <lambda>(torch.nn.Module):\n"
    "    def forward(self, x: \"f32[4][1]cpu\", y: \"f32[4][1]cpu\"):\n"
    "        mul: \"f32[4][1]cpu\" = torch.ops.aten.mul.Tensor(x, y)\n"
    "        add: \"f32[4][1]cpu\" = torch.ops.aten.add.Tensor(x, mul, alpha = 1)\n"
    "        return (add,)\n";

static Graph *small_graph(void) {
    FxDoc doc = {.arena = &arena};
    Str text = {graph_text, sizeof graph_text - 1};
    ck_assert(fx_parse(&doc, sym_new(&arena), text, "small", &diag));
    return doc.at[0].graph;
}

START_TEST(edits_are_made) {
    setup();
    Graph *g = small_graph();
    EditLog log = {.arena = &arena};
    static const char text[] = "edits 1\n"
                               "7 insert 3 aten.addcmul.default(n0, n0, n1, value = 2.0)\n"
                               "8 replace 3 5\n9 erase 3\n9 erase 2\n";
    ck_assert_msg(graph_edit(g, (Str){text, sizeof text - 1}, &log, &diag), "%s",
                  diag_first(&diag));
    ck_assert(graph_verify(g, &diag));
    Buf out = {.arena = &arena};
    graph_print(&out, g, &fx_style_log, NULL);
    ck_assert_ptr_nonnull(
        strstr(buf_str(&out), "torch.ops.aten.addcmul.default(x, x, y, value = 2.0)"));
    ck_assert_int_eq(g->n_nodes, 4);
    ck_assert_int_eq(log.inserted.n, 1);
    ck_assert_int_eq(log.erased.n, 2);
    // Last touched: by the line that put it there; the output by the replacement.
    ck_assert_int_eq((int)map_find_id(&log.lines, (uint64_t)log.inserted.at[0])->i, 7);
    ck_assert_int_eq((int)map_find_id(&log.lines, (uint64_t)graph_output_node(g)->id)->i, 8);
    teardown();
}
END_TEST

START_TEST(broken_edits_are_refused) {
    static const char *const broken[] = {
        "",
        "edits 2\n1 erase 2\n",
        "edits 1\n1 erase 99\n",
        "edits 1\n1 erase 4294967296\n",
        "edits 1\n1 erase -1\n",
        "edits 1\n1 erase 2 3\n",
        "edits 1\nx erase 2\n",
        "edits 1\n1 wild 2\n",
        "edits 1\n1 erase 0\n",
        "edits 1\n1 erase 4\n",
        "edits 1\n1 replace 4 2\n",
        "edits 1\n1 replace 2 2\n",
        "edits 1\n1 insert 0 aten.relu.default(n0)\n",
        "edits 1\n1 insert 3 aten.relu_.default(n0)\n",
        "edits 1\n1 insert 3 aten.relu.default(n77)\n",
        "edits 1\n1 insert 3 aten.relu.default(n-1)\n",
        "edits 1\n1 insert 3 aten.relu.default(n0\n",
        "edits 1\n1 insert 3 aten.relu.default([n0, [n88]])\n",
        "edits 1\n1 insert 3 aten.relu.default(n0) \xff\n",
        "edits 1\n1 insert 3 no such op(n0)\n",
        "edits 1\n1 args 0 (n1)\n",
        "edits 1\n1 args 4 (n1)\n",
        "edits 1\n1 insert 3 aten.relu.default(n0)\n1 erase 5\n1 args 3 (n5)\n",
    };
    for (int i = 0; i < COUNT(broken); i++) {
        setup();
        Graph *g = small_graph();
        EditLog log = {.arena = &arena};
        Diag d = {.arena = &arena};
        bool ok = graph_edit(g, (Str){broken[i], strlen(broken[i])}, &log, &d);
        ck_assert_msg(!ok && d.errors == 1, "edits %d: %s", i, diag_first(&d));
        teardown();
    }
}
END_TEST

Suite *suite_session_pass(void) {
    static const TTest *tests[13];
    int n = 0;
    tests[n++] = broken_passes_fail_alone;
    tests[n++] = damage_stays_outside;
    tests[n++] = header_versions;
    tests[n++] = header_is_printed;
    tests[n++] = places_of_the_hooks;
    tests[n++] = training_runs_tell_why;
    tests[n++] = no_hook_no_helper;
    tests[n++] = sample_fuse_addcmul;
    tests[n++] = sample_reciprocal_runs;
    tests[n++] = sample_count_ops;
    tests[n++] = arguments_survive_the_way;
    tests[n++] = edits_are_made;
    tests[n++] = broken_edits_are_refused;
    return unit_suite("session_pass", tests, n);
}
