// composite_shape.c: CompositeImplicit ops that only move elements: reshape and its kin, splitting,
// stacking.
#include "core/aot/composite.h"

#include <string.h>

bool rule_reshape(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    *out = reshape(t, a[0], a[1]);
    return true;
}

bool rule_reshape_as(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    *out = reshape(t, a[0], sizes_of(t, a[1]));
    return true;
}

bool rule_view_as(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    *out = CALL(t, aten_view_default, a[0], sizes_of(t, a[1]));
    return true;
}

bool rule_flatten(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    const TensorMeta *m = meta_of(a[0]);
    int from = wrap_dim(t, int_arg(&a[1], 0), m->ndim),
        to = wrap_dim(t, int_arg(&a[2], -1), m->ndim);
    if (m->ndim == 0) {
        *out = reshape(t, a[0], list_of(t, INT(1), END));
        return true;
    }
    *out = a[0];
    if (from == to || t->failed)
        return true;
    Value shape = val_list(t->arena, VAL_list, m->ndim - (to - from));
    const Expr *merged = sym_int(t->sym, 1);
    for (int i = from; i <= to; i++)
        merged = sym_mul(t->sym, merged, m->size[i]);
    for (int i = 0; i < shape.n; i++)
        shape.at[i] = val_sym(i < from ? m->size[i] : i == from ? merged : m->size[i + to - from]);
    *out = reshape(t, a[0], shape);
    return true;
}

bool rule_ravel(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    Value x = contiguous(t, a[0], MF_contiguous);
    *out = CALL(t, aten_view_default, x, list_of(t, INT(-1), END));
    return true;
}

bool rule_unflatten(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    const TensorMeta *m = meta_of(a[0]);
    int dim = wrap_dim(t, int_arg(&a[1], 0), m->ndim);
    const Expr *known = sym_int(t->sym, 1), *e;
    Value sizes = val_list(t->arena, VAL_list, a[2].n);
    int hole = -1;
    for (int i = 0; i < a[2].n; i++) {
        sizes.at[i] = a[2].at[i];
        if (int_arg(&a[2].at[i], 0) == -1)
            hole = i;
        else if (val_as_expr(t->sym, &a[2].at[i], &e))
            known = sym_mul(t->sym, known, e);
    }
    if (hole >= 0)
        sizes.at[hole] = val_sym(sym_floordiv(t->sym, m->size[dim], known));
    Value shape = val_list(t->arena, VAL_list, m->ndim - 1 + sizes.n);
    for (int i = 0; i < shape.n; i++)
        shape.at[i] = i < dim             ? val_sym(m->size[i])
                      : i < dim + sizes.n ? sizes.at[i - dim]
                                          : val_sym(m->size[i - sizes.n + 1]);
    *out = CALL(t, aten_view_default, a[0], shape);
    return true;
}

bool rule_contiguous(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    *out = contiguous(t, a[0], a[1].kind == VAL_memory_format ? a[1].mf : MF_contiguous);
    return true;
}

bool rule_movedim(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    int n = dim_of(a[0]);
    Value src = a[1].kind == VAL_int ? list_of(t, a[1], END) : a[1];
    Value dst = a[2].kind == VAL_int ? list_of(t, a[2], END) : a[2];
    Value order = val_list(t->arena, VAL_list, n);
    bool *from = ARENA_ARRAY(t->arena, n + 1, bool), *to = ARENA_ARRAY(t->arena, n + 1, bool);
    for (int i = 0; n && i < src.n && i < dst.n; i++) {
        int s = wrap_dim(t, int_arg(&src.at[i], 0), n), d = wrap_dim(t, int_arg(&dst.at[i], 0), n);
        order.at[d] = INT(s);
        from[s] = to[d] = true;
    }
    for (int d = 0, s = 0; d < n; d++) {
        if (to[d])
            continue;
        while (s < n && from[s])
            s++;
        order.at[d] = INT(s++);
    }
    *out = t->failed ? NONE : CALL(t, aten_permute_default, a[0], order);
    return true;
}

Value narrow(Trace *t, Value x, int dim, const Expr *start, const Expr *length) {
    return CALL(t, aten_slice_Tensor, x, INT(dim), val_sym(start),
                val_sym(sym_add(t->sym, start, length)));
}

