// loss.c: losses: elementwise ones with their reductions, and those over classes.
#include "core/eager/kernel.h"

#include <math.h>
#include <string.h>

enum { REDUCE_none, REDUCE_mean, REDUCE_sum };

static Value reduced(K *k, Value v, int64_t reduction) {
    return reduction == REDUCE_mean  ? CALL(k, aten_mean_default, v)
           : reduction == REDUCE_sum ? CALL(k, aten_sum_default, v)
                                     : v;
}

static bool finish(K *k, Value v) {
    return v.kind == VAL_tensor && copy_into(k->x, k->res[0], tensor_at(&v));
}

static int64_t reduction_of(const K *k) {
    return ki(k, karg(k, "reduction"), REDUCE_mean);
}

// An elementwise function of two tensors by a loop of loops.def, and its reduction.
static bool point_loss(K *k, const char *loop, double parameter) {
    Value v = point_loop(k, loop, k->args[0], k->args[1], parameter);
    return v.kind == VAL_tensor && finish(k, reduced(k, v, reduction_of(k)));
}

bool kern_mse_loss(K *k) {
    return point_loss(k, "mse", 0);
}

bool kern_l1_loss(K *k) {
    return point_loss(k, "l1", 0);
}

bool kern_smooth_l1_loss(K *k) {
    double beta = kf(k, 3, 1);
    return point_loss(k, beta == 0 ? "l1" : "smooth_l1", beta);
}

bool kern_huber_loss(K *k) {
    return point_loss(k, "huber", kf(k, 3, 1));
}

bool kern_soft_margin_loss(K *k) {
    Value v = CALL(k, aten_mul_Tensor, CALL(k, aten_neg_default, k->args[0]), k->args[1]);
    v = CALL(k, aten_log1p_default, CALL(k, aten_exp_default, v));
    return finish(k, reduced(k, v, reduction_of(k)));
}

// (grad_output, self, target, reduction[, beta])
bool kern_point_loss_backward(K *k) {
    const char *name = k->op->name;
    double n = (double)tensor_numel(k->in[1]), norm = ki(k, 3, 1) == REDUCE_mean ? 1 / n : 1;
    const char *loop = str_starts(name, "mse")     ? "mse_backward"
                       : str_starts(name, "huber") ? "huber_backward"
                                                   : "smooth_l1_backward";
    Value v =
        point_loop3(k, loop, k->args[0], k->args[1], k->args[2],
                    str_starts(name, "mse") ? 2 * norm : norm, k->op->n_args > 4 ? kf(k, 4, 1) : 0);
    return finish(k, v);
}

// (self, target, weight, reduction)
bool kern_bce(K *k) {
    static const char *const names[] = {"input", "target"};
    for (int i = 0; i < 2; i++) {
        const Tensor *x = k->in[i];
        WALK (w, walk_tensors(&x, 1)) {
            double v = get_d(x, w.at[0]);
            if (!(v >= 0 && v <= 1))
                return k_fail(k, "RuntimeError: all elements of %s should be between 0 and 1",
                              names[i]);
        }
    }
    Value v = point_loop(k, "bce", k->args[0], k->args[1], 0);
    if (k_given(k, 2))
        v = CALL(k, aten_mul_Tensor, v, k->args[2]);
    return finish(k, reduced(k, v, ki(k, 3, 1)));
}

// (grad, self, target, weight, reduction)
bool kern_bce_backward(K *k) {
    Value x = k->args[1], one = FLT(1);
    Value spread = CALL(k, aten_clamp_min_default,
                        CALL(k, aten_mul_Tensor, x, CALL(k, aten_rsub_Scalar, x, one)), FLT(1e-12));
    Value v =
        CALL(k, aten_div_Tensor,
             CALL(k, aten_mul_Tensor, k->args[0], CALL(k, aten_sub_Tensor, x, k->args[2])), spread);
    if (k_given(k, 3))
        v = CALL(k, aten_mul_Tensor, v, k->args[3]);
    if (ki(k, 4, 1) == REDUCE_mean)
        v = CALL(k, aten_div_Scalar, v, FLT((double)tensor_numel(k->in[1])));
    return finish(k, v);
}

