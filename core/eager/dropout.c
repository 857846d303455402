// dropout.c: what leaves out elements by chance, and choices among rows of chances, drawing as
// PyTorch's CPU code does.
#include "core/eager/kernel.h"

#include <math.h>
#include <string.h>

// dropout(input, p, train): the mask is drawn in the input's dtype and divided by the share that
// stays; alpha_dropout keeps mean and variance of a selu.
static Value dropped(K *k, Value t, Value noise_like, double p, bool alpha) {
    if (p == 1)
        return CALL(k, aten_mul_Tensor, t, CALL(k, aten_zeros_like_default, noise_like));
    Value noise = CALL(k, aten_empty_like_default, noise_like);
    noise = CALL(k, aten_bernoulli__float, noise, FLT(1 - p));
    if (!alpha) {
        noise = CALL(k, aten_div__Scalar, noise, FLT(1 - p));
        return CALL(k, aten_mul_Tensor, t, noise);
    }
    const double selu = 1.7580993408473766;
    double a = 1 / sqrt((selu * selu * p + 1) * (1 - p));
    Value b = CALL(k, aten_add_Scalar, noise, INT(-1));
    b = CALL(k, aten_mul__Scalar, b, FLT(selu * a));
    b = CALL(k, aten_add__Scalar, b, FLT(selu * a * p));
    noise = CALL(k, aten_mul__Scalar, noise, FLT(a));
    return CALL(k, aten_add__Tensor, CALL(k, aten_mul_Tensor, t, noise), b);
}

// dropout, feature_dropout (whole channels), alpha_dropout, feature_alpha_dropout
bool kern_dropout(K *k) {
    double p = kf(k, 1, 0.5);
    const Tensor *t = k->in[0];
    if (!(p >= 0 && p <= 1))
        return k_fail(k, "RuntimeError: dropout probability has to be between 0 and 1, but got %g",
                      p);
    k->out = k->args[0];
    if (!kb(k, 2) || p == 0 || tensor_numel(t) == 0) {
        k->out = eager_view(k->x, t);
        return true;
    }
    Value like = k->args[0];
    if (str_starts(k->op->name, "feature")) {
        int64_t size[TENSOR_DIMS];
        if (t->ndim < 2)
            return k_fail(k, "RuntimeError: Feature dropout requires at least 2 dimensions in the "
                             "input");
        for (int i = 0; i < t->ndim; i++)
            size[i] = i < 2 ? t->size[i] : 1;
        like = CALL(k, aten_new_empty_default, k->args[0], ints_value(k->x, size, t->ndim));
    }
    k->out = dropped(k, k->args[0], like, p, strstr(k->op->name, "alpha") != NULL);
    return eager_ok(k->x);
}

// native_dropout(input, p, train) -> (output, mask)
bool kern_native_dropout(K *k) {
    double p = kf(k, 1, 0.5), scale = p == 1 ? 0 : 1 / (1 - p);
    if (tensor_numel(k->in[0]) == 0)
        return true;
    if (k_given(k, 2) && !kb(k, 2)) {
        Value one = number_tensor(k->x, &(Value){.kind = VAL_bool, .b = true}, DT_b8);
        return copy_into(k->x, k->res[0], k->in[0]) && one.kind == VAL_tensor &&
               copy_into(k->x, k->res[1], tensor_at(&one));
    }
    if (!random_bernoulli(k, k->res[1], NULL, 1 - p))
        return false;
    Value r = CALL(k, aten_mul_Scalar,
                   CALL(k, aten_mul_Tensor, k->args[0], tensor_value(k->x, k->res[1])), FLT(scale));
    return r.kind == VAL_tensor && copy_into(k->x, k->res[0], tensor_at(&r));
}

// (grad_output, mask, scale)
bool kern_native_dropout_backward(K *k) {
    Value r =
        CALL(k, aten_mul_Scalar, CALL(k, aten_mul_Tensor, k->args[0], k->args[1]), k->args[2]);
    return r.kind == VAL_tensor && copy_into(k->x, k->res[0], tensor_at(&r));
}

