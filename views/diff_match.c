// diff_match.c: which node of one graph is which of another. What a node computes is hashed from
// the inputs on (op, arguments, and the hashes of its inputs), so that renumbered names and another
// order of independent ops make no difference. Behind a change, where hashes differ, nodes are told
// by the node that both were traced from, by what is made of them, and at last by their names.
#include "views/diff_text.h"

#include <string.h>

static void no_name(Buf *out, const Node *n, void *ctx) {
    (void)out, (void)n, (void)ctx;
}

static uint64_t hash_value(const Value *v, const uint64_t *of) {
    Arena tmp = {0};
    uint64_t h = hash_mix(0x51ed, (uint64_t)v->kind);
    if (v->kind == VAL_node)
        return hash_mix(h, of[v->node->id]);
    if (v->kind == VAL_list || v->kind == VAL_tuple || v->kind == VAL_dict ||
        v->kind == VAL_slice) {
        for (int i = 0; i < v->n; i++)
            h = hash_mix(h, hash_value(&v->at[i], of));
        return h;
    }
    Buf b = {.arena = &tmp};
    if (v->kind == VAL_int)
        h = hash_mix(h, (uint64_t)v->i);
    else if (v->kind != VAL_graph)
        val_print(&b, v, no_name, NULL);
    h = b.len ? hash_mix(h, hash_bytes(buf_str(&b), b.len)) : h;
    arena_free(&tmp);
    return h;
}

static uint64_t *hash_nodes(Arena *arena, const Graph *g) {
    uint64_t *of = ARENA_ARRAY(arena, g->by_id.n + 1, uint64_t);
    uint64_t inputs = 0;
    GRAPH_EACH (g, n) {
        uint64_t h = hash_mix((uint64_t)n->op, hash_bytes(n->target, strlen(n->target)));
        if (n->op == FX_placeholder)
            h = hash_mix(0x9e37, inputs++);
        for (int i = 0; i < n->n_args; i++)
            h = hash_mix(h, hash_value(&n->args[i], of));
        for (int i = 0; i < n->n_kwargs; i++)
            h = hash_mix(hash_mix(h, hash_bytes(n->kwargs[i].name, strlen(n->kwargs[i].name))),
                         hash_value(&n->kwargs[i].value, of));
        of[n->id] = h;
    }
    return of;
}

// Where a value stands among the arguments of a user whose hash is h.
static uint64_t hash_place(const Value *v, const Node *n, uint64_t h) {
    if (v->kind == VAL_node)
        return v->node == n ? hash_mix(h, 0x75) : 0;
    uint64_t sum = 0;
    bool list = v->kind == VAL_list || v->kind == VAL_tuple || v->kind == VAL_dict ||
                v->kind == VAL_slice;
    for (int i = 0; list && i < v->n; i++)
        sum += hash_place(&v->at[i], n, hash_mix(h, (uint64_t)i + 1));
    return sum;
}

// What becomes of a node: its op and those of its users, down to the results. 0: a placeholder.
static uint64_t *hash_uses(Arena *arena, const Graph *g) {
    uint64_t *of = ARENA_ARRAY(arena, g->by_id.n + 1, uint64_t);
    for (const Node *n = g->last; n; n = n->prev) {
        if (n->op == FX_placeholder)
            continue;
        uint64_t h = hash_mix((uint64_t)n->op, hash_bytes(n->target, strlen(n->target)));
        for (int u = 0; u < n->n_users; u++)
            for (int i = 0; i < n->users[u]->n_args; i++)
                h += hash_place(&n->users[u]->args[i], n,
                                hash_mix(of[n->users[u]->id], (uint64_t)i + 1));
        of[n->id] = h;
    }
    return of;
}

static void pair(DiffMatch *m, const Node *a, const Node *b) {
    m->to[b->id] = a;
    m->used[a->id] = true;
    m->paired += a->op != FX_output && b->op != FX_output;
}

// Nodes of equal keys in order: the first of one with the first of the other.
typedef struct Queue {
    VEC(const Node *) at;
    int next;
} Queue;

static Queue *queue_of(Map *m, Arena *a, uint64_t key, bool make) {
    MapEntry *e = make ? map_at_id(m, key) : map_find_id(m, key);
    if (make && !e->ptr)
        e->ptr = ARENA_NEW(a, Queue);
    return e ? e->ptr : NULL;
}

static void match_keys(Arena *tmp, DiffMatch *m, const uint64_t *key_a, const uint64_t *key_b) {
    Map by_key = {.arena = tmp};
    GRAPH_EACH (m->a, n)
        if (!m->used[n->id] && key_a[n->id])
            vec_push(tmp, &queue_of(&by_key, tmp, key_a[n->id], true)->at, n);
    GRAPH_EACH (m->b, n) {
        Queue *q =
            m->to[n->id] || !key_b[n->id] ? NULL : queue_of(&by_key, tmp, key_b[n->id], false);
        if (q && q->next < q->at.n)
            pair(m, q->at.at[q->next++], n);
    }
}

// The op with the node that it was traced for; 0: on record is none.
static uint64_t *origin_keys(Arena *arena, const Artifact *art) {
    uint64_t *key = ARENA_ARRAY(arena, art->graph->by_id.n + 1, uint64_t);
    GRAPH_EACH (art->graph, n) {
        int count = 0;
        const Link *from = art->origins ? origins_from(art->origins, n->id, &count) : NULL;
        if (count)
            key[n->id] =
                hash_mix((uint64_t)from[0].item + 1, hash_bytes(n->target, strlen(n->target)));
    }
    return key;
}

