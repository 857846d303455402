// reader.c: the cursor under the two expression parsers, and the names they know.
#include "core/sym/reader.h"

#include <ctype.h>
#include <string.h>

enum { DEPTH_LIMIT = 200, ARGS_LIMIT = 1000, TEXT_LIMIT = 1 << 18 };

void reader_init(Reader *r, Sym *s, Arena *tmp, const char *text, Place at, Diag *d) {
    size_t len = strnlen(text, TEXT_LIMIT + 1);
    *r = (Reader){.s = s,
                  .tmp = tmp,
                  .start = text,
                  .p = text,
                  .end = text + len,
                  .at = at,
                  .d = d,
                  .ok = true};
    if (len > TEXT_LIMIT)
        reader_fail(r, text, "an expression of more than %d bytes", TEXT_LIMIT);
}

void reader_fail(Reader *r, const char *where, const char *fmt, ...) {
    if (!r->ok)
        return;
    r->ok = false;
    Place at = r->at;
    if (at.col)
        at.col += (int)(where - r->start);
    va_list args;
    va_start(args, fmt);
    diag_error(r->d, at, "%s", arena_vprintf(r->tmp, fmt, args));
    va_end(args);
    r->p = r->end;
}

void reader_space(Reader *r) {
    while (r->p < r->end && isspace((unsigned char)*r->p))
        r->p++;
}

bool reader_take(Reader *r, const char *text) {
    reader_space(r);
    size_t len = strlen(text);
    if (!r->ok || (size_t)(r->end - r->p) < len || memcmp(r->p, text, len))
        return false;
    r->p += len;
    return true;
}

bool reader_take_star(Reader *r) {
    reader_space(r);
    if (r->p[0] != '*' || r->p[1] == '*')
        return false;
    return reader_take(r, "*");
}

void reader_expect(Reader *r, const char *text) {
    if (reader_take(r, text))
        return;
    if (*r->p)
        reader_fail(r, r->p, "expected '%s', found '%.20s'", text, r->p);
    else
        reader_fail(r, r->p, "expected '%s' at the end of the expression", text);
}

bool reader_enter(Reader *r) {
    if (++r->depth > DEPTH_LIMIT)
        reader_fail(r, r->p, "an expression nested deeper than %d", DEPTH_LIMIT);
    return r->ok;
}

void reader_leave(Reader *r) {
    r->depth--;
}

bool reader_count(Reader *r, int n) {
    if (n >= ARGS_LIMIT)
        reader_fail(r, r->p, "more than %d arguments", ARGS_LIMIT);
    return r->ok;
}

const Expr *reader_number(Reader *r, bool negative) {
    const char *start = r->p;
    int64_t v = 0;
    bool fits = true;
    for (; isdigit((unsigned char)*r->p); r->p++) {
        int digit = negative ? -(*r->p - '0') : *r->p - '0';
        fits = fits && !__builtin_mul_overflow(v, INT64_C(10), &v) &&
               !__builtin_add_overflow(v, digit, &v);
    }
    if (!fits)
        reader_fail(r, start, "%.*s does not fit in 64 bits",
                    (int)(r->p - start < 40 ? r->p - start : 40), start);
    else if (r->p == start)
        reader_fail(r, start, "expected a number");
    else if (*r->p == '.' || isalpha((unsigned char)*r->p) || *r->p == '_')
        reader_fail(r, start, "expected an integer, found '%.20s'", start);
    return r->ok ? sym_int(r->s, v) : r->s->overflow;
}

bool reader_power_follows(const Reader *r) {
    const char *p = r->p;
    while (isdigit((unsigned char)*p))
        p++;
    while (isspace((unsigned char)*p))
        p++;
    return p[0] == '*' && p[1] == '*';
}

size_t reader_name(Reader *r) {
    const char *start = r->p;
    while (isalnum((unsigned char)*r->p) || *r->p == '_')
        r->p++;
    return (size_t)(r->p - start);
}

static const struct {
    const char *name;
    SymKind kind;
} aliases[] = {
    {"Equality", SYM_eq}, {"Unequality", SYM_ne}, {"Lt", SYM_lt},   {"Le", SYM_le},
    {"Gt", SYM_gt},       {"Ge", SYM_ge},         {"min", SYM_min}, {"max", SYM_max},
    {"sym_min", SYM_min}, {"sym_max", SYM_max},
};

static bool same(const char *name, size_t len, const char *text) {
    return strlen(text) == len && !memcmp(name, text, len);
}

int reader_function(const char *name, size_t len) {
    for (int i = 0; i < SYM_n_kinds; i++)
        if (sym_kinds[i].n_args && same(name, len, sym_kinds[i].printed))
            return i;
    for (int i = 0; i < COUNT(aliases); i++)
        if (same(name, len, aliases[i].name))
            return (int)aliases[i].kind;
    return -1;
}

const Expr *reader_constant(Reader *r, const char *name, size_t len) {
    if (same(name, len, "True") || same(name, len, "true"))
        return r->s->yes;
    if (same(name, len, "False") || same(name, len, "false"))
        return r->s->no;
    if (same(name, len, "int_oo") || same(name, len, "oo"))
        return r->s->inf;
    return NULL;
}

const Expr *reader_want(Reader *r, const Expr *e, bool condition) {
    if ((sym_kinds[e->kind].value == VALUE_bool) == condition || is_poison(e))
        return e;
    reader_fail(r, r->p,
                condition ? "a number stands where a condition is expected"
                          : "a condition stands where a number is expected");
    return r->s->overflow;
}

static bool wants_condition(SymKind kind, int arg) {
    return kind == SYM_and || kind == SYM_or || kind == SYM_not || (kind == SYM_where && !arg);
}

const Expr *reader_make(Reader *r, const char *name, SymKind kind, const Expr *const args[],
                        int n) {
    int want = sym_kinds[kind].n_args;
    if (want >= 0 && n != want) {
        reader_fail(r, name, "%s takes %d arguments, found %d", sym_kinds[kind].printed, want, n);
        return r->s->overflow;
    }
    for (int i = 0; i < n; i++)
        reader_want(r, args[i], wants_condition(kind, i));
    return r->ok ? sym_make(r->s, kind, args, n) : r->s->overflow;
}

const Expr *reader_call(Reader *r, ReaderItem *item, const char *name, size_t len) {
    int kind = reader_function(name, len);
    if (kind < 0) {
        reader_fail(r, name, "unknown function %.*s", (int)len, name);
        return r->s->overflow;
    }
    if (!reader_enter(r))
        return r->s->overflow;
    VEC(const Expr *) args = {0};
    do {
        vec_push(r->tmp, &args, item(r));
    } while (reader_take(r, ",") && reader_count(r, args.n));
    reader_leave(r);
    reader_expect(r, ")");
    return reader_make(r, name, (SymKind)kind, args.at, args.n);
}
