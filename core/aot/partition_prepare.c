// partition_prepare.c: the joint graph as arrays, without dead code and, for the min-cut
// partitioner, without common subexpressions, as fx_graph_cse takes them out
// (torch/_functorch/compile_utils.py).
#include "core/aot/joint.h"
#include "core/aot/partition_impl.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

static const struct {
    const char *packet;
    unsigned cls;
} classes[] = {
#define PART_OP(packet, cls) {packet, cls},
#include "core/aot/partition.def"
#undef PART_OP
};

// ---- what nodes are

static bool is_seed(const Node *n, const char *a, const char *b) {
    return n->op == FX_placeholder && (strstr(n->target, a) || strstr(n->target, b));
}

bool part_is_tangent(const Node *n) {
    return n->op == FX_placeholder && strstr(n->target, "tangents");
}

bool part_is_primal(const Node *n) {
    return n->op == FX_placeholder && !part_is_tangent(n) &&
           !is_seed(n, "bwd_seed", "bwd_base_offset");
}

bool part_is_sym(const Node *n) {
    return n->val.kind == VAL_sym || n->val.kind == VAL_symfloat;
}

static bool writes(const Node *n) {
    return n->op == FX_call_function && n->def && (n->def->tags & OPT_mutates);
}

bool part_must_be_in_forward(const Node *n) {
    if (n->flags & NODE_must_be_in_forward)
        return true;
    return writes(n) && !(n->flags & (NODE_backward | NODE_must_be_in_backward));
}

bool part_must_be_in_backward(const Node *n) {
    if (n->flags & NODE_must_be_in_backward)
        return true;
    return writes(n) && n->flags & NODE_backward && !(n->flags & NODE_must_be_in_forward);
}

int part_packet(const Node *n, char *out, int size) {
    if (n->op != FX_call_function)
        return 0;
    int len;
    if (n->def) {
        len = snprintf(out, (size_t)size, "%s.%s", n->def->ns, n->def->name);
    } else {
        const char *t = str_starts(n->target, "torch.ops.") ? n->target + 10 : n->target;
        const char *dot = strchr(t, '.'), *end = dot ? strchr(dot + 1, '.') : NULL;
        len = snprintf(out, (size_t)size, "%.*s", (int)(end ? end - t : (int)strlen(t)), t);
    }
    return len < size ? len : 0;
}

// Classes by packet. Functions of Python's operator and math modules, and torch.sym_…, work on sizes.
static Map class_table(Arena *a) {
    Map m = {.arena = a};
    for (int i = 0; i < COUNT(classes); i++)
        map_at(&m, classes[i].packet)->i |= classes[i].cls;
    for (int i = 1; i < OP_count; i++) {
        const Op *op = op_at((OpId)i);
        if (op->tags & OPT_pointwise && !strcmp(op->ns, "aten"))
            map_at(&m, arena_printf(a, "aten.%s", op->name))->i |= PART_cheap;
    }
    return m;
}

static unsigned class_of(const Map *table, const Node *n) {
    char packet[128];
    if (!part_packet(n, packet, sizeof packet))
        return 0;
    if (str_starts(packet, "_operator.") || str_starts(packet, "operator.") ||
        str_starts(packet, "math.") || str_starts(packet, "torch.sym_"))
        return PART_cheap;
    return (unsigned)map_get_int(table, packet, 0);
}

bool part_fusible(const Part *p, int a, int b) {
    const Node *to = p->at[b];
    // Anything can be written straight into a concatenation.
    if (to->def && !strcmp(to->def->ns, "aten") && !strcmp(to->def->name, "cat"))
        return true;
    return p->cls[a] & (PART_cheap | PART_random) && p->cls[b] & (PART_cheap | PART_random);
}

// ---- bytes

static int64_t tensor_bytes(const Graph *g, const TensorMeta *m) {
    int64_t n = sym_size_hint(g->sym, meta_numel(g->sym, m), 4096), out;
    // Beyond this nothing can be allocated, and sums must not overflow.
    const int64_t most = (int64_t)1 << 50;
    if (n < 0 || __builtin_mul_overflow(n, (int64_t)dtype_info[m->dtype].bytes, &out) || out > most)
        return most;
    return out;
}

