// post_grad_cat.c: concatenations that can be spared (fx_passes/post_grad.py): one whose result is
// concatenated again with its own beginning, one that puts the parts of a split together again, and
// one that is split into what it was made of. PyTorch replaces such nodes by a call that is lowered
// to what stands here as nodes.
#include "core/inductor/post_grad.h"

static Node *node_of(const Value *v) {
    return v->kind == VAL_node ? v->node : NULL;
}

static bool int_is(const Value *v, int64_t want) {
    int64_t k;
    return val_as_int(v, &k) && k == want;
}

// ---- cat([cat(xs, 1), slice(that, 1, 0, k)], 1), k no more than xs[0] has: cat(xs + slice)

static Node *cat_in_cat(const Node *n) {
    const Value *list = n->args;
    if (!node_is(n, OP_aten_cat_default) || n->n_args != 2 || n->n_kwargs || list->n != 2 ||
        !int_is(&n->args[1], 1))
        return NULL;
    Node *cat = node_of(&list->at[0]), *slice = node_of(&list->at[1]);
    int64_t k;
    if (!cat || !slice || !node_is(cat, OP_aten_cat_default) || cat->n_users != 2 ||
        cat->n_args != 2 || !int_is(&cat->args[1], 1) || !node_is(slice, OP_aten_slice_Tensor) ||
        slice->n_args != 4 || slice->n_users != 1 || node_of(&slice->args[0]) != cat ||
        !int_is(&slice->args[1], 1) || !int_is(&slice->args[2], 0) ||
        !val_as_int(&slice->args[3], &k) || k < 0 || !cat->args[0].n)
        return NULL;
    const Node *first = node_of(&cat->args[0].at[0]);
    const TensorMeta *m = first ? node_tensor(first) : NULL;
    Sym *sym = n->graph->sym;
    return m && m->ndim > 1 && sym_known_le(sym, sym_int(sym, k), m->size[1]) ? cat : NULL;
}

static bool is_cat_slice_cat(const Node *n) {
    return cat_in_cat(n) != NULL;
}

// The beginning of x along dimension 1.
static Value beginning_of(Arena *a, Sym *sym, const TensorMeta *x, const Value *end) {
    TensorMeta *m = ARENA_NEW(a, TensorMeta);
    int64_t k;
    *m = *x;
    m->size = ARENA_ARRAY(a, x->ndim, const Expr *);
    for (int i = 0; i < x->ndim; i++)
        m->size[i] = i == 1 && val_as_int(end, &k) ? sym_int(sym, k) : x->size[i];
    return val_tensor(m);
}

static void fold_cats(PassCtx *c, Node *n) {
    Node *cat = cat_in_cat(n), *slice = n->args[0].at[1].node;
    const Value *xs = &cat->args[0];
    Value beginning[4] = {xs->at[0], slice->args[1], slice->args[2], slice->args[3]};
    graph_set_insert(n->graph, n);
    Node *part = graph_call(n->graph, op_at(OP_aten_slice_Tensor), NULL, beginning, 4, NULL, 0);
    Value args[2] = {val_list(n->graph->arena, VAL_list, xs->n + 1), n->args[1]};
    for (int i = 0; i < xs->n; i++)
        args[0].at[i] = xs->at[i];
    args[0].at[xs->n] = val_node(part);
    Node *r = graph_call(n->graph, op_at(OP_aten_cat_default), NULL, args, 2, NULL, 0);
    graph_set_insert(n->graph, NULL);
    node_copy_meta(part, n);
    part->val = beginning_of(n->graph->arena, n->graph->sym, node_tensor(xs->at[0].node),
                             &slice->args[3]);
    node_copy_meta(r, n);
    origins_add(c->origins, part->id, slice->id, LINK_part);
    origins_add(c->origins, r->id, n->id, LINK_same);
    node_replace_uses(n, r);
    node_erase(n);
    node_erase(slice);
    node_erase(cat);
}

// ---- cat(all parts of split_with_sizes(x), in order): x

static Node *split_of(const Value *item, int i) {
    Node *get = node_of(item);
    return get && node_is_item(get) && get->n_users == 1 && int_is(&get->args[1], i)
               ? node_of(&get->args[0])
               : NULL;
}

static bool same_dim(const Node *split, const Node *cat) {
    int64_t a, b;
    return split->n_args == 3 && cat->n_args == 2 && val_as_int(&split->args[2], &a) &&
           val_as_int(&cat->args[1], &b) && a == b;
}

