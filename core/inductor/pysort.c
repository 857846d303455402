// pysort.c: pairs by falling score, in exactly the order of CPython's list.sort(reverse=True). The
// comparison of scores is not transitive (a memory score more than 16 times larger decides before
// the kind of fusion does), so the result is a matter of the algorithm: binary insertion into runs
// of at least 32, then stable merges in the order of powersort (Munro and Wild, "Nearly-optimal
// mergesorts").
#include "core/inductor/fusion.h"

#include <string.h>

enum { MAX_PENDING = 85 };

static bool less(const Pair *a, const Pair *b) {
    if (a->template_score != b->template_score)
        return a->template_score < b->template_score;
    int64_t lo = a->bytes < b->bytes ? a->bytes : b->bytes,
            hi = a->bytes < b->bytes ? b->bytes : a->bytes, limit;
    if (!__builtin_mul_overflow(lo, 16, &limit) && hi > limit)
        return a->bytes < b->bytes;
    if (a->type_score != b->type_score)
        return a->type_score < b->type_score;
    if (a->bytes != b->bytes)
        return a->bytes < b->bytes;
    return a->proximity < b->proximity;
}

static void reverse(Pair *p, int n) {
    for (int i = 0; i < n / 2; i++) {
        Pair t = p[i];
        p[i] = p[n - 1 - i];
        p[n - 1 - i] = t;
    }
}

// Length of the run at the start of p[n]; a strictly falling one is turned round.
static int count_run(Pair *p, int n) {
    if (n < 2)
        return n;
    int k = 2;
    if (less(&p[1], &p[0])) {
        while (k < n && less(&p[k], &p[k - 1]))
            k++;
        reverse(p, k);
    } else {
        while (k < n && !less(&p[k], &p[k - 1]))
            k++;
    }
    return k;
}

static void insert_sorted(Pair *p, int n, int start) {
    for (int i = start; i < n; i++) {
        Pair pivot = p[i];
        int lo = 0, hi = i;
        while (lo < hi) {
            int mid = lo + ((hi - lo) >> 1);
            if (less(&pivot, &p[mid]))
                hi = mid;
            else
                lo = mid + 1;
        }
        memmove(&p[lo + 1], &p[lo], (size_t)(i - lo) * sizeof *p);
        p[lo] = pivot;
    }
}

static void merge(Pair *p, int n1, int n2, Pair *tmp) {
    memcpy(tmp, p, (size_t)n1 * sizeof *p);
    int i = 0, j = n1, out = 0;
    while (i < n1 && j < n1 + n2)
        p[out++] = less(&p[j], &tmp[i]) ? p[j++] : tmp[i++];
    while (i < n1)
        p[out++] = tmp[i++];
}

typedef struct Run {
    int start, len, power;
} Run;

static int node_power(int64_t s1, int64_t n1, int64_t n2, int64_t n) {
    int power = 0;
    int64_t a = 2 * s1 + n1, b = a + n1 + n2;
    for (;;) {
        power++;
        if (a >= n) {
            a -= n;
            b -= n;
        } else if (b >= n) {
            break;
        }
        a <<= 1;
        b <<= 1;
    }
    return power;
}

static int min_run(int n) {
    int r = 0;
    while (n >= 64) {
        r |= n & 1;
        n >>= 1;
    }
    return n + r;
}

static void merge_last(Pair *p, Run *runs, int *n, Pair *tmp) {
    Run *a = &runs[*n - 2], *b = &runs[*n - 1];
    merge(p + a->start, a->len, b->len, tmp);
    a->len += b->len;
    (*n)--;
}

static void sort(Pair *p, int n, Pair *tmp) {
    Run runs[MAX_PENDING];
    int pending = 0, least = min_run(n);
    for (int at = 0; at < n;) {
        int len = count_run(p + at, n - at);
        if (len < least) {
            int forced = n - at < least ? n - at : least;
            insert_sorted(p + at, forced, len);
            len = forced;
        }
        if (pending) {
            Run *top = &runs[pending - 1];
            int power = node_power(top->start, top->len, len, n);
            while (pending > 1 && runs[pending - 2].power > power)
                merge_last(p, runs, &pending, tmp);
            runs[pending - 1].power = power;
        }
        runs[pending++] = (Run){at, len, 0};
        at += len;
    }
    while (pending > 1)
        merge_last(p, runs, &pending, tmp);
}

void pairs_sort(Arena *a, PairVec *v) {
    Pair *tmp = ARENA_ARRAY(a, v->n + 1, Pair);
    reverse(v->at, v->n);
    sort(v->at, v->n, tmp);
    reverse(v->at, v->n);
}
