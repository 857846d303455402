// higher_written.c: calls that name another op: auto_functionalized and its second form run an op
// that writes on clones and give its results and the clones (torch/_higher_order_ops/
// auto_functionalize.py); with_effects runs it behind a token. Only ops with a kernel run.
#include "core/eager/higher.h"
#include "core/ops/out.h"

#include <string.h>

typedef struct Named {
    Eager *x;
    const Op *op;
    const char *const *kw;
    const Value *kwargs;
    int n_kwargs;
    Value *bases; // clones
    int n_bases;
} Named;

const Op *higher_named(const Node *n) {
    const Op *op = node_named_op(n);
    return op && eager_has(op_row(op)) ? op : NULL;
}

static const Value *keyword(const Named *c, const char *prefix, const char *name) {
    const char *full = arena_printf(c->x->arena, "%s%s", prefix, name);
    for (int i = 0; i < c->n_kwargs; i++)
        if (!strcmp(c->kw[i], full))
            return &c->kwargs[i];
    return NULL;
}

// clone_preserve_strides: all memory up to the last element, seen as before.
static Value clone(Named *c, const Value *v) {
    if (v->kind != VAL_tensor || !eager_ok(c->x))
        return *v;
    const Tensor *t = tensor_at(v);
    int64_t needed = t->offset + 1, one = 1;
    for (int i = 0; i < t->ndim; i++)
        needed += (t->size[i] - 1) * t->stride[i];
    if (tensor_numel(t) == 0 || needed == tensor_numel(t))
        return CALL(c, aten_clone_default, *v);
    Value size = ints_value(c->x, t->size, t->ndim), stride = ints_value(c->x, t->stride, t->ndim),
          offset = INT(t->offset),
          all = CALL(c, aten_as_strided_default, *v, ints_value(c->x, &needed, 1),
                     ints_value(c->x, &one, 1), INT(0)),
          copy = CALL(c, aten_clone_default, all);
    return CALL(c, aten_as_strided_default, copy, size, stride, offset);
}

static Value clones(Named *c, const Value *v) {
    if (v->kind != VAL_list && v->kind != VAL_tuple)
        return clone(c, v);
    Value out = val_list(c->x->arena, VAL_list, v->n);
    for (int i = 0; i < v->n; i++)
        out.at[i] = clone(c, &v->at[i]);
    return out;
}

// How a written argument is seen in its base.
static Value window(Named *c, const char *prefix) {
    const Value *index = keyword(c, prefix, "_base_index"), *dim = keyword(c, prefix, "_slice_dim"),
                *start = keyword(c, prefix, "_slice_start"),
                *end = keyword(c, prefix, "_slice_end"), *size = keyword(c, prefix, "_size"),
                *stride = keyword(c, prefix, "_stride"),
                *offset = keyword(c, prefix, "_storage_offset");
    int64_t i;
    if (!index || !val_as_int(index, &i) || i < 0 || i >= c->n_bases)
        return NONE;
    Value base = c->bases[i];
    if (dim && start && end)
        return CALL(c, aten_slice_Tensor, base, *dim, *start, *end);
    if (size && stride && offset)
        return CALL(c, aten_as_strided_default, base, *size, *stride, *offset);
    return base;
}

static Value windows(Named *c, const SchemaArg *a) {
    Arena *arena = c->x->arena;
    const char *prefix = arena_printf(arena, "_%s", a->name);
    const Value *length = keyword(c, prefix, "_length");
    int64_t n;
    if (a->type != AT_tensors)
        return window(c, prefix);
    if (!length || !val_as_int(length, &n) || n < 0 || n > 4096)
        return NONE;
    Value list = val_list(arena, VAL_list, (int)n);
    for (int i = 0; i < n; i++)
        list.at[i] = window(c, arena_printf(arena, "%s_%d", prefix, i));
    return list;
}

// Results, an op without any yields None; then `more`.
static Value joined(Named *c, const Value *result, const Value *more, int n_more) {
    bool several = c->op->n_returns > 1;
    int n = several ? result->n : 1;
    Value out = val_list(c->x->arena, VAL_tuple, n + n_more);
    for (int i = 0; i < n; i++)
        out.at[i] = several ? result->at[i] : c->op->n_returns ? *result : NONE;
    for (int i = 0; i < n_more; i++)
        out.at[n + i] = more[i];
    return out;
}

static bool functionalized(Named *c, bool second, Value *out) {
    const Op *op = c->op;
    Value *args = ARENA_ARRAY(c->x->arena, op->n_args + 1, Value), result;
    const Value *all = keyword(c, "", "_all_bases");
    c->bases = ARENA_ARRAY(c->x->arena, op->n_args + (all ? all->n : 0) + 1, Value);
    for (int i = 0; second && all && i < all->n; i++)
        c->bases[c->n_bases++] = clone(c, &all->at[i]);
    for (int i = 0; i < op->n_args; i++) {
        const Value *given = keyword(c, "", op->args[i].name);
        args[i] = given ? *given : op->args[i].dflt;
        if (second && op->args[i].written)
            args[i] = windows(c, &op->args[i]);
        else if (op->args[i].written && given)
            args[i] = c->bases[c->n_bases++] = clones(c, &args[i]);
    }
    if (!eager_ok(c->x) || !eager_op(c->x, op, args, &result))
        return false;
    *out = joined(c, &result, c->bases, c->n_bases);
    return true;
}

bool eager_named(Eager *x, const Node *n, const Value *args, const char *const *kw,
                 const Value *kwargs, Value *out) {
    Named c = {.x = x, .op = higher_named(n), .kw = kw, .kwargs = kwargs, .n_kwargs = n->n_kwargs};
    if (!str_ends(n->target, "with_effects"))
        return functionalized(&c, str_ends(n->target, "_v2"), out);
    Value *bound = ARENA_ARRAY(x->arena, c.op->n_args + 1, Value), result;
    if (!op_bind(c.op, args + 2, n->n_args - 2, kw, kwargs, n->n_kwargs, bound, x->arena,
                 x->c->diag, x->c->at) ||
        !eager_op(x, c.op, bound, &result))
        return false;
    Value token = args[0], behind = joined(&c, &result, NULL, 0);
    *out = val_list(x->arena, VAL_tuple, behind.n + 1);
    out->at[0] = token;
    for (int i = 0; i < behind.n; i++)
        out->at[1 + i] = behind.at[i];
    return true;
}
