// diff_match.c: which node of one graph is which of another. What a node computes is hashed from
// the inputs on (op, arguments, and the hashes of its inputs), so that renumbered names and another
// order of independent ops make no difference. Behind a change, where hashes differ, nodes are told
// by the node that both were traced from, by what is made of them, and at last by their names.
#include "views/diff_text.h"

#include <string.h>

typedef struct Matcher {
    ViewCtx *c;
    const Graph *a, *b;
    const Artifact *art_a, *art_b;
    const Node **to; // by id of b: the node of a
    bool *used;      // by id of a
} Matcher;

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

static void pair(Matcher *m, const Node *a, const Node *b) {
    m->to[b->id] = a;
    m->used[a->id] = true;
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

static void match_keys(Matcher *m, const uint64_t *key_a, const uint64_t *key_b) {
    Arena *tmp = m->c->tmp;
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

static void match_names(Matcher *m) {
    GRAPH_EACH (m->b, n) {
        const Node *a = m->to[n->id] ? NULL : graph_find(m->a, n->name);
        if (a && !m->used[a->id] && a->op == n->op)
            pair(m, a, n);
    }
}

// Between stages: what computes the same value.
static void match_links(Matcher *m) {
    Pipeline *p = session_pipeline(m->c->session);
    GRAPH_EACH (m->b, n) {
        Link *links = NULL;
        int k = pipeline_links(p, m->art_b, n->id, m->art_a, m->c->tmp, &links);
        const Node *a =
            k && links[0].strength == LINK_same ? graph_by_id(m->a, links[0].item) : NULL;
        if (a && !m->used[a->id])
            pair(m, a, n);
    }
}

// A text of b with b's names as a has them.
static const char *rename(const Matcher *m, const char *text) {
    Buf out = {.arena = m->c->arena};
    bool any = false;
    // In the brief spelling the second word is the op, which may be called as some node is.
    const char *op = text + strcspn(text, " ");
    op = m->c->opt.full ? NULL : op + strspn(op, " ");
    for (const char *p = text; *p;) {
        size_t n = strspn(p, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_");
        const Node *b = NULL, *a = NULL;
        if (n && p != op && (p == text || p[-1] != '.'))
            b = graph_find(m->b, arena_strndup(m->c->tmp, p, n));
        if (b && (a = m->to[b->id]) && strcmp(a->name, b->name)) {
            buf_puts(&out, a->name);
            any = true;
        } else {
            buf_add(&out, p, n ? n : 1);
        }
        p += n ? n : 1;
    }
    return any ? buf_str(&out) : text;
}

// Nodes on both sides that could still be one; outputs are told by their name.
static bool has_rest(const Matcher *m) {
    bool a = false, b = false;
    GRAPH_EACH (m->a, n)
        a |= !m->used[n->id] && n->op != FX_output;
    GRAPH_EACH (m->b, n)
        b |= !m->to[n->id] && n->op != FX_output;
    return a && b;
}

static void match_graphs(Matcher *m, DiffText *b) {
    Arena *tmp = m->c->tmp;
    m->to = ARENA_ARRAY(tmp, m->b->by_id.n + 1, const Node *);
    m->used = ARENA_ARRAY(tmp, m->a->by_id.n + 1, bool);
    if (m->art_a->stage != m->art_b->stage)
        match_links(m);
    if (has_rest(m)) {
        match_keys(m, hash_nodes(tmp, m->a), hash_nodes(tmp, m->b));
        if (m->art_a->parent && m->art_a->parent == m->art_b->parent)
            match_keys(m, origin_keys(tmp, m->art_a), origin_keys(tmp, m->art_b));
        match_keys(m, hash_uses(tmp, m->a), hash_uses(tmp, m->b));
    }
    match_names(m);
    bool renamed = false; // mostly nothing is
    GRAPH_EACH (m->b, n)
        renamed |= m->to[n->id] && strcmp(m->to[n->id]->name, n->name) != 0;
    for (int i = 0; i < b->n; i++) {
        const Node *n =
            b->item[i] >= 0 && b->item[i] < m->b->by_id.n ? graph_by_id(m->b, b->item[i]) : NULL;
        if (!n)
            continue;
        // A key that the other side has for another node must not meet it.
        b->key[i] = m->to[n->id] ? m->to[n->id]->name
                                 : arena_printf(m->c->arena, "%s (only here)", n->name);
        if (!renamed)
            continue;
        ArenaMark mark = arena_mark(tmp);
        b->same[i] = rename(m, b->same[i]);
        arena_rewind(tmp, mark);
    }
}

void diff_match(ViewCtx *c, const Artifact *art_a, const Artifact *art_b, const DiffText *a,
                DiffText *b) {
    (void)a;
    if (art_a->kind != ART_graph || art_b->kind != ART_graph)
        return;
    Matcher m = {.c = c, .a = art_a->graph, .b = art_b->graph, .art_a = art_a, .art_b = art_b};
    if (art_a->graph != art_b->graph)
        match_graphs(&m, b);
}
