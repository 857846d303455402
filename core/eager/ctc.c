// ctc.c: the loss of connectionist temporal classification (Graves and others, 2006): all ways
// of reading a target from a sequence of labels, with blanks between its letters; its gradient.
// Both are recursions in logarithms over (time, place in the target with blanks); each step's
// numbers are stored in the dtype of the probabilities.
#include "core/eager/kernel.h"

#include <math.h>
#include <string.h>

static const char *const where = "(while checking arguments for ctc_loss_allocate_outputs)";

typedef struct Ctc {
    const Tensor *probs, *targets; // (time, batch, labels) contiguous; int64
    DType dtype;
    int64_t time, batch, labels, blank, wide; // wide: places of the longest target
    int64_t *times, *letters, *first;         // by batch: lengths, and where the target begins
    double *alpha;                            // (batch, time, wide)
} Ctc;

static int64_t letter(const Ctc *c, int64_t b, int64_t s) {
    return s % 2 ? get_i(c->targets, c->first[b] + s / 2) : c->blank;
}

static double prob(const Ctc *c, int64_t b, int64_t t, int64_t label) {
    return get_d(c->probs, (t * c->batch + b) * c->labels + label);
}

static double log_sum(double a, double b, double d) {
    double top = fmax(fmax(a, b), d);
    if (isinf(top) && top < 0)
        top = 0;
    return log(exp(a - top) + exp(b - top) + exp(d - top)) + top;
}

// A length for each of the batch, of a list or of a tensor.
static int64_t *lengths(K *k, int arg, int64_t batch) {
    const char *name = k->op->args[arg].name;
    const Tensor *t = kt(k, arg);
    if (t && !dtype_is_int(t->dtype)) {
        k_fail(k, "RuntimeError: %s must be integral", name);
        return NULL;
    }
    const Tensor *all = t ? eager_contiguous(k->x, t, DT_i64) : NULL;
    int64_t *n = ARENA_ARRAY(k->x->arena, batch + 1, int64_t);
    if (t ? all && tensor_numel(all) != batch
          : k->args[arg].n != batch || kints(k, arg, n, (int)batch) < 0) {
        k_fail(k, "RuntimeError: %s must be of size batch_size", name);
        return NULL;
    }
    for (int64_t i = 0; all && i < batch; i++)
        n[i] = get_i(all, i);
    return eager_ok(k->x) ? n : NULL;
}

static bool in_range(K *k, const char *name, int64_t v, int64_t most) {
    return v < 0      ? k_fail(k,
                               "RuntimeError: Expected %s to have value at least 0, but got value "
                                    "%lld %s",
                               name, (long long)v, where)
           : v > most ? k_fail(k,
                               "RuntimeError: Expected %s to have value at most %lld, but got "
                               "value %lld %s",
                               name, (long long)most, (long long)v, where)
                      : true;
}

// Where each target begins, and whether they all fit.
static bool place_targets(K *k, Ctc *c) {
    bool flat = c->targets->ndim == 1;
    int64_t at = 0, longest = 0, width = flat ? 0 : c->targets->size[1];
    bool fits = true;
    c->first = ARENA_ARRAY(k->x->arena, c->batch + 1, int64_t);
    for (int64_t b = 0; b < c->batch; b++) {
        if (!in_range(k, "target_lengths", c->letters[b], INT64_MAX))
            return false;
        c->first[b] = flat ? at : b * width;
        fits = fits && !__builtin_add_overflow(at, c->letters[b], &at);
        longest = c->letters[b] > longest ? c->letters[b] : longest;
    }
    int64_t rows = flat ? at : c->batch;
    if (!fits || c->targets->size[0] != rows)
        return k_fail(
            k,
            "RuntimeError: Expected tensor to have size %lld at dimension 0, but got size "
            "%lld for argument #2 'targets' %s",
            (long long)rows, (long long)c->targets->size[0], where);
    if (!flat && width < longest)
        return k_fail(
            k,
            "RuntimeError: Expected tensor to have size at least %lld at dimension 1, but "
            "got size %lld for argument #2 'targets' %s",
            (long long)longest, (long long)width, where);
    for (int64_t b = 0; b < c->batch; b++)
        for (int64_t s = 1; s < 2 * c->letters[b]; s += 2)
            if (letter(c, b, s) < 0 || letter(c, b, s) >= c->labels)
                return k_fail(k, "RuntimeError: target %lld is no label",
                              (long long)letter(c, b, s));
    c->wide = 2 * longest + 1;
    return true;
}

