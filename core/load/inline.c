// inline.c: calls of modules whose code the text holds itself, as nested classes (print_readable of
// torch.export.unflatten): their nodes stand in the place of the call, their attributes below its
// path. What checks inputs and computes nothing, `self._guards_fn(x)` of exported modules, goes.
#include <string.h>

#include "core/load/load_impl.h"

enum { MOST_NODES = 100000 }; // that inlining may make of a text

typedef struct Inline {
    Graph *g;
    Node *call;
    const Graph *child;
    Node **map; // by id of the child: the node in its place
} Inline;

static const Graph *child_named(const Graph *g, const char *name) {
    for (int i = 0; i < g->children.n; i++)
        if (!strcmp(g->children.at[i].name, name))
            return g->children.at[i].graph;
    return NULL;
}

static const Value *argument(const Node *call, int i, const char *name) {
    for (int k = 0; k < call->n_kwargs; k++)
        if (!strcmp(call->kwargs[k].name, name))
            return &call->kwargs[k].value;
    return i < call->n_args ? &call->args[i] : NULL;
}

// Each input of the class gets a node; nothing in it is a graph of its own.
static bool bind_inputs(Inline *x) {
    int i = 0;
    GRAPH_EACH(x->child, n) {
        if (n->val.kind == VAL_graph)
            return false;
        if (n->op != FX_placeholder)
            continue;
        const Value *v = argument(x->call, i++, n->target);
        if (!v || v->kind != VAL_node)
            return false;
        x->map[n->id] = v->node;
    }
    return graph_output_node(x->child) != NULL && i >= x->call->n_args;
}

static const Value *result(const Inline *x, const Node *item) {
    const Value *v = &graph_output_node(x->child)->args[0];
    int64_t i = 0;
    bool list = v->kind == VAL_tuple || v->kind == VAL_list;
    if (!item)
        return v;
    return list && val_as_int(&item->args[1], &i) && i >= 0 && i < v->n ? &v->at[i] : NULL;
}

// A result is one node, or a list that getitems take apart.
static bool can_replace(const Inline *x) {
    if (result(x, NULL)->kind == VAL_node)
        return true;
    for (int i = 0; i < x->call->n_users; i++) {
        const Node *user = x->call->users[i];
        const Value *v = node_is_item(user) ? result(x, user) : NULL;
        if (!v || v->kind != VAL_node)
            return false;
    }
    return true;
}

static void copy_nodes(Inline *x) {
    Arena *a = x->g->arena;
    graph_set_insert(x->g, x->call);
    GRAPH_EACH(x->child, n) {
        if (n->op == FX_placeholder || n->op == FX_output)
            continue;
        Value *args = ARENA_ARRAY(a, n->n_args + 1, Value);
        Kwarg *kwargs = ARENA_ARRAY(a, n->n_kwargs + 1, Kwarg);
        for (int i = 0; i < n->n_args; i++)
            args[i] = value_copy(a, &n->args[i], x->map);
        for (int i = 0; i < n->n_kwargs; i++)
            kwargs[i] = (Kwarg){n->kwargs[i].name, value_copy(a, &n->kwargs[i].value, x->map)};
        bool path = n->op == FX_get_attr || n->op == FX_call_module;
        const char *target =
            path ? arena_printf(a, "%s.%s", x->call->target, n->target) : n->target;
        Node *made = graph_node(x->g, n->op, target, n->name, args, n->n_args, kwargs, n->n_kwargs);
        made->def = n->def;
        made->line = n->line;
        node_copy_meta(made, n);
        x->map[n->id] = made;
    }
    graph_set_insert(x->g, NULL);
}

static void replace_call(Inline *x) {
    const Value *whole = result(x, NULL);
    if (whole->kind == VAL_node)
        node_replace_uses(x->call, x->map[whole->node->id]);
    while (x->call->n_users) {
        Node *item = x->call->users[0];
        node_replace_uses(item, x->map[result(x, item)->node->id]);
        node_erase(item);
    }
    node_erase(x->call);
}

static bool inline_call(Graph *g, Node *call) {
    Inline x = {.g = g, .call = call, .child = child_named(g, call->target)};
    if (!x.child || g->n_nodes + x.child->n_nodes > MOST_NODES)
        return false;
    x.map = ARENA_ARRAY(g->arena, x.child->by_id.n + 1, Node *);
    if (!bind_inputs(&x) || !can_replace(&x))
        return false;
    copy_nodes(&x);
    replace_call(&x);
    return true;
}

static bool is_used(const Graph *g, const char *name) {
    GRAPH_EACH(g, n)
        if ((n->op == FX_call_module || n->op == FX_get_attr) && !strcmp(n->target, name))
            return true;
    return false;
}

// Innermost first; classes are nested no deeper than the reader lets them be.
void load_inline(Graph *g) {
    bool any = false;
    for (int i = 0; i < g->children.n; i++)
        load_inline(g->children.at[i].graph);
    for (Node *n = g->first, *next; n; n = next) {
        next = n->next;
        if (n->op != FX_call_module)
            continue;
        if (!n->n_users && !strcmp(n->target, "_guards_fn"))
            node_erase(n);
        else
            any |= inline_call(g, n);
    }
    for (int i = g->children.n - 1; any && i >= 0; i--)
        if (!is_used(g, g->children.at[i].name))
            vec_remove(&g->children, i);
}
