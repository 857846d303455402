// load_forms.c: one model in every form (samples/forms): what each tells is the same graph, with
// the weights, ranges and signature that the form has; what we print of it reads back.
#include "tests/unit/unit.h"

#include <math.h>
#include <string.h>

#include "core/base/file.h"
#include "core/load/load.h"
#include "core/session_private.h"

#define FORMS "samples/forms/"

static Arena arena;
static Diag diag;

static LoadedModel *opens(const char *path) {
    diag = (Diag){.arena = &arena};
    LoadedModel *m = load_model(&arena, path, &diag);
    ck_assert_msg(m != NULL, "%s: %s", path, diag_first(&diag));
    for (int i = 0; i < m->graphs.n; i++)
        ck_assert_msg(graph_verify(m->graphs.at[i].graph, &diag), "%s: %s", path,
                      diag_first(&diag));
    return m;
}

static const char *write_file(const char *name, const char *text) {
    return unit_file(name, text, strlen(text));
}

static const char *code_of(const Graph *g) {
    Buf b = {.arena = &arena};
    graph_print(&b, g, &fx_style_code, NULL);
    return buf_str(&b);
}

static Node *node_named(const LoadedGraph *g, const char *name) {
    Node *n = graph_find(g->graph, name);
    ck_assert_msg(n != NULL, "no node %s", name);
    return n;
}

// ---- archives

static void check_signature(const LoadedGraph *g) {
    static const InputKind kinds[] = {IN_parameter, IN_parameter, IN_buffer,
                                      IN_constant,  IN_user,      IN_user};
    static const char *const states[] = {"fc.weight", "fc.bias", "steps", "table", NULL, NULL};
    static const OutputSpec outs[] = {
        {OUT_buffer_mutation, "steps"}, {OUT_input_mutation, "seen"}, {OUT_user, NULL}};
    ck_assert_int_eq(g->n_inputs, COUNT(kinds));
    for (int i = 0; i < COUNT(kinds); i++) {
        ck_assert_int_eq(g->inputs[i].kind, kinds[i]);
        ck_assert_pstr_eq(g->inputs[i].state, states[i]);
        ck_assert_int_eq(g->inputs[i].user, i < 4 ? -1 : i - 4);
    }
    ck_assert_int_eq(g->n_outputs, COUNT(outs));
    for (int i = 0; i < COUNT(outs); i++) {
        ck_assert_int_eq(g->outputs[i].kind, outs[i].kind);
        ck_assert_pstr_eq(g->outputs[i].target, outs[i].target);
    }
}

// Ranges of s77, as range_constraints has them.
static void check_range(const LoadedModel *m) {
    SymRange r = sym_range(m->sym, sym_symbol(m->sym, "s77"));
    ck_assert_int_eq(r.lo, 2);
    ck_assert_int_eq(r.hi, 64);
}

START_TEST(archives_of_all_versions) {
    static const char *const files[] = {"23", "25", "27", "28", "29"};
    LoadedModel *newest = opens(FORMS "counter_29.pt2");
    const Graph *want = newest->graphs.at[0].graph;
    for (int i = 0; i < COUNT(files); i++) {
        LoadedModel *m = opens(arena_printf(&arena, FORMS "counter_%s.pt2", files[i]));
        const LoadedGraph *g = &m->graphs.at[0];
        ck_assert_str_eq(m->form, "pt2");
        ck_assert_str_eq(code_of(g->graph), code_of(want));
        ck_assert_str_eq(node_named(g, "add_1")->def->qualname, "torch.ops.aten.add.Tensor");
        ck_assert_str_eq(node_named(g, "mul")->stack->code,
                         "y = self.fc(x) * self.table + self.steps");
        check_signature(g);
        check_range(m);
        int64_t hint;
        ck_assert(sym_hint(m->sym, node_tensor(node_named(g, "relu"))->size[0], &hint));
        ck_assert_int_eq(hint, 6);
        static const char *const states[] = {"fc.weight", "fc.bias", "steps", "table"};
        for (int k = 0; k < COUNT(states); k++) {
            const Tensor *t = map_get(&m->state, states[k]);
            ck_assert_ptr_nonnull(t);
            ck_assert_uint_eq(tensor_digest(t), tensor_digest(map_get(&newest->state, states[k])));
        }
        ck_assert_double_eq(tensor_get_f64(map_get(&m->state, "steps"), 0), 2.0);
        ck_assert_double_eq(tensor_get_f64(map_get(&m->state, "table"), 1), -1.0);
        load_close(m);
    }
    load_close(newest);
    arena_free(&arena);
}
END_TEST

