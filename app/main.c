// main.c: the entry. Decides between the explorer, one command, a script, the plain prompt, and
// prints what has no screen to go to: text on standard output, messages on standard error.
#include "app/app.h"
#include "app/config.h"
#include "app/loop.h"
#include "app/model.h"
#include "app/options.h"
#include "core/base/file.h"
#include "core/base/json.h"
#include "core/base/work.h"

#include <errno.h>
#include <fcntl.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

// ---- how far long work is, on a terminal without the screen

static struct {
    int64_t since, shown; // clock; 0: not yet
    bool there;           // the line is on the terminal
} progress;

static void clear_progress(void) {
    if (progress.there)
        fputs("\r\033[K", stderr);
    progress.since = progress.shown = 0;
    progress.there = false;
}

// Ctrl-C ends the process itself here.
static bool tell_progress(void *ctx, const char *what, double done) {
    (void)ctx;
    int64_t now = clock_ns();
    progress.since = progress.since ? progress.since : now;
    if (now - progress.since < 500000000 || now - progress.shown < 100000000)
        return true;
    double seconds = (double)(now - progress.since) / 1e9;
    progress.shown = now;
    progress.there = true;
    if (done > 0.01)
        fprintf(stderr, "\r%s %.0f %%, %.1f s left\033[K", what, 100 * done,
                seconds / done * (1 - done));
    else
        fprintf(stderr, "\r%s for %.1f s\033[K", what, seconds);
    return true;
}

static void watch_progress(void) {
    const char *t = getenv("TERM");
    if (isatty(STDERR_FILENO) && t && *t && strcmp(t, "dumb") != 0)
        work_watch(tell_progress, NULL);
}

static void print_diag(const Diag *d) {
    clear_progress();
    Arena a = {0};
    Buf b = {.arena = &a};
    diag_print_all(&b, d);
    fflush(stdout);
    fputs(buf_str(&b), stderr);
    arena_free(&a);
}

// --json of a command that has no report of its own: its lines as an array.
static void print_lines_json(const char *text) {
    Arena a = {0};
    Buf b = {.arena = &a};
    JsonOut j = {.out = &b, .pretty = true};
    json_open(&j, NULL, '{');
    json_open(&j, "lines", '[');
    for (const char *p = text; *p; p += strcspn(p, "\n"), p += *p == '\n')
        json_put_str(&j, NULL, arena_strndup(&a, p, strcspn(p, "\n")));
    json_close(&j, ']');
    json_close(&j, '}');
    printf("%s\n", buf_str(&b));
    arena_free(&a);
}

static bool is_json(const char *text, size_t len) {
    Arena a = {0};
    Diag quiet = {.arena = &a};
    bool yes = json_parse(&a, (Str){text, len}, "", &quiet) != NULL;
    arena_free(&a);
    return yes;
}

// Without a screen: text goes out as it comes.
static void sink(App *app) {
    const char *text = buf_str(&app->out);
    clear_progress();
    if (app->json && app->out.len && !is_json(text, app->out.len))
        print_lines_json(text);
    else
        fwrite(text, 1, app->out.len, stdout);
    print_diag(&app->diag);
    if (app->message[0] && !app->diag.n)
        fprintf(stderr, "%s\n", app->message);
    app->message[0] = 0;
}

static int worst(int a, int b) {
    return a > b ? a : b;
}

static bool run_items(App *app, const Options *o) {
    bool ok = true;
    for (int i = 0; i < o->items.n && ok && !app->quit; i++) {
        ok = o->items.at[i].is_file ? app_script(app, o->items.at[i].text)
                                    : app_run(app, o->items.at[i].text);
        if (!app->sink) // the next finds what a person would
            app_draw(app);
    }
    return ok;
}

static void print_screen(App *app, bool ansi) {
    Arena a = {0};
    Buf b = {.arena = &a};
    app_draw(app);
    clear_progress();
    if (ansi)
        screen_print_ansi(&app->screen, app->theme, app->colors, &b);
    else
        screen_print(&app->screen, &b);
    fwrite(buf_str(&b), 1, b.len, stdout);
    arena_free(&a);
}

static bool open_model(App *app, const char *path) {
    bool ok = app_open(app, path);
    if (!ok || app->diag.n) {
        print_diag(&app->diag);
        app->exit_code = worst(app->exit_code, diag_exit_code(&app->diag));
        app->diag = (Diag){.arena = &app->frame};
    }
    return ok;
}

