// cmd_minify.c: `minify`. Without a screen it searches to the end and prints what came out; on the
// screen the search runs beside everything else, can be paused, steered and taken up again.
#include <stdlib.h>
#include <string.h>

#include "app/app.h"
#include "app/complete.h"
#include "app/interrupt.h"
#include "core/debug/minify.h"

// ---- words

typedef struct Wanted {
    MinifyOptions options;
    const char *dir; // NULL: nothing is written
} Wanted;

static bool take_kind(Wanted *w, const char *word) {
    int kind = failure_kind_find(word);
    if (kind < 0 && strcmp(word, "any") != 0)
        return false;
    w->options.check = kind < 0 ? FAIL_none : kind;
    return true;
}

static bool take_words(App *app, const Args *args, Wanted *w) {
    for (int i = 0; i < args->n; i++) {
        const char *word = args->at[i], *value = i + 1 < args->n ? args->at[i + 1] : NULL;
        int limit;
        if (take_kind(w, word))
            continue;
        if (!value) {
            diag_fail(&app->diag, "'%s' is no kind of failure, or has no value behind it", word)
                ->hint = "minify [accuracy|crash|compile|hang] [to DIR] [command CMD] [limit MS]";
            return false;
        }
        i++;
        if (!strcmp(word, "to")) {
            w->dir = value;
        } else if (!strcmp(word, "command")) {
            w->options.command = arena_strdup(&app->arena, value);
        } else if (!strcmp(word, "limit") && args_int(value, &limit) && limit > 0) {
            w->options.limit_ms = limit;
        } else {
            diag_fail(&app->diag, "minify knows no '%s %s'", word, value)->hint =
                "minify [accuracy|crash|compile|hang] [to DIR] [command CMD] [limit MS]";
            return false;
        }
    }
    return true;
}

// ---- on the screen

void app_drop_minify(App *app) {
    if (app->minify)
        minify_free(app->minify);
    app->minify = NULL;
    app->work.minify = NULL;
    work_touch(app);
}

bool app_minifies(const App *app) {
    MinifyState s = app->minify ? minify_state(app->minify) : MINIFY_done;
    return s != MINIFY_done && s != MINIFY_refused;
}

static void tell(App *app) {
    const Minify *m = app->minify;
    const MinifyStep *first = minify_first(m), *best = minify_best(m);
    // How many questions it takes is chance, as times are.
    const char *queries =
        app->hide_times ? "" : arena_printf(&app->frame, " in %d queries", minify_queries(m));
    const char *said = minify_hand_said(m);
    if (minify_state(m) == MINIFY_refused)
        app_message(app, ST_warn, "nothing to minify: %s", minify_why(m));
    else
        app_message(app, ST_ok, "minified: %d -> %d nodes%s%s%s", first->nodes, best->nodes,
                    queries, *said ? "; " : "", said);
}

// The cursor stays on its node, wherever that stands now.
static void touch(App *app) {
    Pane *p = app_pane(app);
    const View *v = p->ctx.view;
    bool shown = v == view_find("minify") && p->ready && p->ok && p->row < v->count(&p->ctx);
    const char *name = shown ? v->name_of(&p->ctx, p->row) : NULL;
    name = name ? arena_strdup(&app->frame, name) : NULL;
    work_touch(app);
    if (!name || !pane_ready(app, p))
        return;
    for (int row = 0, n = v->count(&p->ctx); row < n; row++) {
        const char *here = v->name_of(&p->ctx, row);
        if (here && !strcmp(here, name)) {
            pane_move(app, p, row);
            return;
        }
    }
}

bool app_poll_minify(App *app) {
    if (!app->minify)
        return false;
    MinifyState was = minify_state(app->minify);
    if (was == MINIFY_done || was == MINIFY_refused)
        return false;
    int tries = minify_n_tries(app->minify);
    const char *said = minify_hand_said(app->minify);
    bool over = minify_poll(app->minify);
    touch(app);
    if (over)
        tell(app);
    else if (minify_hand_said(app->minify) != said && *minify_hand_said(app->minify))
        app_message(app, ST_text, "%s", minify_hand_said(app->minify));
    return over || minify_n_tries(app->minify) != tries || minify_state(app->minify) != was;
}

static bool do_pause(App *app, const char *node) {
    (void)node;
    minify_pause(app->minify);
    return true;
}

static bool do_resume(App *app, const char *node) {
    (void)node;
    minify_resume(app->minify);
    return true;
}

