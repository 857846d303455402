// plan_verify.c: is a memory plan sound? It is run line by line with one fact kept for each piece
// of memory: which buffer's values lie in it. Every read must find the values of the buffer it
// names, and so must the caller at the end. The planner's own reasons are not used.
#include "core/inductor/scheduler.h"
#include "core/inductor/sched_impl.h"

#include <string.h>

// A piece of memory.
typedef struct Memory {
    const char *holds; // buffer whose values are there; NULL: nothing yet
    bool live; // not freed
} Memory;

typedef struct Check {
    const MemoryPlan *plan;
    const Schedule *s;
    Diag *diag;
    Arena tmp;
    Map memory; // buffer -> Memory *
    Map nest; // removed buffer -> node that has made it in this nest
    Map unwritten; // buffers of loops that run zero times: what lies there is theirs
    bool ok;
} Check;

// Who reads is quoted: one class of error, whoever it is.
static void fail(Check *c, const char *what, const char *buf, const char *who) {
    c->ok = false;
    diag_fail(c->diag, "memory plan: '%s' %s %s", who, what, buf)->cause = CAUSE_check;
}

static const char *real_name(const Check *c, const char *buf) {
    const char *real = map_get(&c->s->mutation_real_name, buf);
    return real ? real : buf;
}

static Memory *new_memory(Check *c, const char *buf, const char *holds) {
    Memory *m = ARENA_NEW(&c->tmp, Memory);
    *m = (Memory){.holds = map_find(&c->unwritten, buf) ? buf : holds, .live = true};
    map_put(&c->memory, buf, m);
    return m;
}

// What a library call returns has memory of its own.
static Memory *memory_of(Check *c, const char *buf, bool writing) {
    Memory *m = map_get(&c->memory, real_name(c, buf));
    if (!m && writing)
        m = new_memory(c, real_name(c, buf), NULL);
    return m;
}

// Memory without elements may be shared, freed and written as one likes.
static bool has_values(const Check *c, const IrLayout *l) {
    return l && l->kind != IRL_none && l->kind != IRL_multi_output &&
           !ir_layout_is_empty(c->s->module->sym, l);
}

// A node whose loops were made again names what it reads as its body does; that it wants a later
// version of it is on record among what it only runs behind.
static bool wants_version(const SchedNode *n, const char *version) {
    for (int i = 0; i < n->order_only.n; i++)
        if (!strcmp(n->order_only.at[i].buf, version))
            return true;
    return false;
}

static void check_read(Check *c, const SchedNode *n, const SchedNode *nest, const Dep *d) {
    const IrBuffer *b = map_get(&c->s->module->buffers, d->buf);
    if (d->kind == DEP_weak || !b || (b->layout && !has_values(c, b->layout)))
        return;
    if (map_find(&c->plan->removed, d->buf)) {
        if (map_get(&c->nest, d->buf) != nest)
            fail(c, "reads what exists only inside of another loop nest,", d->buf, n->name);
        return;
    }
    const Memory *m = memory_of(c, d->buf, false);
    if (!m || !m->live)
        fail(c, m ? "reads after its memory is freed:" : "reads before it exists:", d->buf,
             n->name);
    else if (!m->holds || (strcmp(m->holds, d->buf) != 0 && !wants_version(n, m->holds)))
        fail(c, "reads what was overwritten:", d->buf, n->name);
}

static void check_write(Check *c, const SchedNode *n, const SchedNode *nest, bool nothing) {
    for (int i = 0; i < n->outputs.n; i++) {
        const IrBuffer *b = n->outputs.at[i]->ir;
        if (map_find(&c->plan->removed, b->name)) {
            map_put(&c->nest, b->name, (void *)nest);
            continue;
        }
        if (!has_values(c, b->layout) && b->mutations.n == 0)
            continue;
        Memory *m = memory_of(c, b->name, true);
        if (!m->live && !nothing)
            fail(c, "writes after its memory is freed:", b->name, n->name);
        m->holds = b->name;
    }
}

// Loops that run zero times have no code: what they would read may be gone by then.
static bool writes_nothing(const SchedNode *n) {
    return n->kind == SCHED_nop && n->op->cls == IR_computed;
}

static void run_single(Check *c, const SchedNode *n, const SchedNode *nest) {
    bool nothing = writes_nothing(n);
    for (int i = 0; i < n->reads.n && !nothing; i++)
        check_read(c, n, nest, &n->reads.at[i]);
    check_write(c, n, nest, nothing);
}

