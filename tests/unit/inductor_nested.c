// inductor_nested.c: graphs with nested graphs through every rung: compiled code and the loop IR
// against eager.
#include <math.h>
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
    unit_folder_make();
}

static void close_session(void) {
    if (session)
        session_close(session);
    session = NULL;
}

static void teardown(void) {
    close_session();
    unit_folder_drop();
    arena_free(&arena);
}

#define T  "torch.ops.aten."
#define H  "torch.ops.higher_order."
#define IN "        "
#define BODY(name, params, lines)                                                                  \
    "    class " name "(torch.nn.Module):\n        def forward(self, " params "):\n" lines
#define L "            "

typedef struct NestedCase {
    const char *what, *text; // text: parameters, `):`, statements, then the nested classes
    const char *calls;       // stands in the generated code
} NestedCase;

static const NestedCase cases[] = {
    {"a condition that holds",
     "a: \"f32[3, 4]\", b: \"f32[3, 4]\"):\n" IN "u = " T "sum.default(a)\n" IN "p = " T
     "lt.Scalar(u, 1000)\n" IN "t0 = self.t0\n" IN "f0 = self.f0\n" IN "h = " H
     "cond(p, t0, f0, (a, b))\n" IN "r = h[0]\n" IN "s = h[1]\n" IN "y = " T "mul.Tensor(r, s)\n" IN
     "return (y,)\n" BODY("t0", "p: \"f32[3, 4]\", q: \"f32[3, 4]\"",
                          L "m = torch.ops.aten.mul.Tensor(p, q)\n" L
                            "s = torch.ops.aten.sigmoid.default(m)\n" L "return (s, m)\n")
         BODY("f0", "p: \"f32[3, 4]\", q: \"f32[3, 4]\"",
              L "c = torch.ops.aten.cos.default(q)\n" L "s = torch.ops.aten.add.Tensor(p, c)\n" L
                "return (s, c)\n"),
     "if (fx_truth("},
    {"a condition that does not, whose operand is a view and whose first result nobody uses",
     "a: \"f32[3, 4]\"):\n" IN "v = " T "t.default(a)\n" IN "u = " T "sum.default(a)\n" IN "p = " T
     "gt.Scalar(u, 1000)\n" IN "t0 = self.t0\n" IN "f0 = self.f0\n" IN "h = " H
     "cond(p, t0, f0, (v,))\n" IN "s = h[1]\n" IN "return (s,)\n" BODY(
         "t0", "p: \"f32[4, 3]\"", L "s = torch.ops.aten.sin.default(p)\n" L "return (s, s)\n")
         BODY("f0", "p: \"f32[4, 3]\"",
              L "s = torch.ops.aten.exp.default(p)\n" L "m = torch.ops.aten.mul.Tensor(s, p)\n" L
                "return (s, m)\n"),
     "graph_false_graph_0"},
    {"a loop with a matrix product in it",
     "a: \"f32[4, 4]\", w: \"f32[4, 4]\"):\n" IN "i = " T
     "full.default([], 0, dtype = torch.int64)\n" IN "c0 = self.c0\n" IN "b0 = self.b0\n" IN
     "h = " H "while_loop(c0, b0, (i, a), (w,))\n" IN "n = h[0]\n" IN "x = h[1]\n" IN
     "return (n, x)\n" BODY("c0", "i: \"i64[]\", x: \"f32[4, 4]\", w: \"f32[4, 4]\"",
                            L "p = torch.ops.aten.lt.Scalar(i, 5)\n" L "return (p,)\n")
         BODY("b0", "i: \"i64[]\", x: \"f32[4, 4]\", w: \"f32[4, 4]\"",
              L "j = torch.ops.aten.add.Tensor(i, 1)\n" L "m = torch.ops.aten.mm.default(x, w)\n" L
                "t = torch.ops.aten.tanh.default(m)\n" L "return (j, t)\n"),
     "fx_while("},
    {"a loop that never runs",
     "a: \"f32[4]\"):\n" IN "i = " T "full.default([], 9, dtype = torch.int64)\n" IN
     "c0 = self.c0\n" IN "b0 = self.b0\n" IN "h = " H "while_loop(c0, b0, (i, a), ())\n" IN
     "x = h[1]\n" IN "y = " T "add.Tensor(x, 1)\n" IN
     "return (y, x)\n" BODY("c0", "i: \"i64[]\", x: \"f32[4]\"",
                            L "p = torch.ops.aten.lt.Scalar(i, 5)\n" L "return (p,)\n")
         BODY("b0", "i: \"i64[]\", x: \"f32[4]\"",
              L "j = torch.ops.aten.add.Tensor(i, 1)\n" L "t = torch.ops.aten.neg.default(x)\n" L
                "return (j, t)\n"),
     "fx_while("},
    {"a scan that carries a sum",
     "s: \"f32[3]\", x: \"f32[5, 3]\", w: \"f32[3]\"):\n" IN "c0 = self.c0\n" IN "h = " H
     "scan(c0, [s], [x], [w])\n" IN "last = h[0]\n" IN "all = h[1]\n" IN
     "return (last, all)\n" BODY("c0", "s: \"f32[3]\", x: \"f32[3]\", w: \"f32[3]\"",
                                 L "m = torch.ops.aten.mul.Tensor(x, w)\n" L
                                   "n = torch.ops.aten.add.Tensor(s, m)\n" L
                                   "y = torch.ops.aten.sigmoid.default(n)\n" L "return [n, y]\n"),
     "fx_scan("},
    {"a map over slices, a condition within",
     "x: \"f32[5, 3]\", w: \"f32[3]\"):\n" IN "m0 = self.m0\n" IN "h = " H
     "map_impl(m0, [x], [w])\n" IN "y = h[0]\n" IN "z = " T "sum.dim_IntList(y, [0])\n" IN
     "return (z,)\n" BODY(
         "m0", "x: \"f32[3]\", w: \"f32[3]\"",
         L "u = torch.ops.aten.sum.default(x)\n" L "p = torch.ops.aten.gt.Scalar(u, 0)\n" L
           "t1 = self.t1\n" L "f1 = self.f1\n" L
           "h = torch.ops.higher_order.cond(p, t1, f1, (x, w))\n" L "r = h[0]\n" L
           "return (r,)\n") "        class t1(torch.nn.Module):\n            def forward(self, x: "
                            "\"f32[3]\", w: "
                            "\"f32[3]\"):\n                m = torch.ops.aten.mul.Tensor(x, w)\n   "
                            "             return "
                            "(m,)\n        class f1(torch.nn.Module):\n            def "
                            "forward(self, x: \"f32[3]\", "
                            "w: \"f32[3]\"):\n                m = torch.ops.aten.sub.Tensor(x, "
                            "w)\n                "
                            "return (m,)\n",
     "_false_graph_0(rt"},
};

