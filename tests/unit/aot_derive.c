// aot_derive.c: the derivatives of aten, family by family: rows of aot_derive_*.def are small
// graphs, each held against differences under every table of decompositions; then what gradients
// are by definition, and graphs over nothing.
#include <stdlib.h>
#include <string.h>

#include "tests/unit/aot_grads.h"
#include "tests/unit/unit.h"

// Each is a test. The second: results are squared, and the first of the sizes is once a symbol.
#define GROUPS                                                                                     \
    GROUP(views, true)                                                                             \
    GROUP(joins, true)                                                                             \
    GROUP(reductions, true)                                                                        \
    GROUP(scans, true)                                                                             \
    GROUP(indexing, true)                                                                          \
    GROUP(writes, true)                                                                            \
    GROUP(composites, true)                                                                        \
    GROUP(products, false)                                                                         \
    GROUP(distances, false)                                                                        \
    GROUP(convolutions, false)                                                                     \
    GROUP(pools, false)                                                                            \
    GROUP(backward_of_backward, false)                                                             \
    GROUP(upsampling, false)                                                                       \
    GROUP(grids, false)                                                                            \
    GROUP(norms, false)                                                                            \
    GROUP(attention, false)                                                                        \
    GROUP(modules, false)                                                                          \
    GROUP(factors, false)                                                                          \
    GROUP(solvers, false)                                                                          \
    GROUP(taken_apart, false)                                                                      \
    GROUP(arithmetic, false)                                                                       \
    GROUP(powers, false)                                                                           \
    GROUP(functions, false)                                                                        \
    GROUP(bounds, false)                                                                           \
    GROUP(activations, false)                                                                      \
    GROUP(losses, false)                                                                           \
    GROUP(forms, false)

typedef enum Group {
#define GROUP(name, ...) IN_##name,
    GROUPS
#undef GROUP
} Group;

// a = x x^T + 1; x + x^T; x + k
#define UNIT "o = aten.eye.default(3, dtype = torch.float64)\n"
#define DEFINITE                                                                                   \
    UNIT "h = aten.transpose.int(x, -2, -1)\np = aten.matmul.default(x, h)\n"                      \
         "a = aten.add.Tensor(p, o)\n"
#define SYMMETRIC  "h = aten.transpose.int(x, -2, -1)\na = aten.add.Tensor(x, h)\n"
#define SHIFTED(k) UNIT "a = aten.add.Tensor(x, o, alpha = " k ")\n"

#define UNARY(group, op, values) ROW(group, "a: f64[3, 4]" values, "y = aten." op "(a)", "y")
#define PAIR(group, a, b, op, values)                                                              \
    ROW(group, "a: f64" a values "; b: f64" b values, "y = aten." op "(a, b)", "y")
#define BINARY(group, op, values)                                                                  \
    PAIR(group, "[3, 4]", "[3, 4]", op, values)                                                    \
    PAIR(group, "[3, 1]", "[4]", op, values)                                                       \
    PAIR(group, "[]", "[3, 4]", op, values)                                                        \
    PAIR(group, "[0, 4]", "[4]", op, values)

static const struct {
    Group group;
    GradCase graph;
} rows[] = {
#define ROW(group, p, b, o) {IN_##group, {.params = (p), .body = (b), .out = (o)}},
#include "tests/unit/aot_derive_linalg.def"
#include "tests/unit/aot_derive_linear.def"
#include "tests/unit/aot_derive_pointwise.def"
#include "tests/unit/aot_derive_shape.def"
#undef ROW
};

static int64_t first_size(const char *params) {
    int64_t n = strtoll(strchr(params, '[') + 1, NULL, 10);
    return n > 1 && !strstr(params, "][") ? n : 0;
}

