// eager_models.c: recorded models run by the reference kernels: the captured graph, the exported
// program, and in float64; outputs, buffers and inputs against PyTorch's within torch.testing's
// tolerances. The models of tests/corpus, and the whole recording where it is at hand. FX_REPORT=1
// names what fails.
#include "tests/unit/unit.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/file.h"
#include "core/eager/eager.h"
#include "core/load/load.h"

typedef struct Score {
    int passed, failed, refused; // refused: not loaded or inputs missing
} Score;

static bool near(const RtValue *got, const Tensor *want, const char *row, bool in_f64, Buf *why) {
    double rtol, atol;
    TensorDiff diff;
    if (got->kind != RT_tensor) {
        bool same = tensor_numel(want) == 1 &&
                    tensor_get_f64(want, 0) == (got->kind == RT_float  ? got->f
                                                : got->kind == RT_bool ? got->b
                                                                       : (double)got->i);
        if (!same)
            buf_printf(why, "%s: no tensor; ", row);
        return same;
    }
    Tensor t = tensor_keep(&got->tensor);
    Arena a = {0};
    Diag d = {.arena = &a};
    if (in_f64 && t.dtype == DT_f64 && want->dtype != DT_f64) {
        tensor_drop(&t);
        ck_assert(tensor_to(&t, &got->tensor, want->dtype, &d));
    }
    bool same = t.dtype == want->dtype && t.ndim == want->ndim;
    for (int i = 0; same && i < t.ndim; i++)
        same = t.size[i] == want->size[i];
    if (!same) {
        buf_printf(why, "%s: another dtype or shape; ", row);
    } else {
        dtype_tolerance(want->dtype, &rtol, &atol);
        // PyTorch's own rounding lies between float64 and the recording.
        if (in_f64 && dtype_is_float(want->dtype)) {
            rtol *= 10;
            atol *= 10;
        }
        tensor_diff(&t, want, rtol, atol, &diff);
        same = !diff.bad && !diff.nan_differs;
        if (!same)
            buf_printf(why, "%s: %lld bad, max abs %.3g rel %.3g; ", row, (long long)diff.bad,
                       diff.max_abs, diff.max_rel);
    }
    tensor_drop(&t);
    arena_free(&a);
    return same;
}

// Inputs are copied: a run may write them.
static RtValue *copies(Arena *a, const Tensor *const *bound, int n, Diag *d) {
    RtValue *in = ARENA_ARRAY(a, n + 1, RtValue);
    for (int i = 0; i < n; i++) {
        in[i].kind = RT_tensor;
        if (!bound[i] || !tensor_new_strided(&in[i].tensor, bound[i]->dtype, bound[i]->ndim,
                                             bound[i]->size, bound[i]->stride, d))
            return NULL;
        tensor_copy(&in[i].tensor, bound[i]);
    }
    return in;
}

static bool check_outputs(Arena *a, const LoadedGraph *g, const EagerRun *run,
                          const TensorFile *values, Buf *why) {
    int user = 0;
    bool ok = true;
    for (int i = 0; i < run->n_outputs; i++) {
        if (i < g->n_outputs && g->outputs[i].kind != OUT_user)
            continue;
        const char *row = arena_printf(a, "out%d", user++);
        const Tensor *want = map_get(&values->tensors, row);
        if (want)
            ok = near(&run->outputs[i], want, row, run->in_f64, why) && ok;
    }
    if (user == 0) {
        buf_puts(why, "no outputs; ");
        return false;
    }
    return ok;
}

// In place writes reach the caller's tensors. Which row an input was bound to tells its `after`
// row.
static bool check_inputs(Arena *a, const Tensor *const *bound, const EagerRun *run,
                         const TensorFile *values, Buf *why) {
    bool ok = true;
    for (int i = 0; i < run->n_inputs && !run->in_f64; i++)
        for (const MapEntry *e = map_first(&values->tensors); e;
             e = map_next(&values->tensors, e)) {
            const char *prefix = str_starts(e->key, "in")       ? "in"
                                 : str_starts(e->key, "state.") ? ""
                                                                : NULL;
            if (e->ptr != bound[i] || !prefix)
                continue;
            const char *row =
                arena_printf(a, "after%s%s", *prefix ? "" : ".", e->key + strlen(prefix));
            const Tensor *want = map_get(&values->tensors, row);
            if (want)
                ok = near(&run->inputs[i], want, row, false, why) && ok;
        }
    return ok;
}

