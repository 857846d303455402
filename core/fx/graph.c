// graph.c: FX graphs: making nodes, changing them with users kept up to date on every change, and
// copying a graph into an arena of its own. Users are distinct and in order of first use; setting a
// node's arguments moves it to the end of its inputs' users, as torch.fx does.
#include "core/fx/graph.h"

#include <assert.h>
#include <string.h>

Graph *graph_new(Arena *a, Sym *sym) {
    Graph *g = ARENA_NEW(a, Graph);
    g->arena = a;
    g->sym = sym;
    g->names.arena = a;
    g->bases.arena = a;
    g->runs.arena = a;
    g->class_name = "GraphModule";
    return g;
}

void graph_reserve(Graph *g, int nodes) {
    map_reserve(&g->names, nodes);
    if (nodes > g->by_id.cap) {
        g->by_id.at = arena_grow(g->arena, g->by_id.at, (size_t)g->by_id.n, (size_t)nodes,
                                 sizeof *g->by_id.at);
        g->by_id.cap = nodes;
    }
}

void graph_set_insert(Graph *g, Node *before) {
    assert(!before || before->graph == g);
    g->insert = before;
}

Node *graph_output_node(const Graph *g) {
    return g->last && g->last->op == FX_output ? g->last : NULL;
}

int graph_output_index(const Graph *g, const char *name) {
    const Value *all = &graph_output_node(g)->args[0];
    for (int i = all->n - 1; i >= 0; i--)
        if (all->at[i].kind == VAL_node && !strcmp(all->at[i].node->name, name))
            return i;
    return -1;
}

// Values of a dict stand behind their keys.
int value_leaves(const Value *v) {
    bool dict = v->kind == VAL_dict;
    int n = 0;
    if (v->kind != VAL_list && v->kind != VAL_tuple && !dict)
        return 1;
    for (int i = dict; i < v->n; i += dict ? 2 : 1)
        n += value_leaves(&v->at[i]);
    return n;
}

int graph_n_outputs(const Graph *g) {
    return value_leaves(&graph_output_node(g)->args[0]);
}

Node *graph_find(const Graph *g, const char *name) {
    return map_get(&g->names, name);
}

Node *graph_by_id(const Graph *g, int id) {
    return id >= 0 && id < g->by_id.n ? g->by_id.at[id] : NULL;
}

int graph_placeholders(const Graph *g, Node ***out, Arena *a) {
    int n = 0;
    GRAPH_EACH(g, node)
        n += node->op == FX_placeholder;
    *out = ARENA_ARRAY(a, n, Node *);
    n = 0;
    GRAPH_EACH(g, node) {
        if (node->op == FX_placeholder)
            (*out)[n++] = node;
    }
    return n;
}

void graph_number(const Graph *g) {
    int i = 0;
    GRAPH_EACH(g, n)
        n->position = i++;
}

// ---- lists and users

static void link_before(Graph *g, Node *n, Node *before) {
    n->next = before;
    n->prev = before ? before->prev : g->last;
    *(n->prev ? &n->prev->next : &g->first) = n;
    *(before ? &before->prev : &g->last) = n;
}

static void unlink_node(Graph *g, Node *n) {
    *(n->prev ? &n->prev->next : &g->first) = n->next;
    *(n->next ? &n->next->prev : &g->last) = n->prev;
    n->prev = n->next = NULL;
}

// The user is always the newest one of its inputs when its arguments are set, so looking at the
// last entry is enough to keep the list distinct.
static void add_user(Node *input, void *ctx) {
    Node *user = ctx;
    if (input->n_users && input->users[input->n_users - 1] == user)
        return;
    if (input->n_users == input->cap_users) {
        int cap = input->cap_users ? input->cap_users * 2 : 2;
        input->users = arena_grow(user->graph->arena, input->users, (size_t)input->n_users,
                                  (size_t)cap, sizeof *input->users);
        input->cap_users = cap;
    }
    input->users[input->n_users++] = user;
}

