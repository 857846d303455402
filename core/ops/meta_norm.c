// meta_norm.c: normalisation, attention, losses.
#include "core/ops/meta.h"

#include <string.h>

static bool list3(MetaCtx *m, const TensorMeta *a, const TensorMeta *b, const TensorMeta *c,
                  Value *out) {
    *out = meta_tuple(m, 3);
    out->at[0] = val_tensor(a);
    out->at[1] = val_tensor(b);
    out->at[2] = val_tensor(c);
    return true;
}

// Statistics of a low-precision input with f32 parameters are f32, else of the input's dtype.
static DType stat_dtype(const TensorMeta *input, const TensorMeta *weight) {
    return dtype_is_low(input->dtype) && weight && weight->dtype == DT_f32 ? DT_f32 : input->dtype;
}

static bool normalized_dims(MetaCtx *m, const Op *op, const Value *args, const TensorMeta *input,
                            int *axis) {
    int n;
    const Expr **shape = meta_exprs(m, meta_arg(op, args, "normalized_shape"), &n);
    if (!shape)
        return false;
    bool ok = n >= 1 && n <= input->ndim;
    for (int i = 0; ok && i < n; i++)
        ok = meta_eq(m, shape[i], input->size[input->ndim - n + i]);
    *axis = input->ndim - n;
    return ok ||
           meta_fail(m,
                     "RuntimeError: Given normalized_shape=%s, expected input with shape [*, ...], "
                     "but got input "
                     "of size%s",
                     meta_sizes_text(m, shape, n), meta_sizes_text(m, input->size, input->ndim));
}

static TensorMeta *leading_stats(MetaCtx *m, const TensorMeta *input, int axis, DType dtype) {
    const Expr **size = ARENA_ARRAY(m->arena, input->ndim + 1, const Expr *);
    for (int i = 0; i < input->ndim; i++)
        size[i] = i < axis ? input->size[i] : meta_int(m, 1);
    return meta_make(m, dtype, input->ndim, size, input->device);
}

bool meta_native_layer_norm(MetaCtx *m, const Op *op, const Value *args, Value *out) {
    const TensorMeta *input = meta_self(m, op, args);
    int axis;
    if (!input || !normalized_dims(m, op, args, input, &axis))
        return false;
    DType d = stat_dtype(input, meta_arg_tensor(op, args, "weight"));
    return list3(m, meta_like(m, input, input->dtype, MF_contiguous),
                 leading_stats(m, input, axis, d), leading_stats(m, input, axis, d), out);
}

bool meta_layer_norm(MetaCtx *m, const Op *op, const Value *args, Value *out) {
    const TensorMeta *input = meta_self(m, op, args);
    int axis;
    return input && normalized_dims(m, op, args, input, &axis) &&
           meta_out(out, meta_like(m, input, input->dtype, MF_contiguous));
}

bool meta_fused_rms_norm(MetaCtx *m, const Op *op, const Value *args, Value *out) {
    const TensorMeta *input = meta_self(m, op, args);
    int axis;
    if (!input || !normalized_dims(m, op, args, input, &axis))
        return false;
    *out = meta_tuple(m, 2);
    out->at[0] = val_tensor(meta_like(m, input, input->dtype, MF_preserve));
    out->at[1] = val_tensor(leading_stats(m, input, axis, dtype_compute(input->dtype)));
    return true;
}

// Gradients of input, weight and bias where output_mask asks for them.
bool meta_norm_backward(MetaCtx *m, const Op *op, const Value *args, Value *out) {
    const TensorMeta *grad = meta_self(m, op, args), *input = meta_arg_tensor(op, args, "input");
    const TensorMeta *weight = meta_arg_tensor(op, args, "weight"),
                     *bias = meta_arg_tensor(op, args, "bias");
    const Value *mask = meta_arg(op, args, "output_mask");
    if (!grad || !input || mask->n < 2)
        return false;
    bool layer = strstr(op->name, "layer") || strstr(op->name, "rms"),
         group = strstr(op->name, "group");
    MemoryFormat mf = layer ? MF_contiguous : meta_suggest_format(m, input);
    *out = meta_tuple(m, mask->n);
    if (mask->at[0].b)
        out->at[0] = val_tensor(meta_like(m, input, input->dtype, mf));
    const Expr *channels = input->ndim > 1 ? input->size[1] : meta_int(m, 1);
    if (group && meta_arg(op, args, "C")->kind != VAL_none)
        val_as_expr(m->sym, meta_arg(op, args, "C"), &channels);
    for (int i = 1; i < mask->n; i++) {
        const TensorMeta *like = layer && i == 2 && bias ? bias : weight;
        if (!mask->at[i].b)
            continue;
        if (layer && like)
            out->at[i] = val_tensor(meta_like(m, like, like->dtype, MF_contiguous));
        else
            out->at[i] = val_tensor(
                meta_make(m, weight ? weight->dtype : input->dtype, 1, &channels, input->device));
    }
    return true;
}

