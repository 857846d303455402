// partition_graphs.c: forward and backward graph once it is settled what is kept: forward's inputs
// are the primals, its outputs the user's, then kept tensors, then kept sizes; backward's inputs
// are the sizes, the tensors, the tangents.
#include "core/aot/partition_impl.h"
#include "core/record/fault.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

// One of the two graphs as lists of nodes.
typedef struct Half {
    Part *p;
    bool backward;
    PartList inputs, outputs;      // outputs: -1 for what is no node
    PartList order;                // the nodes between
    bool *is_input, *valid, *live; // (n)
} Half;

static Half half_new(Part *p, bool backward) {
    return (Half){.p = p,
                  .backward = backward,
                  .is_input = ARENA_ARRAY(p->tmp, p->n, bool),
                  .valid = ARENA_ARRAY(p->tmp, p->n, bool),
                  .live = ARENA_ARRAY(p->tmp, p->n, bool)};
}

static void add_input(Half *h, int i) {
    vec_push(h->p->tmp, &h->inputs, i);
    h->is_input[i] = true;
}

static void add_list(Part *p, PartList *to, const int *from, int n) {
    for (int k = 0; k < n; k++)
        vec_push(p->tmp, to, from[k]);
}

static void extract(Half *h) {
    Part *p = h->p;
    part_extract(p, h->is_input, h->outputs.at, h->outputs.n, h->backward, h->valid, h->live);
    h->order.n = 0;
    for (int i = 0; i + 1 < p->n; i++)
        if (h->live[i] && !h->is_input[i])
            vec_push(p->tmp, &h->order, i);
}

// Tangents and whatever else only backward gets.
static void add_backward_inputs(Half *h) {
    Part *p = h->p;
    for (int tangents = 1; tangents >= 0; tangents--)
        for (int i = 0; i < p->n; i++)
            if (p->at[i]->op == FX_placeholder && !part_is_primal(p->at[i]) &&
                part_is_tangent(p->at[i]) == tangents)
                add_input(h, i);
}

// ---- kept values

typedef struct Kept {
    PartList tensors, sizes;
} Kept;

static void keep_used(const Half *h, PartList *list) {
    int n = 0;
    for (int k = 0; k < list->n; k++)
        if (h->live[list->at[k]])
            list->at[n++] = list->at[k];
    list->n = n;
}

// The symbol that a node brings in: an input that is one, or an unbacked one where it is made.
static const Expr *binds(const Node *n) {
    if (n->val.kind != VAL_sym || expr_kind(n->val.sym) != SYM_symbol)
        return NULL;
    return n->op == FX_placeholder || expr_name(n->val.sym)[0] == 'u' ? n->val.sym : NULL;
}

typedef struct Symbols {
    Part *p;
    Map binding, known; // by expression: i + 1
    PartList *out;
} Symbols;

static void need_symbols(Symbols *s, const Expr *const *e, int n) {
    const Expr **found;
    VEC(const Expr *) all = {0};
    for (int k = 0; k < n; k++) {
        int count = expr_has_symbols(e[k]) ? expr_symbols(s->p->tmp, e[k], &found) : 0;
        for (int i = 0; i < count; i++) {
            int at = 0; // sorted by name
            while (at < all.n && strcmp(expr_name(all.at[at]), expr_name(found[i])) < 0)
                at++;
            if (at < all.n && all.at[at] == found[i])
                continue;
            vec_push(s->p->tmp, &all, found[i]);
            memmove(all.at + at + 1, all.at + at, (size_t)(all.n - 1 - at) * sizeof *all.at);
            all.at[at] = found[i];
        }
    }
    for (int i = 0; i < all.n; i++) {
        MapEntry *known = map_at_id(&s->known, expr_id(all.at[i]));
        const MapEntry *made = map_find_id(&s->binding, expr_id(all.at[i]));
        if (!known->i && made)
            vec_push(s->p->tmp, s->out, (int)made->i - 1);
        known->i = 1;
    }
}

