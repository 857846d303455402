// debug_minify.c: how small graphs with a planted fault become, that they fail as before, that
// results keep their structure, that a search which was stopped goes on where it was, and what can
// be done by hand.
#include "core/debug/minify.h"
#include "core/base/file.h"
#include "core/session.h"
#include "tests/unit/unit.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

typedef struct Case {
    Arena a;
    Session *s; // whose helpers are used
    ProbeQuery q;
} Case;

static void open_session(Case *c) {
    Diag d = {.arena = &c->a};
    SessionOptions o = {.toolchain = "tcc"};
    c->s = session_open("tests/corpus/chain/graph_code.txt", &o, &d);
    ck_assert_msg(c->s != NULL, "%s", diag_first(&d));
}

static RtValue wave(Arena *a, int ndim, const int64_t *size, double scale) {
    RtValue v = {.kind = RT_tensor};
    Diag d = {.arena = a};
    ck_assert(tensor_new(&v.tensor, DT_f32, ndim, size, &d));
    for (int64_t i = 0; i < tensor_numel(&v.tensor); i++)
        tensor_set_f64(&v.tensor, i, scale * sin(1.7 * (double)i + 0.3));
    return v;
}

// A question about a text whose inputs are f32[4, 10] and f32[10].
static void open_case(Case *c, const char *text, const char *fault) {
    *c = (Case){0};
    open_session(c);
    RtValue *in = ARENA_ARRAY(&c->a, 2, RtValue);
    bool *needs = ARENA_ARRAY(&c->a, 2, bool);
    Overrides *o = overrides_new(&c->a);
    in[0] = wave(&c->a, 2, (int64_t[]){4, 10}, 1);
    in[1] = wave(&c->a, 1, (int64_t[]){10}, 0.5);
    if (fault)
        decide_override(o, DECIDE_fault, fault, true);
    c->q = (ProbeQuery){.text = {text, strlen(text)},
                        .inputs = in,
                        .n_inputs = 2,
                        .needs_grad = needs,
                        .overrides = o,
                        .toolchain = toolchain_find("tcc"),
                        .rung = RUNG_full,
                        .limit_ms = 20000};
}

static void close_case(Case *c) {
    for (int i = 0; i < c->q.n_inputs; i++) {
        RtValue v = c->q.inputs[i];
        rt_drop(&v);
    }
    session_close(c->s);
    arena_free(&c->a);
}

static Minify *started(Case *c, const MinifyOptions *o) {
    Diag d = {.arena = &c->a};
    Minify *m = minify_new(session_helpers(c->s), false, &c->q, o);
    ck_assert_msg(minify_start(m, &d), "%s", diag_first(&d));
    return m;
}

static Minify *minified(Case *c, const MinifyOptions *o) {
    Minify *m = started(c, o);
    minify_wait(m, NULL);
    return m;
}

#define HEAD                                                                                       \
    "class GraphModule(torch.nn.Module):\n"                                                        \
    "    def forward(self, L_x_: \"f32[4, 10][10, 1]cpu\", L_y_: \"f32[10][1]cpu\"):\n"           \
    "        l_x_ = L_x_\n"                                                                        \
    "        l_y_ = L_y_\n"

// n ops of which one is gelu.
static const char *chain(Arena *a, int n, int wrong) {
    static const char *const ops[] = {"%s + l_y_", "%s * 1.01", "%s - l_y_", "%s + 0.1",
                                      "%s * -1.0"};
    Buf b = {.arena = a};
    const char *last = "l_x_";
    buf_puts(&b, HEAD);
    for (int i = 0; i < n; i++) {
        const char *op = ops[i % COUNT(ops)], *at = strstr(op, "%s");
        buf_printf(&b, "        v%d = ", i);
        if (i == wrong)
            buf_printf(&b, "torch.nn.functional.gelu(%s)\n", last);
        else
            buf_printf(&b, "%s%s\n", last, at + 2);
        last = arena_printf(a, "v%d", i);
    }
    buf_printf(&b, "        return (%s,)\n", last);
    return buf_str(&b);
}

static void check_small(const Minify *m, int nodes) {
    ck_assert_msg(minify_state(m) == MINIFY_done, "%s", minify_why(m));
    ck_assert(minify_kind_kept(m));
    ck_assert_int_le(minify_best(m)->nodes, nodes);
}

