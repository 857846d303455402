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
#include "core/debug/case_values.h"
#include "core/load/load.h"
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

typedef struct Row {
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
            sum += tensor_get_f64(&run.outputs[i].tensor, k) *
                   tensor_get_f64(&c->seeds[i].tensor, k);
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
    for (int i = 0; i < c.n_in; i++) {
        const RtValue *grad = &c.run.outputs[m->n_fwd_outputs + i];
        if (needs[i]) {
            double off = distance(&c, i, grad, row->body);
            ck_assert_msg(off < 2e-8, "%s: gradient of argument %d is off by %g", row->body, i,
                          off);
        }
    }
    case_end(&c);
}

static int64_t first_size(const Row *row) {
    int64_t n = strtoll(strchr(row->args, '[') + 1, NULL, 10);
    return n > 1 && !strstr(row->args, "][") ? n : 0;
}

static void check_rows(const Row *rows, int n) {
    for (int i = 0; i < n; i++) {
        check_row(&rows[i], (Symbol){0}, DECOMP_none);
        check_row(&rows[i], (Symbol){0}, DECOMP_inductor);
        if (first_size(&rows[i]))
            check_row(&rows[i], (Symbol){first_size(&rows[i])}, DECOMP_none);
    }
}

static const Row views[] = {
    {"a: f64[3, 4]", "r = aten.t.default(a)", "r"},
    {"a: f64[4]", "r = aten.t.default(a)", "r"},
    {"a: f64[2, 3, 4]", "r = aten.transpose.int(a, -1, 0)", "r"},
    {"a: f64[2, 3, 4]", "r = aten.permute.default(a, [2, -3, 1])", "r"},
    {"a: f64[2, 3, 4]", "r = aten.view.default(a, [6, -1])", "r"},
    {"a: f64[2, 3][1, 2]", "r = aten.reshape.default(a, [3, 2])", "r"},
    {"a: f64[2, 3]", "r = aten._unsafe_view.default(a, [6])", "r"},
    {"a: f64[2, 3]", "r = aten._reshape_alias.default(a, [3, 2], [2, 1])", "r"},
    {"a: f64[]", "r = aten.view.default(a, [1, 1])", "r"},
    {"a: f64[3, 1]", "r = aten.expand.default(a, [2, 3, 4])", "r"},
    {"a: f64[]", "r = aten.expand.default(a, [2, 3])", "r"},
    {"a: f64[2, 3]", "r = aten.expand.default(a, [-1, 3])", "r"},
    {"a: f64[2, 3]", "r = aten.unsqueeze.default(a, -2)", "r"},
    {"a: f64[]", "r = aten.unsqueeze.default(a, 0)", "r"},
    {"a: f64[1, 3, 1]", "r = aten.squeeze.default(a)", "r"},
    {"a: f64[1, 3, 1]", "r = aten.squeeze.dim(a, -1)", "r"},
    {"a: f64[1, 3, 1]", "r = aten.squeeze.dim(a, 1)", "r"},
    {"a: f64[1, 3, 1]", "r = aten.squeeze.dims(a, [0, -1, 1])", "r"},
    {"a: f64[]", "r = aten.squeeze.default(a)", "r"},
    {"a: f64[3, 4]", "r = aten.select.int(a, -1, -2)", "r"},
    {"a: f64[5, 4]", "r = aten.slice.Tensor(a, 0, 1, 9223372036854775807, 2)", "r"},
    {"a: f64[5, 4]", "r = aten.slice.Tensor(a, -1, -3, -1)", "r"},
    {"a: f64[5]", "r = aten.slice.Tensor(a)", "r"},
    {"a: f64[5]", "r = aten.slice.Tensor(a, 0, 3, 3)", "r"},
    {"a: f64[3, 4]", "r = aten.diagonal.default(a, 1)", "r"},
    {"a: f64[2, 3, 4]", "r = aten.diagonal.default(a, -1, 2, 0)", "r"},
    {"a: f64[7]", "r = aten.unfold.default(a, 0, 3, 2)", "r"},
    {"a: f64[2, 6]", "r = aten.unfold.default(a, -1, 3, 1)", "r"},
    {"a: f64[6]", "r = aten.narrow.default(a, 0, 2, 3)", "r"},
    {"a: f64[6]", "r = aten.narrow_copy.default(a, 0, 2, 3)", "r"},
    {"a: f64[1, 3]", "r = aten.squeeze_copy.dim(a, 0)", "r"},
    {"a: f64[3, 4]", "r = aten.select_copy.int(a, 0, 1)", "r"},
    {"a: f64[3, 4]", "r = aten.slice_copy.Tensor(a, 1, 1)", "r"},
    {"a: f64[3, 4]", "r = aten.diagonal_copy.default(a)", "r"},
    {"a: f64[3, 4]", "r = aten.view_copy.default(a, [12])", "r"},
    {"a: f64[3, 4]", "r = aten.transpose_copy.int(a, 0, 1)", "r"},
    {"a: f64[3, 4]", "r = aten.permute_copy.default(a, [1, 0])", "r"},
    {"a: f64[3, 1]", "r = aten.expand_copy.default(a, [3, 4])", "r"},
    {"a: f64[3]", "r = aten.unsqueeze_copy.default(a, 1)", "r"},
    {"a: f64[3, 4]", "r = aten.t_copy.default(a)", "r"},
    {"a: f64[7]", "r = aten.unfold_copy.default(a, 0, 2, 3)", "r"},
    // What is looked at twice counts twice; what nobody sees counts nothing.
    {"a: f64[9]", "r = aten.as_strided.default(a, [2, 3], [3, 1], 1)", "r"},
    {"a: f64[9]", "r = aten.as_strided.default(a, [3, 3], [2, 1])", "r"},
    {"a: f64[13]", "r = aten.as_strided.default(a, [3, 2], [3, 6], 0)", "r"},
    {"a: f64[9]", "r = aten.as_strided.default(a, [4, 2], [0, 1], 3)", "r"},
    {"a: f64[3, 4][1, 3]", "r = aten.as_strided.default(a, [5], [2], 1)", "r"},
    {"a: f64[9]", "r = aten.as_strided.default(a, [1, 1], [5, 7], 2)", "r"},
    {"a: f64[9]", "r = aten.as_strided_copy.default(a, [3, 3], [2, 1], 1)", "r"},
    {"a: f64[3, 4]; b: f64[4]", "r = aten.select_scatter.default(a, b, 0, -1)", "r"},
    {"a: f64[5, 2]; b: f64[2, 2]", "r = aten.slice_scatter.default(a, b, 0, 1, 4, 2)", "r"},
    {"a: f64[3, 4]; b: f64[3]", "r = aten.diagonal_scatter.default(a, b, 1)", "r"},
};

