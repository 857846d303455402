// session_device.c: settings files: what they say, what is wrong with broken ones and where, and
// models with declared custom ops.
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

static SettingsFile *parse(const char *text) {
    SettingsFile *f = ARENA_NEW(&arena, SettingsFile);
    f->arena = &arena;
    settings_file_parse(f, (Str){text, strlen(text)}, "chip.settings", &diag);
    return f;
}

START_TEST(statements) {
    setup();
    SettingsFile *f = parse("# a comment\n"
                            "device chip # and another\n"
                            "\n"
                            "keep aten.addmm\taten.bmm\n"
                            "  decompose aten.silu\n"
                            "set max_fusion_size 16\n"
                            "set decomposition_table=core_aten\n"
                            "op lib::f(Tensor x, str mode=\"a#b\") -> Tensor # not in the text\n"
                            "shape same x");
    ck_assert_msg(diag.n == 0, "%s", diag_first(&diag));
    ck_assert_str_eq(f->device, "chip");
    ck_assert_int_eq(f->statements.n, 5);
    ck_assert_int_eq(f->statements.at[1].kind, STMT_keep);
    ck_assert_str_eq(f->statements.at[1].name, "aten.bmm");
    ck_assert_int_eq(f->statements.at[1].at.line, 4);
    ck_assert_int_eq(f->statements.at[1].at.col, 17);
    ck_assert_int_eq(f->statements.at[2].kind, STMT_decompose);
    ck_assert_str_eq(f->statements.at[4].name, "decomposition_table");
    ck_assert_str_eq(f->statements.at[4].value, "core_aten");
    ck_assert_int_eq(f->ops.ops.n, 1);
    ck_assert_str_eq(f->ops.ops.at[0]->args[1].dflt.s, "a#b");
    teardown();
}
END_TEST

typedef struct Broken {
    const char *text, *says, *hint; // pieces
    int line, col;
} Broken;

#define OP "op lib::f(Tensor x, Tensor w, int k) -> Tensor\n"

static const Broken broken[] = {
    {"wild aten.mm\n", "unknown statement 'wild'", "device, keep", 1, 1},
    {"device a\nkep aten.mm\n", "unknown statement 'kep'", "did you mean keep?", 2, 1},
    {"device\n", "a name is expected", "device mychip", 1, 7},
    {"device a b\n", "the end of the line", NULL, 1, 10},
    {"device a\ndevice b\n", "named twice", NULL, 2, 8},
    {"keep\n", "names of ops are expected", NULL, 1, 5},
    {"set\n", "a setting and its value", NULL, 1, 4},
    {"set max_fusion_size\n", "its value is expected", NULL, 1, 20},
    {"set max_fusion_size 1 2\n", "the end of the line", NULL, 1, 23},
    {"op lib::f(Tensr x) -> Tensor\n", "found 'Tensr x) -> ", "op mylib::foo", 1, 11},
    {"op lib::f(Tensor x\n", "ends too early", NULL, 1, 19},
    {"op f(Tensor x) -> Tensor\n", "expected '::'", NULL, 1, 5},
    {"op aten::foo(Tensor x) -> Tensor\n", "is built in", NULL, 1, 4},
    {"op lib::f(Tensor x) -> int\n", "no tensors have no rule", NULL, 1, 21},
    {OP OP, "declared twice", NULL, 2, 4},
    {"  shape same x\n", "no op is declared above", NULL, 1, 1},
    {OP "shape same z\n", "has no argument 'z'", "shape same x, or", 2, 12},
    {OP "shape same k\n", "k is no tensor", NULL, 2, 12},
    {OP "shape x\n", "`same NAME` or a list", NULL, 2, 7},
    {OP "shape [x.size(0), w.size(1)\n", "',' or ']' is expected", NULL, 2, 28},
    {OP "shape [x.size(a)]\n", "a number is expected", NULL, 2, 15},
    {OP "shape [x]\n", ".size(N) or .numel()", NULL, 2, 9},
    {OP "shape [1, y.size(0)]\n", "has no argument 'y'", NULL, 2, 11},
    {OP "shape [((((((((((((((((((((((((((((((((((1))))))))))))]\n", "too many brackets", NULL, 2,
     40},
    {OP "shape [1]\nshape [1]\n", "has its shape already", NULL, 3, 7},
    {OP "dtype float33\n", "has no argument 'float33'", "dtype x, or dtype float32", 2, 7},
    {OP "alias q\n", "has no argument 'q'", NULL, 2, 7},
    {OP "mutates k\n", "k is no tensor", NULL, 2, 9},
    {"op lib::f(Tensor x) -> ()\nalias x\n", "no result", NULL, 2, 7},
};

