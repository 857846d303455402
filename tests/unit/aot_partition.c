// aot_partition.c: joint graphs as PyTorch logged them, through the joint passes and the
// partitioner, against the forward and backward graphs that it logged; and small ones by hand.
#include <stdlib.h>
#include <string.h>

#include "core/aot/aot.h"
#include "core/aot/partition.h"
#include "core/base/file.h"
#include "core/debug/diff.h"
#include "tests/unit/unit.h"

static const char *const roots[] = {"../shared/corpus", "../shared/corpus_large"};

static const char *printed(Arena *a, const Graph *g) {
    FxStyle style = fx_style_log;
    style.comments = false;
    style.bare = true;
    Buf b = {.arena = a};
    graph_print(&b, g, &style, NULL);
    return buf_str(&b);
}

// The k-th list of static inputs that the log tells of.
static bool *static_inputs(Arena *a, const char *log, int k) {
    bool *is_static = ARENA_ARRAY(a, 4096, bool);
    int last = -1;
    for (const char *p = strstr(log, "aot_config id: "); p; p = strstr(p + 1, "aot_config id: ")) {
        int id = atoi(p + strlen("aot_config id: "));
        if (id == last || (last = id, k-- > 0))
            continue;
        const char *list = strstr(p, "static_input_indices=[");
        ck_assert(list != NULL);
        for (list += strlen("static_input_indices=["); *list != ']';) {
            char *end;
            is_static[strtol(list, &end, 10)] = true;
            list = *end == ',' ? end + 1 : end;
        }
        break;
    }
    return is_static;
}

static const Graph *joint_passed(Arena *a, const Graph *g, Diag *d) {
    PassCtx *ctx = ARENA_NEW(a, PassCtx);
    for (int p = 0; p < n_joint_passes; p++) {
        *ctx = (PassCtx){.arena = a, .diag = d, .origins = origins_new(a)};
        g = joint_passes[p]->run(ctx, g);
        ck_assert_msg(graph_verify(g, d), "after %s: %s", joint_passes[p]->name, diag_first(d));
    }
    return g;
}

static PartitionRequest request(Arena *a, const Graph *joint, Diag *d) {
    int primals = 0;
    GRAPH_EACH (joint, n)
        primals += n->op == FX_placeholder && !strstr(n->target, "tangents");
    return (PartitionRequest){.joint = joint,
                              .n_fwd_outputs = graph_output_node(joint)->args[0].n - primals,
                              .partitioner = PARTITION_min_cut,
                              .forward_arena = a,
                              .backward_arena = a,
                              .arena = a,
                              .diag = d};
}

static int differences(Arena *a, const char *want, const char *got) {
    TextDiff t;
    text_diff(&t, a, want, got, false);
    return t.added + t.removed;
}

static int check_model(const char *root, const char *name, int *wrong) {
    Arena a = {0};
    Diag d = {.arena = &a};
    const char *dir = path_join(&a, root, name), *path = path_join(&a, dir, "aot_joint_graph.txt");
    if (!file_exists(path)) {
        arena_free(&a);
        return 0;
    }
    Sym *sym = sym_new(&a);
    FxDoc joint = {.arena = &a}, split = {.arena = &a};
    Str joint_text = file_read(&a, path, &d);
    Str log = file_read(&a, path_join(&a, dir, "aot_graphs.txt"), &d);
    ck_assert_msg(fx_parse(&joint, sym, joint_text, path, &d), "%s", diag_first(&d));
    ck_assert_msg(fx_parse(&split, sym, log, path, &d), "%s", diag_first(&d));
    int halves = 0;
    for (int i = 0; i < split.n; i++) {
        const char *title = split.at[i].graph->title;
        bool forward = strstr(title, "Forward") != NULL;
        if (!forward && !strstr(title, "Backward"))
            continue;
        ck_assert_int_lt(halves / 2, joint.n);
        // Tuples carry no annotation.
        graph_infer(joint.at[halves / 2].graph, &d);
        PartitionRequest r = request(&a, joint_passed(&a, joint.at[halves / 2].graph, &d), &d);
        r.is_static = static_inputs(&a, log.ptr, halves / 2);
        PartitionResult out = aot_partition(&r);
        ck_assert_msg(out.forward && out.backward, "%s: %s", name, diag_first(&d));
        ck_assert(graph_verify(out.forward, &d) && graph_verify(out.backward, &d));
        int n = differences(&a, printed(&a, split.at[i].graph),
                            printed(&a, forward ? out.forward : out.backward));
        *wrong += n > 0;
        halves++;
    }
    arena_free(&a);
    return halves;
}

