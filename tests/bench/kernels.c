// kernels.c: times generated C against the memory bandwidth of the machine (STREAM's triad over the
// same number of bytes, measured around each case) and prints the ratio.
//
//     build/bench/kernels [-t THREADS] [-s] [NAME…]     -s: print the code of the cases
#define _POSIX_C_SOURCE 200809L
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "core/base/file.h"
#include "core/exec/exec.h"
#include "core/inductor/codegen.h"
#include "core/tensor/tensor.h"

typedef struct Case {
    const char *name;
    const char *inputs; // parameters of forward
    const char *body;   // statements, `;` between them; the last is what is returned
    int calls;          // kernels a run when call overhead is the question; else 1
} Case;

#define A "torch.ops.aten."
#define SOFTMAX                                                                                    \
    "m = " A "amax.default(x, [1], True); d = " A "sub.Tensor(x, m); e = " A "exp.default(d);"     \
    "s = " A "sum.dim_IntList(e, [1], True); r = " A "div.Tensor(e, s); (r,)"
#define LAYER_NORM                                                                                 \
    "v = " A "var_mean.correction(x, [1], correction = 0, keepdim = True); q = v[0]; u = v[1];"    \
    "d = " A "sub.Tensor(x, u); p = " A "add.Tensor(q, 1e-05); i = " A "rsqrt.default(p); n = " A  \
    "mul.Tensor(d, i);"                                                                            \
    "w1 = " A "mul.Tensor(n, w); r = " A "add.Tensor(w1, b); (r,)"
#define TO(v, t) "torch.ops.prims.convert_element_type.default(" v ", torch." t ")"

