// aot_foreach.c: operators on lists of tensors: gradients against differences, the order of the
// calls in backward as PyTorch 2.11 recorded it, and refusals.
#include <string.h>

#include "tests/unit/aot_grads.h"
#include "tests/unit/unit.h"

#define ITEMS(call) "z = " call "\nu = z[0]\nv = z[1]\n"

static const GradCase grads[] = {
    {.params = "a: f64[3, 4]; b: f64[5]", .body = ITEMS("aten._foreach_exp.default([a, b])"),
     .out = "u v", .squared = true},
    {.params = "a: f64[3]; b: f64[5]; c: f64[3]; d: f64[5]",
     .body = ITEMS("aten._foreach_add.List([a, b], [c, d], alpha = 2.5)"), .out = "u v",
     .squared = true},
    {.params = "a: f64[3]; b: f64[5]; c: f64[1]; d: f64[5]",
     .body = ITEMS("aten._foreach_mul.List([a, b], [c, d])"), .out = "u v", .squared = true},
    {.params = "a: f64[3]; b: f64[5]; c: f64[]",
     .body = ITEMS("aten._foreach_div.Tensor([a, b], c)"), .out = "u v", .squared = true},
    {.params = "a: f64[3]; b: f64[5]; c: f64[3] in 0.5 2",
     .body = ITEMS("aten._foreach_addcdiv.ScalarList([a, b], [c, b], [c, b], [2.0, 3.0])"),
     .out = "u v", .squared = true},
    {.params = "a: f64[3]; b: f64[5]; c: f64[3]; d: f64[5]",
     .body = ITEMS("aten._foreach_addcmul.Scalar([a, b], [c, d], [c, b], 0.5)"), .out = "u v",
     .squared = true},
    {.params = "a: f64[3]; b: f64[5]; c: f64[3]; d: f64[5]",
     .body = ITEMS("aten._foreach_lerp.Scalar([a, b], [c, d], 0.25)"), .out = "u v",
     .squared = true},
    {.params = "a: f64[3]; b: f64[5]", .body = ITEMS("aten._foreach_norm.Scalar([a, b])"),
     .out = "u v", .squared = true},
    {.params = "a: f64[3]; b: f64[5]",
     .body = ITEMS("aten._foreach_pow.ScalarAndTensor(2.0, [a, b])"), .out = "u v"},
    // Written in place; the result of one is what the next one keeps.
    {.params = "a: f64[3]; b: f64[5]; c: f64[3]",
     .body = "z = aten._foreach_mul.Scalar([a, b], 2)\nu = z[0]\nv = z[1]\n"
             "w = aten._foreach_mul_.List([u, v], [c, b])\n"
             "w1 = aten._foreach_tanh_.default([u, v])\n",
     .out = "u v", .squared = true},
    // A view is written: its base gets the gradient.
    {.params = "a: f64[4, 3]; b: f64[5]",
     .body = "x = aten.mul.Tensor(a, 2)\ny = aten.mul.Tensor(b, 3)\n"
             "r = aten.select.int(x, 0, 1)\n"
             "w = aten._foreach_mul_.ScalarList([r, y], [0.5, 3.0])\n"
             "u = aten.sin.default(x)\nv = aten.sin.default(y)",
     .out = "u v"},
    // Only one item of a list wants a gradient, only one result is used.
    {.params = "a: f64[3]; -b: f64[5]; c: f64[3]; d: f64[5]",
     .body = ITEMS("aten._foreach_mul.List([a, b], [c, d])"), .out = "u"},
};

START_TEST(gradients_of_lists) {
    for (int i = 0; i < COUNT(grads); i++)
        grad_check(&grads[i]);
}
END_TEST

static const char *graph_of(Arena *a, const char *body) {
    return arena_printf(a, "def forward(self, a: \"f32[3]\", b: \"f32[5]\"):\n%s", body);
}

static void check_calls(const char *body, const char *want) {
    Arena a = {0};
    static const bool needs[2] = {true, true};
    const char *text = graph_of(&a, body);
    ck_assert_str_eq(joint_text(&a, text, needs, DECOMP_inductor), want);
    arena_free(&a);
}

