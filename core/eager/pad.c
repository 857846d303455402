// pad.c: padding: constant, by the edge, mirrored, wrapped; negative amounts cut.
#include "core/eager/iterate.h"

#include <string.h>

static void fill(K *k, Tensor *t, const Value *v) {
    Value number = number_tensor(k->x, v, t->dtype);
    if (number.kind == VAL_tensor)
        copy_into(k->x, t, tensor_at(&number));
}

bool kern_pad(K *k) {
    const Tensor *in = k->in[0];
    Tensor *out = k->res[0], w = *out, from = *in;
    int64_t pad[2 * TENSOR_DIMS];
    int n = kints(k, 1, pad, 2 * TENSOR_DIMS);
    if (n < 0 || n % 2 || n / 2 > in->ndim)
        return k_fail(k, "RuntimeError: Length of pad must be even and no more than twice the "
                         "number of dimensions");
    fill(k, out, &k->args[2]);
    for (int i = 0; i < n / 2; i++) {
        int d = in->ndim - 1 - i;
        int64_t lo = pad[2 * i], hi = pad[2 * i + 1];
        if (lo < 0)
            from = window_along(&from, d, -lo, from.size[d] + lo);
        if (hi < 0)
            from.size[d] += hi;
        if (from.size[d] < 0)
            return k_fail(k, "RuntimeError: a negative pad is larger than dimension %d", d);
        w = window_along(&w, d, lo > 0 ? lo : 0, from.size[d]);
    }
    return eager_ok(k->x) && copy_into(k->x, &w, &from);
}

// Wrapped within what negative padding leaves of the source.
static int64_t wrapped(int64_t i, int64_t n, const int64_t *pad) {
    int64_t from = pad[0] < 0 ? -pad[0] : 0, to = n + (pad[1] < 0 ? pad[1] : 0);
    return i < from ? i + to - from : i >= to ? i - (to - from) : i;
}

// The index of the source for position i of n: mirrored or clamped.
static int64_t edge_source(char mode, int64_t i, int64_t n) {
    if (mode == 'r') // reflection
        return i < 0 ? -i : i >= n ? 2 * (n - 1) - i : i;
    return i < 0 ? 0 : i >= n ? n - 1 : i;
}

static bool edge_pad(K *k, char mode, const int64_t *pad, int n) {
    const Tensor *in = k->in[0];
    Tensor *out = k->res[0];
    for (int i = 0; i < n / 2; i++) {
        int64_t size = in->size[in->ndim - 1 - i], most = mode == 'r'   ? size - 1
                                                          : mode == 'c' ? size
                                                                        : INT64_MAX;
        if (pad[2 * i] > most || pad[2 * i + 1] > most || size == 0)
            return k_fail(k,
                          "RuntimeError: Padding size should be less than the corresponding input "
                          "dimension, but got: "
                          "padding (%lld, %lld) at dimension %d",
                          (long long)pad[2 * i], (long long)pad[2 * i + 1], in->ndim - 1 - i);
    }
    if (!tensor_numel(out)) // another dimension may be of any size then
        return true;
    const int64_t *at[TENSOR_DIMS];
    for (int d = 0; d < in->ndim; d++) {
        int64_t *table = ARENA_ARRAY(k->x->arena, out->size[d] + 1, int64_t);
        int j = in->ndim - 1 - d;
        for (int64_t o = 0; o < out->size[d]; o++) {
            int64_t i = o - (j < n / 2 ? pad[2 * j] : 0);
            if (j < n / 2)
                i = mode == 'c' ? wrapped(i, in->size[d], pad + 2 * j)
                                : edge_source(mode, i, in->size[d]);
            table[o] = i * in->stride[d];
        }
        at[d] = table;
    }
    copy_mapped(k->x, out, in, at);
    return true;
}

bool kern_edge_pad(K *k) {
    int64_t pad[2 * TENSOR_DIMS];
    int n = kints(k, 1, pad, 2 * TENSOR_DIMS);
    if (n < 0 || n / 2 > k->in[0]->ndim)
        return k_fail(k, "RuntimeError: padding size is expected to be 2, 4 or 6");
    return edge_pad(k, str_starts(k->op->name, "reflection") ? 'r' : 'p', pad, n);
}

// Gradients of the padded elements are added up at their sources.
bool kern_edge_pad_backward(K *k) {
    const Tensor *g = k->in[0];
    int64_t pad[2 * TENSOR_DIMS];
    int n = kints(k, 2, pad, 2 * TENSOR_DIMS);
    char mode = str_starts(k->op->name, "reflection") ? 'r' : 'p';
    Tensor *acc = eager_like(k->x, k->res[0], DT_f64);
    if (!acc || n < 0 || n / 2 > g->ndim || g->ndim != acc->ndim)
        return k_fail(k, "RuntimeError: padding size is expected to be 2, 4 or 6");
    WALK (w, walk_tensors(&g, 1)) {
        int64_t at = 0;
        for (int d = 0; d < g->ndim; d++) {
            int j = g->ndim - 1 - d;
            int64_t i = w.index[d] - (j < n / 2 ? pad[2 * j] : 0);
            int64_t s = j < n / 2 ? edge_source(mode, i, acc->size[d]) : i;
            if (s < 0 || s >= acc->size[d])
                return k_fail(k, "RuntimeError: gradient of another size than the padded input");
            at += s * acc->stride[d];
        }
        put_d(acc, at, get_d(acc, at) + get_d(g, w.at[0]));
    }
    return copy_into(k->x, k->res[0], acc);
}

// aten.pad(self, pad, mode, value)
bool kern_pad_mode(K *k) {
    const char *mode = ks(k, 2, "constant");
    Value zero = val_float(0);
    int64_t pad[2 * TENSOR_DIMS];
    int n = kints(k, 1, pad, 2 * TENSOR_DIMS);
    if (strcmp(mode, "constant") == 0) {
        k->out = CALL(k, aten_constant_pad_nd_default, k->args[0], k->args[1],
                      k_given(k, 3) ? k->args[3] : zero);
        return eager_ok(k->x);
    }
    char m = strcmp(mode, "reflect") == 0 ? 'r' : strcmp(mode, "circular") == 0 ? 'c' : 'p';
    int64_t size[TENSOR_DIMS];
    if (n < 0 || n % 2 || n / 2 > k->in[0]->ndim)
        return k_fail(k, "RuntimeError: pad: %d numbers for %d dimensions", n, k->in[0]->ndim);
    memcpy(size, k->in[0]->size, sizeof size);
    for (int i = 0; i < n / 2; i++)
        size[k->in[0]->ndim - 1 - i] += pad[2 * i] + pad[2 * i + 1];
    Tensor *out = eager_new(k->x, k->in[0]->dtype, k->in[0]->ndim, size);
    if (!out)
        return false;
    k->out = tensor_value(k->x, out);
    k->res[0] = out;
    return edge_pad(k, m, pad, n);
}
