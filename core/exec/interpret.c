// interpret.c: the rungs ir and ir_pre_fusion: the loop IR by its interpreter, library calls by the
// reference kernels. Generated code and its runtime are not used.
#include <stdlib.h>
#include <string.h>

#include "core/base/file.h"
#include "core/exec/internal.h"
#include "core/inductor/interp.h"
#include "core/ops/out.h"

enum { MAX_RUNS = 1000 };

typedef struct Loops {
    LoopRun *run;
    Arena *arena; // of the results
    EagerCtx eager;
    Generator generator;
    Map results;   // buffer of a call -> Results *
    Arena scratch; // of one library call
    int64_t *ns;   // of each node in order of running; NULL: not wanted
    const char **names;
    int64_t began;    // of the node that runs
    InterpRun interp; // the run under way
    Arena memory;     // of that run
    int n_nodes;      // that have run
} Loops;

// The operations that name single results of a call.
typedef struct Results {
    VEC(const IrOp *) ops;
} Results;

static void find_results(Loops *l, Arena *a, const IrModule *m) {
    l->results.arena = a;
    for (int i = 0; i < m->ops.n; i++) {
        const IrOp *op = m->ops.at[i];
        for (int k = 0; k < op->nested.n; k++)
            find_results(l, a, op->nested.at[k].module);
        if (op->cls != IR_multi_output || !op->reads_star.n || !op->outputs.n)
            continue;
        MapEntry *e = map_at(&l->results, op->reads_star.at[0]);
        if (!e->ptr)
            e->ptr = ARENA_NEW(a, Results);
        vec_push(a, &((Results *)e->ptr)->ops, op);
    }
}

// --- arguments

static bool take_value(Loops *l, InterpRun *run, const Value *v, RtValue *out) {
    if (v->kind == VAL_sym) {
        out->kind = RT_int;
        return interp_size(run, v->sym, &out->i);
    }
    if (v->kind == VAL_list || v->kind == VAL_tuple) {
        *out = (RtValue){
            .kind = RT_list, .n = v->n, .at = ARENA_ARRAY(&l->scratch, v->n + 1, RtValue)};
        for (int i = 0; i < v->n; i++)
            if (!take_value(l, run, &v->at[i], &out->at[i]))
                return false;
        return true;
    }
    *out = rt_of_value(&l->scratch, v);
    return true;
}

static bool take_arg(Loops *l, InterpRun *run, const IrArg *a, RtValue *out) {
    if (a->n_items) {
        *out = (RtValue){.kind = RT_list,
                         .n = a->n_items,
                         .at = ARENA_ARRAY(&l->scratch, a->n_items + 1, RtValue)};
        for (int i = 0; i < a->n_items; i++)
            if (!take_arg(l, run, &a->items[i], &out->at[i]))
                return false;
        return true;
    }
    if (!a->buf)
        return take_value(l, run, &a->value, out);
    Tensor seen;
    if (!interp_seen(run, a, &seen))
        return false;
    if (!a->number) {
        *out = (RtValue){.kind = RT_tensor, .tensor = seen};
        return true;
    }
    bool one = tensor_numel(&seen) == 1;
    if (one)
        *out = (RtValue){.kind = RT_float, .f = tensor_get_f64(&seen, 0)};
    else
        diag_tool(run->diag, "%s is no number", a->buf);
    tensor_drop(&seen);
    return one;
}

static int arg_index(const Op *op, const IrArg *a, int position) {
    for (int i = 0; a->kw && i < op->n_args; i++)
        if (!strcmp(op->args[i].name, a->kw))
            return i;
    return a->kw || position >= op->n_args ? -1 : position;
}

static bool bind(Loops *l, InterpRun *run, const IrOp *call, const Op *op, RtValue *bound) {
    for (int i = 0; i < op->n_args; i++)
        bound[i] = rt_of_value(&l->scratch, &op->args[i].dflt);
    for (int i = 0; i < call->args.n; i++) {
        int k = arg_index(op, &call->args.at[i], i);
        if (k < 0) {
            diag_tool(run->diag, "%s has no argument %s", call->kernel,
                      call->args.at[i].kw ? call->args.at[i].kw : "at that position");
            return false;
        }
        if (!take_arg(l, run, &call->args.at[i], &bound[k]))
            return false;
        extern_settle_ints(&l->scratch, &op->args[k], &bound[k]);
    }
    return true;
}

