// fx_text.c: printed graphs read and printed again: every text of the recorded models byte for
// byte, and the forms that they do not show.
#include "tests/unit/unit.h"

#include <stdio.h>
#include <string.h>

#include "core/base/file.h"
#include "core/fx/graph.h"

static Arena arena;
static Arena texts;     // what tests make themselves

typedef struct Tally {
    int files, graphs, same, stable;
} Tally;

static const char *print(Arena *a, const Graph *g, const FxStyle *style) {
    Buf b = {.arena = a};
    graph_print(&b, g, style, NULL);
    return buf_str(&b);
}

static void check_file(const char *path, Tally *t) {
    Arena a = {0};
    Diag d = {.arena = &a};
    Str text = file_read(&a, path, &d);
    FxDoc doc = {.arena = &a};
    bool ok = fx_parse(&doc, sym_new(&a), text, path, &d);
    ck_assert_msg(ok, "%s: %s", path, diag_first(&d));
    ck_assert(fx_sniff(text));
    t->files++;
    for (int i = 0; i < doc.n; i++) {
        FxText *x = &doc.at[i];
        ck_assert_msg(graph_verify(x->graph, &d), "%s: %s", path, diag_first(&d));
        const char *again = print(&a, x->graph, &x->style);
        size_t len = x->end - x->begin;
        bool same = strlen(again) == len && !memcmp(again, text.ptr + x->begin, len);
        ck_assert_msg(same, "%s: graph %d prints differently", path, i);
        FxDoc second = {.arena = &a};
        ok = fx_parse(&second, sym_new(&a), (Str){again, len}, path, &d) && second.n == 1;
        ck_assert_msg(ok, "%s: %s", path, diag_first(&d));
        Graph *g = second.at[0].graph;
        bool stable = !strcmp(print(&a, g, &second.at[0].style), again) &&
                      graph_hash(g) == graph_hash(x->graph);
        ck_assert_msg(stable, "%s: graph %d is not stable", path, i);
        t->graphs++;
        t->same += same;
        t->stable += stable;
    }
    arena_free(&a);
}

static void check_model(const char *dir, Tally *t) {
    static const char *const names[] = {"graph_code.txt", "aot_graphs.txt", "aot_joint_graph.txt",
                                        "post_grad_graphs.txt"};
    static const char *const inner[] = {"fx_graph_readable.py", "fx_graph_transformed.py",
                                        "fx_graph_runnable.py"};
    Arena a = {0};
    Diag d = {.arena = &a};
    for (int i = 0; i < COUNT(names); i++)
        if (file_exists(path_join(&a, dir, names[i])))
            check_file(path_join(&a, dir, names[i]), t);
    const char *cpu = path_join(&a, dir, "cpu");
    int n = 0;
    char **folders = file_is_dir(cpu) ? dir_list(&a, cpu, &n, &d) : NULL;
    for (int i = 0; i < n; i++)
        for (int k = 0; k < COUNT(inner); k++)
            check_file(path_join(&a, path_join(&a, cpu, folders[i]), inner[k]), t);
    arena_free(&a);
}

static void check_models(const char *root, Tally *t) {
    Arena a = {0};
    Diag d = {.arena = &a};
    int n = 0;
    char **models = dir_list(&a, root, &n, &d);
    for (int i = 0; i < n; i++) {
        const char *dir = path_join(&a, root, models[i]);
        if (file_is_dir(dir))
            check_model(dir, t);
    }
    arena_free(&a);
}

START_TEST(recorded_texts_print_the_same) {
    Tally t = {0};
    check_models("tests/corpus", &t);
    ck_assert_int_ge(t.graphs, 20);
    ck_assert_int_eq(t.same, t.graphs);
    ck_assert_int_eq(t.stable, t.graphs);
}
END_TEST

START_TEST(all_models_print_the_same) {
    static const char *const roots[] = {"../shared/corpus", "../shared/corpus_large"};
    Tally t = {0};
    for (int i = 0; i < COUNT(roots); i++)
        if (file_is_dir(roots[i]))
            check_models(roots[i], &t);
    ck_assert_int_eq(t.same, t.graphs);
}
END_TEST

