// sym_expr.c: canonical form and simplification against an independent evaluator. Random
// expressions are built twice: as a plain tree evaluated by the definitions, and through the
// constructors.
#include "core/base/vec.h"
#include "core/sym/sym.h"
#include "tests/unit/unit.h"

#include <stdio.h>
#include <string.h>

enum { VARS = 4 };
static const char *const var_names[VARS] = {"p0", "p1", "s7", "u0"};
static uint32_t seed;

static int pick(int n) {
    seed = seed * 1664525u + 1013904223u;
    return (int)(seed >> 8) % n;
}

typedef struct Tree Tree;
struct Tree {
    char op; // + * / % m (ModularIndexing) < > (Min, Max) i (Identity) p (square), v, n
    int n; // number or variable
    Tree *a, *b, *c;
};

static Tree *tree_new(Arena *a, int depth) {
    Tree *t = ARENA_NEW(a, Tree);
    if (!depth || !pick(6)) {
        t->op = pick(3) ? 'v' : 'n';
        t->n = t->op == 'v' ? pick(VARS) : pick(14) - 4;
        return t;
    }
    t->op = "++++***//%m<>ip"[pick(15)];
    t->a = tree_new(a, depth - 1);
    t->b = tree_new(a, t->op == '/' || t->op == '%' || t->op == 'm' ? pick(2) : depth - 1);
    t->c = tree_new(a, 0);
    return t;
}

// Python's values; false: division by zero or a number beyond 31 bits.
static bool floordiv(int64_t a, int64_t b, int64_t *v) {
    if (!b)
        return false;
    int64_t q = 0;
    while ((q + 1) * b * (b > 0 ? 1 : -1) <= a * (b > 0 ? 1 : -1) && b > 0)
        q++;
    while (b > 0 && q * b > a)
        q--;
    while (b < 0 && q * b < a)
        q--;
    while (b < 0 && (q + 1) * b >= a)
        q++;
    *v = q;
    return true;
}

static bool tree_eval(const Tree *t, const int64_t vars[], int64_t *v) {
    int64_t a = 0, b = 0, c = 0;
    if (t->op == 'v' || t->op == 'n') {
        *v = t->op == 'v' ? vars[t->n] : t->n;
        return true;
    }
    if (!tree_eval(t->a, vars, &a) || (!strchr("ip", t->op) && !tree_eval(t->b, vars, &b)) ||
        (t->op == 'm' && !tree_eval(t->c, vars, &c)))
        return false;
    int64_t q;
    switch (t->op) {
    case '+':
        *v = a + b;
        break;
    case '*':
        *v = a * b;
        break;
    case '/':
        return floordiv(a, b, v);
    case '%':
        if (!floordiv(a, b, &q))
            return false;
        *v = a - q * b;
        break;
    case 'm':
        if (!floordiv(a, b, &a) || !floordiv(a, c, &q))
            return false;
        *v = a - q * c;
        break;
    case '<':
        *v = a < b ? a : b;
        break;
    case '>':
        *v = a > b ? a : b;
        break;
    case 'p':
        *v = a * a;
        break;
    default:
        *v = a;
    }
    return *v > -100000 && *v < 100000;
}

static const Expr *tree_build(Sym *s, const Tree *t) {
    const Expr *a, *b;
    switch (t->op) {
    case 'v':
        return sym_symbol(s, var_names[t->n]);
    case 'n':
        return sym_int(s, t->n);
    case 'i':
        return sym_identity(s, tree_build(s, t->a));
    case 'p':
        return sym_pow(s, tree_build(s, t->a), 2);
    default:
        break;
    }
    a = tree_build(s, t->a);
    b = tree_build(s, t->b);
    switch (t->op) {
    case '+':
        return sym_add(s, a, b);
    case '*':
        return sym_mul(s, a, b);
    case '/':
        return sym_floordiv(s, a, b);
    case '%':
        return sym_mod(s, a, b);
    case '<':
        return sym_min(s, a, b);
    case '>':
        return sym_max(s, a, b);
    default:
        return sym_modular(s, a, b, tree_build(s, t->c));
    }
}

