// c_index.c: symbolic expressions and constants as C.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/inductor/cgen.h"

typedef struct Printer {
    CGen *g;
    Buf *out;
    CSymbolName *name_of;
    void *ctx;
} Printer;

static void print(Printer *p, const Expr *e);

static void print_joined(Printer *p, const Expr *e, const char *between) {
    buf_putc(p->out, '(');
    for (int i = 0; i < expr_n_args(e); i++) {
        if (i)
            buf_puts(p->out, between);
        print(p, expr_arg(e, i));
    }
    buf_putc(p->out, ')');
}

// f(a, f(b, c))
static void print_fold(Printer *p, const char *fn, const Expr *e) {
    int n = expr_n_args(e);
    for (int i = 0; i < n; i++) {
        if (i + 1 < n)
            buf_puts(p->out, fn);
        print(p, expr_arg(e, i));
        if (i + 1 < n)
            buf_puts(p->out, ", ");
    }
    buf_fill(p->out, ')', n - 1);
}

static bool is_not_negative(Printer *p, const Expr *e) {
    return sym_range(p->g->sym, e).lo >= 0;
}

// C's / and % agree with Python's on numbers that are not negative.
static void print_quotient(Printer *p, const Expr *a, const Expr *b, const char *op,
                           const char *fn) {
    bool plain = is_not_negative(p, a) && is_not_negative(p, b);
    buf_puts(p->out, plain ? "(" : fn);
    print(p, a);
    buf_puts(p->out, plain ? op : ", ");
    print(p, b);
    buf_putc(p->out, ')');
}

// (x // d) % m
static void print_modular(Printer *p, const Expr *e) {
    const Expr *quotient = sym_floordiv(p->g->sym, expr_arg(e, 0), expr_arg(e, 1));
    print_quotient(p, quotient, expr_arg(e, 2), " % ", "fx_remainder_i64(");
}

static void print_int(Buf *out, int64_t v) {
    if (v == INT64_MIN)
        buf_puts(out, "(-9223372036854775807LL - 1)");
    else if (v > INT32_MAX || v < -INT32_MAX)
        buf_printf(out, v < 0 ? "(%lldLL)" : "%lldLL", (long long)v);
    else
        buf_printf(out, v < 0 ? "(%lld)" : "%lld", (long long)v);
}

static void print_power(Printer *p, const Expr *e) {
    int64_t n = expr_int_or(expr_arg(e, 1), 1);
    buf_putc(p->out, '(');
    for (int64_t i = 0; i < n && i < 64; i++) {
        if (i)
            buf_puts(p->out, " * ");
        print(p, expr_arg(e, 0));
    }
    buf_putc(p->out, ')');
}

static void print_where(Printer *p, const Expr *e) {
    buf_putc(p->out, '(');
    print(p, expr_arg(e, 0));
    buf_puts(p->out, " ? ");
    print(p, expr_arg(e, 1));
    buf_puts(p->out, " : ");
    print(p, expr_arg(e, 2));
    buf_putc(p->out, ')');
}

// What stands between the arguments, for kinds that are an operator of C.
static const char *const infix[] = {
    [SYM_add] = " + ", [SYM_mul] = " * ", [SYM_eq] = " == ", [SYM_ne] = " != ",  [SYM_lt] = " < ",
    [SYM_le] = " <= ", [SYM_gt] = " > ",  [SYM_ge] = " >= ", [SYM_and] = " && ", [SYM_or] = " || ",
};

static void print(Printer *p, const Expr *e) {
    SymKind kind = expr_kind(e);
    int64_t v;
    if ((size_t)kind < COUNT(infix) && infix[kind]) {
        print_joined(p, e, infix[kind]);
        return;
    }
    switch (kind) {
    case SYM_int:
        expr_int(e, &v);
        print_int(p->out, v);
        break;
    case SYM_symbol:
        buf_puts(p->out, p->name_of(p->ctx, e));
        break;
    case SYM_pow:
        print_power(p, e);
        break;
    case SYM_floordiv:
    case SYM_cleandiv:
        print_quotient(p, expr_arg(e, 0), expr_arg(e, 1), " / ", "fx_floordiv_i64(");
        break;
    case SYM_mod:
    case SYM_pymod:
        print_quotient(p, expr_arg(e, 0), expr_arg(e, 1), " % ", "fx_remainder_i64(");
        break;
    case SYM_modular:
        print_modular(p, e);
        break;
    case SYM_min:
        print_fold(p, "fx_minimum_i64(", e);
        break;
    case SYM_max:
        print_fold(p, "fx_maximum_i64(", e);
        break;
    case SYM_identity:
        print(p, expr_arg(e, 0));
        break;
    case SYM_abs:
        buf_puts(p->out, "fx_abs_i64");
        print_joined(p, e, "");
        break;
    case SYM_where:
        print_where(p, e);
        break;
    default:
        diag_fail(p->g->r->diag, "no C for the index expression %s", sym_str(p->g->arena, e));
        buf_puts(p->out, "0");
        break;
    }
}

const char *c_expr(CGen *g, const Expr *e, CSymbolName *name_of, void *ctx) {
    Buf out = {.arena = g->arena};
    Printer p = {g, &out, name_of, ctx};
    print(&p, e);
    char *text = out.data;
    // The outermost brackets say nothing.
    if (text[0] == '(' && (expr_kind(e) == SYM_add || expr_kind(e) == SYM_mul)) {
        text[out.len - 1] = '\0';
        text++;
    }
    return text;
}

static const char *float_text(Arena *a, double v, bool single) {
    const char *f = single ? "f" : "";
    if (isnan(v))
        return arena_printf(a, "(0.0%s / 0.0%s)", f, f);
    if (isinf(v))
        return arena_printf(a, "(%s1.0%s / 0.0%s)", v < 0 ? "-" : "", f, f);
    // Nine and seventeen digits read back to the same float and double.
    char *text = single ? arena_printf(a, "%.9g", (double)(float)v) : arena_printf(a, "%.17g", v);
    if (single && isinf((float)v))
        return arena_printf(a, "(%s1.0f / 0.0f)", v < 0 ? "-" : "");
    for (int digits = 1; digits < (single ? 9 : 17); digits++) {
        char *brief = arena_printf(a, "%.*g", digits, v);
        double back = strtod(brief, NULL);
        if (single ? (float)back == (float)v : back == v) {
            text = brief;
            break;
        }
    }
    const char *point = strpbrk(text, ".e") ? "" : ".0";
    return arena_printf(a, text[0] == '-' ? "(%s%s%s)" : "%s%s%s", text, point, f);
}

const char *c_constant(Arena *a, const Value *v, DType d) {
    double f = 0;
    int64_t i = 0;
    bool is_int = val_as_int(v, &i);
    if (v->kind == VAL_bool) {
        i = v->b;
        is_int = true;
    }
    if (is_int)
        f = (double)i;
    else if (val_as_float(v, &f))
        i = isfinite(f) && fabs(f) < 9e18 ? (int64_t)f : 0;
    if (d == DT_b8)
        return (is_int ? i != 0 : f != 0) ? "1" : "0";
    if (d == DT_f64)
        return float_text(a, f, false);
    if (dtype_is_float(d))
        return float_text(a, f, true);
    Buf out = {.arena = a};
    print_int(&out, i);
    return buf_str(&out);
}
