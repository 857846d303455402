// session_random.c: random training graphs on every rung: eager's gradients are held against
// central differences of the captured graph, which know nothing of derivatives; outputs, written
// inputs and gradients of the lower rungs, under several partitions and tables, against eager.
// FX_RANDOM="FIRST COUNT SIZE" does others than the usual ones; a failure tells which to ask for.
#include "tests/unit/unit.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/file.h"
#include "core/session_private.h"
#include "tests/unit/random_graph.h"

typedef struct Case {
    Arena a;
    Diag d;
    RandomGraph random;
    uint64_t seed;
    int size;
    Session *session;
    RunResult eager;
    int bad;
} Case;

static const struct Rung {
    const char *backend, *setting, *value; // set before; they add up
} rungs[] = {
    {"aot_eager", NULL, NULL},
    {"aot_eager_decomp_partition", NULL, NULL},
    {"ir_pre_fusion", NULL, NULL},
    {"ir", NULL, NULL},
    {"full", NULL, NULL},
    {"aot_eager_decomp_partition", "activation_memory_budget", "0.5"},
    {"aot_eager_decomp_partition", "activation_memory_budget", "0"},
    {"ir", NULL, NULL},
    {"full", NULL, NULL},
    {"aot_eager_decomp_partition", "partitioner", "default"},
    {"full", NULL, NULL},
    {"aot_eager_decomp_partition", "decomposition_table", "core_aten"},
    {"aot_eager_decomp_partition", "decomposition_table", "none"},
};

static void complain(Case *c, const char *rung, const char *what) {
    c->bad++;
    fprintf(stderr, "FX_RANDOM=\"%d 1 %d\": %s: %s\n%s", (int)c->seed, c->size, rung, what,
            c->random.text);
}

static bool open_case(Case *c) {
    SessionOptions o = {.grad = "params", .toolchain = "tcc", .backend = "eager"};
    char *folder = dir_temp(&c->a, &c->d), *path = path_join(&c->a, folder, "model.txt");
    if (file_write(path, c->random.text, strlen(c->random.text), &c->d))
        c->session = session_open(path, &o, &c->d);
    Diag quiet = {.arena = &c->a};
    dir_remove(folder, &quiet);
    return c->session != NULL;
}

// ---- differences

static double pattern(int64_t i) {
    return (double)(i % 7 - 3);
}

// The loss of a run (session_train.c); NAN if it fails. The inputs stay as they are.
static double loss(Case *c, const RtValue *in, int n) {
    RtValue *copies = ARENA_ARRAY(&c->a, n + 1, RtValue);
    for (int i = 0; i < n; i++) {
        const Tensor *from = &in[i].tensor;
        copies[i].kind = RT_tensor;
        ck_assert(tensor_new_strided(&copies[i].tensor, from->dtype, from->ndim, from->size,
                                     from->stride, &c->d));
        tensor_copy(&copies[i].tensor, from);
    }
    Generator *gen = ARENA_NEW(&c->a, Generator);
    EagerCtx ctx = {.arena = &c->a, .diag = &c->d, .threads = 1, .generator = gen};
    const Graph *g = pipeline_at(session_pipeline(c->session), 0, STAGE_fx)->graph;
    EagerRun r = {.graph = g, .inputs = copies, .n_inputs = n};
    bool ok = eager_run(&ctx, &r);
    double sum = ok ? 0 : NAN;
    for (int o = 0; ok && o < r.n_outputs; o++) {
        const Tensor *x = &r.outputs[o].tensor;
        if (r.outputs[o].kind == RT_tensor && dtype_is_float(x->dtype))
            for (int64_t k = 0; k < tensor_numel(x); k++)
                sum += pattern(k) * tensor_get_f64(x, k);
        rt_drop(&r.outputs[o]);
    }
    for (int i = 0; i < n; i++)
        rt_drop(&copies[i]);
    return sum;
}

// Where the graph has a kink a difference says nothing.
static bool differs(Case *c, RtValue *in, int n, int input, int64_t at, double got, double most) {
    const double h = 1e-6;
    Tensor *x = &in[input].tensor;
    double was = tensor_get_f64(x, at), here = loss(c, in, n);
    tensor_set_f64(x, at, was + h);
    double right = (loss(c, in, n) - here) / h;
    tensor_set_f64(x, at, was - h);
    double left = (here - loss(c, in, n)) / h;
    tensor_set_f64(x, at, was);
    double room = 1e-5 * most + 1e-9 * fabs(here);
    return isfinite(right + left) && fabs((left + right) / 2 - got) > room &&
           fabs(left - right) < 1e-3 * most;
}

