// minify_cut.c: strategies that take nodes, inputs and results out of a graph. Those of PyTorch's
// minifier (torch/_functorch/fx_minifier.py) and a few more. Each makes one candidate at a time, by
// number, so that the search can stop and go on anywhere.
#include <string.h>

#include "core/debug/minify_impl.h"

static bool is_call(const Node *n) {
    return n->op != FX_placeholder && n->op != FX_output;
}

// Calls in order; how many.
static int calls(const Graph *g, Node ***out, Arena *a) {
    Node **at = ARENA_ARRAY(a, g->n_nodes + 1, Node *);
    int n = 0;
    GRAPH_EACH (g, k)
        if (is_call(k))
            at[n++] = k;
    *out = at;
    return n;
}

static bool drop_unused_inputs(Graph *g) {
    bool any = false;
    for (Node *n = g->first, *next; n; n = next) {
        next = n->next;
        if (n->op != FX_placeholder || n->n_users)
            continue;
        node_erase(n);
        any = true;
    }
    return any;
}

static void sweep(Graph *g) {
    graph_dce(g);
    drop_unused_inputs(g);
}

// A node is to be an input. A tuple cannot: what is taken out of it becomes one.
static bool concrete(Making *x, Node *n) {
    if (candidate_can_concrete(x->m, n)) {
        candidate_concrete(x->m, x->c, n);
        return true;
    }
    bool any = false;
    for (int u = n->n_users - 1; u >= 0; u--) {
        Node *item = n->users[u];
        if (!node_is_item(item) || !candidate_can_concrete(x->m, item))
            continue;
        candidate_concrete(x->m, x->c, item);
        any = true;
    }
    return any;
}

// ---- around the node that goes wrong

// How far users and inputs of it are kept, in order of trying.
static const struct {
    int up, down;
} rings[] = {{0, 0}, {0, 1}, {1, 0}, {1, 1}, {2, 0}, {0, 2}, {2, 2}, {4, 1}, {4, 4}, {8, 8}};

typedef struct Region {
    bool *in;   // by node id
    bool *more; // that join in this round
} Region;

static void add_input(Node *input, void *ctx) {
    Region *r = ctx;
    if (is_call(input))
        r->more[input->id] = true;
}

static void grow(const Graph *g, Region *r, bool up) {
    GRAPH_EACH (g, n) {
        if (!r->in[n->id])
            continue;
        if (up)
            node_each_input(n, add_input, r);
        for (int u = 0; !up && u < n->n_users; u++)
            if (is_call(n->users[u]))
                r->more[n->users[u]->id] = true;
    }
    for (int i = 0; i < g->by_id.n; i++)
        r->in[i] = r->in[i] || r->more[i];
}

// Marks the nodes that the diverging one was made from.
static int mark_origins(Making *x, bool *in) {
    const char *p = x->step->place.origins;
    int n = 0;
    while (p && *p) {
        size_t len = strcspn(p, " ");
        const Node *k = graph_find(x->c->graph, arena_strndup(&x->c->arena, p, len));
        if (k && is_call(k)) {
            n += !in[k->id];
            in[k->id] = true;
        }
        p += len + strspn(p + len, " ");
    }
    return n;
}

static bool used_outside(const Node *n, const bool *in) {
    for (int u = 0; u < n->n_users; u++)
        if (!in[n->users[u]->id])
            return true;
    return false;
}

// A region alone: its results are what is read outside of it.
static bool keep_region(Making *x, const bool *in) {
    Graph *g = x->c->graph;
    VEC(Node *) results = {0};
    Node **all;
    GRAPH_EACH (g, n)
        if (in[n->id] && used_outside(n, in) && n->val.kind != VAL_tuple)
            vec_push(&x->c->arena, &results, n);
    if (!results.n)
        return false;
    graph_set_results(g, results.at, results.n);
    int n = calls(g, &all, &x->c->arena);
    for (int i = n - 1; i >= 0; i--) {
        if (in[all[i]->id])
            continue;
        if (!all[i]->n_users)
            node_erase(all[i]);
        else if (used_outside(all[i], in) || !concrete(x, all[i]))
            continue; // what reads it is gone already, or stays
    }
    sweep(g);
    return true;
}

