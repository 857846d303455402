// composite_algebra.c: CompositeImplicit ops of distances and linear algebra, as ATen's C++ has
// them.
#include "core/aot/composite.h"

#include <string.h>

#include "core/ops/meta.h"

static Value first(Value tuple) {
    return item_of(tuple, 0);
}

// distances

// x expanded to the batch and made one batch of matrices.
static Value one_batch(Trace *t, Value x, const Expr *const *batch, int n) {
    const TensorMeta *m = meta_of(x);
    Value size = val_list(t->arena, VAL_list, n + 2), flat = val_list(t->arena, VAL_list, 3);
    const Expr *product = sym_int(t->sym, 1);
    for (int i = 0; i < n; i++) {
        size.at[i] = val_sym(batch[i]);
        product = sym_mul(t->sym, product, batch[i]);
    }
    flat.at[0] = val_sym(product);
    for (int i = 0; i < 2; i++)
        size.at[n + i] = flat.at[1 + i] = val_sym(m->size[m->ndim - 2 + i]);
    x = contiguous(t, CALL(t, aten_expand_default, x, size), MF_contiguous);
    return CALL(t, aten_view_default, x, flat);
}

// Euclidean distances of many rows go through a matrix product.
static Value euclidean(Trace *t, Value a, Value b) {
    TensorMeta ba = *meta_of(a), bb = *meta_of(b);
    const TensorMeta *both[2] = {&ba, &bb};
    MetaCtx ctx = trace_meta_ctx(t);
    ba.ndim -= 2;
    bb.ndim -= 2;
    int n = 0;
    const Expr **batch = ops_broadcast(&ctx, both, 2, &n);
    if (!batch) {
        t->failed = true;
        return NONE;
    }
    Value shape = val_list(t->arena, VAL_list, n + 2);
    bool single = true;
    for (int i = 0; i < n; i++) {
        shape.at[i] = val_sym(batch[i]);
        single = single && expr_guard_is(t, batch[i], 1);
    }
    shape.at[n] = val_sym(size_of(t, a, -2));
    shape.at[n + 1] = val_sym(size_of(t, b, -2));
    Value x = single ? a : one_batch(t, a, batch, n);
    Value y = single ? b : one_batch(t, b, batch, n);
    return CALL(t, aten_view_default, CALL(t, aten__euclidean_dist_default, x, y), shape);
}

static bool is_more(Trace *t, const Expr *e, int64_t n) {
    return expr_guard(t, sym_cmp(t->sym, SYM_gt, e, sym_int(t->sym, n)));
}

bool rule_cdist(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    int64_t mode = int_arg(&a[3], 0);
    if (dim_of(a[0]) < 2 || dim_of(a[1]) < 2)
        return false;
    bool empty = expr_guard_is(t, meta_numel(t->sym, a[0].tensor), 0) ||
                 expr_guard_is(t, meta_numel(t->sym, a[1].tensor), 0);
    bool many = mode == 1 || (mode == 0 && (is_more(t, size_of(t, a[0], -2), 25) ||
                                            is_more(t, size_of(t, a[1], -2), 25)));
    *out = !empty && float_arg(&a[2], 2) == 2 && many
               ? euclidean(t, a[0], a[1])
               : CALL(t, aten__cdist_forward_default, a[0], a[1], a[2], a[3]);
    return true;
}

bool rule_pdist(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    *out = CALL(t, aten__pdist_forward_default, contiguous(t, a[0], MF_contiguous), a[1]);
    return true;
}

