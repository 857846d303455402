// higher_slices.c: map and scan in the tracer: a nested graph over the slices of the first
// dimension. Backward of map is a map over the slices and their gradients; a scan that is
// differentiated is run step by step, in place, and so is an associative one.
#include "core/aot/nested.h"

#include <string.h>

#include "core/aot/torchlevel.h"

enum { MAX_UNROLLED = 1024 }; // steps of a scan that is run in place

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

// ---- map

static bool emit_map(Run *r, const BodyUse *use, Value xs, Value more, Value *out) {
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
        results.at[i] = nested_stacked(t, results.at[i].tensor, xs.at[0].tensor->size[0]);
    Value args[3] = {val_node(nested_add(t, made, prefix, nested_number(t->graph, prefix))), xs,
                     more};
    *out = nested_call(r, "map_impl", args, COUNT(args), results);
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
    if (!emit_map(h->run, &use, xs, more, &result))
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
    if (!emit_map(r, &use, xs, more, out))
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
        results.at[i] = nested_stacked(t, results.at[i].tensor, length);
    init.kind = xs.kind = VAL_list;
    more.kind = VAL_tuple;
    Value args[4] = {val_node(nested_add(t, made, prefix, nested_number(t->graph, prefix))), init,
                     xs, more};
    *out = nested_call(r, "scan", args, COUNT(args), results);
    return true;
}

// ---- associative_scan

typedef struct Joined {
    Run *r;
    const Graph *body;
    Value more;
    int leaves; // tensors of one side
} Joined;

static Value join(Joined *j, Value a, Value b) {
    Trace *t = &j->r->t;
    Value in = values_joined(t, VAL_tuple, a.at, a.n, b.at, b.n), result;
    in = values_joined(t, VAL_tuple, in.at, in.n, j->more.at, j->more.n);
    if (t->failed || !run_body(j->r, j->body, in.at, in.n, &result))
        return a;
    if (result.kind == VAL_tensor)
        result = values_joined(t, VAL_tuple, &result, 1, NULL, 0);
    if ((result.kind != VAL_tuple && result.kind != VAL_list) || result.n != j->leaves) {
        trace_fail(t,
                   "RuntimeError: a step of associative_scan returns as many tensors as it gets "
                   "of one side: %d",
                   j->leaves);
        return a;
    }
    return result;
}

// PyTorch's order: pairs, their scan, then what lies between (generic_associative_scan).
static void join_all(Joined *j, Value *x, int64_t n) {
    if (n < 2)
        return;
    Value *half = ARENA_ARRAY(j->r->t.arena, n / 2 + 1, Value);
    for (int64_t i = 0; i < n / 2; i++)
        half[i] = join(j, x[2 * i], x[2 * i + 1]);
    join_all(j, half, n / 2);
    for (int64_t i = 1; i < n; i++)
        x[i] = i % 2 ? half[i / 2] : join(j, half[i / 2 - 1], x[i]);
}

// (graph, xs, more); in 2.5 the dimension stands in place of `more`.
bool higher_associative(Run *r, const Higher *h, Value *out) {
    Trace *t = &r->t;
    Value xs, more = {.kind = VAL_tuple};
    int64_t n, dim = 0;
    Node **inputs;
    bool old = h->n_args > 2 && h->args[2].kind == VAL_int;
    if (h->n_args < 2 || !higher_items(h, 1, &xs) || !can_slice(xs) ||
        (h->n_args > 2 && !old && !higher_items(h, 2, &more)) ||
        (old && (!val_as_int(&h->args[2], &dim) || dim)))
        return false;
    const TensorMeta *first = meta_of(xs.at[0]), *given = NULL;
    if (!expr_int(first->size[0], &n) || n < 1 || n > MAX_UNROLLED)
        return false;
    if (graph_placeholders(h->graphs[0], &inputs, t->arena) > 0)
        given = node_tensor(inputs[0]);
    bool keeps = given && given->ndim == first->ndim; // slices of one element, with the dimension
    Value *x = ARENA_ARRAY(t->arena, n + 1, Value);
    for (int64_t i = 0; i < n; i++) {
        x[i] = val_list(t->arena, VAL_tuple, xs.n);
        for (int k = 0; k < xs.n; k++)
            x[i].at[k] = keeps ? CALL(t, aten_narrow_default, xs.at[k], INT(0), INT(i), INT(1))
                               : CALL(t, aten_select_int, xs.at[k], INT(0), INT(i));
    }
    Joined j = {.r = r, .body = h->graphs[0], .more = more, .leaves = xs.n};
    join_all(&j, x, n);
    *out = val_list(t->arena, VAL_tuple, xs.n);
    for (int k = 0; k < xs.n && !t->failed; k++) {
        Value parts = val_list(t->arena, VAL_list, (int)n);
        for (int64_t i = 0; i < n; i++)
            parts.at[i] = x[i].at[k];
        out->at[k] = keeps ? CALL(t, aten_cat_default, parts, INT(0))
                           : CALL(t, aten_stack_default, parts, INT(0));
    }
    return true;
}
