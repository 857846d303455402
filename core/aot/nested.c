// nested.c: a graph within the graph being traced (reenter_make_fx of
// torch/_higher_order_ops/utils.py): a tracer of its own for nodes, names and sizes, which shares
// the decisions and the errors; and the call that the graph belongs to.
#include "core/aot/nested.h"

#include <stdio.h>
#include <string.h>

Value values_joined(Trace *t, ValueKind kind, const Value *a, int n_a, const Value *b, int n_b) {
    Value all = val_list(t->arena, kind, n_a + n_b);
    for (int i = 0; i < n_a + n_b; i++)
        all.at[i] = i < n_a ? a[i] : b[i - n_a];
    return all;
}

bool values_are_tensors(Value list) {
    for (int i = 0; i < list.n; i++)
        if (list.at[i].kind != VAL_tensor)
            return false;
    return true;
}

static void add_leaves(Run *r, const Value *v, Value *out) {
    if (v->kind != VAL_list && v->kind != VAL_tuple) {
        run_append(r, out, *v);
        return;
    }
    for (int i = 0; i < v->n; i++)
        add_leaves(r, &v->at[i], out);
}

// ---- the nested tracer

static void begin(Run *r, Value operands, Value *inner) {
    Trace *t = &r->t;
    t->home = trace_home(t);
    t->graph = graph_new(t->arena, t->sym);
    t->origins = origins_new(t->arena); // links of nested nodes end here
    t->proxies = t->floats = t->symbols = (Map){.arena = t->arena};
    t->tape = NULL;
    t->region = NULL;
    *inner = values_joined(t, VAL_tuple, operands.at, operands.n, NULL, 0);
    for (int i = 0; i < operands.n; i++) {
        Value *v = &inner->at[i];
        const char *name = arena_printf(t->arena, "arg%d_1", i);
        Node *p = graph_placeholder(t->graph, name, name);
        p->flags |= t->flags;
        if (v->kind == VAL_sym) {
            p->val = *v;
            map_put_id(&t->proxies, expr_id(v->sym), p);
        } else if (v->kind == VAL_tensor) {
            Value low = val_tensor(&trace_tensor(t, v->tensor, p)->meta);
            p->val = val_tensor(meta_copy(t->arena, v->tensor));
            *v = functional_wrap(t, &low);
        }
    }
    for (int i = 0; i < operands.n; i++)
        if (inner->at[i].kind == VAL_tensor)
            run_learn_symbols(t, inner->at[i].tensor, t->graph->by_id.at[i]);
}

static bool is_clean(Value inner) {
    for (int i = 0; i < inner.n; i++)
        if (inner.at[i].kind == VAL_tensor && (functional_is_mutated(traced(&inner.at[i])) ||
                                               functional_is_reshaped(traced(&inner.at[i]))))
            return false;
    return true;
}

static void finish(Run *r, Value results) {
    Trace *t = &r->t;
    Value nodes = val_list(t->arena, results.kind, results.n);
    for (int i = 0; i < results.n; i++)
        nodes.at[i] = run_node_of(r, &results.at[i]);
    if (t->failed)
        return;
    graph_output(t->graph, nodes);
    graph_dce(t->graph);
}

// ---- backward

// Of the tangents, those that belong to results with a gradient, in order.
static void backward(Run *r, const Graph *body, Value primals, Value tangents, Value *grads) {
    Trace *t = &r->t;
    Value result, flat = val_list(t->arena, VAL_tuple, 0);
    tape_new(t);
    Traced **leaves = ARENA_ARRAY(t->arena, primals.n + 1, Traced *);
    int n_leaves = 0;
    for (int i = 0; i < primals.n; i++)
        if (primals.at[i].kind == VAL_tensor && dtype_is_float(primals.at[i].tensor->dtype)) {
            leaves[n_leaves] = traced(&primals.at[i]);
            tape_make_leaf(t, leaves[n_leaves++]);
        }
    if (!run_body(r, body, primals.at, primals.n, &result))
        return;
    add_leaves(r, &result, &flat);
    tape_enable(t, true);
    Value *outputs = ARENA_ARRAY(t->arena, flat.n + 1, Value);
    Value *seeds = ARENA_ARRAY(t->arena, flat.n + 1, Value);
    Value *got = ARENA_ARRAY(t->arena, primals.n + 1, Value);
    int n = 0, k = 0;
    for (int i = 0; i < flat.n && k < tangents.n; i++) {
        if (tape_requires_grad(t, flat.at[i])) {
            outputs[n] = flat.at[i];
            seeds[n++] = tangents.at[k];
        }
        k++;
    }
    tape_backward(t, outputs, seeds, n, leaves, n_leaves, got);
    tape_enable(t, false);
    n_leaves = 0;
    for (int i = 0; i < primals.n; i++)
        if (primals.at[i].kind == VAL_tensor)
            run_append(r, grads,
                       dtype_is_float(primals.at[i].tensor->dtype) ? got[n_leaves++] : NONE);
}

// An unused gradient is zeros, and none shares memory with an operand or another one.
static void settle_gradients(Run *r, Value inner, Value primals, Value *grads) {
    Trace *t = &r->t;
    for (int i = 0, k = 0; i < primals.n && !t->failed; i++) {
        if (primals.at[i].kind != VAL_tensor)
            continue;
        if (grads->at[k].kind != VAL_tensor)
            grads->at[k] = CALL(t, aten_zeros_like_default, primals.at[i]);
        k++;
    }
    for (int k = 0; k < grads->n && !t->failed; k++) {
        Traced *g = traced(&grads->at[k]);
        bool shared = false;
        for (int i = 0; i < inner.n; i++)
            shared = shared ||
                     (inner.at[i].kind == VAL_tensor && functional_shares(g, traced(&inner.at[i])));
        for (int i = 0; i < k; i++)
            shared = shared || functional_shares(g, traced(&grads->at[i]));
        if (shared)
            grads->at[k] = CALL(t, aten_clone_default, grads->at[k]);
    }
}

