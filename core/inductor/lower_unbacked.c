// lower_unbacked.c: sizes and numbers that only a run can tell (nonzero, item, unique, …). The
// operation that yields one binds an unbacked symbol: the wrapper reads its value off the result
// once the call has been made, and what uses the symbol comes after that (torch/_inductor/ir.py
// FallbackKernel.codegen_unbacked_symbol_defs, DynamicScalar).
#include "core/inductor/lower.h"

static bool is_bound(const Lower *l, const Expr *e) {
    return map_find_id(&l->bound, expr_id(e)) != NULL;
}

void unbacked_is_given(Lower *l, const Expr *e) {
    if (expr_unbacked(e) >= 0)
        map_at_id(&l->bound, expr_id(e))->i = 1;
}

static void bind(Lower *l, IrOp *op, const Expr *e, const char *buf, int dim) {
    if (expr_unbacked(e) < 0 || is_bound(l, e))
        return;
    unbacked_is_given(l, e);
    l->m->unbacked = true;
    vec_push(l->arena, &op->binds, (IrBinding){.symbol = e, .buf = buf, .dim = dim});
}

void unbacked_bind_sizes(Lower *l, IrOp *op, const IrBuffer *result) {
    for (int i = 0; i < result->layout->ndim; i++)
        bind(l, op, result->layout->size[i], result->name, i);
}

// The symbol that a number which nobody has bound is made of.
static const Expr *unbound(Lower *l, const Value *v) {
    const Expr **e;
    int n = v->kind == VAL_sym ? expr_symbols(l->arena, v->sym, &e) : 0;
    for (int i = 0; i < n; i++)
        if (expr_unbacked(e[i]) >= 0 && !is_bound(l, e[i]))
            return e[i];
    return NULL;
}

bool unbacked_is_made_by(Lower *l, const Node *n) {
    return n->def && !(n->def->tags & OPT_sym) && unbound(l, &n->val) != NULL;
}

static LVal item(Lower *l, const Node *n, const Expr *symbol) {
    Box *x = arg_box(l, n->args, 0);
    if (!x)
        return (LVal){.kind = L_value, .v = n->val};
    IrArg arg = data_arg(l, x->data);
    IrLayout *y = layout_new(l, IRL_none, data_device(x->data), DT_none, 0, NULL, NULL, NULL);
    LBuf *b = buffer_register(l, y, IR_dynamic_scalar);
    b->is_extern = true;
    extern_set_args(l, b->ir->op, &arg, 1);
    bind(l, b->ir->op, symbol, NULL, -1);
    return (LVal){.kind = L_value, .v = n->val};
}

// Any other call that gives a number: it is delivered as an integer of no dimensions.
LVal lower_number(Lower *l, const Node *n) {
    const Expr *symbol = unbound(l, &n->val);
    if (node_is(n, OP_aten__local_scalar_dense_default))
        return item(l, n, symbol);
    Value *args = node_bound(n, l->arena);
    TensorMeta *number = meta_new(l->arena, DT_i64, 0);
    number->offset = sym_int(l->sym, 0);
    number->device = (Device){DEV_cpu, -1};
    if (!args) {
        diag_fail(l->req->diag, "%s: the arguments do not fit %s", n->name, n->def->schema);
        l->failed = true;
        return (LVal){0};
    }
    LVal r = lower_fallback_as(l, n->def, args, val_tensor(number));
    if (r.kind == L_box) {
        const IrBuffer *b = r.box->data->buf->ir;
        LBuf *packed = map_get(&l->by_name, b->op->reads_star.at[0]);
        bind(l, packed->ir->op, symbol, b->name, -1);
    }
    return (LVal){.kind = L_value, .v = n->val};
}