// --- results

static bool writes_arguments(const IrOp *op) {
    const IrLayout *l = op->outputs.n ? op->outputs.at[0]->layout : NULL;
    return op->cls == IR_scatter_fallback || op->cls == IR_index_put_fallback ||
           op->cls == IR_inplace_bernoulli || (l && l->kind == IRL_none);
}

// Names of the buffers that get the results, by place; NULL: nobody wants it.
static int wanted(Loops *l, const IrOp *call, const char *name[], int max) {
    const Results *r = call->outputs.n ? map_get(&l->results, call->outputs.at[0]->name) : NULL;
    int n = 0;
    for (int i = 0; r && i < r->ops.n; i++) {
        int item = r->ops.at[i]->item < 0 ? 0 : r->ops.at[i]->item;
        if (item >= max)
            continue;
        name[item] = r->ops.at[i]->outputs.at[0]->name;
        n = item >= n ? item + 1 : n;
    }
    if (n || writes_arguments(call))
        return n;
    name[0] = call->outputs.n ? call->outputs.at[0]->name : NULL;
    return name[0] != NULL;
}

// An `out` form takes the memory that is there as its last arguments.
static bool bind_out(InterpRun *run, const Op *op, const char *const name[], int n,
                     RtValue *bound) {
    int first = op->n_args - n;
    for (int i = 0; i < n; i++)
        if (first + i < 0 || !op->args[first + i].written || !name[i])
            return true;
    for (int i = 0; i < n; i++) {
        const Tensor *t = interp_buffer(run, name[i]);
        if (!t)
            return false;
        bound[first + i] = (RtValue){.kind = RT_tensor, .tensor = tensor_keep(t)};
    }
    return true;
}

// The symbols that the results of a call tell, before anything is made that uses them.
static bool bind_results(InterpRun *run, const IrOp *call, const char *const name[], int n,
                         const RtValue *results, int have) {
    for (int i = 0; i < call->binds.n; i++) {
        const IrBinding *b = &call->binds.at[i];
        int at = 0;
        while (at < n && !(name[at] && b->buf && !strcmp(name[at], b->buf)))
            at++;
        const RtValue *v = at < n && at < have ? &results[at] : NULL;
        if (v && v->kind == RT_tensor && b->dim >= 0 && b->dim < v->tensor.ndim)
            interp_bind(run, b->symbol, v->tensor.size[b->dim]);
        else if (v && b->dim < 0 && (v->kind == RT_int || v->kind == RT_bool))
            interp_bind(run, b->symbol, v->kind == RT_bool ? v->b : v->i);
        else {
            diag_tool(run->diag, "%s does not tell what %s is",
                      call->kernel ? call->kernel : call->name, expr_name(b->symbol));
            return false;
        }
    }
    return true;
}

static bool bind_element(InterpRun *run, const IrOp *call) {
    Tensor seen;
    if (call->binds.n != 1 || call->args.n != 1 || !call->args.at[0].buf) {
        diag_tool(run->diag, "%s is no number of one buffer", call->name);
        return false;
    }
    if (!interp_seen(run, &call->args.at[0], &seen))
        return false;
    if (tensor_numel(&seen) != 1) {
        diag_tool(run->diag, "%s asks for the number of a tensor of several", call->name);
        tensor_drop(&seen);
        return false;
    }
    interp_bind(run, call->binds.at[0].symbol, tensor_get_i64(&seen, 0));
    tensor_drop(&seen);
    return true;
}

static bool deliver(InterpRun *run, const IrOp *call, const char *name, const RtValue *from) {
    Tensor *to = interp_buffer(run, name);
    if (!to || from->kind != RT_tensor || !tensor_same_size(to, &from->tensor)) {
        if (to && from->kind == RT_none)
            return true; // left out by a mask of the op, and nobody reads it
        if (!run->diag->errors)
            diag_tool(run->diag, "%s gives a result of another shape than planned",
                      call->kernel ? call->kernel : call->name);
        return false;
    }
    if (tensor_data(to) != tensor_data(&from->tensor) || to->dtype != from->tensor.dtype)
        tensor_copy(to, &from->tensor);
    return true;
}

