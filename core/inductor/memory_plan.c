// memory_plan.c: where each buffer lives: allocations, buffers written over their input, memory
// taken over from buffers that are no longer needed, frees; in the order of the wrapper's lines
// (Scheduler.codegen and the memory lines of codegen/wrapper.py). Loop nests that follow each other
// become one kernel; a library call ends it.
#include "core/inductor/plan_lives.h"
#include "core/inductor/plan_peaks.h"
#include "core/inductor/sched_impl.h"
#include "core/record/fault.h"
#include "core/base/work.h"

#include <stdlib.h>
#include <string.h>

// A line of the wrapper before reuse is settled.
typedef struct Line {
    PlanLine line;
    int at;       // position of the node that caused it
    bool planned; // alloc, free, reuse: takes part in planning and may be dropped at the end
    bool drop;
} Line;

// Buffers freed and not taken over yet, of one size and type: last in, first out.
typedef struct Pool {
    VEC(int) lines;   // PLAN_free lines
    const char *live; // the buffer that was allocated last, NULL: none
} Pool;

typedef struct Plan {
    const ScheduleRequest *r;
    const Schedule *s;
    Arena *a, *tmp;
    Sym *sym;
    InductorConfig config;
    MemoryPlan *out;
    VEC(Line) lines;
    Map allocated, freed, outputs; // buffer names
    Map completed;                 // names of ops of finished nodes
    Map inputs;                    // graph inputs, by name: 1, donated: 2
    Map donated;                   // donated inputs -> SchedBuffer * with their users
    Map to_free;                   // names whose last user has run since the last flush
    Map pools;                     // key -> Pool *
    Peaks peaks;
    int64_t overall_peak;
    int node;        // position of the node at work
    int kernel_from; // first node of the open kernel, -1: none
} Plan;

// ---- What buffers are.

static bool is_removed(const Plan *p, const char *buf) {
    return map_find(&p->out->removed, buf) != NULL;
}

static const IrBuffer *buffer_of(const Plan *p, const char *name) {
    return map_get(&p->s->module->buffers, name);
}

// Whose memory it lies in.
static const char *owner_of(const IrBuffer *b) {
    if (b->layout->kind != IRL_non_owning)
        return b->name;
    return b->layout->view_of ? b->layout->view_of : b->aliases.n ? b->aliases.at[0] : b->name;
}

static bool made_by_call(const IrBuffer *b) {
    if (!b->op)
        return false;
    switch (b->op->cls) {
    case IR_extern_alloc:
    case IR_fallback:
    case IR_multi_output:
    case IR_scatter_fallback:
    case IR_index_put_fallback:
    case IR_inplace_bernoulli:
        return true;
    default:
        return !ir_layout_has_tensor(b->layout);
    }
}

// Memory of a free buffer goes to one of the same key. What a fallback returns may be badly
// aligned.
static const char *reuse_key(Plan *p, const IrBuffer *b) {
    Buf key = {.arena = p->tmp};
    bool aligned = !(b->op && (b->op->cls == IR_fallback || b->op->cls == IR_multi_output));
    device_print(&key, b->layout->device);
    buf_printf(&key, " %d %d ", (int)b->layout->dtype, aligned);
    sym_print(&key, ir_layout_storage(p->sym, b->layout));
    return buf_str(&key);
}

static int64_t storage_bytes(Plan *p, const IrBuffer *b) {
    int64_t n = sym_size_hint(p->sym, ir_layout_storage(p->sym, b->layout), 0), bytes;
    return __builtin_mul_overflow(n, dtype_info[b->layout->dtype].bytes, &bytes) ? INT64_MAX / 4
                                                                                 : bytes;
}

static bool can_reuse(const Plan *p, const char *buf) {
    if (is_removed(p, buf) || map_find(&p->freed, buf))
        return false;
    return !sched_is_available(p->s, buf) || map_get_int(&p->inputs, buf, 0) == 2;
}

