// step.c: walking along the steps of a graph's compilation. A position is a step and, inside it, a
// number of rewrites done; what lies between two rewrites is made when somebody stands there.
#include "app/step.h"

#include "app/model.h"
#include "views/brief.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static Pipeline *pipeline_of(App *app) {
    return session_pipeline(app->session);
}

bool step_here(App *app, At *out) {
    Pane *p = app_pane(app);
    int unit = p->ctx.unit;
    *out = (At){unit, -1, -1};
    if (!pane_ready(app, p))
        return false;
    out->step = model_step_of(app->session, unit, p->ctx.art);
    if (out->step < 0) {
        diag_fail(&app->diag, "step walks the steps of a stage: this pane shows none");
        return false;
    }
    int k;
    if (pipeline_state_of(pipeline_of(app), p->ctx.art, &k))
        out->rewrite = k;
    return true;
}

// Builds stages until there is a step of that number.
static bool step_exists(App *app, int unit, int step) {
    const Unit *u = pipeline_unit(pipeline_of(app), unit);
    while (step >= unit_n_steps(u)) {
        int had = unit_n_steps(u), s = had ? (int)unit_step(u, had - 1)->stage + 1 : 0;
        Diag quiet = {.arena = &app->frame};
        for (; s < STAGE_count && unit_n_steps(u) == had; s++)
            if (stage_info[s].kind != ART_none)
                model_artifact(app->session, unit, s, &quiet);
        if (unit_n_steps(u) == had)
            return false;
    }
    return step >= 0;
}

// With `set step=changed` only what changed something is worth a stop.
static bool stops(const App *app, const Artifact *a) {
    return !app->step_changed || a->changed || !a->pass;
}

static bool next_step(App *app, At *at, int dir, bool by_stage) {
    int unit = at->unit, stage = (int)model_step(app->session, unit, at->step)->stage;
    for (int i = at->step + dir;; i += dir) {
        if (!step_exists(app, unit, i)) {
            // Behind the joint graph's partition the forward goes on: its walk includes its
            // parent's.
            const Unit *u = pipeline_unit(pipeline_of(app), unit);
            if (dir < 0 || !u->forward || !step_exists(app, u->forward->index, i))
                return false;
            unit = u->forward->index;
        }
        const Artifact *a = model_step(app->session, unit, i);
        if (by_stage ? (int)a->stage != stage : stops(app, a)) {
            *at = (At){unit, i, -1};
            return true;
        }
    }
}

static int rewrites_at(App *app, At at) {
    const Artifact *a = model_step(app->session, at.unit, at.step);
    return a ? a->n_rewrites : 0;
}

static bool next_rewrite(App *app, At *at, int dir) {
    int n = rewrites_at(app, *at), k = (at->rewrite < 0 ? n : at->rewrite) + dir;
    if (at->rewrite < 0 ? dir < 0 && k >= 1 : k >= 1) {
        at->rewrite = k >= n ? -1 : k;
        return true;
    }
    if (!next_step(app, at, dir, false))
        return false;
    if (dir > 0 && rewrites_at(app, *at) > 1)
        at->rewrite = 1;
    return true;
}

bool step_walk(App *app, At *at, int dir, StepBy by) {
    if (by == STEP_rewrite)
        return next_rewrite(app, at, dir);
    if (dir < 0 && at->rewrite >= 0) { // from inside a step back to what came before it
        at->rewrite = -1;
        if (by == STEP_pass)
            return next_step(app, at, -1, false);
    }
    if (dir > 0 && at->rewrite >= 0 && by == STEP_pass) { // out of the step's inside: to its end
        at->rewrite = -1;
        return true;
    }
    return next_step(app, at, dir, by == STEP_stage);
}

// Where the steps begin that are the unit's own.
static int own_steps(const Unit *u) {
    return u->parent ? u->parent->steps.n : 0;
}

// In the order of the list of graphs; a joint graph's walk has gone on in its forward.
bool step_other_graph(App *app, At *at, int dir) {
    Pipeline *pl = pipeline_of(app);
    const Unit *to = NULL;
    for (int i = at->unit + dir; i >= 0 && i < pipeline_n_units(pl) && !to; i += dir) {
        const Unit *next = pipeline_unit(pl, i);
        if (dir < 0 ? !next->forward : !(next->parent && next == next->parent->forward))
            to = next;
    }
    int step = to ? own_steps(to) : 0;
    if (!to)
        return false;
    if (dir < 0)
        model_artifact(app->session, to->index, STAGE_kernels, &(Diag){.arena = &app->frame});
    if (!step_exists(app, to->index, step))
        return false;
    *at = (At){to->index, dir > 0 ? step : unit_n_steps(to) - 1, -1};
    return true;
}

const Artifact *step_artifact(App *app, At at, Diag *d) {
    const Artifact *a = model_step(app->session, at.unit, at.step);
    if (!a || at.rewrite < 0)
        return a;
    return pipeline_state(pipeline_of(app), at.unit, a, at.rewrite, d);
}

At step_before(App *app, At at) {
    (void)app;
    if (at.rewrite > 1)
        return (At){at.unit, at.step, at.rewrite - 1};
    return (At){at.unit, at.step > 0 ? at.step - 1 : 0, -1};
}

