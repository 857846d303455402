// rewrite.c: the rewrites of a step, read off the log of decisions, and the states between them:
// the step is done again by the stage's own code under a limit on the decisions of its kind, in a
// copy of the unit that has a log of its own. Nothing of the pipeline is changed by that.
#include "core/pipeline/rewrite.h"

#include <string.h>

#include "core/inductor/post_grad.h"
#include "core/pipeline/internal.h"

enum { STATES_MAX = 64 };

// The kind of decision that is a rewrite in a step; DECIDE_n_kinds: none is.
static DecisionKind kind_of(const Artifact *a) {
    if (a->file)
        return DECIDE_n_kinds;
    if (a->pass)
        return DECIDE_rewrite;
    if (a->stage == STAGE_functional || a->stage == STAGE_joint)
        return DECIDE_decomposition;
    return a->stage == STAGE_post_fusion ? DECIDE_fuse : DECIDE_n_kinds;
}

static bool is_rewrite(const Decision *d, DecisionKind kind) {
    return d->ask.kind == kind && d->result && d->ask.by_default && !d->ask.fixed &&
           !d->ask.unlimited;
}

void rewrites_close(const Unit *u, Artifact *a) {
    DecisionKind kind = kind_of(a);
    a->log_from = u->steps.n ? vec_last(&u->steps)->log_to : 0;
    a->log_to = decisions_count(u->decisions);
    if (a->log_from > a->log_to) // of another unit's log
        a->log_from = a->log_to;
    a->n_rewrites = 0;
    for (int i = a->log_from; i < a->log_to; i++)
        a->n_rewrites += is_rewrite(decisions_at(u->decisions, i), kind);
}

static Unit *unit_of(const Pipeline *p, int unit, const Artifact *a) {
    Unit *u = p->units.at[unit];
    for (Unit *at = u; at; at = at->parent)
        for (int i = 0; i < at->steps.n; i++)
            if (at->steps.at[i] == a)
                return at;
    return NULL;
}

int pipeline_rewrites(const Pipeline *p, int unit, const Artifact *a, Arena *arena, Rewrite **out) {
    const Unit *u = unit_of(p, unit, a);
    DecisionKind kind = kind_of(a);
    int n = 0, limit = 0;
    *out = ARENA_ARRAY(arena, a->n_rewrites + 1, Rewrite);
    for (int i = a->log_from; u && i < a->log_to && n < a->n_rewrites; i++) {
        const Decision *d = decisions_at(u->decisions, i), *next;
        limit += d->ask.kind == kind && d->ask.by_default && !d->ask.unlimited;
        if (!is_rewrite(d, kind))
            continue;
        next = i + 1 < a->log_to ? decisions_at(u->decisions, i + 1) : NULL;
        (*out)[n++] = (Rewrite){*d, (next ? next->ns : a->end_ns) - d->ns, limit};
    }
    return n;
}

// ---- states

void states_drop(Pipeline *p) {
    for (int i = 0; i < p->states.n; i++)
        artifact_drop(p->states.at[i].art);
    p->generation += (uint64_t)p->states.n;
    p->states.n = 0;
}

static State *state_at(const Pipeline *p, const Artifact *a) {
    for (int i = 0; i < p->states.n; i++)
        if (p->states.at[i].art == a)
            return &p->states.at[i];
    return NULL;
}

bool pipeline_is_state(const Pipeline *p, const Artifact *a) {
    return state_at(p, a) != NULL;
}

void pipeline_state_touch(Pipeline *p, const Artifact *a) {
    State *s = state_at(p, a);
    if (s)
        s->used = ++p->state_clock;
}

const Artifact *pipeline_state_of(const Pipeline *p, const Artifact *a, int *k) {
    const State *s = state_at(p, a);
    *k = s ? s->k : -1;
    return s ? s->of : NULL;
}

static void keep(Pipeline *p, const Artifact *of, int k, Artifact *art) {
    if (p->states.n == STATES_MAX) {
        int oldest = 0;
        for (int i = 1; i < p->states.n; i++)
            if (p->states.at[i].used < p->states.at[oldest].used)
                oldest = i;
        artifact_drop(p->states.at[oldest].art);
        p->generation++;
        vec_remove(&p->states, oldest);
    }
    vec_push(&p->arena, &p->states, (State){of, k, art, ++p->state_clock});
}

