// meta_split.c: one tensor into many and many into one: split, chunk, unbind, cat, stack and their
// kin.
#include "core/ops/meta.h"

#include <string.h>

// The part [start, start + length) of a dimension; fresh memory if the operator copies.
static TensorMeta *part(MetaCtx *m, const Op *op, const TensorMeta *self, int dim,
                        const Expr *start, const Expr *length) {
    TensorMeta *t = meta_copy(m->arena, self);
    t->requires_grad = false;
    t->size[dim] = length;
    t->offset = sym_add(m->sym, t->offset ? t->offset : meta_int(m, 0),
                        sym_mul(m->sym, start, self->stride[dim]));
    if (str_ends(op->name, "_copy")) {
        meta_set_contiguous(m, t);
        t->offset = meta_int(m, 0);
    }
    return t;
}

static bool split_dim(MetaCtx *m, const Op *op, const Value *args, const TensorMeta **self,
                      int *dim) {
    *self = meta_self(m, op, args);
    if (!*self || !meta_dim(m, meta_arg_int(op, args, "dim", 0), (*self)->ndim, dim))
        return false;
    if ((*self)->ndim == 0)
        return meta_fail(m, "RuntimeError: split expects at least a 1-dimensional tensor");
    return true;
}

// A size that must be a number now: pieces are counted by it.
static bool number(MetaCtx *m, const Expr *e, int64_t *v) {
    return sym_guard_int(m->sym, e, m->stage, "the number of pieces depends on it", v) ||
           meta_fail(m, "RuntimeError: cannot split by %s, whose value is unknown",
                     sym_str(m->arena, e));
}

enum { PIECES = 1 << 16 }; // more pieces than this are refused

static bool pieces_of(MetaCtx *m, const Op *op, const TensorMeta *self, int dim, int64_t size,
                      Value *out) {
    int64_t total;
    if (size < 0)
        return meta_fail(
            m, "RuntimeError: split expects split_size be non-negative, but got split_size=%lld",
            (long long)size);
    if (!number(m, self->size[dim], &total))
        return false;
    if (size == 0 && total != 0)
        return meta_fail(m,
                         "RuntimeError: split_size can only be 0 if dimension size is 0, but got "
                         "dimension size of "
                         "%lld",
                         (long long)total);
    int64_t n = size == 0 ? 1 : (total + size - 1) / size;
    n = n < 1 ? 1 : n;
    if (n > PIECES)
        return meta_fail(m, "RuntimeError: split into %lld pieces, expected at most %d",
                         (long long)n, PIECES);
    *out = val_list(m->arena, VAL_tuple, (int)n);
    for (int64_t i = 0; i < n; i++) {
        int64_t len = i + 1 < n ? size : total - size * (n - 1);
        out->at[i] = val_tensor(part(m, op, self, dim, meta_int(m, i * size), meta_int(m, len)));
    }
    return true;
}

bool meta_split(MetaCtx *m, const Op *op, const Value *args, Value *out) {
    const TensorMeta *self;
    int dim;
    int64_t size;
    const Expr *e;
    if (args[1].kind == VAL_list || args[1].kind == VAL_tuple)
        return meta_split_sizes(m, op, args, out);
    return split_dim(m, op, args, &self, &dim) && val_as_expr(m->sym, &args[1], &e) &&
           number(m, e, &size) && pieces_of(m, op, self, dim, size, out);
}

bool meta_split_sizes(MetaCtx *m, const Op *op, const Value *args, Value *out) {
    const TensorMeta *self;
    int dim, n;
    if (!split_dim(m, op, args, &self, &dim))
        return false;
    const Expr **size = meta_exprs(m, &args[1], &n), *start = meta_int(m, 0);
    if (!size)
        return false;
    *out = val_list(m->arena, VAL_tuple, n);
    for (int i = 0; i < n; i++) {
        out->at[i] = val_tensor(part(m, op, self, dim, start, size[i]));
        start = sym_add(m->sym, start, size[i]);
    }
    if (meta_eq(m, start, self->size[dim]))
        return true;
    return meta_fail(m,
                     "RuntimeError: split_with_sizes expects split_sizes to sum exactly to %s "
                     "(input tensor's size "
                     "at dimension %d), but got split_sizes=%s",
                     sym_str(m->arena, self->size[dim]), dim, meta_sizes_text(m, size, n));
}

