// higher_slices.c: map and scan in the tracer: a nested graph over the slices of the first
// dimension. Backward of map is a map over the slices and their gradients; a scan that is
// differentiated is run step by step, in place.
#include "core/aot/nested.h"

#include <string.h>

#include "core/aot/torchlevel.h"

enum { MAX_UNROLLED = 1024 }; // steps of a scan that is differentiated

// A tensor without its first dimension: a window on it, or dense.
static Value slice_like(Trace *t, const TensorMeta *m, bool dense) {
    TensorMeta *s = meta_copy(t->arena, m);
    s->ndim--;
    s->size++;
    s->stride++;
    if (dense)
        s = meta_contiguous(t->arena, t->sym, m->dtype, s->ndim, s->size, m->device);
    return val_tensor(&trace_tensor(t, s, NULL)->meta);
}

static Value slices(Trace *t, Value xs, bool dense) {
    Value out = val_list(t->arena, VAL_tuple, xs.n);
    for (int i = 0; i < xs.n; i++)
        out.at[i] = slice_like(t, meta_of(xs.at[i]), dense);
    return out;
}

static bool can_slice(Value xs) {
    if (!xs.n || !values_are_tensors(xs))
        return false;
    for (int i = 0; i < xs.n; i++)
        if (!xs.at[i].tensor->ndim || xs.at[i].tensor->size[0] != xs.at[0].tensor->size[0])
            return false;
    return true;
}

static Value stacked_like(Trace *t, const TensorMeta *m, const Expr *length) {
    const Expr **size = ARENA_ARRAY(t->arena, m->ndim + 1, const Expr *);
    size[0] = length;
    for (int i = 0; i < m->ndim; i++)
        size[i + 1] = m->size[i];
    return val_tensor(meta_contiguous(t->arena, t->sym, m->dtype, m->ndim + 1, size, m->device));
}

// ---- map

static bool emit_map(Run *r, const Node *n, const BodyUse *use, Value xs, Value more, Value *out) {
    static const char prefix[] = "body_graph_";
    Trace *t = &r->t;
    Value one = slices(t, xs, false);
    Graph *made = nested_trace(r, use, values_joined(t, VAL_tuple, one.at, one.n, more.at, more.n));
    if (!made)
        return false;
    Value results = nested_results(t, made);
    if (!values_are_tensors(results))
        return false;
    for (int i = 0; i < results.n; i++)
        results.at[i] = stacked_like(t, results.at[i].tensor, xs.at[0].tensor->size[0]);
    Value args[3] = {val_node(nested_add(t, made, prefix, nested_number(t->graph, prefix))), xs,
                     more};
    *out = nested_call(r, n, "map_impl", args, COUNT(args), results);
    return !t->failed;
}

// The gradient of an argument that every step gets comes out once a step; the engine sums it.
static bool map_backward(Trace *t, const GradFn *fn, const Value *grads, Value *out) {
    const HigherGrad *h = fn->higher;
    const Value *given = &h->call->args[1];
    const Graph *body;
    if (node_graphs(h->call, &body, 1) != 1)
        return false;
    int n = given->n;
    Value xs = values_joined(t, VAL_list, h->inputs, n, grads, fn->n_results), result;
    Value more = values_joined(t, VAL_list, h->inputs + n, h->n_inputs - n, NULL, 0);
    BodyUse use = {.body = body, .backward = true, .tangents_at = n, .n_tangents = fn->n_results};
    if (!emit_map(h->run, h->call, &use, xs, more, &result))
        return false;
    nested_gradients(fn, result, out);
    return true;
}

bool higher_map(Run *r, const Higher *h, Value *out) {
    Trace *t = &r->t;
    Value xs, more;
    if (h->n_args != 3 || !higher_items(h, 1, &xs) || !higher_items(h, 2, &more) || !can_slice(xs))
        return false;
    xs.kind = more.kind = VAL_list;
    BodyUse use = {.body = h->graphs[0]};
    Value inputs = values_joined(t, VAL_tuple, xs.at, xs.n, more.at, more.n);
    GradFn *fn = nested_record(r, h, inputs, map_backward);
    if (!emit_map(r, h->n, &use, xs, more, out))
        return false;
    if (fn)
        tape_called(t, fn, out);
    return true;
}

