// func.c: the integer functions with the simplifications that PyTorch's sympy classes do when they
// are constructed (torch/utils/_sympy/functions.py tells which): division, remainder, minimum,
// maximum.
#include "core/sym/expr.h"

#include <string.h>

static const Expr *intern2(Sym *s, SymKind kind, const Expr *a, const Expr *b) {
    return expr_intern(s, kind, (const Expr *const[]){a, b}, 2);
}

// Takes the terms that the number divides out of the sum: base = *multiple * divisor + what is
// returned.
static const Expr *split_multiples(Sym *s, const Expr *base, int64_t divisor,
                                   const Expr **multiple) {
    const Expr *const *terms;
    int n = terms_of(base, &terms, &base);
    *multiple = sym_int(s, 0);
    const Expr *left = base;
    for (int i = 0; i < n; i++) {
        const Expr *rest;
        int64_t k = term_split(terms[i], &rest);
        if ((rest && rest->kind == SYM_inf) || divisor == 0 || divisor == -1 || k % divisor)
            continue;
        const Expr *q = sym_int(s, k / divisor);
        *multiple = sym_add(s, *multiple, rest ? sym_mul(s, q, rest) : q);
        left = sym_sub(s, left, terms[i]);
    }
    return left;
}

static const Expr *floordiv_inf(Sym *s, const Expr *a, const Expr *b) {
    const Expr *ra, *rb;
    int64_t ka = term_split(a, &ra), kb = term_split(b, &rb);
    bool ia = ra == s->inf, ib = rb == s->inf;
    if (ia && ib)
        return s->overflow;
    if (ia && b->kind == SYM_int)
        return (ka > 0) == (kb > 0) ? s->inf : sym_neg(s, s->inf);
    if (ib && a->kind == SYM_int)
        return sym_int(s, (ka > 0) == (kb > 0) ? 0 : -1);
    return NULL;
}

static const Expr *make_floordiv(Sym *s, const Expr *a, const Expr *b) {
    int64_t v;
    if (is_poison(a) || is_poison(b) || expr_is(b, 0))
        return s->overflow;
    if (expr_is(a, 0) || expr_is(b, 1))
        return a;
    if (expr_is(b, -1))
        return sym_neg(s, a);
    if ((a->kinds | b->kinds) & KIND_BIT(SYM_inf)) {
        const Expr *e = floordiv_inf(s, a, b);
        if (e)
            return e;
    }
    if (a == b)
        return sym_int(s, 1);
    if (a->kind == SYM_int && b->kind == SYM_int)
        return int_floordiv(a->value, b->value, &v) ? sym_int(s, v) : s->overflow;
    // Wrong for a negative outer divisor.
    if (a->kind == SYM_floordiv && has_sign(b, SIGN_nonneg))
        return sym_floordiv(s, a->args[0], sym_mul(s, a->args[1], b));
    if (b->kind == SYM_int) {
        const Expr *multiple, *left = split_multiples(s, a, b->value, &multiple);
        if (!expr_is(multiple, 0))
            return sym_add(s, sym_floordiv(s, left, b), multiple);
    }
    const Expr *gcd = sym_gcd(s, a, b);
    if (expr_is(gcd, 1) && b->kind == SYM_add && sym_exact_div(s, a, b))
        return sym_exact_div(s, a, b);
    const Expr *qa = expr_is(gcd, 1) ? NULL : sym_exact_div(s, a, gcd);
    const Expr *qb = qa ? sym_exact_div(s, b, gcd) : NULL;
    if (qb)
        return sym_floordiv(s, qa, qb);
    return intern2(s, SYM_floordiv, a, b);
}

const Expr *sym_floordiv(Sym *s, const Expr *a, const Expr *b) {
    OpCache *c = op_cache(s, SYM_floordiv, a, b);
    if (c->a != a || c->b != b || c->kind != SYM_floordiv) {
        const Expr *e = make_floordiv(s, a, b);
        *c = (OpCache){a, b, e, SYM_floordiv};
        return e;
    }
    return c->out;
}

const Expr *sym_quotient(Sym *s, const Expr *a, const Expr *b) {
    const Expr *exact = sym_exact_div(s, a, b);
    return exact ? exact : sym_floordiv(s, a, b);
}

