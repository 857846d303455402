// tree.c: the units of a model: which captured graphs need gradients and so become a joint graph
// with a forward and a backward, and how PyTorch numbers the folders of what it compiles.
#include <string.h>

#include "core/base/file.h"
#include "core/pipeline/internal.h"

// ---- which inputs need gradients

static InputKind input_kind(const LoadedGraph *g, int i) {
    return i < g->n_inputs ? g->inputs[i].kind : IN_user;
}

static bool is_float(const Node *n) {
    const TensorMeta *m = node_tensor(n);
    return m && dtype_is_float(m->dtype);
}

static bool same_type(const Node *a, const Node *b) {
    const TensorMeta *x = node_tensor(a), *y = node_tensor(b);
    bool same = x && y && x->dtype == y->dtype && x->ndim == y->ndim;
    for (int i = 0; same && i < x->ndim; i++)
        same = x->size[i] == y->size[i];
    return same;
}

static bool returns_one_like(const Graph *g, const Node *n) {
    const Node *output = graph_output_node(g);
    const Value *v = output && output->n_args ? &output->args[0] : NULL;
    for (int i = 0; v && v->kind != VAL_node && i < v->n; i++)
        if (v->at[i].kind == VAL_node && same_type(v->at[i].node, n))
            return true;
    return v && v->kind == VAL_node && same_type(v->node, n);
}

static bool takes(const Graph *g, const Node *n) {
    GRAPH_EACH (g, p)
        if (p->op == FX_placeholder && !strcmp(p->target, n->target) && same_type(p, n))
            return true;
    return false;
}

// A graph after a break receives what an earlier one computed from its parameters. The text does
// not say so: what has the type of an earlier graph's result, and is not an input of that graph by
// name and type, is taken for one.
static bool is_computed(const Pipeline *p, const LoadedGraph *g, const Node *n) {
    bool returned = false;
    for (int i = 0; i < p->model->graphs.n; i++) {
        const LoadedGraph *earlier = &p->model->graphs.at[i];
        if (earlier == g)
            break;
        if (takes(earlier->graph, n))
            return false;
        returned |= returns_one_like(earlier->graph, n);
    }
    return returned;
}

static bool has_parameters(const LoadedGraph *g, Node *const *inputs, int n) {
    for (int i = 0; i < n; i++)
        if (input_kind(g, i) == IN_parameter && is_float(inputs[i]))
            return true;
    return false;
}

// By placeholder; NULL if none is wanted.
static const bool *wanted_grads(const Pipeline *p, const LoadedGraph *g, Arena *a) {
    GradMode mode = p->options.grad;
    Node **inputs;
    int n = graph_placeholders(g->graph, &inputs, a), wanted = 0;
    for (int i = 0; g->needs_grad && g->level <= LEVEL_export && i < n; i++)
        if (g->needs_grad[i])
            return g->needs_grad;
    if (g->needs_grad)
        return NULL;
    bool params = mode == GRAD_params || mode == GRAD_all;
    bool users = mode == GRAD_inputs || mode == GRAD_all;
    bool told = mode == GRAD_auto && g->grad_enabled;
    if (g->level > LEVEL_export || (!params && !users && !told))
        return NULL;
    bool *grad = ARENA_ARRAY(a, n + 1, bool), any = has_parameters(g, inputs, n);
    for (int i = 0; i < n; i++) {
        InputKind kind = input_kind(g, i);
        grad[i] = is_float(inputs[i]) &&
                  ((told && i < g->n_inputs && g->inputs[i].requires_grad) ||
                   (params && kind == IN_parameter) || (users && kind == IN_user) ||
                   (params && kind == IN_user && (!any || is_computed(p, g, inputs[i]))));
        wanted += grad[i];
    }
    return wanted ? grad : NULL;
}

