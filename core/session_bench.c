// session_bench.c: running a model, once for its digest or many times for its speed.
#include <stdlib.h>
#include <string.h>

#include "core/session_private.h"
#include "core/base/work.h"

// Against what our own loops gave.
static const char *against_ours(Arena *a, const Tensor *t, const RtValue *ours) {
    TensorDiff diff;
    if (ours->kind != RT_tensor || tensor_digest(t) == tensor_digest(&ours->tensor))
        return ours->kind == RT_tensor ? "as ours" : "none of ours";
    double rtol, atol;
    dtype_tolerance(t->dtype, &rtol, &atol);
    tensor_diff(t, &ours->tensor, rtol, atol, &diff);
    return arena_printf(a, "%s, off by %.1e", diff.bad || diff.nan_differs ? "NOT ours" : "close",
                        diff.max_abs);
}

static void print_value(Buf *out, const RtValue *v, const RtValue *ours) {
    switch (v->kind) {
    case RT_tensor:
        buf_printf(out, "%s[", dtype_info[v->tensor.dtype].abbr);
        for (int k = 0; k < v->tensor.ndim; k++)
            buf_printf(out, "%s%lld", k ? ", " : "", (long long)v->tensor.size[k]);
        buf_printf(out, "]  %016llx", (unsigned long long)tensor_digest(&v->tensor));
        if (ours)
            buf_printf(out, "  %s", against_ours(out->arena, &v->tensor, ours));
        buf_putc(out, '\n');
        break;
    case RT_int:
        buf_printf(out, "%lld\n", (long long)v->i);
        break;
    case RT_bool:
        buf_printf(out, "%s\n", v->b ? "True" : "False");
        break;
    case RT_float:
        buf_py_float(out, v->f);
        buf_putc(out, '\n');
        break;
    case RT_none:
    case RT_list:
    case RT_other:
        buf_puts(out, "None\n");
        break;
    }
}

static void put_value(JsonOut *j, const char *name, const RtValue *v, const RtValue *ours,
                      Arena *a) {
    json_open(j, name, '{');
    if (v->kind == RT_tensor) {
        json_put_str(j, "dtype", dtype_info[v->tensor.dtype].torch_name);
        json_open(j, "shape", '[');
        for (int k = 0; k < v->tensor.ndim; k++)
            json_put_int(j, NULL, v->tensor.size[k]);
        json_close(j, ']');
        json_put_str(j, "digest",
                     arena_printf(a, "%016llx", (unsigned long long)tensor_digest(&v->tensor)));
        if (ours)
            json_put_str(j, "against_ours", against_ours(a, &v->tensor, ours));
    } else if (v->kind == RT_int) {
        json_put_int(j, "value", v->i);
    }
    json_close(j, '}');
}

static const char *toolchain_name(const Session *s, Backend b) {
    return b == BACKEND_full && s->toolchain ? s->toolchain->name : NULL;
}

// The gradients by the names of the inputs that they belong to.
static const char *input_name(const Graph *g, int i) {
    GRAPH_EACH (g, n)
        if (n->op == FX_placeholder && i-- == 0)
            return n->target;
    return "?";
}

// A run of a unit and, of a dump's loops, what our own gave.
typedef struct Ran {
    Session *s;
    const Unit *u;
    Backend backend;
    const char *loops; // of a dump: where they came from; NULL
    RunResult r, ours;
} Ran;

static const RtValue *ours_at(const Ran *x, const RtValue *of, int n, int i) {
    static const RtValue nothing = {0};
    return !x->loops ? NULL : i < n ? &of[i] : &nothing;
}

static void print_result(const Ran *x, Buf *out) {
    const char *t = toolchain_name(x->s, x->backend);
    buf_printf(out, "%s   %s%s%s%s%s\n", x->u->name, backend_info[x->backend].name, t ? " " : "",
               t ? t : "", x->loops ? " of " : "", x->loops ? x->loops : "");
    for (int i = 0; i < x->r.n_outputs; i++) {
        buf_printf(out, "out%-3d ", i);
        print_value(out, &x->r.outputs[i], ours_at(x, x->ours.outputs, x->ours.n_outputs, i));
    }
    for (int i = 0; i < x->r.n_grads; i++)
        if (x->r.grads[i].kind == RT_tensor) {
            buf_printf(out, "grad %-40s ", input_name(x->u->loaded->graph, i));
            print_value(out, &x->r.grads[i], ours_at(x, x->ours.grads, x->ours.n_grads, i));
        }
}

static void put_result(const Ran *x, JsonOut *j, Arena *a) {
    const RunResult *r = &x->r;
    json_open(j, NULL, '{');
    json_put_str(j, "graph", x->u->name);
    json_put_str(j, "backend", backend_info[x->backend].name);
    json_put_str(j, "toolchain", toolchain_name(x->s, x->backend));
    if (x->loops)
        json_put_str(j, "loops", x->loops);
    json_open(j, "outputs", '[');
    for (int i = 0; i < r->n_outputs; i++)
        put_value(j, NULL, &r->outputs[i], ours_at(x, x->ours.outputs, x->ours.n_outputs, i), a);
    json_close(j, ']');
    if (r->n_grads) {
        json_open(j, "gradients", '{');
        for (int i = 0; i < r->n_grads; i++)
            if (r->grads[i].kind == RT_tensor)
                put_value(j, input_name(x->u->loaded->graph, i), &r->grads[i],
                          ours_at(x, x->ours.grads, x->ours.n_grads, i), a);
        json_close(j, '}');
    }
    json_close(j, '}');
}

