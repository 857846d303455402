// derive_linalg.c: derivatives of factorizations, inverses and solvers, of real matrices. With X^T
// for the transpose of the last two dimensions, gX for the gradient of X, and tril, triu for the
// parts below and above the diagonal.
#include "core/aot/derive.h"

static Value neg(Trace *t, Value x) {
    return CALL(t, aten_neg_default, x);
}

static Value sub(Trace *t, Value a, Value b) {
    return !defined(b) ? a : defined(a) ? CALL(t, aten_sub_Tensor, a, b) : neg(t, b);
}

static Value lower(Trace *t, Value x, int diagonal) {
    return CALL(t, aten_tril_default, x, INT(diagonal));
}

static Value upper(Trace *t, Value x, int diagonal) {
    return CALL(t, aten_triu_default, x, INT(diagonal));
}

static Value diagonal(Trace *t, Value x) {
    return CALL(t, aten_diagonal_default, x, INT(0), INT(-2), INT(-1));
}

static Value on_diagonal(Trace *t, Value x) {
    return CALL(t, aten_diag_embed_default, x);
}

// The first n of the last dimension (-1) or of the one before (-2).
static Value firsts(Trace *t, Value x, int dim, const Expr *n) {
    return CALL(t, aten_slice_Tensor, x, INT(dim), INT(0), val_sym(n));
}

static Value rests(Trace *t, Value x, int dim, const Expr *n) {
    return CALL(t, aten_slice_Tensor, x, INT(dim), val_sym(n));
}

static Value joined(Trace *t, Value a, Value b, int dim) {
    return CALL(t, aten_cat_default, list_of(t, a, b, END), INT(dim));
}

enum { FROM_left = 1, IS_upper = 2, IS_unit = 4 };
static Value solve_triangular(Trace *t, Value a, Value b, int how) {
    return CALL(t, aten_linalg_solve_triangular_default, a, b, BOOL(how & IS_upper),
                BOOL(how & FROM_left), BOOL(how & IS_unit));
}

// Are there no more columns than rows?
static bool is_tall(Trace *t, Value x) {
    return expr_guard(t, sym_cmp(t->sym, SYM_ge, size_of(t, x, -2), size_of(t, x, -1)));
}

static bool is_square(Trace *t, Value x) {
    return expr_guard(t, sym_cmp(t->sym, SYM_eq, size_of(t, x, -2), size_of(t, x, -1)));
}

// Cholesky: A = L L^T

// L^-T S L^-1 with S the symmetric matrix of tril(L^T gL), halved.
static Value cholesky_grad(Trace *t, Value grad, Value factor, bool is_upper) {
    Value l = is_upper ? mT(t, factor) : factor, g = is_upper ? mT(t, grad) : grad;
    Value phi = matmul(t, mT(t, l), g);
    Value s = CALL(t, aten_add_Tensor, lower(t, phi, 0), mT(t, lower(t, phi, -1)));
    s = CALL(t, aten_mul_Scalar, s, FLT(0.5));
    s = solve_triangular(t, mT(t, l), s, FROM_left | IS_upper);
    return solve_triangular(t, l, s, 0);
}

void derive_cholesky(Back *b) {
    OUT(0) = cholesky_grad(b->t, GRAD, RES(0), bool_arg(&ARG(1)));
}

// -X times L from the side where the triangle is.
static Value through_factor(Trace *t, Value common, Value factor, bool is_upper) {
    common = CALL(t, aten_add_Tensor, common, mT(t, common));
    return neg(t, is_upper ? matmul(t, factor, common) : matmul(t, common, factor));
}

void derive_cholesky_inverse(Back *b) {
    Trace *t = b->t;
    Value common = CALL(t, aten_add_Tensor, GRAD, mT(t, GRAD));
    common = matmul(t, RES(0), matmul(t, common, RES(0)));
    Value r = bool_arg(&ARG(1)) ? matmul(t, ARG(0), common) : matmul(t, common, ARG(0));
    OUT(0) = neg(t, r);
}

void derive_cholesky_solve(Back *b) {
    Trace *t = b->t;
    Value grad = CALL(t, aten_cholesky_solve_default, GRAD, ARG(1), ARG(2));
    OUT(0) = grad;
    if (NEEDS(1))
        OUT(1) = through_factor(t, matmul(t, grad, mT(t, RES(0))), ARG(1), bool_arg(&ARG(2)));
}

// LU: A = P L U

// P L^-T (tril(L^T gL, -1) + triu(gU U^T)) U^-T, of a square A; without P.
static Value lu_square(Trace *t, Value s, Value l, Value u) {
    s = solve_triangular(t, mT(t, u), s, 0);
    return solve_triangular(t, mT(t, l), s, FROM_left | IS_upper | IS_unit);
}