// A forward around lines; parsed, printed, and expected to come out unchanged.
static Graph *body(const char *params, const char *lines, FxText *out) {
    arena_free(&arena);
    Diag d = {.arena = &arena};
    FxDoc doc = {.arena = &arena};
    const char *text = arena_printf(
        &arena, "class GraphModule(torch.nn.Module):\n    def forward(self%s):\n%s", params, lines);
    bool ok = fx_parse(&doc, sym_new(&arena), (Str){text, strlen(text)}, "t", &d);
    ck_assert_msg(ok, "%s in %s", diag_first(&d), text);
    ck_assert_int_eq(doc.n, 1);
    ck_assert_str_eq(print(&arena, doc.at[0].graph, &doc.at[0].style), text);
    ck_assert_msg(graph_verify(doc.at[0].graph, &d), "%s", diag_first(&d));
    if (out)
        *out = doc.at[0];
    return doc.at[0].graph;
}

// Statements as torch.fx's code generator writes them.
START_TEST(every_statement_form) {
    Graph *g = body(
        ", L_x_: \"f32[s77, 4]\", s77: \"Sym(s77)\", k : int = 3, *args",
        "        l_x_ = L_x_\n"
        "        size = l_x_.size()\n"
        "        getitem: \"Sym(s77)\" = size[0];  size = None\n"
        "        mul: \"Sym(2*s77)\" = getitem * 2\n"
        "        eq: \"Sym(Eq(s77, 3))\" = getitem == 3;  getitem = None\n"
        "        floordiv: \"Sym((s77//2))\" = s77 // 2;  s77 = None\n"
        "        y: \"f32[2, 2]\" = l_x_.view(-1, 2)\n"
        "        y += 1;  y_1: \"f32[2, 2]\" = y;  y = None\n"
        "        y_1[(slice(None, None, None), 0)] = 0;  setitem = y_1;  setitem = None\n"
        "        lin: \"f32[4]\" = getattr(self.layers, \"0\")(y_1);  y_1 = None\n"
        "        neg: \"f32[4]\" = -lin;  lin = None\n"
        "        sub: \"f32[4]\" = 1 - neg\n"
        "        getitem_1 = l_x_[(slice(0, 2, None), Ellipsis, None)]\n"
        "        shape = getitem_1.shape;  getitem_1 = None\n"
        "        w: \"Parameter(f32[3, 3])\" = self.fc.weight\n"
        "        scale = self.scale\n"
        "        split = torch.ops.aten.split.Tensor(sub, 2);  sub = None\n"
        "        _set_grad_enabled = torch._C._set_grad_enabled(False);  _set_grad_enabled = None\n"
        "        full = torch.ops.aten.full.default([2], -inf, dtype = torch.float32, layout = "
        "torch.strided, device = device(type='cuda', index=0), pin_memory = False)\n"
        "        clone = torch.ops.aten.clone.default(full, memory_format = "
        "torch.contiguous_format)"
        ";  full = None\n"
        "        quantize = torch.ops.mylib.q.default(clone, 'nf4\\n', scale = nan, axes = [], "
        "opts = "
        "(1,), c = (1+2j), d = {'a': [1e-05, None]});  clone = None\n"
        "        auto = "
        "torch.ops.higher_order.auto_functionalized_v2(torch.ops.mylib.foo_.default, "
        "_x_base_index = 0, _all_bases = [l_x_]);  l_x_ = None\n"
        "        return (mul, eq, floordiv, neg, shape, w, scale, split, quantize, auto, k, "
        "args)\n",
        NULL);
    ck_assert_int_eq(graph_find(g, "y")->op, FX_call_method);
    ck_assert_str_eq(graph_find(g, "getitem")->target, "_operator.getitem");
    ck_assert_str_eq(graph_find(g, "shape")->target, "getattr");
    ck_assert_int_eq(graph_find(g, "lin")->op, FX_call_module);
    ck_assert_str_eq(graph_find(g, "lin")->target, "layers.0");
    ck_assert_str_eq(graph_find(g, "w")->target, "fc.weight");
    ck_assert_str_eq(graph_find(g, "w")->wrap, "Parameter");
    ck_assert_str_eq(graph_find(g, "l_x_")->target, "L_x_");
    ck_assert_int_eq(graph_find(g, "full")->kwargs[2].value.device.index, 0);
    ck_assert(graph_find(g, "quantize")->flags & NODE_opaque);
    ck_assert(!(graph_find(g, "split")->flags & NODE_opaque));
    ck_assert_str_eq(graph_find(g, "split")->def->qualname, "torch.ops.aten.split.Tensor");
    ck_assert(graph_find(g, "y")->flags & NODE_assumed_strides);
    ck_assert_ptr_null(graph_find(g, "sub")->def);
    ck_assert(graph_find(g, "mul")->def != NULL);
    ck_assert_int_eq(graph_find(g, "k")->n_args, 1);
}
END_TEST

