// aot_grads.c: joint graphs of small graphs, run and checked (aot_grads.h).
#include "tests/unit/aot_grads.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/debug/case_values.h"
#include "core/debug/cases.h"
#include "core/fx/graph.h"
#include "tests/unit/unit.h"

enum { MAX_INPUTS = 64 };

static const Graph *parsed(Arena *a, const char *text, Diag *d) {
    FxDoc doc = {.arena = a};
    bool ok = fx_parse(&doc, sym_new(a), (Str){text, strlen(text)}, "graph", d);
    return ok ? doc.at[0].graph : NULL;
}

static AotResult trace(Arena *a, const Graph *g, const bool *needs, DecompTable table, Diag *d) {
    AotRequest r = {.graph = g,
                    .arena = a,
                    .diag = d,
                    .decomps = table,
                    .keep_input_mutations = true,
                    .requires_grad = needs};
    return aot_trace_joint(&r);
}

static bool run(Arena *a, const Graph *g, RtValue *in, int n, EagerRun *out, Diag *d) {
    Generator gen;
    generator_seed(&gen, 0);
    EagerCtx c = {.arena = a, .diag = d, .threads = 1, .generator = &gen};
    *out = (EagerRun){.graph = g, .inputs = in, .n_inputs = n};
    return eager_run(&c, out);
}

static void drop_outputs(EagerRun *r) {
    for (int i = 0; i < r->n_outputs && r->outputs; i++)
        rt_drop(&r->outputs[i]);
}

// recorded cases

static const char *compare(Arena *a, const RtValue *got, const RtValue *want, double rtol,
                           double atol, const char *what, int i) {
    if (want->kind != RT_tensor)
        return want->kind == RT_none && got->kind == RT_tensor
                   ? arena_printf(a, "%s %d should be unused", what, i)
                   : NULL;
    if (got->kind != RT_tensor)
        return arena_printf(a, "%s %d is missing", what, i);
    const Tensor *x = &got->tensor, *y = &want->tensor;
    if (x->dtype != y->dtype || x->ndim != y->ndim)
        return arena_printf(a, "%s %d has another type", what, i);
    for (int k = 0; k < x->ndim; k++)
        if (x->size[k] != y->size[k])
            return arena_printf(a, "%s %d has another shape", what, i);
    TensorDiff diff = {0};
    tensor_diff(x, y, rtol, atol, &diff);
    if (!diff.bad && !diff.nan_differs)
        return NULL;
    int64_t at = diff.first_bad < 0 ? 0 : diff.first_bad;
    return arena_printf(a, "%s %d: element %lld is %.12g, expected %.12g", what, i, (long long)at,
                        tensor_get_f64(x, at), tensor_get_f64(y, at));
}

static const char *compare_all(Arena *a, const AotResult *joint, const EagerRun *got,
                               const RtValue *outputs, const RtValue *grads, const bool *needs,
                               int n_inputs) {
    const AotMeta *m = joint->meta;
    const char *wrong = NULL;
    for (int i = 0; i < outputs->n && !wrong; i++)
        wrong =
            compare(a, &got->outputs[m->n_mutated + i], &outputs->at[i], 1e-7, 1e-9, "output", i);
    int at = 0;
    for (int i = 0; i < n_inputs && !wrong; i++)
        if (needs[i])
            wrong = compare(a, &got->outputs[m->n_fwd_outputs + i], &grads->at[at++], 1e-6, 1e-8,
                            "gradient", i);
    return wrong;
}

// The graph's text with differentiable outputs that are results of their own: one that is a view of
// an input or of another output has no tangent.
static const char *own_outputs(Arena *a, const char *code, const Json *differentiable) {
    const char *ret = strstr(code, "return ["), *p = ret ? ret + strlen("return [") : "";
    Buf b = {.arena = a}, outs = {.arena = a};
    buf_add(&b, code, ret ? (size_t)(ret - code) : strlen(code));
    for (int i = 0; *p && *p != ']'; i++) {
        int len = (int)strcspn(p, ",]");
        bool own = json_bool(json_at(differentiable, i), false);
        if (own)
            buf_printf(&b, "own_%d = torch.ops.aten.add.Scalar(%.*s, 0)\n        ", i, len, p);
        buf_puts(&outs, i ? ", " : "");
        buf_puts(&outs, own ? arena_printf(a, "own_%d", i) : arena_strndup(a, p, (size_t)len));
        p += len + strspn(p + len, ", ");
    }
    if (ret)
        buf_printf(&b, "return [%s]\n", buf_str(&outs));
    return buf_str(&b);
}

