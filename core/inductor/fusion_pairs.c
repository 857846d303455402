// fusion_pairs.c: which pairs of nodes are worth a try, with what score, and what the user says to
// it. Only nodes that touch a common buffer are paired, each with the next 64 of that buffer, so
// the work is linear in the graph.
#include "core/inductor/fusion.h"

#include <stdlib.h>
#include <string.h>

FuseInfo *fuse_info(Fusion *f, SchedNode *n) {
    if (!n->fuse) {
        n->fuse = ARENA_NEW(f->arena, FuseInfo);
        n->fuse->id = f->n_ids++;
    }
    return n->fuse;
}

void fuse_forget_deps(SchedNode *n) {
    n->fuse->deps = NULL;
    n->fuse->used.n = 0;
}

static uint64_t buffer_key(const Dep *d) {
    return d->ir ? (uint64_t)(uintptr_t)d->ir : hash_text(d->buf);
}

static void add_used(Fusion *f, FuseInfo *info, Map *seen, const DepVec *v) {
    for (int i = 0; i < v->n; i++) {
        uint64_t key = buffer_key(&v->at[i]);
        bool known = false;
        if (seen) {
            MapEntry *e = map_at_id(seen, key);
            known = e->i;
            e->i = 1;
        }
        for (int k = 0; !seen && k < info->used.n && !known; k++)
            known = info->used.at[k] == key;
        if (!known)
            vec_push(f->arena, &info->used, key);
    }
}

static const FuseInfo *info_with_used(Fusion *f, SchedNode *n) {
    FuseInfo *info = fuse_info(f, n);
    if (info->used.n)
        return info;
    Arena tmp = {0};
    Map seen = {.arena = &tmp};
    int count;
    SchedNode *const *singles = sched_singles(n, &count);
    for (int i = 0; i < count; i++) {
        add_used(f, info, count > 4 ? &seen : NULL, &singles[i]->reads);
        add_used(f, info, count > 4 ? &seen : NULL, &singles[i]->writes);
    }
    arena_free(&tmp);
    return info;
}

void fusion_score(Fusion *f, Pair *p) {
    p->bytes = fusion_shared_bytes(f, p->a, p->b);
    p->template_score = 1 + (p->bytes > 0);
    p->type_score = sched_is_reduction(p->a) == sched_is_reduction(p->b) && p->bytes > 0;
    int x = abs(p->a->min_order - p->b->max_order), y = abs(p->b->min_order - p->a->max_order);
    p->proximity = -(x > y ? x : y);
}

void fusion_note(Fusion *f, const SchedNode *a, const SchedNode *b, bool fused, const Why *why) {
    if (!fused && why->spoken)
        buf_printf(&f->s->log, "cannot fuse %s with %s: %s\n", a->name, b->name, why->reason);
    Pair p = {.a = (SchedNode *)a, .b = (SchedNode *)b};
    fusion_score(f, &p);
    FusionAttempt t = {.round = f->round,
                       .a = a->name,
                       .b = b->name,
                       .fused = fused,
                       .reason = why->reason,
                       .bytes = p.bytes,
                       .score_template = p.template_score,
                       .score_type = p.type_score,
                       .score_proximity = p.proximity};
    vec_push(f->s->arena, &f->s->attempts, t);
}

// ---- Decisions. A single node is called after the FX node that it stands for, else by its op.

static const char *label(const Fusion *f, const SchedNode *n) {
    const char *l = map_get(&f->labels, n->name);
    return l ? l : n->name;
}

static const char *pair_key(const Fusion *f, const SchedNode *a, const SchedNode *b) {
    Buf key = {.arena = f->arena};
    const SchedNode *both[2] = {a, b};
    for (int k = 0; k < 2; k++) {
        int n;
        SchedNode *const *singles = sched_singles(both[k], &n);
        for (int i = 0; i < n; i++)
            buf_printf(&key, "%s%s", i ? "_" : k ? "+" : "", label(f, singles[i]));
    }
    return buf_str(&key);
}

