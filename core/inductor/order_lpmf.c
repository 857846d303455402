// order_lpmf.c: least peak memory first. Of the nodes that fit below the peak so far the one that
// leaves the least memory in use runs next; if none fits, the one that needs the least.
#include "core/inductor/order.h"

#include <stdlib.h>

// Ready nodes stand in a tree over all nodes sorted by the size they allocate: "the best that
// fits below the peak so far" is then the least of a prefix.

typedef struct Tree {
    const Planner *p;
    int leaves; // a power of two
    int *best; // (2 * leaves) node that is best below each place, -1: none ready
    int *place; // (n) leaf of a node
    int *sorted; // (n) nodes by size
} Tree;

static int better_of(const Planner *p, int a, int b) {
    if (a < 0 || b < 0)
        return a < 0 ? b : a;
    int64_t x = p->step[a].size - p->step[a].frees, y = p->step[b].size - p->step[b].frees;
    if (x != y)
        return x < y ? a : b;
    return a < b ? a : b;
}

static Tree new_tree(Planner *p) {
    Tree t = {.p = p,
              .leaves = 1,
              .place = ARENA_ARRAY(p->a, p->n + 1, int),
              .sorted = ARENA_ARRAY(p->a, p->n + 1, int)};
    while (t.leaves < p->n)
        t.leaves *= 2;
    t.best = ARENA_ARRAY(p->a, 2 * t.leaves, int);
    for (int i = 0; i < 2 * t.leaves; i++)
        t.best[i] = -1;
    Weight *w = ARENA_ARRAY(p->a, p->n + 1, Weight);
    for (int i = 0; i < p->n; i++)
        w[i] = (Weight){p->step[i].size, i};
    qsort(w, (size_t)p->n, sizeof *w, order_by_weight);
    for (int i = 0; i < p->n; i++) {
        t.sorted[i] = w[i].node;
        t.place[w[i].node] = i;
    }
    return t;
}

static void tree_set(Tree *t, int node, bool ready) {
    int i = t->place[node] + t->leaves;
    t->best[i] = ready ? node : -1;
    for (i /= 2; i >= 1; i /= 2)
        t->best[i] = better_of(t->p, t->best[2 * i], t->best[2 * i + 1]);
}

// Best of the leaves [from, to).
static int tree_best(const Tree *t, int from, int to) {
    int best = -1;
    for (from += t->leaves, to += t->leaves; from < to; from /= 2, to /= 2) {
        if (from & 1)
            best = better_of(t->p, best, t->best[from++]);
        if (to & 1)
            best = better_of(t->p, best, t->best[--to]);
    }
    return best;
}

// First leaf at or after `from` that allocates more than `size`.
static int tree_above(const Tree *t, int from, int64_t size) {
    int lo = from, hi = t->p->n;
    while (lo < hi) {
        int mid = (lo + hi) / 2;
        if (t->p->step[t->sorted[mid]].size > size)
            hi = mid;
        else
            lo = mid + 1;
    }
    return lo;
}

// First ready leaf at or after `from`.
static int tree_first(const Tree *t, int from) {
    int lo = from, hi = t->p->n;
    while (lo < hi) {
        int mid = (lo + hi) / 2;
        if (tree_best(t, from, mid + 1) >= 0)
            hi = mid;
        else
            lo = mid + 1;
    }
    return lo;
}

static int lpmf_pick(const Tree *t, int64_t gap) {
    int fits = tree_above(t, 0, gap);
    int best = tree_best(t, 0, fits);
    if (best >= 0)
        return best;
    int first = tree_first(t, fits);
    return tree_best(t, first, tree_above(t, first, t->p->step[t->sorted[first]].size));
}

static void lpmf_start(Planner *p, IntList *ready, int64_t *live, int64_t *most) {
    int64_t output = 0;
    *live = 0;
    for (int i = 0; i < p->mem.n; i++) {
        Mem *m = &p->mem.at[i];
        m->open = m->lifetime.n + m->output;
        *live += m->maker < 0 ? m->release : 0;
        output += m->output ? m->release : 0;
    }
    *most = *live > output ? *live : output;
    for (int i = 0; i < p->n; i++) {
        Step *st = &p->step[i];
        st->waiting = st->preds.n;
        st->frees = 0;
        for (int k = 0; k < st->reads.n; k++)
            st->frees +=
                p->mem.at[st->reads.at[k]].open == 1 ? p->mem.at[st->reads.at[k]].release : 0;
        for (int k = 0; k < st->makes.n; k++)
            st->frees +=
                p->mem.at[st->makes.at[k]].open == 0 ? p->mem.at[st->makes.at[k]].release : 0;
        if (!st->waiting)
            vec_push(p->a, ready, i);
    }
}

static void lpmf_run(Planner *p, Tree *t, int node) {
    const Step *st = &p->step[node];
    for (int k = 0; k < st->succs.n; k++)
        if (--p->step[st->succs.at[k]].waiting == 0)
            tree_set(t, st->succs.at[k], true);
    for (int k = 0; k < st->reads.n; k++) {
        Mem *m = &p->mem.at[st->reads.at[k]];
        if (--m->open != 1)
            continue;
        for (int j = 0; j < m->lifetime.n; j++) {
            int reader = m->lifetime.at[j];
            p->step[reader].frees += m->release;
            if (t->best[t->place[reader] + t->leaves] >= 0)
                tree_set(t, reader, true);
        }
    }
}

bool order_lpmf(Planner *p, int *order) {
    IntList ready = {0};
    int64_t live, most;
    int n = 0;
    lpmf_start(p, &ready, &live, &most);
    Tree t = new_tree(p);
    for (int k = 0; k < ready.n; k++)
        tree_set(&t, ready.at[k], true);
    while (p->n && t.best[1] >= 0) {
        int node = lpmf_pick(&t, most - live);
        tree_set(&t, node, false);
        order[n++] = node;
        live += p->step[node].size;
        most = live > most ? live : most;
        live -= p->step[node].frees;
        lpmf_run(p, &t, node);
    }
    return n == p->n;
}
