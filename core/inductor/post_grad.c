// post_grad.c: the post-grad passes in PyTorch's order (torch/_inductor/fx_passes/post_grad.py),
// and those of them that take or move single nodes. Each works on a copy and gives the graph back
// unchanged if it found nothing to do.
#include "core/inductor/post_grad.h"

#include <string.h>

#include "core/inductor/ir.h"

const GraphPass *const post_grad_passes[] = {
    &pass_view_to_reshape,
    &pass_reorder_for_locality,
    &pass_remove_noop_ops,
    &pass_remove_assert_ops,
    &pass_post_grad_patterns,
    &pass_add_mm,
    &pass_stable_sort,
    &pass_reinplace,
    &pass_decompose_auto_functionalized,
};
const int n_post_grad_passes = COUNT(post_grad_passes);

bool pass_wanted(PassCtx *c, const char *name) {
    Decide q = {.kind = DECIDE_pass, .key = name, .by_default = true};
    return decide(c->decisions, &q);
}

bool rewrite_wanted(PassCtx *c, const Node *n, const char *reason) {
    Decide q = {.kind = DECIDE_rewrite, .key = n->name, .by_default = true, .reason = reason};
    if (!decide(c->decisions, &q))
        return false;
    c->matches++;
    return true;
}

void node_set_op(Node *n, const Op *op) {
    n->def = op;
    n->target = op->qualname;
}

// ---- view_to_reshape

// A layout may change later; a reshape copies where a view would fail.
static Graph *view_to_reshape(PassCtx *c, const Graph *g) {
    bool any = false;
    GRAPH_EACH (g, n)
        any |= node_is(n, OP_aten_view_default);
    if (!any || !pass_wanted(c, "view_to_reshape"))
        return (Graph *)g;
    Graph *out = graph_copy(c->arena, g);
    GRAPH_EACH (out, n)
        if (node_is(n, OP_aten_view_default) && rewrite_wanted(c, n, "view becomes reshape"))
            node_set_op(n, op_at(OP_aten_reshape_default));
    return out;
}

const GraphPass pass_view_to_reshape = {
    "view_to_reshape", "views become reshapes, which no layout can break", view_to_reshape};

// ---- reorder_for_locality

static bool is_mutation(const Node *n) {
    return n->op == FX_call_function && ((n->def && n->def->tags & OPT_mutates) ||
                                         node_is(n, OP_prims_inductor_lookup_seed_default));
}

typedef struct Locality {
    PassCtx *pass;
    Node *node;  // whose producers are moved
    bool *seen;  // by id
    int *region; // by id: mutations before it
    int moved;
} Locality;

static bool all_seen(const Locality *l, const Node *n) {
    for (int i = 0; i < n->n_users; i++)
        if (!l->seen[n->users[i]->id])
            return false;
    return true;
}

static void move_producer(Node *input, void *ctx) {
    Locality *l = ctx;
    if (input->op != FX_call_function || str_ends(input->target, "getitem") ||
        !all_seen(l, input) || l->region[input->id] != l->region[l->node->id])
        return;
    if (input->next != l->node) {
        node_move_before(input, l->node);
        l->moved++;
    }
}

// Producers move next to their first user, from the end to the beginning.
static Graph *reorder_for_locality(PassCtx *c, const Graph *g) {
    if (!c->inference || !pass_wanted(c, "reorder_for_locality"))
        return (Graph *)g;
    Graph *out = graph_copy(c->arena, g);
    Locality l = {.pass = c,
                  .seen = ARENA_ARRAY(c->arena, out->by_id.n, bool),
                  .region = ARENA_ARRAY(c->arena, out->by_id.n, int)};
    const Node *first_copy = NULL;
    int region = 0;
    GRAPH_EACH (out, n) {
        region += is_mutation(n);
        l.region[n->id] = region;
        if (!first_copy && node_is(n, OP_aten_copy__default))
            first_copy = n;
    }
    bool past = first_copy == NULL;
    for (Node *n = out->last; n; n = n->prev) {
        l.seen[n->id] = true;
        if (!past) {
            past = n == first_copy;
            continue;
        }
        l.node = n;
        node_each_input(n, move_producer, &l);
    }
    c->matches = l.moved;
    return l.moved ? out : (Graph *)g;
}

const GraphPass pass_reorder_for_locality = {
    "reorder_for_locality", "producers move next to their users (inference)", reorder_for_locality};

// ---- remove_noop_ops

typedef struct Noop {
    PassCtx *pass;
    Graph *g;
    Value *val;           // by id, strides known
    int *storage;         // by id: node that owns the memory
    bool *input, *output; // by storage: an input's, an output's
} Noop;

static bool same_meta(const Noop *c, const Node *a, const Node *b) {
    const Value *x = &c->val[a->id], *y = &c->val[b->id];
    if (x->kind != VAL_tensor || y->kind != VAL_tensor)
        return false;
    const TensorMeta *s = x->tensor, *t = y->tensor;
    if (s->dtype != t->dtype || s->ndim != t->ndim || !device_equal(s->device, t->device) ||
        s->layout != t->layout)
        return false;
    for (int i = 0; i < s->ndim; i++)
        if (s->size[i] != t->size[i] || s->stride[i] != t->stride[i])
            return false;
    return s->offset == t->offset;
}

