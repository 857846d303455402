// inductor_oracle.c: the same inputs to the interpreter and to generated C, a runtime that keeps
// all memory, and the comparison of every buffer.
#include "tests/unit/inductor_oracle.h"

#include "tests/unit/unit.h"

#include "core/inductor/interp.h"

#include <math.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_ALLOCS = 8192, GUARD = 64 }; // GUARD: bytes behind an allocation that nobody may write

typedef struct Memory { // one allocation of generated code
    const char *name;   // variable of call(), in order of allocation
    void *data;
    int64_t bytes;
    Storage *storage;
} Memory;

typedef struct World {
    FxRuntime rt; // first
    Oracle *o;
    InterpRun ir;
    RtValue *inputs;   // of the interpreter
    RtValue *c_inputs; // copies for generated code
    int n_inputs;
    Memory mem[MAX_ALLOCS];
    int n_mem;
    int ir_calls, c_calls;
    jmp_buf escape;
    const char *c_failure;
} World;

// --- random numbers (xorshift64*, S. Vigna)

static uint64_t next_random(uint64_t *s) {
    *s ^= *s >> 12;
    *s ^= *s << 25;
    *s ^= *s >> 27;
    return *s * UINT64_C(2685821657736338717);
}

static double random_float(uint64_t *s, OracleInputs kind) {
    static const double odd[] = {NAN,    INFINITY, -INFINITY, -0.0, 0.0,    1e-40,
                                 -1e-40, 1.0,      -1.0,      88.0, -104.0, 0.5};
    uint64_t r = next_random(s);
    if (kind == ORACLE_hostile && r % 7 == 0)
        return odd[(r >> 8) % COUNT(odd)];
    return (double)(r >> 11) * 0x1p-51 - 2;
}

static int64_t random_int(uint64_t *s, OracleInputs kind, DType d) {
    static const int64_t odd[] = {0, -1, INT64_MAX, INT64_MIN, INT32_MAX, INT32_MIN,
                                  1, 2,  -7,        127,       -128,      255};
    uint64_t r = next_random(s);
    if (d == DT_b8)
        return (int64_t)(r >> 40) & 1;
    if (kind == ORACLE_hostile)
        return r % 3 ? odd[(r >> 8) % COUNT(odd)] : (int64_t)r;
    return kind == ORACLE_small ? 0 : (int64_t)((r >> 8) % 4);
}

static Tensor flat_of(DType d, void *data, int64_t bytes) {
    Tensor t = {.dtype = d, .ndim = 1, .size = {bytes / dtype_info[d].bytes}, .stride = {1}};
    t.storage = storage_borrow(data, (size_t)bytes);
    return t;
}

static void fill(void *data, int64_t bytes, DType d, uint64_t seed, OracleInputs kind) {
    Tensor t = flat_of(d, data, bytes);
    uint64_t s = seed * UINT64_C(0x9E3779B97F4A7C15) + 1;
    next_random(&s);
    for (int64_t i = 0; i < t.size[0]; i++)
        if (dtype_is_float(d))
            tensor_set_f64(&t, i, random_float(&s, kind));
        else
            tensor_set_i64(&t, i, random_int(&s, kind, d));
    tensor_drop(&t);
}

// --- completing a parsed dump

static bool add_symbol(Oracle *o, const Expr *symbol) {
    IrModule *m = (IrModule *)o->schedule->module;
    for (int i = 0; i < m->inputs.n; i++)
        if (m->inputs.at[i].sym == symbol)
            return false;
    vec_push(o->arena, &m->inputs, (IrInput){.name = expr_name(symbol), .sym = symbol});
    return true;
}

static void add_symbols(Oracle *o, const Expr *e) {
    const Expr **found;
    int n = expr_symbols(o->arena, e, &found);
    for (int i = 0; i < n; i++)
        add_symbol(o, found[i]);
}

