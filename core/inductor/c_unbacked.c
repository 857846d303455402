// c_unbacked.c: in call(), sizes and numbers that a library call has just made known: constants
// from there on, and a check that the result is what was planned with them.
#include <string.h>

#include "core/inductor/cgen.h"

bool wrapper_tells_size_of(const IrOp *op, const IrLayout *result) {
    for (int i = 0; i < op->binds.n; i++)
        for (int d = 0; d < result->ndim; d++)
            if (expr_has(result->size[d], op->binds.at[i].symbol))
                return true;
    return false;
}

static const char *element(CGen *g, const IrOp *op, const IrBinding *b, int node) {
    if (b->buf)
        return arena_printf(g->arena, "*(const int64_t *)%s.data", c_name(g, b->buf));
    const IrBuffer *from = map_get(&g->s->module->buffers, op->args.at[0].buf);
    const TensorMeta *view = op->args.at[0].view;
    DType d = view ? view->dtype : from->layout->dtype;
    const char *text = arena_printf(g->arena, "*(const %s *)(%s)->data", c_type(d),
                                    wrapper_tensor(g, &op->args.at[0], node));
    return d == DT_i64 ? text : arena_printf(g->arena, "(int64_t)%s", text);
}

void wrapper_bind(CGen *g, const IrOp *op, int node) {
    for (int i = 0; i < op->binds.n; i++) {
        const IrBinding *b = &op->binds.at[i];
        const char *name = expr_name(b->symbol);
        const char *value = b->dim >= 0
                                ? arena_printf(g->arena, "%s.size[%d]", c_name(g, b->buf), b->dim)
                                : element(g, op, b, node);
        map_put_int(&g->declared, name, 1);
        c_line(&g->text, NULL, node, "const int64_t %s = %s;", c_name(g, name), value);
    }
    for (int i = 0; i < op->binds.n; i++) {
        const IrBinding *b = &op->binds.at[i];
        bool first = b->dim >= 0;
        for (int k = 0; k < i; k++)
            first = first && !(op->binds.at[k].buf && !strcmp(op->binds.at[k].buf, b->buf));
        if (first)
            wrapper_check(g, b->buf,
                          arena_printf(g->arena,
                                       "%s gives a result of another type, size or stride than "
                                       "planned",
                                       op->kernel ? op->kernel : op->name),
                          node);
    }
}
