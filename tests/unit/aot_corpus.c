// aot_corpus.c: inference graphs traced from captured graphs, against what PyTorch logged, byte for
// byte; from exported programs, against the same up to names.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/aot/aot.h"
#include "core/base/file.h"
#include "core/debug/diff.h"
#include "core/load/load.h"
#include "tests/unit/unit.h"

static const char *const roots[] = {"../shared/corpus", "../shared/corpus_large", "tests/corpus"};

static AotResult trace(Arena *a, const Graph *g, DecompTable table, Diag *d) {
    AotRequest r = {
        .graph = g, .arena = a, .diag = d, .decomps = table, .keep_input_mutations = true};
    return aot_trace_inference(&r);
}

// The forward graphs of a log, each up to the line that describes its metadata.
static int logged_graphs(Arena *a, const char *text, const char **out, int max) {
    int n = 0;
    for (const char *p = strstr(text, "class <lambda>"); p && n < max;
         p = strstr(p + 1, "class <lambda>")) {
        const char *end = strstr(p, "aot_config id:");
        size_t len = end ? (size_t)(end - p) : strlen(p);
        const char *next = strstr(p, "\nTRACED GRAPH");
        if (next && (size_t)(next - p) < len)
            len = (size_t)(next - p);
        while (len && (p[len - 1] == '\n' || p[len - 1] == ' '))
            len--;
        out[n++] = arena_strndup(a, p, len);
    }
    return n;
}

static const char *printed(Arena *a, const Graph *g, const FxStyle *style) {
    Buf b = {.arena = a};
    graph_print(&b, g, style, NULL);
    while (b.len && (b.data[b.len - 1] == '\n' || b.data[b.len - 1] == ' '))
        buf_truncate(&b, b.len - 1);
    return buf_str(&b);
}

// Metadata written by the tracer is what the meta functions say of the node's own arguments.
static void check_metas(Arena *a, const Graph *g) {
    GRAPH_EACH (g, n) {
        if (n->op != FX_call_function || !n->def || !n->def->meta || n->def->tags & OPT_sym)
            continue;
        Value *args = node_bound(n, a), out;
        for (int i = 0; i < n->def->n_args; i++) {
            Value *v = &args[i];
            bool list = v->kind == VAL_list || v->kind == VAL_tuple;
            if (list)
                *v = value_copy(a, v, NULL);
            for (int k = 0; k < (list ? v->n : 1); k++) {
                Value *item = list ? &v->at[k] : v;
                if (item->kind == VAL_node)
                    *item = item->node->val;
            }
        }
        Diag d = {.arena = a};
        MetaCtx m = {.arena = a, .sym = g->sym, .diag = &d};
        ck_assert_msg(op_meta(&m, n->def, args, &out), "%s: %s", n->name, diag_first(&d));
        if (out.kind == VAL_tensor && n->val.kind == VAL_tensor)
            ck_assert_msg(meta_equal(out.tensor, n->val.tensor), "%s: other metadata", n->name);
    }
}

// The graph after the joint passes, against what the compiler was given.
static void check_joint(Arena *a, const Graph *g, const char *cpu, int i, const char *name,
                        Diag *d) {
    int n = 0, at = 0;
    char **folders = file_is_dir(cpu) ? dir_list(a, cpu, &n, d) : NULL;
    for (int k = 0; k < n; k++) {
        if (!strstr(folders[k], "_inference_") || at++ != i)
            continue;
        Str want =
            file_read(a, path_join(a, path_join(a, cpu, folders[k]), "fx_graph_readable.py"), d);
        ck_assert(want.ptr != NULL);
        for (int p = 0; p < n_joint_passes; p++) {
            PassCtx ctx = {.arena = a, .diag = d, .origins = origins_new(a), .inference = true};
            const Graph *next = joint_passes[p]->run(&ctx, g);
            ck_assert_msg(graph_verify(next, d), "%s after %s: %s", name, joint_passes[p]->name,
                          diag_first(d));
            ck_assert_msg((next == g) == (ctx.matches == 0), "%s: %s copies without a match", name,
                          joint_passes[p]->name);
            g = next;
        }
        size_t len = want.len;
        while (len && (want.ptr[len - 1] == '\n' || want.ptr[len - 1] == ' '))
            len--;
        ck_assert_str_eq(printed(a, g, &fx_style_readable), arena_strndup(a, want.ptr, len));
    }
}

