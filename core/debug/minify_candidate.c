// minify_candidate.c: a graph with the values of its inputs: made from a question, copied and
// changed by strategies, turned into a question again.
#include "core/debug/minify_impl.h"
#include "core/ops/foreach.h"

#include <string.h>

Candidate *candidate_new(void) {
    Arena arena = {0};
    Candidate *c = ARENA_NEW(&arena, Candidate);
    c->arena = arena;
    c->inputs.arena = &c->arena;
    return c;
}

Candidate *candidate_copy(const Candidate *from) {
    Candidate *c = candidate_new();
    c->graph = graph_copy(&c->arena, from->graph);
    // Keys are names of the old graph.
    for (MapEntry *e = map_first(&from->inputs); e; e = map_next(&from->inputs, e)) {
        MinifyInput *in = ARENA_NEW(&c->arena, MinifyInput);
        *in = *(const MinifyInput *)e->ptr;
        map_put(&c->inputs, arena_strdup(&c->arena, e->key), in);
    }
    return c;
}

void candidate_free(Candidate *c) {
    if (!c)
        return;
    Arena arena = c->arena;
    arena_free(&arena);
}

int candidate_inputs(const Candidate *c) {
    int n = 0;
    GRAPH_EACH (c->graph, p)
        n += p->op == FX_placeholder;
    return n;
}

int candidate_calls(const Candidate *c) {
    int n = 0;
    GRAPH_EACH (c->graph, k)
        n += k->op != FX_placeholder && k->op != FX_output;
    return n;
}

static int gradients(const Candidate *c) {
    int n = 0;
    for (MapEntry *e = map_first(&c->inputs); e; e = map_next(&c->inputs, e)) {
        const MinifyInput *in = e->ptr;
        n += in->needs_grad;
    }
    return n;
}

bool candidate_is_less(Candidate *c, Candidate *than) {
    Node **r;
    Candidate *both[2] = {c, than};
    int size[2][4];
    for (int i = 0; i < 2; i++) {
        size[i][0] = candidate_calls(both[i]);
        size[i][1] = both[i]->graph->n_nodes;
        size[i][2] = graph_results(both[i]->graph, &r, &both[i]->arena);
        size[i][3] = gradients(both[i]);
    }
    for (int k = 0; k < 4; k++)
        if (size[0][k] != size[1][k])
            return size[0][k] < size[1][k];
    return false;
}

static void hash_into(uint64_t *h, const MinifyInput *in) {
    *h = hash_mix(*h, in->digest);
    *h = hash_mix(*h, (uint64_t)in->kind * 2 + in->needs_grad);
}

// No input in its place, either.
const char *candidate_lacks(const Minify *m, const Candidate *c) {
    for (MapEntry *e = map_first(&m->kept); e; e = map_next(&m->kept, e)) {
        const Node *kept = graph_find(c->graph, e->key);
        if (!kept || (int64_t)kept->op != e->i)
            return e->key;
    }
    return NULL;
}

bool candidate_finish(const Minify *m, Candidate *c) {
    Buf text = {.arena = &c->arena};
    Node **results;
    ArenaMark mark = arena_mark(&c->arena);
    int n = graph_results(c->graph, &results, &c->arena), nodes = 0;
    for (int i = 0; i < n; i++) {
        nodes += results[i] != NULL;
        if (results[i] && foreach_writes(results[i]->target))
            return false; // None in PyTorch
    }
    if (!nodes)
        return false;
    graph_print(&text, c->graph, &fx_style_log, NULL);
    c->hash = hash_text(buf_str(&text));
    arena_rewind(&c->arena, mark);
    for (MapEntry *e = map_first(&c->inputs); e; e = map_next(&c->inputs, e)) {
        const Node *p = graph_find(c->graph, e->key);
        if (!p || p->op != FX_placeholder)
            map_remove(&c->inputs, e->key);
    }
    GRAPH_EACH (c->graph, p) {
        const MinifyInput *in = p->op == FX_placeholder ? map_get(&c->inputs, p->name) : NULL;
        if (p->op == FX_placeholder && !in)
            return false;
        if (in)
            hash_into(&c->hash, in);
    }
    return !candidate_lacks(m, c);
}

// ---- inputs

