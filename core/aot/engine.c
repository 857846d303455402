// engine.c: the backward walk of autograd (tape.h), as torch::autograd::Engine does it on one
// thread: which functions lead to a wanted leaf, how many deliveries each waits for, the highest
// sequence number first. Deep graphs are walked without recursion.
#include "core/aot/tape.h"
#include "core/record/fault.h"
#include "core/base/work.h"

#include <string.h>

typedef struct Walk {
    Trace *t;
    VEC(GradFn *) stack; // of the searches; later the heap of ready functions
    VEC(GradFn *) seen;
    Value *out; // by leaf
} Walk;

static bool is_undefined(const Value *v) {
    return v->kind != VAL_tensor;
}

// Depth first: a function is needed if it is a wanted leaf or leads to one.
static void find_needed(Walk *w, GradFn *root) {
    Arena *a = w->t->arena;
    if (!root || root->state != FN_unseen)
        return;
    vec_push(a, &w->stack, root);
    while (w->stack.n) {
        GradFn *fn = w->stack.at[w->stack.n - 1];
        if (fn->state == FN_unseen) {
            fn->state = FN_open;
            vec_push(a, &w->seen, fn);
            for (int i = 0; i < fn->n_edges; i++) {
                GradFn *next = fn->edges[i].fn;
                if (!next)
                    continue;
                next->waits_for++;
                if (next->state == FN_unseen)
                    vec_push(a, &w->stack, next);
            }
            continue;
        }
        w->stack.n--;
        if (fn->state != FN_open)
            continue;
        bool needed = fn->capture >= 0;
        for (int i = 0; i < fn->n_edges && !needed; i++)
            needed = fn->edges[i].fn && fn->edges[i].fn->state == FN_needed;
        fn->state = needed ? FN_needed : FN_useless;
    }
}

// the ready queue: a heap by sequence number

static void push_ready(Walk *w, GradFn *fn) {
    vec_push(w->t->arena, &w->stack, fn);
    GradFn **h = w->stack.at;
    for (int i = w->stack.n - 1; i > 0 && h[(i - 1) / 2]->seq < h[i]->seq; i = (i - 1) / 2) {
        GradFn *swap = h[i];
        h[i] = h[(i - 1) / 2];
        h[(i - 1) / 2] = swap;
    }
}

static GradFn *pop_ready(Walk *w) {
    GradFn **h = w->stack.at, *top = h[0];
    int n = --w->stack.n;
    h[0] = h[n];
    for (int i = 0;;) {
        int best = i;
        for (int k = 2 * i + 1; k <= 2 * i + 2 && k < n; k++)
            if (h[k]->seq > h[best]->seq)
                best = k;
        if (best == i)
            return top;
        GradFn *swap = h[i];
        h[i] = h[best];
        h[best] = swap;
        i = best;
    }
}

// one function

// What a gradient must look like where it goes to: summed to the shape, cast to the type.
static Value validated(Trace *t, Value g, const TensorMeta *want) {
    const TensorMeta *m = meta_of(g);
    if (!m || !want || t->failed)
        return g;
    bool same = m->ndim == want->ndim;
    for (int i = 0; i < m->ndim && same; i++)
        same = m->size[i] == want->size[i] ||
               expr_guard(t, sym_cmp(t->sym, SYM_eq, m->size[i], want->size[i]));
    if (!same)
        g = sum_to(t, g, want->size, want->ndim);
    if (!t->failed && dtype_of(g) != want->dtype)
        g = CALL(t, aten__to_copy_default, g, DTY(want->dtype));
    return g;
}

static bool leads_somewhere(const GradFn *fn, int i) {
    return fn->edges[i].fn && fn->edges[i].fn->state == FN_needed;
}

static void zero_undefined(Trace *t, const GradFn *fn, Value *grads) {
    for (int i = 0; i < fn->n_results; i++) {
        const TensorMeta *m = fn->metas[i];
        if (!is_undefined(&grads[i]) || !m)
            continue;
        Value device = {.kind = VAL_device, .device = m->device};
        grads[i] = CALL(t, aten_zeros_default, size_list(t, m->size, m->ndim), DTY(m->dtype), NONE,
                        device);
    }
}

static const char *spoiled_text(Trace *t, const GradFn *fn, const char *what) {
    return arena_printf(t->arena,
                        "RuntimeError: one of the variables needed for gradient computation has "
                        "been modified by an inplace operation: %s of %s",
                        what, fn->op->qualname);
}

static Value unpacked(Trace *t, const GradFn *fn, int i) {
    if (!tape_saves_result(fn, i) || fn->results[i].kind != VAL_tensor)
        return fn->results[i];
    if (tape_writes(&fn->made[i]) != fn->made_writes[i])
        trace_fail(t, "%s", spoiled_text(t, fn, arena_printf(t->arena, "result %d", i)));
    return fn->through_detach[i] ? CALL(t, aten_detach_default, fn->results[i])
                                          : fn->results[i];
}

