// sym.c: what the constructors of core/sym cost. One row an operation: nanoseconds when the
// operands were just combined before (the cache knows), and when they were not.
#include "core/base/file.h"
#include "core/sym/sym.h"

#include <stdio.h>

enum { N = 256, ROUNDS = 200 };

typedef const Expr *Op(Sym *s, const Expr *a, const Expr *b);

static const Expr *op_simplify(Sym *s, const Expr *a, const Expr *b) {
    (void)a;
    const Expr *vars[] = {sym_symbol(s, "p0"), sym_symbol(s, "p1")};
    const Expr *sizes[] = {sym_int(s, 64), sym_int(s, 768)};
    return sym_simplify_with_ranges(s, b, vars, sizes, 2);
}

static const Expr *op_subst(Sym *s, const Expr *a, const Expr *b) {
    const Expr *from = sym_symbol(s, "p1");
    return sym_subst(s, b, &from, &a, 1);
}

static const Expr *op_print(Sym *s, const Expr *a, const Expr *b) {
    Arena tmp = {0};
    sym_str(&tmp, b);
    arena_free(&tmp);
    return sym_sub(s, a, a);
}

// pairs: every left with every right; else one left only, since the operation looks at the right
// one.
static void measure(const char *name, Op *op, bool pairs) {
    Arena a = {0};
    Sym *s = sym_new(&a);
    const Expr *left[N], *right[N];
    for (int i = 0; i < N; i++) {
        const Expr *p0 = sym_symbol(s, "p0"), *p1 = sym_symbol(s, "p1"), *n = sym_symbol(s, "s77");
        left[i] = sym_add(s, sym_mul_int(s, p0, 768 + i), i % 3 ? sym_mul(s, n, p0) : n);
        right[i] = sym_add_int(s, sym_add(s, sym_mul_int(s, p1, 1 + i), p0), i / 4);
        if (op == op_simplify)
            right[i] = sym_add(s,
                               sym_modular(s, sym_add(s, sym_mul_int(s, p0, 768), p1),
                                           sym_int(s, 1 + i % 7), sym_int(s, 768)),
                               right[i]);
    }
    int64_t start = clock_ns();
    int lefts = pairs ? N : 1;
    for (int i = 0; i < lefts; i++)
        for (int j = 0; j < N; j++)
            op(s, left[i], right[j]);
    int64_t first = clock_ns() - start;
    start = clock_ns();
    for (int r = 0; r < ROUNDS; r++)
        for (int i = 0; i < N; i++)
            op(s, left[i], right[i]);
    int64_t again = clock_ns() - start;
    printf("%-12s new %6.0f ns   again %5.0f ns\n", name, (double)first / (lefts * N),
           (double)again / (ROUNDS * N));
    arena_free(&a);
}

static const Expr *op_floordiv(Sym *s, const Expr *a, const Expr *b) {
    return sym_floordiv(s, a, sym_int(s, 2 + expr_id(b) % 1024));
}

int main(void) {
    measure("add", sym_add, true);
    measure("sub", sym_sub, true);
    measure("mul", sym_mul, true);
    measure("floordiv", op_floordiv, true);
    measure("substitute", op_subst, false);
    measure("simplify", op_simplify, false);
    measure("print", op_print, false);
    return 0;
}