const Expr *sym_cleandiv(Sym *s, const Expr *a, const Expr *b) {
    const Expr *e = sym_floordiv(s, a, b);
    return e->kind == SYM_floordiv ? intern2(s, SYM_cleandiv, e->args[0], e->args[1]) : e;
}

const Expr *sym_ceildiv(Sym *s, const Expr *a, const Expr *b) {
    if (sym_exact_div(s, a, b))
        return sym_cleandiv(s, a, b);
    return sym_floordiv(s, sym_add(s, a, sym_add_int(s, b, -1)), b);
}

// In a sum modulo (mod * div) the multiples of that vanish, unless what is left has a negative
// term.
static const Expr *drop_multiples(Sym *s, const Expr *base, const Expr *period) {
    const Expr *left = sym_int(s, 0);
    for (int i = 0; i < base->n; i++) {
        const Expr *term = base->args[i], *rest;
        if (sym_exact_div(s, term, period))
            continue;
        if (term_split(term, &rest) < 0)
            return base;
        left = sym_add(s, left, term);
    }
    return left;
}

static const Expr *make_modular(Sym *s, const Expr *a, const Expr *div, const Expr *mod) {
    int64_t q;
    if (is_poison(a) || is_poison(div) || is_poison(mod) || expr_is(div, 0) || expr_is(mod, 0))
        return s->overflow;
    if (expr_is(a, 0) || expr_is(mod, 1))
        return sym_int(s, 0);
    if (a->kind == SYM_int && div->kind == SYM_int && mod->kind == SYM_int)
        return int_floordiv(a->value, div->value, &q) && int_mod(q, mod->value, &q) ? sym_int(s, q)
                                                                                    : s->overflow;
    if (!expr_is(div, 1)) {
        const Expr *gcd = sym_gcd(s, a, div);
        const Expr *qa = expr_is(gcd, 1) ? NULL : sym_exact_div(s, a, gcd);
        const Expr *qd = qa ? sym_exact_div(s, div, gcd) : NULL;
        if (qd)
            return sym_modular(s, qa, qd, mod);
    }
    if (a->kind == SYM_add) {
        const Expr *left = drop_multiples(s, a, sym_mul(s, mod, div));
        if (left != a)
            return sym_modular(s, left, div, mod);
    }
    if (a->kind == SYM_floordiv && has_sign(div, SIGN_nonneg))
        return sym_modular(s, a->args[0], sym_mul(s, a->args[1], div), mod);
    return expr_intern(s, SYM_modular, (const Expr *const[]){a, div, mod}, 3);
}

const Expr *sym_modular(Sym *s, const Expr *a, const Expr *div, const Expr *mod) {
    return make_modular(s, a, div, mod);
}

// What PythonMod and Mod have in common; NULL: nothing to simplify.
static const Expr *simple_mod(Sym *s, const Expr *a, const Expr *b) {
    if (is_poison(a) || is_poison(b) || expr_is(b, 0))
        return s->overflow;
    if (expr_is(a, 0) || a == b || expr_is(b, 1) || sym_exact_div(s, a, b))
        return sym_int(s, 0);
    if (expr_is(b, 2) && a->kind != SYM_int) {
        const Expr *multiple, *left = split_multiples(s, a, 2, &multiple);
        int64_t v;
        if (expr_int(left, &v) && int_mod(v, 2, &v))
            return sym_int(s, v);
    }
    // a < b and both positive: nothing to take off.
    if (has_sign(a, SIGN_pos) && has_sign(b, SIGN_pos) && expr_true(sym_cmp(s, SYM_lt, a, b)))
        return a;
    return NULL;
}

const Expr *sym_mod(Sym *s, const Expr *a, const Expr *b) {
    const Expr *e = simple_mod(s, a, b);
    int64_t v;
    if (!e && a->kind == SYM_int && b->kind == SYM_int)
        return int_mod(a->value, b->value, &v) ? sym_int(s, v) : s->overflow;
    return e ? e : intern2(s, SYM_pymod, a, b);
}

static const Expr *make_mod(Sym *s, const Expr *a, const Expr *b) {
    const Expr *e = simple_mod(s, a, b);
    int64_t v;
    if (!e && a->kind == SYM_int && b->kind == SYM_int)
        return a->value >= 0 && b->value > 0 && int_mod(a->value, b->value, &v) ? sym_int(s, v)
                                                                                : s->overflow;
    return e ? e : intern2(s, SYM_mod, a, b);
}

