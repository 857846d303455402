// aot_pattern.c: the matcher of patterns on small graphs made by hand, and attention through it:
// what matches and what does not, what it becomes, and that the values stay.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/aot/pattern.h"
#include "core/base/file.h"
#include "core/eager/eager.h"
#include "core/inductor/post_grad.h"
#include "core/tensor/tensor.h"
#include "tests/unit/unit.h"

static Graph *parse(Arena *a, Sym *sym, const char *params, const char *body) {
    Buf text = {.arena = a};
    Diag d = {.arena = a};
    buf_printf(&text, "def forward(self, %s):\n%s", params, body);
    FxDoc doc = {.arena = a};
    Str s = {buf_str(&text), text.len};
    ck_assert_msg(fx_parse(&doc, sym, s, "test", &d), "%s", diag_first(&d));
    graph_infer(doc.at[0].graph, &d);
    return doc.at[0].graph;
}

static void print_all(Arena *a, const Attention *at) {
    const char *path = getenv("FX_PATTERNS_OUT"); // for a look by hand
    Buf out = {.arena = a};
    Diag d = {.arena = a};
    for (int i = 0; path && i < attention_count(at); i++) {
        buf_printf(&out, "== %s\n", attention_at(at, i)->name);
        pattern_print(&out, attention_at(at, i));
    }
    if (path)
        file_write(path, buf_str(&out), out.len, &d);
}

#define P      "torch.ops.aten."
#define SQUARE "f32[4, 4][4, 1]cpu"
// All 74 candidates for inference and training, without 7 to 10 in float and without doubles:
// torch/_inductor/fx_passes/serialized_patterns holds 126 different ones, 6 of which are those.
START_TEST(all_patterns_are_traced) {
    Arena a = {0};
    Attention *at = attention_patterns(&a, NULL);
    ck_assert_ptr_nonnull(at);
    print_all(&a, at);
    ck_assert_int_eq(attention_count(at), 120);
    ck_assert_str_eq(attention_at(at, 0)->name, "_sfdp_pattern_1_training");
    ck_assert_str_eq(attention_at(at, 1)->name, "_sfdp_pattern_1_inference");
    arena_free(&a);
}
END_TEST

static int patterns_for(const char *body) {
    Arena a = {0};
    Graph *g = parse(&a, sym_new(&a), "x: \"f32[2, 4, 4][16, 4, 1]cpu\"", body);
    Attention *at = attention_patterns(&a, g);
    int n = at ? attention_count(at) : 0;
    for (int i = 0; i < n; i++)
        ck_assert_ptr_null(strstr(attention_at(at, i)->name, "training"));
    arena_free(&a);
    return n;
}

// A graph without gradients is spared the patterns of training, one without casts those of half
// precision; one without a softmax needs none.
START_TEST(only_what_may_match_is_looked_for) {
    const char *softmax = "    b = " P "bmm.default(x, x)\n    m = " P
                          "amax.default(b, [-1], True)\n    c = " P "bmm.default(b, x)\n";
    Arena a = {0};
    int few = patterns_for(arena_printf(&a, "%s    return (c, m)\n", softmax));
    int casts = patterns_for(
        arena_printf(&a,
                     "%s    h = torch.ops.prims.convert_element_type.default(c, torch.float16)\n"
                     "    return (h, m)\n",
                     softmax));
    ck_assert_int_gt(few, 10);
    ck_assert_int_gt(casts, few + 10);
    ck_assert_int_eq(patterns_for("    b = " P "bmm.default(x, x)\n    return (b,)\n"), 0);
    arena_free(&a);
}
END_TEST

// The matcher

static const char *const one_arg[] = {"x", "number"}, *const two_args[] = {"x", "y"};

// How often a pattern matches in a graph, from the last node to the first.
static int count(Arena *a, const Pattern *p, const char *params, const char *body, Match *m) {
    Graph *g = parse(a, sym_new(a), params, body);
    int n = 0;
    for (Node *at = g->last; at; at = at->prev)
        n += pattern_match(p, at, a, m);
    return n;
}

static Pattern pattern(Arena *a, const char *const *args, int n_args, const char *params,
                       const char *body) {
    Pattern p = {.name = "p", .args = args, .n_args = n_args};
    p.graph = parse(a, sym_new(a), params, body);
    pattern_set_outputs(&p, a, -1);
    return p;
}