START_TEST(test_views) {
    check_rows(views, COUNT(views));
}
END_TEST

static const Row joins[] = {
    {"a: f64[5, 3]", "s = aten.split.Tensor(a, 2)\nr = s[0]\nq = s[2]", "r q"},
    {"a: f64[3, 5]", "s = aten.split.Tensor(a, 2, -1)\nr = s[1]", "r"},
    {"a: f64[3, 5]", "s = aten.split_with_sizes.default(a, [1, 3, 1], 1)\nr = s[1]\nq = s[2]", "r q"},
    {"a: f64[5]", "s = aten.unsafe_split.Tensor(a, 2)\nr = s[1]", "r"},
    {"a: f64[5]", "s = aten.split_copy.Tensor(a, 2)\nr = s[1]", "r"},
    {"a: f64[5]", "s = aten.split_with_sizes_copy.default(a, [2, 3])\nr = s[0]", "r"},
    {"a: f64[3, 2]", "s = aten.unbind.int(a)\nr = s[2]\nq = s[0]", "r q"},
    {"a: f64[3, 2]", "s = aten.unbind_copy.int(a, -1)\nr = s[1]", "r"},
    {"a: f64[7]", "s = aten.chunk.default(a, 3)\nr = s[1]", "r"},
    {"a: f64[2, 3]; b: f64[2, 1]", "r = aten.cat.default([a, b, a], -1)", "r"},
    {"a: f64[2, 3]; b: f64[0]", "r = aten.cat.default([b, a], 0)", "r"},
    {"a: f64[2, 3]; b: f64[0, 3]", "r = aten.cat.default([b, a], 0)", "r"},
    {"a: f64[2, 3]; b: f64[2, 3]", "r = aten.stack.default([a, b], -1)", "r"},
    {"a: f64[]; b: f64[]", "r = aten.stack.default([a, b])", "r"},
    {"a: f64[2, 3]; b: f64[3]; c: f64[]", "r = aten.block_diag.default([a, b, c])", "r"},
    {"a: f64[2, 3]", "r = aten.flip.default(a, [0, -1])", "r"},
    {"a: f64[2, 3]", "r = aten.roll.default(a, [1, -2], [0, 1])", "r"},
    {"a: f64[2, 3]", "r = aten.roll.default(a, 2)", "r"},
    {"a: f64[2, 3]", "r = aten.rot90.default(a)", "r"},
    {"a: f64[2, 3]", "r = aten.rot90.default(a, 2, [1, 0])", "r"},
    {"a: f64[3, 4]", "r = aten.tril.default(a, 1)", "r"},
    {"a: f64[2, 3, 4]", "r = aten.triu.default(a, -1)", "r"},
    {"a: f64[2, 3]", "r = aten.diag_embed.default(a, 1)", "r"},
    {"a: f64[3, 4]", "r = aten.trace.default(a)", "r"},
    {"a: f64[2, 3]", "r = aten.repeat.default(a, [2, 1, 3])", "r"},
    {"a: f64[2]", "r = aten.repeat.default(a, [3, 1])", "r"},
    {"a: f64[]", "r = aten.repeat.default(a, [2, 2])", "r"},
    {"a: f64[2, 3]", "r = aten.repeat.default(a, [1, 1])", "r"},
    {"a: f64[2, 3]", "r = aten.tile.default(a, [2])", "r"},
    {"a: f64[2, 3]", "r = aten.repeat_interleave.self_int(a, 2, 1)", "r"},
    {"a: f64[1, 4, 2, 2]", "r = aten.pixel_shuffle.default(a, 2)", "r"},
    {"a: f64[1, 1, 4, 4]", "r = aten.pixel_unshuffle.default(a, 2)", "r"},
    {"a: f64[1, 6, 1, 2]", "r = aten.channel_shuffle.default(a, 3)", "r"},
    {"a: f64[2, 3]", "r = aten.constant_pad_nd.default(a, [1, -1, 0, 2], 0.5)", "r"},
    {"a: f64[1, 5]", "r = aten.reflection_pad1d.default(a, [2, 1])", "r"},
    {"a: f64[1, 3, 4]", "r = aten.reflection_pad2d.default(a, [2, 1, 1, 2])", "r"},
    {"a: f64[1, 3, 2, 3]", "r = aten.reflection_pad3d.default(a, [1, 0, 0, 1, 2, 1])", "r"},
    {"a: f64[1, 5]", "r = aten.replication_pad1d.default(a, [2, 1])", "r"},
    {"a: f64[1, 3, 4]", "r = aten.replication_pad2d.default(a, [2, 1, 1, 2])", "r"},
    {"a: f64[1, 3, 2, 3]", "r = aten.replication_pad3d.default(a, [1, 0, 0, 1, 2, 1])", "r"},
};

