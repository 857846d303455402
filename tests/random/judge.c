// judge.c: one graph on every rung, in this process, without helpers. Eager's numbers are what the
// others must give; where bits round, nobody has to be nearer to float64 than eager is, or than the
// compiler's graph is in float64 with each result moved by what its type rounds off.
#include "tests/random/random.h"

#include <math.h>
#include <stdio.h>
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
    bool compiled;   // held against the compiler's graph: random numbers are those it draws
} Run;

// Those whose inputs the text has: alias.INPUT=OTHER …
static const char *const *settings(const Run *r) {
    const char **kept = ARENA_ARRAY(r->a, 16, const char *);
    int n = 0;
    for (int i = 0; r->c->sets && r->c->sets[i] && n < 15; i++) {
        const char *s = r->c->sets[i], *is = strchr(s, '=');
        bool alias = str_starts(s, "alias.");
        const char *of = is + 1 + strcspn(is + 1, " ");
        bool known = !alias || (strstr(r->text, arena_printf(r->a, "%.*s:", (int)(is - s) - 6,
                                                             s + 6)) &&
                                (is[1] == '@' || strstr(r->text, arena_printf(r->a, "%.*s:",
                                                                (int)(of - is) - 1, is + 1))));
        if (known)
            kept[n++] = s;
    }
    return kept;
}