START_TEST(corpus_as_logged) {
    Arena a = {0};
    Diag d = {.arena = &a};
    int graphs = 0, wrong = 0;
    for (int k = 0; k < COUNT(roots); k++) {
        int n = 0;
        char **names = file_is_dir(roots[k]) ? dir_list(&a, roots[k], &n, &d) : NULL;
        for (int i = 0; i < n; i++)
            graphs += check_model(roots[k], names[i], &wrong);
    }
    ck_assert_msg(!wrong, "%d of %d graphs differ", wrong, graphs);
    arena_free(&a);
}
END_TEST

// ---- small graphs

#define FWD(params)   "def forward(self, " params "):\n"
#define T(name, size) #name ": \"f32[" size "]\""
#define ATEN          "torch.ops.aten."

typedef struct Small {
    Arena a;
    Diag d;
    Graph *g;
    PartitionConfig config;
    Overrides *wishes;
    PartitionResult out;
} Small;

static Small *small_new(const char *text) {
    static Small s;
    s = (Small){.config = partition_config_default};
    s.d.arena = &s.a;
    s.wishes = overrides_new(&s.a);
    FxDoc doc = {.arena = &s.a};
    ck_assert_msg(fx_parse(&doc, sym_new(&s.a), (Str){text, strlen(text)}, "small", &s.d), "%s",
                  diag_first(&s.d));
    s.g = doc.at[0].graph;
    graph_infer(s.g, &s.d);
    return &s;
}

static void split(Small *s, Partitioner kind) {
    PartitionRequest r = request(&s->a, s->g, &s->d);
    r.partitioner = kind;
    r.config = &s->config;
    r.decisions = decisions_new(&s->a, s->wishes);
    s->out = aot_partition(&r);
    ck_assert_msg(s->out.forward && s->out.backward, "%s", diag_first(&s->d));
    ck_assert_msg(graph_verify(s->out.forward, &s->d) && graph_verify(s->out.backward, &s->d), "%s",
                  diag_first(&s->d));
}

// Names of what is kept, or of what is recomputed, with blanks between.
static const char *names(Small *s, bool recomputed) {
    Buf b = {.arena = &s->a};
    for (int k = 0; k < s->out.n_values; k++)
        if (s->out.values[k].recomputed == recomputed)
            buf_printf(&b, "%s%s", b.len ? " " : "",
                       graph_by_id(s->g, s->out.values[k].node)->name);
    return buf_str(&b);
}

static const char *order(Small *s, const Graph *g) {
    Buf b = {.arena = &s->a};
    GRAPH_EACH (g, n)
        buf_printf(&b, "%s%s", b.len ? " " : "", n->name);
    return buf_str(&b);
}

static const char *why(const Small *s, const char *name) {
    for (int k = 0; k < s->out.n_values; k++)
        if (!strcmp(graph_by_id(s->g, s->out.values[k].node)->name, name))
            return s->out.values[k].why;
    return "";
}

static const char tie[] = FWD(T(primals_1, "4, 1") ", " T(primals_2, "1, 1") ", " T(
    tangents_1, "1, 1")) "    m = " ATEN "mm.default(primals_1, primals_2)\n"
                         "    a = " ATEN "sum.dim_IntList(m, [0], True)\n"
                         "    b = " ATEN "cos.default(a)\n"
                         "    c = " ATEN "mm.default(b, primals_2)\n"
                         "    g = " ATEN "mul.Tensor(tangents_1, b)\n"
                         "    return (c, g, None)\n";

START_TEST(of_equal_cuts_the_nearest_to_backward) {
    Small *s = small_new(tie);
    split(s, PARTITION_min_cut);
    // a and b cost 4 * 1.1^2 and 4 * 1.1 bytes, both 4 as integers; m costs 21.
    ck_assert_str_eq(names(s, false), "b");
    ck_assert_str_eq(names(s, true), "");
    ck_assert_str_eq(order(s, s->out.forward), "primals_1 primals_2 m a b c output");
    ck_assert_str_eq(order(s, s->out.backward), "b tangents_1 g output");
    ck_assert_int_eq(s->out.saved_bytes, 4);
    const Value *out = &graph_output_node(s->out.forward)->args[0];
    ck_assert(out->kind == VAL_tuple && out->n == 2 && !strcmp(out->at[1].node->name, "b"));
    out = &graph_output_node(s->out.backward)->args[0];
    ck_assert(out->n == 2 && out->at[0].kind == VAL_node && out->at[1].kind == VAL_none);
    arena_free(&s->a);
}
END_TEST

