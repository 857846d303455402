// buf.c: growing text, Python's spelling of floats and strings, small string helpers. Floats are
// read and printed through digits and an exponent only, so that no locale's decimal comma gets in.
#include "core/base/buf.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    EXACT_DIGITS = 800,     // no double needs more to be rounded right
    NAME_MAX_LEN = 63,      // longer names are not compared letter by letter
};

static void reserve(Buf *b, size_t more) {
    size_t need;
    if (__builtin_add_overflow(b->len, more, &need) || need > SIZE_MAX / 4)
        die("out of memory: a text of %zu bytes grows by %zu", b->len, more);
    if (need < b->cap)
        return;
    size_t cap = b->cap * 2 > need + 1 ? b->cap * 2 : need + 1;
    if (cap < 64)
        cap = 64;
    b->data = arena_grow(b->arena, b->data, b->cap, cap, 1);
    b->cap = cap;
}

void buf_add(Buf *b, const void *bytes, size_t len) {
    reserve(b, len);
    if (len)
        memcpy(b->data + b->len, bytes, len);
    b->len += len;
    b->data[b->len] = 0;
}

void buf_puts(Buf *b, const char *text) {
    buf_add(b, text, strlen(text));
}

void buf_putc(Buf *b, char c) {
    reserve(b, 1);
    b->data[b->len++] = c;
    b->data[b->len] = 0;
}

void buf_fill(Buf *b, char c, int n) {
    if (n <= 0)
        return;
    reserve(b, (size_t)n);
    memset(b->data + b->len, c, (size_t)n);
    b->len += (size_t)n;
    b->data[b->len] = 0;
}

void buf_vprintf(Buf *b, const char *fmt, va_list args) {
    va_list again;
    va_copy(again, args);
    size_t room = b->cap - b->len;
    int len = vsnprintf(room ? b->data + b->len : NULL, room, fmt, args);
    if (len < 0)
        die("bad format: %s", fmt);
    if ((size_t)len >= room) {
        reserve(b, (size_t)len);
        vsnprintf(b->data + b->len, (size_t)len + 1, fmt, again);
    }
    va_end(again);
    b->len += (size_t)len;
}

void buf_printf(Buf *b, const char *fmt, ...) {
    va_list args;
    va_start(args, fmt);
    buf_vprintf(b, fmt, args);
    va_end(args);
}

void buf_truncate(Buf *b, size_t len) {
    if (len >= b->len)
        return;
    b->len = len;
    b->data[len] = 0;
}

const char *buf_str(const Buf *b) {
    return b->data ? b->data : "";
}

double str_double(const char *text, const char **end) {
    char number[EXACT_DIGITS + 32];
    size_t n = 0;
    const char *p = text;
    *end = text;
    if (*p == '-' || *p == '+')
        number[n++] = *p++;
    long exponent = 0;
    bool any = false, point = false, lost = false;
    for (;; p++) {
        if (*p == '.' && !point) {
            point = true;
            continue;
        }
        if (*p < '0' || *p > '9')
            break;
        any = true;
        if (n < EXACT_DIGITS) {
            number[n++] = *p;
            exponent -= point;
        } else {
            lost |= *p != '0';
            exponent += !point;
        }
    }
    if (!any)
        return 0;
    if (*p == 'e' || *p == 'E') {
        const char *q = p + 1;
        bool negative = *q == '-';
        if (*q == '-' || *q == '+')
            q++;
        long e = 0;
        if (*q >= '0' && *q <= '9') {
            for (; *q >= '0' && *q <= '9'; q++)
                e = e < 100000000 ? e * 10 + (*q - '0') : e;
            exponent += negative ? -e : e;
            p = q;
        }
    }
    *end = p;
    // A digit behind all the kept ones breaks a tie the right way.
    if (lost) {
        number[n++] = '1';
        exponent--;
    }
    snprintf(number + n, sizeof number - n, "e%ld", exponent);
    return strtod(number, NULL);
}

// The decimal digits of a positive double rounded to n of them; *exponent is that of the first.
static void round_digits(double v, int n, char digits[32], int *exponent) {
    char text[48];
    snprintf(text, sizeof text, "%.*e", n - 1, v);
    int k = 0;
    const char *p = text;
    for (; *p != 'e'; p++)
        if (*p >= '0' && *p <= '9')
            digits[k++] = *p;
    digits[k] = 0;
    *exponent = (int)strtol(p + 1, NULL, 10);
}

static bool reads_back(double v, const char *digits, int exponent) {
    char text[48];
    snprintf(text, sizeof text, "%se%d", digits, exponent - (int)strlen(digits) + 1);
    return strtod(text, NULL) == v;
}

static void next_up(char *digits, int *exponent) {
    int i = (int)strlen(digits) - 1;
    while (i >= 0 && digits[i] == '9')
        digits[i--] = '0';
    if (i >= 0) {
        digits[i]++;
    } else {
        digits[0] = '1';
        ++*exponent;
    }
}