START_TEST(one_wrong_op_in_a_chain) {
    // By the place that compare finds, and without it by cutting alone.
    static const struct {
        int n, wrong;
        unsigned without;
    } cases[] = {{200, 120, 0},
                 {200, 3, 0},
                 {200, 120, 1u << STRATEGY_around},
                 {1000, 611, 0},
                 {1000, 611, 1u << STRATEGY_around}};
    for (int i = 0; i < COUNT(cases); i++) {
        Case c;
        Arena a = {0};
        MinifyOptions o = {.without = cases[i].without};
        open_case(&c, chain(&a, cases[i].n, cases[i].wrong), "gelu_constant");
        Minify *m = minified(&c, &o);
        const MinifyStep *first = minify_first(m), *best = minify_best(m);
        ck_assert_int_eq(first->nodes, cases[i].n + 3);
        check_small(m, 3);
        ck_assert_int_eq(best->place.stage, STAGE_joint);
        ck_assert_int_eq(best->failure.kind, FAIL_accuracy);
        // A graph of so many nodes is not asked about node by node.
        ck_assert_int_le(minify_queries(m), cases[i].without ? 90 : 50);
        GRAPH_EACH (best->candidate->graph, n)
            if (n->op == FX_call_function)
                ck_assert_str_eq(n->target, "torch.nn.functional.gelu");
        minify_free(m);
        close_case(&c);
        arena_free(&a);
    }
}
END_TEST

START_TEST(nothing_fails) {
    Case c;
    Arena a = {0};
    open_case(&c, chain(&a, 12, 6), NULL);
    Minify *m = minified(&c, &(MinifyOptions){0});
    ck_assert_int_eq(minify_state(m), MINIFY_refused);
    ck_assert_ptr_nonnull(strstr(minify_why(m), "agrees with eager"));
    ck_assert(!minify_kind_kept(m));
    minify_free(m);
    close_case(&c);
    // Wrong numbers are no crash.
    open_case(&c, chain(&a, 12, 6), "gelu_constant");
    m = minified(&c, &(MinifyOptions){.check = FAIL_crash});
    ck_assert_int_eq(minify_state(m), MINIFY_refused);
    ck_assert_ptr_nonnull(strstr(minify_why(m), "crash"));
    minify_free(m);
    close_case(&c);
    arena_free(&a);
}
END_TEST

START_TEST(other_failures_keep_their_kind) {
    static const struct {
        const char *fault;
        FailureKind kind;
        int limit;
    } cases[] = {{"broken_c", FAIL_compile, 0},
                 {"out_of_memory_write", FAIL_crash, 0},
                 {"endless_allocation", FAIL_error, 0},
                 {"endless_loop", FAIL_hang, 400}};
    for (int i = 0; i < COUNT(cases); i++) {
        Case c;
        open_case(&c,
                  HEAD "        a = l_x_ + l_y_\n"
                       "        b = torch.sin(a)\n"
                       "        s = b.sum(1)\n"
                       "        t = torch.softmax(b, dim = -1)\n"
                       "        u = t * 2\n"
                       "        return (u, s)\n",
                  cases[i].fault);
        Minify *m = minified(&c, &(MinifyOptions){.limit_ms = cases[i].limit});
        check_small(m, 4); // one call and what it reads
        ck_assert_int_eq(minify_best(m)->nodes - minify_best(m)->inputs, 2);
        ck_assert_int_eq(minify_best(m)->failure.kind, cases[i].kind);
        ck_assert_int_eq(minify_first(m)->failure.kind, cases[i].kind);
        minify_free(m);
        close_case(&c);
    }
}
END_TEST

