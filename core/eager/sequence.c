// sequence.c: sequences of different lengths put together and taken apart again, lists of tensors
// as one, tensors told to use other memory, and other small ops on shapes.
#include "core/eager/kernel.h"

#include <string.h>

static Value item(Value tuple, int i) {
    return (tuple.kind == VAL_tuple || tuple.kind == VAL_list) && i < tuple.n ? tuple.at[i] : NONE;
}

// pad_sequence(sequences, batch_first, padding_value, padding_side)
bool kern_pad_sequence(K *k) {
    const Value *list = &k->args[0];
    bool first = kb(k, 1), left = strcmp(ks(k, 3, "right"), "left") == 0;
    int64_t size[TENSOR_DIMS], most = 0;
    const Tensor *one = list->n ? tensor_at(&list->at[0]) : NULL;
    if (!one || one->ndim < 1 || one->ndim >= TENSOR_DIMS)
        return k_fail(k, "RuntimeError: pad_sequence: received an empty list of sequences");
    for (int i = 0; i < list->n; i++) {
        const Tensor *t = tensor_at(&list->at[i]);
        most = t && t->ndim && t->size[0] > most ? t->size[0] : most;
    }
    size[0] = first ? list->n : most;
    size[1] = first ? most : list->n;
    for (int d = 1; d < one->ndim; d++)
        size[d + 1] = one->size[d];
    Value out = CALL(k, aten_full_default, ints_value(k->x, size, one->ndim + 1), k->args[2],
                     DTY(one->dtype));
    for (int i = 0; i < list->n && eager_ok(k->x); i++) {
        int64_t len = tensor_at(&list->at[i])->size[0];
        Value row = CALL(k, aten_select_int, out, INT(!first), INT(i));
        row = CALL(k, aten_narrow_default, row, INT(0), INT(left ? most - len : 0), INT(len));
        CALL(k, aten_copy__default, row, list->at[i]);
    }
    k->out = out;
    return eager_ok(k->x);
}

// _pack_padded_sequence(input, lengths, batch_first): time steps of the sequences that have them
bool kern_pack_padded(K *k) {
    Value in = kb(k, 2) ? CALL(k, aten_transpose_int, k->args[0], INT(0), INT(1)) : k->args[0];
    const Tensor *t = tensor_at(&in), *len = k->in[1];
    if (!t || !len || t->ndim < 2 || len->ndim != 1 || len->size[0] != t->size[1])
        return k_fail(k, "RuntimeError: Expected `len(lengths)` to be equal to batch_size");
    int64_t n = len->size[0], last = n ? get_i(len, 0) : 0;
    for (int64_t i = 0; i < n; i++) {
        int64_t v = get_i(len, i * len->stride[0]);
        if (v <= 0 || v > last || v > t->size[0])
            return k_fail(k, v <= 0 ? "RuntimeError: Length of all samples has to be greater than "
                                      "0, but found an element in 'lengths' that is <= 0"
                                    : "RuntimeError: `lengths` array must be sorted in decreasing "
                                      "order and at most the padded length");
        last = v;
    }
    int64_t steps = n ? get_i(len, 0) : 0;
    Value parts = val_list(k->x->arena, VAL_list, (int)steps);
    Tensor *sizes = eager_new(k->x, DT_i64, 1, &steps);
    for (int64_t s = 0; s < steps && sizes; s++) {
        int64_t batch = 0;
        while (batch < n && get_i(len, batch * len->stride[0]) > s)
            batch++;
        put_i(sizes, s, batch);
        Value row = CALL(k, aten_select_int, in, INT(0), INT(s));
        parts.at[s] = CALL(k, aten_narrow_default, row, INT(0), INT(0), INT(batch));
    }
    if (!sizes || !eager_ok(k->x))
        return false;
    k->out = tuple_value(k->x, CALL(k, aten_cat_default, parts), tensor_value(k->x, sizes), END);
    return eager_ok(k->x);
}

