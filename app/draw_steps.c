// draw_steps.c: the scrubber under the rail, one cell a step of the compilation, stages apart; and
// which step a click on it means.
#include "app/app.h"
#include "app/model.h"

#include <string.h>

enum { CELLS_AT = 7 }; // behind the word

// The cells in sight, one after the other; the step that is shown is in the middle if there are
// more.
typedef struct Cells {
    const Unit *u;
    int step, end; // the cell's step; the first that is not in sight
    int col;       // of the cell
    int stage;     // of the step before it, -1: none
} Cells;

static Cells cells_of(const Unit *u, int here, int room) {
    int n = unit_n_steps(u), first = here - room / 2 > 0 ? here - room / 2 : 0;
    if (first > n - room)
        first = n > room ? n - room : 0;
    return (Cells){u, first - 1, n < first + room ? n : first + room, CELLS_AT - 1, -1};
}

static bool next_cell(Cells *c) {
    if (++c->step >= c->end)
        return false;
    int stage = (int)unit_step(c->u, c->step)->stage;
    c->col += 1 + (c->stage >= 0 && stage != c->stage);
    c->stage = stage;
    return true;
}

// steps ··▪··█··  5/12  joint_passes: remove_noop_ops  2.1 µs
void draw_scrubber(App *app, int row) {
    Screen *s = &app->screen;
    const Pane *p = app_pane(app);
    if (p->ctx.unit >= model_units(app->session))
        return;
    Unit *u = pipeline_unit(session_pipeline(app->session), p->ctx.unit);
    int here = model_step_of(app->session, p->ctx.unit, p->ctx.art), room = s->cols / 2;
    int n = unit_n_steps(u);
    int col = screen_put(s, row, 1, s->cols, ST_dim, "steps ");
    Cells c = cells_of(u, here, room);
    while (next_cell(&c)) {
        const Artifact *a = unit_step(u, c.step);
        StyleId ink = c.step == here ? ST_key : a->changed ? ST_link_part : ST_dim;
        col = screen_put(s, row, c.col, s->cols, ink,
                         c.step == here ? "█"
                         : a->changed   ? "▪"
                                        : "·");
    }
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

bool scrubber_hit(App *app, int at, int *step) {
    const Pane *p = app_pane(app);
    if (p->ctx.unit >= model_units(app->session))
        return false;
    const Unit *u = pipeline_unit(session_pipeline(app->session), p->ctx.unit);
    Cells c = cells_of(u, model_step_of(app->session, p->ctx.unit, p->ctx.art),
                       app->screen.cols / 2);
    while (next_cell(&c))
        if (c.col == at) {
            *step = c.step;
            return true;
        }
    return false;
}
