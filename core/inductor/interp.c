// interp.c: runs a schedule: nodes in order, and for each computed node its loops. The members of a
// fused node take turns inside common loops, as fusion promises that they may.
#include <string.h>

#include "core/inductor/interp_impl.h"

// --- nests

typedef struct Nest {
    InterpRun *run;
    BodyCode **member;
    int n;
    int n_iter, n_red;   // loops of the member with most of them
    const int64_t *size; // (n_iter + n_red)
    int64_t *var;        // (n_iter + n_red) where the loops stand
} Nest;

static bool is_cancelled(const InterpRun *run) {
    if (!run->cancel || !*run->cancel)
        return false;
    diag_tool(run->diag, "cancelled");
    return true;
}

// Counts var[from, to) up once; false when it is through.
static bool next_point(const Nest *n, int from, int to) {
    for (int i = to - 1; i >= from; i--) {
        if (++n->var[i] < n->size[i])
            return true;
        n->var[i] = 0;
    }
    return false;
}

static bool is_empty(const Nest *n, int from, int to) {
    for (int i = from; i < to; i++)
        if (n->size[i] <= 0)
            return true;
    return false;
}

// Members [a, b) over loops [from, to), the last in strips.
static bool run_loops(const Nest *n, int a, int b, int from, int to) {
    if (is_empty(n, from, to))
        return true;
    int last = to - 1, strip = b - a > 1 ? FUSED_STRIP : STRIP;
    int64_t flat = 0;
    for (int i = from; i < to; i++)
        n->var[i] = 0;
    if (from == to) {
        for (int m = a; m < b; m++)
            if (!body_run(n->run, n->member[m], n->var, -1, 1, 0))
                return false;
        return true;
    }
    do {
        if (is_cancelled(n->run))
            return false;
        for (n->var[last] = 0; n->var[last] < n->size[last]; n->var[last] += strip) {
            int64_t left = n->size[last] - n->var[last];
            int lanes = left < strip ? (int)left : strip;
            for (int m = a; m < b; m++)
                if (!body_run(n->run, n->member[m], n->var, last, lanes, flat))
                    return false;
            flat += lanes;
        }
        n->var[last] = 0;
    } while (next_point(n, from, last));
    return true;
}

static bool is_full(const Nest *n, int m) {
    return n->member[m]->body->n_vars == n->n_iter + n->n_red;
}

// One point of the iteration loops: members over the reduction loops together, then what follows
// them.
static bool run_point(const Nest *n) {
    for (int m = 0; m < n->n;) {
        int end = m + 1;
        if (!is_full(n, m)) {
            if (!body_run(n->run, n->member[m++], n->var, -1, 1, 0))
                return false;
            continue;
        }
        while (end < n->n && is_full(n, end))
            end++;
        for (int k = m; k < end; k++)
            body_begin(n->member[k]);
        if (!run_loops(n, m, end, n->n_iter, n->n_iter + n->n_red))
            return false;
        for (int i = n->n_iter; i < n->n_iter + n->n_red; i++)
            n->var[i] = 0;
        for (; m < end; m++)
            if (n->member[m]->reduces && !body_finish(n->run, n->member[m], n->var))
                return false;
    }
    return true;
}

static bool run_reduction(const Nest *n, int first) {
    if (is_empty(n, first, n->n_iter))
        return true;
    for (int i = first; i < n->n_iter; i++)
        n->var[i] = 0;
    do {
        if (is_cancelled(n->run) || !run_point(n))
            return false;
    } while (next_point(n, first, n->n_iter));
    return true;
}

static bool nest_init(Nest *out, InterpRun *run, SchedNode *const *nodes, int n) {
    *out = (Nest){.run = run, .n = n, .member = ARENA_ARRAY(run->arena, n + 1, BodyCode *)};
    int best = 0;
    for (int i = 0; i < n; i++) {
        if (!(out->member[i] = body_compile(run, nodes[i])))
            return false;
        const LoopBody *b = nodes[i]->body, *most = nodes[best]->body;
        int red = b->n_vars - b->n_iter, most_red = most->n_vars - most->n_iter;
        if (red > most_red || (red == most_red && b->n_vars > most->n_vars))
            best = i;
    }
    const LoopBody *shape = nodes[best]->body;
    out->n_iter = shape->n_iter;
    out->n_red = shape->n_vars - shape->n_iter;
    out->size = out->member[best]->size;
    out->var = ARENA_ARRAY(run->arena, shape->n_vars + 1, int64_t);
    return true;
}

// Loops before `first` stand where the caller has put them in n->var.
static bool nest_run(const Nest *n, int first) {
    bool reduces = n->n_red > 0;
    for (int i = 0; i < n->n; i++)
        reduces |= n->member[i]->reduces;
    return reduces ? run_reduction(n, first) : run_loops(n, 0, n->n, first, n->n_iter);
}

