// pane.c: a pane is a cursor on a view of an artifact. Documents are made when first looked at and
// again when the session's version has moved on; then the cursor lands on the same item, or the
// nearest row.
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

const View *stage_view(int stage) {
    static const char *const view_of[] = {[ART_none] = "timing",
                                          [ART_text] = "source",
                                          [ART_graph] = "graph",
                                          [ART_schedule] = "loops",
                                          [ART_code] = "kernel"};
    return view_find(stage == STAGE_bytecode ? "bytecode" : view_of[stage_info[stage].kind]);
}

// The stage whose artifact the pane's view reads: its own, or the pane's; -1 if that has none.
static int stage_of(const Pane *p) {
    int stage = p->ctx.view->stage >= 0 ? p->ctx.view->stage : p->ctx.stage;
    return stage == STAGE_run ? -1 : stage;
}

// The artifact that the pane is to show now; builds it if need be.
static const Artifact *wanted(App *app, Pane *p, Diag *d) {
    if (!app->session || stage_of(p) < 0)
        return NULL;
    if (p->ctx.step >= 0) {
        const Artifact *a = model_step(app->session, p->ctx.unit, p->ctx.step);
        if (a && (int)a->stage == stage_of(p)) {
            const Artifact *state = p->ctx.rewrite < 0
                                        ? a
                                        : pipeline_state(session_pipeline(app->session),
                                                         p->ctx.unit, a, p->ctx.rewrite, d);
            p->ctx.rewrite = state == a || !state ? -1 : p->ctx.rewrite;
            return state ? state : a;
        }
        p->ctx.step = p->ctx.rewrite = -1;
    }
    return model_artifact(app->session, p->ctx.unit, stage_of(p), d);
}

// Columns that the pane's text has on the screen now.
static int columns_of(const App *app, const Pane *p) {
    Rect rect[PANES];
    if (p == &app->pane[HOME])
        return app->screen.cols - GUTTER;
    app_rects(app, rect);
    int cols = rect[p - app->pane].cols;
    return cols ? cols - GUTTER : p->ctx.opt.cols;
}

// And rows; those of a pane that is not shown are as they were.
static int rows_of(const App *app, const Pane *p) {
    Rect rect[PANES];
    if (p == &app->pane[HOME])
        return app_body(app).rows - 1;
    app_rects(app, rect);
    return rect[p - app->pane].rows ? rect[p - app->pane].rows - 1 : p->ctx.opt.rows;
}

static uint64_t version_of(const App *app, const Pane *p, const Artifact *art) {
    if (!app->session)
        return 0;
    uint64_t v = art ? (uint64_t)art->id + 1 : model_version(app->session);
    if (p->ctx.view->flags & VIEW_width)
        v = hash_mix(v, (uint64_t)p->ctx.opt.cols << 16 | (uint64_t)p->ctx.opt.rows);
    if (p->ctx.view->flags & VIEW_work)
        v = hash_mix(v, app->work.version);
    if (p->ctx.view->flags & VIEW_joint) // it shows what a run took
        v = hash_mix(v, app->runs.version);
    return hash_mix(v, (uint64_t)app->full_spelling);
}

bool pane_show(App *app, int number, const View *view, int stage, int unit, const char *arg) {
    return pane_show_step(app, number, view, stage, unit, -1, -1, arg);
}

bool pane_show_step(App *app, int number, const View *view, int stage, int unit, int step,
                    int rewrite, const char *arg) {
    Pane *p = &app->pane[number];
    app->moved = true;
    p->given = false;
    p->ctx.view = view;
    p->ctx.stage = stage;
    p->ctx.unit = unit;
    p->ctx.step = step;
    p->ctx.rewrite = rewrite;
    p->ctx.arg = arena_strdup(&app->arena, arg ? arg : "");
    p->ctx.opt.alter = 0;
    p->ctx.opt.sort = view ? app->sort[view_number(view)] : 0;
    p->ctx.plane_row = p->ctx.plane_col = 0;
    p->ready = false;
    p->row = p->top = p->left = 0;
    p->last_key[0] = 0;
    p->fresh = true;
    return pane_ready(app, p);
}

