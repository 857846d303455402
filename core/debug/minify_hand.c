// minify_hand.c: what the user does to a search: takes a step back, keeps a node, drops one.
#include <string.h>

#include "core/debug/minify_impl.h"

static void add_hand(Minify *m, Hand h) {
    vec_push(&m->arena, &m->hands, h);
    m->n_replayed = m->hands.n;
    record_hand(m, &h);
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
    if (t->strategy < STRATEGY_count) {
        m->phase = strategy_info[t->strategy].phase;
        m->strategy = t->strategy;
        minify_begin_round(m);
        m->strategy = t->strategy;
        m->window = t->window ? t->window : m->top_window;
        m->index = t->index;
        m->gained = true; // a full round follows
    }
    if (m->state == MINIFY_done)
        m->state = MINIFY_search;
    return true;
}

static bool known_node(const Minify *m, const char *node, Diag *d) {
    if (m->current >= 0 && graph_find(minify_current(m)->candidate->graph, node))
        return true;
    diag_fail(d, "the graph that is left has no node '%s'", node);
    return false;
}

static void start_drop(Minify *m, const char *node) {
    minify_discard(m);
    m->dropping = node;
    if (m->state == MINIFY_done)
        m->state = MINIFY_search;
}

static void start_keep(Minify *m, const char *node) {
    minify_discard(m);
    map_put(&m->kept, node, m);
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

void minify_make_drop(Minify *m) {
    Candidate *c = candidate_copy(minify_current(m)->candidate);
    Node *n = graph_find(c->graph, m->dropping);
    m->dropping = NULL;
    bool read = n && n->n_users;
    if (!n || n->op == FX_output || (read && !candidate_can_concrete(m, n))) {
        candidate_free(c);
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
    minify_enqueue(m, c, STRATEGY_hand, 0);
}
