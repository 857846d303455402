// select.c: selection among n elements. Which of several equal elements comes first is not defined
// by PyTorch but follows from the algorithms that it runs: the C++ library's introselect and heaps
// (D. Musser, "Introspective sorting and selection algorithms", 1997) for topk, quickselect with a
// median of three for kthvalue.
#include "core/eager/select.h"

#include <string.h>

typedef struct Order {
    bool largest;
} Order;

static bool before(const Order *o, const Rank *x, const Rank *y) {
    return o->largest ? x->key > y->key : x->key < y->key;
}

static void swap(Rank *x, Rank *y) {
    Rank t = *x;
    *x = *y;
    *y = t;
}

static void insert(const Order *o, Rank *last) {
    Rank v = *last;
    Rank *next = last - 1;
    while (before(o, &v, next)) {
        *last = *next;
        last = next--;
    }
    *last = v;
}

static void insertion_sort(const Order *o, Rank *first, Rank *last) {
    for (Rank *i = first + (first != last); i < last; i++) {
        if (before(o, i, first)) {
            Rank v = *i;
            memmove(first + 1, first, (size_t)(i - first) * sizeof v);
            *first = v;
        } else {
            insert(o, i);
        }
    }
}

static void median_to(const Order *o, Rank *to, Rank *a, Rank *b, Rank *c) {
    if (before(o, a, b))
        swap(to, before(o, b, c) ? b : before(o, a, c) ? c : a);
    else
        swap(to, before(o, a, c) ? a : before(o, b, c) ? c : b);
}

static Rank *partition(const Order *o, Rank *first, Rank *last) {
    Rank *pivot = first;
    median_to(o, first, first + 1, first + (last - first) / 2, last - 1);
    for (first++;; first++) {
        while (before(o, first, pivot))
            first++;
        do
            last--;
        while (before(o, pivot, last));
        if (first >= last)
            return first;
        swap(first, last);
    }
}

// heaps

static void sift(const Order *o, Rank *first, int64_t hole, int64_t len, Rank v) {
    int64_t top = hole, child = hole;
    while (child < (len - 1) / 2) {
        child = 2 * (child + 1);
        if (before(o, &first[child], &first[child - 1]))
            child--;
        first[hole] = first[child];
        hole = child;
    }
    if (len % 2 == 0 && child == (len - 2) / 2) {
        child = 2 * (child + 1);
        first[hole] = first[child - 1];
        hole = child - 1;
    }
    for (int64_t parent = (hole - 1) / 2; hole > top && before(o, &first[parent], &v);
         parent = (hole - 1) / 2) {
        first[hole] = first[parent];
        hole = parent;
    }
    first[hole] = v;
}

static void pop(const Order *o, Rank *first, Rank *last, Rank *to) {
    Rank v = *to;
    *to = *first;
    sift(o, first, 0, last - first, v);
}

static void heap_select(const Order *o, Rank *first, Rank *middle, Rank *last) {
    int64_t len = middle - first;
    for (int64_t parent = (len - 2) / 2; len > 1 && parent >= 0; parent--)
        sift(o, first, parent, len, first[parent]);
    for (Rank *i = middle; i < last; i++)
        if (before(o, i, first))
            pop(o, first, middle, i);
}

static void partial_sort(const Order *o, Rank *first, Rank *middle, Rank *last) {
    heap_select(o, first, middle, last);
    while (middle - first > 1) {
        middle--;
        pop(o, first, middle, middle);
    }
}

static int depth_of(int64_t n) {
    int lg = 0;
    while (n > 1) {
        n >>= 1;
        lg++;
    }
    return 2 * lg;
}

static void nth_element(const Order *o, Rank *first, Rank *nth, Rank *last) {
    int depth = depth_of(last - first);
    if (first == last || nth == last)
        return;
    while (last - first > 3) {
        if (depth-- == 0) {
            heap_select(o, first, nth + 1, last);
            swap(first, nth);
            return;
        }
        Rank *cut = partition(o, first, last);
        if (cut <= nth)
            first = cut;
        else
            last = cut;
    }
    insertion_sort(o, first, last);
}

enum { SMALL = 16 };

