// arrange.c: the panes as one line of text, and back: columns, heights, what each pane shows and
// where its cursor is. Layouts are kept by name in the state folder, one a line, and the one in use
// at the end under the name `last`.
#include "app/app.h"
#include "app/model.h"
#include "core/base/file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// A word without blanks: what is none of letters, digits and a few signs is %XX; nothing is `-`.
static void put_word(Buf *out, const char *text) {
    if (!*text)
        buf_putc(out, '-');
    for (const char *p = text; *p; p++) {
        unsigned char c = (unsigned char)*p;
        bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                     strchr("_.#", c) || (c == '-' && p > text);
        if (plain)
            buf_putc(out, (char)c);
        else
            buf_printf(out, "%%%02x", c);
    }
}

static const char *take_word(Arena *a, const char *from, size_t n) {
    Buf b = {.arena = a};
    if (n == 1 && *from == '-')
        return "";
    for (size_t i = 0; i < n; i++) {
        char hex[3] = {0}, *end;
        if (from[i] != '%' || i + 2 >= n) {
            buf_putc(&b, from[i]);
            continue;
        }
        memcpy(hex, from + i + 1, 2);
        long v = strtol(hex, &end, 16);
        buf_putc(&b, !*end && v > 0 ? (char)v : '?');
        i += 2;
    }
    return buf_str(&b);
}

static void put_pane(App *app, Buf *out, int number, int share) {
    Pane *p = &app->pane[number];
    buf_printf(out, "%d/%d/", number, share);
    put_word(out, p->ctx.view ? p->ctx.view->name : "");
    buf_printf(out, "/%s/%d/%d.%d/%d/%d/", p->ctx.stage >= 0 ? stage_info[p->ctx.stage].name : "-",
               p->ctx.unit, p->ctx.step, p->ctx.rewrite, p->row, p->top);
    put_word(out, p->ctx.arg ? p->ctx.arg : "");
    buf_printf(out, "/%s", p->free ? "free" : "locked");
}

void arrange_print(App *app, Buf *out) {
    const Windows *l = &app->layout;
    for (int c = 0; c < l->n; c++) {
        buf_printf(out, "%s%d:", c ? " " : "", l->col[c].weight);
        for (int i = 0; i < l->col[c].n; i++) {
            buf_puts(out, i ? "," : "");
            put_pane(app, out, l->col[c].pane[i], l->col[c].share[i]);
        }
    }
    buf_printf(out, " focus=%d%s%s", l->focus, l->zoom ? " zoom" : "", app->home ? " home" : "");
    for (int i = 0; app->session && i < model_units(app->session); i++) {
        const Unit *u = pipeline_unit(session_pipeline(app->session), i);
        int n = unit_n_steps(u);
        if (n)
            buf_printf(out, " built=%d.%s", i, stage_info[unit_step(u, n - 1)->stage].name);
    }
}

// The rail and the chain tell of what is built, so that it is part of what a person sees.
static void build_again(App *app, const char *text) {
    Diag quiet = {.arena = &app->frame};
    for (const char *p = text; (p = strstr(p, " built=")); p++) {
        char *dot;
        long unit = strtol(p + strlen(" built="), &dot, 10);
        int stage = *dot == '.'
                        ? stage_find(arena_strndup(&app->frame, dot + 1, strcspn(dot + 1, " ")))
                        : -1;
        if (unit >= 0 && unit < model_units(app->session) && stage >= 0)
            model_artifact(app->session, (int)unit, stage, &quiet);
    }
}

// ---- reading

typedef struct PaneText { // one pane of the text
    int number, share, unit, step, rewrite, row, top;
    const char *view, *stage, *arg;
    bool free;
} PaneText;

// The next field of a list, ended by `sep` or the end of the n bytes.
static const char *field(Arena *a, const char **p, const char *end, char sep) {
    const char *from = *p, *to = memchr(from, sep, (size_t)(end - from));
    to = to ? to : end;
    *p = to < end ? to + 1 : end;
    return take_word(a, from, (size_t)(to - from));
}

static int number_in(const char *text, int low, int high, bool *ok) {
    int v = 0;
    if (!args_int(text, &v) || v < low || v > high)
        *ok = false;
    return *ok ? v : low;
}

static bool read_pane(Arena *a, const char *p, const char *end, PaneText *out) {
    bool ok = true;
    out->number = number_in(field(a, &p, end, '/'), 0, PANES - 1, &ok);
    out->share = number_in(field(a, &p, end, '/'), 1, 1 << 20, &ok);
    out->view = field(a, &p, end, '/');
    out->stage = field(a, &p, end, '/');
    out->unit = number_in(field(a, &p, end, '/'), 0, 1 << 20, &ok);
    const char *step = field(a, &p, end, '/'), *dot = strchr(step, '.');
    out->step = number_in(arena_strndup(a, step, dot ? (size_t)(dot - step) : 0), -1, 1 << 20, &ok);
    out->rewrite = number_in(dot ? dot + 1 : "", -1, 1 << 20, &ok);
    out->row = number_in(field(a, &p, end, '/'), 0, 1 << 28, &ok);
    out->top = number_in(field(a, &p, end, '/'), 0, 1 << 28, &ok);
    out->arg = field(a, &p, end, '/');
    out->free = !strcmp(field(a, &p, end, '/'), "free");
    return ok;
}

typedef struct Arranged {
    Windows layout;
    PaneText pane[PANES];
    int n;
    bool home;
} Arranged;