static bool lookup(void *ctx, const Expr *symbol, int64_t *v) {
    const int64_t *vars = ctx;
    for (int i = 0; i < VARS; i++) {
        if (!strcmp(expr_name(symbol), var_names[i])) {
            *v = vars[i];
            return true;
        }
    }
    return false;
}

// Values that the names' assumptions allow.
static void pick_values(int64_t vars[VARS]) {
    vars[0] = pick(12);
    vars[1] = pick(30);
    vars[2] = 2 + pick(10);
    vars[3] = pick(21) - 10;
}

static void same_value(const Tree *t, const Expr *e, const char *what) {
    for (int i = 0; i < 24; i++) {
        int64_t vars[VARS], want, got;
        pick_values(vars);
        if (!tree_eval(t, vars, &want))
            continue;
        // Simplifying may define what divided by zero, never the other way round.
        ck_assert_msg(sym_eval(e, lookup, vars, &got), "%s: no value", what);
        ck_assert_msg(got == want, "%s: p0=%d p1=%d s7=%d u0=%d gives %d, not %d", what,
                      (int)vars[0], (int)vars[1], (int)vars[2], (int)vars[3], (int)got, (int)want);
    }
}

START_TEST(test_simplification_keeps_values) {
    seed = 1;
    for (int round = 0; round < 6000; round++) {
        Arena a = {0};
        Sym *s = sym_new(&a);
        Tree *t = tree_new(&a, 1 + pick(4));
        const Expr *e = tree_build(s, t);
        if (!expr_has_kind(e, SYM_overflow)) {
            same_value(t, e, sym_str(&a, e));
            same_value(t, sym_expand(s, e), "expanded");
            same_value(t, sym_strip_identity(s, e), "without Identity");
        }
        arena_free(&a);
    }
}
END_TEST

START_TEST(test_printed_text_reads_back_as_the_same) {
    seed = 2;
    Arena a = {0};
    Sym *s = sym_new(&a);
    Diag d = {.arena = &a};
    for (int round = 0; round < 4000; round++) {
        const Expr *e = tree_build(s, tree_new(&a, 1 + pick(4)));
        if (expr_has_kind(e, SYM_overflow))
            continue;
        const char *text = sym_str(&a, e);
        Buf b = {.arena = &a};
        sym_print_srepr(&b, e);
        ck_assert_msg(sym_parse_srepr(s, buf_str(&b), (Place){0}, &d) == e, "%s", buf_str(&b));
        // Identity around what prints its own parentheses cannot be told from it.
        const Expr *again = sym_parse(s, text, (Place){0}, &d);
        ck_assert_msg(again != NULL, "%s: %s", text, diag_first(&d));
        ck_assert_str_eq(sym_str(&a, again), text);
        ck_assert_msg(again == e || expr_has_kind(e, SYM_identity), "%s", text);
    }
    arena_free(&a);
}
END_TEST

START_TEST(test_structure) {
    Arena a = {0};
    Sym *s = sym_new(&a);
    const Expr *x = sym_symbol(s, "p0"), *y = sym_symbol(s, "s77"), *two = sym_int(s, 2);
    ck_assert_ptr_eq(sym_symbol(s, "p0"), x);
    ck_assert_ptr_eq(sym_add(s, x, y), sym_add(s, y, x));
    ck_assert_ptr_eq(sym_sub(s, sym_add(s, x, y), y), x);
    ck_assert_ptr_eq(sym_mul(s, two, sym_add(s, x, y)),
                     sym_add(s, sym_mul(s, two, x), sym_mul(s, y, two)));
    ck_assert_ptr_eq(sym_mul(s, x, x), sym_pow(s, x, 2));
    ck_assert_ptr_eq(sym_floordiv(s, sym_mul_int(s, x, 6), sym_int(s, 4)),
                     sym_floordiv(s, sym_mul_int(s, x, 3), two));
    ck_assert_ptr_eq(sym_floordiv(s, sym_mul(s, x, y), y), x);
    ck_assert_ptr_eq(sym_ceildiv(s, x, two), sym_floordiv(s, sym_add_int(s, x, 1), two));
    ck_assert(expr_is(sym_max(s, sym_int(s, 1), sym_int(s, 5)), 5));
    ck_assert_ptr_eq(sym_max(s, y, sym_int(s, 1)), y);
    ck_assert(expr_true(sym_cmp(s, SYM_gt, y, sym_int(s, 0))));
    ck_assert_int_eq(expr_kind(sym_cmp(s, SYM_ge, y, sym_int(s, 2))), SYM_ge);
    ck_assert_ptr_eq(sym_not(s, sym_cmp(s, SYM_lt, x, y)), sym_cmp(s, SYM_ge, x, y));
    const Expr *e = sym_add(s, sym_mul(s, x, y), sym_floordiv(s, x, two)), **symbols;
    ck_assert(expr_has(e, x) && expr_has(e, sym_floordiv(s, x, two)) &&
              !expr_has(e, sym_symbol(s, "q")));
    ck_assert_int_eq(expr_symbols(&a, e, &symbols), 2);
    ck_assert_str_eq(expr_name(symbols[0]), "p0");
    ck_assert_uint_eq(expr_size(e), 1 + 3 + 3);
    ck_assert_int_eq(expr_int_or(x, -7), -7);
    arena_free(&a);
}
END_TEST

