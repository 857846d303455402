// minify.c: the search for the smallest graph that still fails, while it goes on and after: how the
// number of nodes fell, what is being tried, the tree of tries (each step with what was tried on
// it), and the smallest graph so far, whose nodes can be kept or dropped by hand.
#include <string.h>

#include "core/debug/minify.h"
#include "views/chart.h"
#include "views/work.h"

enum { TRY_COLS = 30, TRIES_SHOWN = 6, FALL_COLS = 24 };

static const StyleId verdict_style[TRY_count] = {
    [TRY_waiting] = ST_stale, [TRY_fails] = ST_ok,    [TRY_passes] = ST_dim,
    [TRY_other] = ST_warn,    [TRY_invalid] = ST_dim, [TRY_refused] = ST_edited,
};
static const char *const verdict_sign[TRY_count] = {
    [TRY_waiting] = "~", [TRY_fails] = "✓",   [TRY_passes] = "·",
    [TRY_other] = "!",   [TRY_invalid] = "·", [TRY_refused] = "*",
};

static bool is_over(const Minify *m) {
    return minify_state(m) == MINIFY_done || minify_state(m) == MINIFY_refused;
}

// Steps that lead to the last one; undone ones are left out.
static void fall(Page *p, const Minify *m) {
    int n = minify_n_steps(m), k = 0;
    double *nodes = ARENA_ARRAY(p->arena, n + 1, double);
    for (int i = 0; i < n; i++)
        if (!minify_step(m, i)->undone)
            nodes[k++] = minify_step(m, i)->nodes;
    if (!k)
        return;
    int width = k < FALL_COLS ? k : FALL_COLS;
    page_line(p)->node = "nodes of each graph that failed in the same way, from the first to the "
                         "smallest";
    page_add(p, ST_dim, "nodes    ");
    page_add(p, ST_name, "%.0f ", nodes[0]);
    page_add(p, ST_bar, "%s", chart_spark(p->arena, nodes, k, width));
    page_add(p, ST_name, " %.0f", nodes[k - 1]);
    page_add(p, ST_dim, "   inputs %d → %d   results %d → %d", minify_first(m)->inputs,
             minify_best(m)->inputs, minify_first(m)->outputs, minify_best(m)->outputs);
}

static void counts(const ViewCtx *c, Page *p, const Minify *m) {
    int known = 0, taken = 0;
    for (int i = 0; i < minify_n_tries(m); i++) {
        known += minify_try(m, i)->ns == 0 && minify_try(m, i)->verdict != TRY_waiting;
        taken += minify_try(m, i)->became >= 0;
    }
    page_line(p)->node = "candidates, those that were gone on with, questions to helpers, answers "
                         "that were known from before";
    page_add(p, ST_dim, "tries    ");
    page_add(p, ST_number, "%s", // which of two answers first is chance, as times are
             c->opt.hide_times ? "·" : arena_printf(p->arena, "%d", minify_n_tries(m)));
    page_add(p, ST_dim, "   taken ");
    page_add(p, ST_number, "%d", taken);
    page_add(p, ST_dim, "   queries ");
    if (c->opt.hide_times) // which of two is asked first is chance, too
        page_add(p, ST_dim, "·");
    else
        page_add(p, ST_number, "%d", minify_queries(m));
    if (known && !c->opt.hide_times)
        page_add(p, ST_dim, "   known before %d", known);
    page_add(p, ST_dim, "   time %s", view_time(c, p->arena, (double)minify_ns(m)));
}

static void now(const ViewCtx *c, Page *p, const Minify *m) {
    int window;
    double part;
    StrategyId at = minify_at(m, &window, &part);
    int64_t eta = minify_eta_ms(m);
    page_line(p)->node = at < STRATEGY_count ? strategy_info[at].doc : "";
    page_add(p, ST_dim, "%s ", minify_state(m) == MINIFY_paused ? "paused at" : "trying  ");
    page_add(p, ST_name, "%s", strategy_name(at));
    if (window)
        page_add(p, ST_dim, ", windows of %d", window);
    page_add(p, ST_text, "  ");
    page_bar(p, ST_bar, part, 1, 16);
    if (eta >= 0)
        page_add(p, ST_dim, "  about %s left", view_time(c, p->arena, (double)eta * 1e6));
}

static void keeps(Page *p, const Minify *m) {
    Buf b = {.arena = p->arena};
    const Failure *f = minify_first(m) ? &minify_first(m)->failure : NULL;
    if (f)
        failure_print(&b, f);
    page_line(p)->node = buf_str(&b);
    page_add(p, ST_dim, "keeps    ");
    page_add(p, ST_text, "%s", buf_str(&b));
}

static void one_try(const ViewCtx *c, Page *p, const MinifyTry *t) {
    DocLine *l = page_line(p);
    l->sign = verdict_sign[t->verdict];
    l->sign_style = verdict_style[t->verdict];
    page_cell(p, t->verdict == TRY_fails ? ST_text : ST_dim, TRY_COLS, "  %s%s",
              strategy_name(t->strategy),
              t->window ? arena_printf(p->arena, ", %d", t->window) : "");
    page_cell(p, ST_number, -5, "%d", t->nodes);
    page_add(p, ST_text, "  ");
    page_cell(p, verdict_style[t->verdict], 22, "%s", try_verdict_name[t->verdict]);
    page_cell(p, ST_dim, -9, "%s",
              t->verdict == TRY_waiting    ? ""
              : t->ns || c->opt.hide_times ? view_time(c, p->arena, (double)t->ns)
                                           : "known");
    if (*t->why)
        page_add(p, ST_dim, "  %s", t->why);
}

