// meta_index.c: gather, scatter, indexing by tensors, embeddings, masks.
#include "core/ops/meta.h"

#include <string.h>

#include "core/base/vec.h"

// An empty index may be of any dtype.
static bool index_dtype_ok(MetaCtx *m, const Op *op, const TensorMeta *index) {
    return index->dtype == DT_i64 || index->dtype == DT_i32 ||
           expr_is(meta_numel(m->sym, index), 0) ||
           meta_fail(m, "RuntimeError: %s(): Expected dtype int32/int64 for index, got %s",
                     op->name, dtype_info[index->dtype].torch_name);
}

// True for an op of `self`, `dim` and `index` with a dimension and numbers that can be used.
static bool indexed(MetaCtx *m, const Op *op, const Value *args, const TensorMeta *self,
                    const TensorMeta *index, int *dim) {
    return self && index && meta_dim(m, meta_arg_int(op, args, "dim", 0), self->ndim, dim) &&
           index_dtype_ok(m, op, index);
}

bool meta_gather(MetaCtx *m, const Op *op, const Value *args, Value *out) {
    const TensorMeta *self = meta_self(m, op, args), *index = meta_arg_tensor(op, args, "index");
    int dim;
    if (!indexed(m, op, args, self, index, &dim))
        return false;
    int a = self->ndim ? self->ndim : 1, b = index->ndim ? index->ndim : 1;
    if (a != b && !expr_is(meta_numel(m->sym, index), 0))
        return meta_fail(
            m,
            "RuntimeError: Index tensor must have the same number of dimensions as input tensor");
    return meta_out_new(m, out, self->dtype, index->ndim, index->size, self->device);
}

bool meta_scatter(MetaCtx *m, const Op *op, const Value *args, Value *out) {
    const TensorMeta *self = meta_self(m, op, args), *index = meta_arg_tensor(op, args, "index");
    const TensorMeta *src = meta_arg_tensor(op, args, "src");
    int dim;
    if (!indexed(m, op, args, self, index, &dim))
        return false;
    if (src && src->dtype != self->dtype)
        return meta_fail(m,
                         "RuntimeError: scatter(): Expected self.dtype to be equal to src.dtype");
    return meta_out(out, meta_like(m, self, self->dtype, MF_contiguous));
}

bool meta_index_select(MetaCtx *m, const Op *op, const Value *args, Value *out) {
    const TensorMeta *self = meta_self(m, op, args), *index = meta_arg_tensor(op, args, "index");
    int dim;
    if (!indexed(m, op, args, self, index, &dim))
        return false;
    if (index->ndim > 1)
        return meta_fail(
            m, "IndexError: index_select(): Index is supposed to be a vector, but got dim: %d",
            index->ndim);
    TensorMeta *t = meta_make(m, self->dtype, self->ndim, self->size, self->device);
    if (self->ndim)
        t->size[dim] = index->ndim ? index->size[0] : meta_int(m, 1);
    meta_set_contiguous(m, t);
    return meta_out(out, t);
}

typedef struct Advanced {
    const TensorMeta *index[META_DIMS]; // by dimension of self; NULL: whole dimension
    int n;                              // dimensions of self that are covered
} Advanced;

// Index tensors by dimension; a mask stands for as many as it has dimensions, all of the unknown
// length of its true elements.
static bool read_indices(MetaCtx *m, const TensorMeta *self, const Value *list, Advanced *a) {
    *a = (Advanced){.n = 0};
    for (int i = 0; i < list->n; i++) {
        const TensorMeta *t = list->at[i].kind == VAL_tensor ? list->at[i].tensor : NULL;
        bool mask = t && (t->dtype == DT_b8 || t->dtype == DT_u8);
        int covers = mask ? t->ndim : 1;
        if (a->n + covers > self->ndim)
            return meta_fail(m, "IndexError: too many indices for tensor of dimension %d",
                             self->ndim);
        if (t && !mask && t->dtype != DT_i64 && t->dtype != DT_i32 && t->dtype != DT_i16 &&
            t->dtype != DT_i8)
            return meta_fail(
                m, "IndexError: tensors used as indices must be long, int, byte or bool tensors");
        if (!mask) {
            a->index[a->n++] = t;
            continue;
        }
        const Expr *length = sym_create_unbacked(m->sym);
        for (int k = 0; k < t->ndim; k++) {
            if (!meta_eq(m, t->size[k], self->size[a->n]))
                return meta_fail(m,
                                 "IndexError: The shape of the mask %s at index %d does not match "
                                 "the shape of the "
                                 "indexed tensor %s at index %d",
                                 meta_sizes_text(m, t->size, t->ndim), k,
                                 meta_sizes_text(m, self->size, self->ndim), a->n);
            a->index[a->n++] = meta_make(m, DT_i64, 1, &length, t->device);
        }
    }
    return true;
}

