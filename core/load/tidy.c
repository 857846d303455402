// tidy.c: what happens to a printed graph on its way into a file, undone: characters that an editor
// or a web page put in place of others, a text as repr() shows it, tabs for indentation, what
// another program wrote before each line (`worker-0 | `, a time, a number, `E   `), the lines of
// other ranks in between, lines broken at a terminal's edge. Lines keep their numbers.
#include <ctype.h>
#include <string.h>

#include "core/load/load_impl.h"

static const char class_end[] = "(torch.nn.Module):";

static const char *find(Str text, const char *what) {
    return memmem(text.ptr, text.len, what, strlen(what));
}

static const char *line_end(const char *p, const char *end) {
    const char *stop = memchr(p, '\n', (size_t)(end - p));
    return stop ? stop : end;
}

static const char *line_start(const char *begin, const char *p) {
    while (p > begin && p[-1] != '\n')
        p--;
    return p;
}

static Str done(const Buf *b) {
    return (Str){buf_str(b), b->len};
}

// ---- characters

typedef struct Typed {
    const char *bytes; // UTF-8
    char c;
} Typed;

static const Typed typed[] = {
    {"\xc2\xa0", ' '},      {"\xe2\x80\x9c", '"'},  {"\xe2\x80\x9d", '"'}, {"\xe2\x80\x98", '\''},
    {"\xe2\x80\x99", '\''}, {"\xe2\x80\x8b", '\0'}, // no width: nothing
};

static Str plain_characters(Arena *a, Str text) {
    bool any = false;
    for (int i = 0; i < COUNT(typed); i++)
        any |= find(text, typed[i].bytes) != NULL;
    if (!any)
        return text;
    Buf b = {.arena = a};
    for (const char *p = text.ptr, *end = p + text.len; p < end;) {
        size_t n = 0;
        for (int i = 0; i < COUNT(typed) && !n; i++) {
            size_t len = strlen(typed[i].bytes);
            if ((size_t)(end - p) < len || memcmp(p, typed[i].bytes, len) != 0)
                continue;
            n = len;
            if (typed[i].c)
                buf_putc(&b, typed[i].c);
        }
        if (!n)
            buf_putc(&b, *p);
        p += n ? n : 1;
    }
    return done(&b);
}

// ---- `'class GraphModule(torch.nn.Module):\n    def forward(…'`, one line

static Str without_escapes(Arena *a, Str text) {
    const char *def = find(text, "\\n    def forward(");
    if (!def || find(text, "\n    def forward("))
        return text;
    const char *p = line_start(text.ptr, def), *end = line_end(def, text.ptr + text.len);
    char quote = 0;
    for (; p < end && !quote; p++)
        quote = *p == '"' || *p == '\'' ? *p : '\0';
    Buf b = {.arena = a};
    for (; p < end && *p != quote; p++) {
        char c = *p;
        if (c == '\\' && p + 1 < end) {
            c = *++p;
            c = c == 'n' ? '\n' : c == 't' ? '\t' : c;
        }
        buf_putc(&b, c);
    }
    return done(&b);
}

// ---- a tab a level

static Str without_tabs(Arena *a, Str text) {
    const char *def = find(text, ":\n\tdef forward(");
    if (!def || *line_start(text.ptr, def) == '\t')
        return text;
    Buf b = {.arena = a};
    bool start = true;
    for (const char *p = text.ptr, *end = p + text.len; p < end; p++) {
        if (start && *p == '\t') {
            buf_puts(&b, "    ");
            continue;
        }
        start = *p == '\n';
        buf_putc(&b, *p);
    }
    return done(&b);
}

// ---- what another program wrote before each line