static Value spoiled(Trace *t, Value v, const char *why) {
    if (v.kind == VAL_tensor) {
        Traced *x = ARENA_NEW(t->arena, Traced);
        *x = *traced(&v);
        x->stale = why;
        return val_tensor(&x->meta);
    }
    if (v.kind != VAL_list && v.kind != VAL_tuple)
        return v;
    Value out = val_list(t->arena, v.kind, v.n);
    for (int i = 0; i < v.n; i++)
        out.at[i] = spoiled(t, v.at[i], why);
    return out;
}

// The saved arguments: the tensors themselves, so that a view which is behind is replayed here as
// in PyTorch. One that was written since may be asked for its shape, but not read; one that an
// in-place view op reshaped is what it was.
static Value readable(Trace *t, const GradFn *fn, int i) {
    if (i == 0 && fn->self_cloned)
        return fn->args[0];
    if (tape_writes(&fn->given[i]) != fn->given_writes[i])
        return spoiled(t, fn->args[i], spoiled_text(t, fn, fn->op->args[i].name));
    const Traced *x = traced(&fn->given[i]);
    return x && functional_is_reshaped(x) ? fn->args[i] : fn->given[i];
}

static const Value *readable_args(Trace *t, const GradFn *fn) {
    Value *out = ARENA_ARRAY(t->arena, fn->op->n_args + 1, Value);
    for (int i = 0; i < fn->op->n_args; i++)
        out[i] = readable(t, fn, i);
    return out;
}

// Calls the rule; a gradient an edge into out.
static void apply_rule(Trace *t, GradFn *fn, Value *grads, Value *out) {
    if (!fn->row || !fn->row->rule) {
        trace_fail(t, "RuntimeError: derivative for %s is not implemented", fn->op->qualname);
        return;
    }
    int n = fn->op->n_args;
    if (fn->row->flags & ZERO_GRAD)
        zero_undefined(t, fn, grads);
    Value *results = ARENA_ARRAY(t->arena, fn->n_results + 1, Value);
    for (int i = 0; i < fn->n_results; i++)
        results[i] = unpacked(t, fn, i);
    bool *needs = ARENA_ARRAY(t->arena, n + 1, bool);
    bool **item_needs = ARENA_ARRAY(t->arena, n + 1, bool *);
    for (int i = 0; i < fn->n_edges; i++) {
        struct EdgeArg e = fn->edge_args[i];
        needs[e.arg] = needs[e.arg] || leads_somewhere(fn, i);
        if (e.item >= 0 && !item_needs[e.arg])
            item_needs[e.arg] = ARENA_ARRAY(t->arena, fn->args[e.arg].n + 1, bool);
        if (e.item >= 0)
            item_needs[e.arg][e.item] = leads_somewhere(fn, i);
    }
    Back b = {.t = t,
              .op = fn->op,
              .args = readable_args(t, fn),
              .results = results,
              .n_results = fn->n_results,
              .grads = grads,
              .needs = needs,
              .item_needs = (const bool *const *)item_needs,
              .out = ARENA_ARRAY(t->arena, n + 1, Value)};
    if (!t->failed) // something saved was written
        fn->row->rule(&b);
    for (int i = 0; i < fn->n_edges && !t->failed; i++) {
        struct EdgeArg e = fn->edge_args[i];
        if (leads_somewhere(fn, i))
            out[i] = e.item < 0 ? b.out[e.arg] : item_of(b.out[e.arg], e.item);
    }
}

// A write to a view: the gradient of the base, with what flowed through the view replaced by the
// gradient of what was there before.
static void apply_copy_slices(Trace *t, GradFn *fn, Value *grads, Value *out) {
    const TensorMeta *base = fn->metas[0];
    Value result =
        CALL(t, aten_new_empty_strided_default, grads[0], size_list(t, base->size, base->ndim),
             size_list(t, base->stride, base->ndim));
    CALL(t, aten_copy__default, result, grads[0]);
    Value slice = tape_replay(t, fn->view, result);
    Value dense = {.kind = VAL_memory_format, .mf = MF_contiguous};
    Value inner = CALL(t, aten_clone_default, slice, dense);
    if (t->failed)
        return;
    for (int i = 0; i < fn->n_edges; i++) // what the inner function is asked for
        fn->inner->edges[i] = fn->edges[i];
    apply_rule(t, fn->inner, &inner, out);
    for (int i = 0; i < fn->n_edges && !t->failed; i++)
        if (fn->edge_args[i].arg == 0 && leads_somewhere(fn, i) && !is_undefined(&out[i])) {
            CALL(t, aten_copy__default, slice, out[i]);
            out[i] = result;
        }
}

// Autograd functions written in Python get zeros for undefined gradients.
static void apply_call(Trace *t, GradFn *fn, Value *grads, Value *out) {
    zero_undefined(t, fn, grads);
    if (!t->failed && !fn->higher->rule(t, fn, grads, out))
        trace_fail(t, "RuntimeError: derivative for %s is not implemented",
                   fn->higher->call->target);
}

static bool any_defined(const GradFn *fn) {
    for (int i = 0; i < fn->n_results; i++)
        if (!is_undefined(&fn->grads[i]))
            return true;
    return false;
}

