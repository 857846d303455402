// alias.c: the two rewrites of a graph whose inputs share memory (alias.h). What the model writes
// is found by a run over inputs that share nothing, as PyTorch finds it.
#include "core/aot/alias.h"

#include <string.h>

#include "core/ops/meta.h"

typedef struct Merge {
    const MergeRequest *r;
    Arena *arena;
    Sym *sym;
    const AotMeta *meta; // of the captured graph, equal inputs being one
    int *at_in_meta;     // by placeholder: its place there
    Node **inputs;       // its placeholders
    int n;
    InputAlias *of;  // by placeholder; what dedupe leaves of them
    bool *dropped;   // by placeholder
    bool *is_view;   // by placeholder: made from a base
    int *base;       // by storage: number of its synthetic base, -1: it has none
    int *order;      // storages with a base
    MergedInputs *out;
} Merge;

static const char *refuse(Merge *m, const char *what) {
    if (!m->out->error)
        m->out->error = what;
    return what;
}

static const TensorMeta *placed(Arena *a, const InputAlias *at, const TensorMeta *meta) {
    if (!meta || !at->offset)
        return meta;
    TensorMeta *own = ARENA_NEW(a, TensorMeta);
    *own = *meta;
    own->offset = at->offset;
    return own;
}

const TensorMeta *alias_meta(Arena *a, const InputAliases *aliases, int input,
                             const TensorMeta *meta) {
    return placed(a, &aliases->of[input], meta);
}

static const TensorMeta *meta_at(Merge *m, int i) {
    return placed(m->arena, &m->of[i], node_tensor(m->inputs[i]));
}

static const AotInput *info(const Merge *m, int i) {
    return &m->meta->inputs[m->at_in_meta[i]];
}

static bool writes_data(const Merge *m, int i) {
    return info(m, i)->mutates_data;
}

static bool wants_grad(const Merge *m, int i) {
    return m->r->requires_grad && m->r->requires_grad[i];
}

// ---- guards

// L['x'] of L_x_; else the input's name.
static const char *source_name(Merge *m, int i) {
    const char *t = m->inputs[i]->target;
    size_t len = strlen(t);
    if (len > 3 && str_starts(t, "L_") && t[len - 1] == '_')
        return arena_printf(m->arena, "L['%.*s']", (int)(len - 3), t + 2);
    return t;
}

static void guard(Merge *m, const char *text) {
    MergedInputs *o = m->out;
    o->guards = arena_grow(m->arena, o->guards, (size_t)o->n_guards, (size_t)o->n_guards + 1,
                           sizeof *o->guards);
    o->guards[o->n_guards++] = text;
}

static void guard_overlap(Merge *m, const int *at, const bool *overlaps, int n) {
    Buf yes = {.arena = m->arena}, no = {.arena = m->arena};
    for (int i = 0; i < n; i++) {
        Buf *to = overlaps[i] ? &yes : &no;
        buf_printf(to, "%s%s", to->len ? ", " : "", source_name(m, at[i]));
    }
    guard(m, arena_printf(m->arena, "check_overlapping(overlapping=[%s], non_overlapping=[%s])",
                          buf_str(&yes), buf_str(&no)));
}

// ---- dedupe_inputs

// AOTAutograd drops duplicates if one of them is written. Else they become leaves of their own on
// the same memory, of which autograd knows nothing. Dynamo would have dropped them anyway.
static void plan_duplicates(Merge *m) {
    bool drop = m->r->dynamo;
    for (int i = 0; i < m->n; i++)
        if (m->of[i].same >= 0)
            drop = drop || info(m, i)->mutates_data || info(m, i)->mutates_metadata;
    for (int i = 0; i < m->n; i++) {
        int first = m->of[i].same;
        m->dropped[i] = first >= 0 && drop;
        m->of[i].detached = m->of[i].detached || (first >= 0 && !drop);
        if (!m->dropped[i])
            continue;
        m->out->n_dropped++;
        guard(m, arena_printf(m->arena, "%s is %s", source_name(m, i), source_name(m, first)));
    }
}

// Without what is dropped.
static const Graph *dedupe(Merge *m) {
    MergedInputs *o = m->out;
    bool any = false;
    for (int i = 0; i < m->n; i++)
        any = any || m->dropped[i];
    if (!any)
        return m->r->graph;
    Graph *g = graph_copy(m->arena, m->r->graph);
    o->deduped_origins = origins_new(m->arena);
    for (int i = 0; i < m->n; i++) {
        if (!m->dropped[i])
            continue;
        Node *gone = graph_by_id(g, m->inputs[i]->id);
        Node *kept = graph_by_id(g, m->inputs[m->of[i].same]->id);
        node_replace_uses(gone, kept);
        node_erase(gone);
        origins_add(o->deduped_origins, kept->id, m->inputs[m->of[i].same]->id, LINK_same);
        origins_add(o->deduped_origins, kept->id, m->inputs[i]->id, LINK_same);
    }
    return g;
}

