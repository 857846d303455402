// minify_ask.c: candidates as requests to the helpers, and what comes back: of the pipeline, of the
// user's command, and the values that the nodes of a graph have.
#include <stdlib.h>
#include <string.h>

#include "core/base/file.h"
#include "core/debug/minify_impl.h"
#include "core/helper/helper.h"

enum { LIMIT_MS = 10000, VALUES_LIMIT_MS = 60000 };
static const int64_t MOST_BYTES = (int64_t)1 << 28; // of the values that are kept at once

// ---- the user's command

// A folder with what the command looks at; NULL and an error.
static const char *write_candidate(const Candidate *c, Arena *a, Diag *d) {
    const char *dir = dir_temp(a, d);
    Buf text = {.arena = a};
    Map rows = {.arena = a};
    int i = 0;
    if (!dir)
        return NULL;
    graph_print(&text, c->graph, &fx_style_log, NULL);
    GRAPH_EACH (c->graph, p) {
        const MinifyInput *in = p->op == FX_placeholder ? map_get(&c->inputs, p->name) : NULL;
        if (!in)
            continue;
        if (in->v.kind == RT_tensor)
            map_put(&rows, arena_printf(a, "in%d", i), (void *)&in->v.tensor);
        i++;
    }
    bool ok = file_write(path_join(a, dir, "graph.txt"), buf_str(&text), text.len, d) &&
              safetensors_write(path_join(a, dir, "inputs.safetensors"), &rows, d);
    return ok ? dir : NULL;
}

static Request *send_command(Minify *m, Pending *p) {
    Arena arena = {0};
    Diag d = {.arena = &arena};
    Message msg = {.arena = &arena};
    int limit = m->options.limit_ms > 0 ? m->options.limit_ms : LIMIT_MS;
    p->folder = write_candidate(p->c, &p->c->arena, &d);
    message_text(&msg, "call", "command");
    message_text(&msg, "command", m->options.command);
    message_text(&msg, "folder", p->folder ? p->folder : "");
    message_int(&msg, "limit", limit);
    Request *r =
        helpers_send(m->helpers, SERVICE_call, &msg, (RequestLimits){.timeout_ms = limit + 1000});
    message_drop(&msg);
    arena_free(&arena);
    return r;
}

bool minify_command_reply(HelperCall *c) {
    const char *command = message_get_text(c->message, "command", "");
    const char *folder = message_get_text(c->message, "folder", "");
    // The folder is the shell's first argument, so that its name needs no quotes.
    const char *argv[] = {"sh", "-c", arena_printf(c->arena, "%s \"$1\"", command), "sh", folder,
                          NULL};
    ProcSpec spec = {.argv = argv,
                     .timeout_ms = (int)message_get_int(c->message, "limit", 0),
                     .output_bytes = 1 << 16};
    ProcResult r;
    if (!*folder || !proc_run(&spec, c->arena, &r, c->diag))
        return false;
    message_int(c->reply, "code", r.exit_code);
    message_int(c->reply, "signal", r.signal);
    message_int(c->reply, "timed_out", r.timed_out);
    message_int(c->reply, "ns", r.ns);
    return true;
}

static void take_command(const Message *reply, Arena *a, Failure *f, bool *valid) {
    int64_t code = message_get_int(reply, "code", -1), signal = message_get_int(reply, "signal", 0);
    bool late = message_get_int(reply, "timed_out", 0) != 0;
    *f = (Failure){.stage = STAGE_run, .element = -1};
    *valid = late || (code != 125 && code != 126 && code != 127);
    f->kind = late ? FAIL_hang : code == 0 ? FAIL_none : signal ? FAIL_crash : FAIL_error;
    f->error_class = signal ? arena_printf(a, "signal %lld", (long long)signal)
                            : arena_printf(a, "exit code %lld", (long long)code);
    f->message = late ? "the command did not end" : f->error_class;
    f->pass = f->where = f->result = "";
}

// ---- candidates

void minify_ask(Minify *m, Pending *p) {
    if (m->options.command) {
        p->request = send_command(m, p);
    } else {
        Arena arena = {0};
        ProbeQuery q = candidate_query(m, p->c, &arena);
        p->request = probe_send(m->helpers, &q);
        arena_free(&arena);
    }
    p->asked_ns = clock_ns();
    m->queries++;
}

static void close_folder(Pending *p) {
    Arena tmp = {0};
    Diag quiet = {.arena = &tmp};
    if (p->folder && *p->folder)
        dir_remove(p->folder, &quiet);
    p->folder = NULL;
    arena_free(&tmp);
}

void minify_take(Minify *m, Pending *p) {
    Arena tmp = {0};
    ProbeAnswer answer = {.valid = true};
    if (m->options.command && request_state(p->request) == REQ_done) {
        const Message *reply = request_reply(p->request);
        take_command(reply, &tmp, &answer.failure, &answer.valid);
        answer.ns = message_get_int(reply, "ns", 0);
    } else {
        probe_take(p->request, &tmp, &answer);
    }
    request_free(p->request);
    p->request = NULL;
    close_folder(p);
    p->done = true;
    p->failure = failure_copy(&p->c->arena, &answer.failure);
    p->attempt.ns = answer.ns > 0 ? answer.ns : clock_ns() - p->asked_ns;
    m->asked_ns += p->attempt.ns;
    if (!answer.valid) {
        p->attempt.verdict = TRY_invalid;
        p->attempt.why = arena_strdup(&m->arena, answer.failure.message);
    } else if (m->steps.n) {
        StrategyId s = p->attempt.strategy;
        bool relaxed = s < STRATEGY_count && strategy_info[s].relaxed;
        p->attempt.verdict = minify_judge(m, p->c, &p->failure, relaxed, &p->attempt.why);
    }
    probe_free(&answer);
    arena_free(&tmp);
}

