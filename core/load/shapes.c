// shapes.c: what plain code and print(graph) leave out: the shapes of inputs and attributes. They
// come from rows of a values file (`in0 …`, `state.fc.weight`) or from --bind, `x=f32[4, s0]`; the
// rest of the graph follows by its ops' meta functions. What nobody tells is asked for.
#include <stdlib.h>
#include <string.h>

#include "core/load/load_impl.h"

static bool is_input(const Node *n) {
    return (n->op == FX_placeholder || n->op == FX_get_attr) && n->n_users > 0;
}

static GraphConst *const_of(Graph *g, const Node *n) {
    for (int i = 0; i < g->consts.n; i++)
        if (!strcmp(g->consts.at[i].name, n->target))
            return &g->consts.at[i];
    vec_push(g->arena, &g->consts, (GraphConst){.name = n->target});
    return &vec_last(&g->consts);
}

// Attributes that the text annotates are constants of the graph, with values to be made up.
static void note_attributes(Graph *g) {
    GRAPH_EACH(g, n) {
        if (n->op != FX_get_attr || n->val.kind != VAL_tensor)
            continue;
        GraphConst *c = const_of(g, n);
        c->meta = c->meta ? c->meta : n->val.tensor;
    }
    for (int i = 0; i < g->children.n; i++)
        note_attributes(g->children.at[i].graph);
}

// `scale : float = 2.0`: what is no tensor is its default.
static void take_defaults(Graph *g) {
    GRAPH_EACH(g, n) {
        const Value *v = n->op == FX_placeholder && n->n_args ? &n->args[0] : NULL;
        bool constant = v && (v->kind == VAL_int || v->kind == VAL_float || v->kind == VAL_bool);
        if (constant && n->val.kind == VAL_none)
            n->val = *v;
    }
}

bool shapes_are_missing(Graph *g) {
    int missing = 0;
    take_defaults(g);
    note_attributes(g);
    GRAPH_EACH(g, n) {
        // PyTorch annotates all tensors or none: one that is makes the others no tensors.
        if (n->op == FX_placeholder && n->val.kind != VAL_none && !n->n_args)
            return false;
        missing += is_input(n) && n->val.kind == VAL_none;
    }
    return missing > 0;
}

static const TensorMeta *meta_of(LoadedModel *m, const Tensor *t) {
    const Expr *size[TENSOR_DIMS];
    for (int i = 0; i < t->ndim; i++)
        size[i] = sym_int(m->sym, t->size[i]);
    return meta_contiguous(m->arena, m->sym, t->dtype, t->ndim, size, (Device){DEV_cpu, -1});
}

static bool is_named(const Node *n, const char *name) {
    return !strcmp(n->target, name) || !strcmp(n->name, name);
}

static void give(LoadedModel *m, Graph *g, Node *n, Value v, const Tensor *t) {
    if (n->val.kind == VAL_none)
        n->val = value_copy(m->arena, &v, NULL);
    if (n->op != FX_get_attr || v.kind != VAL_tensor)
        return;
    GraphConst *c = const_of(g, n);
    c->meta = v.tensor;
    if (t && !map_get(&m->state, n->target)) {
        Tensor *kept = ARENA_NEW(m->arena, Tensor);
        *kept = tensor_keep(t);
        map_put(&m->state, n->target, kept); // load_close drops it
        c->tensor = kept;
    }
}

// One item `NAME=f32[4, 8]` of --bind; other items name rows.
static bool give_shape(LoadedModel *m, const BindItem *item, Diag *d) {
    Value v;
    bool found = false;
    if (!fx_parse_annotation(m->arena, m->sym, item->row, &v, d))
        return false;
    for (int i = 0; i < m->graphs.n; i++) {
        Graph *g = (Graph *)(uintptr_t)m->graphs.at[i].graph;
        GRAPH_EACH(g, n) {
            if (!is_named(n, item->name) ||
                (n->op != FX_placeholder && n->op != FX_get_attr))
                continue;
            found = true;
            give(m, g, n, v, NULL);
        }
    }
    if (!found)
        diag_fail(d, "--bind %s=%s: no graph has an input `%s`", item->name, item->row, item->name);
    return found;
}

