// debug_look.c: values that a helper shows are those that the model computes: against arithmetic
// done here, against the numbers of other rungs, and where a fault is planted, at the element that
// it spoils; statistics against slower sums.
#include "core/debug/look.h"
#include "core/session.h"
#include "tests/unit/unit.h"

#include <math.h>
#include <string.h>

static Session *opened(Arena *a, const char *path, const char *grad, const char *fault) {
    Diag d = {.arena = a};
    const char *faults[] = {fault, NULL};
    SessionOptions o = {.toolchain = "tcc", .grad = grad, .faults = fault ? faults : NULL};
    Session *s = session_open(path, &o, &d);
    ck_assert_msg(s != NULL, "%s", diag_first(&d));
    return s;
}

static void look_at(Session *s, Arena *a, LookPlace place, const char *against, LookAnswer *out) {
    Diag d = {.arena = a};
    if (!place.pass)
        place.pass = "";
    Request *r = session_look_start(s, 0, &place, against, &d);
    ck_assert_msg(r != NULL, "%s", diag_first(&d));
    request_wait(session_helpers(s), r, NULL);
    look_take(r, a, out);
    request_free(r);
}

static const char chain[] = "tests/corpus/chain/graph_code.txt";

START_TEST(a_value_is_what_the_model_computes) {
    Arena a = {0};
    Session *s = opened(&a, chain, "none", NULL);
    LookAnswer in[4], t, loops, code;
    static const char *const names[] = {"l_a_", "l_b_", "l_c_", "l_d_"};
    for (int i = 0; i < 4; i++) {
        look_at(s, &a, (LookPlace){.stage = STAGE_fx, .name = names[i]}, "", &in[i]);
        ck_assert_msg(in[i].ok, "%s", in[i].why);
        ck_assert_str_eq(in[i].rung, "as given");
        ck_assert_ptr_null(in[i].want.storage);
    }
    look_at(s, &a, (LookPlace){.stage = STAGE_fx, .name = "t_2"}, "", &t);
    ck_assert_msg(t.ok, "%s", t.why);
    ck_assert_str_eq(t.against, "float64");
    ck_assert_int_eq(t.want.dtype, DT_f64);
    for (int64_t i = 0; i < 64 * 128; i++) {
        float x[4];
        for (int k = 0; k < 4; k++)
            x[k] = (float)tensor_get_f64(&in[k].got, i);
        float sum = x[0] + x[1];
        sum = sum + x[2];
        ck_assert(tensor_get_f64(&t.got, i) == (double)(sum * x[3]));
        double exact = ((double)x[0] + x[1] + x[2]) * x[3];
        ck_assert_double_eq_tol(tensor_get_f64(&t.want, i), exact, 1e-15 * fabs(exact) + 1e-300);
    }
    // The last value is a buffer of the loops, and one of the code made from them.
    look_at(s, &a, (LookPlace){.stage = STAGE_pre_fusion, .name = "buf0"}, "", &loops);
    look_at(s, &a, (LookPlace){.stage = STAGE_kernels, .name = "buf0"}, "", &code);
    ck_assert_msg(loops.ok && code.ok, "%s%s", loops.why, code.why);
    ck_assert_str_eq(code.rung, "full tcc");
    ck_assert_str_eq(code.against, "ir");
    ck_assert_int_eq(code.judged.verdict, VERDICT_same_bits);
    ck_assert_int_eq(tensor_numel(&loops.got), 64 * 128);
    for (int i = 0; i < 4; i++)
        look_free(&in[i]);
    look_free(&t);
    look_free(&loops);
    look_free(&code);
    session_close(s);
    arena_free(&a);
}
END_TEST

static void the_same_value(Session *s, Arena *a, StageId stage, int half, const char *name,
                           const char *rung, const char *is) {
    LookAnswer k;
    look_at(s, a, (LookPlace){.stage = stage, .half = half, .name = name}, rung, &k);
    ck_assert_msg(k.ok, "%s: %s", name, k.why);
    ck_assert_msg(!strcmp(k.against, is), "%s is beside '%s' (%s), not '%s'", name, k.against,
                  k.why_not, is);
    if (*is)
        ck_assert_msg(!verdict_info[k.judged.verdict].bad, "%s: %s", name,
                      verdict_info[k.judged.verdict].name);
    look_free(&k);
}

// Training: the same product in the captured graph, the joint one, backward's half, and memory.
START_TEST(the_same_value_elsewhere) {
    Arena a = {0};
    Session *s = opened(&a, "tests/corpus/layernorm_gelu/graph_code.txt", "params", NULL);
    the_same_value(s, &a, STAGE_joint, 2, "addmm", "ir", "ir: buf5");
    the_same_value(s, &a, STAGE_joint, 2, "addmm", "full", "full tcc: buf5");
    the_same_value(s, &a, STAGE_pre_fusion, 0, "buf5", "", "aot_eager_decomp_partition: addmm");
    the_same_value(s, &a, STAGE_post_fusion, 0, "buf5", "float64", "float64: addmm");
    the_same_value(s, &a, STAGE_partition, 2, "mm", "float64", "float64"); // of backward
    the_same_value(s, &a, STAGE_kernels, 1, "buf0", "", "ir");
    // erf is a part of what gelu is, and lives in a register: nothing is claimed.
    the_same_value(s, &a, STAGE_joint, 2, "erf", "eager", "");
    the_same_value(s, &a, STAGE_joint, 2, "erf", "full", "");
    session_close(s);
    arena_free(&a);
}
END_TEST