static const GraphPass *pass_named(const Artifact *a) {
    bool joint = a->stage == STAGE_joint_passes;
    const GraphPass *const *list = joint ? joint_passes : post_grad_passes;
    int n = joint ? n_joint_passes : n_post_grad_passes;
    for (int i = 0; i < n; i++)
        if (!strcmp(list[i]->name, a->pass))
            return list[i];
    return NULL;
}

// Does the step again with only the first `limit` decisions of its kind taken.
static Artifact *build_again(Pipeline *p, Unit *u, const Artifact *a, int limit, Diag *d) {
    Arena tmp = {0};
    const GraphPass *pass = a->pass ? pass_named(a) : NULL;
    const Overrides *given = p->options.overrides;
    Overrides *limited = overrides_copy(&tmp, given);
    const SymGuard *guards;
    int n = 0, n_guards = sym_guards(p->model->sym, &guards);
    Unit copy = *u;
    if (a->pass && !pass)
        return NULL;
    while (u->steps.at[n] != a)
        n++;
    copy.steps.at = ARENA_ARRAY(&tmp, n + 8, Artifact *);
    copy.steps.n = n;
    copy.steps.cap = n + 8;
    memcpy(copy.steps.at, u->steps.at, (size_t)n * sizeof *copy.steps.at);
    copy.decisions = decisions_new(&tmp, limited);
    copy.diag = (Diag){.arena = &tmp};
    decide_limit(limited, kind_of(a), limit);
    decisions_set_stage(copy.decisions, (int)a->stage);
    p->options.overrides = limited;
    bool ok = pass ? run_pass(p, &copy, a->stage, pass) : build_stage(p, &copy, a->stage);
    p->options.overrides = given;
    sym_keep_guards(p->model->sym, n_guards);
    if (!ok)
        diag_fail(d, "%s with %d of its rewrites: %s", artifact_title(a), limit,
                  diag_first(&copy.diag));
    Artifact *made = ok && copy.steps.n > n ? copy.steps.at[n] : NULL;
    if (made)
        made->changed = a->changed;
    arena_free(&tmp);
    return made;
}

const Artifact *pipeline_state(Pipeline *p, int unit, const Artifact *a, int k, Diag *d) {
    Unit *u = unit_of(p, unit, a);
    if (!u || k >= a->n_rewrites)
        return a;
    for (int i = 0; i < p->states.n; i++)
        if (p->states.at[i].of == a && p->states.at[i].k == k) {
            p->states.at[i].used = ++p->state_clock;
            return p->states.at[i].art;
        }
    // A pass and fusion begin with the artifact before them; a trace with no op taken apart.
    if (k <= 0 && kind_of(a) != DECIDE_decomposition)
        return a->parent;
    Arena tmp = {0};
    Rewrite *list;
    int n = pipeline_rewrites(p, unit, a, &tmp, &list);
    int limit = k <= 0 ? 0 : list[k < n ? k - 1 : n - 1].limit;
    arena_free(&tmp);
    Artifact *made = build_again(p, u, a, limit, d);
    if (made)
        keep(p, a, k < 0 ? 0 : k, made);
    return made;
}

// ---- what a rewrite did

// Values of two graphs of one pass, where a node is told by its id.
static bool same_arg(const Value *a, const Value *b) {
    if (a->kind != b->kind || a->kind == VAL_graph)
        return a->kind == b->kind;
    if (a->kind == VAL_node)
        return a->node->id == b->node->id;
    if (a->kind != VAL_list && a->kind != VAL_tuple && a->kind != VAL_dict && a->kind != VAL_slice)
        return val_equal(a, b);
    bool same = a->n == b->n;
    for (int i = 0; same && i < a->n; i++)
        same = same_arg(&a->at[i], &b->at[i]);
    return same;
}

static bool same_node(const Node *a, const Node *b) {
    bool same = a->op == b->op && a->n_args == b->n_args && a->n_kwargs == b->n_kwargs &&
                (a->target == b->target || !strcmp(a->target, b->target)) &&
                !strcmp(a->name, b->name);
    for (int i = 0; same && i < a->n_args; i++)
        same = same_arg(&a->args[i], &b->args[i]);
    for (int i = 0; same && i < a->n_kwargs; i++)
        same = !strcmp(a->kwargs[i].name, b->kwargs[i].name) &&
               same_arg(&a->kwargs[i].value, &b->kwargs[i].value);
    return same;
}

