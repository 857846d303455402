// derive_join.c: derivatives of what splits, joins, repeats, pads and moves elements.
#include "core/aot/derive.h"

// parts: their gradients are joined again, zeros for those that nobody used

static Value joined_parts(Back *b, const Expr *const *part_sizes, int dim) {
    Trace *t = b->t;
    Value parts = val_list(t->arena, VAL_list, b->n_results);
    for (int i = 0; i < b->n_results && !t->failed; i++) {
        parts.at[i] = GRADS(i);
        if (defined(parts.at[i]))
            continue;
        Value size = sizes_arg(t, ARG(0));
        size.at[dim] = val_sym(part_sizes[i]);
        parts.at[i] = zeros_of(t, size, ARG(0));
    }
    return CALL(t, aten_cat_default, parts, INT(dim));
}

void derive_split_with_sizes(Back *b) {
    Trace *t = b->t;
    const Expr **sizes = ARENA_ARRAY(t->arena, ARG(1).n + 1, const Expr *);
    for (int i = 0; i < ARG(1).n; i++)
        if (!val_as_expr(t->sym, &ARG(1).at[i], &sizes[i]))
            return;
    OUT(0) = joined_parts(b, sizes, wrap_dim(t, int_arg(&ARG(2), 0), dim_of(ARG(0))));
}

void derive_split(Back *b) {
    Trace *t = b->t;
    int n = b->n_results, dim = wrap_dim(t, int_arg(&ARG(2), 0), dim_of(ARG(0)));
    const Expr **sizes = ARENA_ARRAY(t->arena, n + 1, const Expr *), *each;
    if (!val_as_expr(t->sym, &ARG(1), &each) || t->failed)
        return;
    for (int i = 0; i < n; i++)
        sizes[i] = each;
    if (n)
        sizes[n - 1] = sym_sub(t->sym, size_of(t, ARG(0), dim), sym_mul_int(t->sym, each, n - 1));
    OUT(0) = joined_parts(b, sizes, dim);
}

void derive_unbind(Back *b) {
    Trace *t = b->t;
    Value like = NONE, parts = val_list(t->arena, VAL_list, b->n_results);
    for (int i = 0; i < b->n_results && !defined(like); i++)
        like = GRADS(i);
    for (int i = 0; i < b->n_results; i++)
        parts.at[i] = defined(GRADS(i)) ? GRADS(i)
                                        : CALL(t, aten_expand_default,
                                               zeros_of(t, val_list(t->arena, VAL_list, 0), like),
                                               sizes_arg(t, like));
    OUT(0) = CALL(t, aten_stack_default, parts, ARG(1));
}

// joins: each item gets its part of the gradient

// An empty vector is no part of the shape, whatever the others are.
static bool is_left_out(Trace *t, Value x) {
    return dim_of(x) == 1 && expr_known_is(t, size_of(t, x, 0), 0);
}

void derive_cat(Back *b) {
    Trace *t = b->t;
    Value items = ARG(0), grads = val_list(t->arena, VAL_list, items.n);
    int ndim = 1;
    for (int i = items.n - 1; i >= 0; i--)
        if (!is_left_out(t, items.at[i]))
            ndim = dim_of(items.at[i]);
    int dim = wrap_dim(t, int_arg(&ARG(1), 0), ndim);
    const Expr *start = sym_int(t->sym, 0);
    for (int i = 0; i < items.n && !t->failed; i++) {
        if (is_left_out(t, items.at[i])) {
            grads.at[i] = zeros_of(t, list_of(t, INT(0), END), GRAD);
            continue;
        }
        const Expr *size = size_of(t, items.at[i], dim);
        grads.at[i] = CALL(t, aten_narrow_default, GRAD, INT(dim), val_sym(start), val_sym(size));
        start = sym_add(t->sym, start, size);
    }
    OUT(0) = grads;
}

