// composite.c: the table of composite.def, and ops that only change their name or the type of an
// argument.
#include "core/aot/composite.h"

#include <math.h>
#include <string.h>

#define COMPOSITE(op, rule, doc)
#define RENAMED(op, other)                                                                         \
    static bool to_##op(Trace *t, const Op *o, const Value *a, Value *out) {                       \
        const Op *x = op_at(OP_##other);                                                           \
        *out = trace_apply(t, x, a, o->n_args < x->n_args ? o->n_args : x->n_args);                \
        return true;                                                                               \
    }
#include "core/aot/composite.def"
#undef COMPOSITE
#undef RENAMED

const CompositeRule composite_rules[OP_count] = {
#define COMPOSITE(op, rule, doc) [OP_##op] = {rule_##rule, doc},
#define RENAMED(op, other)       [OP_##op] = {to_##op, "another name of " #other},
#include "core/aot/composite.def"
#undef COMPOSITE
#undef RENAMED
};

// Ops that PyTorch's tracing takes apart by their decomposition before autograd sees them, whatever
// the table; one that is kept by hand stays, and so does one of integers, whose kernel rounds in
// its own way.
bool rule_before_autograd(Trace *t, const Op *op, const Value *a, Value *out) {
    const DecompRule *rule = &decomp_rules[op->id];
    if (!rule->rule || t->below || !dtype_is_float(dtype_of(a[0])))
        return false;
    Decide ask = {.kind = DECIDE_decomposition,
                  .key = op->qualname + strlen("torch.ops."),
                  .by_default = true,
                  .unlimited = t->tape != NULL,
                  .reason = rule->doc};
    return decide(t->req->decisions, &ask) && rule->rule(t, op, a, out);
}

bool rule_itself(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)t, (void)op;
    if (dtype_info[dtype_of(a[0])].cls == DTC_COMPLEX)
        return false;
    *out = a[0];
    return true;
}

// An exported program asserts what it assumed of a tensor's type; here that is known.
bool rule_assert_metadata(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    const TensorMeta *m = meta_of(a[0]);
    if (m && a[3].kind == VAL_dtype && a[3].dtype != m->dtype)
        trace_fail(t, "RuntimeError: tensor dtype mismatch: %s, expected %s",
                   dtype_info[m->dtype].torch_name, dtype_info[a[3].dtype].torch_name);
    *out = NONE;
    return true;
}

bool rule_square(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    *out = CALL(t, aten_pow_Tensor_Scalar, a[0], INT(2));
    return true;
}

bool rule_square_(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    *out = CALL(t, aten_pow__Scalar, a[0], INT(2));
    return true;
}

bool rule_selu(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    *out = CALL(t, aten_elu_default, a[0], FLT(1.6732632423543772848170429916717),
                FLT(1.0507009873554804934193349852946));
    return true;
}

bool rule_relu6(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    *out = CALL(t, aten_hardtanh_default, a[0], INT(0), INT(6));
    return true;
}

// The places below zero draw their slopes into memory of their own.
bool rule_rrelu(Trace *t, const Op *op, const Value *a, Value *out) {
    Value noise = CALL(t, aten_empty_like_default, a[0], NONE, NONE, NONE, NONE,
                       (Value){.kind = VAL_memory_format, .mf = MF_contiguous});
    *out = CALL(t, aten_rrelu_with_noise_default, a[0], noise, a[1], a[2], a[3], a[4]);
    if (op->id == OP_aten_rrelu__default)
        *out = CALL(t, aten_copy__default, a[0], *out);
    return true;
}

bool rule_prelu(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    Value w = a[1];
    int n = dim_of(a[0]);
    if (n != dim_of(w)) {
        Value shape = val_list(t->arena, VAL_list, n);
        for (int i = 0; i < n; i++)
            shape.at[i] = i == 1 ? numel_of(t, w) : INT(1);
        w = reshape(t, w, shape);
    }
    *out = CALL(t, aten__prelu_kernel_default, a[0], w);
    return true;
}

bool rule_log_sigmoid(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    *out = item_of(CALL(t, aten_log_sigmoid_forward_default, a[0]), 0);
    return true;
}

bool rule_isfinite(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    if (!dtype_is_float(dtype_of(a[0]))) {
        *out = CALL(t, aten_ones_like_default, a[0], DTY(DT_b8));
        return true;
    }
    // Of C++'s `(x == x) * (x.abs() != inf)` the right operand is made first.
    Value abs = CALL(t, aten_abs_default, a[0]);
    Value ne = CALL(t, aten_ne_Scalar, abs, FLT(INFINITY));
    Value eq = CALL(t, aten_eq_Tensor, a[0], a[0]);
    *out = CALL(t, aten_mul_Tensor, eq, ne);
    return true;
}

