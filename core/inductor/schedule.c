// schedule.c: the schedule before fusion: a node an operation, what each reads and writes, the
// order of execution without dead nodes (Scheduler._init of torch/_inductor/scheduler.py).
#include "core/inductor/sched_impl.h"
#include "core/base/work.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

bool sched_is_single(const SchedNode *n) {
    return n->kind == SCHED_node || n->kind == SCHED_extern || n->kind == SCHED_nop;
}

SchedNode *const *sched_singles(const SchedNode *n, int *count) {
    if (sched_is_single(n)) {
        *count = 1;
        return (SchedNode *const *)&n->self;
    }
    *count = n->snodes.n;
    return n->snodes.at;
}

bool sched_is_reduction(const SchedNode *n) {
    for (int i = 0; i < n->snodes.n; i++)
        if (sched_is_reduction(n->snodes.at[i]))
            return true;
    return n->op && n->op->cls == IR_computed && n->op->reduction;
}

// ---- Layouts.

bool ir_layout_has_tensor(const IrLayout *l) {
    return l && l->kind != IRL_none && l->kind != IRL_multi_output;
}

bool ir_layout_is_empty(Sym *sym, const IrLayout *l) {
    (void)sym;
    for (int i = 0; l && i < l->ndim; i++)
        if (expr_is(l->size[i], 0))
            return true;
    return false;
}

const Expr *ir_layout_storage(Sym *sym, const IrLayout *l) {
    if (ir_layout_is_empty(sym, l))
        return sym_int(sym, 0);
    const Expr *sum = sym_add_int(sym, l->offset ? l->offset : sym_int(sym, 0), 1);
    for (int i = 0; i < l->ndim; i++)
        sum = sym_add(sym, sum, sym_mul(sym, sym_add_int(sym, l->size[i], -1), l->stride[i]));
    return sym_expand(sym, sum);
}

int64_t ir_layout_bytes(Sym *sym, const IrLayout *l) {
    if (!ir_layout_has_tensor(l))
        return 0;
    int64_t n = sym_size_hint(sym, sym_product(sym, l->size, l->ndim), 0), bytes = 0;
    return __builtin_mul_overflow(n, dtype_info[l->dtype].bytes, &bytes) ? INT64_MAX : bytes;
}

const SchedBuffer *sched_buffer(const Schedule *s, const char *name) {
    return map_get(&s->buffers, name);
}

const IrLayout *sched_layout(const Schedule *s, const char *name) {
    const IrBuffer *b = map_get(&s->module->buffers, name);
    return b ? b->layout : NULL;
}

// ---- Sets of deps.

DepSet depset_new(Arena *a, DepVec *v) {
    return (DepSet){.arena = a, .v = v, .at = {.arena = a}};
}

bool depset_have(const DepSet *s, const Dep *d) {
    int64_t at = 0;
    MapEntry *e = map_find_id(&s->at, d->hash);
    if (e)
        at = e->i;
    if (!at)
        return false;
    return dep_equal(&s->v->at[at - 1], d) || deps_have(s->v, d);
}

void depset_add(DepSet *s, const Dep *d) {
    if (depset_have(s, d))
        return;
    vec_push(s->arena, s->v, *d);
    map_at_id(&s->at, d->hash)->i = s->v->n;
}

DepSet depset_of(Arena *a, const DepVec *v) {
    DepSet s = {.arena = a, .v = (DepVec *)v, .at = {.arena = a}};
    for (int i = 0; i < v->n; i++)
        map_at_id(&s.at, v->at[i].hash)->i = i + 1;
    return s;
}

// ---- Single nodes.

bool sched_is_available(const Schedule *s, const char *buf) {
    return map_find(&s->available, buf) != NULL;
}

void sched_link_deps(const Schedule *s, DepVec *v) {
    for (int i = 0; i < v->n; i++) {
        Dep *d = &v->at[i];
        if (d->ir)
            continue;
        d->ir = map_get(&s->module->buffers, d->buf);
        d->made = map_get(&s->buffers, d->buf);
    }
}

void sched_link_node(const Schedule *s, SchedNode *n) {
    sched_link_deps(s, &n->reads);
    sched_link_deps(s, &n->writes);
    sched_link_deps(s, &n->unmet);
}

SchedNode *sched_maker(const Dep *d) {
    return d->made && d->made->defining ? d->made->defining->fused_into : NULL;
}