static const bool *wish_at(const Fusion *f, const char *graph, const char *a, const char *b) {
    const char *slash = *graph ? "/" : "";
    const char *key = arena_printf(f->arena, "%s%s%s+%s", graph, slash, a, b);
    return decide_override_at(f->r->overrides, DECIDE_fuse, key);
}

// Of this graph, else of any.
static const bool *wish(const Fusion *f, const char *a, const char *b) {
    const char *graphs[2] = {f->r->graph, ""};
    const bool *v = NULL;
    for (int i = 0; i < 2 && !v; i++)
        if (graphs[i]) {
            v = wish_at(f, graphs[i], a, b);
            v = v ? v : wish_at(f, graphs[i], b, a);
        }
    return v;
}

// What is wished for any member of a and any of b; a refusal wins.
static bool member_wish(const Fusion *f, const SchedNode *a, const SchedNode *b, bool by_default) {
    if (!f->r->overrides || !overrides_count(f->r->overrides))
        return by_default;
    int na, nb;
    SchedNode *const *as = sched_singles(a, &na), *const *bs = sched_singles(b, &nb);
    const bool *whole = wish(f, a->name, b->name);
    if (whole)
        return *whole;
    bool result = by_default;
    for (int i = 0; i < na; i++)
        for (int k = 0; k < nb; k++) {
            const bool *v = wish(f, label(f, as[i]), label(f, bs[k]));
            v = v ? v : wish(f, as[i]->name, bs[k]->name);
            if (v && !*v)
                return false;
            result = result || (v && *v);
        }
    return result;
}

bool fusion_decide(Fusion *f, SchedNode *a, SchedNode *b, bool by_default, const Why *why) {
    const char *key = pair_key(f, a, b);
    if (map_find(&f->refused, key))
        return false;
    if (!by_default && (!f->r->overrides || !overrides_count(f->r->overrides)))
        return false;
    bool wished = member_wish(f, a, b, by_default);
    if (!by_default && !wished)
        return false;
    Decide q = {.kind = DECIDE_fuse,
                .key = key,
                .by_default = wished,
                .score = (double)why->bytes,
                .bytes = why->bytes,
                .reason = why->reason};
    bool result = decide(f->r->decisions, &q);
    if (!result)
        map_put_int(&f->refused, key, 1);
    return result;
}

// ---- Candidates.

typedef struct Group {
    VEC(SchedNode *) nodes;
} Group;

static bool is_forced(Fusion *f, SchedNode *a, SchedNode *b, const Why *why) {
    if (!f->r->overrides || !overrides_count(f->r->overrides) || !member_wish(f, a, b, false))
        return false;
    if (why->legal)
        return true;
    const char *key = pair_key(f, a, b);
    if (!map_find(&f->warned, key))
        diag_warning(f->r->diag, (Place){0}, "cannot fuse %s with %s: %s", a->name, b->name,
                     why->reason);
    map_put_int(&f->warned, key, 1);
    return false;
}

// A pair that is wished apart is no candidate: as one it would hold back what waits for the others,
// round after round.
static bool is_forbidden(Fusion *f, SchedNode *a, SchedNode *b, Why *why) {
    if (!f->r->overrides || !overrides_count(f->r->overrides))
        return false;
    if (member_wish(f, a, b, true) && !map_find(&f->refused, pair_key(f, a, b)))
        return false;
    fusion_decide(f, a, b, true, why); // on record, once
    *why = (Why){.reason = FUSION_KEPT_APART, .bytes = why->bytes};
    return true;
}

static void try_pair(Fusion *f, SchedNode *a, SchedNode *b, PairVec *out) {
    Why why;
    bool ok = fusion_can_fuse(f, a, b, &why);
    if ((ok && !is_forbidden(f, a, b, &why)) || (!ok && is_forced(f, a, b, &why)))
        vec_push(f->arena, out, (Pair){.a = a, .b = b});
    else
        fusion_note(f, a, b, false, &why);
}

