// stages.c: times the pipeline itself on recorded graphs: nanoseconds a node of each stage, the
// median of several builds from nothing.
//
//     build/bench/stages [FOLDER…]     default: tests/corpus and ../shared/corpus_large
#include <stdio.h>
#include <stdlib.h>

#include "core/base/file.h"
#include "core/pipeline/pipeline.h"

enum { RUNS = 9 };

typedef struct Times {
    int64_t ns[STAGE_count][RUNS]; // by stage and run
    int nodes;                     // of the graphs that enter the compiler, all units
    int run;
} Times;

static int by_value(const void *a, const void *b) {
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static bool build_once(const char *path, Times *t, Diag *d) {
    Arena a = {0};
    LoadedModel *m = load_model(&a, path, d);
    PipelineOptions o = pipeline_options_default();
    o.grad = GRAD_none;
    o.device = (Device){DEV_cpu, -1};
    Pipeline *p = m ? pipeline_new(m, &o) : NULL;
    bool ok = p != NULL;
    t->nodes = 0;
    for (int i = 0; ok && i < pipeline_n_units(p); i++) {
        ok = pipeline_build(p, i, STAGE_kernels) != NULL;
        const Unit *u = pipeline_unit(p, i);
        for (int k = 0; k < u->steps.n; k++)
            t->ns[u->steps.at[k]->stage][t->run] += u->steps.at[k]->ns;
        const Graph *g = unit_last_graph(p, i);
        t->nodes += g ? g->n_nodes : 0;
        if (!ok)
            printf("%s: %s\n", path, diag_first(&u->diag));
    }
    if (p)
        pipeline_free(p);
    if (m)
        load_close(m);
    arena_free(&a);
    return ok;
}

static void report(const char *name, Times *t) {
    int64_t total = 0;
    printf("%-24s %6d nodes", name, t->nodes);
    for (int s = 0; s < STAGE_count; s++) {
        qsort(t->ns[s], RUNS, sizeof t->ns[s][0], by_value);
        int64_t ns = t->ns[s][RUNS / 2];
        total += ns;
        if (ns && t->nodes)
            printf("  %s %lld", stage_info[s].brief, (long long)(ns / t->nodes));
    }
    printf("  all %lld ns a node, %.2f ms\n", (long long)(t->nodes ? total / t->nodes : 0),
           (double)total * 1e-6);
}

static void bench_case(Arena *a, const char *root, const char *name) {
    const char *path = path_join(a, path_join(a, root, name), "graph_code.txt");
    if (!file_exists(path))
        return;
    Times *t = ARENA_NEW(a, Times);
    Diag d = {.arena = a};
    for (t->run = 0; t->run < RUNS; t->run++)
        if (!build_once(path, t, &d))
            return;
    report(name, t);
}

int main(int argc, char **argv) {
    static const char *const roots[] = {"tests/corpus", "../shared/corpus_large"};
    const char *const *root = argc > 1 ? (const char *const *)argv + 1 : roots;
    for (int i = 0; i < (argc > 1 ? argc - 1 : COUNT(roots)); i++) {
        Arena a = {0};
        Diag d = {.arena = &a};
        int n = 0;
        char **names = file_is_dir(root[i]) ? dir_list(&a, root[i], &n, &d) : NULL;
        for (int k = 0; k < n; k++)
            bench_case(&a, root[i], names[k]);
        arena_free(&a);
    }
    return 0;
}
