// fx_runnable.c: fx_graph_runnable.py: plain code in `class Repro`, and load_args, which says what
// each input is:
//     s77 = 12                                      hints of symbols, at the top
//     buf0 = reader.storage(None, 32*s77)
//     reader.tensor(buf0, (s77, 8), is_leaf=True)   # arg1_1; strides, dtype= if not the usual
//     reader.symint(12)  # arg0_1
// PyTorch 2.0 has `args = [((8, 10), (10, 1), torch.float32, 'cpu'), …]` instead.
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/file.h"
#include "core/load/load_impl.h"

static int sniff(Str head, const char *path, bool is_dir) {
    (void)path;
    bool repro = !is_dir && load_contains(head, "class Repro(torch.nn.Module):");
    return repro && !memchr(head.ptr, 0, head.len) ? 60 : 0;
}

typedef struct Runnable {
    LoadedModel *m;
    Diag *d;
    const char *file;
    int line;                  // being read, from 1
    VEC(const Expr *) symbols; // with hints, in the order of the text
    Map used;                  // expr_id of symbols that an input has -> 1
    int input;                 // next placeholder
    Node **inputs;
    int n_inputs;
} Runnable;

static bool broken(Runnable *r, const char *line, const char *what) {
    diag_error(r->d, (Place){.file = r->file, .line = r->line, .source = line}, "%s", what)->hint =
        "inputs are read as PyTorch writes them: was the file edited?";
    return false;
}

// `s77 = 12`
static void read_hint(Runnable *r, const char *line) {
    size_t name = strspn(line, "szuf0123456789");
    char *end;
    if (!name || !islower((unsigned char)*line) || strncmp(line + name, " = ", 3) != 0)
        return;
    const char *symbol = arena_strndup(r->m->arena, line, name), *value = line + name + 3;
    if (sym_is_real_name(symbol)) {
        double real = strtod(value, &end);
        if (!*end && *value)
            sym_set_real_hint(r->m->sym, symbol, real);
        return;
    }
    long long v = strtoll(value, &end, 10);
    if (*end || end == value)
        return;
    const Expr *s = sym_symbol(r->m->sym, symbol);
    sym_set_hint(r->m->sym, s, v);
    vec_push(r->m->arena, &r->symbols, s);
}

enum { MAX_DIMS = 64 };

// `(8, s77)` at *p; -1 if it is none.
static int read_tuple(Runnable *r, const char **p, const Expr **out) {
    int n = 0;
    if (**p != '(')
        return -1;
    for ((*p)++; **p && **p != ')';) {
        if (n == MAX_DIMS || !(out[n++] = sym_parse_prefix(
                                   r->m->sym, p, (Place){.file = r->file, .line = r->line}, r->d)))
            return -1;
        *p += strspn(*p, ", ");
    }
    if (**p != ')')
        return -1;
    (*p)++;
    return n;
}

static const char *option(const char *line, const char *name) {
    const char *p = strstr(line, name);
    return p ? p + strlen(name) : NULL;
}

static Device read_device(Arena *a, const char *storage) {
    Device d = {DEV_cpu, -1};
    const char *type = option(storage, "device(type='"), *index = option(storage, "index=");
    const char *name = type ? arena_strndup(a, type, strcspn(type, "'")) : "cpu";
    if (!device_parse(name, &d))
        d = (Device){DEV_cpu, -1};
    if (index && d.type != DEV_cpu)
        d.index = atoi(index) & 0xff;
    return d;
}

static bool read_tensor(Runnable *r, const char *line, const char *args, const char *storage,
                        Value *out) {
    const Expr *size[MAX_DIMS], *stride[MAX_DIMS];
    const char *p = strchr(args, '(');
    int n = p ? read_tuple(r, &p, size) : -1;
    if (n < 0)
        return broken(r, line, "reader.tensor(buf, (sizes), …) is expected");
    const char *dtype = option(p, "dtype=torch."), *offset = option(p, "storage_offset=");
    DType type = DT_f32;
    if (dtype)
        type = dtype_from_torch(arena_strndup(
            r->m->arena, dtype, strspn(dtype, "abcdefghijklmnopqrstuvwxyz0123456789_")));
    if (type == DT_none)
        return broken(r, line, "an unknown dtype");
    TensorMeta *t =
        meta_contiguous(r->m->arena, r->m->sym, type, n, size, read_device(r->m->arena, storage));
    const char *q = p + strspn(p, ", ");
    if (*q == '(') {
        if (read_tuple(r, &q, stride) != n)
            return broken(r, line, "as many strides as sizes are expected");
        for (int i = 0; i < n; i++)
            t->stride[i] = stride[i];
    }
    if (offset)
        t->offset =
            sym_parse_prefix(r->m->sym, &offset, (Place){.file = r->file, .line = r->line}, r->d);
    t->requires_grad = strstr(p, "requires_grad=True") != NULL;
    *out = val_tensor(t);
    return t->offset != NULL;
}

