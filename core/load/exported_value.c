// exported_value.c: arguments, tensor metadata and stack traces of an ExportedProgram's JSON.
#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/load/exported.h"

enum { MAX_DEPTH = 32, MAX_DIMS = 64 };

// ---- sizes

const Expr *exported_int(Exported *x, const Json *j) {
    Sym *sym = x->m->sym;
    if (j && j->kind == JSON_int)
        return sym_int(sym, j->i);
    const Json *number = json_get(j, "as_int"), *expr = json_get(j, "as_expr");
    if (number && number->kind == JSON_int)
        return sym_int(sym, number->i);
    const char *text = json_str(json_get(expr, "expr_str"), NULL);
    if (!text) {
        exported_fail(x, "a size with neither as_int nor as_expr");
        return NULL;
    }
    Diag quiet = {.arena = x->tmp};
    const Expr *e = sym_parse_srepr(sym, text, (Place){0}, &quiet);
    // Files before 2.6 have the str form.
    e = e ? e : sym_parse(sym, text, (Place){0}, &quiet);
    if (!e) {
        exported_fail(x, "expression `%s`: %s", text, diag_first(&quiet));
        return NULL;
    }
    const Json *hint = json_get(json_get(expr, "hint"), "as_int");
    if (hint && hint->kind == JSON_int && expr_kind(e) == SYM_symbol)
        sym_set_hint(sym, e, hint->i);
    return e;
}

static bool read_sizes(Exported *x, const Json *list, const Expr **out, int n) {
    const Json *j = list ? list->child : NULL;
    for (int i = 0; i < n; i++, j = j->next)
        if (!(out[i] = exported_int(x, j)))
            return false;
    return true;
}

// ---- numbers of enums: torch/_export/serde/schema.py

static const Layout layouts[] = {
    [1] = LAYOUT_sparse_coo, [2] = LAYOUT_sparse_csr, [6] = LAYOUT_mkldnn, [7] = LAYOUT_strided};
static const MemoryFormat formats[] = {
    [1] = MF_contiguous, [2] = MF_channels_last, [3] = MF_channels_last_3d, [4] = MF_preserve};

static bool read_layout(Exported *x, const Json *j, Layout *out) {
    int64_t v = json_int(j, -1);
    if (v != 1 && v != 2 && v != 6 && v != 7)
        return exported_fail(x, "layout %lld is not one of 1, 2, 6, 7", (long long)v);
    *out = layouts[v];
    return true;
}

static bool read_device(Exported *x, const Json *j, Device *out) {
    const char *type = json_str(json_get(j, "type"), "cpu");
    if (!device_parse(type, out) && !device_stand_in(type, out))
        return exported_fail(x, "device `%s` is none of cpu, cuda, meta", type);
    const Json *index = json_get(j, "index");
    if (index && index->kind == JSON_int && index->i >= 0 && index->i < 256 && out->type != DEV_cpu)
        out->index = (int)index->i;
    return true;
}

bool exported_tensor_meta(Exported *x, const Json *j, const TensorMeta **out) {
    const Json *sizes = json_get(j, "sizes"), *strides = json_get(j, "strides");
    DType dtype = dtype_from_scalar_type((int)json_int(json_get(j, "dtype"), 0));
    if (dtype == DT_none)
        return exported_fail(x, "scalar type %lld is unknown",
                             (long long)json_int(json_get(j, "dtype"), 0));
    if (!sizes || !strides || sizes->n != strides->n || sizes->n > MAX_DIMS)
        return exported_fail(x, "tensor metadata needs sizes and as many strides, at most %d",
                             MAX_DIMS);
    TensorMeta *t = meta_new(x->m->arena, dtype, sizes->n);
    if (!read_sizes(x, sizes, t->size, t->ndim) || !read_sizes(x, strides, t->stride, t->ndim))
        return false;
    const Json *offset = json_get(j, "storage_offset");
    t->offset = offset ? exported_int(x, offset) : sym_int(x->m->sym, 0);
    t->requires_grad = json_bool(json_get(j, "requires_grad"), false);
    t->device = (Device){DEV_cpu, -1};
    *out = t;
    return t->offset && read_device(x, json_get(j, "device"), &t->device) &&
           read_layout(x, json_get(j, "layout"), &t->layout);
}