static const Case cases[] = {
    {"chain_16M",
     "a: \"f32[16777216]\", b: \"f32[16777216]\", c: \"f32[16777216]\", d: \"f32[16777216]\", e: "
     "\"f32[16777216]\"",
     "p = " A "mul.Tensor(a, b); q = " A "add.Tensor(p, c); r = " A "mul.Tensor(q, d); s = " A
     "add.Tensor(r, e);"
     "t = " A "relu.default(s); (t,)",
     1},
    {"softmax_4096x1024", "x: \"f32[4096, 1024]\"", SOFTMAX, 1},
    {"softmax_32768x1024", "x: \"f32[32768, 1024]\"", SOFTMAX, 1},
    {"layer_norm_4096x1024", "x: \"f32[4096, 1024]\", w: \"f32[1024]\", b: \"f32[1024]\"",
     LAYER_NORM, 1},
    {"layer_norm_32768x1024", "x: \"f32[32768, 1024]\", w: \"f32[1024]\", b: \"f32[1024]\"",
     LAYER_NORM, 1},
    {"sum_dim0_8192x2048", "x: \"f32[8192, 2048]\"", "s = " A "sum.dim_IntList(x, [0]); (s,)", 1},
    {"sum_dim0_65536x64", "x: \"f32[65536, 64]\"", "s = " A "sum.dim_IntList(x, [0]); (s,)", 1},
    {"sum_dim1_8192x2048", "x: \"f32[8192, 2048]\"", "s = " A "sum.dim_IntList(x, [1]); (s,)", 1},
    {"sum_dim1_64x128x4096", "x: \"f32[64, 128, 4096]\"", "s = " A "sum.dim_IntList(x, [1]); (s,)",
     1},
    {"sum_all_16M", "x: \"f32[8192, 2048]\"",
     "y = " A "mul.Tensor(x, x); s = " A "sum.default(y); (s,)", 1},
    {"amax_all_16M", "x: \"f32[8192, 2048]\"", "s = " A "amax.default(x, [0, 1]); (s,)", 1},
    {"argmax_dim1_8192x2048", "x: \"f32[8192, 2048]\"", "s = " A "argmax.default(x, 1); (s,)", 1},
    {"var_dim0_8192x2048", "x: \"f32[8192, 2048]\"",
     "s = " A "var.correction(x, [0], correction = 1); (s,)", 1},
    {"bn_stats_32x64x56x56", "x: \"f32[32, 64, 56, 56]\"",
     "v = " A "var_mean.correction(x, [0, 2, 3], correction = 0, keepdim = True);"
     "q = v[0]; u = v[1]; d = " A "sub.Tensor(x, u); p = " A "add.Tensor(q, 1e-05); i = " A
     "rsqrt.default(p);"
     "n = " A "mul.Tensor(d, i); (n,)",
     1},
    {"transpose_add_4096", "x: \"f32[4096, 4096]\", y: \"f32[4096, 4096]\"",
     "t = " A "permute.default(x, [1, 0]); r = " A "add.Tensor(y, t); (r,)", 1},
    {"transpose_copy_4096", "x: \"f32[4096, 4096]\"",
     "t = " A "permute.default(x, [1, 0]); r = " A
     "clone.default(t, memory_format = torch.contiguous_format); (r,)",
     1},
    {"heads_8x1024x16x64", "x: \"f32[8, 1024, 16, 64]\"",
     "t = " A "permute.default(x, [0, 2, 1, 3]);"
     "r = " A "clone.default(t, memory_format = torch.contiguous_format); (r,)",
     1},
    {"gelu_bias_4096x3072", "x: \"f32[4096, 3072]\", b: \"f32[3072]\"",
     "y = " A "add.Tensor(x, b); h = " A "mul.Tensor(y, 0.5);"
     "s = " A "mul.Tensor(y, 0.7071067811865476); e = " A "erf.default(s); f = " A
     "add.Tensor(e, 1); r = " A "mul.Tensor(h, f); (r,)",
     1},
    {"gelu_tanh_4096x3072", "x: \"f32[4096, 3072]\"",
     "h = " A "mul.Tensor(x, 0.5); c = " A "pow.Tensor_Scalar(x, 3); k = " A
     "mul.Tensor(c, 0.044715); y = " A "add.Tensor(x, k); z = " A
     "mul.Tensor(y, 0.7978845608028654); e = " A "tanh.default(z);"
     "f = " A "add.Tensor(e, 1); r = " A "mul.Tensor(h, f); (r,)",
     1},
    {"silu_mul_4096x3072", "x: \"f32[4096, 3072]\", y: \"f32[4096, 3072]\"",
     "s = " A "sigmoid.default(x); m = " A "mul.Tensor(x, s); r = " A "mul.Tensor(m, y); (r,)", 1},
    {"rms_norm_bf16_4096x2048", "x: \"bf16[4096, 2048]\", w: \"bf16[2048]\"",
     "f = " TO("x", "float32") "; q = " A "pow.Tensor_Scalar(f, 2); m = " A
                               "mean.dim(q, [1], True); p = " A "add.Tensor(m, 1e-06); i = " A
                               "rsqrt.default(p);"
                               "n = " A "mul.Tensor(f, i); o = " TO(
                                   "n", "bfloat16") "; r = " A "mul.Tensor(o, w); (r,)",
     1},
    {"xent_4096x8192", "x: \"f32[4096, 8192]\"",
     "m = " A "amax.default(x, [1], True); d = " A "sub.Tensor(x, m); e = " A
     "exp.default(d); s = " A "sum.dim_IntList(e, [1], True); l = " A "log.default(s); r = " A
     "add.Tensor(l, m); (r,)",
     1},
    {"embedding_16384x768", "i: \"i64[16384]\", w: \"f32[4000, 768]\"",
     "r = " A "index.Tensor(w, [i]); (r,)", 1},
    {"cat_split_4096x2048", "x: \"f32[4096, 1024]\", y: \"f32[4096, 1024]\"",
     "r = " A "cat.default([x, y], 1); (r,)", 1},
    {"small_256", "x: \"f32[256]\"", "a = " A "add.Tensor(x, 1); (a,)", 1},
    {"small_16384", "x: \"f32[16384]\"", "a = " A "add.Tensor(x, 1); (a,)", 1},
    {"small_65536", "x: \"f32[65536]\"", "a = " A "add.Tensor(x, 1); (a,)", 1},
    {"small_softmax_32x64", "x: \"f32[32, 64]\"", SOFTMAX, 1},
};

