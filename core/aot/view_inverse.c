// view_inverse.c: what a write through a view does to its base, one function a view op: scatter ops
// where the view covers a part, the opposite view where it covers all (ATen's FunctionalInverses,
// reapplying views).
#include "core/aot/trace.h"

typedef Value Inverse(Trace *t, const Value *args, int out, Value base, Value mutated);

static Value inv_view(Trace *t, const Value *args, int out, Value base, Value mutated) {
    (void)args, (void)out;
    return reshape(t, mutated, sizes_of(t, base)); // what is written may have other strides
}

static Value inv_alias(Trace *t, const Value *args, int out, Value base, Value mutated) {
    (void)args, (void)out, (void)base;
    return CALL(t, aten_alias_default, mutated);
}

static Value inv_detach(Trace *t, const Value *args, int out, Value base, Value mutated) {
    (void)t, (void)args, (void)out, (void)base;
    return mutated;
}

static Value inv_permute(Trace *t, const Value *args, int out, Value base, Value mutated) {
    (void)out;
    int n = args[1].n;
    Value back = val_list(t->arena, VAL_list, n);
    for (int i = 0; i < n; i++)
        back.at[wrap_dim(t, int_arg(&args[1].at[i], 0), dim_of(base))] = INT(i);
    return CALL(t, aten_permute_default, mutated, back);
}

static Value inv_select(Trace *t, const Value *args, int out, Value base, Value mutated) {
    (void)out;
    return CALL(t, aten_select_scatter_default, base, mutated, args[1], args[2]);
}

static Value inv_slice(Trace *t, const Value *args, int out, Value base, Value mutated) {
    (void)out;
    return CALL(t, aten_slice_scatter_default, base, mutated, args[1], args[2], args[3], args[4]);
}

static Value inv_split(Trace *t, const Value *args, int out, Value base, Value mutated) {
    int dim = wrap_dim(t, int_arg(&args[2], 0), dim_of(base));
    const Expr *step, *len = size_of(t, base, dim);
    if (!val_as_expr(t->sym, &args[1], &step))
        return NONE;
    const Expr *start = sym_mul_int(t->sym, step, out);
    const Expr *end = sym_min(t->sym, sym_add(t->sym, start, step), len);
    return CALL(t, aten_slice_scatter_default, base, mutated, INT(dim), val_sym(start),
                val_sym(end));
}

static Value inv_split_with_sizes(Trace *t, const Value *args, int out, Value base, Value mutated) {
    int dim = wrap_dim(t, int_arg(&args[2], 0), dim_of(base));
    const Expr *start = sym_int(t->sym, 0), *len = start;
    for (int i = 0; i <= out; i++) {
        start = sym_add(t->sym, start, i ? len : start);
        if (!val_as_expr(t->sym, &args[1].at[i], &len))
            return NONE;
    }
    return CALL(t, aten_slice_scatter_default, base, mutated, INT(dim), val_sym(start),
                val_sym(sym_add(t->sym, start, len)));
}

static Value inv_unbind(Trace *t, const Value *args, int out, Value base, Value mutated) {
    return CALL(t, aten_select_scatter_default, base, mutated, args[1], INT(out));
}

static Value unsqueeze_where(Trace *t, Value base, Value mutated, const bool *dims) {
    for (int i = 0; i < dim_of(base); i++)
        if (dims[i] && expr_known_is(t, size_of(t, base, i), 1))
            mutated = CALL(t, aten_unsqueeze_default, mutated, INT(i));
    return mutated;
}

static Value inv_squeeze(Trace *t, const Value *args, int out, Value base, Value mutated) {
    (void)args, (void)out;
    bool dims[64];
    for (int i = 0; i < COUNT(dims); i++)
        dims[i] = true;
    return dim_of(base) <= COUNT(dims) ? unsqueeze_where(t, base, mutated, dims) : NONE;
}

static Value inv_squeeze_dim(Trace *t, const Value *args, int out, Value base, Value mutated) {
    (void)out;
    bool dims[64] = {false};
    Value list =
        args[1].kind == VAL_list || args[1].kind == VAL_tuple ? args[1] : list_of(t, args[1], END);
    if (dim_of(base) > COUNT(dims))
        return NONE;
    for (int i = 0; i < list.n && dim_of(base); i++)
        dims[wrap_dim(t, int_arg(&list.at[i], 0), dim_of(base))] = true;
    return unsqueeze_where(t, base, mutated, dims);
}

