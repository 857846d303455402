// run.c: calling generated code: its runtime, its results, its times. A failing check or extern
// leaves call() by longjmp; the pool takes back what it had allocated.
#include <dlfcn.h>
#include <setjmp.h>
#include <stdlib.h>
#include <stdio.h>
#include <string.h>

#include "core/base/file.h"
#include "core/exec/internal.h"

enum { MAX_EVENTS = 4096 }; // kernel calls timed in one call()

typedef struct Runner {
    FxRuntime rt; // first: generated code gets its address
    EagerCtx eager;
    Generator generator; // seeded anew for each call
    Pool *pool;
    Arena scratch; // of one library call; the pool's own blocks may be made during one
    jmp_buf escape; // out of call()
    char *where;    // what is running now, for a crash report; may be NULL
    const ExecRun *run;
    // per-kernel times of one call
    bool timing;
    int64_t began;
    int n_calls; // library calls of this run so far
    int n_events;
    int64_t ns[MAX_EVENTS]; // of the i-th kernel or extern call
    const char *names[MAX_EVENTS];
} Runner;

static void *rt_alloc(FxRuntime *rt, int64_t bytes) {
    Runner *r = (Runner *)rt;
    void *p = pool_alloc(r->pool, bytes);
    if (!p) {
        diag_tool(r->eager.diag, "out of memory: the generated code asks for %lld bytes",
                  (long long)bytes);
        longjmp(r->escape, 1);
    }
    if (r->run->poison)
        memset(p, r->run->poison, (size_t)bytes);
    return p;
}

static void rt_free(FxRuntime *rt, void *base) {
    Runner *r = (Runner *)rt;
    if (base)
        pool_free(r->pool, base);
}

static void rt_fail(FxRuntime *rt, const char *what) {
    Runner *r = (Runner *)rt;
    diag_tool(r->eager.diag, "%s", what);
    longjmp(r->escape, 1);
}

static void say_where(Runner *r, const char *name) {
    if (r->where)
        strncpy(r->where, name, EXEC_WHERE_BYTES - 1);
}

static void rt_kernel(FxRuntime *rt, const char *name, int32_t end) {
    Runner *r = (Runner *)rt;
    if (!end) {
        if (r->run->until && !strcmp(name, r->run->until)) {
            diag_tool(r->eager.diag, "the run ends before %s", name);
            longjmp(r->escape, 1);
        }
        say_where(r, name);
        if (r->timing)
            r->began = clock_ns();
    } else {
        say_where(r, "call()");
    }
    if (end && r->timing && r->n_events < MAX_EVENTS) {
        r->names[r->n_events] = name;
        r->ns[r->n_events++] = clock_ns() - r->began;
    }
}

static void show(Runner *r, const char *name, const FxTensor *t) {
    if (t->ndim < 0 || t->ndim > TENSOR_DIMS || !t->data)
        return;
    Tensor seen = {.dtype = (DType)t->dtype, .ndim = t->ndim};
    int64_t span = 1;
    for (int k = 0; k < t->ndim; k++) {
        seen.size[k] = t->size[k];
        seen.stride[k] = t->stride[k];
        span = t->size[k] ? span + (t->size[k] - 1) * t->stride[k] : 0;
    }
    if (span <= 0 || tensor_numel(&seen) == 0)
        return;
    seen.storage = storage_borrow(t->data, (size_t)span * (size_t)dtype_info[seen.dtype].bytes);
    r->run->tap(r->run->tap_ctx, name, &seen);
    tensor_drop(&seen);
}

// Buffers as they are now, by name.
static void tap(Runner *r, const FxArg *args, int32_t n_args) {
    for (int i = 0; r->run->tap && i < n_args; i++)
        if (args[i].tag == FXA_tensor && args[i].kw)
            show(r, args[i].kw, args[i].v.t);
}

// What a library call gets and gives: `call 3 in 0`, `call 3 out 0`.
static void tap_call(Runner *r, const char *what, int i, const FxTensor *t) {
    char name[48];
    snprintf(name, sizeof name, "call %d %s %d", r->n_calls, what, i);
    if (r->run->tap)
        show(r, name, t);
}

static void tap_args(Runner *r, const char *what, const FxArg *args, int32_t n_args) {
    for (int i = 0; i < n_args; i++)
        if (args[i].tag == FXA_tensor)
            tap_call(r, what, i, args[i].v.t);
}

static void rt_call(FxRuntime *rt, const char *name, FxTensor *const out[], int32_t n_out,
                    const FxArg *args, int32_t n_args) {
    Runner *r = (Runner *)rt;
    if (!strcmp(name, CODEGEN_TAP)) {
        tap(r, args, n_args);
        return;
    }
    rt_kernel(rt, name, 0);
    tap_args(r, "in", args, n_args);
    ArenaMark mark = arena_mark(r->eager.arena);
    if (!extern_gemm(name, r->rt.threads, out, n_out, args, n_args) &&
        !extern_call(&r->eager, rt, name, out, n_out, args, n_args))
        longjmp(r->escape, 1);
    arena_rewind(r->eager.arena, mark);
    for (int i = 0; i < n_out; i++)
        tap_call(r, "out", i, out[i]);
    tap_args(r, "after", args, n_args);
    r->n_calls++;
    rt_kernel(rt, name, 1);
}

static bool call_once(Runner *r, FxTensor *const *in, FxTensor *out) {
    memset(out, 0, sizeof *out * (size_t)(r->run->n_out ? r->run->n_out : 1));
    r->n_events = r->n_calls = 0;
    say_where(r, "call()");
    generator_seed(&r->generator, r->run->seed);
    if (setjmp(r->escape))
        return false;
    if (exec_entry(r->run->code)(&r->rt, in, out) != 0) {
        diag_tool(r->eager.diag, "the generated code gave up");
        return false;
    }
    return true;
}

