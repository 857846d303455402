// meta_create.c: tensors from nothing, like another one, and random ones.
#include "core/ops/meta.h"

#include <math.h>
#include <string.h>

static Device device_of(const Op *op, const Value *args, Device fallback) {
    const Value *v = meta_arg(op, args, "device");
    return v->kind == VAL_device ? v->device : fallback;
}

static const Device cpu = {DEV_cpu, -1};

// The dtype of a Python number as torch.full and torch.tensor see it.
static DType dtype_of_number(const Value *v) {
    switch (v->kind) {
    case VAL_bool: return DT_b8;
    case VAL_int: case VAL_sym: return DT_i64;
    case VAL_complex: return DT_c64;
    case VAL_tensor: return v->tensor->dtype;
    case VAL_none: case VAL_float: case VAL_symfloat: case VAL_str: case VAL_dtype: case VAL_device:
    case VAL_layout:
    case VAL_memory_format:
    case VAL_list:
    case VAL_tuple:
    case VAL_dict:
    case VAL_slice:
    case VAL_ellipsis: case VAL_node: case VAL_target: case VAL_graph: case VAL_opaque: break;
    }
    return DT_f32;
}

static bool sizes_ok(MetaCtx *m, const Expr *const *size, int n) {
    for (int i = 0; i < n; i++)
        if (expr_int_or(size[i], 0) < 0)
            return meta_fail(m,
                             "RuntimeError: Trying to create tensor with negative dimension %s: %s",
                             sym_str(m->arena, size[i]), meta_sizes_text(m, size, n));
    return true;
}

static const Value *size_arg(const Op *op, const Value *args) {
    return meta_arg(op, args, op_arg_index(op, "size") >= 0 ? "size" : "shape");
}

static bool create(MetaCtx *m, const Op *op, const Value *args, DType dtype, Device fallback,
                   Value *out) {
    int n;
    const Expr **size = meta_exprs(m, size_arg(op, args), &n);
    if (!size || !sizes_ok(m, size, n))
        return false;
    TensorMeta *t =
        meta_make(m, meta_arg_dtype(op, args, dtype), n, size, device_of(op, args, fallback));
    const Value *mf = meta_arg(op, args, "memory_format");
    if (mf->kind == VAL_memory_format)
        meta_set_format(m, t, mf->mf);
    return meta_out(out, t);
}

// empty, zeros, ones, rand, randn.
bool meta_empty(MetaCtx *m, const Op *op, const Value *args, Value *out) {
    return create(m, op, args, DT_f32, cpu, out);
}

bool meta_full(MetaCtx *m, const Op *op, const Value *args, Value *out) {
    return create(m, op, args, dtype_of_number(meta_arg(op, args, "fill_value")), cpu, out);
}

// new_empty, new_zeros, …: dtype and device of self.
bool meta_new_like(MetaCtx *m, const Op *op, const Value *args, Value *out) {
    const TensorMeta *self = meta_self(m, op, args);
    return self && create(m, op, args, self->dtype, self->device, out);
}

// Long is the schema's default; none that is given is the default dtype.
bool meta_randint(MetaCtx *m, const Op *op, const Value *args, Value *out) {
    return create(m, op, args, DT_f32, cpu, out);
}

bool meta_randperm(MetaCtx *m, const Op *op, const Value *args, Value *out) {
    const Expr *n;
    return val_as_expr(m->sym, &args[0], &n) &&
           meta_out_new(m, out, meta_arg_dtype(op, args, DT_i64), 1, &n, device_of(op, args, cpu));
}

bool meta_empty_strided(MetaCtx *m, const Op *op, const Value *args, Value *out) {
    const TensorMeta *self = op->args[0].type == AT_tensor ? meta_self(m, op, args) : NULL;
    int n, ns;
    const Value *strides =
        meta_arg(op, args, op_arg_index(op, "strides") >= 0 ? "strides" : "stride");
    const Expr **size = meta_exprs(m, size_arg(op, args), &n),
               **stride = meta_exprs(m, strides, &ns);
    if (!size || !stride)
        return false;
    if (n != ns)
        return meta_fail(m, "RuntimeError: mismatch in length of strides and shape");
    TensorMeta *t = meta_make(m, meta_arg_dtype(op, args, self ? self->dtype : DT_f32), n, size,
                              device_of(op, args, self ? self->device : cpu));
    for (int i = 0; i < n; i++)
        t->stride[i] = stride[i];
    return meta_out(out, t);
}

