// decomp_copy.c: the copy forms of views, which are the view and a contiguous clone, and the
// in-place forms of table entries, which are the op and a copy into its first argument.
#include "core/aot/composite.h"
#include "core/aot/decomp.h"

#include <string.h>

static Value cloned(Trace *t, Value x) {
    return x.kind == VAL_tensor ? CALL(t, aten_clone_default, x, memory_format_of(MF_contiguous))
                                : x;
}

// squeeze_copy.dim is squeeze.dim and a clone of each result.
bool decomp_view_and_clone(Trace *t, const Op *op, const Value *a, Value *out) {
    const char *end = strstr(op->name, "_copy");
    const Op *view = op_find_overload(
        op->ns, arena_strndup(t->arena, op->name, (size_t)(end - op->name)), op->overload);
    if (!view)
        return false;
    Value r = trace_dispatch(t, view, a);
    if (r.kind != VAL_list && r.kind != VAL_tuple) {
        *out = cloned(t, r);
        return true;
    }
    *out = val_list(t->arena, r.kind, r.n);
    for (int i = 0; i < r.n; i++)
        out->at[i] = cloned(t, r.at[i]);
    return true;
}

// view_copy keeps the view's strides.
bool decomp_view_copy(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    Value x = CALL(t, aten_view_default, a[0], a[1]);
    *out = CALL(t, aten_clone_default, x);
    return true;
}

bool decomp_view_copy_dtype(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    Value x = CALL(t, aten_clone_default, a[0]);
    *out = CALL(t, aten_view_dtype, x, a[1]);
    return true;
}

bool decomp_expand_as(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    *out = CALL(t, aten_expand_default, a[0], sizes_of(t, a[1]));
    return true;
}

bool decomp_narrow_dim(Trace *t, const Op *op, const Value *a, Value *out) {
    return rule_narrow(t, op, a, out);
}

bool decomp_nothing(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)t, (void)op, (void)a;
    *out = NONE;
    return true;
}

// relu_ is relu and copy. Functionalization takes in-place ops before the table is asked, so this
// is for what calls the table itself.
bool decomp_in_place(Trace *t, const Op *op, const Value *a, Value *out) {
    const Op *form = op_find_overload(
        op->ns, arena_strndup(t->arena, op->name, strlen(op->name) - 1), op->overload);
    if (!form || form->n_args != op->n_args)
        return false;
    Value r = trace_dispatch(t, form, a);
    *out = t->failed ? NONE : CALL(t, aten_copy_default, a[0], r);
    return true;
}

// The dimension's length is padded to a multiple of the chunks, then split into them.
bool decomp_chunk_cat(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    int64_t chunks = int_arg(&a[2], 1), dim = int_arg(&a[1], 0);
    Value list = val_list(t->arena, VAL_list, a[0].n);
    if (dim < 0)
        dim = wrap_dim(t, dim, dim_of(item_of(a[0], 0)));
    for (int i = 0; i < list.n; i++) {
        Value x = a[0].at[i];
        int n = dim_of(x);
        int64_t len = expr_int_or(size_of(t, x, (int)dim), -1);
        if (len < 0 || chunks < 1)
            return false;
        int64_t padded = (len + chunks - 1) / chunks * chunks;
        if (padded != len) {
            Value pad = val_list(t->arena, VAL_list, 2 * (n - (int)dim));
            for (int k = 0; k < pad.n; k++)
                pad.at[k] = INT(k == pad.n - 1 ? padded - len : 0);
            x = CALL(t, aten_constant_pad_nd_default, x, pad, INT(0));
        }
        Value shape = val_list(t->arena, VAL_list, (int)dim + 2);
        for (int k = 0; k < dim; k++)
            shape.at[k] = val_sym(size_of(t, x, k));
        shape.at[dim] = a[2];
        shape.at[dim + 1] = INT(-1);
        list.at[i] = reshape(t, x, shape);
    }
    *out = CALL(t, aten_cat_default, list, INT(dim + 1));
    return true;
}

static Value zeros_block(Trace *t, const Expr *rows, const Expr *cols, Value like) {
    return CALL(t, aten_zeros_default, list_of(t, val_sym(rows), val_sym(cols), END),
                DTY(dtype_of(like)), NONE, device_of_tensor(like), BOOL(false));
}

bool decomp_block_diag(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    Value blocks = val_list(t->arena, VAL_list, a[0].n);
    const Expr *cols = sym_int(t->sym, 0), *start = cols;
    for (int i = 0; i < blocks.n; i++) {
        Value x = a[0].at[i];
        blocks.at[i] =
            dim_of(x) <= 1 ? CALL(t, aten_view_default, x, list_of(t, INT(1), INT(-1), END)) : x;
        cols = sym_add(t->sym, cols, size_of(t, blocks.at[i], 1));
    }
    for (int i = 0; i < blocks.n; i++) {
        Value x = blocks.at[i];
        const Expr *rows = size_of(t, x, 0), *own = size_of(t, x, 1);
        Value left = zeros_block(t, rows, start, x);
        start = sym_add(t->sym, start, own);
        Value right = zeros_block(t, rows, sym_sub(t->sym, cols, start), x);
        blocks.at[i] = CALL(t, aten_cat_default, list_of(t, left, x, right, END), INT(1));
    }
    *out = CALL(t, aten_cat_default, blocks, INT(0));
    return true;
}
