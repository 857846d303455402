// derive_spectral.c: derivatives of orthogonal factorizations: QR, singular values, eigenvalues of
// symmetric matrices, products of Householder reflectors. Real matrices; X^T is the transpose of
// the last two dimensions, gX the gradient of X.
#include "core/aot/derive.h"

static Value sub(Trace *t, Value a, Value b) {
    return CALL(t, aten_sub_Tensor, a, b);
}

static Value row(Trace *t, Value x) {
    return CALL(t, aten_unsqueeze_default, x, INT(-2));
}

static Value part(Trace *t, Value x, int dim, const Expr *from, const Expr *to) {
    return CALL(t, aten_slice_Tensor, x, INT(dim), val_sym(from), to ? val_sym(to) : NONE);
}

// QR

// m >= n: (gQ + Q sym(triu(gR R^T - Q^T gQ))) R^-T, sym(X) = X + X^T with the diagonal halved.
static Value qr_tall(Trace *t, Value gq, Value gr, Value q, Value r) {
    Value m = defined(gr) ? matmul(t, gr, mT(t, r)) : NONE;
    if (defined(gq)) {
        Value qg = matmul(t, mT(t, q), gq);
        m = defined(m) ? sub(t, m, qg) : CALL(t, aten_neg_default, qg);
    }
    Value s = CALL(t, aten_add_Tensor, CALL(t, aten_triu_default, m),
                   mT(t, CALL(t, aten_triu_default, m, INT(1))));
    s = plus(t, matmul(t, q, s), gq);
    return CALL(t, aten_linalg_solve_triangular_default, mT(t, r), s, BOOL(false), BOOL(false));
}

// m < n: R = [U V], A = [X Y] with Y = Q V, so gY = Q gV and gQ gains Y gV^T = Q V gV^T.
static Value qr_wide(Trace *t, Value gq, Value gr, Value q, Value r) {
    const Expr *zero = sym_int(t->sym, 0), *m = size_of(t, r, -2);
    Value u = part(t, r, -1, zero, m), v = part(t, r, -1, m, NULL);
    if (!defined(gr))
        return CALL(t, aten_cat_default,
                    list_of(t, qr_tall(t, gq, NONE, q, u), zeros_like(t, v), END), INT(-1));
    Value gu = part(t, gr, -1, zero, m), gv = part(t, gr, -1, m, NULL);
    Value g = plus(t, gq, matmul(t, matmul(t, q, v), mT(t, gv)));
    return CALL(t, aten_cat_default, list_of(t, qr_tall(t, g, gu, q, u), matmul(t, q, gv), END),
                INT(-1));
}

void derive_qr(Back *b) {
    Trace *t = b->t;
    const char *mode = ARG(1).kind == VAL_str ? ARG(1).s : "reduced";
    const Expr *m = size_of(t, RES(0), -2), *n = size_of(t, RES(1), -1);
    bool tall = expr_guard(t, sym_cmp(t->sym, SYM_ge, m, n));
    bool square = sym_known_eq(t->sym, m, n);
    if (mode[0] == 'r' && !mode[1])
        trace_fail(t, "RuntimeError: The derivative of linalg.qr depends on Q, which is not "
                      "computed when mode='r'");
    else if (mode[0] == 'c' && tall && !square)
        trace_fail(t, "RuntimeError: The QR decomposition is not differentiable when "
                      "mode='complete' and nrows > ncols");
    else
        OUT(0) = (tall ? qr_tall : qr_wide)(t, GRADS(0), GRADS(1), RES(0), RES(1));
}

// Differences x_k - x_j of row j, column k; 1 on the diagonal.
static Value gaps(Trace *t, Value x) {
    Value d = sub(t, row(t, x), column(t, x));
    Value ones = CALL(t, aten_ones_like_default, x);
    return CALL(t, aten_add_Tensor, d, CALL(t, aten_diag_embed_default, ones));
}

// singular values: A = U diag(S) V^T

static Value skew(Trace *t, Value x) {
    return sub(t, x, mT(t, x));
}

// What the gradients of U and V^T that lie in the spaces of U and V say of A, seen from there.
static Value svd_core(Trace *t, Value gu, Value gs, Value gvh, Value u, Value s, Value vh) {
    Value r = NONE;
    if (defined(gu))
        r = times(t, skew(t, matmul(t, mT(t, u), gu)), row(t, s));
    if (defined(gvh))
        r = plus(t, r, times(t, column(t, s), skew(t, matmul(t, vh, mT(t, gvh)))));
    if (defined(r))
        r = CALL(t, aten_div_Tensor, r, gaps(t, times(t, s, s)));
    return defined(gs) ? plus(t, r, CALL(t, aten_diag_embed_default, gs)) : r;
}

