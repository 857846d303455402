// cmd_window.c: commands about panes and about the terminal.
#include "app/app.h"
#include "app/model.h"

#include <stdio.h>
#include <string.h>

static bool flip(bool now, const Args *args) {
    return args->n ? args->at[0][1] == 'n' : !now;
}

bool cmd_lock(App *app, Args *args) {
    Pane *p = app_pane(app);
    p->free = !flip(!p->free, args);
    app_message(app, ST_dim,
                p->free ? "this pane stays where it is" : "this pane follows the cursor");
    return true;
}

// A pane that has shown nothing yet begins with what the one beside it shows.
static void fill_pane(App *app, int pane, int like) {
    Pane *p = &app->pane[pane], *from = &app->pane[like];
    if (p->ctx.view || !from->ctx.view)
        return;
    pane_show(app, pane, from->ctx.view, from->ctx.stage, from->ctx.unit, from->ctx.arg);
    p->ctx.step = from->ctx.step;
    p->ctx.rewrite = from->ctx.rewrite;
    p->top = from->top;
    pane_move(app, p, from->row);
}

static void print_layout(void *ctx, const char *name, const char *text) {
    App *app = ctx;
    int panes = 1, columns = 0;
    for (const char *p = text; *p; p++) {
        panes += *p == ',';
        columns += *p == ':';
    }
    panes += columns - 1;
    buf_printf(&app->out, "%-16s %d pane%s in %d column%s\n", name, panes, panes == 1 ? "" : "s",
               columns, columns == 1 ? "" : "s");
}

// `save NAME`, `delete NAME` and `list` are done: ""; the text of a layout of that name; else NULL.
static const char *layout_word(App *app, const Args *args) {
    const char *verb = args->at[0], *name = args->n > 1 ? args->at[1] : NULL;
    int n;
    if (!strcmp(verb, "list")) {
        arrange_names(app, print_layout, app);
        if (!app->out.len)
            app_message(app, ST_dim, "no layout is kept: layout save NAME keeps this one");
        return "";
    }
    if (name && (!strcmp(verb, "save") || !strcmp(verb, "delete"))) {
        Buf b = {.arena = &app->frame};
        arrange_print(app, &b);
        if (arrange_keep(app, name, verb[0] == 's' ? buf_str(&b) : NULL))
            app_message(app, ST_text, verb[0] == 's' ? "layout %s brings this back" : "%s is gone",
                        name);
        return "";
    }
    return args_int(verb, &n) || !strcmp(verb, "auto") ? NULL : arrange_named(app, verb);
}

bool cmd_arrange(App *app, Args *args) {
    return arrange_read(app, args->rest, true);
}

bool layout_check(App *app, const char *text, Diag *d) {
    int n;
    if (!strcmp(text, "auto") || (args_int(text, &n) && n >= 1 && n <= PANES) ||
        arrange_named(app, text) || (strchr(text, ':') && arrange_check(app, text)))
        return true;
    diag_fail(d, "layout takes 1..%d, auto or a name, not '%s'", PANES, text)->hint =
        "layout save NAME keeps this one, layout list tells the names";
    return false;
}

bool layout_take(App *app, const char *text) {
    return strchr(text, ':') ? arrange_read(app, text, false)
                             : app_run(app, arena_printf(&app->arena, "layout %s", text));
}

// Panes stand in the order of the pipeline; what shows no stage comes last.
static int place_of(const App *app, int pane) {
    const ViewCtx *c = &app->pane[pane].ctx;
    return c->view && c->view->flags & VIEW_stage ? c->stage : STAGE_count;
}

static void put_in_order(App *app) {
    int order[PANES], n = 0;
    Windows *l = &app->layout;
    for (int c = 0; c < l->n; c++)
        for (int i = 0; i < l->col[c].n; i++) {
            int pane = l->col[c].pane[i], k = n++;
            for (; k > 0 && place_of(app, order[k - 1]) > place_of(app, pane); k--)
                order[k] = order[k - 1];
            order[k] = pane;
        }
    for (int c = 0, k = 0; c < l->n; c++)
        for (int i = 0; i < l->col[c].n; i++)
            l->col[c].pane[i] = order[k++];
}

bool cmd_layout(App *app, Args *args) {
    int n = 0;
    const char *named = layout_word(app, args);
    if (named)
        return !*named || arrange_read(app, named, false);
    if (!layout_check(app, args->at[0], &app->diag))
        return false;
    app->layout.by_hand = strcmp(args->at[0], "auto") != 0;
    if (!app->layout.by_hand || !args_int(args->at[0], &n))
        n = layout_auto(app->screen.cols, app->screen.rows);
    if (!app->home)
        app_pane(app)->given = false; // what somebody looks at stays
    app->layout.zoom = false;
    app->home = false;
    layout_tiles(&app->layout, n, app_body(app).cols, app_body(app).rows);
    app_fill(app);
    put_in_order(app);
    return true;
}

bool cmd_split(App *app, Args *args) {
    if (app->home) {
        app->home = false;
        app->layout.zoom = false;
        return true;
    }
    int from = app->layout.focus;
    int pane = layout_split(&app->layout, args->n && args->at[0][0] == 'b');
    if (pane < 0) {
        diag_fail(&app->diag, "there are %d panes already", PANES);
        return false;
    }
    app->pane[pane].ctx.view = NULL;
    fill_pane(app, pane, from);
    return true;
}

