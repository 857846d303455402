// indexing.c: Inductor's simplification of index expressions under known loop sizes, and taking an
// index apart into strides. The rules are those of torch/_inductor/sizevars.py: the same ones, no
// more, since every one shows in the printed loop bodies.
#include "core/sym/expr.h"

#include <string.h>

// Answers of sym_simplify_with_ranges, remembered by question.
struct IndexCache {
    uint32_t version;
    Map at; // hash of the question -> first IndexAnswer
};
typedef struct IndexAnswer IndexAnswer;
struct IndexAnswer {
    const Expr *e, *out;
    const Expr **loops; // (2 * n) vars, then sizes
    int n;
    IndexAnswer *next;
};

typedef struct Loops {
    Sym *s;
    const Expr *const *vars, *const *sizes;
    SymRange *ranges; // (n) of the variables
    int n;
    bool bounded; // what is less than its divisor has the quotient 0
} Loops;

// Is a < b known, by numbers or because it is one of the loops' own bounds?
static bool known_less(const Loops *l, const Expr *a, const Expr *b) {
    const Expr *diff = sym_sub(l->s, b, a);
    for (int i = 0; i < l->n; i++)
        if (diff == sym_sub(l->s, l->sizes[i], l->vars[i]))
            return true;
    return sym_range_with(l->s, diff, l->vars, l->ranges, l->n).lo > 0;
}

static bool known_nonneg(const Loops *l, const Expr *a) {
    return sym_range_with(l->s, a, l->vars, l->ranges, l->n).lo >= 0;
}

// A loop variable smaller than the divisor adds nothing to the quotient if the rest is a multiple
// of it.
static const Expr *remove_zero_terms(const Loops *l, const Expr *base, const Expr *divisor) {
    if (!known_nonneg(l, base))
        return base;
    for (int i = 0; i < l->n; i++) {
        if (!(base->symbols & l->vars[i]->symbols))
            continue;
        const Expr *rest = sym_sub(l->s, base, l->vars[i]);
        if (!expr_has(rest, l->vars[i]) && sym_exact_div(l->s, rest, divisor) &&
            known_less(l, l->vars[i], divisor))
            base = rest;
    }
    return base;
}

static const Expr *visit_modular(void *ctx, const Expr *e) {
    const Loops *l = ctx;
    if (!expr_has_kind(e, SYM_modular))
        return e;
    e = expr_map_args(l->s, e, visit_modular, ctx);
    if (e->kind != SYM_modular)
        return e;
    const Expr *div = e->args[1], *mod = e->args[2], *base = remove_zero_terms(l, e->args[0], div);
    if (known_nonneg(l, base) && known_less(l, base, sym_mul(l->s, mod, div)))
        return sym_floordiv(l->s, base, div);
    return sym_modular(l->s, base, div, mod);
}

static const Expr *visit_floordiv(void *ctx, const Expr *e) {
    const Loops *l = ctx;
    if (!expr_has_kind(e, SYM_floordiv))
        return e;
    e = expr_map_args(l->s, e, visit_floordiv, ctx);
    if (e->kind != SYM_floordiv)
        return e;
    if (l->bounded && known_nonneg(l, e->args[0]) && known_less(l, e->args[0], e->args[1]))
        return sym_int(l->s, 0);
    return sym_floordiv(l->s, remove_zero_terms(l, e->args[0], e->args[1]), e->args[1]);
}

// term = scale * ModularIndexing(...): gives the scale.
static const Expr *modular_scale(Sym *s, const Expr *term, const Expr **modular) {
    const Expr *scale = sym_int(s, 1);
    *modular = term->kind == SYM_modular ? term : NULL;
    for (int i = 0; term->kind == SYM_mul && i < term->n; i++) {
        if (term->args[i]->kind == SYM_modular && !*modular)
            *modular = term->args[i];
        else
            scale = sym_mul(s, scale, term->args[i]);
    }
    return *modular ? scale : NULL;
}

static const Expr *without(Sym *s, const Expr *sum, const Expr *a, const Expr *b) {
    return sym_sub(s, sym_sub(s, sum, a), b);
}

// ModularIndexing(x, 1, 32) + 32*ModularIndexing(x, 32, 4) is ModularIndexing(x, 1, 128).
static const Expr *join_modulars(Sym *s, const Expr *e) {
    for (int i = 0; i < e->n; i++) {
        const Expr *m, *other, *scale = modular_scale(s, e->args[i], &m);
        for (int j = 0; scale && j < e->n; j++) {
            const Expr *other_scale = modular_scale(s, e->args[j], &other);
            if (j == i || !other_scale || other->args[0] != m->args[0] ||
                other->args[1] != sym_mul(s, m->args[1], m->args[2]) ||
                other_scale != sym_mul(s, scale, m->args[2]))
                continue;
            const Expr *mod = sym_mul(s, m->args[2], other->args[2]);
            return sym_add(s, without(s, e, e->args[i], e->args[j]),
                           sym_mul(s, scale, sym_modular(s, m->args[0], m->args[1], mod)));
        }
    }
    return e;
}

