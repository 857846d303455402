// fusion_recompute.c: a node whose loops were merged into one gets loops like those of another node
// again. Both had the same loops before merging; merging is repeated with the index expressions of
// both, so that only what suits both is merged. Lowering keeps each body as it was before merging;
// for a body that was read from a dump the loops before merging are found from the output's layout:
// loop j steps through the output with some stride, and covers the dimensions from that stride up
// to its size.
#include "core/inductor/fusion.h"

#include <string.h>

typedef VEC(const Expr *) ExprVec;

// A body as it was before merging: each of its loops as an expression of the original dimensions.
typedef struct Unmerged {
    const Expr **loops; // (body->n_vars) over dims
    const Expr **dims;  // (n_dims) q0 … of the dimensions that are not 1, in their own order
    const Expr **order; // (n_dims) the same in the order of the loops, outermost first
    const Expr **sizes; // (n_dims) in that order
    int n_dims;
} Unmerged;

static const Expr *store_index(const LoopBody *b) {
    const LoopBlock *k = &b->blocks.at[0];
    const Expr *found = NULL;
    for (int i = 0; i < k->ops.n; i++)
        if (k->ops.at[i].kind == LOOP_store) {
            if (found)
                return NULL;
            found = b->index.at[k->ops.at[i].index];
        }
    return found;
}

// The dimension with this stride that no loop has taken yet; -1: none.
static int dim_of_stride(const IrLayout *l, const bool *taken, const Expr *stride) {
    for (int d = 0; d < l->ndim; d++)
        if (!taken[d] && l->stride[d] == stride)
            return d;
    return -1;
}

// Loop j of size `size` and stride `stride` through the output: writes its dimensions, innermost
// first.
static int loop_dims(Sym *sym, const IrLayout *l, bool *taken, const Expr *stride, const Expr *size,
                     int *dims) {
    int n = 0;
    for (const Expr *reach = sym_int(sym, 1); reach != size;) {
        int d = dim_of_stride(l, taken, sym_mul(sym, stride, reach));
        if (d < 0)
            return -1;
        taken[d] = true;
        dims[n++] = d;
        reach = sym_expand(sym, sym_mul(sym, reach, l->size[d]));
    }
    return n;
}

static void name_dims(Fusion *f, const IrLayout *l, Unmerged *u, const Expr **q) {
    u->dims = ARENA_ARRAY(f->arena, l->ndim + 1, const Expr *);
    for (int d = 0; d < l->ndim; d++) {
        q[d] = NULL;
        if (expr_is(l->size[d], 1))
            continue;
        q[d] = sym_symbol(f->sym, arena_printf(f->arena, "q%d", u->n_dims));
        u->dims[u->n_dims++] = q[d];
    }
}

static bool unmerge(Fusion *f, const SchedNode *n, Unmerged *u) {
    *u = (Unmerged){0};
    const LoopBody *b = n->body;
    const Expr *index = b && n->outputs.n == 1 && !n->n_red ? store_index(b) : NULL;
    if (!index)
        return false;
    const IrLayout *l = n->outputs.at[0]->ir->layout;
    const Expr **q = ARENA_ARRAY(f->arena, l->ndim + 1, const Expr *);
    bool *taken = ARENA_ARRAY(f->arena, l->ndim + 1, bool);
    int *dims = ARENA_ARRAY(f->arena, l->ndim + 1, int);
    name_dims(f, l, u, q);
    for (int d = 0; d < l->ndim; d++)
        taken[d] = !q[d];
    u->loops = ARENA_ARRAY(f->arena, b->n_vars + 1, const Expr *);
    u->order = ARENA_ARRAY(f->arena, l->ndim + 1, const Expr *);
    u->sizes = ARENA_ARRAY(f->arena, l->ndim + 1, const Expr *);
    int at = 0;
    for (int j = 0; j < b->n_vars; j++) {
        const Expr *stride = sym_stride_of(f->sym, index, b->vars[j]), *step = sym_int(f->sym, 1);
        int k = loop_dims(f->sym, l, taken, stride, b->sizes[j], dims);
        if (k < 0)
            return false;
        u->loops[j] = sym_int(f->sym, 0);
        for (int i = 0; i < k; i++) {
            u->loops[j] = sym_add(f->sym, u->loops[j], sym_mul(f->sym, q[dims[i]], step));
            step = sym_mul(f->sym, step, l->size[dims[i]]);
            u->order[at + k - 1 - i] = q[dims[i]];
            u->sizes[at + k - 1 - i] = l->size[dims[i]];
        }
        at += k;
    }
    return at == u->n_dims;
}