static TensorMeta *vector(MetaCtx *m, DType dtype, const Expr *n, Device device) {
    return meta_make(m, dtype, 1, &n, device);
}

// All forms of batch normalisation; statistics are empty when not training.
bool meta_native_batch_norm(MetaCtx *m, const Op *op, const Value *args, Value *out) {
    const TensorMeta *input = meta_self(m, op, args);
    if (!input)
        return false;
    if (input->ndim < 2)
        return meta_fail(m, "RuntimeError: batch_norm: input of %d dimensions, expected at least 2",
                         input->ndim);
    bool training = op_arg_index(op, "training") >= 0 ? meta_arg_bool(op, args, "training")
                                                      : strstr(op->name, "with_update") != NULL;
    const TensorMeta *weight = meta_arg_tensor(op, args, "weight"),
                     *mean = meta_arg_tensor(op, args, "running_mean");
    DType d = stat_dtype(input, weight ? weight : mean);
    const Expr *n = training ? input->size[1] : meta_int(m, 0);
    *out = meta_tuple(m, op->n_returns);
    out->at[0] = val_tensor(meta_like(m, input, input->dtype, meta_suggest_format(m, input)));
    out->at[1] = val_tensor(vector(m, d, n, input->device));
    out->at[2] = val_tensor(vector(m, d, n, input->device));
    int next = 3;
    if (strstr(op->name, "_batch_norm_with_update") || strstr(op->name, "no_update"))
        out->at[next++] = val_tensor(vector(m, DT_u8, meta_int(m, 0), input->device));
    if (next < op->n_returns && mean) {
        out->at[next] = val_tensor(meta_like(m, mean, mean->dtype, MF_preserve));
        out->at[next + 1] = val_tensor(meta_like(m, mean, mean->dtype, MF_preserve));
    }
    return true;
}

bool meta_native_group_norm(MetaCtx *m, const Op *op, const Value *args, Value *out) {
    const TensorMeta *input = meta_self(m, op, args);
    const Expr *size[2];
    if (!input || !val_as_expr(m->sym, meta_arg(op, args, "N"), &size[0]) ||
        !val_as_expr(m->sym, meta_arg(op, args, "group"), &size[1]))
        return false;
    DType d = stat_dtype(input, meta_arg_tensor(op, args, "weight"));
    return list3(m, meta_like(m, input, input->dtype, meta_suggest_format(m, input)),
                 meta_make(m, d, 2, size, input->device), meta_make(m, d, 2, size, input->device),
                 out);
}

// (B, H, L, E) laid out as (B, L, H, E), as the flash kernels leave gradients.
static TensorMeta *attention_layout(MetaCtx *m, const TensorMeta *q, const Expr *last,
                                    DType dtype) {
    Sym *s = m->sym;
    const Expr *size[4] = {q->size[0], q->size[1], q->size[2], last};
    TensorMeta *t = meta_make(m, dtype, 4, size, q->device);
    t->stride[3] = meta_int(m, 1);
    t->stride[1] = last;
    t->stride[2] = sym_mul(s, q->size[1], last);
    t->stride[0] = sym_mul(s, t->stride[2], q->size[2]);
    return t;
}

static bool attention_shapes(MetaCtx *m, const TensorMeta *q, const TensorMeta *k,
                             const TensorMeta *v) {
    if (!q || !k || !v)
        return false;
    if (q->ndim < 2 || k->ndim < 2 || v->ndim < 2)
        return meta_fail(m,
                         "RuntimeError: scaled_dot_product_attention: Expected query, key, and "
                         "value to all be at least "
                         "2 dimensional, but got %d, %d and %d",
                         q->ndim, k->ndim, v->ndim);
    if (q->dtype != k->dtype || q->dtype != v->dtype)
        return meta_fail(m,
                         "RuntimeError: Expected query, key, and value to have the same dtype, but "
                         "got query.dtype: %s "
                         "key.dtype: %s and value.dtype: %s instead.",
                         dtype_info[q->dtype].torch_name, dtype_info[k->dtype].torch_name,
                         dtype_info[v->dtype].torch_name);
    return true;
}