static Value inv_unsqueeze(Trace *t, const Value *args, int out, Value base, Value mutated) {
    (void)out, (void)base;
    return CALL(t, aten_squeeze_dim, mutated, args[1]);
}

static Value inv_t(Trace *t, const Value *args, int out, Value base, Value mutated) {
    (void)args, (void)out, (void)base;
    return CALL(t, aten_t_default, mutated);
}

static Value inv_transpose(Trace *t, const Value *args, int out, Value base, Value mutated) {
    (void)out, (void)base;
    return CALL(t, aten_transpose_int, mutated, args[1], args[2]);
}

static Value inv_diagonal(Trace *t, const Value *args, int out, Value base, Value mutated) {
    (void)out;
    return CALL(t, aten_diagonal_scatter_default, base, mutated, args[1], args[2], args[3]);
}

static Value inv_as_strided(Trace *t, const Value *args, int out, Value base, Value mutated) {
    (void)out;
    return CALL(t, aten_as_strided_scatter_default, base, mutated, args[1], args[2], args[3]);
}

// Windows may leave gaps in the base, so a sum over windows (unfold_backward) would lose what lies
// there.
static Value inv_unfold(Trace *t, const Value *args, int out, Value base, Value mutated) {
    (void)out;
    Value seen = CALL(t, aten_unfold_default, base, args[1], args[2], args[3]);
    const TensorMeta *m = meta_of(seen);
    if (!m)
        return NONE;
    return CALL(t, aten_as_strided_scatter_default, base, mutated, size_list(t, m->size, m->ndim),
                size_list(t, m->stride, m->ndim), val_sym(m->offset));
}

static Value inv_view_dtype(Trace *t, const Value *args, int out, Value base, Value mutated) {
    (void)args, (void)out;
    return CALL(t, aten_view_dtype, mutated, DTY(dtype_of(base)));
}

// Every element of the base is written by all the places that show it; the last one wins nowhere in
// eager (it refuses such a write), so only a plain expand of size 1 to itself gets here.
static Value inv_expand(Trace *t, const Value *args, int out, Value base, Value mutated) {
    (void)args, (void)out;
    const TensorMeta *b = meta_of(base), *m = meta_of(mutated);
    if (!b || !m)
        return NONE;
    while (m && m->ndim > b->ndim) {
        mutated = CALL(t, aten_select_int, mutated, INT(0), INT(0));
        m = meta_of(mutated);
    }
    for (int i = 0; m && i < b->ndim; i++)
        if (expr_known_is(t, b->size[i], 1) && !expr_known_is(t, m->size[i], 1)) {
            mutated = CALL(t, aten_slice_Tensor, mutated, INT(i), INT(0), INT(1));
            m = meta_of(mutated);
        }
    return mutated;
}

static const struct {
    OpId op;
    Inverse *inverse;
} inverses[] = {
    {OP_aten_view_default, inv_view},
    {OP_aten__reshape_alias_default, inv_view},
    {OP_aten_view_dtype, inv_view_dtype},
    {OP_aten_alias_default, inv_alias},
    {OP_aten_detach_default, inv_detach},
    {OP_aten_expand_default, inv_expand},
    {OP_aten_permute_default, inv_permute},
    {OP_aten_select_int, inv_select},
    {OP_aten_slice_Tensor, inv_slice},
    {OP_aten_split_Tensor, inv_split},
    {OP_aten_split_with_sizes_default, inv_split_with_sizes},
    {OP_aten_unbind_int, inv_unbind},
    {OP_aten_squeeze_default, inv_squeeze},
    {OP_aten_squeeze_dim, inv_squeeze_dim},
    {OP_aten_squeeze_dims, inv_squeeze_dim},
    {OP_aten_unsqueeze_default, inv_unsqueeze},
    {OP_aten_t_default, inv_t},
    {OP_aten_transpose_int, inv_transpose},
    {OP_aten_diagonal_default, inv_diagonal},
    {OP_aten_as_strided_default, inv_as_strided},
    {OP_aten_unfold_default, inv_unfold},
};

bool view_inverse(Trace *t, const Op *op, const Value *args, int out_index, Value base,
                  Value mutated, Value *out) {
    for (int i = 0; i < COUNT(inverses); i++)
        if (inverses[i].op == op->id) {
            *out = inverses[i].inverse(t, args, out_index, base, mutated);
            return out->kind == VAL_tensor;
        }
    return false;
}
