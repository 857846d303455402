// app_config.c: the file of the screen's settings, hostile ones too, and what a terminal answers
// about its background.
#include "app/app.h"
#include "app/config.h"
#include "app/reply.h"
#include "core/base/file.h"
#include "tests/unit/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static App app;
static SessionOptions options;
static Arena arena;
static Diag diag;
static char *dir, *path;

static void start(void) {
    arena = (Arena){0};
    diag = (Diag){.arena = &arena};
    dir = dir_temp(&arena, &diag);
    setenv("XDG_CONFIG_HOME", dir, 1);
    path = config_path(&arena, &diag);
    ck_assert_ptr_nonnull(path);
    app_init(&app, 120, 40);
    app.options = &options;
}

static void end(void) {
    app_close(&app);
    app = (App){0};
    dir_remove(dir, &diag);
    arena_free(&arena);
}

static void fresh(void) {
    app_close(&app);
    app_init(&app, 120, 40);
    app.options = &options;
    diag = (Diag){.arena = &arena};
}

static void put(const char *text, size_t n) {
    ck_assert(dir_make(path_join(&arena, dir, "fxray"), &diag));
    ck_assert_msg(file_write(path, text, n, &diag), "%s", diag_first(&diag));
}

static const char *contents(void) {
    Str s = file_read(&arena, path, &diag);
    return s.ptr ? s.ptr : "";
}

START_TEST(what_a_person_chooses_is_there_next_time) {
    start();
    ck_assert(config_read(&app, path, &diag)); // no file is no error
    config_begin(&app);
    config_keep(&app);
    ck_assert(!file_exists(path)); // nothing was chosen: nothing is written
    ck_assert(app_run(&app, "theme light ; set spelling=full ; bind = view timing"));
    ck_assert(app_run(&app, "bind <C-t> view fusion"));
    app.sort[view_number(&view_fusion)] = 1;
    config_keep(&app);
    fresh();
    ck_assert_msg(config_read(&app, path, &diag), "%s", diag_first(&diag));
    ck_assert_int_eq(app.theme, THEME_light);
    ck_assert(app.full_spelling);
    ck_assert_int_eq(app.sort[view_number(&view_fusion)], 1);
    ck_assert_int_eq(app.bound.n, 2);
    bool prefix;
    ck_assert_str_eq(key_find(&app, "graph", "=", &prefix)->line, "view timing");
    ck_assert_str_eq(key_find(&app, "graph", "<C-t>", &prefix)->line, "view fusion");
    end();
}
END_TEST

START_TEST(what_was_given_before_is_kept_and_not_written) {
    start();
    static const char text[] = "# mine\n\n  theme =   light  \ntimes = hidden\r\n";
    put(text, strlen(text));
    ck_assert(screen_set(&app, "theme", "mono")); // as --theme does
    ck_assert(config_read(&app, path, &diag));
    ck_assert_int_eq(app.theme, THEME_mono);
    ck_assert(app.hide_times);
    config_begin(&app);
    ck_assert(app_run(&app, "set times=shown"));
    config_keep(&app);
    // The comment and the theme stay as they were.
    ck_assert_str_eq(contents(), "# mine\n\n  theme =   light  \ntimes = shown\n");
    end();
}
END_TEST

START_TEST(save_settings_writes_all_of_it) {
    start();
    ck_assert(app_run(&app, "theme safe ; save settings"));
    ck_assert_ptr_nonnull(strstr(contents(), "\ntheme = safe\n"));
    ck_assert_ptr_null(strstr(contents(), "spelling"));
    ck_assert_ptr_null(strstr(contents(), "sort."));
    end();
}
END_TEST

START_TEST(hostile_files_are_refused_whole) {
    static const struct {
        const char *text, *why;
    } cases[] = {
        {"theme = pink\n", "theme takes dark|light|safe|mono, not 'pink'"},
        {"no sense\n", "no `NAME = VALUE`: no sense"},
        {"= x\n", "the screen has no setting ''"},
        {"theme =\n", "'theme' has no value"},
        {"run = now\n", "the screen has no setting 'run'"},
        {"sort.nothing = x\n", "no view 'nothing' with columns to sort by"},
        {"sort.fusion = x\n", "view fusion sorts by order of asking, bytes shared, not by 'x'"},
        {"bind. = quit\n", "'' is no key"},
        {"bind.x = explode\n", "no command 'explode'"},
        {"layout = 77\n", "layout takes 1..6, auto or a name, not '77'"},
        {"layout = 1:1:1\n", "layout takes 1..6, auto or a name, not '1:1:1'"},
        {"theme = \033]0;owned\a\n", "control characters, or no UTF-8"},
        {"bind.x = echo \xff\xfe\n", "control characters, or no UTF-8"},
    };
    start();
    for (int i = 0; i < COUNT(cases); i++) {
        fresh();
        const char *text = arena_printf(&arena, "spelling = full\n%s", cases[i].text);
        put(text, strlen(text));
        ck_assert_msg(!config_read(&app, path, &diag), "taken: %s", cases[i].text);
        ck_assert_str_eq(diag_first(&diag), cases[i].why);
        ck_assert_int_eq(diag.at[0].line, 2);
        ck_assert(!app.full_spelling && !app.bound.n); // its good lines do not hold either
        config_begin(&app);
        ck_assert(app_run(&app, "theme mono"));
        config_keep(&app);
        ck_assert_str_eq(contents(), text); // and it is not written into
    }
    put("theme\0= mono\n", 13);
    ck_assert(!config_read(&app, path, &diag));
    char *large = arena_alloc(&arena, 70000);
    memset(large, '\n', 70000);
    put(large, 70000);
    ck_assert(!config_read(&app, path, &diag));
    memset(large, 'x', 70000);
    put(large, 60000);
    ck_assert(!config_read(&app, path, &diag));
    end();
}
END_TEST

