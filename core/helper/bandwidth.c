// bandwidth.c: what this machine can do at most. Triad a = b + s * c over arrays larger than any
// cache, threads pinned to nothing: the measure that memory-bound kernels are held against (J.
// McCalpin, STREAM, 1995). And multiply-adds on registers alone, which is what no kernel exceeds.
#include <pthread.h>

#include "core/base/file.h"
#include "core/helper/internal.h"

enum { ELEMS = 1 << 24, MAX_THREADS = 64, ROUNDS = 5 }; // three arrays of 64 MiB

typedef struct Slice {
    float *a;
    const float *b, *c;
    int64_t from, to;
} Slice;

static void *triad(void *arg) {
    const Slice *s = arg;
    float *restrict a = s->a;
    const float *restrict b = s->b, *restrict c = s->c;
    for (int64_t i = s->from; i < s->to; i++)
        a[i] = b[i] + 3.0f * c[i];
    return NULL;
}

#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__) && !defined(__clang__)
#define VECTORED __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define VECTORED
#endif
enum { CHAINS = 128, STEPS = 1 << 16, PEAK_ROUNDS = 20 };

// Independent chains, enough of them to hide how long one takes; they stay in registers.
VECTORED static float multiply_adds(float x, float y) {
    float v[CHAINS], sum = 0;
    for (int k = 0; k < CHAINS; k++)
        v[k] = x + (float)k;
    for (int i = 0; i < STEPS; i++)
#pragma GCC unroll 128
        for (int k = 0; k < CHAINS; k++)
            v[k] = v[k] * y + x;
    for (int k = 0; k < CHAINS; k++)
        sum += v[k];
    return sum;
}

typedef struct Peak {
    float x, y, sum; // sum keeps the work from being left out
} Peak;

static void *compute(void *arg) {
    Peak *p = arg;
    p->sum += multiply_adds(p->x, p->y);
    return NULL;
}

// Multiplications and additions of f32 a second, on n threads; the best of some rounds.
static double peak_flops(int n) {
    Peak peaks[MAX_THREADS];
    int64_t best = INT64_MAX;
    for (int r = 0; r < PEAK_ROUNDS; r++) {
        pthread_t threads[MAX_THREADS];
        int started = 0;
        int64_t start = clock_ns();
        for (int i = 0; i < n; i++)
            peaks[i] = (Peak){.x = 1e-3f, .y = 0.999f};
        for (int i = 1; i < n; i++)
            if (pthread_create(&threads[started], NULL, compute, &peaks[i]) == 0)
                started++;
            else
                compute(&peaks[i]);
        compute(&peaks[0]);
        for (int i = 0; i < started; i++)
            pthread_join(threads[i], NULL);
        int64_t ns = clock_ns() - start;
        best = ns < best ? ns : best;
    }
    return 2.0 * CHAINS * STEPS * n / ((double)best * 1e-9);
}

static int64_t run_round(Slice *slices, int n) {
    pthread_t threads[MAX_THREADS];
    int64_t start = clock_ns();
    int started = 0;
    for (int i = 1; i < n; i++)
        if (pthread_create(&threads[started], NULL, triad, &slices[i]) == 0)
            started++;
        else
            triad(&slices[i]);
    triad(&slices[0]);
    for (int i = 0; i < started; i++)
        pthread_join(threads[i], NULL);
    return clock_ns() - start;
}

bool service_bandwidth(ServiceCtx *c, const Message *m) {
    int n = (int)message_get_int(m, "threads", 1);
    n = n < 1 ? 1 : n > MAX_THREADS ? MAX_THREADS : n;
    Storage *s[3];
    Slice slices[MAX_THREADS];
    for (int i = 0; i < 3; i++)
        if (!(s[i] = storage_new((size_t)ELEMS * sizeof(float), c->diag)))
            return false;
    for (int i = 0; i < n; i++)
        slices[i] = (Slice){storage_data(s[0]), storage_data(s[1]), storage_data(s[2]),
                            (int64_t)ELEMS * i / n, (int64_t)ELEMS * (i + 1) / n};
    int64_t best = INT64_MAX;
    for (int i = 0; i <= ROUNDS; i++) {
        int64_t ns = run_round(slices, n);
        if (i && ns < best) // the first round takes the pages
            best = ns;
    }
    for (int i = 0; i < 3; i++)
        storage_drop(s[i]);
    if (message_get_int(m, "peak", 0))
        message_float(c->reply, "flops_per_s", peak_flops(n));
    message_float(c->reply, "bytes_per_s", 3.0 * ELEMS * sizeof(float) / ((double)best * 1e-9));
    return true;
}