static void remove_user(Node *input, void *ctx) {
    for (int i = input->n_users - 1; i >= 0; i--) {
        if (input->users[i] != ctx)
            continue;
        memmove(input->users + i, input->users + i + 1,
                (size_t)(input->n_users - i - 1) * sizeof *input->users);
        input->n_users--;
        return;
    }
}

static void each_node(const Value *v, void (*fn)(Node *, void *), void *ctx) {
    switch (v->kind) {
    case VAL_node:
        fn(v->node, ctx);
        break;
    case VAL_list:
    case VAL_tuple:
    case VAL_slice:
    case VAL_dict:
        for (int i = 0; i < v->n; i++)
            each_node(&v->at[i], fn, ctx);
        break;
    default:
        break;
    }
}

void node_each_input(const Node *n, void (*fn)(Node *input, void *ctx), void *ctx) {
    for (int i = 0; i < n->n_args; i++)
        each_node(&n->args[i], fn, ctx);
    for (int i = 0; i < n->n_kwargs; i++)
        each_node(&n->kwargs[i].value, fn, ctx);
}

// ---- values

// What a copy needs to know: where to put it, and what becomes of nodes and nested graphs.
typedef struct Copier {
    Arena *arena;
    Node *const *map;       // by id of the old node; NULL: nodes stay
    const Graph *from, *to; // graphs whose children correspond; NULL: nested graphs stay
    Map *frames;            // old StackFrame -> new one; NULL: frames stay
} Copier;

static void *copy_child(const Copier *c, void *graph) {
    for (int i = 0; c->from && i < c->from->children.n; i++)
        if (c->from->children.at[i].graph == graph)
            return c->to->children.at[i].graph;
    return graph;
}

static Value copy_value(const Copier *c, const Value *v) {
    Value r = *v;
    switch (v->kind) {
    case VAL_list:
    case VAL_tuple:
    case VAL_dict:
    case VAL_slice:
        r.at = v->n ? ARENA_ARRAY(c->arena, v->n, Value) : NULL;
        for (int i = 0; i < v->n; i++)
            r.at[i] = copy_value(c, &v->at[i]);
        break;
    case VAL_str:
    case VAL_symfloat:
    case VAL_target:
    case VAL_opaque:
        r.s = v->s ? arena_strdup(c->arena, v->s) : NULL;
        break;
    case VAL_tensor:
        r.tensor = v->tensor ? meta_copy(c->arena, v->tensor) : NULL;
        break;
    case VAL_node:
        if (c->map && c->map[v->node->id])
            r.node = c->map[v->node->id];
        break;
    case VAL_graph:
        r.graph = copy_child(c, v->graph);
        break;
    default:
        break;
    }
    return r;
}

Value value_copy(Arena *a, const Value *v, Node *const map[]) {
    Copier c = {.arena = a, .map = map};
    return copy_value(&c, v);
}

static void copy_args(const Copier *c, Node *to, const Value *args, int n_args, const Kwarg *kwargs,
                      int n_kwargs) {
    Value *a = n_args ? ARENA_ARRAY(c->arena, n_args, Value) : NULL;
    Kwarg *k = n_kwargs ? ARENA_ARRAY(c->arena, n_kwargs, Kwarg) : NULL;
    for (int i = 0; i < n_args; i++)
        a[i] = copy_value(c, &args[i]);
    for (int i = 0; i < n_kwargs; i++)
        k[i] = (Kwarg){arena_strdup(c->arena, kwargs[i].name), copy_value(c, &kwargs[i].value)};
    to->args = a;
    to->n_args = n_args;
    to->kwargs = k;
    to->n_kwargs = n_kwargs;
}

// ---- making nodes

