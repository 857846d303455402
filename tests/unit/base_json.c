// base_json.c: JSON as PyTorch writes it, and as an enemy would.
#include "tests/unit/unit.h"

#include "core/base/base.h"

#include <math.h>
#include <string.h>

static Arena arena;
static Diag diag;

static Json *parse_bytes(const char *text, size_t len) {
    arena_free(&arena);
    diag = (Diag){.arena = &arena};
    return json_parse(&arena, (Str){text, len}, "t.json", &diag);
}

static Json *parse(const char *text) {
    return parse_bytes(text, strlen(text));
}

START_TEST(kinds) {
    Json *j = parse(" {\"a\": [1, 2.0, \"x\", true, null, {}], \"b\": -7}\n");
    ck_assert_ptr_nonnull(j);
    ck_assert_int_eq(j->kind, JSON_object);
    ck_assert_int_eq(j->n, 2);
    Json *a = json_get(j, "a");
    static const JsonKind kinds_of_a[] = {JSON_int,  JSON_float, JSON_string,
                                          JSON_bool, JSON_null,  JSON_object};
    ck_assert_int_eq(a->n, COUNT(kinds_of_a));
    for (int i = 0; i < a->n; i++) {
        ck_assert_int_eq(json_at(a, i)->kind, kinds_of_a[i]);
        ck_assert_ptr_null(json_at(a, i)->key);
    }
    ck_assert_str_eq(a->key, "a");
    ck_assert_ptr_eq(a->next, json_get(j, "b"));
    ck_assert_int_eq(json_int(json_get(j, "b"), 0), -7);
}
END_TEST

START_TEST(asking_for_what_is_not_there) {
    Json *j = parse("{\"a\": [1], \"s\": \"x\"}");
    ck_assert_ptr_null(json_get(json_get(json_get(j, "no"), "no"), "no"));
    ck_assert_ptr_null(json_at(json_get(j, "s"), 0));
    ck_assert_ptr_null(json_at(json_get(j, "a"), 1));
    ck_assert_ptr_null(json_at(json_get(j, "a"), -1));
    ck_assert_ptr_null(json_get(json_get(j, "a"), "a"));
    ck_assert_int_eq(json_int(json_get(j, "s"), 5), 5);
    ck_assert_str_eq(json_str(json_get(j, "a"), "none"), "none");
    ck_assert(json_bool(json_get(j, "s"), true));
    ck_assert(json_float(json_get(j, "s"), 2.5) == 2.5);
    ck_assert(json_float(NULL, 2.5) == 2.5);
}
END_TEST

START_TEST(integers_are_exact) {
    static const struct {
        const char *text;
        int64_t v;
    } cases[] = {
        {"0", 0},
        {"-0", 0},
        {"999999999999999", 999999999999999},
        {"1000000000000000", 1000000000000000},
        {"9007199254740993", 9007199254740993},     // 2^53 + 1, which no double holds
        {"-9007199254740993", -9007199254740993},
        {"9223372036854775807", INT64_MAX},
        {"-9223372036854775808", INT64_MIN},
    };
    for (int i = 0; i < COUNT(cases); i++) {
        Json *j = parse(cases[i].text);
        ck_assert_ptr_nonnull(j);
        ck_assert_int_eq(j->kind, JSON_int);
        ck_assert_int_eq(j->i, cases[i].v);
    }
    ck_assert_int_eq(parse("9223372036854775808")->kind, JSON_float);
    ck_assert(json_float(parse("9223372036854775808"), 0) == 0x1p63);
    ck_assert_int_eq(parse("1.0")->kind, JSON_float);
    ck_assert_int_eq(parse("1e2")->kind, JSON_float);
    ck_assert(json_float(parse("7"), 0) == 7);
}
END_TEST

START_TEST(floats_and_their_names) {
    ck_assert(json_float(parse("0.1"), 0) == 0.1);
    ck_assert(json_float(parse("-2.5E-3"), 0) == -0.0025);
    ck_assert(json_float(parse("1e999"), 0) == INFINITY);
    ck_assert(json_float(parse("5e-324"), 0) == 5e-324);
    ck_assert(json_float(parse("\"Infinity\""), 0) == INFINITY);
    ck_assert(json_float(parse("\"-Infinity\""), 0) == -INFINITY);
    ck_assert(isnan(json_float(parse("\"NaN\""), 0)));
    ck_assert_int_eq(parse("\"NaN\"")->kind, JSON_string);
    Json *j = parse("[NaN, Infinity, -Infinity]");
    ck_assert_ptr_nonnull(j);
    ck_assert(isnan(json_float(json_at(j, 0), 0)));
    ck_assert(json_float(json_at(j, 1), 0) == INFINITY);
    ck_assert(json_float(json_at(j, 2), 0) == -INFINITY);
}
END_TEST

