// session_cases.c: `fxray cases`: a file's lines go to helpers in chunks, whole cases are run
// there. A chunk whose helper dies or hangs is sent again line by line, so that only the line at
// fault is lost.
#include <string.h>
#include <unistd.h>

#include "core/debug/cases.h"
#include "core/session.h"
#include "core/base/work.h"

enum {
    CHUNK = 32,
    CHUNK_MS = 300000, // an optimising compiler makes all of a chunk in one start
    LINE_MS = 30000,
    MAX_HELPERS = 8
};

// In the helper: text backend, toolchain, line0 …; int seed, number0 … <- int verdict0, runs0;
// text name0, why0 …
static bool run_chunk(HelperCall *h) {
    const Message *m = h->message;
    CaseSetup s;
    const char *toolchain = message_get_text(m, "toolchain", NULL);
    if (!case_setup(&s, message_get_text(m, "backend", NULL), toolchain, h->diag))
        return false;
    s.seed = (uint64_t)message_get_int(m, "seed", 0);
    CaseLine lines[CHUNK];
    CaseResult results[CHUNK];
    int n = 0;
    for (const Field *f; n < CHUNK && (f = message_find(m, arena_printf(h->arena, "line%d", n)));
         n++)
        lines[n] = (CaseLine){f->kind == FIELD_text ? f->text : (Str){"", 0}, 0};
    cases_run_lines(&s, lines, n, results, h->arena, h->where);
    for (int i = 0; i < n; i++) {
        message_int(h->reply, arena_printf(h->arena, "verdict%d", i), results[i].verdict);
        message_int(h->reply, arena_printf(h->arena, "runs%d", i), results[i].runs);
        message_text(h->reply, arena_printf(h->arena, "name%d", i), results[i].name);
        if (results[i].why)
            message_text(h->reply, arena_printf(h->arena, "why%d", i), results[i].why);
    }
    return true;
}

typedef struct CasesRun {
    const CaseSetup *setup;
    Arena *arena;
    Helpers *helpers;
    const CaseLine *lines;
    CaseResult *results;
    int n;
} CasesRun;

static Request *send(const CasesRun *r, int first, int n, int timeout_ms) {
    Arena arena = {0};
    Message m = {.arena = &arena};
    message_text(&m, "backend", r->setup->backend);
    if (r->setup->toolchain)
        message_text(&m, "toolchain", r->setup->toolchain->name);
    message_int(&m, "seed", (int64_t)r->setup->seed);
    for (int i = 0; i < n; i++) {
        Str text = r->lines[first + i].text;
        message_text(&m, arena_printf(&arena, "line%d", i),
                     arena_strndup(&arena, text.ptr, text.len));
    }
    Request *q =
        helpers_send(r->helpers, SERVICE_call, &m, (RequestLimits){.timeout_ms = timeout_ms});
    arena_free(&arena);
    return q;
}

static void take_results(const CasesRun *r, const Message *m, int first, int n) {
    for (int i = 0; i < n; i++) {
        Arena *a = r->arena;
        CaseResult *c = &r->results[first + i];
        int64_t v = message_get_int(m, arena_printf(a, "verdict%d", i), CASE_failed);
        const char *why = message_get_text(m, arena_printf(a, "why%d", i), NULL);
        c->verdict = v >= CASE_passed && v <= CASE_bad ? (CaseVerdict)v : CASE_failed;
        c->runs = message_get_int(m, arena_printf(a, "runs%d", i), 0) != 0;
        c->name = arena_strdup(a, message_get_text(m, arena_printf(a, "name%d", i), "?"));
        c->why = why ? arena_strdup(a, why) : c->verdict ? "no reason is given" : NULL;
    }
}

static void take(const CasesRun *r, Request *q, int first, int n) {
    WorkPart part = work_enter(NULL, (double)first / r->n, 1);
    bool done = request_wait(r->helpers, q, NULL);
    work_leave(part);
    if (done)
        take_results(r, request_reply(q), first, n);
    else if (n == 1)
        r->results[first] =
            (CaseResult){.verdict = CASE_failed,
                         .name = "?",
                         .why = arena_strdup(r->arena, diag_first(request_diag(q)))};
    request_free(q);
    for (int i = 0; !done && n > 1 && i < n && !work_stopped(); i++)
        take(r, send(r, first + i, 1, LINE_MS), first + i, 1);
}

// Two chunks a helper are under way; the oldest is waited for.
static void run_all(const CasesRun *r, int n_helpers) {
    Request *under_way[2 * MAX_HELPERS];
    int window = 2 * n_helpers, sent = 0;
    for (int first = 0; first < r->n; first += CHUNK) {
        if (work_stopped())
            return;
        for (; sent < r->n && sent < first + window * CHUNK; sent += CHUNK)
            under_way[sent / CHUNK % window] =
                send(r, sent, r->n - sent < CHUNK ? r->n - sent : CHUNK, CHUNK_MS);
        take(r, under_way[first / CHUNK % window], first,
             r->n - first < CHUNK ? r->n - first : CHUNK);
    }
}

int session_cases(const char *path, const SessionOptions *o, Buf *out, bool json, Diag *d) {
    Arena arena = {0};
    CaseSetup setup;
    CaseLines lines = {0};
    bool ok = case_lines(&lines, &arena, path, d);
    const char *backend = o->backend ? o->backend : ok ? case_default_backend(&lines) : NULL;
    if (!ok || !case_setup(&setup, backend, o->toolchain, d)) {
        arena_free(&arena);
        return diag_exit_code(d);
    }
    setup.seed = (uint64_t)o->seed;
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    int n = cores < 1 ? 1 : cores > MAX_HELPERS ? MAX_HELPERS : (int)cores;
    CasesRun run = {.setup = &setup,
                    .arena = &arena,
                    .helpers = helpers_new(n, run_chunk, d),
                    .lines = lines.at,
                    .results = ARENA_ARRAY(&arena, lines.n, CaseResult),
                    .n = lines.n};
    int code = 3;
    if (run.helpers) {
        run_all(&run, n);
        helpers_free(run.helpers);
        CaseReport report = {path, &setup, lines.at, run.results, lines.n};
        if (work_stopped())
            diag_fail(d, "stopped");
        int failed = work_stopped() ? 0 : cases_report(&report, json, out, d);
        code = d->errors ? 2 : failed > 0;
    }
    arena_free(&arena);
    return code;
}
