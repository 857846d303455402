// noop.c: ops that only hand on an argument go. Joint graphs are rid of them, and later each half
// again (torch/_inductor/fx_passes/post_grad.py, remove_noop_ops).
#include "core/aot/noop.h"

#include "core/aot/joint.h"

#include <string.h>

typedef struct Noops {
    const Graph *g;
    const Value *val;     // by id
    int *storage;         // by id
    bool *input, *output; // by storage: an input's, an output's
    const Node **written; // by storage: the first that writes it; NULL: none does
} Noops;

// args in schema order
typedef bool NoopCond(const Noops *c, const Value *args);

static const TensorMeta *tensor_of(const Noops *c, const Value *v) {
    const Value *x = v->kind == VAL_node ? &c->val[v->node->id] : v;
    return x->kind == VAL_tensor ? x->tensor : NULL;
}

static bool always(const Noops *c, const Value *args) {
    (void)c, (void)args;
    return true;
}

static bool of_integers(const Noops *c, const Value *args) {
    const TensorMeta *m = tensor_of(c, &args[0]);
    return m && dtype_is_int(m->dtype);
}

// (self, …, dim, start, end, step): dim is args[at]
static bool is_whole(const Noops *c, const Value *args, int at) {
    int64_t dim, start, end, step, size;
    const TensorMeta *m = tensor_of(c, &args[0]);
    if (!m || !val_as_int(&args[at], &dim) || !val_as_int(&args[at + 1], &start) ||
        !val_as_int(&args[at + 2], &end) || !val_as_int(&args[at + 3], &step))
        return false;
    dim = dim < 0 ? dim + m->ndim : dim;
    if (dim < 0 || dim >= m->ndim || start != 0 || step != 1)
        return false;
    return end == INT64_MAX || (expr_int(m->size[dim], &size) && end >= size);
}

static bool whole_slice(const Noops *c, const Value *args) {
    return is_whole(c, args, 1);
}

static bool whole_slice_scatter(const Noops *c, const Value *args) {
    return is_whole(c, args, 2);
}

static bool all_are(const Value *list, int64_t want) {
    int64_t v;
    for (int i = 0; i < list->n; i++)
        if (!val_as_int(&list->at[i], &v) || v != want)
            return false;
    return true;
}

static bool repeats_once(const Noops *c, const Value *args) {
    (void)c;
    return all_are(&args[1], 1);
}

static bool pads_nothing(const Noops *c, const Value *args) {
    (void)c;
    return all_are(&args[1], 0);
}

static bool first_power(const Noops *c, const Value *args) {
    (void)c;
    return args[1].kind == VAL_int && args[1].i == 1;
}

static bool one_tensor(const Noops *c, const Value *args) {
    (void)c;
    return args[0].n == 1;
}

static bool same_shape(const Noops *c, const Value *args) {
    const TensorMeta *m = tensor_of(c, &args[0]);
    for (int i = 0; i < args[1].n; i++)
        if (args[1].at[i].kind == VAL_int && args[1].at[i].i < 0)
            return false;
    return m && view_is_pointless(c->g->sym, m, &args[1]);
}

static const struct {
    OpId op;
    int src; // argument that the result equals; -1: the first of args[0]
    NoopCond *cond;
} noops[] = {
    {OP_aten_slice_Tensor, 0, whole_slice},
    {OP_aten_slice_scatter_default, 1, whole_slice_scatter},
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
    {OP_aten_view_default, 0, same_shape},
    {OP_aten_view_dtype, 0, always},
    {OP_aten_copy_default, 1, always},
    {OP_aten_alias_default, 0, always},
    {OP_aten_clone_default, 0, always},
};

