// tape.c: the recording half of autograd (tape.h): which tensors need gradients, the function that
// each op leaves, views and their bases, and what a write does to both.
#include "core/aot/tape.h"
#include "core/ops/foreach.h"

#include <limits.h>
#include <string.h>

void tape_new(Trace *t) {
    t->tape = ARENA_NEW(t->arena, Tape);
    t->tape->enabled = true;
    t->tape->leaves.arena = t->tape->formulas.arena = t->arena;
}

bool tape_enable(Trace *t, bool on) {
    bool was = t->tape && t->tape->enabled;
    if (t->tape)
        t->tape->enabled = on;
    return was;
}

static TapeInfo *info_of(Trace *t, Traced *x) {
    if (!x->tape) {
        x->tape = ARENA_NEW(t->arena, TapeInfo);
        x->tape->version = ARENA_NEW(t->arena, int);
    }
    return x->tape;
}

static GradFn *fn_new(Trace *t, int n_results, int n_edges) {
    GradFn *fn = ARENA_NEW(t->arena, GradFn);
    fn->seq = t->tape->next_seq++;
    fn->n_results = n_results;
    fn->metas = ARENA_ARRAY(t->arena, n_results + 1, const TensorMeta *);
    fn->results = ARENA_ARRAY(t->arena, n_results + 1, Value);
    fn->n_edges = n_edges;
    fn->edges = ARENA_ARRAY(t->arena, n_edges + 1, Edge);
    fn->edge_args = ARENA_ARRAY(t->arena, n_edges + 1, struct EdgeArg);
    fn->at = t->at;
    fn->home = t->home;
    fn->stack = t->stack;
    fn->capture = -1;
    return fn;
}

void tape_make_leaf(Trace *t, Traced *x) {
    GradFn *fn = fn_new(t, 1, 0);
    fn->leaf = x;
    fn->seq = INT_MAX;
    fn->metas[0] = &x->meta;
    info_of(t, x);
    map_put_id(&t->tape->leaves, (uintptr_t)x, fn);
}

static bool is_differentiable(const TensorMeta *m) {
    return dtype_info[m->dtype].cls >= DTC_FLOAT;
}

static bool needs_grad(const Trace *t, const Traced *x) {
    const TapeInfo *i = x->tape;
    if (!i || !is_differentiable(&x->meta))
        return false;
    return i->fn || map_find_id(&t->tape->leaves, (uintptr_t)x) ||
           (i->base && needs_grad(t, i->base));
}

bool tape_requires_grad(const Trace *t, Value x) {
    return t->tape && x.kind == VAL_tensor && needs_grad(t, traced(&x));
}

// views

Value tape_replay(Trace *t, const ViewChain *chain, Value base) {
    int n = 0;
    for (const ViewChain *c = chain; c; c = c->inner)
        n++;
    const ViewChain **steps = ARENA_ARRAY(t->arena, n + 1, const ViewChain *);
    for (const ViewChain *c = chain; c; c = c->inner)
        steps[--n] = c;
    for (; steps[n] && !t->failed; n++) {
        const ViewChain *c = steps[n];
        Value *args = ARENA_ARRAY(t->arena, c->op->n_args, Value);
        memcpy(args, c->args, (size_t)c->op->n_args * sizeof *args);
        args[0] = base;
        base = trace_dispatch(t, c->op, args);
        if (c->index >= 0)
            base = item_of(base, c->index);
    }
    return base;
}

// A view of a base that was written since has the gradient of a fresh view.
static void regenerate(Trace *t, Traced *x) {
    TapeInfo *i = x->tape;
    if (!i->base || i->fn_version == *i->version || (!i->fn && !needs_grad(t, i->base)))
        return;
    i->fn_version = *i->version;
    bool was = tape_enable(t, true);
    Value fresh = tape_replay(t, i->chain, val_tensor(&i->base->meta));
    tape_enable(t, was);
    Traced *y = traced(&fresh);
    if (!y || !y->tape)
        return;
    i->fn = y->tape->fn;
    i->nr = y->tape->nr;
}

Edge tape_edge(Trace *t, Traced *x) {
    if (!needs_grad(t, x))
        return (Edge){0};
    regenerate(t, x);
    if (x->tape->fn)
        return (Edge){x->tape->fn, x->tape->nr};
    return (Edge){map_get_id(&t->tape->leaves, (uintptr_t)x), 0};
}

static void be_view(Trace *t, Traced *of, Traced *view, const Op *op, const Value *args,
                    int index) {
    TapeInfo *base = info_of(t, of);
    if (view == of || (view->tape && view->tape->base))
        return;
    TapeInfo *i = info_of(t, view);
    ViewChain *c = ARENA_NEW(t->arena, ViewChain);
    *c = (ViewChain){op, args, index, base->chain};
    i->chain = c;
    i->base = base->base ? base->base : of;
    i->version = base->version;
    i->fn_version = *i->version;
    i->no_write = index >= 0;
}

