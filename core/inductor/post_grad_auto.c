// post_grad_auto.c: custom ops that write their arguments get their writes back
// (decompose_auto_functionalized of torch/_inductor/fx_passes/post_grad.py, and what reinplace.py
// decides for them): the call of auto_functionalized or auto_functionalized_v2 becomes one of the
// op on clones of what it writes, or on that itself where nobody needs its old value. The first
// form, which exported programs have, gets it by the op's keywords, the second as bases.
#include <string.h>

#include "core/inductor/ir.h"
#include "core/inductor/post_grad.h"
#include "core/ops/custom.h"

static const char target[] = "torch.ops.higher_order.auto_functionalized",
                  second[] = "torch.ops.higher_order.auto_functionalized_v2";

typedef struct Work {
    PassCtx *pass;
    Graph *g;
    int *storage; // by id, of the nodes that were there at the beginning
    int *order;   // likewise: place in the graph
    int n;        // ids then
    Node *call;   // being taken apart
    const Op *op;
    bool second;  // its form
    Node **bases; // what stands for each base, or for each tensor that the first form writes
    int n_bases;
    int used; // by the arguments so far, in the first form
} Work;

static bool is_call(const Node *n) {
    return n->op == FX_call_function &&
           (!strcmp(n->target, target) || !strcmp(n->target, second)) && n->n_args == 1 &&
           n->args[0].kind == VAL_target;
}

// Of a call that was not known when it was traced, items are calls of Python's getitem.
static bool is_item(const Node *n) {
    return n->op == FX_call_function && !strcmp(n->target, "_operator.getitem") && n->n_args == 2;
}

static Node *result(const Node *call, int i) {
    int64_t k;
    for (int u = 0; u < call->n_users; u++) {
        Node *n = call->users[u];
        if (is_item(n) && val_as_int(&n->args[1], &k) && k == i)
            return n;
    }
    return NULL;
}

// ---- whether a base may be written itself

static Node *copy_back(const Node *base, const Node *value) {
    for (int i = 0; value && i < value->n_users; i++) {
        Node *u = value->users[i];
        if (node_is(u, OP_aten_copy__default) && u->args[0].kind == VAL_node &&
            u->args[0].node == base && u->args[1].kind == VAL_node && u->args[1].node == value)
            return u;
    }
    return NULL;
}

static bool used_after(const Work *w, const Node *n, const Node *copy) {
    for (int i = 0; i < n->n_users; i++) {
        const Node *u = n->users[i];
        if (u != copy && u->id < w->n && w->order[u->id] > w->order[w->call->id])
            return true;
    }
    return false;
}

static bool may_write(const Work *w, const Node *base, const Node *value) {
    bool input = base->op == FX_placeholder;
    const Node *copy = input ? copy_back(base, value) : NULL;
    if (base->op == FX_get_attr || (input && !copy) || base->id >= w->n)
        return false;
    GRAPH_EACH (w->g, n) {
        if (n->id >= w->n || w->storage[n->id] != w->storage[base->id])
            continue;
        if ((n != base && n->op == FX_placeholder) || used_after(w, n, copy))
            return false;
    }
    return true;
}

// ---- nodes

static Node *add(Work *w, const Op *op, const Value *args, int n, const Value *val) {
    Node *made = graph_call(w->g, op, NULL, args, n, NULL, 0);
    node_copy_meta(made, w->call);
    made->flags &= ~(unsigned)NODE_opaque;
    made->val = *val;
    origins_add(w->pass->origins, made->id, w->call->id, LINK_part);
    return made;
}

static Value exprs(Work *w, const Expr *const *e, int n) {
    return val_exprs(w->g->arena, e, n);
}

static Node *as_strided(Work *w, Node *of, Value size, Value stride, Value offset,
                        const TensorMeta *m) {
    Value args[4] = {val_node(of), size, stride, offset}, val = val_tensor(m);
    return add(w, op_at(OP_aten_as_strided_default), args, 4, &val);
}

