// app_dispatch.c: command lines: unique beginnings, words and quotes, argument kinds, keys, search.
#include "app/app.h"
#include "core/base/file.h"
#include "tests/unit/unit.h"
#include "views/match.h"

#include <string.h>

static const Command *find(const char *name, Diag *d) {
    return command_find(name, d);
}

START_TEST(unique_beginnings_name_commands) {
    Arena a = {0};
    Diag d = {.arena = &a};
    ck_assert_str_eq(find("stage", &d)->name, "stage");
    ck_assert_str_eq(find("nof", &d)->name, "nofuse");
    ck_assert_str_eq(find("expl", &d)->name, "explain");
    // `run` is a name although `redo` and others share letters; an exact name always wins.
    ck_assert_str_eq(find("run", &d)->name, "run");
    ck_assert_int_eq(d.errors, 0);
    ck_assert_ptr_null(find("st", &d)); // stage, status, step
    ck_assert_ptr_nonnull(strstr(diag_first(&d), "stage"));
    ck_assert_ptr_nonnull(strstr(diag_first(&d), "step"));
    Diag e = {.arena = &a};
    ck_assert_ptr_null(find("stagee", &e));
    ck_assert_str_eq(e.at[0].hint, "did you mean 'stage'?");
    ck_assert_ptr_null(find("", &e));
    arena_free(&a);
}
END_TEST

START_TEST(every_row_of_the_tables_holds_together) {
    // A key must be short for a command line that parses and passes the checks of its row.
    Arena a = {0};
    for (const KeyBinding *b = key_bindings; b->key; b++) {
        Diag d = {.arena = &a};
        Args args;
        ck_assert_msg(args_parse(&a, b->line, &args, &d), "key %s: %s", b->key, diag_first(&d));
        ck_assert_msg(args_check(&args, &d), "key %s: %s", b->key, diag_first(&d));
        char normal[32];
        key_normal(normal, sizeof normal, b->key);
        ck_assert_str_eq(normal, b->key);
    }
    for (const Command *c = commands; c->name; c++) {
        ck_assert_msg(strlen(c->doc) > 3 && !strchr(c->doc, '\n'), "%s has no doc", c->name);
        ck_assert_ptr_eq(command_find(c->name, NULL), c);
    }
    // No key has two meanings in one view.
    for (const KeyBinding *b = key_bindings; b->key; b++)
        for (const KeyBinding *o = b + 1; o->key; o++)
            ck_assert_msg(strcmp(b->key, o->key) || strcmp(b->view, o->view), "%s twice in %s",
                          b->key, b->view);
    arena_free(&a);
}
END_TEST

START_TEST(words_and_quotes) {
    Arena a = {0};
    Diag d = {.arena = &a};
    Args args;
    ck_assert(args_parse(&a, "  goto   \"two words\"  ", &args, &d));
    ck_assert_int_eq(args.n, 1);
    ck_assert_str_eq(args.at[0], "two words");
    ck_assert(args_parse(&a, "goto \"a\\\"b\\\\\"", &args, &d));
    ck_assert_str_eq(args.at[0], "a\"b\\");
    ck_assert(!args_parse(&a, "goto \"open", &args, &d));
    // Raw commands take the rest of the line as it is.
    ck_assert(args_parse(&a, "search a \"b", &args, &d));
    ck_assert_str_eq(args.at[0], "a \"b");
    Buf many = {.arena = &a};
    buf_puts(&many, "set");
    for (int i = 0; i < 100; i++)
        buf_puts(&many, " x");
    ck_assert(!args_parse(&a, buf_str(&many), &args, &d));
    arena_free(&a);
}
END_TEST

static bool accepts(const char *line) {
    Arena a = {0};
    Diag d = {.arena = &a};
    Args args;
    bool ok = args_parse(&a, line, &args, &d) && args_check(&args, &d);
    ck_assert(ok || d.errors > 0);
    arena_free(&a);
    return ok;
}

START_TEST(arguments_are_checked_by_the_row) {
    ck_assert(accepts("move down"));
    ck_assert(accepts("move down 3"));
    ck_assert(!accepts("move"));
    ck_assert(!accepts("move sideways"));
    ck_assert(!accepts("move down three"));
    ck_assert(!accepts("move down 3 4"));
    ck_assert(!accepts("move down 99999999999999"));
    ck_assert(accepts("fuse op1 op2"));
    ck_assert(!accepts("fuse op1"));
    ck_assert(accepts("quit"));
    ck_assert(!accepts("quit now"));
}
END_TEST

START_TEST(usage_is_made_from_the_row) {
    Arena a = {0};
    ck_assert_str_eq(command_usage(&a, command_find("fuse", NULL)), "fuse NODE NODE");
    ck_assert_str_eq(command_usage(&a, command_find("move", NULL)), "move up|down [INT]");
    ck_assert_str_eq(command_kind(&a, command_find("stage", NULL), 0), "stage");
    ck_assert_str_eq(command_kind(&a, command_find("stage", NULL), 7), "");
    ck_assert_str_eq(command_kind(&a, command_find("set", NULL), 5), "setting");
    arena_free(&a);
}
END_TEST

