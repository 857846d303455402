// meta_view.c: views: sizes, strides and offset on the same memory. The copying twins (`_copy`)
// yield the same sizes in fresh contiguous memory.
#include "core/ops/meta.h"

#include <string.h>

static bool all_known_equal(Sym *s, int n, const Expr *const *a, const Expr *const *b) {
    for (int i = 0; i < n; i++)
        if (!sym_known_eq(s, a[i], b[i]))
            return false;
    return true;
}

// Where nobody knows a size, nothing can be asked of it: the same sizes are the same view, and what
// is contiguous stays so.
static bool unknown_strides(MetaCtx *m, const TensorMeta *t, int ndim, const Expr *const *size,
                            const Expr **stride) {
    bool known = true;
    int64_t hint;
    for (int i = 0; i < t->ndim; i++)
        known = known && sym_hint(m->sym, t->size[i], &hint);
    if (known)
        return false;
    if (ndim == t->ndim && all_known_equal(m->sym, ndim, t->size, size)) {
        memcpy(stride, t->stride, (size_t)ndim * sizeof *stride);
        return true;
    }
    TensorMeta *dense = meta_window(m, t, t->ndim), *next = meta_window(m, t, ndim);
    memcpy(dense->size, t->size, (size_t)t->ndim * sizeof *t->size);
    memcpy(next->size, size, (size_t)ndim * sizeof *size);
    meta_set_contiguous(m, dense);
    meta_set_contiguous(m, next);
    memcpy(stride, next->stride, (size_t)ndim * sizeof *stride);
    return all_known_equal(m->sym, t->ndim, t->stride, dense->stride);
}

// Less than the group; of what nobody knows, not the same.
static bool is_part(MetaCtx *m, const Expr *done, const Expr *group) {
    int64_t hint;
    bool known = sym_hint(m->sym, done, &hint) && sym_hint(m->sym, group, &hint);
    return known ? meta_lt(m, done, group) : !sym_known_eq(m->sym, done, group);
}

// Groups old dimensions that lie contiguously and deals them out to the new sizes, from the back;
// fails where a new dimension would straddle two groups.
bool meta_view_strides(MetaCtx *m, const TensorMeta *t, int ndim, const Expr *const *size,
                       const Expr **stride) {
    Sym *s = m->sym;
    const Expr *one = sym_int(s, 1);
    if (unknown_strides(m, t, ndim, size, stride))
        return true;
    for (int i = 0; i < t->ndim; i++)
        if (sym_size_hint(s, t->size[i], 1) == 0 && meta_is(m, t->size[i], 0)) {
            if (ndim == t->ndim && all_known_equal(s, ndim, t->size, size)) {
                memcpy(stride, t->stride, (size_t)ndim * sizeof *stride);
                return true;
            }
            const Expr *step = one;
            for (int k = ndim - 1; k >= 0; k--) {
                stride[k] = step;
                step = sym_mul(s, step, expr_is(size[k], 0) ? one : size[k]);
            }
            return true;
        }
    int view = ndim - 1;
    const Expr *base = t->ndim ? t->stride[t->ndim - 1] : one, *group = one, *done = one;
    for (int i = t->ndim - 1; i >= 0; i--) {
        group = sym_mul(s, group, t->size[i]);
        bool ends = i == 0;
        if (!ends && !meta_is(m, t->size[i - 1], 1))
            ends = !meta_eq(m, t->stride[i - 1], sym_mul(s, group, base));
        if (!ends)
            continue;
        while (view >= 0 && (is_part(m, done, group) || meta_is(m, size[view], 1))) {
            stride[view] = sym_mul(s, done, base);
            done = sym_mul(s, done, size[view]);
            view--;
        }
        if (!meta_eq(m, done, group))
            return false;
        if (i > 0) {
            base = t->stride[i - 1];
            group = done = one;
        }
    }
    if (t->ndim == 0)
        for (; view >= 0 && meta_is(m, size[view], 1); view--)
            stride[view] = one;
    return view == -1;
}