static void run_node(Check *c, const SchedNode *n) {
    if (!n->snodes.n)
        run_single(c, n, n);
    for (int i = 0; i < n->snodes.n; i++)
        run_single(c, n->snodes.at[i], n);
}

static void take(Check *c, const PlanLine *l) {
    Memory *from = map_get(&c->memory, real_name(c, l->from));
    if (!from || !from->live) {
        fail(c, "takes memory that is not there:", l->from, l->buf);
        return;
    }
    // Written over while being read: the old values stay until the kernel's store.
    if (!l->inplace)
        from->holds = map_find(&c->unwritten, l->buf) ? l->buf : NULL;
    map_put(&c->memory, l->buf, from);
}

static void release(Check *c, const char *buf) {
    Memory *m = map_get(&c->memory, real_name(c, buf));
    if (m && m->live)
        m->live = false;
    else if (m)
        fail(c, "is freed twice:", buf, "memory");
}

static void run_line(Check *c, const PlanLine *l) {
    switch (l->kind) {
    case PLAN_alloc:
        new_memory(c, l->buf, NULL);
        break;
    case PLAN_reuse:
        take(c, l);
        break;
    case PLAN_alias:
        // Rows of a concatenation: each holds its own values.
        new_memory(c, l->buf, NULL);
        break;
    case PLAN_call:
        for (int i = 0; i < l->n_nodes; i++)
            run_node(c, c->s->nodes.at[l->node + i]);
        break;
    case PLAN_free:
    case PLAN_del_input:
        release(c, l->buf);
        break;
    }
}

static void check_outputs(Check *c) {
    const IrModule *m = c->s->module;
    for (int i = 0; i < m->outputs.n; i++) {
        const char *buf = m->outputs.at[i].buf;
        const IrBuffer *b = buf ? map_get(&m->buffers, buf) : NULL;
        if (!b || (b->layout && !has_values(c, b->layout)))
            continue;
        const Memory *at = memory_of(c, buf, false);
        if (map_find(&c->plan->removed, buf))
            fail(c, "needs a buffer that has no memory:", buf, "the caller");
        else if (!at || !at->live)
            fail(c, "needs a buffer that is freed:", buf, "the caller");
        else if (!at->holds || strcmp(real_name(c, at->holds), real_name(c, buf)) != 0)
            fail(c, "reads what was overwritten:", buf, "the caller");
    }
}

static void start(Check *c) {
    const IrModule *m = c->s->module;
    for (int i = 0; i < c->s->nodes.n; i++) {
        const SchedNode *n = c->s->nodes.at[i];
        for (int k = 0; n->kind == SCHED_nop && n->body && k < n->outputs.n; k++)
            map_put_int(&c->unwritten, n->outputs.at[k]->ir->name, 1);
    }
    for (int i = 0; i < m->inputs.n; i++)
        new_memory(c, m->inputs.at[i].name, m->inputs.at[i].name);
    for (int i = 0; i < m->constants.n; i++)
        new_memory(c, m->constants.at[i]->name, m->constants.at[i]->name);
}

static bool is_nop(const Schedule *s, int node) {
    return s->nodes.at[node]->kind == SCHED_nop;
}

bool memory_plan_verify(const MemoryPlan *p, const Schedule *after, Diag *d) {
    Check c = {.plan = p, .s = after, .diag = d, .ok = true};
    c.memory.arena = c.nest.arena = c.unwritten.arena = &c.tmp;
    start(&c);
    // Concatenations whose parts are written in place have no line; they are complete after the
    // lines before.
    int next = 0;
    for (int i = 0; i < p->lines.n; i++) {
        const PlanLine *l = &p->lines.at[i];
        if (l->kind == PLAN_call) {
            for (; next < l->node; next++)
                run_node(&c, after->nodes.at[next]);
            next = l->node + l->n_nodes;
        }
        // Its parts are freed behind it.
        for (; l->kind == PLAN_free && next < after->nodes.n && is_nop(after, next); next++)
            run_node(&c, after->nodes.at[next]);
        run_line(&c, l);
    }
    for (; next < after->nodes.n; next++)
        run_node(&c, after->nodes.at[next]);
    check_outputs(&c);
    arena_free(&c.tmp);
    return c.ok;
}