static uint64_t digest_of(const RtValue *v) {
    if (v->kind != RT_tensor)
        return hash_mix((uint64_t)v->kind, v->kind == RT_int    ? (uint64_t)v->i
                                           : v->kind == RT_bool ? (uint64_t)v->b
                                                                : hash_bytes(&v->f, sizeof v->f));
    uint64_t h = tensor_digest(&v->tensor);
    for (int i = 0; i < v->tensor.ndim; i++)
        h = hash_mix(h, (uint64_t)v->tensor.stride[i]);
    return h;
}

MinifyInput *minify_value(Minify *m, const RtValue *v) {
    MinifyInput *in = ARENA_NEW(&m->arena, MinifyInput);
    in->v = *v;
    if (v->kind == RT_tensor)
        vec_push(&m->arena, &m->storages, storage_keep(v->tensor.storage));
    return in;
}

MinifyInput *minify_input(Minify *m, const RtValue *v) {
    MinifyInput *in = minify_value(m, v);
    in->digest = digest_of(v);
    return in;
}

// ---- questions

Candidate *candidate_of_query(Minify *m, const ProbeQuery *q, Diag *d) {
    Candidate *c = candidate_new();
    Sym *sym = NULL;
    if (q->graph) {
        c->graph = graph_copy(&c->arena, q->graph);
    } else {
        FxDoc doc = {.arena = &m->arena};
        sym = sym_new(&m->arena);
        if (!fx_parse(&doc, sym, q->text, "graph", d) || !doc.n) {
            candidate_free(c);
            return NULL;
        }
        c->graph = graph_copy(&c->arena, doc.at[0].graph);
    }
    int i = 0;
    GRAPH_EACH (c->graph, p) {
        if (p->op != FX_placeholder)
            continue;
        if (i >= q->n_inputs) {
            diag_fail(d, "%d inputs are given, the graph takes more", q->n_inputs);
            candidate_free(c);
            return NULL;
        }
        MinifyInput *in = minify_input(m, &q->inputs[i]);
        in->kind = q->kinds ? q->kinds[i] : IN_user;
        in->needs_grad = q->needs_grad && q->needs_grad[i];
        map_put(&c->inputs, p->name, in);
        i++;
    }
    return c;
}

ProbeQuery candidate_query(const Minify *m, const Candidate *c, Arena *a) {
    ProbeQuery q = m->query;
    int n = candidate_inputs(c), i = 0;
    RtValue *in = ARENA_ARRAY(a, n + 1, RtValue);
    InputKind *kinds = ARENA_ARRAY(a, n + 1, InputKind);
    bool *needs = ARENA_ARRAY(a, n + 1, bool);
    GRAPH_EACH (c->graph, p) {
        const MinifyInput *x = p->op == FX_placeholder ? map_get(&c->inputs, p->name) : NULL;
        if (!x)
            continue;
        in[i] = x->v;
        kinds[i] = x->kind;
        needs[i++] = x->needs_grad;
    }
    q.graph = c->graph;
    q.text = (Str){0};
    q.inputs = in;
    q.n_inputs = n;
    q.kinds = kinds;
    q.needs_grad = needs;
    return q;
}

// ---- nodes become inputs

bool candidate_can_concrete(const Minify *m, const Node *n) {
    bool is_value = n->op == FX_call_function || n->op == FX_call_method || n->op == FX_get_attr;
    return is_value && map_find(&m->values, n->name);
}

// Sizes that the text tells keep their symbols, if inputs still tell what these are.
static bool has_symbols(const TensorMeta *t) {
    for (int i = 0; t && i < t->ndim; i++)
        if (expr_has_symbols(t->size[i]) || expr_has_symbols(t->stride[i]))
            return true;
    return false;
}

static bool has_size(const TensorMeta *t, const Expr *symbol) {
    for (int i = 0; t && i < t->ndim; i++)
        if (t->size[i] == symbol)
            return true;
    return false;
}

static bool is_bound(const Graph *g, const Expr *symbol) {
    GRAPH_EACH (g, p)
        if (p->op == FX_placeholder && ((p->val.kind == VAL_sym && p->val.sym == symbol) ||
                                        has_size(node_tensor(p), symbol)))
            return true;
    return false;
}