// ---- synthetic_bases

// Inputs of a storage, in order; how many.
static int members(const Merge *m, int storage, int *at) {
    int n = 0;
    for (int i = 0; i < m->n; i++)
        if (!m->dropped[i] && m->of[i].storage == storage)
            at[n++] = i;
    return n;
}

// Of inputs that autograd knows to be one base and its views: _base is there.
static bool has_base(const Merge *m, int i) {
    const SharedStorage *s = &m->r->aliases->storages[m->of[i].storage];
    return !m->of[i].detached && s->base && s->input != i;
}

static bool are_differentiable(const Merge *m, int a, int b) {
    bool knows_a = has_base(m, a), knows_b = has_base(m, b);
    int root = m->r->aliases->storages[m->of[a].storage].input;
    return (knows_a && knows_b) || (knows_a && b == root) || (knows_b && a == root);
}

static const char *const not_differentiable =
    "AssertionError: aot_autograd() does not yet handle non-differentiable view input mutations.";

static void check_group(Merge *m, const int *at, int n) {
    int based = 0, leaves = 0, root = m->r->aliases->storages[m->of[at[0]].storage].input;
    bool training = m->meta->training;
    for (int i = 0; i + 1 < n; i++) {
        if (training && !are_differentiable(m, at[i], at[i + 1]))
            refuse(m, not_differentiable);
        if (node_tensor(m->inputs[at[i]])->dtype != node_tensor(m->inputs[at[i + 1]])->dtype)
            refuse(m, "AssertionError: aot_autograd() does not yet handle input mutations on views "
                      "with different dtypes.");
    }
    for (int i = 0; i < n; i++) {
        based += has_base(m, at[i]);
        leaves += !has_base(m, at[i]) && at[i] != root;
    }
    if (based && leaves)
        refuse(m, not_differentiable);
}

static void plan_group(Merge *m, int storage, int *at, bool *overlaps) {
    int n = members(m, storage, at), overlapping = 0;
    bool written = false;
    for (int i = 0; i < n; i++)
        written = written || writes_data(m, at[i]);
    if (n < 2 || !written)
        return;
    for (int i = 0; i < n; i++) {
        overlaps[i] = false;
        for (int k = 0; k < n; k++) {
            const TensorMeta *x = meta_at(m, at[i]), *y = meta_at(m, at[k]);
            if (k == i || !alias_may_overlap(m->sym, x, y, false))
                continue;
            overlaps[i] = true;
            if (!alias_may_overlap(m->sym, x, y, true))
                m->out->note = "PyTorch 2.11 takes two of these for apart, though they overlap";
        }
        overlapping += overlaps[i];
    }
    guard_overlap(m, at, overlaps, n);
    if (overlapping < 2)
        return;
    check_group(m, at, n);
    m->order[m->out->n_bases] = storage;
    m->base[storage] = m->out->n_bases++;
    for (int i = 0; i < n; i++)
        m->is_view[at[i]] = true;
}

// Storages in the order of their first inputs.
static void plan_bases(Merge *m) {
    int *at = ARENA_ARRAY(m->arena, m->n + 1, int);
    bool *overlaps = ARENA_ARRAY(m->arena, m->n + 1, bool);
    bool *seen = ARENA_ARRAY(m->arena, m->r->aliases->n_storages + 1, bool);
    bool any = false;
    for (int i = 0; i < m->n; i++)
        any = any || writes_data(m, i);
    for (int i = 0; any && i < m->n; i++) {
        int s = m->of[i].storage;
        if (s < 0 || seen[s] || m->dropped[i])
            continue;
        seen[s] = true;
        plan_group(m, s, at, overlaps);
    }
}

// The base that autograd knows, else a flat tensor over the whole memory.
static const TensorMeta *base_meta(Merge *m, int storage) {
    const SharedStorage *s = &m->r->aliases->storages[storage];
    int *at = ARENA_ARRAY(m->arena, m->n + 1, int), n = members(m, storage, at);
    bool known = false;
    for (int i = 0; i < n; i++)
        known = known || has_base(m, at[i]);
    if (known)
        return s->base;
    const Expr *most = s->base ? alias_extent(m->sym, s->base) : sym_int(m->sym, 0);
    for (int i = 0; i < n; i++) {
        const Expr *e = alias_extent(m->sym, meta_at(m, at[i]));
        most = sym_size_hint(m->sym, e, 0) > sym_size_hint(m->sym, most, 0) ? e : most;
    }
    TensorMeta *flat = ARENA_NEW(m->arena, TensorMeta);
    *flat = *node_tensor(m->inputs[at[0]]);
    flat->ndim = 1;
    flat->size = ARENA_ARRAY(m->arena, 1, const Expr *);
    flat->stride = ARENA_ARRAY(m->arena, 1, const Expr *);
    flat->size[0] = most;
    flat->stride[0] = sym_int(m->sym, 1);
    flat->offset = sym_int(m->sym, 0);
    return flat;
}

