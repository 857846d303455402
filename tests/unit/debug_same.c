// debug_same.c: PyTorch's own rule of what is the same, branch by branch: `same` of
// torch/_dynamo/utils.py as PyTorch 2.11 has it, with equal_nan, exact_dtype and float64 beside it,
// which is how its minifier and repro_level 4 call it. Each row is worked out by hand from that.
#include "core/debug/judge.h"
#include "tests/unit/unit.h"

#include <math.h>

enum { MOST = 4 };

typedef struct Same {
    const char *what;
    DType dtype;
    int n;      // elements, times `times`
    int times;  // the numbers are repeated
    bool image; // sizes [n * times, 1, 1, 1], else [n * times]
    bool has_exact;
    double tol; // repro_tolerance
    double want[MOST], got[MOST], exact[MOST];
    bool passes;
    double multiplier; // 0: not looked at
} Same;

static const Same rows[] = {
    {"allclose, by the tolerance relative to what compiled code gives",
     DT_f32,
     2,
     1,
     false,
     true,
     1e-3,
     {1, 100},
     {1.0015, 100.1},
     {1, 100},
     true,
     0},
    {"outside of allclose, and eager is exact",
     DT_f32,
     2,
     1,
     false,
     true,
     1e-3,
     {1, 100},
     {1, 101},
     {1, 100},
     false,
     3},
    {"a tenth of the tolerance is allowed beside the multiple",
     DT_f32,
     4,
     1,
     false,
     true,
     1e-2,
     {0, 0, 0, 0},
     {0.0101, 0, 0, 0},
     {0.0092, 0, 0, 0},
     true,
     3},
    {"less than three times as far as eager, of few elements",
     DT_f32,
     1,
     1,
     false,
     true,
     1e-3,
     {1.01},
     {1.029},
     {1},
     true,
     3},
    {"more than three times", DT_f32, 1, 1, false, true, 1e-3, {1.01}, {1.031}, {1}, false, 3},
    {"999 elements are few", DT_f32, 1, 999, false, true, 1e-3, {1.01}, {1.029}, {1}, true, 3},
    {"1000 are not: twice as far is allowed",
     DT_f32,
     1,
     1000,
     false,
     true,
     1e-3,
     {1.01},
     {1.029},
     {1},
     false,
     2},
    {"less than twice as far", DT_f32, 1, 1000, false, true, 1e-3, {1.01}, {1.0195}, {1}, true, 2},
    {"1000 images of one pixel count as few",
     DT_f32,
     1,
     1000,
     true,
     true,
     1e-3,
     {1.01},
     {1.029},
     {1},
     true,
     3},
    {"a tolerance of 2e-2 or more asks for less",
     DT_f32,
     1,
     1000,
     false,
     true,
     2e-2,
     {1.1},
     {1.29},
     {1},
     true,
     3},
    {"one below it does not", DT_f32, 1, 1000, false, true, 1.9e-2, {1.1}, {1.29}, {1}, false, 2},
    {"bfloat16 is measured by three times",
     DT_bf16,
     1,
     1000,
     false,
     true,
     1e-3,
     {1.0625},
     {1.171875},
     {1},
     true,
     3},
    {"float16, too", DT_f16, 1, 1000, false, true, 1e-3, {1.0625}, {1.171875}, {1}, true, 3},
    {"without float64 allclose is all there is",
     DT_f32,
     1,
     1,
     false,
     false,
     1e-3,
     {1.01},
     {1.029},
     {0},
     false,
     0},
    {"and is enough", DT_f32, 1, 1, false, false, 1e-3, {1}, {1.0005}, {0}, true, 0},
    {"a float64 result is its own reference: root mean squares below a tenth of the tolerance",
     DT_f64,
     4,
     1,
     false,
     false,
     1e-2,
     {0, 0, 0, 0},
     {0.011, 0, 0, 0},
     {0},
     false,
     3},
    {"of many elements one may be off",
     DT_f64,
     4,
     40,
     false,
     false,
     1,
     {0, 0, 0, 0},
     {0, 0, 0, 0},
     {0},
     true,
     0},
    {"NaN equals NaN", DT_f32, 2, 1, false, true, 1e-3, {NAN, 1}, {NAN, 1}, {NAN, 1}, true, 0},
    {"NaN where there should be none",
     DT_f32,
     2,
     1,
     false,
     true,
     1e-3,
     {1, 1},
     {NAN, 1},
     {1, 1},
     false,
     3},
    {"NaN of eager alone, compiled code being near float64",
     DT_f32,
     2,
     1,
     false,
     true,
     1e-3,
     {NAN, 1},
     {2.05, 1},
     {2, 1},
     true,
     3},
    {"NaN of eager alone, compiled code being further than 4e-2 off",
     DT_f32,
     2,
     1,
     false,
     true,
     1e-3,
     {NAN, 1},
     {2.5, 1},
     {2, 1},
     false,
     3},
    {"NaN in all three, and another element is wrong: both distances are NaN, which passes",
     DT_f32,
     2,
     1,
     false,
     true,
     1e-3,
     {NAN, 1},
     {NAN, 5},
     {NAN, 1},
     true,
     3},
    {"an infinity of eager alone is no NaN",
     DT_f32,
     2,
     1,
     false,
     true,
     1e-3,
     {INFINITY, 1},
     {2, 1},
     {2, 1},
     true,
     3},
    {"an infinity where there should be none",
     DT_f32,
     2,
     1,
     false,
     true,
     1e-3,
     {2, 1},
     {INFINITY, 1},
     {2, 1},
     false,
     3},
    {"infinities of one sign are equal",
     DT_f32,
     2,
     1,
     false,
     true,
     1e-3,
     {-INFINITY, 1},
     {-INFINITY, 1},
     {-INFINITY, 1},
     true,
     0},
    {"infinities of two signs are not; eager's distance is NaN, compiled code's infinite",
     DT_f32,
     2,
     1,
     false,
     true,
     1e-3,
     {-INFINITY, 1},
     {INFINITY, 1},
     {-INFINITY, 1},
     false,
     3},
    {"integers are held to the tolerance",
     DT_i64,
     2,
     1,
     false,
     true,
     1e-3,
     {100000, 1},
     {100001, 1},
     {100000, 1},
     true,
     0},
    {"integers outside it, float64 or not",
     DT_i64,
     2,
     1,
     false,
     true,
     1e-3,
     {100, 1},
     {101, 1},
     {101, 1},
     false,
     0},
    {"bools", DT_b8, 2, 1, false, true, 1e-3, {1, 0}, {1, 0}, {1, 0}, true, 0},
    {"a bool that differs", DT_b8, 2, 1, false, true, 1e-3, {1, 0}, {1, 1}, {1, 1}, false, 0},
    {"a bool that differs, by a tolerance of half of it twice",
     DT_b8,
     2,
     1,
     false,
     true,
     0.5,
     {1, 0},
     {1, 1},
     {1, 1},
     true,
     0},
    {"a bool that differs, by less",
     DT_b8,
     2,
     1,
     false,
     true,
     0.4,
     {1, 0},
     {1, 1},
     {1, 1},
     false,
     0},
};