// t_() of a view: it comes from its base by one step more.
static void turn_view(Trace *t, const Op *op, const Value *args) {
    Traced *x = traced(&args[0]);
    const Op *form = functional_view_form(t, op);
    if (!x || !x->tape || !x->tape->base || !form)
        return;
    ViewChain *c = ARENA_NEW(t->arena, ViewChain);
    *c = (ViewChain){form, args, -1, x->tape->chain};
    x->tape->chain = c;
}

static void be_views(Trace *t, const Op *op, const Value *args, const Value *out) {
    Traced *of = traced(&args[0]);
    if (!of || !of->fn)
        return;
    if (out->kind == VAL_tensor)
        be_view(t, of, traced(out), op, args, -1);
    else if (out->kind == VAL_list || out->kind == VAL_tuple)
        for (int i = 0; i < out->n; i++)
            if (out->at[i].kind == VAL_tensor)
                be_view(t, of, traced(&out->at[i]), op, args, i);
}

// functions

static int count_tensors(const Value *v) {
    if (v->kind == VAL_list || v->kind == VAL_tuple) {
        int n = 0;
        for (int i = 0; i < v->n; i++)
            n += v->at[i].kind == VAL_tensor;
        return n;
    }
    return v->kind == VAL_tensor;
}

static void add_edge(Trace *t, GradFn *fn, const Value *v, int arg, int item) {
    if (v->kind != VAL_tensor)
        return;
    fn->edge_args[fn->n_edges] = (struct EdgeArg){arg, item};
    fn->edges[fn->n_edges++] = tape_edge(t, traced(v));
}

static GradFn *fn_of_op(Trace *t, const Op *op, const Value *args) {
    int n = 0;
    for (int i = 0; i < op->n_args; i++)
        n += count_tensors(&args[i]);
    GradFn *fn = fn_new(t, 0, n);
    fn->op = op;
    fn->row = derivative_of(t, op);
    fn->n_edges = 0;
    for (int i = 0; i < op->n_args; i++) {
        const Value *v = &args[i];
        if (v->kind == VAL_list || v->kind == VAL_tuple)
            for (int k = 0; k < v->n; k++)
                add_edge(t, fn, &v->at[k], i, k);
        else
            add_edge(t, fn, v, i, -1);
    }
    return fn;
}

static bool wants(const GradFn *fn, int arg) {
    for (int i = 0; i < fn->n_edges; i++)
        if (fn->edge_args[i].arg == arg && fn->edges[i].fn)
            return true;
    return false;
}

int tape_writes(const Value *v) {
    int n = 0;
    if (v->kind == VAL_tensor)
        return traced(v)->tape ? *traced(v)->tape->version : 0;
    if (v->kind == VAL_list || v->kind == VAL_tuple)
        for (int i = 0; i < v->n; i++)
            n += tape_writes(&v->at[i]);
    return n;
}

// Whoever writes to what was saved spoils it: also the op itself, which may be given what it writes
// as another argument, too (x.mul_(x)).
static void watch_args(Trace *t, GradFn *fn, const Value *args) {
    fn->given = args;
    fn->given_writes = ARENA_ARRAY(t->arena, fn->op->n_args + 1, int);
    for (int i = 0; i < fn->op->n_args; i++)
        fn->given_writes[i] = tape_writes(&args[i]);
}

// What a formula may read of the arguments, as they are before the op runs.
static void save_args(Trace *t, GradFn *fn, const Value *args, bool writes) {
    Value *saved = ARENA_ARRAY(t->arena, fn->op->n_args + 1, Value);
    for (int i = 0; i < fn->op->n_args; i++)
        saved[i] = functional_synced(t, &args[i]);
    int flags = fn->row ? fn->row->flags : 0;
    if (writes && fn->op->n_args && fn->op->args[0].written &&
        ((flags & SAVE_self) || ((flags & SAVE_self_if1) && wants(fn, 1)))) {
        bool was = tape_enable(t, false);
        Value copy = CALL(t, aten_clone_default, args[0]);
        tape_enable(t, was);
        saved[0] = copy;
        fn->self_cloned = true;
    }
    fn->args = saved;
    watch_args(t, fn, args);
}

static void watch_results(Trace *t, GradFn *fn, const Value *items) {
    for (int i = 0; i < fn->op->n_args; i++)
        if (fn->op->args[i].written)
            fn->given_writes[i] = tape_writes(&fn->given[i]);
    fn->made = items;
    fn->made_writes = ARENA_ARRAY(t->arena, fn->n_results + 1, int);
    for (int i = 0; i < fn->n_results; i++)
        fn->made_writes[i] = tape_writes(&items[i]);
}

