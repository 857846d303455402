// upsample.c: resampling as the tracer sees it: places computed with arange, values fetched by
// index, neighbours weighted (torch/_decomp's _upsample_nearest and _upsample_linear).
#include "core/aot/composite.h"
#include "core/aot/decomp.h"

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

// Whether the ratio of sizes is a number: it is written into the graph as one. Between sizes that
// are symbols it is none unless the call gives it; with align_corners it is that of size - 1.
bool upsample_ratio_known(Trace *t, Value x, Value osize, Value scales, bool align) {
    int64_t in, out;
    for (int i = 0; i < dim_of(x) - 2; i++) {
        Value o = item_of(osize, i), s = item_of(scales, i);
        bool known = expr_int(size_of(t, x, i + 2), &in) && val_as_int(&o, &out);
        if (!known && (align || s.kind == VAL_none))
            return false;
    }
    return true;
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

// Places 0, 1, … of the result along an axis.
static Value counted(Trace *t, Value x, Value osize, DType d) {
    Value i = CALL(t, aten_arange_default, osize, NONE, NONE,
                   (Value){.kind = VAL_device, .device = x.tensor->device}, BOOL(false));
    return to_dtype(t, i, d);
}

// Places of the source to one of the result.
static double source_step(const Expr *isize, double out, Value scale, bool align) {
    double in = (double)expr_int_or(isize, 1), s = float_arg(&scale, 0);
    if (align)
        return out > 1 ? (in - 1) / (out - 1) : 0;
    return scale.kind != VAL_none && s > 0 ? 1 / s : in / out;
}

static Axis linear_axis(Trace *t, Value x, const Expr *isize, Value osize, Value scale, bool align,
                        int squeeze, DType d) {
    double out = float_arg(&osize, 1), f = source_step(isize, out, scale, align);
    Value i = counted(t, x, osize, d);
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

// cubic

// ((A + 2) x - (A + 3)) x x + 1: within one step.
static Value cubic_near(Trace *t, Value x, double A) {
    Value r = CALL(t, aten_mul_Tensor, x, FLT(A + 2));
    r = CALL(t, aten_sub_Tensor, r, FLT(A + 3));
    r = CALL(t, aten_mul_Tensor, r, x);
    r = CALL(t, aten_mul_Tensor, r, x);
    return CALL(t, aten_add_Tensor, r, INT(1));
}

// ((A x - 5 A) x + 8 A) x - 4 A: within two.
static Value cubic_far(Trace *t, Value x, double A) {
    Value r = CALL(t, aten_mul_Tensor, x, FLT(A));
    r = CALL(t, aten_sub_Tensor, r, FLT(5 * A));
    r = CALL(t, aten_mul_Tensor, r, x);
    r = CALL(t, aten_add_Tensor, r, FLT(8 * A));
    r = CALL(t, aten_mul_Tensor, r, x);
    return CALL(t, aten_sub_Tensor, r, FLT(4 * A));
}

// The CPU computes two of a kind at once.
void cubic_weights(Trace *t, Value x, Value w[4]) {
    const double A = -0.75;
    if (on_cpu(x)) {
        Value rest = CALL(t, aten_rsub_Scalar, x, FLT(1));
        Value near = CALL(t, aten_stack_default, list_of(t, x, rest, END));
        Value left = CALL(t, aten_add_Tensor, x, FLT(1));
        Value right = CALL(t, aten_rsub_Scalar, x, FLT(2));
        Value far = CALL(t, aten_stack_default, list_of(t, left, right, END));
        far = cubic_far(t, far, A);
        near = cubic_near(t, near, A);
        far = CALL(t, aten_unbind_int, far);
        near = CALL(t, aten_unbind_int, near);
        for (int i = 0; i < 4; i++)
            w[i] = i % 3 == 0 ? item_of(far, i / 3) : item_of(near, i - 1);
        return;
    }
    w[0] = cubic_far(t, CALL(t, aten_add_Tensor, x, FLT(1)), A);
    w[1] = cubic_near(t, x, A);
    w[2] = cubic_near(t, CALL(t, aten_rsub_Scalar, x, FLT(1)), A);
    w[3] = cubic_far(t, CALL(t, aten_rsub_Scalar, x, FLT(2)), A);
}

Value weighted_sum(Trace *t, const Value *v, const Value *w, int n) {
    Value sum = CALL(t, aten_mul_Tensor, v[0], w[0]);
    for (int i = 1; i < n; i++) {
        Value next = CALL(t, aten_mul_Tensor, v[i], w[i]);
        sum = CALL(t, aten_add_Tensor, sum, next);
    }
    return sum;
}

typedef struct CubicAxis {
    Value real, low; // source place and the place below it
    Value at[4];     // the places that weigh in
    Value weight[4];
    const Expr *last;
} CubicAxis;

static Value cubic_source(Trace *t, const Expr *isize, Value osize, Value scale, bool align,
                          Value i) {
    double out = float_arg(&osize, 1), f = source_step(isize, out, scale, align);
    if (align)
        return CALL(t, aten_mul_Tensor, i, out > 1 ? FLT(f) : INT(0));
    i = CALL(t, aten_add_Tensor, i, FLT(0.5));
    i = CALL(t, aten_mul_Tensor, i, FLT(f));
    return CALL(t, aten_sub_Tensor, i, FLT(0.5));
}

static Value cubic_fetch(Trace *t, Value x, const CubicAxis *h, int i, const CubicAxis *w, int k) {
    Value at[2];
    at[0] = CALL(t, aten_clamp_default, h->at[i], INT(0), val_sym(h->last));
    at[1] = CALL(t, aten_clamp_default, w->at[k], INT(0), val_sym(w->last));
    return fetch(t, x, at, 2);
}

// Rows first, then the columns of what they give.
static Value upsample_bicubic(Trace *t, Value x, Value osize, Value scales, bool align) {
    Promotion p = promote_default(t, &x, 1);
    Value in = to_dtype(t, x, p.compute);
    DType d = promote_int_to_float(t, &in, 1).result;
    CubicAxis h = {.last = sym_add_int(t->sym, size_of(t, x, 2), -1)};
    CubicAxis w = {.last = sym_add_int(t->sym, size_of(t, x, 3), -1)};
    Value i = counted(t, x, item_of(osize, 0), d);
    Value j = counted(t, x, item_of(osize, 1), d);
    w.real = cubic_source(t, size_of(t, x, 3), item_of(osize, 1), scale_at(scales, 1), align, j);
    h.real = cubic_source(t, size_of(t, x, 2), item_of(osize, 0), scale_at(scales, 0), align, i);
    h.real = CALL(t, aten_unsqueeze_default, h.real, INT(-1));
    w.low = CALL(t, aten_floor_default, w.real);
    h.low = CALL(t, aten_floor_default, h.real);
    Value part[2];
    CubicAxis *axis[2] = {&h, &w};
    for (int k = 0; k < 2; k++) {
        part[k] = CALL(t, aten_sub_Tensor, axis[k]->real, axis[k]->low);
        part[k] = CALL(t, aten_clamp_default, part[k], FLT(0), FLT(1));
    }
    w.low = to_dtype(t, w.low, DT_i64);
    h.low = to_dtype(t, h.low, DT_i64);
    for (int k = 0; k < 2; k++) {
        CubicAxis *c = axis[k];
        c->at[0] = CALL(t, aten_sub_Tensor, c->low, INT(1));
        c->at[1] = c->low;
        c->at[2] = CALL(t, aten_add_Tensor, c->low, INT(1));
        c->at[3] = CALL(t, aten_add_Tensor, c->low, INT(2));
    }
    cubic_weights(t, part[1], w.weight);
    cubic_weights(t, part[0], h.weight);
    Value rows[4], v[4];
    for (int k = 0; k < 4; k++) {
        for (int l = 0; l < 4; l++)
            v[l] = cubic_fetch(t, in, &h, k, &w, l);
        rows[k] = weighted_sum(t, v, w.weight, 4);
    }
    Value r = weighted_sum(t, rows, h.weight, 4);
    r = contiguous(t, r, suggest_memory_format(t, x));
    return to_dtype(t, r, p.result);
}

// uint8 images compute in integers.
bool decomp_upsample_bicubic(Trace *t, const Op *op, const Value *a, Value *out) {
    bool vec = strcmp(op->overload, "vec") == 0;
    if (dim_of(a[0]) != 4 || dtype_of(a[0]) == DT_u8)
        return false;
    Value size = vec ? output_sizes(t, a[0], a[1], a[3]) : a[1];
    Value scales = vec ? a[3] : list_of(t, a[3], a[4], END);
    if (size.kind == VAL_none || !upsample_ratio_known(t, a[0], size, scales, bool_arg(&a[2])))
        return false;
    *out = upsample_bicubic(t, a[0], size, scales, bool_arg(&a[2]));
    return true;
}

bool decomp_upsample_nearest(Trace *t, const Op *op, const Value *a, Value *out) {
    Value scales = val_list(t->arena, VAL_list, op->n_args - 2);
    for (int i = 0; i < scales.n; i++)
        scales.at[i] = a[2 + i];
    if (!upsample_ratio_known(t, a[0], a[1], scales, false))
        return false;
    *out = upsample_nearest(t, a[0], a[1], scales, strstr(op->name, "exact") != NULL);
    return true;
}

bool decomp_upsample_bilinear(Trace *t, const Op *op, const Value *a, Value *out) {
    Value scales = list_of(t, a[3], a[4], END);
    (void)op;
    if (!upsample_ratio_known(t, a[0], a[1], scales, bool_arg(&a[2])))
        return false;
    *out = upsample_linear(t, a[0], a[1], scales, bool_arg(&a[2]));
    return true;
}

bool rule_upsample_nearest_vec(Trace *t, const Op *op, const Value *a, Value *out) {
    Value size = output_sizes(t, a[0], a[1], a[2]);
    if (size.kind == VAL_none || !upsample_ratio_known(t, a[0], size, a[2], false))
        return false;
    *out = upsample_nearest(t, a[0], size, a[2], strstr(op->name, "exact") != NULL);
    return true;
}

bool rule_upsample_linear_vec(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    Value size = output_sizes(t, a[0], a[1], a[3]);
    if (size.kind == VAL_none || !upsample_ratio_known(t, a[0], size, a[3], bool_arg(&a[2])))
        return false;
    *out = upsample_linear(t, a[0], size, a[3], bool_arg(&a[2]));
    return true;
}
