// parts.c: ops made of a few others, which exporters and old programs still call by their own
// names: statistics, differences, sequences, padding, storage changes.
#include "core/eager/kernel.h"

#include <math.h>
#include <string.h>

static Value item(Value tuple, int i) {
    return (tuple.kind == VAL_tuple || tuple.kind == VAL_list) && i < tuple.n ? tuple.at[i] : NONE;
}

// quantile, nanquantile (self, q, dim, keepdim, *, interpolation)

typedef struct Quantile {
    DType d;       // that ranks are computed in
    bool skip_nan; // nanquantile
    char how;      // l linear, < lower, > higher, m midpoint, n nearest
} Quantile;

// Of n sorted numbers, NaN last.
static double quantile_of(const Quantile *q, const double *x, int64_t n, double at) {
    int64_t numbers = n;
    while (numbers > 0 && x[numbers - 1] != x[numbers - 1])
        numbers--;
    if (numbers == 0 || (!q->skip_nan && numbers < n))
        return (double)NAN;
    double rank = round_to(q->d, at * (double)(numbers - 1));
    double low = q->how == 'n' ? nearbyint(rank) : q->how == '>' ? ceil(rank) : floor(rank);
    double w = q->how == 'm' ? 0.5 : q->how == 'l' ? rank - low : 0;
    double a = x[(int64_t)low], b = x[(int64_t)(q->how == 'l' || q->how == 'm' ? ceil(rank) : low)];
    return w < 0.5 ? a + w * (b - a) : b - (b - a) * (1 - w);
}

bool kern_quantile(K *k) {
    static const char *const names[] = {"linear", "lower", "higher", "midpoint", "nearest"};
    Value v = k->args[0], q = k->args[1];
    Quantile how = {.d = k->in[0]->dtype, .skip_nan = str_starts(k->op->name, "nan")};
    int which = str_index(ks(k, karg(k, "interpolation"), "linear"), names, COUNT(names));
    if (which < 0 || !dtype_is_float(how.d))
        return k_fail(k,
                      which < 0 ? "RuntimeError: %s() interpolation must be one of linear, lower, "
                                  "higher, midpoint or nearest"
                                : "RuntimeError: %s() input tensor must be either float or double",
                      k->op->name);
    how.how = "l<>mn"[which];
    if (q.kind != VAL_tensor)
        q = number_tensor(k->x, &q, how.d);
    if (!k_given(k, 2))
        v = CALL(k, aten_flatten_using_ints, v);
    else
        v = CALL(k, aten_movedim_int, v, k->args[2], INT(-1));
    v = item(CALL(k, aten_sort_default, v, INT(-1)), 0);
    const Tensor *t = v.kind == VAL_tensor ? eager_contiguous(k->x, tensor_at(&v), DT_f64) : NULL;
    const Tensor *at = q.kind == VAL_tensor ? eager_contiguous(k->x, tensor_at(&q), DT_f64) : NULL;
    Tensor *out = dense_res(k, 0, k->res[0]->dtype);
    if (!t || !at || !out)
        return false;
    int64_t n = t->ndim ? t->size[t->ndim - 1] : 1, rows = n ? tensor_numel(t) / n : 0, to = 0;
    if (n == 0)
        return k_fail(k, "RuntimeError: %s() input tensor must be non-empty", k->op->name);
    for (int64_t i = 0; i < tensor_numel(at); i++) {
        double want = get_d(at, i);
        if (!(want >= 0 && want <= 1))
            return k_fail(k, "RuntimeError: %s() q values must be in the range [0, 1], given %g",
                          k->op->name, want);
        for (int64_t r = 0; r < rows; r++)
            put_d(out, to++, quantile_of(&how, (double *)tensor_data(t) + r * n, n, want));
    }
    return dense_done(k, 0, out);
}