// Minimum and maximum as one: flattens, folds numbers, drops doubles.
typedef struct Extremes {
    VEC(const Expr *) found; // arguments that are no numbers
    const Expr *number;      // the extreme one, NULL: none
    bool bad;
} Extremes;

static void collect_extremes(Arena *a, Extremes *x, SymKind kind, const Expr *e) {
    if (e->kind == kind) {
        for (int i = 0; i < e->n; i++)
            collect_extremes(a, x, kind, e->args[i]);
        return;
    }
    x->bad = x->bad || is_poison(e);
    if (e->kind == SYM_int) {
        if (!x->number ||
            (kind == SYM_min ? e->value < x->number->value : e->value > x->number->value))
            x->number = e;
        return;
    }
    for (int i = 0; i < x->found.n; i++)
        if (x->found.at[i] == e)
            return;
    vec_push(a, &x->found, e);
}

// Min(a, Max(a, b)) is a, and the other way round.
static void absorb(Extremes *x, SymKind kind) {
    SymKind other = kind == SYM_min ? SYM_max : SYM_min;
    for (int i = x->found.n - 1; i >= 0; i--) {
        const Expr *e = x->found.at[i];
        bool gone = false;
        for (int j = 0; e->kind == other && !gone && j < e->n; j++) {
            gone = e->args[j] == x->number;
            for (int k = 0; k < x->found.n && !gone; k++)
                gone = k != i && x->found.at[k] == e->args[j];
        }
        if (gone)
            vec_remove(&x->found, i);
    }
}

static const Expr *extreme_of(Sym *s, SymKind kind, const Expr *const args[], int n, Arena *tmp) {
    Extremes x = {0};
    for (int i = 0; i < n; i++)
        collect_extremes(tmp, &x, kind, args[i]);
    if (x.bad)
        return s->overflow;
    const Expr *minus_inf = sym_neg(s, s->inf);
    for (int i = x.found.n - 1; i >= 0; i--) {
        const Expr *e = x.found.at[i];
        if (e == (kind == SYM_min ? minus_inf : s->inf))
            return e;
        if (e == (kind == SYM_min ? s->inf : minus_inf) && x.found.n + !!x.number > 1)
            vec_remove(&x.found, i);
    }
    absorb(&x, kind);
    // One unknown against 0 or 1: its sign decides.
    if (x.number && x.found.n == 1) {
        const Expr *e = x.found.at[0];
        if ((expr_is(x.number, 0) && has_sign(e, SIGN_nonneg)) ||
            (expr_is(x.number, 1) && has_sign(e, SIGN_pos)))
            return kind == SYM_max ? e : x.number;
    }
    if (x.number)
        vec_push(tmp, &x.found, x.number);
    if (x.found.n == 1)
        return x.found.at[0];
    expr_sort(x.found.at, x.found.n, expr_lattice_compare);
    return expr_intern(s, kind, x.found.at, x.found.n);
}

static const Expr *extreme(Sym *s, SymKind kind, const Expr *const args[], int n) {
    Arena tmp = {0};
    const Expr *e = n ? extreme_of(s, kind, args, n, &tmp) : s->overflow;
    arena_free(&tmp);
    return e;
}

const Expr *sym_min(Sym *s, const Expr *a, const Expr *b) {
    return extreme(s, SYM_min, (const Expr *const[]){a, b}, 2);
}

const Expr *sym_max(Sym *s, const Expr *a, const Expr *b) {
    return extreme(s, SYM_max, (const Expr *const[]){a, b}, 2);
}

const Expr *sym_identity(Sym *s, const Expr *a) {
    return is_poison(a) ? a : expr_intern(s, SYM_identity, &a, 1);
}

// Whether sympy would rather write -e: more of its terms have a minus sign, or as many and the
// first that is no number has one.
static bool leads_with_minus(const Expr *e) {
    if (e->kind == SYM_int)
        return e->value < 0;
    if (e->kind == SYM_mul)
        return leads_with_minus(e->args[0]);
    if (e->kind != SYM_add)
        return false;
    int minus = 0;
    for (int i = 0; i < e->n; i++)
        minus += leads_with_minus(e->args[i]);
    const Expr *const *terms = expr_ordered(e);
    return 2 * minus != e->n ? 2 * minus > e->n
                             : leads_with_minus(terms[terms[0]->kind == SYM_int]);
}

