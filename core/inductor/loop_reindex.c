// loop_reindex.c: a loop body over other loops.
#include "core/inductor/ir.h"

#include <string.h>

LoopBody *loop_body_reindex(Arena *a, Sym *sym, const LoopBody *old, const Expr *const exprs[],
                            const Expr *const vars[], const Expr *const sizes[], int n_vars,
                            int n_iter) {
    LoopBody *b = ARENA_NEW(a, LoopBody);
    *b = *old; // operations stay as they are
    b->n_vars = n_vars;
    b->n_iter = n_iter;
    b->vars = ARENA_ARRAY(a, n_vars + 1, const Expr *);
    b->sizes = ARENA_ARRAY(a, n_vars + 1, const Expr *);
    for (int i = 0; i < n_vars; i++) {
        b->vars[i] = vars[i];
        b->sizes[i] = sizes[i];
    }
    memset(&b->index, 0, sizeof b->index);
    for (int i = 0; i < old->index.n; i++) {
        const Expr *e = sym_subst(sym, old->index.at[i], old->vars, exprs, old->n_vars);
        vec_push(a, &b->index, sym_simplify_with_ranges(sym, e, vars, sizes, n_vars));
    }
    return b;
}