START_TEST(strings) {
    ck_assert_str_eq(json_str(parse("\"a\\\"b\\\\c\\/d\\n\\t\\u00e9\\ud83d\\ude00é\""), ""),
                     "a\"b\\c/d\n\té😀é");
    ck_assert_str_eq(json_str(parse("\"12345678901234567890\""), ""), "12345678901234567890");
    ck_assert_str_eq(json_str(parse("\"\\u0001x\""), ""), "\x01x");
    Json *j = parse("{\"12345678901234567\": \"v\"}");
    ck_assert_str_eq(json_str(json_get(j, "12345678901234567"), ""), "v");
    ck_assert_str_eq(json_str(parse("\xef\xbb\xbf\"bom\""), ""), "bom");
}
END_TEST

START_TEST(same_key_twice) {
    Json *j = parse("{\"k\": 1, \"k\": 2}");
    ck_assert_int_eq(j->n, 2);
    ck_assert_int_eq(json_int(json_get(j, "k"), 0), 1);
}
END_TEST

START_TEST(bad_text_is_refused_at_its_place) {
    static const struct {
        const char *text;
        int line, col;
    } cases[] = {
        {"", 1, 1},
        {"  \n ", 2, 2},
        {"{\"a\": 01}", 1, 7},
        {"[-01]", 1, 3},
        {"[1,\n 2,\n  1.]", 3, 5},
        {"[1e]", 1, 4},
        {"[-]", 1, 3},
        {"[+1]", 1, 2},
        {"[.5]", 1, 2},
        {"[1 2]", 1, 4},
        {"[1,]", 1, 4},
        {"{\"a\" 1}", 1, 6},
        {"{\"a\": 1,}", 1, 9},
        {"{a: 1}", 1, 2},
        {"[1] x", 1, 5},
        {"\"abc", 1, 5},
        {"\"a\\x\"", 1, 3},
        {"\"\\u0000\"", 1, 2},
        {"\"a\nb\"", 1, 3},
        {"[\"\xff\"]", 1, 3},
        {"[\"\xc3\"]", 1, 3},
        {"[\x01]", 1, 2},
        {"[\xff]", 1, 2},
        // Rewritten numbers in front do not shift the column.
        {"[12345678901234567890, 1.5, 2.5, x]", 1, 34},
        {"[1.5,\n1.5, x]", 2, 6},
        {"{1234567890123456789: 1}", 1, 2},
        {"{\"a\": 1, 1.5 : 1}", 1, 10},
        {"]", 1, 1},
        {"[1]]", 1, 4},
        {"[}", 1, 2},
        {"InfinityNaN", 1, 9},
    };
    for (int i = 0; i < COUNT(cases); i++) {
        ck_assert_msg(!parse(cases[i].text), "'%s' was taken", cases[i].text);
        ck_assert_int_eq(diag.errors, 1);
        ck_assert_str_eq(diag.at[0].file, "t.json");
        ck_assert_msg(diag.at[0].line == cases[i].line && diag.at[0].col == cases[i].col,
                      "'%s': %d:%d: %s", cases[i].text, diag.at[0].line, diag.at[0].col,
                      diag.at[0].text);
    }
    ck_assert_ptr_null(parse_bytes("[1]\0", 4));
    ck_assert_ptr_null(parse_bytes("\"a\0b\"", 5));
    ck_assert_ptr_null(parse_bytes(NULL, 0));
    ck_assert_ptr_null(parse("[\"\\ud800\"]"));
}
END_TEST

START_TEST(message_shows_the_line) {
    parse("{\n  \"a\": 1,\n  \"b\": tru\n}");
    Buf b = {.arena = &arena};
    diag_print_all(&b, &diag);
    ck_assert_str_eq(buf_str(&b), "t.json:3:8: bad JSON: unexpected 't'\n"
                                  "    \"b\": tru\n"
                                  "         ^\n");
}
END_TEST