static void check_group(Group group, bool symbolic) {
    int n = 0;
    for (int i = 0; i < COUNT(rows); i++) {
        if (rows[i].group != group)
            continue;
        GradCase c = rows[i].graph;
        c.squared = symbolic;
        grad_check(&c);
        c.symbol = symbolic ? first_size(c.params) : 0;
        if (c.symbol)
            grad_check(&c);
        n++;
    }
    ck_assert_int_gt(n, 4);
}

#define GROUP(name, symbolic)                                                                      \
    START_TEST(test_##name) {                                                                      \
        check_group(IN_##name, symbolic);                                                          \
    }                                                                                              \
    END_TEST
GROUPS
#undef GROUP

// Zeros in products and ties have gradients by definition, not by differences.
START_TEST(test_special_values) {
    // r * r has the derivative 2 r: weights are chosen so that it is known.
    static const struct {
        GradCase graph;
        double weights[3], want[4];
    } special[] = {
#define IS(p, b, o) {.params = (p), .body = (b), .out = (o), .squared = true}
        {IS("a: f64[4] = 3 1 3 2", "r = aten.amax.default(a)", "r"), {1}, {3, 0, 3, 0}},
        {IS("a: f64[4] = 3 3 3 2", "r = aten.max.default(a)", "r"), {1}, {2, 2, 2, 0}},
        {IS("a: f64[3] = 2 0 5", "p = aten.prod.default(a)\nr = aten.add.Scalar(p, 1)", "r"),
         {1},
         {0, 20, 0}},
        {IS("a: f64[3] = 2 0 5", "p = aten.cumprod.default(a, 0)\nr = aten.add.Scalar(p, 1)", "r"),
         {1, 1, 1},
         {6, 24, 0}},
        {IS("a: f64[2] = 0 0", "p = aten.linalg_vector_norm.default(a)\nr = aten.add.Scalar(p, 1)",
            "r"),
         {1},
         {0, 0}},
        // One place that the input shows three times: the gradient is shared out among them.
        {IS("a: f64[2] = 2 3",
            "e = aten.expand.default(a, [3, 2])\nr = aten.as_strided.default(e, [2], [1])", "r"),
         {1, 1},
         {4, 6}},
        {IS("a: f64[4] = 1 2 2 3", "s = aten.mode.default(a)\nr = s[0]", "r"), {1}, {0, 0, 4, 0}},
        {IS("a: f64[3, 1] = 1 2 3; i: i64[3] = 0 1 1", "r = aten.embedding.default(a, i, 1)", "r"),
         {1, 1, 1},
         {2, 0, 0}},
#undef IS
    };
    for (int i = 0; i < COUNT(special); i++)
        grad_expect(&special[i].graph, special[i].weights, special[i].want);
}
END_TEST

// Empty tensors, and arguments that nothing depends on.
START_TEST(test_edges) {
    static const char *const edges[][2] = {
        {"a: f64[0, 3]", "r = aten.sum.dim_IntList(a, [0])"},
        {"a: f64[0, 3]", "r = aten.cumsum.default(a, 0)"},
        {"a: f64[0]", "r = aten.prod.default(a)"},
        {"a: f64[2, 0]", "r = aten.cat.default([a, a])"},
        {"a: f64[0]", "s = aten.sort.default(a)\nr = s[0]"},
        {"a: f64[0, 2]", "r = aten.repeat.default(a, [2, 1])"},
        {"a: f64[3]", "r = aten.repeat.default(a, [0])"},
        {"a: f64[3]; i: i64[0] =", "r = aten.index.Tensor(a, [i])"},
        {"a: f64[3]", "r = aten.as_strided.default(a, [0, 2], [1, 1])"},
    };
    for (int i = 0; i < COUNT(edges); i++)
        grad_check(
            &(GradCase){.params = edges[i][0], .body = edges[i][1], .out = "r", .squared = true});
}
END_TEST

Suite *suite_aot_derive(void) {
    const TTest *const tests[] = {
#define GROUP(name, ...) test_##name,
        GROUPS
#undef GROUP
            test_special_values,
        test_edges};
    return unit_suite("aot_derive", tests, COUNT(tests));
}
