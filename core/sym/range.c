// range.c: bounds of expressions by interval arithmetic over the symbols' ranges. A bound that
// leaves 64 bits counts as none, so that what is returned always holds.
#include "core/sym/expr.h"

static const SymRange everything = {SYM_NEG_INF, SYM_POS_INF};

static bool is_inf(int64_t v) {
    return v == SYM_NEG_INF || v == SYM_POS_INF;
}

// Sums of lower (upper) ends: an infinite end stays what it is.
static int64_t add_ends(int64_t a, int64_t b) {
    int64_t v;
    if (is_inf(a) || is_inf(b))
        return is_inf(a) ? a : b;
    return __builtin_add_overflow(a, b, &v) ? (a > 0 ? SYM_POS_INF : SYM_NEG_INF) : v;
}

// Products of ends; 0 times no bound is 0.
static int64_t mul_ends(int64_t a, int64_t b) {
    if (!a || !b)
        return 0;
    int64_t v;
    if (is_inf(a) || is_inf(b) || __builtin_mul_overflow(a, b, &v))
        return (a > 0) == (b > 0) ? SYM_POS_INF : SYM_NEG_INF;
    return v;
}

static SymRange hull(const int64_t v[], int n) {
    SymRange r = {v[0], v[0]};
    for (int i = 1; i < n; i++) {
        r.lo = v[i] < r.lo ? v[i] : r.lo;
        r.hi = v[i] > r.hi ? v[i] : r.hi;
    }
    return r;
}

static SymRange range_add(SymRange a, SymRange b) {
    return (SymRange){add_ends(a.lo, b.lo), add_ends(a.hi, b.hi)};
}

static SymRange range_mul(SymRange a, SymRange b) {
    int64_t v[] = {mul_ends(a.lo, b.lo), mul_ends(a.lo, b.hi), mul_ends(a.hi, b.lo),
                   mul_ends(a.hi, b.hi)};
    return hull(v, 4);
}

static SymRange range_pow(SymRange a, int64_t n) {
    SymRange r = {1, 1};
    for (int64_t i = 0; i < n && i < 64; i++)
        r = range_mul(r, a);
    if (n >= 64)
        r = everything;
    if (n % 2 == 0 && r.lo < 0)
        r.lo = 0;
    return r;
}

static int64_t div_ends(int64_t a, int64_t b) {
    int64_t q;
    if (is_inf(b))
        return a == 0               ? 0
               : is_inf(a)          ? ((a > 0) == (b > 0) ? SYM_POS_INF : SYM_NEG_INF)
               : (a > 0) == (b > 0) ? 0
                                    : -1;
    if (is_inf(a))
        return (a > 0) == (b > 0) ? SYM_POS_INF : SYM_NEG_INF;
    return int_floordiv(a, b, &q) ? q : SYM_POS_INF;
}

static SymRange range_floordiv(SymRange a, SymRange b) {
    if (b.lo <= 0 && b.hi >= 0)
        return everything;
    int64_t v[] = {div_ends(a.lo, b.lo), div_ends(a.lo, b.hi), div_ends(a.hi, b.lo),
                   div_ends(a.hi, b.hi)};
    return hull(v, 4);
}

// Python's remainder.
static SymRange range_mod(SymRange a, SymRange m) {
    if (m.lo > 0) {
        if (a.lo >= 0 && a.hi < m.lo)
            return a;
        int64_t hi = m.hi == SYM_POS_INF ? SYM_POS_INF : m.hi - 1;
        return (SymRange){0, a.lo >= 0 && a.hi < hi ? a.hi : hi};
    }
    if (m.hi < 0)
        return (SymRange){m.lo == SYM_NEG_INF ? SYM_NEG_INF : m.lo + 1, 0};
    return everything;
}

static SymRange range_min_max(SymKind kind, SymRange a, SymRange b) {
    bool min = kind == SYM_min;
    return (SymRange){(a.lo < b.lo) == min ? a.lo : b.lo, (a.hi < b.hi) == min ? a.hi : b.hi};
}

