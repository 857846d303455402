// rules.c: the words in which composite rules and decompositions are written: questions about
// values, lists, and the few Tensor methods that Python code uses everywhere (to, contiguous,
// reshape, flatten).
#include "core/aot/trace.h"

#include <math.h>

int dim_of(Value x) {
    return x.kind == VAL_tensor ? x.tensor->ndim : 0;
}

DType dtype_of(Value x) {
    return x.kind == VAL_tensor ? x.tensor->dtype : DT_none;
}

bool is_none(const Value *v) {
    return v->kind == VAL_none;
}

bool on_cpu(Value x) {
    return x.kind == VAL_tensor && x.tensor->device.type == DEV_cpu;
}

int wrap_dim(Trace *t, int64_t dim, int ndim) {
    int n = ndim > 0 ? ndim : 1;
    if (dim < -n || dim >= n) {
        trace_fail(t,
                   "IndexError: dimension out of range (expected to be in range of [%d, %d], but "
                   "got %lld)",
                   -n, n - 1, (long long)dim);
        return 0;
    }
    return (int)(dim < 0 ? dim + n : dim);
}

const Expr *size_of(Trace *t, Value x, int dim) {
    const TensorMeta *m = meta_of(x);
    if (!m || t->failed)
        return sym_int(t->sym, 1);
    int d = wrap_dim(t, dim, m->ndim);
    return m->ndim ? m->size[d] : sym_int(t->sym, 1);
}

int64_t int_arg(const Value *v, int64_t fallback) {
    int64_t i;
    return val_as_int(v, &i) ? i : v->kind == VAL_bool ? v->b : fallback;
}

bool bool_arg(const Value *v) {
    return v->kind == VAL_bool ? v->b : v->kind == VAL_int ? v->i != 0 : false;
}

double float_arg(const Value *v, double fallback) {
    double f;
    return val_as_float(v, &f) ? f : fallback;
}

bool value_is_zero(const Value *v) {
    double f;
    return val_as_float(v, &f) && f == 0;
}

bool value_is_one(const Value *v) {
    double f;
    return val_as_float(v, &f) && f == 1;
}

bool expr_known_is(Trace *t, const Expr *e, int64_t v) {
    return sym_known_eq(t->sym, e, sym_int(t->sym, v));
}

bool expr_guard(Trace *t, const Expr *cond) {
    if (expr_true(cond) || expr_false(cond))
        return expr_true(cond);
    bool unknown = false;
    return sym_guard(t->sym, cond, t->req->stage, "aot autograd", &unknown);
}

bool expr_guard_is(Trace *t, const Expr *e, int64_t v) {
    int64_t known;
    if (expr_int(e, &known))
        return known == v;
    return expr_guard(t, sym_cmp(t->sym, SYM_eq, e, sym_int(t->sym, v)));
}

static Value collect(Trace *t, ValueKind kind, va_list from) {
    VEC(Value) items = {0};
    for (Value v = va_arg(from, Value); !(v.kind == VAL_opaque && v.n == -1);
         v = va_arg(from, Value))
        vec_push(t->arena, &items, v);
    return (Value){.kind = kind, .n = items.n, .at = items.at};
}

Value list_of(Trace *t, ...) {
    va_list args;
    va_start(args, t);
    Value v = collect(t, VAL_list, args);
    va_end(args);
    return v;
}

Value tuple_of(Trace *t, ...) {
    va_list args;
    va_start(args, t);
    Value v = collect(t, VAL_tuple, args);
    va_end(args);
    return v;
}

Value ints_of(Trace *t, const int64_t *v, int n) {
    Value list = val_list(t->arena, VAL_list, n);
    for (int i = 0; i < n; i++)
        list.at[i] = INT(v[i]);
    return list;
}

Value size_list(Trace *t, const Expr *const *e, int n) {
    return val_exprs(t->arena, e, n);
}

Value sizes_of(Trace *t, Value x) {
    const TensorMeta *m = meta_of(x);
    return m ? size_list(t, m->size, m->ndim) : val_list(t->arena, VAL_list, 0);
}

Value numel_of(Trace *t, Value x) {
    return x.kind == VAL_tensor ? val_sym(meta_numel(t->sym, x.tensor)) : INT(0);
}

Value dims_range(Trace *t, int from, int to) {
    Value list = val_list(t->arena, VAL_list, to > from ? to - from : 0);
    for (int i = 0; i < list.n; i++)
        list.at[i] = INT(from + i);
    return list;
}

Value item_of(Value list, int i) {
    bool has = (list.kind == VAL_list || list.kind == VAL_tuple) && i >= 0 && i < list.n;
    return has ? list.at[i] : NONE;
}

Value to_dtype(Trace *t, Value x, DType d) {
    if (x.kind != VAL_tensor || x.tensor->dtype == d)
        return x;
    return CALL(t, aten__to_copy_default, x, DTY(d));
}

static Value memory_format(MemoryFormat mf) {
    return (Value){.kind = VAL_memory_format, .mf = mf};
}

Value contiguous(Trace *t, Value x, MemoryFormat mf) {
    if (x.kind != VAL_tensor || meta_is_contiguous(t->sym, x.tensor, mf))
        return x;
    return CALL(t, aten_clone_default, x, memory_format(mf));
}

static bool channels_last_strides(Trace *t, const TensorMeta *m, MemoryFormat mf) {
    int want = mf == MF_channels_last ? 4 : 5;
    return m->ndim == want && meta_is_contiguous(t->sym, m, mf) &&
           !meta_is_contiguous(t->sym, m, MF_contiguous);
}

