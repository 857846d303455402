// ops_torch.c: calls of captured graphs against what PyTorch wrote beside them: each statement of
// the recorded Dynamo graphs resolves to operators whose metadata is the statement's annotation.
#include "tests/unit/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/file.h"
#include "core/fx/graph.h"
#include "core/ops/torch.h"

static Arena arena;

typedef struct Tally {
    int calls, matched, refused, differ;
} Tally;

static Value look(const Value *v, void *ctx) {
    (void)ctx;
    return v->node->val;
}

static Value yielded(const TorchResult *r, const Value *v) {
    int step;
    if (torch_step_ref(v, &step))
        return r->steps[step].val;
    if (v->kind == VAL_node)
        return v->node->val;
    for (int i = 0; v->kind == VAL_tuple && i < v->n; i++)
        v->at[i] = yielded(r, &v->at[i]);
    return *v;
}

static bool same(const Value *got, const Value *want) {
    if (want->kind != VAL_tensor)
        return true;
    if (got->kind != VAL_tensor)
        return false;
    const TensorMeta *a = got->tensor, *b = want->tensor;
    bool equal = a->dtype == b->dtype && a->ndim == b->ndim;
    for (int i = 0; equal && i < a->ndim; i++)
        equal = a->size[i] == b->size[i] && a->stride[i] == b->stride[i];
    return equal;
}

static Value settled(Arena *a, const Value *v) {
    if (v->kind == VAL_node)
        return v->node->val;
    if (v->kind != VAL_list && v->kind != VAL_tuple)
        return *v;
    Value list = val_list(a, v->kind, v->n);
    for (int i = 0; i < v->n; i++)
        list.at[i] = settled(a, &v->at[i]);
    return list;
}

static void report(Arena *a, const Node *n, const TorchResult *r, const Value *got,
                   const char *error) {
    if (!getenv("FX_REPORT"))
        return;
    Buf b = {.arena = a};
    node_print(&b, n, &fx_style_log);
    buf_puts(&b, "\n   ");
    for (int i = 0; i < r->n; i++)
        buf_printf(&b, " %s", r->steps[i].op->qualname + strlen("torch.ops."));
    buf_puts(&b, "\n    ");
    if (got->kind == VAL_tensor)
        meta_print(&b, got->tensor, true, true);
    buf_puts(&b, error);
    puts(buf_str(&b));
}

// The value that a tuple's item has, as Dynamo prints no annotation on tuples.
static void check_node(Arena *a, Node *n, Tally *t) {
    if (n->op != FX_call_function && n->op != FX_call_method)
        return;
    Diag d = {.arena = a};
    MetaCtx m = {.arena = a, .sym = n->graph->sym, .diag = &d};
    const char *kw[32];
    Value kwargs[32];
    for (int i = 0; i < n->n_kwargs; i++) {
        kw[i] = n->kwargs[i].name;
        kwargs[i] = n->kwargs[i].value;
    }
    TorchCall c = {.method = n->op == FX_call_method,
                   .target = n->target,
                   .args = n->args,
                   .n_args = n->n_args,
                   .kw = kw,
                   .kwargs = kwargs,
                   .n_kwargs = n->n_kwargs,
                   .look = look};
    TorchResult r;
    t->calls++;
    bool ok = ops_resolve_torch(&m, &c, &r);
    Value got = ok ? yielded(&r, &r.result) : val_none();
    if (!ok)
        t->refused++;
    else if (!same(&got, &n->val))
        t->differ++;
    else
        t->matched++;
    if (!ok || !same(&got, &n->val))
        report(a, n, &r, &got, diag_first(&d));
    if (n->val.kind == VAL_none)
        n->val = got;
}

