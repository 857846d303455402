// inductor_lower.c: post-grad passes and lowering against what PyTorch recorded:
// fx_graph_transformed.py from fx_graph_readable.py, and ir_pre_fusion.txt from the former, byte
// for byte.
#include "tests/unit/unit.h"

#include <stdio.h>
#include <string.h>

#include "core/aot/aot.h"
#include "core/base/file.h"
#include "core/inductor/scheduler.h"
#include "tests/unit/inductor_corpus.h"

typedef struct Case {
    Arena arena;
    Diag diag;
    Sym *sym;
    Decisions *decisions;
    InductorConfig config;
    const char *folder;
} Case;

static void case_begin(Case *c, const char *folder) {
    *c = (Case){.folder = folder, .config = inductor_config_default()};
    c->diag.arena = &c->arena;
    c->sym = sym_new(&c->arena);
    c->decisions = decisions_new(&c->arena, NULL);
}

static const Graph *read_graph(Case *c, const char *file) {
    FxDoc doc = {.arena = &c->arena};
    Str text = corpus_text(&c->arena, c->folder, file);
    bool ok = text.ptr && fx_parse(&doc, c->sym, text, file, &c->diag);
    ck_assert_msg(ok, "%s/%s: %s", c->folder, file, diag_first(&c->diag));
    return doc.at[0].graph;
}

static const Graph *run_passes(Case *c, const Graph *g) {
    for (int i = 0; i < n_post_grad_passes; i++) {
        const GraphPass *p = post_grad_passes[i];
        PassCtx ctx = {.arena = &c->arena,
                       .decisions = c->decisions,
                       .diag = &c->diag,
                       .origins = origins_new(&c->arena),
                       .inference = strstr(c->folder, "_inference_") != NULL};
        const Graph *out = p->run(&ctx, g);
        ck_assert_msg(out && graph_verify(out, &c->diag), "%s: %s: %s", c->folder, p->name,
                      diag_first(&c->diag));
        ck_assert_msg((out != g) == (ctx.matches > 0), "%s: %s: %d matches", c->folder, p->name,
                      ctx.matches);
        g = out;
    }
    return g;
}

static bool same(Case *c, Buf *got, const char *file) {
    Str want = corpus_text(&c->arena, c->folder, file);
    return want.ptr && want.len == got->len && !memcmp(want.ptr, buf_str(got), got->len);
}

static bool passes_agree(const char *folder) {
    Case c;
    case_begin(&c, folder);
    Buf out = {.arena = &c.arena};
    graph_print(&out, run_passes(&c, read_graph(&c, "fx_graph_readable.py")), &fx_style_readable,
                NULL);
    bool ok = same(&c, &out, "fx_graph_transformed.py");
    if (!ok)
        fprintf(stderr, "  passes differ: %s\n", folder);
    arena_free(&c.arena);
    return ok;
}

// ---- layouts of what forward saved: the text of a backward graph does not tell them

static TensorMeta *own_meta(Case *c, Node *n) {
    TensorMeta *m = meta_copy(&c->arena, n->val.tensor);
    n->val = val_tensor(m);
    return m;
}

// Dimensions from the fastest to the slowest.
static void lay_out(Case *c, Node *n, const int *fill) {
    TensorMeta *m = own_meta(c, n);
    const Expr *next = sym_int(c->sym, 1);
    for (int i = 0; i < m->ndim; i++) {
        m->stride[fill[i]] = next;
        next = sym_mul(c->sym, next, m->size[fill[i]]);
    }
}

// `NAME_layout = FixedLayout(…, stride=[…])` of the recorded loop IR.
static void read_layout(Case *c, Node *n, const char *dump) {
    const char *at = strstr(dump, arena_printf(&c->arena, "\n%s_layout = ", n->name));
    at = at ? strstr(at, "stride=[") : NULL;
    if (!at)
        return;
    TensorMeta *m = own_meta(c, n);
    at += strlen("stride=[");
    for (int i = 0; i < m->ndim; i++, at += strspn(at, ", "))
        m->stride[i] = sym_parse_prefix(c->sym, &at, (Place){0}, &c->diag);
}

// What only library kernels read has no such line: attention keeps the order of its query,
// convolutions their channels last.
static void saved_layouts(Case *c, const Graph *g) {
    static const int bshd[] = {3, 1, 2, 0}, sbhd[] = {3, 1, 0, 2}, nhwc[] = {1, 3, 2, 0};
    Str dump = corpus_text(&c->arena, c->folder, "ir_pre_fusion.txt");
    bool sequence_first = strstr(c->folder, "nn_encoder") != NULL;
    GRAPH_EACH(g, n)
    if (n->op == FX_placeholder && n->val.kind == VAL_tensor && dump.ptr)
        read_layout(c, n, dump.ptr);
    GRAPH_EACH(g, n) {
        bool attention =
            node_is(n, OP_aten__scaled_dot_product_flash_attention_for_cpu_backward_default);
        bool conv = node_is(n, OP_aten_convolution_backward_default);
        for (int i = 0; i < (attention ? 5 : conv ? 3 : 0); i++) {
            Node *in = n->args[i].node;
            if (in->op == FX_placeholder && (attention || i > 0))
                lay_out(c, in, conv ? nhwc : sequence_first ? sbhd : bshd);
        }
    }
}

