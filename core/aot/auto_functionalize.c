// auto_functionalize.c: declared custom ops that write their arguments, as PyTorch's
// auto_functionalized_v2 (torch/_higher_order_ops/auto_functionalize.py) takes them: a call that
// names the op, its other arguments by keyword, how each written argument is seen in its base, and
// the bases; it yields the op's results and the bases' new values.
#include "core/aot/tape.h"

#include <string.h>

#include "core/ops/custom.h"

enum { MAX_BASES = 32 };

typedef struct Call {
    Trace *t;
    const Op *op;
    const Value *args; // upper values, in schema order
    VEC(Kwarg) kwargs;
    Traced *bases[MAX_BASES]; // upper, distinct
    int n_bases;
} Call;

static void put(Call *c, const char *name, Value v) {
    vec_push(c->t->arena, &c->kwargs, (Kwarg){name, v});
}

static int base_index(Call *c, Traced *x) {
    for (int i = 0; i < c->n_bases; i++)
        if (functional_shares(c->bases[i], x))
            return i;
    if (c->n_bases == MAX_BASES) {
        trace_fail(c->t, "%s writes more than %d tensors", c->op->qualname, MAX_BASES);
        return 0;
    }
    c->bases[c->n_bases] = functional_base(c->t, x);
    return c->n_bases++;
}

static void note_bases(Call *c, const Value *v) {
    if (v->kind == VAL_tensor)
        base_index(c, traced(v));
    for (int i = 0; v->kind == VAL_list && i < v->n; i++)
        note_bases(c, &v->at[i]);
}

// ---- how a written argument is seen in its base

static bool same_exprs(Sym *s, const Expr *const *a, const Expr *const *b, int n) {
    for (int i = 0; i < n; i++)
        if (!sym_known_eq(s, a[i], b[i]))
            return false;
    return true;
}

// One dimension is shorter, all else is the same.
static bool is_slice(Sym *s, const TensorMeta *base, const TensorMeta *x, int *dim,
                     const Expr **start) {
    int count = 0;
    if (base->ndim != x->ndim || !same_exprs(s, base->stride, x->stride, x->ndim))
        return false;
    for (int i = 0; i < x->ndim; i++)
        if (!sym_known_eq(s, base->size[i], x->size[i])) {
            *dim = i;
            count++;
        }
    int64_t offset, stride;
    if (count != 1 || !expr_int(x->offset, &offset) || !expr_int(x->stride[*dim], &stride) ||
        !stride || offset % stride)
        return false;
    *start = sym_int(s, offset / stride);
    return true;
}

static Value exprs(Call *c, const Expr *const *e, int n) {
    Value list = val_list(c->t->arena, VAL_tuple, n);
    for (int i = 0; i < n; i++)
        list.at[i] = val_sym(e[i]);
    return trace_node_value(c->t, &list);
}

static Value expr_value(Call *c, const Expr *e) {
    Value v = val_sym(e);
    return trace_node_value(c->t, &v);
}

static void put_view(Call *c, const char *prefix, const Value *v) {
    Arena *a = c->t->arena;
    const char *index = arena_printf(a, "%s_base_index", prefix);
    if (v->kind != VAL_tensor) {
        put(c, index, NONE);
        return;
    }
    Traced *x = traced(v);
    int k = base_index(c, x), dim = 0;
    const TensorMeta *m = &x->meta, *base = &c->bases[k]->meta;
    const Expr *start = NULL;
    put(c, index, INT(k));
    if (c->bases[k] == x)
        return;
    Sym *s = c->t->sym;
    if (base->ndim == m->ndim && same_exprs(s, base->size, m->size, m->ndim) &&
        same_exprs(s, base->stride, m->stride, m->ndim) &&
        sym_known_eq(s, base->offset, m->offset)) {
        put(c, arena_printf(a, "%s_alias", prefix), BOOL(true));
    } else if (is_slice(s, base, m, &dim, &start)) {
        put(c, arena_printf(a, "%s_slice_dim", prefix), INT(dim));
        put(c, arena_printf(a, "%s_slice_start", prefix), expr_value(c, start));
        put(c, arena_printf(a, "%s_slice_end", prefix),
            expr_value(c, sym_add(s, start, m->size[dim])));
    } else {
        put(c, arena_printf(a, "%s_size", prefix), exprs(c, m->size, m->ndim));
        put(c, arena_printf(a, "%s_stride", prefix), exprs(c, m->stride, m->ndim));
        put(c, arena_printf(a, "%s_storage_offset", prefix), expr_value(c, m->offset));
    }
}

