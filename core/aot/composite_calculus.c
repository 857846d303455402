// composite_calculus.c: CompositeImplicit ops over samples of functions: integrals, differences,
// powers, means, norms, call by call as ATen makes them.
#include "core/aot/composite.h"
#include "core/aot/derive.h"

#include <math.h>
#include <string.h>

static Value slice(Trace *t, Value x, int dim, Value from, Value to) {
    return CALL(t, aten_slice_Tensor, x, INT(dim), from, to);
}

static Value minus(Trace *t, Value a, Value b) {
    return CALL(t, aten_sub_Tensor, a, b);
}

// integrals

// Sums of neighbours; the right operand's slice comes first.
static Value neighbours(Trace *t, Value y, int dim) {
    Value left = slice(t, y, dim, INT(0), INT(-1));
    return plus(t, left, slice(t, y, dim, INT(1), NONE));
}

// Steps between the places x, brought to as many dimensions as y has.
static Value steps(Trace *t, Value y, Value x, int dim) {
    int n = dim_of(y), lead = n - dim_of(x);
    if (lead > 0) {
        Value shape = val_list(t->arena, VAL_list, n);
        for (int i = 0; i < n; i++)
            shape.at[i] = dim_of(x) == 1 ? (i == dim ? val_sym(size_of(t, x, 0)) : INT(1))
                          : i < lead     ? INT(1)
                                         : val_sym(size_of(t, x, i - lead));
        x = CALL(t, aten_view_default, x, shape);
    }
    Value left = slice(t, x, dim, INT(0), INT(-1));
    return minus(t, slice(t, x, dim, INT(1), NONE), left);
}

static Value areas(Trace *t, const Value *a, int dim) {
    Value dx = steps(t, a[0], a[1], dim);
    return CALL(t, aten_mul_Tensor, neighbours(t, a[0], dim), dx);
}

// (y, x, dim)
bool rule_trapezoid_x(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    int dim = wrap_dim(t, int_arg(&a[2], -1), dim_of(a[0]));
    if (t->failed || expr_guard_is(t, size_of(t, a[0], dim), 0))
        return false;
    Value sum = CALL(t, aten_sum_dim_IntList, areas(t, a, dim), list_of(t, INT(dim), END));
    *out = CALL(t, aten_div_Scalar, sum, FLT(2));
    return true;
}

// (y, dx, dim)
bool rule_trapezoid_dx(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    Value y = a[0], dim = a[2];
    if (expr_guard_is(t, size_of(t, y, (int)int_arg(&dim, -1)), 0))
        return false;
    Value last = CALL(t, aten_select_int, y, dim, INT(-1));
    Value ends = plus(t, CALL(t, aten_select_int, y, dim, INT(0)), last);
    ends = CALL(t, aten_mul_Scalar, ends, FLT(0.5));
    Value all = CALL(t, aten_sum_dim_IntList, y, list_of(t, dim, END));
    *out = CALL(t, aten_mul_Scalar, minus(t, all, ends), FLT(float_arg(&a[1], 1)));
    return true;
}

bool rule_cumulative_trapezoid_x(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    int dim = wrap_dim(t, int_arg(&a[2], -1), dim_of(a[0]));
    Value sums = CALL(t, aten_cumsum_default, areas(t, a, dim), INT(dim));
    *out = CALL(t, aten_div_Scalar, sums, FLT(2));
    return true;
}

bool rule_cumulative_trapezoid_dx(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    Value pairs = neighbours(t, a[0], (int)int_arg(&a[2], -1));
    pairs = CALL(t, aten_mul_Scalar, pairs, FLT(float_arg(&a[1], 1) / 2));
    *out = CALL(t, aten_cumsum_default, pairs, a[2]);
    return true;
}

// gradients of samples

// The sample at place `at`, from the end if negative, times a number.
static Value sample(Trace *t, Value x, int dim, int at, Value by) {
    Value s = slice(t, x, dim, INT(at), at == -1 ? NONE : INT(at + 1));
    return is_none(&by) ? s : CALL(t, aten_mul_Scalar, s, by);
}

