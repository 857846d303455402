// schema.c: operator schemas in PyTorch's syntax, `ns::name.overload(Tensor(a!) self, int[2] k=1,
// *, Scalar? s=None) -> Tensor(a!)`. A recursive-descent reader over one line; defaults become
// Values.
#include "core/ops/ops.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/vec.h"

typedef struct Reader {
    Arena *a;
    Diag *diag;
    const char *text;   // whole schema
    const char *p;      // next character
    bool failed;        // an error is on record; reads are without effect from then on
} Reader;

typedef VEC(SchemaArg) ArgVec;

static const struct {
    const char *name;
    ArgType type;
} type_names[] = {
    {"Tensor", AT_tensor},         {"int", AT_int},          {"SymInt", AT_int},
    {"float", AT_float},           {"bool", AT_bool},        {"SymBool", AT_bool},
    {"Scalar", AT_scalar},         {"SymFloat", AT_float},   {"number", AT_scalar},
    {"str", AT_str},               {"ScalarType", AT_dtype}, {"Layout", AT_layout},
    {"Device", AT_device},         {"Generator", AT_generator},
    {"MemoryFormat", AT_memory_format},                      {"Any", AT_any},
};

static void fail(Reader *r, const char *expected) {
    if (r->failed)
        return;
    r->failed = true;
    Place at = {.line = 1, .col = (int)(r->p - r->text) + 1, .source = r->text};
    if (*r->p)
        diag_error(r->diag, at, "schema: found '%.12s', expected %s", r->p, expected);
    else
        diag_error(r->diag, at, "schema: ends too early, expected %s", expected);
}

static void blanks(Reader *r) {
    while (*r->p == ' ')
        r->p++;
}

static bool accept(Reader *r, const char *word) {
    blanks(r);
    size_t n = strlen(word);
    if (r->failed || strncmp(r->p, word, n) != 0)
        return false;
    r->p += n;
    return true;
}

static void expect(Reader *r, const char *word) {
    if (!accept(r, word))
        fail(r, arena_printf(r->a, "'%s'", word));
}

static const char *name(Reader *r, const char *what) {
    blanks(r);
    const char *start = r->p;
    if (r->failed)
        return "";
    while (isalnum((unsigned char)*r->p) || *r->p == '_')
        r->p++;
    if (r->p == start)
        fail(r, what);
    return arena_strndup(r->a, start, (size_t)(r->p - start));
}

// `(a!)`, `(a -> *)`, `(a|b)`; letters become bits.
static void alias(Reader *r, SchemaArg *arg) {
    while (!r->failed && !accept(r, ")")) {
        blanks(r);
        if (*r->p >= 'a' && *r->p <= 'z')
            arg->alias |= 1u << (*r->p++ - 'a');
        else if (accept(r, "!"))
            arg->written = true;
        else if (!accept(r, "->") && !accept(r, "*") && !accept(r, "|"))
            fail(r, "an alias letter or ')'");
    }
}

static ArgType list_of(Reader *r, ArgType item) {
    switch (item) {
    case AT_tensor: return AT_tensors;
    case AT_int: return AT_ints;
    case AT_float: return AT_floats;
    case AT_bool: return AT_bools;
    case AT_scalar: return AT_scalars;
    case AT_any: return AT_any;
    case AT_tensors: case AT_ints: case AT_floats: case AT_bools: case AT_scalars: case AT_str:
    case AT_dtype: case AT_layout: case AT_device: case AT_memory_format: case AT_generator:
        break;
    }
    fail(r, "no list of this type");
    return item;
}

