// distance.c: distances between rows, cross products, and renormalised rows.
#include "core/eager/kernel.h"

#include <math.h>
#include <string.h>

static double distance(const double *a, const double *b, int64_t n, double p) {
    double sum = 0;
    for (int64_t i = 0; i < n; i++) {
        double d = fabs(a[i] - b[i]);
        sum = p == 0     ? sum + (d != d ? d : d != 0)
              : p == 1   ? sum + d
              : p == 2   ? sum + d * d
              : isinf(p) ? (d > sum || d != d ? d : sum)
                         : sum + pow(d, p);
    }
    return p == 2 ? sqrt(sum) : p == 0 || p == 1 || isinf(p) ? sum : pow(sum, 1 / p);
}

// The root of x1² - 2 x1 x2 + x2², as one product of matrices.
static Value by_product(K *k, Value x1, Value x2) {
    Value axes[2] = {x1, x2}, norm[2], one[2], last = INT(-1);
    int64_t columns[1] = {-1};
    for (int i = 0; i < 2; i++) {
        norm[i] = CALL(k, aten_sum_dim_IntList, CALL(k, aten_pow_Tensor_Scalar, axes[i], INT(2)),
                       ints_value(k->x, columns, 1), BOOL(true));
        one[i] = CALL(k, aten_ones_like_default, norm[i]);
    }
    Value left = CALL(k, aten_cat_default,
                      list_value(k->x, CALL(k, aten_mul_Scalar, x1, INT(-2)), norm[0], one[0], END),
                      last),
          right = CALL(k, aten_cat_default, list_value(k->x, x2, one[1], norm[1], END), last);
    Value square =
        CALL(k, aten_matmul_default, left, CALL(k, aten_transpose_int, right, INT(-2), INT(-1)));
    return CALL(k, aten_sqrt_default, CALL(k, aten_clamp_min_default, square, INT(0)));
}

// _cdist_forward(x1, x2, p, compute_mode)
bool kern_cdist(K *k) {
    const Tensor *out = k->res[0], *x1 = k->in[0], *x2 = k->in[1];
    int64_t s1[TENSOR_DIMS], s2[TENSOR_DIMS];
    int n = out->ndim;
    if (!x2 || n < 2 || x1->ndim < 2 || x2->ndim < 2 ||
        x1->size[x1->ndim - 1] != x2->size[x2->ndim - 1])
        return k_fail(k, "RuntimeError: X1 and X2 must have the same number of columns");
    if (dtype_is_low(x1->dtype) && tensor_numel(out)) { // only reached where this is its way
        Value v = by_product(k, k->args[0], k->args[1]);
        return v.kind == VAL_tensor && copy_into(k->x, k->res[0], tensor_at(&v));
    }
    memcpy(s1, out->size, sizeof s1);
    memcpy(s2, out->size, sizeof s2);
    int64_t width = s1[n - 1] = x1->size[x1->ndim - 1];
    s2[n - 2] = out->size[n - 1];
    s2[n - 1] = width;
    Value a = CALL(k, aten_expand_default, k->args[0], ints_value(k->x, s1, n)),
          b = CALL(k, aten_expand_default, k->args[1], ints_value(k->x, s2, n));
    if (!eager_ok(k->x))
        return false;
    const Tensor *p = eager_contiguous(k->x, tensor_at(&a), DT_f64),
                 *q = eager_contiguous(k->x, tensor_at(&b), DT_f64);
    Tensor *y = dense_res(k, 0, out->dtype);
    if (!p || !q || !y)
        return false;
    int64_t rows = out->size[n - 2], columns = out->size[n - 1];
    for (int64_t i = 0, total = tensor_numel(out); i < total; i++) {
        int64_t batch = i / columns / rows, r = i / columns % rows, c = i % columns;
        put_d(y, i,
              distance((double *)tensor_data(p) + (batch * rows + r) * width,
                       (double *)tensor_data(q) + (batch * columns + c) * width, width,
                       kf(k, 2, 2)));
    }
    return dense_done(k, 0, y);
}

bool kern_euclidean_dist(K *k) {
    bool low = dtype_is_low(k->in[0]->dtype);
    k->out = low ? by_product(k, k->args[0], k->args[1])
                 : CALL(k, aten__cdist_forward_default, k->args[0], k->args[1], FLT(2), NONE);
    return eager_ok(k->x);
}

// _pdist_forward(self, p): of each pair of rows
bool kern_pdist(K *k) {
    const Tensor *x = eager_contiguous(k->x, k->in[0], DT_f64);
    int64_t at = 0;
    if (!x || x->ndim != 2)
        return k_fail(k, "RuntimeError: pdist only supports 2D tensors, got: %dD", k->in[0]->ndim);
    const double *v = tensor_data(x);
    for (int64_t i = 0; i < x->size[0]; i++)
        for (int64_t j = i + 1; j < x->size[0]; j++)
            put_d(k->res[0], at++,
                  distance(v + i * x->size[1], v + j * x->size[1], x->size[1], kf(k, 1, 2)));
    return true;
}