static void open_graded(const NestedCase *c, const char *grad) {
    close_session();
    const char *text = arena_printf(
        &arena, "class GraphModule(torch.nn.Module):\n    def forward(self, %s", c->text);
    const char *path = unit_file("graph.txt", text, strlen(text));
    SessionOptions o = {.grad = grad, .toolchain = "tcc"};
    session = session_open(path, &o, &diag);
    ck_assert_msg(session != NULL, "%s: %s", c->what, diag_first(&diag));
}

static void open_case(const NestedCase *c) {
    open_graded(c, "none");
}

static RunResult run(const NestedCase *c, Backend b) {
    RunRequest what = {.backend = b, .toolchain = toolchain_find("tcc")};
    RunResult r = {0};
    diag = (Diag){.arena = &arena};
    ck_assert_msg(session_run(session, &what, &r, &arena, &diag), "%s: %s: %s", c->what,
                  backend_info[b].name, diag_first(&diag));
    return r;
}

static void same(const NestedCase *c, const RunResult *a, const RunResult *b) {
    ck_assert_int_eq(a->n_outputs, b->n_outputs);
    for (int i = 0; i < a->n_outputs; i++) {
        const Tensor *x = &a->outputs[i].tensor, *y = &b->outputs[i].tensor;
        ck_assert_int_eq(x->ndim, y->ndim);
        for (int64_t k = 0; k < tensor_numel(y); k++)
            ck_assert_msg(fabs(tensor_get_f64(x, k) - tensor_get_f64(y, k)) < 1e-5,
                          "%s: output %d [%lld]: %g, eager %g", c->what, i, (long long)k,
                          tensor_get_f64(x, k), tensor_get_f64(y, k));
    }
}

START_TEST(test_rungs_agree) {
    static const Backend rungs[] = {BACKEND_full, BACKEND_ir, BACKEND_ir_pre_fusion};
    for (int i = 0; i < COUNT(cases); i++) {
        open_case(&cases[i]);
        RunResult eager = run(&cases[i], BACKEND_eager);
        for (int k = 0; k < COUNT(rungs); k++) {
            RunResult r = run(&cases[i], rungs[k]);
            same(&cases[i], &r, &eager);
            session_run_free(&r);
        }
        session_run_free(&eager);
        const Artifact *code = pipeline_build(session->pipeline, 0, STAGE_kernels);
        ck_assert_msg(strstr(code->code->text, cases[i].calls) != NULL, "%s: no '%s' in the code",
                      cases[i].what, cases[i].calls);
    }
}
END_TEST

// ---- a loop that is differentiated

#define LOOP(steps)                                                                                \
    "x: \"f32[3, 4]\", w: \"f32[4, 4]\", n: \"i64[]\", b: \"f32[4]\"):\n" IN "c0 = self.c0\n" IN   \
    "b0 = self.b0\n" IN "i = " T "full.default([], 0, dtype = torch.int64)\n" IN "h = " H          \
    "while_loop(c0, b0, (i, x), (w, n, b))\n" IN "k = h[0]\n" IN "y = h[1]\n" IN "z = " T          \
    "mul.Tensor(y, y)\n" IN "return (z, k)\n" BODY(                                                \
        "c0", LOOP_IN, L "p = torch.ops.aten.lt.Scalar(i, " steps ")\n" L "return p\n")            \
        BODY("b0", LOOP_IN,                                                                        \
             L "j = torch.ops.aten.add.Tensor(i, 1)\n" L "m = torch.ops.aten.mm.default(x, w)\n" L \
               "s = torch.ops.aten.sin.default(m)\n" L "t = torch.ops.aten.mul.Tensor(s, x)\n" L   \
               "u = torch.ops.aten.add.Tensor(t, b)\n" L "return (j, u)\n")
