// base_map.c: maps against a slow list of pairs, and the arena and vectors below them.
#include "tests/unit/unit.h"

#include "core/base/base.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static Arena arena;

START_TEST(keeps_the_order_of_insertion) {
    static const char *const words[] = {"view", "add", "mm", "relu", "add", "view", "zeros"};
    Map m = {.arena = &arena};
    for (int i = 0; i < COUNT(words); i++)
        map_at(&m, words[i])->i++;
    ck_assert_int_eq(m.live, 5);
    ck_assert_int_eq(map_get_int(&m, "add", 0), 2);
    ck_assert_int_eq(map_get_int(&m, "sub", -7), -7);
    static const char *const order[] = {"view", "add", "mm", "relu", "zeros"};
    int n = 0;
    for (MapEntry *e = map_first(&m); e; e = map_next(&m, e))
        ck_assert_str_eq(e->key, order[n++]);
    ck_assert_int_eq(n, 5);
}
END_TEST

START_TEST(an_empty_map_answers) {
    Map m = {0};
    ck_assert_ptr_null(map_find(&m, "x"));
    ck_assert_ptr_null(map_find_id(&m, 0));
    ck_assert_ptr_null(map_get(&m, "x"));
    ck_assert_ptr_null(map_first(&m));
    map_remove(&m, "x");
    ck_assert_int_eq(m.live, 0);
}
END_TEST

START_TEST(compares_keys_by_content) {
    Map m = {.arena = &arena};
    char a[] = "buf0", b[] = "buf0";
    map_put(&m, a, a);
    ck_assert_ptr_eq(map_get(&m, b), a);
    // A string key and the integer that is its hash are different keys.
    ck_assert_ptr_null(map_get_id(&m, hash_text("buf0")));
    map_put_id(&m, hash_text("buf0"), b);
    ck_assert_ptr_eq(map_get(&m, "buf0"), a);
    ck_assert_int_eq(m.live, 2);
}
END_TEST

START_TEST(removed_and_put_again_comes_last) {
    Map m = {.arena = &arena};
    map_put_int(&m, "a", 1);
    map_put_int(&m, "b", 2);
    map_remove(&m, "a");
    map_remove(&m, "a");
    ck_assert_ptr_null(map_find(&m, "a"));
    ck_assert_int_eq(m.live, 1);
    ck_assert_int_eq(map_at(&m, "a")->i, 0);
    MapEntry *e = map_first(&m);
    ck_assert_str_eq(e->key, "b");
    e = map_next(&m, e);
    ck_assert_str_eq(e->key, "a");
    ck_assert_ptr_null(map_next(&m, e));
}
END_TEST

// Puts and removals at random, checked against an array indexed by the key.
START_TEST(agrees_with_a_slow_map) {
    enum { KEYS = 300 };
    static int64_t want[KEYS];
    static bool there[KEYS];
    Map m = {.arena = &arena};
    uint64_t seed = 1;
    int live = 0;
    for (int step = 0; step < 60000; step++) {
        seed = hash_mix(seed, (uint64_t)step);
        int k = (int)(seed % KEYS);
        uint64_t id = (uint64_t)k << 40;    // keys that differ in high bits only
        if (seed >> 60 < 9) {
            map_at_id(&m, id)->i = step;
            live += !there[k];
            want[k] = step;
            there[k] = true;
        } else {
            map_remove_id(&m, id);
            live -= there[k];
            there[k] = false;
        }
        ck_assert_int_eq(m.live, live);
    }
    for (int k = 0; k < KEYS; k++) {
        MapEntry *e = map_find_id(&m, (uint64_t)k << 40);
        ck_assert_int_eq(e != NULL, there[k]);
        ck_assert(!e || e->i == want[k]);
    }
    int walked = 0;
    for (MapEntry *e = map_first(&m); e; e = map_next(&m, e))
        walked++;
    ck_assert_int_eq(walked, live);
    ck_assert_int_le(m.n, 4 * KEYS);    // removed entries do not pile up
}
END_TEST

