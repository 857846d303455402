// decomp_linear.c: decompositions of matrix products: those of degenerate sizes become products and
// sums on the CPU, where a library call would cost more than the arithmetic.
#include "core/aot/decomp.h"

static Value widened(Trace *t, Value x, DType d) {
    return to_dtype(t, x, d);
}

static bool one(Trace *t, const Expr *e) {
    return expr_guard_is(t, e, 1);
}

static bool at_most(Trace *t, const Expr *e, int64_t n) {
    return sym_known_le(t->sym, e, sym_int(t->sym, n));
}

// Row times column: sum(squeeze(a) * squeeze(b)).
static Value row_by_column(Trace *t, Value a, Value b) {
    a = CALL(t, aten_squeeze_dim, a, INT(0));
    b = CALL(t, aten_squeeze_dim, b, INT(-1));
    Value p = CALL(t, aten_mul_Tensor, a, b);
    p = CALL(t, aten_sum_dim_IntList, p, list_of(t, INT(0), END), BOOL(true));
    return CALL(t, aten_unsqueeze_default, p, INT(0));
}

static bool is_row_by_column(Trace *t, Value a, Value b) {
    return one(t, size_of(t, a, 0)) && one(t, size_of(t, b, -1));
}

static bool is_outer(Trace *t, Value a, Value b) {
    const Expr *total = sym_add(t->sym, meta_numel(t->sym, a.tensor), meta_numel(t->sym, b.tensor));
    return one(t, size_of(t, a, -1)) && !expr_guard_is(t, size_of(t, a, 0), 0) &&
           one(t, size_of(t, b, 0)) && dtype_of(a) == dtype_of(b) && at_most(t, total, 32);
}

static const char not_degenerate[] = "a real product: a library does it better";

// Whether the rule is willing. PyTorch widens small floats before it asks: nobody uses those nodes
// when it declines, but they take their numbers.
static bool accepts(Trace *t, bool willing, const Value *a, int n) {
    Promotion p = promote_default(t, a, n);
    for (int i = 0; !willing && i < n; i++)
        widened(t, a[i], p.compute);
    return trace_accepts(t, willing, not_degenerate);
}

bool decomp_mm(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    bool outer = on_cpu(a[0]) && is_outer(t, a[0], a[1]);
    if (!out)
        return accepts(t, outer || (on_cpu(a[0]) && is_row_by_column(t, a[0], a[1])), a, 2);
    Promotion p = promote_default(t, a, 2);
    Value x = widened(t, a[0], p.compute), y = widened(t, a[1], p.compute);
    Value r = outer ? CALL(t, aten_mul_Tensor, x, y) : row_by_column(t, x, y);
    *out = to_dtype(t, r, p.result);
    return true;
}

// alpha * r + beta * self, as Python writes it.
static Value scaled_sum(Trace *t, Value r, Value self, Value beta, Value alpha) {
    r = CALL(t, aten_mul_Tensor, r, alpha);
    self = CALL(t, aten_mul_Tensor, self, beta);
    return CALL(t, aten_add_Tensor, r, self);
}

bool decomp_addmm(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    bool cpu = on_cpu(a[0]), dot = cpu && is_row_by_column(t, a[1], a[2]);
    bool small = cpu && one(t, size_of(t, a[1], 0)) && at_most(t, size_of(t, a[2], 0), 16) &&
                 at_most(t, size_of(t, a[2], 1), 16);
    if (!out)
        return accepts(t, dot || small, a, 3);
    Promotion p = promote_default(t, a, 3);
    Value self = widened(t, a[0], p.compute);
    Value x = widened(t, a[1], p.compute);
    Value y = widened(t, a[2], p.compute), r;
    if (dot) {
        r = row_by_column(t, x, y);
    } else {
        x = CALL(t, aten_t_default, x);
        r = CALL(t, aten_mul_Tensor, x, y);
        r = CALL(t, aten_sum_dim_IntList, r, list_of(t, INT(0), END), BOOL(true));
    }
    *out = to_dtype(t, scaled_sum(t, r, self, a[3], a[4]), p.result);
    return true;
}

bool decomp_bmm(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    if (!out)
        return accepts(
            t, on_cpu(a[0]) && one(t, size_of(t, a[0], 1)) && one(t, size_of(t, a[1], -1)), a, 2);
    Promotion p = promote_default(t, a, 2);
    Value x = widened(t, a[0], p.compute);
    Value y = widened(t, a[1], p.compute);
    x = CALL(t, aten_squeeze_dim, x, INT(1));
    y = CALL(t, aten_squeeze_dim, y, INT(-1));
    Value r = CALL(t, aten_mul_Tensor, x, y);
    r = CALL(t, aten_sum_dim_IntList, r, list_of(t, INT(1), END), BOOL(true));
    r = CALL(t, aten_unsqueeze_default, r, INT(1));
    *out = to_dtype(t, r, p.result);
    return true;
}

// The product of the first two arguments, element by element, in the type to add it up in.
static Value products(Trace *t, const Value *a, DType *result) {
    Promotion p = promote_default(t, a, 2);
    Value x = widened(t, a[0], p.compute);
    Value y = widened(t, a[1], p.compute);
    *result = p.result;
    return CALL(t, aten_mul_Tensor, x, y);
}

bool decomp_mv(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    DType result;
    Value r = products(t, a, &result);
    r = CALL(t, aten_sum_dim_IntList, r, list_of(t, INT(1), END));
    *out = to_dtype(t, r, result);
    return true;
}

bool decomp_dot(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    DType result;
    Value r = products(t, a, &result);
    r = CALL(t, aten_sum_default, r);
    *out = to_dtype(t, r, result);
    return true;
}