// `fxray diff A B`: two models, dumps or files, without a session of its own.
static int run_diff(App *app, const Options *o) {
    int stage = -1;
    if (o->words.n != 3) {
        diag_fail(&app->diag, "diff needs two models, got %d", o->words.n - 1)->hint =
            "fxray diff A B [--stage S]";
    } else if (o->value[FLAG_stage] && (stage = stage_find(o->value[FLAG_stage])) < 0) {
        diag_fail(&app->diag, "no stage '%s'", o->value[FLAG_stage]);
    } else {
        int code = session_diff(o->words.at[1], o->words.at[2], stage, &o->session, &app->out,
                                app->json, &app->diag);
        sink(app);
        return code;
    }
    sink(app);
    return 2;
}

static void put_word(Buf *b, const char *word) {
    bool plain = *word && !strpbrk(word, " \"\\\t");
    buf_puts(b, plain ? " " : " \"");
    for (const char *p = word; *p; p++) {
        if (*p == '"' || *p == '\\')
            buf_putc(b, '\\');
        buf_putc(b, *p);
    }
    buf_puts(b, plain ? "" : "\"");
}

// The command line that a subcommand with its words and flags stands for.
static const char *command_line(App *app, const Command *c, const Options *o, int first) {
    // What a flag is among the words of a command.
    static const struct {
        const char *command, *word;
        FlagId flag;
    } meant[] = {{"dump", "", FLAG_out},
                 {"minify", "", FLAG_check},
                 {"minify", "to", FLAG_out},
                 {"minify", "command", FLAG_check_cmd},
                 {"minify", "limit", FLAG_limit},
                 {"bisect", "", FLAG_over},
                 {"bisect", "", FLAG_limit}};
    Buf b = {.arena = &app->arena};
    buf_puts(&b, c->name);
    for (int i = first; i < o->words.n; i++)
        put_word(&b, o->words.at[i]);
    for (int i = 0; i < COUNT(meant); i++) {
        const char *value = o->value[meant[i].flag];
        bool both = !strcmp(c->name, "dump") && first < o->words.n;
        if (!value || both || strcmp(meant[i].command, c->name) != 0)
            continue;
        if (*meant[i].word)
            put_word(&b, meant[i].word);
        put_word(&b, value);
    }
    return buf_str(&b);
}

static int run_command(App *app, const Command *c, const Options *o) {
    int first = 1;
    if (!strcmp(c->name, "diff"))
        return run_diff(app, o);
    if (!(c->flags & CMD_free)) {
        if (o->words.n < 2) {
            fprintf(stderr, "fxray: %s needs a model\n  fxray %s MODEL\n", c->name, c->name);
            return 2;
        }
        layout_columns(&app->layout, 1);
        if (!open_model(app, o->words.at[1]))
            return worst(app->exit_code, 2);
        app->home = false;
        first = 2;
    }
    app_run(app, command_line(app, c, o, first));
    run_items(app, o);
    app_print_view(app, true);
    return app->exit_code;
}

// A session that `save session` wrote stands for its model.
static bool is_session(App *app, const char *path) {
    Diag quiet = {.arena = &app->arena};
    bool file = file_exists(path) && !file_is_dir(path) && !file_is_stream(path);
    Str text = file ? file_map(path, &quiet) : (Str){0};
    size_t n = strlen(session_mark);
    bool yes = text.ptr && text.len >= n && !memcmp(text.ptr, session_mark, n);
    if (text.ptr)
        file_unmap(text);
    return yes;
}

static void errors_only(App *app) {
    print_diag(&app->diag);
    app->message[0] = 0;
}

static bool open_either(App *app, const char *path) {
    if (!is_session(app, path))
        return open_model(app, path);
    app->sink = errors_only;
    bool ok = app_script(app, path) && app->session;
    app->saved_changes = app_change_count(app); // it is in the file
    app->sink = NULL;
    app->message[0] = 0;
    return ok;
}

static int run_model(App *app, const Options *o) {
    if (o->words.n > 1) {
        bool model = file_exists(o->words.at[0]);
        fprintf(stderr,
                model ? "one model is expected, '%s' is too much\n"
                      : "'%s' is neither a command nor a file\nhint: fxray --help\n",
                o->words.at[model]);
        return 2;
    }
    bool text = o->items.n || o->value[FLAG_repl] || !isatty(STDOUT_FILENO);
    if (text && !o->value[FLAG_screen])
        layout_columns(&app->layout, 1);
    if (!open_either(app, o->words.at[0]))
        return worst(app->exit_code, 2);
    if (o->value[FLAG_screen]) {
        run_items(app, o);
        if (app->exit_code && app->message[0])
            fprintf(stderr, "%s\n", app->message);
        print_screen(app, o->value[FLAG_ansi] != NULL);
        return app->exit_code;
    }
    app->sink = text ? sink : NULL;
    if (o->items.n) {
        app->home = false;
        run_items(app, o);
        if (!o->value[FLAG_repl]) {
            app_print_view(app, true);
            return app->exit_code;
        }
    }
    if (o->value[FLAG_repl]) {
        app->home = false;
        return repl_run(app);
    }
    if (!isatty(STDOUT_FILENO)) {
        app_run(app, "explain");
        return app->exit_code;
    }
    clear_progress();
    return loop_run(app, session_name(app->session));
}

