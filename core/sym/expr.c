// expr.c: storing and looking into expressions. Every expression is interned: a table from (kind,
// arguments) to the one object there is, so that equality is pointer equality.
#include "core/sym/expr.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

const KindRow sym_kinds[SYM_n_kinds] = {
#define KIND(name, printed, args, precedence, value, doc)                                          \
    [SYM_##name] = {#name, printed, args, precedence, VALUE_##value, doc},
#include "core/sym/sym.def"
#undef KIND
};
_Static_assert(SYM_n_kinds < 63, "Expr.kinds has a bit a kind");

Sym *sym_new(Arena *a) {
    Sym *s = ARENA_NEW(a, Sym);
    s->arena = a;
    s->slots = 128;
    s->table = ARENA_ARRAY(a, s->slots, Slot);
    s->cached = OP_CACHE_FIRST;
    s->cache = ARENA_ARRAY(a, s->cached, OpCache);
    s->by_name.arena = a;
    s->duck.arena = a;
    s->reals.arena = a;
    s->version = 1;
    s->overflow = expr_intern(s, SYM_overflow, NULL, 0);
    s->inf = expr_intern(s, SYM_inf, NULL, 0);
    s->yes = expr_intern(s, SYM_true, NULL, 0);
    s->no = expr_intern(s, SYM_false, NULL, 0);
    return s;
}

Arena *sym_arena(Sym *s) {
    return s->arena;
}

static uint32_t free_slot(const Sym *s, uint32_t hash) {
    uint32_t at = hash & (s->slots - 1);
    while (s->table[at].e)
        at = (at + 1) & (s->slots - 1);
    return at;
}

static void grow_if_half_full(Sym *s) {
    if (s->n * 2 < s->slots)
        return;
    const Slot *old = s->table;
    uint32_t old_slots = s->slots;
    if (s->cached < OP_CACHE) {
        s->cached = OP_CACHE;
        s->cache = ARENA_ARRAY(s->arena, s->cached, OpCache);
    }
    s->slots *= 2;
    s->table = ARENA_ARRAY(s->arena, s->slots, Slot);
    for (uint32_t i = 0; i < old_slots; i++)
        if (old[i].e)
            s->table[free_slot(s, old[i].hash)] = old[i];
}

static uint32_t mix(uint32_t h, uint32_t v) {
    h ^= v + 0x9e3779b9u + (h << 6) + (h >> 2);
    return h * 0x85ebca6bu;
}

static uint32_t finish(uint32_t h) {
    h ^= h >> 15;
    h *= 0x2c1b3c6du;
    return h ^ h >> 13;
}

static Expr *place(Sym *s, uint32_t at, SymKind kind, uint32_t hash, int n) {
    Expr *e = arena_alloc(s->arena, sizeof *e + (size_t)n * sizeof *e->args);
    e->kind = (uint8_t)kind;
    e->n = n;
    e->id = s->n++;
    e->hash = hash;
    e->size = 1;
    e->kinds = KIND_BIT(kind);
    e->rest = e;
    e->sym = s;
    s->table[at] = (Slot){e, hash};
    return e;
}

// Signs of sums and products, as sympy's assumptions give them.
static int sign_of_add(const Expr *e) {
    int all = SIGN_nonneg | SIGN_nonpos, some = 0;
    for (int i = 0; i < e->n; i++) {
        all &= e->args[i]->sign;
        some |= e->args[i]->sign;
    }
    if (all & SIGN_nonneg)
        return SIGN_nonneg | (some & SIGN_pos);
    return all & SIGN_nonpos ? SIGN_nonpos | (some & SIGN_neg) : 0;
}

static int sign_of_mul(const Expr *e) {
    bool strict = true, negative = false;
    for (int i = 0; i < e->n; i++) {
        int sign = e->args[i]->sign;
        if (!(sign & (SIGN_nonneg | SIGN_nonpos)))
            return 0;
        if (!(sign & SIGN_nonneg))
            negative = !negative;
        strict = strict && (sign & (SIGN_pos | SIGN_neg));
    }
    return negative ? SIGN_nonpos | (strict ? SIGN_neg : 0) : SIGN_nonneg | (strict ? SIGN_pos : 0);
}

static int sign_of(const Expr *e) {
    int all = 15, some = 0;
    for (int i = 0; i < e->n; i++) {
        all &= e->args[i]->sign;
        some |= e->args[i]->sign;
    }
    switch ((SymKind)e->kind) {
    case SYM_add:
        return sign_of_add(e);
    case SYM_mul:
        return sign_of_mul(e);
    case SYM_pow:
        return e->args[0]->sign & (SIGN_nonneg | SIGN_pos) ? e->args[0]->sign
               : e->args[1]->value % 2 == 0                ? SIGN_nonneg
                                                           : 0;
    case SYM_min:
        return (all & (SIGN_nonneg | SIGN_pos)) | (some & (SIGN_nonpos | SIGN_neg));
    case SYM_max:
        return (all & (SIGN_nonpos | SIGN_neg)) | (some & (SIGN_nonneg | SIGN_pos));
    case SYM_floordiv:
    case SYM_cleandiv:
    case SYM_ceildiv:
        return all & SIGN_nonneg;
    case SYM_modular:
        return e->args[0]->sign & e->args[1]->sign & e->args[2]->sign & SIGN_nonneg;
    case SYM_pymod:
        return has_sign(e->args[1], SIGN_pos)   ? SIGN_nonneg
               : has_sign(e->args[1], SIGN_neg) ? SIGN_nonpos
                                                : 0;
    case SYM_mod:
    case SYM_abs:
        return SIGN_nonneg;
    case SYM_where:
        return e->args[1]->sign & e->args[2]->sign;
    case SYM_inf:
        return SIGN_pos | SIGN_nonneg;
    default: // PyTorch's classes say nothing of the others, Identity included
        return 0;
    }
}

static const Expr *factor_base(const Expr *e) {
    int64_t exponent;
    return factor_split(e, &exponent);
}

static void fill(Expr *e) {
    uint64_t size = 1;
    for (int i = 0; i < e->n; i++) {
        size += e->args[i]->size;
        e->kinds |= e->args[i]->kinds;
        e->symbols |= e->args[i]->symbols;
    }
    if (e->kind == SYM_mul || e->kind == SYM_pow)
        for (int i = 0; i < e->n; i++)
            if (factor_base(e->args[i])->kind == SYM_add)
                e->kinds |= EXPANDABLE;
    e->size = size > UINT32_MAX ? UINT32_MAX : (uint32_t)size;
    e->sign = (uint8_t)sign_of(e);
}

// The product without its coefficient is interned first, so that terms split in one step.
static const Expr *rest_of_mul(Sym *s, const Expr *const args[], int n) {
    return n == 2 ? args[1] : expr_intern(s, SYM_mul, args + 1, n - 1);
}

const Expr *expr_intern(Sym *s, SymKind kind, const Expr *const args[], int n) {
    grow_if_half_full(s);
    uint32_t hash = mix(0x811c9dc5u, (uint32_t)kind);
    for (int i = 0; i < n; i++)
        hash = mix(hash, args[i]->id);
    hash = finish(hash);
    uint32_t at = hash & (s->slots - 1);
    for (const Expr *e; (e = s->table[at].e); at = (at + 1) & (s->slots - 1))
        if (s->table[at].hash == hash && e->kind == kind && e->n == n &&
            (!n || !memcmp(e->args, args, (size_t)n * sizeof *args)))
            return e;
    const Expr *rest = NULL;
    if (kind == SYM_mul && is_kind(args[0], SYM_int)) {
        rest = rest_of_mul(s, args, n);
        at = free_slot(s, hash);
    }
    Expr *e = place(s, at, kind, hash, n);
    if (n)
        memcpy(e->args, args, (size_t)n * sizeof *args);
    e->value = kind == SYM_mul ? 1 : 0;
    if (rest) {
        e->rest = rest;
        e->value = args[0]->value;
    }
    fill(e);
    return e;
}

const Expr *expr_poison(Sym *s) {
    return s->overflow;
}

static const Expr *find_int(Sym *s, int64_t v) {
    grow_if_half_full(s);
    uint32_t hash = finish(mix(mix(0x2545f491u, (uint32_t)v), (uint32_t)((uint64_t)v >> 32)));
    uint32_t at = hash & (s->slots - 1);
    for (const Expr *e; (e = s->table[at].e); at = (at + 1) & (s->slots - 1))
        if (s->table[at].hash == hash && e->kind == SYM_int && e->value == v)
            return e;
    Expr *e = place(s, at, SYM_int, hash, 0);
    e->value = v;
    e->sign = (uint8_t)((v >= 0 ? SIGN_nonneg : 0) | (v > 0 ? SIGN_pos : 0) |
                        (v <= 0 ? SIGN_nonpos : 0) | (v < 0 ? SIGN_neg : 0));
    return e;
}

const Expr *sym_int(Sym *s, int64_t v) {
    if (v < -16 || v >= SMALL_INTS - 16)
        return find_int(s, v);
    if (!s->small[v + 16])
        s->small[v + 16] = find_int(s, v);
    return s->small[v + 16];
}

// s77 is a size, u0 may be anything, all other names are indexes.
static Assume assume_by_name(const char *name) {
    if ((name[0] != 's' && name[0] != 'u') || !name[1] || name[1 + strspn(name + 1, "0123456789")])
        return ASSUME_nonneg;
    return name[0] == 's' ? ASSUME_pos : ASSUME_any;
}

const Expr *expr_symbol(Sym *s, const char *name, Assume assume) {
    MapEntry *entry = map_find(&s->by_name, name);
    if (entry)
        return entry->ptr;
    grow_if_half_full(s);
    int index = s->symbols.n;
    uint32_t hash = finish(mix(0x5bd1e995u, (uint32_t)index));
    Expr *e = place(s, free_slot(s, hash), SYM_symbol, hash, 0);
    e->name = arena_strdup(s->arena, name);
    e->value = index;
    e->assume = (uint8_t)assume;
    e->symbols = UINT64_C(1) << (index % 64);
    e->sign = assume == ASSUME_pos      ? SIGN_pos | SIGN_nonneg
              : assume == ASSUME_nonneg ? SIGN_nonneg
                                        : 0;
    SymRange r = {assume == ASSUME_pos      ? 2
                  : assume == ASSUME_nonneg ? 0
                                            : SYM_NEG_INF,
                  SYM_POS_INF};
    vec_push(s->arena, &s->symbols, (SymbolInfo){.e = e, .given = r, .range = r});
    map_put(&s->by_name, e->name, e);
    return e;
}

const Expr *expr_named(Sym *s, const char *name, Assume assume) {
    const Expr *e = expr_symbol(s, name, assume);
    if (expr_unbacked(e) >= s->n_unbacked)
        s->n_unbacked = expr_unbacked(e) + 1;
    bool real = str_starts(name, "zuf") && sym_is_real_name(name) && strlen(name) < 12;
    if (real && atoi(name + 3) >= s->n_unbacked_reals)
        s->n_unbacked_reals = atoi(name + 3) + 1;
    return e;
}

const Expr *sym_symbol(Sym *s, const char *name) {
    return expr_named(s, name, assume_by_name(name));
}

int expr_unbacked(const Expr *e) {
    const char *name = expr_kind(e) == SYM_symbol ? expr_name(e) : "";
    size_t digits = strspn(name + (*name == 'u'), "0123456789");
    return *name == 'u' && digits && digits < 9 && !name[1 + digits] ? atoi(name + 1) : -1;
}

const Expr *sym_inf(Sym *s) {
    return s->inf;
}

const Expr *sym_bool(Sym *s, bool v) {
    return v ? s->yes : s->no;
}

OpCache *op_cache(Sym *s, SymKind kind, const Expr *a, const Expr *b) {
    uint32_t h = finish(mix(mix((uint32_t)kind * 0x9e3779b9u, a->id), b->id));
    return &s->cache[h & (s->cached - 1)];
}

SymKind expr_kind(const Expr *e) {
    return (SymKind)e->kind;
}

int expr_n_args(const Expr *e) {
    return e->n;
}

const Expr *expr_arg(const Expr *e, int i) {
    assert(i >= 0 && i < e->n && "argument index within the expression");
    return e->args[i];
}

const char *expr_name(const Expr *e) {
    return e->name;
}

bool expr_int(const Expr *e, int64_t *v) {
    if (e->kind != SYM_int)
        return false;
    *v = e->value;
    return true;
}

bool expr_is(const Expr *e, int64_t v) {
    return e->kind == SYM_int && e->value == v;
}

bool expr_true(const Expr *e) {
    return e->kind == SYM_true;
}

bool expr_false(const Expr *e) {
    return e->kind == SYM_false;
}

int64_t expr_int_or(const Expr *e, int64_t fallback) {
    return e->kind == SYM_int ? e->value : fallback;
}

uint32_t expr_id(const Expr *e) {
    return e->id;
}

uint32_t expr_size(const Expr *e) {
    return e->size;
}

// Arguments are always made before what holds them, hence have lower ids.
bool expr_has(const Expr *e, const Expr *part) {
    if (e == part)
        return true;
    if (e->id < part->id || (part->symbols & ~e->symbols) || (part->kinds & ~e->kinds))
        return false;
    for (int i = 0; i < e->n; i++)
        if (expr_has(e->args[i], part))
            return true;
    return false;
}

bool expr_has_symbols(const Expr *e) {
    return e->symbols != 0;
}

bool expr_has_kind(const Expr *e, SymKind kind) {
    return (e->kinds & KIND_BIT(kind)) != 0;
}

typedef struct SymbolList {
    Arena *arena;
    VEC(const Expr *) found;
} SymbolList;

static void collect_symbols(SymbolList *l, const Expr *e) {
    if (e->kind == SYM_symbol) {
        for (int i = 0; i < l->found.n; i++)
            if (l->found.at[i] == e)
                return;
        vec_push(l->arena, &l->found, e);
        return;
    }
    for (int i = 0; i < e->n; i++)
        if (e->args[i]->symbols)
            collect_symbols(l, e->args[i]);
}

static int compare_names(const Expr *a, const Expr *b) {
    return strcmp(a->name, b->name);
}

int expr_symbols(Arena *a, const Expr *e, const Expr ***out) {
    SymbolList l = {.arena = a};
    if (e->symbols)
        collect_symbols(&l, e);
    expr_sort(l.found.at, l.found.n, compare_names);
    if (out)
        *out = l.found.at;
    return l.found.n;
}
