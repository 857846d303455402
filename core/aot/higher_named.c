// higher_named.c: calls that name a built-in op, in the tracer: auto_functionalized and its second
// form run it on clones of what it writes and give its results and the clones (the dense rules of
// torch/_higher_order_ops/auto_functionalize.py); with_effects runs it behind a token. They are run
// in place: PyTorch makes them of custom ops alone, and those stay calls until post_grad.
#include "core/aot/nested.h"

#include <string.h>

enum { MAX_LISTED = 4096 }; // tensors that one argument writes

typedef struct Named {
    Trace *t;
    const Op *op;
    const Node *n;
    const Value *kwargs; // values of n's
    Value bases;         // clones
} Named;

static const Value *keyword(const Named *c, const char *prefix, const char *name) {
    const char *full = arena_printf(c->t->arena, "%s%s", prefix, name);
    for (int i = 0; i < c->n->n_kwargs; i++)
        if (!strcmp(c->n->kwargs[i].name, full))
            return &c->kwargs[i];
    return NULL;
}

// clone_preserve_strides: all memory up to the last element, seen as before.
static Value clone(Trace *t, Value v) {
    if (v.kind != VAL_tensor || t->failed)
        return v;
    const TensorMeta *m = v.tensor;
    Sym *s = t->sym;
    const Expr *offset = m->offset ? m->offset : sym_int(s, 0), *needed = sym_add_int(s, offset, 1),
               *one = sym_int(s, 1);
    if (expr_is(offset, 0) && meta_is_contiguous(s, m, MF_contiguous))
        return CALL(t, aten_clone_default, v);
    for (int i = 0; i < m->ndim; i++)
        needed = sym_add(s, needed, sym_mul(s, sym_add_int(s, m->size[i], -1), m->stride[i]));
    Value all = CALL(t, aten_as_strided_default, v, val_exprs(t->arena, &needed, 1),
                     val_exprs(t->arena, &one, 1), INT(0));
    return CALL(t, aten_as_strided_default, CALL(t, aten_clone_default, all),
                val_exprs(t->arena, m->size, m->ndim), val_exprs(t->arena, m->stride, m->ndim),
                val_sym(offset));
}

static Value clones(Trace *t, Value v) {
    if (v.kind != VAL_list && v.kind != VAL_tuple)
        return clone(t, v);
    Value out = val_list(t->arena, VAL_list, v.n);
    for (int i = 0; i < v.n; i++)
        out.at[i] = clone(t, v.at[i]);
    return out;
}

// How a written argument is seen in its base.
static Value window(const Named *c, const char *prefix) {
    Trace *t = c->t;
    const Value *index = keyword(c, prefix, "_base_index"), *dim = keyword(c, prefix, "_slice_dim"),
                *start = keyword(c, prefix, "_slice_start"),
                *end = keyword(c, prefix, "_slice_end"), *size = keyword(c, prefix, "_size"),
                *stride = keyword(c, prefix, "_stride"),
                *offset = keyword(c, prefix, "_storage_offset");
    int64_t i;
    if (!index || !val_as_int(index, &i) || i < 0 || i >= c->bases.n)
        return NONE;
    Value base = c->bases.at[i];
    if (dim && start && end)
        return CALL(t, aten_slice_Tensor, base, *dim, *start, *end);
    if (size && stride && offset)
        return CALL(t, aten_as_strided_default, base, *size, *stride, *offset);
    return base;
}

static Value windows(const Named *c, const SchemaArg *a) {
    Arena *arena = c->t->arena;
    const char *prefix = arena_printf(arena, "_%s", a->name);
    const Value *length = keyword(c, prefix, "_length");
    int64_t n;
    if (a->type != AT_tensors)
        return window(c, prefix);
    if (!length || !val_as_int(length, &n) || n < 0 || n > MAX_LISTED)
        return NONE;
    Value list = val_list(arena, VAL_list, (int)n);
    for (int i = 0; i < n; i++)
        list.at[i] = window(c, arena_printf(arena, "%s_%d", prefix, i));
    return list;
}

// Results, an op without any yields None; then `more`.
static Value joined(const Named *c, Value result, Value more) {
    Value none = NONE;
    if (c->op->n_returns > 1)
        return values_joined(c->t, VAL_tuple, result.at, result.n, more.at, more.n);
    return values_joined(c->t, VAL_tuple, c->op->n_returns ? &result : &none, 1, more.at, more.n);
}

// Every argument by its keyword, those that are written in the way of the form.
static bool functionalized(Named *c, bool second, Value *out) {
    Trace *t = c->t;
    const Op *op = c->op;
    Value *args = ARENA_ARRAY(t->arena, op->n_args + 1, Value),
          *bound = ARENA_ARRAY(t->arena, op->n_args + 1, Value);
    const char **names = ARENA_ARRAY(t->arena, op->n_args + 1, const char *);
    const Value *all = second ? keyword(c, "", "_all_bases") : NULL;
    c->bases = all ? clones(t, *all) : val_list(t->arena, VAL_list, 0);
    int n = 0;
    for (int i = 0; i < op->n_args && !t->failed; i++) {
        const SchemaArg *a = &op->args[i];
        const Value *given = keyword(c, "", a->name);
        if (a->written && second) {
            args[n] = windows(c, a);
        } else if (given) {
            args[n] = a->written ? clones(t, *given) : *given;
            if (a->written)
                c->bases = values_joined(t, VAL_list, c->bases.at, c->bases.n, &args[n], 1);
        } else {
            continue;
        }
        names[n++] = a->name;
    }
    MetaCtx m = trace_meta_ctx(t);
    if (t->failed || !op_bind(op, args, 0, names, args, n, bound, t->arena, t->diag, m.at))
        return false;
    *out = joined(c, trace_dispatch(t, op, bound), c->bases);
    return true;
}

static bool behind_token(const Named *c, const Value *args, Value *out) {
    Trace *t = c->t;
    const Node *n = c->n;
    Value *bound = ARENA_ARRAY(t->arena, c->op->n_args + 1, Value);
    const char **kw = ARENA_ARRAY(t->arena, n->n_kwargs + 1, const char *);
    for (int i = 0; i < n->n_kwargs; i++)
        kw[i] = n->kwargs[i].name;
    MetaCtx m = trace_meta_ctx(t);
    if (!op_bind(c->op, args + 2, n->n_args - 2, kw, c->kwargs, n->n_kwargs, bound, t->arena,
                 t->diag, m.at))
        return false;
    Value results = joined(c, trace_dispatch(t, c->op, bound), val_list(t->arena, VAL_tuple, 0));
    Value token = trace_has_unknown(args) ? NONE : args[0];
    *out = values_joined(t, VAL_tuple, &token, 1, results.at, results.n);
    return true;
}

bool higher_runs_named(Run *r, const Node *n, const Value *args, const Value *kwargs, Value *out) {
    Named c = {.t = &r->t, .op = node_named_op(n), .n = n, .kwargs = kwargs};
    if (!c.op)
        return false;
    for (int i = 0; i < n->n_kwargs; i++)
        if (trace_has_unknown(&kwargs[i]))
            return false;
    bool ok = str_ends(n->target, "with_effects")
                  ? behind_token(&c, args, out)
                  : functionalized(&c, str_ends(n->target, "_v2"), out);
    r->t.failed = r->t.failed || !ok;
    return true;
}
