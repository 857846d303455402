// probe.c: a question as a message and back, and what its answer says: of the side that asks.
#include <string.h>

#include "core/debug/probe_impl.h"

enum { DEFAULT_LIMIT_MS = 10000 };

// ---- the question as a message

static const char kind_letters[] = "upbcst"; // by InputKind

static void put_consts(Message *m, const ProbeQuery *q, const Graph *g, const char *prefix) {
    for (int i = 0; i < g->consts.n; i++) {
        const GraphConst *c = &g->consts.at[i];
        const Tensor *t = c->tensor ? c->tensor : q->state ? map_get(q->state, c->name) : NULL;
        if (t)
            message_tensor(m, arena_printf(m->arena, "const.%s%s", prefix, c->name), t);
    }
    for (int i = 0; i < g->children.n; i++)
        put_consts(m, q, g->children.at[i].graph,
                   arena_printf(m->arena, "%s%s.", prefix, g->children.at[i].name));
}

static void put_override(void *ctx, DecisionKind kind, const char *key, bool result) {
    buf_printf(ctx, "%s %d %s\n", decision_kind_name(kind), result, key);
}

static void put_overrides(Message *m, const Overrides *o) {
    Buf text = {.arena = m->arena};
    if (o)
        decide_override_each(o, put_override, &text);
    message_text(m, "overrides", buf_str(&text));
    for (int k = 0; o && k < DECIDE_n_kinds; k++)
        if (decide_limit_at(o, (DecisionKind)k) >= 0)
            message_int(m, arena_printf(m->arena, "limit.%s", decision_kind_name((DecisionKind)k)),
                        decide_limit_at(o, (DecisionKind)k));
}

static void put_graph(Message *m, const ProbeQuery *q) {
    Buf text = {.arena = m->arena};
    if (q->graph) {
        graph_print(&text, q->graph, &fx_style_log, NULL);
        put_consts(m, q, q->graph, "");
    } else {
        buf_printf(&text, "%.*s", (int)q->text.len, q->text.ptr);
    }
    message_text(m, "graph", buf_str(&text));
    message_int(m, "level", q->level);
    message_text(m, "kind", q->kind ? q->kind : "");
    char *kinds = arena_alloc(m->arena, (size_t)q->n_inputs + 1),
         *needs = arena_alloc(m->arena, (size_t)q->n_inputs + 1);
    for (int i = 0; i < q->n_inputs; i++) {
        kinds[i] = kind_letters[q->kinds ? q->kinds[i] : IN_user];
        needs[i] = q->needs_grad && q->needs_grad[i] ? '1' : '0';
        message_value(m, arena_printf(m->arena, "in%d", i), &q->inputs[i]);
    }
    kinds[q->n_inputs] = needs[q->n_inputs] = '\0';
    message_text(m, "kinds", kinds);
    message_text(m, "needs", needs);
}

void probe_write(Message *m, const ProbeQuery *q) {
    Buf sets = {.arena = m->arena};
    put_graph(m, q);
    for (int i = 0; q->sets && q->sets[i]; i++)
        buf_printf(&sets, "%s\n", q->sets[i]);
    message_text(m, "sets", buf_str(&sets));
    put_overrides(m, q->overrides);
    probe_put_aliases(m, q);
    message_int(m, "rung", q->rung);
    message_text(m, "toolchain", q->toolchain ? q->toolchain->name : "");
    message_int(m, "against", q->against);
    message_float(m, "rtol", q->tolerance.rtol);
    message_float(m, "atol", q->tolerance.atol);
    message_int(m, "ulp", q->tolerance.ulp);
    message_float(m, "repro", q->tolerance.repro);
    message_int(m, "seed", q->seed);
    message_int(m, "threads", q->threads);
    message_int(m, "values", q->values);
    message_int(m, "twice", q->twice);
    message_int(m, "poison", q->poison);
}

static double get_float(const Message *m, const char *name) {
    const Field *f = message_find(m, name);
    return f && f->kind == FIELD_float ? f->f : 0;
}

static const char **lines_of(Arena *a, const char *text, int *n) {
    VEC(const char *) lines = {0};
    while (*text) {
        size_t len = strcspn(text, "\n");
        vec_push(a, &lines, arena_strndup(a, text, len));
        text += len + (text[len] == '\n');
    }
    *n = lines.n;
    vec_push(a, &lines, (const char *)NULL);
    return lines.at;
}

static const Overrides *read_overrides(const HelperCall *c) {
    Overrides *o = overrides_new(c->arena);
    int n;
    const char **lines = lines_of(c->arena, message_get_text(c->message, "overrides", ""), &n);
    for (int i = 0; i < n; i++) {
        size_t len = strcspn(lines[i], " ");
        int kind = decision_kind_find(arena_strndup(c->arena, lines[i], len));
        if (kind >= 0 && strlen(lines[i]) > len + 3)
            decide_override(o, (DecisionKind)kind, lines[i] + len + 3, lines[i][len + 1] == '1');
    }
    for (int k = 0; k < DECIDE_n_kinds; k++) {
        const char *name = arena_printf(c->arena, "limit.%s", decision_kind_name((DecisionKind)k));
        int64_t limit = message_get_int(c->message, name, -1);
        if (limit >= 0)
            decide_limit(o, (DecisionKind)k, (int)limit);
    }
    return o;
}

