// start.c: opening a model and choosing what the panes show first: the first screen over panes that
// already stand on the stages a person goes to next.
#include "app/app.h"
#include "app/model.h"

#include <string.h>

// Stages that the panes stand on, by number of panes; a form of model that lacks one gets another.
static const StageId wanted[][PANES] = {
    {STAGE_fx},
    {STAGE_post_grad, STAGE_kernels},
    {STAGE_post_grad, STAGE_post_fusion, STAGE_kernels},
    {STAGE_fx, STAGE_post_grad, STAGE_post_fusion, STAGE_kernels},
    {STAGE_fx, STAGE_post_grad, STAGE_post_fusion, STAGE_kernels, STAGE_count},
    {STAGE_fx, STAGE_joint, STAGE_post_grad, STAGE_post_fusion, STAGE_kernels, STAGE_count},
};
// What stands in for one; STAGE_count: no stage, but all of the node under the cursor.
static const StageId others[] = {STAGE_post_grad,  STAGE_post_fusion, STAGE_pre_fusion,
                                 STAGE_kernels,    STAGE_count,       STAGE_partition,
                                 STAGE_functional, STAGE_joint_passes};

typedef struct Stages {
    StageId at[PANES + 1];
    int n;
} Stages;

static bool has(const Stages *s, StageId stage) {
    for (int i = 0; i < s->n; i++)
        if (s->at[i] == stage)
            return true;
    return false;
}

static void add(Stages *s, StageId stage) {
    int i = s->n++;
    for (; i > 0 && s->at[i - 1] > stage; i--)
        s->at[i] = s->at[i - 1];
    s->at[i] = stage;
}

// n different stages from `first` on in the pipeline's order, none that is shown already.
static Stages choose_stages(int panes, int n, StageId first, const Stages *shown) {
    Stages out = {.n = 0};
    for (int i = 0; i < panes && out.n < n; i++) {
        StageId s = wanted[panes - 1][panes - 1 - i]; // the later ones before the earlier
        if (s >= first && !has(shown, s) && !has(&out, s))
            add(&out, s);
    }
    for (int i = 0; out.n < n && i < COUNT(others); i++)
        if (others[i] >= first && !has(shown, others[i]) && !has(&out, others[i]))
            add(&out, others[i]);
    while (out.n < n)
        add(&out, STAGE_kernels);
    return out;
}

void app_give(App *app, int pane, const View *view, int stage) {
    Pane *p = &app->pane[pane];
    if (p->ctx.view == view && p->ctx.stage == stage)
        return;
    p->ready = false;
    p->ctx.view = view;
    p->ctx.stage = stage;
    p->ctx.unit = model_unit_for(app->session, 0, stage);
    p->ctx.step = p->ctx.rewrite = -1;
    p->ctx.arg = "";
    p->ctx.art = NULL;
    p->row = p->top = p->left = 0;
    p->fresh = true;
}

void app_fill(App *app) {
    int pane[PANES], panes = layout_panes(&app->layout), n = 0;
    Stages shown = {.n = 0};
    if (!app->session)
        return;
    for (int c = 0; c < app->layout.n; c++)
        for (int i = 0; i < app->layout.col[c].n; i++) {
            Pane *p = &app->pane[app->layout.col[c].pane[i]];
            if (p->given)
                pane[n++] = app->layout.col[c].pane[i];
            else if (p->ctx.view && p->ctx.view->flags & VIEW_stage)
                add(&shown, (StageId)p->ctx.stage);
        }
    StageId first = pipeline_first_stage(session_pipeline(app->session), 0);
    Stages stages = choose_stages(panes, n, first, &shown);
    for (int i = 0; i < n; i++) {
        bool stage = stages.at[i] < STAGE_count;
        app_give(app, pane[i], stage ? stage_view((int)stages.at[i]) : view_find("node"),
                 stage ? (int)stages.at[i] : STAGE_kernels);
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
