// order.c: the two orders that sympy keeps. Arguments are stored in the order of Basic.compare
// (expr_compare); they are printed in the order of sort_key, sums by descending monomials.
#include "core/sym/expr.h"

#include <string.h>

static void merge_sort(const Expr **at, const Expr **tmp, int n,
                       int (*compare)(const Expr *, const Expr *)) {
    if (n < 12) {
        for (int i = 1; i < n; i++) {
            const Expr *e = at[i];
            int j = i;
            for (; j > 0 && compare(at[j - 1], e) > 0; j--)
                at[j] = at[j - 1];
            at[j] = e;
        }
        return;
    }
    int half = n / 2;
    merge_sort(at, tmp, half, compare);
    merge_sort(at + half, tmp, n - half, compare);
    memcpy(tmp, at, (size_t)half * sizeof *at);
    int i = 0, j = half, k = 0;
    while (i < half && j < n)
        at[k++] = compare(tmp[i], at[j]) <= 0 ? tmp[i++] : at[j++];
    while (i < half)
        at[k++] = tmp[i++];
}

void expr_sort(const Expr **at, int n, int (*compare)(const Expr *, const Expr *)) {
    if (n < 12) {
        merge_sort(at, NULL, n, compare);
        return;
    }
    Arena tmp = {0};
    merge_sort(at, ARENA_ARRAY(&tmp, n / 2, const Expr *), n, compare);
    arena_free(&tmp);
}

static int compare_ints(int64_t a, int64_t b) {
    return (a > b) - (a < b);
}

// Place of a class in sympy's ordering_of_classes; the classes it does not list go by name behind
// it.
static int class_rank(const Expr *e) {
    switch ((SymKind)e->kind) {
    case SYM_int:
        return e->value == 0 ? 0 : e->value == 1 ? 1 : e->value == -1 ? 5 : 7;
    case SYM_symbol:
        return 13;
    case SYM_pow:
        return 15;
    case SYM_mul:
        return 16;
    case SYM_add:
        return 17;
    case SYM_eq:
        return 60;
    case SYM_ne:
        return 61;
    case SYM_gt:
        return 62;
    case SYM_lt:
        return 63;
    case SYM_ge:
        return 64;
    case SYM_le:
        return 65;
    default:
        return 100;
    }
}

static const char *class_name(const Expr *e) {
    switch ((SymKind)e->kind) {
    case SYM_true:
        return "BooleanTrue";
    case SYM_false:
        return "BooleanFalse";
    case SYM_inf:
        return "IntInfinity";
    case SYM_eq:
        return "Equality";
    case SYM_ne:
        return "Unequality";
    default:
        return sym_kinds[e->kind].printed;
    }
}

int expr_compare(const Expr *a, const Expr *b) {
    if (a == b)
        return 0;
    int ra = class_rank(a), rb = class_rank(b);
    if (ra != rb)
        return ra - rb;
    if (a->kind != b->kind)
        return strcmp(class_name(a), class_name(b));
    if (a->kind == SYM_int)
        return compare_ints(a->value, b->value);
    // sympy compares the number of facts known of a symbol first: the stronger the assumption, the
    // more.
    if (a->kind == SYM_symbol)
        return a->assume != b->assume ? a->assume - b->assume : strcmp(a->name, b->name);
    if (a->n != b->n)
        return a->n - b->n;
    for (int i = 0; i < a->n; i++) {
        int c = expr_compare(a->args[i], b->args[i]);
        if (c)
            return c;
    }
    return 0;
}

// sympy's class_key: a group, a rank in it, then the class's name.
static int key_group(const Expr *e) {
    switch ((SymKind)e->kind) {
    case SYM_int:
    case SYM_inf:
        return 1;
    case SYM_symbol:
        return 2;
    case SYM_add:
    case SYM_mul:
    case SYM_pow:
        return 3;
    case SYM_min:
    case SYM_max:
    case SYM_true:
    case SYM_false:
    case SYM_eq:
    case SYM_ne:
    case SYM_lt:
    case SYM_le:
    case SYM_gt:
    case SYM_ge:
    case SYM_and:
    case SYM_or:
    case SYM_not:
        return 5;
    default:
        return 4;
    }
}

static int key_rank(const Expr *e) {
    if (key_group(e) == 4)
        return e->kind == SYM_identity ? 0 : 10000;
    return e->kind == SYM_add ? 1 : e->kind == SYM_pow ? 2 : 0;
}

