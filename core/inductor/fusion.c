// fusion.c: fusion in rounds (Scheduler.fuse_nodes): collect the pairs that may be fused, best
// first; fuse one after the other what is still possible; until a round fuses nothing. Then the
// order of execution is settled.
#include "core/inductor/fusion.h"
#include "core/base/work.h"

#include <stdlib.h>
#include <string.h>

// ---- A copy of the schedule before fusion: fusion changes nodes, an artifact never changes.

typedef struct Copy {
    Schedule *s;
    SchedNode **node; // by place before fusion
    SchedBuffer **buffer; // by id
    int n_buffers;
    Map dead; // removed nodes that are still listed as users, by name
} Copy;

static SchedNode *copy_user(Copy *c, SchedNode *old) {
    if (!old || !old->dead)
        return old ? c->node[old->min_order] : NULL;
    SchedNode *n = map_get(&c->dead, old->name);
    if (!n) {
        n = ARENA_NEW(c->s->arena, SchedNode);
        *n = (SchedNode){.name = old->name, .kind = old->kind, .dead = true};
        n->self = n->fused_into = n;
        map_put(&c->dead, old->name, n);
    }
    return n;
}

static void copy_outputs(Copy *c, SchedNode *n, const SchedNode *old) {
    Arena *a = c->s->arena;
    n->outputs.at = ARENA_ARRAY(a, old->outputs.n + 1, SchedBuffer *);
    n->outputs.n = n->outputs.cap = old->outputs.n;
    SchedBuffer *all = ARENA_ARRAY(a, old->outputs.n + 1, SchedBuffer);
    for (int i = 0; i < old->outputs.n; i++) {
        const SchedBuffer *from = old->outputs.at[i];
        SchedBuffer *b = &all[i];
        *b = *from;
        b->defining = n;
        b->users.at = ARENA_ARRAY(a, from->users.n + 1, SchedUser);
        b->users.cap = b->users.n;
        for (int k = 0; k < from->users.n; k++) {
            b->users.at[k] = from->users.at[k];
            b->users.at[k].node = copy_user(c, from->users.at[k].node);
        }
        n->outputs.at[i] = b;
        c->buffer[b->id] = b;
        map_put(&c->s->buffers, b->ir->name, b);
    }
}

static void copy_deps(const Copy *c, DepVec *to, const DepVec *from) {
    *to = deps_copy(c->s->arena, from);
    for (int i = 0; i < to->n; i++)
        if (to->at[i].made)
            to->at[i].made = c->buffer[to->at[i].made->id];
}

static void copy_map(Map *to, const Map *from) {
    for (MapEntry *e = map_first(from); e; e = map_next(from, e))
        map_at(to, e->key)->ptr = e->ptr;
}

static Schedule *copy_schedule(Arena *a, const Schedule *before, Arena *tmp) {
    Schedule *s = ARENA_NEW(a, Schedule);
    *s = (Schedule){.arena = a,
                    .module = before->module,
                    .buffers = {.arena = a},
                    .n_buffer_ids = before->n_buffer_ids,
                    .mutation_renames = {.arena = a},
                    .mutation_real_name = {.arena = a},
                    .available = {.arena = a},
                    .log = {.arena = a}};
    copy_map(&s->mutation_renames, &before->mutation_renames);
    copy_map(&s->mutation_real_name, &before->mutation_real_name);
    copy_map(&s->available, &before->available);
    int n = before->nodes.n;
    Copy c = {.s = s,
              .node = ARENA_ARRAY(tmp, n + 1, SchedNode *),
              .dead = {.arena = tmp},
              .buffer = ARENA_ARRAY(tmp, before->n_buffer_ids + 1, SchedBuffer *)};
    SchedNode *all = ARENA_ARRAY(a, n + 1, SchedNode);
    s->nodes.at = ARENA_ARRAY(a, n + 1, SchedNode *);
    s->nodes.n = s->nodes.cap = n;
    for (int i = 0; i < n; i++) {
        all[i] = *before->nodes.at[i];
        all[i].self = all[i].fused_into = &all[i];
        c.node[before->nodes.at[i]->min_order] = s->nodes.at[i] = &all[i];
    }
    for (int i = 0; i < n; i++)
        copy_outputs(&c, &all[i], before->nodes.at[i]);
    for (int i = 0; i < n; i++) {
        const SchedNode *old = before->nodes.at[i];
        copy_deps(&c, &all[i].reads, &old->reads);
        copy_deps(&c, &all[i].writes, &old->writes);
        copy_deps(&c, &all[i].unmet, &old->unmet);
    }
    if (!n || !before->nodes.at[n - 1]->n_words)
        sched_find_ancestors(s);
    return s;
}

// ---- Ordering deps that a fusion has made superfluous.

static bool has_strong_dep(const SchedNode *n, const SchedNode *on) {
    for (int i = 0; i < n->unmet.n; i++)
        if (n->unmet.at[i].kind != DEP_weak && sched_maker(&n->unmet.at[i]) == on)
            return true;
    return false;
}

