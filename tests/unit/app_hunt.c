// app_hunt.c: a search that goes on between keys finds what one does that ends before its command,
// and lives through what a person does meanwhile.
#include "app/hunt.h"
#include "app/model.h"
#include "core/base/file.h"
#include "tests/unit/unit.h"
#include "views/results.h"

#include <string.h>

static App app;
static Arena arena;
static char *dir;

enum { OPS = 4000 };

// A chain in which one name stands alone.
static void open_chain(bool interactive) {
    static SessionOptions options = {.toolchain = "tcc", .grad = "none"};
    Diag d = {.arena = &arena};
    Buf b = {.arena = &arena};
    buf_puts(&b, "class GraphModule(torch.nn.Module):\n    def forward(self, x: \"f32[8]\"):\n");
    for (int i = 0; i < OPS; i++)
        buf_printf(&b, "        %s%d: \"f32[8]\" = torch.%s(%s%d)\n",
                   i == OPS - 1 ? "alone" : "v", i,
                   i % 2 ? "sin" : "exp", i ? "v" : "x", i ? i - 1 : 0);
    buf_printf(&b, "        return (alone%d,)\n", OPS - 1);
    char *text = arena_strdup(&arena, buf_str(&b));
    char *first = strstr(text, "(x0)");
    memmove(first + 2, first + 3, strlen(first + 3) + 1); // x has no number
    dir = dir_temp(&arena, &d);
    const char *path = path_join(&arena, dir, "chain.txt");
    ck_assert(file_write(path, text, strlen(text), &d));
    app_init(&app, 100, 30);
    app.options = &options;
    app.interactive = interactive;
    ck_assert_msg(app_open(&app, path), "%s", diag_first(&app.diag));
    ck_assert(app_run(&app, "stage kernels"));
    app_draw(&app);
}

static void close_chain(void) {
    Diag d = {.arena = &arena};
    app_close(&app);
    app = (App){0};
    dir_remove(dir, &d);
    arena_free(&arena);
    arena = (Arena){0};
}

static int found(bool interactive, const char *line, int *polls) {
    open_chain(interactive);
    ck_assert_msg(app_run(&app, line), "%s", app.message);
    for (*polls = 0; hunt_runs(&app); ++*polls) {
        app_draw(&app);
        app_poll(&app);
    }
    app_draw(&app);
    int n = app.results->at.n + app.results->left_off;
    close_chain();
    return n;
}

START_TEST(it_finds_the_same) {
    static const char *const lines[] = {"grep sin", "grep v[0-9]*7\\b|v1234", "find op:exp",
                                        "find v39 stage:fx"};
    for (int i = 0; i < COUNT(lines); i++) {
        int polls, at_once = found(false, lines[i], &polls);
        ck_assert_int_eq(polls, 0);
        ck_assert_int_gt(at_once, 0);
        ck_assert_int_eq(found(true, lines[i], &polls), at_once);
    }
}
END_TEST

START_TEST(one_thing_is_gone_to) {
    open_chain(true);
    ck_assert(app_run(&app, "find alone stage:fx"));
    while (hunt_runs(&app)) {
        app_draw(&app);
        app_poll(&app);
    }
    app_draw(&app);
    Pane *p = app_pane(&app);
    ck_assert_str_eq(p->ctx.view->name, "graph");
    ck_assert_ptr_nonnull(strstr(item_name(p->ctx.art, pane_item(&app, p).id), "alone"));
    close_chain();
}
END_TEST

// What it looks through is taken away, and the model is left.
START_TEST(a_change_and_a_stop_end_it) {
    open_chain(true);
    static const char *const meanwhile[] = {"set max_fusion_size=3", "cancel", "grep exp",
                                            "stage joint ; step", "decomp off aten.gelu"};
    for (int i = 0; i < COUNT(meanwhile); i++) {
        ck_assert(app_run(&app, "grep zzz|qqq") || hunt_runs(&app) || app.diag.errors);
        app_draw(&app);
        app_run(&app, meanwhile[i]);
        app_draw(&app);
        for (int k = 0; hunt_runs(&app); k++) {
            ck_assert_int_lt(k, 100000);
            app_poll(&app);
            app_draw(&app);
        }
        ck_assert(!app.results->looking);
    }
    app_run(&app, "grep sin");
    close_chain(); // with a search under way
}
END_TEST

Suite *suite_app_hunt(void) {
    const TTest *const tests[] = {
        it_finds_the_same,
        one_thing_is_gone_to,
        a_change_and_a_stop_end_it,
    };
    return unit_suite("app_hunt", tests, COUNT(tests));
}