static bool read_symbolic(Exported *x, const Json *j, Value *out) {
    const Json *expr = json_get(j, "as_expr");
    if (!expr || json_get(j, "as_int")) {
        const Expr *e = exported_int(x, j);
        *out = (Value){.kind = VAL_sym, .sym = e};
        return e != NULL;
    }
    const char *text = json_str(json_get(expr, "expr_str"), "");
    Diag quiet = {.arena = x->tmp};
    const Expr *e = sym_parse_srepr(x->m->sym, text, (Place){0}, &quiet);
    e = e ? e : sym_parse(x->m->sym, text, (Place){0}, &quiet);
    const char *real = e ? NULL : sym_srepr_text(x->m->arena, text);
    *out = e ? val_symbolic(x->m->arena, e)
             : (Value){.kind = VAL_symfloat, .s = arena_strdup(x->m->arena, real ? real : text)};
    const Json *hints = json_get(expr, "hint"), *hint = json_get(hints, "as_int");
    const Json *number = json_get(hints, "as_float");
    if (number && out->kind == VAL_symfloat && sym_is_real_name(out->s))
        sym_set_real_hint(x->m->sym, out->s, json_float(number, 0));
    if (e && hint && hint->kind == JSON_int && expr_kind(e) == SYM_symbol)
        sym_set_hint(x->m->sym, e, hint->i);
    return true;
}

bool exported_named(Exported *x, const char *name, Value *out) {
    *out = (Value){.kind = VAL_none};
    const Json *meta = map_get(&x->tensors, name);
    if (meta) {
        const TensorMeta *t = NULL;
        bool ok = exported_tensor_meta(x, meta, &t);
        *out = ok ? val_tensor(t) : *out;
        return ok;
    }
    const Json *sym = map_get(&x->symbols, name), *constant = json_get(sym, "as_bool");
    if (constant)
        *out = val_bool(json_bool(constant, false));
    return !sym || constant || read_symbolic(x, sym, out);
}

// ---- arguments

static bool node_named(Exported *x, const Json *name, Value *out) {
    const char *text = json_str(name, NULL);
    Node *n = text ? map_get(&x->scope, text) : NULL;
    if (!n)
        return exported_fail(x, "value `%s` is not defined before its use", text ? text : "");
    *out = val_node(n);
    return true;
}

static bool read_node(Exported *x, const Json *j, Value *out) {
    return node_named(x, json_get(j, "name"), out);
}

static bool read_none(Exported *x, const Json *j, Value *out) {
    (void)x, (void)j;
    *out = val_none();
    return true;
}

static bool read_int(Exported *x, const Json *j, Value *out) {
    if (!j || j->kind != JSON_int)
        return exported_fail(x, "an integer is expected");
    *out = val_int(j->i);
    return true;
}

// json_float takes numbers and the texts "Infinity", "-Infinity", "NaN".
static bool read_float(Exported *x, const Json *j, Value *out) {
    double v = json_float(j, 0);
    *out = val_float(v);
    return json_float(j, 1) == v || v != v || exported_fail(x, "a number is expected");
}

static bool read_str(Exported *x, const Json *j, Value *out) {
    *out = val_str(json_str(j, ""));
    return json_str(j, NULL) || exported_fail(x, "a text is expected");
}

static bool read_bool(Exported *x, const Json *j, Value *out) {
    bool v = json_bool(j, false);
    *out = val_bool(v);
    return json_bool(j, true) == v || exported_fail(x, "true or false is expected");
}

static bool read_dtype(Exported *x, const Json *j, Value *out) {
    DType d = dtype_from_scalar_type((int)json_int(j, 0));
    *out = val_dtype(d);
    return d != DT_none ||
           exported_fail(x, "scalar type %lld is unknown", (long long)json_int(j, 0));
}

