// aot_functional.c: writes, views and aliasing taken out of small graphs. What is expected is what
// FunctionalTensorWrapper does, node for node, or follows from eager semantics where PyTorch has
// been reported wrong.
#include <string.h>

#include "core/aot/aot.h"
#include "core/tensor/tensor.h"
#include "tests/unit/unit.h"

// A captured function of its lines, each at indent 8.
static const Graph *parse(Arena *a, const char *params, const char *body, Diag *d) {
    Buf text = {.arena = a};
    buf_printf(&text, "class GraphModule(torch.nn.Module):\n    def forward(self, %s):\n%s", params,
               body);
    FxDoc doc = {0};
    Str s = {buf_str(&text), text.len};
    doc.arena = a;
    ck_assert_msg(fx_parse(&doc, sym_new(a), s, "test", d), "%s", diag_first(d));
    ck_assert_int_eq(doc.n, 1);
    return doc.at[0].graph;
}

static AotResult trace(Arena *a, const Graph *g, DecompTable table, Diag *d) {
    AotRequest r = {
        .graph = g, .arena = a, .diag = d, .decomps = table, .keep_input_mutations = true};
    AotResult out = aot_trace_inference(&r);
    ck_assert_msg(out.graph && graph_verify(out.graph, d), "%s", diag_first(d));
    return out;
}

// The statements without annotations, frees and comments.
static const char *statements(Arena *a, const Graph *g) {
    Buf all = {.arena = a}, out = {.arena = a};
    graph_print(&all, g, &fx_style_code, NULL);
    for (const char *p = strchr(buf_str(&all), '\n') + 1; *p;) {
        const char *end = strchr(p, '\n'), *free = strstr(p, ";  ");
        const char *stop = free && (!end || free < end) ? free : end ? end : p + strlen(p);
        while (*p == ' ')
            p++;
        if (stop > p && strncmp(p, "def ", 4) != 0)
            buf_printf(&out, "%.*s\n", (int)(stop - p), p);
        if (!end)
            break;
        p = end + 1;
    }
    return buf_str(&out);
}

static void check(const char *params, const char *body, const char *want) {
    Arena a = {0};
    Diag d = {.arena = &a};
    AotResult r = trace(&a, parse(&a, params, body, &d), DECOMP_inductor, &d);
    ck_assert_str_eq(statements(&a, r.graph), want);
    arena_free(&a);
}

#define P "torch.ops.aten."

START_TEST(write_through_a_view_of_a_view) {
    check("L_x_: \"f32[4, 5][5, 1]cpu\"",
          "        l_x_ = L_x_\n"
          "        getitem: \"f32[2, 5][5, 1]cpu\" = l_x_[slice(1, 3, None)]\n"
          "        getitem_1: \"f32[5][1]cpu\" = getitem[0]\n"
          "        add_: \"f32[5][1]cpu\" = getitem_1.add_(1)\n"
          "        mul: \"f32[4, 5][5, 1]cpu\" = l_x_ * 2\n"
          "        return (mul,)\n",
          "slice_1 = " P "slice.Tensor(arg0_1, 0, 1, 3)\n"
          "select = " P "select.int(slice_1, 0, 0)\n"
          "add = " P "add.Tensor(select, 1)\n"
          "slice_2 = " P "slice.Tensor(arg0_1, 0, 1, 3)\n"
          "select_scatter = " P "select_scatter.default(slice_2, add, 0, 0)\n"
          "slice_scatter = " P "slice_scatter.default(arg0_1, select_scatter, 0, 1, 3)\n"
          "mul = " P "mul.Tensor(slice_scatter, 2)\n"
          "copy_ = " P "copy_.default(arg0_1, slice_scatter)\n"
          "return (mul,)\n");
}
END_TEST

// reports: as_strided on a view addresses the storage, not the view.
START_TEST(as_strided_addresses_the_storage) {
    check("L_x_: \"f32[1][1]cpu\"",
          "        a: \"f32[2, 4][4, 1]cpu\" = torch.zeros(2, 4)\n"
          "        d: \"f32[2][5]cpu\" = a.diagonal()\n"
          "        s: \"f32[2][1]cpu\" = d.as_strided((2,), (1,), 0)\n"
          "        add_: \"f32[2][1]cpu\" = s.add_(1)\n"
          "        return (a,)\n",
          "full = " P "full.default([2, 4], 0, dtype = torch.float32, layout = torch.strided, "
          "device = device(type='cpu'), pin_memory = False)\n"
          "diagonal = " P "diagonal.default(full)\n"
          "as_strided = " P "as_strided.default(diagonal, [2], [1], 0)\n"
          "add = " P "add.Tensor(as_strided, 1)\n"
          "as_strided_scatter = " P "as_strided_scatter.default(full, add, [2], [1], 0)\n"
          "return (as_strided_scatter,)\n");
}
END_TEST

