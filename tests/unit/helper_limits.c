// helper_limits.c: generated code that never ends, crashes or eats all memory costs one message;
// the next run gets its results as if nothing had been.
#include "core/base/file.h"
#include "core/helper/helper.h"
#include "core/session.h"
#include "tests/unit/unit.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define KERNEL  "static void cpp_fused"
#define WRAPPER "int call("

typedef struct Bad {
    const char *where, *statement; // put first into this function
    const char *says;              // a piece of the message
    int timeout_ms;
    size_t memory_bytes;
} Bad;

static const Bad bad[] = {
    {KERNEL, "volatile int forever = 1; while (forever) {}", "no answer within 400 ms in cpp_fused",
     400, 0},
    {KERNEL, "*(volatile int *)8 = 1;", "Segmentation fault in cpp_fused", 20000, 0},
    {KERNEL, "volatile int zero = 0; zero = 1 / zero;", "Floating point exception in cpp_fused",
     20000, 0},
    {KERNEL, "volatile char deep[1 << 26]; for (long i = 0; i < (1 << 26); i += 4096) deep[i] = 1;",
     "Segmentation fault in cpp_fused", 20000, 0},
    {WRAPPER, "for (;;) fx_empty(rt, 1, 4, 1, FX_DIMS(1 << 22), FX_DIMS(1));", "out of memory",
     20000, (size_t)1 << 30},
    // The helper gives generated code its runtime and nothing of the C library.
    {KERNEL, "extern int system(const char *); system(\"false\");", "undefined symbol 'system'",
     20000, 0},
};

static const char *spoiled(Arena *a, const char *text, const Bad *b) {
    const char *function = strstr(text, b->where);
    ck_assert_ptr_nonnull(function);
    const char *brace = strchr(function, '{');
    ck_assert_ptr_nonnull(brace);
    return arena_printf(a, "%.*s %s %s", (int)(brace + 1 - text), text, b->statement, brace + 1);
}

static Request *send(Session *s, Arena *a, const char *code, const Bad *b) {
    Message m = {.arena = a};
    RtValue *in;
    int n;
    Diag d = {.arena = a};
    ck_assert_msg(session_inputs(s, 0, a, &in, &n, &d), "%s", diag_first(&d));
    message_text(&m, "code", code);
    message_text(&m, "toolchain", "tcc");
    message_int(&m, "n_out", 1);
    message_int(&m, "threads", 1);
    for (int i = 0; i < n; i++) {
        ck_assert_int_eq(in[i].kind, RT_tensor);
        message_tensor(&m, arena_printf(a, "in%d", i), &in[i].tensor);
        tensor_drop(&in[i].tensor);
    }
    RequestLimits limits = {.timeout_ms = b ? b->timeout_ms : 0,
                            .memory_bytes = b ? b->memory_bytes : 0};
    Request *r = helpers_send(session_helpers(s), SERVICE_code, &m, limits);
    message_drop(&m);
    return r;
}

static void run_good(Session *s, Arena *a, const char *code, int after) {
    Request *r = send(s, a, code, NULL);
    ck_assert_msg(request_wait(session_helpers(s), r, NULL), "after %d: %s", after,
                  diag_first(request_diag(r)));
    const Field *out = message_find(request_reply(r), "out0");
    ck_assert(out && out->kind == FIELD_tensor && out->tensor.dtype == DT_f32);
    request_free(r);
}

START_TEST(bad_code_costs_one_message) {
    Arena a = {0};
    Diag d = {.arena = &a};
    SessionOptions options = {.grad = "none", .toolchain = "tcc"};
    Session *s = session_open("tests/corpus/cnn_pool/graph_code.txt", &options, &d);
    ck_assert_msg(s != NULL, "%s", diag_first(&d));
    const Artifact *code = pipeline_build(session_pipeline(s), 0, STAGE_kernels);
    ck_assert_ptr_nonnull(code);
    const char *text = arena_strdup(&a, code->code->text);
    for (int i = 0; i < COUNT(bad); i++) {
#ifdef __SANITIZE_ADDRESS__
        if (bad[i].memory_bytes)
            continue; // addresses have no limit then
#endif
        Request *r = send(s, &a, spoiled(&a, text, &bad[i]), &bad[i]);
        ck_assert(!request_wait(session_helpers(s), r, NULL));
        ck_assert_int_eq(request_state(r), REQ_failed);
        ck_assert_msg(strstr(diag_first(request_diag(r)), bad[i].says) != NULL, "%s: %s, not %s",
                      bad[i].statement, diag_first(request_diag(r)), bad[i].says);
        request_free(r);
        run_good(s, &a, text, i);
    }
    session_close(s);
    arena_free(&a);
}
END_TEST

START_TEST(cancelling_ends_a_loop) {
    Arena a = {0};
    Diag d = {.arena = &a};
    SessionOptions options = {.grad = "none", .toolchain = "tcc"};
    Session *s = session_open("tests/corpus/cnn_pool/graph_code.txt", &options, &d);
    ck_assert_msg(s != NULL, "%s", diag_first(&d));
    const char *text =
        arena_strdup(&a, pipeline_build(session_pipeline(s), 0, STAGE_kernels)->code->text);
    Request *r = send(s, &a, spoiled(&a, text, &bad[0]), NULL);
    bool cancel = true;
    ck_assert(!request_wait(session_helpers(s), r, &cancel));
    ck_assert_int_eq(request_state(r), REQ_cancelled);
    request_free(r);
    run_good(s, &a, text, -1);
    session_close(s);
    arena_free(&a);
}
END_TEST

