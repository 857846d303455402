// app_keys.c: every key in every view, on models that leave views empty as well as on one that
// fills them, and on screens too small for anything: no key may do more than say that it cannot.
#include "app/app.h"
#include "app/model.h"
#include "core/base/file.h"
#include "tests/unit/unit.h"

#include <stdio.h>
#include <string.h>

static const char *const skipped[] = {
    "Q",     // leaves
    "<C-z>", // stops the process
    "y",     // writes to the terminal
    "Y",     // writes a file
    "r", "c", "t", "vc", "vt", "M", "x", // run: helper processes, whose time is not ours
};

static void press_all(App *app, const View *view, int cols, int rows) {
    app_resize(app, cols, rows);
    for (const KeyBinding *b = key_bindings; b->key; b++) {
        if (str_index(b->key, skipped, COUNT(skipped)) >= 0)
            continue;
        // As it stands there after other keys and, on an empty view, as it is opened.
        char line[64];
        snprintf(line, sizeof line, "view %s", view->name);
        app_run(app, line);
        app_keys(app, b->key);
        app_draw(app);
        app_keys(app, "<Esc><Esc>");
        app_run(app, "zoom off");
        ck_assert(!app->quit);
        ck_assert_int_eq(app->screen.cols, cols);
    }
    app_run(app, "layout 1");
}

static void press_in_every_view(const char *path, const char *grad) {
    static const int sizes[][2] = {{80, 24}, {1, 1}, {5, 3}};
    static App app;
    SessionOptions options = {.grad = grad, .toolchain = "tcc"};
    app_init(&app, 80, 24);
    app.options = &options;
    ck_assert_msg(app_open(&app, path), "%s: %s", path, diag_first(&app.diag));
    for (int i = 0; views[i]; i++)
        press_all(&app, views[i], sizes[i % COUNT(sizes)][0], sizes[i % COUNT(sizes)][1]);
    app_close(&app);
    app = (App){0};
}

START_TEST(every_key_in_every_view_of_a_model) {
    press_in_every_view("samples/norm.pt2", "none");
}
END_TEST

START_TEST(every_key_in_every_view_of_training) {
    press_in_every_view("samples/norm.pt2", "params");
}
END_TEST

// Pins by keys: the row says so, the bytes are those of the partitioner, undo gives the old ones.
START_TEST(a_value_is_pinned_by_keys) {
    static App app;
    SessionOptions options = {.grad = "params", .toolchain = "tcc"};
    SavedTotals before, after, undone;
    app_init(&app, 80, 24);
    app.options = &options;
    ck_assert(app_open(&app, "tests/corpus/layernorm_gelu/graph_code.txt"));
    app_keys(&app, "s");
    app_draw(&app);
    Pane *p = app_pane(&app);
    ck_assert_str_eq(p->ctx.view->name, "saved");
    ck_assert(session_saved_totals(app.session, 0, false, &before));
    ck_assert_int_eq(before.bytes, 32576); // the corpus says what PyTorch saved
    app_keys(&app, ":goto addmm<Enter>!");
    app_draw(&app);
    ck_assert(session_saved_totals(app.session, 0, true, &after));
    ck_assert_int_lt(after.bytes, before.bytes);
    ck_assert_str_eq(item_name(p->ctx.art, pane_item(&app, p).id), "addmm");
    ck_assert(app.runs.saved.n == 1 && app.runs.saved.at[0].before.totals.bytes == before.bytes);
    app_keys(&app, "u");
    app_draw(&app);
    ck_assert(session_saved_totals(app.session, 0, true, &undone));
    ck_assert_int_eq(undone.bytes, before.bytes);
    // A wish that cannot hold is taken back, and says why.
    app_keys(&app, ":pin primals_3 recomputed<Enter>");
    ck_assert_msg(strstr(app.message, "cannot recompute 'primals_3'") != NULL, "%s", app.message);
    ck_assert_int_eq(overrides_count(session_overrides(app.session)), 0);
    app_close(&app);
    app = (App){0};
}
END_TEST

START_TEST(every_key_in_every_view_of_nothing) {
    static const char text[] = "class GraphModule(torch.nn.Module):\n"
                               "    def forward(self, x: \"f32[4][1]cpu\"):\n"
                               "        y = torch.nosuchop(x)\n"
                               "        return ()\n";
    static const char none[] = "class GraphModule(torch.nn.Module):\n"
                               "    def forward(self, x: \"f32[4][1]cpu\"):\n"
                               "        return ()\n";
    // One loop: no pair was ever asked about, nothing is freed or kept.
    static const char one[] = "class GraphModule(torch.nn.Module):\n"
                              "    def forward(self, x: \"f32[4][1]cpu\"):\n"
                              "        y = torch.relu(x)\n"
                              "        return (y,)\n";
    static const char dead[] = "class GraphModule(torch.nn.Module):\n"
                               "    def forward(self, x: \"f32[4][1]cpu\"):\n"
                               "        y = torch.relu(x)\n"
                               "        return ()\n";
    const char *const texts[] = {text, none, one, dead};
    Arena a = {0};
    Diag d = {.arena = &a};
    char *dir = dir_temp(&a, &d), *path = path_join(&a, dir, "model.txt");
    for (int i = 0; i < COUNT(texts); i++) {
        ck_assert(file_write(path, texts[i], strlen(texts[i]), &d));
        press_in_every_view(path, "none");
    }
    ck_assert(dir_remove(dir, &d));
    arena_free(&a);
}
END_TEST

Suite *suite_app_keys(void) {
    const TTest *const tests[] = {
        every_key_in_every_view_of_a_model,
        every_key_in_every_view_of_nothing,
        every_key_in_every_view_of_training,
        a_value_is_pinned_by_keys,
    };
    return unit_suite("app_keys", tests, COUNT(tests));
}
