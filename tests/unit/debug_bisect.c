// debug_bisect.c: states in which decisions are switched off compute the same; a planted fault is
// traced to the decision that it sits in, a pair to both of its decisions; answers are remembered.
#include "core/base/file.h"
#include "core/debug/bisect.h"
#include "core/debug/score.h"
#include "core/session.h"
#include "tests/unit/unit.h"

#include <stdlib.h>
#include <string.h>

static Session *opened(Arena *a, const char *path) {
    Diag d = {.arena = a};
    SessionOptions o = {.toolchain = "tcc", .grad = "none"};
    Session *s = session_open(path, &o, &d);
    ck_assert_msg(s != NULL, "%s", diag_first(&d));
    return s;
}

// What a helper lists for a question, as a bisection that only knows its choices.
static Bisect listed(Helpers *h, const ProbeQuery *q, Arena *a) {
    Bisect b = {.query = *q, .helpers = h};
    Request *r = bisect_ask_build(h, q, -1);
    request_wait(h, r, NULL);
    ck_assert_int_eq(request_state(r), REQ_done);
    bisect_choices(&b, arena_strdup(a, message_get_text(request_reply(r), "text", "")));
    request_free(r);
    return b;
}

static void check_off(Helpers *h, const Bisect *b, const bool *on, const char *model,
                      const char *what, Arena *a) {
    ProbeQuery q = bisect_query(b, on, a);
    ProbeAnswer answer;
    probe_ask(h, &q, a, &answer);
    Buf text = {.arena = a};
    failure_print(&text, &answer.failure);
    // An op on a plain number has no other way than to be taken apart.
    bool number = strstr(buf_str(&text), "is no tensor") != NULL;
    ck_assert_msg(number || (answer.valid && answer.failure.kind == FAIL_none), "%s without %s: %s",
                  model, what, buf_str(&text));
    probe_free(&answer);
}

START_TEST(off_is_right) {
    Arena a = {0};
    Diag d = {.arena = &a};
    Session *s = opened(&a, "tests/corpus/chain/graph_code.txt");
    Helpers *h = session_helpers(s);
    for (int i = 0; i < n_score_models; i += 3) {
        ProbeQuery q;
        ck_assert_msg(score_query(&score_models[i], &a, &q, &d), "%s", diag_first(&d));
        q.rung = RUNG_full;
        q.limit_ms = 10000;
        q.sets = (const char *const[]){"fallback_random=on", NULL};
        Bisect b = listed(h, &q, &a);
        ck_assert_int_gt(b.n, 5);
        bool *on = ARENA_ARRAY(&a, b.n, bool);
        check_off(h, &b, on, score_models[i].name, "all", &a);
        for (int row = 0; row < n_switches; row++) {
            int n = 0;
            for (int k = 0; k < b.n; k++) {
                on[k] = b.choices[k].row != row;
                n += !on[k];
            }
            if (n)
                check_off(h, &b, on, score_models[i].name, switch_info[row].name, &a);
        }
        score_query_drop(&q);
        arena_free(&b.arena);
    }
    session_close(s);
    arena_free(&a);
}
END_TEST

// A fault planted in a model of the score, and a bisection of it.
typedef struct Planted {
    Arena arena;
    Helpers *h;
    Overrides *overrides;
    ProbeQuery query;
} Planted;

static void plant(Planted *p, const char *model, const char *fault_name, CaseRung rung) {
    Diag d = {.arena = &p->arena};
    int m = 0;
    while (m < n_score_models && strcmp(score_models[m].name, model) != 0)
        m++;
    ck_assert_int_lt(m, n_score_models);
    ck_assert_msg(score_query(&score_models[m], &p->arena, &p->query, &d), "%s", diag_first(&d));
    p->overrides = overrides_new(&p->arena);
    if (fault_name)
        decide_override(p->overrides, DECIDE_fault, fault_name, true);
    p->query.overrides = p->overrides;
    p->query.rung = rung;
}

static void uproot(Planted *p) {
    score_query_drop(&p->query);
    arena_free(&p->arena);
}

static Bisect *searched(Helpers *h, const ProbeQuery *q, const BisectOptions *o) {
    Bisect *b = bisect_start(h, q, NULL, o);
    bisect_wait(b, NULL);
    ck_assert(b->end != BISECT_running);
    return b;
}

