// torch_parse.c: choice of an overload as PyTorch's Python argument parser does it: overloads in a
// fixed order, the first whose parameters take the arguments. Source of the order: sort_overloads
// in tools/autograd/gen_python_functions.py; of the checks: torch/csrc/utils/python_arg_parser.cpp.
#include "core/ops/torch.h"

#include <string.h>

#include "core/base/vec.h"
#include "core/ops/out.h"

enum { OVERLOADS = 32, ARGS = 40 };

// Not bound to Python: a number is taken as a 0-d tensor by the Tensor overload.
static const OpId hidden[] = {
    OP_aten_add_Scalar, OP_aten_add__Scalar, OP_aten_sub_Scalar, OP_aten_sub__Scalar,
    OP_aten_mul_Scalar, OP_aten_mul__Scalar, OP_aten_div_Scalar, OP_aten_div__Scalar,
};
static const char *const numbers_as_tensors[] = {
    "add",      "add_",      "sub",         "sub_",         "mul",          "mul_",
    "div",      "div_",      "divide",      "divide_",      "multiply",     "multiply_",
    "subtract", "subtract_", "true_divide", "true_divide_", "floor_divide", "floor_divide_",
};
// Second names of parameters, for numpy's sake.
static const char *const renamed[][2] = {
    {"axis", "dim"}, {"keepdims", "keepdim"}, {"input", "self"},
    {"x", "self"},   {"x1", "self"},          {"x2", "other"},
};

static Value behind(const TorchCall *c, const Value *v) {
    int step;
    return c->look && (v->kind == VAL_node || torch_step_ref(v, &step)) ? c->look(v, c->ctx) : *v;
}

static bool takes_numbers(const Op *op) {
    return str_index(op->name, numbers_as_tensors, COUNT(numbers_as_tensors)) >= 0;
}

static bool is_int(const Value *v) {
    return v->kind == VAL_int || v->kind == VAL_sym;
}

static bool is_number(const Value *v) {
    return is_int(v) || v->kind == VAL_bool || v->kind == VAL_float || v->kind == VAL_symfloat ||
           v->kind == VAL_complex;
}

static bool is_seq(const Value *v) {
    return v->kind == VAL_list || v->kind == VAL_tuple;
}

static bool one_fits(const TorchCall *c, const Op *op, ArgType t, const Value *given) {
    Value v = behind(c, given);
    bool zero_dim = v.kind == VAL_tensor && v.tensor->ndim == 0 && !v.tensor->requires_grad;
    int step;
    if (v.kind == VAL_node || torch_step_ref(&v, &step))
        return true;    // of unknown value
    switch (t) {
    case AT_tensor: return v.kind == VAL_tensor || (is_number(&v) && takes_numbers(op));
    case AT_int: return is_int(&v) || (zero_dim && dtype_is_int(v.tensor->dtype));
    case AT_float: return is_number(&v) || zero_dim;
    case AT_bool: return v.kind == VAL_bool || v.kind == VAL_sym;
    case AT_scalar: return is_number(&v) || zero_dim;
    case AT_str: return v.kind == VAL_str;
    case AT_dtype: return v.kind == VAL_dtype;
    case AT_layout: return v.kind == VAL_layout;
    case AT_device: return v.kind == VAL_device || v.kind == VAL_str || v.kind == VAL_int;
    case AT_memory_format: return v.kind == VAL_memory_format;
    case AT_generator: return v.kind == VAL_opaque;
    case AT_any: return true;
    case AT_tensors: case AT_ints: case AT_floats: case AT_bools: case AT_scalars: break;
    }
    return false;
}

static bool fits(const TorchCall *c, const Op *op, const SchemaArg *arg, const Value *given) {
    static const ArgType item[] = {
        [AT_tensors] = AT_tensor, [AT_ints] = AT_int,       [AT_floats] = AT_float,
        [AT_bools] = AT_bool,     [AT_scalars] = AT_scalar,
    };
    Value v = behind(c, given);
    if (v.kind == VAL_none)
        return arg->optional || (arg->has_default && arg->dflt.kind == VAL_none) ||
               arg->type == AT_generator;
    bool list = arg->type == AT_tensors || arg->type == AT_ints || arg->type == AT_floats ||
                arg->type == AT_bools || arg->type == AT_scalars;
    if (!list)
        return one_fits(c, op, arg->type, given);
    if (!is_seq(&v))
        return arg->fixed && arg->type != AT_tensors && one_fits(c, op, item[arg->type], given);
    for (int i = 0; i < v.n; i++)
        if (!(v.at[i].kind == VAL_none && arg->optional_items) &&
            !one_fits(c, op, item[arg->type], &v.at[i]))
            return false;
    return true;
}

