// post_grad_reinplace.c: functional writes become writes in place where nobody needs the old value
// (torch/_inductor/fx_passes/reinplace.py). Scatters into views are first brought to one form, a
// list of views with a source, so that writes through a chain of views become one; what is not
// written in place becomes scatters of single views again.
#include <string.h>

#include "core/inductor/ir.h"
#include "core/inductor/lower.h"
#include "core/inductor/post_grad.h"
#include "core/ops/foreach.h"
#include "core/ops/meta.h"
#include "core/record/fault.h"

typedef struct ViewOp {
    const Op *view;    // aten.select.int …
    const Op *scatter; // aten.select_scatter.default …
    const Value *args; // behind the tensor
    int n_args;
    const Kwarg *kwargs;
    int n_kwargs;
} ViewOp;

// A scatter: base with src written into view by view.
typedef struct Scatter {
    Node *node; // stands for it in the graph: the outermost scatter
    Node *base, *src;
    const ViewOp *views[16];
    int n_views;
    bool in_place;
} Scatter;

typedef struct Reinplace {
    PassCtx *pass;
    Graph *g;
    Value *val;   // by id
    int *storage; // by id
    int *order;   // by id: place in the graph
    int n;        // ids that were there at the beginning
    VEC(Scatter *) scatters;
    VEC(Node *) copies; // into inputs, of results that are written there at once
    Map became;  // id of a scatter's node that is gone -> the node in its place
    Map by_node; // id of a scatter's node -> Scatter *
} Reinplace;

static const struct {
    OpId scatter, view;
} pairs[] = {
    {OP_aten_select_scatter_default, OP_aten_select_int},
    {OP_aten_slice_scatter_default, OP_aten_slice_Tensor},
    {OP_aten_diagonal_scatter_default, OP_aten_diagonal_default},
    {OP_aten_as_strided_scatter_default, OP_aten_as_strided_default},
};

static const Op *view_of_scatter(const Node *n) {
    for (int i = 0; n->def && i < COUNT(pairs); i++)
        if (n->def->id == pairs[i].scatter)
            return op_at(pairs[i].view);
    return NULL;
}

static bool same_args(const Value *a, int n, const Value *b, int m) {
    for (int i = 0; n == m && i < n; i++)
        if (!val_equal(&a[i], &b[i]))
            return false;
    return n == m;
}

static bool is_view_node(const Node *n, const ViewOp *v, const Node *of) {
    return n->def == v->view && n->n_args > 0 && n->args[0].kind == VAL_node &&
           n->args[0].node == of && same_args(n->args + 1, n->n_args - 1, v->args, v->n_args) &&
           n->n_kwargs == v->n_kwargs;
}

static Scatter *scatter_new(Reinplace *r, Node *n, const Op *view) {
    Scatter *s = ARENA_NEW(r->pass->arena, Scatter);
    ViewOp *v = ARENA_NEW(r->pass->arena, ViewOp);
    *v = (ViewOp){view, n->def, n->args + 2, n->n_args - 2, n->kwargs, n->n_kwargs};
    *s = (Scatter){
        .node = n, .base = n->args[0].node, .src = n->args[1].node, .views = {v}, .n_views = 1};
    vec_push(r->pass->arena, &r->scatters, s);
    map_put_id(&r->by_node, (uint64_t)n->id, s);
    return s;
}

// scatter(self, scatter(view(self), src, inner), view) is one scatter through both views.
static bool fuse_scatter(Reinplace *r, Node *n, const Op *view) {
    Scatter *in =
        n->args[1].kind == VAL_node ? map_get_id(&r->by_node, (uint64_t)n->args[1].node->id) : NULL;
    ViewOp *v = ARENA_NEW(r->pass->arena, ViewOp);
    *v = (ViewOp){view, n->def, n->args + 2, n->n_args - 2, n->kwargs, n->n_kwargs};
    if (!in || in->n_views + 1 > COUNT(in->views) || !is_view_node(in->base, v, n->args[0].node) ||
        in->node->n_users != 1)
        return false;
    for (int i = in->n_views; i > 0; i--)
        in->views[i] = in->views[i - 1];
    in->views[0] = v;
    in->n_views++;
    in->base = n->args[0].node;
    map_remove_id(&r->by_node, (uint64_t)in->node->id);
    in->node = n;
    map_put_id(&r->by_node, (uint64_t)n->id, in);
    return true;
}

// The copy that is written has no gaps: strides over those of the base lead elsewhere in it.
static bool addresses_gaps(Reinplace *r, const Node *n) {
    const Value *base = &r->val[n->args[0].node->id];
    MetaCtx c = {.arena = r->pass->arena, .sym = r->g->sym};
    return n->def->id == OP_aten_as_strided_scatter_default && base->kind == VAL_tensor &&
           !meta_is_dense(&c, base->tensor);
}