static void deliver(Walk *w, const Edge *edge, Value g) {
    GradFn *next = edge->fn;
    next->waits_for--;
    if (next->state != FN_needed)
        return;
    if (!next->grads)
        next->grads = ARENA_ARRAY(w->t->arena, next->n_results + 1, Value);
    Value *there = &next->grads[edge->nr];
    bool first = is_undefined(there) ||
                 fault(w->t->req->decisions, FAULT_gradient_overwritten,
                       next->at ? next->at->name : trace_site(w->t));
    if (!is_undefined(&g))
        *there = first ? g : CALL(w->t, aten_add_Tensor, *there, g);
    if (!next->waits_for)
        push_ready(w, next);
}

// Whose work the nodes made since `from` are; the next ones begin behind them.
static void note(Trace *t, const GradFn *fn, DerivedKind kind, int *from) {
    const GradFn *of = fn->inner ? fn->inner : fn;
    int to = trace_next_id(t);
    if (to > *from && trace_is_logged(t)) {
        AotDerived *d = log_derived(t);
        d->kind = kind;
        d->from = *from;
        d->to = to;
        d->op = of->op;
        d->formula = of->row ? of->row->doc : NULL;
        d->seq = fn->seq;
    }
    *from = to;
}

// A product whose two gradients go to values of one shape.
static bool same_place(const GradFn *fn) {
    const TensorMeta *m[2];
    for (int i = 0; i < 2; i++) {
        if (!fn->edges[i].fn || !fn->op || fn->op->id != OP_aten_mul_Tensor)
            return false;
        m[i] = fn->edges[i].fn->metas[fn->edges[i].nr];
    }
    if (!m[0] || !m[1] || m[0]->ndim != m[1]->ndim)
        return false;
    for (int i = 0; i < m[0]->ndim; i++)
        if (m[0]->size[i] != m[1]->size[i])
            return false;
    return true;
}

static void evaluate(Walk *w, GradFn *fn) {
    Trace *t = w->t;
    t->at = fn->at;
    t->home = fn->home;
    t->stack = fn->stack;
    t->seq_nr = fn->seq;
    if (fn->capture >= 0)
        w->out[fn->capture] = fn->grads[0];
    int from = trace_next_id(t);
    Value *out = ARENA_ARRAY(t->arena, fn->n_edges + 1, Value);
    if (any_defined(fn) && fn->n_edges)
        (fn->higher  ? apply_call
         : fn->inner ? apply_copy_slices
                     : apply_rule)(t, fn, fn->grads, out);
    if (fn->n_edges == 2 && same_place(fn) &&
        fault(t->req->decisions, FAULT_gradients_swapped, trace_site(t))) {
        Value other = out[0];
        out[0] = out[1];
        out[1] = other;
    }
    note(t, fn, fn->inner ? DERIVED_copy_slices : DERIVED_formula, &from);
    for (int i = 0; i < fn->n_edges && !t->failed; i++)
        if (fn->edges[i].fn)
            out[i] = validated(t, out[i], fn->edges[i].fn->metas[fn->edges[i].nr]);
    for (int i = 0; i < fn->n_edges && !t->failed; i++)
        if (fn->edges[i].fn)
            deliver(w, &fn->edges[i], out[i]);
    note(t, fn, DERIVED_sum, &from);
}

bool tape_backward(Trace *t, const Value *outputs, const Value *grad_outputs, int n,
                   Traced *const *leaves, int n_leaves, Value *out) {
    Walk w = {.t = t, .out = out};
    for (int i = 0; i < n_leaves; i++) {
        GradFn *fn = map_get_id(&t->tape->leaves, (uintptr_t)leaves[i]);
        fn->capture = i;
        out[i] = val_none();
    }
    bool was = tape_enable(t, true);
    Edge *roots = ARENA_ARRAY(t->arena, n + 1, Edge);
    for (int i = 0; i < n; i++)
        roots[i] = tape_edge(t, traced(&outputs[i]));
    tape_enable(t, false);
    for (int i = 0; i < n; i++)
        find_needed(&w, roots[i].fn);
    Value *grads = ARENA_ARRAY(t->arena, n + 1, Value);
    for (int i = 0; i < n; i++) {
        grads[i] = grad_outputs[i];
        if (roots[i].fn) {
            roots[i].fn->waits_for++;
            grads[i] = validated(t, grads[i], roots[i].fn->metas[roots[i].nr]);
        }
    }
    for (int i = 0; i < n; i++)
        if (roots[i].fn)
            deliver(&w, &roots[i], grads[i]);
    for (int done = 0; w.stack.n && !t->failed; done++) {
        evaluate(&w, pop_ready(&w));
        if (!work_goes_on(t->diag, done, w.seen.n))
            t->failed = true;
    }
    for (int i = 0; i < w.seen.n; i++) {
        w.seen.at[i]->state = FN_unseen;
        w.seen.at[i]->grads = NULL;
        w.seen.at[i]->waits_for = 0;
        w.seen.at[i]->capture = -1;
    }
    tape_enable(t, was);
    return !t->failed;
}
