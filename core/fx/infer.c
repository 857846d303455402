// infer.c: metadata of nodes that came without any (plain code, print(graph)): each op's meta
// function applied to its inputs' values, in order. What has no meta function, or stands behind it,
// stays unknown.
#include "core/fx/graph.h"

#include <string.h>

typedef struct Infer {
    Graph *g;
    Arena tmp;
    Diag *d;
    int stage;  // of guards
    bool strict; // an op that refuses is an error
    bool known; // every node in the arguments has a value
    bool sizes; // and all are sizes
} Infer;

// The value with every node replaced by what it yields.
static Value resolve(Infer *f, const Value *v) {
    Value r = *v;
    switch (v->kind) {
    case VAL_node:
        r = v->node->val;
        f->known &= r.kind != VAL_none;
        f->sizes &= r.kind == VAL_sym || r.kind == VAL_int;
        break;
    case VAL_list:
    case VAL_tuple:
        r.at = v->n ? ARENA_ARRAY(&f->tmp, v->n, Value) : NULL;
        for (int i = 0; i < v->n; i++)
            r.at[i] = resolve(f, &v->at[i]);
        break;
    default:
        break;
    }
    return r;
}

static bool infer_item(Node *n, const Value *args) {
    int64_t i;
    bool item = !strcmp(n->target, "_operator.getitem") && n->n_args == 2 &&
                (args[0].kind == VAL_tuple || args[0].kind == VAL_list);
    if (!item || !val_as_int(&args[1], &i) || i < 0 || i >= args[0].n)
        return false;
    n->val = value_copy(n->graph->arena, &args[0].at[i], NULL);
    return true;
}

// A tuple from the getitem nodes that take it apart; items that nobody takes stay unknown.
static void infer_from_items(Node *n) {
    enum { MAX_ITEMS = 4096 };
    int64_t count = 0, i;
    for (int u = 0; u < n->n_users; u++) {
        const Node *user = n->users[u];
        if (strcmp(user->target, "_operator.getitem") != 0 || user->n_args != 2 ||
            user->val.kind == VAL_none || !val_as_int(&user->args[1], &i) || i < 0 ||
            i >= MAX_ITEMS)
            return;
        count = i >= count ? i + 1 : count;
    }
    if (!count)
        return;
    Value tuple = val_list(n->graph->arena, VAL_tuple, (int)count);
    for (int u = 0; u < n->n_users; u++)
        if (val_as_int(&n->users[u]->args[1], &i))
            tuple.at[i] = n->users[u]->val;
    n->val = tuple;
}

static void infer_node(Infer *f, Node *n) {
    int n_args = n->n_args, n_kwargs = n->n_kwargs;
    Value *args = ARENA_ARRAY(&f->tmp, n_args + 1, Value);
    Value *kwargs = ARENA_ARRAY(&f->tmp, n_kwargs + 1, Value);
    const char **names = ARENA_ARRAY(&f->tmp, n_kwargs + 1, const char *);
    f->known = f->sizes = true;
    for (int i = 0; i < n_args; i++)
        args[i] = resolve(f, &n->args[i]);
    for (int i = 0; i < n_kwargs; i++) {
        kwargs[i] = resolve(f, &n->kwargs[i].value);
        names[i] = n->kwargs[i].name;
    }
    if (!f->known || infer_item(n, args))
        return;
    if (!n->def && f->sizes && str_starts(n->target, "_operator."))
        n->def = op_find(n->target);
    if (!n->def || !n->def->meta)
        return;
    Diag quiet = {.arena = &f->tmp};
    Value *bound = ARENA_ARRAY(&f->tmp, n->def->n_args + 1, Value);
    MetaCtx m = {.arena = f->g->arena, .sym = f->g->sym, .diag = &quiet, .stage = f->stage};
    bool ok = op_bind(n->def, args, n_args, names, kwargs, n_kwargs, bound, &f->tmp, &quiet, m.at);
    if (!ok && !f->strict)
        return;
    Value out = {.kind = VAL_none};
    if (ok && op_meta(&m, n->def, bound, &out))
        n->val = out;
    else if (f->strict)
        diag_error(f->d, m.at, "%s: %s", n->name, diag_first(&quiet));
    else
        diag_warning(f->d, m.at, "node %s: %s", n->name, diag_first(&quiet));
}

// Sizes that are symbols: to ask the op for strides might cost a guard.
static bool is_static(const TensorMeta *t) {
    int64_t size;
    for (int i = 0; i < t->ndim; i++)
        if (!expr_int(t->size[i], &size))
            return false;
    return true;
}

// A text without strides: those that the op gives to what it was told, if the sizes agree.
static void infer_strides(Infer *f, Node *n) {
    Diag quiet = {.arena = &f->tmp}, *was = f->d;
    Value told = n->val;
    f->d = &quiet;
    n->val = val_none();
    infer_node(f, n);
    f->d = was;
    const TensorMeta *got = node_tensor(n);
    bool same = got && got->dtype == told.tensor->dtype && got->ndim == told.tensor->ndim;
    for (int i = 0; same && i < got->ndim; i++)
        same = got->size[i] == told.tensor->size[i];
    if (same)
        n->flags &= ~(unsigned)NODE_assumed_strides;
    else
        n->val = told;
}

int graph_infer(Graph *g, Diag *d) {
    Infer f = {.g = g, .d = d};
    int unknown = 0;
    GRAPH_EACH(g, n) {
        bool strides = n->val.kind == VAL_tensor && (n->flags & NODE_assumed_strides) &&
                       n->op == FX_call_function && is_static(n->val.tensor);
        if ((n->val.kind != VAL_none && !strides) || n->op == FX_output)
            continue;
        ArenaMark mark = arena_mark(&f.tmp);
        if (strides)
            infer_strides(&f, n);
        else if (n->op == FX_call_function)
            infer_node(&f, n);
        if (n->op == FX_call_function && n->val.kind == VAL_none)
            infer_from_items(n);
        unknown += n->val.kind == VAL_none;
        arena_rewind(&f.tmp, mark);
    }
    arena_free(&f.tmp);
    return unknown;
}

// What it yields may still be known from before, if its op cannot tell.
static bool infer_again(Infer *f, Node *n, bool *changed) {
    int errors = f->d->errors;
    Value was = n->val;
    n->val = val_none();
    infer_node(f, n);
    if (f->d->errors > errors)
        return false;
    if (n->val.kind == VAL_none)
        n->val = was;
    *changed = !val_equal(&was, &n->val);
    return true;
}

bool graph_reinfer(Graph *g, bool *marked, int stage, Diag *d, const Node **at) {
    Infer f = {.g = g, .d = d, .stage = stage, .strict = true};
    bool ok = true;
    GRAPH_EACH(g, n) {
        if (!marked[n->id] || n->op != FX_call_function)
            continue;
        ArenaMark mark = arena_mark(&f.tmp);
        bool changed = false;
        ok = infer_again(&f, n, &changed);
        arena_rewind(&f.tmp, mark);
        if (!ok) {
            *at = n;
            break;
        }
        for (int i = 0; changed && i < n->n_users; i++)
            marked[n->users[i]->id] = true;
    }
    arena_free(&f.tmp);
    return ok;
}
