// higher.c: what is known of higher-order ops (higher.def), by the targets of their calls.
#include "core/fx/graph.h"

#include <string.h>

static const HigherInfo infos[] = {
#define HIGHER(name, graphs, inlined, doc) [HIGHER_##name] = {#name, graphs, inlined, doc},
#include "core/fx/higher.def"
#undef HIGHER
};

const HigherInfo *higher_info(HigherId id) {
    return &infos[id];
}

HigherId node_higher(const Node *n) {
    static const char prefix[] = "torch.ops.higher_order.";
    if (n->op != FX_call_function || !str_starts(n->target, prefix))
        return HIGHER_none;
    const char *name = n->target + strlen(prefix);
    for (int i = 1; i < COUNT(infos); i++)
        if (!strcmp(infos[i].name, name))
            return (HigherId)i;
    return HIGHER_none;
}

const Op *node_named_op(const Node *n) {
    static const char *const targets[] = {"torch.ops.higher_order.auto_functionalized",
                                          "torch.ops.higher_order.auto_functionalized_v2",
                                          "torch.ops.higher_order.with_effects"};
    int which = n->op == FX_call_function ? str_index(n->target, targets, COUNT(targets)) : -1,
        at = which == 2; // behind the token
    return which >= 0 && n->n_args > at && n->args[at].kind == VAL_target ? op_find(n->args[at].s)
                                                                          : NULL;
}

Graph *value_graph(const Value *v) {
    if (v->kind == VAL_node)
        v = &v->node->val;
    return v->kind == VAL_graph ? v->graph : NULL;
}

int node_graphs(const Node *n, const Graph **out, int max) {
    int found = 0;
    for (int i = 0; i < n->n_args && found < max; i++) {
        const Graph *g = value_graph(&n->args[i]);
        if (g)
            out[found++] = g;
    }
    for (int i = 0; i < n->n_kwargs && found < max; i++) {
        const Graph *g = value_graph(&n->kwargs[i].value);
        if (g)
            out[found++] = g;
    }
    return found;
}