static Value svd_grad(Trace *t, Value gu, Value gs, Value gvh, Value u, Value s, Value vh) {
    const Expr *m = size_of(t, u, -2), *n = size_of(t, vh, -1), *k = size_of(t, s, -1);
    Value core = svd_core(t, gu, gs, gvh, u, s, vh);
    if (defined(gu) && !expr_guard(t, sym_cmp(t->sym, SYM_eq, m, k))) {
        Value out = CALL(t, aten_div_Tensor, gu, row(t, s));
        Value r = plus(t, matmul(t, u, core), out);
        r = sub(t, r, matmul(t, u, matmul(t, mT(t, u), out)));
        return matmul(t, r, vh);
    }
    if (defined(gvh) && !expr_guard(t, sym_cmp(t->sym, SYM_eq, n, k))) {
        Value out = CALL(t, aten_div_Tensor, gvh, column(t, s));
        Value r = plus(t, matmul(t, core, vh), out);
        r = sub(t, r, matmul(t, matmul(t, out, mT(t, vh)), vh));
        return matmul(t, u, r);
    }
    return matmul(t, u, matmul(t, core, vh));
}

void derive_svd(Back *b) {
    Trace *t = b->t;
    Value gu = GRADS(0), gvh = GRADS(2), u = RES(0), s = RES(1), vh = RES(2);
    const Expr *zero = sym_int(t->sym, 0), *k = size_of(t, s, -1);
    if (bool_arg(&ARG(1))) { // full matrices: only what belongs to singular values counts
        gu = defined(gu) ? part(t, gu, -1, zero, k) : gu;
        gvh = defined(gvh) ? part(t, gvh, -2, zero, k) : gvh;
        u = part(t, u, -1, zero, k);
        vh = part(t, vh, -2, zero, k);
    }
    OUT(0) = svd_grad(t, gu, GRADS(1), gvh, u, s, vh);
}

// V ((skew(V^T gV) / 2 / gaps) + diag(gL)) V^T, of a symmetric A.
void derive_eigh(Back *b) {
    Trace *t = b->t;
    Value l = RES(0), v = RES(1);
    if (!bool_arg(&ARG(2))) {
        trace_fail(t, "RuntimeError: linalg_eigh: the gradient needs eigenvectors");
        return;
    }
    if (!defined(GRADS(1))) {
        OUT(0) = matmul(t, times(t, v, row(t, GRADS(0))), mT(t, v));
        return;
    }
    Value half = CALL(t, aten_mul_Scalar, skew(t, matmul(t, mT(t, v), GRADS(1))), FLT(0.5));
    Value r = CALL(t, aten_div_Tensor, half, gaps(t, l));
    if (defined(GRADS(0)))
        r = CALL(t, aten_add_Tensor, r, CALL(t, aten_diag_embed_default, GRADS(0)));
    OUT(0) = matmul(t, v, matmul(t, r, mT(t, v)));
}

// products of reflectors: Q = H_1 … H_k, H_i = I - tau_i v_i v_i^T, with v_i the i-th column of the
// input below the diagonal, 1 on it and 0 above

// v_i as a column, and tau_i as (…, 1, 1).
static Value reflector(Trace *t, Value input, int64_t i) {
    const Expr *from = sym_int(t->sym, i), *to = sym_int(t->sym, i + 1);
    Value below = CALL(t, aten_tril_default, input, INT(-1));
    Value v = part(t, below, -1, from, to);
    Value eye = CALL(t, aten_eye_m, val_sym(size_of(t, input, -2)), val_sym(size_of(t, input, -1)),
                     DTY(dtype_of(input)), NONE,
                     (Value){.kind = VAL_device, .device = input.tensor->device});
    return CALL(t, aten_add_Tensor, v, part(t, eye, -1, from, to));
}

static Value factor_of(Trace *t, Value tau, int64_t i) {
    Value x = part(t, tau, -1, sym_int(t->sym, i), sym_int(t->sym, i + 1));
    return column(t, x);
}

// H x with H = I - tau v v^T.
static Value reflect(Trace *t, Value v, Value tau, Value x) {
    return sub(t, x, times(t, tau, matmul(t, v, matmul(t, mT(t, v), x))));
}

typedef struct Reflectors {
    int64_t k;
    Value *v, *tau;   // by reflector: (…, m, 1), (…, 1, 1)
    Value *gv, *gtau; // their gradients
} Reflectors;

static Reflectors reflectors_of(Trace *t, Value input, Value tau) {
    Reflectors r = {.k = expr_int_or(size_of(t, tau, -1), -1)};
    if (r.k < 0) {
        trace_fail(t, "the number of reflectors is no constant");
        return r;
    }
    Value **all[] = {&r.v, &r.tau, &r.gv, &r.gtau};
    for (int i = 0; i < 4; i++)
        *all[i] = ARENA_ARRAY(t->arena, r.k + 1, Value);
    for (int64_t i = 0; i < r.k; i++) {
        r.v[i] = reflector(t, input, i);
        r.tau[i] = factor_of(t, tau, i);
    }
    return r;
}

