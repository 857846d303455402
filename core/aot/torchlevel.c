// torchlevel.c: a call as Python code writes it, in a trace: what a trace alone knows (sizes as
// nodes, the tape's switch, constants) has a rule in torchlevel.def, all else is taken apart by
// core/ops/torch.
#include "core/aot/torchlevel.h"

#include <string.h>

Value call_arg(const TorchCall *c, int pos, const char *kw, Value dflt) {
    if (pos >= 0 && pos < c->n_args)
        return c->args[pos];
    for (int i = 0; i < c->n_kwargs; i++)
        if (strcmp(c->kw[i], kw) == 0)
            return c->kwargs[i];
    return dflt;
}

// A size computed by a call, and the node that PyTorch traces for it.
Value size_node(Trace *t, const TorchCall *c, const Expr *r) {
    Value out = val_sym(r);
    const Op *op = op_find(c->target);
    if (out.kind != VAL_sym || map_get_id(&t->proxies, expr_id(r)) || !op)
        return out;
    Value *args = ARENA_ARRAY(t->arena, c->n_args + 1, Value);
    for (int i = 0; i < c->n_args; i++)
        args[i] = trace_node_value(t, &c->args[i]);
    if (t->failed)
        return out;
    Node *n = graph_call(t->graph, op, op->name, args, c->n_args, NULL, 0);
    n->val = out;
    n->stack = t->stack;
    map_put_id(&t->proxies, expr_id(r), n);
    origins_add(t->origins, n->id, trace_home(t)->id, LINK_part);
    return out;
}

// Python's operators

typedef struct Operator {
    const char *name; // of module operator
    SymKind sym;      // on sizes; SYM_int: written out below, or none
} Operator;

static const Operator operators[] = {
    {"add", SYM_add}, {"sub", SYM_int}, {"mul", SYM_mul}, {"truediv", SYM_int},
    {"floordiv", SYM_floordiv}, {"mod", SYM_pymod}, {"pow", SYM_int}, {"matmul", SYM_int},
    {"and_", SYM_and}, {"or_", SYM_or}, {"xor", SYM_int}, {"lshift", SYM_lshift},
    {"rshift", SYM_rshift}, {"eq", SYM_eq}, {"ne", SYM_ne}, {"lt", SYM_lt}, {"le", SYM_le},
    {"gt", SYM_gt}, {"ge", SYM_ge}, {"iadd", SYM_add}, {"isub", SYM_int}, {"imul", SYM_mul},
    {"itruediv", SYM_int}, {"ifloordiv", SYM_floordiv}, {"imod", SYM_pymod}, {"ipow", SYM_int},
    {"iand", SYM_and}, {"ior", SYM_or}, {"ixor", SYM_int}, {"ilshift", SYM_int},
    {"irshift", SYM_int}, {"imatmul", SYM_int}, {"neg", SYM_int}, {"pos", SYM_int},
    {"abs", SYM_int}, {"invert", SYM_int}, {"not_", SYM_not},
};

// Arithmetic on sizes.
static bool sym_arithmetic(Trace *t, const Operator *o, const TorchCall *c, Value *out) {
    const Expr *e[2], *r = NULL;
    for (int i = 0; i < c->n_args && i < 2; i++)
        if (!val_as_expr(t->sym, &c->args[i], &e[i]))
            return false;
    if (strcmp(o->name, "neg") == 0 && c->n_args == 1)
        r = sym_neg(t->sym, e[0]);
    else if (strcmp(o->name, "pos") == 0 && c->n_args == 1)
        r = e[0];
    else if (c->n_args == 2 && (strcmp(o->name, "sub") == 0 || strcmp(o->name, "isub") == 0))
        r = sym_sub(t->sym, e[0], e[1]);
    else if (c->n_args == 2 && strcmp(o->name, "pow") == 0 && c->args[1].kind == VAL_int &&
             c->args[1].i >= 0)
        r = sym_pow(t->sym, e[0], c->args[1].i);
    else if (o->sym != SYM_int)
        r = c->n_args == 2 ? sym_make(t->sym, o->sym, (const Expr *const[]){e[0], e[1]}, 2)
                           : sym_make(t->sym, o->sym, (const Expr *const[]){e[0]}, 1);
    if (!r)
        return false;
    *out = size_node(t, c, r);
    return true;
}