START_TEST(test_joins) {
    check_rows(joins, COUNT(joins));
}
END_TEST

static const Row reductions[] = {
    {"a: f64[2, 3]", "r = aten.sum.default(a)", "r"},
    {"a: f64[]", "r = aten.sum.default(a)", "r"},
    {"a: f64[2, 3, 2]", "r = aten.sum.dim_IntList(a, [0, -1])", "r"},
    {"a: f64[2, 3, 2]", "r = aten.sum.dim_IntList(a, [1], True)", "r"},
    {"a: f64[2, 3]", "r = aten.sum.dim_IntList(a, [])", "r"},
    {"a: f64[2, 3]", "r = aten.sum.dim_IntList(a, None, True)", "r"},
    {"a: f64[2, 3]", "r = aten.nansum.default(a, [1])", "r"},
    {"a: f64[2, 3]", "r = aten.nansum.default(a)", "r"},
    {"a: f64[2, 3]", "r = aten.mean.default(a)", "r"},
    {"a: f64[2, 3]", "r = aten.mean.dim(a, [-2])", "r"},
    {"a: f64[2, 3]", "r = aten.mean.dim(a, [0, 1], True)", "r"},
    {"a: f64[2, 3]", "r = aten.mean.dim(a, None)", "r"},
    {"a: f64[2, 3]", "r = aten.prod.default(a)", "r"},
    {"a: f64[]", "r = aten.prod.default(a)", "r"},
    {"a: f64[1]", "r = aten.prod.default(a)", "r"},
    {"a: f64[2, 3]", "r = aten.prod.dim_int(a, -1)", "r"},
    {"a: f64[2, 3]", "r = aten.prod.dim_int(a, 0, True)", "r"},
    {"a: f64[2, 3]", "r = aten.var.correction(a)", "r"},
    {"a: f64[2, 3]", "r = aten.var.correction(a, [1])", "r"},
    {"a: f64[2, 3]", "r = aten.var.correction(a, [0, -1], correction = 0, keepdim = True)", "r"},
    {"a: f64[5]", "r = aten.var.correction(a, [0], correction = 2)", "r"},
    {"a: f64[2, 3]", "r = aten.std.correction(a, [1], correction = 0.5)", "r"},
    {"a: f64[2, 3]", "r = aten.std.correction(a)", "r"},
    {"a: f64[2, 3]", "s = aten.var_mean.correction(a, [1])\nr = s[0]\nq = s[1]", "r q"},
    {"a: f64[2, 3]", "s = aten.var_mean.correction(a, [1], keepdim = True)\nq = s[1]", "q"},
    {"a: f64[2, 3]", "s = aten.var_mean.correction(a)\nr = s[0]", "r"},
    {"a: f64[2, 3]", "s = aten.std_mean.correction(a, [0])\nr = s[0]\nq = s[1]", "r q"},
    {"a: f64[2, 3]", "s = aten.std_mean.correction(a)\nq = s[1]", "q"},
    {"a: f64[2, 3]", "r = aten.amax.default(a)", "r"},
    {"a: f64[2, 3]", "r = aten.amax.default(a, [-1])", "r"},
    {"a: f64[2, 3]", "r = aten.amin.default(a, [0, 1], True)", "r"},
    {"a: f64[]", "r = aten.amin.default(a)", "r"},
    {"a: f64[2, 3]", "r = aten.max.default(a)", "r"},
    {"a: f64[2, 3]", "r = aten.min.default(a)", "r"},
    {"a: f64[2, 3]", "r = aten.median.default(a)", "r"},
    {"a: f64[2, 3]", "r = aten.nanmedian.default(a)", "r"},
    {"a: f64[2, 3]", "s = aten.max.dim(a, 1)\nr = s[0]", "r"},
    {"a: f64[2, 3]", "s = aten.min.dim(a, -2, True)\nr = s[0]", "r"},
    {"a: f64[]", "s = aten.max.dim(a, 0)\nr = s[0]", "r"},
    {"a: f64[2, 3]", "s = aten.median.dim(a, 1)\nr = s[0]", "r"},
    {"a: f64[2, 3]", "s = aten.nanmedian.dim(a, 1, True)\nr = s[0]", "r"},
    {"a: f64[2, 3]", "r = aten.norm.Scalar(a)", "r"},
    {"a: f64[2, 3]", "r = aten.norm.Scalar(a, 1)", "r"},
    {"a: f64[2, 3]", "r = aten.norm.ScalarOpt_dim(a, 3, [1])", "r"},
    {"a: f64[2, 3]", "r = aten.norm.ScalarOpt_dim(a, None, [1], True)", "r"},
    {"a: f64[2, 3]", "r = aten.norm.ScalarOpt_dtype(a, 2, dtype = torch.float64)", "r"},
    {"a: f64[2, 3]", "r = aten.norm.ScalarOpt_dim_dtype(a, 2, [0], False, dtype = torch.float64)", "r"},
    {"a: f64[2, 3]", "r = aten.linalg_vector_norm.default(a)", "r"},
    {"a: f64[2, 3]", "r = aten.linalg_vector_norm.default(a, 0.5, [1])", "r"},
    {"a: f64[2, 3]", "r = aten.linalg_vector_norm.default(a, 1.5, [-1], True)", "r"},
    {"a: f64[2, 3]", "r = aten.linalg_vector_norm.default(a, inf, [1])", "r"},
    {"a: f64[2, 3]", "r = aten.linalg_vector_norm.default(a, -inf)", "r"},
    {"a: f64[2, 3]", "r = aten.linalg_vector_norm.default(a, 4, [0, 1])", "r"},
    {"a: f64[]", "r = aten.linalg_vector_norm.default(a)", "r"},
    {"a: f64[2, 3]; b: f64[2, 3]", "r = aten.dist.default(a, b)", "r"},
    {"a: f64[2, 3]; b: f64[3]", "r = aten.dist.default(a, b, 3)", "r"},
    {"a: f64[3, 4]", "r = aten.renorm.default(a, 2, 0, 1.0)", "r"},
    {"a: f64[3, 4]", "r = aten.renorm.default(a, 3, -1, 1.5)", "r"},
    {"a: f64[2, 3]", "r = aten.logsumexp.default(a, [1])", "r"},
    {"a: f64[2, 3]", "r = aten.logsumexp.default(a, [0, -1], True)", "r"},
    {"a: f64[2, 3]", "r = aten._softmax.default(a, -1, False)", "r"},
    {"a: f64[2, 3]", "r = aten._log_softmax.default(a, 0, False)", "r"},
    {"a: f64[2, 3]", "r = aten._safe_softmax.default(a, 1)", "r"},
    {"a: f64[2, 3]; b: f64[2, 3]", "r = aten._softmax_backward_data.default(a, b, 1, torch.float64)", "r"},
    {"a: f64[2, 3]; b: f64[2, 3]", "r = aten._log_softmax_backward_data.default(a, b, 0, torch.float64)", "r"},
};