static Node *add_node(Graph *g, NodeOp op, const char *target, const char *candidate,
                      const Value *args, int n_args, const Kwarg *kwargs, int n_kwargs) {
    Node *n = ARENA_NEW(g->arena, Node);
    n->id = g->by_id.n;
    n->op = op;
    n->graph = g;
    n->seq_nr = -1;
    n->target = target;
    n->name = graph_new_name(g, candidate);
    map_put(&g->names, n->name, n);
    vec_push(g->arena, &g->by_id, n);
    Copier c = {.arena = g->arena};
    copy_args(&c, n, args, n_args, kwargs, n_kwargs);
    node_each_input(n, add_user, n);
    link_before(g, n, g->insert);
    g->n_nodes++;
    return n;
}

Node *graph_node(Graph *g, NodeOp op, const char *target, const char *name_hint, const Value *args,
                 int n_args, const Kwarg *kwargs, int n_kwargs) {
    const char *t = arena_strdup(g->arena, target);
    const char *candidate = name_hint ? name_hint : target_to_name(g->arena, t);
    return add_node(g, op, t, candidate, args, n_args, kwargs, n_kwargs);
}

Node *graph_placeholder(Graph *g, const char *name, const char *target) {
    return graph_node(g, FX_placeholder, target ? target : name, name, NULL, 0, NULL, 0);
}

Node *graph_get_attr(Graph *g, const char *path, const char *name_hint) {
    Node *n = graph_node(g, FX_get_attr, path, name_hint, NULL, 0, NULL, 0);
    for (int i = 0; i < g->children.n; i++)
        if (!strcmp(g->children.at[i].name, path))
            n->val = (Value){.kind = VAL_graph, .graph = g->children.at[i].graph};
    return n;
}

Node *graph_call(Graph *g, const Op *op, const char *name_hint, const Value *args, int n_args,
                 const Kwarg *kwargs, int n_kwargs) {
    const char *candidate = name_hint ? name_hint : target_to_name(g->arena, op->qualname);
    Node *n =
        add_node(g, FX_call_function, op->qualname, candidate, args, n_args, kwargs, n_kwargs);
    n->def = op;
    return n;
}

Node *graph_output(Graph *g, Value result) {
    assert(!graph_output_node(g));
    g->insert = NULL;
    return add_node(g, FX_output, "output", "output", &result, 1, NULL, 0);
}

// ---- changing nodes

void node_set_args(Node *n, const Value *args, int n_args, const Kwarg *kwargs, int n_kwargs) {
    node_each_input(n, remove_user, n);
    Copier c = {.arena = n->graph->arena};
    copy_args(&c, n, args, n_args, kwargs, n_kwargs);
    node_each_input(n, add_user, n);
}

static bool put_node(Value *v, const Node *old, Node *by) {
    bool changed = false;
    if (v->kind == VAL_node && v->node == old) {
        v->node = by;
        return true;
    }
    if (v->kind == VAL_list || v->kind == VAL_tuple || v->kind == VAL_slice || v->kind == VAL_dict)
        for (int i = 0; i < v->n; i++)
            changed |= put_node(&v->at[i], old, by);
    return changed;
}

void node_replace_input(Node *user, Node *old, Node *by) {
    assert(user->graph == by->graph);
    if (old == by)
        return;
    node_each_input(user, remove_user, user);
    for (int i = 0; i < user->n_args; i++)
        put_node(&user->args[i], old, by);
    for (int i = 0; i < user->n_kwargs; i++)
        put_node(&user->kwargs[i].value, old, by);
    node_each_input(user, add_user, user);
}

void node_replace_uses(Node *old, Node *by) {
    if (old == by)
        return;
    // The list shrinks as users leave it; a user that stays would be a bug of replace_input.
    while (old->n_users) {
        int before = old->n_users;
        node_replace_input(old->users[0], old, by);
        assert(old->n_users < before);
        (void)before;
    }
}

void node_set_kwarg(Node *n, const char *name, Value v) {
    Kwarg *k = ARENA_ARRAY(n->graph->arena, n->n_kwargs + 1, Kwarg);
    int at = n->n_kwargs;
    for (int i = 0; i < n->n_kwargs; i++) {
        k[i] = n->kwargs[i];
        if (!strcmp(k[i].name, name))
            at = i;
    }
    k[at] = (Kwarg){name, v};
    node_set_args(n, n->args, n->n_args, k, n->n_kwargs + (at == n->n_kwargs));
}