// ---- Lines.

static Line *emit(Plan *p, PlanKind kind, const char *buf, const char *from) {
    const IrBuffer *b = buf ? buffer_of(p, buf) : NULL;
    Line l = {.line = {.kind = kind, .buf = buf, .from = from, .layout = b ? b->layout : NULL},
              .at = p->node,
              .planned = kind == PLAN_alloc || kind == PLAN_free || kind == PLAN_reuse ||
                         kind == PLAN_alias};
    vec_push(p->tmp, &p->lines, l);
    return &vec_last(&p->lines);
}

static void allocate(Plan *p, const char *name) {
    const IrBuffer *b = buffer_of(p, name);
    if (!b || is_removed(p, name) || map_find(&p->allocated, name) || map_find(&p->inputs, name))
        return;
    map_put_int(&p->allocated, name, 1);
    if (made_by_call(b) || b->layout->kind == IRL_mutation)
        return;
    if (b->layout->kind == IRL_non_owning) {
        const char *owner = owner_of(b);
        if (owner != b->name) {
            allocate(p, owner);
            emit(p, PLAN_alias, name, owner);
        }
        return;
    }
    emit(p, PLAN_alloc, name, NULL);
}

static bool same_shape(const IrLayout *a, const IrLayout *b) {
    bool same = a->ndim == b->ndim;
    for (int i = 0; same && i < a->ndim; i++)
        same = a->size[i] == b->size[i] && a->stride[i] == b->stride[i];
    return same;
}

static void describe_reuse(Plan *p, Line *l, bool inplace) {
    const IrBuffer *from = buffer_of(p, l->line.from);
    l->line.inplace = inplace;
    l->line.exact = from && same_shape(from->layout, l->line.layout);
    l->line.keep_from = map_find(&p->outputs, l->line.from) != NULL;
}

static void mark_run(Plan *p, const SchedNode *n) {
    for (int i = 0; i < n->outputs.n; i++) {
        const IrBuffer *b = n->outputs.at[i]->ir;
        if (made_by_call(b) || map_find(&p->allocated, b->name) || is_removed(p, b->name))
            continue;
        const char *over =
            b->aliases.n || b->mutations.n ? NULL : map_get(&p->out->inplace, b->name);
        if (!over) {
            allocate(p, b->name);
            continue;
        }
        allocate(p, over);
        map_put_int(&p->freed, over, 1);
        map_put_int(&p->allocated, b->name, 1);
        describe_reuse(p, emit(p, PLAN_reuse, b->name, over), true);
    }
}

// ---- Writing over an input.

static bool sizes_match(Plan *p, const IrBuffer *in, const IrBuffer *out) {
    const IrLayout *a = in->layout, *b = out->layout;
    if (!device_equal(a->device, b->device) || a->dtype != b->dtype)
        return false;
    const Expr *x = ir_layout_storage(p->sym, a), *y = ir_layout_storage(p->sym, b);
    int64_t nx, ny;
    if (x == y)
        return true;
    return expr_int(x, &nx) && expr_int(y, &ny) && ny <= nx && (double)ny >= 0.95 * (double)nx;
}

static bool is_done(const Plan *p, const SchedNode *user, const SchedNode *n) {
    return user && (user->dead || map_find(&p->completed, user->name) ||
                    (user != n && sched_comes_before(user, n)));
}

// n is the only one that still needs the buffer, and may write over what it reads.
static bool only_user_left(const Plan *p, const SchedBuffer *b, const SchedNode *n) {
    int left = 0;
    bool self = false;
    for (int i = 0; i < b->users.n; i++) {
        const SchedUser *u = &b->users.at[i];
        if (is_done(p, u->node, n))
            continue;
        left++;
        self = u->node == n && u->can_inplace;
    }
    return left == 1 && self;
}

