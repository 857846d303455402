// app_speed.c: a key is answered within a frame on a graph of 10,000 nodes, and nothing is made for
// rows that are not on the screen.
#include "app/app.h"
#include "app/model.h"
#include "core/base/file.h"
#include "tests/unit/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { NODES = 10000, KEYS = 15 };
#ifdef FX_HOSTILE // poisoned memory, under a sanitizer: only "not for ever" is asked
enum { LIMIT_MS = 500 };
#else
enum { LIMIT_MS = 16 };
#endif

// A chain of adds and muls, a new source line every ten nodes.
static char *write_graph(Arena *a, Diag *d) {
    Buf b = {.arena = a};
    buf_puts(&b, "class GraphModule(torch.nn.Module):\n    def forward(self, x0: \"f32[8, 16][16, "
                 "1]cpu\"):\n");
    for (int i = 1; i <= NODES; i++) {
        if (i % 10 == 1)
            buf_printf(&b, "        # File: model.py:%d in forward, code: x = x * 2 + x\n",
                       i / 10 + 5);
        buf_printf(&b,
                   "        x%d: \"f32[8, 16][16, 1]cpu\" = torch.ops.aten.%s.Tensor(x%d, %d)\n", i,
                   i % 2 ? "add" : "mul", i - 1, i % 7);
    }
    buf_printf(&b, "        return (x%d,)\n", NODES);
    char *dir = dir_temp(a, d);
    char *path = dir ? path_join(a, dir, "big.txt") : NULL;
    return path && file_write(path, buf_str(&b), b.len, d) ? path : NULL;
}

// A chain of products: with gradients four nodes an op.
static char *write_training(Arena *a, Diag *d) {
    Buf b = {.arena = a};
    buf_puts(&b, "class GraphModule(torch.nn.Module):\n    def forward(self, x0: \"f32[8, 16][16, "
                 "1]cpu\", w: \"f32[8, 16][16, 1]cpu\"):\n");
    for (int i = 1; i <= NODES / 4; i++) {
        if (i % 10 == 1)
            buf_printf(&b, "        # File: model.py:%d in forward, code: x = x * w\n", i / 10 + 5);
        buf_printf(&b,
                   "        x%d: \"f32[8, 16][16, 1]cpu\" = torch.ops.aten.mul.Tensor(x%d, w)\n", i,
                   i - 1);
    }
    buf_printf(&b, "        return (x%d,)\n", NODES / 4);
    char *dir = dir_temp(a, d);
    char *path = dir ? path_join(a, dir, "big.txt") : NULL;
    return path && file_write(path, buf_str(&b), b.len, d) ? path : NULL;
}

// Of this thread alone: what else the machine does is not ours.
static int64_t cpu_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static int by_value(const void *a, const void *b) {
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static void check_keys(const char *const *keys, int n_keys, char *path, const char *grad,
                       const char *begin, Arena *a, Diag *d) {
    static App app;
    SessionOptions options = {.grad = grad};
    ck_assert_msg(path != NULL, "%s", diag_first(d));
    app_init(&app, 120, 40);
    app.options = &options;
    ck_assert(app_open(&app, path));
    ck_assert_msg(app_run(&app, begin), "%s", app.message);
    app_draw(&app);
    ck_assert_int_gt(pane_count(&app, app_pane(&app)), NODES / 5);
    // The median of each key: the first may build something.
    for (int k = 0; k < n_keys; k++) {
        int64_t ns[KEYS];
        for (int i = 0; i < KEYS; i++) {
            app_key(&app, keys[(k + i) % n_keys]); // it stands elsewhere each time
            app_draw(&app);
            int64_t start = cpu_ns();
            app_key(&app, keys[k]);
            app_draw(&app);
            ns[i] = cpu_ns() - start;
        }
        qsort(ns, KEYS, sizeof *ns, by_value);
        if (getenv("SPEED"))
            fprintf(stderr, "%s: key %s median %.3f ms, worst %.3f\n", begin, keys[k],
                    (double)ns[KEYS / 2] / 1e6, (double)ns[KEYS - 1] / 1e6);
        ck_assert_msg(ns[KEYS / 2] < LIMIT_MS * 1000000LL, "%s: key %s takes %.2f ms", begin,
                      keys[k], (double)ns[KEYS / 2] / 1e6);
    }
    app_close(&app);
    app = (App){0};
    dir_remove(arena_strndup(a, path, strlen(path) - strlen("/big.txt")), d);
}

START_TEST(a_key_takes_less_than_a_frame) {
    static const char *const keys[] = {"j",     "<PgDn>", "k", "G",    "<PgUp>", "g",
                                       "<C-d>", "}",      "{", "<BS>", "<Tab>"};
    Arena a = {0};
    Diag d = {.arena = &a};
    check_keys(keys, COUNT(keys), write_graph(&a, &d), "none", "stage fx", &a, &d);
    arena_free(&a);
}
END_TEST

START_TEST(a_key_in_a_joint_graph_takes_less_than_a_frame) {
    static const char *const keys[] = {"j", "<PgDn>", "%",     "k", "G",     "<PgUp>", "}",
                                       "{", "g",      "<C-d>", "s", "<Esc>", "i",      "<Tab>"};
    Arena a = {0};
    Diag d = {.arena = &a};
    check_keys(keys, COUNT(keys), write_training(&a, &d), "all",
               "layout 2 ; stage joint graph 0 ; saved ; escape", &a, &d);
    arena_free(&a);
}
END_TEST

Suite *suite_app_speed(void) {
    const TTest *const tests[] = {
        a_key_takes_less_than_a_frame,
        a_key_in_a_joint_graph_takes_less_than_a_frame,
    };
    return unit_suite("app_speed", tests, COUNT(tests));
}
