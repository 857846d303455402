// pattern_splice.c: making the graphs of patterns and of what replaces them, and putting the latter
// in the place of a match.
#include "core/aot/pattern.h"

Graph *pattern_trace(const PatternSource *s, Diag *d) {
    FxDoc doc = {.arena = s->arena};
    if (!fx_parse(&doc, s->sym, s->text, s->name, d) || doc.n != 1)
        return NULL;
    Graph *given = doc.at[0].graph;
    int i = 0;
    GRAPH_EACH (given, n)
        if (n->op == FX_placeholder)
            n->val = s->inputs[i++];
    AotRequest req = {.graph = given,
                      .arena = s->arena,
                      .decisions = s->decisions,
                      .decomps = DECOMP_inductor,
                      .diag = d,
                      .keep_input_mutations = true,
                      .requires_grad = s->grads};
    AotResult r = s->grads ? aot_trace_joint(&req) : aot_trace_inference(&req);
    if (!r.graph || (s->grads && !(r.meta && r.meta->training)))
        return NULL;
    PassCtx *ctx = ARENA_NEW(s->arena, PassCtx);
    *ctx = (PassCtx){.arena = s->arena, .diag = d, .inference = !s->grads};
    Graph *g = pass_joint_noop_ops.run(ctx, r.graph);
    if (s->grads)
        g = pass_early_patterns.run(ctx, g);
    graph_dce(g);
    // The lines of its text are nobody's.
    GRAPH_EACH (g, n)
        n->stack = NULL, n->modules = NULL;
    return g;
}

static Node *earliest(const Match *m) {
    Node *first = NULL;
    for (int i = 0; i < m->pattern->n_outputs; i++) {
        Node *n = m->outputs[i];
        if (n && (!first || n->position < first->position))
            first = n;
    }
    return first;
}

// A forward node stems from the forward nodes of the match, a backward one from the backward ones.
static void link(PassCtx *ctx, const Match *m, const Node *n) {
    unsigned side = NODE_forward | NODE_backward;
    for (int i = 0; ctx->origins && i < m->nodes.n; i++) {
        const Node *from = m->nodes.at[i];
        if (!((from->flags ^ n->flags) & side) || !(n->flags & side) || !(from->flags & side))
            origins_add(ctx->origins, n->id, from->id, LINK_part);
    }
}

static Node *put(PassCtx *ctx, const Match *m, Graph *g, const Node *n, Node *const map[]) {
    Arena *a = g->arena;
    Value *args = ARENA_ARRAY(a, n->n_args + 1, Value);
    Kwarg *kwargs = ARENA_ARRAY(a, n->n_kwargs + 1, Kwarg);
    for (int i = 0; i < n->n_args; i++)
        args[i] = value_copy(a, &n->args[i], map);
    for (int i = 0; i < n->n_kwargs; i++)
        kwargs[i] = (Kwarg){n->kwargs[i].name, value_copy(a, &n->kwargs[i].value, map)};
    Node *r = n->def ? graph_call(g, n->def, NULL, args, n->n_args, kwargs, n->n_kwargs)
                     : graph_node(g, FX_call_function, n->target, NULL, args, n->n_args, kwargs,
                                  n->n_kwargs);
    r->val = n->val;
    r->original_aten = n->original_aten;
    r->stack = n->stack;
    r->modules = n->modules;
    r->flags = n->flags;
    link(ctx, m, r);
    return r;
}

// Users among the new nodes keep the old one: it is an argument of theirs.
static void replace(Node *old, Node *by, int first_new) {
    for (int i = 0; i < old->n_users;) {
        Node *user = old->users[i];
        if (user->id >= first_new || user == by)
            i++;
        else
            node_replace_input(user, old, by);
    }
    if (!old->n_users)
        node_erase(old);
}

void pattern_splice(PassCtx *ctx, const Match *m, const Graph *by, const Value *args,
                    const Value *outputs) {
    Graph *g = m->nodes.at[0]->graph;
    int first_new = g->by_id.n, k = 0;
    Node **map = ARENA_ARRAY(ctx->arena, by->by_id.n, Node *);
    bool *gone = ARENA_ARRAY(ctx->arena, first_new, bool);
    graph_number(g);
    graph_set_insert(g, earliest(m));
    GRAPH_EACH (by, n)
        if (n->op == FX_placeholder)
            map[n->id] = args[k].kind == VAL_node ? args[k].node : NULL, k++;
        else if (n->op == FX_call_function)
            map[n->id] = put(ctx, m, g, n, map);
    graph_set_insert(g, NULL);
    for (int i = 0; i < m->pattern->n_outputs; i++) {
        Node *old = m->outputs[i];
        if (!old || gone[old->id] || outputs[i].kind != VAL_node)
            continue;
        int id = old->id;
        replace(old, map[outputs[i].node->id], first_new);
        gone[id] = !g->by_id.at[id];
    }
    for (int i = m->nodes.n - 1; i >= 0; i--) {
        // Erased nodes keep their memory, which lives as long as the graph.
        Node *n = m->nodes.at[i];
        if (g->by_id.at[n->id] == n && !n->n_users)
            node_erase(n);
    }
}
