// derive_index.c: derivatives of gather, scatter, indexing, masks and embeddings.
#include "core/aot/derive.h"

#include <string.h>

static Value over(Trace *t, Value a, Value b) {
    return CALL(t, aten_div_Tensor, a, b);
}

static Value equal(Trace *t, Value a, Value b) {
    return CALL(t, aten_eq_Tensor, a, b);
}

static Value zeros_like_self(Back *b) {
    return new_zeros_of(b->t, GRAD, sizes_arg(b->t, ARG(0)), ARG(0));
}

// indexing by tensors

void derive_index(Back *b) {
    OUT(0) = CALL(b->t, aten_index_put_default, zeros_like_self(b), ARG(1), GRAD, BOOL(true));
}

void derive_unsafe_index(Back *b) {
    OUT(0) =
        CALL(b->t, aten__unsafe_index_put_default, zeros_like_self(b), ARG(1), GRAD, BOOL(true));
}

void derive_masked_index(Back *b) {
    OUT(0) = CALL(b->t, aten__unsafe_masked_index_put_accumulate_default, zeros_like_self(b),
                  ARG(1), ARG(2), GRAD);
}

void derive_masked_index_put(Back *b) {
    OUT(0) = GRAD;
    if (NEEDS(3))
        OUT(3) = CALL(b->t, aten__unsafe_masked_index_default, GRAD, ARG(1), ARG(2), INT(0));
}

static Value zeros_of_shape(Trace *t, Value x) {
    return zeros_of(t, sizes_arg(t, x), x);
}

void derive_index_put(Back *b) {
    Trace *t = b->t;
    OUT(0) = GRAD;
    if (NEEDS(0) && !bool_arg(&ARG(3)))
        OUT(0) = CALL(t, aten_index_put_default, GRAD, ARG(1), zeros_of_shape(t, ARG(2)),
                      BOOL(false));
    if (NEEDS(2))
        OUT(2) = CALL(t, aten_index_Tensor, GRAD, ARG(1));
}

void derive_unsafe_index_put(Back *b) {
    Trace *t = b->t;
    OUT(0) = GRAD;
    if (NEEDS(0) && !bool_arg(&ARG(3)))
        OUT(0) = CALL(t, aten__unsafe_index_put_default, GRAD, ARG(1), zeros_of_shape(t, ARG(2)),
                      BOOL(false));
    if (NEEDS(2))
        OUT(2) = CALL(t, aten__unsafe_index_Tensor, GRAD, ARG(1));
}

// indexing along a dimension

void derive_index_select(Back *b) {
    Value zeros = new_zeros_of(b->t, GRAD, sizes_arg(b->t, ARG(0)), GRAD);
    OUT(0) = CALL(b->t, aten_index_add_default, zeros, ARG(1), ARG(2), GRAD);
}

// What index_select took from the gradient for source; a source of no dimensions is one element.
static Value for_source(Back *b, Value dim, Value index, Value source) {
    Trace *t = b->t;
    if (!dim_of(source))
        return CALL(t, aten_index_select_default, GRAD, dim,
                    CALL(t, aten_squeeze_dim, index, INT(0)));
    Value g = CALL(t, aten_index_select_default, GRAD, dim, index);
    return CALL(t, aten_expand_default, g, sizes_arg(t, source));
}

void derive_index_add(Back *b) {
    OUT(0) = GRAD;
    if (NEEDS(3))
        OUT(3) = maybe_multiply(b->t, for_source(b, ARG(1), ARG(2), ARG(3)), ARG(4));
}

void derive_index_copy(Back *b) {
    if (NEEDS(0))
        OUT(0) = CALL(b->t, aten_index_fill_int_Scalar, GRAD, ARG(1), ARG(2), INT(0));
    if (NEEDS(3))
        OUT(3) = for_source(b, ARG(1), ARG(2), ARG(3));
}

void derive_index_fill(Back *b) {
    Trace *t = b->t;
    if (NEEDS(0))
        OUT(0) = CALL(t, aten_index_fill_int_Scalar, GRAD, ARG(1), ARG(2), INT(0));
    if (NEEDS(3)) {
        Value once = item_of(CALL(t, aten__unique_default, ARG(2), BOOL(false)), 0);
        Value g = CALL(t, aten_index_select_default, GRAD, ARG(1), once);
        OUT(3) = CALL(t, aten_sum_default, g);
    }
}

