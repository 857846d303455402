// reduce.c: reductions over all or some dimensions: sums, products, extremes, truth, norms,
// variance.
#include "core/eager/fold.h"

#include <math.h>
#include <string.h>

// The dims argument, whatever it is called; a missing one is all of them.
static bool dims_mask(K *k, uint64_t *mask) {
    int i = op_arg_index(k->op, "dim"), prim = op_arg_index(k->op, "dims");
    if (i < 0)
        i = prim;
    *mask = (1ull << k->in[0]->ndim) - 1;
    bool given = prim >= 0 || strcmp(k->op->name, "all") == 0 || strcmp(k->op->name, "any") == 0;
    if (i >= 0 && given && k->args[i].kind == VAL_list && !k->args[i].n) {
        *mask = 0; // the dimensions that are given, and no other
        return true;
    }
    return i < 0 || k_mask(k, i, k->in[0]->ndim, mask);
}

static void store_all_d(const Tensor *out, const double *v) {
    if (tensor_is_contiguous(out)) {
        store_d(out->dtype, tensor_data(out), 1, tensor_numel(out), v);
        return;
    }
    int64_t i = 0;
    WALK (w, walk_tensors(&out, 1))
        put_d(out, w.at[0], v[i++]);
}

static void store_all_i(const Tensor *out, const int64_t *v) {
    int64_t i = 0;
    WALK (w, walk_tensors(&out, 1))
        put_i(out, w.at[0], v[i++]);
}

static double *doubles(Eager *x, int64_t n) {
    return ARENA_ARRAY(x->arena, n + 1, double);
}

// In the result's dtype first, as PyTorch casts before it sums.
static const Tensor *cast_input(K *k, DType d) {
    const Tensor *in = k->in[0];
    bool sums = strcmp(k->op->name, "sum") == 0 || strcmp(k->op->name, "prod") == 0 ||
                strcmp(k->op->name, "nansum") == 0;
    if (sums && ((is_int_like(d) && !is_int_like(in->dtype)) || (d == DT_b8 && in->dtype != d)))
        return eager_contiguous(k->x, in, d);
    if (is_int_like(d) || dtype_is_low(in->dtype) || in->dtype == DT_f32 || in->dtype == DT_f64 ||
        is_int_like(in->dtype))
        return in;
    return eager_contiguous(k->x, in, d);
}

static bool fold_op(K *k, FoldId id) {
    const Tensor *out = k->res[0], *in = cast_input(k, out->dtype);
    uint64_t mask;
    if (!in || !dims_mask(k, &mask))
        return false;
    int64_t n = fold_outputs(in, mask);
    if (n != tensor_numel(out))
        return k_fail(k, "RuntimeError: %s: result of another size than planned", k->op->qualname);
    bool extreme = id == FOLD_amax || id == FOLD_amin;
    if (extreme && fold_elements(in, mask) == 0 && n)
        return k_fail(k, "IndexError: %s(): Expected reduction dim to have non-zero size.",
                      k->op->name);
    if (is_int_like(in->dtype) && is_int_like(out->dtype)) {
        int64_t *v = ARENA_ARRAY(k->x->arena, n + 1, int64_t);
        fold_i(k->x, id, in, mask, v);
        if (out->dtype == DT_b8 || strcmp(k->op->name, "all") == 0)
            for (int64_t i = 0; i < n; i++)
                v[i] = id == FOLD_zeros ? v[i] == 0 : v[i] != 0;
        else if (id == FOLD_any && strcmp(k->op->name, "any") == 0)
            for (int64_t i = 0; i < n; i++)
                v[i] = v[i] != 0;
        store_all_i(out, v);
        return true;
    }
    double *v = doubles(k->x, n);
    fold_d(k->x, id, in, mask, NULL, 0, v);
    bool truth = strcmp(k->op->name, "any") == 0 || strcmp(k->op->name, "all") == 0;
    for (int64_t i = 0; truth && i < n; i++)
        v[i] = id == FOLD_zeros ? v[i] == 0 : v[i] != 0;
    store_all_d(out, v);
    return true;
}

bool kern_sum(K *k) {
    return fold_op(k, FOLD_sum);
}

bool kern_nansum(K *k) {
    return fold_op(k, FOLD_nansum);
}

bool kern_prod(K *k) {
    return fold_op(k, FOLD_prod);
}

bool kern_amax(K *k) {
    return fold_op(k, FOLD_amax);
}

bool kern_amin(K *k) {
    return fold_op(k, FOLD_amin);
}

bool kern_any(K *k) {
    return fold_op(k, FOLD_any);
}

bool kern_all(K *k) {
    return fold_op(k, FOLD_zeros);
}

bool kern_count(K *k) {
    return fold_op(k, FOLD_any);
}