void node_copy_meta(Node *to, const Node *from) {
    to->val = value_copy(to->graph->arena, &from->val, NULL);
    to->stack = from->stack;
    to->modules = from->modules;
    to->original_aten = from->original_aten;
    to->seq_nr = from->seq_nr;
    to->ac_graph_id = from->ac_graph_id;
    to->note = from->note;
    to->wrap = from->wrap;
    to->flags = from->flags;
}

void node_rename(Node *n, const char *candidate) {
    Graph *g = n->graph;
    const char *name = graph_new_name(g, candidate);
    map_put(&g->names, n->name, NULL);
    n->name = name;
    map_put(&g->names, name, n);
}

void node_erase(Node *n) {
    Graph *g = n->graph;
    assert(n->n_users == 0);
    node_each_input(n, remove_user, n);
    if (g->insert == n)
        g->insert = n->next;
    unlink_node(g, n);
    g->by_id.at[n->id] = NULL;
    map_put(&g->names, n->name, NULL); // torch.fx never gives a name twice
    g->n_nodes--;
}

void node_move_before(Node *n, Node *before) {
    assert(!before || before->graph == n->graph);
    if (n == before || n->next == before)
        return;
    Graph *g = n->graph;
    if (g->insert == n)
        g->insert = n->next;
    unlink_node(g, n);
    link_before(g, n, before);
}

// ---- questions

bool node_is(const Node *n, OpId op) {
    return n->def && n->def->id == op;
}

bool node_is_item(const Node *n) {
    return n->op == FX_call_function && !strcmp(n->target, "_operator.getitem") && n->n_args &&
           n->args[0].kind == VAL_node;
}

Place node_place(const Node *n) {
    if (n->stack)
        return (Place){.file = n->stack->file, .line = n->stack->line, .source = n->stack->code};
    return (Place){.file = n->line ? n->graph->file : NULL, .line = n->line};
}

const TensorMeta *node_tensor(const Node *n) {
    return n->val.kind == VAL_tensor ? n->val.tensor : NULL;
}

const Value *node_arg(const Node *n, int i, const char *name) {
    if (i >= 0 && i < n->n_args)
        return &n->args[i];
    for (int k = 0; name && k < n->n_kwargs; k++)
        if (!strcmp(n->kwargs[k].name, name))
            return &n->kwargs[k].value;
    return NULL;
}

Value *node_bound(const Node *n, Arena *a) {
    assert(n->def);
    Diag ignored = {.arena = a};
    Value *out = ARENA_ARRAY(a, n->def->n_args ? n->def->n_args : 1, Value);
    const char **names = ARENA_ARRAY(a, n->n_kwargs + 1, const char *);
    Value *values = ARENA_ARRAY(a, n->n_kwargs + 1, Value);
    for (int i = 0; i < n->n_kwargs; i++) {
        names[i] = n->kwargs[i].name;
        values[i] = n->kwargs[i].value;
    }
    bool ok = op_bind(n->def, n->args, n->n_args, names, values, n->n_kwargs, out, a, &ignored,
                      (Place){0});
    return ok ? out : NULL;
}

// ---- copying

static const StackFrame *copy_frame(const Copier *c, const StackFrame *f) {
    if (!f || !c->frames)
        return f;
    StackFrame *known = map_get_id(c->frames, (uint64_t)(uintptr_t)f);
    if (known)
        return known;
    StackFrame *copy = ARENA_NEW(c->arena, StackFrame);
    map_put_id(c->frames, (uint64_t)(uintptr_t)f, copy);
    *copy = (StackFrame){f->file ? arena_strdup(c->arena, f->file) : NULL, f->line,
                         f->func ? arena_strdup(c->arena, f->func) : NULL,
                         f->code ? arena_strdup(c->arena, f->code) : NULL, NULL};
    copy->outer = copy_frame(c, f->outer);
    return copy;
}