static void type(Reader *r, SchemaArg *arg) {
    const char *start = r->p;
    const char *word = name(r, "a type");
    int i = 0;
    while (i < COUNT(type_names) && strcmp(type_names[i].name, word) != 0)
        i++;
    if (i == COUNT(type_names)) {
        if (!r->failed)
            r->p = start;
        fail(r, "a type such as Tensor, int, SymInt, float, bool, Scalar, str");
        return;
    }
    arg->type = type_names[i].type;
    for (;;) {
        if (r->failed)
            return;
        if (*r->p == '(') {
            r->p++;
            alias(r, arg);
        } else if (*r->p == '?') {
            r->p++;
            arg->optional = true;
        } else if (*r->p == '[') {
            r->p++;
            arg->optional_items = arg->optional;
            arg->optional = false;
            arg->type = list_of(r, arg->type);
            while (isdigit((unsigned char)*r->p) && arg->fixed < 100000)
                arg->fixed = arg->fixed * 10 + (*r->p++ - '0');
            expect(r, "]");
        } else {
            return;
        }
    }
}

// c10's numbering of dtypes, which differs from that of exported programs.
static DType dtype_from_c10(int64_t i) {
    enum { C10_BOOL = 11, C10_BFLOAT16 = 15 };
    return i == C10_BFLOAT16         ? DT_bf16
           : i >= 0 && i <= C10_BOOL ? dtype_from_scalar_type((int)i + 1)
                                     : DT_none;
}

// A number, a word or a quoted text, up to `,` `)` or `]`.
static Value default_item(Reader *r, ArgType t) {
    blanks(r);
    if (*r->p == '"' || *r->p == '\'') {
        char quote = *r->p++;
        const char *start = r->p;
        while (*r->p && *r->p != quote)
            r->p++;
        const char *text = arena_strndup(r->a, start, (size_t)(r->p - start));
        if (*r->p)
            r->p++;
        else
            fail(r, "a closing quote");
        return val_str(text);
    }
    const char *start = r->p;
    while (*r->p && !strchr(",)] ", *r->p))
        r->p++;
    const char *word = arena_strndup(r->a, start, (size_t)(r->p - start));
    if (strcmp(word, "None") == 0)
        return val_none();
    if (strcmp(word, "True") == 0 || strcmp(word, "False") == 0)
        return val_bool(*word == 'T');
    if (strcmp(word, "Mean") == 0)  // at::Reduction
        return val_int(1);
    char *end;
    long long i = strtoll(word, &end, 10);
    if (*word && !*end)
        return t == AT_dtype ? val_dtype(dtype_from_c10(i))
               : t == AT_float || t == AT_floats ? val_float((double)i) : val_int(i);
    double f = strtod(word, &end);
    if (*word && !*end)
        return val_float(f);
    if (t == AT_dtype && dtype_from_torch(word) != DT_none)
        return val_dtype(dtype_from_torch(word));
    int mf = str_index(word, memory_format_name, MF_count);
    if (mf >= 0)
        return (Value){.kind = VAL_memory_format, .mf = (MemoryFormat)mf};
    Value v = {.kind = VAL_device};
    if (t == AT_device && device_parse(word, &v.device))
        return v;
    r->p = start;
    fail(r, "a default value");
    return val_none();
}

static bool is_list(ArgType t) {
    return t == AT_tensors || t == AT_ints || t == AT_floats || t == AT_bools || t == AT_scalars;
}

static Value repeated(Arena *a, Value item, int n) {
    Value list = val_list(a, VAL_list, n);
    for (int i = 0; i < n; i++)
        list.at[i] = item;
    return list;
}

static Value default_value(Reader *r, const SchemaArg *arg) {
    if (!accept(r, "[")) {
        Value v = default_item(r, arg->type);
        bool widen = is_list(arg->type) && arg->fixed && v.kind != VAL_none;
        return widen ? repeated(r->a, v, arg->fixed) : v;
    }
    VEC(Value) items = {0};
    while (!r->failed && !accept(r, "]")) {
        if (items.n)
            expect(r, ",");
        Value v = default_item(r, arg->type);
        vec_push(r->a, &items, v);
    }
    return (Value){.kind = VAL_list, .n = items.n, .at = items.at};
}