// (self, target, weight, pos_weight, reduction): (1 - y) x + w log(1 + e^-x)
bool kern_bce_with_logits(K *k) {
    Value x = k->args[0], y = k->args[1], log_sigmoid = CALL(k, aten_log_sigmoid_default, x);
    Value left = CALL(k, aten_mul_Tensor, CALL(k, aten_rsub_Scalar, y, FLT(1)), x);
    if (k_given(k, 3)) {
        Value w = CALL(k, aten_mul_Tensor, CALL(k, aten_sub_Scalar, k->args[3], FLT(1)), y);
        log_sigmoid = CALL(k, aten_mul_Tensor, log_sigmoid, CALL(k, aten_add_Scalar, w, FLT(1)));
    }
    Value v = CALL(k, aten_sub_Tensor, left, log_sigmoid);
    if (k_given(k, 2))
        v = CALL(k, aten_mul_Tensor, v, k->args[2]);
    return finish(k, reduced(k, v, ki(k, 4, 1)));
}

// kl_div(self, target, reduction, *, log_target)
bool kern_kl_div(K *k) {
    Value x = k->args[0], y = k->args[1], v;
    if (kb(k, 3))
        v = CALL(k, aten_mul_Tensor, CALL(k, aten_exp_default, y), CALL(k, aten_sub_Tensor, y, x));
    else
        v = CALL(k, aten_sub_Tensor, CALL(k, aten_xlogy_Tensor, y, y),
                 CALL(k, aten_mul_Tensor, y, x));
    return finish(k, reduced(k, v, ki(k, 2, 1)));
}

// poisson_nll_loss(input, target, log_input, full, eps, reduction)
bool kern_poisson_nll_loss(K *k) {
    Value x = k->args[0], y = k->args[1], v;
    if (kb(k, 2))
        v = CALL(k, aten_sub_Tensor, CALL(k, aten_exp_default, x), CALL(k, aten_mul_Tensor, y, x));
    else
        v = CALL(k, aten_sub_Tensor, x,
                 CALL(k, aten_mul_Tensor, y,
                      CALL(k, aten_log_default, CALL(k, aten_add_Scalar, x, k->args[4]))));
    if (kb(k, 3)) {
        Value s =
            CALL(k, aten_sub_Tensor, CALL(k, aten_mul_Tensor, y, CALL(k, aten_log_default, y)), y);
        Value t =
            CALL(k, aten_mul_Scalar,
                 CALL(k, aten_log_default, CALL(k, aten_mul_Scalar, y, FLT(2 * M_PI))), FLT(0.5));
        Value stirling = CALL(k, aten_add_Tensor, s, t);
        v = CALL(
            k, aten_add_Tensor, v,
            CALL(k, aten_masked_fill_Scalar, stirling, CALL(k, aten_le_Scalar, y, FLT(1)), FLT(0)));
    }
    return finish(k, reduced(k, v, ki(k, 5, 1)));
}

// margin_ranking_loss(input1, input2, target, margin, reduction)
bool kern_margin_ranking_loss(K *k) {
    Value d = CALL(k, aten_mul_Tensor, CALL(k, aten_neg_default, k->args[2]),
                   CALL(k, aten_sub_Tensor, k->args[0], k->args[1]));
    d = CALL(k, aten_clamp_min_default, CALL(k, aten_add_Scalar, d, k->args[3]), FLT(0));
    return finish(k, reduced(k, d, ki(k, 4, 1)));
}

// hinge_embedding_loss(self, target, margin, reduction)
bool kern_hinge_embedding_loss(K *k) {
    Value x = k->args[0], y = k->args[1], zeros = CALL(k, aten_zeros_like_default, x);
    Value hinge =
        CALL(k, aten_clamp_min_default,
             CALL(k, aten_sub_Tensor, CALL(k, aten_fill_Scalar, x, k->args[2]), x), FLT(0));
    Value a = CALL(k, aten_where_self, CALL(k, aten_ne_Scalar, y, INT(1)), hinge, zeros);
    Value b = CALL(k, aten_where_self, CALL(k, aten_ne_Scalar, y, INT(-1)), x, zeros);
    return finish(k, reduced(k, CALL(k, aten_add_Tensor, a, b), ki(k, 3, 1)));
}

// Classes: (n, c, positions) with one target a position.

typedef struct Classes {
    const Tensor *x, *target; // x dense (n, c, inner), target dense (n, inner)
    const int64_t *targets;   // target's elements
    const float *floats;      // x's, NULL: of another dtype
    const double *weight;     // (c), NULL: 1
    int64_t n, c, inner, ignore;
} Classes;

