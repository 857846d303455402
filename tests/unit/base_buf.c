// base_buf.c: text buffers, Python's float and string reprs (expected texts are CPython's own),
// UTF-8.
#include "tests/unit/unit.h"

#include "core/base/base.h"

#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static Arena arena;

static const char *py_float(double v) {
    Buf b = {.arena = &arena};
    buf_py_float(&b, v);
    return buf_str(&b);
}

static const char *py_str(const char *text) {
    Buf b = {.arena = &arena};
    buf_py_str(&b, text);
    return buf_str(&b);
}

START_TEST(grows) {
    Buf b = {.arena = &arena};
    ck_assert_str_eq(buf_str(&b), "");
    for (int i = 0; i < 5000; i++)
        buf_printf(&b, "%d,", i);
    ck_assert_uint_eq(b.len, 10 * 2 + 90 * 3 + 900 * 4 + 4000 * 5);
    ck_assert_uint_eq(strlen(b.data), b.len);
    ck_assert(str_ends(b.data, "4998,4999,"));
    buf_truncate(&b, 4);
    ck_assert_str_eq(b.data, "0,1,");
    buf_truncate(&b, 400);
    ck_assert_uint_eq(b.len, 4);
    buf_fill(&b, '-', 3);
    buf_fill(&b, '-', -1);
    buf_add(&b, "a\0b", 3);
    ck_assert_uint_eq(b.len, 10);
    ck_assert_int_eq(memcmp(b.data, "0,1,---a\0b", 11), 0);
}
END_TEST

START_TEST(printf_of_exactly_the_room) {
    for (int n = 0; n < 200; n++) {
        Buf b = {.arena = &arena};
        buf_puts(&b, "x");
        buf_printf(&b, "%*s", n, "y");
        ck_assert_uint_eq(b.len, (size_t)(n > 1 ? n : 1) + 1);
        ck_assert_uint_eq(strlen(b.data), b.len);
    }
}
END_TEST

START_TEST(floats_as_python_prints_them) {
    static const struct {
        double v;
        const char *text;
    } cases[] = {
        {0.0, "0.0"},
        {-0.0, "-0.0"},
        {1e-05, "1e-05"},
        {0.0001, "0.0001"},
        {0.00012345, "0.00012345"},
        {0.1, "0.1"},
        {0.1 + 0.2, "0.30000000000000004"},
        {1.0 / 3, "0.3333333333333333"},
        {2.0, "2.0"},
        {-1.5, "-1.5"},
        {1e15, "1000000000000000.0"},
        {1e16, "1e+16"},
        {9007199254740993.0, "9007199254740992.0"},
        {123456789012345680.0, "1.2345678901234568e+17"},
        {1e22, "1e+22"},
        {1e100, "1e+100"},
        {1.5e300, "1.5e+300"},
        {5e-324, "5e-324"},
        {2.2250738585072014e-308, "2.2250738585072014e-308"},
        {1.7976931348623157e308, "1.7976931348623157e+308"},
        {0x1p-44, "5.684341886080802e-14"},
        {0x1p-24, "5.960464477539063e-08"},
        {0.0625, "0.0625"},
        {(double)0.044715f, "0.044714998453855515"},
        {0.7978845608028654, "0.7978845608028654"},
        {3.141592653589793, "3.141592653589793"},
        {INFINITY, "inf"},
        {-INFINITY, "-inf"},
        {NAN, "nan"},
    };
    for (int i = 0; i < COUNT(cases); i++)
        ck_assert_str_eq(py_float(cases[i].v), cases[i].text);
}
END_TEST

// Every text reads back, and no text with fewer digits does.
START_TEST(floats_are_shortest) {
    uint64_t seed = 7;
    for (int i = 0; i < 20000; i++) {
        seed = hash_mix(seed, (uint64_t)i);
        double v;
        memcpy(&v, &seed, 8);
        if (!isfinite(v))
            continue;
        const char *text = py_float(v), *end;
        ck_assert(strtod(text, NULL) == v);
        ck_assert(str_double(text, &end) == v && !*end);
        int digits = 0;
        for (const char *p = text + strspn(text, "-0."); *p && *p != 'e'; p++)
            digits += *p != '.';
        char shorter[64];
        if (digits > 2 && fabs(v) > 1e16) {
            snprintf(shorter, sizeof shorter, "%.*e", digits - 2, v);
            ck_assert_msg(strtod(shorter, NULL) != v, "%s is shorter than %s", shorter, text);
        }
        arena_free(&arena);
    }
}
END_TEST

