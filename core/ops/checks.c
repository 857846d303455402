// checks.c: what an op demands of its arguments, from checks.def: before its meta function and its
// kernel, so that a trace refuses what a run refuses.
#include "core/ops/ops.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/vec.h"
#include "core/ops/meta.h"

typedef struct Call {
    MetaCtx *m;
    const Op *op;
    const Value *args;
} Call;

// Arguments by name: those that the op does not have are none.
static const Value *arg(const Call *c, const char *name) {
    int i = op_arg_index(c->op, name);
    assert(i >= 0);
    return &c->args[i];
}

static double number(const Call *c, const char *name) {
    const Value *v = arg(c, name);
    int64_t i;
    return v->kind == VAL_float ? v->f : val_as_int(v, &i) ? (double)i : NAN;
}

static bool is_given(const Call *c, const char *name) {
    return arg(c, name)->kind != VAL_none;
}

static const TensorMeta *tensor(const Call *c, const char *name) {
    const Value *v = arg(c, name);
    return v->kind == VAL_tensor ? v->tensor : NULL;
}

static DType dtype(const Call *c, const char *name) {
    const TensorMeta *t = tensor(c, name);
    return t ? t->dtype : DT_none;
}

// -1: there is no tensor.
static int rank(const Call *c, const char *name) {
    const TensorMeta *t = tensor(c, name);
    return t ? t->ndim : -1;
}

// -1: no list; a single number stands for one.
static int length(const Call *c, const char *name) {
    const Value *v = arg(c, name);
    return v->kind == VAL_list || v->kind == VAL_tuple ? v->n : v->kind == VAL_none ? -1 : 1;
}

// An item of a list of numbers; fallback if it is not known.
static int64_t item(const Call *c, const char *name, int i, int64_t fallback) {
    const Value *v = arg(c, name);
    bool list = v->kind == VAL_list || v->kind == VAL_tuple;
    int64_t n;
    return (!list || i < v->n) && val_as_int(list ? &v->at[i] : v, &n) ? n : fallback;
}

// A size, wrapped; fallback if the dimension is none or the size is not known.
static int64_t size(const Call *c, const char *name, int dim, int64_t fallback) {
    const TensorMeta *t = tensor(c, name);
    dim = t && dim < 0 ? dim + t->ndim : dim;
    return t && dim >= 0 && dim < t->ndim ? expr_int_or(t->size[dim], fallback) : fallback;
}

// Elements; -1 if they are not known.
static int64_t count(const Call *c, const char *name) {
    const TensorMeta *t = tensor(c, name);
    int64_t n = 1, s;
    for (int i = 0; t && i < t->ndim; i++)
        if (!expr_int(t->size[i], &s) || __builtin_mul_overflow(n, s, &n))
            return -1;
    return t ? n : -1;
}

// One dtype, or one of them is not there.
static bool is_same(const Call *c, const char *a, const char *b) {
    return !tensor(c, a) || !tensor(c, b) || dtype(c, a) == dtype(c, b);
}

// A parameter of a norm: of the input's dtype, or float32 beside a low one.
static bool is_parameter(const Call *c, const char *input, const char *name) {
    DType d = dtype(c, input), p = dtype(c, name);
    return p == DT_none || d == p || (dtype_is_low(d) && p == DT_f32);
}

static bool is_real(DType d) {
    return d == DT_none || dtype_is_float(d) || dtype_info[d].cls == DTC_COMPLEX;
}

static bool is_int_dtype(DType d) {
    return dtype_info[d].cls == DTC_INT;
}

static bool is_index(DType d) {
    return d == DT_none || d == DT_i64 || d == DT_i32;
}

