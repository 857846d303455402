// lower_scatter_view.c: writes into a view of a copy (as_strided_scatter, diagonal_scatter), and
// views of another dtype. Source: torch/_inductor/lowering.py.
#include "core/inductor/lower.h"
#include "core/inductor/lowerings.h"
#include "core/ops/meta.h"

// The source over the view of a copy of the whole, which is the result.
static LVal written_over(Lower *l, Box *whole, Data *view, Box *src) {
    src = box_to_dtype(l, src, data_dtype(whole->data));
    src = expand_box(l, src, data_ndim(view), data_size(view));
    data_write_into(l, src->data, view);
    return lv_box(whole);
}

LVal lower_as_strided_scatter(Lower *l, const Value *args, LoopOpKind kind) {
    int n = 0, n_stride = 0;
    const Expr **size = arg_exprs(l, &args[2], &n), **stride = arg_exprs(l, &args[3], &n_stride);
    const Expr *first = first_offset(l, l->node), *offset = sym_int(l->sym, 0);
    const TensorMeta *m = node_meta(l, l->node->args[0].node);
    (void)kind;
    // A copy has no gaps: what is addressed by strides over gaps is not where it was.
    MetaCtx c = {.arena = l->arena, .sym = l->sym};
    if (n != n_stride || !m || !meta_is_dense(&c, m))
        return lower_fallback(l, l->node->def, args);
    Box *whole = clone_box(l, arg_box(l, args, 0)), *src = arg_box(l, args, 1);
    if (args[4].kind != VAL_none)
        offset = sym_sub(l->sym, arg_expr(l, args, 4), first);
    data_realize(l, whole->data, "as_strided");
    buf_decide(l, whole->data->buf);
    const IrLayout *y = whole->data->buf->ir->layout;
    IrLayout *view = layout_new(l, IRL_fixed, y->device, y->dtype, n, size, stride, offset);
    return written_over(l, whole, view_strided(l, whole->data, view), src);
}

LVal lower_diagonal_scatter(Lower *l, const Value *args, LoopOpKind kind) {
    Box *whole = clone_box(l, arg_box(l, args, 0)), *src = arg_box(l, args, 1);
    int n = data_ndim(whole->data);
    int64_t d1 = arg_int(l, args, 3), d2 = arg_int(l, args, 4);
    (void)kind;
    data_realize(l, whole->data, "written in place");
    buf_decide(l, whole->data->buf);
    Data *view = diagonal_data(l, whole->data, arg_int(l, args, 2), (int)(d1 < 0 ? d1 + n : d1),
                               (int)(d2 < 0 ? d2 + n : d2));
    return written_over(l, whole, view, src);
}

// ---- the same bits as another dtype

typedef struct BitsCtx {
    Fn in;
    DType to, from;
} BitsCtx;

static TVal run_bits(Tracer *t, const void *ctx, Index idx, Index red) {
    const BitsCtx *c = ctx;
    (void)red;
    return t_bitcast(t, t_call(t, c->in, idx, NULL), c->to, c->from);
}

LVal lower_view_dtype(Lower *l, const Value *args, LoopOpKind kind) {
    Box *x = arg_box(l, args, 0);
    DType from = data_dtype(x->data), to = args[1].kind == VAL_dtype ? args[1].dtype : from;
    (void)kind;
    if (from == to)
        return lv_box(x);
    if (dtype_info[from].bytes != dtype_info[to].bytes)
        return lower_fallback(l, l->node->def, args);
    if (is_storage_and_layout(x->data) && x->data->kind != D_view) {
        Data *store = data_unwrap(x->data);
        if (x->data->kind == D_store)
            buf_freeze(l, store->buf);
        const IrLayout *y = data_layout(x->data);
        IrLayout *as = layout_new(l, IRL_fixed, y->device, to, y->ndim, y->size, y->stride,
                                  layout_offset(l, y));
        return lv_box(box_new(l, view_strided(l, store, as)));
    }
    BitsCtx *c = ARENA_NEW(l->arena, BitsCtx);
    *c = (BitsCtx){data_loader(l, x->data), to, from};
    return lv_box(pointwise_new(l, to, data_device(x->data), data_ndim(x->data), data_size(x->data),
                                (Fn){run_bits, c}));
}
