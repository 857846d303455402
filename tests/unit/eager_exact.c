// eager_exact.c: kernels with quick loops against slow ones written here: convolutions of all
// geometries and layouts against the sum that defines them, sums and products of rows of all
// lengths, numbers drawn in pieces against numbers drawn one by one, loops shared by threads.
#include "tests/unit/unit.h"

#include <math.h>
#include <stdatomic.h>
#include <string.h>

#include "core/eager/kernel.h"
#include "core/fx/graph.h"

static Arena arena;
static Diag diag;

static const Graph *parse(const char *inputs, const char *body) {
    Buf t = {.arena = &arena};
    buf_printf(&t, "def forward(self, %s):\n    r = torch.ops.aten.%s\n    return (r,)\n", inputs,
               body);
    FxDoc doc = {.arena = &arena};
    ck_assert_msg(fx_parse(&doc, sym_new(&arena), (Str){buf_str(&t), t.len}, "row", &diag), "%s",
                  diag_first(&diag));
    return doc.at[0].graph;
}

static RtValue run(const Graph *g, RtValue *in, int n, int threads, Generator *generator) {
    EagerCtx c = {.arena = &arena, .diag = &diag, .threads = threads, .generator = generator};
    EagerRun run = {.graph = g, .inputs = in, .n_inputs = n};
    ck_assert_msg(eager_run(&c, &run), "%s", diag_first(&diag));
    return run.outputs[0];
}

// Small numbers, whose sums and products of two are exact in float.
static void fill(Tensor *t, uint32_t seed) {
    for (int64_t i = 0, n = tensor_numel(t); i < n; i++) {
        uint32_t h = ((uint32_t)i + seed * 7919) * 2654435761u;
        h ^= h >> 15;
        h *= 2246822519u;
        tensor_set_f64(t, i, (double)((int)(h >> 20) % 17 - 8) / 4);
    }
}

typedef struct Shape {
    int64_t n, c, h, w, o, kh, kw, stride, pad, dil, groups;
} Shape;

static RtValue make(DType d, const int64_t *size, bool last, uint32_t seed) {
    RtValue v = {.kind = RT_tensor};
    int64_t stride[4] = {size[1] * size[2] * size[3], size[2] * size[3], size[3], 1};
    if (last) {
        stride[1] = 1;
        stride[3] = size[1];
        stride[2] = size[1] * size[3];
    }
    ck_assert(tensor_new_raw(&v.tensor, d, 4, size, stride, &diag));
    fill(&v.tensor, seed);
    return v;
}

static double at4(const Tensor *t, int64_t a, int64_t b, int64_t c, int64_t d) {
    return tensor_get_f64(t, ((a * t->size[1] + b) * t->size[2] + c) * t->size[3] + d);
}

// The sum that a convolution is, at one place of its result.
static double direct(const Shape *s, const Tensor *x, const Tensor *w, const int64_t *place) {
    int64_t each = s->c / s->groups, first = place[1] / (s->o / s->groups) * each;
    double sum = 0;
    for (int64_t c = 0; c < each; c++)
        for (int64_t ky = 0; ky < s->kh; ky++)
            for (int64_t kx = 0; kx < s->kw; kx++) {
                int64_t y = place[2] * s->stride - s->pad + ky * s->dil,
                        z = place[3] * s->stride - s->pad + kx * s->dil;
                if (y >= 0 && y < s->h && z >= 0 && z < s->w)
                    sum += at4(x, place[0], first + c, y, z) * at4(w, place[1], c, ky, kx);
            }
    return sum;
}

static void check_shape(const Shape *s, DType d, bool last, bool biased, int threads) {
    int64_t x_size[] = {s->n, s->c, s->h, s->w}, w_size[] = {s->o, s->c / s->groups, s->kh, s->kw};
    RtValue in[3] = {make(d, x_size, last, 1), make(d, w_size, false, 2), {.kind = RT_tensor}};
    ck_assert(tensor_new(&in[2].tensor, d, 1, &s->o, &diag));
    fill(&in[2].tensor, 3);
    const char *body = arena_printf(
        &arena,
        "convolution.default(x, w, %s, [%lld, %lld], [%lld, %lld], [%lld, %lld], False, [0, 0], "
        "%lld)",
        biased ? "b" : "None", (long long)s->stride, (long long)s->stride, (long long)s->pad,
        (long long)s->pad, (long long)s->dil, (long long)s->dil, (long long)s->groups);
    RtValue r = run(parse("x, w, b", body), in, 3, threads, NULL);
    const Tensor *y = &r.tensor;
    int64_t oh = (s->h + 2 * s->pad - s->dil * (s->kh - 1) - 1) / s->stride + 1,
            ow = (s->w + 2 * s->pad - s->dil * (s->kw - 1) - 1) / s->stride + 1;
    ck_assert(y->ndim == 4 && y->size[0] == s->n && y->size[1] == s->o && y->size[2] == oh &&
              y->size[3] == ow);
    for (int64_t i = 0; i < tensor_numel(y); i++) {
        int64_t place[] = {i / ow / oh / s->o, i / ow / oh % s->o, i / ow % oh, i % ow};
        double want = direct(s, &in[0].tensor, &in[1].tensor, place);
        want += biased ? tensor_get_f64(&in[2].tensor, place[1]) : 0;
        ck_assert_msg(tensor_get_f64(y, i) == want, "%s of [%lld, %lld, %lld, %lld]%s: %g, not %g",
                      body, (long long)s->n, (long long)s->c, (long long)s->h, (long long)s->w,
                      last ? " channels last" : "", tensor_get_f64(y, i), want);
    }
    rt_drop(&r);
    for (int i = 0; i < 3; i++)
        rt_drop(&in[i]);
}

