// eager_low.c: which ops have cases, and what they do in bfloat16 and float16.
//
// tests/data/oracle.jsonl is made by tests/oracle/make: slow loops in double precision for what is
// not recorded. tests/data/recorded_ops.txt says what is. Every core overload and every float op in
// both low dtypes must have one or the other, or be refused as PyTorch refuses it.
//
// Recorded cases of wide floats are run again in the low dtypes, on arguments rounded to them: the
// result is that of the same op in float64, rounded, or a neighbour of it.
#include "tests/unit/unit.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/file.h"
#include "core/base/json.h"
#include "core/debug/case_values.h"
#include "core/debug/cases.h"
#include "core/eager/dtypes.h"
#include "core/eager/eager.h"
#include "core/eager/kernel.h"

static Arena arena;
static Diag diag;

static void fresh(void) {
    arena_free(&arena);
    diag = (Diag){.arena = &arena};
}

START_TEST(oracle_cases_pass) {
    fresh();
    Buf report = {.arena = &arena};
    int failed = cases_run("tests/data/oracle.jsonl", "eager", &report, &diag);
    ck_assert_msg(failed == 0, "%d: %s%s", failed, buf_str(&report), diag_first(&diag));
    ck_assert_msg(strstr(buf_str(&report), "1068 passed, 0 failed, 0 skipped") != NULL, "%s",
                  buf_str(&report));
}
END_TEST

// ---- coverage

// Dtypes by op: {"t": "bf16", …} anywhere in a line of cases.
static void note_dtypes(Map *seen, const char *op, const Json *j) {
    if (j->kind == JSON_object && json_get(j, "t")) {
        DType d = dtype_from_abbr(json_str(json_get(j, "t"), ""));
        map_put_int(seen, op, map_get_int(seen, op, 0) | (int64_t)1 << d);
    }
    for (const Json *c = j->kind == JSON_object || j->kind == JSON_array ? j->child : NULL; c;
         c = c->next)
        note_dtypes(seen, op, c);
}

static void note_cases(Map *seen, const char *path) {
    CaseLines lines = {0};
    ck_assert_msg(case_lines(&lines, &arena, path, &diag), "%s", diag_first(&diag));
    for (int i = 0; i < lines.n; i++) {
        const Json *j = json_parse(&arena, lines.at[i].text, path, &diag);
        ck_assert(j != NULL);
        const char *op = json_str(json_get(j, "op"), "");
        map_put_int(seen, op, map_get_int(seen, op, 0) | 1);
        note_dtypes(seen, op, j);
    }
}

// Lines of recorded_ops.txt: an op and the dtypes of its recorded cases.
static void note_recorded(Map *seen) {
    Str text = file_read(&arena, "tests/data/recorded_ops.txt", &diag);
    ck_assert(text.ptr != NULL);
    char *copy = arena_strndup(&arena, text.ptr, text.len), *rest = copy, *line;
    while ((line = strsep(&rest, "\n"))) {
        char *op = strsep(&line, " "), *word;
        if (!*op)
            continue;
        int64_t mask = 1;
        while ((word = strsep(&line, " ")))
            mask |= (int64_t)1 << dtype_from_abbr(word);
        map_put_int(seen, arena_strdup(&arena, op), mask);
    }
}

START_TEST(recorded_ops_are_listed) {
    static const char *const path = "../shared/opcases/ops.jsonl";
    fresh();
    if (!file_exists(path))
        return;
    Map listed = {.arena = &arena}, seen = {.arena = &arena};
    note_recorded(&listed);
    note_cases(&seen, path);
    int n = 0;
    for (MapEntry *e = map_first(&seen); e; e = map_next(&seen, e), n++)
        ck_assert_msg(map_get_int(&listed, e->key, 0) == e->i, "%s: %llx, listed %llx", e->key,
                      (unsigned long long)e->i,
                      (unsigned long long)map_get_int(&listed, e->key, 0));
    ck_assert_int_eq(n, 495);
}
END_TEST