static void open_view(App *app, Pane *p, const Artifact *art, const char *problem) {
    ViewCtx *c = &p->ctx;
    arena_free(&p->arena);
    p->arena = (Arena){0};
    Buf why = {.arena = &app->frame};
    c->session = app->session;
    c->arena = &p->arena;
    c->tmp = &app->frame;
    c->doc = NULL;
    c->art = art;
    if (app->session && model_step_of(app->session, c->unit, c->focus_art) < 0)
        c->focus_art = NULL; // rebuilt since
    c->opt.full = app->full_spelling;
    c->opt.hide_times = app->hide_times;
    c->opt.plain_layout = app->plain_layout;
    c->opt.ascii = app->screen.ascii;
    p->ok = false;
    if (!app->session && !(c->view->flags & VIEW_free))
        buf_puts(&why, "no model is open: open MODEL");
    else if (!art && stage_of(p) >= 0)
        buf_puts(&why, *problem ? problem : "this stage could not be built");
    else
        p->ok = !c->view->open || c->view->open(c, &why);
    snprintf(p->why, sizeof p->why, "%s", buf_str(&why));
}

// On the cursor's row of a document that is known to be fresh.
static Item item_now(App *app, Pane *p) {
    if (p->row >= p->ctx.view->count(&p->ctx))
        return ITEM_NONE;
    ArenaMark mark = arena_mark(&app->frame);
    Line *l = pane_line(app, p, p->row);
    Item item = l->item.id >= 0 ? l->item : l->owner;
    arena_rewind(&app->frame, mark);
    return item;
}

// What the pane holds of artifacts that were freed since: by its own artifact it is made anew.
static void forget_dead(App *app, Pane *p) {
    ViewCtx *c = &p->ctx;
    if (!app->session)
        return;
    const Pipeline *pl = session_pipeline(app->session);
    if (p->generation == pipeline_generation(pl))
        return;
    p->generation = pipeline_generation(pl);
    // A document's own artifacts, whose numbers are negative, live as long as it does.
    if (c->art && p->shown_id >= 0 && !pipeline_has(pl, c->art, p->shown_id)) {
        c->art = NULL;
        p->ready = false;
    }
    if (c->focus_art && !pipeline_has(pl, c->focus_art, c->focus.artifact)) {
        c->focus_art = NULL;
        p->ready = false;
    }
}

void pane_forget_dead(App *app) {
    for (int i = 0; i < ALL_PANES; i++)
        forget_dead(app, &app->pane[i]);
}

static void know_alive(App *app, Pane *p) {
    p->shown_id = p->ctx.art ? p->ctx.art->id : -1;
    if (app->session)
        p->generation = pipeline_generation(session_pipeline(app->session));
}

// After a rebuild: the row that is about what the cursor was on; -1: there is none.
static int same_row(Pane *p, const Artifact *art, int id) {
    const View *v = p->ctx.view;
    if (v->key && p->last_key[0]) {
        int n = v->count(&p->ctx), row = 0;
        while (row < n && strcmp(v->key(&p->ctx, row), p->last_key) != 0)
            row++;
        return row < n ? row : -1;
    }
    return id >= 0 && art && v->row_of ? v->row_of(&p->ctx, (Item){art->id, id}) : -1;
}

bool pane_ready(App *app, Pane *p) {
    if (!p->ctx.view)
        return false;
    forget_dead(app, p);
    Diag d = {.arena = &app->frame};
    const Artifact *art = wanted(app, p, &d);
    p->ctx.opt.cols = columns_of(app, p);
    p->ctx.opt.rows = rows_of(app, p);
    uint64_t version = version_of(app, p, art);
    if (p->ready && p->version == version)
        return p->ok;
    // A rebuilt artifact may lie where the old one did: only its number tells them apart.
    bool alive = p->ready && p->ok && art && p->art_id == art->id;
    int id = alive ? item_now(app, p).id : p->last.id, offset = p->row - p->top;
    open_view(app, p, art, diag_first_placed(&d, &app->frame));
    know_alive(app, p);
    p->ready = true;
    p->version = version;
    p->art_id = art ? art->id : -1;
    if (p->ok && p->fresh && p->ctx.view->start)
        p->row = p->ctx.view->start(&p->ctx);
    if (p->ok && !p->fresh && (p->row > 0 || p->ctx.view->key)) {
        int row = same_row(p, art, id);
        p->row = row >= 0 ? row : p->row;
        p->top = p->row - offset;
    }
    bool placed = p->fresh && p->ok;
    p->fresh = p->fresh && !p->ok;
    pane_move(app, p, p->row);
    if (placed)
        p->top = 0; // as much of the beginning as leaves the cursor in sight
    return p->ok;
}

int pane_count(App *app, Pane *p) {
    return pane_ready(app, p) ? p->ctx.view->count(&p->ctx) : 0;
}

bool pane_has_row(App *app, Pane *p) {
    return p->row < pane_count(app, p);
}