static void add_formulas(Fusion *f, const SchedNode *n, const Unmerged *u, ExprVec *out) {
    for (int i = 0; i < n->body->index.n; i++) {
        const Expr *e =
            sym_subst(f->sym, n->body->index.at[i], n->body->vars, u->loops, n->body->n_vars);
        e = sym_simplify_with_ranges(f->sym, e, u->order, u->sizes, u->n_dims);
        bool known = false;
        for (int k = 0; k < out->n; k++)
            known = known || out->at[k] == e;
        if (!known)
            vec_push(f->arena, out, e);
    }
}

static const Expr *row_major(Sym *sym, const Unmerged *u) {
    const Expr *sum = sym_int(sym, 0), *stride = sym_int(sym, 1);
    for (int i = u->n_dims - 1; i >= 0; i--) {
        sum = sym_add(sym, sum, sym_mul(sym, u->order[i], stride));
        stride = sym_mul(sym, stride, u->sizes[i]);
    }
    return sum;
}

// A body names the memory; a node reads what some write has left there.
static const char *version_read(const Schedule *s, const DepVec *reads, const char *buf) {
    for (int i = 0; i < reads->n; i++)
        if (reads->at[i].kind == DEP_memory && !strcmp(reads->at[i].buf, buf))
            return buf;
    for (int i = 0; i < reads->n; i++) {
        const char *real = map_get(&s->mutation_real_name, reads->at[i].buf);
        if (reads->at[i].kind == DEP_memory && real && !strcmp(real, buf))
            return reads->at[i].buf;
    }
    return buf;
}

// PyTorch reads the new body's accesses and forgets what it had added to the old ones for
// mutations.
static void read_again(Fusion *f, SchedNode *n) {
    DepVec unmet = n->unmet, before = n->reads, found = {0}, reads = {0};
    n->writes = (DepVec){0};
    deps_of_body(f->s->arena, f->sym, n->body, &found, &n->writes);
    for (int i = 0; i < found.n; i++) {
        Dep d = dep_rename(&found.at[i], version_read(f->s, &before, found.at[i].buf));
        deps_add(f->s->arena, &reads, &d);
    }
    sched_set_reads(f->s, n, reads);
    sched_link_deps(f->s, &n->writes);
    for (int i = 0; i < unmet.n; i++)
        if (!deps_have(&n->unmet, &unmet.at[i]))
            deps_add(f->s->arena, &n->order_only, &unmet.at[i]);
    fuse_forget_deps(n);
}

static void set_body(Fusion *f, SchedNode *n, LoopBody *body) {
    n->body = body;
    n->iter = body->sizes;
    n->n_iter = body->n_iter;
    n->red = n->iter + body->n_iter;
    read_again(f, n);
}

static void set_loops(Fusion *f, SchedNode *n, const Unmerged *u, const ExprVec *formulas) {
    ExprVec all = {0};
    for (int i = 0; i < formulas->n; i++)
        vec_push(f->arena, &all, formulas->at[i]);
    vec_push(f->arena, &all, row_major(f->sym, u));
    Arena *a = f->s->arena;
    SymLoops l = sym_simplify_loops(f->sym, a, u->order, u->sizes, u->n_dims, all.at, all.n);
    const Expr **vars = ARENA_ARRAY(a, l.n + 1, const Expr *);
    const Expr **old = ARENA_ARRAY(f->arena, u->n_dims + 1, const Expr *);
    for (int i = 0; i < l.n; i++)
        vars[i] = sym_symbol(f->sym, arena_printf(a, "p%d", i));
    sym_loops_reindex(f->sym, &l, vars, old);
    const Expr **loops = ARENA_ARRAY(f->arena, n->body->n_vars + 1, const Expr *);
    for (int j = 0; j < n->body->n_vars; j++)
        loops[j] = sym_subst(f->sym, u->loops[j], u->order, old, u->n_dims);
    set_body(f, n, loop_body_reindex(a, f->sym, n->body, loops, vars, l.sizes, l.n, l.n));
}

static bool same_loops(const SchedNode *a, const SchedNode *b) {
    bool same = a->n_iter == b->n_iter;
    for (int i = 0; same && i < a->n_iter; i++)
        same = a->iter[i] == b->iter[i];
    return same;
}

static void ref_takes_loops_of(SchedNode *ref, const SchedNode *single) {
    ref->iter = single->iter;
    ref->n_iter = single->n_iter;
    ref->red = single->red;
    fuse_forget_deps(ref);
}