// cov(self, *, correction, fweights, aweights)
bool kern_cov(K *k) {
    Value x = k->args[0], w = k->args[2], aw = k->args[3], sum = NONE, norm;
    if (k->in[0]->ndim > 2)
        return k_fail(k,
                      "RuntimeError: cov(): expected input to have two or fewer dimensions but "
                      "got an input with %d dimensions",
                      k->in[0]->ndim);
    if (k->in[0]->ndim < 2)
        x = CALL(k, aten_view_default, x, list_value(k->x, INT(1), INT(-1), END));
    if (is_int_like(k->in[0]->dtype))
        x = CALL(k, aten_to_dtype, x, DTY(DT_f32));
    Value rows = list_value(k->x, INT(1), END);
    if (w.kind == VAL_tensor && aw.kind == VAL_tensor)
        w = CALL(k, aten_mul_Tensor, w, aw);
    else if (aw.kind == VAL_tensor)
        w = aw;
    bool weighted = w.kind == VAL_tensor;
    if (weighted)
        sum = CALL(k, aten_sum_default, w);
    else
        sum = FLT((double)tensor_at(&x)->size[1]);
    Value mean =
        weighted ? CALL(k, aten_div_Tensor,
                        CALL(k, aten_sum_dim_IntList, CALL(k, aten_mul_Tensor, x, w), rows), sum)
                 : CALL(k, aten_mean_dim, x, rows);
    double total = weighted ? get_d(tensor_at(&sum), 0) : sum.f, less = (double)ki(k, 1, 1);
    if (aw.kind == VAL_tensor && less != 0) {
        Value both = CALL(k, aten_sum_default, CALL(k, aten_mul_Tensor, w, aw));
        if (!eager_ok(k->x))
            return false;
        less *= get_d(tensor_at(&both), 0) / total;
    }
    norm = FLT(total - less > 0 ? total - less : 0);
    x = CALL(k, aten_sub_Tensor, x, CALL(k, aten_unsqueeze_default, mean, INT(1)));
    Value right = CALL(k, aten_t_default, weighted ? CALL(k, aten_mul_Tensor, x, w) : x);
    k->out = CALL(k, aten_squeeze_default,
                  CALL(k, aten_div_Scalar, CALL(k, aten_mm_default, x, right), norm));
    return eager_ok(k->x);
}

bool kern_corrcoef(K *k) {
    Value c = CALL(k, aten_cov_default, k->args[0]);
    if (!eager_ok(k->x))
        return false;
    if (tensor_at(&c)->ndim == 0) {
        k->out = CALL(k, aten_div_Tensor, c, c);
        return eager_ok(k->x);
    }
    Value sd = CALL(k, aten_sqrt_default, CALL(k, aten_diagonal_default, c));
    c = CALL(k, aten_div_Tensor, c, CALL(k, aten_unsqueeze_default, sd, INT(1)));
    c = CALL(k, aten_div_Tensor, c, CALL(k, aten_unsqueeze_default, sd, INT(0)));
    k->out = CALL(k, aten_clamp_default, c, INT(-1), INT(1));
    return eager_ok(k->x);
}

static double number_at(const Value *v) {
    double f = 0;
    val_as_float(v, &f);
    return f;
}

// cumulative_trapezoid(y, *, dx, dim), (y, x, *, dim)
bool kern_cumulative_trapezoid(K *k) {
    bool by_x = k->op->args[1].type == AT_tensor;
    Value y = k->args[0], dim = k->args[2], step = by_x ? NONE : k->args[1];
    int d;
    if (!k_dim(k, ki(k, 2, -1), k->in[0]->ndim, &d))
        return false;
    int64_t n = k->in[0]->ndim ? k->in[0]->size[d] : 0, most = n > 1 ? n - 1 : 0;
    Value sum =
        CALL(k, aten_add_Tensor, CALL(k, aten_narrow_default, y, dim, INT(n > 1), INT(most)),
             CALL(k, aten_narrow_default, y, dim, INT(0), INT(most)));
    if (by_x) {
        const Tensor *x = k->in[1];
        int along = x->ndim == 1 ? 0 : d;
        Value v = k->args[1];
        step = CALL(k, aten_diff_default, v, INT(1), INT(along));
        for (int i = d + 1; x->ndim == 1 && i < k->in[0]->ndim; i++)
            step = CALL(k, aten_unsqueeze_default, step, INT(-1));
        sum = CALL(k, aten_mul_Tensor, sum, step);
    } else
        sum = CALL(k, aten_mul_Scalar, sum, FLT(number_at(&step) / 2));
    k->out = CALL(k, aten_cumsum_default, by_x ? CALL(k, aten_div_Scalar, sum, FLT(2)) : sum, dim);
    return eager_ok(k->x);
}

