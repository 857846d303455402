// draw_steps.c: the scrubber, one cell a step of the compilation, stages apart: in a row under the
// rail, or where there is no room for one in the rule under the panes, there with several steps a
// cell if they are many. And which step a click on it means.
#include "app/app.h"
#include "app/model.h"

#include <string.h>

enum { CELLS_AT = 7, BRIEF_LEAST = 12 }; // behind the word; columns of cells that say anything

// The cells in sight, one after the other; the step that is shown is in the middle if there are
// more.
typedef struct Cells {
    const Unit *u;
    int step, end; // the cell's first step; the first that is not in sight
    int per;       // steps a cell
    bool apart;    // a blank between stages
    int col;       // of the cell
    int stage;     // of the step before it, -1: none
} Cells;

static Cells cells_of(const Unit *u, int here, int room) {
    int n = unit_n_steps(u), first = here - room / 2 > 0 ? here - room / 2 : 0;
    if (first > n - room)
        first = n > room ? n - room : 0;
    return (Cells){u, first - 1, n < first + room ? n : first + room, 1, true, CELLS_AT - 1, -1};
}

static int gaps(const Unit *u) {
    int n = 0;
    for (int i = 1; i < unit_n_steps(u); i++)
        n += unit_step(u, i)->stage != unit_step(u, i - 1)->stage;
    return n;
}

// All steps, in no more than so many columns.
static Cells cells_within(const Unit *u, int col, int room) {
    int n = unit_n_steps(u), per = room > 0 ? (n + room - 1) / room : n;
    bool apart = n + gaps(u) <= room;
    return (Cells){u, -per, n, per, apart, col - 1, -1};
}

static int columns_within(const Unit *u, int room) {
    Cells c = cells_within(u, 0, room);
    return (c.end + c.per - 1) / c.per + (c.apart ? gaps(u) : 0);
}

static bool next_cell(Cells *c) {
    c->step += c->per;
    if (c->step >= c->end)
        return false;
    int stage = (int)unit_step(c->u, c->step)->stage;
    c->col += 1 + (c->apart && c->stage >= 0 && stage != c->stage);
    c->stage = stage;
    return true;
}

static int put_cells(Screen *s, int row, Cells c, int here) {
    int col = c.col + 1;
    while (next_cell(&c)) {
        bool changed = false, at = here >= c.step && here < c.step + c.per;
        for (int i = c.step; i < c.step + c.per && i < c.end; i++)
            changed |= unit_step(c.u, i)->changed;
        StyleId ink = at ? ST_key : changed ? ST_link_part : ST_dim;
        col = screen_put(s, row, c.col, s->cols, ink, at ? "█" : changed ? "▪" : "·");
    }
    return col;
}

static Unit *unit_here(App *app) {
    const Pane *p = app_pane(app);
    return p->ctx.unit < model_units(app->session)
               ? pipeline_unit(session_pipeline(app->session), p->ctx.unit)
               : NULL;
}

static int step_shown(App *app) {
    const Pane *p = app_pane(app);
    return model_step_of(app->session, p->ctx.unit, p->ctx.art);
}

// steps ··▪··█··  5/12  joint_passes: remove_noop_ops  2.1 µs
void draw_scrubber(App *app, int row) {
    Screen *s = &app->screen;
    const Pane *p = app_pane(app);
    Unit *u = unit_here(app);
    if (!u)
        return;
    int here = step_shown(app), n = unit_n_steps(u);
    screen_put(s, row, 1, s->cols, ST_dim, "steps ");
    int col = put_cells(s, row, cells_of(u, here, s->cols / 2), here);
    if (here < 0)
        return;
    const Artifact *a = unit_step(u, here);
    int rewrite = -1;
    pipeline_state_of(session_pipeline(app->session), p->ctx.art, &rewrite);
    col = screen_printf(s, row, col + 3, s->cols, ST_text, "%d/%d  %s", here + 1, n,
                        artifact_title(a));
    if (rewrite >= 0)
        col = screen_printf(s, row, col, s->cols, ST_key, "  rewrite %d/%d", rewrite,
                            a->n_rewrites);
    else if (a->n_rewrites > 1)
        col = screen_printf(s, row, col, s->cols, ST_dim, "  %d rewrites", a->n_rewrites);
    col = screen_printf(s, row, col, s->cols, ST_text, "%s  %s",
                        a->changed ? "" : ": changed nothing",
                        view_time(&p->ctx, &app->frame, (double)a->ns));
    const char *keys = ", back   . step   ( ) rewrite";
    if (col + 3 < s->cols - (int)strlen(keys))
        screen_put(s, row, s->cols - (int)strlen(keys) - 1, s->cols, ST_dim, keys);
}

// Where the cells of the brief form begin, and how many columns they have; false: there is no room.
static bool brief_place(App *app, int *col, int *room, int *label) {
    int from, to;
    const Unit *u = app->session && !app->home ? unit_here(app) : NULL;
    if (!u || app_scrubber_row(app) >= 0 || step_shown(app) < 0)
        return false;
    draw_legend_room(app, &from, &to);
    Buf text = {.arena = &app->frame};
    buf_printf(&text, " %d/%d ", step_shown(app) + 1, unit_n_steps(u));
    *label = (int)text.len;
    *room = to - from - *label - 1;
    if (*room < BRIEF_LEAST)
        return false;
    *col = to - columns_within(u, *room) - 1;
    return true;
}

// In the rule: 4/23 ▪▪·█··
void draw_scrubber_brief(App *app, int row) {
    Screen *s = &app->screen;
    int col, room, label;
    if (!brief_place(app, &col, &room, &label))
        return;
    const Unit *u = unit_here(app);
    screen_printf(s, row, col - label, s->cols, ST_dim, " %d/%d ", step_shown(app) + 1,
                  unit_n_steps(u));
    for (int i = 0, n = columns_within(u, room); i <= n; i++)
        screen_put(s, row, col + i, s->cols, ST_text, " ");
    put_cells(s, row, cells_within(u, col, room), step_shown(app));
}

bool scrubber_hit(App *app, int row, int at, int *step) {
    const Unit *u = app->session ? unit_here(app) : NULL;
    Cells c;
    int col, room, label;
    if (!u || app->home)
        return false;
    if (row == app_scrubber_row(app))
        c = cells_of(u, step_shown(app), app->screen.cols / 2);
    else if (row == app_legend_row(app) && brief_place(app, &col, &room, &label))
        c = cells_within(u, col, room);
    else
        return false;
    while (next_cell(&c))
        if (c.col == at) {
            *step = c.step;
            return true;
        }
    return false;
}
