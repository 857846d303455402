// aot_decomp.c: decompositions against the reference kernels of the ops that they replace, which
// know nothing of them: recorded cases, random inputs with special values among them, empty and
// 0-d tensors; and sequences of calls as PyTorch's joint graphs show them.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/aot/trace.h"
#include "core/base/file.h"
#include "core/debug/case_values.h"
#include "core/debug/cases.h"
#include "core/eager/eager.h"
#include "tests/unit/unit.h"

static bool seen[OP_count]; // rules that a test has run

static AotResult trace(Arena *a, const Graph *g, DecompTable table, Diag *d) {
    AotRequest r = {
        .graph = g, .arena = a, .diag = d, .decomps = table, .keep_input_mutations = true};
    return aot_trace_inference(&r);
}

static bool run(Arena *a, const Graph *g, RtValue *in, int n, EagerRun *out, Diag *d) {
    Generator gen = {.left = 0};
    generator_seed(&gen, 0);
    EagerCtx c = {.arena = a, .diag = d, .threads = 1, .generator = &gen};
    *out = (EagerRun){.graph = g, .inputs = in, .n_inputs = n};
    return eager_run(&c, out);
}

static void drop(EagerRun *r) {
    for (int i = 0; i < r->n_outputs && r->outputs; i++)
        rt_drop(&r->outputs[i]);
}

// Is there a difference? Says which.
static bool differs(const RtValue *got, const RtValue *want, double rtol, double atol, Buf *why) {
    if (got->kind != want->kind) {
        buf_puts(why, "a value of another kind");
        return true;
    }
    if (got->kind != RT_tensor)
        return false;
    const Tensor *x = &got->tensor, *y = &want->tensor;
    bool same = x->dtype == y->dtype && x->ndim == y->ndim;
    for (int i = 0; same && i < x->ndim; i++)
        same = x->size[i] == y->size[i];
    if (!same) {
        buf_printf(why, "%s of %d dimensions, expected %s of %d", dtype_info[x->dtype].abbr,
                   x->ndim, dtype_info[y->dtype].abbr, y->ndim);
        return true;
    }
    TensorDiff diff;
    tensor_diff(x, y, dtype_is_float(x->dtype) ? rtol : 0, dtype_is_float(x->dtype) ? atol : 0,
                &diff);
    if (!diff.bad && !diff.nan_differs)
        return false;
    buf_printf(why, "%lld elements differ, first %lld: %.17g, expected %.17g", (long long)diff.bad,
               (long long)diff.first_bad,
               diff.first_bad >= 0 ? tensor_get_f64(x, diff.first_bad) : 0,
               diff.first_bad >= 0 ? tensor_get_f64(y, diff.first_bad) : 0);
    return true;
}

static bool in_table(OpId id, DecompTable table) {
    int flag = table == DECOMP_core_aten ? IN_core : IN_inductor;
    return decomp_rules[id].rule && decomp_rules[id].tables & flag;
}

// recorded cases

typedef struct OneOp {
    Arena *a;
    Graph *g;
    RtValue *in; // by placeholder
    int n_in;
} OneOp;

static Value as_input(OneOp *o, const RtValue *v) {
    switch (v->kind) {
    case RT_none:
        return val_none();
    case RT_int:
        return val_int(v->i);
    case RT_float:
        return val_float(v->f);
    case RT_bool:
        return val_bool(v->b);
    case RT_other:
        return *v->other;
    case RT_list: {
        Value list = val_list(o->a, VAL_list, v->n);
        for (int i = 0; i < v->n; i++)
            list.at[i] = as_input(o, &v->at[i]);
        return list;
    }
    case RT_tensor:
        break;
    }
    const Tensor *t = &v->tensor;
    TensorMeta *m = meta_new(o->a, t->dtype, t->ndim);
    m->device = (Device){DEV_cpu, -1};
    for (int i = 0; i < t->ndim; i++) {
        m->size[i] = sym_int(o->g->sym, t->size[i]);
        m->stride[i] = sym_int(o->g->sym, t->stride[i]);
    }
    m->offset = sym_int(o->g->sym, 0);
    const char *name = arena_printf(o->a, "x%d", o->n_in);
    Node *p = graph_placeholder(o->g, name, name);
    p->val = val_tensor(m);
    o->in[o->n_in++] = *v;
    return val_node(p);
}

