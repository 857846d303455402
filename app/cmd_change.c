// cmd_change.c: commands that change something: settings of the screen and of the pipeline,
// decisions overridden by hand, with undo and redo. A change of a decision rebuilds from the stage
// that asks it.
#include "app/app.h"
#include "app/model.h"
#include "views/brief.h"
#include "core/record/fault.h"

#include <stdio.h>
#include <string.h>

typedef struct Change {
    DecisionKind kind;
    const char *key;
    int before, after;    // override: -1 none, 0 off, 1 on
    const char *setting;  // not a decision but a setting: its name
    const char *was, *is; // and its values
    bool joined;          // one change together with the one before it
} Change;

struct Changes {
    VEC(Change) done, undone;
};

// The stage that asks decisions of a kind: what is rebuilt when one is overridden.
static StageId stage_of_kind(DecisionKind kind) {
    switch (kind) {
    case DECIDE_decomposition:
        return STAGE_functional;
    case DECIDE_fault:
        return STAGE_fx;
    case DECIDE_rewrite:
    case DECIDE_pass:
    case DECIDE_stop:
        return STAGE_joint_passes;
    case DECIDE_save:
        return STAGE_partition;
    case DECIDE_lowering:
    case DECIDE_realize:
        return STAGE_pre_fusion;
    case DECIDE_fuse:
    case DECIDE_reuse:
    case DECIDE_inplace:
    case DECIDE_order:
        return STAGE_post_fusion;
    case DECIDE_tile:
    case DECIDE_parallel:
    case DECIDE_dtype:
        return STAGE_kernels;
    case DECIDE_n_kinds:
        break;
    }
    return STAGE_functional;
}

static void apply(App *app, DecisionKind kind, const char *key, int value) {
    Overrides *o = session_overrides(app->session);
    if (value < 0)
        decide_clear(o, kind, key);
    else
        decide_override(o, kind, key, value == 1);
    session_changed(app->session, stage_of_kind(kind));
}

static struct Changes *changes_of(App *app) {
    if (!app->changes)
        app->changes = ARENA_NEW(&app->arena, struct Changes);
    app->changes->undone.n = 0;
    return app->changes;
}

bool app_override(App *app, DecisionKind kind, const char *key, int value, bool joined) {
    const bool *was = decide_override_at(session_overrides(app->session), kind, key);
    Change c = {.kind = kind,
                .key = arena_strdup(&app->arena, key),
                .before = was ? *was : -1,
                .after = value,
                .joined = joined};
    vec_push(&app->arena, &changes_of(app)->done, c);
    Pane *p = app_pane(app);
    if (pane_ready(app, p)) // what the cursor is on is found again after the rebuild
        p->last = pane_item(app, p);
    if (!joined)
        app_note_saved(app, arena_printf(&app->frame, "%s %s", decision_kind_name(kind), key));
    apply(app, kind, c.key, value);
    static const char *const words[] = {"left to the rule", "off", "on"};
    app_message(app, ST_edited, "%s %s: %s   u takes it back", decision_kind_name(kind), c.key,
                words[value + 1]);
    return true;
}

static bool change(App *app, DecisionKind kind, const char *key, int value) {
    return app_override(app, kind, key, value, false);
}

bool app_set(App *app, const char *name, const char *value, bool joined) {
    const char *was = session_setting(app->session, name, &app->arena);
    app_note_saved(app, arena_printf(&app->frame, "%s=%s", name, value));
    if (!session_set(app->session, name, value, &app->diag))
        return false;
    Change c = {.setting = arena_strdup(&app->arena, name),
                .was = was,
                .is = session_setting(app->session, name, &app->arena),
                .joined = joined};
    vec_push(&app->arena, &changes_of(app)->done, c);
    app_message(app, ST_edited, "%s=%s   u takes it back", c.setting, c.is);
    return true;
}

// A wish about two scheduler nodes, by any name that `why` takes.
typedef struct FusionWish {
    int unit;
    const char *names[2]; // of single nodes, in order of execution
    const char *key;      // of the override
} FusionWish;

static bool fusion_wish(App *app, const Args *args, FusionWish *w) {
    *w = (FusionWish){.unit = app_pane(app)->ctx.unit, .names = {args->at[0], args->at[1]}};
    if (!session_pair(app->session, &w->unit, w->names, &app->frame, &app->diag))
        return false;
    w->key = session_fusion_key(app->session, w->unit, w->names[0], w->names[1], &app->frame);
    return true;
}

static bool holds(const SchedNode *n, const char *name) {
    for (int i = 0; i < n->snodes.n; i++)
        if (!strcmp(n->snodes.at[i]->name, name))
            return true;
    return false;
}

