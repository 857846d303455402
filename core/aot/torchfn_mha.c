// torchfn_mha.c: torch.nn.functional.multi_head_attention_forward, which capture leaves in the
// graph as one call: packed or separate projections, attention with or without weights, output
// projection.
#include "core/aot/torchlevel.h"

#include <math.h>

typedef struct Heads {
    const Expr *tgt, *src, *batch, *embed, *head; // lengths and sizes
    Value heads;                                  // their number
    Value mask;                                   // float, none if there is none
    Value dropout;
    bool causal;
} Heads;

static Value linear(Trace *t, Value x, Value w, Value b) {
    return CALL(t, aten_linear_default, x, w, b);
}

// One projection of n parts, its parts in front and apart.
static Value projected(Trace *t, Value x, Value w, Value b, int n, const Expr *embed) {
    Value p = linear(t, x, w, b);
    p = CALL(t, aten_unflatten_int, p, INT(-1), list_of(t, INT(n), val_sym(embed), END));
    p = CALL(t, aten_unsqueeze_default, p, INT(0));
    p = CALL(t, aten_transpose_int, p, INT(0), INT(-2));
    p = CALL(t, aten_squeeze_dim, p, INT(-2));
    return contiguous(t, p, MF_contiguous);
}

static Value part(Trace *t, Value p, int i) {
    return CALL(t, aten_select_int, p, INT(0), INT(i));
}

static void in_projection(Trace *t, Value qkv[3], Value w, Value b, const Expr *embed) {
    bool self = qkv[0].tensor == qkv[1].tensor, shared = qkv[1].tensor == qkv[2].tensor;
    if (self && shared) {
        Value p = projected(t, qkv[0], w, b, 3, embed);
        for (int i = 0; i < 3; i++)
            qkv[i] = part(t, p, i);
        return;
    }
    Value sizes =
        shared ? list_of(t, val_sym(embed), val_sym(sym_mul_int(t->sym, embed, 2)), END) : NONE;
    Value ws = shared ? CALL(t, aten_split_with_sizes_default, w, sizes)
                      : CALL(t, aten_chunk_default, w, INT(3));
    Value bs = b.kind != VAL_tensor ? NONE
               : shared             ? CALL(t, aten_split_with_sizes_default, b, sizes)
                                    : CALL(t, aten_chunk_default, b, INT(3));
    qkv[0] = linear(t, qkv[0], item_of(ws, 0), item_of(bs, 0));
    if (!shared) {
        qkv[1] = linear(t, qkv[1], item_of(ws, 1), item_of(bs, 1));
        qkv[2] = linear(t, qkv[2], item_of(ws, 2), item_of(bs, 2));
        return;
    }
    Value p = projected(t, qkv[1], item_of(ws, 1), item_of(bs, 1), 2, embed);
    qkv[1] = part(t, p, 0);
    qkv[2] = part(t, p, 1);
}

static Value float_mask(Trace *t, Value mask, DType d) {
    if (dtype_info[dtype_of(mask)].cls != DTC_BOOL)
        return mask;
    Value zeros = CALL(t, aten_zeros_like_default, mask, DTY(d));
    return CALL(t, aten_masked_fill__Scalar, zeros, mask, FLT(-INFINITY));
}

static Value merged_mask(Trace *t, const TorchCall *c, const Heads *h, DType d) {
    Value pad = call_arg(c, 14, "key_padding_mask", NONE),
          mask = call_arg(c, 16, "attn_mask", NONE);
    if (pad.kind == VAL_tensor)
        pad = float_mask(t, pad, d);
    if (mask.kind == VAL_tensor)
        mask = float_mask(t, mask, d);
    if (dim_of(mask) == 2)
        mask = CALL(t, aten_unsqueeze_default, mask, INT(0));
    if (pad.kind != VAL_tensor)
        return mask;
    const Expr *rows = sym_mul(t->sym, h->batch, sym_int(t->sym, int_arg(&h->heads, 1)));
    pad = CALL(t, aten_view_default, pad,
               list_of(t, val_sym(h->batch), INT(1), INT(1), val_sym(h->src), END));
    pad = CALL(t, aten_expand_default, pad, list_of(t, INT(-1), h->heads, INT(-1), INT(-1), END));
    pad = reshape(t, pad, list_of(t, val_sym(rows), INT(1), val_sym(h->src), END));
    return mask.kind == VAL_tensor ? CALL(t, aten_add_Tensor, mask, pad) : pad;
}

static Value attend_with_weights(Trace *t, const Heads *h, Value qkv[3], Value *weights) {
    int64_t e = expr_int_or(h->head, 1);
    Value q = CALL(t, aten_mul_Tensor, qkv[0], FLT(sqrt(1.0 / (double)e)));
    Value k = CALL(t, aten_transpose_int, qkv[1], INT(-2), INT(-1));
    Value w = h->mask.kind == VAL_tensor ? CALL(t, aten_baddbmm_default, h->mask, q, k)
                                         : CALL(t, aten_bmm_default, q, k);
    w = CALL(t, aten_softmax_int, w, INT(-1));
    if (float_arg(&h->dropout, 0) > 0)
        w = CALL(t, aten_dropout_default, w, h->dropout, BOOL(true));
    *weights = w;
    Value out = CALL(t, aten_bmm_default, w, qkv[2]);
    out = CALL(t, aten_transpose_int, out, INT(0), INT(1));
    return contiguous(t, out, MF_contiguous);
}