static bool lowering_agrees(const char *folder) {
    Case c;
    case_begin(&c, folder);
    const Graph *g = read_graph(&c, "fx_graph_transformed.py");
    if (strstr(folder, "_backward_"))
        saved_layouts(&c, g);
    LowerRequest r = {.graph = g,
                      .arena = &c.arena,
                      .decisions = c.decisions,
                      .diag = &c.diag,
                      .config = &c.config};
    ScheduleRequest s = {
        .arena = &c.arena, .decisions = c.decisions, .diag = &c.diag, .config = &c.config};
    const IrModule *m = inductor_lower(&r);
    const Schedule *sched = m ? schedule_new(&s, m) : NULL;
    ck_assert_msg(sched != NULL, "%s: %s", folder, diag_first(&c.diag));
    Buf out = {.arena = &c.arena};
    schedule_print(&out, sched, NULL);
    bool ok = same(&c, &out, "ir_pre_fusion.txt");
    if (!ok)
        fprintf(stderr, "  loop IR differs: %s\n", folder);
    arena_free(&c.arena);
    return ok;
}

START_TEST(recorded_models) {
    Arena a = {0};
    const char **folders = NULL;
    int n = corpus_folders(&a, &folders), passes = 0, lowered = 0, expected = 0;
    for (int i = 0; i < n; i++) {
        if (!corpus_text(&a, folders[i], "fx_graph_transformed.py").ptr)
            continue;
        passes += passes_agree(folders[i]);
        lowered += lowering_agrees(folders[i]);
        expected++;
    }
    ck_assert_int_eq(passes, expected);
    ck_assert_int_eq(lowered, expected);
    arena_free(&a);
}
END_TEST

// ---- what the user asks for instead

static const char chain[] =
    "class <lambda>(torch.nn.Module):\n"
    "    def forward(self, arg0_1: \"f32[4, 6]\", arg1_1: \"f32[6]\"):\n"
    "        add: \"f32[4, 6]\" = torch.ops.aten.add.Tensor(arg0_1, arg1_1)\n"
    "        relu: \"f32[4, 6]\" = torch.ops.aten.relu.default(add)\n"
    "        mul: \"f32[4, 6]\" = torch.ops.aten.mul.Tensor(relu, 2)\n"
    "        return (mul,)\n";

static const IrModule *lower_chain(Case *c, const Overrides *o) {
    FxDoc doc = {.arena = &c->arena};
    c->decisions = decisions_new(&c->arena, o);
    bool ok = fx_parse(&doc, c->sym, (Str){chain, strlen(chain)}, "chain", &c->diag);
    ck_assert_msg(ok, "%s", diag_first(&c->diag));
    LowerRequest r = {.graph = doc.at[0].graph,
                      .arena = &c->arena,
                      .decisions = c->decisions,
                      .diag = &c->diag,
                      .config = &c->config};
    const IrModule *m = inductor_lower(&r);
    ck_assert_msg(m != NULL, "%s", diag_first(&c->diag));
    return m;
}

START_TEST(overridden) {
    Case c;
    case_begin(&c, "chain");
    Overrides *o = overrides_new(&c.arena);
    ck_assert_int_eq(lower_chain(&c, o)->ops.n, 1);
    decide_override(o, DECIDE_realize, "relu", true);
    const IrModule *m = lower_chain(&c, o);
    ck_assert_int_eq(m->ops.n, 2);
    ck_assert_str_eq(graph_by_id(m->graph, m->ops.at[0]->origin_node)->name, "relu");
    ck_assert_int_eq(m->ops.at[0]->origins.n, 2);   // add and relu
    ck_assert_int_eq(m->ops.at[1]->origins.n, 1);
    decide_clear_all(o);
    decide_override(o, DECIDE_lowering, "relu", false);
    m = lower_chain(&c, o);     // add, the call of relu and its result, mul
    ck_assert_int_eq(m->ops.n, 4);
    ck_assert_int_eq(m->ops.at[1]->cls, IR_fallback);
    ck_assert_str_eq(m->ops.at[1]->kernel, "torch.ops.aten.relu.default");
    arena_free(&c.arena);
}
END_TEST

// Each operation of a body tells the FX node that it is part of.
START_TEST(operations_have_origins) {
    Case c;
    case_begin(&c, "chain");
    const IrModule *m = lower_chain(&c, NULL);
    const LoopBlock *b = &m->ops.at[0]->body->blocks.at[0];
    static const struct {
        LoopOpKind kind;
        const char *node;
    } want[] = {{LOOP_add, "add"}, {LOOP_relu, "relu"}, {LOOP_mul, "mul"}, {LOOP_store, "mul"}};
    int found = 0;
    for (int i = 0; i < b->ops.n; i++)
        for (int k = 0; k < COUNT(want); k++)
            if (b->ops.at[i].kind == want[k].kind) {
                ck_assert_int_eq(b->ops.at[i].n_origins, 1);
                ck_assert_str_eq(graph_by_id(m->graph, b->ops.at[i].origins[0])->name,
                                 want[k].node);
                found++;
            }
    ck_assert_int_eq(found, COUNT(want));
    arena_free(&c.arena);
}
END_TEST

Suite *suite_inductor_lower(void) {
    Suite *s = suite_create("inductor_lower");
    TCase *t = tcase_create("recorded");
    tcase_set_timeout(t, 120);
    tcase_add_test(t, recorded_models);
    suite_add_tcase(s, t);
    t = tcase_create("asked for");
    tcase_add_test(t, overridden);
    tcase_add_test(t, operations_have_origins);
    suite_add_tcase(s, t);
    return s;
}
