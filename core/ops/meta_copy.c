// meta_copy.c: operators that move elements into fresh memory: clone, conversions, repeat, flip,
// triangles, and reinterpretation of elements.
#include "core/ops/meta.h"

#include <string.h>

static MemoryFormat format_arg(const Op *op, const Value *args, MemoryFormat absent) {
    const Value *v = meta_arg(op, args, "memory_format");
    return v->kind == VAL_memory_format ? v->mf : absent;
}

static void apply_device(const Op *op, const Value *args, TensorMeta *t) {
    const Value *v = meta_arg(op, args, "device");
    if (v->kind == VAL_device)
        t->device = v->device;
}

// clone, *_like, _to_copy: layout by memory_format, preserved if not given.
bool meta_clone(MetaCtx *m, const Op *op, const Value *args, Value *out) {
    const TensorMeta *self = meta_self(m, op, args);
    if (!self)
        return false;
    TensorMeta *t = meta_like(m, self, meta_arg_dtype(op, args, self->dtype),
                              format_arg(op, args, MF_preserve));
    apply_device(op, args, t);
    return meta_out(out, t);
}

bool meta_contiguous_call(MetaCtx *m, const Op *op, const Value *args, Value *out) {
    const TensorMeta *self = meta_self(m, op, args);
    if (!self)
        return false;
    MemoryFormat mf = format_arg(op, args, MF_contiguous);
    if (meta_is_contiguous(m->sym, self, mf))
        return meta_out(out, self);
    return meta_out(out, meta_like(m, self, self->dtype, mf));
}

// to.*, type_as: the tensor itself if nothing changes.
bool meta_to(MetaCtx *m, const Op *op, const Value *args, Value *out) {
    const TensorMeta *self = meta_self(m, op, args);
    if (!self)
        return false;
    const TensorMeta *other = meta_arg_tensor(op, args, "other");
    DType dtype = other ? other->dtype : meta_arg_dtype(op, args, self->dtype);
    MemoryFormat mf = format_arg(op, args, MF_preserve);
    TensorMeta *t = meta_like(m, self, dtype, mf);
    apply_device(op, args, t);
    if (other)
        t->device = other->device;
    bool same = dtype == self->dtype && device_equal(t->device, self->device) &&
                !meta_arg_bool(op, args, "copy") &&
                (mf == MF_preserve || meta_is_contiguous(m->sym, self, mf));
    return meta_out(out, same ? self : t);
}

// prims.convert_element_type: always new, strides preserved.
bool meta_convert(MetaCtx *m, const Op *op, const Value *args, Value *out) {
    const TensorMeta *self = meta_self(m, op, args);
    return self &&
           meta_out(out, meta_like(m, self, meta_arg_dtype(op, args, self->dtype), MF_preserve));
}

// Like the first argument, in contiguous memory.
bool meta_like_contiguous(MetaCtx *m, const Op *op, const Value *args, Value *out) {
    const TensorMeta *self = meta_self(m, op, args);
    return self && meta_out(out, meta_like(m, self, self->dtype, MF_contiguous));
}

// Like the first argument, its layout preserved.
bool meta_like_preserve(MetaCtx *m, const Op *op, const Value *args, Value *out) {
    const TensorMeta *self = meta_self(m, op, args);
    return self && meta_out(out, meta_like(m, self, self->dtype, MF_preserve));
}

// Like the first argument, in the format that its strides suggest.
bool meta_like_suggested(MetaCtx *m, const Op *op, const Value *args, Value *out) {
    const TensorMeta *self = meta_self(m, op, args);
    return self && meta_out(out, meta_like(m, self, self->dtype, meta_suggest_format(m, self)));
}