#define LOOP_IN "i: \"i64[]\", x: \"f32[3, 4]\", w: \"f32[4, 4]\", n: \"i64[]\", b: \"f32[4]\""
#define STEP(from, to)                                                                             \
    IN "m" to " = " T "mm.default(" from ", w)\n" IN "s" to " = " T "sin.default(m" to ")\n" IN    \
       "t" to " = " T "mul.Tensor(s" to ", " from ")\n" IN "x" to " = " T "add.Tensor(t" to        \
       ", b)\n"
#define UNROLLED(steps, last)                                                                      \
    "x: \"f32[3, 4]\", w: \"f32[4, 4]\", n: \"i64[]\", b: \"f32[4]\"):\n" steps IN "z = " T        \
    "mul.Tensor(" last ", " last ")\n" IN "return (z,)\n"

static const NestedCase loops[][2] = {
    {{"a loop of three steps", LOOP("3"), "fx_while_stack("},
     {"three steps", UNROLLED(STEP("x", "1") STEP("x1", "2") STEP("x2", "3"), "x3"), NULL}},
    {{"a loop of one step", LOOP("1"), "fx_while_stack("},
     {"one step", UNROLLED(STEP("x", "1"), "x1"), NULL}},
};

static bool close_to(const Tensor *x, const Tensor *y) {
    bool same = x->ndim == y->ndim && tensor_numel(x) == tensor_numel(y);
    for (int64_t k = 0; same && k < tensor_numel(y); k++)
        same = fabs(tensor_get_f64(x, k) - tensor_get_f64(y, k)) <=
               1e-4 * (1 + fabs(tensor_get_f64(y, k)));
    return same;
}

// Against the same steps written one after another, whose derivative knows of no loop.
START_TEST(test_loops_have_gradients) {
    static const Backend rungs[] = {
        BACKEND_eager,         BACKEND_aot_eager, BACKEND_aot_eager_decomp_partition,
        BACKEND_ir_pre_fusion, BACKEND_ir,        BACKEND_full};
    for (int i = 0; i < COUNT(loops); i++) {
        open_graded(&loops[i][1], "all");
        RunResult want = run(&loops[i][1], BACKEND_eager);
        ck_assert_int_eq(want.n_grads, 4);
        open_graded(&loops[i][0], "all");
        for (int k = 0; k < COUNT(rungs); k++) {
            RunResult r = run(&loops[i][0], rungs[k]);
            const char *rung = backend_info[rungs[k]].name;
            ck_assert_int_eq(r.n_grads, 4);
            ck_assert_int_eq(tensor_get_i64(&r.outputs[1].tensor, 0), i ? 1 : 3);
            ck_assert_msg(close_to(&r.outputs[0].tensor, &want.outputs[0].tensor), "%s: %s",
                          loops[i][0].what, rung);
            for (int g = 0; g < 4; g++) {
                ck_assert_int_eq(r.grads[g].kind, want.grads[g].kind);
                ck_assert_msg(r.grads[g].kind != RT_tensor ||
                                  close_to(&r.grads[g].tensor, &want.grads[g].tensor),
                              "%s: %s: gradient %d", loops[i][0].what, rung, g);
            }
            session_run_free(&r);
        }
        session_run_free(&want);
        const Artifact *code = pipeline_build(session->pipeline, 1, STAGE_kernels);
        ck_assert_ptr_nonnull(strstr(code->code->text, loops[i][0].calls));
    }
}
END_TEST

// The nested graphs have schedules of their own, whose names have the graph's before them.
START_TEST(test_schedules) {
    open_case(&cases[0]);
    const Artifact *a = pipeline_build(session->pipeline, 0, STAGE_post_fusion);
    const Schedule *s = a->schedule;
    ck_assert_int_eq(s->nested.n, 2);
    ck_assert_str_eq(s->nested.at[0].name, "true_graph_0"); // as the tracer names them
    ck_assert_str_eq(s->nested.at[1].name, "false_graph_0");
    ck_assert_str_eq(s->nested.at[0].op->cls_name, "Conditional");
    const Schedule *t = s->nested.at[0].schedule;
    ck_assert_int_eq(t->nodes.n, 1); // product and sigmoid in one
    ck_assert_str_eq(t->nodes.at[0]->name, "true_graph_0_op0_true_graph_0_op1");
    ck_assert_int_eq(a->plan->nested.n, 2);
}
END_TEST

Suite *suite_inductor_nested(void) {
    Suite *s = suite_create("inductor_nested");
    TCase *t = tcase_create("nested");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_set_timeout(t, 60);
    tcase_add_test(t, test_rungs_agree);
    tcase_add_test(t, test_loops_have_gradients);
    tcase_add_test(t, test_schedules);
    suite_add_tcase(s, t);
    return s;
}
