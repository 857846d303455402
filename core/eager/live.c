// live.c: tensors as values: a Live is a tensor with its metadata, the ops' records of arguments
// and results. All tensors made while an op runs are on one list and dropped when it is done;
// results are kept aside.
#include "core/eager/kernel.h"

#include <assert.h>
#include <string.h>

void live_sync(Eager *x, Live *l) {
    const Tensor *t = &l->t;
    TensorMeta *m = &l->meta;
    if (m->ndim < t->ndim || !m->size) {
        m->size = ARENA_ARRAY(x->arena, t->ndim + 1, const Expr *);
        m->stride = ARENA_ARRAY(x->arena, t->ndim + 1, const Expr *);
    }
    m->dtype = t->dtype;
    m->ndim = t->ndim;
    for (int i = 0; i < t->ndim; i++) {
        m->size[i] = sym_int(x->sym, t->size[i]);
        m->stride[i] = sym_int(x->sym, t->stride[i]);
    }
    m->offset = sym_int(x->sym, t->offset);
    m->device = (Device){DEV_cpu, -1};
}

Live *live_new(Eager *x, const Tensor *t) {
    Live *l = ARENA_NEW(x->arena, Live);
    l->t = *t;
    live_sync(x, l);
    vec_push(x->arena, &x->live, l);
    return l;
}

Value live_value(Live *l) {
    return val_tensor(&l->meta);
}

Live *live_of(const Value *v) {
    return v->kind == VAL_tensor ? (Live *)(void *)(uintptr_t)v->tensor : NULL;
}

Tensor *tensor_at(const Value *v) {
    Live *l = live_of(v);
    return l ? &l->t : NULL;
}

Value tensor_value(Eager *x, Tensor *t) {
    (void)x;
    Live *l = (Live *)(void *)((char *)t - offsetof(Live, t));
    return live_value(l);
}

static Tensor *adopt(Eager *x, bool ok, const Tensor *t) {
    return ok ? &live_new(x, t)->t : NULL;
}

Tensor *eager_new(Eager *x, DType dtype, int ndim, const int64_t *size) {
    Tensor t;
    return adopt(x, tensor_new(&t, dtype, ndim, size, x->c->diag), &t);
}

Tensor *eager_like(Eager *x, const Tensor *t, DType dtype) {
    return eager_new(x, dtype, t->ndim, t->size);
}

Tensor *eager_contiguous(Eager *x, const Tensor *t, DType dtype) {
    if (t->dtype == dtype && tensor_is_contiguous(t))
        return (Tensor *)(uintptr_t)t;
    Tensor made,
        *out = adopt(x, tensor_new_raw(&made, dtype, t->ndim, t->size, NULL, x->c->diag), &made);
    return out && copy_into(x, out, t) ? out : NULL;
}

Value eager_view(Eager *x, const Tensor *t) {
    Tensor kept = tensor_keep(t);
    return live_value(live_new(x, &kept));
}

static Value from_meta(Eager *x, const TensorMeta *m, bool raw) {
    int64_t size[TENSOR_DIMS], stride[TENSOR_DIMS];
    if (m->ndim > TENSOR_DIMS) {
        eager_fail(x, "RuntimeError: a tensor of %d dimensions cannot be made here, at most %d",
                   m->ndim, TENSOR_DIMS);
        return val_none();
    }
    for (int i = 0; i < m->ndim; i++)
        if (!expr_int(m->size[i], &size[i]) || !expr_int(m->stride[i], &stride[i])) {
            eager_fail(x, "RuntimeError: a size is not a number: %s",
                       sym_str(x->arena, m->size[i]));
            return val_none();
        }
    DType dtype = x->in_f64 && dtype_is_float(m->dtype) ? DT_f64 : m->dtype;
    Tensor t;
    bool ok = raw ? tensor_new_raw(&t, dtype, m->ndim, size, stride, x->c->diag)
                  : tensor_new_strided(&t, dtype, m->ndim, size, stride, x->c->diag);
    return ok ? live_value(live_new(x, &t)) : val_none();
}

Value eager_from_meta(Eager *x, const TensorMeta *m) {
    return from_meta(x, m, false);
}

Value eager_raw_from_meta(Eager *x, const TensorMeta *m) {
    return from_meta(x, m, true);
}

void eager_drop_from(Eager *x, int first) {
    while (x->live.n > first) {
        Live *l = vec_pop(&x->live);
        tensor_drop(&l->t);
    }
}

