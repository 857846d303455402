// judge.c: one result against another and against float64: distances, PyTorch's own rule, verdict.
#include "core/debug/judge.h"

#include <math.h>
#include <string.h>

const VerdictInfo verdict_info[VERDICT_count] = {
#define VERDICT(id, ...) [VERDICT_##id] = {__VA_ARGS__},
#include "core/debug/verdicts.def"
#undef VERDICT
};

enum { DEFAULT_ULP = 4 };

void print_element(Buf *out, const Tensor *t, int64_t flat) {
    int64_t index[TENSOR_DIMS];
    for (int i = t->ndim - 1; i >= 0; i--) {
        index[i] = flat % (t->size[i] ? t->size[i] : 1);
        flat /= t->size[i] ? t->size[i] : 1;
    }
    buf_putc(out, '[');
    for (int i = 0; i < t->ndim; i++)
        buf_printf(out, "%s%lld", i ? "," : "", (long long)index[i]);
    buf_putc(out, ']');
}

// ---- one element after the other

// A result as numbers: a tensor, or one number.
typedef struct Numbers {
    Tensor t; // contiguous if owned
    bool is_tensor, owned;
    double number;
    int64_t n;
} Numbers;

static Numbers numbers_of(const RtValue *v) {
    Numbers x = {.n = v ? 1 : -1};
    switch (v ? v->kind : RT_none) {
    case RT_tensor:
        x.is_tensor = true;
        x.t = v->tensor;
        x.n = tensor_numel(&v->tensor);
        break;
    case RT_int:
        x.number = (double)v->i;
        break;
    case RT_bool:
        x.number = v->b;
        break;
    case RT_float:
        x.number = v->f;
        break;
    case RT_none:
    case RT_list:
    case RT_other:
        x.n = -1;
        break;
    }
    return x;
}

static double number_at(const Numbers *x, int64_t i) {
    return x->is_tensor ? tensor_get_f64(&x->t, i) : x->number;
}

static int64_t first_odd(const Numbers *x) {
    if (x->is_tensor && !dtype_is_float(x->t.dtype))
        return -1;
    for (int64_t i = 0; i < x->n; i++)
        if (!isfinite(number_at(x, i)))
            return i;
    return -1;
}

// Of one size, dtype aside.
static bool same_size(const Numbers *a, const Numbers *b) {
    if (a->is_tensor != b->is_tensor || a->n != b->n)
        return false;
    for (int i = 0; a->is_tensor && i < a->t.ndim; i++)
        if (a->t.ndim != b->t.ndim || a->t.size[i] != b->t.size[i])
            return false;
    return true;
}

// ---- PyTorch's rule

static double rmse(const Numbers *a, const Numbers *b) {
    double sum = 0;
    for (int64_t i = 0; i < a->n; i++) {
        double d = number_at(a, i) - number_at(b, i);
        sum += d * d;
    }
    return a->n ? sqrt(sum / (double)a->n) : NAN; // the mean of nothing
}

static bool near(double x, double y, double tol) {
    if (x == y || (isnan(x) && isnan(y)))
        return true;
    return isfinite(x) && isfinite(y) && fabs(x - y) <= tol + tol * fabs(y);
}

static bool allclose(const Numbers *a, const Numbers *b, double tol) {
    for (int64_t i = 0; i < a->n; i++)
        if (!near(number_at(a, i), number_at(b, i), tol))
            return false;
    return true;
}

static bool has_nan(const Numbers *x) {
    for (int64_t i = 0; i < x->n; i++)
        if (isnan(number_at(x, i)))
            return true;
    return false;
}

// torch.nn.functional.cosine_similarity with eps 1e-6.
static double cosine(const Numbers *a, const Numbers *b) {
    double dot = 0, aa = 0, bb = 0;
    for (int64_t i = 0; i < a->n; i++) {
        double x = number_at(a, i), y = number_at(b, i);
        dot += x * y;
        aa += x * x;
        bb += y * y;
    }
    double na = sqrt(aa), nb = sqrt(bb);
    return dot / ((na < 1e-6 ? 1e-6 : na) * (nb < 1e-6 ? 1e-6 : nb));
}

static bool image_of_one(const Tensor *t) {
    return t->ndim == 4 && t->size[2] == 1 && t->size[3] == 1;
}

static double multiplier_of(const Numbers *got, double tol) {
    bool small = got->n < 1000 || image_of_one(&got->t) || tol >= 2e-2;
    return dtype_is_low(got->t.dtype) || small ? 3 : 2;
}