START_TEST(nesting_limit) {
    Buf b = {.arena = &(Arena){0}};
    for (int depth = 511; depth <= 513; depth++) {
        buf_truncate(&b, 0);
        buf_fill(&b, '[', depth);
        buf_fill(&b, ']', depth);
        ck_assert_int_eq(parse(b.data) != NULL, depth <= 512);
    }
    buf_truncate(&b, 0);
    buf_fill(&b, '[', 3000000);
    ck_assert_ptr_null(parse(b.data));
    // Closing more than was open does not buy depth that cJSON would refuse unseen.
    buf_truncate(&b, 0);
    buf_fill(&b, ']', 1000);
    buf_fill(&b, '[', 1400);
    ck_assert_ptr_null(parse(b.data));
    arena_free(b.arena);
}
END_TEST

START_TEST(text_needs_no_terminator) {
    // Exactly sized, so that the address sanitizer sees a read behind it.
    static const char *const texts[] = {"[1, 2]",   "\"\xe4\xbd", "12",  "tru",
                                        "\"\\u00", "-",          "\"\\"};
    for (int i = 0; i < COUNT(texts); i++) {
        Arena exact = {0};
        size_t n = strlen(texts[i]);
        char *copy = arena_alloc(&exact, n);
        memcpy(copy, texts[i], n);
        parse_bytes(copy, n);
        arena_free(&exact);
    }
}
END_TEST

START_TEST(writes) {
    Buf b = {.arena = &arena};
    JsonOut j = {.out = &b};
    json_open(&j, NULL, '{');
    json_put_str(&j, "s", "a\"\\\n\x01é\xff");
    json_put_str(&j, "none", NULL);
    json_put_int(&j, "i", INT64_MIN);
    json_open(&j, "list", '[');
    json_put_float(&j, NULL, 0.1);
    json_put_float(&j, NULL, -INFINITY);
    json_put_float(&j, NULL, NAN);
    json_put_bool(&j, NULL, true);
    json_close(&j, ']');
    json_open(&j, "empty", '[');
    json_close(&j, ']');
    json_close(&j, '}');
    ck_assert_str_eq(buf_str(&b), "{\"s\": \"a\\\"\\\\\\n\\u0001é\xef\xbf\xbd\", \"none\": null, "
                                  "\"i\": -9223372036854775808, "
                                  "\"list\": [0.1, \"-Infinity\", \"NaN\", true], \"empty\": []}");
    Json *back = json_parse(&arena, (Str){b.data, b.len}, "back", &(Diag){.arena = &arena});
    ck_assert_int_eq(json_int(json_get(back, "i"), 0), INT64_MIN);
    ck_assert(json_float(json_at(json_get(back, "list"), 1), 0) == -INFINITY);
}
END_TEST

// As Python's json.dumps(…, indent=2) prints the same value.
START_TEST(writes_pretty) {
    Buf b = {.arena = &arena};
    JsonOut j = {.out = &b, .pretty = true};
    json_open(&j, NULL, '{');
    json_open(&j, "cppCodeToPost", '{');
    json_open(&j, "cpp_fused_add_0", '[');
    json_put_str(&j, NULL, "add");
    json_put_str(&j, NULL, "relu");
    json_close(&j, ']');
    json_close(&j, '}');
    json_open(&j, "none", '{');
    json_close(&j, '}');
    json_close(&j, '}');
    ck_assert_str_eq(buf_str(&b), "{\n  \"cppCodeToPost\": {\n    \"cpp_fused_add_0\": [\n"
                                  "      \"add\",\n      \"relu\"\n    ]\n  },\n  \"none\": {}\n}");
}
END_TEST

// A real exported program, when it is at hand.
START_TEST(reads_an_exported_program) {
    Diag d = {.arena = &arena};
    const char *path = "../shared/corpus/layernorm_gelu/model.pt2";
    if (!file_exists(path))
        return;
    Zip *z = zip_open_file(&arena, path, &d);
    ck_assert_ptr_nonnull(z);
    int i = zip_find(z, "model/models/model.json");
    ck_assert_int_ge(i, 0);
    Json *j = json_parse(&arena, zip_read(z, i, 1 << 24, &arena, &d), "model.json", &d);
    ck_assert_ptr_nonnull(j);
    ck_assert_ptr_nonnull(json_get(json_get(j, "graph_module"), "graph"));
    zip_shut(z);
}
END_TEST

Suite *suite_base_json(void) {
    const TTest *const tests[] = {
        kinds,
        asking_for_what_is_not_there,
        integers_are_exact,
        floats_and_their_names,
        strings,
        same_key_twice,
        bad_text_is_refused_at_its_place,
        message_shows_the_line,
        nesting_limit,
        text_needs_no_terminator,
        writes,
        writes_pretty,
        reads_an_exported_program,
    };
    return unit_suite("base_json", tests, COUNT(tests));
}
