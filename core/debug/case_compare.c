// case_compare.c: results against recorded ones: bits for integers, bools and moved elements,
// tolerances for floats, strides of results where they are promised.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/debug/case.h"

enum { MAX_STEPS = 1 };

static const CaseTolerance tolerances[] = {
#define TOLERANCE(op, f32r, f32a, f64r, f64a, lowr, lowa, why)                                     \
    {op, {f32r, f64r, lowr, lowr}, {f32a, f64a, lowa, lowa}, why},
#include "core/debug/tolerances.def"
#undef TOLERANCE
};

const CaseTolerance *case_tolerance(const char *op) {
    for (int i = 0; i < COUNT(tolerances); i++) {
        size_t n = strlen(tolerances[i].op);
        if (n && strncmp(op, tolerances[i].op, n) == 0 && (op[n] == '.' || op[n] == 0))
            return &tolerances[i];
    }
    return NULL;
}

// One op in a low dtype gives the exact result rounded, or a neighbour of that, unless it has a
// row. What it is taken apart into rounds more often: torch.testing's tolerances.
static bool by_steps(const char *op, DType d, unsigned how) {
    const CaseTolerance *t = case_tolerance(op);
    return (how & SAME_one_op) && dtype_is_low(d) && !(t && t->rtol[d == DT_bf16 ? 2 : 3] >= 0);
}

static bool within_steps(const Tensor *got, const Tensor *want) {
    for (int64_t i = 0, n = tensor_numel(got); i < n; i++) {
        double g = tensor_get_f64(got, i), w = tensor_get_f64(want, i);
        if (g == w || (isnan(g) && isnan(w)))
            continue;
        if (!isfinite(g) || !isfinite(w) || dtype_ulp_distance(got->dtype, g, w) > MAX_STEPS)
            return false;
    }
    return true;
}

static void tolerance_of(const char *op, DType d, double *rtol, double *atol) {
    const CaseTolerance *t = case_tolerance(op);
    int i = d == DT_f32 ? 0 : d == DT_f64 ? 1 : d == DT_bf16 ? 2 : 3;
    dtype_tolerance(d, rtol, atol);
    if (t && dtype_is_float(d) && t->rtol[i] >= 0) {
        *rtol = t->rtol[i];
        *atol = t->atol[i];
    }
}

static bool same_shape(const Tensor *got, const Tensor *want, unsigned how, Buf *why) {
    if (got->dtype != want->dtype || got->ndim != want->ndim) {
        buf_printf(why, "a %s of %d dimensions, expected %s of %d", dtype_info[got->dtype].abbr,
                   got->ndim, dtype_info[want->dtype].abbr, want->ndim);
        return false;
    }
    for (int i = 0; i < got->ndim; i++)
        if (got->size[i] != want->size[i] ||
            ((how & SAME_strides) && got->stride[i] != want->stride[i])) {
            buf_printf(why, "size %lld stride %lld in dimension %d, expected %lld and %lld",
                       (long long)got->size[i], (long long)got->stride[i], i,
                       (long long)want->size[i], (long long)want->stride[i]);
            return false;
        }
    return true;
}

static bool same_tensor(const char *op, const Tensor *got, const Tensor *want, unsigned how,
                        Buf *why) {
    if (!same_shape(got, want, how, why))
        return false;
    if (str_starts(op, "aten.empty") || str_starts(op, "aten.new_empty"))
        return true;
    double rtol, atol;
    TensorDiff diff;
    tolerance_of(op, got->dtype, &rtol, &atol);
    if (by_steps(op, got->dtype, how)) {
        if (within_steps(got, want))
            return true;
        rtol = atol = 0;
    }
    if (!dtype_is_float(got->dtype))
        rtol = atol = 0;
    tensor_diff(got, want, rtol, atol, &diff);
    if (diff.bad || diff.nan_differs) {
        buf_printf(
            why,
            "%lld of %lld elements differ, first %lld: %.9g, expected %.9g; max abs %.3g rel %.3g",
            (long long)diff.bad, (long long)diff.numel, (long long)diff.first_bad,
            diff.first_bad >= 0 ? tensor_get_f64(got, diff.first_bad) : 0,
            diff.first_bad >= 0 ? tensor_get_f64(want, diff.first_bad) : 0, diff.max_abs,
            diff.max_rel);
        return false;
    }
    return true;
}

