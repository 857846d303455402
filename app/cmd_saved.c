// cmd_saved.c: `saved`, `memory`, and pins of values that pass from forward to backward.
#include "app/app.h"
#include "app/model.h"
#include "views/launch.h"

#include <string.h>

bool cmd_saved(App *app, Args *args) {
    (void)args;
    if (!app->sink)
        return app_run(app, "view saved");
    int code = session_report_saved(app->session, &app->out, app->json, &app->diag);
    if (code > app->exit_code)
        app->exit_code = code;
    return code == 0;
}

bool cmd_memory(App *app, Args *args) {
    (void)args;
    if (!app->sink)
        return app_run(app, "view memory");
    int code = session_report_memory(app->session, &app->out, app->json, &app->diag);
    if (code > app->exit_code)
        app->exit_code = code;
    return code == 0;
}

bool cmd_writes(App *app, Args *args) {
    (void)args;
    return app_run(app, "view writes");
}

static SavedNote *note_of(App *app, int unit) {
    for (int i = 0; i < app->runs.saved.n; i++)
        if (app->runs.saved.at[i].unit == unit)
            return &app->runs.saved.at[i];
    vec_push(&app->arena, &app->runs.saved, (SavedNote){.unit = unit});
    return &vec_last(&app->runs.saved);
}

void app_note_saved(App *app, const char *what) {
    for (int i = 0; i < model_units(app->session); i++) {
        const Unit *u = pipeline_unit(session_pipeline(app->session), i);
        SavedMark now = {.known = true};
        if (!u->forward || !session_saved_totals(app->session, i, false, &now.totals))
            continue;
        const RunRow *run = launch_training_run(app->session, &app->runs, u);
        now.ns = run ? run->timing.median_ns : 0;
        SavedNote *n = note_of(app, i);
        n->what = arena_strdup(&app->arena, what);
        n->before = now;
        if (!n->first.known)
            n->first = now;
    }
}

// A training graph: the pane's, or the first that knows the value.
static int unit_with(App *app, const char *name) {
    int unit = app_pane(app)->ctx.unit;
    for (int i = -1; i < model_units(app->session); i++) {
        int k = i < 0 ? unit : i;
        Diag quiet = {.arena = &app->frame};
        if (session_saved_node(app->session, k, name, &quiet))
            return session_joint(app->session, k)->index;
    }
    const Unit *u = session_joint(app->session, unit);
    return u ? u->index : unit;
}

bool app_pin_saved(App *app, const char *name, bool saved) {
    int unit = unit_with(app, name);
    const Node *n = session_saved_node(app->session, unit, name, &app->diag);
    if (!n)
        return false;
    name = arena_strdup(&app->frame, n->name);
    app_override(app, DECIDE_save, name, saved, false);
    Saved now;
    Diag quiet = {.arena = &app->frame};
    bool built = session_saved(app->session, unit, &app->frame, &now, &quiet);
    const char *why = session_pin_refused(app->session, unit, name);
    if (built && !why) {
        app_message(app, ST_edited, "%s is %s: %s saved in all   u takes it back", name,
                    saved ? "saved" : "computed again", text_bytes(&app->frame, now.totals.bytes));
        return true;
    }
    why = arena_strdup(&app->frame, why ? why : diag_first(&quiet));
    app_change_drop(app);
    diag_fail(&app->diag, "%s", why);
    return false;
}

typedef struct Pinned {
    App *app;
    VEC(const char *) keys;
} Pinned;

static void collect(void *ctx, DecisionKind kind, const char *key, bool result) {
    Pinned *p = ctx;
    (void)result;
    if (kind == DECIDE_save)
        vec_push(&p->app->frame, &p->keys, arena_strdup(&p->app->frame, key));
}

bool cmd_unpin(App *app, Args *args) {
    Pinned p = {.app = app};
    decide_override_each(session_overrides(app->session), collect, &p);
    int done = 0;
    for (int i = 0; i < p.keys.n; i++)
        if (!args->n || !strcmp(args->at[0], p.keys.at[i]))
            app_override(app, DECIDE_save, p.keys.at[i], -1, done++ > 0);
    if (!done && args->n) {
        diag_fail(&app->diag, "'%s' is not pinned", args->at[0])->hint = "changes lists the pins";
        return false;
    }
    if (done != 1)
        app_message(app, done ? ST_edited : ST_dim,
                    done ? "%d values are left to the rule   u takes it back" : "nothing is pinned",
                    done);
    return true;
}
