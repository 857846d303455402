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

// Packets whose tensor arguments take Python numbers.
static bool numbers_as_tensors(const char *name) {
    static const char *const names[] = {
        "add",          "add_",         "div",           "div_",      "divide",
        "divide_",      "mul",          "mul_",          "multiply",  "multiply_",
        "sub",          "sub_",         "subtract",      "subtract_", "true_divide",
        "true_divide_", "floor_divide", "floor_divide_", "copy_",     "_to_copy"};
    return str_index(name, names, COUNT(names)) >= 0;
}

static bool is_number(const Value *v) {
    return v->kind == VAL_int || v->kind == VAL_float || v->kind == VAL_bool ||
           v->kind == VAL_sym || v->kind == VAL_symfloat || v->kind == VAL_complex;
}

enum { NO_FIT = 1000 };

// How far a value is from an argument's type: 0 exactly, NO_FIT not at all.
static int item_cost(const Value *v, ArgType type, bool numbers) {
    ValueKind k = v->kind;
    switch (type) {
    case AT_tensor:
        return k == VAL_tensor ? 0 : numbers && is_number(v) ? 1 : NO_FIT;
    case AT_int:
        return k == VAL_int || k == VAL_sym ? 0 : NO_FIT;
    case AT_float:
        return k == VAL_float || k == VAL_symfloat ? 0 : k == VAL_int || k == VAL_sym ? 1 : NO_FIT;
    case AT_bool:
        return k == VAL_bool ? 0 : k == VAL_sym ? 2 : NO_FIT;
    case AT_scalar:
        return is_number(v) ? 0 : k == VAL_tensor && v->tensor->ndim == 0 ? 5 : NO_FIT;
    case AT_str:
        return k == VAL_str ? 0 : NO_FIT;
    case AT_dtype:
        return k == VAL_dtype ? 0 : NO_FIT;
    case AT_layout:
        return k == VAL_layout ? 0 : NO_FIT;
    case AT_device:
        return k == VAL_device || k == VAL_str ? 0 : NO_FIT;
    case AT_memory_format:
        return k == VAL_memory_format ? 0 : NO_FIT;
    case AT_generator:
        return k == VAL_opaque ? 0 : NO_FIT;
    case AT_any:
        return 0;
    case AT_tensors:
    case AT_ints:
    case AT_floats:
    case AT_bools:
    case AT_scalars:
        break;
    }
    return NO_FIT;
}

static int arg_cost(const Value *v, const SchemaArg *arg, bool numbers) {
    static const ArgType items[] = {[AT_tensors] = AT_tensor,
                                    [AT_ints] = AT_int,
                                    [AT_floats] = AT_float,
                                    [AT_bools] = AT_bool,
                                    [AT_scalars] = AT_scalar};
    if (v->kind == VAL_none)
        return arg->optional || arg->type == AT_generator ? 1 : NO_FIT;
    bool list = arg->type == AT_tensors || arg->type == AT_ints || arg->type == AT_floats ||
                arg->type == AT_bools || arg->type == AT_scalars;
    if (!list)
        return item_cost(v, arg->type, numbers);
    if (v->kind != VAL_list && v->kind != VAL_tuple)
        return arg->fixed ? item_cost(v, items[arg->type], false) + 1 : NO_FIT;
    int cost = 0;
    for (int i = 0; i < v->n && cost < NO_FIT; i++)
        if (!(v->at[i].kind == VAL_none && arg->optional_items))
            cost += item_cost(&v->at[i], items[arg->type], false);
    return cost;
}

// Older keyword names that Python still takes.
static const char *alias_of(const char *kw) {
    static const char *const aliases[][2] = {{"input", "self"},
                                             {"axis", "dim"},
                                             {"keepdims", "keepdim"},
                                             {"x", "self"},
                                             {"x2", "other"}};
    for (int i = 0; i < COUNT(aliases); i++)
        if (strcmp(kw, aliases[i][0]) == 0)
            return aliases[i][1];
    return NULL;
}

static int keyword_index(const Op *op, const char *kw) {
    int i = op_arg_index(op, kw);
    const char *other = i < 0 ? alias_of(kw) : NULL;
    return other ? op_arg_index(op, other) : i;
}

// Options of factories that the ops do not have: a keyword that says nothing is dropped.
static bool is_void_keyword(const char *kw, const Value *v) {
    bool no = v->kind == VAL_none || (v->kind == VAL_bool && !v->b);
    return no && (strcmp(kw, "out") == 0 || strcmp(kw, "requires_grad") == 0 ||
                  strcmp(kw, "pin_memory") == 0 || strcmp(kw, "generator") == 0 ||
                  strcmp(kw, "inplace") == 0);
}

// x.view(2, 3): when a list of ints is the only positional argument, it may be written out.
static bool spread_ints(const Op *op, const TorchCall *c, int self) {
    int positional = 0;
    for (int i = self; i < op->n_args; i++)
        positional += !op->args[i].kwarg_only;
    if (positional != 1 || op->args[self].type != AT_ints || c->n_args <= self)
        return false;
    for (int i = self; i < c->n_args; i++)
        if (c->args[i].kind != VAL_int && c->args[i].kind != VAL_sym)
            return false;
    return true;
}