START_TEST(key_names_split) {
    const char *p = "j<C-x>é<lt> <PgDn>";
    const char *want[] = {"j", "<C-x>", "é", "<lt>", "<Space>", "<PgDn>"};
    char key[32];
    for (int i = 0; i < 6; i++) {
        key_next(&p, key);
        ck_assert_str_eq(key, want[i]);
    }
    ck_assert_int_eq(*p, 0);
}
END_TEST

START_TEST(search_is_smart_about_case_and_patterns) {
    int at, len;
    ck_assert(search_match("aten.Add.Tensor", "add", &at, &len));
    ck_assert_int_eq(at, 5);
    ck_assert_int_eq(len, 3);
    ck_assert(!search_match("aten.add", "Add", &at, &len));
    ck_assert(search_match("mul_12 = mul(a)", "mul_[0-9]+", &at, &len));
    ck_assert_int_eq(len, 6);
    ck_assert(search_match("f32[4, 10]", "[4,", &at, &len)); // no pattern: plain text
    ck_assert_int_eq(at, 3);
    ck_assert(!search_match("abc", "", &at, &len));
    ck_assert(!search_match("abc", "x*", &at, &len)); // an empty match is none
}
END_TEST

// An app without a model still has a prompt, help, panes and keys.
START_TEST(an_app_without_a_model) {
    static App app;
    app_init(&app, 80, 24);
    ck_assert(!app_run(&app, "run"));
    ck_assert_ptr_nonnull(strstr(app.message, "needs a model"));
    ck_assert_int_eq(app.exit_code, 2);
    ck_assert(app_run(&app, "set theme=light ; set spelling=full"));
    ck_assert_int_eq(app.theme, THEME_light);
    ck_assert(app.full_spelling);
    ck_assert(!app_run(&app, "set theme=pink"));
    app_run(&app, "split right");
    ck_assert_int_eq(layout_panes(&app.layout), 3);
    app_draw(&app);
    app_keys(&app, ":set theme=mono<Enter>");
    ck_assert_int_eq(app.theme, THEME_mono);
    app_keys(&app, ":the<Tab>sa<Tab><Enter>");
    ck_assert_int_eq(app.theme, THEME_safe);
    app_keys(&app, ":set theme=dark<Esc>");
    ck_assert_int_eq(app.theme, THEME_safe);
    ck_assert(app_run(&app, "bind <C-t> set theme=dark"));
    app_key(&app, "<C-t>");
    ck_assert_int_eq(app.theme, THEME_dark);
    app_run(&app, "help");
    app_draw(&app);
    ck_assert_str_eq(app_pane(&app)->ctx.view->name, "output");
    app_keys(&app, "/forbid<Enter>");
    app_draw(&app);
    int row = app_pane(&app)->row;
    ck_assert_int_gt(row, 0);
    app_key(&app, "n");
    ck_assert_int_ne(app_pane(&app)->row, row);
    app_key(&app, "Q");
    ck_assert(app.quit);
    app_close(&app);
}
END_TEST

START_TEST(keys_never_break_a_small_screen) {
    static App app;
    static const int sizes[][2] = {{1, 1},  {2, 3},   {10, 4},  {39, 7},
                                   {40, 8}, {72, 12}, {80, 24}, {200, 50}};
    static const char *const keys[] = {
        "j",       "k",  "<PgDn>", "g", "G",     "l",       "h",     "|",    "_",
        "<Tab>",   "z",  "z",      "X", "v",     "h",       "?",     "/",    "x",
        "<Enter>", "n",  ":",      "a", "<Tab>", "<Esc>",   "q",     "<BS>", "L",
        "*",       "\\", "5",      "d", "w",     "<Space>", "<C-l>", "o",    "<Esc>"};
    app_init(&app, 80, 24);
    for (int s = 0; s < COUNT(sizes); s++) {
        app_resize(&app, sizes[s][0], sizes[s][1]);
        for (int i = 0; i < 400; i++) {
            app_key(&app, keys[(i * 7 + s) % COUNT(keys)]);
            app_mouse(&app, i % sizes[s][1], i * 3 % sizes[s][0], i % 5);
            app_draw(&app);
        }
    }
    app_close(&app);
}
END_TEST

Suite *suite_app_dispatch(void) {
    const TTest *const tests[] = {
        unique_beginnings_name_commands,
        every_row_of_the_tables_holds_together,
        words_and_quotes,
        arguments_are_checked_by_the_row,
        usage_is_made_from_the_row,
        key_names_split,
        search_is_smart_about_case_and_patterns,
        an_app_without_a_model,
        keys_never_break_a_small_screen,
    };
    return unit_suite("app_dispatch", tests, (int)(sizeof tests / sizeof *tests));
}
