// search.c: finding text in a pane.
#include "app/app.h"
#include "views/match.h"

#include <string.h>

int search_row(App *app, Pane *p, const char *text, int from, int dir) {
    int n = pane_count(app, p), at, len;
    for (int i = 1; i <= n; i++) {
        int row = ((from + dir * i) % n + n) % n;
        ArenaMark mark = arena_mark(&app->frame);
        bool hit = search_match(line_text(pane_line(app, p, row), &app->frame), text, &at, &len);
        arena_rewind(&app->frame, mark);
        if (hit)
            return row;
    }
    return -1;
}

void search_step(App *app, int dir) {
    Pane *p = app_pane(app);
    int row = -1;
    bool changes = pane_has_row(app, p) && p->ctx.view->next_change;
    if (app->search[0])
        row = search_row(app, p, app->search, p->row, app->search_back ? -dir : dir);
    if (app->search[0] && (row >= 0 || !changes)) {
        if (row < 0) {
            diag_fail(&app->diag, "'%s' is not in this pane", app->search);
            return;
        }
        bool wrapped = dir > 0 ? row <= p->row : row >= p->row;
        if (wrapped)
            app_message(app, ST_dim, "search went round the %s", dir > 0 ? "end" : "start");
    } else if (changes) {
        row = p->ctx.view->next_change(&p->ctx, p->row, dir);
        if (row < 0)
            app_message(app, ST_dim, "no further change");
    } else {
        diag_fail(&app->diag, "nothing was searched for")->hint = "/TEXT";
    }
    if (row >= 0)
        pane_move(app, p, row);
}
