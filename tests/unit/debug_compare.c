// debug_compare.c: the ladder on healthy models says nothing worse than rounding; with a fault
// planted it names the stage, and the element; faults are decisions like any other.
#include "core/debug/score.h"
#include "core/session.h"
#include "tests/unit/unit.h"

#include <string.h>

static Session *opened(Arena *a, const char *path, const char *grad, const char *fault_name) {
    Diag d = {.arena = a};
    const char *faults[] = {fault_name, NULL};
    SessionOptions o = {.toolchain = "tcc", .grad = grad, .faults = fault_name ? faults : NULL};
    Session *s = session_open(path, &o, &d);
    ck_assert_msg(s != NULL, "%s", diag_first(&d));
    return s;
}

static Compare *compared(Session *s, Arena *a) {
    Diag d = {.arena = a};
    Compare *c = session_compare_start(s, 0, &d);
    ck_assert_msg(c != NULL, "%s", diag_first(&d));
    compare_wait(c, NULL);
    return c;
}

static const char *const healthy[] = {
    "tests/corpus/chain/graph_code.txt",        "tests/corpus/cnn_pool/graph_code.txt",
    "tests/corpus/inplace_view/graph_code.txt", "tests/corpus/layernorm_gelu/graph_code.txt",
    "tests/corpus/mlp_softmax/graph_code.txt",
};

START_TEST(healthy_models) {
    for (int i = 0; i < COUNT(healthy); i++)
        for (int g = 0; g < 2; g++) {
            Arena a = {0};
            Session *s = opened(&a, healthy[i], g ? "params" : "none", NULL);
            Compare *c = compared(s, &a);
            ck_assert_int_eq(c->n, RUNG_count);
            bool runs = c->rungs[0].answer.valid; // a leaf written in place has no gradient
            for (int k = 0; k < c->n && runs; k++)
                ck_assert_msg(c->rungs[k].verdict <= VERDICT_better, "%s %s: %s", healthy[i],
                              c->rungs[k].label, compare_word(&c->rungs[k]));
            ck_assert(!g || runs || i == 2);
            if (runs)
                ck_assert_str_eq(compare_word(&c->rungs[0]), "reference");
            ck_assert_int_eq(c->bad, -1);
            compare_free(c);
            session_close(s);
            arena_free(&a);
        }
}
END_TEST

// Plain C adds 4,096 terms up one after the other, and is much further from float64 than eager,
// which adds in pairs. That is rounding; one term too many in the count of a mean is not.
START_TEST(a_long_sum_rounds) {
    for (int wrong = 0; wrong < 2; wrong++) {
        Arena a = {0};
        Session *s = opened(&a, "tests/data/long_sums.txt", "none", wrong ? "mean_count" : NULL);
        Compare *c = compared(s, &a);
        const ProbeRow *rows = c->rungs[RUNG_full].answer.rows;
        const Judged *sum = &rows[0].judged;
        ck_assert_msg(sum->got_off > 4 * sum->want_off && sum->wrong > 0, "%g, eager %g",
                      sum->got_off, sum->want_off);
        ck_assert_int_eq(sum->verdict, VERDICT_rounding);
        ck_assert_msg(sum->spread > sum->want_off && sum->spread < 100 * sum->got_off, "%g",
                      sum->spread);
        ck_assert_int_eq(rows[1].judged.verdict, wrong ? VERDICT_bug : VERDICT_rounding);
        ck_assert_int_eq(c->bad >= 0, wrong);
        compare_free(c);
        session_close(s);
        arena_free(&a);
    }
}
END_TEST

START_TEST(a_fault_is_placed) {
    Arena a = {0};
    Session *s = opened(&a, "tests/corpus/layernorm_gelu/graph_code.txt", "none", "gelu_constant");
    Compare *c = compared(s, &a);
    ck_assert(c->bad >= 0 && c->place.found);
    // Rungs above it are right, all below it are wrong.
    for (int i = 0; i < c->n; i++)
        ck_assert_int_eq(c->rungs[i].answer.failure.kind,
                         i > RUNG_aot_eager ? FAIL_accuracy : FAIL_none);
    ck_assert_int_eq(c->place.stage, STAGE_joint);
    ck_assert_str_eq(c->place.half, "");
    ck_assert_int_eq(c->place.got.kind, RT_tensor);
    ck_assert_int_eq(tensor_numel(&c->place.got.tensor), 4 * 10 * 48); // gelu itself
    ck_assert_str_eq(c->place.origins, "gelu");
    ck_assert(c->place.judged.element >= 0);
    ck_assert(tensor_get_f64(&c->place.got.tensor, c->place.judged.element) == c->place.judged.got);
    compare_free(c);
    session_close(s);
    arena_free(&a);
}
END_TEST