// All that the fused node does with the buffer is at one index.
static bool one_access(Plan *p, const SchedBuffer *b, const SchedNode *n) {
    DepVec seen = {0};
    for (int i = 0; i < b->users.n; i++) {
        const SchedNode *u = b->users.at[i].node;
        if (!u || u->dead || u->fused_into != n->fused_into)
            continue;
        for (int k = 0; k < u->reads.n; k++)
            if (strcmp(u->reads.at[k].buf, b->ir->name) == 0)
                deps_add(p->tmp, &seen, &u->reads.at[k]);
        for (int k = 0; k < u->writes.n; k++)
            if (strcmp(u->writes.at[k].buf, b->ir->name) == 0)
                deps_add(p->tmp, &seen, &u->writes.at[k]);
    }
    return seen.n <= 1;
}

static bool may_overwrite(Plan *p, const SchedBuffer *in, const SchedNode *n, const IrBuffer *out) {
    const IrBuffer *b = in->ir;
    if (!can_reuse(p, b->name) || (in->defining && in->defining->kind == SCHED_nop))
        return false;
    // A part of a cat lies in memory that is freed by another name; PyTorch asks for sizes alone.
    if (!ir_layout_has_tensor(b->layout) || b->layout->kind == IRL_mutation ||
        b->layout->kind == IRL_non_owning)
        return false;
    bool fallback = b->op && (b->op->cls == IR_fallback || b->op->cls == IR_multi_output);
    bool fits = !(fallback && b->aliases.n) && sizes_match(p, b, out) && one_access(p, in, n);
    return fits && (only_user_left(p, in, n) ||
                    fault(p->r->decisions, FAULT_inplace_too_early, out->name));
}

static const SchedBuffer *reusable_buffer(const Plan *p, const char *name) {
    const SchedBuffer *b = map_get(&p->donated, name);
    return b ? b : sched_buffer(p->s, name);
}

static void decide_inplace(Plan *p, const SchedNode *n) {
    for (int i = 0; i < n->outputs.n; i++) {
        const IrBuffer *out = n->outputs.at[i]->ir;
        if (made_by_call(out) || out->aliases.n || out->mutations.n || is_removed(p, out->name))
            continue;
        for (int k = 0; k < n->reads.n; k++) {
            const SchedBuffer *in = reusable_buffer(p, n->reads.at[k].buf);
            if (!in || !may_overwrite(p, in, n, out))
                continue;
            Decide q = {.kind = DECIDE_inplace,
                        .key = arena_printf(p->tmp, "%s over %s", out->name, in->ir->name),
                        .by_default = true,
                        .bytes = storage_bytes(p, out),
                        .reason = "last use of the input, same places"};
            if (!decide(p->r->decisions, &q))
                continue;
            map_put(&p->out->inplace, out->name, (void *)in->ir->name);
            break;
        }
    }
}

// ---- Loop nests.

// What is written again, or is a later version of something, has to be in memory.
static bool used_only_in(const Schedule *s, const SchedBuffer *b, const Map *ops) {
    if (map_find(&s->mutation_renames, b->ir->name) ||
        map_find(&s->mutation_real_name, b->ir->name))
        return false;
    for (int i = 0; i < b->users.n; i++) {
        const SchedUser *u = &b->users.at[i];
        if (!u->is_weak && !(u->node && map_find(ops, u->node->name)))
            return false;
    }
    return true;
}

// Memory that a removable buffer shares by overwriting must be removable, too.
static bool chain_is_removable(const Plan *p, const char *name, const Map *removable) {
    for (const char *n = name; n; n = map_get(&p->out->inplace, n))
        if (!map_find(removable, n))
            return false;
    return true;
}

