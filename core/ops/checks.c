// checks.c: what an op demands of its arguments, from checks.def: before its meta function and its
// kernel, so that a trace refuses what a run refuses.
#include "core/ops/checks.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/vec.h"
#include "core/ops/outside.h"

// One dtype, or one of them is not there.
static bool is_same(const Call *c, const char *a, const char *b) {
    return !check_tensor(c, a) || !check_tensor(c, b) || check_dtype(c, a) == check_dtype(c, b);
}

// A parameter of a norm: of the input's dtype, or float32 beside a low one.
static bool is_parameter(const Call *c, const char *input, const char *name) {
    DType d = check_dtype(c, input), p = check_dtype(c, name);
    return p == DT_none || d == p || (dtype_is_low(d) && p == DT_f32);
}

static bool is_real(DType d) {
    return d == DT_none || dtype_is_float(d) || dtype_info[d].cls == DTC_COMPLEX;
}

// One size, or one of them is not known.
static bool is_alike(int64_t a, int64_t b) {
    return a < 0 || b < 0 || a == b;
}

// Whether floats hold 1 / x.
static bool holds_inverse(double x) {
    return !(fabs(1 / x) > 0x1.fffffep127) || isinf(1 / x);
}

// Numbers of pools are C's ints.
static bool are_ints(const Call *c, const char *name) {
    return check_length(c, name) <= 0 ||
           (fit_least(c, name) >= INT32_MIN && fit_most(c, name) <= INT32_MAX);
}

static bool is_int_dtype(DType d) {
    return dtype_info[d].cls == DTC_INT;
}

static bool is_index(DType d) {
    return d == DT_none || d == DT_i64 || d == DT_i32;
}

// Known sizes other than that of the batch are not 0; dims: with a batch.
static bool is_filled(const Call *c, const char *name, int dims) {
    int n = check_rank(c, name);
    for (int i = n == dims; i < n; i++)
        if (check_size(c, name, i, 1) == 0)
            return false;
    return true;
}

// Whether a number can be stored as dtype d: PyTorch's check_overflow.
static bool fits(const Value *v, DType d) {
    static const struct {
        DType d;
        double low, high;
    } bounds[] = {{DT_u8, -255, 255},
                  {DT_i8, INT8_MIN, INT8_MAX},
                  {DT_i16, INT16_MIN, INT16_MAX},
                  {DT_i32, INT32_MIN, INT32_MAX},
                  {DT_i64, -0x1p63, 0x1p63},
                  {DT_f16, -65504, 65504},
                  {DT_bf16, -0x1.fep127, 0x1.fep127},
                  {DT_f32, -0x1.fffffep127, 0x1.fffffep127}};
    int64_t i;
    bool real = v->kind == VAL_float;
    double x = v->kind == VAL_float                      ? v->f
               : v->kind == VAL_int && val_as_int(v, &i) ? (double)i
                                                         : 0;
    for (int k = 0; k < COUNT(bounds); k++)
        if (bounds[k].d == d)
            return dtype_is_float(d)
                       ? isnan(x) || isinf(x) || (x >= bounds[k].low && x <= bounds[k].high)
                       : x >= (real && d == DT_u8 ? 0 : bounds[k].low) && x <= bounds[k].high;
    return true;
}

// Integers take a number without its fraction.
static bool whole_fits(const Value *v, DType d) {
    bool whole = v->kind == VAL_float && !dtype_is_float(d) && fits(v, DT_i64);
    Value trimmed = whole ? val_int((int64_t)v->f) : *v;
    return fits(&trimmed, d);
}

// C's name of a dtype, in messages about numbers.
static const char *c_name(DType d) {
    switch (d) {
    case DT_f16:
        return "c10::Half";
    case DT_bf16:
        return "c10::BFloat16";
    default:
        return dtype_info[d].c_type;
    }
}

static bool are_indices(const Value *list, bool masks) {
    for (int i = 0; i < list->n; i++) {
        DType d = list->at[i].kind == VAL_tensor ? list->at[i].tensor->dtype : DT_i64;
        if (!is_index(d) && !(masks && (d == DT_b8 || d == DT_u8)))
            return false;
    }
    return true;
}

static bool has_index(const Value *list) {
    for (int i = 0; i < list->n; i++)
        if (list->at[i].kind == VAL_tensor)
            return true;
    return false;
}

// A mode of padding that takes its elements from the input.
static bool pads_by_copy(const Call *c) {
    const Value *v = check_arg(c, "mode");
    return v->kind == VAL_str ? strcmp(v->s, "constant") != 0 : check_number(c, "mode") != 3;
}

// Whether a batch norm reads the size of dimension 1: while it trains, and where memory is dense.
static bool counts_channels(const Call *c) {
    const TensorMeta *t = check_tensor(c, "input");
    bool trains = op_arg_index(c->op, "training") >= 0 ? meta_arg_bool(c->op, c->args, "training")
                                                       : strstr(c->op->name, "with_update") != NULL;
    return trains || (t && is_real(t->dtype) && meta_is_contiguous(c->m->sym, t, MF_contiguous));
}