// Where the graph's own line begins, if the first class of the text has something before it that
// PyTorch does not write; NULL if not.
static const char *behind_margin(Str text, const char **line) {
    const char *head = find(text, class_end), *end = text.ptr + text.len;
    if (!head)
        return NULL;
    *line = line_start(text.ptr, head);
    const char *own = head;
    while (own - *line >= 6 && memcmp(own - 6, "class ", 6) != 0)
        own--;
    own -= own - *line >= 6 ? 6 : 0;
    const char *blank = *line + strspn(*line, " \t");
    if (own == *line || blank >= own || fx_log_prefix(*line, end) > *line)
        return NULL;
    // `<eval_with_key>.0 class`, `torch/fx/_lazy_graph_module.py class`
    const char *space = own - 1;
    while (space > *line && space[-1] != ' ')
        space--;
    size_t word = (size_t)(own - 1 - space);
    if (word > 2 && (*space == '<' || (word > 3 && !memcmp(own - 4, ".py", 3))))
        own = space;
    return own > blank ? own : NULL;
}

// `2025-03-04T12:00:00.1234567Z `, and what is before it; 0 if it is none.
static size_t time_before(const char *p, const char *end) {
    const char *z = p;
    while (end - z > 20 && !(z[4] == '-' && z[7] == '-' && z[13] == ':' && z[16] == ':' &&
                             isdigit((unsigned char)*z)))
        z++;
    if (end - z <= 20)
        return 0;
    z += 19;
    z += strspn(z, "0123456789.,");
    z += *z == 'Z';
    return z < end && *z == ' ' ? (size_t)(z + 1 - p) : 0;
}

typedef struct Margin {
    const char *text; // what is the same on all lines: its first `width` bytes
    size_t width;
    bool number, time; // a number of the line is before it; it ends in a time
} Margin;

// How much of this line is the margin.
static size_t margin_of(const Margin *m, const char *p, const char *end) {
    size_t len = (size_t)(end - p), blank = strspn(p, " \t"), same = 0;
    if (m->time)
        return time_before(p, end);
    if (m->number) {
        size_t digits = strspn(p + blank, "0123456789");
        p += blank + digits;
        len -= blank + digits;
        while (same < m->width && same < len && p[same] == m->text[same])
            same++;
        return digits && (same == m->width || same == len) ? blank + digits + same : 0;
    }
    while (same < m->width && same < len && p[same] == m->text[same])
        same++;
    // A line of nothing else may lack its last blanks.
    return same == m->width || same == len ? same : 0;
}

static Str without_margin(Arena *a, Str text) {
    const char *line = NULL, *own = behind_margin(text, &line), *end = text.ptr + text.len;
    if (!own)
        return text;
    Margin m = {.text = line, .width = (size_t)(own - line)};
    const char *word = line + strspn(line, " ");
    m.time = time_before(line, own + (own < end)) > 0;
    m.number = !m.time && isdigit((unsigned char)*word) && own - line < 12;
    if (m.number) {
        m.text = word + strspn(word, "0123456789");
        m.width = m.text < own ? (size_t)(own - m.text) : 0;
    }
    // The class may be indented itself: as far as its `def` shows.
    const char *def = line_end(own, end);
    def += def < end;
    if (!m.time && !m.number)
        while (m.width && (def >= end || margin_of(&m, def, line_end(def, end)) < m.width))
            m.width--;
    if (!m.width && !m.time && !m.number)
        return text;
    Buf b = {.arena = a};
    for (const char *p = text.ptr; p < end;) {
        const char *stop = line_end(p, end);
        size_t skip = margin_of(&m, p, stop);
        buf_add(&b, p + skip, (size_t)(stop - p) - skip);
        if (stop < end)
            buf_putc(&b, '\n');
        p = stop + 1;
    }
    return done(&b);
}

// ---- several ranks

static int rank_of(const char *p, const char *end) {
    const char *q = p + 5;
    int rank = 0;
    if (end - p < 8 || memcmp(p, "[rank", 5) != 0 || !isdigit((unsigned char)*q))
        return -1;
    for (; q < end && isdigit((unsigned char)*q) && rank < 1000000; q++)
        rank = rank * 10 + (*q - '0');
    return rank;
}