static void read_inputs(const HelperCall *c, ProbeQuery *q) {
    const char *kinds = message_get_text(c->message, "kinds", "");
    const char *needs = message_get_text(c->message, "needs", "");
    int n = q->n_inputs = (int)strlen(kinds);
    RtValue *in = ARENA_ARRAY(c->arena, n + 1, RtValue);
    InputKind *kind = ARENA_ARRAY(c->arena, n + 1, InputKind);
    bool *need = ARENA_ARRAY(c->arena, n + 1, bool);
    for (int i = 0; i < n; i++) {
        const Field *f = message_find(c->message, arena_printf(c->arena, "in%d", i));
        const char *at = strchr(kind_letters, kinds[i]);
        kind[i] = at ? (InputKind)(at - kind_letters) : IN_user;
        need[i] = strlen(needs) == (size_t)n && needs[i] == '1';
        if (f && f->kind == FIELD_tensor)
            in[i] = (RtValue){.kind = RT_tensor, .tensor = f->tensor}; // the message keeps it
        else if (f && f->kind == FIELD_int)
            in[i] = (RtValue){.kind = RT_int, .i = f->i};
        else if (f && f->kind == FIELD_float)
            in[i] = (RtValue){.kind = RT_float, .f = f->f};
    }
    q->inputs = in;
    q->kinds = kind;
    q->needs_grad = need;
}

static const Map *read_state(const HelperCall *c) {
    Map *state = ARENA_NEW(c->arena, Map);
    state->arena = c->arena;
    for (int i = 0; i < c->message->fields.n; i++) {
        const Field *f = &c->message->fields.at[i];
        Tensor *t = f->kind == FIELD_tensor ? ARENA_NEW(c->arena, Tensor) : NULL;
        if (!t || !str_starts(f->name, "const."))
            continue;
        *t = f->tensor;
        map_put(state, f->name + strlen("const."), t);
    }
    return state;
}

bool probe_read(const HelperCall *c, ProbeQuery *q) {
    const Message *m = c->message;
    const Field *text = message_find(m, "graph");
    int64_t rung = message_get_int(m, "rung", -1), against = message_get_int(m, "against", -1),
            level = message_get_int(m, "level", -1);
    if (!text || text->kind != FIELD_text || rung < 0 || rung >= RUNG_count || against < 0 ||
        against >= RUNG_count || level < LEVEL_torch || level > LEVEL_post_grad) {
        diag_fail(c->diag, "a question without a graph, a rung or a level");
        return false;
    }
    int n;
    *q = (ProbeQuery){
        .text = text->text,
        .level = (GraphLevel)level,
        .kind = message_get_text(m, "kind", ""),
        .state = read_state(c),
        .sets = lines_of(c->arena, message_get_text(m, "sets", ""), &n),
        .overrides = read_overrides(c),
        .rung = (CaseRung)rung,
        .toolchain = toolchain_find(message_get_text(m, "toolchain", "")),
        .against = (CaseRung)against,
        .tolerance = {get_float(m, "rtol"), get_float(m, "atol"), message_get_int(m, "ulp", 0),
                      get_float(m, "repro")},
        .seed = message_get_int(m, "seed", 0),
        .threads = (int)message_get_int(m, "threads", 0),
        .values = message_get_int(m, "values", 0) != 0,
        .twice = message_get_int(m, "twice", 0) != 0,
        .poison = message_get_int(m, "poison", 0) != 0,
    };
    read_inputs(c, q);
    probe_read_aliases(c, q);
    return true;
}

// ---- asking

Request *probe_send(Helpers *h, const ProbeQuery *q) {
    Arena arena = {0};
    Message m = {.arena = &arena};
    message_text(&m, "call", "probe");
    probe_write(&m, q);
    int limit = q->limit_ms > 0 ? q->limit_ms : DEFAULT_LIMIT_MS;
    Request *r = helpers_send(h, SERVICE_call, &m,
                              (RequestLimits){.timeout_ms = limit, .by_step = true});
    message_drop(&m);
    arena_free(&arena);
    return r;
}

// `rung kernels` or `rung post_grad decompose_auto_functionalized`, `reference`.
static bool take_phase(Arena *a, const char *phase, Failure *f) {
    f->stage = STAGE_run;
    f->pass = "";
    if (!str_starts(phase, "rung "))
        return false;
    const char *stage = phase + strlen("rung ");
    size_t len = strcspn(stage, " ");
    int found = stage_find(arena_strndup(a, stage, len));
    if (found >= 0)
        f->stage = (StageId)found;
    if (stage[len])
        f->pass = arena_strdup(a, stage + len + 1);
    return true;
}