// Of tensors of floats that are not close.
static void by_distance(const Numbers *got, const Numbers *want, const Numbers *exact, double tol,
                        SameRule *out) {
    out->multiplier = multiplier_of(got, tol);
    out->got_rmse = rmse(got, exact);
    out->want_rmse = rmse(want, exact);
    // NaN in the reference alone is its own fault, if the result is near the exact one.
    bool only_want = has_nan(want) && !has_nan(got) && !has_nan(exact);
    bool both_nan = isnan(out->got_rmse) && isnan(out->want_rmse);
    out->passes = out->passes || (only_want && allclose(exact, got, 4e-2)) || both_nan ||
                  out->got_rmse <= out->multiplier * out->want_rmse + tol / 10;
}

static void same_rule(const RtValue *v, const Numbers *got, const Numbers *want,
                      const Numbers *exact, double tol, SameRule *out) {
    *out = (SameRule){.got_rmse = -1, .want_rmse = -1, .multiplier = 2};
    out->cosine = cosine(got, want);
    out->allclose = allclose(want, got, tol);
    bool whole = v->kind == RT_int || v->kind == RT_bool; // these are compared by ==
    out->passes = whole ? got->number == want->number : out->allclose;
    if (!got->is_tensor || !dtype_is_float(got->t.dtype))
        return;
    // Without float64 the reference stands for it, and is of use if it is of that type.
    if (exact->n >= 0)
        by_distance(got, want, exact, tol, out);
    else if (got->t.dtype == DT_f64)
        by_distance(got, want, want, tol, out);
}

// ---- the verdict

typedef struct Judge {
    Numbers got, want, exact;
    double got_rms, want_rms; // from exact by root mean squares, NaN in both places aside
    double rtol, atol;
    int64_t ulp;
    Judged *out;
} Judge;

static double off(const Numbers *a, const Numbers *exact) {
    double most = 0;
    for (int64_t i = 0; i < a->n; i++) {
        double d = fabs(number_at(a, i) - number_at(exact, i));
        if (isnan(d) && !(isnan(number_at(a, i)) && isnan(number_at(exact, i))))
            d = INFINITY;
        if (d > most)
            most = d;
    }
    return most;
}

static double rms(const Numbers *a, const Numbers *exact) {
    double sum = 0;
    for (int64_t i = 0; i < a->n; i++) {
        double x = number_at(a, i), y = number_at(exact, i);
        sum += isnan(x) && isnan(y) ? 0 : (x - y) * (x - y);
    }
    return a->n ? sqrt(sum / (double)a->n) : 0;
}

static bool close(const Judge *j, double a, double b) {
    bool finite = isfinite(a) && isfinite(b);
    return a == b || (isnan(a) && isnan(b)) ||
           (finite && fabs(a - b) <= j->atol + j->rtol * fabs(b));
}

// The first element outside the tolerance, else the one furthest apart.
static void find_element(Judge *j) {
    double most = 0;
    j->out->element = -1;
    for (int64_t i = 0; i < j->got.n; i++) {
        double g = number_at(&j->got, i), w = number_at(&j->want, i);
        if (!close(j, g, w) && !j->out->wrong++)
            j->out->element = i;
        double d = g == w || (isnan(g) && isnan(w)) ? 0 : fabs(g - w);
        if (!j->out->wrong && d > most) {
            most = d;
            j->out->element = i;
        }
    }
    int64_t at = j->out->element;
    j->out->exact = NAN;
    if (at < 0)
        return;
    j->out->got = number_at(&j->got, at);
    j->out->want = number_at(&j->want, at);
    j->out->sign = (j->out->got > j->out->want) - (j->out->got < j->out->want);
    if (j->exact.n > at)
        j->out->exact = number_at(&j->exact, at);
}

// Integers and booleans that stand on the edge of a comparison of floats: where they differ, want
// and float64 differ, too.
static Verdict verdict_of_integers(const Judge *j) {
    bool better = j->exact.n >= 0, sensitive = better;
    for (int64_t i = 0; better && i < j->got.n; i++) {
        double g = number_at(&j->got, i), w = number_at(&j->want, i), x = number_at(&j->exact, i);
        better = g == w || g == x;
    }
    for (int64_t i = 0; sensitive && !better && i < j->got.n; i++) {
        double g = number_at(&j->got, i), w = number_at(&j->want, i), x = number_at(&j->exact, i);
        sensitive = g == w || w != x;
    }
    return better ? VERDICT_better : sensitive ? VERDICT_sensitive : VERDICT_bug;
}

static int64_t outside(const Judge *j, const Numbers *a) {
    int64_t n = 0;
    for (int64_t i = 0; i < a->n; i++)
        n += !close(j, number_at(a, i), number_at(&j->exact, i));
    return n;
}