bool rule_narrow(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    const Expr *start, *length;
    int dim = (int)int_arg(&a[1], 0);
    if (!val_as_expr(t->sym, &a[2], &start) || !val_as_expr(t->sym, &a[3], &length))
        return false;
    if (int_arg(&a[2], 0) < 0)
        start = sym_add(t->sym, start, size_of(t, a[0], dim));
    int64_t room, want = int_arg(&a[3], 0);
    if (want < 0)
        trace_fail(t, "RuntimeError: narrow(): length must be non-negative.");
    else if (expr_int(sym_sub(t->sym, size_of(t, a[0], dim), start), &room) && room < want)
        trace_fail(t, "RuntimeError: start (%s) + length (%s) exceeds dimension size (%s).",
                   sym_str(t->arena, start), sym_str(t->arena, length),
                   sym_str(t->arena, size_of(t, a[0], dim)));
    *out = t->failed ? NONE : narrow(t, a[0], dim, start, length);
    return true;
}

bool rule_expand_as(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    *out = CALL(t, aten_expand_default, a[0], sizes_of(t, a[1]));
    return true;
}

bool rule_broadcast_to(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    *out = CALL(t, aten_expand_default, a[0], a[1]);
    return true;
}

static bool has_shape(const TensorMeta *m, const Expr *const *size, int n) {
    bool same = m->ndim == n;
    for (int i = 0; same && i < n; i++)
        same = m->size[i] == size[i];
    return same;
}

// As the Python reference does it: what has the shape already stays as it is.
bool rule_broadcast_tensors(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    const TensorMeta **m = ARENA_ARRAY(t->arena, a[0].n + 1, const TensorMeta *);
    for (int i = 0; i < a[0].n; i++)
        if (!(m[i] = meta_of(a[0].at[i])))
            return false;
    MetaCtx ctx = trace_meta_ctx(t);
    int n = 0;
    const Expr **size = ops_broadcast(&ctx, m, a[0].n, &n);
    if (!size) {
        t->failed = true;
        return true;
    }
    *out = val_list(t->arena, VAL_list, a[0].n);
    for (int i = 0; i < a[0].n; i++)
        out->at[i] = has_shape(m[i], size, n)
                         ? a[0].at[i]
                         : CALL(t, aten_expand_default, a[0].at[i], size_list(t, size, n));
    return true;
}

bool rule_chunk(Trace *t, const Op *op, const Value *a, Value *out) {
    bool unsafe = op->id == OP_aten_unsafe_chunk_default;
    int64_t chunks = int_arg(&a[1], 1);
    if (chunks < 1 || chunks > 1 << 20) {
        trace_fail(t, "RuntimeError: chunk expects `chunks` to be greater than 0, got: %lld",
                   (long long)chunks);
        return true;
    }
    int dim = wrap_dim(t, int_arg(&a[2], 0), dim_of(a[0]));
    const Expr *len = size_of(t, a[0], dim);
    const Expr *size =
        sym_floordiv(t->sym, sym_add_int(t->sym, len, chunks - 1), sym_int(t->sym, chunks));
    if (expr_is(size, 0)) {
        Value sizes = val_list(t->arena, VAL_list, (int)chunks);
        for (int i = 0; i < sizes.n; i++)
            sizes.at[i] = INT(0);
        *out = unsafe ? CALL(t, aten_unsafe_split_with_sizes_default, a[0], sizes, a[2])
                      : CALL(t, aten_split_with_sizes_default, a[0], sizes, a[2]);
        return true;
    }
    *out = unsafe ? CALL(t, aten_unsafe_split_Tensor, a[0], val_sym(size), a[2])
                  : CALL(t, aten_split_Tensor, a[0], val_sym(size), a[2]);
    return true;
}

bool rule_tensor_split(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    int dim = wrap_dim(t, int_arg(&a[2], 0), dim_of(a[0]));
    const Expr *len = size_of(t, a[0], dim), *start = sym_int(t->sym, 0), *end;
    bool sections = a[1].kind == VAL_int;
    int64_t n = sections ? a[1].i : a[1].n + 1;
    if (n < 1 || n > 1 << 20)
        return false;
    const Expr *count = sym_int(t->sym, n), *least = sym_floordiv(t->sym, len, count);
    const Expr *larger = sym_mod(t->sym, len, count); // so many have one element more
    *out = val_list(t->arena, VAL_list, (int)n);
    for (int i = 0; i < n; i++) {
        if (sections)
            end = sym_add_int(t->sym, sym_add(t->sym, start, least),
                              expr_guard(t, sym_cmp(t->sym, SYM_lt, sym_int(t->sym, i), larger)));
        else if (i == n - 1)
            end = len;
        else if (!val_as_expr(t->sym, &a[1].at[i], &end))
            return false;
        out->at[i] = CALL(t, aten_slice_Tensor, a[0], INT(dim), val_sym(start), val_sym(end));
        start = end;
    }
    return true;
}

