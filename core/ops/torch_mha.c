// torch_mha.c: torch.nn.functional.multi_head_attention_forward, which capture leaves in the graph
// as one call, as that function computes it: projections (packed or apart), masks merged into one,
// attention with or without its weights, output projection. Source: torch/nn/functional.py.
#include "core/ops/torch_build.h"

#include <math.h>

// Parameters by position.
enum {
    QUERY, KEY, VALUE, EMBED, HEADS, IN_W, IN_B, BIAS_K, BIAS_V, ZERO_ATTN, DROPOUT, OUT_W, OUT_B,
    TRAINING, KEY_PADDING, NEED_WEIGHTS, ATTN_MASK, SEPARATE_W, Q_W, K_W, V_W, STATIC_K, STATIC_V,
    AVERAGE, IS_CAUSAL
};

static const char signature[] =
    "(Tensor query, Tensor key, Tensor value, int embed_dim_to_check, int num_heads, "
    "Tensor? in_proj_weight, Tensor? in_proj_bias, Tensor? bias_k, Tensor? bias_v, "
    "bool add_zero_attn, float dropout_p, Tensor out_proj_weight, Tensor? out_proj_bias, "
    "bool training=True, Tensor? key_padding_mask=None, bool need_weights=True, "
    "Tensor? attn_mask=None, bool use_separate_proj_weight=False, Tensor? q_proj_weight=None, "
    "Tensor? k_proj_weight=None, Tensor? v_proj_weight=None, Tensor? static_k=None, "
    "Tensor? static_v=None, bool average_attn_weights=True, bool is_causal=False) -> Any";

typedef struct Mha {
    Build *b;
    const Value *p;             // the call's arguments
    bool failed;                // a step did not come about: nothing is appended any more
    Value qkv[3];               // (length, batch, embed), then (batch * heads, length, head)
    Value pad, mask;            // key_padding_mask and attn_mask, none if there is none
    bool causal;                // the kernel masks, attn_mask is not looked at
    const Expr *tgt, *src;      // lengths of query and keys
    const Expr *batch, *embed, *rows, *head; // sizes; rows: batch * heads
} Mha;

// The result of one more operator; none once something failed.
#define OP(m, name, ...)                                                                           \
    call((m), (name), (Value[]){__VA_ARGS__}, COUNT(((Value[]){__VA_ARGS__})), NULL)

static Value call(Mha *m, const char *name, const Value *args, int n, const BuildKw *kw) {
    Value out = val_none();
    if (!m->failed)
        m->failed = !build_call(m->b, false, name, args, n, kw, &out);
    return out;
}

static Value item(Mha *m, Value list, int i) {
    Value out = val_none();
    if (!m->failed)
        m->failed =
            !build_op(m->b, op_at(OP_operator_getitem), (Value[]){list, val_int(i)}, 2, &out);
    return out;
}

static bool given(Value v) {
    return v.kind != VAL_none;
}

#define SIZES(m, ...)                                                                              \
    val_exprs((m)->b->m->arena, (const Expr *const[]){__VA_ARGS__},                                \
              COUNT(((const Expr *const[]){__VA_ARGS__})))

static const Expr *num(Mha *m, int64_t i) {
    return sym_int(m->b->m->sym, i);
}

// One linear layer of n parts: the parts in front, to be selected.
static Value projected(Mha *m, Value x, Value w, Value bias, int n) {
    x = OP(m, "linear", x, w, bias);
    x = OP(m, "unflatten.int", x, val_int(-1), SIZES(m, num(m, n), m->embed));
    x = OP(m, "unsqueeze", x, val_int(0));
    x = OP(m, "transpose", x, val_int(0), val_int(-2));
    x = OP(m, "squeeze.dim", x, val_int(-2));
    return OP(m, "contiguous", x);
}

static Value part(Mha *m, Value x, int i) {
    return OP(m, "select", x, val_int(0), val_int(i));
}

