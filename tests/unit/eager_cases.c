// eager_cases.c: single ops by the reference kernels against recorded results
// (tests/data/opcases.jsonl, and all recorded cases where they are at hand), against facts from
// public reports (eager_facts.jsonl: NaN, signed zero, wrapping, rounding, duplicates, empty and
// 0-d tensors), errors, aliasing through graphs, products against sums.
#include "tests/unit/unit.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/file.h"
#include "core/debug/case_values.h"
#include "core/debug/cases.h"
#include "core/eager/eager.h"

static int failures(const char *path, int *passed) {
    Arena a = {0};
    Diag d = {.arena = &a};
    Buf report = {.arena = &a};
    int failed = cases_run(path, "eager", &report, &d);
    const char *tail = strstr(buf_str(&report), " passed");
    while (tail && tail > report.data && tail[-1] != '\n')
        tail--;
    *passed = tail ? atoi(tail) : 0;
    if (getenv("FX_REPORT") || failed < 0)
        printf("%s%s%s", path, buf_str(&report), diag_first(&d));
    arena_free(&a);
    return failed;
}

START_TEST(test_facts) {
    int passed;
    ck_assert_int_eq(failures("tests/data/eager_facts.jsonl", &passed), 0);
    ck_assert_int_ge(passed, 80);
}
END_TEST

// What PyTorch 1.13.1 gave for ops that have no recorded case.
START_TEST(test_old_ops) {
    int passed;
    ck_assert_int_eq(failures("tests/data/eager_old_ops.jsonl", &passed), 0);
    ck_assert_int_ge(passed, 186);
}
END_TEST

START_TEST(test_recorded) {
    int passed;
    ck_assert_int_eq(failures("tests/data/opcases.jsonl", &passed), 0);
    ck_assert_int_eq(passed, 149);
    if (!file_exists("../shared/opcases/ops.jsonl"))
        return;
    ck_assert_int_eq(failures("../shared/opcases/ops.jsonl", &passed), 0);
    ck_assert_int_eq(passed, 5007);
}
END_TEST

// Forward graphs of recorded gradient cases: hundreds of operator samples in float64.
static bool forward_matches(Str text) {
    Arena a = {0};
    Diag d = {.arena = &a};
    Json *j = json_parse(&a, text, "case", &d);
    const char *code = json_str(json_get(j, "code"), "");
    FxDoc doc = {.arena = &a};
    RtValue in = {0}, want = {0};
    bool ok = fx_parse(&doc, sym_new(&a), (Str){code, strlen(code)}, "graph", &d) &&
              case_value(&a, json_get(j, "inputs"), &in, &d) &&
              case_value(&a, json_get(j, "outputs"), &want, &d);
    Generator g;
    generator_seed(&g, 0);
    EagerCtx c = {.arena = &a, .diag = &d, .threads = 1, .generator = &g};
    EagerRun run = {.graph = ok ? doc.at[0].graph : NULL, .inputs = in.at, .n_inputs = in.n};
    ok = ok && eager_run(&c, &run) && run.n_outputs == want.n;
    for (int i = 0; ok && i < want.n; i++) {
        const Tensor *x = &run.outputs[i].tensor, *y = &want.at[i].tensor;
        if (want.at[i].kind != RT_tensor || run.outputs[i].kind != RT_tensor)
            continue;
        TensorDiff diff = {0};
        ok = x->dtype == y->dtype && x->ndim == y->ndim;
        for (int k = 0; ok && k < x->ndim; k++)
            ok = x->size[k] == y->size[k];
        if (ok)
            tensor_diff(x, y, 1e-7, 1e-9, &diff);
        ok = ok && !diff.bad && !diff.nan_differs;
    }
    for (int i = 0; i < run.n_outputs && run.outputs; i++)
        rt_drop(&run.outputs[i]);
    rt_drop(&in);
    rt_drop(&want);
    arena_free(&a);
    return ok;
}

static int graphs_that_match(const char *path, int *n) {
    Arena a = {0};
    Diag d = {.arena = &a};
    int passed = 0;
    Str text = file_read(&a, path, &d);
    for (size_t at = 0; at < text.len; ++*n) {
        const char *end = memchr(text.ptr + at, '\n', text.len - at);
        size_t len = end ? (size_t)(end - text.ptr) - at : text.len - at;
        passed += forward_matches((Str){text.ptr + at, len});
        at += len + 1;
    }
    arena_free(&a);
    return passed;
}

START_TEST(test_recorded_graphs) {
    const char *path = "../shared/opcases/grads.jsonl";
    int n = 0;
    // The others draw random numbers, are complex, or lack a constant.
    if (file_exists(path))
        ck_assert_int_ge(graphs_that_match(path, &n), n - 25);
}
END_TEST