static Value at_least(Trace *t, Value x, int n) {
    int have = dim_of(x);
    if (have >= n)
        return x;
    if (have == 0) {
        Value ones = val_list(t->arena, VAL_list, n);
        for (int i = 0; i < n; i++)
            ones.at[i] = INT(1);
        return reshape(t, x, ones);
    }
    x = have == 1 ? CALL(t, aten_unsqueeze_default, x, INT(0)) : x;
    return n == 3 ? CALL(t, aten_unsqueeze_default, x, INT(-1)) : x;
}

bool rule_atleast(Trace *t, const Op *op, const Value *a, Value *out) {
    *out = at_least(t, a[0], op->name[strlen("atleast_")] - '0');
    return true;
}

static Value all_at_least(Trace *t, Value list, int n) {
    Value out = val_list(t->arena, VAL_list, list.n);
    for (int i = 0; i < list.n; i++)
        out.at[i] = at_least(t, list.at[i], n);
    return out;
}

bool rule_hstack(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    Value list = all_at_least(t, a[0], 1);
    *out = CALL(t, aten_cat_default, list, INT(dim_of(item_of(list, 0)) == 1 ? 0 : 1));
    return true;
}

bool rule_vstack(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    *out = CALL(t, aten_cat_default, all_at_least(t, a[0], 2), INT(0));
    return true;
}

bool rule_tile(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    int n = dim_of(a[0]), missing = n > a[1].n ? n - a[1].n : 0;
    Value reps = val_list(t->arena, VAL_list, a[1].n + missing);
    for (int i = 0; i < reps.n; i++)
        reps.at[i] = i < missing ? INT(1) : a[1].at[i - missing];
    *out = CALL(t, aten_repeat_default, a[0], reps);
    return true;
}

bool rule_numpy_T(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    int n = dim_of(a[0]);
    Value dims = val_list(t->arena, VAL_list, n);
    for (int i = 0; i < n; i++)
        dims.at[i] = INT(n - 1 - i);
    *out = n == 2 ? CALL(t, aten_t_default, a[0]) : CALL(t, aten_permute_default, a[0], dims);
    return true;
}

bool rule_mT(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    *out = dim_of(a[0]) == 0 ? a[0] : CALL(t, aten_transpose_int, a[0], INT(-2), INT(-1));
    return true;
}

bool rule_fliplr(Trace *t, const Op *op, const Value *a, Value *out) {
    *out = CALL(t, aten_flip_default, a[0],
                list_of(t, INT(op->id == OP_aten_fliplr_default ? 1 : 0), END));
    return true;
}

bool rule_meshgrid(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    int n = a[0].n;
    bool xy = op->n_args > 1 && a[1].kind == VAL_str && strcmp(a[1].s, "xy") == 0 && n >= 2;
    Value *order = ARENA_ARRAY(t->arena, n + 1, Value);
    for (int i = 0; i < n; i++)
        order[i] = a[0].at[xy && i < 2 ? 1 - i : i];
    Value shape = val_list(t->arena, VAL_list, n);
    *out = val_none();
    for (int i = 0; i < n; i++) {
        if (dim_of(order[i]) > 1) {
            trace_fail(t, "RuntimeError: torch.meshgrid: Expected 0D or 1D tensor in the tensor "
                          "list");
            return true;
        }
        shape.at[i] = numel_of(t, order[i]);
    }
    *out = val_list(t->arena, VAL_list, n);
    for (int i = 0; i < n; i++) {
        Value one = val_list(t->arena, VAL_list, n);
        for (int k = 0; k < n; k++)
            one.at[k] = k == i ? INT(-1) : INT(1);
        Value g = CALL(t, aten_view_default, order[i], one);
        g = CALL(t, aten_expand_default, g, shape);
        out->at[xy && i < 2 ? 1 - i : i] = g;
    }
    return true;
}

bool rule_repeat_interleave(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    Value x = a[2].kind == VAL_int ? a[0] : flatten(t, a[0]);
    int dim = a[2].kind == VAL_int ? wrap_dim(t, a[2].i, dim_of(x)) : 0;
    x = CALL(t, aten_unsqueeze_default, x, INT(dim + 1));
    Value shape = sizes_of(t, x);
    if (t->failed)
        return true;
    shape.at[dim + 1] = a[1];
    x = CALL(t, aten_expand_default, x, shape);
    x = CALL(t, aten_clone_default, x, (Value){.kind = VAL_memory_format, .mf = MF_contiguous});
    *out = CALL(t, aten_flatten_using_ints, x, INT(dim), INT(dim + 1));
    return true;
}