// _pad_packed_sequence(data, batch_sizes, batch_first, padding_value, total_length)
bool kern_pad_packed(K *k) {
    const Tensor *data = k->in[0], *sizes = k->in[1];
    int64_t size[TENSOR_DIMS], steps = sizes && sizes->ndim == 1 ? sizes->size[0] : 0, at = 0;
    int64_t total = ki(k, 4, 0), batch = steps ? get_i(sizes, 0) : 0;
    if (!steps || data->ndim + 1 > TENSOR_DIMS || data->ndim < 1 || (total > 0 && total < steps))
        return k_fail(k, "RuntimeError: Expected total_length to be at least the length of the "
                         "longest sequence in input");
    size[0] = total > 0 ? total : steps;
    size[1] = batch;
    for (int d = 1; d < data->ndim; d++)
        size[d + 1] = data->size[d];
    Value out = CALL(k, aten_full_default, ints_value(k->x, size, data->ndim + 1), k->args[3],
                     DTY(data->dtype));
    Tensor *len = eager_new(k->x, DT_i64, 1, &batch);
    for (int64_t s = 0; s < steps && len && eager_ok(k->x); s++) {
        int64_t n = get_i(sizes, s * sizes->stride[0]);
        if (n < 0 || n > batch || at + n > data->size[0])
            return k_fail(k, "RuntimeError: _pad_packed_sequence: batch sizes that the data "
                             "does not have");
        Value row = CALL(k, aten_select_int, out, INT(0), INT(s));
        row = CALL(k, aten_narrow_default, row, INT(0), INT(0), INT(n));
        CALL(k, aten_copy__default, row,
             CALL(k, aten_narrow_default, k->args[0], INT(0), INT(at), INT(n)));
        at += n;
        for (int64_t i = 0; i < n; i++)
            put_i(len, i, s + 1);
    }
    if (!len || !eager_ok(k->x))
        return false;
    if (kb(k, 2))
        out = CALL(k, aten_transpose_int, out, INT(0), INT(1));
    k->out = tuple_value(k->x, out, tensor_value(k->x, len), END);
    return eager_ok(k->x);
}

bool kern_flatten_dense(K *k) {
    const Value *list = &k->args[0];
    Value flat = val_list(k->x->arena, VAL_list, list->n);
    for (int i = 0; i < list->n; i++)
        flat.at[i] = CALL(k, aten_view_default, CALL(k, aten_contiguous_default, list->at[i]),
                          list_value(k->x, INT(-1), END));
    k->out = CALL(k, aten_cat_default, flat);
    return eager_ok(k->x);
}

bool kern_unflatten_dense(K *k) {
    const Value *list = &k->args[1];
    int64_t at = 0;
    k->out = val_list(k->x->arena, VAL_list, list->n);
    for (int i = 0; i < list->n && eager_ok(k->x); i++) {
        const Tensor *t = tensor_at(&list->at[i]);
        int64_t n = tensor_numel(t);
        Value part = CALL(k, aten_narrow_default, k->args[0], INT(0), INT(at), INT(n));
        k->out.at[i] = CALL(k, aten_view_default, part, sizes_value(k->x, t));
        at += n;
    }
    return eager_ok(k->x);
}

// tensor_split(self, indices or sections as a tensor, dim)
bool kern_tensor_split(K *k) {
    const Tensor *t = k->in[1];
    if (!t || t->ndim > 1 || t->dtype != DT_i64)
        return k_fail(k, "RuntimeError: tensor_split expected tensor_indices_or_sections to be a "
                         "zero-dimensional or one-dimensional int64 tensor");
    if (t->ndim == 0) {
        k->out = CALL(k, aten_tensor_split_sections, k->args[0], INT(get_i(t, 0)), k->args[2]);
        return eager_ok(k->x);
    }
    int64_t n = t->size[0], *at = ARENA_ARRAY(k->x->arena, n + 1, int64_t);
    for (int64_t i = 0; i < n; i++)
        at[i] = get_i(t, i * t->stride[0]);
    k->out =
        CALL(k, aten_tensor_split_indices, k->args[0], ints_value(k->x, at, (int)n), k->args[2]);
    return eager_ok(k->x);
}

// narrow(self, dim, start as a tensor, length)
bool kern_narrow_from(K *k) {
    const Tensor *t = k->in[2];
    if (!t || t->ndim != 0 || !is_int_like(t->dtype) || t->dtype == DT_b8)
        return k_fail(k, "RuntimeError: start must be an 0-dim integral Tensor.");
    k->out = CALL(k, aten_narrow_default, k->args[0], k->args[1], INT(get_i(t, 0)), k->args[3]);
    return eager_ok(k->x);
}

bool kern_nonzero_numpy(K *k) {
    Value v = k->args[0];
    if (k->in[0]->ndim == 0)
        v = CALL(k, aten_unsqueeze_default, v, INT(0));
    k->out = CALL(k, aten_unbind_int, CALL(k, aten_nonzero_default, v), INT(1));
    return eager_ok(k->x);
}

bool kern_dim_arange(K *k) {
    int d;
    if (!k_dim(k, ki(k, 1, 0), k->in[0]->ndim, &d))
        return false;
    k->out = CALL(k, aten_arange_default, INT(k->in[0]->ndim ? k->in[0]->size[d] : 1));
    return eager_ok(k->x);
}

