// derive.c: the table of derivatives and the words that its rules share.
#include "core/aot/derive.h"
#include "core/ops/foreach.h"
#include "core/record/fault.h"

#include <string.h>

const Derivative derivatives[OP_count] = {
#define DERIVE(op, rule, flags, doc) [OP_##op] = {derive_##rule, flags, doc},
#define NO_DERIVATIVE(op)            [OP_##op] = {NULL, NO_GRAD, "not differentiable"},
#include "core/aot/derivatives.def"
#undef DERIVE
#undef NO_DERIVATIVE
};

// Of an op on lists: by item, if the op of one has a row.
static const Derivative *derivative_of_lists(Trace *t, const Op *each) {
    static const Derivative by_item = {derive_foreach, SAVE_each, "item by item"};
    const Derivative *d = derivative_of(t, each);
    return d && d->rule ? &by_item : d;
}

const Derivative *derivative_of(Trace *t, const Op *op) {
    if (foreach_each(op))
        return derivative_of_lists(t, foreach_each(op));
    const Derivative *d = &derivatives[op->id];
    if (d->rule || d->flags)
        return d;
    const Op *form = op->tags & OPT_mutates ? functional_form(t, op) : NULL;
    d = form ? &derivatives[form->id] : NULL;
    return d && (d->rule || d->flags) ? d : NULL;
}

Value maybe_multiply(Trace *t, Value x, Value scalar) {
    return value_is_one(&scalar) ? x : CALL(t, aten_mul_Scalar, x, scalar);
}

Value sizes_arg(Trace *t, Value x) {
    return sizes_of(t, x);
}

Value sum_to(Trace *t, Value x, const Expr *const *size, int ndim) {
    const TensorMeta *m = meta_of(x);
    if (!m || t->failed)
        return x;
    if (!ndim)
        return CALL(t, aten_sum_default, x);
    int lead = m->ndim - ndim, n = 0;
    int64_t *dims = ARENA_ARRAY(t->arena, m->ndim + 1, int64_t);
    for (int i = 0; i < m->ndim; i++)
        if (i < lead || (expr_known_is(t, size[i - lead], 1) && !expr_known_is(t, m->size[i], 1)))
            dims[n++] = i;
    if (n && fault(t->req->decisions, FAULT_gradient_averaged, trace_site(t)))
        x = CALL(t, aten_mean_dim, x, ints_of(t, dims, n), BOOL(true));
    else if (n)
        x = CALL(t, aten_sum_dim_IntList, x, ints_of(t, dims, n), BOOL(true));
    return lead > 0 ? CALL(t, aten_view_default, x, size_list(t, size, ndim)) : x;
}

bool defined(Value v) {
    return v.kind == VAL_tensor;
}

Value plus(Trace *t, Value a, Value b) {
    return !defined(a) ? b : defined(b) ? CALL(t, aten_add_Tensor, a, b) : a;
}

Value times(Trace *t, Value a, Value b) {
    return CALL(t, aten_mul_Tensor, a, b);
}

Value matmul(Trace *t, Value a, Value b) {
    return CALL(t, aten_matmul_default, a, b);
}

Value mT(Trace *t, Value x) {
    return CALL(t, aten_transpose_int, x, INT(-2), INT(-1));
}

Value column(Trace *t, Value x) {
    return CALL(t, aten_unsqueeze_default, x, INT(-1));
}

Value device_like(Value x) {
    const TensorMeta *m = meta_of(x);
    return m ? (Value){.kind = VAL_device, .device = m->device} : NONE;
}

Value layout_like(Value x) {
    const TensorMeta *m = meta_of(x);
    return m ? (Value){.kind = VAL_layout, .layout = m->layout} : NONE;
}

Value zeros_like(Trace *t, Value x) {
    return CALL(t, aten_zeros_like_default, x);
}

Value zeros_of(Trace *t, Value size, Value like) {
    if (!meta_of(like) || t->failed)
        return NONE;
    return CALL(t, aten_zeros_default, size, DTY(dtype_of(like)), layout_like(like),
                device_like(like));
}

Value scalar_like(Trace *t, Value v, Value like) {
    const TensorMeta *m = meta_of(like);
    return m && !t->failed ? scalar_tensor(t, v, m->dtype, m->device) : NONE;
}

Value ones_of(Trace *t, Value size, Value like) {
    if (!meta_of(like))
        return NONE;
    return CALL(t, aten_ones_default, size, DTY(dtype_of(like)), layout_like(like),
                device_like(like));
}

Value new_zeros_of(Trace *t, Value x, Value size, Value like) {
    if (!meta_of(like))
        return NONE;
    return CALL(t, aten_new_zeros_default, x, size, DTY(dtype_of(like)), layout_like(like),
                device_like(like));
}

Value arange_like(Trace *t, Value start, Value end, Value step, Value like) {
    if (!meta_of(like))
        return NONE;
    if (is_none(&step))
        return CALL(t, aten_arange_start, start, end, DTY(DT_i64), layout_like(like),
                    device_like(like));
    return CALL(t, aten_arange_start_step, start, end, step, DTY(DT_i64), layout_like(like),
                device_like(like));
}