// Inside a pass a node keeps its id.
static void by_id(const Graph *a, const Graph *b, Arena *arena, RewriteDelta *out) {
    GRAPH_EACH (a, n)
        if (n->id >= b->by_id.n || !graph_by_id(b, n->id))
            vec_push(arena, &out->gone, n->name);
    GRAPH_EACH (b, n) {
        const Node *was = n->id < a->by_id.n ? graph_by_id(a, n->id) : NULL;
        if (!was) {
            vec_push(arena, &out->made, n->name);
            vec_push(arena, &out->made_items, n->id);
        } else if (!same_node(was, n)) {
            vec_push(arena, &out->altered, n->name);
            vec_push(arena, &out->altered_items, n->id);
        }
    }
}

// The op of a node with the node that it was traced for: what two traces have in common.
static const char *traced_key(const Artifact *a, const Node *n, Arena *arena) {
    int count = 0;
    const Link *from = a->origins ? origins_from(a->origins, n->id, &count) : NULL;
    return arena_printf(arena, "%d %d %s", (int)n->op, count ? from[0].item : -1, n->target);
}

// Names and numbers of two traces differ behind the first change.
static void by_origin(const Artifact *a, const Artifact *b, Arena *arena, RewriteDelta *out) {
    Map in_a = {.arena = arena}, in_b = {.arena = arena};
    GRAPH_EACH (a->graph, n)
        map_at(&in_a, traced_key(a, n, arena))->i++;
    GRAPH_EACH (b->graph, n)
        map_at(&in_b, traced_key(b, n, arena))->i++;
    GRAPH_EACH (a->graph, n)
        if (map_at(&in_b, traced_key(a, n, arena))->i-- <= 0)
            vec_push(arena, &out->gone, n->name);
    GRAPH_EACH (b->graph, n)
        if (map_at(&in_a, traced_key(b, n, arena))->i-- <= 0) {
            vec_push(arena, &out->made, n->name);
            vec_push(arena, &out->made_items, n->id);
        }
}

// Of one stage and the next: nodes are told by their names.
static void by_node_name(const Graph *a, const Graph *b, Arena *arena, RewriteDelta *out) {
    GRAPH_EACH (a, n)
        if (!graph_find(b, n->name))
            vec_push(arena, &out->gone, n->name);
    GRAPH_EACH (b, n) {
        const Node *was = graph_find(a, n->name);
        if (!was) {
            vec_push(arena, &out->made, n->name);
            vec_push(arena, &out->made_items, n->id);
        } else if (strcmp(was->target, n->target) && n->op != FX_placeholder) {
            vec_push(arena, &out->altered, n->name);
            vec_push(arena, &out->altered_items, n->id);
        }
    }
}

static void by_name(const Schedule *a, const Schedule *b, Arena *arena, RewriteDelta *out) {
    Map in_a = {.arena = arena}, in_b = {.arena = arena};
    for (int i = 0; i < a->nodes.n; i++)
        map_put_int(&in_a, a->nodes.at[i]->name, 1);
    for (int i = 0; i < b->nodes.n; i++)
        map_put_int(&in_b, b->nodes.at[i]->name, 1);
    for (int i = 0; i < a->nodes.n; i++)
        if (!map_find(&in_b, a->nodes.at[i]->name))
            vec_push(arena, &out->gone, a->nodes.at[i]->name);
    for (int i = 0; i < b->nodes.n; i++) {
        const SchedNode *n = b->nodes.at[i];
        if (map_find(&in_a, n->name))
            continue;
        vec_push(arena, &out->made, n->name);
        for (int k = 0; k < n->snodes.n; k++)
            if (n->snodes.at[k]->op)
                vec_push(arena, &out->made_items, n->snodes.at[k]->op->number);
    }
}

void artifact_delta(const Artifact *before, const Artifact *after, Arena *arena,
                    RewriteDelta *out) {
    *out = (RewriteDelta){.before = before, .after = after};
    if (before->kind != after->kind)
        return;
    if (before->kind == ART_schedule)
        by_name(before->schedule, after->schedule, arena, out);
    else if (before->kind == ART_graph && after->pass)
        by_id(before->graph, after->graph, arena, out);
    else if (before->kind == ART_graph && before->stage == after->stage)
        by_origin(before, after, arena, out);
    else if (before->kind == ART_graph)
        by_node_name(before->graph, after->graph, arena, out);
}

bool pipeline_delta(Pipeline *p, int unit, const Artifact *a, int k, Arena *arena,
                    RewriteDelta *out, Diag *d) {
    const Artifact *before = pipeline_state(p, unit, a, k - 1, d);
    pipeline_state_touch(p, before);
    const Artifact *after = before ? pipeline_state(p, unit, a, k, d) : NULL;
    if (!after)
        return false;
    artifact_delta(before, after, arena, out);
    return true;
}