bool meta_chunk(MetaCtx *m, const Op *op, const Value *args, Value *out) {
    const TensorMeta *self;
    int dim;
    int64_t total, chunks = meta_arg_int(op, args, "chunks", 1);
    if (!split_dim(m, op, args, &self, &dim) || !number(m, self->size[dim], &total))
        return false;
    if (chunks <= 0)
        return meta_fail(m, "RuntimeError: chunk expects `chunks` to be greater than 0, got: %lld",
                         (long long)chunks);
    if (chunks > PIECES)
        return meta_fail(m, "RuntimeError: chunk into %lld pieces, expected at most %d",
                         (long long)chunks, PIECES);
    int64_t size = (total + chunks - 1) / chunks;
    if (size || total)
        return pieces_of(m, op, self, dim, size, out);
    *out = val_list(m->arena, VAL_tuple, (int)chunks);
    for (int i = 0; i < (int)chunks; i++)
        out->at[i] = val_tensor(part(m, op, self, dim, meta_int(m, 0), meta_int(m, 0)));
    return true;
}

// Into n parts as equal as can be (the first ones larger), or at given indices.
bool meta_tensor_split(MetaCtx *m, const Op *op, const Value *args, Value *out) {
    const TensorMeta *self = meta_self(m, op, args);
    int64_t total, n;
    int dim;
    // hsplit cuts columns (of a vector, its elements), vsplit rows, dsplit depth.
    int64_t at = op->name[0] == 'h'   ? (self && self->ndim == 1 ? 0 : 1)
                 : op->name[0] == 'd' ? 2
                                      : 0;
    if (!self || !meta_dim(m, meta_arg_int(op, args, "dim", at), self->ndim, &dim))
        return false;
    if (self->ndim == 0)
        return meta_fail(m,
                         "RuntimeError: %s expected at least a 1-dimensional tensor, but got a "
                         "tensor with 0 dims",
                         op->name);
    if (!number(m, self->size[dim], &total))
        return false;
    if (args[1].kind == VAL_list || args[1].kind == VAL_tuple) {
        *out = val_list(m->arena, VAL_tuple, args[1].n + 1);
        int64_t start = 0;
        for (int i = 0; i <= args[1].n; i++) {
            int64_t end = total;
            if (i < args[1].n && !val_as_int(&args[1].at[i], &end))
                return meta_fail(m, "TypeError: tensor_split: indices must be ints");
            end = end < 0 ? end + total : end;
            end = end < 0 ? 0 : end > total ? total : end;
            int64_t len = end > start ? end - start : 0;
            out->at[i] = val_tensor(part(m, op, self, dim, meta_int(m, start), meta_int(m, len)));
            start = end;
        }
        return true;
    }
    if (!val_as_int(&args[1], &n) || n <= 0 || n > PIECES)
        return meta_fail(m, "RuntimeError: number of sections must be larger than 0");
    *out = val_list(m->arena, VAL_tuple, (int)n);
    int64_t start = 0;
    for (int64_t i = 0; i < n; i++) {
        int64_t len = total / n + (i < total % n);
        out->at[i] = val_tensor(part(m, op, self, dim, meta_int(m, start), meta_int(m, len)));
        start += len;
    }
    return true;
}

bool meta_unbind(MetaCtx *m, const Op *op, const Value *args, Value *out) {
    const TensorMeta *self;
    int dim;
    int64_t n;
    if (!split_dim(m, op, args, &self, &dim) || !number(m, self->size[dim], &n))
        return false;
    if (n > PIECES)
        return meta_fail(m, "RuntimeError: unbind into %lld pieces, expected at most %d",
                         (long long)n, PIECES);
    *out = val_list(m->arena, VAL_tuple, (int)n);
    for (int k = 0; k < (int)n; k++) {
        TensorMeta *t = meta_window(m, self, self->ndim - 1);
        for (int i = 0, j = 0; i < self->ndim; i++)
            if (i != dim) {
                t->size[j] = self->size[i];
                t->stride[j++] = self->stride[i];
            }
        t->offset = sym_add(m->sym, t->offset, sym_mul_int(m->sym, self->stride[dim], k));
        if (str_ends(op->name, "_copy")) {
            meta_set_contiguous(m, t);
            t->offset = meta_int(m, 0);
        }
        out->at[k] = val_tensor(t);
    }
    return true;
}

// An empty vector may stand among tensors of any rank.
static bool is_skipped(const TensorMeta *t) {
    return t->ndim == 1 && expr_is(t->size[0], 0);
}

