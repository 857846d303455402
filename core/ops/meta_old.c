// meta_old.c: metadata of ops that only old programs and traces of primitives call.
#include "core/ops/meta.h"

#include <string.h>

static const Device cpu = {DEV_cpu, -1};

bool meta_fftfreq(MetaCtx *m, const Op *op, const Value *args, Value *out) {
    int64_t n = meta_arg_int(op, args, "n", 0);
    n = strstr(op->name, "rfft") ? n / 2 + 1 : n;
    if (n < 0)
        return meta_fail(m, "RuntimeError: %s: n must not be negative, but there would be %lld",
                         op->name, (long long)n);
    const Expr *size = meta_int(m, n);
    return meta_out_new(m, out, meta_arg_dtype(op, args, DT_f32), 1, &size, cpu);
}

bool meta_shape_as_tensor(MetaCtx *m, const Op *op, const Value *args, Value *out) {
    const TensorMeta *self = meta_self(m, op, args);
    const Expr *size = self ? meta_int(m, self->ndim) : NULL;
    return self && meta_out_new(m, out, DT_i64, 1, &size, cpu);
}

// C++'s names, which the message of set_ has.
static const char *type_name(DType d) {
    static const char *const names[DT_count] = {
        [DT_f32] = "float",          [DT_f64] = "double",         [DT_bf16] = "c10::BFloat16",
        [DT_f16] = "c10::Half",      [DT_i64] = "long",           [DT_i32] = "int",
        [DT_i16] = "short",          [DT_i8] = "signed char",     [DT_u8] = "unsigned char",
        [DT_b8] = "bool",            [DT_u16] = "unsigned short", [DT_u32] = "unsigned int",
        [DT_u64] = "unsigned long",  [DT_c32] = "c10::complex<c10::Half>",
        [DT_c64] = "c10::complex<float>", [DT_c128] = "c10::complex<double>"};
    return names[d] ? names[d] : dtype_info[d].torch_name;
}

// set_(self), set_(self, source), set_(self, source, storage_offset, size, stride)
bool meta_set_(MetaCtx *m, const Op *op, const Value *args, Value *out) {
    const TensorMeta *self = meta_self(m, op, args), *from = meta_arg_tensor(op, args, "source");
    const Expr *none = meta_int(m, 0);
    int n, steps;
    if (!self || (op->n_args > 1 && !from))
        return false;
    if (op->n_args == 1)
        return meta_out_new(m, out, self->dtype, 1, &none, self->device);
    if (from->dtype != self->dtype)
        return meta_fail(m, "RuntimeError: Could not set tensor of type %s to a tensor of type %s",
                         type_name(from->dtype), type_name(self->dtype));
    if (op->n_args == 2)
        return meta_out(out, from);
    const Expr **size = meta_exprs(m, meta_arg(op, args, "size"), &n),
               **stride = meta_exprs(m, meta_arg(op, args, "stride"), &steps);
    if (!size || !stride || (steps && steps != n))
        return size && stride &&
               meta_fail(m, "RuntimeError: set_: %d sizes and %d strides", n, steps);
    TensorMeta *t = meta_make(m, from->dtype, n, size, from->device);
    for (int i = 0; i < steps; i++)
        t->stride[i] = stride[i];
    return meta_out(out, t);
}

bool meta_can_cast(MetaCtx *m, const Op *op, const Value *args, Value *out) {
    (void)m;
    DType from = args[0].kind == VAL_dtype ? args[0].dtype : DT_none,
          to = args[1].kind == VAL_dtype ? args[1].dtype : DT_none;
    if (from == DT_none || to == DT_none)
        return meta_fail(m, "TypeError: %s: dtypes expected", op->name);
    DTypeClass a = dtype_info[from].cls, b = dtype_info[to].cls;
    bool loses = (a == DTC_COMPLEX && b != DTC_COMPLEX) ||
                 (a == DTC_FLOAT && (b == DTC_INT || b == DTC_BOOL)) ||
                 (to == DT_b8 && from != DT_b8);
    *out = val_bool(!loses);
    return true;
}

static bool as_view(MetaCtx *m, const TensorMeta *self, int ndim, const Expr *const *size,
                    bool copy, Value *out) {
    if (copy)
        return meta_out_new(m, out, self->dtype, ndim, size, self->device);
    TensorMeta *t = meta_window(m, self, ndim);
    memcpy(t->size, size, (size_t)ndim * sizeof *size);
    return (meta_view_strides(m, self, ndim, size, t->stride) && meta_out(out, t)) ||
           meta_fail(m, "ValueError: dimensions that do not lie in one row cannot be seen as one");
}

