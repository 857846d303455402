// start.c: opening a model and choosing what the panes show first: the first screen over panes that
// already stand on the stages a person goes to next.
#include "app/app.h"
#include "app/model.h"

#include <string.h>

// Stages that the panes stand on, by number of panes; a form of model that lacks one gets another.
static const StageId wanted[][4] = {
    {STAGE_fx},
    {STAGE_post_grad, STAGE_kernels},
    {STAGE_post_grad, STAGE_post_fusion, STAGE_kernels},
    {STAGE_fx, STAGE_post_grad, STAGE_post_fusion, STAGE_kernels},
};
static const StageId others[] = {STAGE_post_grad, STAGE_post_fusion, STAGE_pre_fusion,
                                 STAGE_kernels};

static bool has(const StageId *list, int n, StageId stage) {
    for (int i = 0; i < n; i++)
        if (list[i] == stage)
            return true;
    return false;
}

// Puts n different stages from `first` on into out, in the pipeline's order.
static void choose_stages(int n, StageId first, StageId out[4]) {
    int k = 0;
    for (int i = 0; i < n; i++)
        if (wanted[n - 1][i] >= first)
            out[k++] = wanted[n - 1][i];
    for (int i = 0; k < n && i < COUNT(others); i++)
        if (others[i] >= first && !has(out, k, others[i]))
            out[k++] = others[i];
    while (k < n)
        out[k++] = STAGE_kernels;
    for (int i = 0; i < n; i++)
        for (int q = i + 1; q < n; q++)
            if (out[q] < out[i]) {
                StageId t = out[i];
                out[i] = out[q];
                out[q] = t;
            }
}

void app_fill(App *app) {
    int n = app->layout.n < 4 ? app->layout.n : 4;
    StageId stages[4];
    if (!app->session)
        return;
    choose_stages(n, pipeline_first_stage(session_pipeline(app->session), 0), stages);
    for (int i = 0; i < PANES; i++) {
        Pane *p = &app->pane[i];
        StageId stage = stages[i < n ? i : n - 1];
        if (!p->given || (p->ctx.view && p->ctx.stage == (int)stage))
            continue;
        p->ready = false;
        p->ctx.view = stage_view(stage);
        p->ctx.stage = (int)stage;
        p->ctx.unit = model_unit_for(app->session, 0, (int)stage);
        p->ctx.step = p->ctx.rewrite = -1;
        p->ctx.art = NULL;
        p->row = p->top = p->left = 0;
        p->fresh = true;
    }
}

bool app_open(App *app, const char *path) {
    Session *s = session_open(path, app->options, &app->diag);
    if (!s)
        return false;
    for (int i = 0; i < ALL_PANES; i++) { // documents point into the old session
        app->pane[i].ready = false;
        app->pane[i].given = i < PANES;
        app->pane[i].ctx.view = NULL;
        app->pane[i].ctx.art = app->pane[i].ctx.focus_art = NULL;
        app->pane[i].last = ITEM_NONE;
    }
    for (int i = 0; i < PINS; i++)
        app->pin[i].item = ITEM_NONE;
    app->past.n = app->future.n = 0;
    app_leave_model(app);
    app->session = s;
    app_fill(app);
    app->home = true;
    app->layout.focus = 0;
    pane_show(app, HOME, view_find("overview"), -1, 0, "");
    return true;
}
