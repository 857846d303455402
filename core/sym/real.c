// real.c: real numbers among sizes: symbols zf0 (given) and zuf0 (made by item()), and what is
// computed with them. Sizes are integers; of a real number only its text is kept, and what a plain
// symbol stands for.
#include "core/sym/expr.h"

#include <string.h>

bool sym_is_real_name(const char *name) {
    size_t head = strspn(name, "zuf");
    bool real = (head == 2 && !strncmp(name, "zf", 2)) || (head == 3 && !strncmp(name, "zuf", 3));
    return real && name[head] && strspn(name + head, "0123456789") == strlen(name + head);
}

bool expr_is_real(const Expr *e) {
    switch (expr_kind(e)) {
    case SYM_symbol: return sym_is_real_name(expr_name(e));
    case SYM_tofloat: case SYM_inttruediv: case SYM_realdiv: case SYM_realpow: return true;
    case SYM_add: case SYM_mul: case SYM_pow: case SYM_min: case SYM_max: case SYM_identity:
    case SYM_abs: case SYM_where: case SYM_pymod: case SYM_mod: case SYM_floordiv:
        break;
    default: return false;
    }
    for (int i = 0; i < expr_n_args(e); i++)
        if (expr_is_real(expr_arg(e, i)))
            return true;
    return false;
}

void sym_set_real_hint(Sym *s, const char *name, double v) {
    double *kept = ARENA_NEW(s->arena, double);
    *kept = v;
    map_put(&s->reals, arena_strdup(s->arena, name), kept);
}

bool sym_real_hint(const Sym *s, const char *name, double *v) {
    const double *kept = map_get(&s->reals, name);
    *v = kept ? *kept : 0;
    return kept != NULL;
}

// ---- sympy's srepr of such a number, as text

enum { MAX_DEPTH = 64 };

typedef struct Srepr {
    Arena *arena;
    const char *p; // NULL: it is none
    int depth;
} Srepr;

static const char *read_real(Srepr *r);

// `'zf0', integer=True)`, `2)`, `'2.0', precision=53)`: what stands first.
static const char *read_atom(Srepr *r) {
    char quote = *r->p == '\'' || *r->p == '"' ? *r->p++ : '\0';
    const char ends[] = {quote, 0};
    size_t len = strcspn(r->p, quote ? ends : ",)");
    size_t rest = len + strcspn(r->p + len, ")");
    const char *text = arena_strndup(r->arena, r->p, len);
    r->p = r->p[rest] ? r->p + rest + 1 : NULL;
    return text;
}

// A sum in brackets where a product or a power has it.
static const char *operand(Srepr *r, const char *text, const char *sign) {
    bool sum = *sign != ' ' && strchr(text, ' ') && !strchr(text, '(');
    return sum ? arena_printf(r->arena, "(%s)", text) : text;
}

static const char *read_call(Srepr *r, const char *name) {
    static const struct {
        const char *name, *sign;
    } signs[] = {{"Add", " + "}, {"Mul", "*"}, {"Pow", "**"}, {"Rational", "/"}};
    const char *sign = NULL;
    for (int i = 0; i < COUNT(signs); i++)
        sign = !strcmp(signs[i].name, name) ? signs[i].sign : sign;
    Buf out = {.arena = r->arena};
    if (!sign)
        buf_printf(&out, "%s(", name);
    for (bool first = true;; first = false) {
        const char *arg = read_real(r);
        if (!arg || !r->p)
            return NULL;
        if (!first)
            buf_puts(&out, sign ? sign : ", ");
        buf_puts(&out, sign ? operand(r, arg, sign) : arg);
        r->p += strspn(r->p, " ");
        if (*r->p != ',' && *r->p != ')')
            return NULL;
        if (*r->p++ == ')')
            break;
    }
    if (!sign)
        buf_putc(&out, ')');
    return buf_str(&out);
}

static const char *read_real(Srepr *r) {
    static const char *const atoms[] = {"Symbol", "Integer", "Float"};
    r->p += strspn(r->p, " ");
    size_t len = strspn(r->p, "-.0123456789_abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ");
    const char *name = arena_strndup(r->arena, r->p, len);
    r->p += len;
    if (!len || *r->p != '(')
        return len ? name : NULL;
    r->p++;
    if (str_index(name, atoms, COUNT(atoms)) >= 0)
        return read_atom(r);
    if (++r->depth > MAX_DEPTH)
        return NULL;
    const char *text = read_call(r, name);
    r->depth--;
    return text;
}

const char *sym_srepr_text(Arena *a, const char *text) {
    Srepr r = {.arena = a, .p = text};
    const char *out = read_real(&r);
    return out && r.p && !*r.p ? out : NULL;
}
