// app_goldens.c: every view has a golden at each of the three sizes, view_NAME_COLUMNS.fxr, and it
// shows that view.
#include "app/app.h"
#include "app/options.h"
#include "core/base/file.h"
#include "tests/unit/unit.h"

#include <string.h>

static App app;
static Options options;

// The value of a head comment, "" if there is none.
static const char *head_of(Arena *a, const char *text, const char *word) {
    const char *begin = arena_printf(a, "# %s:", word), *end = strstr(text, "# >>>");
    const char *p = strstr(text, begin);
    if (!p || (end && p > end))
        return "";
    p += strlen(begin);
    p += strspn(p, " ");
    return arena_strndup(a, p, strcspn(p, "\n"));
}

static void parse(Arena *a, const char *args, int cols, int rows) {
    Diag d = {.arena = a};
    char program[] = "fxray", *argv[32] = {program};
    int argc = 1;
    for (char *p = arena_strdup(a, args); *(p += strspn(p, " ")) && argc < COUNT(argv);) {
        argv[argc++] = p;
        p += strcspn(p, " ");
        if (*p)
            *p++ = 0;
    }
    ck_assert_msg(options_parse(a, argc, argv, &options, &d), "%s", diag_first(&d));
    app_init(&app, cols, rows);
    app.options = &options.session;
    int left = 0;
    for (int i = 0; options.sets.at[i]; i++) {
        const char *set = options.sets.at[i];
        if (!app_has_setting(set, strcspn(set, "=")))
            options.sets.at[left++] = set;
        else
            ck_assert(app_run(&app, arena_printf(a, "set %s", set)));
    }
    options.sets.at[left] = NULL;
}

// The view with the focus, or one that another pane shows.
static bool is_shown(const char *view) {
    Rect rect[PANES];
    app_rects(&app, rect);
    if (!strcmp(app_pane(&app)->ctx.view->name, view))
        return true;
    for (int i = 0; i < PANES; i++)
        if (rect[i].rows && app.pane[i].ctx.view && !strcmp(app.pane[i].ctx.view->name, view))
            return true;
    return false;
}

static void check_shows(Arena *a, const char *path, const char *text, const char *view) {
    parse(a, head_of(a, text, "args"), 80, 24);
    const char *model = head_of(a, text, "model");
    if (*model)
        ck_assert_msg(app_open(&app, model), "%s: %s", path, diag_first(&app.diag));
    ck_assert_msg(app_script(&app, path), "%s fails", path);
    app_draw(&app);
    ck_assert_msg(is_shown(view), "%s shows %s", path, app_pane(&app)->ctx.view->name);
    app_close(&app);
}

START_TEST(every_view_has_a_golden_at_three_sizes) {
    static const struct {
        const char *size;
        int cols;
    } sizes[] = {{"80x24", 80}, {"120x40", 120}, {"200x50", 200}};
    for (int i = 0; views[i]; i++)
        for (int k = 0; k < COUNT(sizes); k++) {
            Arena a = {0};
            Diag d = {.arena = &a};
            const char *name = views[i]->name;
            const char *path =
                arena_printf(&a, "tests/goldens/view_%s_%d.fxr", name, sizes[k].cols);
            ck_assert_msg(file_exists(path), "view %s has no golden %s", name, path);
            Str text = file_read(&a, path, &d);
            ck_assert_str_eq(head_of(&a, text.ptr, "screen"), sizes[k].size);
            if (k == 0)
                check_shows(&a, path, text.ptr, name);
            arena_free(&a);
        }
}
END_TEST

Suite *suite_app_goldens(void) {
    const TTest *const tests[] = {every_view_has_a_golden_at_three_sizes};
    return unit_suite("app_goldens", tests, (int)(sizeof tests / sizeof *tests));
}
