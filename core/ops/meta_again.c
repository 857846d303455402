// meta_again.c: metadata of a call that was annotated before. A rule that meets sizes it cannot
// know makes new unbacked symbols each time it runs; asked again about a call whose result is
// known, those of the known result take their places (PyTorch's rebind_unbacked).
#include "core/base/vec.h"
#include "core/ops/ops.h"

typedef struct Rebind {
    MetaCtx *m;
    int first; // number of the first new symbol
    VEC(const Expr *) from; // new symbols
    VEC(const Expr *) to;   // what is known to stand there
} Rebind;

static void match(Rebind *r, const Expr *fresh, const Expr *known) {
    if (fresh == known)
        return;
    if (expr_unbacked(fresh) < r->first) {
        if (expr_kind(fresh) != expr_kind(known) || expr_n_args(fresh) != expr_n_args(known))
            return;
        for (int i = 0; i < expr_n_args(fresh); i++)
            match(r, expr_arg(fresh, i), expr_arg(known, i));
        return;
    }
    for (int i = 0; i < r->from.n; i++)
        if (r->from.at[i] == fresh)
            return;
    vec_push(r->m->arena, &r->from, fresh);
    vec_push(r->m->arena, &r->to, known);
}

static void match_values(Rebind *r, const Value *fresh, const Value *known) {
    const Expr *was;
    if (fresh->kind == VAL_sym && val_as_expr(r->m->sym, known, &was))
        match(r, fresh->sym, was);
    if (fresh->kind == VAL_tensor && known->kind == VAL_tensor &&
        fresh->tensor->ndim == known->tensor->ndim)
        for (int i = 0; i < fresh->tensor->ndim; i++)
            match(r, fresh->tensor->size[i], known->tensor->size[i]);
    bool lists = (fresh->kind == VAL_tuple || fresh->kind == VAL_list) &&
                 (known->kind == VAL_tuple || known->kind == VAL_list);
    for (int i = 0; lists && i < fresh->n && i < known->n; i++)
        match_values(r, &fresh->at[i], &known->at[i]);
}

static const Expr *put_in(const Rebind *r, const Expr *e) {
    return e ? sym_subst(r->m->sym, e, r->from.at, r->to.at, r->from.n) : NULL;
}

static Value rebound(const Rebind *r, const Value *v, const Value *known) {
    if (v->kind == VAL_sym)
        return val_sym(put_in(r, v->sym));
    if (v->kind == VAL_symfloat && known->kind == VAL_symfloat)
        return *known;
    if (v->kind == VAL_tuple || v->kind == VAL_list) {
        static const Value none;
        bool lists = known->kind == VAL_tuple || known->kind == VAL_list;
        Value list = val_list(r->m->arena, v->kind, v->n);
        for (int i = 0; i < v->n; i++)
            list.at[i] = rebound(r, &v->at[i], lists && i < known->n ? &known->at[i] : &none);
        return list;
    }
    if (v->kind != VAL_tensor)
        return *v;
    TensorMeta *t = meta_copy(r->m->arena, v->tensor);
    for (int i = 0; i < t->ndim; i++) {
        t->size[i] = put_in(r, t->size[i]);
        if (t->stride)
            t->stride[i] = put_in(r, t->stride[i]);
    }
    t->offset = put_in(r, t->offset);
    return val_tensor(t);
}

bool op_meta_again(MetaCtx *m, const Op *op, const Value *args, const Value *known, Value *out) {
    Rebind r = {.m = m, .first = sym_count_unbacked(m->sym)};
    int reals = sym_count_unbacked_reals(m->sym);
    if (!op_meta(m, op, args, out))
        return false;
    if (sym_count_unbacked(m->sym) == r.first && sym_count_unbacked_reals(m->sym) == reals)
        return true;
    match_values(&r, out, known);
    *out = rebound(&r, out, known);
    return true;
}