bool value_to_rt(Eager *x, Arena *a, const Value *v, RtValue *out) {
    *out = (RtValue){0};
    switch (v->kind) {
    case VAL_none:
        return true;
    case VAL_tensor:
        *out = (RtValue){.kind = RT_tensor, .tensor = tensor_keep(tensor_at(v))};
        return true;
    case VAL_int:
        *out = (RtValue){.kind = RT_int, .i = v->i};
        return true;
    case VAL_float:
        *out = (RtValue){.kind = RT_float, .f = v->f};
        return true;
    case VAL_bool:
        *out = (RtValue){.kind = RT_bool, .b = v->b};
        return true;
    case VAL_list:
    case VAL_tuple:
        *out = (RtValue){.kind = RT_list, .n = v->n, .at = ARENA_ARRAY(a, v->n + 1, RtValue)};
        for (int i = 0; i < v->n; i++)
            if (!value_to_rt(x, a, &v->at[i], &out->at[i]))
                return false;
        return true;
    default:
        break;
    }
    Value *copy = ARENA_NEW(a, Value);
    *copy = *v;
    *out = (RtValue){.kind = RT_other, .other = copy};
    return true;
}

Value value_from_rt(Eager *x, Arena *a, const RtValue *v) {
    Value out = val_none();
    switch (v->kind) {
    case RT_none:
        break;
    case RT_tensor:
        out = eager_view(x, &v->tensor);
        break;
    case RT_int:
        out = val_int(v->i);
        break;
    case RT_float:
        out = val_float(v->f);
        break;
    case RT_bool:
        out = val_bool(v->b);
        break;
    case RT_other:
        out = *v->other;
        break;
    case RT_list:
        out = val_list(a, VAL_list, v->n);
        for (int i = 0; i < v->n; i++)
            out.at[i] = value_from_rt(x, a, &v->at[i]);
        break;
    }
    return out;
}

void rt_drop(RtValue *v) {
    if (v->kind == RT_tensor)
        tensor_drop(&v->tensor);
    for (int i = 0; v->kind == RT_list && i < v->n; i++)
        rt_drop(&v->at[i]);
    *v = (RtValue){0};
}

RtValue rt_other(Arena *a, Value value) {
    Value *v = ARENA_NEW(a, Value);
    *v = value;
    return (RtValue){.kind = RT_other, .other = v};
}

RtValue rt_of_value(Arena *a, const Value *v) {
    RtValue out = {0};
    switch (v->kind) {
    case VAL_none:
        return out;
    case VAL_int:
        return (RtValue){.kind = RT_int, .i = v->i};
    case VAL_bool:
        return (RtValue){.kind = RT_bool, .b = v->b};
    case VAL_float:
        return (RtValue){.kind = RT_float, .f = v->f};
    case VAL_list:
    case VAL_tuple:
        out = (RtValue){.kind = RT_list, .n = v->n, .at = ARENA_ARRAY(a, v->n + 1, RtValue)};
        for (int i = 0; i < v->n; i++)
            out.at[i] = rt_of_value(a, &v->at[i]);
        return out;
    default:
        return rt_other(a, *v);
    }
}

Value scalar_value(Eager *x, const Tensor *t) {
    if (tensor_numel(t) != 1) {
        eager_fail(x, "RuntimeError: a Tensor with %lld elements cannot be converted to Scalar",
                   (long long)tensor_numel(t));
        return val_none();
    }
    if (t->dtype == DT_b8)
        return val_bool(get_i(t, 0) != 0);
    return dtype_is_float(t->dtype) ? val_float(get_d(t, 0)) : val_int(get_i(t, 0));
}

Value number_tensor(Eager *x, const Value *v, DType dtype) {
    double f = 0;
    if (dtype == DT_none)
        dtype = v->kind == VAL_bool  ? DT_b8
                : v->kind == VAL_int ? DT_i64
                : x->in_f64          ? DT_f64
                                     : DT_f32;
    Tensor *t = eager_new(x, dtype, 0, (int64_t[1]){0});
    if (!t)
        return val_none();
    if (v->kind == VAL_int)
        put_i(t, 0, v->i);
    else if (val_as_float(v, &f))
        put_d(t, 0, f);
    else
        eager_fail(x, "TypeError: expected a number or a tensor");
    return tensor_value(x, t);
}

Value ints_value(Eager *x, const int64_t *v, int n) {
    Value list = val_list(x->arena, VAL_list, n);
    for (int i = 0; i < n; i++)
        list.at[i] = val_int(v[i]);
    return list;
}

Value sizes_value(Eager *x, const Tensor *t) {
    return ints_value(x, t->size, t->ndim);
}

static Value collect(Eager *x, ValueKind kind, va_list args) {
    Value items[32];
    int n = 0;
    for (Value v = va_arg(args, Value); !(v.kind == VAL_opaque && v.n == -1);
         v = va_arg(args, Value)) {
        assert(n < COUNT(items));
        items[n++] = v;
    }
    Value list = val_list(x->arena, kind, n);
    if (n)
        memcpy(list.at, items, (size_t)n * sizeof *items);
    return list;
}

Value list_value(Eager *x, ...) {
    va_list args;
    va_start(args, x);
    Value v = collect(x, VAL_list, args);
    va_end(args);
    return v;
}

Value tuple_value(Eager *x, ...) {
    va_list args;
    va_start(args, x);
    Value v = collect(x, VAL_tuple, args);
    va_end(args);
    return v;
}

