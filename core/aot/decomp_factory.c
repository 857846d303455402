// decomp_factory.c: decompositions of ops that make tensors: all end in full, prims.iota or empty.
#include "core/aot/decomp.h"

#include <math.h>

static Device device_of(const Value *v, Device fallback) {
    return v->kind == VAL_device ? v->device : fallback;
}

static const Device cpu = {DEV_cpu, -1};

static DType dtype_or(const Value *v, DType fallback) {
    return v->kind == VAL_dtype ? v->dtype : fallback;
}

static Value zero_of(DType d) {
    return d == DT_b8 ? BOOL(false) : INT(0);
}

static Value one_of(DType d) {
    return d == DT_b8 ? BOOL(true) : INT(1);
}

bool decomp_arange_default(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    *out = arange_of(t, INT(0), a[0], INT(1), dtype_or(&a[1], DT_none), device_of(&a[3], cpu));
    return true;
}

bool decomp_arange_start(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    *out = arange_of(t, a[0], a[1], INT(1), dtype_or(&a[2], DT_none), device_of(&a[4], cpu));
    return true;
}

static bool is_integer(const Value *v) {
    return v->kind == VAL_int || v->kind == VAL_sym || v->kind == VAL_bool;
}

static Value iota(Trace *t, Value length, Value start, Value step, DType d, Device dev) {
    return CALL(t, prims_iota_default, length, start, step, DTY(d),
                (Value){.kind = VAL_device, .device = dev}, BOOL(false));
}

// Number of steps of integers: rounded up without a ceil.
static const Expr *int_length(Trace *t, const Value *a) {
    const Expr *start, *end, *step;
    if (!val_as_expr(t->sym, &a[0], &start) || !val_as_expr(t->sym, &a[1], &end) ||
        !val_as_expr(t->sym, &a[2], &step))
        return NULL;
    int64_t s = expr_int_or(step, 1), sign = s > 0 ? 1 : s < 0 ? -1 : 0;
    const Expr *span =
        sym_add_int(t->sym, sym_add(t->sym, sym_sub(t->sym, end, start), step), -sign);
    return sym_floordiv(t->sym, span, step);
}

bool decomp_arange(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    bool ints = is_integer(&a[0]) && is_integer(&a[1]) && is_integer(&a[2]);
    DType d = dtype_or(&a[3], ints ? DT_i64 : DT_f32);
    Device dev = device_of(&a[5], cpu);
    Value length;
    if (ints || d == DT_i64) {
        Value whole[3];
        for (int i = 0; i < 3; i++)
            whole[i] = is_integer(&a[i]) ? a[i] : INT((int64_t)float_arg(&a[i], 0));
        const Expr *n = int_length(t, whole);
        if (!n || value_is_zero(&whole[2]))
            return false;
        length = val_sym(n);
        if (dtype_is_int(d)) {
            *out = iota(t, length, whole[0], whole[2], d, dev);
            return true;
        }
    } else {
        double step = float_arg(&a[2], 1);
        length = INT((int64_t)ceil((float_arg(&a[1], 0) - float_arg(&a[0], 0)) / step));
        if (dtype_is_int(d)) {
            *out = iota(t, length, INT((int64_t)float_arg(&a[0], 0)), INT((int64_t)step), d, dev);
            return true;
        }
    }
    Value i = iota(t, length, INT(0), INT(1), DT_i64, dev);
    if (!ints) {
        DType acc = dev.type == DEV_cpu ? DT_f64 : dtype_compute(d);
        i = CALL(t, prims_convert_element_type_default, i, DTY(acc));
    }
    i = CALL(t, aten_mul_Tensor, i, a[2]);
    i = CALL(t, aten_add_Tensor, i, a[0]);
    *out = dtype_of(i) == d ? i : CALL(t, prims_convert_element_type_default, i, DTY(d));
    return true;
}

