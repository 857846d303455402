// lower_view.c: views, and what moves elements without computing: flip, repeat, padding,
// writes into a part. Source: torch/_inductor/lowering.py.
#include "core/inductor/lower.h"
#include "core/ops/meta.h"
#include "core/inductor/lowerings.h"
#include "core/record/fault.h"

#include <assert.h>

static const Expr *one(Lower *l) {
    return sym_int(l->sym, 1);
}

int arg_dim(Lower *l, const Value *args, int i, int ndim) {
    int64_t d = arg_int(l, args, i);
    return (int)(d < 0 ? d + ndim : d);
}

static LVal boxed(Lower *l, Data *d) {
    return lv_box(box_new(l, d));
}

LVal lower_reshape(Lower *l, const Value *args, LoopOpKind kind) {
    Box *x = arg_box(l, args, 0);
    int n = 0;
    (void)kind;
    const Expr **size = arg_exprs(l, &args[1], &n),
               *rest = sym_product(l->sym, data_size(x->data), data_ndim(x->data));
    int unknown = -1;
    for (int i = 0; i < n; i++)
        if (expr_is(size[i], -1))
            unknown = i;
    if (unknown >= 0) {
        size[unknown] = one(l);
        size[unknown] = sym_cleandiv(l->sym, rest, sym_product(l->sym, size, n));
    }
    return boxed(l, view_reshape(l, x->data, n, size));
}

static bool keeps_sizes(Lower *l, const Box *x, const int *dims, int ndim) {
    for (int i = 0; i < ndim; i++)
        if (!sym_known_eq(l->sym, data_size(x->data)[dims[i]], data_size(x->data)[i]))
            return false;
    return true;
}

LVal lower_permute(Lower *l, const Value *args, LoopOpKind kind) {
    Box *x = arg_box(l, args, 0);
    int dims[64], ndim = data_ndim(x->data);
    (void)kind;
    for (int i = 0; i < ndim; i++)
        dims[i] = args[1].n == ndim ? arg_dim(l, args[1].at, i, ndim) : i;
    if (keeps_sizes(l, x, dims, ndim) &&
        fault(l->req->decisions, FAULT_stride_swapped, l->node->name))
        return lv_box(x);
    return boxed(l, view_permute(l, x->data, dims));
}

LVal lower_transpose(Lower *l, const Value *args, LoopOpKind kind) {
    Box *x = arg_box(l, args, 0);
    int dims[64], ndim = data_ndim(x->data);
    (void)kind;
    int a = ndim - 2, b = ndim - 1;
    if (l->node->def->n_args > 1) {
        a = arg_dim(l, args, 1, ndim);
        b = arg_dim(l, args, 2, ndim);
    }
    for (int i = 0; i < ndim; i++)
        dims[i] = i == a ? b : i == b ? a : i;
    return ndim < 2 ? lv_box(x) : boxed(l, view_permute(l, x->data, dims));
}

LVal lower_expand(Lower *l, const Value *args, LoopOpKind kind) {
    int n = 0;
    const Expr **size = arg_exprs(l, &args[1], &n);
    (void)kind;
    return lv_box(expand_box(l, arg_box(l, args, 0), n, size));
}

Box *squeeze_box(Lower *l, Box *x, const bool *dims) {
    int ndim = data_ndim(x->data), n = 0;
    const Expr **size = ARENA_ARRAY(l->arena, ndim, const Expr *);
    for (int i = 0; i < ndim; i++)
        if (!dims[i] || !size_is_one(l, data_size(x->data)[i]))
            size[n++] = data_size(x->data)[i];
    return n == ndim ? x : box_new(l, view_reshape(l, x->data, n, size));
}

Box *unsqueeze_box(Lower *l, Box *x, int dim) {
    int ndim = data_ndim(x->data);
    const Expr **size = ARENA_ARRAY(l->arena, ndim + 1, const Expr *);
    for (int i = 0; i <= ndim; i++)
        size[i] = i == dim ? one(l) : data_size(x->data)[i - (i > dim)];
    return box_new(l, view_reshape(l, x->data, ndim + 1, size));
}