// prims.collapse_view(a, start, end), prims.collapse
bool meta_collapse(MetaCtx *m, const Op *op, const Value *args, Value *out) {
    const TensorMeta *self = meta_self(m, op, args);
    int64_t start = meta_arg_int(op, args, "start", 0), end = meta_arg_int(op, args, "end", 0);
    if (!self || (self->ndim && (start < 0 || end < start || end >= self->ndim)))
        return self && meta_fail(m, "ValueError: %s: dimensions %lld to %lld of %d", op->name,
                                 (long long)start, (long long)end, self->ndim);
    const Expr **size = ARENA_ARRAY(m->arena, self->ndim + 1, const Expr *);
    int n = 0;
    if (!self->ndim)
        size[n++] = meta_int(m, 1);
    for (int i = 0; i < self->ndim; i++)
        if (i <= start || i > end)
            size[n++] = self->size[i];
        else
            size[n - 1] = sym_mul(m->sym, size[n - 1], self->size[i]);
    return as_view(m, self, n, size, strcmp(op->name, "collapse") == 0, out);
}

// prims.split_dim(a, dim, outer_length)
bool meta_split_dim(MetaCtx *m, const Op *op, const Value *args, Value *out) {
    const TensorMeta *self = meta_self(m, op, args);
    int64_t dim = meta_arg_int(op, args, "dim", 0);
    const Expr *outer;
    if (!self || !val_as_expr(m->sym, meta_arg(op, args, "outer_length"), &outer) || dim < 0 ||
        dim >= self->ndim)
        return self && meta_fail(m, "ValueError: split_dim: dimension %lld of %d", (long long)dim,
                                 self->ndim);
    const Expr **size = ARENA_ARRAY(m->arena, self->ndim + 2, const Expr *);
    for (int i = 0; i < self->ndim; i++)
        size[i + (i > dim)] = self->size[i];
    size[dim] = outer;
    size[dim + 1] = sym_floordiv(m->sym, self->size[dim], outer);
    if (!meta_eq(m, sym_mul(m->sym, size[dim], size[dim + 1]), self->size[dim]))
        return meta_fail(m, "ValueError: split_dim: outer_length does not part dimension %lld",
                         (long long)dim);
    return as_view(m, self, self->ndim + 1, size, false, out);
}

static void slice_one(MetaCtx *m, TensorMeta *t, int d, const Expr *from, const Expr *to,
                      const Expr *step) {
    const Expr *len = sym_sub(m->sym, to, from), *one = meta_int(m, 1);
    t->offset = sym_add(m->sym, t->offset, sym_mul(m->sym, from, t->stride[d]));
    t->size[d] = sym_floordiv(m->sym, sym_sub(m->sym, sym_add(m->sym, len, step), one), step);
    t->stride[d] = sym_mul(m->sym, t->stride[d], step);
}

// prims.slice(a, start_indices, limit_indices, strides), prims.slice_in_dim(a, start_index,
// limit_index, stride, axis): bounds that are none are errors
bool meta_prims_slice(MetaCtx *m, const Op *op, const Value *args, Value *out) {
    const TensorMeta *self = meta_self(m, op, args);
    bool one = strcmp(op->name, "slice_in_dim") == 0;
    int n, ends, steps = 0, axis = (int)(one ? meta_arg_int(op, args, "axis", 0) : 0);
    const Expr **from = meta_exprs(m, &args[1], &n), **to = meta_exprs(m, &args[2], &ends),
               **by = args[3].kind == VAL_none ? NULL : meta_exprs(m, &args[3], &steps);
    if (!self || !from || !to || (args[3].kind != VAL_none && !by))
        return false;
    if (n != (one ? 1 : self->ndim) || ends != n || (by && steps != n) || axis < 0 ||
        (one && axis >= self->ndim))
        return meta_fail(m, "ValueError: %s: %d bounds for %d dimensions", op->name, n, self->ndim);
    TensorMeta *t = meta_window(m, self, self->ndim);
    for (int i = 0; i < self->ndim; i++) {
        t->size[i] = self->size[i];
        t->stride[i] = self->stride[i];
    }
    for (int i = 0; i < n; i++) {
        const Expr *step = by ? by[i] : meta_int(m, 1), *zero = meta_int(m, 0);
        if (meta_lt(m, from[i], zero) || meta_lt(m, to[i], from[i]) ||
            meta_lt(m, self->size[axis + i], to[i]) || meta_lt(m, step, meta_int(m, 1)))
            return meta_fail(m, "ValueError: %s: bounds outside of dimension %d", op->name,
                             axis + i);
        slice_one(m, t, axis + i, from[i], to[i], step);
    }
    return meta_out(out, t);
}