START_TEST(test_substitution_is_simultaneous) {
    Arena a = {0};
    Sym *s = sym_new(&a);
    const Expr *x = sym_symbol(s, "x"), *y = sym_symbol(s, "y");
    const Expr *e = sym_add(s, sym_mul_int(s, x, 3), y);
    const Expr *from[] = {x, y}, *to[] = {y, x};
    ck_assert_ptr_eq(sym_subst(s, e, from, to, 2), sym_add(s, sym_mul_int(s, y, 3), x));
    const Expr *part = sym_floordiv(s, x, sym_int(s, 4));
    const Expr *sum = sym_add(s, part, x);
    ck_assert_ptr_eq(sym_subst(s, sum, &part, &y, 1), sym_add(s, x, y));
    ck_assert_ptr_eq(sym_expand(s, sym_mul(s, x, sym_add_int(s, y, 2))),
                     sym_add(s, sym_mul(s, x, y), sym_mul_int(s, x, 2)));
    ck_assert_ptr_eq(sym_expand(s, sym_pow(s, sym_add(s, x, y), 2)),
                     sym_add(s, sym_add(s, sym_pow(s, x, 2), sym_pow(s, y, 2)),
                             sym_mul_int(s, sym_mul(s, x, y), 2)));
    const Expr *sum2 = sym_add_int(s, y, 1),
               *product = sym_expand(s, sym_mul(s, sum2, sym_add(s, x, y)));
    ck_assert_ptr_eq(sym_exact_div(s, product, sum2), sym_add(s, x, y));
    ck_assert_ptr_null(sym_exact_div(s, sym_add_int(s, product, 1), sum2));
    ck_assert(expr_is(sym_gcd(s, sym_mul_int(s, x, 12), sym_int(s, 18)), 6));
    arena_free(&a);
}
END_TEST

static bool knows_y(void *ctx, const Expr *symbol, int64_t *v) {
    *v = 3;
    return symbol == ctx;
}

START_TEST(test_sizes_tell_their_symbols) {
    Arena a = {0};
    Sym *s = sym_new(&a);
    const Expr *x = sym_symbol(s, "x"), *y = sym_symbol(s, "y");
    const struct {
        const Expr *size;
        int64_t v, want; // -1: it has no such size
    } cases[] = {
        {x, 12, 12},
        {sym_mul_int(s, x, 2), 12, 6},
        {sym_mul_int(s, x, 2), 13, -1},
        {sym_add_int(s, sym_pow(s, x, 2), 1), 10, 3},
        {sym_add_int(s, sym_pow(s, x, 2), 1), 11, -1},
        {sym_mul(s, x, sym_add_int(s, y, 1)), 400, 100},
        {sym_floordiv(s, sym_add_int(s, x, -1), sym_int(s, 1)), 0, 1},
        {sym_mul_int(s, x, 7), 0, 0},
        {x, INT64_C(1) << 39, INT64_C(1) << 39},
    };
    for (int i = 0; i < COUNT(cases); i++) {
        int64_t got;
        ck_assert_ptr_eq(sym_one_unknown(cases[i].size, knows_y, (void *)y), x);
        bool ok = sym_solve(cases[i].size, x, cases[i].v, knows_y, (void *)y, &got);
        ck_assert_int_eq(ok, cases[i].want >= 0);
        ck_assert(!ok || got == cases[i].want);
    }
    ck_assert_ptr_null(sym_one_unknown(y, knows_y, (void *)y));
    ck_assert_ptr_null(sym_one_unknown(sym_add(s, x, y), knows_y, NULL));
    sym_learn_hint(s, sym_mul(s, x, y), 12); // two unknown
    int64_t v;
    ck_assert(!sym_hint(s, x, &v));
    sym_learn_hint(s, sym_mul_int(s, y, 3), 9);
    sym_learn_hint(s, sym_mul(s, x, y), 12);
    ck_assert(sym_hint(s, x, &v) && v == 4);
    arena_free(&a);
}
END_TEST