static void give_rows(LoadedModel *m, Graph *g, const Tensor *const *rows,
                      const TensorFile *values) {
    int i = 0;
    GRAPH_EACH(g, n) {
        const Tensor *t = n->op == FX_placeholder ? rows[i++] : NULL;
        if (n->op == FX_get_attr && n->val.kind != VAL_graph)
            t = map_get(&values->tensors, arena_printf(m->arena, "state.%s", n->target));
        if (t)
            give(m, g, n, val_tensor(meta_of(m, t)), t);
    }
}

bool load_give_shapes(LoadedModel *m, const TensorFile *values, const char *binds, Diag *d) {
    BindItem *items;
    int n_items = bind_items(m->arena, binds, &items, d);
    if (n_items < 0)
        return false;
    for (int i = 0; i < n_items; i++) {
        if (items[i].is_shape ? !give_shape(m, &items[i], d) : false)
            return false;
        if (!items[i].is_shape && !values) {
            diag_fail(d, "--bind %s=%s: there is no values file that could have a row `%s`",
                      items[i].name, items[i].row, items[i].row)
                ->hint = "--values FILE.safetensors gives one; a shape is written f32[4, 8]";
            return false;
        }
    }
    for (int i = 0; i < m->graphs.n; i++) {
        LoadedGraph *g = &m->graphs.at[i];
        if (!g->untyped)
            continue;
        Graph *graph = (Graph *)(uintptr_t)g->graph;
        const Tensor **rows = ARENA_ARRAY(m->arena, g->n_inputs + 1, const Tensor *);
        if (values && !load_bind(m, g, values, binds, rows, d))
            return false;
        if (values)
            give_rows(m, graph, rows, values);
        graph_infer(graph, d);
    }
    return true;
}

enum { NAMED = 8, SHOWN = 3 }; // names in a message; shapes in its example

// Everything that nothing tells, in one message: what it is called, and how to say what it is.
static void ask(const LoadedGraph *g, Diag *d) {
    Buf names = {.arena = d->arena}, example = {.arena = d->arena};
    const Node *first = NULL;
    int n = 0;
    GRAPH_EACH(g->graph, p) {
        if (!is_input(p) || p->val.kind != VAL_none)
            continue;
        first = first ? first : p;
        if (n < NAMED)
            buf_printf(&names, "%s`%s`", n ? ", " : "", p->target);
        if (n < SHOWN)
            buf_printf(&example, "%s%s=f32[4, 8]", n ? ", " : "", p->target);
        n++;
    }
    if (n > NAMED)
        buf_printf(&names, " and %d more", n - NAMED);
    Place at = {.file = g->file, .line = g->line};
    bool attribute = first->op == FX_get_attr;
    DiagItem *e =
        n == 1 ? diag_error(d, at, "the text does not tell the shape and dtype of %s %s",
                            attribute ? "attribute" : "input", buf_str(&names))
               : diag_error(d, at, "the text does not tell the shapes and dtypes of %s",
                            buf_str(&names));
    e->hint = arena_printf(d->arena,
                           "say them: --bind '%s%s', or take them from values: --values "
                           "FILE.safetensors, rows in0, in1, … and state.PATH",
                           buf_str(&example), n > SHOWN ? ", …" : "");
}

// Nothing of a module is known but its name.
static bool refuse_module(const LoadedGraph *g, const Node *n, Diag *d) {
    Place at = node_place(n);
    at.file = at.file ? at.file : g->file;
    diag_error(d, at, "the text does not tell what module `%s` is", n->target)->hint = arena_printf(
        d->arena, "print(gm) has it above the code: `(%s): Linear(in_features=4, out_features=8)`; "
                  "MANUAL.md names the classes", n->target);
    return false;
}

bool load_check_shapes(const LoadedGraph *g, Diag *d) {
    GRAPH_EACH(g->graph, n) {
        if (n->op == FX_call_module)
            return refuse_module(g, n, d);
        if (!g->untyped || !is_input(n) || n->val.kind != VAL_none)
            continue;
        ask(g, d);
        return false;
    }
    return true;
}
