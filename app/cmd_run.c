// cmd_run.c: commands that run the model. Tensors are computed in helper processes: on the screen
// `run` starts a request and returns, and the main loop takes the result in when it comes
// (app_poll); without a screen the same command waits.
#include "app/app.h"
#include "app/hunt.h"
#include "app/interrupt.h"
#include "app/model.h"
#include "views/brief.h"
#include "core/base/file.h"
#include "core/debug/bisect.h"

#include <ctype.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { REPEAT = 100 };

struct RunState {
    Request *request; // under way
    RunRequest what;
    bool probe;     // measures the memory bandwidth instead, once, behind the first run
    int64_t was_ns; // the same before a change: what it is held against; 0: nothing
};

static const char *label_of(const RunRequest *r, Arena *a) {
    return r->backend == BACKEND_full && r->toolchain
               ? arena_printf(a, "%s %s", backend_info[r->backend].name, r->toolchain->name)
               : backend_info[r->backend].name;
}

static RunOutput output_of(App *app, const char *name, const Tensor *t) {
    Buf type = {.arena = &app->arena};
    buf_printf(&type, "%s[", dtype_info[t->dtype].abbr);
    for (int i = 0; i < t->ndim; i++)
        buf_printf(&type, "%s%lld", i ? ", " : "", (long long)t->size[i]);
    buf_putc(&type, ']');
    RunOutput o = {.name = arena_strdup(&app->arena, name),
                   .type = buf_str(&type),
                   .digest = tensor_digest(t),
                   .mean = NAN,
                   .low = NAN,
                   .high = NAN};
    int64_t n = tensor_numel(t);
    double sum = 0;
    if (n > (1 << 22))
        n = 0; // the screen never waits for millions of elements
    for (int64_t i = 0; i < n; i++) {
        double v = tensor_get_f64(t, i);
        sum += v;
        o.low = i && o.low < v ? o.low : v;
        o.high = i && o.high > v ? o.high : v;
    }
    o.mean = n ? sum / (double)n : NAN;
    return o;
}

// The row of a run, or of one half of a training run.
static RunRow row_of(App *app, const RunResult *r, const RunRequest *what, const Timing *timing,
                     int unit, const char *half) {
    const Artifact *code =
        pipeline_at(session_pipeline(app->session),
                    model_unit_for(app->session, unit, STAGE_kernels), STAGE_kernels);
    RunRow row = {.label = arena_printf(&app->arena, "%s%s", label_of(what, &app->arena), half),
                  .backend = what->backend,
                  .timing = *timing,
                  .compile_ns = r->compile_ns,
                  .cached = r->cached,
                  .unit = unit,
                  .settings = brief_settings(&app->arena, app->session, unit),
                  .code_id = code ? code->id : -1};
    row.timing.kernels = ARENA_ARRAY(&app->arena, timing->n_kernels + 1, KernelTime);
    for (int i = 0; i < timing->n_kernels; i++) {
        row.timing.kernels[i] = timing->kernels[i];
        row.timing.kernels[i].name = arena_strdup(&app->arena, timing->kernels[i].name);
    }
    return row;
}

static void put_row(App *app, RunRow row) {
    app->runs.version++;
    for (int i = 0; i < app->runs.rows.n; i++)
        if (!strcmp(app->runs.rows.at[i].label, row.label) &&
            app->runs.rows.at[i].unit == row.unit) {
            app->runs.rows.at[i] = row;
            app->runs.last = i;
            return;
        }
    app->runs.last = app->runs.rows.n;
    vec_push(&app->arena, &app->runs.rows, row);
}

static void add_tensors(App *app, RunRow *row, const char *name, const RtValue *v, int n) {
    for (int i = 0; i < n; i++)
        if (v[i].kind == RT_tensor)
            vec_push(&app->arena, &row->outputs,
                     output_of(app, arena_printf(&app->arena, "%s%d", name, i), &v[i].tensor));
}

// A training run also has a row for its forward and one for its backward: their kernels.
static void keep(App *app, const RunResult *r, const RunRequest *what) {
    const Unit *u = pipeline_unit(session_pipeline(app->session), what->unit);
    u = u->parent ? u->parent : u;
    if (u->forward) {
        put_row(app, row_of(app, r, what, &r->forward, u->forward->index, " forward"));
        put_row(app, row_of(app, r, what, &r->backward, u->backward->index, " backward"));
    }
    RunRow row = row_of(app, r, what, &r->timing, u->index, "");
    add_tensors(app, &row, "out", r->outputs, r->n_outputs);
    add_tensors(app, &row, "grad", r->grads, r->n_grads);
    put_row(app, row);
}

static RunRequest request_now(App *app) {
    return (RunRequest){.unit = app_pane(app)->ctx.unit,
                        .backend = session_backend(app->session),
                        .toolchain = session_toolchain(app->session),
                        .repeat = REPEAT};
}

