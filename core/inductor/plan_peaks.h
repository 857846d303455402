// plan_peaks.h: the most memory in use over any stretch of the schedule, while buffers live longer
// or shorter than planned.
#ifndef CORE_INDUCTOR_PLAN_PEAKS_H
#define CORE_INDUCTOR_PLAN_PEAKS_H

#include "core/base/arena.h"

// Peak of ranges of nodes, with "add to a range".
typedef struct Peaks {
    int n; // places
    int64_t *max, *add; // (4 * n + 4) of each part, children at 2i and 2i + 1
} Peaks;

// now: bytes in use at each of n places.
void peaks_build(Peaks *t, Arena *a, const int64_t *now, int n);

// Peak of the places [from, to]; what lies outside of all places counts as 0.
int64_t peaks_over(const Peaks *t, int from, int to);
void peaks_raise(Peaks *t, int from, int to, int64_t bytes);

#endif