bool decomp_zeros(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    DType d = dtype_or(&a[1], DT_f32);
    *out = full_of(t, a[0], zero_of(d), d, device_of(&a[3], cpu));
    return true;
}

bool decomp_ones(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    DType d = dtype_or(&a[1], DT_f32);
    *out = full_of(t, a[0], one_of(d), d, device_of(&a[3], cpu));
    return true;
}

static Value memory_format(Value given, MemoryFormat like) {
    bool keep = given.kind != VAL_memory_format || given.mf == MF_preserve;
    return (Value){.kind = VAL_memory_format, .mf = keep ? like : given.mf};
}

static bool like(Trace *t, const Value *a, Value fill, Value *out) {
    *out = CALL(t, aten_full_like_default, a[0], fill, a[1], a[2], a[3], a[4], a[5]);
    return true;
}

bool decomp_zeros_like(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    return like(t, a, zero_of(dtype_or(&a[1], dtype_of(a[0]))), out);
}

bool decomp_ones_like(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    return like(t, a, one_of(dtype_or(&a[1], dtype_of(a[0]))), out);
}

bool decomp_zero(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    *out = CALL(t, aten_zeros_like_default, a[0]);
    return true;
}

bool decomp_full_like(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    Value x = full_of(t, sizes_of(t, a[0]), a[1], dtype_or(&a[2], dtype_of(a[0])),
                      device_of(&a[4], a[0].tensor->device));
    Value mf = memory_format(a[6], suggest_memory_format(t, a[0]));
    *out = CALL(t, aten_to_dtype_layout, x, NONE, NONE, NONE, NONE, BOOL(false), BOOL(false), mf);
    return true;
}

bool decomp_full(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    if (!out)
        return trace_accepts(t, a[2].kind == VAL_none, "its dtype is given");
    DType d = a[1].kind == VAL_bool                          ? DT_b8
              : a[1].kind == VAL_int || a[1].kind == VAL_sym ? DT_i64
                                                             : DT_f32;
    *out = full_of(t, a[0], a[1], d, device_of(&a[4], cpu));
    return true;
}

bool decomp_new_full(Trace *t, const Op *op, const Value *a, Value *out) {
    bool given = op->id == OP_aten_new_full_default;
    int at = given ? 3 : 2;
    DType d = dtype_or(&a[at], dtype_of(a[0]));
    Value fill = given ? a[2] : op->id == OP_aten_new_zeros_default ? zero_of(d) : one_of(d);
    *out = full_of(t, a[1], fill, d, device_of(&a[at + 2], a[0].tensor->device));
    return true;
}

static Value empty_of(Trace *t, Value size, DType d, Device dev) {
    return CALL(t, aten_empty_memory_format, size, DTY(d),
                (Value){.kind = VAL_layout, .layout = LAYOUT_strided},
                (Value){.kind = VAL_device, .device = dev}, BOOL(false));
}

bool decomp_new_empty(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    *out =
        empty_of(t, a[1], dtype_or(&a[2], dtype_of(a[0])), device_of(&a[4], a[0].tensor->device));
    return true;
}

// Dimensions from the largest stride to the smallest.
static Value physical_order(Trace *t, const TensorMeta *m) {
    Value order = dims_range(t, 0, m->ndim);
    for (int i = 1; i < m->ndim; i++)
        for (int k = i; k > 0; k--) {
            int64_t above = expr_int_or(m->stride[order.at[k - 1].i], 0),
                    here = expr_int_or(m->stride[order.at[k].i], 0);
            if (above >= here)
                break;
            Value swap = order.at[k];
            order.at[k] = order.at[k - 1];
            order.at[k - 1] = swap;
        }
    return order;
}