static int64_t value_bytes(const Graph *g, const Value *v) {
    int64_t sum = 0;
    switch (v->kind) {
    case VAL_tensor:
        return tensor_bytes(g, v->tensor);
    case VAL_sym:
    case VAL_symfloat:
        return 1;
    case VAL_list:
    case VAL_tuple:
        for (int i = 0; i < v->n; i++)
            sum += v->at[i].kind == VAL_tensor ? tensor_bytes(g, v->at[i].tensor) : 0;
        return sum;
    default:
        return 0;
    }
}

// ---- common subexpressions

typedef struct Cse {
    Part *p;
    Node **same;   // (ids) the node that stands for it; NULL: dead
    bool *shared;  // (ids) lives in the storage of an output
    Map seen;      // hash key -> Known *
    Buf hash, key; // of the node at hand
    int region;    // writes so far
} Cse;

typedef struct Known {
    Node *n;
    const char *key;
    int region; // of the last equal one
} Known;

// Two texts: `key` tells calls apart; `hash` only what Python's hash of the flat arguments does,
// which takes -1 for -2 and sees neither nesting nor keyword names. The first call of a hash stays
// in the table, so that others of the same hash are not found equal to one another.
static void add_key(Cse *c, const Value *v) {
    char leaf[64];
    switch (v->kind) {
    case VAL_list:
    case VAL_tuple:
    case VAL_dict:
    case VAL_slice:
        buf_printf(&c->key, "%d(", (int)v->kind);
        for (int i = 0; i < v->n; i++)
            add_key(c, &v->at[i]);
        buf_puts(&c->key, ")");
        return;
    case VAL_node:
        snprintf(leaf, sizeof leaf, "%%%d,", c->same[v->node->id]->id);
        break;
    case VAL_int:
        snprintf(leaf, sizeof leaf, "i%lld,", (long long)v->i);
        buf_printf(&c->hash, "i%lld,", v->i == -1 ? -2LL : (long long)v->i);
        buf_puts(&c->key, leaf);
        return;
    case VAL_float: {
        uint64_t bits;
        memcpy(&bits, &v->f, sizeof bits);
        buf_printf(&c->hash, "f%a,", v->f == -1 ? -2.0 : v->f);
        buf_printf(&c->key, "f%llx,", (unsigned long long)bits);
        return;
    }
    case VAL_sym:
        snprintf(leaf, sizeof leaf, "s%u,", expr_id(v->sym));
        break;
    case VAL_graph:
        snprintf(leaf, sizeof leaf, "g%p,", v->graph);
        break;
    case VAL_str:
    case VAL_symfloat:
    case VAL_target:
    case VAL_opaque:
        buf_printf(&c->hash, "%d:%zu:%s,", (int)v->kind, strlen(v->s), v->s);
        buf_printf(&c->key, "%d:%zu:%s,", (int)v->kind, strlen(v->s), v->s);
        return;
    case VAL_complex:
        snprintf(leaf, sizeof leaf, "c%a:%a,", v->c.re, v->c.im);
        break;
    case VAL_none:
    case VAL_bool:
    case VAL_dtype:
    case VAL_device:
    case VAL_layout:
    case VAL_memory_format:
    case VAL_tensor:
    case VAL_ellipsis:
        buf_printf(&c->hash, "%d:", (int)v->kind);
        val_print(&c->hash, v, NULL, NULL);
        buf_printf(&c->key, "%d:", (int)v->kind);
        val_print(&c->key, v, NULL, NULL);
        return;
    }
    buf_puts(&c->hash, leaf);
    buf_puts(&c->key, leaf);
}