// reports: a stack of one tensor is a copy of it.
START_TEST(stack_of_one_is_no_alias) {
    check("L_x_: \"f32[2][1]cpu\"",
          "        l_x_ = L_x_\n"
          "        r: \"f32[1, 2][2, 1]cpu\" = torch.stack([l_x_])\n"
          "        n: \"f32[2][1]cpu\" = l_x_.neg_()\n"
          "        return (r, l_x_)\n",
          "clone = " P "clone.default(arg0_1)\n"
          "view = " P "view.default(clone, [1, 2])\n"
          "neg = " P "neg.default(arg0_1)\n"
          "copy_ = " P "copy_.default(arg0_1, neg)\n"
          "return (view, arg0_1)\n");
}
END_TEST

// reports: an in-place op does not change an earlier result.
START_TEST(earlier_results_stay) {
    check("L_x_: \"f32[1][1]cpu\"",
          "        l_x_ = L_x_\n"
          "        y: \"f32[1][1]cpu\" = l_x_.log()\n"
          "        log_: \"f32[1][1]cpu\" = l_x_.log_()\n"
          "        return (y,)\n",
          "log = " P "log.default(arg0_1)\n"
          "log_1 = " P "log.default(arg0_1)\n"
          "copy_ = " P "copy_.default(arg0_1, log_1)\n"
          "return (log,)\n");
}
END_TEST

// reports: dst[:] = src[:] reads src before src changes.
START_TEST(copy_before_the_source_changes) {
    check("L_dst_: \"f32[2, 3][3, 1]cpu\", L_src_: \"f32[2, 3][3, 1]cpu\"",
          "        l_dst_ = L_dst_\n"
          "        l_src_ = L_src_\n"
          "        getitem: \"f32[2, 3][3, 1]cpu\" = l_src_[slice(None, None, None)]\n"
          "        l_dst_[slice(None, None, None)] = getitem;  setitem = l_dst_\n"
          "        add_: \"f32[2, 3][3, 1]cpu\" = l_src_.add_(1)\n"
          "        return ()\n",
          "alias = " P "alias.default(arg1_1)\n"
          "copy = " P "copy.default(arg0_1, alias)\n"
          "add = " P "add.Tensor(arg1_1, 1)\n"
          "copy_ = " P "copy_.default(arg0_1, copy)\n"
          "copy__1 = " P "copy_.default(arg1_1, add)\n"
          "return ()\n");
}
END_TEST

// reports: a window with gaps writes only what it shows.
START_TEST(unfold_keeps_what_it_skips) {
    Arena a = {0};
    Diag d = {.arena = &a};
    const Graph *g = parse(&a, "L_x_: \"f32[4, 6][6, 1]cpu\"",
                           "        l_x_ = L_x_\n"
                           "        v: \"f32[4, 1, 5][6, 5, 1]cpu\" = l_x_.unfold(1, 5, 5)\n"
                           "        add_: \"f32[4, 1, 5][6, 5, 1]cpu\" = v.add_(v)\n"
                           "        return (l_x_,)\n",
                           &d);
    AotResult r = trace(&a, g, DECOMP_none, &d);
    bool scatter = false;
    GRAPH_EACH (r.graph, n) {
        scatter = scatter || node_is(n, OP_aten_as_strided_scatter_default);
        ck_assert(!node_is(n, OP_aten_unfold_backward_default));
    }
    ck_assert(scatter);
    ck_assert_int_eq(r.n_mutated, 1);
    arena_free(&a);
}
END_TEST

// A result of another type is converted back to the type of what it is written to.
START_TEST(in_place_keeps_its_type) {
    check(
        "L_x_: \"f16[3][1]cpu\", L_y_: \"f32[3][1]cpu\"",
        "        l_x_ = L_x_\n"
        "        l_y_ = L_y_\n"
        "        add_: \"f16[3][1]cpu\" = l_x_.add_(l_y_)\n"
        "        return (l_x_,)\n",
        "add = " P "add.Tensor(arg0_1, arg1_1)\n"
        "convert_element_type = torch.ops.prims.convert_element_type.default(add, torch.float16)\n"
        "copy_ = " P "copy_.default(arg0_1, convert_element_type)\n"
        "return (arg0_1,)\n");
}
END_TEST