void derive_stack(Back *b) {
    Trace *t = b->t;
    Value grads = val_list(t->arena, VAL_list, ARG(0).n);
    for (int i = 0; i < grads.n; i++)
        grads.at[i] = CALL(t, aten_select_int, GRAD, ARG(1), INT(i));
    OUT(0) = grads;
}

void derive_block_diag(Back *b) {
    Trace *t = b->t;
    Sym *s = t->sym;
    Value items = ARG(0), grads = val_list(t->arena, VAL_list, items.n);
    const Expr *at[2] = {sym_int(s, 0), sym_int(s, 0)};
    for (int i = 0; i < items.n && !t->failed; i++) {
        int ndim = dim_of(items.at[i]);
        if (ndim == 1 && expr_known_is(t, size_of(t, items.at[i], 0), 0)) {
            grads.at[i] = zeros_of(t, list_of(t, INT(0), END), GRAD);
            continue;
        }
        Value part = GRAD;
        for (int d = 0; d < 2; d++) { // a vector is one row
            const Expr *size =
                ndim > 1 - d ? size_of(t, items.at[i], d - (2 - ndim)) : sym_int(s, 1);
            const Expr *end = sym_add(s, at[d], size);
            part = CALL(t, aten_slice_Tensor, part, INT(d), val_sym(at[d]), val_sym(end));
            at[d] = end;
        }
        for (int d = ndim; d < 2; d++)
            part = CALL(t, aten_squeeze_dim, part, INT(-1));
        grads.at[i] = part;
    }
    OUT(0) = grads;
}

// moves

void derive_flip(Back *b) {
    OUT(0) = CALL(b->t, aten_flip_default, GRAD, ARG(1));
}

static Value reversed(Trace *t, Value list, bool negated) {
    Value out = val_list(t->arena, VAL_list, list.n);
    for (int i = 0; i < list.n; i++) {
        const Expr *e;
        out.at[i] = list.at[list.n - 1 - i];
        if (negated && val_as_expr(t->sym, &out.at[i], &e))
            out.at[i] = val_sym(sym_neg(t->sym, e));
    }
    return out;
}

void derive_roll(Back *b) {
    OUT(0) = CALL(b->t, aten_roll_default, GRAD, reversed(b->t, ARG(1), true),
                  reversed(b->t, ARG(2), false));
}

void derive_rot90(Back *b) {
    OUT(0) = CALL(b->t, aten_rot90_default, GRAD, INT(-int_arg(&ARG(1), 1)), ARG(2));
}

void derive_tril(Back *b) {
    OUT(0) = CALL(b->t, aten_tril_default, GRAD, ARG(1));
}

void derive_triu(Back *b) {
    OUT(0) = CALL(b->t, aten_triu_default, GRAD, ARG(1));
}

void derive_diag_embed(Back *b) {
    OUT(0) = CALL(b->t, aten_diagonal_default, GRAD, ARG(1), ARG(2), ARG(3));
}

void derive_trace(Back *b) {
    Trace *t = b->t;
    const Expr *rows = size_of(t, ARG(0), 0), *columns = size_of(t, ARG(0), 1);
    Value numel = val_sym(sym_mul(t->sym, rows, columns));
    Value flat = zeros_of(t, list_of(t, numel, END), GRAD);
    Value at = arange_like(t, INT(0), numel, val_sym(sym_add_int(t->sym, columns, 1)), GRAD);
    flat = CALL(t, aten_index_fill_int_Tensor, flat, INT(0), at, GRAD);
    OUT(0) = CALL(t, aten_view_default, flat, sizes_arg(t, ARG(0)));
}

void derive_pixel_shuffle(Back *b) {
    OUT(0) = CALL(b->t, aten_pixel_unshuffle_default, GRAD, ARG(1));
}

void derive_pixel_unshuffle(Back *b) {
    OUT(0) = CALL(b->t, aten_pixel_shuffle_default, GRAD, ARG(1));
}

