// debug_diff.c: text differences against an independent longest-common-subsequence table.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/debug/diff.h"
#include "tests/unit/unit.h"

START_TEST(renamed_graphs_are_equal) {
    Arena a = {0};
    TextDiff d;
    text_diff(&d, &a,
              "def forward(self, x: \"f32[2]\", y: \"f32[2]\"):\n  t: \"f32[2]\" = x + y;  x = "
              "None\n  return (t,)\n",
              "def forward(self, p: \"f32[2]\", q: \"f32[2]\"):\n\n  # note\n  z: \"f32[2]\" = p + "
              "q\n  return (z,)\n",
              true);
    ck_assert_int_eq(d.added + d.removed, 0);
    ck_assert_int_eq(d.n, 3);
    text_diff(&d, &a, "def forward(self, x: \"f32[2]\", y: \"f32[2]\"):\n  t = x - y\n",
              "def forward(self, p: \"f32[2]\", q: \"f32[2]\"):\n  t = q - p\n", true);
    ck_assert_int_eq(d.added, 1);
    ck_assert_int_eq(d.removed, 1);
    arena_free(&a);
}
END_TEST

static int lcs(const char *x, const char *y) {
    static int t[65][65];
    int n = (int)strlen(x), m = (int)strlen(y);
    for (int i = n; i >= 0; i--)
        for (int k = m; k >= 0; k--)
            t[i][k] = i == n || k == m            ? 0
                      : x[i] == y[k]              ? 1 + t[i + 1][k + 1]
                      : t[i + 1][k] > t[i][k + 1] ? t[i + 1][k]
                                                  : t[i][k + 1];
    return t[0][0];
}

START_TEST(shortest_edit_script) {
    unsigned seed = 7;
    for (int round = 0; round < 300; round++) {
        Arena a = {0};
        char x[64] = "", y[64] = "", tx[130] = "", ty[130] = "";
        int n = rand_r(&seed) % 20, m = rand_r(&seed) % 20;
        for (int i = 0; i < n; i++)
            x[i] = (char)('a' + rand_r(&seed) % 4), sprintf(tx + 2 * i, "%c\n", x[i]);
        for (int i = 0; i < m; i++)
            y[i] = (char)('a' + rand_r(&seed) % 4), sprintf(ty + 2 * i, "%c\n", y[i]);
        TextDiff d;
        text_diff(&d, &a, tx, ty, false);
        int common = lcs(x, y), ia = 0, ib = 0;
        ck_assert_int_eq(d.removed, n - common);
        ck_assert_int_eq(d.added, m - common);
        for (int i = 0; i < d.n; i++) {
            if (d.lines[i].a >= 0)
                ck_assert_int_eq(d.lines[i].a, ia++);
            if (d.lines[i].b >= 0)
                ck_assert_int_eq(d.lines[i].b, ib++);
            if (d.lines[i].a >= 0 && d.lines[i].b >= 0)
                ck_assert_str_eq(d.a[d.lines[i].a], d.b[d.lines[i].b]);
        }
        arena_free(&a);
    }
}
END_TEST

Suite *suite_debug_diff(void) {
    const TTest *const tests[] = {renamed_graphs_are_equal, shortest_edit_script};
    return unit_suite("debug_diff", tests, 2);
}
