// lower_cat.c: cat and what is made of it: inputs are written in place, into slices of the result.
// Source: torch/_inductor/lowering.py; ir.py ConcatKernel.
#include "core/inductor/lower.h"
#include "core/inductor/lowerings.h"
#include "core/record/fault.h"

#include <assert.h>

static LBuf *concat_part(Lower *l, Data *src, Data *dst) {
    const IrLayout *to = dst->layout;
    if (src->kind == D_store) {
        data_realize(l, src, "written into its place of a cat");
        if (src->buf->ir->layout->kind == IRL_flexible && !src->buf->is_extern_alloc) {
            IrLayout *y = layout_new(l, IRL_non_owning, to->device, to->dtype, to->ndim, to->size,
                                     to->stride, to->offset);
            src->buf->ir->layout = y;
            src->buf->target = dst->base->buf;
            return src->buf;
        }
    }
    Box *copy = clone_box(l, &(Box){src});
    return concat_part(l, copy->data, dst);
}

static bool any_channels_last(Lower *l, Box *const *in, int n, const Value *list) {
    bool any_storage = false;
    for (int i = 0; i < n; i++) {
        const IrLayout *y = data_layout(in[i]->data);
        any_storage |= y != NULL;
        if (y && y->kind == IRL_fixed && layout_is_channels_last(l, y->ndim, y->size, y->stride))
            return true;
    }
    for (int i = 0; i < n && !any_storage; i++) {
        const TensorMeta *m = arg_meta(l, &list->at[i]);
        if (m && m->stride && layout_is_channels_last(l, m->ndim, m->size, m->stride))
            return true;
    }
    return false;
}

static Box *concat(Lower *l, Box *const *in, int n, int dim, const Value *list) {
    Data *first = in[0]->data;
    int ndim = data_ndim(first);
    const Expr **size = ARENA_ARRAY(l->arena, ndim, const Expr *), *at = sym_int(l->sym, 0);
    for (int d = 0; d < ndim; d++)
        size[d] = data_size(first)[d];
    for (int i = 1; i < n; i++)
        size[dim] = sym_add(l->sym, size[dim], data_size(in[i]->data)[dim]);
    bool last = any_channels_last(l, in, n, list);
    const Expr **stride = last ? strides_channels_last(l, ndim, size) : NULL;
    LBuf *b = buffer_new(l, layout_new(l, IRL_fixed, data_device(first), data_dtype(first), ndim,
                                       size, stride, NULL));
    b->is_nop = true;
    b->ir->layout->as_tuple = last;
    Data *kernel = data_loops(l, NULL);
    kernel->buf = b;
    LBuf **parts = ARENA_ARRAY(l->arena, n, LBuf *);
    for (int i = 0; i < n; i++) {
        const Expr *end = sym_add(l->sym, at, data_size(in[i]->data)[dim]);
        Data *dst = view_slice(l, kernel, dim, at, end, sym_int(l->sym, 1), false);
        if (dst->kind != D_reinterpret)
            dst = view_strided(l, kernel, b->ir->layout);
        parts[i] = concat_part(l, in[i]->data, dst);
        at = end;
    }
    buffer_name(l, b, IR_concat);
    for (int i = 0; i < n; i++)
        vec_push(l->arena, &b->ir->op->reads_star, parts[i]->ir->name);
    return box_new(l, kernel);
}

LVal lower_cat(Lower *l, const Value *args, LoopOpKind kind) {
    LVal list = l_of(l, &args[0]);
    Box **in = ARENA_ARRAY(l->arena, list.n, Box *);
    DType *dt = ARENA_ARRAY(l->arena, list.n, DType), d = DT_none;
    int n = 0;
    bool bytes = true;
    (void)kind;
    for (int i = 0; i < list.n; i++)
        if (list.at[i].kind == L_box) {
            in[n] = list.at[i].box;
            dt[n] = data_dtype(in[n]->data);
            bytes = bytes && (dt[n] == DT_u8 || dt[n] == DT_i8);
            d = n ? dtype_promote(d, dt[n]) : dt[n];
            n++;
        }
    if (bytes)
        return lower_fallback(l, l->node->def, args);
    if (n == 1)
        return lv_box(clone_box(l, in[0]));
    for (int i = 0; i < n; i++)
        in[i] = box_to_dtype(l, in[i], d);
    if (data_same_size(l, in[0]->data, in[1]->data) &&
        fault(l->req->decisions, FAULT_cat_order, l->node->name)) {
        Box *first = in[0];
        in[0] = in[1];
        in[1] = first;
    }
    return lv_box(concat(l, in, n, arg_dim(l, args, 1, data_ndim(in[0]->data)), &args[0]));
}