#define SOFT                                                                                       \
    "    e = " P "exp.default(x)\n    s = " P "sum.dim_IntList(e, [-1], True)\n"                   \
    "    d = " P "div.Tensor(e, s)\n"

START_TEST(constants_users_and_ops_decide) {
    Arena a = {0};
    Match m;
    Pattern p = pattern(&a, one_arg, 1, "x: \"" SQUARE "\"", SOFT "    return (d,)\n");
    const char *other = "x: \"f32[2, 3, 5][15, 5, 1]cpu\"";
    ck_assert_int_eq(count(&a, &p, other, SOFT "    return (d,)\n", &m), 1);
    ck_assert_int_eq(m.nodes.n, 3);
    ck_assert_str_eq(m.nodes.at[0]->name, "e");
    ck_assert_str_eq(m.outputs[0]->name, "d");
    ck_assert_str_eq(match_caught(&m, "x")->node->name, "x");
    ck_assert_ptr_null(match_caught(&m, "y"));
    // Numbers do not count, the users of the result do not count.
    ck_assert_int_eq(count(&a, &p, other,
                           "    e = " P "exp.default(x)\n"
                           "    s = " P "sum.dim_IntList(e, [0, 1], True)\n"
                           "    d = " P "div.Tensor(e, s)\n"
                           "    r = " P "relu.default(d)\n    return (d, r)\n",
                           &m),
                     1);
    // An extra user inside, another bool, another op, other operands.
    ck_assert_int_eq(count(&a, &p, other, SOFT "    return (d, e)\n", &m), 0);
    ck_assert_int_eq(count(&a, &p, other, SOFT "    return (d, s)\n", &m), 0);
    ck_assert_int_eq(count(&a, &p, "x: \"" SQUARE "\"",
                           "    e = " P "exp.default(x)\n"
                           "    s = " P "sum.dim_IntList(e, [-1], False)\n"
                           "    d = " P "div.Tensor(e, s)\n    return (d,)\n",
                           &m),
                     0);
    ck_assert_int_eq(count(&a, &p, other,
                           "    e = " P "exp.default(x)\n"
                           "    s = " P "sum.dim_IntList(e, [-1], True)\n"
                           "    d = " P "sub.Tensor(e, s)\n    return (d,)\n",
                           &m),
                     0);
    ck_assert_int_eq(count(&a, &p, other,
                           "    e = " P "exp.default(x)\n"
                           "    s = " P "sum.dim_IntList(e, [-1], True)\n"
                           "    d = " P "div.Tensor(s, e)\n    return (d,)\n",
                           &m),
                     0);
    arena_free(&a);
}
END_TEST

START_TEST(one_argument_is_one_value) {
    Arena a = {0};
    Match m;
    const char *both = "x: \"" SQUARE "\", y: \"" SQUARE "\"";
    Pattern twice = pattern(&a, one_arg, 1, "x: \"" SQUARE "\"",
                            "    m = " P "mul.Tensor(x, x)\n    return (m,)\n");
    Pattern any =
        pattern(&a, two_args, 2, both, "    m = " P "mul.Tensor(x, y)\n    return (m,)\n");
    const char *body = "    m = " P "mul.Tensor(x, y)\n    return (m,)\n";
    ck_assert_int_eq(count(&a, &twice, both, body, &m), 0);
    ck_assert_int_eq(count(&a, &any, both, body, &m), 1);
    body = "    m = " P "mul.Tensor(y, y)\n    n = " P "mul.Tensor(m, y)\n    return (n,)\n";
    ck_assert_int_eq(count(&a, &twice, both, body, &m), 1);
    ck_assert_int_eq(count(&a, &any, both, body, &m), 2);
    arena_free(&a);
}
END_TEST

START_TEST(a_number_of_its_own_is_caught) {
    Arena a = {0};
    Match m;
    Pattern p = pattern(&a, one_arg, 1, "x: \"" SQUARE "\"",
                        "    g = " P "gt.Scalar(x, 0.125)\n    return (g,)\n");
    const char *body = "    g = " P "gt.Scalar(x, 0.75)\n    return (g,)\n";
    ck_assert_int_eq(count(&a, &p, "x: \"" SQUARE "\"", body, &m), 1);
    ck_assert_ptr_null(match_caught(&m, "number"));
    p.has_number = true;
    p.number = 0.125;
    ck_assert_int_eq(count(&a, &p, "x: \"" SQUARE "\"", body, &m), 1);
    ck_assert_double_eq(match_caught(&m, "number")->f, 0.75);
    Buf text = {.arena = &a};
    pattern_print(&text, &p);
    ck_assert_str_eq(buf_str(&text), "gt_Scalar = CallFunction(aten.gt.Scalar, KeywordArg('x'), "
                                     "KeywordArg('number'))\noutputs: gt_Scalar\n");
    arena_free(&a);
}
END_TEST