bool kern_aminmax(K *k) {
    const Tensor *in = k->in[0];
    uint64_t mask;
    if (!dims_mask(k, &mask))
        return false;
    int64_t n = fold_outputs(in, mask);
    if (fold_elements(in, mask) == 0 && n)
        return k_fail(k, "IndexError: aminmax(): Expected reduction dim to have non-zero size.");
    int dim_arg = op_arg_index(k->op, "dim"), dim = 0;
    if (dim_arg >= 0 && k->args[dim_arg].kind == VAL_int && in->ndim &&
        k_dim(k, k->args[dim_arg].i, in->ndim, &dim) && in->size[dim] == 0)
        return k_fail(k, "IndexError: aminmax: Expected reduction dim %d to have non-zero size.",
                      dim);
    for (int r = 0; r < 2; r++) {
        FoldId id = r ? FOLD_amax : FOLD_amin;
        if (is_int_like(in->dtype)) {
            int64_t *v = ARENA_ARRAY(k->x->arena, n + 1, int64_t);
            fold_i(k->x, id, in, mask, v);
            store_all_i(k->res[r], v);
        } else {
            double *v = doubles(k->x, n);
            fold_d(k->x, id, in, mask, NULL, 0, v);
            store_all_d(k->res[r], v);
        }
    }
    return true;
}

bool kern_mean(K *k) {
    const Tensor *in = k->in[0];
    uint64_t mask;
    if (!dims_mask(k, &mask))
        return false;
    int64_t n = fold_outputs(in, mask);
    double *v = doubles(k->x, n), count = (double)fold_elements(in, mask);
    fold_d(k->x, FOLD_sum, in, mask, NULL, 0, v);
    for (int64_t i = 0; i < n; i++)
        v[i] /= count;
    store_all_d(k->res[0], v);
    return true;
}

// Means of rows that have an infinite element, as Welford's steps leave them: infinite if it comes
// last, else not a number.
static bool step_means(K *k, const Tensor *in, uint64_t mask, int64_t n, double *mean) {
    Tensor rows = *in; // kept dimensions first
    int at = 0;
    for (int gone = 0; gone < 2; gone++)
        for (int d = 0; d < in->ndim; d++)
            if ((int)(mask >> d & 1) == gone) {
                rows.size[at] = in->size[d];
                rows.stride[at++] = in->stride[d];
            }
    int64_t count = fold_elements(in, mask);
    const Tensor *dense = eager_contiguous(k->x, &rows, DT_f64);
    for (int64_t i = 0; dense && i < n; i++) {
        const double *x = (const double *)tensor_data(dense) + i * count;
        if (isfinite(mean[i]))
            continue;
        mean[i] = 0;
        for (int64_t j = 0; j < count; j++)
            mean[i] += (x[j] - mean[i]) / (double)(j + 1);
    }
    return dense != NULL;
}

// var, std and their pairs with the mean; correction or unbiased says what is taken off the count.
static bool spread_op(K *k, bool root, bool pair) {
    const Tensor *in = k->in[0];
    int c = op_arg_index(k->op, "correction"), u = op_arg_index(k->op, "unbiased");
    double correction = c >= 0 ? kf(k, c, 1) : u >= 0 && !kb(k, u) ? 0 : 1;
    uint64_t mask;
    if (!dims_mask(k, &mask))
        return false;
    int64_t n = fold_outputs(in, mask);
    double count = (double)fold_elements(in, mask), left = count - correction;
    double *mean = doubles(k->x, n), *v = doubles(k->x, n);
    bool infinite = false, empty = tensor_numel(in) == 0; // of nothing all is NaN
    fold_d(k->x, FOLD_sum, in, mask, NULL, 0, mean);
    for (int64_t i = 0; i < n; i++)
        mean[i] /= count;
    fold_d(k->x, FOLD_spread, in, mask, mean, 0, v);
    for (int64_t i = 0; i < n; i++) {
        v[i] = empty ? (double)NAN : v[i] / (left > 0 ? left : 0);
        v[i] = root ? sqrt(v[i]) : v[i];
        infinite = infinite || !isfinite(mean[i]);
    }
    store_all_d(k->res[0], v);
    if (pair && infinite && count > 1 && !step_means(k, in, mask, n, mean))
        return false;
    if (pair)
        store_all_d(k->res[1], mean);
    return true;
}

bool kern_var(K *k) {
    return spread_op(k, false, false);
}

bool kern_std(K *k) {
    return spread_op(k, true, false);
}

bool kern_var_mean(K *k) {
    return spread_op(k, false, true);
}

bool kern_std_mean(K *k) {
    return spread_op(k, true, true);
}