// rrelu_with_noise(self, noise, lower, upper, training): the slope of each element that is not
// positive is drawn and left in noise.
static bool rrelu(K *k, const Tensor *noise) {
    const Tensor *all[3] = {k->res[0], k->in[0], noise};
    double lower = kf(k, 2, 0.125), upper = kf(k, 3, 1.0 / 3);
    bool training = kb(k, 4);
    Generator *g = training ? random_generator(k) : NULL;
    if (training && !g)
        return false;
    int64_t unused[TENSOR_DIMS];
    if (!noise || !broadcast_strides(noise, all[0]->ndim, all[0]->size, unused))
        return k_fail(k, "RuntimeError: %s: noise of another shape than the input", k->op->name);
    WALK (w, walk_tensors(all, 3)) {
        double x = get_d(all[1], w.at[1]), slope = training ? 1 : (lower + upper) / 2;
        if (training && x <= 0)
            slope = round_to(noise->dtype, random_unit(g) * (upper - lower) + lower);
        if (training)
            put_d(noise, w.at[2], slope);
        put_d(all[0], w.at[0], x <= 0 ? x * slope : x);
    }
    return true;
}

bool kern_rrelu_with_noise(K *k) {
    return rrelu(k, k->in[1]);
}

bool kern_rrelu_with_noise_functional(K *k) {
    return copy_into(k->x, k->res[1], k->in[1]) && rrelu(k, k->res[1]);
}

// Without replacement the largest of p / q win, q being exponentially distributed.
static bool choose_once(K *k, int64_t draws) {
    Value q = CALL(k, aten_empty_like_default, k->args[0]);
    q = CALL(k, aten_exponential__default, q);
    q = CALL(k, aten_div_Tensor, k->args[0], q);
    if (draws == 1) {
        Value r = CALL(k, aten_argmax_default, q, INT(-1), BOOL(true));
        return r.kind == VAL_tensor && copy_into(k->x, k->res[0], tensor_at(&r));
    }
    Value r = CALL(k, aten_topk_default, q, INT(draws));
    return r.n == 2 && copy_into(k->x, k->res[0], tensor_at(&r.at[1]));
}

// Sums up to each category as parts of the whole, in the dtype of p.
static bool cumulate(K *k, const Tensor *p, int64_t row, int64_t n, double *sum) {
    double all = 0;
    for (int64_t i = 0; i < n; i++) {
        double v = get_d(p, row * n + i);
        if (!(v >= 0) || isinf(v))
            return k_fail(k, "RuntimeError: probability tensor contains either `inf`, `nan` or "
                             "element < 0");
        sum[i] = all = round_to(p->dtype, all + v);
    }
    if (!(all > 0))
        return k_fail(k, "RuntimeError: invalid multinomial distribution (sum of probabilities <= "
                         "0)");
    for (int64_t i = 0; i < n; i++)
        sum[i] = i == n - 1 ? 1 : round_to(p->dtype, sum[i] / all);
    return true;
}

// multinomial(self, num_samples, replacement)
bool kern_multinomial(K *k) {
    const Tensor *p = k->in[0];
    Generator *g = random_generator(k);
    int64_t n = p->ndim ? p->size[p->ndim - 1] : 1, draws = ki(k, 1, 1),
            rows = p->ndim == 2 ? p->size[0] : 1;
    bool again = kb(k, 2);
    Tensor *dense = eager_contiguous(k->x, p, p->dtype);
    if (!g || !dense)
        return false;
    if (draws <= 0 || (!again && draws > n))
        return k_fail(k, "RuntimeError: cannot sample n_sample %s",
                      draws <= 0 ? "<= 0 samples"
                                 : "> prob_dist.size(-1) samples without replacement");
    double *sum = ARENA_ARRAY(k->x->arena, n + 1, double);
    for (int64_t r = 0; r < rows; r++) {
        if (!cumulate(k, dense, r, n, sum))
            return false;
        for (int64_t j = 0; again && draws > 1 && j < draws; j++) {
            double u = random_unit(g);
            int64_t low = 0, high = n;
            while (low < high) {
                int64_t middle = low + (high - low) / 2;
                if (sum[middle] < u)
                    low = middle + 1;
                else
                    high = middle;
            }
            put_i(k->res[0], r * draws + j, low);
        }
    }
    return (again && draws > 1) || choose_once(k, draws);
}
