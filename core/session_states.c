// session_states.c: what a bisection asks of a helper beside questions: which decisions a build
// takes, and what its stages look like. And here: a bisection of the session.
#include <string.h>

#include "core/debug/bisect.h"
#include "core/session_private.h"
#include "core/session_probe.h"

// ---- in the helper

static char half_of(const Unit *u) {
    return !u->parent ? '-' : u == u->parent->forward ? 'f' : 'b';
}

// Of training the whole graph up to where it is parted, then its halves.
static bool has_stage(const Unit *u, StageId stage) {
    return u->parent ? stage >= STAGE_partition : !u->forward || stage < STAGE_partition;
}

static const char *one_line(Arena *a, const char *text) {
    char *copy = arena_strdup(a, text ? text : "");
    for (char *p = copy; *p; p++)
        if (*p == '\t' || *p == '\n')
            *p = ' ';
    return copy;
}

static void list_settings(HelperCall *c, const Session *s, const ProbeQuery *q, Buf *out) {
    for (int i = 0; i < settings_count(); i++) {
        SettingInfo x = settings_at(s, i, c->arena);
        bool given = false;
        for (int k = 0; q->sets[k]; k++)
            given = given || (str_starts(q->sets[k], x.name) && q->sets[k][strlen(x.name)] == '=');
        // A setting that plants a bug is none that could be blamed for it; without the one that
        // draws as eager does, nothing could be compared.
        bool planted = strstr(x.name, "TESTING_ONLY") || !strcmp(x.name, "fallback_random");
        ListLine l = {given && !planted ? 'g' : 's', x.from, '-', x.name, true,
                      one_line(c->arena, x.value),   ""};
        list_print(out, &l);
    }
}

// The nodes that an operation of the loops was made of.
static void print_origins(Buf *out, const IrModule *m, const IrOp *op) {
    buf_printf(out, " %s", op->name);
    for (int k = 0; k < op->outputs.n; k++)
        buf_printf(out, " %s", op->outputs.at[k]->name);
    for (int k = 0; k < op->origins.n; k++) {
        const Node *n = graph_by_id(m->graph, op->origins.at[k]);
        buf_printf(out, " %s", n ? n->name : "");
    }
}

static bool is_op(const IrOp *op, const char *name, size_t len) {
    bool is = strlen(op->name) == len && !strncmp(op->name, name, len);
    for (int k = 0; k < op->outputs.n; k++)
        is = is || (strlen(op->outputs.at[k]->name) == len &&
                    !strncmp(op->outputs.at[k]->name, name, len));
    return is;
}

// Of a buffer or of nodes of the loops, op1 or op1_op2, also what they were made of.
static const char *names_of(HelperCall *c, const Unit *u, const char *key) {
    const Artifact *loops = NULL;
    Buf out = {.arena = c->arena};
    buf_puts(&out, key);
    for (int i = 0; i < u->steps.n; i++)
        loops = u->steps.at[i]->stage == STAGE_pre_fusion ? u->steps.at[i] : loops;
    const IrModule *m = loops && loops->schedule ? loops->schedule->module : NULL;
    for (const char *p = key; m && m->graph && *p; p += *p == '_') {
        size_t len = strcspn(p, "_");
        for (int i = 0; i < m->ops.n; i++)
            if (is_op(m->ops.at[i], p, len))
                print_origins(&out, m, m->ops.at[i]);
        p += len;
    }
    return one_line(c->arena, buf_str(&out));
}

// Where planted faults acted: no decision that could be switched off.
static void list_faults(HelperCall *c, const Unit *u, Buf *out) {
    for (int i = 0; i < decisions_count(u->decisions); i++) {
        const Decision *d = decisions_at(u->decisions, i);
        size_t name = strcspn(d->ask.key, " ");
        if (d->ask.kind != DECIDE_fault || !d->result)
            continue;
        int stage = d->stage >= 0 && d->stage < STAGE_count ? d->stage : STAGE_functional;
        ListLine l = {'f',
                      (StageId)stage,
                      half_of(u),
                      arena_strndup(c->arena, d->ask.key, name),
                      true,
                      names_of(c, u, d->ask.key + name + (d->ask.key[name] != '\0')),
                      ""};
        list_print(out, &l);
    }
}