// copy(self, src): src's elements with self's dtype and shape.
bool meta_copy_into(MetaCtx *m, const Op *op, const Value *args, Value *out) {
    const TensorMeta *self = meta_self(m, op, args), *src = meta_arg_tensor(op, args, "src");
    if (!self || !src)
        return false;
    const TensorMeta *both[2] = {self, src};
    int ndim;
    const Expr **size = ops_broadcast(m, both, 2, &ndim);
    bool fits = size && ndim == self->ndim;
    for (int i = 0; fits && i < ndim; i++)
        fits = meta_eq(m, size[i], self->size[i]);
    if (!fits)
        return size &&
               meta_fail(
                   m, "RuntimeError: output with shape %s doesn't match the broadcast shape %s",
                   meta_sizes_text(m, self->size, self->ndim), meta_sizes_text(m, size, ndim));
    // Strides are kept unless elements share a place.
    bool folded = false;
    for (int i = 0; i < self->ndim; i++)
        folded = folded || (expr_is(self->stride[i], 0) && !expr_is(self->size[i], 1));
    TensorMeta *t =
        folded ? meta_like(m, self, self->dtype, MF_preserve) : meta_copy(m->arena, self);
    t->offset = meta_int(m, 0);
    return meta_out(out, t);
}

bool meta_repeat(MetaCtx *m, const Op *op, const Value *args, Value *out) {
    const TensorMeta *self = meta_self(m, op, args);
    int n;
    const Expr **times = self ? meta_exprs(m, &args[1], &n) : NULL;
    if (!times)
        return false;
    bool tile = strcmp(op->name, "tile") == 0;
    if (!tile && n < self->ndim)
        return meta_fail(
            m,
            "RuntimeError: Number of dimensions of repeat dims can not be smaller than number of "
            "dimensions of tensor");
    int ndim = n > self->ndim ? n : self->ndim;
    const Expr **size = ARENA_ARRAY(m->arena, ndim + 1, const Expr *);
    for (int i = 0; i < ndim; i++) {
        int d = i - (ndim - self->ndim), k = i - (ndim - n);
        const Expr *old = d < 0 ? meta_int(m, 1) : self->size[d];
        size[i] = k < 0 ? old : sym_mul(m->sym, old, times[k]);
    }
    return meta_out_new(m, out, self->dtype, ndim, size, self->device);
}

bool meta_flip(MetaCtx *m, const Op *op, const Value *args, Value *out) {
    const TensorMeta *self = meta_self(m, op, args);
    uint64_t mask;
    if (!self || (op->n_args > 1 && !meta_dims(m, &args[1], self->ndim, false, &mask)))
        return false;
    return meta_out(out, meta_like(m, self, self->dtype, MF_preserve));
}

bool meta_rot90(MetaCtx *m, const Op *op, const Value *args, Value *out) {
    const TensorMeta *self = meta_self(m, op, args);
    int64_t k = meta_arg_int(op, args, "k", 1), x, y;
    int a, b;
    const Value *dims = meta_arg(op, args, "dims");
    if (!self || dims->n != 2 || !val_as_int(&dims->at[0], &x) || !val_as_int(&dims->at[1], &y) ||
        !meta_dim(m, x, self->ndim, &a) || !meta_dim(m, y, self->ndim, &b))
        return self && meta_fail(m, "RuntimeError: expected total rotation dims == 2");
    TensorMeta *t = meta_like(m, self, self->dtype, k % 4 ? MF_preserve : MF_contiguous);
    if (k % 2) { // flipped, then transposed
        const Expr *size = t->size[a], *stride = t->stride[a];
        t->size[a] = t->size[b];
        t->size[b] = size;
        t->stride[a] = t->stride[b];
        t->stride[b] = stride;
    }
    return meta_out(out, t);
}

bool meta_triangle(MetaCtx *m, const Op *op, const Value *args, Value *out) {
    const TensorMeta *self = meta_self(m, op, args);
    if (!self)
        return false;
    if (self->ndim < 2)
        return meta_fail(m, "RuntimeError: %s: input tensor must have at least 2 dimensions",
                         op->name);
    return meta_out(out, meta_like(m, self, self->dtype, MF_contiguous));
}

