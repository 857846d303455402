// probe_answer.c: a question answered, inside a helper: reference and float64 first, so that a
// crash in them is not taken for one of the rung; then the rung, and each result judged.
#include <stdlib.h>
#include <string.h>

#include "core/base/file.h"
#include "core/debug/probe_impl.h"

typedef struct Answer {
    HelperCall *c;
    const ProbeQuery *q;
    const ProbeRunner *runner;
    ProbeRun got, want, exact;
    bool has_exact;
    ProbeRun moved[SPREAD_RUNS]; // of a spread; made when a verdict asks for it
    bool has_moved;
} Answer;

static void say(const Answer *x, const char *phase) {
    strncpy(x->c->phase, phase, EXEC_WHERE_BYTES - 1);
    x->c->where[0] = '\0';
}

static void put_failure(Answer *x, FailureKind kind, StageId stage, const Diag *d) {
    Message *m = x->c->reply;
    const char *text = d->errors ? diag_first(d) : "it failed without a word";
    const char *phase = x->c->phase, *pass = strrchr(phase, ' ');
    bool of_pass = pass && str_starts(phase, "rung ") && strchr(phase, ' ') != pass;
    message_int(m, "failure", kind);
    message_int(m, "stage", stage);
    message_text(m, "pass", of_pass ? pass + 1 : "");
    message_text(m, "class", error_class_of(x->c->arena, text));
    message_text(m, "message", text);
    message_text(m, "where", x->c->where);
}

static void drop(ProbeRun *r) {
    for (int i = 0; i < r->values.n; i++)
        rt_drop(&r->values.at[i].v);
    r->values.n = 0;
}

const RtValue *probe_value(const ProbeRun *r, const char *name) {
    for (int i = 0; i < r->values.n; i++)
        if (!strcmp(r->values.at[i].name, name))
            return &r->values.at[i].v;
    return NULL;
}

// ---- reference

// No rung, interpreted or not optimised, is so many times slower than the reference, however busy
// the machine or large the model is.
enum { SLOWEST_TIMES = 50 };

static void tell_pace(const Answer *x, int64_t reference_ns) {
    if (x->c->slow_ms)
        *x->c->slow_ms = SLOWEST_TIMES * (reference_ns / 1000000);
}

static bool run_reference(Answer *x) {
    Arena *a = x->c->arena;
    Diag d = {.arena = a}, quiet = {.arena = a};
    StageId failed = STAGE_fx;
    say(x, "reference");
    // Eager is what it is whatever is planted or set.
    bool plain = x->q->against == RUNG_eager;
    x->want = (ProbeRun){.rung = x->q->against, .toolchain = x->q->toolchain, .plain = plain};
    bool built = x->runner->build(x->runner->ctx, x->q->against, plain, &failed, &d);
    int64_t start = clock_ns();
    if (!built || !x->runner->run(x->runner->ctx, &x->want, a, &d)) {
        put_failure(x, FAIL_error, failed, &d);
        return false;
    }
    tell_pace(x, clock_ns() - start);
    say(x, "float64");
    x->exact = (ProbeRun){.rung = RUNG_eager, .in_f64 = true, .plain = true};
    x->has_exact = x->runner->run(x->runner->ctx, &x->exact, a, &quiet);
    return true;
}

// ---- the rung

static bool run_rung(Answer *x) {
    Diag d = {.arena = x->c->arena};
    StageId failed = STAGE_run;
    say(x, "rung ");
    if (!x->runner->build(x->runner->ctx, x->q->rung, false, &failed, &d)) {
        put_failure(x, FAIL_error, failed, &d);
        return false;
    }
    say(x, "rung run");
    x->got = (ProbeRun){.rung = x->q->rung, .toolchain = x->q->toolchain};
    if (x->runner->run(x->runner->ctx, &x->got, x->c->arena, &d))
        return true;
    bool compiler = !strcmp(x->c->where, "compiler");
    put_failure(x, compiler ? FAIL_compile : FAIL_error, compiler ? STAGE_kernels : STAGE_run, &d);
    return false;
}

// ---- rows

static const char *type_of(Arena *a, const RtValue *v) {
    Buf b = {.arena = a};
    if (!v || v->kind != RT_tensor)
        return !v || v->kind == RT_none ? "none" : "number";
    buf_printf(&b, "%s[", dtype_info[v->tensor.dtype].abbr);
    for (int i = 0; i < v->tensor.ndim; i++)
        buf_printf(&b, "%s%lld", i ? "," : "", (long long)v->tensor.size[i]);
    buf_putc(&b, ']');
    return buf_str(&b);
}

static bool same_bits(const RtValue *a, const RtValue *b) {
    Judged j;
    judge_value(a, b, NULL, &(Tolerance){0}, &j);
    return j.verdict == VERDICT_same_bits;
}

// Another run of the rung, with memory as it comes or filled: which results differ from those of a
// run before?
static ProbeRun run_again(Answer *x, uint8_t poison, const ProbeRun *before, bool *differs) {
    Diag quiet = {.arena = x->c->arena};
    ProbeRun r = {.rung = x->q->rung, .toolchain = x->q->toolchain, .poison = poison};
    say(x, poison ? arena_printf(x->c->arena, "rung run filled with 0x%02x", poison)
                  : "rung run again");
    if (x->runner->run(x->runner->ctx, &r, x->c->arena, &quiet))
        for (int i = 0; i < before->values.n; i++) {
            const RtValue *v = probe_value(&r, before->values.at[i].name);
            differs[i] = differs[i] || !same_bits(v, &before->values.at[i].v);
        }
    return r;
}