START_TEST(test_reductions) {
    check_rows(reductions, COUNT(reductions));
}
END_TEST

static const Row scans[] = {
    {"a: f64[2, 3]", "r = aten.cumsum.default(a, -1)", "r"},
    {"a: f64[]", "r = aten.cumsum.default(a, 0)", "r"},
    {"a: f64[1, 3]", "r = aten.cumsum.default(a, 0)", "r"},
    {"a: f64[2, 4]", "r = aten.cumprod.default(a, 1)", "r"},
    {"a: f64[3]", "r = aten.cumprod.default(a, -1)", "r"},
    {"a: f64[]", "r = aten.cumprod.default(a, 0)", "r"},
    {"a: f64[2, 3]", "r = aten.logcumsumexp.default(a, 1)", "r"},
    {"a: f64[]", "r = aten.logcumsumexp.default(a, 0)", "r"},
    {"a: f64[2, 4]", "s = aten.cummax.default(a, 1)\nr = s[0]", "r"},
    {"a: f64[2, 4]", "s = aten.cummin.default(a, -2)\nr = s[0]", "r"},
    {"a: f64[2, 4]", "s = aten.sort.default(a)\nr = s[0]", "r"},
    {"a: f64[2, 4]", "s = aten.sort.stable(a, stable = True, dim = 0, descending = True)\nr = s[0]", "r"},
    {"a: f64[]", "s = aten.sort.default(a)\nr = s[0]", "r"},
    {"a: f64[2, 4]", "s = aten.topk.default(a, 2)\nr = s[0]", "r"},
    {"a: f64[4, 2]", "s = aten.topk.default(a, 3, 0, False)\nr = s[0]", "r"},
    {"a: f64[2, 4]", "s = aten.kthvalue.default(a, 2)\nr = s[0]", "r"},
    {"a: f64[2, 4]", "s = aten.kthvalue.default(a, 1, 0, True)\nr = s[0]", "r"},
    {"a: f64[2, 4]", "r = aten.msort.default(a)", "r"},
};

