// shape.c: the shape environment of a compilation: what symbols stand for, their hints, and the
// guards under which the compiled code is right. Guards carry the stage that added them; dropping a
// stage's guards replays the others, so that ranges and replacements are again what they were
// before it.
#include "core/base/sha256.h"
#include "core/sym/expr.h"

#include <string.h>

static SymbolInfo *info_of(Sym *s, const Expr *symbol) {
    return &s->symbols.at[symbol->value];
}

// PyTorch's name: the hash of the source modulo 100, then the next free number.
static int size_number(Sym *s, const char *source) {
    uint8_t digest[32];
    sha256(source, strlen(source), digest);
    int number = 0;
    for (int i = 0; i < 32; i++)
        number = (number * 256 + digest[i]) % 100;
    while (number < COUNT(s->taken) - 1 && s->taken[number])
        number++;
    s->taken[number] = true;
    return number;
}

const Expr *sym_create(Sym *s, const char *source, int64_t value, SymDim dim, bool is_size) {
    if (dim == SYM_DIM_static || value == 0 || value == 1)
        return sym_int(s, value);
    MapEntry *same = dim == SYM_DIM_duck ? map_at_id(&s->duck, (uint64_t)value) : NULL;
    if (same && same->ptr)
        return same->ptr;
    char *name = arena_printf(s->arena, "s%d", size_number(s, source));
    const Expr *e = expr_symbol(s, name, is_size ? ASSUME_pos : ASSUME_any);
    if (same)
        same->ptr = (void *)(uintptr_t)e;
    SymbolInfo *info = info_of(s, e);
    info->source = arena_strdup(s->arena, source);
    info->given = info->range = (SymRange){is_size ? 2 : SYM_NEG_INF, SYM_POS_INF};
    sym_set_hint(s, e, value);
    s->version++;
    return e;
}

const Expr *sym_create_unbacked(Sym *s) {
    return sym_symbol(s, arena_printf(s->arena, "u%d", s->n_unbacked));
}

int sym_count_unbacked(const Sym *s) {
    return s->n_unbacked;
}

int sym_set_next_unbacked(Sym *s, int next) {
    int was = s->n_unbacked;
    s->n_unbacked = next;
    return was;
}

const char *sym_create_unbacked_real(Sym *s) {
    return arena_printf(s->arena, "zuf%d", s->n_unbacked_reals++);
}

int sym_count_unbacked_reals(const Sym *s) {
    return s->n_unbacked_reals;
}

const char *sym_source(Sym *s, const Expr *symbol) {
    return symbol->kind == SYM_symbol ? info_of(s, symbol)->source : NULL;
}

void sym_set_hint(Sym *s, const Expr *symbol, int64_t v) {
    if (symbol->kind != SYM_symbol)
        return;
    info_of(s, symbol)->hint = v;
    info_of(s, symbol)->has_hint = true;
}

void sym_hint_rest(Sym *s, int64_t first) {
    for (int i = 0; i < s->symbols.n; i++) {
        SymbolInfo *info = &s->symbols.at[i];
        const char *name = info->e->name;
        bool is_size = name[0] == 's' && name[1] >= '0' && name[1] <= '9';
        if (info->has_hint || !is_size)
            continue;
        SymRange range = sym_range(s, info->e);
        info->hint = first > range.hi ? range.hi : first < range.lo ? range.lo : first;
        info->has_hint = true;
        first += 8;
    }
}

static bool lookup_hint(void *ctx, const Expr *symbol, int64_t *v) {
    const SymbolInfo *info = info_of(ctx, symbol);
    *v = info->hint;
    return info->has_hint;
}

void sym_learn_hint(Sym *s, const Expr *size, int64_t v) {
    int64_t hint;
    const Expr *x = expr_has_symbols(size) ? sym_one_unknown(size, lookup_hint, s) : NULL;
    if (x && sym_solve(size, x, v, lookup_hint, s, &hint))
        sym_set_hint(s, x, hint);
}

