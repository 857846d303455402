// meta_conv.c: convolutions, pooling, padding, resampling. Sizes by the usual window arithmetic;
// the result lies channels-last if the input (or, for convolutions, the weight) does.
#include "core/ops/meta.h"

#include <string.h>

enum { SPATIAL = 3 }; // most spatial dimensions of a window operator

// A list of n numbers, one number repeated, or `absent` if there is none.
static bool window_arg(MetaCtx *m, const Op *op, const Value *args, const char *name, int n,
                       const Expr *absent, const Expr **out) {
    int have = 0;
    const Value *v = meta_arg(op, args, name);
    const Expr **e = v->kind == VAL_none ? NULL : meta_exprs(m, v, &have);
    if (v->kind != VAL_none && !e)
        return false;
    if (have > 1 && have != n)
        return meta_fail(m, "RuntimeError: %s: %s must be one int or a list of %d ints", op->name,
                         name, n);
    for (int i = 0; i < n; i++) {
        out[i] = !have ? absent : e[have == 1 ? 0 : i];
        if (!out[i])
            return meta_fail(m, "RuntimeError: %s: %s must be given", op->name, name);
        bool size = strstr("kernel_size stride dilation", name) != NULL;
        if (size && expr_int_or(out[i], 1) < 1)
            return meta_fail(m, "RuntimeError: %s: %s must be greater than zero, but got %s",
                             op->name, name, sym_str(m->arena, out[i]));
    }
    return true;
}

// (in + 2 pad - dilation (kernel - 1) - 1) / stride + 1
static const Expr *conv_size(MetaCtx *m, const Expr *in, const Expr *kernel, const Expr *stride,
                             const Expr *pad, const Expr *dilation) {
    Sym *s = m->sym;
    const Expr *reach = sym_mul(s, dilation, sym_add_int(s, kernel, -1));
    const Expr *room = sym_sub(s, sym_add(s, in, sym_mul_int(s, pad, 2)), reach);
    return sym_add_int(s, sym_floordiv(s, sym_add_int(s, room, -1), stride), 1);
}

static const Expr *transposed_size(MetaCtx *m, const Expr *in, const Expr *kernel,
                                   const Expr *stride, const Expr *pad, const Expr *dilation,
                                   const Expr *extra) {
    Sym *s = m->sym;
    const Expr *e = sym_mul(s, sym_add_int(s, in, -1), stride);
    e = sym_sub(s, e, sym_mul_int(s, pad, 2));
    e = sym_add(s, e, sym_mul(s, dilation, sym_add_int(s, kernel, -1)));
    return sym_add_int(s, sym_add(s, e, extra), 1);
}

typedef struct Conv {
    const TensorMeta *input, *weight, *bias;
    int spatial; // 1, 2 or 3
    bool batched, transposed;
    const Expr *stride[SPATIAL], *pad[SPATIAL], *dilation[SPATIAL], *extra[SPATIAL];
    int64_t groups;
} Conv;

static MemoryFormat conv_format(MetaCtx *m, const TensorMeta *input, const TensorMeta *weight) {
    MemoryFormat a = meta_suggest_format(m, input);
    return a != MF_contiguous ? a : meta_suggest_format(m, weight);
}

static bool conv_checked(MetaCtx *m, const Conv *c) {
    int lead = c->batched ? 2 : 1;
    if (c->input->ndim != c->spatial + lead)
        return meta_fail(m,
                         "RuntimeError: Expected %dD (unbatched) or %dD (batched) input to "
                         "conv%dd, but got input of "
                         "size: %s",
                         c->spatial + 1, c->spatial + 2, c->spatial,
                         meta_sizes_text(m, c->input->size, c->input->ndim));
    if (c->input->dtype != c->weight->dtype)
        return meta_fail(m, "RuntimeError: Input type (%s) and weight type (%s) should be the same",
                         dtype_info[c->input->dtype].torch_name,
                         dtype_info[c->weight->dtype].torch_name);
    const Expr *channels = c->input->size[lead - 1];
    const Expr *want =
        c->transposed ? c->weight->size[0] : sym_mul_int(m->sym, c->weight->size[1], c->groups);
    if (!meta_eq(m, channels, want))
        return meta_fail(m,
                         "RuntimeError: Given groups=%lld, weight of size %s, expected input%s to "
                         "have %s channels, "
                         "but got %s channels instead",
                         (long long)c->groups, meta_sizes_text(m, c->weight->size, c->weight->ndim),
                         meta_sizes_text(m, c->input->size, c->input->ndim),
                         sym_str(m->arena, want), sym_str(m->arena, channels));
    return true;
}

