// higher_function.c: a torch.autograd.Function that Dynamo captured: autograd_function_apply(fwd,
// bwd, *args). Forward returns its output and what it saves; it is run in place, with gradients
// off, and backward runs the other graph in place: on the gradients, then what was saved.
#include "core/aot/nested.h"

#include <string.h>

typedef struct OwnGrad {
    HigherGrad grad; // first: the tape's
    const Graph *backward;
    Value saved;
} OwnGrad;

static bool is_list(const Value *v) {
    return v->kind == VAL_list || v->kind == VAL_tuple;
}

// Up to 2.6 both graphs take a `ctx` that is None.
static Value with_ctx(Trace *t, const Graph *g, Value args) {
    Node **inputs;
    Value none = val_none();
    return graph_placeholders(g, &inputs, t->arena) == args.n + 1
               ? values_joined(t, VAL_tuple, &none, 1, args.at, args.n)
               : args;
}

static bool run_quietly(Run *r, const Graph *g, Value args, Value *out) {
    bool was = tape_enable(&r->t, false);
    args = with_ctx(&r->t, g, args);
    bool ok = run_body(r, g, args.at, args.n, out);
    tape_enable(&r->t, was);
    return ok;
}

// Backward returns a gradient an argument, or one a tensor among them.
static bool own_backward(Trace *t, const GradFn *fn, const Value *grads, Value *out) {
    const HigherGrad *h = fn->higher;
    const OwnGrad *own = (const OwnGrad *)h;
    Value low = values_joined(t, VAL_tuple, grads, fn->n_results, own->saved.at, own->saved.n);
    Value result;
    low = functional_synced(t, &low);
    if (!run_quietly(h->run, own->backward, functional_wrap(t, &low), &result))
        return false;
    Value one = values_joined(t, VAL_tuple, &result, 1, NULL, 0);
    result = is_list(&result) ? result : one;
    int edge = 0;
    for (int i = 0; i < h->n_inputs && edge < fn->n_edges; i++) {
        bool tensor = h->inputs[i].kind == VAL_tensor;
        int at = result.n == h->n_inputs ? i : edge;
        if (tensor && at < result.n)
            out[edge] = result.at[at];
        edge += tensor;
    }
    return !t->failed;
}

bool higher_function(Run *r, const Higher *h, Value *out) {
    Trace *t = &r->t;
    Value args = values_joined(t, VAL_tuple, h->args + 2, h->n_args - 2, NULL, 0), result;
    GradFn *fn = NULL;
    OwnGrad *own = ARENA_NEW(t->arena, OwnGrad);
    *own = (OwnGrad){.grad = {own_backward, h->n, args.at, args.n, r}, .backward = h->graphs[1]};
    if (t->tape)
        fn = tape_call(t, &own->grad);
    if (!run_quietly(r, h->graphs[0], args, &result))
        return true; // it failed, and said so
    if (!is_list(&result) || result.n != 2 || !is_list(&result.at[1])) {
        trace_fail(t, "RuntimeError: the forward graph of autograd_function_apply must return its "
                      "output and a list of what it saves");
        return true;
    }
    own->saved = result.at[1];
    *out = result.at[0];
    Value list = is_list(out) ? *out : values_joined(t, VAL_tuple, out, 1, NULL, 0);
    if (fn)
        tape_called(t, fn, &list);
    return true;
}
