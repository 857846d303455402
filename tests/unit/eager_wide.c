// eager_wide.c: kernels on tensors too large for one row, block or thread, with sizes that fit none
// of them: in float32 by two threads against float64 by one, which takes other loops.
#include "tests/unit/unit.h"

#include <math.h>
#include <string.h>

#include "core/eager/eager.h"
#include "core/fx/graph.h"

#define A "torch.ops.aten."
static const struct {
    const char *inputs, *body;
} rows[] = {
    {"x: \"f32[301, 517]\", y: \"f32[517]\"", "r = " A "add.Tensor(x, y)"},
    {"x: \"f32[301, 517]\", y: \"f32[301, 1]\"", "r = " A "mul.Tensor(x, y)"},
    {"x: \"f32[160003]\"",
     "e = " A "exp.default(x); g = " A "gelu.default(x); r = " A "add.Tensor(e, g)"},
    {"x: \"f32[160003]\"", "g = " A "gelu.default(x, approximate = 'tanh'); p = " A
                           "pow.Tensor_Scalar(x, 3); r = " A "add.Tensor(g, p)"},
    {"x: \"f32[301, 517]\"",
     "t = " A "t.default(x); r = " A "clone.default(t, memory_format = torch.contiguous_format)"},
    {"x: \"f32[301, 517]\"",
     "t = " A "t.default(x); u = " A "flip.default(t, [0]); r = " A "roll.default(u, [5], [1])"},
    {"x: \"f32[301, 517]\"", "r = " A "sum.dim_IntList(x, [0])"},
    {"x: \"f32[301, 517]\"", "r = " A "sum.dim_IntList(x, [1])"},
    {"x: \"f32[7, 301, 79]\"", "r = " A "mean.dim(x, [1])"},
    {"x: \"f32[301, 517]\"", "r = " A "amax.default(x, [1])"},
    {"x: \"f32[301, 517]\"", "r = " A "var.dim(x, [0])"},
    {"x: \"f32[301, 517]\"", "r = " A "argmax.default(x, 1)"},
    {"x: \"f32[301, 517]\"", "r = " A "argmin.default(x, 0)"},
    {"x: \"f32[301, 517]\"", "r = " A "logsumexp.default(x, [1])"},
    {"x: \"f32[301, 517]\"", "r = " A "_softmax.default(x, 1, False)"},
    {"x: \"f32[301, 517]\"", "r = " A "_softmax.default(x, 0, False)"},
    {"x: \"f32[301, 517]\"", "r = " A "_log_softmax.default(x, 0, False)"},
    {"x: \"f32[31, 5001]\"", "r = " A "_log_softmax.default(x, 1, False)"},
    {"g: \"f32[301, 517]\", y: \"f32[301, 517]\"",
     "r = " A "_softmax_backward_data.default(g, y, 1, torch.float32)"},
    {"x: \"f32[301, 517]\", w: \"f32[517]\", b: \"f32[517]\"",
     "v = " A "native_layer_norm.default(x, [517], w, b, 1e-05); r = v[0]"},
    {"g: \"f32[301, 517]\", x: \"f32[301, 517]\", m: \"f32[301, 1]\", s: \"f32[301, 1]\", w: "
     "\"f32[517]\", b: \"f32[517]\"",
     "v = " A "native_layer_norm_backward.default(g, x, [517], m, s, w, b, [True, True, True]);"
     "p = v[0]; q = v[1]; u = v[2]; t = " A "add.Tensor(p, q); r = " A "add.Tensor(t, u)"},
    {"x: \"f32[5, 12, 31, 33]\", w: \"f32[12]\", b: \"f32[12]\"",
     "v = " A "native_group_norm.default(x, w, b, 5, 12, 1023, 4, 1e-05); r = v[0]"},
    {"g: \"f32[5, 12, 31, 33]\", x: \"f32[5, 12, 31, 33]\", m: \"f32[5, 4]\", s: \"f32[5, 4]\", w: "
     "\"f32[12]\"",
     "v = " A "native_group_norm_backward.default(g, x, m, s, w, 5, 12, 1023, 4, [True, True, "
     "True]); p = v[0]; q = v[1]; w1 = " A "view.default(q, [12, 1, 1]); r = " A
     "add.Tensor(p, w1)"},
    {"g: \"f32[5, 12, 31, 33]\", x: \"f32[5, 12, 31, 33]\", w: \"f32[12]\", m: \"f32[12]\", s: "
     "\"f32[12]\"",
     "v = " A "native_batch_norm_backward.default(g, x, w, None, None, m, s, True, 1e-05, [True, "
     "True, True]); p = v[0]; q = v[1]; w1 = " A "view.default(q, [12, 1, 1]); r = " A
     "add.Tensor(p, w1)"},
    {"x: \"f32[131, 300]\", y: \"f32[300, 203]\"", "r = " A "mm.default(x, y)"},
    {"x: \"f32[131, 300]\", y: \"f32[203, 300]\"",
     "t = " A "t.default(y); r = " A "mm.default(x, t)"},
    {"x: \"f32[300, 131]\", y: \"f32[300, 20]\"",
     "t = " A "t.default(x); r = " A "mm.default(t, y)"},
#define CONV(stride, pad, dil, groups)                                                             \
    "r = " A "convolution.default(x, w, None, [" #stride ", " #stride "], [" #pad ", " #pad        \
    "], [" #dil ", " #dil "], False, [0, 0], " #groups ")"
    {"x: \"f32[2, 13, 21, 27]\", w: \"f32[17, 13, 3, 3]\"", CONV(1, 1, 1, 1)},
    {"x: \"f32[2, 13, 21, 27]\", w: \"f32[17, 13, 5, 3]\"", CONV(2, 2, 2, 1)},
    {"x: \"f32[2, 13, 21, 27]\", w: \"f32[17, 13, 1, 1]\"", CONV(1, 0, 1, 1)},
    {"x: \"f32[2, 19, 31, 27]\", w: \"f32[19, 1, 3, 3]\"", CONV(1, 1, 1, 19)},
    {"x: \"f32[2, 19, 31, 27]\", w: \"f32[19, 1, 5, 3]\"", CONV(1, 2, 2, 19)},
    {"x: \"f32[2, 19, 31, 27]\", w: \"f32[19, 1, 3, 3]\"", CONV(2, 1, 1, 19)},
    {"x: \"f32[3, 11, 41, 43]\"",
     "r = " A "avg_pool2d.default(x, [3, 2], [2, 2], [1, 1], True, False)"},
    {"x: \"f32[3, 11, 41, 43]\"", "r = " A "_adaptive_avg_pool2d.default(x, [7, 9])"},
    {"g: \"f32[3, 11, 21, 22]\", x: \"f32[3, 11, 41, 43]\"",
     "r = " A "avg_pool2d_backward.default(g, x, [3, 2], [2, 2], [1, 1], False, True, None)"},
    {"x: \"f32[3, 11, 21, 23]\"", "r = " A "upsample_bilinear2d.default(x, [50, 41], False)"},
    {"x: \"f32[3, 11, 21, 23]\"", "r = " A "upsample_bicubic2d.default(x, [50, 41], True)"},
    {"x: \"f32[3, 11, 21, 23]\"", "r = " A "upsample_nearest2d.default(x, [50, 41])"},
    {"x: \"f32[1000, 67]\", i: \"i64[30, 41]\"", "r = " A "embedding.default(x, i)"},
    {"g: \"f32[30, 41, 67]\", i: \"i64[30, 41]\"",
     "r = " A "embedding_dense_backward.default(g, i, 1000, 7, False)"},
    {"x: \"f32[1000, 67]\", i: \"i64[5, 311]\"", "r = " A "index.Tensor(x, [i])"},
    {"x: \"f32[3, 1000, 67]\", i: \"i64[311]\"", "r = " A "index.Tensor(x, [None, i])"},
    {"x: \"f32[31, 1000]\", i: \"i64[311]\"", "r = " A "index_select.default(x, 1, i)"},
    {"x: \"f32[131, 1000]\", i: \"i64[131, 317]\"", "r = " A "gather.default(x, 1, i)"},
    {"x: \"f32[1000, 131]\", i: \"i64[317, 131]\"", "r = " A "gather.default(x, 0, i)"},
    {"x: \"f32[131, 1000]\", i: \"i64[131, 317]\", s: \"f32[131, 400]\"",
     "r = " A "scatter_add.default(x, 1, i, s)"},
    {"x: \"f32[1000, 131]\", i: \"i64[317, 131]\", s: \"f32[317, 131]\"",
     "r = " A "scatter.src(x, 0, i, s)"},
    {"x: \"f32[1000, 131]\", i: \"i64[317]\", s: \"f32[317, 131]\"",
     "r = " A "index_add.default(x, 0, i, s)"},
    {"x: \"f32[1000, 131]\", i: \"i64[317]\", s: \"f32[317, 131]\"",
     "r = " A "index_put.default(x, [i], s, True)"},
    {"x: \"f32[301, 517]\"", "r = " A "tril.default(x, -3)"},
    {"x: \"f32[301, 517]\"", "r = " A "triu.default(x, 5)"},
    {"x: \"f32[31, 47]\"", "r = " A "repeat.default(x, [5, 1, 11])"},
    {"x: \"f32[3, 11, 41, 43]\"", "r = " A "reflection_pad2d.default(x, [3, 2, 1, 4])"},
    {"x: \"f32[301, 517]\"", "r = " A "cumsum.default(x, 0)"},
    {"x: \"f32[301, 517]\"", "r = " A "cumsum.default(x, 1)"},
    {"x: \"i32[160003]\", y: \"i32[160003]\"",
     "p = " A "mul.Tensor(x, y); q = " A "add.Tensor(p, 2147483647); r = " A "le.Tensor(q, x)"},
    {"x: \"b8[160003]\", y: \"b8[160003]\"",
     "p = " A "bitwise_xor.Tensor(x, y); q = " A "logical_not.default(p); r = " A
     "bitwise_and.Tensor(q, x)"},
};

