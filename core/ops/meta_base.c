// meta_base.c: what meta functions share: arguments by name, dimensions, decisions on sizes,
// layouts.
#include "core/ops/meta.h"

#include <string.h>

bool meta_fail(MetaCtx *m, const char *fmt, ...) {
    va_list args;
    va_start(args, fmt);
    const char *text = arena_vprintf(m->diag->arena, fmt, args);
    va_end(args);
    diag_error(m->diag, m->at, "%s", text);
    return false;
}

const Value *meta_arg(const Op *op, const Value *args, const char *name) {
    static const Value none = {.kind = VAL_none};
    int i = op_arg_index(op, name);
    return i < 0 ? &none : &args[i];
}

const TensorMeta *meta_arg_tensor(const Op *op, const Value *args, const char *name) {
    const Value *v = meta_arg(op, args, name);
    return v->kind == VAL_tensor ? v->tensor : NULL;
}

bool meta_arg_bool(const Op *op, const Value *args, const char *name) {
    return meta_arg_int(op, args, name, 0) != 0;
}

int64_t meta_arg_int(const Op *op, const Value *args, const char *name, int64_t fallback) {
    int64_t v;
    return val_as_int(meta_arg(op, args, name), &v) ? v : fallback;
}

DType meta_arg_dtype(const Op *op, const Value *args, DType fallback) {
    const Value *v = meta_arg(op, args, "dtype");
    return v->kind == VAL_dtype ? v->dtype : fallback;
}

const TensorMeta *meta_self(MetaCtx *m, const Op *op, const Value *args) {
    if (op->n_args && args[0].kind == VAL_tensor)
        return args[0].tensor;
    meta_fail(m, "TypeError: %s.%s.%s: argument '%s' must be a tensor", op->ns, op->name,
              op->overload, op->n_args ? op->args[0].name : "self");
    return NULL;
}

const Expr **meta_exprs(MetaCtx *m, const Value *v, int *n) {
    bool list = v->kind == VAL_list || v->kind == VAL_tuple;
    *n = list ? v->n : 1;
    const Expr **out = ARENA_ARRAY(m->arena, *n + 1, const Expr *);
    for (int i = 0; i < *n; i++) {
        if (val_as_expr(m->sym, list ? &v->at[i] : v, &out[i]))
            continue;
        meta_fail(m, "TypeError: expected a list of ints, item %d is none", i);
        return NULL;
    }
    return out;
}

const TensorMeta **meta_tensors(MetaCtx *m, const Value *v, int *n) {
    *n = v->kind == VAL_list || v->kind == VAL_tuple ? v->n : 0;
    const TensorMeta **out = ARENA_ARRAY(m->arena, *n + 1, const TensorMeta *);
    for (int i = 0; i < *n; i++) {
        if (v->at[i].kind == VAL_tensor)
            out[i] = v->at[i].tensor;
        else if (v->at[i].kind != VAL_none) {
            meta_fail(m, "TypeError: expected a list of tensors, item %d is none", i);
            return NULL;
        }
    }
    return out;
}

bool meta_dim(MetaCtx *m, int64_t dim, int ndim, int *out) {
    int n = ndim ? ndim : 1;
    if (dim < -n || dim >= n)
        return meta_fail(m,
                         "IndexError: Dimension out of range (expected to be in range of [%d, %d], "
                         "but got %lld)",
                         -n, n - 1, (long long)dim);
    *out = (int)(dim < 0 ? dim + n : dim);
    return true;
}

bool meta_dims(MetaCtx *m, const Value *v, int ndim, bool all_if_empty, uint64_t *mask) {
    uint64_t all = ndim >= 64 ? ~0ull : (1ull << ndim) - 1;
    bool list = v->kind == VAL_list || v->kind == VAL_tuple;
    if (v->kind == VAL_none || (list && v->n == 0 && all_if_empty)) {
        *mask = all;
        return true;
    }
    *mask = 0;
    for (int i = 0; i < (list ? v->n : 1); i++) {
        int64_t dim;
        int d = 0;
        if (!val_as_int(list ? &v->at[i] : v, &dim))
            return meta_fail(m, "TypeError: a dimension must be an int");
        if (!meta_dim(m, dim, ndim, &d))
            return false;
        if (*mask >> d & 1)
            return meta_fail(m, "RuntimeError: dim %d appears multiple times in the list of dims",
                             d);
        *mask |= 1ull << d;
    }
    return true;
}