// Both gradients: every place of the result gives its slope to what it was computed from.
static void check_slopes(const Shape *s, DType d, int threads) {
    int64_t oh = (s->h + 2 * s->pad - s->dil * (s->kh - 1) - 1) / s->stride + 1,
            ow = (s->w + 2 * s->pad - s->dil * (s->kw - 1) - 1) / s->stride + 1;
    int64_t each = s->c / s->groups, x_size[] = {s->n, s->c, s->h, s->w},
            w_size[] = {s->o, each, s->kh, s->kw}, g_size[] = {s->n, s->o, oh, ow};
    RtValue in[3] = {make(d, g_size, false, 4), make(d, x_size, false, 1),
                     make(d, w_size, false, 2)};
    const Tensor *g = &in[0].tensor, *x = &in[1].tensor, *w = &in[2].tensor;
    double *want[] = {ARENA_ARRAY(&arena, tensor_numel(x), double),
                      ARENA_ARRAY(&arena, tensor_numel(w), double)};
    for (int64_t i = 0; i < tensor_numel(g) * each * s->kh * s->kw; i++) {
        int64_t at = i / (each * s->kh * s->kw), kx = i % s->kw, ky = i / s->kw % s->kh,
                c = i / s->kw / s->kh % each, o = at / ow / oh % s->o, image = at / ow / oh / s->o;
        int64_t row = at / ow % oh * s->stride - s->pad + ky * s->dil,
                column = at % ow * s->stride - s->pad + kx * s->dil;
        if (row < 0 || row >= s->h || column < 0 || column >= s->w)
            continue;
        int64_t from = ((image * s->c + o / (s->o / s->groups) * each + c) * s->h + row) * s->w +
                       column,
                by = ((o * each + c) * s->kh + ky) * s->kw + kx;
        want[0][from] += tensor_get_f64(g, at) * tensor_get_f64(w, by);
        want[1][by] += tensor_get_f64(g, at) * tensor_get_f64(x, from);
    }
    for (int k = 0; k < 2; k++) {
        const char *body = arena_printf(
            &arena,
            "convolution_backward.default(g, x, w, None, [%lld, %lld], [%lld, %lld], [%lld, %lld], "
            "False, [0, 0], %lld, [%s, False])\n    r = r[%d]",
            (long long)s->stride, (long long)s->stride, (long long)s->pad, (long long)s->pad,
            (long long)s->dil, (long long)s->dil, (long long)s->groups,
            k ? "False, True" : "True, False", k);
        RtValue r = run(parse("g, x, w", body), in, 3, threads, NULL);
        ck_assert_int_eq(tensor_numel(&r.tensor), tensor_numel(k ? w : x));
        for (int64_t i = 0; i < tensor_numel(&r.tensor); i++)
            ck_assert_msg(tensor_get_f64(&r.tensor, i) == want[k][i], "%s at %lld: %g, not %g",
                          body, (long long)i, tensor_get_f64(&r.tensor, i), want[k][i]);
        rt_drop(&r);
    }
    for (int i = 0; i < 3; i++)
        rt_drop(&in[i]);
}

START_TEST(convolutions_are_the_sums_that_define_them) {
    static const Shape shapes[] = {
        {2, 3, 11, 13, 5, 3, 3, 1, 1, 1, 1},   {1, 3, 23, 21, 7, 7, 7, 2, 3, 1, 1},
        {2, 4, 12, 9, 6, 3, 2, 3, 2, 1, 2},    {1, 2, 10, 30, 4, 5, 3, 1, 2, 2, 1},
        {2, 5, 17, 16, 3, 3, 3, 2, 0, 2, 1},   {3, 6, 9, 9, 8, 1, 1, 1, 0, 1, 1},
        {2, 6, 9, 10, 4, 1, 1, 2, 0, 1, 2},    {2, 6, 8, 7, 4, 1, 1, 1, 1, 1, 1},
        {2, 70, 9, 11, 70, 3, 3, 1, 1, 1, 70}, {1, 64, 8, 9, 64, 3, 3, 2, 1, 1, 64},
        {2, 5, 14, 9, 5, 5, 3, 1, 2, 2, 5},    {1, 65, 7, 6, 65, 2, 3, 3, 1, 1, 65},
        {1, 2, 40, 5, 3, 3, 3, 4, 4, 1, 1},    {1, 4, 1, 60, 6, 1, 3, 1, 0, 1, 1},
        {1, 30, 3, 18, 268, 3, 3, 1, 1, 1, 1}, {1, 40, 5, 18, 3, 3, 3, 1, 1, 1, 1},
        {2, 3, 5, 5, 1, 3, 3, 1, 1, 1, 1},     {1, 1, 3, 3, 2, 3, 3, 1, 0, 1, 1},
        {2, 8, 6, 6, 8, 5, 5, 1, 4, 1, 8},
    };
    for (int i = 0; i < COUNT(shapes); i++)
        for (int how = 0; how < 8; how++) {
            arena_free(&arena);
            diag = (Diag){.arena = &arena};
            check_shape(&shapes[i], how & 4 ? DT_f64 : DT_f32, how & 2, how & 1, 1 + how % 2);
            if (!(how & 2))
                check_slopes(&shapes[i], how & 4 ? DT_f64 : DT_f32, 1 + how % 2);
        }
}
END_TEST