static bool do_stop(App *app, const char *node) {
    (void)node;
    app_drop_minify(app);
    return true;
}

static bool do_undo(App *app, const char *node) {
    (void)node;
    if (!minify_undo(app->minify)) {
        diag_fail(&app->diag, "there is no step to take back");
        return false;
    }
    if (app->interactive) // who takes over by hand has more to do than this
        minify_pause(app->minify);
    app_message(app, ST_text, "back to %d nodes%s", minify_best(app->minify)->nodes,
                app->interactive
                    ? ", paused: u once more, + keeps a node, ! drops it, Space goes on"
                    : "");
    return true;
}

static bool do_keep(App *app, const char *node) {
    bool ok = minify_keep(app->minify, node, &app->diag);
    if (ok)
        app_message(app, ST_text, "%s stays in all that follows", node);
    return ok;
}

static bool do_drop(App *app, const char *node) {
    return minify_drop(app->minify, node, &app->diag);
}

// What can be done to a search.
static const struct {
    const char *name;
    bool node; // it is about one
    bool (*run)(App *app, const char *node);
} actions[] = {{"pause", false, do_pause}, {"resume", false, do_resume}, {"stop", false, do_stop},
               {"undo", false, do_undo},   {"keep", true, do_keep},      {"drop", true, do_drop}};

static bool act(App *app, const Args *args, int action) {
    if (!app->minify) {
        diag_fail(&app->diag, "no search is under way")->hint = "minify starts one";
        return false;
    }
    if (args->n != 1 + actions[action].node) {
        diag_fail(&app->diag,
                  actions[action].node ? "minify %s takes a node" : "minify %s takes nothing",
                  actions[action].name);
        return false;
    }
    const char *node = args->n > 1 ? args->at[1] : NULL;
    Pane *p = app_pane(app);
    if (node && !strcmp(node, "@") && p->ctx.view && p->ctx.view->name_of && pane_ready(app, p))
        node = p->ctx.view->name_of(&p->ctx, p->row);
    if (!node && actions[action].node) {
        app_message(app, ST_dim, "the cursor is on no node of the smallest graph");
        return true;
    }
    node = node ? arena_strdup(&app->frame, node) : NULL;
    bool ok = actions[action].run(app, node);
    if (!app->interactive && app->minify && minify_state(app->minify) == MINIFY_search) {
        minify_wait(app->minify, NULL);
        tell(app);
    }
    touch(app);
    return ok;
}

void list_minify(Gather *g) {
    const char *last = complete_word(g, g->index);
    const MinifyStep *best = g->app->minify ? minify_best(g->app->minify) : NULL;
    if (!strcmp(last, "keep") || !strcmp(last, "drop")) {
        if (best)
            GRAPH_EACH (best->candidate->graph, n)
                complete_offer(g, n->name, n->target);
        return;
    }
    if (!strcmp(last, "to")) {
        list_kind(g, "dir");
        return;
    }
    complete_offer(g, "to", "a folder for what comes out");
    complete_offer(g, "command", "that tells whether a graph fails");
    complete_offer(g, "limit", "milliseconds of one question");
}

// Beside everything else; without a person who watches it is waited for.
static bool on_screen(App *app, const Wanted *w) {
    const Unit *u = pipeline_unit(session_pipeline(app->session), app_pane(app)->ctx.unit);
    bool there = app_pane(app)->ctx.view == view_find("minify");
    app_drop_minify(app);
    app->minify = session_minify_start(app->session, u->parent ? u->parent->index : u->index,
                                       &w->options, &app->diag);
    app->work.minify = app->minify;
    work_touch(app);
    if (!app->minify)
        return false;
    if (!app->interactive) {
        minify_wait(app->minify, NULL);
        tell(app);
    }
    return there || app_run(app, "view minify");
}

bool cmd_minify(App *app, Args *args) {
    Wanted w = {0};
    for (int i = 0; args->n && i < COUNT(actions); i++)
        if (!strcmp(args->at[0], actions[i].name))
            return act(app, args, i);
    if (!take_words(app, args, &w))
        return false;
    if (!app->sink && !w.dir)
        return on_screen(app, &w);
    Interrupt before;
    int code = session_report_minify(app->session, &w.options, w.dir, &app->out, app->json,
                                     interrupt_begin(&before), &app->diag);
    interrupt_end(&before);
    if (code > app->exit_code)
        app->exit_code = code;
    return app->diag.errors == 0;
}
