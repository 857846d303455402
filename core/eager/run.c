// run.c: the interpreter of an FX graph: node by node, at the level of Dynamo (torch functions,
// methods, Python operators) and of ATen alike. A node's tensors are dropped after their last use.
// Symbolic sizes are read off the inputs.
#include "core/eager/higher.h"

#include <string.h>

#include "core/base/file.h"
#include "core/ops/out.h"
#include "core/ops/torch.h"

typedef struct Slot {
    Value v;   // the node's value
    bool made; // it was computed and not yet dropped
    int last;  // position of the last node that uses it
} Slot;

enum { MAX_SYMBOLS = 1024 };

typedef struct Interp {
    Eager x;
    EagerRun *run;
    const Graph *g;
    Slot *slots;          // by node id
    Map held;             // Live * -> slots that hold it
    const Expr **symbols; // (MAX_SYMBOLS) known size symbols and their values; NULL: none yet
    int64_t *sizes;
    int n_symbols;
} Interp;

static void hold(Interp *in, const Value *v, int by) {
    Live *l = live_of(v);
    if (l) {
        MapEntry *e = map_at_id(&in->held, (uint64_t)(uintptr_t)l);
        e->i += by;
        if (e->i == 0)
            tensor_drop(&l->t);
        return;
    }
    if (v->kind == VAL_list || v->kind == VAL_tuple || v->kind == VAL_slice || v->kind == VAL_dict)
        for (int i = 0; i < v->n; i++)
            hold(in, &v->at[i], by);
}

static void drop_slot(Interp *in, const Node *n) {
    Slot *s = &in->slots[n->id];
    if (!s->made)
        return;
    hold(in, &s->v, -1);
    s->made = false;
    s->v = val_none();
}

// symbols

static bool symbol_value(void *ctx, const Expr *symbol, int64_t *v) {
    const Interp *in = ctx;
    for (int i = 0; i < in->n_symbols; i++)
        if (in->symbols[i] == symbol) {
            *v = in->sizes[i];
            return true;
        }
    return false;
}

static void learn(Interp *in, const Expr *e, int64_t v) {
    int64_t known;
    if (!expr_name(e) || symbol_value(in, e, &known) || in->n_symbols == MAX_SYMBOLS)
        return;
    if (!in->symbols) {
        in->symbols = ARENA_ARRAY(in->x.arena, MAX_SYMBOLS, const Expr *);
        in->sizes = ARENA_ARRAY(in->x.arena, MAX_SYMBOLS, int64_t);
    }
    in->symbols[in->n_symbols] = e;
    in->sizes[in->n_symbols++] = v;
}

// `2*s0` tells s0.
static void learn_size(Interp *in, const Expr *e, int64_t v) {
    bool solve = !expr_name(e) && expr_has_symbols(e);
    const Expr *x = solve ? sym_one_unknown(e, symbol_value, in) : e;
    if (x && (!solve || sym_solve(e, x, v, symbol_value, in, &v)))
        learn(in, x, v);
}

static void learn_symbols(Interp *in, const Node *n, const Value *v) {
    if (n->val.kind == VAL_sym && v->kind == VAL_int)
        learn(in, n->val.sym, v->i);
    const Tensor *t = tensor_at(v);
    if (n->val.kind == VAL_tensor && t && n->val.tensor->ndim == t->ndim)
        for (int i = 0; i < t->ndim; i++) {
            if (n->val.tensor->size)
                learn_size(in, n->val.tensor->size[i], t->size[i]);
            if (n->val.tensor->stride && n->val.tensor->stride[i])
                learn(in, n->val.tensor->stride[i], t->stride[i]);
        }
}

// A graph's argument with nodes and symbols replaced by what they are.
static bool evaluate(Interp *in, const Value *v, Value *out) {
    *out = *v;
    switch (v->kind) {
    case VAL_node:
        if (!in->slots[v->node->id].made)
            return eager_fail(&in->x, "RuntimeError: '%s' is used before it has a value",
                              v->node->name);
        *out = in->slots[v->node->id].v;
        return true;
    case VAL_sym: {
        int64_t i;
        if (!sym_eval(v->sym, symbol_value, in, &i))
            return eager_fail(&in->x, "RuntimeError: the size %s is unknown",
                              sym_str(in->x.arena, v->sym));
        *out = val_int(i);
        return true;
    }
    case VAL_dtype:
        if (in->x.in_f64 && dtype_is_float(v->dtype))
            out->dtype = DT_f64;
        return true;
    case VAL_list:
    case VAL_tuple:
    case VAL_slice:
    case VAL_dict:
        *out = val_list(in->x.arena, v->kind, v->n);
        for (int i = 0; i < v->n; i++)
            if (!evaluate(in, &v->at[i], &out->at[i]))
                return false;
        return true;
    default:
        return true;
    }
}

