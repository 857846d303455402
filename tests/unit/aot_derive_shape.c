// aot_derive_shape.c: gradients of views, joins, reductions, scans and indexing. Each row is a
// small graph, traced jointly, run op by op and checked against central differences of its forward
// half, computed in float64 from the graph as it was written. Then PyTorch's recorded gradients of
// the same families, where they are at hand.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/aot/aot.h"
#include "core/base/file.h"
#include "core/load/load.h"
#include "tests/unit/aot_grads.h"
#include "tests/unit/unit.h"

enum { MAX_ARGS = 8 };

// One traced and run case.
typedef struct Case {
    Arena a;
    Diag d;
    const Graph *graph;
    RtValue in[MAX_ARGS]; // one a placeholder
    int n_in;
    AotResult joint;
    RtValue seeds[MAX_ARGS]; // tangents
    EagerRun run;            // of the joint graph
} Case;

static void drop_all(RtValue *v, int n) {
    for (int i = 0; i < n && v; i++)
        rt_drop(&v[i]);
}

static void case_end(Case *c) {
    drop_all(c->run.outputs, c->run.n_outputs);
    drop_all(c->in, c->n_in);
    drop_all(c->seeds, MAX_ARGS);
    arena_free(&c->a);
}

static bool parse(Case *c, const char *text) {
    FxDoc doc = {.arena = &c->a};
    if (!fx_parse(&doc, sym_new(&c->a), (Str){text, strlen(text)}, "graph", &c->d) || !doc.n)
        return false;
    c->graph = doc.at[0].graph;
    return true;
}

// Outputs of the graph on c->in, or on `other` in its stead.
static bool forward(Case *c, EagerRun *run) {
    EagerCtx e = {.arena = &c->a, .diag = &c->d, .threads = 1};
    *run = (EagerRun){.graph = c->graph, .inputs = c->in, .n_inputs = c->n_in};
    return eager_run(&e, run);
}

static bool trace(Case *c, const bool *needs, DecompTable decomps) {
    AotRequest req = {.graph = c->graph,
                      .arena = &c->a,
                      .diag = &c->d,
                      .decomps = decomps,
                      .keep_input_mutations = true,
                      .requires_grad = needs};
    c->joint = aot_trace_joint(&req);
    return c->joint.graph && c->joint.meta && c->joint.meta->training;
}

static bool run_joint(Case *c, int n_seeds) {
    RtValue *in = ARENA_ARRAY(&c->a, c->n_in + n_seeds + 1, RtValue);
    memcpy(in, c->in, (size_t)c->n_in * sizeof *in);
    memcpy(in + c->n_in, c->seeds, (size_t)n_seeds * sizeof *in);
    EagerCtx e = {.arena = &c->a, .diag = &c->d, .threads = 1};
    c->run = (EagerRun){.graph = c->joint.graph, .inputs = in, .n_inputs = c->n_in + n_seeds};
    return eager_run(&e, &c->run);
}

// rows

typedef enum Group {
    IN_views,
    IN_joins,
    IN_reductions,
    IN_scans,
    IN_indexing,
    IN_writes,
    IN_composites
} Group;

typedef struct Row {
    Group group;
    const char *args; // a: f64[2, 3]; i: i64[2] = 0 2; m: b8[2, 3]. A stride: f64[2, 3][1, 2]
    const char *body; // statements; torch.ops.aten is spelled aten
    const char *out;  // names of results that are used: each is multiplied by itself
} Row;

static uint32_t dice;
static double draw(void) {
    dice = dice * 1664525u + 1013904223u;
    return (double)(dice >> 8) / (1 << 24);
}

// Distinct numbers, none near another or near zero: nothing changes its order under the step.
static void fill_floats(Tensor *x) {
    int64_t n = tensor_numel(x);
    for (int64_t i = 0; i < n; i++) {
        int64_t k = (i * 7 + 3) % (n > 7 && n % 7 ? n : n + 1);
        double v = 0.35 + 1.7 * ((double)k + 0.3 * draw()) / ((double)n + 1);
        tensor_set_f64(x, i, draw() < 0.4 ? -v : v);
    }
}

static void fill_given(Tensor *x, const char *values) {
    for (int64_t i = 0; i < tensor_numel(x); i++)
        tensor_set_i64(x, i, strtoll(values, (char **)&values, 10));
}