static bool deliver_all(InterpRun *run, const IrOp *call, const Op *op, const RtValue *results,
                        const char *const name[], int n) {
    int have = op->n_returns;
    if (have == 1 && results[0].kind == RT_list) {
        have = results[0].n;
        results = results[0].at;
    }
    if (!bind_results(run, call, name, n, results, have))
        return false;
    for (int i = 0; i < n; i++) {
        bool number = i < have && (results[i].kind == RT_int || results[i].kind == RT_bool);
        if (number && call->binds.n)
            continue;
        if (i >= have) {
            diag_tool(run->diag, "%s gives %d results, %d are wanted", call->kernel, have, n);
            return false;
        }
        if (name[i] && !deliver(run, call, name[i], &results[i]))
            return false;
    }
    return true;
}

// A call of nested graphs: its results go where those of a library call go.
static bool call_nested(Loops *l, InterpRun *run, const IrOp *call) {
    enum { MAX_RESULTS = 64 };
    Arena own = {0}; // the nested runs use the scratch
    const char *name[MAX_RESULTS] = {NULL};
    RtValue *args = ARENA_ARRAY(&own, call->args.n + 1, RtValue), *results = NULL;
    int want = wanted(l, call, name, MAX_RESULTS), n = 0;
    bool ok = true;
    for (int i = 0; ok && i < call->args.n; i++)
        ok = take_arg(l, run, &call->args.at[i], &args[i]);
    ok = ok && interpret_nested(run, call, args, &own, &results, &n) &&
         bind_results(run, call, name, want, results, n);
    for (int i = 0; ok && i < want; i++)
        ok = !name[i] || (i < n && deliver(run, call, name[i], &results[i]));
    for (int i = 0; i < n; i++)
        rt_drop(&results[i]);
    for (int i = 0; i < call->args.n; i++)
        rt_drop(&args[i]);
    arena_free(&own);
    return ok;
}

static bool call_library(void *ctx, InterpRun *run, const IrOp *call) {
    enum { MAX_RESULTS = 64 };
    Loops *l = ctx;
    if (call->higher)
        return call_nested(l, run, call);
    if (call->cls == IR_dynamic_scalar)
        return bind_element(run, call);
    if (!call->kernel)
        return true;
    const Op *op = call->def ? call->def : extern_op(call->kernel);
    if (!op || !eager_has(op_row(op))) {
        diag_tool(run->diag, "the loop IR calls %s, which cannot be run here", call->kernel);
        return false;
    }
    ArenaMark mark = arena_mark(&l->scratch);
    const char *name[MAX_RESULTS] = {NULL};
    int n = wanted(l, call, name, MAX_RESULTS);
    RtValue *bound = ARENA_ARRAY(&l->scratch, op->n_args + 1, RtValue);
    RtValue *results = ARENA_ARRAY(&l->scratch, op->n_returns + 1, RtValue);
    bool ok = bind(l, run, call, op, bound) && bind_out(run, op, name, n, bound) &&
              eager_call(&l->eager, op, bound, results) &&
              deliver_all(run, call, op, results, name, n);
    for (int i = 0; i < op->n_returns; i++)
        rt_drop(&results[i]);
    for (int i = 0; i < op->n_args; i++)
        rt_drop(&bound[i]);
    arena_rewind(&l->scratch, mark);
    return ok;
}

// --- runs

static void before_node(void *ctx, const SchedNode *n) {
    Loops *l = ctx;
    if (l->run->where)
        strncpy(l->run->where, n->name, EXEC_WHERE_BYTES - 1);
    if (l->ns)
        l->began = clock_ns();
}

