// interp_memory.c: the memory of a run: buffers made when they are first asked for, or where and
// when the plan says.
#include <string.h>

#include "core/inductor/interp_impl.h"

typedef struct Lookup {
    InterpRun *run;
    const Expr *missing;
} Lookup;

static bool find_symbol(void *ctx, const Expr *symbol, int64_t *v) {
    Lookup *l = ctx;
    const IrModule *m = l->run->schedule->module;
    for (int i = 0; i < m->inputs.n && i < l->run->n_inputs; i++)
        if (!m->inputs.at[i].buf && m->inputs.at[i].sym == symbol &&
            l->run->inputs[i].kind == RT_int) {
            *v = l->run->inputs[i].i;
            return true;
        }
    // An exported or nested graph's sizes may be no inputs of its own: its tensors tell them.
    for (int i = 0; i < m->inputs.n && i < l->run->n_inputs; i++) {
        const IrLayout *y = m->inputs.at[i].buf ? m->inputs.at[i].buf->layout : NULL;
        const RtValue *given = &l->run->inputs[i];
        for (int d = 0; y && given->kind == RT_tensor && d < y->ndim && d < given->tensor.ndim; d++)
            if (y->size[d] == symbol) {
                *v = given->tensor.size[d];
                return true;
            }
    }
    const MapEntry *e = map_find(&l->run->bound, expr_name(symbol));
    if (e)
        *v = e->i;
    else
        l->missing = symbol;
    return e != NULL;
}

void interp_bind(InterpRun *run, const Expr *symbol, int64_t v) {
    map_put_int(&run->bound, expr_name(symbol), v);
}

bool interp_size(InterpRun *run, const Expr *e, int64_t *out) {
    Lookup l = {.run = run};
    if (expr_int(e, out) || sym_eval(e, find_symbol, &l, out))
        return true;
    if (l.missing)
        diag_fail(run->diag, "the size symbol %s has no value", expr_name(l.missing));
    else
        diag_fail(run->diag, "cannot evaluate %s", sym_str(run->arena, e));
    return false;
}

static const char *real_name(const Schedule *s, const char *name) {
    for (int i = 0; i < 64; i++) {
        const char *real = map_get(&s->mutation_real_name, name);
        if (!real)
            break;
        name = real;
    }
    return name;
}

bool interp_sizes(InterpRun *run, const Expr *const *e, int n, int64_t *out) {
    for (int i = 0; i < n; i++)
        if (!interp_size(run, e[i], &out[i]))
            return false;
    return true;
}

static Tensor *put(InterpRun *run, const char *name, Tensor t) {
    Tensor *at = ARENA_NEW(run->arena, Tensor);
    *at = t;
    map_put(&run->buffers, name, at);
    return at;
}

static void poison(const Tensor *t) {
    memset(storage_data(t->storage), 0xff, storage_bytes(t->storage)); // NaN, -1
}

static bool fresh(InterpRun *run, const IrLayout *l, Tensor *t) {
    int64_t size[TENSOR_DIMS], stride[TENSOR_DIMS];
    if (l->ndim > TENSOR_DIMS || !interp_sizes(run, l->size, l->ndim, size) ||
        !interp_sizes(run, l->stride, l->ndim, stride) ||
        !tensor_new_strided(t, l->dtype, l->ndim, size, stride, run->diag))
        return false;
    poison(t);
    return true;
}

static void count(InterpRun *run, const Tensor *t) {
    run->bytes += (int64_t)storage_bytes(t->storage);
    if (run->bytes > run->peak_bytes)
        run->peak_bytes = run->bytes;
}

// Elements from the first of a tensor to behind its last.
static int64_t span(const Tensor *t) {
    int64_t n = 1;
    for (int i = 0; i < t->ndim; i++)
        n = t->size[i] && n ? n + (t->size[i] - 1) * t->stride[i] : 0;
    return n;
}