LVal lower_squeeze(Lower *l, const Value *args, LoopOpKind kind) {
    Box *x = arg_box(l, args, 0);
    bool dims[64];
    (void)kind;
    if (l->node->def->n_args < 2)
        return boxed(l, view_squeeze(l, x->data));
    if (args[1].kind == VAL_list && !args[1].n)
        return lv_box(x);
    reduction_axes(l, &args[1], data_ndim(x->data), dims);
    return lv_box(squeeze_box(l, x, dims));
}

LVal lower_unsqueeze(Lower *l, const Value *args, LoopOpKind kind) {
    Box *x = arg_box(l, args, 0);
    (void)kind;
    return lv_box(unsqueeze_box(l, x, arg_dim(l, args, 1, data_ndim(x->data) + 1)));
}

// ---- slices

static Box *slice_box(Lower *l, Box *x, int dim, const Expr *start, const Expr *end,
                      const Expr *step, bool clamp) {
    return box_new(l, view_slice(l, x->data, dim, start, end, step, clamp));
}

LVal lower_slice(Lower *l, const Value *args, LoopOpKind kind) {
    Box *x = arg_box(l, args, 0);
    int dim = arg_dim(l, args, 1, data_ndim(x->data));
    (void)kind;
    const Expr *start = args[2].kind == VAL_none ? sym_int(l->sym, 0) : arg_expr(l, args, 2);
    const Expr *end = args[3].kind == VAL_none ? data_size(x->data)[dim] : arg_expr(l, args, 3);
    if (sym_range(l->sym, start).lo > 0 && sym_range(l->sym, end).hi < INT32_MAX &&
        fault(l->req->decisions, FAULT_slice_start_lost, l->node->name)) {
        end = sym_sub(l->sym, end, start);
        start = sym_int(l->sym, 0);
    }
    return lv_box(slice_box(l, x, dim, start, end,
                            args[4].kind == VAL_none ? one(l) : arg_expr(l, args, 4), true));
}

static Box *select_box(Lower *l, Box *x, int dim, const Expr *i) {
    bool dims[64] = {false};
    if (sym_range(l->sym, i).hi < 0)
        i = sym_add(l->sym, i, data_size(x->data)[dim]);
    Box *s = slice_box(l, x, dim, i, sym_add_int(l->sym, i, 1), one(l), false);
    dims[dim] = true;
    return squeeze_box(l, s, dims);
}

LVal lower_select(Lower *l, const Value *args, LoopOpKind kind) {
    Box *x = arg_box(l, args, 0);
    (void)kind;
    return lv_box(select_box(l, x, arg_dim(l, args, 1, data_ndim(x->data)), arg_expr(l, args, 2)));
}

LVal lower_unbind(Lower *l, const Value *args, LoopOpKind kind) {
    Box *x = arg_box(l, args, 0);
    int dim = arg_dim(l, args, 1, data_ndim(x->data));
    (void)kind;
    LVal out = lv_list(l, (int)size_hint(l, data_size(x->data)[dim]));
    for (int i = 0; i < out.n; i++)
        out.at[i] = lv_box(select_box(l, x, dim, sym_int(l->sym, i)));
    return out;
}

LVal lower_split(Lower *l, const Value *args, LoopOpKind kind) {
    Box *x = arg_box(l, args, 0);
    int dim = arg_dim(l, args, 2, data_ndim(x->data)), n = 0;
    const Expr *size = data_size(x->data)[dim], *at = sym_int(l->sym, 0);
    const Expr **sizes = arg_exprs(l, &args[1], &n);
    (void)kind;
    if (args[1].kind != VAL_list && args[1].kind != VAL_tuple) {
        int64_t total = size_hint(l, size), each = size_hint(l, sizes[0]);
        n = total ? (int)((total + each - 1) / (each ? each : 1)) : 1; // nothing is one part
        const Expr *part = sizes[0], *rest = size;
        sizes = ARENA_ARRAY(l->arena, n, const Expr *);
        for (int i = 0; i < n; i++) {
            sizes[i] = i + 1 < n ? part : rest;
            rest = sym_sub(l->sym, rest, part);
        }
    }
    LVal out = lv_list(l, n);
    for (int i = 0; i < n; i++) {
        const Expr *end = sym_add(l->sym, at, sizes[i]);
        out.at[i] = lv_box(slice_box(l, x, dim, at, end, one(l), false));
        at = end;
    }
    return out;
}