void sched_set_reads(const Schedule *s, SchedNode *n, DepVec reads) {
    sched_link_deps(s, &reads);
    int unmet = 0;
    for (int i = 0; i < reads.n; i++)
        unmet += !sched_is_available(s, reads.at[i].buf);
    n->reads = reads;
    n->unmet = (DepVec){.at = unmet ? ARENA_ARRAY(s->arena, unmet, Dep) : NULL, .cap = unmet};
    for (int i = 0; i < reads.n; i++)
        if (!sched_is_available(s, reads.at[i].buf))
            vec_push(s->arena, &n->unmet, reads.at[i]);
}

// Loops that run zero times: of an empty tensor, or of memory that nobody writes.
static bool never_runs(const LoopBody *b) {
    for (int i = 0; b && i < b->n_iter; i++)
        if (expr_is(b->sizes[i], 0))
            return true;
    return false;
}

static SchedKind kind_of_op(const Schedule *s, const IrOp *op) {
    const IrLayout *l = op->outputs.n ? op->outputs.at[0]->layout : NULL;
    bool computed = op->cls == IR_computed || op->cls == IR_template;
    if (op->cls == IR_concat ||
        (computed && (ir_layout_is_empty(s->module->sym, l) || never_runs(op->body))))
        return SCHED_nop;
    return computed ? SCHED_node : SCHED_extern;
}

static void read_body(Schedule *s, SchedNode *n, DepVec *reads) {
    const LoopBody *b = n->body;
    if (n->kind == SCHED_nop) // as it was traced
        deps_of_body_raw(s->arena, s->module->sym, n->op->plain ? n->op->plain : b, reads,
                         &n->writes);
    else
        deps_of_body(s->arena, s->module->sym, b, reads, &n->writes);
    n->n_iter = b->n_iter;
    n->n_red = b->n_vars - b->n_iter;
    n->iter = b->sizes;
    n->red = b->sizes + b->n_iter;
}

static SchedNode *new_node(Schedule *s, IrOp *op) {
    SchedNode *n = ARENA_NEW(s->arena, SchedNode);
    *n = (SchedNode){.name = op->name, .op = op, .kind = kind_of_op(s, op), .body = op->body};
    n->self = n;
    n->fused_into = n;
    for (int i = 0; i < op->outputs.n; i++) {
        SchedBuffer *b = ARENA_NEW(s->arena, SchedBuffer);
        *b = (SchedBuffer){.id = s->n_buffer_ids++, .ir = op->outputs.at[i], .defining = n};
        vec_push(s->arena, &n->outputs, b);
        map_put(&s->buffers, b->ir->name, b);
    }
    DepVec reads = {0};
    if (n->body)
        read_body(s, n, &reads);
    if (n->kind != SCHED_node || !n->body) {
        if (!n->body)
            for (int i = 0; i < op->outputs.n; i++) {
                Dep d = dep_star(op->outputs.at[i]->name, NULL);
                deps_add(s->arena, &n->writes, &d);
            }
        for (int i = 0; i < op->reads_star.n; i++) {
            Dep d = dep_star(op->reads_star.at[i], NULL);
            deps_add(s->arena, &reads, &d);
        }
    }
    sched_set_reads(s, n, reads);
    return n;
}

// ---- Groups.

static void union_deps(Schedule *s, SchedNode *g) {
    Arena tmp = {0};
    DepVec w = {0}, r = {0}, u = {0};
    DepSet writes = depset_new(&tmp, &w), reads = depset_new(&tmp, &r),
           unmet = depset_new(&tmp, &u);
    for (int i = 0; i < g->snodes.n; i++)
        for (int k = 0; k < g->snodes.at[i]->writes.n; k++)
            depset_add(&writes, &g->snodes.at[i]->writes.at[k]);
    for (int i = 0; i < g->snodes.n; i++) {
        const SchedNode *n = g->snodes.at[i];
        for (int k = 0; k < n->reads.n; k++)
            if (!depset_have(&writes, &n->reads.at[k]))
                depset_add(&reads, &n->reads.at[k]);
        for (int k = 0; k < n->unmet.n; k++)
            if (sched_maker(&n->unmet.at[k]) != g && !depset_have(&writes, &n->unmet.at[k]))
                depset_add(&unmet, &n->unmet.at[k]);
        for (int k = 0; k < n->order_only.n; k++)
            if (sched_maker(&n->order_only.at[k]) != g)
                deps_add(s->arena, &g->order_only, &n->order_only.at[k]);
    }
    g->writes = deps_copy(s->arena, &w);
    g->reads = deps_copy(s->arena, &r);
    g->unmet = deps_copy(s->arena, &u);
    arena_free(&tmp);
}