enum { MOST_INPUTS = 64 };

static OneOp one_op(Arena *a, const Op *op, const RtValue *args) {
    OneOp o = {.a = a, .g = graph_new(a, sym_new(a)), .in = ARENA_ARRAY(a, MOST_INPUTS, RtValue)};
    Value *pos = ARENA_ARRAY(a, op->n_args + 1, Value);
    Kwarg *kw = ARENA_ARRAY(a, op->n_args + 1, Kwarg);
    int n_pos = 0, n_kw = 0;
    for (int i = 0; i < op->n_args; i++) {
        Value v = as_input(&o, &args[i]);
        if (op->args[i].kwarg_only)
            kw[n_kw++] = (Kwarg){op->args[i].name, v};
        else
            pos[n_pos++] = v;
    }
    Node *call = graph_call(o.g, op, op->name, pos, n_pos, kw, n_kw);
    graph_output(o.g, val_node(call));
    return o;
}

typedef struct Score {
    int passed, failed, skipped;
} Score;

static void flat_items(const RtValue *v, RtValue *out, int *n) {
    if (v->kind == RT_list)
        for (int i = 0; i < v->n; i++)
            flat_items(&v->at[i], out, n);
    else
        out[(*n)++] = *v;
}

static void try_case(Arena *a, const Op *op, const RtValue *args, const RtValue *want,
                     DecompTable table, Score *s) {
    Diag d = {.arena = a};
    Buf why = {.arena = a};
    OneOp o = one_op(a, op, args);
    RtValue flat[MOST_INPUTS];
    int n = 0;
    AotResult r = trace(a, o.g, table, &d);
    EagerRun got = {0};
    bool ok = r.graph && run(a, r.graph, o.in, o.n_in, &got, &d);
    flat_items(want, flat, &n);
    ok = ok && got.n_outputs >= n;
    for (int i = 0; ok && i < n; i++) {
        double rtol = 1e-5, atol = 1e-6;
        DType t = flat[i].kind == RT_tensor ? flat[i].tensor.dtype : DT_f64;
        if (t == DT_bf16 || t == DT_f16)
            rtol = 1.6e-2, atol = 1e-2;
        if (t == DT_f64)
            rtol = 1e-9, atol = 1e-10;
        ok = !differs(&got.outputs[i], &flat[i], rtol, atol, &why);
    }
    seen[op->id] = true;
    s->passed += ok;
    s->failed += !ok;
    if (!ok && getenv("FX_REPORT"))
        printf("%s (%s): %s %s\n", op->qualname, table == DECOMP_core_aten ? "core" : "inductor",
               buf_str(&why), diag_first(&d));
    drop(&got);
}

static void recorded(Str line, Score *s) {
    Arena a = {0};
    Diag d = {.arena = &a};
    Json *j = json_parse(&a, line, "case", &d);
    const Op *op = op_find(json_str(json_get(j, "op"), ""));
    bool any = op && (in_table(op->id, DECOMP_core_aten) || in_table(op->id, DECOMP_inductor));
    if (any && !json_get(j, "args_after")) {
        RtValue *args = ARENA_ARRAY(&a, op->n_args + 1, RtValue), want;
        bool ok =
            case_bind(&a, op, j, args, &d) && case_value(&a, json_get(j, "out"), &want, &d);
        ck_assert_msg(ok, "%s", diag_first(&d));
        // What the decomposition gives is not what the kernel gives, in PyTorch too: uint8 images
        // are rounded another way, float16 does not overflow, and bools cannot be subtracted.
        const RtValue *x = &args[0];
        DType first = x->kind == RT_tensor ? x->tensor.dtype : DT_none;
        bool random = strstr(op->name, "empty") != NULL ||
                      (first == DT_u8 && str_starts(op->name, "upsample")) ||
                      (first == DT_f16 && strcmp(op->name, "soft_margin_loss") == 0) ||
                      (first == DT_b8 && strcmp(op->name, "logsumexp") == 0);
        for (int k = DECOMP_core_aten; k <= DECOMP_inductor && !random; k++)
            if (in_table(op->id, (DecompTable)k))
                try_case(&a, op, args, &want, (DecompTable)k, s);
        for (int i = 0; i < op->n_args; i++)
            rt_drop(&args[i]);
        rt_drop(&want);
    }
    arena_free(&a);
}