// A view of a concatenation begins behind those made before it: where sizes differ is the
// dimension.
static bool place_view(Oracle *o, const IrBuffer *b, Map *used) {
    Sym *sym = o->schedule->module->sym;
    const IrBuffer *owner = map_get(&o->schedule->module->buffers, b->layout->view_of);
    if (!owner || !owner->layout || owner->layout->ndim != b->layout->ndim)
        return false;
    if (b->layout->offset)
        return true;
    for (int i = 0; i < b->layout->ndim; i++) {
        if (b->layout->size[i] == owner->layout->size[i])
            continue;
        const Expr *at = map_get(used, owner->name);
        b->layout->offset = sym_mul(sym, at ? at : sym_int(sym, 0), owner->layout->stride[i]);
        map_put(used, owner->name,
                (void *)(uintptr_t)sym_add(sym, at ? at : sym_int(sym, 0), b->layout->size[i]));
        return true;
    }
    return false;
}

// Results of a fallback of several: whose they are, and which, by their order.
static void complete_items(Oracle *o) {
    Map count = {.arena = o->arena};
    for (int i = 0; i < o->schedule->nodes.n; i++) {
        const SchedNode *n = o->schedule->nodes.at[i];
        if (!n->op || n->op->cls != IR_multi_output || !n->unmet.n)
            continue;
        if (!n->op->reads_star.n)
            vec_push(o->arena, &n->op->reads_star, n->unmet.at[0].buf);
        n->op->item = (int)map_at(&count, n->unmet.at[0].buf)->i++;
    }
}

// The placed views fill their owner along one dimension.
static bool is_filled(const Map *used, const IrBuffer *owner) {
    const Expr *sum = map_get(used, owner->name);
    bool found = false;
    for (int i = 0; i < owner->layout->ndim; i++)
        found |= owner->layout->size[i] == sum;
    return found || !sum;
}

bool oracle_complete(Oracle *o) {
    complete_items(o);
    IrModule *m = (IrModule *)o->schedule->module;
    Map used = {.arena = o->arena};
    for (int i = 0; i < m->inputs.n; i++)
        if (m->inputs.at[i].buf && !m->inputs.at[i].buf->layout)
            return false;
    for (MapEntry *e = map_first(&m->buffers); e; e = map_next(&m->buffers, e)) {
        const IrBuffer *b = e->ptr;
        if (!b->layout)
            return false;
        for (int i = 0; i < b->layout->ndim; i++) {
            add_symbols(o, b->layout->size[i]);
            add_symbols(o, b->layout->stride[i]);
        }
        if (b->layout->kind == IRL_non_owning && !b->layout->view_of && b->aliases.n)
            b->layout->view_of = b->aliases.at[0];
        if (b->layout->kind == IRL_non_owning && b->layout->view_of && !place_view(o, b, &used))
            return false;
    }
    for (MapEntry *e = map_first(&m->buffers); e; e = map_next(&m->buffers, e))
        if (!is_filled(&used, e->ptr))
            return false;
    for (int i = 0; i < m->ops.n; i++)
        if (m->ops.at[i]->cls != IR_computed && !m->ops.at[i]->kernel &&
            m->ops.at[i]->cls != IR_concat && m->ops.at[i]->cls != IR_multi_output)
            m->ops.at[i]->kernel = "extern_kernels.unknown";
    return true;
}

static int64_t body_work(const Oracle *o, const LoopBody *b) {
    int64_t work = 0;
    for (int k = 0; k < b->blocks.n; k++)
        work += b->blocks.at[k].ops.n;
    for (int i = 0; i < b->n_vars; i++)
        if (__builtin_mul_overflow(work, sym_size_hint(o->schedule->module->sym, b->sizes[i], 8),
                                   &work))
            return INT64_MAX;
    return work;
}

