// fx_higher.c: the text of calls of nested graphs, and graphs in graphs as such: copied, hashed,
// verified, nested deeper than is sane.
#include <string.h>

#include "core/fx/graph.h"
#include "tests/unit/unit.h"

static Arena arena;

static Graph *parse(const char *text, Diag *d) {
    FxDoc doc = {.arena = &arena};
    *d = (Diag){.arena = &arena};
    return fx_parse(&doc, sym_new(&arena), (Str){text, strlen(text)}, "t", d) ? doc.at[0].graph
                                                                              : NULL;
}

#define H "torch.ops.higher_order."

// Calls as TORCH_LOGS prints them; x and y are tensors, g and k attributes with graphs.
static const struct {
    const char *call;
    HigherId id; // none: not known, and opaque
    int graphs;
} forms[] = {
    {H "cond(x, g, k, (x, y))", HIGHER_cond, 2},
    {H "while_loop(g, k, (x,), (y,))", HIGHER_while_loop, 2},
    {H "scan(g, [x], [y], ())", HIGHER_scan, 1},
    {H "map_impl(g, [x], [y, 3])", HIGHER_map_impl, 1},
    {H "invoke_subgraph(g, 'subgraph_0', x, y)", HIGHER_invoke_subgraph, 1},
    {H "tag_activation_checkpoint(g, x, y, use_reentrant = False)",
     HIGHER_tag_activation_checkpoint, 1},
    {H "wrap(g, x)", HIGHER_wrap, 1},
    {H "wrap_with_set_grad_enabled(False, g, x)", HIGHER_wrap_with_set_grad_enabled, 1},
    {H "wrap_with_autocast('cpu', torch.bfloat16, True, None, g, x)", HIGHER_wrap_with_autocast, 1},
    {H "wrap_activation_checkpoint(g, x)", HIGHER_wrap_activation_checkpoint, 1},
    {H "dynamo_bypassing_wrapper('_wrapper_fn', g, x)", HIGHER_dynamo_bypassing_wrapper, 1},
    {H "autograd_function_apply(g, k, x, args_tensor_mask = [True], non_differentiable_idx = [])",
     HIGHER_autograd_function_apply, 2},
    {H "strict_mode(g, (x,))", HIGHER_strict_mode, 1},
    {H "hints_wrapper(g, (x,), {}, hints = {'fuse': True})", HIGHER_hints_wrapper, 1},
    {H "run_const_graph(g, (x,))", HIGHER_run_const_graph, 1},
    {H "auto_functionalized(torch.ops.mylib.foo_.default, x = x)", HIGHER_none, 0},
    {H "auto_functionalized_v2(torch.ops.mylib.foo_.default, _x_base_index = 0, _all_bases = [x])",
     HIGHER_none, 0},
    {H "with_effects(x, torch.ops.aten._print.default, 'moo')", HIGHER_none, 0},
};

static const char *text_of(const char *call) {
    return arena_printf(&arena,
                        "class GraphModule(torch.nn.Module):\n"
                        "    def forward(self, x: \"f32[2]\", y: \"f32[2]\"):\n"
                        "        # No stacktrace found for following nodes\n"
                        "        g = self.g\n"
                        "        k = self.k\n"
                        "        h = %s\n"
                        "        return (h, x, y, g, k)\n"
                        "\n"
                        "    class g(torch.nn.Module):\n"
                        "        def forward(self, a: \"f32[2]\"):\n"
                        "            return (a,)\n"
                        "\n"
                        "    class k(torch.nn.Module):\n"
                        "        def forward(self, a: \"f32[2]\"):\n"
                        "            return (a,)\n",
                        call);
}

