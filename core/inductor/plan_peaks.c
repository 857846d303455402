// plan_peaks.c: a tree of halves over places [lo, hi]. What lies outside of a range counts as 0, as
// in the segment tree of torch/_inductor/codegen/segmented_tree.py.
#include "core/inductor/plan_peaks.h"

static int64_t peaks_fill(Peaks *t, const int64_t *now, int at, int lo, int hi) {
    if (lo == hi)
        return t->max[at] = now[lo];
    int mid = (lo + hi) / 2;
    int64_t l = peaks_fill(t, now, 2 * at, lo, mid),
            r = peaks_fill(t, now, 2 * at + 1, mid + 1, hi);
    return t->max[at] = l > r ? l : r;
}

void peaks_build(Peaks *t, Arena *a, const int64_t *now, int n) {
    t->n = n;
    t->max = ARENA_ARRAY(a, 4 * n + 4, int64_t);
    t->add = ARENA_ARRAY(a, 4 * n + 4, int64_t);
    peaks_fill(t, now, 1, 0, n - 1);
}

// Largest of [from, to]; above: what was added to all of this part further up.
static int64_t peaks_max(const Peaks *t, int at, int lo, int hi, int from, int to, int64_t above) {
    if (to < lo || hi < from)
        return 0;
    if (from <= lo && hi <= to)
        return t->max[at] + above;
    int mid = (lo + hi) / 2;
    above += t->add[at];
    int64_t l = peaks_max(t, 2 * at, lo, mid, from, to, above);
    int64_t r = peaks_max(t, 2 * at + 1, mid + 1, hi, from, to, above);
    return l > r ? l : r;
}

static void peaks_add(Peaks *t, int at, int lo, int hi, int from, int to, int64_t v) {
    if (to < lo || hi < from)
        return;
    if (from <= lo && hi <= to) {
        t->max[at] += v;
        t->add[at] += v;
        return;
    }
    int mid = (lo + hi) / 2;
    peaks_add(t, 2 * at, lo, mid, from, to, v);
    peaks_add(t, 2 * at + 1, mid + 1, hi, from, to, v);
    int64_t l = t->max[2 * at], r = t->max[2 * at + 1];
    t->max[at] = (l > r ? l : r) + t->add[at];
}

int64_t peaks_over(const Peaks *t, int from, int to) {
    return peaks_max(t, 1, 0, t->n - 1, from, to, 0);
}

void peaks_raise(Peaks *t, int from, int to, int64_t bytes) {
    peaks_add(t, 1, 0, t->n - 1, from, to, bytes);
}