// ModularIndexing(x, 1, 32) + 32*(x//32) is x.
static const Expr *join_quotients(Sym *s, const Expr *e) {
    for (int i = 0; i < e->n; i++) {
        const Expr *m, *scale = modular_scale(s, e->args[i], &m);
        if (!scale)
            continue;
        const Expr *div = sym_mul(s, m->args[1], m->args[2]);
        const Expr *want =
            sym_mul(s, sym_mul(s, scale, m->args[2]), sym_floordiv(s, m->args[0], div));
        for (int j = 0; j < e->n; j++)
            if (e->args[j] == want)
                return sym_add(s, without(s, e, e->args[i], want),
                               sym_mul(s, scale, sym_floordiv(s, m->args[0], m->args[1])));
    }
    return e;
}

static const Expr *join_dimensions(Sym *s, const Expr *e) {
    for (;;) {
        if (e->kind != SYM_add || !expr_has_kind(e, SYM_modular))
            return e;
        const Expr *joined = join_modulars(s, e);
        if (joined == e)
            joined = join_quotients(s, e);
        if (joined == e)
            return e;
        e = joined;
    }
}

static const Expr *simplify(const Loops *l, const Expr *e) {
    for (int round = 0; round < 64; round++) {
        e = join_dimensions(l->s, sym_simplify(l->s, e));
        const Expr *next =
            visit_floordiv((void *)(uintptr_t)l, visit_modular((void *)(uintptr_t)l, e));
        if (next == e)
            break;
        e = next;
    }
    return e;
}

static const Expr *simplify_over(Sym *s, const Expr *e, const Expr *const vars[],
                                 const Expr *const sizes[], int n, bool bounded) {
    Arena tmp = {0};
    Loops l = {s, vars, sizes, ARENA_ARRAY(&tmp, n, SymRange), n, bounded};
    for (int i = 0; i < n; i++) {
        int64_t size;
        l.ranges[i] = (SymRange){0, SYM_POS_INF};
        if (expr_int(sizes[i], &size))
            l.ranges[i].hi = size > 1 ? size - 1 : 0;
    }
    e = simplify(&l, e);
    arena_free(&tmp);
    return e;
}

static IndexAnswer *cached(Sym *s, const Expr *e, const Expr *const vars[],
                           const Expr *const sizes[], int n) {
    if (!s->index_cache)
        s->index_cache = ARENA_NEW(s->arena, IndexCache);
    if (s->index_cache->version != s->version)
        *s->index_cache = (IndexCache){s->version, {.arena = s->arena}};
    uint64_t h = e->id;
    for (int i = 0; i < n; i++)
        h = hash_mix(hash_mix(h, vars[i]->id), sizes[i]->id);
    MapEntry *entry = map_at_id(&s->index_cache->at, h);
    for (IndexAnswer *a = entry->ptr; a; a = a->next)
        if (a->e == e && a->n == n && !memcmp(a->loops, vars, (size_t)n * sizeof *vars) &&
            !memcmp(a->loops + n, sizes, (size_t)n * sizeof *sizes))
            return a;
    IndexAnswer *a = ARENA_NEW(s->arena, IndexAnswer);
    *a = (IndexAnswer){e, NULL, ARENA_ARRAY(s->arena, 2 * n, const Expr *), n, entry->ptr};
    if (n) {
        memcpy(a->loops, vars, (size_t)n * sizeof *vars);
        memcpy(a->loops + n, sizes, (size_t)n * sizeof *sizes);
    }
    entry->ptr = a;
    return a;
}

const Expr *sym_simplify_with_ranges(Sym *s, const Expr *e, const Expr *const vars[],
                                     const Expr *const sizes[], int n) {
    uint64_t work = EXPANDABLE | KIND_BIT(SYM_modular) | KIND_BIT(SYM_floordiv);
    if (!(e->kinds & work))
        return sym_simplify(s, e);
    IndexAnswer *answer = cached(s, e, vars, sizes, n);
    if (answer->out)
        return answer->out;
    answer->out = simplify_over(s, e, vars, sizes, n, false);
    return answer->out;
}

const Expr *sym_simplify_bounded(Sym *s, const Expr *e, const Expr *const vars[],
                                 const Expr *const sizes[], int n) {
    return simplify_over(s, e, vars, sizes, n, true);
}

const Expr *sym_offset_of(Sym *s, const Expr *e, const Expr *const vars[], int n) {
    Arena tmp = {0};
    const Expr **zeros = ARENA_ARRAY(&tmp, n, const Expr *);
    for (int i = 0; i < n; i++)
        zeros[i] = sym_int(s, 0);
    const Expr *out = sym_subst(s, sym_simplify(s, e), vars, zeros, n);
    arena_free(&tmp);
    return out;
}

