// pane.c: a pane is a cursor on a view of an artifact. Documents are made when first looked at and again
// when the session's version has moved on; then the cursor lands on the same item, or the nearest row.
#include "app/app.h"
#include "app/model.h"

#include <stdio.h>
#include <string.h>

enum { PAST_MAX = 200 };

int app_pane_number(const App *app) {
    return app->home ? HOME : app->layout.focus;
}

Pane *app_pane(App *app) {
    return &app->pane[app_pane_number(app)];
}

static uint64_t version_now(const App *app) {
    return app->session ? model_version(app->session) : 0;
}

bool pane_show(App *app, int number, const View *view, int stage, int graph, const char *arg) {
    Pane *p = &app->pane[number];
    p->ctx.view = view;
    p->ctx.stage = stage;
    p->ctx.graph = graph;
    p->ctx.arg = arena_strdup(&app->arena, arg ? arg : "");
    p->ctx.opt.alter = p->ctx.opt.sort = 0;
    p->ready = false;
    p->row = p->top = p->left = 0;
    return pane_ready(app, p);
}

static void open_view(App *app, Pane *p) {
    ViewCtx *c = &p->ctx;
    arena_free(&p->arena);
    p->arena = (Arena){0};
    Buf why = {.arena = &app->frame};
    c->session = app->session;
    c->arena = &p->arena;
    c->tmp = &app->frame;
    c->doc = NULL;
    c->artifact = -1;
    c->opt.full = app->full_spelling;
    c->opt.ascii = app->screen.ascii;
    p->ok = false;
    if (!app->session && !(c->view->flags & VIEW_free))
        buf_puts(&why, "no model is open: open MODEL");
    else
        p->ok = !c->view->open || c->view->open(c, &why);
    snprintf(p->why, sizeof p->why, "%s", buf_str(&why));
}

bool pane_ready(App *app, Pane *p) {
    if (!p->ctx.view)
        return false;
    if (p->ready && p->version == version_now(app))
        return p->ok;
    Item item = ITEM_NONE;
    int offset = p->row - p->top;
    if (p->ready && p->ok)
        item = pane_item(app, p);
    open_view(app, p);
    p->ready = true;
    p->version = version_now(app);
    if (p->ok && item.id >= 0 && p->ctx.view->row_of) {
        int row = p->ctx.view->row_of(&p->ctx, item);
        if (row >= 0)
            p->row = row;
        p->top = p->row - offset;
    }
    pane_move(app, p, p->row);
    return p->ok;
}

int pane_count(App *app, Pane *p) {
    return pane_ready(app, p) ? p->ctx.view->count(&p->ctx) : 0;
}

Line *pane_line(App *app, Pane *p, int row) {
    Line *l = ARENA_NEW(&app->frame, Line);
    line_init(l, &app->frame);
    p->ctx.tmp = &app->frame;
    p->ctx.view->line(&p->ctx, row, l);
    return l;
}

void pane_scroll(Pane *p, int count) {
    int rows = p->rows_shown > 0 ? p->rows_shown : 1;
    int margin = rows > 8 ? 2 : 0;
    if (p->row < p->top + margin)
        p->top = p->row - margin;
    if (p->row >= p->top + rows - margin)
        p->top = p->row - rows + 1 + margin;
    if (p->top > count - rows)
        p->top = count - rows;
    if (p->top < 0)
        p->top = 0;
}

void pane_move(App *app, Pane *p, int row) {
    int n = p->ok && p->ready ? p->ctx.view->count(&p->ctx) : 0;
    (void)app;
    if (row >= n)
        row = n - 1;
    p->row = row < 0 ? 0 : row;
    pane_scroll(p, n);
}

Item pane_item(App *app, Pane *p) {
    if (!p->ready || !p->ok || p->row >= p->ctx.view->count(&p->ctx))
        return ITEM_NONE;
    ArenaMark mark = arena_mark(&app->frame);
    Item item = pane_line(app, p, p->row)->item;
    arena_rewind(&app->frame, mark);
    return item;
}

