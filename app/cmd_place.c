// cmd_place.c: commands that choose what the panes show: stages, views, nodes, steps, places.
#include "app/app.h"
#include "app/model.h"

#include <stdio.h>
#include <string.h>

// The pane that a stage goes to: from the first screen, one that shows it already.
static int pane_for(App *app, int stage) {
    if (!app->home)
        return app->layout.focus;
    app->home = false;
    for (int i = 0; i < PANES; i++)
        if (layout_has(&app->layout, i) && app->pane[i].ctx.view && app->pane[i].ctx.stage == stage)
            return app->layout.focus = i;
    return app->layout.focus;
}

// Is the artifact a step of some graph still?
static bool is_there(App *app, const Artifact *art) {
    for (int i = 0; i < model_units(app->session); i++)
        if (model_step_of(app->session, i, art) >= 0) // or a state inside one
            return true;
    return false;
}

// The same thing stays under the cursor if what is shown now has it too.
static bool keep_thing(App *app, Pane *p, Item item, const Artifact *from) {
    const Artifact *to = p->ctx.art;
    Link *links = NULL;
    if (!from || !to || item.id < 0 || !p->ctx.view->row_of || !is_there(app, from))
        return false;
    if (from == to)
        return pane_goto_item(app, p, item);
    return pipeline_links(session_pipeline(app->session), from, item.id, to, &app->frame, &links) &&
           pane_goto_item(app, p, (Item){to->id, links[0].item});
}

bool app_show_stage(App *app, int stage, int unit) {
    return app_show_step(app, stage, unit, -1, -1);
}

bool app_show_step(App *app, int stage, int unit, int step, int rewrite) {
    const View *view = stage_view(stage);
    if (!view) {
        diag_fail(&app->diag, "stage %s has no view in this build", stage_info[stage].name);
        return false;
    }
    Windows *l = &app->layout;
    if (l->zoom && !l->zoom_by_hand && pane_is_guest(app_pane(app)))
        l->zoom = false; // the panes that text or a table had hidden
    int pane = pane_for(app, stage);
    Pane *p = &app->pane[pane];
    if (p->ctx.view == view && p->ctx.stage == stage && p->ctx.unit == unit &&
        p->ctx.step == step && p->ctx.rewrite == rewrite && (step < 0 || p->ready))
        return true;
    Item item = pane_ready(app, p) ? pane_item(app, p) : ITEM_NONE;
    const Artifact *from = p->ok ? p->ctx.art : NULL;
    bool same = p->ctx.view == view && p->ctx.stage == stage && p->ctx.unit == unit, found = false;
    int row = p->row, offset = p->row - p->top;
    if (from)
        pipeline_state_touch(session_pipeline(app->session), from);
    if (!pane_show_step(app, pane, view, stage, unit, step, rewrite, "")) {
        const Unit *bad = unit_to_blame(pipeline_unit(session_pipeline(app->session), unit));
        if (bad && bad->failed <= (StageId)stage)
            model_unit_error(app->session, unit, &app->diag);
        else
            diag_fail(&app->diag, "%s", p->why);
        return false;
    }
    if (from != p->ctx.art)
        found = keep_thing(app, p, item, from);
    if (!app->home && layout_panes(l) > 1)
        app_fill(app); // what nobody chose shows something else
    if (same && step >= 0) { // what did not move stays where it was on the screen
        p->row = found ? p->row : row;
        p->top = p->row - offset;
        pane_move(app, p, p->row);
    }
    return true;
}

bool cmd_stage(App *app, Args *args) {
    int stage = stage_find(args->at[0]), unit = app_pane(app)->ctx.unit;
    if (stage < 0) {
        const char *names[STAGE_count + 1] = {0};
        for (int i = 0; i < STAGE_count; i++)
            names[i] = stage_info[i].name;
        diag_fail(&app->diag, "no stage '%s'", args->at[0])->hint =
            name_hint(&app->frame, args->at[0], names);
        return false;
    }
    if (args->n > 1) {
        const char *n = args->at[args->n - 1];
        if (!args_int(n, &unit) || unit < 0 || unit >= model_units(app->session)) {
            diag_fail(&app->diag, "no graph '%s': the model has %d, from 0", n,
                      model_units(app->session));
            return false;
        }
    }
    spot_push(app);
    return app_show_stage(app, stage, model_unit_for(app->session, unit, stage));
}

// The stage whose graph a drawing shows: the pane's, if that is one.
static int stage_to_draw(const Pane *p) {
    ArtifactKind kind = p->ctx.stage >= 0 ? stage_info[p->ctx.stage].kind : ART_none;
    return kind == ART_graph || kind == ART_schedule ? p->ctx.stage : STAGE_post_fusion;
}

// Tables want width: in a narrow pane they get the whole screen, and `back` gives the panes again.
static void widen(App *app, const View *v) {
    Rect rect[PANES];
    app_rects(app, rect);
    if (!(v->flags & (VIEW_stage | VIEW_follows)) && rect[app->layout.focus].cols < 72)
        layout_widen(&app->layout);
}

