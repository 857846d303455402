// bags.c: the backward of embedding bags and of reductions by segments: each element's share of the
// gradient of what it was reduced to.
#include "core/eager/kernel.h"

#include <string.h>

// bags

// One bag an index; made of offsets where the fast path of the forward left the list out. NULL: an
// error.
static const Tensor *bag_of_index(K *k, const Tensor *given, const Tensor *offsets, int64_t n) {
    const Tensor *bags = eager_contiguous(k->x, given, DT_i64);
    if (!bags || tensor_numel(bags) == n)
        return bags;
    if (!offsets) {
        k_fail(k, "RuntimeError: embedding_bag: offset2bag has %lld elements, expected %lld",
               (long long)tensor_numel(bags), (long long)n);
        return NULL;
    }
    Tensor *made = eager_new(k->x, DT_i64, 1, &n);
    const Tensor *starts = eager_contiguous(k->x, offsets, DT_i64);
    if (!made || !starts)
        return NULL;
    int64_t bag = -1;
    for (int64_t i = 0; i < n; i++) {
        while (bag + 1 < tensor_numel(starts) && get_i(starts, bag + 1) <= i)
            bag++;
        put_i(made, i, bag);
    }
    return made;
}

typedef struct Bags {
    const Tensor *grad, *index, *bags, *sizes, *top, *psw; // psw: NULL without weights a sample
    Tensor *out;
    int64_t mode, pad;
    bool by_freq;
} Bags;

// Sums and means: every index adds to its row.
static bool bags_add(K *k, const Bags *b) {
    int64_t n = tensor_numel(b->index), rows = b->out->size[0], width = b->out->size[1];
    if (tensor_numel(b->out) == 0) // its rows may be absurdly many
        return n == 0 || k_fail(k, "RuntimeError: embedding_bag: there are no rows");
    int64_t *count = ARENA_ARRAY(k->x->arena, rows + 1, int64_t);
    for (int64_t j = 0; j < n; j++) {
        int64_t i = get_i(b->index, j);
        if (i < 0 || i >= rows || get_i(b->bags, j) < 0 || get_i(b->bags, j) >= b->grad->size[0])
            return k_fail(k, "RuntimeError: embedding_bag: index %lld is out of range",
                          (long long)i);
        count[i]++;
    }
    for (int64_t j = 0; j < n; j++) {
        int64_t i = get_i(b->index, j), bag = get_i(b->bags, j);
        if (i == b->pad)
            continue;
        double scale = b->psw ? get_d(b->psw, j * b->psw->stride[0]) : 1;
        if (b->by_freq)
            scale /= (double)count[i];
        if (b->mode == 1)
            scale /= (double)get_i(b->sizes, bag);
        for (int64_t c = 0; c < width; c++)
            put_d(b->out, i * width + c,
                  get_d(b->out, i * width + c) + scale * get_d(b->grad, bag * width + c));
    }
    return true;
}

// Maxima: each element goes to the row that it came from.
static bool bags_choose(K *k, const Bags *b) {
    int64_t width = b->out->size[1];
    for (int64_t bag = 0; bag < b->grad->size[0]; bag++)
        for (int64_t c = 0; c < width && get_i(b->sizes, bag); c++) {
            int64_t i = get_i(b->top, bag * width + c);
            if (i < 0 || i >= b->out->size[0])
                return k_fail(k, "RuntimeError: embedding_bag: index %lld is out of range",
                              (long long)i);
            put_d(b->out, i * width + c,
                  get_d(b->out, i * width + c) + get_d(b->grad, bag * width + c));
        }
    return true;
}

static bool bags_backward(K *k, int offsets, int from, int rest) {
    Tensor *out = k->res[0];
    const Tensor *grad = kt(k, 0), *index = kt(k, 1);
    Bags b = {.grad = eager_contiguous(k->x, grad, grad->dtype),
              .index = eager_contiguous(k->x, index, DT_i64),
              .sizes = eager_contiguous(k->x, kt(k, from + 1), DT_i64),
              .top = eager_contiguous(k->x, kt(k, from + 2), DT_i64),
              .psw = kt(k, rest + 1),
              .by_freq = kb(k, from + 4),
              .mode = ki(k, from + 5, 0),
              .pad = ki(k, rest + 2, -1)};
    if (!b.grad || !b.index || !b.sizes || !b.top)
        return false;
    b.bags =
        bag_of_index(k, kt(k, from), offsets < 0 ? NULL : kt(k, offsets), tensor_numel(b.index));
    b.out = eager_like(k->x, out, out->dtype);
    if (!b.bags || !b.out || grad->ndim != 2)
        return false;
    bool done = b.mode == 2 ? bags_choose(k, &b) : bags_add(k, &b);
    return done && copy_into(k->x, out, b.out);
}

// (grad, indices, offsets, offset2bag, bag_size, maximum_indices, num_weights, scale_grad_by_freq,
// mode, sparse, per_sample_weights, padding_idx)
bool kern_embedding_bag_backward(K *k) {
    if (kb(k, 9))
        return k_fail(k, "NotImplementedError: embedding_bag: sparse gradients are not modelled");
    return bags_backward(k, 2, 3, 9);
}

// The same without offsets and sparse.
bool kern_embedding_bag_dense_backward(K *k) {
    return bags_backward(k, -1, 2, 7);
}