// What eager reads behind the first write of a list, compiled code reads before: that is told, and
// a call that gives nothing is not returned.
START_TEST(a_list_that_is_written_and_read) {
    Case c;
    open_case(&c,
              HEAD "        a = l_x_ * 2\n        b = l_x_ + 1\n        z = l_x_ - l_y_\n"
                   "        _foreach_add_ = torch._foreach_add_([b, a], [z, b])\n"
                   "        s = b.sum(1)\n        return (a, s)\n",
              NULL);
    Minify *m = minified(&c, &(MinifyOptions){0});
    check_small(m, 8);
    ck_assert_str_eq(minify_best(m)->place.node, "_foreach_add_");
    ck_assert(str_starts(minify_best(m)->place.reads, "b as it was before the call"));
    ck_assert_int_eq(minify_best(m)->place.stage, STAGE_functional);
    const Node *o = graph_output_node(minify_best(m)->candidate->graph);
    ck_assert_str_ne(o->args[0].at[0].node->name, "_foreach_add_");
    minify_free(m);
    close_case(&c);
}
END_TEST

// Of two saved values that are mixed up the node of backward is named that reads the wrong one.
START_TEST(what_backward_reads_is_named) {
    Case c;
    open_case(&c,
              HEAD "        a = torch.sin(l_x_)\n        w = torch.outer(l_y_, l_y_)\n"
                   "        b = a @ w\n        c = torch.exp(b)\n        d = c @ w\n"
                   "        e = torch.exp(d)\n        return (e,)\n",
              "saved_swapped");
    ((bool *)c.q.needs_grad)[0] = ((bool *)c.q.needs_grad)[1] = true;
    Minify *m = minified(&c, &(MinifyOptions){0});
    ck_assert_msg(minify_state(m) == MINIFY_done, "%s", minify_why(m));
    for (int i = 0; i < 2; i++) {
        const Divergence *place = i ? &minify_best(m)->place : &minify_first(m)->place;
        ck_assert_int_eq(place->stage, STAGE_partition);
        ck_assert_str_eq(place->half, "backward");
        ck_assert(*place->node && *place->at);
    }
    minify_free(m);
    close_case(&c);
}
END_TEST

// A list stays a list, a tuple a tuple, one by itself alone; what is right and not needed goes.
START_TEST(results_keep_their_structure) {
    static const struct {
        const char *returned;
        ValueKind kind;
    } cases[] = {{"[a, g]", VAL_list}, {"(a, g)", VAL_tuple}, {"g", VAL_node}};
    for (int i = 0; i < COUNT(cases); i++) {
        Case c;
        Arena a = {0};
        open_case(&c,
                  arena_printf(&a,
                               HEAD "        a = torch.relu(l_x_)\n"
                                    "        b = a + l_y_\n"
                                    "        g = torch.nn.functional.gelu(b)\n"
                                    "        return %s\n",
                               cases[i].returned),
                  "gelu_constant");
        Minify *m = minified(&c, &(MinifyOptions){0});
        check_small(m, 3);
        const Node *out = graph_output_node(minify_best(m)->candidate->graph);
        ck_assert_int_eq(out->args[0].kind, cases[i].kind);
        ck_assert_int_eq(minify_best(m)->outputs, 1);
        minify_free(m);
        close_case(&c);
        arena_free(&a);
    }
}
END_TEST

// Running statistics are written: they stay inputs of their own, though any tensor of their size
// would show the failure, too.
START_TEST(written_inputs_are_not_merged) {
    static const char MODEL[] =
        "class GraphModule(torch.nn.Module):\n"
        "    def forward(self, L_x_: \"f32[6, 3][3, 1]cpu\", L_m_: \"f32[3][1]cpu\", L_v_: "
        "\"f32[3][1]cpu\", L_w_: \"f32[3][1]cpu\", L_b_: \"f32[3][1]cpu\"):\n"
        "        a = torch.nn.functional.batch_norm(L_x_, L_m_, L_v_, L_w_, L_b_, True, 0.1, "
        "1e-05)\n"
        "        return (a,)\n";
    Case c;
    open_case(&c, MODEL, "broken_c");
    RtValue *in = ARENA_ARRAY(&c.a, 5, RtValue);
    bool *needs = ARENA_ARRAY(&c.a, 5, bool);
    for (int i = 0; i < 2; i++) {
        RtValue v = c.q.inputs[i];
        rt_drop(&v);
    }
    in[0] = wave(&c.a, 2, (int64_t[]){6, 3}, 1);
    for (int i = 1; i < 5; i++)
        in[i] = wave(&c.a, 1, (int64_t[]){3}, 0.1 * i);
    c.q.inputs = in;
    c.q.n_inputs = 5;
    c.q.needs_grad = needs;
    Minify *m = minified(&c, &(MinifyOptions){0}); // all of them may be left out
    check_small(m, 3);
    minify_free(m);
    m = minified(&c, &(MinifyOptions){.without = 1u << STRATEGY_optional});
    check_small(m, 8);
    const Graph *g = minify_best(m)->candidate->graph;
    // Whatever of them is left has no other reader's name.
    const Node *norm = graph_find(g, "a");
    ck_assert_ptr_nonnull(norm);
    ck_assert(norm->args[1].node != norm->args[2].node);
    ck_assert(norm->args[1].node != norm->args[3].node);
    ck_assert(norm->args[2].node != norm->args[4].node);
    ck_assert(norm->args[3].node == norm->args[4].node); // these are only read
    minify_free(m);
    close_case(&c);
}
END_TEST