// beta or alpha of an integer product is int(it).
static Value factor(Value self, Value v) {
    double f;
    DType d = dtype_of(self);
    bool cut = v.kind == VAL_float && (dtype_is_int(d) || d == DT_b8) && val_as_float(&v, &f);
    return cut ? INT((int64_t)f) : v;
}

bool decomp_addmv(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    Value beta = factor(a[0], a[3]), alpha = factor(a[0], a[4]);
    Promotion p = promote_default(t, a, 3);
    Value x = widened(t, a[1], p.compute);
    Value y = widened(t, a[2], p.compute);
    Value r = CALL(t, aten_mv_default, x, y);
    r = CALL(t, aten_mul_Tensor, r, alpha);
    if (!value_is_zero(&beta)) {
        Value self = CALL(t, aten_mul_Tensor, widened(t, a[0], p.compute), beta);
        r = CALL(t, aten_add_Tensor, r, self);
    }
    *out = to_dtype(t, r, p.result);
    return true;
}

bool decomp_baddbmm(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    Value beta = factor(a[0], a[3]), alpha = factor(a[0], a[4]);
    Promotion p = promote_default(t, a, 3);
    Value self = widened(t, a[0], p.compute);
    Value x = widened(t, a[1], p.compute);
    Value y = widened(t, a[2], p.compute);
    Value r = CALL(t, aten_bmm_default, x, y);
    if (!value_is_one(&alpha))
        r = CALL(t, aten_mul_Tensor, r, alpha);
    if (!value_is_zero(&beta)) {
        if (!value_is_one(&beta))
            self = CALL(t, aten_mul_Tensor, self, beta);
        r = CALL(t, aten_add_Tensor, self, r);
    }
    *out = to_dtype(t, r, p.result);
    return true;
}

bool decomp_addr(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    if (dtype_of(a[0]) == DT_b8) {
        Value zero = NONE;
        if (value_is_zero(&a[4]))
            zero = CALL(t, aten_full_like_default, a[0], BOOL(false));
        Value r = zero.kind == VAL_tensor ? zero : CALL(t, aten_outer_default, a[1], a[2]);
        *out = value_is_zero(&a[3]) ? r : CALL(t, aten_logical_or_default, a[0], r);
        return true;
    }
    Value self = value_is_zero(&a[3]) ? NONE : CALL(t, aten_mul_Tensor, a[0], a[3]);
    Value r = CALL(t, aten_outer_default, a[1], a[2]);
    r = CALL(t, aten_mul_Tensor, r, a[4]);
    *out = self.kind == VAL_tensor ? CALL(t, aten_add_Tensor, self, r) : r;
    return true;
}

// The components rotated by k places.
static Value rotated(Trace *t, Value x, Value dim, Value places, int k) {
    Value i = CALL(t, aten_add_Tensor, places, INT(k));
    i = CALL(t, aten_remainder_Scalar, i, INT(3));
    return CALL(t, aten_index_select_default, x, dim, i);
}

bool decomp_cross(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    Value both = CALL(t, aten_broadcast_tensors_default, list_of(t, a[0], a[1], END));
    Value x = item_of(both, 0), y = item_of(both, 1),
          dev = {.kind = VAL_device, .device = a[0].tensor->device};
    Value places = CALL(t, aten_arange_default, INT(3), NONE, NONE, dev, BOOL(false));
    Value x1 = rotated(t, x, a[2], places, 1);
    Value y2 = rotated(t, y, a[2], places, 2);
    Value first = CALL(t, aten_mul_Tensor, x1, y2);
    Value x2 = rotated(t, x, a[2], places, 2);
    Value y1 = rotated(t, y, a[2], places, 1);
    Value second = CALL(t, aten_mul_Tensor, x2, y1);
    *out = CALL(t, aten_sub_Tensor, first, second);
    return true;
}

// The mathematical form, its result laid out as the fused kernel lays it out. Its second result are
// the weights, which are of no use to the kernel's backward: a joint graph keeps the op.
bool decomp_flash_attention_cpu(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    if (!out)
        return value_is_zero(&a[3]) && !t->tape;
    bool grouped =
        !expr_guard(t, sym_cmp(t->sym, SYM_eq, size_of(t, a[0], 1), size_of(t, a[1], 1)));
    Value both = CALL(t, aten__scaled_dot_product_attention_math_default, a[0], a[1], a[2], a[5],
                      a[3], a[4], NONE, a[6], BOOL(grouped));
    Value x = CALL(t, aten_permute_default, item_of(both, 0),
                   list_of(t, INT(2), INT(0), INT(1), INT(3), END));
    x = contiguous(t, x, MF_contiguous);
    x = CALL(t, aten_permute_default, x, list_of(t, INT(1), INT(2), INT(0), INT(3), END));
    *out = tuple_of(t, x, item_of(both, 1), END);
    return true;
}

// GPUs sum the gradient of the bias by themselves.
bool decomp_conv_backward(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    Value mask = a[10], bias = item_of(mask, 2);
    if (!out)
        return bool_arg(&bias) && !on_cpu(a[0]);
    Value dims = dims_range(t, 1, dim_of(a[0]));
    if (dims.n)
        dims.at[0] = INT(0);
    Value sum = py_sum(t, a[0], dims, false);
    Value both = list_of(t, item_of(mask, 0), item_of(mask, 1), BOOL(false), END);
    Value r = CALL(t, aten_convolution_backward_default, a[0], a[1], a[2], a[3], a[4], a[5], a[6],
                   a[7], a[8], a[9], both);
    *out = tuple_of(t, item_of(r, 0), item_of(r, 1), sum, END);
    return true;
}