// Where the broadcast index goes: in place of adjacent indexed dimensions, else in front.
static bool adjacent(const Advanced *a, int *first, int *count) {
    int last = -1;
    *first = -1;
    *count = 0;
    for (int i = 0; i < a->n; i++)
        if (a->index[i]) {
            *first = *first < 0 ? i : *first;
            last = i;
            ++*count;
        }
    return *count == 0 || last - *first + 1 == *count;
}

// The result lies as TensorIterator would lay it, over self with its indexed dimensions replaced by
// dimensions of stride 0, and the indices.
bool meta_index_tensor(MetaCtx *m, const Op *op, const Value *args, Value *out) {
    const TensorMeta *self = meta_self(m, op, args), *operand[META_DIMS + 1];
    Advanced a;
    int first, count, n_index = 0, n_broad, n = 0;
    if (!self || !read_indices(m, self, meta_arg(op, args, "indices"), &a))
        return false;
    bool in_place = adjacent(&a, &first, &count);
    for (int i = 0; i < a.n; i++)
        if (a.index[i])
            operand[1 + n_index++] = a.index[i];
    const Expr **broad = ops_broadcast(m, operand + 1, n_index, &n_broad);
    if (!broad)
        return false;
    if (self->ndim - count + n_broad > META_DIMS)
        return meta_fail(m, "IndexError: index() yields more than %d dimensions", META_DIMS);
    TensorMeta *src = meta_window(m, self, self->ndim - count + n_broad);
    int at = in_place ? first : 0, behind = 0;
    for (int i = 0; i <= self->ndim; i++) {
        if (n == at && behind == 0 && (in_place ? i == first : i == 0))
            for (; behind < n_broad; behind++, n++) {
                src->size[n] = broad[behind];
                src->stride[n] = meta_int(m, 0);
            }
        if (i < self->ndim && !(i < a.n && a.index[i])) {
            src->size[n] = self->size[i];
            src->stride[n++] = self->stride[i];
        }
    }
    operand[0] = src;
    int trailing = src->ndim - at - n_broad;
    for (int k = 1; k <= n_index; k++) {
        TensorMeta *t = meta_window(m, operand[k], operand[k]->ndim + trailing);
        for (int i = 0; i < t->ndim; i++) {
            bool own = i < operand[k]->ndim;
            t->size[i] = own ? operand[k]->size[i] : meta_int(m, 1);
            t->stride[i] = own ? operand[k]->stride[i] : meta_int(m, 0);
        }
        operand[k] = t;
    }
    return meta_out(out, meta_iterate(m, self->dtype, operand, 1 + n_index, false));
}

// index_put and masked forms: like self, its layout preserved.
bool meta_index_put(MetaCtx *m, const Op *op, const Value *args, Value *out) {
    const TensorMeta *self = meta_self(m, op, args);
    Advanced a;
    return self && read_indices(m, self, meta_arg(op, args, "indices"), &a) &&
           meta_out(out, meta_like(m, self, self->dtype, MF_preserve));
}

// _unsafe_masked_index: broadcast of the indices.
bool meta_masked_index(MetaCtx *m, const Op *op, const Value *args, Value *out) {
    Value plain[2] = {args[0], *meta_arg(op, args, "indices")};
    return meta_index_tensor(m, op_at(OP_aten_index_Tensor), plain, out);
}

// What is written has the sizes of the window.
static bool fits_window(MetaCtx *m, const Op *op, const Value *args) {
    const TensorMeta *src = args[1].kind == VAL_tensor ? args[1].tensor : NULL;
    const char *name = arena_strndup(m->arena, op->name, strlen(op->name) - strlen("_scatter"));
    const Op *view = op_find_overload(op->ns, name, strcmp(name, "select") ? "Tensor" : "int");
    Value window, own[8];
    if (!src || !view || view->n_args > COUNT(own) || view->n_args + 1 != op->n_args)
        return true;
    own[0] = args[0];
    for (int i = 1; i < view->n_args; i++)
        own[i] = args[i + 1];
    if (!op_meta(m, view, own, &window))
        return false;
    const TensorMeta *w = window.kind == VAL_tensor ? window.tensor : src;
    bool same = w->ndim == src->ndim;
    for (int i = 0; same && i < w->ndim; i++)
        same = meta_eq(m, w->size[i], src->size[i]);
    return same || meta_fail(m,
                             "RuntimeError: expected src to have a size equal to the slice of "
                             "self. src size = %s, slice size = %s",
                             meta_sizes_text(m, src->size, src->ndim),
                             meta_sizes_text(m, w->size, w->ndim));
}

