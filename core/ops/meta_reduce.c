// meta_reduce.c: reductions, scans, sorts and counts. Results of reductions lie contiguously.
#include "core/ops/meta.h"

#include <string.h>

// self reduced over a mask of dimensions.
static TensorMeta *reduced(MetaCtx *m, const TensorMeta *self, DType dtype, uint64_t mask,
                           bool keepdim) {
    const Expr **size = ARENA_ARRAY(m->arena, self->ndim + 1, const Expr *);
    int n = 0;
    for (int i = 0; i < self->ndim; i++) {
        if (!(mask >> i & 1))
            size[n++] = self->size[i];
        else if (keepdim)
            size[n++] = meta_int(m, 1);
    }
    return meta_make(m, dtype, n, size, self->device);
}

// Argument `dim` (or `dims`): absent is everything.
static bool dims_of(MetaCtx *m, const Op *op, const Value *args, int ndim, uint64_t *mask) {
    const Value *v = meta_arg(op, args, op_arg_index(op, "dims") >= 0 ? "dims" : "dim");
    return meta_dims(m, v, ndim, strcmp(op->ns, "prims") != 0 && !strstr(op->overload, "dims"),
                     mask);
}

static bool reduce(MetaCtx *m, const Op *op, const Value *args, DType dtype, Value *out) {
    const TensorMeta *self = meta_self(m, op, args);
    uint64_t mask;
    if (!self || !dims_of(m, op, args, self->ndim, &mask))
        return false;
    return meta_out(out, reduced(m, self, dtype, mask, meta_arg_bool(op, args, "keepdim")));
}

static DType self_dtype(const Value *args) {
    return args[0].kind == VAL_tensor ? args[0].tensor->dtype : DT_none;
}

static bool integral(DType d) {
    return dtype_info[d].cls == DTC_INT || d == DT_b8;
}

// sum, prod, nansum: integers add up in i64.
bool meta_sum(MetaCtx *m, const Op *op, const Value *args, Value *out) {
    DType d = self_dtype(args);
    return reduce(m, op, args, meta_arg_dtype(op, args, integral(d) ? DT_i64 : d), out);
}

bool meta_mean(MetaCtx *m, const Op *op, const Value *args, Value *out) {
    DType d = meta_arg_dtype(op, args, self_dtype(args));
    if (integral(d))
        return meta_fail(m,
                         "RuntimeError: mean(): could not infer output dtype. Input dtype must be "
                         "either a floating "
                         "point or complex dtype. Got: %s",
                         dtype_info[d].torch_name);
    return reduce(m, op, args, d, out);
}

// amax, amin, and prims that keep the dtype. An empty extent has no maximum.
bool meta_reduce_same(MetaCtx *m, const Op *op, const Value *args, Value *out) {
    const TensorMeta *self = meta_self(m, op, args);
    uint64_t mask;
    if (!self || !dims_of(m, op, args, self->ndim, &mask))
        return false;
    for (int i = 0; i < self->ndim; i++)
        if ((mask >> i & 1) && expr_is(self->size[i], 0) && op->name[0] == 'a')
            return meta_fail(m,
                             "IndexError: %s(): Expected reduction dim %d to have non-zero size.",
                             op->name, i);
    const Value *v = meta_arg(op, args, "output_dtype");
    return reduce(m, op, args, v->kind == VAL_dtype ? v->dtype : self->dtype, out);
}

bool meta_any(MetaCtx *m, const Op *op, const Value *args, Value *out) {
    DType d = self_dtype(args);
    return reduce(m, op, args, d == DT_u8 ? DT_u8 : DT_b8, out);
}

bool meta_count(MetaCtx *m, const Op *op, const Value *args, Value *out) {
    return reduce(m, op, args, DT_i64, out);
}

bool meta_argmax(MetaCtx *m, const Op *op, const Value *args, Value *out) {
    const TensorMeta *self = meta_self(m, op, args);
    if (self && meta_arg(op, args, "dim")->kind == VAL_none)
        for (int i = 0; i < self->ndim; i++)
            if (expr_is(self->size[i], 0))
                return meta_fail(m,
                                 "IndexError: %s(): Expected reduction dim to be specified for "
                                 "input.numel() == 0. "
                                 "Specify the reduction dim with the 'dim' argument.",
                                 op->name);
    return reduce(m, op, args, DT_i64, out);
}

