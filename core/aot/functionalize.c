// functionalize.c: writes and aliasing out of the trace, as FunctionalTensorWrapper does it. Every
// tensor above this layer belongs to an alias set with one base value; a view knows the chain of
// view ops from the base. A write makes a new value, leaves an update with the set and raises its
// generation; a tensor that is behind applies the pending updates to the base (through the inverse
// of each view) and replays its chain. A fresh view starts at generation 0, so one that is taken
// after a write is replayed at its first use: the gaps in PyTorch's node numbers come from there.
#include "core/aot/tape.h"

#include <string.h>

#include "core/ops/custom.h"
#include "core/ops/foreach.h"
#include "core/ops/meta.h"
#include "core/record/fault.h"
#include "core/tensor/tensor.h"

typedef struct ViewStep {
    const Op *op;
    const Value *args; // bound; args[0] stands for the tensor viewed
    int out_index;     // of several results, -1 if there is one
} ViewStep;

typedef struct Update {
    Traced *value;         // what was written, in the view's shape
    const ViewStep *steps; // the view
    int n_steps;
    int logged; // place in the record of writes
} Update;

typedef struct AliasSet {
    Traced *base;
    int generation;
    const StackFrame *written; // by the last write
    bool mutated;
    bool graded;         // written while gradients were recorded
    VEC(Update) updates; // not yet applied to base
} AliasSet;

struct Functional {
    Traced *value; // below
    AliasSet *set;
    ViewStep *steps; // from the base
    int n_steps;
    int generation;
    const StackFrame *taken; // where the view was taken: its first replay belongs there
    bool reshaped;           // an in-place view op changed the tensor itself
};

static Traced *upper(Trace *t, Traced *value, AliasSet *set, ViewStep *steps, int n_steps) {
    Traced *x = ARENA_NEW(t->arena, Traced);
    x->meta = value->meta;
    x->fn = ARENA_NEW(t->arena, Functional);
    *x->fn = (Functional){.value = value, .set = set, .steps = steps, .n_steps = n_steps};
    return x;
}

Value functional_wrap(Trace *t, const Value *lower) {
    if (lower->kind == VAL_tensor) {
        AliasSet *set = ARENA_NEW(t->arena, AliasSet);
        set->base = traced(lower);
        return val_tensor(&upper(t, set->base, set, NULL, 0)->meta);
    }
    if (lower->kind != VAL_list && lower->kind != VAL_tuple)
        return *lower;
    Value out = val_list(t->arena, lower->kind, lower->n);
    for (int i = 0; i < lower->n; i++)
        out.at[i] = functional_wrap(t, &lower->at[i]);
    return out;
}

// What is written below may have other strides than what it replaces above (of lerp_ those of its
// other operand), and a view that is one above cannot be one below: there it is one of a copy.
static Value to_view(Trace *t, const Op *op, const Value *args, Value x) {
    const TensorMeta *m = meta_of(x);
    if (op->id != OP_aten_view_default || !m || t->failed ||
        meta_is_contiguous(t->sym, m, MF_contiguous))
        return x;
    Diag quiet = {.arena = t->arena};
    MetaCtx c = trace_meta_ctx(t);
    c.diag = &quiet;
    Value on[2] = {x, args[1]}, out;
    if (op_meta(&c, op, on, &out))
        return x;
    return contiguous(t, x, MF_contiguous);
}

static Value step_args_call(Trace *t, const ViewStep *s, Value x) {
    Value *args = ARENA_ARRAY(t->arena, s->op->n_args, Value);
    memcpy(args, s->args, (size_t)s->op->n_args * sizeof *args);
    args[0] = to_view(t, s->op, args, x);
    if (s->op->id == OP_aten_select_int &&
        fault(t->req->decisions, FAULT_view_replayed_wrong, trace_site(t)))
        args[2] = val_int(0);
    Value out = trace_dispatch(t, s->op, args);
    return s->out_index < 0 ? out : item_of(out, s->out_index);
}

// New base from a write through a view: walk to the view, then back with inverses.
static Traced *apply_update(Trace *t, const Update *u, Traced *base) {
    if (!u->n_steps)
        return u->value;
    if (fault(t->req->decisions, FAULT_view_write_lost, trace_site(t)))
        return base;
    Value *seen = ARENA_ARRAY(t->arena, u->n_steps, Value);
    seen[0] = val_tensor(&base->meta);
    for (int i = 0; i + 1 < u->n_steps; i++)
        seen[i + 1] = step_args_call(t, &u->steps[i], seen[i]);
    Value v = val_tensor(&u->value->meta);
    for (int i = u->n_steps - 1; i >= 0 && !t->failed; i--) {
        const ViewStep *s = &u->steps[i];
        if (!view_inverse(t, s->op, s->args, s->out_index, seen[i], v, &v))
            trace_fail(t, "no inverse of view %s is known", s->op->qualname);
    }
    return t->failed ? base : traced(&v);
}