// combinations(self, r, with_replacement)
bool kern_combinations(K *k) {
    int64_t n = tensor_numel(k->in[0]), r = ki(k, 1, 2), count = 0;
    bool again = kb(k, 2);
    enum { MOST = 1 << 24 };
    if (k->in[0]->ndim != 1 || r < 0 || r > 62)
        return k_fail(k,
                      "RuntimeError: Expect a 1D vector and a number of elements that is not "
                      "negative, but got %d dimensions and %lld",
                      k->in[0]->ndim, (long long)r);
    VEC(int64_t) places = {0};
    int64_t at[64];
    for (int64_t i = 0; i < r; i++)
        at[i] = again ? 0 : i;
    bool more = r > 0 && (again ? n > 0 : r <= n);
    while (more && count * r < MOST) {
        for (int64_t i = 0; i < r; i++)
            vec_push(k->x->arena, &places, at[i]);
        count++;
        int64_t i = r - 1;
        while (i >= 0 && at[i] == (again ? n - 1 : n - r + i))
            i--;
        more = i >= 0;
        for (int64_t j = i; more && j < r; j++)
            at[j] = j == i ? at[j] + 1 : again ? at[i] : at[j - 1] + 1;
    }
    if (more)
        return k_fail(k, "RuntimeError: combinations: more than %d numbers", MOST);
    if (r == 0) {
        int64_t none = 0;
        Tensor *t = eager_new(k->x, k->in[0]->dtype, 1, &none);
        k->out = t ? tensor_value(k->x, t) : NONE;
        return t != NULL;
    }
    int64_t total = count * r;
    Tensor *index = eager_new(k->x, DT_i64, 1, &total);
    if (!index)
        return false;
    for (int64_t i = 0; i < total; i++)
        put_i(index, i, places.at[i]);
    Value v = CALL(k, aten_index_select_default, k->args[0], INT(0), tensor_value(k->x, index));
    k->out = CALL(k, aten_view_default, v, list_value(k->x, INT(count), INT(r), END));
    return eager_ok(k->x);
}

// vander(x, N, increasing), linalg_vander(x, *, N)
bool kern_vander(K *k) {
    bool plain = strcmp(k->op->name, "vander") == 0;
    const Tensor *x = k->in[0];
    int64_t n = ki(k, 1, x->ndim ? x->size[x->ndim - 1] : 0);
    if (n < 0 || (plain ? x->ndim != 1 : x->ndim < 1))
        return k_fail(k,
                      "RuntimeError: %s: expected a vector and N that is not negative, but got "
                      "%d dimensions and %lld",
                      k->op->name, x->ndim, (long long)n);
    Value v = CALL(k, aten_unsqueeze_default, k->args[0], INT(-1));
    Value powers = CALL(k, aten_arange_default, INT(n));
    if (plain && !kb(k, 2))
        powers = CALL(k, aten_flip_default, powers, list_value(k->x, INT(0), END));
    v = CALL(k, aten_pow_Tensor_Tensor, v, powers);
    k->out =
        is_int_like(x->dtype) || !eager_ok(k->x) ? v : CALL(k, aten_to_dtype, v, DTY(x->dtype));
    return eager_ok(k->x);
}

// fft_fftfreq(n, d), fft_rfftfreq(n, d)
bool kern_fftfreq(K *k) {
    int64_t n = ki(k, 0, 0), half = (n + 1) / 2;
    bool real = strcmp(k->op->name, "fft_rfftfreq") == 0;
    Tensor *out = k->res[0];
    for (int64_t i = 0; i < tensor_numel(out); i++) {
        double f = (double)(real || i < half ? i : i - n);
        put_d(out, i,
              round_to(out->dtype, f) * round_to(out->dtype, 1 / ((double)n * kf(k, 1, 1))));
    }
    return true;
}