int64_t oracle_work(const Oracle *o) {
    int64_t sum = 0;
    for (int i = 0; i < o->schedule->nodes.n; i++) {
        const SchedNode *n = o->schedule->nodes.at[i];
        for (int k = 0; k < (n->snodes.n ? n->snodes.n : 1); k++) {
            const SchedNode *one = n->snodes.n ? n->snodes.at[k] : n;
            if (one->body && __builtin_add_overflow(sum, body_work(o, one->body), &sum))
                return INT64_MAX;
        }
    }
    return sum;
}

// --- inputs and extern results

static const IrBuffer *input_buffer(const IrModule *m, int i) {
    return i < m->inputs.n ? m->inputs.at[i].buf : m->constants.at[i - m->inputs.n];
}

static bool known_symbol(void *ctx, const Expr *symbol, int64_t *v) {
    World *w = ctx;
    *v = sym_size_hint(w->o->schedule->module->sym, symbol, 5);
    return true;
}

static bool make_input(World *w, const IrBuffer *b, int i) {
    const IrLayout *l = b->layout;
    int64_t size[TENSOR_DIMS], stride[TENSOR_DIMS];
    for (int k = 0; k < l->ndim; k++)
        if (!sym_eval(l->size[k], known_symbol, w, &size[k]) ||
            !sym_eval(l->stride[k], known_symbol, w, &stride[k]))
            return false;
    for (int copy = 0; copy < 2; copy++) {
        RtValue *v = copy ? &w->c_inputs[i] : &w->inputs[i];
        if (!tensor_new_strided(&v->tensor, l->dtype, l->ndim, size, stride, w->o->diag))
            return false;
        v->kind = RT_tensor;
        fill(storage_data(v->tensor.storage), (int64_t)storage_bytes(v->tensor.storage), l->dtype,
             w->o->seed + (uint64_t)i, w->o->inputs);
    }
    return true;
}

static bool make_inputs(World *w) {
    const IrModule *m = w->o->schedule->module;
    w->n_inputs = m->inputs.n + m->constants.n;
    w->inputs = ARENA_ARRAY(w->o->arena, w->n_inputs + 1, RtValue);
    w->c_inputs = ARENA_ARRAY(w->o->arena, w->n_inputs + 1, RtValue);
    for (int i = 0; i < w->n_inputs; i++) {
        const IrBuffer *b = input_buffer(m, i);
        int64_t v = 0;
        if (b ? !make_input(w, b, i)
              : !m->inputs.at[i].sym || !sym_eval(m->inputs.at[i].sym, known_symbol, w, &v))
            return false;
        if (!b)
            w->inputs[i] = w->c_inputs[i] = (RtValue){.kind = RT_int, .i = v};
    }
    return true;
}

static uint64_t call_seed(const World *w, int call, int item) {
    return w->o->seed + 7919 * (uint64_t)(call + 1) + (uint64_t)item;
}

static void fill_result(World *w, Tensor *t, int call, int item) {
    int64_t span = 1;
    for (int i = 0; i < t->ndim; i++)
        span = t->size[i] && span ? span + (t->size[i] - 1) * t->stride[i] : 0;
    fill(tensor_data(t), span * dtype_info[t->dtype].bytes, t->dtype, call_seed(w, call, item),
         w->o->inputs == ORACLE_hostile && dtype_is_float(t->dtype) ? ORACLE_hostile
                                                                    : ORACLE_plain);
}

static bool ir_call(void *ctx, InterpRun *run, const IrOp *op) {
    World *w = ctx;
    const IrModule *m = w->o->schedule->module;
    if (!op->kernel)
        return true;
    int call = w->ir_calls++, found = 0;
    for (int i = 0; i < m->ops.n && op->outputs.n; i++) {
        const IrOp *o = m->ops.at[i];
        bool mine = o->cls == IR_multi_output && o->outputs.n && o->reads_star.n &&
                    strcmp(o->reads_star.at[0], op->outputs.at[0]->name) == 0;
        Tensor *t = mine ? interp_buffer(run, o->outputs.at[0]->name) : NULL;
        if (t)
            fill_result(w, t, call, o->item < 0 ? 0 : o->item);
        found += mine;
    }
    bool writes = op->cls != IR_scatter_fallback && op->cls != IR_index_put_fallback &&
                  op->cls != IR_inplace_bernoulli;
    Tensor *t =
        !found && writes && op->outputs.n ? interp_buffer(run, op->outputs.at[0]->name) : NULL;
    if (t)
        fill_result(w, t, call, 0);
    return true;
}

