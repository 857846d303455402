// debug_probe.c: questions of the debugger: answers of healthy graphs on every rung, of graphs that
// cannot be built or run, that never end; what counts as the same failure; verdicts.
#include "core/debug/probe_impl.h"
#include "core/session.h"
#include "tests/unit/unit.h"

#include <math.h>
#include <string.h>

static const char GRAPH[] =
    "class GraphModule(torch.nn.Module):\n"
    "    def forward(self, L_x_: \"f32[4, 24][24, 1]cpu\", L_w_: \"f32[24, 24][24, 1]cpu\"):\n"
    "        l_x_ = L_x_\n"
    "        l_w_ = L_w_\n"
    "        add_: \"f32[4, 24][24, 1]cpu\" = l_x_.add_(1)\n"
    "        y: \"f32[4, 24][24, 1]cpu\" = l_x_ @ l_w_\n"
    "        z: \"f32[4, 24][24, 1]cpu\" = torch.nn.functional.gelu(y)\n"
    "        return (z, add_)\n";

static Session *opened(Arena *a) {
    Diag d = {.arena = a};
    SessionOptions o = {.toolchain = "tcc"};
    Session *s = session_open("tests/corpus/mlp_softmax/graph_code.txt", &o, &d);
    ck_assert_msg(s != NULL, "%s", diag_first(&d));
    return s;
}

static RtValue tensor(Arena *a, int64_t rows, int64_t cols, double scale) {
    RtValue v = {.kind = RT_tensor};
    Diag d = {.arena = a};
    int64_t size[2] = {rows, cols};
    ck_assert(tensor_new(&v.tensor, DT_f32, 2, size, &d));
    for (int64_t i = 0; i < rows * cols; i++)
        tensor_set_f64(&v.tensor, i, scale * sin((double)i));
    return v;
}

static ProbeQuery query(Arena *a, const char *text, bool grads) {
    RtValue *in = ARENA_ARRAY(a, 2, RtValue);
    bool *needs = ARENA_ARRAY(a, 2, bool);
    in[0] = tensor(a, 4, 24, 1);
    in[1] = tensor(a, 24, 24, 0.2);
    needs[1] = grads;
    return (ProbeQuery){.text = {text, strlen(text)},
                        .inputs = in,
                        .n_inputs = 2,
                        .needs_grad = needs,
                        .toolchain = toolchain_find("tcc"),
                        .limit_ms = 20000};
}

static void drop(ProbeQuery *q) {
    for (int i = 0; i < q->n_inputs; i++)
        tensor_drop(&((RtValue *)q->inputs)[i].tensor);
}

START_TEST(healthy_graphs_do_not_fail) {
    for (int grads = 0; grads < 2; grads++)
        for (int rung = 0; rung < RUNG_count; rung++) {
            Arena a = {0};
            Session *s = opened(&a);
            ProbeQuery q = query(&a, GRAPH, grads);
            ProbeAnswer answer;
            q.rung = (CaseRung)rung;
            q.twice = q.poison = q.values = true;
            probe_ask(session_helpers(s), &q, &a, &answer);
            ck_assert_msg(answer.valid, "%s", answer.failure.message);
            ck_assert_msg(answer.failure.kind == FAIL_none, "rung %d: %s %s", rung,
                          answer.failure.result, answer.failure.message);
            // Two outputs, the input that is written, the gradient of the other.
            ck_assert_int_eq(answer.n_rows, grads ? 4 : 3);
            ck_assert_str_eq(answer.rows[0].name, "out0");
            ck_assert_str_eq(answer.rows[2].name, "after0");
            ck_assert_str_eq(answer.rows[0].type, "f32[4,24]");
            if (grads)
                ck_assert_str_eq(answer.rows[3].name, "grad1");
            // The value before the question is not written.
            ck_assert(tensor_get_f64(&q.inputs[0].tensor, 1) == (double)(float)sin(1.0));
            ck_assert(tensor_get_f64(&answer.rows[2].got.tensor, 1) ==
                      (double)(float)((double)(float)sin(1.0) + 1));
            ck_assert_int_eq(answer.rows[0].exact.tensor.dtype, DT_f64);
            probe_free(&answer);
            drop(&q);
            session_close(s);
            arena_free(&a);
        }
}
END_TEST