// The symbol with that hint which no input has yet; the number itself if there is none.
static Value read_symint(Runnable *r, const char *args) {
    long long v = strtoll(args, NULL, 10);
    for (int i = 0; i < r->symbols.n; i++) {
        const Expr *s = r->symbols.at[i];
        int64_t hint;
        if (map_find_id(&r->used, expr_id(s)) || !sym_hint(r->m->sym, s, &hint) || hint != v)
            continue;
        map_put_id(&r->used, expr_id(s), r);
        return (Value){.kind = VAL_sym, .sym = s};
    }
    return val_int(v);
}

static bool read_arg(Runnable *r, const char *line, const Map *storages) {
    const char *call = line + strspn(line, " ");
    Value v = {.kind = VAL_none};
    if (str_starts(call, "reader.tensor(")) {
        const char *args = call + strlen("reader.tensor(");
        const char *buf = arena_strndup(r->m->arena, args, strcspn(args, ","));
        const char *storage = map_get(storages, buf);
        if (!read_tensor(r, line, args, storage ? storage : "", &v))
            return false;
    } else if (str_starts(call, "reader.symint(")) {
        v = read_symint(r, call + strlen("reader.symint("));
    } else if (!str_starts(call, "reader.const(") &&
               !strstr(call, "was unsupported type for dumping")) {
        return true;
    }
    if (r->input >= r->n_inputs)
        return broken(r, line, "more inputs than the graph has");
    r->inputs[r->input++]->val = v;
    return true;
}

// One of `((4, 8), (8, 1), torch.float32, 'cpu')`; what is made before AOTAutograd says besides
// whether it needs a gradient.
static bool read_old_arg(Runnable *r, const char **p, Value *out) {
    const Expr *size[MAX_DIMS], *stride[MAX_DIMS];
    int n = *(*p)++ == '(' ? read_tuple(r, p, size) : -1;
    *p += strspn(*p, ", ");
    if (n < 0 || read_tuple(r, p, stride) != n || !str_starts(*p, ", torch."))
        return false;
    *p += strlen(", torch.");
    size_t len = strspn(*p, "abcdefghijklmnopqrstuvwxyz0123456789_");
    DType dtype = dtype_from_torch(arena_strndup(r->m->arena, *p, len));
    const char *type = *p + len, *quote = str_starts(type, ", '") ? strchr(type + 3, '\'') : NULL;
    Device device = {DEV_cpu, -1};
    const char *flag = quote ? quote + 1 : "";
    bool grad = str_starts(flag, ", True");
    flag += grad ? strlen(", True") : str_starts(flag, ", False") ? strlen(", False") : 0;
    size_t name_len = quote ? (size_t)(quote - type - 3) : 0;
    const char *name = arena_strndup(r->m->arena, quote ? type + 3 : "", name_len);
    if (dtype == DT_none || *flag != ')' ||
        (!device_parse(name, &device) && !device_stand_in(name, &device)))
        return false;
    TensorMeta *t = meta_contiguous(r->m->arena, r->m->sym, dtype, n, size, device);
    for (int i = 0; i < n; i++)
        t->stride[i] = stride[i];
    t->requires_grad = grad;
    *out = val_tensor(t);
    *p = flag + 1 + strspn(flag + 1, ", ");
    return true;
}

// `args = [((4, 8), (8, 1), torch.float32, 'cpu'), …]`: what PyTorch 2.0 has in place of load_args.
static bool read_old_args(Runnable *r, const char *line) {
    const char *p = line + strlen("args = [");
    while (*p == '(') {
        Value v;
        if (!read_old_arg(r, &p, &v))
            return broken(r, line, "((sizes), (strides), torch.dtype, 'device') is expected");
        if (r->input >= r->n_inputs)
            return broken(r, line, "more inputs than the graph has");
        r->inputs[r->input++]->val = v;
    }
    return true;
}