bool meta_logsumexp(MetaCtx *m, const Op *op, const Value *args, Value *out) {
    return reduce(m, op, args, meta_float_of(self_dtype(args)), out);
}

// norm, linalg_vector_norm, dist: a real number.
bool meta_norm(MetaCtx *m, const Op *op, const Value *args, Value *out) {
    return reduce(m, op, args, meta_real_of(meta_arg_dtype(op, args, self_dtype(args))), out);
}

static bool two(MetaCtx *m, const TensorMeta *a, const TensorMeta *b, Value *out) {
    *out = meta_tuple(m, 2);
    out->at[0] = val_tensor(a);
    out->at[1] = val_tensor(b);
    return a && b;
}

// var, std and their _mean pairs.
bool meta_var(MetaCtx *m, const Op *op, const Value *args, Value *out) {
    DType d = self_dtype(args);
    if (integral(d))
        return meta_fail(m, "RuntimeError: %s only support floating point and complex dtypes",
                         op->name);
    Value first, second;
    if (!reduce(m, op, args, meta_real_of(d), &first))
        return false;
    if (!str_ends(op->name, "_mean")) {
        *out = first;
        return true;
    }
    return reduce(m, op, args, d, &second) && two(m, first.tensor, second.tensor, out);
}

// max.dim, min.dim, median.dim, mode, kthvalue: values and their indices.
bool meta_max_dim(MetaCtx *m, const Op *op, const Value *args, Value *out) {
    const TensorMeta *self = meta_self(m, op, args);
    int dim;
    int64_t at = meta_arg_int(op, args, "dim", -1);
    if (!self || !meta_dim(m, at, self->ndim, &dim))
        return false;
    if (self->ndim && expr_is(self->size[dim], 0))
        return meta_fail(m, "IndexError: %s(): Expected reduction dim %d to have non-zero size.",
                         op->name, dim);
    bool keep = meta_arg_bool(op, args, "keepdim");
    uint64_t mask = self->ndim ? 1ull << dim : 0;
    return two(m, reduced(m, self, self->dtype, mask, keep), reduced(m, self, DT_i64, mask, keep),
               out);
}

// max, min, median over everything, with an error for nothing.
bool meta_max_all(MetaCtx *m, const Op *op, const Value *args, Value *out) {
    const TensorMeta *self = meta_self(m, op, args);
    if (self && op->name[0] == 'm' && op->name[1] != 'e' && expr_is(meta_numel(m->sym, self), 0))
        return meta_fail(
            m,
            "RuntimeError: %s(): Expected reduction dim to be specified for input.numel() == 0. "
            "Specify the reduction dim with the 'dim' argument.",
            op->name);
    return self && meta_out_new(m, out, self->dtype, 0, NULL, self->device);
}

bool meta_aminmax(MetaCtx *m, const Op *op, const Value *args, Value *out) {
    Value v;
    return reduce(m, op, args, self_dtype(args), &v) &&
           two(m, v.tensor, meta_copy(m->arena, v.tensor), out);
}

// cumsum, cumprod, logcumsumexp.
bool meta_cumsum(MetaCtx *m, const Op *op, const Value *args, Value *out) {
    const TensorMeta *self = meta_self(m, op, args);
    int dim;
    if (!self || !meta_dim(m, meta_arg_int(op, args, "dim", 0), self->ndim, &dim))
        return false;
    DType dtype = meta_arg_dtype(op, args, integral(self->dtype) ? DT_i64 : self->dtype);
    return meta_out(out, meta_like(m, self, dtype, MF_contiguous));
}

bool meta_cummax(MetaCtx *m, const Op *op, const Value *args, Value *out) {
    const TensorMeta *self = meta_self(m, op, args);
    int dim;
    return self && meta_dim(m, meta_arg_int(op, args, "dim", 0), self->ndim, &dim) &&
           two(m, meta_like(m, self, self->dtype, MF_contiguous),
               meta_like(m, self, DT_i64, MF_contiguous), out);
}

