// minify_report.c: the minifier's state for those who look at it: as values, as a page, as lines of
// a log, as JSON.
#include <stdlib.h>

#include "core/base/file.h"
#include "core/debug/minify_impl.h"

MinifyState minify_state(const Minify *m) {
    return m->state;
}

Helpers *minify_helpers(const Minify *m) {
    return m->helpers;
}

const char *minify_why(const Minify *m) {
    return m->why;
}

const MinifyStep *minify_best(const Minify *m) {
    return m->current < 0 || m->state == MINIFY_original ? NULL : m->steps.at[m->current];
}

const MinifyStep *minify_first(const Minify *m) {
    return m->steps.n ? m->steps.at[0] : NULL;
}

int minify_n_steps(const Minify *m) {
    return m->steps.n;
}

const MinifyStep *minify_step(const Minify *m, int i) {
    return m->steps.at[i];
}

int minify_n_tries(const Minify *m) {
    return m->tries.n;
}

const MinifyTry *minify_try(const Minify *m, int i) {
    return &m->tries.at[i];
}

int minify_queries(const Minify *m) {
    return m->queries;
}

int64_t minify_ns(const Minify *m) {
    return m->state == MINIFY_original || m->state == MINIFY_search ? clock_ns() - m->start_ns
                                                                    : m->spent_ns;
}

ProbeQuery minify_query(const Minify *m, const MinifyStep *s, Arena *a) {
    return candidate_query(m, s->candidate, a);
}

const ProbeQuery *minify_given(const Minify *m) {
    return &m->query;
}

bool minify_is_command(const Minify *m) {
    return m->options.command != NULL;
}

static bool has_symbols(const Graph *g) {
    GRAPH_EACH (g, p) {
        const TensorMeta *t = p->op == FX_placeholder ? node_tensor(p) : NULL;
        for (int i = 0; t && i < t->ndim; i++)
            if (expr_has_symbols(t->size[i]))
                return true;
    }
    return false;
}

// Types that a text lacks, of values that belong to the last step. With symbols there is more to a
// type than a value shows.
Graph *minify_graph(const Minify *m, const MinifyStep *s, Arena *a) {
    Graph *g = graph_copy(a, s->candidate->graph);
    bool plain = !has_symbols(g) && s == minify_best(m) && !m->want_values;
    GRAPH_EACH (g, n) {
        const MinifyInput *in = map_get(&m->values, n->name);
        bool known = plain && in && in->v.kind == RT_tensor;
        if (known && n->val.kind == VAL_none && n->op != FX_output)
            n->val = val_tensor(meta_of_tensor(a, g->sym, &in->v.tensor));
    }
    return g;
}

bool minify_kind_kept(const Minify *m) {
    const MinifyStep *first = minify_first(m), *best = minify_best(m);
    const char *why;
    if (!best || m->state == MINIFY_refused || first->failure.kind != best->failure.kind)
        return false;
    if (first->failure.kind != FAIL_accuracy)
        return failure_same(&first->failure, &best->failure);
    return first->failure.stage == best->failure.stage &&
           (m->options.command || minify_same_place(&first->place, &best->place, &why));
}

// ---- how far it is

// Candidates of a window of the cutting phase: results, suffixes, windows, writes.
static int64_t in_window(int64_t calls, int64_t window) {
    return window > 0 ? 2 * calls / window + 1 : 0;
}

StrategyId minify_at(const Minify *m, int *window, double *fraction) {
    const MinifyStep *s = minify_best(m);
    bool windows = m->strategy < STRATEGY_count && strategy_info[m->strategy].when == WHEN_each;
    *window = windows ? m->window : 0;
    *fraction = 0;
    if (!s)
        return m->strategy;
    int64_t calls = candidate_calls(s->candidate), all = 0, done = 0;
    for (int64_t w = m->top_window; w; w /= 2) {
        all += in_window(calls, w);
        if (w > m->window)
            done += in_window(calls, w);
    }
    done += m->index < in_window(calls, m->window) ? m->index : in_window(calls, m->window);
    *fraction = m->state == MINIFY_done ? 1
                : m->phase != PHASE_cut ? 0.9
                                        : 0.9 * (double)done / (double)(all ? all : 1);
    return m->strategy;
}

int64_t minify_eta_ms(const Minify *m) {
    int window;
    double fraction;
    if (m->state == MINIFY_done)
        return 0;
    minify_at(m, &window, &fraction);
    const MinifyStep *s = minify_best(m);
    if (!s || m->tries.n < 2)
        return -1;
    int64_t calls = candidate_calls(s->candidate), left = 0, ns = 0;
    int n = 0;
    for (int64_t w = m->window; w; w /= 2)
        left += in_window(calls, w);
    for (int i = m->tries.n - 1; i >= 0 && n < 16; i--)
        if (m->tries.at[i].ns) {
            ns += m->tries.at[i].ns;
            n++;
        }
    if (m->phase != PHASE_cut)
        left = 32;
    return n ? ns / n * left / m->options.parallel / 1000000 : -1;
}

// ---- pages

static void print_time(Buf *out, int64_t ns) {
    if (ns < 10000000)
        buf_printf(out, "%.1f ms", (double)ns / 1e6);
    else if (ns < 1000000000)
        buf_printf(out, "%.0f ms", (double)ns / 1e6);
    else
        buf_printf(out, "%.2f s", (double)ns / 1e9);
}

static void print_place(Buf *out, const Divergence *d) {
    if (!d->found)
        return;
    buf_printf(out, "  goes wrong in stage %s", stage_info[d->stage].name);
    if (d->pass && *d->pass)
        buf_printf(out, ", pass %s", d->pass);
    if (d->half && *d->half)
        buf_printf(out, ", %s", d->half);
    if (d->node && *d->node)
        buf_printf(out, ": %s%s%s%s", d->node, *d->op ? " (" : "", d->op, *d->op ? ")" : "");
    if (d->at && *d->at)
        buf_printf(out, ", element %s", d->at);
    buf_putc(out, '\n');
}

