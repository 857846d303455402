// joint_randperm.c: positions that a permutation gives are all different and all inside
// (fx_passes/misc_patterns.py): x[randperm(n)[:k]] needs no check of its index, and index_add at
// such positions no atomic sum: it reads, adds and stores. Both the joint graph's and the post-grad
// patterns look for it. The permutation is drawn anew by the nodes that come in place.
#include "core/aot/joint.h"

typedef struct Permuted {
    const Node *x, *slice, *perm;
    const Node *source; // that is added; NULL: x is only read
} Permuted;

static const Node *node_of(const Value *v) {
    return v && v->kind == VAL_node ? v->node : NULL;
}

static bool same_value(Sym *s, const Value *v, const Expr *size) {
    const Value *is = v->kind == VAL_node ? &v->node->val : v;
    const Expr *e;
    return val_as_expr(s, is, &e) && sym_known_eq(s, e, size);
}

// randperm(x.shape[0])[:k], of which nothing else sees the whole permutation.
static bool find_slice(const Node *n, Permuted *p) {
    const Value *list = node_arg(n, 1, "indices");
    const TensorMeta *x = p->x ? node_tensor(p->x) : NULL;
    p->slice = list && list->n == 1 ? node_of(&list->at[0]) : NULL;
    if (!x || !x->ndim || !p->slice || !node_is(p->slice, OP_aten_slice_Tensor) ||
        p->slice->n_args != 4)
        return false;
    p->perm = node_of(&p->slice->args[0]);
    if (!p->perm || !node_is(p->perm, OP_aten_randperm_default) || p->perm->n_users != 1 ||
        p->perm->n_args != 1)
        return false;
    const TensorMeta *made = node_tensor(p->perm);
    int64_t dim, from;
    return made && device_equal(made->device, x->device) &&
           val_as_int(&p->slice->args[1], &dim) && dim == 0 &&
           val_as_int(&p->slice->args[2], &from) && from == 0 &&
           same_value(n->graph->sym, &p->perm->args[0], x->size[0]);
}

static bool find(const Node *n, Permuted *p) {
    *p = (Permuted){.x = n->n_args ? node_of(&n->args[0]) : NULL};
    if (node_is(n, OP_aten_index_Tensor))
        return n->n_args == 2 && find_slice(n, p);
    if (!node_is(n, OP_aten_index_put_default) || n->n_args != 4 ||
        n->args[3].kind != VAL_bool || !n->args[3].b || !find_slice(n, p))
        return false;
    p->source = node_of(&n->args[2]);
    const TensorMeta *source = p->source ? node_tensor(p->source) : NULL;
    return source && source->ndim &&
           same_value(n->graph->sym, &p->slice->args[3], source->size[0]);
}

bool randperm_is_index(const Node *n) {
    Permuted p;
    return find(n, &p);
}

static Node *again(PassCtx *ctx, Node *at, const Node *old, Value first) {
    Value args[4] = {first};
    for (int i = 1; i < old->n_args; i++)
        args[i] = old->args[i];
    return joint_put(ctx, at, old->def->id, args, old->n_args, old->kwargs, old->n_kwargs);
}

void randperm_unsafe_index(PassCtx *ctx, Node *n) {
    Permuted p;
    if (!find(n, &p))
        return;
    Node *slice = (Node *)(uintptr_t)p.slice, *perm = (Node *)(uintptr_t)p.perm;
    // Others may use the positions, so that they must be there before those.
    Node *fresh = again(ctx, slice, perm, perm->args[0]);
    Node *index = again(ctx, slice, slice, val_node(fresh));
    Value at[4] = {n->args[0], val_list(n->graph->arena, VAL_list, 1)};
    at[1].at[0] = val_node(index);
    Node *r = joint_put(ctx, n, OP_aten__unsafe_index_Tensor, at, 2, NULL, 0);
    if (p.source) {
        Value sum[2] = {val_node(r), n->args[2]};
        at[2] = val_node(joint_put(ctx, n, OP_aten_add_Tensor, sum, 2, NULL, 0));
        r = joint_put(ctx, n, OP_aten_index_put_default, at, 3, NULL, 0);
    }
    node_replace_uses(slice, index);
    node_replace_uses(n, r);
    node_erase(n);
    node_erase(slice);
    node_erase(perm);
}
