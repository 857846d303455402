// mask.c: what a mask chooses: its positions, the elements there, and writes to them in order.
#include "core/eager/iterate.h"

#include <string.h>

#include "core/eager/loops.h"

VECTORED static int64_t count_bytes(int64_t n, const uint8_t *on) {
    int64_t sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += on[i] != 0;
    return sum;
}

// Positions of the first `most` elements that are on, dimension d of position i at
// to[i * step[0] + d * step[1]]; their number.
static int64_t put_positions(const Tensor *mask, int64_t most, int64_t *to, const int64_t *step) {
    const uint8_t *on = tensor_data(mask);
    int last = mask->ndim - 1;
    int64_t index[TENSOR_DIMS] = {0}, row = 0, width = last < 0 ? 1 : mask->size[last];
    for (int64_t left = tensor_numel(mask); left > 0 && row < most; left -= width, on += width) {
        for (int64_t i = 0; i < width && row < most; i++) {
            if (!on[i])
                continue;
            int64_t *at = to + row++ * step[0];
            for (int d = 0; d < last; d++)
                at[d * step[1]] = index[d];
            if (last >= 0)
                at[last * step[1]] = i;
        }
        for (int d = last - 1; d >= 0 && ++index[d] == mask->size[d]; d--)
            index[d] = 0;
    }
    return row;
}

bool kern_nonzero(K *k) {
    const Tensor *in = k->in[0], *mask = eager_contiguous(k->x, in, DT_b8);
    bool is_static = strcmp(k->op->name, "nonzero_static") == 0;
    if (!mask)
        return false;
    int64_t n = count_bytes(tensor_numel(mask), tensor_data(mask));
    int64_t size[2] = {is_static ? ki(k, 1, 0) : n, in->ndim};
    if (size[0] < 0)
        return k_fail(k, "RuntimeError: nonzero_static: 'size' must be an non-negative integer");
    Tensor *out = eager_new(k->x, DT_i64, 2, size);
    if (!out)
        return false;
    // nonzero's own memory is column by column.
    if (!is_static) {
        out->stride[0] = 1;
        out->stride[1] = n;
        live_sync(k->x,
                  live_of(&(Value){.kind = VAL_tensor, .tensor = tensor_value(k->x, out).tensor}));
    }
    int64_t row = put_positions(mask, size[0], tensor_data(out), out->stride);
    for (; row < size[0]; row++)
        for (int d = 0; d < in->ndim; d++)
            put_i(out, row * out->stride[0] + d * out->stride[1], ki(k, 2, -1));
    k->out = tensor_value(k->x, out);
    return true;
}

// Both broadcast to one shape.
static bool broadcast_pair(K *k, Value *a, Value *b) {
    Value both = CALL(k, aten_broadcast_tensors_default, list_value(k->x, *a, *b, END));
    if (!eager_ok(k->x))
        return false;
    *a = both.at[0];
    *b = both.at[1];
    return true;
}

bool kern_masked_select(K *k) {
    Value a = k->args[0], b = k->args[1];
    if (!broadcast_pair(k, &a, &b))
        return false;
    const Tensor *both[2] = {tensor_at(&b), tensor_at(&a)};
    int64_t n = 0;
    WALK (w, walk_tensors(both, 1))
        n += get_i(both[0], w.at[0]) != 0;
    Tensor *out = eager_new(k->x, both[1]->dtype, 1, &n);
    if (!out)
        return false;
    n = 0;
    WALK (w, walk_tensors(both, 2))
        if (get_i(both[0], w.at[0]) != 0)
            move_elem(out, n++, both[1], w.at[1]);
    k->out = tensor_value(k->x, out);
    return true;
}

bool kern_masked_scatter(K *k) {
    const Tensor *src = k->in[2];
    Tensor *out = k->res[0];
    int64_t n = 0, have = tensor_numel(src);
    const Tensor *dense = eager_contiguous(k->x, src, src->dtype), *both[2] = {out, k->in[1]};
    if (!dense || !copy_into(k->x, out, k->in[0]))
        return false;
    if (src->dtype != out->dtype)
        return k_fail(k,
                      "RuntimeError: masked_scatter: expected self and source to have same dtypes");
    WALK (w, walk_tensors(both, 2)) {
        if (get_i(both[1], w.at[1]) == 0)
            continue;
        if (n >= have)
            return k_fail(k, "RuntimeError: Number of elements of source < number of ones in mask");
        move_elem(out, w.at[0], dense, n++);
    }
    return true;
}

// (grad_output, mask, sizes): the chosen gradients in order, then zeros
bool kern_masked_scatter_backward(K *k) {
    const Tensor *both[2] = {k->in[0], k->in[1]};
    Tensor *dense = eager_like(k->x, k->res[0], k->res[0]->dtype);
    int64_t n = 0, unused[TENSOR_DIMS];
    if (!dense)
        return false;
    if (!both[1] || !broadcast_strides(both[1], both[0]->ndim, both[0]->size, unused))
        return k_fail(k, "RuntimeError: masked_scatter_backward: mask of another shape");
    WALK (w, walk_tensors(both, 2)) {
        if (get_i(both[1], w.at[1]) == 0)
            continue;
        if (n >= tensor_numel(dense))
            return k_fail(k, "RuntimeError: the mask chooses more elements than the source has");
        move_elem(dense, n++, both[0], w.at[0]);
    }
    for (; n < tensor_numel(dense); n++)
        put_d(dense, n, 0);
    return copy_into(k->x, k->res[0], dense);
}