START_TEST(annotations) {
    Graph *g = body(", x: \"f32[s77, 4][4, 1]cuda:0\", z: \"bf16[][]cuda:1\", q: "
                    "\"f8e8m0fnu[3][1]xpu:0\", f: \"Sym(zf0)\"",
                    "        return (x,)\n", NULL);
    ck_assert_int_eq(graph_find(g, "x")->flags, 0);
    const TensorMeta *t = node_tensor(graph_find(g, "z"));
    ck_assert_int_eq(t->device.type, DEV_cuda);
    ck_assert_int_eq(t->device.index, 1);
    ck_assert_int_eq(t->dtype, DT_bf16);
    ck_assert_int_eq(t->ndim, 0);
    ck_assert_int_eq(graph_find(g, "q")->val.kind, VAL_opaque);
    t = node_tensor(graph_find(g, "x"));
    ck_assert_str_eq(expr_name(t->size[0]), "s77");
    Diag d = {.arena = &arena};
    Value v;
    ck_assert(fx_parse_annotation(&arena, sym_new(&arena), "f32[2, 3]", &v, &d));
    ck_assert(expr_is(v.tensor->stride[0], 3));
    ck_assert(!fx_parse_annotation(&arena, sym_new(&arena), "what", &v, &d));
}
END_TEST

START_TEST(comments_become_frames) {
    Graph *g = body(", x: \"f32[2]\"",
                    "        # File: a b.py:7 in <lambda>, code: y = f(x)  # why\n"
                    "        y: \"f32[2]\" = torch.relu(x)\n"
                    "\n"
                    "        # No stacktrace found for following nodes\n"
                    "        z: \"f32[2]\" = torch.relu(y);  y = None\n"
                    "\n"
                    "        # # recompute: MUST_SAVE File: C:/m.py:12 in f, code: \n"
                    "        w: \"f32[2]\" = torch.relu(z);  z = None\n"
                    "        return (w, x)\n",
                    NULL);
    const StackFrame *f = graph_find(g, "y")->stack;
    ck_assert_str_eq(f->file, "a b.py");
    ck_assert_int_eq(f->line, 7);
    ck_assert_str_eq(f->func, "<lambda>");
    ck_assert_str_eq(f->code, "y = f(x)  # why");
    ck_assert_ptr_null(graph_find(g, "z")->stack);
    ck_assert_str_eq(graph_find(g, "w")->stack->file, "C:/m.py");
    ck_assert_str_eq(graph_find(g, "w")->note, " # recompute: MUST_SAVE");
}
END_TEST

START_TEST(nested_classes) {
    Graph *g =
        body(", x: \"f32[2]\", p: \"b8[]\"",
             "        # No stacktrace found for following nodes\n"
             "        true_graph_0 = self.true_graph_0\n"
             "        false_graph_0 = self.false_graph_0\n"
             "        cond = torch.ops.higher_order.cond(p, true_graph_0, false_graph_0, (x,));  "
             "p = true_graph_0 = false_graph_0 = x = None\n"
             "        getitem: \"f32[2]\" = cond[0];  cond = None\n"
             "        return (getitem,)\n"
             "\n"
             "    class true_graph_0(torch.nn.Module):\n"
             "        def forward(self, arg0_1: \"f32[2]\"):\n"
             "            # No stacktrace found for following nodes\n"
             "            add: \"f32[2]\" = torch.ops.aten.add.Tensor(arg0_1, 1);  arg0_1 = None\n"
             "            return (add,)\n"
             "\n"
             "    class false_graph_0(torch.nn.Module):\n"
             "        def forward(self, arg0_1: \"f32[2]\"):\n"
             "            return (arg0_1,)\n",
             NULL);
    ck_assert_int_eq(g->children.n, 2);
    ck_assert_ptr_eq(graph_find(g, "true_graph_0")->val.graph, g->children.at[0].graph);
    ck_assert_str_eq(g->children.at[1].graph->class_name, "false_graph_0");
}
END_TEST

// Forms that are read, and printed in the plain way.
static Graph *reads(const char *text, int n) {
    arena_free(&arena);
    Diag d = {.arena = &arena};
    FxDoc doc = {.arena = &arena};
    bool ok = fx_parse(&doc, sym_new(&arena), (Str){text, strlen(text)}, "t", &d);
    ck_assert_msg(ok, "%s", diag_first(&d));
    ck_assert_int_eq(doc.n, n);
    return doc.at[n - 1].graph;
}

