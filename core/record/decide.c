// decide.c: the log of choices and the overrides that outlive it. Both find a decision by kind and
// key: the key of the map is "kind key" in one string.
#include "core/record/decide.h"

#include "core/base/file.h"
#include "core/base/map.h"
#include "core/base/vec.h"

#include <string.h>

static const struct {
    const char *name, *doc;
} kinds[DECIDE_n_kinds] = {
#define DECISION(name, doc) [DECIDE_##name] = {#name, doc},
#include "core/record/decisions.def"
#undef DECISION
};

typedef struct Override {
    DecisionKind kind;
    const char *key;
    bool result;
    bool live; // false once taken back
} Override;

struct Overrides {
    Arena *arena;
    VEC(Override) at;
    Map index; // "kind key" -> place + 1
    int live;
    bool limited[DECIDE_n_kinds];
    int limit[DECIDE_n_kinds];
    uint64_t version;
};

struct Decisions {
    Arena *arena;
    const Overrides *overrides;
    VEC(Decision) at;
    Map index; // "kind key" -> place of the last + 1
    int stage;
    int defaults_true[DECIDE_n_kinds];
};

const char *decision_kind_name(DecisionKind k) {
    return kinds[k].name;
}

const char *decision_kind_doc(DecisionKind k) {
    return kinds[k].doc;
}

int decision_kind_find(const char *name) {
    for (int i = 0; i < DECIDE_n_kinds; i++)
        if (!strcmp(kinds[i].name, name))
            return i;
    return -1;
}

static char *joined(Arena *a, DecisionKind kind, const char *key) {
    return arena_printf(a, "%s %s", kinds[kind].name, key);
}

static int64_t place_of(const Map *m, DecisionKind kind, const char *key) {
    Arena tmp = {0};
    int64_t place = map_get_int(m, joined(&tmp, kind, key), 0);
    arena_free(&tmp);
    return place - 1;
}

Overrides *overrides_new(Arena *a) {
    Overrides *o = ARENA_NEW(a, Overrides);
    o->arena = a;
    o->index.arena = a;
    return o;
}

void decide_override(Overrides *o, DecisionKind kind, const char *key, bool result) {
    int64_t place = place_of(&o->index, kind, key);
    o->version++;
    if (place >= 0) {
        o->live += !o->at.at[place].live;
        o->at.at[place].live = true;
        o->at.at[place].result = result;
        return;
    }
    Override w = {kind, arena_strdup(o->arena, key), result, true};
    vec_push(o->arena, &o->at, w);
    map_put_int(&o->index, joined(o->arena, kind, key), o->at.n);
    o->live++;
}

bool decide_clear(Overrides *o, DecisionKind kind, const char *key) {
    int64_t place = place_of(&o->index, kind, key);
    if (place < 0 || !o->at.at[place].live)
        return false;
    o->at.at[place].live = false;
    o->live--;
    o->version++;
    return true;
}

void decide_clear_all(Overrides *o) {
    for (int i = 0; i < o->at.n; i++)
        o->at.at[i].live = false;
    memset(o->limited, 0, sizeof o->limited);
    o->live = 0;
    o->version++;
}

void decide_limit(Overrides *o, DecisionKind kind, int limit) {
    o->limited[kind] = limit >= 0;
    o->limit[kind] = limit;
    o->version++;
}

int decide_limit_at(const Overrides *o, DecisionKind kind) {
    return o->limited[kind] ? o->limit[kind] : -1;
}

Overrides *overrides_copy(Arena *a, const Overrides *o) {
    Overrides *copy = overrides_new(a);
    for (int i = 0; o && i < o->at.n; i++)
        if (o->at.at[i].live)
            decide_override(copy, o->at.at[i].kind, o->at.at[i].key, o->at.at[i].result);
    for (int k = 0; o && k < DECIDE_n_kinds; k++) {
        copy->limited[k] = o->limited[k];
        copy->limit[k] = o->limit[k];
    }
    return copy;
}

const bool *decide_override_at(const Overrides *o, DecisionKind kind, const char *key) {
    int64_t place = place_of(&o->index, kind, key);
    return place >= 0 && o->at.at[place].live ? &o->at.at[place].result : NULL;
}

void decide_override_each(const Overrides *o, OverrideVisit *visit, void *ctx) {
    for (int i = 0; i < o->at.n; i++)
        if (o->at.at[i].live)
            visit(ctx, o->at.at[i].kind, o->at.at[i].key, o->at.at[i].result);
}

