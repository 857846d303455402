// higher.c: higher-order ops in the interpreter: a call runs the graphs that it gets, each as a run
// of its own. Loops keep no more than one step's state and what they return.
#include "core/eager/higher.h"

#include <string.h>

enum { MAX_NESTING = 40 };

typedef struct Values {
    RtValue *at; // each owns what it holds
    int n;
} Values;

static void drop(Values *v) {
    for (int i = 0; i < v->n; i++)
        rt_drop(&v->at[i]);
    v->n = 0;
}

// args stay the caller's.
static bool run_graph(const Call *c, int graph, const Values *args, Values *out) {
    const Graph *g = c->graphs[graph];
    Node **inputs;
    int want = graph_placeholders(g, &inputs, c->x->arena);
    *out = (Values){0};
    if (want != args->n)
        return eager_fail(c->x,
                          "RuntimeError: the nested graph %s takes %d inputs, but %d are given",
                          g->class_name, want, args->n);
    if (c->x->c->nesting == MAX_NESTING)
        return eager_fail(c->x, "graphs nested deeper than %d", MAX_NESTING);
    EagerCtx ctx = *c->x->c;
    ctx.arena = c->x->arena;
    ctx.nesting++;
    EagerRun run = {.graph = g,
                    .inputs = args->at,
                    .n_inputs = args->n,
                    .in_f64 = c->outer->in_f64,
                    .cancel = c->outer->cancel};
    bool ok = eager_run(&ctx, &run);
    *out = (Values){run.outputs, ok ? run.n_outputs : 0};
    return ok;
}

static bool give(const Call *c, Values *v, Value *out) {
    *out = val_list(c->x->arena, VAL_tuple, v->n);
    for (int i = 0; i < v->n; i++)
        out->at[i] = value_from_rt(c->x, c->x->arena, &v->at[i]);
    drop(v);
    return eager_ok(c->x);
}

static Values take(const Call *c, const Value *v, int n, int room) {
    Values out = {ARENA_ARRAY(c->x->arena, n + room + 1, RtValue), n};
    for (int i = 0; i < n; i++)
        value_to_rt(c->x, c->x->arena, &v[i], &out.at[i]);
    return out;
}

// Appends references.
static void add(Values *to, const Values *from) {
    for (int i = 0; i < from->n; i++) {
        to->at[to->n] = from->at[i];
        if (from->at[i].kind == RT_tensor)
            to->at[to->n].tensor = tensor_keep(&from->at[i].tensor);
        to->n++;
    }
}

static bool truth(const Call *c, const RtValue *v, bool *out) {
    if (v->kind == RT_tensor && tensor_numel(&v->tensor) == 1)
        *out = tensor_get_f64(&v->tensor, 0) != 0;
    else if (v->kind == RT_bool)
        *out = v->b;
    else if (v->kind == RT_int)
        *out = v->i != 0;
    else
        return eager_fail(c->x,
                          "RuntimeError: a condition must be a bool or a tensor of one element");
    return true;
}

// ---- one graph

bool higher_once(const Call *c, int graph, const Value *args, int n, Value *out) {
    Values in = take(c, args, n, 0), result;
    bool ok = run_graph(c, graph, &in, &result) && give(c, &result, out);
    drop(&in);
    return ok;
}

static bool is_list(const Value *v) {
    return v->kind == VAL_list || v->kind == VAL_tuple;
}

static bool cond(const Call *c, const Value *args, Value *out) {
    RtValue pred;
    bool yes = false;
    value_to_rt(c->x, c->x->arena, &args[0], &pred);
    bool ok = truth(c, &pred, &yes);
    rt_drop(&pred);
    return ok && higher_once(c, yes ? 0 : 1, args[3].at, args[3].n, out);
}

// ---- loops