// ---- views by a formula

typedef struct DiagCtx {
    int ndim, d1, d2;
    const Expr *b1, *b2; // where the diagonal begins
} DiagCtx;

static void reindex_diagonal(Lower *l, const void *ctx, Index in, const Expr **out) {
    const DiagCtx *c = ctx;
    const Expr *at = in[c->ndim - 2];
    for (int d = 0, k = 0; d < c->ndim; d++)
        out[d] = d == c->d1   ? sym_add(l->sym, at, c->b1)
                 : d == c->d2 ? sym_add(l->sym, at, c->b2)
                              : in[k++];
}

Data *diagonal_data(Lower *l, Data *x, int64_t offset, int d1, int d2) {
    int n = data_ndim(x), k = 0;
    const Expr *const *old = data_size(x);
    const Expr **size = ARENA_ARRAY(l->arena, n, const Expr *), *zero = sym_int(l->sym, 0);
    for (int i = 0; i < n; i++)
        if (i != d1 && i != d2)
            size[k++] = old[i];
    const Expr *a = sym_add_int(l->sym, old[d1], offset < 0 ? offset : 0);
    const Expr *b = sym_add_int(l->sym, old[d2], offset > 0 ? -offset : 0);
    size[k++] = sym_max(l->sym, sym_min(l->sym, a, b), zero);
    DiagCtx *c = ARENA_NEW(l->arena, DiagCtx);
    *c = (DiagCtx){n, d1, d2, sym_int(l->sym, offset < 0 ? -offset : 0),
                   sym_int(l->sym, offset > 0 ? offset : 0)};
    return view_generic(l, x, k, size, reindex_diagonal, c);
}

LVal lower_diagonal(Lower *l, const Value *args, LoopOpKind kind) {
    Box *x = arg_box(l, args, 0);
    int n = data_ndim(x->data);
    (void)kind;
    return boxed(l, diagonal_data(l, x->data, arg_int(l, args, 1), arg_dim(l, args, 2, n),
                                  arg_dim(l, args, 3, n)));
}

typedef struct UnfoldCtx {
    int ndim, dim;
    const Expr *step;
} UnfoldCtx;

static void reindex_unfold(Lower *l, const void *ctx, Index in, const Expr **out) {
    const UnfoldCtx *c = ctx;
    for (int d = 0; d < c->ndim; d++)
        out[d] =
            d == c->dim ? sym_add(l->sym, in[c->ndim], sym_mul(l->sym, in[d], c->step)) : in[d];
}

LVal lower_unfold(Lower *l, const Value *args, LoopOpKind kind) {
    Box *x = arg_box(l, args, 0);
    if (data_ndim(x->data) == 0)
        return lv_box(slice_box(l, unsqueeze_box(l, x, 0), 0, sym_int(l->sym, 0),
                                arg_expr(l, args, 2), one(l), true));
    int n = data_ndim(x->data), dim = arg_dim(l, args, 1, n);
    const Expr *len = arg_expr(l, args, 2), *step = arg_expr(l, args, 3),
               *old = data_size(x->data)[dim];
    (void)kind;
    const Expr **size = ARENA_ARRAY(l->arena, n + 1, const Expr *);
    for (int i = 0; i < n; i++)
        size[i] = data_size(x->data)[i];
    size[dim] = sym_add_int(l->sym, sym_floordiv(l->sym, sym_sub(l->sym, old, len), step), 1);
    size[n] = len;
    int64_t reads = size_hint(l, size[dim]) * size_hint(l, len), have = size_hint(l, old);
    if (have > 0)
        box_mark_reuse(l, x, (reads + have - 1) / have);
    UnfoldCtx *c = ARENA_NEW(l->arena, UnfoldCtx);
    *c = (UnfoldCtx){n, dim, step};
    return boxed(l, view_generic(l, x->data, n + 1, size, reindex_unfold, c));
}

