// composite.c: ops that are taken apart into others: stacking along an axis, grids, attention,
// activations with two results, einsum's products.
#include "core/eager/kernel.h"

#include <math.h>
#include <string.h>

// A note of the exporter, nothing to run.
bool kern_nothing(K *k) {
    k->out = NONE;
    return true;
}

bool kern_broadcast_tensors(K *k) {
    const Value *list = &k->args[0];
    int ndim = 0;
    int64_t size[TENSOR_DIMS];
    for (int i = 0; i < list->n; i++) {
        const Tensor *t = tensor_at(&list->at[i]);
        ndim = t && t->ndim > ndim ? t->ndim : ndim;
    }
    for (int d = 0; d < ndim; d++)
        size[d] = 1;
    for (int i = 0; i < list->n; i++) {
        const Tensor *t = tensor_at(&list->at[i]);
        for (int d = 0; t && d < t->ndim; d++) {
            int64_t *s = &size[ndim - t->ndim + d];
            *s = *s == 1 ? t->size[d] : *s;
        }
    }
    k->out = val_list(k->x->arena, VAL_list, list->n);
    for (int i = 0; i < list->n && eager_ok(k->x); i++)
        k->out.at[i] = CALL(k, aten_expand_default, list->at[i], ints_value(k->x, size, ndim));
    return eager_ok(k->x);
}

// meshgrid(tensors[, indexing])
bool kern_meshgrid(K *k) {
    const Value *list = &k->args[0];
    bool xy = k->op->n_args > 1 && strcmp(ks(k, 1, "ij"), "xy") == 0 && list->n >= 2;
    int64_t size[TENSOR_DIMS];
    int n = list->n;
    if (n > TENSOR_DIMS)
        return k_fail(k, "RuntimeError: meshgrid of %d tensors", n);
    for (int i = 0; i < n; i++) {
        int at = xy && i < 2 ? 1 - i : i;
        const Tensor *t = tensor_at(&list->at[at]);
        if (!t || t->ndim > 1)
            return k_fail(k, "RuntimeError: torch.meshgrid: Expected 0D or 1D tensor in the tensor "
                             "list");
        size[i] = tensor_numel(t);
    }
    k->out = val_list(k->x->arena, VAL_list, n);
    for (int i = 0; i < n; i++) {
        int at = xy && i < 2 ? 1 - i : i;
        int64_t shape[TENSOR_DIMS];
        for (int d = 0; d < n; d++)
            shape[d] = d == i ? size[i] : 1;
        Value v = CALL(k, aten_view_default, list->at[at], ints_value(k->x, shape, n));
        v = CALL(k, aten_expand_default, v, ints_value(k->x, size, n));
        k->out.at[at] = v;
    }
    return eager_ok(k->x);
}

// At least n dimensions, as atleast_nd gives them.
static Value at_least(K *k, Value v, int n) {
    const Tensor *t = tensor_at(&v);
    if (!t || t->ndim >= n)
        return v;
    if (t->ndim == 0) {
        int64_t ones[3] = {1, 1, 1};
        return CALL(k, aten_reshape_default, v, ints_value(k->x, ones, n));
    }
    if (n == 2 || t->ndim == 1)
        v = CALL(k, aten_unsqueeze_default, v, INT(0));
    return n == 3 ? CALL(k, aten_unsqueeze_default, v, INT(-1)) : v;
}

bool kern_atleast(K *k) {
    int n = k->op->name[strlen("atleast_")] - '0';
    if (k->args[0].kind == VAL_tensor) {
        k->out = at_least(k, k->args[0], n);
        return eager_ok(k->x);
    }
    k->out = val_list(k->x->arena, VAL_list, k->args[0].n);
    for (int i = 0; i < k->out.n; i++)
        k->out.at[i] = at_least(k, k->args[0].at[i], n);
    return eager_ok(k->x);
}