// By its operations: a schedule that was read from text knows no more of its buffers.
static void show_buffers(Loops *l, const SchedNode *n) {
    for (int i = 0; l->run->tap && i < n->snodes.n; i++)
        if (n->snodes.at[i] != n)
            show_buffers(l, n->snodes.at[i]);
    for (int i = 0; l->run->tap && n->op && i < n->op->outputs.n; i++) {
        const char *name = n->op->outputs.at[i]->name;
        const Tensor *t = interp_buffer(&l->interp, name);
        if (t && t->storage)
            l->run->tap(l->run->tap_ctx, name, t);
    }
}

static void after_node(void *ctx, const SchedNode *n) {
    Loops *l = ctx;
    show_buffers(l, n);
    if (!l->ns)
        return;
    l->names[l->n_nodes] = n->name;
    l->ns[l->n_nodes++] = clock_ns() - l->began;
}

// outputs NULL: they are dropped.
static bool run_once(Loops *l, RtValue **outputs, int *n) {
    l->memory = (Arena){0};
    l->interp = (InterpRun){.arena = &l->memory,
                            .diag = l->eager.diag,
                            .schedule = l->run->schedule,
                            .plan = l->run->plan,
                            .inputs = l->run->inputs,
                            .n_inputs = l->run->n_in,
                            .call = call_library,
                            .before_node = before_node,
                            .on_node = after_node,
                            .ctx = l,
                            .cancel = l->run->cancel};
    generator_seed(&l->generator, l->run->seed);
    l->n_nodes = 0;
    InterpRun *run = &l->interp;
    bool ok = interp_run(run);
    if (ok && outputs) {
        *n = run->n_outputs;
        *outputs = ARENA_ARRAY(l->arena, *n + 1, RtValue);
        memcpy(*outputs, run->outputs, (size_t)*n * sizeof **outputs);
        run->n_outputs = 0; // the caller's from now on
    }
    l->run->peak_bytes = run->peak_bytes;
    interp_drop(run);
    arena_free(&l->memory);
    return ok;
}

static bool time_runs(Loops *l, Arena *a, Timing *t) {
    int nodes = l->run->schedule->nodes.n, n = 0;
    int64_t *whole = ARENA_ARRAY(a, MAX_RUNS, int64_t);
    int64_t *last = l->ns = ARENA_ARRAY(a, nodes + 1, int64_t);
    l->names = ARENA_ARRAY(a, nodes + 1, const char *);
    VEC(int64_t *) by_run = {0};
    for (int64_t begin = clock_ns();
         n < MAX_RUNS && (n < l->run->repeat || clock_ns() - begin < 300000000); n++) {
        int64_t start = clock_ns();
        if (!run_once(l, NULL, NULL))
            return false;
        whole[n] = clock_ns() - start;
        int64_t *row = ARENA_ARRAY(a, nodes + 1, int64_t);
        memcpy(row, last, (size_t)nodes * sizeof *row);
        vec_push(a, &by_run, row);
    }
    *t = (Timing){.runs = n, .kernels = ARENA_ARRAY(a, nodes + 1, KernelTime)};
    int64_t *one = ARENA_ARRAY(a, MAX_RUNS, int64_t);
    for (int k = 0; k < l->n_nodes; k++) {
        for (int i = 0; i < n; i++)
            one[i] = by_run.at[i][k];
        KernelTime *kernel = &t->kernels[t->n_kernels++];
        kernel->name = l->names[k];
        kernel->runs = n;
        timing_quantiles(one, n, &kernel->median_ns, &kernel->min_ns, &kernel->p90_ns);
    }
    timing_quantiles(whole, n, &t->median_ns, &t->min_ns, &t->p90_ns);
    t->noisy = (double)t->p90_ns > 1.3 * (double)t->median_ns;
    return true;
}

bool exec_interpret(LoopRun *run, Arena *a, Diag *d) {
    Loops *l = ARENA_NEW(a, Loops);
    l->run = run;
    l->arena = a;
    l->eager = (EagerCtx){
        .arena = &l->scratch, .diag = d, .threads = run->threads, .generator = &l->generator};
    find_results(l, a, run->schedule->module);
    bool ok = run_once(l, &run->outputs, &run->n_out);
    if (ok && run->repeat) {
        if (run->before_timing)
            run->before_timing(run->ctx);
        ok = time_runs(l, a, &run->timing);
    }
    arena_free(&l->scratch);
    return ok;
}
