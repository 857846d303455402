// post_grad_patterns.c: patterns of the second group of post-grad patterns (pass_patterns[1] of
// fx_passes/post_grad.py) that need no GPU and no autotuning: a running sum over one value counts,
// places of a permutation, and a concatenation with its own beginning.
#include "core/aot/joint.h"
#include "core/aot/pattern.h"
#include "core/inductor/post_grad.h"

// cumsum(full(shape, fill), dim).
typedef struct Count {
    const Value *shape, *fill;
    DType dtype;
    Device device;
    int dim;
} Count;

static bool is_static(const Value *list) {
    for (int i = 0; list && i < list->n; i++)
        if (list->at[i].kind != VAL_int)
            return false;
    return list && list->n;
}

static bool find_count(const Node *n, Count *c) {
    const Node *full = node_is(n, OP_aten_cumsum_default) && n->n_args == 2 && !n->n_kwargs &&
                               n->args[0].kind == VAL_node
                           ? n->args[0].node
                           : NULL;
    if (!full || !node_is(full, OP_aten_full_default) || full->n_args != 2)
        return false;
    const Value *dtype = node_arg(full, -1, "dtype"), *device = node_arg(full, -1, "device");
    const Value *pinned = node_arg(full, -1, "pin_memory");
    int64_t dim;
    if (!dtype || dtype->kind != VAL_dtype || !device || device->kind != VAL_device || !pinned ||
        pinned->kind != VAL_bool || pinned->b || !val_as_int(&n->args[1], &dim))
        return false;
    *c = (Count){&full->args[0], &full->args[1], dtype->dtype, device->device, (int)dim};
    bool number = c->fill->kind == VAL_int || c->fill->kind == VAL_float;
    if (dtype_is_int(c->dtype) || c->dtype == DT_b8) {
        // The tensor holds the number as it is.
        int64_t most = c->dtype == DT_b8 ? 1 : INT8_MAX;
        int64_t least = c->dtype == DT_b8 || c->dtype == DT_u8 ? 0 : INT8_MIN;
        number = c->fill->kind == VAL_int && c->fill->i >= least && c->fill->i <= most;
        c->dtype = DT_i64; // what cumsum makes of them
    }
    c->dim += c->dim < 0 ? c->shape->n : 0;
    return number && is_static(c->shape) && c->dim >= 0 && c->dim < c->shape->n;
}

static void put_value(Buf *b, const Value *v) {
    val_print(b, v, NULL, NULL);
}

// arange(1, n + 1) * fill, viewed along dim and expanded.
static Str text_of(Arena *a, const Count *c) {
    Buf b = {.arena = a};
    int64_t n = c->shape->at[c->dim].i;
    buf_printf(&b, "def forward(self):\n    i = torch.arange(1, %lld, device = ", (long long)n + 1);
    put_value(&b, &(Value){.kind = VAL_device, .device = c->device});
    buf_puts(&b, ", dtype = ");
    put_value(&b, &(Value){.kind = VAL_dtype, .dtype = c->dtype});
    buf_puts(&b, ")\n    m = i * ");
    put_value(&b, c->fill);
    buf_puts(&b, "\n    v = m.view([");
    for (int k = 0; k < c->shape->n; k++)
        buf_printf(&b, k ? ", %lld" : "%lld", k == c->dim ? (long long)n : 1LL);
    buf_puts(&b, "])\n    e = v.expand(");
    put_value(&b, c->shape);
    buf_puts(&b, ")\n    return (e,)\n");
    return (Str){buf_str(&b), b.len};
}

static bool replace_count(PassCtx *ctx, Node *n, const Count *c) {
    PatternSource src = {.name = "cumsum",
                         .text = text_of(ctx->arena, c),
                         .arena = ctx->arena,
                         .sym = n->graph->sym,
                         .decisions = ctx->decisions};
    Diag quiet = {.arena = ctx->arena};
    Graph *by = pattern_trace(&src, &quiet);
    if (!by)
        return false;
    // It stands for one node, so that its nodes have that node's place in the source.
    GRAPH_EACH (by, k) {
        k->stack = n->stack;
        k->modules = n->modules;
        k->original_aten = n->original_aten;
        k->flags = n->flags;
    }
    Pattern outs = {.graph = by}, one = {.n_outputs = 1};
    pattern_set_outputs(&outs, ctx->arena, 1);
    if (!outs.outputs[0])
        return false;
    Match m = {.pattern = &one, .outputs = &n};
    vec_push(ctx->arena, &m.nodes, n);
    Value output = val_node((Node *)(uintptr_t)outs.outputs[0]);
    pattern_splice(ctx, &m, by, NULL, &output);
    return true;
}

static const PostRewrite read_permuted = {OP_aten_index_Tensor, randperm_is_index,
                                          randperm_unsafe_index,
                                          "places of a permutation are inside"};
static const PostRewrite add_permuted = {OP_aten_index_put_default, randperm_is_index,
                                         randperm_unsafe_index,
                                         "places of a permutation are different and inside"};

static Graph *run(PassCtx *ctx, const Graph *given) {
    static const PostRewrite *const rules[] = {&post_grad_cat_slice_cat, &read_permuted,
                                               &add_permuted};
    given = post_grad_rewrite(ctx, given, "pass_pattern_1", rules, COUNT(rules));
    Count c;
    bool any = false;
    GRAPH_EACH (given, n)
        any = any || find_count(n, &c);
    if (!any || !pass_wanted(ctx, "pass_pattern_1"))
        return (Graph *)(uintptr_t)given;
    Graph *g = graph_copy(ctx->arena, given);
    for (const Node *old = given->last; old; old = old->prev) {
        Node *n = graph_by_id(g, old->id);
        if (n && find_count(n, &c) && rewrite_wanted(ctx, n, "a running sum over one value counts"))
            replace_count(ctx, n, &c);
    }
    return ctx->matches ? g : (Graph *)(uintptr_t)given;
}

const GraphPass pass_post_grad_patterns = {
    "pass_pattern_1",
    "a running sum over one value counts; cat_slice_cat; places of a permutation are not checked",
    run};