const Expr *first_offset(Lower *l, const Node *n) {
    const Node *x = n->n_args && n->args[0].kind == VAL_node ? n->args[0].node : NULL;
    const TensorMeta *m = x ? node_meta(l, x) : NULL;
    return m && m->offset ? m->offset : sym_int(l->sym, 0);
}

// What n is a view of; NULL: it is none.
static const Node *viewed(const Node *n) {
    bool view = n->op == FX_call_function && n->def && n->n_args && n->args[0].kind == VAL_node &&
                n->def->id != OP_aten_as_strided_default &&
                (n->def->tags & OPT_view || n->def->id == OP_aten_reshape_default);
    return view ? n->args[0].node : NULL;
}

// The node that n is a view of and whose value d holds; NULL: d is below that.
static const Node *stored_by(Lower *l, const Node *n, const Data *d) {
    while (n && !(l->env[n->id].kind == L_box && l->env[n->id].box->data == d))
        n = viewed(n);
    return n;
}

// What the strides step over. PyTorch takes the buffer below the views as it is, which is wrong
// where a convolution has made it a copy in another order: then another copy has the strides of
// eager.
static Data *strided_memory(Lower *l, const Node *stored, Data *d) {
    const TensorMeta *m = stored ? node_meta(l, stored) : NULL;
    if (!m || m->ndim != data_ndim(d))
        return d;
    data_realize(l, d, "as_strided");
    return data_unwrap(box_require_exact(l, box_new(l, d), m->stride)->data);
}

// The last reshape among what n is a view of that had to copy: what is below it is other memory.
// NULL: there is none.
static const Node *copied_at(Lower *l, const Node *n) {
    MetaCtx c = {.arena = l->arena, .sym = l->sym};
    for (const Node *from = viewed(n); from; n = from, from = viewed(n)) {
        const TensorMeta *in = node_meta(l, from), *out = node_meta(l, n);
        const Expr **stride = ARENA_ARRAY(l->arena, out ? out->ndim + 1 : 1, const Expr *);
        if (n->def->id == OP_aten_reshape_default && l->env[n->id].kind == L_box && in && out &&
            !meta_view_strides(&c, in, out->ndim, out->size, stride))
            return n;
    }
    return NULL;
}

LVal lower_as_strided(Lower *l, const Value *args, LoopOpKind kind) {
    Box *x = arg_box(l, args, 0);
    int n = 0, n_stride = 0;
    const Expr **size = arg_exprs(l, &args[1], &n), **stride = arg_exprs(l, &args[2], &n_stride);
    (void)kind;
    Data *d = data_unwrap(x->data);
    const Node *of = l->node->args[0].node, *stored = stored_by(l, of, d);
    // PyTorch 2.11 begins at the buffer's first element if none is given.
    const Expr *first = first_offset(l, l->node);
    const Expr *offset = args[3].kind == VAL_none ? first : arg_expr(l, args, 3);
    if (stored && node_meta(l, stored)->offset) // a part that was computed on its own begins there
        offset = sym_sub(l->sym, offset, node_meta(l, stored)->offset);
    const Node *copy = copied_at(l, of);
    if (copy) {
        Box *b = box_require_exact(l, l->env[copy->id].box, node_meta(l, copy)->stride);
        d = data_unwrap(b->data);
    } else if (stored != of) {
        d = strided_memory(l, stored, d);
    }
    data_realize(l, d, "as_strided");
    buf_decide(l, d->buf);
    const IrLayout *y = d->buf->ir->layout;
    IrLayout *as =
        layout_new(l, IRL_fixed, y->device, data_dtype(x->data), n, size, stride, offset);
    return boxed(l, view_strided(l, d, as));
}

// ---- reindexed copies

typedef struct MoveCtx {
    Fn in;
    int n;
    bool flip[64];
    const Expr *size[64]; // of the input
    bool repeated[64];
} MoveCtx;