// Attention of nn.MultiheadAttention, x[…] and x[…] = v as calls, by PyTorch 1.13.
START_TEST(test_torch_level) {
    int n = 0;
    ck_assert_int_eq(graphs_that_match("tests/data/torchlevel.jsonl", &n), 36);
    ck_assert_int_eq(n, 36);
}
END_TEST

// A graph's text run on tensors of floats.

typedef struct Run {
    Arena a;
    Diag d;
    EagerRun run;
    RtValue in[4]; // inputs, none behind the last
} Run;

static void run_graph(Run *r, const char *text, int n) {
    ck_assert(n <= 4);
    r->d.arena = &r->a;
    FxDoc doc = {.arena = &r->a};
    ck_assert_msg(fx_parse(&doc, sym_new(&r->a), (Str){text, strlen(text)}, "graph", &r->d), "%s",
                  diag_first(&r->d));
    ck_assert_int_eq(doc.n, 1);
    r->run = (EagerRun){.graph = doc.at[0].graph, .inputs = r->in, .n_inputs = n};
    EagerCtx c = {.arena = &r->a, .diag = &r->d, .threads = 2};
    eager_run(&c, &r->run);
}

static Tensor *input(Run *r, int i, int ndim, const int64_t *size, const float *v) {
    r->d.arena = &r->a;
    r->in[i].kind = RT_tensor;
    ck_assert(tensor_new(&r->in[i].tensor, DT_f32, ndim, size, &r->d));
    for (int64_t j = 0; j < tensor_numel(&r->in[i].tensor); j++)
        tensor_set_f64(&r->in[i].tensor, j, (double)v[j]);
    return &r->in[i].tensor;
}

static void expect(const Tensor *t, const float *v, int n) {
    ck_assert_int_eq(tensor_numel(t), n);
    for (int i = 0; i < n; i++)
        ck_assert_msg((float)tensor_get_f64(t, i) == v[i], "element %d is %g, expected %g", i,
                      tensor_get_f64(t, i), (double)v[i]);
}

static void done(Run *r) {
    for (int i = 0; i < r->run.n_outputs && r->run.outputs; i++)
        rt_drop(&r->run.outputs[i]);
    for (int i = 0; i < 4; i++)
        rt_drop(&r->in[i]);
    arena_free(&r->a);
}

// as_strided counts from the storage, not from the view.
START_TEST(test_views_write_through) {
    Run r = {0};
    const float zeros[8] = {0}, want[8] = {1, 1};
    Tensor *x = input(&r, 0, 2, (int64_t[]){2, 4}, zeros);
    run_graph(&r,
              "def forward(self, x):\n    d = x.diagonal();  d = d\n    s = d.as_strided((2,), "
              "(1,), 0);  d = None\n"
              "    y = s.add_(1);  s = None\n    return (y,)\n",
              1);
    ck_assert_msg(r.d.errors == 0, "%s", diag_first(&r.d));
    expect(x, want, 8);
    done(&r);
}
END_TEST

START_TEST(test_overlapping_windows) {
    Run r = {0};
    float v[24];
    for (int i = 0; i < 24; i++)
        v[i] = (float)(i + 1);
    const float want[6] = {2, 2, 3, 4, 5, 12};
    Tensor *x = input(&r, 0, 2, (int64_t[]){4, 6}, v);
    run_graph(&r,
              "def forward(self, x):\n    v = x.unfold(1, 1, 5)\n    w = v.add_(v);  v = None\n    "
              "return (w,)\n",
              1);
    ck_assert_msg(r.d.errors == 0, "%s", diag_first(&r.d));
    Tensor row = *x;
    row.ndim = 1;
    row.size[0] = 6;
    row.stride[0] = 1;
    expect(&row, want, 6);
    done(&r);
}
END_TEST

// The right side is read in full before the first write; the write reaches the earlier result's
// input only.
START_TEST(test_index_assignment) {
    Run r = {0};
    const float x[2] = {1, 2}, want[2] = {2, 2};
    Tensor *t = input(&r, 0, 1, (int64_t[]){2}, x);
    run_graph(&r,
              "def forward(self, x):\n    i = torch.zeros(2, dtype = torch.int64)\n    a = x[i]\n  "
              "  b = x[i]\n"
              "    c = a + b;  a = b = None\n    x[i] = c;  setitem = x;  i = c = setitem = None\n "
              "   return (x,)\n",
              1);
    ck_assert_msg(r.d.errors == 0, "%s", diag_first(&r.d));
    expect(t, want, 2);
    done(&r);
}
END_TEST

START_TEST(test_earlier_results_stay) {
    Run r = {0};
    const float x[1] = {3};
    input(&r, 0, 1, (int64_t[]){1}, x);
    run_graph(
        &r, "def forward(self, x):\n    y = torch.log(x)\n    z = x.log_()\n    return (y, x, z)\n",
        1);
    ck_assert_int_eq(r.run.n_outputs, 3);
    for (int i = 0; i < 3; i++)
        ck_assert(fabs(tensor_get_f64(&r.run.outputs[i].tensor, 0) - 1.0986122886681098) < 1e-6);
    done(&r);
}
END_TEST