// node kinds

// Inputs stay until the end: they may be reshaped, or be the same as a later one.
static bool is_kept(const Interp *in, const Node *n) {
    return n->op == FX_placeholder && ((in->run->after && !in->run->in_f64) || in->run->same);
}

static const Node *placeholder_at(const Graph *g, int index) {
    const Node *n = g->first;
    while (n && (n->op != FX_placeholder || index-- > 0))
        n = n->next;
    return n;
}

static int same_as(const EagerRun *run, int index) {
    for (int i = 0; run->same && i < index; i++)
        if (run->same[i] == -2)
            return -1;
    return run->same ? run->same[index] : -1;
}

static void tell_inputs(Interp *in) {
    int i = 0;
    memcpy(in->run->after, in->run->inputs, (size_t)in->run->n_inputs * sizeof *in->run->after);
    for (const Node *n = in->g->first; n && i < in->run->n_inputs; n = n->next) {
        if (n->op != FX_placeholder)
            continue;
        const Tensor *t = in->slots[n->id].made ? tensor_at(&in->slots[n->id].v) : NULL;
        RtValue *v = &in->run->after[i++];
        if (t && v->kind == RT_tensor && t->storage == v->tensor.storage)
            v->tensor = *t;
    }
}

static bool run_placeholder(Interp *in, const Node *n, int index, Value *out) {
    int same = same_as(in->run, index);
    if (same >= 0 && same < index) {
        *out = in->slots[placeholder_at(in->g, same)->id].v;
        return true;
    }
    if (index >= in->run->n_inputs)
        return eager_fail(&in->x,
                          "RuntimeError: the graph takes '%s' as input %d, but %d were given",
                          n->name, index, in->run->n_inputs);
    Value v = value_from_rt(&in->x, in->x.arena, &in->run->inputs[index]);
    const Tensor *t = tensor_at(&v);
    if (t && in->x.in_f64 && dtype_is_float(t->dtype) && t->dtype != DT_f64) {
        Tensor *wide = eager_contiguous(&in->x, t, DT_f64);
        if (!wide)
            return false;
        v = tensor_value(&in->x, wide);
    }
    if (t && !tensor_in_bounds(t))
        return eager_fail(&in->x, "RuntimeError: input '%s' reaches out of its storage", n->name);
    *out = v;
    learn_symbols(in, n, out);
    return true;
}

static bool run_get_attr(Interp *in, const Node *n, Value *out) {
    if (n->val.kind == VAL_graph) {
        *out = n->val;
        return true;
    }
    for (int i = 0; i < in->g->consts.n; i++) {
        const GraphConst *c = &in->g->consts.at[i];
        if (strcmp(c->name, n->target) != 0 || !c->tensor)
            continue;
        const Tensor *t = c->tensor;
        *out = eager_view(&in->x, t);
        if (in->x.in_f64 && dtype_is_float(t->dtype) && t->dtype != DT_f64) {
            Tensor *wide = eager_contiguous(&in->x, t, DT_f64);
            *out = wide ? tensor_value(&in->x, wide) : val_none();
        }
        return eager_ok(&in->x);
    }
    return eager_fail(&in->x, "RuntimeError: the value of attribute '%s' is unknown", n->target);
}

typedef struct Args {
    Value *args, *kwargs;
    const char **kw;
} Args;

static bool node_args(Interp *in, const Node *n, Args *a) {
    Arena *arena = in->x.arena;
    a->args = ARENA_ARRAY(arena, n->n_args + 1, Value);
    a->kwargs = ARENA_ARRAY(arena, n->n_kwargs + 1, Value);
    a->kw = ARENA_ARRAY(arena, n->n_kwargs + 1, const char *);
    for (int i = 0; i < n->n_args; i++)
        if (!evaluate(in, &n->args[i], &a->args[i]))
            return false;
    for (int i = 0; i < n->n_kwargs; i++) {
        a->kw[i] = n->kwargs[i].name;
        if (!evaluate(in, &n->kwargs[i].value, &a->kwargs[i]))
            return false;
    }
    return true;
}

static bool run_op(Interp *in, const Node *n, const Args *a, Value *out) {
    Value *bound = ARENA_ARRAY(in->x.arena, n->def->n_args + 1, Value);
    return op_bind(n->def, a->args, n->n_args, a->kw, a->kwargs, n->n_kwargs, bound, in->x.arena,
                   in->x.c->diag, in->x.c->at) &&
           eager_op(&in->x, n->def, bound, out);
}

