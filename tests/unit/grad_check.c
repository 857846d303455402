// grad_check.c: see grad_check.h. The graph as it was written is run for the differences, so that
// they know nothing of the tracer.
#include "tests/unit/grad_check.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/aot/aot.h"
#include "core/eager/eager.h"
#include "tests/unit/unit.h"

enum { MOST = 16 };
static const double step = 1e-6;

typedef struct Check {
    Arena a;
    Diag d;
    const char *what; // the graph's text, for messages
    const Graph *g;
    RtValue in[MOST]; // by placeholder
    bool needs[MOST]; // by placeholder
    int n;
    uint64_t random;
} Check;

static void add_body(Buf *b, const char *body) {
    for (const char *p = body; *p; p++) {
        if (p == body || p[-1] == '\n')
            buf_printf(b, "        ");
        bool aten = p[0] == 'A' && p[1] == '.' && (p == body || strchr(" (=[", p[-1]));
        if (aten)
            buf_printf(b, "torch.ops.aten");
        else
            buf_putc(b, *p);
    }
}

static void parse(Check *c, const GradCase *t) {
    Buf b = {.arena = &c->a};
    buf_printf(&b, "class <lambda>(torch.nn.Module):\n    def forward(self");
    for (const char *p = t->params; *p;) {
        while (*p == ' ' || *p == ';')
            p++;
        const char *space = strchr(p, ' '), *end = strchr(p, ';');
        end = end ? end : p + strlen(p);
        buf_printf(&b, ", %.*s: \"%.*scpu\"", (int)(space - p), p, (int)(end - space - 1),
                   space + 1);
        p = end;
    }
    buf_printf(&b, "):\n");
    add_body(&b, t->body);
    c->what = buf_str(&b);
    FxDoc doc = {.arena = &c->a};
    Str s = {c->what, b.len};
    ck_assert_msg(fx_parse(&doc, sym_new(&c->a), s, "test", &c->d), "%s\n%s", diag_first(&c->d),
                  c->what);
    c->g = doc.at[0].graph;
}

static double uniform(Check *c) {
    c->random = c->random * 6364136223846793005u + 1442695040888963407u;
    return (double)(c->random >> 11) / 9007199254740992.0;
}

static void make_input(Check *c, const Node *p, RtValue *out) {
    const TensorMeta *m = node_tensor(p);
    ck_assert_msg(m != NULL, "%s is no tensor", p->target);
    int64_t size[TENSOR_DIMS], stride[TENSOR_DIMS];
    for (int i = 0; i < m->ndim; i++) {
        size[i] = expr_int_or(m->size[i], 0);
        stride[i] = expr_int_or(m->stride[i], 0);
    }
    out->kind = RT_tensor;
    ck_assert(tensor_new_strided(&out->tensor, m->dtype, m->ndim, size, stride, &c->d));
    size_t len = strcspn(p->target, "0123456789");
    int64_t below = p->target[len] ? atoi(p->target + len) : 2;
    bool positive = strncmp(p->target, "pos", 3) == 0;
    for (int64_t i = 0; i < tensor_numel(&out->tensor); i++) {
        double u = uniform(c);
        if (dtype_is_float(m->dtype))
            tensor_set_f64(&out->tensor, i, positive ? 0.5 + u : 2 * u - 1);
        else
            tensor_set_i64(&out->tensor, i, (int64_t)(u * (double)below));
    }
}

static void begin(Check *c, const GradCase *t) {
    *c = (Check){.random = 7};
    c->d.arena = &c->a;
    parse(c, t);
    GRAPH_EACH (c->g, p) {
        if (p->op != FX_placeholder)
            continue;
        ck_assert_int_lt(c->n, MOST);
        make_input(c, p, &c->in[c->n]);
        bool is_f64 = node_tensor(p)->dtype == DT_f64;
        c->needs[c->n] = t->needs ? t->needs[c->n] == '1' : is_f64;
        c->n++;
    }
}

static void end(Check *c) {
    for (int i = 0; i < c->n; i++)
        rt_drop(&c->in[i]);
    arena_free(&c->a);
}

// The inputs stay as they are, also if the graph writes them.
static EagerRun run(Check *c, const Graph *g, const RtValue *in, int n) {
    RtValue *copies = ARENA_ARRAY(&c->a, n + 1, RtValue);
    for (int i = 0; i < n; i++) {
        const Tensor *from = &in[i].tensor;
        copies[i].kind = RT_tensor;
        ck_assert(tensor_new_strided(&copies[i].tensor, from->dtype, from->ndim, from->size,
                                     from->stride, &c->d));
        tensor_copy(&copies[i].tensor, from);
    }
    Generator *gen = ARENA_NEW(&c->a, Generator);
    generator_seed(gen, 3);
    EagerCtx ctx = {.arena = &c->a, .diag = &c->d, .threads = 1, .generator = gen};
    EagerRun r = {.graph = g, .inputs = copies, .n_inputs = n};
    Buf text = {.arena = &c->a};
    graph_print(&text, g, &fx_style_code, NULL);
    ck_assert_msg(eager_run(&ctx, &r), "%s\n%s", diag_first(&c->d), buf_str(&text));
    for (int i = 0; i < n; i++)
        rt_drop(&copies[i]);
    return r;
}

