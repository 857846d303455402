// partition_knapsack.c: which values to keep within a budget of memory, so that the least time goes
// into computing the others again. Rounding and ties are PyTorch's: weights in ten-thousandths,
// sums in 32-bit floats, and an item counts as taken only if it makes the sum greater.
#include "core/aot/partition_impl.h"

#include <math.h>
#include <string.h>

// Python's round: halves to even; what no budget can hold is cut off.
static int scaled(double v) {
    double r = nearbyint(v * 10000);
    return r > 100000000 ? 100000000 : r < 0 || isnan(r) ? 0 : (int)r;
}

void knapsack_dp(const double *memory, const double *runtime, int n, double budget, bool *take) {
    Arena tmp = {0};
    int room = scaled(budget), bytes = room / 8 + 1;
    float *best = ARENA_ARRAY(&tmp, room + 1, float);
    // (n, room + 1) bits: does item i make the best of the items before it better?
    unsigned char *better = arena_array(&tmp, (size_t)n + 1, (size_t)bytes);
    for (int i = 0; i < n; i++) {
        int w = scaled(memory[i]);
        unsigned char *row = better + (size_t)i * (size_t)bytes;
        for (int j = room; j >= w; j--) {
            float with = best[j - w] + (float)runtime[i];
            if (!(with > best[j]))
                continue;
            best[j] = with;
            row[j / 8] |= (unsigned char)(1 << j % 8);
        }
    }
    for (int i = n - 1, j = room; i >= 0; i--) {
        take[i] = better[(size_t)i * (size_t)bytes + (size_t)(j / 8)] >> j % 8 & 1;
        j -= take[i] ? scaled(memory[i]) : 0;
    }
    arena_free(&tmp);
}

typedef struct Ratio {
    double value;
    int item;
} Ratio;

// Merge sort: stable, greatest first.
static void sort_ratios(Ratio *r, Ratio *tmp, int n) {
    if (n < 2)
        return;
    int half = n / 2;
    sort_ratios(r, tmp, half);
    sort_ratios(r + half, tmp, n - half);
    memcpy(tmp, r, (size_t)n * sizeof *r);
    for (int i = 0, j = half, k = 0; k < n; k++)
        r[k] = j == n || (i < half && tmp[i].value >= tmp[j].value) ? tmp[i++] : tmp[j++];
}

void knapsack_greedy(const double *memory, const double *runtime, int n, double budget,
                     bool *take) {
    Arena tmp = {0};
    Ratio *r = ARENA_ARRAY(&tmp, n + 1, Ratio), *space = ARENA_ARRAY(&tmp, n + 1, Ratio);
    double used = 0;
    for (int i = 0; i < n; i++)
        r[i] = (Ratio){memory[i] > 0 ? runtime[i] / memory[i] : INFINITY, i};
    sort_ratios(r, space, n);
    for (int i = 0; i < n; i++) {
        double m = memory[r[i].item];
        take[r[i].item] = used + m <= budget;
        used += take[r[i].item] ? m : 0;
    }
    arena_free(&tmp);
}
