// blocks.c: see blocks.h. Repetitions are found by the distances at which three things in a row
// come again: the commonest of them are tried as periods.
#include "views/blocks.h"

#include <stdlib.h>

#include "core/base/map.h"

enum { TRIED = 16, LEAST = 16, LEAST_PERIOD = 2, ROWS = 16 };

typedef struct Repeat {
    int first, period, times;
} Repeat;
typedef VEC(Repeat) RepeatVec;

typedef struct Distance {
    int distance, count;
} Distance;

static int by_count(const void *x, const void *y) {
    const Distance *a = x, *b = y;
    return a->count != b->count ? b->count - a->count : a->distance - b->distance;
}

// Distances between things that with the two behind them do the same, the commonest first.
static int distances(Arena *a, const uint64_t *kind, int first, int end, Distance **out) {
    Map last = {.arena = a}, seen = {.arena = a};
    VEC(Distance) all = {0};
    for (int i = first; i + 2 < end; i++) {
        MapEntry *e =
            map_at_id(&last, hash_mix(hash_mix(kind[i], kind[i + 1]), kind[i + 2]));
        int distance = e->i ? i + 1 - (int)e->i : 0;
        e->i = i + 1;
        if (distance < LEAST_PERIOD || distance > (end - first) / 2)
            continue;
        MapEntry *d = map_at_id(&seen, (uint64_t)distance);
        if (!d->i) {
            vec_push(a, &all, (Distance){distance, 0});
            d->i = all.n;
        }
        all.at[d->i - 1].count++;
    }
    if (all.n)
        qsort(all.at, (size_t)all.n, sizeof *all.at, by_count);
    *out = all.at;
    return all.n < TRIED ? all.n : TRIED;
}

// The longest row that repeats with a period.
static Repeat longest(const uint64_t *kind, int first, int end, int period) {
    Repeat best = {first, period, 0};
    for (int i = first; i + period < end;) {
        int k = i;
        while (k + period < end && kind[k] == kind[k + period])
            k++;
        int times = k - i >= period ? (k - i) / period + 1 : 0;
        if (times > best.times)
            best = (Repeat){i, period, times};
        i = k + 1;
    }
    return best;
}

// A row may begin anywhere in its period: where the fewest values are alive, if that costs no more
// than one time.
static Repeat at_waist(Repeat r, const uint64_t *kind, const int *alive, int end) {
    int cut = r.first + r.period, last = r.first + r.times * r.period, more = 0, shift = 0;
    while (last + more < end && kind[last + more] == kind[last + more - r.period])
        more++;
    for (int i = 0; i < r.period; i++)
        if (alive[cut + i] < alive[cut + shift])
            shift = i;
    if (shift > more && r.times == 2)
        return r;
    r.times -= shift > more;
    r.first += shift;
    return r;
}

static void find_repeats(Arena *a, const uint64_t *kind, const int *alive, int first, int end,
                         int least, RepeatVec *out) {
    if (end - first < least)
        return;
    Arena tmp = {0};
    Distance *d;
    int n = distances(&tmp, kind, first, end, &d);
    Repeat best = {0};
    for (int i = 0; i < n; i++) {
        Repeat r = longest(kind, first, end, d[i].distance);
        int64_t covers = (int64_t)r.period * r.times, most = (int64_t)best.period * best.times;
        // A shorter period tells more, unless it leaves much out.
        if (r.period < best.period ? covers * 10 >= most * 9 : covers * 9 > most * 10)
            best = r;
    }
    arena_free(&tmp);
    if (best.times < 2 || best.period * best.times < least)
        return;
    Repeat r = at_waist(best, kind, alive, end);
    find_repeats(a, kind, alive, first, r.first, least, out);
    vec_push(a, out, r);
    find_repeats(a, kind, alive, r.first + r.period * r.times, end, least, out);
}

// What repeats nothing, in runs of about `per` that end where few values are alive.
static void cut_rest(Arena *a, const int *alive, int first, int end, int per, BlockVec *out) {
    int runs = (end - first + per - 1) / per;
    for (int i = 0, from = first; i < runs && from < end; i++) {
        int want = i + 1 == runs ? end : first + (int)((int64_t)(end - first) * (i + 1) / runs);
        int reach = i + 1 == runs ? 0 : per / 3, to = want;
        for (int k = want - reach; k <= want + reach; k++) {
            bool inside = k > from && k < end;
            if (inside && (alive[k] < alive[to] ||
                           (alive[k] == alive[to] && abs(k - want) < abs(to - want))))
                to = k;
        }
        if (to > from)
            vec_push(a, out, (Block){.first = from, .n = to - from});
        from = to;
    }
}

int blocks_find(Arena *a, const uint64_t *kind, const int *alive, int first, int end, int want,
                BlockVec *out) {
    RepeatVec repeats = {0};
    int least = (end - first) / ROWS > LEAST ? (end - first) / ROWS : LEAST;
    find_repeats(a, kind, alive, first, end, least, &repeats);
    int per = (end - first + want - 1) / (want > 0 ? want : 1), at = first;
    per = per > 0 ? per : 1;
    for (int i = 0; i < repeats.n; i++) {
        const Repeat *r = &repeats.at[i];
        int together = per / r->period > 1 ? per / r->period : 1;
        cut_rest(a, alive, at, r->first, per, out);
        for (int k = 0; k < r->times; k += together) {
            int n = r->times - k < together ? r->times - k : together;
            vec_push(a, out, (Block){r->first + k * r->period, n * r->period, k + 1, k + n,
                                     r->times, i});
        }
        at = r->first + r->times * r->period;
    }
    cut_rest(a, alive, at, end, per, out);
    return repeats.n;
}