Traced *functional_sync(Trace *t, Traced *x) {
    Functional *f = x->fn;
    if (x->stale)
        trace_fail(t, "%s", x->stale);
    if (!f || f->generation == f->set->generation || t->failed)
        return f ? f->value : x;
    if (f->n_steps && fault(t->req->decisions, FAULT_alias_missed, trace_site(t)))
        return f->value;
    bool below = t->below;
    t->below = true;
    for (int i = 0; i < f->set->updates.n; i++) {
        const Update *u = &f->set->updates.at[i];
        int from = trace_next_id(t);
        const Node *before = f->set->base->node;
        f->set->base = apply_update(t, u, f->set->base);
        if (u->logged < 0 || !trace_is_logged(t))
            continue;
        AotWrite *w = &t->log->writes[u->logged];
        w->from = from;
        w->to = trace_next_id(t);
        w->base = before ? before->id : -1;
        w->new_base = f->set->base->node ? f->set->base->node->id : -1;
    }
    f->set->updates.n = 0;
    Value v = val_tensor(&f->set->base->meta);
    const StackFrame *stack = t->stack;
    if (f->taken)
        t->stack = f->taken;
    f->taken = NULL;
    for (int i = 0; i < f->n_steps && !t->failed; i++)
        v = step_args_call(t, &f->steps[i], v);
    t->stack = stack;
    t->below = below;
    if (t->failed || v.kind != VAL_tensor)
        return f->value;
    f->value = traced(&v);
    f->generation = f->set->generation;
    return f->value;
}

bool functional_is_mutated(const Traced *x) {
    return x->fn && x->fn->set->mutated;
}

const Node *functional_node(const Traced *x) {
    return x->fn ? x->fn->value->node : x->node;
}

bool functional_is_reshaped(const Traced *x) {
    return x->fn && x->fn->reshaped;
}

bool functional_is_graded(const Traced *x) {
    return x->fn && x->fn->set->graded;
}

const void *functional_storage(const Traced *x) {
    return x->fn ? (const void *)x->fn->set : x;
}

bool functional_shares(const Traced *x, const Traced *y) {
    return x->fn && y->fn && x->fn->set == y->fn->set;
}

bool functional_is_one_of_many(const Traced *x) {
    return x->fn && x->fn->n_steps && x->fn->steps[x->fn->n_steps - 1].out_index >= 0;
}

const StackFrame *functional_written_at(const Traced *x) {
    return x->fn ? x->fn->set->written : NULL;
}

Value functional_synced(Trace *t, const Value *v) {
    if (v->kind == VAL_tensor)
        return val_tensor(&functional_sync(t, traced(v))->meta);
    if (v->kind != VAL_list && v->kind != VAL_tuple)
        return *v;
    Value out = val_list(t->arena, v->kind, v->n);
    for (int i = 0; i < v->n; i++)
        out.at[i] = functional_synced(t, &v->at[i]);
    return out;
}

static Value *synced_args(Trace *t, const Op *op, const Value *args) {
    Value *out = ARENA_ARRAY(t->arena, op->n_args + 1, Value);
    for (int i = 0; i < op->n_args; i++)
        out[i] = functional_synced(t, &args[i]);
    return out;
}

static Value lower(Trace *t, const Op *op, const Value *args) {
    bool below = t->below;
    t->below = true;
    Value out = trace_lower(t, op, args);
    t->below = below;
    return out;
}

// views

static void take_strides(Trace *t, const Op *op, const Value *args, Traced *x);

static Traced *new_view(Trace *t, Traced *base, Traced *value, const Op *op, const Value *args,
                        int out_index) {
    const Functional *b = base->fn;
    // as_strided addresses the storage, whatever the view that it is called on.
    bool bits = false; // it addresses elements of another type than the storage began with
    for (int i = 0; i < b->n_steps; i++)
        bits = bits || b->steps[i].op->id == OP_aten_view_dtype;
    int keep = op->id == OP_aten_as_strided_default && !bits ? 0 : b->n_steps;
    ViewStep *steps = ARENA_ARRAY(t->arena, keep + 1, ViewStep);
    if (keep)
        memcpy(steps, b->steps, (size_t)keep * sizeof *steps);
    steps[keep] = (ViewStep){op, args, out_index};
    Traced *x = upper(t, value, b->set, steps, keep + 1);
    x->fn->taken = t->stack;
    return x;
}