static const Graph *parse(Arena *a, int i, Diag *d) {
    Buf t = {.arena = a};
    buf_printf(&t, "class <lambda>(torch.nn.Module):\n    def forward(self, %s):\n",
               rows[i].inputs);
    for (const char *p = rows[i].body; *p;) {
        size_t n = strcspn(p, ";");
        buf_printf(&t, "        %.*s\n", (int)n, p);
        p += n + strspn(p + n, "; ");
    }
    buf_puts(&t, "        return (r,)\n");
    const char *text = buf_str(&t);
    FxDoc doc = {.arena = a};
    ck_assert_msg(fx_parse(&doc, sym_new(a), (Str){text, strlen(text)}, "row", d), "%s: %s",
                  rows[i].body, diag_first(d));
    return doc.at[0].graph;
}

static void fill(Tensor *t, uint32_t seed) {
    for (int64_t i = 0, n = tensor_numel(t); i < n; i++) {
        uint32_t h = ((uint32_t)i + seed * 7919) * 2654435761u;
        h ^= h >> 15;
        h *= 2246822519u;
        h ^= h >> 13;
        if (t->dtype == DT_b8)
            tensor_set_i64(t, i, h & 1);
        else if (dtype_is_float(t->dtype))
            tensor_set_f64(t, i, (double)((float)(h >> 8) * 0x1p-23f - 1));
        else
            tensor_set_i64(t, i, (int64_t)(h % 1000));
    }
}