static MemoryFormat common_format(MetaCtx *m, const TensorMeta **t, int n) {
    MemoryFormat format = MF_preserve;
    for (int i = 0; i < n; i++) {
        MemoryFormat f = meta_suggest_format(m, t[i]);
        if (f == MF_contiguous || (format != MF_preserve && f != format))
            return MF_contiguous;
        format = f;
    }
    return format;
}

static bool cat(MetaCtx *m, const TensorMeta **t, int n, int64_t at, Value *out) {
    const TensorMeta *first = NULL;
    Value *values = ARENA_ARRAY(m->arena, n + 1, Value);
    for (int i = 0; i < n; i++) {
        if (!t[i] || t[i]->ndim == 0)
            return meta_fail(
                m, "RuntimeError: zero-dimensional tensor (at position %d) cannot be concatenated",
                i);
        values[i] = val_tensor(t[i]);
        if (!first && !is_skipped(t[i]))
            first = t[i];
    }
    if (!n)
        return meta_fail(m, "ValueError: torch.cat(): expected a non-empty list of Tensors");
    DType dtype = ops_result_type(values, n);
    if (!first)
        return meta_out_new(m, out, dtype, 1, t[0]->size, t[0]->device);
    int dim;
    if (!meta_dim(m, at, first->ndim, &dim))
        return false;
    TensorMeta *r = meta_make(m, dtype, first->ndim, first->size, first->device);
    r->size[dim] = meta_int(m, 0);
    for (int i = 0; i < n; i++) {
        if (is_skipped(t[i]))
            continue;
        if (t[i]->ndim != first->ndim)
            return meta_fail(
                m, "RuntimeError: Tensors must have same number of dimensions: got %d and %d",
                first->ndim, t[i]->ndim);
        for (int k = 0; k < first->ndim; k++)
            if (k != dim && !meta_eq(m, t[i]->size[k], first->size[k]))
                return meta_fail(m,
                                 "RuntimeError: Sizes of tensors must match except in dimension "
                                 "%d. Expected size "
                                 "%s but got size %s for tensor number %d in the list.",
                                 dim, sym_str(m->arena, first->size[k]),
                                 sym_str(m->arena, t[i]->size[k]), i);
        r->size[dim] = sym_add(m->sym, r->size[dim], t[i]->size[dim]);
    }
    meta_set_format(m, r, common_format(m, t, n));
    return meta_out(out, r);
}

bool meta_cat(MetaCtx *m, const Op *op, const Value *args, Value *out) {
    int n;
    const TensorMeta **t = meta_tensors(m, &args[0], &n);
    return t && cat(m, t, n, meta_arg_int(op, args, "dim", 0), out);
}

// A roll along one dimension is the cat of its two parts, of which one may be empty. Where nobody
// knows which, x stands for both.
static bool roll_once(MetaCtx *m, const TensorMeta *x, const Value *shift, int64_t at, Value *out) {
    int64_t by, size;
    int dim;
    if (!meta_dim(m, at, x->ndim, &dim))
        return false;
    if (x->ndim == 0)
        return meta_fail(m, "IndexError: Dimension specified as %d but tensor has no dimensions",
                         (int)at);
    TensorMeta *part[2] = {meta_copy(m->arena, x), meta_copy(m->arena, x)};
    if (val_as_int(shift, &by) && expr_int(x->size[dim], &size) && size > 0) {
        int64_t start = ((size - by % size) % size + size) % size;
        part[0]->size[dim] = meta_int(m, size - start);
        part[1]->size[dim] = meta_int(m, start);
    }
    TensorMeta *r = meta_make(m, x->dtype, x->ndim, x->size, x->device);
    meta_set_format(m, r, common_format(m, (const TensorMeta *[]){part[0], part[1]}, 2));
    return meta_out(out, r);
}

bool meta_roll(MetaCtx *m, const Op *op, const Value *args, Value *out) {
    const TensorMeta *x = meta_self(m, op, args);
    const Value *shifts = &args[1], *dims = &args[2];
    int64_t dim;
    if (!x)
        return false;
    if (dims->n ? dims->n != shifts->n : shifts->n != 1)
        return meta_fail(m, "RuntimeError: %s",
                         shifts->n ? "shifts and dimensions must align" : "`shifts` required");
    bool empty = expr_is(meta_numel(m->sym, x), 0);
    if (empty || !dims->n)
        return meta_out(out, meta_like(m, x, x->dtype, dims->n == 1 ? MF_preserve : MF_contiguous));
    for (int i = 0; i < dims->n; i++) {
        if (!val_as_int(&dims->at[i], &dim) || !roll_once(m, x, &shifts->at[i], dim, out))
            return false;
        x = out->tensor;
    }
    return true;
}

