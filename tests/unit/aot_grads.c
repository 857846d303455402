// aot_grads.c: joint graphs of small graphs, run and checked (aot_grads.h).
#include "tests/unit/aot_grads.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/eager/eager.h"
#include "tests/unit/unit.h"

enum { MOST = 8 };

typedef struct Check {
    const GradCase *c;
    Arena a;
    Diag d;
    const char *text;         // of the graph, for messages
    const Graph *g;           // as it was written
    const char *values[MOST]; // by placeholder: what its parameter says of them; "": nothing
    bool needs[MOST];         // by placeholder
    RtValue in[MOST];         // by placeholder
    int n;                    // placeholders
    EagerRun plain;           // g's outputs
    const AotMeta *meta;      // of the first trace; NULL before it
    RtValue weights[MOST];    // by tangent
    double *want[MOST];       // by placeholder: (elements) differences; NULL: not asked for
    uint64_t dice;
} Check;

// the graph's text

static const Graph *parsed(Arena *a, const char *text, Diag *d) {
    FxDoc doc = {.arena = a};
    bool ok = fx_parse(&doc, sym_new(a), (Str){text, strlen(text)}, "graph", d);
    return ok ? doc.at[0].graph : NULL;
}

// Names of op packets are spelled out.
static void put_spelled(Buf *b, const char *text, size_t n) {
    for (size_t i = 0; i < n; i++) {
        bool starts = !i || (text[i - 1] != '.' && text[i - 1] != '_' && !isalnum(text[i - 1]));
        if (starts && n - i > 5 && !strncmp(text + i, "aten.", 5))
            buf_puts(b, "torch.ops.");
        buf_putc(b, text[i]);
    }
}

static void put_lines(Buf *b, const char *text, const char *end, int indent) {
    for (const char *p = text; p < end;) {
        size_t len = strcspn(p, "\n");
        buf_printf(b, "%*s", len ? indent : 0, "");
        put_spelled(b, p, len);
        buf_putc(b, '\n');
        p += len + (p[len] != 0);
    }
}

// `f64[2, 3]` with sizes that are the symbol's replaced; strides stay.
static void put_type(Buf *b, const char *type, size_t n, int64_t symbol) {
    bool sizes = true;
    for (size_t i = 0; i < n;) {
        size_t len = type[i] == ',' || type[i] == ' ' ? strspn(type + i, ", ") : 1;
        bool digits = i && isdigit(type[i]) && strchr("[ ", type[i - 1]);
        if (digits)
            len = strspn(type + i, "0123456789");
        if (digits && sizes && symbol && strtoll(type + i, NULL, 10) == symbol)
            buf_puts(b, "s77");
        else
            buf_add(b, type + i, len);
        sizes &= type[i] != ']';
        i += len;
    }
}

static void put_params(Check *c, Buf *b) {
    const GradCase *t = c->c;
    int n = 0;
    if (t->symbol) {
        buf_puts(b, ", s77: \"Sym(s77)\"");
        c->values[n++] = "";
    }
    for (const char *p = t->params; *p; n++) {
        size_t len = strcspn(p, ";"), name = strcspn(p, ":");
        const char *type = p + name + 2, *last = type + strcspn(type, "]") + 1;
        last += *last == '[' ? strcspn(last, "]") + 1 : 0;
        ck_assert_int_lt(n, MOST);
        bool not = *p == '-';
        c->needs[n] = !not &&(*type == 'f' || *type == 'b') && type[1] != '8';
        buf_printf(b, ", %.*s: \"", (int)name - not, p + not );
        put_type(b, type, (size_t)(last - type), t->symbol);
        buf_puts(b, "\"");
        last += strspn(last, " ");
        c->values[n] = arena_strndup(&c->a, last, (size_t)(p + len - last));
        p += len + strspn(p + len, "; ");
    }
    c->n = n;
}