START_TEST(reads_numbers) {
    static const struct {
        const char *text;
        double v;
        int used;
    } cases[] = {
        {"1", 1, 1},
        {"-2.5e3x", -2500, 6},
        {"1e", 1, 1},
        {"1e+", 1, 1},
        {".5", 0.5, 2},
        {"5.", 5, 2},
        {"1.2.3", 1.2, 3},
        {"+7", 7, 2},
        {"abc", 0, 0},
        {"-", 0, 0},
        {".", 0, 0},
        {"", 0, 0},
        {"nan", 0, 0},
        {"1e999", INFINITY, 5},
        {"-1e99999999999999999999", -INFINITY, 23},
        {"1e-99999999999999999999", 0, 23},
        {"0x10", 0, 1},
        {"9007199254740993", 9007199254740992.0, 16},
        {"9007199254740993.0000000000000001", 9007199254740994.0, 33},
    };
    for (int i = 0; i < COUNT(cases); i++) {
        const char *end;
        double v = str_double(cases[i].text, &end);
        ck_assert_msg(v == cases[i].v, "%s gives %g", cases[i].text, v);
        ck_assert_int_eq(end - cases[i].text, cases[i].used);
    }
    // A digit far behind the kept ones still breaks the tie between two doubles.
    Buf b = {.arena = &arena};
    buf_puts(&b, "9007199254740993.");
    buf_fill(&b, '0', 5000);
    const char *end;
    ck_assert(str_double(b.data, &end) == 9007199254740992.0);
    buf_putc(&b, '1');
    ck_assert(str_double(b.data, &end) == 9007199254740994.0);
    ck_assert(!*end);
}
END_TEST

START_TEST(no_locale_gets_in) {
    if (setlocale(LC_NUMERIC, "de_DE.UTF-8") || setlocale(LC_NUMERIC, "fr_FR.UTF-8")) {
        const char *end;
        ck_assert_str_eq(py_float(0.1), "0.1");
        ck_assert(str_double("0.25", &end) == 0.25);
        setlocale(LC_NUMERIC, "C");
    }
}
END_TEST

START_TEST(strings_as_python_prints_them) {
    ck_assert_str_eq(py_str("plain"), "'plain'");
    ck_assert_str_eq(py_str("it's"), "\"it's\"");
    ck_assert_str_eq(py_str("it's \"x\""), "'it\\'s \"x\"'");
    ck_assert_str_eq(py_str("\"x\""), "'\"x\"'");
    ck_assert_str_eq(py_str("a\\b\n\r\t\x01\x7f"), "'a\\\\b\\n\\r\\t\\x01\\x7f'");
    ck_assert_str_eq(py_str("é ü 你 😀"), "'é ü 你 😀'");
    ck_assert_str_eq(py_str("\xc2\xa0\xc2\xad"), "'\\xa0\\xad'");
    ck_assert_str_eq(py_str("\xe2\x80\x8b\xee\x80\x80"), "'\\u200b\\ue000'");
    ck_assert_str_eq(py_str("\xf3\xa0\x80\x81"), "'\\U000e0001'");
    ck_assert_str_eq(py_str("a\xff"), "'a\\udcff'");
    ck_assert_str_eq(py_str("\xef\xbf\xbd"), "'\xef\xbf\xbd'");
}
END_TEST

