// decomp_pad.c: decompositions of reflection and replication padding and of reflection's backward.
#include "core/aot/decomp.h"

typedef Value PadIndex(Trace *t, Value x, const Expr *left, const Expr *middle, const Expr *right);

static Value places(Trace *t, Value x, const Expr *left, const Expr *middle, const Expr *right) {
    return CALL(t, aten_arange_start, val_sym(sym_neg(t->sym, left)),
                val_sym(sym_add(t->sym, middle, right)), NONE, NONE, device_of_tensor(x),
                BOOL(false));
}

static Value mirrored(Trace *t, Value x, const Expr *left, const Expr *middle, const Expr *right) {
    Value last = val_sym(sym_add_int(t->sym, middle, -1));
    Value i = places(t, x, left, middle, right);
    i = CALL(t, aten_abs_default, i);
    i = CALL(t, aten_rsub_Scalar, i, last);
    i = CALL(t, aten_abs_default, i);
    return CALL(t, aten_rsub_Scalar, i, last);
}

static Value clamped(Trace *t, Value x, const Expr *left, const Expr *middle, const Expr *right) {
    Value i = places(t, x, left, middle, right);
    return CALL(t, aten_clamp_default, i, INT(0), val_sym(sym_add_int(t->sym, middle, -1)));
}

static bool padded(Trace *t, const Value *a, PadIndex *index, Value *out) {
    int spatial = a[1].n / 2, first = dim_of(a[0]) - spatial;
    Promotion p = promote_default(t, a, 1);
    Value x = to_dtype(t, a[0], p.compute);
    for (int i = 0; i < spatial && !t->failed; i++) {
        const Expr *left, *right;
        int at = 2 * (spatial - 1 - i);
        if (!val_as_expr(t->sym, &a[1].at[at], &left) ||
            !val_as_expr(t->sym, &a[1].at[at + 1], &right))
            return false;
        Value where = index(t, x, left, size_of(t, a[0], first + i), right);
        x = CALL(t, aten__unsafe_index_Tensor, x, index_at(t, dim_of(x), first + i, where));
    }
    x = contiguous(t, x, suggest_memory_format(t, x));
    *out = to_dtype(t, x, p.result);
    return true;
}

bool decomp_reflection_pad(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    return padded(t, a, mirrored, out);
}

bool decomp_replication_pad(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    return padded(t, a, clamped, out);
}

// backward: each place of the input gathers the gradients of the places that mirror it

enum { MAX_SPATIAL = 3 };

// An index, and the bounds between which it counts.
typedef struct Part {
    Value index;
    Value at; // what is compared
    const Expr *low, *high;
} Part;

typedef struct Mirror {
    Trace *t;
    Value grad;
    int n;      // spatial dimensions
    Value lead; // indices of the leading dimensions, a list
    Value at[MAX_SPATIAL], center[MAX_SPATIAL], left[MAX_SPATIAL], right[MAX_SPATIAL];
    const Expr *last[MAX_SPATIAL], *pad_left[MAX_SPATIAL], *pad_right[MAX_SPATIAL];
} Mirror;

static Value within(Trace *t, const Part *r) {
    Value low = py_ge(t, r->at, val_sym(r->low));
    Value high = py_le(t, r->at, val_sym(r->high));
    return CALL(t, aten_logical_and_default, low, high);
}

static Value gathered(Mirror *m, const Part *r) {
    Trace *t = m->t;
    Value cond[MAX_SPATIAL], index = val_list(t->arena, VAL_list, m->lead.n + m->n);
    for (int i = 0; i < m->n; i++)
        cond[i] = within(t, &r[i]);
    for (int i = 1; i < m->n; i++)
        cond[0] = CALL(t, aten_logical_and_default, cond[0], cond[i]);
    for (int i = 0; i < index.n; i++)
        index.at[i] = i < m->lead.n ? m->lead.at[i] : r[i - m->lead.n].index;
    return CALL(t, aten__unsafe_masked_index_default, m->grad, cond[0], index, FLT(0));
}

static Part region(Mirror *m, int i, int side) {
    Sym *s = m->t->sym;
    if (side == 0)
        return (Part){m->center[i], m->center[i], sym_int(s, 0),
                      sym_add(s, sym_add(s, m->last[i], m->pad_left[i]), m->pad_right[i])};
    if (side < 0)
        return (Part){m->left[i], m->at[i], sym_int(s, 1), m->pad_left[i]};
    return (Part){m->right[i], m->at[i], sym_sub(s, m->last[i], m->pad_right[i]),
                  sym_add_int(s, m->last[i], -1)};
}

static bool mirror_init(Mirror *m, const Value *a) {
    Trace *t = m->t;
    int ndim = dim_of(a[1]), first = ndim - m->n;
    Value index = val_list(t->arena, VAL_list, ndim);
    for (int i = 0; i < m->n; i++) {
        int at = 2 * (m->n - 1 - i);
        m->last[i] = sym_add_int(t->sym, size_of(t, a[1], first + i), -1);
        if (!val_as_expr(t->sym, &a[2].at[at], &m->pad_left[i]) ||
            !val_as_expr(t->sym, &a[2].at[at + 1], &m->pad_right[i]))
            return false;
    }
    for (int i = 0; i < ndim; i++) {
        Value shape = val_list(t->arena, VAL_list, ndim);
        for (int k = 0; k < ndim; k++)
            shape.at[k] = INT(k == i ? -1 : 1);
        Value x = py_arange(t, val_sym(size_of(t, a[1], i)), DT_none, a[1]);
        index.at[i] = CALL(t, aten_view_default, x, shape);
    }
    m->lead = (Value){.kind = VAL_list, .n = first, .at = index.at};
    for (int i = 0; i < m->n; i++)
        m->at[i] = index.at[first + i];
    for (int i = 0; i < m->n; i++)
        m->center[i] = py_add(t, m->at[i], val_sym(m->pad_left[i]));
    for (int i = 0; i < m->n; i++)
        m->left[i] = py_sub(t, val_sym(m->pad_left[i]), m->at[i]);
    for (int i = 0; i < m->n; i++) {
        const Expr *far = sym_add(t->sym, sym_mul_int(t->sym, m->last[i], 2), m->pad_left[i]);
        m->right[i] = py_sub(t, val_sym(far), m->at[i]);
    }
    return true;
}

bool decomp_reflection_pad_backward(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    Mirror m = {.t = t, .grad = a[0], .n = a[2].n / 2};
    if (m.n > MAX_SPATIAL || !mirror_init(&m, a))
        return false;
    Part r[MAX_SPATIAL];
    for (int i = 0; i < m.n; i++)
        r[i] = region(&m, i, 0);
    Value g = gathered(&m, r);
    int areas = m.n == 1 ? 3 : m.n == 2 ? 9 : 27;
    for (int area = 0; area < areas; area++) {
        bool center = true, nothing = false;
        for (int i = m.n - 1, code = area; i >= 0; i--, code /= 3) {
            int side = code % 3 - 1;
            center = center && side == 0;
            r[i] = region(&m, i, side);
            int64_t low, high;
            nothing =
                nothing || (expr_int(r[i].low, &low) && expr_int(r[i].high, &high) && high < low);
        }
        if (!center && !nothing)
            g = py_add(t, g, gathered(&m, r));
    }
    *out = g;
    return true;
}
