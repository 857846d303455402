// meta_matmul.c: products of matrices and vectors. Dtypes are never promoted: PyTorch refuses mixed
// ones.
#include "core/ops/meta.h"

#include <string.h>

static bool same_dtype(MetaCtx *m, const Op *op, const TensorMeta *a, const TensorMeta *b) {
    return a->dtype == b->dtype ||
           meta_fail(
               m, "RuntimeError: expected m1 and m2 to have the same dtype, but got: %s != %s (%s)",
               dtype_info[a->dtype].torch_name, dtype_info[b->dtype].torch_name, op->name);
}

static bool is_empty(const TensorMeta *t) {
    for (int i = 0; i < t->ndim; i++)
        if (expr_int_or(t->size[i], 1) == 0)
            return true;
    return false;
}

static bool matrix_shapes(MetaCtx *m, const TensorMeta *a, const TensorMeta *b) {
    if (a->ndim != 2 || b->ndim != 2)
        return meta_fail(m, "RuntimeError: mat1 must be a matrix, got %d-D tensor and %d-D tensor",
                         a->ndim, b->ndim);
    return meta_eq(m, a->size[1], b->size[0]) ||
           meta_fail(m, "RuntimeError: mat1 and mat2 shapes cannot be multiplied (%sx%s and %sx%s)",
                     sym_str(m->arena, a->size[0]), sym_str(m->arena, a->size[1]),
                     sym_str(m->arena, b->size[0]), sym_str(m->arena, b->size[1]));
}

static bool mm(MetaCtx *m, const Op *op, const TensorMeta *a, const TensorMeta *b, Value *out) {
    if (!a || !b || !matrix_shapes(m, a, b) || !same_dtype(m, op, a, b))
        return false;
    const Expr *size[2] = {a->size[0], b->size[1]};
    DType d = strcmp(op->name, "_int_mm") == 0 ? DT_i32 : a->dtype;
    return meta_out_new(m, out, d, 2, size, a->device);
}

bool meta_mm(MetaCtx *m, const Op *op, const Value *args, Value *out) {
    return mm(m, op, meta_self(m, op, args), args[1].kind == VAL_tensor ? args[1].tensor : NULL,
              out);
}

// The bias must broadcast to the product.
static bool fits_product(MetaCtx *m, const TensorMeta *bias, const TensorMeta *product) {
    bool ok = bias->ndim <= product->ndim;
    for (int i = 0; ok && i < bias->ndim; i++) {
        const Expr *want = product->size[product->ndim - bias->ndim + i];
        ok = meta_eq(m, bias->size[i], want) || meta_is(m, bias->size[i], 1);
    }
    return ok ||
           meta_fail(
               m,
               "RuntimeError: The expanded size of the tensor %s must match the existing size %s",
               meta_sizes_text(m, product->size, product->ndim),
               meta_sizes_text(m, bias->size, bias->ndim));
}

bool meta_addmm(MetaCtx *m, const Op *op, const Value *args, Value *out) {
    const TensorMeta *bias = meta_self(m, op, args);
    const TensorMeta *a = meta_arg_tensor(op, args, "mat1"), *b = meta_arg_tensor(op, args, "mat2");
    return bias && mm(m, op, a, b, out) && fits_product(m, bias, out->tensor);
}

static bool bmm(MetaCtx *m, const TensorMeta *a, const TensorMeta *b, Value *out) {
    if (!a || !b)
        return false;
    if (a->ndim != 3 || b->ndim != 3)
        return meta_fail(m, "RuntimeError: batch1 must be a 3D tensor");
    if (!meta_eq(m, a->size[0], b->size[0]) || !meta_eq(m, a->size[2], b->size[1]))
        return meta_fail(m,
                         "RuntimeError: Expected size for first two dimensions of batch2 tensor to "
                         "be: [%s, %s] but "
                         "got: [%s, %s].",
                         sym_str(m->arena, a->size[0]), sym_str(m->arena, a->size[2]),
                         sym_str(m->arena, b->size[0]), sym_str(m->arena, b->size[1]));
    const Expr *size[3] = {a->size[0], a->size[1], b->size[2]};
    return meta_out_new(m, out, a->dtype, 3, size, a->device);
}

