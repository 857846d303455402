// sym.h: symbolic integers: expressions, ranges, and the shape environment. Sizes, strides,
// offsets, loop bounds and indexes all over the program are `const Expr *`, a plain number being
// the usual case.
//
// An Expr is immutable and interned in its Sym: structurally equal expressions are the same
// pointer, so `a == b` compares them. They live as long as the Sym's arena (one a compilation, not
// one an artifact). Constructors bring to sympy's canonical form with PyTorch's own
// simplifications, so that printing gives PyTorch's bytes. Arithmetic is checked: what leaves 64
// bits becomes SYM_overflow.
#ifndef CORE_SYM_SYM_H
#define CORE_SYM_SYM_H

#include "core/base/diag.h"

typedef enum SymKind {
#define KIND(name, ...) SYM_##name,
#include "core/sym/sym.def"
#undef KIND
    SYM_n_kinds
} SymKind;

typedef struct Sym Sym;
typedef struct Expr Expr;

Sym *sym_new(Arena *a);
Arena *sym_arena(Sym *s);

// expr.c: making expressions.
const Expr *sym_int(Sym *s, int64_t v);
// Interned by name. What is assumed of it follows from PyTorch's names: `s77` is a size, range
// [2, inf); `u0` anything; every other name (`p0`, `c1`, `tmp2`) an index, range [0, inf).
const Expr *sym_symbol(Sym *s, const char *name);
const Expr *sym_add(Sym *s, const Expr *a, const Expr *b);
const Expr *sym_sub(Sym *s, const Expr *a, const Expr *b);
const Expr *sym_mul(Sym *s, const Expr *a, const Expr *b);
const Expr *sym_neg(Sym *s, const Expr *a);
const Expr *sym_pow(Sym *s, const Expr *a, int64_t n);                  // n >= 0
const Expr *sym_floordiv(Sym *s, const Expr *a, const Expr *b);         // rounds down
const Expr *sym_cleandiv(Sym *s, const Expr *a, const Expr *b);         // known to be exact
const Expr *sym_ceildiv(Sym *s, const Expr *a, const Expr *b);          // (a + b - 1) // b
const Expr *sym_mod(Sym *s, const Expr *a, const Expr *b);              // PythonMod
// ModularIndexing: (a // div) % mod.
const Expr *sym_modular(Sym *s, const Expr *a, const Expr *div, const Expr *mod);
const Expr *sym_min(Sym *s, const Expr *a, const Expr *b);
const Expr *sym_max(Sym *s, const Expr *a, const Expr *b);
const Expr *sym_identity(Sym *s, const Expr *a);
const Expr *sym_abs(Sym *s, const Expr *a);
const Expr *sym_inf(Sym *s);                                            // int_oo
const Expr *sym_bool(Sym *s, bool v);
const Expr *sym_cmp(Sym *s, SymKind kind, const Expr *a, const Expr *b);   // SYM_eq ne lt le gt ge
const Expr *sym_and(Sym *s, const Expr *a, const Expr *b);
const Expr *sym_or(Sym *s, const Expr *a, const Expr *b);
const Expr *sym_not(Sym *s, const Expr *a);
const Expr *sym_where(Sym *s, const Expr *cond, const Expr *a, const Expr *b);
// Any kind from arguments, through the constructor of that kind.
const Expr *sym_make(Sym *s, SymKind kind, const Expr *const args[], int n);
// Shorthands with a plain number.
const Expr *sym_add_int(Sym *s, const Expr *a, int64_t v);
const Expr *sym_mul_int(Sym *s, const Expr *a, int64_t v);
const Expr *sym_product(Sym *s, const Expr *const args[], int n);       // 1 if n is 0
const Expr *sym_sum(Sym *s, const Expr *const args[], int n);           // 0 if n is 0

// expr.c: looking into them.
SymKind expr_kind(const Expr *e);
int expr_n_args(const Expr *e);
const Expr *expr_arg(const Expr *e, int i);
const char *expr_name(const Expr *e);                       // of a symbol, else NULL
bool expr_int(const Expr *e, int64_t *v);                   // is an integer constant
bool expr_is(const Expr *e, int64_t v);                     // is that integer constant
bool expr_true(const Expr *e);                              // is the constant True
bool expr_false(const Expr *e);
int64_t expr_int_or(const Expr *e, int64_t fallback);       // the constant, or fallback
// A number given at making, from 0 without gaps: a key for maps. Never an order for output.
uint32_t expr_id(const Expr *e);
// k of the unbacked symbol uk; -1: it is none.
int expr_unbacked(const Expr *e);
// Number of nodes as a tree, saturating at UINT32_MAX: 1 for a constant or a symbol.
uint32_t expr_size(const Expr *e);
bool expr_has(const Expr *e, const Expr *symbol);           // also any other subexpression
bool expr_has_symbols(const Expr *e);
bool expr_has_kind(const Expr *e, SymKind kind);
// Free symbols sorted by name; the array is the arena's.
int expr_symbols(Arena *a, const Expr *e, const Expr ***out);
// A total order that follows from structure only, the same on every machine.
int expr_compare(const Expr *a, const Expr *b);

