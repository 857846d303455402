// scan.c: the lines of an FX text, with the prefixes that TORCH_LOGS puts before them taken off,
// and the cursor that moves over them.
#include "core/fx/scan.h"

#include <ctype.h>
#include <string.h>

static const char *skip_digits(const char *p, const char *end, int at_least) {
    const char *from = p;
    while (p < end && isdigit((unsigned char)*p))
        p++;
    return p - from >= at_least ? p : NULL;
}

// `[2023-10-30 12:00:00,123] [0/0] torch._dynamo.output_graph.__graph_code: [DEBUG] `, up to 2.3.
static const char *old_prefix(const char *start, const char *end) {
    const char *p = start + 1;
    if (end - start < 30 || *start != '[' || !(p = skip_digits(p, end, 4)) || *p != '-')
        return start;
    for (p = memchr(p, ']', (size_t)(end - p)); p && end - p > 2 && p[1] == ' ' && p[2] == '[';)
        p = memchr(p + 2, ']', (size_t)(end - p - 2));
    p = p && end - p > 2 && p[1] == ' ' ? p + 2 : NULL;
    const char *space = p ? memchr(p, ' ', (size_t)(end - p)) : NULL;
    if (!space || space == p || space[-1] != ':' || end - space < 3 || space[1] != '[')
        return start;
    const char *close = memchr(space, ']', (size_t)(end - space));
    if (!close)
        return start;
    p = close + 1;
    return p < end && *p == ' ' ? p + 1 : p;
}

// `[rank0]:V1129 12:00:00.123456 4242 torch/_dynamo/output_graph.py:2417] [0/0] [__graph_code] `
const char *fx_log_prefix(const char *p, const char *end) {
    const char *start = p;
    if (p < end && *p == '\t')
        return p + 1;   // payload of a TORCH_TRACE file
    if (end - p > 6 && !strncmp(p, "[rank", 5)) {
        p = skip_digits(p + 5, end, 1);
        if (!p || end - p < 2 || p[0] != ']' || p[1] != ':')
            return start;
        p += 2;
    }
    if (p < end && *p == '[') {
        const char *behind = old_prefix(p, end);
        return behind == p ? start : behind;
    }
    if (end - p < 30 || !strchr("VDIWEC", *p) || !(p = skip_digits(p + 1, end, 4)) || *p != ' ')
        return start;
    const char *close = memchr(p, ']', (size_t)(end - p));
    const char *colon = close;
    while (colon && colon > p && isdigit((unsigned char)colon[-1]))
        colon--;
    if (!colon || colon == close || colon[-1] != ':')
        return start;
    p = close + 1;
    while (end - p > 1 && p[0] == ' ' && p[1] == '[') {
        close = memchr(p, ']', (size_t)(end - p));
        if (!close || memchr(p + 1, ' ', (size_t)(close - p - 1)))
            break;
        p = close + 1;
    }
    return p < end && *p == ' ' ? p + 1 : p;
}

static void split_lines(Scan *r, Str text) {
    int n = 1;
    for (size_t i = 0; i < text.len; i++)
        n += text.ptr[i] == '\n';
    r->lines = ARENA_ARRAY(r->arena, n, TextLine);
    const char *p = text.ptr, *end = text.ptr + text.len;
    while (p < end) {
        const char *stop = memchr(p, '\n', (size_t)(end - p));
        if (!stop)
            stop = end;
        r->lines[r->n_lines++] = (TextLine){p, fx_log_prefix(p, stop), stop};
        p = stop + 1;
    }
}

void scan_init(Scan *r, Arena *a, Arena *tmp, Sym *sym, const char *file, Str text, Diag *d) {
    *r = (Scan){.arena = a, .tmp = tmp, .sym = sym, .diag = d, .file = file};
    r->scope.arena = r->annotations.arena = r->files.arena = a;
    split_lines(r, text);
    scan_goto(r, 0);
}