START_TEST(hashes_are_the_same_everywhere) {
    // FNV-1a of the empty text is its offset basis; the mix of it is fixed by the code.
    ck_assert_uint_eq(hash_text("abc"), hash_bytes("abcd", 3));
    ck_assert_uint_ne(hash_text("abc"), hash_text("acb"));
    ck_assert_uint_ne(hash_bytes("a\0b", 3), hash_bytes("a", 1));
    ck_assert_uint_ne(hash_bytes("", 0), hash_bytes("\0", 1));
}
END_TEST

START_TEST(arena_rewinds) {
    Arena a = {0};
    char *first = arena_strdup(&a, "kept");
    ArenaMark mark = arena_mark(&a);
    size_t bytes = a.bytes;
    for (int i = 0; i < 1000; i++) {
        unsigned char *p = arena_alloc(&a, (size_t)i * 7);
        ck_assert_uint_eq((uintptr_t)p % 16, 0);
        for (int k = 0; k < i * 7; k++)
            ck_assert_uint_eq(p[k], 0);
        memset(p, 0xee, (size_t)i * 7);
    }
    arena_rewind(&a, mark);
    ck_assert_uint_eq(a.bytes, bytes);
    ck_assert_str_eq(first, "kept");
    // What was written and rewound is zero again.
    unsigned char *p = arena_alloc(&a, 2000);
    for (int k = 0; k < 2000; k++)
        ck_assert_uint_eq(p[k], 0);
    arena_free(&a);
    ck_assert_ptr_null(a.head);
    ck_assert_uint_eq(a.bytes, 0);
}
END_TEST

START_TEST(arena_grows_in_place_or_moves) {
    Arena a = {0};
    int *v = ARENA_ARRAY(&a, 3, int);
    for (int n = 3, k = 0; n < 100000; n = n * 2 + 1, k++) {
        for (int i = n / 2; i < n; i++)
            v[i] = i;
        int *old = v;
        if (k % 3 == 1)
            arena_alloc(&a, 1);     // no longer the newest: it must move
        v = arena_grow(&a, old, (size_t)n, (size_t)n * 2 + 1, sizeof *v);
        ck_assert(k % 3 != 1 || v != old);
        for (int i = 1; i < n; i++)
            ck_assert_int_eq(v[i], i);
        for (int i = n; i < n * 2 + 1; i++)
            ck_assert_int_eq(v[i], 0);
    }
    arena_free(&a);
}
END_TEST

START_TEST(arena_checks_products) {
    Arena a = {0};
    ck_assert_ptr_nonnull(freopen("/dev/null", "w", stderr));
    arena_array(&a, SIZE_MAX / 4, 8);
}
END_TEST

START_TEST(vectors) {
    VEC(int) v = {0};
    for (int i = 0; i < 1000; i++)
        vec_push(&arena, &v, i * i);
    ck_assert_int_eq(v.n, 1000);
    ck_assert_int_eq(v.at[31], 961);
    ck_assert_int_eq(vec_pop(&v), 998001);
    vec_remove(&v, 0);
    ck_assert_int_eq(v.at[0], 1);
    ck_assert_int_eq(vec_last(&v), 998 * 998);
    ck_assert_int_eq(v.n, 998);
}
END_TEST

Suite *suite_base_map(void) {
    const TTest *const tests[] = {
        keeps_the_order_of_insertion, an_empty_map_answers,   compares_keys_by_content,
        removed_and_put_again_comes_last, agrees_with_a_slow_map, hashes_are_the_same_everywhere,
        arena_rewinds,                arena_grows_in_place_or_moves, vectors,
    };
    Suite *s = unit_suite("base_map", tests, COUNT(tests));
    // Ends in die(), which needs a process of its own.
    const char *fork = getenv("CK_FORK");
    if (!fork || strcmp(fork, "no") != 0) {
        TCase *c = tcase_create("base_map_dies");
        tcase_add_test_raise_signal(c, arena_checks_products, SIGABRT);
        suite_add_tcase(s, c);
    }
    return s;
}