static bool read_format(Exported *x, const Json *j, Value *out) {
    int64_t v = json_int(j, 0);
    if (v < 1 || v >= COUNT(formats))
        return exported_fail(x, "memory format %lld is not one of 1 to 4", (long long)v);
    *out = (Value){.kind = VAL_memory_format, .mf = formats[v]};
    return true;
}

static bool read_layout_arg(Exported *x, const Json *j, Value *out) {
    out->kind = VAL_layout;
    return read_layout(x, j, &out->layout);
}

static bool read_device_arg(Exported *x, const Json *j, Value *out) {
    out->kind = VAL_device;
    out->device = (Device){DEV_cpu, -1};
    return read_device(x, j, &out->device);
}

// {"as_name": …} or the constant.
static bool read_sym_arg(Exported *x, const Json *j, Value *out) {
    const Json *name = json_get(j, "as_name");
    const Json *f = json_get(j, "as_float"), *b = json_get(j, "as_bool");
    if (name)
        return node_named(x, name, out);
    return f   ? read_float(x, f, out)
           : b ? read_bool(x, b, out)
               : read_int(x, json_get(j, "as_int"), out);
}

static bool read_complex(Exported *x, const Json *j, Value *out) {
    (void)x;
    *out = (Value){.kind = VAL_complex,
                   .c = {json_float(json_get(j, "real"), 0), json_float(json_get(j, "imag"), 0)}};
    return true;
}

static bool read_operator(Exported *x, const Json *j, Value *out) {
    (void)x;
    *out = (Value){.kind = VAL_target, .s = json_str(j, "")};
    return true;
}

static bool read_graph(Exported *x, const Json *j, Value *out) {
    const char *name = json_str(json_get(j, "name"), NULL);
    const Json *graph = json_get(j, "graph");
    if (!name || !graph)
        return exported_fail(x, "as_graph needs name and graph");
    Graph *child = exported_subgraph(x, graph, name);
    if (!child)
        return false;
    vec_push(x->m->arena, &x->g->children, (GraphChild){arena_strdup(x->m->arena, name), child});
    *out = val_node(graph_get_attr(x->g, name, name));
    return true;
}

// An optional tensor: one of two tags.
static bool read_optional(Exported *x, const Json *j, Value *out) {
    const Json *tensor = json_get(j, "as_tensor");
    return tensor ? read_node(x, tensor, out) : read_none(x, j, out);
}

static bool read_dict(Exported *x, const Json *j, Value *out) {
    int n = j ? j->n : 0;
    Value *at = ARENA_ARRAY(x->tmp, 2 * n + 1, Value);
    int i = 0;
    for (const Json *e = n ? j->child : NULL; e; e = e->next) {
        at[i++] = val_str(e->key ? e->key : "");
        if (!exported_argument(x, e, &at[i++]))
            return false;
    }
    *out = (Value){.kind = VAL_dict, .n = 2 * n, .at = at};
    return true;
}

typedef bool ReadArg(Exported *x, const Json *j, Value *out);

static bool read_list(Exported *x, const Json *j, ReadArg *item, Value *out) {
    if (!j || j->kind != JSON_array)
        return exported_fail(x, "a list is expected");
    *out = val_list(x->tmp, VAL_list, j->n);
    int i = 0;
    for (const Json *e = j->child; e; e = e->next)
        if (!item(x, e, &out->at[i++]))
            return false;
    return true;
}

static bool read_tensors(Exported *x, const Json *j, Value *out) {
    return read_list(x, j, read_node, out);
}

static bool read_ints(Exported *x, const Json *j, Value *out) {
    return read_list(x, j, read_int, out);
}

typedef struct ArgTag {
    const char *tag;
    ReadArg *read; // of the value, or of each item
    bool list;
} ArgTag;

