// views_blocks.c: what repeats is found, whatever stands before, between and behind it.
#include "tests/unit/unit.h"
#include "views/blocks.h"

enum { MOST = 12000 };

static uint64_t kind[MOST];
static int alive[MOST + 1], n;

static void one(uint64_t k, int values) {
    kind[n] = k;
    alive[n++] = values;
}

// A layer whose values are fewest at `waist`.
static void layers(int times, int ops, int waist, uint64_t base) {
    for (int i = 0; i < times * ops; i++)
        one(base + (uint64_t)(i % ops), i % ops == waist ? 1 : 3);
}

static void odd(int ops) {
    for (int i = 0; i < ops; i++)
        one(1000000 + (uint64_t)n, 2);
}

static int blocks(Arena *a, int want, BlockVec *out) {
    *out = (BlockVec){0};
    int rows = blocks_find(a, kind, alive, 0, n, want, out), at = 0;
    for (int i = 0; i < out->n; i++) { // all of it, each thing once
        ck_assert_int_eq(out->at[i].first, at);
        ck_assert_int_gt(out->at[i].n, 0);
        at += out->at[i].n;
    }
    ck_assert_int_eq(at, n);
    return rows;
}

START_TEST(layers_are_found_and_begin_at_their_waist) {
    Arena a = {0};
    BlockVec b;
    n = 0;
    odd(7);
    layers(12, 25, 4, 1);
    odd(3);
    ck_assert_int_eq(blocks(&a, 40, &b), 1);
    int at = 0;
    while (!b.at[at].from)
        at++;
    ck_assert_int_eq(b.at[at].first, 7 + 4);
    for (int i = 0; i < 11; i++) { // the twelfth is not whole from there on
        ck_assert_int_eq(b.at[at + i].from, i + 1);
        ck_assert_int_eq(b.at[at + i].n, 25);
        ck_assert_int_eq(b.at[at + i].of, 11);
    }
    arena_free(&a);
}
END_TEST

START_TEST(many_layers_are_taken_together) {
    Arena a = {0};
    BlockVec b;
    n = 0;
    layers(200, 15, 0, 1);
    ck_assert_int_eq(blocks(&a, 48, &b), 1);
    ck_assert_int_le(b.n, 50);
    ck_assert_int_eq(b.at[0].from, 1);
    ck_assert_int_eq(b.at[0].to, 4);
    ck_assert_int_eq(b.at[b.n - 1].to, 200);
    arena_free(&a);
}
END_TEST

START_TEST(rows_of_different_layers_are_told_apart) {
    Arena a = {0};
    BlockVec b;
    n = 0;
    layers(10, 30, 0, 1);
    odd(20);
    layers(10, 44, 0, 500);
    ck_assert_int_eq(blocks(&a, 40, &b), 2);
    int in_row[2] = {0};
    for (int i = 0; i < b.n; i++)
        if (b.at[i].from)
            in_row[b.at[i].row]++;
    ck_assert_int_eq(in_row[0], 10);
    ck_assert_int_eq(in_row[1], 10);
    arena_free(&a);
}
END_TEST

START_TEST(what_repeats_nothing_is_cut_at_waists) {
    Arena a = {0};
    BlockVec b;
    n = 0;
    odd(1000);
    for (int i = 0; i < n; i += 97)
        alive[i] = 1;
    ck_assert_int_eq(blocks(&a, 20, &b), 0);
    ck_assert_int_eq(b.n, 20);
    int waists = 0;
    for (int i = 1; i < b.n; i++)
        waists += alive[b.at[i].first] == 1;
    ck_assert_int_eq(waists, 5); // the others are farther off than a third of a run
    arena_free(&a);
}
END_TEST

START_TEST(small_and_odd_rows_end) {
    Arena a = {0};
    BlockVec b;
    for (int size = 0; size < 60; size++)
        for (int want = 1; want < 5; want++) {
            n = 0;
            for (int i = 0; i < size; i++)
                one((uint64_t)(i * i % 7), i % 3);
            blocks(&a, want, &b);
        }
    n = 0;
    for (int i = 0; i < MOST; i++)
        one(5, 1); // one op again and again
    blocks(&a, 48, &b);
    ck_assert_int_le(b.n, 64);
    arena_free(&a);
}
END_TEST

Suite *suite_views_blocks(void) {
    const TTest *const tests[] = {
        layers_are_found_and_begin_at_their_waist, many_layers_are_taken_together,
        rows_of_different_layers_are_told_apart,   what_repeats_nothing_is_cut_at_waists,
        small_and_odd_rows_end,
    };
    return unit_suite("views_blocks", tests, COUNT(tests));
}
