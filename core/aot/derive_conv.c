// derive_conv.c: derivatives of convolutions, of windows unfolded into columns, and of pooling.
#include "core/aot/derive.h"

static Value mask_of(const Back *b, int n) {
    Value list = val_list(b->t->arena, VAL_list, n);
    for (int i = 0; i < n; i++)
        list.at[i] = BOOL(NEEDS(i));
    return list;
}

// convolution and _convolution, which goes on with flags of the CUDA library. An absent bias has
// the sizes of a tensor without a shape: [0].
void derive_convolution(Back *b) {
    Trace *t = b->t;
    Value bias = ARG(2).kind == VAL_tensor ? sizes_arg(t, ARG(2)) : list_of(t, INT(0), END);
    Value r = CALL(t, aten_convolution_backward_default, GRAD, ARG(0), ARG(1), bias, ARG(3), ARG(4),
                   ARG(5), ARG(6), ARG(7), ARG(8), mask_of(b, 3));
    for (int i = 0; i < 3; i++)
        OUT(i) = item_of(r, i);
}

void derive_col2im(Back *b) {
    OUT(0) = CALL(b->t, aten_im2col_default, GRAD, ARG(2), ARG(3), ARG(4), ARG(5));
}

void derive_im2col(Back *b) {
    Trace *t = b->t;
    Value size = list_of(t, val_sym(size_of(t, ARG(0), -2)), val_sym(size_of(t, ARG(0), -1)), END);
    OUT(0) = CALL(t, aten_col2im_default, GRAD, size, ARG(1), ARG(2), ARG(3), ARG(4));
}

// averages

void derive_avg_pool2d(Back *b) {
    OUT(0) = CALL(b->t, aten_avg_pool2d_backward_default, GRAD, ARG(0), ARG(1), ARG(2), ARG(3),
                  ARG(4), ARG(5), ARG(6));
}

void derive_avg_pool3d(Back *b) {
    OUT(0) = CALL(b->t, aten_avg_pool3d_backward_default, GRAD, ARG(0), ARG(1), ARG(2), ARG(3),
                  ARG(4), ARG(5), ARG(6));
}

void derive_adaptive_avg_pool2d(Back *b) {
    OUT(0) = CALL(b->t, aten__adaptive_avg_pool2d_backward_default, GRAD, ARG(0));
}

void derive_adaptive_avg_pool3d(Back *b) {
    OUT(0) = CALL(b->t, aten__adaptive_avg_pool3d_backward_default, GRAD, ARG(0));
}

// Of the backward ops themselves: the gradient is averaged as the input was.
static void like_self(Back *b) {
    if (NEEDS(1))
        OUT(1) = zeros_like(b->t, ARG(1));
}

void derive_avg_pool2d_backward(Back *b) {
    if (NEEDS(0))
        OUT(0) = CALL(b->t, aten_avg_pool2d_default, GRAD, ARG(2), ARG(3), ARG(4), ARG(5), ARG(6),
                      ARG(7));
    like_self(b);
}

void derive_avg_pool3d_backward(Back *b) {
    if (NEEDS(0))
        OUT(0) = CALL(b->t, aten_avg_pool3d_default, GRAD, ARG(2), ARG(3), ARG(4), ARG(5), ARG(6),
                      ARG(7));
    like_self(b);
}

// The last n sizes of x.
static Value last_sizes(Trace *t, Value x, int n) {
    Value list = val_list(t->arena, VAL_list, n);
    for (int i = 0; i < n; i++)
        list.at[i] = val_sym(size_of(t, x, i - n));
    return list;
}

void derive_adaptive_avg_pool2d_backward(Back *b) {
    if (NEEDS(0))
        OUT(0) = CALL(b->t, aten__adaptive_avg_pool2d_default, GRAD, last_sizes(b->t, ARG(0), 2));
    like_self(b);
}

void derive_adaptive_avg_pool3d_backward(Back *b) {
    if (NEEDS(0))
        OUT(0) = CALL(b->t, aten__adaptive_avg_pool3d_default, GRAD, last_sizes(b->t, ARG(0), 3));
    like_self(b);
}

// maxima

void derive_max_pool2d(Back *b) {
    OUT(0) = CALL(b->t, aten_max_pool2d_with_indices_backward_default, GRAD, ARG(0), ARG(1), ARG(2),
                  ARG(3), ARG(4), ARG(5), RES(1));
}

void derive_max_pool3d(Back *b) {
    OUT(0) = CALL(b->t, aten_max_pool3d_with_indices_backward_default, GRAD, ARG(0), ARG(1), ARG(2),
                  ARG(3), ARG(4), ARG(5), RES(1));
}

void derive_adaptive_max_pool2d(Back *b) {
    OUT(0) = CALL(b->t, aten_adaptive_max_pool2d_backward_default, GRAD, ARG(0), RES(1));
}

void derive_adaptive_max_pool3d(Back *b) {
    OUT(0) = CALL(b->t, aten_adaptive_max_pool3d_backward_default, GRAD, ARG(0), RES(1));
}

void derive_fractional_max_pool2d(Back *b) {
    OUT(0) = CALL(b->t, aten_fractional_max_pool2d_backward_default, GRAD, ARG(0), ARG(1), ARG(2),
                  RES(1));
}

void derive_fractional_max_pool3d(Back *b) {
    OUT(0) = CALL(b->t, aten_fractional_max_pool3d_backward_default, GRAD, ARG(0), ARG(1), ARG(2),
                  RES(1));
}

// The gradient's elements at the places that `indices` names in the last n dimensions, flattened.
static Value gathered(Trace *t, Value grad, Value indices, int n) {
    const TensorMeta *m = meta_of(indices);
    if (!m || t->failed)
        return NONE;
    if (expr_guard_is(t, meta_numel(t->sym, m), 0))
        return CALL(t, aten_empty_like_default, indices, DTY(dtype_of(grad)));
    Value flat = val_list(t->arena, VAL_list, m->ndim - n + 1);
    for (int i = 0; i < flat.n; i++)
        flat.at[i] = i < m->ndim - n ? val_sym(m->size[i]) : INT(-1);
    Value places = CALL(t, aten_view_default, indices, flat);
    Value x = contiguous(t, grad, suggest_memory_format(t, indices));
    x = CALL(t, aten_view_default, x, flat);
    x = CALL(t, aten_gather_default, x, INT(-1), places);
    return CALL(t, aten_view_default, x, sizes_arg(t, indices));
}

void derive_max_unpool2d(Back *b) {
    OUT(0) = gathered(b->t, GRAD, ARG(1), 2);
}

void derive_max_unpool3d(Back *b) {
    OUT(0) = gathered(b->t, GRAD, ARG(1), 3);
}

static Value indices_of(const Back *b) {
    for (int i = b->op->n_args - 1; i > 1; i--)
        if (ARG(i).kind == VAL_tensor)
            return ARG(i);
    return NONE;
}

void derive_max_pool2d_backward(Back *b) {
    if (NEEDS(0))
        OUT(0) = gathered(b->t, GRAD, indices_of(b), 2);
    like_self(b);
}

void derive_max_pool3d_backward(Back *b) {
    if (NEEDS(0))
        OUT(0) = gathered(b->t, GRAD, indices_of(b), 3);
    like_self(b);
}