START_TEST(log_prefixes_and_records) {
    Graph *g = reads("V1129 12:00:00.123456 4242 torch/_dynamo/output_graph.py:2417] [0/0] "
                     "[__graph_code] TRACED GRAPH\n"
                     "V1129 12:00:00.123456 4242 torch/_dynamo/output_graph.py:2417] [0/0] "
                     "[__graph_code]  ===== __compiled_fn_1 =====\n"
                     "V1129 12:00:00.123456 4242 torch/_dynamo/output_graph.py:2417] [0/0] "
                     "[__graph_code]  <eval_with_key>.1 class GraphModule(torch.nn.Module):\n"
                     "V1129 12:00:00.123456 4242 torch/_dynamo/output_graph.py:2417] [0/0] "
                     "[__graph_code]     def forward(self, x: \"f32[2][1]cpu\"):\n"
                     "V1129 12:00:00.123456 4242 torch/_dynamo/output_graph.py:2417] [0/0] "
                     "[__graph_code]         y: \"f32[2][1]cpu\" = torch.relu(x);  x = None\n"
                     "V1129 12:00:00.123456 4242 torch/_dynamo/output_graph.py:2417] [0/0] "
                     "[__graph_code]         return (y,)\n"
                     "I1129 12:00:00.123456 4242 torch/_functorch/x.py:24] [0/0] unrelated\n"
                     "aot_config id: 0, fw_metadata=X(a=class Y(torch.nn.Module))\n"
                     "TRACED GRAPH\n ===== Forward graph 3 =====\n <eval_with_key>.2 class "
                     "<lambda>(torch.nn.Module):\n"
                     "    def forward(self, x):\n        return x\n        \n\n",
                     2);
    ck_assert_str_eq(g->title, "Forward graph 3");
    ck_assert_str_eq(g->class_name, "<lambda>");
}
END_TEST

// A record of a TORCH_TRACE file: a line of JSON, then the payload behind tabs.
START_TEST(trace_payloads) {
    static const char start[] = "V1129 12:00:00.123456 4242 torch/_logging/_internal.py:1] ";
    Graph *g = reads(arena_printf(&texts,
                                  "%s{\"str\": [\"a.py\", 0]}\n"
                                  "%s{\"aot_backward_graph\": {}}\n"
                                  "\tclass GraphModule(torch.nn.Module):\n"
                                  "\t    def forward(self, tangents_1: \"f32[2]\"):\n"
                                  "\t        neg: \"f32[2]\" = torch.ops.aten.neg.default("
                                  "tangents_1);  tangents_1 = None\n"
                                  "\t        return (neg,)\n",
                                  start, start),
                     1);
    ck_assert_ptr_null(g->title); // core/load knows the records
    ck_assert_ptr_nonnull(graph_find(g, "neg")->def);
}
END_TEST

START_TEST(boxed_expanded_and_listed) {
    Graph *g = reads("def forward(self, args_list):\n"
                     "    args_iter = iter(args_list)\n"
                     "    x_1 = next(args_iter)\n"
                     "    y_1 = next(args_iter)\n"
                     "    args_list.clear()\n"
                     "    add = x_1 + y_1;  x_1 = y_1 = None\n"
                     "    return add\n",
                     1);
    ck_assert_str_eq(print(&arena, g, &fx_style_code),
                     "    def forward(self, x_1, y_1):\n"
                     "        add = x_1 + y_1;  x_1 = y_1 = None\n"
                     "        return add\n");
    g = reads("class f(torch.nn.Module):\n"
              "    def forward(\n"
              "        self,\n"
              "        a: \"f32[2]\",  # PlainAOTInput(idx=0)\n"
              "        b: \"f32[2]\",  # PlainAOTInput(idx=1)\n"
              "    ):\n"
              "        add: \"f32[2]\" = torch.ops.aten.add.Tensor(a, b);  a = b = None\n"
              "        return (\n"
              "            add,  # PlainAOTOutput(idx=0)\n"
              "        )\n",
              1);
    ck_assert_str_eq(node_tensor(graph_find(g, "b")) ? "tensor" : "none", "tensor");
    ck_assert_int_eq(g->last->args[0].n, 1);
    const char *listing =
        "graph():\n"
        "    %x : [num_users=2] = placeholder[target=x]\n"
        "    %k : [num_users=0] = placeholder[target=k](default=3)\n"
        "    %add : [num_users=1] = call_function[target=operator.add](args = (%x, 1), kwargs = "
        "{})\n"
        "    %sum_1 : [num_users=1] = call_method[target=sum](args = (%x,), kwargs = {dim: [-1], "
        "dtype: torch.float64})\n"
        "    %cat : [num_users=1] = call_function[target=torch.ops.aten.cat.default](args = "
        "([%add, "
        "%sum_1],), kwargs = {})\n"
        "    return (cat,)\n";
    g = reads(listing, 1);
    ck_assert_str_eq(print(&arena, g, &fx_style_graph), listing);
    ck_assert_str_eq(graph_find(g, "add")->target, "_operator.add");
}
END_TEST