// Prims that draw are tested by the graph of tests/data/random_compiled.
static bool is_excused(const Op *op) {
    static const char *const drawn[] = {"normal", "inductor_seed", "inductor_seeds",
                                        "inductor_random", "inductor_randint"};
    return (op->hole && !strcmp(op->hole, hole_names[HOLE_complex])) ||
           (!strcmp(op->ns, "prims") && str_index(op->name, drawn, COUNT(drawn)) >= 0);
}

START_TEST(every_core_overload_has_a_case) {
    fresh();
    Map seen = {.arena = &arena};
    note_recorded(&seen);
    note_cases(&seen, "tests/data/oracle.jsonl");
    note_cases(&seen, "tests/data/random.jsonl");
    note_cases(&seen, "tests/data/eager_facts.jsonl");
    int core = 0, prims = 0, holes = 0;
    for (int id = OP_none + 1; id < OP_count; id++) {
        const Op *op = op_at((OpId)id);
        bool prim = !strcmp(op->ns, "prims") && eager_has(op->id);
        if (!(op->tags & OPT_core) && !prim)
            continue;
        core += !prim;
        prims += prim;
        if (map_get_int(&seen, op->qualname + strlen("torch.ops."), 0) || is_excused(op))
            continue;
        holes++;
        printf("no case: %s\n", op->qualname);
    }
    // the 189th is no row: it follows from atan2
    ck_assert_int_eq(core, 188);
    ck_assert(op_find("aten.atan2.out") != NULL);
    ck_assert_int_ne(map_get_int(&seen, "aten.atan2.default", 0), 0);
    ck_assert_int_ge(prims, 120);
    ck_assert_int_eq(holes, 0);
}
END_TEST

// A float op that has cases in wide floats has some in both low dtypes, or refuses those. What is
// only moved or compared needs no more than that the dtype is known.
static bool refuses_low(const char *name) {
    static const struct {
        const char *op;
        unsigned set;
    } rows[] = {
#define DTYPES(op, kernel, set)        {#op, (unsigned)(set)},
#define DTYPES_BY(op, by, kernel, set) {#op, (unsigned)(set)},
#include "core/eager/dtypes.def"
#undef DTYPES
#undef DTYPES_BY
    };
    char *id = arena_strdup(&arena, name);
    for (char *p = id; *p; p++)
        *p = *p == '.' ? '_' : *p;
    for (int i = 0; i < COUNT(rows); i++)
        if (!strcmp(id, rows[i].op))
            return !(rows[i].set & DTYPES_LOW);
    return false;
}

START_TEST(low_dtypes_have_cases) {
    fresh();
    Map seen = {.arena = &arena}, recorded = {.arena = &arena};
    note_recorded(&recorded);
    note_recorded(&seen);
    note_cases(&seen, "tests/data/oracle.jsonl");
    note_cases(&seen, "tests/data/eager_now.jsonl");
    // a row of dtypes.def, or a kernel that refuses what has elements
    note_cases(&seen, "tests/data/dtypes_refused.jsonl");
    int64_t floats = (int64_t)1 << DT_f32 | (int64_t)1 << DT_f64;
    int n = 0, holes = 0;
    for (MapEntry *e = map_first(&recorded); e; e = map_next(&recorded, e)) {
        int64_t have = map_get_int(&seen, e->key, 0);
        bool low = have >> DT_bf16 & 1 && have >> DT_f16 & 1;
        n += (e->i & floats) != 0;
        if (!(e->i & floats) || low || refuses_low(e->key))
            continue;
        holes++;
        printf("no case in a low dtype: %s\n", e->key);
    }
    ck_assert_int_eq(n, 464);
    ck_assert_int_eq(holes, 0);
}
END_TEST

// ---- the same in low dtypes

