// arith.c: sums, products and powers in sympy's canonical form: like terms collected, numbers
// folded and put first, arguments in the order of expr_compare, a number times a sum multiplied
// out.
#include "core/sym/expr.h"

#include <assert.h>
#include <string.h>

// A sum or product being collected. Small ones live in `few`.
enum { FEW = 16 };
typedef struct Part {
    const Expr *e; // rest of a term, or base of a factor
    int64_t k; // its coefficient or exponent
} Part;
typedef struct Parts {
    Arena tmp; // when there are many
    Part few[FEW];
    Part *at;
    int n, cap;
    int64_t number; // the constant term or factor
    int inf; // bit 0: +inf seen, bit 1: -inf
    bool bad; // overflow
    Map index; // id -> place, once there are more than FEW
} Parts;

static void parts_init(Parts *p, int64_t number) {
    p->tmp = (Arena){0};
    p->at = p->few;
    p->n = p->inf = 0;
    p->cap = FEW;
    p->number = number;
    p->bad = false;
    p->index = (Map){0};
}

static Part *parts_find(Parts *p, const Expr *e) {
    if (p->cap == FEW) {
        for (int i = 0; i < p->n; i++)
            if (p->at[i].e == e)
                return &p->at[i];
        return NULL;
    }
    MapEntry *entry = map_find_id(&p->index, e->id);
    return entry ? &p->at[entry->i] : NULL;
}

static void parts_push(Parts *p, const Expr *e, int64_t k) {
    if (p->n == p->cap) {
        bool first = p->cap == FEW;
        p->at = arena_grow(&p->tmp, p->at, (size_t)p->n, (size_t)p->cap * 2, sizeof *p->at);
        p->cap *= 2;
        p->index.arena = &p->tmp;
        for (int i = 0; first && i < p->n; i++)
            map_at_id(&p->index, p->at[i].e->id)->i = i;
    }
    if (p->cap > FEW)
        map_at_id(&p->index, e->id)->i = p->n;
    p->at[p->n++] = (Part){e, k};
}

static void parts_add(Parts *p, const Expr *e, int64_t k) {
    Part *part = parts_find(p, e);
    if (!part)
        parts_push(p, e, k);
    else if (__builtin_add_overflow(part->k, k, &part->k))
        p->bad = true;
}

static void add_term(Parts *p, const Expr *e, int64_t times) {
    if (e->kind == SYM_add) {
        for (int i = 0; i < e->n; i++)
            add_term(p, e->args[i], times);
        return;
    }
    const Expr *rest;
    int64_t k;
    if (is_poison(e) || __builtin_mul_overflow(term_split(e, &rest), times, &k))
        p->bad = true;
    else if (!rest)
        p->bad = __builtin_add_overflow(p->number, k, &p->number) || p->bad;
    else if (rest->kind == SYM_inf)
        p->inf |= k > 0 ? 1 : k < 0 ? 2 : 0;
    else
        parts_add(p, rest, k);
}

// coefficient * rest, rest being no number and without a coefficient of its own.
static const Expr *scaled(Sym *s, int64_t k, const Expr *rest) {
    if (k == 1)
        return rest;
    const Expr *few[FEW + 1];
    int n = rest->kind == SYM_mul ? rest->n : 1;
    Arena tmp = {0};
    const Expr **args = n <= FEW ? few : ARENA_ARRAY(&tmp, n + 1, const Expr *);
    args[0] = sym_int(s, k);
    if (rest->kind == SYM_mul)
        memcpy(args + 1, rest->args, (size_t)n * sizeof *args);
    else
        args[1] = rest;
    const Expr *e = expr_intern(s, SYM_mul, args, n + 1);
    arena_free(&tmp);
    return e;
}

