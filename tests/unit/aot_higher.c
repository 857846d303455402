// aot_higher.c: calls of nested graphs: their gradients against differences, what becomes of them
// in the joint graph, and refusals.
#include <string.h>

#include "core/eager/eager.h"
#include "tests/unit/aot_grads.h"
#include "tests/unit/unit.h"

#define T "torch.ops.aten."
#define H "torch.ops.higher_order."
#define BODY(name, params, lines)                                                                  \
    "class " name "(torch.nn.Module):\n    def forward(self, " params "):\n" lines "\n"

#define BRANCHES                                                                                   \
    BODY("t0", "p: \"f64[3, 4]\", q: \"f64[3, 4]\"",                                               \
         "        m = torch.ops.aten.mul.Tensor(p, q)\n"                                           \
         "        s = torch.ops.aten.sigmoid.default(m)\n"                                         \
         "        return (s, m)\n")                                                                \
    BODY("f0", "p: \"f64[3, 4]\", q: \"f64[3, 4]\"",                                               \
         "        c = torch.ops.aten.cos.default(q)\n"                                             \
         "        s = torch.ops.aten.add.Tensor(p, c)\n"                                           \
         "        e = torch.ops.aten.exp.default(p)\n"                                             \
         "        return (s, e)\n")

#define COND(pred)                                                                                 \
    "u = " T "sum.default(a)\n"                                                                    \
    "t0 = self.t0\nf0 = self.f0\n"                                                                 \
    "p = " pred "\n"                                                                               \
    "h = " H "cond(p, t0, f0, (a, b))\n"                                                           \
    "r = h[0]\ns = h[1]\n"                                                                         \
    "y = " T "mul.Tensor(r, s)\n" BRANCHES