// A number that a range of the dtype asked for begins or ends with.
static bool converts(const Call *c, const char *name) {
    DType d = meta_arg_dtype(c->op, c->args, DT_f32);
    return fits(check_arg(c, name), d) && (!is_int_dtype(d) || isfinite(check_number(c, name)));
}

static bool is_one_dtype(const Value *list) {
    for (int i = 1; i < list->n; i++)
        if (list->at[i].tensor->dtype != list->at[0].tensor->dtype)
            return false;
    return true;
}

static bool is_one_of(const char *s, const char *const *words, int n) {
    return str_index(s, words, n) >= 0;
}

static const char *text(const Call *c, const char *name) {
    const Value *v = check_arg(c, name);
    return v->kind == VAL_str ? v->s : "";
}

// Whether a tensor fits into the sizes of another as they are; what is not known fits.
static bool expands(const Call *c, const char *name, const char *into, bool same) {
    const TensorMeta *a = check_tensor(c, name), *b = check_tensor(c, into);
    if (!a || !b)
        return true;
    if (same ? a->ndim != b->ndim : a->ndim > b->ndim)
        return false;
    for (int i = 1; i <= a->ndim; i++) {
        int64_t x = expr_int_or(a->size[a->ndim - i], -1),
                y = expr_int_or(b->size[b->ndim - i], -1);
        if (x >= 0 && y >= 0 && x != y && (same || x != 1))
            return false;
    }
    return true;
}

// Edges of bins: vectors of the input's dtype.
static bool are_edges(const Call *c) {
    const Value *list = check_arg(c, "bins");
    for (int i = 0; i < list->n; i++)
        if (list->at[i].kind == VAL_tensor &&
            (list->at[i].tensor->ndim != 1 || list->at[i].tensor->dtype != check_dtype(c, "self")))
            return false;
    return true;
}

static bool are_ones(const Value *list) {
    int64_t n;
    bool many = list->kind == VAL_list || list->kind == VAL_tuple;
    for (int i = 0; i < (many ? list->n : 1); i++)
        if (val_as_int(many ? &list->at[i] : list, &n) && n != 1)
            return false;
    return true;
}

// A dtype asked for that holds less than the input's.
static bool widened(DType from, DType to) {
    return to != DT_none && from != DT_none && dtype_promote(from, to) != to;
}

// A number that can be drawn: integers up to what floats count exactly.
static bool is_drawn(DType d, double x) {
    Value v = val_int(x >= 0x1p63 ? INT64_MAX : x < -0x1p63 ? INT64_MIN : (int64_t)x);
    return isnan(x) || d == DT_none ||
           (d == DT_b8   ? x >= 0 && x <= 1
            : d == DT_u8 ? x >= 0 && x <= 255
                         : fits(&v, d));
}

// Steps lead from start to end.
static bool is_way(const Call *c) {
    double from = op_arg_index(c->op, "start") >= 0 ? check_number(c, "start") : 0,
           to = check_number(c, "end"),
           step = op_arg_index(c->op, "step") >= 0 ? check_number(c, "step") : 1;
    return isnan(from) || isnan(to) || isnan(step) || step == 0 ||
           (step > 0 ? from <= to : from >= to);
}

// Dimensions behind batch and channels are not 0.
static bool has_space(const Call *c, const char *name) {
    for (int i = 2; i < check_rank(c, name); i++)
        if (check_size(c, name, i, 1) == 0)
            return false;
    return true;
}

// Lists of tensors hold nothing else.
static bool has_tensors(MetaCtx *m, const Op *op, const Value *args) {
    for (int i = 0; i < op->n_args; i++) {
        const Value *v = &args[i];
        bool list = v->kind == VAL_list || v->kind == VAL_tuple;
        if (op->args[i].type != AT_tensors || op->args[i].optional_items || !list)
            continue;
        for (int j = 0; j < v->n; j++)
            if (v->at[j].kind != VAL_tensor)
                return meta_fail(m,
                                 "TypeError: %s.%s: expected Tensor as element %d in argument '%s'",
                                 op->name, op->overload, j, op->args[i].name);
    }
    return true;
}

// bool[3] takes three truth values.
static bool has_length(MetaCtx *m, const Op *op, const Value *args) {
    for (int i = 0; i < op->n_args; i++)
        if (op->args[i].type == AT_bools && op->args[i].fixed && args[i].kind == VAL_list &&
            args[i].n != op->args[i].fixed)
            return meta_fail(m,
                             "RuntimeError: %s.%s: argument '%s' has %d elements, a fixed-size "
                             "array of %d is expected",
                             op->name, op->overload, op->args[i].name, args[i].n,
                             op->args[i].fixed);
    return true;
}

