// bandwidth.c: triad a = b + s * c over arrays larger than any cache, threads pinned to nothing:
// the measure that memory-bound kernels are held against (J. McCalpin, STREAM, 1995).
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
    message_float(c->reply, "bytes_per_s", 3.0 * ELEMS * sizeof(float) / ((double)best * 1e-9));
    return true;
}