static const GradCase calls[] = {
    // a condition that is true
    {.params = "a: f64[3, 4]; b: f64[3, 4]", .body = COND(T "gt.Scalar(u, -100)"), .out = "y"},
    // a condition that is false
    {.params = "a: f64[3, 4]; b: f64[3, 4]", .body = COND(T "gt.Scalar(u, 100)"), .out = "y"},
    // one operand without gradient
    {.params = "a: f64[3, 4]; -b: f64[3, 4]", .body = COND(T "lt.Scalar(u, 100)"), .out = "y"},
    // a result that is not used
    {.params = "a: f64[3, 4]; b: f64[3, 4]",
     .body = "u = " T "sum.default(a)\nt0 = self.t0\nf0 = self.f0\n"
             "p = " T "lt.Scalar(u, 100)\n"
             "h = " H "cond(p, t0, f0, (a, b))\ny = h[1]\n" BRANCHES,
     .out = "y"},
    // a condition in a condition
    {.params = "a: f64[3, 4]",
     .body =
         "u = " T "sum.default(a)\nt0 = self.t0\nf0 = self.f0\n"
         "p = " T "lt.Scalar(u, 100)\n"
         "h = " H "cond(p, t0, f0, (a,))\ny = h[0]\n" BODY(
             "t0", "p: \"f64[3, 4]\"",
             "        u = torch.ops.aten.sum.default(p)\n"
             "        g = torch.ops.aten.gt.Scalar(u, -100)\n"
             "        t1 = self.t1\n        f1 = self.f1\n"
             "        h = torch.ops.higher_order.cond(g, t1, f1, (p,))\n"
             "        r = h[0]\n        s = torch.ops.aten.mul.Tensor(r, p)\n        return (s,)\n"
             "    class t1(torch.nn.Module):\n"
             "        def forward(self, p: \"f64[3, 4]\"):\n"
             "            s = torch.ops.aten.sin.default(p)\n            return (s,)\n"
             "    class f1(torch.nn.Module):\n"
             "        def forward(self, p: \"f64[3, 4]\"):\n"
             "            s = torch.ops.aten.neg.default(p)\n            return (s,)\n")
             BODY("f0", "p: \"f64[3, 4]\"", "        return (p,)\n"),
     .out = "y"},
    // a checkpointed region in another
    {.params = "a: f64[3, 4]; b: f64[4, 4]",
     .body = "w0 = self.w0\n"
             "h = " H "tag_activation_checkpoint(w0, a, b, use_reentrant = False)\n"
             "r = h[0]\ny = " T "mul.Tensor(r, a)\n" BODY(
                 "w0", "p: \"f64[3, 4]\", q: \"f64[4, 4]\"",
                 "        m = torch.ops.aten.mm.default(p, q)\n        s = "
                 "torch.ops.aten.tanh.default(m)\n"
                 "        w1 = self.w1\n"
                 "        h = torch.ops.higher_order.tag_activation_checkpoint(w1, s, q, "
                 "use_reentrant = "
                 "False)\n"
                 "        r = h[0]\n        return (r,)\n"
                 "    class w1(torch.nn.Module):\n"
                 "        def forward(self, p: \"f64[3, 4]\", q: \"f64[4, 4]\"):\n"
                 "            m = torch.ops.aten.mm.default(p, q)\n"
                 "            s = torch.ops.aten.sigmoid.default(m)\n            return (s,)\n"),
     .out = "y"},
    // map, with an argument of all steps
    {.params = "a: f64[5, 3]; b: f64[3]",
     .body = "m0 = self.m0\nh = " H "map_impl(m0, [a], [b])\ny = h[0]\n" BODY(
         "m0", "p: \"f64[3]\", q: \"f64[3]\"",
         "        s = torch.ops.aten.sin.default(p)\n        r = torch.ops.aten.mul.Tensor(s, q)\n"
         "        return (r,)\n"),
     .out = "y"},
    // scan
    {.params = "a: f64[3]; b: f64[5, 3]; c: f64[3]",
     .body = "s0 = self.s0\nh = " H "scan(s0, [a], [b], (c,))\n"
             "r = h[0]\ns = h[1]\ny = " T "mul.Tensor(r, s)\n" BODY(
                 "s0", "p: \"f64[3]\", q: \"f64[3]\", w: \"f64[3]\"",
                 "        m = torch.ops.aten.mul.Tensor(p, w)\n        n = "
                 "torch.ops.aten.add.Tensor(m, "
                 "q)\n"
                 "        t = torch.ops.aten.tanh.default(n)\n        return (n, t)\n"),
     .out = "y"},
    // a function with its own backward, of two results, one of which is not used; a size among its
    // arguments; then as versions up to 2.6 print it, with `ctx` and one result
    {.params = "a: f64[3, 4]; b: f64[3, 4]",
     .body = "w0 = self.w0\nw1 = self.w1\n"
             "h = " H "autograd_function_apply(w0, w1, a, 2, b, non_differentiable_idx = [])\n"
             "y = h[0]\n" BODY("w0", "p: \"f64[3, 4]\", n, q: \"f64[3, 4]\"",
                               "        m = torch.ops.aten.mul.Tensor(p, q)\n"
                               "        k = torch.ops.aten.mul.Tensor(m, n)\n"
                               "        s = torch.ops.aten.sin.default(q)\n"
                               "        return ((k, s), [p, q, n])\n")
                 BODY("w1",
                      "g: \"f64[3, 4]\", gs: \"f64[3, 4]\", p: \"f64[3, 4]\", "
                      "q: \"f64[3, 4]\", n",
                      "        d = torch.ops.aten.mul.Tensor(g, n)\n"
                      "        gp = torch.ops.aten.mul.Tensor(d, q)\n"
                      "        gq = torch.ops.aten.mul.Tensor(d, p)\n"
                      "        c = torch.ops.aten.cos.default(q)\n"
                      "        gc = torch.ops.aten.mul.Tensor(gs, c)\n"
                      "        gq_1 = torch.ops.aten.add.Tensor(gq, gc)\n"
                      "        return (gp, None, gq_1)\n"),
     .out = "y"},
    {.params = "a: f64[3, 4]",
     .body = "w0 = self.w0\nw1 = self.w1\n"
             "y = " H "autograd_function_apply(w0, w1, a, args_tensor_mask = [True], "
             "non_differentiable_idx = [])\n" BODY(
                 "w0", "ctx, p: \"f64[3, 4]\"",
                 "        s = torch.ops.aten.exp.default(p)\n        return (s, [s])\n")
                 BODY("w1", "ctx, g: \"f64[3, 4]\", s: \"f64[3, 4]\"",
                      "        d = torch.ops.aten.mul.Tensor(g, s)\n        return d\n"),
     .out = "y"},
    // a wrapped graph, and one under gradients
    {.params = "a: f64[3, 4]; b: f64[3, 4]",
     .body = "w0 = self.w0\nh = " H "wrap(w0, a, b)\nr = h[0]\n"
             "w1 = self.w1\nk = " H "wrap_with_set_grad_enabled(True, w1, r, b)\ny = k[0]\n" BODY(
                 "w0", "p: \"f64[3, 4]\", q: \"f64[3, 4]\"",
                 "        m = torch.ops.aten.mul.Tensor(p, q)\n        return (m,)\n")
                 BODY("w1", "p: \"f64[3, 4]\", q: \"f64[3, 4]\"",
                      "        m = torch.ops.aten.sin.default(p)\n        return (m,)\n"),
     .out = "y"},
};