static bool all_are(const Value *list, int64_t want) {
    int64_t v = 0;
    for (int i = 0; i < list->n; i++)
        if (!val_as_int(&list->at[i], &v) || v != want)
            return false;
    return true;
}

static bool is_whole_slice(const Noop *c, const Node *n, const Value *args, int at,
                           const Node *of) {
    int64_t dim = 0, start = 0, end = 0, step = 1, size = 0;
    const Value *v = &c->val[of->id];
    if (v->kind != VAL_tensor || !val_as_int(&args[at], &dim) || args[at + 1].kind == VAL_none ||
        args[at + 2].kind == VAL_none || !val_as_int(&args[at + 1], &start) ||
        !val_as_int(&args[at + 2], &end) || !val_as_int(&args[at + 3], &step))
        return false;
    dim = dim < 0 ? dim + v->tensor->ndim : dim;
    (void)n;
    if (dim < 0 || dim >= v->tensor->ndim || start != 0 || step != 1)
        return false;
    return end == INT64_MAX || (expr_int(v->tensor->size[dim], &size) && end >= size);
}

// The argument that an op without effect hands on; NULL if it has an effect.
static Node *noop_source(const Noop *c, const Node *n, const Value *args) {
    Node *self = args[0].kind == VAL_node ? args[0].node : NULL;
    switch ((int)n->def->id) {
    case OP_aten_alias_default:
    case OP_aten_clone_default:
    case OP_prims_convert_element_type_default:
    case OP_prims_device_put_default:
    case OP_aten_view_default:
    case OP_aten_view_dtype:
        return self;
    case OP_aten_copy_default:
        return args[1].kind == VAL_node ? args[1].node : NULL;
    case OP_aten_slice_Tensor:
        return self && is_whole_slice(c, n, args, 1, self) ? self : NULL;
    case OP_aten_slice_scatter_default:
        return self && args[1].kind == VAL_node && is_whole_slice(c, n, args, 2, self)
                   ? args[1].node
                   : NULL;
    case OP_aten_repeat_default:
        return all_are(&args[1], 1) ? self : NULL;
    case OP_aten_constant_pad_nd_default:
        return all_are(&args[1], 0) ? self : NULL;
    case OP_aten_ceil_default:
    case OP_aten_floor_default:
    case OP_aten_round_default:
    case OP_aten_trunc_default:
        return self && c->val[self->id].kind == VAL_tensor &&
                       dtype_is_int(c->val[self->id].tensor->dtype)
                   ? self
                   : NULL;
    case OP_aten_pow_Tensor_Scalar:
        return args[1].kind == VAL_int && args[1].i == 1 ? self : NULL;
    case OP_aten_cat_default:
        return args[0].n == 1 && args[0].at[0].kind == VAL_node ? args[0].at[0].node : NULL;
    default:
        return NULL;
    }
}

static bool is_output(const Noop *c, const Node *n) {
    const Value *list = &graph_output_node(c->g)->args[0];
    for (int i = 0; i < list->n; i++)
        if (list->at[i].kind == VAL_node && list->at[i].node == n)
            return true;
    return false;
}

static Graph *remove_noop_ops(PassCtx *c, const Graph *g) {
    if (!pass_wanted(c, "remove_noop_ops"))
        return (Graph *)g;
    Graph *out = graph_copy(c->arena, g);
    Noop p = {.pass = c, .g = out, .val = fake_values(c->arena, out, 0, NULL)};
    p.storage = node_storages(c->arena, out, p.val);
    p.input = ARENA_ARRAY(c->arena, out->by_id.n, bool);
    p.output = ARENA_ARRAY(c->arena, out->by_id.n, bool);
    const Node *end = graph_output_node(out);
    const Value *list = end && end->n_args ? &end->args[0] : &(Value){0};
    for (int i = 0; (list->kind == VAL_tuple || list->kind == VAL_list) && i < list->n; i++)
        if (list->at[i].kind == VAL_node)
            p.output[p.storage[list->at[i].node->id]] = true;
    for (Node *n = out->first, *next; n; n = next) {
        next = n->next;
        if (n->op == FX_placeholder)
            p.input[p.storage[n->id]] = true;
        if (n->op != FX_call_function || !n->def)
            continue;
        const Value *args = node_bound(n, c->arena);
        Node *src = args ? noop_source(&p, n, args) : NULL;
        if (!src || !same_meta(&p, n, src))
            continue;
        int mine = p.storage[n->id], its = p.storage[src->id];
        // No new alias between inputs and outputs.
        if (mine != its && p.output[mine] && (p.input[its] || p.output[its]))
            continue;
        if (mine == its && is_output(&p, n) && (src->op == FX_placeholder || is_output(&p, src)))
            continue;
        if (!rewrite_wanted(c, n, "changes nothing"))
            continue;
        node_replace_uses(n, src);
        node_erase(n);
    }
    return c->matches ? out : (Graph *)g;
}