// ---- texts

START_TEST(texts_are_one_graph) {
    static const char *const files[] = {
        "counter_graph.txt",  "counter_graph_old.txt", "counter_table.txt",    "counter_code.txt",
        "counter_boxed.txt",  "counter_pytree.txt",    "counter_expanded.txt", "counter_meta.txt",
        "counter_export.txt", "counter_readable_old.txt", "counter_trace.log"};
    const char *want = code_of(opens(FORMS "counter_29.pt2")->graphs.at[0].graph);
    for (int i = 0; i < COUNT(files); i++) {
        LoadedModel *m = opens(arena_printf(&arena, FORMS "%s", files[i]));
        const Graph *g = m->graphs.at[0].graph;
        const char *got = code_of(g);
        // A pytree's results are a list.
        size_t len = (size_t)(strstr(want, "return") - want);
        ck_assert_msg(!strncmp(got, want, len), "%s: %s", files[i], got);
        GRAPH_EACH (g, n)
            ck_assert_msg(n->op != FX_call_function || n->def, "%s: %s", files[i], n->target);
    }
    arena_free(&arena);
}
END_TEST

static void gives_shapes(const char *file, const char *binds, const char *node, const char *want) {
    LoadedModel *m = opens(arena_printf(&arena, FORMS "%s", file));
    ck_assert(m->graphs.at[0].untyped);
    ck_assert_msg(load_give_shapes(m, NULL, binds, &diag), "%s", diag_first(&diag));
    Buf b = {.arena = &arena};
    meta_print(&b, node_tensor(node_named(&m->graphs.at[0], node)), true, false);
    ck_assert_str_eq(buf_str(&b), want);
}

START_TEST(shapes_are_bound_or_asked_for) {
    static const char all[] = "p_fc_weight=f32[3,4] p_fc_bias=f32[3],b_steps=f32[], c_table=f32[3] "
                              "x=f32[s77, 4][1, s77] seen=f32[3]";
    gives_shapes("counter_graph.txt", all, "relu", "f32[s77, 3][3, 1]");
    gives_shapes("counter_table.txt", all, "add_2", "f32[3][1]");
    gives_shapes("counter_boxed.txt", all, "linear", "f32[s77, 3][3, 1]");
    LoadedModel *m = opens(FORMS "counter_graph.txt");
    ck_assert(!load_check_shapes(&m->graphs.at[0], &diag));
    ck_assert_str_eq(diag_first(&diag),
                     "the text does not tell the shapes and dtypes of `p_fc_weight`, `p_fc_bias`, "
                     "`b_steps`, `c_table`, `x`, `seen`");
    ck_assert_int_eq(diag.at[0].line, 1);
    ck_assert_ptr_nonnull(strstr(diag.at[0].hint, "--bind 'p_fc_weight=f32[4, 8], p_fc_bias=f32["
                                                  "4, 8], b_steps=f32[4, 8], …'"));
    static const char *const bad[][2] = {
        {"q=f32[3]", "--bind q=f32[3]: no graph has an input `q`"},
        {"x=f99[3]", "`f99[3]` is no annotation"},
        {"x=in0", "--bind x=in0: there is no values file"},
        {"x", "--bind x: INPUT=ROW is expected"},
        {"x=f32[4", "a shape that is not closed by `]`"},
    };
    for (int i = 0; i < COUNT(bad); i++) {
        diag = (Diag){.arena = &arena};
        ck_assert(!load_give_shapes(m, NULL, bad[i][0], &diag));
        ck_assert_msg(strstr(diag_first(&diag), bad[i][1]) != NULL, "%s", diag_first(&diag));
    }
    TensorFile f;
    ck_assert(safetensors_open(&f, &arena, FORMS "counter.values.safetensors", &diag));
    m = opens(FORMS "counter_graph.txt");
    ck_assert(load_give_shapes(m, &f, NULL, &diag) && load_check_shapes(&m->graphs.at[0], &diag));
    ck_assert(expr_is(node_tensor(node_named(&m->graphs.at[0], "relu"))->size[0], 6));
    safetensors_close(&f);
    arena_free(&arena);
}
END_TEST