// Results in lists, tuples and dicts are results of their own, on every rung.
START_TEST(nested_results) {
    static const char text[] =
        "class GraphModule(torch.nn.Module):\n"
        "    def forward(self, L_x_: \"f32[4, 24][24, 1]cpu\", L_w_: \"f32[24, 24][24, 1]cpu\"):\n"
        "        a = L_x_ + 1\n"
        "        b = torch.relu(L_w_)\n"
        "        c = a.sum(1)\n"
        "        return ([a, (b, {'k': c})],)\n";
    for (int rung = 0; rung < RUNG_count; rung++) {
        Arena a = {0};
        Session *s = opened(&a);
        ProbeQuery q = query(&a, text, false);
        ProbeAnswer answer;
        q.rung = (CaseRung)rung;
        probe_ask(session_helpers(s), &q, &a, &answer);
        ck_assert_msg(answer.failure.kind == FAIL_none, "rung %d: %s", rung,
                      answer.failure.message);
        ck_assert_int_eq(answer.n_rows, 3);
        ck_assert_str_eq(answer.rows[2].type, "f32[4]");
        drop(&q);
        session_close(s);
        arena_free(&a);
    }
}
END_TEST

START_TEST(what_eager_cannot_run_is_no_failure) {
    Arena a = {0};
    Session *s = opened(&a);
    char *text = arena_strdup(&a, GRAPH);
    memcpy(strstr(text, "l_x_ @ l_w_"), "l_w_ @ l_x_", 11);
    ProbeQuery q = query(&a, text, false);
    ProbeAnswer answer;
    q.rung = RUNG_full;
    probe_ask(session_helpers(s), &q, &a, &answer);
    ck_assert(!answer.valid);
    ck_assert_int_eq(answer.failure.kind, FAIL_error);
    drop(&q);
    session_close(s);
    arena_free(&a);
}
END_TEST

START_TEST(time_is_limited) {
    Arena a = {0};
    Session *s = opened(&a);
    Buf text = {.arena = &a};
    buf_puts(&text, "class GraphModule(torch.nn.Module):\n    def forward(self, L_x_: \"f32[4, "
                    "24][24, 1]cpu\", L_w_: \"f32[24, 24][24, 1]cpu\"):\n");
    buf_puts(&text, "        y0 = torch.zeros([4096, 4096])\n"
                    "        y1 = y0 @ y0\n        return (y1,)\n");
    ProbeQuery q = query(&a, buf_str(&text), false);
    ProbeAnswer answer;
    q.limit_ms = 300;
    probe_ask(session_helpers(s), &q, &a, &answer);
    ck_assert_int_eq(answer.failure.kind, FAIL_hang);
    ck_assert(!answer.valid); // it was the reference that did not end
    // The next question is answered as if nothing had been.
    ProbeQuery good = query(&a, GRAPH, false);
    good.rung = RUNG_full;
    probe_ask(session_helpers(s), &good, &a, &answer);
    ck_assert_int_eq(answer.failure.kind, FAIL_none);
    drop(&q);
    drop(&good);
    session_close(s);
    arena_free(&a);
}
END_TEST

// A runner whose results are made up: some change with each run, some with what memory held.
typedef struct Moody {
    int runs;
} Moody;
enum { STEADY, CHANGES, SHOWS_MEMORY, DOES_BOTH, N_MOODS };

static bool build_nothing(void *ctx, CaseRung rung, bool plain, StageId *failed, Diag *d) {
    (void)ctx, (void)rung, (void)plain, (void)failed, (void)d;
    return true;
}

static bool run_moody(void *ctx, ProbeRun *r, Arena *a, Diag *d) {
    Moody *m = ctx;
    int64_t size[1] = {2};
    for (int i = 0; i < N_MOODS; i++) {
        RtValue v = {.kind = RT_tensor};
        double x = 1;
        if (!r->plain && (i == CHANGES || i == DOES_BOTH))
            x += 1e-7 * m->runs;
        if (i == SHOWS_MEMORY || i == DOES_BOTH)
            x += 1e-6 * r->poison;
        if (!tensor_new(&v.tensor, r->in_f64 ? DT_f64 : DT_f32, 1, size, d))
            return false;
        tensor_set_f64(&v.tensor, 0, x);
        vec_push(a, &r->values, (ProbeValue){arena_printf(a, "out%d", i), v});
    }
    m->runs += !r->plain;
    return true;
}