// hstack, vstack, dstack, column_stack, row_stack
bool kern_nd_stack(K *k) {
    char how = k->op->name[0];
    int n = how == 'h' ? 1 : how == 'd' ? 3 : 2, dim = how == 'd' ? 2 : how == 'c' ? 1 : 0;
    Value list = val_list(k->x->arena, VAL_list, k->args[0].n);
    for (int i = 0; i < list.n; i++) {
        const Tensor *t = tensor_at(&k->args[0].at[i]);
        bool column = how == 'c' && t && t->ndim < 2;
        int64_t shape[2] = {t ? tensor_numel(t) : 0, 1};
        list.at[i] =
            column ? CALL(k, aten_reshape_default, k->args[0].at[i], ints_value(k->x, shape, 2))
                   : at_least(k, k->args[0].at[i], n);
    }
    const Tensor *first = list.n ? tensor_at(&list.at[0]) : NULL;
    if (how == 'h')
        dim = first && first->ndim > 1;
    k->out = CALL(k, aten_cat_default, list, INT(dim));
    return eager_ok(k->x);
}

// log_sigmoid_forward(self) -> (output, buffer): the buffer is e^-|x|.
bool kern_log_sigmoid_forward(K *k) {
    Value out = CALL(k, aten_log_sigmoid_default, k->args[0]);
    if (out.kind != VAL_tensor || !copy_into(k->x, k->res[0], tensor_at(&out)))
        return false;
    if (tensor_numel(k->res[1]) == 0)
        return true;
    Value b =
        CALL(k, aten_exp_default, CALL(k, aten_neg_default, CALL(k, aten_abs_default, k->args[0])));
    return b.kind == VAL_tensor && copy_into(k->x, k->res[1], tensor_at(&b));
}

// frexp(self) -> (mantissa, exponent)
bool kern_frexp(K *k) {
    const Tensor *all[3] = {k->in[0], k->res[0], k->res[1]};
    WALK (w, walk_tensors(all, 3)) {
        int e = 0;
        double m = frexp(get_d(all[0], w.at[0]), &e);
        put_d(all[1], w.at[1], m);
        put_i(all[2], w.at[2], e);
    }
    return true;
}

// glu(self, dim): the first half times the sigmoid of the second
bool kern_glu(K *k) {
    int dim;
    if (!k->in[0]->ndim || !k_dim(k, ki(k, 1, -1), k->in[0]->ndim, &dim))
        return k_fail(k, "RuntimeError: glu does not support 0-dimensional tensors");
    int64_t half = k->in[0]->size[dim] / 2;
    Value a = CALL(k, aten_narrow_default, k->args[0], INT(dim), INT(0), INT(half));
    Value b = CALL(k, aten_narrow_default, k->args[0], INT(dim), INT(half), INT(half));
    // One rounding for the low floats.
    DType d = k->in[0]->dtype;
    if (dtype_is_low(d)) {
        a = CALL(k, aten__to_copy_default, a, DTY(DT_f32));
        b = CALL(k, aten__to_copy_default, b, DTY(DT_f32));
    }
    Value v = CALL(k, aten_mul_Tensor, a, CALL(k, aten_sigmoid_default, b));
    return v.kind == VAL_tensor && copy_into(k->x, k->res[0], tensor_at(&v));
}

// (grad_output, self, dim)
bool kern_glu_backward(K *k) {
    int dim;
    const Tensor *t = k->in[1];
    if (!t->ndim || !k_dim(k, ki(k, 2, -1), t->ndim, &dim))
        return false;
    int64_t half = t->size[dim] / 2;
    Value a = CALL(k, aten_narrow_default, k->args[1], INT(dim), INT(0), INT(half));
    Value s = CALL(k, aten_sigmoid_default,
                   CALL(k, aten_narrow_default, k->args[1], INT(dim), INT(half), INT(half)));
    Value first = CALL(k, aten_mul_Tensor, s, k->args[0]);
    Value second = CALL(k, aten_mul_Tensor,
                        CALL(k, aten_mul_Tensor, first, CALL(k, aten_rsub_Scalar, s, INT(1))), a);
    Value v = CALL(k, aten_cat_default, list_value(k->x, first, second, END), INT(dim));
    return v.kind == VAL_tensor && copy_into(k->x, k->res[0], tensor_at(&v));
}