static Score all_recorded(const char *path) {
    Arena a = {0};
    Diag d = {.arena = &a};
    Score s = {0};
    Str text = file_read(&a, path, &d);
    for (size_t at = 0; at < text.len;) {
        const char *end = memchr(text.ptr + at, '\n', text.len - at);
        size_t len = end ? (size_t)(end - text.ptr) - at : text.len - at;
        recorded((Str){text.ptr + at, len}, &s);
        at += len + 1;
    }
    arena_free(&a);
    return s;
}

START_TEST(recorded_cases) {
    Score s = all_recorded("tests/data/opcases.jsonl");
    ck_assert_int_eq(s.failed, 0);
    const char *all = "../shared/opcases/ops.jsonl";
    if (!file_exists(all))
        return;
    s = all_recorded(all);
    if (getenv("FX_REPORT"))
        printf("%d passed, %d failed\n", s.passed, s.failed);
    ck_assert_int_eq(s.failed, 0);
    ck_assert_int_ge(s.passed, 1500);
}
END_TEST

// random inputs

// A call, its parameters by annotation; a name tells what a tensor holds: p numbers between 0 and
// 1, s positive numbers, iN integers below N, others numbers around 0. `edges`: NaN, infinities and
// zeros of both signs are put in as well.
// Behind a `|` in the parameters stand lines of code that make arguments of the call.
typedef struct Sample {
    const char *call, *params;
    bool edges;
} Sample;

static uint64_t lcg;

static double uniform(void) {
    lcg = lcg * 6364136223846793005u + 1442695040888963407u;
    return (double)(lcg >> 11) / 9007199254740992.0;
}

static double element(const char *name, DType d, int64_t i, bool edges) {
    static const double special[] = {NAN, -0.0, 0.0, INFINITY, -INFINITY};
    double u = uniform();
    if (name[0] == 'i')
        return floor(u * atoi(name + 1));
    if (d == DT_b8)
        return u < 0.5;
    if (edges && i % 7 < COUNT(special))
        return special[i % 7];
    if (name[0] == 'p')
        return 0.02 + u * 0.96;
    return name[0] == 's' ? 0.1 + u * 2 : name[0] == 'y' ? u * 1.9 - 0.95 : u * 8 - 4;
}

static bool fill(const Node *p, bool edges, RtValue *out, Diag *d) {
    const TensorMeta *m = node_tensor(p);
    int64_t size[TENSOR_DIMS], stride[TENSOR_DIMS];
    for (int i = 0; i < m->ndim; i++) {
        size[i] = expr_int_or(m->size[i], 0);
        stride[i] = expr_int_or(m->stride[i], 0);
    }
    *out = (RtValue){.kind = RT_tensor};
    if (!tensor_new_strided(&out->tensor, m->dtype, m->ndim, size, stride, d))
        return false;
    for (int64_t i = 0; i < tensor_numel(&out->tensor); i++)
        tensor_set_f64(&out->tensor, i, element(p->name, m->dtype, i, edges));
    return true;
}

