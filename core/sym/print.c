// print.c: expressions as PyTorch prints them (sympy's StrPrinter and srepr). Parentheses follow
// sympy's precedences, of which PyTorch's functions have odd ones: FloorDiv prints its own pair
// and, as an argument of a sum, gets another.
#include "core/sym/expr.h"

#include <inttypes.h>
#include <string.h>

enum {
    PREC_none = 0,
    PREC_relation = 35,
    PREC_or = 36,
    PREC_and = 38,
    PREC_sum = 40,
    PREC_product = 50,
    PREC_power = 60,
    PREC_not = 100,
    PREC_atom = 1000
};

static void print(Buf *b, const Expr *e);

// In parentheses if e binds weaker than the place, or (strict) as weak.
static void print_in(Buf *b, const Expr *e, int place, bool strict) {
    int p = expr_precedence(e);
    bool parens = strict ? p < place : p <= place;
    if (parens)
        buf_putc(b, '(');
    print(b, e);
    if (parens)
        buf_putc(b, ')');
}

static void print_joined(Buf *b, const Expr *const args[], int n, const char *between, int place) {
    for (int i = 0; i < n; i++) {
        if (i)
            buf_puts(b, between);
        print_in(b, args[i], place, false);
    }
}

static void print_sum(Buf *b, const Expr *e) {
    const Expr *const *terms = expr_ordered(e);
    for (int i = 0; i < e->n; i++) {
        size_t start = b->len;
        print_in(b, terms[i], PREC_sum, true);
        bool minus = b->len > start && b->data[start] == '-';
        if (!i)
            continue;
        // The term's own minus sign becomes the operator.
        Arena tmp = {0};
        char *text = arena_strndup(&tmp, b->data + start + minus, b->len - start - minus);
        buf_truncate(b, start);
        buf_puts(b, minus ? " - " : " + ");
        buf_puts(b, text);
        arena_free(&tmp);
    }
}

static void print_product(Buf *b, const Expr *e) {
    const Expr *rest;
    int64_t k = term_split(e, &rest);
    if (k < 0)
        buf_putc(b, '-');
    if (k != 1 && k != -1)
        buf_printf(b, "%" PRIu64 "*", k < 0 ? -(uint64_t)k : (uint64_t)k);
    if (rest->kind == SYM_mul)
        print_joined(b, expr_ordered(rest), rest->n, "*", PREC_product);
    else
        print_in(b, rest, PREC_product, false);
}

static void print_call(Buf *b, const char *name, const Expr *e) {
    buf_puts(b, name);
    buf_putc(b, '(');
    print_joined(b, expr_ordered(e), e->n, ", ", PREC_none);
    buf_putc(b, ')');
}

static void print_binary(Buf *b, const Expr *e, const char *operator, int place) {
    print_in(b, e->args[0], place, false);
    buf_puts(b, operator);
    print_in(b, e->args[1], place, false);
}

static const char *relation(SymKind kind) {
    return kind == SYM_lt ? " < " : kind == SYM_le ? " <= " : kind == SYM_gt ? " > " : " >= ";
}

static void print(Buf *b, const Expr *e) {
    switch ((SymKind)e->kind) {
    case SYM_int:
        buf_printf(b, "%" PRId64, e->value);
        return;
    case SYM_symbol:
        buf_puts(b, e->name);
        return;
    case SYM_true:
    case SYM_false:
        buf_puts(b, e->kind == SYM_true ? "True" : "False");
        return;
    case SYM_inf:
    case SYM_overflow:
        buf_puts(b, sym_kinds[e->kind].printed);
        return;
    case SYM_add:
        print_sum(b, e);
        return;
    case SYM_mul:
        print_product(b, e);
        return;
    case SYM_pow:
        print_binary(b, e, "**", PREC_power);
        return;
    case SYM_floordiv:
    case SYM_cleandiv:
        buf_putc(b, '(');
        print_binary(b, e, "//", PREC_atom - 1);
        buf_putc(b, ')');
        return;
    case SYM_identity:
        buf_putc(b, '(');
        print(b, e->args[0]);
        buf_putc(b, ')');
        return;
    case SYM_lt:
    case SYM_le:
    case SYM_gt:
    case SYM_ge:
        print_binary(b, e, relation((SymKind)e->kind), PREC_relation);
        return;
    case SYM_and:
        print_joined(b, expr_ordered(e), e->n, " & ", PREC_and);
        return;
    case SYM_or:
        print_joined(b, expr_ordered(e), e->n, " | ", PREC_or);
        return;
    case SYM_not:
        buf_putc(b, '~');
        print_in(b, e->args[0], PREC_not, false);
        return;
    default:
        print_call(b, sym_kinds[e->kind].printed, e);
    }
}

void sym_print(Buf *b, const Expr *e) {
    print(b, e);
}

static void print_bracketed(Buf *b, const Expr *const e[], int n, char open, char close) {
    buf_putc(b, open);
    for (int i = 0; i < n; i++) {
        if (i)
            buf_puts(b, ", ");
        print(b, e[i]);
    }
    if (n == 1 && open == '(')
        buf_putc(b, ',');
    buf_putc(b, close);
}

void sym_print_list(Buf *b, const Expr *const e[], int n) {
    print_bracketed(b, e, n, '[', ']');
}

void sym_print_tuple(Buf *b, const Expr *const e[], int n) {
    print_bracketed(b, e, n, '(', ')');
}

const char *sym_str(Arena *a, const Expr *e) {
    Buf b = {.arena = a};
    print(&b, e);
    return buf_str(&b);
}

static void print_srepr_symbol(Buf *b, const Expr *e) {
    static const char *const facts[] = {[ASSUME_any] = "",
                                        [ASSUME_nonneg] = ", nonnegative=True",
                                        [ASSUME_pos] = ", positive=True"};
    buf_puts(b, "Symbol(");
    buf_py_str(b, e->name);
    buf_printf(b, ", integer=True%s)", facts[e->assume]);
}

static const char *srepr_name(SymKind kind) {
    return kind == SYM_eq ? "Equality" : kind == SYM_ne ? "Unequality" : sym_kinds[kind].printed;
}

void sym_print_srepr(Buf *b, const Expr *e) {
    if (e->kind == SYM_int) {
        buf_printf(b, "Integer(%" PRId64 ")", e->value);
    } else if (e->kind == SYM_symbol) {
        print_srepr_symbol(b, e);
    } else if (!e->n) {
        buf_puts(b, sym_kinds[e->kind].printed);
    } else {
        buf_puts(b, srepr_name((SymKind)e->kind));
        buf_putc(b, '(');
        const Expr *const *args =
            e->kind == SYM_add || e->kind == SYM_mul ? expr_ordered(e) : e->args;
        for (int i = 0; i < e->n; i++) {
            if (i)
                buf_puts(b, ", ");
            // sympy takes the sign out of a product's coefficient as a factor of its own.
            if (!i && e->kind == SYM_mul && e->value < -1 && e->value > INT64_MIN)
                buf_printf(b, "Integer(-1), Integer(%" PRIu64 ")", -(uint64_t)e->value);
            else
                sym_print_srepr(b, args[i]);
        }
        buf_putc(b, ')');
    }
}
