// meta_slice.c: views that drop or cut dimensions: squeeze, select, slice, diagonal, unfold, and
// their copying twins.
#include "core/ops/meta.h"

#include <string.h>

// Drops the dimensions of a mask that have size 1.
static bool squeezed(MetaCtx *m, const Op *op, const TensorMeta *self, uint64_t mask, Value *out) {
    TensorMeta *t = meta_window(m, self, self->ndim);
    t->ndim = 0;
    for (int i = 0; i < self->ndim; i++) {
        if ((mask >> i & 1) && meta_is(m, self->size[i], 1))
            continue;
        t->size[t->ndim] = self->size[i];
        t->stride[t->ndim++] = self->stride[i];
    }
    return meta_out_view(m, op, t, out);
}

bool meta_squeeze(MetaCtx *m, const Op *op, const Value *args, Value *out) {
    const TensorMeta *self = meta_self(m, op, args);
    uint64_t mask = ~0ull;
    if (!self || (op->n_args > 1 && !meta_dims(m, &args[1], self->ndim, false, &mask)))
        return false;
    return squeezed(m, op, self, mask, out);
}

bool meta_unsqueeze(MetaCtx *m, const Op *op, const Value *args, Value *out) {
    const TensorMeta *self = meta_self(m, op, args);
    int64_t at;
    int dim;
    if (!self || !val_as_int(&args[1], &at) || !meta_dim(m, at, self->ndim + 1, &dim))
        return false;
    TensorMeta *t = meta_window(m, self, self->ndim + 1);
    for (int i = 0; i <= self->ndim; i++) {
        int from = i > dim ? i - 1 : i;
        bool fresh = i == dim;
        t->size[i] = fresh ? meta_int(m, 1) : self->size[from];
        t->stride[i] = !fresh             ? self->stride[from]
                       : dim < self->ndim ? sym_mul(m->sym, self->size[dim], self->stride[dim])
                                          : meta_int(m, 1);
    }
    return meta_out_view(m, op, t, out);
}

// Without dimension dim.
static TensorMeta *without_dim(MetaCtx *m, const TensorMeta *self, int dim) {
    TensorMeta *t = meta_window(m, self, self->ndim - 1);
    for (int i = 0, k = 0; i < self->ndim; i++)
        if (i != dim) {
            t->size[k] = self->size[i];
            t->stride[k++] = self->stride[i];
        }
    return t;
}

bool meta_select(MetaCtx *m, const Op *op, const Value *args, Value *out) {
    const TensorMeta *self = meta_self(m, op, args);
    int dim;
    const Expr *index;
    if (!self || !meta_dim(m, meta_arg_int(op, args, "dim", 0), self->ndim, &dim))
        return false;
    if (self->ndim == 0)
        return meta_fail(m, "IndexError: select() cannot be applied to a 0-dim tensor.");
    if (!val_as_expr(m->sym, meta_arg(op, args, "index"), &index))
        return false;
    int64_t i, n;
    if (expr_int(index, &i) && expr_int(self->size[dim], &n) && (i < -n || i >= n))
        return meta_fail(
            m,
            "IndexError: select(): index %lld out of range for tensor of size %s at dimension %d",
            (long long)i, meta_sizes_text(m, self->size, self->ndim), dim);
    if (meta_lt(m, index, meta_int(m, 0)))
        index = sym_add(m->sym, index, self->size[dim]);
    TensorMeta *t = without_dim(m, self, dim);
    t->offset = sym_add(m->sym, t->offset, sym_mul(m->sym, index, self->stride[dim]));
    return meta_out_view(m, op, t, out);
}

// A bound of a slice: negative from the end, clamped to [0, size].
static const Expr *clamp_bound(MetaCtx *m, const Value *v, const Expr *size, const Expr *absent) {
    const Expr *e;
    if (v->kind == VAL_none || !val_as_expr(m->sym, v, &e))
        return absent;
    if (expr_int_or(e, 0) == INT64_MAX)
        return size;
    if (e == size)
        return size;
    const Expr *zero = meta_int(m, 0);
    if (meta_lt(m, e, zero)) {
        e = sym_add(m->sym, e, size);
        if (meta_lt(m, e, zero))
            return zero;
    }
    return meta_lt(m, size, e) ? size : e;
}

bool meta_slice(MetaCtx *m, const Op *op, const Value *args, Value *out) {
    const TensorMeta *self = meta_self(m, op, args);
    int dim;
    if (!self || !meta_dim(m, meta_arg_int(op, args, "dim", 0), self->ndim, &dim))
        return false;
    if (self->ndim == 0)
        return meta_fail(m, "RuntimeError: slice() cannot be applied to a 0-dim tensor.");
    const Expr *step;
    if (!val_as_expr(m->sym, meta_arg(op, args, "step"), &step) || expr_int_or(step, 1) <= 0)
        return meta_fail(m, "RuntimeError: slice step must be positive");
    const Expr *size = self->size[dim], *zero = meta_int(m, 0);
    const Expr *start = clamp_bound(m, meta_arg(op, args, "start"), size, zero);
    const Expr *end = clamp_bound(m, meta_arg(op, args, "end"), size, size);
    if (start != end && meta_lt(m, end, start))
        end = start;
    TensorMeta *t = meta_copy(m->arena, self);
    t->requires_grad = false;
    const Expr *len = sym_sub(m->sym, end, start);
    t->size[dim] =
        expr_is(step, 1)
            ? len
            : sym_floordiv(m->sym, sym_add_int(m->sym, sym_add(m->sym, len, step), -1), step);
    t->stride[dim] = sym_mul(m->sym, t->stride[dim], step);
    t->offset = sym_add(m->sym, t->offset, sym_mul(m->sym, start, self->stride[dim]));
    return meta_out_view(m, op, t, out);
}

