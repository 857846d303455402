// minify_hand.c: what the user does to a search: takes a step back, keeps a node, drops one.
#include <string.h>

#include "core/base/file.h"
#include "core/debug/minify_impl.h"

static void add_hand(Minify *m, Hand h) {
    vec_push(&m->arena, &m->hands, h);
    m->n_replayed = m->hands.n;
    record_hand(m, &h);
}

// A search that was over goes on.
static void search_again(Minify *m) {
    if (m->state != MINIFY_done)
        return;
    m->state = MINIFY_search;
    m->start_ns = clock_ns() - m->spent_ns;
}

bool minify_undo(Minify *m) {
    if (m->current < 1)
        return false;
    MinifyStep *s = minify_current(m);
    const MinifyTry *t = &m->tries.at[s->attempt];
    minify_discard(m);
    s->undone = true;
    map_at_id(&m->memo, s->candidate->hash)->i = TRY_refused + 1;
    map_put_id(&m->why_not, s->candidate->hash, (void *)"taken back by hand");
    add_hand(m, (Hand){HAND_undo, m->current, NULL, s->candidate->hash});
    m->current = s->parent;
    m->want_values = true;
    m->dropping = NULL;
    if (t->strategy < STRATEGY_count) {
        m->phase = strategy_info[t->strategy].phase;
        m->strategy = t->strategy;
        minify_begin_round(m);
        m->strategy = t->strategy;
        m->window = t->window ? t->window : m->top_window;
        m->index = t->index;
        m->gained = true; // a full round follows
    }
    search_again(m);
    m->hand_said = "";
    return true;
}

static bool known_node(const Minify *m, const char *node, Diag *d) {
    const Graph *g = m->current >= 0 ? minify_current(m)->candidate->graph : NULL;
    const Node *n = g ? graph_find(g, node) : NULL;
    if (!n) {
        DiagItem *item = diag_fail(d, "the graph that is left has no node '%s'", node);
        for (int i = 0; i < m->steps.n && !item->hint; i++)
            if (graph_find(m->steps.at[i]->candidate->graph, node))
                item->hint = "minify undo goes back, a step each time";
        return false;
    }
    if (n->op == FX_output)
        diag_fail(d, "the output is always there; its results go as the nodes do");
    return n->op != FX_output;
}

static void start_drop(Minify *m, const char *node) {
    minify_discard(m);
    m->dropping = m->hand_node = node;
    m->hand_said = "";
    search_again(m);
}

static void start_keep(Minify *m, const char *node) {
    minify_discard(m);
    map_put_int(&m->kept, node, graph_find(minify_current(m)->candidate->graph, node)->op);
    m->index = 0;
    m->over = false;
}

bool minify_keep(Minify *m, const char *node, Diag *d) {
    if (!known_node(m, node, d))
        return false;
    start_keep(m, arena_strdup(&m->arena, node));
    add_hand(m, (Hand){HAND_keep, m->steps.n - 1, arena_strdup(&m->arena, node), 0});
    return true;
}

bool minify_drop(Minify *m, const char *node, Diag *d) {
    if (!known_node(m, node, d))
        return false;
    if (graph_find(minify_current(m)->candidate->graph, node)->op == FX_placeholder) {
        diag_fail(d, "%s is an input already", node);
        return false;
    }
    start_drop(m, arena_strdup(&m->arena, node));
    add_hand(m, (Hand){HAND_drop, m->steps.n - 1, m->dropping, 0});
    return true;
}

// What the record says was done by hand once there were so many steps.
void minify_replay_hands(Minify *m) {
    while (m->n_replayed < m->hands.n && m->hands.at[m->n_replayed].step <= m->steps.n - 1) {
        const Hand *h = &m->hands.at[m->n_replayed++];
        if (h->kind == HAND_undo || !graph_find(minify_current(m)->candidate->graph, h->node))
            continue; // a candidate taken back is refused from the beginning
        if (h->kind == HAND_keep)
            start_keep(m, h->node);
        else
            start_drop(m, h->node);
        return;
    }
}

// What came of the node that the user took out.
void minify_say_hand(Minify *m, const MinifyTry *t) {
    const char *why = *t->why ? t->why : try_verdict_name[t->verdict];
    m->hand_said =
        t->became >= 0
            ? arena_printf(&m->arena, "without %s it fails in the same way: %d nodes", m->hand_node,
                           t->nodes)
        : t->verdict == TRY_passes
            ? arena_printf(&m->arena, "%s stays: without it nothing fails", m->hand_node)
            : arena_printf(&m->arena, "%s stays: without it: %s", m->hand_node, why);
}

const char *minify_hand_said(const Minify *m) {
    return m->hand_said;
}

bool minify_hand_is_open(const Minify *m) {
    return m->dropping || (m->line.n && m->line.at[0]->attempt.strategy == STRATEGY_hand);
}

void minify_make_drop(Minify *m) {
    Candidate *c = candidate_copy(minify_current(m)->candidate);
    Node *n = graph_find(c->graph, m->dropping);
    m->dropping = NULL;
    bool read = n && n->n_users;
    if (!n || n->op == FX_output || (read && !candidate_can_concrete(m, n))) {
        candidate_free(c);
        m->hand_said =
            arena_printf(&m->arena, "%s stays: its value is no tensor that can be an input",
                         m->hand_node);
        return;
    }
    if (read)
        candidate_concrete(m, c, n);
    else
        node_erase(n);
    graph_dce(c->graph);
    for (Node *p = c->graph->first, *next; p; p = next) {
        next = p->next;
        if (p->op == FX_placeholder && !p->n_users)
            node_erase(p);
    }
    const char *lacks = candidate_lacks(m, c);
    if (!minify_enqueue(m, c, STRATEGY_hand, 0))
        m->hand_said =
            lacks ? arena_printf(&m->arena, "%s stays: %s, which is kept, would go with it",
                                 m->hand_node, lacks)
                  : arena_printf(&m->arena, "%s stays: nothing is less without it", m->hand_node);
}