// select_scatter and its kin: self with a window overwritten, strides kept.
bool meta_window_scatter(MetaCtx *m, const Op *op, const Value *args, Value *out) {
    const TensorMeta *self = meta_self(m, op, args);
    if (!self || !fits_window(m, op, args))
        return false;
    for (int i = 0; i < self->ndim; i++)
        if (expr_is(self->stride[i], 0) && !expr_is(self->size[i], 1))
            return meta_out(out, meta_like(m, self, self->dtype, MF_preserve));
    TensorMeta *t = meta_copy(m->arena, self);
    t->offset = meta_int(m, 0);
    t->requires_grad = false;
    return meta_out(out, t);
}

bool meta_embedding(MetaCtx *m, const Op *op, const Value *args, Value *out) {
    const TensorMeta *weight = meta_arg_tensor(op, args, "weight"),
                     *index = meta_arg_tensor(op, args, "indices");
    if (!weight || !index || !index_dtype_ok(m, op, index))
        return false;
    if (weight->ndim != 2)
        return meta_fail(m, "RuntimeError: 'weight' must be 2-D");
    const Expr **size = ARENA_ARRAY(m->arena, index->ndim + 1, const Expr *);
    memcpy(size, index->size, (size_t)index->ndim * sizeof *size);
    size[index->ndim] = weight->size[1];
    return meta_out_new(m, out, weight->dtype, index->ndim + 1, size, weight->device);
}

bool meta_embedding_backward(MetaCtx *m, const Op *op, const Value *args, Value *out) {
    const TensorMeta *grad = meta_self(m, op, args);
    const Expr *size[2];
    if (!grad || !grad->ndim || !val_as_expr(m->sym, meta_arg(op, args, "num_weights"), &size[0]))
        return false;
    size[1] = grad->size[grad->ndim - 1];
    return meta_out_new(m, out, grad->dtype, 2, size, grad->device);
}

// Bags: the result, and three tensors that the backward needs, as the CPU kernel makes them.
bool meta_embedding_bag(MetaCtx *m, const Op *op, const Value *args, Value *out) {
    const TensorMeta *weight = meta_arg_tensor(op, args, "weight"),
                     *index = meta_arg_tensor(op, args, "indices");
    const TensorMeta *offsets = meta_arg_tensor(op, args, "offsets");
    enum { SUM, MEAN, MAX };
    int64_t mode = meta_arg_int(op, args, "mode", SUM);
    if (!weight || !index || !offsets || weight->ndim != 2 || offsets->ndim != 1)
        return weight &&
               meta_fail(m, "RuntimeError: embedding_bag: expected a 2-D weight and 1-D offsets");
    const Expr *bags = offsets->size[0], *zero = meta_int(m, 0);
    if (meta_arg_bool(op, args, "include_last_offset"))
        bags = sym_add_int(m->sym, bags, -1);
    const Expr *size[2] = {bags, weight->size[1]};
    const TensorMeta *scale = meta_arg_tensor(op, args, "per_sample_weights");
    bool fast = mode == SUM && meta_arg_int(op, args, "padding_idx", -1) < 0 &&
                expr_is(weight->stride[1], 1) &&
                (weight->dtype == DT_f32 || dtype_is_low(weight->dtype)) &&
                (!scale || (scale->dtype == weight->dtype && expr_is(scale->stride[0], 1)));
    const Expr *offset2bag = fast ? zero : index->size[0];
    *out = meta_tuple(m, 4);
    out->at[0] = val_tensor(meta_make(m, weight->dtype, 2, size, weight->device));
    out->at[1] = val_tensor(meta_make(m, index->dtype, 1, &offset2bag, index->device));
    out->at[2] = val_tensor(meta_make(m, offsets->dtype, 1, &bags, index->device));
    out->at[3] = val_tensor(mode == MAX ? meta_make(m, offsets->dtype, 2, size, index->device)
                                        : meta_make(m, offsets->dtype, 1, &bags, index->device));
    return true;
}