static Verdict verdict_by_exact(const Judge *j) {
    const Judged *o = j->out;
    if (j->exact.n < 0 || !j->got.is_tensor)
        return VERDICT_bug;
    if (!outside(j, &j->got))
        return o->got_off <= o->want_off ? VERDICT_better : VERDICT_rounding;
    if (tensor_near_exact(&j->got.t, &j->want.t, &j->exact.t))
        return o->got_off <= o->want_off ? VERDICT_better : VERDICT_rounding;
    bool same_odd = (o->got_nan < 0) == (o->want_nan < 0);
    // How rounding falls out in few elements is chance: PyTorch's multiplier, without its slack.
    if (same_odd && o->got_off <= 4 * o->want_off && j->got_rms <= 3 * j->want_rms)
        return VERDICT_rounding;
    if (same_odd && outside(j, &j->want) && j->got_rms <= 10 * j->want_rms)
        return VERDICT_sensitive;
    return VERDICT_bug;
}

static Verdict verdict_of(const Judge *j) {
    const Judged *o = j->out;
    bool is_float = !j->got.is_tensor || dtype_is_float(j->got.t.dtype);
    if (j->got.is_tensor && o->diff.same_bits)
        return VERDICT_same_bits;
    if (!j->got.is_tensor && (j->got.number == j->want.number))
        return VERDICT_same_bits;
    if (!is_float)
        return verdict_of_integers(j);
    bool few_ulp = j->got.is_tensor && !o->diff.nan_differs && o->got_nan == o->want_nan &&
                   o->diff.max_ulp <= j->ulp;
    if (!o->wrong || few_ulp)
        return VERDICT_rounding;
    return verdict_by_exact(j);
}

static const char *unlike(const RtValue *got, const RtValue *want) {
    if (got->kind != want->kind)
        return "a value of another kind";
    if (got->kind != RT_tensor)
        return NULL;
    if (got->tensor.dtype != want->tensor.dtype)
        return "another dtype";
    if (got->tensor.ndim != want->tensor.ndim)
        return "another number of dimensions";
    for (int i = 0; i < got->tensor.ndim; i++)
        if (got->tensor.size[i] != want->tensor.size[i])
            return "another size";
    return NULL;
}

// Generated code hands out a number as a tensor without dimensions.
static const RtValue *as_number(const RtValue *got, const RtValue *want, RtValue *number) {
    bool is_number = want && (want->kind == RT_int || want->kind == RT_float);
    if (!got || got->kind != RT_tensor || got->tensor.ndim || !is_number ||
        (want->kind == RT_int) != dtype_is_int(got->tensor.dtype))
        return got;
    *number = (RtValue){.kind = want->kind};
    if (want->kind == RT_int)
        number->i = tensor_get_i64(&got->tensor, 0);
    else
        number->f = tensor_get_f64(&got->tensor, 0);
    return number;
}

void judge_value(const RtValue *got, const RtValue *want, const RtValue *exact,
                 const Tolerance *tolerance, Judged *out) {
    RtValue number;
    got = as_number(got, want, &number);
    *out = (Judged){
        .element = -1, .got_off = -1, .want_off = -1, .got_nan = -1, .want_nan = -1, .exact = NAN,
        .spread = -1};
    bool none = !want || want->kind == RT_none;
    if ((!got || got->kind == RT_none) || none) {
        bool both = (!got || got->kind == RT_none) && none;
        out->verdict = both ? VERDICT_same_bits : VERDICT_missing;
        return;
    }
    if ((out->why = unlike(got, want))) {
        out->verdict = VERDICT_bug;
        return;
    }
    Judge j = {.got = numbers_of(got),
               .want = numbers_of(want),
               .exact = numbers_of(exact),
               .ulp = tolerance->ulp ? tolerance->ulp : DEFAULT_ULP,
               .rtol = tolerance->rtol,
               .atol = tolerance->atol,
               .out = out};
    if (!same_size(&j.exact, &j.want))
        j.exact.n = -1;
    DType d = got->kind == RT_tensor ? got->tensor.dtype : DT_f64;
    if (j.rtol == 0 && j.atol == 0)
        dtype_tolerance(tolerance->computed_in && dtype_is_float(d) ? tolerance->computed_in : d,
                        &j.rtol, &j.atol);
    if (!dtype_is_float(d) && dtype_info[d].cls != DTC_COMPLEX)
        j.rtol = j.atol = 0;
    if (got->kind == RT_tensor)
        tensor_diff(&got->tensor, &want->tensor, j.rtol, j.atol, &out->diff);
    out->got_nan = first_odd(&j.got);
    out->want_nan = first_odd(&j.want);
    same_rule(got, &j.got, &j.want, &j.exact, tolerance->repro > 0 ? tolerance->repro : 1e-3,
              &out->same);
    if (j.exact.n >= 0) {
        out->got_off = off(&j.got, &j.exact);
        out->want_off = off(&j.want, &j.exact);
        j.got_rms = rms(&j.got, &j.exact);
        j.want_rms = rms(&j.want, &j.exact);
    }
    find_element(&j);
    out->verdict = verdict_of(&j);
}

