// joint.c: the joint-graph passes in PyTorch's order (torch/_inductor/fx_passes/joint_graph.py),
// and the words that they share.
#include "core/aot/joint.h"

#include <string.h>

#include "core/aot/noop.h"

bool joint_wants(PassCtx *ctx, const char *pass, const Node *at, const char *reason) {
    char key[256];
    size_t n = strlen(pass), m = strlen(at->name);
    if (n + m + 2 > sizeof key)
        return true;
    memcpy(key, pass, n);
    key[n] = ':';
    memcpy(key + n + 1, at->name, m + 1);
    Decide ask = {.kind = DECIDE_rewrite, .key = key, .by_default = true, .reason = reason};
    return decide(ctx->decisions, &ask);
}

bool same_sizes(Sym *s, const TensorMeta *a, const TensorMeta *b) {
    if (a->ndim != b->ndim)
        return false;
    for (int i = 0; i < a->ndim; i++)
        if (!sym_known_eq(s, a->size[i], b->size[i]))
            return false;
    return true;
}

bool same_tensor(Sym *s, const TensorMeta *x, const TensorMeta *y) {
    if (!same_sizes(s, x, y) || x->layout != y->layout || x->dtype != y->dtype ||
        !device_equal(x->device, y->device))
        return false;
    for (int i = 0; i < x->ndim; i++)
        if (!sym_known_eq(s, x->stride[i], y->stride[i]))
            return false;
    return true;
}

int64_t node_int(const Node *n, int i, const char *name, int64_t fallback) {
    const Value *v = node_arg(n, i, name);
    int64_t out;
    return v && val_as_int(v, &out) ? out : v && v->kind == VAL_bool ? v->b : fallback;
}

Node *joint_insert_after(PassCtx *ctx, Node *at, const Op *op, const char *name, const Value *args,
                         int n_args, const Kwarg *kwargs, int n_kwargs) {
    graph_set_insert(at->graph, at->next);
    Node *n = graph_call(at->graph, op, name, args, n_args, kwargs, n_kwargs);
    graph_set_insert(at->graph, NULL);
    node_copy_meta(n, at);
    if (ctx->origins)
        origins_add(ctx->origins, n->id, at->id, LINK_same);
    return n;
}

// A bound argument as a meta function wants it: nodes by what they yield.
static Value yielded(Arena *a, const Value *v) {
    if (v->kind == VAL_node)
        return v->node->val;
    if (v->kind != VAL_list && v->kind != VAL_tuple)
        return *v;
    Value r = val_list(a, v->kind, v->n);
    for (int i = 0; i < v->n; i++)
        r.at[i] = yielded(a, &v->at[i]);
    return r;
}

Node *joint_put(PassCtx *ctx, Node *at, OpId op, const Value *args, int n_args, const Kwarg *kwargs,
                int n_kwargs) {
    graph_set_insert(at->graph, at);
    Node *n = graph_call(at->graph, op_at(op), NULL, args, n_args, kwargs, n_kwargs);
    graph_set_insert(at->graph, NULL);
    n->stack = at->stack;
    n->modules = at->modules;
    // A replacement is traced anew, so that its nodes stem from their own ops.
    n->original_aten = op_at(op)->qualname + strlen("torch.ops.");
    n->flags |= at->flags & (NODE_forward | NODE_backward);
    Arena *a = at->graph->arena;
    Value *bound = node_bound(n, a);
    for (int i = 0; i < n->def->n_args; i++)
        bound[i] = yielded(a, &bound[i]);
    MetaCtx m = {.arena = a, .sym = at->graph->sym, .diag = ctx->diag};
    op_meta(&m, n->def, bound, &n->val);
    if (ctx->origins)
        origins_add(ctx->origins, n->id, at->id, LINK_part);
    return n;
}

bool view_is_pointless(Sym *s, const TensorMeta *arg, const Value *size) {
    if (size->n != arg->ndim)
        return false;
    int holes = 0;
    for (int i = 0; i < size->n; i++) {
        const Value *v = &size->at[i];
        const Value *e = v->kind == VAL_node ? &v->node->val : v;
        const Expr *x;
        if (e->kind == VAL_int && e->i == -1)
            holes++;
        else if (!val_as_expr(s, e, &x) || !sym_known_eq(s, arg->size[i], x))
            return false;
    }
    return holes <= 1;
}

// remove_noop_ops

static bool is_alias_op(const Op *op) {
    return op && op->n_args && op->args[0].alias && op->n_returns && op->returns[0].alias;
}

bool node_shares_storage(const Node *n) {
    if (n->op != FX_call_function || !n->n_args || n->args[0].kind != VAL_node)
        return false;
    return is_alias_op(node_is_item(n) ? n->args[0].node->def : n->def);
}

int *graph_storages(Arena *a, const Graph *g) {
    int *storage = ARENA_ARRAY(a, g->by_id.n + 1, int);
    GRAPH_EACH (g, n)
        storage[n->id] = node_shares_storage(n) ? storage[n->args[0].node->id] : n->id;
    return storage;
}

static bool reads_storage(const Value *v, const int *storage, int which) {
    for (int i = 0; (v->kind == VAL_list || v->kind == VAL_tuple) && i < v->n; i++)
        if (reads_storage(&v->at[i], storage, which))
            return true;
    return v->kind == VAL_node && storage[v->node->id] == which;
}

bool node_outlives(const Node *n, const Node *src, const int *storage) {
    int mine = storage[n->id], its = storage[src->id];
    bool written = false;
    for (const Node *x = mine != its ? n->next : NULL; x; x = x->next) {
        for (int i = 0; written && i < x->n_args; i++)
            if (reads_storage(&x->args[i], storage, mine))
                return true;
        written = written || (x->def && x->def->tags & OPT_mutates && x->n_args &&
                              x->args[0].kind == VAL_node && storage[x->args[0].node->id] == its);
    }
    return false;
}

static bool noop_wanted(PassCtx *ctx, const Node *n) {
    bool yes = joint_wants(ctx, "remove_noop_ops", n, "does nothing");
    ctx->matches += yes;
    return yes;
}

static Graph *remove_noop_ops(PassCtx *ctx, const Graph *g) {
    ctx->matches = 0;
    Value *val = ARENA_ARRAY(ctx->arena, g->by_id.n + 1, Value);
    GRAPH_EACH (g, n)
        val[n->id] = n->val;
    return remove_noops(ctx, g, val, graph_storages(ctx->arena, g), noop_wanted);
}

const GraphPass pass_joint_noop_ops = {"remove_noop_ops", "ops that hand on their argument go",
                                       remove_noop_ops};

const GraphPass *const joint_passes[] = {
    &pass_joint_noop_ops, &pass_constant_fold_uniform_value,
    &pass_early_patterns, &pass_pass_pattern_0,
    &pass_pass_pattern_1, &pass_replace_random,
};
const int n_joint_passes = COUNT(joint_passes);
