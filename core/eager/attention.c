// attention.c: scaled dot product attention, in one piece for the composite op and with its
// log-sum-exp for the fused op of the CPU, and that one's gradient.
#include "core/eager/kernel.h"

#include <math.h>
#include <string.h>

static double scale_of(const K *k, int arg, const Tensor *q) {
    return k_given(k, arg) ? kf(k, arg, 1) : 1 / sqrt((double)q->size[q->ndim - 1]);
}

// -inf where a mask is false.
static Value additive(K *k, Value mask, DType d) {
    const Tensor *t = tensor_at(&mask);
    if (!t || t->dtype != DT_b8)
        return mask;
    Value zeros = CALL(k, aten_zeros_like_default, mask, DTY(d));
    return CALL(k, aten_masked_fill_Scalar, zeros, CALL(k, aten_logical_not_default, mask),
                FLT(-(double)INFINITY));
}

static Value causal_mask(K *k, const Tensor *q, const Tensor *key, DType d) {
    int64_t size[2] = {q->size[q->ndim - 2], key->size[key->ndim - 2]};
    Value ones = CALL(k, aten_ones_default, ints_value(k->x, size, 2), DTY(DT_b8));
    return additive(k, CALL(k, aten_tril_default, ones), d);
}

// Each head of the keys serves several of the queries.
static Value spread_heads(K *k, Value v, int64_t heads) {
    const Tensor *t = tensor_at(&v);
    if (!t || t->ndim < 3 || t->size[t->ndim - 3] == heads || !t->size[t->ndim - 3])
        return v;
    return CALL(k, aten_repeat_interleave_self_int, v, INT(heads / t->size[t->ndim - 3]), INT(-3));
}

// And back: the gradients of a head's copies add up.
static Value gathered_heads(K *k, Value v, const Tensor *like) {
    const Tensor *t = tensor_at(&v);
    if (!t || t->size[1] == like->size[1] || !like->size[1])
        return v;
    int64_t size[5] = {t->size[0], like->size[1], t->size[1] / like->size[1], t->size[2],
                       t->size[3]};
    v = CALL(k, aten_reshape_default, v, ints_value(k->x, size, 5));
    return CALL(k, aten_sum_dim_IntList, v, list_value(k->x, INT(2), END));
}

// scaled_dot_product_attention(query, key, value, attn_mask, dropout_p, is_causal, *, scale,
// enable_gqa)
bool kern_attention(K *k) {
    Value q = k->args[0], key = k->args[1], v = k->args[2], mask = k->args[3];
    const Tensor *t = k->in[0];
    if (t->ndim < 2 || !k->in[1] || !k->in[2] || k->in[1]->ndim < 2 || k->in[2]->ndim < 2)
        return k_fail(
            k,
            "RuntimeError: scaled_dot_product_attention expects tensors of at least 2 dimensions");
    DType d = t->dtype, wide = dtype_compute(d);
    double scale = scale_of(k, 6, t), p = kf(k, 4, 0);
    if (kb(k, 7) && t->ndim > 2) {
        key = spread_heads(k, key, t->size[t->ndim - 3]);
        v = spread_heads(k, v, t->size[t->ndim - 3]);
    }
    // The low floats are computed in float32 and rounded once.
    if (wide != d) {
        q = CALL(k, aten__to_copy_default, q, DTY(wide));
        key = CALL(k, aten__to_copy_default, key, DTY(wide));
        v = CALL(k, aten__to_copy_default, v, DTY(wide));
    }
    if (kb(k, 5))
        mask = causal_mask(k, t, k->in[1], wide);
    Value s =
        CALL(k, aten_mul_Scalar,
             CALL(k, aten_matmul_default, q, CALL(k, aten_transpose_int, key, INT(-2), INT(-1))),
             FLT(scale));
    if (mask.kind == VAL_tensor)
        s = CALL(k, aten_add_Tensor, s, additive(k, mask, wide));
    s = CALL(k, aten__safe_softmax_default, s, INT(-1));
    if (p > 0)
        s = CALL(k, aten_dropout_default, s, FLT(p), BOOL(true));
    Value o = CALL(k, aten_matmul_default, s, v);
    if (o.kind != VAL_tensor)
        return false;
    MetaCtx m = eager_meta_ctx(k->x);
    Value meta;
    if (!op_meta(&m, k->op, k->args, &meta))
        return false;
    k->out = eager_from_meta(k->x, meta.tensor);
    return k->out.kind == VAL_tensor && copy_into(k->x, tensor_at(&k->out), tensor_at(&o));
}

static Value wide_of(K *k, Value v, DType d) {
    const Tensor *t = tensor_at(&v);
    return !t || t->dtype == d ? v : CALL(k, aten__to_copy_default, v, DTY(d));
}

