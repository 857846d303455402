// sym_range.c: bounds hold for every value, index simplification keeps every value, loops merge as
// PyTorch merges them: all by brute force over small ranges.
#include "core/sym/sym.h"
#include "tests/unit/unit.h"

#include <string.h>

static uint32_t seed;

static int pick(int n) {
    seed = seed * 1664525u + 1013904223u;
    return (int)(seed >> 8) % n;
}

typedef struct Values {
    const Expr *vars[3];
    int64_t at[3];
    int n;
} Values;

static bool lookup(void *ctx, const Expr *symbol, int64_t *v) {
    const Values *x = ctx;
    for (int i = 0; i < x->n; i++) {
        if (x->vars[i] == symbol) {
            *v = x->at[i];
            return true;
        }
    }
    return false;
}

static const Expr *random_expr(Sym *s, const Values *x, int depth) {
    if (!depth || !pick(6))
        return pick(3) ? x->vars[pick(x->n)] : sym_int(s, pick(13) - 4);
    const Expr *a = random_expr(s, x, depth - 1), *b = random_expr(s, x, depth - 1);
    const Expr *positive = sym_int(s, 1 + pick(6));
    switch (pick(10)) {
    case 0:
    case 1:
    case 2:
        return sym_add(s, a, b);
    case 3:
    case 4:
        return sym_mul(s, a, b);
    case 5:
        return sym_floordiv(s, a, pick(3) ? positive : b);
    case 6:
        return sym_mod(s, a, pick(3) ? positive : b);
    case 7:
        return sym_modular(s, a, positive, sym_int(s, 1 + pick(6)));
    case 8:
        return sym_min(s, a, b);
    default:
        return pick(2) ? sym_max(s, a, b)
                       : sym_where(s, sym_cmp(s, SYM_lt, a, b), a, sym_pow(s, b, 2));
    }
}

START_TEST(test_ranges_are_sound) {
    seed = 3;
    int tight = 0, bounded = 0;
    for (int round = 0; round < 1500; round++) {
        Arena a = {0};
        Sym *s = sym_new(&a);
        Values x = {.n = 2};
        SymRange r[2];
        for (int i = 0; i < 2; i++) {
            x.vars[i] = sym_symbol(s, i ? "u1" : "u0"); // no assumption: constructors stay general
            r[i].lo = pick(9) - 5;
            r[i].hi = r[i].lo + pick(8);
        }
        sym_set_range(s, x.vars[0], r[0].lo, r[0].hi);
        const Expr *e = random_expr(s, &x, 1 + pick(3));
        SymRange with = sym_range_with(s, e, x.vars, r, 2);
        sym_set_range(s, x.vars[1], r[1].lo, r[1].hi);
        SymRange range = sym_range(s, e);
        ck_assert(range.lo == with.lo && range.hi == with.hi);
        int64_t lo = INT64_MAX, hi = INT64_MIN, v;
        for (x.at[0] = r[0].lo; x.at[0] <= r[0].hi; x.at[0]++) {
            for (x.at[1] = r[1].lo; x.at[1] <= r[1].hi; x.at[1]++) {
                if (!sym_eval(e, lookup, &x, &v))
                    continue;
                ck_assert_msg(v >= range.lo && v <= range.hi, "%s = %d outside [%ld, %ld]",
                              sym_str(&a, e), (int)v, (long)range.lo, (long)range.hi);
                lo = v < lo ? v : lo;
                hi = v > hi ? v : hi;
            }
        }
        bounded += range.lo != SYM_NEG_INF && range.hi != SYM_POS_INF;
        tight += lo == range.lo && hi == range.hi;
        arena_free(&a);
    }
    // Not vacuous: most are bounded, many exactly.
    ck_assert_int_gt(bounded, 1200);
    ck_assert_int_gt(tight, 600);
}
END_TEST

START_TEST(test_ranges_without_bounds) {
    Arena a = {0};
    Sym *s = sym_new(&a);
    const Expr *n = sym_symbol(s, "s77"), *p = sym_symbol(s, "p0");
    SymRange r = sym_range(s, sym_mul(s, n, sym_add_int(s, p, 1)));
    ck_assert(r.lo == 2 && r.hi == SYM_POS_INF);
    r = sym_range(s, sym_neg(s, n));
    ck_assert(r.lo == SYM_NEG_INF && r.hi == -2);
    r = sym_range(s, sym_modular(s, p, sym_int(s, 4), sym_int(s, 8)));
    ck_assert(r.lo == 0 && r.hi == 7);
    r = sym_range(s, sym_mul(s, sym_int(s, INT64_MAX / 2), n));
    ck_assert(r.lo == INT64_MAX - 1 && r.hi == SYM_POS_INF);
    r = sym_range(s, sym_mul(s, sym_int(s, INT64_MAX), n)); // its lower end leaves 64 bits
    ck_assert(r.hi == SYM_POS_INF);
    r = sym_range(s, sym_cmp(s, SYM_lt, p, n));
    ck_assert(r.lo == 0 && r.hi == 1);
    arena_free(&a);
}
END_TEST