static void print_data(const Minify *m, Buf *out) {
    bool any = false;
    for (int i = 0; i < m->tries.n; i++) {
        const MinifyTry *t = &m->tries.at[i];
        if (t->strategy >= STRATEGY_count || strategy_info[t->strategy].phase != PHASE_data)
            continue;
        buf_printf(out, "%s%s: %s", any ? "; " : "other data     ", strategy_name(t->strategy),
                   try_verdict_name[t->verdict]);
        any = true;
    }
    if (any)
        buf_putc(out, '\n');
}

void minify_report(const Minify *m, Buf *out) {
    const MinifyStep *first = minify_first(m), *best = minify_best(m);
    if (m->state == MINIFY_refused || !best) {
        buf_printf(out, "nothing to minify: %s\n", *m->why ? m->why : "no answer yet");
        return;
    }
    int taken = 0, other = 0;
    for (int i = 0; i < m->tries.n; i++) {
        taken += m->tries.at[i].became >= 0;
        other += m->tries.at[i].verdict == TRY_other;
    }
    failure_print(out, &first->failure);
    buf_putc(out, '\n');
    print_place(out, &first->place);
    buf_printf(out, "nodes          %d -> %d\ninputs         %d -> %d\nresults        %d -> %d\n",
               first->nodes, best->nodes, first->inputs, best->inputs, first->outputs,
               best->outputs);
    buf_printf(out, "candidates     %d tried, %d taken, %d fail in another way\n", m->tries.n,
               taken, other);
    buf_printf(out, "queries        %d in ", m->queries);
    print_time(out, minify_ns(m));
    buf_putc(out, '\n');
    print_data(m, out);
    buf_printf(out, "kind           %s\n", minify_kind_kept(m) ? "kept" : "CHANGED");
    if (*m->why)
        buf_printf(out, "ended early    %s\n", m->why);
    if (m->options.as_it_is)
        buf_puts(out, "nothing was taken away: repro_level says to leave it as it is\n");
    else if (best == first)
        buf_printf(out, "nothing could be taken away: each of %d candidates passes, fails in "
                        "another way, or cannot run\n",
                   m->tries.n);
    buf_putc(out, '\n');
    Arena tmp = {0};
    graph_print(out, minify_graph(m, best, &tmp), &fx_style_log, NULL);
    arena_free(&tmp);
}

void minify_log(const Minify *m, Buf *out) {
    for (int i = 0; i < m->tries.n; i++) {
        const MinifyTry *t = &m->tries.at[i];
        const MinifyStep *from = m->steps.at[t->step];
        buf_printf(out, "%4d  step %-3d %-28s %5d  %d -> %d nodes  %-8s %8.2f ms%s%s", i, t->step,
                   strategy_name(t->strategy), t->window, from->nodes, t->nodes,
                   try_verdict_name[t->verdict], (double)t->ns / 1e6, *t->why ? "  " : "", t->why);
        if (t->became >= 0)
            buf_printf(out, "  is step %d%s", t->became,
                       m->steps.at[t->became]->undone ? ", taken back" : "");
        buf_putc(out, '\n');
    }
}

static void tries_json(const Minify *m, JsonOut *j) {
    json_open(j, "tries", '[');
    for (int i = 0; i < m->tries.n; i++) {
        const MinifyTry *t = &m->tries.at[i];
        json_open(j, NULL, '{');
        json_put_int(j, "step", t->step);
        json_put_str(j, "strategy", strategy_name(t->strategy));
        json_put_int(j, "window", t->window);
        json_put_int(j, "nodes_before", m->steps.at[t->step]->nodes);
        json_put_int(j, "nodes", t->nodes);
        json_put_int(j, "inputs", t->inputs);
        json_put_str(j, "verdict", try_verdict_name[t->verdict]);
        if (*t->why)
            json_put_str(j, "why", t->why);
        json_put_float(j, "ms", (double)t->ns / 1e6);
        if (t->became >= 0)
            json_put_int(j, "became", t->became);
        json_close(j, '}');
    }
    json_close(j, ']');
}

void minify_json(const Minify *m, JsonOut *j) {
    const MinifyStep *first = minify_first(m), *best = minify_best(m);
    json_open(j, NULL, '{');
    json_put_bool(j, "minified", m->state != MINIFY_refused && best != NULL);
    if (m->state == MINIFY_refused || !best) {
        json_put_str(j, "why", m->why);
        json_close(j, '}');
        return;
    }
    failure_json(j, "failure", &best->failure);
    failure_json(j, "failure_before", &first->failure);
    if (first->place.found) {
        json_put_str(j, "wrong_stage", stage_info[first->place.stage].name);
        json_put_str(j, "wrong_pass", first->place.pass);
        json_put_str(j, "wrong_node", best->place.node);
    }
    json_put_bool(j, "kind_kept", minify_kind_kept(m));
    json_put_int(j, "nodes_before", first->nodes);
    json_put_int(j, "nodes", best->nodes);
    json_put_int(j, "inputs", best->inputs);
    json_put_int(j, "outputs", best->outputs);
    json_put_int(j, "queries", m->queries);
    json_put_float(j, "ms", (double)minify_ns(m) / 1e6);
    Arena tmp = {0};
    Buf text = {.arena = &tmp};
    graph_print(&text, minify_graph(m, best, &tmp), &fx_style_log, NULL);
    json_put_str(j, "graph", buf_str(&text));
    arena_free(&tmp);
    tries_json(m, j);
    json_close(j, '}');
}