// ---- scan

static bool any_needs(const Trace *t, Value list) {
    for (int i = 0; i < list.n; i++)
        if (tape_requires_grad(t, list.at[i]))
            return true;
    return false;
}

// carry and outputs of all steps, one after another.
static void unrolled(Run *r, const Graph *body, Value init, Value xs, Value more, int64_t steps,
                     Value *out) {
    Trace *t = &r->t;
    Value carry = init, all = {0};
    Value *ys = NULL;
    int n_ys = 0;
    for (int64_t i = 0; i < steps && !t->failed; i++) {
        Value in = values_joined(t, VAL_tuple, carry.at, carry.n, NULL, 0), result;
        for (int k = 0; k < xs.n; k++)
            run_append(r, &in, CALL(t, aten_select_int, xs.at[k], INT(0), INT(i)));
        in = values_joined(t, VAL_tuple, in.at, in.n, more.at, more.n);
        if (t->failed || !run_body(r, body, in.at, in.n, &result))
            return;
        if ((result.kind != VAL_tuple && result.kind != VAL_list) || result.n < init.n ||
            (i && result.n != init.n + n_ys)) {
            trace_fail(t,
                       "RuntimeError: a step of scan returns the carry of %d and then its results",
                       init.n);
            return;
        }
        if (!i) {
            n_ys = result.n - init.n;
            ys = ARENA_ARRAY(t->arena, n_ys + 1, Value);
            for (int k = 0; k < n_ys; k++)
                ys[k] = val_list(t->arena, VAL_list, 0);
        }
        carry = values_joined(t, VAL_tuple, result.at, init.n, NULL, 0);
        for (int k = 0; k < n_ys; k++)
            run_append(r, &ys[k], result.at[init.n + k]);
    }
    all = values_joined(t, VAL_tuple, carry.at, carry.n, NULL, 0);
    for (int k = 0; k < n_ys && !t->failed; k++)
        run_append(r, &all, CALL(t, aten_stack_default, ys[k], INT(0)));
    *out = all;
}

bool higher_scan(Run *r, const Higher *h, Value *out) {
    static const char prefix[] = "scan_combine_graph_";
    Trace *t = &r->t;
    Value init, xs, more;
    int64_t steps;
    if (h->n_args != 4 || !higher_items(h, 1, &init) || !higher_items(h, 2, &xs) ||
        !higher_items(h, 3, &more) || !can_slice(xs) || !values_are_tensors(init))
        return false;
    const Expr *length = xs.at[0].tensor->size[0];
    if (any_needs(t, init) || any_needs(t, xs) || any_needs(t, more)) {
        if (!expr_int(length, &steps) || steps < 1 || steps > MAX_UNROLLED)
            return false;
        unrolled(r, h->graphs[0], init, xs, more, steps, out);
        return true;
    }
    Value one = slices(t, xs, true);
    Value all = values_joined(t, VAL_tuple, init.at, init.n, one.at, one.n);
    all = values_joined(t, VAL_tuple, all.at, all.n, more.at, more.n);
    BodyUse use = {.body = h->graphs[0]};
    Graph *made = nested_trace(r, &use, all);
    if (!made)
        return false;
    Value results = nested_results(t, made);
    if (results.n < init.n || !values_are_tensors(results))
        return false;
    for (int i = init.n; i < results.n; i++)
        results.at[i] = stacked_like(t, results.at[i].tensor, length);
    init.kind = xs.kind = VAL_list;
    more.kind = VAL_tuple;
    Value args[4] = {val_node(nested_add(t, made, prefix, nested_number(t->graph, prefix))), init,
                     xs, more};
    *out = nested_call(r, h->n, "scan", args, COUNT(args), results);
    return true;
}