static const char *temp_file(Arena *a, const char **dir) {
    Diag d = {.arena = a};
    *dir = dir_temp(a, &d);
    ck_assert_ptr_nonnull(*dir);
    return path_join(a, *dir, "record.txt");
}

// Killed after each number of queries, with half a line written: the end is the same.
START_TEST(a_stopped_search_goes_on) {
    Arena a = {0};
    Diag d = {.arena = &a};
    MinifyOptions o = {.without = 1u << STRATEGY_around};
    Case c;
    open_case(&c, chain(&a, 60, 31), "gelu_constant");
    Minify *whole = minified(&c, &o);
    int all = minify_queries(whole), steps = minify_n_steps(whole);
    check_small(whole, 3);
    for (int stop = 6; stop < all; stop += 9) {
        const char *dir;
        o.record = temp_file(&a, &dir);
        Minify *m = started(&c, &o);
        while (!minify_poll(m) && minify_queries(m) < stop)
            continue;
        minify_free(m);
        FILE *f = fopen(o.record, "a");
        ck_assert_ptr_nonnull(f);
        fputs("try 0123", f);
        fclose(f);
        m = minified(&c, &o);
        check_small(m, 3);
        ck_assert_int_eq(minify_best(m)->candidate->hash, minify_best(whole)->candidate->hash);
        ck_assert_int_eq(minify_n_steps(m), steps);
        // Again: only what fails is asked, as steps need their failure.
        minify_free(m);
        m = minified(&c, &o);
        ck_assert_int_eq(minify_best(m)->candidate->hash, minify_best(whole)->candidate->hash);
        ck_assert_int_le(minify_queries(m), RUNG_count + steps + 4);
        minify_free(m);
        ck_assert(dir_remove(dir, &d));
    }
    minify_free(whole);
    close_case(&c);
    arena_free(&a);
}
END_TEST

START_TEST(a_record_of_another_search_is_refused) {
    static const char *const bad[] = {
        "fxray minify 1 0123456789abcdef\n",
        "something else\n",
        "\n",
        "fxray minify 1 \n",
        NULL,
    };
    static const char *const lines[] = {
        "try 0123456789abcdef maybe\n", "try 12\n", "undo\n", "undo 1 nothing\n", "keep 1\n",
        "failed 12\n", "failed 0123456789abcdef crash\n", "failed 0123456789abcdef accuracy run\n",
        "failed 0123456789abcdef crash nowhere\tx\n",
        "keep 99999999999999999999 v1\n", "jump 1 2\n",
    };
    Arena a = {0};
    const char *dir;
    Diag d = {.arena = &a};
    MinifyOptions o = {.record = temp_file(&a, &dir)};
    Case c;
    open_case(&c, chain(&a, 5, 2), "gelu_constant");
    Minify *m = started(&c, &o);
    minify_free(m);
    Str head = file_read(&a, o.record, &d);
    ck_assert_uint_gt(head.len, 20);
    for (int i = 0; i < COUNT(lines) + COUNT(bad) - 1; i++) {
        Diag e = {.arena = &a};
        const char *text = i < COUNT(lines) ? arena_printf(&a, "%s%s", head.ptr, lines[i])
                                            : bad[i - COUNT(lines)];
        ck_assert(file_write(o.record, text, strlen(text), &d));
        m = minify_new(session_helpers(c.s), false, &c.q, &o);
        ck_assert_msg(!minify_start(m, &e), "%s", text);
        ck_assert_int_ge(e.errors, 1);
        ck_assert_int_eq(e.at[0].line, i < COUNT(lines) ? 2 : 1);
        minify_free(m);
    }
    ck_assert(dir_remove(dir, &d));
    close_case(&c);
    arena_free(&a);
}
END_TEST

