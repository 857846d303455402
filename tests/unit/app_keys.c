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
    "r",     // runs: helper processes, whose time is not ours
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

static void press_in_every_view(const char *path) {
    static const int sizes[][2] = {{80, 24}, {1, 1}, {5, 3}};
    static App app;
    SessionOptions options = {.grad = "none", .toolchain = "tcc"};
    app_init(&app, 80, 24);
    app.options = &options;
    ck_assert_msg(app_open(&app, path), "%s: %s", path, diag_first(&app.diag));
    for (int i = 0; views[i]; i++)
        press_all(&app, views[i], sizes[i % COUNT(sizes)][0], sizes[i % COUNT(sizes)][1]);
    session_close(app.session);
    app_free(&app);
    app = (App){0};
}

START_TEST(every_key_in_every_view_of_a_model) {
    press_in_every_view("samples/norm.pt2");
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
        press_in_every_view(path);
    }
    ck_assert(dir_remove(dir, &d));
    arena_free(&a);
}
END_TEST

Suite *suite_app_keys(void) {
    const TTest *const tests[] = {
        every_key_in_every_view_of_a_model,
        every_key_in_every_view_of_nothing,
    };
    return unit_suite("app_keys", tests, COUNT(tests));
}
