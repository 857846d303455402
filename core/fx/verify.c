// verify.c: what must hold of every finished graph, checked between passes, and a hash that is the
// same for graphs that differ only in names.
#include "core/fx/graph.h"

#include <string.h>

// Who uses each node, as the users' arguments have it: found in one walk, so that a node of many
// users, or with many inputs, costs no more than its edges.
typedef struct Uses {
    const Graph *g;
    const Node *user; // whose inputs are walked
    int *seen;        // by id: 1 + id of the last user counted
    int *first;       // (ids + 1) by id: where its users begin
    int *n;           // by id: users put there so far
    const Node **of;  // by first
    int *stamp;       // by id, of check_users
} Uses;

typedef struct Check {
    const Graph *g;
    Diag *d;
    const Node *user; // whose inputs are looked at
    bool ok;
    Uses uses;
} Check;

static void fail(Check *c, const char *what, const char *who) {
    diag_fail(c->d, "graph %s: node %s: %s%s%s", c->g->title ? c->g->title : c->g->class_name,
              c->user ? c->user->name : "-", what, who ? " " : "", who ? who : "");
    c->ok = false;
}

static bool is_new(Uses *u, const Node *input) {
    if (graph_by_id(u->g, input->id) != input || u->seen[input->id] == u->user->id + 1)
        return false;
    u->seen[input->id] = u->user->id + 1;
    return true;
}

static void count_use(Node *input, void *ctx) {
    Uses *u = ctx;
    if (is_new(u, input))
        u->first[input->id + 1]++;
}

static void put_use(Node *input, void *ctx) {
    Uses *u = ctx;
    if (is_new(u, input))
        u->of[u->first[input->id] + u->n[input->id]++] = u->user;
}

static void find_uses(Uses *u, const Graph *g, Arena *tmp) {
    int ids = g->by_id.n;
    *u = (Uses){.g = g,
                .seen = ARENA_ARRAY(tmp, ids + 1, int),
                .first = ARENA_ARRAY(tmp, ids + 2, int),
                .n = ARENA_ARRAY(tmp, ids + 1, int),
                .stamp = ARENA_ARRAY(tmp, ids + 1, int)};
    GRAPH_EACH (g, n) {
        u->user = n;
        node_each_input(n, count_use, u);
    }
    for (int i = 0; i < ids; i++) {
        u->first[i + 1] += u->first[i];
        u->seen[i] = 0;
    }
    u->of = ARENA_ARRAY(tmp, u->first[ids] + 1, const Node *);
    GRAPH_EACH (g, n) {
        u->user = n;
        node_each_input(n, put_use, u);
    }
}

static void check_input(Node *input, void *ctx) {
    Check *c = ctx;
    if (input->graph != c->g || graph_by_id(c->g, input->id) != input) {
        fail(c, "uses a node that is not in the graph:", input->name);
        return;
    }
    if (input->position >= c->user->position)
        fail(c, "uses a node that comes later:", input->name);
    if (input->op == FX_output)
        fail(c, "uses the output", NULL);
}

// The list that a node keeps of its users is that of those that use it.
static void check_users(Check *c, const Node *n) {
    Uses *u = &c->uses;
    const Node *const *real = u->of + u->first[n->id];
    int used = 2 * n->id + 1, listed = used + 1;
    for (int i = 0; i < u->n[n->id]; i++)
        u->stamp[real[i]->id] = used;
    for (int i = 0; i < n->n_users; i++) {
        const Node *user = n->users[i];
        if (graph_by_id(c->g, user->id) != user)
            fail(c, "has a user that is not in the graph:", user->name);
        else if (u->stamp[user->id] == listed)
            fail(c, "has a user twice:", user->name);
        else if (u->stamp[user->id] != used)
            fail(c, "has a user that does not use it:", user->name);
        else
            u->stamp[user->id] = listed;
    }
    for (int i = 0; i < u->n[n->id]; i++)
        if (u->stamp[real[i]->id] == used) {
            c->user = real[i];
            fail(c, "is missing among the users of", n->name);
            c->user = n;
        }
}

static void check_node(Check *c, const Node *n) {
    c->user = n;
    if (graph_by_id(c->g, n->id) != n || n->graph != c->g)
        fail(c, "has a wrong id", NULL);
    if (graph_find(c->g, n->name) != n)
        fail(c, "has a name that belongs to another node", NULL);
    if (n->def && n->op != FX_call_function)
        fail(c, "has an op but is no call", NULL);
    if (n->next ? n->next->prev != n : c->g->last != n)
        fail(c, "is linked wrongly", NULL);
    if (n->op == FX_output && n->next)
        fail(c, "is an output before the end", NULL);
    if (n->op == FX_output && n->n_args != 1)
        fail(c, "is an output that does not have one argument", NULL);
    if (n->op == FX_call_method && n->n_args < 1)
        fail(c, "is a method call without self", NULL);
    node_each_input(n, check_input, c);
    check_users(c, n);
}

