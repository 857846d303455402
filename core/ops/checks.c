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
    double x = v->kind == VAL_float                      ? v->f
               : v->kind == VAL_int && val_as_int(v, &i) ? (double)i
                                                         : 0;
    for (int k = 0; k < COUNT(bounds); k++)
        if (bounds[k].d == d)
            return dtype_is_float(d)
                       ? isnan(x) || isinf(x) || (x >= bounds[k].low && x <= bounds[k].high)
                       : x >= bounds[k].low && x <= bounds[k].high;
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
#define TEXT(x)         text(c, #x)
#define FLAG(x)         meta_arg_bool(op, args, #x)
#define WORD(x, ...)                                                                               \
    is_one_of(text(c, #x), (const char *const[]){__VA_ARGS__},                                     \
              COUNT(((const char *const[]){__VA_ARGS__})))
    switch (op->id) {
#include "core/ops/checks.def"
    default:
        break;
    }
    return true;
}