// A step's argument with references to earlier steps replaced by what they gave.
static Value settled(Interp *in, const Value *v, const Value *done) {
    int step;
    if (torch_step_ref(v, &step))
        return done[step];
    if (v->kind != VAL_list && v->kind != VAL_tuple)
        return *v;
    Value list = val_list(in->x.arena, v->kind, v->n);
    for (int i = 0; i < v->n; i++)
        list.at[i] = settled(in, &v->at[i], done);
    return list;
}

// torch.tensor([[1, 2], [3, 4]]); false if the data is no list of numbers.
static bool run_literal(Interp *in, const Node *n, const Args *a, Value *out) {
    bool list =
        a->args && n->n_args == 1 && (a->args[0].kind == VAL_list || a->args[0].kind == VAL_tuple);
    if (!list || strcmp(n->target, "torch.tensor") != 0)
        return false;
    DType dtype = DT_none;
    for (int i = 0; i < n->n_kwargs; i++)
        if (strcmp(a->kw[i], "dtype") == 0 && a->kwargs[i].kind == VAL_dtype)
            dtype = a->kwargs[i].dtype;
    Tensor shape;
    if (!ops_literal_shape(&a->args[0], dtype, &shape))
        return false;
    Tensor *t = eager_new(&in->x, shape.dtype, shape.ndim, shape.size);
    if (!t)
        return false;
    ops_literal_fill(t, &a->args[0]);
    *out = tensor_value(&in->x, t);
    return true;
}

// A call of Python's torch: resolved to ops on the values at hand, then run op by op.
static bool run_torch(Interp *in, const Node *n, const Args *a, Value *out) {
    Arena *arena = in->x.arena;
    TorchCall call = {.target = n->target,
                      .method = n->op == FX_call_method,
                      .args = a->args,
                      .n_args = n->n_args,
                      .kw = a->kw,
                      .kwargs = a->kwargs,
                      .n_kwargs = n->n_kwargs,
                      .lazy = true}; // kernels know sizes that a meta function cannot
    MetaCtx m = eager_meta_ctx(&in->x);
    TorchResult r;
    if (!ops_resolve_torch(&m, &call, &r))
        return false;
    Value *done = ARENA_ARRAY(arena, r.n + 1, Value);
    for (int i = 0; i < r.n; i++) {
        const Op *op = r.steps[i].op;
        Value *args = ARENA_ARRAY(arena, op->n_args + 1, Value);
        for (int j = 0; j < op->n_args; j++)
            args[j] = settled(in, &r.steps[i].args[j], done);
        if (!eager_op(&in->x, op, args, &done[i]))
            return false;
    }
    *out = settled(in, &r.result, done);
    return true;
}

// Enter yields what exit goes back to.
static bool switch_autocast(Interp *in, const Node *n, const Args *a, Value *out) {
    if (n->op != FX_call_function || n->n_args < 1)
        return false;
    Autocast *now = &in->x.c->autocast;
    *out = autocast_value(*now);
    return autocast_is_enter(n->target)
               ? autocast_enter(now, a->args, n->n_args)
               : autocast_is_exit(n->target) && autocast_from(a->args, now);
}

// torch.manual_seed(number): the generator begins anew.
static bool reseed(Interp *in, const Node *n, const Args *a, Value *out) {
    int64_t seed;
    Generator *g = in->x.c->generator;
    if (!node_seeds(n) || !val_as_int(&a->args[0], &seed) || !g)
        return false;
    generator_seed(g, (uint64_t)seed);
    *out = val_none();
    return true;
}

static bool run_call(Interp *in, const Node *n, Value *out) {
    Args a;
    if (!node_args(in, n, &a))
        return false;
    if (in->run->jitter)
        eager_jitter(&in->x, n, a.args, &in->run->jitter);
    if (switch_autocast(in, n, &a, out) || reseed(in, n, &a, out))
        return true;
    if (node_higher(n))
        return eager_higher(&in->x, in->run, n, a.args, out);
    if (higher_named(n))
        return eager_named(&in->x, n, a.args, a.kw, a.kwargs, out);
    if (run_literal(in, n, &a, out))
        return true;
    return eager_ok(&in->x) && (n->def ? run_op(in, n, &a, out) : run_torch(in, n, &a, out));
}

static int put_leaves(Interp *in, const Value *v, RtValue *out, int at) {
    bool dict = v->kind == VAL_dict;
    if (v->kind != VAL_list && v->kind != VAL_tuple && !dict) {
        value_to_rt(&in->x, in->x.c->arena, v, &out[at]);
        return at + 1;
    }
    for (int i = dict; i < v->n; i += dict ? 2 : 1)
        at = put_leaves(in, &v->at[i], out, at);
    return at;
}

