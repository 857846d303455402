// refuse.c: dtypes that PyTorch's CPU kernel of an op is not made for, results that cannot be
// stored in the tensor that shall take them, and tensors whose elements share memory.
#include "core/eager/dtypes.h"
#include "core/eager/kernel.h"
#include "core/eager/refuse.h"

static const struct {
    const char *kernel; // NULL: no row
    const char *by;     // argument whose dtype counts; NULL: the first tensor; "*": all tensors
    unsigned set;       // of DtypeSet
} rows[OP_count] = {
#define DTYPES(op, kernel, set)        [OP_##op] = {kernel, NULL, (set)},
#define DTYPES_BY(op, by, kernel, set) [OP_##op] = {kernel, by, (set)},
#include "core/eager/dtypes.def"
#undef DTYPES
#undef DTYPES_BY
};

// Numbers that take part in the choice of the common dtype; others are parameters.
static bool is_operand(const SchemaArg *arg) {
    static const char *const names[] = {"self", "other", "exponent", "min", "max", "x", "n"};
    return (arg->type == AT_scalar || arg->type == AT_tensor) &&
           str_index(arg->name, names, COUNT(names)) >= 0;
}

// The dtype by which PyTorch chooses the kernel: the common one of an elementwise op, else that of
// the first tensor. *empty: there is nothing to be computed.
static DType dispatch_dtype(const K *k, const Op *op, const char *by, bool *empty) {
    Value values[8];
    int n = 0;
    bool all = (by && !strcmp(by, "*")) || (op->tags & OPT_pointwise);
    *empty = false;
    for (int i = 0; i < op->n_args && n < COUNT(values); i++) {
        const Value *v = &k->args[i];
        const Tensor *t = v->kind == VAL_tensor ? tensor_at(v) : NULL;
        if (by && !all && strcmp(op->args[i].name, by) != 0)
            continue;
        // A number may stand where a tensor is declared: div.Tensor_mode(x, 2).
        if (t || (all && v->kind != VAL_none && is_operand(&op->args[i])))
            values[n++] = *v;
        if (t && !all)
            *empty = tensor_numel(t) == 0;
        if (n && !all)
            break;
    }
    return n ? ops_result_type(values, n) : DT_none;
}

bool refuse_dtypes(K *k, const Op *op) {
    if (!rows[op->id].kernel || k->x->in_f64)
        return true;
    bool empty;
    DType d = dispatch_dtype(k, op, rows[op->id].by, &empty);
    empty = empty && !(rows[op->id].set & DTYPES_EMPTY);
    return d == DT_none || empty || dtype_info[d].cls == DTC_COMPLEX ||
           (rows[op->id].set >> d & 1) ||
           k_fail(k, "NotImplementedError: \"%s\" not implemented for '%s' (%s)",
                  rows[op->id].kernel, dtype_info[d].scalar_name, k->op->qualname);
}

bool refuses_dtype_first(const Op *op) {
    return rows[op->id].set & DTYPES_FIRST;
}

static bool can_store(DType from, DType to) {
    DTypeClass f = dtype_info[from].cls, t = dtype_info[to].cls;
    return f == DTC_none || t == DTC_none || f <= t;
}

bool refuse_store(K *k, const Value *result, const Tensor *to) {
    const Value *v = result->kind == VAL_tuple && result->n ? &result->at[0] : result;
    if (v->kind != VAL_tensor || can_store(v->tensor->dtype, to->dtype))
        return true;
    return k_fail(k,
                  "RuntimeError: result type %s can't be cast to the desired output type %s (%s)",
                  dtype_info[v->tensor->dtype].scalar_name, dtype_info[to->dtype].scalar_name,
                  k->op->qualname);
}

bool refuse_shared(K *k, const Tensor *self) {
    const char *error = ops_shared_error(k->op, self);
    return !error || k_fail(k, "%s", error);
}