static void try_once(Fusion *f, SchedNode *a, SchedNode *b, Map *seen, PairVec *out) {
    MapEntry *e = map_at_id(seen, (uint64_t)a->fuse->id << 32 | (uint32_t)b->fuse->id);
    if (!e->i)
        try_pair(f, a, b, out);
    e->i = 1;
}

static void try_group(Fusion *f, const Group *g, Map *seen, PairVec *out) {
    int window = f->config.max_fusion_buffer_group_pairwise_attempts;
    for (int i = 0; i < g->nodes.n; i++)
        for (int k = i + 1; k < g->nodes.n && k <= i + window; k++)
            try_once(f, g->nodes.at[i], g->nodes.at[k], seen, out);
}

static SchedNode *node_of(const Fusion *f, SchedNode *const *nodes, int n, const char *name) {
    for (int i = 0; i < n; i++) {
        int count;
        SchedNode *const *singles = sched_singles(nodes[i], &count);
        for (int k = 0; k < count; k++)
            if (!strcmp(name, singles[k]->name) || !strcmp(name, label(f, singles[k])))
                return nodes[i];
    }
    return NULL;
}

// What is wished together though it shares no buffer.
typedef struct Wished {
    Fusion *f;
    SchedNode *const *nodes;
    int n;
    Map *seen;
    PairVec *out;
} Wished;

static void try_wished(void *ctx, DecisionKind kind, const char *key, bool result) {
    Wished *w = ctx;
    Fusion *f = w->f;
    size_t len = f->r->graph ? strlen(f->r->graph) : 0;
    if (len && str_starts(key, f->r->graph) && key[len] == '/')
        key += len + 1;
    const char *plus = strchr(key, '+');
    if (kind != DECIDE_fuse || !result || !plus)
        return;
    const char *first = arena_strndup(f->arena, key, (size_t)(plus - key));
    SchedNode *a = node_of(f, w->nodes, w->n, first), *b = node_of(f, w->nodes, w->n, plus + 1);
    if (!a || !b || a == b)
        return;
    if (a->min_order > b->min_order) {
        SchedNode *swap = a;
        a = b;
        b = swap;
    }
    fuse_info(f, a);
    fuse_info(f, b);
    try_once(f, a, b, w->seen, w->out);
}

// Outer-loop fusion waits until nothing else is left.
static void keep_best_kind(Fusion *f, PairVec *v) {
    bool *outer = ARENA_ARRAY(f->arena, v->n + 1, bool);
    int plain = 0, kept = 0;
    for (int i = 0; i < v->n; i++) {
        outer[i] = cpu_outer_loop(f, v->at[i].a, v->at[i].b);
        plain += !outer[i];
    }
    for (int i = 0; i < v->n; i++)
        if (!plain || !outer[i])
            v->at[kept++] = v->at[i];
    v->n = kept;
}

void fusion_pairs(Fusion *f, SchedNode *const *nodes, int n, PairVec *out) {
    Map groups = {.arena = f->arena}, seen = {.arena = f->arena};
    for (int i = 0; i < n; i++) {
        if (nodes[i]->kind == SCHED_extern || nodes[i]->kind == SCHED_nop)
            continue;
        const FuseInfo *info = info_with_used(f, nodes[i]);
        for (int k = 0; k < info->used.n; k++) {
            MapEntry *e = map_at_id(&groups, info->used.at[k]);
            if (!e->ptr)
                e->ptr = ARENA_NEW(f->arena, Group);
            Group *g = e->ptr;
            vec_push(f->arena, &g->nodes, nodes[i]);
        }
    }
    for (MapEntry *e = map_first(&groups); e; e = map_next(&groups, e))
        try_group(f, e->ptr, &seen, out);
    if (f->r->overrides) {
        Wished w = {f, nodes, n, &seen, out};
        decide_override_each(f->r->overrides, try_wished, &w);
    }
    keep_best_kind(f, out);
    for (int i = 0; i < out->n; i++)
        fusion_score(f, &out->at[i]);
    pairs_sort(f->arena, out);
    buf_printf(&f->s->log, "found %d possible fusions\n", out->n);
}
