// plan_local.c: nests that share their outer loops hand rows of values from one to the next. A
// buffer that only they use then needs one row of memory, not all of it; this holds if the outer
// loops really are the same, vector steps included (CppScheduling.codegen_outer_loop_node).
#include "core/inductor/sched_impl.h"

#include <string.h>

// ---- Which loop of a nest is taken in vector steps (TilingSelect of codegen/cpp.py): a bit a
// loop.

typedef struct Strides {
    int contiguous[32]; // accesses that step by 1 along the loop
    bool apart[32]; // some access steps by more
} Strides;

static void add_strides(const Schedule *s, const SchedNode *n, Strides *t) {
    const LoopBody *b = n->body;
    if (!b)
        return;
    BODY_EACH (b, op) {
        if (op->kind != LOOP_load && op->kind != LOOP_store && op->kind != LOOP_store_reduction)
            continue;
        for (int v = 0; v < b->n_vars && v < 32; v++) {
            const Expr *stride = sym_stride_of(s->module->sym, b->index.at[op->index], b->vars[v]);
            if (expr_is(stride, 0))
                continue;
            t->contiguous[v] += expr_is(stride, 1);
            t->apart[v] = t->apart[v] || !expr_is(stride, 1);
        }
    }
}

static unsigned vector_loops(const Schedule *s, const SchedNode *nest, int n_loops) {
    Strides t = {0};
    int n, best = -1, only = -1, count = 0, last = -1;
    SchedNode *const *singles = sched_singles(nest, &n);
    for (int i = 0; i < n; i++)
        add_strides(s, singles[i], &t);
    for (int v = 0; v < n_loops && v < 32; v++) {
        if (!t.contiguous[v])
            continue;
        count++;
        last = v;
        only = t.apart[v] ? only : v;
        best = best < 0 || t.contiguous[v] >= t.contiguous[best] ? v : best;
    }
    if (best < 0)
        return n_loops ? 1u << (n_loops - 1) : 0;
    if (only >= 0)
        return 1u << only;
    if (count == 2 && last == n_loops - 1) {
        unsigned both = 0;
        for (int v = 0; v < n_loops && v < 32; v++)
            both |= t.contiguous[v] ? 1u << v : 0;
        return both;
    }
    return 1u << best;
}

static int loops_of(const SchedNode *nest) {
    return nest->n_iter + nest->n_red;
}

// Inner work that is much larger than the outer loops should be spread over threads by itself.
static bool inner_is_large(const SchedNode *nest, int depth) {
    int64_t outer = 1, size;
    for (int i = 0; i < depth; i++)
        if (!expr_int(nest->iter[i], &size) || __builtin_mul_overflow(outer, size, &outer))
            return false;
    if (loops_of(nest) <= depth)
        return false;
    const Expr *inner = nest->n_iter > depth ? nest->iter[depth] : nest->red[depth - nest->n_iter];
    return expr_int(inner, &size) && outer < size / 300 + (size % 300 != 0);
}

static bool outer_loops_agree(const Schedule *s, const SchedNode *node) {
    unsigned mask = (1u << (node->outer_depth < 31 ? node->outer_depth : 31)) - 1, first = 0;
    for (int i = 0; i < node->outer.n; i++) {
        unsigned tiled = vector_loops(s, node->outer.at[i], loops_of(node->outer.at[i])) & mask;
        if (i && tiled != first)
            return false;
        first = tiled;
        if (inner_is_large(node->outer.at[i], node->outer_depth))
            return false;
    }
    return true;
}

// ---- Which buffers can be a row.

static const Expr *index_of(const LoopBody *b, const char *buf, bool store) {
    const Expr *found = NULL;
    if (!b)
        return NULL;
    BODY_EACH (b, op)
        if ((store ? op->kind == LOOP_store : op->kind == LOOP_load) && strcmp(op->buf, buf) == 0)
            found = b->index.at[op->index];
    return found;
}

static bool is_row_major(Sym *sym, const IrLayout *l) {
    const Expr *stride = sym_int(sym, 1);
    for (int i = l->ndim - 1; i >= 0; i--) {
        if (!expr_is(l->size[i], 1) && l->stride[i] != stride)
            return false;
        stride = sym_mul(sym, stride, l->size[i]);
    }
    return true;
}

static bool is_within(const SchedNode *node, const SchedNode *user) {
    return user && user->fused_into == node;
}