static bool read_classes(K *k, const Tensor *x, const Tensor *target, const Tensor *weight,
                         int64_t ignore, Classes *o) {
    *o = (Classes){.ignore = ignore};
    if (!target || !is_int_like(target->dtype))
        return k_fail(k, "RuntimeError: expected scalar type Long for the target of nll_loss");
    *o = (Classes){.ignore = ignore,
                   .n = x->ndim > 1 ? x->size[0] : 1,
                   .c = x->ndim ? x->size[x->ndim > 1] : 1,
                   .inner = 1};
    for (int i = 2; i < x->ndim; i++)
        o->inner *= x->size[i];
    o->x = eager_contiguous(k->x, x, x->dtype);
    o->target = eager_contiguous(k->x, target, DT_i64);
    if (!o->x || !o->target)
        return false;
    o->targets = tensor_data(o->target);
    o->floats = o->x->dtype == DT_f32 ? tensor_data(o->x) : NULL;
    if (tensor_numel(target) != o->n * o->inner || (weight && tensor_numel(weight) != o->c))
        return k_fail(k, "RuntimeError: nll_loss: sizes of input, target and weight do not fit");
    if (weight) {
        double *w = ARENA_ARRAY(k->x->arena, o->c + 1, double);
        for (int64_t i = 0; i < o->c; i++)
            w[i] = get_d(weight, i * (weight->ndim ? weight->stride[0] : 0));
        o->weight = w;
    }
    return true;
}

// The target of position p and its weight; false if it is ignored or bad.
static bool class_at(K *k, const Classes *o, int64_t p, int64_t *at, double *weight, bool *bad) {
    int64_t t = o->targets[p];
    if (t == o->ignore)
        return false;
    if (t < 0 || t >= o->c) {
        k_fail(k, "IndexError: Target %lld is out of bounds.", (long long)t);
        *bad = true;
        return false;
    }
    *at = o->inner == 1 ? p * o->c + t : (p / o->inner * o->c + t) * o->inner + p % o->inner;
    *weight = o->weight ? o->weight[t] : 1;
    return true;
}

// nll_loss_forward, nll_loss2d_forward: (self, target, weight, reduction, ignore_index) -> (output,
// total_weight)
bool kern_nll_loss_forward(K *k) {
    Classes o;
    int64_t reduction = ki(k, 3, 1);
    Tensor *out = k->res[0];
    double sum = 0, total = 0;
    bool bad = false;
    if (!read_classes(k, k->in[0], k->in[1], k->in[2], ki(k, 4, -100), &o))
        return false;
    Tensor *dense = reduction == REDUCE_none ? dense_res(k, 0, out->dtype) : out;
    if (!dense || (reduction == REDUCE_none && tensor_numel(dense) != o.n * o.inner))
        return false;
    for (int64_t p = 0; p < o.n * o.inner; p++) {
        int64_t at = 0;
        double w = 0;
        bool used = class_at(k, &o, p, &at, &w, &bad);
        if (bad)
            return false;
        double loss = !used ? 0 : -(o.floats ? (double)o.floats[at] : get_d(o.x, at)) * w;
        sum += loss;
        total += used ? w : 0;
        if (reduction == REDUCE_none)
            put_d(dense, p, loss);
    }
    if (reduction != REDUCE_none)
        put_d(out, 0, reduction == REDUCE_mean ? sum / total : sum);
    if (k->res[1])
        put_d(k->res[1], 0, reduction == REDUCE_none && k->in[0]->ndim > 1 ? 0 : total);
    return dense_done(k, 0, dense);
}

// (grad_output, self, target, weight, reduction, ignore_index, total_weight)
bool kern_nll_loss_backward(K *k) {
    Classes o;
    int64_t reduction = ki(k, 4, 1);
    bool bad = false;
    const Tensor *g = eager_contiguous(k->x, k->in[0], DT_f64);
    Tensor *out = dense_res(k, 0, k->res[0]->dtype);
    if (!g || !out || !read_classes(k, k->in[1], k->in[2], k->in[3], ki(k, 5, -100), &o))
        return false;
    double total = k->in[6] ? get_d(k->in[6], 0) : 1;
    if (tensor_numel(g) != (reduction == REDUCE_none ? o.n * o.inner : 1))
        return k_fail(k, "RuntimeError: gradient of another size than the loss");
    for (int64_t p = 0; p < o.n * o.inner; p++) {
        int64_t at;
        double w;
        if (class_at(k, &o, p, &at, &w, &bad))
            put_d(out, at,
                  -w * get_d(g, reduction == REDUCE_none ? p : 0) /
                      (reduction == REDUCE_mean ? total : 1));
        if (bad)
            return false;
    }
    return dense_done(k, 0, out);
}

