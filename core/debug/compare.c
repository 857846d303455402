// compare.c: the ladder asked rung by rung, in parallel; one that differs only because compiled
// code draws random numbers in another order is asked again in eager's order.
#include "core/debug/compare.h"
#include "core/debug/probe_impl.h"
#include "core/base/work.h"

#include <math.h>
#include <string.h>

static const char *const rung_names[RUNG_count] = {
#define BACKEND(id, name, ...) [RUNG_##id] = name,
#include "core/pipeline/backends.def"
#undef BACKEND
};

static const StageId rung_stage[RUNG_count] = {
#define BACKEND(id, name, alias, executes, ...) [RUNG_##id] = executes,
#include "core/pipeline/backends.def"
#undef BACKEND
};

Compare *compare_new(Helpers *h) {
    Arena arena = {0};
    Compare *c = ARENA_NEW(&arena, Compare);
    c->arena = arena;
    c->helpers = h;
    c->bad = c->only = -1;
    c->want_place = true;
    return c;
}

const char **sets_with(Arena *a, const char *const *sets, const char *more) {
    int n = 0;
    while (sets && sets[n])
        n++;
    const char **out = ARENA_ARRAY(a, n + 2, const char *);
    for (int i = 0; i < n; i++)
        out[i] = sets[i];
    out[n] = more;
    return out;
}

ProbeQuery compare_query(Compare *c, const CompareRung *r) {
    ProbeQuery q = c->query;
    q.rung = r->rung;
    q.toolchain = r->toolchain;
    q.twice = q.poison = r->rung == RUNG_full;
    if (r->rung == RUNG_eager)
        q.overrides = NULL;
    if (r->own_stream)
        q.sets = sets_with(&c->arena, q.sets, "fallback_random=on");
    return q;
}

static void send(Compare *c, CompareRung *r) {
    ProbeQuery q = compare_query(c, r);
    r->request = probe_send(c->helpers, &q);
}

static bool is_wanted(const Compare *c, int rung) {
    return rung == RUNG_eager || c->only < 0 || rung == c->only;
}

void compare_start(Compare *c, const Toolchain *const *with) {
    int n_full = 0;
    while (with && with[n_full])
        n_full++;
    c->rungs = ARENA_ARRAY(&c->arena, RUNG_count + n_full, CompareRung);
    for (int k = 0; k < RUNG_count; k++)
        for (int t = 0; is_wanted(c, k) && t < (k == RUNG_full ? n_full : 1); t++) {
            CompareRung *r = &c->rungs[c->n++];
            r->rung = (CaseRung)k;
            r->label = rung_names[k];
            if (k != RUNG_full)
                continue;
            r->toolchain = with[t];
            r->label = arena_printf(&c->arena, "full %s", with[t]->name);
        }
    for (int i = 0; i < c->n; i++)
        send(c, &c->rungs[i]);
}

static bool is_bad(const CompareRung *r) {
    return !r->answer.valid || r->answer.failure.kind != FAIL_none;
}

static void settle(CompareRung *r) {
    r->done = true;
    r->verdict = r->answer.verdict;
    if (r->answer.valid && r->answer.failure.kind > FAIL_accuracy)
        r->verdict = VERDICT_bug;
    else if (r->own_stream && !is_bad(r) && r->verdict < VERDICT_random)
        r->verdict = VERDICT_random;
}

static void take(Compare *c, CompareRung *r) {
    probe_free(&r->answer);
    probe_take(r->request, &c->arena, &r->answer);
    request_free(r->request);
    r->request = NULL;
    bool draws = r->answer.random && r->answer.failure.kind == FAIL_accuracy;
    if (draws && !r->own_stream && rung_stage[r->rung] > STAGE_functional) {
        r->own_stream = true;
        send(c, r);
        return;
    }
    settle(r);
}

static bool over(const Request *r) {
    return request_state(r) != REQ_waiting && request_state(r) != REQ_running;
}

static void search_place(Compare *c) {
    for (int i = 0; i < c->n && c->bad < 0; i++)
        if (c->rungs[i].answer.valid &&
            failure_matches((FailureKind)c->check, &c->rungs[i].answer.failure))
            c->bad = i;
    if (c->bad < 0 || !c->want_place || c->rungs[c->bad].answer.failure.kind != FAIL_accuracy) {
        c->done = true;
        return;
    }
    ProbeQuery q = compare_query(c, &c->rungs[c->bad]);
    c->search = divergence_send(c->helpers, &q);
}