static Node *add_base(Merge *m, Graph *g, int storage, Node *before) {
    const SharedStorage *s = &m->r->aliases->storages[storage];
    const char *of = *s->name == '@' ? s->name + 1 : s->name;
    graph_set_insert(g, before);
    const char *name = graph_new_name(g, arena_printf(m->arena, "%s_base", of));
    Node *p = graph_placeholder(g, name, name);
    p->val = val_tensor(base_meta(m, storage));
    return p;
}

static Value expr_list(Arena *a, const Expr *const *e, int n) {
    Value list = val_list(a, VAL_list, n);
    for (int i = 0; i < n; i++)
        list.at[i] = val_sym(e[i]);
    return list;
}

// The input anew from its base, in place of its placeholder.
static Node *add_view(Merge *m, Graph *g, int i, Node *base, Node *before) {
    Node *old = graph_by_id(g, m->inputs[i]->id);
    const TensorMeta *at = meta_at(m, i);
    Value args[4] = {val_node(base), expr_list(m->arena, at->size, at->ndim),
                     expr_list(m->arena, at->stride, at->ndim),
                     val_sym(at->offset ? at->offset : sym_int(m->sym, 0))};
    graph_set_insert(g, before);
    Node *v = graph_call(g, op_at(OP_aten_as_strided_default), "as_strided", args, 4, NULL, 0);
    v->val = val_tensor(at);
    node_replace_uses(old, v);
    node_erase(old);
    return v;
}

// Behind what the graph returns: inputs made here whose metadata the model writes.
static void return_reshaped(Merge *m, Graph *g, Node *const *views) {
    Node *output = graph_output_node(g);
    Value all = output->n_args ? output->args[0] : val_none();
    bool many = all.kind == VAL_tuple || all.kind == VAL_list;
    Value more = val_list(m->arena, VAL_tuple, (many ? all.n : 1) + m->out->n_reshaped);
    int n = 0;
    for (int i = 0; i < (many ? all.n : 1); i++)
        more.at[n++] = many ? all.at[i] : all;
    for (int i = 0; i < m->out->n_reshaped; i++)
        more.at[n++] = val_node(views[m->out->reshaped[i]]);
    node_set_args(output, &more, 1, NULL, 0);
}

static Node *first_call(const Graph *g) {
    Node *n = g->first;
    while (n && n->op == FX_placeholder)
        n = n->next;
    return n;
}

// What is no tensor comes before the rest, and what shares memory stands together.
static void order_rest(Merge *m, Graph *g, Node *before) {
    bool *done = ARENA_ARRAY(m->arena, m->n + 1, bool);
    for (int i = 0; i < m->n; i++) {
        done[i] = m->dropped[i] || m->is_view[i];
        if (done[i] || node_tensor(m->inputs[i]))
            continue;
        done[i] = true;
        node_move_before(graph_by_id(g, m->inputs[i]->id), before);
    }
    for (int i = 0; i < m->n; i++) {
        int storage = m->of[i].storage;
        if (done[i])
            continue;
        for (int k = i; k < m->n; k++)
            if (!done[k] && (k == i || (storage >= 0 && m->of[k].storage == storage))) {
                done[k] = true;
                node_move_before(graph_by_id(g, m->inputs[k]->id), before);
            }
    }
}

static const Graph *merge(Merge *m, const Graph *from) {
    MergedInputs *o = m->out;
    if (!o->n_bases)
        return from;
    Graph *g = graph_copy(m->arena, from);
    Node *first = first_call(g), *anchor = g->first;
    Node **bases = ARENA_ARRAY(m->arena, o->n_bases + 1, Node *);
    Node **views = ARENA_ARRAY(m->arena, m->n + 1, Node *);
    o->origins = origins_new(m->arena);
    for (int b = 0; b < o->n_bases; b++)
        bases[b] = add_base(m, g, m->order[b], anchor);
    for (int i = 0; i < m->n; i++) {
        if (!m->is_view[i])
            continue;
        Node *base = bases[m->base[m->of[i].storage]];
        views[i] = add_view(m, g, i, base, first);
        origins_add(o->origins, base->id, m->inputs[i]->id, LINK_part);
        origins_add(o->origins, views[i]->id, m->inputs[i]->id, LINK_same);
        if (info(m, i)->mutates_metadata)
            o->reshaped[o->n_reshaped++] = i;
    }
    graph_set_insert(g, NULL);
    for (Node *n = g->first; n && n != first; n = n->next)
        if (n->op == FX_call_function) {
            order_rest(m, g, n);
            break;
        }
    if (o->n_reshaped)
        return_reshaped(m, g, views);
    return g;
}