bool meta_flash_attention(MetaCtx *m, const Op *op, const Value *args, Value *out) {
    const TensorMeta *q = meta_self(m, op, args);
    const TensorMeta *k = meta_arg_tensor(op, args, "key"), *v = meta_arg_tensor(op, args, "value");
    if (!attention_shapes(m, q, k, v) || q->ndim != 4)
        return false;
    TensorMeta *lse = meta_make(m, q->dtype == DT_f64 ? DT_f64 : DT_f32, 3, q->size, q->device);
    lse->stride[1] = meta_int(m, 1);
    lse->stride[2] = q->size[1];
    lse->stride[0] = sym_mul(m->sym, q->size[1], q->size[2]);
    *out = meta_tuple(m, 2);
    out->at[0] = val_tensor(meta_like(m, q, q->dtype, MF_preserve));
    out->at[1] = val_tensor(lse);
    return true;
}

bool meta_flash_attention_backward(MetaCtx *m, const Op *op, const Value *args, Value *out) {
    const TensorMeta *q = meta_arg_tensor(op, args, "query");
    const TensorMeta *k = meta_arg_tensor(op, args, "key"), *v = meta_arg_tensor(op, args, "value");
    if (!attention_shapes(m, q, k, v))
        return false;
    if (q->ndim != 4 || k->ndim != 4 || v->ndim != 4)
        return meta_fail(m, "RuntimeError: %s: 4 dimensions expected, given %d, %d and %d",
                         op->name, q->ndim, k->ndim, v->ndim);
    return list3(m, attention_layout(m, q, q->size[3], q->dtype),
                 attention_layout(m, k, k->size[3], q->dtype),
                 attention_layout(m, v, v->size[3], q->dtype), out);
}

bool meta_attention(MetaCtx *m, const Op *op, const Value *args, Value *out) {
    const TensorMeta *q = meta_self(m, op, args);
    const TensorMeta *k = meta_arg_tensor(op, args, "key"), *v = meta_arg_tensor(op, args, "value");
    double dropout = 0;
    val_as_float(meta_arg(op, args, "dropout_p"), &dropout);
    if (!attention_shapes(m, q, k, v))
        return false;
    if (q->ndim == 4 && k->ndim == 4 && v->ndim == 4 && dropout == 0 &&
        meta_eq(m, q->size[3], v->size[3]))
        return meta_out(out, meta_like(m, q, q->dtype, MF_preserve));
    const Expr **size = ARENA_ARRAY(m->arena, q->ndim, const Expr *);
    memcpy(size, q->size, (size_t)q->ndim * sizeof *size);
    size[q->ndim - 1] = v->size[v->ndim - 1];
    return meta_out_new(m, out, q->dtype, q->ndim, size, q->device);
}

// nll_loss_forward: the loss (a number unless reduction is none) and the total weight.
bool meta_nll_forward(MetaCtx *m, const Op *op, const Value *args, Value *out) {
    const TensorMeta *self = meta_self(m, op, args), *target = meta_arg_tensor(op, args, "target");
    if (!self || !target)
        return false;
    bool each = meta_arg_int(op, args, "reduction", 1) == 0;
    int n = each && self->ndim > 1 ? target->ndim : 0;
    const TensorMeta *loss = meta_make(m, self->dtype, n, target->size, self->device);
    *out = meta_tuple(m, 2);
    out->at[0] = val_tensor(loss);
    out->at[1] = val_tensor(meta_make(m, self->dtype, 0, NULL, self->device));
    return true;
}

// cross_entropy_loss, nll_loss, nll_loss2d.
bool meta_class_loss(MetaCtx *m, const Op *op, const Value *args, Value *out) {
    const TensorMeta *self = meta_self(m, op, args), *target = meta_arg_tensor(op, args, "target");
    if (!self || !target)
        return false;
    bool probabilities = dtype_is_float(target->dtype);
    if (meta_arg_int(op, args, "reduction", 1) != 0)
        return meta_out_new(m, out, self->dtype, 0, NULL, self->device);
    if (!probabilities)
        return meta_out_new(m, out, self->dtype, target->ndim, target->size, self->device);
    const Expr **size = ARENA_ARRAY(m->arena, self->ndim + 1, const Expr *);
    int n = 0, classes = self->ndim > 1 ? 1 : 0;
    for (int i = 0; i < self->ndim; i++)
        if (i != classes)
            size[n++] = self->size[i];
    return meta_out_new(m, out, self->dtype, n, size, self->device);
}

// A gradient like the argument `self`.
bool meta_grad_like_self(MetaCtx *m, const Op *op, const Value *args, Value *out) {
    const TensorMeta *self = meta_arg_tensor(op, args, "self");
    return self && meta_out(out, meta_like(m, self, self->dtype, MF_contiguous));
}