static const char *copy_text(const Copier *c, const char *text) {
    return text ? arena_strdup(c->arena, text) : NULL;
}

static void copy_node(const Copier *c, Node *to, const Node *from) {
    to->op = from->op;
    to->name = arena_strdup(c->arena, from->name);
    to->def = from->def;
    bool op_text = from->def && from->target == from->def->qualname;
    to->target = op_text ? from->target : arena_strdup(c->arena, from->target);
    copy_args(c, to, from->args, from->n_args, from->kwargs, from->n_kwargs);
    to->val = copy_value(c, &from->val);
    to->stack = copy_frame(c, from->stack);
    to->modules = copy_text(c, from->modules);
    to->original_aten = copy_text(c, from->original_aten);
    to->type = copy_text(c, from->type);
    to->wrap = copy_text(c, from->wrap);
    to->note = copy_text(c, from->note);
    to->seq_nr = from->seq_nr;
    to->ac_graph_id = from->ac_graph_id;
    to->flags = from->flags;
}

// Users in the order of the original, not in the order in which the copy is made.
static void copy_users(const Copier *c, Node *to, const Node *from) {
    to->n_users = to->cap_users = from->n_users;
    to->users = from->n_users ? ARENA_ARRAY(c->arena, from->n_users, Node *) : NULL;
    for (int i = 0; i < from->n_users; i++)
        to->users[i] = c->map[from->users[i]->id];
}

static void copy_names(Graph *to, const Graph *from, Node *const map[]) {
    to->names = map_copy(to->arena, &from->names);
    to->bases = map_copy(to->arena, &from->bases);
    for (MapEntry *e = map_first(&to->names); e; e = map_next(&to->names, e)) {
        const Node *n = e->ptr;
        e->ptr = n ? map[n->id] : NULL;
        e->key = e->ptr ? map[n->id]->name : arena_strdup(to->arena, e->key);
    }
    for (MapEntry *e = map_first(&to->bases); e; e = map_next(&to->bases, e))
        e->key = arena_strdup(to->arena, e->key);
}

static Graph *copy_graph(Arena *a, const Graph *g, Map *frames) {
    Graph *to = graph_new(a, g->sym);
    Node **map = ARENA_ARRAY(a, g->by_id.n + 1, Node *);
    Copier c = {.arena = a, .map = map, .from = g, .to = to, .frames = frames};
    to->ops = g->ops;
    to->class_name = copy_text(&c, g->class_name);
    to->title = copy_text(&c, g->title);
    to->tree_args = copy_text(&c, g->tree_args);
    to->tree_spec = copy_text(&c, g->tree_spec);
    for (int i = 0; i < g->children.n; i++)
        vec_push(a, &to->children,
                 (GraphChild){copy_text(&c, g->children.at[i].name),
                              copy_graph(a, g->children.at[i].graph, frames)});
    for (int i = 0; i < g->consts.n; i++)
        vec_push(a, &to->consts,
                 (GraphConst){copy_text(&c, g->consts.at[i].name),
                              g->consts.at[i].meta ? meta_copy(a, g->consts.at[i].meta) : NULL,
                              g->consts.at[i].tensor});
    to->by_id.at = map;
    to->by_id.n = g->by_id.n;
    to->by_id.cap = g->by_id.n + 1;
    GRAPH_EACH(g, n) {
        map[n->id] = ARENA_NEW(a, Node);
        map[n->id]->id = n->id;
        map[n->id]->graph = to;
    }
    GRAPH_EACH(g, n) {
        copy_node(&c, map[n->id], n);
        link_before(to, map[n->id], NULL);
        copy_users(&c, map[n->id], n);
    }
    copy_names(to, g, map);
    to->n_nodes = g->n_nodes;
    return to;
}

Graph *graph_copy(Arena *a, const Graph *g) {
    Map frames = {.arena = a};
    return copy_graph(a, g, &frames);
}