bool meta_eq(MetaCtx *m, const Expr *a, const Expr *b) {
    int64_t x, y;
    if (a == b)
        return true;
    if (expr_int(a, &x) && expr_int(b, &y))
        return x == y;
    return sym_known_eq(m->sym, a, b) ||
           sym_guard(m->sym, sym_cmp(m->sym, SYM_eq, a, b), m->stage, "sizes must agree", NULL);
}

bool meta_is(MetaCtx *m, const Expr *a, int64_t v) {
    int64_t x;
    if (expr_int(a, &x))
        return x == v;
    return meta_eq(m, a, sym_int(m->sym, v));
}

bool meta_lt(MetaCtx *m, const Expr *a, const Expr *b) {
    int64_t x, y;
    if (expr_int(a, &x) && expr_int(b, &y))
        return x < y;
    if (a == b)
        return false;
    return sym_known_lt(m->sym, a, b) || sym_guard(m->sym, sym_cmp(m->sym, SYM_lt, a, b), m->stage,
                                                   "a bound decides the shape", NULL);
}

const Expr *meta_int(MetaCtx *m, int64_t v) {
    return sym_int(m->sym, v);
}

const char *meta_sizes_text(MetaCtx *m, const Expr *const *e, int n) {
    Buf b = {.arena = m->arena};
    sym_print_list(&b, e, n);
    return buf_str(&b);
}

bool meta_out(Value *out, const TensorMeta *t) {
    *out = val_tensor(t);
    return t != NULL;
}

TensorMeta *meta_make(MetaCtx *m, DType dtype, int ndim, const Expr *const *size, Device device) {
    return meta_contiguous(m->arena, m->sym, dtype, ndim, size, device);
}

bool meta_out_new(MetaCtx *m, Value *out, DType dtype, int ndim, const Expr *const *size,
                  Device device) {
    return meta_out(out, meta_make(m, dtype, ndim, size, device));
}

Value meta_tuple(MetaCtx *m, int n) {
    return val_list(m->arena, VAL_tuple, n);
}

// Strides that follow an order of dimensions, fastest first. Zero sizes count as one, or as zero.
static void set_order(MetaCtx *m, TensorMeta *t, const int *order) {
    const Expr *one = sym_int(m->sym, 1), *step = one;
    for (int k = 0; k < t->ndim; k++) {
        int i = order[k];
        t->stride[i] = step;
        step = sym_mul(m->sym, step, sym_max(m->sym, one, t->size[i]));
    }
}

void meta_set_contiguous(MetaCtx *m, TensorMeta *t) {
    int order[META_DIMS];
    for (int i = 0; i < t->ndim; i++)
        order[i] = t->ndim - 1 - i;
    set_order(m, t, order);
}

void meta_set_format(MetaCtx *m, TensorMeta *t, MemoryFormat mf) {
    static const int nhwc[] = {1, 3, 2, 0}, ndhwc[] = {1, 4, 3, 2, 0};
    if (mf == MF_channels_last && t->ndim == 4)
        set_order(m, t, nhwc);
    else if (mf == MF_channels_last_3d && t->ndim == 5)
        set_order(m, t, ndhwc);
    else
        meta_set_contiguous(m, t);
}

// -1, 0, 1 by value; symbols by what is known, then by hints. Undecided counts as equal.
static int compare(MetaCtx *m, const Expr *a, const Expr *b) {
    int64_t x, y;
    if (a == b)
        return 0;
    if (expr_int(a, &x) && expr_int(b, &y))
        return x < y ? -1 : x > y;
    if (sym_known_lt(m->sym, a, b))
        return -1;
    if (sym_known_lt(m->sym, b, a))
        return 1;
    if (sym_hint(m->sym, a, &x) && sym_hint(m->sym, b, &y))
        return x < y ? -1 : x > y;
    return 0;
}