bool meta_bmm(MetaCtx *m, const Op *op, const Value *args, Value *out) {
    return bmm(m, meta_self(m, op, args), args[1].kind == VAL_tensor ? args[1].tensor : NULL, out);
}

// Products of batches that are added to something: their dtypes are looked at here.
static bool added_bmm(MetaCtx *m, const Op *op, const Value *args, Value *out) {
    const TensorMeta *a = meta_arg_tensor(op, args, "batch1"),
                     *b = meta_arg_tensor(op, args, "batch2");
    return bmm(m, a, b, out) && same_dtype(m, op, a, b);
}

bool meta_baddbmm(MetaCtx *m, const Op *op, const Value *args, Value *out) {
    const TensorMeta *bias = meta_self(m, op, args);
    return bias && added_bmm(m, op, args, out) && fits_product(m, bias, out->tensor);
}

bool meta_addbmm(MetaCtx *m, const Op *op, const Value *args, Value *out) {
    const TensorMeta *bias = meta_self(m, op, args);
    if (!bias || !added_bmm(m, op, args, out))
        return false;
    const TensorMeta *p = out->tensor;
    return meta_out_new(m, out, p->dtype, 2, p->size + 1, p->device) &&
           fits_product(m, bias, out->tensor);
}

static bool mv(MetaCtx *m, const TensorMeta *a, const TensorMeta *v, Value *out) {
    if (!a || !v)
        return false;
    if (a->ndim != 2 || v->ndim != 1 || !meta_eq(m, a->size[1], v->size[0]))
        return meta_fail(m, "RuntimeError: size mismatch, got input %s, vec %s",
                         meta_sizes_text(m, a->size, a->ndim),
                         meta_sizes_text(m, v->size, v->ndim));
    return meta_out_new(m, out, a->dtype, 1, a->size, a->device);
}

bool meta_mv(MetaCtx *m, const Op *op, const Value *args, Value *out) {
    return mv(m, meta_self(m, op, args), args[1].kind == VAL_tensor ? args[1].tensor : NULL, out);
}

bool meta_addmv(MetaCtx *m, const Op *op, const Value *args, Value *out) {
    const TensorMeta *bias = meta_self(m, op, args);
    return bias && mv(m, meta_arg_tensor(op, args, "mat"), meta_arg_tensor(op, args, "vec"), out) &&
           fits_product(m, bias, out->tensor);
}

bool meta_dot(MetaCtx *m, const Op *op, const Value *args, Value *out) {
    const TensorMeta *a = meta_self(m, op, args),
                     *b = args[1].kind == VAL_tensor ? args[1].tensor : NULL;
    if (!a || !b)
        return false;
    if (a->ndim != 1 || b->ndim != 1)
        return meta_fail(m, "RuntimeError: 1D tensors expected, but got %dD and %dD tensors",
                         a->ndim, b->ndim);
    if (!meta_eq(m, a->size[0], b->size[0]))
        return meta_fail(m,
                         "RuntimeError: inconsistent tensor size, expected tensor %s and src %s to "
                         "have the same "
                         "number of elements",
                         meta_sizes_text(m, a->size, 1), meta_sizes_text(m, b->size, 1));
    return same_dtype(m, op, a, b) && meta_out_new(m, out, a->dtype, 0, NULL, a->device);
}

static bool outer(MetaCtx *m, DType dtype, const TensorMeta *a, const TensorMeta *b, Value *out) {
    if (!a || !b)
        return false;
    if (a->ndim != 1 || b->ndim != 1)
        return meta_fail(m, "RuntimeError: outer: Expected 1-D arguments, but got %d-D and %d-D",
                         a->ndim, b->ndim);
    const Expr *size[2] = {a->size[0], b->size[0]};
    return meta_out_new(m, out, dtype, 2, size, a->device);
}

