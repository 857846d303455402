// fx_graph.c: construction, users, editing, copying, names and printing of FX graphs.
#include "tests/unit/unit.h"

#include <stdlib.h>
#include <string.h>

#include "core/fx/graph.h"

static Arena arena;

static Graph *fresh(void) {
    arena_free(&arena);
    return graph_new(&arena, NULL);
}

static Node *call1(Graph *g, const char *target, const char *hint, Node *a) {
    Value v = val_node(a);
    return graph_node(g, FX_call_function, target, hint, &v, 1, NULL, 0);
}

static Node *call2(Graph *g, const char *target, const char *hint, Node *a, Node *b) {
    Value v[2] = {val_node(a), val_node(b)};
    return graph_node(g, FX_call_function, target, hint, v, 2, NULL, 0);
}

static const char *print(const Graph *g, const FxStyle *style) {
    Buf b = {.arena = &arena};
    graph_print(&b, g, style, NULL);
    return buf_str(&b);
}

static bool sound(const Graph *g) {
    Diag d = {.arena = &arena};
    bool ok = graph_verify(g, &d);
    ck_assert_msg(ok, "%s", diag_first(&d));
    return ok;
}

// Sequences that torch.fx._Namespace().create_name gives for these candidates.
START_TEST(names) {
    static const char *const in[] = {"add",      "add",        "sum",    "sum",   "x_5",
                                     "x_5",      "x",          "copy_",  "copy_", "_to_copy",
                                     "_to_copy", "add.Tensor", "5x",     "",      "a-b c",
                                     "device",   "x_1_2",      "lambda", "add_1", "add"};
    static const char *const out[] = {
        "add",   "add_1",    "sum_1",    "sum_2",      "x_5",        "x_1",  "x",
        "copy_", "copy__1",  "_to_copy", "_to_copy_1", "add_Tensor", "_5x",  "_unnamed",
        "a_b_c", "device_1", "x_1_2",    "lambda_1",   "add_2",      "add_3"};
    Graph *g = fresh();
    for (int i = 0; i < COUNT(in); i++) {
        const char *name = graph_new_name(g, in[i]);
        ck_assert_str_eq(name, out[i]);
        map_put(&g->names, name, NULL);
    }
    ck_assert_str_eq(target_to_name(&arena, "torch.ops.aten.add.Tensor"), "add.tensor");
    ck_assert_str_eq(target_to_name(&arena, "torch._C._nn.linear"), "linear");
    ck_assert_str_eq(target_to_name(&arena, "_operator.getitem"), "getitem");
    ck_assert_str_eq(target_to_name(&arena, "L_X_myName"), "l_x_my_name");
    ck_assert_str_eq(target_to_name(&arena, "__and__"), "and");
}
END_TEST

// Against _Namespace.create_name written down step by step, with nothing remembered but the last
// number of a base.
static const char *counted(Map *used, Map *bases, const char *candidate) {
    const char *bar = strrchr(candidate, '_'), *base = candidate, *name = candidate;
    int64_t num = map_get_int(bases, candidate, 0);
    if (bar && bar[1] && strspn(bar + 1, "0123456789") == strlen(bar + 1)) {
        base = arena_strndup(&arena, candidate, (size_t)(bar - candidate));
        if (!map_find(used, candidate))
            num = strtoll(bar + 1, NULL, 10);
    }
    while (map_find(used, name))
        name = arena_printf(&arena, "%s_%lld", base, (long long)++num);
    map_put(used, name, NULL);
    map_put_int(bases, base, num);
    return name;
}

START_TEST(names_are_those_of_plain_counting) {
    Graph *g = fresh();
    Map used = {.arena = &arena}, bases = {.arena = &arena};
    uint64_t seed = 7;
    for (int i = 0; i < 4000; i++) {
        seed = hash_mix(seed, (uint64_t)i);
        const char *base = seed & 1 ? "relu" : "mul_2";
        int number = (int)(seed >> 8 & 127);
        const char *in = seed & 2 ? base : arena_printf(&arena, "%s_%d", base, number);
        const char *want = counted(&used, &bases, in), *got = graph_new_name(g, in);
        ck_assert_str_eq(got, want);
        map_put(&g->names, got, NULL);
    }
}
END_TEST

