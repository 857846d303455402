// eager_pairs.c: kernels of seldom ops against what other ops give: results stand in pairs. A
// backward is held against its forward: where f is linear in v, sum(g * f(v)) = sum(v * f'(g)).
#include "tests/unit/unit.h"

#include <string.h>

#include "core/eager/eager.h"
#include "core/fx/graph.h"

// Lines of a graph; calls are of aten. n numbers of some shape:
#define WAVE(name, n, step, ...)                                                                   \
    name " = arange.default(" #n ", dtype = torch.float64)\n" name " = mul.Tensor(" name          \
         ", " #step ")\n" name " = sin.default(" name ")\n" name " = view.default(" name           \
         ", [" #__VA_ARGS__ "])\n"
#define INNER(name, a, b) name " = mul.Tensor(" a ", " b ")\n" name " = sum.default(" name ")\n"

static const char *const pairs[] = {
    // masked softmax: exponentials of what is not masked, over their sum
    WAVE("x", 24, 1.7, 2, 3, 4) WAVE("g", 24, 2.3, 2, 3, 4)
    "m = cos.default(x)\nm = gt.Scalar(m, 0.7)\nn = bitwise_not.default(m)\n"
    "a = _masked_softmax.default(x, m, 1, 2)\n"
    "e = exp.default(x)\ne = mul.Tensor(e, n)\nf = sum.dim_IntList(e, [1], True)\n"
    "b = div.Tensor(e, f)\n"
    "c = _masked_softmax_backward.default(g, b, m, 1)\n"
    "s = mul.Tensor(g, b)\ns = sum.dim_IntList(s, [1], True)\n"
    "d = sub.Tensor(g, s)\nd = mul.Tensor(b, d)\n"
    "return (a, b, c, d)\n",
    // one mask for all rows of a batch entry
    WAVE("x", 24, 1.7, 1, 2, 3, 4) WAVE("k", 4, 1.0, 1, 4)
    "m = gt.Scalar(k, 0.5)\na = _masked_softmax.default(x, m, -1, 1)\n"
    "n = view.default(m, [1, 1, 1, 4])\nn = expand.default(n, [1, 2, 3, 4])\n"
    "b = _masked_softmax.default(x, n, -1, 2)\n"
    "return (a, b)\n",
    // conv_tbc: a product for each tap
    WAVE("x", 30, 1.7, 5, 2, 3) WAVE("w", 24, 0.9, 2, 3, 4) WAVE("h", 4, 3.1, 4)
    WAVE("g", 48, 2.3, 6, 2, 4)
    "a = conv_tbc.default(x, w, h, 0)\n"
    "p = slice.Tensor(x, 0, 0, 4)\nv = select.int(w, 0, 0)\np = matmul.default(p, v)\n"
    "q = slice.Tensor(x, 0, 1, 5)\nu = select.int(w, 0, 1)\nq = matmul.default(q, u)\n"
    "b = add.Tensor(p, q)\nb = add.Tensor(b, h)\n"
    "o = zeros_like.default(h)\ny = conv_tbc.default(x, w, o, 1)\n"
    "r = conv_tbc_backward.default(g, x, w, h, 1)\nr0 = r[0]\nr1 = r[1]\nr2 = r[2]\n"
    INNER("c", "g", "y") INNER("d", "x", "r0") INNER("e", "w", "r1")
    "f = sum.dim_IntList(g, [0, 1])\n"
    "return (a, b, c, d, c, e, r2, f)\n",
    // the grid sampler's other name
    WAVE("x", 24, 1.7, 1, 2, 3, 4) WAVE("l", 12, 0.9, 1, 2, 3, 2) WAVE("g", 12, 2.3, 1, 2, 2, 3)
    "a = _grid_sampler_2d_cpu_fallback.default(x, l, 0, 1, False)\n"
    "b = grid_sampler_2d.default(x, l, 0, 1, False)\n"
    "r = _grid_sampler_2d_cpu_fallback_backward.default(g, x, l, 0, 1, False)\n"
    "r0 = r[0]\nr1 = r[1]\n"
    "s = grid_sampler_2d_backward.default(g, x, l, 0, 1, False, [True, True])\ns1 = s[1]\n"
    INNER("c", "g", "b") INNER("d", "x", "r0")
    "return (a, b, c, d, r1, s1)\n",
};

static const Graph *parse(Arena *a, const char *lines, Diag *d) {
    Buf text = {.arena = a};
    buf_puts(&text, "def forward(self):\n");
    while (*lines) {
        int n = (int)strcspn(lines, "\n"), eq = (int)strcspn(lines, "=");
        bool call = (int)strcspn(lines, "(") < n && strncmp(lines, "return", 6);
        buf_printf(&text, call ? "    %.*s= torch.ops.aten.%.*s\n" : "    %.*s%.*s\n",
                   call ? eq : 0, lines, call ? n - eq - 2 : n, lines + (call ? eq + 2 : 0));
        lines += n + 1;
    }
    FxDoc doc = {.arena = a};
    bool ok = fx_parse(&doc, sym_new(a), (Str){buf_str(&text), text.len}, "pairs", d);
    ck_assert_msg(ok && doc.n == 1, "%s", diag_first(d));
    return doc.at[0].graph;
}

START_TEST(kernels_agree_with_other_ops) {
    for (int i = 0; i < COUNT(pairs); i++) {
        Arena a = {0};
        Diag d = {.arena = &a};
        EagerCtx c = {.arena = &a, .diag = &d, .threads = 1};
        EagerRun r = {.graph = parse(&a, pairs[i], &d)};
        ck_assert_msg(eager_run(&c, &r), "%d: %s", i, diag_first(&d));
        ck_assert_int_eq(r.n_outputs % 2, 0);
        for (int k = 0; k < r.n_outputs; k += 2) {
            TensorDiff diff;
            const Tensor *x = &r.outputs[k].tensor, *y = &r.outputs[k + 1].tensor;
            ck_assert_msg(tensor_numel(x) == tensor_numel(y), "%d: results %d: sizes", i, k);
            tensor_diff(x, y, 1e-12, 1e-12, &diff);
            ck_assert_msg(!diff.bad && !diff.nan_differs && diff.numel, "%d: results %d differ", i,
                          k);
        }
        for (int k = 0; k < r.n_outputs; k++)
            rt_drop(&r.outputs[k]);
        arena_free(&a);
    }
}
END_TEST

Suite *suite_eager_pairs(void) {
    static const TTest *tests[1];
    tests[0] = kernels_agree_with_other_ops;
    return unit_suite("eager_pairs", tests, 1);
}
