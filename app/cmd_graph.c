// cmd_graph.c: from one graph of the tree to another: the next, the joint one, its halves; and from
// a node of forward to what its derivative made in backward, and back.
#include "app/app.h"
#include "app/model.h"

#include <string.h>

// Does a unit have a stage of its own?
static bool has_stage(App *app, int unit, int stage) {
    const Unit *u = pipeline_unit(session_pipeline(app->session), unit);
    if (stage < 0)
        return true;
    return u->parent ? stage >= STAGE_partition : !u->forward || stage <= STAGE_partition;
}

// The unit that the argument names; -1 and an error: none.
static int unit_named(App *app, const char *name, int now) {
    static const char *const halves[] = {"joint", "forward", "backward"};
    int n = model_units(app->session), unit, half = str_index(name, halves, COUNT(halves));
    const Unit *joint = session_joint(app->session, now);
    if (half >= 0 && !joint) {
        diag_fail(&app->diag, "this graph has no %s: no input needs a gradient", name)->hint =
            "set grad=params";
        return -1;
    }
    if (half >= 0)
        return (half == 0 ? joint : half == 1 ? joint->forward : joint->backward)->index;
    if (!args_int(name, &unit))
        return (now + (name[0] == 'n' ? 1 : n - 1)) % n;
    if (unit >= 0 && unit < n)
        return unit;
    diag_fail(&app->diag, "no graph %d: the model has %d, from 0", unit, n);
    return -1;
}

bool cmd_graph(App *app, Args *args) {
    Pane *p = app_pane(app);
    int stage = p->ctx.stage, now = p->ctx.unit;
    if (app->home || !p->ctx.view) {
        stage = STAGE_partition;
    } else if (stage >= 0 && p->ctx.view->flags & VIEW_stage) {
        // What stands before a child's partition is its parent's.
        now = pipeline_owner(session_pipeline(app->session), now, (StageId)stage)->index;
    }
    int unit = unit_named(app, args->at[0], now);
    if (unit < 0)
        return false;
    bool guest = !app->home && p->ctx.view && !(p->ctx.view->flags & VIEW_stage);
    if (stage < 0 || (guest && p->ctx.view->stage < 0)) {
        spot_push(app);
        p->ctx.unit = unit;
        p->ready = false;
        return true;
    }
    if (guest && has_stage(app, unit, stage)) {
        spot_push(app);
        return pane_show(app, app_pane_number(app), p->ctx.view, stage, unit, p->ctx.arg);
    }
    if (!has_stage(app, unit, stage))
        stage = STAGE_partition; // where the halves begin
    return app_run(app,
                   arena_printf(&app->frame, "stage %s graph %d", stage_info[stage].name, unit));
}

// ---- twins

// Where the other side of an artifact's items is shown.
static const Artifact *other_side(App *app, const Pane *p, bool of_backward, int *unit) {
    const Unit *joint = session_joint(app->session, p->ctx.unit);
    const Artifact *art = p->ctx.art;
    int stage = (int)art->stage;
    if (stage < STAGE_joint)
        stage = STAGE_joint; // which has both halves
    bool in_child = model_step_of(app->session, joint->index, art) < 0;
    *unit = !in_child     ? joint->index
            : of_backward ? joint->forward->index
                          : joint->backward->index;
    if (!in_child && stage == (int)art->stage)
        return art;
    return model_artifact(app->session, *unit, stage, &app->diag);
}

static bool show_twin(App *app, Pane *p, const Artifact *to, int unit, int item) {
    if (to != p->ctx.art &&
        !app_run(app, arena_printf(&app->frame, "stage %s graph %d", stage_info[to->stage].name,
                                   unit)))
        return false;
    if (to == p->ctx.art)
        spot_push(app);
    p = app_pane(app);
    if (!pane_goto_item(app, p, (Item){to->id, item}))
        app_message(app, ST_dim, "%s is not shown in this view", item_name(to, item));
    return true;
}

static void say_twin(App *app, const char *name, const Twins *t, int at, const Artifact *to) {
    const char *of = arena_strdup(&app->frame, item_name(to, t->links[at].item));
    if (!*of) // a line of code
        of = arena_printf(&app->frame, "line %d", t->links[at].item + 1);
    if (t->of_backward)
        app_message(app, ST_text, "%s is of the gradient of %s   %% goes back", name, of);
    else
        app_message(app, ST_text, "%s: gradient of %s, %d of %d   %% goes back, and on", of, name,
                    at + 1, t->n);
}

bool app_goto_twin(App *app) {
    Pane *p = app_pane(app);
    Item now = pane_item(app, p);
    if (now.id < 0 || !p->ctx.art || !session_joint(app->session, p->ctx.unit)) {
        app_message(app, ST_dim, session_joint(app->session, p->ctx.unit)
                                     ? "the cursor is on nothing that has a gradient"
                                     : "no input needs a gradient: there is no backward");
        return true;
    }
    model_artifact(app->session, session_joint(app->session, p->ctx.unit)->index, STAGE_joint,
                   &(Diag){.arena = &app->frame});
    int unit;
    Twins t = session_twins(app->session, p->ctx.unit, p->ctx.art, now.id, p->ctx.art,
                            &app->frame);
    const Artifact *to = other_side(app, p, t.of_backward, &unit);
    if (!to)
        return false;
    if (to != p->ctx.art)
        t = session_twins(app->session, p->ctx.unit, p->ctx.art, now.id, to, &app->frame);
    const char *name = arena_strdup(&app->frame, item_name(p->ctx.art, now.id));
    if (!t.n) {
        app_message(app, ST_dim, "%s: nothing %s", *name ? name : "this line",
                    t.of_backward ? "of forward is there that it stems from"
                                  : "in backward stems from its derivative");
        return true;
    }
    int at = 0;
    if (!t.of_backward) {
        bool again = app->twin_from.id == now.id && app->twin_from.artifact == now.artifact;
        at = app->twin_turn = (again ? app->twin_turn + 1 : 0) % t.n;
        app->twin_from = now;
    }
    if (!show_twin(app, p, to, unit, t.links[at].item))
        return false;
    say_twin(app, name, &t, at, to);
    return true;
}