static const TensorMeta *unsqueezed(MetaCtx *m, const TensorMeta *t, int dim) {
    TensorMeta *u = meta_window(m, t, t->ndim + 1);
    for (int i = 0; i <= t->ndim; i++) {
        u->size[i] = i == dim ? meta_int(m, 1) : t->size[i - (i > dim)];
        u->stride[i] = i != dim        ? t->stride[i - (i > dim)]
                       : dim < t->ndim ? sym_mul(m->sym, t->size[dim], t->stride[dim])
                                       : meta_int(m, 1);
    }
    return u;
}

// Sizes that only a run tells (of masked_select, nonzero) are taken to agree; the run checks it.
static bool may_be_equal(MetaCtx *m, const Expr *a, const Expr *b, bool *unknown) {
    bool now = false;
    sym_guard(m->sym, sym_cmp(m->sym, SYM_eq, a, b), m->stage, "sizes must agree", &now);
    *unknown = *unknown || now;
    return now;
}

bool meta_stack(MetaCtx *m, const Op *op, const Value *args, Value *out) {
    int n, dim;
    const TensorMeta **t = meta_tensors(m, &args[0], &n);
    if (!t)
        return false;
    if (!n)
        return meta_fail(m, "RuntimeError: stack expects a non-empty TensorList");
    if (!meta_dim(m, meta_arg_int(op, args, "dim", 0), t[0]->ndim + 1, &dim))
        return false;
    for (int i = 0; i < n; i++) {
        bool same = t[i]->ndim == t[0]->ndim, unknown = false;
        for (int k = 0; same && k < t[0]->ndim; k++)
            same = meta_eq(m, t[i]->size[k], t[0]->size[k]) ||
                   may_be_equal(m, t[i]->size[k], t[0]->size[k], &unknown);
        if (unknown && t[i]->dtype == t[0]->dtype)
            t[i] = t[0];
        if (!same)
            return meta_fail(m,
                             "RuntimeError: stack expects each tensor to be equal size, but got %s "
                             "at entry 0 and "
                             "%s at entry %d",
                             meta_sizes_text(m, t[0]->size, t[0]->ndim),
                             meta_sizes_text(m, t[i]->size, t[i]->ndim), i);
    }
    // Along a dimension that is there it is a cat whose dimension is taken apart.
    Value whole = {0};
    bool viewed = op->id == OP_aten_stack_default && dim < t[0]->ndim &&
                  !expr_is(sym_product(m->sym, t[0]->size, t[0]->ndim), 0);
    if (viewed && !cat(m, t, n, dim, &whole))
        return false;
    for (int i = 0; i < n; i++)
        t[i] = unsqueezed(m, t[i], dim);
    if (!cat(m, t, n, dim, out))
        return false;
    const TensorMeta *c = viewed ? whole.tensor : NULL;
    for (int i = 0; viewed && i <= c->ndim; i++)
        out->tensor->stride[i] = i == dim ? sym_mul(m->sym, c->stride[dim], t[0]->size[dim + 1])
                                          : c->stride[i - (i > dim)];
    return true;
}

// hstack, vstack, dstack, column_stack, atleast_Nd: dimensions added first.
static const TensorMeta *at_least(MetaCtx *m, const TensorMeta *t, int rank, bool column) {
    if (rank == 1)
        return t->ndim ? t : unsqueezed(m, t, 0);
    if (rank == 2) {
        if (t->ndim == 0)
            t = unsqueezed(m, t, 0);
        return t->ndim == 1 ? unsqueezed(m, t, column ? 1 : 0) : t;
    }
    t = at_least(m, t, 2, false);
    return t->ndim == 2 ? unsqueezed(m, t, 2) : t;
}

bool meta_nd_stack(MetaCtx *m, const Op *op, const Value *args, Value *out) {
    int n;
    const TensorMeta **t = meta_tensors(m, &args[0], &n);
    if (!t)
        return false;
    bool column = op->name[0] == 'c', rows = op->name[0] == 'v' || op->name[0] == 'r',
         depth = op->name[0] == 'd';
    int64_t dim = rows ? 0 : depth ? 2 : 1;
    for (int i = 0; i < n; i++)
        t[i] = at_least(m, t[i], depth ? 3 : rows || column ? 2 : 1, column);
    if (!column && !rows && !depth && n && t[0]->ndim == 1)
        dim = 0;
    return cat(m, t, n, dim, out);
}

