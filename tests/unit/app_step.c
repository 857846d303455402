// app_step.c: walking along the compilation: there and back by rewrites, breakpoints of every kind,
// watches.
#include "app/breaks.h"
#include "app/model.h"
#include "tests/unit/unit.h"

#include <stdio.h>
#include <string.h>

static App app;

static void open_model(const char *path, const char *grad) {
    static SessionOptions options = {.toolchain = "tcc"};
    options.grad = grad;
    app_init(&app, 100, 30);
    app.options = &options;
    ck_assert(app_open(&app, path));
    app_keys(&app, "<Enter>");
    app_draw(&app);
}

static void close_model(void) {
    app_close(&app);
    app = (App){0};
}

static void run(const char *line) {
    ck_assert_msg(app_run(&app, line), "%s: %s", line, app.message);
    app_draw(&app);
}

static At here(void) {
    At at;
    ck_assert(step_here(&app, &at));
    return at;
}

static const char *pass_here(void) {
    At at = here();
    return artifact_title(model_step(app.session, at.unit, at.step));
}

// Back and forth by single rewrites comes by the same places.
static void there_and_back(const char *path, const char *grad, const char *begin) {
    At seen[400];
    int n = 0;
    open_model(path, grad);
    run(begin);
    for (At at = here();; n++) {
        ck_assert_int_lt(n, COUNT(seen));
        seen[n] = at;
        app_key(&app, ")");
        app_draw(&app);
        At next = here();
        if (next.step == at.step && next.rewrite == at.rewrite)
            break;
        at = next;
    }
    ck_assert_int_gt(n, 20);
    for (int i = n - 1; i >= 0; i--) {
        app_key(&app, "(");
        app_draw(&app);
        At at = here();
        ck_assert_msg(at.step == seen[i].step && at.rewrite == seen[i].rewrite,
                      "%d: %d.%d, not %d.%d", i, at.step, at.rewrite, seen[i].step,
                      seen[i].rewrite);
    }
    close_model();
}

START_TEST(rewrites_there_and_back) {
    there_and_back("samples/block.pt2", "none", "stage fx");
    there_and_back("tests/corpus/layernorm_gelu/graph_code.txt", "params", "stage fx");
}
END_TEST

static const struct {
    const char *kind, *from; // break KIND, beginning at a stage
    const char *pass;        // where it stops, NULL: nowhere
    int rewrite;             // -1 whole
    const char *word;        // in the message
} stops[] = {
    {"pass joint", "fx", "joint", -1, "joint is done"},
    {"pass remove_noop_ops", "joint", "remove_noop_ops", -1, "remove_noop_ops"},
    {"op gelu", "fx", "joint", 22, "gelu is gone"},
    {"op erf", "fx", "joint", 22, "erf was made"},
    {"op amax", "fx", "joint", 10, "_softmax"},
    {"node erf", "fx", "joint", 22, "erf was made"},
    {"node var_mean", "functional", "joint", 2, "var_mean was made"},
    {"dtype i64", "fx", NULL, 0, "no breakpoint stops"},
    {"pattern becomes reshape", "joint", "view_to_reshape", 1, "view becomes reshape"},
    {"fusion op8 op9_op10", "pre_fusion", "post_fusion", 4, "were fused"},
    {"fusion op0 op16", "pre_fusion", "post_fusion", -1, "refused: intermediate nodes"},
    {"fusion op0_op1", "fx", "post_fusion", -1, "op3"},
    {"graph_break", "fx", NULL, 0, "no breakpoint stops"},
    {"guard", "fx", NULL, 0, "no breakpoint stops"},
};

