// partition.c: times the joint passes and the partitioners on unrolled recurrent cells and on
// residual networks with their backward, 1,000 to 30,000 nodes: nanoseconds a node, which must not
// grow. Of small graphs as many are read and partitioned, results kept, as make 30,000 nodes, so
// that all sizes touch the same amount of memory.
//
//     build/bench/partition [-b BUDGET]
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/aot/aot.h"
#include "core/aot/partition.h"
#define A "torch.ops.aten."
enum { RUNS = 5, NODES = 30000 };

// h = tanh(x[t] @ w + h @ u + b), T steps; the loss is the last h.
static void recurrent(Buf *b, int steps) {
    buf_puts(b, "def forward(self, primals_1: \"f32[32, 64]\", primals_2: \"f32[64, 64]\", "
                "primals_3: \"f32[64]\", primals_4: \"f32[8, 32]\", primals_5: \"f32[8, 64]\", "
                "tangents_1: \"f32[8, 64]\"):\n");
    for (int t = 0; t < steps; t++) {
        char h[32] = "primals_5";
        if (t)
            snprintf(h, sizeof h, "tanh%d", t - 1);
        buf_printf(b, "    xw%d = " A "addmm.default(primals_3, primals_4, primals_1)\n", t);
        buf_printf(b, "    hu%d = " A "mm.default(%s, primals_2)\n", t, h);
        buf_printf(b, "    sum%d = " A "add.Tensor(xw%d, hu%d)\n", t, t, t);
        buf_printf(b, "    scaled%d = " A "mul.Tensor(sum%d, 1.%d)\n", t, t, t + 1);
        buf_printf(b, "    tanh%d = " A "tanh.default(scaled%d)\n", t, t);
        buf_printf(b, "    kept%d = " A "alias.default(tanh%d)\n", t, t);
    }
    buf_printf(b, "    g%d = " A "clone.default(tangents_1)\n", steps - 1);
    for (int t = steps - 1; t >= 0; t--) {
        buf_printf(b, "    again%d = " A "alias.default(kept%d)\n", t, t);
        buf_printf(b, "    square%d = " A "mul.Tensor(again%d, again%d)\n", t, t, t);
        buf_printf(b, "    slope%d = " A "sub.Tensor(1, square%d)\n", t, t);
        buf_printf(b, "    gs%d = " A "mul.Tensor(g%d, slope%d)\n", t, t, t);
        buf_printf(b, "    ga%d = " A "mul.Tensor(gs%d, 1.%d)\n", t, t, t + 1);
        buf_printf(b, "    ut%d = " A "permute.default(primals_2, [1, 0])\n", t);
        buf_printf(b, "    gh%d = " A "mm.default(ga%d, ut%d)\n", t, t, t);
        if (t)
            buf_printf(b, "    g%d = " A "clone.default(gh%d)\n", t - 1, t);
        buf_printf(b, "    ht%d = " A "permute.default(%s%d, [1, 0])\n", t, t ? "tanh" : "primals_",
                   t ? t - 1 : 5);
        buf_printf(b, "    gu%d = " A "mm.default(ht%d, ga%d)\n", t, t, t);
        if (t < steps - 1)
            buf_printf(b, "    du%d = " A "add.Tensor(%s%d, gu%d)\n", t,
                       t < steps - 2 ? "du" : "gu", t + 1, t);
    }
    buf_printf(b, "    return (tanh%d, None, du0, None, None, gh0)\n", steps - 1);
}

// x = x + gelu(layer_norm(x) @ w), every block with a weight of its own; the loss is the last x.
static void residual(Buf *b, int blocks) {
    buf_puts(b, "def forward(self, primals_1: \"f32[64, 32]\"");
    for (int t = 0; t < blocks; t++)
        buf_printf(b, ", primals_%d: \"f32[32, 32]\"", t + 2);
    buf_puts(b, ", tangents_1: \"f32[64, 32]\"):\n    x0 = " A "clone.default(primals_1)\n");
    for (int t = 0; t < blocks; t++) {
        buf_printf(b, "    mean%d = " A "mean.dim(x%d, [1], True)\n", t, t);
        buf_printf(b, "    centred%d = " A "sub.Tensor(x%d, mean%d)\n", t, t, t);
        buf_printf(b, "    power%d = " A "mul.Tensor(centred%d, centred%d)\n", t, t, t);
        buf_printf(b, "    var%d = " A "mean.dim(power%d, [1], True)\n", t, t);
        buf_printf(b, "    eps%d = " A "add.Tensor(var%d, 1e-05)\n", t, t);
        buf_printf(b, "    rsqrt%d = " A "rsqrt.default(eps%d)\n", t, t);
        buf_printf(b, "    norm%d = " A "mul.Tensor(centred%d, rsqrt%d)\n", t, t, t);
        buf_printf(b, "    mm%d = " A "mm.default(norm%d, primals_%d)\n", t, t, t + 2);
        buf_printf(b, "    erf%d = " A "erf.default(mm%d)\n", t, t);
        buf_printf(b, "    gelu%d = " A "mul.Tensor(mm%d, erf%d)\n", t, t, t);
        buf_printf(b, "    x%d = " A "add.Tensor(x%d, gelu%d)\n", t + 1, t, t);
    }
    buf_printf(b, "    g%d = " A "clone.default(tangents_1)\n", blocks);
    for (int t = blocks - 1; t >= 0; t--) {
        buf_printf(b, "    ge%d = " A "mul.Tensor(g%d, erf%d)\n", t, t + 1, t);
        buf_printf(b, "    sq%d = " A "mul.Tensor(mm%d, mm%d)\n", t, t, t);
        buf_printf(b, "    ex%d = " A "exp.default(sq%d)\n", t, t);
        buf_printf(b, "    gm%d = " A "mul.Tensor(ge%d, ex%d)\n", t, t, t);
        buf_printf(b, "    wt%d = " A "permute.default(primals_%d, [1, 0])\n", t, t + 2);
        buf_printf(b, "    gn%d = " A "mm.default(gm%d, wt%d)\n", t, t, t);
        buf_printf(b, "    nt%d = " A "permute.default(norm%d, [1, 0])\n", t, t);
        buf_printf(b, "    gw%d = " A "mm.default(nt%d, gm%d)\n", t, t, t);
        buf_printf(b, "    gr%d = " A "mul.Tensor(gn%d, rsqrt%d)\n", t, t, t);
        buf_printf(b, "    gc%d = " A "mul.Tensor(gr%d, centred%d)\n", t, t, t);
        buf_printf(b, "    gx%d = " A "sub.Tensor(gr%d, gc%d)\n", t, t, t);
        buf_printf(b, "    g%d = " A "add.Tensor(g%d, gx%d)\n", t, t + 1, t);
    }
    buf_printf(b, "    return (x%d, g0", blocks);
    for (int t = 0; t < blocks; t++)
        buf_printf(b, ", gw%d", t);
    buf_puts(b, ")\n");
}