static const Expr *sum_of_parts(Sym *s, Parts *p) {
    if (p->bad || p->inf == 3)
        return s->overflow;
    if (p->inf)
        return p->inf == 1 ? s->inf : scaled(s, -1, s->inf);
    const Expr *few[FEW + 1];
    const Expr **args = p->n <= FEW ? few : ARENA_ARRAY(&p->tmp, p->n + 1, const Expr *);
    int n = 1; // room for the number
    for (int i = 0; i < p->n; i++) {
        if (!p->at[i].k)
            continue;
        // A sum alone is only kept whole inside Identity and the like, never with a coefficient.
        assert(p->at[i].e->kind != SYM_add && "terms are flattened");
        args[n++] = scaled(s, p->at[i].k, p->at[i].e);
    }
    expr_sort(args + 1, n - 1, expr_compare);
    if (!p->number)
        return n == 1 ? sym_int(s, 0) : n == 2 ? args[1] : expr_intern(s, SYM_add, args + 1, n - 1);
    args[0] = sym_int(s, p->number);
    return n == 1 ? args[0] : expr_intern(s, SYM_add, args, n);
}

const Expr *sym_sum(Sym *s, const Expr *const args[], int n) {
    if (n == 1)
        return args[0];
    Parts p;
    parts_init(&p, 0);
    for (int i = 0; i < n; i++)
        add_term(&p, args[i], 1);
    const Expr *e = sum_of_parts(s, &p);
    arena_free(&p.tmp);
    return e;
}

static const Expr *add_scaled(Sym *s, const Expr *a, const Expr *b, int64_t times) {
    Parts p;
    parts_init(&p, 0);
    add_term(&p, a, 1);
    add_term(&p, b, times);
    const Expr *e = sum_of_parts(s, &p);
    arena_free(&p.tmp);
    return e;
}

const Expr *sym_add(Sym *s, const Expr *a, const Expr *b) {
    int64_t v;
    if (a->kind == SYM_int && b->kind == SYM_int)
        return __builtin_add_overflow(a->value, b->value, &v) ? s->overflow : sym_int(s, v);
    if (expr_is(a, 0))
        return b;
    if (expr_is(b, 0))
        return a;
    OpCache *c = op_cache(s, SYM_add, a, b);
    if (c->a != a || c->b != b || c->kind != SYM_add)
        *c = (OpCache){a, b, add_scaled(s, a, b, 1), SYM_add};
    return c->out;
}

const Expr *sym_sub(Sym *s, const Expr *a, const Expr *b) {
    if (a == b && !is_poison(a) && a->kind != SYM_inf)
        return sym_int(s, 0);
    if (expr_is(b, 0))
        return a;
    const SymKind difference = SYM_n_kinds; // no kind of its own: a name for the cache
    OpCache *c = op_cache(s, difference, a, b);
    if (c->a != a || c->b != b || c->kind != difference)
        *c = (OpCache){a, b, add_scaled(s, a, b, -1), difference};
    return c->out;
}

const Expr *sym_neg(Sym *s, const Expr *a) {
    return sym_mul_int(s, a, -1);
}

const Expr *sym_add_int(Sym *s, const Expr *a, int64_t v) {
    return sym_add(s, a, sym_int(s, v));
}

const Expr *sym_mul_int(Sym *s, const Expr *a, int64_t v) {
    return sym_mul(s, sym_int(s, v), a);
}

static void mul_factor(Parts *p, const Expr *e, int64_t exponent) {
    if (is_poison(e)) {
        p->bad = true;
    } else if (e->kind == SYM_int) {
        int64_t v;
        if (!int_pow(e->value, exponent, &v) || __builtin_mul_overflow(p->number, v, &p->number))
            p->bad = true;
    } else if (e->kind == SYM_mul) {
        for (int i = 0; i < e->n; i++)
            mul_factor(p, e->args[i], exponent);
    } else {
        int64_t k;
        const Expr *base = factor_split(e, &k);
        if (__builtin_mul_overflow(k, exponent, &k))
            p->bad = true;
        else if (base->kind == SYM_inf)
            p->inf = 1;
        else
            parts_add(p, base, k);
    }
}