// multi_margin_loss, multilabel_margin_loss: one number a row.
bool meta_margin_loss(MetaCtx *m, const Op *op, const Value *args, Value *out) {
    const TensorMeta *self = meta_self(m, op, args), *target = meta_arg_tensor(op, args, "target");
    if (!self || !target)
        return false;
    int n = meta_arg_int(op, args, "reduction", 1) == 0 && self->ndim == 2 ? 1 : 0;
    const TensorMeta *loss = meta_make(m, self->dtype, n, self->size, self->device);
    if (op->n_returns == 1)
        return meta_out(out, loss);
    *out = meta_tuple(m, 2);
    out->at[0] = val_tensor(loss);
    out->at[1] = val_tensor(meta_make(m, self->dtype, target->ndim, target->size, self->device));
    return true;
}

// glu halves a dimension.
bool meta_glu(MetaCtx *m, const Op *op, const Value *args, Value *out) {
    const TensorMeta *self = meta_self(m, op, args);
    int dim;
    int64_t n;
    if (!self || !meta_dim(m, meta_arg_int(op, args, "dim", -1), self->ndim, &dim))
        return false;
    if (self->ndim == 0)
        return meta_fail(m, "RuntimeError: glu does not support 0-dimensional tensors");
    if (expr_int(self->size[dim], &n) && n % 2)
        return meta_fail(
            m, "RuntimeError: Halving dimension must be even, but dimension %d is size %lld", dim,
            (long long)n);
    TensorMeta *t = meta_copy(m->arena, self);
    t->size[dim] = sym_floordiv(m->sym, t->size[dim], meta_int(m, 2));
    const TensorMeta *half = t;
    return meta_out(out, meta_iterate(m, self->dtype, &half, 1, false));
}

// The memory-efficient kernels of a GPU: result as (B, L, H, E), log-sum-exp padded to 32, seed and
// offset.
bool meta_efficient_attention(MetaCtx *m, const Op *op, const Value *args, Value *out) {
    enum { PAD = 32 };
    const TensorMeta *q = meta_self(m, op, args);
    const TensorMeta *k = meta_arg_tensor(op, args, "key"), *v = meta_arg_tensor(op, args, "value");
    if (!attention_shapes(m, q, k, v) || q->ndim != 4)
        return false;
    Sym *s = m->sym;
    bool keep = meta_arg_bool(op, args, "compute_log_sumexp");
    const Expr *len =
        keep ? sym_mul_int(s, sym_ceildiv(s, q->size[2], meta_int(m, PAD)), PAD) : meta_int(m, 0);
    const Expr *size[3] = {q->size[0], q->size[1], len};
    *out = meta_tuple(m, 4);
    out->at[0] = val_tensor(attention_layout(m, q, v->size[3], q->dtype));
    out->at[1] = val_tensor(meta_make(m, DT_f32, 3, size, q->device));
    out->at[2] = out->at[3] = val_tensor(meta_make(m, DT_i64, 0, NULL, q->device));
    return true;
}

bool meta_efficient_attention_backward(MetaCtx *m, const Op *op, const Value *args, Value *out) {
    const TensorMeta *q = meta_arg_tensor(op, args, "query");
    const TensorMeta *k = meta_arg_tensor(op, args, "key"), *v = meta_arg_tensor(op, args, "value");
    if (!attention_shapes(m, q, k, v) || q->ndim != 4)
        return false;
    *out = meta_tuple(m, 4);
    out->at[0] = val_tensor(attention_layout(m, q, q->size[3], q->dtype));
    out->at[1] = val_tensor(attention_layout(m, k, k->size[3], q->dtype));
    out->at[2] = val_tensor(attention_layout(m, v, v->size[3], q->dtype));
    return true;
}

// _weight_norm_interface: the weight, and the norms that are g's shape.
bool meta_weight_norm(MetaCtx *m, const Op *op, const Value *args, Value *out) {
    const TensorMeta *v = meta_self(m, op, args), *g = meta_arg_tensor(op, args, "g");
    if (!v || !g)
        return false;
    const TensorMeta *w = meta_like(m, v, v->dtype, MF_contiguous);
    if (op->n_returns == 1)
        return meta_out(out, w);
    *out = meta_tuple(m, 2);
    out->at[0] = val_tensor(w);
    out->at[1] = val_tensor(meta_like(m, g, dtype_compute(g->dtype), MF_contiguous));
    return true;
}

bool meta_weight_norm_backward(MetaCtx *m, const Op *op, const Value *args, Value *out) {
    static const char *const names[2] = {"saved_v", "saved_g"};
    *out = meta_tuple(m, 2);
    for (int i = 0; i < 2; i++) {
        const TensorMeta *x = meta_arg_tensor(op, args, names[i]);
        if (!x)
            return false;
        out->at[i] = val_tensor(meta_like(m, x, x->dtype, MF_contiguous));
    }
    return true;
}
