// torchlevel.c: a call as Python code writes it becomes an op call: the function's name, the
// overload that its arguments fit (PyTorch's argument parser), Python's operators with their
// reflected forms, and sizes computed in Python. Functions that do more than their op have a rule
// in torchlevel.def.
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

// choosing an overload

bool call_packet(Trace *t, const char *name, const TorchCall *c, Value *out) {
    Diag quiet = {.arena = t->arena};
    MetaCtx m = trace_meta_ctx(t);
    m.diag = &quiet;
    Value *bound;
    const Op *op = torch_pick(&m, c, name, &bound);
    if (!op)
        return false;
    *out = trace_dispatch(t, op, bound);
    return true;
}

Value call_packet_args(Trace *t, const char *name, ...) {
    VEC(Value) args = {0};
    va_list list;
    va_start(list, name);
    for (Value v = va_arg(list, Value); !(v.kind == VAL_opaque && v.n == -1);
         v = va_arg(list, Value))
        vec_push(t->arena, &args, v);
    va_end(list);
    TorchCall c = {.target = name, .args = args.at, .n_args = args.n};
    Value out = NONE;
    if (!t->failed && !call_packet(t, name, &c, &out))
        trace_fail(t, "no overload of aten.%s fits", name);
    return out;
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
    const char *name;   // of module operator
    const char *packet; // tensor op x
    const char
        *reflected; // number op tensor: this packet with swapped arguments; NULL: not swapped
    SymKind sym;    // on sizes; SYM_int: none
} Operator;

static const Operator operators[] = {
    {"add", "add", "add", SYM_add},
    {"sub", "sub", "rsub", SYM_int},
    {"mul", "mul", "mul", SYM_mul},
    {"truediv", "div", NULL, SYM_int},
    {"floordiv", "floor_divide", NULL, SYM_floordiv},
    {"mod", "remainder", NULL, SYM_pymod},
    {"pow", "pow", NULL, SYM_int},
    {"matmul", "matmul", NULL, SYM_int},
    {"and_", "__and__", "__and__", SYM_and},
    {"or_", "__or__", "__or__", SYM_or},
    {"xor", "__xor__", "__xor__", SYM_int},
    {"lshift", "__lshift__", NULL, SYM_lshift},
    {"rshift", "__rshift__", NULL, SYM_rshift},
    {"eq", "eq", "eq", SYM_eq},
    {"ne", "ne", "ne", SYM_ne},
    {"lt", "lt", "gt", SYM_lt},
    {"le", "le", "ge", SYM_le},
    {"gt", "gt", "lt", SYM_gt},
    {"ge", "ge", "le", SYM_ge},
    {"iadd", "add_", NULL, SYM_add},
    {"isub", "sub_", NULL, SYM_int},
    {"imul", "mul_", NULL, SYM_mul},
    {"itruediv", "div_", NULL, SYM_int},
    {"ifloordiv", "floor_divide_", NULL, SYM_floordiv},
    {"imod", "remainder_", NULL, SYM_pymod},
    {"ipow", "pow_", NULL, SYM_int},
    {"iand", "__iand__", NULL, SYM_and},
    {"ior", "__ior__", NULL, SYM_or},
    {"ixor", "__ixor__", NULL, SYM_int},
    {"ilshift", "__ilshift__", NULL, SYM_int},
    {"irshift", "__irshift__", NULL, SYM_int},
    {"imatmul", "matmul", NULL, SYM_int},
    {"neg", "neg", NULL, SYM_int},
    {"pos", "positive", NULL, SYM_int},
    {"abs", "abs", NULL, SYM_int},
    {"invert", "bitwise_not", NULL, SYM_int},
    {"not_", "logical_not", NULL, SYM_not},
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
    else if (c->n_args == 2 && strcmp(o->name, "truediv") == 0)
        r = sym_make(t->sym, SYM_inttruediv, (const Expr *const[]){e[0], e[1]}, 2);
    else if (o->sym != SYM_int)
        r = c->n_args == 2 ? sym_make(t->sym, o->sym, (const Expr *const[]){e[0], e[1]}, 2)
                           : sym_make(t->sym, o->sym, (const Expr *const[]){e[0]}, 1);
    if (!r)
        return false;
    *out = size_node(t, c, r);
    return true;
}