// The gradient of the weights that each index has in its bag.
bool meta_bag_weights_backward(MetaCtx *m, const Op *op, const Value *args, Value *out) {
    const TensorMeta *grad = meta_self(m, op, args), *index = meta_arg_tensor(op, args, "indices");
    if (grad && index && index->ndim != 1)
        return meta_fail(m, "RuntimeError: %s: indices of 1 dimension expected, given %d", op->name,
                         index->ndim);
    return grad && index &&
           meta_out_new(m, out, grad->dtype, 1, (const Expr *const *)index->size, grad->device);
}

// take: the index's shape.
bool meta_take(MetaCtx *m, const Op *op, const Value *args, Value *out) {
    const TensorMeta *self = meta_self(m, op, args), *index = meta_arg_tensor(op, args, "index");
    return self && index && index_dtype_ok(m, op, index) &&
           meta_out_new(m, out, self->dtype, index->ndim, index->size, self->device);
}

// take_along_dim: self and index broadcast except along dim.
bool meta_take_along_dim(MetaCtx *m, const Op *op, const Value *args, Value *out) {
    const TensorMeta *self = meta_self(m, op, args), *index = meta_arg_tensor(op, args, "indices");
    int dim, n;
    if (!self || !index)
        return false;
    if (meta_arg(op, args, "dim")->kind == VAL_none) {
        const Expr *size = meta_numel(m->sym, index);
        return meta_out_new(m, out, self->dtype, 1, &size, self->device);
    }
    if (!meta_dim(m, meta_arg_int(op, args, "dim", 0), self->ndim, &dim) ||
        self->ndim != index->ndim)
        return meta_fail(m, "RuntimeError: take_along_dim: input and indices should have the same "
                            "number of dimensions");
    TensorMeta *cut = meta_copy(m->arena, self);
    if (self->ndim)
        cut->size[dim] = index->size[dim];
    const TensorMeta *both[2] = {cut, index};
    const Expr **size = ops_broadcast(m, both, 2, &n);
    return size && meta_out_new(m, out, self->dtype, n, size, self->device);
}

static const Expr *unknown_length(MetaCtx *m) {
    return sym_create_unbacked(m->sym);
}

bool meta_nonzero(MetaCtx *m, const Op *op, const Value *args, Value *out) {
    const TensorMeta *self = meta_self(m, op, args);
    if (!self)
        return false;
    const Expr *size[2] = {unknown_length(m), meta_int(m, self->ndim)};
    if (op_arg_index(op, "size") >= 0 && !val_as_expr(m->sym, meta_arg(op, args, "size"), &size[0]))
        return false;
    TensorMeta *t = meta_make(m, DT_i64, 2, size, self->device);
    if (op_arg_index(op, "size") < 0) {
        t->stride[0] = meta_int(m, 1);
        t->stride[1] = size[0];
    }
    return meta_out(out, t);
}

bool meta_masked_select(MetaCtx *m, const Op *op, const Value *args, Value *out) {
    const TensorMeta *self = meta_self(m, op, args);
    const Expr *size = unknown_length(m);
    return self && meta_out_new(m, out, self->dtype, 1, &size, self->device);
}

bool meta_masked_scatter_backward(MetaCtx *m, const Op *op, const Value *args, Value *out) {
    const TensorMeta *grad = meta_self(m, op, args);
    int n = 0;
    const Expr **size = grad ? meta_exprs(m, meta_arg(op, args, "sizes"), &n) : NULL;
    return size && meta_out_new(m, out, grad->dtype, n, size, grad->device);
}

// masked_fill, masked_scatter: broadcast of self and mask, in contiguous memory.
bool meta_masked_fill(MetaCtx *m, const Op *op, const Value *args, Value *out) {
    const TensorMeta *self = meta_self(m, op, args), *mask = meta_arg_tensor(op, args, "mask");
    if (!self || !mask)
        return false;
    if (mask->dtype != DT_b8)
        return meta_fail(m,
                         "RuntimeError: %s only supports boolean masks, but got mask with dtype %s",
                         op->name, dtype_info[mask->dtype].torch_name);
    const TensorMeta *both[2] = {self, mask};
    int n;
    const Expr **size = ops_broadcast(m, both, 2, &n);
    return size && meta_out_new(m, out, self->dtype, n, size, self->device);
}

// isin: a truth value for each element searched.
bool meta_isin(MetaCtx *m, const Op *op, const Value *args, Value *out) {
    (void)op;
    if (args[0].kind != VAL_tensor)
        return meta_out_new(m, out, DT_b8, 0, NULL, (Device){DEV_cpu, -1});
    return meta_out(out, meta_like(m, args[0].tensor, DT_b8, MF_contiguous));
}