// x.view(2, 3), torch.zeros(2, 3): the only positional parameter is a list of ints and ints are
// given loosely.
static bool loose_ints(const TorchCall *c, const Op *op, int *at) {
    int positional = 0;
    *at = c->method ? 1 : 0;
    for (int i = *at; i < op->n_args; i++)
        positional += !op->args[i].kwarg_only;
    if (positional != 1 || op->args[*at].type != AT_ints || c->n_args <= *at)
        return false;
    for (int i = *at; i < c->n_args; i++) {
        Value v = behind(c, &c->args[i]);
        if (!is_int(&v) && !(v.kind == VAL_tensor && v.tensor->ndim == 0))
            return false;
    }
    return true;
}

static const char *schema_name(const Op *op, const char *kw) {
    if (op_arg_index(op, kw) >= 0)
        return kw;
    for (int i = 0; i < COUNT(renamed); i++)
        if (strcmp(renamed[i][0], kw) == 0 && op_arg_index(op, renamed[i][1]) >= 0)
            return renamed[i][1];
    return NULL;
}

// Options of the Python binding that the operator does not have: they may be given, but say
// nothing.
static bool is_void(const char *kw, const Value *v) {
    static const char *const words[] = {"out", "pin_memory", "generator", "inplace"};
    if (strcmp(kw, "requires_grad") == 0)
        return v->kind == VAL_none || v->kind == VAL_bool;
    bool no = v->kind == VAL_none || (v->kind == VAL_bool && !v->b);
    return no && str_index(kw, words, COUNT(words)) >= 0;
}

// What a factory that writes a tensor may be told of it.
static bool is_option(const Op *op, const char *kw) {
    static const char *const words[] = {"dtype", "layout", "device", "pin_memory", "requires_grad"};
    return op->functional && str_index(kw, words, COUNT(words)) >= 0 &&
           (strcmp(kw, "requires_grad") == 0 || op_arg_index(op->functional, kw) >= 0);
}

typedef struct Call {
    Value args[ARGS];
    int n_args;
    const char *kw[ARGS];
    Value kwargs[ARGS];
    int n_kwargs;
} Call;

// A method's object stands where the schema says self: x.where(condition, other) is
// where(condition, x, other).
static void place_object(const TorchCall *c, const Op *op, Call *out) {
    int self = c->method && c->n_args ? op_arg_index(op, "self") : 0;
    int before = self > 0 ? self : 0;
    out->n_args = c->n_args;
    out->n_kwargs = 0;
    memcpy(out->args, c->args, (size_t)c->n_args * sizeof *c->args);
    if (!before)
        return;
    int moved = before < c->n_args ? before : c->n_args - 1;
    memmove(out->args, c->args + 1, (size_t)moved * sizeof *c->args);
    if (before < c->n_args) {
        out->args[before] = c->args[0];
        return;
    }
    out->n_args--;
    out->kw[out->n_kwargs] = "self";
    out->kwargs[out->n_kwargs++] = c->args[0];
}

// out=: the tensor written, a list of them where the overload writes several.
static bool place_out(const TorchCall *c, const Op *op, const Value *given, Call *out) {
    int first = op_first_out(op), n = op->n_args - first;
    Value v = behind(c, given);
    if (out->n_kwargs + n > ARGS || (n > 1 && (!is_seq(&v) || v.n != n)))
        return false;
    for (int i = 0; i < n; i++) {
        const Value *one = n > 1 ? &v.at[i] : given;
        Value to = behind(c, one);
        if (is_number(&to) || to.kind == VAL_none || !fits(c, op, &op->args[first + i], one))
            return false;
        out->kw[out->n_kwargs] = op->args[first + i].name;
        out->kwargs[out->n_kwargs++] = *one;
    }
    return true;
}

// The call with keywords renamed and loose ints gathered; false if it cannot be this overload's.
static bool shaped(Arena *a, const TorchCall *c, const Op *op, Call *out) {
    int at;
    place_object(c, op, out);
    if (loose_ints(c, op, &at)) {
        Value list = val_list(a, VAL_list, c->n_args - at);
        memcpy(list.at, c->args + at, (size_t)list.n * sizeof *list.at);
        out->args[at] = list;
        out->n_args = at + 1;
    }
    if (out->n_args > op->n_args)
        return false;
    for (int i = 0; i < out->n_args; i++)
        if (op->args[i].kwarg_only || !fits(c, op, &op->args[i], &out->args[i]))
            return false;
    for (int i = 0; i < c->n_kwargs; i++) {
        const char *name = schema_name(op, c->kw[i]);
        Value v = behind(c, &c->kwargs[i]);
        if (op->functional && strcmp(c->kw[i], "out") == 0) {
            if (!place_out(c, op, &c->kwargs[i], out))
                return false;
            continue;
        }
        if (!name && (is_void(c->kw[i], &v) || is_option(op, c->kw[i])))
            continue;
        if (!name || out->n_kwargs == ARGS ||
            !fits(c, op, &op->args[op_arg_index(op, name)], &c->kwargs[i]))
            return false;
        out->kw[out->n_kwargs] = name;
        out->kwargs[out->n_kwargs++] = c->kwargs[i];
    }
    return true;
}