static bool read_input_line(Runnable *r, const char *line, bool in_args, const Map *storages) {
    if (in_args)
        return read_arg(r, line, storages);
    return !str_starts(line, "args = [((") || read_old_args(r, line);
}

static bool read_lines(Runnable *r, Str text) {
    Map storages = {.arena = r->m->arena};
    bool in_args = false;
    for (const char *p = text.ptr, *end = p + text.len; p < end;) {
        const char *stop = memchr(p, '\n', (size_t)(end - p));
        stop = stop ? stop : end;
        const char *line = arena_strndup(r->m->arena, p, (size_t)(stop - p));
        r->line++;
        p = stop + 1;
        const char *name = line + strspn(line, " ");
        const char *storage = strstr(name, " = reader.storage(");
        if (str_starts(line, "def load_args("))
            in_args = true;
        else if (in_args && *line && *line != ' ')
            in_args = false;
        else if (in_args && storage)
            map_put(&storages, arena_strndup(r->m->arena, name, (size_t)(storage - name)),
                    arena_strdup(r->m->arena, storage));
        else if (!in_args && !r->inputs)
            read_hint(r, line);
        else if (!read_input_line(r, line, in_args, &storages))
            return false;
    }
    return true;
}

// An input that is a number and no symbol's: the size of a tensor that has this hint.
static void name_numbers(Runnable *r) {
    for (int i = 0; i < r->n_inputs; i++) {
        Value *v = &r->inputs[i]->val;
        bool found = v->kind != VAL_int;
        for (int k = 0; k < r->n_inputs && !found; k++) {
            const TensorMeta *t = node_tensor(r->inputs[k]);
            for (int d = 0; t && d < t->ndim && !found; d++) {
                int64_t hint, fixed;
                found = !expr_int(t->size[d], &fixed) && sym_hint(r->m->sym, t->size[d], &hint) &&
                        hint == v->i;
                if (found)
                    *v = val_sym(t->size[d]);
            }
        }
    }
}

// `self.NAME = CLASS()` in the __init__ of a class: graphs of higher-order ops, defined before it.
static void read_children(Runnable *r, const FxDoc *doc, int of, Str init) {
    Graph *g = doc->at[of].graph;
    for (const char *p = init.ptr, *end = p + init.len; p < end;) {
        const char *stop = memchr(p, '\n', (size_t)(end - p));
        stop = stop ? stop : end;
        const char *line = arena_strndup(r->m->arena, p, (size_t)(stop - p));
        p = stop + 1;
        line += strspn(line, " ");
        const char *eq = strstr(line, " = ");
        if (!str_starts(line, "self.") || !eq || !str_ends(line, "()"))
            continue;
        const char *name = arena_strndup(r->m->arena, line + 5, (size_t)(eq - line - 5));
        const char *class_name = arena_strndup(r->m->arena, eq + 3, strlen(eq + 3) - 2);
        for (int i = 0; i < of; i++)
            if (!strcmp(doc->at[i].graph->class_name, class_name)) {
                Graph *child = graph_copy(r->m->arena, doc->at[i].graph);
                child->class_name = name;
                graph_add_child(g, name, child);
            }
    }
}

// Each class with what its __init__ sets; the graph of class Repro.
static Graph *read_classes(Runnable *r, const FxDoc *doc, Str text) {
    size_t from = 0;
    for (int i = 0; i < doc->n; i++) {
        Graph *g = doc->at[i].graph;
        Str init = {text.ptr + from, doc->at[i].begin - from};
        bool last = !g->class_name || !strcmp(g->class_name, "Repro");
        fx_consts_read(r->m, g, init);
        load_modules(r->m, g, init);
        read_children(r, doc, i, init);
        from = doc->at[i].end;
        if (last || i == doc->n - 1)
            return g;
    }
    return NULL;
}

// The graph with the metadata of its inputs; NULL and an error if the text is none such.
static Graph *read_graph(Runnable *r, Str text) {
    Arena *a = r->m->arena;
    FxDoc doc = {.arena = a};
    r->used.arena = a;
    if (!fx_parse(&doc, r->m->sym, text, r->file, r->d))
        return NULL;
    // Hints first: inputs refer to their symbols.
    if (!read_lines(r, (Str){text.ptr, doc.at[0].begin}))
        return NULL;
    Graph *g = read_classes(r, &doc, text);
    r->line = 0;
    r->n_inputs = graph_placeholders(g, &r->inputs, a);
    r->inputs = r->inputs ? r->inputs : ARENA_ARRAY(a, 1, Node *);
    if (!read_lines(r, text))
        return NULL;
    name_numbers(r);
    return g;
}