START_TEST(the_default_partitioner_keeps_what_backward_uses) {
    Small *s = small_new(tie);
    split(s, PARTITION_default);
    ck_assert_str_eq(names(s, false), "b");
    arena_free(&s->a);
    s = small_new(FWD(T(primals_1, "8, 8") ", " T(
        tangents_1, "8, 8")) "    a = " ATEN "sin.default(primals_1)\n"
                             "    v = " ATEN
                             "var_mean.correction(a, [1], correction = 0, keepdim = True)\n"
                             "    q = v[0]\n"
                             "    u = v[1]\n"
                             "    d = " ATEN "sub.Tensor(a, u)\n"
                             "    g = " ATEN "mul.Tensor(tangents_1, q)\n"
                             "    h = " ATEN "cos.default(primals_1)\n"
                             "    i = " ATEN "mul.Tensor(g, h)\n"
                             "    return (d, i)\n");
    split(s, PARTITION_default);
    // Backward begins at g, so that h is its own; u serves forward only.
    ck_assert_str_eq(names(s, false), "primals_1 q");
    ck_assert_str_eq(order(s, s->out.forward), "primals_1 a v q u d output");
    ck_assert_str_eq(order(s, s->out.backward), "primals_1 q tangents_1 g h i output");
    arena_free(&s->a);
}
END_TEST

START_TEST(reasons_to_keep) {
    Small *s = small_new(FWD(T(primals_1, "64, 64") ", " T(
        tangents_1, "64, 64")) "    n = " ATEN "mm.default(primals_1, primals_1)\n"
                               "    r = " ATEN "sum.dim_IntList(n, [1], True)\n"
                               "    e = " ATEN "exp.default(n)\n"
                               "    s = " ATEN "mul.Tensor(e, r)\n"
                               "    o = " ATEN "mm.default(s, n)\n"
                               "    g = " ATEN "mm.default(tangents_1, e)\n"
                               "    h = " ATEN "mul.Tensor(g, r)\n"
                               "    i = " ATEN "mul.Tensor(h, n)\n"
                               "    return (o, i)\n");
    split(s, PARTITION_min_cut);
    ck_assert_str_eq(names(s, false), "n r e");
    ck_assert_str_eq(why(s, "n"), "not in recomputable ops");
    ck_assert_str_eq(why(s, "r"), "reduction op");
    ck_assert_str_eq(why(s, "e"), "materialized in backward");
    s->config.ban_recompute_reductions = s->config.ban_recompute_materialized_backward = false;
    split(s, PARTITION_min_cut);
    // Nothing but the cut speaks: r and e are made of n, which is kept in any case.
    ck_assert_str_eq(names(s, false), "n");
    ck_assert_str_eq(names(s, true), "e r");
    // From the first use of a tangent on: what backward computes again comes where it is needed.
    ck_assert_str_eq(order(s, s->out.backward), "n tangents_1 e g r h i output");
    s->config.aggressive_recomputation = true;
    split(s, PARTITION_min_cut);
    ck_assert_str_eq(why(s, "n"), "compute intensive op");
    arena_free(&s->a);
}
END_TEST

// A chain of n sines, each used in backward; its end is kept for a product.
static Small *chain(int n) {
    Arena tmp = {0};
    Buf b = {.arena = &tmp};
    buf_puts(&b, FWD(T(primals_1, "8, 8") ", " T(tangents_1, "8, 8")));
    for (int i = 0; i < n; i++)
        buf_printf(&b, "    s%d = " ATEN "sin.default(%s%d)\n", i, i ? "s" : "primals_",
                   i ? i - 1 : 1);
    buf_printf(&b, "    o = " ATEN "mm.default(s%d, primals_1)\n", n - 1);
    for (int i = n - 1; i >= 0; i--)
        buf_printf(&b, "    g%d = " ATEN "mul.Tensor(%s%d, s%d)\n", i,
                   i == n - 1 ? "tangents_" : "g", i == n - 1 ? 1 : i + 1, i);
    buf_puts(&b, "    return (o, g0)\n");
    Small *s = small_new(buf_str(&b));
    arena_free(&tmp);
    return s;
}

