// eager_higher.c: higher-order ops that join elements, and calls that name another op, against the
// same written out: running sums, a recurrence step by step, attention by its formula.
#include "tests/unit/unit.h"

#include <math.h>
#include <string.h>

#include "core/eager/eager.h"
#include "core/fx/graph.h"

static Arena arena;
static Diag diag;

static void fill(Tensor *t, uint32_t seed) {
    for (int64_t i = 0, n = tensor_numel(t); i < n; i++) {
        uint32_t h = ((uint32_t)i + seed * 7919) * 2654435761u;
        h ^= h >> 15;
        h *= 2246822519u;
        tensor_set_f64(t, i, (double)(h >> 8) * 0x1p-23 - 1);
    }
}

// The first result of a text whose inputs are made; false: it was refused, with an error.
static bool run(const char *text, RtValue *in, int *n, RtValue *out) {
    FxDoc doc = {.arena = &arena};
    ck_assert_msg(fx_parse(&doc, sym_new(&arena), (Str){text, strlen(text)}, "text", &diag), "%s",
                  diag_first(&diag));
    const Graph *g = doc.at[0].graph;
    *n = 0;
    GRAPH_EACH (g, p) {
        const TensorMeta *m = node_tensor(p);
        int64_t size[TENSOR_DIMS];
        if (p->op != FX_placeholder)
            continue;
        for (int i = 0; i < m->ndim; i++)
            size[i] = expr_int_or(m->size[i], 1);
        in[*n] = (RtValue){.kind = RT_tensor};
        ck_assert(tensor_new(&in[*n].tensor, m->dtype, m->ndim, size, &diag));
        fill(&in[*n].tensor, (uint32_t)*n + 1);
        ++*n;
    }
    EagerCtx c = {.arena = &arena, .diag = &diag, .threads = 1};
    EagerRun r = {.graph = g, .inputs = in, .n_inputs = *n};
    bool ok = eager_run(&c, &r);
    for (int i = 1; ok && i < r.n_outputs; i++)
        rt_drop(&r.outputs[i]);
    if (ok)
        *out = r.outputs[0];
    return ok;
}

static void fresh(void) {
    arena_free(&arena);
    diag = (Diag){.arena = &arena};
}

static void drop_all(RtValue *in, int n, RtValue *out) {
    rt_drop(out);
    for (int i = 0; i < n; i++)
        rt_drop(&in[i]);
}

// x[i] = b[i] + a[i] x[i - 1], by pairs (a, b): slices with and without the dimension that is
// scanned, and the dimension in place of further inputs, as 2.5 writes it.
START_TEST(scans_join_neighbours) {
    static const struct {
        const char *size, *more;
    } forms[] = {{"4", "()"}, {"1, 4", "()"}, {"4", "0"}};
    for (int length = 1; length <= 9; length++)
        for (int f = 0; f < COUNT(forms); f++) {
            fresh();
            const char *
                s = forms[f].size,
               *text = arena_printf(
                   &arena,
                   "class GraphModule(torch.nn.Module):\n"
                   "    def forward(self, a: \"f32[%d, 4]\", b: \"f32[%d, 4]\"):\n"
                   "        combine_fn_0 = self.combine_fn_0\n"
                   "        y = torch.ops.higher_order.associative_scan(combine_fn_0, [a, b], %s)\n"
                   "        r: \"f32[%d, 4]\" = y[1]\n"
                   "        return (r,)\n\n"
                   "    class combine_fn_0(torch.nn.Module):\n"
                   "        def forward(self, p: \"f32[%s]\", q: \"f32[%s]\", u: \"f32[%s]\", v: "
                   "\"f32[%s]\"):\n"
                   "            m: \"f32[%s]\" = p * u\n"
                   "            n: \"f32[%s]\" = q * u\n"
                   "            o: \"f32[%s]\" = n + v\n"
                   "            return [m, o]\n",
                   length, length, forms[f].more, length, s, s, s, s, s, s, s);
            RtValue in[4], out;
            int n;
            ck_assert_msg(run(text, in, &n, &out), "%s", diag_first(&diag));
            ck_assert_int_eq(tensor_numel(&out.tensor), length * 4);
            for (int c = 0; c < 4; c++) {
                double x = 0;
                for (int i = 0; i < length; i++) {
                    x = tensor_get_f64(&in[1].tensor, i * 4 + c) +
                        tensor_get_f64(&in[0].tensor, i * 4 + c) * x;
                    ck_assert_double_eq_tol(tensor_get_f64(&out.tensor, i * 4 + c), x, 1e-6);
                }
            }
            drop_all(in, n, &out);
        }
}
END_TEST