// A window on step i of each.
static bool add_slices(const Call *c, Values *to, const Value *xs, int64_t i) {
    for (int k = 0; k < xs->n; k++) {
        const Tensor *x = tensor_at(&xs->at[k]);
        if (!x || !x->ndim || i >= x->size[0])
            return eager_fail(c->x,
                              "RuntimeError: what is looped over must be tensors of one length");
        Tensor s = tensor_keep(x);
        s.ndim--;
        s.offset += i * x->stride[0];
        memmove(s.size, x->size + 1, (size_t)s.ndim * sizeof *s.size);
        memmove(s.stride, x->stride + 1, (size_t)s.ndim * sizeof *s.stride);
        to->at[to->n++] = (RtValue){.kind = RT_tensor, .tensor = s};
    }
    return true;
}

// Step i of each result into its stack, which the first step makes.
static bool put_step(const Call *c, const RtValue *y, int n, Tensor **stacks, int64_t i,
                     int64_t steps) {
    for (int k = 0; k < n; k++) {
        const Tensor *v = &y[k].tensor;
        if (y[k].kind != RT_tensor || v->ndim == TENSOR_DIMS)
            return eager_fail(c->x, "RuntimeError: the results of a step must be tensors");
        if (!i) {
            int64_t size[TENSOR_DIMS] = {steps};
            memcpy(size + 1, v->size, (size_t)v->ndim * sizeof *size);
            stacks[k] = eager_new(c->x, v->dtype, v->ndim + 1, size);
            if (!stacks[k])
                return false;
        }
        Tensor at = *stacks[k];
        at.ndim--;
        at.offset += i * at.stride[0];
        memmove(at.size, at.size + 1, (size_t)at.ndim * sizeof *at.size);
        memmove(at.stride, at.stride + 1, (size_t)at.ndim * sizeof *at.stride);
        if (at.dtype != v->dtype || at.ndim != v->ndim ||
            memcmp(at.size, v->size, (size_t)at.ndim * sizeof *at.size) != 0)
            return eager_fail(c->x,
                              "RuntimeError: the results of a step have another shape than before");
        if (!copy_into(c->x, &at, v))
            return false;
    }
    return true;
}

// Of while_loop_stack_output: the results of every step so far. They live as long as the call.
typedef struct Steps {
    VEC(Values) all;
} Steps;

static void keep_step(const Call *c, Steps *s, const Values *carry) {
    Values v = {ARENA_ARRAY(c->x->arena, carry->n + 1, RtValue), 0};
    add(&v, carry);
    vec_push(c->x->arena, &s->all, v);
}

// All steps behind one another; of a loop without one what it began with.
static bool stack_steps(const Call *c, Steps *s, const Values *carry, Value *out) {
    int n = carry->n;
    Tensor **stacks = ARENA_ARRAY(c->x->arena, n + 1, Tensor *);
    bool ok = true;
    if (!s->all.n)
        keep_step(c, s, carry);
    for (int i = 0; i < s->all.n; i++) {
        ok = ok && put_step(c, s->all.at[i].at, n, stacks, i, s->all.n);
        drop(&s->all.at[i]);
    }
    *out = val_list(c->x->arena, VAL_tuple, ok ? n : 0);
    for (int i = 0; i < out->n; i++)
        out->at[i] = tensor_value(c->x, stacks[i]);
    return ok;
}

// Is there another step?
static bool test(const Call *c, const Values *in, bool *go) {
    Values result;
    bool ok = run_graph(c, 0, in, &result);
    if (ok)
        ok = result.n == 1
                 ? truth(c, &result.at[0], go)
                 : eager_fail(
                       c->x, "RuntimeError: the condition of while_loop returns %d values, not one",
                       result.n);
    drop(&result);
    return ok;
}

// The carry becomes what the body makes of it.
static bool step(const Call *c, const Values *in, Values *carry) {
    Values result;
    int n = carry->n;
    bool ok = run_graph(c, 1, in, &result);
    for (int i = 0; i < result.n && ok; i++)
        if (result.at[i].kind == RT_list || result.at[i].kind == RT_other)
            ok = eager_fail(c->x, "RuntimeError: while_loop carries tensors and numbers only");
    if (ok && result.n != n) {
        ok = eager_fail(c->x,
                        "RuntimeError: the body of while_loop returns %d values, but %d are "
                        "carried",
                        result.n, n);
    } else if (ok) {
        drop(carry);
        carry->n = n;
        memcpy(carry->at, result.at, (size_t)n * sizeof *carry->at);
        result.n = 0;
    }
    drop(&result);
    return ok;
}