const GraphPass pass_remove_noop_ops = {"remove_noop_ops", "ops that change nothing go",
                                        remove_noop_ops};

static Graph *remove_assert_ops(PassCtx *c, const Graph *g) {
    bool any = false;
    GRAPH_EACH (g, n)
        any |= node_is(n, OP_aten__assert_tensor_metadata_default);
    if (!any || !pass_wanted(c, "remove_assert_ops"))
        return (Graph *)g;
    Graph *out = graph_copy(c->arena, g);
    for (Node *n = out->first, *next; n; n = next) {
        next = n->next;
        if (node_is(n, OP_aten__assert_tensor_metadata_default) && !n->n_users &&
            rewrite_wanted(c, n, "metadata is known here"))
            node_erase(n);
    }
    return c->matches ? out : (Graph *)g;
}

const GraphPass pass_remove_assert_ops = {"remove_assert_ops", "assertions about metadata go",
                                          remove_assert_ops};

// ---- pass_pattern_2: mm + add

static bool expandable(Sym *sym, const TensorMeta *t, const Expr *rows, const Expr *cols) {
    const Expr *want[2] = {rows, cols};
    if (t->ndim > 2)
        return false;
    for (int i = 0; i < t->ndim; i++) {
        const Expr *w = want[2 - t->ndim + i];
        if (!expr_is(t->size[i], 1) && t->size[i] != w && !sym_known_eq(sym, t->size[i], w))
            return false;
    }
    return true;
}

static const TensorMeta *tensor_of(const Value *v) {
    return v->kind == VAL_node && v->node->val.kind == VAL_tensor ? v->node->val.tensor : NULL;
}

// add(inp, mm(a, b)) with argument k the product, of which add is the only user.
static bool is_addmm(const Node *add, int k) {
    const Value *m = &add->args[k], *inp = &add->args[1 - k];
    if (m->kind != VAL_node || !node_is(m->node, OP_aten_mm_default) || m->node->n_users != 1 ||
        m->node->n_kwargs)
        return false;
    const TensorMeta *a = tensor_of(&m->node->args[0]), *b = tensor_of(&m->node->args[1]),
                     *t = tensor_of(inp);
    return a && b && t && inp->node != m->node && t->dtype == a->dtype && t->dtype == b->dtype &&
           expandable(add->graph->sym, t, a->size[0], b->size[1]);
}

static void fuse_addmm(PassCtx *c, Graph *g, Node *add, int k) {
    Node *mm = add->args[k].node;
    Value args[3] = {add->args[1 - k], mm->args[0], mm->args[1]};
    graph_set_insert(g, add);
    Node *n = graph_call(g, op_at(OP_aten_addmm_default), "addmm_default", args, 3, NULL, 0);
    graph_set_insert(g, NULL);
    n->val = add->val;
    n->original_aten = "aten.addmm.default";
    origins_add(c->origins, n->id, add->id, LINK_part);
    origins_add(c->origins, n->id, mm->id, LINK_part);
    node_replace_uses(add, n);
    node_erase(add);
    node_erase(mm);
}

static Graph *add_mm(PassCtx *c, const Graph *g) {
    bool any = false;
    GRAPH_EACH (g, n)
        any |= node_is(n, OP_aten_add_Tensor) && n->n_args == 2 && !n->n_kwargs &&
               (is_addmm(n, 1) || is_addmm(n, 0));
    if (!any || !pass_wanted(c, "pass_pattern_2"))
        return (Graph *)g;
    Graph *out = graph_copy(c->arena, g);
    for (Node *n = out->last, *prev; n; n = prev) {
        prev = n->prev;
        if (!node_is(n, OP_aten_add_Tensor) || n->n_args != 2 || n->n_kwargs)
            continue;
        int k = is_addmm(n, 1) ? 1 : is_addmm(n, 0) ? 0 : -1;
        if (k < 0 || !rewrite_wanted(c, n, "a product and a sum are one addmm"))
            continue;
        if (prev == n->args[k].node)
            prev = prev->prev;
        fuse_addmm(c, out, n, k);
    }
    return c->matches ? out : (Graph *)g;
}

const GraphPass pass_add_mm = {"pass_pattern_2", "mm + add become addmm", add_mm};

// ---- stable_sort

static Graph *stable_sort(PassCtx *c, const Graph *g) {
    Graph *out = graph_copy(c->arena, g);
    graph_toposort(out);
    for (Node *n = out->first, *next; n; n = next) { // attributes that constants took the place of
        next = n->next;
        if (n->op == FX_get_attr && !n->n_users)
            node_erase(n);
    }
    const Node *a = g->first, *b = out->first;
    while (a && b && a->id == b->id)
        a = a->next, b = b->next;
    c->matches = a || b;
    return c->matches ? out : (Graph *)g;
}

const GraphPass pass_stable_sort = {"stable_sort", "topological order, as few moves as possible",
                                    stable_sort};