static bool open_session(Run *r, int64_t data, Diag *d) {
    SessionOptions o = {.grad = r->c->grad ? "params" : "none",
                        .toolchain = r->c->toolchain,
                        .backend = "eager",
                        .hints = r->c->graph ? random_hints(r->c->graph, r->a) : r->c->hints,
                        .sets = settings(r),
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

// q's toolchain is r's.
static bool run_rung(Run *r, RunRequest q, RunResult *out, Diag *d) {
    static char where[EXEC_WHERE_BYTES], phase[EXEC_WHERE_BYTES];
    q.toolchain = toolchain_find(r->c->toolchain);
    strncpy(r->where, backend_info[q.backend].name, EXEC_WHERE_BYTES - 1);
    r->out->n_runs++;
    r->here = (HelperCall){.where = where, .phase = phase};
    return session_run_here(r->session, &q, out, r->a, d);
}

// ---- comparison

// How far rounding may carry: results in float64, and several that rounding moved.
enum { SHAKES = 12 };
typedef struct Exact {
    bool known;
    RunResult plain, moved[SHAKES];
} Exact;

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
        o.odd = o.odd || isnan(a) != isnan(b) || isinf(a) != isinf(b) || (isinf(a) && a != b);
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

// The outputs, inputs or gradients of a run.
typedef struct Part {
    const char *what;
    const RtValue *v;
    int n;
} Part;
enum { PARTS = 3 };

static Part part_of(const RunResult *r, int k) {
    return k == 0   ? (Part){"output", r->outputs, r->n_outputs}
           : k == 1 ? (Part){"input", r->inputs, r->n_inputs}
                    : (Part){"gradient", r->grads, r->n_grads};
}

// Of the compiler's graph: what it computes in lower precision is in it.
static bool run_exact(Run *r, int64_t jitter, RunResult *out) {
    Diag quiet = {.arena = r->a};
    bool compiled = jitter || r->compiled;
    RunRequest q = {.backend = compiled ? BACKEND_aot_eager_decomp_partition : BACKEND_eager,
                    .in_f64 = true,
                    .jitter = jitter};
    return run_rung(r, q, out, &quiet);
}

static void find_exact(Run *r, Exact *x) {
    x->known = run_exact(r, 0, &x->plain);
    for (int k = 0; k < SHAKES && x->known; k++)
        run_exact(r, k + 1, &x->moved[k]); // one that fails has nothing to say
}

static bool is_like(const Part *p, int i, const Tensor *t) {
    return i < p->n && p->v[i].kind == RT_tensor &&
           tensor_numel(&p->v[i].tensor) == tensor_numel(t);
}

// Element by element, for a person.
static void show(Run *r, int kind, int i, const Tensor *want, const Tensor *got, const Exact *x) {
    const Part exact = part_of(&x->plain, kind);
    for (int64_t j = 0; j < tensor_numel(want); j++) {
        printf("%s %d [%lld]: eager %.9g, float64 %.9g, %s %.9g, moved", exact.what, i,
               (long long)j, at(want, j), at(&exact.v[i].tensor, j), r->where, at(got, j));
        for (int k = 0; k < SHAKES; k++) {
            Part moved = part_of(&x->moved[k], kind);
            if (is_like(&moved, i, want))
                printf(" %.6g", at(&moved.v[i].tensor, j));
        }
        printf("\n");
    }
}

// No further from float64 than six times what eager is, or what rounding alone can do.
static bool is_rounding(Run *r, int kind, int i, const Tensor *want, const Tensor *got,
                        const Exact *x) {
    Part exact = part_of(&x->plain, kind);
    if (!dtype_is_float(want->dtype) || !is_like(&exact, i, want))
        return false;
    const Tensor *e = &exact.v[i].tensor;
    Off most = compare(e, want), it = compare(e, got);
    for (int k = 0; k < SHAKES; k++) {
        Part moved = part_of(&x->moved[k], kind);
        Off by = is_like(&moved, i, want) ? compare(e, &moved.v[i].tensor) : (Off){0};
        most.off = fmax(most.off, by.off);
        most.odd = most.odd || by.odd;
    }
    bool fine = most.odd || (!it.odd && it.off <= 6 * most.off + r->c->room * it.most);
    if (r->c->show && !fine)
        show(r, kind, i, want, got, x);
    return fine;
}

// NULL: near enough.
static const char *differs(Run *r, int kind, int i, const RtValue *want, const RtValue *got,
                           Exact *x) {
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
    if (is_float && !x->known)
        find_exact(r, x);
    if (x->known && is_rounding(r, kind, i, &want->tensor, &got->tensor, x))
        return NULL;
    return arena_printf(r->a, "differs by %.3g of %.3g%s", o.off, o.most,
                        o.odd ? ", not finite in one" : "");
}

static bool same_results(Run *r, const RunResult *eager, const RunResult *got, Exact *x) {
    for (int k = 0; k < PARTS; k++) {
        Part want = part_of(eager, k), have = part_of(got, k);
        if (want.n != have.n) {
            r->out->what = arena_printf(r->a, "%d %ss, not %d", have.n, want.what, want.n);
            return false;
        }
        for (int i = 0; i < want.n; i++) {
            const char *why = differs(r, k, i, &want.v[i], &have.v[i], x);
            if (!why)
                continue;
            r->out->what = arena_printf(r->a, "%s %d %s", want.what, i, why);
            return false;
        }
    }
    return true;
}

static void free_exact(Exact *x) {
    session_run_free(&x->plain);
    for (int k = 0; k < SHAKES; k++)
        session_run_free(&x->moved[k]);
}

static bool same_forms(Run *r, const RunResult *eager, const RunResult *got) {
    for (int k = 0; k < PARTS; k++) {
        Part want = part_of(eager, k), have = part_of(got, k);
        bool same = want.n == have.n;
        for (int i = 0; same && i < want.n; i++)
            same = want.v[i].kind == have.v[i].kind &&
                   (want.v[i].kind != RT_tensor || same_form(&want.v[i].tensor, &have.v[i].tensor));
        if (!same)
            r->out->what = arena_printf(r->a, "other forms of an %s", want.what);
        if (!same)
            return false;
    }
    return true;
}

// The first rung of a compiled graph with random numbers of its own is what the later ones are held
// against: *eager becomes it.
static bool check_rung(Run *r, Backend b, RunResult *eager, Exact *x) {
    RunResult got = {0};
    Diag d = {.arena = r->a};
    bool first = r->c->draws && b == BACKEND_aot_eager_decomp_partition;
    if (!run_rung(r, (RunRequest){.backend = b}, &got, &d)) {
        r->out->what = diag_first(&d);
        return false;
    }
    bool ok = first ? same_forms(r, eager, &got) : same_results(r, eager, &got, x);
    if (first) {
        free_exact(x);
        *x = (Exact){0};
        RunResult old = *eager;
        *eager = got;
        got = old;
        r->compiled = true;
    }
    session_run_free(&got);
    return ok;
}

static Outcome with_data(Run *r, int64_t data) {
    Diag d = {.arena = r->a};
    RunResult eager = {0};
    Exact exact = {0};
    Outcome v = RUN_fine;
    r->compiled = false;
    strncpy(r->where, "reading", EXEC_WHERE_BYTES - 1);
    if (!open_session(r, data, &d)) {
        r->out->rung = "reading";
        r->out->what = diag_first(&d);
        return RUN_wrong;
    }
    if (!run_rung(r, (RunRequest){.backend = BACKEND_eager}, &eager, &d)) {
        r->out->what = diag_first(&d);
        v = RUN_refused;
    }
    for (int b = BACKEND_eager + 1; v == RUN_fine && b < BACKEND_count; b++)
        if (!check_rung(r, (Backend)b, &eager, &exact)) {
            r->out->rung = backend_info[b].name;
            v = RUN_wrong;
        }
    session_run_free(&eager);
    free_exact(&exact);
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