bool meta_narrow(MetaCtx *m, const Op *op, const Value *args, Value *out) {
    const TensorMeta *self = meta_self(m, op, args);
    int dim;
    const Expr *start, *length;
    if (!self || !meta_dim(m, meta_arg_int(op, args, "dim", 0), self->ndim, &dim) ||
        !val_as_expr(m->sym, meta_arg(op, args, "start"), &start) ||
        !val_as_expr(m->sym, meta_arg(op, args, "length"), &length))
        return self &&
               meta_fail(m, "RuntimeError: narrow() expects ints for dim, start and length");
    if (!self->ndim)
        return meta_fail(m, "RuntimeError: narrow() cannot be applied to a 0-dim tensor.");
    if (expr_int_or(length, 0) < 0)
        return meta_fail(m, "RuntimeError: narrow(): length must be non-negative.");
    int64_t at, size;
    bool known = expr_int(start, &at) && expr_int(self->size[dim], &size);
    if (meta_lt(m, start, meta_int(m, 0)))
        start = sym_add(m->sym, start, self->size[dim]);
    if (known && (at > size || at < -size))
        return meta_fail(
            m,
            "IndexError: start out of range (expected to be in range of [-%lld, %lld], "
            "but got %lld)",
            (long long)size, (long long)size, (long long)at);
    if (meta_lt(m, self->size[dim], sym_add(m->sym, start, length)))
        return meta_fail(m, "RuntimeError: start (%s) + length (%s) exceeds dimension size (%s).",
                         sym_str(m->arena, start), sym_str(m->arena, length),
                         sym_str(m->arena, self->size[dim]));
    TensorMeta *t = meta_copy(m->arena, self);
    t->requires_grad = false;
    t->size[dim] = length;
    t->offset = sym_add(m->sym, t->offset, sym_mul(m->sym, start, self->stride[dim]));
    return meta_out_view(m, op, t, out);
}

bool meta_diagonal(MetaCtx *m, const Op *op, const Value *args, Value *out) {
    const TensorMeta *self = meta_self(m, op, args);
    int a, b;
    int64_t off = meta_arg_int(op, args, "offset", 0);
    bool linalg = strcmp(op->name, "linalg_diagonal") == 0;
    if (!self || !meta_dim(m, meta_arg_int(op, args, "dim1", linalg ? -2 : 0), self->ndim, &a) ||
        !meta_dim(m, meta_arg_int(op, args, "dim2", linalg ? -1 : 1), self->ndim, &b))
        return false;
    if (a == b || self->ndim < 2)
        return meta_fail(m, "RuntimeError: diagonal dimensions cannot be identical %d, %d", a, b);
    Sym *s = m->sym;
    const Expr *x = self->size[a], *y = self->size[b], *zero = meta_int(m, 0);
    const Expr *len =
        off >= 0 ? sym_min(s, x, sym_add_int(s, y, -off)) : sym_min(s, sym_add_int(s, x, off), y);
    if (expr_int_or(len, 0) < 0)
        len = zero;
    TensorMeta *t = meta_window(m, self, self->ndim - 1);
    int k = 0;
    for (int i = 0; i < self->ndim; i++)
        if (i != a && i != b) {
            t->size[k] = self->size[i];
            t->stride[k++] = self->stride[i];
        }
    t->size[k] = len;
    t->stride[k] = sym_add(s, self->stride[a], self->stride[b]);
    if (!expr_is(len, 0))
        t->offset = sym_add(s, t->offset,
                            off >= 0 ? sym_mul_int(s, self->stride[b], off)
                                     : sym_mul_int(s, self->stride[a], -off));
    return meta_out_view(m, op, t, out);
}

bool meta_unfold(MetaCtx *m, const Op *op, const Value *args, Value *out) {
    const TensorMeta *self = meta_self(m, op, args);
    int dim;
    const Expr *size = meta_int(m, 1), *step = size;
    if (!self || !meta_dim(m, meta_arg_int(op, args, "dimension", 0), self->ndim, &dim) ||
        !val_as_expr(m->sym, meta_arg(op, args, "size"), &size) ||
        !val_as_expr(m->sym, meta_arg(op, args, "step"), &step))
        return false;
    Sym *s = m->sym;
    const Expr *one = meta_int(m, 1);
    const Expr *old = self->ndim ? self->size[dim] : one,
               *old_stride = self->ndim ? self->stride[dim] : one;
    if (meta_lt(m, old, size))
        return meta_fail(
            m, "RuntimeError: maximum size for tensor at dimension %d is %s but size is %s", dim,
            sym_str(m->arena, old), sym_str(m->arena, size));
    TensorMeta *t = meta_window(m, self, self->ndim + 1);
    for (int i = 0; i < self->ndim; i++) {
        t->size[i] = self->size[i];
        t->stride[i] = self->stride[i];
    }
    if (self->ndim) {
        t->size[dim] = sym_add_int(s, sym_floordiv(s, sym_sub(s, old, size), step), 1);
        t->stride[dim] = sym_mul(s, step, old_stride);
    }
    t->size[self->ndim] = size;
    t->stride[self->ndim] = old_stride;
    return meta_out_view(m, op, t, out);
}
