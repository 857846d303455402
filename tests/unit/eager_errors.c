// eager_errors.c: calls that PyTorch 2.11 refuses (tests/data/eager_errors.jsonl, made by changing
// one thing of calls that it accepts, and at random from schemas): the reference kernels refuse
// them too, with the same kind of error, and say what is wrong. And results of calls that older
// recordings lack (eager_now.jsonl).
#include "tests/unit/unit.h"

#include <stdio.h>
#include <string.h>

#include "core/base/file.h"
#include "core/base/json.h"
#include "core/debug/case_values.h"
#include "core/debug/cases.h"
#include "core/eager/eager.h"

// NotImplementedError is a RuntimeError.
static bool is_kind(const char *text, const char *kind) {
    size_t len = strlen(kind);
    return (str_starts(text, kind) && text[len] == ':' && strlen(text) > len + 4) ||
           (!strcmp(kind, "RuntimeError") && str_starts(text, "NotImplementedError: "));
}

// What went wrong with a line, NULL if it is refused as it should be.
static const char *refused(Arena *a, const Json *j) {
    Diag d = {.arena = a};
    const char *kind = json_str(json_get(j, "error"), "");
    const Op *op = op_find(json_str(json_get(j, "op"), ""));
    if (!op || !*kind)
        return "no such op, or no error is named";
    RtValue *args = ARENA_ARRAY(a, op->n_args + 1, RtValue),
            *out = ARENA_ARRAY(a, op->n_returns + 1, RtValue);
    if (!case_bind(a, op, j, args, &d))
        return arena_printf(a, "its arguments do not fit the schema: %s", diag_first(&d));
    Generator g;
    generator_seed(&g, 1);
    EagerCtx c = {.arena = a, .diag = &d, .threads = 1, .generator = &g};
    bool ran = eager_call(&c, op, args, out);
    for (int i = 0; i < op->n_args; i++)
        rt_drop(&args[i]);
    for (int i = 0; ran && i < op->n_returns; i++)
        rt_drop(&out[i]);
    return ran ? "it runs" : is_kind(diag_first(&d), kind) ? NULL : arena_strdup(a, diag_first(&d));
}

static void all_refused(const char *path, int least) {
    Arena a = {0};
    Diag d = {.arena = &a};
    CaseLines lines = {0};
    int bad = 0;
    ck_assert_msg(case_lines(&lines, &a, path, &d), "%s", diag_first(&d));
    for (int i = 0; i < lines.n; i++) {
        Arena one = {0};
        Diag quiet = {.arena = &one};
        const Json *j = json_parse(&one, lines.at[i].text, "line", &quiet);
        const char *why = j ? refused(&one, j) : "no JSON";
        bad += why != NULL;
        if (why)
            printf("line %d: %s: %s, expected %s\n", lines.at[i].number,
                   json_str(json_get(j, "op"), ""), why, json_str(json_get(j, "error"), ""));
        arena_free(&one);
    }
    fflush(stdout);
    ck_assert_int_ge(lines.n, least);
    ck_assert_int_eq(bad, 0);
    arena_free(&a);
}

START_TEST(refused_calls_are_refused_in_kind) {
    all_refused("tests/data/eager_errors.jsonl", 1750);
}
END_TEST

START_TEST(refused_dtypes_are_refused_in_kind) {
    all_refused("tests/data/dtypes_refused.jsonl", 650);
}
END_TEST

// A tensor of a dtype that the out= overload does not write.
START_TEST(refused_outs_are_refused_in_kind) {
    all_refused("tests/data/eager_out_refused.jsonl", 140);
}
END_TEST

static void all_agree(const char *path) {
    Arena a = {0};
    Diag d = {.arena = &a};
    Buf report = {.arena = &a};
    int failed = cases_run(path, "eager", &report, &d);
    ck_assert_msg(failed == 0, "%d: %s%s", failed, buf_str(&report), diag_first(&d));
    arena_free(&a);
}

START_TEST(results_of_today) {
    all_agree("tests/data/eager_now.jsonl");
}
END_TEST

// One call of an out= overload each: resized, strided and cast tensors.
START_TEST(results_of_outs) {
    all_agree("tests/data/eager_out.jsonl");
}
END_TEST

Suite *suite_eager_errors(void) {
    const TTest *tests[] = {refused_calls_are_refused_in_kind, refused_dtypes_are_refused_in_kind,
                            refused_outs_are_refused_in_kind, results_of_today, results_of_outs};
    return unit_suite("eager_errors", tests, COUNT(tests));
}
