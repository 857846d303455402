// app_session.c: what `save session` writes does everything again: the same screen, the same
// decisions; layouts by name; grep finds in every stage and leads there.
#include "app/app.h"
#include "app/breaks.h"
#include "app/model.h"
#include "core/base/file.h"
#include "tests/unit/unit.h"
#include "views/match.h"
#include "views/results.h"

#include <stdlib.h>
#include <string.h>

static App app;
static SessionOptions options;

static void start(int cols, int rows) {
    options = (SessionOptions){.grad = "none", .toolchain = "tcc"};
    app_init(&app, cols, rows);
    app.options = &options;
    app.hide_times = true;
}

static void end(void) {
    app_close(&app);
    app = (App){0};
}

static const char *screen_text(Arena *a) {
    Buf b = {.arena = a};
    app.message[0] = 0;
    app_draw(&app);
    screen_print(&app.screen, &b);
    return buf_str(&b);
}

static void run(const char *line) {
    ck_assert_msg(app_run(&app, line), "%s: %s", line, app.message);
    app_draw(&app);
}

static void same_screen(const char *got, const char *want, int upto) {
    for (int row = 1; *got || *want; row++) {
        size_t n = strcspn(got, "\n"), m = strcspn(want, "\n");
        bool steps = str_starts(got, " steps"); // counts what is built by now
        // The chain through the stages ends where they are not built yet.
        size_t least = n < m ? n : m, upto_there = str_starts(got, " src ") ? least : n;
        bool same = upto_there == (str_starts(want, " src ") ? least : m) &&
                    !memcmp(got, want, upto_there);
        ck_assert_msg(steps || same, "after %d, row %d:\n%.*s\n%.*s", upto, row, (int)n, got,
                      (int)m, want);
        got += n + (got[n] != 0);
        want += m + (want[m] != 0);
    }
}

// Lines of what a person may have done.
static const char *const done[] = {
    "stage post_fusion ; layout 2 ; split below ; stage joint",
    "nofuse op0 op1 ; set max_fusion_size=8",
    "break op gelu ; goto erf ; watch erf ; mark a",
    "focus 1 ; stage fx ; step rewrite 14 ; bind <C-t> view timing",
    "backend eager ; set spelling=full ; view passes ; zoom",
    "diff #3 #4",
    "layout 5 ; stage kernels ; lock off ; close",
    "set grad=params ; stage joint ; watch mul_7",
};

START_TEST(a_session_does_it_again) {
    Arena a = {0};
    Diag d = {.arena = &a};
    char *dir = dir_temp(&a, &d), *path = path_join(&a, dir, "s.fxr");
    for (int upto = 1; upto <= COUNT(done); upto++) {
        start(120, 40);
        ck_assert(app_open(&app, "samples/block.pt2"));
        for (int i = 0; i < upto; i++)
            run(done[i]);
        run(arena_printf(&a, "save session %s", path));
        app.fresh.n = 0; // what was just made is no longer said to be new
        const char *want = screen_text(&a);
        int overrides = overrides_count(session_overrides(app.session));
        int breaks = break_list(&app)->at.n;
        end();
        start(120, 40);
        options.grad = NULL;
        ck_assert_msg(app_script(&app, path), "%s", app.message);
        app.fresh.n = 0;
        same_screen(screen_text(&a), want, upto);
        ck_assert_int_eq(overrides_count(session_overrides(app.session)), overrides);
        ck_assert_int_eq(break_list(&app)->at.n, breaks);
        ck_assert(app.options->grad && !strcmp(app.options->grad, "none"));
        end();
    }
    dir_remove(dir, &d);
    arena_free(&a);
}
END_TEST

// Layouts are kept in a folder of this test's own.
static char *own_state(Arena *a, Diag *d) {
    char *dir = dir_temp(a, d);
    setenv("XDG_STATE_HOME", dir, 1);
    return dir;
}

