// exported_graph.c: nodes of an ExportedProgram's graph. Several results are named each, and the
// getitem nodes that took them apart are made again; arguments come by the schema's names.
#include <stdlib.h>
#include <string.h>

#include "core/load/exported.h"
#include "core/base/work.h"

enum { MAX_GRAPH_DEPTH = 16 };

bool exported_fail(Exported *x, const char *fmt, ...) {
    if (x->failed)
        return false;
    x->failed = true;
    va_list args;
    va_start(args, fmt);
    const char *text = arena_vprintf(x->tmp, fmt, args);
    va_end(args);
    if (x->node)
        diag_error(x->d, (Place){.file = x->file}, "node `%s`: %s", x->node, text);
    else
        diag_error(x->d, (Place){.file = x->file}, "%s", text);
    return false;
}

// ---- inputs

static const Json *only_member(const Json *j) {
    return j && j->kind == JSON_object && j->n == 1 ? j->child : NULL;
}

// Name of an Argument that is a value: {"as_tensor": {"name": "x"}}, {"as_sym_int": {"as_name":
// "s"}}.
static const char *argument_name(const Json *arg) {
    const Json *member = only_member(arg);
    const char *name = json_str(json_get(member, "name"), NULL);
    return name ? name : json_str(json_get(member, "as_name"), NULL);
}

// What a named input or result holds, of the kind that its tag says.
static bool typed_value(Exported *x, const char *tag, const char *name, Value *out) {
    static const char *const symbols[] = {"as_sym_int", "as_sym_float", "as_sym_bool"};
    bool tensor = !strcmp(tag, "as_tensor") || !strcmp(tag, "as_tensors") ||
                  !strcmp(tag, "as_optional_tensor") || !strcmp(tag, "as_optional_tensors");
    bool symbol = str_index(tag, symbols, COUNT(symbols)) >= 0 || !strcmp(tag, "as_sym_ints");
    if (!tensor && !symbol && strcmp(tag, "as_custom_obj") != 0)
        return exported_fail(x, "`%s` is named by an argument of kind `%s`", name, tag);
    if (tensor && !map_get(&x->tensors, name))
        return exported_fail(x, "tensor `%s` is not in tensor_values", name);
    if (symbol && !map_get(&x->symbols, name))
        return exported_fail(x, "`%s` is in no table of symbols", name);
    return exported_named(x, name, out);
}

// The i-th input's name in the signature, NULL if it has none.
static const char *spec_name(const Exported *x, int i) {
    const Json *spec = x->specs ? x->specs->child : NULL;
    for (; spec && i > 0; i--)
        spec = spec->next;
    const Json *body = only_member(spec), *arg = json_get(body, "arg");
    const char *name = json_str(json_get(body, "name"), NULL); // of a constant
    name = name ? name : argument_name(arg);
    return name ? name : json_str(json_get(arg, "name"), NULL);
}

static bool add_input(Exported *x, const Json *arg, int i) {
    const char *name = argument_name(arg), *told = spec_name(x, i);
    Value constant = {.kind = VAL_none};
    // A constant given by the caller has a value, and a name in the signature only.
    if (!name && !exported_argument(x, arg, &constant))
        return false;
    if (name && told && strcmp(name, told) != 0)
        return exported_fail(x, "input %d is `%s` in the signature", i, told);
    bool named = name != NULL;
    if (!named)
        name = told ? told : arena_printf(x->tmp, "input_%d", i);
    if (map_get(&x->scope, name))
        return exported_fail(x, "a second input `%s`", name);
    Node *n = graph_placeholder(x->g, name, name);
    map_put(&x->scope, arena_strdup(x->m->arena, name), n);
    n->val = constant.kind != VAL_none ? value_copy(x->m->arena, &constant, NULL) : n->val;
    return !named || typed_value(x, only_member(arg)->key, name, &n->val);
}

// ---- results

static void set_meta(Exported *x, Node *n, const Json *meta) {
    const char *trace = json_str(json_get(meta, "stack_trace"), NULL);
    const char *modules = json_str(json_get(meta, "nn_module_stack"), NULL);
    if (trace)
        n->stack = exported_frames(x, trace);
    if (modules)
        n->modules = arena_strdup(x->m->arena, modules);
}

static bool is_unused(const char *node, const char *name) {
    size_t len = strlen(node);
    return !strncmp(name, node, len) && str_starts(name + len, "_unused_");
}

typedef struct Result {
    const char *name; // NULL: None
    Value val;
} Result;