// Lower priority: a Scalar stands where the other overload has a Tensor, a list where it has an
// int.
static bool arg_lower(const SchemaArg *a, const SchemaArg *b) {
    return (a->type == AT_scalar && b->type == AT_tensor) ||
           (a->type == AT_ints && b->type == AT_int);
}

static bool same_type(const SchemaArg *a, const SchemaArg *b) {
    return a->type == b->type && a->optional == b->optional && a->fixed == b->fixed;
}

static bool lower(const Op *a, const Op *b) {
    bool differ = false;
    if (a->n_args != b->n_args)
        return false;
    for (int i = 0; i < a->n_args; i++) {
        if (same_type(&a->args[i], &b->args[i]))
            continue;
        if (!arg_lower(&a->args[i], &b->args[i]))
            return false;
        differ = true;
    }
    return differ;
}

static bool bound_to_python(const Op *op) {
    for (int i = 0; i < COUNT(hidden); i++)
        if (hidden[i] == op->id)
            return false;
    return !(op->tags & OPT_out);
}

// Overloads by the text of their parameters, then those of lower priority behind.
static int ordered(const char *packet, const Op *out[]) {
    const Op *all[OVERLOADS];
    int n = op_packet("aten", packet, all, OVERLOADS), m = 0;
    for (int i = 0; i < n; i++) {
        if (!bound_to_python(all[i]))
            continue;
        int k = m++;
        for (; k > 0 && strcmp(strchr(out[k - 1]->schema, '('), strchr(all[i]->schema, '(')) > 0;
             k--)
            out[k] = out[k - 1];
        out[k] = all[i];
    }
    for (int i = 0; i < m; i++)
        for (int k = i + 1; k < m; k++)
            if (lower(out[i], out[k])) {
                const Op *op = out[k];
                memmove(out + i + 1, out + i, (size_t)(k - i) * sizeof *out);
                out[i] = op;
                k = i;
            }
    return m;
}

// Tensors made from nothing get the device and pin_memory that the bindings pass along.
static void factory_options(const Op *op, Value *bound) {
    int pin = op_arg_index(op, "pin_memory"), device = op_arg_index(op, "device");
    if (pin < 0 || device < 0)
        return;
    bool like = op->args[0].type == AT_tensor;
    if (bound[pin].kind == VAL_none)
        bound[pin] = val_bool(false);
    if (!like && bound[device].kind == VAL_none)
        bound[device] = (Value){.kind = VAL_device, .device = {DEV_cpu, -1}};
}

static void no_overload(MetaCtx *m, const char *packet, const Op *const *tried, int n) {
    DiagItem *item = diag_error(
        m->diag, m->at, "TypeError: %s(): the arguments fit none of its %d overloads", packet, n);
    Buf b = {.arena = m->diag->arena};
    for (int i = 0; i < n && i < 4; i++)
        buf_printf(&b, "%s%s", i ? "; " : "it takes ", tried[i]->schema);
    item->hint = buf_str(&b);
}

static bool writes_out(const TorchCall *c) {
    for (int i = 0; i < c->n_kwargs; i++)
        if (strcmp(c->kw[i], "out") == 0)
            return behind(c, &c->kwargs[i]).kind != VAL_none;
    return false;
}

// In the same order, the overloads that store what those give. Python binds none that PyTorch
// generated but those of copied views.
static int stored(const Op *order[], int n) {
    const Op *forms[OVERLOADS];
    int m = 0;
    for (int i = 0; i < n; i++) {
        const Op *outs[4];
        int k = op_outs(order[i], outs, COUNT(outs));
        bool copies = strstr(order[i]->name, "_copy") != NULL;
        for (int j = 0; j < k && m < OVERLOADS; j++)
            if (outs[j]->out_dtype != OUT_COPY || copies)
                forms[m++] = outs[j];
    }
    memcpy(order, forms, (size_t)m * sizeof *forms);
    return m;
}

const Op *torch_pick(MetaCtx *m, const TorchCall *c, const char *packet, Value **bound) {
    const Op *order[OVERLOADS];
    int n = ordered(packet, order);
    if (writes_out(c))
        n = stored(order, n);
    Call call;
    if (c->n_args > ARGS || c->n_kwargs >= ARGS) {
        diag_error(m->diag, m->at, "TypeError: %s(): %d arguments, expected at most %d", packet,
                   c->n_args + c->n_kwargs, ARGS);
        return NULL;
    }
    for (int i = 0; i < n; i++) {
        const Op *op = order[i];
        Arena scratch = {0};
        Diag quiet = {.arena = &scratch};
        *bound = ARENA_ARRAY(m->arena, op->n_args + 1, Value);
        bool ok = shaped(m->arena, c, op, &call) &&
                  op_bind(op, call.args, call.n_args, call.kw, call.kwargs, call.n_kwargs, *bound,
                          m->arena, &quiet, m->at);
        arena_free(&scratch);
        if (!ok)
            continue;
        if (strcmp(op->name, "to") != 0 && strcmp(op->name, "_to_copy") != 0)
            factory_options(op, *bound);
        return op;
    }
    no_overload(m, packet, order, n);
    return NULL;
}
