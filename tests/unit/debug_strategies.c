// debug_strategies.c: each strategy of the minifier, left alone, makes a graph smaller that it is
// meant for; and a write that a failure needs stays.
#include "core/debug/score.h"
#include "core/session.h"
#include "tests/unit/unit.h"

#include <string.h>

typedef struct Alone {
    StrategyId strategy;
    const char *const *inputs; // name, annotation, …; NULL
    const char *body;
    const char *gone; // a text that the smallest graph has not; NULL
} Alone;

#define INPUTS(...) (const char *const[]){__VA_ARGS__, NULL}
#define X           "x", "f32[4, 6][6, 1]cpu"
#define Y           "y", "f32[4, 6][6, 1]cpu"

static const Alone alone[] = {
    {STRATEGY_around, INPUTS(X, Y),
     "        s = torch.sin(l_x_)\n        e = torch.exp(s)\n        a = torch.tanh(e)\n"
     "        b = a * l_y_\n        r = torch.nn.functional.gelu(b)\n        c = r + 1\n"
     "        d = torch.exp(c)\n        f = d * 2\n        return (f,)\n",
     "sin"},
    {STRATEGY_outputs, INPUTS(X, Y),
     "        r = torch.relu(l_x_)\n        b = l_y_ * 2\n        return (r, b)\n", "r, b"},
    {STRATEGY_dead, INPUTS(X, Y),
     "        r = torch.relu(l_x_)\n        b = l_y_ * 2\n        return (r,)\n", "l_y_ * 2"},
    {STRATEGY_unused, INPUTS(X, Y), "        r = torch.relu(l_x_)\n        return (r,)\n", "L_y_"},
    {STRATEGY_suffix, INPUTS(X),
     "        r = torch.relu(l_x_)\n        b = r + 1\n        c = torch.sin(b)\n"
     "        return (c,)\n",
     "sin"},
    {STRATEGY_delta, INPUTS(X),
     "        a = torch.sin(l_x_)\n        b = a + 1\n        r = torch.relu(b)\n"
     "        return (r,)\n",
     "sin"},
    {STRATEGY_effects, INPUTS(X, Y),
     "        add_ = l_y_.add_(1)\n        r = torch.relu(l_x_)\n        return (r,)\n", "add_"},
    {STRATEGY_bypass, INPUTS(X),
     "        r = torch.relu(l_x_)\n        b = r + 1\n        c = b * 2\n        return (c,)\n",
     "b * 2"},
    {STRATEGY_consolidate, INPUTS(X, Y),
     "        b = l_x_ * l_y_\n        r = torch.relu(b)\n        return (r,)\n", "L_y_"},
    {STRATEGY_optional, INPUTS(X, "w", "f32[6, 6][6, 1]cpu", "b", "f32[6][1]cpu"),
     "        r = torch.relu(l_x_)\n        c = torch.nn.functional.linear(r, l_w_, l_b_)\n"
     "        return (r, c)\n",
     "L_b_"},
    {STRATEGY_gradients, INPUTS("p_x", "f32[4, 6][6, 1]cpu", "p_y", "f32[4, 6][6, 1]cpu"),
     "        b = l_p_x_ * l_p_y_\n        r = torch.relu(b)\n        return (r,)\n", NULL},
    {STRATEGY_shapes, INPUTS(X), "        r = torch.relu(l_x_)\n        return (r,)\n", "[4, 6]"},
    {STRATEGY_dtypes, INPUTS("x", "f64[4, 6][6, 1]cpu"),
     "        r = torch.relu(l_x_)\n        return (r,)\n", "f64"},
    {STRATEGY_constants, INPUTS(X),
     "        b = l_x_ * 7.5\n        r = torch.relu(b)\n        return (r,)\n", "7.5"},
    {STRATEGY_strides, INPUTS("x", "f32[4, 6][1, 4]cpu"),
     "        r = torch.relu(l_x_)\n        return (r,)\n", "[1, 4]"},
    {STRATEGY_randn, INPUTS(X), "        r = torch.relu(l_x_)\n        return (r,)\n", NULL},
    {STRATEGY_ones, INPUTS(X), "        r = torch.relu(l_x_)\n        return (r,)\n", NULL},
    {STRATEGY_zeros, INPUTS(X), "        r = torch.relu(l_x_)\n        return (r,)\n", NULL},
};

