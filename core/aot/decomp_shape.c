// decomp_shape.c: decompositions of ops that move elements: transposes, stacking, flipping,
// triangles.
#include "core/aot/decomp.h"

bool decomp_t(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    int n = dim_of(a[0]);
    Value dims = n == 2 ? list_of(t, INT(1), INT(0), END) : dims_range(t, 0, n);
    *out = n == 2 ? CALL(t, aten_permute_default, a[0], dims) : CALL(t, aten_alias_default, a[0]);
    return true;
}

bool decomp_transpose(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    int n = dim_of(a[0]), d0 = wrap_dim(t, int_arg(&a[1], 0), n),
        d1 = wrap_dim(t, int_arg(&a[2], 0), n);
    if (n <= 1 || d0 == d1) {
        *out = CALL(t, aten_alias_default, a[0]);
        return true;
    }
    Value dims = dims_range(t, 0, n);
    dims.at[d0] = INT(d1);
    dims.at[d1] = INT(d0);
    *out = CALL(t, aten_permute_default, a[0], dims);
    return true;
}

bool decomp_stack(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    Value x = item_of(a[0], 0);
    int n = dim_of(x), dim = wrap_dim(t, int_arg(&a[1], 0), n + 1);
    if (dim < n) {
        Value shape = val_list(t->arena, VAL_list, n + 1);
        for (int i = 0; i <= n; i++)
            shape.at[i] = i == dim ? INT(a[0].n) : val_sym(size_of(t, x, i < dim ? i : i - 1));
        Value c = CALL(t, aten_cat_default, a[0], INT(dim));
        *out = CALL(t, aten_view_default, c, shape);
        return true;
    }
    Value list = val_list(t->arena, VAL_list, a[0].n);
    for (int i = 0; i < list.n; i++)
        list.at[i] = CALL(t, aten_unsqueeze_default, a[0].at[i], INT(dim));
    *out = CALL(t, aten_cat_default, list, a[1]);
    return true;
}

bool decomp_flip(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    Value dims = val_list(t->arena, VAL_list, a[1].n);
    for (int i = 0; i < dims.n; i++)
        dims.at[i] = INT(wrap_dim(t, int_arg(&a[1].at[i], 0), dim_of(a[0])));
    *out = CALL(t, prims_rev_default, a[0], dims);
    return true;
}

static Value part_of(Trace *t, Value list, int from, int to) {
    Value v = val_list(t->arena, VAL_list, to > from ? to - from : 0);
    for (int i = 0; i < v.n; i++)
        v.at[i] = list.at[from + i];
    return v;
}

bool decomp_roll(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    Value shifts = a[1], dims = a[2];
    if (expr_known_is(t, meta_numel(t->sym, a[0].tensor), 0)) {
        *out = CALL(t, aten_clone_default, a[0]);
        return true;
    }
    if (dims.n == 0 && shifts.n == 1) {
        Value x = flatten(t, a[0]);
        x = CALL(t, aten_roll_default, x, shifts, list_of(t, INT(0), END));
        *out = CALL(t, aten_view_default, x, sizes_of(t, a[0]));
        return true;
    }
    if (dims.n != shifts.n || !shifts.n) {
        trace_fail(t, "RuntimeError: shifts and dimensions must align. shifts: %d, dims: %d",
                   shifts.n, dims.n);
        return true;
    }
    if (shifts.n > 1) {
        Value x =
            CALL(t, aten_roll_default, a[0], part_of(t, shifts, 0, 1), part_of(t, dims, 0, 1));
        *out = CALL(t, aten_roll_default, x, part_of(t, shifts, 1, shifts.n),
                    part_of(t, dims, 1, dims.n));
        return true;
    }
    int dim = wrap_dim(t, int_arg(&dims.at[0], 0), dim_of(a[0]));
    const Expr *len = size_of(t, a[0], dim), *shift;
    if (!val_as_expr(t->sym, &shifts.at[0], &shift))
        return false;
    const Expr *start = sym_mod(t->sym, sym_sub(t->sym, len, shift), len);
    Value idx = CALL(t, aten_arange_default, val_sym(len), NONE, NONE,
                     (Value){.kind = VAL_device, .device = a[0].tensor->device}, BOOL(false));
    idx = CALL(t, aten_add_Tensor, idx, val_sym(start));
    idx = CALL(t, aten_fmod_Scalar, idx, val_sym(len));
    *out = CALL(t, aten_index_select_default, a[0], INT(dim), idx);
    return true;
}