static void find_scatters(Reinplace *r) {
    GRAPH_EACH (r->g, n) {
        const Op *view = view_of_scatter(n);
        if (!view || n->n_args < 2 || n->args[0].kind != VAL_node ||
            n->args[1].kind != VAL_node || addresses_gaps(r, n))
            continue;
        if (!fuse_scatter(r, n, view))
            scatter_new(r, n, view);
    }
}

// ---- whether a write may go into its target

static bool is_input(const Node *n) {
    return n->op == FX_placeholder || n->op == FX_get_attr;
}

// The op that writes in place for one on lists, if it has a lowering; NULL: none.
static const Op *lists_in_place(Arena *a, const Node *n) {
    if (!n->def || !foreach_each(n->def) || n->def->tags & OPT_mutates)
        return NULL;
    const Op *op =
        op_find_overload(n->def->ns, arena_printf(a, "%s_", n->def->name), n->def->overload);
    return op && lowering_of(op->id) ? op : NULL;
}

static Node *item_of_call(const Node *call, int item) {
    for (int i = 0; i < call->n_users; i++) {
        Node *u = call->users[i];
        if (node_is(u, OP_operator_getitem) && u->args[1].kind == VAL_int && u->args[1].i == item)
            return u;
    }
    return NULL;
}

// The epilogue that copies the result back into the input it was made of.
static Node *copy_back(const Node *target, const Node *result) {
    for (int i = 0; i < result->n_users; i++) {
        Node *u = result->users[i];
        if (node_is(u, OP_aten_copy__default) && u->args[0].kind == VAL_node &&
            u->args[0].node == target && u->args[1].kind == VAL_node && u->args[1].node == result)
            return u;
    }
    return NULL;
}

static bool used_later(const Reinplace *r, const Node *view, const Node *node, const Node *copy,
                       const Node *target) {
    for (int i = 0; i < view->n_users; i++) {
        const Node *u = view->users[i];
        int at = r->order[u->id];
        if (at <= r->order[node->id] || (copy && r->order[copy->id] <= at))
            continue;
        if (node_is(u, OP_aten_copy__default) && u->args[0].kind == VAL_node &&
            u->args[0].node == target)
            continue;
        return true;
    }
    return false;
}

// The parts of a cat are computed in its memory: is one of them read by the write, or after it?
static bool parts_used(const Reinplace *r, const Node *node, const Node *cat) {
    if (!node_is(cat, OP_aten_cat_default))
        return false;
    GRAPH_EACH (r->g, v) {
        bool part = false;
        for (int i = 0; i < cat->args[0].n && !part; i++) {
            const Value *item = &cat->args[0].at[i];
            part = item->kind == VAL_node && !is_input(item->node) &&
                   r->storage[item->node->id] == r->storage[v->id];
        }
        for (int i = 0; i < v->n_users && part; i++)
            if (r->order[v->users[i]->id] >= r->order[node->id])
                return true;
    }
    return false;
}

// Some element may stand at the place of another: sorted by stride, each dimension must step over
// all that is inside of it.
static bool may_overlap(const Reinplace *r, const Node *n) {
    const TensorMeta *t = r->val[n->id].kind == VAL_tensor ? r->val[n->id].tensor : NULL;
    bool done[64] = {false};
    int64_t reach = 1;
    for (int left = t && t->ndim <= 64 ? t->ndim : 0; left > 0; left--) {
        int least = 0;
        int64_t step = INT64_MAX;
        for (int i = 0; i < t->ndim; i++) {
            int64_t s = sym_size_hint(r->g->sym, t->stride[i], 0);
            if (!done[i] && s < step) {
                least = i;
                step = s;
            }
        }
        int64_t size = sym_size_hint(r->g->sym, t->size[least], 0);
        done[least] = true;
        if (size > 1 && step < reach)
            return true;
        reach = size > 1 ? step * (size - 1) + reach : reach;
    }
    return false;
}

// Whether the target is itself a part of a cat that is needed.
static bool is_part_of_cat(const Reinplace *r, const Node *target) {
    if (is_input(target))
        return false;
    GRAPH_EACH(r->g, cat) {
        for (int i = 0; node_is(cat, OP_aten_cat_default) && i < cat->args[0].n; i++) {
            const Value *item = &cat->args[0].at[i];
            if (item->kind == VAL_node && r->storage[item->node->id] == r->storage[target->id])
                return true;
        }
    }
    return false;
}