// Is there an output that needs a gradient? A model that cannot be traced is taken for one that
// has: its joint graph will tell why it cannot be built.
static bool is_training(Pipeline *p, const Graph *g, const bool *requires_grad,
                        const bool *unhidden, const AotMeta **meta) {
    Arena scratch = {0};
    Diag quiet = {.arena = &scratch};
    AotRequest request = {
        .graph = g,
        .arena = &p->arena, // of the answer
        .diag = &quiet,
        .stage = STAGE_functional,
        .keep_input_mutations = true,
        .requires_grad = requires_grad,
        .unhidden = unhidden,
    };
    bool sound = graph_check_sizes(g, &quiet);
    *meta = sound ? aot_find_meta(&request) : NULL;
    bool training = !*meta || (*meta)->training;
    arena_free(&scratch);
    return training;
}

// ---- units

static Unit *unit_new(Pipeline *p, const LoadedGraph *g, const char *kind) {
    Unit *u = ARENA_NEW(&p->arena, Unit);
    u->index = p->units.n;
    u->loaded = g;
    u->kind = kind;
    u->failed = STAGE_count;
    u->diag.arena = &p->arena;
    u->decisions = decisions_new(&p->arena, p->options.overrides);
    vec_push(&p->arena, &p->units, u);
    return u;
}

// A captured graph becomes all kinds, a joint one forward and backward.
static bool holds_kind(const char *kind, const char *other) {
    return !*kind || !strcmp(kind, other) || (*other && !strcmp(kind, "joint"));
}

// A dump folder holds the same graph before and after the post-grad passes, a log the captured
// graph and what AOTAutograd made of it: the earliest is opened.
static bool is_duplicate(const LoadedModel *m, int i) {
    const LoadedGraph *g = &m->graphs.at[i];
    for (int k = 0; k < m->graphs.n; k++) {
        const LoadedGraph *o = &m->graphs.at[k];
        bool same_folder = g->folder && o->folder && !strcmp(g->folder, o->folder);
        bool captured = !g->folder && !o->folder && o->level == LEVEL_torch;
        if (g->compile_id && o->compile_id)
            captured = !strcmp(g->compile_id, o->compile_id) && holds_kind(o->kind, g->kind);
        // A joint graph and its two halves are printed at one level, so is what Dynamo captured
        // before and after the pre-grad passes.
        bool half = g->compile_id && captured && !strcmp(o->kind, "joint") &&
                    strcmp(g->kind, "joint") != 0;
        bool again = g->compile_id && captured && k < i && o->level == g->level && !*o->kind;
        if (k != i && (same_folder || captured) && (o->level < g->level || half || again))
            return true;
    }
    return false;
}

// Inputs that share memory, and what is traced because of it. The declarations have been accepted.
static const MergedInputs *merged_inputs(Pipeline *p, const LoadedGraph *g, const bool *grad,
                                         const InputAliases **aliases) {
    Diag quiet = {.arena = &p->arena};
    InputAliases *shared = NULL;
    if (g->level > LEVEL_export ||
        !load_aliases(p->model, g, p->options.aliases, &p->arena, &shared, &quiet) || !shared)
        return NULL;
    *aliases = shared;
    return aot_merge_inputs(&(MergeRequest){
        .graph = g->graph,
        .aliases = shared,
        .requires_grad = grad,
        .dynamo = g->level == LEVEL_torch,
        .arena = &p->arena,
    });
}

static void add_units(Pipeline *p, const LoadedGraph *g) {
    const bool *grad = wanted_grads(p, g, &p->arena);
    bool joint = g->kind && !strcmp(g->kind, "joint");
    const AotMeta *meta = NULL;
    const InputAliases *aliases = NULL;
    const MergedInputs *m = joint ? NULL : merged_inputs(p, g, grad, &aliases);
    bool training = joint || (grad && is_training(p, m ? m->graph : g->graph,
                                                  m ? m->requires_grad : grad,
                                                  m ? m->unhidden : NULL, &meta));
    Unit *u = unit_new(p, g, training ? "joint" : g->kind && *g->kind ? g->kind : "inference");
    u->aliases = aliases;
    u->merged = m;
    if (!training)
        return;
    u->requires_grad = grad;
    u->meta = meta;
    u->forward = unit_new(p, g, "forward");
    u->backward = unit_new(p, g, "backward");
    u->forward->parent = u->backward->parent = u;
}