bool decomp_rot90(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    int64_t k = ((int_arg(&a[1], 1) % 4) + 4) % 4;
    Value d0 = item_of(a[2], 0), d1 = item_of(a[2], 1), x;
    if (k == 1) {
        x = CALL(t, aten_flip_default, a[0], list_of(t, d1, END));
        *out = CALL(t, aten_transpose_int, x, d0, d1);
    } else if (k == 2) {
        *out = CALL(t, aten_flip_default, a[0], a[2]);
    } else if (k == 3) {
        x = CALL(t, aten_flip_default, a[0], list_of(t, d0, END));
        *out = CALL(t, aten_transpose_int, x, d0, d1);
    } else {
        *out = CALL(t, aten_clone_default, a[0],
                    (Value){.kind = VAL_memory_format, .mf = MF_contiguous});
    }
    return true;
}

bool decomp_alias(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    *out = CALL(t, aten_alias_default, a[0]);
    return true;
}

bool decomp_view(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    *out = CALL(t, aten_view_default, a[0], a[1]);
    return true;
}

// The last three dimensions of x taken apart as `in`, reordered, and put together as `to`.
static Value shuffle(Trace *t, Value x, const Value in[5], const int order[5], const Value to[3]) {
    int n = dim_of(x), b = n - 3;
    Value shape = val_list(t->arena, VAL_list, b + 5), perm = dims_range(t, 0, b + 5),
          last = val_list(t->arena, VAL_list, n);
    for (int i = 0; i < b; i++)
        shape.at[i] = last.at[i] = val_sym(size_of(t, x, i));
    for (int i = 0; i < 5; i++) {
        shape.at[b + i] = in[i];
        perm.at[b + i] = INT(b + order[i]);
    }
    for (int i = 0; i < 3; i++)
        last.at[b + i] = to[i];
    Value format = {.kind = VAL_memory_format, .mf = suggest_memory_format(t, x)};
    x = CALL(t, aten_view_default, x, shape);
    x = CALL(t, aten_permute_default, x, perm);
    x = reshape(t, x, last);
    return CALL(t, aten_clone_default, x, format);
}

// (…, C r r, H, W) to (…, C, H r, W r) and back.
bool decomp_pixel_shuffle(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    int64_t r = int_arg(&a[1], 1);
    Value h = val_sym(size_of(t, a[0], -2)), w = val_sym(size_of(t, a[0], -1));
    Value c = val_sym(sym_floordiv(t->sym, size_of(t, a[0], -3), sym_int(t->sym, r * r)));
    const Value to[3] = {c, val_sym(sym_mul_int(t->sym, size_of(t, a[0], -2), r)),
                         val_sym(sym_mul_int(t->sym, size_of(t, a[0], -1), r))};
    *out = shuffle(t, a[0], (Value[]){c, INT(r), INT(r), h, w}, (int[]){0, 3, 1, 4, 2}, to);
    return true;
}

bool decomp_pixel_unshuffle(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    int64_t r = int_arg(&a[1], 1);
    const Expr *re = sym_int(t->sym, r);
    Value c = val_sym(size_of(t, a[0], -3)),
          h = val_sym(sym_floordiv(t->sym, size_of(t, a[0], -2), re));
    Value w = val_sym(sym_floordiv(t->sym, size_of(t, a[0], -1), re));
    const Value to[3] = {val_sym(sym_mul_int(t->sym, size_of(t, a[0], -3), r * r)), h, w};
    *out = shuffle(t, a[0], (Value[]){c, h, INT(r), w, INT(r)}, (int[]){0, 2, 4, 1, 3}, to);
    return true;
}

