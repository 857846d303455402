// cmd_step.c: commands that walk along the compilation: step, scrub, until, continue, and
// breakpoints and watches to stop at.
#include "app/breaks.h"
#include "app/model.h"
#include "views/watch.h"
#include "core/base/work.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Names that step as far as they can go, so that walking never ends by itself.
enum { STEPS_MAX = 100000 };

// A diff of steps moves on with the walk.
static bool show_there(App *app, At at) {
    const Pane *p = app_pane(app);
    bool diff = p->ctx.view && !strcmp(p->ctx.view->name, "diff") && p->ctx.arg[0] == '#';
    if (!diff)
        return step_show(app, at);
    const char *a = step_text(app, step_before(app, at)), *b = step_text(app, at);
    if (!pane_show(app, app->layout.focus, p->ctx.view, p->ctx.stage, at.unit,
                   arena_printf(&app->frame, "#%s #%s", a, b))) {
        diag_fail(&app->diag, "%s", app_pane(app)->why);
        return false;
    }
    Buf words = {.arena = &app->frame};
    step_say(app, at, &words);
    app_message(app, ST_text, "%s", buf_str(&words));
    return true;
}

// What there is to say beside what the step did goes in front.
static bool show(App *app, At at, StyleId style, const char *words) {
    if (!show_there(app, at))
        return false;
    if (*words)
        app_message(app, style, "%s", arena_printf(&app->frame, "%s   %s", words, app->message));
    return true;
}

bool cmd_step(App *app, Args *args) {
    int n = 1;
    StepBy by = STEP_pass;
    At at;
    for (int i = 0; i < args->n; i++) {
        if (args->at[i][0] == 's')
            by = STEP_stage;
        else if (args->at[i][0] == 'r')
            by = STEP_rewrite;
        args_int(args->at[i], &n);
    }
    app->home = false;
    if (!step_here(app, &at))
        return false;
    spot_push(app);
    int dir = n < 0 ? -1 : 1;
    bool end = false;
    for (int k = n < 0 ? -n : n; k > 0 && !end; k--)
        end = !step_walk(app, &at, dir, by);
    return show(app, at, ST_dim,
                !end      ? ""
                : dir < 0 ? "this is the first step"
                          : "this is the last step");
}

bool cmd_scrub(App *app, Args *args) {
    At at = {.unit = app_pane(app)->ctx.unit};
    bool ok = step_parse(args->at[0], &at);
    model_artifact(app->session, at.unit, STAGE_kernels, &(Diag){.arena = &app->frame});
    const Artifact *a = ok ? model_step(app->session, at.unit, at.step) : NULL;
    if (!a) {
        diag_fail(&app->diag, "no step %s: there are %d, from 1", args->at[0],
                  unit_n_steps(pipeline_unit(session_pipeline(app->session), at.unit)))
            ->hint = "scrub 12, or scrub 12.3 for the third rewrite of the twelfth";
        return false;
    }
    if (at.rewrite > a->n_rewrites) {
        diag_fail(&app->diag, "step %d has %d rewrites, not %d", at.step + 1, a->n_rewrites,
                  at.rewrite);
        return false;
    }
    if (at.rewrite == a->n_rewrites)
        at.rewrite = -1;
    spot_push(app);
    app->home = false;
    return step_show(app, at);
}

// ---- continue, until

static bool goes_on(App *app, At at) {
    const Unit *u = pipeline_unit(session_pipeline(app->session), at.unit);
    return work_goes_on(NULL, at.step + 1, unit_n_steps(u));
}

// The step that a position lies in, as far as it is before or behind the position.
static Window window_at(App *app, At at, int dir) {
    At whole = {at.unit, at.step, -1};
    int n = window_size(app, whole), k = at.rewrite < 0 ? n : at.rewrite;
    return (Window){step_before(app, whole), whole, dir > 0 ? k : 0, dir > 0 ? n : k - 1, NULL};
}

// Where a walk ended, and what stopped it there.
typedef struct Stop {
    At at;
    const char *node; // NULL: it is about no node
} Stop;

typedef bool Finder(App *app, Window *w, int dir, int *k, Buf *why);

// From graph to graph; backwards out of a gradient's own steps into its forward.
static bool walk_on(App *app, At *at, int dir) {
    const Unit *u = pipeline_unit(session_pipeline(app->session), at->unit);
    bool first = dir < 0 && u->parent && u == u->parent->backward && at->step <= u->parent->steps.n;
    return (!first && step_walk(app, at, dir, STEP_pass)) || step_other_graph(app, at, dir);
}

// Walks from s->at until the finder stops it. False at the end, or if the user stopped it.
static bool walk(App *app, Stop *s, int dir, Finder *find, Buf *why) {
    Window w = window_at(app, s->at, dir);
    for (int i = 0; i < STEPS_MAX; i++) {
        int k = 0;
        if (w.after < w.until && find(app, &w, dir, &k, why)) {
            s->at = w.step;
            s->at.rewrite = k >= window_size(app, w.step) ? -1 : k;
            s->node = w.node;
            return true;
        }
        At next = w.step;
        if (!walk_on(app, &next, dir) || !goes_on(app, next))
            break;
        s->at = next;
        w = (Window){step_before(app, next), next, 0, window_size(app, next), NULL};
    }
    return false;
}