Next make_around(Making *x) {
    if (x->i >= COUNT(rings) || !x->step->place.found)
        return NEXT_end;
    int n = x->c->graph->by_id.n + 1;
    Region r = {.in = ARENA_ARRAY(&x->c->arena, n, bool)};
    if (!mark_origins(x, r.in))
        return NEXT_end;
    for (int i = 0; i < rings[x->i].up || i < rings[x->i].down; i++) {
        r.more = ARENA_ARRAY(&x->c->arena, n, bool);
        if (i < rings[x->i].up)
            grow(x->c->graph, &r, true);
        if (i < rings[x->i].down)
            grow(x->c->graph, &r, false);
    }
    return keep_region(x, r.in) ? NEXT_try : NEXT_skip;
}

// ---- results

Next make_outputs(Making *x) {
    Node **at;
    int n = graph_results(x->c->graph, &at, &x->c->arena), left = 0;
    int window = x->window / 2 > 1 ? x->window / 2 : 1, from = x->i * window;
    if (n < 2 || from >= n)
        return NEXT_end;
    if (window >= n)
        return NEXT_skip;
    for (int i = 0; i < n; i++)
        if (i < from || i >= from + window)
            at[left++] = at[i];
    graph_set_results(x->c->graph, at, left);
    sweep(x->c->graph);
    return NEXT_try;
}

Next make_dead(Making *x) {
    return x->i ? NEXT_end : graph_dce(x->c->graph) ? NEXT_try : NEXT_skip;
}

Next make_unused(Making *x) {
    return x->i ? NEXT_end : drop_unused_inputs(x->c->graph) ? NEXT_try : NEXT_skip;
}

// ---- a node in the middle is the result

Next make_suffix(Making *x) {
    Node **at;
    int n = calls(x->c->graph, &at, &x->c->arena);
    int place = x->window * (2 * x->i + 1) - 1; // the odd ones: even ones were tried before
    if (place >= n)
        return NEXT_end;
    if (at[place]->val.kind == VAL_tuple || at[place]->val.kind == VAL_graph)
        return NEXT_skip;
    Node *result = at[place];
    graph_set_results(x->c->graph, &result, 1);
    for (int i = n - 1; i > place; i--)
        if (!at[i]->n_users)
            node_erase(at[i]);
    graph_dce(x->c->graph);
    return NEXT_try;
}

// ---- windows

Next make_delta(Making *x) {
    Node **at;
    int n = calls(x->c->graph, &at, &x->c->arena), from = x->i * x->window;
    bool any = false;
    if (from >= n)
        return NEXT_end;
    for (int i = from; i < n && i < from + x->window; i++)
        if (at[i] && at[i]->n_users)
            any |= concrete(x, at[i]);
    if (!any)
        return NEXT_skip;
    sweep(x->c->graph);
    return NEXT_try;
}

Next make_effects(Making *x) {
    Node **at;
    int n = calls(x->c->graph, &at, &x->c->arena), unread = 0, from = x->i * x->window;
    for (int i = 0; i < n; i++)
        if (!at[i]->n_users)
            at[unread++] = at[i];
    if (from >= unread)
        return NEXT_end;
    for (int i = from; i < unread && i < from + x->window; i++)
        node_erase(at[i]);
    sweep(x->c->graph);
    return NEXT_try;
}

// ---- one node, one input

static bool same_value_type(const Minify *m, const Node *a, const Node *b) {
    const MinifyInput *x = map_get(&m->values, a->name), *y = map_get(&m->values, b->name);
    if (!x || !y || x->v.kind != RT_tensor || y->v.kind != RT_tensor)
        return false;
    const Tensor *s = &x->v.tensor, *t = &y->v.tensor;
    return s->dtype == t->dtype && s->ndim == t->ndim &&
           !memcmp(s->size, t->size, (size_t)s->ndim * sizeof *s->size);
}

typedef struct Inputs {
    Node *at[8];
    int n;
} Inputs;

static void take_input(Node *input, void *ctx) {
    Inputs *in = ctx;
    for (int i = 0; i < in->n; i++)
        if (in->at[i] == input)
            return;
    if (in->n < COUNT(in->at))
        in->at[in->n++] = input;
}