static int none_fired(void *ctx) {
    (void)ctx;
    return 0;
}

// What the next run changes and what shows what memory held are told apart, each by itself; within
// rounding they are failures all the same.
START_TEST(runs_and_memory_are_looked_at) {
    static const struct {
        bool twice, poison, unsteady[N_MOODS], unwritten[N_MOODS];
    } cases[] = {{false, false, {0}, {0}},
                 {true, false, {[CHANGES] = true, [DOES_BOTH] = true}, {0}},
                 {false, true, {[CHANGES] = true, [DOES_BOTH] = true}, {[SHOWS_MEMORY] = true}},
                 {true, true, {[CHANGES] = true, [DOES_BOTH] = true}, {[SHOWS_MEMORY] = true}}};
    for (int i = 0; i < COUNT(cases); i++) {
        Arena a = {0};
        Diag d = {.arena = &a};
        Message reply = {.arena = &a};
        Moody mood = {0};
        char where[EXEC_WHERE_BYTES] = "", phase[EXEC_WHERE_BYTES] = "";
        HelperCall c = {.arena = &a, .diag = &d, .where = where, .phase = phase, .reply = &reply};
        ProbeQuery q = {.rung = RUNG_full, .twice = cases[i].twice, .poison = cases[i].poison};
        ProbeRunner runner = {&mood, build_nothing, run_moody, none_fired, NULL, 1, false};
        ck_assert(probe_answer(&c, &q, &runner));
        ck_assert_int_eq(message_get_int(&reply, "rows", 0), N_MOODS);
        for (int k = 0; k < N_MOODS; k++) {
            ProbeRow row = {0};
            probe_take_row(&reply, &a, k, &row);
            ck_assert_msg(row.unsteady == cases[i].unsteady[k], "case %d, %s", i, row.name);
            ck_assert_msg(row.unwritten == cases[i].unwritten[k], "case %d, %s", i, row.name);
            ck_assert(!verdict_info[row.judged.verdict].bad);
        }
        message_drop(&reply);
        arena_free(&a);
    }
}
END_TEST

// Of a loop that stops early the last elements keep what memory held.
START_TEST(a_planted_tail_is_unwritten) {
    Arena a = {0};
    Session *s = opened(&a);
    Overrides *planted = overrides_new(&a);
    ProbeQuery q = query(&a,
                         "class GraphModule(torch.nn.Module):\n"
                         "    def forward(self, L_x_: \"f32[4, 24][24, 1]cpu\", L_w_: \"f32[24, "
                         "24][24, 1]cpu\"):\n"
                         "        l_x_ = L_x_\n        l_w_ = L_w_\n"
                         "        a = torch.sin(l_w_)\n        n = l_x_.narrow(1, 3, 13)\n"
                         "        r = n.narrow(0, 1, 1)\n        b = torch.cos(r)\n"
                         "        return (a, b)\n",
                         false);
    ProbeAnswer answer;
    decide_override(planted, DECIDE_fault, "tail_off_by_one", true);
    q.overrides = planted;
    q.rung = RUNG_full;
    q.poison = q.twice = true;
    probe_ask(session_helpers(s), &q, &a, &answer);
    ck_assert_int_eq(answer.n_rows, 2);
    ck_assert(!answer.rows[0].unwritten && !answer.rows[0].unsteady);
    ck_assert(answer.rows[1].unwritten && !answer.rows[1].unsteady);
    drop(&q);
    session_close(s);
    arena_free(&a);
}
END_TEST

START_TEST(several_are_under_way_at_once) {
    Arena a = {0};
    Session *s = opened(&a);
    Request *r[6];
    ProbeQuery q = query(&a, GRAPH, true);
    for (int i = 0; i < COUNT(r); i++) {
        q.rung = i % 2 ? RUNG_full : RUNG_aot_eager;
        r[i] = probe_send(session_helpers(s), &q);
    }
    for (int i = COUNT(r) - 1; i >= 0; i--) {
        ProbeAnswer answer;
        request_wait(session_helpers(s), r[i], NULL);
        probe_take(r[i], &a, &answer);
        ck_assert(answer.valid && answer.failure.kind == FAIL_none);
        ck_assert_int_eq(answer.n_rows, 4);
        request_free(r[i]);
    }
    drop(&q);
    session_close(s);
    arena_free(&a);
}
END_TEST

