// plan_lives.c: a memory plan followed line by line: see plan_lives.h.
#include "core/inductor/plan_lives.h"
#include "core/inductor/sched_impl.h"

#include <string.h>

typedef struct Picks { // results of one library call
    VEC(const IrBuffer *) at;
} Picks;

typedef struct Walk {
    Arena *a;
    const MemoryPlan *plan;
    const Schedule *s;
    PlanLives out;
    VEC(PlanLife) lives;
    Map by_name;     // buffer -> its life + 1
    int *call_of;    // by position in the schedule: the call that runs the node, -1: none
    VEC(int) first;  // by call
    VEC(int64_t) after;
    int64_t now;     // bytes in use with the plan
    Map picks;       // buffer of a call with several results -> Picks *
    Map held;        // buffer whose memory is in use -> bytes of the block
} Walk;

static PlanLife *life_of(Walk *w, const char *buf) {
    int64_t i = map_get_int(&w->by_name, buf, 0);
    return i ? &w->lives.at[i - 1] : NULL;
}

static int64_t bytes_of(const Walk *w, const IrLayout *l) {
    Sym *sym = w->s->module->sym;
    int64_t bytes = 0;
    if (!ir_layout_has_tensor(l))
        return 0;
    int64_t n = sym_size_hint(sym, ir_layout_storage(sym, l), 0);
    return __builtin_mul_overflow(n, dtype_info[l->dtype].bytes, &bytes) ? INT64_MAX / 4 : bytes;
}

// Only nodes that run something make a call: not the one that names a result of a library call.
static bool is_silent(const SchedNode *n) {
    return n->kind == SCHED_nop || (n->op && n->op->cls == IR_multi_output);
}

static void number_calls(Walk *w) {
    w->call_of = ARENA_ARRAY(w->a, w->s->nodes.n + 1, int);
    for (int i = 0; i < w->s->nodes.n; i++)
        w->call_of[i] = -1;
    for (int i = 0; i < w->plan->lines.n; i++) {
        const PlanLine *l = &w->plan->lines.at[i];
        bool silent = l->kind != PLAN_call;
        for (int k = 0; !silent && k < l->n_nodes; k++)
            silent = l->n_nodes == 1 && is_silent(w->s->nodes.at[l->node]);
        if (silent) {
            if (l->kind == PLAN_call) // its result came with the call before
                w->call_of[l->node] = w->first.n - 1;
            continue;
        }
        for (int k = l->node; k < l->node + l->n_nodes; k++)
            w->call_of[k] = w->first.n;
        vec_push(w->a, &w->first, l->node);
    }
    // A node that is in no call stands with the one after it.
    for (int i = w->s->nodes.n - 1, next = w->first.n - 1; i >= 0; i--) {
        if (w->call_of[i] < 0)
            w->call_of[i] = next < 0 ? 0 : next;
        next = w->call_of[i];
    }
}

static PlanLife *add_life(Walk *w, const char *buf, const IrLayout *l, int call) {
    PlanLife life = {.buf = buf, .bytes = bytes_of(w, l), .born = call, .last_use = call,
                     .end = -1};
    vec_push(w->a, &w->lives, life);
    map_put_int(&w->by_name, buf, w->lives.n);
    return &vec_last(&w->lives);
}

static void hold(Walk *w, const char *buf, int64_t bytes) {
    map_put_int(&w->held, buf, bytes);
    w->now += bytes;
}

static int64_t let_go(Walk *w, const char *buf, int call) {
    int64_t bytes = map_get_int(&w->held, buf, 0);
    PlanLife *l = life_of(w, buf);
    if (l && l->end < 0)
        l->end = call;
    map_remove(&w->held, buf);
    return bytes;
}

static void library_result(Walk *w, const IrBuffer *b, int call) {
    bool view = b->layout && b->layout->kind == IRL_mutation;
    if (!ir_layout_has_tensor(b->layout) || view || life_of(w, b->name))
        return;
    PlanLife *l = add_life(w, b->name, b->layout, call);
    l->library = true;
    hold(w, b->name, l->bytes);
}

// What a library call makes itself is there when it returns: of several results all that some node
// behind it picks.
static void library_results(Walk *w, int at, int call) {
    const SchedNode *n = w->s->nodes.at[at];
    if (n->kind != SCHED_extern)
        return;
    for (int k = 0; k < n->outputs.n; k++)
        library_result(w, n->outputs.at[k]->ir, call);
    const Picks *p = n->outputs.n ? map_get(&w->picks, n->outputs.at[0]->ir->name) : NULL;
    for (int k = 0; p && k < p->at.n; k++)
        library_result(w, p->at.at[k], call);
}

static void find_picks(Walk *w) {
    for (int i = 0; i < w->s->nodes.n; i++) {
        const SchedNode *n = w->s->nodes.at[i];
        if (!n->op || n->op->cls != IR_multi_output || !n->op->reads_star.n || !n->outputs.n)
            continue;
        MapEntry *e = map_at(&w->picks, n->op->reads_star.at[0]);
        if (!e->ptr)
            e->ptr = ARENA_NEW(w->a, Picks);
        vec_push(w->a, &((Picks *)e->ptr)->at, n->outputs.at[0]->ir);
    }
}

