// sym.c: both forms of expressions. Whatever is accepted prints, reads back and prints the same; a
// line that starts with `srepr ` is in that form.
#include "core/sym/sym.h"
#include "tests/fuzz/fuzz.h"

#include <string.h>

static void one(Sym *s, Arena *a, const char *line) {
    Diag d = {.arena = a};
    bool srepr = str_starts(line, "srepr ");
    const char *real = srepr ? sym_srepr_text(a, line + 6) : NULL;
    FUZZ_CHECK(!real || strlen(real) <= 4 * strlen(line));
    Place at = {"input", 1, 1, line};
    const Expr *e = srepr ? sym_parse_srepr(s, line + 6, at, &d) : sym_parse(s, line, at, &d);
    FUZZ_CHECK((e != NULL) == (d.errors == 0));
    FUZZ_CHECK(d.n <= 1 && (!d.n || (d.at[0].col >= 1 && (size_t)d.at[0].col <= strlen(line) + 1)));
    if (!e || expr_has_kind(e, SYM_overflow) || expr_size(e) > 10000)
        return;
    sym_range(s, e);
    int64_t v;
    sym_hint(s, e, &v);
    const Expr *vars[] = {sym_symbol(s, "p0"), sym_symbol(s, "p1")};
    const Expr *sizes[] = {sym_int(s, 12), sym_symbol(s, "s7")};
    sym_simplify_with_ranges(s, e, vars, sizes, 2);
    const char *text = sym_str(a, e);
    const Expr *again = sym_parse(s, text, (Place){0}, &d);
    // Deep text may need more parentheses printed than the reader allows; `x - 9223372036854775808`
    // is read as a positive number, which does not fit.
    FUZZ_CHECK(again || strstr(diag_first(&d), "deeper") || strstr(diag_first(&d), "64 bits"));
    FUZZ_CHECK(!again || !strcmp(sym_str(a, again), text));
    Buf b = {.arena = a};
    sym_print_srepr(&b, e);
    again = sym_parse_srepr(s, buf_str(&b), (Place){0}, &d);
    FUZZ_CHECK(again == e || (!again && strstr(d.at[d.n - 1].text, "deeper")));
}

void fuzz_sym(Str input) {
    Arena a = {0};
    Sym *s = sym_new(&a);
    char *p = arena_strndup(&a, input.ptr, input.len);
    for (int lines = 0; *p && lines < 200; lines++) {
        char *end = strchr(p, '\n');
        if (end)
            *end = 0;
        one(s, &a, p);
        if (!end)
            break;
        p = end + 1;
    }
    arena_free(&a);
}