// isclose(self, other, rtol, atol, equal_nan)
bool rule_isclose(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    double rtol = float_arg(&a[2], 1e-5), atol = float_arg(&a[3], 1e-8);
    DType d = dtype_of(a[0]);
    *out = CALL(t, aten_eq_Tensor, a[0], a[1]);
    if (bool_arg(&a[4]) && dtype_is_float(d)) {
        Value other = CALL(t, aten_isnan_default, a[1]);
        Value both = CALL(t, aten_bitwise_and__Tensor, CALL(t, aten_isnan_default, a[0]), other);
        *out = CALL(t, aten_bitwise_or__Tensor, *out, both);
    }
    if (rtol == 0 && atol == 0)
        return true;
    Value x = d == DT_b8 ? to_dtype(t, a[0], DT_f32) : a[0];
    Value y = dtype_is_float(d) ? a[1] : to_dtype(t, a[1], DT_f32);
    Value allowed = CALL(t, aten_abs_default, CALL(t, aten_mul_Scalar, y, FLT(rtol)));
    allowed = CALL(t, aten_add_Scalar, allowed, FLT(atol));
    Value error = CALL(t, aten_abs_default, CALL(t, aten_sub_Tensor, x, y));
    Value finite = CALL(t, aten_isfinite_default, error);
    Value close = CALL(t, aten_le_Tensor, error, allowed);
    close = CALL(t, aten_bitwise_and__Tensor, finite, close);
    *out = CALL(t, aten_bitwise_or__Tensor, *out, close);
    return true;
}

// ldexp(self, other): mantissas times powers of two
bool rule_ldexp(Trace *t, const Op *op, const Value *a, Value *out) {
    Value power = CALL(t, aten_pow_Scalar, FLT(2), a[1]);
    DType d = a[0].tensor->dtype;
    *out = op->id == OP_aten_ldexp__default ? CALL(t, aten_mul__Tensor, a[0], power)
                                            : CALL(t, aten_mul_Tensor, a[0], power);
    if (out->kind == VAL_tensor && dtype_is_float(d) && out->tensor->dtype != d &&
        dtype_info[a[1].tensor->dtype].cls == DTC_INT)
        *out = CALL(t, aten__to_copy_default, *out, val_dtype(d));
    return true;
}

bool rule_where_scalar(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    DType d = ops_result_type(a + 1, 2);
    Value v[2] = {a[1], a[2]};
    for (int i = 1; i >= 0; i--)
        v[i] = v[i].kind == VAL_tensor ? v[i] : scalar_tensor(t, v[i], d, a[0].tensor->device);
    for (int i = 0; i < 2; i++)
        v[i] = to_dtype(t, v[i], d);
    *out = CALL(t, aten_where_self, a[0], v[0], v[1]);
    return true;
}

bool rule_float_power(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    Value x = to_dtype(t, a[0], DT_f64);
    *out = a[1].kind == VAL_tensor ? CALL(t, aten_pow_Tensor_Tensor, x, to_dtype(t, a[1], DT_f64))
                                   : CALL(t, aten_pow_Tensor_Scalar, x, FLT(float_arg(&a[1], 0)));
    return true;
}

// conversions

static bool same_device(const TensorMeta *m, const Value *v) {
    return v->kind != VAL_device ||
           (v->device.type == m->device.type &&
            (v->device.index == m->device.index || v->device.index < 0 || m->device.index < 0));
}

static Value converted(Trace *t, Value x, Value dtype, Value layout, Value device, bool copy,
                       Value mf) {
    const TensorMeta *m = meta_of(x);
    if (!m)
        return x;
    bool same_format = mf.kind != VAL_memory_format || mf.mf == MF_preserve ||
                       suggest_memory_format(t, x) == mf.mf;
    if ((dtype.kind != VAL_dtype || dtype.dtype == m->dtype) && same_device(m, &device) &&
        same_format && !copy)
        return x;
    return CALL(t, aten__to_copy_default, x, dtype, layout, device, NONE, BOOL(false), mf);
}

bool rule_to_dtype(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    *out = converted(t, a[0], a[1], NONE, NONE, bool_arg(&a[3]), a[4]);
    return true;
}