static const BisectOptions plain = {.limit_ms = 60000}; // a busy machine is no hang

// What is named is what the library says, and the states are what they are said to be when they are
// asked once more.
static const struct {
    const char *model, *fault;
    CaseRung rung;
    const char *row, *key;
} decisions[] = {
    {"norm_gelu_trained", "gelu_constant", RUNG_full, "decomposition", "aten.gelu.default"},
    {"constants", "folded_wrong", RUNG_aot_eager_decomp_partition, "rewrite", NULL},
    {"attention", "addmm_bias_doubled", RUNG_full, NULL, NULL},
    {"scattered", "scatter_overwrites", RUNG_full, "lowering", NULL},
    {"extremes", "tail_off_by_one", RUNG_full, "tile", NULL},
    {"towers", "inplace_too_early", RUNG_full, "inplace", NULL},
    {"windows", "broken_c", RUNG_full, "lowering", NULL},
    {"constants", "fused_too_early", RUNG_full, "fuse", "add_2+mul_2"},
    {"logs", "relu_accuracy", RUNG_full, "lowering", "relu"},
};

START_TEST(names_the_decision) {
    Arena a = {0};
    Session *s = opened(&a, "tests/corpus/chain/graph_code.txt");
    Helpers *h = session_helpers(s);
    for (int i = 0; i < COUNT(decisions); i++) {
        Planted p = {0};
        plant(&p, decisions[i].model, decisions[i].fault, decisions[i].rung);
        Bisect *b = searched(h, &p.query, &plain);
        const BisectChoice *c = bisect_choice(b);
        ck_assert_msg((c != NULL) == (decisions[i].row != NULL), "%s %s: end %d, %s",
                      decisions[i].model, decisions[i].fault, b->end, b->note);
        if (!c) { // the fault does not act in this model
            ck_assert_int_eq(b->end, BISECT_passes);
            bisect_free(b);
            uproot(&p);
            continue;
        }
        ck_assert_str_eq(switch_info[c->row].name, decisions[i].row);
        if (decisions[i].key)
            ck_assert_str_eq(c->key, decisions[i].key);
        int apart = 0;
        for (int k = 0; k < b->n; k++)
            apart += b->on_state[k] != b->off_state[k];
        ck_assert_int_eq(apart, 1);
        const bool *states[2] = {b->off_state, b->on_state};
        for (int k = 0; k < 2; k++) {
            ProbeQuery q = bisect_query(b, states[k], &a);
            ProbeAnswer answer;
            probe_ask(h, &q, &a, &answer);
            ck_assert_int_eq(answer.failure.kind != FAIL_none, k);
            probe_free(&answer);
        }
        ck_assert_str_ne(b->off_text, b->on_text);
        bisect_free(b);
        uproot(&p);
    }
    session_close(s);
    arena_free(&a);
}
END_TEST

// Two saved values are taken for each other: each of both decisions makes it pass.
START_TEST(a_pair) {
    Arena a = {0};
    Session *s = opened(&a, "tests/corpus/chain/graph_code.txt");
    Planted p = {0};
    plant(&p, "attention_trained", "saved_swapped", RUNG_aot_eager_decomp_partition);
    Bisect *b = searched(session_helpers(s), &p.query, &plain);
    ck_assert_int_eq(b->end, BISECT_named);
    ck_assert_int_eq(b->n_found, 2);
    ck_assert(b->found[0].partner && b->alone);
    ck_assert_str_eq(b->choices[b->found[0].choice].key, "mm");
    ck_assert_str_eq(bisect_choice(b)->key, "mm_1");
    Buf text = {.arena = &a};
    bisect_report(b, &text);
    ck_assert_ptr_nonnull(strstr(buf_str(&text), "together with mm is saved for backward"));
    bisect_free(b);
    uproot(&p);
    session_close(s);
    arena_free(&a);
}
END_TEST