static bool is_superfluous(const Schedule *s, const SchedNode *n, const Dep *d) {
    const SchedNode *on = d->kind == DEP_weak ? sched_maker(d) : NULL;
    if (!on)
        return false;
    return on == n || (has_strong_dep(n, on) && fusion_weak_dep_is_inplace(s, d, on, n));
}

static void prune(Fusion *f, SchedNode *n) {
    bool any = false;
    for (int i = 0; i < n->unmet.n && !any; i++)
        any = is_superfluous(f->s, n, &n->unmet.at[i]);
    if (!any)
        return;
    DepVec gone = {0}, reads = {0};
    for (int i = 0; i < n->unmet.n; i++)
        if (is_superfluous(f->s, n, &n->unmet.at[i]))
            vec_push(f->arena, &gone, n->unmet.at[i]);
    for (int i = 0; i < n->reads.n; i++)
        if (!deps_have(&gone, &n->reads.at[i]))
            vec_push(f->s->arena, &reads, n->reads.at[i]);
    sched_set_reads(f->s, n, reads);
    fuse_forget_deps(n);
}

// ---- Rounds.

static void log_candidates(Fusion *f) {
    Buf *log = &f->s->log;
    buf_puts(log, "fuse_nodes_once, candidates:\n");
    for (int i = 0; i < f->s->nodes.n; i++) {
        const SchedNode *n = f->s->nodes.at[i];
        buf_printf(log, n->snodes.n ? "  %s(nodes=%s)" : "  %s(name='%s')",
                   sched_kind_name[n->kind], n->name);
        if (n->op && n->op->cls == IR_computed)
            buf_printf(log, ", %s", n->op->loop_kind ? n->op->loop_kind : "Pointwise");
        buf_putc(log, '\n');
    }
}

static bool fuse_pair(Fusion *f, SchedNode *a, SchedNode *b, const Why *why) {
    SchedNode *n = cpu_fuse(f, a, b);
    if (!n)
        return false;
    buf_printf(&f->s->log, "fusing %s with %s\n", a->name, b->name);
    fusion_note(f, a, b, true, why);
    FuseInfo *info = fuse_info(f, n);
    a->fuse->listed = b->fuse->listed = false;
    info->listed = true;
    cycle_merge(f, a, b, n);
    vec_push(f->s->arena, &f->s->nodes, n);
    return true;
}

static void try_pair(Fusion *f, const Pair *p) {
    int n;
    SchedNode *a = sched_singles(p->a, &n)[0]->fused_into,
              *b = sched_singles(p->b, &n)[0]->fused_into;
    Why why;
    if (a == b)
        return;
    bool ok = fusion_can_fuse(f, a, b, &why);
    bool possible = ok || (why.legal && f->r->overrides);
    if (possible && cycle_would_close(f, a, b)) {
        why = (Why){.reason = "will create cycle", .spoken = true, .bytes = why.bytes};
        ok = possible = false;
    }
    if (!possible || !fusion_decide(f, a, b, ok, &why)) {
        if (ok)
            why = (Why){.reason = FUSION_KEPT_APART, .bytes = why.bytes};
        fusion_note(f, a, b, false, &why);
        return;
    }
    if (!ok)
        why.reason = arena_printf(f->s->arena, "forced, past `%s`", why.reason);
    if (!fuse_pair(f, a, b, &why)) {
        why = (Why){.reason = "loops could not be made equal", .bytes = why.bytes};
        fusion_note(f, a, b, false, &why);
    }
}

static int by_min_order(const void *a, const void *b) {
    return (*(SchedNode *const *)a)->min_order - (*(SchedNode *const *)b)->min_order;
}

static void settle_order(Fusion *f) {
    Schedule *s = f->s;
    int kept = 0;
    for (int i = 0; i < s->nodes.n; i++)
        if (s->nodes.at[i]->fuse->listed)
            s->nodes.at[kept++] = s->nodes.at[i];
    s->nodes.n = kept;
    qsort(s->nodes.at, (size_t)kept, sizeof *s->nodes.at, by_min_order);
    sched_toposort(s, s->nodes.at, s->nodes.n);
}

static void fuse_once(Fusion *f) {
    for (int i = 0; i < f->s->nodes.n; i++)
        prune(f, f->s->nodes.at[i]);
    log_candidates(f);
    PairVec pairs = {0};
    fusion_pairs(f, f->s->nodes.at, f->s->nodes.n, &pairs);
    for (int i = 0; i < pairs.n && work_goes_on(f->r->diag, i, pairs.n); i++)
        try_pair(f, &pairs.at[i]);
    settle_order(f);
}

