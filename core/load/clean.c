// clean.c: what a terminal, a mail, a web page or an editor put into a text: colours, carriage
// returns, marks of a quotation, HTML entities, UTF-16 (what `>` of PowerShell writes); `?` for
// bytes that are no UTF-8. Lines keep their numbers.
#include <string.h>

#include "core/load/load_impl.h"

typedef struct Entity {
    const char *name;
    char c;
} Entity;

static const Entity entities[] = {
    {"&lt;", '<'}, {"&gt;", '>'}, {"&quot;", '"'}, {"&#34;", '"'},
    {"&#39;", '\''}, {"&#x27;", '\''}, {"&amp;", '&'},
};

// A printed graph has annotations in quotes, `->` or `<lambda>`: as entities only on a web page.
static bool is_html(Str text) {
    static const char *const marks[] = {": &quot;", "&lt;lambda&gt;", "&lt;eval_with_key&gt;",
                                        "-&gt; "};
    for (int i = 0; i < COUNT(marks); i++)
        if (load_contains(text, marks[i]))
            return true;
    return false;
}

static size_t entity(const char *p, const char *end, char *out) {
    for (int i = 0; i < COUNT(entities); i++) {
        size_t len = strlen(entities[i].name);
        if ((size_t)(end - p) >= len && !memcmp(p, entities[i].name, len)) {
            *out = entities[i].c;
            return len;
        }
    }
    return 0;
}

// `ESC [ 1 ; 32 m`, and other commands of that kind.
static size_t escape(const char *p, const char *end) {
    if (end - p < 3 || p[0] != 27 || p[1] != '[')
        return 0;
    const char *q = p + 2;
    while (q < end && (strchr("0123456789;?", *q) && *q))
        q++;
    return q < end && *q >= '@' && *q <= '~' ? (size_t)(q + 1 - p) : 0;
}

// `> > text`
static const char *skip_quotation(const char *p, const char *end) {
    while (p < end && *p == '>') {
        p++;
        p += p < end && *p == ' ';
    }
    return p;
}

static bool has_quotation(Str text) {
    return text.ptr[0] == '>' || load_contains(text, "\n>");
}

static unsigned unit_at(const unsigned char *p, bool little) {
    return little ? p[0] | (unsigned)p[1] << 8 : p[1] | (unsigned)p[0] << 8;
}

static bool is_utf16(Str text) {
    return text.len >= 2 &&
           (!memcmp(text.ptr, "\xff\xfe", 2) || !memcmp(text.ptr, "\xfe\xff", 2));
}

static Str from_utf16(Arena *a, Str text) {
    Buf b = {.arena = a};
    const unsigned char *p = (const unsigned char *)text.ptr;
    bool little = p[0] == 0xff;
    for (size_t i = 2; i + 1 < text.len; i += 2) {
        uint32_t code = unit_at(p + i, little);
        if (code >= 0xd800 && code < 0xdc00 && i + 3 < text.len) {
            uint32_t low = (unit_at(p + i + 2, little) - 0xdc00) & 1023;
            code = 0x10000 + ((code - 0xd800) << 10) + low;
            i += 2;
        }
        buf_utf8(&b, code);
    }
    const char *out = buf_str(&b);
    return (Str){out, b.len};
}

// Length of the character at p, 0 if it is none of UTF-8.
static size_t character(const char *p, const char *end) {
    unsigned char c = (unsigned char)*p;
    size_t len = c < 0x80                ? 1
                 : c >= 0xc2 && c < 0xe0 ? 2
                 : c >= 0xe0 && c < 0xf0 ? 3
                 : c >= 0xf0 && c < 0xf5 ? 4
                                         : 0;
    if (len > (size_t)(end - p))
        return 0;
    for (size_t i = 1; i < len; i++)
        if (((unsigned char)p[i] & 0xc0) != 0x80)
            return 0;
    return len;
}

// A part of a text may end inside a character.
static bool is_utf8(Str text) {
    const char *p = text.ptr, *end = p + text.len;
    for (size_t len; p < end; p += len)
        if (!(len = character(p, end)))
            return false;
    return true;
}

// What stands for the next bytes of the text, to `to`; its length.
static size_t take(const char **p, const char *end, bool html, char *to) {
    size_t len = escape(*p, end);
    if (len || (**p == '\r' && end - *p > 1 && (*p)[1] == '\n')) {
        *p += len ? len : 1;
        return 0;
    }
    len = html && **p == '&' ? entity(*p, end, to) : 0;
    if (!len && (len = character(*p, end)) > 0) {
        memcpy(to, *p, len);
        *p += len;
        return len;
    }
    if (!len)
        *to = '?';
    *p += len ? len : 1;
    return 1;
}

static Str without_marks(Arena *a, Str text) {
    static const char mark[] = "\xef\xbb\xbf"; // of the byte order
    bool marked = text.len >= 3 && !memcmp(text.ptr, mark, 3);
    bool html = is_html(text), quoted = has_quotation(text);
    if (!marked && !html && !quoted && !memchr(text.ptr, 27, text.len) &&
        !load_contains(text, "\r\n") && is_utf8(text))
        return text;
    char *out = arena_alloc(a, text.len + 1), *to = out;
    const char *p = text.ptr + (marked ? 3 : 0), *end = text.ptr + text.len;
    for (bool start = true; p < end; start = p[-1] == '\n') {
        if (start && quoted)
            p = skip_quotation(p, end);
        if (p >= end)
            break;
        to += take(&p, end, html, to);
    }
    *to = 0;
    return (Str){out, (size_t)(to - out)};
}

Str load_clean(Arena *a, Str text) {
    if (is_utf16(text))
        text = from_utf16(a, text);
    if (!text.len || memchr(text.ptr, 0, text.len))
        return text;
    return load_tidy(a, without_marks(a, text));
}