bool meta_infer_size(MetaCtx *m, const TensorMeta *t, int ndim, const Expr **size) {
    Sym *s = m->sym;
    int infer = -1;
    const Expr *known = sym_int(s, 1), *numel = meta_numel(s, t);
    const char *asked = meta_sizes_text(m, size, ndim);
    for (int i = 0; i < ndim; i++) {
        int64_t v = expr_int_or(size[i], 0);
        if (v == -1 && infer >= 0)
            return meta_fail(m, "RuntimeError: only one dimension can be inferred");
        if (v == -1)
            infer = i;
        else if (v < 0)
            return meta_fail(m, "RuntimeError: invalid shape dimension %lld", (long long)v);
        else
            known = sym_mul(s, known, size[i]);
    }
    if (infer < 0) {
        if (meta_eq(m, known, numel))
            return true;
        return meta_fail(m, "RuntimeError: shape '%s' is invalid for input of size %s", asked,
                         sym_str(m->arena, numel));
    }
    if (expr_is(known, 0))
        return meta_fail(m,
                         "RuntimeError: cannot reshape tensor of 0 elements into shape %s because "
                         "the unspecified "
                         "dimension size -1 can be any value and is ambiguous",
                         asked);
    size[infer] = sym_quotient(s, numel, known);
    if (!meta_eq(m, sym_mul(s, size[infer], known), numel))
        return meta_fail(m, "RuntimeError: shape '%s' is invalid for input of size %s", asked,
                         sym_str(m->arena, numel));
    return true;
}

bool meta_out_view(MetaCtx *m, const Op *op, TensorMeta *t, Value *out) {
    if (str_ends(op->name, "_copy"))
        meta_set_contiguous(m, t), t->offset = meta_int(m, 0);
    return meta_out(out, t);
}

bool meta_alias(MetaCtx *m, const Op *op, const Value *args, Value *out) {
    const TensorMeta *self = meta_self(m, op, args);
    if (!self)
        return false;
    TensorMeta *t = meta_copy(m->arena, self);
    t->requires_grad = false;
    if (str_ends(op->name, "_copy"))
        return meta_out(out, meta_like(m, self, self->dtype,
                                       op->id == OP_aten_lift_fresh_copy_default ? MF_preserve
                                                                                 : MF_contiguous));
    return meta_out(out, t);
}

static bool view_to(MetaCtx *m, const TensorMeta *self, int ndim, const Expr **size,
                    TensorMeta **out) {
    if (!meta_infer_size(m, self, ndim, size))
        return false;
    *out = meta_window(m, self, ndim);
    for (int i = 0; i < ndim; i++)
        (*out)->size[i] = size[i];
    return true;
}

bool meta_view(MetaCtx *m, const Op *op, const Value *args, Value *out) {
    const TensorMeta *self = meta_self(m, op, args);
    int n;
    const Expr **size = self ? meta_exprs(m, &args[1], &n) : NULL;
    TensorMeta *t;
    if (!size || !view_to(m, self, n, size, &t))
        return false;
    if (!meta_view_strides(m, self, n, t->size, t->stride))
        return meta_fail(
            m, "RuntimeError: view size is not compatible with input tensor's size and stride (at "
               "least "
               "one dimension spans across two contiguous subspaces). Use .reshape(...) instead.");
    return meta_out_view(m, op, t, out);
}

// A view where memory allows it, else a copy.
static bool reshape(MetaCtx *m, const TensorMeta *self, int n, const Expr **size, Value *out) {
    TensorMeta *t;
    if (!view_to(m, self, n, size, &t))
        return false;
    if (!meta_view_strides(m, self, n, t->size, t->stride)) {
        meta_set_contiguous(m, t);
        t->offset = meta_int(m, 0);
    }
    return meta_out(out, t);
}

bool meta_reshape(MetaCtx *m, const Op *op, const Value *args, Value *out) {
    const TensorMeta *self = meta_self(m, op, args);
    int n;
    const Expr **size = self ? meta_exprs(m, &args[1], &n) : NULL;
    return size && reshape(m, self, n, size, out);
}

bool meta_view_as(MetaCtx *m, const Op *op, const Value *args, Value *out) {
    const TensorMeta *self = meta_self(m, op, args);
    if (!self || args[1].kind != VAL_tensor)
        return false;
    const TensorMeta *other = args[1].tensor;
    Value sized[2] = {args[0], val_exprs(m->arena, other->size, other->ndim)};
    return strcmp(op->name, "view_as") == 0 ? meta_view(m, op, sized, out)
                                            : meta_reshape(m, op, sized, out);
}