// arguments

bool k_room(K *k, int64_t n, size_t each) {
    size_t bytes;
    return (n >= 0 && !__builtin_mul_overflow((size_t)n, each, &bytes) && arena_can(bytes)) ||
           k_fail(k, "RuntimeError: can't allocate memory: %lld elements of %zu bytes",
                  (long long)n, each);
}

bool k_given(const K *k, int i) {
    return k->args[i].kind != VAL_none;
}

int64_t ki(const K *k, int i, int64_t fallback) {
    int64_t v;
    const Value *a = &k->args[i];
    if (a->kind == VAL_float)
        return a->f >= -9223372036854775808.0 && a->f < 9223372036854775808.0 ? (int64_t)a->f
                                                                              : INT64_MIN;
    if (a->kind == VAL_tensor)
        return tensor_numel(tensor_at(a)) == 1 ? get_i(tensor_at(a), 0) : fallback;
    return val_as_int(a, &v) ? v : fallback;
}

double kf(const K *k, int i, double fallback) {
    double v;
    const Value *a = &k->args[i];
    if (a->kind == VAL_tensor)
        return tensor_numel(tensor_at(a)) == 1 ? get_d(tensor_at(a), 0) : fallback;
    return val_as_float(a, &v) ? v : fallback;
}

bool kb(const K *k, int i) {
    return ki(k, i, 0) != 0;
}

const char *ks(const K *k, int i, const char *fallback) {
    return k->args[i].kind == VAL_str ? k->args[i].s : fallback;
}

DType kd(const K *k, int i, DType fallback) {
    return k->args[i].kind == VAL_dtype ? k->args[i].dtype : fallback;
}

int kints(const K *k, int i, int64_t *out, int max) {
    const Value *v = &k->args[i];
    bool list = v->kind == VAL_list || v->kind == VAL_tuple;
    int n = list ? v->n : 1;
    if (n > max)
        return -1;
    for (int j = 0; j < n; j++) {
        const Value *item = list ? &v->at[j] : v;
        if (item->kind == VAL_tensor && tensor_numel(tensor_at(item)) == 1)
            out[j] = get_i(tensor_at(item), 0);
        else if (!val_as_int(item, &out[j]))
            return -1;
    }
    return n;
}

int karg(const K *k, const char *name) {
    int i = op_arg_index(k->op, name);
    assert(i >= 0);
    return i;
}

bool k_dim(K *k, int64_t dim, int ndim, int *out) {
    int n = ndim ? ndim : 1;
    if (dim < -n || dim >= n)
        return k_fail(k,
                      "IndexError: Dimension out of range (expected to be in range of [%d, %d], "
                      "but got %lld)",
                      -n, n - 1, (long long)dim);
    *out = (int)(dim < 0 ? dim + n : dim);
    return true;
}

bool k_mask(K *k, int i, int ndim, uint64_t *mask) {
    uint64_t all = (1ull << ndim) - 1;
    int64_t dims[64];
    *mask = all;
    if (!k_given(k, i))
        return true;
    int n = kints(k, i, dims, COUNT(dims));
    if (n < 0)
        return k_fail(k, "TypeError: dim must be an int or a list of ints");
    *mask = n ? 0 : all;
    for (int j = 0; j < n; j++) {
        int d = 0;
        if (!k_dim(k, dims[j], ndim, &d))
            return false;
        *mask |= 1ull << d;
    }
    *mask &= all;
    return true;
}

void live_numbers(Eager *x, const Op *op, Value *args) {
    for (int i = 0; i < op->n_args; i++)
        if (op->args[i].type == AT_tensor &&
            (args[i].kind == VAL_int || args[i].kind == VAL_float || args[i].kind == VAL_bool))
            args[i] = number_tensor(x, &args[i], DT_none);
}

// Where PyTorch makes a tensor of a number before the op sees it.
static bool wants_tensor(const Op *op, int i) {
    return op->args[i].type == AT_tensor &&
           (op->args[i].written || op->id == OP_aten_copy_default ||
            op->id == OP_aten_copy__default || op->id == OP_aten__to_copy_default);
}

void live_scalars(Eager *x, const Op *op, Value *args) {
    for (int i = 0; i < op->n_args; i++) {
        ArgType t = op->args[i].type;
        ValueKind v = args[i].kind;
        if (wants_tensor(op, i) && (v == VAL_int || v == VAL_float || v == VAL_bool))
            args[i] = number_tensor(x, &args[i], DT_none);
        if ((t == AT_scalar || t == AT_float || t == AT_int || t == AT_bool) &&
            args[i].kind == VAL_tensor)
            args[i] = scalar_value(x, tensor_at(&args[i]));
        // A truth value that a float is declared for is the float 0 or 1, as in C++.
        if (t == AT_float && args[i].kind == VAL_bool)
            args[i] = val_float(args[i].b);
    }
}