static void put_written(Call *c, int i) {
    Arena *a = c->t->arena;
    const char *name = c->op->args[i].name;
    const Value *v = &c->args[i];
    if (c->op->args[i].type != AT_tensors) {
        put_view(c, arena_printf(a, "_%s", name), v);
        return;
    }
    bool list = v->kind == VAL_list;
    put(c, arena_printf(a, "_%s_length", name), list ? INT(v->n) : NONE);
    for (int k = 0; list && k < v->n; k++)
        put_view(c, arena_printf(a, "_%s_%d", name, k), &v->at[k]);
}

// ---- the call

static Value below(Trace *t, const Value *v) {
    if (v->kind == VAL_tensor)
        return val_node(functional_sync(t, traced(v))->node);
    if (v->kind != VAL_list && v->kind != VAL_tuple)
        return trace_node_value(t, v);
    Value out = val_list(t->arena, v->kind, v->n);
    for (int i = 0; i < v->n; i++)
        out.at[i] = below(t, &v->at[i]);
    return out;
}

// Results, then bases; an op without results yields None before them.
static bool result_metas(Call *c, Value *out) {
    Trace *t = c->t;
    Value own = NONE;
    MetaCtx m = trace_meta_ctx(t);
    if (!op_meta(&m, c->op, c->args, &own)) {
        t->failed = true;
        return false;
    }
    int n = c->op->n_returns > 1 ? own.n : 1;
    *out = val_list(t->arena, VAL_tuple, n + c->n_bases);
    for (int i = 0; i < n; i++)
        out->at[i] = c->op->n_returns > 1 ? own.at[i] : own;
    for (int i = 0; i < c->n_bases; i++)
        out->at[n + i] = val_tensor(&functional_sync(t, c->bases[i])->meta);
    return true;
}

static Node *emit(Call *c, const Value *metas) {
    Trace *t = c->t;
    Value op = {.kind = VAL_target, .s = c->op->qualname};
    Node *n = graph_node(t->graph, FX_call_function, AUTO_FUNCTIONALIZED, "auto_functionalized_v2",
                         &op, 1, c->kwargs.at, c->kwargs.n);
    n->val = *metas;
    n->stack = t->stack;
    n->modules = t->at ? t->at->modules : NULL;
    n->seq_nr = t->seq_nr;
    n->flags = t->flags;
    if (t->at)
        origins_add(t->origins, n->id, t->at->id, LINK_part);
    return n;
}

static Value item(Trace *t, Node *call, int i, const Value *meta) {
    Value args[2] = {val_node(call), INT(i)};
    Node *n = graph_call(t->graph, op_at(OP_operator_getitem), "getitem", args, 2, NULL, 0);
    n->val = *meta;
    n->stack = call->stack;
    n->modules = call->modules;
    n->seq_nr = call->seq_nr;
    n->flags = call->flags;
    if (t->at)
        origins_add(t->origins, n->id, t->at->id, LINK_part);
    return meta->kind == VAL_tensor ? val_tensor(&trace_tensor(t, meta->tensor, n)->meta) : NONE;
}

Value auto_functionalize(Trace *t, const Op *op, const Value *args) {
    Call c = {.t = t, .op = op, .args = args};
    for (int i = 0; i < op->n_args; i++)
        if (op->args[i].written)
            note_bases(&c, &args[i]);
    for (int i = 0; i < op->n_args; i++)
        if (!op->args[i].written)
            put(&c, op->args[i].name, below(t, &args[i]));
    for (int i = 0; i < op->n_args; i++)
        if (op->args[i].written)
            put_written(&c, i);
    Value all = val_list(t->arena, VAL_list, c.n_bases);
    for (int i = 0; i < c.n_bases; i++)
        all.at[i] = val_node(functional_sync(t, c.bases[i])->node);
    put(&c, "_all_bases", all);
    Value metas;
    if (t->failed || !result_metas(&c, &metas))
        return NONE;
    Node *call = emit(&c, &metas);
    Value *items = ARENA_ARRAY(t->arena, metas.n + 1, Value);
    for (int i = 0; i < metas.n; i++)
        items[i] = item(t, call, i, &metas.at[i]);
    int n = metas.n - c.n_bases;
    for (int i = 0; i < c.n_bases; i++)
        functional_write(t, op, c.bases[i], items[n + i]);
    Value results = val_list(t->arena, VAL_tuple, n);
    for (int i = 0; i < n; i++)
        results.at[i] = functional_wrap(t, &items[i]);
    return op->n_returns > 1 ? results : op->n_returns ? results.at[0] : NONE;
}