static bool conv_result(MetaCtx *m, const Conv *c, Value *out) {
    if (!conv_checked(m, c))
        return false;
    int lead = c->batched ? 2 : 1;
    const Expr *size[SPATIAL + 2] = {0};
    if (c->batched)
        size[0] = c->input->size[0];
    size[lead - 1] =
        c->transposed ? sym_mul_int(m->sym, c->weight->size[1], c->groups) : c->weight->size[0];
    for (int i = 0; i < c->spatial; i++) {
        const Expr *in = c->input->size[lead + i], *k = c->weight->size[2 + i];
        const Expr *n =
            c->transposed
                ? transposed_size(m, in, k, c->stride[i], c->pad[i], c->dilation[i], c->extra[i])
                : conv_size(m, in, k, c->stride[i], c->pad[i], c->dilation[i]);
        if (expr_int_or(n, 1) < 0 || (expr_int_or(n, 1) == 0 && !expr_is(in, 0)))
            return meta_fail(
                m,
                "RuntimeError: Calculated padded input size per channel is smaller than the kernel "
                "size. Kernel size can't be greater than actual input size");
        size[lead + i] = n;
    }
    TensorMeta *t = meta_make(m, c->input->dtype, c->spatial + lead, size, c->input->device);
    if (c->batched)
        meta_set_format(m, t, conv_format(m, c->input, c->weight));
    return meta_out(out, t);
}

static bool read_conv(MetaCtx *m, const Op *op, const Value *args, Conv *c) {
    const Expr *zero = meta_int(m, 0), *one = meta_int(m, 1);
    c->input = meta_self(m, op, args);
    c->weight = meta_arg_tensor(op, args, "weight");
    c->bias = meta_arg_tensor(op, args, "bias");
    if (!c->input || !c->weight)
        return false;
    c->spatial = c->weight->ndim - 2;
    if (c->spatial < 1 || c->spatial > SPATIAL)
        return meta_fail(
            m, "RuntimeError: weight of a convolution has %d dimensions, expected 3, 4 or 5",
            c->weight->ndim);
    c->batched = c->input->ndim == c->weight->ndim;
    c->transposed = strstr(op->name, "transpose") || meta_arg_bool(op, args, "transposed");
    c->groups = meta_arg_int(op, args, "groups", 1);
    return window_arg(m, op, args, "stride", c->spatial, one, c->stride) &&
           window_arg(m, op, args, "dilation", c->spatial, one, c->dilation) &&
           window_arg(m, op, args, "output_padding", c->spatial, zero, c->extra);
}

bool meta_conv(MetaCtx *m, const Op *op, const Value *args, Value *out) {
    Conv c = {0};
    return read_conv(m, op, args, &c) &&
           window_arg(m, op, args, "padding", c.spatial, meta_int(m, 0), c.pad) &&
           conv_result(m, &c, out);
}

// padding='same' or 'valid'.
bool meta_conv_padding(MetaCtx *m, const Op *op, const Value *args, Value *out) {
    Conv c = {0};
    const Value *padding = meta_arg(op, args, "padding");
    if (!read_conv(m, op, args, &c) || padding->kind != VAL_str)
        return false;
    for (int i = 0; i < c.spatial; i++)
        c.pad[i] = meta_int(m, 0);
    if (!conv_result(m, &c, out))
        return false;
    if (strcmp(padding->s, "same") == 0) {
        TensorMeta *t = meta_copy(m->arena, out->tensor);
        int lead = c.batched ? 2 : 1;
        for (int i = 0; i < c.spatial; i++)
            t->size[lead + i] = c.input->size[lead + i];
        meta_set_format(m, t, c.batched ? conv_format(m, c.input, c.weight) : MF_contiguous);
        *out = val_tensor(t);
    }
    return true;
}

