// load_variants.c: what the stored forms may hold, one by one: every kind of argument and of input
// and output of an ExportedProgram, constants of a repro file, guards of a log.
#include "tests/unit/unit.h"

#include <math.h>
#include <string.h>

#include "core/load/load.h"

static Arena arena;

static LoadedModel *opens(const char *path) {
    Diag d = {.arena = &arena};
    LoadedModel *m = load_model(&arena, path, &d);
    ck_assert_msg(m != NULL, "%s: %s", path, diag_first(&d));
    ck_assert_msg(d.n == 0, "%s: %s", path, d.n ? d.at[0].text : "");
    for (int i = 0; i < m->graphs.n; i++)
        ck_assert_msg(graph_verify(m->graphs.at[i].graph, &d), "%s", diag_first(&d));
    return m;
}

static LoadedModel *opens_text(const char *name, const char *text) {
    return opens(unit_file(name, text, strlen(text)));
}

static const Node *find(const LoadedGraph *g, const char *name) {
    const Node *n = graph_find(g->graph, name);
    ck_assert_msg(n != NULL, "no node %s", name);
    return n;
}

static void is_printed(const LoadedGraph *g, const char *name, const char *want) {
    Buf b = {.arena = &arena};
    node_print(&b, find(g, name), &fx_style_readable);
    ck_assert_str_eq(buf_str(&b), want);
}

// tags.json has each tag of the schema once.
START_TEST(arguments_of_every_kind) {
    const LoadedGraph *g = &opens("tests/data/exported/tags.json")->graphs.at[0];
    is_printed(g, "full",
               "full: \"f32[2, 3]\" = torch.ops.aten.full.default([n, 3], -inf, dtype = "
               "torch.float64, layout = torch.strided, device = device(type='cpu'), "
               "pin_memory = False)");
    is_printed(g, "clone",
               "clone: \"f32[2, 3]\" = torch.ops.aten.clone.default(x, memory_format = "
               "torch.preserve_format)");
    is_printed(g, "index", "index: \"f32[2, 2]\" = torch.ops.aten.index.Tensor(x, [None, i])");
    is_printed(g, "bools",
               "bools: \"f32[2]\" = torch.ops.mylib.bools.default(x, [True, False], "
               "[0.5, inf, nan], ['u', 'v'], [[1, 2], [3]], [[x], [i, x]], (1-2j), "
               "{'k': x, 'm': [4, 5]}, torch.ops.aten.add.Tensor, i, None, obj_q, [], "
               "\"te'xt\")");
    is_printed(g, "syms",
               "syms: \"f32[2]\" = torch.ops.mylib.syms.default([gt, True], [truediv, "
               "1.5], 0.5, True, [trunc])");
    is_printed(g, "gt", "gt: \"Sym(s77 >= 3)\" = n >= 3");
    is_printed(g, "truediv", "truediv: \"Sym(IntTrueDiv(s77, 2))\" = n / 2");
    is_printed(g, "trunc", "trunc: \"Sym(TruncToInt(IntTrueDiv(s77, 2)))\" = math_trunc(truediv)");
    is_printed(g, "sym_max", "sym_max: \"Sym(Max(4, s77))\" = torch.sym_max(n, 4)");
    is_printed(g, "sym_not", "sym_not = torch.sym_not(gt)");
    is_printed(g, "ext", "ext: \"f32[2]\" = mylib_ext(x)");
    ck_assert_int_eq(find(g, "sym_not")->val.kind, VAL_bool);
    ck_assert_int_eq(find(g, "truediv")->val.kind, VAL_symfloat);
    ck_assert_int_eq(find(g, "f")->val.kind, VAL_symfloat);
    double real;
    ck_assert(sym_real_hint(g->graph->sym, "zf0", &real) && real == 2.5);
    arena_free(&arena);
}
END_TEST