static Value attend(Trace *t, const Heads *h, Value qkv[3]) {
    Value mask = h->mask;
    if (mask.kind == VAL_tensor) {
        if (dim_of(mask) == 3 && expr_known_is(t, size_of(t, mask, 0), 1))
            mask = CALL(t, aten_unsqueeze_default, mask, INT(0));
        else
            mask = CALL(t, aten_view_default, mask,
                        list_of(t, val_sym(h->batch), h->heads, INT(-1), val_sym(h->src), END));
    }
    for (int i = 0; i < 3; i++)
        qkv[i] = CALL(t, aten_view_default, qkv[i],
                      list_of(t, val_sym(h->batch), h->heads, val_sym(i ? h->src : h->tgt),
                              val_sym(h->head), END));
    Value out = CALL(t, aten_scaled_dot_product_attention_default, qkv[0], qkv[1], qkv[2], mask,
                     h->dropout, BOOL(h->causal));
    out = CALL(t, aten_permute_default, out, list_of(t, INT(2), INT(0), INT(1), INT(3), END));
    return contiguous(t, out, MF_contiguous);
}

static bool flag(const TorchCall *c, int pos, const char *kw, bool dflt) {
    Value v = call_arg(c, pos, kw, BOOL(dflt));
    return bool_arg(&v);
}

bool fn_mha(Trace *t, const TorchCall *c, Value *out) {
    Value qkv[3] = {call_arg(c, 0, "query", NONE), call_arg(c, 1, "key", NONE),
                    call_arg(c, 2, "value", NONE)};
    Value heads = call_arg(c, 4, "num_heads", INT(1)), bias_k = call_arg(c, 7, "bias_k", NONE);
    if (dim_of(qkv[0]) != 3 || bias_k.kind != VAL_none || flag(c, 9, "add_zero_attn", false) ||
        call_arg(c, -1, "static_k", NONE).kind != VAL_none)
        return false;
    Heads h = {.tgt = size_of(t, qkv[0], 0),
               .batch = size_of(t, qkv[0], 1),
               .embed = size_of(t, qkv[0], 2),
               .src = size_of(t, qkv[1], 0),
               .heads = heads,
               .causal = flag(c, -1, "is_causal", false)};
    h.head = sym_floordiv(t->sym, h.embed, sym_int(t->sym, int_arg(&heads, 1)));
    h.dropout = flag(c, 13, "training", true) ? call_arg(c, 10, "dropout_p", FLT(0)) : FLT(0);
    Value w = call_arg(c, 5, "in_proj_weight", NONE), b = call_arg(c, 6, "in_proj_bias", NONE);
    if (flag(c, -1, "use_separate_proj_weight", false)) {
        static const char *const names[] = {"q_proj_weight", "k_proj_weight", "v_proj_weight"};
        Value bs = b.kind == VAL_tensor ? CALL(t, aten_chunk_default, b, INT(3)) : NONE;
        for (int i = 0; i < 3; i++)
            qkv[i] = linear(t, qkv[i], call_arg(c, -1, names[i], NONE), item_of(bs, i));
    } else {
        in_projection(t, qkv, w, b, h.embed);
    }
    bool weights = flag(c, 15, "need_weights", true);
    h.mask = merged_mask(t, c, &h, dtype_of(qkv[0]));
    const Expr *rows = sym_mul(t->sym, h.batch, sym_int(t->sym, int_arg(&heads, 1)));
    for (int i = 0; i < 3; i++) {
        qkv[i] = CALL(t, aten_view_default, qkv[i],
                      list_of(t, val_sym(i ? h.src : h.tgt), val_sym(rows), val_sym(h.head), END));
        qkv[i] = CALL(t, aten_transpose_int, qkv[i], INT(0), INT(1));
    }
    Value maps = NONE;
    Value o = weights ? attend_with_weights(t, &h, qkv, &maps) : attend(t, &h, qkv);
    o = CALL(t, aten_view_default, o,
             list_of(t, val_sym(sym_mul(t->sym, h.batch, h.tgt)), val_sym(h.embed), END));
    o = linear(t, o, call_arg(c, 11, "out_proj_weight", NONE),
               call_arg(c, 12, "out_proj_bias", NONE));
    o = CALL(t, aten_view_default, o,
             list_of(t, val_sym(h.tgt), val_sym(h.batch), val_sym(size_of(t, o, 1)), END));
    if (weights) {
        maps = CALL(t, aten_view_default, maps,
                    list_of(t, val_sym(h.batch), heads, val_sym(h.tgt), val_sym(h.src), END));
        if (flag(c, -1, "average_attn_weights", true))
            maps = CALL(t, aten_mean_dim, maps, list_of(t, INT(1), END));
    }
    *out = tuple_of(t, o, maps, END);
    return true;
}