bool meta_conv_backward(MetaCtx *m, const Op *op, const Value *args, Value *out) {
    const TensorMeta *grad = meta_self(m, op, args);
    const TensorMeta *input = meta_arg_tensor(op, args, "input"),
                     *weight = meta_arg_tensor(op, args, "weight");
    const Value *mask = meta_arg(op, args, "output_mask");
    if (!grad || !input || !weight)
        return false;
    if (mask->n != 3 || weight->ndim < 3 || input->ndim != weight->ndim)
        return meta_fail(m,
                         "RuntimeError: convolution_backward: an input of %d dimensions, a weight "
                         "of %d and a mask of %d",
                         input->ndim, weight->ndim, mask->n);
    MemoryFormat mf = conv_format(m, input, weight);
    bool transposed = meta_arg_bool(op, args, "transposed");
    const Expr *channels =
        transposed ? sym_mul_int(m->sym, weight->size[1], meta_arg_int(op, args, "groups", 1))
                   : weight->size[0];
    *out = meta_tuple(m, 3);
    if (mask->at[0].b)
        out->at[0] = val_tensor(meta_like(m, input, grad->dtype, mf));
    if (mask->at[1].b)
        out->at[1] = val_tensor(meta_like(m, weight, grad->dtype, mf));
    if (mask->at[2].b)
        out->at[2] = val_tensor(meta_make(m, grad->dtype, 1, &channels, grad->device));
    return true;
}

// One spatial extent of a pooling window; ceil_mode lets a last window start inside the input or
// left padding.
static const Expr *pool_size(MetaCtx *m, const Expr *in, const Expr *kernel, const Expr *stride,
                             const Expr *pad, const Expr *dilation, bool ceil_mode) {
    Sym *s = m->sym;
    const Expr *room = sym_sub(s, sym_add(s, in, sym_mul_int(s, pad, 2)),
                               sym_add_int(s, sym_mul(s, dilation, sym_add_int(s, kernel, -1)), 1));
    if (ceil_mode)
        room = sym_add_int(s, sym_add(s, room, stride), -1);
    const Expr *n = sym_add_int(s, sym_floordiv(s, room, stride), 1);
    if (ceil_mode && !meta_lt(m, sym_mul(s, sym_add_int(s, n, -1), stride), sym_add(s, in, pad)))
        n = sym_add_int(s, n, -1);
    return n;
}

// Number of spatial dimensions: the digit in the operator's name, else the length of its window.
static int spatial_of(const Op *op, const Value *args) {
    const char *d = strpbrk(op->name, "123");
    int window = op_arg_index(op, "kernel_size");
    return d                                                                ? *d - '0'
           : window >= 0 && args[window].n > 0 && args[window].n <= SPATIAL ? args[window].n
                                                                            : 2;
}

static bool pooled(MetaCtx *m, const Op *op, const Value *args, const TensorMeta **self,
                   TensorMeta **result) {
    int n = spatial_of(op, args);
    const Expr *kernel[SPATIAL] = {0}, *stride[SPATIAL] = {0}, *pad[SPATIAL] = {0};
    const Expr *dilation[SPATIAL] = {0}, *one = meta_int(m, 1);
    *self = meta_self(m, op, args);
    if (!*self || !window_arg(m, op, args, "kernel_size", n, NULL, kernel) ||
        !window_arg(m, op, args, "padding", n, meta_int(m, 0), pad) ||
        !window_arg(m, op, args, "dilation", n, one, dilation))
        return false;
    const Value *v = meta_arg(op, args, "stride");
    memcpy(stride, kernel, sizeof stride);
    if (v->kind != VAL_none && v->n > 0 && !window_arg(m, op, args, "stride", n, one, stride))
        return false;
    int lead = (*self)->ndim - n;
    if (lead < 1 || lead > 2)
        return meta_fail(m,
                         "RuntimeError: Expected %dD or %dD (batch mode) tensor for %s, but got %s",
                         n + 1, n + 2, op->name, meta_sizes_text(m, (*self)->size, (*self)->ndim));
    TensorMeta *t = meta_make(m, (*self)->dtype, (*self)->ndim, (*self)->size, (*self)->device);
    for (int i = 0; i < n; i++) {
        const Expr *in = (*self)->size[lead + i];
        if (expr_int_or(kernel[i], 2) / 2 < expr_int_or(pad[i], 0))
            return meta_fail(m,
                             "RuntimeError: pad should be at most half of effective kernel size, "
                             "but got pad=%s, "
                             "kernel_size=%s and dilation=%s",
                             sym_str(m->arena, pad[i]), sym_str(m->arena, kernel[i]),
                             sym_str(m->arena, dilation[i]));
        t->size[lead + i] = pool_size(m, in, kernel[i], stride[i], pad[i], dilation[i],
                                      meta_arg_bool(op, args, "ceil_mode"));
        if (expr_int_or(t->size[lead + i], 1) < 1)
            return meta_fail(m,
                             "RuntimeError: Given input size: %s. Calculated output size: %s. "
                             "Output size is too small",
                             meta_sizes_text(m, (*self)->size, (*self)->ndim),
                             sym_str(m->arena, t->size[lead + i]));
    }
    meta_set_format(m, t, meta_suggest_format(m, *self));
    *result = t;
    return true;
}

