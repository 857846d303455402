// interpret_nested.c: an operation of the loop IR that runs nested graphs (cond, loops), by the
// interpreter: each run of a graph is a run of its own schedule.
#include <string.h>

#include "core/exec/internal.h"
#include "core/inductor/interp.h"

enum { OPERANDS_MAX = 128 };

typedef struct Nested {
    InterpRun *outer;
    const IrOp *op;
    Arena *arena; // of the results
} Nested;

typedef struct Values {
    RtValue at[OPERANDS_MAX]; // each a reference of its own
    int n;
} Values;

static RtValue kept(const RtValue *v) {
    RtValue out = *v;
    if (v->kind == RT_tensor)
        out.tensor = tensor_keep(&v->tensor);
    return out;
}

static void drop(Values *v) {
    for (int i = 0; i < v->n; i++)
        rt_drop(&v->at[i]);
    v->n = 0;
}

static void add(Values *to, const RtValue *from, int n) {
    for (int i = 0; i < n; i++)
        to->at[to->n++] = kept(&from[i]);
}

static bool fail(const Nested *c, const char *what) {
    diag_tool(c->outer->diag, "%s: %s", c->op->name, what);
    return false;
}

// The k-th graph of the operation; out is to be dropped.
static bool run_graph(const Nested *c, int k, const Values *in, Values *out) {
    const Schedule *s = c->outer->schedule;
    int at = 0;
    out->n = 0;
    while (at < s->nested.n && s->nested.at[at].op != c->op)
        at++;
    at += k;
    if (at >= s->nested.n || s->nested.at[at].op != c->op)
        return fail(c, "it has too few graphs");
    const MemoryPlan *plan = c->outer->plan;
    Arena arena = {0};
    InterpRun run = {.arena = &arena,
                     .diag = c->outer->diag,
                     .schedule = s->nested.at[at].schedule,
                     .plan = plan && at < plan->nested.n ? plan->nested.at[at] : NULL,
                     .inputs = in->at,
                     .n_inputs = in->n,
                     .call = c->outer->call,
                     .ctx = c->outer->ctx,
                     .cancel = c->outer->cancel};
    bool ok = interp_run(&run) && run.n_outputs <= OPERANDS_MAX;
    if (ok) {
        out->n = run.n_outputs;
        memcpy(out->at, run.outputs, (size_t)run.n_outputs * sizeof *run.outputs);
        run.n_outputs = 0;
    }
    interp_drop(&run);
    arena_free(&arena);
    return ok;
}

static bool truth(const RtValue *v) {
    return v->kind == RT_tensor
               ? tensor_numel(&v->tensor) == 1 && tensor_get_f64(&v->tensor, 0) != 0
           : v->kind == RT_bool ? v->b
                                : v->kind == RT_int && v->i != 0;
}

static Tensor step_of(const Tensor *t, int64_t i) {
    Tensor s = tensor_keep(t);
    s.ndim--;
    s.offset += i * t->stride[0];
    memmove(s.size, t->size + 1, (size_t)s.ndim * sizeof *s.size);
    memmove(s.stride, t->stride + 1, (size_t)s.ndim * sizeof *s.stride);
    return s;
}

// Step i of a result into its stack, which the first step makes.
static bool put_step(const Nested *c, RtValue *stack, const RtValue *v, int64_t i, int64_t steps) {
    if (v->kind != RT_tensor || v->tensor.ndim == TENSOR_DIMS)
        return fail(c, "a step's result is no tensor");
    if (!i) {
        int64_t size[TENSOR_DIMS] = {steps};
        memcpy(size + 1, v->tensor.size, (size_t)v->tensor.ndim * sizeof *size);
        if (!tensor_new(&stack->tensor, v->tensor.dtype, v->tensor.ndim + 1, size, c->outer->diag))
            return false;
        stack->kind = RT_tensor;
    }
    Tensor at = step_of(&stack->tensor, i);
    tensor_copy(&at, &v->tensor);
    tensor_drop(&at);
    return true;
}

typedef struct Steps {
    VEC(RtValue) all; // the results of the first step, of the second, …
} Steps;

static void keep_step(const Nested *c, Steps *s, const Values *carry) {
    for (int i = 0; i < carry->n; i++)
        vec_push(c->arena, &s->all, kept(&carry->at[i]));
}