bool compare_poll(Compare *c) {
    if (c->done)
        return true;
    helpers_poll(c->helpers);
    bool all = true;
    for (int i = 0; i < c->n; i++) {
        CompareRung *r = &c->rungs[i];
        if (r->request && over(r->request))
            take(c, r);
        all = all && r->done;
    }
    if (all && !c->search)
        search_place(c);
    if (c->search && over(c->search)) {
        divergence_take(c->search, &c->arena, &c->place);
        request_free(c->search);
        c->search = NULL;
        c->done = true;
    }
    return c->done;
}

Request *compare_waiting(const Compare *c) {
    Request *r = c->search;
    for (int i = 0; i < c->n && !r; i++)
        r = c->rungs[i].request;
    return r;
}

void compare_wait(Compare *c, const bool *cancel) {
    while (!compare_poll(c)) {
        if (cancel && *cancel)
            compare_stop(c);
        Request *r = compare_waiting(c);
        int done = 0;
        for (int i = 0; i < c->n; i++)
            done += c->rungs[i].done;
        WorkPart part = work_enter("comparing rungs", (double)done / (c->n + 1), 1);
        if (r)
            request_wait(c->helpers, r, cancel);
        work_leave(part);
    }
}

static void give_up(Request **r) {
    if (*r) {
        request_cancel(*r);
        request_free(*r);
    }
    *r = NULL;
}

void compare_stop(Compare *c) {
    for (int i = 0; i < c->n; i++)
        give_up(&c->rungs[i].request);
    give_up(&c->search);
    c->done = true;
}

void compare_free(Compare *c) {
    compare_stop(c);
    for (int i = 0; i < c->n; i++)
        probe_free(&c->rungs[i].answer);
    rt_drop(&c->place.got);
    rt_drop(&c->place.want);
    for (int i = 0; i < c->query.n_inputs; i++)
        if (c->query.inputs[i].kind == RT_tensor) {
            Tensor t = c->query.inputs[i].tensor;
            tensor_drop(&t);
        }
    Arena arena = c->arena;
    arena_free(&arena);
}

Request *divergence_send(Helpers *h, const ProbeQuery *q) {
    Arena arena = {0};
    Message m = {.arena = &arena};
    message_text(&m, "call", "diverge");
    probe_write(&m, q);
    Request *r = helpers_send(h, SERVICE_call, &m,
                              (RequestLimits){.timeout_ms = 60000, .by_step = true});
    message_drop(&m);
    arena_free(&arena);
    return r;
}

void divergence_take(const Request *r, Arena *a, Divergence *out) {
    const Message *m = request_reply(r);
    bool done = request_state(r) == REQ_done;
    *out = (Divergence){.found = done && message_get_int(m, "found", 0)};
    int64_t stage = done ? message_get_int(m, "stage", 0) : 0;
    out->stage = stage >= 0 && stage < STAGE_count ? (StageId)stage : STAGE_run;
    out->nodes = done ? (int)message_get_int(m, "nodes", 0) : 0;
    const struct {
        const char *name, **text;
    } texts[] = {{"pass", &out->pass},       {"half", &out->half},
                 {"node", &out->node},       {"op", &out->op},
                 {"against", &out->against}, {"kernel", &out->kernel},
                 {"reads", &out->reads},
                 {"type", &out->type},       {"at", &out->at},
                 {"pattern", &out->pattern}, {"first_nan", &out->first_nan},
                 {"origins", &out->origins}};
    for (int i = 0; i < COUNT(texts); i++)
        *texts[i].text = done ? arena_strdup(a, message_get_text(m, texts[i].name, "")) : "";
    if (!out->found)
        return;
    ProbeRow row = {0};
    probe_take_row(m, a, 0, &row);
    out->judged = row.judged;
    out->got = row.got;
    out->want = row.want;
}

bool compare_failed(const Compare *c) {
    for (int i = 0; i < c->n; i++)
        if (is_bad(&c->rungs[i]))
            return true;
    return false;
}

const ProbeRow *compare_row(const CompareRung *r, const char *name) {
    for (int i = 0; i < r->answer.n_rows; i++)
        if (!strcmp(r->answer.rows[i].name, name))
            return &r->answer.rows[i];
    return NULL;
}

const char *compare_word(const CompareRung *r) {
    if (!r->done)
        return "…";
    if (!r->answer.valid)
        return "cannot run";
    if (r->answer.failure.kind > FAIL_accuracy)
        return failure_kind_name(r->answer.failure.kind);
    if (r->rung == RUNG_eager && !is_bad(r))
        return "reference";
    return r->answer.failure.kind == FAIL_accuracy ? verdict_info[VERDICT_bug].name
                                                   : verdict_info[r->verdict].name;
}
