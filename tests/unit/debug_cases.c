// debug_cases.c: recorded cases on every rung: small files of this tree (opcases.jsonl,
// gradcases.jsonl, made by PyTorch), all recorded ones where they are at hand, one changed value
// that must be found, and lines that are no cases.
#include "tests/unit/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/file.h"
#include "core/base/json.h"
#include "core/debug/cases.h"
#include "core/session.h"

static Arena arena;
static Diag diag;

static void fresh(void) {
    arena_free(&arena);
    diag = (Diag){.arena = &arena};
}

typedef struct Counts {
    const char *failed;   // names of those that failed, each in front of a semicolon
    int of[CASE_bad + 1]; // by verdict; skipped ones that run are failures
    const char *first;    // why of the first that neither passed nor was skipped
} Counts;

static Counts run_setup(const CaseLines *lines, const CaseSetup *setup) {
    CaseSetup s = *setup;
    Counts n = {.first = ""};
    CaseResult results[32];
    for (int i = 0; i < lines->n; i += COUNT(results)) {
        int some = lines->n - i < COUNT(results) ? lines->n - i : COUNT(results);
        cases_run_lines(&s, lines->at + i, some, results, &arena, NULL);
        for (int k = 0; k < some; k++) {
            CaseVerdict v = results[k].verdict;
            v = v == CASE_skipped && results[k].runs ? CASE_failed : v;
            n.of[v]++;
            if (v == CASE_failed)
                n.failed = arena_printf(&arena, "%s%s;", n.failed ? n.failed : "", results[k].name);
            if ((v == CASE_failed || v == CASE_bad) && !*n.first)
                n.first = arena_printf(&arena, "line %d: %s: %s", lines->at[i + k].number,
                                       results[k].name, results[k].why);
        }
    }
    return n;
}

static Counts run_with(const CaseLines *lines, const char *backend, const char *toolchain) {
    CaseSetup s;
    ck_assert_msg(case_setup(&s, backend, toolchain, &diag), "%s", diag_first(&diag));
    return run_setup(lines, &s);
}

static Counts run_lines(const CaseLines *lines, const char *backend) {
    return run_with(lines, backend, "tcc");
}

static Counts run_file(const char *path, const char *backend) {
    CaseLines lines = {0};
    fresh();
    ck_assert_msg(case_lines(&lines, &arena, path, &diag), "%s", diag_first(&diag));
    return run_lines(&lines, backend);
}

// The one failure is an as_strided into memory that is not recorded.
START_TEST(single_ops_on_every_rung) {
    static const struct {
        const char *backend;
        int failed, skipped;
    } rungs[] = {{"eager", 1, 0},
                 {"aot_eager", 1, 0},
                 {"aot_eager_decomp_partition", 1, 0},
                 {"inductor", 3, 4}};
    for (int i = 0; i < COUNT(rungs); i++) {
        Counts n = run_file("tests/data/opcases.jsonl", rungs[i].backend);
        ck_assert_msg(n.of[CASE_failed] <= rungs[i].failed && n.of[CASE_bad] == 0 &&
                          n.of[CASE_skipped] <= rungs[i].skipped && n.of[CASE_passed] >= 142,
                      "%s: %d passed, %d failed, %d skipped, %d bad; %s", rungs[i].backend,
                      n.of[CASE_passed], n.of[CASE_failed], n.of[CASE_skipped], n.of[CASE_bad],
                      n.first);
    }
}
END_TEST

// Small models from public reports of wrong results, with PyTorch's eager values. What
// torch.compile itself does otherwise by design, compiled code does too: x + 0 is dropped, though
// it turns -0 into +0, and so is the first of two conversions; floats are divided before they are
// rounded down; fused kernels keep float32 between casts of float16 and bfloat16, unless
// emulate_precision_casts is set.
START_TEST(reported_models_on_every_rung) {
#define ADDED   "x + 0 is no identity;"
#define KEPT    "a round trip through float16 rounds;bfloat16 loses what an addition gives;"
#define DIVIDED "#197895 floor division of floats goes by the remainder;"
#define ONCE    "#185337 a tenth in bfloat16;"
    static const struct {
        const char *backend, *failed;
        bool emulate;
    } rungs[] = {{"aot_eager", "", false},
                 {"aot_eager_decomp_partition", ADDED ONCE, false},
                 {"ir_pre_fusion", ADDED KEPT DIVIDED ONCE, false},
                 {"ir", ADDED KEPT DIVIDED ONCE, false},
                 {"full", ADDED KEPT DIVIDED ONCE, false},
                 {"ir", ADDED DIVIDED ONCE, true},
                 {"full", ADDED DIVIDED ONCE, true}};
    CaseLines lines = {0};
    fresh();
    ck_assert(case_lines(&lines, &arena, "tests/data/reports.jsonl", &diag));
    for (int i = 0; i < COUNT(rungs); i++) {
        CaseSetup s;
        ck_assert(case_setup(&s, rungs[i].backend, "tcc", &diag));
        s.emulate_precision_casts = rungs[i].emulate;
        Counts n = run_setup(&lines, &s);
        ck_assert_str_eq(n.failed ? n.failed : "", rungs[i].failed);
        ck_assert_int_eq(n.of[CASE_passed] + n.of[CASE_failed], 50);
    }
}
END_TEST