static bool show_stop(App *app, const Stop *s, const char *why) {
    if (!show(app, s->at, ST_edited, why))
        return false;
    Pane *p = app_pane(app);
    int item = s->node ? item_find(p->ctx.art, s->node) : -1;
    if (item >= 0)
        pane_goto_item(app, p, (Item){p->ctx.art->id, item});
    return true;
}

static bool find_break(App *app, Window *w, int dir, int *k, Buf *why) {
    return breaks_find(app, w, dir, k, why);
}

bool cmd_continue(App *app, Args *args) {
    int dir = 1;
    Buf why = {.arena = &app->frame};
    Stop stop = {.node = NULL};
    if (args->n && args_int(args->at[0], &dir))
        dir = dir < 0 ? -1 : 1;
    app->home = false;
    if (!step_here(app, &stop.at))
        return false;
    bool any = break_list(app)->at.n || (app->watches && app->watches->at.n);
    WorkPart part = work_enter_all("continue");
    bool hit = walk(app, &stop, dir, find_break, &why);
    work_leave(part);
    spot_push(app);
    if (hit)
        return show_stop(app, &stop, buf_str(&why));
    return show(app, stop.at, ST_dim,
                !any      ? "no breakpoint is set: b sets one here, break lists the kinds"
                : dir > 0 ? "no breakpoint stops on the way on"
                          : "no breakpoint stops on the way back");
}

// A step by its name, or the first that does something to a node.
static Break until_break;

static bool find_until(App *app, Window *w, int dir, int *k, Buf *why) {
    const Artifact *a = model_step(app->session, w->step.unit, w->step.step);
    Break pass = {.kind = BREAK_pass, .what = until_break.what};
    (void)a;
    *k = break_find(app, &pass, w, dir, why);
    if (!*k)
        *k = break_find(app, &until_break, w, dir, why);
    return *k > 0;
}

bool cmd_until(App *app, Args *args) {
    const char *what = args->at[0];
    Buf why = {.arena = &app->frame};
    Stop stop = {.node = NULL};
    app->home = false;
    if (!step_here(app, &stop.at))
        return false;
    Pane *p = app_pane(app);
    if (!strcmp(what, "@"))
        what = arena_strdup(&app->frame, item_name(p->ctx.art, pane_item(app, p).id));
    until_break = (Break){.kind = BREAK_node, .what = what};
    WorkPart part = work_enter_all("until");
    bool hit = walk(app, &stop, 1, find_until, &why);
    work_leave(part);
    if (!hit) {
        diag_fail(&app->diag,
                  "no later step is called '%s', and none makes, alters or takes away "
                  "a node of that name",
                  what)
            ->hint = "continue -1 goes back";
        return false;
    }
    spot_push(app);
    return show_stop(app, &stop, buf_str(&why));
}

// ---- breakpoints

static void print_kinds(App *app) {
    for (int i = 0; i < BREAK_kinds; i++)
        buf_printf(&app->out, "break %-12s %-12s %s\n", break_info[i].name, break_info[i].arg,
                   break_info[i].doc);
}

static Break *break_same(App *app, BreakKind kind, const char *what) {
    BreakList *list = break_list(app);
    for (int i = 0; i < list->at.n; i++)
        if (list->at.at[i].kind == kind && !strcmp(list->at.at[i].what, what))
            return &list->at.at[i];
    return NULL;
}

static bool add_break(App *app, BreakKind kind, const char *what) {
    BreakList *list = break_list(app);
    Break *b = break_same(app, kind, what);
    if (!b) {
        vec_push(&app->arena, &list->at,
                 (Break){++list->numbers, kind, arena_strdup(&app->arena, what), 0});
        b = &vec_last(&list->at);
    }
    app_message(app, ST_edited, "breakpoint %d: %s%s%s   C continues to it", b->number,
                break_info[kind].name, *what ? " " : "", what);
    if (kind == BREAK_graph_break && model_units(app->session) == 1)
        app_message(app, ST_warn, "breakpoint %d: graph_break   this model is one graph, and "
                    "capture from Python, which makes others, is not in this build", b->number);
    return true;
}

// On a line of the list of passes that pass; else the thing under the cursor, or what is shown.
static bool break_here(App *app) {
    Pane *p = app_pane(app);
    if (!pane_ready(app, p))
        return false;
    Item item = pane_item(app, p);
    const char *name = item_name(p->ctx.art, item.id);
    const char *line =
        pane_has_row(app, p) && p->ctx.view->enter ? p->ctx.view->enter(&p->ctx, p->row) : NULL;
    const char *hash = line && !strcmp(p->ctx.view->name, "passes") ? strrchr(line, '#') : NULL;
    const Artifact *a =
        hash ? model_step(app->session, p->ctx.unit, (int)strtol(hash + 1, NULL, 10) - 1)
             : p->ctx.art;
    if (*name && !hash) {
        BreakKind kind = p->ctx.art->kind == ART_schedule ? BREAK_fusion : BREAK_node;
        return add_break(app, kind, name);
    }
    if (!a) {
        app_message(app, ST_dim, "nothing here to stop at; break KIND WHAT sets one");
        return true;
    }
    return add_break(app, BREAK_pass, artifact_title(a));
}