// prelu(self, weight): one weight, or one a channel
bool kern_prelu(K *k) {
    const Tensor *x = k->in[0], *w = k->in[1];
    int64_t shape[TENSOR_DIMS];
    Value weight = k->args[1];
    if (!w || (w->ndim > 1))
        return k_fail(k, "RuntimeError: prelu: weight must have at most one dimension");
    for (int i = 0; i < x->ndim; i++)
        shape[i] = i == 1 ? tensor_numel(w) : 1;
    if (x->ndim == 1 && tensor_numel(w) == 1)
        shape[0] = 1;
    weight = CALL(k, aten_reshape_default, weight, ints_value(k->x, shape, x->ndim));
    k->out = CALL(k, aten__prelu_kernel_default, k->args[0], weight);
    return eager_ok(k->x);
}

// lift and the like
bool kern_identity(K *k) {
    k->out = k->args[0];
    return true;
}

// _neg_view: the bit that says that values are to be read negated is not kept, they are negated.
bool kern_neg_view(K *k) {
    Value v = CALL(k, aten_neg_default, k->args[0]);
    return v.kind == VAL_tensor && copy_into(k->x, k->res[0], tensor_at(&v));
}

// (self, size): sums over what was broadcast
bool kern_sum_to_size(K *k) {
    const Tensor *t = k->in[0];
    int64_t size[TENSOR_DIMS], dims[TENSOR_DIMS];
    int n = kints(k, 1, size, TENSOR_DIMS), lead = t->ndim - n, m = 0;
    if (n < 0 || lead < 0)
        return k_fail(k, "RuntimeError: sum_to_size: size must be expandable to the tensor's size");
    for (int i = 0; i < t->ndim; i++)
        if (i < lead || (size[i - lead] == 1 && t->size[i] != 1))
            dims[m++] = i;
    Value v = m ? CALL(k, aten_sum_dim_IntList, k->args[0], ints_value(k->x, dims, m), BOOL(true))
                : k->args[0];
    k->out = CALL(k, aten_view_default, v, k->args[1]);
    return eager_ok(k->x);
}

// repeat_interleave(repeats), .self_int(self, repeats, dim), .self_Tensor
bool kern_repeat_interleave(K *k) {
    const Tensor *repeats = k->in[0];
    int64_t total = 0, at = 0;
    if (repeats->ndim != 1 || !is_int_like(repeats->dtype))
        return k_fail(k, "RuntimeError: repeat_interleave only accept 1D vector as repeat");
    for (int64_t i = 0; i < repeats->size[0]; i++) {
        int64_t n = get_i(repeats, i * repeats->stride[0]);
        if (n < 0 || __builtin_add_overflow(total, n, &total))
            return k_fail(k, "RuntimeError: repeats can not be negative");
    }
    Tensor *out = eager_new(k->x, repeats->dtype, 1, &total);
    if (!out)
        return false;
    for (int64_t i = 0; i < repeats->size[0]; i++)
        for (int64_t j = get_i(repeats, i * repeats->stride[0]); j > 0; j--)
            put_i(out, at++, i);
    k->out = tensor_value(k->x, out);
    return true;
}

bool kern_repeat_interleave_self(K *k) {
    Value t = k->args[0], r = k->args[1], dim = k->args[2];
    if (dim.kind == VAL_none) {
        t = CALL(k, aten_reshape_default, t, list_value(k->x, INT(-1), END));
        dim = INT(0);
    }
    const Tensor *in = tensor_at(&t);
    int d;
    if (!in || !in->ndim || !k_dim(k, dim.i, in->ndim, &d))
        return false;
    if (r.kind != VAL_tensor)
        r = number_tensor(k->x, &r, DT_i64);
    Value each = CALL(k, aten_expand_default,
                      CALL(k, aten_reshape_default, r, list_value(k->x, INT(-1), END)),
                      ints_value(k->x, &in->size[d], 1));
    k->out =
        CALL(k, aten_index_select_default, t, dim, CALL(k, aten_repeat_interleave_Tensor, each));
    return eager_ok(k->x);
}