// The last element that a tensor reaches in its storage, if it is a number; -1: it has none.
static bool last_element(const TensorMeta *m, int64_t *last) {
    int64_t at = 0, size, stride, far;
    bool empty = false, ok = !m->offset || expr_int(m->offset, &at);
    for (int i = 0; i < m->ndim && ok; i++) {
        ok = expr_int(m->size[i], &size) && expr_int(m->stride[i], &stride) &&
             !__builtin_mul_overflow(size - 1, stride, &far) &&
             !__builtin_add_overflow(at, far, &at);
        empty = empty || (ok && size == 0);
    }
    *last = empty ? -1 : at;
    return ok;
}

// as_strided may reach all of the storage, and no more. How large that of an input is nobody knows.
static bool stays_inside(Trace *t, const Op *op, const Traced *self, const Value *out) {
    const Traced *base = self->fn->set->base;
    int64_t last, end;
    if (op->id != OP_aten_as_strided_default || out->kind != VAL_tensor || !base->node ||
        base->node->op == FX_placeholder || !last_element(out->tensor, &last) ||
        !last_element(&base->meta, &end) || last <= end)
        return true;
    trace_fail(t,
               "RuntimeError: setStorage: as_strided reaches element %lld, out of bounds for a "
               "storage of %lld elements",
               (long long)last, (long long)end + 1);
    return false;
}

static Value view(Trace *t, const Op *op, const Value *args) {
    Traced *self = traced(&args[0]);
    if (!self || !self->fn)
        return lower(t, op, synced_args(t, op, args)); // one that must not be read is told of
    Value *low = ARENA_ARRAY(t->arena, op->n_args, Value);
    memcpy(low, args, (size_t)op->n_args * sizeof *low);
    bool below = t->below;
    low[0] = val_tensor(&functional_sync(t, self)->meta);
    t->below = true;
    low[0] = to_view(t, op, low, low[0]);
    t->below = below;
    Value out = lower(t, op, low);
    if (t->failed || !stays_inside(t, op, self, &out))
        return NONE;
    if (out.kind == VAL_tensor) {
        Traced *v = new_view(t, self, traced(&out), op, args, -1);
        take_strides(t, op, args, v);
        return val_tensor(&v->meta);
    }
    if (out.kind != VAL_list && out.kind != VAL_tuple)
        return out;
    Value list = val_list(t->arena, out.kind, out.n);
    for (int i = 0; i < out.n; i++) {
        Traced *v = new_view(t, self, traced(&out.at[i]), op, args, i);
        list.at[i] = val_tensor(&v->meta);
    }
    return list;
}

const Op *functional_view_form(Trace *t, const Op *op) {
    const char *name = arena_strndup(t->arena, op->name, strlen(op->name) - 1);
    return op_find_overload(op->ns, name, strcmp(name, "transpose") ? op->overload : "int");
}

// t_, unsqueeze_, …: the tensor itself becomes the view.
static Value view_in_place(Trace *t, const Op *op, const Value *args) {
    Traced *self = traced(&args[0]);
    const Op *out_of_place = functional_view_form(t, op);
    if (!self || !self->fn)
        return args[0];
    if (!out_of_place) {
        trace_fail(t, "%s has no functional form", op->qualname);
        return NONE;
    }
    Value v = view(t, out_of_place, args);
    Traced *x = traced(&v);
    if (!x || !x->fn)
        return args[0];
    self->meta = x->meta;
    int generation = self->fn->generation;
    *self->fn = *x->fn;
    self->fn->generation = generation;
    self->fn->reshaped = true;
    return args[0];
}

// writes

static void name_tensor(Buf *out, const Node *n, void *ctx) {
    (void)ctx;
    buf_puts(out, n->name);
}

// `select(0, 1).view([-1])`
static const char *chain_text(Arena *a, const ViewStep *steps, int n) {
    Buf b = {.arena = a};
    for (int i = 0; i < n; i++) {
        const Op *op = steps[i].op;
        int last = op->n_args - 1;
        while (last > 0 && steps[i].args[last].kind == VAL_none)
            last--;
        buf_printf(&b, "%s%s(", i ? "." : "", op->name);
        for (int k = 1; k <= last; k++) {
            buf_puts(&b, k > 1 ? ", " : "");
            if (steps[i].args[k].kind == VAL_tensor)
                buf_puts(&b, "…");
            else
                val_print(&b, &steps[i].args[k], name_tensor, NULL);
        }
        buf_putc(&b, ')');
        if (steps[i].out_index >= 0)
            buf_printf(&b, "[%d]", steps[i].out_index);
    }
    return buf_str(&b);
}