static const char *check_line(Arena *a, const Json *j, DecompTable table, RtValue *values,
                              Diag *d) {
    RtValue *in = &values[0], *outputs = &values[1], *cotangents = &values[2], *grads = &values[3];
    const char *code = json_str(json_get(j, "code"), "");
    const Graph *g = parsed(a, own_outputs(a, code, json_get(j, "differentiable")), d);
    if (!g || !case_value(a, json_get(j, "inputs"), in, d) ||
        !case_value(a, json_get(j, "outputs"), outputs, d) ||
        !case_value(a, json_get(j, "cotangents"), cotangents, d) ||
        !case_value(a, json_get(j, "grads"), grads, d) || in->n > MAX_INPUTS)
        return arena_printf(a, "not read: %s", diag_first(d));
    bool needs[MAX_INPUTS] = {0};
    RtValue all[2 * MAX_INPUTS];
    for (int i = 0; i < in->n; i++)
        needs[i] = json_bool(json_at(json_get(j, "needs_grad"), i), false);
    AotResult joint = trace(a, g, needs, table, d);
    if (!joint.graph)
        return arena_printf(a, "not traced: %s", diag_first(d));
    if (!joint.meta || !joint.meta->training)
        return "no output needs a gradient";
    if (!graph_verify(joint.graph, d))
        return arena_printf(a, "broken: %s", diag_first(d));
    if (joint.meta->n_tangents != cotangents->n || in->n + cotangents->n > 2 * MAX_INPUTS)
        return arena_printf(a, "%d tangents, expected %d", joint.meta->n_tangents, cotangents->n);
    if (in->n)
        memcpy(all, in->at, (size_t)in->n * sizeof *all);
    memcpy(all + in->n, cotangents->at, (size_t)cotangents->n * sizeof *all);
    EagerRun got;
    const char *wrong = NULL;
    if (!run(a, joint.graph, all, in->n + cotangents->n, &got, d))
        wrong = arena_printf(a, "not run: %s", diag_first(d));
    else
        wrong = compare_all(a, &joint, &got, outputs, grads, needs, in->n);
    drop_outputs(&got);
    return wrong;
}