static bool fill(Case *c, const Node *p, int64_t symbol, const char *values) {
    const TensorMeta *m = node_tensor(p);
    RtValue *v = &c->in[c->n_in++];
    if (!m) {
        *v = (RtValue){.kind = RT_int, .i = symbol};
        return true;
    }
    int64_t size[TENSOR_DIMS], stride[TENSOR_DIMS];
    for (int i = 0; i < m->ndim; i++) {
        size[i] = sym_size_hint(c->graph->sym, m->size[i], 0);
        stride[i] = sym_size_hint(c->graph->sym, m->stride[i], 0);
    }
    v->kind = RT_tensor;
    if (!tensor_new_strided(&v->tensor, m->dtype, m->ndim, size, stride, &c->d))
        return false;
    if (values)
        fill_given(&v->tensor, values);
    else if (dtype_is_float(m->dtype))
        fill_floats(&v->tensor);
    else
        for (int64_t i = 0; i < tensor_numel(&v->tensor); i++)
            tensor_set_i64(&v->tensor, i, i % 3 != 1);
    return true;
}

static void put_spelled(Buf *b, const char *body) {
    for (const char *p = body; *p; p++) {
        bool word = str_starts(p, "aten.") && (p == body || p[-1] == ' ');
        if (word) {
            buf_puts(b, "torch.ops.aten.");
            p += strlen("aten.") - 1;
        } else {
            buf_putc(b, *p);
        }
        if (*p == '\n')
            buf_puts(b, "        ");
    }
}

// Sizes of a row: with a symbol wanted, those equal to it are s77.
typedef struct Symbol {
    int64_t value; // 0: no symbol
} Symbol;

static void put_size(Buf *b, int64_t n, int power) {
    if (n != 1 || !power)
        buf_printf(b, "%lld%s", (long long)n, power ? "*" : "");
    if (power)
        buf_printf(b, power > 1 ? "s77**%d" : "s77", power);
}

// f64[2, 3] as f64[2, 3][3, 1]; what has strides keeps them.
static const char *full_type(Arena *a, const char *type, Symbol sym) {
    int64_t size[TENSOR_DIMS], n = 0;
    if (strstr(type, "]["))
        return type;
    const char *p = strchr(type, '[') + 1;
    Buf b = {.arena = a};
    buf_add(&b, type, (size_t)(p - type));
    while (*p && *p != ']') {
        size[n] = strtoll(p, (char **)&p, 10);
        buf_puts(&b, n ? ", " : "");
        bool is_sym = sym.value && size[n] == sym.value;
        put_size(&b, is_sym ? 1 : size[n], is_sym);
        n++;
        p += strspn(p, ", ");
    }
    buf_puts(&b, "][");
    for (int64_t i = 0; i < n; i++) {
        int64_t step = 1;
        int power = 0;
        for (int64_t k = i + 1; k < n; k++) {
            bool is_sym = sym.value && size[k] == sym.value;
            power += is_sym;
            step *= is_sym || !size[k] ? 1 : size[k];
        }
        buf_puts(&b, i ? ", " : "");
        put_size(&b, step, power);
    }
    buf_putc(&b, ']');
    return buf_str(&b);
}

// The row as FX text; the given values of arguments into values.
static const char *row_text(Arena *a, const Row *row, Symbol sym, const char **values) {
    Buf b = {.arena = a};
    buf_puts(&b, "class <lambda>(torch.nn.Module):\n    def forward(self");
    int n = 0;
    if (sym.value) {
        buf_puts(&b, ", s77: \"Sym(s77)\"");
        values[n++] = NULL;
    }
    for (const char *p = row->args; *p; n++) {
        const char *end = p + strcspn(p, ";"), *eq = memchr(p, '=', (size_t)(end - p));
        char *arg = arena_strndup(a, p, (size_t)((eq ? eq : end) - p));
        for (char *e = arg + strlen(arg); e > arg && e[-1] == ' ';)
            *--e = 0;
        char *type = strchr(arg, ':');
        *type = 0;
        buf_printf(&b, ", %s: \"%scpu\"", arg, full_type(a, type + 2, sym));
        values[n] = eq ? arena_strndup(a, eq + 1, (size_t)(end - eq - 1)) : NULL;
        p = end + strspn(end, "; ");
    }
    buf_puts(&b, "):\n        ");
    put_spelled(&b, row->body);
    Buf outs = {.arena = a};
    int i = 0;
    for (const char *p = row->out; *p; i++) {
        size_t len = strcspn(p, " ");
        buf_printf(&b, "\n        out_%d = torch.ops.aten.mul.Tensor(%.*s, %.*s)", i, (int)len, p,
                   (int)len, p);
        buf_printf(&outs, "%sout_%d", i ? ", " : "", i);
        p += len + strspn(p + len, " ");
    }
    buf_printf(&b, "\n        return [%s]\n", buf_str(&outs));
    return buf_str(&b);
}