static void stop(App *app) {
    if (!app->run)
        return;
    request_cancel(app->run->request);
    request_free(app->run->request);
    app->run = NULL;
    app->runs.running = NULL;
    app->runs.version++;
}

void app_forget_runs(App *app) {
    stop(app);
    work_forget(app);
    app->runs.rows.n = 0;
    app->runs.last = -1;
    app->runs.version++;
}

static bool start(App *app) {
    stop(app); // the newest request cancels an older one
    RunRequest what = request_now(app);
    Request *q = session_run_start(app->session, &what, &app->diag);
    if (!q)
        return false;
    app->run = ARENA_NEW(&app->arena, struct RunState);
    *app->run = (struct RunState){.request = q, .what = what};
    app->runs.running = label_of(&what, &app->arena);
    app->runs.since = clock_ns();
    app->runs.version++;
    return true;
}

// What the launches are held against. Behind a run, so that nobody waits for it.
static void start_probe(App *app) {
    if (app->runs.bytes_per_s > 0 || app_machine_known(app))
        return;
    Request *q = session_machine_start(app->session);
    if (!q)
        return;
    app->run = ARENA_NEW(&app->arena, struct RunState);
    *app->run = (struct RunState){.request = q, .probe = true};
}

bool app_machine_known(App *app) {
    Machine m;
    if (app->runs.bytes_per_s <= 0 && session_machine_known(app->session, &m)) {
        app->runs.bytes_per_s = m.bytes_per_s;
        app->runs.flops_per_s = m.flops_per_s;
        app->runs.version++;
    }
    return app->runs.bytes_per_s > 0;
}

static void take_machine(App *app, const Request *q) {
    Machine m;
    session_machine_result(app->session, q, &m);
    app->runs.bytes_per_s = m.bytes_per_s;
    app->runs.flops_per_s = m.flops_per_s;
}

bool app_measure_machine(App *app) {
    if (app_machine_known(app) || (app->run && app->run->probe))
        return true;
    Request *q = app->interactive && app->run ? NULL : session_machine_start(app->session);
    if (!q)
        return false;
    if (app->interactive) {
        app->run = ARENA_NEW(&app->arena, struct RunState);
        *app->run = (struct RunState){.request = q, .probe = true};
        return true;
    }
    request_wait(session_helpers(app->session), q, NULL);
    take_machine(app, q);
    request_free(q);
    return true;
}

// What a change did to the time, " , was 12 us (-8 %)"; "" without one.
static const char *against(Arena *a, int64_t was_ns, int64_t now_ns) {
    if (was_ns <= 0)
        return "";
    double percent = 100.0 * ((double)now_ns - (double)was_ns) / (double)was_ns;
    return arena_printf(a, ", was %s (%+.0f %%)", text_time(a, (double)was_ns), percent);
}

static void take_run(App *app) {
    Arena tmp = {0};
    Diag d = {.arena = &tmp};
    RunResult r = {0};
    if (session_run_result(app->session, app->run->request, &r, &tmp, &d)) {
        keep(app, &r, &app->run->what);
        app_message(app, ST_ok, "%s: %s%s, median of %d   T shows the table", app->runs.running,
                    text_time(&tmp, (double)r.timing.median_ns),
                    against(&tmp, app->run->was_ns, r.timing.median_ns), r.timing.runs);
        session_run_free(&r);
    } else {
        const char *why = d.n ? diag_first(&d) : diag_first(request_diag(app->run->request));
        app_message(app, ST_bad, "%s: %s", app->runs.running, why);
    }
    arena_free(&tmp);
}

static const char stops_it[] = "Ctrl-C stops it";

static void tell_running(App *app) {
    double seconds = (double)(clock_ns() - app->runs.since) / 1e9;
    const char *since = seconds < 0.1 ? " …" : arena_printf(&app->frame, " for %.1f s", seconds);
    app_message(app, ST_dim, "%s runs%s   %s", app->runs.running, since, stops_it);
}

bool app_poll(App *app) {
    bool changed = app_poll_minify(app) | work_poll(app) | hunt_poll(app);
    if (!app->session || !app->run)
        return changed;
    helpers_poll(session_helpers(app->session));
    RequestState state = request_state(app->run->request);
    if (state == REQ_waiting || state == REQ_running) {
        if (!app->run->probe && strstr(app->message, stops_it)) // no key was pressed since
            tell_running(app);
        return changed;
    }
    bool probe = app->run->probe;
    if (probe)
        take_machine(app, app->run->request);
    else
        take_run(app);
    request_free(app->run->request);
    app->run = NULL;
    app->runs.running = NULL;
    app->runs.version++;
    if (!probe)
        start_probe(app);
    return true;
}