// Backward of _foreach_mul.List: `other` of all items, then `self` of all; of the form in place:
// item by item, the last one first.
START_TEST(calls_as_recorded) {
    check_calls("    y = torch._foreach_add([a, b], 1.0)\n    c = y[0]\n    d = y[1]\n"
                "    z = torch._foreach_mul([c, d], [a, b])\n    e = z[0]\n    f = z[1]\n"
                "    w = torch._foreach_mul_([e, f], 0.5)\n    return (e, f)\n",
                "torch.ops.aten._foreach_add.Scalar\n_operator.getitem\n_operator.getitem\n"
                "torch.ops.aten._foreach_mul.List\n_operator.getitem\n_operator.getitem\n"
                "torch.ops.aten._foreach_mul.Scalar\n_operator.getitem\n_operator.getitem\n"
                "torch.ops.aten.mul.Scalar\ntorch.ops.aten.mul.Scalar\n"
                "torch.ops.aten.mul.Tensor\ntorch.ops.aten.mul.Tensor\n"
                "torch.ops.aten.mul.Tensor\ntorch.ops.aten.mul.Tensor\n"
                "torch.ops.aten.add.Tensor\ntorch.ops.aten.add.Tensor\n");
}
END_TEST

static const struct {
    const char *body, *error;
} refused[] = {
    {"    y = torch._foreach_add([a, b], [a])\n    return (a,)\n", "lists of different lengths"},
    {"    y = torch._foreach_mul_([a, b], 2.0)\n    return (a,)\n",
     "a leaf that requires grad is written in place"},
    {"    y = torch._foreach_tanh([a, b])\n    c = y[0]\n    d = y[1]\n"
     "    w = torch._foreach_mul_([c, d], 2.0)\n    return (c, d)\n",
     "has been modified by an inplace operation"},
    {"    y = torch._foreach_neg([a, b])\n    c = y[0]\n    d = y[1]\n"
     "    w = torch._foreach_maximum_([c, d], [a, b])\n    return (c, d)\n",
     "writes through out="},
};

START_TEST(lists_that_pytorch_refuses) {
    static const bool needs[2] = {true, true};
    for (int i = 0; i < COUNT(refused); i++) {
        Arena a = {0};
        Diag d = {.arena = &a};
        FxDoc doc = {.arena = &a};
        const char *text = graph_of(&a, refused[i].body);
        ck_assert(fx_parse(&doc, sym_new(&a), (Str){text, strlen(text)}, "graph", &d));
        AotRequest r = {.graph = doc.at[0].graph,
                        .arena = &a,
                        .diag = &d,
                        .decomps = DECOMP_inductor,
                        .requires_grad = needs};
        ck_assert(!aot_trace_joint(&r).graph);
        ck_assert_msg(strstr(diag_first(&d), refused[i].error) != NULL, "%s", diag_first(&d));
        arena_free(&a);
    }
}
END_TEST

// A graph keeps it when the arguments are gone.
START_TEST(a_written_list_is_its_own) {
    Arena a = {0};
    Diag d = {.arena = &a};
    MetaCtx m = {.arena = &a, .sym = sym_new(&a), .diag = &d};
    const Expr *size = sym_int(m.sym, 3);
    TensorMeta *t = meta_contiguous(&a, m.sym, DT_f32, 1, &size, (Device){DEV_cpu, -1});
    Value items[2] = {val_tensor(t), val_tensor(t)}, out;
    Value list = {.kind = VAL_list, .n = 2, .at = items};
    ck_assert(op_meta(&m, op_at(OP_aten__foreach_neg__default), &list, &out));
    memset(items, 0, sizeof items);
    ck_assert(out.n == 2 && out.at[0].kind == VAL_tensor && out.at[1].tensor == t);
    arena_free(&a);
}
END_TEST

Suite *suite_aot_foreach(void) {
    static const TTest *tests[4];
    tests[0] = gradients_of_lists;
    tests[1] = calls_as_recorded;
    tests[2] = lists_that_pytorch_refuses;
    tests[3] = a_written_list_is_its_own;
    return unit_suite("aot_foreach", tests, 4);
}
