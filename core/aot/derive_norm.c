// derive_norm.c: derivatives of normalization over layers, groups, batches and weights, and of the
// fused attention of the CPU.
#include "core/aot/derive.h"

static Value mask_of(const Back *b, const int *at, int n) {
    Value list = val_list(b->t->arena, VAL_list, n);
    for (int i = 0; i < n; i++)
        list.at[i] = BOOL(NEEDS(at[i]));
    return list;
}

static void give(Back *b, Value tuple, const int *at, int n) {
    for (int i = 0; i < n; i++)
        OUT(at[i]) = item_of(tuple, i);
}

void derive_layer_norm(Back *b) {
    static const int at[3] = {0, 2, 3};
    give(b,
         CALL(b->t, aten_native_layer_norm_backward_default, GRAD, ARG(0), ARG(1), RES(1), RES(2),
              ARG(2), ARG(3), mask_of(b, at, 3)),
         at, 3);
}

// batches: native_batch_norm and its forms

// The running statistics of the form, its flag and its eps, by argument; -1: none.
static void batch_norm(Back *b, int mean, Value training, int eps) {
    static const int at[3] = {0, 1, 2};
    Value run_mean = mean < 0 ? NONE : ARG(mean), run_var = mean < 0 ? NONE : ARG(mean + 1);
    give(b,
         CALL(b->t, aten_native_batch_norm_backward_default, GRAD, ARG(0), ARG(1), run_mean,
              run_var, RES(1), RES(2), training, ARG(eps), mask_of(b, at, 3)),
         at, 3);
}

void derive_batch_norm(Back *b) {
    batch_norm(b, 3, ARG(5), 7);
}

void derive_batch_norm_no_stats(Back *b) {
    batch_norm(b, -1, ARG(3), 5);
}

void derive_batch_norm_no_training(Back *b) {
    batch_norm(b, 3, BOOL(false), 6);
}

static void batch_norm_reserved(Back *b, bool update) {
    static const int at[3] = {0, 1, 2};
    give(b,
         CALL(b->t, aten_batch_norm_backward_default, GRAD, ARG(0), ARG(1), ARG(3), ARG(4), RES(1),
              RES(2), BOOL(update), ARG(6), mask_of(b, at, 3), RES(3)),
         at, 3);
}

void derive_batch_norm_with_update(Back *b) {
    batch_norm_reserved(b, true);
}

void derive_batch_norm_no_update(Back *b) {
    batch_norm_reserved(b, false);
}

// groups: the fused form, unless mean or rstd has a gradient, too

static Value over(Trace *t, Value x, Value dims, bool keepdim) {
    return CALL(t, aten_sum_dim_IntList, x, dims, BOOL(keepdim));
}

// The gradient of the input by those of the result, mean and rstd. dy and x: (N, G, D, HxW); gamma:
// (1, G, D, 1); mean, rstd and their gradients: (N, G, 1, 1).
typedef struct GroupGrads {
    Value dy, x, gamma, mean, rstd, dmean, drstd; // none: undefined
    const Expr *count;                            // elements of a group: D * HxW
} GroupGrads;

static Value group_input_grad(Trace *t, const GroupGrads *g) {
    Value inner = list_of(t, INT(2), INT(3), END), dx = NONE, dstd = g->drstd, dmu = g->dmean;
    Value centred = CALL(t, aten_sub_Tensor, g->x, g->mean);
    if (defined(g->dy)) {
        Value dy = defined(g->gamma) ? times(t, g->dy, g->gamma) : g->dy;
        dx = times(t, dy, g->rstd);
        dstd = plus(t, dstd, over(t, times(t, dy, centred), inner, true));
        dmu = plus(t, dmu, CALL(t, aten_neg_default, over(t, dx, inner, true)));
    }
    // d rstd / d x = -rstd^3 * (x - mean) / count
    if (defined(dstd)) {
        Value cube = CALL(t, aten_pow_Tensor_Scalar, g->rstd, INT(3));
        Value f = CALL(t, aten_div_Tensor, times(t, dstd, cube), val_sym(g->count));
        dx = plus(t, dx, CALL(t, aten_neg_default, times(t, f, centred)));
    }
    if (defined(dmu))
        dx = plus(t, dx, CALL(t, aten_div_Tensor, dmu, val_sym(g->count)));
    return dx;
}

