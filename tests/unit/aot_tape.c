// aot_tape.c: what autograd does around the formulas: writes to views and to their bases, saved
// values, gradients that add up, are cut off or unused. Gradients are held against differences of
// the graph itself; refusals against what PyTorch raises.
#include <string.h>

#include "core/tensor/tensor.h"
#include "tests/unit/aot_grads.h"
#include "tests/unit/unit.h"

#define T "torch.ops.aten."

static const GradCase writes[] = {
    // a slice, then a row
    {.params = "a: f64[4, 6]; b: f64[4, 2]",
     .body = "x = aten.mul.Tensor(a, 2)\n"
             "s = aten.slice.Tensor(x, 1, 1, 3)\n"
             "m = aten.mul_.Tensor(s, b)\n"
             "r = aten.select.int(x, 0, 0)\n"
             "i = aten.add_.Tensor(r, 1)\n"
             "y = aten.sin.default(x)",
     .out = "y"},
    // a view of a view, the base read after
    {.params = "a: f64[4, 6]; b: f64[8]",
     .body = "x = aten.mul.Tensor(a, 2)\n"
             "v = aten.view.default(x, [-1])\n"
             "s = aten.slice.Tensor(v, 0, 2, 10)\n"
             "c = aten.copy_.default(s, b)\n"
             "t = aten.t.default(x)\n"
             "y = aten.mul.Tensor(t, t)",
     .out = "y"},
    // a sibling read after
    {.params = "a: f64[4, 6]; b: f64[6]",
     .body = "x = aten.mul.Tensor(a, 2)\n"
             "p = aten.permute.default(x, [1, 0])\n"
             "r = aten.select.int(x, 0, 1)\n"
             "m = aten.mul_.Tensor(r, b)\n"
             "y = aten.tanh.default(p)",
     .out = "y"},
    // a view of what is written as a whole
    {.params = "a: f64[4, 6]; b: f64[4, 6]",
     .body = "x = aten.mul.Tensor(a, 2)\n"
             "r = aten.select.int(x, 0, 1)\n"
             "m = aten.mul_.Tensor(x, b)\n"
             "y = aten.mul.Tensor(r, r)",
     .out = "y"},
    // a diagonal
    {.params = "a: f64[5, 5]; b: f64[]",
     .body = "x = aten.mul.Tensor(a, 2)\n"
             "d = aten.diagonal.default(x)\n"
             "f = aten.fill_.Tensor(d, b)\n"
             "y = aten.mm.default(x, x)",
     .out = "y"},
    // by as_strided
    {.params = "a: f64[4, 6]; b: f64[2, 3]",
     .body = "x = aten.mul.Tensor(a, 2)\n"
             "s = aten.as_strided.default(x, [2, 3], [6, 2], 1)\n"
             "m = aten.mul_.Tensor(s, b)\n"
             "y = aten.sin.default(x)",
     .out = "y"},
    // a base without gradient written with one
    {.params = "-a: f64[4, 6]; b: f64[6]",
     .body = "x = aten.clone.default(a)\n"
             "r = aten.select.int(x, 0, 2)\n"
             "c = aten.copy_.default(r, b)\n"
             "y = aten.sin.default(x)",
     .out = "y"},
    // a squeezed and unsqueezed view
    {.params = "a: f64[4, 1, 6]; b: f64[4, 6]",
     .body = "x = aten.mul.Tensor(a, 2)\n"
             "s = aten.squeeze.dim(x, 1)\n"
             "m = aten.mul_.Tensor(s, b)\n"
             "u = aten.unsqueeze.default(x, 0)\n"
             "y = aten.cos.default(u)",
     .out = "y"},
    // the same place twice
    {.params = "a: f64[4, 6]; b: f64[6]",
     .body = "x = aten.mul.Tensor(a, 2)\n"
             "r = aten.select.int(x, 0, 2)\n"
             "m = aten.mul_.Tensor(r, b)\n"
             "q = aten.select.int(x, 0, 2)\n"
             "n = aten.mul_.Tensor(q, b)\n"
             "y = aten.sin.default(x)",
     .out = "y"},
};

static const GradCase sums[] = {
    // used three times
    {.params = "a: f64[3, 4]",
     .body = "x = aten.sin.default(a)\n"
             "m = aten.mul.Tensor(x, a)\n"
             "n = aten.mul.Tensor(m, x)\n"
             "y = aten.add.Tensor(n, x)",
     .out = "y"},
    // cut off on one side
    {.params = "a: f64[3, 4] in 0.2 1",
     .body = "x = aten.sin.default(a)\n"
             "d = aten.relu.default(x)\n"
             "y = aten.mul.Tensor(d, x)",
     .out = "y"},
    // broadcast both ways
    {.params = "a: f64[3, 1]; b: f64[1, 4]; c: f64[]",
     .body = "x = aten.mul.Tensor(a, b)\n"
             "m = aten.add.Tensor(x, c)\n"
             "y = aten.mul.Tensor(m, a)",
     .out = "y"},
    // nothing in it
    {.params = "a: f64[0, 4]", .body = "y = aten.sin.default(a)", .out = "y"},
};

START_TEST(writes_through_views) {
    for (int i = 0; i < COUNT(writes); i++)
        grad_check(&writes[i]);
}
END_TEST