static void put_results(const GradCase *t, Buf *b) {
    Buf outs = {.arena = b->arena};
    int i = 0;
    for (const char *p = t->out; *p; i++) {
        int len = (int)strcspn(p, " ");
        if (t->squared)
            buf_printf(b, "        out_%d = torch.ops.aten.mul.Tensor(%.*s, %.*s)\n", i, len, p,
                       len, p);
        if (t->squared)
            buf_printf(&outs, "out_%d, ", i);
        else
            buf_printf(&outs, "%.*s, ", len, p);
        p += len + (int)strspn(p + len, " ");
    }
    buf_printf(b, "        return (%s)\n", buf_str(&outs));
}

static void make_graph(Check *c) {
    const GradCase *t = c->c;
    Buf b = {.arena = &c->a};
    buf_puts(&b, "class G(torch.nn.Module):\n    def forward(self");
    put_params(c, &b);
    buf_puts(&b, "):\n");
    const char *end = t->body + strlen(t->body), *classes = strstr(t->body, "\nclass ");
    put_lines(&b, t->body, classes ? classes : end, 8);
    put_results(t, &b);
    put_lines(&b, classes ? classes : end, end, 4);
    c->text = buf_str(&b);
    c->g = parsed(&c->a, c->text, &c->d);
    ck_assert_msg(c->g != NULL, "%s\n%s", diag_first(&c->d), c->text);
    if (t->symbol)
        sym_set_hint(c->g->sym, sym_symbol(c->g->sym, "s77"), t->symbol);
}

// values

static double draw(Check *c) {
    c->dice = c->dice * 6364136223846793005u + 1442695040888963407u;
    return (double)(c->dice >> 11) / 9007199254740992.0;
}

// Distinct numbers, none near another or near zero: nothing changes its order under the step.
static double spread(Check *c, int64_t i, int64_t n) {
    int64_t k = (i * 7 + 3) % (n > 7 && n % 7 ? n : n + 1);
    double v = 0.35 + 1.7 * ((double)k + 0.3 * draw(c)) / ((double)n + 1);
    return draw(c) < 0.4 ? -v : v;
}

static void fill(Check *c, Tensor *x, const char *values) {
    int64_t n = tensor_numel(x);
    char *listed = (char *)values + 1;
    double low = 0, high = 0;
    if (str_starts(values, "in ")) {
        low = strtod(values + 3, &listed);
        high = strtod(listed, NULL);
    }
    for (int64_t i = 0; i < n; i++) {
        if (*values == '=')
            tensor_set_f64(x, i, strtod(listed, &listed));
        else if (low < high && x->dtype == DT_b8)
            tensor_set_f64(x, i, draw(c) < 0.5);
        else if (low < high && dtype_is_float(x->dtype))
            tensor_set_f64(x, i, low + (high - low) * draw(c));
        else if (low < high)
            tensor_set_f64(x, i, floor(low + (high - low) * draw(c)));
        else if (dtype_is_float(x->dtype))
            tensor_set_f64(x, i, spread(c, i, n));
        else
            tensor_set_f64(x, i, i % 3 != 1);
    }
}

static void make_value(Check *c, const Node *p, const char *values, RtValue *out) {
    const TensorMeta *m = node_tensor(p);
    if (!m) {
        *out = (RtValue){.kind = RT_int, .i = c->c->symbol};
        return;
    }
    int64_t size[TENSOR_DIMS], stride[TENSOR_DIMS];
    for (int i = 0; i < m->ndim; i++) {
        size[i] = sym_size_hint(c->g->sym, m->size[i], 0);
        stride[i] = sym_size_hint(c->g->sym, m->stride[i], 0);
    }
    out->kind = RT_tensor;
    ck_assert(tensor_new_strided(&out->tensor, m->dtype, m->ndim, size, stride, &c->d));
    fill(c, &out->tensor, values);
}

static void drop_all(RtValue *v, int n) {
    for (int i = 0; i < n && v; i++)
        rt_drop(&v[i]);
}