// The bodies as they were traced, whose loops are the same.
static bool all_plain(const SchedNode *node, SchedNode *const *refs, int n_refs) {
    const LoopBody *own = node->op->plain;
    for (int i = 0; own && i < n_refs; i++) {
        const LoopBody *b = refs[i]->op->plain;
        bool same = b && b->n_vars == own->n_vars;
        for (int k = 0; same && k < b->n_vars; k++)
            same = b->vars[k] == own->vars[k] && b->sizes[k] == own->sizes[k];
        if (!same)
            return false;
    }
    return own != NULL;
}

static void simplify_with(Fusion *f, SchedNode *n, const LoopBody *other) {
    set_body(
        f, n,
        loop_body_simplify(f->s->arena, f->sym, n->op->plain, other->index.at, other->index.n));
}

static bool match_plain(Fusion *f, SchedNode *node, SchedNode *ref, SchedNode *const *refs,
                        int n_refs) {
    ExprVec theirs = {0};
    for (int i = 0; i < n_refs; i++)
        for (int k = 0; k < refs[i]->op->plain->index.n; k++)
            vec_push(f->arena, &theirs, refs[i]->op->plain->index.at[k]);
    LoopBody all = {.index = {.at = theirs.at, .n = theirs.n}};
    simplify_with(f, node, &all);
    if (same_loops(node, ref))
        return true;
    // The other node's own loops were merged further than both allow. If it is a group, its nodes
    // are merged by what suits all of them, or they would part.
    for (int k = 0; k < node->op->plain->index.n; k++)
        vec_push(f->arena, &theirs, node->op->plain->index.at[k]);
    all.index.at = theirs.at;
    all.index.n = theirs.n;
    bool same = true;
    for (int i = 0; i < n_refs; i++)
        simplify_with(f, refs[i], &all);
    for (int i = 0; i < n_refs; i++)
        same = same && same_loops(node, refs[i]);
    ref_takes_loops_of(ref, refs[0]);
    return same;
}

static bool match_loops(Fusion *f, SchedNode *node, SchedNode *ref) {
    Unmerged own;
    int n_refs;
    SchedNode *const *refs = sched_singles(ref, &n_refs);
    if (all_plain(node, refs, n_refs))
        return match_plain(f, node, ref, refs, n_refs);
    Unmerged *theirs = ARENA_ARRAY(f->arena, n_refs, Unmerged);
    if (!unmerge(f, node, &own))
        return false;
    ExprVec formulas = {0};
    add_formulas(f, node, &own, &formulas);
    for (int i = 0; i < n_refs; i++) {
        if (!unmerge(f, refs[i], &theirs[i]))
            return false;
        add_formulas(f, refs[i], &theirs[i], &formulas);
    }
    set_loops(f, node, &own, &formulas);
    if (same_loops(node, ref))
        return true;
    for (int i = 0; i < n_refs; i++)
        set_loops(f, refs[i], &theirs[i], &formulas);
    ref_takes_loops_of(ref, refs[0]);
    return same_loops(node, ref);
}

// A node's loops, and the bodies of its parts.
typedef struct Kept {
    const Expr **iter, **red;
    int n_iter, n;
    SchedNode *const *parts;
    LoopBody **bodies; // (n)
} Kept;

static Kept keep(Fusion *f, const SchedNode *n) {
    Kept k = {.iter = n->iter, .red = n->red, .n_iter = n->n_iter};
    k.parts = sched_singles(n, &k.n);
    k.bodies = ARENA_ARRAY(f->arena, k.n, LoopBody *);
    for (int i = 0; i < k.n; i++)
        k.bodies[i] = k.parts[i]->body;
    return k;
}

static void restore(Fusion *f, SchedNode *n, const Kept *k) {
    for (int i = 0; i < k->n; i++)
        if (k->parts[i]->body != k->bodies[i])
            set_body(f, k->parts[i], k->bodies[i]);
    n->iter = k->iter;
    n->red = k->red;
    n->n_iter = k->n_iter;
    fuse_forget_deps(n);
}

// Loops of the same sizes may run in another order; PyTorch 2.11 does not look again.
bool recompute_to_match(Fusion *f, SchedNode *node, SchedNode *ref) {
    Kept own = keep(f, node), theirs = keep(f, ref);
    if (match_loops(f, node, ref) && fusion_reads_follow(f->s, node, ref) &&
        fusion_reads_follow(f->s, ref, node))
        return true;
    restore(f, node, &own);
    restore(f, ref, &theirs);
    return false;
}