bool kern_take_along_dim(K *k) {
    Value t = k->args[0], index = k->args[1];
    if (!k_given(k, 2)) {
        Value flat = list_value(k->x, INT(-1), END);
        k->out = CALL(k, aten_gather_default, CALL(k, aten_reshape_default, t, flat), INT(0),
                      CALL(k, aten_reshape_default, index, flat));
        return eager_ok(k->x);
    }
    const Tensor *a = k->in[0], *b = k->in[1];
    int dim;
    int64_t sa[TENSOR_DIMS], sb[TENSOR_DIMS];
    if (!b || a->ndim != b->ndim || !k_dim(k, ki(k, 2, 0), a->ndim, &dim))
        return k_fail(k, "RuntimeError: torch.take_along_dim(): input and indices should have the "
                         "same number of dimensions");
    for (int i = 0; i < a->ndim; i++) {
        int64_t both = a->size[i] == 1 ? b->size[i] : a->size[i];
        sa[i] = i == dim ? a->size[i] : both;
        sb[i] = i == dim ? b->size[i] : both;
    }
    t = CALL(k, aten_expand_default, t, ints_value(k->x, sa, a->ndim));
    index = CALL(k, aten_expand_default, index, ints_value(k->x, sb, b->ndim));
    if (sa[dim] > 0) // places count on from either end
        index = CALL(k, aten_remainder_Scalar, index, INT(sa[dim]));
    k->out = CALL(k, aten_gather_default, t, INT(dim), index);
    return eager_ok(k->x);
}

// where(condition): positions of what is true, a tensor a dimension
bool kern_where_positions(K *k) {
    Value nz = CALL(k, aten_nonzero_default, k->args[0]),
          parts = CALL(k, aten_unbind_int, nz, INT(1));
    k->out = parts;
    return eager_ok(k->x);
}

// cosine_similarity(x1, x2, dim, eps)
bool kern_cosine_similarity(K *k) {
    Value dims = list_value(k->x, k->args[2], END), of[2];
    DType d = ops_result_type(k->args, 2);
    for (int i = 0; i < 2; i++)
        of[i] = CALL(k, aten_to_dtype, k->args[i], DTY(d));
    Value both = CALL(k, aten_broadcast_tensors_default, list_value(k->x, of[0], of[1], END));
    if (!eager_ok(k->x))
        return false;
    Value n[2];
    for (int i = 0; i < 2; i++) {
        n[i] = CALL(k, aten_linalg_vector_norm_default, both.at[i], FLT(2), dims, BOOL(true));
        n[i] =
            CALL(k, aten_div_Tensor, both.at[i], CALL(k, aten_clamp_min_default, n[i], k->args[3]));
    }
    k->out = CALL(k, aten_sum_dim_IntList, CALL(k, aten_mul_Tensor, n[0], n[1]), dims);
    return eager_ok(k->x);
}

// pairwise_distance(x1, x2, p, eps, keepdim)
bool kern_pairwise_distance(K *k) {
    Value d =
        CALL(k, aten_add_Scalar, CALL(k, aten_sub_Tensor, k->args[0], k->args[1]), k->args[3]);
    k->out = CALL(k, aten_linalg_vector_norm_default, d, k->args[2], list_value(k->x, INT(-1), END),
                  k->args[4]);
    return eager_ok(k->x);
}