// subst.c
// All at once; from[i] is a symbol or any subexpression (matched whole, outermost first).
const Expr *sym_subst(Sym *s, const Expr *e, const Expr *const from[], const Expr *const to[],
                      int n);
// Products of sums multiplied out (sympy's expand), inside arguments too.
const Expr *sym_expand(Sym *s, const Expr *e);
// Greatest common divisor by common integer factor and common factors of products (PyTorch's quick
// gcd).
const Expr *sym_gcd(Sym *s, const Expr *a, const Expr *b);
// a / b if that is exact term by term, else NULL.
const Expr *sym_exact_div(Sym *s, const Expr *a, const Expr *b);
// a / b if that is exact, else rounded down.
const Expr *sym_quotient(Sym *s, const Expr *a, const Expr *b);
// Without Identity wrappers.
const Expr *sym_strip_identity(Sym *s, const Expr *e);
// Value for values of symbols (a comparison gives 0 or 1); false if a symbol is unknown (lookup
// returns false), on overflow, division by zero, or a kind that is not evaluated.
typedef bool SymLookup(void *ctx, const Expr *symbol, int64_t *v);
bool sym_eval(const Expr *e, SymLookup *lookup, void *ctx, int64_t *out);
// The value of x for which e, a size that grows with it, is v; the other symbols by lookup. False
// if there is none below 2^40.
bool sym_solve(const Expr *e, const Expr *x, int64_t v, SymLookup *lookup, void *ctx, int64_t *out);
// The one symbol of e that is not known; NULL if there are none or several.
const Expr *sym_one_unknown(const Expr *e, SymLookup *lookup, void *ctx);

// print.c: as PyTorch prints it (sympy's str).
void sym_print(Buf *b, const Expr *e);
// With Python's brackets: `[2, s77]` or `(2, s77)`, `(2,)`.
void sym_print_list(Buf *b, const Expr *const e[], int n);
void sym_print_tuple(Buf *b, const Expr *const e[], int n);
const char *sym_str(Arena *a, const Expr *e);
// sympy's srepr: `Mul(Integer(2), Symbol('s77', integer=True, positive=True))`.
void sym_print_srepr(Buf *b, const Expr *e);

// parse.c: both forms back; NULL and an error on bad text. The whole text must be one expression.
const Expr *sym_parse(Sym *s, const char *text, Place at, Diag *d);
const Expr *sym_parse_srepr(Sym *s, const char *text, Place at, Diag *d);
// Reads one expression at *text in the str form and moves *text behind it (stops at a `,`, `]`,
// `)`, `:` or quote of the surrounding text).
const Expr *sym_parse_prefix(Sym *s, const char **text, Place at, Diag *d);

// range.c: bounds, both ends included.
#define SYM_POS_INF INT64_MAX
#define SYM_NEG_INF INT64_MIN
typedef struct SymRange {
    int64_t lo, hi; // SYM_NEG_INF, SYM_POS_INF: no bound
} SymRange;
SymRange sym_range(Sym *s, const Expr *e);                  // sound, not always tight
void sym_set_range(Sym *s, const Expr *symbol, int64_t lo, int64_t hi);
// With other ranges for some symbols: var in [0, size - 1].
SymRange sym_range_with(Sym *s, const Expr *e, const Expr *const vars[], const SymRange *ranges,
                        int n);

// indexing.c: Inductor's simplification of index expressions (its sizevars.py).
// Given 0 <= vars[i] < sizes[i]: drops FloorDiv and ModularIndexing that do nothing, joins those
// that take one dimension apart.
const Expr *sym_simplify_with_ranges(Sym *s, const Expr *e, const Expr *const vars[],
                                     const Expr *const sizes[], int n);
// Further than Inductor goes: quotients of what is less than the divisor are 0.
const Expr *sym_simplify_bounded(Sym *s, const Expr *e, const Expr *const vars[],
                                 const Expr *const sizes[], int n);
// Drops loops of size 1 and merges those that every index walks as one (inner size times inner
// stride is the outer stride). A merged loop stands in the place of the innermost; the others'
// variables become 0.
typedef struct SymLoops {
    int n;                      // loops left
    const Expr **sizes;         // (n) their sizes
    int n_old;                  // loops before
    int *into;                  // (n_old) the new loop in its place, -1: its variable is 0
} SymLoops;
SymLoops sym_simplify_loops(Sym *s, Arena *a, const Expr *const vars[], const Expr *const sizes[],
                            int n, const Expr *const index[], int n_index);