// ---- names

static const StackFrame *first_line(const LoadedGraph *g) {
    GRAPH_EACH (g->graph, n)
        if (n->op != FX_placeholder && n->stack)
            return n->stack;
    return NULL;
}

// A frame compiled again, with other guards: it begins at the same line as an earlier one.
static bool is_recompile(const Pipeline *p, const Unit *u) {
    const StackFrame *a = first_line(u->loaded);
    for (int i = 0; a && i < u->index; i++) {
        const StackFrame *b = first_line(p->units.at[i]->loaded);
        if (b && a->line == b->line && a->file && b->file && !strcmp(a->file, b->file))
            return true;
    }
    return false;
}

static bool has_symbols(const Graph *g) {
    GRAPH_EACH (g, n) {
        const TensorMeta *m = node_tensor(n);
        if (n->op != FX_placeholder)
            continue;
        if (n->val.kind == VAL_sym)
            return true;
        for (int i = 0; m && i < m->ndim; i++)
            if (expr_has_symbols(m->size[i]))
                return true;
    }
    return false;
}

// Counters of the process that compiles: every graph that starts counts, every folder counts.
typedef struct Counters {
    int model, nth, folder;
    VEC(Unit *) lazy; // backwards that wait for the first .backward(), which takes the last first
} Counters;

static void name_folder(Pipeline *p, Unit *u, int number, int nth, int counter) {
    u->number = number;
    u->nth = nth;
    u->counter = counter;
    u->name = arena_printf(&p->arena, "model__%d_%s_%d.%d", number, u->kind, nth, counter);
}

static void run_lazy(Pipeline *p, Counters *c) {
    while (c->lazy.n) {
        Unit *u = vec_pop(&c->lazy);
        name_folder(p, u, u->parent->number, c->nth++, c->folder++);
    }
}

// A joint graph starts, its forward, and an attempt at the backward, which is given up unless it
// takes sizes; else it is compiled when it is first called.
static void name_joint(Pipeline *p, Unit *u, Counters *c) {
    u->number = c->model++;
    u->nth = c->nth++;
    u->name = arena_printf(&p->arena, "model__%d_joint", u->number);
    name_folder(p, u->forward, u->number, c->nth++, c->folder++);
    if (has_symbols(u->loaded->graph)) {
        name_folder(p, u->backward, u->number, c->nth++, c->folder++);
        return;
    }
    c->nth++;
    vec_push(&p->arena, &c->lazy, u->backward);
}

static void name_loaded(Unit *u) {
    u->name = u->loaded->folder;
    u->number = u->loaded->number;
    u->nth = u->loaded->nth;
    u->counter = u->loaded->counter;
}

static void name_units(Pipeline *p) {
    Counters c = {0};
    for (int i = 0; i < p->units.n; i++) {
        Unit *u = p->units.at[i];
        if (u->parent)
            continue;
        if (is_recompile(p, u))
            run_lazy(p, &c);
        if (u->forward) {
            name_joint(p, u, &c);
        } else if (u->loaded->folder) {
            name_loaded(u);
        } else {
            name_folder(p, u, c.model, c.nth, c.folder);
            c.model++, c.nth++, c.folder++;
        }
    }
    run_lazy(p, &c);
}

void tree_make(Pipeline *p) {
    p->units.n = 0;
    for (int i = 0; i < p->model->graphs.n; i++)
        if (!is_duplicate(p->model, i))
            add_units(p, &p->model->graphs.at[i]);
    name_units(p);
    sym_drop_guards_from(p->model->sym, STAGE_fx); // also those of the search for gradients
}