typedef struct Bench {
    Arena arena;
    Diag diag;
    Sym *sym;
    InductorConfig config;
    int threads;
    bool show;
} Bench;

// --- the runtime of generated code: what is freed is given again

typedef struct Block {
    void *data;
    int64_t bytes;
    bool used;
} Block;

typedef struct Runtime {
    FxRuntime rt; // first
    Diag *diag;
    Block block[64];
    int n;
} Runtime;

static void *rt_alloc(FxRuntime *rt, int64_t bytes) {
    Runtime *r = (Runtime *)rt;
    for (int i = 0; i < r->n; i++)
        if (!r->block[i].used && r->block[i].bytes == bytes) {
            r->block[i].used = true;
            return r->block[i].data;
        }
    Storage *s = storage_new((size_t)bytes, r->diag);
    if (!s || r->n == COUNT(r->block))
        die("no memory for a case");
    r->block[r->n] = (Block){storage_data(s), bytes, true};
    return r->block[r->n++].data;
}

static void rt_free(FxRuntime *rt, void *base) {
    Runtime *r = (Runtime *)rt;
    for (int i = 0; i < r->n; i++)
        if (r->block[i].data == base)
            r->block[i].used = false;
}

static void rt_call(FxRuntime *rt, const char *name, FxTensor *const out[], int32_t n_out,
                    const FxArg *args, int32_t n_args) {
    (void)rt;
    (void)out;
    (void)n_out;
    (void)args;
    (void)n_args;
    die("a case calls %s", name);
}

static void rt_fail(FxRuntime *rt, const char *what) {
    (void)rt;
    die("%s", what);
}

static void rt_kernel(FxRuntime *rt, const char *name, int32_t end) {
    (void)rt;
    (void)name;
    (void)end;
}

// --- a case to code

static const char *graph_text(Bench *b, const Case *c) {
    Buf t = {.arena = &b->arena};
    buf_printf(&t, "class <lambda>(torch.nn.Module):\n    def forward(self, %s):\n", c->inputs);
    const char *p = c->body;
    while (*p) {
        const char *end = strchr(p, ';');
        size_t n = end ? (size_t)(end - p) : strlen(p);
        while (*p == ' ') {
            p++;
            n--;
        }
        buf_printf(&t, "        %s%.*s\n", end ? "" : "return ", (int)n, p);
        p += n + (end != NULL);
    }
    return buf_str(&t);
}

static const CModule *compile_graph(Bench *b, const Case *c, const IrModule **module) {
    const char *text = graph_text(b, c);
    FxDoc doc = {.arena = &b->arena};
    if (!fx_parse(&doc, b->sym, (Str){text, strlen(text)}, c->name, &b->diag))
        return NULL;
    Graph *g = doc.at[0].graph;
    graph_infer(g, &b->diag);
    Decisions *decisions = decisions_new(&b->arena, NULL);
    LowerRequest lower = {.graph = g,
                          .arena = &b->arena,
                          .decisions = decisions,
                          .diag = &b->diag,
                          .config = &b->config};
    ScheduleRequest s = {
        .arena = &b->arena, .decisions = decisions, .diag = &b->diag, .config = &b->config};
    *module = inductor_lower(&lower);
    const Schedule *before = *module ? schedule_new(&s, *module) : NULL;
    const Schedule *after = before ? schedule_fuse(&s, before) : NULL;
    const MemoryPlan *plan = after ? memory_plan(&s, after) : NULL;
    CodegenRequest r = {.arena = &b->arena,
                        .schedule = after,
                        .plan = plan,
                        .decisions = decisions,
                        .diag = &b->diag,
                        .config = &b->config};
    return plan ? codegen_c(&r) : NULL;
}