bool pane_goto_item(App *app, Pane *p, Item item) {
    if (item.id < 0 || !pane_ready(app, p) || !p->ctx.view->row_of)
        return false;
    int row = p->ctx.view->row_of(&p->ctx, item);
    if (row < 0)
        return false;
    pane_move(app, p, row);
    return true;
}

// ---- links ----

int app_link(App *app, Item from, Item to) {
    if (!app->session || from.id < 0 || to.id < 0)
        return 0;
    if (from.artifact == to.artifact)
        return from.id == to.id ? 3 : 0;
    ArenaMark mark = arena_mark(&app->frame);
    int n, strength = 0;
    const Link *links = model_links(app->session, &app->frame, from, to.artifact, &n);
    for (int lo = 0, hi = n; lo < hi;) {
        int mid = (lo + hi) / 2;
        if (links[mid].item == to.id) {
            strength = (int)links[mid].strength + 1;
            break;
        }
        if (links[mid].item < to.id)
            lo = mid + 1;
        else
            hi = mid;
    }
    arena_rewind(&app->frame, mark);
    return strength;
}

// Brings the strongest link on screen: on the cursor's own screen row if it was out of sight.
static void follow(App *app, Pane *p, Item item, int screen_row) {
    int n, best = -1;
    const Link *links = model_links(app->session, &app->frame, item, p->ctx.artifact, &n);
    for (int i = 0; i < n; i++)
        if (best < 0 || links[i].strength > links[best].strength)
            best = i;
    if (best < 0)
        return;
    int row = p->ctx.view->row_of(&p->ctx, (Item){p->ctx.artifact, links[best].item});
    if (row < 0)
        return;
    p->row = row;
    if (row < p->top || row >= p->top + p->rows_shown)
        p->top = row - screen_row;
    pane_scroll(p, p->ctx.view->count(&p->ctx));
}

void pane_follow(App *app) {
    if (!app->session || app->home)
        return;
    Pane *focus = app_pane(app);
    if (!pane_ready(app, focus))
        return;
    Item item = pane_item(app, focus);
    for (int i = 0; i < PANES; i++) {
        Pane *p = &app->pane[i];
        if (p == focus || !layout_has(&app->layout, i) || !p->ctx.view)
            continue;
        if (p->ctx.view->flags & VIEW_follows) {
            if (p->ctx.focus.artifact != item.artifact || p->ctx.focus.id != item.id)
                p->ready = false;
            p->ctx.focus = item;
        }
        if (p->free || item.id < 0 || !pane_ready(app, p) || !p->ctx.view->row_of ||
            p->ctx.artifact < 0)
            continue;
        follow(app, p, item, focus->row - focus->top);
    }
}

// ---- places ----

Spot spot_here(App *app) {
    Pane *p = app_pane(app);
    return (Spot){.view = p->ctx.view, .stage = p->ctx.stage, .graph = p->ctx.graph,
                  .arg = p->ctx.arg, .row = p->row, .top = p->top, .left = p->left,
                  .item = pane_item(app, p), .home = app->home};
}

void spot_go(App *app, Spot s) {
    if (!s.view)
        return;
    app->home = s.home;
    Pane *p = app_pane(app);
    bool same = p->ctx.view == s.view && p->ctx.stage == s.stage && p->ctx.graph == s.graph &&
                !strcmp(p->ctx.arg, s.arg);
    if (!same)
        pane_show(app, app_pane_number(app), s.view, s.stage, s.graph, s.arg);
    pane_ready(app, p);
    p->top = s.top;
    p->left = s.left;
    if (!pane_goto_item(app, p, s.item))
        pane_move(app, p, s.row);
}

void spot_push(App *app) {
    Spot s = spot_here(app);
    if (!s.view)
        return;
    if (app->past.n == PAST_MAX)
        vec_remove(&app->past, 0);
    vec_push(&app->arena, &app->past, s);
    app->future.n = 0;
}
