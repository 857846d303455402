// derive_linear.c: derivatives of matrix products.
#include "core/aot/derive.h"

// Is the matrix laid out by columns, as a transposed one is?
static bool is_column_major(Trace *t, const TensorMeta *m) {
    return expr_known_is(t, m->stride[0], 1) && m->stride[1] == m->size[0];
}

static Value mm_mat1_grad(Trace *t, Value grad, Value mat2, Value mat1, Value alpha) {
    if (is_column_major(t, meta_of(mat1)))
        return maybe_multiply(
            t, CALL(t, aten_t_default, CALL(t, aten_mm_default, mat2, CALL(t, aten_t_default, grad))),
            alpha);
    return maybe_multiply(t, CALL(t, aten_mm_default, grad, CALL(t, aten_t_default, mat2)), alpha);
}

static Value mm_mat2_grad(Trace *t, Value grad, Value mat1, Value mat2, Value alpha) {
    if (is_column_major(t, meta_of(mat2)))
        return maybe_multiply(
            t, CALL(t, aten_t_default, CALL(t, aten_mm_default, CALL(t, aten_t_default, grad), mat1)),
            alpha);
    return maybe_multiply(t, CALL(t, aten_mm_default, CALL(t, aten_t_default, mat1), grad), alpha);
}

void derive_addmm(Back *b) {
    Trace *t = b->t;
    if (NEEDS(0))
        OUT(0) = maybe_multiply(t, GRAD, ARG(3));
    if (NEEDS(1))
        OUT(1) = mm_mat1_grad(t, GRAD, ARG(2), ARG(1), ARG(4));
    if (NEEDS(2))
        OUT(2) = mm_mat2_grad(t, GRAD, ARG(1), ARG(2), ARG(4));
}