// Ops that draw, that give memory as it is, or whose result in a low dtype is not the exact one
// rounded.
static const struct {
    const char *op, *why;
} apart[] = {
    {"aten._batch_norm_with_update", "the statistics are rounded before they are used"},
    {"aten._native_batch_norm_legit", "the statistics are rounded before they are used"},
    {"aten.native_batch_norm", "the statistics are rounded before they are used"},
    {"aten._log_softmax", "the logarithm of the sum is rounded"},
    {"aten._trilinear", "each of two products is rounded"},
    {"aten._unsafe_masked_index_put_accumulate", "every addition is rounded"},
    {"aten.addbmm", "the sum is rounded after every matrix"},
    {"aten.addr", "every step is rounded"},
    {"aten.binary_cross_entropy_with_logits", "made of ops, each of which rounds"},
    {"aten.soft_margin_loss", "made of ops, each of which rounds"},
    {"aten.div.Tensor_mode", "the quotient is rounded before it loses its fraction"},
    {"aten.histc", "the bounds of bins are rounded"},
    {"aten.linalg_cross", "both products are rounded"},
    {"aten.linalg_matrix_exp", "PyTorch's bounds for low dtypes lead to infinities, recorded too"},
    {"aten.logit", "the ratio is rounded"},
    {"aten.special_entr", "the logarithm is rounded"},
    {"aten.special_xlog1py", "the logarithm is rounded"},
    {"aten.sub.Scalar", "the scalar is rounded to float16 first"},
    {"aten.upsample_bicubic2d", "weights are rounded"},
    {"aten.upsample_linear1d", "weights are rounded"},
    {"aten.upsample_trilinear3d", "weights are rounded"},
    {"aten.xlogy", "the logarithm is rounded"},
};

// They are held against what PyTorch gave in both low dtypes, or against the oracle's steps.
START_TEST(what_is_apart_is_recorded) {
    fresh();
    Map seen = {.arena = &arena};
    note_recorded(&seen);
    note_cases(&seen, "tests/data/oracle.jsonl");
    note_cases(&seen, "tests/data/eager_now.jsonl");
    for (int i = 0; i < COUNT(apart); i++) {
        int64_t have = 0;
        for (MapEntry *e = map_first(&seen); e; e = map_next(&seen, e))
            if (str_starts(e->key, apart[i].op))
                have |= e->i;
        ck_assert_msg(have >> DT_bf16 & 1 && have >> DT_f16 & 1, "%s", apart[i].op);
    }
}
END_TEST

static bool is_apart(const char *op) {
    for (int i = 0; i < COUNT(apart); i++)
        if (str_starts(op, apart[i].op))
            return true;
    return false;
}

// v with every float32 and float64 tensor in it as dtype d; false: there was none.
static bool convert(const RtValue *v, DType d, RtValue *out) {
    *out = *v;
    bool any = false;
    if (v->kind == RT_list) {
        out->at = ARENA_ARRAY(&arena, v->n + 1, RtValue);
        for (int i = 0; i < v->n; i++)
            any = convert(&v->at[i], d, &out->at[i]) || any;
    } else if (v->kind == RT_tensor && dtype_is_float(v->tensor.dtype)) {
        // on the same strides: kernels differ by layout
        out->tensor = (Tensor){0};
        ck_assert(tensor_new_strided(&out->tensor, d, v->tensor.ndim, v->tensor.size,
                                     v->tensor.stride, &diag));
        tensor_copy(&out->tensor, &v->tensor);
        any = true;
    } else if (v->kind == RT_tensor) {
        out->tensor = (Tensor){0};
        ck_assert(tensor_to(&out->tensor, &v->tensor, v->tensor.dtype, &diag));
    } else if (v->kind == RT_other && v->other->kind == VAL_dtype &&
               dtype_is_float(v->other->dtype)) {
        Value *dtype = ARENA_NEW(&arena, Value);
        *dtype = val_dtype(d);
        out->other = dtype;
    }
    return any;
}

typedef struct Twice {
    const Op *op;
    RtValue args[2][64]; // low, float64
    RtValue out[2][8];
    bool ran[2];
} Twice;