const Expr *sym_stride_of(Sym *s, const Expr *e, const Expr *var) {
    const Expr *zero = sym_int(s, 0), *one = sym_int(s, 1);
    if (var->kind != SYM_symbol || !(e->symbols & var->symbols))
        return zero;
    return sym_sub(s, sym_subst(s, e, &var, &one, 1), sym_subst(s, e, &var, &zero, 1));
}

void sym_stride_vars(Sym *s, const Expr *e, const Expr *const vars[], int n,
                     const Expr *const support[], int n_support, const Expr *out[]) {
    if (!n_support) {
        support = vars;
        n_support = n;
    }
    Arena tmp = {0};
    const Expr **from = ARENA_ARRAY(&tmp, n_support, const Expr *);
    const Expr **zeros = ARENA_ARRAY(&tmp, n_support, const Expr *);
    for (int i = 0; i < n_support; i++)
        zeros[i] = sym_int(s, 0);
    e = sym_simplify(s, e);
    e = sym_sub(s, e, sym_subst(s, e, support, zeros, n_support));
    for (int i = 0; i < n; i++) {
        int k = 0;
        for (int j = 0; j < n_support; j++)
            if (support[j] != vars[i] && support[j]->kind == SYM_symbol)
                from[k++] = support[j];
        out[i] = sym_stride_of(s, sym_subst(s, e, from, zeros, k), vars[i]);
    }
    arena_free(&tmp);
}

// Loops being merged: sizes[i] NULL is a loop that is gone.
typedef struct Merge {
    Sym *s;
    const Expr *const *vars;
    const Expr **sizes;
    const Expr *const *index;
    const Expr **strides; // (n_index, n)
    int n, n_index;
} Merge;

// May loop b go on where loop a ends? The strides tell quickly, a substitution surely: size_a steps
// of a must be one step of b in every index.
static bool can_merge(const Merge *m, int a, int b) {
    Sym *s = m->s;
    const Expr *m1 = sym_symbol(s, "_merge_tester1"), *m2 = sym_symbol(s, "_merge_tester2");
    const Expr *const pair[] = {m->vars[a], m->vars[b]};
    const Expr *const apart[] = {sym_mul(s, m1, m->sizes[a]), m2};
    const Expr *const in_b[] = {sym_int(s, 0), sym_add(s, m1, m2)};
    for (int k = 0; k < m->n_index; k++) {
        const Expr *const *stride = m->strides + (size_t)k * (size_t)m->n;
        if (sym_simplify(s, sym_mul(s, stride[a], m->sizes[a])) != sym_simplify(s, stride[b]))
            return false;
        const Expr *x = sym_subst(s, m->index[k], pair, apart, 2);
        const Expr *y = sym_subst(s, m->index[k], pair, in_b, 2);
        if (sym_simplify(s, x) != sym_simplify(s, y))
            return false;
    }
    return true;
}

static void merge_all(Merge *m) {
    for (bool changed = true; changed;) {
        changed = false;
        for (int a = m->n - 1; a >= 0; a--) {
            for (int b = m->n - 1; b >= 0; b--) {
                if (a == b || !m->sizes[a] || !m->sizes[b] || !can_merge(m, a, b))
                    continue;
                m->sizes[a] = sym_mul(m->s, m->sizes[a], m->sizes[b]);
                m->sizes[b] = NULL;
                changed = true;
            }
        }
    }
}

SymLoops sym_simplify_loops(Sym *s, Arena *a, const Expr *const vars[], const Expr *const sizes[],
                            int n, const Expr *const index[], int n_index) {
    Arena tmp = {0};
    Merge m = {s, vars, ARENA_ARRAY(&tmp, n, const Expr *), index, NULL, n, n_index};
    m.strides = arena_array(&tmp, (size_t)n_index, (size_t)(n ? n : 1) * sizeof *m.strides);
    for (int i = 0; i < n; i++) {
        m.sizes[i] = sym_simplify(s, sizes[i]);
        if (expr_is(m.sizes[i], 1))
            m.sizes[i] = NULL;
    }
    for (int k = 0; k < n_index; k++) {
        const Expr **strides = m.strides + (size_t)k * (size_t)n;
        if (sym_kinds[index[k]->kind].value != VALUE_bool)
            sym_stride_vars(s, index[k], vars, n, NULL, 0, strides);
        else // a condition has no strides; it can still forbid a merge
            for (int i = 0; i < n; i++)
                strides[i] = sym_int(s, 0);
    }
    merge_all(&m);
    SymLoops l = {0, ARENA_ARRAY(a, n, const Expr *), n, ARENA_ARRAY(a, n, int)};
    for (int i = 0; i < n; i++) {
        l.into[i] = m.sizes[i] ? l.n : -1;
        if (m.sizes[i])
            l.sizes[l.n++] = m.sizes[i];
    }
    arena_free(&tmp);
    return l;
}

void sym_loops_reindex(Sym *s, const SymLoops *l, const Expr *const vars[], const Expr *out[]) {
    for (int i = 0; i < l->n_old; i++)
        out[i] = l->into[i] < 0 ? sym_int(s, 0) : vars[l->into[i]];
}