SchedNode *sched_group(Schedule *s, SchedKind kind, SchedNode *const *snodes, int n) {
    SchedNode *g = ARENA_NEW(s->arena, SchedNode);
    *g = (SchedNode){.kind = kind,
                     .fused_into = g,
                     .self = g,
                     .min_order = snodes[0]->min_order,
                     .max_order = snodes[0]->max_order};
    Buf name = {.arena = s->arena};
    const SchedNode *lead = NULL;
    for (int i = 0; i < n; i++) {
        SchedNode *part = snodes[i];
        vec_push(s->arena, &g->snodes, part);
        buf_printf(&name, "%s%s", i ? "_" : "", part->name);
        part->fused_into = g;
        if (part->min_order < g->min_order)
            g->min_order = part->min_order;
        if (part->max_order > g->max_order)
            g->max_order = part->max_order;
        for (int k = 0; k < part->outputs.n; k++)
            vec_push(s->arena, &g->outputs, part->outputs.at[k]);
        if (!lead && sched_is_reduction(part))
            lead = part;
    }
    g->name = buf_str(&name);
    lead = lead ? lead : snodes[0];
    g->iter = lead->iter;
    g->red = lead->red;
    g->n_iter = lead->n_iter;
    g->n_red = lead->n_red;
    union_deps(s, g);
    return g;
}

// ---- Order.

typedef struct Visit {
    SchedNode *node;
    const Dep **deps; // unmet, by name
    int n, next;
} Visit;

static int by_buffer(const void *a, const void *b) {
    const Dep *x = *(const Dep *const *)a, *y = *(const Dep *const *)b;
    int c = strcmp(x->buf, y->buf);
    return c ? c : (x < y ? -1 : x > y); // neighbours of one array: keeps it stable
}

static Visit visit(Arena *tmp, SchedNode *n) {
    Visit v = {.node = n, .deps = ARENA_ARRAY(tmp, n->unmet.n + n->order_only.n + 1, const Dep *)};
    for (int i = 0; i < n->unmet.n; i++)
        v.deps[v.n++] = &n->unmet.at[i];
    if (v.n > 1)
        qsort(v.deps, (size_t)v.n, sizeof *v.deps, by_buffer);
    for (int i = 0; i < n->order_only.n; i++)
        v.deps[v.n++] = &n->order_only.at[i];
    return v;
}

enum { MARK_none, MARK_listed, MARK_seen };

void sched_toposort(Schedule *s, SchedNode **nodes, int n) {
    (void)s;
    Arena tmp = {0};
    SchedNode **out = ARENA_ARRAY(&tmp, n + 1, SchedNode *);
    VEC(Visit) stack = {0};
    int done = 0;
    for (int i = 0; i < n; i++)
        nodes[i]->mark = MARK_listed;
    for (int i = 0; i < n; i++) {
        SchedNode *next = nodes[i];
        while (next || stack.n) {
            if (next && next->mark == MARK_listed) {
                next->mark = MARK_seen;
                vec_push(&tmp, &stack, visit(&tmp, next));
            }
            next = NULL;
            if (!stack.n)
                break;
            Visit *v = &vec_last(&stack);
            if (v->next < v->n) {
                next = sched_maker(v->deps[v->next++]);
            } else {
                out[done++] = v->node;
                stack.n--;
            }
        }
    }
    assert(done == n);
    for (int i = 0; i < n; i++) {
        nodes[i] = out[i];
        nodes[i]->mark = MARK_none;
    }
    arena_free(&tmp);
}

// ---- Dead nodes.

static bool buffer_is_live(const SchedBuffer *b) {
    for (int i = 0; i < b->users.n; i++) {
        const SchedUser *u = &b->users.at[i];
        if (!u->is_weak && !(u->node && u->node->dead))
            return true;
    }
    return false;
}

static void forget_user(SchedBuffer *b, const SchedNode *n) {
    int kept = 0;
    for (int i = 0; b && i < b->users.n; i++)
        if (b->users.at[i].node != n)
            b->users.at[kept++] = b->users.at[i];
    if (b)
        b->users.n = kept;
}

static bool reads_a_dead_node(const Dep *d) {
    return d->kind == DEP_weak && d->made && d->made->defining->dead;
}

static void drop_dead(Schedule *s) {
    bool any = false;
    for (int i = s->nodes.n - 1; i >= 0; i--) {
        SchedNode *n = s->nodes.at[i];
        bool live = n->op->side_effects;
        for (int k = 0; k < n->outputs.n; k++)
            live = live || buffer_is_live(n->outputs.at[k]);
        if (live)
            continue;
        n->dead = any = true;
        for (int k = 0; k < n->reads.n; k++)
            forget_user(n->reads.at[k].made, n);
    }
    if (!any)
        return;
    int kept = 0;
    for (int i = 0; i < s->nodes.n; i++) {
        SchedNode *n = s->nodes.at[i];
        if (n->dead)
            continue;
        s->nodes.at[kept++] = n;
        DepVec reads = {0};
        for (int k = 0; k < n->reads.n; k++)
            if (!reads_a_dead_node(&n->reads.at[k]))
                vec_push(s->arena, &reads, n->reads.at[k]);
        if (reads.n != n->reads.n)
            sched_set_reads(s, n, reads);
    }
    s->nodes.n = kept;
}