bool meta_outer(MetaCtx *m, const Op *op, const Value *args, Value *out) {
    return outer(m, ops_result_type(args, 2), meta_self(m, op, args),
                 args[1].kind == VAL_tensor ? args[1].tensor : NULL, out);
}

bool meta_addr(MetaCtx *m, const Op *op, const Value *args, Value *out) {
    const TensorMeta *bias = meta_self(m, op, args);
    const TensorMeta *a = meta_arg_tensor(op, args, "vec1"), *b = meta_arg_tensor(op, args, "vec2");
    DType d = ops_result_type(args, 3);
    if (!bias || !outer(m, d, a, b, out) || !fits_product(m, bias, out->tensor))
        return false;
    TensorMeta *column = meta_window(m, a, 2);
    column->size[0] = a->size[0];
    column->stride[0] = a->stride[0];
    column->size[1] = column->stride[1] = meta_int(m, 1);
    TensorMeta *t = meta_iterate(m, d, (const TensorMeta *[]){bias, column, b}, 3, false);
    return t && meta_out(out, t);
}

// The sizes that a and b broadcast to without their last two dimensions, with room for two more.
static const Expr **batch_sizes(MetaCtx *m, const TensorMeta *a, const TensorMeta *b, int *n) {
    TensorMeta batch_a = *a, batch_b = *b;
    batch_a.ndim = a->ndim > 2 ? a->ndim - 2 : 0;
    batch_b.ndim = b->ndim > 2 ? b->ndim - 2 : 0;
    const TensorMeta *batches[2] = {&batch_a, &batch_b};
    const Expr **batch = ops_broadcast(m, batches, 2, n), **size = NULL;
    if (batch) {
        size = ARENA_ARRAY(m->arena, *n + 2, const Expr *);
        memcpy(size, batch, (size_t)*n * sizeof *size);
    }
    return size;
}

// Batch dimensions of both broadcast; vectors lose the dimension that was added for them.
static bool matmul(MetaCtx *m, const Op *op, const TensorMeta *a, const TensorMeta *b, Value *out) {
    if (!a || !b)
        return false;
    if (a->ndim == 0 || b->ndim == 0)
        return meta_fail(m,
                         "RuntimeError: both arguments to matmul need to be at least 1D, but they "
                         "are %dD and %dD",
                         a->ndim, b->ndim);
    if (!same_dtype(m, op, a, b))
        return false;
    const Expr *inner_a = a->size[a->ndim - 1], *inner_b = b->size[b->ndim > 1 ? b->ndim - 2 : 0];
    if (!meta_eq(m, inner_a, inner_b))
        return meta_fail(m, "RuntimeError: mat1 and mat2 shapes cannot be multiplied (%s and %s)",
                         meta_sizes_text(m, a->size, a->ndim),
                         meta_sizes_text(m, b->size, b->ndim));
    int n;
    const Expr **size = batch_sizes(m, a, b, &n);
    if (!size)
        return false;
    if (a->ndim > 1)
        size[n++] = a->size[a->ndim - 2];
    if (b->ndim > 1)
        size[n++] = b->size[b->ndim - 1];
    return meta_out_new(m, out, a->dtype, n, size, a->device);
}

bool meta_matmul(MetaCtx *m, const Op *op, const Value *args, Value *out) {
    return matmul(m, op, meta_self(m, op, args), args[1].kind == VAL_tensor ? args[1].tensor : NULL,
                  out);
}

