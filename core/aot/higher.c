// higher.c: higher-order ops in the tracer (torch/_higher_order_ops). Some only say how their graph
// is to be run (a checkpointed region, gradients off): it is run in place. The others stay calls,
// and each of their graphs is traced into a graph of its own. Backward of a condition is a
// condition again, whose graphs compute forward once more and then its gradients (create_bw_fn of
// torch/_higher_order_ops/utils.py).
#include "core/aot/nested.h"

#include <string.h>

int run_count_regions(const Graph *g) {
    int n = 0;
    GRAPH_EACH (g, m) {
        const Graph *bodies[4];
        n += node_higher(m) == HIGHER_tag_activation_checkpoint ||
             node_higher(m) == HIGHER_wrap_activation_checkpoint;
        for (int i = node_higher(m) ? node_graphs(m, bodies, COUNT(bodies)) - 1 : -1; i >= 0; i--)
            n += run_count_regions(bodies[i]);
    }
    return n;
}

// ---- run in place

// The operands stand behind the graph.
static bool run_operands(Run *r, const Higher *h, int graph, Value *out) {
    return run_body(r, h->graphs[0], h->args + graph + 1, h->n_args - graph - 1, out);
}

static bool checkpoint(Run *r, const Higher *h, Value *out) {
    Trace *t = &r->t;
    const Region *outer = t->region;
    Region *region = ARENA_NEW(t->arena, Region);
    region->id = ++t->regions;
    region->note = arena_printf(t->arena, " ac_graph_id: %d - PREFER_RECOMPUTE", region->id);
    // A policy of the user's own decides op by op, outside the graph.
    bool policy = false;
    for (int i = 0; i < h->n->n_kwargs; i++)
        policy = policy || !strcmp(h->n->kwargs[i].name, "context_fn");
    t->region = policy ? outer : region;
    run_operands(r, h, 0, out);
    t->region = outer;
    return true;
}

static bool wrap(Run *r, const Higher *h, Value *out) {
    run_operands(r, h, 0, out);
    return true;
}

// Behind what says how.
static bool wrap_named(Run *r, const Higher *h, Value *out) {
    run_operands(r, h, 1, out);
    return true;
}

static bool wrap_tuple(Run *r, const Higher *h, Value *out) {
    Value operands;
    if (h->n_args < 2 || (h->args[1].kind != VAL_tuple && h->args[1].kind != VAL_list))
        return false;
    operands = h->args[1];
    run_body(r, h->graphs[0], operands.at, operands.n, out);
    return true;
}

static bool grad_mode(Run *r, const Higher *h, Value *out) {
    bool was = tape_enable(&r->t, bool_arg(&h->args[0]));
    run_operands(r, h, 1, out);
    tape_enable(&r->t, was);
    return true;
}

static bool under_autocast(Run *r, const Higher *h, Value *out) {
    Trace *t = &r->t;
    Autocast was = t->autocast;
    if (!autocast_enter(&t->autocast, h->args, 4))
        return false;
    run_operands(r, h, 4, out);
    t->autocast = was;
    return true;
}

// ---- a condition

static bool same_tensor(const TensorMeta *a, const TensorMeta *b) {
    if (!a || !b || a->dtype != b->dtype || a->ndim != b->ndim)
        return false;
    for (int d = 0; d < a->ndim; d++)
        if (a->size[d] != b->size[d])
            return false;
    return true;
}

static bool same_results(Trace *t, const Graph *a, const Graph *b) {
    Value x = nested_results(t, a), y = nested_results(t, b);
    if (x.n != y.n) {
        trace_fail(t,
                   "RuntimeError: both branches of cond must return as many results, but true "
                   "returns %d and false %d",
                   x.n, y.n);
        return false;
    }
    for (int i = 0; i < x.n; i++)
        if (x.at[i].kind != VAL_tensor || y.at[i].kind != VAL_tensor ||
            !same_tensor(x.at[i].tensor, y.at[i].tensor))
            return false;
    return true;
}

static bool emit_cond(Run *r, Value pred, const Graph *const *bodies, BodyUse use, Value operands,
                      Value *out) {
    static const char *const names[2] = {"true_graph_", "false_graph_"};
    Trace *t = &r->t;
    Graph *made[2];
    for (int i = 0; i < 2; i++) {
        use.body = bodies[i];
        made[i] = nested_trace(r, &use, operands);
        if (!made[i])
            return false;
    }
    if (!same_results(t, made[0], made[1]))
        return false;
    int number = nested_number(t->graph, names[0]);
    Value args[4] = {[0] = pred, [3] = operands};
    for (int i = 0; i < 2; i++)
        args[1 + i] = val_node(nested_add(t, made[i], names[i], number));
    *out = nested_call(r, "cond", args, COUNT(args), nested_results(t, made[1]));
    return !t->failed;
}