bool meta_sort(MetaCtx *m, const Op *op, const Value *args, Value *out) {
    const TensorMeta *self = meta_self(m, op, args);
    int dim;
    if (!self || !meta_dim(m, meta_arg_int(op, args, "dim", -1), self->ndim, &dim))
        return false;
    const TensorMeta *index = meta_like(m, self, DT_i64, MF_preserve);
    return str_starts(op->name, "arg")
               ? meta_out(out, index)
               : two(m, meta_like(m, self, self->dtype, MF_preserve), index, out);
}

bool meta_topk(MetaCtx *m, const Op *op, const Value *args, Value *out) {
    const TensorMeta *self = meta_self(m, op, args);
    int dim;
    const Expr *k;
    if (!self || !meta_dim(m, meta_arg_int(op, args, "dim", -1), self->ndim, &dim) ||
        !val_as_expr(m->sym, meta_arg(op, args, "k"), &k))
        return false;
    if (self->ndim && meta_lt(m, self->size[dim], k))
        return meta_fail(m, "RuntimeError: selected index k out of range");
    const Expr **size = ARENA_ARRAY(m->arena, self->ndim + 1, const Expr *);
    for (int i = 0; i < self->ndim; i++)
        size[i] = i == dim ? k : self->size[i];
    return two(m, meta_make(m, self->dtype, self->ndim, size, self->device),
               meta_make(m, DT_i64, self->ndim, size, self->device), out);
}

static bool holds_nothing(const TensorMeta *t) {
    for (int i = 0; i < t->ndim; i++)
        if (expr_int_or(t->size[i], 1) == 0)
            return true;
    return false;
}

bool meta_softmax(MetaCtx *m, const Op *op, const Value *args, Value *out) {
    const TensorMeta *self = meta_self(m, op, args);
    int dim;
    if (!self || !meta_dim(m, meta_arg_int(op, args, "dim", -1), self->ndim, &dim))
        return false;
    DType d = self->dtype;
    if (op_arg_index(op, "half_to_float") >= 0)
        d = meta_arg_bool(op, args, "half_to_float") ? DT_f32 : d;
    d = meta_arg_dtype(op, args, d);
    if (integral(d) && !holds_nothing(self))
        return meta_fail(
            m, "NotImplementedError: \"%s_lastdim_kernel_impl\" not implemented for '%s'",
            strstr(op->name, "log") ? "log_softmax" : "softmax", dtype_info[d].scalar_name);
    return meta_out(out, meta_like(m, self, d, MF_contiguous));
}

// Gradient of a softmax: dtype of the input if that is named.
bool meta_softmax_backward(MetaCtx *m, const Op *op, const Value *args, Value *out) {
    const TensorMeta *grad = meta_self(m, op, args);
    const Value *v = meta_arg(op, args, "input_dtype");
    // Half's gradient may come in float32.
    bool half = grad && grad->dtype == DT_f32 && v->kind == VAL_dtype && v->dtype == DT_f16;
    return grad && meta_out(out, meta_like(m, grad, half ? DT_f16 : grad->dtype, MF_contiguous));
}

bool meta_histc(MetaCtx *m, const Op *op, const Value *args, Value *out) {
    const TensorMeta *self = meta_self(m, op, args);
    const Expr *bins;
    if (!self || !val_as_expr(m->sym, meta_arg(op, args, "bins"), &bins))
        return false;
    return meta_out_new(m, out, self->dtype, 1, &bins, self->device);
}

// histogram: counts and the edges between bins.
bool meta_histogram(MetaCtx *m, const Op *op, const Value *args, Value *out) {
    const TensorMeta *self = meta_self(m, op, args), *edges = meta_arg_tensor(op, args, "bins");
    const Expr *n;
    if (!self)
        return false;
    if (edges)
        n = edges->ndim ? sym_add_int(m->sym, edges->size[0], -1) : meta_int(m, 0);
    else if (!val_as_expr(m->sym, meta_arg(op, args, "bins"), &n))
        return false;
    const Expr *n_edges = sym_add_int(m->sym, n, 1);
    return two(m, meta_make(m, self->dtype, 1, &n, self->device),
               meta_make(m, self->dtype, 1, &n_edges, self->device), out);
}

