// cases.c: `fxray cases`: each line is bound to its op's schema, run by the reference kernels, and
// compared with what PyTorch gave: bits for integers, bools and moved elements, tolerances for
// floats, strides of results always.
#include "core/debug/cases.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/file.h"
#include "core/base/json.h"
#include "core/debug/case_values.h"
#include "core/eager/eager.h"

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

typedef struct Tally {
    int passed, failed, skipped;
    Map failures; // op -> how many
    Buf *report;
} Tally;

static void tolerance_of(const char *op, DType d, double *rtol, double *atol) {
    const CaseTolerance *t = case_tolerance(op);
    int i = d == DT_f32 ? 0 : d == DT_f64 ? 1 : d == DT_bf16 ? 2 : 3;
    dtype_tolerance(d, rtol, atol);
    if (t && dtype_is_float(d) && t->rtol[i] >= 0) {
        *rtol = t->rtol[i];
        *atol = t->atol[i];
    }
}

static bool same_tensor(const char *op, const Tensor *got, const Tensor *want, Buf *why) {
    if (got->dtype != want->dtype || got->ndim != want->ndim) {
        buf_printf(why, "a %s of %d dimensions, expected %s of %d", dtype_info[got->dtype].abbr,
                   got->ndim, dtype_info[want->dtype].abbr, want->ndim);
        return false;
    }
    for (int i = 0; i < got->ndim; i++)
        if (got->size[i] != want->size[i] || got->stride[i] != want->stride[i]) {
            buf_printf(why, "size %lld stride %lld in dimension %d, expected %lld and %lld",
                       (long long)got->size[i], (long long)got->stride[i], i,
                       (long long)want->size[i], (long long)want->stride[i]);
            return false;
        }
    if (str_starts(op, "aten.empty") || str_starts(op, "aten.new_empty"))
        return true;
    double rtol, atol;
    TensorDiff diff;
    tolerance_of(op, got->dtype, &rtol, &atol);
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

static bool same(const char *op, const RtValue *got, const RtValue *want, Buf *why) {
    if (got->kind == RT_tensor && want->kind == RT_tensor)
        return same_tensor(op, &got->tensor, &want->tensor, why);
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
        ok = same(op, &got->at[i], &want->at[i], why);
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

static void settle_signs(const Op *op, RtValue *out, const RtValue *want) {
    if (want->kind != RT_list || want->n != op->n_returns)
        return;
    for (int i = 0; i < want->n; i++) {
        bool eigen = op->id == OP_aten__linalg_eigh_default && i == 1,
             left = op->id == OP_aten__linalg_svd_default && i == 0;
        bool right = op->id == OP_aten__linalg_svd_default && i == 2;
        if ((eigen || left || right) && out[i].kind == RT_tensor && want->at[i].kind == RT_tensor)
            align_signs(&out[i].tensor, &want->at[i].tensor, right);
    }
}

// Results as one value: a single one, or a list.
static RtValue results_of(Arena *a, RtValue *out, int n) {
    if (n == 1)
        return out[0];
    RtValue list = {.kind = RT_list, .n = n, .at = ARENA_ARRAY(a, n + 1, RtValue)};
    memcpy(list.at, out, (size_t)n * sizeof *out);
    return list;
}

static bool check_after(const char *name, const Json *line, RtValue *args, int n, Arena *a,
                        Buf *why, Diag *d) {
    const Json *after = json_get(line, "args_after");
    int i = 0;
    for (const Json *j = after ? after->child : NULL; j && i < n; j = j->next, i++) {
        RtValue want;
        if (!case_value(a, j, &want, d))
            return false;
        bool ok = want.kind != RT_tensor || same(name, &args[i], &want, why);
        rt_drop(&want);
        if (!ok)
            return false;
    }
    return true;
}

static void fail(Tally *t, const char *name, const char *why) {
    t->failed++;
    map_put_int(&t->failures, name, map_get_int(&t->failures, name, 0) + 1);
    buf_printf(t->report, "%s: %s\n", name, why);
}

// as_strided counts in a storage of which only the argument's window is recorded: what reaches
// beyond is lost.
static bool is_lost(const Op *op, const RtValue *args) {
    if (op->id != OP_aten_as_strided_default || args[0].kind != RT_tensor ||
        args[1].kind != RT_list)
        return false;
    int64_t last = args[3].kind == RT_int ? args[3].i : 0;
    for (int i = 0; i < args[1].n && i < args[2].n; i++)
        last += (args[1].at[i].i - 1) * args[2].at[i].i;
    const Tensor *t = &args[0].tensor;
    return last * dtype_info[t->dtype].bytes >= (int64_t)storage_bytes(t->storage);
}

static void drop_all(RtValue *v, int n) {
    for (int i = 0; i < n; i++)
        rt_drop(&v[i]);
}

static void run_case(Str text, Tally *t) {
    Arena a = {0};
    Diag d = {.arena = &a};
    Json *line = json_parse(&a, text, "case", &d);
    const char *name =
        line ? arena_strdup(t->report->arena, json_str(json_get(line, "op"), "")) : "";
    const Op *op = line ? op_find(name) : NULL;
    Buf why = {.arena = &a};
    if (!op || !eager_has(op->id)) {
        t->skipped++;
        arena_free(&a);
        return;
    }
    RtValue *args = ARENA_ARRAY(&a, op->n_args + 1, RtValue),
            *out = ARENA_ARRAY(&a, op->n_returns + 1, RtValue), want = {0};
    Generator generator = {.left = 0};
    EagerCtx c = {.arena = &a, .diag = &d, .threads = 1, .generator = &generator};
    generator_seed(&generator, (uint64_t)json_int(json_get(line, "seed"), 0));
    bool ok = case_bind(&a, op, line, args, &d);
    if (ok && is_lost(op, args)) {
        t->skipped++;
        drop_all(args, op->n_args);
        arena_free(&a);
        return;
    }
    ok = ok && case_value(&a, json_get(line, "out"), &want, &d) && eager_call(&c, op, args, out);
    if (ok) {
        settle_signs(op, out, &want);
        RtValue got = results_of(&a, out, op->n_returns);
        ok = (op->n_returns == 0 || same(name, &got, &want, &why)) &&
             check_after(name, line, args, op->n_args, &a, &why, &d);
    }
    if (ok)
        t->passed++;
    else
        fail(t, name, why.len ? buf_str(&why) : diag_first(&d));
    drop_all(args, op->n_args);
    drop_all(out, op->n_returns);
    rt_drop(&want);
    arena_free(&a);
}

int cases_run(const char *path, const char *backend, Buf *report, Diag *d) {
    Tally t = {.failures = {.arena = report->arena}, .report = report};
    if (backend && *backend && strcmp(backend, "eager") != 0) {
        diag_fail(d, "the backend '%s' runs no single ops, expected eager", backend);
        return -1;
    }
    Str text = file_read(report->arena, path, d);
    if (!text.ptr)
        return -1;
    for (size_t at = 0; at < text.len;) {
        const char *end = memchr(text.ptr + at, '\n', text.len - at);
        size_t len = end ? (size_t)(end - text.ptr) - at : text.len - at;
        if (len)
            run_case((Str){text.ptr + at, len}, &t);
        at += len + 1;
    }
    for (MapEntry *e = map_first(&t.failures); e; e = map_next(&t.failures, e))
        buf_printf(report, "%5lld  %s\n", (long long)e->i, e->key);
    buf_printf(report, "%d passed, %d failed, %d skipped\n", t.passed, t.failed, t.skipped);
    return t.failed;
}