static void need_symbols_of(Symbols *s, const Value *v) {
    if (v->kind == VAL_sym)
        need_symbols(s, &v->sym, 1);
    if (v->kind == VAL_list || v->kind == VAL_tuple)
        for (int i = 0; i < v->n; i++)
            need_symbols_of(s, &v->at[i]);
    if (v->kind != VAL_tensor)
        return;
    const TensorMeta *m = v->tensor;
    const Expr **e = ARENA_ARRAY(s->p->tmp, 2 * m->ndim + 1, const Expr *);
    int n = 0;
    for (int i = 0; i < m->ndim; i++)
        e[n++] = m->size[i];
    for (int i = 0; i < m->ndim; i++)
        e[n++] = m->stride[i];
    if (m->offset)
        e[n++] = m->offset;
    need_symbols(s, e, n);
}

// Sizes that bind a symbol come first; symbols that shapes of kept values and tangents need are
// kept as well.
static void settle_sizes(Part *p, Kept *kept) {
    PartList first = {0}, derived = {0};
    Symbols s = {.p = p, .binding.arena = p->tmp, .known.arena = p->tmp, .out = &first};
    for (int i = 0; i < p->n; i++) {
        const Expr *e = binds(p->at[i]);
        if (e && !map_find_id(&s.binding, expr_id(e)))
            map_at_id(&s.binding, expr_id(e))->i = i + 1;
    }
    for (int k = 0; k < kept->sizes.n; k++) {
        const Expr *e = binds(p->at[kept->sizes.at[k]]);
        vec_push(p->tmp, e ? &first : &derived, kept->sizes.at[k]);
        if (e)
            map_at_id(&s.known, expr_id(e))->i = 1;
    }
    for (int k = 0; k < derived.n; k++)
        need_symbols_of(&s, &p->at[derived.at[k]]->val);
    for (int k = 0; k < kept->tensors.n; k++)
        need_symbols_of(&s, &p->at[kept->tensors.at[k]]->val);
    for (int i = 0; i < p->n; i++)
        if (part_is_tangent(p->at[i]))
            need_symbols_of(&s, &p->at[i]->val);
    kept->sizes.n = 0;
    add_list(p, &kept->sizes, first.at, first.n);
    add_list(p, &kept->sizes, derived.at, derived.n);
}

// What backward really uses of the saved nodes, in the order of forward's outputs.
static Kept settle_kept(Part *p, const PartList *saved) {
    Kept all = {0}, kept = {0};
    Half h = half_new(p, true);
    for (int k = 0; k < saved->n; k++) {
        int i = saved->at[k];
        vec_push(p->tmp, part_is_sym(p->at[i]) ? &all.sizes : &all.tensors, i);
        add_input(&h, i);
    }
    add_backward_inputs(&h);
    add_list(p, &h.outputs, p->bwd_out, p->n_bwd_out);
    extract(&h);
    keep_used(&h, &all.tensors);
    keep_used(&h, &all.sizes);
    settle_sizes(p, &all);
    // Values without a version check stand behind those with one.
    for (int unchecked = 0; unchecked < 2; unchecked++)
        for (int k = 0; k < all.tensors.n; k++) {
            int i = all.tensors.at[k];
            if (((p->at[i]->flags & NODE_no_version_check) != 0) == unchecked)
                vec_push(p->tmp, &kept.tensors, i);
        }
    kept.sizes = all.sizes;
    return kept;
}

// ---- the order of backward

typedef struct Order {
    Half *h;
    bool *done; // (n + 1): there already; n is the output
    PartList out, stack, found;
} Order;

