// app.c: the state of the program and its two entrances: a key and a command line. A key is only
// short for a command line, so everything passes through app_run.
#include "app/app.h"
#include "app/hunt.h"
#include "app/model.h"

#include "core/base/file.h"
#include "views/results.h"
#include "core/base/work.h"

#include <stdio.h>
#include <string.h>

enum { DEPTH_MAX = 16 };

void app_init(App *app, int cols, int rows) {
    *app = (App){.colors = 256,
                 .drag_border = -1,
                 .runs.last = -1,
                 .turn_from = ITEM_NONE,
                 .twin_from = ITEM_NONE};
    app->out.arena = &app->frame;
    app->diag.arena = &app->frame;
    app->marks.arena = &app->arena;
    for (int i = 0; i < PINS; i++)
        app->pin[i].item = ITEM_NONE;
    for (int i = 0; i < ALL_PANES; i++)
        app->pane[i].ctx = (ViewCtx){.stage = -1,
                                     .step = -1,
                                     .rewrite = -1,
                                     .arg = "",
                                     .runs = &app->runs,
                                     .work = &app->work,
                                     .output = &app->output,
                                     .taken = app->taken,
                                     .focus = ITEM_NONE,
                                     .arena = &app->pane[i].arena,
                                     .tmp = &app->frame};
    layout_columns(&app->layout, layout_auto(cols, rows));
    app->layout.focus = 0;
    screen_resize(&app->screen, cols, rows);
}

void app_leave_model(App *app) {
    app_forget_runs(app);
    app_drop_minify(app);
    hunt_stop(app);
    if (app->session)
        session_close(app->session);
    app->session = NULL;
}

void app_close(App *app) {
    app_leave_model(app);
    for (int i = 0; i < ALL_PANES; i++)
        arena_free(&app->pane[i].arena);
    screen_free(&app->screen);
    if (app->results)
        arena_free(&app->results->arena);
    for (int i = 0; i <= DIFF_HELD; i++)
        arena_free(&app->taken_arena[i]);
    arena_free(&app->fresh.arena);
    arena_free(&app->output_arena);
    arena_free(&app->prompt.arena);
    arena_free(&app->prompt.choices_arena);
    arena_free(&app->frame);
    arena_free(&app->arena);
}

void app_resize(App *app, int cols, int rows) {
    screen_resize(&app->screen, cols, rows);
    if (app->layout.by_hand)
        return;
    layout_columns(&app->layout, layout_auto(cols, rows));
    app_fill(app);
}

void app_message(App *app, StyleId style, const char *fmt, ...) {
    va_list args;
    va_start(args, fmt);
    vsnprintf(app->message, sizeof app->message, fmt, args);
    va_end(args);
    app->message_style = style;
}

static void reset(App *app) {
    arena_rewind(&app->frame, (ArenaMark){0});
    app->out = (Buf){.arena = &app->frame};
    app->diag = (Diag){.arena = &app->frame};
}

// Which inputs need gradients decides how many graphs there are.
static void units_changed(App *app) {
    for (int i = 0; i < ALL_PANES; i++)
        if (app->pane[i].ctx.unit >= model_units(app->session))
            app->pane[i].ctx.unit = 0;
    app_forget_runs(app);
}

// Runs one command without looking at ` ; `.
static bool run_one(App *app, const char *line) {
    Args args;
    if (!*line || *line == '#')
        return true;
    if (!args_parse(&app->frame, line, &args, &app->diag) || !args_check(&args, &app->diag))
        return false;
    if (!app->session && !(args.cmd->flags & CMD_free)) {
        diag_fail(&app->diag, "%s needs a model", args.cmd->name)->hint = "open MODEL";
        return false;
    }
    int errors = app->diag.errors;
    app->moved = !strcmp(args.cmd->group, "place") || !strcmp(args.cmd->group, "step");
    int units = app->session ? model_units(app->session) : 0;
    WorkPart part = work_enter(args.cmd->name, 0, 1);
    bool ok = args.cmd->run(app, &args) && app->diag.errors == errors;
    work_leave(part);
    if (work_stopped() && app->diag.errors == errors && !app->sink)
        app_message(app, ST_warn, "stopped");
    pane_forget_dead(app);
    if (app->session && app->work.version && !strcmp(args.cmd->group, "change"))
        work_check(app);
    if (app->session && model_units(app->session) != units)
        units_changed(app);
    return ok;
}