// Processes write one after the other, or line by line in between. All compile the same graphs: of
// mixed lines those of the first rank stay.
static Str one_rank(Arena *a, Str text) {
    int first = -1, last = -1;
    bool mixed = false;
    const char *end = text.ptr + text.len;
    if (!find(text, "[rank"))
        return text;
    for (const char *p = text.ptr; p < end; p = line_end(p, end) + 1) {
        const char *stop = line_end(p, end), *body = fx_log_prefix(p, stop);
        int rank = rank_of(p, stop);
        if (rank < 0)
            continue;
        first = first < 0 ? rank : first;
        mixed |= last >= 0 && rank != last && stop - body > 4 && !memcmp(body, "    ", 4);
        last = rank;
    }
    if (!mixed)
        return text;
    Buf b = {.arena = a};
    for (const char *p = text.ptr; p < end; p = line_end(p, end) + 1) {
        const char *stop = line_end(p, end);
        int rank = rank_of(p, stop);
        if (rank < 0 || rank == first)
            buf_add(&b, p, (size_t)(stop - p));
        if (stop < end)
            buf_putc(&b, '\n');
    }
    return done(&b);
}

// ---- lines broken at a terminal's edge

// A text in quotes or a bracket is open where the line ends.
static bool is_open(const char *p, const char *end) {
    int depth = 0;
    char quote = 0;
    for (; p < end; p++) {
        if (quote)
            quote = *p == quote ? '\0' : quote;
        else if (*p == '#')
            return false;
        else if (*p == '"' || *p == '\'')
            quote = *p;
        else
            depth += strchr("([{", *p) ? 1 : strchr(")]}", *p) ? -1 : 0;
    }
    return quote || depth > 0;
}

// A statement or the definition; a tree of modules has none.
static bool is_statement(Str line) {
    static const char *const marks[] = {" = ", "def forward(", " return "};
    for (int i = 0; i < COUNT(marks); i++)
        if (find(line, marks[i]))
            return true;
    return false;
}

// What stands on the next line can only be the rest of this one.
static bool goes_on(const char *p, const char *stop, const char *end) {
    if (stop >= end || !is_statement((Str){p, (size_t)(stop - p)}))
        return false;
    const char *next = stop + 1, *next_end = line_end(next, end);
    if (next == next_end || str_starts(next, "    "))
        return false;
    if (is_open(p, stop) || strchr(":;,)] =", *next) || strchr("=,.", stop[-1]))
        return true;
    // `x = None` behind a statement
    return next_end - next >= 4 && !memcmp(next_end - 4, "None", 4) &&
           memmem(p, (size_t)(stop - p), ";  ", 3);
}

enum { NARROW = 40 }; // no terminal is narrower

// Lines as long as the longest, at least one of them open at its end or followed by what begins no
// line: each goes on in the next line. A statement that fits exactly is followed by an indentation.
static Str unbroken(Arena *a, Str text) {
    const char *end = text.ptr + text.len, *def = find(text, "def forward(");
    size_t width = 0;
    for (const char *p = text.ptr; p < end; p = line_end(p, end) + 1)
        if ((size_t)(line_end(p, end) - p) > width)
            width = (size_t)(line_end(p, end) - p);
    bool broken = false;
    for (const char *p = text.ptr; p < end && def && width > NARROW && !broken;
         p = line_end(p, end) + 1) {
        const char *stop = line_end(p, end), *own = fx_log_prefix(p, stop);
        broken = (size_t)(stop - p) == width && goes_on(own, stop, end);
    }
    if (!broken)
        return text;
    Buf b = {.arena = a};
    int joined = 0;
    for (const char *p = text.ptr; p < end; p = line_end(p, end) + 1) {
        const char *stop = line_end(p, end);
        buf_add(&b, p, (size_t)(stop - p));
        bool full = (size_t)(stop - p) == width && stop < end;
        if (full && stop[1] != '\n' && strncmp(stop + 1, "    ", 4) != 0 &&
            fx_log_prefix(stop + 1, line_end(stop + 1, end)) == stop + 1) {
            joined++;
            continue;
        }
        if (stop < end || joined)
            buf_fill(&b, '\n', 1 + joined);
        joined = 0;
    }
    return done(&b);
}

Str load_tidy(Arena *a, Str text) {
    static Str (*const steps[])(Arena *, Str) = {plain_characters, without_escapes, without_tabs,
                                                 without_margin,   one_rank,        unbroken};
    for (int i = 0; i < COUNT(steps) && text.len; i++)
        text = steps[i](a, text);
    return text;
}