static SchedNode *const *singles(const SchedNode *node, int *n) {
    *n = node->snodes.n ? node->snodes.n : 1;
    return node->snodes.n ? node->snodes.at : &node->self;
}

static bool run_together(InterpRun *run, SchedNode *const *nodes, int n) {
    Nest nest;
    return nest_init(&nest, run, nodes, n) && nest_run(&nest, 0);
}

// Nests that share their outer loops: for each point of these all of them in turn.
static bool run_outer(InterpRun *run, const SchedNode *node) {
    Nest *nests = ARENA_ARRAY(run->arena, node->outer.n + 1, Nest);
    for (int i = 0; i < node->outer.n; i++) {
        int n;
        SchedNode *const *members = singles(node->outer.at[i], &n);
        if (!nest_init(&nests[i], run, members, n))
            return false;
    }
    Nest *lead = &nests[0];
    if (run->plan && map_find(&run->plan->split, node->name)) {
        for (int i = 0; i < node->outer.n; i++)
            if (!nest_run(&nests[i], 0))
                return false;
        return true;
    }
    if (node->outer.n == 0 || is_empty(lead, 0, node->outer_depth))
        return true;
    do {
        for (int i = 0; i < node->outer.n; i++) {
            memcpy(nests[i].var, lead->var, sizeof *lead->var * (size_t)node->outer_depth);
            if (!nest_run(&nests[i], node->outer_depth))
                return false;
        }
    } while (next_point(lead, 0, node->outer_depth));
    return true;
}

static bool run_node(InterpRun *run, const SchedNode *node) {
    int n;
    SchedNode *const *members = singles(node, &n);
    switch (node->kind) {
    case SCHED_nop:
        return true;
    case SCHED_extern:
        if (node->op->cls == IR_multi_output)
            return true;
        if (run->call)
            return run->call(run->ctx, run, node->op);
        diag_fail(run->diag, "%s calls %s, which nobody does here", node->name,
                  node->op->kernel ? node->op->kernel : "something");
        return false;
    case SCHED_node:
    case SCHED_fused:
        return run_together(run, members, n);
    case SCHED_outer_loop:
        return run_outer(run, node);
    case SCHED_foreach:
    case SCHED_grouped:
        break;
    }
    for (int i = 0; i < n; i++)
        if (!run_together(run, &members[i], 1))
            return false;
    return true;
}

// --- results

static bool take_output(InterpRun *run, const IrArg *a, RtValue *out) {
    if (!a->buf) {
        const Expr *e;
        if (!val_as_expr(run->schedule->module->sym, &a->value, &e))
            return true;
        out->kind = RT_int;
        return interp_size(run, e, &out->i);
    }
    Tensor seen;
    if (!interp_seen(run, a, &seen))
        return false;
    bool ok =
        tensor_new_strided(&out->tensor, seen.dtype, seen.ndim, seen.size, seen.stride, run->diag);
    if (ok) {
        out->kind = RT_tensor;
        tensor_copy(&out->tensor, &seen);
    }
    tensor_drop(&seen);
    return ok;
}

static bool run_nodes(InterpRun *run, int from, int n) {
    for (int i = from; i < from + n; i++) {
        const SchedNode *node = run->schedule->nodes.at[i];
        if (run->before_node)
            run->before_node(run->ctx, node);
        if (is_cancelled(run) || !run_node(run, node))
            return false;
        if (run->on_node)
            run->on_node(run->ctx, node);
    }
    return true;
}

static bool run_plan(InterpRun *run) {
    for (int i = 0; i < run->plan->lines.n; i++) {
        const PlanLine *l = &run->plan->lines.at[i];
        if (l->kind != PLAN_call && !memory_line(run, l))
            return false;
        if (l->kind != PLAN_call)
            continue;
        if (!run_nodes(run, l->node, l->n_nodes))
            return false;
        memory_after_call(run);
    }
    return true;
}

bool interp_run(InterpRun *run) {
    const Schedule *s = run->schedule;
    run->n_outputs = s->module->outputs.n;
    run->outputs = ARENA_ARRAY(run->arena, run->n_outputs + 1, RtValue);
    if (!memory_begin(run) || !(run->plan ? run_plan(run) : run_nodes(run, 0, s->nodes.n)))
        return false;
    for (int i = 0; i < run->n_outputs; i++)
        if (!take_output(run, &s->module->outputs.at[i], &run->outputs[i]))
            return false;
    return true;
}

void interp_drop(InterpRun *run) {
    for (MapEntry *e = map_first(&run->buffers); e; e = map_next(&run->buffers, e))
        tensor_drop(e->ptr);
    for (int i = 0; i < run->n_outputs; i++)
        if (run->outputs[i].kind == RT_tensor)
            tensor_drop(&run->outputs[i].tensor);
    run->buffers = (Map){0};
    run->n_outputs = 0;
}
