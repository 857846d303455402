// breaks.c: breakpoints, tested against what a step did. What a whole step did not do none of its
// rewrites is asked for; else the first rewrite that did it is found by halving, since a state with
// k rewrites costs one run of the pass.
#include "app/breaks.h"

#include "app/model.h"
#include "views/match.h"
#include "views/brief.h"
#include "views/watch.h"

#include <stdlib.h>
#include <string.h>

const BreakInfo break_info[BREAK_kinds] = {
#define BREAK(kind, arg, doc) [BREAK_##kind] = {#kind, arg, doc},
#include "app/breaks.def"
#undef BREAK
};

int break_kind_find(const char *name) {
    int found = -1;
    for (int i = 0; i < BREAK_kinds; i++) {
        if (!strcmp(break_info[i].name, name))
            return i;
        if (*name && str_starts(break_info[i].name, name))
            found = found == -1 ? i : -2;
    }
    return found < 0 ? -1 : found;
}

BreakList *break_list(App *app) {
    if (!app->breaks)
        app->breaks = ARENA_NEW(&app->arena, BreakList);
    return app->breaks;
}

int window_size(App *app, At step) {
    const Artifact *a = model_step(app->session, step.unit, step.step);
    return a && a->n_rewrites > 1 ? a->n_rewrites : 1;
}

// ---- what a delta did

static const char *sizes_text(const Graph *g, const TensorMeta *t, Arena *a) {
    (void)g;
    return brief_sizes(a, (const Expr *const *)t->size, t->ndim);
}

static bool node_fits(const Break *b, const Node *n, Arena *a) {
    const TensorMeta *t = n->op == FX_placeholder ? NULL : node_tensor(n);
    switch (b->kind) {
    case BREAK_op:
        return n->op != FX_placeholder && n->op != FX_output && match_word(n->target, b->what);
    case BREAK_shape:
        return t && match_shape(b->what, sizes_text(n->graph, t, a));
    case BREAK_dtype:
        return t && match_dtype(t->dtype, b->what);
    case BREAK_node:
    case BREAK_pass:
    case BREAK_pattern:
    case BREAK_fusion:
    case BREAK_graph_break:
    case BREAK_guard:
    case BREAK_diverge:
    case BREAK_kinds:
        break;
    }
    return false;
}

static bool has_name(const char *const *at, int n, const char *name) {
    for (int i = 0; i < n; i++)
        if (!strcmp(at[i], name))
            return true;
    return false;
}

static const char *name_hit(const RewriteDelta *d, const char *name, Buf *why) {
    const char *did = has_name(d->made.at, d->made.n, name)         ? "was made"
                      : has_name(d->gone.at, d->gone.n, name)       ? "is gone"
                      : has_name(d->altered.at, d->altered.n, name) ? "was altered"
                                                                    : NULL;
    if (did && why)
        buf_printf(why, "%s %s", name, did);
    return did ? name : NULL;
}

// The name of what it is about, NULL: it does not stop here.
static const char *delta_hit(App *app, const Break *b, const RewriteDelta *d, Buf *why) {
    Arena *a = &app->frame;
    if (b->kind == BREAK_node)
        return name_hit(d, b->what, why);
    for (int i = 0; d->after->kind == ART_graph && i < d->made_items.n; i++) {
        const Node *n = graph_by_id(d->after->graph, d->made_items.at[i]);
        if (n && node_fits(b, n, a)) {
            if (why)
                buf_printf(why, "%s was made", n->name);
            return n->name;
        }
    }
    for (int i = 0; b->kind == BREAK_op && d->before->kind == ART_graph && i < d->gone.n; i++) {
        const Node *n = graph_find(d->before->graph, d->gone.at[i]);
        if (n && node_fits(b, n, a)) {
            if (why)
                buf_printf(why, "%s is gone", n->name);
            return n->name;
        }
    }
    return NULL;
}

static bool delta_to(App *app, const Window *w, int k, RewriteDelta *out) {
    Diag quiet = {.arena = &app->frame};
    At to = w->step;
    to.rewrite = k >= window_size(app, w->step) ? -1 : k;
    const Artifact *after = step_artifact(app, to, &quiet);
    const Artifact *before = step_artifact(app, w->before, &quiet);
    if (!after || !before)
        return false;
    artifact_delta(before, after, &app->frame, out);
    return true;
}

