// start.c: opening a model and choosing what the panes show first: the first screen over panes that
// already stand on the stages a person goes to next.
#include "app/app.h"
#include "app/model.h"

#include <string.h>

// Stages of the panes by their number, left to right; what a form of model lacks is left out.
static const StageId wanted[][4] = {
    {STAGE_fx},
    {STAGE_post_grad, STAGE_kernels},
    {STAGE_post_grad, STAGE_post_fusion, STAGE_kernels},
    {STAGE_fx, STAGE_post_grad, STAGE_post_fusion, STAGE_kernels},
};

static const char *view_for(StageId stage) {
    switch (stage_info[stage].kind) {
    case ART_text:
        return "source";
    case ART_graph:
        return "graph";
    case ART_schedule:
        return "loops";
    case ART_code:
        return "kernel";
    case ART_none:
        break;
    }
    return "timing";
}

static void lay_out(App *app) {
    int n = app->layout.n < 4 ? app->layout.n : 4;
    StageId first = pipeline_first_stage(session_pipeline(app->session), 0);
    for (int i = 0; i < PANES; i++) {
        Pane *p = &app->pane[i];
        p->ready = false;
        p->ctx.view = NULL;
        StageId stage = wanted[n - 1][i < n ? i : n - 1];
        if (stage < first)
            stage = first;
        p->ctx.view = view_find(view_for(stage));
        p->ctx.stage = (int)stage;
        p->ctx.unit = 0;
        p->ctx.step = -1;
        p->ctx.art = NULL;
        p->row = p->top = p->left = 0;
    }
}

bool app_open(App *app, const char *path) {
    Session *s = session_open(path, app->options, &app->diag);
    if (!s)
        return false;
    for (int i = 0; i < ALL_PANES; i++) {   // documents point into the old session
        app->pane[i].ready = false;
        app->pane[i].ctx.art = app->pane[i].ctx.focus_art = NULL;
        app->pane[i].last = ITEM_NONE;
    }
    for (int i = 0; i < PINS; i++)
        app->pin[i].item = ITEM_NONE;
    app->past.n = app->future.n = 0;
    if (app->session)
        session_close(app->session);
    app->session = s;
    lay_out(app);
    app->home = true;
    app->layout.focus = 0;
    pane_show(app, HOME, view_find("overview"), -1, 0, "");
    return true;
}

bool cmd_open(App *app, Args *args) {
    return app_open(app, args->at[0]);
}
