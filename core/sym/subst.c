// subst.c: expressions from expressions: substitution, multiplying out, common divisors,
// evaluation.
#include "core/sym/expr.h"

#include <string.h>

const Expr *expr_map_args(Sym *s, const Expr *e, ExprMap *map, void *ctx) {
    const Expr *few[16];
    Arena tmp = {0};
    const Expr **args = e->n <= 16 ? few : ARENA_ARRAY(&tmp, e->n, const Expr *);
    bool changed = false;
    for (int i = 0; i < e->n; i++) {
        args[i] = map(ctx, e->args[i]);
        changed = changed || args[i] != e->args[i];
    }
    const Expr *out = changed ? sym_make(s, (SymKind)e->kind, args, e->n) : e;
    arena_free(&tmp);
    return out;
}

typedef struct Subst {
    Sym *s;
    const Expr *const *from, *const *to;
    int n;
    uint64_t symbols; // that from[] has, if all are symbols
    bool only_symbols;
    uint32_t limit; // ids from here on are not remembered
} Subst;

static const Expr *subst(void *ctx, const Expr *e) {
    const Subst *x = ctx;
    if (x->only_symbols && !(e->symbols & x->symbols))
        return e;
    for (int i = 0; i < x->n; i++)
        if (e == x->from[i])
            return x->to[i];
    if (!e->n)
        return e;
    Sym *s = x->s;
    if (e->id < x->limit && s->memo_stamp[e->id] == s->stamp)
        return s->memo[e->id];
    const Expr *out = expr_map_args(s, e, subst, ctx);
    if (e->id < x->limit) {
        s->memo_stamp[e->id] = s->stamp;
        s->memo[e->id] = out;
    }
    return out;
}

static void memo_begin(Sym *s) {
    if (s->memo_cap < s->n) {
        s->memo_cap = s->n * 2;
        s->memo_stamp = ARENA_ARRAY(s->arena, s->memo_cap, uint32_t);
        s->memo = ARENA_ARRAY(s->arena, s->memo_cap, const Expr *);
        s->stamp = 0;
    }
    if (!++s->stamp) {
        memset(s->memo_stamp, 0, s->memo_cap * sizeof *s->memo_stamp);
        s->stamp = 1;
    }
}

const Expr *sym_subst(Sym *s, const Expr *e, const Expr *const from[], const Expr *const to[],
                      int n) {
    Subst x = {.s = s, .from = from, .to = to, .n = n, .only_symbols = true};
    for (int i = 0; i < n; i++) {
        x.only_symbols = x.only_symbols && from[i]->kind == SYM_symbol;
        x.symbols |= from[i]->symbols;
    }
    if (x.only_symbols && !(e->symbols & x.symbols))
        return e;
    memo_begin(s);
    x.limit = s->memo_cap;
    return subst(&x, e);
}

// Beyond these an expression stays as it is: no size is computed like that, but a file may claim
// so.
enum { EXPAND_TERMS = 1024, EXPAND_POWER = 32 };

// Product of two sums, term by term; NULL if that would be too many terms.
static const Expr *multiply_out(Sym *s, const Expr *a, const Expr *b) {
    const Expr *const *ta, *const *tb;
    int na = terms_of(a, &ta, &a), nb = terms_of(b, &tb, &b);
    if ((int64_t)na * nb > EXPAND_TERMS)
        return NULL;
    Arena tmp = {0};
    const Expr **terms = ARENA_ARRAY(&tmp, na * nb, const Expr *);
    for (int i = 0; i < na; i++)
        for (int j = 0; j < nb; j++)
            terms[i * nb + j] = sym_mul(s, ta[i], tb[j]);
    const Expr *e = sym_sum(s, terms, na * nb);
    arena_free(&tmp);
    return e;
}