void scan_goto(Scan *r, int line) {
    static const TextLine none = {"", "", ""};
    r->line = line;
    r->nest = 0;
    r->p = (line < r->n_lines ? &r->lines[line] : &none)->text;
}

bool scan_more(const Scan *r) {
    return r->line < r->n_lines;
}

static const char *line_end(const Scan *r) {
    return scan_more(r) ? r->lines[r->line].end : r->p;
}

int line_indent(const TextLine *l) {
    const char *p = l->text;
    while (p < l->end && *p == ' ')
        p++;
    return (int)(p - l->text);
}

bool line_blank(const TextLine *l) {
    const char *p = l->text;
    while (p < l->end && isspace((unsigned char)*p))
        p++;
    return p == l->end;
}

bool line_starts(const TextLine *l, const char *text) {
    const char *p = l->text + line_indent(l);
    size_t len = strlen(text);
    return (size_t)(l->end - p) >= len && !memcmp(p, text, len);
}

Place scan_place(const Scan *r, const char *at) {
    Place place = scan_line(r);
    if (!scan_more(r))
        return place;
    const TextLine *l = &r->lines[r->line];
    place.col = (int)(at - l->full) + 1;
    place.source = arena_strndup(r->tmp, l->full, (size_t)(l->end - l->full));
    return place;
}

Place scan_line(const Scan *r) {
    return (Place){.file = r->file, .line = r->lines_before + r->line + 1};
}

bool scan_fail(Scan *r, const char *fmt, ...) {
    if (r->failed)
        return false;
    r->failed = true;
    va_list args;
    va_start(args, fmt);
    diag_error(r->diag, scan_place(r, r->p), "%s", arena_vprintf(r->tmp, fmt, args))->hint =
        "a graph is read as PyTorch prints it, one statement a line: was the text cut, wrapped or "
        "edited?";
    va_end(args);
    return false;
}

void scan_space(Scan *r) {
    for (;;) {
        const char *end = line_end(r);
        while (r->p < end && isspace((unsigned char)*r->p))
            r->p++;
        if (r->nest <= 0 || !scan_more(r) || (r->p < end && *r->p != '#') ||
            r->line + 1 >= r->n_lines)
            return;
        int nest = r->nest;
        scan_goto(r, r->line + 1);
        r->nest = nest;
    }
}

bool scan_done(Scan *r) {
    const char *end = line_end(r);
    while (r->p < end && isspace((unsigned char)*r->p))
        r->p++;
    return r->p >= end;
}

bool scan_is(Scan *r, const char *text) {
    scan_space(r);
    size_t len = strlen(text);
    return (size_t)(line_end(r) - r->p) >= len && !memcmp(r->p, text, len);
}

bool scan_take(Scan *r, const char *text) {
    if (!scan_is(r, text))
        return false;
    r->p += strlen(text);
    return true;
}

bool scan_expect(Scan *r, const char *text) {
    if (r->failed)
        return false;
    if (scan_take(r, text))
        return true;
    const char *end = line_end(r);
    if (r->p >= end)
        return scan_fail(r, "the line ends where `%s` is expected", text);
    size_t len = scan_word_at(r, r->p);
    return scan_fail(r, "`%.*s` where `%s` is expected", (int)(len ? len : 1), r->p, text);
}

static bool word_char(char c, bool first) {
    unsigned char u = (unsigned char)c;
    return isalpha(u) || u == '_' || u >= 0x80 || (!first && isdigit(u));
}

size_t scan_word_at(const Scan *r, const char *from) {
    const char *p = from, *end = line_end(r);
    while (p < end && word_char(*p, p == from))
        p++;
    return (size_t)(p - from);
}

const char *scan_word(Scan *r) {
    scan_space(r);
    size_t len = scan_word_at(r, r->p);
    if (!len)
        return NULL;
    const char *word = arena_strndup(r->tmp, r->p, len);
    r->p += len;
    return word;
}
