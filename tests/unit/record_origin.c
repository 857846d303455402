// record_origin.c: links both ways, and chains against an independent max-min matrix product.
#include "core/record/origin.h"
#include "tests/unit/unit.h"

#include <string.h>

START_TEST(test_links_keep_the_strongest) {
    Arena a = {0};
    Origins *o = origins_new(&a);
    origins_add(o, 3, 7, LINK_kin);
    origins_add(o, 3, 2, LINK_part);
    origins_add(o, 3, 7, LINK_same);
    origins_add(o, 3, 7, LINK_part);
    int n;
    const Link *l = origins_from(o, 3, &n);
    ck_assert_int_eq(n, 2);
    ck_assert_int_eq(l[0].item, 2);
    ck_assert_int_eq(l[0].strength, LINK_part);
    ck_assert_int_eq(l[1].item, 7);
    ck_assert_int_eq(l[1].strength, LINK_same);
    ck_assert_ptr_null(origins_from(o, 4, &n));
    ck_assert_int_eq(n, 0);
    ck_assert_int_eq(origins_items(o), 4);
    ck_assert_int_eq(origins_parents(o), 8);
    l = origins_to(o, 7, &n);
    ck_assert_int_eq(n, 1);
    ck_assert_int_eq(l[0].item, 3);
    origins_add(o, 0, 7, LINK_kin); // after the way back was built
    l = origins_to(o, 7, &n);
    ck_assert_int_eq(n, 2);
    ck_assert_int_eq(l[0].item, 0);
    arena_free(&a);
}
END_TEST

START_TEST(test_copy_is_capped) {
    Arena a = {0};
    Origins *o = origins_new(&a);
    origins_add(o, 0, 5, LINK_same);
    origins_add(o, 0, 6, LINK_kin);
    origins_copy(o, 9, 0, LINK_part);
    int n;
    const Link *l = origins_from(o, 9, &n);
    ck_assert_int_eq(n, 2);
    ck_assert_int_eq(l[0].strength, LINK_part);
    ck_assert_int_eq(l[1].strength, LINK_kin);
    arena_free(&a);
}
END_TEST

enum { N = 9 };

// strength + 1, 0: no link
static int step(int above[N][N], int below[N][N], int item, int top) {
    int best = 0;
    for (int mid = 0; mid < N; mid++) {
        int path = below[item][mid] < above[mid][top] ? below[item][mid] : above[mid][top];
        best = path > best ? path : best;
    }
    return best;
}

START_TEST(test_chains_against_a_matrix_product) {
    uint32_t seed = 12345;
    for (int round = 0; round < 50; round++) {
        Arena a = {0};
        int m[3][N][N] = {0};
        Origins *chain[3];
        for (int k = 0; k < 3; k++) {
            chain[k] = origins_new(&a);
            for (int i = 0; i < N * 2; i++) {
                int v[3];
                for (int j = 0; j < 3; j++)
                    v[j] = (int)((seed = seed * 1664525u + 1013904223u) >> 16);
                int item = v[0] % N, from = v[1] % N, strength = v[2] % 3;
                origins_add(chain[k], item, from, (LinkStrength)strength);
                if (strength + 1 > m[k][item][from])
                    m[k][item][from] = strength + 1;
            }
        }
        int two[N][N];
        for (int i = 0; i < N; i++)
            for (int j = 0; j < N; j++)
                two[i][j] = step(m[0], m[1], i, j);
        Origins *all = origins_compose(&a, chain, 3);
        for (int i = 0; i < N; i++) {
            int n, seen = 0;
            const Link *l = origins_from(all, i, &n);
            for (int j = 0; j < N; j++) {
                int want = step(two, m[2], i, j), have = 0, back = 0, n_back;
                for (int k = 0; k < n; k++)
                    if (l[k].item == j)
                        have = (int)l[k].strength + 1;
                const Link *b = origins_to(all, j, &n_back);
                for (int k = 0; k < n_back; k++)
                    if (b[k].item == i)
                        back = (int)b[k].strength + 1;
                ck_assert_int_eq(have, want);
                ck_assert_int_eq(back, want);
                seen += want > 0;
            }
            ck_assert_int_eq(n, seen);
        }
        arena_free(&a);
    }
}
END_TEST

START_TEST(test_identity_changes_nothing) {
    Arena a = {0};
    Origins *o = origins_new(&a);
    origins_add(o, 1, 4, LINK_part);
    Origins *chain[] = {origins_identity(&a, 6), o, origins_identity(&a, 3)};
    Origins *all = origins_compose(&a, chain, 3);
    int n;
    const Link *l = origins_from(all, 1, &n);
    ck_assert_int_eq(n, 1);
    ck_assert_int_eq(l[0].item, 4);
    ck_assert_int_eq(l[0].strength, LINK_part);
    ck_assert_str_eq(link_name(LINK_kin), "kin");
    arena_free(&a);
}
END_TEST

Suite *suite_record_origin(void) {
    const TTest *tests[] = {test_links_keep_the_strongest, test_copy_is_capped,
                            test_chains_against_a_matrix_product, test_identity_changes_nothing};
    return unit_suite("record_origin", tests, 4);
}
