// fake_prop.c: what every node yields, by the ops' meta functions (PyTorch's FakeTensorProp). A
// graph read from text has sizes but no strides, and tuples have no annotation at all; passes make
// nodes without any.
#include "core/inductor/lower.h"
#include "core/inductor/post_grad.h"

static const TensorMeta *with_strides(Arena *a, Sym *sym, const TensorMeta *m) {
    if (m->stride && m->offset)
        return m;
    if (!m->stride)
        return meta_contiguous(a, sym, m->dtype, m->ndim, m->size, m->device);
    TensorMeta *t = meta_copy(a, m);
    t->offset = sym_int(sym, 0);
    return t;
}

static Value complete(Arena *a, Sym *sym, const Value *v) {
    if (v->kind == VAL_tensor)
        return val_tensor(with_strides(a, sym, v->tensor));
    if (v->kind != VAL_tuple && v->kind != VAL_list)
        return *v;
    Value list = val_list(a, v->kind, v->n);
    for (int i = 0; i < v->n; i++)
        list.at[i] = complete(a, sym, &v->at[i]);
    return list;
}

typedef struct Prop {
    Arena *arena;
    Sym *sym;
    const Graph *g;
    Value *val; // by node id
    int stage;
} Prop;

static Value arg_value(const Prop *p, const Value *v) {
    if (v->kind == VAL_node)
        return p->val[v->node->id];
    if (v->kind != VAL_list && v->kind != VAL_tuple)
        return *v;
    Value list = val_list(p->arena, v->kind, v->n);
    for (int i = 0; i < v->n; i++)
        list.at[i] = arg_value(p, &v->at[i]);
    return list;
}

// What was annotated wins where the two differ: only strides are what the text may lack.
static bool agrees(const Value *got, const Value *noted) {
    if (noted->kind == VAL_none)
        return true;
    if (got->kind != noted->kind)
        return false;
    if (got->kind == VAL_tuple || got->kind == VAL_list) {
        for (int i = 0; i < got->n; i++)
            if (i >= noted->n || !agrees(&got->at[i], &noted->at[i]))
                return false;
        return got->n == noted->n;
    }
    if (got->kind != VAL_tensor)
        return false;
    const TensorMeta *x = got->tensor, *y = noted->tensor;
    for (int i = 0; x->ndim == y->ndim && i < x->ndim; i++)
        if (x->size[i] != y->size[i])
            return false;
    return x->ndim == y->ndim && x->dtype == y->dtype;
}

static bool has_opaque(const Value *v) {
    for (int i = 0; (v->kind == VAL_tuple || v->kind == VAL_list) && i < v->n; i++)
        if (has_opaque(&v->at[i]))
            return true;
    return v->kind == VAL_opaque;
}

static Value call_value(const Prop *p, const Node *n) {
    int64_t i = 0;
    if (str_ends(n->target, "getitem") && n->n_args == 2 && val_as_int(&n->args[1], &i)) {
        Value list = arg_value(p, &n->args[0]);
        i = i < 0 ? i + list.n : i;
        if ((list.kind == VAL_tuple || list.kind == VAL_list) && i >= 0 && i < list.n)
            return list.at[i];
        return n->val;
    }
    if (!n->def || !n->def->meta)
        return n->val;
    Value *bound = node_bound(n, p->arena), *in = ARENA_ARRAY(p->arena, n->def->n_args, Value),
          out = {0};
    for (int k = 0; k < n->def->n_args; k++) {
        in[k] = arg_value(p, &bound[k]);
        if (has_opaque(&in[k]))
            return n->val;
    }
    Diag quiet = {.arena = p->arena};
    MetaCtx c = {.arena = p->arena, .sym = p->sym, .diag = &quiet, .stage = p->stage};
    return op_meta(&c, n->def, in, &out) ? out : n->val;
}

Value *fake_values(Arena *a, const Graph *g, int stage) {
    Prop p = {a, g->sym, g, ARENA_ARRAY(a, g->by_id.n, Value), stage};
    GRAPH_EACH(g, n) {
        Value v = n->val;
        if (n->op == FX_call_function) {
            Value got = call_value(&p, n);
            v = agrees(&got, &v) ? got : v;
        }
        p.val[n->id] = complete(a, g->sym, &v);
    }
    return p.val;
}

// ---- memory

static bool is_alias(const Node *n, const Value *val) {
    if (n->op != FX_call_function || !n->n_args || n->args[0].kind != VAL_node)
        return false;
    if (str_ends(n->target, "getitem"))
        return n->args[0].node->def && n->args[0].node->def->tags & OPT_view;
    if (!n->def)
        return false;
    if (node_is(n, OP_aten_reshape_default)) { // a view where the input's strides allow it
        const Value *v = &val[n->args[0].node->id];
        return v->kind == VAL_tensor && meta_is_contiguous(n->graph->sym, v->tensor, MF_contiguous);
    }
    return n->def->tags & OPT_view;
}

int *node_storages(Arena *a, const Graph *g, const Value *val) {
    int *s = ARENA_ARRAY(a, g->by_id.n, int);
    GRAPH_EACH(g, n) s[n->id] = is_alias(n, val) ? s[n->args[0].node->id] : n->id;
    return s;
}