static int find_delta(App *app, const Break *b, Window *w, Buf *why) {
    RewriteDelta d;
    int n = window_size(app, w->step), lo = 0, hi = n;
    if (!delta_to(app, w, n, &d) || !delta_hit(app, b, &d, NULL))
        return 0;
    while (hi - lo > 1) { // the state lo does not show it, hi does
        int mid = (lo + hi) / 2;
        if (delta_to(app, w, mid, &d) && delta_hit(app, b, &d, NULL))
            hi = mid;
        else
            lo = mid;
    }
    if (hi <= w->after || hi > w->until || !delta_to(app, w, hi, &d))
        return 0;
    w->node = arena_strdup(&app->frame, delta_hit(app, b, &d, why));
    return hi;
}

// ---- what the log says

static bool rewrite_fits(const Break *b, const Artifact *a, const Decide *ask) {
    if (b->kind == BREAK_pattern)
        return (a->pass && strstr(a->pass, b->what)) || strstr(ask->key, b->what) ||
               (ask->reason && strstr(ask->reason, b->what));
    return ask->kind == DECIDE_fuse;
}

// `A` or `A B`: names of scheduler nodes.
static bool pair_fits(const char *what, const char *a, const char *b) {
    size_t n = strcspn(what, " ");
    const char *second = what + n + strspn(what + n, " ");
    bool first_a = strlen(a) == n && !memcmp(a, what, n);
    bool first_b = strlen(b) == n && !memcmp(b, what, n);
    if (!*what)
        return true;
    return *second ? (first_a && !strcmp(b, second)) || (first_b && !strcmp(a, second))
                   : first_a || first_b;
}

static int find_pattern(App *app, const Break *b, Window *w, int dir, Buf *why) {
    const Artifact *a = model_step(app->session, w->step.unit, w->step.step);
    Rewrite *list;
    int n = pipeline_rewrites(session_pipeline(app->session), w->step.unit, a, &app->frame, &list);
    for (int i = dir > 0 ? w->after + 1 : w->until; i > w->after && i <= w->until; i += dir)
        if (i <= n && rewrite_fits(b, a, &list[i - 1].asked.ask)) {
            const Decide *ask = &list[i - 1].asked.ask;
            buf_printf(why, "%s: %s", ask->reason && *ask->reason ? ask->reason : a->pass,
                       ask->key);
            return i;
        }
    return 0;
}

// Fused pairs are the rewrites of fusion, in order; a refused one stops at its end.
static int find_fusion(const App *app, const Break *b, Window *w, int dir, Buf *why) {
    const Artifact *a = model_step(app->session, w->step.unit, w->step.step);
    int k = 0, found = 0;
    const FusionAttempt *refused = NULL, *fused = NULL;
    if (a->stage != STAGE_post_fusion || a->kind != ART_schedule)
        return 0;
    for (int i = 0; i < a->schedule->attempts.n; i++) {
        const FusionAttempt *f = &a->schedule->attempts.at[i];
        bool fits = pair_fits(b->what, f->a, f->b);
        k += f->fused;
        if (fits && !f->fused && *b->what)
            refused = f;
        if (!fits || !f->fused || k <= w->after || k > w->until || (found && dir > 0))
            continue;
        found = k;
        fused = f;
    }
    if (found)
        buf_printf(why, "%s and %s were fused: %s", fused->a, fused->b, fused->reason);
    else if (refused && w->until >= a->n_rewrites && w->after < w->until) {
        found = w->until;
        buf_printf(why, "%s and %s were refused: %s", refused->a, refused->b, refused->reason);
    }
    return found;
}

static bool names_step(const Artifact *a, const char *what) {
    return (a->pass && !strcmp(a->pass, what)) || (!a->pass && stage_find(what) == (int)a->stage);
}

// Guards belong to the whole model: those of a graph are about its inputs' sizes.
static bool is_about(const Graph *g, const Expr *cond, Arena *a) {
    const Expr **symbols;
    int n = expr_symbols(a, cond, &symbols);
    for (int i = 0; g && i < n; i++)
        GRAPH_EACH (g, in) {
            if (in->op != FX_placeholder)
                break;
            const TensorMeta *t = node_tensor(in);
            bool here = in->val.kind == VAL_sym && expr_has(in->val.sym, symbols[i]);
            for (int k = 0; t && k < t->ndim && !here; k++)
                here = expr_has(t->size[k], symbols[i]);
            if (here)
                return true;
        }
    return false;
}