void pending_free(Pending *p) {
    if (p->request) {
        request_cancel(p->request);
        request_free(p->request);
    }
    close_folder(p);
    candidate_free(p->c);
}

// ---- values of nodes

Request *values_send(Helpers *h, const ProbeQuery *q, int half, const char *until) {
    Arena arena = {0};
    Message msg = {.arena = &arena};
    message_text(&msg, "call", "values");
    message_int(&msg, "half", half);
    if (until)
        message_text(&msg, "until", until);
    probe_write(&msg, q);
    Request *r = helpers_send(h, SERVICE_call, &msg,
                              (RequestLimits){.timeout_ms = VALUES_LIMIT_MS, .by_step = true});
    message_drop(&msg);
    arena_free(&arena);
    return r;
}

Request *minify_ask_values(Minify *m, const Candidate *c) {
    Arena arena = {0};
    ProbeQuery q = candidate_query(m, c, &arena);
    q.rung = RUNG_eager;
    m->values_of = c;
    Request *r = values_send(m->helpers, &q, 0, NULL);
    arena_free(&arena);
    return r;
}

typedef struct Values {
    HelperCall *c;
    Map told;
    int64_t bytes;
    int half; // that is looked at
} Values;

// Dense ones keep their strides.
static bool keep_layout(Tensor *out, const Tensor *t, Diag *d) {
    int64_t span = 1;
    for (int i = 0; i < t->ndim; i++)
        span += (t->size[i] - 1) * t->stride[i];
    if (tensor_numel(t) == 0 || span != tensor_numel(t))
        return tensor_to(out, t, t->dtype, d);
    if (!tensor_new_raw(out, t->dtype, t->ndim, t->size, t->stride, d))
        return false;
    tensor_copy(out, t);
    return true;
}

static void see(void *ctx, int half, const char *name, const Tensor *t) {
    Values *v = ctx;
    Tensor copy;
    Diag quiet = {.arena = v->c->arena};
    v->bytes += (int64_t)tensor_bytes(t);
    if (half != v->half || v->bytes > MOST_BYTES || map_find(&v->told, name) ||
        !keep_layout(&copy, t, &quiet))
        return;
    int i = v->told.n;
    map_put(&v->told, arena_strdup(v->c->arena, name), v);
    message_text(v->c->reply, arena_printf(v->c->arena, "name%d", i), name);
    message_tensor(v->c->reply, arena_printf(v->c->arena, "value%d", i), &copy);
    tensor_drop(&copy);
}

bool minify_values_reply(HelperCall *c, bool (*run)(void *ctx, HelperCall *tapped), void *ctx) {
    Values v = {.c = c,
                .told = {.arena = c->arena},
                .half = (int)message_get_int(c->message, "half", 0)};
    HelperCall tapped = *c;
    tapped.tap = see;
    tapped.tap_ctx = &v;
    bool ok = run(ctx, &tapped);
    message_int(c->reply, "n", v.told.n);
    return ok;
}

void values_take(const Request *r, Arena *a, Map *out) {
    const Message *reply = request_reply(r);
    if (request_state(r) != REQ_done)
        return;
    // Pairs of fields, in order.
    for (int i = 0; i + 1 < reply->fields.n; i++) {
        const Field *name = &reply->fields.at[i], *value = &reply->fields.at[i + 1];
        if (name->kind != FIELD_text || value->kind != FIELD_tensor)
            continue;
        RtValue *v = ARENA_NEW(a, RtValue);
        *v = (RtValue){.kind = RT_tensor, .tensor = value->tensor};
        map_put(out, arena_strdup(a, name->text.ptr), v);
    }
}

// Numbers of placeholders, as names.
static void note_written(Minify *m, const char *numbers) {
    Arena tmp = {0};
    Node **p;
    int n = graph_placeholders(m->values_of->graph, &p, &tmp);
    m->written = (Map){.arena = &m->arena};
    for (const char *c = numbers; *c;) {
        char *end;
        long i = strtol(c, &end, 10);
        if (end == c)
            break;
        if (i >= 0 && i < n)
            map_put(&m->written, arena_strdup(&m->arena, p[i]->name), m);
        c = end + (*end == ' ');
    }
    arena_free(&tmp);
}

void minify_take_values(Minify *m, const Request *r) {
    Arena tmp = {0};
    Map values = {.arena = &tmp};
    values_take(r, &tmp, &values);
    m->values = (Map){.arena = &m->arena};
    m->want_values = false;
    if (request_state(r) == REQ_done)
        note_written(m, message_get_text(request_reply(r), "written", ""));
    for (MapEntry *e = map_first(&values); e; e = map_next(&values, e))
        map_put(&m->values, arena_strdup(&m->arena, e->key), minify_value(m, e->ptr));
    arena_free(&tmp);
}
