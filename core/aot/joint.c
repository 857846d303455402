// joint.c: the joint-graph passes in PyTorch's order (torch/_inductor/fx_passes/joint_graph.py),
// and the removal of ops that do nothing, which Inductor runs again later.
#include "core/aot/joint.h"

#include <string.h>

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

bool same_meta(Sym *s, const Node *a, const Node *b) {
    const TensorMeta *x = node_tensor(a), *y = node_tensor(b);
    if (!x || !y || !same_sizes(s, x, y) || x->layout != y->layout || x->dtype != y->dtype ||
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

Node *joint_put(PassCtx *ctx, Node *at, OpId op, const Value *args, int n_args,
                const Kwarg *kwargs, int n_kwargs) {
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

typedef bool NoopCond(const Node *n, const Node *src);

static bool is_int_type(const Node *src) {
    const TensorMeta *m = node_tensor(src);
    return m && (dtype_is_int(m->dtype) || m->dtype == DT_b8);
}

static bool always(const Node *n, const Node *src) {
    (void)n, (void)src;
    return true;
}

static bool of_integers(const Node *n, const Node *src) {
    (void)n;
    return is_int_type(src);
}

static bool whole_slice(const Node *n, const Node *src) {
    (void)src;
    return node_int(n, 2, "start", 0) == 0 && node_int(n, 3, "end", INT64_MAX) == INT64_MAX &&
           node_int(n, 4, "step", 1) == 1;
}

static bool all_are(const Value *list, int64_t want) {
    int64_t v;
    for (int i = 0; list && i < list->n; i++)
        if (!val_as_int(&list->at[i], &v) || v != want)
            return false;
    return list != NULL;
}

static bool repeats_once(const Node *n, const Node *src) {
    (void)src;
    return all_are(node_arg(n, 1, "repeats"), 1);
}

static bool pads_nothing(const Node *n, const Node *src) {
    (void)src;
    return all_are(node_arg(n, 1, "pad"), 0);
}

static bool first_power(const Node *n, const Node *src) {
    (void)src;
    const Value *v = node_arg(n, 1, "exponent");
    return v && v->kind == VAL_int && v->i == 1;
}

static bool one_tensor(const Node *n, const Node *src) {
    (void)src;
    const Value *v = node_arg(n, 0, "tensors");
    return v && v->n == 1;
}

static bool same_shape_view(const Node *n, const Node *src) {
    const TensorMeta *m = node_tensor(src);
    const Value *size = node_arg(n, 1, "size");
    for (int i = 0; size && i < size->n; i++)
        if (size->at[i].kind == VAL_int && size->at[i].i < 0)
            return false;
    return m && size && view_is_pointless(n->graph->sym, m, size);
}

static const struct {
    OpId op;
    int src; // argument that the result equals; -1: first of a list
    NoopCond *cond;
} noops[] = {
    {OP_aten_slice_Tensor, 0, whole_slice},
    {OP_aten_slice_scatter_default, 1, always},
    {OP_aten_repeat_default, 0, repeats_once},
    {OP_aten_constant_pad_nd_default, 0, pads_nothing},
    {OP_prims_convert_element_type_default, 0, always},
    {OP_prims_device_put_default, 0, always},
    {OP_aten_ceil_default, 0, of_integers},
    {OP_aten_floor_default, 0, of_integers},
    {OP_aten_round_default, 0, of_integers},
    {OP_aten_trunc_default, 0, of_integers},
    {OP_aten_pow_Tensor_Scalar, 0, first_power},
    {OP_aten_cat_default, -1, one_tensor},
    {OP_aten_view_default, 0, same_shape_view},
    {OP_aten_view_dtype, 0, always},
    {OP_aten_copy_default, 1, always},
    {OP_aten_alias_default, 0, always},
    {OP_aten_clone_default, 0, always},
};

// What the node only hands on; NULL if it does something. Equal metadata is asked for in any case.
static Node *noop_source(const Node *n) {
    if (n->op != FX_call_function || !n->def)
        return NULL;
    for (int i = 0; i < COUNT(noops); i++) {
        if (noops[i].op != n->def->id)
            continue;
        const Value *v = n->n_args > (noops[i].src < 0 ? 0 : noops[i].src)
                             ? &n->args[noops[i].src < 0 ? 0 : noops[i].src]
                             : NULL;
        if (v && noops[i].src < 0)
            v = v->n ? &v->at[0] : NULL;
        if (!v || v->kind != VAL_node)
            return NULL;
        return same_meta(n->graph->sym, n, v->node) && noops[i].cond(n, v->node) ? v->node : NULL;
    }
    return NULL;
}

static bool is_alias_op(const Op *op) {
    return op && op->n_args && op->args[0].alias && op->n_returns && op->returns[0].alias;
}

bool node_shares_storage(const Node *n) {
    if (n->op != FX_call_function || !n->n_args || n->args[0].kind != VAL_node)
        return false;
    return is_alias_op(node_is_item(n) ? n->args[0].node->def : n->def);
}

// The node whose storage a value lives in: views share their base's, everything else has its own.
static int storage_of(const Node *n) {
    while (node_shares_storage(n))
        n = n->args[0].node;
    return n->id;
}

typedef struct Storages {
    Map inputs, outputs; // storage -> itself
} Storages;

static Storages storages(Arena *a, const Graph *g) {
    Storages s = {.inputs.arena = a, .outputs.arena = a};
    GRAPH_EACH (g, n)
        if (n->op == FX_placeholder)
            map_at_id(&s.inputs, (uint64_t)n->id)->i = 1;
    const Node *out = graph_output_node(g);
    const Value *list = out && out->n_args ? &out->args[0] : NULL;
    for (int i = 0; list && list->kind != VAL_node && i < list->n; i++)
        if (list->at[i].kind == VAL_node)
            map_at_id(&s.outputs, (uint64_t)storage_of(list->at[i].node))->i = 1;
    return s;
}

static bool adds_aliasing(const Storages *s, const Node *n, const Node *src) {
    uint64_t mine = (uint64_t)storage_of(n), other = (uint64_t)storage_of(src);
    return mine != other && map_find_id(&s->outputs, mine) &&
           (map_find_id(&s->inputs, other) || map_find_id(&s->outputs, other));
}

static Graph *remove_noop_ops(PassCtx *ctx, const Graph *given) {
    bool any = false;
    GRAPH_EACH (given, n)
        any = any || noop_source(n);
    ctx->matches = 0;
    if (!any)
        return (Graph *)(uintptr_t)given;
    Graph *g = graph_copy(ctx->arena, given);
    Storages s = storages(ctx->arena, g);
    for (Node *n = g->first, *next; n; n = next) {
        next = n->next;
        Node *src = noop_source(n);
        if (!src || adds_aliasing(&s, n, src) ||
            !joint_wants(ctx, "remove_noop_ops", n, "does nothing"))
            continue;
        node_replace_uses(n, src);
        node_erase(n);
        ctx->matches++;
    }
    return ctx->matches ? g : (Graph *)(uintptr_t)given;
}

const GraphPass pass_joint_noop_ops = {"remove_noop_ops", "ops that hand on their argument go",
                                       remove_noop_ops};

const GraphPass *const joint_passes[] = {
    &pass_joint_noop_ops, &pass_constant_fold_uniform_value,
    &pass_early_patterns, &pass_pass_pattern_0,
    &pass_pass_pattern_1, &pass_replace_random,
};
const int n_joint_passes = COUNT(joint_passes);