// node writes target; result: what it yields for it.
static bool can_write(const Reinplace *r, const Node *node, const Node *target,
                      const Node *result) {
    if (is_part_of_cat(r, target) || may_overlap(r, target))
        return false;
    Node *copy = is_input(target) ? copy_back(target, result) : NULL;
    if (is_input(target) && !copy)
        return false;
    GRAPH_EACH (r->g, v) {
        if (r->storage[v->id] != r->storage[target->id])
            continue;
        if (is_input(v) && v != target)
            return false;
        if (used_later(r, v, node, copy, target) || parts_used(r, node, v))
            return false;
    }
    return true;
}

static bool always_mutates(const Scatter *s) {
    for (int i = 0; i < s->n_views; i++)
        if (s->views[i]->view->id == OP_aten_as_strided_default ||
            s->views[i]->view->id == OP_aten_diagonal_default)
            return true;
    return false;
}

// Would be in memory anyway (is_node_realized of fx_utils.py): inputs, results of fallbacks, what
// an output or a library kernel reads.
static bool is_realized(const Node *n) {
    const Node *from = node_is_item(n) ? n->args[0].node : n;
    if (is_input(n) || (from->def && op_is_fallback(from->def)))
        return true;
    for (int i = 0; i < n->n_users; i++) {
        const Node *user = n->users[i];
        if (user->op == FX_output || (user->def && op_needs_realized_inputs(user->def)))
            return true;
    }
    return false;
}

static bool should_write(const Scatter *s) {
    if (always_mutates(s))
        return true;
    if (is_realized(s->base) && is_realized(s->node))
        return true;
    return is_input(s->base) && copy_back(s->base, s->node);
}

// Behind all decisions: until then it stands for a use of the result.
static void drop_copies(Reinplace *r) {
    for (int i = 0; i < r->copies.n; i++) {
        Node *copy = r->copies.at[i];
        node_replace_uses(copy, copy->args[0].node);
        node_erase(copy);
    }
}

// ---- back to ATen

// Nodes made here know no original op, so kernels are not named after them.
static Node *call_named(Reinplace *r, const Op *op, const char *name, const Value *args, int n,
                        const Kwarg *kw, int n_kw, const Node *from, const Value *val) {
    Node *out = graph_call(r->g, op, name, args, n, kw, n_kw);
    origins_add(r->pass->origins, out->id, from->id, LINK_part);
    if (val)
        out->val = *val;
    return out;
}

static const char *default_name(Arena *a, const Op *op) {
    return arena_printf(a, "%s_%s", op->name, op->overload);
}

static Node *call_view(Reinplace *r, const ViewOp *v, Node *of, const Node *from) {
    Value *args = ARENA_ARRAY(r->pass->arena, v->n_args + 1, Value);
    args[0] = val_node(of);
    for (int i = 0; i < v->n_args; i++)
        args[i + 1] = v->args[i];
    Value val = post_grad_value(r->g, v->view, args, v->n_args + 1);
    return call_named(r, v->view, default_name(r->pass->arena, v->view), args, v->n_args + 1,
                      v->kwargs, v->n_kwargs, from, &val);
}

// Bases and sources may be other scatters, written out by now.
static Node *current(const Reinplace *r, Node *n) {
    for (Node *now; (now = map_get_id(&r->became, (uint64_t)n->id)) != NULL;)
        n = now;
    return n;
}

static Node *scatter_functional(Reinplace *r, const Scatter *s, Node *base, int at) {
    const ViewOp *v = s->views[at];
    Node *src = current(r, s->src);
    if (at + 1 < s->n_views)
        src = scatter_functional(r, s, call_view(r, v, base, s->node), at + 1);
    Value *args = ARENA_ARRAY(r->pass->arena, v->n_args + 2, Value);
    args[0] = val_node(base);
    args[1] = val_node(src);
    for (int i = 0; i < v->n_args; i++)
        args[i + 2] = v->args[i];
    return call_named(r, v->scatter, default_name(r->pass->arena, v->scatter), args, v->n_args + 2,
                      v->kwargs, v->n_kwargs, s->node, &base->val);
}

static Node *scatter_mutating(Reinplace *r, const Scatter *s) {
    Node *base = current(r, s->base);
    if (!s->in_place) {
        Value arg = val_node(base);
        base = call_named(r, op_at(OP_aten_clone_default), "clone", &arg, 1, NULL, 0, s->node,
                          &base->val);
        base->target = "torch.ops.aten.clone"; // the packet, as PyTorch's pass calls it
    }
    Node *view = base;
    for (int i = 0; i < s->n_views; i++)
        view = call_view(r, s->views[i], view, s->node);
    Value args[2] = {val_node(view), val_node(current(r, s->src))};
    call_named(r, op_at(OP_aten_copy__default), "copy__default", args, 2, NULL, 0, s->node,
               &view->val);
    return base;
}