static RtValue result(Arena *a, const Graph *g, RtValue *in, int n, bool f64, Diag *d) {
    EagerCtx c = {.arena = a, .diag = d, .threads = f64 ? 1 : 2};
    EagerRun run = {.graph = g, .inputs = in, .n_inputs = n, .in_f64 = f64};
    ck_assert_msg(eager_run(&c, &run), "%s", diag_first(d));
    ck_assert_int_eq(run.n_outputs, 1);
    return run.outputs[0];
}

static void compare(int row, const Tensor *got, const Tensor *want) {
    int64_t n = tensor_numel(want);
    double scale = 0;
    ck_assert_int_eq(tensor_numel(got), n);
    for (int64_t i = 0; i < n; i++)
        scale = fmax(scale, fabs(tensor_get_f64(want, i)));
    for (int64_t i = 0; i < n; i++) {
        double x = tensor_get_f64(got, i), y = tensor_get_f64(want, i);
        ck_assert_msg(fabs(x - y) <= 2e-5 * fabs(y) + 4e-6 * scale,
                      "%s: [%lld] %.9g, expected %.9g", rows[row].body, (long long)i, x, y);
    }
}

START_TEST(wide_and_narrow_agree) {
    for (int i = 0; i < COUNT(rows); i += UNIT_EVERY(2)) {
        Arena a = {0};
        Diag d = {.arena = &a};
        const Graph *g = parse(&a, i, &d);
        RtValue in[8] = {{0}};
        int n = 0;
        GRAPH_EACH (g, node) {
            if (node->op != FX_placeholder)
                continue;
            const TensorMeta *m = node->val.tensor;
            int64_t size[TENSOR_DIMS];
            for (int k = 0; k < m->ndim; k++)
                size[k] = expr_int_or(m->size[k], 1);
            in[n].kind = RT_tensor;
            ck_assert(tensor_new(&in[n].tensor, m->dtype, m->ndim, size, &d));
            fill(&in[n].tensor, (uint32_t)n + 1);
            n++;
        }
        RtValue want = result(&a, g, in, n, true, &d), got = result(&a, g, in, n, false, &d);
        compare(i, &got.tensor, &want.tensor);
        rt_drop(&want);
        rt_drop(&got);
        for (int k = 0; k < n; k++)
            rt_drop(&in[k]);
        arena_free(&a);
    }
}
END_TEST