// The call in the schema's order; the cost of the fit, NO_FIT if there is none.
static int fit(Trace *t, const Op *op, const TorchCall *c, Value *out) {
    if (op->tags & OPT_out)
        return NO_FIT;
    bool numbers = numbers_as_tensors(op->name);
    int self = c->method || (op->n_args && op->args[0].type == AT_tensor) ? 1 : 0;
    bool spread = spread_ints(op, c, self);
    int n_args = c->n_args, cost = 0;
    bool *given = ARENA_ARRAY(t->arena, op->n_args + 1, bool);
    if (spread) {
        Value list = val_list(t->arena, VAL_list, c->n_args - self);
        memcpy(list.at, c->args + self, (size_t)list.n * sizeof *list.at);
        n_args = self;
        out[self] = list;
        given[self] = true;
        cost += op->args[self].fixed > 0;
    }
    for (int i = 0; i < n_args && cost < NO_FIT; i++) {
        if (i >= op->n_args || op->args[i].kwarg_only)
            return NO_FIT;
        given[i] = true;
        out[i] = c->args[i];
        cost += arg_cost(&c->args[i], &op->args[i], numbers && i > 0);
    }
    for (int i = 0; i < c->n_kwargs && cost < NO_FIT; i++) {
        int k = keyword_index(op, c->kw[i]);
        if (k < 0 && is_void_keyword(c->kw[i], &c->kwargs[i]))
            continue;
        if (k < 0 || given[k])
            return NO_FIT;
        given[k] = true;
        out[k] = c->kwargs[i];
        cost += arg_cost(&c->kwargs[i], &op->args[k], numbers);
    }
    // var(dim) means var(dim, unbiased) as long as no correction is asked for.
    int correction = op_arg_index(op, "correction");
    cost += correction >= 0 && !given[correction];
    for (int i = 0; i < op->n_args && cost < NO_FIT; i++)
        if (!given[i]) {
            if (!op->args[i].has_default && op->args[i].type != AT_generator)
                return NO_FIT;
            out[i] = op->args[i].has_default ? op->args[i].dflt : NONE;
        }
    return cost;
}

// The Scalar forms of arithmetic exist for C++ only: Python wraps the number.
static bool hidden(const Op *op) {
    return numbers_as_tensors(op->name) && str_starts(op->overload, "Scalar");
}

// What Python's bindings of factories always say: no pinned memory, and the CPU if no device is
// given.
static void python_options(const Op *op, const TorchCall *c, Value *bound) {
    int pin = op_arg_index(op, "pin_memory"), device = op_arg_index(op, "device");
    if (pin < 0 || device < 0 || !op->args[pin].kwarg_only || strcmp(op->name, "to") == 0 ||
        strcmp(op->name, "_to_copy") == 0)
        return;
    if (bound[pin].kind == VAL_none)
        bound[pin] = BOOL(false);
    bool of_tensor = c->method || (op->n_args && op->args[0].type == AT_tensor);
    if (bound[device].kind == VAL_none && !of_tensor)
        bound[device] = (Value){.kind = VAL_device, .device = {DEV_cpu, -1}};
}

bool call_packet(Trace *t, const char *name, const TorchCall *c, Value *out) {
    const Op *all[64], *best = NULL;
    int n = op_packet("aten", name, all, COUNT(all)), best_cost = NO_FIT;
    Value *bound = NULL;
    for (int i = 0; i < n; i++) {
        Value *args = ARENA_ARRAY(t->arena, all[i]->n_args + 1, Value);
        int cost = hidden(all[i]) ? NO_FIT : fit(t, all[i], c, args);
        if (cost < best_cost ||
            (best && cost == best_cost && cost < NO_FIT && all[i]->n_args < best->n_args)) {
            best = all[i];
            best_cost = cost;
            bound = args;
        }
    }
    if (!best)
        return false;
    python_options(best, c, bound);
    for (int i = 0; i < best->n_args; i++) {
        Value v = bound[i];
        if (best->args[i].fixed && is_number(&v)) {
            bound[i] = val_list(t->arena, VAL_list, best->args[i].fixed);
            for (int k = 0; k < bound[i].n; k++)
                bound[i].at[k] = v;
        }
        if (best->args[i].type == AT_device && v.kind == VAL_str) {
            bound[i] = (Value){.kind = VAL_device};
            device_parse(v.s, &bound[i].device);
        }
    }
    *out = trace_dispatch(t, best, bound);
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

// Arithmetic on sizes: a value, and the node that PyTorch traces for it.
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
    *out = val_sym(r);
    if (out->kind == VAL_sym && !map_get_id(&t->proxies, expr_id(r))) {
        Value args[2] = {trace_node_value(t, &c->args[0]),
                         c->n_args > 1 ? trace_node_value(t, &c->args[1]) : NONE};
        const Op *op = op_find(c->target);
        if (op && !t->failed) {
            Node *n = graph_call(t->graph, op, op->name, args, c->n_args, NULL, 0);
            n->val = *out;
            n->stack = t->stack;
            map_put_id(&t->proxies, expr_id(r), n);
            origins_add(t->origins, n->id, trace_home(t)->id, LINK_part);
        }
    }
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
    bool any_tensor = c->method;
    for (int i = 0; i < c->n_args && !any_tensor; i++)
        any_tensor = c->args[i].kind != VAL_none;
    return t->failed || call_packet(t, name, c, out);
}