// One-sided at an end, of two samples or of three.
static Value one_sided(Trace *t, Value x, int dim, bool start, bool second, Value dx) {
    Value d;
    if (second) {
        Value c = sample(t, x, dim, start ? 2 : -1, FLT(start ? 0.5 : 1.5));
        Value b = sample(t, x, dim, start ? 1 : -2, INT(2));
        Value a = sample(t, x, dim, start ? 0 : -3, FLT(start ? -1.5 : 0.5));
        d = start ? minus(t, plus(t, a, b), c) : plus(t, minus(t, a, b), c);
    } else {
        Value b = sample(t, x, dim, start ? 0 : -2, NONE);
        d = minus(t, sample(t, x, dim, start ? 1 : -1, NONE), b);
    }
    return CALL(t, aten_div_Scalar, d, dx);
}

static Value gradient_along(Trace *t, Value x, int dim, bool second, Value dx) {
    Value left = slice(t, x, dim, INT(0), INT(-2));
    Value inner = minus(t, slice(t, x, dim, INT(2), NONE), left);
    inner = CALL(t, aten_div_Scalar, inner, dx);
    Value before = one_sided(t, x, dim, true, second, dx);
    Value after = one_sided(t, x, dim, false, second, dx);
    inner = CALL(t, aten_div_Scalar, inner, INT(2));
    return CALL(t, aten_cat_default, list_of(t, before, inner, after, END), INT(dim));
}

// -a / b or a / b, of which b was made first.
static Value over(Trace *t, bool negative, Value a, Value b) {
    return CALL(t, aten_div_Tensor, negative ? CALL(t, aten_neg_default, a) : a, b);
}

// By the step next to an end, or by the one behind it too.
static Value gradient_at_end(Trace *t, Value x, int dim, Value steps, bool last, bool second) {
    Value zero = INT(0), h = CALL(t, aten_select_int, steps, zero, INT(last ? -1 : 0));
    if (!second) {
        Value from = sample(t, x, dim, last ? -2 : 0, NONE);
        return over(t, false, minus(t, sample(t, x, dim, last ? -1 : 1, NONE), from), h);
    }
    Value g = CALL(t, aten_select_int, steps, zero, INT(last ? -2 : 1)), both = plus(t, h, g);
    Value twice = plus(t, CALL(t, aten_mul_Scalar, h, FLT(2)), g);
    Value near = over(t, !last, twice, times(t, h, both)),
          far = over(t, !last, h, times(t, g, both));
    Value w[3] = {last ? far : near, over(t, last, both, times(t, h, g)), last ? near : far};
    Value v[3];
    for (int i = 0; i < 3; i++)
        v[i] = times(t, w[i], sample(t, x, dim, last ? i - 3 : i, NONE));
    return plus(t, plus(t, v[0], v[1]), v[2]);
}

// Samples at the places of a vector: weights of three by the two steps between them.
static Value gradient_by_places(Trace *t, Value x, int dim, bool second, Value places) {
    if (dim_of(places) != 1) {
        trace_fail(t,
                   "RuntimeError: torch.gradient expected each element of spacing to have one "
                   "dimension, but got an element with %d dimensions!",
                   dim_of(places));
        return NONE;
    }
    Value steps = CALL(t, aten_diff_default, places, INT(1), INT(0));
    Value g = slice(t, steps, 0, INT(0), INT(-1)), h = slice(t, steps, 0, INT(1), NONE);
    Value both = plus(t, g, h), shape = val_list(t->arena, VAL_list, dim_of(x));
    for (int i = 0; i < shape.n; i++)
        shape.at[i] = INT(i == dim ? -1 : 1);
    Value w[3] = {over(t, true, h, times(t, g, both)),
                  over(t, false, minus(t, h, g), times(t, g, h)),
                  over(t, false, g, times(t, h, both))};
    for (int i = 0; i < 3; i++)
        w[i] =
            times(t, reshape(t, w[i], shape), slice(t, x, dim, INT(i), i < 2 ? INT(i - 2) : NONE));
    Value inner = plus(t, plus(t, w[0], w[1]), w[2]);
    Value before = gradient_at_end(t, x, dim, steps, false, second);
    Value after = gradient_at_end(t, x, dim, steps, true, second);
    return CALL(t, aten_cat_default, list_of(t, before, inner, after, END), INT(dim));
}

