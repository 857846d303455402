// buf.h: a growing text in an arena, and the few string helpers that the C library lacks.
// `Buf b = {.arena = a};` is an empty text; b.data is NULL until something is added, buf_str never
// is.
#ifndef CORE_BASE_BUF_H
#define CORE_BASE_BUF_H

#include "core/base/arena.h"

typedef struct Buf {
    Arena *arena;   // where it grows
    char *data;     // NUL-terminated once anything was added
    size_t len;     // without the NUL
    size_t cap;     // bytes at data
} Buf;

typedef struct Str {
    const char *ptr;    // not terminated
    size_t len;
} Str;

void buf_add(Buf *b, const void *bytes, size_t len);
void buf_puts(Buf *b, const char *text);
void buf_putc(Buf *b, char c);
void buf_fill(Buf *b, char c, int n);                       // n times c
void buf_printf(Buf *b, const char *fmt, ...) FX_PRINTF(2, 3);
void buf_vprintf(Buf *b, const char *fmt, va_list args) FX_PRINTF(2, 0);
void buf_truncate(Buf *b, size_t len);
const char *buf_str(const Buf *b);                          // never NULL

// A double as Python's repr prints it: shortest text that reads back, `1e-05`, `0.1`, `inf`, `2.0`.
void buf_py_float(Buf *b, double v);
// A string as Python's repr prints it, quotes included.
void buf_py_str(Buf *b, const char *text);

bool str_starts(const char *text, const char *prefix);
bool str_ends(const char *text, const char *suffix);
// Index of text in names[n], or -1.
int str_index(const char *text, const char *const names[], int n);
// How far apart two names are (insertions, deletions, swaps); for "did you mean".
int str_distance(const char *a, const char *b);
// A decimal number at text as strtod reads it, whatever the locale says; *end is text if there is
// none. No inf, nan or hexadecimal.
double str_double(const char *text, const char **end);
// Code point at *p and moves p past it; a broken byte gives U+FFFD and moves by one; the final NUL
// gives 0 and does not move.
uint32_t utf8_next(const char **p);
void buf_utf8(Buf *b, uint32_t code);
// Whether Python's repr shows it as it is (not a control, format, private or blank other than
// space).
bool utf8_printable(uint32_t code);
// Terminal columns of a code point (0, 1 or 2) and of a text.
int utf8_width(uint32_t code);
int utf8_columns(const char *text);
// Moves past a code point and the marks that combine with it; the columns that they take together.
int utf8_cluster(const char **p);
// Drawn over the character before it: an accent. No format character, no variation selector.
bool utf8_combines(uint32_t code);

#endif