// sum over outputs of seed * output
static double objective(Case *c) {
    EagerRun run;
    double sum = 0;
    ck_assert_msg(forward(c, &run), "%s", diag_first(&c->d));
    for (int i = 0; i < run.n_outputs; i++)
        for (int64_t k = 0; k < tensor_numel(&run.outputs[i].tensor); k++)
            sum +=
                tensor_get_f64(&run.outputs[i].tensor, k) * tensor_get_f64(&c->seeds[i].tensor, k);
    drop_all(run.outputs, run.n_outputs);
    return sum;
}

static void make_seeds(Case *c) {
    EagerRun run;
    ck_assert_msg(forward(c, &run), "%s", diag_first(&c->d));
    for (int i = 0; i < run.n_outputs; i++) {
        const Tensor *y = &run.outputs[i].tensor;
        c->seeds[i].kind = RT_tensor;
        tensor_new(&c->seeds[i].tensor, y->dtype, y->ndim, y->size, &c->d);
        for (int64_t k = 0; k < tensor_numel(y); k++)
            tensor_set_f64(&c->seeds[i].tensor, k, 0.5 + draw());
    }
    drop_all(run.outputs, run.n_outputs);
}

// The gradient's largest distance from central differences; none: zeros.
static double distance(Case *c, int input, const RtValue *grad, const char *body) {
    Tensor *x = &c->in[input].tensor;
    double worst = 0;
    if (grad->kind == RT_tensor) {
        ck_assert_msg(grad->tensor.ndim == x->ndim && grad->tensor.dtype == x->dtype,
                      "%s: shape of the gradient", body);
        for (int i = 0; i < x->ndim; i++)
            ck_assert_msg(grad->tensor.size[i] == x->size[i], "%s: shape of the gradient", body);
    }
    for (int64_t k = 0; k < tensor_numel(x); k++) {
        double was = tensor_get_f64(x, k), step = 1e-5, y[2];
        for (int s = 0; s < 2; s++) {
            tensor_set_f64(x, k, was + (s ? step : -step));
            y[s] = objective(c);
        }
        tensor_set_f64(x, k, was);
        double want = (y[1] - y[0]) / (2 * step);
        double got = grad->kind == RT_tensor ? tensor_get_f64(&grad->tensor, k) : 0;
        double off = fabs(got - want) / (1 + fabs(want));
        worst = off > worst || isnan(off) ? off : worst;
    }
    return worst;
}

// The forward half gives what the graph gives as it was written.
static void check_outputs(Case *c, const char *body) {
    EagerRun run;
    ck_assert_msg(forward(c, &run), "%s", diag_first(&c->d));
    for (int i = 0; i < run.n_outputs; i++) {
        TensorDiff diff = {0};
        tensor_diff(&c->run.outputs[i].tensor, &run.outputs[i].tensor, 1e-12, 1e-12, &diff);
        ck_assert_msg(!diff.bad, "%s: output %d differs", body, i);
    }
    drop_all(run.outputs, run.n_outputs);
}

static void check_row(const Row *row, Symbol sym, DecompTable decomps) {
    Case c = {0};
    c.d.arena = &c.a;
    dice = 17;
    const char *values[MAX_ARGS];
    const char *text = row_text(&c.a, row, sym, values);
    ck_assert_msg(parse(&c, text), "%s\n%s", text, diag_first(&c.d));
    if (sym.value)
        sym_set_hint(c.graph->sym, sym_symbol(c.graph->sym, "s77"), sym.value);
    bool needs[MAX_ARGS] = {false};
    GRAPH_EACH (c.graph, n)
        if (n->op == FX_placeholder) {
            const TensorMeta *m = node_tensor(n);
            needs[c.n_in] = m && dtype_is_float(m->dtype);
            ck_assert(fill(&c, n, sym.value, values[c.n_in]));
        }
    make_seeds(&c);
    ck_assert_msg(trace(&c, needs, decomps), "%s\n%s", row->body, diag_first(&c.d));
    const AotMeta *m = c.joint.meta;
    ck_assert_msg(run_joint(&c, m->n_tangents), "%s\n%s", row->body, diag_first(&c.d));
    ck_assert_int_eq(c.run.n_outputs, m->n_fwd_outputs + c.n_in);
    check_outputs(&c, row->body);
    for (int i = 0; i < c.n_in; i++) {
        const RtValue *grad = &c.run.outputs[m->n_fwd_outputs + i];
        if (needs[i]) {
            double off = distance(&c, i, grad, row->body);
            ck_assert_msg(off < 1e-7, "%s: gradient of argument %d is off by %g", row->body, i,
                          off);
        }
    }
    case_end(&c);
}