// Without a node of their own for autograd: what x.detach() yields.
static Value detached(Trace *t, Value x) {
    Value *args = ARENA_NEW(t->arena, Value); // the view keeps them
    *args = x;
    return functionalize(t, op_at(OP_aten_detach_default), args);
}

static int flat_results(Trace *t, const Value *out, const Value **items) {
    if (out->kind == VAL_list || out->kind == VAL_tuple) {
        *items = out->at;
        return out->n;
    }
    Value *one = ARENA_NEW(t->arena, Value);
    *one = *out;
    *items = one;
    return 1;
}

static void rebase_view(Trace *t, Traced *x, GradFn *fn) {
    TapeInfo *i = x->tape;
    if (i->no_write) {
        trace_fail(t,
                   "RuntimeError: %s writes one of several views made by one call of %s, which "
                   "autograd forbids",
                   fn->op->qualname, i->chain->op->qualname);
        return;
    }
    GradFn *copy = fn_new(t, 1, fn->n_edges);
    memcpy(copy->edges, fn->edges, (size_t)fn->n_edges * sizeof *fn->edges);
    memcpy(copy->edge_args, fn->edge_args, (size_t)fn->n_edges * sizeof *fn->edge_args);
    copy->op = fn->op;
    copy->inner = fn;
    copy->view = i->chain;
    copy->metas[0] = &i->base->meta;
    for (int k = 0; k < copy->n_edges; k++)
        if (copy->edge_args[k].arg == 0)
            copy->edges[k] = tape_edge(t, i->base);
    i->base->tape->fn = copy;
    i->base->tape->nr = 0;
    regenerate(t, x);
}

static bool is_leaf(const Trace *t, const Traced *x) {
    return x->tape && (map_find_id(&t->tape->leaves, (uintptr_t)x) ||
                       (x->tape->base && is_leaf(t, x->tape->base) && !x->tape->base->tape->fn));
}

static bool writes_leaf(const Trace *t, const Op *op, const Value *args) {
    for (int i = 0; i < op->n_args; i++)
        if (op->args[i].written && args[i].kind == VAL_tensor && is_leaf(t, traced(&args[i])))
            return true;
    return false;
}

bool tape_saves_result(const GradFn *fn, int i) {
    if (fn->row && fn->row->flags & SAVE_each) {
        const Derivative *each = &derivatives[foreach_each(fn->op)->id];
        return each->flags & SAVE_r0;
    }
    return fn->row && i < 8 && fn->row->flags & (SAVE_r0 << i);
}

static void set_history(Trace *t, GradFn *fn, const Value *out) {
    const Value *items;
    int n = flat_results(t, out, &items);
    fn->n_results = n;
    fn->metas = ARENA_ARRAY(t->arena, n + 1, const TensorMeta *);
    fn->results = ARENA_ARRAY(t->arena, n + 1, Value);
    fn->through_detach = ARENA_ARRAY(t->arena, n + 1, bool);
    int flags = fn->row ? fn->row->flags : 0;
    for (int i = 0; i < n; i++) {
        Traced *x = traced(&items[i]);
        if (!x)
            continue;
        // A copy: an in-place view op changes the tensor's own.
        TensorMeta *meta = ARENA_NEW(t->arena, TensorMeta);
        *meta = x->meta;
        fn->metas[i] = meta;
        fn->results[i] = val_tensor(meta);
        if (!is_differentiable(meta) || (i && (flags & ONLY_r0)) || (i > 1 && (flags & ONLY_r01)) ||
            (!i && (flags & NOT_r0)))
            continue;
        fn->through_detach[i] = true;
        TapeInfo *info = info_of(t, x);
        if (info->base && info->fn_version != *info->version) {
            rebase_view(t, x, fn);
        } else {
            info->fn = fn;
            info->nr = i;
        }
    }
    for (int i = 0; i < n; i++)
        if (tape_saves_result(fn, i) && items[i].kind == VAL_tensor)
            fn->results[i] =
                fn->through_detach[i] ? detached(t, items[i]) : functional_synced(t, &items[i]);
    watch_results(t, fn, items);
}

// A write raises the version of what it writes.
static void bump(Trace *t, const Op *op, const Value *args) {
    for (int i = 0; i < op->n_args; i++) {
        bool list = args[i].kind == VAL_list || args[i].kind == VAL_tuple;
        for (int k = 0; op->args[i].written && k < (list ? args[i].n : 1); k++) {
            Traced *x = traced(list ? &args[i].at[k] : &args[i]);
            if (x)
                ++*info_of(t, x)->version;
        }
    }
}