// Sum over dims of a product, kept and rounded once; of integers too.
static Value summed_product(K *k, Value a, Value b, Value dims, DType d) {
    DType wide = dtype_is_low(d) ? DT_f32 : d;
    Value p = CALL(k, aten_mul_Tensor, CALL(k, aten_to_dtype, a, DTY(wide)),
                   CALL(k, aten_to_dtype, b, DTY(wide)));
    if (dims.n)
        p = CALL(k, aten_sum_dim_IntList, p, dims, BOOL(true), DTY(wide));
    return CALL(k, aten_to_dtype, p, DTY(d));
}

static Value dims_of(K *k, uint64_t mask) {
    int64_t dims[TENSOR_DIMS];
    int n = 0;
    for (int i = 0; i < TENSOR_DIMS; i++)
        if (mask >> i & 1)
            dims[n++] = i;
    return ints_value(k->x, dims, n);
}

// _trilinear(i1, i2, i3, expand1, expand2, expand3, sumdim, unroll_dim): the first two are
// multiplied and summed, then that and the third, a slice of the unrolled dimension at a time.
bool kern_trilinear(K *k) {
    Value v[3], meta;
    DType d = k->in[0]->dtype;
    MetaCtx m = eager_meta_ctx(k->x);
    if (!op_meta(&m, k->op, k->args, &meta))
        return false;
    int total_dims = k->in[0]->ndim + k->args[3].n;
    int64_t unroll = ki(k, 7, 1), slices = 1;
    uint64_t sum = 0, third = 0;
    if (total_dims > TENSOR_DIMS)
        return k_fail(k, "RuntimeError: _trilinear: %d dimensions, expected at most %d", total_dims,
                      TENSOR_DIMS);
    for (int i = 0; i < 3; i++) {
        v[i] = k->args[i];
        for (int j = 0; j < k->args[3 + i].n; j++)
            v[i] = CALL(k, aten_unsqueeze_default, v[i], k->args[3 + i].at[j]);
        if (!eager_ok(k->x))
            return false;
        slices = tensor_at(&v[i])->size[unroll] > 1 ? tensor_at(&v[i])->size[unroll] : slices;
    }
    for (int i = 0; i < k->args[6].n; i++)
        sum |= (uint64_t)1 << (k->args[6].at[i].i + total_dims) % total_dims;
    for (int i = 0; i < k->args[5].n; i++)
        third |= (uint64_t)1 << (k->args[5].at[i].i + total_dims) % total_dims;
    Value first = dims_of(k, sum & third), second = dims_of(k, sum & ~third), total = NONE;
    bool summed = sum >> unroll & 1;
    for (int64_t s = 0; s < (summed ? slices : 1) && eager_ok(k->x); s++) {
        Value part[3];
        for (int i = 0; i < 3; i++)
            part[i] = summed && tensor_at(&v[i])->size[unroll] > 1
                          ? CALL(k, aten_narrow_default, v[i], INT(unroll), INT(s), INT(1))
                          : v[i];
        Value p = summed_product(k, part[0], part[1], first, d);
        p = summed_product(k, p, part[2], second, d);
        total = s ? CALL(k, aten_add_Tensor, total, p) : p;
    }
    if (k->args[6].n)
        total = CALL(k, aten_squeeze_dims, total, k->args[6]);
    k->out = CALL(k, aten_contiguous_default, total);
    return eager_ok(k->x);
}

// embedding_bag(weight, indices, offsets, scale_grad, mode, sparse, per_sample_weights,
// include_last[, padding_idx])
bool kern_embedding_bag_call(K *k) {
    Value pad = k->op->n_args > 8 && k_given(k, 8) ? k->args[8] : INT(-1);
    k->out = CALL(k, aten__embedding_bag_default, k->args[0], k->args[1], k->args[2], k->args[3],
                  k->args[4], k->args[5], k->args[6], k->args[7], pad);
    return eager_ok(k->x);
}