Line *pane_line(App *app, Pane *p, int row) {
    Line *l = ARENA_NEW(&app->frame, Line);
    line_init(l, &app->frame);
    p->ctx.tmp = &app->frame;
    p->ctx.opt.left = p->ctx.opt.cols == VIEW_UNCUT ? 0 : p->left;
    p->ctx.view->line(&p->ctx, row, l);
    return l;
}

void pane_print(App *app, Pane *p, Buf *out) {
    int n = pane_count(app, p);
    bool signs = false;
    p->ctx.opt.cols = VIEW_UNCUT;
    for (int i = 0; i < n && !signs; i++)
        signs = pane_line(app, p, i)->sign;
    for (int i = 0; i < n; i++) {
        Line *l = pane_line(app, p, i);
        if (signs)
            buf_printf(out, "%s ", l->sign ? l->sign : " ");
        buf_printf(out, "%s%s\n", l->kind == LINE_section ? "── " : "", line_text(l, &app->frame));
    }
}

int pane_head(Pane *p) {
    const View *v = p->ctx.view;
    int n = v && v->head && p->ok && p->ready ? v->head(&p->ctx) : 0;
    return n * 2 > p->rows_shown ? 0 : n; // where they would take more than half they go, too
}

void pane_scroll(Pane *p, int count) {
    int rows = p->rows_shown > 0 ? p->rows_shown : 1, head = pane_head(p);
    int margin = rows - head > 8 ? 2 : 0;
    if (p->row < p->top + head + margin)
        p->top = p->row - head - margin;
    if (p->row >= p->top + rows - margin)
        p->top = p->row - rows + 1 + margin;
    if (p->top > count - rows)
        p->top = count - rows;
    if (p->top < 0)
        p->top = 0;
}

// On a plane the thing nearest to the row gets the cursor, and its columns come into sight.
static void pane_settle(Pane *p, int col) {
    const Plane *plane = p->ctx.view->plane;
    int from, cols, room = p->ctx.opt.cols > 0 ? p->ctx.opt.cols : 1;
    p->row = plane->near(&p->ctx, p->row, col);
    plane->columns(&p->ctx, &from, &cols);
    if (from < p->left)
        p->left = from > room / 4 ? from - room / 4 : 0;
    if (from + cols > p->left + room)
        p->left = from + cols - room + room / 4;
}

void pane_move_to(App *app, Pane *p, int row, int col) {
    int n = p->ok && p->ready ? p->ctx.view->count(&p->ctx) : 0;
    (void)app;
    if (row >= n)
        row = n - 1;
    p->row = row < 0 ? 0 : row;
    if (n && p->ctx.view->plane)
        pane_settle(p, col);
    pane_scroll(p, n);
}

void pane_move(App *app, Pane *p, int row) {
    pane_move_to(app, p, row, -1);
}

bool pane_walk(App *app, Pane *p, int dx, int dy) {
    int row = p->ctx.view->plane->walk(&p->ctx, dx, dy);
    if (row >= 0)
        pane_move(app, p, row);
    return row >= 0;
}