// Python's `is`.
static bool same_object(const Value *a, const Value *b) {
    bool tensors = a->kind == VAL_tensor && b->kind == VAL_tensor;
    return tensors ? a->tensor == b->tensor : val_equal(a, b);
}

static void project_packed(Mha *m) {
    Value *x = m->qkv, w = m->p[IN_W], b = m->p[IN_B], ws, bs = val_none();
    bool shared = same_object(&x[1], &x[2]);
    if (shared && same_object(&x[0], &x[1])) {
        Value all = projected(m, x[0], w, b, 3);
        for (int i = 0; i < 3; i++)
            x[i] = part(m, all, i);
        return;
    }
    Value cut = shared ? SIZES(m, m->embed, sym_mul_int(m->b->m->sym, m->embed, 2)) : val_int(3);
    const char *by = shared ? "split_with_sizes" : "chunk";
    ws = OP(m, by, w, cut);
    if (given(b))
        bs = OP(m, by, b, cut);
    Value wi[3], bi[3];
    for (int i = 0; i < (shared ? 2 : 3); i++) {
        wi[i] = item(m, ws, i);
        bi[i] = given(b) ? item(m, bs, i) : val_none();
    }
    for (int i = 0; i < (shared ? 1 : 3); i++)
        x[i] = OP(m, "linear", x[i], wi[i], bi[i]);
    if (shared) {
        Value both = projected(m, x[1], wi[1], bi[1], 2);
        x[1] = part(m, both, 0);
        x[2] = part(m, both, 1);
    }
}

static void project(Mha *m) {
    if (!m->p[SEPARATE_W].b) {
        project_packed(m);
        return;
    }
    Value bs = given(m->p[IN_B]) ? OP(m, "chunk", m->p[IN_B], val_int(3)) : val_none(), bi[3];
    for (int i = 0; i < 3; i++)
        bi[i] = given(bs) ? item(m, bs, i) : val_none();
    for (int i = 0; i < 3; i++)
        m->qkv[i] = OP(m, "linear", m->qkv[i], m->p[Q_W + i], bi[i]);
}

// A mask of bools as what is added to the scores, in the query's dtype.
static Value float_mask(Mha *m, Value mask) {
    const TensorMeta *t = m->failed ? NULL : build_tensor(m->b, &mask);
    const TensorMeta *q = m->failed ? NULL : build_tensor(m->b, &m->qkv[0]);
    if (!t || !q || dtype_info[t->dtype].cls != DTC_BOOL)
        return mask;
    BuildKw dtype[] = {{"dtype", val_dtype(q->dtype)}, {NULL, val_none()}};
    Value zeros = call(m, "zeros_like", &mask, 1, dtype);
    return OP(m, "masked_fill_", zeros, mask, val_float(-INFINITY));
}

static int rank(Mha *m, Value v) {
    const TensorMeta *t = m->failed ? NULL : build_tensor(m->b, &v);
    return t ? t->ndim : 0;
}

// One more column of zeros for each key that was added.
static void widen_masks(Mha *m) {
    Value one = SIZES(m, num(m, 0), num(m, 1));
    if (given(m->mask))
        m->mask = OP(m, "pad", m->mask, one);
    if (given(m->pad))
        m->pad = OP(m, "pad", m->pad, one);
}

static void append_bias(Mha *m) {
    Value times = SIZES(m, num(m, 1), m->batch, num(m, 1));
    for (int i = 1; i < 3; i++) {
        Value pair = val_list(m->b->m->arena, VAL_list, 2);
        pair.at[1] = OP(m, "repeat", m->p[BIAS_K + i - 1], times);
        pair.at[0] = m->qkv[i];
        m->qkv[i] = OP(m, "cat", pair);
    }
    widen_masks(m);
}