// Known sizes other than that of the batch are not 0; dims: with a batch.
static bool is_filled(const Call *c, const char *name, int dims) {
    int n = rank(c, name);
    for (int i = n == dims; i < n; i++)
        if (size(c, name, i, 1) == 0)
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

static bool are_indices(const Value *list) {
    for (int i = 0; i < list->n; i++)
        if (list->at[i].kind == VAL_tensor && !is_index(list->at[i].tensor->dtype) &&
            list->at[i].tensor->dtype != DT_b8)
            return false;
    return true;
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
    const Value *v = arg(c, name);
    return v->kind == VAL_str ? v->s : "";
}

// Whether a tensor fits into the sizes of another as they are; what is not known fits.
static bool expands(const Call *c, const char *name, const char *into, bool same) {
    const TensorMeta *a = tensor(c, name), *b = tensor(c, into);
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
    const Value *list = arg(c, "bins");
    for (int i = 0; i < list->n; i++)
        if (list->at[i].kind == VAL_tensor &&
            (list->at[i].tensor->ndim != 1 || list->at[i].tensor->dtype != dtype(c, "self")))
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
    double from = op_arg_index(c->op, "start") >= 0 ? number(c, "start") : 0, to = number(c, "end"),
           step = op_arg_index(c->op, "step") >= 0 ? number(c, "step") : 1;
    return isnan(from) || isnan(to) || isnan(step) || step == 0 ||
           (step > 0 ? from <= to : from >= to);
}

// Dimensions behind batch and channels are not 0.
static bool has_space(const Call *c, const char *name) {
    for (int i = 2; i < rank(c, name); i++)
        if (size(c, name, i, 1) == 0)
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

// The gradient of a pool or a padding has the sizes of what the op itself gives.
static bool check_gradient(MetaCtx *m, const Op *op, const Value *args) {
    static const struct {
        OpId backward, forward;
    } rows[] = {
        {OP_aten_avg_pool2d_backward_default, OP_aten_avg_pool2d_default},
        {OP_aten_avg_pool3d_backward_default, OP_aten_avg_pool3d_default},
        {OP_aten_max_pool2d_with_indices_backward_default, OP_aten_max_pool2d_with_indices_default},
        {OP_aten_max_pool3d_with_indices_backward_default, OP_aten_max_pool3d_with_indices_default},
        {OP_aten_reflection_pad1d_backward_default, OP_aten_reflection_pad1d_default},
        {OP_aten_reflection_pad2d_backward_default, OP_aten_reflection_pad2d_default},
        {OP_aten_reflection_pad3d_backward_default, OP_aten_reflection_pad3d_default},
        {OP_aten_replication_pad1d_backward_default, OP_aten_replication_pad1d_default},
        {OP_aten_replication_pad2d_backward_default, OP_aten_replication_pad2d_default},
        {OP_aten_replication_pad3d_backward_default, OP_aten_replication_pad3d_default},
    };
    const Op *forward = NULL;
    for (int i = 0; i < COUNT(rows) && !forward; i++)
        if (rows[i].backward == op->id)
            forward = op_at(rows[i].forward);
    if (!forward)
        return true;
    Value *given = ARENA_ARRAY(m->arena, forward->n_args + 1, Value), out;
    for (int i = 0; i < forward->n_args; i++)
        given[i] = *meta_arg(op, args, forward->args[i].name);
    if (!op_check(m, forward, given) || !forward->meta(m, forward, given, &out))
        return false;
    const TensorMeta *want = out.kind == VAL_tensor ? out.tensor : out.at[0].tensor,
                     *grad = meta_arg_tensor(op, args, "grad_output");
    bool same = grad && grad->ndim == want->ndim;
    for (int i = 0; same && i < grad->ndim; i++) {
        int64_t a = expr_int_or(grad->size[i], -1), b = expr_int_or(want->size[i], -1);
        same = a < 0 || b < 0 || a == b;
    }
    return same || !grad ||
           meta_fail(m, "RuntimeError: %s: grad_output has sizes %s, expected %s", op->name,
                     meta_sizes_text(m, grad->size, grad->ndim),
                     meta_sizes_text(m, want->size, want->ndim));
}

bool op_check(MetaCtx *m, const Op *op, const Value *args) {
    const Call call = {m, op, args}, *c = &call;
    if (!has_tensors(m, op, args) || !has_format(m, op, args))
        return false;
#define FOR(id) case OP_##id:
#define NEED(cond, ...)                                                                            \
    if (!(cond))                                                                                   \
        return meta_fail(m, __VA_ARGS__);
#define REACHES(x, n)                                                                              \
    NEED(rank(c, #x) < 0 || rank(c, #x) >= (n),                                                    \
         "IndexError: Dimension out of range (expected to be in range of [%d, %d], but got %d)",   \
         rank(c, #x) ? -rank(c, #x) : -1, rank(c, #x) ? rank(c, #x) - 1 : 0, (n)-1)
#define ASKED(fallback) meta_arg_dtype(op, args, fallback)
#define END             break;
#define NUM(x)          number(c, #x)
#define GIVEN(x)        is_given(c, #x)
#define HAS(x)          (op_arg_index(op, #x) >= 0)
#define DT(x)           dtype(c, #x)
#define NAME(x)         dtype_info[dtype(c, #x)].scalar_name
#define ND(x)           rank(c, #x)
#define LEN(x)          length(c, #x)
#define ITEM(x, i)      item(c, #x, i, 1)
#define SIZE(x, d)      size(c, #x, d, -1)
#define COUNT_OF(x)     count(c, #x)
#define SAME(a, b)      is_same(c, #a, #b)
#define REAL(x)         is_real(dtype(c, #x))
#define INDEX(x)        is_index(dtype(c, #x))
#define FITS(x, t)      fits(arg(c, #x), dtype(c, #t))
#define CNAME(x)        c_name(dtype(c, #x))
#define PARAM(x, p)     is_parameter(c, #x, #p)
#define EXPANDS(x, t)   expands(c, #x, #t, false)
#define SHAPED(x, t)    expands(c, #x, #t, true)
#define TEXT(x)         text(c, #x)
#define FLAG(x)         meta_arg_bool(op, args, #x)
#define WORD(x, ...)                                                                               \
    is_one_of(text(c, #x), (const char *const[]){__VA_ARGS__},                                     \
              COUNT(((const char *const[]){__VA_ARGS__})))
    switch (op->id) {
#include "core/ops/checks.def"
#include "core/ops/checks_size.def"
    default:
        break;
    }
    return check_gradient(m, op, args);
}
