// draw_units.c: the graphs of the model in a row under the rail, where there are several: a joint
// graph with its forward and its backward, graphs behind breaks. The number is the one that
// `graph N` takes.
#include "app/app.h"
#include "app/model.h"
#include "views/brief.h"

#include <string.h>

// The graph that the focused pane shows: what stands before a child's partition is its parent's.
static int unit_shown(App *app) {
    const Pane *p = app_pane(app);
    int unit = p->ctx.unit < model_units(app->session) ? p->ctx.unit : 0;
    if (app->home || p->ctx.stage < 0)
        return unit;
    return pipeline_owner(session_pipeline(app->session), unit, (StageId)p->ctx.stage)->index;
}

static const char *unit_text(App *app, int unit, bool wide) {
    Pipeline *pl = session_pipeline(app->session);
    const Unit *u = pipeline_unit(pl, unit);
    const Artifact *a = pipeline_at(pl, unit, STAGE_partition);
    const Artifact *code = u->forward ? NULL : pipeline_at(pl, unit, STAGE_kernels);
    Buf b = {.arena = &app->frame};
    buf_printf(&b, "%d %s", unit, u->kind);
    if (u->failed != STAGE_count)
        buf_puts(&b, "!");
    else if (a && a->kind == ART_graph)
        buf_printf(&b, " %d op%s", graph_ops(a->graph), graph_ops(a->graph) == 1 ? "" : "s");
    if (wide && code)
        buf_printf(&b, ", %d calls", code->code->calls.n);
    return buf_str(&b);
}

enum { GRAPHS_AT = 9 };

// Draws a graph from a column; the column after it.
static int put_unit(App *app, int unit, int col, int row, bool draw) {
    Screen *s = &app->screen;
    bool here = unit == unit_shown(app);
    const char *text = unit_text(app, unit, s->cols >= 120);
    if (draw) {
        screen_put(s, row, col, s->cols, ST_rail, here ? "[" : " ");
        screen_put(s, row, col + 1, s->cols, here ? ST_rail_here : ST_rail, text);
        screen_put(s, row, col + 1 + utf8_columns(text), s->cols, ST_rail, here ? "]" : " ");
    }
    return col + utf8_columns(text) + 2;
}

// The first graph drawn, so that the one shown is in sight.
static int first_unit(App *app) {
    int here = unit_shown(app), first = here, col = GRAPHS_AT;
    for (int i = here; i >= 0; i--) {
        col = put_unit(app, i, col, 0, false);
        if (col >= app->screen.cols - 10)
            break;
        first = i;
    }
    return first;
}

void draw_units(App *app, int row) {
    static const char *const keys = "; next graph   % twin";
    Screen *s = &app->screen;
    int n = model_units(app->session), first = first_unit(app);
    int col = screen_put(s, row, 1, s->cols, ST_dim, first ? "graphs …" : "graphs");
    for (int i = first, at = GRAPHS_AT; i < n && at < s->cols; i++)
        at = col = put_unit(app, i, at, row, true);
    int width = utf8_columns(keys);
    if (session_joint(app->session, unit_shown(app)) && col + width + 2 < s->cols)
        screen_put(s, row, s->cols - width - 1, s->cols, ST_dim, keys);
    else if (col + 13 < s->cols)
        screen_put(s, row, s->cols - 13, s->cols, ST_dim, "; next graph");
}

bool unit_hit(App *app, int at, int *unit) {
    int n = model_units(app->session);
    for (int i = first_unit(app), col = GRAPHS_AT; i < n; i++) {
        int next = put_unit(app, i, col, 0, false);
        if (at >= col && at < next) {
            *unit = i;
            return true;
        }
        col = next;
    }
    return false;
}