START_TEST(layouts_are_kept_by_name) {
    Arena a = {0};
    Diag d = {.arena = &a};
    char *dir = own_state(&a, &d);
    start(160, 40);
    ck_assert(app_open(&app, "samples/norm.pt2"));
    run("layout 2 ; split below ; grow wider 10 ; layout save work");
    Rect want[PANES], got[PANES];
    app_rects(&app, want);
    run("layout 5");
    run("layout work");
    app_rects(&app, got);
    ck_assert_mem_eq(want, got, sizeof want);
    run("layout save other ; layout delete work");
    ck_assert_ptr_null(arrange_named(&app, "work"));
    ck_assert_ptr_nonnull(arrange_named(&app, "other"));
    ck_assert(!app_run(&app, "layout work"));
    end();
    start(80, 24); // on another terminal
    ck_assert(app_open(&app, "samples/block.pt2"));
    run("layout other");
    ck_assert_int_eq(layout_panes(&app.layout), 3);
    end();
    unsetenv("XDG_STATE_HOME");
    dir_remove(dir, &d);
    arena_free(&a);
}
END_TEST

// Six panes show six things, whatever one of them showed before.
START_TEST(layouts_show_no_stage_twice) {
    static const char *const first[] = {"stage joint", "stage kernels", "stage post_fusion",
                                        "stage fx", "view timing", "stage functional"};
    for (int i = 0; i < COUNT(first); i++)
        for (int n = 2; n <= PANES; n++) {
            start(120, 40);
            const char *model = i % 2 ? "samples/block.pt2" : "tests/corpus/chain/graph_code.txt";
            ck_assert(app_open(&app, model));
            run(first[i]);
            run(arena_printf(&app.arena, "layout %d", n));
            app_draw(&app);
            ck_assert_int_eq(layout_panes(&app.layout), n);
            for (int p = 0; p < n; p++)
                for (int q = 0; q < p; q++) {
                    const ViewCtx *a = &app.pane[p].ctx, *b = &app.pane[q].ctx;
                    ck_assert_msg(app.pane[q].ok, "%s, layout %d: %s", first[i], n,
                                  app.pane[q].why);
                    ck_assert_msg(a->view != b->view || a->stage != b->stage,
                                  "%s, layout %d: panes %d and %d", first[i], n, q + 1, p + 1);
                }
            end();
        }
}
END_TEST

// What nobody chose makes way for the same in another pane, and comes back.
START_TEST(a_pane_shows_what_no_other_does) {
    start(80, 24);
    ck_assert(app_open(&app, "samples/block.pt2"));
    app_keys(&app, "5");
    ck_assert_int_eq(app.pane[0].ctx.stage, STAGE_joint);
    ck_assert_int_eq(app.pane[1].ctx.stage, STAGE_kernels);
    app_keys(&app, "-");
    ck_assert_int_eq(app.pane[0].ctx.stage, STAGE_kernels);
    ck_assert_int_eq(app.pane[1].ctx.stage, STAGE_post_grad);
    app_keys(&app, "<BS>");
    ck_assert_int_eq(app.pane[0].ctx.stage, STAGE_joint);
    ck_assert_int_eq(app.pane[1].ctx.stage, STAGE_kernels);
    app_keys(&app, "<Tab>8-<Tab>-"); // somebody chose both
    ck_assert_int_eq(app.pane[0].ctx.stage, STAGE_kernels);
    ck_assert_int_eq(app.pane[1].ctx.stage, STAGE_kernels);
    end();
}
END_TEST

// In another sitting, with another model, the panes show the stages and views they showed.
START_TEST(layouts_bring_back_what_panes_show) {
    Arena a = {0};
    Diag d = {.arena = &a};
    char *dir = own_state(&a, &d);
    start(120, 40);
    ck_assert(app_open(&app, "samples/norm.pt2"));
    run("layout 3 ; focus 1 ; stage functional ; focus 2 ; view memory ; focus 3 ; help");
    run("layout save mine");
    end();
    start(120, 40);
    ck_assert(app_open(&app, "samples/block.pt2"));
    run("layout mine");
    app_draw(&app);
    ck_assert_int_eq(app.pane[0].ctx.stage, STAGE_functional);
    ck_assert_str_eq(app.pane[1].ctx.view->name, "memory");
    ck_assert_str_ne(app.pane[2].ctx.view->name, "help"); // it is of the moment
    for (int p = 0; p < 3; p++)
        ck_assert(app.pane[p].ok);
    end();
    unsetenv("XDG_STATE_HOME");
    dir_remove(dir, &d);
    arena_free(&a);
}
END_TEST