// Spacing: one number for all dimensions, a list of numbers or of places, or none.
bool rule_gradient(Trace *t, const Op *op, const Value *a, Value *out) {
    int spacing = op_arg_index(op, "spacing"), ndim = dim_of(a[0]);
    Value dims = a[op_arg_index(op, "dim")];
    int64_t order = int_arg(&a[op_arg_index(op, "edge_order")], 1);
    dims = is_none(&dims)          ? dims_range(t, 0, ndim)
           : dims.kind == VAL_list ? dims
                                   : list_of(t, dims, END);
    Value by = spacing < 0 || is_none(&a[spacing]) ? INT(1) : a[spacing];
    if (order < 1 || order > 2 || (by.kind == VAL_list && by.n != dims.n))
        return false;
    *out = val_list(t->arena, VAL_list, dims.n);
    for (int i = 0; i < dims.n && !t->failed; i++) {
        int d = wrap_dim(t, int_arg(&dims.at[i], 0), ndim);
        Value each = by.kind == VAL_list ? by.at[i] : by;
        out->at[i] = each.kind == VAL_tensor ? gradient_by_places(t, a[0], d, order == 2, each)
                                             : gradient_along(t, a[0], d, order == 2, each);
    }
    return true;
}

// powers, means, norms

// (x, N)
bool rule_linalg_vander(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    Value x = dim_of(a[0]) ? a[0] : CALL(t, aten_unsqueeze_default, a[0], INT(-1));
    const Expr *n = size_of(t, x, -1);
    if (!is_none(&a[1]) && !val_as_expr(t->sym, &a[1], &n))
        return false;
    Value shape = val_list(t->arena, VAL_list, dim_of(x) + 1);
    for (int i = 0; i < dim_of(x); i++)
        shape.at[i] = val_sym(size_of(t, x, i));
    shape.at[shape.n - 1] = val_sym(sym_add_int(t->sym, n, -1));
    Value powers = CALL(t, aten_unsqueeze_default, x, INT(-1));
    powers = CALL(t, aten_expand_default, powers, shape);
    powers = CALL(t, aten_cumprod_default, powers, INT(-1));
    Value one = sizes_of(t, powers);
    if (!one.n)
        return false;
    one.at[one.n - 1] = INT(1);
    Value ones = CALL(t, aten_new_ones_default, powers, one);
    *out = CALL(t, aten_cat_default, list_of(t, ones, powers, END), INT(-1));
    return true;
}

// (x, N, increasing): columns are written into memory of their own.
bool rule_vander(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    Value x = a[0], n = is_none(&a[1]) ? val_sym(size_of(t, x, 0)) : a[1];
    Value all = CALL(t, aten_empty_memory_format, list_of(t, val_sym(size_of(t, x, 0)), n, END),
                     DTY(dtype_promote(dtype_of(x), DT_i64)), strided(),
                     (Value){.kind = VAL_device, .device = x.tensor->device});
    int64_t columns = int_arg(&n, 2);
    if (columns > 0)
        CALL(t, aten_fill__Scalar, CALL(t, aten_select_int, all, INT(1), INT(0)), INT(1));
    if (columns > 1) {
        Value one = INT(1), powers = CALL(t, aten_slice_Tensor, all, one, one);
        CALL(t, aten_copy__default, powers, CALL(t, aten_unsqueeze_default, x, one));
        powers = CALL(t, aten_slice_Tensor, all, one, one);
        Value product = CALL(t, aten_slice_Tensor, all, one, one);
        product = CALL(t, aten_cumprod_default, product, one);
        CALL(t, aten_copy__default, powers, product);
    }
    *out = bool_arg(&a[2]) ? all : CALL(t, aten_flip_default, all, list_of(t, INT(1), END));
    return true;
}

// (self, dim, keepdim, dtype)
bool rule_nanmean(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    Value x = CALL(t, aten_detach_default, a[0]);
    Value number = CALL(t, aten_logical_not__default, CALL(t, aten_ne_Tensor, x, x));
    Value n = CALL(t, aten_sum_dim_IntList, number, a[1], a[2]);
    *out = CALL(t, aten_div_Tensor, CALL(t, aten_nansum_default, a[0], a[1], a[2], a[3]), n);
    return true;
}