// fft_fftshift(self, dim), fft_ifftshift
bool kern_fftshift(K *k) {
    const Tensor *x = k->in[0];
    int64_t dims[TENSOR_DIMS], by[TENSOR_DIMS];
    bool back = strcmp(k->op->name, "fft_ifftshift") == 0;
    int n = k_given(k, 1) ? kints(k, 1, dims, TENSOR_DIMS) : x->ndim;
    for (int i = 0, d; i < n; i++) {
        if (!k_given(k, 1))
            dims[i] = i;
        if (!k_dim(k, dims[i], x->ndim, &d))
            return false;
        int64_t size = x->ndim ? x->size[d] : 1;
        by[i] = back ? (size + 1) / 2 : size / 2;
    }
    if (n < 0)
        return k_fail(k, "RuntimeError: %s: too many dimensions", k->op->name);
    k->out =
        CALL(k, aten_roll_default, k->args[0], ints_value(k->x, by, n), ints_value(k->x, dims, n));
    return eager_ok(k->x);
}

// norm_except_dim(v, pow, dim)
bool kern_norm_except_dim(K *k) {
    Value v = k->args[0], p = FLT((double)ki(k, 1, 2));
    int64_t dim = ki(k, 2, 0), size[TENSOR_DIMS];
    int n = k->in[0]->ndim;
    if (dim == -1) {
        k->out = CALL(k, aten_norm_Scalar, v, p);
        return eager_ok(k->x);
    }
    if (n == 0 || (dim != 0 && dim != n - 1)) {
        v = CALL(k, aten_transpose_int, v, INT(0), INT(dim));
        v = CALL(k, aten_norm_except_dim_default, v, k->args[1], INT(0));
        k->out = CALL(k, aten_transpose_int, v, INT(0), INT(dim));
        return eager_ok(k->x);
    }
    for (int i = 0; i < n; i++)
        size[i] = i == dim ? k->in[0]->size[i] : 1;
    Value shape = ints_value(k->x, size, n);
    Value flat = dim == 0 ? list_value(k->x, INT(k->in[0]->size[0]), INT(-1), END)
                          : list_value(k->x, INT(-1), INT(k->in[0]->size[n - 1]), END);
    v = CALL(k, aten_reshape_default, v, flat);
    v = CALL(k, aten_norm_ScalarOpt_dim, v, p, list_value(k->x, INT(dim == 0), END));
    k->out = CALL(k, aten_view_default, v, shape);
    return eager_ok(k->x);
}

// cosine_embedding_loss(input1, input2, target, margin, reduction)
bool kern_cosine_embedding_loss(K *k) {
    const double tiny = 1e-12;
    Value a = k->args[0], b = k->args[1], y = k->args[2];
    if (!k->in[1] || !k->in[2] || k->in[2]->ndim > 1)
        return k_fail(k,
                      "RuntimeError: 0D or 1D target tensor expected, multi-target not supported");
    Value dim = list_value(k->x, INT(k->in[2]->ndim), END);
    Value ab = CALL(k, aten_sum_dim_IntList, CALL(k, aten_mul_Tensor, a, b), dim);
    Value aa = CALL(k, aten_sum_dim_IntList, CALL(k, aten_mul_Tensor, a, a), dim);
    Value bb = CALL(k, aten_sum_dim_IntList, CALL(k, aten_mul_Tensor, b, b), dim);
    aa = CALL(k, aten_add_Scalar, aa, FLT(tiny));
    bb = CALL(k, aten_add_Scalar, bb, FLT(tiny));
    Value cos =
        CALL(k, aten_div_Tensor, ab, CALL(k, aten_sqrt_default, CALL(k, aten_mul_Tensor, aa, bb)));
    Value zero = CALL(k, aten_zeros_like_default, cos);
    Value pos = CALL(k, aten_rsub_Scalar, cos, INT(1));
    Value neg = CALL(k, aten_clamp_min_default, CALL(k, aten_sub_Scalar, cos, k->args[3]), INT(0));
    Value out = CALL(k, aten_add_Tensor,
                     CALL(k, aten_where_self, CALL(k, aten_eq_Scalar, y, INT(1)), pos, zero),
                     CALL(k, aten_where_self, CALL(k, aten_eq_Scalar, y, INT(-1)), neg, zero));
    int64_t how = ki(k, 4, 1);
    k->out = how == 1   ? CALL(k, aten_mean_default, out)
             : how == 2 ? CALL(k, aten_sum_default, out)
                        : out;
    return eager_ok(k->x);
}

bool kern_multilabel_margin_total(K *k) {
    k->out = item(
        CALL(k, aten_multilabel_margin_loss_forward_default, k->args[0], k->args[1], k->args[2]),
        0);
    return eager_ok(k->x);
}

