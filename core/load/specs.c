// specs.c: what names tell about a graph that came as text: which level of the pipeline printed it,
// and which placeholders are parameters, buffers, symbols or the user's inputs.
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/file.h"
#include "core/load/load_impl.h"

// ---- placeholders

// As Dynamo turns a source into a name: other characters become one underscore a run.
static void add_mangled(Buf *b, const char *text, size_t len) {
    for (size_t i = 0; i < len; i++) {
        if (isalnum((unsigned char)text[i]))
            buf_putc(b, text[i]);
        else if (!b->len || b->data[b->len - 1] != '_')
            buf_putc(b, '_');
    }
}

const char *specs_source(Arena *a, const char *source) {
    Buf b = {.arena = a};
    add_mangled(&b, source, strlen(source));
    return buf_str(&b);
}

const char *specs_mangle(Arena *a, const char *state, const char *kind) {
    Buf b = {.arena = a};
    const char *p = state;
    for (;;) {
        size_t len = strcspn(p, ".");
        bool last = !p[len];
        Buf step = {.arena = a};
        buf_printf(&step, "_%s_", last ? kind : "modules");
        add_mangled(&b, buf_str(&step), step.len);
        add_mangled(&b, p, len);
        if (last)
            break;
        p += len + 1;
    }
    add_mangled(&b, "_", 1);
    return buf_str(&b);
}

const char *specs_state_part(const char *target, InputKind *kind) {
    static const char *const marks[] = {"_modules_", "_parameters_", "_buffers_"};
    const char *first = NULL;
    for (int i = 0; i < COUNT(marks); i++) {
        const char *p = strstr(target, marks[i]);
        first = p && (!first || p < first) ? p : first;
    }
    if (!first || (*target != 'L' && *target != 'G'))
        return NULL;
    bool buffer = strstr(first, "_buffers_") != NULL,
         parameter = strstr(first, "_parameters_") != NULL;
    if (!buffer && !parameter)
        return NULL;
    *kind = parameter ? IN_parameter : IN_buffer;
    return first;
}

static InputKind kind_by_name(const Node *n) {
    InputKind kind;
    if (specs_state_part(n->target, &kind))
        return kind;
    if (n->val.kind == VAL_sym || n->val.kind == VAL_symfloat)
        return IN_symbol;
    static const struct {
        const char *prefix;
        InputKind kind;
    } prefixes[] = {{"p_", IN_parameter}, {"b_", IN_buffer},   {"c_", IN_constant},
                    {"token", IN_token},  {"G_", IN_constant}, {"L_self_", IN_constant}};
    for (int i = 0; i < COUNT(prefixes); i++)
        if (str_starts(n->target, prefixes[i].prefix))
            return prefixes[i].kind;
    return IN_user;
}

static void set_inputs(LoadedModel *m, LoadedGraph *g) {
    Node **nodes;
    g->n_inputs = graph_placeholders(g->graph, &nodes, m->arena);
    g->inputs = ARENA_ARRAY(m->arena, g->n_inputs + 1, InputSpec);
    int user = 0;
    for (int i = 0; i < g->n_inputs; i++) {
        InputSpec *in = &g->inputs[i];
        in->kind = kind_by_name(nodes[i]);
        in->user = in->kind == IN_user ? user++ : -1;
    }
}

static void set_outputs(LoadedModel *m, LoadedGraph *g) {
    const Node *out = graph_output_node(g->graph);
    const Value *v = out ? &out->args[0] : NULL;
    g->n_outputs = !v ? 0 : v->kind == VAL_tuple || v->kind == VAL_list ? v->n : 1;
    g->outputs = ARENA_ARRAY(m->arena, g->n_outputs + 1, OutputSpec);
}

// ---- folders

static bool take_number(const char **p, int *out) {
    char *end;
    long v = strtol(*p, &end, 10);
    if (end == *p || !isdigit((unsigned char)**p) || v > 1000000)
        return false;
    *out = (int)v;
    *p = end;
    return true;
}

bool specs_folder(LoadedGraph *g, const char *name) {
    static const char *const kinds[] = {"inference", "forward", "backward"};
    const char *p = name;
    int number, nth, counter;
    if (!str_starts(p, "model__"))
        return false;
    p += strlen("model__");
    if (!take_number(&p, &number) || *p++ != '_')
        return false;
    size_t len = strcspn(p, "_");
    int kind = -1;
    for (int i = 0; i < COUNT(kinds); i++)
        if (strlen(kinds[i]) == len && !strncmp(kinds[i], p, len))
            kind = i;
    if (kind < 0 || p[len] != '_')
        return false;
    p += len + 1;
    if (!take_number(&p, &nth) || *p++ != '.' || !take_number(&p, &counter) || *p)
        return false;
    g->kind = kinds[kind];
    g->folder = name;
    g->number = number;
    g->nth = nth;
    g->counter = counter;
    return true;
}