bool rule_diag(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    *out = dim_of(a[0]) == 1 ? CALL(t, aten_diag_embed_default, a[0], a[1])
                             : CALL(t, aten_diagonal_copy_default, a[0], a[1]);
    return true;
}

bool rule_take_along_dim(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    if (a[2].kind != VAL_int) {
        Value x = reshape(t, a[0], list_of(t, INT(-1), END));
        Value i = reshape(t, a[1], list_of(t, INT(-1), END));
        *out = CALL(t, aten_gather_default, x, INT(0), i);
        return true;
    }
    const TensorMeta *x = meta_of(a[0]), *y = meta_of(a[1]);
    int dim = wrap_dim(t, a[2].i, x->ndim);
    if (x->ndim != y->ndim || t->failed)
        return false;
    Value xs = sizes_of(t, a[0]), ys = sizes_of(t, a[1]);
    for (int i = 0; i < x->ndim; i++)
        if (i != dim)
            xs.at[i] = ys.at[i] = expr_known_is(t, x->size[i], 1) ? ys.at[i] : xs.at[i];
    Value xb = CALL(t, aten_expand_default, a[0], xs);
    Value yb = CALL(t, aten_expand_default, a[1], ys);
    if (!expr_known_is(t, x->size[dim], 0)) // places count on from either end
        yb = CALL(t, aten_remainder_Scalar, yb, val_sym(x->size[dim]));
    *out = CALL(t, aten_gather_default, xb, INT(dim), yb);
    return true;
}

bool rule_item(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    *out = CALL(t, aten__local_scalar_dense_default, a[0]);
    return true;
}

bool rule_grid_sampler(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    *out = dim_of(a[0]) == 4 ? CALL(t, aten_grid_sampler_2d_default, a[0], a[1], a[2], a[3], a[4])
                             : CALL(t, aten_grid_sampler_3d_default, a[0], a[1], a[2], a[3], a[4]);
    return true;
}

bool rule_resize_as_(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    MemoryFormat mf = a[2].kind == VAL_memory_format ? a[2].mf : MF_contiguous;
    if (mf == MF_preserve)
        mf = suggest_memory_format(t, a[1]);
    *out = CALL(t, aten_resize__default, a[0], sizes_of(t, a[1]),
                (Value){.kind = VAL_memory_format, .mf = mf});
    return true;
}

// more ways to split and to stack

bool rule_axis_split(Trace *t, const Op *op, const Value *a, Value *out) {
    int dim = op->name[0] == 'd' ? 2 : op->name[0] == 'h' && dim_of(a[0]) > 1;
    if (dim_of(a[0]) <= (op->name[0] == 'v' ? 1 : dim))
        return false;
    *out = strcmp(op->overload, "int") == 0
               ? CALL(t, aten_tensor_split_sections, a[0], a[1], INT(dim))
               : CALL(t, aten_tensor_split_indices, a[0], a[1], INT(dim));
    return true;
}

bool rule_column_stack(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    Value columns = val_list(t->arena, VAL_list, a[0].n);
    for (int i = 0; i < columns.n; i++) {
        Value x = a[0].at[i];
        columns.at[i] = dim_of(x) > 1 ? x : reshape(t, x, list_of(t, numel_of(t, x), INT(1), END));
    }
    *out = CALL(t, aten_hstack_default, columns);
    return true;
}

bool rule_dstack(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    *out = CALL(t, aten_cat_default, all_at_least(t, a[0], 3), INT(2));
    return true;
}

bool rule_all_atleast(Trace *t, const Op *op, const Value *a, Value *out) {
    *out = all_at_least(t, a[0], op->name[strlen("atleast_")] - '0');
    return true;
}

bool rule_cartesian_prod(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    *out = item_of(a[0], 0);
    if (a[0].n < 2)
        return a[0].n == 1;
    Value grids = CALL(t, aten_meshgrid_indexing, a[0], val_str("ij"));
    Value flat = val_list(t->arena, VAL_list, a[0].n);
    for (int i = 0; i < flat.n; i++)
        flat.at[i] = flatten(t, item_of(grids, i));
    *out = CALL(t, aten_stack_default, flat, INT(1));
    return true;
}