// --- the runtime of generated code

static void *c_alloc(FxRuntime *rt, int64_t bytes) {
    World *w = (World *)rt;
    ck_assert_int_lt(w->n_mem, MAX_ALLOCS);
    Memory *m = &w->mem[w->n_mem++];
    m->bytes = bytes;
    m->storage = storage_new((size_t)bytes + GUARD, w->o->diag);
    m->data = storage_data(m->storage);
    memset(m->data, 0xff, (size_t)bytes + GUARD);
    return m->data;
}

static void c_free(FxRuntime *rt, void *base) {
    (void)rt;
    (void)base;
}

static void c_call(FxRuntime *rt, const char *name, FxTensor *const out[], int32_t n_out,
                   const FxArg *args, int32_t n_args) {
    (void)name;
    (void)args;
    (void)n_args;
    World *w = (World *)rt;
    int call = w->c_calls++;
    for (int i = 0; i < n_out; i++) {
        if (!out[i]->data)
            continue;
        Tensor t = {.dtype = (DType)out[i]->dtype, .ndim = out[i]->ndim};
        memcpy(t.size, out[i]->size, sizeof t.size);
        memcpy(t.stride, out[i]->stride, sizeof t.stride);
        t.storage = storage_borrow(out[i]->data, 0);
        fill_result(w, &t, call, i);
        tensor_drop(&t);
    }
}

static void c_fail(FxRuntime *rt, const char *what) {
    World *w = (World *)rt;
    w->c_failure = arena_strdup(w->o->arena, what);
    longjmp(w->escape, 1);
}

static void c_kernel(FxRuntime *rt, const char *name, int32_t end) {
    (void)rt;
    (void)name;
    (void)end;
}

// `FxTensor buf3 = fx_empty(…` lines of call() in order are its allocations.
static void name_memory(World *w) {
    const char *text = strstr(w->o->code->text, "int call(");
    int n = 0;
    for (const char *p = text; (p = strstr(p, "FxTensor ")) != NULL; p++) {
        size_t len = strcspn(p + 9, " ");
        if (strncmp(p + 9 + len, " = fx_empty(", 12) == 0 && n < MAX_ALLOCS)
            w->mem[n++].name = arena_strndup(w->o->arena, p + 9, len);
    }
}

static bool c_run(World *w, FxTensor *out) {
    Oracle *o = w->o;
    Compiled *c = exec_compile(o->arena, o->toolchain, (Str){o->code->text, strlen(o->code->text)},
                               NULL, o->diag);
    if (!c) {
        o->failure = arena_printf(o->arena, "does not compile: %s", diag_first(o->diag));
        return false;
    }
    name_memory(w);
    FxTensor **in = ARENA_ARRAY(o->arena, w->n_inputs + 1, FxTensor *);
    for (int i = 0; i < w->n_inputs; i++) {
        in[i] = ARENA_NEW(o->arena, FxTensor);
        RtValue *v = &w->c_inputs[i];
        *in[i] = (FxTensor){.data = &v->i, .dtype = DT_i64};
        if (v->kind != RT_tensor)
            continue;
        *in[i] = (FxTensor){.data = tensor_data(&v->tensor),
                            .dtype = (int32_t)v->tensor.dtype,
                            .ndim = v->tensor.ndim};
        memcpy(in[i]->size, v->tensor.size, sizeof in[i]->size);
        memcpy(in[i]->stride, v->tensor.stride, sizeof in[i]->stride);
    }
    w->rt = (FxRuntime){.alloc = c_alloc,
                        .free = c_free,
                        .call = c_call,
                        .fail = c_fail,
                        .kernel = c_kernel,
                        .threads = 2};
    bool ok = setjmp(w->escape) == 0 && exec_entry(c)(&w->rt, in, out) == 0;
    exec_unload(c);
    return ok;
}