// (grad, weight, indices, offsets, offset2bag, mode, padding_idx)
bool kern_embedding_bag_weights_backward(K *k) {
    const Tensor *grad = eager_contiguous(k->x, kt(k, 0), kt(k, 0)->dtype), *weight = kt(k, 1);
    const Tensor *index = eager_contiguous(k->x, kt(k, 2), DT_i64);
    if (!grad || !index || weight->ndim != 2)
        return false;
    int64_t n = tensor_numel(index), width = weight->size[1];
    const Tensor *bags = bag_of_index(k, kt(k, 4), kt(k, 3), n);
    for (int64_t j = 0; bags && j < n; j++) {
        int64_t i = get_i(index, j), bag = get_i(bags, j);
        double sum = 0;
        if (i < 0 || i >= weight->size[0] || bag < 0 || bag >= grad->size[0])
            return k_fail(k, "RuntimeError: embedding_bag: index %lld is out of range",
                          (long long)i);
        for (int64_t c = 0; c < width && i != ki(k, 6, -1); c++)
            sum += get_d(grad, bag * width + c) *
                   get_d(weight, i * weight->stride[0] + c * weight->stride[1]);
        put_d(k->res[0], j, sum);
    }
    return bags != NULL;
}

// segments

typedef struct Segment {
    const Tensor *grad, *output, *data;
    Tensor *out;
    int64_t at;      // of the gradient and the output
    int64_t first;   // of the data
    int64_t n, step; // elements, and the step between them
    double initial;  // of a product
} Segment;

static void segment_even(const Segment *s, double share) {
    for (int64_t j = 0; j < s->n; j++)
        put_d(s->out, s->first + j * s->step, share);
}

// Shared out evenly among all that are equal to the result, NaN included.
static void segment_extreme(const Segment *s) {
    double result = get_d(s->output, s->at), g = get_d(s->grad, s->at);
    int64_t hits = 0;
    for (int pass = 0; pass < 2; pass++)
        for (int64_t j = 0; j < s->n; j++) {
            int64_t at = s->first + j * s->step;
            double v = get_d(s->data, at);
            if (v == v && v != result)
                continue;
            hits += !pass;
            if (pass)
                put_d(s->out, at, g / (double)hits);
        }
}

// The product of the others, without a division where an element is zero or NaN.
static void segment_product(const Segment *s) {
    double g = get_d(s->grad, s->at), whole = g * get_d(s->output, s->at);
    for (int64_t j = 0; j < s->n; j++) {
        int64_t at = s->first + j * s->step;
        double v = get_d(s->data, at), others = s->initial;
        for (int64_t i = 0; i < s->n && (v == 0 || v != v); i++)
            if (i != j)
                others *= get_d(s->data, s->first + i * s->step);
        put_d(s->out, at, v == 0 || v != v ? g * others : whole / v);
    }
}

// (grad, output, data, reduce, lengths, offsets, axis, initial)
bool kern_segment_reduce_backward(K *k) {
    const Tensor *data = eager_contiguous(k->x, kt(k, 2), kt(k, 2)->dtype), *lengths = kt(k, 4);
    const Tensor *given = lengths ? lengths : kt(k, 5);
    const char *how = ks(k, 3, "");
    int axis = (int)ki(k, 6, 0);
    if (!data || !given || axis < 0 || axis >= data->ndim || given->ndim != axis + 1)
        return k_fail(k, "RuntimeError: segment_reduce(): lengths or offsets are missing or of "
                         "another shape");
    const Tensor *bounds = eager_contiguous(k->x, given, DT_i64);
    Segment s = {.grad = eager_contiguous(k->x, kt(k, 0), kt(k, 0)->dtype),
                 .output = eager_contiguous(k->x, kt(k, 1), kt(k, 1)->dtype),
                 .data = data,
                 .out = eager_like(k->x, data, data->dtype),
                 .initial = kf(k, 7, 1)};
    if (!bounds || !s.grad || !s.output || !s.out)
        return false;
    int64_t n = given->size[axis] - (lengths ? 0 : 1);
    Axis in = axis_of(data, axis);
    s.step = in.inner;
    for (int64_t o = 0; o < in.outer; o++)
        for (int64_t i = 0, from = 0; i < n; i++) {
            int64_t to =
                lengths ? from + get_i(bounds, o * n + i) : get_i(bounds, o * (n + 1) + i + 1);
            from = lengths ? from : get_i(bounds, o * (n + 1) + i);
            if (from < 0 || from > to || to > in.n)
                return k_fail(k,
                              "RuntimeError: segment_reduce(): a segment reaches out of the data");
            s.n = to - from;
            for (int64_t c = 0; c < in.inner; c++) {
                s.at = (o * n + i) * in.inner + c;
                s.first = (o * in.n + from) * in.inner + c;
                if (!strcmp(how, "max") || !strcmp(how, "min"))
                    segment_extreme(&s);
                else if (!strcmp(how, "prod"))
                    segment_product(&s);
                else
                    segment_even(&s, get_d(s.grad, s.at) /
                                         (strcmp(how, "mean") || !s.n ? 1 : (double)s.n));
            }
            from = to;
        }
    return copy_into(k->x, k->res[0], s.out);
}