// _cast_Float(self, non_blocking) and its kin
bool rule_cast_named(Trace *t, const Op *op, const Value *a, Value *out) {
    for (int d = 0; d < DT_count; d++)
        if (dtype_info[d].scalar_name &&
            strcmp(op->name + strlen("_cast_"), dtype_info[d].scalar_name) == 0)
            *out = CALL(t, aten_to_dtype, a[0], val_dtype((DType)d), a[1]);
    return true;
}

bool rule_to_dtype_layout(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    *out = converted(t, a[0], a[1], a[2], a[3], bool_arg(&a[6]), a[7]);
    return true;
}

bool rule_to_device(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    *out = converted(t, a[0], a[2], NONE, a[1], bool_arg(&a[4]), a[5]);
    return true;
}

bool rule_to_other(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    const TensorMeta *o = meta_of(a[1]);
    Value dev = {.kind = VAL_device, .device = o->device};
    *out = converted(t, a[0], DTY(o->dtype), (Value){.kind = VAL_layout, .layout = o->layout}, dev,
                     bool_arg(&a[3]), a[4]);
    return true;
}

bool rule_type_as(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    *out = converted(t, a[0], DTY(dtype_of(a[1])), NONE, NONE, false, NONE);
    return true;
}

bool rule_softmax(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    Value x = a[2].kind == VAL_dtype ? to_dtype(t, a[0], a[2].dtype) : a[0];
    *out = CALL(t, aten__softmax_default, x, a[1], BOOL(false));
    return true;
}

bool rule_log_softmax(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    Value x = a[2].kind == VAL_dtype ? to_dtype(t, a[0], a[2].dtype) : a[0];
    *out = CALL(t, aten__log_softmax_default, x, a[1], BOOL(false));
    return true;
}

// std and var: one correction instead of a flag

static Value corrected(Trace *t, const Op *op, Value x, Value dim, const Value *unbiased,
                       Value keepdim) {
    const Op *form = op_find_overload("aten", op->name, "correction");
    Value args[4] = {x, dim, INT(bool_arg(unbiased) ? 1 : 0), keepdim};
    return trace_dispatch(t, form, args);
}

bool rule_std_unbiased(Trace *t, const Op *op, const Value *a, Value *out) {
    *out = corrected(t, op, a[0], NONE, &a[1], BOOL(false));
    return true;
}

bool rule_std_dim(Trace *t, const Op *op, const Value *a, Value *out) {
    *out = corrected(t, op, a[0], a[1], &a[2], a[3]);
    return true;
}

bool rule_argsort(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    *out = item_of(CALL(t, aten_sort_default, a[0], a[1], a[2]), 1);
    return true;
}

bool rule_msort(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    *out = item_of(CALL(t, aten_sort_default, a[0], INT(0), BOOL(false)), 0);
    return true;
}

static Value diff_once(Trace *t, Value x, Value dim) {
    int d = (int)int_arg(&dim, -1);
    const Expr *len = sym_add_int(t->sym, size_of(t, x, d), -1);
    Value low = narrow(t, x, d, sym_int(t->sym, 0), len);
    Value high = narrow(t, x, d, sym_int(t->sym, 1), len);
    if (dtype_of(x) == DT_b8)
        return CALL(t, aten_logical_xor_default, high, low);
    return CALL(t, aten_sub_Tensor, high, low);
}

bool rule_diff(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    Value x = a[0];
    int64_t times = int_arg(&a[1], 1);
    bool ends = times && (a[3].kind == VAL_tensor || a[4].kind == VAL_tensor);
    if (!times)
        x = CALL(t, aten_clone_default, x);
    if (ends) {
        Value list = a[3].kind == VAL_tensor ? list_of(t, a[3], x, END) : list_of(t, x, END);
        if (a[4].kind == VAL_tensor)
            list =
                a[3].kind == VAL_tensor ? list_of(t, a[3], x, a[4], END) : list_of(t, x, a[4], END);
        x = CALL(t, aten_cat_default, list, a[2]);
    }
    for (int64_t i = times; i > 0 && !t->failed; i--)
        x = diff_once(t, x, a[2]);
    *out = x;
    return true;
}

bool rule_one_hot(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    if (int_arg(&a[1], -1) < 0)
        return false;
    Value dev = {.kind = VAL_device, .device = a[0].tensor->device};
    Value places = CALL(t, aten_arange_default, a[1], DTY(DT_i64), NONE, dev);
    Value x = CALL(t, aten_unsqueeze_default, a[0], INT(-1));
    Value eq = CALL(t, aten_eq_Tensor, x, places);
    *out = to_dtype(t, eq, DT_i64);
    return true;
}