bool sym_hint(Sym *s, const Expr *e, int64_t *v) {
    return sym_eval(e, lookup_hint, s, v) || sym_eval(sym_simplify(s, e), lookup_hint, s, v);
}

int64_t sym_size_hint(Sym *s, const Expr *e, int64_t fallback) {
    int64_t v;
    if (sym_hint(s, e, &v))
        return v;
    SymRange r = sym_range(s, sym_simplify(s, e));
    return fallback < r.lo ? r.lo : fallback > r.hi ? r.hi : fallback;
}

const Expr *sym_simplify(Sym *s, const Expr *e) {
    e = sym_expand(s, e);
    if (!s->n_replaced || !e->symbols)
        return e;
    Arena tmp = {0};
    VEC(const Expr *) from = {0}, to = {0};
    for (int i = 0; i < s->symbols.n; i++) {
        if (!s->symbols.at[i].replaced)
            continue;
        vec_push(&tmp, &from, s->symbols.at[i].e);
        vec_push(&tmp, &to, s->symbols.at[i].replaced);
    }
    // A replacement may hold a symbol that was replaced later: as often as there are symbols is
    // enough.
    for (int i = 0; i < from.n; i++) {
        const Expr *next = sym_subst(s, e, from.at, to.at, from.n);
        if (next == e)
            break;
        e = sym_expand(s, next);
    }
    arena_free(&tmp);
    return e;
}

// A relation as `difference >= 0` (eq, ne: == 0, != 0); false if it is no relation.
static bool normal_form(Sym *s, const Expr *cond, SymKind *kind, const Expr **diff) {
    SymKind k = (SymKind)cond->kind;
    if (k != SYM_eq && k != SYM_ne && k != SYM_lt && k != SYM_le && k != SYM_gt && k != SYM_ge)
        return false;
    const Expr *a = cond->args[0], *b = cond->args[1];
    bool less = k == SYM_lt || k == SYM_le;
    *diff = sym_simplify(s, less ? sym_sub(s, b, a) : sym_sub(s, a, b));
    if (k == SYM_lt || k == SYM_gt)
        *diff = sym_add_int(s, *diff, -1);
    *kind = k == SYM_eq || k == SYM_ne ? k : SYM_ge;
    return !is_poison(*diff);
}

static bool known_by_range(Sym *s, SymKind kind, const Expr *diff) {
    SymRange r = sym_range(s, diff);
    if (kind == SYM_ge)
        return r.lo >= 0;
    return kind == SYM_eq ? r.lo == 0 && r.hi == 0 : r.lo > 0 || r.hi < 0;
}

// ~(a & b) as ~a | ~b, for reasoning; sympy, and so the printed form, keeps it.
static const Expr *split_not(Sym *s, const Expr *cond) {
    const Expr *e = cond->kind == SYM_not ? cond->args[0] : cond;
    if (e == cond || (e->kind != SYM_and && e->kind != SYM_or))
        return cond;
    const Expr *out = sym_not(s, e->args[0]);
    for (int i = 1; i < e->n; i++)
        out = e->kind == SYM_and ? sym_or(s, out, sym_not(s, e->args[i]))
                                 : sym_and(s, out, sym_not(s, e->args[i]));
    return out;
}

// Does a guard that holds (fact) imply the question?
static bool implies(Sym *s, const Expr *fact, SymKind kind, const Expr *diff) {
    SymKind fact_kind;
    const Expr *fact_diff;
    fact = split_not(s, fact);
    if (fact->kind == SYM_and) {
        for (int i = 0; i < fact->n; i++)
            if (implies(s, fact->args[i], kind, diff))
                return true;
        return false;
    }
    if (!normal_form(s, fact, &fact_kind, &fact_diff))
        return false;
    int64_t more, minus;
    bool same = expr_int(sym_sub(s, diff, fact_diff), &more);
    bool opposite = expr_int(sym_add(s, diff, fact_diff), &minus);
    if (fact_kind == SYM_ge)
        return kind == SYM_ge ? same && more >= 0
                              : kind == SYM_ne && ((same && more > 0) || (opposite && minus < 0));
    if (fact_kind == SYM_eq)
        return kind == SYM_ge   ? (same && more >= 0) || (opposite && minus >= 0)
               : kind == SYM_eq ? (same && !more) || (opposite && !minus)
                                : (same && more) || (opposite && minus);
    return kind == SYM_ne && ((same && !more) || (opposite && !minus));
}

