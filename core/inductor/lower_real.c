// lower_real.c: real numbers that follow from sizes (2 / float(n - 1)): nodes of the graph, of
// which only the text is metadata. They are computed where they are used, in double.
#include "core/inductor/lower.h"

#include <string.h>

typedef struct RealCtx {
    const Node *node;
    DType dtype;
} RealCtx;

static TVal real_of(Tracer *t, const Node *n);

// The element of a tensor without dimensions; lower_real has put it into memory.
static bool is_item(const Node *n) {
    return node_is(n, OP_aten__local_scalar_dense_default);
}

// It lies in memory: an item, or an input.
static bool is_stored(const Node *n) {
    return is_item(n) || n->op == FX_placeholder;
}

static TVal operand(Tracer *t, const Value *v) {
    const Expr *e;
    double f;
    const Value *known = v->kind == VAL_node ? &v->node->val : v;
    if (known->kind == VAL_symfloat)
        return v->kind == VAL_node ? real_of(t, v->node) : t_float(t, 0, DT_f64);
    if (val_as_float(known, &f))
        return t_float(t, f, DT_f64);
    return val_as_expr(t->sym, known, &e) ? t_index(t, e, DT_f64) : t_float(t, 0, DT_f64);
}

static const struct {
    OpId op;
    LoopOpKind kind;
} arithmetic[] = {
    {OP_operator_add, LOOP_add},         {OP_operator_sub, LOOP_sub},
    {OP_operator_mul, LOOP_mul},         {OP_operator_truediv, LOOP_truediv},
    {OP_operator_pow, LOOP_pow},         {OP_operator_neg, LOOP_neg},
    {OP_torch_sym_sqrt, LOOP_sqrt},      {OP_torch_sym_float, LOOP_identity},
    {OP_operator_abs, LOOP_abs},
};

static int arithmetic_of(const Node *n) {
    for (int i = 0; n->def && i < COUNT(arithmetic); i++)
        if (n->def->id == arithmetic[i].op && n->n_args >= loop_op_info[arithmetic[i].kind].n_args)
            return i;
    return -1;
}

// Checked by is_known before.
static TVal real_of(Tracer *t, const Node *n) {
    if (is_stored(n))
        return t_call(t, data_loader(t->l, t->l->env[n->id].box->data), NULL, NULL);
    LoopOpKind kind = arithmetic[arithmetic_of(n)].kind;
    TVal a[2] = {operand(t, &n->args[0])};
    if (kind == LOOP_identity)
        return a[0];
    if (loop_op_info[kind].n_args > 1)
        a[1] = operand(t, &n->args[1]);
    return t_op(t, kind, a);
}

static bool is_known(const Value *v, int depth) {
    if (v->kind != VAL_node || v->node->val.kind != VAL_symfloat)
        return v->kind != VAL_symfloat;
    int k = arithmetic_of(v->node);
    if (is_stored(v->node))
        return true;
    bool known = k >= 0 && depth < 100;
    for (int i = 0; known && i < loop_op_info[arithmetic[k].kind].n_args; i++)
        known = is_known(&v->node->args[i], depth + 1);
    return known;
}

static TVal run_real(Tracer *t, const void *ctx, Index idx, Index red) {
    const RealCtx *c = ctx;
    (void)idx, (void)red;
    return t_cast(t, real_of(t, c->node), c->dtype, DT_f64);
}

// In double, in memory of its own: what it was when the graph asked for it.
static LVal real_item(Lower *l, const Node *n) {
    Box *x = arg_box(l, n->args, 0);
    if (!x)
        return (LVal){.kind = L_value, .v = n->val};
    x = data_dtype(x->data) == DT_f64 ? clone_box(l, x) : box_to_dtype(l, x, DT_f64);
    x = box_new(l, view_reshape(l, x->data, 0, NULL));
    box_realize(l, x, "a number that the graph asks for");
    map_put(&l->reals, n->val.s, (void *)n);
    return (LVal){.kind = L_value, .v = n->val, .box = x};
}

IrArg real_arg(Lower *l, const LVal *v) {
    Device cpu = {DEV_cpu, -1};
    Box *x = v->box ? v->box : scalar_box(l, &v->v, DT_f64, cpu, NULL);
    IrArg a = data_arg(l, x->data);
    a.number = true;
    return a;
}

LVal lower_real(Lower *l, const Node *n) {
    Value of = val_node((Node *)n);
    if (is_item(n))
        return real_item(l, n);
    if (!is_known(&of, 0)) {
        diag_fail(l->req->diag, "%s: a real number that is made so cannot be compiled: %s", n->name,
                  n->target);
        l->failed = true;
    }
    map_put(&l->reals, n->val.s, (void *)n);
    return (LVal){.kind = L_value, .v = n->val};
}

Box *scalar_box(Lower *l, const Value *v, DType d, Device dev, const Data *like) {
    const Expr *e;
    if (v->kind == VAL_sym && val_as_expr(l->sym, v, &e))
        return box_new(l, data_index(l, e, d, dev));
    const Node *n = v->kind == VAL_symfloat ? map_get(&l->reals, v->s) : NULL;
    if (!n)
        return box_new(l, data_const(l, *v, d, dev));
    RealCtx *c = ARENA_NEW(l->arena, RealCtx);
    *c = (RealCtx){n, d};
    return pointwise_new(l, d, dev, like ? data_ndim(like) : 0, like ? data_size(like) : NULL,
                         (Fn){run_real, c});
}