bool rule_diagflat(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    Value x = contiguous(t, a[0], MF_contiguous);
    x = CALL(t, aten_view_default, x, list_of(t, INT(-1), END));
    *out = CALL(t, aten_diag_default, x, a[1]);
    return true;
}

// fftshift and its inverse: half a turn in each dimension.
bool rule_fftshift(Trace *t, const Op *op, const Value *a, Value *out) {
    int n = dim_of(a[0]), back = strcmp(op->name, "fft_ifftshift") == 0;
    Value dims = is_none(&a[1]) ? dims_range(t, 0, n) : a[1];
    Value shifts = val_list(t->arena, VAL_list, dims.n), at = val_list(t->arena, VAL_list, dims.n);
    for (int i = 0; i < dims.n && !t->failed; i++) {
        int dim = wrap_dim(t, int_arg(&dims.at[i], 0), n);
        const Expr *size = sym_add_int(t->sym, size_of(t, a[0], dim), back);
        at.at[i] = INT(dim);
        shifts.at[i] = val_sym(sym_floordiv(t->sym, size, sym_int(t->sym, 2)));
    }
    *out = CALL(t, aten_roll_default, a[0], shifts, at);
    return true;
}

bool rule_repeat_interleave_by(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    Value x = is_none(&a[2]) ? flatten(t, a[0]) : a[0], repeats = a[1];
    int dim = wrap_dim(t, int_arg(&a[2], 0), dim_of(x));
    bool one = dim_of(repeats) == 0 || expr_known_is(t, size_of(t, repeats, 0), 1);
    if (one) {
        repeats = reshape(t, repeats, list_of(t, INT(1), END));
        repeats =
            CALL(t, aten_expand_default, repeats, list_of(t, val_sym(size_of(t, x, dim)), END));
    }
    Value at = CALL(t, aten_repeat_interleave_Tensor, repeats, a[3]);
    *out = CALL(t, aten_index_select_default, x, INT(dim), at);
    return true;
}

// Circular padding: the tensor in the middle of a larger one, then each side from the other end.
Value pad_circular(Trace *t, Value x, Value pad) {
    const TensorMeta *m = meta_of(x);
    int n = pad.n / 2;
    Value size = sizes_of(t, x), device = {.kind = VAL_device, .device = m->device};
    Value layout = {.kind = VAL_layout, .layout = m->layout};
    int64_t *side = ARENA_ARRAY(t->arena, pad.n + 1, int64_t);
    for (int i = 0; i < pad.n; i++)
        if (!val_as_int(&pad.at[i], &side[i]))
            return NONE;
    for (int i = 0; i < n; i++) {
        int dim = m->ndim - 1 - i;
        size.at[dim] = val_sym(sym_add_int(t->sym, m->size[dim], side[2 * i] + side[2 * i + 1]));
    }
    Value out = CALL(t, aten_new_empty_default, x, size, DTY(m->dtype), layout, device);
    Value to = out, from = x;
    for (int i = 0; i < n; i++) {
        int dim = m->ndim - 1 - i;
        int64_t l = side[2 * i], r = side[2 * i + 1];
        to = CALL(t, aten_slice_Tensor, to, INT(dim), INT(l > 0 ? l : 0),
                  val_sym(sym_add_int(t->sym, size_of(t, out, dim), r > 0 ? -r : 0)));
        from = CALL(t, aten_slice_Tensor, from, INT(dim), INT(l < 0 ? -l : 0),
                    val_sym(sym_add_int(t->sym, m->size[dim], r < 0 ? r : 0)));
    }
    CALL(t, aten_copy__default, to, from);
    for (int i = 0; i < n; i++) {
        int dim = m->ndim - 1 - i;
        int64_t l = side[2 * i], r = side[2 * i + 1], left = l > 0 ? l : 0, right = r > 0 ? r : 0;
        const Expr *end = size_of(t, out, dim), *inner = sym_add_int(t->sym, end, -right);
        if (l > 0) {
            to = CALL(t, aten_slice_Tensor, out, INT(dim), INT(0), INT(l));
            from = CALL(t, aten_slice_Tensor, out, INT(dim),
                        val_sym(sym_add_int(t->sym, inner, -l)), val_sym(inner));
            CALL(t, aten_copy__default, to, from);
        }
        if (r > 0) {
            to = CALL(t, aten_slice_Tensor, out, INT(dim), val_sym(inner), val_sym(end));
            from = CALL(t, aten_slice_Tensor, out, INT(dim), INT(left), INT(left + r));
            CALL(t, aten_copy__default, to, from);
        }
    }
    return out;
}
