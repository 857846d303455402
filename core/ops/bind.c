// bind.c: call arguments into schema order: positions, keywords, defaults, single ints widened to
// lists, types checked as PyTorch checks them.
#include "core/ops/ops.h"

#include <string.h>

static bool is_list_type(ArgType t) {
    return t == AT_tensors || t == AT_ints || t == AT_floats || t == AT_bools || t == AT_scalars;
}

static ArgType item_type(ArgType t) {
    return t == AT_tensors  ? AT_tensor
           : t == AT_ints   ? AT_int
           : t == AT_floats ? AT_float
           : t == AT_bools  ? AT_bool
                            : AT_scalar;
}

// A node stands for whatever its value is, and so does a reference to an earlier step (torch.h).
static bool stands_for(const Value *v) {
    return v->kind == VAL_node || (v->kind == VAL_opaque && !v->s);
}

static bool fits_item(const Value *v, ArgType t) {
    ValueKind k = v->kind;
    if (stands_for(v) || t == AT_any)
        return true;
    bool integral = k == VAL_bool || k == VAL_int || k == VAL_sym;
    bool real = integral || k == VAL_float || k == VAL_symfloat;
    switch (t) {
    case AT_tensor: return k == VAL_tensor || real || k == VAL_complex;   // numbers are wrapped
    case AT_int: return integral;
    case AT_float: return real;
    case AT_bool: return real || k == VAL_none;                           // as pybind casts it
    case AT_scalar: return real || k == VAL_complex || k == VAL_tensor;
    case AT_str: return k == VAL_str;
    case AT_dtype: return k == VAL_dtype;
    case AT_layout: return k == VAL_layout;
    case AT_device: return k == VAL_device || k == VAL_str;
    case AT_memory_format: return k == VAL_memory_format;
    case AT_generator: return k == VAL_opaque;
    case AT_any: return true;
    case AT_tensors: case AT_ints: case AT_floats: case AT_bools: case AT_scalars: break;
    }
    return false;
}

static bool fits(const Value *v, const SchemaArg *arg) {
    if (v->kind == VAL_none && arg->type != AT_bool)
        return arg->optional || arg->type == AT_generator || arg->type == AT_any;
    if (!is_list_type(arg->type) || stands_for(v))
        return fits_item(v, arg->type);
    if (v->kind != VAL_list && v->kind != VAL_tuple)
        return arg->fixed && fits_item(v, item_type(arg->type));
    for (int i = 0; i < v->n; i++)
        if (!(v->at[i].kind == VAL_none && arg->optional_items) &&
            !fits_item(&v->at[i], item_type(arg->type)))
            return false;
    return true;
}

// What Python's truth of a number or of None is.
static Value as_bool(const Value *v) {
    bool real = v->kind == VAL_float, none = v->kind == VAL_none, whole = v->kind == VAL_int;
    return real || none || whole ? val_bool(real ? v->f != 0 : whole && v->i != 0) : *v;
}

// A single int for `int[N]` becomes N of them, a device's text a device.
static Value settle(Arena *a, const SchemaArg *arg, Value v) {
    if (arg->type == AT_bool && !(v.kind == VAL_none && arg->optional))
        return as_bool(&v);
    if (arg->type == AT_bools && (v.kind == VAL_list || v.kind == VAL_tuple)) {
        Value list = val_list(a, v.kind, v.n);
        for (int i = 0; i < v.n; i++)
            list.at[i] = as_bool(&v.at[i]);
        return list;
    }
    if (arg->type == AT_device && v.kind == VAL_str) {
        Value device = {.kind = VAL_device};
        return device_parse(v.s, &device.device) ? device : v;
    }
    if (!arg->fixed || v.kind == VAL_none || v.kind == VAL_list || v.kind == VAL_tuple ||
        stands_for(&v))
        return v;
    Value list = val_list(a, VAL_list, arg->fixed);
    for (int i = 0; i < arg->fixed; i++)
        list.at[i] = v;
    return list;
}

static const char *describe(Arena *a, const Value *v) {
    Buf b = {.arena = a};
    if (v->kind == VAL_tensor)
        buf_puts(&b, "a tensor");
    else
        val_print(&b, v, NULL, NULL);
    return buf_str(&b);
}

static bool bind_one(const Op *op, int i, Value v, Value *out, Arena *a, Diag *d, Place at) {
    const SchemaArg *arg = &op->args[i];
    if (fits(&v, arg)) {
        out[i] = settle(a, arg, v);
        return true;
    }
    Buf want = {.arena = a};
    arg_type_print(&want, arg);
    diag_error(d, at, "%s.%s.%s: argument '%s' is %s, expected %s", op->ns, op->name, op->overload,
               arg->name, describe(a, &v), buf_str(&want));
    return false;
}

static bool bind_keyword(const Op *op, const char *kw, Value v, bool *given, Value *out, Arena *a,
                         Diag *d, Place at) {
    int i = op_arg_index(op, kw);
    if (i < 0) {
        diag_error(d, at, "%s.%s.%s: no argument '%s'", op->ns, op->name, op->overload, kw)->hint =
            op->schema;
        return false;
    }
    if (given[i]) {
        diag_error(d, at, "%s.%s.%s: argument '%s' is given twice", op->ns, op->name, op->overload,
                   kw);
        return false;
    }
    given[i] = true;
    return bind_one(op, i, v, out, a, d, at);
}

bool op_bind(const Op *op, const Value *args, int n_args, const char *const kw[],
             const Value *kwargs, int n_kwargs, Value *out, Arena *a, Diag *d, Place at) {
    bool *given = ARENA_ARRAY(a, op->n_args + 1, bool);
    for (int i = 0; i < n_args; i++) {
        if (i >= op->n_args || op->args[i].kwarg_only) {
            diag_error(d, at, "%s.%s.%s: %d positional arguments, expected at most %d", op->ns,
                       op->name, op->overload, n_args, i)
                ->hint = op->schema;
            return false;
        }
        given[i] = true;
        if (!bind_one(op, i, args[i], out, a, d, at))
            return false;
    }
    for (int i = 0; i < n_kwargs; i++)
        if (!bind_keyword(op, kw[i], kwargs[i], given, out, a, d, at))
            return false;
    for (int i = 0; i < op->n_args; i++) {
        const SchemaArg *arg = &op->args[i];
        if (given[i])
            continue;
        if (!arg->has_default) {
            diag_error(d, at, "%s.%s.%s: missing argument '%s'", op->ns, op->name, op->overload,
                       arg->name)
                ->hint = op->schema;
            return false;
        }
        out[i] = arg->dflt;
    }
    return true;
}