bool meta_linear(MetaCtx *m, const Op *op, const Value *args, Value *out) {
    const TensorMeta *x = meta_self(m, op, args), *w = meta_arg_tensor(op, args, "weight");
    const TensorMeta *bias = meta_arg_tensor(op, args, "bias");
    if (!x || !w)
        return false;
    if (x->ndim == 0 || w->ndim < 1 || w->ndim > 2)
        return meta_fail(m, "RuntimeError: linear: input is %d-D and weight %d-D", x->ndim,
                         w->ndim);
    if (!same_dtype(m, op, x, w))
        return false;
    if (!meta_eq(m, x->size[x->ndim - 1], w->size[w->ndim - 1])) {
        const Expr *rows = sym_product(m->sym, x->size, x->ndim - 1);
        return meta_fail(
            m, "RuntimeError: mat1 and mat2 shapes cannot be multiplied (%sx%s and %sx%s)",
            sym_str(m->arena, rows), sym_str(m->arena, x->size[x->ndim - 1]),
            sym_str(m->arena, w->size[w->ndim - 1]), sym_str(m->arena, w->size[0]));
    }
    const Expr **size = ARENA_ARRAY(m->arena, x->ndim, const Expr *);
    memcpy(size, x->size, (size_t)x->ndim * sizeof *size);
    if (w->ndim == 2)
        size[x->ndim - 1] = w->size[0];
    int n = w->ndim == 2 ? x->ndim : x->ndim - 1;
    return meta_out_new(m, out, x->dtype, n, size, x->device) &&
           (!bias || fits_product(m, bias, out->tensor));
}

bool meta_bilinear(MetaCtx *m, const Op *op, const Value *args, Value *out) {
    const TensorMeta *x = meta_self(m, op, args), *w = meta_arg_tensor(op, args, "weight");
    if (!x || !w || x->ndim == 0 || w->ndim != 3)
        return false;
    const Expr **size = ARENA_ARRAY(m->arena, x->ndim, const Expr *);
    memcpy(size, x->size, (size_t)x->ndim * sizeof *size);
    size[x->ndim - 1] = w->size[0];
    return meta_out_new(m, out, x->dtype, x->ndim, size, x->device);
}

// Letters of an einsum term, output after the arrow or in alphabetic order.
static bool einsum_term(MetaCtx *m, const char **p, const TensorMeta *t, const Expr **by_letter,
                        int *count) {
    int i = 0;
    for (; **p && **p != ',' && **p != '-'; (*p)++) {
        if (**p == ' ')
            continue;
        int c = (unsigned char)**p;
        if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')))
            return meta_fail(
                m, "RuntimeError: einsum(): '%c' in a subscript is not modelled, expected letters",
                c);
        if (i >= t->ndim)
            return meta_fail(m, "RuntimeError: einsum(): more subscripts than dimensions (%d)",
                             t->ndim);
        if (!by_letter[c] || expr_is(by_letter[c], 1))
            by_letter[c] = t->size[i];
        else if (!meta_is(m, t->size[i], 1) && !meta_eq(m, by_letter[c], t->size[i]))
            return meta_fail(
                m, "RuntimeError: einsum(): subscript %c has sizes that do not broadcast", c);
        count[c]++;
        i++;
    }
    return i == t->ndim ||
           meta_fail(m, "RuntimeError: einsum(): %d subscripts for %d dimensions", i, t->ndim);
}

bool meta_einsum(MetaCtx *m, const Op *op, const Value *args, Value *out) {
    int n, count[128] = {0}, ndim = 0;
    (void)op;
    const Expr *by_letter[128] = {0}, *size[META_DIMS];
    const TensorMeta **t = meta_tensors(m, &args[1], &n);
    if (!t || !n || args[0].kind != VAL_str)
        return false;
    const char *p = args[0].s;
    for (int i = 0; i < n; i++) {
        if (!t[i] || !einsum_term(m, &p, t[i], by_letter, count))
            return false;
        if (*p == ',')
            p++;
    }
    const char *arrow = strstr(args[0].s, "->");
    for (const char *q = arrow ? arrow + 2 : ""; *q; q++) {
        if (*q == ' ')
            continue;
        int c = (unsigned char)*q;
        if (c >= 128 || !by_letter[c] || ndim == META_DIMS)
            return meta_fail(
                m, "RuntimeError: einsum(): output subscript %c does not appear in the equation",
                c);
        size[ndim++] = by_letter[c];
    }
    for (int c = 0; c < 128 && !arrow; c++)
        if (count[c] == 1)
            size[ndim++] = by_letter[c];
    return meta_out_new(m, out, t[0]->dtype, ndim, size, t[0]->device);
}