static bool is_split_and_cat(const Node *n) {
    const Value *list = n->args;
    Node *split = list->n ? split_of(&list->at[0], 0) : NULL;
    if (!split || !node_is(split, OP_aten_split_with_sizes_default) || !same_dim(split, n) ||
        split->args[1].n != list->n || n->n_kwargs || !node_of(&split->args[0]))
        return false;
    for (int i = 0; i < list->n; i++)
        if (split_of(&list->at[i], i) != split)
            return false;
    return true;
}

static void take_whole(PassCtx *c, Node *n) {
    (void)c;
    int count = n->args[0].n;
    Node **items = ARENA_ARRAY(n->graph->arena, count + 1, Node *);
    for (int i = 0; i < count; i++)
        items[i] = n->args[0].at[i].node;
    Node *split = items[0]->args[0].node;
    node_replace_uses(n, split->args[0].node);
    node_erase(n);
    for (int i = 0; i < count; i++)
        node_erase(items[i]);
    if (!split->n_users)
        node_erase(split);
}

// ---- split_with_sizes(cat(xs), their sizes): xs

static bool is_cat_and_split(const Node *n) {
    const Node *cat = n->n_args ? node_of(&n->args[0]) : NULL;
    int64_t dim;
    if (!cat || !node_is(cat, OP_aten_cat_default) || cat->n_users != 1 || !same_dim(n, cat) ||
        n->n_kwargs || cat->n_kwargs || cat->args[0].n != n->args[1].n ||
        !val_as_int(&n->args[2], &dim))
        return false;
    for (int i = 0; i < n->n_users; i++)
        if (!node_is_item(n->users[i]))
            return false;
    for (int i = 0; i < cat->args[0].n; i++) {
        const Node *x = node_of(&cat->args[0].at[i]);
        const TensorMeta *m = x ? node_tensor(x) : NULL;
        int at = m ? (int)(dim < 0 ? dim + m->ndim : dim) : -1;
        const Value *size = &n->args[1].at[i];
        const Expr *want;
        if (at < 0 || at >= m->ndim ||
            !val_as_expr(n->graph->sym, size->kind == VAL_node ? &size->node->val : size, &want) ||
            m->size[at] != want)
            return false;
    }
    return true;
}

static void take_parts(PassCtx *c, Node *n) {
    (void)c;
    Node *cat = n->args[0].node;
    while (n->n_users) {
        Node *item = n->users[0];
        int64_t k;
        bool is_int = val_as_int(&item->args[1], &k);
        if (!is_int || k < 0 || k >= cat->args[0].n)
            return;
        node_replace_uses(item, cat->args[0].at[k].node);
        node_erase(item);
    }
    node_erase(n);
    node_erase(cat);
}

const PostRewrite post_grad_cat_slice_cat = {OP_aten_cat_default, is_cat_slice_cat, fold_cats,
                                             "cat_slice_cat: one concatenation in place of two"};
const PostRewrite post_grad_splitwithsizes_cat = {
    OP_aten_cat_default, is_split_and_cat, take_whole,
    "splitwithsizes_cat: the parts of a split, together again"};
const PostRewrite post_grad_cat_splitwithsizes = {
    OP_aten_split_with_sizes_default, is_cat_and_split, take_parts,
    "cat_splitwithsizes: split into what was put together"};

static const PostRewrite *match(const PostRewrite *const *rules, int n_rules, const Node *n) {
    for (int i = 0; i < n_rules; i++)
        if (node_is(n, rules[i]->op) && rules[i]->match(n))
            return rules[i];
    return NULL;
}

Graph *post_grad_rewrite(PassCtx *c, const Graph *given, const char *pass,
                         const PostRewrite *const *rules, int n_rules) {
    bool any = false;
    GRAPH_EACH (given, n)
        any = any || match(rules, n_rules, n);
    if (!any || !pass_wanted(c, pass))
        return (Graph *)(uintptr_t)given;
    Graph *g = graph_copy(c->arena, given);
    int before = c->matches;
    // From the last node to the first, and nothing that a rewrite has made.
    for (const Node *old = given->last; old; old = old->prev) {
        Node *n = graph_by_id(g, old->id);
        const PostRewrite *r = n ? match(rules, n_rules, n) : NULL;
        if (r && rewrite_wanted(c, n, r->reason))
            r->apply(c, n);
    }
    return c->matches > before ? g : (Graph *)(uintptr_t)given;
}