// A lower graph of the same model takes its inputs in the captured graph's order.
static const LoadedGraph *lower_graph(Arena *a, const char *dir, const char *file, LoadedModel **m,
                                      Diag *d) {
    static const char *const folders[] = {"model__0_inference_0.0", "model__0_forward_1.0"};
    for (int i = 0; i < 2; i++) {
        const char *path = arena_printf(a, "%s/cpu/%s/%s", dir, folders[i], file);
        if (!file_exists(path))
            continue;
        *m = load_model(a, path, d);
        return *m && (*m)->graphs.n == 1 ? &(*m)->graphs.at[0] : NULL;
    }
    return NULL;
}

static void run_lower(const char *dir, const char *file, Score *s) {
    Arena a = {0};
    Diag d = {.arena = &a};
    Buf why = {.arena = &a};
    TensorFile values;
    LoadedModel *captured, *lower = NULL;
    const char *path = arena_printf(&a, "%s/graph_code.txt", dir),
               *rows = arena_printf(&a, "%s/values.safetensors", dir);
    if (!file_exists(path) || !file_exists(rows))
        return;
    ck_assert(safetensors_open(&values, &a, rows, &d));
    captured = load_model(&a, path, &d);
    const LoadedGraph *g = lower_graph(&a, dir, file, &lower, &d),
                      *c = captured ? &captured->graphs.at[0] : NULL;
    const Tensor **bound = c ? ARENA_ARRAY(&a, c->n_inputs + 1, const Tensor *) : NULL;
    Node **inputs;
    EagerRun run = {.graph = g ? g->graph : NULL,
                    .n_inputs = g ? graph_placeholders(g->graph, &inputs, &a) : 0};
    bool ready = g && c && captured->graphs.n == 1 && run.n_inputs == c->n_inputs &&
                 load_bind(captured, c, &values, NULL, bound, &d) &&
                 (run.inputs = copies(&a, bound, run.n_inputs, &d)) != NULL;
    EagerCtx e = {.arena = &a, .diag = &d, .threads = 1};
    LoadedGraph user = {.n_outputs = 0};
    if (!ready) {
        s->refused++;
    } else if (eager_run(&e, &run) && check_outputs(&a, &user, &run, &values, &why) &&
               check_inputs(&a, bound, &run, &values, &why)) {
        s->passed++;
    } else {
        s->failed++;
        if (getenv("FX_REPORT"))
            printf("%s %s: %s%s\n", dir, file, buf_str(&why), diag_first(&d));
    }
    for (int i = 0; i < run.n_outputs && run.outputs; i++)
        rt_drop(&run.outputs[i]);
    for (int i = 0; i < run.n_inputs && run.inputs; i++)
        rt_drop(&run.inputs[i]);
    if (captured)
        load_close(captured);
    if (lower)
        load_close(lower);
    safetensors_close(&values);
    arena_free(&a);
}