static void run_call(Walk *w, const PlanLine *l) {
    int call = w->call_of[l->node];
    for (int i = l->node; i < l->node + l->n_nodes; i++)
        library_results(w, i, call < 0 ? 0 : call);
    while (w->after.n <= call)
        vec_push(w->a, &w->after, w->now);
    if (call >= 0 && w->now > w->after.at[call])
        w->after.at[call] = w->now;
}

static void take_over(Walk *w, const PlanLine *l, int next) {
    int64_t block = let_go(w, l->from, l->inplace ? next : next - 1);
    PlanLife *life = add_life(w, l->buf, l->layout, next);
    life->from = l->from;
    life->inplace = l->inplace;
    if (l->keep_from) // an output that the buffer is written over stays
        map_put_int(&w->held, l->from, block);
    else
        map_put_int(&w->held, l->buf, block);
    *(l->inplace ? &w->out.n_inplace : &w->out.n_reused) += 1;
}

static void follow(Walk *w) {
    int next = 0; // the call that comes
    for (int i = 0; i < w->plan->lines.n; i++) {
        const PlanLine *l = &w->plan->lines.at[i];
        PlanLife *life;
        switch (l->kind) {
        case PLAN_alloc:
            life = add_life(w, l->buf, l->layout, next);
            hold(w, l->buf, life->bytes);
            break;
        case PLAN_reuse:
            take_over(w, l, next);
            break;
        case PLAN_alias:
            life = add_life(w, l->buf, l->layout, next);
            life->from = l->from;
            life->part = true;
            life->bytes = 0;
            break;
        case PLAN_call:
            run_call(w, l);
            next = w->call_of[l->node] + 1;
            break;
        case PLAN_free:
            w->now -= let_go(w, l->buf, next - 1);
            break;
        case PLAN_del_input:
            break;
        }
    }
}

// ---- without the plan

static void use(Walk *w, const char *buf, int call) {
    for (int i = 0; i < 64; i++) {
        const char *real = map_get(&w->s->mutation_real_name, buf);
        buf = real ? real : buf;
        PlanLife *l = life_of(w, buf);
        if (!l)
            return;
        l->last_use = call > l->last_use ? call : l->last_use;
        if (!l->part)
            return;
        buf = l->from; // who uses a part uses the whole
    }
}

static void use_deps(Walk *w, const DepVec *v, int call) {
    for (int i = 0; i < v->n; i++)
        if (v->at[i].kind != DEP_weak)
            use(w, v->at[i].buf, call);
}

static void find_last_uses(Walk *w) {
    for (int i = 0; i < w->s->nodes.n; i++) {
        int n;
        SchedNode *const *singles = sched_singles(w->s->nodes.at[i], &n);
        for (int k = 0; k < n; k++) {
            use_deps(w, &singles[k]->reads, w->call_of[i]);
            use_deps(w, &singles[k]->writes, w->call_of[i]);
        }
    }
    const IrModule *m = w->s->module;
    for (int i = 0; i < m->outputs.n; i++) {
        if (!m->outputs.at[i].buf)
            continue;
        use(w, m->outputs.at[i].buf, w->first.n - 1);
        const char *real = map_get(&w->s->mutation_real_name, m->outputs.at[i].buf);
        PlanLife *l = life_of(w, real ? real : m->outputs.at[i].buf);
        if (l)
            l->output = true;
    }
}

static void total(PlanLives *out, const PlanLife *l) {
    for (int k = l->born; k <= l->last_use && k < out->n_calls; k++)
        if (__builtin_add_overflow(out->before[k], l->bytes, &out->before[k]))
            out->before[k] = INT64_MAX;
}

PlanLives plan_lives(Arena *a, const MemoryPlan *plan, const Schedule *s) {
    Walk w = {.a = a, .plan = plan, .s = s};
    w.by_name.arena = w.held.arena = w.picks.arena = a;
    number_calls(&w);
    find_picks(&w);
    follow(&w);
    find_last_uses(&w);
    PlanLives *out = &w.out;
    out->at = w.lives.at;
    out->n = w.lives.n;
    out->n_calls = w.first.n;
    out->first_node = w.first.at;
    out->before = ARENA_ARRAY(a, out->n_calls + 1, int64_t);
    out->after = ARENA_ARRAY(a, out->n_calls + 1, int64_t);
    for (int i = 0; i < out->n; i++) {
        if (out->at[i].end < 0)
            out->at[i].end = out->n_calls - 1;
        total(out, &out->at[i]);
    }
    for (int k = 0; k < out->n_calls; k++) {
        out->after[k] = k < w.after.n ? w.after.at[k] : w.now;
        if (out->before[k] > out->peak_before) {
            out->peak_before = out->before[k];
            out->peak_before_at = k;
        }
        if (out->after[k] > out->peak_after) {
            out->peak_after = out->after[k];
            out->peak_after_at = k;
        }
    }
    return *out;
}