static bool while_loop(const Call *c, const Value *args, Steps *steps, Value *out) {
    const Value *more = &args[3];
    Values carry = take(c, args[2].at, args[2].n, 0);
    int n = carry.n;
    bool ok = true, go = true;
    while (ok && go) {
        ArenaMark mark = arena_mark(c->x->arena);
        Values in = take(c, more->at, 0, n + more->n), extra = take(c, more->at, more->n, 0);
        add(&in, &carry);
        add(&in, &extra);
        ok = test(c, &in, &go) && (!go || step(c, &in, &carry));
        drop(&in);
        drop(&extra);
        if (ok && go && steps)
            keep_step(c, steps, &carry);
        else if (ok)
            arena_rewind(c->x->arena, mark);
    }
    ok = ok && (steps ? stack_steps(c, steps, &carry, out) : give(c, &carry, out));
    drop(&carry);
    for (int i = 0; steps && i < steps->all.n; i++)
        drop(&steps->all.at[i]);
    return ok;
}

// map is a scan that carries nothing.
static bool scan(const Call *c, const Value *init, const Value *xs, const Value *more, Value *out) {
    const Tensor *first = xs->n ? tensor_at(&xs->at[0]) : NULL;
    if (!first || !first->ndim || !first->size[0])
        return eager_fail(c->x, "RuntimeError: a loop over slices needs tensors with slices");
    Values carry = take(c, init ? init->at : NULL, init ? init->n : 0, 0);
    int n = carry.n, n_ys = -1;
    Tensor **stacks = NULL;
    bool ok = true;
    for (int64_t i = 0; i < first->size[0] && ok; i++) {
        Values in = {ARENA_ARRAY(c->x->arena, n + xs->n + more->n + 1, RtValue), 0}, result = {0};
        Values extra = take(c, more->at, more->n, 0);
        add(&in, &carry);
        ok = add_slices(c, &in, xs, i);
        add(&in, &extra);
        ok = ok && run_graph(c, 0, &in, &result);
        if (ok && (result.n < n || (n_ys >= 0 && result.n != n + n_ys)))
            ok = eager_fail(c->x, "RuntimeError: a step returns %d values, the carry has %d",
                            result.n, n);
        if (ok && n_ys < 0) {
            n_ys = result.n - n;
            stacks = ARENA_ARRAY(c->x->arena, n_ys + 1, Tensor *);
        }
        ok = ok && put_step(c, result.at + n, n_ys, stacks, i, first->size[0]);
        if (ok) {
            drop(&carry);
            add(&carry, &(Values){result.at, n});
        }
        drop(&result);
        drop(&in);
        drop(&extra);
    }
    Value carried;
    ok = ok && give(c, &carry, &carried);
    drop(&carry);
    if (!ok)
        return false;
    *out = val_list(c->x->arena, VAL_tuple, n + n_ys);
    for (int i = 0; i < n + n_ys; i++)
        out->at[i] = i < n ? carried.at[i] : tensor_value(c->x, stacks[i - n]);
    return true;
}

static int count_leaves(const Value *v) {
    int n = 0;
    for (int i = 0; is_list(v) && i < v->n; i++)
        n += count_leaves(&v->at[i]);
    return is_list(v) ? n : 1;
}

// Of a torch.autograd.Function: the output of its forward graph, which returns what it saves, too;
// a run's results are flat.
static bool function(const Call *c, const Value *args, int n, Value *out) {
    Node **inputs;
    Value *given = ARENA_ARRAY(c->x->arena, n + 1, Value), both; // zeroed: `ctx` is None
    int ctx = graph_placeholders(c->graphs[0], &inputs, c->x->arena) == n + 1;
    for (int i = 0; i < n; i++)
        given[ctx + i] = args[i];
    const Value *told = &graph_output_node(c->graphs[0])->args[0];
    if (!is_list(told) || told->n != 2 || !is_list(&told->at[1]))
        return eager_fail(c->x, "RuntimeError: the forward graph of autograd_function_apply must "
                                "return its output and a list of what it saves");
    if (!higher_once(c, 0, given, n + ctx, &both))
        return false;
    int outputs = count_leaves(&told->at[0]);
    if (both.n < outputs)
        return eager_fail(c->x, "RuntimeError: autograd_function_apply returns %d values", both.n);
    *out = is_list(&told->at[0]) ? val_list(c->x->arena, VAL_tuple, outputs) : both.at[0];
    for (int i = 0; is_list(&told->at[0]) && i < outputs; i++)
        out->at[i] = both.at[i];
    return true;
}