bool rule_sum_to_size(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    const Expr **size = ARENA_ARRAY(t->arena, a[1].n + 1, const Expr *);
    for (int i = 0; i < a[1].n; i++)
        if (!val_as_expr(t->sym, &a[1].at[i], &size[i]))
            return false;
    *out = sum_to(t, a[0], size, a[1].n);
    return true;
}

// The singular values of matrices in two dimensions, folded by their sum or an extreme.
static bool norm_of_values(Trace *t, const Value *a, OpId fold, Value *out) {
    int n = dim_of(a[0]), row = wrap_dim(t, int_arg(&a[2].at[0], 0), n),
        column = wrap_dim(t, int_arg(&a[2].at[1], 0), n), at = 0;
    Value order = val_list(t->arena, VAL_list, n), back = val_list(t->arena, VAL_list, n);
    for (int i = 0; i < n; i++)
        if (i != row && i != column)
            order.at[at++] = INT(i);
    order.at[at++] = INT(row);
    order.at[at] = INT(column);
    for (int i = 0; i < n; i++)
        back.at[order.at[i].i] = INT(i);
    Value x = a[4].kind == VAL_dtype ? to_dtype(t, a[0], a[4].dtype) : a[0];
    Value values = CALL(t, aten_linalg_svdvals_default, CALL(t, aten_permute_default, x, order));
    Value last = list_of(t, INT(-1), END);
    *out = fold == OP_aten_sum_dim_IntList ? CALL(t, aten_sum_dim_IntList, values, last, a[3])
           : fold == OP_aten_amax_default  ? CALL(t, aten_amax_default, values, last, a[3])
                                           : CALL(t, aten_amin_default, values, last, a[3]);
    if (bool_arg(&a[3]))
        *out = CALL(t, aten_permute_default, CALL(t, aten_unsqueeze_default, *out, INT(-1)), back);
    return true;
}

// (A, ord, dim, keepdim, dtype): 1 and infinity by columns and rows, 2 by singular values.
bool rule_matrix_norm(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    int n = dim_of(a[0]);
    double ord = float_arg(&a[1], 0);
    if (a[2].n == 2 && fabs(ord) == 2)
        return norm_of_values(t, a, ord > 0 ? OP_aten_amax_default : OP_aten_amin_default, out);
    if (a[2].n != 2 || (fabs(ord) != 1 && !isinf(ord)))
        return false;
    int dim[2];
    for (int i = 0; i < 2; i++)
        dim[isinf(ord) ? 1 - i : i] = wrap_dim(t, int_arg(&a[2].at[i], 0), n);
    Value sums = CALL(t, aten_linalg_vector_norm_default, a[0], FLT(1),
                      list_of(t, INT(dim[0]), END), a[3], a[4]);
    Value along = list_of(t, INT(dim[1] - (!bool_arg(&a[3]) && dim[0] < dim[1])), END);
    *out = ord > 0 ? CALL(t, aten_amax_default, sums, along, a[3])
                   : CALL(t, aten_amin_default, sums, along, a[3]);
    return true;
}

bool rule_matrix_norm_str(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    if (a[1].kind == VAL_str && !strcmp(a[1].s, "nuc") && a[2].n == 2)
        return norm_of_values(t, a, OP_aten_sum_dim_IntList, out);
    if (a[1].kind != VAL_str || strcmp(a[1].s, "fro") || a[2].n != 2)
        return false;
    Value dims = val_list(t->arena, VAL_list, 2);
    for (int i = 0; i < 2; i++)
        dims.at[i] = INT(wrap_dim(t, int_arg(&a[2].at[i], 0), dim_of(a[0])));
    *out = CALL(t, aten_linalg_vector_norm_default, a[0], INT(2), dims, a[3], a[4]);
    return true;
}

static Value scaled(Trace *t, Value x, double by) {
    return CALL(t, aten_mul_Scalar, x, FLT(by));
}

bool rule_ndtr(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    Value x = CALL(t, aten_erf_default, scaled(t, a[0], 0.7071067811865476));
    *out = scaled(t, CALL(t, aten_add_Scalar, x, INT(1)), 0.5);
    return true;
}

bool rule_argsort_stable(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    *out = item_of(CALL(t, aten_sort_stable, a[0], a[1], a[2], a[3]), 1);
    return true;
}