// ---- how far rounding carries

// So many times the spread of a few runs is still rounding.
enum { SPREAD_TIMES = 3 };

bool judge_asks_spread(const Judged *j) {
    return verdict_info[j->verdict].bad && !j->why && j->got_off >= 0 && isfinite(j->got_off) &&
           j->same.passes;
}

// Odd: every element is moved on its own.
int64_t spread_seed(int run) {
    return run ? 2 * run - 1 : 0;
}

void spread_add(Spread *s, const RtValue *moved, const RtValue *still) {
    Numbers m = numbers_of(moved), x = numbers_of(still);
    if (m.n < 0 || !same_size(&m, &x))
        return;
    double most = off(&m, &x), mean = rms(&m, &x);
    if (isfinite(most) && most > s->off)
        s->off = most;
    if (isfinite(mean) && mean > s->rms)
        s->rms = mean;
}

bool spread_reaches(const Spread *s, double off) {
    return off <= SPREAD_TIMES * s->off;
}

void judge_by_spread(const Spread *s, Judged *j) {
    bool known = isfinite(j->same.got_rmse) && j->same.got_rmse >= 0;
    j->spread = s->off;
    if (spread_reaches(s, j->got_off) &&
        (!known || j->same.got_rmse <= SPREAD_TIMES * s->rms))
        j->verdict = VERDICT_rounding;
}

bool judge_apart(const Tensor *got, const Tensor *want, Judged *out) {
    if (got->dtype != want->dtype || tensor_numel(got) != tensor_numel(want))
        return false;
    double rtol, atol, most = 0;
    dtype_tolerance(got->dtype, &rtol, &atol);
    RtValue g = {.kind = RT_tensor, .tensor = *got}, w = {.kind = RT_tensor, .tensor = *want};
    w.tensor.ndim = g.tensor.ndim;
    memcpy(w.tensor.size, g.tensor.size, sizeof g.tensor.size);
    memcpy(w.tensor.stride, g.tensor.stride, sizeof g.tensor.stride);
    for (int64_t i = 0; i < tensor_numel(want); i++) {
        double v = tensor_get_f64(&w.tensor, i);
        v = v < 0 ? -v : v;
        most = v > most && v < 1e300 ? v : most;
    }
    Tolerance wide = {.rtol = 20 * rtol, .atol = atol + 5 * rtol * most, .ulp = 64};
    judge_value(&g, &w, NULL, &wide, out);
    return verdict_info[out->verdict].bad;
}

const char *element_pattern(Arena *a, const Tensor *t, const bool *wrong) {
    int64_t n = tensor_numel(t), bad = 0;
    for (int64_t i = 0; i < n; i++)
        bad += wrong[i];
    if (bad == n)
        return n == 1 ? "the only element" : "every element";
    int64_t inner = 1;
    for (int d = t->ndim - 1; d >= 0; inner *= t->size[d--]) {
        // Is an element wrong just if its index in this dimension is one of a range?
        int64_t lo = -1, hi = -1, count = 0;
        bool only = true, *hit = ARENA_ARRAY(a, t->size[d] + 1, bool);
        for (int64_t i = 0; i < n; i++)
            hit[i / inner % t->size[d]] |= wrong[i];
        for (int64_t i = 0; i < n && only; i++)
            only = wrong[i] == hit[i / inner % t->size[d]];
        for (int64_t i = 0; i < t->size[d]; i++) {
            count += hit[i];
            lo = hit[i] && lo < 0 ? i : lo;
            hi = hit[i] ? i : hi;
        }
        if (!only || count != hi - lo + 1 || count == t->size[d])
            continue;
        const char *end = hi == t->size[d] - 1 ? ", the last" : lo == 0 ? ", the first" : "";
        return lo == hi ? arena_printf(a, "index %lld of dimension %d%s", (long long)lo, d, end)
                        : arena_printf(a, "indexes %lld to %lld of dimension %d%s", (long long)lo,
                                       (long long)hi, d, end);
    }
    return arena_printf(a, "%lld of %lld elements", (long long)bad, (long long)n);
}