// A joint graph's forward and backward are one run.
static int run_unit(UnitReport *r) {
    Session *s = r->session;
    Ran x = {.s = s, .u = r->unit, .backend = s->backend, .loops = r->ctx};
    RunRequest q = {.unit = r->unit->index, .backend = s->backend, .toolchain = s->toolchain};
    if (r->unit->parent)
        return 0;
    RunRequest own = {.unit = q.unit, .backend = BACKEND_ir};
    bool ok = !x.loops || (session_take_loops(s, x.loops, &q, &r->arena, r->diag) &&
                           session_run(s, &own, &x.ours, &r->arena, r->diag));
    x.backend = q.backend;
    ok = ok && session_run(s, &q, &x.r, &r->arena, r->diag);
    if (ok && r->json)
        put_result(&x, r->json, &r->arena);
    else if (ok)
        print_result(&x, r->out);
    session_run_free(&x.r);
    session_run_free(&x.ours);
    return ok ? 0 : diag_exit_code(r->diag);
}

int session_report_run(Session *s, const char *loops, Buf *out, bool json, Diag *d) {
    return session_report_units(s, run_unit, loops, out, json, d);
}

typedef struct BenchRow {
    const char *backend, *toolchain;
    Timing t;
    int64_t compile_ns;
    int64_t forward_ns, backward_ns; // of training: medians
} BenchRow;

typedef struct Bench {
    VEC(BenchRow) rows;
    double bytes_per_s;   // triad, 0 if not measured
    int64_t bytes;        // that the kernels must move
    int kernels, externs; // calls of each kind
} Bench;

// Forward's kernels, then backward's.
static void copy_kernels(Arena *a, Timing *t, const RunResult *r) {
    int n = r->forward.n_kernels, m = r->backward.n_kernels;
    if (!n && !m)
        return;
    t->kernels = ARENA_ARRAY(a, n + m, KernelTime);
    t->n_kernels = n + m;
    for (int i = 0; i < n + m; i++)
        t->kernels[i] = i < n ? r->forward.kernels[i] : r->backward.kernels[i - n];
}

static bool bench_row(Session *s, Bench *b, int unit, Backend backend, const Toolchain *t, Arena *a,
                      Diag *d) {
    RunResult r;
    int of = BACKEND_count + n_toolchains;
    WorkPart part = work_enter(NULL, (double)b->rows.n / of, (b->rows.n + 1.0) / of);
    bool loops = backend == BACKEND_ir || backend == BACKEND_ir_pre_fusion; // slow
    RunRequest q = {.unit = unit, .backend = backend, .toolchain = t, .repeat = loops ? 3 : 30};
    bool ok = session_run(s, &q, &r, a, d);
    work_leave(part);
    if (!ok)
        return false;
    BenchRow row = {
        .backend = backend_info[backend].name, .toolchain = t ? t->name : "", .t = r.timing};
    row.compile_ns = r.compile_ns;
    row.forward_ns = r.forward.median_ns;
    row.backward_ns = r.backward.median_ns;
    copy_kernels(a, &row.t, &r);
    vec_push(a, &b->rows, row);
    session_run_free(&r);
    return true;
}

Request *session_bandwidth_start(Session *s) {
    Arena a = {0};
    Message m = {.arena = &a};
    message_int(&m, "threads", session_threads(s));
    Request *q = helpers_send(session_helpers(s), SERVICE_bandwidth, &m, (RequestLimits){0});
    arena_free(&a);
    return q;
}

double session_bandwidth_result(const Request *q) {
    const Field *f =
        request_state(q) == REQ_done ? message_find(request_reply(q), "bytes_per_s") : NULL;
    return f && f->kind == FIELD_float ? f->f : 0;
}

static double measure_bandwidth(Session *s, Diag *d) {
    Request *q = session_bandwidth_start(s);
    double v = 0;
    if (q && request_wait(s->helpers, q, NULL))
        v = session_bandwidth_result(q);
    else
        diag_warning(d, (Place){0}, "memory bandwidth could not be measured");
    if (q)
        request_free(q);
    return v;
}

static void count_calls(Session *s, Bench *b, const Unit *u) {
    const Artifact *code = pipeline_at(s->pipeline, u->index, STAGE_kernels);
    for (int i = 0; code && i < code->code->calls.n; i++) {
        int k = code->code->calls.at[i].kernel;
        *(k < 0 ? &b->externs : &b->kernels) += 1;
        b->bytes += k < 0 ? 0 : code->code->kernels.at[k].bytes;
    }
}

