// app_layout.c: panes cover their area exactly, whatever is split, closed, swapped or resized.
#include "app/layout.h"
#include "tests/unit/unit.h"

#include <string.h>

static const Rect area = {1, 0, 43, 160};

// Every cell of the area is in exactly one pane or on a border; borders are one column wide.
static void check_cover(const Windows *l, Rect r) {
    Rect at[PANES];
    layout_place(l, r, at);
    int covered = 0;
    for (int p = 0; p < PANES; p++) {
        ck_assert_int_eq(at[p].rows > 0, layout_has(l, p) && (!l->zoom || p == l->focus));
        covered += at[p].rows * at[p].cols;
        if (at[p].rows) {
            ck_assert_int_ge(at[p].row, r.row);
            ck_assert_int_le(at[p].row + at[p].rows, r.row + r.rows);
            ck_assert_int_ge(at[p].col, r.col);
            ck_assert_int_le(at[p].col + at[p].cols, r.col + r.cols);
        }
    }
    int borders = l->zoom ? 0 : (l->n - 1) * r.rows;
    ck_assert_int_eq(covered + borders, r.rows * r.cols);
    for (int row = r.row; row < r.row + r.rows; row++)
        for (int col = r.col; col < r.col + r.cols; col++) {
            int in = 0;
            for (int p = 0; p < PANES; p++)
                in += row >= at[p].row && row < at[p].row + at[p].rows && col >= at[p].col &&
                      col < at[p].col + at[p].cols;
            ck_assert_int_le(in, 1);
        }
}

START_TEST(auto_follows_the_width) {
    ck_assert_int_eq(layout_auto(71, 24), 1);
    ck_assert_int_eq(layout_auto(80, 24), 2);
    ck_assert_int_eq(layout_auto(119, 40), 2);
    ck_assert_int_eq(layout_auto(120, 40), 3);
    ck_assert_int_eq(layout_auto(150, 40), 4);
    ck_assert_int_eq(layout_auto(200, 7), 1);
}
END_TEST

START_TEST(columns_cover_any_width) {
    for (int n = 1; n <= PANES; n++)
        for (int cols = 70; cols < 210; cols++) {
            Windows l = {0};
            layout_columns(&l, n);
            check_cover(&l, (Rect){1, 0, 10, cols});
        }
}
END_TEST

// Stacked only where columns would be too narrow, and never so flat that nothing is seen.
START_TEST(tiles_are_wide_enough_to_be_read) {
    for (int n = 1; n <= PANES; n++)
        for (int cols = 70; cols < 310; cols += 7 * UNIT_EVERY(3))
            for (int rows = 10; rows < 60; rows += 9) {
                Windows l = {0};
                Rect at[PANES], r = {1, 0, rows, cols};
                int deep = 1;
                layout_tiles(&l, n, cols, rows);
                ck_assert_int_eq(layout_panes(&l), n);
                check_cover(&l, r);
                layout_place(&l, r, at);
                for (int c = 0; c < l.n; c++)
                    deep = l.col[c].n > deep ? l.col[c].n : deep;
                ck_assert(l.n == n || cols / n < 38);
                int fewer = l.n > 1 ? (n + l.n - 2) / (l.n - 1) : n; // in a column, of one less
                ck_assert(l.n == 1 || at[0].cols >= 37 || rows / fewer < 5);
                for (int p = 0; p < n; p++)
                    ck_assert(deep == 1 || at[p].rows >= 5);
            }
}
END_TEST

START_TEST(split_until_full_then_close_all) {
    Windows l = {0};
    layout_columns(&l, 1);
    for (int i = 1; i < PANES; i++) {
        ck_assert_int_eq(layout_split(&l, i % 2), i);
        ck_assert_int_eq(l.focus, i);
        check_cover(&l, area);
    }
    ck_assert_int_eq(layout_split(&l, false), -1);
    for (int i = 1; i < PANES; i++) {
        int gone = l.focus;
        ck_assert(layout_close(&l, gone));
        ck_assert(!layout_has(&l, gone));
        ck_assert(layout_has(&l, l.focus));
        check_cover(&l, area);
    }
    ck_assert(!layout_close(&l, l.focus)); // the last one stays
}
END_TEST

START_TEST(focus_goes_round_in_reading_order) {
    Windows l = {0};
    layout_columns(&l, 2);
    l.focus = 0;
    int below = layout_split(&l, true); // column 0: 0, 2; column 1: 1
    ck_assert_int_eq(layout_next(&l, 0, 1), below);
    ck_assert_int_eq(layout_next(&l, below, 1), 1);
    ck_assert_int_eq(layout_next(&l, 1, 1), 0);
    ck_assert_int_eq(layout_next(&l, 0, -1), 1);
    layout_swap(&l, 0, 1);
    ck_assert_int_eq(layout_next(&l, 1, 1), below);
    check_cover(&l, area);
}
END_TEST

START_TEST(resizing_moves_one_border_by_that_many_cells) {
    Windows l = {0};
    Rect before[PANES], after[PANES];
    layout_columns(&l, 3);
    layout_place(&l, area, before);
    layout_grow(&l, area, 0, 5, 0);
    layout_place(&l, area, after);
    ck_assert_int_eq(after[0].cols, before[0].cols + 5);
    ck_assert_int_eq(after[1].cols, before[1].cols - 5);
    ck_assert_int_eq(after[2].cols, before[2].cols);
    layout_grow(&l, area, 0, 1000, 0); // a neighbour is never squeezed out
    layout_place(&l, area, after);
    ck_assert_int_ge(after[1].cols, 8);
    check_cover(&l, area);
    l.focus = 2;
    int below = layout_split(&l, true);
    layout_place(&l, area, before);
    layout_grow(&l, area, 2, 0, 7);
    layout_place(&l, area, after);
    ck_assert_int_eq(after[2].rows, before[2].rows + 7);
    ck_assert_int_eq(after[below].rows, before[below].rows - 7);
    check_cover(&l, area);
}
END_TEST

START_TEST(cells_find_their_pane_and_border) {
    Windows l = {0};
    Rect at[PANES];
    layout_columns(&l, 2);
    layout_place(&l, area, at);
    ck_assert_int_eq(layout_hit(at, 1, 0), 0);
    ck_assert_int_eq(layout_hit(at, 20, 159), 1);
    ck_assert_int_eq(layout_hit(at, 0, 0), -1); // the rail
    int border = at[0].col + at[0].cols;
    ck_assert_int_eq(layout_hit(at, 5, border), -1);
    ck_assert_int_eq(layout_border(&l, at, border), 0);
    ck_assert_int_eq(layout_border(&l, at, border + 1), -1);
    l.zoom = true;
    check_cover(&l, area);
}
END_TEST

Suite *suite_app_layout(void) {
    const TTest *const tests[] = {
        auto_follows_the_width,
        columns_cover_any_width, tiles_are_wide_enough_to_be_read,
        split_until_full_then_close_all,
        focus_goes_round_in_reading_order,
        resizing_moves_one_border_by_that_many_cells,
        cells_find_their_pane_and_border,
    };
    return unit_suite("app_layout", tests, (int)(sizeof tests / sizeof *tests));
}