bool meta_empty_permuted(MetaCtx *m, const Op *op, const Value *args, Value *out) {
    int n, np;
    const Expr **size = meta_exprs(m, size_arg(op, args), &n);
    const Expr **layout = meta_exprs(m, meta_arg(op, args, "physical_layout"), &np);
    if (!size || !layout)
        return false;
    if (n != np)
        return meta_fail(
            m,
            "RuntimeError: Number of dimensions in size does not match the length of the "
            "physical_layout; i.e. len(size) = %d is not equal to len(physical_layout) = %d",
            n, np);
    TensorMeta *t =
        meta_make(m, meta_arg_dtype(op, args, DT_f32), n, size, device_of(op, args, cpu));
    const Expr *step = meta_int(m, 1);
    uint64_t seen = 0;
    for (int i = n - 1; i >= 0; i--) {
        int64_t d = expr_int_or(layout[i], -1);
        if (d < 0 || d >= n || (seen >> d & 1))
            return meta_fail(
                m, "RuntimeError: Dimension out of range or duplicate in physical_layout");
        seen |= 1ull << d;
        t->stride[d] = step;
        step = sym_mul(m->sym, step, size[d]);
    }
    return meta_out(out, t);
}

bool meta_scalar_tensor(MetaCtx *m, const Op *op, const Value *args, Value *out) {
    DType d = strcmp(op->ns, "prims") == 0 ? dtype_of_number(&args[0]) : DT_f32;
    return meta_out_new(m, out, meta_arg_dtype(op, args, d), 0, NULL, device_of(op, args, cpu));
}

static bool is_integral(const Value *v) {
    return v->kind == VAL_int || v->kind == VAL_sym || v->kind == VAL_bool || v->kind == VAL_none;
}

// arange, range: ceil((end - start) / step) elements.
bool meta_arange(MetaCtx *m, const Op *op, const Value *args, Value *out) {
    const Value *start = meta_arg(op, args, "start"), *end = meta_arg(op, args, "end"),
                *step = meta_arg(op, args, "step");
    bool ints = is_integral(start) && is_integral(end) && is_integral(step),
         closed = strcmp(op->name, "range") == 0;
    DType dtype = meta_arg_dtype(op, args, ints && !closed ? DT_i64 : DT_f32);
    const Expr *n;
    if (ints) {
        const Expr *a = meta_int(m, 0), *b = a, *s = meta_int(m, 1);
        val_as_expr(m->sym, start, &a);
        val_as_expr(m->sym, end, &b);
        val_as_expr(m->sym, step, &s);
        if (expr_is(s, 0))
            return meta_fail(m, "RuntimeError: step must be nonzero");
        const Expr *len = sym_sub(m->sym, b, a), *zero = meta_int(m, 0);
        if (meta_lt(m, s, zero)) {
            len = sym_neg(m->sym, len);
            s = sym_neg(m->sym, s);
        }
        if (meta_lt(m, len, zero))
            return meta_fail(
                m, "RuntimeError: upper bound and lower bound inconsistent with step sign");
        n = closed ? sym_add_int(m->sym, sym_floordiv(m->sym, len, s), 1)
            : expr_is(s, 1)
                ? len
                : sym_floordiv(m->sym, sym_add_int(m->sym, sym_add(m->sym, len, s), -1), s);
    } else {
        double a = 0, b = 0, s = 1;
        val_as_float(start, &a);
        val_as_float(step, &s);
        val_as_float(end, &b);
        if (dtype == DT_i64 && !closed) { // counted in integers
            a = trunc(a);
            b = trunc(b);
            s = trunc(s);
        }
        if (!val_as_float(end, &(double){0}) || s == 0 || isnan(a) || isnan(b))
            return meta_fail(
                m,
                "RuntimeError: unsupported range: its bounds and step must be numbers, step not 0");
        double count = closed ? floor((b - a) / s) + 1 : ceil((b - a) / s);
        if (!(count >= 0) || count > 9e15)
            return meta_fail(
                m, "RuntimeError: upper bound and lower bound inconsistent with step sign");
        n = meta_int(m, (int64_t)count);
    }
    return meta_out_new(m, out, dtype, 1, &n, device_of(op, args, cpu));
}

bool meta_iota(MetaCtx *m, const Op *op, const Value *args, Value *out) {
    const Expr *n;
    return val_as_expr(m->sym, &args[0], &n) &&
           meta_out_new(m, out, meta_arg_dtype(op, args, DT_i64), 1, &n, device_of(op, args, cpu));
}

// linspace, logspace.
bool meta_linspace(MetaCtx *m, const Op *op, const Value *args, Value *out) {
    const Expr *n;
    if (!val_as_expr(m->sym, meta_arg(op, args, "steps"), &n))
        return false;
    if (expr_int_or(n, 0) < 0)
        return meta_fail(m, "RuntimeError: number of steps must be non-negative");
    return meta_out_new(m, out, meta_arg_dtype(op, args, DT_f32), 1, &n, device_of(op, args, cpu));
}

bool meta_eye(MetaCtx *m, const Op *op, const Value *args, Value *out) {
    const Expr *size[2];
    if (!val_as_expr(m->sym, &args[0], &size[0]))
        return false;
    size[1] = size[0];
    if (strcmp(op->overload, "m") == 0 && !val_as_expr(m->sym, &args[1], &size[1]))
        return false;
    return sizes_ok(m, size, 2) && meta_out_new(m, out, meta_arg_dtype(op, args, DT_f32), 2, size,
                                                device_of(op, args, cpu));
}