static int by_size(const void *a, const void *b) {
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return x < y ? -1 : x > y;
}

void timing_quantiles(int64_t *ns, int n, int64_t *median, int64_t *min, int64_t *p90) {
    qsort(ns, (size_t)n, sizeof *ns, by_size);
    *median = n ? ns[n / 2] : 0;
    *min = n ? ns[0] : 0;
    *p90 = n ? ns[n * 9 / 10] : 0;
}

// Two calls to warm up, then `repeat` at least and up to 0.3 s.
static bool time_calls(Runner *r, FxTensor *const *in, FxTensor *out, Arena *a, Timing *t) {
    enum { MAX_RUNS = 2000 };
    int64_t *ns = ARENA_ARRAY(a, MAX_RUNS, int64_t);
    int64_t **kernel = NULL;
    int n = 0, n_kernels = 0, warm = 2;
    for (int64_t begin = clock_ns();
         n < MAX_RUNS && (n < r->run->repeat || clock_ns() - begin < 300000000);) {
        pool_free_all(r->pool);
        r->timing = (n & 1) != 0; // every second call is timed by kernel, the others as a whole
        int64_t start = clock_ns();
        if (!call_once(r, in, out))
            return false;
        int64_t took = clock_ns() - start;
        if (warm-- > 0)
            continue;
        if (r->timing && !kernel) {
            n_kernels = r->n_events;
            kernel = ARENA_ARRAY(a, n_kernels + 1, int64_t *);
            for (int i = 0; i < n_kernels; i++)
                kernel[i] = ARENA_ARRAY(a, MAX_RUNS, int64_t);
        }
        for (int i = 0; r->timing && i < n_kernels; i++)
            kernel[i][n / 2] = r->ns[i];
        ns[n++] = took;
        if (r->run->cancel && *r->run->cancel)
            break;
    }
    int whole = 0;
    for (int i = 0; i < n; i += 2)
        ns[whole++] = ns[i];
    timing_quantiles(ns, whole, &t->median_ns, &t->min_ns, &t->p90_ns);
    t->runs = whole;
    t->noisy = (double)t->p90_ns > 1.3 * (double)t->median_ns;
    t->n_kernels = n_kernels;
    t->kernels = ARENA_ARRAY(a, n_kernels + 1, KernelTime);
    for (int i = 0; i < n_kernels; i++) {
        KernelTime *k = &t->kernels[i];
        k->name = r->names[i];
        k->runs = n / 2;
        timing_quantiles(kernel[i], n / 2, &k->median_ns, &k->min_ns, &k->p90_ns);
    }
    return true;
}

static void set_threads(int threads) {
    void (*set)(int);
    *(void **)&set = dlsym(RTLD_DEFAULT, "omp_set_num_threads");
    if (set && threads > 0)
        set(threads);
}

static bool take_output(const FxTensor *t, RtValue *out, Diag *d) {
    *out = (RtValue){0};
    if (t->ndim < 0 || !t->data)
        return true;
    if (t->dtype <= DT_none || t->dtype >= DT_count || t->ndim > TENSOR_DIMS) {
        diag_tool(d, "the generated code returns a tensor that is none");
        return false;
    }
    Tensor borrowed = tensor_of(t);
    out->kind = RT_tensor;
    bool ok = tensor_new_strided(&out->tensor, borrowed.dtype, borrowed.ndim, borrowed.size,
                                 borrowed.stride, d);
    if (ok)
        tensor_copy(&out->tensor, &borrowed);
    tensor_drop(&borrowed);
    return ok;
}

static FxTensor **take_inputs(Arena *a, const ExecRun *run) {
    FxTensor **in = ARENA_ARRAY(a, run->n_in + 1, FxTensor *);
    for (int i = 0; i < run->n_in; i++) {
        in[i] = ARENA_NEW(a, FxTensor);
        if (run->inputs[i].kind == RT_tensor)
            fx_tensor_of(&run->inputs[i].tensor, in[i]);
        else if (run->inputs[i].kind == RT_float)
            *in[i] = (FxTensor){.data = &run->inputs[i].f, .dtype = DT_f64};
        else
            *in[i] = (FxTensor){.data = &run->inputs[i].i, .dtype = DT_i64};
    }
    return in;
}

// Timed calls write mutated inputs again and again, so the results are those of the first call.
bool exec_run(ExecRun *run, Arena *a, Diag *d) {
    Runner *r = ARENA_NEW(a, Runner);
    r->rt = (FxRuntime){
        .alloc = rt_alloc, .free = rt_free, .call = rt_call, .fail = rt_fail, .kernel = rt_kernel};
    r->rt.special = eager_special_call;
    r->rt.threads = run->threads;
    r->eager = (EagerCtx){
        .arena = &r->scratch, .diag = d, .threads = run->threads, .generator = &r->generator};
    r->pool = pool_new(a);
    r->run = run;
    r->where = run->where;
    set_threads(run->threads);
    FxTensor **in = take_inputs(a, run);
    FxTensor *out = ARENA_ARRAY(a, run->n_out + 1, FxTensor);
    bool ok = call_once(r, in, out);
    for (int i = 0; ok && i < run->n_out; i++)
        ok = take_output(&out[i], &run->outputs[i], d);
    if (ok && run->repeat) {
        if (run->before_timing)
            run->before_timing(run->ctx);
        ok = time_calls(r, in, out, a, &run->timing);
    }
    run->peak_bytes = pool_peak(r->pool);
    pool_drop(r->pool);
    arena_free(&r->scratch);
    return ok;
}