// Pairwise distances: (…, P, M) and (…, R, M) to (…, P, R).
bool meta_cdist(MetaCtx *m, const Op *op, const Value *args, Value *out) {
    const TensorMeta *a = meta_self(m, op, args),
                     *b = args[1].kind == VAL_tensor ? args[1].tensor : NULL;
    if (!a || !b || a->ndim < 2 || b->ndim < 2)
        return a && meta_fail(m, "RuntimeError: cdist only supports at least 2D tensors");
    int n;
    const Expr **size = batch_sizes(m, a, b, &n);
    if (!size)
        return false;
    size[n] = a->size[a->ndim - 2];
    size[n + 1] = b->size[b->ndim - 2];
    return meta_out_new(m, out, a->dtype, n + 2, size, a->device);
}

// The gradient of x1, of the batch that is broadcast; autograd sums it to x1's.
bool meta_cdist_backward(MetaCtx *m, const Op *op, const Value *args, Value *out) {
    const TensorMeta *grad = meta_self(m, op, args), *x = meta_arg_tensor(op, args, "x1");
    if (!grad || !x || grad->ndim < 2 || x->ndim < 2)
        return grad && meta_fail(m, "RuntimeError: _cdist_backward requires at least 2D tensors");
    const Expr **size = ARENA_ARRAY(m->arena, grad->ndim, const Expr *);
    memcpy(size, grad->size, (size_t)grad->ndim * sizeof *size);
    size[grad->ndim - 2] = x->size[x->ndim - 2];
    size[grad->ndim - 1] = x->size[x->ndim - 1];
    return meta_out_new(m, out, x->dtype, grad->ndim, size, x->device);
}

bool meta_pdist_backward(MetaCtx *m, const Op *op, const Value *args, Value *out) {
    const TensorMeta *self = meta_arg_tensor(op, args, "self");
    return self && meta_out(out, meta_like(m, self, self->dtype, MF_contiguous));
}

bool meta_pdist(MetaCtx *m, const Op *op, const Value *args, Value *out) {
    const TensorMeta *self = meta_self(m, op, args);
    if (!self || self->ndim != 2)
        return self &&
               meta_fail(m, "RuntimeError: pdist only supports 2D tensors, got: %dD", self->ndim);
    const Expr *n = self->size[0], *two = meta_int(m, 2);
    const Expr *size =
        expr_int_or(n, 2) <= 1
            ? meta_int(m, 0)
            : sym_floordiv(m->sym, sym_mul(m->sym, n, sym_add_int(m->sym, n, -1)), two);
    return meta_out_new(m, out, self->dtype, 1, &size, self->device);
}

// The operand's sizes, each beside a 1: at 2 i, or behind it.
static TensorMeta *beside_ones(MetaCtx *m, const TensorMeta *t, int n, bool behind) {
    TensorMeta *out = meta_window(m, t, 2 * n);
    for (int i = 0; i < n; i++) {
        int d = i - (n - t->ndim);
        out->size[2 * i + behind] = d < 0 ? meta_int(m, 1) : t->size[d];
        out->size[2 * i + !behind] = meta_int(m, 1);
    }
    if (!meta_view_strides(m, t, 2 * n, out->size, out->stride))
        meta_set_contiguous(m, out);
    return out;
}