bool meta_atleast(MetaCtx *m, const Op *op, const Value *args, Value *out) {
    int n, rank = op->name[strlen("atleast_")] - '0';
    if (args[0].kind == VAL_tensor)
        return meta_out(out, at_least(m, args[0].tensor, rank, false));
    const TensorMeta **t = meta_tensors(m, &args[0], &n);
    if (!t)
        return false;
    *out = val_list(m->arena, VAL_tuple, n);
    for (int i = 0; i < n; i++)
        out->at[i] = val_tensor(at_least(m, t[i], rank, false));
    return true;
}

bool meta_broadcast_tensors(MetaCtx *m, const Op *op, const Value *args, Value *out) {
    int n, ndim;
    (void)op;
    const TensorMeta **t = meta_tensors(m, &args[0], &n);
    const Expr **size = t ? ops_broadcast(m, t, n, &ndim) : NULL;
    if (!size)
        return false;
    *out = val_list(m->arena, VAL_tuple, n);
    for (int i = 0; i < n; i++) {
        Value pair[3] = {val_tensor(t[i]), val_exprs(m->arena, size, ndim), val_bool(false)};
        if (!meta_expand(m, op_at(OP_aten_expand_default), pair, &out->at[i]))
            return false;
    }
    return true;
}

bool meta_meshgrid(MetaCtx *m, const Op *op, const Value *args, Value *out) {
    int n;
    const TensorMeta **t = meta_tensors(m, &args[0], &n);
    const Value *indexing = meta_arg(op, args, "indexing");
    bool xy = indexing->kind == VAL_str && strcmp(indexing->s, "xy") == 0 && n >= 2;
    if (!t)
        return false;
    for (int k = 0; k < n; k++)
        if (t[k]->ndim > 1)
            return meta_fail(m,
                             "RuntimeError: torch.meshgrid: Expected 0D or 1D tensor in the tensor "
                             "list but got: one of size %s",
                             meta_sizes_text(m, t[k]->size, t[k]->ndim));
    *out = val_list(m->arena, VAL_tuple, n);
    for (int k = 0; k < n; k++) {
        TensorMeta *r = meta_window(m, t[k], n);
        for (int i = 0; i < n; i++) {
            int from = xy && i < 2 ? 1 - i : i;
            r->size[i] = t[from]->ndim ? t[from]->size[0] : meta_int(m, 1);
            r->stride[i] = from != k    ? meta_int(m, 0)
                           : t[k]->ndim ? t[k]->stride[0]
                                        : meta_int(m, 1);
        }
        out->at[k] = val_tensor(r);
    }
    return true;
}

// _chunk_cat: each tensor cut into n chunks along a dimension (padded to equal lengths), chunk by
// chunk flat.
bool meta_chunk_cat(MetaCtx *m, const Op *op, const Value *args, Value *out) {
    int n, dim;
    const TensorMeta **t = meta_tensors(m, &args[0], &n);
    const Expr *chunks;
    if (!t || !n || !t[0] || !val_as_expr(m->sym, meta_arg(op, args, "num_chunks"), &chunks) ||
        !meta_dim(m, meta_arg_int(op, args, "dim", 0), t[0]->ndim, &dim))
        return false;
    const Expr **size = ARENA_ARRAY(m->arena, dim + 2, const Expr *), *total = meta_int(m, 0);
    memcpy(size, t[0]->size, (size_t)dim * sizeof *size);
    for (int i = 0; i < n; i++) {
        if (!t[i] || t[i]->ndim <= dim)
            return meta_fail(m, "RuntimeError: _chunk_cat: tensor %d has %d dimensions, dim is %d",
                             i, t[i] ? t[i]->ndim : 0, dim);
        const Expr *len = sym_ceildiv(m->sym, t[i]->size[dim], chunks);
        for (int k = dim + 1; k < t[i]->ndim; k++)
            len = sym_mul(m->sym, len, t[i]->size[k]);
        total = sym_add(m->sym, total, len);
    }
    size[dim] = chunks;
    size[dim + 1] = total;
    return meta_out_new(m, out, t[0]->dtype, dim + 2, size, t[0]->device);
}