// gather and scatter

void derive_gather(Back *b) {
    Trace *t = b->t;
    if (bool_arg(&ARG(3))) {
        trace_fail(t, "RuntimeError: gather's sparse gradient is not implemented");
        return;
    }
    Value zeros = CALL(t, aten_new_zeros_default, GRAD, sizes_arg(t, ARG(0)));
    OUT(0) = CALL(t, aten_scatter_add_default, zeros, ARG(1), ARG(2), GRAD);
}

void derive_scatter(Back *b) {
    if (NEEDS(0))
        OUT(0) = CALL(b->t, aten_scatter_value, GRAD, ARG(1), ARG(2), INT(0));
    if (b->needs[3])
        OUT(3) = CALL(b->t, aten_gather_default, GRAD, ARG(1), ARG(2));
}

void derive_scatter_add(Back *b) {
    OUT(0) = GRAD;
    if (NEEDS(3))
        OUT(3) = CALL(b->t, aten_gather_default, GRAD, ARG(1), ARG(2));
}

void derive_take(Back *b) {
    OUT(0) = CALL(b->t, aten_put_default, zeros_like(b->t, ARG(0)), ARG(1), GRAD, BOOL(true));
}

void derive_put(Back *b) {
    Trace *t = b->t;
    OUT(0) = GRAD;
    if (NEEDS(0) && !bool_arg(&ARG(3)))
        OUT(0) = CALL(t, aten_put_default, GRAD, ARG(1), zeros_like(t, ARG(2)), BOOL(false));
    if (NEEDS(2))
        OUT(2) = reshape(t, CALL(t, aten_take_default, GRAD, ARG(1)), sizes_arg(t, ARG(2)));
}

void derive_masked_select(Back *b) {
    Trace *t = b->t;
    MetaCtx c = trace_meta_ctx(t);
    const TensorMeta *both[2] = {meta_of(ARG(0)), meta_of(ARG(1))};
    int ndim;
    const Expr **size = ops_broadcast(&c, both, 2, &ndim);
    if (!size)
        return;
    Value x = CALL(t, aten_expand_default, ARG(0), size_list(t, size, ndim));
    x = CALL(t, aten_zeros_like_default, x, NONE, NONE, NONE, NONE,
             (Value){.kind = VAL_memory_format, .mf = MF_preserve});
    OUT(0) = CALL(t, aten_masked_scatter_default, x, ARG(1), GRAD);
}

// Reductions into places. The two ops differ in how they reach the places that index names:
// scatter_reduce by element, index_reduce by slice.
typedef struct Places {
    Back *b;
    OpId take, add, reduce, fill;
    bool by_slice;
} Places;

static Value take(const Places *p, Value x) {
    return trace_call(p->b->t, p->take, x, p->b->args[1], p->b->args[2], END);
}

static Value add(const Places *p, Value into, Value x) {
    return trace_call(p->b->t, p->add, into, p->b->args[1], p->b->args[2], x, END);
}

static Value reduce(const Places *p, Value into, Value x) {
    const Value *a = p->b->args;
    return trace_call(p->b->t, p->reduce, into, a[1], a[2], x, a[4], a[5], END);
}

static Value fill_where(Trace *t, Value x, Value mask, int v) {
    return CALL(t, aten_masked_fill_Scalar, x, mask, INT(v));
}

static void reduce_by_prod(const Places *p) {
    Back *b = p->b;
    Trace *t = b->t;
    Value self = ARG(0), src = ARG(3), grad = GRAD, result = RES(0);
    Value own = fill_where(t, self, CALL(t, aten_eq_Scalar, self, INT(0)), 1);
    OUT(0) = over(t, times(t, grad, reduce(p, own, src)), own);
    Value zero = CALL(t, aten_eq_Scalar, src, INT(0));
    Value none = zeros_like(t, self);
    Value zeros = take(p, add(p, none, to_dtype(t, zero, dtype_of(self))));
    Value single = CALL(t, aten_bitwise_and_Tensor, zero, CALL(t, aten_eq_Scalar, zeros, INT(1)));
    Value but_one = reduce(p, self, fill_where(t, src, single, 1));
    Value rest = fill_where(t, src, zero, 1);
    rest = over(t, take(p, times(t, grad, result)), rest);
    Value alone = take(p, times(t, grad, but_one));
    OUT(3) = CALL(t, aten_where_self, single, alone, rest);
}

