// debug_diff.c: text differences against an independent longest-common-subsequence table.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/vec.h"
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

// What stands behind a change is told by its likeness, however names are counted; another operand
// is a difference, also of ops that are many times there.
START_TEST(a_change_in_the_middle) {
    static const struct {
        const char *a, *b;
        int removed, added;
    } cases[] = {
        {"def forward(self, x: \"f32\"):\n  g = gelu(x)\n  a = neg(g)\n  b = exp(a)\n"
         "  return (b,)\n",
         "def forward(self, x: \"f32\"):\n  m = mul(x, 2)\n  e = erf(m)\n  a = mul(m, e)\n"
         "  n = neg(a)\n  b1 = exp(n)\n  return (b1,)\n",
         2, 4},
        {"def forward(self, x: \"f32\", y: \"f32\"):\n  a = neg(x)\n  b = neg(x)\n"
         "  c = add(a, b)\n",
         "def forward(self, p: \"f32\", q: \"f32\"):\n  u = neg(p)\n  v = neg(q)\n"
         "  w = add(u, v)\n",
         2, 2},
        {"a = one()\nb = two()\nc = add(a, b)\n", "b = two()\na = one()\nc = add(a, b)\n", 1, 1},
        {"a = one()\nb = two()\nc = sub(a, b)\n", "a = one()\nb = two()\nc = sub(b, a)\n", 1, 1},
    };
    for (int i = 0; i < COUNT(cases); i++) {
        Arena a = {0};
        TextDiff d;
        text_diff(&d, &a, cases[i].a, cases[i].b, true);
        ck_assert_int_eq(d.removed, cases[i].removed);
        ck_assert_int_eq(d.added, cases[i].added);
        text_diff(&d, &a, cases[i].b, cases[i].a, true);
        ck_assert_int_eq(d.removed, cases[i].added);
        ck_assert_int_eq(d.added, cases[i].removed);
        arena_free(&a);
    }
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
    const TTest *const tests[] = {renamed_graphs_are_equal, a_change_in_the_middle,
                                  shortest_edit_script};
    return unit_suite("debug_diff", tests, COUNT(tests));
}