bool decomp_channel_shuffle(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    const TensorMeta *m = meta_of(a[0]);
    if (expr_guard_is(t, meta_numel(t->sym, m), 0)) {
        *out = CALL(t, aten_view_default, a[0], sizes_of(t, a[0]));
        return true;
    }
    const Expr *groups = sym_int(t->sym, int_arg(&a[1], 1));
    Value shape = val_list(t->arena, VAL_list, m->ndim + 1);
    shape.at[0] = val_sym(m->size[0]);
    shape.at[1] = a[1];
    shape.at[2] = val_sym(sym_floordiv(t->sym, m->size[1], groups));
    for (int i = 2; i < m->ndim; i++)
        shape.at[i + 1] = val_sym(m->size[i]);
    Value x = reshape(t, a[0], shape);
    x = CALL(t, aten_transpose_int, x, INT(1), INT(2));
    x = reshape(t, x, sizes_of(t, a[0]));
    *out = contiguous(t, x, MF_contiguous);
    return true;
}

bool decomp_unsafe_split(Trace *t, const Op *op, const Value *a, Value *out) {
    *out = op->id == OP_aten_unsafe_split_Tensor
               ? CALL(t, aten_split_Tensor, a[0], a[1], a[2])
               : CALL(t, aten_split_with_sizes_default, a[0], a[1], a[2]);
    return true;
}

bool decomp_split(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    int dim = wrap_dim(t, int_arg(&a[2], 0), dim_of(a[0]));
    int64_t step = int_arg(&a[1], 0), len = expr_int_or(size_of(t, a[0], dim), -1);
    if (step <= 0 || len < 0)
        return false;
    Value sizes = val_list(t->arena, VAL_list, (int)((len + step - 1) / step));
    for (int i = 0; i < sizes.n; i++)
        sizes.at[i] = INT(i + 1 < sizes.n ? step : len - step * i);
    *out = CALL(t, aten_split_with_sizes_default, a[0], sizes, a[2]);
    return true;
}

bool decomp_squeeze(Trace *t, const Op *op, const Value *a, Value *out) {
    Value dims =
        op->id == OP_aten_squeeze_default ? dims_range(t, 0, dim_of(a[0])) : list_of(t, a[1], END);
    *out = CALL(t, aten_squeeze_dims, a[0], dims);
    return true;
}

// A slice of each place, then its dimension goes.
bool decomp_unbind(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    int dim = wrap_dim(t, int_arg(&a[1], 0), dim_of(a[0]));
    int64_t len = expr_int_or(size_of(t, a[0], dim), -1);
    if (len < 0 || len > 1 << 20)
        return false;
    Value parts = len ? CALL(t, aten_tensor_split_sections, a[0], INT(len), INT(dim))
                      : val_list(t->arena, VAL_list, 0);
    *out = val_list(t->arena, VAL_list, (int)len);
    for (int i = 0; i < out->n; i++)
        out->at[i] = CALL(t, aten_squeeze_dim, item_of(parts, i), INT(dim));
    return true;
}

// x where the mask holds, else zero; contiguous.
static Value masked(Trace *t, Value mask, Value x) {
    Value r = dtype_of(x) == DT_b8 ? CALL(t, aten_logical_and_default, mask, x)
                                   : CALL(t, aten_where_ScalarOther, mask, x, INT(0));
    return contiguous(t, r, MF_contiguous);
}

bool decomp_diag_embed(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    int n = dim_of(a[0]) + 1, d1 = wrap_dim(t, int_arg(&a[2], -2), n),
        d2 = wrap_dim(t, int_arg(&a[3], -1), n);
    int64_t offset = int_arg(&a[1], 0);
    if (d1 > d2) {
        int swap = d1;
        d1 = d2;
        d2 = swap;
        offset = -offset;
    }
    const Expr *len = sym_add_int(t->sym, size_of(t, a[0], -1), offset < 0 ? -offset : offset);
    Value dev = device_of_tensor(a[0]), x = a[0];
    if (offset) {
        Value shape = sizes_of(t, x);
        shape.at[shape.n - 1] = INT(offset < 0 ? -offset : offset);
        Value pad = CALL(t, aten_zeros_default, shape, DTY(dtype_of(x)), NONE, dev, BOOL(false));
        x = CALL(t, aten_cat_default,
                 offset > 0 ? list_of(t, pad, x, END) : list_of(t, x, pad, END), INT(-1));
    }
    x = CALL(t, aten_unsqueeze_default, x, INT(d1));
    x = CALL(t, aten_movedim_int, x, INT(-1), INT(d2));
    Value rows = CALL(t, aten_arange_default, val_sym(len), DTY(DT_i64), NONE, dev, BOOL(false));
    Value cols = CALL(t, aten_arange_start, INT(offset), val_sym(sym_add_int(t->sym, len, offset)),
                      DTY(DT_i64), NONE, dev, BOOL(false));
    cols = CALL(t, aten_unsqueeze_default, cols, INT(-1));
    Value eq = CALL(t, aten_eq_Tensor, rows, cols);
    Value shape = val_list(t->arena, VAL_list, n);
    for (int i = 0; i < n; i++)
        shape.at[i] = i == d1 || i == d2 ? val_sym(len) : INT(1);
    eq = reshape(t, eq, shape);
    *out = masked(t, eq, x);
    return true;
}