START_TEST(same_failures) {
    Failure a = {
        .kind = FAIL_accuracy, .stage = STAGE_kernels, .result = "out0", .element = 7, .sign = 1};
    Failure b = a;
    ck_assert(failure_same(&a, &b));
    b.sign = -1;
    ck_assert(!failure_same(&a, &b));
    b.sign = 1;
    b.element = 8; // of the same result: another place
    ck_assert(!failure_same(&a, &b));
    b.result = "out3"; // results are numbered anew when some are removed
    ck_assert(failure_same(&a, &b));
    b.result = "grad0";
    ck_assert(!failure_same(&a, &b));
    b = a;
    b.kind = FAIL_crash;
    ck_assert(!failure_same(&a, &b));
    Arena arena = {0};
    Failure c = {.kind = FAIL_error,
                 .stage = STAGE_joint,
                 .error_class = error_class_of(&arena, "IndexError: 'a_1' is 3, at most 2")};
    Failure d = c;
    ck_assert_str_eq(c.error_class, "IndexError: _ is #, at most #");
    d.error_class = error_class_of(&arena, "IndexError: 'mul' is 41, at most 40");
    ck_assert(failure_same(&c, &d));
    d.stage = STAGE_run;
    ck_assert(!failure_same(&c, &d));
    arena_free(&arena);
}
END_TEST

// ---- verdicts

typedef struct Fact {
    DType dtype;
    double got[4], want[4], exact[4];
    Verdict verdict;
    bool torch_same; // PyTorch's rule at 1e-3
} Fact;

static const Fact facts[] = {
    {DT_f32, {1, 2, 3, 4}, {1, 2, 3, 4}, {1, 2, 3, 4}, VERDICT_same_bits, true},
    {DT_f32, {1, 2, 3, 4.0000005}, {1, 2, 3, 4}, {1, 2, 3, 4}, VERDICT_rounding, true},
    {DT_f32, {1, 2, 3, 0}, {1, 2, 3, 4}, {1, 2, 3, 4}, VERDICT_bug, false},
    // Eager is off, compiled code is not: LayerNorm over large means.
    {DT_f32, {1, 2, 3, 4}, {1, 2, 3, 4.001}, {1, 2, 3, 4}, VERDICT_better, true},
    // Both are off by as much: what cancels magnifies rounding.
    {DT_f32, {1, 2, 3, 4.3}, {1, 2, 3, 3.96}, {1, 2, 3, 4}, VERDICT_sensitive, false},
    {DT_f32, {1, 2, 3, NAN}, {1, 2, 3, 4}, {1, 2, 3, 4}, VERDICT_bug, false},
    {DT_f32, {1, 2, 3, NAN}, {1, 2, 3, NAN}, {1, 2, 3, NAN}, VERDICT_same_bits, true},
    {DT_f32, {1, 2, 3, 4}, {1, 2, 3, NAN}, {1, 2, 3, 4}, VERDICT_better, true},
    {DT_i64, {1, 2, 3, 4}, {1, 2, 3, 5}, {1, 2, 3, 5}, VERDICT_bug, false},
    {DT_b8, {1, 0, 1, 1}, {1, 0, 1, 0}, {1, 0, 1, 1}, VERDICT_better, false},
    {DT_bf16, {1, 2, 3, 4.03125}, {1, 2, 3, 4}, {1, 2, 3, 4.015}, VERDICT_rounding, true},
    {DT_f32, {INFINITY, 2, 3, 4}, {1, 2, 3, 4}, {1, 2, 3, 4}, VERDICT_bug, false},
};

static RtValue four(Arena *a, DType d, const double *v) {
    RtValue out = {.kind = RT_tensor};
    Diag diag = {.arena = a};
    int64_t size[1] = {4};
    ck_assert(tensor_new(&out.tensor, d, 1, size, &diag));
    for (int i = 0; i < 4; i++)
        tensor_set_f64(&out.tensor, i, v[i]);
    return out;
}