static bool close(const RtValue *low, const RtValue *exact, DType d, double *worst) {
    if (low->kind == RT_list) {
        bool ok = exact->kind == RT_list && exact->n == low->n;
        for (int i = 0; ok && i < low->n; i++)
            ok = close(&low->at[i], &exact->at[i], d, worst);
        return ok;
    }
    if (low->kind != RT_tensor || exact->kind != RT_tensor)
        return true;
    const Tensor *a = &low->tensor, *b = &exact->tensor;
    bool is_low = a->dtype == d;
    for (int64_t i = 0, n = tensor_numel(a); i < n && n == tensor_numel(b); i++) {
        double x = tensor_get_f64(a, i), y = tensor_get_f64(b, i);
        if (isnan(x) && isnan(y))
            continue;
        if (!is_low && !dtype_is_float(a->dtype) && x != y)
            *worst = INFINITY;
        if (!is_low || x == y)
            continue;
        y = d == DT_bf16 ? bf16_to_f32(f32_to_bf16((float)y)) : f16_to_f32(f64_to_f16(y));
        double steps = isnan(x) || isnan(y) || isinf(x) != isinf(y)
                           ? INFINITY
                           : (double)dtype_ulp_distance(d, x, y);
        *worst = steps > *worst ? steps : *worst;
    }
    return true;
}

static void drop(Twice *t) {
    for (int k = 0; k < 2; k++) {
        for (int i = 0; i < t->op->n_args; i++)
            rt_drop(&t->args[k][i]);
        for (int i = 0; t->ran[k] && i < t->op->n_returns; i++)
            rt_drop(&t->out[k][i]);
    }
}

// Steps that a case's results are apart; -1: it says nothing of the low dtype.
static double measure(const Json *line, const Op *op, DType d) {
    Twice *t = ARENA_NEW(&arena, Twice);
    t->op = op;
    RtValue *args = ARENA_ARRAY(&arena, op->n_args + 1, RtValue);
    bool any = false;
    double worst = 0;
    ck_assert(op->n_args <= 64 && op->n_returns <= 8);
    if (!case_bind(&arena, op, line, args, &diag))
        return -1;
    for (int i = 0; i < op->n_args; i++) {
        any = convert(&args[i], d, &t->args[0][i]) || any;
        convert(&t->args[0][i], DT_f64, &t->args[1][i]);
        rt_drop(&args[i]);
    }
    for (int k = 0; k < 2 && any; k++) {
        Diag quiet = {.arena = &arena};
        EagerCtx ctx = {.arena = &arena, .diag = &quiet, .threads = 1};
        t->ran[k] = eager_call(&ctx, op, t->args[k], t->out[k]);
        any = t->ran[k];
    }
    for (int i = 0; any && i < op->n_returns; i++)
        close(&t->out[0][i], &t->out[1][i], d, &worst);
    drop(t);
    return any ? worst : -1;
}

static void low_as_exact(const char *path, int per_op, int least) {
    CaseLines lines = {0};
    Map tried = {.arena = &arena};
    int bad = 0, ops = 0;
    ck_assert_msg(case_lines(&lines, &arena, path, &diag), "%s", diag_first(&diag));
    for (int i = 0; i < lines.n; i++) {
        const Json *j = json_parse(&arena, lines.at[i].text, path, &diag);
        const char *name = json_str(json_get(j, "op"), "");
        const Op *op = op_find(name);
        int n = (int)map_get_int(&tried, name, 0);
        if (!op || (op->tags & OPT_random) || n >= per_op || is_apart(name))
            continue;
        for (int k = 0; k < 2; k++) {
            DType d = k ? DT_f16 : DT_bf16;
            double steps = measure(j, op, d);
            if (steps < 0)
                continue;
            ops += n == 0 && k == 0;
            map_put_int(&tried, name, n + 1);
            if (steps > 1 && ++bad)
                printf("line %d %s %s: %g steps\n", lines.at[i].number, name, dtype_info[d].abbr,
                       steps);
        }
    }
    ck_assert_msg((bad == 0 || getenv("FX_REPORT")) && ops >= least, "%d cases are apart; %d ops",
                  bad, ops);
}