MemoryFormat suggest_memory_format(Trace *t, Value x) {
    const TensorMeta *m = meta_of(x);
    if (!m)
        return MF_contiguous;
    if (channels_last_strides(t, m, MF_channels_last))
        return MF_channels_last;
    return channels_last_strides(t, m, MF_channels_last_3d) ? MF_channels_last_3d : MF_contiguous;
}

// The shape with its -1 worked out; NULL if the numbers of elements cannot agree.
static const Expr **inferred_shape(Trace *t, const TensorMeta *m, const Value *shape) {
    const Expr **e = ARENA_ARRAY(t->arena, shape->n + 1, const Expr *);
    const Expr *known = sym_int(t->sym, 1), *total = meta_numel(t->sym, m);
    int hole = -1;
    for (int i = 0; i < shape->n; i++) {
        if (!val_as_expr(t->sym, &shape->at[i], &e[i]))
            return NULL;
        if (expr_is(e[i], -1))
            hole = i;
        else
            known = sym_mul(t->sym, known, e[i]);
    }
    if (hole >= 0)
        e[hole] = expr_is(known, 0) ? sym_int(t->sym, 0) : sym_quotient(t->sym, total, known);
    return e;
}

// at::detail::computeStride: can a view of this shape be taken without a copy?
static bool viewable(Trace *t, const TensorMeta *m, const Expr *const *shape, int n) {
    Sym *s = t->sym;
    if (expr_known_is(t, meta_numel(s, m), 0) || !m->ndim)
        return true;
    int v = n - 1;
    const Expr *chunk_base = m->stride[m->ndim - 1], *have = sym_int(s, 1), *made = sym_int(s, 1);
    for (int d = m->ndim - 1; d >= 0; d--) {
        have = sym_mul(s, have, m->size[d]);
        bool last = d == 0;
        bool breaks = !last && !expr_known_is(t, m->size[d - 1], 1) &&
                      !sym_known_eq(s, m->stride[d - 1], sym_mul(s, have, chunk_base));
        if (!last && !breaks)
            continue;
        while (v >= 0 &&
               (expr_guard(t, sym_cmp(s, SYM_lt, made, have)) || expr_known_is(t, shape[v], 1)))
            made = sym_mul(s, made, shape[v--]);
        if (!sym_known_eq(s, made, have))
            return false;
        if (!last) {
            chunk_base = m->stride[d - 1];
            have = made = sym_int(s, 1);
        }
    }
    return v == -1;
}

Value reshape(Trace *t, Value x, Value shape) {
    const TensorMeta *m = meta_of(x);
    if (!m || t->failed)
        return x;
    if (meta_is_contiguous(t->sym, m, MF_contiguous))
        return CALL(t, aten_view_default, x, shape);
    const Expr **e = inferred_shape(t, m, &shape);
    if (!e) {
        trace_fail(t, "reshape: the shape is no list of sizes");
        return NONE;
    }
    if (viewable(t, m, e, shape.n))
        return CALL(t, aten_view_default, x, shape);
    Value copy = CALL(t, aten_clone_default, x, memory_format(MF_contiguous));
    return CALL(t, aten__unsafe_view_default, copy, size_list(t, e, shape.n));
}

Value flatten(Trace *t, Value x) {
    return CALL(t, aten_flatten_using_ints, x, INT(0), INT(-1));
}

Value unsqueeze_to(Trace *t, Value x, int ndim) {
    while (dim_of(x) < ndim && !t->failed)
        x = CALL(t, aten_unsqueeze_default, x, INT(-1));
    return x;
}

Value device_value(Device d) {
    return (Value){.kind = VAL_device, .device = d};
}

Value strided(void) {
    return (Value){.kind = VAL_layout, .layout = LAYOUT_strided};
}

Value full_of(Trace *t, Value size, Value fill, DType d, Device dev) {
    return CALL(t, aten_full_default, size, fill, DTY(d), strided(), device_value(dev),
                BOOL(false));
}

Value arange_of(Trace *t, Value start, Value end, Value step, DType d, Device dev) {
    return CALL(t, aten_arange_start_step, start, end, step, d == DT_none ? NONE : DTY(d),
                strided(), device_value(dev), BOOL(false));
}

Value scalar_tensor(Trace *t, Value v, DType d, Device dev) {
    return CALL(t, aten_scalar_tensor_default, v, DTY(d), strided(), device_value(dev));
}

static DType tensors_type(const Value *args, int n) {
    Value flat[64];
    int k = 0;
    for (int i = 0; i < n; i++) {
        if (args[i].kind == VAL_tensor && k < COUNT(flat))
            flat[k++] = args[i];
        bool list = args[i].kind == VAL_list || args[i].kind == VAL_tuple;
        for (int j = 0; list && j < args[i].n; j++)
            if (args[i].at[j].kind == VAL_tensor && k < COUNT(flat))
                flat[k++] = args[i].at[j];
    }
    return k ? ops_result_type(flat, k) : DT_none;
}

Promotion promote_default(Trace *t, const Value *args, int n) {
    (void)t;
    DType d = tensors_type(args, n);
    return (Promotion){dtype_compute(d), d};
}

Promotion promote_int_to_float(Trace *t, const Value *args, int n) {
    Promotion p = promote_default(t, args, n);
    if (p.result != DT_none && !dtype_is_float(p.result) && dtype_info[p.result].cls != DTC_COMPLEX)
        p.compute = p.result = DT_f32;
    return p;
}

Value cast_list(Trace *t, Value v, DType d) {
    if (v.kind == VAL_tensor)
        return to_dtype(t, v, d);
    if (v.kind != VAL_list && v.kind != VAL_tuple)
        return v;
    Value out = val_list(t->arena, v.kind, v.n);
    for (int i = 0; i < v.n; i++)
        out.at[i] = cast_list(t, v.at[i], d);
    return out;
}
