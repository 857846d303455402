// logic.c: comparisons and what combines them. A comparison is decided at making only if its sides
// differ by a number or by something whose sign follows from the symbols' assumptions.
#include "core/sym/expr.h"

#include <string.h>

static bool compare_ints(SymKind kind, int64_t a, int64_t b) {
    switch (kind) {
    case SYM_eq:
        return a == b;
    case SYM_ne:
        return a != b;
    case SYM_lt:
        return a < b;
    case SYM_le:
        return a <= b;
    case SYM_gt:
        return a > b;
    default:
        return a >= b;
    }
}

// 1: holds, 0: does not, -1: the sign of a - b does not tell.
static int by_sign(SymKind kind, int sign) {
    switch (kind) {
    case SYM_eq:
        return sign & (SIGN_pos | SIGN_neg) ? 0 : -1;
    case SYM_ne:
        return sign & (SIGN_pos | SIGN_neg) ? 1 : -1;
    case SYM_lt:
        return sign & SIGN_neg ? 1 : sign & SIGN_nonneg ? 0 : -1;
    case SYM_le:
        return sign & SIGN_nonpos ? 1 : sign & SIGN_pos ? 0 : -1;
    case SYM_gt:
        return sign & SIGN_pos ? 1 : sign & SIGN_nonpos ? 0 : -1;
    default:
        return sign & SIGN_nonneg ? 1 : sign & SIGN_neg ? 0 : -1;
    }
}

static bool is_bool(const Expr *e) {
    return sym_kinds[e->kind].value == VALUE_bool;
}

const Expr *sym_cmp(Sym *s, SymKind kind, const Expr *a, const Expr *b) {
    if (is_poison(a) || is_poison(b))
        return s->overflow;
    if (a == b)
        return sym_bool(s, kind == SYM_eq || kind == SYM_le || kind == SYM_ge);
    if (a->kind == SYM_int && b->kind == SYM_int)
        return sym_bool(s, compare_ints(kind, a->value, b->value));
    if (!is_bool(a) && !is_bool(b)) {
        const Expr *diff = sym_sub(s, a, b);
        if (diff->kind == SYM_int)
            return sym_bool(s, compare_ints(kind, diff->value, 0));
        int known = by_sign(kind, diff->sign);
        if (known >= 0)
            return sym_bool(s, known);
    }
    return expr_intern(s, kind, (const Expr *const[]){a, b}, 2);
}

static SymKind negated(SymKind kind) {
    switch (kind) {
    case SYM_eq:
        return SYM_ne;
    case SYM_ne:
        return SYM_eq;
    case SYM_lt:
        return SYM_ge;
    case SYM_ge:
        return SYM_lt;
    case SYM_gt:
        return SYM_le;
    case SYM_le:
        return SYM_gt;
    default:
        return SYM_n_kinds;
    }
}

const Expr *sym_not(Sym *s, const Expr *a) {
    if (is_poison(a))
        return a;
    if (expr_true(a) || expr_false(a))
        return sym_bool(s, expr_false(a));
    if (a->kind == SYM_not)
        return a->args[0];
    if (negated((SymKind)a->kind) != SYM_n_kinds)
        return sym_cmp(s, negated((SymKind)a->kind), a->args[0], a->args[1]);
    return expr_intern(s, SYM_not, &a, 1);
}

static bool among(const Expr *const args[], int n, const Expr *e) {
    for (int i = 0; i < n; i++)
        if (args[i] == e)
            return true;
    return false;
}

// And and Or differ in which constant decides and which is dropped.
static const Expr *combine(Sym *s, SymKind kind, const Expr *a, const Expr *b) {
    if (is_poison(a) || is_poison(b))
        return s->overflow;
    const Expr *decides = sym_bool(s, kind == SYM_or), *neutral = sym_bool(s, kind == SYM_and);
    if (a == decides || b == decides)
        return decides;
    if (a == neutral || a == b)
        return b;
    if (b == neutral)
        return a;
    Arena tmp = {0};
    int na = a->kind == kind ? a->n : 1, nb = b->kind == kind ? b->n : 1, n = na;
    const Expr **args = ARENA_ARRAY(&tmp, na + nb, const Expr *);
    memcpy(args, a->kind == kind ? a->args : &a, (size_t)na * sizeof *args);
    const Expr *const *more = b->kind == kind ? b->args : &b, *e = NULL;
    for (int i = 0; i < nb && !e; i++) {
        if (among(args, n, sym_not(s, more[i])))
            e = decides;
        else if (!among(args, n, more[i]))
            args[n++] = more[i];
    }
    if (!e) {
        expr_sort(args, n, expr_lattice_compare);
        e = n == 1 ? args[0] : expr_intern(s, kind, args, n);
    }
    arena_free(&tmp);
    return e;
}

const Expr *sym_and(Sym *s, const Expr *a, const Expr *b) {
    return combine(s, SYM_and, a, b);
}

const Expr *sym_or(Sym *s, const Expr *a, const Expr *b) {
    return combine(s, SYM_or, a, b);
}
