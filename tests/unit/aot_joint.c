// aot_joint.c: joint graphs traced from captured graphs of training models, against what PyTorch
// logged, statement by statement.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/aot/aot.h"
#include "core/base/file.h"
#include "core/debug/diff.h"
#include "core/load/load.h"
#include "tests/unit/unit.h"

static const char *const roots[] = {"../shared/corpus", "../shared/corpus_large"};

static const char *printed(Arena *a, const Graph *g) {
    Buf b = {.arena = a};
    graph_print(&b, g, &fx_style_joint, NULL);
    while (b.len && (b.data[b.len - 1] == '\n' || b.data[b.len - 1] == ' '))
        buf_truncate(&b, b.len - 1);
    return buf_str(&b);
}

// The joint graphs of a log, without the line that describes their metadata.
static int logged_graphs(Arena *a, const char *text, const char **out, int max) {
    int n = 0;
    for (const char *p = strstr(text, "class inner_f"); p && n < max;
         p = strstr(p + 1, "class inner_f")) {
        const char *end = strstr(p, "self._out_spec)");
        if (end)
            out[n++] = arena_strndup(a, p, (size_t)(end - p) + strlen("self._out_spec)"));
    }
    return n;
}

// --grad params where the model has parameters, else inputs: as the recordings were made.
static bool *wanted_grads(Arena *a, const Graph *g, bool params) {
    bool *grad = ARENA_ARRAY(a, g->n_nodes + 1, bool);
    int i = 0;
    GRAPH_EACH (g, n) {
        if (n->op != FX_placeholder)
            continue;
        const TensorMeta *m = node_tensor(n);
        bool is_param = strstr(n->target, "_parameters_") || strstr(n->target, "p_") == n->target;
        grad[i++] = m && dtype_is_float(m->dtype) && (params ? is_param : true);
    }
    return grad;
}

static bool has_params(const Graph *g) {
    GRAPH_EACH (g, n)
        if (n->op == FX_placeholder && strstr(n->target, "_parameters_"))
            return true;
    return false;
}

// What is wanted and what we have, for a look by hand.
static void keep_texts(Arena *a, const char *name, int i, const char *got, const char *want) {
    const char *dir = getenv("FX_JOINT_OUT");
    Diag d = {.arena = a};
    if (!dir)
        return;
    file_write(arena_printf(a, "%s/%s_%d.got", dir, name, i), got, strlen(got), &d);
    file_write(arena_printf(a, "%s/%s_%d.want", dir, name, i), want, strlen(want), &d);
}

static bool check_graph(Arena *a, const LoadedModel *m, int i, const char *name, const char *want) {
    Diag d = {.arena = a};
    const Graph *g = m && i < m->graphs.n ? m->graphs.at[i].graph : NULL;
    ck_assert_msg(g != NULL, "%s has no graph %d", name, i);
    AotRequest req = {.graph = g,
                      .arena = a,
                      .diag = &d,
                      .decomps = DECOMP_inductor,
                      .keep_input_mutations = true,
                      .requires_grad = wanted_grads(a, g, has_params(g))};
    AotResult r = aot_trace_joint(&req);
    const char *got = r.graph ? printed(a, r.graph) : "";
    if (strcmp(got, want) != 0)
        keep_texts(a, name, i, got, want);
    TextDiff t;
    text_diff(&t, a, want, got, true);
    if (!t.removed && !t.added)
        return true;
    fprintf(stderr, "%s joint graph %d: %d lines missing, %d too many. %s\n", name, i, t.removed,
            t.added, diag_first(&d));
    return false;
}

static void check_model(const char *root, const char *name, int *graphs, int *same) {
    Arena a = {0};
    Diag d = {.arena = &a};
    const char *dir = path_join(&a, root, name), *want[8];
    const char *log = path_join(&a, dir, "aot_joint_graph.txt");
    Str text = file_exists(log) ? file_read(&a, log, &d) : (Str){0};
    int n = text.ptr ? logged_graphs(&a, text.ptr, want, 8) : 0;
    LoadedModel *m = n ? load_model(&a, path_join(&a, dir, "graph_code.txt"), &d) : NULL;
    if (m)
        sym_hint_rest(m->sym, 64);
    for (int i = 0; i < n; i++) {
        ++*graphs;
        *same += check_graph(&a, m, i, name, want[i]);
    }
    if (m)
        load_close(m);
    arena_free(&a);
}

START_TEST(joint_graphs_as_logged) {
    Arena a = {0};
    Diag d = {.arena = &a};
    int graphs = 0, same = 0;
    const char *more = getenv("FX_JOINT_ROOT"); // recordings of one's own
    for (int k = 0; k < COUNT(roots) + (more != NULL); k++) {
        const char *root = k < COUNT(roots) ? roots[k] : more;
        int n = 0;
        char **names = file_is_dir(root) ? dir_list(&a, root, &n, &d) : NULL;
        for (int i = 0; i < n; i++)
            check_model(root, names[i], &graphs, &same);
    }
    if (getenv("FX_JOINT_OUT"))
        ck_assert_int_eq(same, graphs);
    arena_free(&a);
}
END_TEST

Suite *suite_aot_joint(void) {
    static const TTest *tests[1];
    tests[0] = joint_graphs_as_logged;
    return unit_suite("aot_joint", tests, 1);
}