static int note_write(Trace *t, const Op *op, const Traced *self, const Traced *value) {
    if (!trace_is_logged(t))
        return -1;
    AotWrite *w = log_write(t);
    w->op = op;
    w->backward = t->flags & NODE_backward;
    w->chain = chain_text(t->req->arena, self->fn->steps, self->fn->n_steps);
    w->value = value->node ? value->node->id : -1;
    return t->log->n_writes - 1;
}

static void write(Trace *t, const Op *op, Traced *self, Value value) {
    if (t->failed)
        return;
    Traced *v = traced(&value);
    if (!v) {
        trace_fail(t, "a write whose value is unknown");
        return;
    }
    bool below = t->below;
    t->below = true;
    if (v->meta.dtype != self->meta.dtype) {
        value = CALL(t, aten__to_copy_default, value, DTY(self->meta.dtype));
        v = traced(&value);
    }
    t->below = below;
    if (t->failed)
        return;
    if (!meta_equal_size(&v->meta, &self->meta)) {
        MetaCtx m = trace_meta_ctx(t);
        trace_fail(t, "RuntimeError: output with shape %s doesn't match the broadcast shape %s",
                   meta_sizes_text(&m, self->meta.size, self->meta.ndim),
                   meta_sizes_text(&m, v->meta.size, v->meta.ndim));
        return;
    }
    Functional *f = self->fn;
    f->value = v;
    Update u = {v, f->steps, f->n_steps, note_write(t, op, self, v)};
    vec_push(t->arena, &f->set->updates, u);
    f->set->generation++;
    f->set->mutated = true;
    f->set->graded = f->set->graded || (t->tape && t->tape->enabled);
    f->set->written = t->stack;
    functional_sync(t, self);
}

static Tensor by_hints(Trace *t, const TensorMeta *m) {
    Tensor x = {.dtype = m->dtype, .ndim = m->ndim};
    for (int i = 0; i < m->ndim; i++) {
        x.size[i] = sym_size_hint(t->sym, m->size[i], 0);
        x.stride[i] = sym_size_hint(t->sym, m->stride[i], 0);
    }
    x.offset = m->offset ? sym_size_hint(t->sym, m->offset, 0) : 0;
    return x;
}

bool functional_may_read(Trace *t, const Op *op, const Traced *self, const Value *v) {
    for (int i = 0; (v->kind == VAL_list || v->kind == VAL_tuple) && i < v->n; i++)
        if (!functional_may_read(t, op, self, &v->at[i]))
            return false;
    Traced *other = v->kind == VAL_tensor ? traced(v) : NULL;
    if (!other || !functional_shares(self, other) ||
        self->meta.ndim > TENSOR_DIMS || other->meta.ndim > TENSOR_DIMS)
        return true;
    Tensor x = by_hints(t, &self->meta), y = by_hints(t, &other->meta);
    const char *error = ops_overlap_error(op, &x, other == self ? &x : &y);
    if (error)
        trace_fail(t, "%s", error);
    return !error;
}

static bool may_write(Trace *t, const Op *op, const Value *args, const Traced *self, int item) {
    if (!self || !self->fn) {
        trace_fail(t, "%s writes something that is no tensor", op->qualname);
    } else if (self->meta.ndim <= TENSOR_DIMS) {
        Tensor x = by_hints(t, &self->meta);
        const char *error = ops_shared_error(op, &x);
        if (error)
            trace_fail(t, "%s", error);
    }
    for (int i = 1; i < op->n_args && !t->failed; i++) {
        bool list = item >= 0 && (args[i].kind == VAL_list || args[i].kind == VAL_tuple);
        if (!functional_may_read(t, op, self, list ? &args[i].at[item] : &args[i]))
            return false;
    }
    return !t->failed;
}

// An op on lists: all results first, then one write an item.
static Value write_items(Trace *t, const Op *op, const Op *form, const Value *args) {
    const char *why;
    int n = foreach_items(op, args, &why);
    if (n < 0)
        trace_fail(t, "RuntimeError: %s: %s", op->qualname, why);
    for (int i = 0; i < n; i++)
        if (!may_write(t, op, args, traced(&args[0].at[i]), i))
            return NONE;
    if (t->failed)
        return NONE;
    Value out = lower(t, form, synced_args(t, op, args));
    for (int i = 0; i < n && !t->failed; i++)
        write(t, op, traced(&args[0].at[i]), item_of(out, i));
    return args[0];
}