// Name of the folder that holds the file; "" if the path does not say.
static const char *folder_of(Arena *a, const char *path) {
    const char *slash = strrchr(path, '/');
    if (!slash || slash == path)
        return "";
    const char *dir = arena_strndup(a, path, (size_t)(slash - path));
    return path_base(dir);
}

// ---- level and kind

typedef struct Traits {
    bool torch;    // holds functions, methods or inputs of Dynamo
    bool tangents; // has inputs tangents_N
    bool primals;
    bool arguments; // has inputs argN_1
} Traits;

static Traits traits(const Graph *g) {
    Traits t = {0};
    GRAPH_EACH(g, n) {
        if (n->op == FX_placeholder) {
            t.tangents |= str_starts(n->target, "tangents_");
            t.primals |= str_starts(n->target, "primals_");
            t.arguments |= str_starts(n->target, "arg") && str_ends(n->target, "_1");
            t.torch |= str_starts(n->target, "L_") || str_starts(n->target, "G_");
        }
        // Tracing leaves none of the calls that it runs in place.
        t.torch |= higher_info(node_higher(n))->inlined;
        // Arithmetic on sizes and getitem occur at every level.
        bool aten = str_starts(n->target, "torch.ops.") || str_starts(n->target, "torch.sym_");
        bool item = !strcmp(n->target, "_operator.getitem") || n->val.kind == VAL_sym ||
                    n->val.kind == VAL_symfloat;
        t.torch |= n->op == FX_call_method || n->op == FX_call_module ||
                   (n->op == FX_call_function && !aten && !item);
    }
    return t;
}

typedef struct TitleRule {
    const char *prefix; // of the log record's title
    GraphLevel level;
    const char *kind; // NULL: by the graph's inputs
} TitleRule;

static const TitleRule title_rules[] = {
    {"__compiled_fn_", LEVEL_torch, ""},        {"BEFORE PRE GRAD", LEVEL_torch, ""},
    {"pre insert_deferred_runtime_asserts ", LEVEL_torch, ""},
    {"AFTER PRE GRAD", LEVEL_torch, ""},        {"Joint graph", LEVEL_aot, "joint"},
    {"Forward graph", LEVEL_aot, NULL},         {"Backward graph", LEVEL_aot, "backward"},
    {"AFTER POST GRAD", LEVEL_post_grad, NULL}, {"BEFORE POST GRAD", LEVEL_compiler, NULL},
};

// A traced graph's inputs tell what it computes.
static const char *kind_of(const Graph *g, Traits t) {
    if (g->tree_args && t.primals && t.tangents)
        return "joint";
    if (t.tangents)
        return "backward";
    return t.primals && strcmp(g->class_name, "<lambda>") != 0 ? "forward" : "inference";
}

void specs_of_text(LoadedModel *m, LoadedGraph *g, const char *path) {
    const Graph *graph = g->graph;
    Traits t = traits(graph);
    g->title = graph->title ? graph->title : graph->class_name;
    g->level = t.torch                                  ? LEVEL_torch
               : t.arguments || t.primals || t.tangents ? LEVEL_compiler
                                                        : LEVEL_export;
    if (g->level == LEVEL_compiler && graph->tree_args)
        g->level = LEVEL_aot;
    g->kind = g->level >= LEVEL_aot ? kind_of(graph, t) : "";
    for (int i = 0; graph->title && i < COUNT(title_rules); i++) {
        const TitleRule *r = &title_rules[i];
        if (!str_starts(graph->title, r->prefix))
            continue;
        g->level = r->level;
        g->kind = r->kind ? r->kind : kind_of(graph, t);
        break;
    }
    if (!graph->title && specs_folder(g, folder_of(m->arena, path)) && !t.torch)
        g->level = LEVEL_compiler;
    if (!graph->title && g->level == LEVEL_compiler &&
        !strcmp(path_base(path), "fx_graph_transformed.py"))
        g->level = LEVEL_post_grad;
    set_inputs(m, g);
    set_outputs(m, g);
}