// The second output is no input of the first: it is among the users of what they share.
START_TEST(outputs_are_found_by_what_they_share) {
    Arena a = {0};
    Match m;
    Pattern p = pattern(&a, one_arg, 1, "x: \"" SQUARE "\"",
                        "    e = " P "exp.default(x)\n    n = " P "neg.default(e)\n"
                        "    s = " P "sin.default(e)\n    c = " P "cos.default(s)\n"
                        "    return (n, c)\n");
    const char *params = "x: \"" SQUARE "\"";
    ck_assert_int_eq(count(&a, &p, params,
                           "    e = " P "exp.default(x)\n    n = " P "neg.default(e)\n"
                           "    s = " P "sin.default(e)\n    c = " P "cos.default(s)\n"
                           "    r = " P "add.Tensor(n, c)\n    return (r,)\n",
                           &m),
                     1);
    ck_assert_str_eq(m.outputs[1]->name, "c");
    ck_assert_int_eq(m.nodes.n, 4);
    // s is used twice; and no cosine at all.
    ck_assert_int_eq(count(&a, &p, params,
                           "    e = " P "exp.default(x)\n    n = " P "neg.default(e)\n"
                           "    s = " P "sin.default(e)\n    c = " P "cos.default(s)\n"
                           "    r = " P "add.Tensor(n, c)\n    return (r, s)\n",
                           &m),
                     0);
    ck_assert_int_eq(count(&a, &p, params,
                           "    e = " P "exp.default(x)\n    n = " P "neg.default(e)\n"
                           "    s = " P "sin.default(e)\n    return (n, s)\n",
                           &m),
                     0);
    arena_free(&a);
}
END_TEST

START_TEST(no_match_across_a_write) {
    Arena a = {0};
    Match m;
    Pattern p = pattern(&a, one_arg, 1, "x: \"" SQUARE "\"",
                        "    e = " P "exp.default(x)\n    n = " P "neg.default(e)\n"
                        "    return (n,)\n");
    const char *params = "x: \"" SQUARE "\", y: \"" SQUARE "\"";
    ck_assert_int_eq(count(&a, &p, params,
                           "    e = " P "exp.default(x)\n    c = " P "copy_.default(x, y)\n"
                           "    n = " P "neg.default(e)\n    return (n, c)\n",
                           &m),
                     1);
    ck_assert(!match_in_one_region(&m));
    ck_assert_int_eq(count(&a, &p, params,
                           "    e = " P "exp.default(x)\n    n = " P "neg.default(e)\n"
                           "    c = " P "copy_.default(x, y)\n    return (n, c)\n",
                           &m),
                     1);
    ck_assert(match_in_one_region(&m));
    arena_free(&a);
}
END_TEST

// Attention

#define QKV(shape) "q: \"" shape "\", k: \"" shape "\", v: \"" shape "\""
#define F32        "f32[2, 3, 5, 4][60, 20, 4, 1]cpu"
#define F16        "f16[2, 3, 5, 4][60, 20, 4, 1]cpu"

typedef struct Case {
    const char *params, *body;
    bool training;
    int matches; // of pass_pattern_0
} Case;

#define SCORES "    t = k.transpose(-2, -1)\n    s = torch.matmul(q, t)\n"
#define PERMUTED                                                                                   \
    "    q = q.permute(0, 2, 1, 3)\n    k = k.permute(0, 2, 1, 3)\n"                               \
    "    v = v.permute(0, 2, 1, 3)\n"
#define OUT "    w = torch.softmax(x, dim = -1)\n    o = w @ v\n    return (o,)\n"