// What has no elements lies anywhere.
static bool lies_within(const Tensor *t) {
    int64_t last, bytes;
    return span(t) == 0 || (t->offset >= 0 && !__builtin_add_overflow(t->offset, span(t), &last) &&
                            !__builtin_mul_overflow(last, dtype_info[t->dtype].bytes, &bytes) &&
                            bytes <= (int64_t)storage_bytes(t->storage));
}

// Other memory of the same storage, at `offset` behind base's first element.
static bool view(InterpRun *run, const IrLayout *l, const Tensor *base, const Expr *offset,
                 Tensor *t) {
    *t = *base;
    t->dtype = l->dtype;
    t->ndim = l->ndim;
    int64_t at = 0;
    bool ok = l->ndim <= TENSOR_DIMS && interp_sizes(run, l->size, l->ndim, t->size) &&
              interp_sizes(run, l->stride, l->ndim, t->stride) &&
              (!offset || interp_size(run, offset, &at));
    t->offset += at;
    if (ok && !lies_within(t)) {
        diag_fail(run->diag, "a view reaches beyond the memory that it is of");
        ok = false;
    }
    storage_keep(t->storage);
    if (!ok)
        tensor_drop(t);
    return ok;
}

// What no line of a plan makes: results of library calls, and what lives inside of a loop nest.
static bool is_made_without_plan(const IrBuffer *b) {
    switch (b->op ? b->op->cls : IR_computed) {
    case IR_extern_alloc:
    case IR_fallback:
    case IR_multi_output:
        return true;
    default:
        return false;
    }
}

static Tensor *make(InterpRun *run, const char *name, const IrBuffer *b) {
    bool passing = run->plan && map_find(&run->plan->removed, name);
    Tensor t;
    if (run->plan && !passing && !is_made_without_plan(b)) {
        diag_fail(run->diag, "%s has no memory at this place of the plan", name);
        return NULL;
    }
    if (!fresh(run, b->layout, &t))
        return NULL;
    if (passing)
        vec_push(run->arena, &run->passing, name);
    else
        count(run, &t);
    return put(run, name, t);
}

// Makes the memory of a buffer when it is first asked for; depth ends a circle of owners.
static Tensor *buffer_at(InterpRun *run, const char *name, int depth) {
    name = real_name(run->schedule, name);
    Tensor *known = map_get(&run->buffers, name);
    if (known || depth > 64)
        return known;
    const IrBuffer *b = map_get(&run->schedule->module->buffers, name);
    const IrLayout *l = b ? b->layout : NULL;
    if (!l || l->kind == IRL_none || l->kind == IRL_multi_output)
        return NULL;
    if (l->kind == IRL_mutation && l->view_of)
        return buffer_at(run, l->view_of, depth + 1);
    if (l->kind != IRL_non_owning || !l->view_of)
        return make(run, name, b);
    const Tensor *base = buffer_at(run, l->view_of, depth + 1);
    Tensor t;
    return base && view(run, l, base, l->offset, &t) ? put(run, name, t) : NULL;
}

Tensor *interp_buffer(InterpRun *run, const char *name) {
    return buffer_at(run, name, 0);
}

bool interp_seen(InterpRun *run, const IrArg *a, Tensor *out) {
    const Tensor *t = interp_buffer(run, a->buf);
    if (!t) {
        if (!run->diag->errors)
            diag_fail(run->diag, "%s is no buffer", a->buf);
        return false;
    }
    if (!a->view) {
        *out = tensor_keep(t);
        return true;
    }
    const IrLayout l = {.dtype = a->view->dtype,
                        .ndim = a->view->ndim,
                        .size = a->view->size,
                        .stride = a->view->stride};
    return view(run, &l, t, a->view->offset, out);
}