START_TEST(broken_lines_are_told) {
    for (int i = 0; i < COUNT(broken); i++) {
        setup();
        const Broken *b = &broken[i];
        parse(b->text);
        ck_assert_msg(diag.errors == 1, "%s: %d errors: %s", b->text, diag.errors,
                      diag_first(&diag));
        const DiagItem *e = &diag.at[0];
        ck_assert_msg(strstr(e->text, b->says) != NULL, "%s: %s", b->text, e->text);
        ck_assert_msg(e->line == b->line && e->col == b->col, "%s: %d:%d, not %d:%d: %s", b->text,
                      e->line, e->col, b->line, b->col, e->text);
        ck_assert_str_eq(e->file, "chip.settings");
        ck_assert_ptr_nonnull(e->source);
        ck_assert_msg(e->hint && (!b->hint || strstr(e->hint, b->hint)), "%s: %s", b->text,
                      e->hint);
        teardown();
    }
}
END_TEST

// Rules of a broken declaration say nothing more; each other line has its own message; there is an
// end to them.
START_TEST(many_errors) {
    setup();
    parse("op lib::f(Tensr x) -> Tensor\nshape same x\ndtype z\nwild\n");
    ck_assert_int_eq(diag.errors, 2);
    teardown();
    setup();
    Buf b = {.arena = &arena};
    for (int i = 0; i < 1000; i++)
        buf_puts(&b, "wild\n");
    parse(buf_str(&b));
    ck_assert_int_eq(diag.errors, 20);
    teardown();
    setup();
    SettingsFile f = {.arena = &arena};
    ck_assert(!settings_file_parse(&f, (Str){"keep\0x", 6}, "x", &diag));
    ck_assert_ptr_nonnull(strstr(diag.at[0].hint, "zero byte"));
    teardown();
}
END_TEST

static bool open_with(const char *model, const char *settings, const char *text) {
    const char *path = settings;
    if (text) {
        char *folder = dir_temp(&arena, &diag);
        path = path_join(&arena, folder, "chip.settings");
        ck_assert(file_write(path, text, strlen(text), &diag));
    }
    SessionOptions o = {.grad = "none", .toolchain = "tcc", .settings = path};
    session = session_open(model, &o, &diag);
    if (text) {
        Diag quiet = {.arena = &arena};
        dir_remove(arena_strndup(&arena, path, (size_t)(path_base(path) - path)), &quiet);
    }
    return session != NULL;
}

// What a name means is told at its place, and then nothing at all is taken over.
START_TEST(meaning_is_checked) {
    static const Broken wrong[] = {
        {"keep aten.addmm aten.nosuch\n", "no op 'aten.nosuch'", NULL, 1, 17},
        {"decompose relu\n", "is in no table", NULL, 1, 11},
        {"set max_fusion_sise 4\n", "unknown setting", "did you mean max_fusion_size?", 1, 5},
        {"set max_fusion_size four\n", "is not a number", NULL, 1, 5},
        {"set joint_custom_pre_pass /nosuch.c\n", "is not a file that is there", NULL, 1, 5},
    };
    for (int i = 0; i < COUNT(wrong); i++) {
        setup();
        ck_assert(!open_with("samples/block.pt2", NULL, wrong[i].text));
        const DiagItem *e = &diag.at[0];
        ck_assert_msg(strstr(e->text, wrong[i].says) != NULL, "%s", e->text);
        ck_assert_msg(e->line == wrong[i].line && e->col == wrong[i].col, "%d:%d: %s", e->line,
                      e->col, e->text);
        if (wrong[i].hint)
            ck_assert_str_eq(e->hint, wrong[i].hint);
        teardown();
    }
    setup(); // what no table takes apart stays whole anyway
    ck_assert_msg(open_with("samples/block.pt2", NULL, "keep aten.relu\n"), "%s",
                  diag_first(&diag));
    ck_assert_int_eq(overrides_count(session->overrides), 0);
    teardown();
}
END_TEST