// The table of times where it is in sight, else the message alone.
bool cmd_run(App *app, Args *args) {
    const char *loops = args->n ? args->at[0] : NULL;
    if (app->sink || loops)
        return session_report_run(app->session, loops, &app->out, app->json, &app->diag) == 0;
    if (app->interactive) {
        if (start(app))
            tell_running(app);
        return !app->diag.errors;
    }
    RunRequest what = request_now(app);
    RunResult r = {0};
    if (!session_run(app->session, &what, &r, &app->frame, &app->diag))
        return false;
    keep(app, &r, &what);
    session_run_free(&r);
    return true;
}

void app_retime(App *app) {
    RunRequest what = request_now(app);
    const Unit *u = pipeline_unit(session_pipeline(app->session), what.unit);
    int unit = u->parent ? u->parent->index : u->index;
    int64_t was = 0;
    for (int i = 0; i < app->runs.rows.n; i++)
        if (app->runs.rows.at[i].unit == unit &&
            !strcmp(app->runs.rows.at[i].label, label_of(&what, &app->frame)))
            was = app->runs.rows.at[i].timing.median_ns;
    if (was <= 0 || what.backend != BACKEND_full || app->sink)
        return;
    if (app->interactive) {
        if (start(app))
            app->run->was_ns = was;
        return;
    }
    RunResult r = {0};
    if (!session_run(app->session, &what, &r, &app->frame, &app->diag))
        return;
    keep(app, &r, &what);
    app_message(app, ST_ok, "%s: %s%s", label_of(&what, &app->frame),
                text_time(&app->frame, (double)r.timing.median_ns),
                against(&app->frame, was, r.timing.median_ns));
    session_run_free(&r);
}

// The ceilings, and what comes near them: measured if they never were.
bool cmd_roofline(App *app, Args *args) {
    (void)args;
    if (!app->hide_times)
        app_measure_machine(app);
    return app_run(app, "view roofline");
}

bool cmd_cancel(App *app, Args *args) {
    (void)args;
    bool was_running = (app->run && !app->run->probe) | work_stop(app) | hunt_stop(app);
    stop(app);
    if (was_running) {
        app_message(app, ST_warn, "stopped");
    } else {
        app_message(app, ST_dim, "nothing runs; Q leaves");
    }
    return true;
}

bool cmd_backend(App *app, Args *args) {
    const char *t = args->n > 1 ? args->at[args->n - 1] : NULL, *was = app_backend_text(app);
    if (!session_set_backend(app->session, args->at[0], t, &app->diag))
        return false;
    app_note_backend(app, was);
    if (!app->sink)
        app_message(app, ST_text, "r runs %s",
                    label_of(&(RunRequest){.backend = session_backend(app->session),
                                           .toolchain = session_toolchain(app->session)},
                             &app->frame));
    return true;
}

bool cmd_toolchain(App *app, Args *args) {
    const char *was = app_backend_text(app);
    if (!session_set_backend(app->session, "full", args->at[0], &app->diag))
        return false;
    app_note_backend(app, was);
    return true;
}

bool cmd_check(App *app, Args *args) {
    if (args->n && app->options) {
        app->options->values = arena_strdup(&app->arena, args->at[0]);
        if (!app_open(app, session_model(app->session)->path))
            return false;
    }
    int code = session_check(app->session, &app->out, app->json, &app->diag);
    if (code > app->exit_code)
        app->exit_code = code;
    return code == 0 || app->diag.errors == 0;
}

bool cmd_cases(App *app, Args *args) {
    static const SessionOptions none;
    int code = session_cases(args->at[0], app->options ? app->options : &none, &app->out, app->json,
                             &app->diag);
    if (code > app->exit_code)
        app->exit_code = code;
    return app->diag.errors == 0;
}

bool cmd_bisect(App *app, Args *args) {
    BisectOptions o = {.keep = true};
    Interrupt before;
    for (int i = 0; i < args->n; i++)
        if (isdigit((unsigned char)*args->at[i]))
            o.limit_ms = atoi(args->at[i]);
        else
            o.over = args->at[i];
    if (!app->sink)
        return app_bisect(app, &o);
    int code = session_report_bisect(app->session, &o, &app->out, app->json,
                                     interrupt_begin(&before), &app->diag);
    interrupt_end(&before);
    if (code > app->exit_code)
        app->exit_code = code;
    return app->diag.errors == 0;
}

bool cmd_score(App *app, Args *args) {
    int code = session_report_score(args->n ? args->at[0] : NULL, &app->out, app->json, &app->diag);
    if (code > app->exit_code)
        app->exit_code = code;
    return app->diag.errors == 0;
}

bool cmd_bench(App *app, Args *args) {
    (void)args;
    int code = session_bench(app->session, &app->out, app->json, &app->diag);
    if (code > app->exit_code)
        app->exit_code = code;
    return code == 0;
}

bool cmd_dump(App *app, Args *args) {
    int code = session_dump(app->session, args->at[0], &app->diag);
    if (code > app->exit_code)
        app->exit_code = code;
    if (code == 0 && !app->sink)
        app_message(app, ST_text, "written to %s", args->at[0]);
    return code == 0;
}
