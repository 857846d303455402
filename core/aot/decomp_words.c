// decomp_words.c: the words of decompositions: Python's operators between tensors and numbers, and
// the casts that torch/_decomp wraps around most of its functions.
#include "core/aot/decomp.h"

enum { MAX_ORDER = 64 }; // dimensions of a tensor

static bool is_tensor(Value v) {
    return v.kind == VAL_tensor;
}

Value py_add(Trace *t, Value a, Value b) {
    return is_tensor(a) ? CALL(t, aten_add_Tensor, a, b) : CALL(t, aten_add_Tensor, b, a);
}

Value py_sub(Trace *t, Value a, Value b) {
    return is_tensor(a) ? CALL(t, aten_sub_Tensor, a, b) : CALL(t, aten_rsub_Scalar, b, a);
}

Value py_mul(Trace *t, Value a, Value b) {
    return is_tensor(a) ? CALL(t, aten_mul_Tensor, a, b) : CALL(t, aten_mul_Tensor, b, a);
}

Value py_div(Trace *t, Value a, Value b) {
    if (is_tensor(a))
        return CALL(t, aten_div_Tensor, a, b);
    Value r = CALL(t, aten_reciprocal_default, b);
    return CALL(t, aten_mul_Tensor, r, a);
}

#define COMPARISON(name)                                                                           \
    Value py_##name(Trace *t, Value a, Value b) {                                                  \
        return is_tensor(b) ? CALL(t, aten_##name##_Tensor, a, b)                                  \
                            : CALL(t, aten_##name##_Scalar, a, b);                                 \
    }
COMPARISON(lt)
COMPARISON(le)
COMPARISON(gt)
COMPARISON(ge)
COMPARISON(eq)
COMPARISON(ne)

Value py_where(Trace *t, Value cond, Value a, Value b) {
    if (is_tensor(a))
        return is_tensor(b) ? CALL(t, aten_where_self, cond, a, b)
                            : CALL(t, aten_where_ScalarOther, cond, a, b);
    return is_tensor(b) ? CALL(t, aten_where_ScalarSelf, cond, a, b)
                        : CALL(t, aten_where_Scalar, cond, a, b);
}

Value py_sum(Trace *t, Value x, Value dims, bool keepdim) {
    return CALL(t, aten_sum_dim_IntList, x, dims, BOOL(keepdim));
}

Value py_unsqueeze(Trace *t, Value x, int dim) {
    return CALL(t, aten_unsqueeze_default, x, INT(dim));
}

Value py_ratio(Trace *t, double num, Value den) {
    double f;
    if (val_as_float(&den, &f))
        return FLT(num / f);
    Value whole = CALL(t, torch_sym_float, den);
    return CALL(t, operator_truediv, FLT(num), whole);
}

Value device_of_tensor(Value x) {
    return x.kind == VAL_tensor ? (Value){.kind = VAL_device, .device = x.tensor->device} : NONE;
}

Value memory_format_of(MemoryFormat mf) {
    return (Value){.kind = VAL_memory_format, .mf = mf};
}

Value py_arange(Trace *t, Value end, DType d, Value like) {
    return CALL(t, aten_arange_default, end, d == DT_none ? NONE : DTY(d), NONE,
                device_of_tensor(like), BOOL(false));
}

Value py_scalar_tensor(Trace *t, Value v, DType d, Value layout, Device dev) {
    return CALL(t, aten_scalar_tensor_default, v, DTY(d), layout, device_value(dev), BOOL(false));
}

Value no_sizes(Trace *t) {
    return val_list(t->arena, VAL_list, 0);
}

Value index_at(Trace *t, int n, int dim, Value index) {
    Value list = val_list(t->arena, VAL_list, n);
    list.at[dim] = index;
    return list;
}

Value spread(Trace *t, Value v, int n, Value dflt) {
    if (v.kind != VAL_list && v.kind != VAL_tuple)
        v = v.kind == VAL_none ? dflt : list_of(t, v, END);
    if (!v.n)
        v = dflt;
    if (v.n == n)
        return v;
    Value out = val_list(t->arena, VAL_list, n);
    for (int i = 0; i < n; i++)
        out.at[i] = item_of(v, 0);
    return out;
}

static Wide widened(Trace *t, const Value *a, int n, Promotion p) {
    Wide w = {.compute = p.compute, .result = p.result};
    for (int i = 0; i < n && i < COUNT(w.a); i++)
        w.a[i] = cast_list(t, a[i], p.compute);
    return w;
}

Wide decomp_widen(Trace *t, const Value *a, int n) {
    return widened(t, a, n, promote_default(t, a, n));
}

Wide decomp_widen_to_float(Trace *t, const Value *a, int n) {
    return widened(t, a, n, promote_int_to_float(t, a, n));
}

bool decomp_narrow(Trace *t, const Wide *w, Value v, Value *out) {
    *out = cast_list(t, v, w->result);
    return true;
}

// utils.compute_elementwise_output_logical_to_physical_perm of one tensor.

// Does dimension b come before a (1), behind it (-1), or is it undecided (0)?
static int should_swap(Trace *t, const TensorMeta *m, int a, int b) {
    Sym *s = t->sym;
    const Expr *sa = m->stride[a], *sb = m->stride[b];
    if (expr_known_is(t, sa, 0) || expr_known_is(t, sb, 0))
        return 0;
    if (sym_known_eq(s, sa, sb))
        return expr_guard(t, sym_cmp(s, SYM_ge, m->size[b], m->size[a])) ? 0 : 1;
    return expr_guard(t, sym_cmp(s, SYM_ge, sb, sa)) ? -1 : 1;
}

Value layout_order(Trace *t, Value x) {
    const TensorMeta *m = meta_of(x);
    int n = dim_of(x), perm[MAX_ORDER];
    Value out = dims_range(t, 0, n);
    if (n <= 1 || n > MAX_ORDER || meta_is_contiguous(t->sym, m, MF_contiguous))
        return out;
    for (int i = 0; i < n; i++)
        perm[i] = n - 1 - i;
    for (int i = 1; i < n; i++)
        for (int to = i, from = i - 1; from >= 0; from--) {
            int c = should_swap(t, m, perm[from], perm[to]);
            if (c < 0)
                break;
            if (!c)
                continue;
            int swap = perm[from];
            perm[from] = perm[to];
            perm[to] = swap;
            to = from;
        }
    for (int i = 0; i < n; i++)
        out.at[i] = INT(perm[n - 1 - i]);
    return out;
}