START_TEST(inputs_and_outputs_of_every_kind) {
    const LoadedGraph *g = &opens("tests/data/exported/tags.json")->graphs.at[0];
    static const struct {
        const char *name, *state;
        InputKind kind;
        int user;
    } inputs[] = {
        {"token", NULL, IN_token, -1},   {"p_w", "w", IN_parameter, -1},
        {"b_b", "b", IN_buffer, -1},     {"c_c", "c", IN_constant, -1},
        {"obj_q", "q", IN_constant, -1}, {"x", NULL, IN_user, 0},
        {"i", NULL, IN_user, 1},         {"n", NULL, IN_symbol, 2},
        {"f", NULL, IN_symbol, 3},       {"k", NULL, IN_user, 4},
        {"mode", NULL, IN_user, 5},      {"nothing", NULL, IN_user, 6},
        {"p", NULL, IN_user, 7},         {"flag", NULL, IN_user, 8},
        {"seen", NULL, IN_user, 9},
    };
    Node **nodes;
    ck_assert_int_eq(graph_placeholders(g->graph, &nodes, &arena), COUNT(inputs));
    for (int i = 0; i < COUNT(inputs); i++) {
        ck_assert_str_eq(nodes[i]->name, inputs[i].name);
        ck_assert_pstr_eq(g->inputs[i].state, inputs[i].state);
        ck_assert_msg(g->inputs[i].kind == inputs[i].kind && g->inputs[i].user == inputs[i].user,
                      "%s: %d, %d", inputs[i].name, g->inputs[i].kind, g->inputs[i].user);
    }
    ck_assert(g->inputs[2].transient && !g->inputs[1].transient);
    ck_assert_int_eq(find(g, "k")->val.i, 3);
    ck_assert_str_eq(find(g, "mode")->val.s, "mode");
    ck_assert_double_eq(find(g, "p")->val.f, 0.5);
    ck_assert(find(g, "flag")->val.b);
    static const OutputSpec outputs[] = {
        {OUT_token, NULL},
        {OUT_buffer_mutation, "b"},
        {OUT_parameter_mutation, "w"},
        {OUT_input_mutation, "seen"},
        {OUT_loss, NULL},
        {OUT_parameter_grad, "w"},
        {OUT_input_grad, "x"},
        {OUT_user, NULL},
    };
    for (int i = 0; i < COUNT(outputs); i++) {
        ck_assert_int_eq(g->outputs[i].kind, outputs[i].kind);
        ck_assert_pstr_eq(g->outputs[i].target, outputs[i].target);
    }
    // What print(ExportedProgram) shows of it reads back: kinds, targets, and the range of a symbol
    // that no value has.
    Buf once = {.arena = &arena}, again = {.arena = &arena};
    load_print_export(&once, g);
    const LoadedGraph *second = &opens_text("tags.txt", buf_str(&once))->graphs.at[0];
    ck_assert_ptr_nonnull(strstr(buf_str(&once), "{s77: VR[2, int_oo], u0: VR[-int_oo, 8]}"));
    ck_assert_ptr_nonnull(strstr(buf_str(&once), "bools: LOSS_OUTPUT\n"));
    ck_assert_ptr_nonnull(strstr(buf_str(&once), "syms: GRADIENT_TO_PARAMETER target='w'\n"));
    ck_assert_ptr_nonnull(strstr(buf_str(&once), "ext: GRADIENT_TO_USER_INPUT target='x'\n"));
    load_print_export(&again, second);
    static const char part[] = "Graph signature";
    ck_assert_str_eq(strstr(buf_str(&again), part), strstr(buf_str(&once), part));
    arena_free(&arena);
}
END_TEST

// ---- constants of fx_graph_runnable.py