START_TEST(broken_arrangements_are_refused) {
    static const char *const bad[] = {
        "",
        "focus=0",
        "100:",
        "100:0",
        "100:9/100/graph/fx/0/-1.-1/0/0",
        "0:0/1/-/-",
        "x focus=0",
        "100:0/100/graph/joint/0/-1.-1/0/0/-/locked focus=3",
        "100:0/1/-/-/0/-1.-1/0/0/-/x,0/1/-/-/0/-1.-1/0/0/-/x focus=0",
        "100:0/99999999999/-/-/0/-1.-1/0/0/-/x focus=0",
    };
    start(80, 24);
    ck_assert(app_open(&app, "samples/norm.pt2"));
    for (int i = 0; i < COUNT(bad); i++) {
        Windows before = app.layout;
        ck_assert_msg(!arrange_read(&app, bad[i], true), "%s", bad[i]);
        ck_assert_mem_eq(&before, &app.layout, sizeof before);
        app.diag = (Diag){.arena = &app.frame};
    }
    // What this model does not have is left out.
    ck_assert(arrange_read(&app, "9:0/1/nonsense/-/77/-1.-1/5/5/%zz/free focus=0", true));
    app_draw(&app);
    end();
}
END_TEST

START_TEST(grep_leads_to_what_it_found) {
    start(100, 30);
    ck_assert(app_open(&app, "samples/block.pt2"));
    run("grep ops.exp"); // a dot is any character of a regular expression
    int n = app.results->at.n, at, len;
    ck_assert_int_gt(n, 1);
    for (int i = 0; i < n; i++) {
        const Result *r = &app.results->at.at[i];
        ck_assert(search_match(r->text, "ops.exp", &at, &len));
        ck_assert_int_eq(at, r->at);
        const char *enter = arena_strdup(&app.arena, r->enter);
        run(enter);
        ck_assert_int_eq(app_pane(&app)->ctx.stage, r->stage);
        Line *l = pane_line(&app, app_pane(&app), app_pane(&app)->row);
        ck_assert_msg(!*r->name || strstr(line_text(l, &app.frame), r->name), "%s: %s", r->name,
                      line_text(l, &app.frame));
    }
    ck_assert(!app_run(&app, "grep nothing_like_this"));
    end();
}
END_TEST

START_TEST(a_search_without_results_leaves_nothing_to_read) {
    start(120, 40);
    ck_assert(app_open(&app, "samples/block.pt2"));
    run("stage joint ; grep erf");
    run("split right");
    ck_assert(!app_run(&app, "grep nothing_has_this_name"));
    app_draw(&app); // both panes showed the results before
    app_key(&app, "j");
    app_draw(&app);
    end();
}
END_TEST

START_TEST(a_hint_must_lie_in_the_range_that_the_file_declares) {
    static const struct {
        const char *hint;
        bool taken;
    } cases[] = {{"s77=2", true},  {"s77=64", true}, {"s77=1", false}, {"s77=65", false},
                 {"s77=0", false}, {"s7=8", false},  {"s77=", false},  {"s77=-3", false}};
    for (int i = 0; i < COUNT(cases); i++) {
        start(120, 40);
        options.hints = cases[i].hint;
        bool ok = app_open(&app, "samples/forms/counter_export.txt");
        ck_assert_msg(ok == cases[i].taken, "%s", cases[i].hint);
        if (i == 2)
            ck_assert_str_eq(diag_first(&app.diag), "--hint s77=1: s77 is from 2 to 64");
        end();
    }
}
END_TEST

Suite *suite_app_session(void) {
    const TTest *const tests[] = {
        a_session_does_it_again,
        layouts_are_kept_by_name,
        layouts_show_no_stage_twice,
        a_pane_shows_what_no_other_does,
        layouts_bring_back_what_panes_show,
        broken_arrangements_are_refused,
        grep_leads_to_what_it_found,
        a_search_without_results_leaves_nothing_to_read,
        a_hint_must_lie_in_the_range_that_the_file_declares,
    };
    return unit_suite("app_session", tests, COUNT(tests));
}