START_TEST(users_follow_changes) {
    Graph *g = fresh();
    Node *x = graph_placeholder(g, "x", NULL), *y = graph_placeholder(g, "y", NULL);
    Node *a = call2(g, "torch.add", NULL, x, x), *b = call2(g, "torch.mul", NULL, a, y);
    graph_output(g, val_node(b));
    ck_assert_int_eq(x->n_users, 1);
    ck_assert_ptr_eq(x->users[0], a);
    node_replace_uses(x, y);
    ck_assert_int_eq(x->n_users, 0);
    ck_assert_int_eq(y->n_users, 2);
    // Setting a's arguments moved it behind b, as in torch.fx.
    ck_assert_ptr_eq(y->users[0], b);
    ck_assert_ptr_eq(y->users[1], a);
    ck_assert(sound(g));
    graph_set_insert(g, b);
    Node *c = call1(g, "torch.relu", NULL, a);
    ck_assert_ptr_eq(c->next, b);
    node_replace_input(b, a, c);
    ck_assert(sound(g));
    ck_assert_int_eq(a->n_users, 1);
    node_move_before(c, a);
    Diag d = {.arena = &arena};
    ck_assert(!graph_verify(g, &d));
    graph_toposort(g);
    ck_assert(sound(g));
    ck_assert_ptr_eq(a->next, c);
}
END_TEST

START_TEST(dead_code_goes) {
    Graph *g = fresh();
    Node *x = graph_placeholder(g, "x", NULL);
    Node *a = call1(g, "torch.relu", NULL, x), *b = call1(g, "torch.relu", NULL, a);
    Node *kept = call1(g, "torch._assert_async", NULL, x);
    graph_output(g, val_node(x));
    ck_assert(graph_dce(g));
    ck_assert_ptr_null(graph_by_id(g, b->id));
    ck_assert_ptr_null(graph_find(g, "relu"));
    ck_assert_ptr_eq(graph_find(g, "_assert_async"), kept);
    ck_assert(!graph_dce(g));
    ck_assert(sound(g));
    // A name is not given again.
    graph_set_insert(g, g->last);
    ck_assert_str_eq(call1(g, "torch.relu", NULL, x)->name, "relu_2");
}
END_TEST

START_TEST(copies_stand_alone) {
    Graph *g = fresh();
    Node *x = graph_placeholder(g, "x", NULL);
    Node *gone = call1(g, "torch.relu", NULL, x), *a = call1(g, "torch.relu", NULL, x);
    node_erase(gone);
    graph_output(g, val_node(a));
    uint64_t hash = graph_hash(g);
    Arena other = {0};
    Graph *c = graph_copy(&other, g);
    ck_assert(sound(c));
    ck_assert_ptr_null(graph_by_id(c, gone->id));
    ck_assert_int_eq(graph_find(c, "relu_1")->id, a->id);
    ck_assert(graph_hash(c) == hash);
    Node *n = graph_find(c, "relu_1");
    graph_set_insert(c, c->last);
    Node *more = call1(c, "torch.relu", NULL, n);
    ck_assert_str_eq(more->name, "relu_2");
    node_replace_input(c->last, n, more);
    ck_assert(graph_hash(c) != hash);
    ck_assert(graph_hash(g) == hash);
    ck_assert(sound(c) && sound(g));
    arena_free(&other);
}
END_TEST

// Lines as PyTorch 2.11 prints them.
START_TEST(prints_every_form) {
    Graph *g = fresh();
    g->class_name = "<lambda>";
    Node *x = graph_placeholder(g, "l_x_", "L_x_");
    Node *y = call2(g, "_operator.add", "y", x, x);
    static const StackFrame frame = {"m.py", 7, "forward", "y += 1", NULL};
    y->stack = &frame;
    Value v[3] = {val_node(y), val_int(1)}, out = val_list(&arena, VAL_tuple, 3);
    Node *i = graph_node(g, FX_call_function, "_operator.iadd", "y", v, 2, NULL, 0);
    i->stack = &frame;
    v[0] = val_node(i);
    v[1] = val_list(&arena, VAL_tuple, 2);
    v[1].at[0] = (Value){.kind = VAL_slice, .n = 3, .at = ARENA_ARRAY(&arena, 3, Value)};
    v[1].at[1] = val_int(0);
    v[2] = val_int(0);
    graph_node(g, FX_call_function, "_operator.setitem", NULL, v, 3, NULL, 0);
    Value w = val_node(i);
    Kwarg dim = {"dim", val_int(-1)};
    Node *s = graph_node(g, FX_call_method, "sum", NULL, &w, 1, &dim, 1);
    v[0] = val_node(s);
    v[1] = val_str("shape");
    Node *shape = graph_node(g, FX_call_function, "getattr", NULL, v, 2, NULL, 0);
    Node *lin = graph_node(g, FX_call_module, "layers.0", "lin", v, 1, NULL, 0);
    Node *weight = graph_get_attr(g, "fc.weight", NULL);
    out.at[0] = val_node(shape);
    out.at[1] = val_node(lin);
    out.at[2] = val_node(weight);
    graph_output(g, out);
    ck_assert(sound(g));
    ck_assert_str_eq(
        print(g, &fx_style_readable),
        "class <lambda>(torch.nn.Module):\n"
        "    def forward(self, L_x_):\n"
        "        l_x_ = L_x_\n"
        "\n"
        "        # File: m.py:7 in forward, code: y += 1\n"
        "        y = l_x_ + l_x_;  l_x_ = None\n"
        "        y += 1;  y_1 = y;  y = None\n"
        "\n"
        "        # No stacktrace found for following nodes\n"
        "        y_1[(slice(None, None, None), 0)] = 0;  setitem = y_1;  setitem = None\n"
        "        sum_1 = y_1.sum(dim = -1);  y_1 = None\n"
        "        getattr_1 = sum_1.shape\n"
        "        lin = getattr(self.layers, \"0\")(sum_1);  sum_1 = None\n"
        "        fc_weight = self.fc.weight\n"
        "        return (getattr_1, lin, fc_weight)\n");
    ck_assert_str_eq(
        print(g, &fx_style_code),
        "    def forward(self, L_x_):\n"
        "        l_x_ = L_x_\n"
        "        y = l_x_ + l_x_;  l_x_ = None\n"
        "        y += 1;  y_1 = y;  y = None\n"
        "        y_1[(slice(None, None, None), 0)] = 0;  setitem = y_1;  setitem = None\n"
        "        sum_1 = y_1.sum(dim = -1);  y_1 = None\n"
        "        getattr_1 = sum_1.shape\n"
        "        lin = getattr(self.layers, \"0\")(sum_1);  sum_1 = None\n"
        "        fc_weight = self.fc.weight\n"
        "        return (getattr_1, lin, fc_weight)\n");
}
END_TEST