START_TEST(low_dtypes_are_exact_results_rounded) {
    fresh();
    low_as_exact("tests/data/opcases.jsonl", 8, 60);
    fresh();
    if (file_exists("../shared/opcases/ops.jsonl"))
        low_as_exact("../shared/opcases/ops.jsonl", 4, 300);
}
END_TEST

// ---- steps that are rounded

// What ATen's kernels keep in a low dtype between two steps is rounded there, a parameter too.
typedef double (*StepFn)(DType d, double x);

static double step_entr(DType d, double x) {
    return isnan(x) ? x : x > 0 ? -x * round_to(d, log(x)) : x == 0 ? 0 : (double)-INFINITY;
}

static double step_xlogy(DType d, double x) {
    return isnan(x) ? x : x == 0 ? 0 : x * round_to(d, log(x));
}

static double step_ndtr(DType d, double x) {
    double e = round_to(d, erf(round_to(d, x * (double)(float)M_SQRT1_2)));
    return round_to(d, 1 + e) / 2;
}

static double step_cube(DType d, double x) {
    return d == DT_f16 ? x * x * x : round_to(d, x * x) * x;
}

static double step_over_square(DType d, double x) {
    return d == DT_f16 ? pow(x, -2) : 1 / round_to(d, x * x);
}

static double step_over_root(DType d, double x) {
    return d == DT_f16 ? pow(x, -0.5) : 1 / sqrt(x);
}

static double step_hardshrink(DType d, double x) {
    return fabs(x) <= round_to(d, 0.3) ? 0 : x;
}

static double step_softshrink(DType d, double x) {
    (void)d;
    return x > 0.5 ? x - 0.5 : x < -0.5 ? x + 0.5 : x * 0;
}

// Of a small negative number: what is left of it is not lost beside 1.
static double step_digamma(DType d, double x) {
    (void)d;
    return fabs(x) < 1e-9 ? -1 / x - 0.57721566490153286 : (double)NAN;
}

static const struct {
    OpId op;
    double number; // the second argument, unless it is NaN
    bool twice;    // the same tensor is the second argument
    StepFn fn;     // NaN: says nothing
} stepped[] = {
    {OP_aten_special_entr_default, NAN, false, step_entr},
    {OP_aten_xlogy_Tensor, NAN, true, step_xlogy},
    {OP_aten_special_ndtr_default, NAN, false, step_ndtr},
    {OP_aten_pow_Tensor_Scalar, 3, false, step_cube},
    {OP_aten_pow_Tensor_Scalar, -2, false, step_over_square},
    {OP_aten_pow_Tensor_Scalar, -0.5, false, step_over_root},
    {OP_aten_hardshrink_default, 0.3, false, step_hardshrink},
    {OP_aten_softshrink_default, 0.5, false, step_softshrink},
    {OP_aten_digamma_default, NAN, false, step_digamma},
};

// All 65,536 numbers of a low dtype; results to the bit, but for the sign of NaN. What float rounds
// before the low dtype does may make a step of one number in thousands.
START_TEST(every_low_number_in_steps) {
    DType d = _i % 2 ? DT_f16 : DT_bf16;
    const int row = _i / 2, numbers = 65536;
    fresh();
    Tensor x = {0};
    ck_assert(tensor_new(&x, d, 1, (int64_t[]){numbers}, &diag));
    for (int i = 0; i < numbers; i++)
        ((uint16_t *)tensor_data(&x))[i] = (uint16_t)i;
    RtValue args[4] = {{.kind = RT_tensor, .tensor = x}}, out;
    if (stepped[row].twice)
        args[1] = args[0];
    else if (!isnan(stepped[row].number))
        args[1] = (RtValue){.kind = RT_float, .f = stepped[row].number};
    EagerCtx ctx = {.arena = &arena, .diag = &diag, .threads = 1};
    const Op *op = op_at(stepped[row].op);
    ck_assert_msg(eager_call(&ctx, op, args, &out), "%s", diag_first(&diag));
    int apart_by_float = 0;
    for (int i = 0; i < numbers; i++) {
        double v = tensor_get_f64(&x, i), exact = stepped[row].fn(d, v);
        double want = round_to(d, exact), got = tensor_get_f64(&out.tensor, i);
        if ((isnan(exact) && !isnan(v) && op->id == OP_aten_digamma_default) ||
            (isnan(got) && isnan(want)) || (got == want && signbit(got) == signbit(want)))
            continue;
        ck_assert_msg(dtype_ulp_distance(d, got, want) == 1, "%s of %g in %s: %g, expected %g",
                      op->qualname, v, dtype_info[d].abbr, got, want);
        apart_by_float++;
    }
    ck_assert_int_le(apart_by_float, 16);
    rt_drop(&out);
    tensor_drop(&x);
}
END_TEST