// ldexp(self, other): floats by their exponents where those are integers; else by powers of two, of
// which infinite ones make NaN of zeros.
bool kern_ldexp(K *k) {
    const Tensor *x = k->in[0], *e = k->in[1];
    Value v = k->args[0], r;
    if (e && dtype_is_float(x->dtype) && is_int_like(e->dtype)) {
        if (e->dtype == DT_b8)
            return k_fail(k, "NotImplementedError: \"ldexp_cpu_exp\" not implemented for 'Bool'");
        v = CALL(k, aten_to_dtype, v, DTY(DT_f64));
        r = eager_ok(k->x) ? point_loop(k, "ldexp", v, k->args[1], 0) : NONE;
    } else {
        r = CALL(k, aten_mul_Tensor, v, CALL(k, aten_pow_Scalar, FLT(2), k->args[1]));
    }
    return r.kind == VAL_tensor && copy_into(k->x, k->res[0], tensor_at(&r));
}

// float_power: in float64
bool kern_float_power(K *k) {
    Value a = k->args[0], b = k->args[1];
    if (a.kind == VAL_tensor)
        a = CALL(k, aten_to_dtype, a, DTY(DT_f64));
    if (b.kind == VAL_tensor)
        b = CALL(k, aten_to_dtype, b, DTY(DT_f64));
    k->out = a.kind != VAL_tensor   ? CALL(k, aten_pow_Scalar, a, b)
             : b.kind != VAL_tensor ? CALL(k, aten_pow_Tensor_Scalar, a, b)
                                    : CALL(k, aten_pow_Tensor_Tensor, a, b);
    return eager_ok(k->x);
}

// nanmean(self, dim, keepdim, *, dtype)
bool kern_nanmean(K *k) {
    Value number = CALL(k, aten_logical_not_default, CALL(k, aten_isnan_default, k->args[0]));
    Value count = CALL(k, aten_sum_dim_IntList, number, k->args[1], k->args[2]);
    k->out =
        CALL(k, aten_div_Tensor,
             CALL(k, aten_nansum_default, k->args[0], k->args[1], k->args[2], k->args[3]), count);
    return eager_ok(k->x);
}

// cartesian_prod(tensors)
bool kern_cartesian_prod(K *k) {
    if (k->args[0].n == 1) {
        k->out = k->args[0].at[0];
        return true;
    }
    Value grids = CALL(k, aten_meshgrid_default, k->args[0]);
    for (int i = 0; i < grids.n && eager_ok(k->x); i++)
        grids.at[i] = CALL(k, aten_flatten_using_ints, grids.at[i]);
    k->out = CALL(k, aten_stack_default, grids, INT(1));
    return eager_ok(k->x);
}

// trapezoid.x(y, x, dim), trapezoid.dx(y, dx, dim)
bool kern_trapezoid(K *k) {
    const Tensor *y = k->in[0];
    int dim;
    if (!y->ndim || !k_dim(k, ki(k, 2, -1), y->ndim, &dim))
        return false;
    int64_t n = y->size[dim] > 0 ? y->size[dim] - 1 : 0;
    Value sum =
        CALL(k, aten_add_Tensor,
             CALL(k, aten_narrow_default, k->args[0], INT(dim), INT(y->size[dim] > 0), INT(n)),
             CALL(k, aten_narrow_default, k->args[0], INT(dim), INT(0), INT(n)));
    if (k->args[1].kind == VAL_tensor) {
        Value d =
            CALL(k, aten_diff_default, k->args[1], INT(1), INT(k->in[1]->ndim == 1 ? 0 : dim));
        int64_t shape[TENSOR_DIMS];
        for (int i = 0; i < y->ndim; i++)
            shape[i] = i == dim ? n : 1;
        sum = CALL(k, aten_mul_Tensor, sum,
                   k->in[1]->ndim == 1
                       ? CALL(k, aten_view_default, d, ints_value(k->x, shape, y->ndim))
                       : d);
    } else {
        sum = CALL(k, aten_mul_Scalar, sum, k->args[1]);
    }
    k->out = CALL(k, aten_div_Scalar,
                  CALL(k, aten_sum_dim_IntList, sum, list_value(k->x, INT(dim), END)), FLT(2));
    return eager_ok(k->x);
}