// The norm over all dimensions but one; -1: over all.
static Value norm_except(Trace *t, Value v, Value p, int64_t dim) {
    int n = dim_of(v);
    if (dim == -1)
        return CALL(t, aten_norm_Scalar, v, p);
    if (dim != 0 && dim != n - 1) {
        Value turned = CALL(t, aten_transpose_int, v, INT(0), INT(dim));
        return CALL(t, aten_transpose_int, norm_except(t, turned, p, 0), INT(0), INT(dim));
    }
    Value shape = val_list(t->arena, VAL_list, n);
    for (int i = 0; i < n; i++)
        shape.at[i] = i == dim ? val_sym(size_of(t, v, i)) : INT(1);
    Value x = contiguous(t, v, MF_contiguous), size = val_sym(size_of(t, v, (int)dim));
    Value rows = dim == 0 ? list_of(t, size, INT(-1), END) : list_of(t, INT(-1), size, END);
    x = CALL(t, aten_view_default, x, rows);
    x = CALL(t, aten_norm_ScalarOpt_dim, x, p, list_of(t, INT(dim == 0), END));
    return CALL(t, aten_view_default, x, shape);
}

bool rule_norm_except_dim(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    *out = norm_except(t, a[0], a[1], int_arg(&a[2], 0));
    return true;
}

// v times g over its norm: one kernel if the dimension is the first or the last.
bool rule_weight_norm(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    int64_t dim = int_arg(&a[2], 0);
    Value v = contiguous(t, a[0], MF_contiguous), g = contiguous(t, a[1], MF_contiguous);
    if (dim == 0 || dim == dim_of(v) - 1) {
        *out = first(CALL(t, aten__weight_norm_interface_default, v, g, a[2]));
        return true;
    }
    Value norm = norm_except(t, v, INT(2), dim);
    *out = CALL(t, aten_mul_Tensor, v, CALL(t, aten_div_Tensor, g, norm));
    return true;
}

bool rule_bilinear(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    int n = dim_of(a[0]);
    if (n != dim_of(a[1]) || n < 1)
        return false;
    Value size = sizes_of(t, a[0]), x[2];
    size.at[n - 1] = val_sym(size_of(t, a[2], 0));
    for (int i = 0; i < 2; i++)
        x[i] = reshape(t, a[i], list_of(t, INT(-1), val_sym(size_of(t, a[i], -1)), END));
    Value r = CALL(t, aten__trilinear_default, x[0], a[2], x[1], list_of(t, INT(1), INT(3), END),
                   list_of(t, INT(0), END), list_of(t, INT(1), INT(2), END),
                   list_of(t, INT(2), INT(3), END));
    r = reshape(t, r, size);
    *out = a[3].kind == VAL_tensor ? CALL(t, aten_add_Tensor, r, a[3]) : r;
    return true;
}

// determinants, inverses, solvers: the form that yields an error code, then its check

static Value checked(Trace *t, Value tuple, int info, const char *name, bool is_matrix) {
    CALL(t, aten__linalg_check_errors_default, item_of(tuple, info),
         (Value){.kind = VAL_str, .s = name}, BOOL(is_matrix));
    return first(tuple);
}

static bool is_matrix(Value x) {
    return dim_of(x) == 2;
}

bool rule_det(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    *out = first(CALL(t, aten__linalg_det_default, a[0]));
    return true;
}

bool rule_slogdet(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    Value r = CALL(t, aten__linalg_slogdet_default, a[0]);
    *out = tuple_of(t, item_of(r, 0), item_of(r, 1), END);
    return true;
}

// NaN where the determinant is negative.
bool rule_logdet(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    Value r = CALL(t, aten__linalg_slogdet_default, a[0]), sign = item_of(r, 0);
    Value negative = CALL(t, aten_eq_Scalar, sign, FLT(-1));
    *out = CALL(t, aten_where_ScalarSelf, negative, FLT(__builtin_nan("")), item_of(r, 1));
    return true;
}

bool rule_inverse(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    *out = checked(t, CALL(t, aten_linalg_inv_ex_default, a[0]), 1, "linalg.inv", is_matrix(a[0]));
    return true;
}

bool rule_linalg_cholesky(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    *out = checked(t, CALL(t, aten_linalg_cholesky_ex_default, a[0], a[1]), 1, "linalg.cholesky",
                   is_matrix(a[0]));
    return true;
}