START_TEST(gradients) {
    for (int i = 0; i < COUNT(calls); i++)
        grad_check(&calls[i]);
}
END_TEST

static Arena arena;

static AotResult trace_text(const char *text, const bool *needs, Diag *d) {
    arena_free(&arena);
    FxDoc doc = {.arena = &arena};
    *d = (Diag){.arena = &arena};
    ck_assert_msg(fx_parse(&doc, sym_new(&arena), (Str){text, strlen(text)}, "t", d), "%s",
                  diag_first(d));
    AotRequest r = {.graph = doc.at[0].graph,
                    .arena = &arena,
                    .diag = d,
                    .decomps = DECOMP_inductor,
                    .requires_grad = needs};
    return needs ? aot_trace_joint(&r) : aot_trace_inference(&r);
}

static Graph *child_of(const Graph *g, const char *name) {
    for (int i = 0; i < g->children.n; i++)
        if (!strcmp(g->children.at[i].name, name))
            return g->children.at[i].graph;
    ck_abort_msg("no child %s", name);
    return NULL;
}

static const char *targets(const Graph *g) {
    Buf b = {.arena = &arena};
    GRAPH_EACH (g, n)
        if (n->op == FX_call_function)
            buf_printf(&b, "%s;", strrchr(n->target, '.') > n->target ? n->name : n->target);
    return buf_str(&b);
}

#define MAIN(params, lines)                                                                        \
    "class G(torch.nn.Module):\n    def forward(self, " params "):\n" lines "\n"