// The functional stage: composites gone, tables not yet applied.
START_TEST(functional_stage_keeps_ops_whole) {
    Arena a = {0};
    Diag d = {.arena = &a};
    const Graph *g = parse(
        &a, "L_x_: \"f32[3, 4][4, 1]cpu\", L_w_: \"f32[5, 4][4, 1]cpu\", L_b_: \"f32[5][1]cpu\"",
        "        l_x_ = L_x_\n"
        "        l_w_ = L_w_\n"
        "        l_b_ = L_b_\n"
        "        y: \"f32[3, 5][5, 1]cpu\" = torch._C._nn.linear(l_x_, l_w_, l_b_)\n"
        "        z: \"f32[3, 5][5, 1]cpu\" = torch.nn.functional.silu(y, inplace = True)\n"
        "        s: \"f32[3, 5][5, 1]cpu\" = torch.softmax(z, dim = 1)\n"
        "        return (s,)\n",
        &d);
    AotResult r = trace(&a, g, DECOMP_none, &d);
    ck_assert_str_eq(statements(&a, r.graph), "t = " P "t.default(arg1_1)\n"
                                              "addmm = " P "addmm.default(arg2_1, arg0_1, t)\n"
                                              "silu = " P "silu.default(addmm)\n"
                                              "_softmax = " P "_softmax.default(silu, 1, False)\n"
                                              "return (_softmax,)\n");
    arena_free(&a);
}
END_TEST

// Each node knows the nodes of the captured graph that it was made for, and the op that reached the
// tracer.
START_TEST(origins_and_original_aten) {
    Arena a = {0};
    Diag d = {.arena = &a};
    const Graph *g = parse(&a, "L_x_: \"f32[3, 4][4, 1]cpu\"",
                           "        l_x_ = L_x_\n"
                           "        y: \"f32[3, 4][4, 1]cpu\" = torch.relu(l_x_)\n"
                           "        s: \"f32[3, 4][4, 1]cpu\" = torch.softmax(y, dim = 1)\n"
                           "        return (s,)\n",
                           &d);
    AotResult r = trace(&a, g, DECOMP_inductor, &d);
    const Node *relu = graph_find(r.graph, "relu"), *exp = graph_find(r.graph, "exp");
    int n;
    const Link *l = origins_from(r.origins, relu->id, &n);
    ck_assert_int_eq(n, 1);
    ck_assert_int_eq(l->item, graph_find(g, "y")->id);
    ck_assert_int_eq(l->strength, LINK_same);
    l = origins_from(r.origins, exp->id, &n);
    ck_assert_int_eq(n, 1);
    ck_assert_int_eq(l->item, graph_find(g, "s")->id);
    ck_assert_int_eq(l->strength, LINK_part);
    ck_assert_str_eq(exp->original_aten, "aten._softmax.default");
    arena_free(&a);
}
END_TEST

// An op that nobody knows stays, and what is behind it still works.
START_TEST(unknown_calls_stay) {
    check("L_x_: \"f32[3][1]cpu\"",
          "        l_x_ = L_x_\n"
          "        y: \"f32[3][1]cpu\" = mylib.mystery(l_x_, 2)\n"
          "        z: \"f32[3][1]cpu\" = y + 1\n"
          "        return (z,)\n",
          "mylib_mystery = mylib_mystery(arg0_1, 2)\n"
          "add = " P "add.Tensor(mylib_mystery, 1)\n"
          "return (add,)\n");
}
END_TEST

// Overrides turn a decomposition off.
START_TEST(decompositions_ask) {
    Arena a = {0};
    Diag d = {.arena = &a};
    const Graph *g = parse(&a, "L_x_: \"f32[3][1]cpu\"",
                           "        l_x_ = L_x_\n"
                           "        y: \"f32[3][1]cpu\" = torch.nn.functional.silu(l_x_)\n"
                           "        return (y,)\n",
                           &d);
    Overrides *o = overrides_new(&a);
    decide_override(o, DECIDE_decomposition, "aten.silu.default", false);
    AotRequest r = {.graph = g,
                    .arena = &a,
                    .diag = &d,
                    .decomps = DECOMP_inductor,
                    .keep_input_mutations = true,
                    .decisions = decisions_new(&a, o)};
    AotResult out = aot_trace_inference(&r);
    ck_assert_str_eq(statements(&a, out.graph),
                     "silu = " P "silu.default(arg0_1)\nreturn (silu,)\n");
    ck_assert_int_eq(decisions_count(r.decisions), 1);
    arena_free(&a);
}
END_TEST