// A drawing is of a graph, whatever stage the pane stands on.
static bool draws(const App *app, const View *v) {
    return v->plane && !(v->flags & VIEW_work) && app->session;
}

bool cmd_view(App *app, Args *args) {
    const View *v = view_find(args->at[0]);
    if (!v) {
        const char *names[N_VIEWS + 1] = {0};
        for (int i = 0; views[i]; i++)
            names[i] = views[i]->name;
        diag_fail(&app->diag, "no view '%s'", args->at[0])->hint =
            name_hint(&app->frame, args->at[0], names);
        return false;
    }
    const char *arg = args->n > 1 ? args->rest + strcspn(args->rest, " ") + 1 : "";
    if (!strcmp(v->name, "overview")) {
        spot_push(app);
        app->home = true;
        if (app->pane[HOME].ctx.view != v)
            pane_show(app, HOME, v, -1, 0, "");
        return true;
    }
    int pane = app->layout.focus;
    Pane *from = app_pane(app);
    Item focus = pane_ready(app, from) ? pane_item(app, from) : ITEM_NONE;
    const Artifact *focus_art = pane_shared_art(from);
    int stage = from->ctx.stage, unit = from->ctx.unit, step = from->ctx.step;
    int rewrite = from->ctx.rewrite;
    // A view about the cursor goes beside it if there is room.
    if (v->flags & VIEW_follows && layout_panes(&app->layout) > 1 && !app->layout.zoom)
        pane = layout_next(&app->layout, pane, 1);
    Pane *p = &app->pane[pane];
    spot_push_of(app, app->home ? HOME : pane);
    app->home = false;
    widen(app, v);
    if (!(from->ctx.view && from->ctx.view->flags & VIEW_follows)) {
        p->ctx.focus = focus;
        p->ctx.focus_art = focus_art;
    }
    if (draws(app, v))
        stage = stage_to_draw(from);
    if (v->stage >= 0 || draws(app, v))
        unit = model_unit_for(app->session, unit, v->stage >= 0 ? v->stage : stage);
    if (v->flags & VIEW_joint && app->session && session_joint(app->session, unit))
        unit = session_joint(app->session, unit)->index;
    bool ok = pane_show(app, pane, v, v->stage >= 0 ? v->stage : stage, unit, arg);
    if (v->flags & VIEW_stage || (draws(app, v) && stage == from->ctx.stage)) {
        p->ctx.step = step;
        p->ctx.rewrite = rewrite;
    }
    if (ok && draws(app, v) && pane_ready(app, p))
        keep_thing(app, p, focus, focus_art);
    if (!ok)
        diag_fail(&app->diag, "%s", p->why);
    return ok;
}

static bool goto_neighbour(App *app, Pane *p, int dir) {
    Item now = pane_item(app, p);
    if (now.id < 0 || !p->ctx.art)
        return false;
    bool again = app->turn_from.id == now.id && app->turn_from.artifact == now.artifact;
    app->turn = again ? app->turn + 1 : 0;
    app->turn_from = now;
    int to = item_neighbour(p->ctx.art, now.id, dir, app->turn);
    if (to < 0) {
        app_message(app, ST_dim,
                    dir < 0 ? "it has no argument in this stage" : "nothing uses it in this stage");
        return true;
    }
    spot_push(app);
    if (!pane_reveal_item(app, p, (Item){p->ctx.art->id, to}))
        app_message(app, ST_dim, "%s is not shown in this view", item_name(p->ctx.art, to));
    return true;
}

bool cmd_goto(App *app, Args *args) {
    Pane *p = app_pane(app);
    const char *name = args->at[0];
    if (!pane_ready(app, p))
        return false;
    if (!strcmp(name, "arg") || !strcmp(name, "user"))
        return goto_neighbour(app, p, name[0] == 'a' ? -1 : 1);
    if (!strcmp(name, "twin"))
        return app_goto_twin(app);
    if (name[0] == '\'' && map_get(&app->marks, name + 1)) {
        spot_push(app);
        spot_go(app, *(Spot *)map_get(&app->marks, name + 1));
        return true;
    }
    int item = item_find(p->ctx.art, name), row;
    spot_push(app);
    if (item >= 0 && pane_reveal_item(app, p, (Item){p->ctx.art->id, item}))
        return true;
    if (args_int(name, &row) && row > 0) {
        pane_move(app, p, row - 1);
        return true;
    }
    for (int stage = 0; stage < STAGE_count; stage++) {
        const Artifact *a =
            pipeline_at(session_pipeline(app->session), p->ctx.unit, (StageId)stage);
        if (a && (item = item_find(a, name)) >= 0 && a->kind != ART_text && a->kind != ART_code)
            return app_show_stage(app, stage, p->ctx.unit) &&
                   pane_reveal_item(app, app_pane(app), (Item){app_pane(app)->ctx.art->id, item});
    }
    diag_fail(&app->diag, "no '%s' in the stages built", name)->hint = "F finds by part of a name";
    return false;
}