int overrides_count(const Overrides *o) {
    return o->live;
}

uint64_t overrides_version(const Overrides *o) {
    return o->version;
}

Decisions *decisions_new(Arena *a, const Overrides *o) {
    Decisions *d = ARENA_NEW(a, Decisions);
    d->arena = a;
    d->index.arena = a;
    d->overrides = o;
    return d;
}

const Overrides *decisions_overrides(const Decisions *d) {
    return d->overrides;
}

void decisions_set_stage(Decisions *d, int stage) {
    d->stage = stage;
}

static void drop_last(Decisions *d) {
    const Decide *ask = &d->at.at[--d->at.n].ask;
    d->defaults_true[ask->kind] -= ask->by_default && !ask->unlimited;
}

static void index_again(Decisions *d) {
    d->index = (Map){.arena = d->arena};
    for (int i = 0; i < d->at.n; i++)
        map_put_int(&d->index, joined(d->arena, d->at.at[i].ask.kind, d->at.at[i].ask.key), i + 1);
}

// Stages ask in their order, so what goes is the end of the log.
void decisions_truncate(Decisions *d, int stage) {
    while (d->at.n && d->at.at[d->at.n - 1].stage >= stage)
        drop_last(d);
    index_again(d);
}

void decisions_rewind(Decisions *d, int count) {
    if (!d || d->at.n <= count)
        return;
    while (d->at.n > count)
        drop_last(d);
    index_again(d);
}

bool decide(Decisions *d, const Decide *q) {
    if (!d)
        return q->by_default;
    Decision x = {.ask = *q,
                  .id = d->at.n,
                  .stage = d->stage,
                  .result = q->by_default,
                  .ns = clock_ns()};
    const char *key = q->key ? q->key : "";
    x.ask.key = arena_strdup(d->arena, key);
    x.ask.reason = q->reason ? arena_strdup(d->arena, q->reason) : NULL;
    const Overrides *o = d->overrides;
    const bool *wish = o && o->live ? decide_override_at(o, q->kind, key) : NULL;
    bool counts = q->by_default && !q->unlimited;
    bool beyond =
        o && o->limited[q->kind] && counts && d->defaults_true[q->kind] >= o->limit[q->kind];
    if (!q->fixed && (wish || beyond)) {
        x.result = wish ? *wish : false;
        x.overridden = true;
    }
    d->defaults_true[q->kind] += counts;
    vec_push(d->arena, &d->at, x);
    map_put_int(&d->index, joined(d->arena, q->kind, key), d->at.n);
    return x.result;
}

void decisions_revoke(Decisions *d, DecisionKind kind, const char *key, const char *reason) {
    int64_t place = d ? place_of(&d->index, kind, key) : -1;
    if (place < 0)
        return;
    d->at.at[place].result = false;
    d->at.at[place].ask.reason = arena_strdup(d->arena, reason);
}

const bool *decisions_wish(const Decisions *d, DecisionKind kind, const char *key) {
    const Overrides *o = d ? d->overrides : NULL;
    return o && o->live ? decide_override_at(o, kind, key) : NULL;
}

int decisions_count(const Decisions *d) {
    return d->at.n;
}

const Decision *decisions_at(const Decisions *d, int i) {
    return i >= 0 && i < d->at.n ? &d->at.at[i] : NULL;
}

const Decision *decisions_find(const Decisions *d, DecisionKind kind, const char *key) {
    return decisions_at(d, (int)place_of(&d->index, kind, key));
}

int decisions_true(const Decisions *d, DecisionKind kind) {
    return d->defaults_true[kind];
}

void decisions_json(const Decisions *d, JsonOut *j, const char *key) {
    json_open(j, key, '[');
    for (int i = 0; i < d->at.n; i++) {
        const Decision *x = &d->at.at[i];
        json_open(j, NULL, '{');
        json_put_int(j, "id", x->id);
        json_put_int(j, "stage", x->stage);
        json_put_str(j, "kind", kinds[x->ask.kind].name);
        json_put_str(j, "key", x->ask.key);
        json_put_bool(j, "default", x->ask.by_default);
        json_put_bool(j, "result", x->result);
        json_put_bool(j, "overridden", x->overridden);
        json_put_float(j, "score", x->ask.score);
        json_put_int(j, "bytes", x->ask.bytes);
        json_put_str(j, "reason", x->ask.reason);
        json_close(j, '}');
    }
    json_close(j, ']');
}