bool meta_pool(MetaCtx *m, const Op *op, const Value *args, Value *out) {
    const TensorMeta *self;
    TensorMeta *t = NULL;
    return pooled(m, op, args, &self, &t) && meta_out(out, t);
}

static bool with_index(MetaCtx *m, TensorMeta *t, DType index, Value *out) {
    TensorMeta *where = meta_copy(m->arena, t);
    where->dtype = index;
    *out = meta_tuple(m, 2);
    out->at[0] = val_tensor(t);
    out->at[1] = val_tensor(where);
    return true;
}

// Values and where they were; Inductor's low-memory form keeps offsets into the window in a byte.
bool meta_pool_index(MetaCtx *m, const Op *op, const Value *args, Value *out) {
    const TensorMeta *self;
    TensorMeta *t = NULL;
    return pooled(m, op, args, &self, &t) &&
           with_index(m, t, strstr(op->name, "_low_memory") ? DT_i8 : DT_i64, out);
}

bool meta_offsets_to_indices(MetaCtx *m, const Op *op, const Value *args, Value *out) {
    const TensorMeta *self = meta_self(m, op, args);
    return self && meta_out(out, meta_like(m, self, DT_i64, MF_preserve));
}

static TensorMeta *adaptive(MetaCtx *m, const Op *op, const Value *args) {
    const TensorMeta *self = meta_self(m, op, args);
    int n = spatial_of(op, args);
    const Expr *size[SPATIAL] = {0};
    if (!self || !window_arg(m, op, args, "output_size", n, NULL, size))
        return NULL;
    int lead = self->ndim - n;
    if (lead < 1 || lead > 2) {
        meta_fail(m, "RuntimeError: %s(): Expected %dD or %dD tensor, but got %s", op->name, n + 1,
                  n + 2, meta_sizes_text(m, self->size, self->ndim));
        return NULL;
    }
    TensorMeta *t = meta_make(m, self->dtype, self->ndim, self->size, self->device);
    for (int i = 0; i < n; i++)
        t->size[lead + i] = size[i];
    meta_set_format(m, t, meta_suggest_format(m, self));
    return t;
}

bool meta_adaptive(MetaCtx *m, const Op *op, const Value *args, Value *out) {
    return meta_out(out, adaptive(m, op, args));
}

bool meta_adaptive_index(MetaCtx *m, const Op *op, const Value *args, Value *out) {
    TensorMeta *t = adaptive(m, op, args);
    if (!t)
        return false;
    if (t->ndim != 4)
        meta_set_contiguous(m, t);
    return with_index(m, t, DT_i64, out);
}

// The gradient of a window operator: like the input, in the format that the input suggests.
bool meta_grad_of_input(MetaCtx *m, const Op *op, const Value *args, Value *out) {
    const TensorMeta *grad = meta_self(m, op, args), *self = meta_arg_tensor(op, args, "self");
    if (!self)
        self = meta_arg_tensor(op, args, "input");
    return grad && self &&
           meta_out(out, meta_like(m, self, grad->dtype, meta_suggest_format(m, self)));
}