START_TEST(test_scans) {
    check_rows(scans, COUNT(scans));
}
END_TEST

static const Row indexing[] = {
    {"a: f64[4, 3]; i: i64[3] = 0 2 2", "r = aten.index.Tensor(a, [i])", "r"},
    {"a: f64[4, 3]; i: i64[2] = 0 -1", "r = aten.index.Tensor(a, [None, i])", "r"},
    {"a: f64[4, 3]; i: i64[2] = 0 1; j: i64[2] = 2 2", "r = aten.index.Tensor(a, [i, j])", "r"},
    {"a: f64[4, 3]; i: i64[3] = 0 2 2", "r = aten._unsafe_index.Tensor(a, [i])", "r"},
    {"a: f64[4]; m: b8[3]; i: i64[3] = 0 2 2", "r = aten._unsafe_masked_index.default(a, m, [i], 0.5)", "r"},
    {"a: f64[4]; m: b8[3]; i: i64[3] = 0 2 2; v: f64[3]",
     "r = aten._unsafe_masked_index_put_accumulate.default(a, m, [i], v)", "r"},
    {"a: f64[4, 3]; i: i64[2] = 0 2; v: f64[2, 3]", "r = aten.index_put.default(a, [i], v)", "r"},
    {"a: f64[4, 3]; i: i64[2] = 2 2; v: f64[3]", "r = aten.index_put.default(a, [i], v, True)", "r"},
    {"a: f64[4, 3]; i: i64[2] = 0 2; v: f64[]", "r = aten._unsafe_index_put.default(a, [i], v)", "r"},
    {"a: f64[4, 3]; i: i64[3] = 0 2 2", "r = aten.index_select.default(a, 0, i)", "r"},
    {"a: f64[2, 3]; i: i64[2] = 2 0", "r = aten.index_select.default(a, -1, i)", "r"},
    {"a: f64[4, 3]; i: i64[2] = 1 1; v: f64[2, 3]", "r = aten.index_add.default(a, 0, i, v)", "r"},
    {"a: f64[4]; i: i64[2] = 1 3; v: f64[2]", "r = aten.index_add.default(a, 0, i, v, alpha = 2)", "r"},
    {"a: f64[4, 3]; i: i64[2] = 1 3; v: f64[2, 3]", "r = aten.index_copy.default(a, 0, i, v)", "r"},
    {"a: f64[4, 3]; i: i64[2] = 1 3", "r = aten.index_fill.int_Scalar(a, 0, i, 0.5)", "r"},
    {"a: f64[4, 3]; i: i64[4, 2] = 0 2 1 1 2 0 0 0", "r = aten.gather.default(a, 1, i)", "r"},
    {"a: f64[4, 3]; i: i64[2, 3] = 0 1 3 2 2 1; v: f64[2, 3]", "r = aten.scatter.src(a, 0, i, v)", "r"},
    {"a: f64[4, 3]; i: i64[2, 3] = 0 1 3 2 2 1", "r = aten.scatter.value(a, 0, i, 0.5)", "r"},
    {"a: f64[4, 3]; i: i64[2, 3] = 0 1 3 0 2 3; v: f64[2, 3]",
     "r = aten.scatter_add.default(a, 0, i, v)", "r"},
    {"a: f64[4]; i: i64[3] = 0 2 0; v: f64[3]", "r = aten.scatter_reduce.two(a, 0, i, v, 'sum')", "r"},
    {"a: f64[4]; i: i64[3] = 0 2 0; v: f64[3]", "r = aten.scatter_reduce.two(a, 0, i, v, 'mean')", "r"},
    {"a: f64[4]; i: i64[3] = 0 2 0; v: f64[3]", "r = aten.scatter_reduce.two(a, 0, i, v, 'prod')", "r"},
    {"a: f64[4]; i: i64[3] = 0 2 0; v: f64[3]", "r = aten.scatter_reduce.two(a, 0, i, v, 'amax')", "r"},
    {"a: f64[4]; i: i64[3] = 0 2 0; v: f64[3]",
     "r = aten.scatter_reduce.two(a, 0, i, v, 'amin', include_self = False)", "r"},
    {"a: f64[4]; i: i64[3] = 0 2 0; v: f64[3]",
     "r = aten.scatter_reduce.two(a, 0, i, v, 'mean', include_self = False)", "r"},
    {"a: f64[4, 2]; i: i64[3] = 0 2 0; v: f64[3, 2]",
     "r = aten.index_reduce.default(a, 0, i, v, 'prod')", "r"},
    {"a: f64[4, 2]; i: i64[3] = 0 2 0; v: f64[3, 2]",
     "r = aten.index_reduce.default(a, 0, i, v, 'mean')", "r"},
    {"a: f64[4, 2]; i: i64[3] = 0 2 0; v: f64[3, 2]",
     "r = aten.index_reduce.default(a, 0, i, v, 'amax', include_self = False)", "r"},
    {"a: f64[4, 2]; i: i64[3] = 0 2 0; v: f64[3, 2]",
     "r = aten.index_reduce.default(a, 0, i, v, 'amin')", "r"},
    {"a: f64[2, 3]; i: i64[3] = 0 4 4", "r = aten.take.default(a, i)", "r"},
    {"a: f64[2, 3]; i: i64[2] = 0 4; v: f64[2]", "r = aten.put.default(a, i, v)", "r"},
    {"a: f64[2, 3]; i: i64[2] = 4 4; v: f64[2]", "r = aten.put.default(a, i, v, True)", "r"},
    {"a: f64[2, 3]; i: i64[2, 1] = 2 0", "r = aten.take_along_dim.default(a, i, 1)", "r"},
    {"a: f64[5, 2]; i: i64[2, 3] = 0 4 4 1 0 3", "r = aten.embedding.default(a, i)", "r"},
    {"a: f64[5, 2]; i: i64[5] = 0 4 4 1 0; o: i64[3] = 0 2 2; w: f64[5]",
     "s = aten.embedding_bag.padding_idx(a, i, o, False, 0, False, w, False, None)\nr = s[0]", "r"},
    {"a: f64[5, 2]; i: i64[5] = 0 4 4 1 0; o: i64[2] = 0 2",
     "s = aten.embedding_bag.padding_idx(a, i, o, False, 1, False, None, False, 4)\nr = s[0]", "r"},
    {"a: f64[5, 2]; i: i64[5] = 0 4 4 1 0; o: i64[3] = 0 2 5",
     "s = aten._embedding_bag.default(a, i, o, False, 2, False, None, True)\nr = s[0]", "r"},
    {"a: f64[5]; i: i64[3] = 2 0 3", "r = aten.segment_reduce.default(a, 'sum', lengths = i)", "r"},
    {"a: f64[5, 2]; i: i64[3] = 0 2 5",
     "r = aten.segment_reduce.default(a, 'mean', offsets = i)", "r"},
    {"a: f64[5]; i: i64[2] = 2 3", "r = aten.segment_reduce.default(a, 'max', lengths = i)", "r"},
    {"a: f64[2, 3]; i: i64[2, 2] = 2 1 0 3",
     "r = aten.segment_reduce.default(a, 'min', lengths = i, axis = 1, initial = 9)", "r"},
    {"a: f64[5]; i: i64[2] = 2 3",
     "r = aten.segment_reduce.default(a, 'prod', lengths = i, initial = 2)", "r"},
};