bool meta_diag_embed(MetaCtx *m, const Op *op, const Value *args, Value *out) {
    const TensorMeta *self = meta_self(m, op, args);
    int a, b;
    int64_t off = meta_arg_int(op, args, "offset", 0);
    if (!self || !meta_dim(m, meta_arg_int(op, args, "dim1", -2), self->ndim + 1, &a) ||
        !meta_dim(m, meta_arg_int(op, args, "dim2", -1), self->ndim + 1, &b))
        return false;
    if (a == b)
        return meta_fail(m, "RuntimeError: diagonal dimensions cannot be identical %d, %d", a, b);
    int ndim = self->ndim + 1;
    const Expr **size = ARENA_ARRAY(m->arena, ndim, const Expr *);
    const Expr *side = sym_add_int(m->sym, self->size[self->ndim - 1], off < 0 ? -off : off);
    for (int i = 0, k = 0; i < ndim; i++)
        size[i] = i == a || i == b ? side : self->size[k++];
    return meta_out_new(m, out, self->dtype, ndim, size, self->device);
}

bool meta_diag(MetaCtx *m, const Op *op, const Value *args, Value *out) {
    const TensorMeta *self = meta_self(m, op, args);
    if (!self || (self->ndim != 1 && self->ndim != 2))
        return self &&
               meta_fail(m, "RuntimeError: diag(): Supports 1D or 2D tensors. Got %dD", self->ndim);
    Value full[4] = {args[0], args[1], val_int(0), val_int(1)};
    return self->ndim == 1 ? meta_diag_embed(m, op_at(OP_aten_diag_embed_default), full, out)
                           : meta_diagonal(m, op_at(OP_aten_diagonal_copy_default), full, out);
}

bool meta_block_diag(MetaCtx *m, const Op *op, const Value *args, Value *out) {
    int n;
    const TensorMeta **t = meta_tensors(m, &args[0], &n);
    (void)op;
    if (!t)
        return false;
    const Expr *size[2] = {meta_int(m, 0), meta_int(m, 0)};
    if (!n) { // nothing makes one row
        size[0] = meta_int(m, 1);
        return meta_out_new(m, out, DT_f32, 2, size, (Device){DEV_cpu, -1});
    }
    for (int i = 0; i < n; i++) {
        const Expr *one = meta_int(m, 1);
        if (t[i]->ndim > 2)
            return meta_fail(m,
                             "RuntimeError: torch.block_diag: Input tensors must have 2 or fewer "
                             "dimensions. Input %d has %d dimensions",
                             i, t[i]->ndim);
        size[0] = sym_add(m->sym, size[0], t[i]->ndim > 1 ? t[i]->size[0] : one);
        size[1] = sym_add(m->sym, size[1], t[i]->ndim ? t[i]->size[t[i]->ndim - 1] : one);
    }
    return meta_out_new(m, out, ops_result_type(args, 1), 2, size, t[0]->device);
}

bool meta_view_dtype(MetaCtx *m, const Op *op, const Value *args, Value *out) {
    const TensorMeta *self = meta_self(m, op, args);
    if (!self || args[1].kind != VAL_dtype)
        return false;
    DType to = args[1].dtype;
    int from_bytes = dtype_info[self->dtype].bytes, to_bytes = dtype_info[to].bytes,
        last = self->ndim - 1;
    TensorMeta *t = meta_copy(m->arena, self);
    t->dtype = to;
    Sym *s = m->sym;
    if (from_bytes != to_bytes && self->ndim == 0)
        return meta_fail(
            m, "RuntimeError: self.dim() cannot be 0 to view %s as %s (different element sizes)",
            dtype_info[self->dtype].torch_name, dtype_info[to].torch_name);
    if (from_bytes > to_bytes) {
        int ratio = from_bytes / to_bytes;
        for (int i = 0; i < last; i++)
            t->stride[i] = sym_mul_int(s, t->stride[i], ratio);
        t->size[last] = sym_mul_int(s, t->size[last], ratio);
        t->offset = sym_mul_int(s, t->offset, ratio);
    } else if (from_bytes < to_bytes) {
        const Expr *ratio = meta_int(m, to_bytes / from_bytes);
        for (int i = 0; i < last; i++)
            t->stride[i] = sym_floordiv(s, t->stride[i], ratio);
        t->size[last] = sym_floordiv(s, t->size[last], ratio);
        t->offset = sym_floordiv(s, t->offset, ratio);
    }
    if (str_ends(op->name, "_copy"))
        meta_set_contiguous(m, t);
    return meta_out(out, t);
}