static const Expr *expand_product(Sym *s, const Expr *e) {
    const Expr *out = sym_int(s, 1);
    int n = e->kind == SYM_mul ? e->n : 1;
    for (int i = 0; i < n; i++) {
        int64_t k;
        const Expr *factor = e->kind == SYM_mul ? e->args[i] : e, *base = factor_split(factor, &k);
        if (base->kind != SYM_add) {
            base = factor;
            k = 1;
        }
        if (k > EXPAND_POWER)
            return e;
        for (; k > 0; k--) {
            out = multiply_out(s, out, base);
            if (!out)
                return e;
        }
    }
    return out;
}

static const Expr *expand(void *ctx, const Expr *e) {
    if (!(e->kinds & EXPANDABLE))
        return e;
    Sym *s = ctx;
    e = expr_map_args(s, e, expand, s);
    bool product = (e->kind == SYM_mul || e->kind == SYM_pow) && (e->kinds & EXPANDABLE);
    return product ? expand_product(s, e) : e;
}

const Expr *sym_expand(Sym *s, const Expr *e) {
    return expand(s, e);
}

static const Expr *strip(void *ctx, const Expr *e) {
    if (!expr_has_kind(e, SYM_identity))
        return e;
    return e->kind == SYM_identity ? strip(ctx, e->args[0]) : expr_map_args(ctx, e, strip, ctx);
}

const Expr *sym_strip_identity(Sym *s, const Expr *e) {
    return strip(s, e);
}

static uint64_t magnitude(int64_t v) {
    return v < 0 ? -(uint64_t)v : (uint64_t)v;
}

static uint64_t int_gcd(uint64_t a, uint64_t b) {
    while (b) {
        uint64_t r = a % b;
        a = b;
        b = r;
    }
    return a;
}

// Greatest number that divides every coefficient.
static uint64_t content(const Expr *e) {
    const Expr *const *terms, *rest;
    int n = terms_of(e, &terms, &e);
    uint64_t g = 0;
    for (int i = 0; i < n; i++)
        g = int_gcd(g, magnitude(term_split(terms[i], &rest)));
    return g;
}

static bool has_factor(const Expr *term, const Expr *factor) {
    const Expr *rest;
    term_split(term, &rest);
    if (!rest || rest == factor)
        return rest != NULL;
    for (int i = 0; rest->kind == SYM_mul && i < rest->n; i++)
        if (rest->args[i] == factor)
            return true;
    return false;
}

static bool all_have_factor(const Expr *e, const Expr *factor) {
    const Expr *const *terms;
    int n = terms_of(e, &terms, &e);
    for (int i = 0; i < n; i++)
        if (!has_factor(terms[i], factor))
            return false;
    return true;
}

const Expr *sym_gcd(Sym *s, const Expr *a, const Expr *b) {
    if (is_poison(a) || is_poison(b))
        return s->overflow;
    uint64_t g = int_gcd(content(a), content(b));
    if (g > INT64_MAX)
        return sym_int(s, 1);
    const Expr *gcd = sym_int(s, (int64_t)g), *rest;
    term_split(b, &rest);
    if (!rest)
        return gcd;
    int n = rest->kind == SYM_mul ? rest->n : 1;
    for (int i = 0; i < n; i++) {
        const Expr *factor = rest->kind == SYM_mul ? rest->args[i] : rest;
        if (!expr_is(a, 0) && all_have_factor(a, factor))
            gcd = sym_mul(s, gcd, factor);
    }
    return gcd;
}

// Exponent of a base among the factors of a product.
static int64_t exponent_of(const Expr *e, const Expr *base) {
    int n = e->kind == SYM_mul ? e->n : 1;
    for (int i = 0; i < n; i++) {
        int64_t k;
        if (factor_split(e->kind == SYM_mul ? e->args[i] : e, &k) == base)
            return k;
    }
    return 0;
}