// After a wish to fuse: are they in one node now? If not, the wish is taken back, and why is said.
static bool fused_or_back(App *app, const FusionWish *w) {
    const Artifact *after = model_artifact(app->session, w->unit, STAGE_post_fusion, &app->diag);
    for (int i = 0; after && i < after->schedule->nodes.n; i++) {
        const SchedNode *n = after->schedule->nodes.at[i];
        if (holds(n, w->names[0]) && holds(n, w->names[1]))
            return true;
    }
    FusionAttempt f;
    bool known = session_attempt(app->session, w->unit, w->names[0], w->names[1], &app->frame, &f,
                                 &app->diag);
    Change c = vec_pop(&app->changes->done);
    apply(app, c.kind, c.key, c.before);
    app->message[0] = 0;
    const char *also = known && f.barrier && strcmp(f.barrier, f.reason) ? f.barrier : NULL;
    diag_fail(&app->diag, "%s and %s cannot be fused: %s%s%s", w->names[0], w->names[1],
              known ? f.reason : "see above", also ? ", and " : "", also ? also : "");
    return false;
}

bool cmd_fuse(App *app, Args *args) {
    FusionWish w;
    if (!fusion_wish(app, args, &w) || !change(app, DECIDE_fuse, w.key, 1) ||
        !fused_or_back(app, &w))
        return false;
    app_retime(app);
    return true;
}

bool cmd_nofuse(App *app, Args *args) {
    FusionWish w;
    if (!fusion_wish(app, args, &w) || !change(app, DECIDE_fuse, w.key, 0))
        return false;
    app_retime(app);
    return true;
}

// The backend as a setting: `full gcc`.
static const char backend_setting[] = "backend";

const char *app_backend_text(App *app) {
    Session *s = app->session;
    const char *name = backend_info[session_backend(s)].name;
    return session_backend(s) == BACKEND_full && session_toolchain(s)
               ? arena_printf(&app->arena, "%s %s", name, session_toolchain(s)->name)
               : name;
}

void app_note_backend(App *app, const char *was) {
    const char *is = app_backend_text(app);
    if (strcmp(was, is))
        vec_push(&app->arena, &changes_of(app)->done,
                 (Change){.setting = backend_setting, .was = was, .is = is});
}

static void set_backend(App *app, const char *text) {
    const char *blank = strchr(text, ' ');
    const char *name = blank ? arena_strndup(&app->frame, text, (size_t)(blank - text)) : text;
    session_set_backend(app->session, name, blank ? blank + 1 : NULL, &app->diag);
}

int app_change_count(const App *app) {
    return app->changes ? app->changes->done.n : 0;
}

static void apply_change(App *app, const Change *c, bool forwards) {
    if (c->setting == backend_setting)
        set_backend(app, forwards ? c->is : c->was);
    else if (!c->setting)
        apply(app, c->kind, c->key, forwards ? c->after : c->before);
    else // it was accepted before: only a file may have gone since, and then it says so
        session_set(app->session, c->setting, forwards ? c->is : c->was, &app->diag);
}

void app_change_drop(App *app) {
    Change c;
    do {
        c = vec_pop(&app->changes->done);
        apply_change(app, &c, false);
    } while (c.joined && app->changes->done.n);
    app->message[0] = 0;
}

bool cmd_override(App *app, Args *args) {
    int kind = decision_kind_find(args->at[0]);
    if (kind < 0) {
        Buf list = {.arena = &app->frame};
        for (int i = 0; i < DECIDE_n_kinds; i++)
            buf_printf(&list, "%s%s", i ? " " : "", decision_kind_name((DecisionKind)i));
        diag_fail(&app->diag, "no kind of decision '%s'", args->at[0])->hint = buf_str(&list);
        return false;
    }
    const char *v = args->at[2];
    return change(app, (DecisionKind)kind, args->at[1],
                  !strcmp(v, "on")    ? 1
                  : !strcmp(v, "off") ? 0
                                      : -1);
}

static bool list_faults(App *app) {
    const Overrides *o = session_overrides(app->session);
    for (int i = 0; i < FAULT_count; i++)
        buf_printf(&app->out, "%-3s %-22s %-13s %-14s %s\n", fault_is_on(o, (FaultId)i) ? "ON" : "",
                   fault_info[i].name, fault_info[i].stage,
                   fault_info[i].decision, fault_info[i].doc);
    return true;
}

bool cmd_fault(App *app, Args *args) {
    if (!args->n)
        return list_faults(app);
    int f = session_fault_find(args->at[0], &app->diag);
    if (f < 0)
        return false;
    bool on = args->n < 2 || !strcmp(args->at[1], "on");
    if (!on && !fault_is_on(session_overrides(app->session), (FaultId)f)) {
        app_message(app, ST_dim, "%s is not planted", fault_info[f].name);
        return true;
    }
    return change(app, DECIDE_fault, fault_info[f].name, on ? 1 : -1);
}

bool cmd_keep(App *app, Args *args) {
    return app_pin_saved(app, args->at[0], true);
}