static const Command *subcommand(const Options *o) {
    if (!o->words.n || file_exists(o->words.at[0]))
        return NULL;
    for (const Command *c = commands; c->name; c++)
        if (!strcmp(c->name, o->words.at[0]) && !(c->flags & (CMD_cursor | CMD_hidden)))
            return c;
    return NULL;
}

static int usage(void) {
    fputs("fxray: no model given\n  fxray MODEL          opens the explorer\n  fxray --help        "
          " lists "
          "commands and flags\n",
          stderr);
    return 2;
}

// --set NAME=VALUE of the screen's own settings; the others go to the session.
static bool take_sets(App *app, Options *o) {
    int left = 0;
    bool ok = true;
    for (int i = 0; o->sets.at[i]; i++) {
        const char *set = o->sets.at[i];
        if (!app_has_setting(set, strcspn(set, "=")))
            o->sets.at[left++] = set;
        else
            ok = app_run(app, arena_printf(&app->arena, "set %s", set)) && ok;
    }
    o->sets.at[left] = NULL;
    return ok;
}

static int dispatch(App *app, Options *o) {
    if (o->value[FLAG_help]) {
        Buf b = {.arena = &app->arena};
        options_help(&b);
        fputs(buf_str(&b), stdout);
        return 0;
    }
    if (o->value[FLAG_version]) {
        printf("fxray %s\n", fxray_version);
        return 0;
    }
    const Command *c = subcommand(o);
    if (c && !o->value[FLAG_screen]) {
        app->sink = sink;
        return run_command(app, c, o);
    }
    if (!o->words.n && (o->items.n || o->value[FLAG_repl])) {
        app->sink = o->value[FLAG_screen] ? NULL : sink;
        run_items(app, o);
        if (o->value[FLAG_screen])
            print_screen(app, o->value[FLAG_ansi] != NULL);
        return o->value[FLAG_repl] ? repl_run(app) : app->exit_code;
    }
    return o->words.n ? run_model(app, o) : usage();
}

// The terminal's size before curses takes it over, so that the panes are chosen for it.
static void terminal_size(Options *o) {
    struct winsize w;
    if (o->cols)
        return;
    bool known = !ioctl(STDOUT_FILENO, TIOCGWINSZ, &w) && w.ws_col > 0 && w.ws_col <= 4096 &&
                 w.ws_row > 0 && w.ws_row <= 4096;
    o->cols = known ? w.ws_col : 80;
    o->rows = known ? w.ws_row : 24;
}

// A closed standard descriptor would be given to the next file that is opened. What stands in for
// it fails as a closed one does, except that messages are dropped.
static void occupy_standard_descriptors(void) {
    static const int modes[] = {O_WRONLY, O_RDONLY, O_RDWR};
    for (int fd = 0; fd < COUNT(modes); fd++)
        if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", modes[fd]) < 0)
            exit(2);
}

// A full disk or a closed descriptor shows at the last write only.
static int finish_output(int code) {
    clear_progress();
    errno = 0;
    bool failed = ferror(stdout) != 0;
    if (!fflush(stdout) && !failed)
        return code;
    fprintf(stderr, "cannot write to standard output%s%s\n", errno ? ": " : "",
            errno ? strerror(errno) : "");
    return worst(code, 2);
}

int main(int argc, char **argv) {
    static App app;
    occupy_standard_descriptors();
    Arena a = {0};
    Diag d = {.arena = &a};
    Options o;
    setlocale(LC_CTYPE, "");
    if (!options_parse(&a, argc, argv, &o, &d)) {
        print_diag(&d);
        return 2;
    }
    terminal_size(&o);
    app_init(&app, o.cols, o.rows);
    app.options = &o.session;
    app.json = o.value[FLAG_json] != NULL;
    const char *no = getenv("NO_COLOR");
    if (no && *no)
        app.colors = 0;
    if (o.value[FLAG_theme])
        screen_set(&app, "theme", o.value[FLAG_theme]);
    watch_progress();
    app.sink = sink;
    bool ok = take_sets(&app, &o);
    app.sink = NULL;
    int code = ok ? dispatch(&app, &o) : 2;
    app_close(&app);
    arena_free(&a);
    code = finish_output(code);
    return code;
}