// What the node only hands on; NULL if it does something. Equal metadata is asked for in any case.
static Node *source_of(const Noops *c, const Node *n, Arena *a) {
    if (n->op != FX_call_function || !n->def)
        return NULL;
    for (int i = 0; i < COUNT(noops); i++) {
        if (noops[i].op != n->def->id)
            continue;
        const Value *args = node_bound(n, a), *v = args;
        if (args && noops[i].src < 0)
            v = args[0].n ? &args[0].at[0] : NULL;
        else if (args)
            v = &args[noops[i].src];
        if (!v || v->kind != VAL_node)
            return NULL;
        const TensorMeta *x = tensor_of(c, &c->val[n->id]), *y = tensor_of(c, v);
        bool same = x && y && same_tensor(c->g->sym, x, y);
        return same && noops[i].cond(c, args) ? v->node : NULL;
    }
    return NULL;
}

static void find_ends(Noops *c, Arena *a) {
    c->input = ARENA_ARRAY(a, c->g->by_id.n, bool);
    c->output = ARENA_ARRAY(a, c->g->by_id.n, bool);
    c->written = ARENA_ARRAY(a, c->g->by_id.n, const Node *);
    GRAPH_EACH (c->g, n) {
        if (n->op == FX_placeholder)
            c->input[c->storage[n->id]] = true;
        if (n->def && n->def->tags & OPT_mutates && n->n_args && n->args[0].kind == VAL_node &&
            !c->written[c->storage[n->args[0].node->id]])
            c->written[c->storage[n->args[0].node->id]] = n;
    }
    const Node *out = graph_output_node(c->g);
    const Value *v = out && out->n_args ? &out->args[0] : NULL;
    bool one = v && v->kind == VAL_node;
    for (int i = 0; v && i < (one ? 1 : v->n); i++) {
        const Value *item = one ? v : &v->at[i];
        if (item->kind == VAL_node)
            c->output[c->storage[item->node->id]] = true;
    }
}

// No new alias between inputs and outputs.
static bool adds_aliasing(const Noops *c, const Node *n, const Node *src) {
    int mine = c->storage[n->id], its = c->storage[src->id];
    return mine != its && c->output[mine] && (c->input[its] || c->output[its]);
}

// The copy is read when its source has been written: y.copy_(x), x.neg_(). PyTorch 2.11 does not
// mind, and y gets the new value of x.
static bool outlives_source(const Noops *c, const Node *n, const Node *src) {
    return c->written[c->storage[src->id]] && node_outlives(n, src, c->storage);
}

// What was n's memory is src's now.
static void join_storages(Noops *c, int n_ids, int mine, int its) {
    for (int i = 0; mine != its && i < n_ids; i++)
        if (c->storage[i] == mine)
            c->storage[i] = its;
    c->output[its] = c->output[its] || c->output[mine];
    c->written[its] = c->written[its] ? c->written[its] : c->written[mine];
}

Graph *remove_noops(PassCtx *ctx, const Graph *given, const Value *val, const int *storage,
                    NoopWanted *wanted) {
    int n_ids = given->by_id.n;
    Noops c = {.g = given, .val = val, .storage = ARENA_ARRAY(ctx->arena, n_ids + 1, int)};
    memcpy(c.storage, storage, (size_t)n_ids * sizeof *storage);
    bool any = false;
    GRAPH_EACH (given, n)
        any = any || source_of(&c, n, ctx->arena);
    if (!any)
        return (Graph *)(uintptr_t)given;
    Graph *g = graph_copy(ctx->arena, given);
    c.g = g;
    find_ends(&c, ctx->arena);
    int matches = 0;
    for (Node *n = g->first, *next; n; n = next) {
        next = n->next;
        Node *src = source_of(&c, n, ctx->arena);
        if (!src || adds_aliasing(&c, n, src) || outlives_source(&c, n, src) || !wanted(ctx, n))
            continue;
        join_storages(&c, n_ids, c.storage[n->id], c.storage[src->id]);
        node_replace_uses(n, src);
        node_erase(n);
        matches++;
    }
    return matches ? g : (Graph *)(uintptr_t)given;
}