static bool fits_row(const Schedule *s, const SchedNode *node, const SchedNode *n) {
    Sym *sym = s->module->sym;
    if (sched_is_reduction(n) || n->outputs.n != 1 || !n->body)
        return false;
    const SchedBuffer *b = n->outputs.at[0];
    for (int i = 0; i < b->users.n; i++)
        if (!is_within(node, b->users.at[i].node))
            return false;
    if (b->ir->layout->kind != IRL_fixed || !is_row_major(sym, b->ir->layout))
        return false;
    const Expr *row = sym_int(sym, 0), *stride = sym_int(sym, 1);
    for (int i = n->body->n_vars - 1; i >= 0; i--) {
        row = sym_add(sym, row, sym_mul(sym, n->body->vars[i], stride));
        stride = sym_mul(sym, stride, n->body->sizes[i]);
    }
    if (index_of(n->body, b->ir->name, true) != row)
        return false;
    for (int i = 0; i < b->users.n; i++)
        if (index_of(b->users.at[i].node->body, b->ir->name, false) != row)
            return false;
    return true;
}

// ---- Rows are shared by buffers that do not live at the same time.

typedef struct Row {
    VEC(const SchedBuffer *) of;
    const IrLayout *layout;
    int skip; // leading dimensions that the outer loops step through
} Row;
typedef VEC(Row) RowVec;

static bool same_row(const Row *row, const IrLayout *l, int skip) {
    if (row->layout->dtype != l->dtype || row->layout->ndim - row->skip != l->ndim - skip)
        return false;
    for (int i = skip; i < l->ndim; i++)
        if (row->layout->size[row->skip + i - skip] != l->size[i])
            return false;
    return true;
}

static bool is_past(const Row *row, const Map *visited) {
    for (int i = 0; i < row->of.n; i++)
        for (int k = 0; k < row->of.at[i]->users.n; k++)
            if (!map_find(visited, row->of.at[i]->users.at[k].node->name))
                return false;
    return true;
}

static int find_row(RowVec *rows, const IrLayout *l, int skip, const Map *visited, Arena *tmp) {
    for (int i = 0; i < rows->n; i++)
        if (same_row(&rows->at[i], l, skip) && is_past(&rows->at[i], visited))
            return i;
    vec_push(tmp, rows, (Row){.layout = l, .skip = skip});
    return rows->n - 1;
}

// A row is an array of C, whose length is written out.
static bool is_constant_row(const IrLayout *l, int skip) {
    int64_t size;
    for (int i = skip; i < l->ndim; i++)
        if (!expr_int(l->size[i], &size))
            return false;
    return true;
}

static void find_rows(const Schedule *s, const SchedNode *node, MemoryPlan *plan) {
    Arena tmp = {0};
    RowVec rows = {0};
    Map visited = {.arena = &tmp};
    for (int i = 0; i < node->snodes.n; i++) {
        const SchedNode *n = node->snodes.at[i];
        map_put_int(&visited, n->name, 1);
        if (!fits_row(s, node, n))
            continue;
        const SchedBuffer *b = n->outputs.at[0];
        int skip = b->ir->layout->ndim - (loops_of(n) - node->outer_depth);
        if (skip < 0 || !is_constant_row(b->ir->layout, skip))
            continue;
        int row = find_row(&rows, b->ir->layout, skip, &visited, &tmp);
        vec_push(&tmp, &rows.at[row].of, b);
        map_put_int(&plan->removed, b->ir->name, 2);
        map_put_int(&plan->local, b->ir->name, row);
    }
    arena_free(&tmp);
}

void plan_local_rows(const Schedule *s, const SchedNode *node, MemoryPlan *plan) {
    if (!outer_loops_agree(s, node))
        map_put_int(&plan->split, node->name, 1);
    for (int i = 0; i < node->outer.n; i++)
        if (loops_of(node->outer.at[i]) != node->outer_depth + 1)
            return;
    find_rows(s, node, plan);
}

void plan_forget_rows(const SchedNode *node, MemoryPlan *plan) {
    for (int i = 0; i < node->outputs.n; i++) {
        const char *name = node->outputs.at[i]->ir->name;
        if (!map_find(&plan->local, name))
            continue;
        map_remove(&plan->local, name);
        map_remove(&plan->removed, name);
    }
}