START_TEST(long_chains_are_cut) {
    Small *s = chain(250);
    split(s, PARTITION_min_cut);
    // A walk starts at s0, since an input fuses with nothing, and bans what lies more than a
    // hundred nodes behind; the next one starts behind that.
    ck_assert_str_eq(names(s, false), "primals_1 s101 s203");
    ck_assert_str_eq(why(s, "s101"), "end of a long fusible chain");
    s->config.ban_recompute_long_fusible_chains = false;
    split(s, PARTITION_min_cut);
    ck_assert_str_eq(names(s, false), "primals_1");
    arena_free(&s->a);
}
END_TEST

START_TEST(equal_calls_become_one) {
    Small *s = small_new(FWD(T(primals_1, "8, 8") ", " T(
        tangents_1, "8, 8")) "    a = " ATEN "sum.dim_IntList(primals_1, [-1])\n"
                             "    b = " ATEN "sum.dim_IntList(primals_1, [-2])\n"
                             "    c = " ATEN "sum.dim_IntList(primals_1, [-2])\n"
                             "    d = " ATEN "sum.dim_IntList(primals_1, [-1])\n"
                             "    e = " ATEN "add.Tensor(a, b)\n"
                             "    f = " ATEN "add.Tensor(c, d)\n"
                             "    r1 = " ATEN "rand_like.default(primals_1)\n"
                             "    r2 = " ATEN "rand_like.default(primals_1)\n"
                             "    x = " ATEN "mul.Tensor(r1, r2)\n"
                             "    y = " ATEN "mul.Scalar(x, 1)\n"
                             "    z = " ATEN "mul.Scalar(x, 1.0)\n"
                             "    k = " ATEN "add.Tensor(y, z)\n"
                             "    l = " ATEN "add.Tensor(k, e)\n"
                             "    o = " ATEN "add.Tensor(l, f)\n"
                             "    o2 = " ATEN "add.Tensor(l, f)\n"
                             "    g = " ATEN "mul.Tensor(tangents_1, 2)\n"
                             "    return (o, g)\n");
    split(s, PARTITION_min_cut);
    // Python's hash takes -1 for -2, so that [-2] never finds its like behind [-1]; numbers of
    // another type are others; random ops and what is returned stay.
    ck_assert_str_eq(order(s, s->out.forward), "primals_1 a b c e f r1 r2 x y z k l o output");
    arena_free(&s->a);
}
END_TEST

START_TEST(sizes_go_last_and_come_first) {
    Small *s = small_new("def forward(self, primals_1: \"Sym(s77)\", primals_2: \"f32[s77, 8]\", "
                         "primals_3: \"f32[8, 8]\", tangents_1: \"f32[s77, 8]\"):\n"
                         "    a: \"f32[s77, 8]\" = " ATEN "mm.default(primals_2, primals_3)\n"
                         "    v: \"f32[8*s77]\" = " ATEN "view.default(a, [-1])\n"
                         "    n: \"Sym(8*s77)\" = primals_1 * 8\n"
                         "    w: \"f32[s77, 8]\" = " ATEN "sin.default(a)\n"
                         "    t: \"f32[8*s77]\" = " ATEN "view.default(tangents_1, [n])\n"
                         "    g: \"f32[8*s77]\" = " ATEN "mul.Tensor(t, v)\n"
                         "    h: \"f32[s77, 8]\" = " ATEN "view.default(g, [primals_1, 8])\n"
                         "    return (w, None, h, None)\n");
    sym_set_hint(s->g->sym, sym_symbol(s->g->sym, "s77"), 6);
    split(s, PARTITION_min_cut);
    // n is computed again from the symbol, which backward needs anyway.
    ck_assert_str_eq(names(s, false), "a primals_1");
    ck_assert_str_eq(order(s, s->out.backward), "primals_1 a tangents_1 n t v g h output");
    ck_assert(s->out.values[1].is_size && s->out.values[1].is_input);
    ck_assert_int_eq(s->out.saved_bytes, 6 * 8 * 4);
    const Value *out = &graph_output_node(s->out.forward)->args[0];
    ck_assert(out->n == 3 && !strcmp(out->at[2].node->name, "primals_1"));
    // The default partitioner keeps every size of forward that backward uses.
    split(s, PARTITION_default);
    ck_assert_str_eq(order(s, s->out.backward), "primals_1 n v tangents_1 t g h output");
    arena_free(&s->a);
}
END_TEST