// The helper died or was stopped: the kind of end is in its words.
static void take_end(const Request *r, Arena *a, ProbeAnswer *out) {
    Failure *f = &out->failure;
    const char *text = diag_first(request_diag(r)), *crash = strstr(text, "crashed: ");
    out->valid = take_phase(a, request_phase(r), f);
    f->kind = request_timed_out(r) ? FAIL_hang : FAIL_crash;
    f->where = arena_strdup(a, request_where(r));
    f->message = arena_strdup(a, text);
    const char *class = crash ? crash + strlen("crashed: ") : text;
    const char *in = strstr(class, " in ");
    f->error_class = f->kind == FAIL_hang
                         ? "no answer"
                         : arena_strndup(a, class, in ? (size_t)(in - class) : strlen(class));
}

static const char *text_of(const Message *m, Arena *a, const char *name) {
    return arena_strdup(a, message_get_text(m, name, ""));
}

static void take_failure(const Message *m, Arena *a, Failure *f) {
    int64_t kind = message_get_int(m, "failure", FAIL_error),
            stage = message_get_int(m, "stage", STAGE_run);
    f->kind = kind >= FAIL_none && kind <= FAIL_hang ? (FailureKind)kind : FAIL_error;
    f->stage = stage >= 0 && stage < STAGE_count ? (StageId)stage : STAGE_run;
    f->pass = text_of(m, a, "pass");
    f->error_class = text_of(m, a, "class");
    f->message = text_of(m, a, "message");
    f->where = text_of(m, a, "where");
}

static bool wrong(const ProbeRow *row) {
    return verdict_info[row->judged.verdict].bad || row->unsteady || row->unwritten;
}

// The first wrong result is what the failure is about.
static void find_failure(ProbeAnswer *out) {
    Failure *f = &out->failure;
    out->verdict = VERDICT_same_bits;
    for (int i = 0; i < out->n_rows; i++) {
        const ProbeRow *row = &out->rows[i];
        const Judged *j = &row->judged;
        if (j->verdict > out->verdict)
            out->verdict = j->verdict;
        if (f->kind != FAIL_none || !wrong(row))
            continue;
        f->kind = FAIL_accuracy;
        f->result = row->name;
        f->element = j->element;
        f->sign = j->sign;
        f->is_nan = j->diff.nan_differs || (j->got_nan < 0) != (j->want_nan < 0);
        f->got = j->got;
        f->want = j->want;
        f->exact = j->exact;
        f->message = j->why           ? j->why
                     : row->unwritten ? "it shows what memory held before"
                     : row->unsteady  ? "another run gave other bits"
                                      : verdict_info[j->verdict].doc;
    }
}

static const char *or_empty(const char *text) {
    return text ? text : "";
}

void probe_take(const Request *r, Arena *a, ProbeAnswer *out) {
    *out = (ProbeAnswer){.valid = true, .failure.element = -1};
    if (request_state(r) != REQ_done) {
        const Diag *d = request_diag(r);
        bool died = request_timed_out(r) || *request_phase(r) || *request_where(r);
        if (died) {
            take_end(r, a, out);
        } else {
            out->valid = false;
            out->failure.kind = FAIL_error;
            out->failure.stage = STAGE_run;
            out->failure.message = arena_strdup(a, d->errors ? diag_first(d) : "cancelled");
        }
    } else {
        const Message *m = request_reply(r);
        out->valid = message_get_int(m, "valid", 0) != 0;
        out->ns = message_get_int(m, "ns", 0);
        out->nodes = (int)message_get_int(m, "nodes", 0);
        out->random = message_get_int(m, "random", 0) != 0;
        out->fired = (int)message_get_int(m, "fired", 0);
        take_failure(m, a, &out->failure);
        int64_t n = message_get_int(m, "rows", 0);
        out->n_rows = n > 0 && n <= m->fields.n ? (int)n : 0;
        out->rows = ARENA_ARRAY(a, out->n_rows + 1, ProbeRow);
        for (int i = 0; i < out->n_rows; i++)
            probe_take_row(m, a, i, &out->rows[i]);
        find_failure(out);
    }
    Failure *f = &out->failure;
    f->pass = or_empty(f->pass);
    f->error_class = or_empty(f->error_class);
    f->message = or_empty(f->message);
    f->where = or_empty(f->where);
    f->result = or_empty(f->result);
}

void probe_ask(Helpers *h, const ProbeQuery *q, Arena *a, ProbeAnswer *out) {
    Request *r = probe_send(h, q);
    request_wait(h, r, NULL);
    probe_take(r, a, out);
    request_free(r);
}

void probe_free(ProbeAnswer *answer) {
    for (int i = 0; i < answer->n_rows; i++) {
        rt_drop(&answer->rows[i].got);
        rt_drop(&answer->rows[i].want);
        rt_drop(&answer->rows[i].exact);
    }
    answer->n_rows = 0;
}