// view_as_real adds a last dimension of 2, view_as_complex takes it away; real and imag take one
// part.
bool meta_complex_view(MetaCtx *m, const Op *op, const Value *args, Value *out) {
    const TensorMeta *self = meta_self(m, op, args);
    if (!self)
        return false;
    bool complex = dtype_info[self->dtype].cls == DTC_COMPLEX,
         part = !str_starts(op->name, "view_as_");
    if (part && !complex)
        return op->name[0] == 'r' ? meta_out(out, self)
                                  : meta_fail(m, "RuntimeError: imag is not implemented for "
                                                 "tensors with non-complex dtypes.");
    Sym *s = m->sym;
    if (part || str_starts(op->name, "view_as_real")) {
        if (!complex)
            return meta_fail(m, "RuntimeError: view_as_real is only supported for complex tensors");
        TensorMeta *t = meta_window(m, self, self->ndim + !part);
        t->dtype = meta_real_of(self->dtype);
        for (int i = 0; i < self->ndim; i++) {
            t->size[i] = self->size[i];
            t->stride[i] = sym_mul_int(s, self->stride[i], 2);
        }
        t->offset = sym_add_int(s, sym_mul_int(s, t->offset, 2), part && op->name[0] == 'i');
        if (!part) {
            t->size[self->ndim] = meta_int(m, 2);
            t->stride[self->ndim] = meta_int(m, 1);
        }
        if (str_ends(op->name, "_copy"))
            meta_set_contiguous(m, t);
        return meta_out(out, t);
    }
    if (self->ndim == 0 || !expr_is(self->size[self->ndim - 1], 2))
        return meta_fail(m, "RuntimeError: Tensor must have a last dimension of size 2");
    TensorMeta *t = meta_window(m, self, self->ndim - 1);
    t->dtype = self->dtype == DT_f64 ? DT_c128 : self->dtype == DT_f16 ? DT_c32 : DT_c64;
    const Expr *two = meta_int(m, 2);
    for (int i = 0; i < t->ndim; i++) {
        t->size[i] = self->size[i];
        t->stride[i] = sym_floordiv(s, self->stride[i], two);
    }
    t->offset = sym_floordiv(s, t->offset, two);
    if (str_ends(op->name, "_copy"))
        meta_set_contiguous(m, t);
    return meta_out(out, t);
}

bool meta_resize(MetaCtx *m, const Op *op, const Value *args, Value *out) {
    const TensorMeta *self = meta_self(m, op, args),
                     *like = meta_arg_tensor(op, args, "the_template");
    int n;
    Value sizes = like ? val_exprs(m->arena, like->size, like->ndim) : args[1];
    const Expr **size = self ? meta_exprs(m, &sizes, &n) : NULL;
    if (!size)
        return false;
    TensorMeta *t = meta_make(m, self->dtype, n, size, self->device);
    MemoryFormat mf = format_arg(op, args, MF_contiguous);
    if (mf == MF_preserve && like)
        mf = meta_suggest_format(m, like);
    meta_set_format(m, t, mf);
    if (!strcmp(op->ns, "aten") && !str_ends(op->name, "_")) // of a copy
        self = meta_like(m, self, self->dtype, MF_preserve);
    bool same = self->ndim == n && meta_arg(op, args, "memory_format")->kind == VAL_none;
    for (int i = 0; same && i < n; i++)
        same = self->size[i] == size[i];
    return meta_out(out, same ? self : t);
}

// prims.inductor_force_stride_order, copy_strided: the same elements under given strides.
bool meta_force_strides(MetaCtx *m, const Op *op, const Value *args, Value *out) {
    const TensorMeta *self = meta_self(m, op, args);
    int n;
    const Expr **stride = self ? meta_exprs(m, &args[1], &n) : NULL;
    if (!stride || n != self->ndim)
        return false;
    TensorMeta *t = meta_make(m, self->dtype, n, self->size, self->device);
    memcpy(t->stride, stride, (size_t)n * sizeof *stride);
    return meta_out(out, t);
}