// The fewest digits that read back as v > 0. Fifteen always survive for a normal number, so the
// search starts there and zeros are dropped later; below a power of two the gap is half of that
// above it, so there the next decimal up may do where the nearest does not.
static void shortest_digits(double v, char digits[32], int *exponent) {
    int two;
    bool power = frexp(v, &two) == 0.5;
    for (int n = v < 0x1p-1021 ? 1 : 15; n < 17; n++) {
        round_digits(v, n, digits, exponent);
        if (reads_back(v, digits, *exponent))
            return;
        if (power) {
            next_up(digits, exponent);
            if (reads_back(v, digits, *exponent))
                return;
        }
    }
    round_digits(v, 17, digits, exponent);
}

void buf_py_float(Buf *b, double v) {
    if (isnan(v)) {
        buf_puts(b, "nan");
        return;
    }
    if (signbit(v))
        buf_putc(b, '-');
    v = fabs(v);
    if (isinf(v)) {
        buf_puts(b, "inf");
        return;
    }
    if (v < 1e15 && v == (double)(int64_t)v) {
        buf_printf(b, "%lld.0", (long long)v);
        return;
    }
    char digits[32];
    int exponent;
    shortest_digits(v, digits, &exponent);
    int n = (int)strlen(digits);
    while (n > 1 && digits[n - 1] == '0')
        n--;
    if (exponent < -4 || exponent >= 16) {
        buf_putc(b, digits[0]);
        if (n > 1) {
            buf_putc(b, '.');
            buf_add(b, digits + 1, (size_t)n - 1);
        }
        buf_printf(b, "e%c%02d", exponent < 0 ? '-' : '+', abs(exponent));
    } else if (exponent < 0) {
        buf_puts(b, "0.");
        buf_fill(b, '0', -exponent - 1);
        buf_add(b, digits, (size_t)n);
    } else {
        int whole = exponent + 1 < n ? exponent + 1 : n;
        buf_add(b, digits, (size_t)whole);
        buf_fill(b, '0', exponent + 1 - whole);
        buf_putc(b, '.');
        if (n > whole)
            buf_add(b, digits + whole, (size_t)(n - whole));
        else
            buf_putc(b, '0');
    }
}

static void py_char(Buf *b, uint32_t code, char quote) {
    static const char plain[] = "\\\n\r\t", letters[] = "\\nrt";
    const char *escape = code && code < 0x80 ? strchr(plain, (int)code) : NULL;
    if (escape)
        buf_printf(b, "\\%c", letters[escape - plain]);
    else if (code == (uint32_t)quote)
        buf_printf(b, "\\%c", quote);
    else if (utf8_printable(code))
        buf_utf8(b, code);
    else if (code < 0x100)
        buf_printf(b, "\\x%02x", (unsigned)code);
    else if (code < 0x10000)
        buf_printf(b, "\\u%04x", (unsigned)code);
    else
        buf_printf(b, "\\U%08x", (unsigned)code);
}

void buf_py_str(Buf *b, const char *text) {
    char quote = strchr(text, '\'') && !strchr(text, '"') ? '"' : '\'';
    buf_putc(b, quote);
    for (const char *p = text; *p;) {
        const char *from = p;
        uint32_t code = utf8_next(&p);
        // A broken byte is what Python's surrogateescape makes of it.
        bool broken = code == 0xfffd && p == from + 1;
        py_char(b, broken ? 0xdc00U | (unsigned char)*from : code, quote);
    }
    buf_putc(b, quote);
}

bool str_starts(const char *text, const char *prefix) {
    return strncmp(text, prefix, strlen(prefix)) == 0;
}

bool str_ends(const char *text, const char *suffix) {
    size_t n = strlen(text), k = strlen(suffix);
    return n >= k && memcmp(text + n - k, suffix, k) == 0;
}

int str_index(const char *text, const char *const names[], int n) {
    for (int i = 0; i < n; i++)
        if (strcmp(text, names[i]) == 0)
            return i;
    return -1;
}

static int least(int a, int b) {
    return a < b ? a : b;
}

int str_distance(const char *a, const char *b) {
    int rows[3][NAME_MAX_LEN + 1];
    int n = (int)strnlen(a, NAME_MAX_LEN + 1), m = (int)strnlen(b, NAME_MAX_LEN + 1);
    if (n > NAME_MAX_LEN || m > NAME_MAX_LEN)
        return strcmp(a, b) == 0 ? 0 : NAME_MAX_LEN;
    for (int j = 0; j <= m; j++)
        rows[0][j] = j;
    for (int i = 1; i <= n; i++) {
        int *row = rows[i % 3], *up = rows[(i + 2) % 3], *up2 = rows[(i + 1) % 3];
        row[0] = i;
        for (int j = 1; j <= m; j++) {
            int change = up[j - 1] + (a[i - 1] != b[j - 1]);
            row[j] = least(change, least(up[j], row[j - 1]) + 1);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                row[j] = least(row[j], up2[j - 2] + 1);
        }
    }
    return rows[n % 3][m];
}