// The rows below a square L: A2 = L2 U1, so gA2 = gL2 U^-T, and gU loses L2^T gA2.
static Value lu_tall(Trace *t, Value gl, Value gu, Value l, Value u) {
    const Expr *k = size_of(t, u, -1);
    Value l1 = firsts(t, l, -2, k), l2 = rests(t, l, -2, k), s = NONE, below;
    if (defined(gl)) {
        Value g2 = rests(t, gl, -2, k);
        s = lower(t, matmul(t, mT(t, l1), firsts(t, gl, -2, k)), -1);
        s = sub(t, s, upper(t, matmul(t, mT(t, l2), g2), 0));
        below = solve_triangular(t, mT(t, u), g2, 0);
    } else {
        below = zeros_like(t, l2);
    }
    if (defined(gu))
        s = plus(t, s, upper(t, matmul(t, gu, mT(t, u)), 0));
    return joined(t, lu_square(t, s, l1, u), below, -2);
}

// The columns beside a square U: A2 = L U2, so gA2 = L^-T gU2, and gL loses gA2 U2^T.
static Value lu_wide(Trace *t, Value gl, Value gu, Value l, Value u) {
    const Expr *k = size_of(t, l, -1);
    Value u1 = firsts(t, u, -1, k), u2 = rests(t, u, -1, k), s = NONE, beside;
    if (defined(gl))
        s = lower(t, matmul(t, mT(t, l), gl), -1);
    if (defined(gu)) {
        Value g2 = rests(t, gu, -1, k);
        s = sub(t, s, lower(t, matmul(t, g2, mT(t, u2)), -1));
        s = plus(t, s, upper(t, matmul(t, firsts(t, gu, -1, k), mT(t, u1)), 0));
        beside = solve_triangular(t, mT(t, l), g2, FROM_left | IS_upper | IS_unit);
    } else {
        beside = zeros_like(t, u2);
    }
    return joined(t, lu_square(t, s, l, u1), beside, -1);
}

static Value lu_grad(Trace *t, Value gl, Value gu, Value p, Value l, Value u) {
    Value r;
    if (is_square(t, l) && is_square(t, u)) {
        Value s = defined(gl) ? lower(t, matmul(t, mT(t, l), gl), -1) : NONE;
        if (defined(gu))
            s = plus(t, s, upper(t, matmul(t, gu, mT(t, u)), 0));
        r = lu_square(t, s, l, u);
    } else {
        r = is_square(t, u) ? lu_tall(t, gl, gu, l, u) : lu_wide(t, gl, gu, l, u);
    }
    return defined(p) ? matmul(t, p, r) : r;
}

void derive_lu(Back *b) {
    Value p = bool_arg(&ARG(1)) ? RES(0) : NONE;
    if (defined(GRADS(1)) || defined(GRADS(2)))
        OUT(0) = lu_grad(b->t, GRADS(1), GRADS(2), p, RES(1), RES(2));
}

void derive_lu_factor(Back *b) {
    Trace *t = b->t;
    bool pivot = bool_arg(&ARG(1));
    Value f = CALL(t, aten_lu_unpack_default, RES(0), RES(1), BOOL(true), BOOL(pivot));
    Value l = item_of(f, 1), u = item_of(f, 2);
    Value gl = firsts(t, GRAD, -1, size_of(t, l, -1)), gu = firsts(t, GRAD, -2, size_of(t, u, -2));
    OUT(0) = lu_grad(t, gl, gu, pivot ? item_of(f, 0) : NONE, l, u);
}

// x with zeros up to n rows (-2) or columns (-1).
static Value grown(Trace *t, Value x, int dim, const Expr *n) {
    const Expr *more = sym_sub(t->sym, n, size_of(t, x, dim));
    if (expr_known_is(t, more, 0))
        return x;
    Value pad = dim == -1 ? list_of(t, INT(0), val_sym(more), END)
                          : list_of(t, INT(0), INT(0), INT(0), val_sym(more), END);
    return CALL(t, aten_constant_pad_nd_default, x, pad);
}

void derive_lu_unpack(Back *b) {
    Trace *t = b->t;
    const Expr *rows = size_of(t, ARG(0), -2), *columns = size_of(t, ARG(0), -1);
    Value r = NONE;
    if (defined(GRADS(1)))
        r = grown(t, lower(t, GRADS(1), -1), -1, columns);
    if (defined(GRADS(2)))
        r = plus(t, r, grown(t, upper(t, GRADS(2), 0), -2, rows));
    OUT(0) = r;
}