// Two heads of queries share one of keys; a bias by head and distance; causal.
START_TEST(attention_is_its_formula) {
    enum { B = 2, H = 4, HK = 2, M = 5, N = 6, D = 3 };
    fresh();
    const char *text =
        "class GraphModule(torch.nn.Module):\n"
        "    def forward(self, q: \"f32[2, 4, 5, 3]\", k: \"f32[2, 2, 6, 3]\", v: "
        "\"f32[2, 2, 6, 3]\", b: \"f32[4]\"):\n"
        "        score_mod_0 = self.score_mod_0\n"
        "        mask_fn_0 = self.mask_fn_0\n"
        "        y = torch.ops.higher_order.flex_attention(q, k, v, score_mod_0, (5, 6, None, "
        "mask_fn_0), 0.5, {'PRESCALE_QK': False}, (b,), ())\n"
        "        r: \"f32[2, 4, 5, 3]\" = y[0]\n"
        "        return (r,)\n\n"
        "    class score_mod_0(torch.nn.Module):\n"
        "        def forward(self, s: \"f32[]\", b: \"i32[]\", h: \"i32[]\", m: \"i32[]\", n: "
        "\"i32[]\", w: \"f32[4]\"):\n"
        "            g: \"f32[]\" = w[h]\n"
        "            d: \"i32[]\" = m - n\n"
        "            e: \"f32[]\" = g * d\n"
        "            f: \"f32[]\" = s + e\n"
        "            return f\n\n"
        "    class mask_fn_0(torch.nn.Module):\n"
        "        def forward(self, b: \"i32[]\", h: \"i32[]\", m: \"i32[]\", n: \"i32[]\"):\n"
        "            ge: \"b8[]\" = m >= n\n"
        "            return ge\n";
    RtValue in[4], out;
    int n_in;
    ck_assert_msg(run(text, in, &n_in, &out), "%s", diag_first(&diag));
    const Tensor *q = &in[0].tensor, *k = &in[1].tensor, *v = &in[2].tensor, *w = &in[3].tensor;
    for (int row = 0; row < B * H * M; row++) {
        int b = row / M / H, h = row / M % H, m = row % M, kv = (b * HK + h / (H / HK)) * N;
        double score[N], sum = 0;
        for (int n = 0; n < N; n++) {
            double dot = 0;
            for (int d = 0; d < D; d++)
                dot += tensor_get_f64(q, row * D + d) * tensor_get_f64(k, (kv + n) * D + d);
            score[n] = n > m ? 0 : exp(dot * 0.5 + tensor_get_f64(w, h) * (m - n));
            sum += score[n];
        }
        for (int d = 0; d < D; d++) {
            double want = 0;
            for (int n = 0; n < N; n++)
                want += score[n] / sum * tensor_get_f64(v, (kv + n) * D + d);
            ck_assert_double_eq_tol(tensor_get_f64(&out.tensor, row * D + d), want, 1e-6);
        }
    }
    drop_all(in, n_in, &out);
}
END_TEST