// What torch.cond's backward of a*b and of a + b prints in PyTorch 2.11: forward again as far as it
// is needed, zeros for what has no gradient, a clone for what is a tangent itself.
START_TEST(backward_of_a_condition) {
    Diag d;
    const bool needs[] = {false, true, true, false};
    AotResult r = trace_text(
        MAIN("p: \"b8[]\", x: \"f32[3]\", y: \"f32[3]\", i: \"i64[3]\"",
             "        t0 = self.t0\n        f0 = self.f0\n"
             "        h = torch.ops.higher_order.cond(p, t0, f0, (x, y, i))\n"
             "        r = h[0]\n        return (r,)\n\n"
             "    class t0(torch.nn.Module):\n"
             "        def forward(self, x: \"f32[3]\", y: \"f32[3]\", i: \"i64[3]\"):\n"
             "            m = x * y\n            s = m.sin()\n            return (s,)\n\n"
             "    class f0(torch.nn.Module):\n"
             "        def forward(self, x: \"f32[3]\", y: \"f32[3]\", i: \"i64[3]\"):\n"
             "            s = x.clone()\n            return (s,)\n"),
        needs, &d);
    ck_assert_msg(r.graph && graph_verify(r.graph, &d), "%s", diag_first(&d));
    ck_assert_int_eq(r.graph->children.n, 4);
    ck_assert_str_eq(targets(r.graph), "cond;getitem;cond_1;getitem_1;getitem_2;");
    ck_assert_str_eq(targets(child_of(r.graph, "true_graph_0")), "mul;sin;");
    ck_assert_str_eq(targets(child_of(r.graph, "true_graph_1")), "mul;cos;mul_1;mul_2;mul_3;full;");
    ck_assert_str_eq(targets(child_of(r.graph, "false_graph_1")), "full;full_1;clone_1;");
    const Node *call = graph_find(r.graph, "cond_1");
    ck_assert_int_eq(call->args[3].n, 4); // three operands, one tangent
    ck_assert_int_eq(graph_output_node(child_of(r.graph, "true_graph_1"))->args[0].n, 3);
}
END_TEST

START_TEST(regions_are_numbered) {
    Diag d;
    const bool needs[] = {true};
    AotResult r =
        trace_text(MAIN("x: \"f32[3]\"",
                        "        w0 = self.w0\n"
                        "        h = torch.ops.higher_order.tag_activation_checkpoint(w0, x)\n"
                        "        a = h[0]\n"
                        "        k = torch.ops.higher_order.tag_activation_checkpoint(w0, a)\n"
                        "        b = k[0]\n        return (b,)\n\n"
                        "    class w0(torch.nn.Module):\n"
                        "        def forward(self, x: \"f32[3]\"):\n"
                        "            s = x.sin()\n            return (s,)\n"),
                   needs, &d);
    ck_assert_msg(r.graph && graph_verify(r.graph, &d), "%s", diag_first(&d));
    // The search for metadata has counted to 2.
    const Node *sin = graph_find(r.graph, "sin"), *sin_1 = graph_find(r.graph, "sin_1");
    ck_assert_int_eq(sin->ac_graph_id, 3);
    ck_assert_int_eq(sin_1->ac_graph_id, 4);
    ck_assert_str_eq(sin_1->note, " ac_graph_id: 4 - PREFER_RECOMPUTE");
    ck_assert(sin->flags & NODE_must_recompute);
    ck_assert_int_eq(graph_find(r.graph, "cos")->ac_graph_id, 0);
    ck_assert_int_eq(r.graph->children.n, 0);
}
END_TEST