// Statements that call operators: the meta function's result, strides and all.
static void check_op(Arena *a, Node *n, Tally *t) {
    if (n->op != FX_call_function || !n->def)
        return;
    Diag d = {.arena = a};
    MetaCtx m = {.arena = a, .sym = n->graph->sym, .diag = &d};
    Value *args = node_bound(n, a), got = val_none();
    for (int i = 0; i < n->def->n_args; i++)
        args[i] = settled(a, &args[i]);
    TorchResult none = {0};
    bool ok = op_meta(&m, n->def, args, &got);
    t->calls++;
    if (!ok)
        t->refused++;
    else if (!same(&got, &n->val))
        t->differ++;
    else
        t->matched++;
    if (!ok || !same(&got, &n->val))
        report(a, n, &none, &got, diag_first(&d));
    if (n->val.kind == VAL_none)
        n->val = got;
}

typedef void CheckNode(Arena *a, Node *n, Tally *t);

static void check_file(const char *path, CheckNode *check, Tally *t) {
    Arena a = {0};
    Diag d = {.arena = &a};
    Str text = file_read(&a, path, &d);
    FxDoc doc = {.arena = &a};
    ck_assert_msg(fx_parse(&doc, sym_new(&a), text, path, &d), "%s", diag_first(&d));
    for (int i = 0; i < doc.n; i++)
        GRAPH_EACH (doc.at[i].graph, n)
            check(&a, n, t);
    arena_free(&a);
}

static void check_folder(const char *root, const char *file, CheckNode *check, Tally *t) {
    Diag d = {.arena = &arena};
    int n = 0;
    if (!file_is_dir(root))
        return;
    char **names = dir_list(&arena, root, &n, &d);
    for (int i = 0; i < n; i++) {
        const char *path = path_join(&arena, path_join(&arena, root, names[i]), file);
        if (file_exists(path))
            check_file(path, check, t);
    }
}

static Tally check_all(const char *file, CheckNode *check) {
    Tally t = {0};
    static const char *const roots[] = {"tests/corpus", "../shared/corpus",
                                        "../shared/corpus_large"};
    for (int i = 0; i < COUNT(roots); i++)
        check_folder(roots[i], file, check, &t);
    if (getenv("FX_REPORT"))
        printf("%s: %d calls, %d matched, %d differ, %d refused\n", file, t.calls, t.matched,
               t.differ, t.refused);
    return t;
}

START_TEST(dynamo_graphs) {
    Tally t = check_all("graph_code.txt", check_node);
    ck_assert(t.calls > 0);
    ck_assert_int_eq(t.matched, t.calls);
}
END_TEST

START_TEST(aot_graphs) {
    Tally t = check_all("aot_graphs.txt", check_op), j = check_all("aot_joint_graph.txt", check_op);
    ck_assert(t.calls > 0);
    ck_assert_int_eq(t.matched + j.matched, t.calls + j.calls);
}
END_TEST

// Names that captured graphs of 68 models call, and the rest of torch, torch.nn.functional, Tensor,
// torch.linalg, torch.special and torch.nn.init, without those of sparse, quantized and device
// libraries and of Python objects.
START_TEST(names_are_known) {
    Diag d = {.arena = &arena};
    Str text = file_read(&arena, "tests/data/torch_names.txt", &d);
    ck_assert_msg(text.ptr != NULL, "%s", diag_first(&d));
    char *rest = arena_strndup(&arena, text.ptr, text.len), *line;
    int n = 0, unknown = 0;
    while ((line = strsep(&rest, "\n")) && *line) {
        bool method = str_starts(line, "method ");
        bool known = ops_knows_torch(method, method ? line + strlen("method ") : line);
        n++;
        unknown += !known;
        if (!known)
            printf("unknown: %s\n", line);
    }
    fflush(stdout);
    ck_assert_int_ge(n, 1200);
    ck_assert_int_eq(unknown, 0);
    arena_free(&arena);
}
END_TEST

Suite *suite_ops_torch(void) {
    const TTest *tests[] = {dynamo_graphs, aot_graphs, names_are_known};
    return unit_suite("ops_torch", tests, COUNT(tests));
}