static RtValue tensor_of(Arena *a, const Same *row, DType d, const double *v) {
    RtValue out = {.kind = RT_tensor};
    Diag diag = {.arena = a};
    int64_t n = (int64_t)row->n * row->times, size[4] = {n, 1, 1, 1};
    ck_assert(tensor_new(&out.tensor, d, row->image ? 4 : 1, size, &diag));
    for (int64_t i = 0; i < n; i++)
        tensor_set_f64(&out.tensor, i, v[i % row->n]);
    return out;
}

START_TEST(each_branch) {
    for (int i = 0; i < COUNT(rows); i++) {
        Arena a = {0};
        const Same *r = &rows[i];
        RtValue got = tensor_of(&a, r, r->dtype, r->got),
                want = tensor_of(&a, r, r->dtype, r->want),
                exact = tensor_of(&a, r, dtype_is_float(r->dtype) ? DT_f64 : r->dtype, r->exact);
        Judged j;
        judge_value(&got, &want, r->has_exact ? &exact : NULL, &(Tolerance){.repro = r->tol}, &j);
        ck_assert_msg(j.same.passes == r->passes, "%s: %s", r->what,
                      r->passes ? "fails" : "passes");
        ck_assert_msg(!r->multiplier || j.same.multiplier == r->multiplier, "%s: %g", r->what,
                      j.same.multiplier);
        rt_drop(&got);
        rt_drop(&want);
        rt_drop(&exact);
        arena_free(&a);
    }
}
END_TEST