static const Graph *graph_at(StageId stage) {
    const Artifact *a = pipeline_build(session->pipeline, 0, stage);
    ck_assert_msg(a != NULL, "%s", diag_first(&pipeline_unit(session->pipeline, 0)->diag));
    Diag d = {.arena = &arena};
    ck_assert(graph_verify(a->graph, &d));
    return a->graph;
}

static int count(const Graph *g, const char *op) {
    int n = 0;
    GRAPH_EACH (g, node)
        n += !strcmp(node->target, op);
    return n;
}

START_TEST(the_sample) {
    setup();
    ck_assert_msg(open_with("samples/block.pt2", "samples/mychip.settings", NULL), "%s",
                  diag_first(&diag));
    const Graph *g = graph_at(STAGE_joint);
    ck_assert_int_eq(count(g, "torch.ops.aten.linear.default"), 4);
    ck_assert_int_eq(count(g, "torch.ops.aten.addmm.default"), 0);
    ck_assert_int_eq(count(g, "torch.ops.aten.gelu.default"), 1);
    ck_assert_int_eq(count(g, "torch.ops.aten.native_layer_norm.default"), 0);
    ck_assert_str_eq(session_setting(session, "max_fusion_size", &arena), "16");
    ck_assert_str_eq(session_device_name(session), "mychip");
    Buf out = {.arena = &arena};
    ck_assert_int_eq(session_report_run(session, NULL, &out, false, &diag), 0);
    teardown();
}
END_TEST

static void statement_is(const Graph *g, const char *name, const char *text) {
    Buf b = {.arena = &arena};
    Node *n = graph_find(g, name);
    ck_assert_msg(n != NULL, "no node %s", name);
    node_print(&b, n, &fx_style_log);
    ck_assert_str_eq(buf_str(&b), text);
}

#define CUSTOM "tests/data/custom/graph_code.txt"
#define HOP                                                                                        \
    "torch.ops.higher_order.auto_functionalized_v2(torch.ops.mychip.clip_.default, limit = 6.0, "

// As PyTorch 2.11 prints them: other arguments by name, defaults too; how the written one lies in
// its base; the bases. A write to a whole tensor, through a slice of an input, through a column.
START_TEST(writes_are_functionalized) {
    setup();
    ck_assert_msg(open_with(CUSTOM, "samples/mychip.settings", NULL), "%s", diag_first(&diag));
    const Graph *g = graph_at(STAGE_joint);
    statement_is(g, "scale",
                 "scale: \"f32[4, 8][8, 1]cpu\" = torch.ops.mychip.scale.default(arg0_1, 2.0)");
    statement_is(g, "auto_functionalized_v2",
                 "auto_functionalized_v2 = " HOP "_x_base_index = 0, _all_bases = [scale])");
    statement_is(g, "auto_functionalized_v2_1",
                 "auto_functionalized_v2_1 = " HOP
                 "_x_base_index = 0, _x_slice_dim = 0, _x_slice_start = 1, _x_slice_end = 3, "
                 "_all_bases = [arg0_1])");
    statement_is(g, "auto_functionalized_v2_2",
                 "auto_functionalized_v2_2 = " HOP
                 "_x_base_index = 0, _x_size = (4,), _x_stride = (8,), _x_storage_offset = 2, "
                 "_all_bases = [getitem_1])");
    // The item before the base's is the op's own result, None, which nobody uses.
    statement_is(g, "getitem_1", "getitem_1: \"f32[4, 8][8, 1]cpu\" = auto_functionalized_v2[1]");
    ck_assert_ptr_null(graph_find(g, "getitem"));
    statement_is(g, "copy_",
                 "copy_: \"f32[4, 8][8, 1]cpu\" = torch.ops.aten.copy_.default(arg0_1, getitem_3)");
    statement_is(g, "matmul",
                 "matmul: \"f32[4, 16][16, 1]cpu\" = "
                 "torch.ops.mychip.matmul.default(getitem_5, arg1_1)");
    teardown();
}
END_TEST