static TVal run_move(Tracer *t, const void *ctx, Index idx, Index red) {
    const MoveCtx *c = ctx;
    const Expr *out[64];
    (void)red;
    for (int i = 0; i < c->n; i++) {
        out[i] = c->flip[i] ? sym_sub(t->sym, sym_add_int(t->sym, c->size[i], -1), idx[i]) : idx[i];
        if (c->repeated[i])
            out[i] = expr_is(c->size[i], 1) || expr_is(c->size[i], 0) // nothing is read
                         ? sym_int(t->sym, 0)
                         : sym_modular(t->sym, idx[i], sym_int(t->sym, 1), c->size[i]);
    }
    return t_call(t, c->in, out, NULL);
}

static MoveCtx *move_ctx(Lower *l, Box *x) {
    MoveCtx *c = ARENA_NEW(l->arena, MoveCtx);
    c->in = data_loader(l, x->data);
    c->n = data_ndim(x->data);
    assert(c->n <= 64);
    for (int i = 0; i < c->n; i++)
        c->size[i] = data_size(x->data)[i];
    return c;
}

LVal lower_rev(Lower *l, const Value *args, LoopOpKind kind) {
    Box *x = arg_box(l, args, 0);
    MoveCtx *c = move_ctx(l, x);
    (void)kind;
    for (int i = 0; i < args[1].n; i++)
        c->flip[arg_dim(l, args[1].at, i, c->n)] = true;
    return lv_box(pointwise_new(l, data_dtype(x->data), data_device(x->data), c->n, c->size,
                                (Fn){run_move, c}));
}

LVal lower_repeat(Lower *l, const Value *args, LoopOpKind kind) {
    Box *x = arg_box(l, args, 0);
    int n = 0;
    (void)kind;
    const Expr **times = arg_exprs(l, &args[1], &n),
               **size = ARENA_ARRAY(l->arena, n, const Expr *);
    while (data_ndim(x->data) < n)
        x = unsqueeze_box(l, x, 0);
    bool plain = true;
    for (int i = 0; i < n; i++) {
        plain = plain && (expr_is(times[i], 1) || size_is_one(l, data_size(x->data)[i]));
        size[i] = sym_mul(l->sym, data_size(x->data)[i], times[i]);
    }
    if (plain)
        return lv_box(clone_box(l, expand_box(l, x, n, size)));
    int64_t from = size_hint(l, sym_product(l->sym, data_size(x->data), n));
    if (from > 0)
        box_mark_reuse(l, x, size_hint(l, sym_product(l->sym, size, n)) / from);
    MoveCtx *c = move_ctx(l, x);
    for (int i = 0; i < n; i++)
        c->repeated[i] = !expr_is(times[i], 1);
    return lv_box(
        pointwise_new(l, data_dtype(x->data), data_device(x->data), n, size, (Fn){run_move, c}));
}

// ---- padding

// functools.reduce(ops.and_, masks): all are made before the first is combined.
static TVal all_of(Tracer *t, const TVal *masks, int n) {
    TVal mask = n ? masks[0] : (TVal){0};
    for (int i = 1; i < n; i++)
        mask = t_op2(t, LOOP_and_, mask, masks[i]);
    return mask;
}

typedef struct PadCtx {
    Fn in;
    int n, first; // dimensions; the first padded one
    const Expr *low[64], *high[64], *size[64];
    Value fill;
    DType dtype;
} PadCtx;

static TVal run_pad(Tracer *t, const void *ctx, Index idx, Index red) {
    const PadCtx *c = ctx;
    const Expr *in[64];
    TVal masks[128];
    int n = 0;
    (void)red;
    for (int i = 0; i < c->n; i++)
        in[i] = i < c->first ? idx[i] : sym_sub(t->sym, idx[i], c->low[i]);
    for (int i = c->first; i < c->n; i++)
        for (int side = 0; side < 2; side++) {
            if (expr_is(side ? c->high[i] : c->low[i], 0))
                continue;
            TVal at = t_index(t, in[i], DT_i64),
                 bound = t_index(t, side ? c->size[i] : sym_int(t->sym, 0), DT_i64);
            masks[n++] = t_op2(t, side ? LOOP_lt : LOOP_ge, at, bound);
        }
    return t_masked(t, all_of(t, masks, n), c->in, in, c->fill, c->dtype);
}