// What PyTorch refuses is refused, by its kind of error, naming the node.
START_TEST(test_errors) {
    static const struct {
        const char *body, *error;
    } cases[] = {
        {"    e = x.expand(3, 2)\n    y = e.add_(1);  e = None\n    return (y,)\n",
         "more than one element"},
        {"    a = torch.ones(3)\n    y = x + a\n    return (y,)\n", "must match the size"},
        {"    y = x.split([2, 1], 0)\n    return (y,)\n", "split"},
        {"    y = torch.mm(x, x)\n    return (y,)\n", "Error"},
        {"    i = torch.full((1,), 7, dtype = torch.int64)\n    y = x[i]\n    return (y,)\n",
         "IndexError"},
        {"    y = x[5]\n    return (y,)\n", "Error"},
        {"    y = x.as_strided((4,), (1,), 0)\n    return (y,)\n", "reach out of the storage"},
        {"    y = torch.rand(3)\n    return (y,)\n", "no generator"},
        {"    y = torch.no_such_function(x)\n    return (y,)\n", "no_such_function"},
        {"    i = x.to(torch.int64)\n    z = i - i\n    y = i // z\n    return (y,)\n",
         "ZeroDivisionError"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        Run r = {0};
        const float x[2] = {1, 2};
        char text[512];
        snprintf(text, sizeof text, "def forward(self, x):\n%s", cases[i].body);
        input(&r, 0, 1, (int64_t[]){2}, x);
        run_graph(&r, text, 1);
        ck_assert_msg(r.d.errors > 0, "%s", text);
        ck_assert_msg(strstr(diag_first(&r.d), cases[i].error) != NULL, "%s\n%s", text,
                      diag_first(&r.d));
        done(&r);
    }
}
END_TEST

// Products of all shapes and layouts against plain sums.
static void check_gemm(DType d, int64_t m, int64_t n, int64_t k, bool ta, bool tb, double beta) {
    // Sums of these are exact in floats: what is low is rounded once.
    double last = d == DT_bf16 ? 0x1p-8 : d == DT_f16 ? 0x1p-11 : 1e-5;
    Arena a = {0};
    Diag diag = {.arena = &a};
    Tensor x = {0}, y = {0}, z = {0};
    int64_t xs[2] = {ta ? k : m, ta ? m : k}, ys[2] = {tb ? n : k, tb ? k : n}, zs[2] = {m, n};
    ck_assert(tensor_new(&x, d, 2, xs, &diag) && tensor_new(&y, d, 2, ys, &diag) &&
              tensor_new(&z, d, 2, zs, &diag));
    for (int64_t i = 0; i < m * k; i++)
        tensor_set_f64(&x, i, (double)(i * 7 % 13 - 6) / 4);
    for (int64_t i = 0; i < k * n; i++)
        tensor_set_f64(&y, i, (double)(i * 5 % 11 - 5) / 4);
    for (int64_t i = 0; i < m * n; i++)
        tensor_set_f64(&z, i, beta == 0 ? (double)NAN : (double)(i % 3));
    Gemm g = {.dtype = d,
              .m = m,
              .n = n,
              .k = k,
              .a = tensor_data(&x),
              .b = tensor_data(&y),
              .c = tensor_data(&z),
              .a_row = ta ? 1 : k,
              .a_col = ta ? m : 1,
              .b_row = tb ? 1 : n,
              .b_col = tb ? k : 1,
              .c_row = n,
              .c_col = 1,
              .alpha = 2,
              .beta = beta};
    blas_gemm(&g, 2);
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++) {
            double want = 0;
            for (int64_t l = 0; l < k; l++)
                want += tensor_get_f64(&x, ta ? l * m + i : i * k + l) *
                        tensor_get_f64(&y, tb ? j * k + l : l * n + j);
            want = 2 * want + (beta == 0 ? 0 : beta * (double)((i * n + j) % 3));
            ck_assert_msg(fabs(tensor_get_f64(&z, i * n + j) - want) <=
                              last * fabs(want) + (last == 1e-5 ? 1e-5 : 0),
                          "%lld %lld %lld at %lld %lld: %g, expected %g", (long long)m,
                          (long long)n, (long long)k, (long long)i, (long long)j,
                          tensor_get_f64(&z, i * n + j), want);
        }
    tensor_drop(&x);
    tensor_drop(&y);
    tensor_drop(&z);
    arena_free(&a);
}