static bool all_bound(Arena *a, const Graph *g, const TensorMeta *t) {
    for (int i = 0; i < 2 * t->ndim; i++) {
        const Expr *e = i % 2 ? t->stride[i / 2] : t->size[i / 2], **found;
        int k = expr_symbols(a, e, &found);
        for (int s = 0; s < k; s++)
            if (!has_size(t, found[s]) && !is_bound(g, found[s]))
                return false;
    }
    return true;
}

const TensorMeta *meta_of_tensor(Arena *a, Sym *sym, const Tensor *t) {
    TensorMeta *m = meta_new(a, t->dtype, t->ndim);
    for (int i = 0; i < t->ndim; i++) {
        m->size[i] = sym_int(sym, t->size[i]);
        m->stride[i] = sym_int(sym, t->stride[i]);
    }
    m->offset = sym_int(sym, 0);
    m->device = (Device){DEV_cpu, -1};
    return m;
}

// Does a gradient go through it?
static bool carries_grad(Candidate *c, const Node *n) {
    bool *reached = ARENA_ARRAY(&c->arena, c->graph->by_id.n + 1, bool);
    GRAPH_EACH (c->graph, k) {
        const MinifyInput *in = k->op == FX_placeholder ? map_get(&c->inputs, k->name) : NULL;
        reached[k->id] = reached[k->id] || (in && in->needs_grad);
        if (k == n)
            break;
        for (int u = 0; reached[k->id] && u < k->n_users; u++)
            reached[k->users[u]->id] = true;
    }
    return reached[n->id];
}

void candidate_concrete(Minify *m, Candidate *c, Node *n) {
    Graph *g = c->graph;
    MinifyInput *value = map_get(&m->values, n->name);
    const char *name = n->name;
    if (!value->digest)
        value->digest = digest_of(&value->v);
    MinifyInput *in = ARENA_NEW(&c->arena, MinifyInput);
    *in = *value;
    in->kind = IN_user;
    bool is_float = in->v.kind == RT_tensor && dtype_is_float(in->v.tensor.dtype);
    in->needs_grad = is_float && carries_grad(c, n);
    Node *first = g->first;
    while (first->op == FX_placeholder)
        first = first->next;
    graph_set_insert(g, first);
    Node *p = graph_placeholder(g, name, name);
    graph_set_insert(g, NULL);
    const TensorMeta *t = node_tensor(n);
    if (in->v.kind == RT_tensor && !(t && has_symbols(t) && all_bound(&c->arena, g, t)))
        p->val = val_tensor(meta_of_tensor(&c->arena, g->sym, &in->v.tensor));
    else
        p->val = value_copy(&c->arena, &n->val, NULL);
    node_replace_uses(n, p);
    node_erase(n);
    map_remove(&g->names, p->name);
    p->name = name;
    map_put(&g->names, name, p);
    map_put(&c->inputs, name, in);
}

// ---- the output

static void add_results(const Value *v, Arena *a, Node ***at, int *n, int *cap) {
    if (v->kind == VAL_list || v->kind == VAL_tuple || v->kind == VAL_dict) {
        for (int i = v->kind == VAL_dict; i < v->n; i += v->kind == VAL_dict ? 2 : 1)
            add_results(&v->at[i], a, at, n, cap);
        return;
    }
    VEC(Node *) all = {*at, *n, *cap};
    vec_push(a, &all, v->kind == VAL_node ? v->node : NULL);
    *at = all.at;
    *n = all.n;
    *cap = all.cap;
}

int graph_results(const Graph *g, Node ***out, Arena *a) {
    const Node *o = graph_output_node(g);
    int n = 0, cap = 0;
    *out = NULL;
    if (o && o->n_args)
        add_results(&o->args[0], a, out, &n, &cap);
    return n;
}

void graph_set_results(Graph *g, Node *const *results, int n) {
    Node *o = graph_output_node(g);
    ValueKind kind = o->args[0].kind == VAL_list ? VAL_list : VAL_tuple;
    bool alone = n == 1 && o->args[0].kind == VAL_node;
    Value v = alone ? val_node(results[0]) : val_list(g->arena, kind, n);
    for (int i = 0; !alone && i < n; i++)
        v.at[i] = results[i] ? val_node(results[i]) : val_none();
    node_set_args(o, &v, 1, NULL, 0);
}