static void wish(Small *s, const char *name, bool keep) {
    decide_override(s->wishes, DECIDE_save, name, keep);
}

static const char dropout[] = FWD(T(primals_1, "8, 8") ", " T(primals_2, "8, 8") ", " T(
    tangents_1, "8, 8")) "    a = " ATEN "mm.default(primals_1, primals_2)\n"
                         "    r = " ATEN "rand_like.default(a)\n"
                         "    b = " ATEN "sin.default(a)\n"
                         "    v = " ATEN "topk.default(b, 1)\n"
                         "    q = v[0]\n"
                         "    m = " ATEN "mul.Tensor(b, r)\n"
                         "    n = " ATEN "mul.Tensor(m, q)\n"
                         "    o = " ATEN "mm.default(n, a)\n"
                         "    g = " ATEN "mul.Tensor(tangents_1, b)\n"
                         "    h = " ATEN "mul.Tensor(g, r)\n"
                         "    i = " ATEN "mul.Tensor(h, q)\n"
                         "    return (o, i, None)\n";

START_TEST(the_user_pins) {
    Small *s = small_new(dropout);
    split(s, PARTITION_min_cut);
    ck_assert_str_eq(names(s, false), "r b q");
    wish(s, "a", true);
    split(s, PARTITION_min_cut);
    ck_assert_str_eq(names(s, false), "a r q");
    ck_assert_str_eq(names(s, true), "b");
    ck_assert_str_eq(why(s, "a"), "pinned");
    // A costly op again from the inputs, an item of a tuple by its op.
    decide_clear_all(s->wishes);
    wish(s, "a", false);
    wish(s, "b", false);
    wish(s, "q", false);
    split(s, PARTITION_min_cut);
    ck_assert_str_eq(names(s, false), "primals_1 primals_2 r");
    ck_assert_str_eq(names(s, true), "a b v q");
    split(s, PARTITION_default);
    ck_assert_str_eq(names(s, false), "primals_1 primals_2 r");
    ck_assert_str_eq(order(s, s->out.backward),
                     "primals_1 primals_2 r tangents_1 a b g h v q i output");
    ck_assert_int_eq(s->d.n, 0);
    arena_free(&s->a);
}
END_TEST

START_TEST(pins_that_cannot_be_are_refused) {
    Small *s = small_new(dropout);
    split(s, PARTITION_min_cut);
    const char *plain = names(s, false);
    wish(s, "primals_1", false);
    wish(s, "r", false);
    wish(s, "o", true);
    wish(s, "v", true);
    split(s, PARTITION_min_cut);
    ck_assert_str_eq(names(s, false), plain);
    ck_assert_int_eq(s->d.n, 4);
    ck_assert_int_eq(s->d.errors, 0);
    ck_assert_str_eq(s->d.at[0].text, "cannot recompute 'primals_1': it is an input of the graph");
    ck_assert_str_eq(s->d.at[1].text, "cannot recompute 'r': a random op would draw other numbers");
    ck_assert_str_eq(s->d.at[2].text,
                     "cannot save 'v': it is no tensor: expected one of its items");
    ck_assert_str_eq(s->d.at[3].text, "cannot save 'o': backward does not need it");
    arena_free(&s->a);
}
END_TEST

START_TEST(a_bisection_takes_savings_back) {
    Small *s = small_new(dropout);
    decide_limit(s->wishes, DECIDE_save, 1);
    split(s, PARTITION_min_cut);
    // r is random and no choice. Of b and q only the first stays.
    ck_assert_str_eq(names(s, false), "r b");
    ck_assert_int_eq(s->d.n, 0);
    arena_free(&s->a);
}
END_TEST

START_TEST(random_ops_are_never_done_twice) {
    Small *s = small_new(dropout);
    s->config.activation_memory_budget = 0;
    split(s, PARTITION_min_cut);
    ck_assert_str_eq(names(s, false), "primals_1 primals_2 r");
    s->config.activation_memory_budget = 1;
    s->config.aggressive_recomputation = true;
    split(s, PARTITION_min_cut);
    ck_assert_str_eq(why(s, "r"), "random op");
    arena_free(&s->a);
}
END_TEST