static void arguments(Reader *r, ArgVec *out) {
    bool kwarg_only = false;
    expect(r, "(");
    for (bool first = true; !r->failed && !accept(r, ")"); first = false) {
        if (!first)
            expect(r, ",");
        if (accept(r, "*")) {
            if (kwarg_only)
                fail(r, "only one '*'");
            kwarg_only = true;
            continue;
        }
        blanks(r);
        SchemaArg arg = {.kwarg_only = kwarg_only};
        type(r, &arg);
        arg.name = name(r, "an argument's name");
        if (accept(r, "=")) {
            arg.has_default = true;
            arg.dflt = default_value(r, &arg);
        }
        vec_push(r->a, out, arg);
    }
}

static void one_return(Reader *r, ArgVec *out) {
    SchemaArg ret = {0};
    blanks(r);
    type(r, &ret);
    blanks(r);
    ret.name = isalpha((unsigned char)*r->p) || *r->p == '_' ? name(r, "a name") : NULL;
    vec_push(r->a, out, ret);
}

static void returns(Reader *r, ArgVec *out) {
    expect(r, "->");
    if (!accept(r, "(")) {
        one_return(r, out);
        return;
    }
    for (bool first = true; !r->failed && !accept(r, ")"); first = false) {
        if (!first)
            expect(r, ",");
        one_return(r, out);
    }
}

static unsigned schema_tags(const Op *op) {
    unsigned tags = 0;
    for (int i = 0; i < op->n_args; i++) {
        if (op->args[i].written)
            tags |= OPT_mutates;
        if (op->args[i].written && op->args[i].kwarg_only)
            tags |= OPT_out;
        if (op->args[i].alias && !op->args[i].written && op->n_returns && op->returns[0].alias)
            tags |= OPT_view;
    }
    return tags;
}

static bool names_clash(const Op *op) {
    for (int i = 0; i < op->n_args; i++)
        for (int j = 0; j < i; j++)
            if (strcmp(op->args[i].name, op->args[j].name) == 0)
                return true;
    return false;
}

Op *op_parse_schema(Arena *a, const char *schema, Diag *d) {
    Reader r = {.a = a, .diag = d, .text = schema, .p = schema};
    Op *op = ARENA_NEW(a, Op);
    op->schema = schema;
    op->ns = name(&r, "a namespace");
    expect(&r, "::");
    op->name = name(&r, "an operator's name");
    op->overload = !r.failed && *r.p == '.' ? (r.p++, name(&r, "an overload's name")) : "default";
    ArgVec args = {0}, rets = {0};
    arguments(&r, &args);
    returns(&r, &rets);
    blanks(&r);
    if (*r.p)
        fail(&r, "the end of the schema");
    op->args = args.at;
    op->n_args = args.n;
    op->returns = rets.at;
    op->n_returns = rets.n;
    if (!r.failed && names_clash(op)) {
        r.p = r.text;
        fail(&r, "argument names that differ");
    }
    if (r.failed)
        return NULL;
    op->tags = schema_tags(op);
    op->qualname = arena_printf(a, "torch.ops.%s.%s.%s", op->ns, op->name, op->overload);
    return op;
}

void arg_type_print(Buf *out, const SchemaArg *arg) {
    static const char *const names[] = {
        [AT_tensor] = "Tensor",
        [AT_tensors] = "Tensor",
        [AT_int] = "int",
        [AT_ints] = "int",
        [AT_float] = "float",
        [AT_floats] = "float",
        [AT_bool] = "bool",
        [AT_bools] = "bool",
        [AT_scalar] = "Scalar",
        [AT_scalars] = "Scalar",
        [AT_str] = "str",
        [AT_dtype] = "ScalarType",
        [AT_layout] = "Layout",
        [AT_device] = "Device",
        [AT_memory_format] = "MemoryFormat",
        [AT_generator] = "Generator",
        [AT_any] = "Any",
    };
    buf_puts(out, names[arg->type]);
    if (arg->optional_items)
        buf_putc(out, '?');
    if (is_list(arg->type) && arg->fixed)
        buf_printf(out, "[%d]", arg->fixed);
    else if (is_list(arg->type))
        buf_puts(out, "[]");
    if (arg->optional)
        buf_putc(out, '?');
}