bool cmd_break(App *app, Args *args) {
    if (!args->n) {
        print_kinds(app);
        return true;
    }
    if (!strcmp(args->at[0], "here"))
        return break_here(app);
    int kind = break_kind_find(args->at[0]);
    if (kind < 0) {
        Buf list = {.arena = &app->frame};
        for (int i = 0; i < BREAK_kinds; i++)
            buf_printf(&list, "%s%s", i ? " " : "", break_info[i].name);
        diag_fail(&app->diag, "no kind of breakpoint '%s'", args->at[0])->hint = buf_str(&list);
        return false;
    }
    const char *what = args->rest + strcspn(args->rest, " ");
    what += strspn(what, " ");
    bool optional = !*break_info[kind].arg || break_info[kind].arg[0] == '[';
    if (!*what && !optional) {
        diag_fail(&app->diag, "break %s needs %s", break_info[kind].name, break_info[kind].arg)
            ->hint = break_info[kind].doc;
        return false;
    }
    return add_break(app, (BreakKind)kind, what);
}

bool cmd_watch(App *app, Args *args) {
    Pane *p = app_pane(app);
    Item item = pane_item(app, p);
    const char *name = args->n ? args->at[0] : item_name(p->ctx.art, item.id);
    if (!*name) {
        app_message(app, ST_dim, "the cursor is on nothing that can be watched");
        return true;
    }
    if (!app->watches)
        app->watches = ARENA_NEW(&app->arena, WatchList);
    for (int i = 0; i < ALL_PANES; i++)
        app->pane[i].ctx.watches = app->watches;
    Watched w = {.unit = p->ctx.unit, .name = name};
    w.stage = p->ctx.art ? (int)p->ctx.art->stage : 0;
    int at;
    if (!watch_find(session_pipeline(app->session), &w, &at)) {
        diag_fail(&app->diag, "no '%s' in the stages built", name);
        return false;
    }
    for (int i = 0; i < app->watches->at.n; i++)
        if (!strcmp(app->watches->at.at[i].name, name) && app->watches->at.at[i].unit == w.unit)
            return app_run(app, "view watch");
    w.number = ++break_list(app)->numbers;
    w.name = arena_strdup(&app->arena, name);
    vec_push(&app->arena, &app->watches->at, w);
    app->watches->version++;
    app_message(app, ST_edited, "watch %d: %s   view watch shows it at every stage", w.number,
                w.name);
    return true;
}

bool cmd_breaks(App *app, Args *args) {
    (void)args;
    const BreakList *list = break_list(app);
    for (int i = 0; i < list->at.n; i++)
        buf_printf(&app->out, "%3d  %-12s %-24s hit %d time%s\n", list->at.at[i].number,
                   break_info[list->at.at[i].kind].name, list->at.at[i].what, list->at.at[i].hits,
                   list->at.at[i].hits == 1 ? "" : "s");
    for (int i = 0; app->watches && i < app->watches->at.n; i++)
        buf_printf(&app->out, "%3d  %-12s %-24s graph %d\n", app->watches->at.at[i].number, "watch",
                   app->watches->at.at[i].name, app->watches->at.at[i].unit);
    if (!app->out.len)
        app_message(app, ST_dim, "no breakpoints; b sets one here, break lists the kinds");
    return true;
}

bool cmd_delete(App *app, Args *args) {
    BreakList *list = break_list(app);
    int n = 0, gone = 0;
    bool all = !strcmp(args->at[0], "all");
    args_int(args->at[0], &n);
    for (int i = list->at.n - 1; i >= 0; i--)
        if (all || list->at.at[i].number == n) {
            vec_remove(&list->at, i);
            gone++;
        }
    for (int i = app->watches ? app->watches->at.n - 1 : -1; i >= 0; i--)
        if (all || app->watches->at.at[i].number == n) {
            vec_remove(&app->watches->at, i);
            app->watches->version++;
            gone++;
        }
    if (!gone && !all) {
        diag_fail(&app->diag, "no breakpoint %d", n)->hint = "breaks lists them";
        return false;
    }
    app_message(app, ST_dim, "%d gone", gone);
    return true;
}

void breaks_save(App *app, Buf *out) {
    const BreakList *list = break_list(app);
    for (int i = 0; i < list->at.n; i++)
        buf_printf(out, "break %s%s%s\n", break_info[list->at.at[i].kind].name,
                   *list->at.at[i].what ? " " : "", list->at.at[i].what);
    int item;
    for (int i = 0; app->watches && i < app->watches->at.n; i++) {
        const Watched *w = &app->watches->at.at[i];
        const char *gone = watch_find(session_pipeline(app->session), w, &item) ? "" : "# gone: ";
        buf_printf(out, "%sstage %s graph %d ; watch %s\n", gone, stage_info[w->stage].name,
                   w->unit, w->name);
    }
}
