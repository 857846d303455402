// loop_body.c: loop bodies over other loops: substitution, the order of loops that suits most
// memory accesses, and the merging of neighbouring loops (torch/_inductor/ir.py
// ComputedBuffer.simplify_and_reorder, scheduler.py pick_loop_order).
#include "core/inductor/lower.h"

#include <stdlib.h>

// ---- the order of loops

typedef struct OrderCtx {
    const int64_t *const *strides; // [address][dim]
    int n_addr;
    const int64_t *sizes;
} OrderCtx;

// < 0: dimension a is the inner one.
static int order_compare(const OrderCtx *c, int a, int b) {
    if (c->sizes[a] == 1 || c->sizes[b] == 1)
        return (c->sizes[a] == 1) - (c->sizes[b] == 1);
    int a_first = 0, b_first = 0;
    for (int i = 0; i < c->n_addr; i++) {
        int64_t sa = llabs(c->strides[i][a]), sb = llabs(c->strides[i][b]);
        a_first += sb == 0 || sa < sb;
        b_first += sa == 0 || sb < sa;
    }
    if (a_first != b_first)
        return a_first > b_first ? -1 : 1;
    return (b > a) - (b < a);
}

// The comparison need not be transitive, so the result depends on the algorithm: this one does what
// Python's sort does with fewer than 64 items (a first run, then binary insertion).
static void python_sort(const OrderCtx *c, int *v, int n) {
    int run = 1;
    if (n > 1) {
        bool down = order_compare(c, v[1], v[0]) < 0;
        for (run = 2; run < n && (order_compare(c, v[run], v[run - 1]) < 0) == down; run++)
            ;
        for (int i = 0, j = run - 1; down && i < j; i++, j--) {
            int x = v[i];
            v[i] = v[j];
            v[j] = x;
        }
    }
    for (int i = run; i < n; i++) {
        int pivot = v[i], lo = 0, hi = i;
        while (lo < hi) {
            int mid = lo + (hi - lo) / 2;
            if (order_compare(c, pivot, v[mid]) < 0)
                hi = mid;
            else
                lo = mid + 1;
        }
        for (int j = i; j > lo; j--)
            v[j] = v[j - 1];
        v[lo] = pivot;
    }
}

// Dimensions from the innermost to the outermost.
int pick_loop_order(int n, const int64_t *const *strides, int n_addr, const int64_t *sizes,
                    int *order) {
    for (int i = 0; i < n; i++)
        order[i] = n - 1 - i;
    OrderCtx c = {strides, n_addr, sizes};
    python_sort(&c, order, n);
    return n;
}

// ---- simplification

typedef struct Loop {
    const Expr **vars;  // (n)
    const Expr **sizes; // (n)
    int n;
} Loop;

static bool is_access(const LoopOp *op) {
    return op->kind == LOOP_load || op->kind == LOOP_store || op->kind == LOOP_store_reduction;
}

// Stores first, then loads, each as often as it occurs.
static int addresses(Arena *a, const LoopBody *b, const Expr ***out) {
    int n = 0, k = 0;
    BODY_EACH (b, op)
        n += is_access(op);
    *out = ARENA_ARRAY(a, n, const Expr *);
    for (int pass = 0; pass < 2; pass++)
        BODY_EACH (b, op)
            if (is_access(op) && (op->kind == LOOP_load) == (pass == 1))
                (*out)[k++] = b->index.at[op->index];
    return n;
}

static bool lookup_hint(void *ctx, const Expr *symbol, int64_t *v) {
    if (!sym_hint(ctx, symbol, v))
        *v = 8192;
    return true;
}

// A symbol without a hint counts as 8192, as an unbacked one does in PyTorch.
int64_t hint_of(Sym *sym, const Expr *e) {
    int64_t v = 0;
    return expr_int(e, &v) || sym_hint(sym, e, &v) || sym_eval(e, lookup_hint, sym, &v) ? v : 8192;
}

static const Expr *without_indirect(Sym *sym, const LoopBody *b, const Expr *e) {
    const Expr *zero = sym_int(sym, 0);
    for (int i = 0; i < b->indirect.n; i++)
        if (expr_has(e, b->indirect.at[i]))
            e = sym_subst(sym, e, &b->indirect.at[i], &zero, 1);
    return e;
}