static int64_t first_size(const Row *row) {
    int64_t n = strtoll(strchr(row->args, '[') + 1, NULL, 10);
    return n > 1 && !strstr(row->args, "][") ? n : 0;
}

static const Row rows[] = {
#define ROW(group, args, body, out) {IN_##group, args, body, out},
#include "tests/unit/aot_derive_shape.def"
#undef ROW
};

static void check_group(Group group) {
    int n = 0;
    for (int i = 0; i < COUNT(rows); i++) {
        const Row *r = &rows[i];
        if (r->group != group)
            continue;
        check_row(r, (Symbol){0}, DECOMP_none);
        check_row(r, (Symbol){0}, DECOMP_inductor);
        if (first_size(r))
            check_row(r, (Symbol){first_size(r)}, DECOMP_none);
        n++;
    }
    ck_assert_int_gt(n, 10);
}

START_TEST(test_views) {
    check_group(IN_views);
}
END_TEST

START_TEST(test_joins) {
    check_group(IN_joins);
}
END_TEST

START_TEST(test_reductions) {
    check_group(IN_reductions);
}
END_TEST

START_TEST(test_scans) {
    check_group(IN_scans);
}
END_TEST

START_TEST(test_indexing) {
    check_group(IN_indexing);
}
END_TEST

START_TEST(test_writes) {
    check_group(IN_writes);
}
END_TEST

START_TEST(test_composites) {
    check_group(IN_composites);
}
END_TEST

// Zeros in products and ties have gradients by definition, not by differences.
static void check_values(const Row *row, const double *in, const double *seed, const double *want) {
    Case c = {0};
    c.d.arena = &c.a;
    const char *values[MAX_ARGS];
    bool needs[MAX_ARGS] = {true};
    ck_assert(parse(&c, row_text(&c.a, row, (Symbol){0}, values)));
    GRAPH_EACH (c.graph, n)
        if (n->op == FX_placeholder)
            ck_assert(fill(&c, n, 0, values[c.n_in]));
    Tensor *x = &c.in[0].tensor;
    for (int64_t k = 0; k < tensor_numel(x); k++)
        tensor_set_f64(x, k, in[k]);
    make_seeds(&c);
    for (int64_t k = 0; k < tensor_numel(&c.seeds[0].tensor); k++)
        tensor_set_f64(&c.seeds[0].tensor, k, seed[k]);
    ck_assert_msg(trace(&c, needs, DECOMP_none) && run_joint(&c, 1), "%s", diag_first(&c.d));
    const RtValue *g = &c.run.outputs[c.joint.meta->n_fwd_outputs];
    ck_assert_int_eq(g->kind, RT_tensor);
    for (int64_t k = 0; k < tensor_numel(x); k++)
        ck_assert_msg(fabs(tensor_get_f64(&g->tensor, k) - want[k]) < 1e-12,
                      "%s: element %d is %g, expected %g", row->body, (int)k,
                      tensor_get_f64(&g->tensor, k), want[k]);
    case_end(&c);
}