// All results of a node, in order; a list result is a list of results of its own.
static int collect_results(Exported *x, const Json *outputs, Result *out, int max, bool *list) {
    int n = 0;
    *list = false;
    for (const Json *o = outputs ? outputs->child : NULL; o; o = o->next) {
        const Json *member = only_member(o);
        const Json *items = member && member->kind == JSON_array ? member : NULL;
        *list |= items != NULL;
        const Json *item = items ? items->child : NULL;
        for (int left = items ? items->n : 1; left > 0 && n < max;
             left--, item = item ? item->next : NULL) {
            const char *name = argument_name(o);
            if (items) {
                // Items of as_tensors are bare, those of as_optional_tensors tagged.
                name = json_str(json_get(item, "name"), NULL);
                name = name ? name : json_str(json_get(item, "as_name"), NULL);
                name = name ? name : argument_name(item);
            }
            out[n].name = name;
            if (name && !typed_value(x, member->key, name, &out[n].val))
                return -1;
            n++;
        }
    }
    return n;
}

static int count_results(const Json *outputs) {
    int n = 0;
    for (const Json *o = outputs ? outputs->child : NULL; o; o = o->next) {
        const Json *member = only_member(o);
        n += member && member->kind == JSON_array ? member->n : 1;
    }
    return n;
}

static void add_items(Exported *x, Node *n, const Result *results, int count, const Json *meta) {
    Value tuple = val_list(x->m->arena, VAL_tuple, count);
    for (int i = 0; i < count; i++)
        tuple.at[i] = results[i].val;
    n->val = tuple;
    for (int i = 0; i < count; i++) {
        if (!results[i].name || is_unused(n->name, results[i].name))
            continue;
        Value args[2] = {val_node(n), val_int(i)};
        Node *item = graph_node(x->g, FX_call_function, "_operator.getitem", results[i].name, args,
                                2, NULL, 0);
        item->val = results[i].val;
        set_meta(x, item, meta);
        map_put(&x->scope, arena_strdup(x->m->arena, results[i].name), item);
    }
}

// ---- nodes

static bool keyword_only(const Op *op, const char *name) {
    for (int i = 0; op && i < op->n_args; i++)
        if (!strcmp(op->args[i].name, name))
            return op->args[i].kwarg_only;
    return false;
}

typedef struct Inputs {
    Value *args;
    Kwarg *kwargs;
    int n_args, n_kwargs;
} Inputs;

static bool read_inputs(Exported *x, const Json *list, const Op *op, Inputs *out) {
    int n = list ? list->n : 0;
    out->args = ARENA_ARRAY(x->tmp, n + 1, Value);
    out->kwargs = ARENA_ARRAY(x->tmp, n + 1, Kwarg);
    for (const Json *in = n ? list->child : NULL; in; in = in->next) {
        enum { KIND_unknown, KIND_positional, KIND_keyword };
        int64_t kind = json_int(json_get(in, "kind"), KIND_unknown);
        const char *name = json_str(json_get(in, "name"), "");
        Value v;
        if (!exported_argument(x, json_get(in, "arg"), &v))
            return false;
        // Before schema 8.3 nothing says how an argument was given: by the schema, and by name
        // behind a gap.
        bool gap =
            op && (out->n_args >= op->n_args || strcmp(op->args[out->n_args].name, name) != 0);
        if (kind == KIND_keyword ||
            (kind == KIND_unknown && *name && (keyword_only(op, name) || gap)))
            out->kwargs[out->n_kwargs++] = (Kwarg){name, v};
        else
            out->args[out->n_args++] = v;
    }
    return true;
}