static int64_t make_input(Bench *b, const IrBuffer *buf, FxTensor *t) {
    int64_t size[TENSOR_DIMS], n = 1;
    for (int i = 0; i < buf->layout->ndim; i++) {
        expr_int(buf->layout->size[i], &size[i]);
        n *= size[i];
    }
    Tensor x;
    if (!tensor_new(&x, buf->layout->dtype, buf->layout->ndim, size, &b->diag))
        die("no memory");
    *t = (FxTensor){.data = tensor_data(&x), .dtype = (int32_t)x.dtype, .ndim = x.ndim};
    memcpy(t->size, x.size, sizeof t->size);
    memcpy(t->stride, x.stride, sizeof t->stride);
    for (int64_t i = 0; i < n; i++) {
        uint32_t h = (uint32_t)i * 2654435761u;
        float v = (float)(h >> 8) * 0x1p-22f - 2;
        if (x.dtype == DT_f32)
            ((float *)t->data)[i] = v;
        else if (x.dtype == DT_bf16)
            ((uint16_t *)t->data)[i] = f32_to_bf16(v);
        else
            ((int64_t *)t->data)[i] = h % 4000;
    }
    return n * dtype_info[x.dtype].bytes;
}

// --- time

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

typedef struct Measured {
    double median, least; // seconds
} Measured;

typedef struct Job {
    CallFn *call;
    Runtime *rt;
    FxTensor **in;
    FxTensor *out;
} Job;

static void run_job(Job *j) {
    for (int i = 0; i < j->rt->n; i++)
        j->rt->block[i].used = false;
    j->call(&j->rt->rt, j->in, j->out);
}

static int clock_threads = 2;