static Value scalar_of_kind(Value v, DType dtype) {
    double f = 0;
    int64_t i = 0;
    if (dtype == DT_b8)
        return val_bool(v.kind == VAL_bool ? v.b : val_as_float(&v, &f) && f != 0);
    if (dtype_is_float(dtype))
        return val_as_float(&v, &f) ? val_float(f) : v;
    return val_as_int(&v, &i) ? val_int(i) : val_as_float(&v, &f) ? val_int((int64_t)f) : v;
}

LVal lower_pad(Lower *l, const Value *args, LoopOpKind kind) {
    Box *x = arg_box(l, args, 0);
    int n_pad = 0, n = data_ndim(x->data);
    const Expr **pad = arg_exprs(l, &args[1], &n_pad),
               **size = ARENA_ARRAY(l->arena, n, const Expr *);
    bool any = false;
    (void)kind;
    for (int i = 0; i < n_pad; i++)
        any |= !expr_is(pad[i], 0);
    if (!any)
        return lv_box(clone_box(l, x));
    PadCtx *c = ARENA_NEW(l->arena, PadCtx);
    c->dtype = data_dtype(x->data);
    c->fill = scalar_of_kind(args[2], c->dtype);
    c->n = n;
    c->first = n - n_pad / 2;
    for (int i = 0; i < n; i++) {
        size[i] = c->size[i] = data_size(x->data)[i];
        if (i < c->first)
            continue;
        c->low[i] = pad[2 * (n - 1 - i)];
        c->high[i] = pad[2 * (n - 1 - i) + 1];
        size[i] =
            sym_expand(l->sym, sym_add(l->sym, sym_add(l->sym, size[i], c->low[i]), c->high[i]));
    }
    c->in = data_loader(l, x->data);
    if (fault(l->req->decisions, FAULT_pad_mask_short, l->node->name))
        c->size[n - 1] = sym_add_int(l->sym, c->size[n - 1], -1);
    return lv_box(pointwise_new(l, c->dtype, data_device(x->data), n, size, (Fn){run_pad, c}));
}

// ---- a part replaced

typedef struct PartCtx {
    Fn x, src;
    int n, dim;
    const Expr *start, *end, *step, *size;
    Value zero;
    DType dtype;
} PartCtx;

static TVal run_select_scatter(Tracer *t, const void *ctx, Index idx, Index red) {
    const PartCtx *c = ctx;
    (void)red;
    TVal here = t_op2(t, LOOP_eq, t_index(t, idx[c->dim], DT_i32), t_index(t, c->start, DT_i32));
    TVal src = t_call(t, c->src, idx, NULL), x = t_call(t, c->x, idx, NULL);
    return t_op3(t, LOOP_where, here, src, x);
}

LVal lower_select_scatter(Lower *l, const Value *args, LoopOpKind kind) {
    Box *x = arg_box(l, args, 0), *src = box_to_dtype(l, arg_box(l, args, 1), data_dtype(x->data));
    PartCtx *c = ARENA_NEW(l->arena, PartCtx);
    int n = data_ndim(x->data);
    (void)kind;
    c->x = data_loader(l, x->data);
    c->dim = arg_dim(l, args, 2, n);
    c->start = arg_expr(l, args, 3);
    if (sym_range(l->sym, c->start).hi < 0)
        c->start = sym_add(l->sym, c->start, data_size(x->data)[c->dim]);
    src = expand_box(l, unsqueeze_box(l, src, c->dim), n, data_size(x->data));
    c->src = data_loader(l, src->data);
    return lv_box(pointwise_new(l, data_dtype(x->data), data_device(x->data), n, data_size(x->data),
                                (Fn){run_select_scatter, c}));
}