static void drop_outputs(EagerRun *r) {
    for (int i = 0; i < r->n_outputs; i++)
        rt_drop(&r->outputs[i]);
}

static AotResult joint(Check *c, DecompTable table) {
    AotRequest req = {.graph = c->g,
                      .arena = &c->a,
                      .diag = &c->d,
                      .decomps = table,
                      .keep_input_mutations = true,
                      .requires_grad = c->needs};
    AotResult r = aot_trace_joint(&req);
    ck_assert_msg(r.graph && r.meta && graph_verify(r.graph, &c->d), "%s\n%s", diag_first(&c->d),
                  c->what);
    return r;
}

static double inner(const Tensor *a, const Tensor *b) {
    double sum = 0;
    for (int64_t i = 0; i < tensor_numel(a); i++)
        sum += tensor_get_f64(a, i) * tensor_get_f64(b, i);
    return sum;
}

// The weighted sum of the outputs that have tangents.
static double loss(Check *c, const AotMeta *m, const RtValue *tangents) {
    EagerRun r = run(c, c->g, c->in, c->n);
    double sum = 0;
    for (int i = 0; i < m->n_tangents; i++)
        sum += inner(&r.outputs[m->tangents[i] - m->n_mutated].tensor, &tangents[i].tensor);
    drop_outputs(&r);
    return sum;
}

static void check_grad(Check *c, const AotMeta *m, int input, const RtValue *got,
                       const RtValue *tangents, const GradCase *t) {
    Tensor *x = &c->in[input].tensor;
    int64_t n = tensor_numel(x);
    double *want = ARENA_ARRAY(&c->a, n + 1, double), most = 1;
    for (int64_t i = 0; i < n; i++) {
        double was = tensor_get_f64(x, i);
        tensor_set_f64(x, i, was + step);
        want[i] = loss(c, m, tangents);
        tensor_set_f64(x, i, was - step);
        want[i] = (want[i] - loss(c, m, tangents)) / (2 * step);
        tensor_set_f64(x, i, was);
        most = fmax(most, fabs(want[i]));
    }
    double room = (t->tolerance > 0 ? t->tolerance : 1e-6) * most;
    ck_assert_msg(got->kind == RT_none || tensor_numel(&got->tensor) == n,
                  "gradient %d has %d elements\n%s", input, (int)tensor_numel(&got->tensor),
                  c->what);
    for (int64_t i = 0; i < n; i++) {
        double g = got->kind == RT_none ? 0 : tensor_get_f64(&got->tensor, i);
        ck_assert_msg(fabs(g - want[i]) <= room,
                      "gradient %d at %d is %.9g, by differences %.9g\n%s", input, (int)i, g,
                      want[i], c->what);
    }
}

static void check_table(Check *c, DecompTable table, const GradCase *t) {
    AotResult r = joint(c, table);
    RtValue in[2 * MOST] = {0};
    memcpy(in, c->in, sizeof c->in);
    int n = 0;
    GRAPH_EACH (r.graph, p)
        if (p->op == FX_placeholder && n++ >= c->n)
            make_input(c, p, &in[n - 1]);
    ck_assert_int_eq(n, c->n + r.meta->n_tangents);
    EagerRun out = run(c, r.graph, in, n);
    ck_assert_int_eq(out.n_outputs, r.meta->n_fwd_outputs + c->n);
    for (int i = 0; i < c->n; i++)
        if (c->needs[i])
            check_grad(c, r.meta, i, &out.outputs[r.meta->n_fwd_outputs + i], in + c->n, t);
    drop_outputs(&out);
    for (int i = c->n; i < n; i++)
        rt_drop(&in[i]);
}

void grad_check(const GradCase *t) {
    static const DecompTable tables[] = {DECOMP_none, DECOMP_core_aten, DECOMP_inductor};
    Check c;
    begin(&c, t);
    for (int i = 0; i < COUNT(tables); i++)
        check_table(&c, tables[i], t);
    end(&c);
}

const char *grad_ops(Arena *a, const GradCase *t) {
    Check c;
    begin(&c, t);
    AotResult r = joint(&c, DECOMP_none);
    Buf b = {.arena = a};
    GRAPH_EACH (r.graph, n)
        if (n->def && !node_is(n, OP_operator_getitem))
            buf_printf(&b, "%s%s", b.len ? " " : "", n->def->name);
    end(&c);
    return buf_str(&b);
}
