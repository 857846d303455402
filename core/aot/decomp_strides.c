// decomp_strides.c: what an op is taken apart into may give a result another order in memory than
// the op does. What is a view of it, and what its base is, was settled above, by the op's own
// strides; PyTorch then stops at a view that cannot be, or at outputs that do not fit.
#include "core/aot/decomp.h"
#include "core/ops/meta.h"

// By hints: no size of a graph is fixed for this.
static bool same_strides(Sym *s, const TensorMeta *a, const TensorMeta *b) {
    for (int i = 0; i < a->ndim; i++) {
        if (sym_size_hint(s, a->size[i], 1) == 0)
            return true;
        if (sym_size_hint(s, a->size[i], 1) != 1 && a->stride[i] != b->stride[i] &&
            sym_size_hint(s, a->stride[i], 0) != sym_size_hint(s, b->stride[i], 0))
            return false;
    }
    return true;
}

static bool all_contiguous(Trace *t, const Value *args, int n) {
    for (int i = 0; i < n; i++) {
        bool list = args[i].kind == VAL_list || args[i].kind == VAL_tuple,
             tensor = args[i].kind == VAL_tensor;
        if ((list && !all_contiguous(t, args[i].at, args[i].n)) ||
            (tensor && !meta_is_contiguous(t->sym, args[i].tensor, MF_contiguous)))
            return false;
    }
    return true;
}

// Dimensions from the outermost in memory to the innermost.
static void memory_order(Sym *s, const TensorMeta *m, int *order) {
    for (int i = 0; i < m->ndim; i++) {
        int at = i;
        int64_t stride = sym_size_hint(s, m->stride[i], 0);
        for (; at > 0 && sym_size_hint(s, m->stride[order[at - 1]], 0) < stride; at--)
            order[at] = order[at - 1];
        order[at] = i;
    }
}

// The dimensions in another order, in memory of that order, and back.
static Value in_order(Trace *t, Value x, const int *order, int n) {
    Value there = val_list(t->arena, VAL_list, n), back = val_list(t->arena, VAL_list, n);
    for (int i = 0; i < n; i++) {
        there.at[i] = val_int(order[i]);
        back.at[order[i]] = val_int(i);
    }
    bool plain = true;
    for (int i = 0; i < n; i++)
        plain = plain && order[i] == i;
    if (!plain)
        x = CALL(t, aten_permute_default, x, there);
    Value format = {.kind = VAL_memory_format, .mf = MF_contiguous};
    x = CALL(t, aten_clone_default, x, format);
    return plain ? x : CALL(t, aten_permute_default, x, back);
}

Value decomp_restride(Trace *t, const Op *op, const Value *args, Value out) {
    Value meta = {0};
    Diag quiet = {.arena = t->arena};
    MetaCtx m = trace_meta_ctx(t);
    int order[64];
    if (t->flags & NODE_backward || t->failed || out.kind != VAL_tensor || !op->meta ||
        op->tags & (OPT_mutates | OPT_view) || out.tensor->ndim > COUNT(order) ||
        (meta_is_contiguous(t->sym, out.tensor, MF_contiguous) &&
         all_contiguous(t, args, op->n_args)))
        return out;
    m.diag = &quiet;
    if (!op_meta(&m, op, args, &meta) || meta.kind != VAL_tensor ||
        meta.tensor->ndim != out.tensor->ndim || !meta_is_dense(&m, meta.tensor) ||
        !meta_is_dense(&m, out.tensor) || // a functional copy has its target's gaps
        same_strides(t->sym, meta.tensor, out.tensor))
        return out;
    memory_order(t->sym, meta.tensor, order);
    return in_order(t, out, order, out.tensor->ndim);
}