START_TEST(calls_print_the_same) {
    for (int i = 0; i < COUNT(forms); i++) {
        Diag d;
        const char *text = text_of(forms[i].call);
        Graph *g = parse(text, &d);
        ck_assert_msg(g && graph_verify(g, &d), "%s: %s", forms[i].call, diag_first(&d));
        const Node *h = graph_find(g, "h");
        const Graph *graphs[4];
        ck_assert_int_eq(node_higher(h), forms[i].id);
        ck_assert_int_eq(node_graphs(h, graphs, COUNT(graphs)), forms[i].graphs);
        ck_assert_int_eq((h->flags & NODE_opaque) != 0, forms[i].id == HIGHER_none);
        Buf b = {.arena = &arena};
        FxStyle style = fx_style_readable;
        graph_print(&b, g, &style, NULL);
        ck_assert_str_eq(buf_str(&b), text);
    }
    arena_free(&arena);
}
END_TEST

START_TEST(copies_have_children_of_their_own) {
    Diag d;
    Graph *g = parse(text_of(forms[0].call), &d), *c = graph_copy(&arena, g);
    ck_assert(graph_hash(g) == graph_hash(c));
    ck_assert_ptr_ne(c->children.at[0].graph, g->children.at[0].graph);
    ck_assert_ptr_eq(value_graph(&graph_find(c, "h")->args[1]), c->children.at[0].graph);
    // What a nested graph computes is part of what the graph computes.
    Graph *child = c->children.at[1].graph;
    Value args[2] = {val_node(child->first), val_int(1)};
    graph_set_insert(child, child->last);
    Node *add = graph_node(child, FX_call_method, "add", NULL, args, 2, NULL, 0);
    ck_assert(graph_hash(g) != graph_hash(c));
    ck_assert(graph_verify(c, &d));
    ck_assert(graph_dce(c));
    ck_assert_ptr_null(graph_by_id(child, add->id));
    child->last->args[0].at[0].node = g->first;
    ck_assert(!graph_verify(c, &d));
    arena_free(&arena);
}
END_TEST

START_TEST(regions_are_read) {
    Diag d;
    Graph *g =
        parse("class G(torch.nn.Module):\n"
              "    def forward(self, x: \"f32[2]\"):\n"
              "        # ac_graph_id: 12 - PREFER_RECOMPUTE File: m.py:3 in f, code: x\n"
              "        a: \"f32[2]\" = torch.ops.aten.sin.default(x)\n"
              "\n"
              "        # ac_graph_id: 99999999999999 - MUST_SAVE File: m.py:4 in f, code: x\n"
              "        b: \"f32[2]\" = torch.ops.aten.sin.default(a)\n"
              "        return (b,)\n",
              &d);
    ck_assert_ptr_nonnull(g);
    ck_assert_int_eq(graph_find(g, "a")->ac_graph_id, 12);
    ck_assert(graph_find(g, "a")->flags & NODE_must_recompute);
    ck_assert(graph_find(g, "b")->flags & NODE_must_save);
    ck_assert_int_gt(graph_find(g, "b")->ac_graph_id, 0);
    arena_free(&arena);
}
END_TEST

START_TEST(two_thousand_deep) {
    Buf b = {.arena = &arena};
    for (int i = 0; i < 2000; i++) {
        buf_fill(&b, ' ', 4 * (size_t)i);
        buf_printf(&b, "class g%d(torch.nn.Module):\n", i);
        buf_fill(&b, ' ', 4 * (size_t)i + 4);
        buf_puts(&b, "def forward(self, x):\n");
        buf_fill(&b, ' ', 4 * (size_t)i + 8);
        buf_puts(&b, "return (x,)\n\n");
    }
    Diag d;
    ck_assert_ptr_null(parse(buf_str(&b), &d));
    ck_assert_msg(strstr(diag_first(&d), "classes nested deeper than") != NULL, "%s",
                  diag_first(&d));
    arena_free(&arena);
}
END_TEST

Suite *suite_fx_higher(void) {
    const TTest *const tests[] = {calls_print_the_same, copies_have_children_of_their_own,
                                  regions_are_read, two_thousand_deep};
    return unit_suite("fx_higher", tests, COUNT(tests));
}
