// fusion_cpu.c: which nodes the C++ backend can put into one loop nest (CppScheduling of
// codegen/cpp.py).
#include "core/inductor/fusion.h"

#include <string.h>

static bool same_exprs(const Expr *const *a, int na, const Expr *const *b, int nb) {
    if (na != nb)
        return false;
    for (int i = 0; i < na; i++)
        if (a[i] != b[i])
            return false;
    return true;
}

// The loops that a node had before merging; false if its parts had different ones.
static bool original_ranges(const SchedNode *n, const Expr *const **ranges, int *n_ranges) {
    int count;
    SchedNode *const *singles = sched_singles(n, &count);
    *ranges = NULL;
    for (int i = 0; i < count; i++) {
        const IrOp *op = singles[i]->op;
        if (op->cls != IR_computed)
            return false;
        if (!*ranges) {
            *ranges = (const Expr *const *)op->ranges;
            *n_ranges = op->n_ranges;
        } else if (!same_exprs(*ranges, *n_ranges, (const Expr *const *)op->ranges, op->n_ranges)) {
            return false;
        }
    }
    return true;
}

static bool fewer_loops(const SchedNode *a, const SchedNode *b) {
    return a->n_iter < b->n_iter;
}

static bool compatible_ranges(Fusion *f, const SchedNode *a, const SchedNode *b) {
    if (a->n_red || b->n_red || (a->n_iter != 1 && b->n_iter != 1))
        return false;
    if (sym_product(f->sym, a->iter, a->n_iter) != sym_product(f->sym, b->iter, b->n_iter))
        return false;
    const SchedNode *again = fewer_loops(a, b) ? a : b;
    const SchedNode *ref = fewer_loops(a, b) ? b : a;
    if (again->kind != SCHED_node)
        return false;
    const Expr *const *r1, *const *r2;
    int n1 = 0, n2 = 0;
    return original_ranges(again, &r1, &n1) && original_ranges(ref, &r2, &n2) &&
           same_exprs(r1, n1, r2, n2);
}

static bool pointwise_over_reduction(const SchedNode *a, const SchedNode *b) {
    if (a->n_red || a->n_iter != b->n_iter + b->n_red)
        return false;
    return same_exprs(a->iter, b->n_iter, b->iter, b->n_iter) &&
           same_exprs(a->iter + b->n_iter, b->n_red, b->red, b->n_red);
}

CpuFit cpu_fit(Fusion *f, const SchedNode *a, const SchedNode *b) {
    if (same_exprs(a->iter, a->n_iter, b->iter, b->n_iter) &&
        same_exprs(a->red, a->n_red, b->red, b->n_red))
        return FIT_same_vars;
    if (pointwise_over_reduction(a, b))
        return FIT_compatible_reduction;
    return compatible_ranges(f, a, b) ? FIT_compatible_ranges : FIT_no;
}

static bool one_nest(Fusion *f, const SchedNode *a, const SchedNode *b) {
    if (a->kind == SCHED_outer_loop || b->kind == SCHED_outer_loop)
        return false;
    return cpu_fit(f, a, b) != FIT_no;
}

int cpu_outer_depth(const SchedNode *a, const SchedNode *b) {
    const SchedNode *last = a->kind == SCHED_outer_loop ? vec_last(&a->outer) : a;
    const SchedNode *first = b->kind == SCHED_outer_loop ? b->outer.at[0] : b;
    if (!last->n_iter && !first->n_iter && last->n_red && first->n_red)
        return 0;
    // Of two, PyTorch compares the depth alone; its code generation finds out about the sizes.
    if (a->kind == SCHED_outer_loop && b->kind == SCHED_outer_loop)
        return a->outer_depth == b->outer_depth &&
                       same_exprs(last->iter, a->outer_depth, first->iter, a->outer_depth)
                   ? a->outer_depth
                   : 0;
    int depth = last->n_iter < first->n_iter ? last->n_iter : first->n_iter;
    if (depth < 1 || !same_exprs(last->iter, depth, first->iter, depth))
        return 0;
    const SchedNode *already = a->kind == SCHED_outer_loop ? a : b;
    if (already->kind == SCHED_outer_loop && already->outer_depth != depth)
        return 0;
    return depth;
}

bool cpu_outer_loop(Fusion *f, const SchedNode *a, const SchedNode *b) {
    if (!sched_comes_before(a, b) || (one_nest(f, a, b) && !sched_is_reduction(a)))
        return false;
    return cpu_outer_depth(a, b) >= 1;
}

bool cpu_can_fuse_vertical(Fusion *f, const SchedNode *a, const SchedNode *b) {
    return (one_nest(f, a, b) && !sched_is_reduction(a)) || cpu_outer_loop(f, a, b);
}

static int count_of(const SchedNode *n) {
    return n->snodes.n ? n->snodes.n : 1;
}

bool cpu_can_fuse_horizontal(Fusion *f, const SchedNode *a, const SchedNode *b) {
    return count_of(a) + count_of(b) <= f->config.cpp_max_horizontal_fusion_size &&
           one_nest(f, a, b);
}

static void add_singles(Fusion *f, const SchedNode *n, SchedNode ***all, int *count) {
    int k;
    SchedNode *const *singles = sched_singles(n, &k);
    SchedNode **grown = ARENA_ARRAY(f->arena, *count + k, SchedNode *);
    if (*count)
        memcpy(grown, *all, (size_t)*count * sizeof *grown);
    memcpy(grown + *count, singles, (size_t)k * sizeof *grown);
    *all = grown;
    *count += k;
}

static SchedNode *group_two(Fusion *f, SchedKind kind, SchedNode *a, SchedNode *b) {
    SchedNode **all = NULL;
    int n = 0;
    add_singles(f, a, &all, &n);
    add_singles(f, b, &all, &n);
    return sched_group(f->s, kind, all, n);
}

static void add_nests(Fusion *f, SchedNode *into, SchedNode *n) {
    if (n->kind != SCHED_outer_loop) {
        vec_push(f->s->arena, &into->outer, n);
        return;
    }
    for (int i = 0; i < n->outer.n; i++)
        vec_push(f->s->arena, &into->outer, n->outer.at[i]);
}

SchedNode *cpu_fuse(Fusion *f, SchedNode *a, SchedNode *b) {
    if (cpu_fit(f, a, b) == FIT_compatible_ranges) {
        SchedNode *again = fewer_loops(a, b) ? a : b;
        if (!recompute_to_match(f, again, again == a ? b : a))
            return NULL;
        return group_two(f, SCHED_fused, a, b);
    }
    if (!cpu_outer_loop(f, a, b))
        return group_two(f, SCHED_fused, a, b);
    int depth = cpu_outer_depth(a, b);
    SchedNode *n = group_two(f, SCHED_outer_loop, a, b);
    n->outer_depth = depth;
    add_nests(f, n, a);
    add_nests(f, n, b);
    return n;
}