static const struct {
    const char *text, *error; // NULL: it stays a call, its graphs at hand
    const char *child;
} odd[] = {
    {MAIN("p: \"b8[]\", x: \"f32[3]\"",
          "        t0 = self.t0\n        f0 = self.f0\n"
          "        h = torch.ops.higher_order.cond(p, t0, f0, (x, x))\n        return (h,)\n\n"
          "    class t0(torch.nn.Module):\n        def forward(self, x: \"f32[3]\"):\n"
          "            return (x,)\n\n"
          "    class f0(torch.nn.Module):\n        def forward(self, x: \"f32[3]\"):\n"
          "            return (x,)\n"),
     "the nested graph t0 takes 1 inputs, but 2 are given", NULL},
    {MAIN("p: \"b8[]\", x: \"f32[3]\"",
          "        t0 = self.t0\n        f0 = self.f0\n"
          "        h = torch.ops.higher_order.cond(p, t0, f0, (x,))\n        return (h,)\n\n"
          "    class t0(torch.nn.Module):\n        def forward(self, x: \"f32[3]\"):\n"
          "            return (x, x)\n\n"
          "    class f0(torch.nn.Module):\n        def forward(self, x: \"f32[3]\"):\n"
          "            return (x,)\n"),
     "true returns 2 and false 1", NULL},
    {MAIN("p: \"b8[]\", x: \"f32[3]\"",
          "        t0 = self.t0\n        f0 = self.f0\n"
          "        h = torch.ops.higher_order.cond(p, t0, f0, (x,))\n        return (h,)\n\n"
          "    class t0(torch.nn.Module):\n        def forward(self, x: \"f32[3]\"):\n"
          "            return (x,)\n"),
     NULL, "t0"}, // one graph is missing
    {MAIN("p: \"b8[]\", x: \"f32[3]\"",
          "        t0 = self.t0\n        f0 = self.f0\n"
          "        h = torch.ops.higher_order.cond(p, t0, f0, (x,))\n        return (h,)\n\n"
          "    class t0(torch.nn.Module):\n        def forward(self, x: \"f32[3]\"):\n"
          "            y = x.add_(1)\n            return (y,)\n\n"
          "    class f0(torch.nn.Module):\n        def forward(self, x: \"f32[3]\"):\n"
          "            y = x + 1\n            return (y,)\n"),
     NULL, "t0"}, // a branch writes an operand
    {MAIN("x: \"f32[3]\"",
          "        t0 = self.t0\n"
          "        h = torch.ops.higher_order.unheard_of(t0, x)\n        return (h,)\n\n"
          "    class t0(torch.nn.Module):\n        def forward(self, x: \"f32[3]\"):\n"
          "            y = x + 1\n            return (y,)\n"),
     NULL, "t0"},
};

START_TEST(odd_calls) {
    for (int i = 0; i < COUNT(odd); i++) {
        Diag d;
        AotResult r = trace_text(odd[i].text, NULL, &d);
        if (odd[i].error) {
            ck_assert_ptr_null(r.graph);
            ck_assert_msg(strstr(diag_first(&d), odd[i].error) != NULL, "%s", diag_first(&d));
            continue;
        }
        ck_assert_msg(r.graph && graph_verify(r.graph, &d), "%d: %s", i, diag_first(&d));
        child_of(r.graph, odd[i].child);
    }
}
END_TEST

// 2 ^ 8 by a loop, run before and after it is traced.
START_TEST(a_loop_runs) {
    Diag d;
    static const char text[] = MAIN(
        "i: \"i64[]\", x: \"f32[2]\"",
        "        c0 = self.c0\n        b0 = self.b0\n"
        "        h = torch.ops.higher_order.while_loop(c0, b0, (i, x), ())\n"
        "        n = h[0]\n        y = h[1]\n        return (n, y)\n\n"
        "    class c0(torch.nn.Module):\n        def forward(self, i: \"i64[]\", x: \"f32[2]\"):\n"
        "            l = i < 8\n            return l\n\n"
        "    class b0(torch.nn.Module):\n        def forward(self, i: \"i64[]\", x: \"f32[2]\"):\n"
        "            j = i + 1\n            y = x * 2\n            return (j, y)\n");
    AotResult r = trace_text(text, NULL, &d);
    ck_assert_msg(r.graph && graph_verify(r.graph, &d), "%s", diag_first(&d));
    ck_assert_str_eq(targets(child_of(r.graph, "while_loop_cond_graph_0")), "lt;");
    ck_assert_str_eq(targets(child_of(r.graph, "while_loop_body_graph_0")), "add;mul;");
    RtValue in[2] = {{.kind = RT_tensor}, {.kind = RT_tensor}};
    ck_assert(tensor_new(&in[0].tensor, DT_i64, 0, (int64_t[1]){0}, &d));
    ck_assert(tensor_new(&in[1].tensor, DT_f32, 1, (int64_t[]){2}, &d));
    tensor_set_f64(&in[1].tensor, 0, 1);
    tensor_set_f64(&in[1].tensor, 1, 3);
    EagerCtx c = {.arena = &arena, .diag = &d, .threads = 1};
    EagerRun run = {.graph = r.graph, .inputs = in, .n_inputs = 2};
    ck_assert_msg(eager_run(&c, &run), "%s", diag_first(&d));
    ck_assert_int_eq(run.n_outputs, 2);
    ck_assert_int_eq(tensor_get_i64(&run.outputs[0].tensor, 0), 8);
    ck_assert(tensor_get_f64(&run.outputs[1].tensor, 1) == 3 * 256);
    for (int i = 0; i < 2; i++) {
        rt_drop(&run.outputs[i]);
        rt_drop(&in[i]);
    }
}
END_TEST