// clone_preserve_strides: the memory as one dimension, copied, seen as before.
static Node *clone_base(Work *w, Node *base) {
    const TensorMeta *m = node_tensor(base);
    Sym *s = w->g->sym;
    const Expr *needed = sym_add_int(s, m->offset ? m->offset : sym_int(s, 0), 1);
    for (int i = 0; i < m->ndim; i++)
        needed = sym_add(s, needed, sym_mul(s, sym_add_int(s, m->size[i], -1), m->stride[i]));
    const Expr *one = sym_int(s, 1);
    TensorMeta *flat = meta_contiguous(w->g->arena, s, m->dtype, 1, &needed, m->device);
    Node *all = as_strided(w, base, exprs(w, &needed, 1), exprs(w, &one, 1), val_int(0), flat);
    Value arg = val_node(all), val = val_tensor(flat);
    Node *copy = add(w, op_at(OP_aten_clone_default), &arg, 1, &val);
    return as_strided(w, copy, exprs(w, m->size, m->ndim), exprs(w, m->stride, m->ndim),
                      val_sym(m->offset ? m->offset : sym_int(s, 0)), m);
}

// ---- arguments

static const Value *kwarg(const Work *w, const char *prefix, const char *what) {
    Arena tmp = {0};
    const Value *v = node_arg(w->call, -1, arena_printf(&tmp, "%s%s", prefix, what));
    arena_free(&tmp);
    return v;
}

static Node *view_of(Work *w, Node *base, const char *prefix) {
    const TensorMeta *b = node_tensor(base);
    const Value *dim = kwarg(w, prefix, "_slice_dim"), *size = kwarg(w, prefix, "_size");
    if (kwarg(w, prefix, "_alias")) {
        Value arg = val_node(base), val = val_tensor(b);
        return add(w, op_at(OP_aten_alias_default), &arg, 1, &val);
    }
    Value args[4] = {val_node(base)}, in[5] = {val_tensor(b)}, out;
    const Op *op = NULL;
    if (dim && kwarg(w, prefix, "_slice_start") && kwarg(w, prefix, "_slice_end")) {
        args[1] = *dim;
        args[2] = *kwarg(w, prefix, "_slice_start");
        args[3] = *kwarg(w, prefix, "_slice_end");
        op = op_at(OP_aten_slice_Tensor);
    } else if (size && kwarg(w, prefix, "_stride") && kwarg(w, prefix, "_storage_offset")) {
        args[1] = *size;
        args[2] = *kwarg(w, prefix, "_stride");
        args[3] = *kwarg(w, prefix, "_storage_offset");
        args[1].kind = args[2].kind = VAL_list;
        op = op_at(OP_aten_as_strided_default);
    }
    if (!op)
        return base;
    for (int i = 1; i < 4; i++)
        in[i] = args[i].kind == VAL_node ? args[i].node->val : args[i];
    in[4] = val_int(1); // the slice's step
    Diag quiet = {.arena = w->g->arena};
    MetaCtx m = {.arena = w->g->arena, .sym = w->g->sym, .diag = &quiet};
    return op_meta(&m, op, in, &out) ? add(w, op, args, 4, &out) : base;
}

// Of the first form: the same tensor or list, of what stands for each now.
static Value written_plain(Work *w, const Value *given) {
    if (!given)
        return val_none();
    if (given->kind == VAL_node)
        return val_node(w->bases[w->used++]);
    if (given->kind != VAL_list && given->kind != VAL_tuple)
        return *given;
    Value list = val_list(w->g->arena, VAL_list, given->n);
    for (int i = 0; i < given->n; i++)
        list.at[i] = written_plain(w, &given->at[i]);
    return list;
}

static Value written(Work *w, const char *prefix) {
    int64_t i;
    const Value *index = kwarg(w, prefix, "_base_index"), *bases = kwarg(w, "_all_bases", "");
    if (!index || !val_as_int(index, &i) || i < 0 || !bases || i >= bases->n)
        return val_none();
    return val_node(view_of(w, w->bases[i], prefix));
}