START_TEST(attributes_and_defaults) {
    LoadedModel *m = opens(FORMS "paths.txt");
    const LoadedGraph *g = &m->graphs.at[0];
    ck_assert_str_eq(node_named(g, "layers_0_bias")->target, "layers.0.bias");
    ck_assert_double_eq(node_named(g, "scale")->val.f, 2.0);
    ck_assert_str_eq(node_named(g, "x")->type, "torch.Tensor");
    ck_assert_str_eq(graph_output_node(g->graph)->type, "torch.Tensor");
    ck_assert(load_give_shapes(m, NULL, "layers.0.weight=bf16[2, 3]", &diag));
    ck_assert_int_eq(node_tensor(node_named(g, "layers_0_weight"))->dtype, DT_bf16);
    ck_assert(!load_check_shapes(g, &diag));
    ck_assert_str_eq(diag_first(&diag),
                     "the text does not tell the shapes and dtypes of `x`, `layers.0.bias`");
    arena_free(&arena);
}
END_TEST

// FX_GRAPH_SHOW_META tells metadata, strides and the op that was traced.
START_TEST(meta_blocks) {
    const LoadedGraph *g = &opens(FORMS "counter_meta.txt")->graphs.at[0];
    ck_assert(!g->untyped);
    ck_assert_str_eq(node_named(g, "sum_1")->original_aten, "aten.sum.dim_IntList");
    ck_assert_ptr_null(node_named(g, "x")->original_aten);
    const TensorMeta *x = node_tensor(node_named(g, "x"));
    ck_assert_str_eq(sym_str(&arena, x->size[0]), "s77");
    const char *path = write_file("meta.txt", "def forward(self, x):\n"
                                              "    \"\"\"\n"
                                              "    val: 'FakeTensor(..., size=(4, 8), "
                                              "dtype=torch.float16)'\n"
                                              "    tensor_meta: ('TensorMetadata(shape=torch.Size("
                                              "[4, 8]), dtype=torch.float16, '\n"
                                              "     'requires_grad=False, stride=(1, 4), "
                                              "memory_format=None)')\n"
                                              "    odd: <object>\n"
                                              "    seq_nr: '99999999999999'\n"
                                              "    \"\"\"\n"
                                              "    \"\"\"\n"
                                              "    seq_nr: '7'\n"
                                              "    \"\"\"\n"
                                              "    y = torch.ops.aten.sin.default(x);  x = None\n"
                                              "    return y\n");
    g = &opens(path)->graphs.at[0];
    Buf b = {.arena = &arena};
    meta_print(&b, node_tensor(node_named(g, "y")), true, false);
    ck_assert_str_eq(buf_str(&b), "f16[4, 8][1, 4]");
    ck_assert_int_eq(node_named(g, "y")->seq_nr, 7);
    ck_assert_int_eq(node_named(g, "x")->seq_nr, -1);
    arena_free(&arena);
}
END_TEST

// ---- print(ExportedProgram)

static const char *exported_text(const char *path) {
    Buf b = {.arena = &arena};
    load_print_export(&b, &opens(path)->graphs.at[0]);
    return buf_str(&b);
}

START_TEST(exported_program_prints) {
    Str want = file_read(&arena, FORMS "counter_export.txt", &diag);
    static const char *const files[] = {"counter_export.txt", "counter_export_old.txt",
                                        "counter_29.pt2", "counter_25.pt2"};
    for (int i = 0; i < COUNT(files); i++) {
        const char *got = exported_text(arena_printf(&arena, FORMS "%s", files[i]));
        const char *p = strstr(want.ptr, "Graph signature");
        // Files of 2.2 and later free names; what is freed is the same in all.
        ck_assert_msg(!strcmp(strstr(got, "Graph signature"), p), "%s: %s", files[i], got);
        check_signature(&opens(arena_printf(&arena, FORMS "%s", files[i]))->graphs.at[0]);
    }
    const char *once = exported_text(FORMS "counter_29.pt2");
    ck_assert_str_eq(exported_text(write_file("export.txt", once)), once);
    const char *oldest =
        "ExportedProgram:\n    class GraphModule(torch.nn.Module):\n"
        "        def forward(self, arg0_1: f32[3], arg1_1: f32[], arg2_1: f32[s0, 3]):\n"
        "            # code: y = x * w\n"
        "            mul: f32[s0, 3] = torch.ops.aten.mul.Tensor(arg2_1, arg0_1);\n"
        "            return (mul,)\n\n"
        "    Graph signature: ExportGraphSignature(parameters=['w'], buffers=['n'], "
        "user_inputs=['arg2_1'], user_outputs=['mul'], inputs_to_parameters={'arg0_1': 'w'}, "
        "inputs_to_buffers={'arg1_1': 'n'}, buffers_to_mutate={}, backward_signature=None)\n"
        "    Range constraints: {s0: RangeConstraint(min_val=3, max_val=9)}\n";
    LoadedModel *m = opens(write_file("oldest.txt", oldest));
    ck_assert_int_eq(m->graphs.at[0].inputs[0].kind, IN_parameter);
    ck_assert_str_eq(m->graphs.at[0].inputs[1].state, "n");
    ck_assert_int_eq(m->graphs.at[0].inputs[2].user, 0);
    SymRange r = sym_range(m->sym, sym_symbol(m->sym, "s0"));
    ck_assert(r.lo == 3 && r.hi == 9);
    arena_free(&arena);
}
END_TEST