static void run_model(const char *dir, const char *file, bool in_f64, Score *s) {
    Arena a = {0};
    Diag d = {.arena = &a};
    Buf why = {.arena = &a};
    TensorFile values;
    const char *path = arena_printf(&a, "%s/%s", dir, file),
               *rows = arena_printf(&a, "%s/values.safetensors", dir);
    if (!file_exists(path) || !file_exists(rows))
        return;
    ck_assert(safetensors_open(&values, &a, rows, &d));
    LoadedModel *m = load_model(&a, path, &d);
    if (m && m->graphs.n == 1) {
        const LoadedGraph *g = &m->graphs.at[0];
        const Tensor **bound = ARENA_ARRAY(&a, g->n_inputs + 1, const Tensor *);
        Generator generator;
        generator_seed(&generator, 1);
        EagerCtx c = {.arena = &a, .diag = &d, .threads = 1, .generator = &generator};
        EagerRun run = {.graph = g->graph, .n_inputs = g->n_inputs, .in_f64 = in_f64};
        bool ok = load_bind(m, g, &values, NULL, bound, &d) &&
                  (run.inputs = copies(&a, bound, g->n_inputs, &d)) != NULL;
        if (!ok) {
            s->refused++;
            buf_puts(&why, "inputs missing; ");
        } else if (eager_run(&c, &run) && check_outputs(&a, g, &run, &values, &why) &&
                   check_inputs(&a, bound, &run, &values, &why)) {
            s->passed++;
        } else {
            s->failed++;
            ok = false;
        }
        if (!ok && getenv("FX_REPORT"))
            printf("%s%s: %s%s\n", path, in_f64 ? " in f64" : "", buf_str(&why), diag_first(&d));
        for (int i = 0; i < run.n_outputs && run.outputs; i++)
            rt_drop(&run.outputs[i]);
        for (int i = 0; i < run.n_inputs && run.inputs; i++)
            rt_drop(&run.inputs[i]);
    } else {
        s->refused++;
        if (getenv("FX_REPORT"))
            printf("%s: %s\n", path, m ? "several graphs" : diag_first(&d));
    }
    if (m)
        load_close(m);
    safetensors_close(&values);
    arena_free(&a);
}

static Score run_folder(const char *folder, const char *file, bool in_f64) {
    Score s = {0};
    DIR *dir = opendir(folder);
    for (struct dirent *e; dir && (e = readdir(dir));) {
        char path[512];
        if (e->d_name[0] == '.' ||
            (size_t)snprintf(path, sizeof path, "%s/%s", folder, e->d_name) >= sizeof path)
            continue;
        if (str_starts(file, "fx_graph"))
            run_lower(path, file, &s);
        else
            run_model(path, file, in_f64, &s);
    }
    if (dir)
        closedir(dir);
    if (getenv("FX_REPORT"))
        printf("%s %s%s: %d passed, %d failed, %d not run\n", folder, file, in_f64 ? " in f64" : "",
               s.passed, s.failed, s.refused);
    return s;
}

// Dropout draws at random; its mask depends on the build of PyTorch.
START_TEST(test_captured) {
    Score s = run_folder("tests/corpus", "graph_code.txt", false);
    ck_assert_int_eq(s.failed, 0);
    ck_assert_int_ge(s.passed, 5);
    s = run_folder("../shared/corpus", "graph_code.txt", false);
    ck_assert_int_le(s.failed, 1);
    s = run_folder("../shared/corpus_large", "graph_code.txt", false);
    ck_assert_int_eq(s.failed, 0);
}
END_TEST

START_TEST(test_exported) {
    Score s = run_folder("tests/corpus", "model.pt2", false);
    ck_assert_int_eq(s.failed, 0);
    ck_assert_int_ge(s.passed, 5);
    s = run_folder("../shared/corpus", "model.pt2", false);
    ck_assert_int_le(s.failed, 1);
    s = run_folder("../shared/corpus_large", "model.pt2", false);
    ck_assert_int_eq(s.failed, 0);
}
END_TEST

// Graphs below: functional and decomposed, and after the passes on them.
START_TEST(test_lowered) {
    static const char *const files[] = {"fx_graph_readable.py", "fx_graph_transformed.py"};
    for (int i = 0; i < 2; i++) {
        Score s = run_folder("tests/corpus", files[i], false);
        ck_assert_int_eq(s.failed, 0);
        ck_assert_int_ge(s.passed, 4);
        s = run_folder("../shared/corpus", files[i], false);
        ck_assert_int_le(s.failed, 1);
    }
}
END_TEST

START_TEST(test_float64) {
    Score s = run_folder("tests/corpus", "model.pt2", true);
    ck_assert_int_eq(s.failed, 0);
    ck_assert_int_ge(s.passed, 5);
    s = run_folder("../shared/corpus", "graph_code.txt", true);
    ck_assert_int_le(s.failed, 1);
}
END_TEST

Suite *suite_eager_models(void) {
    static const TTest *tests[4];
    int n = 0;
    tests[n++] = test_captured;
    tests[n++] = test_exported;
    tests[n++] = test_lowered;
    tests[n++] = test_float64;
    return unit_suite("eager_models", tests, n);
}