// ---- Ancestors: a bit a node, from the first word that has any.

static const SchedNode *single_maker(const Dep *d, const SchedNode *n) {
    const SchedNode *m = d->made ? d->made->defining : NULL;
    return m && !m->dead && m != n ? m : NULL;
}

static void find_ancestors(Schedule *s, SchedNode *n) {
    int first = n->min_order / 64 + 1;
    for (int i = 0; i < n->unmet.n; i++) {
        const SchedNode *m = single_maker(&n->unmet.at[i], n);
        if (!m)
            continue;
        int from = m->n_words ? m->first_word : m->min_order / 64;
        if (m->min_order / 64 < from)
            from = m->min_order / 64;
        first = from < first ? from : first;
    }
    int words = n->min_order / 64 + 1 - first;
    if (words <= 0)
        return;
    n->first_word = first;
    n->n_words = words;
    n->ancestors = ARENA_ARRAY(s->arena, words, uint64_t);
    for (int i = 0; i < n->unmet.n; i++) {
        const SchedNode *m = single_maker(&n->unmet.at[i], n);
        if (!m)
            continue;
        n->ancestors[m->min_order / 64 - first] |= UINT64_C(1) << (m->min_order % 64);
        for (int w = 0; w < m->n_words; w++)
            n->ancestors[m->first_word + w - first] |= m->ancestors[w];
    }
}

void sched_find_ancestors(Schedule *s) {
    for (int i = 0; i < s->nodes.n; i++)
        s->nodes.at[i]->min_order = s->nodes.at[i]->max_order = i;
    for (int i = 0; i < s->nodes.n; i++)
        find_ancestors(s, s->nodes.at[i]);
}

static bool is_ancestor(const SchedNode *a, const SchedNode *of) {
    int w = a->min_order / 64 - of->first_word;
    return w >= 0 && w < of->n_words && (of->ancestors[w] >> (a->min_order % 64) & 1);
}

bool sched_comes_before(const SchedNode *a, const SchedNode *b) {
    int na, nb;
    SchedNode *const *as = sched_singles(a, &na), *const *bs = sched_singles(b, &nb);
    if (a->min_order >= b->max_order)
        return false;
    for (int k = 0; k < nb; k++)
        for (int i = 0; i < na; i++)
            if (as[i]->min_order < bs[k]->min_order && is_ancestor(as[i], bs[k]))
                return true;
    return false;
}

Schedule *schedule_new(const ScheduleRequest *r, const IrModule *module) {
    Arena *a = r->arena;
    Schedule *s = ARENA_NEW(a, Schedule);
    *s = (Schedule){.arena = a,
                    .module = module,
                    .buffers = {.arena = a},
                    .mutation_renames = {.arena = a},
                    .mutation_real_name = {.arena = a},
                    .available = {.arena = a},
                    .log = {.arena = a}};
    for (int i = 0; i < module->inputs.n; i++)
        map_put_int(&s->available, module->inputs.at[i].name, 1);
    for (int i = 0; i < module->constants.n; i++)
        map_put_int(&s->available, module->constants.at[i]->name, 1);
    for (int i = 0; i < module->ops.n; i++)
        vec_push(a, &s->nodes, new_node(s, module->ops.at[i]));
    sched_compute_users(s);
    for (int i = 0; i < s->nodes.n; i++) {
        sched_link_node(s, s->nodes.at[i]);
        if (!work_goes_on(r->diag, i, s->nodes.n))
            return NULL;
    }
    sched_toposort(s, s->nodes.at, s->nodes.n);
    if (!r->config || r->config->use_dce)
        drop_dead(s);
    sched_find_ancestors(s);
    s->origins = origins_new(a);
    for (int i = 0; i < s->nodes.n; i++)
        origins_add(s->origins, i, s->nodes.at[i]->op->number, LINK_same);
    for (int i = 0; i < s->nodes.n; i++) {
        const IrOp *op = s->nodes.at[i]->op;
        for (int k = 0; k < op->nested.n; k++) {
            const IrNested *n = &op->nested.at[k];
            const Schedule *inner = schedule_new(r, n->module);
            if (!inner)
                return NULL;
            vec_push(a, &s->nested, (NestedSchedule){op, n->name, inner});
        }
    }
    return s;
}
