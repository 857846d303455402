// cmd_session.c: `save session`: all that a person did, as a script of command lines that does it
// again: the model with its options, settings, decisions, bindings, breakpoints, marks, panes.
// Paths are written as they are from the script's folder where both lie in one tree, so that it
// may be moved with its model.
#include "app/app.h"
#include "app/breaks.h"
#include "app/model.h"
#include "core/base/file.h"

#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// ---- options of `open`

static const struct {
    const char *name;
    size_t at; // in SessionOptions, a const char *
    bool path;
} options[] = {
    {"grad", offsetof(SessionOptions, grad), false},
    {"device", offsetof(SessionOptions, device), false},
    {"hint", offsetof(SessionOptions, hints), false},
    {"values", offsetof(SessionOptions, values), true},
    {"settings", offsetof(SessionOptions, settings), true},
    {"bind", offsetof(SessionOptions, binds), false},
    {"backend", offsetof(SessionOptions, backend), false},
    {"toolchain", offsetof(SessionOptions, toolchain), false},
};

static const char **option_at(SessionOptions *o, int i) {
    return (const char **)((char *)o + options[i].at);
}

// A path of a script is found from the script's folder if it is not there from here.
static const char *path_from_script(App *app, const char *path) {
    if (!app->at_file || path[0] == '/' || file_exists(path))
        return arena_strdup(&app->arena, path);
    const char *base = path_base(app->at_file);
    char *dir = arena_strndup(&app->arena, app->at_file, (size_t)(base - app->at_file));
    char *beside = path_join(&app->arena, *dir ? dir : ".", path);
    return file_exists(beside) ? beside : arena_strdup(&app->arena, path);
}

static bool take_option(App *app, SessionOptions *o, const char *word) {
    const char *eq = strchr(word, '=');
    size_t n = eq ? (size_t)(eq - word) : 0;
    if (n == 4 && !memcmp(word, "seed", 4)) {
        o->seed = strtoll(eq + 1, NULL, 10);
        return true;
    }
    if (n == 7 && !memcmp(word, "threads", 7)) {
        o->threads = (int)strtol(eq + 1, NULL, 10);
        return true;
    }
    for (int i = 0; i < COUNT(options); i++)
        if (n == strlen(options[i].name) && !memcmp(word, options[i].name, n)) {
            *option_at(o, i) =
                options[i].path ? path_from_script(app, eq + 1) : arena_strdup(&app->arena, eq + 1);
            return true;
        }
    DiagItem *item = diag_fail(&app->diag, "open has no option '%s'", word);
    item->hint = "grad= device= hint= values= settings= bind= backend= toolchain= seed= threads=";
    return false;
}

bool cmd_open(App *app, Args *args) {
    for (int i = 1; i < args->n; i++)
        if (!take_option(app, app->options, args->at[i]))
            return false;
    return app_open(app, path_from_script(app, args->at[0]));
}

// ---- saving

static void put_quoted(Buf *out, const char *text) {
    if (*text && !strpbrk(text, " \"\\\t;#")) {
        buf_puts(out, text);
        return;
    }
    buf_putc(out, '"');
    for (const char *p = text; *p; p++) {
        if (*p == '"' || *p == '\\')
            buf_putc(out, '\\');
        buf_putc(out, *p);
    }
    buf_putc(out, '"');
}

static const char *absolute(Arena *a, const char *path) {
    char real[PATH_MAX];
    return arena_strdup(a, realpath(path, real) ? real : path);
}

// `../model.pt2` from the folder of the script.
static const char *relative(Arena *a, const char *path, const char *dir) {
    const char *p = absolute(a, path), *d = absolute(a, dir);
    size_t same = 0;
    for (size_t i = 0; p[i] && p[i] == d[i]; i++)
        if (p[i] == '/')
            same = i;
    size_t n = strlen(d);
    if (!strncmp(p, d, n) && p[n] == '/')
        return p + n + 1;
    if (!same || p[0] != '/')
        return p;
    Buf b = {.arena = a};
    for (const char *q = d + same; *q; q++)
        if (*q == '/')
            buf_puts(&b, "../");
    buf_puts(&b, p + same + 1);
    return buf_str(&b);
}