// Symbols that only an expression tells: `2*s0`.
static void solve_symbols(InterpRun *run) {
    const IrModule *m = run->schedule->module;
    for (bool more = true; more;) {
        more = false;
        for (int i = 0; i < m->inputs.n && i < run->n_inputs; i++) {
            const IrLayout *y = m->inputs.at[i].buf ? m->inputs.at[i].buf->layout : NULL;
            const RtValue *given = &run->inputs[i];
            int64_t v;
            for (int d = 0;
                 y && given->kind == RT_tensor && d < y->ndim && d < given->tensor.ndim; d++) {
                Lookup l = {.run = run};
                const Expr *x = sym_one_unknown(y->size[d], find_symbol, &l);
                if (!x || !sym_solve(y->size[d], x, given->tensor.size[d], find_symbol, &l, &v))
                    continue;
                interp_bind(run, x, v);
                more = true;
            }
        }
    }
}

bool memory_begin(InterpRun *run) {
    const IrModule *m = run->schedule->module;
    run->buffers = (Map){.arena = run->arena};
    run->bound = (Map){.arena = run->arena};
    if (run->n_inputs < m->inputs.n + m->constants.n) {
        diag_fail(run->diag, "%d inputs and constants are given, %d are wanted", run->n_inputs,
                  m->inputs.n + m->constants.n);
        return false;
    }
    solve_symbols(run);
    for (int i = 0; i < m->inputs.n + m->constants.n; i++) {
        const IrBuffer *b =
            i < m->inputs.n ? m->inputs.at[i].buf : m->constants.at[i - m->inputs.n];
        if (!b)
            continue;
        const char *name = i < m->inputs.n ? m->inputs.at[i].name : b->name;
        if (run->inputs[i].kind == RT_float) {
            Tensor number;
            if (!tensor_new(&number, DT_f64, 0, NULL, run->diag))
                return false;
            tensor_set_f64(&number, 0, run->inputs[i].f);
            put(run, name, number);
            continue;
        }
        if (run->inputs[i].kind != RT_tensor) {
            diag_fail(run->diag, "the input %s is no tensor", name);
            return false;
        }
        put(run, name, tensor_keep(&run->inputs[i].tensor));
    }
    return true;
}

// --- lines of a plan

// Its memory is others' from now on, or nobody's: nothing may be read there again.
static void release(InterpRun *run, const char *name) {
    Tensor *t = map_get(&run->buffers, name);
    if (!t)
        return;
    if (storage_refs(t->storage) == 1)
        run->bytes -= (int64_t)storage_bytes(t->storage);
    tensor_drop(t);
    map_remove(&run->buffers, name);
}

static bool reuse(InterpRun *run, const PlanLine *l) {
    const Tensor *from = map_get(&run->buffers, real_name(run->schedule, l->from));
    Tensor t;
    if (!from || !l->layout || !view(run, l->layout, from, NULL, &t)) {
        if (!run->diag->errors)
            diag_fail(run->diag, "the plan takes the memory of %s, which has none", l->from);
        return false;
    }
    if (!l->inplace && !l->keep_from)
        poison(&t);
    put(run, l->buf, t);
    if (!l->inplace && !l->keep_from)
        release(run, l->from);
    else if (!l->keep_from)
        vec_push(run->arena, &run->passing, l->from); // read until the kernel is through
    return true;
}

static bool alias(InterpRun *run, const PlanLine *l) {
    const Tensor *owner = buffer_at(run, l->from, 0);
    Tensor t;
    if (!owner || !l->layout || !view(run, l->layout, owner, l->layout->offset, &t))
        return false;
    put(run, l->buf, t);
    return true;
}

bool memory_line(InterpRun *run, const PlanLine *l) {
    Tensor t;
    switch (l->kind) {
    case PLAN_alloc:
        if (!l->layout || !fresh(run, l->layout, &t))
            return false;
        count(run, &t);
        put(run, l->buf, t);
        return true;
    case PLAN_reuse:
        return reuse(run, l);
    case PLAN_alias:
        return alias(run, l);
    case PLAN_free:
        release(run, l->buf);
        return true;
    case PLAN_call:
    case PLAN_del_input:
        break;
    }
    return true;
}

void memory_after_call(InterpRun *run) {
    for (int i = 0; i < run->passing.n; i++)
        release(run, run->passing.at[i]);
    run->passing.n = 0;
}