// NaN wins over all wherever it stands, the first of equals has the place, and -0 is 0.
START_TEST(extremes_among_many) {
    enum { N = 1000 };
    Arena a = {0};
    Diag d = {.arena = &a};
    FxDoc doc = {.arena = &a};
    const char *text = "def forward(self, x):\n"
                       "    m = torch.ops.aten.amax.default(x, [1])\n"
                       "    n = torch.ops.aten.amin.default(x, [1])\n"
                       "    p = torch.ops.aten.argmax.default(x, 1)\n"
                       "    q = torch.ops.aten.argmin.default(x, 1)\n"
                       "    s = torch.ops.aten._softmax.default(x, 1, False)\n"
                       "    return (m, n, p, q, s)\n";
    ck_assert(fx_parse(&doc, sym_new(&a), (Str){text, strlen(text)}, "row", &d));
    static const int64_t places[] = {0, 63, 64, 640, 998, 999};
    for (int k = 0; k < COUNT(places); k++) {
        RtValue in = {.kind = RT_tensor};
        int64_t size[2] = {2, N};
        ck_assert(tensor_new(&in.tensor, DT_f32, 2, size, &d));
        tensor_set_f64(&in.tensor, places[k], 7);
        tensor_set_f64(&in.tensor, N - 1, places[k] == N - 1 ? 7 : -0.0);
        tensor_set_f64(&in.tensor, N + places[k], (double)NAN);
        EagerCtx c = {.arena = &a, .diag = &d, .threads = 2};
        EagerRun run = {.graph = doc.at[0].graph, .inputs = &in, .n_inputs = 1};
        ck_assert_msg(eager_run(&c, &run), "%s", diag_first(&d));
        const RtValue *o = run.outputs;
        ck_assert(tensor_get_f64(&o[0].tensor, 0) == 7);
        ck_assert(isnan(tensor_get_f64(&o[0].tensor, 1)));
        ck_assert(tensor_get_f64(&o[1].tensor, 0) == 0);
        ck_assert(isnan(tensor_get_f64(&o[1].tensor, 1)));
        ck_assert_int_eq(tensor_get_i64(&o[2].tensor, 0), places[k]);
        ck_assert_int_eq(tensor_get_i64(&o[2].tensor, 1), places[k]);
        ck_assert_int_eq(tensor_get_i64(&o[3].tensor, 0), places[k] == 0);
        ck_assert_int_eq(tensor_get_i64(&o[3].tensor, 1), places[k]);
        for (int64_t i = 0; i < N; i++)
            ck_assert(isnan(tensor_get_f64(&o[4].tensor, N + i)));
        for (int i = 0; i < run.n_outputs; i++)
            rt_drop(&run.outputs[i]);
        rt_drop(&in);
    }
    arena_free(&a);
}
END_TEST

Suite *suite_eager_wide(void) {
    const TTest *const tests[] = {wide_and_narrow_agree, extremes_among_many};
    return unit_suite("eager_wide", tests, COUNT(tests));
}
