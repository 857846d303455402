// parse.c: reads expressions in sympy's str form. The grammar is Python's:
//   or: and {"|" and}   and: not {"&" not}   not: "~" not | relation
//   relation: sum [("<" | "==" …) sum]
//   sum: product {("+" | "-") product}   product: unary {("*" | "//" | "%" | "/") unary}
//   unary: "-" unary | power   power: atom ["**" unary]
//   atom: number | name | name "(" or {"," or} ")" | "(" or ")"
// sympy never prints needless parentheses, so a pair that its place does not call for is what
// Identity leaves: `48*((indirect0 - 32))` is 48*Identity(indirect0 - 32), and so is a pair around
// the whole text.
#include "core/sym/expr.h"
#include "core/sym/reader.h"

#include <ctype.h>
#include <string.h>

typedef struct Operand {
    const Expr *e;
    bool group; // stood in parentheses that may mean Identity
    bool quotient; // written as a//b at this level: the parentheses around it are its own
    bool minus; // a sign in front, still to be applied
    int written; // precedence of the operator that it was written with, 0: none
} Operand;

static Operand read_or(Reader *r);
static Operand read_unary(Reader *r);

static Operand operand(const Expr *e) {
    return (Operand){.e = e};
}

static Operand composed(const Expr *e, SymKind kind) {
    return (Operand){.e = e, .written = sym_kinds[kind].precedence};
}

// The operand's expression for a place where anything of precedence up to `place` needs
// parentheses.
static const Expr *settle(Reader *r, Operand o, int place) {
    bool is_bool = sym_kinds[o.e->kind].value == VALUE_bool;
    if (!o.group || is_bool || expr_precedence(o.e) <= place || (o.written && o.written <= place))
        return o.e;
    return sym_identity(r->s, o.e);
}

// The same where only a number makes sense.
static const Expr *number(Reader *r, Operand o, int place) {
    return reader_want(r, settle(r, o, place), false);
}

static const Expr *signed_value(Reader *r, Operand o, int place) {
    const Expr *e = number(r, o, place);
    return o.minus ? sym_neg(r->s, e) : e;
}

static Operand read_group(Reader *r) {
    if (!reader_enter(r))
        return operand(r->s->overflow);
    Operand inner = read_or(r);
    reader_leave(r);
    reader_expect(r, ")");
    if (inner.quotient)
        return operand(inner.e);
    return (Operand){.e = settle(r, inner, 0), .group = true, .written = inner.written};
}

static const Expr *read_argument(Reader *r) {
    return settle(r, read_or(r), 0);
}

static Operand read_name(Reader *r) {
    const char *name = r->p;
    size_t len = reader_name(r);
    if (reader_take(r, "("))
        return operand(reader_call(r, read_argument, name, len));
    const Expr *constant = reader_constant(r, name, len);
    return operand(constant ? constant : sym_symbol(r->s, arena_strndup(r->tmp, name, len)));
}

static Operand read_atom(Reader *r) {
    reader_space(r);
    if (reader_take(r, "("))
        return read_group(r);
    if (isdigit((unsigned char)*r->p))
        return operand(reader_number(r, false));
    if (isalpha((unsigned char)*r->p) || *r->p == '_')
        return read_name(r);
    reader_fail(r, r->p,
                *r->p ? "expected a number, a name or '(', found '%c'"
                      : "expected a number, a name or '('",
                *r->p);
    return operand(r->s->overflow);
}

static Operand read_power(Reader *r) {
    Operand base = read_atom(r);
    if (!reader_take(r, "**"))
        return base;
    if (!reader_enter(r))
        return operand(r->s->overflow);
    const Expr *a = number(r, base, sym_kinds[SYM_pow].precedence);
    const Expr *b = signed_value(r, read_unary(r), sym_kinds[SYM_pow].precedence);
    reader_leave(r);
    return composed(
        sym_make(r->s, b->kind == SYM_int ? SYM_pow : SYM_powint, (const Expr *const[]){a, b}, 2),
        SYM_pow);
}

static Operand read_unary(Reader *r) {
    if (!reader_take(r, "-"))
        return read_power(r);
    reader_space(r);
    if (isdigit((unsigned char)*r->p) && !reader_power_follows(r))
        return operand(reader_number(r, true));
    if (!reader_enter(r))
        return operand(r->s->overflow);
    Operand o = read_unary(r);
    reader_leave(r);
    o.minus = !o.minus;
    return o;
}