static bool known_relation(Sym *s, SymKind kind, const Expr *diff) {
    if (known_by_range(s, kind, diff))
        return true;
    for (int i = 0; i < s->guards.n; i++)
        if (implies(s, s->guards.at[i].cond, kind, diff))
            return true;
    return false;
}

bool sym_statically_known_true(Sym *s, const Expr *cond) {
    SymKind kind;
    const Expr *diff;
    cond = split_not(s, sym_simplify(s, cond));
    if (expr_true(cond) || expr_false(cond))
        return expr_true(cond);
    if (cond->kind == SYM_and || cond->kind == SYM_or) {
        bool all = cond->kind == SYM_and;
        for (int i = 0; i < cond->n; i++)
            if (sym_statically_known_true(s, cond->args[i]) != all)
                return !all;
        return all;
    }
    return normal_form(s, cond, &kind, &diff) && known_relation(s, kind, diff);
}

bool sym_known_eq(Sym *s, const Expr *a, const Expr *b) {
    return a == b ? !is_poison(a) : sym_statically_known_true(s, sym_cmp(s, SYM_eq, a, b));
}

bool sym_known_le(Sym *s, const Expr *a, const Expr *b) {
    return sym_statically_known_true(s, sym_cmp(s, SYM_le, a, b));
}

bool sym_known_lt(Sym *s, const Expr *a, const Expr *b) {
    return sym_statically_known_true(s, sym_cmp(s, SYM_lt, a, b));
}

bool sym_known_multiple(Sym *s, const Expr *a, const Expr *of) {
    return sym_known_eq(s, sym_mod(s, sym_simplify(s, a), sym_simplify(s, of)), sym_int(s, 0));
}

// symbol = what diff == 0 says, if diff is linear in it with an exact quotient; else NULL.
static const Expr *solve(Sym *s, const Expr *diff, const Expr *symbol) {
    const Expr *zero = sym_int(s, 0), *stride = sym_stride_of(s, diff, symbol);
    const Expr *rest = sym_subst(s, diff, &symbol, &zero, 1);
    if (stride->kind != SYM_int || expr_is(stride, 0) ||
        sym_expand(s, sym_sub(s, diff, sym_mul(s, stride, symbol))) != rest)
        return NULL;
    return sym_exact_div(s, sym_neg(s, rest), stride);
}

// Unbacked symbols first, then the larger hint, then the later name, as PyTorch prefers.
static int solve_first(const Expr *a, const Expr *b) {
    const SymbolInfo *x = &a->sym->symbols.at[a->value], *y = &b->sym->symbols.at[b->value];
    if (x->has_hint != y->has_hint)
        return x->has_hint - y->has_hint;
    if (x->hint != y->hint)
        return x->hint > y->hint ? -1 : 1;
    return strcmp(b->name, a->name);
}

static void learn_equality(Sym *s, const Expr *diff) {
    Arena tmp = {0};
    const Expr **symbols;
    int n = expr_symbols(&tmp, diff, &symbols);
    expr_sort(symbols, n, solve_first);
    for (int i = 0; i < n; i++) {
        const Expr *value = solve(s, diff, symbols[i]);
        if (!value || is_poison(value))
            continue;
        SymbolInfo *info = info_of(s, symbols[i]);
        s->n_replaced += !info->replaced;
        info->replaced = value;
        int64_t v;
        if (expr_int(value, &v))
            info->range = (SymRange){v, v};
        break;
    }
    arena_free(&tmp);
}