static void group_norm_in_parts(Back *b) {
    Trace *t = b->t;
    const Expr *n, *c, *inner, *groups;
    bool known = val_as_expr(t->sym, &ARG(3), &n) && val_as_expr(t->sym, &ARG(4), &c) &&
                 val_as_expr(t->sym, &ARG(5), &inner) && val_as_expr(t->sym, &ARG(6), &groups);
    if (!known)
        return;
    const Expr *per = sym_floordiv(t->sym, c, groups);
    Value full = list_of(t, val_sym(n), val_sym(groups), val_sym(per), val_sym(inner), END);
    Value stat = list_of(t, val_sym(n), val_sym(groups), INT(1), INT(1), END);
    Value one = list_of(t, INT(1), val_sym(groups), val_sym(per), INT(1), END);
    Value channels = list_of(t, val_sym(c), END), outer = list_of(t, INT(0), INT(3), END);
    GroupGrads g = {.count = sym_mul(t->sym, per, inner)};
    g.x = reshape(t, ARG(0), full);
    g.dy = defined(GRADS(0)) ? reshape(t, GRADS(0), full) : NONE;
    g.gamma = defined(ARG(1)) ? reshape(t, ARG(1), one) : NONE;
    g.mean = reshape(t, RES(1), stat);
    g.rstd = reshape(t, RES(2), stat);
    g.dmean = defined(GRADS(1)) ? reshape(t, GRADS(1), stat) : NONE;
    g.drstd = defined(GRADS(2)) ? reshape(t, GRADS(2), stat) : NONE;
    if (NEEDS(0))
        OUT(0) = reshape(t, group_input_grad(t, &g), sizes_arg(t, ARG(0)));
    if (NEEDS(1) && defined(g.dy)) {
        Value hat = times(t, CALL(t, aten_sub_Tensor, g.x, g.mean), g.rstd);
        OUT(1) = reshape(t, over(t, times(t, g.dy, hat), outer, false), channels);
    }
    if (NEEDS(2) && defined(g.dy))
        OUT(2) = reshape(t, over(t, g.dy, outer, false), channels);
}

void derive_group_norm(Back *b) {
    static const int at[3] = {0, 1, 2};
    Trace *t = b->t;
    if (defined(GRADS(1)) || defined(GRADS(2))) {
        group_norm_in_parts(b);
        return;
    }
    MemoryFormat mf = on_cpu(ARG(0)) ? suggest_memory_format(t, ARG(0)) : MF_contiguous;
    Value x = contiguous(t, ARG(0), mf); // C++ evaluates the last argument first
    Value grad = contiguous(t, GRAD, mf);
    give(b,
         CALL(t, aten_native_group_norm_backward_default, grad, x, RES(1), RES(2), ARG(1), ARG(3),
              ARG(4), ARG(5), ARG(6), mask_of(b, at, 3)),
         at, 3);
}

// d rstd alone reaches the input as -rstd^3 * x / count.
static Value rms_through_rstd(Back *b) {
    Trace *t = b->t;
    const TensorMeta *m = meta_of(ARG(0));
    const Expr *count = sym_int(t->sym, 1);
    for (int i = 0; i < ARG(1).n; i++)
        count = sym_mul(t->sym, count, m->size[m->ndim - 1 - i]);
    Value cube = CALL(t, aten_pow_Tensor_Scalar, RES(1), INT(3));
    Value f = CALL(t, aten_div_Tensor, times(t, GRADS(1), cube), val_sym(count));
    return CALL(t, aten_neg_default, times(t, f, ARG(0)));
}

void derive_rms_norm(Back *b) {
    static const int at[2] = {0, 2};
    Trace *t = b->t;
    if (defined(GRADS(0)))
        give(b,
             CALL(t, aten__fused_rms_norm_backward_default, GRADS(0), ARG(0), ARG(1), RES(1),
                  ARG(2), mask_of(b, at, 2)),
             at, 2);
    if (defined(GRADS(1)) && NEEDS(0))
        OUT(0) = plus(t, OUT(0), rms_through_rstd(b));
}

void derive_weight_norm(Back *b) {
    static const int at[2] = {0, 1};
    Value grad = contiguous(b->t, GRAD, MF_contiguous);
    give(b,
         CALL(b->t, aten__weight_norm_interface_backward_default, grad, ARG(0), ARG(1), RES(1),
              ARG(2)),
         at, 2);
}

// attention

void derive_flash_attention(Back *b) {
    static const int at[3] = {0, 1, 2};
    give(b,
         CALL(b->t, aten__scaled_dot_product_flash_attention_for_cpu_backward_default, GRAD, ARG(0),
              ARG(1), ARG(2), RES(0), RES(1), ARG(3), ARG(4), ARG(5), ARG(6)),
         at, 3);
}