// searchsorted, bucketize: an index for each value searched.
bool meta_searchsorted(MetaCtx *m, const Op *op, const Value *args, Value *out) {
    DType d = meta_arg_bool(op, args, "out_int32") ? DT_i32 : DT_i64;
    bool sorted_first = op_arg_index(op, "sorted_sequence") == 0;
    const Value *searched = &args[sorted_first ? 1 : 0], *sequence = &args[sorted_first ? 0 : 1];
    if (searched->kind == VAL_tensor)
        return meta_out(out, meta_like(m, searched->tensor, d, MF_contiguous));
    if (sequence->kind != VAL_tensor)
        return false;
    return meta_out_new(m, out, d, 0, NULL, sequence->tensor->device);
}

// prims.prepare_softmax_online: maximum and sum of exponentials, the dimension kept.
bool meta_softmax_online(MetaCtx *m, const Op *op, const Value *args, Value *out) {
    const TensorMeta *self = meta_self(m, op, args);
    int dim;
    if (!self || !meta_dim(m, meta_arg_int(op, args, "dim", -1), self->ndim, &dim))
        return false;
    const TensorMeta *r = reduced(m, self, self->dtype, 1ull << dim, true);
    return two(m, r, meta_copy(m->arena, r), out);
}

bool meta_equal_call(MetaCtx *m, const Op *op, const Value *args, Value *out) {
    (void)op;
    (void)args;
    *out = val_sym(sym_cmp(m->sym, SYM_eq, sym_create_unbacked(m->sym), sym_int(m->sym, 1)));
    return true;
}

bool meta_trace(MetaCtx *m, const Op *op, const Value *args, Value *out) {
    const TensorMeta *self = meta_self(m, op, args);
    if (self && self->ndim != 2)
        return meta_fail(m, "RuntimeError: trace: expected a matrix, but got tensor with dim %d",
                         self->ndim);
    return self && meta_out_new(m, out, integral(self->dtype) ? DT_i64 : self->dtype, 0, NULL,
                                self->device);
}

// diff: n times shorter by one along a dimension, prepend and append counted.
bool meta_diff(MetaCtx *m, const Op *op, const Value *args, Value *out) {
    const TensorMeta *self = meta_self(m, op, args);
    int dim;
    if (!self || !meta_dim(m, meta_arg_int(op, args, "dim", -1), self->ndim, &dim))
        return false;
    if (self->ndim == 0)
        return meta_fail(m, "RuntimeError: diff expects input to be at least one-dimensional");
    int64_t times = meta_arg_int(op, args, "n", 1);
    if (times < 0)
        return meta_fail(m, "RuntimeError: order must be non-negative but got %lld",
                         (long long)times);
    const TensorMeta *more[2] = {meta_arg_tensor(op, args, "prepend"),
                                 meta_arg_tensor(op, args, "append")};
    TensorMeta *t = meta_copy(m->arena, self);
    memcpy(t->size = ARENA_ARRAY(m->arena, t->ndim + 1, const Expr *), self->size,
           (size_t)t->ndim * sizeof *t->size);
    for (int i = 0; i < 2 && times; i++) {
        if (!more[i])
            continue;
        t->dtype = dtype_promote(t->dtype, more[i]->dtype); // as cat does
        if (more[i]->ndim != self->ndim)
            return meta_fail(m,
                             "RuntimeError: diff expects prepend or append to be the same "
                             "dimension as input: %d against %d",
                             more[i]->ndim, self->ndim);
        for (int d = 0; d < self->ndim; d++)
            if (d != dim && !meta_eq(m, more[i]->size[d], self->size[d]))
                return meta_fail(m, "RuntimeError: diff expects the shape of tensor to prepend or "
                                    "append to match that of input except along the differencing "
                                    "dimension");
        t->size[dim] = sym_add(m->sym, t->size[dim], more[i]->size[dim]);
    }
    if (!times)
        return meta_out(out, meta_like(m, self, self->dtype, MF_preserve));
    if (more[0] || more[1])
        meta_set_contiguous(m, t);
    // Every time two windows are subtracted; the sizes of a second time are all that it adds.
    t->size[dim] = sym_add_int(m->sym, t->size[dim], -times);
    if (expr_int_or(t->size[dim], 1) < 0)
        t->size[dim] = meta_int(m, 0);
    const TensorMeta *windows[2] = {t, t};
    return meta_out(out, meta_iterate(m, t->dtype, windows, 2, false));
}