bool meta_kron(MetaCtx *m, const Op *op, const Value *args, Value *out) {
    const TensorMeta *a = meta_self(m, op, args),
                     *b = args[1].kind == VAL_tensor ? args[1].tensor : NULL;
    if (!a || !b)
        return false;
    int n = a->ndim > b->ndim ? a->ndim : b->ndim;
    const TensorMeta *pair[2] = {beside_ones(m, a, n, false), beside_ones(m, b, n, true)};
    const Value wide[2] = {val_tensor(pair[0]), val_tensor(pair[1])};
    TensorMeta *p = meta_iterate(m, ops_result_type(wide, 2), pair, 2, false);
    if (!p)
        return false;
    const Expr **size = ARENA_ARRAY(m->arena, n + 1, const Expr *),
               **stride = ARENA_ARRAY(m->arena, n + 1, const Expr *);
    for (int i = 0; i < n; i++)
        size[i] = sym_mul(m->sym, p->size[2 * i], p->size[2 * i + 1]);
    if (!meta_view_strides(m, p, n, size, stride))
        return meta_out_new(m, out, p->dtype, n, size, a->device);
    TensorMeta *t = meta_window(m, p, n);
    memcpy(t->size, size, (size_t)n * sizeof *size);
    memcpy(t->stride, stride, (size_t)n * sizeof *stride);
    return meta_out(out, t);
}

// _trilinear: three operands with expanded dimensions, summed over some.
bool meta_trilinear(MetaCtx *m, const Op *op, const Value *args, Value *out) {
    const Expr *size[META_DIMS];
    const TensorMeta *self = meta_self(m, op, args);
    uint64_t sum;
    if (!self)
        return false;
    int total = self->ndim + meta_arg(op, args, "expand1")->n, n = 0;
    static const char *const names[3][2] = {
        {"i1", "expand1"}, {"i2", "expand2"}, {"i3", "expand3"}};
    if (total > META_DIMS || !meta_dims(m, meta_arg(op, args, "sumdim"), total, false, &sum))
        return false;
    int64_t unroll = meta_arg_int(op, args, "unroll_dim", 1);
    if (unroll < 0 || unroll >= total)
        return meta_fail(m, "RuntimeError: unroll_dim must be in [0,%d]", total - 1);
    for (int i = 0; i < total; i++)
        size[i] = meta_int(m, 1);
    for (int k = 0; k < 3; k++) {
        const TensorMeta *t = meta_arg_tensor(op, args, names[k][0]);
        uint64_t added;
        if (!t || !meta_dims(m, meta_arg(op, args, names[k][1]), total, false, &added))
            return false;
        if (t->ndim + __builtin_popcountll(added) != total)
            return meta_fail(m,
                             "RuntimeError: _trilinear: %s has %d dimensions and %d in %s, "
                             "expected %d together",
                             names[k][0], t->ndim, __builtin_popcountll(added), names[k][1], total);
        if (t->dtype != self->dtype && !is_empty(self) && !is_empty(t))
            return meta_fail(m, "RuntimeError: expected scalar type %s but found %s (%s)",
                             dtype_info[self->dtype].torch_name, dtype_info[t->dtype].torch_name,
                             names[k][0]);
        for (int i = 0, from = 0; i < total; i++)
            if (!(added >> i & 1)) {
                const Expr *e = t->size[from++];
                if (!meta_is(m, size[i], 1) && !meta_is(m, e, 1) && !meta_eq(m, size[i], e))
                    return meta_fail(m,
                                     "RuntimeError: _trilinear: size %s of %s in dimension %d, "
                                     "expected %s",
                                     meta_sizes_text(m, &e, 1), names[k][0], i,
                                     meta_sizes_text(m, &size[i], 1));
                if (!meta_is(m, e, 1))
                    size[i] = e;
            }
    }
    for (int i = 0; i < total; i++)
        if (!(sum >> i & 1))
            size[n++] = size[i];
    return meta_out_new(m, out, self->dtype, n, size, self->device);
}
