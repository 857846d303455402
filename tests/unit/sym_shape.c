// sym_shape.c: names, hints and guards of the shape environment; values from PyTorch 2.11.
#include "core/base/sha256.h"
#include "core/sym/sym.h"
#include "tests/unit/unit.h"

#include <stdio.h>
#include <string.h>

static void check_digest(const char *text, size_t len, const char *want) {
    uint8_t digest[32];
    char hex[65];
    sha256(text, len, digest);
    for (int i = 0; i < 32; i++)
        snprintf(hex + 2 * i, 3, "%02x", digest[i]);
    ck_assert_str_eq(hex, want);
}

START_TEST(test_sha256) { // vectors of FIPS 180-4 and of Python's hashlib
    check_digest("", 0, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    check_digest("abc", 3, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    check_digest("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 56,
                 "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
    char a[1000];
    memset(a, 'a', sizeof a);
    check_digest(a, 64, "ffe054fe7ae0cb6dc65c3af9b61d5209f439851db43d0ba5997337df154668eb");
    check_digest(a, 1000, "41edece42d63e8d9bf515a9ba6932e1c20cbc9f5a5d134645adb5db1b9737ea3");
}
END_TEST

START_TEST(test_symbol_names) {
    Arena a = {0};
    Sym *s = sym_new(&a);
    ck_assert_str_eq(expr_name(sym_create(s, "L['x'].size()[0]", 4, SYM_DIM_dynamic, true)), "s77");
    ck_assert_str_eq(expr_name(sym_create(s, "L['x'].size()[1]", 6, SYM_DIM_dynamic, true)), "s27");
    ck_assert_str_eq(expr_name(sym_create(s, "L['y'].size()[0]", 5, SYM_DIM_dynamic, true)), "s17");
    ck_assert_str_eq(expr_name(sym_create(s, "L['a'].size()[0]", 5, SYM_DIM_dynamic, true)), "s97");
    ck_assert_str_eq(expr_name(sym_create(s, "L['n']", 9, SYM_DIM_dynamic, false)), "s86");
    // A taken number: the next one.
    ck_assert_str_eq(expr_name(sym_create(s, "L['x'].size()[0]", 4, SYM_DIM_dynamic, true)), "s78");
    ck_assert_str_eq(expr_name(sym_create_unbacked(s)), "u0");
    ck_assert_str_eq(expr_name(sym_create_unbacked(s)), "u1");
    ck_assert(expr_is(sym_create(s, "L['z'].size()[0]", 1, SYM_DIM_dynamic, true), 1));
    ck_assert(expr_is(sym_create(s, "L['z'].size()[1]", 12, SYM_DIM_static, true), 12));
    const Expr *d = sym_create(s, "L['z'].size()[2]", 33, SYM_DIM_duck, true);
    ck_assert_ptr_eq(sym_create(s, "L['w'].size()[2]", 33, SYM_DIM_duck, true), d);
    ck_assert_str_eq(sym_source(s, d), "L['z'].size()[2]");
    SymRange r = sym_range(s, d), n = sym_range(s, sym_symbol(s, "s86"));
    ck_assert(r.lo == 2 && r.hi == SYM_POS_INF);
    ck_assert(n.lo == SYM_NEG_INF && n.hi == SYM_POS_INF);
    arena_free(&a);
}
END_TEST

typedef struct Env {
    Arena a;
    Sym *s;
    const Expr *x, *y; // sizes with hints 8 and 8
} Env;

static void env_init(Env *e) {
    *e = (Env){0};
    e->s = sym_new(&e->a);
    e->x = sym_create(e->s, "L['x'].size()[0]", 8, SYM_DIM_dynamic, true); // s77
    e->y = sym_create(e->s, "L['x'].size()[1]", 8, SYM_DIM_dynamic, true); // s27
}

static const Expr *cmp(Env *e, SymKind k, const Expr *a, int64_t v) {
    return sym_cmp(e->s, k, a, sym_int(e->s, v));
}

START_TEST(test_hints) {
    Env e;
    env_init(&e);
    int64_t v;
    ck_assert(sym_hint(e.s, sym_add_int(e.s, sym_mul(e.s, e.x, e.y), 3), &v) && v == 67);
    const Expr *u = sym_create_unbacked(e.s);
    ck_assert(!sym_hint(e.s, u, &v));
    ck_assert_int_eq(sym_size_hint(e.s, u, 8192), 8192);
    sym_set_range(e.s, u, 0, 100);
    ck_assert_int_eq(sym_size_hint(e.s, u, 8192), 100);
    arena_free(&e.a);
}
END_TEST

START_TEST(test_guards_bound_symbols) {
    Env e;
    env_init(&e);
    const SymGuard *g;
    ck_assert(sym_guard(e.s, cmp(&e, SYM_ge, e.x, 2), 1, "known", NULL)); // by the range: no guard
    ck_assert_int_eq(sym_guards(e.s, &g), 0);
    ck_assert(sym_guard(e.s, cmp(&e, SYM_gt, e.x, 5), 1, "if x.shape[0] > 5", NULL));
    ck_assert_int_eq(sym_guards(e.s, &g), 1);
    ck_assert_str_eq(sym_str(&e.a, g[0].cond), "s77 > 5");
    ck_assert_str_eq(g[0].reason, "if x.shape[0] > 5");
    SymRange r = sym_range(e.s, e.x);
    ck_assert(r.lo == 6 && r.hi == SYM_POS_INF);
    // What follows needs no further guard; the opposite neither.
    ck_assert(sym_guard(e.s, cmp(&e, SYM_ge, sym_mul_int(e.s, e.x, 2), 12), 2, "", NULL));
    ck_assert(!sym_guard(e.s, cmp(&e, SYM_eq, e.x, 3), 2, "", NULL));
    ck_assert_int_eq(sym_guards(e.s, &g), 1);
    // A false condition is guarded as its negation.
    ck_assert(!sym_guard(e.s, cmp(&e, SYM_gt, e.x, 4096), 9, "need_use_acc_helper", NULL));
    ck_assert_int_eq(sym_guards(e.s, &g), 2);
    ck_assert_str_eq(sym_str(&e.a, g[1].cond), "s77 <= 4096");
    r = sym_range(e.s, sym_mul_int(e.s, e.x, -3));
    ck_assert(r.lo == -12288 && r.hi == -18);
    ck_assert(sym_statically_known_true(e.s, cmp(&e, SYM_ne, e.x, 5000)));
    // Stage 9 is rebuilt: its guard and what followed from it are gone, stage 1's stay.
    sym_drop_guards_from(e.s, 9);
    ck_assert_int_eq(sym_guards(e.s, &g), 1);
    r = sym_range(e.s, e.x);
    ck_assert(r.lo == 6 && r.hi == SYM_POS_INF);
    arena_free(&e.a);
}
END_TEST

START_TEST(test_equalities_specialise) {
    Env e;
    env_init(&e);
    const Expr *area = sym_mul(e.s, e.x, e.y);
    ck_assert(!sym_known_eq(e.s, e.x, e.y));
    ck_assert(sym_guard_eq(e.s, e.x, e.y, 3, "broadcast"));
    ck_assert(sym_known_eq(e.s, e.x, e.y));
    ck_assert(sym_known_eq(e.s, area, sym_pow(e.s, e.y, 2)));
    ck_assert_str_eq(sym_str(&e.a, sym_simplify(e.s, area)),
                     "s27**2"); // s77 = s27: the later name goes
    int64_t v;
    ck_assert(sym_guard_int(e.s, e.y, 4, "specialised", &v) && v == 8);
    ck_assert(expr_is(sym_simplify(e.s, area), 64));
    ck_assert(expr_is(sym_simplify(e.s, e.x), 8));
    const SymGuard *g;
    ck_assert_int_eq(sym_guards(e.s, &g), 2);
    ck_assert(sym_guard_int(e.s, e.x, 5, "again", &v) && v == 8);
    ck_assert_int_eq(sym_guards(e.s, &g), 2);
    ck_assert(!sym_guard_eq(e.s, e.x, sym_int(e.s, 9), 5, "hints differ"));
    sym_drop_guards_from(e.s, 4);
    ck_assert_str_eq(sym_str(&e.a, sym_simplify(e.s, area)), "s27**2");
    sym_drop_guards_from(e.s, 0);
    ck_assert_ptr_eq(sym_simplify(e.s, area), area);
    ck_assert(!sym_known_eq(e.s, e.x, e.y));
    arena_free(&e.a);
}
END_TEST

START_TEST(test_facts_from_guards) {
    Env e;
    env_init(&e);
    Sym *s = e.s;
    sym_set_hint(s, e.y, 5);
    ck_assert(!sym_known_le(s, e.y, e.x));
    ck_assert(sym_guard(s, sym_cmp(s, SYM_le, e.y, e.x), 1, "", NULL));
    ck_assert(sym_known_le(s, e.y, e.x));
    ck_assert(sym_known_lt(s, e.y, sym_add_int(s, e.x, 1)));
    ck_assert(!sym_known_lt(s, e.y, e.x));
    ck_assert(sym_known_le(s, sym_add_int(s, e.y, -3), e.x));
    ck_assert(sym_known_multiple(s, sym_mul_int(s, e.x, 12), sym_int(s, 4)));
    ck_assert(!sym_known_multiple(s, e.x, sym_int(s, 4)));
    ck_assert(sym_guard(s, sym_cmp(s, SYM_eq, sym_mod(s, e.x, sym_int(s, 4)), sym_int(s, 0)), 1, "",
                        NULL));
    ck_assert(sym_known_multiple(s, e.x, sym_int(s, 4)));
    bool unknown;
    const Expr *u = sym_create_unbacked(s);
    ck_assert(!sym_guard(s, cmp(&e, SYM_gt, u, 3), 1, "", &unknown) && unknown);
    ck_assert(
        sym_statically_known_true(s, sym_or(s, cmp(&e, SYM_gt, u, 3), cmp(&e, SYM_ge, e.x, 1))));
    ck_assert(
        !sym_statically_known_true(s, sym_and(s, cmp(&e, SYM_gt, u, 3), cmp(&e, SYM_ge, e.x, 1))));
    const Expr *both = sym_not(s, sym_or(s, cmp(&e, SYM_gt, e.x, 100), cmp(&e, SYM_lt, e.x, 4)));
    ck_assert(sym_guard(s, both, 2, "", NULL));
    SymRange r = sym_range(s, e.x);
    ck_assert(r.lo == 4 && r.hi == 100);
    arena_free(&e.a);
}
END_TEST

Suite *suite_sym_shape(void) {
    const TTest *tests[] = {test_sha256,
                            test_symbol_names,
                            test_hints,
                            test_guards_bound_symbols,
                            test_equalities_specialise,
                            test_facts_from_guards};
    return unit_suite("sym_shape", tests, 6);
}