// The inputs stay as they are, also if the graph writes them.
static EagerRun run(Check *c, const Graph *g, const RtValue *in, int n) {
    RtValue copies[2 * MOST] = {0};
    for (int i = 0; i < n; i++) {
        copies[i] = in[i];
        if (in[i].kind == RT_tensor) {
            const Tensor *x = &in[i].tensor;
            copies[i] = (RtValue){.kind = RT_tensor};
            ck_assert(tensor_new_strided(&copies[i].tensor, x->dtype, x->ndim, x->size, x->stride,
                                         &c->d));
            tensor_copy(&copies[i].tensor, x);
        }
    }
    Generator gen;
    generator_seed(&gen, 3);
    EagerCtx ctx = {.arena = &c->a, .diag = &c->d, .threads = 1, .generator = &gen};
    EagerRun r = {.graph = g, .inputs = copies, .n_inputs = n};
    ck_assert_msg(eager_run(&ctx, &r), "%s\n%s", diag_first(&c->d), c->text);
    drop_all(copies, n);
    return r;
}

static void begin(Check *c, const GradCase *t) {
    *c = (Check){.c = t, .dice = 17};
    c->d.arena = &c->a;
    make_graph(c);
    Node **places;
    ck_assert_int_eq(graph_placeholders(c->g, &places, &c->a), c->n);
    for (int i = 0; i < c->n; i++)
        make_value(c, places[i], c->values[i], &c->in[i]);
    c->plain = run(c, c->g, c->in, c->n);
}

static void end(Check *c) {
    drop_all(c->plain.outputs, c->plain.n_outputs);
    drop_all(c->in, MOST);
    drop_all(c->weights, MOST);
    arena_free(&c->a);
}

// differences

static double inner(const Tensor *a, const Tensor *b) {
    double sum = 0;
    for (int64_t i = 0; i < tensor_numel(a); i++)
        sum += tensor_get_f64(a, i) * tensor_get_f64(b, i);
    return sum;
}

// The weighed sum of the outputs that have tangents.
static double loss(Check *c) {
    ArenaMark mark = arena_mark(&c->a);
    EagerRun r = run(c, c->g, c->in, c->n);
    double sum = 0;
    for (int i = 0; i < c->meta->n_tangents; i++)
        sum += inner(&r.outputs[c->meta->tangents[i] - c->meta->n_mutated].tensor,
                     &c->weights[i].tensor);
    drop_all(r.outputs, r.n_outputs);
    arena_rewind(&c->a, mark);
    return sum;
}

static double *differences(Check *c, int input) {
    Tensor *x = &c->in[input].tensor;
    int64_t n = tensor_numel(x);
    double *want = ARENA_ARRAY(&c->a, n + 1, double);
    for (int64_t i = 0; i < n; i++) {
        double was = tensor_get_f64(x, i), step = 1e-5 * fmax(1, fabs(was));
        tensor_set_f64(x, i, was + step);
        want[i] = loss(c);
        tensor_set_f64(x, i, was - step);
        want[i] = (want[i] - loss(c)) / (2 * step);
        tensor_set_f64(x, i, was);
    }
    return want;
}

// the joint graph

static AotResult trace(Arena *a, const Graph *g, const bool *needs, DecompTable table, Diag *d) {
    AotRequest r = {.graph = g,
                    .arena = a,
                    .diag = d,
                    .decomps = table,
                    .keep_input_mutations = true,
                    .requires_grad = needs};
    return aot_trace_joint(&r);
}

// The joint trace and its run. Weights of the tangents are made for the first one.
static AotResult run_joint(Check *c, DecompTable table, const double *weights, EagerRun *out) {
    AotResult r = trace(&c->a, c->g, c->needs, table, &c->d);
    ck_assert_msg(r.graph && r.meta && r.meta->training && graph_verify(r.graph, &c->d), "%s\n%s",
                  diag_first(&c->d), c->text);
    Node **places;
    int n = graph_placeholders(r.graph, &places, &c->a);
    ck_assert_int_eq(n, c->n + r.meta->n_tangents);
    ck_assert_int_le(r.meta->n_tangents, MOST);
    for (int i = 0; i < r.meta->n_tangents; i++) {
        ck_assert_int_ge(r.meta->tangents[i], r.meta->n_mutated);
        if (!c->meta)
            make_value(c, places[c->n + i], "in 0.5 1.5", &c->weights[i]);
        else
            ck_assert_int_eq(r.meta->tangents[i], c->meta->tangents[i]);
    }
    c->meta = c->meta ? c->meta : r.meta;
    for (int64_t i = 0; weights && i < tensor_numel(&c->weights[0].tensor); i++)
        tensor_set_f64(&c->weights[0].tensor, i, weights[i]);
    RtValue in[2 * MOST];
    memcpy(in, c->in, sizeof c->in);
    memcpy(in + c->n, c->weights, sizeof c->weights);
    *out = run(c, r.graph, in, n);
    ck_assert_int_eq(out->n_outputs, r.meta->n_fwd_outputs + c->n);
    return r;
}