// at: of log_probs; targets and both lengths follow.
static bool read_ctc(K *k, int at, int64_t blank, Ctc *c) {
    const Tensor *x = kt(k, at), *targets = kt(k, at + 1);
    if (x->ndim != 3)
        return k_fail(k,
                      "RuntimeError: Expected 3-dimensional tensor, but got %d-dimensional tensor "
                      "for argument #1 'log_probs' %s",
                      x->ndim, where);
    if (targets->ndim != 1 && targets->ndim != 2)
        return k_fail(k,
                      "RuntimeError: Expected 1 to 2 dimensions, but got %d-dimensional tensor for "
                      "argument #2 'targets' %s",
                      targets->ndim, where);
    *c = (Ctc){.dtype = x->dtype,
               .time = x->size[0],
               .batch = x->size[1],
               .labels = x->size[2],
               .blank = blank,
               .probs = eager_contiguous(k->x, x, x->dtype),
               .targets = eager_contiguous(k->x, targets, DT_i64)};
    if (!c->probs || !c->targets)
        return false;
    if (blank < 0 || blank >= c->labels)
        return k_fail(k, "RuntimeError: blank must be in label range");
    if (!(c->times = lengths(k, at + 2, c->batch)) ||
        !(c->letters = lengths(k, at + 3, c->batch)) || !place_targets(k, c))
        return false;
    for (int64_t b = 0; b < c->batch; b++)
        if (!in_range(k, "input_lengths", c->times[b], c->time))
            return false;
    int64_t n;
    if (__builtin_mul_overflow(c->batch * c->time, c->wide, &n))
        return k_fail(k, "RuntimeError: %s: more places than there is memory", k->op->name);
    return k_room(k, n, sizeof(double));
}

// Of one time from the one before it (alpha), or after it (step -1: beta).
static void next_row(const Ctc *c, int64_t b, int64_t t, int step, const double *from, double *to) {
    int64_t places = 2 * c->letters[b] + 1;
    for (int64_t s = 0; s < places; s++) {
        int64_t s1 = s - step, s2 = s - 2 * step;
        bool one = s1 >= 0 && s1 < places, two = s2 >= 0 && s2 < places;
        two = two && letter(c, b, s2) != letter(c, b, s);
        double v = log_sum(from[s], one ? from[s1] : (double)-INFINITY,
                           two ? from[s2] : (double)-INFINITY);
        to[s] = round_to(c->dtype, v + prob(c, b, t, letter(c, b, s)));
    }
}

static double forward(const Ctc *c, int64_t b) {
    int64_t n = c->times[b], places = 2 * c->letters[b] + 1;
    double *row = c->alpha + b * c->time * c->wide;
    for (int64_t s = 0; c->time && s < c->wide; s++)
        row[s] = (double)-INFINITY;
    if (n == 0)
        return c->letters[b] ? (double)INFINITY : 0;
    for (int64_t s = 0; s < 2 && s < places; s++)
        row[s] = prob(c, b, 0, letter(c, b, s));
    for (int64_t t = 1; t < n; t++, row += c->wide)
        next_row(c, b, t, 1, row, row + c->wide);
    return places == 1 ? -row[0] : -log_sum(row[places - 1], row[places - 2], (double)-INFINITY);
}

// _ctc_loss(log_probs, targets, input_lengths, target_lengths, blank, zero_infinity)
bool kern_ctc(K *k) {
    Ctc c;
    if (!read_ctc(k, 0, ki(k, 4, 0), &c))
        return false;
    int64_t size[3] = {c.batch, c.time, c.wide}, n = c.batch * c.time * c.wide;
    Tensor *loss = eager_new(k->x, c.dtype, 1, size), *alpha = eager_new(k->x, c.dtype, 3, size);
    if (!loss || !alpha)
        return false;
    c.alpha = ARENA_ARRAY(k->x->arena, n + 1, double);
    for (int64_t b = 0; b < c.batch; b++)
        put_d(loss, b, forward(&c, b));
    for (int64_t i = 0; i < n; i++)
        put_d(alpha, i, c.alpha[i]);
    k->out = tuple_value(k->x, tensor_value(k->x, loss), tensor_value(k->x, alpha), END);
    return eager_ok(k->x);
}

// Adds the ways through the places of time t to what each label has, in logarithms.
static void collect(const Ctc *c, int64_t b, int64_t t, const double *beta, double *of_label) {
    const double *alpha = c->alpha + (b * c->time + t) * c->wide;
    for (int64_t s = 0; s < 2 * c->letters[b] + 1; s++) {
        double *to = &of_label[letter(c, b, s)];
        *to = round_to(c->dtype, log_sum(*to, alpha[s] + beta[s], (double)-INFINITY));
    }
}