// Factors are gathered, so that 2*(x + y)*z is one product of three, as it was when it was printed.
static Operand read_product(Reader *r) {
    const int place = sym_kinds[SYM_mul].precedence, quotient_place = 999;
    VEC(const Expr *) factors = {0};
    Operand o = read_unary(r);
    // A sign in front is one more factor: -(x - 3)*y is the product of -1, x - 3 and y.
    if (o.minus) {
        vec_push(r->tmp, &factors, sym_int(r->s, -1));
        vec_push(r->tmp, &factors, number(r, o, place));
    }
    static const struct {
        const char *text;
        SymKind kind;
    } divisions[] = {{"//", SYM_floordiv}, {"%", SYM_pymod}, {"/", SYM_inttruediv}};
    for (bool more = true; more && r->ok;) {
        more = false;
        if (reader_take_star(r)) {
            more = reader_count(r, factors.n);
            if (!factors.n)
                vec_push(r->tmp, &factors, number(r, o, place));
            vec_push(r->tmp, &factors, signed_value(r, read_unary(r), place));
            continue;
        }
        for (int i = 0; i < COUNT(divisions) && !more; i++) {
            if (!reader_take(r, divisions[i].text))
                continue;
            const Expr *a =
                factors.n ? sym_product(r->s, factors.at, factors.n) : number(r, o, quotient_place);
            const Expr *b = signed_value(r, read_unary(r), quotient_place);
            factors.n = 0;
            o = operand(sym_make(r->s, divisions[i].kind, (const Expr *const[]){a, b}, 2));
            o.quotient = divisions[i].kind == SYM_floordiv;
            more = true;
        }
    }
    return factors.n ? composed(sym_product(r->s, factors.at, factors.n), SYM_mul) : o;
}

static Operand read_sum(Reader *r) {
    const int place = sym_kinds[SYM_add].precedence - 1;
    Operand o = read_product(r);
    VEC(const Expr *) terms = {0};
    for (;;) {
        bool minus = reader_take(r, "-");
        if (!r->ok || (!minus && !reader_take(r, "+")))
            break;
        if (!terms.n)
            vec_push(r->tmp, &terms, number(r, o, place));
        // Behind a minus stands a factor of -1.
        const Expr *e = number(r, read_product(r), minus ? sym_kinds[SYM_mul].precedence : place);
        vec_push(r->tmp, &terms, minus ? sym_neg(r->s, e) : e);
    }
    return terms.n ? composed(sym_sum(r->s, terms.at, terms.n), SYM_add) : o;
}

static Operand read_relation(Reader *r) {
    static const struct {
        const char *text;
        SymKind kind;
    } relations[] = {{"==", SYM_eq}, {"!=", SYM_ne}, {"<=", SYM_le},
                     {">=", SYM_ge}, {"<", SYM_lt},  {">", SYM_gt}};
    const int place = sym_kinds[SYM_lt].precedence;
    Operand o = read_sum(r);
    for (int i = 0; i < COUNT(relations); i++) {
        if (!reader_take(r, relations[i].text))
            continue;
        const Expr *a = number(r, o, place), *b = number(r, read_sum(r), place);
        return operand(sym_cmp(r->s, relations[i].kind, a, b));
    }
    return o;
}

static Operand read_not(Reader *r) {
    if (!reader_take(r, "~"))
        return read_relation(r);
    if (!reader_enter(r))
        return operand(r->s->overflow);
    const Expr *e = read_not(r).e;
    reader_leave(r);
    return operand(sym_not(r->s, reader_want(r, e, true)));
}

static Operand read_and(Reader *r) {
    Operand o = read_not(r);
    for (int n = 0; r->ok && reader_take(r, "&") && reader_count(r, n); n++)
        o = operand(sym_and(r->s, reader_want(r, o.e, true), reader_want(r, read_not(r).e, true)));
    return o;
}

static Operand read_or(Reader *r) {
    Operand o = read_and(r);
    for (int n = 0; r->ok && reader_take(r, "|") && reader_count(r, n); n++)
        o = operand(sym_or(r->s, reader_want(r, o.e, true), reader_want(r, read_and(r).e, true)));
    return o;
}

const Expr *sym_parse_prefix(Sym *s, const char **text, Place at, Diag *d) {
    Arena tmp = {0};
    Reader r;
    reader_init(&r, s, &tmp, *text, at, d);
    const Expr *e = settle(&r, read_or(&r), 0);
    *text = r.p;
    arena_free(&tmp);
    return r.ok ? e : NULL;
}

const Expr *sym_parse(Sym *s, const char *text, Place at, Diag *d) {
    const char *p = text;
    const Expr *e = sym_parse_prefix(s, &p, at, d);
    while (e && isspace((unsigned char)*p))
        p++;
    if (e && *p) {
        diag_error(d, at.col ? (Place){at.file, at.line, at.col + (int)(p - text), at.source} : at,
                   "expected the end of the expression, found '%.20s'", p);
        return NULL;
    }
    return e;
}