// cat without empty tensors; of a single one a copy; of one repeated an expanded view of it.

static bool adds_nothing(Trace *t, const Value *v, int64_t dim) {
    int n = dim_of(*v);
    if (n == 1 && expr_guard_is(t, size_of(t, *v, 0), 0))
        return true;
    return dim < n && dim >= -n && n && expr_guard_is(t, size_of(t, *v, (int)dim), 0);
}

static bool all_same(const Value *list) {
    bool same = list->n > 1;
    for (int i = 1; i < list->n; i++)
        same = same && list->at[i].tensor == list->at[0].tensor;
    return same;
}

static Value repeated(Trace *t, const Value *list, int64_t dim) {
    Value x = list->at[0];
    int n = dim_of(x), at = (int)(dim < 0 ? dim + n : dim);
    Value shape = val_list(t->arena, VAL_list, n + 1);
    for (int i = 0; i <= n; i++)
        shape.at[i] = i == at ? INT(list->n) : val_sym(size_of(t, x, i < at ? i : i - 1));
    x = py_unsqueeze(t, x, at);
    x = CALL(t, aten_expand_default, x, shape);
    x = CALL(t, aten_flatten_using_ints, x, INT(at), INT(at + 1));
    return CALL(t, aten_clone_default, x);
}

bool decomp_cat(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    int64_t dim = int_arg(&a[1], 0);
    Value kept = val_list(t->arena, VAL_list, a[0].n);
    kept.n = 0;
    for (int i = 0; i < a[0].n; i++)
        if (!adds_nothing(t, &a[0].at[i], dim))
            kept.at[kept.n++] = a[0].at[i];
    bool fewer = kept.n > 1 && kept.n < a[0].n, same = all_same(&kept);
    if (!out)
        return kept.n == 1 || fewer || same;
    if (kept.n == 1) {
        DType d = ops_result_type(a[0].at, a[0].n);
        *out = dtype_of(kept.at[0]) == d ? CALL(t, aten_clone_default, kept.at[0])
                                         : to_dtype(t, kept.at[0], d);
    } else {
        *out = fewer ? CALL(t, aten_cat_default, kept, a[1]) : repeated(t, &kept, dim);
    }
    return true;
}

static bool triangle(Trace *t, const Value *a, bool upper, Value *out) {
    Value dev = {.kind = VAL_device, .device = a[0].tensor->device};
    Value cols =
        CALL(t, aten_arange_default, val_sym(size_of(t, a[0], -1)), NONE, NONE, dev, BOOL(false));
    cols = CALL(t, aten_unsqueeze_default, cols, INT(-2));
    Value rows =
        CALL(t, aten_arange_default, val_sym(size_of(t, a[0], -2)), NONE, NONE, dev, BOOL(false));
    rows = CALL(t, aten_unsqueeze_default, rows, INT(-1));
    Value d = CALL(t, aten_sub_Tensor, cols, rows);
    Value mask = upper ? CALL(t, aten_ge_Scalar, d, a[1]) : CALL(t, aten_le_Scalar, d, a[1]);
    *out = masked(t, mask, a[0]);
    return true;
}

bool decomp_tril(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    return triangle(t, a, false, out);
}

bool decomp_triu(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    return triangle(t, a, true, out);
}