START_TEST(budgets) {
    Small *s = small_new(FWD(T(primals_1, "16, 16") ", " T(primals_2, "16, 16") ", " T(
        tangents_1, "16, 16")) "    a = " ATEN "mm.default(primals_1, primals_2)\n"
                               "    b = " ATEN "mm.default(a, primals_2)\n"
                               "    c = " ATEN "cumsum.default(b, 0)\n"
                               "    d = " ATEN "mm.default(c, primals_2)\n"
                               "    e = " ATEN "mm.default(d, primals_2)\n"
                               "    g = " ATEN "mul.Tensor(tangents_1, d)\n"
                               "    h = " ATEN "mul.Tensor(g, c)\n"
                               "    i = " ATEN "mul.Tensor(h, b)\n"
                               "    j = " ATEN "mul.Tensor(i, a)\n"
                               "    return (e, j, None)\n");
    split(s, PARTITION_min_cut);
    ck_assert_str_eq(names(s, false), "a b c d");
    ck_assert_int_eq(s->out.budget_bytes[0], 2 * 1024);
    ck_assert_int_eq(s->out.budget_bytes[1], 4 * 1024);
    ck_assert_int_eq(s->out.budget_bytes[2], 4 * 1024);
    s->config.activation_memory_budget = 0;
    split(s, PARTITION_min_cut);
    ck_assert_str_eq(names(s, false), "primals_1 primals_2");
    ck_assert_int_eq(s->out.budget_bytes[2], 2 * 1024);
    // More budget never keeps less.
    int64_t last = 0;
    for (int percent = 0; percent <= 100; percent += 5)
        for (int solver = 0; solver < 2; solver++) {
            s->config.activation_memory_budget = percent / 100.0;
            s->config.solver = solver ? KNAPSACK_greedy : KNAPSACK_dp;
            split(s, PARTITION_min_cut);
            ck_assert_int_ge(s->out.budget_bytes[2], last);
            last = s->out.budget_bytes[2];
        }
    s->config.activation_memory_budget = 1.5;
    PartitionRequest r = request(&s->a, s->g, &s->d);
    r.config = &s->config;
    ck_assert_ptr_null(aot_partition(&r).forward);
    ck_assert_str_eq(diag_first(&s->d), "activation_memory_budget is 1.5: expected 0 to 1");
    arena_free(&s->a);
}
END_TEST

START_TEST(writes_stay_on_their_side) {
    Small *s = small_new(FWD(T(primals_1, "8, 8") ", " T(primals_2, "8, 8") ", " T(
        tangents_1, "8, 8")) "    a = " ATEN "mul.Tensor(primals_1, 2)\n"
                             "    b = " ATEN "sin.default(a)\n"
                             "    c = " ATEN "cos.default(primals_2)\n"
                             "    g = " ATEN "mul.Tensor(tangents_1, b)\n"
                             "    w1 = " ATEN "copy_.default(primals_1, a)\n"
                             "    w2 = " ATEN "copy_.default(primals_2, c)\n"
                             "    return (b, w2, g, None)\n");
    graph_find(s->g, "w1")->flags |= NODE_must_be_in_forward;
    graph_find(s->g, "w2")->flags |= NODE_must_be_in_backward;
    split(s, PARTITION_min_cut);
    ck_assert_str_eq(order(s, s->out.forward), "primals_1 primals_2 a b w1 output");
    // It needs no tangent, and yet it is carried out, before everything else.
    ck_assert_str_eq(order(s, s->out.backward), "primals_2 b tangents_1 g c w2 output");
    // What is written in backward only is in forward what it was.
    const Value *out = &graph_output_node(s->out.forward)->args[0];
    ck_assert_str_eq(out->at[1].node->name, "primals_2");
    arena_free(&s->a);
}
END_TEST