static void rounds(Fusion *f) {
    Buf *log = &f->s->log;
    for (f->round = 1; f->round <= 10; f->round++) {
        int before = f->s->nodes.n;
        buf_printf(log, "===== attempting fusion (%d/10): %d nodes =====\n", f->round, before);
        WorkPart part = work_enter(NULL, f->round < 3 ? 0.3 * (f->round - 1) : 0.6,
                                   f->round < 3 ? 0.3 * f->round : 0.7);
        fuse_once(f);
        work_leave(part);
        int after = f->s->nodes.n;
        buf_printf(log, "completed fusion round (%d/10): fused %d nodes into %d nodes\n\n",
                   f->round, before, after);
        if (after == before || after == 1 || work_stopped()) {
            buf_printf(log, "===== fusion complete (%d iterations) =====\n", f->round);
            break;
        }
    }
    // Once more for loop orders that could be changed; on a CPU none are, but new pairs still
    // count.
    fuse_once(f);
}

// ---- Names for decisions.

static void find_labels(Fusion *f) {
    const Graph *g = f->s->module->graph;
    f->labels.arena = f->arena;
    Map used = {.arena = f->arena};
    for (int i = 0; g && i < f->s->nodes.n; i++) {
        const IrOp *op = f->s->nodes.at[i]->op;
        int id = op->origin_node >= 0 ? op->origin_node
                 : op->origins.n      ? vec_last(&op->origins)
                                      : -1;
        const Node *node = id >= 0 ? graph_by_id(g, id) : NULL;
        if (!node)
            continue;
        int64_t k = map_at(&used, node->name)->i++;
        const char *label = k ? arena_printf(f->arena, "%s.%d", node->name, (int)k) : node->name;
        map_put(&f->labels, op->name, (void *)label);
    }
}

static void finish(Fusion *f) {
    Schedule *s = f->s;
    for (int i = 0; i < s->nodes.n; i++) {
        int n;
        SchedNode *const *singles = sched_singles(s->nodes.at[i], &n);
        for (int k = 0; k < n; k++) {
            singles[k]->fuse = NULL;
            origins_add(s->origins, i, singles[k]->op->number, n > 1 ? LINK_part : LINK_same);
        }
        s->nodes.at[i]->fuse = NULL;
        for (int k = 0; k < s->nodes.at[i]->outer.n; k++)
            s->nodes.at[i]->outer.at[k]->fuse = NULL;
    }
}

static void start(Fusion *f, const ScheduleRequest *r, const Schedule *before, Arena *scratch) {
    *f = (Fusion){.r = r,
                  .arena = scratch,
                  .sym = before->module->sym,
                  .refused = {.arena = scratch},
                  .warned = {.arena = scratch}};
    f->config = r->config ? *r->config : inductor_config_default();
    f->s = copy_schedule(r->arena, before, scratch);
    cycle_start(f);
    find_labels(f);
}

Schedule *schedule_fuse(const ScheduleRequest *r, const Schedule *before) {
    if (before->fused) {
        diag_fail(r->diag, "the schedule is fused already: expected one as it is before fusion");
        return NULL;
    }
    Arena scratch = {0};
    Fusion f;
    start(&f, r, before, &scratch);
    rounds(&f);
    f.s->fused = true;
    f.s->origins = origins_new(r->arena);
    WorkPart part = work_enter(NULL, 0.7, 1);
    if (f.config.reorder_for_peak_memory)
        sched_reorder_for_peak_memory(r, f.s);
    work_leave(part);
    sched_last_usage(f.s);
    finish(&f);
    arena_free(&scratch);
    if (work_stopped())
        return NULL;
    for (int i = 0; i < before->nested.n; i++) {
        NestedSchedule n = before->nested.at[i];
        n.schedule = schedule_fuse(r, n.schedule);
        if (!n.schedule)
            return NULL;
        vec_push(r->arena, &f.s->nested, n);
        buf_puts(&f.s->log, buf_str(&((Schedule *)n.schedule)->log));
    }
    return f.s;
}

static SchedNode *node_named(const Fusion *f, const char *name) {
    for (int i = 0; i < f->s->nodes.n; i++)
        if (strcmp(f->s->nodes.at[i]->name, name) == 0)
            return f->s->nodes.at[i];
    for (int i = 0; i < f->s->nodes.n; i++) {
        const char *l = map_get(&f->labels, f->s->nodes.at[i]->name);
        if (l && strcmp(l, name) == 0)
            return f->s->nodes.at[i];
    }
    return NULL;
}

FusionAttempt schedule_why(const ScheduleRequest *r, const Schedule *before, const char *a,
                           const char *b) {
    Arena scratch = {0};
    Fusion f;
    start(&f, r, before, &scratch);
    SchedNode *x = node_named(&f, a), *y = node_named(&f, b);
    FusionAttempt t = {.a = a, .b = b, .reason = "no such node"};
    f.asked = true;
    if (x && y) {
        Why why;
        if (x->min_order > y->min_order) {
            SchedNode *swap = x;
            x = y;
            y = swap;
        }
        bool ok = fusion_can_fuse(&f, x, y, &why);
        if ((ok || why.legal) && cycle_would_close(&f, x, y)) {
            why.reason = why.barrier = "will create cycle";
            ok = false;
        }
        fusion_note(&f, x, y, ok, &why);
        t = vec_last(&f.s->attempts);
        t.barrier = ok || why.legal || why.barrier ? why.barrier : why.reason;
    }
    arena_free(&scratch);
    return t;
}