static bool run_output(Interp *in, const Node *n) {
    Value v;
    if (n->n_args < 1)
        return eager_fail(&in->x, "RuntimeError: the output node has no argument");
    if (!evaluate(in, &n->args[0], &v))
        return false;
    in->run->n_outputs = value_leaves(&v);
    in->run->outputs = ARENA_ARRAY(in->x.c->arena, in->run->n_outputs + 1, RtValue);
    put_leaves(in, &v, in->run->outputs, 0);
    return true;
}

static void report(Interp *in, const Node *n, const Value *v, int64_t ns) {
    if (!in->run->on_node)
        return;
    RtValue rt;
    value_to_rt(&in->x, in->x.arena, v, &rt);
    in->run->on_node(n, &rt, ns, in->run->ctx);
    rt_drop(&rt);
}

typedef struct Use {
    Interp *in;
    int position;
} Use;

static void mark_use(Node *input, void *ctx) {
    Use *u = ctx;
    u->in->slots[input->id].last = u->position;
}

static void find_last_uses(Interp *in) {
    Use u = {.in = in};
    GRAPH_EACH (in->g, n) {
        u.position++;
        node_each_input(n, mark_use, &u);
    }
}

static void drop_if_last(Node *input, void *ctx) {
    Use *d = ctx;
    if (d->in->slots[input->id].last == d->position && !is_kept(d->in, input))
        drop_slot(d->in, input);
}

static void drop_dead(Interp *in, const Node *n, int position) {
    Use d = {in, position};
    node_each_input(n, drop_if_last, &d);
    if (!n->n_users && !is_kept(in, n))
        drop_slot(in, n);
}

static bool run_node(Interp *in, const Node *n, int *placeholder) {
    Value out = val_none();
    int64_t start = in->run->on_node ? clock_ns() : 0;
    bool ok = true;
    bool item = !strcmp(n->target, "_operator.getitem");
    if ((n->flags & NODE_opaque) && !item && !(n->def && eager_has(op_row(n->def))) &&
        !higher_named(n))
        return eager_fail(&in->x, "NotImplementedError: '%s' calls %s, which is not known here",
                          n->name, n->target);
    switch (n->op) {
    case FX_placeholder:
        ok = run_placeholder(in, n, (*placeholder)++, &out);
        break;
    case FX_get_attr:
        ok = run_get_attr(in, n, &out);
        break;
    case FX_call_function:
    case FX_call_method:
        ok = run_call(in, n, &out);
        break;
    case FX_call_module:
        ok =
            eager_fail(&in->x, "NotImplementedError: '%s' calls the module %s", n->name, n->target);
        break;
    case FX_output:
        return run_output(in, n);
    }
    if (!ok)
        return false;
    // What was made on the way and is not in the result goes.
    hold(in, &out, 1);
    for (int i = 0; i < in->x.live.n; i++) {
        MapEntry *e = map_find_id(&in->held, (uint64_t)(uintptr_t)in->x.live.at[i]);
        if (!e || e->i == 0)
            tensor_drop(&in->x.live.at[i]->t);
    }
    in->x.live.n = 0;
    in->slots[n->id].v = out;
    in->slots[n->id].made = true;
    report(in, n, &out, in->run->on_node ? clock_ns() - start : 0);
    return true;
}

bool eager_run(EagerCtx *c, EagerRun *run) {
    Arena scratch = {0};
    Diag diag = {.arena = c->diag->arena};
    EagerCtx ctx = *c;
    ctx.diag = &diag;
    ctx.in_f64 = run->in_f64;
    const Graph *g = run->graph;
    Interp in = {.x = {.c = &ctx, .arena = &scratch, .in_f64 = run->in_f64}, .run = run, .g = g};
    in.x.sym = sym_new(&scratch);
    in.slots = ARENA_ARRAY(&scratch, g->by_id.n + 1, Slot);
    in.held.arena = &scratch;
    run->n_outputs = 0;
    find_last_uses(&in);
    int placeholder = 0, position = 0;
    bool ok = true;
    GRAPH_EACH (g, n) {
        position++;
        ctx.at = node_place(n);
        if (run->cancel && *run->cancel)
            ok = eager_fail(&in.x, "cancelled before '%s'", n->name);
        ok = ok && run_node(&in, n, &placeholder);
        if (!ok) {
            diag_note(&diag, ctx.at, "in node '%s' (%s)", n->name, n->target);
            break;
        }
        drop_dead(&in, n, position);
    }
    if (run->after && run->n_inputs)
        tell_inputs(&in);
    eager_drop_from(&in.x, 0);
    GRAPH_EACH (g, n)
        drop_slot(&in, n);
    for (int i = 0; i < diag.n; i++)
        vec_push(c->diag->arena, c->diag, diag.at[i]);
    c->diag->errors += diag.errors;
    arena_free(&scratch);
    return ok;
}
