// aot_derive_formula.c: rows that are formulas (derive_pointwise.def): that they are of the form
// that derive_formula.c reads, and the calls that one makes, in their order.
#include <string.h>

#include "core/aot/derive.h"
#include "tests/unit/aot_grads.h"
#include "tests/unit/unit.h"

// Rows are formulas of arguments in alphabetical order, each of an argument that the op has.
START_TEST(test_order_of_formulas) {
    for (int id = 1; id < OP_count; id++) {
        const Derivative *d = &derivatives[id];
        if (d->rule != derive_formula)
            continue;
        const Op *op = op_at((OpId)id);
        char last[64] = "";
        for (const char *p = d->doc; *p;) {
            size_t n = strcspn(p, ":");
            char name[64];
            ck_assert_msg(n < sizeof name, "%s: %s", op->qualname, d->doc);
            memcpy(name, p, n);
            name[n] = 0;
            ck_assert_msg(op_arg_index(op, name) >= 0, "%s has no argument %s", op->qualname, name);
            ck_assert_msg(strcmp(last, name) < 0, "%s: %s before %s", op->qualname, last, name);
            memcpy(last, name, sizeof last);
            p += strcspn(p, ";");
            p += strspn(p, "; ");
        }
    }
}
END_TEST

// A formula that reads a result saves it.
START_TEST(test_saved_results) {
    for (int id = 1; id < OP_count; id++) {
        const Derivative *d = &derivatives[id];
        if (d->rule != derive_formula)
            continue;
        const Op *op = op_at((OpId)id);
        bool reads = strstr(d->doc, "result)") || strstr(d->doc, "result ") ||
                     strstr(d->doc, "result.") || strstr(d->doc, "result,");
        for (const char *p = d->doc; (p = strstr(p, "result")); p++)
            reads |= !p[6] || p[6] == ';';
        ck_assert_msg(!reads || d->flags & SAVE_r0, "%s: %s", op->qualname, d->doc);
        ck_assert_msg(reads || !(d->flags & SAVE_r0), "%s saves a result in vain", op->qualname);
    }
}
END_TEST

static void expect_calls(const char *graph, const char *want) {
    Arena a = {0};
    const bool needs[4] = {true, true, true, true};
    ck_assert_str_eq(joint_text(&a, graph, needs, DECOMP_none), want);
    arena_free(&a);
}

// What GCC makes of `grad * -self.sin()`, `-0.5 * grad * result.pow(3)` and `1 - self.pow(2)`.
START_TEST(test_order_of_calls) {
    expect_calls("def forward(self, a: \"f64[3]\"):\n"
                 "    y = torch.ops.aten.rsqrt.default(a)\n    return (y,)\n",
                 "torch.ops.aten.rsqrt.default\ntorch.ops.aten.detach.default\n"
                 "torch.ops.aten.detach.default\ntorch.ops.aten.pow.Tensor_Scalar\n"
                 "torch.ops.aten.mul.Scalar\ntorch.ops.aten.mul.Tensor\n");
    expect_calls(
        "def forward(self, a: \"f64[3]\"):\n"
        "    y = torch.ops.aten.atanh.default(a)\n    return (y,)\n",
        "torch.ops.aten.atanh.default\ntorch.ops.aten.pow.Tensor_Scalar\n"
        "torch.ops.aten.empty_like.default\ntorch.ops.aten.fill.Scalar\n"
        "torch.ops.aten.sub.Tensor\ntorch.ops.aten.mul.Scalar\ntorch.ops.aten.div.Tensor\n");
    expect_calls("def forward(self, a: \"f64[3]\", b: \"f64[3]\"):\n"
                 "    y = torch.ops.aten.maximum.default(a, b)\n    return (y,)\n",
                 "torch.ops.aten.maximum.default\n"
                 "torch.ops.aten.div.Scalar\ntorch.ops.aten.eq.Tensor\ntorch.ops.aten.where.self\n"
                 "torch.ops.aten.gt.Tensor\ntorch.ops.aten.masked_fill.Scalar\n"
                 "torch.ops.aten.div.Scalar\ntorch.ops.aten.eq.Tensor\ntorch.ops.aten.where.self\n"
                 "torch.ops.aten.lt.Tensor\ntorch.ops.aten.masked_fill.Scalar\n");
}
END_TEST

Suite *suite_aot_derive_formula(void) {
    const TTest *const tests[] = {test_order_of_formulas, test_saved_results, test_order_of_calls};
    return unit_suite("aot_derive_formula", tests, COUNT(tests));
}