static void make_key(Cse *c, const Node *n) {
    buf_truncate(&c->hash, 0);
    buf_truncate(&c->key, 0);
    buf_printf(&c->hash, "%s|", n->target);
    buf_printf(&c->key, "%s|", n->target);
    for (int i = 0; i < n->n_args; i++)
        add_key(c, &n->args[i]);
    buf_puts(&c->hash, "|");
    for (int i = 0; i < n->n_kwargs; i++) {
        buf_printf(&c->key, "|%s=", n->kwargs[i].name);
        add_key(c, &n->kwargs[i].value);
    }
}

static bool may_merge(const Cse *c, const Node *n) {
    static const char *const never[] = {"aten.empty"};
    char packet[128];
    if (n->op != FX_call_function || node_is_impure(n) || c->shared[n->id] ||
        !part_packet(n, packet, sizeof packet))
        return false;
    return str_index(packet, never, COUNT(never)) < 0;
}

// The node that stands for n from now on: n itself, or an earlier one that computes the same.
static Node *merge(Cse *c, Node *n) {
    if (writes(n))
        c->region++;
    if (!may_merge(c, n))
        return n;
    make_key(c, n);
    Known *k = map_get(&c->seen, buf_str(&c->hash));
    if (k && strcmp(k->key, buf_str(&c->key)) != 0)
        return n;
    if (k && k->region == c->region)
        return k->n;
    Arena *a = c->p->tmp;
    if (!k) {
        k = ARENA_NEW(a, Known);
        map_put(&c->seen, arena_strdup(a, buf_str(&c->hash)), k);
    }
    *k = (Known){n, arena_strdup(a, buf_str(&c->key)), c->region};
    return n;
}

// ---- arrays

typedef struct Collect {
    Part *p;
    Node **same;
    int *stamp; // (n) last user that counted it as input
    int user, n;
    int *out; // NULL: only counted
} Collect;

static void collect_input(Node *input, void *ctx) {
    Collect *c = ctx;
    int i = c->p->index[input->id];
    if (i < 0 || c->stamp[i] == c->user)
        return;
    c->stamp[i] = c->user;
    if (c->out)
        c->out[c->n] = i;
    c->n++;
}

static void collect_edges(Part *p) {
    Collect c = {.p = p, .stamp = ARENA_ARRAY(p->tmp, p->n, int)};
    p->inputs_at = ARENA_ARRAY(p->tmp, p->n + 1, int);
    p->users_at = ARENA_ARRAY(p->tmp, p->n + 2, int);
    for (int pass = 0; pass < 2; pass++) {
        memset(c.stamp, 0xff, (size_t)p->n * sizeof *c.stamp);
        c.n = 0;
        for (c.user = 0; c.user < p->n; c.user++) {
            p->inputs_at[c.user] = c.n;
            node_each_input(p->at[c.user], collect_input, &c);
        }
        p->inputs_at[p->n] = c.n;
        if (!pass)
            p->inputs = c.out = ARENA_ARRAY(p->tmp, c.n + 1, int);
    }
    p->users = ARENA_ARRAY(p->tmp, c.n + 1, int);
    for (int k = 0; k < c.n; k++)
        p->users_at[p->inputs[k] + 2]++;
    for (int i = 2; i < p->n + 2; i++)
        p->users_at[i] += p->users_at[i - 1];
    for (int i = 0; i < p->n; i++)
        for (int k = p->inputs_at[i]; k < p->inputs_at[i + 1]; k++)
            p->users[p->users_at[p->inputs[k] + 1]++] = i;
}

static void mark_alive(Node *input, void *ctx) {
    bool *alive = ctx;
    alive[input->id] = true;
}

// By id: is it needed at all?
static bool *find_alive(const Part *p, bool all) {
    bool *alive = ARENA_ARRAY(p->tmp, p->g->by_id.n + 1, bool);
    for (const Node *n = p->g->last; n; n = n->prev) {
        if (!all && !alive[n->id] && !node_has_effects(n))
            continue;
        alive[n->id] = true;
        node_each_input(n, mark_alive, alive);
    }
    return alive;
}