// ATen's test, ambiguous layouts counting as contiguous.
static bool like_channels_last(MetaCtx *m, const TensorMeta *t, const int *order) {
    const Expr *min = sym_int(m->sym, 0);
    if (expr_is(t->stride[1], 0))
        return false;
    for (int k = 0; k < t->ndim; k++) {
        int d = order[k];
        if (expr_is(t->size[d], 0) || compare(m, t->stride[d], min) < 0)
            return false;
        if (d == 0 && compare(m, min, t->stride[1]) == 0)
            return false;
        min = t->stride[d];
        if (!expr_is(t->size[d], 1))
            min = sym_mul(m->sym, min, t->size[d]);
    }
    return true;
}

MemoryFormat meta_suggest_format(MetaCtx *m, const TensorMeta *t) {
    static const int nhwc[] = {1, 3, 2, 0}, ndhwc[] = {1, 4, 3, 2, 0};
    if (t->ndim == 4 && like_channels_last(m, t, nhwc))
        return MF_channels_last;
    if (t->ndim == 5 && like_channels_last(m, t, ndhwc))
        return MF_channels_last_3d;
    return MF_contiguous;
}

bool meta_is_dense(MetaCtx *m, const TensorMeta *t) {
    if (t->ndim > META_DIMS)
        return false;
    if (meta_is_contiguous(m->sym, t, MF_contiguous))
        return true;
    int order[META_DIMS], n = 0;
    for (int i = 0; i < t->ndim; i++) {
        if (expr_is(t->size[i], 1))
            continue;
        int k = n++;
        for (; k > 0 && compare(m, t->stride[order[k - 1]], t->stride[i]) > 0; k--)
            order[k] = order[k - 1];
        order[k] = i;
    }
    const Expr *step = sym_int(m->sym, 1);
    for (int k = 0; k < n; k++) {
        if (compare(m, t->stride[order[k]], step) != 0)
            return false;
        step = sym_mul(m->sym, step, t->size[order[k]]);
    }
    return true;
}

int meta_rank_dims(MetaCtx *m, const Expr *stride_a, const Expr *size_a, const Expr *stride_b,
                   const Expr *size_b) {
    if (expr_is(stride_a, 0) || expr_is(stride_b, 0))
        return 0;
    int c = compare(m, stride_a, stride_b);
    return c ? c : compare(m, size_a, size_b) > 0 ? 1 : 0;
}

// Dense strides in the order of dimensions that the given strides suggest.
static void set_dense(MetaCtx *m, TensorMeta *t, const Expr *const *size,
                      const Expr *const *stride) {
    int perm[META_DIMS] = {0};
    for (int i = 0; i < t->ndim; i++)
        perm[i] = t->ndim - 1 - i;
    for (int i = 1; i < t->ndim; i++)
        for (int hi = i, lo = i - 1; lo >= 0; lo--) {
            int a = perm[lo], b = perm[hi];
            int c = meta_rank_dims(m, stride[a], size[a], stride[b], size[b]);
            if (c < 0)
                break;
            if (c > 0) {
                perm[lo] = b;
                perm[hi] = a;
                hi = lo;
            }
        }
    set_order(m, t, perm);
}

TensorMeta *meta_window(MetaCtx *m, const TensorMeta *t, int ndim) {
    TensorMeta *out = meta_new(m->arena, t->dtype, ndim);
    out->offset = t->offset ? t->offset : sym_int(m->sym, 0);
    out->device = t->device;
    out->layout = t->layout;
    return out;
}

TensorMeta *meta_like(MetaCtx *m, const TensorMeta *t, DType dtype, MemoryFormat mf) {
    TensorMeta *out = meta_make(m, dtype, t->ndim, t->size, t->device);
    if (mf != MF_preserve) {
        meta_set_format(m, out, mf);
    } else if (meta_is_dense(m, t)) {
        for (int i = 0; i < t->ndim; i++)
            out->stride[i] = t->stride[i];
    } else {
        set_dense(m, out, t->size, t->stride);
    }
    return out;
}