bool step_parse(const char *text, At *at) {
    char *end;
    long step = strtol(text, &end, 10), k = -1;
    if (end == text || step < 1 || step > 1000000)
        return false;
    if (*end == '.') {
        const char *dot = end + 1;
        k = strtol(dot, &end, 10);
        if (end == dot || k < 1 || k > 1000000)
            return false;
    }
    at->step = (int)step - 1;
    at->rewrite = (int)k;
    return !*end;
}

const char *step_text(App *app, At at) {
    return at.rewrite < 0 ? arena_printf(&app->frame, "%d", at.step + 1)
                          : arena_printf(&app->frame, "%d.%d", at.step + 1, at.rewrite);
}

// ---- what it did

static void put_names(Buf *out, const char *const *at, int n) {
    enum { MOST = 6 };
    for (int i = 0; i < n && i < MOST; i++)
        buf_printf(out, "%s%s", i ? " " : "", at[i]);
    if (n > MOST)
        buf_printf(out, " and %d more", n - MOST);
}

static void put_delta(Buf *out, const RewriteDelta *d) {
    put_names(out, d->gone.at, d->gone.n);
    if (d->made.n) {
        buf_puts(out, d->gone.n ? " → " : "+ ");
        put_names(out, d->made.at, d->made.n);
    } else if (d->gone.n) {
        buf_puts(out, " is gone");
    } else if (d->altered.n) {
        put_names(out, d->altered.at, d->altered.n);
        buf_puts(out, d->altered.n == 1 ? " is altered" : " are altered");
    }
}

// What one rewrite did, or the only one of a whole step.
static bool say_rewrite(App *app, const Artifact *step, At at, Buf *out) {
    Rewrite *list;
    RewriteDelta delta;
    Diag quiet = {.arena = &app->frame};
    int n = pipeline_rewrites(pipeline_of(app), at.unit, step, &app->frame, &list);
    int k = at.rewrite < 0 ? n : at.rewrite;
    if (k < 1 || k > n)
        return false;
    const Rewrite *r = &list[k - 1];
    bool apart = r->asked.ask.kind == DECIDE_decomposition;
    const char *reason = r->asked.ask.reason;
    if (n > 1)
        buf_printf(out, "%d/%d  ", k, n);
    if (apart)
        buf_printf(out, "%s apart: ", r->asked.ask.key);
    else if (reason && *reason)
        buf_printf(out, "%s: ", reason);
    if (pipeline_delta(pipeline_of(app), at.unit, step, k, &app->frame, &delta, &quiet))
        put_delta(out, &delta);
    else
        buf_puts(out, r->asked.ask.key);
    buf_printf(out, "  %s", view_time(&app_pane(app)->ctx, &app->frame, (double)r->ns));
    return true;
}

void step_say(App *app, At at, Buf *out) {
    const Artifact *a = model_step(app->session, at.unit, at.step);
    const ViewCtx *c = &app_pane(app)->ctx;
    if (!a)
        return;
    if (at.rewrite >= 0) {
        buf_printf(out, "%s  ", artifact_title(a));
        say_rewrite(app, a, at, out);
        return;
    }
    buf_printf(out, "step %d  %s  ", at.step + 1, artifact_title(a));
    if (!a->changed)
        buf_puts(out, "changed nothing  ");
    else if (a->n_rewrites == 1 && say_rewrite(app, a, at, out))
        return;
    else if (a->n_rewrites > 1)
        buf_printf(out, "%d rewrites  ", a->n_rewrites);
    buf_puts(out, view_time(c, &app->frame, (double)a->ns));
    if (a->n_rewrites > 1)
        buf_puts(out, "   ( steps back into them");
}

// ---- showing

static void mark_fresh(App *app, const RewriteDelta *d) {
    Fresh *f = &app->fresh;
    arena_free(&f->arena);
    *f = (Fresh){.artifact = d->after->id};
    f->sign = ARENA_ARRAY(&f->arena, d->after->n_items + 1, char);
    f->n = d->after->n_items;
    for (int i = 0; i < d->altered_items.n; i++)
        if (d->altered_items.at[i] < f->n)
            f->sign[d->altered_items.at[i]] = '~';
    for (int i = 0; i < d->made_items.n; i++)
        if (d->made_items.at[i] < f->n)
            f->sign[d->made_items.at[i]] = '+';
}

// What the step changed is marked, and the cursor goes there if it is a single rewrite.
static void show_delta(App *app, At at, const Artifact *now) {
    Diag quiet = {.arena = &app->frame};
    const Artifact *before = step_artifact(app, step_before(app, at), &quiet);
    RewriteDelta delta;
    Pane *p = app_pane(app);
    if (!before || before == now || before->kind != now->kind || !now->changed)
        return;
    pipeline_state_touch(pipeline_of(app), before);
    artifact_delta(before, now, &app->frame, &delta);
    mark_fresh(app, &delta);
    if (at.rewrite < 0 && now->n_rewrites != 1)
        return;
    if (delta.made_items.n)
        pane_goto_item(app, p, (Item){now->id, delta.made_items.at[0]});
    else if (delta.altered_items.n)
        pane_goto_item(app, p, (Item){now->id, delta.altered_items.at[0]});
}

bool step_show(App *app, At at) {
    const Artifact *a = step_artifact(app, at, &app->diag);
    if (!a)
        return false;
    app->home = false;
    if (!app_show_step(app, (int)a->stage, at.unit, at.step, at.rewrite))
        return false;
    show_delta(app, at, a);
    Buf b = {.arena = &app->frame};
    step_say(app, at, &b);
    app_message(app, ST_text, "%s", buf_str(&b));
    return true;
}