bool decomp_empty_like(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    DType d = dtype_or(&a[1], dtype_of(a[0]));
    Device dev = device_of(&a[3], a[0].tensor->device);
    if (a[5].kind == VAL_memory_format && a[5].mf != MF_preserve) {
        *out = CALL(t, aten_empty_memory_format, sizes_of(t, a[0]), DTY(d),
                    (Value){.kind = VAL_layout, .layout = LAYOUT_strided},
                    (Value){.kind = VAL_device, .device = dev}, BOOL(false), a[5]);
        return true;
    }
    Value order = physical_order(t, a[0].tensor);
    *out = CALL(t, aten_empty_permuted_default, sizes_of(t, a[0]), order, DTY(d),
                (Value){.kind = VAL_layout, .layout = LAYOUT_strided},
                (Value){.kind = VAL_device, .device = dev}, BOOL(false));
    return true;
}

bool decomp_empty_permuted(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    int n = a[1].n;
    Value size = val_list(t->arena, VAL_list, n), back = val_list(t->arena, VAL_list, n);
    for (int i = 0; i < n; i++) {
        int64_t l = int_arg(&a[1].at[i], i);
        if (l < 0 || l >= n || l >= a[0].n)
            return false;
        size.at[i] = a[0].at[l];
        back.at[l] = INT(i);
    }
    Value x = empty_of(t, size, dtype_or(&a[2], DT_f32), device_of(&a[4], cpu));
    *out = CALL(t, aten_permute_default, x, back);
    return true;
}

bool decomp_eye(Trace *t, const Op *op, const Value *a, Value *out) {
    bool two = op->id == OP_aten_eye_m;
    int at = two ? 2 : 1;
    DType d = dtype_or(&a[at], DT_f32);
    Value dev = {.kind = VAL_device, .device = device_of(&a[at + 2], cpu)};
    Value rows = CALL(t, aten_arange_default, a[0], DTY(DT_i64), NONE, dev, BOOL(false));
    Value cols =
        CALL(t, aten_arange_default, two ? a[1] : a[0], DTY(DT_i64), NONE, dev, BOOL(false));
    rows = CALL(t, aten_unsqueeze_default, rows, INT(-1));
    Value eq = CALL(t, aten_eq_Tensor, rows, cols);
    if (d == DT_b8) {
        *out = eq;
        return true;
    }
    Value one = full_of(t, list_of(t, INT(1), END), INT(1), d, dev.device);
    *out = CALL(t, aten_where_ScalarOther, eq, one, INT(0));
    return true;
}

bool decomp_linspace(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    DType d = dtype_or(&a[3], DT_f32);
    Device dev = device_of(&a[5], cpu);
    int64_t steps = int_arg(&a[2], -1);
    if (steps < 0)
        return false;
    if (steps <= 1) {
        *out = full_of(t, list_of(t, INT(steps), END), FLT(float_arg(&a[0], 0)), d, dev);
        return true;
    }
    bool whole = dtype_is_int(d);
    DType compute = whole ? DT_i64 : dtype_compute(d);
    double start = float_arg(&a[0], 0), end = float_arg(&a[1], 0),
           step = (end - start) / (double)(steps - 1);
    Value r = CALL(t, aten_arange_start_step, INT(0), INT(steps), INT(1), NONE, NONE,
                   (Value){.kind = VAL_device, .device = dev}, BOOL(false));
    Value low = CALL(t, aten_lt_Scalar, r, FLT((double)steps / 2));
    Value up =
        dtype_of(r) == compute ? r : CALL(t, prims_convert_element_type_default, r, DTY(compute));
    up = CALL(t, aten_mul_Tensor, up, FLT(step));
    up = CALL(t, aten_add_Tensor, up, a[0]);
    Value down = CALL(t, aten_rsub_Scalar, r, INT(steps - 1));
    down = dtype_of(down) == compute
               ? down
               : CALL(t, prims_convert_element_type_default, down, DTY(compute));
    down = CALL(t, aten_mul_Tensor, down, FLT(step));
    down = CALL(t, aten_rsub_Scalar, down, a[1]);
    Value x = CALL(t, aten_where_self, low, up, down);
    *out = dtype_of(x) == d ? x : CALL(t, prims_convert_element_type_default, x, DTY(d));
    return true;
}