// What a folder below hands in runs in the helper; its end is told with what it was at.
static bool moody(HelperCall *c) {
    const char *mood = message_get_text(c->message, "mood", "");
    strncpy(c->where, "the third case", EXEC_WHERE_BYTES - 1);
    if (!strcmp(mood, "crash"))
        abort();
    for (volatile int forever = 1; !strcmp(mood, "hang") && forever;)
        ;
    if (!strcmp(mood, "refuse"))
        diag_fail(c->diag, "no");
    message_text(c->reply, "mood", mood);
    return strcmp(mood, "refuse") != 0;
}

START_TEST(calls_are_handed_on) {
    static const struct {
        const char *mood, *says; // NULL: an answer
    } moods[] = {{"fine", NULL},   {"crash", "Aborted in the third case"},
                 {"fine", NULL},   {"hang", "no answer within 400 ms in the third case"},
                 {"refuse", "no"}, {"fine", NULL}};
    Arena a = {0};
    Diag d = {.arena = &a};
    Helpers *h = helpers_new(1, moody, &d);
    ck_assert_ptr_nonnull(h);
    for (int i = 0; i < COUNT(moods); i++) {
        Message m = {.arena = &a};
        message_text(&m, "mood", moods[i].mood);
        int limit = strcmp(moods[i].mood, "hang") ? 20000 : 400;
        Request *r = helpers_send(h, SERVICE_call, &m, (RequestLimits){.timeout_ms = limit});
        bool done = request_wait(h, r, NULL);
        ck_assert_msg(done == !moods[i].says, "%d: %s", i, diag_first(request_diag(r)));
        if (done)
            ck_assert_str_eq(message_get_text(request_reply(r), "mood", ""), moods[i].mood);
        else
            ck_assert_msg(strstr(diag_first(request_diag(r)), moods[i].says) != NULL, "%s",
                          diag_first(request_diag(r)));
        request_free(r);
    }
    helpers_free(h);
    arena_free(&a);
}
END_TEST

// Works for some time at each of several steps; the last may never end.
static bool slow(HelperCall *c) {
    const char *mood = message_get_text(c->message, "mood", "");
    bool endless = !strcmp(mood, "endless"), paced = !strcmp(mood, "paced");
    if (paced)
        *c->slow_ms = 20000;
    for (int step = 0; step < 5; step++) {
        int64_t until = clock_ns() + (paced ? 700 : 150) * INT64_C(1000000);
        snprintf(c->where, EXEC_WHERE_BYTES, "step %d", step);
        while (clock_ns() < until || (endless && step == 3))
            ;
        if (paced)
            break;
    }
    return true;
}

static Request *send_slow(Helpers *h, Arena *a, const char *mood) {
    Message m = {.arena = a};
    message_text(&m, "mood", mood);
    return helpers_send(h, SERVICE_call, &m, (RequestLimits){.timeout_ms = 400, .by_step = true});
}

// The limit is that of a step: many may take longer, one that never ends is found. Who has measured
// that everything is slow here may ask for more.
START_TEST(a_step_has_the_time) {
    static const struct {
        const char *mood, *says; // NULL: an answer
    } moods[] = {{"fine", NULL}, {"endless", "no answer within 400 ms in step 3"}, {"paced", NULL},
                 {"endless", "no answer within 400 ms in step 3"}};
    Arena a = {0};
    Diag d = {.arena = &a};
    Helpers *h = helpers_new(1, slow, &d);
    ck_assert_ptr_nonnull(h);
    for (int i = 0; i < COUNT(moods); i++) {
        Request *r = send_slow(h, &a, moods[i].mood);
        bool done = request_wait(h, r, NULL);
        const char *said = done ? "" : diag_first(request_diag(r));
        ck_assert_msg(done == !moods[i].says, "%s: %s", moods[i].mood, said);
        ck_assert_msg(done || strstr(said, moods[i].says), "%s", said);
        ck_assert_int_eq(request_timed_out(r), !done);
        request_free(r);
    }
    helpers_free(h);
    arena_free(&a);
}
END_TEST

static pid_t child_of_this(void) {
    Arena a = {0};
    Diag d = {.arena = &a};
    Str text = file_read(&a, arena_printf(&a, "/proc/self/task/%d/children", (int)getpid()), &d);
    long pid = text.ptr ? strtol(text.ptr, NULL, 10) : 0;
    arena_free(&a);
    return (pid_t)pid;
}

// One that gets no processor for longer than the limit is not taken for one that hangs.
START_TEST(waiting_for_a_processor_is_no_hang) {
    Arena a = {0};
    Diag d = {.arena = &a};
    Helpers *h = helpers_new(1, slow, &d);
    ck_assert_ptr_nonnull(h);
    pid_t pid = child_of_this();
    if (pid > 0) { // the kernel tells children
        Request *r = send_slow(h, &a, "fine");
        helpers_poll(h);
        kill(pid, SIGSTOP);
        for (int64_t until = clock_ns() + INT64_C(700000000); clock_ns() < until;)
            helpers_poll(h);
        ck_assert_int_eq(request_state(r), REQ_running);
        kill(pid, SIGCONT);
        ck_assert_msg(request_wait(h, r, NULL), "%s", diag_first(request_diag(r)));
        request_free(r);
    }
    helpers_free(h);
    arena_free(&a);
}
END_TEST

Suite *suite_helper_limits(void) {
    const TTest *const tests[] = {bad_code_costs_one_message, cancelling_ends_a_loop,
                                  calls_are_handed_on, a_step_has_the_time,
                                  waiting_for_a_processor_is_no_hang};
    return unit_suite("helper_limits", tests, COUNT(tests));
}