bool kern_shape_as_tensor(K *k) {
    for (int i = 0; i < k->in[0]->ndim; i++)
        put_i(k->res[0], i, k->in[0]->size[i]);
    return true;
}

// can_cast(from, to): not from complex to real, from float to integer, from numbers to truth
bool kern_can_cast(K *k) {
    DType from = kd(k, 0, DT_none), to = kd(k, 1, DT_none);
    bool complex = dtype_info[from].cls == DTC_COMPLEX && dtype_info[to].cls != DTC_COMPLEX;
    k->out = BOOL(!complex && !(dtype_is_float(from) && is_int_like(to)) &&
                  (from == DT_b8 || to != DT_b8));
    return true;
}

// _autocast_to_reduced_precision(self, cuda_enabled, cpu_enabled, cuda_dtype, cpu_dtype) and back
bool kern_autocast_to(K *k) {
    bool full = strcmp(k->op->name, "_autocast_to_full_precision") == 0, on = kb(k, 2);
    DType have = k->in[0]->dtype, want = full ? DT_f32 : kd(k, full ? 0 : 4, DT_bf16);
    bool casts = on && (full ? dtype_is_low(have) : have == DT_f32);
    k->out = casts ? CALL(k, aten_to_dtype, k->args[0], DTY(want)) : k->args[0];
    return eager_ok(k->x);
}

bool kern_fill_diagonal_(K *k) {
    Tensor *t = k->in[0];
    int64_t least = t->ndim ? t->size[0] : 0, step = 0;
    bool equal = true;
    for (int i = 0; i < t->ndim; i++) {
        least = t->size[i] < least ? t->size[i] : least;
        equal = equal && t->size[i] == t->size[0];
        step += t->stride[i];
    }
    if (t->ndim < 2 || (t->ndim > 2 && !equal))
        return k_fail(k, t->ndim < 2 ? "RuntimeError: dimensions must larger than 1"
                                     : "RuntimeError: all dimensions of input must be of equal "
                                       "length");
    Tensor diagonal = *t;
    int64_t rows = t->size[0], wide = t->size[1];
    diagonal.ndim = 1;
    diagonal.size[0] = least;
    diagonal.stride[0] = step;
    k->out = k->args[0];
    CALL(k, aten_fill__Scalar, eager_view(k->x, &diagonal), k->args[1]);
    for (int64_t r = wide + 1; kb(k, 2) && t->ndim == 2 && rows > wide + 1 && r < rows;
         r += wide + 1) {
        Tensor more = *t;
        more.ndim = 1;
        more.offset += r * t->stride[0];
        more.size[0] = rows - r < wide ? rows - r : wide;
        more.stride[0] = step;
        CALL(k, aten_fill__Scalar, eager_view(k->x, &more), k->args[1]);
    }
    return eager_ok(k->x);
}

// set_(self), set_(self, source), set_(self, source, storage_offset, size, stride)
bool kern_set_(K *k) {
    Live *self = live_of(&k->args[0]);
    int64_t none = 0;
    Tensor t, *from = k->op->n_args > 1 ? k->in[1] : NULL;
    if (k->op->n_args == 1) {
        if (!tensor_new(&t, self->t.dtype, 1, &none, k->x->c->diag))
            return false;
    } else {
        if (!from || from->dtype != self->t.dtype)
            return k_fail(k, "RuntimeError: Could not set tensor of type %s to a tensor of type %s",
                          from ? dtype_info[from->dtype].torch_name : "None",
                          dtype_info[self->t.dtype].torch_name);
        t = tensor_keep(from);
        if (k->op->n_args > 2) {
            int n = kints(k, 3, t.size, TENSOR_DIMS), m = kints(k, 4, t.stride, TENSOR_DIMS);
            t.ndim = n < 0 ? 0 : n;
            t.offset = ki(k, 2, 0);
            if (n >= 0 && m == 0)
                contiguous_strides(n, t.size, t.stride);
            if (n < 0 || (m != 0 && m != n) || t.offset < 0 || !tensor_in_bounds(&t)) {
                tensor_drop(&t);
                return k_fail(k, "RuntimeError: set_: sizes, strides and offset reach out of the "
                                 "source's storage");
            }
        }
    }
    tensor_drop(&self->t);
    self->t = t;
    live_sync(k->x, self);
    k->out = k->args[0];
    return true;
}

bool kern_resize_output_(K *k) {
    k->out = CALL(k, aten_resize__default, k->args[0], k->args[1]);
    return eager_ok(k->x);
}