START_TEST(prints_listing_and_children) {
    Graph *g = fresh();
    Graph *child = graph_new(&arena, NULL);
    child->class_name = "true_graph_0";
    graph_output(child, val_node(graph_placeholder(child, "arg0_1", NULL)));
    vec_push(&arena, &g->children, (GraphChild){"true_graph_0", child});
    Node *x = graph_placeholder(g, "x", NULL), *t = graph_get_attr(g, "true_graph_0", NULL);
    ck_assert_int_eq(t->val.kind, VAL_graph);
    graph_output(g, val_node(call2(g, "torch.ops.higher_order.wrap", "wrap", t, x)));
    ck_assert_str_eq(
        print(g, &fx_style_readable),
        "class GraphModule(torch.nn.Module):\n"
        "    def forward(self, x):\n"
        "        # No stacktrace found for following nodes\n"
        "        true_graph_0 = self.true_graph_0\n"
        "        wrap = torch.ops.higher_order.wrap(true_graph_0, x);  true_graph_0 = x = None\n"
        "        return wrap\n"
        "\n"
        "    class true_graph_0(torch.nn.Module):\n"
        "        def forward(self, arg0_1):\n"
        "            return arg0_1\n");
    ck_assert_str_eq(print(g, &fx_style_graph),
                     "graph():\n"
                     "    %x : [num_users=1] = placeholder[target=x]\n"
                     "    %true_graph_0 : [num_users=1] = get_attr[target=true_graph_0]\n"
                     "    %wrap : [num_users=1] = call_function[target=torch.ops.higher_order.wrap]"
                     "(args = (%true_graph_0, %x), kwargs = {})\n"
                     "    return wrap\n");
    Arena other = {0};
    Graph *c = graph_copy(&other, g);
    ck_assert_ptr_eq(graph_find(c, "true_graph_0")->val.graph, c->children.at[0].graph);
    ck_assert(sound(c));
    arena_free(&other);
}
END_TEST

static void broken(const Graph *g, const char *what) {
    Diag d = {.arena = &arena};
    ck_assert(!graph_verify(g, &d));
    ck_assert_msg(strstr(diag_first(&d), what) != NULL, "%s: expected '%s'", diag_first(&d), what);
}

// The lists of users are held against the arguments, both ways.
START_TEST(wrong_users_are_found) {
    Graph *g = fresh();
    Node *x = graph_node(g, FX_placeholder, "x", "x", NULL, 0, NULL, 0);
    Node *a = call1(g, "sin", "a", x), *b = call2(g, "add", "b", x, x);
    Value out = val_node(b);
    graph_node(g, FX_output, "output", "output", &out, 1, NULL, 0);
    ck_assert(sound(g));
    ck_assert_int_eq(x->n_users, 2);
    x->n_users = 1;
    broken(g, "node b: is missing among the users of x");
    x->n_users = 2;
    x->users[1] = a;
    broken(g, "node x: has a user twice: a");
    x->users[1] = x;
    broken(g, "node x: has a user that does not use it: x");
    x->users[1] = b;
    ck_assert(sound(g));
}
END_TEST

Suite *suite_fx_graph(void) {
    const TTest *const tests[] = {names,
                                  names_are_those_of_plain_counting,
                                  users_follow_changes,
                                  wrong_users_are_found,
                                  dead_code_goes,
                                  copies_stand_alone,
                                  prints_every_form,
                                  prints_listing_and_children};
    return unit_suite("fx_graph", tests, COUNT(tests));
}
