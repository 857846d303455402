// higher_loop.c: while_loop in the tracer. Where a gradient is wanted forward keeps what every step
// yields (while_loop_stack_output), and backward is a loop over the steps from the last one: it
// carries its number, the gradients of what forward carried and, summed up, those of what every
// step gets (WhileLoopAutogradOp of torch/_higher_order_ops/while_loop.py).
#include "core/aot/nested.h"

// Of a loop that is differentiated.
typedef struct LoopGrad {
    HigherGrad grad; // first: the tape's; its inputs: carried, then more
    const Graph *body;
    int n_carried;
    Value stacks; // upper: the results of every step
} LoopGrad;

static bool is_float(const Value *v) {
    return v->kind == VAL_tensor && dtype_is_float(v->tensor->dtype);
}

static Value floats(Run *r, const Value *v, int n) {
    Value out = val_list(r->t.arena, VAL_tuple, 0);
    for (int i = 0; i < n; i++)
        if (is_float(&v[i]))
            run_append(r, &out, v[i]);
    return out;
}

// The call with a condition and a body that are traced over the same operands.
static Value emit_loop(Run *r, const char *name, const BodyUse uses[2], Value carried, Value more) {
    static const char *const names[2] = {"while_loop_cond_graph_", "while_loop_body_graph_"};
    Trace *t = &r->t;
    Value all = values_joined(t, VAL_tuple, carried.at, carried.n, more.at, more.n);
    Graph *made[2];
    for (int i = 0; i < 2; i++) {
        made[i] = nested_trace(r, &uses[i], all);
        if (!made[i])
            return NONE;
    }
    Value results = nested_results(t, made[1]);
    if (results.n != carried.n || !values_are_tensors(results))
        return NONE;
    // A loop that runs no step yields what it began with, so there is one of each at least.
    if (str_ends(name, "stack_output")) {
        const Expr *steps = sym_create_unbacked(t->sym);
        sym_set_range(t->sym, steps, 1, INT64_MAX);
        for (int i = 0; i < results.n; i++)
            results.at[i] = nested_stacked(t, results.at[i].tensor, steps);
    }
    int number = nested_number(t->graph, names[0]);
    carried.kind = more.kind = VAL_tuple;
    Value args[4] = {[2] = carried, [3] = more};
    for (int i = 0; i < 2; i++)
        args[i] = val_node(nested_add(t, made[i], names[i], number));
    return nested_call(r, name, args, COUNT(args), results);
}

// ---- backward

// Operands: step, gradients of what was carried, sums of those of the rest, what every step was
// carried, the rest.
typedef struct Operands {
    Value step, grads, sums, stacks, more;
} Operands;

static Operands operands_of(const LoopGrad *g, Run *r, Value inner) {
    Trace *t = &r->t;
    int n_carried = g->n_carried, n_more = g->grad.n_inputs - n_carried;
    int n_grads = floats(r, g->grad.inputs, n_carried).n,
        n_sums = floats(r, g->grad.inputs + n_carried, n_more).n;
    const Value *v = inner.at + 1;
    return (Operands){
        .step = inner.at[0],
        .grads = values_joined(t, VAL_tuple, v, n_grads, NULL, 0),
        .sums = values_joined(t, VAL_tuple, v + n_grads, n_sums, NULL, 0),
        .stacks = values_joined(t, VAL_tuple, v + n_grads + n_sums, n_carried, NULL, 0),
        .more = values_joined(t, VAL_tuple, v + n_grads + n_sums + n_carried, n_more, NULL, 0),
    };
}

static Value steps_left(Run *r, const BodyUse *use, Value inner) {
    Trace *t = &r->t;
    Operands o = operands_of(use->more, r, inner);
    Value out = val_list(t->arena, VAL_tuple, 1);
    out.at[0] = CALL(t, aten_lt_Scalar, o.step, val_sym(meta_of(o.stacks.at[0])->size[0]));
    return out;
}

static Value step_back(Run *r, const BodyUse *use, Value inner) {
    Trace *t = &r->t;
    const LoopGrad *g = use->more;
    Operands o = operands_of(g, r, inner);
    Value from_end = CALL(t, aten_rsub_Scalar, o.step, val_sym(meta_of(o.stacks.at[0])->size[0])),
          at = CALL(t, aten_sub_Tensor, from_end, INT(1));
    Value primals = val_list(t->arena, VAL_tuple, 0), index = val_list(t->arena, VAL_list, 1);
    index.at[0] = at;
    for (int i = 0; i < o.stacks.n && !t->failed; i++)
        run_append(r, &primals, CALL(t, aten_index_Tensor, o.stacks.at[i], index));
    if (t->failed)
        return NONE;
    primals = values_joined(t, VAL_tuple, primals.at, primals.n, o.more.at, o.more.n);
    // A tangent of every result; those that are no floats have none.
    Value tangents = val_list(t->arena, VAL_tuple, 0);
    for (int i = 0, k = 0; i < g->n_carried; i++)
        run_append(r, &tangents, is_float(&primals.at[i]) ? o.grads.at[k++] : NONE);
    Value grads = nested_backward(r, g->body, inner, primals, tangents),
          out = val_list(t->arena, VAL_tuple, 0);
    if (t->failed)
        return NONE;
    run_append(r, &out, CALL(t, aten_add_Tensor, o.step, INT(1)));
    for (int i = 0, k = 0, s = 0; i < primals.n && !t->failed; i++) {
        if (primals.at[i].kind != VAL_tensor)
            continue;
        Value grad = grads.at[k++];
        if (is_float(&primals.at[i]))
            run_append(r, &out,
                       i < g->n_carried ? grad : CALL(t, aten_add_Tensor, grad, o.sums.at[s++]));
    }
    return out;
}

