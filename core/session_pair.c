// session_pair.c: which graph a question about two nodes is put to. Names of scheduler nodes begin
// anew in each, so the one that the reader stands in comes first, then forward and backward of the
// joint graph, then all others; `backward/op3` names one.
#include <string.h>

#include "core/session_private.h"

typedef struct Places {
    int *units;
    int n;
} Places;

static bool has(const Places *p, int unit) {
    for (int i = 0; i < p->n; i++)
        if (p->units[i] == unit)
            return true;
    return false;
}

// Behind `forward/`, `model__0_backward_3.1/`: what it names, and whether it is of that unit.
static bool is_of(const Unit *u, const char **name) {
    size_t len = strcspn(*name, "/");
    if ((*name)[len] != '/')
        return true;
    bool this = (strlen(u->kind) == len && !memcmp(u->kind, *name, len)) ||
                (strlen(u->name) == len && !memcmp(u->name, *name, len));
    *name += this ? len + 1 : 0;
    return this;
}

static void add(Session *s, int unit, const char *name, const char **plain, Places *out,
                Arena *a, Diag *d) {
    const Unit *u = pipeline_unit(s->pipeline, unit);
    Diag quiet = {.arena = a};
    const char *rest = name;
    if (u->forward || has(out, unit) || !is_of(u, &rest))
        return;
    // What is wrong is told by the first unit that was asked.
    if (session_has_node(s, unit, rest, a, d && !d->errors ? d : &quiet)) {
        out->units[out->n++] = unit;
        *plain = rest;
    }
}

static Places find(Session *s, int unit, const char **name, Arena *a, Diag *d) {
    int n = pipeline_n_units(s->pipeline);
    Places p = {.units = ARENA_ARRAY(a, n + 1, int)};
    const Unit *u = pipeline_unit(s->pipeline, unit);
    const char *given = *name;
    Diag why = {.arena = a};
    add(s, unit, given, name, &p, a, &why);
    if (!p.n && u->forward) {
        add(s, u->forward->index, given, name, &p, a, &why);
        add(s, u->backward->index, given, name, &p, a, &why);
    }
    for (int i = 0; i < n && !p.n; i++)
        add(s, i, given, name, &p, a, &why);
    if (p.n)
        return p;
    if (why.errors)
        diag_fail(d, "%s", diag_first(&why))->hint = why.at[0].hint;
    else
        diag_fail(d, "no graph has scheduler nodes for '%s'", given);
    return p;
}

static const char *label(const Session *s, int unit) {
    const char *l = pipeline_unit_label(s->pipeline, unit);
    return l ? l : pipeline_unit(s->pipeline, unit)->name;
}

int session_pair_units(Session *s, int unit, const char *names[2], int *units, Arena *a, Buf *out,
                       Diag *d) {
    Places x = find(s, unit, &names[0], a, d);
    if (!x.n)
        return 0;
    // The other one is looked for where the first one is, before elsewhere.
    Places y = find(s, x.n == 1 ? x.units[0] : unit, &names[1], a, d);
    int n = 0;
    for (int i = 0; i < x.n; i++)
        if (has(&y, x.units[i]))
            units[n++] = x.units[i];
    if (n || !y.n)
        return n;
    const char *text = arena_printf(
        a, "%s is in %s, %s in %s: each graph is compiled by itself, and what passes between them "
           "is kept in memory",
        names[0], label(s, x.units[0]), names[1], label(s, y.units[0]));
    if (out)
        buf_printf(out, "%s %s: not a pair\n  %s\n", names[0], names[1], text);
    else
        diag_fail(d, "%s", text);
    return 0;
}

const char *session_fusion_key(const Session *s, int unit, const char *x, const char *y, Arena *a) {
    const char *graph = pipeline_unit_label(s->pipeline, unit);
    return arena_printf(a, "%s%s%.*s+%.*s", graph ? graph : "", graph ? "/" : "",
                        (int)strcspn(x, "_"), x, (int)strcspn(y, "_"), y);
}

bool session_attempt(Session *s, int unit, const char *a, const char *b, Arena *arena,
                     FusionAttempt *out, Diag *d) {
    const Artifact *before = pipeline_build(s->pipeline, unit, STAGE_pre_fusion);
    const Artifact *after = pipeline_build(s->pipeline, unit, STAGE_post_fusion);
    if (!before || !after)
        return session_unit_errors(s, unit, d) && false;
    ScheduleRequest r = {
        .arena = arena, .diag = d, .config = &s->options.config, .stage = STAGE_post_fusion};
    *out = schedule_why(&r, before->schedule, a, b);
    for (int i = 0; i < after->schedule->attempts.n; i++) {
        const FusionAttempt *f = &after->schedule->attempts.at[i];
        if (!strcmp(f->a, a) && !strcmp(f->b, b)) // a rebuild may take the schedule away
            out->reason = arena_strdup(arena, f->reason);
    }
    return true;
}