static Value argument(Work *w, const SchemaArg *a) {
    Arena *arena = w->g->arena;
    const char *prefix = arena_printf(arena, "_%s", a->name);
    int64_t n;
    if (!a->written) {
        const Value *v = kwarg(w, a->name, "");
        return v ? *v : a->dflt;
    }
    if (!w->second)
        return written_plain(w, kwarg(w, a->name, ""));
    if (a->type != AT_tensors)
        return written(w, prefix);
    const Value *length = kwarg(w, prefix, "_length");
    if (!length || !val_as_int(length, &n) || n < 0 || n > 4096)
        return val_none();
    Value list = val_list(arena, VAL_list, (int)n);
    for (int i = 0; i < n; i++)
        list.at[i] = written(w, arena_printf(arena, "%s_%d", prefix, i));
    return list;
}

// Positional and keyword arguments as the dispatcher hands them on: without defaults at the end.
static Node *call_op(Work *w) {
    const Op *op = w->op;
    Value *args = ARENA_ARRAY(w->g->arena, op->n_args + 1, Value);
    Kwarg *kw = ARENA_ARRAY(w->g->arena, op->n_args + 1, Kwarg);
    int n = 0, n_kw = 0;
    for (int i = 0; i < op->n_args; i++) {
        Value v = argument(w, &op->args[i]);
        bool dflt = op->args[i].has_default && val_equal(&v, &op->args[i].dflt);
        if (op->args[i].kwarg_only) {
            if (!dflt)
                kw[n_kw++] = (Kwarg){op->args[i].name, v};
            continue;
        }
        args[i] = v;
        n = dflt ? n : i + 1;
    }
    Node *made = graph_call(w->g, op, NULL, args, n, kw, n_kw);
    node_copy_meta(made, w->call);
    origins_add(w->pass->origins, made->id, w->call->id, LINK_same);
    return made;
}

static Node *take_item(Work *w, Node *of, int i, const Value *val) {
    Value args[2] = {val_node(of), val_int(i)};
    return add(w, op_at(OP_operator_getitem), args, 2, val);
}

// ---- one call

static void replace_by(Node *old, Node *by) {
    if (!old)
        return;
    node_replace_uses(old, by);
    node_erase(old);
}

// The new value of a base is the base; the copy to an input goes, since it holds that already.
static void replace_base(Node *old, Node *by) {
    Node *copy = old ? copy_back(by, old) : NULL;
    replace_by(copy, by);
    replace_by(old, by);
}

// Results of the first form, one a written argument: a list's are taken from a list.
static void replace_written(Work *w, int results) {
    for (int i = 0, k = 0; i < w->op->n_args; i++) {
        const Value *v = w->op->args[i].written ? kwarg(w, w->op->args[i].name, "") : NULL;
        Node *old = v ? result(w->call, results) : NULL;
        results += w->op->args[i].written;
        if (v && v->kind == VAL_node)
            replace_base(old, w->bases[k++]);
        for (int m = 0; v && (v->kind == VAL_list || v->kind == VAL_tuple) && m < v->n; m++)
            if (v->at[m].kind == VAL_node) {
                Node *by = w->bases[k++];
                if (old)
                    replace_base(result(old, m), by);
            }
        if (old && v->kind != VAL_node && !old->n_users)
            node_erase(old);
    }
}

static void replace_results(Work *w, Node *made) {
    int n = w->op->n_returns > 1 ? w->op->n_returns : 1;
    const Value *all = &w->call->val;
    bool known = (all->kind == VAL_tuple || all->kind == VAL_list) && all->n >= n;
    made->val = !known                 ? val_none()
                : w->op->n_returns > 1 ? val_list(w->g->arena, VAL_tuple, n)
                : w->op->n_returns     ? all->at[0]
                                       : val_none();
    for (int i = 0; i < made->val.n && w->op->n_returns > 1; i++)
        made->val.at[i] = all->at[i];
    for (int i = 0; i < n; i++) {
        Node *old = result(w->call, i);
        if (old)
            replace_by(old, w->op->n_returns > 1 ? take_item(w, made, i, &old->val) : made);
    }
    for (int i = 0; w->second && i < w->n_bases; i++)
        replace_base(result(w->call, n + i), w->bases[i]);
    if (!w->second)
        replace_written(w, n);
}