// One part of a key: the arguments, sums and products as they print.
static int compare_key_args(const Expr *a, const Expr *b) {
    if (a->kind == SYM_symbol)
        return strcmp(a->name, b->name);
    if (a->n != b->n)
        return a->n - b->n;
    bool ordered = a->kind == SYM_add || a->kind == SYM_mul;
    const Expr *const *x = ordered ? expr_ordered(a) : a->args;
    const Expr *const *y = ordered ? expr_ordered(b) : b->args;
    for (int i = 0; i < a->n; i++) {
        int c = expr_sort_key_compare(x[i], y[i]);
        if (c)
            return c;
    }
    return 0;
}

// Numbers come before all else.
static int compare_numbers(const Expr *a, const Expr *b) {
    if (a->kind == SYM_int && b->kind == SYM_int)
        return compare_ints(a->value, b->value);
    return a->kind == SYM_int ? -1 : 1;
}

int expr_sort_key_compare(const Expr *a, const Expr *b) {
    if (a == b)
        return 0;
    if (a->kind == SYM_int || b->kind == SYM_int)
        return compare_numbers(a, b);
    const Expr *ra = a->rest, *rb = b->rest;
    int64_t ca = a->kind == SYM_mul ? a->value : 1, cb = b->kind == SYM_mul ? b->value : 1;
    int64_t ea, eb;
    const Expr *xa = factor_split(ra, &ea), *xb = factor_split(rb, &eb);
    if (xa != xb) {
        int c = key_group(xa) - key_group(xb);
        c = c ? c : key_rank(xa) - key_rank(xb);
        c = c ? c : strcmp(class_name(xa), class_name(xb));
        c = c ? c : compare_key_args(xa, xb);
        if (c)
            return c;
    }
    return ea != eb ? compare_ints(ea, eb) : compare_ints(ca, cb);
}

int expr_lattice_compare(const Expr *a, const Expr *b) {
    return a->size != b->size ? (a->size > b->size) - (a->size < b->size)
                              : expr_sort_key_compare(a, b);
}

// Factors of a term without its coefficient, in order of their bases.
static int term_factors(const Expr *term, const Expr *const **factors, const Expr **self) {
    const Expr *rest;
    term_split(term, &rest);
    if (!rest)
        return 0;
    *self = rest;
    *factors = rest->kind == SYM_mul ? expr_ordered(rest) : self;
    return rest->kind == SYM_mul ? rest->n : 1;
}

// Lexicographic by exponents, the largest monomial first, the constant last.
int expr_term_compare(const Expr *a, const Expr *b) {
    const Expr *const *fa = NULL, *const *fb = NULL, *self_a, *self_b;
    int na = term_factors(a, &fa, &self_a), nb = term_factors(b, &fb, &self_b);
    for (int i = 0; i < na && i < nb; i++) {
        int64_t ea, eb;
        const Expr *xa = factor_split(fa[i], &ea), *xb = factor_split(fb[i], &eb);
        if (xa != xb) {
            int c = expr_sort_key_compare(xa, xb);
            if (c)
                return c;
        }
        if (ea != eb)
            return ea > eb ? -1 : 1;
    }
    return nb - na;
}

// `5 - 2*x` keeps the positive number in front.
static bool number_goes_first(const Expr *e) {
    if (e->n != 2 || e->args[0]->kind != SYM_int || e->args[0]->value <= 0)
        return false;
    const Expr *m = e->args[1];
    return m->kind == SYM_mul && m->n == 2 && m->value < 0;
}

const Expr *const *expr_ordered(const Expr *e) {
    bool sorted =
        e->kind == SYM_add || e->kind == SYM_mul || e->kind == SYM_min || e->kind == SYM_max;
    if (!sorted || e->n < 2)
        return e->args;
    if (!e->ordered) {
        // Filled in late because only printing needs it; the expression is its home's, which is not
        // const.
        Expr *own = (Expr *)(uintptr_t)e;
        own->ordered = ARENA_ARRAY(e->sym->arena, e->n, const Expr *);
        memcpy(own->ordered, e->args, (size_t)e->n * sizeof *e->args);
        if (e->kind != SYM_add)
            expr_sort(own->ordered, e->n, expr_sort_key_compare);
        else if (!number_goes_first(e))
            expr_sort(own->ordered, e->n, expr_term_compare);
    }
    return e->ordered;
}

int expr_precedence(const Expr *e) {
    if (e->kind == SYM_int)
        return e->value < 0 ? sym_kinds[SYM_add].precedence : sym_kinds[SYM_int].precedence;
    if (e->kind == SYM_mul && e->value < 0)
        return sym_kinds[SYM_add].precedence;
    return sym_kinds[e->kind].precedence;
}