// How the distance of two rows grows with the difference d of one of their elements.
static double slope(double d, double dist, double p) {
    double size = fabs(d), sign = d > 0 ? 1 : d < 0 ? -1 : 0;
    if (p == 0 || dist == 0)
        return 0;
    if (p == 1)
        return sign;
    if (isinf(p))
        return size == dist ? sign : 0;
    if (p == 2)
        return d / dist;
    return p < 1 && d == 0 ? 0 : sign * pow(size, p - 1) / pow(dist, p - 1);
}

// _cdist_backward(grad, x1, x2, p, cdist): the gradient of x1
bool kern_cdist_backward(K *k) {
    Tensor *out = k->res[0];
    int n = out->ndim;
    const Tensor *x2 = k->in[2], *grad = eager_contiguous(k->x, k->in[0], DT_f64),
                 *dist = eager_contiguous(k->x, k->in[4], DT_f64);
    int64_t size[TENSOR_DIMS];
    memcpy(size, out->size, sizeof size);
    Value a = CALL(k, aten_expand_default, k->args[1], ints_value(k->x, size, n));
    size[n - 2] = x2->size[x2->ndim - 2];
    Value b = CALL(k, aten_expand_default, k->args[2], ints_value(k->x, size, n));
    if (!eager_ok(k->x))
        return false;
    const Tensor *p = eager_contiguous(k->x, tensor_at(&a), DT_f64),
                 *q = eager_contiguous(k->x, tensor_at(&b), DT_f64);
    Tensor *y = eager_like(k->x, out, DT_f64);
    int64_t rows = out->size[n - 2], columns = size[n - 2], width = out->size[n - 1];
    if (!p || !q || !y || !grad || !dist || tensor_numel(grad) != tensor_numel(dist) ||
        tensor_numel(grad) * width != tensor_numel(y) * columns)
        return k_fail(k, "RuntimeError: _cdist_backward: gradient and distances of different size");
    const double *g = tensor_data(grad), *d = tensor_data(dist);
    for (int64_t i = 0, pairs = tensor_numel(grad); i < pairs; i++) {
        int64_t batch = i / columns / rows, r = i / columns % rows, c = i % columns;
        const double *from = (double *)tensor_data(p) + (batch * rows + r) * width,
                     *to = (double *)tensor_data(q) + (batch * columns + c) * width;
        double *sum = (double *)tensor_data(y) + (batch * rows + r) * width;
        for (int64_t j = 0; j < width; j++)
            sum[j] += g[i] * slope(from[j] - to[j], d[i], kf(k, 3, 2));
    }
    return copy_into(k->x, out, y);
}

// _pdist_backward(grad, self, p, pdist)
bool kern_pdist_backward(K *k) {
    const Tensor *grad = eager_contiguous(k->x, k->in[0], DT_f64),
                 *x = eager_contiguous(k->x, k->in[1], DT_f64),
                 *dist = eager_contiguous(k->x, k->in[3], DT_f64);
    Tensor *y = eager_like(k->x, k->res[0], DT_f64);
    if (!grad || !x || !dist || !y || x->ndim != 2 ||
        tensor_numel(grad) != x->size[0] * (x->size[0] - 1) / 2 ||
        tensor_numel(dist) != tensor_numel(grad))
        return k_fail(k, "RuntimeError: _pdist_backward: a gradient for each pair is needed");
    const double *v = tensor_data(x), *g = tensor_data(grad), *d = tensor_data(dist);
    double *sum = tensor_data(y);
    int64_t width = x->size[1], at = 0;
    for (int64_t i = 0; i < x->size[0]; i++)
        for (int64_t j = i + 1; j < x->size[0]; j++, at++)
            for (int64_t c = 0; c < width; c++) {
                double s = g[at] * slope(v[i * width + c] - v[j * width + c], d[at], kf(k, 2, 2));
                sum[i * width + c] += s;
                sum[j * width + c] -= s;
            }
    return copy_into(k->x, k->res[0], y);
}