static void put_open(App *app, Buf *out, const char *dir) {
    SessionOptions *o = app->options;
    buf_puts(out, "open ");
    put_quoted(out, relative(&app->frame, session_model(app->session)->path, dir));
    for (int i = 0; i < COUNT(options); i++) {
        const char *value = *option_at(o, i);
        if (!value || !strcmp(options[i].name, "backend") || !strcmp(options[i].name, "toolchain"))
            continue;
        buf_puts(out, " ");
        put_quoted(out, arena_printf(&app->frame, "%s=%s", options[i].name,
                                     options[i].path ? relative(&app->frame, value, dir) : value));
    }
    if (o->seed)
        buf_printf(out, " seed=%lld", (long long)o->seed);
    if (o->threads)
        buf_printf(out, " threads=%d", o->threads);
    buf_putc(out, '\n');
}

static void put_settings(App *app, Buf *out) {
    for (int i = 0; i < settings_count(); i++) {
        SettingInfo now = settings_at(app->session, i, &app->frame);
        SettingInfo was = settings_at(NULL, i, &app->frame);
        if (!strcmp(now.value, was.value))
            continue;
        buf_puts(out, "set ");
        put_quoted(out, arena_printf(&app->frame, "%s=%s", now.name, now.value));
        buf_putc(out, '\n');
    }
}

static void put_override(void *ctx, DecisionKind kind, const char *key, bool result) {
    Buf *out = ctx;
    buf_printf(out, "override %s ", decision_kind_name(kind));
    put_quoted(out, key);
    buf_printf(out, " %s\n", result ? "on" : "off");
}

static void put_marks(App *app, Buf *out) {
    for (MapEntry *e = map_first(&app->marks); e; e = map_next(&app->marks, e)) {
        const Spot *s = e->ptr;
        if (s->view && s->stage >= 0 && (s->view->flags & VIEW_stage))
            buf_printf(out, "stage %s graph %d ; goto %d ; mark %s\n", stage_info[s->stage].name,
                       s->unit, s->row + 1, e->key);
    }
}

static void put_screen(App *app, Buf *out) {
    if (app->theme != THEME_dark)
        buf_printf(out, "set theme=%s\n", theme_names[app->theme]);
    if (app->full_spelling)
        buf_puts(out, "set spelling=full\n");
    if (app->step_changed)
        buf_puts(out, "set step=changed\n");
    if (app->hide_times)
        buf_puts(out, "set times=hidden\n");
    for (int i = 0; i < app->bound.n; i++)
        buf_printf(out, "bind %s %s\n", app->bound.at[i].key, app->bound.at[i].line);
}

const char session_mark[] = "# A session of fxray ";

bool app_save_session(App *app, const char *path) {
    Buf b = {.arena = &app->frame};
    const char *base = path_base(path);
    const char *dir = base > path ? arena_strndup(&app->frame, path, (size_t)(base - path)) : ".";
    if (!app->session) {
        diag_fail(&app->diag, "there is no session to save: no model is open");
        return false;
    }
    buf_printf(&b, "%son %s. Again: fxray %s, or `script %s` at its prompt.\n", session_mark,
               session_name(app->session), base, base);
    put_open(app, &b, dir);
    if (!app->home)
        buf_puts(&b, "focus next\n"); // leaves the first screen, which would build all anew
    buf_printf(&b, "backend %s", backend_info[session_backend(app->session)].name);
    if (session_backend(app->session) == BACKEND_full && session_toolchain(app->session))
        buf_printf(&b, " %s", session_toolchain(app->session)->name);
    buf_putc(&b, '\n');
    put_screen(app, &b);
    put_settings(app, &b);
    decide_override_each(session_overrides(app->session), put_override, &b);
    breaks_save(app, &b);
    put_marks(app, &b);
    buf_puts(&b, "arrange ");
    arrange_print(app, &b);
    buf_putc(&b, '\n');
    if (!file_write(path, buf_str(&b), b.len, &app->diag))
        return false;
    app->saved_changes = app_change_count(app);
    app_message(app, ST_text, "written to %s   fxray %s opens it again", path, path);
    return true;
}