bool rule_linalg_solve_ex(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    Value r = CALL(t, aten__linalg_solve_ex_default, a[0], a[1], a[2], a[3]);
    *out = tuple_of(t, item_of(r, 0), item_of(r, 3), END);
    return true;
}

bool rule_linalg_solve(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    *out = checked(t, CALL(t, aten__linalg_solve_ex_default, a[0], a[1], a[2]), 3, "linalg.solve",
                   is_matrix(a[0]));
    return true;
}

bool rule_linalg_eigh(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    *out = CALL(t, aten__linalg_eigh_default, a[0], a[1], BOOL(true));
    return true;
}

// Of what is traced the vectors are computed, too, as a gradient will need them.
bool rule_linalg_eigvalsh(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    *out = first(CALL(t, aten__linalg_eigh_default, a[0], a[1], BOOL(true)));
    return true;
}

bool rule_linalg_svd(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    *out = CALL(t, aten__linalg_svd_default, a[0], a[1], BOOL(true), a[2]);
    return true;
}

bool rule_linalg_svdvals(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    *out = item_of(CALL(t, aten__linalg_svd_default, a[0], BOOL(false), BOOL(true), a[1]), 1);
    return true;
}

bool rule_linalg_lu_factor(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    Value r = CALL(t, aten_linalg_lu_factor_ex_default, a[0], a[1]);
    checked(t, r, 2, "torch.linalg.lu_factor", is_matrix(a[0]));
    *out = tuple_of(t, item_of(r, 0), item_of(r, 1), END);
    return true;
}

// Of two or more matrices, in the order that costs the fewest products; a vector at either end is a
// row or a column.
static int64_t known_size(Trace *t, Value x, int dim) {
    return expr_int_or(size_of(t, x, dim), -1);
}

static Value chain(Trace *t, const Value *x, const int *split, int n, int from, int to) {
    if (from == to)
        return x[from];
    int cut = split[from * n + to];
    Value a = chain(t, x, split, n, from, cut), b = chain(t, x, split, n, cut + 1, to);
    return CALL(t, aten_mm_default, a, b);
}

static bool chain_order(Trace *t, const Value *x, int n, int *split) {
    int64_t *cost = ARENA_ARRAY(t->arena, n * n, int64_t),
            *p = ARENA_ARRAY(t->arena, n + 1, int64_t);
    for (int i = 0; i < n; i++)
        p[i] = known_size(t, x[i], 0);
    p[n] = known_size(t, x[n - 1], 1);
    for (int i = 0; i <= n; i++)
        if (p[i] < 0)
            return false;
    for (int len = 1; len < n; len++)
        for (int i = 0; i + len < n; i++) {
            int j = i + len;
            cost[i * n + j] = INT64_MAX;
            for (int k = i; k < j; k++) {
                int64_t c = cost[i * n + k] + cost[(k + 1) * n + j] + p[i] * p[k + 1] * p[j + 1];
                if (c < cost[i * n + j]) {
                    cost[i * n + j] = c;
                    split[i * n + j] = k;
                }
            }
        }
    return true;
}

// Three matrices: whichever pair is the cheaper goes first.
static bool three(Trace *t, const Value *x, int *split) {
    int64_t a = known_size(t, x[0], 0), b = known_size(t, x[1], 0), c = known_size(t, x[2], 0),
            d = known_size(t, x[2], 1);
    if (a < 0 || b < 0 || c < 0 || d < 0)
        return false;
    split[0 * 3 + 2] = (b + d) * a * c < (a + c) * b * d ? 1 : 0;
    split[0 * 3 + 1] = 0;
    split[1 * 3 + 2] = 1;
    return true;
}