static bool pad_by(MetaCtx *m, const TensorMeta *self, const Expr *const *pad, int n, Value *out) {
    if (n % 2 || n / 2 > self->ndim)
        return meta_fail(m,
                         "RuntimeError: Length of pad must be even and at most twice the input's "
                         "dimensions; length "
                         "of pad is %d, the input has %d dimensions",
                         n, self->ndim);
    TensorMeta *t = meta_make(m, self->dtype, self->ndim, self->size, self->device);
    bool grows = false;
    for (int k = 0; k < n / 2; k++) {
        int i = self->ndim - 1 - k;
        t->size[i] = sym_add(m->sym, t->size[i], sym_add(m->sym, pad[2 * k], pad[2 * k + 1]));
        grows = grows || expr_int_or(pad[2 * k], 1) > 0 || expr_int_or(pad[2 * k + 1], 1) > 0;
        if (expr_int_or(t->size[i], 1) < 0)
            return meta_fail(
                m,
                "RuntimeError: The input size %s, plus negative padding %s and %s, resulted in a "
                "negative output size, which is invalid. Check dimension %d of your input.",
                sym_str(m->arena, self->size[i]), sym_str(m->arena, pad[2 * k]),
                sym_str(m->arena, pad[2 * k + 1]), i);
    }
    meta_set_format(m, t, meta_suggest_format(m, self));
    if (!grows) { // cropping is a clone of a window
        TensorMeta *window = meta_copy(m->arena, self);
        memcpy(window->size, t->size, (size_t)t->ndim * sizeof *t->size);
        t = meta_like(m, window, self->dtype, MF_preserve);
    }
    return meta_out(out, t);
}

bool meta_constant_pad(MetaCtx *m, const Op *op, const Value *args, Value *out) {
    const TensorMeta *self = meta_self(m, op, args);
    int n;
    const Expr **pad = self ? meta_exprs(m, meta_arg(op, args, "pad"), &n) : NULL;
    return pad && pad_by(m, self, pad, n, out);
}

// reflection and replication.
bool meta_edge_pad(MetaCtx *m, const Op *op, const Value *args, Value *out) {
    const TensorMeta *self = meta_self(m, op, args);
    int n;
    const Expr **pad = self ? meta_exprs(m, meta_arg(op, args, "padding"), &n) : NULL;
    if (!pad)
        return false;
    for (int k = 0; k < n && op->name[2] == 'f'; k++)
        if (k / 2 < self->ndim && !meta_lt(m, pad[k], self->size[self->ndim - 1 - k / 2]))
            return meta_fail(m,
                             "RuntimeError: Argument #4: Padding size should be less than the "
                             "corresponding input "
                             "dimension, but got: padding %s at dimension %d of input %s",
                             sym_str(m->arena, pad[k]), self->ndim - 1 - k / 2,
                             meta_sizes_text(m, self->size, self->ndim));
    return pad_by(m, self, pad, n, out);
}

// Output sizes from output_size, or input sizes times scales (rounded down).
static bool resampled_size(MetaCtx *m, const Op *op, const Value *args, const TensorMeta *self,
                           int n, const Expr **size) {
    const Value *asked = meta_arg(op, args, "output_size"),
                *scales = meta_arg(op, args, "scale_factors");
    if (asked->kind != VAL_none)
        return window_arg(m, op, args, "output_size", n, NULL, size);
    for (int i = 0; i < n; i++) {
        double scale;
        int64_t in;
        if (scales->n != n || !val_as_float(&scales->at[i], &scale))
            return meta_fail(
                m, "RuntimeError: Must specify exactly one of output_size and scale_factors");
        if (expr_int(self->size[i + 2], &in))
            size[i] = meta_int(m, (int64_t)((double)in * scale));
        else if (scale == (double)(int64_t)scale)
            size[i] = sym_mul_int(m->sym, self->size[i + 2], (int64_t)scale);
        else
            return meta_fail(m, "RuntimeError: a symbolic size times %g is not modelled", scale);
    }
    return true;
}

bool meta_upsample(MetaCtx *m, const Op *op, const Value *args, Value *out) {
    const TensorMeta *self = meta_self(m, op, args);
    int n = spatial_of(op, args);
    const Expr *size[SPATIAL + 2] = {0};
    if (!self)
        return false;
    if (self->ndim != n + 2)
        return meta_fail(m, "RuntimeError: It is expected input_size equals to %d, but got size %d",
                         n + 2, self->ndim);
    if (!resampled_size(m, op, args, self, n, size + 2))
        return false;
    size[0] = self->size[0];
    size[1] = self->size[1];
    TensorMeta *t = meta_make(m, self->dtype, n + 2, size, self->device);
    meta_set_format(m, t, meta_suggest_format(m, self));
    return meta_out(out, t);
}

