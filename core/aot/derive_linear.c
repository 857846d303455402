// derive_linear.c: derivatives of matrix and vector products.
#include "core/aot/derive.h"

static Value flipped(Trace *t, Value x) {
    return CALL(t, aten_t_default, x);
}

static Value batch_flipped(Trace *t, Value x) {
    return CALL(t, aten_transpose_int, x, INT(1), INT(2));
}

// Is the matrix laid out by columns, as a transposed one is? Its gradient is then made so, too.
static bool is_column_major(Trace *t, Value x) {
    const TensorMeta *m = meta_of(x);
    return m && m->ndim == 2 && expr_known_is(t, m->stride[0], 1) &&
           sym_known_eq(t->sym, m->stride[1], m->size[0]);
}

static Value mm_left_grad(Trace *t, Value grad, Value right, Value left, Value alpha) {
    if (is_column_major(t, left)) {
        Value r = CALL(t, aten_mm_default, right, flipped(t, grad));
        return maybe_multiply(t, flipped(t, r), alpha);
    }
    return maybe_multiply(t, CALL(t, aten_mm_default, grad, flipped(t, right)), alpha);
}

static Value mm_right_grad(Trace *t, Value grad, Value left, Value right, Value alpha) {
    if (is_column_major(t, right)) {
        Value r = CALL(t, aten_mm_default, flipped(t, grad), left);
        return maybe_multiply(t, flipped(t, r), alpha);
    }
    return maybe_multiply(t, CALL(t, aten_mm_default, flipped(t, left), grad), alpha);
}

void derive_mm(Back *b) {
    if (NEEDS(1))
        OUT(1) = mm_right_grad(b->t, GRAD, ARG(0), ARG(1), INT(1));
    if (NEEDS(0))
        OUT(0) = mm_left_grad(b->t, GRAD, ARG(1), ARG(0), INT(1));
}

void derive_addmm(Back *b) {
    Trace *t = b->t;
    if (NEEDS(1))
        OUT(1) = mm_left_grad(t, GRAD, ARG(2), ARG(1), ARG(4));
    if (NEEDS(2))
        OUT(2) = mm_right_grad(t, GRAD, ARG(1), ARG(2), ARG(4));
    if (NEEDS(0))
        OUT(0) = maybe_multiply(t, GRAD, ARG(3));
}

void derive_bmm(Back *b) {
    Trace *t = b->t;
    if (NEEDS(1))
        OUT(1) = CALL(t, aten_bmm_default, batch_flipped(t, ARG(0)), GRAD);
    if (NEEDS(0))
        OUT(0) = CALL(t, aten_bmm_default, GRAD, batch_flipped(t, ARG(1)));
}

void derive_baddbmm(Back *b) {
    Trace *t = b->t;
    if (NEEDS(1))
        OUT(1) =
            maybe_multiply(t, CALL(t, aten_bmm_default, GRAD, batch_flipped(t, ARG(2))), ARG(4));
    if (NEEDS(2))
        OUT(2) =
            maybe_multiply(t, CALL(t, aten_bmm_default, batch_flipped(t, ARG(1)), GRAD), ARG(4));
    if (NEEDS(0))
        OUT(0) = maybe_multiply(t, GRAD, ARG(3));
}

// The one gradient of a sum over the batch, seen by each of its members.
static Value for_each_batch(Trace *t, Value grad, Value batch1, Value batch2) {
    Value size = list_of(t, val_sym(size_of(t, batch1, 0)), val_sym(size_of(t, batch1, 1)),
                         val_sym(size_of(t, batch2, 2)), END);
    return CALL(t, aten_expand_default, CALL(t, aten_unsqueeze_default, grad, INT(0)), size);
}

void derive_addbmm(Back *b) {
    Trace *t = b->t;
    if (NEEDS(1)) {
        Value grad = for_each_batch(t, GRAD, ARG(1), ARG(2));
        OUT(1) =
            maybe_multiply(t, CALL(t, aten_bmm_default, grad, batch_flipped(t, ARG(2))), ARG(4));
    }
    if (NEEDS(2)) {
        Value left = batch_flipped(t, ARG(1));
        Value grad = for_each_batch(t, GRAD, ARG(1), ARG(2));
        OUT(2) = maybe_multiply(t, CALL(t, aten_bmm_default, left, grad), ARG(4));
    }
    if (NEEDS(0))
        OUT(0) = maybe_multiply(t, GRAD, ARG(3));
}

void derive_mv(Back *b) {
    Trace *t = b->t;
    if (NEEDS(0))
        OUT(0) = CALL(t, aten_ger_default, GRAD, ARG(1));
    if (NEEDS(1))
        OUT(1) = CALL(t, aten_mv_default, flipped(t, ARG(0)), GRAD);
}