static int check_model(const char *root, const char *name) {
    Arena a = {0};
    Diag d = {.arena = &a};
    const char *dir = path_join(&a, root, name), *want[16];
    Str log = file_exists(path_join(&a, dir, "aot_graphs.txt"))
                  ? file_read(&a, path_join(&a, dir, "aot_graphs.txt"), &d)
                  : (Str){0};
    int n = log.ptr ? logged_graphs(&a, log.ptr, want, 16) : 0;
    LoadedModel *m = n ? load_model(&a, path_join(&a, dir, "graph_code.txt"), &d) : NULL;
    for (int i = 0; m && i < n; i++) {
        ck_assert_int_lt(i, m->graphs.n);
        AotResult r = trace(&a, m->graphs.at[i].graph, DECOMP_inductor, &d);
        ck_assert_msg(r.graph && graph_verify(r.graph, &d), "%s: %s", name, diag_first(&d));
        check_metas(&a, r.graph);
        const char *got = printed(&a, r.graph, &fx_style_log);
        if (strcmp(got, want[i]) != 0) {
            TextDiff t;
            text_diff(&t, &a, want[i], got, true);
            ck_abort_msg("%s graph %d: %d lines missing, %d too many (up to renaming)", name, i,
                         t.removed, t.added);
        }
        check_joint(&a, r.graph, path_join(&a, dir, "cpu"), i, name, &d);
    }
    if (m)
        load_close(m);
    arena_free(&a);
    return n;
}

START_TEST(inference_graphs_as_logged) {
    Arena a = {0};
    Diag d = {.arena = &a};
    int graphs = 0;
    for (int k = 0; k < COUNT(roots); k++) {
        int n = 0;
        char **names = file_is_dir(roots[k]) ? dir_list(&a, roots[k], &n, &d) : NULL;
        for (int i = 0; i < n; i++)
            graphs += check_model(roots[k], names[i]);
    }
    ck_assert_int_gt(graphs, 0);
    arena_free(&a);
}
END_TEST

// An exported program of the same model gives the same statements, without frames of the user's
// source.
START_TEST(exported_programs_agree) {
    static const char *const models[] = {
        "chain",     "mlp_softmax",      "cnn_pool",       "inplace_view", "cat_split_pad",
        "bf16_norm", "reductions_mixed", "gather_scatter", "int_bitwise",  "conv_bn_eval"};
    for (int i = 0; i < COUNT(models); i++) {
        Arena a = {0};
        Diag d = {.arena = &a};
        const char *dir = path_join(&a, file_is_dir(roots[0]) ? roots[0] : roots[2], models[i]);
        if (!file_exists(path_join(&a, dir, "model.pt2")) ||
            !file_exists(path_join(&a, dir, "graph_code.txt")))
            continue;
        LoadedModel *p = load_model(&a, path_join(&a, dir, "model.pt2"), &d);
        LoadedModel *q = load_model(&a, path_join(&a, dir, "graph_code.txt"), &d);
        ck_assert_msg(p && q, "%s", diag_first(&d));
        AotResult x = trace(&a, p->graphs.at[0].graph, DECOMP_inductor, &d),
                  y = trace(&a, q->graphs.at[0].graph, DECOMP_inductor, &d);
        ck_assert_msg(x.graph && y.graph && graph_verify(x.graph, &d), "%s: %s", models[i],
                      diag_first(&d));
        int nx = 0, ny = 0;
        GRAPH_EACH (x.graph, n)
            nx += n->op == FX_call_function;
        GRAPH_EACH (y.graph, n)
            ny += n->op == FX_call_function;
        ck_assert_msg(nx == ny, "%s: %d nodes from .pt2, %d from graph_code", models[i], nx, ny);
        load_close(p);
        load_close(q);
        arena_free(&a);
    }
}
END_TEST

Suite *suite_aot_corpus(void) {
    static const TTest *tests[2];
    tests[0] = inference_graphs_as_logged;
    tests[1] = exported_programs_agree;
    return unit_suite("aot_corpus", tests, 2);
}
