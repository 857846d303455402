// aot_tape.c: what autograd does around the formulas: writes to views and to their bases, saved
// values, gradients that add up, are cut off or unused. Gradients are held against differences of
// the graph itself; refusals against what PyTorch raises.
#include <string.h>

#include "tests/unit/aot_grads.h"
#include "tests/unit/unit.h"

#define T "torch.ops.aten."
#define X "x = " T "mul.Tensor(a, 2)\n"

static const Difference writes[] = {
    {"a slice, then a row",
     {"f64[4, 6]", "f64[4, 2]"},
     X "s = " T "slice.Tensor(x, 1, 1, 3)\n"
       "m = " T "mul_.Tensor(s, b)\n"
       "r = " T "select.int(x, 0, 0)\n"
       "i = " T "add_.Tensor(r, 1)\n"
       "y = " T "sin.default(x)",
     -1, 1},
    {"a view of a view, the base read after",
     {"f64[4, 6]", "f64[8]"},
     X "v = " T "view.default(x, [-1])\n"
       "s = " T "slice.Tensor(v, 0, 2, 10)\n"
       "c = " T "copy_.default(s, b)\n"
       "t = " T "t.default(x)\n"
       "y = " T "mul.Tensor(t, t)",
     -1, 1},
    {"a sibling read after",
     {"f64[4, 6]", "f64[6]"},
     X "p = " T "permute.default(x, [1, 0])\n"
       "r = " T "select.int(x, 0, 1)\n"
       "m = " T "mul_.Tensor(r, b)\n"
       "y = " T "tanh.default(p)",
     -1, 1},
    {"a view of what is written as a whole",
     {"f64[4, 6]", "f64[4, 6]"},
     X "r = " T "select.int(x, 0, 1)\n"
       "m = " T "mul_.Tensor(x, b)\n"
       "y = " T "mul.Tensor(r, r)",
     -1, 1},
    {"a diagonal",
     {"f64[5, 5]", "f64[]"},
     X "d = " T "diagonal.default(x)\n"
       "f = " T "fill_.Tensor(d, b)\n"
       "y = " T "mm.default(x, x)",
     -1, 1},
    {"by as_strided",
     {"f64[4, 6]", "f64[2, 3]"},
     X "s = " T "as_strided.default(x, [2, 3], [6, 2], 1)\n"
       "m = " T "mul_.Tensor(s, b)\n"
       "y = " T "sin.default(x)",
     -1, 1},
    {"a base without gradient written with one",
     {"-f64[4, 6]", "f64[6]"},
     "x = " T "clone.default(a)\n"
     "r = " T "select.int(x, 0, 2)\n"
     "c = " T "copy_.default(r, b)\n"
     "y = " T "sin.default(x)",
     -1, 1},
    {"a squeezed and unsqueezed view",
     {"f64[4, 1, 6]", "f64[4, 6]"},
     X "s = " T "squeeze.dim(x, 1)\n"
       "m = " T "mul_.Tensor(s, b)\n"
       "u = " T "unsqueeze.default(x, 0)\n"
       "y = " T "cos.default(u)",
     -1, 1},
    {"the same place twice",
     {"f64[4, 6]", "f64[6]"},
     X "r = " T "select.int(x, 0, 2)\n"
       "m = " T "mul_.Tensor(r, b)\n"
       "q = " T "select.int(x, 0, 2)\n"
       "n = " T "mul_.Tensor(q, b)\n"
       "y = " T "sin.default(x)",
     -1, 1},
};

static const Difference sums[] = {
    {"used three times",
     {"f64[3, 4]"},
     "x = " T "sin.default(a)\n"
     "m = " T "mul.Tensor(x, a)\n"
     "n = " T "mul.Tensor(m, x)\n"
     "y = " T "add.Tensor(n, x)",
     -1, 1},
    {"cut off on one side",
     {"f64[3, 4]"},
     "x = " T "sin.default(a)\n"
     "d = " T "relu.default(x)\n"
     "y = " T "mul.Tensor(d, x)",
     0.2, 1},
    {"broadcast both ways",
     {"f64[3, 1]", "f64[1, 4]", "f64[]"},
     "x = " T "mul.Tensor(a, b)\n"
     "m = " T "add.Tensor(x, c)\n"
     "y = " T "mul.Tensor(m, a)",
     -1, 1},
    {"nothing in it", {"f64[0, 4]"}, "y = " T "sin.default(a)", -1, 1},
};

START_TEST(writes_through_views) {
    for (int i = 0; i < COUNT(writes); i++)
        for (DecompTable k = DECOMP_none; k <= DECOMP_inductor; k++)
            check_differences(&writes[i], k);
}
END_TEST

START_TEST(gradients_add_up) {
    for (int i = 0; i < COUNT(sums); i++)
        for (DecompTable k = DECOMP_none; k <= DECOMP_inductor; k++)
            check_differences(&sums[i], k);
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
        {"    x = " T "mul.Tensor(a, 2)\n    u = " T
         "unbind.int(x)\n    v = u[0]\n    m = " T "mul_.Tensor(v, 2)\n    return (m,)\n",
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
    static const Difference c = {"add, then a write",
                                 {"f64[3, 4]", "f64[4]"},
                                 X "s = " T "add.Tensor(x, b)\n"
                                   "m = " T "mul_.Tensor(x, 3)\n"
                                   "y = " T "mul.Tensor(s, m)",
                                 -1, 1};
    check_differences(&c, DECOMP_none);
}
END_TEST

Suite *suite_aot_tape(void) {
    static const TTest *tests[4];
    tests[0] = writes_through_views;
    tests[1] = gradients_add_up;
    tests[2] = refusals;
    tests[3] = shapes_of_written_values_may_be_read;
    return unit_suite("aot_tape", tests, 4);
}