// op(A) X = B or X op(A) = B, op the transpose if `adjoint`.
static Value lu_solve_factor_grad(Back *b, bool left, bool adjoint) {
    Trace *t = b->t;
    Value f = CALL(t, aten_lu_unpack_default, ARG(0), ARG(1), BOOL(true), BOOL(left == adjoint));
    Value p = item_of(f, 0), l = item_of(f, 1), u = item_of(f, 2), x = RES(0), g = GRAD;
    if (left != adjoint) {
        Value r = left ? matmul(t, neg(t, g), mT(t, x)) : matmul(t, neg(t, mT(t, g)), x);
        r = solve_triangular(t, mT(t, u), r, FROM_left);
        Value gl =
            solve_triangular(t, mT(t, l), matmul(t, r, mT(t, u)), FROM_left | IS_upper | IS_unit);
        return CALL(t, aten_add_Tensor, lower(t, gl, -1), upper(t, r, 0));
    }
    Value r = matmul(t, neg(t, mT(t, p)), left ? x : mT(t, x));
    r = matmul(t, matmul(t, r, left ? mT(t, g) : g), p);
    r = solve_triangular(t, mT(t, l), r, IS_upper | IS_unit);
    Value gu = solve_triangular(t, mT(t, u), matmul(t, mT(t, l), r), 0);
    return CALL(t, aten_add_Tensor, lower(t, r, -1), upper(t, gu, 0));
}

void derive_lu_solve(Back *b) {
    bool left = bool_arg(&ARG(3)), adjoint = bool_arg(&ARG(4));
    if (NEEDS(2))
        OUT(2) = CALL(b->t, aten_linalg_lu_solve_default, ARG(0), ARG(1), GRAD, BOOL(left),
                      BOOL(!adjoint));
    if (NEEDS(0))
        OUT(0) = lu_solve_factor_grad(b, left, adjoint);
}

// determinants

// det(A) A^-T gDet. A singular A has its zero pivots replaced by eps.
void derive_det(Back *b) {
    Trace *t = b->t;
    const TensorMeta *m = meta_of(ARG(0));
    double eps = m->dtype == DT_f64 ? 2.220446049250313e-16 : 1.1920928955078125e-07;
    Value zero = CALL(t, aten_eq_Scalar, diagonal(t, RES(1)), FLT(0));
    Value fix = CALL(t, aten_where_Scalar, zero, FLT(eps), FLT(0));
    Value lu = CALL(t, aten_add_Tensor, RES(1), on_diagonal(t, to_dtype(t, fix, m->dtype)));
    // The factors are those of A^T if A is contiguous.
    bool turned = meta_is_contiguous(t->sym, m, MF_contiguous);
    Value d = column(t, times(t, GRAD, RES(0)));
    d = on_diagonal(t, CALL(t, aten_expand_default, d, sizes_arg(t, RES(2))));
    OUT(0) = CALL(t, aten_linalg_lu_solve_default, lu, RES(2), d, BOOL(true), BOOL(!turned));
}

// A^-T gLog; the sign is constant.
void derive_slogdet(Back *b) {
    Trace *t = b->t;
    if (!defined(GRADS(1)))
        return;
    bool turned = meta_is_contiguous(t->sym, meta_of(ARG(0)), MF_contiguous);
    Value d =
        on_diagonal(t, CALL(t, aten_expand_default, column(t, GRADS(1)), sizes_arg(t, RES(3))));
    OUT(0) = CALL(t, aten_linalg_lu_solve_default, RES(2), RES(3), d, BOOL(true), BOOL(!turned));
}

// inverses and solvers

void derive_inv(Back *b) {
    Trace *t = b->t;
    Value inverse = mT(t, RES(0));
    OUT(0) = neg(t, matmul(t, inverse, matmul(t, GRAD, inverse)));
}

// Golub and Pereyra: of P = A^+, by whichever side is the smaller.
static Value pinv_grad(Trace *t, Value grad, Value p, Value a) {
    Value pt = mT(t, p), gt = mT(t, grad);
    if (!is_tall(t, a) || is_square(t, a)) {
        Value k = matmul(t, gt, p), kpt = matmul(t, k, pt);
        Value r = sub(t, kpt, mT(t, matmul(t, p, k)));
        r = sub(t, r, matmul(t, matmul(t, a, p), kpt));
        Value rest = sub(t, gt, matmul(t, k, a));
        return plus(t, r, matmul(t, matmul(t, pt, p), rest));
    }
    Value k = matmul(t, p, gt), ptk = matmul(t, pt, k);
    Value r = sub(t, ptk, mT(t, matmul(t, k, p)));
    Value rest = sub(t, gt, matmul(t, a, k));
    r = plus(t, r, matmul(t, matmul(t, rest, p), pt));
    return sub(t, r, matmul(t, matmul(t, ptk, p), a));
}

void derive_pinv(Back *b) {
    OUT(0) = pinv_grad(b->t, GRAD, RES(0), ARG(0));
}

// Is B a vector, or a batch of vectors, to A's batch of matrices?
static bool is_vector_rhs(Trace *t, Value a, Value x) {
    int n = dim_of(a);
    if (dim_of(x) == 1)
        return true;
    bool same = dim_of(x) == n - 1;
    for (int i = 0; i < n - 1 && same; i++)
        same = sym_known_eq(t->sym, size_of(t, a, i), size_of(t, x, i));
    return same;
}