// The cases of single ops that are held against eager elsewhere, as a graph of one call. What
// PyTorch itself gives otherwise once it has traced, taken apart or lowered an op is told op by op
// (compiled.def), and skipped.
START_TEST(facts_on_every_rung) {
    static const char *const rungs[] = {"aot_eager", "aot_eager_decomp_partition", "ir_pre_fusion",
                                        "ir", "full"};
    static const struct {
        const char *path;
        int skipped[COUNT(rungs)];
    } files[] = {
        {"tests/data/eager_now.jsonl", {7, 33, 40, 40, 40}},
        {"tests/data/oracle.jsonl", {0, 2, 2, 2, 2}},
        {"tests/data/dtypes.jsonl", {1, 3, 3, 3, 3}},
        {"tests/data/eager_facts.jsonl", {0, 2, 5, 5, 5}},
    };
    for (int i = 0; i < COUNT(files); i++)
        for (int k = 0; k < COUNT(rungs); k++) {
            Counts n = run_file(files[i].path, rungs[k]);
            ck_assert_msg(n.of[CASE_failed] == 0 && n.of[CASE_bad] == 0 &&
                              n.of[CASE_skipped] <= files[i].skipped[k] && n.of[CASE_passed] > 100,
                          "%s %s: %d passed, %d skipped; %s", files[i].path, rungs[k],
                          n.of[CASE_passed], n.of[CASE_skipped], n.first);
        }
}
END_TEST

// Skipped: two constants that were not recorded, and what decompositions draw for every element.
START_TEST(gradients_on_every_rung) {
    static const char *const rungs[] = {"aot_eager", "aot_eager_decomp_partition", "full"};
    for (int i = 0; i < COUNT(rungs); i++) {
        Counts n = run_file("tests/data/gradcases.jsonl", rungs[i]);
        int drawn = i > 0;
        ck_assert_msg(n.of[CASE_passed] == 32 - drawn && n.of[CASE_skipped] == 2 + drawn,
                      "%s: %d passed, %d failed, %d skipped; %s", rungs[i], n.of[CASE_passed],
                      n.of[CASE_failed], n.of[CASE_skipped], n.first);
    }
}
END_TEST

// What Dynamo leaves in a graph as one call, by PyTorch 1.13: attention of nn.MultiheadAttention,
// x[…] and x[…] = v, with gradients. Skipped: a mask of bools under a gradient.
START_TEST(torch_level_calls) {
    static const char *const rungs[] = {"aot_eager", "full"};
    for (int i = 0; i < COUNT(rungs); i++) {
        Counts n = run_file("tests/data/torchlevel.jsonl", rungs[i]);
        ck_assert_msg(n.of[CASE_passed] == 35 && n.of[CASE_skipped] == 1, "%s: %d, %d skipped; %s",
                      rungs[i], n.of[CASE_passed], n.of[CASE_skipped], n.first);
    }
}
END_TEST

// One call of Python's torch each, by PyTorch 2.11: losses, reflected operators, lists as indices,
// methods whose object stands second, norms by name, resampling, what functional.py computes.
START_TEST(single_torch_calls) {
    Counts n = run_file("tests/data/torchcalls.jsonl", "aot_eager");
    ck_assert_msg(n.of[CASE_passed] == 94 && !n.of[CASE_failed], "%d passed; %s", n.of[CASE_passed],
                  n.first);
}
END_TEST