// term / by for products; NULL if it is not exact.
static const Expr *divide_term(Sym *s, const Expr *term, const Expr *by) {
    const Expr *rest, *by_rest;
    int64_t k = term_split(term, &rest), by_k = term_split(by, &by_rest);
    if (!by_k || (k == INT64_MIN && by_k == -1) || k % by_k)
        return NULL;
    const Expr *out = sym_int(s, k / by_k);
    if (!by_rest)
        return rest ? sym_mul(s, out, rest) : out;
    if (!rest)
        return NULL;
    int found = 0, n = rest->kind == SYM_mul ? rest->n : 1;
    for (int i = 0; i < n; i++) {
        const Expr *factor = rest->kind == SYM_mul ? rest->args[i] : rest;
        int64_t have, base_k;
        const Expr *base = factor_split(factor, &have);
        base_k = exponent_of(by_rest, base);
        if (base_k > have)
            return NULL;
        found += base_k > 0;
        out = sym_mul(s, out, sym_pow(s, base, have - base_k));
    }
    return found == (by_rest->kind == SYM_mul ? by_rest->n : 1) ? out : NULL;
}

static const Expr *leading(const Expr *e) {
    const Expr *const *terms;
    int n = terms_of(e, &terms, &e);
    const Expr *best = terms[0];
    for (int i = 1; i < n; i++)
        if (expr_term_compare(terms[i], best) < 0)
            best = terms[i];
    return best;
}

// Long division by a sum, bounded.
static const Expr *divide_by_sum(Sym *s, const Expr *a, const Expr *b) {
    const Expr *quotient = sym_int(s, 0), *lead = leading(b);
    for (int step = 0; step < 32; step++) {
        if (expr_is(a, 0))
            return quotient;
        const Expr *q = divide_term(s, leading(a), lead);
        if (!q)
            return NULL;
        quotient = sym_add(s, quotient, q);
        a = sym_sub(s, a, sym_expand(s, sym_mul(s, q, b)));
        if (is_poison(a))
            return NULL;
    }
    return NULL;
}

const Expr *sym_exact_div(Sym *s, const Expr *a, const Expr *b) {
    if (is_poison(a) || is_poison(b) || expr_is(b, 0) ||
        ((a->kinds | b->kinds) & KIND_BIT(SYM_inf)))
        return NULL;
    if (a == b || expr_is(b, 1))
        return a == b ? sym_int(s, 1) : a;
    if (expr_is(a, 0))
        return a;
    if (b->kind == SYM_add && a->kind != SYM_add)
        return divide_term(s, a, b);
    if (b->kind == SYM_add)
        return divide_by_sum(s, a, b);
    const Expr *const *terms, *out = sym_int(s, 0);
    int n = terms_of(a, &terms, &a);
    for (int i = 0; i < n; i++) {
        const Expr *q = divide_term(s, terms[i], b);
        if (!q)
            return NULL;
        out = sym_add(s, out, q);
    }
    return out;
}

// ---- solving

typedef struct Trial {
    const Expr *x;
    int64_t value; // of x
    SymLookup *lookup;
    void *ctx;
} Trial;

static bool try_value(void *ctx, const Expr *symbol, int64_t *v) {
    const Trial *t = ctx;
    if (symbol != t->x)
        return t->lookup(t->ctx, symbol, v);
    *v = t->value;
    return true;
}

bool sym_solve(const Expr *e, const Expr *x, int64_t v, SymLookup *lookup, void *ctx,
               int64_t *out) {
    Trial t = {.x = x, .value = 1, .lookup = lookup, .ctx = ctx};
    int64_t got = 0;
    while (t.value < (int64_t)1 << 40 && sym_eval(e, try_value, &t, &got) && got <= v)
        t.value *= 2;
    int64_t step = t.value;
    for (t.value = 0; step; step /= 2) {
        t.value += step;
        if (!sym_eval(e, try_value, &t, &got) || got > v)
            t.value -= step;
    }
    *out = t.value;
    return sym_eval(e, try_value, &t, &got) && got == v;
}

const Expr *sym_one_unknown(const Expr *e, SymLookup *lookup, void *ctx) {
    Arena tmp = {0};
    const Expr **all, *found = NULL;
    int n = expr_symbols(&tmp, e, &all), unknown = 0;
    for (int i = 0; i < n; i++) {
        int64_t v;
        if (!lookup(ctx, all[i], &v)) {
            found = all[i];
            unknown++;
        }
    }
    arena_free(&tmp);
    return unknown == 1 ? found : NULL;
}
