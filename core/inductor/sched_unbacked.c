// sched_unbacked.c: symbols that an operation gives their values (IrOp.binds): who uses one comes
// after it (Scheduler.compute_dependencies, unbacked_symbol_to_origin_node).
#include "core/inductor/sched_impl.h"

typedef struct Uses {
    Arena *arena;
    UnbackedUse *fn;
    void *ctx;
    Map seen; // ids of symbols
} Uses;

static void use_expr(Uses *u, const Expr *e) {
    const Expr **found;
    int n = e && expr_has_symbols(e) ? expr_symbols(u->arena, e, &found) : 0;
    for (int i = 0; i < n; i++)
        if (expr_unbacked(found[i]) >= 0 && !map_find_id(&u->seen, expr_id(found[i]))) {
            map_at_id(&u->seen, expr_id(found[i]))->i = 1;
            u->fn(u->ctx, found[i]);
        }
}

static void use_exprs(Uses *u, const Expr *const *e, int n) {
    for (int i = 0; e && i < n; i++)
        use_expr(u, e[i]);
}

static void use_layout(Uses *u, const IrLayout *l) {
    if (!l)
        return;
    use_exprs(u, l->size, l->ndim);
    use_exprs(u, l->stride, l->ndim);
    use_expr(u, l->offset);
}

static void use_value(Uses *u, const Value *v) {
    if (v->kind == VAL_sym)
        use_expr(u, v->sym);
    for (int i = 0; (v->kind == VAL_list || v->kind == VAL_tuple) && i < v->n; i++)
        use_value(u, &v->at[i]);
}

static void use_arg(Uses *u, const IrArg *a) {
    for (int i = 0; i < a->n_items; i++)
        use_arg(u, &a->items[i]);
    if (a->view) {
        use_exprs(u, a->view->size, a->view->ndim);
        use_exprs(u, a->view->stride, a->view->ndim);
        use_expr(u, a->view->offset);
    }
    if (!a->buf)
        use_value(u, &a->value);
}

void unbacked_uses_of_arg(Arena *tmp, const IrArg *a, UnbackedUse *fn, void *ctx) {
    Uses u = {tmp, fn, ctx, {.arena = tmp}};
    use_arg(&u, a);
}

// A part of another buffer needs that: it is made when the first part is.
static void use_memory(Uses *u, const IrModule *m, const IrLayout *l) {
    for (int depth = 0; l && depth < m->ops.n; depth++) {
        use_layout(u, l);
        const IrBuffer *whole =
            l->kind == IRL_non_owning && l->view_of ? map_get(&m->buffers, l->view_of) : NULL;
        l = whole ? whole->layout : NULL;
    }
}

void unbacked_uses(Arena *tmp, const IrModule *m, const IrOp *op, UnbackedUse *fn, void *ctx) {
    Uses u = {tmp, fn, ctx, {.arena = tmp}};
    for (int i = 0; i < op->outputs.n; i++)
        use_memory(&u, m, op->outputs.at[i]->layout);
    for (int i = 0; i < op->args.n; i++)
        use_arg(&u, &op->args.at[i]);
    const LoopBody *b = op->body;
    if (!b)
        return;
    use_exprs(&u, b->sizes, b->n_vars);
    use_exprs(&u, b->index.at, b->index.n);
    use_exprs(&u, b->indirect_size.at, b->indirect_size.n);
}