START_TEST(a_fault_is_a_decision) {
    Arena a = {0};
    Session *s = opened(&a, "tests/corpus/layernorm_gelu/graph_code.txt", "none", "gelu_constant");
    Diag d = {.arena = &a};
    ck_assert_ptr_nonnull(pipeline_build(session_pipeline(s), 0, STAGE_kernels));
    const char *where;
    const Decisions *log = pipeline_unit(session_pipeline(s), 0)->decisions;
    ck_assert_int_eq(fault_fired(log, FAULT_gelu_constant, &where), 1);
    ck_assert_str_eq(where, "aten.gelu.default");
    ck_assert_int_eq(fault_fired(log, FAULT_tail_off_by_one, &where), 0);
    // Without the decision that it sits in it cannot act.
    decide_override(session_overrides(s), DECIDE_decomposition, "aten.gelu.default", false);
    session_changed(s, STAGE_functional);
    ck_assert_ptr_nonnull(pipeline_build(session_pipeline(s), 0, STAGE_joint));
    log = pipeline_unit(session_pipeline(s), 0)->decisions;
    ck_assert_int_eq(fault_fired(log, FAULT_gelu_constant, &where), 0);
    ck_assert_int_eq(session_fault_find("gelu_constnt", &d), -1);
    ck_assert_str_eq(d.at[0].hint, "did you mean gelu_constant?");
    session_close(s);
    arena_free(&a);
}
END_TEST

// What is off by 2e-3 is rounding if a person says so; a word that is no tolerance is refused.
START_TEST(tolerances) {
    static const struct {
        const char *text;
        int bad; // 1: a rung is wrong; -1: refused
    } cases[] = {{NULL, 1},      {"rtol=1e-2,atol=1e-1", 0},
                 {"ulp=1e9", 0}, {"ulp=4", 1},
                 {"rtol", -1},   {"rtol=", -1},
                 {"size=1", -1}, {"rtol=-1", -1}};
    for (int i = 0; i < COUNT(cases); i++) {
        Arena a = {0};
        Diag d = {.arena = &a};
        SessionOptions o = {.toolchain = "tcc",
                            .grad = "none",
                            .faults = (const char *const[]){"gelu_constant", NULL},
                            .tolerance = cases[i].text};
        Session *s = session_open("tests/corpus/layernorm_gelu/graph_code.txt", &o, &d);
        ck_assert_int_eq(s == NULL, cases[i].bad < 0);
        if (s) {
            Compare *c = compared(s, &a);
            ck_assert_msg((c->bad >= 0) == (cases[i].bad > 0), "%s", cases[i].text);
            compare_free(c);
            session_close(s);
        }
        arena_free(&a);
    }
}
END_TEST

START_TEST(rows_of_the_library) {
    for (int i = 0; i < FAULT_count; i++) {
        ck_assert_int_ge(stage_find(fault_info[i].stage), STAGE_functional);
        ck_assert_int_eq(fault_find(fault_info[i].name), i);
        ck_assert(*fault_info[i].keys);
    }
    ck_assert_int_ge(FAULT_count, 25);
    ck_assert_int_eq(fault_find("none_of_them"), -1);
}
END_TEST

// Faults of each kind of failure and of each stage, each in the models in which it fires.
static const FaultId scored[] = {
    FAULT_alias_missed,        FAULT_gradients_swapped, FAULT_folded_wrong,
    FAULT_cse_of_random,       FAULT_saved_swapped,     FAULT_addmm_bias_doubled,
    FAULT_cat_order,           FAULT_inplace_too_early, FAULT_scatter_overwrites,
    FAULT_out_of_memory_write, FAULT_broken_c,          FAULT_endless_allocation,
};