bool cmd_focus(App *app, Args *args) {
    int n;
    if (app->home) {
        app->home = !app->pane[app->layout.focus].ctx.view;
        return true;
    }
    if (args_int(args->at[0], &n)) {
        if (n < 1 || n > PANES || !layout_has(&app->layout, n - 1)) {
            diag_fail(&app->diag, "no pane %d: there are %d", n, layout_panes(&app->layout));
            return false;
        }
        app->layout.focus = n - 1;
    } else if (!strcmp(args->at[0], "next") || !strcmp(args->at[0], "prev")) {
        app->layout.focus =
            layout_next(&app->layout, app->layout.focus, args->at[0][0] == 'n' ? 1 : -1);
    } else {
        diag_fail(&app->diag, "focus takes next, prev or a number, not '%s'", args->at[0]);
        return false;
    }
    return true;
}

bool cmd_zoom(App *app, Args *args) {
    app->layout.zoom = app->layout.zoom_by_hand = flip(app->layout.zoom, args);
    return true;
}

bool cmd_swap(App *app, Args *args) {
    (void)args;
    layout_swap(&app->layout, app->layout.focus, layout_next(&app->layout, app->layout.focus, 1));
    return true;
}

bool cmd_grow(App *app, Args *args) {
    int n = 4;
    if (args->n > 1)
        args_int(args->at[1], &n);
    bool wide = args->at[0][0] == 'w' || args->at[0][0] == 'n';
    if (args->at[0][0] == 'n' || args->at[0][0] == 's')
        n = -n;
    layout_grow(&app->layout, app_body(app), app->layout.focus, wide ? n : 0, wide ? 0 : n);
    return true;
}

bool cmd_close(App *app, Args *args) {
    (void)args;
    if (pane_leave(app))
        return true;
    if (app->home) {
        if (app->pane[app->layout.focus].ctx.view)
            app->home = false;
        return true;
    }
    if (app->layout.zoom) {
        app->layout.zoom = false;
        return true;
    }
    if (!layout_close(&app->layout, app->layout.focus))
        app_message(app, ST_dim, "the last pane: Q leaves the program");
    return true;
}

bool cmd_prompt(App *app, Args *args) {
    const char *what = args->n ? args->at[0] : "";
    char sign = !strcmp(what, "search") ? '/' : !strcmp(what, "find") ? 'F' : ':';
    char text[PROMPT_BYTES] = "";
    if (sign == ':' && *what)
        snprintf(text, sizeof text, "%s ", what);
    app->search_from = spot_here(app);
    prompt_open(&app->prompt, sign, text);
    if (sign == ':' && *what)
        complete(app, &app->prompt);
    return true;
}

bool cmd_key(App *app, Args *args) {
    int errors = app->diag.errors;
    if (args->n)
        app_keys(app, args->at[0]);
    return app->diag.errors == errors;
}

bool cmd_redraw(App *app, Args *args) {
    (void)args;
    app->redraw = true;
    return true;
}

bool cmd_suspend(App *app, Args *args) {
    (void)args;
    app->suspend = true;
    return true;
}

// Once it says what would be lost; asked again it leaves.
bool cmd_quit(App *app, Args *args) {
    (void)args;
    int unsaved = app->interactive ? app_change_count(app) - app->saved_changes : 0;
    if (unsaved && !app->quit_asked) {
        app->quit_asked = true;
        app_message(app, ST_warn,
                    "what you changed is not saved: S saves it as a script, Q again leaves");
        return true;
    }
    app->quit = true;
    return true;
}

bool cmd_echo(App *app, Args *args) {
    buf_printf(&app->out, "%s\n", args->n ? args->at[0] : "");
    return true;
}

// The column of the view under a column of the screen.
static int col_in(const App *app, int pane, const Rect rect[PANES], int col) {
    int from = pane == HOME ? 0 : rect[pane].col;
    return col - from - GUTTER + app->pane[pane].left;
}

void app_mouse(App *app, int row, int col, int kind) {
    Rect rect[PANES];
    int stage; // or graph, or step
    app->message[0] = 0;
    app_rects(app, rect);
    if (row == 0 && kind == MOUSE_click && app->session && rail_hit(app, col, &stage)) {
        char line[64];
        snprintf(line, sizeof line, "stage %s", stage_info[stage].name);
        app_run(app, line);
        return;
    }
    if (row > 0 && row == app_units_row(app) && kind == MOUSE_click && unit_hit(app, col, &stage)) {
        app_run(app, arena_printf(&app->frame, "graph %d", stage));
        return;
    }
    if ((kind == MOUSE_click || (kind == MOUSE_drag && app->drag_border < 0)) &&
        scrubber_hit(app, row, col, &stage)) {
        app_run(app, arena_printf(&app->frame, "scrub %d", stage + 1));
        return;
    }
    if (kind == MOUSE_click)
        app->drag_border = app->home ? -1 : layout_border(&app->layout, rect, col);
    if (kind == MOUSE_drag && app->drag_border >= 0) {
        int pane = app->layout.col[app->drag_border].pane[0];
        layout_grow(&app->layout, app_body(app), pane, col - rect[pane].col - rect[pane].cols, 0);
        return;
    }
    int hit = app->home ? HOME : layout_hit(rect, row, col);
    if (hit < 0)
        return;
    Pane *p = &app->pane[hit];
    int top = app->home ? app_body(app).row : rect[hit].row;
    if (kind == MOUSE_click || kind == MOUSE_double) {
        if (!app->home)
            app->layout.focus = hit;
        int at = row - top - 1;
        at += pane_ready(app, p) && at >= pane_head(p) ? p->top : 0;
        if (row > top && p->ok && at < pane_count(app, p)) {
            pane_move_to(app, p, at, col_in(app, hit, rect, col));
            if (kind == MOUSE_double)
                app_run(app, "enter");
        }
    } else if (kind == MOUSE_wheel_up || kind == MOUSE_wheel_down) {
        int by = kind == MOUSE_wheel_up ? -3 : 3;
        if (!pane_ready(app, p))
            return;
        p->top += by;
        pane_move(app, p, p->row + by);
    }
}
