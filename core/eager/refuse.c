// refuse.c: dtypes that PyTorch's CPU kernel of an op is not made for.
#include "core/eager/kernel.h"

typedef enum DtypeSet {
    SET_ANY, // no row
    SET_FLOATS,
    SET_WIDE,
    SET_NOT_LOW,
    SET_NUMBERS,
    SET_BITS,
    SET_INTEGERS
} DtypeSet;

static const struct {
    const char *kernel;
    DtypeSet set;
} rows[OP_count] = {
#define DTYPES(op, kernel, set) [OP_##op] = {kernel, SET_##set},
#include "core/eager/dtypes.def"
#undef DTYPES
};

// Float, as PyTorch's errors call it.
static const char *const names[DT_count] = {
    [DT_none] = "Undefined",
#define DTYPE(id, abbr, torch_name, bytes, cls, scalar, safe, c, name) [DT_##id] = name,
#include "core/tensor/dtype.def"
#undef DTYPE
};

static bool in_set(DtypeSet set, DType d) {
    switch (set) {
    case SET_ANY:
        return true;
    case SET_FLOATS:
        return dtype_is_float(d);
    case SET_WIDE:
        return dtype_is_float(d) && !dtype_is_low(d);
    case SET_NOT_LOW:
        return !dtype_is_low(d);
    case SET_NUMBERS:
        return d != DT_b8;
    case SET_BITS:
        return is_int_like(d);
    case SET_INTEGERS:
        return is_int_like(d) && d != DT_b8;
    }
    return true;
}

// The dtype by which PyTorch chooses the kernel: the common one of an elementwise op, else that of
// the first tensor.
static DType dispatch_dtype(const K *k, const Op *op) {
    Value values[8];
    int n = 0;
    for (int i = 0; i < op->n_args && n < COUNT(values); i++) {
        const Value *v = &k->args[i];
        // A number may stand where a tensor is declared: div.Tensor_mode(x, 2).
        bool scalar = (op->args[i].type == AT_scalar || op->args[i].type == AT_tensor) &&
                      v->kind != VAL_none && strcmp(op->args[i].name, "weight") != 0; // of lerp
        if (v->kind == VAL_tensor || (scalar && (op->tags & OPT_pointwise)))
            values[n++] = *v;
        if (n && !(op->tags & OPT_pointwise))
            break;
    }
    return n ? ops_result_type(values, n) : DT_none;
}

bool refuse_dtypes(K *k, const Op *op) {
    if (rows[op->id].set == SET_ANY || k->x->in_f64)
        return true;
    DType d = dispatch_dtype(k, op);
    return d == DT_none || dtype_info[d].cls == DTC_COMPLEX || in_set(rows[op->id].set, d) ||
           k_fail(k, "RuntimeError: \"%s\" not implemented for '%s' (%s)", rows[op->id].kernel,
                  names[d], k->op->qualname);
}
