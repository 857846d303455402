// keys.c: how long a key takes to the redrawn screen on a graph of 10,000 nodes, for all keys that
// walk, look and step, at three sizes of the terminal: the median of several and the worst. The
// budget is one frame, 16 ms.
//
//     build/bench/keys [NODES]
#include "app/app.h"
#include "app/model.h"
#include "core/base/file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { RUNS = 15, BUDGET_US = 16000 };

static App app;

// A chain of ops with a source line every ten: what a captured graph of that size looks like.
static char *write_graph(Arena *a, int nodes, Diag *d) {
    static const char *const ops[] = {"add.Tensor(x%d, 1)", "mul.Tensor(x%d, 2)",
                                      "relu.default(x%d)", "view.default(x%d, [8, 16])",
                                      "exp.default(x%d)"};
    Buf b = {.arena = a};
    buf_puts(&b, "class GraphModule(torch.nn.Module):\n    def forward(self, x0: \"f32[8, 16][16, "
                 "1]cpu\"):\n");
    for (int i = 1; i <= nodes; i++) {
        if (i % 10 == 1)
            buf_printf(&b, "        # File: model.py:%d in forward, code: x = f(x)\n", i / 10 + 5);
        buf_printf(&b, "        x%d: \"f32[8, 16][16, 1]cpu\" = torch.ops.aten.", i);
        const char *op = ops[i % COUNT(ops)], *hole = strchr(op, '%');
        buf_printf(&b, "%.*s%d%s\n", (int)(hole - op), op, i - 1, hole + 2);
    }
    buf_printf(&b, "        return (x%d,)\n", nodes);
    char *dir = dir_temp(a, d);
    char *path = dir ? path_join(a, dir, "big.txt") : NULL;
    return path && file_write(path, buf_str(&b), b.len, d) ? path : NULL;
}

static int by_value(const void *a, const void *b) {
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

typedef struct Key {
    const char *keys;  // pressed, in app_keys' spelling
    const char *first; // command line before, NULL none
    const char *undo;  // keys between two, NULL none
} Key;

static const Key list[] = {
    {"j", "stage joint", NULL},
    {"k", NULL, NULL},
    {"<PgDn>", NULL, NULL},
    {"G", NULL, "g"},
    {"g", NULL, "G"},
    {"}", NULL, NULL},
    {"{", NULL, NULL},
    {"<Tab>", NULL, NULL},
    {"z", NULL, "z"},
    {"<Space>", NULL, "<Space>"},
    {"i", "stage joint", "<Esc>"},
    {"/", NULL, "<Esc>"},
    {"/exp_1<Enter>", NULL, "<Esc>"},
    {".", "stage joint", ","},
    {")", "stage joint", "("},
    {"]", "stage joint", "["},
    {"5", NULL, "8"},
    {"8", NULL, "5"},
    {"0", "stage joint", "8"},
    {"-", NULL, "5"},
    {"<BS>", NULL, NULL},
    {"|", NULL, "q"},
    {"*", "stage joint", "*"},
    {"d", "stage joint", "<Esc>"}, // across stages
    {"d", "stage joint_passes", "<Esc>"},
    {"D", "stage joint", "<Esc>"},
    {":find<Space>op:exp<Enter>", "stage joint", "<C-c><Esc>"},
    {":grep<Space>exp_1<Enter>", NULL, "<C-c><Esc>"},
    {"p", "stage joint", "<Esc>"},
    {"s", NULL, "<Esc>"},
    {"?", NULL, "<Esc>"},
};

// Of this thread alone: what else the machine does is not ours.
static int64_t cpu_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

// The slowest of them.
static int64_t once(const char *keys) {
    int64_t worst = 0;
    char one[32];
    while (*keys) {
        key_next(&keys, one);
        int64_t start = cpu_ns();
        app_key(&app, one);
        app_draw(&app);
        int64_t took = cpu_ns() - start;
        worst = took > worst ? took : worst;
    }
    return worst;
}

static bool bench_key(const Key *k, int cols, int rows) {
    int64_t ns[RUNS];
    if (k->first)
        app_run(&app, k->first);
    app_draw(&app);
    for (int i = -1; i < RUNS; i++) { // once to build what is not there
        int64_t took = once(k->keys);
        if (i >= 0)
            ns[i] = took;
        if (k->undo)
            once(k->undo);
    }
    qsort(ns, RUNS, sizeof *ns, by_value);
    bool over = ns[RUNS / 2] / 1000 > BUDGET_US;
    printf("%3dx%-3d  %-28s %8.2f ms  worst %8.2f%s\n", cols, rows, k->keys,
           (double)ns[RUNS / 2] / 1e6, (double)ns[RUNS - 1] / 1e6, over ? "  OVER 16" : "");
    return !over;
}

int main(int argc, char **argv) {
    static const int sizes[][2] = {{80, 24}, {200, 50}, {300, 100}};
    Arena a = {0};
    Diag d = {.arena = &a};
    int nodes = argc > 1 ? (int)strtol(argv[1], NULL, 10) : 10000, over = 0;
    char *path = write_graph(&a, nodes, &d);
    if (!path) {
        fprintf(stderr, "%s\n", diag_first(&d));
        return 2;
    }
    for (int s = 0; s < COUNT(sizes); s++) {
        SessionOptions options = {.grad = "none", .toolchain = "tcc"};
        app_init(&app, sizes[s][0], sizes[s][1]);
        app.options = &options;
        app.interactive = true;
        if (!app_open(&app, path)) {
            fprintf(stderr, "%s\n", diag_first(&app.diag));
            return 2;
        }
        for (int i = 0; i < COUNT(list); i++)
            over += !bench_key(&list[i], sizes[s][0], sizes[s][1]);
        app_close(&app);
        app = (App){0};
    }
    printf("%d nodes: %d of %d keys take longer than a frame\n", nodes, over,
           COUNT(list) * COUNT(sizes));
    dir_remove(arena_strndup(&a, path, strlen(path) - strlen("/big.txt")), &d);
    arena_free(&a);
    return 0;
}