static int by_place(const void *a, const void *b) {
    const int *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

// A node and what it needs of the others, in graph order.
static void insert(Order *o, int node) {
    Part *p = o->h->p;
    o->found.n = 0;
    vec_push(p->tmp, &o->stack, node);
    while (o->stack.n) {
        int i = vec_pop(&o->stack);
        if (i < 0 || o->done[i] || (i < p->n && o->h->is_input[i]))
            continue;
        o->done[i] = true;
        vec_push(p->tmp, &o->found, i);
        bool output = i == p->n;
        int n = output ? o->h->outputs.n : p->inputs_at[i + 1] - p->inputs_at[i];
        for (int k = 0; k < n; k++)
            vec_push(p->tmp, &o->stack,
                     output ? part_output(p, o->h->outputs.at[k], o->h->valid)
                            : p->inputs[p->inputs_at[i] + k]);
    }
    if (o->found.n > 1)
        qsort(o->found.at, (size_t)o->found.n, sizeof *o->found.at, by_place);
    for (int k = 0; k < o->found.n; k++)
        if (o->found.at[k] < p->n)
            vec_push(p->tmp, &o->out, o->found.at[k]);
}

// The first node of backward that uses a tangent; n: the output does; -1: none does.
static int first_with_tangent(const Half *h) {
    const Part *p = h->p;
    int first = -1;
    for (int k = 0; k < h->outputs.n; k++) {
        int x = part_output(p, h->outputs.at[k], h->valid);
        if (x >= 0 && part_is_tangent(p->at[x]))
            first = p->n;
    }
    for (int i = 0; i < p->n; i++)
        for (int k = p->users_at[i]; part_is_tangent(p->at[i]) && k < p->users_at[i + 1]; k++) {
            int u = p->users[k];
            if (u + 1 < p->n && h->live[u] && !h->is_input[u] && (first < 0 || u < first))
                first = u;
        }
    return first;
}

// As the autograd engine would run it: from the first use of a tangent on, node by node, each right
// behind what it needs of the recomputed ones.
static void reorder_backward(Half *h) {
    Part *p = h->p;
    int first = first_with_tangent(h);
    if (first < 0)
        return;
    Order o = {.h = h, .done = ARENA_ARRAY(p->tmp, p->n + 1, bool)};
    for (int k = 0; k < h->order.n; k++)
        if (h->order.at[k] < first && node_is(p->at[h->order.at[k]], OP_aten_copy__default))
            insert(&o, h->order.at[k]);
    for (int k = 0; k < h->order.n; k++)
        if (h->order.at[k] >= first)
            insert(&o, h->order.at[k]);
    insert(&o, p->n);
    h->order = o.out;
}

// ---- making graphs

typedef struct Maker {
    const Half *h;
    Graph *to;
    Arena *tmp;   // of copied arguments
    Node **made;  // (n)
    Node **map;   // (ids) what the inputs of the node at hand became
    Map children; // nested graph of the joint graph -> the copy
    Origins *origins;
} Maker;

static void point_input(Node *input, void *ctx) {
    Maker *m = ctx;
    m->map[input->id] = m->made[m->h->p->index[input->id]];
}

static Graph *child(Maker *m, Graph *from) {
    const Graph *g = m->h->p->g;
    Graph *known = map_get_id(&m->children, (uint64_t)(uintptr_t)from);
    for (int i = 0; !known && i < g->children.n; i++) {
        if (g->children.at[i].graph != from)
            continue;
        Arena *a = m->to->arena;
        known = graph_copy(a, from);
        vec_push(a, &m->to->children, (GraphChild){arena_strdup(a, g->children.at[i].name), known});
        map_put_id(&m->children, (uint64_t)(uintptr_t)from, known);
    }
    return known ? known : from;
}

static void point_graphs(Maker *m, Value *v) {
    if (v->kind == VAL_graph)
        v->graph = child(m, v->graph);
    if (v->kind == VAL_list || v->kind == VAL_tuple || v->kind == VAL_dict)
        for (int i = 0; i < v->n; i++)
            point_graphs(m, &v->at[i]);
}

static Value moved(Maker *m, const Value *v) {
    Value r = value_copy(m->tmp, v, m->map);
    point_graphs(m, &r);
    return r;
}

static void copy_constant(Maker *m, const Node *n) {
    const Graph *g = m->h->p->g;
    Arena *a = m->to->arena;
    if (n->val.kind == VAL_graph)
        child(m, n->val.graph);
    for (int i = 0; i < g->consts.n; i++) {
        const GraphConst *c = &g->consts.at[i];
        if (!strcmp(c->name, n->target))
            vec_push(a, &m->to->consts,
                     (GraphConst){arena_strdup(a, c->name), c->meta ? meta_copy(a, c->meta) : NULL,
                                  c->tensor});
    }
}

static void finish_node(Maker *m, Node *made, int i) {
    const Part *p = m->h->p;
    const Node *n = p->at[i];
    Value own = made->val; // of a nested graph: the copy
    node_copy_meta(made, n);
    if (own.kind == VAL_graph)
        made->val = own;
    made->flags = p->flags[i];
    made->type = n->type ? arena_strdup(m->to->arena, n->type) : NULL;
    m->made[i] = made;
}

static void make_node(Maker *m, int i) {
    const Node *n = m->h->p->at[i];
    ArenaMark mark = arena_mark(m->tmp);
    Node *made;
    if (n->op == FX_get_attr) {
        copy_constant(m, n);
        made = graph_get_attr(m->to, n->target, n->name);
    } else {
        node_each_input(n, point_input, m);
        Value *args = ARENA_ARRAY(m->tmp, n->n_args + 1, Value);
        Kwarg *kwargs = ARENA_ARRAY(m->tmp, n->n_kwargs + 1, Kwarg);
        for (int k = 0; k < n->n_args; k++)
            args[k] = moved(m, &n->args[k]);
        for (int k = 0; k < n->n_kwargs; k++)
            kwargs[k] = (Kwarg){n->kwargs[k].name, moved(m, &n->kwargs[k].value)};
        made = n->def ? graph_call(m->to, n->def, n->name, args, n->n_args, kwargs, n->n_kwargs)
                      : graph_node(m->to, n->op, n->target, n->name, args, n->n_args, kwargs,
                                   n->n_kwargs);
    }
    finish_node(m, made, i);
    arena_rewind(m->tmp, mark);
}

// Items of tuples move up to the op that makes them.
static void raise_items(Arena *tmp, Graph *g) {
    VEC(Node *) items = {0};
    GRAPH_EACH (g, n)
        if (node_is_item(n))
            vec_push(tmp, &items, n);
    for (int k = items.n - 1; k >= 0; k--)
        node_move_before(items.at[k], items.at[k]->args[0].node->next);
}

static bool add_outputs(Maker *m, const Value *literals) {
    const Half *h = m->h;
    Value tuple = val_list(m->tmp, VAL_tuple, h->outputs.n);
    for (int k = 0; k < h->outputs.n; k++) {
        int i = h->outputs.at[k], x = part_output(h->p, i, h->valid);
        if (i >= 0 && x < 0) {
            diag_fail(h->p->rq->diag,
                      "'%s' is an output of the %s graph, but cannot be computed "
                      "there",
                      h->p->at[i]->name, h->backward ? "backward" : "forward");
            return false;
        }
        tuple.at[k] = x >= 0 ? val_node(m->made[x]) : literals[k];
    }
    graph_output(m->to, tuple);
    return true;
}

// Merged nodes are the same as the one that stands for them.
static Origins *trace_back(const Maker *m) {
    const Part *p = m->h->p;
    Origins *o = origins_new(m->to->arena);
    for (int i = 0; i < p->n; i++)
        if (m->made[i])
            origins_add(o, m->made[i]->id, p->at[i]->id, LINK_same);
    for (int k = 0; k < p->merged.n; k++) {
        int id = p->merged.at[k];
        if (m->made[p->index[id]])
            origins_add(o, m->made[p->index[id]]->id, id, LINK_same);
    }
    origins_add(o, m->to->last->id, p->at[p->n - 1]->id, LINK_part);
    return o;
}

// Whether it could have been computed again, too.
static bool is_choice(const Node *n) {
    while (node_is_item(n) && n->args[0].kind == VAL_node)
        n = n->args[0].node;
    return n->op != FX_placeholder && !(n->def && n->def->tags & OPT_random);
}

// Planted: backward reads the second of two saved values of one size as the first.
static void mix_up_saved(Maker *m) {
    const Half *h = m->h;
    const Part *p = h->p;
    for (int k = 1; h->backward && k < h->inputs.n; k++) {
        int i = h->inputs.at[k - 1], j = h->inputs.at[k];
        const TensorMeta *a = node_tensor(p->at[i]), *b = node_tensor(p->at[j]);
        bool saved = is_choice(p->at[j]) && is_choice(p->at[i]);
        bool same = saved && a && b && a->dtype == b->dtype && a->ndim == b->ndim;
        for (int d = 0; same && d < a->ndim; d++)
            same = a->size[d] == b->size[d];
        const char *both = arena_printf(p->tmp, "%s %s", p->at[i]->name, p->at[j]->name);
        if (same && fault(p->rq->decisions, FAULT_saved_swapped, both)) {
            m->made[i] = m->made[j];
            return;
        }
    }
}

// literals: what stands for outputs that are no node.
static Graph *make(Half *h, Arena *a, const Value *literals, Origins **origins) {
    Part *p = h->p;
    Arena tmp = {0};
    Maker m = {.h = h,
               .to = graph_new(a, p->g->sym),
               .tmp = &tmp,
               .made = ARENA_ARRAY(p->tmp, p->n, Node *),
               .map = ARENA_ARRAY(p->tmp, p->g->by_id.n + 1, Node *),
               .children.arena = p->tmp};
    graph_reserve(m.to, h->inputs.n + h->order.n + 1);
    m.to->ops = p->g->ops;
    for (int k = 0; k < h->inputs.n; k++) {
        int i = h->inputs.at[k];
        finish_node(&m, graph_placeholder(m.to, p->at[i]->name, p->at[i]->name), i);
    }
    mix_up_saved(&m);
    for (int k = 0; k < h->order.n; k++)
        make_node(&m, h->order.at[k]);
    bool ok = add_outputs(&m, literals);
    arena_free(&tmp);
    if (!ok)
        return NULL;
    raise_items(p->tmp, m.to);
    *origins = trace_back(&m);
    return m.to;
}

// ---- the account of it

static const char *reason(const Part *p, int i, bool recomputed) {
    if (p->pin[i])
        return "pinned";
    if (!recomputed)
        return p->why[i] ? p->why[i] : "on the minimum cut";
    if (p->flags[i] & NODE_must_recompute)
        return "must recompute: marked by checkpoint policy";
    return p->cls[i] & PART_view ? "view op" : "recomputable, behind the minimum cut";
}

static void add_values(const Part *p, const PartList *list, bool recomputed, PartitionResult *out) {
    for (int k = 0; k < list->n; k++) {
        int i = list->at[k];
        const Node *n = p->at[i];
        if (recomputed && (!p->required_fw[i] || n->op != FX_call_function))
            continue;
        SavedValue *v = &out->values[out->n_values++];
        *v = (SavedValue){.node = n->id,
                          .bytes = part_is_sym(n) ? 0 : p->bytes[i],
                          .why = reason(p, i, recomputed),
                          .is_size = part_is_sym(n),
                          .is_input = n->op == FX_placeholder,
                          .recomputed = recomputed,
                          .pinned = p->pin[i] != PIN_none};
        if (!recomputed)
            out->saved_bytes += v->bytes;
    }
}

void part_graphs(Part *p, const PartList *saved, bool reorder, PartitionResult *out) {
    Kept kept = settle_kept(p, saved);
    const Value *literals = p->at[p->n - 1]->args[0].at;
    Half fw = half_new(p, false), bw = half_new(p, true);
    for (int i = 0; i < p->n; i++)
        if (part_is_primal(p->at[i]))
            add_input(&fw, i);
    add_list(p, &fw.outputs, p->fwd_out, p->n_fwd_out);
    add_list(p, &fw.outputs, kept.tensors.at, kept.tensors.n);
    add_list(p, &fw.outputs, kept.sizes.at, kept.sizes.n);
    extract(&fw);
    for (int k = 0; k < kept.sizes.n; k++)
        add_input(&bw, kept.sizes.at[k]);
    for (int k = 0; k < kept.tensors.n; k++)
        add_input(&bw, kept.tensors.at[k]);
    add_backward_inputs(&bw);
    add_list(p, &bw.outputs, p->bwd_out, p->n_bwd_out);
    extract(&bw);
    if (reorder)
        reorder_backward(&bw);
    Graph *forward = make(&fw, p->rq->forward_arena, literals, &out->forward_origins);
    Graph *backward =
        forward ? make(&bw, p->rq->backward_arena, literals + p->n_fwd_out, &out->backward_origins)
                : NULL;
    if (!backward)
        return;
    out->forward = forward;
    out->backward = backward;
    int n = kept.tensors.n + kept.sizes.n, room = n;
    for (int k = 0; k < bw.order.n; k++)
        room += p->required_fw[bw.order.at[k]];
    out->values = ARENA_ARRAY(p->rq->arena, room + 1, SavedValue);
    out->n_saved = n;
    add_values(p, &kept.tensors, false, out);
    add_values(p, &kept.sizes, false, out);
    add_values(p, &bw.order, true, out);
}