static const Graph *parse_sample(Arena *a, const Sample *s, const Op **op, Diag *d) {
    Buf text = {.arena = a};
    char name[128];
    ck_assert_int_eq(sscanf(s->call, "%127[^(]", name), 1);
    *op = op_find(name);
    ck_assert_msg(*op != NULL, "no op %s", name);
    size_t len = strcspn(s->params, "|");
    buf_printf(&text, "def forward(self, %.*s):\n%s    r = torch.ops.%s\n", (int)len, s->params,
               s->params[len] ? s->params + len + 1 : "", s->call);
    int n = (*op)->n_returns;
    for (int i = 0; n > 1 && i < n; i++)
        buf_printf(&text, "    g%d = r[%d]\n", i, i);
    buf_puts(&text, "    return (");
    for (int i = 0; n > 1 && i < n; i++)
        buf_printf(&text, "g%d, ", i);
    buf_puts(&text, n > 1 ? ")\n" : "r,)\n");
    FxDoc doc = {.arena = a};
    bool ok = fx_parse(&doc, sym_new(a), (Str){buf_str(&text), text.len}, "sample", d);
    ck_assert_msg(ok && doc.n == 1, "%s: %s", s->call, diag_first(d));
    return doc.at[0].graph;
}

static void try_sample(const Sample *s, bool edges) {
    Arena a = {0};
    Diag d = {.arena = &a};
    const Op *op;
    const Graph *g = parse_sample(&a, s, &op, &d);
    RtValue in[16];
    Node **p;
    int n = graph_placeholders(g, &p, &a);
    ck_assert_int_le(n, COUNT(in));
    lcg = 42;
    for (int i = 0; i < n; i++)
        ck_assert_msg(fill(p[i], edges, &in[i], &d), "%s", diag_first(&d));
    EagerRun want, got;
    ck_assert_msg(run(&a, g, in, n, &want, &d), "%s: %s", s->call, diag_first(&d));
    for (int k = DECOMP_core_aten; k <= DECOMP_inductor; k++) {
        if (!in_table(op->id, (DecompTable)k))
            continue;
        AotResult r = trace(&a, g, (DecompTable)k, &d);
        Buf why = {.arena = &a};
        ck_assert_msg(r.graph != NULL, "%s: %s", s->call, diag_first(&d));
        ck_assert_msg(run(&a, r.graph, in, n, &got, &d), "%s: %s", s->call, diag_first(&d));
        ck_assert_int_eq(got.n_outputs, want.n_outputs);
        for (int i = 0; i < want.n_outputs; i++)
            ck_assert_msg(!differs(&got.outputs[i], &want.outputs[i], 1e-12, 1e-12, &why),
                          "%s, result %d%s: %s", s->call, i, edges ? " with special values" : "",
                          buf_str(&why));
        drop(&got);
        seen[op->id] = true;
    }
    drop(&want);
    for (int i = 0; i < n; i++)
        rt_drop(&in[i]);
    arena_free(&a);
}

#define F64(name, sizes) name ": \"f64[" sizes "]\""
#define I64(name, sizes) name ": \"i64[" sizes "]\""
#define B8(name, sizes)  name ": \"b8[" sizes "]\""
#define GX               F64("g", "3, 5") ", " F64("x", "3, 5")