START_TEST(test_special_values) {
    // r * r has the derivative 2 r: seeds are chosen so that it is known.
    Row amax = {IN_views, "a: f64[4]", "r = aten.amax.default(a)", "r"};
    check_values(&amax, (double[]){3, 1, 3, 2}, (double[]){1}, (double[]){3, 0, 3, 0});
    Row max = {IN_views, "a: f64[4]", "r = aten.max.default(a)", "r"};
    check_values(&max, (double[]){3, 3, 3, 2}, (double[]){1}, (double[]){2, 2, 2, 0});
    Row prod = {IN_views, "a: f64[3]", "p = aten.prod.default(a)\nr = aten.add.Scalar(p, 1)", "r"};
    check_values(&prod, (double[]){2, 0, 5}, (double[]){1}, (double[]){0, 20, 0});
    Row cumprod = {IN_views, "a: f64[3]",
                   "p = aten.cumprod.default(a, 0)\nr = aten.add.Scalar(p, 1)", "r"};
    check_values(&cumprod, (double[]){2, 0, 5}, (double[]){1, 1, 1}, (double[]){6, 24, 0});
    Row norm = {IN_views, "a: f64[2]",
                "p = aten.linalg_vector_norm.default(a)\nr = aten.add.Scalar(p, 1)", "r"};
    check_values(&norm, (double[]){0, 0}, (double[]){1}, (double[]){0, 0});
    // One place that the input shows three times: the gradient is shared out among them.
    Row strided = {IN_views, "a: f64[2]",
                   "e = aten.expand.default(a, [3, 2])\n"
                   "r = aten.as_strided.default(e, [2], [1])",
                   "r"};
    check_values(&strided, (double[]){2, 3}, (double[]){1, 1}, (double[]){4, 6});
    Row mode = {IN_views, "a: f64[4]", "s = aten.mode.default(a)\nr = s[0]", "r"};
    check_values(&mode, (double[]){1, 2, 2, 3}, (double[]){1}, (double[]){0, 0, 4, 0});
    Row padding = {IN_views, "a: f64[3, 1]; i: i64[3] = 0 1 1",
                   "r = aten.embedding.default(a, i, 1)", "r"};
    check_values(&padding, (double[]){1, 2, 3}, (double[]){1, 1, 1}, (double[]){2, 0, 0});
}
END_TEST

// Empty tensors, and arguments that nothing depends on.
START_TEST(test_edges) {
    static const Row edges[] = {
        {IN_views, "a: f64[0, 3]", "r = aten.sum.dim_IntList(a, [0])", "r"},
        {IN_views, "a: f64[0, 3]", "r = aten.cumsum.default(a, 0)", "r"},
        {IN_views, "a: f64[0]", "r = aten.prod.default(a)", "r"},
        {IN_views, "a: f64[2, 0]", "r = aten.cat.default([a, a])", "r"},
        {IN_views, "a: f64[0]", "s = aten.sort.default(a)\nr = s[0]", "r"},
        {IN_views, "a: f64[0, 2]", "r = aten.repeat.default(a, [2, 1])", "r"},
        {IN_views, "a: f64[3]", "r = aten.repeat.default(a, [0])", "r"},
        {IN_views, "a: f64[3]; i: i64[0] =", "r = aten.index.Tensor(a, [i])", "r"},
        {IN_views, "a: f64[3]", "r = aten.as_strided.default(a, [0, 2], [1, 1])", "r"},
    };
    for (int i = 0; i < COUNT(edges); i++)
        check_row(&edges[i], (Symbol){0}, DECOMP_none);
}
END_TEST

// Recorded gradients whose graphs consist of ops that this program differentiates, here or
// elsewhere: all of them are right.
START_TEST(test_recorded) {
    const char *path = "../shared/opcases/grads.jsonl";
    if (!file_exists(path))
        return;
    Arena a = {0};
    Diag d = {.arena = &a};
    Str text = file_read(&a, path, &d);
    int passed = 0;
    for (size_t at = 0; at < text.len;) {
        const char *end = memchr(text.ptr + at, '\n', text.len - at), *opinfo;
        Str line = {text.ptr + at, end ? (size_t)(end - text.ptr) - at : text.len - at};
        at += line.len + 1;
        Arena tmp = {0};
        const char *wrong = check_recorded(&tmp, line, DECOMP_none, &opinfo);
        passed += !wrong;
        if (wrong && getenv("FX_REPORT"))
            printf("%s: %s\n", opinfo, wrong);
        arena_free(&tmp);
    }
    ck_assert_int_ge(passed, 718);
    arena_free(&a);
}
END_TEST

Suite *suite_aot_derive_shape(void) {
    static const TTest *tests[10];
    int n = 0;
    tests[n++] = test_views;
    tests[n++] = test_joins;
    tests[n++] = test_reductions;
    tests[n++] = test_scans;
    tests[n++] = test_indexing;
    tests[n++] = test_writes;
    tests[n++] = test_composites;
    tests[n++] = test_special_values;
    tests[n++] = test_edges;
    tests[n++] = test_recorded;
    return unit_suite("aot_derive_shape", tests, n);
}