// Reorders loops in place; from[i] is the old place of new loop i.
static void reorder(Arena *a, Sym *sym, const LoopBody *b, Loop *loop, int *from) {
    const Expr **addr = NULL;
    int n = loop->n, n_addr = addresses(a, b, &addr);
    for (int i = 0; i < n; i++)
        from[i] = i;
    if (n < 2 || n_addr == 0 || b->keep_order)
        return;
    const int64_t **strides = ARENA_ARRAY(a, n_addr, const int64_t *);
    const Expr **s = ARENA_ARRAY(a, n, const Expr *);
    for (int k = 0; k < n_addr; k++) {
        int64_t *row = ARENA_ARRAY(a, n, int64_t);
        sym_stride_vars(sym, without_indirect(sym, b, addr[k]), loop->vars, n, b->vars, b->n_vars,
                        s);
        for (int i = 0; i < n; i++)
            row[i] = hint_of(sym, s[i]);
        strides[k] = row;
    }
    int64_t *sizes = ARENA_ARRAY(a, n, int64_t);
    for (int i = 0; i < n; i++)
        sizes[i] = hint_of(sym, loop->sizes[i]);
    int *order = ARENA_ARRAY(a, n, int);
    pick_loop_order(n, strides, n_addr, sizes, order);
    Loop old = {ARENA_ARRAY(a, n, const Expr *), ARENA_ARRAY(a, n, const Expr *), n};
    for (int i = 0; i < n; i++) {
        old.vars[i] = loop->vars[i];
        old.sizes[i] = loop->sizes[i];
    }
    for (int i = 0; i < n; i++) {
        from[i] = order[n - 1 - i];
        loop->vars[i] = old.vars[from[i]];
        loop->sizes[i] = old.sizes[from[i]];
    }
}

static Loop loop_part(Arena *a, const LoopBody *b, int from, int to) {
    Loop l = {ARENA_ARRAY(a, to - from, const Expr *), ARENA_ARRAY(a, to - from, const Expr *),
              to - from};
    for (int i = from; i < to; i++) {
        l.vars[i - from] = b->vars[i];
        l.sizes[i - from] = b->sizes[i];
    }
    return l;
}

// argmax and argmin tell where in the reduction loops something stands.
static bool counts_places(const LoopBody *b) {
    for (int i = 0; i < b->blocks.at[0].ops.n; i++) {
        const LoopOp *op = &b->blocks.at[0].ops.at[i];
        if (op->kind == LOOP_reduction && op->mode && str_starts(op->mode, "arg"))
            return true;
    }
    return false;
}

// The number of a place among the reduction loops as they are written: loops that are merged keep
// it.
static const Expr *flat_place(Sym *sym, const LoopBody *b) {
    const Expr *at = sym_int(sym, 0);
    for (int i = b->n_iter; i < b->n_vars; i++)
        at = sym_add(sym, sym_mul(sym, at, b->sizes[i]), b->vars[i]);
    return sym_expand(sym, at);
}

LoopBody *loop_body_simplify(Arena *a, Sym *sym, const LoopBody *plain, const Expr *const extra[],
                             int n_extra) {
    int n_index = plain->index.n + n_extra;
    const Expr **index = ARENA_ARRAY(a, n_index + 1, const Expr *);
    for (int i = 0; i < n_index; i++)
        index[i] = i < plain->index.n ? plain->index.at[i] : extra[i - plain->index.n];
    bool ordered = counts_places(plain);
    if (ordered)
        index[n_index++] = flat_place(sym, plain);
    const Expr **exprs = ARENA_ARRAY(a, plain->n_vars, const Expr *);
    const Expr **vars = ARENA_ARRAY(a, plain->n_vars, const Expr *),
               **sizes = ARENA_ARRAY(a, plain->n_vars, const Expr *);
    int n_vars = 0, n_iter = 0;
    for (int part = 0; part < 2; part++) {
        int from = part ? plain->n_iter : 0, to = part ? plain->n_vars : plain->n_iter;
        Loop loop = loop_part(a, plain, from, to);
        int *old_at = ARENA_ARRAY(a, loop.n, int);
        if (part && ordered)
            for (int i = 0; i < loop.n; i++)
                old_at[i] = i;
        else
            reorder(a, sym, plain, &loop, old_at);
        SymLoops merged = sym_simplify_loops(sym, a, loop.vars, loop.sizes, loop.n, index, n_index);
        const Expr **values = ARENA_ARRAY(a, loop.n, const Expr *);
        for (int i = 0; i < merged.n; i++) {
            vars[n_vars + i] = sym_symbol(sym, arena_printf(a, "p%d", n_vars + i));
            sizes[n_vars + i] = merged.sizes[i];
        }
        sym_loops_reindex(sym, &merged, vars + n_vars, values);
        for (int i = 0; i < loop.n; i++)
            exprs[from + old_at[i]] = values[i];
        n_vars += merged.n;
        n_iter = part ? n_iter : n_vars;
    }
    return loop_body_reindex(a, sym, plain, exprs, vars, sizes, n_vars, n_iter);
}
