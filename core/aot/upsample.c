// upsample.c: resampling as the tracer sees it: places computed with arange, values fetched by
// index, neighbours weighted (torch/_decomp's _upsample_nearest and _upsample_linear).
#include "core/aot/composite.h"

#include <math.h>
#include <string.h>

enum { MAX_SPATIAL = 3 };

// Output sizes from sizes or scales; NONE if neither is given.
static Value output_sizes(Trace *t, Value x, Value size, Value scale) {
    if (size.kind != VAL_none)
        return size;
    if (scale.kind == VAL_none)
        return NONE;
    Value out = val_list(t->arena, VAL_list, scale.n);
    for (int i = 0; i < scale.n; i++) {
        const Expr *len = size_of(t, x, i + 2);
        double f = float_arg(&scale.at[i], 1);
        int64_t v = expr_int_or(len, -1);
        if (f == floor(f))
            out.at[i] = val_sym(sym_mul_int(t->sym, len, (int64_t)f));
        else if (v >= 0)
            out.at[i] = INT((int64_t)((double)v * f));
        else
            return NONE;
    }
    return out;
}

static Value scale_at(Value scales, int i) {
    return item_of(scales, i);
}

static Value fetch(Trace *t, Value x, const Value *places, int n) {
    Value index = val_list(t->arena, VAL_list, n + 2);
    for (int i = 0; i < n; i++)
        index.at[i + 2] = places[i];
    return CALL(t, aten__unsafe_index_Tensor, x, index);
}

Value upsample_nearest(Trace *t, Value x, Value osize, Value scales, bool exact) {
    int n = dim_of(x) - 2;
    Promotion p = promote_default(t, &x, 1);
    Value in = to_dtype(t, x, p.compute), places[MAX_SPATIAL];
    for (int d = 0; d < n && d < MAX_SPATIAL && !t->failed; d++) {
        Value o = item_of(osize, d), s = scale_at(scales, d);
        double isize = (double)expr_int_or(size_of(t, x, d - n), 1), f = float_arg(&s, 0);
        double scale = s.kind != VAL_none ? isize / (isize * f) : isize / float_arg(&o, 1);
        Value i = CALL(t, aten_arange_default, o, DTY(DT_f32), NONE,
                       (Value){.kind = VAL_device, .device = x.tensor->device}, BOOL(false));
        i = CALL(t, aten_add_Tensor, i, FLT(exact ? 0.5 : 0.0));
        i = CALL(t, aten_mul_Tensor, i, FLT(scale));
        i = to_dtype(t, i, DT_i64);
        for (int k = 0; k < n - 1 - d; k++)
            i = CALL(t, aten_unsqueeze_default, i, INT(-1));
        places[d] = i;
    }
    Value r = fetch(t, in, places, n);
    if (dim_of(r) == 4)
        r = contiguous(t, r, suggest_memory_format(t, x));
    return to_dtype(t, r, p.result);
}

typedef struct Axis {
    Value real, low, high; // source place, the places below and above it
} Axis;

static Axis linear_axis(Trace *t, Value x, const Expr *isize, Value osize, Value scale, bool align,
                        int squeeze, DType d) {
    double in = (double)expr_int_or(isize, 1), out = float_arg(&osize, 1), s = float_arg(&scale, 0);
    double f = align                             ? (out > 1 ? (in - 1) / (out - 1) : 0)
               : scale.kind != VAL_none && s > 0 ? 1 / s
                                                 : in / out;
    Value i = CALL(t, aten_arange_default, osize, NONE, NONE,
                   (Value){.kind = VAL_device, .device = x.tensor->device}, BOOL(false));
    i = to_dtype(t, i, d);
    if (!align)
        i = CALL(t, aten_add_Tensor, i, FLT(0.5));
    i = CALL(t, aten_mul_Tensor, i, align && out <= 1 ? INT(0) : FLT(f));
    if (!align)
        i = CALL(t, aten_sub_Tensor, i, FLT(0.5));
    i = CALL(t, aten_clamp_default, i, FLT(0));
    Value shape = val_list(t->arena, VAL_list, 1 + squeeze);
    for (int k = 0; k < shape.n; k++)
        shape.at[k] = k ? INT(1) : val_sym(size_of(t, i, 0));
    Axis a = {.real = reshape(t, i, shape)};
    a.low = to_dtype(t, a.real, DT_i64);
    Value next = CALL(t, aten_add_Tensor, a.low, INT(1));
    a.high = CALL(t, aten_clamp_default, next, NONE, val_sym(sym_add_int(t->sym, isize, -1)));
    return a;
}

Value upsample_linear(Trace *t, Value x, Value osize, Value scales, bool align) {
    int n = dim_of(x) - 2;
    if (n < 1 || n > MAX_SPATIAL) {
        trace_fail(t, "upsampling of a tensor with %d dimensions", dim_of(x));
        return NONE;
    }
    Promotion p = promote_default(t, &x, 1);
    Value in = to_dtype(t, x, p.compute);
    DType d = promote_int_to_float(t, &in, 1).result;
    Axis axis[MAX_SPATIAL];
    for (int k = 0; k < n; k++)
        axis[k] = linear_axis(t, x, size_of(t, x, k + 2), item_of(osize, k), scale_at(scales, k),
                              align, n - 1 - k, d);
    Value v[1 << MAX_SPATIAL];
    for (int c = 0; c < 1 << n; c++) {
        Value places[MAX_SPATIAL];
        for (int k = 0; k < n; k++)
            places[k] = c >> (n - 1 - k) & 1 ? axis[k].high : axis[k].low;
        v[c] = to_dtype(t, fetch(t, in, places, n), d);
    }
    for (int k = n - 1, count = 1 << n; k >= 0; k--, count /= 2) {
        Value w = CALL(t, aten_sub_Tensor, axis[k].real, axis[k].low);
        w = CALL(t, aten_clamp_default, w, FLT(0), FLT(1));
        w = to_dtype(t, w, d);
        for (int i = 0; i < count / 2; i++) {
            Value diff = CALL(t, aten_sub_Tensor, v[2 * i + 1], v[2 * i]);
            diff = CALL(t, aten_mul_Tensor, diff, w);
            v[i] = CALL(t, aten_add_Tensor, v[2 * i], diff);
        }
    }
    Value r = contiguous(t, v[0], suggest_memory_format(t, x));
    if (!dtype_is_float(dtype_of(x)))
        r = CALL(t, aten_round_default, r);
    return to_dtype(t, r, p.result);
}

bool rule_upsample_nearest_vec(Trace *t, const Op *op, const Value *a, Value *out) {
    Value size = output_sizes(t, a[0], a[1], a[2]);
    if (size.kind == VAL_none)
        return false;
    *out = upsample_nearest(t, a[0], size, a[2], strstr(op->name, "exact") != NULL);
    return true;
}

bool rule_upsample_linear_vec(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    Value size = output_sizes(t, a[0], a[1], a[3]);
    if (size.kind == VAL_none)
        return false;
    *out = upsample_linear(t, a[0], size, a[3], bool_arg(&a[2]));
    return true;
}