const char *check_recorded(Arena *a, Str line, DecompTable table, const char **opinfo) {
    Diag d = {.arena = a};
    RtValue values[4] = {0};
    Json *j = json_parse(a, line, "case", &d);
    *opinfo = json_str(json_get(j, "opinfo"), "?");
    const char *wrong = check_line(a, j, table, values, &d);
    for (int i = 0; i < 4; i++)
        rt_drop(&values[i]);
    return wrong;
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

// differences

// A tensor of the annotation `f64[3, 4]` with values spread over a range in no order.
static void make_input(RtValue *v, const char *annotation, double low, double high, uint64_t *seed,
                       Diag *d) {
    static const struct {
        const char *name;
        DType dtype;
    } types[] = {{"f64[", DT_f64}, {"f32[", DT_f32}, {"i64[", DT_i64}, {"b8[", DT_b8}};
    int64_t size[8];
    int ndim = 0;
    DType dtype = DT_none;
    for (int i = 0; i < COUNT(types); i++)
        if (strncmp(annotation, types[i].name, strlen(types[i].name)) == 0)
            dtype = types[i].dtype;
    ck_assert_msg(dtype != DT_none, "%s", annotation);
    for (const char *p = strchr(annotation, '[') + 1; *p && *p != ']';) {
        char *end;
        size[ndim++] = strtoll(p, &end, 10);
        p = end + strspn(end, ", ");
    }
    v->kind = RT_tensor;
    ck_assert(tensor_new(&v->tensor, dtype, ndim, size, d));
    for (int64_t i = 0; i < tensor_numel(&v->tensor); i++) {
        *seed = *seed * 6364136223846793005u + 1442695040888963407u;
        double unit = (double)(*seed >> 11) / 9007199254740992.0;
        double x = low + unit * (high - low);
        if (dtype == DT_i64 || dtype == DT_b8)
            x = dtype == DT_b8 ? (double)(unit < 0.5) : floor(x);
        tensor_set_f64(&v->tensor, i, x);
    }
}

// The sum of every float output times its weights; weights are made at first sight.
static double weighed(Arena *a, const Graph *g, RtValue *in, int n, const RtValue *weights,
                      int n_weights, Diag *d) {
    EagerRun r;
    ck_assert_msg(run(a, g, in, n, &r, d), "%s", diag_first(d));
    double sum = 0;
    int at = 0;
    for (int i = 0; i < r.n_outputs; i++) {
        const Tensor *y = &r.outputs[i].tensor;
        if (r.outputs[i].kind != RT_tensor || !dtype_is_float(y->dtype) || at == n_weights)
            continue;
        for (int64_t k = 0; k < tensor_numel(y); k++)
            sum += tensor_get_f64(y, k) * tensor_get_f64(&weights[at].tensor, k);
        at++;
    }
    drop_outputs(&r);
    return sum;
}

static void add_lines(Buf *b, const char *text, const char *end, int indent) {
    for (const char *p = text; p < end;) {
        size_t len = strcspn(p, "\n");
        buf_printf(b, "%*s%.*s\n", len ? indent : 0, "", (int)len, p);
        p += len + (p[len] != 0);
    }
}

static const char *graph_of(Arena *a, const Difference *c, int *n) {
    Buf b = {.arena = a};
    buf_puts(&b, "class G(torch.nn.Module):\n    def forward(self");
    for (*n = 0; *n < 4 && c->args[*n]; ++*n)
        buf_printf(&b, ", %c: \"%s\"", 'a' + *n, c->args[*n] + (c->args[*n][0] == '-'));
    buf_puts(&b, "):\n");
    const char *classes = strstr(c->body, "\nclass "), *end = c->body + strlen(c->body);
    add_lines(&b, c->body, classes ? classes : end, 8);
    buf_puts(&b, "        return (y,)\n");
    add_lines(&b, classes ? classes : end, end, 4);
    return buf_str(&b);
}

static void check_input(Arena *a, const Difference *c, const Graph *g, RtValue *in, int n,
                        int which, const RtValue *weights, int n_weights, const RtValue *grad,
                        Diag *d) {
    Tensor *x = &in[which].tensor;
    for (int64_t k = 0; k < tensor_numel(x); k++) {
        double at = tensor_get_f64(x, k), h = 1e-5 * fmax(1, fabs(at));
        tensor_set_f64(x, k, at + h);
        double up = weighed(a, g, in, n, weights, n_weights, d);
        tensor_set_f64(x, k, at - h);
        double down = weighed(a, g, in, n, weights, n_weights, d);
        tensor_set_f64(x, k, at);
        double want = (up - down) / (2 * h);
        double got = grad->kind == RT_tensor ? tensor_get_f64(&grad->tensor, k) : 0;
        ck_assert_msg(fabs(got - want) <= 2e-6 * fmax(1, fabs(want)),
                      "%s: gradient of %c at element %lld (%g) is %.9g, differences say %.9g",
                      c->name, 'a' + which, (long long)k, at, got, want);
    }
}

// A gradient has its tensor's type and shape.
static void check_type(const Difference *c, const Tensor *x, const RtValue *grad, int which) {
    if (grad->kind != RT_tensor)
        return;
    const Tensor *y = &grad->tensor;
    ck_assert_msg(x->dtype == y->dtype && x->ndim == y->ndim, "%s: gradient of %c has another type",
                  c->name, 'a' + which);
    for (int k = 0; k < x->ndim; k++)
        ck_assert_msg(x->size[k] == y->size[k], "%s: gradient of %c has another shape", c->name,
                      'a' + which);
}

void check_differences(const Difference *c, DecompTable table) {
    Arena a = {0};
    Diag d = {.arena = &a};
    int n = 0;
    const Graph *g = parsed(&a, graph_of(&a, c, &n), &d);
    ck_assert_msg(g != NULL, "%s: %s", c->name, diag_first(&d));
    RtValue all[8] = {0};
    bool needs[4] = {0};
    uint64_t seed = 12345;
    for (int i = 0; i < n; i++) {
        make_input(&all[i], c->args[i] + (c->args[i][0] == '-'), c->low, c->high, &seed, &d);
        needs[i] = c->args[i][0] == 'f';
    }
    AotResult joint = trace(&a, g, needs, table, &d);
    ck_assert_msg(joint.graph && graph_verify(joint.graph, &d), "%s: %s", c->name, diag_first(&d));
    ck_assert_msg(joint.meta && joint.meta->training, "%s: nothing to differentiate", c->name);
    Node **places;
    int n_places = graph_placeholders(joint.graph, &places, &a);
    ck_assert_int_le(n_places, COUNT(all));
    for (int i = n; i < n_places; i++) {
        Buf b = {.arena = &a};
        meta_print(&b, places[i]->val.tensor, false, false);
        make_input(&all[i], buf_str(&b), -1, 1, &seed, &d);
    }
    EagerRun got;
    ck_assert_msg(run(&a, joint.graph, all, n_places, &got, &d), "%s: %s", c->name, diag_first(&d));
    for (int i = 0; i < n; i++) {
        const RtValue *grad = &got.outputs[joint.meta->n_fwd_outputs + i];
        if (!needs[i])
            continue;
        check_type(c, &all[i].tensor, grad, i);
        if (all[i].tensor.dtype == DT_f64)
            check_input(&a, c, g, all, n, i, all + n, n_places - n, grad, &d);
    }
    drop_outputs(&got);
    for (int i = 0; i < n_places; i++)
        rt_drop(&all[i]);
    arena_free(&a);
}
