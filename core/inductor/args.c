// args.c: arguments of the node being lowered, as lowering functions want them.
#include "core/inductor/lower.h"

#include <assert.h>

LVal lv_box(Box *b) {
    return (LVal){.kind = L_box, .box = b};
}

LVal lv_list(Lower *l, int n) {
    return (LVal){.kind = L_list, .n = n, .at = ARENA_ARRAY(l->arena, n, LVal)};
}

LVal l_of(Lower *l, const Value *v) {
    if (v->kind == VAL_none)
        return (LVal){0};
    if (v->kind == VAL_node) {
        assert(v->node->id < l->g->by_id.n);
        return l->env[v->node->id];
    }
    if (v->kind == VAL_list || v->kind == VAL_tuple) {
        LVal list = lv_list(l, v->n);
        for (int i = 0; i < v->n; i++)
            list.at[i] = l_of(l, &v->at[i]);
        return list;
    }
    return (LVal){.kind = L_value, .v = *v};
}

Box *arg_box(Lower *l, const Value *args, int i) {
    LVal v = l_of(l, &args[i]);
    return v.kind == L_box ? v.box : NULL;
}

bool arg_bool(const Value *args, int i) {
    return args[i].kind == VAL_bool ? args[i].b : args[i].kind == VAL_int && args[i].i != 0;
}

const Expr *arg_expr(Lower *l, const Value *args, int i) {
    LVal v = l_of(l, &args[i]);
    const Expr *e = NULL;
    return v.kind == L_value && val_as_expr(l->sym, &v.v, &e) ? e : sym_int(l->sym, 0);
}

int64_t arg_int(Lower *l, const Value *args, int i) {
    return size_hint(l, arg_expr(l, args, i));
}

double arg_float(const Value *args, int i) {
    double f = 0;
    return val_as_float(&args[i], &f) ? f : 0;
}

const Expr **arg_exprs(Lower *l, const Value *v, int *n) {
    bool list = v->kind == VAL_list || v->kind == VAL_tuple;
    *n = list ? v->n : v->kind == VAL_none ? 0 : 1;
    const Expr **e = ARENA_ARRAY(l->arena, *n, const Expr *);
    for (int i = 0; i < *n; i++)
        e[i] = arg_expr(l, list ? v->at : v, i);
    return e;
}

const Value *node_val(Lower *l, const Node *n) {
    return &l->val[n->id];
}

const TensorMeta *node_meta(Lower *l, const Node *n) {
    const Value *v = node_val(l, n);
    return v->kind == VAL_tensor ? v->tensor : NULL;
}

const TensorMeta *arg_meta(Lower *l, const Value *v) {
    return v->kind == VAL_node ? node_meta(l, v->node) : NULL;
}