static Session *some_session(Arena *a) {
    Diag d = {.arena = a};
    SessionOptions o = {.toolchain = "tcc"};
    Session *s = session_open("tests/corpus/chain/graph_code.txt", &o, &d);
    ck_assert_msg(s != NULL, "%s", diag_first(&d));
    return s;
}

static Minify *searched(Session *s, Arena *a, const ScoreModel *model, const char *fault,
                        ProbeQuery *q, unsigned without) {
    Diag d = {.arena = a};
    Overrides *o = overrides_new(a);
    decide_override(o, DECIDE_fault, fault, true);
    ck_assert_msg(score_query(model, a, q, &d), "%s", diag_first(&d));
    q->overrides = o;
    q->rung = RUNG_full;
    q->limit_ms = 20000;
    Minify *m = minify_new(session_helpers(s), false, q, &(MinifyOptions){.without = without});
    ck_assert_msg(minify_start(m, &d), "%s", diag_first(&d));
    minify_wait(m, NULL);
    return m;
}

START_TEST(each_alone) {
    Arena a = {0};
    Session *s = some_session(&a);
    ck_assert_int_eq(COUNT(alone), STRATEGY_count);
    for (int i = 0; i < COUNT(alone); i++) {
        const Alone *x = &alone[i];
        ScoreModel model = {"alone", x->inputs, x->body};
        const char *name = strategy_name(x->strategy);
        unsigned others = ((1u << STRATEGY_count) - 1) & ~(1u << x->strategy);
        bool data = strategy_info[x->strategy].phase == PHASE_data;
        // A wrong kernel is of all that is fused into it; a wrong rule is of one node.
        bool rule = x->strategy == STRATEGY_around;
        ProbeQuery q;
        Minify *m =
            searched(s, &a, &model, rule ? "gelu_constant" : "relu_accuracy", &q, others);
        ck_assert_msg(minify_state(m) == MINIFY_done, "%s: %s", name, minify_why(m));
        int taken = 0;
        for (int k = 0; k < minify_n_tries(m); k++) {
            const MinifyTry *t = minify_try(m, k);
            ck_assert_msg(t->strategy == x->strategy, "%s: %s", name, strategy_name(t->strategy));
            taken += data ? t->verdict == TRY_fails : t->became >= 0;
        }
        Buf text = {.arena = &a};
        graph_print(&text, minify_graph(m, minify_best(m), &a), &fx_style_log, NULL);
        ck_assert_msg(taken > 0, "%s takes nothing away", name);
        ck_assert_msg(!x->gone || !strstr(buf_str(&text), x->gone), "%s: %s", name,
                      buf_str(&text));
        ck_assert(minify_kind_kept(m));
        minify_free(m);
        score_query_drop(&q);
    }
    session_close(s);
    arena_free(&a);
}
END_TEST

// A write through a view of an input that is lost: the write and its view stay, what has nothing to
// do with them goes.
START_TEST(a_written_input) {
    const ScoreModel written = {
        "written", INPUTS(X, Y),
        "        a = torch.sin(l_y_)\n        row = l_x_.select(0, 1)\n"
        "        add_ = row.add_(0.5)\n        b = l_x_ * 2\n        c = a + l_y_\n"
        "        return (b, c)\n"};
    Arena a = {0};
    Session *s = some_session(&a);
    ProbeQuery q;
    Minify *m = searched(s, &a, &written, "view_write_lost", &q, 0);
    ck_assert_msg(minify_state(m) == MINIFY_done, "%s", minify_why(m));
    ck_assert(minify_kind_kept(m));
    Buf text = {.arena = &a};
    graph_print(&text, minify_graph(m, minify_best(m), &a), &fx_style_log, NULL);
    ck_assert_msg(strstr(buf_str(&text), "add_(") && strstr(buf_str(&text), "select("), "%s",
                  buf_str(&text));
    ck_assert_msg(!strstr(buf_str(&text), "sin") && !strstr(buf_str(&text), "L_y_"), "%s",
                  buf_str(&text));
    minify_free(m);
    score_query_drop(&q);
    session_close(s);
    arena_free(&a);
}
END_TEST

Suite *suite_debug_strategies(void);
Suite *suite_debug_strategies(void) {
    Suite *s = suite_create("debug_strategies");
    TCase *t = tcase_create("strategies");
    tcase_set_timeout(t, 240);
    tcase_add_test(t, each_alone);
    tcase_add_test(t, a_written_input);
    suite_add_tcase(s, t);
    return s;
}