// diff = k * symbol + c >= 0 bounds the symbol.
static void learn_bound(Sym *s, SymKind kind, const Expr *diff) {
    Arena tmp = {0};
    const Expr **symbols, *zero = sym_int(s, 0);
    int64_t k, c, bound;
    if (expr_symbols(&tmp, diff, &symbols) == 1) {
        SymRange *r = &info_of(s, symbols[0])->range;
        const Expr *rest = sym_subst(s, diff, &symbols[0], &zero, 1);
        bool linear = expr_int(sym_stride_of(s, diff, symbols[0]), &k) && k && expr_int(rest, &c) &&
                      c > INT64_MIN / 4 && c < INT64_MAX / 4 && k > INT64_MIN / 4 &&
                      k < INT64_MAX / 4 && sym_add(s, sym_mul_int(s, symbols[0], k), rest) == diff;
        if (linear && kind == SYM_ge && k > 0 && int_floordiv(-c + k - 1, k, &bound)) {
            r->lo = bound > r->lo ? bound : r->lo;
        } else if (linear && kind == SYM_ge && k < 0 && int_floordiv(c, -k, &bound)) {
            r->hi = bound < r->hi ? bound : r->hi;
        } else if (linear && kind == SYM_ne && c % k == 0) {
            r->lo += r->lo == -c / k && r->lo != SYM_NEG_INF;
            r->hi -= r->hi == -c / k && r->hi != SYM_POS_INF;
        }
    }
    arena_free(&tmp);
}

static void learn(Sym *s, const Expr *cond) {
    SymKind kind;
    const Expr *diff;
    cond = split_not(s, cond);
    for (int i = 0; cond->kind == SYM_and && i < cond->n; i++)
        learn(s, cond->args[i]);
    if (!normal_form(s, cond, &kind, &diff))
        return;
    if (kind == SYM_eq)
        learn_equality(s, diff);
    else
        learn_bound(s, kind, diff);
    s->version++;
}

static void record(Sym *s, const Expr *cond, int stage, const char *reason) {
    SymGuard g = {cond, stage, reason ? arena_strdup(s->arena, reason) : NULL};
    learn(s, cond);
    vec_push(s->arena, &s->guards, g);
}

bool sym_guard(Sym *s, const Expr *cond, int stage, const char *reason, bool *unknown) {
    if (unknown)
        *unknown = false;
    if (sym_statically_known_true(s, cond))
        return true;
    const Expr *not = sym_not(s, cond);
    if (!is_poison(not ) && sym_statically_known_true(s, not ))
        return false;
    int64_t v;
    if (is_poison(cond) || !sym_hint(s, cond, &v)) {
        if (unknown)
            *unknown = true;
        return false;
    }
    record(s, v ? cond : not, stage, reason);
    return v != 0;
}

bool sym_guard_eq(Sym *s, const Expr *a, const Expr *b, int stage, const char *reason) {
    int64_t x, y;
    if (sym_known_eq(s, a, b))
        return true;
    return sym_hint(s, a, &x) && sym_hint(s, b, &y) && x == y &&
           sym_guard(s, sym_cmp(s, SYM_eq, a, b), stage, reason, NULL);
}

bool sym_guard_int(Sym *s, const Expr *e, int stage, const char *reason, int64_t *v) {
    return expr_int(e, v) ||
           (sym_hint(s, e, v) && sym_guard_eq(s, e, sym_int(s, *v), stage, reason));
}

int sym_guards(const Sym *s, const SymGuard **out) {
    *out = s->guards.at;
    return s->guards.n;
}

void sym_drop_guards_from(Sym *s, int stage) {
    int kept = 0;
    for (int i = 0; i < s->guards.n; i++)
        if (s->guards.at[i].stage < stage)
            s->guards.at[kept++] = s->guards.at[i];
    sym_keep_guards(s, kept);
}

void sym_keep_guards(Sym *s, int n) {
    if (n >= s->guards.n)
        return;
    s->guards.n = 0;
    s->n_replaced = 0;
    for (int i = 0; i < s->symbols.n; i++) {
        s->symbols.at[i].range = s->symbols.at[i].given;
        s->symbols.at[i].replaced = NULL;
    }
    s->version++;
    for (int i = 0; i < n; i++) {
        learn(s, s->guards.at[i].cond);
        s->guards.n++;
    }
}