// linalg_cross(self, other, *, dim)
bool kern_cross(K *k) {
    Value both =
        CALL(k, aten_broadcast_tensors_default, list_value(k->x, k->args[0], k->args[1], END));
    int dim = -1;
    if (!eager_ok(k->x))
        return false;
    const Tensor *a = tensor_at(&both.at[0]), *b = tensor_at(&both.at[1]), *out = k->res[0];
    if (k_given(k, 2) && !k_dim(k, ki(k, 2, -1), a->ndim, &dim))
        return false;
    for (int d = 0; dim < 0 && d < a->ndim; d++)
        dim = a->size[d] == 3 ? d : -1;
    if (dim < 0 || !a->ndim || a->size[dim] != 3 || b->size[dim] != 3 || out->ndim != a->ndim)
        return k_fail(k, "RuntimeError: linalg.cross: inputs dimension %d must have length 3.",
                      dim);
    const int64_t *strides[3] = {out->stride, a->stride, b->stride};
    int64_t size[TENSOR_DIMS], so = out->stride[dim], sa = a->stride[dim], sb = b->stride[dim];
    memcpy(size, a->size, sizeof size);
    size[dim] = 1;
    WALK (w, walk_dims(a->ndim, size, strides, 3))
        for (int i = 0; i < 3; i++) {
            int64_t u = (i + 1) % 3, v = (i + 2) % 3;
            if (is_int_like(out->dtype)) {
                uint64_t x =
                    (uint64_t)get_i(a, w.at[1] + u * sa) * (uint64_t)get_i(b, w.at[2] + v * sb);
                put_i(out, w.at[0] + i * so,
                      (int64_t)(x - (uint64_t)get_i(a, w.at[1] + v * sa) *
                                        (uint64_t)get_i(b, w.at[2] + u * sb)));
            } else {
                double x = get_d(a, w.at[1] + u * sa) * get_d(b, w.at[2] + v * sb),
                       y = get_d(a, w.at[1] + v * sa) * get_d(b, w.at[2] + u * sb);
                DType d = out->dtype;
                put_d(out, w.at[0] + i * so,
                      dtype_is_low(d) ? round_to(d, x) - round_to(d, y) : x - y);
            }
        }
    return true;
}

// renorm(self, p, dim, maxnorm): slices along dim whose norm is larger are scaled down
bool kern_renorm(K *k) {
    const Tensor *x = k->in[0];
    int dim;
    if (x->ndim < 2 || !k_dim(k, ki(k, 2, 0), x->ndim, &dim))
        return k_fail(k, "RuntimeError: renorm: input needs at least 2 dimensions, got %d",
                      x->ndim);
    int64_t others[TENSOR_DIMS];
    int n = 0;
    for (int i = 0; i < x->ndim; i++)
        if (i != dim)
            others[n++] = i;
    Value wide = dtype_is_low(x->dtype) ? CALL(k, aten__to_copy_default, k->args[0], DTY(DT_f32))
                                        : k->args[0];
    Value norm = CALL(k, aten_linalg_vector_norm_default, wide, k->args[1],
                      ints_value(k->x, others, n), BOOL(true));
    if (norm.kind != VAL_tensor)
        return false;
    double most = kf(k, 3, 0);
    const Tensor *t = tensor_at(&norm), *all[3] = {k->res[0], x, t};
    WALK (w, walk_tensors(all, 3)) {
        double v = get_d(t, w.at[2]), f = v > most ? most / (v + 1e-7) : 1;
        put_d(all[0], w.at[0], get_d(x, w.at[1]) * (t->dtype == DT_f32 ? (double)(float)f : f));
    }
    return true;
}

// embedding_renorm_(self, indices, max_norm, norm_type)
bool kern_embedding_renorm_(K *k) {
    Tensor *w = k->in[0];
    const Tensor *index = k->in[1];
    double most = kf(k, 2, 0), p = kf(k, 3, 2);
    k->out = k->args[0];
    if (w->ndim != 2 || !index || !is_int_like(index->dtype))
        return k_fail(k,
                      "RuntimeError: embedding_renorm_: weight must be 2-D and indices integers");
    bool *seen = ARENA_ARRAY(k->x->arena, w->size[0] + 1, bool);
    double *row = ARENA_ARRAY(k->x->arena, w->size[1] + 1, double),
           *zero = ARENA_ARRAY(k->x->arena, w->size[1] + 1, double);
    WALK (walk, walk_tensors(&index, 1)) {
        int64_t i = get_i(index, walk.at[0]);
        if (i < 0 || i >= w->size[0])
            return k_fail(k, "IndexError: index out of range in self");
        if (seen[i])
            continue;
        seen[i] = true;
        load_d(w->dtype, at_elem(w, i * w->stride[0]), w->stride[1], w->size[1], row);
        double norm = round_to(w->dtype, distance(row, zero, w->size[1], p));
        if (norm > most) {
            double f = most / (norm + 1e-7);
            f = w->dtype == DT_f64 ? f : (double)(float)f;
            for (int64_t j = 0; j < w->size[1]; j++)
                row[j] *= f;
            store_d(w->dtype, at_elem(w, i * w->stride[0]), w->stride[1], w->size[1], row);
        }
    }
    return true;
}