START_TEST(test_indexing) {
    check_rows(indexing, COUNT(indexing));
}
END_TEST

// An in-place form uses the row of its functional form; what its formula reads of the tensor that
// it overwrites was copied before.
static const Row writes[] = {
    {"a: f64[2, 3]", "x = aten.mul.Scalar(a, 2)\nr = aten.cumprod_.default(x, 1)", "r"},
    {"a: f64[2, 3]", "x = aten.mul.Scalar(a, 2)\nr = aten.cumsum_.default(x, 0)", "r"},
    {"a: f64[3, 4]", "x = aten.mul.Scalar(a, 2)\nr = aten.renorm_.default(x, 2, 0, 1.0)", "r"},
    {"a: f64[3, 4]", "x = aten.mul.Scalar(a, 2)\nr = aten.tril_.default(x)", "r"},
    {"a: f64[1, 3]", "x = aten.mul.Scalar(a, 2)\nr = aten.squeeze_.dim(x, 0)", "r"},
    {"a: f64[1, 3]", "x = aten.mul.Scalar(a, 2)\nr = aten.transpose_.default(x, 0, 1)", "r"},
    {"a: f64[3]", "x = aten.mul.Scalar(a, 2)\nr = aten.unsqueeze_.default(x, 0)", "r"},
    {"a: f64[4]; i: i64[2] = 0 2; v: f64[2]",
     "x = aten.mul.Scalar(a, 2)\nr = aten.index_put_.default(x, [i], v)", "r"},
    {"a: f64[4]; i: i64[2] = 0 2; v: f64[2]",
     "x = aten.mul.Scalar(a, 2)\nr = aten.index_add_.default(x, 0, i, v)", "r"},
    {"a: f64[4]; i: i64[2] = 0 2",
     "x = aten.mul.Scalar(a, 2)\nr = aten.index_fill_.int_Scalar(x, 0, i, 3.0)", "r"},
    {"a: f64[4]; i: i64[3] = 0 2 0; v: f64[3]",
     "x = aten.mul.Scalar(a, 2)\nr = aten.scatter_reduce_.two(x, 0, i, v, 'prod')", "r"},
    {"a: f64[4, 2]; i: i64[3] = 0 2 0; v: f64[3, 2]",
     "x = aten.mul.Scalar(a, 2)\nr = aten.index_reduce_.default(x, 0, i, v, 'amax')", "r"},
    {"a: f64[4]; i: i64[2] = 0 2; v: f64[2]",
     "x = aten.mul.Scalar(a, 2)\nr = aten.scatter_.src(x, 0, i, v)", "r"},
    {"a: f64[4]; i: i64[2] = 0 2; v: f64[2]",
     "x = aten.mul.Scalar(a, 2)\nr = aten.put_.default(x, i, v)", "r"},
    // through views of what was written
    {"a: f64[3, 4]; b: f64[4]",
     "x = aten.mul.Scalar(a, 2)\nv = aten.select.int(x, 0, 1)\nw = aten.mul_.Tensor(v, b)", "x v"},
    {"a: f64[5]; b: f64[2]",
     "x = aten.mul.Scalar(a, 2)\nv = aten.as_strided.default(x, [2], [2], 1)\n"
     "w = aten.copy_.default(v, b)", "x"},
    {"a: f64[3, 3]; b: f64[3]",
     "x = aten.mul.Scalar(a, 2)\nv = aten.diagonal.default(x)\nw = aten.add_.Tensor(v, b)", "x"},
};