// Values of the old variables in terms of the new ones: out has n_old rooms, vars n.
void sym_loops_reindex(Sym *s, const SymLoops *l, const Expr *const vars[], const Expr *out[]);
// Stride of each variable: e(var = 1) - e(var = 0), the other support variables being 0, offset
// removed.
void sym_stride_vars(Sym *s, const Expr *e, const Expr *const vars[], int n,
                     const Expr *const support[], int n_support, const Expr *out[]);
// e(var = 1) - e(var = 0), other symbols kept.
const Expr *sym_stride_of(Sym *s, const Expr *e, const Expr *var);
// e with all vars 0.
const Expr *sym_offset_of(Sym *s, const Expr *e, const Expr *const vars[], int n);

// shape.c: the shape environment: hints, what is known, guards with the stage that added them.
typedef enum SymDim { SYM_DIM_static, SYM_DIM_duck, SYM_DIM_dynamic } SymDim;
// A symbol for a value found at `source` (`L['x'].size()[0]`): PyTorch's name for it, `s77`. Static
// values, and 0 and 1 always, are constants; duck gives the same symbol for the same value.
// A size's range is [2, inf), an int's unbounded.
const Expr *sym_create(Sym *s, const char *source, int64_t value, SymDim dim, bool is_size);
const Expr *sym_create_unbacked(Sym *s);                    // u0, u1, …
int sym_count_unbacked(const Sym *s);                       // how many were made
// The next one made is u`next` (again); returns which would have come.
int sym_set_next_unbacked(Sym *s, int next);
const char *sym_create_unbacked_real(Sym *s);               // a real number's name: zuf0, zuf1, …
int sym_count_unbacked_reals(const Sym *s);
const char *sym_source(Sym *s, const Expr *symbol);         // NULL if not made by sym_create
bool sym_hint(Sym *s, const Expr *e, int64_t *v);           // value by hints, if all are known
void sym_set_hint(Sym *s, const Expr *symbol, int64_t v);
// What a size that is v tells of the one symbol in it that has no hint: s0 of `s0`, of `2*s0`.
void sym_learn_hint(Sym *s, const Expr *size, int64_t v);
// Sizes (s0, s77, …) that have no hint get one: first, first + 8, …, since sizes that are equal are
// one symbol.
void sym_hint_rest(Sym *s, int64_t first);
int64_t sym_size_hint(Sym *s, const Expr *e, int64_t fallback);
// Follows from ranges and guards, without a new guard. False means "not known".
bool sym_statically_known_true(Sym *s, const Expr *cond);
bool sym_known_eq(Sym *s, const Expr *a, const Expr *b);
bool sym_known_le(Sym *s, const Expr *a, const Expr *b);
bool sym_known_lt(Sym *s, const Expr *a, const Expr *b);
bool sym_known_multiple(Sym *s, const Expr *a, const Expr *of);
// Expanded and with what equality guards say put in.
const Expr *sym_simplify(Sym *s, const Expr *e);

// real.c: real numbers: the symbols zf0, zuf0, and what is computed with one or by a division.
bool sym_is_real_name(const char *name);
bool expr_is_real(const Expr *e);
// The str form of what sym_parse_srepr does not model, `FloatPow(zf0, 2.0)`; NULL if it is no
// srepr.
const char *sym_srepr_text(Arena *a, const char *text);
void sym_set_real_hint(Sym *s, const char *name, double v);
bool sym_real_hint(const Sym *s, const char *name, double *v);

typedef struct SymGuard {
    const Expr *cond;   // holds for the hints
    int stage;          // id of the stage that added it
    const char *reason; // text for the reader: place and why
} SymGuard;
// Decides cond by what is known, else by hints, recording a guard (cond or its negation). An
// unknown hint (unbacked) decides `false` without a guard and sets *unknown if that is not NULL.
bool sym_guard(Sym *s, const Expr *cond, int stage, const char *reason, bool *unknown);
// a == b, guarded. The hints must agree; false (nothing recorded) if they do not.
bool sym_guard_eq(Sym *s, const Expr *a, const Expr *b, int stage, const char *reason);
// The expression's hint, specialised on it by a guard; a constant is itself. False without a hint.
bool sym_guard_int(Sym *s, const Expr *e, int stage, const char *reason, int64_t *v);
int sym_guards(const Sym *s, const SymGuard **out);
// Forgets the guards of stages >= stage and what followed from them.
void sym_drop_guards_from(Sym *s, int stage);
// Forgets all but the first n guards: what a trial added.
void sym_keep_guards(Sym *s, int n);

#endif
