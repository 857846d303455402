// json.c: the grammar is cJSON's, but its numbers are doubles, it takes `01`, control characters
// and broken UTF-8, and a NUL cuts its strings. So a scan over the tokens comes first: it refuses
// those and turns every number that a double might change, or whose kind would be lost, into a
// string that begins with the byte 0xff, which no valid text contains.
#include "core/base/json.h"
#include "core/base/vec.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    DEPTH_MAX = 512,
    EXACT_DIGITS = 15,      // an integer of so many digits survives a double
    LINE_MAX_SHOWN = 4096,  // a longer line is not kept with an error
};
static const char mark = (char)0xff;

// A token that was rewritten: positions behind it differ.
typedef struct Shift {
    size_t in, out;     // offsets just behind the token in the text and in what cJSON reads
} Shift;

typedef struct Scan {
    Str text;                   // as given
    size_t at;                  // next byte of it
    size_t copied;              // bytes of it that are in out, rewritten or not
    int depth;                  // open brackets
    bool object[DEPTH_MAX + 1]; // whether the bracket opened at each depth is '{'
    char before;                // first byte of the token before
    Buf out;                    // what cJSON reads
    VEC(Shift) shifts;
    const char *error;          // NULL while all is well; the place is `at`
} Scan;

static int peek(const Scan *s, size_t ahead) {
    return s->text.len - s->at > ahead ? (unsigned char)s->text.ptr[s->at + ahead] : -1;
}

static bool digit(int c) {
    return c >= '0' && c <= '9';
}

static bool blank(int c) {
    return c == ' ' || c == '\n' || c == '\t' || c == '\r';
}

static bool at_word(const Scan *s, const char *word) {
    size_t n = strlen(word);
    return s->text.len - s->at >= n && memcmp(s->text.ptr + s->at, word, n) == 0;
}

// Bytes of the character at p, 0 if it is no valid UTF-8.
static size_t char_bytes(const char *p, size_t left) {
    char copy[5] = {0};
    memcpy(copy, p, left < 4 ? left : 4);
    const char *q = copy;
    uint32_t code = utf8_next(&q);
    return code == 0xfffd && q == copy + 1 ? 0 : (size_t)(q - copy);
}

static const char *scan_escape(Scan *s) {
    int c = peek(s, 1);
    if (c < 0 || !strchr("\"\\/bfnrtu", c) || c == 0)
        return "bad escape in a string";
    if (c == 'u' && s->text.len - s->at >= 6 && memcmp(s->text.ptr + s->at + 2, "0000", 4) == 0)
        return "a string with an embedded NUL";
    s->at += 2;
    return NULL;
}

static const char *scan_string(Scan *s) {
    s->at++;
    for (int c; (c = peek(s, 0)) != '"';) {
        if (c < 0)
            return "a string without an end";
        if (c < 0x20)
            return "a control character in a string, it must be escaped";
        if (c == '\\') {
            const char *error = scan_escape(s);
            if (error)
                return error;
        } else if (c < 0x80) {
            s->at++;
        } else {
            size_t n = char_bytes(s->text.ptr + s->at, s->text.len - s->at);
            if (!n)
                return "bytes that are not UTF-8";
            s->at += n;
        }
    }
    s->at++;
    return NULL;
}

static int skip_digits(Scan *s) {
    int n = 0;
    for (; digit(peek(s, 0)); s->at++)
        n += n < EXACT_DIGITS + 1;
    return n;
}

// Hands the token from `from` to here to cJSON as a marked string.
static void rewrite(Scan *s, size_t from) {
    buf_add(&s->out, s->text.ptr + s->copied, from - s->copied);
    buf_putc(&s->out, '"');
    buf_putc(&s->out, mark);
    buf_add(&s->out, s->text.ptr + from, s->at - from);
    buf_putc(&s->out, '"');
    s->copied = s->at;
    vec_push(s->out.arena, &s->shifts, (Shift){s->at, s->out.len});
}

static const char *scan_number(Scan *s) {
    size_t from = s->at;
    bool whole = true;
    int digits = 0;
    if (peek(s, 0) == '-')
        s->at++;
    const char *word = peek(s, 0) == 'N' ? "NaN" : "Infinity";
    bool special = at_word(s, word);
    if (special) {
        s->at += strlen(word);
    } else {
        if (peek(s, 0) == '0' && digit(peek(s, 1)))
            return "a number with a leading zero";
        digits = skip_digits(s);
        if (digits == 0)
            return "a number without digits";
        if (peek(s, 0) == '.') {
            whole = false;
            s->at++;
            if (skip_digits(s) == 0)
                return "a number without digits behind its point";
        }
        if (peek(s, 0) == 'e' || peek(s, 0) == 'E') {
            whole = false;
            s->at += peek(s, 1) == '-' || peek(s, 1) == '+' ? 2 : 1;
            if (skip_digits(s) == 0)
                return "a number without digits in its exponent";
        }
    }
    if (special || !whole || digits > EXACT_DIGITS)
        rewrite(s, from);
    return NULL;
}