static const Case cases[] = {
    {QKV(F32), SCORES "    x = s / 2.0\n" OUT, false, 1},
    {QKV(F32), SCORES "    x = s / 2.0\n" OUT, true, 1},
    {QKV(F32), SCORES "    x = s * 3\n" OUT, true, 1},
    {QKV(F16), SCORES "    x = s / 2.0\n" OUT, true, 1},
    {QKV(F32), PERMUTED SCORES "    x = s / 2.0\n" OUT, true, 1},
    {QKV(F32) ", m: \"f32[5, 5][5, 1]cpu\"", SCORES "    y = s / 2.0\n    x = y + m\n" OUT, false,
     1},
    // Two in a row.
    {QKV(F32),
     SCORES "    x = s / 2.0\n    w = torch.softmax(x, dim = -1)\n    q1 = w @ v\n"
            "    t1 = k.transpose(-2, -1)\n    s1 = torch.matmul(q1, t1)\n    x1 = s1 * 0.5\n"
            "    w1 = torch.softmax(x1, dim = -1)\n    o = w1 @ v\n    return (o,)\n",
     true, 2},
    // Another user of the weights; the scale a tensor; scaled before the product; no softmax over
    // the product's result; a mask that wants a gradient; a number for a mask.
    {QKV(F32),
     SCORES "    x = s / 2.0\n    w = torch.softmax(x, dim = -1)\n    o = w @ v\n"
            "    return (o, w)\n",
     false, 0},
    {QKV(F32) ", c: \"f32[][]cpu\"", SCORES "    x = s / c\n" OUT, false, 0},
    {QKV(F32), "    q = q * 0.5\n" SCORES "    x = torch.relu(s)\n" OUT, false, 0},
    {QKV(F32), SCORES "    y = s / 2.0\n    x = torch.tanh(y)\n" OUT, true, 0},
    {QKV(F32) ", m: \"f32[5, 5][5, 1]cpu\"", SCORES "    y = s / 2.0\n    x = y + m\n" OUT, true,
     0},
    {QKV(F32), SCORES "    y = s / 2.0\n    x = y + 1.0\n" OUT, false, 0},
};

static int placeholders(Arena *a, const Graph *g) {
    Node **at;
    return graph_placeholders(g, &at, a);
}

static void run(Arena *a, const Graph *g, EagerRun *r) {
    Node **at;
    int n = graph_placeholders(g, &at, a);
    Diag d = {.arena = a};
    unsigned seed = 3;
    RtValue *in = ARENA_ARRAY(a, n, RtValue);
    for (int i = 0; i < n; i++) {
        const TensorMeta *m = node_tensor(at[i]);
        int64_t size[4] = {0};
        for (int k = 0; k < m->ndim; k++)
            size[k] = expr_int_or(m->size[k], 0);
        in[i].kind = RT_tensor;
        ck_assert(tensor_new(&in[i].tensor, m->dtype, m->ndim, size, &d));
        for (int64_t k = 0; k < tensor_numel(&in[i].tensor); k++) {
            seed = seed * 1664525u + 1013904223u;
            tensor_set_f64(&in[i].tensor, k, (double)(seed >> 16) / 32768.0 - 1.0);
        }
    }
    EagerCtx c = {.arena = a, .diag = &d, .threads = 1};
    *r = (EagerRun){.graph = g, .inputs = in, .n_inputs = n};
    ck_assert_msg(eager_run(&c, r), "%s", diag_first(&d));
    for (int i = 0; i < n; i++)
        rt_drop(&in[i]);
}

static void check_values(Arena *a, const Graph *before, const Graph *after, const char *what) {
    EagerRun x, y;
    run(a, before, &x);
    run(a, after, &y);
    ck_assert_int_eq(x.n_outputs, y.n_outputs);
    for (int i = 0; i < x.n_outputs; i++) {
        ck_assert_int_eq(x.outputs[i].kind, y.outputs[i].kind);
        if (x.outputs[i].kind != RT_tensor)
            continue;
        TensorDiff diff;
        bool half = x.outputs[i].tensor.dtype == DT_f16;
        tensor_diff(&y.outputs[i].tensor, &x.outputs[i].tensor, half ? 1e-2 : 1e-5,
                    half ? 1e-2 : 1e-5, &diff);
        ck_assert_msg(!diff.bad && !diff.nan_differs, "%s: output %d differs by %g", what, i,
                      diff.max_abs);
        rt_drop(&x.outputs[i]);
        rt_drop(&y.outputs[i]);
    }
}