Item pane_item(App *app, Pane *p) {
    return pane_ready(app, p) ? item_now(app, p) : ITEM_NONE;
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

bool pane_reveal_item(App *app, Pane *p, Item item) {
    const View *v = p->ctx.view;
    if (!pane_goto_item(app, p, item))
        return false;
    Line *l = pane_line(app, p, p->row);
    const char *command = NULL;
    if (l->fold == FOLD_closed && l->item.id != item.id && v->toggle &&
        v->toggle(&p->ctx, p->row, &command) && !command)
        pane_goto_item(app, p, item);
    return true;
}

// ---- links ----

const uint8_t *item_links(App *app, Item from, const Artifact *from_art, const Artifact *to,
                          int *n) {
    *n = 0;
    if (!app->session || from.id < 0 || !from_art || !to)
        return NULL;
    uint8_t *strength = ARENA_ARRAY(&app->frame, to->n_items + 1, uint8_t);
    *n = to->n_items;
    if (from_art == to) {
        if (from.id < *n)
            strength[from.id] = LINK_same + 1;
        return strength;
    }
    Link *links = NULL;
    int count =
        pipeline_links(session_pipeline(app->session), from_art, from.id, to, &app->frame, &links);
    for (int i = 0; i < count; i++)
        if (links[i].item >= 0 && links[i].item < *n &&
            strength[links[i].item] < links[i].strength + 1)
            strength[links[i].item] = (uint8_t)(links[i].strength + 1);
    return strength;
}

// Brings the strongest link on screen: on the cursor's own screen row if it was out of sight.
static void follow(App *app, Pane *p, Item item, const Artifact *art, int screen_row) {
    Link *links = NULL;
    if (art == p->ctx.art || !pipeline_links(session_pipeline(app->session), art, item.id,
                                             p->ctx.art, &app->frame, &links))
        return;
    int row = p->ctx.view->row_of(&p->ctx, (Item){p->ctx.art->id, links[0].item});
    if (row < 0)
        return;
    p->row = row;
    if (row < p->top || row >= p->top + p->rows_shown)
        p->top = row - screen_row;
    pane_scroll(p, p->ctx.view->count(&p->ctx));
}

const Artifact *pane_shared_art(const Pane *p) {
    return p->ctx.art && p->ctx.art->id >= 0 ? p->ctx.art : NULL;
}

void pane_follow(App *app) {
    if (!app->session || app->home)
        return;
    Pane *focus = app_pane(app);
    if (!pane_ready(app, focus))
        return;
    Item item = pane_item(app, focus);
    focus->last = item;
    bool keyed = focus->ctx.view->key && pane_has_row(app, focus);
    snprintf(focus->last_key, sizeof focus->last_key, "%s",
             keyed ? focus->ctx.view->key(&focus->ctx, focus->row) : "");
    bool source = !(focus->ctx.view->flags & VIEW_follows);
    for (int i = 0; i < PANES; i++) {
        Pane *p = &app->pane[i];
        if (p == focus || !layout_has(&app->layout, i) || !p->ctx.view)
            continue;
        if (source && (p->ctx.view->flags & VIEW_follows)) {
            if (p->ctx.focus.artifact != item.artifact || p->ctx.focus.id != item.id)
                p->ready = false;
            p->ctx.focus = item;
            p->ctx.focus_art = pane_shared_art(focus);
        }
        if (p->free || item.id < 0 || !focus->ctx.art || !pane_ready(app, p) ||
            !p->ctx.view->row_of || !p->ctx.art)
            continue;
        follow(app, p, item, focus->ctx.art, focus->row - focus->top);
    }
}

// ---- places ----

Spot spot_of(App *app, int number) {
    Pane *p = &app->pane[number];
    return (Spot){.pane = number,
                  .focus = app->layout.focus,
                  .view = p->ctx.view,
                  .stage = p->ctx.stage,
                  .unit = p->ctx.unit,
                  .step = p->ctx.step,
                  .rewrite = p->ctx.rewrite,
                  .arg = p->ctx.arg,
                  .row = p->row,
                  .top = p->top,
                  .left = p->left,
                  .item = pane_item(app, p),
                  .home = app->home,
                  .zoom = app->layout.zoom};
}

Spot spot_here(App *app) {
    return spot_of(app, app_pane_number(app));
}

void spot_go(App *app, Spot s) {
    if (!s.view)
        return;
    app->home = s.home;
    app->layout.zoom = s.zoom;
    if (layout_has(&app->layout, s.focus))
        app->layout.focus = s.focus;
    int number = s.pane == HOME || layout_has(&app->layout, s.pane) ? s.pane : app->layout.focus;
    Pane *p = &app->pane[number];
    bool same = p->ctx.view == s.view && p->ctx.stage == s.stage && p->ctx.unit == s.unit &&
                !strcmp(p->ctx.arg, s.arg);
    if (!same)
        pane_show(app, number, s.view, s.stage, s.unit, s.arg);
    p->ctx.step = s.step;
    p->ctx.rewrite = s.rewrite;
    pane_ready(app, p);
    p->top = s.top;
    p->left = s.left;
    if (!pane_goto_item(app, p, s.item))
        pane_move(app, p, s.row);
    if (app->session && !app->home && layout_panes(&app->layout) > 1)
        app_fill(app);
}

void spot_push_of(App *app, int number) {
    Spot s = spot_of(app, number);
    if (!s.view)
        return;
    if (app->past.n == PAST_MAX)
        vec_remove(&app->past, 0);
    vec_push(&app->arena, &app->past, s);
    app->future.n = 0;
}

void spot_push(App *app) {
    spot_push_of(app, app_pane_number(app));
}

static bool is_guest(const View *v) {
    return v && !(v->flags & VIEW_stage) && v != view_find("overview");
}

bool pane_is_guest(const Pane *p) {
    return is_guest(p->ctx.view);
}

bool pane_leave(App *app) {
    int number = app_pane_number(app);
    if (!is_guest(app->pane[number].ctx.view))
        return false;
    for (int i = app->past.n - 1; i >= 0; i--) {
        Spot s = app->past.at[i];
        if (is_guest(s.view) || (s.pane != number && !s.home))
            continue;
        app->past.n = i;
        spot_go(app, s);
        return true;
    }
    return false;
}