// ---- TORCH_TRACE

#define PREFIX "V1129 12:00:00.123456 4242 torch/_logging/structured.py:28] "
#define GRAPH(op)                                                                                  \
    "\tclass G(torch.nn.Module):\n\t    def forward(self, x: \"f32[s0]\"):\n"                      \
    "\t        y: \"f32[s0]\" = torch." op "(x);  x = None\n\t        return (y,)\n"

START_TEST(trace_logs) {
    LoadedModel *m = opens(FORMS "counter_trace.log");
    ck_assert_str_eq(m->form, "trace_log");
    ck_assert_int_eq(m->graphs.n, 2);
    ck_assert_str_eq(m->graphs.at[0].title, "__compiled_fn_1");
    ck_assert_str_eq(m->graphs.at[1].kind, "inference");
    ck_assert_str_eq(m->graphs.at[1].compile_id, "0/0");
    check_range(m);
    int64_t hint;
    ck_assert(sym_hint(m->sym, sym_symbol(m->sym, "s77"), &hint) && hint == 6);
    const char *text =
        PREFIX "{\"dynamo_output_graph\": {}, \"frame_id\": 0, \"frame_compile_id\": 0, "
               "\"attempt\": 0}\n" GRAPH("relu")
        PREFIX "{\"dynamo_output_graph\": {}, \"frame_id\": 0, \"frame_compile_id\": 0, "
               "\"attempt\": 1}\n" GRAPH("sin")
        PREFIX "{\"create_symbol\": {\"symbol\": \"s0\", \"val\": \"x\", \"vr\": \"[9, 3]\"}}\n"
        PREFIX "{broken\n"
        PREFIX "{\"artifact\": {\"name\": \"after_post_grad_graph\", \"encoding\": \"string\"}, "
               "\"frame_id\": 1, \"frame_compile_id\": 2}\n" GRAPH("ops.aten.sin.default")
        PREFIX "{\"dynamo_outp";
    m = opens(write_file("trace.log", text));
    ck_assert_int_eq(m->graphs.n, 2);
    ck_assert_str_eq(node_named(&m->graphs.at[0], "y")->target, "torch.sin");
    ck_assert_int_eq(m->graphs.at[1].level, LEVEL_post_grad);
    ck_assert_str_eq(m->graphs.at[1].compile_id, "1/2");
    ck_assert_int_eq(diag.n, 1); // the broken record
    ck_assert_int_eq(diag.at[0].line, 18);
    arena_free(&arena);
}
END_TEST

// ---- fx_graph_runnable.py

static void round_trip(const char *path, const char *node) {
    const Graph *g = opens(path)->graphs.at[0].graph;
    Buf b = {.arena = &arena};
    session_print_runnable(&b, g);
    LoadedModel *m = opens(write_file("runnable.py", buf_str(&b)));
    ck_assert_str_eq(m->form, "fx_runnable");
    const Graph *again = m->graphs.at[0].graph;
    ck_assert_str_eq(code_of(again), code_of(g));
    Buf c = {.arena = &arena};
    session_print_runnable(&c, again);
    ck_assert_str_eq(buf_str(&c), buf_str(&b));
    Node *n = graph_find(again, node);
    ck_assert_msg(n && n->val.kind != VAL_none, "%s: %s", path, node);
    ck_assert_int_eq(again->children.n, g->children.n);
    for (int i = 0; i < g->children.n; i++)
        ck_assert_str_eq(code_of(again->children.at[i].graph), code_of(g->children.at[i].graph));
}