// std asks for a float correction, var passes on what the caller's overload means.
START_TEST(corrections) {
    check("L_x_: \"f32[4, 8][8, 1]cpu\"",
          "        l_x_ = L_x_\n"
          "        std: \"f32[4, 1][1, 1]cpu\" = l_x_.std(-1, keepdim = True)\n"
          "        v = torch.var(l_x_, 1)\n"
          "        return (std, v)\n",
          "var = " P "var.correction(arg0_1, [-1], correction = 1.0, keepdim = True)\n"
          "sqrt = " P "sqrt.default(var)\n"
          "var_1 = " P "var.correction(arg0_1, [1], correction = 1)\n"
          "return (sqrt, var_1)\n");
}
END_TEST

// x.item() is a number that keeps its node.
START_TEST(items_are_used) {
    check("L_x_: \"f32[4][1]cpu\"",
          "        l_x_ = L_x_\n"
          "        s: \"f32[][]cpu\" = l_x_.sum()\n"
          "        item = s.item()\n"
          "        y: \"f32[4][1]cpu\" = l_x_ * item\n"
          "        return (y,)\n",
          "sum_1 = " P "sum.default(arg0_1)\n"
          "_local_scalar_dense = " P "_local_scalar_dense.default(sum_1)\n"
          "mul = " P "mul.Tensor(arg0_1, _local_scalar_dense)\n"
          "return (mul,)\n");
}
END_TEST

#define F45 "\"f32[4, 5][5, 1]cpu\""

// A decomposition is called without trailing arguments that have their default values.
START_TEST(defaults_are_not_passed_on) {
    check("L_x_: " F45,
          "        l_x_ = L_x_\n"
          "        y: " F45 " = torch._C._nn.softplus(l_x_)\n"
          "        return (y,)\n",
          "exp = " P "exp.default(arg0_1)\n"
          "log1p = " P "log1p.default(exp)\n"
          "gt = " P "gt.Scalar(arg0_1, 20)\n"
          "where = " P "where.self(gt, arg0_1, log1p)\n"
          "return (where,)\n");
    check("L_x_: " F45,
          "        l_x_ = L_x_\n"
          "        y: " F45 " = torch._C._nn.softplus(l_x_, 2.0)\n"
          "        return (y,)\n",
          "mul = " P "mul.Tensor(arg0_1, 2.0)\n"
          "exp = " P "exp.default(mul)\n"
          "log1p = " P "log1p.default(exp)\n"
          "div = " P "div.Tensor(log1p, 2.0)\n"
          "gt = " P "gt.Scalar(mul, 20)\n"
          "where = " P "where.self(gt, arg0_1, div)\n"
          "return (where,)\n");
}
END_TEST

// Compilers evaluate the right operand of C++'s operators first: one_hot is eq(unsqueeze(x),
// arange).
START_TEST(composites_in_the_order_of_c) {
    check("L_x_: \"i64[3][1]cpu\"",
          "        l_x_ = L_x_\n"
          "        y: \"i64[3, 4][4, 1]cpu\" = torch._C._nn.one_hot(l_x_, 4)\n"
          "        return (y,)\n",
          "iota = torch.ops.prims.iota.default(4, start = 0, step = 1, dtype = torch.int64, "
          "device = device(type='cpu'), requires_grad = False)\n"
          "unsqueeze = " P "unsqueeze.default(arg0_1, -1)\n"
          "eq = " P "eq.Tensor(unsqueeze, iota)\n"
          "convert_element_type = torch.ops.prims.convert_element_type.default(eq, torch.int64)\n"
          "return (convert_element_type,)\n");
}
END_TEST