// nll_loss, nll_loss2d, nll_loss_nd
bool kern_nll_loss(K *k) {
    const Tensor *x = k->in[0];
    Value r = x->ndim == 4 ? CALL(k, aten_nll_loss2d_forward_default, k->args[0], k->args[1],
                                  k->args[2], k->args[3], k->args[4])
                           : NONE;
    if (x->ndim <= 2) {
        r = CALL(k, aten_nll_loss_forward_default, k->args[0], k->args[1], k->args[2], k->args[3],
                 k->args[4]);
    } else if (x->ndim != 4) {
        int64_t four[4] = {x->size[0], x->size[1], 1, -1}, three[3] = {x->size[0], 1, -1};
        int64_t rest = 1;
        for (int i = 2; i < x->ndim; i++)
            rest *= x->size[i];
        four[3] = three[2] = rest;
        Value a = CALL(k, aten_reshape_default, k->args[0], ints_value(k->x, four, 4));
        Value b = CALL(k, aten_reshape_default, k->args[1], ints_value(k->x, three, 3));
        r = CALL(k, aten_nll_loss2d_forward_default, a, b, k->args[2], k->args[3], k->args[4]);
        if (r.kind == VAL_tuple && ki(k, 3, 1) == REDUCE_none)
            r.at[0] = CALL(k, aten_view_default, r.at[0], sizes_value(k->x, k->in[1]));
    }
    k->out = r.kind == VAL_tuple ? r.at[0] : NONE;
    return eager_ok(k->x);
}

// Targets that are probabilities, or smoothed ones.
static Value soft_cross_entropy(K *k, Value logp, Value target, int dim) {
    Value v = CALL(k, aten_mul_Tensor, logp, target);
    if (k_given(k, 2)) {
        int64_t shape[TENSOR_DIMS];
        const Tensor *t = tensor_at(&logp);
        for (int i = 0; t && i < t->ndim; i++)
            shape[i] = i == dim ? -1 : 1;
        v = CALL(
            k, aten_mul_Tensor, v,
            CALL(k, aten_reshape_default, k->args[2], ints_value(k->x, shape, t ? t->ndim : 0)));
    }
    int64_t d = dim;
    return CALL(k, aten_neg_default, CALL(k, aten_sum_dim_IntList, v, ints_value(k->x, &d, 1)));
}

// cross_entropy_loss(self, target, weight, reduction, ignore_index, label_smoothing)
bool kern_cross_entropy(K *k) {
    const Tensor *x = k->in[0], *t = k->in[1];
    int dim = x->ndim > 1;
    int64_t c = x->ndim ? x->size[dim] : 1, reduction = ki(k, 3, 1);
    double smooth = kf(k, 5, 0);
    Value logp = CALL(k, aten_log_softmax_int, k->args[0], INT(dim));
    if (!t || !eager_ok(k->x))
        return false;
    if (!is_int_like(t->dtype)) {
        Value target = k->args[1];
        if (smooth > 0)
            target = CALL(k, aten_add_Scalar, CALL(k, aten_mul_Scalar, target, FLT(1 - smooth)),
                          FLT(smooth / (double)c));
        Value v = soft_cross_entropy(k, logp, target, dim);
        if (reduction == REDUCE_mean && v.kind == VAL_tensor) {
            int64_t rows = tensor_numel(x) / (c ? c : 1);
            v = CALL(k, aten_div_Scalar, CALL(k, aten_sum_default, v), FLT((double)rows));
        } else
            v = reduced(k, v, reduction);
        k->out = v;
        return eager_ok(k->x);
    }
    Value nll =
        CALL(k, aten_nll_loss_nd_default, logp, k->args[1], k->args[2], k->args[3], k->args[4]);
    if (smooth == 0) {
        k->out = nll;
        return eager_ok(k->x);
    }
    // The part that every class gets: the mean over classes, weighted, without the ignored rows.
    Value ones = CALL(k, aten_ones_like_default, logp),
          all = soft_cross_entropy(k, logp, ones, dim);
    Value ignored = CALL(k, aten_eq_Scalar, k->args[1], k->args[4]);
    all = CALL(k, aten_masked_fill_Scalar, all, ignored, FLT(0));
    if (reduction == REDUCE_mean) {
        Value sum = CALL(k, aten_sum_default, all),
              kept = CALL(k, aten_logical_not_default, ignored), count;
        if (k_given(k, 2)) {
            Value safe = CALL(k, aten_masked_fill_Scalar, k->args[1], ignored, INT(0));
            Value w = CALL(k, aten_index_select_default, k->args[2], INT(0),
                           CALL(k, aten_reshape_default, safe, list_value(k->x, INT(-1), END)));
            Value flat = CALL(k, aten_reshape_default, kept, list_value(k->x, INT(-1), END));
            count = CALL(k, aten_sum_default, CALL(k, aten_mul_Tensor, w, flat));
        } else
            count = CALL(k, aten_sum_default, kept);
        all = CALL(k, aten_div_Tensor, sum, count);
    } else
        all = reduced(k, all, reduction);
    Value a = CALL(k, aten_mul_Scalar, nll, FLT(1 - smooth)),
          b = CALL(k, aten_mul_Scalar, all, FLT(smooth / (double)c));
    k->out = CALL(k, aten_add_Tensor, a, b);
    return eager_ok(k->x);
}

