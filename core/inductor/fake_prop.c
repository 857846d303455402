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
    Diag *diag; // NULL: what fails keeps its annotation
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

typedef enum Accord { AC_same, AC_unknown, AC_differs } Accord;

// Of a result by the op's rule with its annotation. Sizes with symbols may be equal though they
// look different.
static Accord accord(const Value *got, const Value *noted) {
    if (noted->kind == VAL_none)
        return AC_same;
    if (got->kind != noted->kind)
        return AC_unknown;
    Accord all = AC_same;
    if (got->kind == VAL_tuple || got->kind == VAL_list) {
        for (int i = 0; i < got->n && i < noted->n; i++) {
            Accord one = accord(&got->at[i], &noted->at[i]);
            all = one > all ? one : all;
        }
        return got->n == noted->n ? all : AC_differs;
    }
    if (got->kind != VAL_tensor)
        return AC_unknown;
    const TensorMeta *x = got->tensor, *y = noted->tensor;
    int64_t m = 0, n = 0;
    if (x->ndim != y->ndim || x->dtype != y->dtype)
        return AC_differs;
    for (int i = 0; i < x->ndim; i++)
        if (expr_int(x->size[i], &m) && expr_int(y->size[i], &n) && m != n)
            return AC_differs;
        else if (x->size[i] != y->size[i])
            all = AC_unknown;
    return all;
}

static bool has_opaque(const Value *v) {
    for (int i = 0; (v->kind == VAL_tuple || v->kind == VAL_list) && i < v->n; i++)
        if (has_opaque(&v->at[i]))
            return true;
    return v->kind == VAL_opaque;
}

// Several results of an op without a rule, as far as the nodes that pick them are annotated.
static Value picked_value(const Prop *p, const Node *n) {
    int64_t i = 0;
    int most = 0;
    for (int pass = 0; pass < 2; pass++) {
        Value list = pass ? val_list(p->arena, VAL_tuple, most) : val_none();
        for (int k = 0; k < n->n_users; k++) {
            const Node *u = n->users[k];
            if (!str_ends(u->target, "getitem") || u->n_args != 2 || !val_as_int(&u->args[1], &i) ||
                i < 0 || i > 64)
                continue;
            most = i + 1 > most ? (int)i + 1 : most;
            if (pass)
                list.at[i] = u->val;
        }
        if (pass || !most)
            return list;
    }
    return val_none();
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
        return n->val.kind == VAL_none ? picked_value(p, n) : n->val;
    Value *bound = node_bound(n, p->arena), out = {0};
    if (!bound) {
        if (p->diag)
            diag_fail(p->diag, "%s: the arguments do not fit %s", n->name, n->def->schema);
        return n->val;
    }
    Value *in = ARENA_ARRAY(p->arena, n->def->n_args, Value);
    for (int k = 0; k < n->def->n_args; k++) {
        in[k] = arg_value(p, &bound[k]);
        if (has_opaque(&in[k]))
            return n->val;
    }
    Diag quiet = {.arena = p->arena};
    MetaCtx c = {
        .arena = p->arena, .sym = p->sym, .diag = p->diag ? p->diag : &quiet, .stage = p->stage,
        .fake = true};
    Value known = n->val.kind == VAL_none && n->def->n_returns > 1 ? picked_value(p, n) : n->val;
    return op_meta_again(&c, n->def, in, &known, &out) ? out : n->val;
}

static bool too_deep(const Value *v) {
    for (int i = 0; (v->kind == VAL_tuple || v->kind == VAL_list) && i < v->n; i++)
        if (too_deep(&v->at[i]))
            return true;
    return v->kind == VAL_tensor && v->tensor->ndim > INDUCTOR_DIMS;
}

static Value node_value(const Prop *p, const Node *n) {
    if (n->op != FX_call_function)
        return n->val;
    Value got = call_value(p, n);
    Accord a = accord(&got, &n->val);
    if (a == AC_differs && p->diag) {
        Buf noted = {.arena = p->arena}, real = {.arena = p->arena};
        val_print(&noted, &n->val, NULL, NULL);
        val_print(&real, &got, NULL, NULL);
        diag_error(p->diag, node_place(n), "%s is annotated as %s, but %s gives %s", n->name,
                   buf_str(&noted), n->target, buf_str(&real));
    }
    return a == AC_same ? got : n->val;
}

Value *fake_values(Arena *a, const Graph *g, int stage, Diag *d) {
    Prop p = {a, g->sym, g, ARENA_ARRAY(a, g->by_id.n, Value), stage, d};
    int errors = d ? d->errors : 0;
    GRAPH_EACH (g, n) {
        Value v = node_value(&p, n);
        if (d && too_deep(&v))
            diag_fail(d, "%s has more than %d dimensions", n->name, INDUCTOR_DIMS);
        if (d && d->errors > errors)
            return NULL;
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
        const Value *v = &val[n->args[0].node->id], *out = &val[n->id];
        Sym *sym = n->graph->sym; // a copy would be contiguous
        return v->kind == VAL_tensor && out->kind == VAL_tensor &&
               (meta_is_contiguous(sym, v->tensor, MF_contiguous) ||
                !meta_is_contiguous(sym, out->tensor, MF_contiguous));
    }
    return n->def->tags & OPT_view;
}

int *node_storages(Arena *a, const Graph *g, const Value *val) {
    int *s = ARENA_ARRAY(a, g->by_id.n, int);
    GRAPH_EACH (g, n)
        s[n->id] = is_alias(n, val) ? s[n->args[0].node->id] : n->id;
    return s;
}