// A gradient put back into zeros of the input's sizes.
bool meta_window_backward(MetaCtx *m, const Op *op, const Value *args, Value *out) {
    const TensorMeta *grad = meta_self(m, op, args);
    int n;
    const Value *sizes =
        meta_arg(op, args, op_arg_index(op, "input_sizes") >= 0 ? "input_sizes" : "sizes");
    const Expr **size = grad ? meta_exprs(m, sizes, &n) : NULL;
    return size && meta_out_new(m, out, grad->dtype, n, size, grad->device);
}

bool meta_repeat_interleave(MetaCtx *m, const Op *op, const Value *args, Value *out) {
    const TensorMeta *self = meta_self(m, op, args);
    const Value *repeats = meta_arg(op, args, "repeats");
    const Expr *times, *given;
    if (!self)
        return false;
    bool known = val_as_expr(m->sym, meta_arg(op, args, "output_size"), &given);
    if (op_arg_index(op, "self") < 0) {
        const Expr *size = known ? given : unknown_length(m);
        return meta_out_new(m, out, self->dtype, 1, &size, self->device);
    }
    const Value *along = meta_arg(op, args, "dim");
    int dim = 0;
    TensorMeta *t = meta_make(m, self->dtype, self->ndim, self->size, self->device);
    if (along->kind == VAL_none) {
        const Expr *all = meta_numel(m->sym, self);
        t = meta_make(m, self->dtype, 1, &all, self->device);
    } else if (!meta_dim(m, meta_arg_int(op, args, "dim", 0), self->ndim, &dim)) {
        return false;
    }
    if (!t->ndim)
        return meta_fail(m, "RuntimeError: repeat_interleave needs at least one dimension");
    if (known)
        t->size[dim] = given;
    else if (val_as_expr(m->sym, repeats, &times))
        t->size[dim] = sym_mul(m->sym, t->size[dim], times);
    else
        t->size[dim] = unknown_length(m);
    meta_set_contiguous(m, t);
    return meta_out(out, t);
}

bool meta_one_hot(MetaCtx *m, const Op *op, const Value *args, Value *out) {
    const TensorMeta *self = meta_self(m, op, args);
    const Expr *classes;
    if (!self || !val_as_expr(m->sym, meta_arg(op, args, "num_classes"), &classes))
        return false;
    if (expr_is(classes, -1))
        classes = unknown_length(m);
    const Expr **size = ARENA_ARRAY(m->arena, self->ndim + 1, const Expr *);
    memcpy(size, self->size, (size_t)self->ndim * sizeof *size);
    size[self->ndim] = classes;
    return meta_out_new(m, out, DT_i64, self->ndim + 1, size, self->device);
}

// _ctc_loss -> (loss, logarithms of all ways so far): the longest target, with blanks around its
// letters, is known of a list alone.
bool meta_ctc(MetaCtx *m, const Op *op, const Value *args, Value *out) {
    const TensorMeta *x = meta_self(m, op, args);
    const Value *v = meta_arg(op, args, "target_lengths");
    int64_t longest = 0, len;
    if (!x || x->ndim != 3)
        return x && meta_fail(m,
                              "RuntimeError: Expected 3-dimensional tensor, but got "
                              "%d-dimensional tensor for argument #1 'log_probs' (while "
                              "checking arguments for ctc_loss_allocate_outputs)",
                              x->ndim);
    bool known = v->kind == VAL_list || v->kind == VAL_tuple;
    for (int i = 0; known && i < v->n; i++) {
        known = val_as_int(&v->at[i], &len) && len < INT64_MAX / 2;
        longest = known && len > longest ? len : longest;
    }
    const Expr *size[3] = {x->size[1], x->size[0],
                           known ? meta_int(m, 2 * longest + 1) : unknown_length(m)};
    *out = meta_tuple(m, 2);
    out->at[0] = val_tensor(meta_make(m, x->dtype, 1, size, x->device));
    out->at[1] = val_tensor(meta_make(m, x->dtype, 3, size, x->device));
    return true;
}

bool meta_ctc_backward(MetaCtx *m, const Op *op, const Value *args, Value *out) {
    const TensorMeta *x = meta_arg_tensor(op, args, "log_probs");
    return x && meta_out(out, meta_like(m, x, x->dtype, MF_contiguous));
}

bool meta_ctc_loss(MetaCtx *m, const Op *op, const Value *args, Value *out) {
    const TensorMeta *x = meta_self(m, op, args);
    bool each = meta_arg_int(op, args, "reduction", 1) == 0 && x && x->ndim == 3;
    return x && meta_out_new(m, out, x->dtype, each, each ? &x->size[1] : NULL, x->device);
}