static void decompose(Reinplace *r, Scatter *s) {
    graph_set_insert(r->g, s->node);
    Node *by = s->in_place || always_mutates(s) ? scatter_mutating(r, s)
                                                : scatter_functional(r, s, current(r, s->base), 0);
    graph_set_insert(r->g, NULL);
    Node *old = s->node,
         *inner = s->n_views > 1 && old->args[1].kind == VAL_node ? old->args[1].node : NULL;
    node_replace_uses(old, by);
    map_put_id(&r->became, (uint64_t)old->id, by);
    node_erase(old);
    // What was fused away is no longer used.
    while (inner && !inner->n_users && view_of_scatter(inner)) {
        Node *next = inner->args[1].node, *of = inner->args[0].node;
        node_erase(inner);
        if (!of->n_users && of->def && of->def->tags & OPT_view)
            node_erase(of);
        inner = next;
    }
}

static bool may_write(Reinplace *r, Node *n, Node *base) {
    return can_write(r, n, base, n) || fault(r->pass->decisions, FAULT_written_too_early, n->name);
}

static void note_copy(Reinplace *r, const Node *target, const Node *result) {
    Node *copy = copy_back(target, result);
    if (copy)
        vec_push(r->pass->arena, &r->copies, copy);
}

// All items or none, each into an input of its own that gets it copied at the end.
static bool may_write_lists(Reinplace *r, Node *n) {
    const Value *list = &n->args[0];
    for (int i = 0; i < list->n; i++) {
        Node *target = list->at[i].kind == VAL_node ? list->at[i].node : NULL;
        Node *result = item_of_call(n, i);
        if (!target || !result || !copy_back(target, result) ||
            !can_write(r, n, target, result))
            return false;
        for (int k = 0; k < i; k++)
            if (r->storage[list->at[k].node->id] == r->storage[target->id])
                return false;
    }
    return list->n > 0;
}

static void write_lists(Reinplace *r, Node *n) {
    if (!may_write_lists(r, n) || !rewrite_wanted(r->pass, n, "written in place"))
        return;
    for (int i = 0; i < n->args[0].n; i++)
        note_copy(r, n->args[0].at[i].node, item_of_call(n, i));
    node_set_op(n, lists_in_place(r->pass->arena, n));
}

static void write_in_place(Reinplace *r) {
    for (Node *n = r->g->first, *next; n; n = next) {
        next = n->next;
        Scatter *s = map_get_id(&r->by_node, (uint64_t)n->id);
        if (s) {
            if (may_write(r, n, s->base) && should_write(s) &&
                rewrite_wanted(r->pass, n, "written in place")) {
                s->in_place = true;
                note_copy(r, s->base, n);
            }
            continue;
        }
        if (lists_in_place(r->pass->arena, n))
            write_lists(r, n);
        if (!node_is(n, OP_aten_index_put_default) || n->args[0].kind != VAL_node ||
            !may_write(r, n, n->args[0].node))
            continue;
        if (!rewrite_wanted(r->pass, n, "its target is not used any more"))
            continue;
        node_set_op(n, op_at(OP_aten_index_put__default));
        note_copy(r, n->args[0].node, n);
    }
    drop_copies(r);
}

static Graph *reinplace(PassCtx *c, const Graph *g) {
    bool any = false;
    GRAPH_EACH (g, n)
        any |= node_is(n, OP_aten_index_put_default) || view_of_scatter(n) ||
               lists_in_place(c->arena, n);
    if (!any || !pass_wanted(c, "reinplace_inplaceable_ops"))
        return (Graph *)g;
    Reinplace r = {.pass = c,
                   .g = graph_copy(c->arena, g),
                   .by_node = {.arena = c->arena},
                   .became = {.arena = c->arena}};
    r.val = fake_values(c->arena, r.g, 0, NULL);
    r.storage = node_storages(c->arena, r.g, r.val);
    r.n = r.g->by_id.n;
    r.order = ARENA_ARRAY(c->arena, r.n, int);
    int at = 0;
    GRAPH_EACH (r.g, n)
        r.order[n->id] = at++;
    find_scatters(&r);
    write_in_place(&r);
    for (int pass = 0; pass < 2; pass++) // those left functional first
        for (int i = 0; i < r.scatters.n; i++)
            if (r.scatters.at[i]->in_place == (pass == 1)) {
                c->matches += pass == 0;
                decompose(&r, r.scatters.at[i]);
            }
    return c->matches ? r.g : (Graph *)g;
}

const GraphPass pass_reinplace = {"reinplace_inplaceable_ops",
                                  "writes go into their target where the old value is not needed",
                                  reinplace};