START_TEST(constants_of_every_kind) {
    static const struct {
        const char *text, *meta;
        int at; // of the element that is looked at, -1: no values
        double value;
    } cases[] = {
        {"tensor([1, 2, 3])", "i64[3]cpu", 2, 3},
        {"tensor(0.5, dtype=torch.float64)", "f64[]cpu", 0, 0.5},
        {"tensor([[True, False], [False, True]])", "b8[2, 2]cpu", 3, 1},
        {"tensor([1., 2.5])", "f32[2]cpu", 1, 2.5},
        {"tensor([inf, -inf], dtype=torch.float16)", "f16[2]cpu", 1, -INFINITY},
        {"tensor([], dtype=torch.int32)", "i32[0]cpu", -1, 0},
        {"tensor([], size=(0, 4))", "f32[0, 4]cpu", -1, 0},
        {"tensor([1.+2.j, 3.-1.j])", "c64[2]cpu", 1, 3},
        {"tensor([0.+1.5j], dtype=torch.complex128)", "c128[1]cpu", 0, 0},
        {"tensor([1, 2], device='cuda:1')", "i64[2]cuda:1", 0, 1},
        {"torch.randn([8, 4], dtype=torch.bfloat16)", "bf16[8, 4]cpu", -1, 0},
        {"torch.randint(1, size=[8], dtype=torch.int64).cuda()", "i64[8]cuda:0", -1, 0},
        {"torch.empty([2, 3], dtype=torch.int32)", "i32[2, 3]cpu", -1, 0},
    };
    for (int i = 0; i < COUNT(cases); i++) {
        LoadedModel *m = opens_text(
            "const.py",
            arena_printf(&arena,
                         "from torch.nn import *\nclass Repro(torch.nn.Module):\n"
                         "    def __init__(self) -> None:\n        super().__init__()\n"
                         "        self.register_buffer('c', %s)\n\n"
                         "    def forward(self):\n        c = self.c\n        return (c,)\n"
                         "def load_args(reader):\n    pass\n",
                         cases[i].text));
        Buf b = {.arena = &arena};
        meta_print(&b, node_tensor(find(&m->graphs.at[0], "c")), false, true);
        ck_assert_str_eq(buf_str(&b), cases[i].meta);
        const Tensor *t = map_get(&m->state, "c");
        ck_assert_msg((t && tensor_numel(t)) == (cases[i].at >= 0), "%s", cases[i].text);
        if (cases[i].at >= 0)
            ck_assert_double_eq(tensor_get_f64(t, cases[i].at), cases[i].value);
        load_close(m);
    }
    arena_free(&arena);
}
END_TEST

// ---- modules that are nested classes

// Results of a nested class: one, or a list that getitems take apart; with a class in it, and calls
// that cannot be resolved, which stay.
START_TEST(nested_classes_stand_for_their_calls) {
    LoadedModel *m = opens_text(
        "nested.txt",
        "class M(torch.nn.Module):\n    def forward(self, x: \"f32[2]\"):\n"
        "        pair = self.pair(x)\n        a: \"f32[2]\" = pair[0]\n"
        "        b: \"f32[2]\" = pair[1]\n"
        "        return (a, b)\n\n"
        "    class pair(torch.nn.Module):\n        def forward(self, y: \"f32[2]\"):\n"
        "            w: \"f32[2]\" = self.w\n            one: \"f32[2]\" = self.one(y)\n"
        "            return (one, w)\n\n"
        "        class one(torch.nn.Module):\n            def forward(self, y: \"f32[2]\"):\n"
        "                v: \"f32[2]\" = self.v\n"
        "                mul: \"f32[2]\" = torch.ops.aten.mul.Tensor(y, v)\n"
        "                return mul\n");
    const LoadedGraph *g = &m->graphs.at[0];
    ck_assert_int_eq(g->graph->children.n, 0);
    ck_assert_str_eq(find(g, "w")->target, "pair.w");
    ck_assert_str_eq(find(g, "v")->target, "pair.one.v");
    is_printed(g, "mul", "mul: \"f32[2]\" = torch.ops.aten.mul.Tensor(x, v)");
    const Value *out = &graph_output_node(g->graph)->args[0];
    ck_assert(out->at[0].node == find(g, "mul") && out->at[1].node == find(g, "w"));
    // Attributes that only an annotation tells can be run.
    ck_assert_int_eq(g->graph->consts.n, 2);
    g = &opens_text("kept.txt",
                    "class M(torch.nn.Module):\n    def forward(self, x: \"f32[2]\"):\n"
                    "        a: \"f32[2]\" = self.one(x, x)\n        b = self.one(2)\n"
                    "        _guards_fn = self._guards_fn(x);  _guards_fn = None\n"
                    "        return (a, b)\n\n"
                    "    class one(torch.nn.Module):\n        def forward(self, y: \"f32[2]\"):\n"
                    "            return y\n")
             ->graphs.at[0];
    ck_assert_int_eq(find(g, "a")->op, FX_call_module);
    ck_assert_int_eq(find(g, "b")->op, FX_call_module);
    ck_assert_ptr_null(graph_find(g->graph, "_guards_fn"));
    ck_assert_int_eq(g->graph->children.n, 1);
    arena_free(&arena);
}
END_TEST

