// expr.h: how expressions are stored; for the files of core/sym only.
#ifndef CORE_SYM_EXPR_H
#define CORE_SYM_EXPR_H

#include "core/base/map.h"
#include "core/base/vec.h"
#include "core/sym/sym.h"

// What a symbol is assumed to be, fixed at making: sympy's assumptions, unlike ranges, never
// change, so that the same arguments always construct the same expression.
typedef enum Assume { ASSUME_any, ASSUME_nonneg, ASSUME_pos } Assume;

// Signs that follow from the assumptions.
enum { SIGN_nonneg = 1, SIGN_pos = 2, SIGN_nonpos = 4, SIGN_neg = 8 };

struct Expr {
    uint8_t kind;           // SymKind
    uint8_t sign;           // SIGN_ bits
    uint8_t assume;         // of a symbol
    int32_t n;              // arguments
    uint32_t id;            // number of making
    uint32_t hash;
    uint32_t size;          // nodes as a tree, saturating
    int64_t value;          // int: value; mul: integer coefficient; symbol: index in Sym.symbols
    uint64_t kinds;         // bit per kind that occurs in it
    uint64_t symbols;       // bit (index % 64) per symbol that occurs in it
    const Expr *rest;       // mul with a coefficient: the product without it; else itself
    Sym *sym;               // its home
    const char *name;       // of a symbol
    const Expr **ordered;   // arguments in the order of printing, made when first asked for
    const Expr *args[];     // (n)
};

// What is known of one symbol.
typedef struct SymbolInfo {
    const Expr *e;
    SymRange given;         // range without what guards say
    SymRange range;         // with it
    int64_t hint;
    bool has_hint;
    bool ranged;            // a range was set by hand
    const char *source;     // where its value is found, NULL if unknown
    const Expr *replaced;   // equality guards say it is this; NULL: nothing
} SymbolInfo;

enum { OP_CACHE = 4096, OP_CACHE_FIRST = 32, SMALL_INTS = 1024 };

typedef struct OpCache {
    const Expr *a, *b;      // operands, NULL: free
    const Expr *out;
    uint32_t kind;
} OpCache;

typedef struct IndexCache IndexCache;

// The hash stands beside the pointer so that a probe seldom has to look at the expression.
typedef struct Slot {
    const Expr *e;          // NULL: free
    uint32_t hash;
} Slot;

struct Sym {
    Arena *arena;
    Slot *table;                        // open addressing over all expressions, at most half full
    uint32_t slots, n;
    const Expr *small[SMALL_INTS];      // -16 … SMALL_INTS - 17
    OpCache *cache;                     // last results of binary constructors
    uint32_t cached;                    // its places: few, then OP_CACHE; a power of two
    Map by_name;                        // symbols
    VEC(SymbolInfo) symbols;
    const Expr *overflow, *inf, *yes, *no;
    // memo of one substitution, by id of expression
    uint32_t *memo_stamp;
    const Expr **memo;
    uint32_t memo_cap, stamp;
    // ranges by id of expression, valid for one version of what is known
    struct { uint32_t version; SymRange r; } *ranges;
    uint32_t ranges_cap;
    uint32_t version;                   // of ranges and replacements
    VEC(SymGuard) guards;
    Map duck;                           // value -> symbol
    bool taken[256];                    // numbers used by names s0, s1, …
    int n_unbacked, n_unbacked_reals;
    int n_replaced;                     // symbols with a replacement
    Map reals;                          // zf0 -> double *, what it is
    IndexCache *index_cache;
};

// A kind's row.
typedef struct KindRow {
    const char *name, *printed;
    int n_args, precedence;
    enum { VALUE_int, VALUE_bool, VALUE_real } value;
    const char *doc;
} KindRow;
extern const KindRow sym_kinds[SYM_n_kinds];

#define KIND_BIT(kind) (UINT64_C(1) << (kind))
// In Expr.kinds: holds a product or power of a sum somewhere.
#define EXPANDABLE (UINT64_C(1) << 63)

// The interned expression of that kind and arguments as they stand; no simplification.
const Expr *expr_intern(Sym *s, SymKind kind, const Expr *const args[], int n);
const Expr *expr_poison(Sym *s);
const Expr *expr_symbol(Sym *s, const char *name, Assume assume);
// The same; an unbacked one that a text names is not made a second time.
const Expr *expr_named(Sym *s, const char *name, Assume assume);
static inline bool is_kind(const Expr *e, SymKind kind) { return e->kind == kind; }
static inline bool is_poison(const Expr *e) { return e->kind == SYM_overflow; }
static inline bool has_sign(const Expr *e, int sign) { return (e->sign & sign) == sign; }
// Coefficient and the rest of a term: 6*x*y is 6 and x*y, a constant c is c and NULL.
static inline int64_t term_split(const Expr *e, const Expr **rest) {
    if (e->kind == SYM_int) {
        *rest = NULL;
        return e->value;
    }
    *rest = e->rest;
    return e->kind == SYM_mul ? e->value : 1;
}
// Base and exponent of a factor.
static inline const Expr *factor_split(const Expr *e, int64_t *exponent) {
    *exponent = e->kind == SYM_pow ? e->args[1]->value : 1;
    return e->kind == SYM_pow ? e->args[0] : e;
}
// Terms of a sum (or the expression alone).
static inline int terms_of(const Expr *e, const Expr *const **terms, const Expr *const *self) {
    *terms = e->kind == SYM_add ? e->args : self;
    return e->kind == SYM_add ? e->n : 1;
}
void expr_sort(const Expr **at, int n, int (*compare)(const Expr *, const Expr *));
// Last result of a binary constructor with these operands: NULL if not known.
OpCache *op_cache(Sym *s, SymKind kind, const Expr *a, const Expr *b);

// order.c: sympy's sort_key and the order of printing.
int expr_sort_key_compare(const Expr *a, const Expr *b);
// Order of the arguments of Min, Max, And and Or: the smaller expression first.
int expr_lattice_compare(const Expr *a, const Expr *b);
const Expr *const *expr_ordered(const Expr *e);
int expr_precedence(const Expr *e);

// Descending monomials, the constant last: the first is a polynomial's leading term.
int expr_term_compare(const Expr *a, const Expr *b);

// Rebuilds e with each argument mapped.
typedef const Expr *ExprMap(void *ctx, const Expr *e);
const Expr *expr_map_args(Sym *s, const Expr *e, ExprMap *map, void *ctx);
// Floor division and its remainder of plain numbers; false on overflow or division by zero.
bool int_floordiv(int64_t a, int64_t b, int64_t *out);
bool int_mod(int64_t a, int64_t b, int64_t *out);
bool int_pow(int64_t a, int64_t n, int64_t *out);

#endif