static void check_differences(Case *c) {
    RtValue *in;
    int n;
    if (c->random.stops || c->random.narrow || !c->eager.n_grads)
        return;
    ck_assert(session_inputs(c->session, 0, &c->a, &in, &n, &c->d));
    for (int i = 0; i < n; i++) {
        if (c->eager.grads[i].kind != RT_tensor)
            continue;
        const Tensor *g = &c->eager.grads[i].tensor;
        double most = 1;
        for (int64_t k = 0; k < tensor_numel(g); k++)
            most = fmax(most, fabs(tensor_get_f64(g, k)));
        for (int64_t k = 0; k < tensor_numel(g); k++)
            if (differs(c, in, n, i, k, tensor_get_f64(g, k), most)) {
                complain(c, "eager", "a gradient is not what differences say");
                return;
            }
    }
}

// ---- rungs

static double at(const Tensor *x, int64_t i) {
    return dtype_is_float(x->dtype) ? tensor_get_f64(x, i) : (double)tensor_get_i64(x, i);
}

static bool close_to(const RtValue *want, const RtValue *got, double room) {
    if (want->kind != RT_tensor || got->kind != RT_tensor)
        return want->kind == got->kind;
    const Tensor *x = &want->tensor, *y = &got->tensor;
    double most = 1e-2, off = 0;
    if (x->ndim != y->ndim || x->dtype != y->dtype ||
        memcmp(x->size, y->size, (size_t)x->ndim * sizeof *x->size))
        return false;
    for (int64_t i = 0; i < tensor_numel(x); i++) {
        double a = at(x, i), b = at(y, i);
        if (isfinite(a) != isfinite(b))
            return false;
        if (!isfinite(a))
            continue;
        most = fmax(most, fabs(a));
        off = fmax(off, fabs(a - b));
    }
    return off <= room * most;
}

static void check_values(Case *c, const char *rung, const char *what, const RtValue *want,
                         int n_want, const RtValue *got, int n_got) {
    if (n_want != n_got)
        complain(c, rung, arena_printf(&c->a, "%d %ss, not %d", n_got, what, n_want));
    for (int i = 0; i < n_want && i < n_got; i++)
        if (!close_to(&want[i], &got[i], c->random.narrow ? 1e-3 : 1e-8))
            complain(c, rung, arena_printf(&c->a, "%s %d differs from eager's", what, i));
}

static void check_rung(Case *c, const struct Rung *rung) {
    const RunResult *e = &c->eager;
    RunResult r = {0};
    RunRequest q = {.backend = (Backend)backend_find(rung->backend),
                    .toolchain = toolchain_find("tcc")};
    Diag d = {.arena = &c->a};
    if (rung->setting)
        ck_assert(session_set(c->session, rung->setting, rung->value, &c->d));
    if (!session_run(c->session, &q, &r, &c->a, &d)) {
        complain(c, rung->backend, diag_first(&d));
        return;
    }
    check_values(c, rung->backend, "output", e->outputs, e->n_outputs, r.outputs, r.n_outputs);
    check_values(c, rung->backend, "input", e->inputs, e->n_inputs, r.inputs, r.n_inputs);
    check_values(c, rung->backend, "gradient", e->grads, e->n_grads, r.grads, r.n_grads);
    session_run_free(&r);
}

// Counts *ran up unless autograd refuses the graph, as it does where something saved is written.
static void check_case(Case *c, int *ran) {
    RunRequest q = {.backend = BACKEND_eager, .toolchain = toolchain_find("tcc")};
    if (!open_case(c)) {
        complain(c, "open", diag_first(&c->d));
    } else if (!session_run(c->session, &q, &c->eager, &c->a, &c->d)) {
        if (!strstr(diag_first(&c->d), "modified by an inplace operation"))
            complain(c, "eager", diag_first(&c->d));
    } else {
        ++*ran;
        check_differences(c);
        for (int i = 0; i < COUNT(rungs) && !c->bad; i++)
            check_rung(c, &rungs[i]);
        session_run_free(&c->eager);
    }
    session_close(c->session);
    arena_free(&c->a);
}

START_TEST(random_graphs_have_the_same_gradients_on_every_rung) {
    const char *asked = getenv("FX_RANDOM");
    int first = 0, count = 100 / UNIT_EVERY(4), size = 9, bad = 0, ran = 0;
    if (asked)
        sscanf(asked, "%d %d %d", &first, &count, &size);
    for (int i = 0; i < count; i++) {
        Case c = {.seed = (uint64_t)(first + i), .size = size};
        c.d.arena = &c.a;
        c.random = random_graph(&c.a, c.seed, size);
        check_case(&c, &ran);
        bad += c.bad > 0;
    }
    ck_assert_msg(!bad, "%d of %d random graphs are wrong", bad, ran);
    ck_assert_int_ge(ran, count / 2);
}
END_TEST