static void check_outputs(Check *c, const AotMeta *m, const EagerRun *got) {
    for (int i = 0; i < c->plain.n_outputs; i++) {
        TensorDiff diff = {0};
        const RtValue *y = &got->outputs[m->n_mutated + i], *want = &c->plain.outputs[i];
        ck_assert_int_eq(y->kind, want->kind);
        if (want->kind != RT_tensor)
            continue;
        tensor_diff(&y->tensor, &want->tensor, 1e-12, 1e-12, &diff);
        ck_assert_msg(!diff.bad && !diff.nan_differs, "output %d differs\n%s", i, c->text);
    }
}

// A gradient has its tensor's type and shape; undefined, it is zeros.
static void check_grad(Check *c, int input, const RtValue *grad) {
    const Tensor *x = &c->in[input].tensor, *y = &grad->tensor;
    bool is_there = grad->kind == RT_tensor;
    ck_assert_msg(!is_there || (x->dtype == y->dtype && x->ndim == y->ndim &&
                                !memcmp(x->size, y->size, (size_t)x->ndim * sizeof *x->size)),
                  "gradient %d has another type or shape\n%s", input, c->text);
    if (x->dtype != DT_f64)
        return;
    if (!c->want[input])
        c->want[input] = differences(c, input);
    for (int64_t i = 0; i < tensor_numel(x); i++) {
        double got = is_there ? tensor_get_f64(y, i) : 0, want = c->want[input][i];
        ck_assert_msg(fabs(got - want) <= 1e-7 * (1 + fabs(want)),
                      "gradient %d at %d is %.9g, by differences %.9g\n%s", input, (int)i, got,
                      want, c->text);
    }
}

void grad_check(const GradCase *t) {
    static const DecompTable tables[] = {DECOMP_none, DECOMP_empty, DECOMP_core_aten,
                                         DECOMP_inductor};
    Check c;
    begin(&c, t);
    for (int k = 0; k < COUNT(tables); k++) {
        EagerRun got;
        AotResult r = run_joint(&c, tables[k], NULL, &got);
        check_outputs(&c, r.meta, &got);
        for (int i = 0; i < c.n; i++)
            if (c.needs[i])
                check_grad(&c, i, &got.outputs[r.meta->n_fwd_outputs + i]);
        drop_all(got.outputs, got.n_outputs);
    }
    end(&c);
}

void grad_expect(const GradCase *t, const double *weights, const double *want) {
    Check c;
    begin(&c, t);
    EagerRun got;
    AotResult r = run_joint(&c, DECOMP_none, weights, &got);
    const RtValue *grad = &got.outputs[r.meta->n_fwd_outputs];
    ck_assert_int_eq(grad->kind, RT_tensor);
    for (int64_t i = 0; i < tensor_numel(&c.in[0].tensor); i++)
        ck_assert_msg(fabs(tensor_get_f64(&grad->tensor, i) - want[i]) < 1e-12,
                      "element %d is %g, expected %g\n%s", (int)i, tensor_get_f64(&grad->tensor, i),
                      want[i], c.text);
    drop_all(got.outputs, got.n_outputs);
    end(&c);
}

const char *joint_text(Arena *a, const char *graph, const bool *needs, DecompTable table) {
    Diag d = {.arena = a};
    const Graph *g = parsed(a, graph, &d);
    AotResult joint = {0};
    if (g)
        joint = trace(a, g, needs, table, &d);
    ck_assert_msg(joint.graph != NULL, "%s", diag_first(&d));
    Buf b = {.arena = a};
    GRAPH_EACH (joint.graph, n)
        if (n->op == FX_call_function)
            buf_printf(&b, "%s\n", n->target);
    return buf_str(&b);
}