START_TEST(gradients_add_up) {
    for (int i = 0; i < COUNT(sums); i++)
        grad_check(&sums[i]);
}
END_TEST

static const char *refusal(Arena *a, const char *body) {
    Diag d = {.arena = a};
    FxDoc doc = {.arena = a};
    const char *text = arena_printf(
        a, "def forward(self, a : \"f64[3, 4][4, 1]cpu\", b : \"f64[3, 4][4, 1]cpu\"):\n%s", body);
    ck_assert_msg(fx_parse(&doc, sym_new(a), (Str){text, strlen(text)}, "graph", &d), "%s",
                  diag_first(&d));
    static const bool needs[2] = {true, true};
    AotRequest r = {.graph = doc.at[0].graph,
                    .arena = a,
                    .diag = &d,
                    .keep_input_mutations = true,
                    .requires_grad = needs};
    AotResult joint = aot_trace_joint(&r);
    ck_assert_msg(!joint.graph, "nothing is refused in\n%s", body);
    return diag_first(&d);
}

// PyTorch refuses these, too: in_place on a leaf, a saved value written, one of several views
// written, an op whose derivative nobody wrote.
START_TEST(refusals) {
    static const struct {
        const char *body, *words;
    } cases[] = {
        {"    x = " T "add_.Tensor(a, b)\n    return (x,)\n", "leaf"},
        {"    v = " T "select.int(a, 0, 0)\n    x = " T "mul_.Tensor(v, 2)\n    return (x,)\n",
         "leaf"},
        {"    x = " T "exp.default(a)\n    m = " T "add_.Tensor(x, 1)\n    return (m,)\n",
         "modified by an inplace operation"},
        {"    x = " T "mul.Tensor(a, 2)\n    s = " T "sin.default(x)\n    m = " T
         "add_.Tensor(x, 1)\n    return (s, m)\n",
         "modified by an inplace operation"},
        {"    x = " T "mul.Tensor(a, 2)\n    r = " T "select.int(x, 0, 0)\n    s = " T
         "sin.default(r)\n    m = " T "add_.Tensor(x, 1)\n    return (s, m)\n",
         "modified by an inplace operation"},
        {"    x = " T "mul.Tensor(a, 2)\n    u = " T "unbind.int(x)\n    v = u[0]\n    m = " T
         "mul_.Tensor(v, 2)\n    return (m,)\n",
         "one of several views"},
        {"    x = " T "mul.Tensor(a, 2)\n    m = " T "mul_.Tensor(x, x)\n    return (m,)\n",
         "modified by an inplace operation"},
        {"    x = " T "nextafter.default(a, b)\n    return (x,)\n", "not implemented"},
    };
    for (int i = 0; i < COUNT(cases); i++) {
        Arena a = {0};
        const char *why = refusal(&a, cases[i].body);
        ck_assert_msg(strstr(why, cases[i].words) != NULL, "case %d: %s", i, why);
        arena_free(&a);
    }
}
END_TEST

// A formula that asks only for the shape of what was written later is none the worse for it.
START_TEST(shapes_of_written_values_may_be_read) {
    static const GradCase c = {.params = "a: f64[3, 4]; b: f64[4]",
                               .body = "x = aten.mul.Tensor(a, 2)\n"
                                       "s = aten.add.Tensor(x, b)\n"
                                       "m = aten.mul_.Tensor(x, 3)\n"
                                       "y = aten.mul.Tensor(s, m)",
                               .out = "y"};
    grad_check(&c);
}
END_TEST

// A tensor made of numbers while the model was traced outlives the trace.
START_TEST(constants_outlive_the_trace) {
    Arena a = {0};
    Diag d = {.arena = &a};
    FxDoc doc = {.arena = &a};
    static const char text[] =
        "def forward(self, L_x_ : \"f32[3, 4][4, 1]cpu\"):\n"
        "    l_x_ = L_x_\n"
        "    i : \"i64[3][1]cpu\" = torch.tensor([0, 2, 2])\n"
        "    y : \"f32[3, 4][4, 1]cpu\" = l_x_[i];  l_x_ = i = None\n"
        "    return (y,)\n";
    ck_assert_msg(fx_parse(&doc, sym_new(&a), (Str){text, strlen(text)}, "graph", &d), "%s",
                  diag_first(&d));
    static const bool needs[1] = {true};
    AotRequest r = {.graph = doc.at[0].graph,
                    .arena = &a,
                    .diag = &d,
                    .decomps = DECOMP_inductor,
                    .requires_grad = needs};
    AotResult joint = aot_trace_joint(&r);
    ck_assert_msg(joint.graph && joint.graph->consts.n == 1, "%s", diag_first(&d));
    Arena other = {0}; // takes memory that the trace gave back
    memset(arena_alloc(&other, 1 << 20), 0x5a, 1 << 20);
    const Tensor *x = joint.graph->consts.at[0].tensor;
    static const int64_t want[] = {0, 2, 2};
    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(tensor_get_i64(x, i), want[i]);
    arena_free(&other);
    arena_free(&a);
}
END_TEST

Suite *suite_aot_tape(void) {
    static const TTest *tests[5];
    tests[0] = writes_through_views;
    tests[1] = gradients_add_up;
    tests[2] = refusals;
    tests[3] = shapes_of_written_values_may_be_read;
    tests[4] = constants_outlive_the_trace;
    return unit_suite("aot_tape", tests, 5);
}
