// diag.c: collects messages and prints them in the form of chibicc: place and text, the line
// itself, a caret, a hint. Whatever came from a file is cleaned of control bytes before it reaches
// a terminal.
#include "core/base/diag.h"

#include <string.h>

enum { LINE_COLUMNS = 100 };    // a longer source line is shown as a window around the caret

static const char *keep(Arena *a, const char *text) {
    return text ? arena_strdup(a, text) : NULL;
}

static DiagItem *add(Diag *d, DiagKind kind, Place at, const char *fmt, va_list args) {
    if (d->n == d->cap) {
        int cap = d->cap ? d->cap * 2 : 8;
        d->at = arena_grow(d->arena, d->at, (size_t)d->n, (size_t)cap, sizeof *d->at);
        d->cap = cap;
    }
    DiagItem *item = &d->at[d->n++];
    *item = (DiagItem){
        .kind = kind,
        .cause = CAUSE_input,
        .file = keep(d->arena, at.file),
        .line = at.line,
        .col = at.col,
        .text = arena_vprintf(d->arena, fmt, args),
        .source = keep(d->arena, at.source),
    };
    d->errors += kind == DIAG_error;
    return item;
}

DiagItem *diag_error(Diag *d, Place at, const char *fmt, ...) {
    va_list args;
    va_start(args, fmt);
    DiagItem *item = add(d, DIAG_error, at, fmt, args);
    va_end(args);
    return item;
}

DiagItem *diag_warning(Diag *d, Place at, const char *fmt, ...) {
    va_list args;
    va_start(args, fmt);
    DiagItem *item = add(d, DIAG_warning, at, fmt, args);
    va_end(args);
    return item;
}

DiagItem *diag_note(Diag *d, Place at, const char *fmt, ...) {
    va_list args;
    va_start(args, fmt);
    DiagItem *item = add(d, DIAG_note, at, fmt, args);
    va_end(args);
    return item;
}

DiagItem *diag_fail(Diag *d, const char *fmt, ...) {
    va_list args;
    va_start(args, fmt);
    DiagItem *item = add(d, DIAG_error, (Place){0}, fmt, args);
    va_end(args);
    return item;
}

DiagItem *diag_tool(Diag *d, const char *fmt, ...) {
    va_list args;
    va_start(args, fmt);
    DiagItem *item = add(d, DIAG_error, (Place){0}, fmt, args);
    va_end(args);
    item->cause = CAUSE_tool;
    return item;
}

const char *diag_errno(Diag *d, int error) {
    char words[128];
    char *text = arena_strdup(d->arena, strerror_r(error, words, sizeof words));
    bool sentence = text[0] >= 'A' && text[0] <= 'Z' && text[1] >= 'a' && text[1] <= 'z';
    if (sentence)
        text[0] = (char)(text[0] | 0x20);
    return text;
}

// Text of several lines, control bytes as \xNN; tabs become spaces so that columns can be counted.
static void put_clean(Buf *out, const char *text, size_t len, bool lines) {
    for (const char *p = text, *end = text + len; p < end;) {
        const char *from = p;
        uint32_t code = utf8_next(&p);
        if (code == '\n' && lines)
            buf_putc(out, '\n');
        else if (code == '\t')
            buf_putc(out, ' ');
        else if (code < 0x20 || (code >= 0x7f && code < 0xa0))
            buf_printf(out, "\\x%02x", (unsigned)code);
        else
            buf_utf8(out, code);
        if (p == from)
            p++;
    }
}

static size_t char_start(const char *line, size_t i) {
    while (i > 0 && ((unsigned char)line[i] & 0xc0) == 0x80)
        i--;
    return i;
}

// The source line and a caret below byte `col` of it; a long line is cut on both sides of the
// caret.
static void put_source(Buf *out, const char *line, int col) {
    size_t len = strcspn(line, "\n"), at = col > 0 ? (size_t)col - 1 : 0;
    at = char_start(line, at < len ? at : len);
    size_t from = 0, to = len;
    if (len > LINE_COLUMNS) {
        from = char_start(line, at > LINE_COLUMNS / 2 ? at - LINE_COLUMNS / 2 : 0);
        to = from + LINE_COLUMNS < len ? char_start(line, from + LINE_COLUMNS) : len;
    }
    size_t begin = out->len;
    buf_puts(out, from > 0 ? "  …" : "  ");
    put_clean(out, line + from, at - from, false);
    int columns = utf8_columns(out->data + begin);
    put_clean(out, line + at, to - at, false);
    buf_puts(out, to < len ? "…\n" : "\n");
    if (col > 0) {
        buf_fill(out, ' ', columns);
        buf_puts(out, "^\n");
    }
}

void diag_print(Buf *out, const DiagItem *item) {
    static const char *const words[] = {
        [DIAG_note] = "note: ", [DIAG_warning] = "warning: ", [DIAG_error] = ""};
    if (item->file) {
        put_clean(out, item->file, strlen(item->file), false);
        if (item->line > 0)
            buf_printf(out, ":%d", item->line);
        if (item->line > 0 && item->col > 0)
            buf_printf(out, ":%d", item->col);
        buf_puts(out, ": ");
    }
    buf_puts(out, words[item->kind]);
    put_clean(out, item->text, strlen(item->text), true);
    if (!str_ends(item->text, "\n"))
        buf_putc(out, '\n');
    if (item->source)
        put_source(out, item->source, item->col);
    if (item->hint) {
        buf_puts(out, "hint: ");
        put_clean(out, item->hint, strlen(item->hint), true);
        buf_putc(out, '\n');
    }
}

void diag_print_all(Buf *out, const Diag *d) {
    for (int i = 0; i < d->n; i++)
        diag_print(out, &d->at[i]);
}

static const DiagItem *first_error(const Diag *d) {
    for (int i = 0; i < d->n; i++)
        if (d->at[i].kind == DIAG_error)
            return &d->at[i];
    return NULL;
}

const char *diag_first(const Diag *d) {
    const DiagItem *item = first_error(d);
    return item ? item->text : "";
}

const char *diag_first_placed(const Diag *d, Arena *a) {
    const DiagItem *first = NULL;
    for (int i = 0; i < d->n && !first; i++)
        if (d->at[i].kind == DIAG_error)
            first = &d->at[i];
    if (!first || !first->file || !first->line)
        return diag_first(d);
    const char *slash = strrchr(first->file, '/');
    return arena_printf(a, "%s:%d: %s", slash ? slash + 1 : first->file, first->line, first->text);
}

int diag_exit_code(const Diag *d) {
    static const int codes[] = {[CAUSE_input] = 2, [CAUSE_check] = 1, [CAUSE_tool] = 3};
    const DiagItem *item = first_error(d);
    return item ? codes[item->cause] : 0;
}