START_TEST(the_score) {
    Arena a = {0};
    Session *s = opened(&a, healthy[0], "none", NULL);
    for (int i = 0; i < COUNT(scored); i += UNIT_EVERY(3)) {
        Score score;
        score_run(session_helpers(s), (int)scored[i], SCORE_LEAST + 2, &a, &score);
        const ScoreRow *r = &score.rows[0];
        const char *name = fault_info[scored[i]].name;
        ck_assert_int_eq(score.n, 1);
        ck_assert_msg(r->fires >= SCORE_LEAST, "%s fires in %d", name, r->fires);
        ck_assert_msg(r->shown >= SCORE_LEAST, "%s shows in %d", name, r->shown);
        ck_assert_msg(r->named == r->shown, "%s: %s", name, r->missed);
        ck_assert_msg(r->decided == r->shown, "%s: %s", name, r->blamed);
    }
    session_close(s);
    arena_free(&a);
}
END_TEST

// What a place says of its surroundings: which value is read in place of which, which writes are
// lost, which result is handed out wrongly.
static const struct {
    const char *model;
    FaultId fault;
    const char *node, *reads, *pattern;
} wired[] = {
    {"views_trained", FAULT_gradients_swapped, "select_backward", "mul_4, not mul_5", NULL},
    {"turned_trained", FAULT_gradient_overwritten, "output", "mm_1, not add", ""},
    {"views_written", FAULT_view_write_lost, "add_2",
     "nothing of what is written by add_, mul_, add__1", "every element"},
    {"logs", FAULT_outputs_swapped, "buf1", "", "it is right, and not what is handed out as out0"},
};

START_TEST(a_place_tells_its_wiring) {
    Arena a = {0};
    Diag d = {.arena = &a};
    Session *s = opened(&a, healthy[0], "none", NULL);
    for (int i = 0; i < COUNT(wired); i++) {
        Compare *c = compare_new(session_helpers(s));
        Overrides *planted = overrides_new(&a);
        const Toolchain *with[2] = {toolchain_find("tcc"), NULL};
        int m = 0;
        while (strcmp(score_models[m].name, wired[i].model) != 0)
            m++;
        decide_override(planted, DECIDE_fault, fault_info[wired[i].fault].name, true);
        ck_assert(score_query(&score_models[m], &c->arena, &c->query, &d));
        c->query.overrides = planted;
        compare_start(c, with);
        compare_wait(c, NULL);
        ck_assert_msg(c->place.found, "%s", wired[i].model);
        ck_assert_str_eq(c->place.node, wired[i].node);
        ck_assert_str_eq(c->place.reads, wired[i].reads);
        if (wired[i].pattern)
            ck_assert_str_eq(c->place.pattern, wired[i].pattern);
        compare_free(c);
    }
    session_close(s);
    arena_free(&a);
}
END_TEST

START_TEST(patterns) {
    Arena a = {0};
    Tensor t = {.ndim = 3, .size = {2, 3, 4}};
    bool wrong[24] = {false};
    for (int i = 3; i < 24; i += 4)
        wrong[i] = true;
    ck_assert_str_eq(element_pattern(&a, &t, wrong), "index 3 of dimension 2, the last");
    for (int i = 0; i < 24; i++)
        wrong[i] = i / 12 == 1;
    ck_assert_str_eq(element_pattern(&a, &t, wrong), "index 1 of dimension 0, the last");
    for (int i = 0; i < 24; i++)
        wrong[i] = i % 4 == 1 || i % 4 == 2;
    ck_assert_str_eq(element_pattern(&a, &t, wrong), "indexes 1 to 2 of dimension 2");
    for (int i = 0; i < 24; i++)
        wrong[i] = true;
    ck_assert_str_eq(element_pattern(&a, &t, wrong), "every element");
    memset(wrong, 0, sizeof wrong);
    wrong[0] = wrong[23] = true;
    ck_assert_str_eq(element_pattern(&a, &t, wrong), "2 of 24 elements");
    arena_free(&a);
}
END_TEST

Suite *suite_debug_compare(void) {
    Suite *s = suite_create("debug_compare");
    TCase *t = tcase_create("compare");
    tcase_set_timeout(t, 300);
    tcase_add_test(t, healthy_models);
    tcase_add_test(t, a_long_sum_rounds);
    tcase_add_test(t, a_fault_is_placed);
    tcase_add_test(t, a_fault_is_a_decision);
    tcase_add_test(t, tolerances);
    tcase_add_test(t, rows_of_the_library);
    tcase_add_test(t, the_score);
    tcase_add_test(t, a_place_tells_its_wiring);
    tcase_add_test(t, patterns);
    suite_add_tcase(s, t);
    return s;
}