static const struct {
    const char *name;
    void (*write)(Buf *b, int n);
    int per_step; // nodes
} models[] = {{"recurrent", recurrent, 17}, {"residual", residual, 23}};

// Of this thread alone: other work on the machine does not count.
static int64_t cpu_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static int by_value(const void *a, const void *b) {
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

// Adds the times of the passes, of the min-cut and of the default partitioner.
static bool run_once(Arena *a, const Graph *joint, const PartitionConfig *config, int64_t ns[3],
                     PartitionResult *out) {
    static const Partitioner kinds[2] = {PARTITION_min_cut, PARTITION_default};
    Diag d = {.arena = a};
    int64_t start = cpu_ns();
    const Graph *g = joint;
    PassCtx ctx;
    for (int p = 0; p < n_joint_passes; p++) {
        ctx = (PassCtx){.arena = a, .diag = &d, .origins = origins_new(a)};
        g = joint_passes[p]->run(&ctx, g);
    }
    ns[0] += cpu_ns() - start;
    for (int k = 1; k >= 0; k--) {
        PartitionRequest r = {.joint = k ? joint : g,
                              .n_fwd_outputs = 1,
                              .partitioner = kinds[k],
                              .config = config,
                              .forward_arena = a,
                              .backward_arena = a,
                              .arena = a,
                              .diag = &d};
        start = cpu_ns();
        *out = aot_partition(&r);
        ns[1 + k] += cpu_ns() - start;
        if (!out->backward)
            printf("%s\n", diag_first(&d));
    }
    return d.errors == 0;
}

// One line of the table; false if something failed. ns: passes and min-cut together, a node.
static bool measure(int model, int size, const PartitionConfig *config, int64_t *ns) {
    Arena a = {0};
    Diag d = {.arena = &a};
    Buf text = {.arena = &a};
    models[model].write(&text, size / models[model].per_step);
    FxDoc doc = {.arena = &a};
    bool ok = true;
    int copies = NODES / size;
    for (int i = 0; ok && i < copies; i++) {
        ok = fx_parse(&doc, sym_new(&a), (Str){buf_str(&text), text.len}, "bench", &d);
        if (ok)
            graph_infer(doc.at[i].graph, &d);
    }
    int64_t all[3][RUNS] = {0};
    PartitionResult out;
    int nodes = ok ? doc.at[0].graph->n_nodes : 1;
    for (int r = 0; ok && r < RUNS; r++) {
        Arena run = {0};
        int64_t sum[3] = {0};
        for (int i = 0; ok && i < copies; i++)
            ok = run_once(&run, doc.at[i].graph, config, sum, &out);
        for (int k = 0; k < 3; k++)
            all[k][r] = sum[k] / nodes / copies;
        arena_free(&run);
    }
    for (int k = 0; k < 3; k++)
        qsort(all[k], RUNS, sizeof all[k][0], by_value);
    printf("%-10s %6d %10lld %10lld %10lld\n", models[model].name, nodes,
           (long long)all[0][RUNS / 2], (long long)all[1][RUNS / 2], (long long)all[2][RUNS / 2]);
    *ns = all[0][RUNS / 2] + all[1][RUNS / 2];
    if (!ok)
        printf("%s\n", diag_first(&d));
    arena_free(&a);
    return ok;
}

int main(int argc, char **argv) {
    static const int sizes[] = {1000, 3000, 10000, NODES};
    PartitionConfig config = partition_config_default;
    if (argc == 3 && !strcmp(argv[1], "-b"))
        config.activation_memory_budget = atof(argv[2]);
    printf("%-10s %6s %10s %10s %10s   ns a node\n", "model", "nodes", "passes", "min-cut",
           "default");
    for (int m = 0; m < COUNT(models); m++) {
        int64_t ns[COUNT(sizes)];
        for (int s = 0; s < COUNT(sizes); s++)
            if (!measure(m, sizes[s], &config, &ns[s]))
                return 1;
        printf("%-10s passes and min-cut, largest over smallest: %.2f\n", models[m].name,
               (double)ns[COUNT(sizes) - 1] / (double)ns[0]);
    }
    return 0;
}