bool meta_bincount_hole(MetaCtx *m, const Op *op, const Value *args, Value *out) {
    const TensorMeta *self = meta_self(m, op, args),
                     *weights = meta_arg_tensor(op, args, "weights");
    if (!self)
        return false;
    const Expr *size = sym_create_unbacked(m->sym);
    DType d = weights ? (weights->dtype == DT_f32 ? DT_f32 : DT_f64) : DT_i64;
    return meta_out_new(m, out, d, 1, &size, self->device);
}

// dist: one real number.
bool meta_dist(MetaCtx *m, const Op *op, const Value *args, Value *out) {
    const TensorMeta *self = meta_self(m, op, args);
    return self &&
           meta_out_new(m, out, meta_real_of(ops_result_type(args, 2)), 0, NULL, self->device);
}

// Reductions of prims: dims are always named, the dtype is kept unless output_dtype says otherwise.
bool meta_prim_reduce(MetaCtx *m, const Op *op, const Value *args, Value *out) {
    const TensorMeta *self = meta_self(m, op, args);
    const Value *v = meta_arg(op, args, "output_dtype");
    return self && reduce(m, op, args, v->kind == VAL_dtype ? v->dtype : self->dtype, out);
}

// Bins of a histogram over several dimensions: their counts by number or by edges, or the edges
// themselves.
bool meta_histogramdd(MetaCtx *m, const Op *op, const Value *args, Value *out) {
    const TensorMeta *self = meta_self(m, op, args);
    const Value *bins = meta_arg(op, args, "bins");
    if (!self || bins->kind != VAL_list || bins->n > META_DIMS)
        return false;
    const Expr *size[META_DIMS];
    for (int i = 0; i < bins->n; i++) {
        if (bins->at[i].kind == VAL_tensor && bins->at[i].tensor->ndim)
            size[i] = sym_add_int(m->sym, bins->at[i].tensor->size[0], -1);
        else if (!val_as_expr(m->sym, &bins->at[i], &size[i]))
            return false;
    }
    if (op->returns[0].type == AT_tensor)
        return meta_out_new(m, out, self->dtype, bins->n, size, self->device);
    *out = val_list(m->arena, VAL_list, bins->n);
    for (int i = 0; i < bins->n; i++) {
        const Expr *edges = sym_add_int(m->sym, size[i], 1);
        out->at[i] = val_tensor(meta_make(m, self->dtype, 1, &edges, self->device));
    }
    return true;
}

// segment_reduce: the axis becomes one element a segment.
bool meta_segment_reduce(MetaCtx *m, const Op *op, const Value *args, Value *out) {
    const TensorMeta *data = meta_self(m, op, args),
                     *lengths = meta_arg_tensor(op, args, "lengths");
    const TensorMeta *offsets = meta_arg_tensor(op, args, "offsets"),
                     *by = lengths ? lengths : offsets;
    int axis;
    if (!data || !by || !meta_dim(m, meta_arg_int(op, args, "axis", 0), data->ndim, &axis))
        return false;
    if (axis != by->ndim - 1 || axis >= data->ndim)
        return meta_fail(m,
                         "RuntimeError: segment_reduce: axis %d is none of the %d dimensions of "
                         "data and the %d of lengths",
                         axis, data->ndim, by->ndim);
    TensorMeta *t = meta_make(m, data->dtype, data->ndim, data->size, data->device);
    t->size[axis] = lengths ? by->size[axis] : sym_add_int(m->sym, by->size[axis], -1);
    if (expr_int_or(t->size[axis], 0) < 0)
        t->size[axis] = meta_int(m, 0);
    meta_set_contiguous(m, t);
    return meta_out(out, t);
}