bool meta_reshape_alias(MetaCtx *m, const Op *op, const Value *args, Value *out) {
    const TensorMeta *self = meta_self(m, op, args);
    int n, n_stride;
    const Expr **size = self ? meta_exprs(m, &args[1], &n) : NULL;
    const Expr **stride = size ? meta_exprs(m, &args[2], &n_stride) : NULL;
    if (!stride || n != n_stride)
        return false;
    TensorMeta *t = meta_window(m, self, n);
    for (int i = 0; i < n; i++) {
        t->size[i] = size[i];
        t->stride[i] = stride[i];
    }
    return meta_out_view(m, op, t, out);
}

bool meta_as_strided(MetaCtx *m, const Op *op, const Value *args, Value *out) {
    if (!meta_reshape_alias(m, op, args, out))
        return false;
    if (args[3].kind != VAL_none && !str_ends(op->name, "_copy")) {
        TensorMeta *t = meta_copy(m->arena, out->tensor);
        if (!val_as_expr(m->sym, &args[3], &t->offset))
            return false;
        *out = val_tensor(t);
    }
    return true;
}

bool meta_flatten(MetaCtx *m, const Op *op, const Value *args, Value *out) {
    const TensorMeta *self = meta_self(m, op, args);
    int from, to;
    if (!self || !meta_dim(m, meta_arg_int(op, args, "start_dim", 0), self->ndim, &from) ||
        !meta_dim(m, meta_arg_int(op, args, "end_dim", -1), self->ndim, &to))
        return false;
    if (from > to)
        return meta_fail(
            m, "RuntimeError: flatten() has invalid args: start_dim cannot come after end_dim");
    const Expr **size = ARENA_ARRAY(m->arena, self->ndim + 1, const Expr *);
    if (self->ndim == 0) {
        size[0] = meta_int(m, 1);
        return reshape(m, self, 1, size, out);
    }
    if (from == to)
        return meta_out(out, self);
    int n = 0;
    for (int i = 0; i < from; i++)
        size[n++] = self->size[i];
    size[n++] = sym_product(m->sym, self->size + from, to - from + 1);
    for (int i = to + 1; i < self->ndim; i++)
        size[n++] = self->size[i];
    return reshape(m, self, n, size, out);
}

bool meta_ravel(MetaCtx *m, const Op *op, const Value *args, Value *out) {
    const TensorMeta *self = meta_self(m, op, args);
    if (!self)
        return false;
    const Expr *size[1] = {meta_numel(m->sym, self)};
    if (!meta_is_contiguous(m->sym, self, MF_contiguous)) // a copy even where a view would do
        return meta_out_new(m, out, self->dtype, 1, size, self->device);
    return reshape(m, self, 1, size, out);
}

bool meta_unflatten(MetaCtx *m, const Op *op, const Value *args, Value *out) {
    const TensorMeta *self = meta_self(m, op, args);
    int dim, n;
    const Expr **part = self ? meta_exprs(m, meta_arg(op, args, "sizes"), &n) : NULL;
    if (!part || !meta_dim(m, meta_arg_int(op, args, "dim", 0), self->ndim, &dim))
        return false;
    if (self->ndim == 0)
        return meta_fail(m, "IndexError: Dimension specified as 0 but tensor has no dimensions");
    TensorMeta one = {
        .dtype = self->dtype, .ndim = 1, .size = &self->size[dim], .stride = &self->stride[dim]};
    if (!meta_infer_size(m, &one, n, part))
        return false;
    const Expr **size = ARENA_ARRAY(m->arena, self->ndim + n, const Expr *);
    int k = 0;
    for (int i = 0; i < dim; i++)
        size[k++] = self->size[i];
    for (int i = 0; i < n; i++)
        size[k++] = part[i];
    for (int i = dim + 1; i < self->ndim; i++)
        size[k++] = self->size[i];
    TensorMeta *t = meta_window(m, self, k);
    memcpy(t->size, size, (size_t)k * sizeof *size);
    return meta_view_strides(m, self, k, t->size, t->stride)
               ? meta_out(out, t)
               : meta_fail(m, "RuntimeError: view size is not compatible with input tensor's size "
                              "and stride");
}