// multi_margin_loss(self, target, p, margin, weight, reduction)
bool kern_multi_margin_loss(K *k) {
    Classes o;
    const Tensor *x = k->in[0];
    int64_t p = ki(k, 2, 1), reduction = ki(k, 5, 1);
    double margin = kf(k, 3, 1), sum = 0;
    bool bad = false;
    if (!read_classes(k, x, k->in[1], k->in[4], INT64_MIN, &o))
        return false;
    if (p != 1 && p != 2)
        return k_fail(
            k, "RuntimeError: multi_margin_loss: only p == 1 and p == 2 supported, given %lld",
            (long long)p);
    if (o.c == 0 || o.inner == 0)
        return k_fail(k, "RuntimeError: multi_margin_loss: there are no classes");
    for (int64_t r = 0; r < o.n; r++) {
        int64_t at = 0, target = get_i(o.target, r);
        double w = 0, loss = 0;
        if (!class_at(k, &o, r, &at, &w, &bad))
            return false;
        double own = get_d(o.x, at);
        for (int64_t c = 0; c < o.c; c++) {
            double z = margin - own + get_d(o.x, r * o.c + c);
            if (c != target && z > 0)
                loss += (p == 1 ? z : z * z) * (o.weight ? o.weight[target] : 1);
        }
        loss /= (double)o.c;
        sum += loss;
        if (reduction == REDUCE_none)
            put_d(k->res[0], k->res[0]->ndim ? r * k->res[0]->stride[0] : 0, loss);
    }
    if (reduction != REDUCE_none)
        put_d(k->res[0], 0, reduction == REDUCE_mean ? sum / (double)o.n : sum);
    return true;
}

// multilabel_margin_loss_forward(self, target, reduction) -> (output, is_target): targets up to the
// first -1
bool kern_multilabel_margin_loss(K *k) {
    const Tensor *x = eager_contiguous(k->x, k->in[0], DT_f64),
                 *t = eager_contiguous(k->x, k->in[1], DT_i64);
    int64_t c = k->in[0]->ndim ? k->in[0]->size[k->in[0]->ndim - 1] : 1, rows,
            reduction = ki(k, 2, 1);
    double total = 0;
    if (!x || !t || tensor_numel(x) != tensor_numel(t) || c == 0)
        return k_fail(k, "RuntimeError: inconsistent target size of multilabel_margin_loss");
    rows = tensor_numel(x) / c;
    bool *is = ARENA_ARRAY(k->x->arena, c + 1, bool);
    for (int64_t r = 0; r < rows; r++) {
        double sum = 0;
        int64_t n = 0;
        memset(is, 0, (size_t)c * sizeof *is);
        for (; n < c && get_i(t, r * c + n) >= 0; n++) {
            int64_t at = get_i(t, r * c + n);
            if (at >= c)
                return k_fail(k, "RuntimeError: target %lld is out of range", (long long)at);
            is[at] = true;
        }
        for (int64_t j = 0; j < n; j++)
            for (int64_t i = 0; i < c; i++) {
                double z = 1 - get_d(x, r * c + get_i(t, r * c + j)) + get_d(x, r * c + i);
                sum += !is[i] && z > 0 ? z : 0;
            }
        sum /= (double)c;
        total += sum;
        if (reduction == REDUCE_none)
            put_d(k->res[0], k->res[0]->ndim ? r * k->res[0]->stride[0] : 0, sum);
        for (int64_t i = 0; i < c; i++)
            put_i(k->res[1], r * c + i, is[i]);
    }
    if (reduction != REDUCE_none)
        put_d(k->res[0], 0, reduction == REDUCE_mean ? total / (double)rows : total);
    return true;
}