#define W "L_self_parameters_w_: "
#define X "L_x_: "
// What random graphs brought to light, made small by hand.
static const struct Found {
    const char *inputs, *body;
} found[] = {
    // An input that needs no gradient is written by one that does, and returned.
    {W "f64[3][1]; " X "f64[3][1]",
     "u = L_x_.sub_(L_self_parameters_w_, alpha = 0.5); return (L_x_,)"},
    {W "f64[2, 2][2, 1]; " X "f64[2, 2][2, 1]",
     "u = L_x_.add_(L_self_parameters_w_); v = L_x_.transpose(-1, -2); return (v,)"},
    // A view of what was written is made anew behind backward.
    {W "f64[3, 2][2, 1]",
     "y = L_self_parameters_w_.erf(); u = y.zero_(); v = y.permute(1, 0); return (v,)"},
    // zeros like a transposed tensor are transposed.
    {W "f64[3][1]; " X "f64[1, 4, 2][8, 2, 1]",
     "t = L_x_.transpose(-1, -2); u = t.zero_(); v = L_x_.view(2, -1); "
     "y = L_self_parameters_w_.sin(); return (v, y)"},
    // A scatter into a view of a value that is in no buffer yet.
    {W "f64[1][1]; " X "f64[3, 2][2, 1]",
     "i = torch.arange(2); y = 1.5 - L_x_; v = y.permute(1, 0); "
     "u = v.index_put_([i], L_self_parameters_w_, accumulate = True); return (v,)"},
    // A part of a cat is a buffer of its own, that begins at 0.
    {W "f64[3][1]", "y = L_self_parameters_w_.expm1(); m = y.amin(dim = -1, keepdim = True); "
                    "c = torch.cat([m, y], dim = 0); v = y[1]; return (c, v)"},
    // What was written in place is read again by its own name within one kernel.
    {W "f64[3][1]; " X "f64[2, 3][3, 1]",
     "d = L_x_.diagonal(0, 0, 1); u = d.add_(0.25); z = d / 3.0; "
     "y = L_self_parameters_w_.sin(); return (z, y)"},
    {W "f64[1, 3, 2][6, 2, 1]",
     "y = 1.5 - L_self_parameters_w_; d = y.diagonal(0, 0, 1); u = d.add_(0.25); "
     "m = d.mean(dim = -1, keepdim = False); return (y, m)"},
    // A cat is written, a part of it read later.
    {W "f64[3, 3][1, 3]",
     "y = L_self_parameters_w_.sigmoid(); i = torch.arange(3); "
     "c = torch.cat([y, L_self_parameters_w_], dim = 0); u = c.index_add_(0, i, y); "
     "z = c.abs(); return (z,)"},
};

// Statements and inputs are parted by "; ".
static const char *found_text(Arena *a, const struct Found *f) {
    Buf b = {.arena = a};
    buf_printf(&b, "class GraphModule(torch.nn.Module):\n    def forward(self");
    for (const char *p = f->inputs; *p;) {
        size_t name = strcspn(p, " "), all = strcspn(p, ";");
        buf_printf(&b, ", %.*s \"%.*scpu\"", (int)name, p, (int)(all - name - 1), p + name + 1);
        p += all + strspn(p + all, "; ");
    }
    buf_printf(&b, "):\n");
    for (const char *p = f->body; *p;) {
        size_t n = strcspn(p, ";");
        buf_printf(&b, "        %.*s\n", (int)n, p);
        p += n + strspn(p + n, "; ");
    }
    return buf_str(&b);
}

START_TEST(graphs_that_were_wrong_once_are_right) {
    int bad = 0, ran = 0;
    for (int i = 0; i < COUNT(found); i++) {
        Case c = {0};
        c.d.arena = &c.a;
        c.random.text = found_text(&c.a, &found[i]);
        check_case(&c, &ran);
        bad += c.bad;
    }
    ck_assert_int_eq(bad, 0);
    ck_assert_int_eq(ran, COUNT(found));
}
END_TEST

// What is written is refused too if the derivative reads it through a view.
START_TEST(a_saved_matrix_may_not_be_written) {
    static const struct Found f = {W "f64[2, 1][1, 1]; " X "f64[1, 3][3, 1]",
                                   "y = torch.mm(L_self_parameters_w_, L_x_); u = L_x_.zero_(); "
                                   "return (y,)"};
    int ran = 0;
    Case c = {0};
    c.d.arena = &c.a;
    c.random.text = found_text(&c.a, &f);
    check_case(&c, &ran);
    ck_assert_int_eq(c.bad, 0);
    ck_assert_int_eq(ran, 0);
}
END_TEST

Suite *suite_session_random(void) {
    static const TTest *tests[3];
    int n = 0;
    tests[n++] = random_graphs_have_the_same_gradients_on_every_rung;
    tests[n++] = graphs_that_were_wrong_once_are_right;
    tests[n++] = a_saved_matrix_may_not_be_written;
    return unit_suite("session_random", tests, n);
}
