// sched_read.c: the cursor under the readers of loop IR dumps: words, quoted names, expressions,
// ranges. The first failure is told with its place; after it everything reads as nothing.
#include "core/inductor/sched_read.h"

#include <string.h>

typedef VEC(const Expr *) ExprVec;

static Place place_of(const Reader *r, const char *p) {
    int line = 1;
    const char *begin = r->start;
    for (const char *q = r->start; q < p && *q; q++)
        if (*q == '\n') {
            line++;
            begin = q + 1;
        }
    const char *end = strchr(begin, '\n');
    size_t len = end ? (size_t)(end - begin) : strlen(begin);
    return (Place){.file = r->file,
                   .line = line,
                   .col = (int)(p - begin) + 1,
                   .source = arena_strndup(r->arena, begin, len < 400 ? len : 400)};
}

void read_fail(Reader *r, const char *fmt, ...) {
    if (r->failed)
        return;
    r->failed = true;
    va_list args;
    va_start(args, fmt);
    const char *text = arena_vprintf(r->arena, fmt, args);
    va_end(args);
    diag_error(r->diag, place_of(r, r->p), "%s", text);
}

bool read_at(const Reader *r, const char *text) {
    return !r->failed && strncmp(r->p, text, strlen(text)) == 0;
}

bool read_try(Reader *r, const char *text) {
    if (!read_at(r, text))
        return false;
    r->p += strlen(text);
    return true;
}

void read_want(Reader *r, const char *text) {
    if (r->failed || read_try(r, text))
        return;
    Buf b = {.arena = r->arena};
    buf_py_str(&b, text);
    read_fail(r, "expected %s", buf_str(&b));
}

void read_blanks(Reader *r) {
    while (!r->failed && (*r->p == ' ' || *r->p == '\n'))
        r->p++;
}

static bool is_word(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

const char *read_word(Reader *r) {
    size_t n = 0;
    while (!r->failed && is_word(r->p[n]))
        n++;
    if (n == 0) {
        read_fail(r, "expected a name");
        return "";
    }
    const char *word = arena_strndup(r->arena, r->p, n);
    r->p += n;
    return word;
}

const char *read_quoted(Reader *r) {
    char quote = r->failed ? 0 : *r->p;
    if (quote != '\'' && quote != '"') {
        read_fail(r, "expected a quoted name");
        return "";
    }
    size_t n = 1;
    while (r->p[n] && r->p[n] != quote && r->p[n] != '\n')
        n++;
    if (r->p[n] != quote) {
        read_fail(r, "the quote is not closed");
        return "";
    }
    const char *text = arena_strndup(r->arena, r->p + 1, n - 1);
    r->p += n + 1;
    return text;
}

// The expression ends at the first `,`, `:`, closing bracket or newline outside its own brackets.
static size_t expr_length(const char *p) {
    int depth = 0;
    size_t n = 0;
    for (; p[n] && p[n] != '\n'; n++) {
        if (depth == 0 && strchr(",:])}", p[n]))
            break;
        depth += (p[n] == '(' || p[n] == '[') - (p[n] == ')' || p[n] == ']');
    }
    return n;
}

const Expr *read_expr(Reader *r) {
    if (r->failed)
        return sym_int(r->sym, 0);
    size_t n = expr_length(r->p);
    Place at = {.file = r->file};
    int before = r->diag->n;
    const Expr *e = sym_parse(r->sym, arena_strndup(r->arena, r->p, n), at, r->diag);
    if (e) {
        r->p += n;
        return e;
    }
    r->failed = true;
    Place place = place_of(r, r->p);
    for (int i = before; i < r->diag->n; i++) {
        r->diag->at[i].line = place.line;
        r->diag->at[i].col = place.col;
        r->diag->at[i].source = place.source;
    }
    return sym_int(r->sym, 0);
}

int read_int(Reader *r) {
    int64_t v = 0;
    const char *p = r->p;
    while (!r->failed && *p >= '0' && *p <= '9' && v < 100000000)
        v = v * 10 + (*p++ - '0');
    if (p == r->p)
        read_fail(r, "expected a number");
    else
        r->p = p;
    return (int)v;
}

bool read_bool(Reader *r) {
    if (read_try(r, "True"))
        return true;
    read_want(r, "False");
    return false;
}

DType read_dtype(Reader *r) {
    read_want(r, "torch.");
    const char *name = read_word(r);
    DType d = dtype_from_torch(name);
    if (d == DT_none && !r->failed)
        read_fail(r, "torch.%s is not a dtype", name);
    return d;
}

void read_ranges(Reader *r, const Expr ***vars, const Expr ***sizes, int *n) {
    ExprVec v = {0}, s = {0};
    read_want(r, "{");
    while (!r->failed && !read_try(r, "}")) {
        if (v.n)
            read_want(r, ", ");
        vec_push(r->arena, &v, sym_symbol(r->sym, read_word(r)));
        read_want(r, ": ");
        vec_push(r->arena, &s, read_expr(r));
    }
    *vars = v.at;
    *sizes = s.at;
    *n = v.n;
}

// `[1, s77]`, `(1, 2)`, `(1,)`
int read_exprs(Reader *r, const Expr ***out, bool *tuple) {
    ExprVec v = {0};
    *tuple = read_try(r, "(");
    if (!*tuple)
        read_want(r, "[");
    const char *close = *tuple ? ")" : "]";
    while (!r->failed && !read_try(r, close)) {
        vec_push(r->arena, &v, read_expr(r));
        if (!read_try(r, ", "))
            read_try(r, ",");
    }
    *out = v.at;
    return v.n;
}
