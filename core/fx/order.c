// order.c: what torch.fx does with the order of nodes: dead code goes from the back, leaving what
// has effects, and the stable sort that Inductor runs after its passes (fx_passes/post_grad.py).
#include "core/fx/graph.h"

#include <assert.h>
#include <string.h>

// Functions that are kept though nobody uses their result (torch/fx/node.py,
// _side_effectful_functions).
static const char *const effectful[] = {
    "torch._assert",
    "torch._assert_async",
    "torch._C._set_grad_enabled",
    "torch.amp._enter_autocast",
    "torch.amp._exit_autocast",
    "torch.amp.autocast_mode._enter_autocast",
    "torch.amp.autocast_mode._exit_autocast",
    "torch.manual_seed",
    "torch.random.manual_seed",
    "_operator.setitem",
    "torch.ops.aten._assert_async.msg",
    "torch.ops.aten._assert_scalar.default",
    "torch.ops.aten._assert_tensor_metadata.default",
    "torch.ops.aten.sym_constrain_range.default",
    "torch.ops.aten.sym_constrain_range_for_size.default",
    "torch.ops.inductor.accumulate_grad_.default",
    "torch.ops.inductor.resize_storage_bytes_.default",
};

bool node_seeds(const Node *n) {
    return n->op == FX_call_function && n->n_args == 1 &&
           (!strcmp(n->target, "torch.manual_seed") ||
            !strcmp(n->target, "torch.random.manual_seed"));
}

int64_t graph_seed(const Graph *g, int64_t otherwise) {
    int64_t seed;
    GRAPH_EACH (g, n)
        if (node_seeds(n))
            return val_as_int(&n->args[0], &seed) ? seed : otherwise;
    return otherwise;
}

static bool has_flag(const Node *n, const char *name) {
    const Value *v = node_arg(n, -1, name);
    return v && v->kind == VAL_bool && v->b;
}

// Beyond torch.fx's rule, in-place methods and operators count: graphs of Dynamo hold them, and
// they must survive our own passes.
static bool writes_in_place(const Node *n) {
    if (n->op == FX_call_method)
        return str_ends(n->target, "_") && !str_ends(n->target, "__");
    static const char *const inplace[] = {"iadd", "iand",     "ifloordiv", "ilshift", "imod",
                                          "imul", "imatmul",  "ior",       "ipow",    "irshift",
                                          "isub", "itruediv", "ixor"};
    if (str_starts(n->target, "_operator."))
        return str_index(n->target + strlen("_operator."), inplace, COUNT(inplace)) >= 0;
    return has_flag(n, "inplace") || node_arg(n, -1, "out");
}

bool node_has_effects(const Node *n) {
    if (n->op == FX_placeholder || n->op == FX_output)
        return true;
    if (n->op == FX_call_method)
        return writes_in_place(n);
    if (n->op != FX_call_function)
        return false;
    if (n->def)
        return (n->def->tags & (OPT_mutates | OPT_impure)) != 0;
    return str_starts(n->target, "torch.ops.profiler.") ||
           str_index(n->target, effectful, COUNT(effectful)) >= 0 || writes_in_place(n);
}

bool node_is_impure(const Node *n) {
    return node_has_effects(n) ||
           (n->op == FX_call_function &&
            (n->def ? n->def->tags & OPT_random : n->flags & NODE_opaque) != 0);
}

bool graph_dce(Graph *g) {
    bool changed = false;
    for (Node *n = g->last, *prev; n; n = prev) {
        prev = n->prev;
        if (n->n_users || node_is_impure(n))
            continue;
        node_erase(n);
        changed = true;
    }
    for (int i = 0; i < g->children.n; i++)
        changed |= graph_dce(g->children.at[i].graph);
    return changed;
}

// ---- sorting

// Nodes that wait for one other node, as a list through `next_waiting`.
typedef struct Sorter {
    bool *ready;      // by id
    int *head, *tail; // by id of the node waited for: first and last node waiting, -1
    int *next;        // by id of a waiting node: the one behind it, -1
    Node *missing;    // last input seen that is not ready
} Sorter;

static void note_missing(Node *input, void *ctx) {
    Sorter *s = ctx;
    if (!s->ready[input->id])
        s->missing = input;
}

static void wait_for(Sorter *s, const Node *n) {
    int on = s->missing->id;
    s->next[n->id] = -1;
    if (s->tail[on] >= 0)
        s->next[s->tail[on]] = n->id;
    else
        s->head[on] = n->id;
    s->tail[on] = n->id;
}

// Nodes that waited go back on the stack so that the first to wait is looked at first.
static int release(Sorter *s, const Graph *g, const Node *n, Node **stack, int top) {
    int first = top;
    for (int id = s->head[n->id]; id >= 0; id = s->next[id])
        stack[top++] = g->by_id.at[id];
    for (int i = first, j = top - 1; i < j; i++, j--) {
        Node *t = stack[i];
        stack[i] = stack[j];
        stack[j] = t;
    }
    s->head[n->id] = s->tail[n->id] = -1;
    return top;
}

void graph_toposort(Graph *g) {
    Arena tmp = {0};
    int n_ids = g->by_id.n + 1;
    Sorter s = {.ready = ARENA_ARRAY(&tmp, n_ids, bool),
                .head = ARENA_ARRAY(&tmp, n_ids, int),
                .tail = ARENA_ARRAY(&tmp, n_ids, int),
                .next = ARENA_ARRAY(&tmp, n_ids, int)};
    memset(s.head, 0xff, (size_t)n_ids * sizeof(int));
    memset(s.tail, 0xff, (size_t)n_ids * sizeof(int));
    Node **stack = ARENA_ARRAY(&tmp, n_ids, Node *);
    int top = 0;
    for (Node *n = g->last; n; n = n->prev)
        stack[top++] = n;
    Node *cursor = NULL;
    while (top) {
        Node *n = stack[--top];
        if (n->op == FX_output)
            continue;
        s.missing = NULL;
        node_each_input(n, note_missing, &s);
        if (s.missing) {
            wait_for(&s, n);
            continue;
        }
        s.ready[n->id] = true;
        if (cursor && cursor->next != n)
            node_move_before(n, cursor->next);
        cursor = n;
        top = release(&s, g, n, stack, top);
    }
    arena_free(&tmp);
}