bool cmd_origin(App *app, Args *args) {
    Pane *p = app_pane(app);
    int n = 0;
    args_int(args->at[0][0] == '+' ? args->at[0] + 1 : args->at[0], &n);
    int dir = n < 0 ? -1 : 1;
    if (!pane_ready(app, p) || p->ctx.stage < 0)
        return true;
    const Artifact *from = p->ctx.art; // none on the stage `run`
    int from_stage = from ? (int)from->stage : p->ctx.stage, stage = from_stage;
    Item item = from ? pane_item(app, p) : ITEM_NONE;
    for (n = n < 0 ? -n : n; n > 0; n--) {
        const Artifact *to = NULL;
        int s = stage;
        for (s += dir; s >= 0 && s < STAGE_count && !to; s += dir) {
            Diag quiet = {.arena = &app->frame};
            if (stage_info[s].kind != ART_none)
                to = model_artifact(app->session, model_unit_for(app->session, p->ctx.unit, s), s,
                                    &quiet);
        }
        if (!to)
            break;
        stage = s - dir;
    }
    if (stage == from_stage) {
        app_message(app, ST_dim, dir < 0 ? "this is the first stage" : "this is the last stage");
        return true;
    }
    spot_push(app);
    const char *name = item.id >= 0 ? arena_strdup(&app->frame, item_name(from, item.id)) : "";
    Link *links = NULL;
    int unit = model_unit_for(app->session, p->ctx.unit, stage);
    const Artifact *to = model_artifact(app->session, unit, stage, &app->diag);
    int found = to && item.id >= 0 ? pipeline_links(session_pipeline(app->session), from, item.id,
                                                    to, &app->frame, &links)
                                   : 0;
    if (!app_show_stage(app, stage, unit))
        return false;
    p = app_pane(app);
    if (found && p->ctx.art)
        pane_goto_item(app, p, (Item){p->ctx.art->id, links[0].item});
    else if (item.id >= 0)
        app_message(app, ST_dim, "%s has nothing here that comes from it", *name ? name : "it");
    return true;
}

// ---- places ----

bool cmd_back(App *app, Args *args) {
    (void)args;
    if (!app->past.n) {
        app_message(app, ST_dim, "no earlier place");
        return true;
    }
    Spot s = vec_pop(&app->past);
    vec_push(&app->arena, &app->future, spot_of(app, s.pane));
    spot_go(app, s);
    return true;
}

bool cmd_forward(App *app, Args *args) {
    (void)args;
    if (!app->future.n) {
        app_message(app, ST_dim, "no later place");
        return true;
    }
    Spot s = vec_pop(&app->future);
    vec_push(&app->arena, &app->past, spot_of(app, s.pane));
    spot_go(app, s);
    return true;
}

bool cmd_mark(App *app, Args *args) {
    Spot *s = ARENA_NEW(&app->arena, Spot);
    *s = spot_here(app);
    map_put(&app->marks, arena_strdup(&app->arena, args->at[0]), s);
    app_message(app, ST_dim, "goto '%s returns here", args->at[0]);
    return true;
}

static void print_spot(App *app, const char *label, const Spot *s) {
    buf_printf(&app->out, "%-4s %-10s %s  line %d\n", label, s->view ? s->view->name : "",
               s->stage >= 0 ? stage_info[s->stage].name : "", s->row + 1);
}

bool cmd_places(App *app, Args *args) {
    (void)args;
    for (MapEntry *e = map_first(&app->marks); e; e = map_next(&app->marks, e))
        print_spot(app, e->key, e->ptr);
    for (int i = app->past.n - 1; i >= 0 && i >= app->past.n - 20; i--)
        print_spot(app, arena_printf(&app->frame, "-%d", app->past.n - i), &app->past.at[i]);
    if (!app->out.len)
        app_message(app, ST_dim, "no places yet");
    return true;
}

bool cmd_pin(App *app, Args *args) {
    if (args->n == 2)
        return app_pin_saved(app, args->at[0], !strcmp(args->at[1], "saved"));
    Pane *p = app_pane(app);
    Item item = pane_item(app, p);
    if (!pane_shared_art(p)) // a pin outlives the document
        item = ITEM_NONE;
    int slot = -1;
    if (args->n && (!args_int(args->at[0], &slot) || --slot < 0 || slot >= PINS)) {
        diag_fail(&app->diag, "pins are 1, 2 and 3, not '%s'", args->at[0])->hint =
            "pin VALUE saved or pin VALUE recomputed: what forward keeps for backward";
        return false;
    }
    for (int i = 0; i < PINS; i++)
        if (app->pin[i].item.id >= 0 && app->pin[i].item.id == item.id &&
            app->pin[i].item.artifact == item.artifact) {
            app->pin[i].item = ITEM_NONE;
            return true;
        }
    for (int i = 0; slot < 0 && i < PINS; i++)
        if (app->pin[i].item.id < 0 || app->pin[i].version != model_version(app->session))
            slot = i;
    if (item.id < 0 || slot < 0) {
        app_message(app, ST_dim,
                    slot < 0 ? "all three pins are taken: pin N moves one" : "nothing to pin here");
        return true;
    }
    app->pin[slot] = (Pin){item, p->ctx.art, model_version(app->session)};
    app_message(app, (StyleId)(ST_pin1 + slot), "%s stays lit", item_name(p->ctx.art, item.id));
    return true;
}