START_TEST(utf8_is_strict) {
    static const struct {
        const char *text;
        uint32_t code;
        int bytes;
    } cases[] = {
        {"a", 'a', 1},
        {"", 0, 0},
        {"\xc3\xa9", 0xe9, 2},
        {"\xe4\xbd\xa0", 0x4f60, 3},
        {"\xf0\x9f\x98\x80", 0x1f600, 4},
        {"\xf4\x8f\xbf\xbf", 0x10ffff, 4},
        {"\xf4\x90\x80\x80", 0xfffd, 1},    // above the last code point
        {"\xc0\x80", 0xfffd, 1},            // overlong NUL
        {"\xe0\x80\xaf", 0xfffd, 1},        // overlong slash
        {"\xf0\x80\x80\x80", 0xfffd, 1},
        {"\xed\xa0\x80", 0xfffd, 1},        // surrogate
        {"\xe4\xbd", 0xfffd, 1},            // ends early
        {"\xe4", 0xfffd, 1},
        {"\x80", 0xfffd, 1},
        {"\xff", 0xfffd, 1},
        {"\xf8\x88\x80\x80\x80", 0xfffd, 1},
    };
    for (int i = 0; i < COUNT(cases); i++) {
        const char *p = cases[i].text;
        ck_assert_uint_eq(utf8_next(&p), cases[i].code);
        ck_assert_int_eq(p - cases[i].text, cases[i].bytes);
    }
}
END_TEST

START_TEST(utf8_round_trip) {
    for (uint32_t code = 1; code < 0x110000; code += code < 0x3000 ? 1 : 97) {
        if (code >= 0xd800 && code < 0xe000)
            continue;
        Buf b = {.arena = &arena};
        buf_utf8(&b, code);
        const char *p = b.data;
        ck_assert_uint_eq(utf8_next(&p), code);
        ck_assert_ptr_eq(p, b.data + b.len);
        arena_free(&arena);
    }
}
END_TEST

START_TEST(columns) {
    ck_assert_int_eq(utf8_columns("abc"), 3);
    ck_assert_int_eq(utf8_columns("你好"), 4);
    ck_assert_int_eq(utf8_columns("e\xcc\x81"), 1);
    ck_assert_int_eq(utf8_columns("😀"), 2);
    ck_assert_int_eq(utf8_columns("│─▶"), 3);
    ck_assert_int_eq(utf8_columns("a\x1b[1m"), 4);
    ck_assert_int_eq(utf8_width(0x200b), 0);
    ck_assert_int_eq(utf8_width(0xfeff), 0);
    ck_assert_int_eq(utf8_width(0xff21), 2);
    ck_assert_int_eq(utf8_width(0xac00), 2);
    ck_assert_int_eq(utf8_width(0x7f), 0);
}
END_TEST

START_TEST(small_helpers) {
    static const char *const names[] = {"eager", "aot_eager", "full"};
    ck_assert(str_starts("aten.add", "aten."));
    ck_assert(!str_starts("ate", "aten."));
    ck_assert(str_ends("x.pt2", ".pt2"));
    ck_assert(!str_ends("2", ".pt2"));
    ck_assert_int_eq(str_index("full", names, 3), 2);
    ck_assert_int_eq(str_index("ful", names, 3), -1);
    ck_assert_int_eq(str_distance("kitten", "sitting"), 3);
    ck_assert_int_eq(str_distance("dump", "dupm"), 1);
    ck_assert_int_eq(str_distance("", "abc"), 3);
    ck_assert_int_eq(str_distance("abc", "abc"), 0);
    char longer[200];
    memset(longer, 'a', sizeof longer - 1);
    longer[sizeof longer - 1] = 0;
    ck_assert_int_eq(str_distance(longer, longer), 0);
    ck_assert_int_gt(str_distance(longer, "a"), 10);
    longer[63] = 0;
    ck_assert_int_eq(str_distance(longer, ""), 63);
}
END_TEST

Suite *suite_base_buf(void) {
    const TTest *const tests[] = {
        grows,          printf_of_exactly_the_room,   floats_as_python_prints_them,
        floats_are_shortest, reads_numbers,           no_locale_gets_in,
        strings_as_python_prints_them, utf8_is_strict, utf8_round_trip,
        columns,        small_helpers,
    };
    return unit_suite("base_buf", tests, COUNT(tests));
}