START_TEST(test_overflow_poisons) {
    Arena a = {0};
    Sym *s = sym_new(&a);
    const Expr *big = sym_int(s, INT64_MAX), *x = sym_symbol(s, "p0");
    int64_t v;
    const Expr *bad[] = {
        sym_add(s, big, sym_int(s, 1)),
        sym_mul(s, big, sym_int(s, 2)),
        sym_mul(s, sym_mul(s, big, x), sym_int(s, 2)),
        sym_add(s, sym_mul(s, big, x), x),
        sym_neg(s, sym_int(s, INT64_MIN)),
        sym_floordiv(s, sym_int(s, INT64_MIN), sym_int(s, -1)),
        sym_pow(s, sym_int(s, 10), 19),
        sym_floordiv(s, x, sym_int(s, 0)),
        sym_mod(s, x, sym_int(s, 0)),
        sym_modular(s, x, sym_int(s, 1), sym_int(s, 0)),
    };
    for (int i = 0; i < (int)(sizeof bad / sizeof *bad); i++) {
        ck_assert_msg(expr_kind(bad[i]) == SYM_overflow, "case %d", i);
        ck_assert(!sym_eval(bad[i], NULL, NULL, &v));
        ck_assert_int_eq(expr_kind(sym_add(s, bad[i], x)), SYM_overflow);
        ck_assert_int_eq(expr_kind(sym_min(s, x, bad[i])), SYM_overflow);
    }
    int64_t vars[VARS] = {INT64_MAX, 2, 2, 0};
    ck_assert(!sym_eval(sym_mul_int(s, x, 2), lookup, vars, &v));
    ck_assert(!sym_eval(sym_symbol(s, "unknown"), lookup, vars, &v));
    ck_assert(sym_eval(sym_int(s, INT64_MIN), NULL, NULL, &v) && v == INT64_MIN);
    ck_assert_str_eq(sym_str(&a, sym_mul(s, sym_int(s, INT64_MIN), x)), "-9223372036854775808*p0");
    arena_free(&a);
}
END_TEST

START_TEST(test_wide_sums_and_products) {
    Arena a = {0};
    Sym *s = sym_new(&a);
    enum { WIDE = 5000 };
    const Expr **terms = ARENA_ARRAY(&a, WIDE * 2, const Expr *);
    for (int i = 0; i < WIDE * 2; i++) {
        char name[16];
        snprintf(name, sizeof name, "x%d", i % WIDE);
        terms[i] = sym_symbol(s, name);
    }
    const Expr *sum = sym_sum(s, terms, WIDE * 2), *half = sym_sum(s, terms, WIDE);
    ck_assert_int_eq(expr_n_args(sum), WIDE);
    ck_assert_ptr_eq(sum, sym_mul_int(s, half, 2));
    ck_assert_ptr_eq(sym_product(s, terms, WIDE * 2), sym_pow(s, sym_product(s, terms, WIDE), 2));
    ck_assert(expr_is(sym_sub(s, sum, sym_mul_int(s, half, 2)), 0));
    arena_free(&a);
}
END_TEST

Suite *suite_sym_expr(void) {
    const TTest *tests[] = {test_simplification_keeps_values,
                            test_printed_text_reads_back_as_the_same,
                            test_structure,
                            test_substitution_is_simultaneous,
                            test_sizes_tell_their_symbols,
                            test_overflow_poisons,
                            test_wide_sums_and_products};
    return unit_suite("sym_expr", tests, COUNT(tests));
}