START_TEST(all_recorded_cases) {
    static const struct {
        const char *path, *backend;
        int passed, failed;
    } all[] = {
        {"../shared/opcases/ops.jsonl", "aot_eager", 5000, 6},
        {"../shared/opcases/ops.jsonl", "aot_eager_decomp_partition", 4996, 9},
        {"../shared/opcases/grads.jsonl", "aot_eager", 815, 0},
        {"../shared/opcases/grads.jsonl", "aot_eager_decomp_partition", 814, 0},
    };
    for (int i = 0; i < COUNT(all) && file_exists(all[i].path); i++) {
        Counts n = run_file(all[i].path, all[i].backend);
        ck_assert_msg(n.of[CASE_passed] >= all[i].passed && n.of[CASE_failed] <= all[i].failed &&
                          n.of[CASE_bad] == 0,
                      "%s %s: %d passed, %d failed; %s", all[i].path, all[i].backend,
                      n.of[CASE_passed], n.of[CASE_failed], n.first);
    }
}
END_TEST

static CaseLines one_line(const char *text) {
    CaseLines lines = {0};
    vec_push(&arena, &lines, (CaseLine){{text, strlen(text)}, 1});
    return lines;
}

// 1 + 2 = 3, 4 in float, and the same in which 4 became 5.
#define SUM(out)                                                                                   \
    "{\"op\": \"aten.add.Tensor\", \"args\": [{\"t\": \"f32\", \"shape\": [2], \"stride\": [1], "  \
    "\"hex\": \"0000803f00000040\"}, 2], \"kwargs\": {}, \"out\": {\"t\": \"f32\", \"shape\": "    \
    "[2], \"stride\": [1], \"hex\": \"" out "\"}}"
// d(x * y)/dx = y: 3 for x = 2, y = 3, cotangent 1.
#define PRODUCT(grad)                                                                              \
    "{\"opinfo\": \"mul\", \"code\": \"def forward(self, a: \\\"f64[][]cpu\\\", b: "               \
    "\\\"f64[][]cpu\\\"):\\n    c = torch.ops.aten.mul.Tensor(a, b)\\n    return [c]\\n\", "       \
    "\"inputs\": [{\"t\": \"f64\", \"shape\": [], \"stride\": [], \"hex\": "                       \
    "\"0000000000000040\"}, "                                                                      \
    "{\"t\": \"f64\", \"shape\": [], \"stride\": [], \"hex\": \"0000000000000840\"}], "            \
    "\"needs_grad\": [true, false], \"outputs\": [{\"t\": \"f64\", \"shape\": [], \"stride\": "    \
    "[], "                                                                                         \
    "\"hex\": \"0000000000001840\"}], \"differentiable\": [true], \"cotangents\": [{\"t\": "       \
    "\"f64\", \"shape\": [], \"stride\": [], \"hex\": \"000000000000f03f\"}], \"grads\": [" grad   \
    "]}"
#define SCALAR(hex) "{\"t\": \"f64\", \"shape\": [], \"stride\": [], \"hex\": \"" hex "\"}"

START_TEST(a_changed_value_is_found) {
    static const struct {
        const char *line, *why; // NULL: passes
    } cases[] = {
        {SUM("0000404000008040"), NULL},
        {SUM("000040400000a040"), "1 of 2 elements differ, first 1: 4, expected 5"},
        {PRODUCT(SCALAR("0000000000000840")), NULL},
        {PRODUCT(SCALAR("0000000000001040")), "gradient of input 0: 1 of 1 elements differ"},
        {PRODUCT("null"), "gradient of input 0: there is one, expected none"},
    };
    static const char *const rungs[] = {"aot_eager", "aot_eager_decomp_partition", "full"};
    for (int i = 0; i < COUNT(cases); i++)
        for (int k = 0; k < COUNT(rungs); k++) {
            fresh();
            CaseLines lines = one_line(cases[i].line);
            Counts n = run_lines(&lines, rungs[k]);
            ck_assert_msg(n.of[cases[i].why ? CASE_failed : CASE_passed] == 1, "case %d %s: %s", i,
                          rungs[k], n.first);
            ck_assert_msg(!cases[i].why || strstr(n.first, cases[i].why) != NULL, "%s", n.first);
        }
}
END_TEST