// Several written arguments: results first, then one new value for each of them.
static Value write_many(Trace *t, const Op *op, const Op *form, const Value *args) {
    Value out = lower(t, form, synced_args(t, op, args));
    if (t->failed)
        return NONE;
    Value results = val_list(t->arena, VAL_tuple, op->n_returns);
    for (int i = 0; i < op->n_returns; i++) {
        Value r = item_of(out, i);
        results.at[i] = functional_wrap(t, &r);
    }
    int next = op->n_returns;
    for (int i = 0; i < op->n_args; i++)
        if (op->args[i].written && args[i].kind == VAL_tensor)
            write(t, op, traced(&args[i]), item_of(out, next++));
    return op->n_returns == 1 ? results.at[0] : results;
}

Traced *functional_base(Trace *t, Traced *x) {
    return x->fn && x->fn->n_steps ? upper(t, x->fn->set->base, x->fn->set, NULL, 0) : x;
}

void functional_write(Trace *t, const Op *op, Traced *x, Value value) {
    write(t, op, x, value);
}

static Value *by_name(Trace *t, const Op *op, const Op *form, const Value *args) {
    Value *out = ARENA_ARRAY(t->arena, form->n_args + 1, Value);
    for (int i = 0; i < form->n_args; i++) {
        int k = op_arg_index(op, form->args[i].name);
        out[i] = k >= 0 ? args[k] : form->args[i].dflt;
    }
    return out;
}

static Value in_place(Trace *t, const Op *op, const Value *args) {
    if (op_is_custom(op))
        return auto_functionalize(t, op, args);
    if (op->functional)
        return functionalize_out(t, op, args);
    const Op *form = functional_form(t, op);
    if (!form) {
        trace_fail(t, "%s writes its arguments and has no functional form", op->qualname);
        return NONE;
    }
    bool self_written =
        op->n_args > 0 && op->args[0].written && op->name[strlen(op->name) - 1] == '_';
    if (!self_written)
        return write_many(t, op, form, args);
    if (foreach_each(op))
        return write_items(t, op, form, args);
    Traced *self = traced(&args[0]);
    if (!may_write(t, op, args, self, -1))
        return NONE;
    Value *low = synced_args(t, op, args);
    if (form->args[0].type != AT_tensor) // polygamma_(self, n) of polygamma(n, self)
        low = by_name(t, op, form, low);
    write(t, op, self, lower(t, form, low));
    return args[0];
}

bool functional_is_view(const Op *op) {
    return op->n_args > 0 && op->args[0].alias && !op->args[0].written && op->n_returns > 0 &&
           op->returns[0].alias;
}

static bool differs_below(const Traced *x) {
    const Traced *low = x->fn ? x->fn->value : x;
    for (int i = 0; i < x->meta.ndim && low->meta.ndim == x->meta.ndim; i++)
        if (low->meta.stride[i] != x->meta.stride[i])
            return true;
    return false;
}

// Can the result below have other strides than the op gives above?
static bool may_differ(Trace *t, const Op *op, const Value *args) {
    bool decomposed = decomp_rules[op->id].rule;
    for (int i = 0; i < op->n_args; i++)
        if (args[i].kind == VAL_tensor &&
            (decomposed ? !meta_is_contiguous(t->sym, args[i].tensor, MF_contiguous)
                        : differs_below(traced(&args[i]))))
            return true;
    return false;
}

// Above, a result has the strides that eager gives it, whatever those of its decomposition are:
// whether it can be viewed, and so what shares its memory, must not depend on that.
static void take_strides(Trace *t, const Op *op, const Value *args, Traced *x) {
    Diag quiet = {.arena = t->arena};
    MetaCtx c = trace_meta_ctx(t);
    Value own;
    c.diag = &quiet;
    if (may_differ(t, op, args) && op_meta(&c, op, args, &own) &&
        own.kind == VAL_tensor && meta_equal_size(own.tensor, &x->meta))
        x->meta.stride = own.tensor->stride;
}

Value functionalize(Trace *t, const Op *op, const Value *args) {
    // Without a tape there is nothing to detach from.
    if (op->id == OP_aten_detach__default || (op->id == OP_aten_detach_default && !t->tape))
        return args[0];
    if (op->tags & OPT_inplace_view)
        return view_in_place(t, op, args);
    if (op->tags & OPT_mutates)
        return in_place(t, op, args);
    if (functional_is_view(op))
        return view(t, op, args);
    Value out = lower(t, op, synced_args(t, op, args));
    Value up = functional_wrap(t, &out);
    if (out.kind == VAL_tensor && !t->failed)
        take_strides(t, op, args, traced(&up));
    return up;
}