// The form of exported programs: what is written comes by the op's own keywords. `a` is written
// itself; `y` is an input, which must keep its value; of one tensor twice, one is a clone.
START_TEST(the_first_form_comes_back_too) {
    setup();
    ck_assert_msg(open_with("tests/data/custom/first_form.txt", NULL,
                            "op mychip::clip_(Tensor(a!) x, float limit=6.0) -> ()\n"
                            "    mutates x\n"
                            "op mychip::swap_(Tensor(a!)[] xs) -> ()\n"),
                  "%s", diag_first(&diag));
    const Graph *g = graph_at(STAGE_post_grad);
    ck_assert_int_eq(count(g, "torch.ops.higher_order.auto_functionalized"), 0);
    ck_assert_int_eq(count(g, "torch.ops.mychip.clip_.default"), 2);
    ck_assert_int_eq(count(g, "torch.ops.mychip.swap_.default"), 1);
    ck_assert_int_eq(count(g, "torch.ops.aten.clone.default"), 2);
    const Node *first = graph_find(g, "clip__default"), *mul = graph_find(g, "mul");
    ck_assert(first && mul && first->args[0].node == mul);
    ck_assert_double_eq(first->args[1].f, 2.0);
    const Artifact *code = pipeline_build(session->pipeline, 0, STAGE_kernels);
    ck_assert_msg(code != NULL, "%s", diag_first(&pipeline_unit(session->pipeline, 0)->diag));
    teardown();
}
END_TEST

// Behind post-grad the writes are back, in place where nobody needs the old value; the generated
// code calls the ops in their order. It is not run.
START_TEST(writes_come_back) {
    setup();
    ck_assert(open_with(CUSTOM, "samples/mychip.settings", NULL));
    const Graph *g = graph_at(STAGE_post_grad);
    ck_assert_int_eq(count(g, "torch.ops.mychip.clip_.default"), 3);
    ck_assert_int_eq(count(g, "torch.ops.aten.clone.default"), 0);
    ck_assert_int_eq(count(g, "torch.ops.aten.copy_.default"), 0);
    const Artifact *code = pipeline_build(session->pipeline, 0, STAGE_kernels);
    ck_assert_msg(code != NULL, "%s", diag_first(&pipeline_unit(session->pipeline, 0)->diag));
    const char *text = code->code->text, *first = strstr(text, "fx_call(\"torch.ops.mychip.scale"),
               *matmul = strstr(text, "fx_call(\"torch.ops.mychip.matmul");
    const char *clip = first;
    for (int i = 0; i < 3; i++) {
        ck_assert_ptr_nonnull(clip =
                                  strstr(clip + 1, "fx_call(\"torch.ops.mychip.clip_.default\""));
        ck_assert(i != 1 || clip < matmul); // the one on the input may come at any time
    }
    Buf out = {.arena = &arena};
    static const char *const backends[] = {"eager", "aot_eager", "full"};
    for (int i = 0; i < COUNT(backends); i++) {
        Diag d = {.arena = &arena};
        ck_assert(session_set_backend(session, backends[i], NULL, &d));
        ck_assert_int_ne(session_report_run(session, NULL, &out, false, &d), 0);
        ck_assert_msg(strstr(diag_first(&d), "mychip::scale, which is declared and has no kernel"),
                      "%s", diag_first(&d));
        ck_assert_int_eq(d.at[0].line, 5);
    }
    teardown();
}
END_TEST

// A base whose old value is read later is cloned with its strides.
START_TEST(old_values_are_kept) {
    setup();
    static const char model[] = "class GraphModule(torch.nn.Module):\n"
                                "    def forward(self, L_x_: \"f32[4][1]cpu\"):\n"
                                "        l_x_ = L_x_\n"
                                "        y: \"f32[4][1]cpu\" = l_x_ + 1\n"
                                "        z: \"f32[4][1]cpu\" = y.clone()\n"
                                "        c = torch.ops.lib.fill_.default(z)\n"
                                "        r: \"f32[4][1]cpu\" = z + y\n"
                                "        return (r,)\n";
    char *folder = dir_temp(&arena, &diag);
    const char *path = path_join(&arena, folder, "graph_code.txt");
    ck_assert(file_write(path, model, strlen(model), &diag));
    ck_assert_msg(open_with(path, NULL, "op lib::fill_(Tensor x) -> ()\nmutates x\n"), "%s",
                  diag_first(&diag));
    const Graph *g = graph_at(STAGE_post_grad);
    // Its own clone was a copy of y that became y; y is read again: a copy is needed.
    const Node *call = graph_find(g, "fill__default");
    ck_assert_ptr_nonnull(call);
    GRAPH_EACH (g, n)
        if (node_is(n, OP_aten_add_Tensor) && n->args[1].kind == VAL_node)
            ck_assert_ptr_ne(n->args[0].node, n->args[1].node);
    ck_assert_ptr_nonnull(pipeline_build(session->pipeline, 0, STAGE_kernels));
    dir_remove(folder, &diag);
    teardown();
}
END_TEST

