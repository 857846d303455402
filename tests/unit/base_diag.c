// base_diag.c: how messages are collected and printed.
#include "tests/unit/unit.h"

#include "core/base/base.h"

#include <errno.h>
#include <string.h>

static Arena arena;
static Diag diag;

static void setup(void) {
    arena_free(&arena);
    diag = (Diag){.arena = &arena};
}

static const char *printed(void) {
    Buf b = {.arena = &arena};
    diag_print_all(&b, &diag);
    return buf_str(&b);
}

START_TEST(place_line_caret_hint) {
    setup();
    char line[] = "    y = relu(x";
    Place at = {.file = "m.py", .line = 3, .col = 13, .source = line};
    diag_error(&diag, at, "'%s' is never closed, expected '%c'", "(", ')')->hint = "add ')'";
    memset(line, '#', sizeof line - 1);     // the diag keeps a copy
    ck_assert_str_eq(printed(), "m.py:3:13: '(' is never closed, expected ')'\n"
                                "      y = relu(x\n"
                                "              ^\n"
                                "hint: add ')'\n");
}
END_TEST

START_TEST(kinds_and_missing_places) {
    setup();
    diag_note(&diag, (Place){.file = "a", .line = 2}, "seen");
    diag_warning(&diag, (Place){.file = "a", .col = 9}, "odd");
    ck_assert_int_eq(diag_exit_code(&diag), 0);
    ck_assert_str_eq(diag_first(&diag), "");
    diag_fail(&diag, "no %d", 7);
    ck_assert_str_eq(printed(), "a:2: note: seen\na: warning: odd\nno 7\n");
    ck_assert_str_eq(diag_first(&diag), "no 7");
    ck_assert_int_eq(diag.errors, 1);
    ck_assert_int_eq(diag.n, 3);
}
END_TEST

START_TEST(exit_code_is_that_of_the_first_error) {
    setup();
    diag_tool(&diag, "gcc failed");
    diag_fail(&diag, "bad input");
    ck_assert_int_eq(diag_exit_code(&diag), 3);
    setup();
    diag_fail(&diag, "bad input");
    ck_assert_int_eq(diag_exit_code(&diag), 2);
    setup();
    diag_fail(&diag, "differs")->cause = CAUSE_check;
    ck_assert_int_eq(diag_exit_code(&diag), 1);
}
END_TEST

START_TEST(caret_under_wide_and_tab) {
    setup();
    diag_error(&diag, (Place){"f", 1, 9, "\t你é x"}, "here");
    //                                   1 3 2 1 bytes, so byte 9 is the end
    ck_assert_str_eq(printed(), "f:1:9: here\n   你é x\n        ^\n");
}
END_TEST

START_TEST(long_lines_are_windows) {
    setup();
    char line[3001];
    memset(line, 'a', 3000);
    line[3000] = 0;
    line[1500] = 'X';
    diag_error(&diag, (Place){"f", 1, 1501, line}, "here");
    const char *source = strchr(printed(), '\n') + 1, *caret = strchr(source, '\n') + 1;
    ck_assert_int_lt(utf8_columns(source), 300);
    const char *x = strchr(source, 'X');
    ck_assert_ptr_nonnull(x);
    // The mark of the cut takes three bytes and one column.
    ck_assert_int_eq(strchr(caret, '^') - caret, x - source - 2);
    setup();
    diag_error(&diag, (Place){"f", 1, 99999, line}, "beyond");
    ck_assert_ptr_nonnull(strstr(printed(), "^"));
    setup();
    for (int i = 0; i < 3000; i += 3)
        memcpy(line + i, "你", 3);
    for (int col = 1; col < 3000; col += 7)
        diag_error(&diag, (Place){"f", 1, col, line}, "in the middle of a character");
    ck_assert_ptr_null(strstr(printed(), "\xef\xbf\xbd"));
}
END_TEST

START_TEST(no_control_bytes_reach_the_terminal) {
    setup();
    Place at = {"\x1b[2Jf", 1, 2, "\x1b]0;title\x07 \xc2\x9b x"};
    diag_error(&diag, at, "bad '%s'", "\x1b[31m\rx")->hint = "\x1b[0m";
    for (const char *p = printed(); *p;) {
        uint32_t code = utf8_next(&p);
        ck_assert(code == '\n' || code >= 0x20);
        ck_assert(code < 0x7f || code >= 0xa0);
    }
}
END_TEST

START_TEST(many_items) {
    setup();
    for (int i = 0; i < 1000; i++)
        diag_fail(&diag, "error %d", i)->hint = "x";
    ck_assert_int_eq(diag.errors, 1000);
    ck_assert_str_eq(diag.at[999].text, "error 999");
    ck_assert_str_eq(diag.at[0].hint, "x");
}
END_TEST

START_TEST(errno_words_are_in_lower_case) {
    setup();
    ck_assert_str_eq(diag_errno(&diag, ENOENT), "no such file or directory");
    ck_assert_str_eq(diag_errno(&diag, EACCES), "permission denied");
}
END_TEST

Suite *suite_base_diag(void) {
    const TTest *const tests[] = {
        place_line_caret_hint, kinds_and_missing_places, exit_code_is_that_of_the_first_error,
        caret_under_wide_and_tab, long_lines_are_windows, no_control_bytes_reach_the_terminal,
        many_items, errno_words_are_in_lower_case,
    };
    return unit_suite("base_diag", tests, COUNT(tests));
}