// Plain Python numbers: constants folded by Python itself.
static bool reflected_division(Trace *t, const char *name, Value number, Value x, Value *out) {
    if (strcmp(name, "truediv") == 0) {
        Value r = CALL(t, aten_reciprocal_default, x);
        *out = call_packet_args(t, "mul", r, number, END);
        return true;
    }
    if (strcmp(name, "floordiv") == 0 || strcmp(name, "mod") == 0 || strcmp(name, "pow") == 0) {
        if (strcmp(name, "pow") == 0)
            *out = CALL(t, aten_pow_Scalar, number, x);
        else if (strcmp(name, "mod") == 0)
            *out = CALL(t, aten_remainder_Scalar_Tensor, number, x);
        else
            *out = CALL(t, aten_floor_divide_default, number, x);
        return true;
    }
    return false;
}

static bool python_operator(Trace *t, const char *name, const TorchCall *c, Value *out) {
    if (strcmp(name, "getitem") == 0)
        return fn_getitem(t, c, out);
    if (strcmp(name, "setitem") == 0)
        return fn_setitem(t, c, out);
    for (int i = 0; i < COUNT(operators); i++) {
        const Operator *o = &operators[i];
        if (strcmp(o->name, name) != 0)
            continue;
        bool first = c->n_args > 0 && c->args[0].kind == VAL_tensor;
        bool second = c->n_args > 1 && c->args[1].kind == VAL_tensor;
        if (!first && !second)
            return sym_arithmetic(t, o, c, out);
        if (first)
            return call_packet(t, o->packet, c, out);
        if (reflected_division(t, name, c->args[0], c->args[1], out))
            return true;
        Value swapped[2] = {c->args[1], c->args[0]};
        TorchCall r = {.target = c->target, .args = swapped, .n_args = 2};
        return o->reflected && call_packet(t, o->reflected, &r, out);
    }
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

static bool resolved(Trace *t, const TorchCall *c, Value *out) {
    Diag quiet = {.arena = t->arena};
    MetaCtx m = trace_meta_ctx(t);
    m.diag = &quiet;
    TorchResult r;
    if (!ops_resolve_torch(&m, c, &r))
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

static const char *const dunders[][2] = {
    {"__eq__", "eq"},         {"__ne__", "ne"},
    {"__lt__", "lt"},         {"__le__", "le"},
    {"__gt__", "gt"},         {"__ge__", "ge"},
    {"__add__", "add"},       {"__radd__", "add"},
    {"__sub__", "sub"},       {"__mul__", "mul"},
    {"__rmul__", "mul"},      {"__truediv__", "div"},
    {"__neg__", "neg"},       {"__invert__", "bitwise_not"},
    {"__matmul__", "matmul"}, {"__pow__", "pow"},
    {"__mod__", "remainder"}, {"__floordiv__", "floor_divide"},
    {"__rsub__", "rsub"},     {"ge", "ge"},
};

// The function's own name, and the prefix that it needs below: torch._C._linalg.linalg_norm is
// linalg_norm.
static const char *plain_name(Trace *t, const char *target) {
    const char *dot = strrchr(target, '.');
    const char *name = dot ? dot + 1 : target;
    if (str_starts(target, "torch.linalg."))
        return arena_printf(t->arena, "linalg_%s", name);
    if (str_starts(target, "torch.special."))
        return arena_printf(t->arena, "special_%s", name);
    if (str_starts(target, "torch.fft."))
        return arena_printf(t->arena, "fft_%s", name);
    for (int i = 0; i < COUNT(dunders); i++)
        if (strcmp(name, dunders[i][0]) == 0)
            return dunders[i][1];
    return name;
}

bool torch_call(Trace *t, const TorchCall *c, Value *out) {
    if (str_starts(c->target, "_operator.") || str_starts(c->target, "operator."))
        return python_operator(t, strchr(c->target, '.') + 1, c, out);
    const char *name = plain_name(t, c->target);
    int n = c->method ? COUNT(methods) : COUNT(functions);
    for (int i = 0; i < n; i++)
        if (strcmp(c->method ? methods[i].name : functions[i].name, name) == 0 &&
            (c->method ? methods[i].rule : functions[i].rule)(t, c, out))
            return true;
    return t->failed || call_packet(t, name, c, out) || resolved(t, c, out);
}
