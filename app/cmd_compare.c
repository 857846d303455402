// cmd_compare.c: the ladder on the screen: started in helpers, taken in as its answers come, and
// the way from a verdict to the node that it is about.
#include "app/app.h"
#include "app/interrupt.h"
#include "app/model.h"
#include "app/step.h"
#include "core/base/file.h"
#include "core/debug/bisect.h"

#include <string.h>

static void put_override(void *ctx, DecisionKind kind, const char *key, bool result) {
    buf_printf(ctx, "%s %s %d\n", decision_kind_name(kind), key, result);
}

// Of all that an answer depends on: settings and what was changed by hand.
uint64_t work_version(App *app) {
    Arena tmp = {0};
    Buf b = {.arena = &tmp};
    for (int i = 0; i < settings_count(); i++)
        buf_printf(&b, "%s\n", settings_at(app->session, i, &tmp).value);
    decide_override_each(session_overrides(app->session), put_override, &b);
    const Toolchain *t = session_toolchain(app->session);
    buf_puts(&b, t ? t->name : "");
    uint64_t v = hash_bytes(buf_str(&b), b.len);
    arena_free(&tmp);
    return v;
}

// Their documents point into what changes: nobody may look at them again.
void work_touch(App *app) {
    app->work.version++;
    for (int i = 0; i < ALL_PANES; i++)
        if (app->pane[i].ctx.view && app->pane[i].ctx.view->flags & VIEW_work)
            app->pane[i].ready = false;
}

void work_check(App *app) {
    Work *w = &app->work;
    uint64_t now = w->compare || w->looks.n ? work_version(app) : 0;
    if (w->compare)
        w->compare_stale = w->compare_version != now;
    for (int i = 0; i < w->looks.n; i++)
        w->looks.at[i]->stale = w->looks.at[i]->version != now;
    work_touch(app);
}

static bool compares(const App *app) {
    return app->work.compare && !app->work.compare->done;
}

static bool bisects(const App *app) {
    return app->work.bisect && app->work.bisect->end == BISECT_running;
}

bool work_busy(const App *app) {
    return compares(app) || bisects(app) || looks_busy(app);
}

bool work_stop(App *app) {
    bool was = work_busy(app);
    if (compares(app))
        compare_stop(app->work.compare);
    if (bisects(app))
        bisect_cancel(app->work.bisect);
    looks_stop(app);
    work_touch(app);
    return was;
}

void work_forget(App *app) {
    if (app->work.compare)
        compare_free(app->work.compare);
    if (app->work.bisect)
        bisect_free(app->work.bisect);
    looks_forget(app);
    app->work = (Work){.version = app->work.version, .minify = app->minify};
    work_touch(app);
}

// Panes that waited go to the rung whose results are shown.
static void place_cursor(App *app) {
    for (int i = 0; i < ALL_PANES; i++)
        if (app->pane[i].ctx.view == view_find("compare")) {
            app->pane[i].fresh = true;
            app->pane[i].ready = false;
        }
}

static void say_done(App *app) {
    const Compare *c = app->work.compare;
    if (c->bad < 0) {
        app_message(app, ST_ok, "compare: every rung gives what eager gives, up to rounding");
        return;
    }
    const Failure *f = &c->rungs[c->bad].answer.failure;
    if (f->kind == FAIL_accuracy && c->place.found)
        app_message(app, ST_bad, "%s goes wrong at %s%s%s   c shows the table",
                    c->rungs[c->bad].label, stage_info[c->place.stage].name,
                    *c->place.node ? ", node " : "", c->place.node);
    else
        app_message(app, ST_bad, "%s: %s", c->rungs[c->bad].label, f->message ? f->message : "");
}

// What the decision's stage makes without it and with it, in a pane of its own below.
static bool show_states(App *app) {
    const Bisect *b = app->work.bisect;
    const View *diff = view_find("diff");
    Windows *l = &app->layout;
    if (!b || !bisect_choice(b)) {
        app_message(app, ST_dim, "no bisection has named a decision: x starts one");
        return true;
    }
    int here = l->focus, there = -1;
    app->home = l->zoom = false;
    while (!l->by_hand && layout_panes(l) > 1 && layout_close(l, layout_next(l, here, 1)))
        l->by_hand = false; // panes that nobody arranged make room
    for (int i = layout_next(l, here, 1); i != here && there < 0; i = layout_next(l, i, 1))
        if (app->pane[i].ctx.view == diff)
            there = i;
    if (there < 0 && (there = layout_split(l, true)) < 0)
        there = layout_next(l, here, 1);
    l->by_hand = true;
    bool ok = pane_show(app, there, diff, (int)bisect_text_stage(bisect_choice(b)),
                        app->pane[here].ctx.unit, "bisect:off bisect:on");
    l->focus = here;
    if (!ok)
        app_message(app, ST_warn, "%s", app->pane[there].why);
    return true;
}

static void say_bisected(App *app) {
    const Bisect *b = app->work.bisect;
    const BisectChoice *k = bisect_choice(b);
    if (k)
        app_message(app, ST_bad, "bisect: %s %s", switch_info[k->row].name, k->key);
    else
        app_message(app, b->end == BISECT_passes ? ST_ok : ST_warn, "bisect: %s",
                    b->end == BISECT_passes      ? "it does not fail"
                    : b->end == BISECT_cancelled ? "stopped"
                                                 : "no decision that can be switched off");
}

