// srepr.c: reads sympy's srepr form, as ExportedProgram JSON holds it:
//   expr: "Integer(" number ")" | "Symbol('" name "'" {", " fact "=" bool} ")"
//         | name "(" expr {", " expr} ")"
//         | name | number
#include "core/sym/reader.h"

#include <ctype.h>
#include <string.h>

static const Expr *read_expr(Reader *r);

static bool is_name(const char *name, size_t len, const char *text) {
    return strlen(text) == len && !memcmp(name, text, len);
}

static const Expr *read_integer(Reader *r) {
    bool negative = reader_take(r, "-");
    reader_space(r);
    const Expr *e = reader_number(r, negative);
    reader_expect(r, ")");
    return e;
}

// The quoted name of a symbol; the quote that opens it has been taken.
static const char *read_quoted(Reader *r, char quote) {
    const char *start = r->p;
    size_t len = reader_name(r);
    if (!len || *r->p != quote || isdigit((unsigned char)*start) ||
        reader_constant(r, start, len)) {
        reader_fail(r, start, "expected the name of a symbol, found '%.20s'", start);
        return "";
    }
    r->p++;
    return arena_strndup(r->tmp, start, len);
}

static const Expr *read_symbol(Reader *r) {
    const char *name = reader_take(r, "'")    ? read_quoted(r, '\'')
                       : reader_take(r, "\"") ? read_quoted(r, '"')
                                              : "";
    if (!*name)
        reader_fail(r, r->p, "expected the quoted name of a symbol");
    Assume assume = ASSUME_any;
    while (r->ok && reader_take(r, ",")) {
        reader_space(r);
        const char *fact = r->p;
        size_t len = reader_name(r);
        reader_expect(r, "=");
        bool yes = reader_take(r, "True");
        if (!yes && !reader_take(r, "False"))
            reader_fail(r, r->p, "expected True or False after '%.*s='", (int)len, fact);
        if (yes && is_name(fact, len, "positive"))
            assume = ASSUME_pos;
        else if (yes && is_name(fact, len, "nonnegative") && assume == ASSUME_any)
            assume = ASSUME_nonneg;
    }
    reader_expect(r, ")");
    return r->ok ? expr_named(r->s, name, assume) : r->s->overflow;
}

static const Expr *read_expr(Reader *r) {
    reader_space(r);
    const char *name = r->p;
    if (reader_take(r, "-") || isdigit((unsigned char)*name)) {
        reader_space(r);
        return reader_number(r, *name == '-');
    }
    size_t len = reader_name(r);
    bool call = reader_take(r, "(");
    if (call && is_name(name, len, "Integer"))
        return read_integer(r);
    if (call && is_name(name, len, "Symbol"))
        return read_symbol(r);
    if (call && is_name(name, len, "IntInfinity")) {
        reader_expect(r, ")");
        return r->s->inf;
    }
    if (call)
        return reader_call(r, read_expr, name, len);
    const Expr *e = reader_constant(r, name, len);
    if (!e)
        reader_fail(r, name, "expected an expression such as Integer(2), found '%.20s'", name);
    return e ? e : r->s->overflow;
}

const Expr *sym_parse_srepr(Sym *s, const char *text, Place at, Diag *d) {
    Arena tmp = {0};
    Reader r;
    reader_init(&r, s, &tmp, text, at, d);
    const Expr *e = read_expr(&r);
    reader_space(&r);
    if (r.ok && r.p < r.end)
        reader_fail(&r, r.p, "expected the end of the expression, found '%.20s'", r.p);
    arena_free(&tmp);
    return r.ok ? e : NULL;
}