START_TEST(breakpoints_stop_where_it_happens) {
    char line[128];
    for (int i = 0; i < COUNT(stops); i++) {
        open_model("samples/block.pt2", "none");
        snprintf(line, sizeof line, "stage %s ; break %s ; continue", stops[i].from, stops[i].kind);
        run(line);
        ck_assert_msg(strstr(app.message, stops[i].word), "%s: %s", stops[i].kind, app.message);
        if (stops[i].pass) {
            ck_assert_msg(!strcmp(pass_here(), stops[i].pass), "%s: %s", stops[i].kind,
                          pass_here());
            ck_assert_msg(here().rewrite == stops[i].rewrite, "%s: rewrite %d", stops[i].kind,
                          here().rewrite);
            // From the end backwards it stops there too, or at a later hit.
            run("stage kernels ; continue -1");
            ck_assert_msg(strstr(app.message, "breakpoint 1"), "%s: %s", stops[i].kind,
                          app.message);
        } else {
            ck_assert_str_eq(pass_here(), "kernels");
        }
        close_model();
    }
}
END_TEST

// The first graph has fixed sizes; the second asks for 3 rows at least and an even number.
START_TEST(guards_stop_where_they_were_added) {
    open_model("samples/dynamic.txt", "none");
    run("stage fx graph 0 ; break guard ; continue");
    ck_assert_int_eq(here().unit, 1);
    ck_assert_str_eq(pass_here(), "functional");
    ck_assert_msg(strstr(app.message, "s77 >= 3") && strstr(app.message, "and 1 more"), "%s",
                  app.message);
    run("continue");
    ck_assert_msg(strstr(app.message, "no breakpoint stops"), "%s", app.message);
    run("delete all ; break graph_break ; stage fx graph 0 ; continue");
    ck_assert_int_eq(here().unit, 1);
    ck_assert_msg(strstr(app.message, "__compiled_fn_3 begins, graph 2 of 2"), "%s", app.message);
    run("delete all ; break guard s77//2 ; stage fx ; continue");
    ck_assert_msg(strstr(app.message, "s77//2") && !strstr(app.message, "more"), "%s", app.message);
    run("delete all ; break guard s78 ; stage fx ; continue");
    ck_assert_msg(strstr(app.message, "no breakpoint stops"), "%s", app.message);
    close_model();
}
END_TEST

// On to the halves and to the next graph, and back the same way.
START_TEST(continue_goes_from_graph_to_graph) {
    // mm is made in the joint graph, gone in its forward, made in its backward.
    static const char *const says[] = {"joint", "partition", "partition"};
    open_model("samples/classifier.txt", "params");
    run("break op mm ; stage fx");
    for (int i = 0; i < COUNT(says); i++) {
        run("continue");
        ck_assert_str_eq(pass_here(), says[i]);
    }
    ck_assert_int_eq(here().unit, 2);
    run("continue");
    ck_assert_msg(strstr(app.message, "no breakpoint stops"), "%s", app.message);
    for (int i = COUNT(says); i--;) {
        run("continue -1");
        ck_assert_str_eq(pass_here(), says[i]);
        ck_assert_msg(strstr(app.message, "breakpoint 1"), "%s", app.message);
    }
    close_model();
    open_model("samples/dynamic.txt", "none");
    run("break op amax ; stage fx graph 0 ; continue");
    ck_assert_int_eq(here().unit, 0);
    run("continue");
    ck_assert_int_eq(here().unit, 1);
    ck_assert_msg(strstr(app.message, "amax was made"), "%s", app.message);
    run("stage kernels ; continue -1 ; continue -1");
    ck_assert_int_eq(here().unit, 0);
    close_model();
}
END_TEST

START_TEST(o_runs_on_to_what_happens_to_the_cursors_thing) {
    open_model("samples/block.pt2", "none");
    run("stage functional ; goto gelu");
    app_key(&app, "O");
    ck_assert_str_eq(pass_here(), "joint");
    ck_assert_msg(strstr(app.message, "gelu is gone"), "%s", app.message);
    close_model();
}
END_TEST