static void append_zeros(Mha *m) {
    for (int i = 1; i < 3; i++) {
        const TensorMeta *t = m->failed ? NULL : build_tensor(m->b, &m->qkv[i]);
        if (!t)
            return;
        BuildKw like[] = {{"dtype", val_dtype(t->dtype)},
                          {"device", {.kind = VAL_device, .device = t->device}},
                          {NULL, val_none()}};
        Value size = SIZES(m, m->rows, num(m, 1), m->head);
        Value pair = val_list(m->b->m->arena, VAL_list, 2);
        pair.at[1] = call(m, "zeros", &size, 1, like);
        pair.at[0] = m->qkv[i];
        m->qkv[i] = OP(m, "cat", pair, val_int(1));
    }
    widen_masks(m);
}

// Heads become part of the batch.
static void split_heads(Mha *m) {
    for (int i = 0; i < 3; i++) {
        const TensorMeta *t = m->failed ? NULL : build_tensor(m->b, &m->qkv[i]);
        if (i && given(m->p[STATIC_K + i - 1])) {
            m->qkv[i] = m->p[STATIC_K + i - 1];
        } else if (t) {
            m->qkv[i] = OP(m, "view", m->qkv[i], SIZES(m, t->size[0], m->rows, m->head));
            m->qkv[i] = OP(m, "transpose", m->qkv[i], val_int(0), val_int(1));
        }
    }
}

static void merge_masks(Mha *m) {
    if (!given(m->pad))
        return;
    const Expr *one = num(m, 1), *keep = num(m, -1);
    Value heads = m->p[HEADS], v = OP(m, "view", m->pad, SIZES(m, m->batch, one, one, m->src));
    Value wide = SIZES(m, keep, keep, keep, keep);
    wide.at[1] = heads;
    v = OP(m, "expand", v, wide);
    v = OP(m, "reshape", v, SIZES(m, m->rows, one, m->src));
    m->mask = given(m->mask) ? OP(m, "add", m->mask, v) : v;
}

static Value attend_with_weights(Mha *m, Value dropout, Value *weights) {
    double head = (double)expr_int_or(m->head, 1), p = 0;
    Value q = OP(m, "mul", m->qkv[0], val_float(sqrt(1.0 / head)));
    Value k = OP(m, "transpose", m->qkv[1], val_int(-2), val_int(-1));
    Value w = given(m->mask) ? OP(m, "baddbmm", m->mask, q, k) : OP(m, "bmm", q, k);
    w = OP(m, "softmax.int", w, val_int(-1));
    if (val_as_float(&dropout, &p) && p > 0)
        w = OP(m, "dropout", w, dropout, val_bool(true));
    *weights = w;
    Value out = OP(m, "bmm", w, m->qkv[2]);
    return OP(m, "contiguous", OP(m, "transpose", out, val_int(0), val_int(1)));
}

static Value attend(Mha *m, Value dropout) {
    const Expr *heads = num(m, 1);
    val_as_expr(m->b->m->sym, &m->p[HEADS], &heads);
    Value mask = m->mask;
    const TensorMeta *t = given(mask) && !m->failed ? build_tensor(m->b, &mask) : NULL;
    if (t && t->ndim == 3 && sym_known_eq(m->b->m->sym, t->size[0], num(m, 1)))
        mask = OP(m, "unsqueeze", mask, val_int(0));
    else if (t)
        mask = OP(m, "view", mask, SIZES(m, m->batch, heads, num(m, -1), m->src));
    for (int i = 0; i < 3; i++)
        m->qkv[i] =
            OP(m, "view", m->qkv[i], SIZES(m, m->batch, heads, i ? m->src : m->tgt, m->head));
    Value out = OP(m, "scaled_dot_product_attention", m->qkv[0], m->qkv[1], m->qkv[2], mask,
                   dropout, val_bool(m->causal));
    out = OP(m, "permute", out, SIZES(m, num(m, 2), num(m, 0), num(m, 1), num(m, 3)));
    return OP(m, "contiguous", out);
}