// Of what is no wrong number the record says how it fails: when the search is made again none of it
// is asked again, and the words are those of the record, ends of lines and all.
START_TEST(failures_are_on_record) {
    Arena a = {0};
    Diag d = {.arena = &a};
    Case c;
    const char *dir;
    MinifyOptions o = {.record = temp_file(&a, &dir)};
    open_case(&c, chain(&a, 12, 7), "broken_c");
    Minify *m = minified(&c, &o);
    uint64_t hash = minify_best(m)->candidate->hash;
    int steps = minify_n_steps(m), asked = minify_queries(m);
    ck_assert_int_gt(steps, 3);
    minify_free(m);
    Str text = file_read(&a, o.record, &d);
    Buf changed = {.arena = &a};
    for (char *line = strtok(arena_strdup(&a, text.ptr), "\n"); line; line = strtok(NULL, "\n"))
        if (str_starts(line, "failed "))
            buf_printf(&changed, "%.*s\tone\\ntwo\\\\n\\tthree\n",
                       (int)(strrchr(line, '\t') - line), line);
        else
            buf_printf(&changed, "%s\n", line);
    ck_assert(file_write(o.record, buf_str(&changed), changed.len, &d));
    m = minified(&c, &o);
    ck_assert_uint_eq(minify_best(m)->candidate->hash, hash);
    ck_assert_str_eq(minify_best(m)->failure.message, "one\ntwo\\n\tthree");
    ck_assert_int_eq(minify_n_steps(m), steps);
    ck_assert_msg(minify_queries(m) < asked - steps, "%d, of %d", minify_queries(m), asked);
    minify_free(m);
    ck_assert(dir_remove(dir, &d));
    close_case(&c);
    arena_free(&a);
}
END_TEST

START_TEST(by_hand) {
    Arena a = {0};
    Diag d = {.arena = &a};
    Case c;
    const char *dir;
    MinifyOptions o = {.no_simplify = true, .record = temp_file(&a, &dir)};
    open_case(&c, chain(&a, 40, 21), "gelu_constant");
    Minify *m = minified(&c, &o);
    check_small(m, 3);
    // Back one step: that graph is not taken again.
    uint64_t last = minify_best(m)->candidate->hash;
    ck_assert(minify_undo(m));
    minify_wait(m, NULL);
    ck_assert_uint_ne(minify_best(m)->candidate->hash, last);
    ck_assert(minify_kind_kept(m));
    ck_assert(!minify_drop(m, "nonsense", &d));
    ck_assert(!minify_keep(m, "nonsense", &d));
    uint64_t end = minify_best(m)->candidate->hash;
    minify_free(m);
    // It is in the record.
    m = minified(&c, &o);
    ck_assert_uint_eq(minify_best(m)->candidate->hash, end);
    minify_free(m);
    ck_assert(dir_remove(dir, &d));
    // What is kept stays; what is dropped goes at once.
    o.record = NULL;
    m = started(&c, &o);
    while (minify_state(m) == MINIFY_original)
        minify_poll(m);
    ck_assert(minify_keep(m, "v23", &d));
    minify_pause(m);
    int asked = minify_queries(m);
    for (int i = 0; i < 20; i++)
        minify_poll(m);
    ck_assert_int_eq(minify_queries(m), asked);
    minify_resume(m);
    minify_wait(m, NULL);
    const Node *kept = graph_find(minify_best(m)->candidate->graph, "v23");
    ck_assert(kept && kept->op != FX_placeholder); // and does not become an input
    ck_assert_ptr_nonnull(graph_find(minify_best(m)->candidate->graph, "v21"));
    ck_assert_int_ge(minify_best(m)->nodes, 4);
    minify_free(m);
    close_case(&c);
    arena_free(&a);
}
END_TEST