// Output of several lines goes to the output view, one line to the message.
static void show_output(App *app, const char *line) {
    const char *text = buf_str(&app->out);
    size_t len = app->out.len;
    while (len && text[len - 1] == '\n')
        len--;
    if (!len)
        return;
    if (!memchr(text, '\n', len)) {
        app_message(app, ST_text, "%.*s", (int)len, text);
        return;
    }
    arena_free(&app->output_arena);
    app->output_arena = (Arena){0};
    Arena *a = &app->output_arena;
    VEC(const char *) lines = {0};
    for (const char *p = text; p < text + len;) {
        const char *end = memchr(p, '\n', (size_t)(text + len - p));
        size_t n = end ? (size_t)(end - p) : (size_t)(text + len - p);
        vec_push(a, &lines, arena_strndup(a, p, n));
        p += n + 1;
    }
    app->output = (Lines){arena_strdup(a, line), NULL, lines.at, lines.n};
    spot_push(app);
    int pane = app->home ? HOME : app->layout.focus;
    layout_widen(&app->layout); // `back` gives the panes again
    pane_show(app, pane, view_find("output"), -1, 0, "");
}

static void show_screen(App *app, const char *line) {
    show_output(app, line);
    if (app->diag.errors) {
        const DiagItem *first = app->diag.at;
        while (first->kind != DIAG_error)
            first++;
        app_message(app, ST_bad, "%s%s%s", first->text, first->hint ? "   " : "",
                    first->hint ? first->hint : "");
    } else if (app->diag.n && !app->message[0]) {
        app_message(app, ST_warn, "%s", app->diag.at[0].text);
    }
}

static void show_result(App *app, const char *line) {
    int code = diag_exit_code(&app->diag);
    if (code > app->exit_code)
        app->exit_code = code;
    app->printed = app->out.len > 0 || app->diag.errors;
    for (int i = 0; i < app->diag.n; i++)
        if (app->at_file && !app->diag.at[i].file) {
            app->diag.at[i].file = app->at_file;
            app->diag.at[i].line = app->at_line;
        }
    if (app->sink)
        app->sink(app);
    else
        show_screen(app, line);
    buf_truncate(&app->out, 0);
    app->diag = (Diag){.arena = &app->frame};
}

bool app_run(App *app, const char *line) {
    if (app->depth == DEPTH_MAX) {
        diag_fail(&app->diag, "command lines nest deeper than %d", DEPTH_MAX);
        return false;
    }
    Arena own = {0}; // the line may lie in the frame that is reset
    line = arena_strdup(&own, line);
    if (app->depth == 0)
        reset(app);
    bool ok = true;
    char *copy = arena_strdup(&app->frame, line + strspn(line, " \t"));
    if (app->depth == app->base && *copy && *copy != '#')
        app->message[0] = 0; // as the key that ends a typed line does
    app->depth++;
    for (char *p = copy; p && ok;) {
        char *next = *p == '#' ? NULL : strstr(p, " ; "); // a comment is one to its end
        if (next) {
            *next = 0;
            next += 3;
            next += strspn(next, " ");
        }
        ok = run_one(app, p);
        p = next;
    }
    app->depth--;
    if (app->depth == app->base)
        show_result(app, line);
    arena_free(&own);
    return ok;
}

void app_print_view(App *app, bool whole) {
    Pane *p = app_pane(app);
    if (app->printed || !app->moved || !app->session)
        return;
    if (whole) {
        app_run(app, "list");
        return;
    }
    reset(app);
    if (pane_has_row(app, p) && p->ctx.view->node)
        p->ctx.view->node(&p->ctx, p->row, &app->out);
    if (app->out.len)
        buf_putc(&app->out, '\n');
    show_result(app, "");
}

static void run_prompt(App *app) {
    char line[PROMPT_BYTES];
    snprintf(line, sizeof line, "%s", app->prompt.text);
    char sign = app->prompt.sign;
    prompt_remember(&app->prompt, line);
    prompt_close(&app->prompt);
    if (!*line)
        return;
    const char *verb = sign == '/' ? "search " : sign == 'F' ? "find " : "";
    char full[PROMPT_BYTES + 8];
    snprintf(full, sizeof full, "%s%s", verb, line);
    app_run(app, full);
}

// The search follows the text while it is typed.
static void search_live(App *app) {
    spot_go(app, app->search_from);
    if (!app->prompt.text[0])
        return;
    snprintf(app->search, sizeof app->search, "%s", app->prompt.text);
    Pane *p = app_pane(app);
    int row = search_row(app, p, app->search, p->row - 1, 1);
    if (row >= 0)
        pane_move(app, p, row);
}