static void match_names(DiffMatch *m) {
    GRAPH_EACH (m->b, n) {
        const Node *a = m->to[n->id] ? NULL : graph_find(m->a, n->name);
        if (a && !m->used[a->id] && a->op == n->op)
            pair(m, a, n);
    }
}

// The way from b's artifact to a's: up to what both came from, and down from there.
typedef struct Way {
    VEC(const Artifact *) up, down; // artifacts with origins, in order
    bool found;
} Way;

static Way find_way(Arena *arena, const Artifact *b, const Artifact *a) {
    Way w = {.found = false};
    for (; b && !w.found; b = b->parent) {
        w.down.n = 0;
        for (const Artifact *d = a; d && !w.found; d = d->parent) {
            w.found = d == b;
            if (!w.found && d->origins)
                vec_push(arena, &w.down, d);
        }
        if (!w.found && b->origins)
            vec_push(arena, &w.up, b);
    }
    return w;
}

// The one thing that a node is the same as all along the way; -1: none. False: it is not as simple.
static bool same_along(const Way *w, int *item) {
    for (int i = 0; i < w->up.n + w->down.n; i++) {
        int n, down = w->up.n + w->down.n - 1 - i;
        const Link *l = i < w->up.n ? origins_from(w->up.at[i]->origins, *item, &n)
                                    : origins_to(w->down.at[down]->origins, *item, &n);
        if (n > 1)
            return false;
        *item = n && l->strength == LINK_same ? l->item : -1;
        if (*item < 0)
            return true;
    }
    return w->found;
}

// Between stages: what computes the same value.
static void match_links(ViewCtx *c, DiffMatch *m, const Artifact *art_a, const Artifact *art_b) {
    Pipeline *p = session_pipeline(c->session);
    Way way = find_way(c->tmp, art_b, art_a);
    GRAPH_EACH (m->b, n) {
        ArenaMark mark = arena_mark(c->tmp);
        int item = n->id;
        Link *links = NULL;
        if (!same_along(&way, &item)) {
            int k = pipeline_links(p, art_b, n->id, art_a, c->tmp, &links);
            item = k && links[0].strength == LINK_same ? links[0].item : -1;
        }
        const Node *a = item >= 0 ? graph_by_id(m->a, item) : NULL;
        if (a && !m->used[a->id])
            pair(m, a, n);
        arena_rewind(c->tmp, mark);
    }
}

// Nodes on both sides that could still be one; outputs are told by their name.
static bool has_rest(const DiffMatch *m) {
    int a = m->a->n_nodes - (m->a->last && m->a->last->op == FX_output);
    int b = m->b->n_nodes - (m->b->last && m->b->last->op == FX_output);
    return a > m->paired && b > m->paired;
}

static void match_graphs(ViewCtx *c, DiffMatch *m, const Artifact *art_a, const Artifact *art_b) {
    Arena *tmp = c->tmp;
    m->to = ARENA_ARRAY(c->arena, m->b->by_id.n + 1, const Node *);
    m->used = ARENA_ARRAY(c->arena, m->a->by_id.n + 1, bool);
    if (art_a->stage != art_b->stage)
        match_links(c, m, art_a, art_b);
    if (has_rest(m)) {
        match_keys(tmp, m, hash_nodes(tmp, m->a), hash_nodes(tmp, m->b));
        if (art_a->parent && art_a->parent == art_b->parent)
            match_keys(tmp, m, origin_keys(tmp, art_a), origin_keys(tmp, art_b));
        match_keys(tmp, m, hash_uses(tmp, m->a), hash_uses(tmp, m->b));
    }
    match_names(m);
}

// The key of a node of a is its line; of one of b that of its match, or one of its own.
static int key_nodes(ViewCtx *c, const DiffMatch *m, DiffText *a, DiffText *b) {
    int *line = ARENA_ARRAY(c->tmp, m->a->by_id.n + 1, int), next = a->n;
    for (int i = 0; i < a->n; i++)
        line[a->item[i]] = a->key[i] = i;
    for (int i = 0; i < b->n; i++) {
        const Node *to = m->to ? m->to[b->item[i]] : graph_by_id(m->a, b->item[i]);
        b->key[i] = to ? line[to->id] : next++;
    }
    return next;
}

static void key_names(Map *keys, const DiffText *t) {
    for (int i = 0; i < t->n; i++) {
        const char *name =
            t->name ? t->name[i] : graph_by_id(t->art->graph, t->item[i])->name;
        MapEntry *e = map_at(keys, name);
        if (!e->i)
            e->i = keys->n;
        t->key[i] = (int)e->i - 1;
    }
}

int diff_match(ViewCtx *c, DiffText *a, DiffText *b, DiffMatch *m) {
    a->key = ARENA_ARRAY(c->arena, a->n + 1, int);
    b->key = ARENA_ARRAY(c->arena, b->n + 1, int);
    if (a->art->kind == ART_graph && b->art->kind == ART_graph) {
        *m = (DiffMatch){.a = a->art->graph, .b = b->art->graph};
        if (m->a != m->b)
            match_graphs(c, m, a->art, b->art);
        return key_nodes(c, m, a, b);
    }
    Map keys = {.arena = c->tmp};
    key_names(&keys, a);
    key_names(&keys, b);
    return keys.n;
}