// --- comparison

// What nothing has written (all bits set) may be anything in memory that is used again.
static void forgive_unwritten(const Tensor *got, const Tensor *want) {
    size_t each = (size_t)dtype_info[want->dtype].bytes;
    int64_t span = 1;
    for (int i = 0; i < want->ndim; i++)
        span = want->size[i] && span ? span + (want->size[i] - 1) * want->stride[i] : 0;
    char *to = tensor_data(got);
    const char *from = tensor_data(want);
    static const char poison[8] = "\xff\xff\xff\xff\xff\xff\xff\xff";
    for (int64_t i = 0; dtype_is_float(want->dtype) && i < span; i++)
        if (memcmp(from + (size_t)i * each, poison, each) == 0)
            memcpy(to + (size_t)i * each, poison, each);
}

static void compare(World *w, const char *name, const Tensor *got, const Tensor *want) {
    Oracle *o = w->o;
    forgive_unwritten(got, want);
    double rtol, atol;
    dtype_tolerance(want->dtype, &rtol, &atol);
    rtol *= 40; // sums in float against sums in double
    atol *= 10;
    TensorDiff diff;
    o->compared++;
    tensor_diff(got, want, rtol, atol, &diff);
    if (diff.bad && !o->failure)
        o->failure =
            arena_printf(o->arena, "%s (%s): %lld of %lld differ, first at %lld: %.9g, wanted %.9g",
                         name, dtype_info[want->dtype].abbr, (long long)diff.bad,
                         (long long)diff.numel, (long long)diff.first_bad,
                         tensor_get_f64(got, diff.first_bad), tensor_get_f64(want, diff.first_bad));
}

static void check_guards(World *w) {
    char clean[GUARD];
    memset(clean, 0xff, GUARD);
    for (int i = 0; i < w->n_mem && !w->o->failure; i++)
        if (memcmp((char *)w->mem[i].data + w->mem[i].bytes, clean, GUARD) != 0)
            w->o->failure =
                arena_printf(w->o->arena, "%s is written behind its end", w->mem[i].name);
}

static void compare_memory(World *w) {
    for (int i = 0; i < w->n_mem; i++) {
        const Memory *m = &w->mem[i];
        const Tensor *t = m->name ? map_get(&w->ir.buffers, m->name) : NULL;
        if (!t)
            continue;
        Tensor got = flat_of(t->dtype, m->data, m->bytes),
               want = flat_of(t->dtype, tensor_data(t), m->bytes);
        compare(w, m->name, &got, &want);
        tensor_drop(&got);
        tensor_drop(&want);
    }
}

// A donated input may be overwritten by the plan.
static void compare_inputs(World *w) {
    const IrModule *m = w->o->schedule->module;
    for (int i = 0; i < w->n_inputs; i++)
        if (w->inputs[i].kind == RT_tensor &&
            (w->o->keep_all || i >= m->inputs.n || !m->inputs.at[i].donated))
            compare(w, arena_printf(w->o->arena, "input %d", i), &w->c_inputs[i].tensor,
                    &w->inputs[i].tensor);
}

static void compare_outputs(World *w, const FxTensor *out) {
    for (int i = 0; i < w->ir.n_outputs; i++) {
        const RtValue *v = &w->ir.outputs[i];
        if (v->kind != RT_tensor)
            continue;
        Tensor got = {.dtype = (DType)out[i].dtype, .ndim = out[i].ndim};
        ck_assert_int_eq(got.ndim, v->tensor.ndim);
        memcpy(got.size, out[i].size, sizeof got.size);
        memcpy(got.stride, out[i].stride, sizeof got.stride);
        got.storage = storage_borrow(out[i].data, 0);
        compare(w, arena_printf(w->o->arena, "output %d", i), &got, &v->tensor);
        tensor_drop(&got);
    }
}