// Sums of products are rounded once, as PyTorch's kernels do it: to the bit in float.
START_TEST(sums_of_products_are_fused) {
    enum { N = 999 };
    static const OpId ops[] = {OP_aten_add_Tensor, OP_aten_sub_Tensor, OP_aten_rsub_Tensor,
                               OP_aten_addcmul_default, OP_aten_lerp_Scalar};
    const float k = 1.7f, w = 0.3f;
    fresh();
    RtValue in[3];
    for (int i = 0; i < 3; i++) {
        in[i] = (RtValue){.kind = RT_tensor};
        ck_assert(tensor_new(&in[i].tensor, DT_f32, 1, (int64_t[]){N}, &diag));
        for (int j = 0; j < N; j++)
            tensor_set_f64(&in[i].tensor, j, sin(j * 1.3 + i));
    }
    const float *x = tensor_data(&in[0].tensor), *y = tensor_data(&in[1].tensor),
                *z = tensor_data(&in[2].tensor);
    for (int o = 0; o < COUNT(ops); o++) {
        RtValue args[4] = {in[0], in[1], {.kind = RT_float, .f = (double)k}}, out;
        if (ops[o] == OP_aten_addcmul_default) {
            args[2] = in[2];
            args[3] = (RtValue){.kind = RT_float, .f = (double)k};
        } else if (ops[o] == OP_aten_lerp_Scalar) {
            args[2].f = (double)w;
        }
        EagerCtx ctx = {.arena = &arena, .diag = &diag, .threads = 1};
        ck_assert_msg(eager_call(&ctx, op_at(ops[o]), args, &out), "%s", diag_first(&diag));
        for (int j = 0; j < N; j++) {
            float want[] = {fmaf(k, y[j], x[j]), fmaf(-k, y[j], x[j]), fmaf(-k, x[j], y[j]),
                            fmaf(k * y[j], z[j], x[j]), fmaf(w, y[j] - x[j], x[j])};
            ck_assert_msg((float)tensor_get_f64(&out.tensor, j) == want[o], "%s at %d",
                          op_at(ops[o])->qualname, j);
        }
        rt_drop(&out);
    }
    for (int i = 0; i < 3; i++)
        rt_drop(&in[i]);
}
END_TEST

START_TEST(tolerances_are_few_and_justified) {
    static const char *const rows[][2] = {
#define TOLERANCE(op, f32r, f32a, f64r, f64a, lowr, lowa, why) {op, why},
#include "core/debug/tolerances.def"
#undef TOLERANCE
    };
    ck_assert_int_le(COUNT(rows), 10);
    for (int i = 0; i < COUNT(rows); i++)
        ck_assert_msg(strlen(rows[i][1]) > 20, "%s", rows[i][0]);
}
END_TEST

Suite *suite_eager_low(void) {
    const TTest *tests[] = {oracle_cases_pass,
                            recorded_ops_are_listed,
                            every_core_overload_has_a_case,
                            low_dtypes_have_cases,
                            low_dtypes_are_exact_results_rounded,
                            what_is_apart_is_recorded,
                            sums_of_products_are_fused,
                            tolerances_are_few_and_justified};
    Suite *s = unit_suite("eager_low", tests, COUNT(tests));
    TCase *steps = tcase_create("steps");
    tcase_add_loop_test(steps, every_low_number_in_steps, 0, 2 * COUNT(stepped));
    suite_add_tcase(s, steps);
    return s;
}