START_TEST(test_writes) {
    check_rows(writes, COUNT(writes));
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
    Row amax = {"a: f64[4]", "r = aten.amax.default(a)", "r"};
    check_values(&amax, (double[]){3, 1, 3, 2}, (double[]){1}, (double[]){3, 0, 3, 0});
    Row max = {"a: f64[4]", "r = aten.max.default(a)", "r"};
    check_values(&max, (double[]){3, 3, 3, 2}, (double[]){1}, (double[]){2, 2, 2, 0});
    Row prod = {"a: f64[3]", "p = aten.prod.default(a)\nr = aten.add.Scalar(p, 1)", "r"};
    check_values(&prod, (double[]){2, 0, 5}, (double[]){1}, (double[]){0, 20, 0});
    Row cumprod = {"a: f64[3]", "p = aten.cumprod.default(a, 0)\nr = aten.add.Scalar(p, 1)", "r"};
    check_values(&cumprod, (double[]){2, 0, 5}, (double[]){1, 1, 1}, (double[]){6, 24, 0});
    Row norm = {"a: f64[2]", "p = aten.linalg_vector_norm.default(a)\nr = aten.add.Scalar(p, 1)", "r"};
    check_values(&norm, (double[]){0, 0}, (double[]){1}, (double[]){0, 0});
    // One place that the input shows three times: the gradient is shared out among them.
    Row strided = {"a: f64[2]", "e = aten.expand.default(a, [3, 2])\n"
                                "r = aten.as_strided.default(e, [2], [1])", "r"};
    check_values(&strided, (double[]){2, 3}, (double[]){1, 1}, (double[]){4, 6});
    Row mode = {"a: f64[4]", "s = aten.mode.default(a)\nr = s[0]", "r"};
    check_values(&mode, (double[]){1, 2, 2, 3}, (double[]){1}, (double[]){0, 0, 4, 0});
    Row padding = {"a: f64[3, 1]; i: i64[3] = 0 1 1", "r = aten.embedding.default(a, i, 1)", "r"};
    check_values(&padding, (double[]){1, 2, 3}, (double[]){1, 1, 1}, (double[]){2, 0, 0});
}
END_TEST

// Empty tensors, and arguments that nothing depends on.
START_TEST(test_edges) {
    static const Row rows[] = {
        {"a: f64[0, 3]", "r = aten.sum.dim_IntList(a, [0])", "r"},
        {"a: f64[0, 3]", "r = aten.cumsum.default(a, 0)", "r"},
        {"a: f64[0]", "r = aten.prod.default(a)", "r"},
        {"a: f64[2, 0]", "r = aten.cat.default([a, a])", "r"},
        {"a: f64[0]", "s = aten.sort.default(a)\nr = s[0]", "r"},
        {"a: f64[0, 2]", "r = aten.repeat.default(a, [2, 1])", "r"},
        {"a: f64[3]", "r = aten.repeat.default(a, [0])", "r"},
        {"a: f64[3]; i: i64[0] =", "r = aten.index.Tensor(a, [i])", "r"},
        {"a: f64[3]", "r = aten.as_strided.default(a, [0, 2], [1, 1])", "r"},
        {"a: f64[3]; b: f64[3]", "s = aten.detach.default(b)\nr = aten.mul.Tensor(a, s)", "r"},
    };
    for (int i = 0; i < COUNT(rows) - 1; i++)
        check_row(&rows[i], (Symbol){0}, DECOMP_none);
}
END_TEST

// recorded gradients