static bool guard_hit(App *app, int unit, const Artifact *a, const char *what, Buf *why) {
    const SymGuard *g;
    Pipeline *p = session_pipeline(app->session);
    const Artifact *first = pipeline_at(p, unit, pipeline_first_stage(p, unit));
    int n = sym_guards(pipeline_sym(p), &g), hits = 0;
    if (a->pass || !first || first->kind != ART_graph)
        return false;
    for (int i = 0; i < n; i++) {
        const char *text = sym_str(&app->frame, g[i].cond);
        if (g[i].stage != (int)a->stage || (*what && !strstr(text, what)) ||
            !is_about(first->graph, g[i].cond, &app->frame))
            continue;
        if (!hits++)
            buf_printf(why, "guard %s%s%s", text, g[i].reason ? ": " : "",
                       g[i].reason ? g[i].reason : "");
    }
    if (hits > 1)
        buf_printf(why, " and %d more, vg lists them", hits - 1);
    return hits > 0;
}

// Graphs captured one behind the other: between two of them the model was left.
static bool graph_break_hit(const App *app, int unit, const Artifact *a, Buf *why) {
    const LoadedModel *m = session_model(app->session);
    const Unit *u = pipeline_unit(session_pipeline(app->session), unit);
    if ((int)a->stage != (int)pipeline_first_stage(session_pipeline(app->session), unit) ||
        u->loaded == &m->graphs.at[0])
        return false;
    buf_printf(why, "%s begins, graph %d of %d: a graph break or a recompilation lies before it",
               u->loaded->title && *u->loaded->title ? u->loaded->title : "a graph",
               (int)(u->loaded - m->graphs.at) + 1, m->graphs.n);
    return true;
}

static int find_whole(App *app, const Break *b, Window *w, Buf *why) {
    const Artifact *a = model_step(app->session, w->step.unit, w->step.step);
    int n = window_size(app, w->step);
    bool hit = false;
    if (n <= w->after || n > w->until)
        return 0;
    if (b->kind == BREAK_pass && (hit = names_step(a, b->what)))
        buf_printf(why, "%s is done", artifact_title(a));
    else if (b->kind == BREAK_guard)
        hit = guard_hit(app, w->step.unit, a, b->what, why);
    else if (b->kind == BREAK_graph_break)
        hit = graph_break_hit(app, w->step.unit, a, why);
    else if (b->kind == BREAK_diverge)
        hit = diverges(app, a, w->step.unit, b->what, why);
    return hit ? n : 0;
}

int break_find(App *app, const Break *b, Window *w, int dir, Buf *why) {
    switch (b->kind) {
    case BREAK_op:
    case BREAK_node:
    case BREAK_shape:
    case BREAK_dtype:
        return find_delta(app, b, w, why);
    case BREAK_pattern:
        return find_pattern(app, b, w, dir, why);
    case BREAK_fusion:
        return find_fusion(app, b, w, dir, why);
    case BREAK_pass:
    case BREAK_graph_break:
    case BREAK_guard:
    case BREAK_diverge:
        return find_whole(app, b, w, why);
    case BREAK_kinds:
        break;
    }
    return 0;
}

static bool nearer(int k, int than, int dir) {
    return k && (!than || (dir > 0 ? k < than : k > than));
}

bool breaks_find(App *app, Window *w, int dir, int *at, Buf *why) {
    BreakList *list = break_list(app);
    Break *best = NULL;
    const char *node = NULL;
    *at = 0;
    for (int i = 0; i < list->at.n; i++) {
        Buf words = {.arena = &app->frame};
        w->node = NULL;
        int k = break_find(app, &list->at.at[i], w, dir, &words);
        if (!nearer(k, *at, dir))
            continue;
        node = w->node;
        *at = k;
        best = &list->at.at[i];
        buf_truncate(why, 0);
        buf_printf(why, "breakpoint %d: %s", best->number, buf_str(&words));
    }
    for (int i = 0; app->watches && i < app->watches->at.n; i++) {
        const Watched *x = &app->watches->at.at[i];
        Break b = {.kind = BREAK_node, .what = x->name};
        Buf words = {.arena = &app->frame};
        int k = x->unit == w->step.unit ? break_find(app, &b, w, dir, &words) : 0;
        if (!nearer(k, *at, dir))
            continue;
        *at = k;
        node = x->name;
        best = NULL;
        buf_truncate(why, 0);
        buf_printf(why, "watch %d: %s", x->number, buf_str(&words));
    }
    if (best)
        best->hits++;
    w->node = node;
    return *at > 0;
}