static const Sample samples[] = {
    {"aten.tanh_backward.default(g, x)", GX, true},
    {"aten.sigmoid_backward.default(g, x)", GX, true},
    {"aten.softplus_backward.default(g, x, 1.5, 3.0)", GX, false},
    {"aten.elu_backward.default(g, 1.25, 2.0, 0.5, False, x)", GX, true},
    {"aten.elu_backward.default(g, 1.25, 2.0, 0.5, True, x)", GX, true},
    {"aten.hardsigmoid_backward.default(g, x)", GX, true},
    {"aten.hardtanh_backward.default(g, x, -1.0, 1.0)", GX, true},
    {"aten.hardswish_backward.default(g, x)", GX, true},
    {"aten.threshold_backward.default(g, x, 0.5)", GX, true},
    {"aten.leaky_relu_backward.default(g, x, 0.1, False)", GX, true},
    {"aten.gelu_backward.default(g, x)", GX, false},
    {"aten.gelu_backward.default(g, x, approximate = 'tanh')", GX, false},
    {"aten.mish_backward.default(g, x)", GX, false},
    {"aten.silu_backward.default(g, x)", GX, false},
    {"aten._prelu_kernel_backward.default(g, x, w)", GX ", " F64("w", "3, 5"), true},
    {"aten.rrelu_with_noise_backward.default(g, x, p, 0.1, 0.3, True, False)",
     GX ", " F64("p", "3, 5"), true},
    {"aten.rrelu_with_noise_backward.default(g, x, p, 0.1, 0.3, False, False)",
     GX ", " F64("p", "3, 5"), true},
    {"aten.log_sigmoid_backward.default(g, x, s)", 
     GX "|    f = torch.ops.aten.log_sigmoid_forward.default(x)\n    s = f[1]\n", false},
    {"aten.logit_backward.default(g, p, 0.1)", F64("g", "3, 5") ", " F64("p", "3, 5"), false},
    {"aten.logit_backward.default(g, p)", F64("g", "3, 5") ", " F64("p", "3, 5"), true},
    {"aten.glu.default(x, 0)", F64("x", "4, 3"), true},
    {"aten.glu_backward.default(g, x, 1)", F64("g", "3, 2") ", " F64("x", "3, 4"), false},
    {"aten.native_dropout_backward.default(x, b, 1.5)", F64("x", "3, 4") ", " B8("b", "3, 4"),
     true},
    {"aten._softmax_backward_data.default(g, p, -1, torch.float64)",
     F64("g", "3, 5") ", " F64("p", "3, 5"), false},
    {"aten._log_softmax_backward_data.default(g, x, 0, torch.float64)", GX, false},
    {"aten.native_layer_norm_backward.default(g, x, [5], m, s, w, b, [True, True, True])",
     GX ", " F64("m", "3, 1") ", " F64("s", "3, 1") ", " F64("w", "5") ", " F64("b", "5"), false},
    {"aten.native_layer_norm_backward.default(g, x, [3, 5], m, s, w, b, [True, True, True])",
     GX ", " F64("m", "1, 1") ", " F64("s", "1, 1") ", " F64("w", "3, 5") ", " F64("b", "3, 5"),
     false},
    {"aten._fused_rms_norm_backward.default(g, x, [5], s, w, [True, True])",
     GX ", " F64("s", "3, 1") ", " F64("w", "5"), false},
    {"aten.native_group_norm_backward.default(g, x, m, s, w, 2, 6, 4, 3, [True, True, True])",
     F64("g", "2, 6, 4") ", " F64("x", "2, 6, 4") ", " F64("m", "2, 3") ", " F64("s", "2, 3") ", "
     F64("w", "6"), false},
    {"aten.native_batch_norm_backward.default(g, x, w, m, s, m, s, True, 1e-05, [True, True, True])",
     F64("g", "2, 3, 4") ", " F64("x", "2, 3, 4") ", " F64("w", "3") ", " F64("m", "3") ", "
     F64("s", "3"), false},
    {"aten.native_batch_norm_backward.default(g, x, w, m, s, m, s, False, 1e-05, [True, True, "
     "True])",
     F64("g", "2, 1, 4") ", " F64("x", "2, 1, 4") ", " F64("w", "1") ", " F64("m", "1") ", "
     F64("s", "1"), false},
    {"aten.slice_backward.default(g, [4, 5], 1, 1, 4, 2)", F64("g", "4, 2"), true},
    {"aten.select_backward.default(g, [4, 5], 0, -1)", F64("g", "5"), true},
    {"aten.diagonal_backward.default(g, [4, 5], 1, 0, 1)", F64("g", "4"), true},
    {"aten.select_scatter.default(x, g, 1, -2)", F64("x", "4, 5") ", " F64("g", "4"), true},
    {"aten.unfold_backward.default(g, [7, 2], 0, 3, 2)", F64("g", "3, 2, 3"), false},
    {"aten.embedding_dense_backward.default(g, i4, 4, 2, False)",
     F64("g", "3, 5, 2") ", " I64("i4", "3, 5"), false},
    {"aten.embedding_dense_backward.default(g, i4, 4, -1, True)",
     F64("g", "9, 2") ", " I64("i4", "9"), false},
    {"aten._unsafe_index_put.default(x, [i4], g, True)",
     F64("x", "4, 2") ", " I64("i4", "6") ", " F64("g", "6, 2"), false},
    {"aten._unsafe_masked_index.default(x, b, [i4], 1.5)",
     F64("x", "4") ", " B8("b", "6") ", " I64("i4", "6"), true},
    {"aten._unsafe_masked_index_put_accumulate.default(x, b, [i4], g)",
     F64("x", "4") ", " B8("b", "6") ", " I64("i4", "6") ", " F64("g", "6"), false},
    {"aten.put.default(x, i12, g, True)", F64("x", "4, 3") ", " I64("i12", "5") ", " F64("g", "5"),
     false},
    {"aten.max_unpool2d.default(x, i16, [4, 4])", F64("x", "2, 3, 2, 2") ", "
     I64("i16", "2, 3, 2, 2"), false},
    {"aten.mse_loss_backward.default(g, x, y, 1)", F64("g", "") ", " F64("x", "3, 5") ", "
     F64("y", "3, 5"), false},
    {"aten.mse_loss_backward.default(g, x, y, 0)", GX ", " F64("y", "3, 5"), true},
    {"aten.smooth_l1_loss_backward.default(g, x, y, 1, 0.5)", F64("g", "") ", "
     F64("x", "3, 5") ", " F64("y", "3, 5"), false},
    {"aten.huber_loss_backward.default(g, x, y, 2, 0.75)", F64("g", "") ", " F64("x", "3, 5") ", "
     F64("y", "3, 5"), false},
    {"aten.huber_loss_backward.default(g, x, y, 1, 0.75)", F64("g", "") ", " F64("x", "3, 5") ", "
     F64("y", "3, 5"), false},
    {"aten.binary_cross_entropy_backward.default(g, p, q, w, 1)", F64("g", "") ", "
     F64("p", "3, 5") ", " F64("q", "3, 5") ", " F64("w", "3, 5"), false},
    {"aten.soft_margin_loss.default(x, y, 1)", F64("x", "3, 5") ", " F64("y", "3, 5"), false},
    {"aten.soft_margin_loss_backward.default(g, x, y, 1)", F64("g", "") ", " F64("x", "3, 5") ", "
     F64("y", "3, 5"), false},
    {"aten.nll_loss_backward.default(g, x, i5, w, 1, 2, s)", F64("g", "") ", " F64("x", "3, 5")
     ", " I64("i5", "3") ", " F64("w", "5") ", " F64("s", ""), false},
    {"aten.nll_loss_backward.default(g, x, i5, None, 0, -100, s)", F64("g", "3") ", "
     F64("x", "3, 5") ", " I64("i5", "3") ", " F64("s", ""), false},
    {"aten.nll_loss2d_backward.default(g, x, i5, w, 2, 1, s)", F64("g", "") ", "
     F64("x", "2, 5, 3, 2") ", " I64("i5", "2, 3, 2") ", " F64("w", "5") ", " F64("s", ""), false},
};

START_TEST(random_inputs) {
    for (int i = 0; i < COUNT(samples); i++) {
        try_sample(&samples[i], false);
        if (samples[i].edges)
            try_sample(&samples[i], true);
    }
}
END_TEST

Suite *suite_aot_decomp(void) {
    const TTest *tests[] = {recorded_cases, random_inputs};
    return unit_suite("aot_decomp", tests, COUNT(tests));
}