// gradient(self, *, spacing, dim, edge_order): spacing a number, one a dimension, or places

static Value gradient_along(K *k, Value x, int64_t dim, Value spacing, int64_t order) {
    const Tensor *t = tensor_at(&x);
    int64_t n = t->size[dim];
    Value d = INT(dim), inner, first, last;
#define AT(start, len) CALL(k, aten_narrow_default, x, d, INT(start), INT(len))
#define SUB(a, b)      CALL(k, aten_sub_Tensor, a, b)
    Value twice = FLT(2 * number_at(&spacing));
    inner = CALL(k, aten_div_Scalar, SUB(AT(2, n - 2), AT(0, n - 2)), twice);
    if (order == 1) {
        first = CALL(k, aten_div_Scalar, SUB(AT(1, 1), AT(0, 1)), spacing);
        last = CALL(k, aten_div_Scalar, SUB(AT(n - 1, 1), AT(n - 2, 1)), spacing);
    } else {
        Value a = CALL(k, aten_mul_Scalar, AT(0, 1), FLT(-1.5));
        a = CALL(k, aten_add_Tensor, a, CALL(k, aten_mul_Scalar, AT(1, 1), FLT(2)));
        first =
            CALL(k, aten_div_Scalar, SUB(a, CALL(k, aten_mul_Scalar, AT(2, 1), FLT(0.5))), spacing);
        Value b = CALL(k, aten_mul_Scalar, AT(n - 1, 1), FLT(1.5));
        b = SUB(b, CALL(k, aten_mul_Scalar, AT(n - 2, 1), FLT(2)));
        last = CALL(k, aten_div_Scalar,
                    CALL(k, aten_add_Tensor, b, CALL(k, aten_mul_Scalar, AT(n - 3, 1), FLT(0.5))),
                    spacing);
    }
#undef AT
#undef SUB
    return CALL(k, aten_cat_default, list_value(k->x, first, inner, last, END), d);
}

static Value add(K *k, Value a, Value b) {
    return CALL(k, aten_add_Tensor, a, b);
}

static Value times(K *k, Value a, Value b) {
    return CALL(k, aten_mul_Tensor, a, b);
}

// -a / b or a / b
static Value over(K *k, bool negative, Value a, Value b) {
    return CALL(k, aten_div_Tensor, negative ? CALL(k, aten_neg_default, a) : a, b);
}

// Weights of three samples by the steps h between them, multiplied and summed from the left.
static Value weighted(K *k, Value x, Value dim, int64_t from, int64_t len, const Value w[3]) {
    Value sum = NONE;
    for (int i = 0; i < 3; i++) {
        Value s = CALL(k, aten_narrow_default, x, dim, INT(from + i), INT(len));
        s = times(k, w[i], s);
        sum = i ? add(k, sum, s) : s;
    }
    return sum;
}

// One-sided: by the step h next to the end, or by the one behind it too.
static Value gradient_at_end(K *k, Value x, Value dim, Value steps, bool last, int64_t order) {
    int64_t n = tensor_at(&x)->size[dim.i];
    Value zero = INT(0), h = CALL(k, aten_select_int, steps, zero, INT(last ? -1 : 0));
    if (order == 1) {
        Value to = CALL(k, aten_narrow_default, x, dim, INT(last ? n - 1 : 1), INT(1));
        Value from = CALL(k, aten_narrow_default, x, dim, INT(last ? n - 2 : 0), INT(1));
        return over(k, false, CALL(k, aten_sub_Tensor, to, from), h);
    }
    Value g = CALL(k, aten_select_int, steps, zero, INT(last ? -2 : 1)), both = add(k, h, g);
    Value twice = add(k, CALL(k, aten_mul_Scalar, h, FLT(2)), g);
    Value near = over(k, !last, twice, times(k, h, both)),
          far = over(k, !last, h, times(k, g, both));
    Value w[3] = {last ? far : near, over(k, last, both, times(k, h, g)), last ? near : far};
    return weighted(k, x, dim, last ? n - 3 : 0, 1, w);
}