// The sizes 1, 1, 1, 0 in constants, which gcc 12 has made ones of; the first two cases are
// compiled in one start.
START_TEST(every_compiler_keeps_sizes) {
    static const char *const toolchain_names[] = {"tcc", "gcc", "clang"};
    const char *line = "{\"op\": \"aten.pixel_shuffle.default\", \"args\": [{\"t\": \"f32\", "
                       "\"shape\": [1, 1, 1, 0], \"stride\": [1, 1, 1, 1], \"hex\": \"\"}, 1], "
                       "\"kwargs\": {}, \"out\": {\"t\": \"f32\", \"shape\": [1, 1, 1, 0], "
                       "\"stride\": [1, 1, 1, 1], \"hex\": \"\"}}";
    for (int i = 0; i < COUNT(toolchain_names); i++) {
        const char *reason;
        fresh();
        if (!toolchain_version(toolchain_find(toolchain_names[i]), &arena, &reason))
            continue;
        CaseLines lines = one_line(line), sum = one_line(SUM("0000404000008040"));
        vec_push(&arena, &lines, sum.at[0]);
        Counts n = run_with(&lines, "full", toolchain_names[i]);
        ck_assert_msg(n.of[CASE_passed] == 2, "%s: %s", toolchain_names[i], n.first);
    }
}
END_TEST

#define TENSOR(shape, stride, hex)                                                                 \
    "{\"t\": \"f32\", \"shape\": " shape ", \"stride\": " stride ", \"hex\": \"" hex "\"}"
#define NEG(arg)                                                                                   \
    "{\"op\": \"aten.neg.default\", \"args\": [" arg "], \"kwargs\": {}, \"out\": null}"

// No line may do more than be refused.
START_TEST(hostile_lines) {
    static const struct {
        const char *line, *why;
    } bad[] = {
        {"not json", ""},
        {"[1, 2]", "neither a single op"},
        {"{}", "neither a single op"},
        {"{\"op\": \"aten.neg.default\", \"args\": []}", "there is no \"out\""},
        {NEG(TENSOR("[2]", "[1]", "0000803f0000004")), "8 bytes with 15 hexadecimal digits"},
        {NEG(TENSOR("[2]", "[1]", "0000803f")), "8 bytes with 8 hexadecimal digits"},
        {NEG(TENSOR("[1]", "[1]", "0000803g")), "other characters"},
        {NEG(TENSOR("[2]", "[1, 1]", "")), "of the same length"},
        {NEG(TENSOR("[-1]", "[1]", "")), "sizes or strides are none"},
        {NEG(TENSOR("[1]", "[-1]", "0000803f")), "sizes or strides are none"},
        {NEG(TENSOR("[1.5]", "[1]", "")), "sizes or strides are none"},
        {NEG(TENSOR("[4611686018427387904, 4]", "[1, 1]", "")), "sizes or strides are none"},
        {NEG(TENSOR("[2, 2]", "[1099511627776, 1]", "")), "sizes or strides are none"},
        {NEG(TENSOR("[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]", "[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]",
                    "0000803f")),
         "at most 16"},
        {NEG("{\"t\": \"f33\", \"shape\": [], \"stride\": [], \"hex\": \"\"}"), "'f33'"},
        {NEG("{\"t\": \"f32\"}"), "\"shape\" and a \"stride\""},
        {NEG("{\"f\": \"0x1.8p\"}"), "unknown form"},
        {NEG("{\"dtype\": \"float33\"}"), "unknown form"},
        {NEG("{}"), "unknown form"},
        {NEG("\"x\""), "argument 'self' must be Tensor"},
        {NEG("[[[[1]]]]"), "argument 'self' must be Tensor"},
        {NEG("null"), "argument 'self' must be Tensor"},
        {NEG("1, 2"), "takes 1 arguments"},
        {"{\"op\": \"aten.neg.default\", \"args\": [1], \"kwargs\": {\"x\": 1}, \"out\": 1}",
         "no argument 'x'"},
        {"{\"code\": \"\", \"inputs\": []}", ""},
        {"{\"code\": \"def forward(self\", \"inputs\": []}", ""},
        {"{\"code\": \"def forward(self):\\n    return []\\n\"}", "\"inputs\" must be a list"},
        {"{\"code\": \"def forward(self):\\n    return []\\n\", \"inputs\": [1], \"outputs\": [], "
         "\"cotangents\": [], \"grads\": []}",
         "\"inputs\" must be a list of tensors"},
        {"{\"code\": \"def forward(self):\\n    return []\\n\", \"inputs\": [], \"outputs\": "
         "[null], "
         "\"cotangents\": [], \"grads\": [], \"needs_grad\": [], \"differentiable\": [true]}",
         "0 inputs and 0 outputs; given are 0 and 1"},
        {PRODUCT(""), "0 gradients and 1 cotangents, expected 1 and 1"},
    };
    static const char *const rungs[] = {"aot_eager", "full"};
    for (int i = 0; i < COUNT(bad); i++)
        for (int k = 0; k < COUNT(rungs); k++) {
            fresh();
            CaseLines lines = one_line(bad[i].line);
            Counts n = run_lines(&lines, rungs[k]);
            ck_assert_msg(n.of[CASE_bad] == 1, "%s is taken for a case: %s", bad[i].line, n.first);
            ck_assert_msg(strstr(n.first, bad[i].why) != NULL, "%s: %s", bad[i].line, n.first);
        }
}
END_TEST

