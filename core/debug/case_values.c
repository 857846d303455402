// case_values.c: values of recorded cases out of JSON, and their binding to a schema.
#include "core/debug/case_values.h"

#include <stdlib.h>
#include <string.h>

static int hex_digit(char c) {
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

// Bytes of the elements; -1 if the sizes are none, or the memory that the strides reach through is
// absurd.
static int64_t bytes_of(DType d, int n, const int64_t *size, const int64_t *stride) {
    enum { MOST = 1 << 30 };
    int64_t elems = 1, reach = 1, part, bytes;
    bool empty = false;
    for (int i = 0; i < n; i++) {
        if (size[i] < 0 || stride[i] < 0)
            return -1;
        empty = empty || size[i] == 0;
    }
    for (int i = 0; i < n && !empty; i++)
        if (__builtin_mul_overflow(elems, size[i], &elems) ||
            __builtin_mul_overflow(size[i] - 1, stride[i], &part) ||
            __builtin_add_overflow(reach, part, &reach) || reach > MOST || elems > MOST)
            return -1;
    if (__builtin_mul_overflow(empty ? 0 : elems, dtype_info[d].bytes, &bytes))
        return -1;
    return bytes;
}

static bool read_tensor(const Json *j, RtValue *out, Diag *d) {
    const Json *shape = json_get(j, "shape"), *stride = json_get(j, "stride");
    const char *hex = json_str(json_get(j, "hex"), ""), *name = json_str(json_get(j, "t"), "");
    DType dtype = dtype_from_abbr(strcmp(name, "bool") == 0 ? "b8" : name);
    int64_t size[TENSOR_DIMS], steps[TENSOR_DIMS];
    if (dtype == DT_none) {
        diag_fail(d, "a tensor of dtype '%s', which is not known", name);
        return false;
    }
    if (!shape || !stride || shape->n > TENSOR_DIMS || stride->n != shape->n) {
        diag_fail(d, "a tensor needs a \"shape\" and a \"stride\" of the same length, at most %d",
                  TENSOR_DIMS);
        return false;
    }
    for (int i = 0; i < shape->n; i++) {
        size[i] = json_int(json_at(shape, i), -1);
        steps[i] = json_int(json_at(stride, i), -1);
    }
    int64_t bytes = bytes_of(dtype, shape->n, size, steps);
    if (bytes < 0 || strlen(hex) / 2 != (size_t)bytes || strlen(hex) % 2) {
        if (bytes < 0)
            diag_fail(d, "a tensor whose sizes or strides are none");
        else
            diag_fail(d, "a tensor of %lld bytes with %zu hexadecimal digits", (long long)bytes,
                      strlen(hex));
        return false;
    }
    Tensor dense;
    if (!tensor_new(&dense, dtype, shape->n, size, d))
        return false;
    bool ok = true;
    uint8_t *to = tensor_data(&dense);
    for (int64_t i = 0; ok && i < bytes; i++) {
        int hi = hex_digit(hex[2 * i]), lo = hex_digit(hex[2 * i + 1]);
        ok = hi >= 0 && lo >= 0;
        to[i] = ok ? (uint8_t)(hi << 4 | lo) : 0;
    }
    if (!ok)
        diag_fail(d, "a tensor's \"hex\" has other characters than 0-9 and a-f");
    *out = (RtValue){0};
    ok = ok && tensor_new_strided(&out->tensor, dtype, shape->n, size, steps, d);
    if (ok) {
        out->kind = RT_tensor;
        tensor_copy(&out->tensor, &dense);
    }
    tensor_drop(&dense);
    return ok;
}

static bool read_float(const char *s, RtValue *out) {
    char *end;
    *out = (RtValue){.kind = RT_float, .f = strtod(s, &end)};
    return end != s && !*end;
}

// "dtype", "device", "layout", "memory_format": false if there is none of that name.
static bool read_other(Arena *a, const Json *j, RtValue *out) {
    const Json *m = j->child;
    const char *s = json_str(m, "");
    Value v = val_none();
    if (!strcmp(m->key, "dtype")) {
        v = val_dtype(dtype_from_abbr(s) ? dtype_from_abbr(s) : dtype_from_torch(s));
        v.kind = v.dtype == DT_none ? VAL_none : v.kind;
    } else if (!strcmp(m->key, "device")) {
        v.kind = device_parse(s, &v.device) ? VAL_device : VAL_none;
    } else if (!strcmp(m->key, "layout")) {
        v = (Value){.kind = VAL_layout, .layout = LAYOUT_strided};
    } else if (!strcmp(m->key, "memory_format")) {
        const char *name = strrchr(s, '.') ? strrchr(s, '.') + 1 : s;
        int mf = str_index(name, memory_format_name, MF_count);
        if (mf >= 0)
            v = (Value){.kind = VAL_memory_format, .mf = (MemoryFormat)mf};
    }
    if (v.kind == VAL_none)
        return false;
    *out = rt_other(a, v);
    return true;
}

static bool read_object(Arena *a, const Json *j, RtValue *out, Diag *d) {
    const char *f = json_str(json_get(j, "f"), NULL);
    if (json_get(j, "t"))
        return read_tensor(j, out, d);
    if (f ? read_float(f, out) : j->child && read_other(a, j, out))
        return true;
    *out = (RtValue){0};
    diag_fail(d, "a value of unknown form: {\"%s\": \"%s\"}", j->child ? j->child->key : "",
              json_str(j->child, "…"));
    return false;
}

bool case_value(Arena *a, const Json *j, RtValue *out, Diag *d) {
    *out = (RtValue){0};
    if (!j)
        return true;
    switch (j->kind) {
    case JSON_null:
        return true;
    case JSON_bool:
        *out = (RtValue){.kind = RT_bool, .b = j->b};
        return true;
    case JSON_int:
        *out = (RtValue){.kind = RT_int, .i = j->i};
        return true;
    case JSON_float:
        *out = (RtValue){.kind = RT_float, .f = j->f};
        return true;
    case JSON_string:
        *out = rt_other(a, val_str(j->s));
        return true;
    case JSON_object:
        return read_object(a, j, out, d);
    case JSON_array:
        break;
    }
    *out = (RtValue){.kind = RT_list, .n = j->n, .at = ARENA_ARRAY(a, j->n + 1, RtValue)};
    int i = 0;
    for (const Json *c = j->child; c; c = c->next)
        if (!case_value(a, c, &out->at[i++], d))
            return false;
    return true;
}

// None and numbers that are given stand for truth values, as pybind casts them.
static void cast_bools(const SchemaArg *arg, RtValue *v) {
    bool list = arg->type == AT_bools && v->kind == RT_list;
    if ((arg->type != AT_bool && !list) || (v->kind == RT_none && arg->optional))
        return;
    for (int i = 0; i < (list ? v->n : 1); i++) {
        RtValue *one = list ? &v->at[i] : v;
        if (one->kind == RT_none || one->kind == RT_int || one->kind == RT_float)
            *one = (RtValue){.kind = RT_bool,
                             .b = one->kind == RT_int     ? one->i != 0
                                  : one->kind == RT_float ? one->f != 0
                                                          : false};
    }
}

// A single number for a list of fixed length.
static void widen(Arena *a, const SchemaArg *arg, RtValue *v) {
    if (!arg->fixed || v->kind == RT_list || v->kind == RT_none)
        return;
    RtValue one = *v;
    *v = (RtValue){.kind = RT_list, .n = arg->fixed, .at = ARENA_ARRAY(a, arg->fixed + 1, RtValue)};
    for (int i = 0; i < arg->fixed; i++)
        v->at[i] = one;
}

static bool item_fits(ArgType t, const RtValue *v) {
    static const struct {
        ArgType type;
        ValueKind kind;
    } others[] = {{AT_str, VAL_str},       {AT_dtype, VAL_dtype},
                  {AT_layout, VAL_layout}, {AT_device, VAL_device},
                  {AT_device, VAL_str},    {AT_memory_format, VAL_memory_format}};
    bool integral = v->kind == RT_int || v->kind == RT_bool;
    bool number = integral || v->kind == RT_float;
    switch (t) {
    case AT_tensor:
    case AT_tensors:
    case AT_scalar:
    case AT_scalars:
        return number || v->kind == RT_tensor;
    case AT_int:
    case AT_ints:
        return integral;
    case AT_float:
    case AT_floats:
        return number;
    case AT_bool:
    case AT_bools:
        return v->kind == RT_bool;
    case AT_any:
        return true;
    case AT_generator:
        return false;
    case AT_str:
    case AT_dtype:
    case AT_layout:
    case AT_device:
    case AT_memory_format:
        break;
    }
    for (int i = 0; i < COUNT(others); i++)
        if (others[i].type == t && v->kind == RT_other && v->other->kind == others[i].kind)
            return true;
    return t == AT_dtype && v->kind == RT_int; // as schemas have it for a default
}

static bool fits(const SchemaArg *arg, const RtValue *v) {
    bool list = arg->type == AT_tensors || arg->type == AT_ints || arg->type == AT_floats ||
                arg->type == AT_bools || arg->type == AT_scalars;
    if (v->kind == RT_none)
        return arg->optional || arg->type == AT_generator || arg->type == AT_any ||
               (arg->has_default && arg->dflt.kind == VAL_none);
    if (!list || v->kind != RT_list)
        return item_fits(arg->type, v) && (!list || arg->type == AT_ints);
    for (int i = 0; i < v->n; i++)
        if (!item_fits(arg->type, &v->at[i]) && !(arg->optional_items && v->at[i].kind == RT_none))
            return false;
    return true;
}

static bool check_types(const Op *op, const RtValue *args, Diag *d) {
    for (int i = 0; i < op->n_args; i++)
        if (!fits(&op->args[i], &args[i])) {
            Buf type = {.arena = d->arena};
            arg_type_print(&type, &op->args[i]);
            diag_fail(d, "%s: argument '%s' must be %s", op->qualname, op->args[i].name,
                      buf_str(&type));
            return false;
        }
    return true;
}

static bool read_arg(Arena *a, const SchemaArg *arg, const Json *j, RtValue *out, Diag *d) {
    bool ok = case_value(a, j, out, d);
    cast_bools(arg, out);
    return ok;
}

bool case_bind(Arena *a, const Op *op, const Json *line, RtValue *args, Diag *d) {
    const Json *positional = json_get(line, "args"), *kw = json_get(line, "kwargs");
    for (int i = 0; i < op->n_args; i++)
        args[i] = rt_of_value(a, &op->args[i].dflt);
    int i = 0;
    for (const Json *j = positional ? positional->child : NULL; j; j = j->next, i++)
        if (i >= op->n_args || !read_arg(a, &op->args[i], j, &args[i], d)) {
            if (i >= op->n_args)
                diag_fail(d, "%s takes %d arguments", op->qualname, op->n_args);
            return false;
        }
    for (const Json *j = kw ? kw->child : NULL; j; j = j->next) {
        int k = op_arg_index(op, j->key);
        if (k < 0) {
            diag_fail(d, "%s has no argument '%s'", op->qualname, j->key);
            return false;
        }
        if (!read_arg(a, &op->args[k], j, &args[k], d))
            return false;
    }
    for (i = 0; i < op->n_args; i++)
        widen(a, &op->args[i], &args[i]);
    return check_types(op, args, d);
}