void derive_channel_shuffle(Back *b) {
    Trace *t = b->t;
    const Expr *groups;
    if (val_as_expr(t->sym, &ARG(1), &groups))
        OUT(0) = CALL(t, aten_channel_shuffle_default, GRAD,
                      val_sym(sym_floordiv(t->sym, size_of(t, GRAD, 1), groups)));
}

// copies of the same element add up

void derive_repeat(Back *b) {
    Trace *t = b->t;
    Value grad = GRAD, repeats = ARG(1);
    int ndim = dim_of(ARG(0)), lead = repeats.n - ndim, n = 0, n_dims = 0;
    const Expr **times = ARENA_ARRAY(t->arena, repeats.n + 1, const Expr *);
    const Expr **size = ARENA_ARRAY(t->arena, 2 * ndim + 1, const Expr *);
    int64_t *dims = ARENA_ARRAY(t->arena, ndim + 1, int64_t);
    for (int i = 0; i < repeats.n; i++)
        if (!val_as_expr(t->sym, &repeats.at[i], &times[i]))
            return;
    for (int i = 0; i < repeats.n; i++)
        if (expr_guard_is(t, times[i], 0)) {
            OUT(0) = zeros_of(t, sizes_arg(t, ARG(0)), grad);
            return;
        }
    for (int i = 0; i < lead; i++)
        grad = CALL(t, aten_sum_dim_IntList, grad, list_of(t, INT(0), END), BOOL(false));
    for (int i = 0; i < ndim; i++) {
        if (!expr_guard_is(t, times[i + lead], 1)) {
            dims[n_dims++] = n;
            size[n++] = times[i + lead];
        }
        size[n++] = size_of(t, ARG(0), i);
    }
    if (n_dims) {
        grad = reshape(t, grad, size_list(t, size, n));
        grad = CALL(t, aten_sum_dim_IntList, grad, ints_of(t, dims, n_dims));
    }
    OUT(0) = grad;
}

// padding

void derive_constant_pad(Back *b) {
    Trace *t = b->t;
    Value pad = val_list(t->arena, VAL_list, ARG(1).n);
    for (int i = 0; i < pad.n; i++) {
        const Expr *e;
        if (val_as_expr(t->sym, &ARG(1).at[i], &e))
            pad.at[i] = val_sym(sym_neg(t->sym, e));
    }
    OUT(0) = CALL(t, aten_constant_pad_nd_default, GRAD, pad, INT(0));
}

#define PAD(rule, call)                                                                            \
    void derive_##rule(Back *b) {                                                                  \
        OUT(0) = CALL(b->t, aten_##call, GRAD, ARG(0), ARG(1));                                    \
    }
PAD(reflection_pad1d, reflection_pad1d_backward_default)
PAD(reflection_pad2d, reflection_pad2d_backward_default)
PAD(reflection_pad3d, reflection_pad3d_backward_default)
PAD(replication_pad1d, replication_pad1d_backward_default)
PAD(replication_pad2d, replication_pad2d_backward_default)
PAD(replication_pad3d, replication_pad3d_backward_default)
#undef PAD

#define PAD_BACKWARD(rule, call)                                                                   \
    void derive_##rule(Back *b) {                                                                  \
        if (NEEDS(0))                                                                              \
            OUT(0) = CALL(b->t, aten_##call, GRAD, ARG(2));                                        \
        if (NEEDS(1))                                                                              \
            OUT(1) = zeros_like(b->t, ARG(1));                                                     \
    }
PAD_BACKWARD(reflection_pad1d_backward, reflection_pad1d_default)
PAD_BACKWARD(reflection_pad2d_backward, reflection_pad2d_default)
PAD_BACKWARD(reflection_pad3d_backward, reflection_pad3d_default)
PAD_BACKWARD(replication_pad1d_backward, replication_pad1d_default)
PAD_BACKWARD(replication_pad2d_backward, replication_pad2d_default)
PAD_BACKWARD(replication_pad3d_backward, replication_pad3d_default)
#undef PAD_BACKWARD
