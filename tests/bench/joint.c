// joint.c: is training linear? A recurrent cell, unrolled, with its backward: nanoseconds of CPU
// time a node of the joint graph for each stage up to the two graphs that are compiled, for 30
// graphs of 1,000 nodes, then fewer and larger ones up to one of 30,000. The last column is the
// cost of a node against that in the smallest; more than 1.5 in the largest is a failure.
//
//     build/bench/joint [kernels]      kernels: also what comes behind the partition
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/base/file.h"
#include "core/pipeline/pipeline.h"

enum { RUNS = 3, STEP_NODES = 24 }; // of the joint graph, a step

typedef struct Times {
    int64_t ns[STAGE_count]
              [RUNS]; // by stage and run; bytecode, which is not built: opening the file
    int nodes;        // of all joint graphs
    int run;
} Times;

static const double allowed = 1.5;

static int by_value(const void *a, const void *b) {
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

// h = tanh(x[t] @ w + h @ u + b) * gate, `steps` times.
static const char *unrolled(Arena *a, int steps) {
    Buf b = {.arena = a};
    buf_puts(&b, "class GraphModule(torch.nn.Module):\n    def forward(self, "
                 "x: \"f32[4, 8][8, 1]cpu\", L_self_parameters_w_: \"f32[8, 8][8, 1]cpu\", "
                 "L_self_parameters_u_: \"f32[8, 8][8, 1]cpu\", "
                 "L_self_parameters_b_: \"f32[8][1]cpu\"):\n        h_0 = torch.tanh(x)\n");
    for (int i = 1; i <= steps; i++)
        buf_printf(&b,
                   "        p_%d = x @ L_self_parameters_w_\n"
                   "        q_%d = h_%d @ L_self_parameters_u_\n"
                   "        s_%d = p_%d + q_%d\n"
                   "        t_%d = s_%d + L_self_parameters_b_\n"
                   "        v_%d = torch.tanh(t_%d)\n"
                   "        h_%d = v_%d * 0.5\n",
                   i, i, i - 1, i, i, i, i, i, i, i, i, i);
    buf_printf(&b, "        return (h_%d,)\n", steps);
    return buf_str(&b);
}

// Of this process: others on the machine do not count.
static int64_t cpu_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

static bool build_timed(Pipeline *p, int unit, StageId last, Times *t) {
    for (int s = 0; s <= (int)last; s++) {
        int64_t start = cpu_ns();
        pipeline_build(p, unit, (StageId)s);
        t->ns[s][t->run] += cpu_ns() - start;
    }
    return pipeline_at(p, unit, last) != NULL;
}

static Pipeline *build_once(const LoadedModel *m, StageId last, Times *t) {
    PipelineOptions o = pipeline_options_default();
    o.grad = GRAD_params;
    o.device = (Device){DEV_cpu, -1};
    int64_t start = cpu_ns();
    Pipeline *p = pipeline_new(m, &o);
    t->ns[STAGE_bytecode][t->run] += cpu_ns() - start;
    bool ok = pipeline_n_units(p) == 3 && build_timed(p, 0, STAGE_partition, t);
    for (int i = 1; ok && i < 3; i++)
        ok = build_timed(p, i, last, t);
    if (ok) {
        t->nodes += pipeline_at(p, 0, STAGE_joint)->graph->n_nodes;
        return p;
    }
    printf("%s\n", diag_first(&pipeline_unit(p, 0)->diag));
    pipeline_free(p);
    return NULL;
}

// As many graphs of a size as make up the largest, all kept to the end: so small ones do not win by
// having the same memory again and again.
static bool build_batch(const char *path, int n, StageId last, Times *t, Diag *d) {
    Arena a = {0};
    Pipeline **built = ARENA_ARRAY(&a, n, Pipeline *);
    LoadedModel **models = ARENA_ARRAY(&a, n, LoadedModel *);
    bool ok = true;
    int made = 0;
    t->nodes = 0;
    for (; ok && made < n; made++) {
        int64_t start = cpu_ns();
        models[made] = load_model(&a, path, d);
        t->ns[STAGE_bytecode][t->run] += cpu_ns() - start;
        built[made] = models[made] ? build_once(models[made], last, t) : NULL;
        ok = built[made] != NULL;
    }
    for (int i = 0; i < made; i++) {
        if (built[i])
            pipeline_free(built[i]);
        if (models[i])
            load_close(models[i]);
    }
    arena_free(&a);
    return ok;
}

static double report(Times *t, int graphs, double first) {
    int64_t total = 0;
    printf("%3d x %5d nodes", graphs, t->nodes / graphs);
    for (int s = 0; s < STAGE_count; s++) {
        qsort(t->ns[s], RUNS, sizeof t->ns[s][0], by_value);
        int64_t ns = t->ns[s][0]; // the fastest: the machine may be busy
        total += ns;
        if (ns / t->nodes)
            printf("  %s %lld", s == STAGE_bytecode ? "open" : stage_info[s].brief,
                   (long long)(ns / t->nodes));
    }
    double each = (double)total / t->nodes;
    printf("  all %.0f ns a node, %.1f ms", each, (double)total * 1e-6);
    if (first > 0)
        printf("   x%.2f", each / first);
    printf("\n");
    return each;
}

int main(int argc, char **argv) {
    static const int sizes[] = {1000, 3000, 10000, 30000};
    StageId last = argc > 1 && !strcmp(argv[1], "kernels") ? STAGE_kernels : STAGE_partition;
    double first = 0, each = 0;
    for (int i = 0; i < COUNT(sizes); i++) {
        Arena a = {0};
        Diag d = {.arena = &a};
        Times *t = ARENA_NEW(&a, Times);
        char *folder = dir_temp(&a, &d), *path = path_join(&a, folder, "cell.txt");
        const char *text = unrolled(&a, sizes[i] / STEP_NODES);
        int graphs = sizes[COUNT(sizes) - 1] / sizes[i];
        bool ok = file_write(path, text, strlen(text), &d);
        for (t->run = 0; ok && t->run < RUNS; t->run++)
            ok = build_batch(path, graphs, last, t, &d);
        dir_remove(folder, &d);
        if (!ok) {
            printf("%s\n", diag_first(&d));
            return 1;
        }
        each = report(t, graphs, first);
        first = first > 0 ? first : each;
        arena_free(&a);
    }
    bool linear = each <= allowed * first;
    printf("from %d to %d nodes: %s\n", sizes[0], sizes[COUNT(sizes) - 1],
           linear ? "linear" : "not linear");
    return linear ? 0 : 1;
}