// triplet_margin_loss(anchor, positive, negative, margin, p, eps, swap, reduction)
bool kern_triplet_loss(K *k) {
    Value p = k->args[4], eps = k->args[5];
    Value near = CALL(k, aten_pairwise_distance_default, k->args[0], k->args[1], p, eps);
    Value far = CALL(k, aten_pairwise_distance_default, k->args[0], k->args[2], p, eps);
    if (kb(k, 6))
        far = CALL(k, aten_minimum_default, far,
                   CALL(k, aten_pairwise_distance_default, k->args[1], k->args[2], p, eps));
    Value v =
        CALL(k, aten_clamp_min_default,
             CALL(k, aten_add_Scalar, CALL(k, aten_sub_Tensor, near, far), k->args[3]), FLT(0));
    int64_t reduction = ki(k, 7, 1);
    k->out = reduction == 1   ? CALL(k, aten_mean_default, v)
             : reduction == 2 ? CALL(k, aten_sum_default, v)
                              : v;
    return eager_ok(k->x);
}

// prims.prepare_softmax_online(x, dim) -> maximum, sum of exponentials
bool kern_softmax_online(K *k) {
    Value dims = list_value(k->x, k->args[1], END);
    Value m = CALL(k, aten_amax_default, k->args[0], dims, BOOL(true));
    Value s =
        CALL(k, aten_sum_dim_IntList,
             CALL(k, aten_exp_default, CALL(k, aten_sub_Tensor, k->args[0], m)), dims, BOOL(true));
    return eager_ok(k->x) && copy_into(k->x, k->res[0], tensor_at(&m)) &&
           copy_into(k->x, k->res[1], tensor_at(&s));
}

// Every dimension but dim.
static Value other_dims(K *k, const Tensor *t, int64_t dim) {
    int64_t others[TENSOR_DIMS];
    int n = 0;
    for (int i = 0; i < t->ndim; i++)
        if (i != (dim < 0 ? dim + t->ndim : dim))
            others[n++] = i;
    return ints_value(k->x, others, n);
}

// _weight_norm(v, g, dim): v * (g / norm of v); the interface gives the norm, too
bool kern_weight_norm(K *k) {
    DType d = k->in[1] ? k->in[1]->dtype : DT_none; // norms of bfloat16 are kept in float32
    Value norm = CALL(k, aten_linalg_vector_norm_default, k->args[0], FLT(2),
                      other_dims(k, k->in[0], ki(k, 2, 0)), BOOL(true));
    if (k->op->n_returns == 2 && d == DT_bf16)
        norm = CALL(k, aten_linalg_vector_norm_default, k->args[0], FLT(2),
                    other_dims(k, k->in[0], ki(k, 2, 0)), BOOL(true), DTY(DT_f32));
    Value w = CALL(k, aten_mul_Tensor, k->args[0], CALL(k, aten_div_Tensor, k->args[1], norm));
    k->out = k->op->n_returns == 2 ? tuple_value(k->x, w, norm, END) : w;
    return eager_ok(k->x);
}

// (grad_w, v, g, norms, dim): with dot = sum(grad_w * v), v gets g / norm * (grad_w - v * dot /
// norm^2), g gets dot / norm.
bool kern_weight_norm_backward(K *k) {
    Value grad = k->args[0], v = k->args[1], norm = k->args[3];
    Value dot = CALL(k, aten_sum_dim_IntList, CALL(k, aten_mul_Tensor, grad, v),
                     other_dims(k, k->in[1], ki(k, 4, 0)), BOOL(true));
    Value dg = CALL(k, aten_div_Tensor, dot, norm);
    Value along =
        CALL(k, aten_mul_Tensor, v, CALL(k, aten_div_Tensor, dg, norm)); // what the norm takes back
    Value dv = CALL(k, aten_mul_Tensor, CALL(k, aten_div_Tensor, k->args[2], norm),
                    CALL(k, aten_sub_Tensor, grad, along));
    k->out = tuple_value(k->x, dv, dg, END);
    return eager_ok(k->x);
}