static const Expr *inf_product(Sym *s, const Parts *p) {
    bool negative = p->number < 0;
    for (int i = 0; i < p->n; i++) {
        const Expr *e = p->at[i].e;
        if (e->sign & SIGN_neg)
            negative ^= p->at[i].k % 2 != 0;
        else if (!(e->sign & SIGN_pos))
            return s->overflow;
    }
    return !p->number ? s->overflow : negative ? scaled(s, -1, s->inf) : s->inf;
}

static const Expr *power(Sym *s, const Expr *base, int64_t n) {
    if (n == 1)
        return base;
    return expr_intern(s, SYM_pow, (const Expr *const[]){base, sym_int(s, n)}, 2);
}

static const Expr *product_of_parts(Sym *s, Parts *p) {
    if (p->bad)
        return s->overflow;
    if (p->inf)
        return inf_product(s, p);
    if (!p->number || !p->n)
        return sym_int(s, p->number);
    if (p->n == 1 && p->at[0].k == 1 && p->at[0].e->kind == SYM_add) {
        if (p->number == 1)
            return p->at[0].e;
        Parts sum;
        parts_init(&sum, 0);
        add_term(&sum, p->at[0].e, p->number);
        const Expr *e = sum_of_parts(s, &sum);
        arena_free(&sum.tmp);
        return e;
    }
    const Expr *few[FEW + 1];
    const Expr **args = p->n <= FEW ? few : ARENA_ARRAY(&p->tmp, p->n + 1, const Expr *);
    for (int i = 0; i < p->n; i++)
        args[i + 1] = power(s, p->at[i].e, p->at[i].k);
    expr_sort(args + 1, p->n, expr_compare);
    if (p->number == 1)
        return p->n == 1 ? args[1] : expr_intern(s, SYM_mul, args + 1, p->n);
    args[0] = sym_int(s, p->number);
    return expr_intern(s, SYM_mul, args, p->n + 1);
}

const Expr *sym_product(Sym *s, const Expr *const args[], int n) {
    if (n == 1)
        return args[0];
    Parts p;
    parts_init(&p, 1);
    for (int i = 0; i < n; i++)
        mul_factor(&p, args[i], 1);
    const Expr *e = product_of_parts(s, &p);
    arena_free(&p.tmp);
    return e;
}

const Expr *sym_mul(Sym *s, const Expr *a, const Expr *b) {
    int64_t v;
    if (a->kind == SYM_int && b->kind == SYM_int)
        return __builtin_mul_overflow(a->value, b->value, &v) ? s->overflow : sym_int(s, v);
    if (expr_is(a, 1))
        return b;
    if (expr_is(b, 1))
        return a;
    OpCache *c = op_cache(s, SYM_mul, a, b);
    if (c->a != a || c->b != b || c->kind != SYM_mul)
        *c = (OpCache){a, b, sym_product(s, (const Expr *const[]){a, b}, 2), SYM_mul};
    return c->out;
}

const Expr *sym_pow(Sym *s, const Expr *a, int64_t n) {
    if (n < 0 || is_poison(a))
        return s->overflow;
    if (!n)
        return sym_int(s, 1);
    Parts p;
    parts_init(&p, 1);
    mul_factor(&p, a, n);
    const Expr *e = product_of_parts(s, &p);
    arena_free(&p.tmp);
    return e;
}

bool int_floordiv(int64_t a, int64_t b, int64_t *out) {
    if (!b || (a == INT64_MIN && b == -1))
        return false;
    *out = a / b - (a % b != 0 && (a < 0) != (b < 0));
    return true;
}

bool int_mod(int64_t a, int64_t b, int64_t *out) {
    if (!b)
        return false;
    int64_t r = b == -1 ? 0 : a % b;
    *out = r + (r != 0 && (r < 0) != (b < 0) ? b : 0);
    return true;
}

bool int_pow(int64_t a, int64_t n, int64_t *out) {
    int64_t v = 1;
    if (n < 0)
        return false;
    if (a == 0 || a == 1) {
        *out = n ? a : 1;
        return true;
    }
    if (a == -1) {
        *out = n % 2 ? -1 : 1;
        return true;
    }
    for (; n; n--)
        if (__builtin_mul_overflow(v, a, &v))
            return false;
    *out = v;
    return true;
}