bool case_same(const char *op, const RtValue *got, const RtValue *want, unsigned how, Buf *why) {
    if (got->kind == RT_tensor && want->kind == RT_tensor)
        return same_tensor(op, &got->tensor, &want->tensor, how, why);
    bool number = (got->kind == RT_float || got->kind == RT_int) &&
                  (want->kind == RT_float || want->kind == RT_int);
    if (number) {
        double a = got->kind == RT_int ? (double)got->i : got->f,
               b = want->kind == RT_int ? (double)want->i : want->f;
        if (a == b || (a != a && b != b))
            return true;
        buf_printf(why, "%.17g, expected %.17g", a, b);
        return false;
    }
    bool ok = got->kind == want->kind && got->n == want->n;
    if (ok && got->kind == RT_bool)
        ok = got->b == want->b;
    if (!ok)
        buf_puts(why, "a value of another kind");
    for (int i = 0; ok && got->kind == RT_list && i < got->n; i++)
        ok = case_same(op, &got->at[i], &want->at[i], how, why);
    return ok;
}

bool case_same_as_exact(const char *op, const RtValue *got, const RtValue *want,
                        const RtValue *exact, unsigned how) {
    Arena scratch = {0};
    Buf why = {.arena = &scratch};
    bool ok = got->kind == RT_tensor && want->kind == RT_tensor && exact->kind == RT_tensor &&
              dtype_is_float(want->tensor.dtype) &&
              same_shape(&got->tensor, &want->tensor, how, &why) &&
              exact->tensor.ndim == want->tensor.ndim;
    for (int i = 0; ok && i < want->tensor.ndim; i++)
        ok = exact->tensor.size[i] == want->tensor.size[i];
    double rtol, atol;
    if (ok) {
        tolerance_of(op, want->tensor.dtype, &rtol, &atol);
        if (by_steps(op, want->tensor.dtype, how))
            rtol = atol = 0;
        ok = tensor_close_to_exact(&got->tensor, &want->tensor, &exact->tensor, rtol, atol);
    }
    arena_free(&scratch);
    return ok;
}

// Columns of vectors (rows if `rows`) that are determined up to their sign take the sign of the
// recorded ones.
static void align_signs(Tensor *got, const Tensor *want, bool rows) {
    bool same = got->ndim == want->ndim && got->ndim >= 2;
    for (int i = 0; same && i < got->ndim; i++)
        same = got->size[i] == want->size[i];
    if (!same)
        return;
    int64_t m = got->size[got->ndim - 2], n = got->size[got->ndim - 1], each = m * n;
    for (int64_t b = 0; b < tensor_numel(got); b += each)
        for (int64_t v = 0; v < (rows ? m : n); v++) {
            double dot = 0;
            for (int64_t i = 0; i < (rows ? n : m); i++) {
                int64_t at = b + (rows ? v * n + i : i * n + v);
                dot += tensor_get_f64(got, at) * tensor_get_f64(want, at);
            }
            for (int64_t i = 0; dot < 0 && i < (rows ? n : m); i++) {
                int64_t at = b + (rows ? v * n + i : i * n + v);
                tensor_set_f64(got, at, -tensor_get_f64(got, at));
            }
        }
}

void case_settle_signs(const Op *op, RtValue *out, int n_out, const RtValue *const *want,
                       int n_want) {
    for (int i = 0; i < n_out && i < n_want; i++) {
        bool eigen = op->id == OP_aten__linalg_eigh_default && i == 1,
             left = op->id == OP_aten__linalg_svd_default && i == 0;
        bool right = op->id == OP_aten__linalg_svd_default && i == 2;
        if ((eigen || left || right) && out[i].kind == RT_tensor && want[i]->kind == RT_tensor)
            align_signs(&out[i].tensor, &want[i]->tensor, right);
    }
}