// What every step was carried: what the loop began with, and the results of all steps but the last.
// As in PyTorch there is one step at least, even if forward ran none.
static Value carried_by_step(Run *r, const LoopGrad *g) {
    Trace *t = &r->t;
    Value out = val_list(t->arena, VAL_tuple, g->n_carried);
    for (int i = 0; i < g->n_carried && !t->failed; i++) {
        Value parts = val_list(t->arena, VAL_list, 2);
        parts.at[0] = CALL(t, aten_unsqueeze_default, g->grad.inputs[i], INT(0));
        parts.at[1] = CALL(t, aten_slice_Tensor, g->stacks.at[i], INT(0), INT(0), INT(-1));
        out.at[i] = CALL(t, aten_cat_default, parts, INT(0));
    }
    return out;
}

// A gradient an edge: of the inputs that are tensors.
static void deliver(const LoopGrad *g, const GradFn *fn, Value results, Value *out) {
    for (int i = 0, edge = 0, k = 1; i < g->grad.n_inputs && edge < fn->n_edges; i++) {
        bool wanted = is_float(&g->grad.inputs[i]);
        if (wanted)
            out[edge] = results.at[k++];
        edge += g->grad.inputs[i].kind == VAL_tensor;
    }
}

static bool loop_backward(Trace *t, const GradFn *fn, const Value *grads, Value *out) {
    const LoopGrad *g = (const LoopGrad *)fn->higher;
    Run *r = g->grad.run;
    int n = g->n_carried, n_more = g->grad.n_inputs - n;
    const Value *more = g->grad.inputs + n;
    Value none = val_list(t->arena, VAL_list, 0),
          zero = CALL(t, aten_zeros_default, none, DTY(DT_i64)),
          carried = values_joined(t, VAL_tuple, &zero, 1, NULL, 0);
    for (int i = 0; i < n; i++)
        if (is_float(&g->grad.inputs[i]))
            run_append(r, &carried, grads[i]);
    for (int i = 0; i < n_more && !t->failed; i++)
        if (is_float(&more[i]))
            run_append(r, &carried, CALL(t, aten_zeros_like_default, more[i]));
    Value stacks = carried_by_step(r, g);
    if (t->failed)
        return true;
    BodyUse uses[2] = {{.make = steps_left, .more = g}, {.make = step_back, .more = g}};
    Value results = emit_loop(r, "while_loop", uses, carried,
                              values_joined(t, VAL_tuple, stacks.at, stacks.n, more, n_more));
    if (results.kind == VAL_none)
        return false;
    deliver(g, fn, results, out);
    return true;
}

// ---- forward

bool higher_loop(Run *r, const Higher *h, Value *out) {
    Trace *t = &r->t;
    Value carried, more;
    if (h->n_args != 4 || !higher_items(h, 2, &carried) || !higher_items(h, 3, &more) ||
        !values_are_tensors(carried))
        return false;
    Value all = values_joined(t, VAL_tuple, carried.at, carried.n, more.at, more.n);
    LoopGrad *g = ARENA_NEW(t->arena, LoopGrad);
    *g = (LoopGrad){.grad = {loop_backward, h->n, all.at, all.n, r},
                    .body = h->graphs[1],
                    .n_carried = carried.n};
    bool stacked = node_higher(h->n) == HIGHER_while_loop_stack_output;
    GradFn *fn = t->tape && !stacked ? tape_call(t, &g->grad) : NULL;
    BodyUse uses[2] = {{.body = h->graphs[0]}, {.body = h->graphs[1]}};
    const char *name = fn || stacked ? "while_loop_stack_output" : "while_loop";
    *out = emit_loop(r, name, uses, carried, more);
    if (out->kind == VAL_none || !fn)
        return out->kind != VAL_none;
    g->stacks = functional_synced(t, out);
    for (int i = 0; i < out->n && !t->failed; i++)
        out->at[i] = CALL(t, aten_select_int, out->at[i], INT(0), INT(-1));
    if (!t->failed)
        tape_called(t, fn, out);
    return true;
}