static bool read_column(Arena *a, const char *p, const char *end, Arranged *out) {
    bool ok = true;
    Column *col = &out->layout.col[out->layout.n++];
    *col = (Column){.weight = number_in(field(a, &p, end, ':'), 1, 1 << 20, &ok)};
    while (ok && p < end) {
        const char *comma = memchr(p, ',', (size_t)(end - p)), *stop = comma ? comma : end;
        PaneText *t = &out->pane[out->n];
        if (out->n == PANES || !read_pane(a, p, stop, t) || layout_has(&out->layout, t->number))
            return false;
        col->pane[col->n] = t->number;
        col->share[col->n++] = t->share;
        out->n++;
        p = comma ? comma + 1 : end;
    }
    return ok && col->n;
}

static bool read_all(Arena *a, const char *text, Arranged *out) {
    *out = (Arranged){.layout.by_hand = true};
    for (const char *p = text; *(p += strspn(p, " "));) {
        size_t n = strcspn(p, " ");
        if (n == 4 && !memcmp(p, "zoom", 4))
            out->layout.zoom = true;
        else if (n == 4 && !memcmp(p, "home", 4))
            out->home = true;
        else if (n > 6 && !memcmp(p, "focus=", 6))
            out->layout.focus = (int)strtol(p + 6, NULL, 10);
        else if (n > 6 && !memcmp(p, "built=", 6))
            ; // build_again reads it
        else if (out->layout.n == PANES || !read_column(a, p, p + n, out))
            return false;
        p += n;
    }
    return out->layout.n > 0 && layout_has(&out->layout, out->layout.focus);
}

bool arrange_check(App *app, const char *text) {
    Arranged got;
    return read_all(&app->frame, text, &got);
}

// Shows in a pane what the text says, if this model has it; else what it showed before.
static void show_pane(App *app, const PaneText *t) {
    const View *v = view_find(t->view);
    int stage = stage_find(t->stage);
    Pane *p = &app->pane[t->number];
    p->free = t->free;
    if (!v || t->unit >= model_units(app->session))
        return;
    Diag quiet = {.arena = &app->frame};
    if (t->step >= 0)
        model_artifact(app->session, t->unit, stage, &quiet);
    if (!pane_show_step(app, t->number, v, stage, t->unit, t->step, t->rewrite, t->arg))
        return;
    p->top = t->top;
    pane_move(app, p, t->row);
}

// Of a layout kept for any model: the view and the stage, if this model has it and it wants no
// words. It is made when it is drawn.
static void show_kind(App *app, const PaneText *t) {
    const View *v = view_find(t->view);
    int stage = stage_find(t->stage);
    if (!v || stage < 0 || *t->arg || v->flags & (VIEW_free | VIEW_work) ||
        stage_state(app->session, 0, stage).never)
        return;
    app_give(app, t->number, v, stage);
    app->pane[t->number].free = t->free;
    app->pane[t->number].given = false;
}

// Scrolling asks how many rows a pane has, before anything is drawn.
static void know_heights(App *app) {
    Rect rect[PANES];
    Windows all = app->layout;
    all.zoom = false;
    layout_place(&all, app_body(app), rect);
    if (app->layout.zoom)
        rect[app->layout.focus] = app_body(app);
    for (int i = 0; i < PANES; i++)
        app->pane[i].rows_shown = rect[i].rows - 1;
}

bool arrange_read(App *app, const char *text, bool contents) {
    Arranged got;
    if (!read_all(&app->frame, text, &got)) {
        diag_fail(&app->diag, "this is no arrangement of panes: %s", text);
        return false;
    }
    app->layout = got.layout;
    app->home = got.home && contents;
    if (contents && app->session)
        build_again(app, text);
    know_heights(app);
    for (int i = 0; i < got.n && contents && app->session; i++)
        show_pane(app, &got.pane[i]);
    for (int i = 0; i < got.n && !contents && app->session; i++)
        show_kind(app, &got.pane[i]);
    return true;
}

// ---- by name

static char *layouts_path(App *app) {
    char *dir = dir_state(&app->frame, &app->diag);
    return dir ? path_join(&app->frame, dir, "layouts") : NULL;
}

static Str layouts_read(App *app, const char *path) {
    Diag quiet = {.arena = &app->frame};
    Str none = {"", 0};
    bool there = path && file_exists(path) && !file_is_stream(path);
    return there ? file_read(&app->frame, path, &quiet) : none;
}

const char *arrange_named(App *app, const char *name) {
    Str s = layouts_read(app, layouts_path(app));
    size_t n = strlen(name);
    for (const char *p = s.ptr; p && *p;) {
        size_t len = strcspn(p, "\n");
        if (len > n && !memcmp(p, name, n) && p[n] == ' ')
            return arena_strndup(&app->frame, p + n + 1, len - n - 1);
        p += len + (p[len] == '\n');
    }
    return NULL;
}

void arrange_names(App *app, void (*visit)(void *ctx, const char *name, const char *text),
                   void *ctx) {
    Str s = layouts_read(app, layouts_path(app));
    for (const char *p = s.ptr; p && *p;) {
        size_t len = strcspn(p, "\n"), word = strcspn(p, " \n");
        if (word && word < len)
            visit(ctx, arena_strndup(&app->frame, p, word),
                  arena_strndup(&app->frame, p + word + 1, len - word - 1));
        p += len + (p[len] == '\n');
    }
}

bool arrange_keep(App *app, const char *name, const char *text) {
    char *path = layouts_path(app);
    Buf b = {.arena = &app->frame};
    size_t n = strlen(name);
    if (!path)
        return false;
    for (const char *p = layouts_read(app, path).ptr; p && *p;) {
        size_t len = strcspn(p, "\n");
        if (!(len > n && !memcmp(p, name, n) && p[n] == ' '))
            buf_printf(&b, "%.*s\n", (int)len, p);
        p += len + (p[len] == '\n');
    }
    if (text)
        buf_printf(&b, "%s %s\n", name, text);
    return file_write(path, buf_str(&b), b.len, &app->diag);
}