// The graph's text with results that are used nowhere else in place of the outputs: an output that
// is a view of an input has no gradient slot of its own.
static const char *detached_outputs(Arena *a, const char *code, const Json *differentiable) {
    const char *ret = strstr(code, "return ["), *p = ret + strlen("return [");
    Buf b = {.arena = a}, outs = {.arena = a};
    buf_add(&b, code, (size_t)(ret - code));
    for (int i = 0; *p && *p != ']'; i++) {
        size_t len = strcspn(p, ",]");
        bool own = json_bool(json_at(differentiable, i), false);
        if (own)
            buf_printf(&b, "own_%d = torch.ops.aten.add.Scalar(%.*s, 0)\n        ", i, (int)len, p);
        buf_puts(&outs, i ? ", " : "");
        buf_puts(&outs, own ? arena_printf(a, "own_%d", i) : "None");
        p += len + strspn(p + len, ", ");
    }
    buf_printf(&b, "return [%s]\n", buf_str(&outs));
    return buf_str(&b);
}

static bool same(const RtValue *got, const RtValue *want) {
    TensorDiff diff = {0};
    const Tensor *x = &got->tensor, *y = &want->tensor;
    if (want->kind != RT_tensor) // unused: zeros are as right
        return true;
    if (got->kind != RT_tensor) {
        for (int64_t k = 0; k < tensor_numel(y); k++)
            if (tensor_get_f64(y, k) != 0)
                return false;
        return true;
    }
    if (x->dtype != y->dtype || x->ndim != y->ndim)
        return false;
    for (int k = 0; k < x->ndim; k++)
        if (x->size[k] != y->size[k])
            return false;
    tensor_diff(x, y, 1e-7, 1e-8, &diff);
    return !diff.bad && !diff.nan_differs;
}

typedef enum Outcome { PASSED, FAILED, SKIPPED } Outcome;

static Outcome recorded(Case *c, const Json *j) {
    RtValue in = {0}, seeds = {0}, want = {0};
    bool needs[MAX_ARGS] = {false};
    const Json *diffs = json_get(j, "differentiable");
    const char *code = detached_outputs(&c->a, json_str(json_get(j, "code"), ""), diffs);
    if (!case_value(&c->a, json_get(j, "inputs"), &in, &c->d) || in.n > MAX_ARGS ||
        !case_value(&c->a, json_get(j, "cotangents"), &seeds, &c->d) || seeds.n > MAX_ARGS ||
        !case_value(&c->a, json_get(j, "grads"), &want, &c->d) || !parse(c, code))
        return SKIPPED;
    for (int i = 0; i < in.n; i++) {
        c->in[c->n_in++] = in.at[i];
        needs[i] = json_bool(json_at(json_get(j, "needs_grad"), i), false);
    }
    for (int i = 0; i < seeds.n; i++)
        c->seeds[i] = seeds.at[i];
    if (!trace(c, needs, DECOMP_none) || c->joint.meta->n_tangents != seeds.n)
        return SKIPPED;
    Outcome out = run_joint(c, seeds.n) ? PASSED : FAILED;
    for (int i = 0, k = 0; i < c->n_in && out == PASSED; i++)
        if (needs[i] && !same(&c->run.outputs[c->joint.meta->n_fwd_outputs + i], &want.at[k++]))
            out = FAILED;
    rt_drop(&want);
    return out;
}

START_TEST(test_recorded) {
    const char *path = "../shared/opcases/grads.jsonl";
    Arena a = {0};
    Diag d = {.arena = &a};
    int count[3] = {0};
    if (!file_exists(path))
        return;
    Str text = file_read(&a, path, &d);
    for (size_t at = 0; at < text.len;) {
        const char *end = memchr(text.ptr + at, '\n', text.len - at);
        size_t len = end ? (size_t)(end - text.ptr) - at : text.len - at;
        Case c = {0};
        c.d.arena = &c.a;
        Json *j = json_parse(&c.a, (Str){text.ptr + at, len}, "case", &c.d);
        Outcome o = recorded(&c, j);
        count[o]++;
        if (o != PASSED && getenv("FX_REPORT"))
            printf("%s %s: %s\n", o == FAILED ? "failed" : "skipped",
                   json_str(json_get(j, "opinfo"), ""), diag_first(&c.d));
        case_end(&c);
        at += len + 1;
    }
    if (getenv("FX_REPORT"))
        printf("%d passed, %d failed, %d skipped\n", count[PASSED], count[FAILED], count[SKIPPED]);
    ck_assert_int_ge(count[PASSED], 300);
    arena_free(&a);
}
END_TEST

Suite *suite_aot_derive_shape(void) {
    static const TTest *tests[9];
    int n = 0;
    tests[n++] = test_views;
    tests[n++] = test_joins;
    tests[n++] = test_reductions;
    tests[n++] = test_scans;
    tests[n++] = test_indexing;
    tests[n++] = test_writes;
    tests[n++] = test_special_values;
    tests[n++] = test_edges;
    tests[n++] = test_recorded;
    return unit_suite("aot_derive_shape", tests, n);
}
