// parallel.c: a pool of threads that wait for ranges of work. Made by the first loop that wants
// more than one thread, in the process that computes; a forked child makes its own.
//
// Ops follow each other within microseconds, and to wake a thread that sleeps takes fifty: so who
// waits looks on for a while before it sleeps, where there is a processor for each thread. A loop
// waits only for threads that have joined it: one that wakes too late finds it closed.
#define _POSIX_C_SOURCE 200809L
#include "core/eager/kernel.h"

#include <pthread.h>
#include <stdatomic.h>
#include <time.h>
#include <unistd.h>

enum { MAX_THREADS = 64, LOOK_NS = 100000, LOOKS = 64 };

static struct {
    pthread_mutex_t lock;
    pthread_cond_t work, done;
    pid_t owner;    // process whose threads these are
    int n;          // threads running, the caller not counted
    atomic_ullong round; // of the job at hand
    int wanted;          // threads that may take part in it; 0: closed
    atomic_int busy;     // threads at work in it
    int processors;      // of this machine
    ParallelFn *fn;
    void *ctx;
    int64_t end, chunk; // of the range
    atomic_llong next;  // first index not yet taken
} pool = {.lock = PTHREAD_MUTEX_INITIALIZER,
          .work = PTHREAD_COND_INITIALIZER,
          .done = PTHREAD_COND_INITIALIZER};
static _Thread_local bool inside; // a loop in a loop runs on its thread alone

static void take_ranges(void) {
    for (;;) {
        int64_t begin = atomic_fetch_add(&pool.next, pool.chunk);
        if (begin >= pool.end)
            return;
        int64_t end = begin + pool.chunk;
        pool.fn(pool.ctx, begin, end < pool.end ? end : pool.end);
    }
}

static int64_t clock_now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static inline void breathe(void) {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
}

// Until there is a round that was not seen, or none comes.
static void look_for_round(uint64_t seen) {
    if (pool.n >= pool.processors)
        return;
    for (int64_t end = clock_now() + LOOK_NS; clock_now() < end;)
        for (int i = 0; i < LOOKS; i++) {
            if (atomic_load_explicit(&pool.round, memory_order_relaxed) != seen)
                return;
            breathe();
        }
}

static void look_for_end(void) {
    if (pool.n >= pool.processors)
        return;
    for (int64_t end = clock_now() + LOOK_NS; clock_now() < end;)
        for (int i = 0; i < LOOKS; i++) {
            if (atomic_load_explicit(&pool.busy, memory_order_relaxed) == 0)
                return;
            breathe();
        }
}

static void *worker(void *arg) {
    int id = (int)(intptr_t)arg;
    uint64_t seen = 0;
    inside = true;
    for (;;) {
        look_for_round(seen);
        pthread_mutex_lock(&pool.lock);
        while (pool.round == seen)
            pthread_cond_wait(&pool.work, &pool.lock);
        seen = pool.round;
        bool mine = id < pool.wanted;
        pool.busy += mine;
        pthread_mutex_unlock(&pool.lock);
        if (!mine)
            continue;
        take_ranges();
        pthread_mutex_lock(&pool.lock);
        if (--pool.busy == 0)
            pthread_cond_signal(&pool.done);
        pthread_mutex_unlock(&pool.lock);
    }
    return NULL;
}

// Threads 0 … wanted - 1 exist; how many there are if some cannot be made.
static int ensure(int wanted) {
    if (pool.owner != getpid()) {
        pool.owner = getpid();
        pool.n = 0;
        pool.round = 0;
        pool.processors = (int)sysconf(_SC_NPROCESSORS_ONLN);
        pthread_mutex_init(&pool.lock, NULL);
        pthread_cond_init(&pool.work, NULL);
        pthread_cond_init(&pool.done, NULL);
    }
    while (pool.n < wanted) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, worker, (void *)(intptr_t)pool.n))
            break;
        pthread_detach(thread);
        pool.n++;
    }
    return pool.n < wanted ? pool.n : wanted;
}

void parallel_for(int threads, int64_t n, int64_t grain, ParallelFn *fn, void *ctx) {
    if (threads > MAX_THREADS)
        threads = MAX_THREADS;
    if (grain < 1)
        grain = 1;
    if (n / grain < threads)
        threads = (int)(n / grain);
    if (threads <= 1 || inside) {
        if (n > 0)
            fn(ctx, 0, n);
        return;
    }
    int helpers = ensure(threads - 1);
    pthread_mutex_lock(&pool.lock);
    pool.fn = fn;
    pool.ctx = ctx;
    pool.end = n;
    pool.chunk = (n + 4 * (helpers + 1) - 1) / (4 * (helpers + 1));
    if (pool.chunk < grain)
        pool.chunk = grain;
    atomic_store(&pool.next, 0);
    pool.wanted = helpers;
    // A worker that was made after the last round has seen none: rounds begin at 1.
    pool.round++;
    pthread_cond_broadcast(&pool.work);
    pthread_mutex_unlock(&pool.lock);
    inside = true;
    take_ranges();
    inside = false;
    pthread_mutex_lock(&pool.lock);
    pool.wanted = 0;
    pthread_mutex_unlock(&pool.lock);
    look_for_end();
    pthread_mutex_lock(&pool.lock);
    while (pool.busy)
        pthread_cond_wait(&pool.done, &pool.lock);
    pthread_mutex_unlock(&pool.lock);
}