// Number of elements of a row × col matrix on or below diagonal `offset`.
static int64_t lower_triangle(int64_t row, int64_t col, int64_t offset) {
    int64_t count = 0;
    for (int64_t i = 0; i < row; i++) {
        int64_t len = i + offset + 1;
        count += len < 0 ? 0 : len > col ? col : len;
    }
    return count;
}

bool meta_triangle_indices(MetaCtx *m, const Op *op, const Value *args, Value *out) {
    int64_t row = meta_arg_int(op, args, "row", 0), col = meta_arg_int(op, args, "col", 0);
    int64_t offset = meta_arg_int(op, args, "offset", 0);
    if (row < 0 || col < 0 || row > 1 << 24 || col > 1 << 24)
        return meta_fail(m, "RuntimeError: row and col must be non-negative");
    int64_t n = op->name[2] == 'i' && op->name[3] == 'l'
                    ? lower_triangle(row, col, offset)
                    : row * col - lower_triangle(row, col, offset - 1);
    const Expr *size[2] = {meta_int(m, 2), meta_int(m, n)};
    return meta_out_new(m, out, meta_arg_dtype(op, args, DT_i64), 2, size,
                        device_of(op, args, cpu));
}

bool meta_window_function(MetaCtx *m, const Op *op, const Value *args, Value *out) {
    const Expr *n;
    return val_as_expr(m->sym, &args[0], &n) &&
           meta_out_new(m, out, meta_arg_dtype(op, args, DT_f32), 1, &n, device_of(op, args, cpu));
}

// normal.*: one of mean and std is a tensor, or both.
bool meta_normal(MetaCtx *m, const Op *op, const Value *args, Value *out) {
    const TensorMeta *t[2];
    int n = 0, ndim;
    for (int i = 0; i < 2; i++)
        if (args[i].kind == VAL_tensor)
            t[n++] = args[i].tensor;
    if (!n)
        return create(m, op, args, DT_f32, cpu, out);
    const Expr **size = ops_broadcast(m, t, n, &ndim);
    return size && meta_out_new(m, out, t[0]->dtype, ndim, size, t[0]->device);
}

bool meta_multinomial(MetaCtx *m, const Op *op, const Value *args, Value *out) {
    const TensorMeta *self = meta_self(m, op, args);
    const Expr *size[2];
    if (!self || !val_as_expr(m->sym, meta_arg(op, args, "num_samples"), &size[1]))
        return false;
    if (self->ndim < 1 || self->ndim > 2)
        return meta_fail(m, "RuntimeError: prob_dist must be 1 or 2 dim");
    size[0] = self->size[0];
    return meta_out_new(m, out, DT_i64, self->ndim, size + 2 - self->ndim, self->device);
}

// Two results like self; the second of a dtype of its own (DT_none: of self's).
static bool pair_like_self(MetaCtx *m, const Op *op, const Value *args, DType second, Value *out) {
    const TensorMeta *self = meta_self(m, op, args);
    if (!self)
        return false;
    *out = meta_tuple(m, 2);
    out->at[0] = val_tensor(meta_like(m, self, self->dtype, MF_preserve));
    second = second == DT_none ? self->dtype : second;
    out->at[1] = val_tensor(meta_like(m, self, second, MF_preserve));
    return true;
}

// native_dropout, _fused_dropout: the result and its mask, which of nothing is like the input.
bool meta_dropout_pair(MetaCtx *m, const Op *op, const Value *args, Value *out) {
    const TensorMeta *self = meta_self(m, op, args);
    bool empty = self && expr_is(meta_numel(m->sym, self), 0);
    return pair_like_self(m, op, args, empty ? DT_none : DT_b8, out);
}

bool meta_log_sigmoid_forward(MetaCtx *m, const Op *op, const Value *args, Value *out) {
    return pair_like_self(m, op, args, DT_none, out);
}

// rrelu_with_noise_functional: the result and the noise.
bool meta_rrelu_pair(MetaCtx *m, const Op *op, const Value *args, Value *out) {
    bool ok = pair_like_self(m, op, args, DT_none, out);
    if (ok)
        out->at[1] = args[1];
    return ok;
}

// Inductor's seeds and random numbers.
bool meta_seed(MetaCtx *m, const Op *op, const Value *args, Value *out) {
    const Expr *n;
    bool many = val_as_expr(m->sym, meta_arg(op, args, "count"), &n);
    return meta_out_new(m, out, DT_i64, many, &n, device_of(op, args, cpu));
}

bool meta_lookup_seed(MetaCtx *m, const Op *op, const Value *args, Value *out) {
    const TensorMeta *seeds = meta_self(m, op, args);
    return seeds && meta_out_new(m, out, DT_i64, 0, NULL, seeds->device);
}

bool meta_seeded(MetaCtx *m, const Op *op, const Value *args, Value *out) {
    const TensorMeta *seed = meta_arg_tensor(op, args, "seed");
    return create(m, op, args, strstr(op->name, "randint") ? DT_i64 : DT_f32,
                  seed ? seed->device : cpu, out);
}