static bool bench_unit(Session *s, Bench *b, int unit, Arena *a, Diag *d) {
    StageId first = pipeline_first_stage(s->pipeline, unit);
    for (int i = 0; i < BACKEND_count; i++) {
        if (i != BACKEND_full && i != BACKEND_eager && backend_info[i].executes < first)
            continue;
        if (i != BACKEND_full && !bench_row(s, b, unit, (Backend)i, NULL, a, d))
            return false;
    }
    for (int i = 0; i < n_toolchains; i++) {
        const char *why;
        if (toolchain_version(toolchains[i], a, &why) &&
            !bench_row(s, b, unit, BACKEND_full, toolchains[i], a, d))
            return false;
    }
    const Unit *u = pipeline_unit(s->pipeline, unit);
    count_calls(s, b, u->forward ? u->forward : u);
    if (u->backward)
        count_calls(s, b, u->backward);
    return true;
}

static void print_bench(Buf *out, const Bench *b) {
    double eager = b->rows.n ? (double)b->rows.at[0].t.median_ns : 0;
    buf_printf(out, "  %-28s %-6s %12s %10s %8s %10s\n", "backend", "", "median µs", "p90",
               "× eager", "compile ms");
    for (int i = 0; i < b->rows.n; i++) {
        const BenchRow *r = &b->rows.at[i];
        buf_printf(out, "  %-28s %-6s %12.1f %10.1f %8.2f", r->backend, r->toolchain,
                   (double)r->t.median_ns / 1e3, (double)r->t.p90_ns / 1e3,
                   r->t.median_ns ? eager / (double)r->t.median_ns : 0);
        if (*r->toolchain)
            buf_printf(out, " %10.1f", (double)r->compile_ns / 1e6);
        if (r->backward_ns > 0)
            buf_printf(out, "  forward %.1f, backward %.1f", (double)r->forward_ns / 1e3,
                       (double)r->backward_ns / 1e3);
        buf_printf(out, "%s\n", r->t.noisy ? "  noisy" : "");
    }
    buf_printf(out, "  %d kernel calls move %lld B, %d extern calls", b->kernels,
               (long long)b->bytes, b->externs);
    if (b->bytes_per_s > 0)
        buf_printf(out, "; triad here %.1f GB/s", b->bytes_per_s / 1e9);
    buf_puts(out, "\n");
    for (int i = 0; i < b->rows.n; i++) {
        const Timing *t = &b->rows.at[i].t;
        for (int k = 0; k < t->n_kernels; k++)
            buf_printf(out, "    %-6s %-60s %10.2f µs\n", b->rows.at[i].toolchain,
                       t->kernels[k].name, (double)t->kernels[k].median_ns / 1e3);
    }
}

static void put_bench(JsonOut *j, const Bench *b, const char *name) {
    json_open(j, NULL, '{');
    json_put_str(j, "graph", name);
    json_put_int(j, "kernels", b->kernels);
    json_put_int(j, "externs", b->externs);
    json_put_int(j, "kernel_bytes", b->bytes);
    json_put_float(j, "triad_bytes_per_s", b->bytes_per_s);
    json_open(j, "runs", '[');
    for (int i = 0; i < b->rows.n; i++) {
        const BenchRow *r = &b->rows.at[i];
        json_open(j, NULL, '{');
        json_put_str(j, "backend", r->backend);
        json_put_str(j, "toolchain", *r->toolchain ? r->toolchain : NULL);
        json_put_int(j, "median_ns", r->t.median_ns);
        json_put_int(j, "min_ns", r->t.min_ns);
        json_put_int(j, "p90_ns", r->t.p90_ns);
        json_put_int(j, "runs", r->t.runs);
        json_put_int(j, "compile_ns", r->compile_ns);
        if (r->backward_ns > 0) {
            json_put_int(j, "forward_ns", r->forward_ns);
            json_put_int(j, "backward_ns", r->backward_ns);
        }
        json_open(j, "calls", '[');
        for (int k = 0; k < r->t.n_kernels; k++) {
            json_open(j, NULL, '{');
            json_put_str(j, "name", r->t.kernels[k].name);
            json_put_int(j, "median_ns", r->t.kernels[k].median_ns);
            json_close(j, '}');
        }
        json_close(j, ']');
        json_close(j, '}');
    }
    json_close(j, ']');
    json_close(j, '}');
}

static int bench_report(UnitReport *r) {
    Bench b = {.bytes_per_s = *(const double *)r->ctx};
    if (r->unit->parent)
        return 0;
    if (!bench_unit(r->session, &b, r->unit->index, &r->arena, r->diag))
        return diag_exit_code(r->diag);
    if (r->json) {
        put_bench(r->json, &b, r->unit->name);
    } else {
        buf_printf(r->out, "%s   %d threads\n", r->unit->name, session_threads(r->session));
        print_bench(r->out, &b);
    }
    return 0;
}

int session_bench(Session *s, Buf *out, bool json, Diag *d) {
    double bandwidth = measure_bandwidth(s, d);
    return session_report_units(s, bench_report, &bandwidth, out, json, d);
}