// Memory that is not pinned, and a memory format of the rank that the tensor has.
static bool has_format(MetaCtx *m, const Op *op, const Value *args) {
    const Value *v = meta_arg(op, args, "memory_format"), *size = meta_arg(op, args, "size");
    // A trace may be of a machine that has one; what runs runs here.
    if (m->checked && meta_arg_bool(op, args, "pin_memory"))
        return meta_fail(m,
                         "RuntimeError: Cannot access accelerator device when none is available.");
    bool last =
        v->kind == VAL_memory_format && (v->mf == MF_channels_last || v->mf == MF_channels_last_3d);
    int n = size->kind == VAL_list                     ? size->n
            : op->n_args && args[0].kind == VAL_tensor ? args[0].tensor->ndim
                                                       : -1,
        need = last && v->mf == MF_channels_last ? 4 : 5;
    return !last || n < 0 || n == need ||
           meta_fail(m, "RuntimeError: required rank %d tensor to use channels_last%s format", need,
                     need == 5 ? "_3d" : "");
}

// Tensors that have the sizes of what another op gives of the same arguments: gradients of pools,
// paddings and convolutions, and what is written into a slice.
static const struct {
    OpId op, other;
    const char *name; // argument of op
} shaped[] = {
#define SHAPED_AS(op, name, other) {OP_aten_##op, OP_aten_##other, #name},
    SHAPED_AS(avg_pool2d_backward_default, grad_output, avg_pool2d_default)
        SHAPED_AS(avg_pool3d_backward_default, grad_output, avg_pool3d_default) SHAPED_AS(
            max_pool2d_with_indices_backward_default, grad_output,
            max_pool2d_with_indices_default) SHAPED_AS(max_pool3d_with_indices_backward_default,
                                                       grad_output, max_pool3d_with_indices_default)
            SHAPED_AS(reflection_pad1d_backward_default, grad_output, reflection_pad1d_default)
                SHAPED_AS(reflection_pad2d_backward_default, grad_output, reflection_pad2d_default)
                    SHAPED_AS(reflection_pad3d_backward_default, grad_output,
                              reflection_pad3d_default)
                        SHAPED_AS(replication_pad1d_backward_default, grad_output,
                                  replication_pad1d_default)
                            SHAPED_AS(replication_pad2d_backward_default, grad_output,
                                      replication_pad2d_default)
                                SHAPED_AS(replication_pad3d_backward_default, grad_output,
                                          replication_pad3d_default)
                                    SHAPED_AS(convolution_backward_default, grad_output,
                                              convolution_default)
                                        SHAPED_AS(diagonal_scatter_default, src, diagonal_default)
                                            SHAPED_AS(select_scatter_default, src, select_int)
                                                SHAPED_AS(as_strided_scatter_default, src,
                                                          as_strided_default)
#undef SHAPED_AS
};

static bool check_shape(MetaCtx *m, const Op *op, const Value *args, const Op *other,
                        const char *name) {
    Value *given = ARENA_ARRAY(m->arena, other->n_args + 1, Value), out;
    for (int i = 0; i < other->n_args; i++)
        given[i] = *meta_arg(op, args, other->args[i].name);
    if (!op_check(m, other, given) || !other->meta(m, other, given, &out))
        return false;
    const TensorMeta *want = out.kind == VAL_tensor ? out.tensor : out.at[0].tensor,
                     *got = meta_arg_tensor(op, args, name);
    bool same = got && got->ndim == want->ndim;
    for (int i = 0; same && i < got->ndim; i++) {
        int64_t a = expr_int_or(got->size[i], -1), b = expr_int_or(want->size[i], -1);
        same = a < 0 || b < 0 || a == b;
    }
    if (same || !got)
        return true;
    const char *has = meta_sizes_text(m, got->size, got->ndim),
               *asked = meta_sizes_text(m, want->size, want->ndim);
    return strcmp(name, "src") == 0
               ? meta_fail(m,
                           "RuntimeError: expected src to have a size equal to the slice of self. "
                           "src size = %s, slice size = %s",
                           has, asked)
               : meta_fail(m, "RuntimeError: %s: %s has sizes %s, expected %s", op->name, name, has,
                           asked);
}

bool op_check(MetaCtx *m, const Op *op, const Value *args) {
    return op_check_outside(m, op, args, NULL);
}

bool op_check_outside(MetaCtx *m, const Op *op, const Value *args, const char **inside) {
    const Call call = {m, op, args, inside}, *c = &call;
    if (!has_tensors(m, op, args) || !has_length(m, op, args) || !has_format(m, op, args))
        return false;
    switch (op->id) {
#include "core/ops/checks_dim.def"
    default:
        break;
    }
    switch (op->id) {
#include "core/ops/checks.def"
#include "core/ops/checks_size.def"
    default:
        break;
    }
    switch (op->id) {
#include "core/ops/checks_fit.def"
    default:
        break;
    }
    for (int i = 0; i < COUNT(shaped); i++)
        if (shaped[i].op == op->id)
            return check_shape(m, op, args, op_at(shaped[i].other), shaped[i].name);
    return true;
}