Value nested_backward(Run *r, const Graph *body, Value inner, Value primals, Value tangents) {
    Trace *t = &r->t;
    Value grads = val_list(t->arena, VAL_list, 0);
    t->cover = t->cover ? t->cover : t->stack;
    backward(r, body, primals, tangents, &grads);
    if (!t->failed)
        settle_gradients(r, inner, primals, &grads);
    return grads;
}

static Value run_use(Run *r, const BodyUse *use, Value inner) {
    Trace *t = &r->t;
    if (use->make)
        return use->make(r, use, inner);
    if (!use->backward) {
        Value result, flat = val_list(t->arena, VAL_tuple, 0);
        if (run_body(r, use->body, inner.at, inner.n, &result))
            add_leaves(r, &result, &flat);
        return flat;
    }
    int after = use->tangents_at + use->n_tangents;
    Value primals =
        values_joined(t, VAL_tuple, inner.at, use->tangents_at, inner.at + after, inner.n - after);
    Value tangents =
        values_joined(t, VAL_tuple, inner.at + use->tangents_at, use->n_tangents, NULL, 0);
    return nested_backward(r, use->body, inner, primals, tangents);
}

Graph *nested_trace(Run *r, const BodyUse *use, Value operands) {
    Trace *t = &r->t, saved = *t;
    Value inner;
    begin(r, operands, &inner);
    Value results = run_use(r, use, inner);
    bool ok = !t->failed && is_clean(inner);
    if (ok)
        finish(r, results);
    Graph *made = t->graph;
    bool failed = t->failed;
    int regions = t->regions;
    *t = saved;
    t->failed = failed;
    t->regions = regions;
    return ok && !failed ? made : NULL;
}

// ---- the call

int nested_number(const Graph *g, const char *prefix) {
    for (int i = 0;; i++) {
        char name[64];
        bool taken = false;
        snprintf(name, sizeof name, "%.40s%d", prefix, i);
        for (int k = 0; k < g->children.n; k++)
            taken = taken || !strcmp(g->children.at[k].name, name);
        if (!taken)
            return i;
    }
}

Node *nested_add(Trace *t, Graph *child, const char *prefix, int number) {
    const char *name = arena_printf(t->arena, "%s%d", prefix, number);
    child->class_name = name;
    vec_push(t->graph->arena, &t->graph->children, (GraphChild){name, child});
    Node *n = graph_get_attr(t->graph, name, NULL);
    trace_made(t, n);
    return n;
}

// A child under a name of its own, if that is free.
Node *run_add_child(Trace *t, Graph *child, const char *name) {
    for (int k = 0; k < t->graph->children.n; k++)
        if (!strcmp(t->graph->children.at[k].name, name)) {
            name = arena_printf(t->arena, "%s_", name);
            return nested_add(t, child, name, nested_number(t->graph, name));
        }
    vec_push(t->graph->arena, &t->graph->children, (GraphChild){name, child});
    Node *n = graph_get_attr(t->graph, name, NULL);
    trace_made(t, n);
    return n;
}

Value nested_results(Trace *t, const Graph *nested) {
    const Value *list = &graph_output_node(nested)->args[0];
    Value out = val_list(t->arena, VAL_tuple, list->n);
    for (int i = 0; i < list->n; i++)
        out.at[i] = list->at[i].kind == VAL_node ? list->at[i].node->val : list->at[i];
    return out;
}

Value nested_call(Run *r, const char *name, const Value *args, int n_args, Value results) {
    Trace *t = &r->t;
    Value *given = ARENA_ARRAY(t->arena, n_args + 1, Value);
    for (int i = 0; i < n_args; i++)
        given[i] = run_node_of(r, &args[i]);
    if (t->failed)
        return NONE;
    const char *target = arena_printf(t->arena, "torch.ops.higher_order.%s", name);
    Node *call = graph_node(t->graph, FX_call_function, target, name, given, n_args, NULL, 0);
    trace_made(t, call);
    call->val = results;
    Value low = trace_items(t, call, &results);
    return functional_wrap(t, &low);
}

Value nested_stacked(Trace *t, const TensorMeta *m, const Expr *steps) {
    const Expr **size = ARENA_ARRAY(t->arena, m->ndim + 1, const Expr *);
    size[0] = steps;
    for (int i = 0; i < m->ndim; i++)
        size[i + 1] = m->size[i];
    return val_tensor(meta_contiguous(t->arena, t->sym, m->dtype, m->ndim + 1, size, m->device));
}

GradFn *nested_record(Run *r, const Higher *h, Value inputs,
                      bool (*rule)(Trace *, const GradFn *, const Value *, Value *)) {
    if (!r->t.tape)
        return NULL;
    HigherGrad *g = ARENA_NEW(r->t.arena, HigherGrad);
    *g = (HigherGrad){rule, h->n, inputs.at, inputs.n, r};
    return tape_call(&r->t, g);
}

void nested_gradients(const GradFn *fn, Value grads, Value *out) {
    for (int i = 0; i < fn->n_edges && i < grads.n; i++)
        out[i] = grads.at[i];
}

bool higher_items(const Higher *h, int arg, Value *list) {
    const Value *v = arg < h->n_args ? &h->args[arg] : NULL;
    if (!v || (v->kind != VAL_tuple && v->kind != VAL_list))
        return false;
    *list = *v;
    for (int i = 0; i < v->n; i++)
        if (v->at[i].kind != VAL_tensor && v->at[i].kind != VAL_sym && v->at[i].kind != VAL_int)
            return false;
    return true;
}