static const ArgTag arg_tags[] = {
    {"as_none", read_none, false},
    {"as_tensor", read_node, false},
    {"as_tensors", read_node, true},
    {"as_int", read_int, false},
    {"as_ints", read_int, true},
    {"as_float", read_float, false},
    {"as_floats", read_float, true},
    {"as_string", read_str, false},
    {"as_strings", read_str, true},
    {"as_sym_int", read_sym_arg, false},
    {"as_sym_ints", read_sym_arg, true},
    {"as_scalar_type", read_dtype, false},
    {"as_memory_format", read_format, false},
    {"as_layout", read_layout_arg, false},
    {"as_device", read_device_arg, false},
    {"as_bool", read_bool, false},
    {"as_bools", read_bool, true},
    {"as_sym_bool", read_sym_arg, false},
    {"as_sym_bools", read_sym_arg, true},
    {"as_graph", read_graph, false},
    {"as_optional_tensors", read_optional, true},
    {"as_optional_tensor", read_optional, false},
    {"as_custom_obj", read_node, false},
    {"as_operator", read_operator, false},
    {"as_sym_float", read_sym_arg, false},
    {"as_sym_floats", read_sym_arg, true},
    {"as_complex", read_complex, false},
    {"as_nested_tensors", read_tensors, true},
    {"as_int_lists", read_ints, true},
    {"as_string_to_argument", read_dict, false},
};

bool exported_argument(Exported *x, const Json *arg, Value *out) {
    const Json *member = arg && arg->kind == JSON_object ? arg->child : NULL;
    *out = (Value){.kind = VAL_none};
    if (!member || member->next || !member->key)
        return exported_fail(x, "an argument must have exactly one `as_…` member");
    if (x->depth >= MAX_DEPTH)
        return exported_fail(x, "arguments nested deeper than %d", MAX_DEPTH);
    for (int i = 0; i < COUNT(arg_tags); i++) {
        const ArgTag *t = &arg_tags[i];
        if (strcmp(t->tag, member->key) != 0)
            continue;
        x->depth++;
        bool ok = t->list ? read_list(x, member, t->read, out) : t->read(x, member, out);
        x->depth--;
        return ok;
    }
    return exported_fail(x, "argument of unknown kind `%s`", member->key);
}

// ---- stack traces

// `File "model.py", line 10, in forward`; false if the line is none.
static bool frame_line(Arena *a, const char *line, StackFrame *f) {
    line += strspn(line, " \t");
    if (!str_starts(line, "File \""))
        return false;
    const char *file = line + 6, *quote = strstr(file, "\", line ");
    if (!quote)
        return false;
    char *after;
    long number = strtol(quote + 8, &after, 10);
    if (number < 0 || number > INT32_MAX || strncmp(after, ", in ", 5) != 0)
        return false;
    f->file = arena_strndup(a, file, (size_t)(quote - file));
    f->line = (int)number;
    f->func = arena_strdup(a, after + 5);
    return true;
}

// PyTorch's own files are not the user's.
static bool is_torch_file(const char *file) {
    const char *p = strstr(file, "site-packages/");
    p = p ? p + strlen("site-packages/") : file;
    return str_starts(p, "torch/");
}

// The last frame of the text is the innermost; the node belongs to the innermost one of the user's.
const StackFrame *exported_frames(Exported *x, const char *trace) {
    StackFrame *known = map_get(&x->frames, trace);
    if (known)
        return known;
    Arena *a = x->m->arena;
    const StackFrame *user = NULL, *outer = NULL;
    char *text = arena_strdup(a, trace);
    for (char *line = text; line;) {
        char *next = strchr(line, '\n');
        if (next)
            *next++ = 0;
        StackFrame f = {0};
        if (frame_line(a, line, &f)) {
            char *code = next ? next + strspn(next, " \t") : NULL;
            if (code && !str_starts(code, "File \"")) {
                char *stop = strchr(code, '\n');
                next = stop ? stop + 1 : NULL;
                f.code = arena_strndup(a, code, stop ? (size_t)(stop - code) : strlen(code));
            }
            f.outer = outer;
            StackFrame *kept = ARENA_NEW(a, StackFrame);
            *kept = f;
            outer = kept;
            user = !is_torch_file(f.file) ? kept : user;
        }
        line = next;
    }
    user = user ? user : outer;
    if (user)
        map_put(&x->frames, arena_strdup(a, trace), (void *)(uintptr_t)user);
    return user;
}