// Ranges of some variables that hold for one question only.
typedef struct Context {
    Sym *s;
    const Expr *const *vars;
    const SymRange *ranges;
    int n;
    uint64_t symbols; // that vars have
} Context;

static SymRange range_of(const Context *x, const Expr *e);

static SymRange range_fold(const Context *x, const Expr *e) {
    SymRange r = range_of(x, e->args[0]);
    for (int i = 1; i < e->n; i++) {
        SymRange b = range_of(x, e->args[i]);
        r = e->kind == SYM_add   ? range_add(r, b)
            : e->kind == SYM_mul ? range_mul(r, b)
                                 : range_min_max((SymKind)e->kind, r, b);
    }
    return r;
}

static SymRange range_by_kind(const Context *x, const Expr *e) {
    SymRange a, b;
    switch ((SymKind)e->kind) {
    case SYM_int:
        return (SymRange){e->value, e->value};
    case SYM_symbol:
        return x->s->symbols.at[e->value].range;
    case SYM_inf:
        return (SymRange){SYM_POS_INF, SYM_POS_INF};
    case SYM_add:
    case SYM_mul:
    case SYM_min:
    case SYM_max:
        return range_fold(x, e);
    case SYM_pow:
        return range_pow(range_of(x, e->args[0]), e->args[1]->value);
    case SYM_floordiv:
    case SYM_cleandiv:
        return range_floordiv(range_of(x, e->args[0]), range_of(x, e->args[1]));
    case SYM_modular:
        return range_mod(range_floordiv(range_of(x, e->args[0]), range_of(x, e->args[1])),
                         range_of(x, e->args[2]));
    case SYM_pymod:
    case SYM_mod:
        return range_mod(range_of(x, e->args[0]), range_of(x, e->args[1]));
    case SYM_identity:
        return range_of(x, e->args[0]);
    case SYM_abs:
        a = range_of(x, e->args[0]);
        b = range_mul(a, (SymRange){-1, -1});
        return a.lo >= 0   ? a
               : b.lo >= 0 ? b
                           : (SymRange){0, a.hi > b.hi ? a.hi : b.hi};
    case SYM_where:
        a = range_of(x, e->args[1]);
        b = range_of(x, e->args[2]);
        return (SymRange){a.lo < b.lo ? a.lo : b.lo, a.hi > b.hi ? a.hi : b.hi};
    default:
        return sym_kinds[e->kind].value == VALUE_bool ? (SymRange){0, 1} : everything;
    }
}

static SymRange range_of(const Context *x, const Expr *e) {
    Sym *s = x->s;
    if (e->kind == SYM_int)
        return (SymRange){e->value, e->value};
    for (int i = 0; e->kind == SYM_symbol && i < x->n; i++)
        if (e == x->vars[i])
            return x->ranges[i];
    if (e->symbols & x->symbols)
        return range_by_kind(x, e);
    // Nothing here depends on the question: remember it.
    if (s->ranges_cap < s->n) {
        s->ranges_cap = s->n * 2;
        s->ranges = arena_array(s->arena, s->ranges_cap, sizeof *s->ranges);
    }
    if (s->ranges[e->id].version != s->version) {
        SymRange r = range_by_kind(x, e);
        s->ranges[e->id].version = s->version;
        s->ranges[e->id].r = r;
    }
    return s->ranges[e->id].r;
}

SymRange sym_range(Sym *s, const Expr *e) {
    return range_of(&(Context){.s = s}, e);
}

SymRange sym_range_with(Sym *s, const Expr *e, const Expr *const vars[], const SymRange *ranges,
                        int n) {
    Context x = {s, vars, ranges, n, 0};
    for (int i = 0; i < n; i++)
        x.symbols |= vars[i]->symbols;
    return range_of(&x, e);
}

void sym_set_range(Sym *s, const Expr *symbol, int64_t lo, int64_t hi) {
    if (symbol->kind != SYM_symbol)
        return;
    SymbolInfo *info = &s->symbols.at[symbol->value];
    info->given = info->range = (SymRange){lo, hi};
    s->version++;
}