// What only the nest itself uses stays in registers.
static void remove_internal(Plan *p, SchedNode *const *singles, int n) {
    Map ops = {.arena = p->tmp}, removable = {.arena = p->tmp};
    for (int i = 0; i < n; i++)
        map_put_int(&ops, singles[i]->name, 1);
    for (int i = 0; i < n; i++)
        for (int k = 0; k < singles[i]->outputs.n; k++) {
            const SchedBuffer *b = singles[i]->outputs.at[k];
            if (used_only_in(p->s, b, &ops))
                map_put_int(&removable, b->ir->name, 1);
        }
    // A removable buffer whose memory goes on to one that stays has to stay.
    for (int i = n - 1; i >= 0; i--)
        for (int k = 0; k < singles[i]->outputs.n; k++) {
            const char *name = singles[i]->outputs.at[k]->ir->name;
            const char *from = map_get(&p->out->inplace, name);
            if (from && !map_find(&removable, name))
                map_remove(&removable, from);
        }
    for (MapEntry *e = map_first(&removable); e; e = map_next(&removable, e))
        if (chain_is_removable(p, e->key, &removable))
            map_put_int(&p->out->removed, e->key, 1);
}

static void run_nest(Plan *p, const SchedNode *nest, bool inplace) {
    int n;
    SchedNode *const *singles = sched_singles(nest, &n);
    for (int i = 0; i < n; i++) {
        if (inplace && p->config.inplace_buffers)
            decide_inplace(p, singles[i]);
        mark_run(p, singles[i]);
    }
    remove_internal(p, singles, n);
}

static void run_loops(Plan *p, const SchedNode *node) {
    if (p->kernel_from < 0)
        p->kernel_from = p->node;
    if (node->kind != SCHED_outer_loop || !node->outer.n) {
        run_nest(p, node, true);
        return;
    }
    plan_local_rows(p->s, node, p->out);
    for (int i = 0; i < node->outer.n; i++)
        run_nest(p, node->outer.at[i], true);
    if (!map_find(&p->out->split, node->name))
        return;
    // The nests turn out not to fit together: they are run again, one by one. What overwrites what
    // stays decided.
    plan_forget_rows(node, p->out);
    for (int i = 0; i < node->outer.n; i++)
        run_nest(p, node->outer.at[i], false);
}

// ---- Frees.