// What stands for a tensor that is written, whose new value is `value` if anybody asks for it.
static Node *stand_in(Work *w, Node *base, const Node *value) {
    if (!base || !node_tensor(base))
        return base;
    bool taken = false; // by another argument
    for (int i = 0; i < w->n_bases; i++)
        taken = taken || (w->bases[i] && w->bases[i]->id < w->n && base->id < w->n &&
                          w->storage[w->bases[i]->id] == w->storage[base->id]);
    bool in_place = !taken && may_write(w, base, value) &&
                    rewrite_wanted(w->pass, w->call, "its base is not used any more");
    return in_place ? base : clone_base(w, base);
}

static void add_bases(Work *w, const Value *v, const Node *value) {
    if (v && v->kind == VAL_node)
        w->bases[w->n_bases++] = stand_in(w, v->node, value);
    for (int i = 0; v && (v->kind == VAL_list || v->kind == VAL_tuple) && i < v->n; i++)
        add_bases(w, &v->at[i], value ? result(value, i) : NULL);
}

static int count_nodes(const Value *v) {
    int n = v->kind == VAL_node;
    for (int i = 0; (v->kind == VAL_list || v->kind == VAL_tuple) && i < v->n; i++)
        n += count_nodes(&v->at[i]);
    return n;
}

static void take_apart(Work *w) {
    const Value *bases = kwarg(w, "_all_bases", "");
    int results = w->op->n_returns > 1 ? w->op->n_returns : 1, most = bases ? bases->n : 0;
    for (int i = 0; i < w->call->n_kwargs; i++)
        most += count_nodes(&w->call->kwargs[i].value);
    w->second = !strcmp(w->call->target, second);
    w->bases = ARENA_ARRAY(w->g->arena, most + 1, Node *);
    w->n_bases = w->used = 0;
    graph_set_insert(w->g, w->call);
    for (int i = 0; w->second && bases && i < bases->n; i++)
        w->bases[w->n_bases++] =
            stand_in(w, bases->at[i].kind == VAL_node ? bases->at[i].node : NULL,
                     result(w->call, results + i));
    for (int i = 0, k = results; !w->second && i < w->op->n_args; i++)
        if (w->op->args[i].written)
            add_bases(w, kwarg(w, w->op->args[i].name, ""), result(w->call, k++));
    Node *made = call_op(w);
    replace_results(w, made);
    graph_set_insert(w->g, NULL);
    if (!w->call->n_users)
        node_erase(w->call);
    w->pass->matches++;
}

// A result of the call, or of a list among its results.
static bool is_part_of(const Node *n, const Node *call) {
    for (int depth = 0; depth < 2; depth++) {
        if (!is_item(n) || n->args[0].kind != VAL_node)
            return false;
        n = n->args[0].node;
        if (n == call)
            return true;
    }
    return false;
}

static Graph *decompose(PassCtx *c, const Graph *g) {
    bool any = false;
    GRAPH_EACH (g, n)
        any |= is_call(n) && opset_find(g->ops, n->args[0].s);
    if (!any || !pass_wanted(c, "decompose_auto_functionalized"))
        return (Graph *)g;
    Work w = {.pass = c, .g = graph_copy(c->arena, g)};
    Value *val = fake_values(c->arena, w.g, 0, NULL);
    w.storage = node_storages(c->arena, w.g, val);
    w.n = w.g->by_id.n;
    w.order = ARENA_ARRAY(c->arena, w.n, int);
    int at = 0;
    GRAPH_EACH (w.g, n)
        w.order[n->id] = at++;
    for (Node *n = w.g->first, *next; n; n = next) {
        next = n->next;
        if (!is_call(n) || !(w.op = opset_find(g->ops, n->args[0].s)))
            continue;
        w.call = n;
        // Its results stand right behind it and go with it.
        while (next && is_part_of(next, n))
            next = next->next;
        take_apart(&w);
    }
    return w.g;
}

const GraphPass pass_decompose_auto_functionalized = {
    "decompose_auto_functionalized", "custom ops write their arguments again", decompose};
