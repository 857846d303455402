// app_speed.c: a key is answered within a frame on a graph of 10,000 nodes, and nothing is made for
// rows that are not on the screen.
#include "app/app.h"
#include "app/model.h"
#include "core/base/file.h"
#include "tests/unit/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NODES = 10000, KEYS = 300 };
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

static int by_value(const void *a, const void *b) {
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

START_TEST(a_key_takes_less_than_a_frame) {
    static App app;
    static const char *const keys[] = {"j",     "<PgDn>", "k", "G",    "<PgUp>", "g",
                                       "<C-d>", "}",      "{", "<BS>", "<Tab>"};
    Arena a = {0};
    Diag d = {.arena = &a};
    SessionOptions options = {.grad = "none"};
    char *path = write_graph(&a, &d);
    ck_assert_msg(path != NULL, "%s", diag_first(&d));
    app_init(&app, 120, 40);
    app.options = &options;
    ck_assert(app_open(&app, path));
    app_run(&app, "stage fx");
    app_draw(&app);
    ck_assert_int_gt(pane_count(&app, app_pane(&app)), NODES);
    static int64_t ns[KEYS];
    for (int i = 0; i < KEYS; i++) {
        int64_t start = clock_ns();
        app_key(&app, keys[i % COUNT(keys)]);
        app_draw(&app);
        ns[i] = clock_ns() - start;
    }
    qsort(ns, KEYS, sizeof *ns, by_value);
    int64_t median = ns[KEYS / 2];
    // The median: a busy machine may delay a few.
    if (getenv("SPEED"))
        fprintf(stderr, "median %.3f ms, worst %.3f\n", (double)median / 1e6,
                (double)ns[KEYS - 1] / 1e6);
    ck_assert_msg(median < LIMIT_MS * 1000000LL, "median %.2f ms", (double)median / 1e6);
    session_close(app.session);
    app_free(&app);
    dir_remove(arena_strndup(&a, path, strlen(path) - strlen("/big.txt")), &d);
    arena_free(&a);
}
END_TEST

Suite *suite_app_speed(void) {
    const TTest *const tests[] = {a_key_takes_less_than_a_frame};
    return unit_suite("app_speed", tests, 1);
}