// Rows of integers, whose sums are exact in any order; products whose parts stay small in any.
START_TEST(rows_of_every_length_are_summed) {
    static const DType dtypes[] = {DT_f32, DT_bf16};
    for (int64_t n = 1; n < 1400; n += n < 40 ? 1 : 37)
        for (int k = 0; k < COUNT(dtypes); k++) {
            arena_free(&arena);
            diag = (Diag){.arena = &arena};
            int64_t size[] = {3, n};
            RtValue x = {.kind = RT_tensor};
            ck_assert(tensor_new(&x.tensor, dtypes[k], 2, size, &diag));
            double want[3] = {0}, product[3] = {1, 1, 1};
            for (int64_t i = 0; i < 3 * n; i++) {
                double v = (double)(i * 7919 % 13 - 6);
                tensor_set_f64(&x.tensor, i, v);
                want[i / n] += v;
            }
            RtValue sum =
                run(parse("x", "sum.dim_IntList(x, [1], dtype = torch.float32)"), &x, 1, 2, NULL);
            for (int64_t i = 0; i < 3 * n; i++) {
                double v = i % n % 64 == 5 ? 2 : i % n % 64 == 37 ? 0.5 : -1;
                tensor_set_f64(&x.tensor, i, v);
                product[i / n] *= v;
            }
            RtValue prod = run(parse("x", "prod.dim_int(x, 1)"), &x, 1, 2, NULL);
            for (int r = 0; r < 3; r++) {
                ck_assert_double_eq(tensor_get_f64(&sum.tensor, r), want[r]);
                ck_assert_double_eq(tensor_get_f64(&prod.tensor, r), product[r]);
            }
            rt_drop(&sum);
            rt_drop(&prod);
            rt_drop(&x);
        }
}
END_TEST

START_TEST(numbers_drawn_in_pieces_are_those_drawn_one_by_one) {
    static const int sizes[] = {1, 127, 128, 129, 3, 623, 624, 625, 2000, 16, 17, 1};
    Generator pieces, single;
    generator_seed(&pieces, 5);
    generator_seed(&single, 5);
    for (int k = 0; k < COUNT(sizes); k++) {
        arena_free(&arena);
        diag = (Diag){.arena = &arena};
        const char *body = arena_printf(&arena, "rand.default([%d])", sizes[k]);
        RtValue r = run(parse("x", body), (RtValue[]){{.kind = RT_none}}, 1, 1, &pieces);
        for (int i = 0; i < sizes[k]; i++)
            ck_assert_double_eq(tensor_get_f64(&r.tensor, i),
                                (double)(generator_u32(&single) & 0xffffff) * 0x1p-24);
        rt_drop(&r);
        ck_assert_uint_eq(generator_u32(&pieces), generator_u32(&single));
    }
}
END_TEST

static void count_up(void *ctx, int64_t begin, int64_t end) {
    atomic_int *seen = ctx;
    for (int64_t i = begin; i < end; i++)
        atomic_fetch_add(&seen[i], 1);
}

// Loops that follow each other at once, and some after the threads have gone to sleep.
START_TEST(threads_do_all_of_a_loop_once) {
    enum { N = 97 };
    static atomic_int seen[N];
    for (int round = 0; round < 2000; round++) {
        int n = 1 + round % N, threads = 1 + round % 5;
        parallel_for(threads, n, 1 + round % 3, count_up, seen);
        for (int i = 0; i < N; i++)
            ck_assert_int_eq(atomic_exchange(&seen[i], 0), i < n);
        for (volatile int wait = 0; round % 400 == 0 && wait < 3000000; wait++)
            ;
    }
}
END_TEST

Suite *suite_eager_exact(void) {
    const TTest *const tests[] = {
        convolutions_are_the_sums_that_define_them, rows_of_every_length_are_summed,
        numbers_drawn_in_pieces_are_those_drawn_one_by_one, threads_do_all_of_a_loop_once};
    return unit_suite("eager_exact", tests, COUNT(tests));
}