START_TEST(test_products) {
    static const int64_t sizes[][3] = {{1, 1, 1},     {1, 70, 33},   {70, 1, 33},    {7, 5, 3},
                                       {8, 48, 256},  {61, 97, 300}, {250, 390, 17}, {3, 4, 0},
                                       {9, 50, 1101}, {530, 20, 3}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (int form = 0; form < 8; form += UNIT_EVERY(3)) {
            const int64_t *s = sizes[i];
            check_gemm(DT_f32, s[0], s[1], s[2], form & 1, form & 2, form & 4 ? 0.5 : 0);
            check_gemm(DT_f64, s[0], s[1], s[2], form & 1, form & 2, form & 4 ? 0.5 : 0);
            check_gemm(DT_bf16, s[0], s[1], s[2], form & 1, form & 2, form & 4 ? 0.5 : 0);
            check_gemm(DT_f16, s[0], s[1], s[2], form & 1, form & 2, form & 4 ? 0.5 : 0);
        }
}
END_TEST

// A batch has the bits of its products one by one, however many threads there are.
START_TEST(test_batched_products) {
    enum { BATCHES = 5, M = 19, N = 70, DEPTH = 40 };
    static float a[BATCHES * M * DEPTH], b[DEPTH * BATCHES * N], one[BATCHES * M * N],
        all[BATCHES * M * N];
    for (int i = 0; i < BATCHES * M * DEPTH; i++)
        a[i] = (float)(i * 7 % 31) / 7 - 2;
    for (int i = 0; i < BATCHES * N * DEPTH; i++)
        b[i] = (float)(i * 11 % 29) / 9 - 1;
    Gemm g = {.dtype = DT_f32,
              .m = M,
              .n = N,
              .k = DEPTH,
              .a_row = DEPTH,
              .a_col = 1,
              .b_row = BATCHES * N,
              .b_col = 1,
              .c_row = N,
              .c_col = 1,
              .alpha = 1};
    for (int i = 0; i < BATCHES; i++) {
        g.a = a + i * M * DEPTH, g.b = b + i * N, g.c = one + i * M * N;
        blas_gemm(&g, 1);
    }
    g.a = a, g.b = b, g.c = all;
    g.batches = BATCHES, g.a_next = M * DEPTH, g.b_next = N, g.c_next = M * N;
    for (int threads = 1; threads <= 4; threads++) {
        memset(all, 0xff, sizeof all);
        blas_gemm(&g, threads);
        ck_assert_mem_eq(one, all, sizeof one);
    }
    double sum = 0;
    for (int k = 0; k < DEPTH; k++)
        sum += (double)a[(4 * M + 3) * DEPTH + k] * (double)b[(k * BATCHES + 4) * N + 69];
    ck_assert_double_eq_tol((double)all[(4 * M + 3) * N + 69], sum, 1e-4);
}
END_TEST

// torch.manual_seed(0), PyTorch 1.13 on a CPU: rand(3), then randn(3); randn(16) takes another way.
START_TEST(test_generator) {
    Arena a = {0};
    Diag d = {.arena = &a};
    Generator g;
    generator_seed(&g, 0);
    EagerCtx c = {.arena = &a, .diag = &d, .threads = 1, .generator = &g};
    RtValue size = {.kind = RT_list, .n = 1, .at = &(RtValue){.kind = RT_int, .i = 3}}, out;
    RtValue args[8] = {size};
    ck_assert(eager_call(&c, op_at(OP_aten_rand_default), args, &out));
    ck_assert(fabs(tensor_get_f64(&out.tensor, 0) - 0.4963) < 5e-5);
    ck_assert(fabs(tensor_get_f64(&out.tensor, 2) - 0.0885) < 5e-5);
    rt_drop(&out);
    ck_assert(eager_call(&c, op_at(OP_aten_randn_default), args, &out));
    ck_assert(fabs(tensor_get_f64(&out.tensor, 0) - 0.3643) < 5e-5);
    ck_assert(fabs(tensor_get_f64(&out.tensor, 1) - 0.1344) < 5e-5);
    ck_assert(fabs(tensor_get_f64(&out.tensor, 2) - 0.1642) < 5e-5);
    rt_drop(&out);
    arena_free(&a);
}
END_TEST

Suite *suite_eager_cases(void) {
    static const TTest *tests[13];
    int n = 0;
    tests[n++] = test_facts;
    tests[n++] = test_old_ops;
    tests[n++] = test_recorded;
    tests[n++] = test_recorded_graphs;
    tests[n++] = test_torch_level;
    tests[n++] = test_views_write_through;
    tests[n++] = test_overlapping_windows;
    tests[n++] = test_index_assignment;
    tests[n++] = test_earlier_results_stay;
    tests[n++] = test_products;
    tests[n++] = test_errors;
    tests[n++] = test_batched_products;
    tests[n++] = test_generator;
    return unit_suite("eager_cases", tests, n);
}