START_TEST(runnable_round_trips) {
    round_trip(FORMS "counter_29.pt2", "relu");
    round_trip(FORMS "choice.txt", "true_graph_0");
    round_trip("samples/norm.pt2", "rsqrt");
    LoadedModel *m = opens(FORMS "paths.txt");
    ck_assert(load_give_shapes(m, NULL, "x=f32[4,3] layers.0.weight=f32[2, 3]", &diag));
    Graph *g = (Graph *)(uintptr_t)m->graphs.at[0].graph;
    Tensor *t = ARENA_NEW(&arena, Tensor);
    ck_assert(tensor_new(t, DT_f64, 1, (int64_t[]){3}, &diag));
    tensor_set_f64(t, 1, 0.1);
    tensor_set_f64(t, 2, -INFINITY);
    vec_push(g->arena, &g->consts, (GraphConst){.name = "layers.0.bias", .tensor = t});
    Buf b = {.arena = &arena};
    session_print_runnable(&b, g);
    LoadedModel *again = opens(write_file("paths.py", buf_str(&b)));
    const Tensor *bias = map_get(&again->state, "layers.0.bias");
    ck_assert_ptr_nonnull(bias);
    ck_assert_int_eq(bias->dtype, DT_f64);
    ck_assert_double_eq(tensor_get_f64(bias, 1), 0.1);
    ck_assert(tensor_get_f64(bias, 2) == -INFINITY);
    ck_assert_int_eq(node_tensor(node_named(&again->graphs.at[0], "layers_0_weight"))->ndim, 2);
    tensor_drop(t);
    load_close(again);
    arena_free(&arena);
}
END_TEST

// ---- print(graph)

START_TEST(listings_round_trip) {
    static const char text[] =
        "graph():\n"
        "    %x : [num_users=3] = placeholder[target=x]\n"
        "    %n : [num_users=1] = placeholder[target=n]\n"
        "    %gelu : [num_users=1] = call_function[target=torch.ops.aten.gelu.default](args = "
        "(%x,), kwargs = {approximate: tanh})\n"
        "    %to : [num_users=1] = call_function[target=torch.ops.aten._to_copy.default](args = "
        "(%gelu,), kwargs = {dtype: torch.float64, device: cpu})\n"
        "    %getitem : [num_users=1] = call_function[target=operator.getitem](args = (%x, "
        "(slice(None, n, None), 0)), kwargs = {})\n"
        "    %einsum : [num_users=1] = call_function[target=torch.ops.aten.einsum.default](args = "
        "('ij,j->i', [%x, %getitem]), kwargs = {})\n"
        "    return (to, einsum)\n";
    FxDoc doc = {.arena = &arena};
    diag = (Diag){.arena = &arena};
    ck_assert_msg(fx_parse(&doc, sym_new(&arena), (Str){text, strlen(text)}, "t", &diag), "%s",
                  diag_first(&diag));
    const Graph *g = doc.at[0].graph;
    ck_assert_str_eq(graph_find(g, "gelu")->kwargs[0].value.s, "tanh");
    ck_assert_int_eq(graph_find(g, "to")->kwargs[1].value.kind, VAL_device);
    ck_assert_int_eq(graph_find(g, "n")->n_users, 1);
    Buf b = {.arena = &arena};
    graph_print(&b, g, &fx_style_graph, NULL);
    ck_assert_str_eq(buf_str(&b), text);
    arena_free(&arena);
}
END_TEST

Suite *suite_load_forms(void) {
    const TTest *const tests[] = {archives_of_all_versions, texts_are_one_graph,
                                  shapes_are_bound_or_asked_for, attributes_and_defaults,
                                  meta_blocks,              exported_program_prints,
                                  trace_logs,               runnable_round_trips,
                                  listings_round_trip};
    Suite *s = suite_create("load_forms");
    TCase *c = tcase_create("load_forms");
    tcase_set_timeout(c, 60);
    tcase_add_unchecked_fixture(c, unit_folder_make, unit_folder_drop);
    for (int i = 0; i < COUNT(tests); i++)
        tcase_add_test(c, tests[i]);
    suite_add_tcase(s, c);
    return s;
}