// _masked_softmax(self, mask, dim, mask_type): what the mask has gets no share. A mask of type 0 is
// one of (L, L), of type 1 one of (batch, L), for scores of (batch, heads, L, L).
bool kern_masked_softmax(K *k) {
    const Tensor *x = k->in[0], *m = k->in[1];
    Value mask = k->args[1];
    int64_t type = ki(k, 3, 2);
    if (type == 1 && x->ndim == 4 && m->ndim == 2)
        mask = CALL(k, aten_view_default, mask,
                    ints_value(k->x, (int64_t[]){m->size[0], 1, 1, m->size[1]}, 4));
    Value low = CALL(k, aten_masked_fill_Scalar, k->args[0], mask, FLT(-INFINITY));
    Value r = CALL(k, aten__softmax_default, low, INT(ki(k, 2, -1)), BOOL(false));
    return r.kind == VAL_tensor && copy_into(k->x, k->res[0], tensor_at(&r));
}

// (grad_output, output, mask, dim)
bool kern_masked_softmax_backward(K *k) {
    Value g = CALL(k, aten_masked_fill_Scalar, k->args[0], k->args[2], INT(0));
    Value y = CALL(k, aten_masked_fill_Scalar, k->args[1], k->args[2], INT(0));
    Value r = CALL(k, aten__softmax_backward_data_default, g, y, INT(ki(k, 3, -1)),
                   (Value){.kind = VAL_dtype, .dtype = k->in[0]->dtype});
    r = CALL(k, aten_masked_fill_Scalar, r, k->args[2], INT(0));
    return r.kind == VAL_tensor && copy_into(k->x, k->res[0], tensor_at(&r));
}

static Value axes(K *k, Value x, int64_t a, int64_t b, int64_t c) {
    return CALL(k, aten_permute_default, x, ints_value(k->x, (int64_t[]){a, b, c}, 3));
}

static Value one_int(K *k, int64_t v) {
    return ints_value(k->x, &v, 1);
}

// conv_tbc(self, weight, bias, pad): time, batch, channels; weights of (time, in, out)
bool kern_conv_tbc(K *k) {
    Value x = axes(k, k->args[0], 1, 2, 0), w = axes(k, k->args[1], 2, 1, 0);
    Value one = one_int(k, 1), none = one_int(k, 0);
    Value y = CALL(k, aten_convolution_default, x, w, k->args[2], one, one_int(k, ki(k, 3, 0)), one,
                   BOOL(false), none, INT(1));
    if (y.kind != VAL_tensor)
        return false;
    y = axes(k, y, 2, 0, 1);
    return y.kind == VAL_tensor && copy_into(k->x, k->res[0], tensor_at(&y));
}

// (grad_output, input, weight, bias, pad) -> of input, weight, bias
bool kern_conv_tbc_backward(K *k) {
    Value g = axes(k, k->args[0], 1, 2, 0), x = axes(k, k->args[1], 1, 2, 0);
    Value w = axes(k, k->args[2], 2, 1, 0), one = one_int(k, 1), none = one_int(k, 0);
    Value all = list_value(k->x, BOOL(true), BOOL(true), BOOL(true), END);
    Value r = CALL(k, aten_convolution_backward_default, g, x, w, one_int(k, k->in[2]->size[2]),
                   one, one_int(k, ki(k, 4, 0)), one, BOOL(false), none, INT(1), all);
    if (r.n != 3)
        return false;
    Value of[3] = {axes(k, r.at[0], 2, 0, 1), axes(k, r.at[1], 2, 1, 0), r.at[2]};
    for (int i = 0; i < 3; i++)
        if (of[i].kind != VAL_tensor || !copy_into(k->x, k->res[i], tensor_at(&of[i])))
            return false;
    return true;
}