const Expr *sym_abs(Sym *s, const Expr *a) {
    if (is_poison(a) || has_sign(a, SIGN_nonneg))
        return a;
    const Expr *minus = has_sign(a, SIGN_nonpos) || leads_with_minus(a) ? sym_neg(s, a) : NULL;
    if (minus && has_sign(minus, SIGN_nonneg))
        return minus;
    if (minus && !leads_with_minus(minus)) // else neither looks better
        a = minus;
    return expr_intern(s, SYM_abs, &a, 1);
}

const Expr *sym_where(Sym *s, const Expr *cond, const Expr *a, const Expr *b) {
    if (is_poison(cond) || is_poison(a) || is_poison(b))
        return s->overflow;
    if (expr_true(cond) || expr_false(cond))
        return expr_true(cond) ? a : b;
    return expr_intern(s, SYM_where, (const Expr *const[]){cond, a, b}, 3);
}

static const Expr *shift(Sym *s, SymKind kind, const Expr *a, const Expr *b) {
    if (b->kind != SYM_int)
        return intern2(s, kind, a, b);
    if (b->value < 0 || b->value > 62)
        return s->overflow;
    const Expr *factor = sym_int(s, INT64_C(1) << b->value);
    return kind == SYM_lshift ? sym_mul(s, a, factor) : sym_floordiv(s, a, factor);
}

static const Expr *fold(Sym *s, SymKind kind, const Expr *const args[], int n) {
    const Expr *e = args[0];
    for (int i = 1; i < n; i++)
        e = kind == SYM_and ? sym_and(s, e, args[i]) : sym_or(s, e, args[i]);
    return e;
}

// Comparisons, logic, and what is kept as it stands.
static const Expr *make_other(Sym *s, SymKind kind, const Expr *const args[], int n) {
    switch (kind) {
    case SYM_eq:
    case SYM_ne:
    case SYM_lt:
    case SYM_le:
    case SYM_gt:
    case SYM_ge:
        return sym_cmp(s, kind, args[0], args[1]);
    case SYM_and:
    case SYM_or:
        return fold(s, kind, args, n);
    case SYM_not:
        return sym_not(s, args[0]);
    case SYM_trunc:
    case SYM_floor:
    case SYM_ceil:
    case SYM_round:
    case SYM_tofloat:
    case SYM_inttruediv:
    case SYM_realdiv:
    case SYM_realpow:
        return expr_intern(s, kind, args, n);
    default:
        return s->overflow;
    }
}

const Expr *sym_make(Sym *s, SymKind kind, const Expr *const args[], int n) {
    if (n < 1 || (sym_kinds[kind].n_args >= 0 && sym_kinds[kind].n_args != n))
        return s->overflow;
    for (int i = 0; i < n; i++)
        if (is_poison(args[i]))
            return s->overflow;
    switch (kind) {
    case SYM_add:
        return sym_sum(s, args, n);
    case SYM_mul:
        return sym_product(s, args, n);
    case SYM_pow:
        return args[1]->kind == SYM_int ? sym_pow(s, args[0], args[1]->value) : s->overflow;
    case SYM_powint:
        return args[1]->kind == SYM_int ? sym_pow(s, args[0], args[1]->value)
                                        : intern2(s, kind, args[0], args[1]);
    case SYM_floordiv:
        return sym_floordiv(s, args[0], args[1]);
    case SYM_cleandiv:
        return sym_cleandiv(s, args[0], args[1]);
    case SYM_ceildiv:
        return sym_ceildiv(s, args[0], args[1]);
    case SYM_modular:
        return sym_modular(s, args[0], args[1], args[2]);
    case SYM_pymod:
        return sym_mod(s, args[0], args[1]);
    case SYM_mod:
        return make_mod(s, args[0], args[1]);
    case SYM_min:
    case SYM_max:
        return extreme(s, kind, args, n);
    case SYM_identity:
        return sym_identity(s, args[0]);
    case SYM_abs:
        return sym_abs(s, args[0]);
    case SYM_where:
        return sym_where(s, args[0], args[1], args[2]);
    case SYM_lshift:
    case SYM_rshift:
        return shift(s, kind, args[0], args[1]);
    default:
        return make_other(s, kind, args, n);
    }
}