static const Expr *parsed(Sym *s, const char *text) {
    Arena *a = sym_arena(s);
    Diag d = {.arena = a};
    const Expr *e = sym_parse(s, text, (Place){0}, &d);
    ck_assert_msg(e != NULL, "%s: %s", text, diag_first(&d));
    return e;
}

START_TEST(test_index_simplification_by_example) {
    // Loop sizes of p0, p1, p2; what comes out of Inductor's rules.
    static const struct {
        const char *text;
        const char *sizes[3];
        const char *want;
    } cases[] = {
        {"ModularIndexing(p0, 1, 32) + 32*ModularIndexing(p0, 32, 4)",
         {"1000", "8", "8"},
         "ModularIndexing(p0, 1, 128)"},
        {"ModularIndexing(p0, 1, 32) + 32*(p0//32)", {"1000", "8", "8"}, "p0"},
        {"ModularIndexing(p0, 1, 32) + 32*ModularIndexing(p0, 32, 4)", {"128", "8", "8"}, "p0"},
        {"(p0//8)", {"8", "8", "8"}, "0"},
        {"((8*p0 + p1)//8)", {"9", "8", "8"}, "p0"},
        {"((8*p0 + p1)//8)", {"9", "9", "8"}, "(((8*p0 + p1)//8))"},
        {"ModularIndexing(8*p0 + p1, 1, 8)", {"9", "8", "8"}, "p1"},
        {"ModularIndexing(8*p0 + p1, 8, 9)", {"9", "8", "8"}, "p0"},
        {"48*p0 + 24*p1 + p2 + 48*((24*p1 + p2)//48)",
         {"4", "3", "24"},
         "48*p0 + 24*p1 + p2 + 48*(((24*p1 + p2)//48))"},
        {"ModularIndexing(s7*p0 + p1, 1, s7)", {"4", "s7", "8"}, "p1"},
        {"((s7*p0 + p1)//s7)", {"4", "s7", "8"}, "p0"},
        {"p0*(p1 + 3)", {"4", "8", "8"}, "p0*p1 + 3*p0"},
        {"((ModularIndexing(p0, 1, 24))//24)",
         {"48", "8", "8"},
         "(((ModularIndexing(p0, 1, 24))//24))"},
    };
    Arena a = {0};
    Sym *s = sym_new(&a);
    const Expr *vars[] = {sym_symbol(s, "p0"), sym_symbol(s, "p1"), sym_symbol(s, "p2")};
    for (int i = 0; i < (int)(sizeof cases / sizeof *cases); i++) {
        const Expr *sizes[3];
        for (int k = 0; k < 3; k++)
            sizes[k] = parsed(s, cases[i].sizes[k]);
        const Expr *e = parsed(s, cases[i].text);
        const Expr *got = sym_simplify_with_ranges(s, e, vars, sizes, 3);
        ck_assert_ptr_eq(got, sym_strip_identity(s, parsed(s, cases[i].want)));
        ck_assert_ptr_eq(sym_simplify_with_ranges(s, e, vars, sizes, 3), got); // from the cache
    }
    arena_free(&a);
}
END_TEST

static const Expr *random_index(Sym *s, const Values *x, int depth) {
    if (!depth || !pick(5))
        return pick(5) ? x->vars[pick(3)] : sym_int(s, pick(7));
    static const int factors[] = {1, 2, 3, 4, 6, 8, 12};
    const Expr *a = random_index(s, x, depth - 1), *k = sym_int(s, factors[pick(7)]);
    switch (pick(6)) {
    case 0:
        return sym_floordiv(s, a, k);
    case 1:
        return sym_modular(s, a, k, sym_int(s, factors[1 + pick(6)]));
    case 2:
        return sym_mul(s, a, k);
    default:
        return sym_add(s, sym_mul(s, random_index(s, x, depth - 1), k), a);
    }
}

START_TEST(test_index_simplification_keeps_values) {
    seed = 4;
    int changed = 0;
    for (int round = 0; round < 1500; round++) {
        Arena a = {0};
        Sym *s = sym_new(&a);
        Values x = {.vars = {sym_symbol(s, "p0"), sym_symbol(s, "p1"), sym_symbol(s, "p2")},
                    .n = 3};
        int size[3];
        const Expr *sizes[3];
        for (int i = 0; i < 3; i++)
            sizes[i] = sym_int(s, size[i] = 1 + pick(13));
        const Expr *e = random_index(s, &x, 2 + pick(3));
        const Expr *simple = sym_simplify_with_ranges(s, e, x.vars, sizes, 3);
        changed += simple != e;
        for (x.at[0] = 0; x.at[0] < size[0]; x.at[0]++) {
            for (x.at[1] = 0; x.at[1] < size[1]; x.at[1]++) {
                for (x.at[2] = 0; x.at[2] < size[2]; x.at[2]++) {
                    int64_t v, w;
                    ck_assert(sym_eval(e, lookup, &x, &v) && sym_eval(simple, lookup, &x, &w));
                    ck_assert_msg(v == w, "%s became %s", sym_str(&a, e), sym_str(&a, simple));
                }
            }
        }
        arena_free(&a);
    }
    ck_assert_int_gt(changed, 300);
}
END_TEST