#define H "torch.ops.higher_order."
// The input keeps its value, the result is the base with the write in it.
START_TEST(named_ops_write_on_clones) {
    static const struct {
        const char *call, *item;
        double want; // times y, added to x; in rows [first, last)
        int first, last;
    } rows[] = {
        {H "auto_functionalized_v2(torch.ops.aten.add_.Tensor, other = y, alpha = 2, "
           "_self_base_index = 0, _all_bases = [x])",
         "1", 2, 0, 4},
        {H "auto_functionalized_v2(torch.ops.aten.add_.Tensor, other = y, _self_base_index = 0, "
           "_self_slice_dim = 0, _self_slice_start = 1, _self_slice_end = 3, _all_bases = [x])",
         "1", 1, 1, 3},
        {H "auto_functionalized_v2(torch.ops.aten.add_.Tensor, other = y, alpha = 3, "
           "_self_base_index = 0, _self_size = (1, 8), _self_stride = (8, 1), "
           "_self_storage_offset = 16, _all_bases = [x])",
         "1", 3, 2, 3},
        {H "auto_functionalized(torch.ops.aten.add_.Tensor, self = x, other = y, alpha = 2)", "1",
         2, 0, 4},
        {H "with_effects(x, torch.ops.aten.add.Tensor, x, y, alpha = 5)", "1", 5, 0, 4},
    };
    for (int i = 0; i < COUNT(rows); i++) {
        fresh();
        const char *text = arena_printf(&arena,
                                        "def forward(self, x: \"f32[4, 8]\", y: \"f32[8]\"):\n"
                                        "    c = %s\n    r: \"f32[4, 8]\" = c[%s]\n"
                                        "    return (r,)\n",
                                        rows[i].call, rows[i].item);
        RtValue in[4], out;
        int n;
        ck_assert_msg(run(text, in, &n, &out), "%s: %s", rows[i].call, diag_first(&diag));
        for (int64_t k = 0; k < 32; k++) {
            bool there = k / 8 >= rows[i].first && k / 8 < rows[i].last;
            double want = tensor_get_f64(&in[0].tensor, k) +
                          (there ? rows[i].want * tensor_get_f64(&in[1].tensor, k % 8) : 0);
            ck_assert_double_eq_tol(tensor_get_f64(&out.tensor, k), want, 1e-6);
        }
        drop_all(in, n, &out);
    }
}
END_TEST

START_TEST(wrong_calls_are_refused) {
    static const char *const calls[] = {
        H "associative_scan(x, [x], ())",
        H "associative_scan(g, x, ())",
        H "associative_scan(g, [], ())",
        H "associative_scan(g, [x, x], ())",
        H "associative_scan(g, [x], 1)",
        H "associative_scan(g, [None], ())",
        H "flex_attention(x, x, x, g, (4, g), 1.0, {}, (), ())",
        H "flex_attention(x, x, x, g, (), 1.0, {}, (), ())",
        H "flex_attention(x, x, x, x, (g,), 1.0)",
        H "flex_attention(x)",
        H "auto_functionalized_v2(torch.ops.mylib.foo_.default, _x_base_index = 0, _all_bases = "
          "[x])",
        H "auto_functionalized_v2(torch.ops.aten.add_.Tensor, _self_base_index = 7, _all_bases = "
          "[x])",
        H "auto_functionalized_v2(torch.ops.aten.add_.Tensor)",
        H "auto_functionalized()",
        H "with_effects(x)",
        H "with_effects(x, torch.ops.aten.add.Tensor)",
        H "triton_kernel_wrapper_mutation(kernel_idx = 0, constant_args_idx = 0, grid = [(1, 1, "
          "1)], kwargs = {'p': x})",
    };
    for (int i = 0; i < COUNT(calls); i++) {
        fresh();
        const char *text = arena_printf(&arena,
                                        "class M(torch.nn.Module):\n"
                                        "    def forward(self, x: \"f32[4, 8]\"):\n"
                                        "        g = self.g\n        c = %s\n"
                                        "        r: \"f32[4, 8]\" = c[0]\n        return (r,)\n\n"
                                        "    class g(torch.nn.Module):\n"
                                        "        def forward(self, a, b):\n"
                                        "            return (a,)\n",
                                        calls[i]);
        RtValue in[4], out;
        int n;
        ck_assert_msg(!run(text, in, &n, &out), "%s runs", calls[i]);
        ck_assert_msg(*diag_first(&diag), "%s fails without a word", calls[i]);
        for (int k = 0; k < n; k++)
            rt_drop(&in[k]);
    }
}
END_TEST

Suite *suite_eager_higher(void) {
    const TTest *const tests[] = {scans_join_neighbours, attention_is_its_formula,
                                  named_ops_write_on_clones, wrong_calls_are_refused};
    return unit_suite("eager_higher", tests, COUNT(tests));
}