// Query, keys, values and masks as given, with a batch of one if they had none. False: not tensors.
static bool take_inputs(Mha *m, bool batched) {
    for (int i = 0; i < 3; i++)
        m->qkv[i] = batched ? m->p[i] : OP(m, "unsqueeze", m->p[i], val_int(1));
    m->pad = m->p[KEY_PADDING];
    if (given(m->pad) && !batched)
        m->pad = OP(m, "unsqueeze", m->pad, val_int(0));
    const TensorMeta *q = m->failed ? NULL : build_tensor(m->b, &m->qkv[0]);
    const Expr *heads;
    Sym *s = m->b->m->sym;
    if (!q || q->ndim != 3 || !val_as_expr(s, &m->p[HEADS], &heads) || expr_is(heads, 0))
        return false;
    m->tgt = q->size[0];
    m->batch = q->size[1];
    m->embed = q->size[2];
    m->rows = sym_mul(s, m->batch, heads);
    m->head = sym_floordiv(s, m->embed, heads);
    return true;
}

static void take_masks(Mha *m) {
    m->pad = given(m->pad) ? float_mask(m, m->pad) : m->pad;
    m->causal = m->p[IS_CAUSAL].b && !given(m->pad);
    bool in_kernel = m->causal && !m->p[NEED_WEIGHTS].b;
    m->mask = val_none();
    if (given(m->p[ATTN_MASK]) && !in_kernel)
        m->mask = float_mask(m, m->p[ATTN_MASK]);
}

// The output projection and, where they are asked for, the weights.
static Value finish(Mha *m, Value x, Value weights, bool batched) {
    Sym *s = m->b->m->sym;
    Value out = val_list(m->b->m->arena, VAL_tuple, 2);
    x = OP(m, "view", x, SIZES(m, sym_mul(s, m->batch, m->tgt), m->embed));
    x = OP(m, "linear", x, m->p[OUT_W], m->p[OUT_B]);
    const TensorMeta *t = m->failed ? NULL : build_tensor(m->b, &x);
    if (!t)
        return out;
    x = OP(m, "view", x, SIZES(m, m->tgt, m->batch, t->size[1]));
    if (given(weights)) {
        Value size = SIZES(m, m->batch, m->batch, m->tgt, m->src);
        size.at[1] = m->p[HEADS];
        weights = OP(m, "view", weights, size);
        if (m->p[AVERAGE].b)
            weights = OP(m, "mean.dim", weights, SIZES(m, num(m, 1)));
    }
    if (!batched) {
        x = OP(m, "squeeze.dim", x, val_int(1));
        weights = given(weights) ? OP(m, "squeeze.dim", weights, val_int(0)) : weights;
    }
    out.at[0] = x;
    out.at[1] = weights;
    return out;
}

bool build_multi_head_attention(Build *b, const char *words, Value *out) {
    (void)words;
    Mha m = {.b = b, .p = build_params(b, signature)};
    if (!m.p)
        return false;
    bool batched = rank(&m, m.p[QUERY]) != 2;
    if (!take_inputs(&m, batched))
        return build_fail(b, "expected a query of 2 or 3 dimensions and a number of heads");
    take_masks(&m);
    project(&m);
    if (given(m.mask) && rank(&m, m.mask) == 2)
        m.mask = OP(&m, "unsqueeze", m.mask, val_int(0));
    if (given(m.p[BIAS_K]))
        append_bias(&m);
    split_heads(&m);
    if (m.p[ZERO_ATTN].b)
        append_zeros(&m);
    const TensorMeta *k = m.failed ? NULL : build_tensor(b, &m.qkv[1]);
    if (!k)
        return false;
    m.src = k->size[1];
    merge_masks(&m);
    Value dropout = m.p[TRAINING].b ? m.p[DROPOUT] : val_float(0), weights = val_none();
    Value x = m.p[NEED_WEIGHTS].b ? attend_with_weights(&m, dropout, &weights)
                                  : attend(&m, dropout);
    *out = finish(&m, x, weights, batched);
    return !m.failed;
}