static void find_shared(const Part *p, const bool *alive, const int *storage, bool *shared) {
    bool *out = ARENA_ARRAY(p->tmp, p->g->by_id.n + 1, bool);
    GRAPH_EACH (p->g, n)
        for (int i = 0; alive[n->id] && i < n->n_users; i++)
            if (n->users[i]->op == FX_output && node_tensor(n))
                out[storage[n->id]] = true;
    GRAPH_EACH (p->g, n)
        shared[n->id] = node_tensor(n) && out[storage[n->id]];
}

static void fill(Part *p, const int *storage) {
    Map table = class_table(p->tmp);
    p->cls = ARENA_ARRAY(p->tmp, p->n, unsigned);
    p->flags = ARENA_ARRAY(p->tmp, p->n, unsigned);
    p->bytes = ARENA_ARRAY(p->tmp, p->n, int64_t);
    p->storage = ARENA_ARRAY(p->tmp, p->n, int);
    p->pin = ARENA_ARRAY(p->tmp, p->n, unsigned char);
    p->why = ARENA_ARRAY(p->tmp, p->n, const char *);
    for (int i = 0; i < p->n; i++) {
        p->cls[i] = class_of(&table, p->at[i]);
        p->flags[i] = p->at[i]->flags;
        p->bytes[i] = value_bytes(p->g, &p->at[i]->val);
        p->storage[i] = storage[p->at[i]->id];
    }
}

static void find_outputs(Part *p) {
    const Value *list = &p->at[p->n - 1]->args[0];
    p->n_fwd_out = p->rq->n_fwd_outputs;
    p->n_bwd_out = list->n - p->n_fwd_out;
    p->fwd_out = ARENA_ARRAY(p->tmp, list->n + 1, int);
    p->bwd_out = p->fwd_out + p->n_fwd_out;
    for (int i = 0; i < list->n; i++)
        p->fwd_out[i] = list->at[i].kind == VAL_node ? p->index[list->at[i].node->id] : -1;
}

static bool check(const Part *p) {
    const Node *out = graph_output_node(p->g);
    const Value *list = out && out->n_args ? &out->args[0] : NULL;
    if (!list || (list->kind != VAL_tuple && list->kind != VAL_list)) {
        diag_fail(p->rq->diag, "the joint graph returns no tuple: expected forward's outputs and "
                               "one gradient slot a primal");
        return false;
    }
    if (p->rq->n_fwd_outputs < 0 || p->rq->n_fwd_outputs > list->n) {
        diag_fail(p->rq->diag, "forward has %d outputs, but the joint graph returns %d",
                  p->rq->n_fwd_outputs, list->n);
        return false;
    }
    return true;
}

bool part_prepare(Part *p) {
    bool min_cut = p->rq->partitioner == PARTITION_min_cut;
    int n_ids = p->g->by_id.n + 1;
    if (!check(p))
        return false;
    bool *alive = find_alive(p, !min_cut);
    int *storage = ARENA_ARRAY(p->tmp, n_ids, int);
    GRAPH_EACH (p->g, n)
        storage[n->id] = node_shares_storage(n) ? storage[n->args[0].node->id] : n->id;
    Cse c = {.p = p,
             .same = ARENA_ARRAY(p->tmp, n_ids, Node *),
             .shared = ARENA_ARRAY(p->tmp, n_ids, bool),
             .seen.arena = p->tmp,
             .hash.arena = p->tmp,
             .key.arena = p->tmp};
    find_shared(p, alive, storage, c.shared);
    p->index = ARENA_ARRAY(p->tmp, n_ids, int);
    p->at = ARENA_ARRAY(p->tmp, n_ids, Node *);
    memset(p->index, 0xff, (size_t)n_ids * sizeof *p->index);
    GRAPH_EACH (p->g, n) {
        if (!alive[n->id])
            continue;
        Node *same = min_cut && p->config->cse ? merge(&c, n) : n;
        c.same[n->id] = same;
        if (same == n)
            p->at[p->n++] = n;
        p->index[n->id] = same == n ? p->n - 1 : p->index[same->id];
    }
    collect_edges(p);
    fill(p, storage);
    find_outputs(p);
    return true;
}