// Of a graph that was printed twice the later counts.
START_TEST(graphs_before_their_asserts_are_passed_over) {
    static const char record[] = "TRACED GRAPH\n ===== %s =====\n <eval_with_key>.0 class "
                                 "GraphModule(torch.nn.Module):\n    def forward(self, L_x_: "
                                 "\"f32[%d][1]cpu\"):\n        l_x_ = L_x_\n"
                                 "        return (l_x_,)\n";
    static const char *const titles[] = {"pre insert_deferred_runtime_asserts __compiled_fn_1",
                                         "__compiled_fn_1",
                                         "pre insert_deferred_runtime_asserts __compiled_fn_3"};
    Buf b = {.arena = &arena};
    for (int i = 0; i < COUNT(titles); i++)
        buf_printf(&b, record, titles[i], i + 2);
    LoadedModel *m = opens_text("twice.log", buf_str(&b));
    ck_assert_int_eq(m->graphs.n, 2);
    ck_assert_str_eq(m->graphs.at[0].title, titles[1]);
    ck_assert_int_eq(m->graphs.at[1].level, LEVEL_torch);
    arena_free(&arena);
}
END_TEST

// ---- guards

static void is_meta(const LoadedGraph *g, const char *name, const char *want) {
    Buf b = {.arena = &arena};
    ck_assert_msg(node_tensor(find(g, name)) != NULL, "%s has no metadata", name);
    meta_print(&b, node_tensor(find(g, name)), true, true);
    ck_assert_str_eq(buf_str(&b), want);
}

static void is_range(const LoadedModel *m, const char *symbol, int64_t lo, int64_t hi) {
    SymRange r = sym_range(m->sym, sym_symbol(m->sym, symbol));
    ck_assert_msg(r.lo == lo && r.hi == hi, "%s: %lld to %lld", symbol, (long long)r.lo,
                  (long long)r.hi);
}

START_TEST(guards_tell_what_a_table_lacks) {
    LoadedModel *m = opens("samples/forms/guarded.log");
    const LoadedGraph *g = &m->graphs.at[0];
    ck_assert(!g->untyped && g->grad_enabled);
    is_meta(g, "l_x_", "f32[s77, 8][8, 1]cpu");
    is_meta(g, "l_w_", "f32[8, 5][1, 8]cpu");
    ck_assert(!g->inputs[0].requires_grad && g->inputs[1].requires_grad);
    is_range(m, "s77", 2, 64);
    int64_t hint;
    ck_assert(sym_hint(m->sym, sym_symbol(m->sym, "s77"), &hint) && hint == 6);
    arena_free(&arena);
}
END_TEST

#define MATCH(source, rest)                                                                        \
    "| | +- TENSOR_MATCH: check_tensor(" source ", Tensor, DispatchKeySet(CPU, "                   \
                                                "AutogradCPU), " rest
#define CODE(x)                                                                                    \
    "def forward(self, L_x_" x "):\n    l_x_ = L_x_\n    y = torch.sin(l_x_)\n    return y\n"