bool work_poll(App *app) {
    Work *w = &app->work;
    if (!work_busy(app))
        return false;
    work_touch(app);
    looks_poll(app);
    if (bisects(app) && bisect_poll(app->work.bisect)) {
        say_bisected(app);
        if (bisect_choice(w->bisect) && app_pane(app)->ctx.view == view_find("bisect"))
            show_states(app);
    }
    if (compares(app) && compare_poll(w->compare)) {
        w->compare_ns = clock_ns() - w->compare_since;
        place_cursor(app);
        say_done(app);
    }
    return true;
}

static bool start(App *app) {
    int unit = app_pane(app)->ctx.unit;
    if (app->work.compare)
        compare_free(app->work.compare);
    app->work.compare = NULL;
    work_touch(app);
    app->work.compare = session_compare_start(app->session, unit, &app->diag);
    app->work.compare_unit = unit;
    app->work.compare_since = clock_ns();
    app->work.compare_ns = 0;
    app->work.compare_version = work_version(app);
    app->work.compare_stale = false;
    return app->work.compare != NULL;
}

// ---- to the node that goes wrong

// The step that a stage and a pass name, the last of that stage without one; -1: it is not there.
static int step_named(App *app, int unit, StageId stage, const char *pass) {
    const Unit *u = pipeline_unit(session_pipeline(app->session), unit);
    int found = -1;
    for (int i = 0; i < unit_n_steps(u); i++) {
        const Artifact *a = unit_step(u, i);
        if (a->stage == stage && (!*pass || (a->pass && !strcmp(a->pass, pass))))
            found = i;
    }
    return found;
}

static int unit_of_place(App *app, const Divergence *d) {
    const Unit *u = pipeline_unit(session_pipeline(app->session), app->work.compare_unit);
    u = u->parent ? u->parent : u;
    if (!u->forward || d->stage <= STAGE_partition)
        return u->index;
    return *d->half == 'b' ? u->backward->index : u->forward->index;
}

static bool goto_name(App *app, const char *name) {
    Pane *p = app_pane(app);
    int item = *name && pane_ready(app, p) ? item_find(p->ctx.art, name) : -1;
    return item >= 0 && pane_goto_item(app, p, (Item){p->ctx.art->id, item});
}

// The stage before in the pane beside, on what the value is held against.
static void show_before(App *app, const Divergence *d, At at) {
    bool code = d->stage == STAGE_kernels, loops = d->stage >= STAGE_pre_fusion;
    StageId stage = code ? STAGE_post_fusion : loops ? STAGE_post_grad : d->stage;
    int step = loops ? -1 : at.step > 0 ? at.step - 1 : at.step;
    const Artifact *a = step < 0 ? NULL : model_step(app->session, at.unit, step);
    app_show_step(app, a ? (int)a->stage : (int)stage, at.unit, step, -1);
    goto_name(app, code ? d->node : d->against);
}

static bool goto_place(App *app) {
    const Compare *c = app->work.compare;
    if (!c || !c->place.found) {
        app_message(app, ST_dim, "compare found no value that goes wrong: c runs it");
        return true;
    }
    const Divergence *d = &c->place;
    At at = {.unit = unit_of_place(app, d), .rewrite = -1};
    if (!model_artifact(app->session, at.unit, (int)d->stage, &app->diag))
        return false;
    at.step = step_named(app, at.unit, d->stage, d->pass);
    spot_push(app);
    app->home = app->layout.zoom = false;
    if (layout_panes(&app->layout) == 1) {
        layout_split(&app->layout, false);
        app->layout.focus = layout_next(&app->layout, app->layout.focus, -1);
        app->layout.by_hand = true;
    }
    int right = layout_next(&app->layout, app->layout.focus, 1), left = app->layout.focus;
    show_before(app, d, at);
    app->layout.focus = right;
    bool ok = app_show_step(app, (int)d->stage, at.unit, at.step, -1);
    if (ok && !goto_name(app, d->stage == STAGE_kernels && *d->kernel ? d->kernel : d->node))
        app_message(app, ST_dim, "%s is not on a line of its own here", d->node);
    (void)left;
    return ok;
}

bool app_bisect(App *app, const BisectOptions *o) {
    BisectOptions own = *o;
    Work *w = &app->work;
    if (o->over && !strcmp(o->over, "diff"))
        return show_states(app);
    if (w->bisect)
        bisect_free(w->bisect);
    w->bisect = NULL;
    work_touch(app);
    own.over = o->over ? arena_strdup(&app->arena, o->over) : NULL;
    w->bisect = session_bisect_start(app->session, app_pane(app)->ctx.unit, &own, &app->diag);
    if (!w->bisect)
        return false;
    if (!app->interactive) {
        bisect_wait(w->bisect, NULL);
        say_bisected(app);
    }
    bool shown = app_pane(app)->ctx.view == view_find("bisect") || app_run(app, "view bisect");
    return shown && (!bisect_choice(w->bisect) || show_states(app));
}

bool cmd_compare(App *app, Args *args) {
    if (args->n && args->at[0][0] == 'g')
        return goto_place(app);
    if (app->sink) {
        Interrupt before;
        int code = session_report_compare(app->session, &app->out, app->json,
                                          interrupt_begin(&before), &app->diag);
        interrupt_end(&before);
        if (code > app->exit_code)
            app->exit_code = code;
        return app->diag.errors == 0;
    }
    const View *v = view_find("compare");
    bool there = app_pane(app)->ctx.view == v, old = app->work.compare != NULL;
    work_check(app);
    if (!old || args->n || app->work.compare_stale || (there && !compares(app)))
        if (!start(app))
            return false;
    if (!app->interactive)
        compare_wait(app->work.compare, NULL);
    if (!there)
        app_run(app, "view compare");
    return !app->diag.errors;
}