START_TEST(verdicts) {
    for (int i = 0; i < COUNT(facts); i++) {
        Arena a = {0};
        const Fact *f = &facts[i];
        DType wide = dtype_is_float(f->dtype) ? DT_f64 : f->dtype;
        RtValue got = four(&a, f->dtype, f->got), want = four(&a, f->dtype, f->want),
                exact = four(&a, wide, f->exact);
        Judged j;
        judge_value(&got, &want, &exact, &(Tolerance){0}, &j);
        ck_assert_msg(j.verdict == f->verdict, "row %d: %s, expected %s", i,
                      verdict_info[j.verdict].name, verdict_info[f->verdict].name);
        ck_assert_msg(j.same.passes == f->torch_same, "row %d", i);
        rt_drop(&got);
        rt_drop(&want);
        rt_drop(&exact);
        arena_free(&a);
    }
}
END_TEST

// What no tolerance holds is rounding if rounding carries the result so far, and a bug if it does
// not, or if PyTorch's own rule calls it one.
START_TEST(how_far_rounding_carries) {
    static const struct {
        double off, moved; // of the last element: of the result, and of a run that rounding moved
        bool asks;
        Verdict verdict;
    } cases[] = {{3e-4, 2e-4, true, VERDICT_rounding},
                 {3e-4, 0.5e-4, true, VERDICT_bug},
                 {0.3, 0.5, false, VERDICT_bug}};
    for (int i = 0; i < COUNT(cases); i++) {
        Arena a = {0};
        double far[4] = {1, 2, 3, 4 + cases[i].off}, moved[4] = {1, 2, 3, 4 + cases[i].moved};
        RtValue got = four(&a, DT_f32, far), want = four(&a, DT_f32, (double[]){1, 2, 3, 4}),
                exact = four(&a, DT_f64, (double[]){1, 2, 3, 4}), other = four(&a, DT_f64, moved);
        Spread spread = {0};
        Judged j;
        judge_value(&got, &want, &exact, &(Tolerance){0}, &j);
        ck_assert_int_eq(j.verdict, VERDICT_bug);
        ck_assert_int_eq(judge_asks_spread(&j), cases[i].asks);
        spread_add(&spread, &exact, &exact);
        ck_assert(spread.off == 0);
        spread_add(&spread, &other, &exact);
        spread_add(&spread, &exact, &exact); // the most of all
        ck_assert(fabs(spread.off - cases[i].moved) < 1e-12);
        if (cases[i].asks)
            judge_by_spread(&spread, &j);
        ck_assert_int_eq(j.verdict, cases[i].verdict);
        rt_drop(&got);
        rt_drop(&want);
        rt_drop(&exact);
        rt_drop(&other);
        arena_free(&a);
    }
}
END_TEST

START_TEST(the_place_of_a_difference) {
    Arena a = {0};
    RtValue got = four(&a, DT_f32, (double[]){1, 2, 2.5, 9}),
            want = four(&a, DT_f32, (double[]){1, 2, 3, 4});
    Judged j;
    judge_value(&got, &want, NULL, &(Tolerance){0}, &j);
    ck_assert_int_eq(j.element, 2);
    ck_assert_int_eq(j.sign, -1);
    ck_assert_int_eq(j.wrong, 2);
    ck_assert_double_eq(j.got, 2.5);
    Buf place = {.arena = &a};
    Tensor t = {.ndim = 2, .size = {3, 5}};
    print_element(&place, &t, 13);
    ck_assert_str_eq(buf_str(&place), "[2,3]");
    // A wide tolerance forgives.
    judge_value(&got, &want, NULL, &(Tolerance){.atol = 6}, &j);
    ck_assert_int_eq(j.verdict, VERDICT_rounding);
    rt_drop(&got);
    rt_drop(&want);
    arena_free(&a);
}
END_TEST

Suite *suite_debug_probe(void) {
    Suite *s = suite_create("debug_probe");
    TCase *t = tcase_create("probe");
    tcase_set_timeout(t, 120);
    tcase_add_test(t, healthy_graphs_do_not_fail);
    tcase_add_test(t, nested_results);
    tcase_add_test(t, what_eager_cannot_run_is_no_failure);
    tcase_add_test(t, time_is_limited);
    tcase_add_test(t, runs_and_memory_are_looked_at);
    tcase_add_test(t, a_planted_tail_is_unwritten);
    tcase_add_test(t, several_are_under_way_at_once);
    tcase_add_test(t, same_failures);
    tcase_add_test(t, verdicts);
    tcase_add_test(t, how_far_rounding_carries);
    tcase_add_test(t, the_place_of_a_difference);
    suite_add_tcase(s, t);
    return s;
}