// linear casts all its arguments, the last one first; softmax takes what comes; mse_loss wants
// float32, cat the widest type; behind the region nothing is cast.
START_TEST(autocast_regions) {
    static const char *const enter[2] = {
        "        e = torch.amp.autocast_mode._enter_autocast('cpu', torch.bfloat16, True, None)\n",
        "        e = torch.amp.autocast_mode._enter_autocast('cpu', torch.bfloat16, False, "
        "None)\n"};
    static const char *const want[2] = {
        "torch.ops.aten._to_copy.default\ntorch.ops.aten._to_copy.default\n"
        "torch.ops.aten.t.default\ntorch.ops.aten.mm.default\ntorch.ops.aten._softmax.default\n"
        "torch.ops.aten._to_copy.default\ntorch.ops.aten.cat.default\n"
        "torch.ops.aten._to_copy.default\ntorch.ops.aten._to_copy.default\n"
        "torch.ops.aten.mse_loss.default\ntorch.ops.aten.mm.default\n",
        "torch.ops.aten.t.default\ntorch.ops.aten.mm.default\ntorch.ops.aten._softmax.default\n"
        "torch.ops.aten.cat.default\ntorch.ops.aten.mse_loss.default\ntorch.ops.aten.mm.default\n"};
    for (int i = 0; i < 2; i++) {
        arena_free(&arena);
        const char *text =
            arena_printf(&arena,
                         MAIN("x: \"f32[4, 8]\", w: \"f32[8, 8]\"",
                              "%s"
                              "        y = torch._C._nn.linear(x, w)\n"
                              "        z = torch.softmax(y, -1)\n        c = torch.cat([z, x])\n"
                              "        m = torch.nn.functional.mse_loss(z, y)\n"
                              "        o = torch.amp.autocast_mode._exit_autocast(e)\n"
                              "        q = torch.mm(c, w)\n        return (q, m)\n"),
                         enter[i]);
        const bool none[2] = {false, false};
        ck_assert_str_eq(joint_text(&arena, text, none, DECOMP_none), want[i]);
    }
    Diag d;
    AotResult r = trace_text(
        MAIN("x: \"f32[4, 8]\", w: \"f32[8, 8]\"",
             "        g = self.g\n"
             "        h = torch.ops.higher_order.wrap_with_autocast('cpu', torch.bfloat16, True, "
             "None, g, x, w)\n"
             "        y = h[0]\n        return (y,)\n\n"
             "    class g(torch.nn.Module):\n"
             "        def forward(self, x: \"f32[4, 8]\", w: \"f32[8, 8]\"):\n"
             "            m = torch.ops.aten.mm.default(x, w)\n            return (m,)\n"),
        NULL, &d);
    ck_assert_msg(r.graph != NULL, "%s", diag_first(&d));
    ck_assert_str_eq(targets(r.graph), "convert_element_type;convert_element_type_1;mm;");
    ck_assert_str_eq(graph_find(r.graph, "convert_element_type")->args[0].node->name, "arg1_1");
    ck_assert_int_eq(node_tensor(graph_find(r.graph, "mm"))->dtype, DT_bf16);
}
END_TEST

Suite *suite_aot_higher(void) {
    const TTest *const tests[] = {
        gradients,   backward_of_a_condition, regions_are_numbered, odd_calls,
        a_loop_runs, autocast_regions};
    return unit_suite("aot_higher", tests, COUNT(tests));
}