// --- plans

static void plan_buffer(Oracle *o, MemoryPlan *p, const IrBuffer *b, bool views) {
    const IrLayout *l = b->layout;
    bool owns = l->kind == IRL_fixed || l->kind == IRL_flexible;
    if (owns && !views)
        vec_push(o->arena, &p->lines, (PlanLine){.kind = PLAN_alloc, .buf = b->name, .layout = l});
    if (l->kind == IRL_non_owning && l->view_of && views)
        vec_push(o->arena, &p->lines,
                 (PlanLine){.kind = PLAN_alias, .buf = b->name, .from = l->view_of, .layout = l});
}

// Everything is allocated at the start and nothing is freed. Fallbacks make their own results.
static MemoryPlan *plan_apart(Oracle *o) {
    MemoryPlan *p = ARENA_NEW(o->arena, MemoryPlan);
    p->inplace.arena = p->removed.arena = p->local.arena = p->split.arena = o->arena;
    const IrModule *m = o->schedule->module;
    for (int views = 0; views < 2; views++)
        for (int i = 0; i < m->ops.n; i++) {
            const IrOp *op = m->ops.at[i];
            bool ours = op->cls == IR_computed || op->cls == IR_extern_out || op->cls == IR_concat;
            for (int k = 0; ours && k < op->outputs.n; k++)
                plan_buffer(o, p, op->outputs.at[k], views);
        }
    vec_push(o->arena, &p->lines, (PlanLine){.kind = PLAN_call, .n_nodes = o->schedule->nodes.n});
    return p;
}

static bool generate(Oracle *o) {
    ScheduleRequest s = {.arena = o->arena,
                         .decisions = decisions_new(o->arena, NULL),
                         .diag = o->diag,
                         .config = o->config};
    const MemoryPlan *plan = o->keep_all ? plan_apart(o) : memory_plan(&s, o->schedule);
    CodegenRequest r = {.arena = o->arena,
                        .schedule = o->schedule,
                        .plan = plan,
                        .decisions = s.decisions,
                        .diag = o->diag,
                        .config = o->config,
                        .comments = true};
    o->code = plan ? codegen_c(&r) : NULL;
    if (!o->code)
        o->failure = arena_printf(o->arena, "no code: %s", diag_first(o->diag));
    return o->code != NULL;
}

static void run_both(World *w) {
    Oracle *o = w->o;
    w->ir = (InterpRun){.arena = o->arena,
                        .diag = o->diag,
                        .schedule = o->schedule,
                        .inputs = w->inputs,
                        .n_inputs = w->n_inputs,
                        .call = ir_call,
                        .ctx = w};
    if (!interp_run(&w->ir) && !o->expect_failure) {
        o->skipped = diag_first(o->diag);
        return;
    }
    FxTensor *out = ARENA_ARRAY(o->arena, w->ir.n_outputs + 1, FxTensor);
    if (!generate(o) || !c_run(w, out)) {
        if (!o->failure)
            o->failure = arena_printf(o->arena, "stopped: %s", w->c_failure ? w->c_failure : "?");
        return;
    }
    check_guards(w);
    if (o->keep_all)
        compare_memory(w);
    compare_inputs(w);
    compare_outputs(w, out);
}

void oracle_run(Oracle *o) {
    World *w = ARENA_NEW(o->arena, World);
    w->o = o;
    if (make_inputs(w))
        run_both(w);
    else
        o->skipped = "inputs cannot be made";
    interp_drop(&w->ir);
    for (int i = 0; i < w->n_inputs; i++) {
        if (w->inputs[i].kind == RT_tensor)
            tensor_drop(&w->inputs[i].tensor);
        if (w->c_inputs[i].kind == RT_tensor)
            tensor_drop(&w->c_inputs[i].tensor);
    }
    for (int i = 0; i < w->n_mem; i++)
        storage_drop(w->mem[i].storage);
}
