// higher_attention.c: flex_attention in the tracer, as PyTorch's eager math computes it
// (torch/_higher_order_ops/flex_attention.py): all scores, through the graph of scores, hidden
// where the graph of the mask says so. The graphs are written for one score; they run once on all,
// with the indices of batch, head, query and key as tensors that are broadcast.
#include <math.h>

#include "core/aot/nested.h"

typedef struct Attention {
    Run *r;
    Value q, k, v, scale;
    Value index[4]; // of batch, head, query, key
} Attention;

// One value, which a graph may return in a list.
static Value through(Attention *a, const Graph *g, const Value *score, const Value *more) {
    Trace *t = &a->r->t;
    Value in = score ? values_joined(t, VAL_tuple, score, 1, a->index, 4)
                     : values_joined(t, VAL_tuple, a->index, 4, NULL, 0);
    in = values_joined(t, VAL_tuple, in.at, in.n, more->at, more->n);
    Value out;
    if (t->failed || !run_body(a->r, g, in.at, in.n, &out))
        return NONE;
    return (out.kind == VAL_tuple || out.kind == VAL_list) && out.n == 1 ? out.at[0] : out;
}

// 0, 1, … along dimension d of four.
static Value counted(Trace *t, const TensorMeta *m, int d) {
    Value x = CALL(t, aten_arange_default, val_sym(m->size[d]), val_dtype(DT_i32));
    for (int i = d; i < 3 && !t->failed; i++)
        x = CALL(t, aten_unsqueeze_default, x, INT(-1));
    return x;
}

// Heads of keys and values stand for as many of the queries.
static bool repeat_heads(Attention *a) {
    Trace *t = &a->r->t;
    int64_t many, few;
    if (sym_known_eq(t->sym, a->q.tensor->size[1], a->k.tensor->size[1]))
        return true;
    if (!expr_int(a->q.tensor->size[1], &many) || !expr_int(a->k.tensor->size[1], &few) || !few ||
        many % few)
        return false;
    a->k = CALL(t, aten_repeat_interleave_self_int, a->k, INT(many / few), INT(1));
    a->v = CALL(t, aten_repeat_interleave_self_int, a->v, INT(many / few), INT(1));
    return !t->failed;
}

static Value scores(Attention *a) {
    Trace *t = &a->r->t;
    Value turned = CALL(t, aten_transpose_int, a->k, INT(-2), INT(-1));
    Value s = CALL(t, aten_matmul_default, a->q, turned);
    if (!t->failed && dtype_is_low(s.tensor->dtype))
        s = CALL(t, aten_to_dtype, s, val_dtype(DT_f32));
    s = CALL(t, aten_mul_Tensor, s, a->scale);
    for (int d = 0; d < 4 && !t->failed; d++)
        a->index[d] = counted(t, s.tensor, d);
    return s;
}

// Output, logarithm (to base 2) of the sum, largest score.
static Value results(Attention *a, Value s) {
    Trace *t = &a->r->t;
    Value last = val_list(t->arena, VAL_list, 1), out = val_list(t->arena, VAL_tuple, 3);
    last.at[0] = INT(-1);
    Value weights = CALL(t, aten__safe_softmax_default, s, INT(-1));
    if (!t->failed && weights.tensor->dtype != a->q.tensor->dtype)
        weights = CALL(t, aten_to_dtype, weights, val_dtype(a->q.tensor->dtype));
    out.at[0] = CALL(t, aten_matmul_default, weights, a->v);
    out.at[1] = CALL(t, aten_div_Tensor, CALL(t, aten_logsumexp_default, s, last), FLT(log(2.0)));
    out.at[2] = CALL(t, aten_div_Tensor, CALL(t, aten_amax_default, s, last), FLT(log(2.0)));
    return out;
}

// (query, key, value, score graph, block mask, scale, options, buffers of the scores' graph, and of
// the mask's); the last of the block mask is its graph.
bool higher_attention(Run *r, const Higher *h, Value *out) {
    Trace *t = &r->t;
    const Value *args = h->args, none = {.kind = VAL_tuple};
    if (h->n_args < 6 || (args[4].kind != VAL_tuple && args[4].kind != VAL_list) || !args[4].n ||
        args[4].at[args[4].n - 1].kind != VAL_graph)
        return false;
    for (int i = 0; i < 3; i++)
        if (args[i].kind != VAL_tensor || args[i].tensor->ndim != 4)
            return false;
    const Value *score_more = h->n_args > 7 ? &args[7] : &none,
                *mask_more = h->n_args > 8 ? &args[8] : &none;
    Attention a = {.r = r, .q = args[0], .k = args[1], .v = args[2], .scale = args[5]};
    if (!repeat_heads(&a))
        return false;
    Value s = scores(&a);
    Value seen = through(&a, args[4].at[args[4].n - 1].graph, NULL, mask_more);
    s = t->failed ? s : through(&a, h->graphs[0], &s, score_more);
    if (!t->failed && (s.kind != VAL_tensor || seen.kind != VAL_tensor))
        return false;
    s = t->failed ? s : CALL(t, aten_where_ScalarOther, seen, s, FLT(-(double)INFINITY));
    *out = t->failed ? NONE : results(&a, s);
    return true;
}