// rrelu(self, lower, upper, training), rrelu_
bool kern_rrelu(K *k) {
    Value noise = CALL(k, aten_empty_like_default, k->args[0]);
    k->out = strcmp(k->op->name, "rrelu_") == 0
                 ? CALL(k, aten_rrelu_with_noise__default, k->args[0], noise, k->args[1],
                        k->args[2], k->args[3])
                 : CALL(k, aten_rrelu_with_noise_default, k->args[0], noise, k->args[1], k->args[2],
                        k->args[3]);
    return eager_ok(k->x);
}

// polygamma_(self, n): what it writes is the second argument of polygamma.
bool kern_polygamma_(K *k) {
    Value r = CALL(k, aten_polygamma_default, k->args[1], k->args[0]);
    k->out = k->args[0];
    return r.kind == VAL_tensor && refuse_store(k, &r, k->in[0]) &&
           copy_into(k->x, tensor_at(&k->args[0]), tensor_at(&r));
}

bool kern_ldexp_(K *k) {
    k->out = CALL(k, aten_mul__Tensor, k->args[0], CALL(k, aten_pow_Scalar, FLT(2), k->args[1]));
    return eager_ok(k->x);
}

// prims.collapse_view(a, start, end), prims.collapse: dimensions start … end as one
bool kern_collapse(K *k) {
    int64_t start = ki(k, 1, 0), end = ki(k, 2, 0), size[TENSOR_DIMS];
    const Tensor *t = k->in[0];
    bool view = strcmp(k->op->name, "collapse_view") == 0;
    int n = 0;
    if (t->ndim == 0) {
        size[n++] = 1;
    } else if (start < 0 || end < start || end >= t->ndim)
        return k_fail(k,
                      "ValueError: Attempting to collapse but the start and end dimensions are "
                      "none: %lld and %lld of %d",
                      (long long)start, (long long)end, t->ndim);
    for (int i = 0; i < t->ndim; i++)
        if (i <= start || i > end)
            size[n++] = t->size[i];
        else
            size[n - 1] *= t->size[i];
    Value v = view ? k->args[0]
                   : CALL(k, aten_clone_default, k->args[0],
                          (Value){.kind = VAL_memory_format, .mf = MF_contiguous});
    k->out = view ? CALL(k, aten_view_default, v, ints_value(k->x, size, n))
                  : CALL(k, aten_reshape_default, v, ints_value(k->x, size, n));
    return eager_ok(k->x);
}

// prims.slice(a, start_indices, limit_indices, strides), prims.slice_in_dim(a, start, limit,
// stride, axis)
bool kern_prims_slice(K *k) {
    int64_t from[TENSOR_DIMS], to[TENSOR_DIMS], by[TENSOR_DIMS];
    Value v = k->args[0];
    if (strcmp(k->op->name, "slice_in_dim") == 0) {
        k->out = CALL(k, aten_slice_Tensor, v, k->args[4], k->args[1], k->args[2], k->args[3]);
        return eager_ok(k->x);
    }
    int n = kints(k, 1, from, TENSOR_DIMS), m = kints(k, 2, to, TENSOR_DIMS);
    bool steps = k_given(k, 3) && kints(k, 3, by, TENSOR_DIMS) == n;
    if (n != k->in[0]->ndim || m != n || (k_given(k, 3) && !steps))
        return k_fail(k, "ValueError: prims.slice: an index for each of %d dimensions is needed",
                      k->in[0]->ndim);
    for (int i = 0; i < n; i++)
        v = CALL(k, aten_slice_Tensor, v, INT(i), INT(from[i]), INT(to[i]), INT(steps ? by[i] : 1));
    k->out = n ? v : CALL(k, aten_alias_default, v);
    return eager_ok(k->x);
}

// prims.split_dim(a, dim, outer_length)
bool kern_split_dim(K *k) {
    int64_t dim = ki(k, 1, 0), outer = ki(k, 2, 1), size[TENSOR_DIMS + 1];
    const Tensor *t = k->in[0];
    if (dim < 0 || dim >= t->ndim || outer <= 0 || t->size[dim] % outer ||
        t->ndim + 1 > TENSOR_DIMS)
        return k_fail(k,
                      "ValueError: prims.split_dim: outer_length %lld does not part the "
                      "dimension %lld",
                      (long long)outer, (long long)dim);
    for (int i = 0; i < t->ndim; i++)
        size[i + (i > dim)] = t->size[i];
    size[dim] = outer;
    size[dim + 1] = t->size[dim] / outer;
    k->out = CALL(k, aten_view_default, k->args[0], ints_value(k->x, size, t->ndim + 1));
    return eager_ok(k->x);
}

