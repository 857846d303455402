// eval.c: the value of an expression. Every operation is checked; a value outside 64 bits, a
// division by zero or a kind that has no integer value makes the whole evaluation fail.
#include "core/sym/expr.h"

typedef struct Eval {
    SymLookup *lookup;
    void *ctx;
} Eval;

static bool value_of(const Eval *x, const Expr *e, int64_t *out);

static bool fold_values(const Eval *x, const Expr *e, int64_t *out) {
    if (!value_of(x, e->args[0], out))
        return false;
    for (int i = 1; i < e->n; i++) {
        int64_t v;
        if (!value_of(x, e->args[i], &v))
            return false;
        if (e->kind == SYM_add ? __builtin_add_overflow(*out, v, out)
                               : e->kind == SYM_mul && __builtin_mul_overflow(*out, v, out))
            return false;
        if ((e->kind == SYM_min && v < *out) || (e->kind == SYM_max && v > *out))
            *out = v;
    }
    return true;
}

static bool any_or_all(const Eval *x, const Expr *e, int64_t *out) {
    *out = e->kind == SYM_and;
    for (int i = 0; i < e->n; i++) {
        int64_t v;
        if (!value_of(x, e->args[i], &v))
            return false;
        if (e->kind == SYM_and ? !v : v)
            *out = e->kind == SYM_or;
    }
    return true;
}

static bool binary(SymKind kind, int64_t a, int64_t b, int64_t *out) {
    int64_t r;
    switch (kind) {
    case SYM_pow:
    case SYM_powint:
        return int_pow(a, b, out);
    case SYM_floordiv:
    case SYM_cleandiv:
        return int_floordiv(a, b, out);
    case SYM_ceildiv:
        if (!int_floordiv(a, b, out) || !int_mod(a, b, &r))
            return false;
        *out += r != 0;
        return true;
    case SYM_pymod:
        return int_mod(a, b, out);
    case SYM_mod:
        return a >= 0 && b > 0 && int_mod(a, b, out);
    case SYM_lshift:
        return b >= 0 && b < 63 && !__builtin_mul_overflow(a, INT64_C(1) << b, out);
    case SYM_rshift:
        return b >= 0 && b < 63 && int_floordiv(a, INT64_C(1) << b, out);
    case SYM_eq:
        *out = a == b;
        return true;
    case SYM_ne:
        *out = a != b;
        return true;
    case SYM_lt:
        *out = a < b;
        return true;
    case SYM_le:
        *out = a <= b;
        return true;
    case SYM_gt:
        *out = a > b;
        return true;
    case SYM_ge:
        *out = a >= b;
        return true;
    default:
        return false;
    }
}

static bool value_of(const Eval *x, const Expr *e, int64_t *out) {
    int64_t a, b, c;
    switch ((SymKind)e->kind) {
    case SYM_int:
        *out = e->value;
        return true;
    case SYM_symbol:
        return x->lookup && x->lookup(x->ctx, e, out);
    case SYM_true:
    case SYM_false:
        *out = e->kind == SYM_true;
        return true;
    case SYM_add:
    case SYM_mul:
    case SYM_min:
    case SYM_max:
        return fold_values(x, e, out);
    case SYM_identity:
        return value_of(x, e->args[0], out);
    case SYM_abs:
        if (!value_of(x, e->args[0], &a) || a == INT64_MIN)
            return false;
        *out = a < 0 ? -a : a;
        return true;
    case SYM_modular:
        return value_of(x, e->args[0], &a) && value_of(x, e->args[1], &b) &&
               value_of(x, e->args[2], &c) && int_floordiv(a, b, &a) && int_mod(a, c, out);
    case SYM_where:
        return value_of(x, e->args[0], &a) && value_of(x, e->args[a ? 1 : 2], out);
    case SYM_and:
    case SYM_or:
        return any_or_all(x, e, out);
    case SYM_not:
        if (!value_of(x, e->args[0], &a))
            return false;
        *out = !a;
        return true;
    default:
        return e->n == 2 && value_of(x, e->args[0], &a) && value_of(x, e->args[1], &b) &&
               binary((SymKind)e->kind, a, b, out);
    }
}

bool sym_eval(const Expr *e, SymLookup *lookup, void *ctx, int64_t *out) {
    Eval x = {lookup, ctx};
    return value_of(&x, e, out);
}