bool cmd_recompute(App *app, Args *args) {
    return app_pin_saved(app, args->at[0], false);
}

bool cmd_rule(App *app, Args *args) {
    return app_run(app, arena_printf(&app->frame, "unpin %s", args->at[0]));
}

// A value of forward on the cursor's line: of the saved view, or of a graph before it is parted.
static const char *saved_choice(App *app, Pane *p) {
    Item item = pane_item(app, p);
    const Artifact *a = p->ctx.art;
    const Unit *joint = session_joint(app->session, p->ctx.unit);
    if (!joint || !a || item.id < 0 || a->kind != ART_graph || a->stage < STAGE_joint ||
        a->stage > STAGE_partition || model_step_of(app->session, joint->index, a) < 0)
        return NULL;
    const Node *n = item.id < a->graph->by_id.n ? graph_by_id(a->graph, item.id) : NULL;
    return n && n->op == FX_call_function ? n->name : NULL;
}

// The choice on the cursor's line, as the view's Space would name it: its line begins with the
// command.
static bool choose(App *app, bool yes) {
    Pane *p = app_pane(app);
    const char *line = NULL;
    const char *value = pane_has_row(app, p) ? saved_choice(app, p) : NULL;
    if (value)
        return app_pin_saved(app, value, yes);
    if (pane_has_row(app, p) && p->ctx.view->toggle &&
        p->ctx.view->toggle(&p->ctx, p->row, &line) && line) {
        const char *rest = strchr(line, ' ');
        const char *verb = yes ? "fuse" : "nofuse";
        return app_run(app, arena_printf(&app->frame, "%s%s", verb, rest ? rest : ""));
    }
    app_message(app, ST_dim, "no choice on this line");
    return true;
}

bool cmd_force(App *app, Args *args) {
    (void)args;
    return choose(app, true);
}

bool cmd_forbid(App *app, Args *args) {
    (void)args;
    return choose(app, false);
}

static void say_change(App *app, const char *word, const Change *c, const char *rest) {
    if (c->setting)
        app_message(app, ST_edited, "%s: %s%s", word, c->setting, rest);
    else
        app_message(app, ST_edited, "%s: %s %s%s", word, decision_kind_name(c->kind), c->key, rest);
}

bool cmd_undo(App *app, Args *args) {
    (void)args;
    if (!app->changes || !app->changes->done.n) {
        app_message(app, ST_dim, "nothing to undo");
        return true;
    }
    Change c;
    app_note_saved(app, "undo");
    do {
        c = vec_pop(&app->changes->done);
        vec_push(&app->arena, &app->changes->undone, c);
        apply_change(app, &c, false);
    } while (c.joined && app->changes->done.n);
    say_change(app, "undone", &c, "   U does it again");
    return true;
}

bool cmd_redo(App *app, Args *args) {
    (void)args;
    struct Changes *x = app->changes;
    if (!x || !x->undone.n) {
        app_message(app, ST_dim, "nothing to redo");
        return true;
    }
    Change c;
    app_note_saved(app, "redo");
    do {
        c = vec_pop(&x->undone);
        vec_push(&app->arena, &x->done, c);
        apply_change(app, &c, true);
    } while (x->undone.n && x->undone.at[x->undone.n - 1].joined);
    say_change(app, "again", &c, "");
    return true;
}

static void print_override(void *ctx, DecisionKind kind, const char *key, bool result) {
    buf_printf(ctx, "%-14s %-30s %-4s undo: override %s %s rule\n", decision_kind_name(kind), key,
               result ? "on" : "off", decision_kind_name(kind), key);
}

// A setting's first change has the value from before; it may be back at that by now.
static void print_setting(App *app, int i) {
    const Change *c = &app->changes->done.at[i];
    for (int k = 0; k < i && c->setting; k++) {
        const char *before = app->changes->done.at[k].setting;
        if (before && !strcmp(before, c->setting))
            return;
    }
    const char *now = c->setting == backend_setting ? app_backend_text(app)
                      : c->setting ? session_setting(app->session, c->setting, &app->frame)
                                   : NULL;
    if (c->setting == backend_setting && strcmp(now, c->was))
        buf_printf(&app->out, "%-14s %-30s %-4s undo: backend %s\n", "backend", now, "", c->was);
    else if (now && strcmp(now, c->was))
        buf_printf(&app->out, "%-14s %-30s %-4s undo: set %s=%s\n", "setting", c->setting, now,
                   c->setting, c->was);
}

bool cmd_changes(App *app, Args *args) {
    (void)args;
    decide_override_each(session_overrides(app->session), print_override, &app->out);
    for (int i = 0; app->changes && i < app->changes->done.n; i++)
        print_setting(app, i);
    if (!app->out.len)
        app_message(app, ST_dim, "nothing is changed");
    return true;
}
