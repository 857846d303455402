// fusion_cycle.c: would taking two nodes together close a cycle? The listed nodes keep ranks in a
// topological order; a path between two nodes only runs through ranks between theirs, so a search
// stays there, and after a fusion only ranks between them change (Pearce and Kelly, "A dynamic
// topological sort algorithm").
#include "core/inductor/fusion.h"

#include <stdlib.h>

typedef VEC(SchedNode *) NodeVec;

static void link_maker(Fusion *f, SchedNode *n, const Dep *d) {
    const SchedBuffer *b = d->made;
    if (!b || b->defining == n || b->defining->dead)
        return;
    vec_push(f->arena, &n->fuse->preds, b->defining);
    vec_push(f->arena, &b->defining->fuse->succs, n);
}

void cycle_start(Fusion *f) {
    for (int i = 0; i < f->s->nodes.n; i++) {
        FuseInfo *info = fuse_info(f, f->s->nodes.at[i]);
        info->rank = i;
        info->listed = true;
    }
    for (int i = 0; i < f->s->nodes.n; i++) {
        SchedNode *n = f->s->nodes.at[i];
        for (int k = 0; k < n->unmet.n; k++)
            link_maker(f, n, &n->unmet.at[k]);
    }
}

// Neighbours of a listed node n: listed nodes that depend on it, or that it depends on.
static void step(Fusion *f, SchedNode *n, bool forward, NodeVec *stack, int low, int high,
                 const SchedNode *skip) {
    int count;
    SchedNode *const *singles = sched_singles(n, &count);
    for (int i = 0; i < count; i++) {
        const FuseInfo *info = singles[i]->fuse;
        int m = forward ? info->succs.n : info->preds.n;
        for (int k = 0; k < m; k++) {
            SchedNode *next = (forward ? info->succs.at[k] : info->preds.at[k])->fused_into;
            FuseInfo *there = next->fuse;
            if (next == n || next == skip || there->stamp == f->stamp || there->rank < low ||
                there->rank > high)
                continue;
            there->stamp = f->stamp;
            vec_push(f->arena, stack, next);
        }
    }
}

// All nodes reached from n within the ranks, n not included; skip is never entered from n itself.
static void reach(Fusion *f, SchedNode *n, bool forward, int low, int high, const SchedNode *skip,
                  NodeVec *found) {
    NodeVec stack = {0};
    f->stamp++;
    n->fuse->stamp = f->stamp;
    step(f, n, forward, &stack, low, high, skip);
    while (stack.n) {
        SchedNode *next = vec_pop(&stack);
        vec_push(f->arena, found, next);
        step(f, next, forward, &stack, low, high, next);
    }
}

static void order_two(SchedNode **a, SchedNode **b) {
    if ((*a)->fuse->rank > (*b)->fuse->rank) {
        SchedNode *t = *a;
        *a = *b;
        *b = t;
    }
}

bool cycle_would_close(Fusion *f, SchedNode *a, SchedNode *b) {
    order_two(&a, &b);
    ArenaMark mark = arena_mark(f->arena);
    NodeVec found = {0};
    reach(f, a, true, a->fuse->rank, b->fuse->rank, b, &found);
    bool closes = false;
    for (int i = 0; i < found.n; i++)
        closes = closes || found.at[i] == b;
    arena_rewind(f->arena, mark);
    return closes;
}

static int by_rank(const void *a, const void *b) {
    const SchedNode *x = *(SchedNode *const *)a, *y = *(SchedNode *const *)b;
    return x->fuse->rank - y->fuse->rank;
}

static void sort_by_rank(NodeVec *v) {
    if (v->n > 1)
        qsort(v->at, (size_t)v->n, sizeof *v->at, by_rank);
}

static int by_int(const void *a, const void *b) {
    return *(const int *)a - *(const int *)b;
}

void cycle_merge(Fusion *f, SchedNode *a, SchedNode *b, SchedNode *merged) {
    order_two(&a, &b);
    ArenaMark mark = arena_mark(f->arena);
    NodeVec after = {0}, before = {0};
    // Members already point at the merged node; for the searches they stand for a and b again.
    reach(f, merged, true, a->fuse->rank + 1, b->fuse->rank - 1, merged, &after);
    int n_after = after.n;
    reach(f, merged, false, a->fuse->rank + 1, b->fuse->rank - 1, merged, &before);
    int n = before.n + n_after + 2;
    int *ranks = ARENA_ARRAY(f->arena, n, int);
    SchedNode **order = ARENA_ARRAY(f->arena, n, SchedNode *);
    sort_by_rank(&after);
    sort_by_rank(&before);
    int k = 0;
    for (int i = 0; i < before.n; i++)
        order[k++] = before.at[i];
    order[k++] = merged;
    for (int i = 0; i < n_after; i++)
        order[k++] = after.at[i];
    k = 0;
    ranks[k++] = a->fuse->rank;
    ranks[k++] = b->fuse->rank;
    for (int i = 0; i < before.n; i++)
        ranks[k++] = before.at[i]->fuse->rank;
    for (int i = 0; i < n_after; i++)
        ranks[k++] = after.at[i]->fuse->rank;
    qsort(ranks, (size_t)k, sizeof *ranks, by_int);
    // One rank is left over: the merged node takes one of two.
    for (int i = 0; i < k - 1; i++)
        order[i]->fuse->rank = ranks[i < before.n ? i : i + 1];
    arena_rewind(f->arena, mark);
}