void derive_solve(Back *b) {
    Trace *t = b->t;
    bool left = bool_arg(&ARG(2)), vector = is_vector_rhs(t, RES(1), RES(0));
    Value g = vector ? column(t, GRAD) : GRAD;
    g = CALL(t, aten_linalg_lu_solve_default, RES(1), RES(2), g, BOOL(left), BOOL(true));
    if (NEEDS(0)) {
        Value x = mT(t, vector ? column(t, RES(0)) : RES(0));
        OUT(0) = left ? matmul(t, neg(t, g), x) : matmul(t, neg(t, x), g);
    }
    if (NEEDS(1))
        OUT(1) = vector ? CALL(t, aten_squeeze_dim, g, INT(-1)) : g;
}

// X = A^+ B; the residuals, if there are any, are the sums of squares of R = A X - B, on which A
// has no influence through X, as R is orthogonal to A.
void derive_lstsq(Back *b) {
    Trace *t = b->t;
    Value a = ARG(0), rhs = ARG(1), x = RES(0), gx = GRADS(0), ga = NONE, gb = NONE;
    bool vector = dim_of(rhs) == dim_of(a) - 1;
    if (vector) {
        rhs = column(t, rhs);
        x = column(t, x);
        gx = defined(gx) ? column(t, gx) : gx;
    }
    if (defined(gx)) {
        Value p = CALL(t, aten_linalg_pinv_atol_rtol_tensor, a);
        ga = NEEDS(0) ? pinv_grad(t, matmul(t, gx, mT(t, rhs)), p, a) : NONE;
        gb = matmul(t, mT(t, p), gx);
    }
    if (defined(GRADS(1)) && !expr_guard_is(t, meta_numel(t->sym, GRADS(1).tensor), 0)) {
        Value r = sub(t, matmul(t, a, x), rhs);
        Value g = CALL(t, aten_unsqueeze_default, GRADS(1), INT(-2));
        g = CALL(t, aten_mul_Scalar, times(t, r, g), FLT(2));
        ga = plus(t, ga, matmul(t, g, mT(t, x)));
        gb = sub(t, gb, g);
    }
    OUT(0) = ga;
    OUT(1) = vector && defined(gb) ? CALL(t, aten_squeeze_dim, gb, INT(-1)) : gb;
}

static Value one_triangle(Trace *t, Value x, bool is_upper, bool unit) {
    return is_upper ? upper(t, x, unit) : lower(t, x, unit ? -1 : 0);
}

void derive_solve_triangular(Back *b) {
    Trace *t = b->t;
    bool is_upper = bool_arg(&ARG(2)), left = bool_arg(&ARG(3)), unit = bool_arg(&ARG(4));
    int how = (is_upper ? 0 : IS_upper) | (left ? FROM_left : 0) | (unit ? IS_unit : 0);
    Value g = solve_triangular(t, mT(t, ARG(0)), GRAD, how);
    if (NEEDS(0)) {
        Value x = mT(t, RES(0));
        Value r = left ? matmul(t, neg(t, g), x) : matmul(t, neg(t, x), g);
        OUT(0) = one_triangle(t, r, is_upper, unit);
    }
    OUT(1) = g;
}

// The older form, which also hands out a copy of A.
void derive_triangular_solve(Back *b) {
    Trace *t = b->t;
    bool is_upper = bool_arg(&ARG(2)), turned = bool_arg(&ARG(3)), unit = bool_arg(&ARG(4));
    Value ga = NONE;
    if (defined(GRADS(0))) {
        Value g = item_of(
            CALL(t, aten_triangular_solve_default, GRADS(0), ARG(1), ARG(2), BOOL(!turned), ARG(4)),
            0);
        OUT(0) = g;
        if (NEEDS(1)) {
            ga = turned ? matmul(t, neg(t, RES(0)), mT(t, g)) : matmul(t, neg(t, g), mT(t, RES(0)));
            ga = one_triangle(t, ga, is_upper, unit);
        }
    }
    if (NEEDS(1))
        OUT(1) = plus(t, ga, GRADS(1));
}

// exp of [[A^T, G], [0, A^T]] holds the gradient above the diagonal.
void derive_matrix_exp(Back *b) {
    Trace *t = b->t;
    const Expr *n = size_of(t, ARG(0), -1);
    Value at = mT(t, ARG(0));
    Value top = joined(t, at, GRAD, -1), bottom = joined(t, zeros_like(t, at), at, -1);
    Value e = CALL(t, aten_linalg_matrix_exp_default, joined(t, top, bottom, -2));
    OUT(0) = rests(t, firsts(t, e, -2, n), -1, n);
}
