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

typedef struct Sample {
    const char *call; // aten.NAME.OVERLOAD(…)
    // `g: f64[3, 5]; i4: i64[6]`. A name tells what a tensor holds: p numbers between 0 and 1, s
    // positive numbers, iN integers below N, others numbers around 0. Behind a `|` stand lines of
    // code that make arguments of the call.
    const char *params;
    bool edges;         // NaN, infinities and zeros of both signs are put in as well
    const char *device; // of the parameters; NULL: the CPU
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

static void put_params(Buf *b, const Sample *s) {
    for (const char *p = s->params; *p && *p != '|';) {
        int name = (int)strcspn(p, ":"), len = (int)strcspn(p, ";|");
        buf_printf(b, ", %.*s: \"%.*s%s\"", name, p, len - name - 2, p + name + 2,
                   s->device ? s->device : "");
        p += len + (p[len] == ';' ? 2 : 0);
    }
}

static const Graph *parse_sample(Arena *a, const Sample *s, const Op **op, Diag *d) {
    Buf text = {.arena = a};
    char name[128];
    ck_assert_int_eq(sscanf(s->call, "%127[^(]", name), 1);
    *op = op_find(name);
    ck_assert_msg(*op != NULL, "no op %s", name);
    const char *lines = strchr(s->params, '|');
    buf_puts(&text, "def forward(self");
    put_params(&text, s);
    buf_printf(&text, "):\n%s    r = torch.ops.%s\n", lines ? lines + 1 : "", s->call);
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

static const Sample samples[] = {
#define SAMPLE(c, p, e) {.call = (c), .params = (p), .edges = (e)},
#include "tests/unit/aot_decomp.def"
#undef SAMPLE
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

// Calls by the source of PyTorch's tables.
typedef struct Conditional {
    const char *call, *params;
    const char *cpu, *cuda; // packets in Inductor's table; NULL: as on the CPU
} Conditional;

static const Conditional conditional[] = {
    // the bias is summed apart where the GPU's libraries do it slowly
    {"convolution_backward.default(g, x, w, [4], [1, 1], [0, 0], [1, 1], False, [0, 0], 1, [True, "
     "True, True])",
     "g: f32[2, 4, 6, 6][144, 36, 6, 1]; x: f32[2, 3, 8, 8][192, 64, 8, 1]; w: f32[4, 3, 3, 3][27, "
     "9, 3, 1]",
     "convolution_backward", "sum convolution_backward"},
    // the CPU goes through source one by one
    {"masked_scatter.default(x, m, s)", "x: f32[2, 3][3, 1]; m: b8[2, 3][3, 1]; s: f32[9][1]",
     "masked_scatter", "view cumsum sub view view _unsafe_masked_index where view"},
    // the CPU draws with its own generator
    {"bernoulli.p(x, 0.3)", "x: f32[2, 3][3, 1]", "bernoulli", "rand lt"},
    // one tensor is a copy, empty vectors go
    {"cat.default([x])", "x: f32[2, 3][3, 1]", "clone", NULL},
    {"cat.default([x, y])", "x: f32[2][1]; y: f32[0][1]", "clone", NULL},
    {"cat.default([x, y])", "x: f32[2][1]; y: f32[3][1]", "cat", NULL},
    {"cat.default([x, x, x], 1)", "x: f32[2, 3][3, 1]", "unsqueeze expand clone view clone", NULL},
    // products of one row by one column, and small ones of a column by a row
    {"mm.default(x, y)", "x: f32[4, 5][5, 1]; y: f32[5, 6][6, 1]", "mm", NULL},
    {"mm.default(x, y)", "x: f32[1, 5][5, 1]; y: f32[5, 1][1, 1]",
     "squeeze squeeze mul sum unsqueeze", "mm"},
    {"mm.default(x, y)", "x: f32[4, 1][1, 1]; y: f32[1, 28][28, 1]", "mul", "mm"},
    {"mm.default(x, y)", "x: f32[4, 1][1, 1]; y: f32[1, 29][29, 1]", "mm", NULL},
    // a maximum of truth values is any
    {"amax.default(x, [0])", "x: f32[2, 3][3, 1]", "amax", NULL},
    {"amax.default(x, [0])", "x: b8[2, 3][3, 1]", "any", NULL},
    // layouts are kept by a permutation of what is filled
    {"full_like.default(x, 2)", "x: f32[2, 3][3, 1]", "full", NULL},
    {"full_like.default(x, 2)", "x: f32[2, 3][1, 2]", "full permute clone", NULL},
    {"randint_like.default(x, 9)", "x: f32[2, 3][1, 2]", "randint permute clone", NULL},
};

START_TEST(rules_ask_for_device_and_shape) {
    static const char *const devices[] = {"cpu", "cuda:0"};
    for (int i = 0; i < COUNT(conditional) * 2; i++) {
        const Conditional *c = &conditional[i / 2];
        Arena a = {0};
        Diag d = {.arena = &a};
        Sample s = {.call = arena_printf(&a, "aten.%s", c->call),
                    .params = c->params,
                    .device = devices[i % 2]};
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
