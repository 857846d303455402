// derive_resample.c: derivatives of upsampling, of sampling at a grid, and of grids.
#include "core/aot/derive.h"

// An upsampling op of n spatial dimensions: output size, align_corners where the mode has it, then
// a scale a dimension. Its backward op gets the input's size behind the output's.
static Value upsample_back(const Back *b, OpId backward) {
    const Op *op = op_at(backward);
    Value *args = ARENA_ARRAY(b->t->arena, op->n_args + 1, Value);
    args[0] = GRAD;
    args[1] = ARG(1);
    args[2] = sizes_arg(b->t, ARG(0));
    for (int i = 2; i < b->op->n_args; i++)
        args[i + 1] = ARG(i);
    return trace_dispatch(b->t, op, args);
}

// Of the backward op itself: upsampling again; it is linear.
static Value upsample_again(const Back *b, OpId forward) {
    const Op *op = op_at(forward);
    Value *args = ARENA_ARRAY(b->t->arena, op->n_args + 1, Value);
    args[0] = GRAD;
    args[1] = ARG(1);
    for (int i = 2; i < op->n_args; i++)
        args[i] = ARG(i + 1);
    return trace_dispatch(b->t, op, args);
}

#define UPSAMPLE(name)                                                                             \
    void derive_##name(Back *b) {                                                                  \
        OUT(0) = upsample_back(b, OP_aten_##name##_backward_default);                              \
    }                                                                                              \
    void derive_##name##_backward(Back *b) {                                                       \
        OUT(0) = upsample_again(b, OP_aten_##name##_default);                                      \
    }
UPSAMPLE(upsample_linear1d)
UPSAMPLE(upsample_bilinear2d)
UPSAMPLE(upsample_trilinear3d)
UPSAMPLE(upsample_bicubic2d)
UPSAMPLE(upsample_nearest1d)
UPSAMPLE(upsample_nearest2d)
UPSAMPLE(upsample_nearest3d)
UPSAMPLE(_upsample_nearest_exact1d)
UPSAMPLE(_upsample_nearest_exact2d)
UPSAMPLE(_upsample_nearest_exact3d)
UPSAMPLE(_upsample_bilinear2d_aa)
UPSAMPLE(_upsample_bicubic2d_aa)
#undef UPSAMPLE

// grids

static void grid_back(Back *b, OpId backward) {
    Value mask = list_of(b->t, BOOL(NEEDS(0)), BOOL(NEEDS(1)), END);
    Value r = trace_call(b->t, backward, GRAD, ARG(0), ARG(1), ARG(2), ARG(3), ARG(4), mask, END);
    OUT(0) = item_of(r, 0);
    OUT(1) = item_of(r, 1);
}

void derive_grid_sampler_2d(Back *b) {
    grid_back(b, OP_aten_grid_sampler_2d_backward_default);
}

void derive_grid_sampler_3d(Back *b) {
    grid_back(b, OP_aten_grid_sampler_3d_backward_default);
}

void derive_affine_grid(Back *b) {
    OUT(0) = CALL(b->t, aten_affine_grid_generator_backward_default, GRAD, ARG(1), ARG(2));
}