static int by_text(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static bool is_output(const SchedBuffer *b) {
    for (int i = 0; i < b->users.n; i++)
        if (!b->users.at[i].node)
            return true;
    return false;
}

static void free_one(Plan *p, const char *name) {
    const SchedBuffer *b = sched_buffer(p->s, name);
    if (b) {
        if (!b->ir->layout || b->ir->layout->kind == IRL_none || is_output(b) ||
            !can_reuse(p, name))
            return;
        map_put_int(&p->freed, name, 1);
        emit(p, PLAN_free, name, NULL);
    } else if (map_find(&p->inputs, name)) {
        emit(p, PLAN_del_input, name, NULL);
    }
}

static void free_buffers(Plan *p) {
    const char **names = ARENA_ARRAY(p->tmp, p->to_free.live + 1, const char *);
    int n = 0;
    for (MapEntry *e = map_first(&p->to_free); e; e = map_next(&p->to_free, e))
        if (!is_removed(p, e->key) && !map_find(&p->freed, e->key))
            names[n++] = e->key;
    p->to_free = (Map){.arena = p->tmp};
    qsort(names, (size_t)n, sizeof *names, by_text);
    for (int i = 0; i < n; i++)
        free_one(p, names[i]);
}

static void flush(Plan *p) {
    if (p->kernel_from >= 0) {
        Line *l = emit(p, PLAN_call, NULL, NULL);
        l->line.node = p->kernel_from;
        l->line.n_nodes = l->at - p->kernel_from + 1;
        p->kernel_from = -1;
    }
    free_buffers(p);
}

static void run_node(Plan *p, int i) {
    const SchedNode *n = p->s->nodes.at[i];
    if (n->kind == SCHED_extern)
        flush(p);
    p->node = i;
    for (int k = 0; k < n->last_usage.n; k++)
        map_put_int(&p->to_free, n->last_usage.at[k], 1);
    if (n->kind == SCHED_extern) {
        mark_run(p, n);
        Line *l = emit(p, PLAN_call, NULL, NULL);
        l->line.node = i;
        l->line.n_nodes = 1;
        free_buffers(p);
    } else if (n->kind == SCHED_nop) {
        mark_run(p, n);
    } else {
        run_loops(p, n);
    }
    int count;
    SchedNode *const *singles = sched_singles(n, &count);
    for (int k = 0; k < count; k++)
        map_put_int(&p->completed, singles[k]->name, 1);
}

// ---- Taking over memory.

static Pool *pool_of(Plan *p, const char *key) {
    Pool *pool = map_get(&p->pools, key);
    if (!pool) {
        pool = ARENA_NEW(p->tmp, Pool);
        map_put(&p->pools, key, pool);
    }
    return pool;
}

// Not at once: meanwhile the memory is held, and that must not raise the peak.
static bool worth_it(Plan *p, const Line *freed, const Line *alloc, int64_t bytes) {
    if (freed->at + 1 == alloc->at)
        return true;
    int64_t between = peaks_over(&p->peaks, freed->at + 1, alloc->at - 1);
    return between + bytes <= p->overall_peak;
}

static bool wants_reuse(Plan *p, const Line *alloc, const char *from, int64_t bytes) {
    Decide q = {.kind = DECIDE_reuse,
                .key = arena_printf(p->tmp, "%s from %s", alloc->line.buf, from),
                .by_default = true,
                .bytes = bytes,
                .reason = "same size and type, no longer needed"};
    return decide(p->r->decisions, &q);
}

// Planted: the memory of a buffer that is still read.
static bool take_live(Plan *p, Line *alloc, const Pool *pool) {
    if (!pool->live || !fault(p->r->decisions, FAULT_reused_while_live, alloc->line.buf) ||
        !wants_reuse(p, alloc, pool->live, 0))
        return false;
    alloc->line.kind = PLAN_reuse;
    alloc->line.from = pool->live;
    describe_reuse(p, alloc, false);
    return true;
}

static bool take_over(Plan *p, Line *alloc) {
    const IrBuffer *b = buffer_of(p, alloc->line.buf);
    Pool *pool = pool_of(p, reuse_key(p, b));
    if (take_live(p, alloc, pool))
        return true;
    pool->live = alloc->line.buf;
    if (!pool->lines.n || !p->config.allow_buffer_reuse)
        return false;
    Line *freed = &p->lines.at[vec_last(&pool->lines)];
    int64_t bytes = storage_bytes(p, b);
    if (!worth_it(p, freed, alloc, bytes))
        return false;
    if (!wants_reuse(p, alloc, freed->line.buf, bytes))
        return false;
    pool->lines.n--;
    freed->drop = true;
    if (freed->at + 1 != alloc->at)
        peaks_raise(&p->peaks, freed->at + 1, alloc->at - 1, bytes);
    alloc->line.kind = PLAN_reuse;
    alloc->line.from = freed->line.buf;
    describe_reuse(p, alloc, false);
    return true;
}

static void settle_line(Plan *p, int i) {
    Line *l = &p->lines.at[i];
    if (l->line.buf && l->planned && is_removed(p, l->line.buf)) {
        l->drop = true;
    } else if (l->line.kind == PLAN_alloc) {
        take_over(p, l);
    } else if (l->line.kind == PLAN_free) {
        const IrBuffer *b = buffer_of(p, l->line.buf);
        if (b->aliases.n || !ir_layout_has_tensor(b->layout))
            return;
        Pool *pool = pool_of(p, reuse_key(p, b));
        vec_push(p->tmp, &pool->lines, i);
    }
}

static void settle(Plan *p) {
    // Memory lines at the end do nothing, unless for an output.
    while (p->lines.n && vec_last(&p->lines).planned &&
           !map_find(&p->outputs, vec_last(&p->lines).line.buf))
        p->lines.n--;
    for (int i = 0; i < p->lines.n; i++)
        settle_line(p, i);
    for (int i = 0; i < p->lines.n; i++)
        if (!p->lines.at[i].drop)
            vec_push(p->a, &p->out->lines, p->lines.at[i].line);
}

// ---- Donated inputs have no buffer in the schedule: their users are collected here.

static void add_donated_reader(Plan *p, SchedNode *n) {
    for (int i = 0; i < n->reads.n; i++) {
        const Dep *d = &n->reads.at[i];
        SchedBuffer *b = map_get(&p->donated, d->buf);
        if (!b || d->kind == DEP_weak)
            continue;
        bool can = sched_can_inplace(n, d);
        if (b->users.n && vec_last(&b->users).node == n)
            vec_last(&b->users).can_inplace = vec_last(&b->users).can_inplace && can;
        else
            vec_push(p->tmp, &b->users, (SchedUser){.node = n, .can_inplace = can});
    }
}

static void find_inputs(Plan *p) {
    const IrModule *m = p->s->module;
    for (int i = 0; i < m->inputs.n; i++) {
        const IrInput *in = &m->inputs.at[i];
        bool donated = in->donated && in->buf && in->buf->layout;
        map_put_int(&p->inputs, in->name, donated ? 2 : 1);
        if (!donated)
            continue;
        SchedBuffer *b = ARENA_NEW(p->tmp, SchedBuffer);
        b->ir = in->buf;
        if (map_find(&p->outputs, in->name))
            vec_push(p->tmp, &b->users, (SchedUser){0});
        map_put(&p->donated, in->name, b);
    }
    for (int i = 0; i < p->s->nodes.n; i++) {
        int n;
        SchedNode *const *singles = sched_singles(p->s->nodes.at[i], &n);
        for (int k = 0; k < n; k++)
            add_donated_reader(p, singles[k]);
    }
}

// NULL only if it was told to stop.
MemoryPlan *memory_plan(const ScheduleRequest *r, const Schedule *after) {
    Arena tmp = {0};
    Arena *t = &tmp;
    Plan p = {.r = r,
              .s = after,
              .a = r->arena,
              .tmp = t,
              .sym = after->module->sym,
              .kernel_from = -1,
              .allocated = {.arena = t},
              .freed = {.arena = t},
              .outputs = {.arena = t},
              .completed = {.arena = t},
              .inputs = {.arena = t},
              .donated = {.arena = t},
              .to_free = {.arena = t},
              .pools = {.arena = t}};
    p.config = r->config ? *r->config : inductor_config_default();
    p.out = ARENA_NEW(r->arena, MemoryPlan);
    *p.out = (MemoryPlan){.inplace = {.arena = r->arena},
                          .removed = {.arena = r->arena},
                          .local = {.arena = r->arena},
                          .split = {.arena = r->arena}};
    for (int i = 0; i < after->module->outputs.n; i++)
        if (after->module->outputs.at[i].buf)
            map_put_int(&p.outputs, after->module->outputs.at[i].buf, 1);
    find_inputs(&p);
    peaks_build(&p.peaks, t, sched_memory_timeline(after, t, &p.overall_peak), after->nodes.n + 1);
    bool whole = true;
    for (int i = 0; i < after->nodes.n && whole; i++) {
        run_node(&p, i);
        whole = work_goes_on(r->diag, i, after->nodes.n);
    }
    if (whole) {
        flush(&p);
        settle(&p);
        PlanLives lives = plan_lives(t, p.out, after);
        p.out->peak_planned = lives.peak_after;
        p.out->peak_unplanned = lives.peak_before;
    }
    arena_free(&tmp);
    if (!whole)
        return NULL;
    for (int i = 0; i < after->nested.n; i++) {
        MemoryPlan *inner = memory_plan(r, after->nested.at[i].schedule);
        if (!inner)
            return NULL;
        vec_push(r->arena, &p.out->nested, inner);
    }
    return p.out;
}