START_TEST(export_and_pytree_forms) {
    Graph *g = reads("def forward(self, a, k):\n"
                     "    a, k, = fx_pytree.tree_flatten_spec(([a], {'k':k}), self._in_spec)\n"
                     "    add = torch.ops.aten.add.Tensor(a, k);  a = k = None\n"
                     "    return pytree.tree_unflatten((add,), self._out_spec)\n",
                     1);
    ck_assert_str_eq(g->tree_spec, "([a], {'k':k})");
    g = reads(
        "def forward(self, x, y):\n"
        "    w, x, y, = pytree.tree_leaves((self, x, y,))\n"
        "    w, x, = self._in_shuffle_graph(w, x, y)\n"
        "    add = torch.ops.aten.add.Tensor(w, x)\n"
        "    return pytree.tree_unflatten(self._out_shuffle_graph(w, x, y, add), self._out_spec)\n",
        1);
    ck_assert_int_eq(g->last->args[0].n, 1);
    ck_assert_int_eq(g->n_nodes, 4);
}
END_TEST

// Message and place of a broken text.
static const DiagItem *fails(const char *text) {
    arena_free(&arena);
    static Diag d;
    d = (Diag){.arena = &arena};
    FxDoc doc = {.arena = &arena};
    ck_assert(!fx_parse(&doc, sym_new(&arena), (Str){text, strlen(text)}, "t.txt", &d));
    ck_assert_int_ge(d.errors, 1);
    return &d.at[0];
}

START_TEST(errors_have_places) {
    const DiagItem *e = fails("def forward(self, x):\n    y = torch.relu(z)\n    return y\n");
    ck_assert_str_eq(e->text, "name `z` is not defined before this line");
    ck_assert_str_eq(e->file, "t.txt");
    ck_assert_int_eq(e->line, 2);
    ck_assert_int_eq(e->col, 20);
    ck_assert_str_eq(e->source, "    y = torch.relu(z)");
    e = fails("def forward(self, x):\n    y = torch.relu(x\n    return y\n");
    ck_assert_int_eq(e->line, 3);
    e = fails("def forward(self, x):\n    y = torch.relu(x)\n");
    ck_assert_str_eq(e->text, "the text ends before the graph's `return`");
    e = fails("def forward(self, x: \"f32[2,\"):\n    return x\n");
    ck_assert_int_eq(e->line, 1);
    e = fails("def forward(self, x: \"f32[2][1, 1]\"):\n    return x\n");
    ck_assert_str_eq(e->text, "1 sizes but 2 strides");
    e = fails("def forward(self, x):\n    if x:\n        return x\n");
    ck_assert_int_eq(e->line, 2);
    e = fails("hello\n");
    ck_assert_str_eq(e->text, "no printed FX graph in this text");
    e = fails("class Repro(torch.nn.Module):\n    def __init__(self):\n        pass\n");
    ck_assert_str_eq(e->text, "the class has no `def forward(`");
}
END_TEST

// The first graph of a file cut at every length: an answer, and no harm.
START_TEST(cut_texts_do_no_harm) {
    Arena a = {0};
    Diag d = {.arena = &a};
    Str text = file_read(&a, "tests/corpus/layernorm_gelu/aot_joint_graph.txt", &d);
    ck_assert_ptr_nonnull(text.ptr);
    for (size_t len = 0; len < text.len && len < 4000; len += 7) {
        Arena b = {0};
        Diag e = {.arena = &b};
        FxDoc doc = {.arena = &b};
        bool ok = fx_parse(&doc, sym_new(&b), (Str){text.ptr, len}, "cut", &e);
        ck_assert(ok || e.errors > 0);
        arena_free(&b);
    }
    arena_free(&a);
}
END_TEST

Suite *suite_fx_text(void) {
    const TTest *const tests[] = {recorded_texts_print_the_same, all_models_print_the_same,
                                  every_statement_form,          annotations,
                                  comments_become_frames,        nested_classes,
                                  log_prefixes_and_records,      trace_payloads,
                                  boxed_expanded_and_listed,
                                  export_and_pytree_forms,       errors_have_places,
                                  cut_texts_do_no_harm};
    return unit_suite("fx_text", tests, COUNT(tests));
}