bool meta_segment_backward(MetaCtx *m, const Op *op, const Value *args, Value *out) {
    const TensorMeta *grad = meta_self(m, op, args), *data = meta_arg_tensor(op, args, "data");
    return grad && data && meta_out_new(m, out, grad->dtype, data->ndim, data->size, data->device);
}

// quantile: one number a q, in front, unless q is a number.
bool meta_quantile(MetaCtx *m, const Op *op, const Value *args, Value *out) {
    const TensorMeta *self = meta_self(m, op, args), *q = meta_arg_tensor(op, args, "q");
    uint64_t mask;
    if (!self || !meta_dims(m, meta_arg(op, args, "dim"), self->ndim, false, &mask))
        return false;
    const TensorMeta *r = reduced(m, self, self->dtype, mask, meta_arg_bool(op, args, "keepdim"));
    if (!q || q->ndim == 0)
        return meta_out(out, r);
    // The quantiles of a row lie together in memory; their dimension is moved to the front.
    const Expr **size = ARENA_ARRAY(m->arena, r->ndim + 1, const Expr *);
    memcpy(size, r->size, (size_t)r->ndim * sizeof *size);
    size[r->ndim] = q->size[0];
    const TensorMeta *rows = meta_make(m, self->dtype, r->ndim + 1, size, self->device);
    TensorMeta *t = meta_window(m, rows, rows->ndim);
    for (int i = 0; i <= r->ndim; i++) {
        t->size[i] = rows->size[i == 0 ? r->ndim : i - 1];
        t->stride[i] = rows->stride[i == 0 ? r->ndim : i - 1];
    }
    return meta_out(out, t);
}

// _unique2, unique_consecutive, unique_dim: elements or slices of unknown number, where each went,
// how often.
bool meta_unique(MetaCtx *m, const Op *op, const Value *args, Value *out) {
    const TensorMeta *self = meta_self(m, op, args);
    const Expr *length = sym_create_unbacked(m->sym), *none = meta_int(m, 0);
    const Value *along = meta_arg(op, args, "dim");
    int dim = 0;
    if (!self || (along->kind != VAL_none &&
                  !meta_dim(m, meta_arg_int(op, args, "dim", 0), self->ndim, &dim)))
        return false;
    // The first dimension of a single one is no dimension to unique_consecutive.
    bool flat = !strcmp(op->name, "unique_consecutive") && self->ndim == 1 &&
                meta_arg_int(op, args, "dim", -1) == 0;
    bool whole = along->kind == VAL_none || flat;
    TensorMeta *t = whole ? meta_make(m, self->dtype, 1, &length, self->device)
                          : meta_make(m, self->dtype, self->ndim, self->size, self->device);
    if (!whole && self->ndim) {
        TensorMeta *front = meta_copy(m->arena, t); // slices lie one after the other
        for (int i = 0; i < t->ndim; i++)
            front->size[i] = i == 0 ? length : self->size[i <= dim ? i - 1 : i];
        meta_set_contiguous(m, front);
        t->size[dim] = length;
        for (int i = 0; i < t->ndim; i++)
            t->stride[i] = front->stride[i == dim ? 0 : i < dim ? i + 1 : i];
    }
    *out = meta_tuple(m, op->n_returns);
    out->at[0] = val_tensor(t);
    for (int i = 1; i < op->n_returns; i++) {
        bool inverse = i == 1,
             wanted =
                 !whole || meta_arg_bool(op, args, inverse ? "return_inverse" : "return_counts");
        const Expr *n = !wanted ? none : inverse && self->ndim ? self->size[dim] : length;
        out->at[i] = val_tensor(inverse && wanted && whole
                                    ? meta_make(m, DT_i64, self->ndim, self->size, self->device)
                                    : meta_make(m, DT_i64, 1, &n, self->device));
    }
    return true;
}