// One thread is timed by its own clock: what else the machine does then matters less.
static int64_t now_ns(void) {
    struct timespec t;
    if (clock_threads > 1)
        return clock_ns();
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

// 0.25 s, at least 5 runs; runs shorter than a microsecond's noise are timed by the hundred.
static Measured measure(Job *j) {
    enum { MOST = 3000 };
    static double t[MOST];
    int n = 0, batch = 1;
    run_job(j);
    int64_t start = now_ns();
    run_job(j);
    if (now_ns() - start < 20000)
        batch = 100;
    for (int64_t begin = now_ns(); n < MOST && (n < 5 || now_ns() - begin < 250000000);) {
        start = now_ns();
        for (int i = 0; i < batch; i++)
            run_job(j);
        t[n++] = (double)(now_ns() - start) * 1e-9 / batch;
    }
    qsort(t, (size_t)n, sizeof *t, by_value);
    return (Measured){t[n / 2], t[0]};
}

static const char triad_text[] = "typedef struct FxTensor { void *data, *base; long size[16], "
                                 "stride[16]; int ndim, dtype; } FxTensor;\n"
                                 "int call(void *rt, FxTensor *const in[], FxTensor out[]) {\n"
                                 "    float *restrict a = in[0]->data; const float *restrict b = "
                                 "in[1]->data, *restrict c = in[2]->data;\n"
                                 "    long n = in[0]->size[0];\n"
                                 "#pragma omp parallel for simd schedule(static)\n"
                                 "    for (long i = 0; i < n; i++) a[i] = b[i] + 3.0f * c[i];\n"
                                 "    return 0;\n}\n";

// Bytes a second of a triad that moves as many bytes.
static Measured triad(Bench *b, const Toolchain *gcc, int64_t bytes) {
    static CallFn *call;
    if (!call) {
        Compiled *c =
            exec_compile(&b->arena, gcc, (Str){triad_text, strlen(triad_text)}, NULL, &b->diag);
        if (!c)
            die("triad: %s", diag_first(&b->diag));
        call = exec_entry(c);
    }
    int64_t n = bytes / 12 < 16 ? 16 : bytes / 12;
    FxTensor t[3], *in[3];
    Storage *s[3];
    for (int i = 0; i < 3; i++) {
        s[i] = storage_new((size_t)n * 4, &b->diag);
        t[i] = (FxTensor){.data = storage_data(s[i]), .ndim = 1, .size = {n}};
        memset(t[i].data, 0, (size_t)n * 4);
        in[i] = &t[i];
    }
    Runtime rt = {.n = 0};
    Job j = {call, &rt, in, NULL};
    Measured m = measure(&j);
    for (int i = 0; i < 3; i++)
        storage_drop(s[i]);
    return (Measured){(double)(n * 12) / m.median, (double)(n * 12) / m.least};
}

static int64_t output_bytes(const FxTensor *t) {
    int64_t n = dtype_info[t->dtype].bytes;
    for (int i = 0; i < t->ndim; i++)
        n *= t->size[i];
    return t->ndim < 0 ? 0 : n;
}

static void run_case(const Case *c, int threads, bool show) {
    Bench b = {.threads = threads, .config = inductor_config_default(), .show = show};
    b.diag.arena = &b.arena;
    b.sym = sym_new(&b.arena);
    b.config.threads = threads;
    const IrModule *m;
    const CModule *code = compile_graph(&b, c, &m);
    const Toolchain *gcc = toolchain_find("gcc");
    if (show && code)
        puts(strstr(code->text, "static void cpp_fused"));
    int64_t start = clock_ns();
    Compiled *k =
        code ? exec_compile(&b.arena, gcc, (Str){code->text, strlen(code->text)}, NULL, &b.diag)
             : NULL;
    double compile_ms = (double)(clock_ns() - start) * 1e-6;
    if (!k) {
        printf("%-24s %s\n", c->name, diag_first(&b.diag));
        arena_free(&b.arena);
        return;
    }
    FxTensor out[8], *in[8];
    int64_t bytes = 0;
    for (int i = 0; i < m->inputs.n; i++) {
        in[i] = ARENA_NEW(&b.arena, FxTensor);
        bytes += make_input(&b, m->inputs.at[i].buf, in[i]);
    }
    Runtime rt = {.diag = &b.diag, .rt = {rt_alloc, rt_free, rt_call, rt_fail, rt_kernel, threads}};
    Job j = {exec_entry(k), &rt, in, out};
    run_job(&j);
    for (int i = 0; i < m->outputs.n; i++)
        bytes += output_bytes(&out[i]);
    Measured before = triad(&b, gcc, bytes), t = measure(&j), after = triad(&b, gcc, bytes);
    double median = before.median > after.median ? before.median : after.median;
    double best = before.least > after.least ? before.least : after.least;
    printf("%-24s %9.3f ms %7.1f GB/s %5.2f of triad   best runs: %9.3f ms %7.1f GB/s %5.2f"
           "   gcc %4.0f ms\n",
           c->name, t.median * 1e3, (double)bytes / t.median * 1e-9,
           (double)bytes / t.median / median, t.least * 1e3, (double)bytes / t.least * 1e-9,
           (double)bytes / t.least / best, compile_ms);
    fflush(stdout);
    exec_unload(k);
    arena_free(&b.arena);
}

int main(int argc, char **argv) {
    int threads = 2, opt;
    bool show = false;
    while ((opt = getopt(argc, argv, "t:s")) != -1) {
        if (opt == 't')
            threads = atoi(optarg);
        else if (opt == 's')
            show = true;
        else
            return 2;
    }
    clock_threads = threads;
    setenv("OMP_PROC_BIND", "true", 1);
    setenv("OMP_NUM_THREADS", threads > 1 ? "2" : "1", 1);
    for (int i = 0; i < COUNT(cases); i++) {
        bool wanted = optind == argc;
        for (int k = optind; k < argc; k++)
            wanted |= strstr(cases[i].name, argv[k]) != NULL;
        if (wanted)
            run_case(&cases[i], threads, show);
    }
    return 0;
}