// The results of all steps behind one another; of a loop without one what it began with.
static bool stack_steps(const Nested *c, Steps *s, const Values *carry, Values *out) {
    bool ok = true;
    if (!s->all.n)
        keep_step(c, s, carry);
    int64_t steps = carry->n ? s->all.n / carry->n : 0;
    out->n = 0;
    for (int k = 0; k < carry->n && ok; k++) {
        out->at[out->n++].kind = RT_none;
        for (int64_t i = 0; i < steps && ok; i++)
            ok = put_step(c, &out->at[k], &s->all.at[i * carry->n + k], i, steps);
    }
    return ok;
}

static bool while_loop(const Nested *c, const RtValue *args, Steps *steps, Values *out) {
    Values carry = {.n = 0};
    bool ok = true;
    add(&carry, args, c->op->groups[0]);
    while (ok) {
        Values in = {.n = 0}, next;
        add(&in, carry.at, carry.n);
        add(&in, args + carry.n, c->op->args.n - carry.n);
        ok = run_graph(c, 0, &in, &next);
        bool go = ok && next.n == 1 && truth(&next.at[0]);
        drop(&next);
        if (go && (ok = run_graph(c, 1, &in, &next))) {
            drop(&carry);
            carry = next;
            if (steps)
                keep_step(c, steps, &carry);
        }
        drop(&in);
        if (!go)
            break;
    }
    if (!steps || !ok) {
        *out = carry;
    } else {
        ok = stack_steps(c, steps, &carry, out);
        drop(&carry);
    }
    for (int i = 0; steps && i < steps->all.n; i++)
        rt_drop(&steps->all.at[i]);
    return ok;
}

// map is a scan that carries nothing.
static bool scan(const Nested *c, const RtValue *args, Values *out) {
    int n = c->op->groups[0], n_xs = c->op->groups[1], n_ys = 0;
    Values carry = {.n = 0}, stacks = {.n = 0};
    const RtValue *xs = args + n;
    if (!n_xs || xs[0].kind != RT_tensor || !xs[0].tensor.ndim)
        return fail(c, "a loop over slices needs tensors with slices");
    bool ok = true;
    add(&carry, args, n);
    for (int64_t i = 0; ok && i < xs[0].tensor.size[0]; i++) {
        Values in = {.n = 0}, next;
        add(&in, carry.at, n);
        for (int k = 0; k < n_xs; k++)
            in.at[in.n++] = (RtValue){.kind = RT_tensor, .tensor = step_of(&xs[k].tensor, i)};
        add(&in, xs + n_xs, c->op->args.n - n - n_xs);
        ok = run_graph(c, 0, &in, &next);
        n_ys = ok ? next.n - n : 0;
        for (int k = 0; ok && k < n_ys; k++)
            ok = put_step(c, &stacks.at[k], &next.at[n + k], i, xs[0].tensor.size[0]);
        stacks.n = n_ys;
        drop(&carry);
        add(&carry, next.at, ok ? n : 0);
        drop(&next);
        drop(&in);
    }
    *out = carry;
    add(out, stacks.at, stacks.n);
    drop(&stacks);
    return ok;
}

bool interpret_nested(InterpRun *outer, const IrOp *op, const RtValue *args, Arena *a,
                      RtValue **results, int *n) {
    Nested c = {outer, op, a};
    Values in = {.n = 0}, out = {.n = 0};
    bool ok = false;
    int grouped = op->groups[0] + op->groups[1] + op->groups[2];
    bool condition = op->higher != HIGHER_cond || op->groups[0] == 1;
    if (op->args.n > OPERANDS_MAX || grouped != op->args.n || !condition)
        return fail(&c, "its operands are too many, or not those that are told");
    switch (op->higher) {
    case HIGHER_cond:
        add(&in, args + 1, op->args.n - 1);
        ok = run_graph(&c, truth(&args[0]) ? 0 : 1, &in, &out);
        break;
    case HIGHER_while_loop:
        ok = while_loop(&c, args, NULL, &out);
        break;
    case HIGHER_while_loop_stack_output:
        ok = while_loop(&c, args, &(Steps){0}, &out);
        break;
    case HIGHER_scan:
    case HIGHER_map_impl:
        ok = scan(&c, args, &out);
        break;
    default:
        add(&in, args, op->args.n);
        ok = run_graph(&c, 0, &in, &out);
        break;
    }
    drop(&in);
    *n = out.n;
    *results = ARENA_ARRAY(a, out.n + 1, RtValue);
    memcpy(*results, out.at, (size_t)out.n * sizeof **results);
    return ok;
}
