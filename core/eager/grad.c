// grad.c: backward ops of activations and losses, written as loops or as calls of other kernels.
#include "core/eager/kernel.h"

#include <math.h>

static bool finish(K *k, int i, Value v) {
    return v.kind == VAL_tensor && copy_into(k->x, k->res[i], tensor_at(&v));
}

// (grad_output, self, weight) -> (of self, of weight)
bool kern_prelu_backward(K *k) {
    Value x = point_loop3(k, "prelu_backward", k->args[0], k->args[1], k->args[2], 0, 0);
    Value w = point_loop(k, "prelu_backward_w", k->args[0], k->args[1], 0);
    return finish(k, 0, x) && finish(k, 1, w);
}

// (grad_output, self, noise, lower, upper, training, self_is_result)
bool kern_rrelu_backward(K *k) {
    double low = kf(k, 3, 0), high = kf(k, 4, 0);
    bool noisy = kb(k, 5) && fabs(high - low) > 1e-6;
    return finish(k, 0,
                  noisy ? CALL(k, aten_mul_Tensor, k->args[0], k->args[2])
                        : CALL(k, aten_leaky_relu_backward_default, k->args[0], k->args[1],
                               FLT((low + high) / 2), k->args[6]));
}

// (grad_output, self, target, reduction)
bool kern_soft_margin_backward(K *k) {
    enum { MEAN = 1 };
    double n = (double)tensor_numel(k->in[1]), norm = ki(k, 3, MEAN) == MEAN ? 1 / n : 1;
    return finish(
        k, 0, point_loop3(k, "soft_margin_backward", k->args[0], k->args[1], k->args[2], norm, 0));
}

// Margins between classes: rows of c scores, gradients in float64 until the end.

typedef struct Margins {
    const Tensor *x, *target, *grad; // (rows, c), (rows) or (rows, c), (rows) or one
    double *out;                     // (rows, c)
    int64_t rows, c;
    double step; // of one violated margin: 1 / c, or 1 / (rows c) for the mean
} Margins;

static bool read_margins(K *k, int64_t reduction, Margins *o) {
    enum { MEAN = 1 };
    const Tensor *self = k->in[1];
    o->x = eager_contiguous(k->x, self, DT_f64);
    o->target = eager_contiguous(k->x, k->in[2], DT_i64);
    o->grad = eager_contiguous(k->x, k->in[0], DT_f64);
    o->c = self->ndim ? self->size[self->ndim - 1] : 1;
    if (!o->x || !o->target || !o->grad || !o->c)
        return k_fail(k, "RuntimeError: a margin loss needs scores of at least one class");
    o->rows = tensor_numel(o->x) / o->c;
    o->out = ARENA_ARRAY(k->x->arena, o->rows * o->c + 1, double);
    o->step = 1 / (double)(reduction == MEAN ? o->rows * o->c : o->c);
    bool one = tensor_numel(o->grad) == 1;
    return one || tensor_numel(o->grad) == o->rows ||
           k_fail(k, "RuntimeError: a margin loss has one gradient, or one a row");
}

static bool finish_margins(K *k, const Margins *o) {
    bool one = tensor_numel(o->grad) == 1;
    Tensor *dense = eager_like(k->x, k->res[0], k->res[0]->dtype);
    for (int64_t i = 0; dense && i < o->rows * o->c; i++)
        put_d(dense, i, o->out[i] * get_d(o->grad, one ? 0 : i / o->c));
    return dense && copy_into(k->x, k->res[0], dense);
}

// (grad_output, self, target, p, margin, weight, reduction)
bool kern_multi_margin_backward(K *k) {
    Margins o;
    int64_t p = ki(k, 3, 1);
    double margin = kf(k, 4, 1);
    if (!read_margins(k, ki(k, 6, 1), &o))
        return false;
    if (tensor_numel(o.target) != o.rows)
        return k_fail(k, "RuntimeError: multi_margin_loss: inconsistent target size");
    for (int64_t r = 0; r < o.rows; r++) {
        int64_t t = get_i(o.target, r);
        if (t < 0 || t >= o.c)
            return k_fail(k, "RuntimeError: target %lld is out of range", (long long)t);
        double *row = o.out + r * o.c, w = 1;
        if (k->in[5])
            w = get_d(k->in[5], t * (k->in[5]->ndim ? k->in[5]->stride[0] : 0));
        for (int64_t c = 0; c < o.c; c++) {
            double z = margin - get_d(o.x, r * o.c + t) + get_d(o.x, r * o.c + c);
            if (c == t || z <= 0)
                continue;
            row[c] = w * o.step * (p == 1 ? 1 : 2 * z);
            row[t] -= row[c];
        }
    }
    return finish_margins(k, &o);
}

