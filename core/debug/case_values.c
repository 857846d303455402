// case_values.c: values of recorded cases out of JSON, and their binding to a schema.
#include "core/debug/case_values.h"

#include <stdlib.h>
#include <string.h>

static int hex_digit(char c) {
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool read_tensor(Arena *a, const Json *j, RtValue *out, Diag *d) {
    const Json *shape = json_get(j, "shape"), *stride = json_get(j, "stride");
    const char *hex = json_str(json_get(j, "hex"), ""), *name = json_str(json_get(j, "t"), "");
    DType dtype = dtype_from_abbr(strcmp(name, "bool") == 0 ? "b8" : name);
    int64_t size[TENSOR_DIMS], steps[TENSOR_DIMS];
    if (dtype == DT_none || !shape || !stride || shape->n > TENSOR_DIMS || stride->n != shape->n) {
        diag_fail(d, "a tensor of dtype '%s', which is not known", name);
        return false;
    }
    for (int i = 0; i < shape->n; i++) {
        size[i] = json_int(json_at(shape, i), 0);
        steps[i] = json_int(json_at(stride, i), 0);
    }
    Tensor dense;
    *out = (RtValue){.kind = RT_tensor};
    if (!tensor_new(&dense, dtype, shape->n, size, d))
        return false;
    size_t bytes = tensor_bytes(&dense);
    bool ok = strlen(hex) == 2 * bytes;
    uint8_t *to = tensor_data(&dense);
    for (size_t i = 0; ok && i < bytes; i++) {
        int hi = hex_digit(hex[2 * i]), lo = hex_digit(hex[2 * i + 1]);
        ok = hi >= 0 && lo >= 0;
        to[i] = ok ? (uint8_t)(hi << 4 | lo) : 0;
    }
    if (!ok)
        diag_fail(d, "a tensor of %zu bytes with %zu hexadecimal digits", bytes, strlen(hex));
    ok = ok && tensor_new_strided(&out->tensor, dtype, shape->n, size, steps, d);
    if (ok)
        tensor_copy(&out->tensor, &dense);
    tensor_drop(&dense);
    (void)a;
    return ok;
}

static RtValue other(Arena *a, Value v) {
    Value *copy = ARENA_NEW(a, Value);
    *copy = v;
    return (RtValue){.kind = RT_other, .other = copy};
}

static bool read_object(Arena *a, const Json *j, RtValue *out, Diag *d) {
    const char *s;
    Value v = {.kind = VAL_device};
    if (json_get(j, "t"))
        return read_tensor(a, j, out, d);
    if ((s = json_str(json_get(j, "f"), NULL)))
        *out = (RtValue){.kind = RT_float, .f = strtod(s, NULL)};
    else if ((s = json_str(json_get(j, "dtype"), NULL)))
        *out = other(a, val_dtype(dtype_from_abbr(s) ? dtype_from_abbr(s) : dtype_from_torch(s)));
    else if ((s = json_str(json_get(j, "device"), NULL)))
        *out = device_parse(s, &v.device) ? other(a, v) : (RtValue){0};
    else if (json_get(j, "layout"))
        *out = other(a, (Value){.kind = VAL_layout, .layout = LAYOUT_strided});
    else if ((s = json_str(json_get(j, "memory_format"), NULL))) {
        s = strrchr(s, '.') ? strrchr(s, '.') + 1 : s;
        int mf = str_index(s, memory_format_name, MF_count);
        *out = other(a, (Value){.kind = VAL_memory_format, .mf = (MemoryFormat)(mf < 0 ? 0 : mf)});
    } else {
        diag_fail(d, "a value of unknown form");
        return false;
    }
    return true;
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
        *out = other(a, val_str(j->s));
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

static RtValue default_value(Arena *a, const Value *v) {
    RtValue out = {0};
    switch (v->kind) {
    case VAL_none:
        return out;
    case VAL_int:
        return (RtValue){.kind = RT_int, .i = v->i};
    case VAL_bool:
        return (RtValue){.kind = RT_bool, .b = v->b};
    case VAL_float:
        return (RtValue){.kind = RT_float, .f = v->f};
    case VAL_list:
    case VAL_tuple:
        out = (RtValue){.kind = RT_list, .n = v->n, .at = ARENA_ARRAY(a, v->n + 1, RtValue)};
        for (int i = 0; i < v->n; i++)
            out.at[i] = default_value(a, &v->at[i]);
        return out;
    default:
        return other(a, *v);
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

bool case_bind(Arena *a, const Op *op, const Json *line, RtValue *args, Diag *d) {
    const Json *positional = json_get(line, "args"), *kw = json_get(line, "kwargs");
    for (int i = 0; i < op->n_args; i++)
        args[i] = default_value(a, &op->args[i].dflt);
    int i = 0;
    for (const Json *j = positional ? positional->child : NULL; j; j = j->next, i++)
        if (i >= op->n_args || !case_value(a, j, &args[i], d)) {
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
        if (!case_value(a, j, &args[k], d))
            return false;
    }
    for (i = 0; i < op->n_args; i++)
        widen(a, &op->args[i], &args[i]);
    return true;
}