START_TEST(test_strides) {
    Arena a = {0};
    Sym *s = sym_new(&a);
    const Expr *vars[] = {sym_symbol(s, "p0"), sym_symbol(s, "p1"), sym_symbol(s, "p2")}, *out[3];
    const Expr *e = parsed(s, "8*p0*s27 + p1 + 8*p2 + 5");
    sym_stride_vars(s, e, vars, 3, NULL, 0, out);
    ck_assert_str_eq(sym_str(&a, out[0]), "8*s27");
    ck_assert(expr_is(out[1], 1) && expr_is(out[2], 8));
    ck_assert(expr_is(sym_offset_of(s, e, vars, 3), 5));
    ck_assert(expr_is(sym_stride_of(s, parsed(s, "4*p1 + p0"), vars[1]), 4));
    ck_assert(expr_is(sym_stride_of(s, e, sym_symbol(s, "p9")), 0));
    // With more support variables than are asked for: p2 is zero, not free.
    sym_stride_vars(s, parsed(s, "p0*p2 + 3*p0"), vars, 1, vars, 3, out);
    ck_assert(expr_is(out[0], 3));
    arena_free(&a);
}
END_TEST

START_TEST(test_loops_merge) {
    static const struct {
        const char *sizes[3], *index[2];
        const char *left[3]; // sizes of the loops left
        int n; // and their number
        int into[3];
    } cases[] = {
        {{"4", "8", "16"}, {"128*p0 + 16*p1 + p2", NULL}, {"512"}, 1, {-1, -1, 0}},
        {{"4", "8", "16"}, {"128*p0 + 16*p1 + p2", "p2"}, {"32", "16"}, 2, {-1, 0, 1}},
        {{"4", "1", "16"}, {"16*p0 + p2", NULL}, {"64"}, 1, {-1, -1, 0}},
        {{"4", "8", "16"}, {"128*p0 + p1 + 8*p2", NULL}, {"512"}, 1, {-1, 0, -1}},
        {{"4", "8", "16"}, {"129*p0 + 16*p1 + p2", NULL}, {"4", "128"}, 2, {0, -1, 1}},
        {{"s7", "8", "16"}, {"128*p0 + 16*p1 + p2", NULL}, {"128*s7"}, 1, {-1, -1, 0}},
        {{"2", "s27", "8"},
         {"8*p0*s27 + 8*p1 + p2", "((8*p0*s27 + 8*p1 + p2)//3)"},
         {"2", "s27", "8"},
         3,
         {0, 1, 2}},
        {{"1", "1", "1"}, {"0", NULL}, {NULL}, 0, {-1, -1, -1}},
    };
    Arena a = {0};
    Sym *s = sym_new(&a);
    const Expr *vars[] = {sym_symbol(s, "p0"), sym_symbol(s, "p1"), sym_symbol(s, "p2")};
    const Expr *fresh[] = {sym_symbol(s, "c0"), sym_symbol(s, "c1"), sym_symbol(s, "c2")}, *old[3];
    for (int i = 0; i < (int)(sizeof cases / sizeof *cases); i++) {
        const Expr *sizes[3], *index[2];
        int n_index = 0;
        for (int k = 0; k < 3; k++)
            sizes[k] = parsed(s, cases[i].sizes[k]);
        for (; n_index < 2 && cases[i].index[n_index]; n_index++)
            index[n_index] = parsed(s, cases[i].index[n_index]);
        SymLoops l = sym_simplify_loops(s, &a, vars, sizes, 3, index, n_index);
        ck_assert_msg(l.n == cases[i].n, "case %d: %d loops", i, l.n);
        sym_loops_reindex(s, &l, fresh, old);
        for (int k = 0; k < 3; k++) {
            if (k < l.n)
                ck_assert_str_eq(sym_str(&a, l.sizes[k]), cases[i].left[k]);
            ck_assert_msg(l.into[k] == cases[i].into[k], "case %d, loop %d went into %d", i, k,
                          l.into[k]);
            ck_assert_ptr_eq(old[k], l.into[k] < 0 ? sym_int(s, 0) : fresh[l.into[k]]);
        }
    }
    arena_free(&a);
}
END_TEST

Suite *suite_sym_range(void) {
    const TTest *tests[] = {test_ranges_are_sound,
                            test_ranges_without_bounds,
                            test_index_simplification_by_example,
                            test_index_simplification_keeps_values,
                            test_strides,
                            test_loops_merge};
    return unit_suite("sym_range", tests, 6);
}
