// minify.c: how long the minifier takes: chains with one wrong op, by the place where the numbers
// first go wrong and by cutting alone; recorded models with planted faults, if the recordings are
// there. Wall time, as helpers do the work.
//
//     build/bench/minify
#include <stdio.h>
#include <string.h>

#include "core/base/file.h"
#include "core/debug/minify.h"
#include "core/session.h"

static const char *chain(Arena *a, int n, int wrong) {
    static const char *const ops[] = {" + y", " * 1.001", " - y", " + 0.1", " * -1.0"};
    Buf b = {.arena = a};
    buf_puts(&b, "class GraphModule(torch.nn.Module):\n"
                 "    def forward(self, x: \"f32[4, 10][10, 1]cpu\", y: \"f32[10][1]cpu\"):\n");
    const char *last = "x";
    for (int i = 0; i < n; i++) {
        if (i == wrong)
            buf_printf(&b, "        v%d = torch.nn.functional.gelu(%s)\n", i, last);
        else
            buf_printf(&b, "        v%d = %s%s\n", i, last, ops[i % COUNT(ops)]);
        last = arena_printf(a, "v%d", i);
    }
    buf_printf(&b, "        return (%s,)\n", last);
    return buf_str(&b);
}

static void minify(const char *what, const char *path, const char *grad, const char *fault,
                   unsigned without) {
    Arena a = {0};
    Diag d = {.arena = &a};
    const char *faults[] = {fault, NULL};
    SessionOptions o = {.toolchain = "tcc", .grad = grad, .faults = faults};
    Session *s = session_open(path, &o, &d);
    Minify *m = s ? session_minify_start(s, 0, &(MinifyOptions){.without = without}, &d) : NULL;
    if (m) {
        minify_wait(m, NULL);
        const MinifyStep *best = minify_best(m);
        printf("%-44s %4d -> %2d nodes %4d queries %7.0f ms\n", what, minify_first(m)->nodes,
               best ? best->nodes : 0, minify_queries(m), (double)minify_ns(m) / 1e6);
        minify_free(m);
    } else {
        printf("%-44s %s\n", what, diag_first(&d));
    }
    if (s)
        session_close(s);
    arena_free(&a);
}

int main(void) {
    static const int sizes[][2] = {{200, 120}, {1000, 611}, {4000, 2222}};
    static const char *const recorded[][3] = {
        {"transformer_block", "none", "layer_norm_unbiased"},
        {"transformer_block", "params", "gradient_overwritten"},
        {"resblock_train", "none", "accumulator_kept"},
        {"resblock_train", "params", "variance_by_squares"},
    };
    Arena a = {0};
    Diag d = {.arena = &a};
    const char *dir = dir_temp(&a, &d);
    for (int i = 0; i < COUNT(sizes) && dir; i++)
        for (int k = 0; k < 2; k++) {
            const char *text = chain(&a, sizes[i][0], sizes[i][1]);
            const char *path = path_join(&a, dir, "chain.txt");
            if (file_write(path, text, strlen(text), &d))
                minify(arena_printf(&a, "chain of %d ops%s", sizes[i][0],
                                    k ? ", by cutting alone" : ""),
                       path, "none", "gelu_constant", k ? 1u << STRATEGY_around : 0);
        }
    for (int i = 0; i < COUNT(recorded); i++) {
        const char *path = arena_printf(&a, "../shared/corpus/%s/graph_code.txt", recorded[i][0]);
        if (file_exists(path))
            minify(arena_printf(&a, "%s %s", recorded[i][0], recorded[i][2]), path, recorded[i][1],
                   recorded[i][2], 0);
    }
    if (dir)
        dir_remove(dir, &d);
    arena_free(&a);
    return 0;
}