static void poll_until_said(Minify *m) {
    int64_t end = clock_ns() + (int64_t)30e9;
    while (!*minify_hand_said(m)) {
        minify_poll(m);
        ck_assert_int_lt(clock_ns(), end);
    }
}

// In a pause what is asked for by hand is tried, and nothing else; it is said what came of it.
START_TEST(by_hand_in_a_pause) {
    Arena a = {0};
    Diag d = {.arena = &a};
    Case c;
    open_case(&c, chain(&a, 20, 11), "gelu_constant");
    Minify *m = started(&c, &(MinifyOptions){.no_simplify = true});
    while (minify_state(m) == MINIFY_original)
        minify_poll(m);
    minify_pause(m);
    int nodes = minify_best(m)->nodes, asked = minify_queries(m);
    ck_assert(minify_drop(m, "v3", &d));
    poll_until_said(m);
    ck_assert_str_eq(minify_hand_said(m),
                     arena_printf(&a, "without v3 it fails in the same way: %d nodes",
                                  minify_best(m)->nodes));
    ck_assert_int_lt(minify_best(m)->nodes, nodes);
    ck_assert_int_eq(minify_state(m), MINIFY_paused);
    ck_assert_int_eq(minify_queries(m), asked + 1);
    // Without the wrong node nothing fails.
    nodes = minify_best(m)->nodes;
    ck_assert(minify_drop(m, "v11", &d));
    poll_until_said(m);
    ck_assert_str_eq(minify_hand_said(m), "v11 stays: without it nothing fails");
    ck_assert_int_eq(minify_best(m)->nodes, nodes);
    // The step is taken back, and the search goes on to the end.
    ck_assert(minify_undo(m));
    ck_assert_ptr_nonnull(graph_find(minify_best(m)->candidate->graph, "v3"));
    ck_assert(!minify_drop(m, "x", &d) && !minify_keep(m, "output", &d));
    minify_resume(m);
    minify_wait(m, NULL);
    ck_assert_int_eq(minify_best(m)->nodes, 3);
    // What is gone is in a step before.
    Diag gone = {.arena = &a};
    ck_assert(!minify_keep(m, "v3", &gone) && gone.at[0].hint);
    minify_free(m);
    close_case(&c);
    arena_free(&a);
}
END_TEST

// The command is the judge: here, whether the text still calls tanh.
START_TEST(a_command_decides) {
    Case c;
    open_case(&c,
              HEAD "        a = l_x_ + l_y_\n"
                   "        b = torch.tanh(a)\n"
                   "        s = torch.sin(b)\n"
                   "        t = s * 2\n"
                   "        return (t, s)\n",
              NULL);
    MinifyOptions o = {.command = "test -f $1/inputs.safetensors || exit 125; "
                                  "grep -q tanh $1/graph.txt && exit 7; true"};
    Minify *m = minified(&c, &o);
    check_small(m, 3);
    ck_assert_ptr_nonnull(graph_find(minify_best(m)->candidate->graph, "b"));
    ck_assert_str_eq(minify_best(m)->failure.error_class, "exit code 7");
    minify_free(m);
    o.command = "true";
    m = minified(&c, &o);
    ck_assert_int_eq(minify_state(m), MINIFY_refused);
    minify_free(m);
    close_case(&c);
}
END_TEST

Suite *suite_debug_minify(void);
Suite *suite_debug_minify(void) {
    Suite *s = suite_create("debug_minify");
    TCase *t = tcase_create("debug_minify");
    tcase_set_timeout(t, 240);
    tcase_add_test(t, one_wrong_op_in_a_chain);
    tcase_add_test(t, nothing_fails);
    tcase_add_test(t, other_failures_keep_their_kind);
    tcase_add_test(t, a_list_that_is_written_and_read);
    tcase_add_test(t, what_backward_reads_is_named);
    tcase_add_test(t, results_keep_their_structure);
    tcase_add_test(t, written_inputs_are_not_merged);
    tcase_add_test(t, a_stopped_search_goes_on);
    tcase_add_test(t, a_record_of_another_search_is_refused);
    tcase_add_test(t, failures_are_on_record);
    tcase_add_test(t, by_hand);
    tcase_add_test(t, by_hand_in_a_pause);
    tcase_add_test(t, a_command_decides);
    suite_add_tcase(s, t);
    return s;
}
