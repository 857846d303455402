// session_twin.c: from a node of forward to the nodes of backward that its derivative made, and
// back: by the record of the joint trace, and from there by links to any stage of either half.
#include <string.h>

#include "core/session_private.h"

const Artifact *session_trace(const Session *s, int unit) {
    const Unit *u = session_joint(s, unit);
    const Artifact *a = NULL;
    for (int i = 0; u && i < u->steps.n; i++)
        if (u->steps.at[i]->stage == STAGE_joint && u->steps.at[i]->log)
            a = u->steps.at[i];
    return a;
}

static bool is_tangent(const Node *n) {
    return n->op == FX_placeholder && n->target && str_starts(n->target, "tangents_");
}

// Without flags, as in a graph read from text, backward is what a tangent leads to.
static void by_tangents(const Graph *g, uint8_t *half) {
    GRAPH_EACH (g, n) {
        bool tangent = is_tangent(n);
        half[n->id] = tangent ? HALF_backward : HALF_forward;
        if (tangent)
            for (int i = 0; i < n->n_users; i++)
                half[n->users[i]->id] = HALF_backward;
    }
    GRAPH_EACH (g, n)
        for (int i = 0; half[n->id] == HALF_backward && i < n->n_users; i++)
            half[n->users[i]->id] = HALF_backward;
}

const uint8_t *session_halves(const Graph *g, Arena *a) {
    bool flags = false, tangents = false;
    GRAPH_EACH (g, n) {
        flags = flags || n->flags & NODE_backward;
        tangents = tangents || is_tangent(n);
    }
    if (!flags && !tangents)
        return NULL;
    uint8_t *half = ARENA_ARRAY(a, g->by_id.n + 1, uint8_t);
    if (!flags) {
        by_tangents(g, half);
        return half;
    }
    uint8_t now = HALF_forward; // a node that a pass made stands with its neighbours
    GRAPH_EACH (g, n) {
        if (n->op != FX_placeholder && n->flags & (NODE_backward | NODE_forward))
            now = n->flags & NODE_backward ? HALF_backward : HALF_forward;
        half[n->id] = n->op == FX_placeholder ? is_tangent(n) ? HALF_backward : HALF_forward : now;
    }
    return half;
}

// The nodes of the trace that an item stands for: those it equals, else those it is linked to.
static int in_trace(Session *s, const Artifact *from, int item, const Artifact *trace, Arena *a,
                    Link **out) {
    int n = pipeline_links(s->pipeline, from, item, trace, a, out), same = 0;
    while (same < n && (*out)[same].strength == LINK_same)
        same++;
    return same ? same : n;
}

static bool has_step(const Unit *u, const Artifact *a) {
    for (int i = 0; i < u->steps.n; i++)
        if (u->steps.at[i] == a)
            return true;
    return false;
}

// Which half an item stands for. An item of forward may equal one of backward, too: the partitioner
// merges equal nodes.
static Half half_of(const Unit *joint, const Artifact *from, int item, const Artifact *trace,
                    const Link *at, int n) {
    if (from->stage < STAGE_joint || has_step(joint->forward, from))
        return HALF_forward;
    const Node *own = from->kind == ART_graph ? graph_by_id(from->graph, item) : NULL;
    if (own && own->flags & (NODE_forward | NODE_backward))
        return own->flags & NODE_backward ? HALF_backward : HALF_forward;
    for (int i = 0; i < n; i++) {
        const Node *node = graph_by_id(trace->graph, at[i].item);
        if (node && node->flags & NODE_backward)
            return HALF_backward;
    }
    return HALF_forward;
}

typedef struct Found {
    VEC(int) nodes; // of the trace
    Map seen;
} Found;

static void add_node(Found *f, Arena *a, int id) {
    MapEntry *e = map_at_id(&f->seen, (uint64_t)id);
    if (!e->i++)
        vec_push(a, &f->nodes, id);
}

static void twins_of(const Artifact *trace, const Node *n, Twins *out, Found *f, Arena *a) {
    const AotLog *log = trace->log;
    if (n->flags & NODE_backward) {
        const AotDerived *d = aot_derived_find(log, n->id);
        out->by = out->by ? out->by : d;
        GRAPH_EACH (trace->graph, m)
            if (d && m->op != FX_placeholder && m->flags & NODE_forward && m->seq_nr == d->seq)
                add_node(f, a, m->id);
        return;
    }
    for (int i = 0; n->seq_nr >= 0 && i < log->n_derived; i++)
        for (int id = log->derived[i].from; id < log->derived[i].to; id++)
            if (log->derived[i].seq == n->seq_nr && graph_by_id(trace->graph, id))
                add_node(f, a, id);
}

Twins session_twins(Session *s, int unit, const Artifact *from, int item, const Artifact *to,
                    Arena *a) {
    Twins out = {0};
    const Artifact *trace = session_trace(s, unit);
    Link *at = NULL;
    if (!trace || !from || !to || item < 0)
        return out;
    Found f = {.seen.arena = a};
    int n = in_trace(s, from, item, trace, a, &at);
    bool backward = half_of(session_joint(s, unit), from, item, trace, at, n) == HALF_backward;
    out.of_backward = backward;
    for (int i = 0; i < n; i++) {
        const Node *node = graph_by_id(trace->graph, at[i].item);
        if (node && node->op != FX_placeholder && !(node->flags & NODE_backward) == !backward)
            twins_of(trace, node, &out, &f, a);
    }
    Map seen = {.arena = a};
    VEC(Link) links = {0};
    for (int i = 0; i < f.nodes.n; i++) {
        Link *l = NULL;
        int k = pipeline_links(s->pipeline, trace, f.nodes.at[i], to, a, &l);
        for (int q = 0; q < k; q++) {
            MapEntry *e = map_at_id(&seen, (uint64_t)l[q].item);
            if (l[q].strength > LINK_kin && !e->i++)
                vec_push(a, &links, l[q]);
        }
    }
    out.links = links.at;
    out.n = links.n;
    return out;
}
