// post_grad.c: the post-grad passes in PyTorch's order (torch/_inductor/fx_passes/post_grad.py),
// and those of them that take or move single nodes. Each works on a copy and gives the graph back
// unchanged if it found nothing to do.
#include "core/inductor/post_grad.h"

#include <string.h>

#include "core/aot/noop.h"
#include "core/inductor/ir.h"
#include "core/record/fault.h"

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

static bool noop_wanted(PassCtx *c, const Node *n) {
    return rewrite_wanted(c, n, "changes nothing");
}

static Graph *remove_noop_ops(PassCtx *c, const Graph *g) {
    if (!pass_wanted(c, "remove_noop_ops"))
        return (Graph *)g;
    Value *val = fake_values(c->arena, g, 0, NULL);
    return remove_noops(c, g, val, node_storages(c->arena, g, val), noop_wanted);
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

Value post_grad_value(const Graph *g, const Op *op, const Value *args, int n) {
    Value in[16] = {0}, *bound = ARENA_ARRAY(g->arena, op->n_args, Value), out = {0};
    Diag quiet = {.arena = g->arena};
    for (int i = 0; i < n && i < 16; i++)
        in[i] = args[i].kind == VAL_node ? args[i].node->val : args[i];
    MetaCtx c = {.arena = g->arena, .sym = g->sym, .diag = &quiet};
    if (n > 16 || !op->meta ||
        !op_bind(op, in, n, NULL, NULL, 0, bound, g->arena, &quiet, (Place){0}) ||
        !op_meta(&c, op, bound, &out))
        return val_none();
    return out;
}

// What takes the place of add and its product.
typedef struct Replacement {
    PassCtx *c;
    Graph *g;
    const Node *add, *mm;
} Replacement;

static Node *call(const Replacement *r, OpId id, const char *name, const Value *args, int n) {
    Node *made = graph_call(r->g, op_at(id), name, args, n, NULL, 0);
    made->val = post_grad_value(r->g, op_at(id), args, n);
    made->original_aten = "aten.addmm.default";
    origins_add(r->c->origins, made->id, r->add->id, LINK_part);
    origins_add(r->c->origins, made->id, r->mm->id, LINK_part);
    return made;
}

static bool is_small_row(const TensorMeta *a, const TensorMeta *b) {
    int64_t k, n;
    return a->device.type == DEV_cpu && (a->dtype == DT_f32 || a->dtype == DT_f64) &&
           expr_is(a->size[0], 1) && expr_int(b->size[0], &k) && expr_int(b->size[1], &n) &&
           k <= 16 && n <= 16;
}

// The replacement is traced, and a row times a small matrix is taken apart there (addmm of
// torch/_inductor/decomposition.py).
static Node *row_by_matrix(const Replacement *r, Value inp, Value row, Value matrix) {
    Value turned = val_list(r->g->arena, VAL_list, 2), first = val_list(r->g->arena, VAL_list, 1);
    turned.at[0] = val_int(1);
    turned.at[1] = first.at[0] = val_int(0);
    const Value one = val_int(1);
    Value t =
        val_node(call(r, OP_aten_permute_default, "permute_default", (Value[]){row, turned}, 2));
    Value m = val_node(call(r, OP_aten_mul_Tensor, "mul_tensor", (Value[]){t, matrix}, 2));
    Value sum = val_node(call(r, OP_aten_sum_dim_IntList, "sum_dim_int_list",
                              (Value[]){m, first, val_bool(true)}, 3));
    sum = val_node(call(r, OP_aten_mul_Tensor, "mul_tensor", (Value[]){sum, one}, 2));
    inp = val_node(call(r, OP_aten_mul_Tensor, "mul_tensor", (Value[]){inp, one}, 2));
    return call(r, OP_aten_add_Tensor, "add_tensor", (Value[]){sum, inp}, 2);
}

static void fuse_addmm(PassCtx *c, Graph *g, Node *add, int k) {
    Node *mm = add->args[k].node;
    Replacement r = {c, g, add, mm};
    Value args[3] = {add->args[1 - k], mm->args[0], mm->args[1]};
    graph_set_insert(g, add);
    Node *n = is_small_row(tensor_of(&args[1]), tensor_of(&args[2]))
                  ? row_by_matrix(&r, args[0], args[1], args[2])
                  : call(&r, OP_aten_addmm_default, "addmm_default", args, 3);
    graph_set_insert(g, NULL);
    if (node_is(n, OP_aten_addmm_default) &&
        fault(c->decisions, FAULT_addmm_bias_doubled, add->name)) {
        Kwarg beta = {"beta", val_int(2)};
        node_set_args(n, args, 3, &beta, 1);
    }
    n->val = add->val;
    node_replace_uses(add, n);
    node_erase(add);
    node_erase(mm);
}

static Graph *add_mm(PassCtx *c, const Graph *g) {
    static const PostRewrite *const rules[] = {&post_grad_splitwithsizes_cat,
                                               &post_grad_cat_splitwithsizes};
    g = post_grad_rewrite(c, g, "pass_pattern_2", rules, COUNT(rules));
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

const GraphPass pass_add_mm = {
    "pass_pattern_2", "mm + add become addmm; splits and concatenations that undo each other go",
    add_mm};

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