// Where the steps have no row of their own they stand in the rule; a click on one goes there.
START_TEST(steps_stand_in_the_rule_of_a_small_screen) {
    static const int cols[] = {60, 80, 100};
    for (int i = 0; i < COUNT(cols); i++) {
        open_model("samples/block.pt2", "none");
        app_resize(&app, cols[i], 24);
        run("stage kernels ; zoom on ; goto 1");
        int row = app_legend_row(&app), last = -1, step, n = here().step + 1;
        ck_assert_int_lt(app_scrubber_row(&app), 0);
        for (int col = 0; col < cols[i]; col++) {
            uint32_t code = screen_at(&app.screen, row, col)->code;
            bool cell = scrubber_hit(&app, row, col, &step);
            ck_assert_int_eq(cell, code == 0x2588 || code == 0x25aa || code == 0xb7);
            ck_assert(!cell || step > last);
            last = cell ? step : last;
        }
        ck_assert_int_ge(last, n - 2);
        ck_assert(!scrubber_hit(&app, row - 1, cols[i] / 2, &step));
        for (int col = cols[i] - 1; col >= 0; col--)
            if (scrubber_hit(&app, row, col, &step) && step < 3) {
                app_mouse(&app, row, col, MOUSE_click);
                ck_assert_int_eq(here().step, step);
                break;
            }
        ck_assert_int_lt(here().step, 3);
        close_model();
    }
}
END_TEST

START_TEST(shapes_are_compared_size_by_size) {
    open_model("samples/block.pt2", "none");
    run("stage fx ; break shape [8, 32, *] ; continue");
    ck_assert_msg(strstr(app.message, "was made"), "%s", app.message);
    Pane *p = app_pane(&app);
    const Node *n = graph_by_id(p->ctx.art->graph, pane_item(&app, p).id);
    ck_assert_int_eq(node_tensor(n)->ndim, 3);
    run("delete all ; break shape [8,32] ; stage fx ; continue");
    ck_assert_msg(strstr(app.message, "no breakpoint stops"), "%s", app.message);
    close_model();
}
END_TEST

START_TEST(a_watched_value_is_found_at_every_stage) {
    open_model("samples/block.pt2", "none");
    run("stage joint ; goto erf ; watch");
    run("stage kernels ; view watch");
    Pane *p = app_pane(&app);
    ck_assert_str_eq(p->ctx.view->name, "watch");
    ck_assert_int_eq(pane_count(&app, p), 11); // its name and ten stages
    int joint = -1;
    for (int i = 0; i < pane_count(&app, p); i++)
        if (strstr(line_text(pane_line(&app, p, i), &app.frame), "5 joint"))
            joint = i;
    ck_assert_int_ge(joint, 0);
    ck_assert_str_eq(pane_line(&app, p, joint)->sign, "●");
    run("stage fx ; continue");
    ck_assert_msg(strstr(app.message, "watch 1: erf was made"), "%s", app.message);
    run("delete 1");
    ck_assert(!app_run(&app, "delete 1"));
    close_model();
}
END_TEST

START_TEST(until_goes_to_a_pass_or_a_node) {
    open_model("samples/block.pt2", "none");
    run("stage fx ; until view_to_reshape");
    ck_assert_str_eq(pass_here(), "view_to_reshape");
    run("stage fx ; until amax");
    ck_assert_str_eq(pass_here(), "joint");
    ck_assert_int_eq(here().rewrite, 10);
    ck_assert(!app_run(&app, "until nothing_of_that_name"));
    run("scrub 12.3");
    ck_assert_int_eq(here().step, 11);
    ck_assert_int_eq(here().rewrite, 3);
    ck_assert(!app_run(&app, "scrub 12.99"));
    ck_assert(!app_run(&app, "scrub 0"));
    close_model();
}
END_TEST

Suite *suite_app_step(void) {
    const TTest *const tests[] = {
        rewrites_there_and_back,
        breakpoints_stop_where_it_happens,
        guards_stop_where_they_were_added,
        continue_goes_from_graph_to_graph,
        o_runs_on_to_what_happens_to_the_cursors_thing,
        steps_stand_in_the_rule_of_a_small_screen,
        shapes_are_compared_size_by_size,
        a_watched_value_is_found_at_every_stage,
        until_goes_to_a_pass_or_a_node,
    };
    return unit_suite("app_step", tests, COUNT(tests));
}
