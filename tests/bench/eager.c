// eager.c: times the reference kernels by family, and the same functions on PyTorch where a copy of
// it is unpacked in the folder that FXRAY_TORCH names (Debian's python3-torch and what it depends
// on, each by `dpkg -x`): one after the other in the same run, ratios of the quickest runs. Nothing
// else ever uses that folder.
//
//     build/bench/eager [-d] [-t THREADS] [-s SECONDS] [NAME…]
//
// NAME: a part of a case's or a family's. -d: no times but a digest of each result, for a look at
// what a change of a kernel does to the values.
#define _POSIX_C_SOURCE 200809L
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "core/base/file.h"
#include "core/eager/eager.h"

typedef struct Case {
    const char *family, *name;
    const char *inputs; // parameters of forward
    const char *body;   // statements, `;` between them; r is what is returned
} Case;

#define A "torch.ops.aten."
static const Case cases[] = {
#define E(...) {__VA_ARGS__},
#include "tests/bench/eager.def"
#undef E
};

typedef struct Times {
    double least, median; // ns of a run; 0: not measured
} Times;

static int clock_threads = 2;

// One thread is timed by its own clock: what else the machine does then matters less.
static double now(void) {
    struct timespec t;
    clock_gettime(clock_threads > 1 ? CLOCK_MONOTONIC : CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

// --- PyTorch

typedef struct Peer {
    FILE *to, *from; // NULL: not there
    char line[256];  // its last answer
} Peer;

static void be_python(const char *folder, int threads, const int *in, const int *out) {
    Arena a = {0};
    const char *n = arena_printf(&a, "%d", threads);
    const char *path =
        arena_printf(&a, "%s/usr/lib:%s/usr/lib/x86_64-linux-gnu:%s/lib/x86_64-linux-gnu", folder,
                     folder, folder);
    setenv("LD_LIBRARY_PATH", path, 1);
    setenv("PYTHONPATH", arena_printf(&a, "%s/usr/lib/python3/dist-packages", folder), 1);
    setenv("OMP_NUM_THREADS", n, 1);
    setenv("OPENBLAS_NUM_THREADS", n, 1);
    dup2(in[0], 0);
    dup2(out[1], 1);
    for (int i = 0; i < 2; i++) {
        close(in[i]);
        close(out[i]);
    }
    execl("/usr/bin/python3", "python3", "tests/bench/eager.py", n, (char *)NULL);
    _exit(127);
}

static bool ask(Peer *p, const char *fmt, ...) {
    va_list args;
    va_start(args, fmt);
    vfprintf(p->to, fmt, args);
    va_end(args);
    fflush(p->to);
    p->line[0] = 0;
    if (!fgets(p->line, sizeof p->line, p->from))
        return false;
    p->line[strcspn(p->line, "\n")] = 0;
    return true;
}

static void peer_start(Peer *p, int threads) {
    const char *folder = getenv("FXRAY_TORCH");
    int in[2], out[2];
    if (!folder || !file_is_dir(folder) || pipe(in) || pipe(out)) {
        puts("PyTorch: not there (FXRAY_TORCH names no folder)");
        return;
    }
    fflush(stdout);
    pid_t child = fork();
    if (child == 0)
        be_python(folder, threads, in, out);
    close(in[0]);
    close(out[1]);
    *p = (Peer){.to = fdopen(in[1], "w"), .from = fdopen(out[0], "r")};
    if (child < 0 || !fgets(p->line, sizeof p->line, p->from)) {
        puts("PyTorch: not there (its Python does not start)");
        p->to = NULL;
        return;
    }
    printf("PyTorch %s", p->line);
}

// --- a case

typedef struct Bench {
    Arena arena;
    Diag diag;
    Graph *graph;
    RtValue *inputs;
    Generator generator;
    int threads;
} Bench;

static Graph *parse(Bench *b, const Case *c) {
    Buf t = {.arena = &b->arena};
    buf_printf(&t, "class <lambda>(torch.nn.Module):\n    def forward(self, %s):\n", c->inputs);
    for (const char *p = c->body; *p;) {
        const char *end = strchr(p, ';');
        size_t n = end ? (size_t)(end - p) : strlen(p);
        while (*p == ' ') {
            p++;
            n--;
        }
        buf_printf(&t, "        %.*s\n", (int)n, p);
        p += n + (end != NULL);
    }
    buf_puts(&t, "        return (r,)\n");
    const char *text = buf_str(&t);
    FxDoc doc = {.arena = &b->arena};
    return fx_parse(&doc, sym_new(&b->arena), (Str){text, strlen(text)}, c->name, &b->diag)
               ? doc.at[0].graph
               : NULL;
}

static void fill(const Tensor *t, int64_t seed) {
    void *data = tensor_data(t);
    int64_t n = tensor_numel(t);
    for (int64_t i = 0; i < n; i++) {
        uint32_t h = (uint32_t)(i + seed * 7919) * 2654435761u;
        h ^= h >> 15;
        float v = (float)(h >> 8) * 0x1p-22f - 2;
        if (t->dtype == DT_f32)
            ((float *)data)[i] = v;
        else if (t->dtype == DT_f64)
            ((double *)data)[i] = (double)v;
        else if (t->dtype == DT_bf16)
            ((uint16_t *)data)[i] = f32_to_bf16(v);
        else if (t->dtype == DT_b8)
            ((uint8_t *)data)[i] = h >> 16 & 1;
        else if (t->dtype == DT_i32)
            ((int32_t *)data)[i] = (int32_t)(h >> 8) % 1000;
        else
            ((int64_t *)data)[i] = (h >> 8) % 1000;
    }
}

static int make_inputs(Bench *b) {
    int n = 0;
    b->inputs = ARENA_ARRAY(&b->arena, 16, RtValue);
    GRAPH_EACH (b->graph, node) {
        if (node->op != FX_placeholder || n == 16)
            continue;
        const TensorMeta *m = node->val.tensor;
        int64_t size[TENSOR_DIMS], stride[TENSOR_DIMS], dense = 1;
        for (int i = m->ndim - 1; i >= 0; i--) {
            size[i] = expr_int_or(m->size[i], 1);
            stride[i] = m->stride ? expr_int_or(m->stride[i], dense) : dense;
            dense *= size[i];
        }
        b->inputs[n].kind = RT_tensor;
        if (!tensor_new_raw(&b->inputs[n].tensor, m->dtype, m->ndim, size, stride, &b->diag))
            die("no memory");
        fill(&b->inputs[n].tensor, n);
        n++;
    }
    return n;
}

// FNV-1a over the bytes of the results; 0 at first.
static void add_digest(uint64_t *digest, const RtValue *v) {
    const unsigned char *p = v->kind == RT_tensor ? tensor_data(&v->tensor) : NULL;
    for (int64_t i = 0; p && i < tensor_numel(&v->tensor) * dtype_info[v->tensor.dtype].bytes; i++)
        *digest = (*digest ^ p[i]) * 0x100000001b3u;
}

static bool run_once(Bench *b, int n, uint64_t *digest) {
    Arena results = {0};
    EagerCtx c = {
        .arena = &results, .diag = &b->diag, .threads = b->threads, .generator = &b->generator};
    EagerRun run = {.graph = b->graph, .inputs = b->inputs, .n_inputs = n};
    bool ok = eager_run(&c, &run);
    for (int i = 0; ok && i < run.n_outputs; i++) {
        if (digest)
            add_digest(digest, &run.outputs[i]);
        rt_drop(&run.outputs[i]);
    }
    arena_free(&results);
    return ok;
}

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static Times measure(Bench *b, int n, double seconds) {
    enum { MOST = 3000 };
    static double t[MOST];
    int runs = 0, batch = 1;
    run_once(b, n, NULL);
    double start = now();
    run_once(b, n, NULL);
    if (now() - start < 20000)
        batch = 50;
    int64_t end = clock_ns() + (int64_t)(seconds * 1e9);
    while (runs < MOST && (runs < 5 || clock_ns() < end)) {
        start = now();
        for (int i = 0; i < batch; i++)
            run_once(b, n, NULL);
        t[runs++] = (now() - start) / batch;
    }
    qsort(t, (size_t)runs, sizeof *t, by_value);
    return (Times){t[0], t[runs / 2]};
}

static void keep_best(Times *best, Times t) {
    if (best->least == 0 || t.least < best->least)
        best->least = t.least;
    if (best->median == 0 || t.median < best->median)
        best->median = t.median;
}

// The two take turns, so that what the machine does otherwise meets both.
static double run_case(const Case *c, Peer *p, int threads, double seconds) {
    enum { TURNS = 2 };
    Bench b = {.threads = threads};
    b.diag.arena = &b.arena;
    generator_seed(&b.generator, 0);
    b.graph = parse(&b, c);
    int n = b.graph ? make_inputs(&b) : 0;
    Times ours = {0}, theirs = {0};
    double ratio = 0;
    uint64_t digest = 0xcbf29ce484222325u;
    if (!b.graph || !run_once(&b, n, &digest)) {
        printf("%-10s %-18s %s\n", c->family, c->name, diag_first(&b.diag));
    } else if (seconds == 0) {
        printf("%-10s %-18s %016llx\n", c->family, c->name, (unsigned long long)digest);
    } else {
        bool both = p->to && ask(p, "case %s\t%s\t%s\n", c->name, c->inputs, c->body) &&
                    strcmp(p->line, "ok") == 0;
        for (int i = 0; i < TURNS; i++) {
            Times t;
            keep_best(&ours, measure(&b, n, seconds / TURNS));
            if (both && ask(p, "time %g\n", seconds / TURNS) &&
                sscanf(p->line, "%lf %lf", &t.least, &t.median) == 2)
                keep_best(&theirs, t);
        }
        printf("%-10s %-18s %10.1f us (median %10.1f)", c->family, c->name, ours.least * 1e-3,
               ours.median * 1e-3);
        if (theirs.least > 0) {
            ratio = ours.least / theirs.least;
            printf("   PyTorch %10.1f (%10.1f)   %5.2f (%5.2f)%s", theirs.least * 1e-3,
                   theirs.median * 1e-3, ratio, ours.median / theirs.median,
                   ratio > 1.5 ? "  slow" : "");
        } else if (p->to) {
            printf("   PyTorch: %s", p->line);
        }
        puts("");
    }
    fflush(stdout);
    for (int i = 0; i < n; i++)
        rt_drop(&b.inputs[i]);
    arena_free(&b.arena);
    return ratio;
}

int main(int argc, char **argv) {
    int threads = 2, opt, slow = 0, compared = 0;
    double seconds = 0.2;
    while ((opt = getopt(argc, argv, "dt:s:")) != -1) {
        if (opt == 't')
            threads = atoi(optarg);
        else if (opt == 's')
            seconds = atof(optarg);
        else if (opt == 'd')
            seconds = 0;
        else
            return 2;
    }
    clock_threads = threads;
    Peer peer = {0};
    if (seconds > 0)
        peer_start(&peer, threads);
    for (int i = 0; i < COUNT(cases); i++) {
        bool wanted = optind == argc;
        for (int k = optind; k < argc; k++)
            wanted |= strstr(cases[i].name, argv[k]) || !strcmp(cases[i].family, argv[k]);
        if (!wanted)
            continue;
        double r = run_case(&cases[i], &peer, threads, seconds);
        compared += r > 0;
        slow += r > 1.5;
    }
    if (compared)
        printf("%d of %d compared take more than 1.5 times as long as PyTorch's\n", slow, compared);
    return 0;
}