// Without a declaration the op is shown as before; without a shape rule what the graph says holds.
START_TEST(less_is_known) {
    setup();
    SessionOptions o = {.grad = "none", .toolchain = "tcc"};
    session = session_open(CUSTOM, &o, &diag);
    ck_assert_ptr_nonnull(session);
    ck_assert_ptr_null(pipeline_build(session->pipeline, 0, STAGE_kernels));
    session_close(session);
    ck_assert(open_with(CUSTOM, NULL,
                        "op mychip::scale(Tensor x, float s) -> Tensor\n"
                        "op mychip::clip_(Tensor x) -> ()\nmutates x\n"
                        "op mychip::matmul(Tensor x, Tensor w) -> Tensor\n"));
    const Node *n = graph_find(graph_at(STAGE_joint), "matmul");
    ck_assert_int_eq(n->val.kind, VAL_tensor);
    ck_assert_int_eq(n->val.tensor->ndim, 2);
    teardown();
}
END_TEST

static const TensorMeta *tensor(Sym *s, DType d, int64_t a, int64_t b) {
    const Expr *size[2] = {sym_int(s, a), sym_int(s, b)};
    return meta_contiguous(&arena, s, d, 2, size, (Device){DEV_cpu, -1});
}

START_TEST(shape_rules) {
    setup();
    SettingsFile *f = parse("op lib::pack(Tensor x, int block=16) -> (Tensor, Tensor)\n"
                            "shape [(x.numel() + block - 1) // block, block % 7 * 2]\n"
                            "shape [x.size(-1)]\n"
                            "dtype x\n"
                            "dtype int32\n"
                            "op lib::bad(Tensor x) -> Tensor\nshape [x.size(5)]\n");
    ck_assert_msg(diag.n == 0, "%s", diag_first(&diag));
    Sym *s = sym_new(&arena);
    Value args[2] = {val_tensor(tensor(s, DT_bf16, 5, 7)), val_int(16)}, out;
    MetaCtx m = {.arena = &arena, .sym = s, .diag = &diag};
    ck_assert(op_meta(&m, f->ops.ops.at[0], args, &out));
    ck_assert_int_eq(out.n, 2);
    const TensorMeta *a = out.at[0].tensor, *b = out.at[1].tensor;
    ck_assert(expr_is(a->size[0], 3) && expr_is(a->size[1], 4)); // (35 + 15) // 16, 16 % 7 * 2
    ck_assert_int_eq(a->dtype, DT_bf16);
    ck_assert(b->ndim == 1 && expr_is(b->size[0], 7) && b->dtype == DT_i32);
    // Symbols stay symbols.
    const Expr *sym = sym_symbol(s, "s7"), *size[2] = {sym, sym_int(s, 3)};
    args[0] = val_tensor(meta_contiguous(&arena, s, DT_f32, 2, size, (Device){DEV_cpu, -1}));
    ck_assert(op_meta(&m, f->ops.ops.at[0], args, &out));
    ck_assert_str_eq(sym_str(&arena, out.at[0].tensor->size[0]), "((3*s7 + 15)//16)");
    ck_assert(!op_meta(&m, f->ops.ops.at[1], args, &out));
    ck_assert_ptr_nonnull(strstr(diag_first(&diag), "x.size(5)"));
    // A packet stands for its only overload.
    ck_assert_ptr_eq(opset_find(&f->ops, "torch.ops.lib.pack"), f->ops.ops.at[0]);
    ck_assert_ptr_null(opset_find(&f->ops, "lib.pac"));
    teardown();
}
END_TEST

Suite *suite_session_device(void) {
    static const TTest *tests[11];
    int n = 0;
    tests[n++] = statements;
    tests[n++] = broken_lines_are_told;
    tests[n++] = many_errors;
    tests[n++] = meaning_is_checked;
    tests[n++] = the_sample;
    tests[n++] = writes_are_functionalized;
    tests[n++] = writes_come_back;
    tests[n++] = the_first_form_comes_back_too;
    tests[n++] = old_values_are_kept;
    tests[n++] = less_is_known;
    tests[n++] = shape_rules;
    return unit_suite("session_device", tests, n);
}