START_TEST(checkpointing) {
    Small *s = small_new(FWD(T(primals_1, "8, 8") ", " T(
        tangents_1, "8, 8")) "    a = " ATEN "mm.default(primals_1, primals_1)\n"
                             "    b = " ATEN "mm.default(a, primals_1)\n"
                             "    c = " ATEN "mm.default(b, primals_1)\n"
                             "    d = " ATEN "sin.default(c)\n"
                             "    e = " ATEN "mm.default(d, primals_1)\n"
                             "    g = " ATEN "mul.Tensor(tangents_1, d)\n"
                             "    h = " ATEN "mul.Tensor(g, b)\n"
                             "    i = " ATEN "mul.Tensor(h, a)\n"
                             "    return (e, i)\n");
    const char *const inside[] = {"a", "b", "c"};
    for (int i = 0; i < COUNT(inside); i++) {
        graph_find(s->g, inside[i])->flags |= NODE_must_recompute;
        graph_find(s->g, inside[i])->ac_graph_id = i < 2 ? 1 : 2;
    }
    graph_find(s->g, "d")->flags |= NODE_must_save;
    split(s, PARTITION_min_cut);
    // b passes from the first region into the second: it is kept.
    ck_assert_str_eq(names(s, false), "primals_1 b d");
    ck_assert_str_eq(why(s, "b"), "marked MUST_SAVE");
    ck_assert_str_eq(why(s, "a"), "must recompute: marked by checkpoint policy");
    split(s, PARTITION_default);
    ck_assert_str_eq(names(s, false), "primals_1 b d");
    arena_free(&s->a);
}
END_TEST

START_TEST(strange_graphs) {
    // No tangent: nothing belongs to backward.
    Small *s = small_new(FWD(T(primals_1, "8")) "    a = " ATEN "sin.default(primals_1)\n"
                                                "    return (a, None)\n");
    split(s, PARTITION_min_cut);
    ck_assert_int_eq(s->out.n_saved, 0);
    ck_assert_str_eq(order(s, s->out.backward), "output");
    arena_free(&s->a);
    // No outputs at all, and a tangent that is handed through.
    s = small_new(FWD(T(primals_1, "8") ", " T(tangents_1, "8")) "    return (tangents_1,)\n");
    split(s, PARTITION_min_cut);
    ck_assert_str_eq(order(s, s->out.forward), "primals_1 output");
    ck_assert_str_eq(order(s, s->out.backward), "tangents_1 output");
    arena_free(&s->a);
    s = small_new("def forward(self):\n    return ()\n");
    split(s, PARTITION_min_cut);
    split(s, PARTITION_default);
    arena_free(&s->a);
    // A gradient that depends on no tangent: as cheap to keep as the input, and nearer.
    s = small_new(
        FWD(T(primals_1, "8") ", " T(tangents_1, "8")) "    a = " ATEN "sin.default(primals_1)\n"
                                                       "    z = " ATEN "cos.default(primals_1)\n"
                                                       "    g = " ATEN
                                                       "mul.Tensor(tangents_1, primals_1)\n"
                                                       "    return (primals_1, a, z)\n");
    split(s, PARTITION_min_cut);
    ck_assert_str_eq(order(s, s->out.backward), "z tangents_1 output");
    arena_free(&s->a);
    // Broken ones.
    s = small_new(
        FWD(T(primals_1, "8") ", " T(tangents_1, "8")) "    g = " ATEN
                                                       "mul.Tensor(tangents_1, primals_1)\n"
                                                       "    return (g, None)\n");
    PartitionRequest r = request(&s->a, s->g, &s->d);
    ck_assert_ptr_null(aot_partition(&r).forward);
    ck_assert_str_eq(diag_first(&s->d),
                     "'g' is an output of the forward graph, but cannot be computed there");
    r.n_fwd_outputs = 3;
    ck_assert_ptr_null(aot_partition(&r).forward);
    arena_free(&s->a);
    s = small_new(FWD(T(primals_1, "8")) "    return primals_1\n");
    r = (PartitionRequest){.joint = s->g, .arena = &s->a, .diag = &s->d};
    ck_assert_ptr_null(aot_partition(&r).forward);
    arena_free(&s->a);
}
END_TEST

Suite *suite_aot_partition(void) {
    const TTest *const tests[] = {corpus_as_logged,
                                  of_equal_cuts_the_nearest_to_backward,
                                  the_default_partitioner_keeps_what_backward_uses,
                                  reasons_to_keep,
                                  long_chains_are_cut,
                                  equal_calls_become_one,
                                  sizes_go_last_and_come_first,
                                  the_user_pins,
                                  pins_that_cannot_be_are_refused,
                                  a_bisection_takes_savings_back,
                                  random_ops_are_never_done_twice,
                                  budgets,
                                  writes_stay_on_their_side,
                                  checkpointing,
                                  strange_graphs};
    return unit_suite("aot_partition", tests, COUNT(tests));
}