static const char *scan_token(Scan *s) {
    int c = peek(s, 0);
    if (blank(c)) {
        s->at++;
        return NULL;
    }
    // A rewritten number would pass for a key; and cJSON is one off about the place of a bad one.
    char before = s->before;
    if (c != '"' && (before == ',' || (before == '{' && c != '}')) && s->depth > 0 &&
        s->object[s->depth])
        return "a key in quotes was expected here";
    s->before = (char)c;
    if (c == '"')
        return scan_string(s);
    if (c == '-' || c == 'N' || c == 'I' || digit(c))
        return scan_number(s);
    if (c == '{' || c == '[') {
        if (s->depth == DEPTH_MAX)
            return "brackets nested deeper than 512";
        s->object[++s->depth] = c == '{';
    }
    if ((c == '}' || c == ']') && s->depth-- == 0)
        return "a bracket is closed that was not open";
    if (c < 0x20 || c >= 0x7f)
        return "a byte that has no place in JSON";
    s->at++;
    return NULL;
}

static void scan(Scan *s) {
    if (at_word(s, "\xef\xbb\xbf"))
        s->at = s->copied = 3;
    while (!s->error && s->at < s->text.len)
        s->error = scan_token(s);
    buf_add(&s->out, s->text.ptr + s->copied, s->text.len - s->copied);
}

// The place in the text of a place in what cJSON read.
static size_t original(const Scan *s, size_t out) {
    size_t in = at_word(&(Scan){.text = s->text}, "\xef\xbb\xbf") ? out + 3 : out;
    for (int i = 0; i < s->shifts.n && s->shifts.at[i].out <= out; i++)
        in = s->shifts.at[i].in + (out - s->shifts.at[i].out);
    return in < s->text.len ? in : s->text.len;
}

static void report(const Scan *s, size_t at, const char *what, const char *name, Diag *d) {
    size_t from = 0, to = at;
    Place place = {.file = name, .line = 1};
    for (size_t i = 0; i < at; i++) {
        if (s->text.ptr[i] == '\n') {
            place.line++;
            from = i + 1;
        }
    }
    while (to < s->text.len && s->text.ptr[to] != '\n' && to - from <= LINE_MAX_SHOWN)
        to++;
    place.col = at - from < INT32_MAX ? (int)(at - from) + 1 : 0;
    Arena tmp = {0};
    if (to - from <= LINE_MAX_SHOWN)
        place.source = arena_strndup(&tmp, s->text.ptr + from, to - from);
    diag_error(d, place, "bad JSON: %s", what);
    arena_free(&tmp);
}

static const char *unexpected(const Scan *s, size_t at, Arena *tmp) {
    if (at >= s->text.len)
        return "the text ends too early";
    unsigned char c = (unsigned char)s->text.ptr[at];
    if (c < 0x20 || c >= 0x7f)
        return "a value, ',' or a closing bracket was expected here";
    return arena_printf(tmp, "unexpected '%c'", c);
}

static void convert_number(const char *text, Json *j) {
    const char *end;
    char *int_end;
    errno = 0;
    long long i = strtoll(text, &int_end, 10);
    if (!*int_end && !errno) {
        j->kind = JSON_int;
        j->i = i;
        return;
    }
    j->kind = JSON_float;
    j->f = str_double(text, &end);
    if (strstr(text, "Inf"))
        j->f = *text == '-' ? -INFINITY : INFINITY;
    else if (strstr(text, "NaN"))
        j->f = NAN;
}

static Json *convert(Arena *a, const cJSON *c) {
    Json *j = ARENA_NEW(a, Json);
    j->key = c->string ? arena_strdup(a, c->string) : NULL;
    if (cJSON_IsString(c) && c->valuestring[0] == mark) {
        convert_number(c->valuestring + 1, j);
    } else if (cJSON_IsString(c)) {
        j->kind = JSON_string;
        j->s = arena_strdup(a, c->valuestring);
    } else if (cJSON_IsNumber(c)) {
        j->kind = JSON_int;
        j->i = (int64_t)c->valuedouble;
    } else if (cJSON_IsBool(c)) {
        j->kind = JSON_bool;
        j->b = cJSON_IsTrue(c);
    } else if (cJSON_IsArray(c) || cJSON_IsObject(c)) {
        j->kind = cJSON_IsArray(c) ? JSON_array : JSON_object;
        Json **link = &j->child;
        for (const cJSON *item = c->child; item; item = item->next, link = &(*link)->next) {
            *link = convert(a, item);
            j->n++;
        }
    }
    return j;
}