START_TEST(other_ends) {
    Arena a = {0};
    Session *s = opened(&a, "tests/corpus/chain/graph_code.txt");
    Helpers *h = session_helpers(s);
    Planted p = {0}, healthy = {0};
    plant(&p, "norm_gelu_trained", "gelu_constant", RUNG_full);
    // Among fusions there is none that would be to blame.
    Bisect *b = searched(h, &p.query, &(BisectOptions){.over = "fusions"});
    ck_assert_int_eq(b->end, BISECT_fixed);
    ck_assert_ptr_null(bisect_choice(b));
    bisect_free(b);
    b = bisect_start(h, &p.query, NULL, &plain);
    bisect_poll(b);
    bisect_cancel(b);
    ck_assert_int_eq(b->end, BISECT_cancelled);
    bisect_free(b);
    uproot(&p);
    plant(&healthy, "norm_gelu_trained", NULL, RUNG_full);
    b = searched(h, &healthy.query, &plain);
    ck_assert_int_eq(b->end, BISECT_passes);
    bisect_free(b);
    uproot(&healthy);
    ck_assert(bisect_group("fusions") && bisect_group(NULL) && !bisect_group("fusion"));
    session_close(s);
    arena_free(&a);
}
END_TEST

// The second time all is on record; for another input nothing is.
START_TEST(answers_are_kept) {
    Arena a = {0};
    Diag d = {.arena = &a};
    char *dir = dir_temp(&a, &d);
    const char *was = getenv("XDG_CACHE_HOME");
    setenv("XDG_CACHE_HOME", dir, 1);
    Session *s = opened(&a, "tests/corpus/chain/graph_code.txt");
    Planted p = {0};
    plant(&p, "norm_gelu_trained", "gelu_constant", RUNG_aot_eager_decomp_partition);
    BisectOptions keep = {.keep = true};
    int asked[3] = {0};
    for (int i = 0; i < 3; i++) {
        if (i == 2)
            ((float *)tensor_data(&p.query.inputs[0].tensor))[0] += 1;
        Bisect *b = searched(session_helpers(s), &p.query, &keep);
        ck_assert_str_eq(bisect_choice(b)->key, "aten.gelu.default");
        ck_assert_int_gt(b->tries.n, 3);
        for (int k = 0; k < b->tries.n; k++)
            asked[i] += !b->tries.at[k].remembered;
        bisect_free(b);
    }
    ck_assert_int_gt(asked[0], 3);
    ck_assert_int_eq(asked[1], 0);
    ck_assert_int_eq(asked[2], asked[0]);
    uproot(&p);
    session_close(s);
    if (was)
        setenv("XDG_CACHE_HOME", was, 1);
    else
        unsetenv("XDG_CACHE_HOME");
    dir_remove(dir, &d);
    arena_free(&a);
}
END_TEST

// A line of a list is read as it was written, whatever the key.
START_TEST(lists) {
    Arena a = {0};
    Buf text = {.arena = &a};
    ListLine in = {'d', STAGE_post_fusion, 'b', "fuse", true, "op1_op2+op3", "same numel"}, out;
    list_print(&text, &in);
    list_print(&text, &(ListLine){'s', STAGE_kernels, '-', "cse", true, "on", ""});
    buf_puts(&text, "d\t99\n");
    const char *p = buf_str(&text);
    ck_assert(list_read(&a, &p, &out));
    ck_assert_int_eq(out.stage, STAGE_post_fusion);
    ck_assert(out.what == 'd' && out.half == 'b' && out.result);
    ck_assert_str_eq(out.of, "fuse");
    ck_assert_str_eq(out.key, "op1_op2+op3");
    ck_assert_str_eq(out.reason, "same numel");
    ck_assert(list_read(&a, &p, &out));
    ck_assert_str_eq(out.key, "on");
    ck_assert(list_read(&a, &p, &out));
    ck_assert_int_eq(out.stage, STAGE_run);
    ck_assert(!list_read(&a, &p, &out));
    arena_free(&a);
}
END_TEST

Suite *suite_debug_bisect(void) {
    Suite *s = suite_create("debug_bisect");
    TCase *t = tcase_create("bisect");
    tcase_set_timeout(t, 120);
    tcase_add_test(t, lists);
    tcase_add_test(t, off_is_right);
    tcase_add_test(t, names_the_decision);
    tcase_add_test(t, a_pair);
    tcase_add_test(t, other_ends);
    tcase_add_test(t, answers_are_kept);
    suite_add_tcase(s, t);
    return s;
}