bool meta_expand(MetaCtx *m, const Op *op, const Value *args, Value *out) {
    const TensorMeta *self = meta_self(m, op, args);
    int n;
    Value sizes = args[1];
    if (sizes.kind == VAL_tensor)
        sizes = val_exprs(m->arena, sizes.tensor->size, sizes.tensor->ndim);
    const Expr **size = self ? meta_exprs(m, &sizes, &n) : NULL;
    if (!size)
        return false;
    if (n < self->ndim)
        return meta_fail(m,
                         "RuntimeError: expand: the number of sizes provided (%d) must be greater "
                         "or equal to the "
                         "number of dimensions in the tensor (%d)",
                         n, self->ndim);
    TensorMeta *t = meta_window(m, self, n);
    for (int i = n - 1; i >= 0; i--) {
        int d = i - (n - self->ndim);
        bool keep = expr_is(size[i], -1);
        if (d < 0 && keep)
            return meta_fail(
                m,
                "RuntimeError: The expanded size of the tensor (-1) isn't allowed in a leading, "
                "non-existing dimension %d",
                i);
        t->size[i] = keep ? self->size[d] : size[i];
        if (d >= 0 && meta_eq(m, t->size[i], self->size[d])) {
            t->size[i] = self->size[d];
            t->stride[i] = self->stride[d];
        } else if (d < 0 && meta_is(m, t->size[i], 1)) { // steps over what lies behind it
            t->stride[i] = !self->ndim ? meta_int(m, 0)
                           : i + 1 < n ? sym_mul(m->sym, t->size[i + 1], t->stride[i + 1])
                                       : meta_int(m, 1);
        } else if (d < 0 || meta_is(m, self->size[d], 1)) {
            t->stride[i] = meta_int(m, 0);
        } else {
            return meta_fail(m,
                             "RuntimeError: The expanded size of the tensor (%s) must match the "
                             "existing size (%s) "
                             "at non-singleton dimension %d.  Target sizes: %s.  Tensor sizes: %s",
                             sym_str(m->arena, t->size[i]), sym_str(m->arena, self->size[d]), i,
                             meta_sizes_text(m, size, n),
                             meta_sizes_text(m, self->size, self->ndim));
        }
    }
    return meta_out_view(m, op, t, out);
}

// order[i]: the old dimension that becomes dimension i.
static bool permuted(MetaCtx *m, const Op *op, const TensorMeta *self, const int *order,
                     Value *out) {
    TensorMeta *t = meta_window(m, self, self->ndim);
    for (int i = 0; i < self->ndim; i++) {
        t->size[i] = self->size[order[i]];
        t->stride[i] = self->stride[order[i]];
    }
    return meta_out_view(m, op, t, out);
}

bool meta_permute(MetaCtx *m, const Op *op, const Value *args, Value *out) {
    const TensorMeta *self = meta_self(m, op, args);
    int order[META_DIMS];
    if (!self)
        return false;
    if (args[1].n != self->ndim)
        return meta_fail(m,
                         "RuntimeError: permute(sparse_coo): number of dimensions in the tensor "
                         "input does not match "
                         "the length of the desired ordering of dimensions i.e. input.dim() = %d "
                         "is not equal to "
                         "len(dims) = %d",
                         self->ndim, args[1].n);
    uint64_t seen = 0;
    for (int i = 0; i < self->ndim; i++) {
        int64_t dim;
        if (!val_as_int(&args[1].at[i], &dim) || !meta_dim(m, dim, self->ndim, &order[i]))
            return false;
        if (seen >> order[i] & 1)
            return meta_fail(m, "RuntimeError: permute(): duplicate dims are not allowed.");
        seen |= 1ull << order[i];
    }
    return permuted(m, op, self, order, out);
}

static bool swapped(MetaCtx *m, const Op *op, const TensorMeta *self, int a, int b, Value *out) {
    int order[META_DIMS];
    for (int i = 0; i < self->ndim; i++)
        order[i] = i;
    if (self->ndim) {
        order[a] = b;
        order[b] = a;
    }
    return permuted(m, op, self, order, out);
}

bool meta_transpose(MetaCtx *m, const Op *op, const Value *args, Value *out) {
    const TensorMeta *self = meta_self(m, op, args);
    int a, b;
    int64_t x, y;
    return self && val_as_int(&args[1], &x) && val_as_int(&args[2], &y) &&
           meta_dim(m, x, self->ndim, &a) && meta_dim(m, y, self->ndim, &b) &&
           swapped(m, op, self, a, b, out);
}