// What was tried on a graph; in the short form only the last few, of the last graph.
static void tries_of(const ViewCtx *c, Page *p, const Minify *m, int step, int n) {
    bool all = c->opt.alter == 1;
    int from = all ? 0 : n - TRIES_SHOWN, seen = 0;
    if (!all && minify_step(m, step) != minify_best(m))
        return;
    for (int i = 0; i < minify_n_tries(m); i++)
        if (minify_try(m, i)->step == step && seen++ >= from)
            one_try(c, p, minify_try(m, i));
}

static void one_step(const ViewCtx *c, Page *p, const Minify *m, int i) {
    const MinifyStep *s = minify_step(m, i);
    const MinifyTry *t = s->attempt < 0 ? NULL : minify_try(m, s->attempt);
    int n = 0;
    for (int k = 0; k < minify_n_tries(m); k++)
        n += minify_try(m, k)->step == i;
    DocLine *l = page_line(p);
    l->sign = s->undone ? "*" : t ? "✓" : "▸";
    l->sign_style = s->undone ? ST_edited : ST_ok;
    l->node = t && t->strategy < STRATEGY_count ? strategy_info[t->strategy].doc : "";
    page_cell(p, s->undone ? ST_dim : ST_name, TRY_COLS, "%s%s",
              t ? strategy_name(t->strategy) : "the graph given",
              t && t->window ? arena_printf(p->arena, ", windows of %d", t->window) : "");
    page_cell(p, ST_number, -5, "%d", s->nodes);
    page_cell(p, ST_dim, 24, "  %s", s->undone ? "taken back" : t ? "in the same way" : "fails");
    page_cell(p, ST_dim, -9, "%s", t && t->ns ? view_time(c, p->arena, (double)t->ns) : "");
    if (n && !c->opt.hide_times)
        page_add(p, ST_dim, "  %d tried on it", n);
    tries_of(c, p, m, i, n);
}

static void steps(const ViewCtx *c, Page *p, const Minify *m) {
    page_section(p, "tries   %s",
                 c->opt.alter == 1 ? "all of them; a shows the steps" : "a shows all of them");
    for (int i = 0; i < minify_n_steps(m); i++)
        one_step(c, p, m, i);
}

static void smallest(Page *p, const Minify *m) {
    const MinifyStep *s = minify_best(m);
    page_section(p, "%s   + keeps a node, ! drops it", is_over(m) ? "smallest" : "smallest so far");
    GRAPH_EACH (s->candidate->graph, n) {
        Buf b = {.arena = p->arena};
        bool call = n->op != FX_placeholder && n->op != FX_output;
        node_print(&b, n, &fx_style_log);
        const char *text = buf_str(&b);
        DocLine *l = page_line(p);
        l->node = text;
        l->name = n->op != FX_output ? n->name : NULL;
        size_t len = strlen(n->name);
        bool named = !strncmp(text, n->name, len);
        if (named)
            page_add(p, call ? ST_name : ST_text, "%s", n->name);
        page_add(p, ST_text, "%s", text + (named ? len : 0));
    }
}

static bool minify_open(ViewCtx *c, Buf *why) {
    const Minify *m = c->work ? c->work->minify : NULL;
    Page *p = page_new(c);
    (void)why;
    if (!m) {
        page_line(p);
        page_add(p, ST_dim, "nothing is minified:  ");
        page_add(p, ST_key, "M");
        page_add(p, ST_dim, " looks for the smallest graph that still fails");
        return true;
    }
    if (minify_state(m) == MINIFY_refused) {
        page_line(p);
        page_add(p, ST_warn, "nothing to minify: %s", minify_why(m));
        return true;
    }
    if (!minify_best(m)) {
        page_line(p);
        page_add(p, ST_stale, "~ does it fail, and how?");
        return true;
    }
    keeps(p, m);
    fall(p, m);
    counts(c, p, m);
    if (!is_over(m))
        now(c, p, m);
    steps(c, p, m);
    smallest(p, m);
    return true;
}

static void minify_title(ViewCtx *c, Buf *left, Buf *right) {
    static const char *const state[] = {"asking", "running", "paused", "done", "nothing to do"};
    const Minify *m = c->work ? c->work->minify : NULL;
    buf_puts(left, "minify");
    if (!m)
        return;
    buf_puts(right, state[minify_state(m)]);
    if (minify_state(m) == MINIFY_done)
        buf_printf(right, ": %d → %d nodes, kind %s", minify_first(m)->nodes, minify_best(m)->nodes,
                   minify_kind_kept(m) ? "kept" : "CHANGED");
}

// Space: stops and goes on.
static bool minify_toggle(ViewCtx *c, int row, const char **command) {
    const Minify *m = c->work ? c->work->minify : NULL;
    (void)row;
    if (!m || is_over(m))
        return false;
    *command = minify_state(m) == MINIFY_paused ? "minify resume" : "minify pause";
    return true;
}

static int minify_first_row(ViewCtx *c) {
    (void)c;
    return 0;
}

const View view_minify = {
    .name = "minify",
    .doc = "the search for the smallest graph that still fails: tries, nodes left, by hand",
    .flags = VIEW_work,
    .stage = -1,
    .open = minify_open,
    .count = page_count,
    .line = page_line_of,
    .title = minify_title,
    .node = page_node,
    .enter = page_enter,
    .name_of = page_name,
    .toggle = minify_toggle,
    .start = minify_first_row,
    .alters = 2,
};