START_TEST(a_pipe_or_a_folder_is_no_file_of_settings) {
    start();
    ck_assert(dir_make(path, &diag));
    ck_assert(!config_read(&app, path, &diag));
    ck_assert_ptr_nonnull(strstr(diag_first(&diag), "is no file"));
    diag = (Diag){.arena = &arena};
    const char *fifo = path_join(&arena, dir, "fifo");
    ck_assert_int_eq(mkfifo(fifo, 0600), 0);
    ck_assert(!config_read(&app, fifo, &diag)); // and nobody waits for a writer
    end();
}
END_TEST

// ---- answers of a terminal

static Reply answer(const char *bytes) {
    Reply r;
    reply_read(bytes, strlen(bytes), &r);
    return r;
}

START_TEST(a_background_in_every_spelling) {
    static const struct {
        const char *bytes;
        bool known, light;
    } cases[] = {
        {"\033]11;rgb:ffff/ffff/ffff\033\\", true, true},
        {"\033]11;rgb:0000/2b2b/3636\a", true, false},
        {"\033]11;rgb:fd/f6/e3\a", true, true},
        {"\033]11;rgba:ffff/ffff/ffff/0000\a", true, true},
        {"\033]11;#101010\a", true, false},
        {"\033]11;#fffffffff\a", true, true},
        {"\033]11;rgb:f/f/f\a", true, true},
        {"\033]11;rgb:0000/0000\a", false, false},
        {"\033]11;rgb:12345/0/0\a", false, false},
        {"\033]11;rgb:gg/00/00\a", false, false},
        {"\033]11;#1234\a", false, false},
        {"\033]11;\a", false, false},
        {"\033]10;rgb:ffff/ffff/ffff\a", false, false}, // the text's colour
        {"\033]11;rgb:ffff/ffff/ffff", false, false},   // cut short
    };
    for (int i = 0; i < COUNT(cases); i++) {
        Reply r = answer(cases[i].bytes);
        ck_assert_msg(r.known == cases[i].known && r.light == cases[i].light, "case %d", i);
    }
}
END_TEST

START_TEST(keys_typed_meanwhile_are_not_lost) {
    Reply r = answer("5\033]11;rgb:0/0/0\033\\j\033[B\033[?62;22cq");
    ck_assert(r.known && !r.light && r.done);
    r.typed[r.n_typed] = 0;
    ck_assert_str_eq(r.typed, "5j\033[Bq");
    r = answer("\033[?6c");
    ck_assert(r.done && !r.known && !r.n_typed);
}
END_TEST

START_TEST(garbage_does_no_harm) {
    uint64_t state = 1;
    static const char alphabet[] = "\033]11;rgb:f/#?c\\\a[0";
    char bytes[700];
    for (int round = 0; round < 20000; round++) {
        size_t n = 0;
        for (; n < sizeof bytes; n++) {
            state = state * 6364136223846793005u + 1442695040888963407u;
            unsigned v = (unsigned)(state >> 40);
            if (v % 97 == 0)
                break;
            bytes[n] = v % 5 ? alphabet[v % (sizeof alphabet - 1)] : (char)(v >> 8);
        }
        Reply r;
        reply_read(bytes, n, &r);
        ck_assert_uint_le(r.n_typed, n);
        ck_assert_uint_le(r.n_typed, REPLY_BYTES);
    }
}
END_TEST

Suite *suite_app_config(void) {
    const TTest *const tests[] = {
        what_a_person_chooses_is_there_next_time,
        what_was_given_before_is_kept_and_not_written,
        save_settings_writes_all_of_it,
        hostile_files_are_refused_whole,
        a_pipe_or_a_folder_is_no_file_of_settings,
        a_background_in_every_spelling,
        keys_typed_meanwhile_are_not_lost,
        garbage_does_no_harm,
    };
    return unit_suite("app_config", tests, (int)(sizeof tests / sizeof *tests));
}