static bool any_needs(const Trace *t, const Op *op, const Value *args) {
    for (int i = 0; i < op->n_args; i++) {
        const Value *v = &args[i];
        if (v->kind == VAL_tensor && needs_grad(t, traced(v)))
            return true;
        if (v->kind == VAL_list || v->kind == VAL_tuple)
            for (int k = 0; k < v->n; k++)
                if (v->at[k].kind == VAL_tensor && needs_grad(t, traced(&v->at[k])))
                    return true;
    }
    return false;
}

static bool is_recorded(Trace *t, const Op *op, const Value *args) {
    if (!t->tape->enabled || !any_needs(t, op, args))
        return false;
    const Derivative *row = derivative_of(t, op);
    return !row || !(row->flags & NO_GRAD);
}

// Before an op that writes; false: it must not.
static bool may_write(Trace *t, const Op *op, const Value *args) {
    if (!writes_leaf(t, op, args))
        return true;
    trace_fail(t, "RuntimeError: a leaf that requires grad is written in place by %s",
               op->qualname);
    return false;
}

// An op that writes a list leaves one function an item, as if it were called on each.
static Value write_items(Trace *t, const Op *op, const Op *each, const Value *args) {
    const char *why;
    int n = foreach_items(op, args, &why);
    GradFn **fns = ARENA_ARRAY(t->arena, n > 0 ? n : 1, GradFn *);
    for (int i = 0; i < n; i++) {
        Value *one = ARENA_ARRAY(t->arena, each->n_args + 1, Value);
        foreach_args(op, each, args, i, one);
        if (!is_recorded(t, each, one))
            continue;
        if (!(each->tags & OPT_mutates))
            trace_fail(t, "RuntimeError: %s has no derivative: it writes through out=",
                       op->qualname);
        if (t->failed || !may_write(t, each, one))
            return NONE;
        fns[i] = fn_of_op(t, each, one);
        save_args(t, fns[i], one, true);
    }
    Value out = functionalize(t, op, args);
    bump(t, op, args);
    for (int i = 0; i < n && !t->failed; i++)
        if (fns[i])
            set_history(t, fns[i], &args[0].at[i]);
    return t->failed ? NONE : out;
}

Value tape_dispatch(Trace *t, const Op *op, const Value *args) {
    bool writes = op->tags & OPT_mutates;
    if (writes && foreach_each(op))
        return write_items(t, op, foreach_each(op), args);
    bool views = functional_is_view(op);
    bool detach = op->id == OP_aten_detach_default;
    GradFn *fn = !detach && is_recorded(t, op, args) ? fn_of_op(t, op, args) : NULL;
    int was = t->seq_nr;
    if (fn && op->functional) {
        trace_fail(t,
                   "RuntimeError: %s(): functions with out=... arguments don't support automatic "
                   "differentiation, but one of the arguments requires grad.",
                   op->name);
        return NONE;
    }
    if (fn) {
        if (writes && !(op->tags & OPT_inplace_view) && !may_write(t, op, args))
            return NONE;
        t->seq_nr = fn->seq;
        save_args(t, fn, args, writes);
    }
    Value out = functionalize(t, op, args);
    if (writes && !(op->tags & OPT_inplace_view))
        bump(t, op, args);
    if ((op->tags & OPT_inplace_view) && !t->failed)
        turn_view(t, op, args);
    if (views && !detach && !t->failed)
        be_views(t, op, args, &out);
    if (fn && !t->failed)
        set_history(t, fn, &out);
    t->seq_nr = was;
    return t->failed ? NONE : out;
}

// calls of nested graphs

GradFn *tape_call(Trace *t, HigherGrad *higher) {
    bool any = false;
    for (int i = 0; i < higher->n_inputs; i++)
        any = any || tape_requires_grad(t, higher->inputs[i]);
    if (!any || !t->tape->enabled)
        return NULL;
    GradFn *fn = fn_new(t, 0, higher->n_inputs);
    Value *saved = ARENA_ARRAY(t->arena, higher->n_inputs + 1, Value);
    fn->n_edges = 0;
    for (int i = 0; i < higher->n_inputs; i++) {
        add_edge(t, fn, &higher->inputs[i], i, -1);
        saved[i] = functional_synced(t, &higher->inputs[i]);
    }
    higher->inputs = saved;
    fn->higher = higher;
    return fn;
}

void tape_called(Trace *t, GradFn *fn, const Value *results) {
    fn->n_results = results->n;
    fn->metas = ARENA_ARRAY(t->arena, results->n + 1, const TensorMeta *);
    for (int i = 0; i < results->n; i++) {
        Traced *x = traced(&results->at[i]);
        if (!x)
            continue;
        fn->metas[i] = meta_copy(t->arena, &x->meta);
        if (!is_differentiable(&x->meta))
            continue;
        TapeInfo *info = info_of(t, x);
        info->fn = fn;
        info->nr = i;
    }
}