// Candidate i is a pair of a node and one of its inputs.
Next make_bypass(Making *x) {
    int k = x->i;
    GRAPH_EACH (x->c->graph, n) {
        Inputs in = {0};
        if (!is_call(n))
            continue;
        node_each_input(n, take_input, &in);
        if (k >= in.n) {
            k -= in.n;
            continue;
        }
        if (!n->n_users || !same_value_type(x->m, n, in.at[k]))
            return NEXT_skip;
        node_replace_uses(n, in.at[k]);
        if (node_has_effects(n))
            node_erase(n);
        sweep(x->c->graph);
        return NEXT_try;
    }
    return NEXT_end;
}

// Whether a call may do without an argument; of a call whose overload is not known eager will tell.
static bool is_optional(const Node *n, int arg, const char *name) {
    const Op *op = n->def;
    int i = !op ? -1 : name ? op_arg_index(op, name) : arg < op->n_args ? arg : -1;
    return !op ? name || arg > 0 : i >= 0 && op->args[i].optional;
}

// All tensors that a call may do without, if k is 0, else the k-th of them. False: it has fewer.
static bool leave_out(Making *x, Node *n, int k) {
    Arena *a = &x->c->arena;
    Value *args = ARENA_ARRAY(a, n->n_args + 1, Value);
    Kwarg *kwargs = ARENA_ARRAY(a, n->n_kwargs + 1, Kwarg);
    int met = 0;
    for (int i = 0; i < n->n_args; i++) {
        bool may = n->args[i].kind == VAL_node && is_optional(n, i, NULL);
        met += may;
        args[i] = may && (!k || met == k) ? val_none() : n->args[i];
    }
    for (int i = 0; i < n->n_kwargs; i++) {
        bool may = n->kwargs[i].value.kind == VAL_node && is_optional(n, -1, n->kwargs[i].name);
        met += may;
        kwargs[i] = n->kwargs[i];
        if (may && (!k || met == k))
            kwargs[i].value = val_none();
    }
    if (!met || met < k)
        return false;
    node_set_args(n, args, n->n_args, kwargs, n->n_kwargs);
    return true;
}

static int tensors_of(const Node *n) {
    int met = 0;
    for (int i = 0; i < n->n_args; i++)
        met += n->args[i].kind == VAL_node && is_optional(n, i, NULL);
    for (int i = 0; i < n->n_kwargs; i++)
        met += n->kwargs[i].value.kind == VAL_node && is_optional(n, -1, n->kwargs[i].name);
    return met;
}

// Candidate i is a call and what it is to do without.
Next make_optional(Making *x) {
    int k = x->i;
    GRAPH_EACH (x->c->graph, n) {
        int met = is_call(n) ? tensors_of(n) : 0;
        if (met && k <= met && leave_out(x, n, met == 1 ? 1 : k)) {
            sweep(x->c->graph);
            return NEXT_try;
        }
        k -= met ? met + 1 : 0;
    }
    return NEXT_end;
}

// Candidate i is a pair of inputs.
Next make_consolidate(Making *x) {
    Node **p;
    int n = graph_placeholders(x->c->graph, &p, &x->c->arena), k = x->i;
    if (n > 64)
        return NEXT_end; // when there are fewer
    for (int later = 1; later < n; later++) {
        if (k >= later) {
            k -= later;
            continue;
        }
        const MinifyInput *a = map_get(&x->c->inputs, p[k]->name),
                          *b = map_get(&x->c->inputs, p[later]->name);
        // Under several names a tensor that is written would be another program.
        bool written = map_find(&x->m->written, p[k]->name) ||
                       map_find(&x->m->written, p[later]->name);
        if (written || !val_equal(&p[k]->val, &p[later]->val) || a->needs_grad != b->needs_grad)
            return NEXT_skip;
        node_replace_uses(p[later], p[k]);
        node_erase(p[later]);
        return NEXT_try;
    }
    return NEXT_end;
}

// Of each input by itself.
Next make_gradients(Making *x) {
    Node **p;
    int n = graph_placeholders(x->c->graph, &p, &x->c->arena);
    if (x->i >= n)
        return NEXT_end;
    MinifyInput *in = map_get(&x->c->inputs, p[x->i]->name);
    if (!in->needs_grad)
        return NEXT_skip;
    in->needs_grad = false;
    return NEXT_try;
}
