// inductor_cat.c: concatenations that are spared and places of a permutation, from a captured graph
// to what is lowered: what the passes leave, and the same numbers on every rung.
#include "tests/unit/unit.h"

#include <string.h>

#include "core/base/file.h"
#include "core/session_private.h"

static const char model[] =
    "class GraphModule(torch.nn.Module):\n"
    "    def forward(self, L_x_: \"f32[8, 6][6, 1]cpu\", L_y_: \"f32[8, 4][4, 1]cpu\", L_z_: "
    "\"f32[3, 6][6, 1]cpu\"):\n"
    "        a = L_x_ + 1.0\n"
    "        c1 = torch.cat([a, L_y_], 1)\n"
    "        s1 = c1[(slice(None, None, None), slice(None, %d, None))]\n"
    "        c2 = torch.cat([c1, s1], 1)\n"
    "        sp = torch.split(c2, [5, 5, %d], 1)\n"
    "        g0 = sp[0]\n"
    "        g1 = sp[1]\n"
    "        g2 = sp[2]\n"
    "        c3 = torch.cat([%s], 1)\n"
    "        r = c3.relu()\n"
    "        sx = L_x_.sin()\n"
    "        cy = L_y_.cos()\n"
    "        c4 = torch.cat([sx, cy], 1)\n"
    "        q = torch.functional.split(c4, [%d, %d], 1)\n"
    "        q0 = q[0]\n"
    "        q1 = q[1]\n"
    "        perm = torch.randperm(%d)\n"
    "        ix = perm[slice(None, 3, None)]\n"
    "        e = L_x_[ix]\n"
    "        p2 = torch.randperm(8)\n"
    "        i2 = p2[slice(None, 3, None)]\n"
    "        ia = torch.index_add(L_x_, 0, i2, L_z_)\n"
    "        return (r, q0, q1, e, ix, ia, i2)\n";

typedef struct Want {
    int k;             // columns of the beginning
    const char *parts; // in the order that they are put together again
    int q0, rows;
    int cats, splits, unsafe; // nodes left
} Want;

static const Want wants[] = {
    {3, "g0, g1, g2", 6, 8, 1, 0, 2}, // all of it
    {7, "g0, g1, g2", 6, 8, 2, 0, 2}, // more than the first has: two concatenations stay
    {3, "g1, g0, g2", 6, 8, 2, 1, 2}, // another order
    {3, "g0, g1, g2", 5, 8, 2, 1, 2}, // split elsewhere
    {3, "g0, g1, g2", 6, 7, 1, 0, 1}, // not a permutation of the rows
};

static int count(const Graph *g, const char *name) {
    int n = 0;
    GRAPH_EACH (g, node)
        n += strstr(node->target, name) != NULL;
    return n;
}

static bool close_to(const RtValue *x, const RtValue *y) {
    TensorDiff diff;
    tensor_diff(&x->tensor, &y->tensor, 1e-5, 1e-6, &diff);
    return x->tensor.dtype == y->tensor.dtype && !diff.bad;
}

static void check_rungs(Session *s, Arena *a, Diag *d) {
    RunRequest r = {.backend = BACKEND_eager, .toolchain = toolchain_find("tcc")};
    RunResult want, got;
    ck_assert(session_run(s, &r, &want, a, d));
    for (int b = BACKEND_aot_eager; b < BACKEND_count; b++) {
        r.backend = (Backend)b;
        ck_assert_msg(session_run(s, &r, &got, a, d), "%s", backend_info[b].name);
        ck_assert_int_eq(got.n_outputs, want.n_outputs);
        for (int i = 0; i < want.n_outputs; i++)
            ck_assert_msg(close_to(&want.outputs[i], &got.outputs[i]), "%s: output %d",
                          backend_info[b].name, i);
        session_run_free(&got);
    }
    session_run_free(&want);
}

START_TEST(what_undoes_itself_goes) {
    const Want *w = &wants[_i];
    Arena a = {0};
    Diag d = {.arena = &a};
    char *folder = dir_temp(&a, &d), *path = path_join(&a, folder, "model.txt");
    const char *text =
        arena_printf(&a, model, w->k, w->k, w->parts, w->q0, 10 - w->q0, w->rows);
    ck_assert(file_write(path, text, strlen(text), &d));
    SessionOptions o = {.grad = "none", .toolchain = "tcc", .seed = 3};
    Session *s = session_open(path, &o, &d);
    Diag quiet = {.arena = &a};
    dir_remove(folder, &quiet);
    ck_assert_ptr_nonnull(s);
    const Artifact *post = pipeline_build(session_pipeline(s), 0, STAGE_post_grad);
    ck_assert_ptr_nonnull(post);
    ck_assert_int_eq(count(post->graph, "aten.cat."), w->cats);
    ck_assert_int_eq(count(post->graph, "split_with_sizes"), w->splits);
    ck_assert_int_eq(count(post->graph, "_unsafe_index."), w->unsafe);
    check_rungs(s, &a, &d);
    session_close(s);
    arena_free(&a);
}
END_TEST

Suite *suite_inductor_cat(void) {
    Suite *s = suite_create("inductor_cat");
    TCase *t = tcase_create("all");
    tcase_set_timeout(t, 60);
    tcase_add_loop_test(t, what_undoes_itself_goes, 0, COUNT(wants));
    suite_add_tcase(s, t);
    return s;
}