// Targets of the program are printed as FX has them; `#namespace:op` is an extension.
static bool add_node(Exported *x, const Json *j) {
    const char *target = json_str(json_get(j, "target"), NULL);
    const Json *outputs = json_get(j, "outputs"), *meta = json_get(j, "metadata");
    if (!target || !*target)
        return exported_fail(x, "a node without target");
    if (*target == '#') { // `#namespace:op`, as its extension calls it
        char *name = arena_strdup(x->tmp, target + 1), *colon = strchr(name, ':');
        if (colon)
            *colon = '.';
        target = name;
    }
    int count = count_results(outputs);
    Result *results = ARENA_ARRAY(x->tmp, count + 1, Result);
    bool list = false;
    const Op *op = op_find(target);
    Inputs in = {0};
    const char *single = outputs && outputs->n == 1 ? argument_name(outputs->child) : NULL;
    const char *name = json_str(json_get(j, "name"), single);
    x->node = name ? name : target;
    if (!read_inputs(x, json_get(j, "inputs"), op, &in) ||
        collect_results(x, outputs, results, count, &list) < 0)
        return false;
    if (!name)
        name = op ? op_to_name(x->tmp, op) : NULL;
    Node *n = op ? graph_call(x->g, op, name, in.args, in.n_args, in.kwargs, in.n_kwargs)
                 : graph_node(x->g, FX_call_function, target, name, in.args, in.n_args, in.kwargs,
                              in.n_kwargs);
    if (!op && !node_higher(n) && str_starts(target, "torch.ops."))
        n->flags |= NODE_opaque;
    set_meta(x, n, meta);
    bool hop = str_starts(target, "torch.ops.higher_order.");
    bool hop_items = hop && !json_bool(json_get(j, "is_hop_single_tensor_return"), false);
    if (outputs && outputs->n == 1 && !list && !hop_items) {
        n->val = results[0].val;
        if (results[0].name)
            map_put(&x->scope, arena_strdup(x->m->arena, results[0].name), n);
    } else if (count) {
        add_items(x, n, results, count, meta);
    }
    return true;
}

static bool add_output(Exported *x, const Json *graph) {
    const Json *outputs = json_get(graph, "outputs");
    int n = outputs ? outputs->n : 0;
    Value tuple = val_list(x->tmp, VAL_tuple, n);
    int i = 0;
    for (const Json *o = n ? outputs->child : NULL; o; o = o->next)
        if (!exported_argument(x, o, &tuple.at[i++]))
            return false;
    bool single = json_bool(json_get(graph, "is_single_tensor_return"), false) && n == 1;
    graph_output(x->g, single ? tuple.at[0] : tuple);
    return true;
}

static bool read_graph(Exported *x, const Json *graph) {
    const Json *inputs = json_get(graph, "inputs"), *nodes = json_get(graph, "nodes");
    int i = 0;
    for (const Json *j = inputs ? inputs->child : NULL; j; j = j->next) {
        x->node = argument_name(j);
        if (!add_input(x, j, i++))
            return false;
    }
    if (!nodes || nodes->kind != JSON_array)
        return exported_fail(x, "a graph without nodes");
    int done = 0;
    for (const Json *j = nodes->child; j; j = j->next) {
        ArenaMark mark = arena_mark(x->tmp);
        if (!work_goes_on(x->d, done++, nodes->n) || !add_node(x, j))
            return false;
        arena_rewind(x->tmp, mark);
    }
    x->node = "output";
    return add_output(x, graph);
}

static void index_table(Map *to, const Json *table) {
    for (const Json *j = table && table->kind == JSON_object ? table->child : NULL; j; j = j->next)
        if (j->key)
            map_put(to, j->key, (void *)(uintptr_t)j);
}

Graph *exported_subgraph(Exported *x, const Json *graph, const char *name) {
    if (x->depth >= MAX_GRAPH_DEPTH) {
        exported_fail(x, "graphs nested deeper than %d", MAX_GRAPH_DEPTH);
        return NULL;
    }
    Exported inner = {.m = x->m, .d = x->d, .file = x->file, .tmp = x->tmp, .depth = x->depth + 1};
    inner.specs = x->depth ? NULL : x->specs;
    inner.scope.arena = inner.frames.arena = inner.tensors.arena = inner.symbols.arena =
        x->m->arena;
    static const char *const tables[] = {"sym_int_values", "sym_bool_values", "sym_float_values"};
    index_table(&inner.tensors, json_get(graph, "tensor_values"));
    for (int i = 0; i < COUNT(tables); i++)
        index_table(&inner.symbols, json_get(graph, tables[i]));
    inner.g = graph_new(x->m->arena, x->m->sym);
    inner.g->class_name = arena_strdup(x->m->arena, name);
    bool ok = read_graph(&inner, graph);
    x->failed |= inner.failed;
    return ok ? inner.g : NULL;
}

Graph *exported_graph(LoadedModel *m, const Json *graph, const Json *specs, const char *file,
                      Diag *d) {
    Arena tmp = {0};
    Exported x = {.m = m, .d = d, .file = file, .specs = specs, .tmp = &tmp};
    Graph *g = exported_subgraph(&x, graph, "GraphModule");
    if (g)
        g->title = "ExportedProgram";
    arena_free(&tmp);
    return g;
}
