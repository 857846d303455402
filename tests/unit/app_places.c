// app_places.c: whatever a key put into a pane, Backspace, q and Esc give back what was there.
#include "app/app.h"
#include "app/model.h"
#include "tests/unit/unit.h"

#include <stdio.h>
#include <string.h>

static App app;

static void setup_of(const char *path, int cols, int rows) {
    static SessionOptions options = {.grad = "none", .toolchain = "tcc"};
    app_init(&app, cols, rows);
    app.options = &options;
    ck_assert(app_open(&app, path));
    app_keys(&app, "<Enter>");
    app_draw(&app);
}

static void setup(int cols, int rows) {
    setup_of("samples/norm.pt2", cols, rows);
}

static void teardown(void) {
    app_close(&app);
    app = (App){0};
}

static const char *shown(int pane) {
    return app.pane[pane].ctx.view ? app.pane[pane].ctx.view->name : "";
}

// Keys that give a pane something to show that is no stage, in one pane and in several.
static const char *const visits[] = {"?", "i", "f", "m", "p", "T", "d", ":explain<Enter>"};
static const int sizes[][2] = {{60, 20}, {80, 24}, {200, 50}};

static void there_and_back(const char *key) {
    for (int s = 0; s < COUNT(sizes); s++)
        for (int i = 0; i < COUNT(visits); i++) {
            setup(sizes[s][0], sizes[s][1]);
            char before[PANES][32];
            int panes = layout_panes(&app.layout), focus = app.layout.focus;
            for (int p = 0; p < panes; p++)
                snprintf(before[p], sizeof before[p], "%s", shown(p));
            app_keys(&app, visits[i]);
            // A view about the cursor stands beside it: q and Esc are for the pane with the focus.
            if (!strcmp(visits[i], "i") && panes > 1 && strcmp(key, "<BS>"))
                app_keys(&app, "<Tab>");
            app_keys(&app, key);
            for (int p = 0; p < panes; p++)
                ck_assert_msg(!strcmp(before[p], shown(p)),
                              "%s %s at %d columns: pane %d: %s, not %s", visits[i], key,
                              sizes[s][0], p, shown(p), before[p]);
            ck_assert_int_eq(layout_panes(&app.layout), panes);
            ck_assert(!app.layout.zoom && !app.home);
            ck_assert_int_eq(app.layout.focus, focus);
            teardown();
        }
}

START_TEST(backspace_gives_back) {
    there_and_back("<BS>");
}
END_TEST

START_TEST(q_gives_back) {
    there_and_back("q");
}
END_TEST

START_TEST(escape_gives_back) {
    there_and_back("<Esc>");
}
END_TEST

START_TEST(goto_opens_the_fold_that_hides_it) {
    setup_of("samples/block.pt2", 80, 24);
    static const char *const folded[][2] = {{"post_fusion", "op1"}, {"fx", "x"}};
    for (int i = 0; i < COUNT(folded); i++) {
        char line[64];
        snprintf(line, sizeof line, "stage %s ; goto %s", folded[i][0], folded[i][1]);
        ck_assert_msg(app_run(&app, line), "%s: %s", line, diag_first(&app.diag));
        app_draw(&app);
        ck_assert_str_eq(item_name(app_pane(&app)->ctx.art, pane_item(&app, app_pane(&app)).id),
                         folded[i][1]);
    }
    teardown();
}
END_TEST

START_TEST(the_glossary_begins_with_the_cursors_words) {
    setup(80, 24);
    app_keys(&app, "0K");
    app_draw(&app);
    ck_assert_str_eq(shown(app.layout.focus), "output");
    ck_assert_int_gt(app.output.n, 20);
    ck_assert_msg(str_starts(app.output.at[0], "buffer "), "%s", app.output.at[0]);
    teardown();
}
END_TEST

START_TEST(a_heading_says_what_to_do_for_a_value) {
    setup_of("samples/block.pt2", 80, 24);
    app_keys(&app, "5gjt");
    ck_assert_msg(strstr(app.message, "a heading has no value   t on a node") != NULL, "%s",
                  app.message);
    teardown();
}
END_TEST

START_TEST(one_back_for_one_enter) {
    setup(60, 20);
    app_run(&app, "stage post_grad");
    app_run(&app, "goto rsqrt");
    int row = app.pane[0].row, past = app.past.n;
    app_keys(&app, "<Enter>");
    ck_assert_str_eq(shown(0), "node");
    ck_assert_int_eq(app.past.n, past + 1);
    app_keys(&app, "<BS>");
    ck_assert_str_eq(shown(0), "graph");
    ck_assert_int_eq(app.pane[0].row, row);
    app_keys(&app, "L");
    ck_assert_str_eq(shown(0), "node");
    teardown();
}
END_TEST

START_TEST(help_over_the_first_screen) {
    setup(80, 24);
    app_keys(&app, "o?");
    ck_assert_str_ne(shown(app_pane_number(&app)), "overview");
    app_keys(&app, "q");
    ck_assert(app.home);
    ck_assert_str_eq(shown(HOME), "overview");
    teardown();
}
END_TEST

START_TEST(the_stage_run_shows_its_timing) {
    setup(80, 24);
    app_keys(&app, "=");
    ck_assert_str_eq(shown(app.layout.focus), "timing");
    ck_assert_str_eq(app.pane[app.layout.focus].why, "");
    app_keys(&app, "[");
    ck_assert_str_eq(shown(app.layout.focus), "kernel");
    teardown();
}
END_TEST

START_TEST(timing_leads_to_the_stage_that_took_the_time) {
    setup(80, 24);
    app_keys(&app, "=");
    app_keys(&app, "/post_grad<Enter>");
    app_keys(&app, "<Enter>");
    ck_assert_str_eq(shown(app.layout.focus), "graph");
    ck_assert_int_eq(app.pane[app.layout.focus].ctx.stage, STAGE_post_grad);
    teardown();
}
END_TEST

Suite *suite_app_places(void) {
    const TTest *const tests[] = {
        backspace_gives_back,
        q_gives_back,
        escape_gives_back,
        goto_opens_the_fold_that_hides_it,
        the_glossary_begins_with_the_cursors_words,
        a_heading_says_what_to_do_for_a_value,
        one_back_for_one_enter,
        help_over_the_first_screen,
        the_stage_run_shows_its_timing,
        timing_leads_to_the_stage_that_took_the_time,
    };
    return unit_suite("app_places", tests, COUNT(tests));
}
