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
    int in = decomp_rules[id].tables & IN_both;
    return composite_rules[id].rule || (decomp_rules[id].rule && (in == IN_before || in & flag));
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
    // The mathematical attention yields its weights where the kernel yields their logarithms.
    if (op->id == OP_aten__scaled_dot_product_flash_attention_for_cpu_default)
        n = 1;
    ok = ok && got.n_outputs >= n;
    for (int i = 0; ok && i < n; i++) {
        double rtol = 1e-5, atol = 1e-6;
        DType t = flat[i].kind == RT_tensor ? flat[i].tensor.dtype : DT_f64;
        if (t == DT_bf16 || t == DT_f16)
            rtol = 1.6e-2, atol = 1e-2;
        if (t == DT_f64)
            rtol = 1e-9, atol = 1e-10;
        else if (strcmp(op->name, "upsample_bicubic2d") == 0)
            atol = fmax(atol, 1e-5); // the place between neighbours is rounded by another sequence
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

// What the decomposition gives is not what the kernel gives, in PyTorch too: uint8 images are
// rounded another way, float16 does not overflow, places are not rounded to low floats.
static bool is_other(const Op *op, const RtValue *args) {
    DType d = args[0].kind == RT_tensor ? args[0].tensor.dtype : DT_none;
    return strstr(op->name, "empty") || (d == DT_u8 && str_starts(op->name, "upsample")) ||
           (d == DT_f16 && strcmp(op->name, "soft_margin_loss") == 0) ||
           ((d == DT_f16 || d == DT_bf16) && strcmp(op->name, "grid_sampler_2d") == 0);
}

static void recorded(Str line, Score *s) {
    Arena a = {0};
    Diag d = {.arena = &a};
    Json *j = json_parse(&a, line, "case", &d);
    const Op *op = op_find(json_str(json_get(j, "op"), ""));
    bool any = op && (in_table(op->id, DECOMP_core_aten) || in_table(op->id, DECOMP_inductor));
    if (any && !json_get(j, "args_after")) {
        RtValue *args = ARENA_ARRAY(&a, op->n_args + 1, RtValue), want;
        bool ok = case_bind(&a, op, j, args, &d) && case_value(&a, json_get(j, "out"), &want, &d);
        ck_assert_msg(ok, "%s", diag_first(&d));
        for (int k = DECOMP_core_aten; k <= DECOMP_inductor && !is_other(op, args); k++)
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

static void recorded_cases(void) {
    Score s = all_recorded("tests/data/opcases.jsonl");
    ck_assert_int_eq(s.failed, 0);
    const char *all = "../shared/opcases/ops.jsonl";
    if (!file_exists(all))
        return;
    s = all_recorded(all);
    if (getenv("FX_REPORT"))
        printf("%d passed, %d failed\n", s.passed, s.failed);
    ck_assert_int_eq(s.failed, 0);
    ck_assert_int_ge(s.passed, 3400);
}

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

// False, and why, if a table's decomposition gives something else than the kernel.
static bool same_as_kernel(const Sample *s, bool edges, Buf *why) {
    Arena *a = why->arena;
    Diag d = {.arena = a};
    const Op *op;
    const Graph *g = parse_sample(a, s, &op, &d);
    RtValue in[16];
    Node **p;
    int n = graph_placeholders(g, &p, a);
    ck_assert_int_le(n, COUNT(in));
    lcg = 42;
    for (int i = 0; i < n; i++)
        ck_assert_msg(fill(p[i], edges, &in[i], &d), "%s", diag_first(&d));
    EagerRun want = {0}, got = {0};
    bool ok = run(a, g, in, n, &want, &d);
    for (int k = DECOMP_core_aten; ok && k <= DECOMP_inductor; k++) {
        if (!in_table(op->id, (DecompTable)k))
            continue;
        AotResult r = trace(a, g, (DecompTable)k, &d);
        ok = r.graph && run(a, r.graph, in, n, &got, &d) && got.n_outputs == want.n_outputs;
        for (int i = 0; ok && i < want.n_outputs; i++)
            ok = !differs(&got.outputs[i], &want.outputs[i], 1e-12, 1e-12, why);
        drop(&got);
        got = (EagerRun){0};
    }
    seen[op->id] = true;
    drop(&want);
    for (int i = 0; i < n; i++)
        rt_drop(&in[i]);
    buf_puts(why, ok ? "" : d.errors ? diag_first(&d) : "");
    return ok;
}

static int try_sample(const Sample *s, bool edges) {
    Arena a = {0};
    Buf why = {.arena = &a};
    bool ok = same_as_kernel(s, edges, &why);
    if (!ok)
        printf("%s%s: %s\n", s->call, edges ? " with special values" : "", buf_str(&why));
    arena_free(&a);
    return !ok;
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
     F64("g", "2, 6, 4") ", " F64("x", "2, 6, 4") ", " F64("m", "2, 3") ", " F64(
         "s", "2, 3") ", " F64("w", "6"),
     false},
    {"aten.native_batch_norm_backward.default(g, x, w, m, s, m, s, True, 1e-05, [True, True, "
     "True])",
     F64("g", "2, 3, 4") ", " F64("x", "2, 3, 4") ", " F64("w", "3") ", " F64("m", "3") ", " F64(
         "s", "3"),
     false},
    {"aten.native_batch_norm_backward.default(g, x, w, m, s, m, s, False, 1e-05, [True, True, "
     "True])",
     F64("g", "2, 1, 4") ", " F64("x", "2, 1, 4") ", " F64("w", "1") ", " F64("m", "1") ", " F64(
         "s", "1"),
     false},
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
    {"aten.max_unpool2d.default(x, i16, [4, 4])",
     F64("x", "2, 3, 2, 2") ", " I64("i16", "2, 3, 2, 2"), false},
    {"aten.mse_loss_backward.default(g, x, y, 1)",
     F64("g", "") ", " F64("x", "3, 5") ", " F64("y", "3, 5"), false},
    {"aten.mse_loss_backward.default(g, x, y, 0)", GX ", " F64("y", "3, 5"), true},
    {"aten.smooth_l1_loss_backward.default(g, x, y, 1, 0.5)",
     F64("g", "") ", " F64("x", "3, 5") ", " F64("y", "3, 5"), false},
    {"aten.huber_loss_backward.default(g, x, y, 2, 0.75)",
     F64("g", "") ", " F64("x", "3, 5") ", " F64("y", "3, 5"), false},
    {"aten.huber_loss_backward.default(g, x, y, 1, 0.75)",
     F64("g", "") ", " F64("x", "3, 5") ", " F64("y", "3, 5"), false},
    {"aten.binary_cross_entropy_backward.default(g, p, q, w, 1)",
     F64("g", "") ", " F64("p", "3, 5") ", " F64("q", "3, 5") ", " F64("w", "3, 5"), false},
    {"aten.soft_margin_loss.default(x, y, 1)", F64("x", "3, 5") ", " F64("y", "3, 5"), false},
    {"aten.soft_margin_loss_backward.default(g, x, y, 1)",
     F64("g", "") ", " F64("x", "3, 5") ", " F64("y", "3, 5"), false},
    {"aten.nll_loss_backward.default(g, x, i5, w, 1, 2, s)",
     F64("g", "") ", " F64("x", "3, 5") ", " I64("i5", "3") ", " F64("w", "5") ", " F64("s", ""),
     false},
    {"aten.nll_loss_backward.default(g, x, i5, None, 0, -100, s)",
     F64("g", "3") ", " F64("x", "3, 5") ", " I64("i5", "3") ", " F64("s", ""), false},
    {"aten.nll_loss2d_backward.default(g, x, i5, w, 2, 1, s)",
     F64("g", "") ", " F64("x", "2, 5, 3, 2") ", " I64("i5", "2, 3, 2") ", " F64("w", "5") ", " F64(
         "s", ""),
     false},
    {"aten.fill.Tensor(x, s)", F64("x", "3, 5") ", " F64("s", ""), true},
    {"aten.floor_divide.Scalar(x, 3)", F64("x", "3, 5"), false},
    {"aten.isin.Scalar_Tensor(2, i5)", I64("i5", "9"), false},
    {"aten.isin.Tensor_Scalar(i5, 2, invert = True)", I64("i5", "9"), false},
    {"aten.isin.Tensor_Tensor(i9, i5)", I64("i9", "3, 4") ", " I64("i5", "40"), false},
    {"aten.isin.Tensor_Tensor(i9, i5, invert = True)", I64("i9", "3, 4") ", " I64("i5", "2, 2"),
     false},
    {"aten.special_xlog1py.other_scalar(x, 0.5)", F64("x", "3, 5"), true},
    {"aten.special_xlog1py.self_scalar(2, p)", F64("p", "3, 5"), true},
    {"aten.xlogy.Scalar_Other(x, 0.5)", F64("x", "3, 5"), true},
    {"aten.xlogy.Scalar_Self(2, p)", F64("p", "3, 5"), true},
    {"aten.zero.default(x)", F64("x", "3, 5"), true},
    {"aten.norm.Scalar(x, 3)", F64("x", "3, 5"), false},
    {"aten.norm.Scalar(x)", F64("x", "1"), false},
    {"aten.norm.ScalarOpt_dim_dtype(x, None, [1], True, dtype = torch.float64)", F64("x", "3, 5"),
     false},
    {"aten.norm.ScalarOpt_dtype(x, 1, dtype = torch.float64)", F64("x", "3, 5"), false},
    {"aten.bucketize.Scalar(2, x)", F64("x", "0"), false},
    {"aten.searchsorted.Scalar(x, 2)", F64("x", "1"), false},
    {"aten._reshape_alias.default(x, [5, 3], [3, 1])", F64("x", "3, 5"), true},
    {"aten.expand_as.default(x, y)", F64("x", "3, 1") ", " F64("y", "3, 5"), true},
    {"aten.lift.default(x)", F64("x", "3, 5"), true},
    {"aten.narrow.default(x, 1, -3, 2)", F64("x", "3, 5"), true},
    {"aten.narrow_copy.default(x, 1, 1, 2)", F64("x", "3, 5"), true},
    {"aten.squeeze_copy.dims(x, [0, 2])", F64("x", "1, 5, 1"), true},
    {"aten.unsafe_split_with_sizes.default(x, [5])", F64("x", "5, 2"), true},
    {"aten.view_copy.dtype(i5, torch.int32)", I64("i5", "3, 4"), false},
    {"aten._euclidean_dist.default(x, y)", F64("x", "4, 3") ", " F64("y", "5, 3"), false},
    {"aten._weight_norm_interface.default(x, s, 1)", F64("x", "4, 3") ", " F64("s", "1, 3"), false},
    {"aten.affine_grid_generator.default(x, [2, 3, 4, 5], False)", F64("x", "2, 2, 3"), false},
    {"aten.affine_grid_generator.default(x, [2, 3, 3, 1, 5], True)", F64("x", "2, 3, 4"), false},
    {"aten.reflection_pad1d_backward.default(g, x, [2, 1])", F64("g", "2, 8") ", " F64("x", "2, 5"),
     false},
    {"aten.reflection_pad2d_backward.default(g, x, [2, 1, 0, 3])",
     F64("g", "2, 7, 8") ", " F64("x", "2, 4, 5"), false},
    {"aten.reflection_pad3d_backward.default(g, x, [2, 1, 0, 3, 1, 1])",
     F64("g", "2, 1, 5, 7, 8") ", " F64("x", "2, 1, 3, 4, 5"), false},
    {"aten.upsample_bilinear2d.vec(x, None, False, [2.0, 1.5])", F64("x", "1, 2, 4, 4"), false},
    {"aten.upsample_linear1d.vec(x, [7], True, None)", F64("x", "1, 2, 4"), false},
    {"aten.upsample_linear1d.default(x, [7], False)", F64("x", "1, 2, 4"), false},
    {"aten.upsample_bicubic2d.default(x, [7, 9], False)", F64("x", "1, 2, 4, 5"), false},
    {"aten.upsample_bicubic2d.default(x, [7, 9], True)", F64("x", "1, 2, 4, 5"), false},
    {"aten._upsample_nearest_exact2d.default(x, [7, 9])", F64("x", "1, 2, 4, 5"), false},
    {"aten._upsample_nearest_exact3d.default(x, [7, 3, 4])", F64("x", "1, 2, 4, 5, 3"), false},
    {"aten.upsample_bicubic2d.vec(x, None, False, [2.0, 1.5])", F64("x", "1, 2, 4, 4"), false},
    {"aten._batch_norm_no_update.default(x, w, b, m, s, 0.1, 1e-05)",
     F64("x", "2, 3, 4") ", " F64("w", "3") ", " F64("b", "3") ", " F64("m", "3") ", " F64("s",
                                                                                           "3"),
     false},
    {"aten._batch_norm_with_update_functional.default(x, w, b, m, s, 0.1, 1e-05)",
     F64("x", "2, 3, 4") ", " F64("w", "3") ", " F64("b", "3") ", " F64("m", "3") ", " F64("s",
                                                                                           "3"),
     false},
    {"aten.batch_norm_backward.default(g, x, w, m, s, m, s, True, 1e-05, [True, True, True], b)",
     F64("g", "2, 3, 4") ", " F64("x", "2, 3, 4") ", " F64("w", "3") ", " F64("m", "3") ", " F64(
         "s", "3") ", b: \"u8[0]\"",
     false},
    {"aten._fused_rms_norm.default(x, [5], w, None)", F64("x", "3, 5") ", " F64("w", "5"), false},
    {"aten.l1_loss.default(x, y, 1)", F64("x", "3, 5") ", " F64("y", "3, 5"), false},
    {"aten.conj_physical.default(x)", F64("x", "3, 5"), true},
    {"prims.fmax.default(x, y)", F64("x", "3, 5") ", " F64("y", "3, 5"), true},
    {"prims.fmin.default(x, y)", F64("x", "3, 5") ", " F64("y", "3, 5"), true},
    {"aten.multi_margin_loss.default(x, i5, 2, 0.75, w, 1)",
     F64("x", "3, 5") ", " I64("i5", "3") ", " F64("w", "5"), false},
    {"aten.multilabel_margin_loss_forward.default(x, i4, 1)",
     F64("x", "3, 5") ", " I64("i4", "3, 5"), false},
    {"aten.grid_sampler_2d.default(x, g, 2, 1, True)",
     F64("x", "2, 3, 4, 5") ", " F64("g", "2, 2, 3, 2"), false},
    {"aten.grid_sampler_2d.default(x, g, 0, 2, False)",
     F64("x", "2, 3, 4, 5") ", " F64("g", "2, 2, 3, 2"), false},
    {"aten.col2im.default(x, [5, 6], [2, 3], [1, 1], [1, 0], [2, 1])", F64("x", "1, 12, 12"),
     false},
    {"aten.cat.default([x, x], 1)", F64("x", "3, 5"), true},
    {"aten.linspace.Tensor_Scalar(x, 2.5, 6, dtype = torch.float64)", F64("x", ""), false},
    {"aten.logspace.Scalar_Tensor(0.5, y, 5, 2.0, dtype = torch.float64)", F64("y", ""), false},
    {"aten.renorm.default(x, 2, 1, 1.5)", F64("x", "3, 4, 2"), false},
    {"aten.index_fill.int_Tensor(x, 1, i4, s)",
     F64("x", "3, 4") ", " I64("i4", "2") ", " F64("s", ""), true},
    {"aten.index_reduce.default(x, 0, i4, g, 'mean', include_self = False)",
     F64("x", "4, 2") ", " I64("i4", "7") ", " F64("g", "7, 2"), false},
    {"aten.tril.default(x, -1)", F64("x", "0, 3"), false},
    // composites that formulas of derivatives are written with
    {"aten.value_selecting_reduction_backward.default(g, 1, i5, [3, 5], False)",
     F64("g", "3") ", " I64("i5", "3"), true},
    {"aten.value_selecting_reduction_backward.default(g, -1, i5, [3, 5], True)",
     F64("g", "3, 2") ", " I64("i5", "3, 2"), false},
    {"aten.index_select_backward.default(g, [3, 5], 1, i5)", F64("g", "3, 4") ", " I64("i5", "4"),
     true},
    {"aten.gather_backward.default(g, x, 1, i5, False)",
     F64("g", "3, 4") ", " F64("x", "3, 5") ", " I64("i5", "3, 4"), true},
    {"aten.cummaxmin_backward.default(g, x, i5, 1)", GX ", " I64("i5", "3, 5"), true},
    {"aten.masked_select_backward.default(g, x, m)",
     F64("g", "15") ", " F64("x", "3, 1") ", " B8("m", "3, 5"), true},
    {"aten.trace_backward.default(g, [3, 5])", F64("g", ""), false},
    {"aten.trace_backward.default(g, [5, 3])", F64("g", ""), false},
    {"aten.embedding_backward.default(g, i4, 4, 1, True, False)",
     F64("g", "6, 2") ", " I64("i4", "6"), false},
    {"aten.infinitely_differentiable_gelu_backward.default(g, x)", GX, false},
    {"aten.mse_loss.default(x, y, 1)", F64("x", "0") ", " F64("y", "0"), false},
    {"aten.native_layer_norm_backward.default(g, x, [5], m, s, w, b, [True, True, True])",
     F64("g", "0, 5") ", " F64("x", "0, 5") ", " F64("m", "0, 1") ", " F64("s", "0, 1") ", " F64(
         "w", "5") ", " F64("b", "5"),
     false},
    {"aten.threshold_backward.default(g, x, 0)", F64("g", "") ", " F64("x", ""), true},
    {"aten.leaky_relu_backward.default(g, x, 0.1, False)", F64("g", "3, 5") ", " F64("x", "1, 5"),
     true},
};

static void random_inputs(void) {
    int failed = 0;
    for (int i = 0; i < COUNT(samples); i++) {
        failed += try_sample(&samples[i], false);
        if (samples[i].edges)
            failed += try_sample(&samples[i], true);
    }
    ck_assert_int_eq(failed, 0);
}

// Every row of the table has been run by one of the above, but for those that draw random numbers,
// write in place, or make what has no values.
static bool has_no_result(const Op *op) {
    static const OpId without[] = {OP_aten_empty_like_default,
                                   OP_aten_empty_permuted_default,
                                   OP_aten_new_empty_default,
                                   OP_aten_cauchy_default,
                                   OP_aten_exponential_default,
                                   OP_aten_geometric_default,
                                   OP_aten_log_normal_default,
                                   OP_aten_rrelu_with_noise_functional_default,
                                   OP_aten_sym_constrain_range_for_size_default};
    for (int i = 0; i < COUNT(without); i++)
        if (op->id == without[i])
            return true;
    return op->tags & (OPT_mutates | OPT_random);
}

static void every_row_is_run(void) {
    int left = 0;
    for (int i = 0; i < OP_count; i++) {
        const Op *op = i ? op_at((OpId)i) : NULL;
        if (!op || !decomp_rules[i].rule || seen[i] || has_no_result(op))
            continue;
        left++;
        if (getenv("FX_REPORT"))
            printf("not run: %s\n", op->qualname);
    }
    ck_assert_int_le(left, file_exists("../shared/opcases/ops.jsonl") ? 0 : OP_count);
}

// One test: a process of its own remembers what was run.
START_TEST(decompositions_and_kernels_agree) {
    recorded_cases();
    random_inputs();
    every_row_is_run();
}
END_TEST

// rules that decline

// Calls by the source of PyTorch's tables; CUDA for the device of the parameters.
typedef struct Conditional {
    const char *call, *params;
    const char *cpu, *cuda; // packets in Inductor's table; NULL: as on the CPU
} Conditional;

#define F32(name, sizes) name ": \"f32[" sizes "]DEV\""

static const Conditional conditional[] = {
    // the bias is summed apart where the GPU's libraries do it slowly
    {"convolution_backward.default(g, x, w, [4], [1, 1], [0, 0], [1, 1], False, [0, 0], 1, "
     "[True, True, True])",
     F32("g", "2, 4, 6, 6][144, 36, 6, 1") ", " F32("x", "2, 3, 8, 8][192, 64, 8, 1") ", " F32(
         "w", "4, 3, 3, 3][27, 9, 3, 1"),
     "convolution_backward", "sum convolution_backward"},
    // the CPU goes through source one by one
    {"masked_scatter.default(x, m, s)",
     F32("x", "2, 3][3, 1") ", m: \"b8[2, 3][3, 1]DEV\", " F32("s", "9][1"), "masked_scatter",
     "view cumsum sub view view _unsafe_masked_index where view"},
    // the CPU draws with its own generator
    {"bernoulli.p(x, 0.3)", F32("x", "2, 3][3, 1"), "bernoulli", "rand lt"},
    // one tensor is a copy, empty vectors go
    {"cat.default([x])", F32("x", "2, 3][3, 1"), "clone", NULL},
    {"cat.default([x, y])", F32("x", "2][1") ", " F32("y", "0][1"), "clone", NULL},
    {"cat.default([x, y])", F32("x", "2][1") ", " F32("y", "3][1"), "cat", NULL},
    {"cat.default([x, x, x], 1)", F32("x", "2, 3][3, 1"), "unsqueeze expand clone view clone",
     NULL},
    // products of one row by one column, and small ones of a column by a row
    {"mm.default(x, y)", F32("x", "4, 5][5, 1") ", " F32("y", "5, 6][6, 1"), "mm", NULL},
    {"mm.default(x, y)", F32("x", "1, 5][5, 1") ", " F32("y", "5, 1][1, 1"),
     "squeeze squeeze mul sum unsqueeze", "mm"},
    {"mm.default(x, y)", F32("x", "4, 1][1, 1") ", " F32("y", "1, 28][28, 1"), "mul", "mm"},
    {"mm.default(x, y)", F32("x", "4, 1][1, 1") ", " F32("y", "1, 29][29, 1"), "mm", NULL},
    // a maximum of truth values is any
    {"amax.default(x, [0])", F32("x", "2, 3][3, 1"), "amax", NULL},
    {"amax.default(x, [0])", "x: \"b8[2, 3][3, 1]DEV\"", "any", NULL},
    // layouts are kept by a permutation of what is filled
    {"full_like.default(x, 2)", F32("x", "2, 3][3, 1"), "full", NULL},
    {"full_like.default(x, 2)", F32("x", "2, 3][1, 2"), "full permute clone", NULL},
    {"randint_like.default(x, 9)", F32("x", "2, 3][1, 2"), "randint permute clone", NULL},
};

static const char *on_device(Arena *a, const char *params, const char *device) {
    Buf b = {.arena = a};
    for (const char *p = params; *p;) {
        bool here = strncmp(p, "DEV", 3) == 0;
        buf_add(&b, here ? device : p, here ? strlen(device) : 1);
        p += here ? 3 : 1;
    }
    return buf_str(&b);
}

START_TEST(rules_ask_for_device_and_shape) {
    static const char *const devices[] = {"cpu", "cuda:0"};
    for (int i = 0; i < COUNT(conditional) * 2; i++) {
        const Conditional *c = &conditional[i / 2];
        Arena a = {0};
        Diag d = {.arena = &a};
        Sample s = {arena_printf(&a, "aten.%s", c->call), on_device(&a, c->params, devices[i % 2]),
                    false};
        const Op *op;
        AotResult r = trace(&a, parse_sample(&a, &s, &op, &d), DECOMP_inductor, &d);
        ck_assert_msg(r.graph != NULL, "%s: %s", c->call, diag_first(&d));
        Buf got = {.arena = &a};
        GRAPH_EACH (r.graph, n)
            if (n->op == FX_call_function && n->def && strcmp(n->def->ns, "aten") == 0)
                buf_printf(&got, "%s%s", got.len ? " " : "", n->def->name);
        ck_assert_str_eq(buf_str(&got), i % 2 && c->cuda ? c->cuda : c->cpu);
        arena_free(&a);
    }
}
END_TEST

Suite *suite_aot_decomp(void) {
    const TTest *tests[] = {decompositions_and_kernels_agree, rules_ask_for_device_and_shape};
    return unit_suite("aot_decomp", tests, COUNT(tests));
}