void derive_addmv(Back *b) {
    Trace *t = b->t;
    if (NEEDS(1))
        OUT(1) = maybe_multiply(t, CALL(t, aten_ger_default, GRAD, ARG(2)), ARG(4));
    if (NEEDS(0))
        OUT(0) = maybe_multiply(t, GRAD, ARG(3));
    if (NEEDS(2))
        OUT(2) = maybe_multiply(t, CALL(t, aten_mv_default, flipped(t, ARG(1)), GRAD), ARG(4));
}

void derive_addr(Back *b) {
    Trace *t = b->t;
    if (NEEDS(0))
        OUT(0) = maybe_multiply(t, GRAD, ARG(3));
    if (NEEDS(1))
        OUT(1) = maybe_multiply(t, CALL(t, aten_mv_default, GRAD, ARG(2)), ARG(4));
    if (NEEDS(2))
        OUT(2) = maybe_multiply(t, CALL(t, aten_mv_default, flipped(t, GRAD), ARG(1)), ARG(4));
}

void derive_dot(Back *b) {
    if (NEEDS(0))
        OUT(0) = CALL(b->t, aten_mul_Tensor, GRAD, ARG(1));
    if (NEEDS(1))
        OUT(1) = CALL(b->t, aten_mul_Tensor, GRAD, ARG(0));
}

void derive_vdot(Back *b) {
    if (NEEDS(1))
        OUT(1) = CALL(b->t, aten_mul_Tensor, GRAD, ARG(0));
    if (NEEDS(0))
        OUT(0) = CALL(b->t, aten_mul_Tensor, GRAD, ARG(1));
}

// Sums over `sumdim` of i1 * i2 * i3, each first unsqueezed where it has no dimension: every factor
// takes the place of the result once.
void derive_trilinear(Back *b) {
    Trace *t = b->t;
    Value e1 = ARG(3), e2 = ARG(4), e3 = ARG(5), sum = ARG(6);
    if (NEEDS(0))
        OUT(0) = CALL(t, aten__trilinear_default, GRAD, ARG(1), ARG(2), sum, e2, e3, e1);
    if (NEEDS(1))
        OUT(1) = CALL(t, aten__trilinear_default, ARG(0), GRAD, ARG(2), e1, sum, e3, e2);
    if (NEEDS(2))
        OUT(2) = CALL(t, aten__trilinear_default, ARG(0), ARG(1), GRAD, e1, e2, sum, e3);
}

void derive_cross(Back *b) {
    if (NEEDS(1))
        OUT(1) = CALL(b->t, aten_linalg_cross_default, GRAD, ARG(0), ARG(2));
    if (NEEDS(0))
        OUT(0) = CALL(b->t, aten_linalg_cross_default, ARG(1), GRAD, ARG(2));
}

// distances of rows

void derive_cdist(Back *b) {
    Trace *t = b->t;
    if (NEEDS(0)) {
        Value grad = contiguous(t, GRAD, MF_contiguous);
        OUT(0) = CALL(t, aten__cdist_backward_default, grad, ARG(0), ARG(1), ARG(2), RES(0));
    }
    if (NEEDS(1)) { // C++ evaluates the last argument first
        Value dist = contiguous(t, CALL(t, aten_mT_default, RES(0)), MF_contiguous);
        Value grad = contiguous(t, CALL(t, aten_mT_default, GRAD), MF_contiguous);
        OUT(1) = CALL(t, aten__cdist_backward_default, grad, ARG(1), ARG(0), ARG(2), dist);
    }
}

void derive_pdist(Back *b) {
    OUT(0) = CALL(b->t, aten__pdist_backward_default, GRAD, ARG(0), ARG(1), RES(0));
}

// Where the distance is 0 the ratio is made 0: a subgradient.
void derive_euclidean_dist(Back *b) {
    Trace *t = b->t;
    Value last = list_of(t, INT(-1), END), rows = list_of(t, INT(-2), END);
    Value ratio = CALL(t, aten_div_Tensor, GRAD, RES(0));
    Value same = CALL(t, aten_eq_Scalar, RES(0), INT(0));
    ratio = CALL(t, aten_masked_fill__Scalar, ratio, same, INT(0));
    Value pull = CALL(t, aten_matmul_default, ratio, ARG(1));
    Value own = CALL(t, aten_sum_dim_IntList, ratio, last, BOOL(true));
    OUT(0) = CALL(t, aten_sub_Tensor, CALL(t, aten_mul_Tensor, ARG(0), own), pull);
    pull = CALL(t, aten_matmul_default, CALL(t, aten_mT_default, ratio), ARG(0));
    own = CALL(t, aten_sum_dim_IntList, ratio, rows, BOOL(false));
    own = CALL(t, aten_unsqueeze_default, own, INT(-1));
    OUT(1) = CALL(t, aten_sub_Tensor, CALL(t, aten_mul_Tensor, ARG(1), own), pull);
}
