// judge.c: one graph on every rung, in this process, without helpers. Eager's numbers are what the
// others must give; where few bits round, nobody has to be nearer to float64 than eager is.
#include "tests/random/random.h"

#include <math.h>
#include <string.h>
#include <unistd.h>

#include "core/base/file.h"
#include "core/session_private.h"

typedef struct Run {
    const RandomCase *c;
    const char *text;
    Arena *a;
    char *where;
    Session *session;
    Judgement *out;
    HelperCall here; // as in a helper: runs are made in this process
} Run;

static bool open_session(Run *r, int64_t data, Diag *d) {
    SessionOptions o = {.grad = r->c->grad ? "params" : "none",
                        .toolchain = "tcc",
                        .backend = "eager",
                        .hints = random_hints(r->c->graph, r->a),
                        .seed = data,
                        .threads = 1};
    const char *path = arena_printf(r->a, "/tmp/fxray-random-%d.txt", (int)getpid());
    if (!file_write(path, r->text, strlen(r->text), d))
        return false;
    r->session = session_open(path, &o, d);
    unlink(path);
    if (r->session)
        r->session->here = &r->here;
    return r->session != NULL;
}

static bool run_rung(Run *r, Backend backend, bool in_f64, RunResult *out, Diag *d) {
    static char where[EXEC_WHERE_BYTES], phase[EXEC_WHERE_BYTES];
    RunRequest q = {.backend = backend, .toolchain = toolchain_find("tcc"), .in_f64 = in_f64};
    strncpy(r->where, backend_info[backend].name, EXEC_WHERE_BYTES - 1);
    r->out->n_runs++;
    r->here = (HelperCall){.where = where, .phase = phase};
    return session_run_here(r->session, &q, out, r->a, d);
}

// ---- comparison

static double at(const Tensor *x, int64_t i) {
    return dtype_is_float(x->dtype) ? tensor_get_f64(x, i) : (double)tensor_get_i64(x, i);
}

typedef struct Off {
    double most, off; // largest value; largest difference
    bool odd;         // infinite here and not there
} Off;

static Off compare(const Tensor *want, const Tensor *got) {
    Off o = {.most = 1};
    for (int64_t i = 0, n = tensor_numel(want); i < n; i++) {
        double a = at(want, i), b = at(got, i);
        o.odd = o.odd || isnan(a) != isnan(b) || isinf(a) != isinf(b);
        if (!isfinite(a) || !isfinite(b))
            continue;
        o.most = fmax(o.most, fabs(a));
        o.off = fmax(o.off, fabs(a - b));
    }
    return o;
}

static bool same_form(const Tensor *x, const Tensor *y) {
    bool same = x->ndim == y->ndim && x->dtype == y->dtype;
    for (int i = 0; same && i < x->ndim; i++)
        same = x->size[i] == y->size[i];
    return same;
}

// NULL: near enough. exact: in float64, NULL if it was not asked.
static const char *differs(Run *r, const RtValue *want, const RtValue *got, const RtValue *exact) {
    if (want->kind != got->kind)
        return "is missing, or is no tensor";
    if (want->kind != RT_tensor)
        return want->kind == RT_int && want->i != got->i ? "is another number" : NULL;
    if (!same_form(&want->tensor, &got->tensor))
        return "has other sizes or another type";
    Off o = compare(&want->tensor, &got->tensor);
    bool is_float = dtype_is_float(want->tensor.dtype);
    if (!o.odd && o.off <= (is_float ? r->c->room * o.most : 0))
        return NULL;
    if (is_float && exact && exact->kind == RT_tensor &&
        tensor_numel(&exact->tensor) == tensor_numel(&want->tensor)) {
        Off eager = compare(&exact->tensor, &want->tensor),
            it = compare(&exact->tensor, &got->tensor);
        if (!it.odd && (eager.odd || it.off <= 4 * eager.off + r->c->room * it.most))
            return NULL;
        if (it.odd && eager.odd) // overflow of few bits
            return NULL;
    }
    return arena_printf(r->a, "differs by %.3g of %.3g%s", o.off, o.most,
                        o.odd ? ", not finite in one" : "");
}

static bool compare_all(Run *r, const char *what, const RtValue *want, int n_want,
                        const RtValue *got, int n_got, const RtValue *exact, int n_exact) {
    if (n_want != n_got) {
        r->out->what = arena_printf(r->a, "%d %ss, not %d", n_got, what, n_want);
        return false;
    }
    for (int i = 0; i < n_want; i++) {
        const char *why = differs(r, &want[i], &got[i], i < n_exact ? &exact[i] : NULL);
        if (!why)
            continue;
        r->out->what = arena_printf(r->a, "%s %d %s", what, i, why);
        return false;
    }
    return true;
}

static bool same_results(Run *r, const RunResult *want, const RunResult *got,
                         const RunResult *exact) {
    return compare_all(r, "output", want->outputs, want->n_outputs, got->outputs, got->n_outputs,
                       exact->outputs, exact->n_outputs) &&
           compare_all(r, "input", want->inputs, want->n_inputs, got->inputs, got->n_inputs,
                       exact->inputs, exact->n_inputs) &&
           compare_all(r, "gradient", want->grads, want->n_grads, got->grads, got->n_grads,
                       exact->grads, exact->n_grads);
}

static bool check_rung(Run *r, Backend b, const RunResult *eager) {
    RunResult got = {0}, exact = {0};
    Diag d = {.arena = r->a}, quiet = {.arena = r->a};
    if (!run_rung(r, b, false, &got, &d)) {
        r->out->what = diag_first(&d);
        return false;
    }
    bool ok = same_results(r, eager, &got, &exact);
    if (!ok && r->c->room > 1e-6 && run_rung(r, BACKEND_eager, true, &exact, &quiet))
        ok = same_results(r, eager, &got, &exact);
    session_run_free(&got);
    session_run_free(&exact);
    return ok;
}

static Outcome with_data(Run *r, int64_t data) {
    Diag d = {.arena = r->a};
    RunResult eager = {0};
    Outcome v = RUN_fine;
    strncpy(r->where, "reading", EXEC_WHERE_BYTES - 1);
    if (!open_session(r, data, &d)) {
        r->out->rung = "reading";
        r->out->what = diag_first(&d);
        return RUN_wrong;
    }
    if (!run_rung(r, BACKEND_eager, false, &eager, &d)) {
        r->out->what = diag_first(&d);
        v = RUN_refused;
    }
    for (int b = BACKEND_eager + 1; v == RUN_fine && b < BACKEND_count; b++)
        if (!check_rung(r, (Backend)b, &eager)) {
            r->out->rung = backend_info[b].name;
            v = RUN_wrong;
        }
    session_run_free(&eager);
    session_close(r->session);
    r->session = NULL;
    return v;
}

void judge(Judgement *out, const RandomCase *c, const char *text, Arena *a, char *where) {
    *out = (Judgement){0};
    Run r = {.c = c, .text = text, .a = a, .where = where, .out = out};
    out->verdict = with_data(&r, 0);
    if (out->verdict != RUN_wrong)
        return;
    // Rounding that decides something shows for few data, what is wrong for most.
    Judgement first = *out;
    int wrong = 0;
    for (int i = 1; i <= 3; i++)
        wrong += with_data(&r, 1000 + i) == RUN_wrong;
    first.n_runs = out->n_runs;
    *out = first;
    if (wrong < 2)
        out->verdict = RUN_noise;
}