Json *json_parse(Arena *a, Str text, const char *name, Diag *d) {
    Arena tmp = {0};
    Scan s = {.text = text.ptr ? text : (Str){"", 0}, .out = {.arena = &tmp}};
    Json *j = NULL;
    scan(&s);
    if (s.error) {
        report(&s, s.at, s.error, name, d);
    } else {
        const char *end = NULL;
        cJSON *c = cJSON_ParseWithLengthOpts(s.out.data, s.out.len + 1, &end, true);
        if (c) {
            j = convert(a, c);
            cJSON_Delete(c);
        } else {
            size_t at = original(&s, end ? (size_t)(end - s.out.data) : 0);
            report(&s, at, unexpected(&s, at, &tmp), name, d);
        }
    }
    arena_free(&tmp);
    return j;
}

Json *json_get(const Json *object, const char *key) {
    if (!object || object->kind != JSON_object)
        return NULL;
    for (Json *j = object->child; j; j = j->next)
        if (strcmp(j->key, key) == 0)
            return j;
    return NULL;
}

Json *json_at(const Json *array, int i) {
    if (!array || array->kind != JSON_array || i < 0 || i >= array->n)
        return NULL;
    Json *j = array->child;
    while (i-- > 0)
        j = j->next;
    return j;
}

const char *json_str(const Json *j, const char *fallback) {
    return j && j->kind == JSON_string ? j->s : fallback;
}

int64_t json_int(const Json *j, int64_t fallback) {
    return j && j->kind == JSON_int ? j->i : fallback;
}

double json_float(const Json *j, double fallback) {
    static const char *const names[] = {"Infinity", "-Infinity", "NaN"};
    static const double values[] = {INFINITY, -INFINITY, NAN};
    if (!j)
        return fallback;
    if (j->kind == JSON_float)
        return j->f;
    if (j->kind == JSON_int)
        return (double)j->i;
    int i = j->kind == JSON_string ? str_index(j->s, names, COUNT(names)) : -1;
    return i < 0 ? fallback : values[i];
}

bool json_bool(const Json *j, bool fallback) {
    return j && j->kind == JSON_bool ? j->b : fallback;
}

static void put_text(Buf *out, const char *text) {
    static const char plain[] = "\"\\\n\r\t\b\f", letters[] = "\"\\nrtbf";
    buf_putc(out, '"');
    while (*text) {
        uint32_t code = utf8_next(&text);
        const char *escape = code < 0x80 ? strchr(plain, (int)code) : NULL;
        if (escape)
            buf_printf(out, "\\%c", letters[escape - plain]);
        else if (code < 0x20 || code == 0x7f)
            buf_printf(out, "\\u%04x", (unsigned)code);
        else
            buf_utf8(out, code);
    }
    buf_putc(out, '"');
}

// What stands before a value: comma, line break, key.
static void lead(JsonOut *j, const char *key) {
    if (j->depth) {
        if (!j->first[j->depth])
            buf_puts(j->out, j->pretty ? "," : ", ");
        if (j->pretty) {
            buf_putc(j->out, '\n');
            buf_fill(j->out, ' ', j->depth * 2);
        }
        j->first[j->depth] = false;
    }
    if (key) {
        put_text(j->out, key);
        buf_puts(j->out, ": ");
    }
}

void json_open(JsonOut *j, const char *key, char bracket) {
    lead(j, key);
    buf_putc(j->out, bracket);
    if (++j->depth >= COUNT(j->first))
        die("JSON nested deeper than %d is written", COUNT(j->first) - 1);
    j->first[j->depth] = true;
}

void json_close(JsonOut *j, char bracket) {
    bool empty = j->first[j->depth--];
    if (j->pretty && !empty) {
        buf_putc(j->out, '\n');
        buf_fill(j->out, ' ', j->depth * 2);
    }
    buf_putc(j->out, bracket);
}

void json_put_str(JsonOut *j, const char *key, const char *v) {
    lead(j, key);
    if (v)
        put_text(j->out, v);
    else
        buf_puts(j->out, "null");
}

void json_put_int(JsonOut *j, const char *key, int64_t v) {
    lead(j, key);
    buf_printf(j->out, "%lld", (long long)v);
}

void json_put_float(JsonOut *j, const char *key, double v) {
    lead(j, key);
    if (isfinite(v))
        buf_py_float(j->out, v);
    else
        buf_puts(j->out, isnan(v) ? "\"NaN\"" : v > 0 ? "\"Infinity\"" : "\"-Infinity\"");
}

void json_put_bool(JsonOut *j, const char *key, bool v) {
    lead(j, key);
    buf_puts(j->out, v ? "true" : "false");
}