START_TEST(what_cannot_be_run_is_skipped) {
    static const char *const lines[] = {
        "{\"op\": \"aten.no_such_op.default\", \"args\": [], \"kwargs\": {}, \"out\": null}",
        "{\"opinfo\": \"x\", \"code\": \"def forward(self, a: \\\"f64[][]cpu\\\"):\\n    b = "
        "torch.ops.aten.no_such_op.default(a)\\n    return [b]\\n\", \"inputs\": [" SCALAR(
            "0000000000000040") "], \"needs_grad\": [false], \"outputs\": [null], "
                                "\"differentiable\": [false], \"cotangents\": [], \"grads\": []}",
    };
    for (int i = 0; i < COUNT(lines); i++) {
        fresh();
        CaseLines one = one_line(lines[i]);
        Counts n = run_lines(&one, "aot_eager");
        ck_assert_msg(n.of[CASE_skipped] == 1, "%s", n.first);
    }
}
END_TEST

static int cases_of(const char *text, const char *backend, bool json, Buf *out) {
    fresh();
    *out = (Buf){.arena = &arena};
    char *folder = dir_temp(&arena, &diag), *path = path_join(&arena, folder, "cases.jsonl");
    ck_assert(file_write(path, text, strlen(text), &diag));
    SessionOptions o = {.backend = backend};
    int code = session_cases(path, &o, out, json, &diag);
    Diag quiet = {.arena = &arena};
    dir_remove(folder, &quiet);
    return code;
}

// In helpers: verdicts come back in the file's order; a bad line is told with its number.
START_TEST(the_command_reports) {
    Buf out;
    int code =
        cases_of(SUM("0000404000008040") "\n\n" SUM("000040400000a040") "\n", NULL, false, &out);
    ck_assert_int_eq(code, 1);
    ck_assert_msg(strstr(buf_str(&out), ".jsonl:3: aten.add.Tensor: 1 of 2 elements") != NULL, "%s",
                  buf_str(&out));
    ck_assert(str_ends(buf_str(&out), "\n1 passed, 1 failed, 0 skipped\n"));
    code = cases_of(SUM("0000404000008040") "\nnonsense\n", "eager", false, &out);
    ck_assert_int_eq(code, 2);
    ck_assert_int_eq(diag.at[0].line, 2);
    ck_assert(str_ends(buf_str(&out), "1 passed, 0 failed, 0 skipped\n"));
    ck_assert_int_eq(cases_of(PRODUCT(SCALAR("0000000000000840")), NULL, true, &out), 0);
    Json *j = json_parse(&arena, (Str){buf_str(&out), out.len}, "report", &diag);
    ck_assert_int_eq(json_int(json_get(j, "passed"), -1), 1);
    ck_assert_str_eq(json_str(json_get(j, "backend"), ""), "aot_eager");
    ck_assert_int_eq(cases_of("\n\n", NULL, false, &out), 2);
    ck_assert_int_eq(cases_of(SUM(""), "no_such_rung", false, &out), 2);
}
END_TEST

Suite *suite_debug_cases(void) {
    static const TTest *tests[12];
    int n = 0;
    tests[n++] = single_ops_on_every_rung;
    tests[n++] = reported_models_on_every_rung;
    tests[n++] = facts_on_every_rung;
    tests[n++] = gradients_on_every_rung;
    tests[n++] = torch_level_calls;
    tests[n++] = single_torch_calls;
    tests[n++] = all_recorded_cases;
    tests[n++] = a_changed_value_is_found;
    tests[n++] = every_compiler_keeps_sizes;
    tests[n++] = hostile_lines;
    tests[n++] = what_cannot_be_run_is_skipped;
    tests[n++] = the_command_reports;
    return unit_suite("debug_cases", tests, n);
}