static void backward(K *k, const Ctc *c, int64_t b, double loss, double grad, Tensor *out) {
    double *beta = ARENA_ARRAY(k->x->arena, 2 * c->wide + 1, double), *last = beta + c->wide;
    double *of_label = ARENA_ARRAY(k->x->arena, c->labels + 1, double);
    int64_t n = c->times[b], places = 2 * c->letters[b] + 1;
    for (int64_t t = n - 1; t >= 0; t--) {
        for (int64_t s = 0; s < places && t == n - 1; s++)
            beta[s] = s < places - 2 ? (double)-INFINITY : prob(c, b, t, letter(c, b, s));
        if (t < n - 1) {
            memcpy(last, beta, (size_t)places * sizeof *beta);
            next_row(c, b, t, -1, last, beta);
        }
        for (int64_t l = 0; l < c->labels; l++)
            of_label[l] = (double)-INFINITY;
        collect(c, b, t, beta, of_label);
        for (int64_t l = 0; l < c->labels; l++) {
            double p = prob(c, b, t, l);
            put_d(out, (t * c->batch + b) * c->labels + l,
                  (exp(p) - exp(of_label[l] + loss - p)) * grad);
        }
    }
}

// _ctc_loss_backward(grad, log_probs, targets, input_lengths, target_lengths, neg_log_likelihood,
// log_alpha, blank, zero_infinity): zero where the sequence is over, and for losses without a way
bool kern_ctc_backward(K *k) {
    Ctc c;
    if (!read_ctc(k, 1, ki(k, 7, 0), &c))
        return false;
    const Tensor *grad = eager_contiguous(k->x, kt(k, 0), DT_f64),
                 *loss = eager_contiguous(k->x, kt(k, 5), DT_f64),
                 *alpha = eager_contiguous(k->x, kt(k, 6), DT_f64);
    Tensor *out = eager_new(k->x, c.dtype, 3, c.probs->size);
    if (!grad || !loss || !alpha || !out)
        return false;
    if (tensor_numel(grad) != c.batch || tensor_numel(loss) != c.batch ||
        tensor_numel(alpha) != c.batch * c.time * c.wide)
        return k_fail(k, "RuntimeError: %s: sizes of what the loss saved do not fit", k->op->name);
    c.alpha = (double *)tensor_data(alpha);
    for (int64_t i = 0; i < tensor_numel(out); i++)
        put_d(out, i, 0);
    for (int64_t b = 0; b < c.batch; b++) {
        double v = get_d(loss, b);
        if (!kb(k, 8) || v != (double)INFINITY)
            backward(k, &c, b, v, get_d(grad, b), out);
    }
    k->out = tensor_value(k->x, out);
    return eager_ok(k->x);
}

// Lengths as a tensor, at least 1 each.
static Value divisors(K *k, int arg, DType d, int64_t batch) {
    int64_t *n = lengths(k, arg, batch);
    Tensor *t = n ? eager_new(k->x, d, 1, &batch) : NULL;
    for (int64_t b = 0; t && b < batch; b++)
        put_d(t, b, n[b] > 1 ? (double)n[b] : 1);
    return t ? tensor_value(k->x, t) : NONE;
}

// ctc_loss(log_probs, targets, input_lengths, target_lengths, blank, reduction, zero_infinity)
bool kern_ctc_loss(K *k) {
    bool one = kt(k, 0)->ndim != 3, tensors = kt(k, 2) != NULL;
    int64_t reduction = ki(k, 5, 1);
    Value x = one ? CALL(k, aten_unsqueeze_default, k->args[0], INT(1)) : k->args[0];
    Value *a = k->args, r;
    Value targets = CALL(k, aten_to_dtype, a[1], DTY(DT_i64));
    r = tensors ? CALL(k, aten__ctc_loss_Tensor, x, targets, a[2], a[3], a[4], a[6])
                : CALL(k, aten__ctc_loss_default, x, targets, a[2], a[3], a[4], a[6]);
    if (!eager_ok(k->x))
        return false;
    r = r.at[0];
    if (kb(k, 6))
        r = CALL(k, aten_where_ScalarOther, CALL(k, aten_ne_Scalar, r, FLT((double)INFINITY)), r,
                 FLT(0));
    if (reduction == 1) {
        const Tensor *t = tensor_at(&r);
        Value n = divisors(k, 3, t->dtype, t->size[0]);
        r = CALL(k, aten_mean_default, CALL(k, aten_div_Tensor, r, n));
    } else if (reduction == 2)
        r = CALL(k, aten_sum_default, r);
    else if (one)
        r = CALL(k, aten_squeeze_dim, r, INT(0));
    k->out = r;
    return eager_ok(k->x);
}
