// aot_partition.c: joint graphs as PyTorch logged them, through the joint passes and the
// partitioner, against the forward and backward graphs that it logged; and small ones by hand.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/aot/aot.h"
#include "core/aot/partition.h"
#include "core/base/file.h"
#include "core/debug/diff.h"
#include "tests/unit/unit.h"

static const char *const roots[] = {"../shared/corpus", "../shared/corpus_large"};

static const char *printed(Arena *a, const Graph *g) {
    FxStyle style = fx_style_log;
    style.comments = false;
    style.bare = true;
    Buf b = {.arena = a};
    graph_print(&b, g, &style, NULL);
    return buf_str(&b);
}

// The k-th list of static inputs that the log tells of.
static bool *static_inputs(Arena *a, const char *log, int k) {
    bool *is_static = ARENA_ARRAY(a, 4096, bool);
    int last = -1;
    for (const char *p = strstr(log, "aot_config id: "); p; p = strstr(p + 1, "aot_config id: ")) {
        int id = atoi(p + strlen("aot_config id: "));
        if (id == last || (last = id, k-- > 0))
            continue;
        const char *list = strstr(p, "static_input_indices=[");
        ck_assert(list != NULL);
        for (list += strlen("static_input_indices=["); *list != ']';) {
            char *end;
            is_static[strtol(list, &end, 10)] = true;
            list = *end == ',' ? end + 1 : end;
        }
        break;
    }
    return is_static;
}

static const Graph *joint_passed(Arena *a, const Graph *g, Diag *d) {
    for (int p = 0; p < n_joint_passes; p++) {
        PassCtx ctx = {.arena = a, .diag = d, .origins = origins_new(a)};
        g = joint_passes[p]->run(&ctx, g);
        ck_assert_msg(graph_verify(g, d), "after %s: %s", joint_passes[p]->name, diag_first(d));
    }
    return g;
}

static PartitionRequest request(Arena *a, const Graph *joint, Diag *d) {
    int primals = 0;
    GRAPH_EACH (joint, n)
        primals += n->op == FX_placeholder && !strstr(n->target, "tangents");
    return (PartitionRequest){.joint = joint,
                              .n_fwd_outputs = graph_output_node(joint)->args[0].n - primals,
                              .partitioner = PARTITION_min_cut,
                              .forward_arena = a,
                              .backward_arena = a,
                              .arena = a,
                              .diag = d};
}

static int differences(Arena *a, const char *want, const char *got) {
    TextDiff t;
    text_diff(&t, a, want, got, false);
    if (getenv("SHOW")) {
        Buf b = {.arena = a};
        text_diff_print(&b, &t, 2);
        printf("%s\n", buf_str(&b));
    }
    return t.added + t.removed;
}

static int check_model(const char *root, const char *name, int *wrong) {
    Arena a = {0};
    Diag d = {.arena = &a};
    const char *dir = path_join(&a, root, name), *path = path_join(&a, dir, "aot_joint_graph.txt");
    if (!file_exists(path)) {
        arena_free(&a);
        return 0;
    }
    Sym *sym = sym_new(&a);
    FxDoc joint = {.arena = &a}, split = {.arena = &a};
    Str joint_text = file_read(&a, path, &d);
    Str log = file_read(&a, path_join(&a, dir, "aot_graphs.txt"), &d);
    ck_assert_msg(fx_parse(&joint, sym, joint_text, path, &d), "%s", diag_first(&d));
    ck_assert_msg(fx_parse(&split, sym, log, path, &d), "%s", diag_first(&d));
    int halves = 0;
    for (int i = 0; i < split.n; i++) {
        const char *title = split.at[i].graph->title;
        bool forward = strstr(title, "Forward") != NULL;
        if (!forward && !strstr(title, "Backward"))
            continue;
        ck_assert_int_lt(halves / 2, joint.n);
        // Tuples carry no annotation.
        graph_infer(joint.at[halves / 2].graph, &d);
        PartitionRequest r =
            request(&a, joint_passed(&a, joint.at[halves / 2].graph, &d), &d);
        r.is_static = static_inputs(&a, log.ptr, halves / 2);
        PartitionResult out = aot_partition(&r);
        ck_assert_msg(out.forward && out.backward, "%s: %s", name, diag_first(&d));
        ck_assert(graph_verify(out.forward, &d) && graph_verify(out.backward, &d));
        int n = differences(&a, printed(&a, split.at[i].graph),
                            printed(&a, forward ? out.forward : out.backward));
        *wrong += n > 0;
        halves++;
    }
    arena_free(&a);
    return halves;
}

START_TEST(corpus_as_logged) {
    Arena a = {0};
    Diag d = {.arena = &a};
    int graphs = 0, wrong = 0;
    for (int k = 0; k < COUNT(roots); k++) {
        int n = 0;
        char **names = file_is_dir(roots[k]) ? dir_list(&a, roots[k], &n, &d) : NULL;
        for (int i = 0; i < n; i++)
            graphs += check_model(roots[k], names[i], &wrong);
    }
    ck_assert_msg(!wrong, "%d of %d graphs differ", wrong, graphs);
    arena_free(&a);
}
END_TEST

Suite *suite_aot_partition(void) {
    const TTest *const tests[] = {corpus_as_logged};
    return unit_suite("aot_partition", tests, COUNT(tests));
}