// ---- what the arguments are

static int input_at(const Merge *m, const Node *p) {
    for (int i = 0; i < m->n; i++)
        if (!m->is_view[i] && m->inputs[i]->id == p->id)
            return i;
    return -1;
}

// To the rest of AOTAutograd a base is written, by all of its views or not.
static bool all_written(const Merge *m, int storage) {
    bool all = true;
    for (int i = 0; i < m->n; i++)
        if (m->is_view[i] && m->of[i].storage == storage)
            all = all && writes_data(m, i);
    return all;
}

static void describe(Merge *m) {
    MergedInputs *o = m->out;
    Node **p;
    o->n_args = graph_placeholders(o->graph, &p, m->arena);
    o->args = ARENA_ARRAY(m->arena, o->n_args + 1, MergedArg);
    bool *grad = ARENA_ARRAY(m->arena, o->n_args + 1, bool);
    bool *unhidden = ARENA_ARRAY(m->arena, o->n_args + 1, bool);
    for (int k = 0; k < o->n_args; k++) {
        int storage = k < o->n_bases ? m->order[k] : -1;
        o->args[k] = (MergedArg){-1, storage, node_tensor(p[k])};
        unhidden[k] = storage >= 0 && !all_written(m, storage);
        if (storage < 0)
            o->args[k].input = input_at(m, p[k]);
        if (storage < 0)
            o->arg_of[o->args[k].input] = k;
        for (int i = m->n - 1; i >= 0 && storage >= 0; i--)
            if (m->is_view[i] && m->of[i].storage == storage) {
                o->arg_of[i] = k;
                o->args[k].input = i;
            }
    }
    for (int i = 0; i < m->n; i++) {
        if (m->dropped[i])
            o->arg_of[i] = o->arg_of[m->of[i].same];
        grad[o->arg_of[i]] = grad[o->arg_of[i]] || wants_grad(m, i);
    }
    o->is_view = m->is_view;
    o->requires_grad = m->r->requires_grad ? grad : NULL;
    o->unhidden = unhidden;
}

// What the model does, equal inputs being one.
static bool look_at_model(Merge *m) {
    const MergeRequest *r = m->r;
    Diag quiet = {.arena = r->arena};
    bool *grad = ARENA_ARRAY(r->arena, m->n + 1, bool);
    int n = 0;
    for (int i = 0; i < m->n; i++) {
        m->dropped[i] = m->of[i].same >= 0;
        m->at_in_meta[i] = m->dropped[i] ? m->at_in_meta[m->of[i].same] : n++;
        grad[m->at_in_meta[i]] = grad[m->at_in_meta[i]] || wants_grad(m, i);
    }
    AotRequest request = {
        .graph = dedupe(m),
        .arena = r->arena,
        .diag = &quiet,
        .keep_input_mutations = true,
        .requires_grad = r->requires_grad ? grad : NULL,
    };
    m->meta = graph_check_sizes(r->graph, &quiet) ? aot_find_meta(&request) : NULL;
    return m->meta != NULL;
}

MergedInputs *aot_merge_inputs(const MergeRequest *r) {
    Merge m = {.r = r, .arena = r->arena, .sym = r->graph->sym};
    m.n = graph_placeholders(r->graph, &m.inputs, r->arena);
    m.out = ARENA_NEW(r->arena, MergedInputs);
    m.of = ARENA_ARRAY(r->arena, m.n + 1, InputAlias);
    memcpy(m.of, r->aliases->of, (size_t)m.n * sizeof *m.of);
    m.dropped = ARENA_ARRAY(r->arena, m.n + 1, bool);
    m.is_view = ARENA_ARRAY(r->arena, m.n + 1, bool);
    m.base = ARENA_ARRAY(r->arena, r->aliases->n_storages + 1, int);
    m.order = ARENA_ARRAY(r->arena, r->aliases->n_storages + 1, int);
    m.out->arg_of = ARENA_ARRAY(r->arena, m.n + 1, int);
    m.out->reshaped = ARENA_ARRAY(r->arena, m.n + 1, int);
    m.at_in_meta = ARENA_ARRAY(r->arena, m.n + 1, int);
    for (int i = 0; i < r->aliases->n_storages; i++)
        m.base[i] = -1;
    if (!look_at_model(&m))
        return NULL;
    plan_duplicates(&m);
    m.out->deduped = dedupe(&m);
    plan_bases(&m);
    m.out->graph = m.out->error ? m.out->deduped : merge(&m, m.out->deduped);
    if (m.out->error)
        m.out->n_bases = 0;
    if (m.out->error)
        memset(m.is_view, 0, (size_t)m.n * sizeof *m.is_view);
    describe(&m);
    return m.out;
}