// The graphs of a call, and lists where it has some; -1 and an error, or the first argument behind
// the graphs.
static int take_graphs(Call *c, HigherId id, const Node *n, const Value *args) {
    Eager *x = c->x;
    unsigned graphs = higher_info(id)->graphs;
    int behind = 0;
    for (int i = 0, k = 0; graphs >> i; i++) {
        bool graph = graphs >> i & 1;
        if (i >= n->n_args || graph != (args[i].kind == VAL_graph))
            return eager_fail(x, "RuntimeError: argument %d of %s must be %s", i, n->target,
                              graph ? "a graph" : "no graph") -
                   1;
        if (graph)
            c->graphs[k++] = args[i].graph;
        behind = i + 1;
    }
    static const int lists[] = {[HIGHER_cond] = 1,
                                [HIGHER_while_loop] = 2,
                                [HIGHER_while_loop_stack_output] = 2,
                                [HIGHER_scan] = 3,
                                [HIGHER_map_impl] = 2,
                                [HIGHER_strict_mode] = 1,
                                [HIGHER_hints_wrapper] = 1,
                                [HIGHER_run_const_graph] = 1,
                                [HIGHER_associative_scan] = 1,
                                [HIGHER_COUNT] = 0};
    int first = id == HIGHER_cond ? 3 : behind;
    for (int i = 0; i < lists[id]; i++)
        if (first + i >= n->n_args || !is_list(&args[first + i]))
            return eager_fail(x, "RuntimeError: argument %d of %s must be a list", first + i,
                              n->target) -
                   1;
    return behind;
}

bool eager_higher(Eager *x, const EagerRun *outer, const Node *n, const Value *args, Value *out) {
    HigherId id = node_higher(n);
    Call c = {.x = x, .outer = outer};
    int behind = take_graphs(&c, id, n, args);
    if (behind < 0)
        return false;
    switch (id) {
    case HIGHER_cond:
        return cond(&c, args, out);
    case HIGHER_while_loop:
        return while_loop(&c, args, NULL, out);
    case HIGHER_while_loop_stack_output:
        return while_loop(&c, args, &(Steps){0}, out);
    case HIGHER_scan:
        return scan(&c, &args[1], &args[2], &args[3], out);
    case HIGHER_map_impl:
        return scan(&c, NULL, &args[1], &args[2], out);
    case HIGHER_invoke_subgraph:
        behind++; // its identifier
        break;
    case HIGHER_autograd_function_apply:
        return function(&c, args + behind, n->n_args - behind, out);
    case HIGHER_strict_mode:
    case HIGHER_hints_wrapper:
    case HIGHER_run_const_graph:
        return higher_once(&c, 0, args[1].at, args[1].n, out);
    case HIGHER_associative_scan:
        return eager_associative(&c, args, n->n_args, out);
    case HIGHER_flex_attention:
        return eager_attention(&c, args, n->n_args, out);
    case HIGHER_tag_activation_checkpoint:
    case HIGHER_wrap_activation_checkpoint:
    case HIGHER_dynamo_bypassing_wrapper:
    case HIGHER_COUNT:
    case HIGHER_wrap:
    case HIGHER_wrap_with_set_grad_enabled:
    case HIGHER_wrap_with_autocast:
    case HIGHER_none:
        break;
    }
    Autocast was = x->c->autocast;
    if (id == HIGHER_wrap_with_autocast)
        autocast_enter(&x->c->autocast, args, 4);
    if (behind > n->n_args)
        return eager_fail(x, "RuntimeError: %s has too few arguments", n->target);
    bool ok = higher_once(&c, 0, args + behind, n->n_args - behind, out);
    x->c->autocast = was;
    return ok;
}