static void check_case(const Case *c) {
    Arena a = {0};
    Diag d = {.arena = &a};
    Graph *g = parse(&a, sym_new(&a), c->params, c->body);
    bool *grads = ARENA_ARRAY(&a, placeholders(&a, g) + 1, bool);
    memset(grads, 1, (size_t)placeholders(&a, g));
    AotRequest req = {.graph = g,
                      .arena = &a,
                      .diag = &d,
                      .decomps = DECOMP_inductor,
                      .requires_grad = c->training ? grads : NULL};
    AotResult r = c->training ? aot_trace_joint(&req) : aot_trace_inference(&req);
    ck_assert_msg(r.graph != NULL, "%s", diag_first(&d));
    PassCtx ctx = {.arena = &a, .diag = &d, .inference = !c->training};
    Graph *before = pass_joint_noop_ops.run(&ctx, r.graph);
    ctx.origins = origins_new(&a);
    Graph *after = pass_pass_pattern_0.run(&ctx, before);
    ck_assert_msg(graph_verify(after, &d), "%s\n%s", diag_first(&d), c->body);
    ck_assert_msg(ctx.matches == c->matches, "%d matches, expected %d in\n%s", ctx.matches,
                  c->matches, c->body);
    int fused = 0;
    GRAPH_EACH (after, n) {
        bool backward =
            node_is(n, OP_aten__scaled_dot_product_flash_attention_for_cpu_backward_default);
        fused +=
            backward || node_is(n, OP_aten__scaled_dot_product_flash_attention_for_cpu_default);
        int links = 0;
        if (n->id >= before->by_id.n && n->op == FX_call_function) {
            const Link *l = origins_from(ctx.origins, n->id, &links);
            ck_assert_int_gt(links, 0);
            for (int i = 0; i < links; i++)
                ck_assert_int_eq(graph_by_id(before, l[i].item)->flags & NODE_backward,
                                 n->flags & NODE_backward);
        }
    }
    ck_assert_int_eq(fused, c->matches * (c->training ? 2 : 1));
    if (c->matches)
        check_values(&a, before, after, c->body);
    arena_free(&a);
}

START_TEST(attention_becomes_one_operator) {
    for (int i = 0; i < COUNT(cases); i++)
        check_case(&cases[i]);
}
END_TEST

static void check_count(const char *dtype, const char *fill, const char *pinned, int matches) {
    Arena a = {0};
    Diag d = {.arena = &a};
    const char *body = arena_printf(
        &a,
        "    f = " P "full.default([2, 3], %s, dtype = torch.%s, device = device(type='cpu'), "
        "pin_memory = %s)\n    c = " P "cumsum.default(f, -1)\n    return (c, f)\n",
        fill, dtype, pinned);
    Graph *g = parse(&a, sym_new(&a), "x: \"" SQUARE "\"", body);
    PassCtx ctx = {.arena = &a, .diag = &d, .origins = origins_new(&a), .inference = true};
    Graph *after = pass_post_grad_patterns.run(&ctx, g);
    ck_assert_msg(graph_verify(after, &d), "%s", diag_first(&d));
    ck_assert_int_eq(ctx.matches, matches);
    GRAPH_EACH (after, n)
        ck_assert(!matches || !node_is(n, OP_aten_cumsum_default));
    if (strcmp(pinned, "True") != 0) // there is no device to pin memory for
        check_values(&a, g, after, body);
    arena_free(&a);
}

START_TEST(a_running_sum_over_one_value_counts) {
    check_count("float32", "0.5", "False", 1);
    check_count("int64", "3", "False", 1);
    check_count("int32", "-2", "False", 1); // cumsum makes int64 of it
    check_count("bool", "True", "False", 0);
    check_count("bool", "3", "False", 0); // the tensor holds ones
    check_count("uint8", "-1", "False", 0);
    check_count("float32", "1", "True", 0);
}
END_TEST

Suite *suite_aot_pattern(void) {
    static const TTest *tests[9];
    tests[0] = all_patterns_are_traced;
    tests[8] = only_what_may_match_is_looked_for;
    tests[1] = constants_users_and_ops_decide;
    tests[2] = one_argument_is_one_value;
    tests[3] = a_number_of_its_own_is_caught;
    tests[4] = outputs_are_found_by_what_they_share;
    tests[5] = no_match_across_a_write;
    tests[6] = attention_becomes_one_operator;
    tests[7] = a_running_sum_over_one_value_counts;
    return unit_suite("aot_pattern", tests, 9);
}
