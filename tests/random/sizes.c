// sizes.c: sizes, dimensions, permutations and numbers of symbols, as arguments.
#include "tests/random/make.h"

#include <string.h>

// A size as an argument: its number, or the input that holds it.
static bool size_value(Make *m, const Expr *e, Value *out) {
    int64_t v;
    *out = val_int(0);
    if (expr_int(e, &v)) {
        *out = val_int(v);
        return true;
    }
    GRAPH_EACH (m->g, p)
        if (p->op == FX_placeholder && p->val.kind == VAL_sym && p->val.sym == e) {
            *out = val_node(p);
            return true;
        }
    return false;
}

// Neighbours merged, one split in two, or all flat.
bool view_sizes(Args *a, Value *out) {
    Make *m = a->m;
    const TensorMeta *t = meta_of(&a->first);
    Value v[MOST_DIMS + 1];
    int n = 0, merge = t->ndim > 1 ? pick(m, t->ndim - 1) : -1;
    bool flat = chance(m, 25) || t->ndim == 0, split = chance(m, 40) || t->ndim == 1;
    if (flat) {
        v[n++] = val_int(-1);
    } else {
        int at = pick(m, t->ndim);
        for (int i = 0; i < t->ndim && n <= MOST_DIMS - 1; i++) {
            int64_t size = hint_size(m, t, i);
            if (split && i == at && size % 2 == 0 && size > 0) {
                v[n++] = val_int(2);
                v[n++] = val_int(-1);
            } else if (!split && i == merge) {
                v[n++] = val_int(-1);
                i++;
            } else if (!size_value(m, t->size[i], &v[n++])) {
                return false;
            }
        }
    }
    *out = val_list(m->arena, VAL_list, n);
    memcpy(out->at, v, (size_t)n * sizeof *v);
    return true;
}

bool expand_sizes(Args *a, Value *out) {
    const TensorMeta *t = meta_of(&a->first);
    int lead = t->ndim < MOST_DIMS && chance(a->m, 50);
    *out = val_list(a->m->arena, VAL_list, t->ndim + lead);
    for (int i = 0; i < t->ndim; i++)
        if (expr_is(t->size[i], 1))
            out->at[lead + i] = val_int(1 + pick(a->m, 4));
        else if (!size_value(a->m, t->size[i], &out->at[lead + i]))
            return false;
    if (lead)
        out->at[0] = val_int(1 + pick(a->m, 3));
    return true;
}

// A symbol, or a number made of some; without symbols a small number.
bool some_number(Make *m, Value *out) {
    static const char *const ops[] = {"add", "mul", "floordiv", "sub"};
    Node *s = NULL;
    *out = val_int(1 + pick(m, 5));
    GRAPH_EACH (m->g, p)
        if (p->val.kind == VAL_sym && (!s || chance(m, 50)))
            s = p;
    if (!s)
        return true;
    int k = pick(m, 5);
    *out = val_node(s);
    if (k == 4)
        return true;
    const Op *op = op_find(arena_printf(m->arena, "_operator.%s", ops[k]));
    Value args[2] = {val_node(s), val_int(k == 3 ? 1 : 2)}, v = {0};
    if (!op || s->op != FX_placeholder)
        return true;
    v.kind = VAL_sym;
    const Expr *e = s->val.sym, *two = sym_int(m->g->sym, 2);
    v.sym = k == 0   ? sym_add(m->g->sym, e, two)
            : k == 1 ? sym_mul(m->g->sym, e, two)
            : k == 2 ? sym_floordiv(m->g->sym, e, two)
                     : sym_add_int(m->g->sym, e, -1);
    Node *n = graph_node(m->g, FX_call_function, op->qualname, ops[k], args, 2, NULL, 0);
    n->def = op;
    n->val = v;
    *out = val_node(n);
    return true;
}

bool some_sizes(Args *a, Value *out) {
    int n = pick(a->m, 4);
    *out = val_list(a->m->arena, VAL_list, n);
    for (int i = 0; i < n; i++)
        if (a->m->dynamic && chance(a->m, 50))
            some_number(a->m, &out->at[i]);
        else
            out->at[i] = val_int(1 + pick(a->m, 5));
    return true;
}

// Of the same width.
bool other_dtype(Args *a, Value *out) {
    static const DType pairs[][2] = {{DT_f64, DT_i64}, {DT_i64, DT_f64}, {DT_i32, DT_i32},
                                     {DT_i16, DT_i16}, {DT_i8, DT_u8},   {DT_u8, DT_i8}};
    for (int i = 0; i < COUNT(pairs); i++)
        if (pairs[i][0] == meta_of(&a->first)->dtype) {
            *out = val_dtype(pairs[i][1]);
            return true;
        }
    return false;
}

Value permutation(Args *a) {
    int n = meta_of(&a->first)->ndim;
    Value v = val_list(a->m->arena, VAL_list, n);
    for (int i = 0; i < n; i++) {
        int k = pick(a->m, i + 1);
        v.at[i] = v.at[k];
        v.at[k] = val_int(i);
    }
    return v;
}

Value some_dims(Args *a) {
    int n = meta_of(&a->first)->ndim, first = n ? pick(a->m, n) : 0;
    int64_t d[2] = {first, (first + 1) % (n ? n : 1)};
    return ints(a->m, d, n == 0 ? 0 : n > 1 && chance(a->m, 35) ? 2 : 1);
}

Value repeated(Args *a, int least, int most, int per_dim) {
    int n = meta_of(&a->first)->ndim * per_dim;
    n = per_dim == 2 && n > 4 ? 4 : n;
    Value v = val_list(a->m->arena, VAL_list, n);
    for (int i = 0; i < n; i++)
        v.at[i] = val_int(least + pick(a->m, most - least + 1));
    return v;
}