static void list_decisions(HelperCall *c, const Unit *u, Buf *out) {
    for (int i = 0; i < decisions_count(u->decisions); i++) {
        const Decision *d = decisions_at(u->decisions, i);
        if (d->ask.fixed || d->ask.unlimited || d->ask.kind == DECIDE_fault)
            continue;
        int stage = d->stage >= 0 && d->stage < STAGE_count ? d->stage : STAGE_functional;
        ListLine l = {'d',
                      (StageId)stage,
                      half_of(u),
                      decision_kind_name(d->ask.kind),
                      d->result,
                      one_line(c->arena, d->ask.key),
                      one_line(c->arena, d->ask.reason)};
        list_print(out, &l);
    }
}

bool session_list_states(HelperCall *c, ProbeSession *o, const ProbeQuery *q) {
    Buf out = {.arena = c->arena};
    Diag quiet = {.arena = c->arena};
    Pipeline *p = probe_session_pipeline(o);
    StageId failed;
    // Of a build that fails, what was asked until then.
    probe_session_build(o, q->rung, false, &failed, &quiet);
    StageId last = probe_rung_stage(q->rung);
    for (int i = 0; i < pipeline_n_units(p); i++) // one that fails does not hide another's
        if (has_stage(pipeline_unit(p, i), last))
            pipeline_build(p, i, last);
    list_settings(c, probe_session_session(o), q, &out);
    for (int i = 0; i < pipeline_n_units(p); i++) {
        list_decisions(c, pipeline_unit(p, i), &out);
        list_faults(c, pipeline_unit(p, i), &out);
    }
    message_text(c->reply, "text", buf_str(&out));
    return true;
}

bool session_text_states(HelperCall *c, ProbeSession *o) {
    Buf out = {.arena = c->arena};
    Pipeline *p = probe_session_pipeline(o);
    int64_t stage = message_get_int(c->message, "stage", STAGE_fx);
    for (int i = 0; i < pipeline_n_units(p) && stage >= 0 && stage < STAGE_count; i++) {
        const Unit *u = pipeline_unit(p, i);
        if (!has_stage(u, (StageId)stage))
            continue;
        const Artifact *a = pipeline_build(p, i, (StageId)stage);
        if (a)
            artifact_print(&out, a);
    }
    message_text(c->reply, "text", buf_str(&out));
    return true;
}

// ---- of the session

Bisect *session_bisect_start(Session *s, int unit, const BisectOptions *o, Diag *d) {
    if (!bisect_group(o->over)) {
        Buf groups = {.arena = d->arena};
        for (int i = 0; i < n_switches; i++)
            if (!i || strcmp(switch_info[i].group, switch_info[i - 1].group) != 0)
                buf_printf(&groups, "%s, ", switch_info[i].group);
        buf_puts(&groups, "all");
        diag_fail(d, "nothing to bisect is called '%s'", o->over)->hint = buf_str(&groups);
        return NULL;
    }
    Compare *c = session_compare_start(s, unit, d);
    return c ? bisect_start_ladder(c, o) : NULL;
}

static int code_of(const Bisect *b) {
    switch (b->end) {
    case BISECT_passes:
        return 0;
    case BISECT_stuck:
    case BISECT_cancelled:
    case BISECT_running:
    case BISECT_named:
    case BISECT_fixed:
        break;
    }
    return 1;
}

typedef struct Asked {
    const BisectOptions *options;
    const bool *cancel;
} Asked;

static int report_unit(UnitReport *r) {
    const Asked *asked = r->ctx;
    if (r->unit->parent)
        return 0;
    Bisect *b = session_bisect_start(r->session, r->unit->index, asked->options, r->diag);
    if (!b)
        return diag_exit_code(r->diag);
    bisect_wait(b, asked->cancel);
    if (r->json)
        bisect_json(b, r->json);
    else
        bisect_report(b, r->out);
    int code = code_of(b);
    bisect_free(b);
    return code;
}

int session_report_bisect(Session *s, const BisectOptions *o, Buf *out, bool json,
                          const bool *cancel, Diag *d) {
    return session_report_units(s, report_unit, &(Asked){o, cancel}, out, json, d);
}