bool meta_t(MetaCtx *m, const Op *op, const Value *args, Value *out) {
    const TensorMeta *self = meta_self(m, op, args);
    if (!self)
        return false;
    if (self->ndim > 2)
        return meta_fail(m,
                         "RuntimeError: t() expects a tensor with <= 2 dimensions, but self is %dD",
                         self->ndim);
    if (self->ndim < 2)
        return swapped(m, op, self, 0, 0, out);
    return swapped(m, op, self, 0, 1, out);
}

// mT, mH, adjoint: the last two dimensions.
bool meta_mT(MetaCtx *m, const Op *op, const Value *args, Value *out) {
    const TensorMeta *self = meta_self(m, op, args);
    if (!self)
        return false;
    if (self->ndim == 0) // deprecated, and still so
        return meta_out_view(m, op, meta_copy(m->arena, self), out);
    if (self->ndim < 2)
        return meta_fail(m,
                         "RuntimeError: tensor.%s is only supported on matrices or batches of "
                         "matrices. Got %d-D "
                         "tensor.",
                         op->name, self->ndim);
    return swapped(m, op, self, self->ndim - 1, self->ndim - 2, out);
}

// numpy_T: all dimensions reversed.
bool meta_T(MetaCtx *m, const Op *op, const Value *args, Value *out) {
    const TensorMeta *self = meta_self(m, op, args);
    int order[META_DIMS];
    for (int i = 0; self && i < self->ndim; i++)
        order[i] = self->ndim - 1 - i;
    return self && permuted(m, op, self, order, out);
}

bool meta_movedim(MetaCtx *m, const Op *op, const Value *args, Value *out) {
    const TensorMeta *self = meta_self(m, op, args);
    int ns, nd, order[META_DIMS];
    const Expr **src = self ? meta_exprs(m, &args[1], &ns) : NULL,
               **dst = src ? meta_exprs(m, &args[2], &nd) : NULL;
    if (!dst || ns != nd)
        return self && dst &&
               meta_fail(m, "RuntimeError: movedim: Invalid source or destination dims");
    uint64_t used = 0;
    for (int i = 0; i < self->ndim; i++)
        order[i] = -1;
    for (int i = 0; i < ns; i++) {
        int s, d;
        if (!meta_dim(m, expr_int_or(src[i], META_DIMS), self->ndim, &s) ||
            !meta_dim(m, expr_int_or(dst[i], META_DIMS), self->ndim, &d))
            return false;
        if (self->ndim && (order[d] >= 0 || used >> s & 1))
            return meta_fail(m, "RuntimeError: movedim: repeated dim in `source` or `destination`");
        if (self->ndim)
            order[d] = s;
        used |= 1ull << s;
    }
    for (int i = 0, next = 0; i < self->ndim; i++) {
        if (order[i] >= 0)
            continue;
        while (used >> next & 1)
            next++;
        order[i] = next++;
    }
    return permuted(m, op, self, order, out);
}

// prims.broadcast_in_dim: dimension i of self becomes dimension broadcast_dimensions[i].
bool meta_prim_broadcast(MetaCtx *m, const Op *op, const Value *args, Value *out) {
    const TensorMeta *self = meta_self(m, op, args);
    int n, n_dims;
    const Expr **size = self ? meta_exprs(m, &args[1], &n) : NULL;
    const Expr **dims = size ? meta_exprs(m, &args[2], &n_dims) : NULL;
    if (!dims)
        return false;
    if (n_dims != self->ndim)
        return meta_fail(m,
                         "RuntimeError: broadcast_in_dim: %d dimensions named for a tensor of %d",
                         n_dims, self->ndim);
    TensorMeta *t = meta_window(m, self, n);
    for (int i = 0; i < n; i++) {
        t->size[i] = size[i];
        t->stride[i] = meta_int(m, 0);
    }
    for (int k = 0; k < n_dims; k++) {
        int64_t d = expr_int_or(dims[k], -1);
        if (d < 0 || d >= n)
            return meta_fail(m, "RuntimeError: broadcast_in_dim: dimension %lld is out of range",
                             (long long)d);
        if (meta_eq(m, self->size[k], size[d]))
            t->stride[d] = self->stride[k];
        else if (!meta_is(m, self->size[k], 1))
            return meta_fail(m, "RuntimeError: broadcast_in_dim: size %s does not broadcast to %s",
                             sym_str(m->arena, self->size[k]), sym_str(m->arena, size[d]));
    }
    return meta_out_view(m, op, t, out);
}