bool kern_prims_as_strided(K *k) {
    k->out = CALL(k, aten_as_strided_default, k->args[0], k->args[1], k->args[2], k->args[3]);
    return eager_ok(k->x);
}

bool kern_prims_resize(K *k) {
    k->out = CALL(k, aten_resize__default, k->args[0], k->args[1]);
    return eager_ok(k->x);
}

bool kern_prims_index_put_(K *k) {
    k->out = CALL(k, aten_index_put__default, k->args[0], k->args[1], k->args[2], k->args[3]);
    return eager_ok(k->x);
}

// prims.xor_sum(inp, dims, *, output_dtype)
bool kern_xor_sum(K *k) {
    uint64_t mask;
    const Tensor *in = k->in[0], *both[2];
    if (!is_int_like(in->dtype) || !k_mask(k, 1, in->ndim, &mask))
        return k_fail(k, "RuntimeError: prims.xor_sum: integers expected");
    Tensor out = *k->res[0]; // spread over the input's dimensions
    for (int i = 0, at = 0; i < in->ndim; i++) {
        out.size[i] = in->size[i];
        out.stride[i] = mask >> i & 1 ? 0 : k->res[0]->stride[at++];
    }
    out.ndim = in->ndim;
    both[0] = in;
    both[1] = &out;
    WALK (w, walk_tensors(both, 2))
        put_i(&out, w.at[1], get_i(&out, w.at[1]) ^ get_i(in, w.at[0]));
    return true;
}

// slice_inverse(self, src, dim, start, end, step): src's memory with self's sizes and strides
bool kern_slice_inverse(K *k) {
    const Tensor *t = k->in[0];
    k->out = CALL(k, aten_as_strided_default, k->args[1], sizes_value(k->x, t),
                  ints_value(k->x, t->stride, t->ndim), INT(t->offset));
    return eager_ok(k->x);
}

// affine_grid_generator_backward(grad, size, align_corners): the grid's base times the gradient
bool kern_affine_grid_backward(K *k) {
    int64_t size[TENSOR_DIMS];
    int n = kints(k, 1, size, TENSOR_DIMS), space = n - 2;
    if (n != 4 && n != 5)
        return k_fail(k, "RuntimeError: AffineGridGenerator needs 4d (spatial) or 5d (volumetric) "
                         "inputs");
    int64_t places = 1, theta[3] = {size[0], space, space + 1};
    for (int i = 2; i < n; i++)
        places *= size[i];
    // The identity's grid gives the base coordinates.
    Value eye = CALL(k, aten_eye_m, INT(space), INT(space + 1), DTY(k->in[0]->dtype));
    eye = CALL(k, aten_expand_default, CALL(k, aten_unsqueeze_default, eye, INT(0)),
               ints_value(k->x, theta, 3));
    Value base = CALL(k, aten_affine_grid_generator_default, eye, k->args[1], k->args[2]);
    Value flat = list_value(k->x, INT(size[0]), INT(places), INT(space), END);
    base = CALL(k, aten_reshape_default, base, flat);
    Value one = list_value(k->x, INT(size[0]), INT(places), INT(1), END);
    one = CALL(k, aten_full_default, one, INT(1), DTY(k->in[0]->dtype));
    base = CALL(k, aten_cat_default, list_value(k->x, base, one, END), INT(2));
    Value g = CALL(k, aten_reshape_default, k->args[0], flat);
    g = CALL(k, aten_bmm_default, CALL(k, aten_transpose_int, base, INT(1), INT(2)), g);
    k->out = CALL(k, aten_transpose_int, g, INT(1), INT(2));
    return eager_ok(k->x);
}

// _unique(self, sorted, return_inverse)
bool kern_unique_pair(K *k) {
    Value all = CALL(k, aten__unique2_default, k->args[0], k->args[1], k->args[2]);
    k->out = tuple_value(k->x, item(all, 0), item(all, 1), END);
    return eager_ok(k->x);
}

bool kern_aminmax_old(K *k) {
    k->out = k->op->n_args == 1 ? CALL(k, aten_aminmax_default, k->args[0])
                                : CALL(k, aten_aminmax_default, k->args[0], k->args[1], k->args[2]);
    return eager_ok(k->x);
}

bool kern_reshape_copy(K *k) {
    Value v = CALL(k, aten_reshape_default, k->args[0], k->args[1]);
    const Tensor *t = tensor_at(&v);
    return t && copy_into(k->x, k->res[0], t);
}