// Older prints have sizes without strides; the guard's count, and nothing else of it. A symbol that
// no line names has PyTorch's name, and a bound that Inductor asked for is none of the input's.
START_TEST(guards_of_other_logs) {
    LoadedModel *m = opens_text(
        "a.log",
        CODE(" : f32[4, 8]") MATCH(
            "L['x']",
            "torch.float32, device=None, requires_grad=False, size=[4, 8], stride=[1, 4])\n"));
    is_meta(&m->graphs.at[0], "l_x_", "f32[4, 8][1, 4]cpu");
    m = opens_text("b.log", CODE(" : f32[4, 8]") MATCH(
                                "L['x']", "torch.float64, device=None, "
                                          "requires_grad=False, size=[4, 8], stride=[1, 4])\n"));
    is_meta(&m->graphs.at[0], "l_x_", "f32[4, 8][8, 1]cpu");
    m = opens_text("c.log",
                   CODE("")
                       MATCH("L['x']",
                             "torch.int64, device=None, requires_grad=False, size=[None, None], "
                             "stride=[None, 1])\n") "+- LAMBDA_GUARD: 3 <= L['x'].size()[1]  # x\n"
                                                    "+- LAMBDA_GUARD: L['x'].size()[0] <= 4096  # "
                                                    "x and (_inductor/codegen/cpp.py:1)\n");
    is_meta(&m->graphs.at[0], "l_x_", "i64[s77, s27][s27, 1]cpu");
    is_range(m, "s77", 2, SYM_POS_INF);
    is_range(m, "s27", 3, SYM_POS_INF);
    // Of two graphs the one above, of the same compilation, is meant.
    static const char pre[] = "V0101 12:00:00.123456 4242 a.py:1] [%d/0] [__x] %s\n";
    Buf b = {.arena = &arena};
    for (int i = 0; i < 2; i++) {
        buf_printf(&b, pre, i, "def forward(self, L_x_):");
        buf_printf(&b, pre, i, "    l_x_ = L_x_");
        buf_printf(&b, pre, i, "    return l_x_");
    }
    for (int i = 0; i < 2; i++)
        buf_printf(
            &b, pre, i,
            i ? MATCH("L['x']", "torch.bool, device=None, requires_grad=False, size=[], stride=[])")
              : MATCH("L['x']",
                      "torch.int8, device=None, requires_grad=False, size=[2], stride=[1])"));
    m = opens_text("d.log", buf_str(&b));
    is_meta(&m->graphs.at[0], "l_x_", "i8[2][1]cpu");
    is_meta(&m->graphs.at[1], "l_x_", "b8[][]cpu");
    arena_free(&arena);
}
END_TEST

// A guard that is cut, or says nothing that fits, changes nothing.
START_TEST(broken_guards_are_passed_over) {
    static const char *const bad[] = {
        "check_tensor(",
        "check_tensor(L['x']",
        "check_tensor(L['x'], Tensor, DispatchKeySet(CPU), torch.float32, device=None",
        "check_tensor(L['x'], Tensor, DispatchKeySet(CPU), torch.float99, size=[4], stride=[1])",
        "check_tensor(L['x'], Tensor, DispatchKeySet(CPU), torch.float32, size=[4, stride=[1])",
        "check_tensor(L['x'], Tensor, DispatchKeySet(CPU), torch.float32, size=[-4], stride=[1])",
        "check_tensor(L['x'], Tensor, DispatchKeySet(CPU), torch.float32, size=[4, 4], stride=[1])",
        "check_tensor(L['q'], Tensor, DispatchKeySet(CPU), torch.float32, size=[4], stride=[1])",
        "create_symbol s77 = \ncheck_tensor(\n+- LAMBDA_GUARD: 2 <= L['x'].size()[",
        "create_symbol s77 = 4 for L['x'].size()[0] [9, 3] check_tensor(",
        "create_symbol = 4\ncheck_tensor(\n+- LAMBDA_GUARD: 9 <= L['x'].size()[99] <= 3",
    };
    for (int i = 0; i < COUNT(bad); i++) {
        LoadedModel *m = opens_text("bad.log", arena_printf(&arena, CODE("") "%s\n", bad[i]));
        ck_assert_msg(find(&m->graphs.at[0], "l_x_")->val.kind == VAL_none, "%s", bad[i]);
        ck_assert(m->graphs.at[0].untyped);
    }
    arena_free(&arena);
}
END_TEST

Suite *suite_load_variants(void) {
    Suite *s = suite_create("load_variants");
    TCase *c = tcase_create("variants");
    tcase_add_unchecked_fixture(c, unit_folder_make, unit_folder_drop);
    tcase_add_test(c, arguments_of_every_kind);
    tcase_add_test(c, inputs_and_outputs_of_every_kind);
    tcase_add_test(c, constants_of_every_kind);
    tcase_add_test(c, nested_classes_stand_for_their_calls);
    tcase_add_test(c, graphs_before_their_asserts_are_passed_over);
    tcase_add_test(c, guards_tell_what_a_table_lacks);
    tcase_add_test(c, guards_of_other_logs);
    tcase_add_test(c, broken_guards_are_passed_over);
    suite_add_tcase(s, c);
    return s;
}
