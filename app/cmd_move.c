// cmd_move.c: commands that move the cursor inside a pane, search, and open or fold what it is on.
#include "app/app.h"
#include "app/model.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

static int number(const Args *args, int i, int fallback) {
    int v = fallback;
    if (i < args->n)
        args_int(args->at[i], &v);
    return v;
}

bool cmd_move(App *app, Args *args) {
    Pane *p = app_pane(app);
    int n = number(args, 1, 1), dir = args->at[0][0] == 'u' ? -1 : 1;
    if (!pane_ready(app, p))
        return true;
    if (!p->ctx.view->plane)
        pane_move(app, p, p->row + dir * n);
    for (int i = 0; p->ctx.view->plane && i < n && pane_walk(app, p, 0, dir); i++)
        ;
    return true;
}

bool cmd_page(App *app, Args *args) {
    Pane *p = app_pane(app);
    int rows = p->rows_shown > 2 ? p->rows_shown - 1 : 1;
    if (args->n > 1)
        rows = (rows + 1) / 2;
    if (!pane_ready(app, p))
        return true;
    int by = args->at[0][0] == 'u' ? -rows : rows;
    p->top += by;
    pane_move(app, p, p->row + by);
    return true;
}

bool cmd_top(App *app, Args *args) {
    (void)args;
    if (pane_ready(app, app_pane(app)))
        pane_move(app, app_pane(app), 0);
    return true;
}

bool cmd_bottom(App *app, Args *args) {
    (void)args;
    Pane *p = app_pane(app);
    if (pane_ready(app, p))
        pane_move(app, p, pane_count(app, p) - 1);
    return true;
}

bool cmd_scroll(App *app, Args *args) {
    Pane *p = app_pane(app);
    int n = number(args, 1, 8);
    if (pane_ready(app, p) && p->ctx.view->plane) {
        pane_walk(app, p, args->at[0][0] == 'l' ? -1 : 1, 0);
        return true;
    }
    p->left += args->at[0][0] == 'l' ? -n : n;
    if (p->left < 0)
        p->left = 0;
    if (p->left > 4096)
        p->left = 4096;
    return true;
}

bool cmd_enter(App *app, Args *args) {
    (void)args;
    Pane *p = app_pane(app);
    if (!pane_has_row(app, p))
        return true;
    const char *line = p->ctx.view->enter ? p->ctx.view->enter(&p->ctx, p->row) : NULL;
    if (line)
        return app_run(app, line);
    Line *l = pane_line(app, p, p->row);
    if (l->fold != FOLD_none)
        return app_run(app, "toggle");
    app_message(app, ST_dim, "nothing to open on this line");
    return true;
}

// The thing under the cursor stays where it is on the screen while all else moves.
static void hold_place(App *app, Pane *p, int row, int from, int row_before, int from_before) {
    int left = p->left + from - from_before, top = p->top + row - row_before;
    p->row = row;
    p->left = left > 0 ? left : 0;
    p->top = top > 0 ? top : 0;
    pane_move(app, p, row);
}

static int middle(Pane *p) {
    int from, cols;
    p->ctx.view->plane->columns(&p->ctx, &from, &cols);
    return from + cols / 2;
}

bool cmd_toggle(App *app, Args *args) {
    (void)args;
    Pane *p = app_pane(app);
    const char *line = NULL;
    bool plane = pane_has_row(app, p) && p->ctx.view->plane;
    int row = p->row, from = plane ? middle(p) : 0;
    if (!pane_has_row(app, p) || !p->ctx.view->toggle ||
        !p->ctx.view->toggle(&p->ctx, p->row, &line)) {
        app_message(app, ST_dim, "nothing to fold or choose on this line");
        return true;
    }
    if (line)
        return app_run(app, line);
    if (plane)
        hold_place(app, p, p->ctx.view->start(&p->ctx), middle(p), row, from);
    else
        pane_move(app, p, p->row);
    return true;
}

bool cmd_detail(App *app, Args *args) {
    Pane *p = app_pane(app);
    const Plane *plane = pane_ready(app, p) ? p->ctx.view->plane : NULL;
    if (!plane || !plane->levels) {
        app_message(app, ST_dim, "detail is of drawings: view drawing");
        return true;
    }
    const char *word = args->at[0];
    int now = plane->detail(&p->ctx), to = !strcmp(word, "more") ? now + 1 : now - 1, n = 0;
    for (; plane->levels[n]; n++)
        if (!strcmp(word, plane->levels[n]))
            to = n + 1;
    if (to < 1 || to > n) {
        app_message(app, ST_dim, to < 1 ? "no less: Space folds groups, a groups otherwise"
                                        : "no more: i tells all of a node");
        return true;
    }
    int row = p->row, from = middle(p), row_now = plane->zoom(&p->ctx, to);
    if (row_now < 0)
        return true;
    p->ctx.opt.detail = to;
    hold_place(app, p, row_now, middle(p), row, from);
    return true;
}

bool cmd_alter(App *app, Args *args) {
    (void)args;
    Pane *p = app_pane(app);
    if (!p->ctx.view || p->ctx.view->alters < 2) {
        app_message(app, ST_dim, "this view has one form only");
        return true;
    }
    p->ctx.opt.alter = (p->ctx.opt.alter + 1) % p->ctx.view->alters;
    p->ready = false;
    return true;
}

bool cmd_sort(App *app, Args *args) {
    Pane *p = app_pane(app);
    int n = 0;
    if (!p->ctx.view || !p->ctx.view->sorts) {
        app_message(app, ST_dim, "this view has no columns to sort by");
        return true;
    }
    while (p->ctx.view->sorts[n])
        n++;
    int to = p->ctx.opt.sort + 1;
    if (args->n && !args_int(args->at[0], &to)) {
        diag_fail(&app->diag, "sort takes the number of a column, not '%s'", args->at[0]);
        return false;
    }
    assert(n > 0);
    p->ctx.opt.sort = ((to % n) + n) % n;
    app->sort[view_number(p->ctx.view)] = p->ctx.opt.sort;
    p->ready = false;
    app_message(app, ST_dim, "sorted by %s", p->ctx.view->sorts[p->ctx.opt.sort]);
    return true;
}

bool cmd_escape(App *app, Args *args) {
    (void)args;
    if (app->search[0]) {
        app->search[0] = 0;
        return true;
    }
    if (pane_leave(app))
        return true;
    if (app->layout.zoom && !app->home) {
        app->layout.zoom = false;
        return true;
    }
    if (app->home && app->pane[app->layout.focus].ctx.view)
        app->home = false;
    return true;
}

// ---- searching ----

bool cmd_search(App *app, Args *args) {
    Pane *p = app_pane(app);
    snprintf(app->search, sizeof app->search, "%s", args->n ? args->at[0] : "");
    app->search_back = false;
    if (!app->search[0])
        return true;
    int row = search_row(app, p, app->search, p->row - 1, 1);
    if (row < 0) {
        diag_fail(&app->diag, "'%s' is not in this pane", app->search)->hint =
            "F finds in all stages";
        app->search[0] = 0;
        return false;
    }
    pane_move(app, p, row);
    return true;
}

bool cmd_next(App *app, Args *args) {
    (void)args;
    search_step(app, 1);
    return true;
}

bool cmd_prev(App *app, Args *args) {
    (void)args;
    search_step(app, -1);
    return true;
}