static Value gradient_by_places(K *k, Value x, int64_t dim, Value places, int64_t order) {
    int64_t n = tensor_at(&x)->size[dim], shape[TENSOR_DIMS], m;
    if (tensor_at(&places)->ndim != 1) {
        k_fail(k,
               "RuntimeError: torch.gradient expected each element of spacing to have one "
               "dimension, but got an element with %d dimensions!",
               tensor_at(&places)->ndim);
        return NONE;
    }
    Value zero = INT(0), steps = CALL(k, aten_diff_default, places, INT(1), zero), d = INT(dim);
    m = tensor_numel(tensor_at(&places)) - 2;
    for (int i = 0; i < TENSOR_DIMS; i++)
        shape[i] = i == dim ? -1 : 1;
    if (m < 0 || !eager_ok(k->x))
        return NONE;
    Value g = CALL(k, aten_narrow_default, steps, zero, zero, INT(m)),
          h = CALL(k, aten_narrow_default, steps, zero, INT(1), INT(m)), both = add(k, g, h);
    Value w[3] = {over(k, true, h, times(k, g, both)),
                  over(k, false, CALL(k, aten_sub_Tensor, h, g), times(k, g, h)),
                  over(k, false, g, times(k, h, both))};
    for (int i = 0; i < 3; i++)
        w[i] = CALL(k, aten_reshape_default, w[i], ints_value(k->x, shape, tensor_at(&x)->ndim));
    Value inner = weighted(k, x, d, 0, n - 2, w);
    Value first = gradient_at_end(k, x, d, steps, false, order),
          last = gradient_at_end(k, x, d, steps, true, order);
    return CALL(k, aten_cat_default, list_value(k->x, first, inner, last, END), d);
}

bool kern_gradient(K *k) {
    int s = op_arg_index(k->op, "spacing"), at = op_arg_index(k->op, "dim");
    int64_t dims[TENSOR_DIMS], order = ki(k, karg(k, "edge_order"), 1);
    int n = k_given(k, at) ? kints(k, at, dims, TENSOR_DIMS) : k->in[0]->ndim, d;
    k->out = val_list(k->x->arena, VAL_list, n < 0 ? 0 : n);
    for (int i = 0; i < n; i++) {
        if (!k_given(k, at))
            dims[i] = i;
        Value h = s < 0 || k->args[s].kind == VAL_none ? INT(1)
                  : k->args[s].kind == VAL_list || k->args[s].kind == VAL_tuple
                      ? item(k->args[s], i)
                      : k->args[s];
        if (!k_dim(k, dims[i], k->in[0]->ndim, &d))
            return false;
        if (k->in[0]->ndim == 0 || k->in[0]->size[d] < order + 1 || order < 1 || order > 2)
            return k_fail(k, "RuntimeError: torch.gradient expected each dimension size to be at "
                             "least edge_order+1");
        k->out.at[i] = h.kind == VAL_tensor ? gradient_by_places(k, k->args[0], d, h, order)
                                            : gradient_along(k, k->args[0], d, h, order);
        if (!eager_ok(k->x))
            return false;
    }
    return eager_ok(k->x);
}

// histogramdd(self, bins, range, weight, density): bins as one number, one a dimension, or edges
bool kern_histogramdd_all(K *k) {
    Value bins = k->args[1], edges;
    if (bins.kind == VAL_int) {
        int64_t n = k->in[0]->ndim ? k->in[0]->size[k->in[0]->ndim - 1] : 0, each[TENSOR_DIMS];
        for (int64_t i = 0; i < n && i < TENSOR_DIMS; i++)
            each[i] = bins.i;
        bins = ints_value(k->x, each, n < TENSOR_DIMS ? (int)n : TENSOR_DIMS);
    }
    bool given = bins.n > 0 && bins.at[0].kind == VAL_tensor;
    Value counts;
    if (given) {
        edges = bins;
        counts = CALL(k, aten__histogramdd_from_bin_tensors_default, k->args[0], bins, k->args[3],
                      k->args[4]);
    } else {
        edges = CALL(k, aten__histogramdd_bin_edges_default, k->args[0], bins, k->args[2],
                     k->args[3], k->args[4]);
        counts = CALL(k, aten__histogramdd_from_bin_cts_default, k->args[0], bins, k->args[2],
                      k->args[3], k->args[4]);
    }
    k->out = tuple_value(k->x, counts, edges, END);
    return eager_ok(k->x);
}