// The number becomes an attribute; functional copies have the target's strides.
START_TEST(a_number_is_written) {
    Arena a = {0};
    Diag d = {.arena = &a};
    const char *body = "        l_x_ = L_x_\n"
                       "        y: " F45 " = l_x_ * 2\n"
                       "        z: \"f32[5, 4][1, 5]cpu\" = y.t()\n"
                       "        z[2] = 0.25;  setitem = z;  setitem = None\n"
                       "        return (y,)\n";
    AotResult r = trace(&a, parse(&a, "L_x_: " F45, body, &d), DECOMP_inductor, &d);
    ck_assert_str_eq(statements(&a, r.graph),
                     "mul = " P "mul.Tensor(arg0_1, 2)\n"
                     "permute = " P "permute.default(mul, [1, 0])\n"
                     "_tensor_constant0 = self._tensor_constant0\n"
                     "lift_fresh_copy = " P "lift_fresh_copy.default(_tensor_constant0)\n"
                     "select = " P "select.int(permute, 0, 2)\n"
                     "copy = " P "copy.default(select, lift_fresh_copy)\n"
                     "permute_1 = " P "permute.default(mul, [1, 0])\n"
                     "select_scatter = " P "select_scatter.default(permute_1, copy, 0, 2)\n"
                     "permute_2 = " P "permute.default(select_scatter, [1, 0])\n"
                     "return (permute_2,)\n");
    const TensorMeta *copy = node_tensor(graph_find(r.graph, "copy"));
    ck_assert(copy->ndim == 1 && expr_is(copy->stride[0], 5));
    ck_assert_int_eq(r.graph->consts.n, 1);
    const Tensor *c = r.graph->consts.at[0].tensor;
    ck_assert(c && c->ndim == 0 && tensor_get_f64(c, 0) == 0.25);
    ck_assert_str_eq(graph_find(r.graph, "lift_fresh_copy")->original_aten,
                     "aten.lift_fresh.default");
    PassCtx ctx = {.arena = &a, .diag = &d, .origins = r.origins, .inference = true};
    Graph *folded = pass_constant_fold_uniform_value.run(&ctx, r.graph);
    ck_assert_ptr_ne(strstr(statements(&a, folded),
                            "full_default = " P "full.default([], 0.25, dtype = torch.float32"),
                     NULL);
    arena_free(&a);
}
END_TEST

// ATen's RNN.cpp: the input's product first for a GRU, the state's for an LSTM.
START_TEST(cells_of_recurrent_networks) {
    check("x: \"f32[2, 3][3, 1]cpu\", h: \"f32[2, 4][4, 1]cpu\", c: \"f32[2, 4][4, 1]cpu\", "
          "wi: \"f32[16, 3][3, 1]cpu\", wh: \"f32[16, 4][4, 1]cpu\"",
          "        r = torch.lstm_cell(x, [h, c], wi, wh)\n"
          "        y: \"f32[2, 4][4, 1]cpu\" = r[0]\n"
          "        z: \"f32[2, 4][4, 1]cpu\" = r[1]\n"
          "        return (y, z)\n",
          "permute = " P "permute.default(arg4_1, [1, 0])\n"
          "mm = " P "mm.default(arg1_1, permute)\n"
          "permute_1 = " P "permute.default(arg3_1, [1, 0])\n"
          "mm_1 = " P "mm.default(arg0_1, permute_1)\n"
          "add = " P "add.Tensor(mm, mm_1)\n"
          "split = " P "split.Tensor(add, 4, 1)\n"
          "getitem = split[0]\n"
          "getitem_1 = split[1]\n"
          "getitem_2 = split[2]\n"
          "getitem_3 = split[3]\n"
          "sigmoid = " P "sigmoid.default(getitem)\n"
          "sigmoid_1 = " P "sigmoid.default(getitem_1)\n"
          "tanh = " P "tanh.default(getitem_2)\n"
          "sigmoid_2 = " P "sigmoid.default(getitem_3)\n"
          "mul = " P "mul.Tensor(sigmoid_1, arg2_1)\n"
          "mul_1 = " P "mul.Tensor(sigmoid, tanh)\n"
          "add_1 = " P "add.Tensor(mul, mul_1)\n"
          "tanh_1 = " P "tanh.default(add_1)\n"
          "mul_2 = " P "mul.Tensor(sigmoid_2, tanh_1)\n"
          "return (mul_2, add_1)\n");
}
END_TEST

Suite *suite_aot_functional(void) {
    static const TTest *tests[17];
    int n = 0;
    tests[n++] = write_through_a_view_of_a_view;
    tests[n++] = as_strided_addresses_the_storage;
    tests[n++] = stack_of_one_is_no_alias;
    tests[n++] = earlier_results_stay;
    tests[n++] = copy_before_the_source_changes;
    tests[n++] = unfold_keeps_what_it_skips;
    tests[n++] = in_place_keeps_its_type;
    tests[n++] = functional_stage_keeps_ops_whole;
    tests[n++] = origins_and_original_aten;
    tests[n++] = unknown_calls_stay;
    tests[n++] = decompositions_ask;
    tests[n++] = corrections;
    tests[n++] = items_are_used;
    tests[n++] = defaults_are_not_passed_on;
    tests[n++] = composites_in_the_order_of_c;
    tests[n++] = a_number_is_written;
    tests[n++] = cells_of_recurrent_networks;
    return unit_suite("aot_functional", tests, n);
}