bool fx_runnable_add(LoadedModel *m, Str text, const char *path, Diag *d) {
    Runnable r = {.m = m, .d = d, .file = path};
    Graph *g = read_graph(&r, text);
    if (!g)
        return false;
    LoadedGraph one = {.graph = g, .file = path, .untyped = shapes_are_missing(g)};
    graph_infer(g, d);
    specs_of_text(m, &one, path);
    for (int i = 0; i < one.n_inputs; i++)
        one.inputs[i].requires_grad =
            node_tensor(r.inputs[i]) && node_tensor(r.inputs[i])->requires_grad;
    vec_push(m->arena, &m->graphs, one);
    return true;
}

static bool fits(const TensorMeta *a, const TensorMeta *b) {
    if (!a || !b || a->ndim != b->ndim || a->dtype != b->dtype)
        return false;
    for (int i = 0; i < a->ndim; i++)
        if (a->size[i] != b->size[i])
            return false;
    return true;
}

static bool is_dump(const char *path) {
    const char *name = path_base(path);
    return !strcmp(name, "fx_graph_readable.py") || !strcmp(name, "fx_graph_transformed.py");
}

static const char *neighbour(Arena *a, const char *path) {
    const char *dir = arena_strndup(a, path, (size_t)(path_base(path) - path));
    const char *file = arena_printf(a, "%sfx_graph_runnable.py", dir);
    return file_exists(file) && !file_is_dir(file) ? file : NULL;
}

// The layouts of r's inputs go to those of g; false if it is another graph.
static bool take_layouts(const Runnable *r, Graph *g) {
    Node **mine;
    int n = graph_placeholders(g, &mine, r->m->arena);
    bool same = n == r->n_inputs;
    for (int i = 0; i < n && same; i++) {
        same = !strcmp(mine[i]->name, r->inputs[i]->name) &&
               (!node_tensor(mine[i]) || fits(node_tensor(mine[i]), node_tensor(r->inputs[i])));
        if (same && node_tensor(mine[i])) {
            mine[i]->val = r->inputs[i]->val;
            mine[i]->flags &= ~(unsigned)NODE_assumed_strides;
        }
    }
    return same;
}

void fx_runnable_layouts(LoadedModel *m, Graph *g, const char *path, Diag *d) {
    bool expected = path && is_dump(path);
    const char *file = expected ? neighbour(m->arena, path) : NULL;
    Diag quiet = {.arena = m->arena};
    Str text = file ? file_read(m->arena, file, &quiet) : (Str){0};
    LoadedModel other = {.arena = m->arena, .sym = m->sym, .state = {.arena = m->arena}};
    Runnable r = {.m = &other, .d = &quiet, .file = file};
    bool read = text.ptr && !memchr(text.ptr, 0, text.len) && read_graph(&r, text);
    if (!expected || (read && take_layouts(&r, g)))
        return;
    diag_warning(d, (Place){.file = path}, "the strides of inputs are taken as contiguous: %s",
                 read      ? "fx_graph_runnable.py beside it is of another graph"
                 : file    ? arena_printf(m->arena, "fx_graph_runnable.py beside it: %s",
                                          diag_first(&quiet))
                           : "no fx_graph_runnable.py beside it tells them")
        ->hint = "TORCH_COMPILE_DEBUG=1 writes both into one folder";
}

static bool load(LoadedModel *m, const char *path, Diag *d) {
    Str text = load_text(m, path, d);
    return text.ptr && fx_runnable_add(m, text, path, d);
}

const Loader loader_fx_runnable = {
    .name = "fx_runnable",
    .doc = "fx_graph_runnable.py and the minifier's repro.py, from 2.0 on: the graph of class "
           "Repro with the inputs of load_args; nothing of it is run",
    .made = "`TORCH_COMPILE_DEBUG=1`, `TORCHDYNAMO_REPRO_AFTER=aot` (or `dynamo`), `fxray dump`",
    .sniff = sniff,
    .load = load,
};