static void sort_loop(const Order *o, Rank *first, Rank *last, int depth) {
    while (last - first > SMALL) {
        if (depth-- == 0) {
            partial_sort(o, first, last, last);
            return;
        }
        Rank *cut = partition(o, first, last);
        sort_loop(o, cut, last, depth);
        last = cut;
    }
}

static void sort(const Order *o, Rank *first, Rank *last) {
    sort_loop(o, first, last, depth_of(last - first));
    if (last - first <= SMALL) {
        insertion_sort(o, first, last);
        return;
    }
    insertion_sort(o, first, first + SMALL);
    for (Rank *i = first + SMALL; i < last; i++)
        insert(o, i);
}

void select_top(Rank *a, int64_t n, int64_t k, bool largest, bool sorted) {
    Order o = {largest};
    if (k <= 0)
        return;
    if (k * 64 <= n) {
        partial_sort(&o, a, a + k, a + n);
        return;
    }
    nth_element(&o, a, a + k - 1, a + n);
    if (sorted)
        sort(&o, a, a + k - 1);
}

void select_nth(Rank *a, int64_t n, int64_t k) {
    int64_t left = 0, right = n - 1;
    while (right > left) {
        if (right == left + 1) {
            if (a[left].key > a[right].key)
                swap(&a[left], &a[right]);
            return;
        }
        swap(&a[left + (right - left) / 2], &a[left + 1]);
        if (a[left + 1].key > a[right].key)
            swap(&a[left + 1], &a[right]);
        if (a[left].key > a[right].key)
            swap(&a[left], &a[right]);
        if (a[left + 1].key > a[left].key)
            swap(&a[left + 1], &a[left]);
        int64_t i = left + 1, j = right;
        uint64_t pivot = a[left].key;
        for (;;) {
            do
                i++;
            while (pivot > a[i].key);
            do
                j--;
            while (a[j].key > pivot);
            if (j < i)
                break;
            swap(&a[i], &a[j]);
        }
        swap(&a[left], &a[j]);
        if (j <= k)
            left = i;
        if (j >= k)
            right = j - 1;
    }
}

// Byte by byte of the keys, the lowest first; bytes that all keys share are passed over. Stable.
static void sort_by_bytes(Rank *a, Rank *tmp, int64_t n, bool descending) {
    enum { BYTES = sizeof a->key, VALUES = 256 };
    uint64_t flip = descending ? UINT64_MAX : 0, differ = 0;
    Rank *from = a, *to = tmp;
    for (int64_t i = 1; i < n; i++)
        differ |= a[i].key ^ a[0].key;
    for (int b = 0; b < BYTES; b++) {
        int shift = 8 * b;
        if (!(differ >> shift & (VALUES - 1)))
            continue;
        int64_t place[VALUES] = {0}, sum = 0;
        for (int64_t i = 0; i < n; i++)
            place[(from[i].key ^ flip) >> shift & (VALUES - 1)]++;
        for (int v = 0; v < VALUES; v++) {
            int64_t count = place[v];
            place[v] = sum;
            sum += count;
        }
        for (int64_t i = 0; i < n; i++)
            to[place[(from[i].key ^ flip) >> shift & (VALUES - 1)]++] = from[i];
        Rank *other = from;
        from = to;
        to = other;
    }
    if (from != a)
        memcpy(a, from, (size_t)n * sizeof *a);
}

void sort_ranks(Rank *a, Rank *tmp, int64_t n, bool descending) {
    enum { LONG_RUN = 128 };
    if (n >= LONG_RUN) {
        sort_by_bytes(a, tmp, n, descending);
        return;
    }
    for (int64_t width = 1; width < n; width *= 2) {
        for (int64_t lo = 0; lo < n; lo += 2 * width) {
            int64_t mid = lo + width < n ? lo + width : n,
                    hi = lo + 2 * width < n ? lo + 2 * width : n, i = lo, j = mid;
            for (int64_t o = lo; o < hi; o++) {
                bool left = j >= hi ||
                            (i < mid && (descending ? a[i].key >= a[j].key : a[i].key <= a[j].key));
                tmp[o] = left ? a[i++] : a[j++];
            }
        }
        memcpy(a, tmp, (size_t)n * sizeof *a);
    }
}