static void reduce_by_mean(const Places *p) {
    Back *b = p->b;
    Trace *t = b->t;
    Value n = bool_arg(&ARG(5)) ? CALL(t, aten_ones_like_default, GRAD) : zeros_like(t, GRAD);
    n = add(p, n, CALL(t, aten_ones_like_default, ARG(3)));
    n = fill_where(t, n, CALL(t, aten_eq_Scalar, n, INT(0)), 1);
    OUT(0) = over(t, GRAD, n);
    Value n_src = take(p, n);
    OUT(3) = over(t, take(p, GRAD), n_src);
}

// amax and amin: shared out evenly among all that are equal to the result
static void reduce_by_extreme(const Places *p) {
    Back *b = p->b;
    Trace *t = b->t;
    Value self = ARG(0), src = ARG(3), result = RES(0);
    Value value = take(p, result);
    Value own = to_dtype(t, equal(t, self, result), dtype_of(self));
    Value of_src = to_dtype(t, equal(t, src, value), dtype_of(self));
    Value share = over(t, GRAD, add(p, own, of_src));
    if (p->by_slice) {
        OUT(0) = times(t, own, share);
        OUT(3) = times(t, of_src, take(p, share));
        return;
    }
    OUT(0) = times(t, equal(t, self, result), share);
    Value taken = take(p, share);
    OUT(3) = times(t, equal(t, src, value), taken);
}

static void reduce_backward(const Places *p) {
    Back *b = p->b;
    Trace *t = b->t;
    const char *how = ARG(4).kind == VAL_str ? ARG(4).s : "";
    if (!strcmp(how, "sum")) {
        OUT(0) = GRAD;
        OUT(3) = take(p, GRAD);
    } else if (!strcmp(how, "prod")) {
        reduce_by_prod(p);
    } else if (!strcmp(how, "mean")) {
        reduce_by_mean(p);
    } else {
        reduce_by_extreme(p);
    }
    if (!bool_arg(&ARG(5)))
        OUT(0) = trace_call(t, p->fill, OUT(0), ARG(1), ARG(2), INT(0), END);
}

void derive_scatter_reduce(Back *b) {
    Places p = {b,
                OP_aten_gather_default,
                OP_aten_scatter_add_default,
                OP_aten_scatter_reduce_two,
                OP_aten_scatter_value,
                false};
    reduce_backward(&p);
}

void derive_index_reduce(Back *b) {
    Places p = {b,
                OP_aten_index_select_default,
                OP_aten_index_add_default,
                OP_aten_index_reduce_default,
                OP_aten_index_fill_int_Scalar,
                true};
    reduce_backward(&p);
}

void derive_segment_reduce(Back *b) {
    OUT(0) = CALL(b->t, aten__segment_reduce_backward_default, GRAD, RES(0), ARG(0), ARG(1), ARG(2),
                  ARG(4), ARG(5), ARG(7));
}

// embeddings

void derive_embedding(Back *b) {
    Trace *t = b->t;
    if (bool_arg(&ARG(4))) {
        trace_fail(t, "RuntimeError: a sparse gradient of an embedding is not implemented");
        return;
    }
    OUT(0) = CALL(t, aten_embedding_dense_backward_default, GRAD, ARG(1),
                  val_sym(size_of(t, ARG(0), 0)), ARG(2), ARG(3));
}

void derive_embedding_bag(Back *b) {
    Trace *t = b->t;
    if (NEEDS(6))
        OUT(6) = CALL(t, aten__embedding_bag_per_sample_weights_backward_default, GRAD, ARG(0),
                      ARG(1), ARG(2), RES(1), ARG(4), ARG(8));
    if (NEEDS(0))
        OUT(0) =
            CALL(t, aten__embedding_bag_backward_default, GRAD, ARG(1), ARG(2), RES(1), RES(2),
                 RES(3), val_sym(size_of(t, ARG(0), 0)), ARG(3), ARG(4), ARG(5), ARG(6), ARG(8));
}