START_TEST(what_has_no_value_says_so) {
    Arena a = {0};
    Session *s = opened(&a, chain, "none", NULL);
    LookAnswer k;
    look_at(s, &a, (LookPlace){.stage = STAGE_fx, .name = "output"}, "", &k);
    ck_assert(!k.ok);
    ck_assert_ptr_nonnull(strstr(k.why, "it is no tensor"));
    look_at(s, &a, (LookPlace){.stage = STAGE_kernels, .name = "buf77"}, "", &k);
    ck_assert(!k.ok);
    ck_assert_ptr_nonnull(strstr(k.why, "register"));
    look_at(s, &a, (LookPlace){.stage = STAGE_fx, .name = "t"}, "eagre", &k);
    ck_assert(k.ok && !k.want.storage);
    ck_assert_ptr_nonnull(strstr(k.why_not, "'eagre'"));
    look_free(&k);
    session_close(s);
    arena_free(&a);
}
END_TEST

// Those outside torch.testing's tolerances, in order.
START_TEST(wrong_elements_are_listed) {
    Arena a = {0};
    Session *s = opened(&a, "tests/corpus/layernorm_gelu/graph_code.txt", "none", "gelu_constant");
    LookAnswer k;
    look_at(s, &a, (LookPlace){.stage = STAGE_kernels, .name = "out0", .result = true}, "", &k);
    ck_assert_msg(k.ok, "%s", k.why);
    ck_assert_str_eq(k.against, "eager");
    ck_assert_int_eq(k.judged.verdict, VERDICT_bug);
    ck_assert_ptr_nonnull(k.wrong.storage);
    int64_t n = 0;
    for (int64_t i = 0; i < k.stats.numel; i++) {
        double got = tensor_get_f64(&k.got, i), want = tensor_get_f64(&k.want, i);
        if (fabs(got - want) > 1e-5 + 1.3e-6 * fabs(want)) {
            ck_assert_int_eq(tensor_get_i64(&k.wrong, n), i);
            n++;
        }
    }
    ck_assert_int_eq(n, tensor_numel(&k.wrong));
    int64_t apart = 0;
    for (int i = 0; i < LOOK_APART; i++)
        apart += k.apart[i];
    ck_assert_int_eq(apart, k.stats.numel);
    look_free(&k);
    session_close(s);
    arena_free(&a);
}
END_TEST

START_TEST(statistics) {
    Arena a = {0};
    Diag d = {.arena = &a};
    static const double v[] = {1, -2, 0, 4, NAN, INFINITY, -INFINITY, 0, 0.5};
    Tensor t;
    LookStats s;
    int64_t n = COUNT(v), counted = 0;
    ck_assert(tensor_new(&t, DT_f32, 1, &n, &d));
    for (int i = 0; i < n; i++)
        tensor_set_f64(&t, i, v[i]);
    look_stats(&t, &s);
    ck_assert_int_eq(s.numel, 9);
    ck_assert_int_eq(s.finite, 6);
    ck_assert_int_eq(s.nan, 1);
    ck_assert_int_eq(s.pos_inf, 1);
    ck_assert_int_eq(s.neg_inf, 1);
    ck_assert_int_eq(s.zero, 2);
    ck_assert(s.min == -2 && s.max == 4);
    ck_assert_double_eq_tol(s.mean, 3.5 / 6, 1e-15);
    ck_assert_double_eq_tol(s.std, 1.9600170067289382, 1e-15);
    for (int i = 0; i < LOOK_BINS; i++)
        counted += s.bins[i];
    ck_assert_int_eq(counted, 6);
    ck_assert_int_eq(s.bins[0], 1);
    ck_assert_int_eq(s.bins[LOOK_BINS - 1], 1);
    ck_assert_int_eq(s.bins[LOOK_BINS / 3], 2); // zero is a third of the way
    tensor_drop(&t);
    // The whole range of f64 does not fit into itself.
    int64_t two = 2;
    ck_assert(tensor_new(&t, DT_f64, 1, &two, &d));
    tensor_set_f64(&t, 0, -1.7e308);
    tensor_set_f64(&t, 1, 1.7e308);
    look_stats(&t, &s);
    ck_assert_int_eq(s.bins[0], 1);
    ck_assert_int_eq(s.bins[LOOK_BINS - 1], 1);
    tensor_drop(&t);
    int64_t none = 0;
    ck_assert(tensor_new(&t, DT_f32, 1, &none, &d));
    look_stats(&t, &s);
    ck_assert(s.numel == 0 && isnan(s.mean) && isnan(s.std));
    tensor_drop(&t);
    arena_free(&a);
}
END_TEST

Suite *suite_debug_look(void) {
    Suite *s = suite_create("debug_look");
    TCase *c = tcase_create("look");
    tcase_set_timeout(c, 120);
    tcase_add_test(c, a_value_is_what_the_model_computes);
    tcase_add_test(c, the_same_value_elsewhere);
    tcase_add_test(c, what_has_no_value_says_so);
    tcase_add_test(c, wrong_elements_are_listed);
    tcase_add_test(c, statistics);
    suite_add_tcase(s, c);
    return s;
}
