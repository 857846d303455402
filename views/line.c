// line.c: building one line of styled spans, and the number formats that all views share.
#include "views/view.h"

#include <ctype.h>
#include <string.h>

StyleId style_kernel(int n) {
    return (StyleId)(ST_kernel_a + ((n % 5) + 5) % 5);
}

void line_init(Line *l, Arena *frame) {
    *l = (Line){
        .arena = frame, .item = ITEM_NONE, .owner = ITEM_NONE, .name = -1, .sign_style = ST_text};
}

void line_add(Line *l, StyleId style, const char *text) {
    if (!text || !*text || l->n == LINE_SPANS)
        return;
    l->span[l->n++] = (Span){text, style};
}

void line_printf(Line *l, StyleId style, const char *fmt, ...) {
    va_list args;
    va_start(args, fmt);
    line_add(l, style, arena_vprintf(l->arena, fmt, args));
    va_end(args);
}

int line_columns(const Line *l) {
    int n = 0;
    for (int i = 0; i < l->n; i++)
        n += utf8_columns(l->span[i].text);
    return n;
}

static char *blanks(Arena *a, int n) {
    char *s = arena_alloc(a, (size_t)n + 1);
    memset(s, ' ', (size_t)n);
    return s;
}

void line_pad(Line *l, int columns, bool gap) {
    int n = columns - line_columns(l);
    if (n < 1 && gap)
        n = 1;
    if (n > 0)
        line_add(l, ST_text, blanks(l->arena, n));
}

// Text cut to `columns`, with › as the last one if anything was cut.
static const char *cut(Arena *a, const char *text, int columns, int *used) {
    int w = utf8_columns(text);
    *used = w;
    if (w <= columns)
        return text;
    *used = columns < 0 ? 0 : columns;
    if (columns <= 0)
        return "";
    const char *p = text;
    int at = 0;
    for (;;) {
        const char *q = p;
        int cw = utf8_cluster(&q);
        if (at + cw > columns - 1)
            break;
        at += cw;
        p = q;
    }
    *used = at + 1;
    return arena_printf(a, "%.*s›", (int)(p - text), text);
}

void line_cell(Line *l, StyleId style, const char *text, int columns) {
    int used;
    line_add(l, style, cut(l->arena, text, columns, &used));
    if (used < columns)
        line_add(l, ST_text, blanks(l->arena, columns - used));
}

void line_right(Line *l, StyleId style, const char *text, int columns) {
    int used;
    const char *t = cut(l->arena, text, columns, &used);
    if (used < columns)
        line_add(l, ST_text, blanks(l->arena, columns - used));
    line_add(l, style, t);
}

void line_bar(Line *l, StyleId style, double value, double full, int columns) {
    static const char *const eighth[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
    if (columns <= 0)
        return;
    double share = full > 0 && value > 0 ? value / full : 0;
    if (share > 1)
        share = 1;
    int units = (int)(share * columns * 8 + 0.5);
    if (units == 0 && value > 0)
        units = 1;
    Buf b = {.arena = l->arena};
    for (int i = 0; i < units / 8; i++)
        buf_puts(&b, "█");
    buf_puts(&b, eighth[units % 8]);
    line_cell(l, style, buf_str(&b), columns);
}

const char *line_text(const Line *l, Arena *a) {
    Buf b = {.arena = a};
    for (int i = 0; i < l->n; i++)
        buf_puts(&b, l->span[i].text);
    return buf_str(&b);
}

static bool is_word(char c) {
    return isalnum((unsigned char)c) || c == '_';
}

static bool is_keyword(const char *at, size_t len, const char *const *keywords) {
    for (; *keywords; keywords++)
        if (strlen(*keywords) == len && !memcmp(*keywords, at, len))
            return true;
    return false;
}

static void flush(Line *l, StyleId style, const char *from, const char *to) {
    if (to > from)
        line_add(l, style, arena_strndup(l->arena, from, (size_t)(to - from)));
}

void line_code(Line *l, const char *text, const char *const *keywords, const char *comment) {
    const char *plain = text, *p = text;
    size_t clen = strlen(comment);
    while (*p) {
        if (!strncmp(p, comment, clen) || (*p == '#' && p == text + strspn(text, " "))) {
            flush(l, ST_text, plain, p);
            line_add(l, ST_comment, arena_strdup(l->arena, p));
            return;
        }
        if (!is_word(*p)) {
            p++;
            continue;
        }
        const char *word = p;
        while (is_word(*p))
            p++;
        if (l->n < LINE_SPANS - 3 && is_keyword(word, (size_t)(p - word), keywords)) {
            flush(l, ST_text, plain, word);
            flush(l, ST_keyword, word, p);
            plain = p;
        }
    }
    flush(l, ST_text, plain, p);
}

const char *text_count(Arena *a, int64_t n) {
    char digits[32], out[48];
    bool minus = n < 0;
    uint64_t u = minus ? 0 - (uint64_t)n : (uint64_t)n;
    int k = 0, o = 0;
    do {
        digits[k++] = (char)('0' + u % 10);
        u /= 10;
    } while (u);
    if (minus)
        out[o++] = '-';
    while (k > 0) {
        out[o++] = digits[--k];
        if (k && k % 3 == 0)
            out[o++] = ',';
    }
    return arena_strndup(a, out, (size_t)o);
}

// Whole below ten thousand, else with a unit of thousands in front of what is counted.
static const char *text_units(Arena *a, double n, const char *what) {
    static const char *const unit[] = {"k", "M", "G", "T"};
    if (n < 10000 && n > -10000)
        return arena_printf(a, "%s %s", text_count(a, (int64_t)n), what);
    int u = 0;
    n /= 1000;
    while ((n >= 1000 || n <= -1000) && u < 3) {
        n /= 1000;
        u++;
    }
    return arena_printf(a, "%.*f %s%s", n < 100 ? 1 : 0, n, unit[u], what);
}

const char *text_bytes(Arena *a, int64_t bytes) {
    return text_units(a, (double)bytes, "B");
}

const char *text_flops(Arena *a, double n) {
    return text_units(a, n, "flop");
}

const char *text_time(Arena *a, double ns) {
    if (ns < 0)
        return "·";
    if (ns < 1e3)
        return arena_printf(a, "%.0f ns", ns);
    if (ns < 1e6)
        return arena_printf(a, "%.*f µs", ns < 1e5 ? 1 : 0, ns / 1e3);
    if (ns < 1e9)
        return arena_printf(a, "%.*f ms", ns < 1e8 ? 1 : 0, ns / 1e6);
    return arena_printf(a, "%.2f s", ns / 1e9);
}

const char *view_time(const ViewCtx *ctx, Arena *a, double ns) {
    return ctx->opt.hide_times ? "·" : text_time(a, ns);
}