// Scores of (query, key), masked: shared by the fused op and its gradient.
static Value scores(K *k, Value q, Value key, bool causal, Value mask, double scale, DType d) {
    Value s =
        CALL(k, aten_mul_Scalar,
             CALL(k, aten_matmul_default, q, CALL(k, aten_transpose_int, key, INT(-2), INT(-1))),
             FLT(scale));
    if (causal)
        s = CALL(k, aten_add_Tensor, s, causal_mask(k, tensor_at(&q), tensor_at(&key), d));
    if (mask.kind == VAL_tensor)
        s = CALL(k, aten_add_Tensor, s, additive(k, mask, d));
    return s;
}

// _scaled_dot_product_flash_attention_for_cpu(query, key, value, dropout_p, is_causal, *,
// attn_mask, scale)
bool kern_flash_attention(K *k) {
    const Tensor *t = k->in[0];
    if (t->ndim != 4 || !k->in[1] || !k->in[2] || k->in[1]->ndim != 4 || k->in[2]->ndim != 4)
        return k_fail(k, "RuntimeError: Accept only 4 dims inputs shape of {(B), H, T, K}");
    DType d = dtype_compute(t->dtype);
    Value q = wide_of(k, k->args[0], d),
          key = spread_heads(k, wide_of(k, k->args[1], d), t->size[1]),
          v = spread_heads(k, wide_of(k, k->args[2], d), t->size[1]);
    Value s = scores(k, q, key, kb(k, 4), k->args[5], scale_of(k, 6, t), d);
    Value lse = CALL(k, aten_logsumexp_default, s, list_value(k->x, INT(-1), END));
    Value o = CALL(k, aten_matmul_default, CALL(k, aten__safe_softmax_default, s, INT(-1)), v);
    return o.kind == VAL_tensor && lse.kind == VAL_tensor &&
           copy_into(k->x, k->res[0], tensor_at(&o)) && copy_into(k->x, k->res[1], tensor_at(&lse));
}

// (grad_out, query, key, value, out, logsumexp, dropout_p, is_causal, *, attn_mask, scale)
bool kern_flash_attention_backward(K *k) {
    const Tensor *t = k->in[1];
    DType d = dtype_compute(t->dtype);
    Value g = wide_of(k, k->args[0], d), q = wide_of(k, k->args[1], d),
          key = spread_heads(k, wide_of(k, k->args[2], d), t->size[1]),
          v = spread_heads(k, wide_of(k, k->args[3], d), t->size[1]);
    Value o = wide_of(k, k->args[4], d);
    double scale = scale_of(k, 9, t);
    Value s = scores(k, q, key, kb(k, 7), k->args[8], scale, d);
    Value p = CALL(k, aten_exp_default,
                   CALL(k, aten_sub_Tensor, s,
                        CALL(k, aten_unsqueeze_default, wide_of(k, k->args[5], d), INT(-1))));
    Value gv = CALL(k, aten_matmul_default, CALL(k, aten_transpose_int, p, INT(-2), INT(-1)), g);
    Value gp = CALL(k, aten_matmul_default, g, CALL(k, aten_transpose_int, v, INT(-2), INT(-1)));
    Value delta = CALL(k, aten_sum_dim_IntList, CALL(k, aten_mul_Tensor, g, o),
                       list_value(k->x, INT(-1), END), BOOL(true));
    Value gs = CALL(k, aten_mul_Scalar,
                    CALL(k, aten_mul_Tensor, p, CALL(k, aten_sub_Tensor, gp, delta)), FLT(scale));
    Value gq = CALL(k, aten_matmul_default, gs, key);
    Value gk = CALL(k, aten_matmul_default, CALL(k, aten_transpose_int, gs, INT(-2), INT(-1)), q);
    gk = gathered_heads(k, gk, k->in[2]);
    gv = gathered_heads(k, gv, k->in[3]);
    return eager_ok(k->x) && copy_into(k->x, k->res[0], tensor_at(&gq)) &&
           copy_into(k->x, k->res[1], tensor_at(&gk)) && copy_into(k->x, k->res[2], tensor_at(&gv));
}

// _scaled_dot_product_attention_math(query, key, value, attn_mask, dropout_p, is_causal,
// dropout_mask, *, scale, enable_gqa)
bool kern_attention_math(K *k) {
    const Tensor *t = k->in[0];
    DType d = t->dtype;
    Value q = k->args[0], key = k->args[1], v = k->args[2];
    for (int i = 0; i < 3; i++)
        if (!k->in[i] || k->in[i]->ndim < 2)
            return k_fail(k,
                          "RuntimeError: scaled_dot_product_attention: query, key and value must "
                          "each be at least 2 dimensional");
    Value p = CALL(k, aten__safe_softmax_default,
                   scores(k, q, key, kb(k, 5), k->args[3], scale_of(k, 7, t), d), INT(-1));
    k->out = tuple_value(k->x, CALL(k, aten_matmul_default, p, v), p, END);
    return eager_ok(k->x);
}