bool rule_multi_dot(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    int n = a[0].n;
    if (n < 2 || n > 64)
        return false;
    Value *x = ARENA_ARRAY(t->arena, n, Value);
    memcpy(x, a[0].at, (size_t)n * sizeof *x);
    bool row = dim_of(x[0]) == 1, column = dim_of(x[n - 1]) == 1;
    if (row)
        x[0] = CALL(t, aten_unsqueeze_default, x[0], INT(0));
    if (column)
        x[n - 1] = CALL(t, aten_unsqueeze_default, x[n - 1], INT(-1));
    int *split = ARENA_ARRAY(t->arena, n * n, int);
    if (!t->failed && !(n == 3 ? three(t, x, split) : chain_order(t, x, n, split)))
        return false;
    Value r = chain(t, x, split, n, 0, n - 1);
    if (row)
        r = CALL(t, aten_squeeze_dim, r, INT(0));
    *out = column ? CALL(t, aten_squeeze_dim, r, INT(-1)) : r;
    return true;
}

// A tensor with gaps has none once it has been written, and one in another order may be in the
// usual order then: its strides step over something else.
static void fill_sparse_diagonal(Trace *t, Value x, const Expr *first, Value v) {
    int ndim = dim_of(x);
    if (!expr_is(first, 0))
        x = CALL(t, aten_slice_Tensor, x, INT(0), val_sym(first));
    for (int k = 1; k < ndim && !t->failed; k++) // the diagonal becomes the last dimension
        x = CALL(t, aten_diagonal_default, x, INT(0), INT(0), INT(k == 1 ? 1 : -1));
    CALL(t, aten_fill__Scalar, x, v);
}

// Rows from that one on, or all: one stride over all dimensions.
static void fill_diagonal(Trace *t, Value x, const Expr *first, const Expr *n, Value v) {
    const TensorMeta *m = meta_of(x);
    if (!meta_is_contiguous(t->sym, m, MF_contiguous)) {
        fill_sparse_diagonal(t, x, first, v);
        return;
    }
    const Expr *stride = sym_int(t->sym, 0), *offset = m->offset ? m->offset : stride;
    for (int i = 0; i < m->ndim; i++)
        stride = sym_add(t->sym, stride, m->stride[i]);
    offset = sym_add(t->sym, offset, sym_mul(t->sym, first, m->stride[0]));
    Value at = expr_is(offset, 0) ? NONE : val_sym(offset);
    Value sizes = size_list(t, &n, 1), strides = size_list(t, &stride, 1);
    CALL(t, aten_fill__Scalar, CALL(t, aten_as_strided_default, x, sizes, strides, at), v);
}

bool rule_fill_diagonal(Trace *t, const Op *op, const Value *a, Value *out) {
    const TensorMeta *m = meta_of(a[0]);
    const Expr *least = m && m->ndim ? m->size[0] : NULL;
    bool equal = true;
    int64_t rows, wide;
    (void)op;
    for (int i = 1; m && i < m->ndim; i++) {
        equal = equal && expr_guard(t, sym_cmp(t->sym, SYM_eq, m->size[i], m->size[0]));
        least = sym_min(t->sym, least, m->size[i]);
    }
    *out = a[0];
    if (!m || m->ndim < 2 || (m->ndim > 2 && !equal)) {
        trace_fail(t, m && m->ndim > 2
                          ? "RuntimeError: all dimensions of input must be of equal length"
                          : "RuntimeError: dimensions must larger than 1");
        return true;
    }
    fill_diagonal(t, a[0], sym_int(t->sym, 0), least, a[1]);
    if (!bool_arg(&a[2]) || m->ndim > 2 || !expr_int(m->size[0], &rows) ||
        !expr_int(m->size[1], &wide))
        return true;
    for (int64_t r = wide + 1; r < rows; r += wide + 1)
        fill_diagonal(t, a[0], sym_int(t->sym, r),
                      sym_int(t->sym, rows - r < wide ? rows - r : wide), a[1]);
    return true;
}