// The product applied to x, seen step by step: at[i] is what reflector i is applied to. `forwards`:
// reflector 0 comes first.
static Value apply_all(Trace *t, const Reflectors *r, Value x, bool forwards, Value *at) {
    for (int64_t n = 0; n < r->k; n++) {
        int64_t i = forwards ? n : r->k - 1 - n;
        at[i] = x;
        x = reflect(t, r->v[i], r->tau[i], x);
    }
    return x;
}

// The gradient goes back through the same steps; each H is symmetric.
static Value unapply_all(Trace *t, Reflectors *r, Value g, bool forwards, const Value *at) {
    for (int64_t n = r->k - 1; n >= 0; n--) {
        int64_t i = forwards ? n : r->k - 1 - n;
        Value v = r->v[i], x = at[i], tau = r->tau[i];
        Value vg = matmul(t, mT(t, v), g), vx = matmul(t, mT(t, v), x);
        Value both = matmul(t, vg, mT(t, vx)); // v^T g x^T v
        r->gtau[i] = CALL(t, aten_neg_default, both);
        Value s = CALL(t, aten_add_Tensor, matmul(t, g, mT(t, vx)), matmul(t, x, mT(t, vg)));
        r->gv[i] = CALL(t, aten_neg_default, times(t, tau, s));
        g = reflect(t, v, tau, g);
    }
    return g;
}

static Value list_at(Trace *t, const Value *v, int64_t n) {
    Value list = val_list(t->arena, VAL_list, (int)n);
    for (int i = 0; i < n; i++)
        list.at[i] = v[i];
    return list;
}

// Gradients of the input below its diagonal and of tau.
static void give_reflectors(Back *b, const Reflectors *r, int input, int tau) {
    Trace *t = b->t;
    if (r->k == 0) {
        OUT(input) = zeros_like(t, ARG(input));
        OUT(tau) = zeros_like(t, ARG(tau));
        return;
    }
    Value gv = CALL(t, aten_cat_default, list_at(t, r->gv, r->k), INT(-1));
    const Expr *more = sym_sub(t->sym, size_of(t, ARG(input), -1), sym_int(t->sym, r->k));
    if (!expr_known_is(t, more, 0))
        gv = CALL(t, aten_constant_pad_nd_default, gv, list_of(t, INT(0), val_sym(more), END));
    OUT(input) = CALL(t, aten_tril_default, gv, INT(-1));
    Value gt = CALL(t, aten_cat_default, list_at(t, r->gtau, r->k), INT(-1));
    OUT(tau) = CALL(t, aten_squeeze_dim, gt, INT(-2));
}

void derive_householder(Back *b) {
    Trace *t = b->t;
    Reflectors r = reflectors_of(t, ARG(0), ARG(1));
    if (t->failed)
        return;
    // The first columns of the identity, reflected by the last reflector first.
    Value eye = CALL(t, aten_eye_m, val_sym(size_of(t, ARG(0), -2)),
                     val_sym(size_of(t, ARG(0), -1)), DTY(dtype_of(ARG(0))), NONE,
                     (Value){.kind = VAL_device, .device = ARG(0).tensor->device});
    eye = CALL(t, aten_expand_default, eye, sizes_arg(t, ARG(0)));
    Value *at = ARENA_ARRAY(t->arena, r.k + 1, Value);
    apply_all(t, &r, eye, false, at);
    unapply_all(t, &r, GRAD, false, at);
    give_reflectors(b, &r, 0, 1);
}

// ormqr(self, tau, other, left, transpose): Q other, Q^T other; from the right, their transposes.
void derive_ormqr(Back *b) {
    Trace *t = b->t;
    bool left = bool_arg(&ARG(3)), turned = bool_arg(&ARG(4));
    bool forwards = left == turned; // Q^T x and, of x Q, Q^T x^T begin with H_1
    Reflectors r = reflectors_of(t, ARG(0), ARG(1));
    if (t->failed)
        return;
    Value x = left ? ARG(2) : mT(t, ARG(2)), g = left ? GRAD : mT(t, GRAD);
    Value *at = ARENA_ARRAY(t->arena, r.k + 1, Value);
    apply_all(t, &r, x, forwards, at);
    g = unapply_all(t, &r, g, forwards, at);
    OUT(2) = left ? g : mT(t, g);
    if (NEEDS(0) || NEEDS(1))
        give_reflectors(b, &r, 0, 1);
}