// By result of the rung: does another run change it, does it show what memory held? What changes
// whatever memory holds is unsteady, what is the same for the same memory is not.
static void run_more(Answer *x, bool *unsteady, bool *unwritten) {
    int n = x->got.values.n, shown = 0;
    ProbeRun runs[4] = {{0}}; // as it comes, NaN in every float, another pattern, NaN again
    if (x->q->twice)
        runs[0] = run_again(x, 0, &x->got, unsteady);
    if (x->q->poison) {
        runs[1] = run_again(x, 0xff, &x->got, unwritten);
        runs[2] = run_again(x, 0xab, &x->got, unwritten);
    }
    for (int i = 0; i < n; i++)
        shown += unwritten[i];
    if (shown && runs[1].values.n == n) {
        bool *changes = ARENA_ARRAY(x->c->arena, n + 1, bool);
        runs[3] = run_again(x, 0xff, &runs[1], changes);
        for (int i = 0; i < n; i++) {
            unsteady[i] = changes[i] || (unsteady[i] && !unwritten[i]);
            unwritten[i] = unwritten[i] && !changes[i];
        }
    }
    for (int i = 0; i < COUNT(runs); i++)
        drop(&runs[i]);
}

// What a rung left as it was is not among its results.
static const RtValue *result(const Answer *x, const ProbeRun *r, const char *name) {
    const RtValue *v = probe_value(r, name);
    int i = str_starts(name, "after") ? atoi(name + strlen("after")) : -1;
    return v || i < 0 || i >= x->q->n_inputs ? v : &x->q->inputs[i];
}

// The compiler's graph, as nothing is planted or set: what it computes in lower precision, and what
// ops are taken apart into, is in it.
static void run_moved(Answer *x) {
    CaseRung rung = RUNG_aot_eager_decomp_partition;
    Diag quiet = {.arena = x->c->arena};
    StageId failed;
    x->has_moved = true;
    say(x, "float64");
    if (!x->runner->build(x->runner->ctx, rung, true, &failed, &quiet))
        return;
    for (int k = 0; k < SPREAD_RUNS; k++) {
        x->moved[k] =
            (ProbeRun){.rung = rung, .in_f64 = true, .plain = true, .jitter = spread_seed(k)};
        x->runner->run(x->runner->ctx, &x->moved[k], x->c->arena, &quiet);
    }
}

static void ask_spread(Answer *x, const char *name, Judged *j) {
    Spread spread = {0};
    if (!judge_asks_spread(j))
        return;
    if (!x->has_moved)
        run_moved(x);
    for (int k = 1; k < SPREAD_RUNS; k++)
        spread_add(&spread, result(x, &x->moved[k], name), result(x, &x->moved[0], name));
    judge_by_spread(&spread, j);
}

static void put_result(Answer *x, int i, const char *name, bool unsteady, bool unwritten) {
    Arena *a = x->c->arena;
    const RtValue *want = result(x, &x->want, name), *got = result(x, &x->got, name);
    const RtValue *exact = x->has_exact ? result(x, &x->exact, name) : NULL;
    ProbeRow row = {.name = name,
                    .type = type_of(a, want ? want : got),
                    .unwritten = unwritten,
                    .unsteady = unsteady};
    Tolerance tolerance = x->q->tolerance;
    judge_value(got, want, exact, &tolerance, &row.judged);
    if (row.judged.verdict > VERDICT_rounding && x->runner->computed_in && want &&
        want->kind == RT_tensor) {
        tolerance.computed_in = x->runner->computed_in(x->runner->ctx, name, want->tensor.dtype);
        judge_value(got, want, exact, &tolerance, &row.judged);
    }
    ask_spread(x, name, &row.judged);
    if (x->q->values) {
        row.got = got ? *got : (RtValue){0}; // borrowed: the message keeps them
        row.want = want ? *want : (RtValue){0};
        row.exact = exact ? *exact : (RtValue){0};
    }
    probe_put_row(x->c->reply, i, &row);
}

static void put_rows(Answer *x) {
    Arena *a = x->c->arena;
    int n = 0, n_got = x->got.values.n;
    bool *unsteady = ARENA_ARRAY(a, n_got + 1, bool), *unwritten = ARENA_ARRAY(a, n_got + 1, bool);
    run_more(x, unsteady, unwritten);
    for (int i = 0; i < x->want.values.n; i++) {
        const char *name = x->want.values.at[i].name;
        int k = 0;
        while (k < n_got && strcmp(x->got.values.at[k].name, name) != 0)
            k++;
        put_result(x, n++, name, k < n_got && unsteady[k], k < n_got && unwritten[k]);
    }
    for (int k = 0; k < n_got; k++) // an input that should not have been written
        if (!probe_value(&x->want, x->got.values.at[k].name))
            put_result(x, n++, x->got.values.at[k].name, unsteady[k], unwritten[k]);
    message_int(x->c->reply, "rows", n);
}

bool probe_answer(HelperCall *c, const ProbeQuery *q, const ProbeRunner *runner) {
    Answer x = {.c = c, .q = q, .runner = runner};
    int64_t start = clock_ns();
    bool valid = run_reference(&x);
    if (valid && run_rung(&x)) {
        message_int(c->reply, "failure", FAIL_none);
        put_rows(&x);
    }
    message_int(c->reply, "valid", valid);
    message_int(c->reply, "nodes", runner->nodes);
    message_int(c->reply, "random", runner->random);
    message_int(c->reply, "fired", runner->fired(runner->ctx));
    message_int(c->reply, "ns", clock_ns() - start);
    drop(&x.got);
    drop(&x.want);
    drop(&x.exact);
    for (int k = 0; k < SPREAD_RUNS; k++)
        drop(&x.moved[k]);
    return true;
}