bool meta_upsample_backward(MetaCtx *m, const Op *op, const Value *args, Value *out) {
    const TensorMeta *grad = meta_self(m, op, args);
    int n;
    const Expr **size = grad ? meta_exprs(m, meta_arg(op, args, "input_size"), &n) : NULL;
    if (!size)
        return false;
    TensorMeta *t = meta_make(m, grad->dtype, n, size, grad->device);
    meta_set_format(m, t, meta_suggest_format(m, grad));
    return meta_out(out, t);
}

// pixel_shuffle and its inverse: channels traded for space.
bool meta_pixel_shuffle(MetaCtx *m, const Op *op, const Value *args, Value *out) {
    const TensorMeta *self = meta_self(m, op, args);
    bool down = strstr(op->name, "unshuffle");
    int64_t r = meta_arg_int(op, args, down ? "downscale_factor" : "upscale_factor", 1);
    if (!self || self->ndim < 3 || r <= 0 || r > 1 << 20)
        return self && meta_fail(m,
                                 "RuntimeError: %s expects input to have at least 3 dimensions and "
                                 "a positive factor",
                                 op->name);
    TensorMeta *t = meta_make(m, self->dtype, self->ndim, self->size, self->device);
    int c = self->ndim - 3;
    const Expr *side = meta_int(m, r), *square = meta_int(m, r * r);
    int64_t channels;
    if (!down && expr_int(t->size[c], &channels) && channels % (r * r))
        return meta_fail(m,
                         "RuntimeError: pixel_shuffle expects its input's 'channel' dimension to "
                         "be divisible by the square of upscale_factor, but input.size(-3)=%lld is "
                         "not divisible by %lld",
                         (long long)channels, (long long)(r * r));
    t->size[c] =
        down ? sym_mul(m->sym, t->size[c], square) : sym_floordiv(m->sym, t->size[c], square);
    for (int i = c + 1; i <= c + 2; i++)
        t->size[i] =
            down ? sym_floordiv(m->sym, t->size[i], side) : sym_mul(m->sym, t->size[i], side);
    meta_set_format(m, t, meta_suggest_format(m, self));
    return meta_out(out, t);
}

// Time, batch, channels, with weights of (time, channels in, channels out).
bool meta_conv_tbc(MetaCtx *m, const Op *op, const Value *args, Value *out) {
    const TensorMeta *x = meta_self(m, op, args), *w = meta_arg_tensor(op, args, "weight");
    const TensorMeta *bias = meta_arg_tensor(op, args, "bias");
    if (!x || !w || !bias || x->ndim != 3 || w->ndim != 3 || bias->ndim != 1)
        return x &&
               meta_fail(m, "RuntimeError: conv_tbc: expected input and weight of 3 dimensions, "
                            "bias of 1");
    if (!meta_eq(m, x->size[2], w->size[1]) || !meta_eq(m, bias->size[0], w->size[2]))
        return meta_fail(m,
                         "RuntimeError: conv_tbc: input, weight and bias have different channels");
    int64_t pad = meta_arg_int(op, args, "pad", 0);
    const Expr *time = sym_sub(m->sym, sym_add_int(m->sym, x->size[0], 2 * pad + 1), w->size[0]);
    return meta_out_new(m, out, x->dtype, 3, (const Expr *[3]){time, x->size[1], w->size[2]},
                        x->device);
}

// (grad, input, weight, bias, pad)
bool meta_conv_tbc_backward(MetaCtx *m, const Op *op, const Value *args, Value *out) {
    *out = meta_tuple(m, 3);
    for (int i = 0; i < 3; i++) {
        if (args[i + 1].kind != VAL_tensor)
            return meta_fail(m, "TypeError: %s: not a tensor", op->name);
        const TensorMeta *like = args[i + 1].tensor;
        out->at[i] = val_tensor(meta_like(m, like, like->dtype, MF_contiguous));
    }
    return true;
}