START_TEST(types_and_sizes) {
    Arena a = {0};
    Same one = {.n = 2, .times = 1}, two = {.n = 2, .times = 2};
    double v[2] = {1, 2};
    RtValue f32 = tensor_of(&a, &one, DT_f32, v), f64 = tensor_of(&a, &one, DT_f64, v),
            four = tensor_of(&a, &two, DT_f32, v);
    Judged j;
    judge_value(&f64, &f32, NULL, &(Tolerance){0}, &j);
    ck_assert(!j.same.passes); // exact_dtype
    judge_value(&four, &f32, NULL, &(Tolerance){0}, &j);
    ck_assert(!j.same.passes);
    rt_drop(&f32);
    rt_drop(&f64);
    rt_drop(&four);
    arena_free(&a);
}
END_TEST

// Numbers that are no tensors: whole ones by ==, floats as float32 tensors that have no float64.
START_TEST(numbers) {
    static const struct {
        RtValue got, want, exact;
        bool passes;
    } cases[] = {
        {{.kind = RT_int, .i = 100001}, {.kind = RT_int, .i = 100000}, {0}, false},
        {{.kind = RT_int, .i = 7}, {.kind = RT_int, .i = 7}, {0}, true},
        {{.kind = RT_bool, .b = true}, {.kind = RT_bool, .b = false}, {0}, false},
        {{.kind = RT_float, .f = 1.0005}, {.kind = RT_float, .f = 1}, {0}, true},
        {{.kind = RT_float, .f = 1.02},
         {.kind = RT_float, .f = 1.01},
         {.kind = RT_float, .f = 1.03},
         false},
    };
    for (int i = 0; i < COUNT(cases); i++) {
        Judged j;
        const RtValue *exact = cases[i].exact.kind == RT_none ? NULL : &cases[i].exact;
        judge_value(&cases[i].got, &cases[i].want, exact, &(Tolerance){0}, &j);
        ck_assert_msg(j.same.passes == cases[i].passes, "number %d", i);
    }
}
END_TEST

// A size that compiled code returns comes as a tensor without dimensions.
START_TEST(numbers_of_compiled_code) {
    Arena a = {0};
    Diag d = {.arena = &a};
    RtValue got = {.kind = RT_tensor}, want = {.kind = RT_int, .i = 12};
    Judged j;
    ck_assert(tensor_new(&got.tensor, DT_i64, 0, (int64_t[1]){0}, &d));
    tensor_set_i64(&got.tensor, 0, 12);
    judge_value(&got, &want, NULL, &(Tolerance){0}, &j);
    ck_assert_int_eq(j.verdict, VERDICT_same_bits);
    ck_assert(j.same.passes);
    tensor_set_i64(&got.tensor, 0, 13);
    judge_value(&got, &want, NULL, &(Tolerance){0}, &j);
    ck_assert_int_eq(j.verdict, VERDICT_bug);
    want = (RtValue){.kind = RT_float, .f = 13}; // another kind of number
    judge_value(&got, &want, NULL, &(Tolerance){0}, &j);
    ck_assert_int_eq(j.verdict, VERDICT_bug);
    rt_drop(&got);
    arena_free(&a);
}
END_TEST

// The cosine that stands beside it has PyTorch's floor below lengths.
START_TEST(cosines) {
    static const struct {
        double got[2], want[2], cosine;
    } cases[] = {{{1, 0}, {2, 0}, 1}, {{1, 0}, {0, 3}, 0}, {{1, 1}, {1, 0}, 0.70710678118654757},
                 {{0, 0}, {1, 1}, 0}, {{0, 0}, {0, 0}, 0}, {{-1, 0}, {1, 0}, -1}};
    for (int i = 0; i < COUNT(cases); i++) {
        Arena a = {0};
        Same two = {.n = 2, .times = 1};
        RtValue got = tensor_of(&a, &two, DT_f64, cases[i].got),
                want = tensor_of(&a, &two, DT_f64, cases[i].want);
        Judged j;
        judge_value(&got, &want, NULL, &(Tolerance){0}, &j);
        ck_assert_double_eq_tol(j.same.cosine, cases[i].cosine, 1e-15);
        rt_drop(&got);
        rt_drop(&want);
        arena_free(&a);
    }
}
END_TEST

Suite *suite_debug_same(void) {
    const TTest *const tests[] = {each_branch, types_and_sizes, numbers, numbers_of_compiled_code,
                                  cosines};
    return unit_suite("debug_same", tests, COUNT(tests));
}