static TVal run_slice_scatter(Tracer *t, const void *ctx, Index idx, Index red) {
    const PartCtx *c = ctx;
    const Expr *in[64], *shifted = sym_sub(t->sym, idx[c->dim], c->start);
    (void)red;
    if (expr_is(c->start, 0) && c->end == c->size && expr_is(c->step, 1))
        return t_call(t, c->src, idx, NULL);
    for (int i = 0; i < c->n; i++)
        in[i] = i == c->dim ? sym_floordiv(t->sym, shifted, c->step) : idx[i];
    TVal at = t_index(t, idx[c->dim], DT_i64), masks[3];
    int n = 0;
    for (int k = 0; k < 3; k++) {
        if (k == 0 && !expr_is(c->start, 0))
            masks[n++] = t_op2(t, LOOP_ge, at, t_index(t, sym_expand(t->sym, c->start), DT_i64));
        else if (k == 1 && c->end != c->size)
            masks[n++] = t_op2(t, LOOP_lt, at, t_index(t, sym_expand(t->sym, c->end), DT_i64));
        else if (k == 2 && !expr_is(c->step, 1))
            masks[n++] =
                t_op2(t, LOOP_eq,
                      t_index(t, sym_modular(t->sym, shifted, sym_int(t->sym, 1), c->step), DT_i64),
                      t_int(t, 0, DT_i64));
    }
    TVal mask = all_of(t, masks, n);
    TVal src = t_masked(t, mask, c->src, in, c->zero, c->dtype);
    return t_op3(t, LOOP_where, mask, src, t_call(t, c->x, idx, NULL));
}

LVal lower_slice_scatter(Lower *l, const Value *args, LoopOpKind kind) {
    Box *x = arg_box(l, args, 0), *src = box_to_dtype(l, arg_box(l, args, 1), data_dtype(x->data));
    int n = data_ndim(x->data);
    PartCtx *c = ARENA_NEW(l->arena, PartCtx);
    (void)kind;
    *c = (PartCtx){.x = data_loader(l, x->data),
                   .n = n,
                   .dim = arg_dim(l, args, 2, n),
                   .dtype = data_dtype(x->data)};
    c->size = data_size(x->data)[c->dim];
    c->start = args[3].kind == VAL_none ? sym_int(l->sym, 0) : arg_expr(l, args, 3);
    c->end = args[4].kind == VAL_none ? c->size : arg_expr(l, args, 4);
    c->step = arg_expr(l, args, 5);
    slice_bounds(l, c->size, &c->start, &c->end);
    const Expr **size = ARENA_ARRAY(l->arena, n, const Expr *);
    for (int i = 0; i < n; i++)
        size[i] = data_size(x->data)[i];
    size[c->dim] = sym_floordiv(
        l->sym,
        sym_add(l->sym, sym_sub(l->sym, c->end, c->start), sym_add_int(l->sym, c->step, -1)),
        c->step);
    src = expand_box(l, src, n, size);
    c->src = data_loader(l, src->data);
    c->zero = dtype_is_int(c->dtype) ? val_int(0) : val_float(0);
    return lv_box(pointwise_new(l, c->dtype, data_device(x->data), n, data_size(x->data),
                                (Fn){run_slice_scatter, c}));
}

// ---- writes

LVal lower_copy_(Lower *l, const Value *args, LoopOpKind kind) {
    Box *dst = arg_box(l, args, 0), *src = arg_box(l, args, 1);
    (void)kind;
    if (dst == src)
        return lv_box(dst);
    src = box_to_dtype(l, src, data_dtype(dst->data));
    src = expand_box(l, src, data_ndim(dst->data), data_size(dst->data));
    box_mutate(l, dst, src->data);
    return lv_box(dst);
}

LVal lower_copy(Lower *l, const Value *args, LoopOpKind kind) {
    Box *dst = arg_box(l, args, 0), *src = arg_box(l, args, 1);
    (void)kind;
    Box *x = box_to_dtype(l, src, data_dtype(dst->data));
    if (!data_same_size(l, x->data, dst->data))
        return lv_box(clone_box(l, expand_box(l, x, data_ndim(dst->data), data_size(dst->data))));
    return lv_box(clone_box(l, x));
}