// log of the sum of exponentials, the largest element taken out first.
bool kern_logsumexp(K *k) {
    const Tensor *in = k->in[0];
    uint64_t mask;
    if (!dims_mask(k, &mask))
        return false;
    int64_t n = fold_outputs(in, mask);
    double *top = doubles(k->x, n), *m = doubles(k->x, n), *v = doubles(k->x, n);
    fold_d(k->x, FOLD_amax, in, mask, NULL, 0, top);
    for (int64_t i = 0; i < n; i++)
        m[i] = isinf(top[i]) ? 0 : top[i];
    fold_d(k->x, FOLD_expsum, in, mask, m, 0, v);
    for (int64_t i = 0; i < n; i++)
        v[i] = log(v[i]) + m[i];
    store_all_d(k->res[0], v);
    return true;
}

static FoldId norm_fold(double p) {
    return p == 0                   ? FOLD_any
           : p == 1                 ? FOLD_absolute
           : p == 2                 ? FOLD_square
           : p == (double)INFINITY  ? FOLD_absmax
           : p == -(double)INFINITY ? FOLD_absmin
                                    : FOLD_power;
}

static double norm_root(double p, double v) {
    return p == 2 ? sqrt(v) : p == 0 || p == 1 || isinf(p) ? v : pow(v, 1 / p);
}

// Norms are accumulated in double; PyTorch's sums are of the input's own range.
static double in_range(const Tensor *in, double v) {
    return in->dtype == DT_f64 ? v : (double)(float)v;
}

bool kern_norm(K *k) {
    const Tensor *in = k->in[0];
    int at = op_arg_index(k->op, "p");
    double p = kf(k, at >= 0 ? at : op_arg_index(k->op, "ord"), 2);
    uint64_t mask;
    if (!dims_mask(k, &mask))
        return false;
    int64_t n = fold_outputs(in, mask);
    double *v = doubles(k->x, n);
    fold_d(k->x, norm_fold(p), in, mask, NULL, p, v);
    bool none = fold_elements(in, mask) == 0;
    for (int64_t i = 0; i < n; i++)
        v[i] = none ? 0 : norm_root(p, in_range(in, v[i]));
    store_all_d(k->res[0], v);
    return true;
}

bool kern_dist(K *k) {
    Value d = CALL(k, aten_sub_Tensor, k->args[0], k->args[1]);
    double p = kf(k, 2, 2), v;
    if (d.kind != VAL_tensor)
        return false;
    const Tensor *t = tensor_at(&d);
    fold_d(k->x, norm_fold(p), t, (1ull << t->ndim) - 1, NULL, p, &v);
    put_d(k->res[0], 0, tensor_numel(t) ? norm_root(p, in_range(t, v)) : 0);
    return true;
}

bool kern_trace(K *k) {
    const Tensor *in = k->in[0];
    int64_t n = in->size[0] < in->size[1] ? in->size[0] : in->size[1];
    Tensor diagonal = *in;
    diagonal.ndim = 1;
    diagonal.size[0] = n;
    diagonal.stride[0] = in->stride[0] + in->stride[1];
    if (is_int_like(in->dtype)) {
        int64_t v;
        fold_i(k->x, FOLD_sum, &diagonal, 1, &v);
        put_i(k->res[0], 0, v);
    } else {
        double v;
        fold_d(k->x, FOLD_sum, &diagonal, 1, NULL, 0, &v);
        put_d(k->res[0], 0, v);
    }
    return true;
}

bool kern_equal(K *k) {
    const Tensor *a = k->in[0], *b = k->in[1];
    bool same = a->ndim == b->ndim;
    for (int i = 0; same && i < a->ndim; i++)
        same = a->size[i] == b->size[i];
    const Tensor *both[2] = {a, b};
    if (same)
        WALK (w, walk_tensors(both, 2)) {
            bool ints = is_int_like(a->dtype) && is_int_like(b->dtype);
            if (ints ? get_i(a, w.at[0]) != get_i(b, w.at[1])
                     : !(get_d(a, w.at[0]) == get_d(b, w.at[1]))) {
                same = false;
                break;
            }
        }
    k->out = val_bool(same);
    return true;
}

bool kern_allclose(K *k) {
    Value close =
        CALL(k, aten_isclose_default, k->args[0], k->args[1], k->args[2], k->args[3], k->args[4]);
    Value all = CALL(k, aten_all_default, close);
    if (all.kind != VAL_tensor)
        return false;
    k->out = val_bool(get_i(tensor_at(&all), 0) != 0);
    return true;
}

// _local_scalar_dense reads the first element of however many.
bool kern_item(K *k) {
    Tensor t = *k->in[0];
    if (k->op->id == OP_aten__local_scalar_dense_default && tensor_numel(&t))
        t.ndim = 0;
    k->out = scalar_value(k->x, &t);
    return eager_ok(k->x);
}