bool meta_grid_sampler(MetaCtx *m, const Op *op, const Value *args, Value *out) {
    const TensorMeta *self = meta_self(m, op, args), *grid = meta_arg_tensor(op, args, "grid");
    if (!self || !grid || grid->ndim != self->ndim || self->ndim < 4 || self->ndim > 5)
        return self &&
               meta_fail(
                   m,
                   "RuntimeError: grid_sampler(): expected grid and input to have same number of "
                   "dimensions");
    const Expr *size[5] = {self->size[0], self->size[1]};
    for (int i = 2; i < self->ndim; i++)
        size[i] = grid->size[i - 1];
    return meta_out_new(m, out, self->dtype, self->ndim, size, self->device);
}

bool meta_affine_grid(MetaCtx *m, const Op *op, const Value *args, Value *out) {
    const TensorMeta *theta = meta_self(m, op, args);
    int n;
    const Expr **size = theta ? meta_exprs(m, meta_arg(op, args, "size"), &n) : NULL, *grid[5];
    if (!size || n < 4 || n > 5)
        return size &&
               meta_fail(m, "RuntimeError: affine_grid_generator: expected 4-D or 5-D size, got %d",
                         n);
    grid[0] = size[0];
    for (int i = 2; i < n; i++)
        grid[i - 1] = size[i];
    grid[n - 1] = meta_int(m, n - 2);
    return meta_out_new(m, out, theta->dtype, n, grid, theta->device);
}

// im2col: (N, C, H, W) to (N, C kh kw, L); unbatched alike.
bool meta_im2col(MetaCtx *m, const Op *op, const Value *args, Value *out) {
    const TensorMeta *self = meta_self(m, op, args);
    const Expr *k[2] = {0}, *d[2] = {0}, *p[2] = {0}, *s[2] = {0}, *size[3] = {0};
    if (!self || (self->ndim != 3 && self->ndim != 4) ||
        !window_arg(m, op, args, "kernel_size", 2, NULL, k) ||
        !window_arg(m, op, args, "dilation", 2, NULL, d) ||
        !window_arg(m, op, args, "padding", 2, NULL, p) ||
        !window_arg(m, op, args, "stride", 2, NULL, s))
        return false;
    int lead = self->ndim - 3;
    size[0] = self->size[0];
    size[lead] = sym_mul(m->sym, self->size[lead], sym_mul(m->sym, k[0], k[1]));
    const Expr *blocks = meta_int(m, 1);
    for (int i = 0; i < 2; i++)
        blocks =
            sym_mul(m->sym, blocks, conv_size(m, self->size[lead + 1 + i], k[i], s[i], p[i], d[i]));
    size[lead + 1] = blocks;
    return meta_out_new(m, out, self->dtype, lead + 2, size, self->device);
}

bool meta_col2im(MetaCtx *m, const Op *op, const Value *args, Value *out) {
    const TensorMeta *self = meta_self(m, op, args);
    const Expr *k[2] = {0}, *o[2] = {0}, *size[4] = {0};
    if (!self || (self->ndim != 2 && self->ndim != 3) ||
        !window_arg(m, op, args, "kernel_size", 2, NULL, k) ||
        !window_arg(m, op, args, "output_size", 2, NULL, o))
        return false;
    int lead = self->ndim - 2;
    size[0] = self->size[0];
    size[lead] = sym_floordiv(m->sym, self->size[lead], sym_mul(m->sym, k[0], k[1]));
    size[lead + 1] = o[0];
    size[lead + 2] = o[1];
    return meta_out_new(m, out, self->dtype, lead + 3, size, self->device);
}

// max_unpool, fractional_max_pool: spatial sizes are given.
bool meta_sized_spatial(MetaCtx *m, const Op *op, const Value *args, Value *out) {
    const TensorMeta *self = meta_self(m, op, args);
    int n = spatial_of(op, args);
    const Expr *size[SPATIAL] = {0};
    if (!self || self->ndim < n || !window_arg(m, op, args, "output_size", n, NULL, size))
        return false;
    TensorMeta *t = meta_make(m, self->dtype, self->ndim, self->size, self->device);
    for (int i = 0; i < n; i++)
        t->size[self->ndim - n + i] = size[i];
    bool unpool = strstr(op->name, "unpool");
    meta_set_format(m, t, unpool && n == 2 ? meta_suggest_format(m, self) : MF_contiguous);
    return unpool ? meta_out(out, t) : with_index(m, t, DT_i64, out);
}