// Its inputs are the operands and the condition.
static bool cond_backward(Trace *t, const GradFn *fn, const Value *grads, Value *out) {
    const HigherGrad *h = fn->higher;
    const Graph *bodies[2];
    int n = h->n_inputs - 1;
    if (node_graphs(h->call, bodies, COUNT(bodies)) != COUNT(bodies))
        return false;
    BodyUse use = {.backward = true, .tangents_at = n, .n_tangents = fn->n_results};
    Value operands = values_joined(t, VAL_tuple, h->inputs, n, grads, fn->n_results), result;
    if (!emit_cond(h->run, h->inputs[n], bodies, use, operands, &result))
        return false;
    nested_gradients(fn, result, out);
    return true;
}

static bool cond(Run *r, const Higher *h, Value *out) {
    Trace *t = &r->t;
    Value operands, pred = h->args[0];
    if (h->n_args != 4 || !higher_items(h, 3, &operands))
        return false;
    if (pred.kind == VAL_bool || pred.kind == VAL_int) { // known while it was captured
        run_body(r, h->graphs[bool_arg(&pred) ? 0 : 1], operands.at, operands.n, out);
        return true;
    }
    if (pred.kind != VAL_tensor && pred.kind != VAL_sym)
        return false;
    Value inputs = values_joined(t, VAL_tuple, operands.at, operands.n, &pred, 1);
    GradFn *fn = nested_record(r, h, inputs, cond_backward);
    operands.kind = VAL_tuple;
    if (!emit_cond(r, pred, h->graphs, (BodyUse){0}, operands, out))
        return false;
    if (fn)
        tape_called(t, fn, out);
    return true;
}

// ---- a graph that occurs several times

// Where gradients are wanted it is run in place.
static bool subgraph(Run *r, const Higher *h, Value *out) {
    Trace *t = &r->t;
    if (h->n_args < 2)
        return false;
    Value operands = values_joined(t, VAL_tuple, h->args + 2, h->n_args - 2, NULL, 0);
    if (t->tape) {
        run_body(r, h->graphs[0], operands.at, operands.n, out);
        return true;
    }
    for (int i = 0; i < operands.n; i++)
        if (operands.at[i].kind != VAL_tensor && operands.at[i].kind != VAL_sym)
            return false;
    BodyUse use = {.body = h->graphs[0]};
    Graph *made = nested_trace(r, &use, operands);
    if (!made)
        return false;
    static const char prefix[] = "repeated_subgraph";
    Value *args = ARENA_ARRAY(t->arena, h->n_args + 1, Value);
    memcpy(args, h->args, (size_t)h->n_args * sizeof *args);
    args[0] = val_node(nested_add(t, made, prefix, nested_number(t->graph, prefix)));
    *out = nested_call(r, "invoke_subgraph", args, h->n_args, nested_results(t, made));
    return true;
}

static HigherRule *const rules[] = {
    [HIGHER_cond] = cond,
    [HIGHER_while_loop] = higher_loop,
    [HIGHER_while_loop_stack_output] = higher_loop,
    [HIGHER_scan] = higher_scan,
    [HIGHER_map_impl] = higher_map,
    [HIGHER_invoke_subgraph] = subgraph,
    [HIGHER_tag_activation_checkpoint] = checkpoint,
    [HIGHER_wrap] = wrap,
    [HIGHER_wrap_with_set_grad_enabled] = grad_mode,
    [HIGHER_wrap_with_autocast] = under_autocast,
    [HIGHER_wrap_activation_checkpoint] = checkpoint,
    [HIGHER_dynamo_bypassing_wrapper] = wrap_named,
    [HIGHER_autograd_function_apply] = higher_function,
    [HIGHER_strict_mode] = wrap_tuple,
    [HIGHER_hints_wrapper] = wrap_tuple,
    [HIGHER_run_const_graph] = wrap_tuple,
    [HIGHER_associative_scan] = higher_associative,
    [HIGHER_flex_attention] = higher_attention,
};

bool run_higher(Run *r, const Node *n, const Value *args, const Value *kwargs, Value *out) {
    HigherId id = node_higher(n);
    unsigned graphs = higher_info(id)->graphs;
    Higher h = {.n = n, .args = args, .n_args = n->n_args};
    (void)kwargs;
    for (int i = 0, k = 0; graphs >> i; i++) {
        bool graph = graphs >> i & 1;
        if (i >= n->n_args || graph != (args[i].kind == VAL_graph))
            return false;
        if (graph)
            h.graphs[k++] = args[i].graph;
    }
    return rules[id](r, &h, out);
}
