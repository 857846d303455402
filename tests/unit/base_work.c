// base_work.c: long work tells how far it is and can be stopped anywhere: what was stopped leaves
// nothing behind, and is built again to the same bytes.
#include "app/app.h"
#include "core/base/work.h"
#include "core/session.h"
#include "tests/unit/unit.h"

#include <stdio.h>
#include <string.h>

typedef struct Seen {
    int calls, stop_at; // stop_at: the call that is answered with "stop", from 1; 0: none
    double low, high, last;
    bool back; // it went backwards
    char what[64];
} Seen;

static bool watch(void *ctx, const char *what, double done) {
    Seen *s = ctx;
    s->calls++;
    snprintf(s->what, sizeof s->what, "%s", what);
    s->back |= done < s->last - 1e-9;
    s->last = done;
    s->low = done < s->low ? done : s->low;
    s->high = done > s->high ? done : s->high;
    return s->calls != s->stop_at;
}

START_TEST(parts_lie_in_parts) {
    Arena a = {0};
    Diag d = {.arena = &a};
    Seen s = {.low = 9};
    work_watch(watch, &s);
    WorkPart all = work_enter("all", 0, 1), half = work_enter("half", 0.5, 1);
    ck_assert(work_goes_on(&d, 0, 4));
    ck_assert_double_eq_tol(s.last, 0.5, 1e-9);
    WorkPart inner = work_enter(NULL, 0.5, 1); // 0.75..1 of all, named as the part around it
    ck_assert(work_goes_on(&d, 1, 2));
    ck_assert_double_eq_tol(s.last, 0.875, 1e-9);
    ck_assert_str_eq(s.what, "half");
    work_leave(inner);
    work_leave(half);
    ck_assert(work_goes_on(&d, 0, 0)); // nobody knows
    ck_assert_double_lt(s.last, 0);
    WorkPart kept = work_enter_all("grep");
    work_enter("inner", 0, 1);
    work_goes_on(&d, 0, 1);
    ck_assert_str_eq(s.what, "grep");
    work_leave(kept);
    work_leave(all);
    ck_assert_int_eq(d.errors, 0);
    work_watch(NULL, NULL);
    arena_free(&a);
}
END_TEST

START_TEST(a_stop_holds_until_the_next_work) {
    Arena a = {0};
    Diag d = {.arena = &a};
    Seen s = {.stop_at = 1};
    work_watch(watch, &s);
    ck_assert(!work_goes_on(&d, 0, 1));
    ck_assert(!work_goes_on(&d, 7, 5000)); // not thrown away by counting
    ck_assert_int_eq(s.calls, 1);          // nobody is asked twice
    ck_assert_str_eq(diag_first(&d), "stopped");
    ck_assert(work_stopped());
    work_watch(watch, &s);
    ck_assert(!work_stopped() && work_goes_on(&d, 0, 1));
    work_watch(NULL, NULL);
    arena_free(&a);
}
END_TEST

// All text of a model: every stage of every unit.
static const char *all_text(Session *s, Arena *a) {
    Buf b = {.arena = a};
    for (int u = 0; u < pipeline_n_units(session_pipeline(s)); u++)
        for (int stage = 0; stage < STAGE_count; stage++) {
            const Artifact *x = pipeline_build(session_pipeline(s), u, (StageId)stage);
            if (x && x->kind != ART_none)
                artifact_print(&b, x);
        }
    return buf_str(&b);
}

static void stop_everywhere(const char *model, const char *grad, int by) {
    Arena a = {0};
    Diag d = {.arena = &a};
    SessionOptions o = {.grad = grad};
    Session *s = session_open(model, &o, &d);
    ck_assert_ptr_nonnull(s);
    Seen whole = {.low = 9};
    work_watch(watch, &whole);
    const char *want = all_text(s, &a);
    session_close(s);
    ck_assert_int_gt(whole.calls, 50);
    ck_assert(whole.low >= 0 && whole.high <= 1);
    for (int k = 1; k <= whole.calls; k += by) {
        Seen stop = {.stop_at = k};
        work_watch(NULL, NULL);
        s = session_open(model, &o, &d);
        work_watch(watch, &stop);
        all_text(s, &a);
        ck_assert(work_stopped());
        work_watch(NULL, NULL);
        const char *got = all_text(s, &a);
        ck_assert_msg(!strcmp(got, want), "%s: stopped at %d of %d in %s, then built: other text",
                      model, k, whole.calls, stop.what);
        session_close(s);
    }
    arena_free(&a);
}

START_TEST(stopped_anywhere_it_is_built_again_to_the_same_bytes) {
    stop_everywhere("samples/norm.pt2", "params", 1);
    stop_everywhere("samples/classifier.txt", "params", 3);
    stop_everywhere("samples/forms/counter_export.txt", "none", 1);
}
END_TEST

START_TEST(progress_tells_the_time_that_is_left) {
    Arena a = {0};
    Screen s = {0};
    Buf b = {.arena = &a};
    screen_resize(&s, 90, 2);
    draw_progress(&s, "joint", 0.25, 2000000000);
    screen_print(&s, &b);
    ck_assert_ptr_nonnull(strstr(buf_str(&b), " joint  ███████·"));
    ck_assert_ptr_nonnull(strstr(buf_str(&b), "· 25 %  6.0 s left   Ctrl-C stops it\n"));
    buf_truncate(&b, 0);
    draw_progress(&s, "run", -1, 2500000000);
    screen_print(&s, &b);
    ck_assert_ptr_nonnull(strstr(buf_str(&b), "\n run  for 2.5 s   Ctrl-C stops it\n"));
    buf_truncate(&b, 0);
    for (int cols = 1; cols < 60; cols++) { // however small the screen is
        screen_resize(&s, cols, 1);
        draw_progress(&s, "a long name of something", 2, 1);
    }
    screen_free(&s);
    arena_free(&a);
}
END_TEST

Suite *suite_base_work(void) {
    const TTest *const tests[] = {
        parts_lie_in_parts,
        a_stop_holds_until_the_next_work,
        stopped_anywhere_it_is_built_again_to_the_same_bytes,
        progress_tells_the_time_that_is_left,
    };
    return unit_suite("base_work", tests, (int)(sizeof tests / sizeof *tests));
}