static void prompt_event(App *app, PromptEvent e) {
    Prompt *p = &app->prompt;
    bool live = p->sign == '/';
    switch (e) {
    case PROMPT_run:
        run_prompt(app);
        break;
    case PROMPT_cancel:
        if (live)
            spot_go(app, app->search_from);
        prompt_close(p);
        break;
    case PROMPT_changed:
        prompt_clear_choices(p);
        if (live)
            search_live(app);
        else
            complete(app, p);
        break;
    case PROMPT_wants_choices:
        if (live)
            break;
        complete(app, p);
        if (!prompt_extend(p))
            prompt_choose(p, 1);
        if (!p->choice.n) // it was the only one: what may come behind it
            complete(app, p);
        break;
    case PROMPT_moved:
    case PROMPT_ignored:
        break;
    }
}

static void run_binding(App *app, const KeyBinding *b) {
    app->pending[0] = 0;
    app->menu = false;
    if (b)
        app_run(app, b->line);
}

// Alt and a key that means nothing: Esc and the key came in one packet.
static void split_alt(App *app, const char *key) {
    char rest[32];
    snprintf(rest, sizeof rest, "%c", key[3]);
    app_key(app, "<Esc>");
    app_key(app, rest);
}

void app_key(App *app, const char *key) {
    bool alt = str_starts(key, "<M-") && key[3], asked = app->quit_asked;
    app->message[0] = 0;
    if (app->prompt.open) {
        PromptEvent e = prompt_key(&app->prompt, key);
        if (e == PROMPT_ignored && alt)
            split_alt(app, key);
        else
            prompt_event(app, e);
        return;
    }
    if (app->pending[0] && !strcmp(key, "<Esc>")) {
        run_binding(app, NULL);
        return;
    }
    char keys[sizeof app->pending];
    snprintf(keys, sizeof keys, "%s%s", app->pending, key);
    Pane *p = app_pane(app);
    const char *view = app->home ? "home" : p->ctx.view ? p->ctx.view->name : "";
    bool prefix;
    const KeyBinding *b = key_find(app, view, keys, &prefix);
    if (prefix && !b) {
        snprintf(app->pending, sizeof app->pending, "%s", keys);
        return;
    }
    if (!b && alt) {
        split_alt(app, key);
        return;
    }
    if (!b) {
        app_message(app, ST_dim, "key %s does nothing here; ? lists the keys", keys);
        app->pending[0] = 0;
        app->menu = false;
        return;
    }
    run_binding(app, b);
    app->quit_asked = app->quit_asked && !asked; // the question stands for one key
}

// Lines and keys of a script find what those of a person would: where a pane is scrolled to, and
// what follows the cursor, comes of the last frame.
static void draw_between(App *app) {
    if (!app->sink && !app->interactive)
        app_draw(app);
}

void app_keys(App *app, const char *keys) {
    char key[32];
    int base = app->base;
    app->base = app->depth;
    for (const char *p = keys; *p && !app->quit;) {
        key_next(&p, key);
        app_key(app, key);
        draw_between(app);
    }
    app->base = base;
}

// Runs the lines of a text; a line that begins with `# >>>` ends it (the rest is an expected
// screen).
static bool run_lines(App *app, Str text) {
    Arena one = {0};
    bool ok = true;
    const char *end = text.ptr + text.len;
    for (const char *p = text.ptr; ok && p < end && !app->quit;) {
        const char *stop = memchr(p, '\n', (size_t)(end - p));
        size_t len = stop ? (size_t)(stop - p) : (size_t)(end - p);
        char *line = arena_strndup(&one, p, len);
        if (str_starts(line, "# >>>"))
            break;
        app->at_line++;
        ok = app_run(app, line);
        draw_between(app);
        p += len + 1;
    }
    arena_free(&one);
    return ok;
}

bool app_script(App *app, const char *path) {
    Arena text_arena = {0};
    Diag diag = {.arena = &text_arena};
    Str text = file_read(&text_arena, path, &diag);
    int line = app->at_line, base = app->base;
    const char *file = app->at_file;
    bool ok = text.ptr != NULL;
    if (ok) {
        app->base = app->depth;
        app->at_file = path;
        app->at_line = 0;
        ok = run_lines(app, text);
        app->base = base;
        app->at_file = file;
        app->at_line = line;
    } else {
        diag_fail(&app->diag, "%s", diag_first(&diag));
        if (app->depth == app->base)
            show_result(app, path);
    }
    arena_free(&text_arena);
    return ok;
}