// With a real number among them, or as the result: `s77 / 2`, `zf0 * 2.0`.
static bool on_reals(Trace *t, const TorchCall *c, Value *out) {
    const Op *op = op_find(c->target);
    bool numbers = op && c->n_args == op->n_args;
    double f;
    for (int i = 0; numbers && i < c->n_args; i++)
        numbers = c->args[i].kind == VAL_symfloat || c->args[i].kind == VAL_sym ||
                  val_as_float(&c->args[i], &f);
    *out = numbers ? trace_dispatch(t, op, c->args) : val_none();
    return numbers && !t->failed;
}

static bool on_sizes(Trace *t, const char *name, const TorchCall *c, Value *out) {
    for (int i = 0; i < COUNT(operators); i++)
        if (strcmp(operators[i].name, name) == 0)
            return sym_arithmetic(t, &operators[i], c, out) || on_reals(t, c, out);
    return false;
}

static bool any_tensor(const TorchCall *c) {
    for (int i = 0; i < c->n_args; i++)
        if (c->args[i].kind == VAL_tensor)
            return true;
    return false;
}

// by core/ops/torch: the steps that a call stands for, dispatched one by one

static Value step_value(Trace *t, const Value *v, const Value *done) {
    int step;
    if (torch_step_ref(v, &step))
        return done[step];
    if (v->kind != VAL_list && v->kind != VAL_tuple)
        return *v;
    Value list = val_list(t->arena, v->kind, v->n);
    for (int i = 0; i < v->n; i++)
        list.at[i] = step_value(t, &v->at[i], done);
    return list;
}

bool torch_resolved(Trace *t, const TorchCall *c, Value *out) {
    Diag quiet = {.arena = t->arena};
    MetaCtx m = trace_meta_ctx(t);
    m.diag = &quiet;
    TorchResult r;
    TorchCall lazy = *c; // autocast changes what ops are given
    lazy.lazy = true;
    if (!ops_resolve_torch(&m, &lazy, &r))
        return false;
    Value *done = ARENA_ARRAY(t->arena, r.n + 1, Value);
    for (int i = 0; i < r.n && !t->failed; i++) {
        const TorchStep *s = &r.steps[i];
        Value *args = ARENA_ARRAY(t->arena, s->op->n_args + 1, Value);
        for (int k = 0; k < s->op->n_args; k++)
            args[k] = step_value(t, &s->args[k], done);
        done[i] = s->op->id == OP_operator_getitem ? item_of(args[0], (int)args[1].i)
                                                   : trace_dispatch(t, s->op, args);
    }
    *out = step_value(t, &r.result, done);
    return true;
}

// names

static const struct {
    const char *name;
    TorchRule *rule;
} functions[] =
    {
#define TORCH_FN(name, rule, doc) {#name, fn_##rule},
#define TORCH_METHOD(name, rule, doc)
#include "core/aot/torchlevel.def"
#undef TORCH_FN
#undef TORCH_METHOD
},
  methods[] = {
#define TORCH_FN(name, rule, doc)
#define TORCH_METHOD(name, rule, doc) {#name, fn_##rule},
#include "core/aot/torchlevel.def"
#undef TORCH_FN
#undef TORCH_METHOD
};

bool torch_call(Trace *t, const TorchCall *c, Value *out) {
    const char *dot = strrchr(c->target, '.'), *name = dot ? dot + 1 : c->target;
    if (str_starts(c->target, "_operator.") || str_starts(c->target, "operator.")) {
        if (strcmp(name, "getitem") == 0)
            return fn_getitem(t, c, out);
        if (strcmp(name, "setitem") == 0)
            return fn_setitem(t, c, out);
        return any_tensor(c) ? torch_resolved(t, c, out) : on_sizes(t, name, c, out);
    }
    int n = c->method ? COUNT(methods) : COUNT(functions);
    for (int i = 0; i < n; i++)
        if (strcmp(c->method ? methods[i].name : functions[i].name, name) == 0 &&
            (c->method ? methods[i].rule : functions[i].rule)(t, c, out))
            return true;
    return t->failed || torch_resolved(t, c, out);
}