// (grad_output, self, target, reduction, is_target): targets up to the first -1
bool kern_multilabel_margin_backward(K *k) {
    Margins o;
    if (!read_margins(k, ki(k, 3, 1), &o))
        return false;
    const Tensor *is = eager_contiguous(k->x, k->in[4], DT_f64);
    if (!is || tensor_numel(o.target) != o.rows * o.c || tensor_numel(is) != o.rows * o.c)
        return k_fail(k, "RuntimeError: inconsistent target size of multilabel_margin_loss");
    for (int64_t r = 0; r < o.rows; r++) {
        double *row = o.out + r * o.c;
        for (int64_t j = 0; j < o.c && get_i(o.target, r * o.c + j) >= 0; j++) {
            int64_t t = get_i(o.target, r * o.c + j);
            if (t >= o.c)
                return k_fail(k, "RuntimeError: target %lld is out of range", (long long)t);
            for (int64_t c = 0; c < o.c; c++) {
                double z = 1 - get_d(o.x, r * o.c + t) + get_d(o.x, r * o.c + c);
                if (get_d(is, r * o.c + c) != 0 || z <= 0)
                    continue;
                row[t] -= o.step;
                row[c] += o.step;
            }
        }
    }
    return finish_margins(k, &o);
}

// What formulas of derivatives are written with: zeros that get the gradient at some places.

// (grad, dim, indices, sizes, keepdim)
bool kern_value_selecting_backward(K *k) {
    Value grad = k->args[0], index = k->args[2];
    if (!kb(k, 4) && k->args[3].n) {
        grad = CALL(k, aten_unsqueeze_default, grad, k->args[1]);
        index = CALL(k, aten_unsqueeze_default, index, k->args[1]);
    }
    k->out = CALL(k, aten_scatter_src, CALL(k, aten_new_zeros_default, grad, k->args[3]),
                  k->args[1], index, grad);
    return eager_ok(k->x);
}

// (grad, self_sizes, dim, index)
bool kern_index_select_backward(K *k) {
    Value zeros = CALL(k, aten_new_zeros_default, k->args[0], k->args[1]);
    k->out = CALL(k, aten_index_add_default, zeros, k->args[2], k->args[3], k->args[0]);
    return eager_ok(k->x);
}

// gather_backward(grad, self, dim, index, sparse_grad),
// cummaxmin_backward(grad, input, indices, dim)
bool kern_gather_backward(K *k) {
    bool gather = k->op->id == OP_aten_gather_backward_default;
    const Value *dim = &k->args[gather ? 2 : 3], *index = &k->args[gather ? 3 : 2];
    Value zeros = CALL(k, aten_zeros_like_default, k->args[1]);
    k->out = CALL(k, aten_scatter_add_default, zeros, *dim, *index, k->args[0]);
    return eager_ok(k->x);
}

// (grad, input, mask)
bool kern_masked_select_backward(K *k) {
    Value zeros = CALL(k, aten_zeros_like_default, k->args[1]);
    zeros = CALL(k, aten_where_self, k->args[2], zeros, zeros); // of all together
    k->out = CALL(k, aten_masked_scatter_default, zeros, k->args[2], k->args[0]);
    return eager_ok(k->x);
}

// (grad, sizes): every so many elements. Where there are more rows than columns these go on behind
// the diagonal's end, as in PyTorch (issue 171704, open in 2.11).
bool kern_trace_backward(K *k) {
    k->out = CALL(k, aten_new_zeros_default, k->args[0], k->args[1]);
    Value flat = CALL(k, aten_view_default, k->out, list_value(k->x, INT(-1), END));
    if (k->args[1].n != 2 || flat.kind != VAL_tensor)
        return k_fail(k, "RuntimeError: expected matrix input");
    flat = CALL(k, aten_slice_Tensor, flat, INT(0), INT(0), NONE, INT(k->args[1].at[1].i + 1));
    CALL(k, aten_fill__Tensor, flat, k->args[0]);
    return eager_ok(k->x);
}

// (grad, indices, num_weights, padding_idx, scale_grad_by_freq, sparse)
bool kern_embedding_backward_any(K *k) {
    if (kb(k, 5))
        return k_fail(k, "NotImplementedError: sparse gradients");
    k->out = CALL(k, aten_embedding_dense_backward_default, k->args[0], k->args[1], k->args[2],
                  k->args[3], k->args[4]);
    return eager_ok(k->x);
}

// (grad, self)
bool kern_gelu_backward_again(K *k) {
    Value x = k->args[1];
    if (is_int_like(k->in[1]->dtype))
        x = CALL(k, aten_to_dtype, x, DTY(k->res[0]->dtype));
    return finish(k, 0, CALL(k, aten_gelu_backward_default, k->args[0], x));
}
