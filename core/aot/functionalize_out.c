// functionalize_out.c: out= overloads out of the trace: the functional op, whose results are then
// the values of the tensors written.
#include "core/aot/tape.h"
#include "core/ops/out.h"

static bool may_store(Trace *t, const Op *op, const Value *args, const Value *out) {
    for (int i = 0; (out->kind == VAL_list || out->kind == VAL_tuple) && i < out->n; i++)
        if (!may_store(t, op, args, &out->at[i]))
            return false;
    Traced *to = out->kind == VAL_tensor ? traced(out) : NULL;
    if (out->kind == VAL_tensor && (!to || !to->fn))
        trace_fail(t, "%s writes something that is no tensor", op->qualname);
    for (int i = 0; to && !t->failed && i < op_first_out(op); i++)
        functional_may_read(t, op, to, &args[i]);
    return !t->failed;
}

static void store(Trace *t, const Op *op, const Value *out, Value result) {
    bool list = out->kind == VAL_list || out->kind == VAL_tuple;
    for (int i = 0; list && i < out->n && !t->failed; i++)
        store(t, op, &out->at[i], item_of(result, i));
    const TensorMeta *m = meta_of(result);
    Traced *to = out->kind == VAL_tensor ? traced(out) : NULL;
    if (!to || !m || t->failed)
        return;
    const char *error = op_out_error(t->arena, op, m->dtype, to->meta.dtype);
    if (error) {
        trace_fail(t, "%s", error);
    } else {
        // It takes the sizes of what is stored; a view keeps its place in the base.
        if (!meta_equal_size(m, &to->meta) && functional_base(t, to) == to) {
            to->meta.ndim = m->ndim;
            to->meta.size = m->size;
            to->meta.stride = m->stride;
        }
        functional_write(t, op, to, result);
    }
}

// What the functional op gives is stored in the arguments behind. One that is taken apart is called
// above.
Value functionalize_out(Trace *t, const Op *op, const Value *args) {
    const Op *form = op->functional;
    int first = op_first_out(op), n = op->n_args - first;
    for (int i = first; i < op->n_args; i++)
        if (!may_store(t, op, args, &args[i]))
            return NONE;
    Value *own = op_functional_args(t->arena, op, args), result;
    if (composite_rules[form->id].rule) {
        Value above = trace_dispatch(t, form, own);
        result = functional_synced(t, &above);
    } else {
        bool below = t->below;
        for (int i = 0; i < form->n_args; i++)
            own[i] = functional_synced(t, &own[i]);
        t->below = true;
        result = trace_lower(t, form, own);
        t->below = below;
    }
    Value out = n == 1 ? args[first] : val_list(t->arena, VAL_tuple, n);
    for (int i = 0; i < n && !t->failed; i++) {
        store(t, op, &args[first + i], n == 1 ? result : item_of(result, i));
        if (n > 1)
            out.at[i] = args[first + i];
    }
    return t->failed ? NONE : out;
}