bool graph_verify(const Graph *g, Diag *d) {
    Check c = {.g = g, .d = d, .ok = true};
    Arena tmp = {0};
    graph_number(g);
    find_uses(&c.uses, g, &tmp);
    int live = 0;
    GRAPH_EACH(g, n) {
        check_node(&c, n);
        live++;
    }
    arena_free(&tmp);
    c.user = NULL;
    if (!graph_output_node(g))
        fail(&c, "the graph has no output at its end", NULL);
    if (live != g->n_nodes)
        fail(&c, "the graph's count of nodes is wrong", NULL);
    for (int i = 0; i < g->children.n; i++)
        c.ok &= graph_verify(g->children.at[i].graph, d);
    return c.ok;
}

// ---- hash

static uint64_t mix_text(uint64_t h, const char *text) {
    return hash_mix(h, text ? hash_text(text) : 1);
}

static uint64_t hash_exprs(uint64_t h, const Expr *const *e, int n, Arena *tmp) {
    for (int i = 0; e && i < n; i++) {
        int64_t v;
        if (!e[i])
            h = hash_mix(h, 2);
        else if (expr_int(e[i], &v))
            h = hash_mix(h, (uint64_t)v);
        else
            h = mix_text(h, sym_str(tmp, e[i]));
    }
    return h;
}

static uint64_t hash_tensor(uint64_t h, const TensorMeta *t, Arena *tmp) {
    h = hash_mix(h, ((uint64_t)t->dtype << 32) ^ ((uint64_t)t->ndim << 8) ^ (uint64_t)t->layout);
    h = hash_mix(h, ((uint64_t)t->device.type << 32) ^ (uint32_t)t->device.index);
    h = hash_exprs(h, t->size, t->ndim, tmp);
    h = hash_exprs(h, t->stride, t->ndim, tmp);
    return hash_exprs(h, &t->offset, 1, tmp);
}

static uint64_t hash_value(uint64_t h, const Value *v, Arena *tmp) {
    h = hash_mix(h, (uint64_t)v->kind);
    switch (v->kind) {
    case VAL_none:
    case VAL_ellipsis:
        return h;
    case VAL_bool:
        return hash_mix(h, v->b);
    case VAL_int:
        return hash_mix(h, (uint64_t)v->i);
    case VAL_float:
    case VAL_complex: {
        uint64_t bits[2] = {0, 0};
        memcpy(bits, v->kind == VAL_float ? &v->f : &v->c.re, sizeof(double));
        if (v->kind == VAL_complex)
            memcpy(bits + 1, &v->c.im, sizeof(double));
        return hash_mix(hash_mix(h, bits[0]), bits[1]);
    }
    case VAL_sym:
        return hash_exprs(h, &v->sym, 1, tmp);
    case VAL_symfloat:
    case VAL_str:
    case VAL_target:
    case VAL_opaque:
        return mix_text(h, v->s);
    case VAL_dtype:
        return hash_mix(h, (uint64_t)v->dtype);
    case VAL_device:
        return hash_mix(h, ((uint64_t)v->device.type << 32) ^ (uint32_t)v->device.index);
    case VAL_layout:
        return hash_mix(h, (uint64_t)v->layout);
    case VAL_memory_format:
        return hash_mix(h, (uint64_t)v->mf);
    case VAL_tensor:
        return v->tensor ? hash_tensor(h, v->tensor, tmp) : h;
    case VAL_list:
    case VAL_tuple:
    case VAL_dict:
    case VAL_slice:
        h = hash_mix(h, (uint64_t)v->n);
        for (int i = 0; i < v->n; i++)
            h = hash_value(h, &v->at[i], tmp);
        return h;
    case VAL_node:
        return hash_mix(h, (uint64_t)v->node->position);
    case VAL_graph:
        return hash_mix(h, v->graph ? graph_hash(v->graph) : 0);
    }
    return h;
}

uint64_t graph_hash(const Graph *g) {
    Arena tmp = {0};
    uint64_t h = 14695981039346656037ull;
    graph_number(g);
    GRAPH_EACH(g, n) {
        ArenaMark mark = arena_mark(&tmp);
        h = hash_mix(h, (uint64_t)n->op);
        if (n->op != FX_placeholder)
            h = mix_text(h, n->target);
        for (int i = 0; i < n->n_args; i++)
            h = hash_value(h, &n->args[i], &tmp);
        for (int i = 0; i < n->n_kwargs; i++)
            h = hash_value(mix_text(h, n->kwargs[i].name), &n->kwargs[i].value, &tmp);
        if (n->val.kind != VAL_graph)
            h = hash_value(h, &n->val, &tmp);
        arena_rewind(&tmp, mark);
    }
    for (int i = 0; i < g->children.n; i++)
        h = hash_mix(h, graph_hash(g->children.at[i].graph));
    arena_free(&tmp);
    return h;
}
