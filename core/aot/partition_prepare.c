// partition_prepare.c: the joint graph as arrays, without dead code and, for the min-cut
// partitioner, without common subexpressions, as fx_graph_cse takes them out
// (torch/_functorch/compile_utils.py).
#include "core/aot/joint.h"
#include "core/aot/partition_impl.h"
#include "core/record/fault.h"

#include <assert.h>
#include <math.h>
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

static unsigned class_of_packet(const char *packet) {
    unsigned cls = 0;
    for (int i = 0; i < COUNT(classes); i++)
        cls |= strcmp(packet, classes[i].packet) ? 0 : classes[i].cls;
    return cls;
}

// Functions of Python's operator and math modules, and torch.sym_…, work on sizes.
static unsigned find_class(const Node *n) {
    char packet[128];
    const Op *overloads[32];
    if (!part_packet(n, packet, sizeof packet))
        return 0;
    if (str_starts(packet, "_operator.") || str_starts(packet, "operator.") ||
        str_starts(packet, "math.") || str_starts(packet, "torch.sym_"))
        return PART_cheap;
    unsigned cls = class_of_packet(packet);
    if (!n->def || strcmp(n->def->ns, "aten") != 0)
        return cls;
    int k = op_packet("aten", n->def->name, overloads, COUNT(overloads));
    for (int i = 0; i < k && i < COUNT(overloads); i++)
        cls |= overloads[i]->tags & OPT_pointwise ? PART_cheap : 0;
    return cls;
}

bool part_is_random(const Part *p, int i) {
    const Node *n = p->at[i];
    return p->cls[i] & PART_random ||
           (n->op == FX_call_function && n->def && n->def->tags & OPT_random);
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
    Node **same;  // (ids) the node that stands for it; NULL: dead
    bool *shared; // (ids) lives in the storage of an output
    Map seen;     // hash -> Known *
    int region;   // writes so far
} Cse;

typedef struct Known {
    Node *n;
    int region; // of the last equal one
} Known;

static bool has_items(const Value *v) {
    return v->kind == VAL_list || v->kind == VAL_tuple || v->kind == VAL_dict ||
           v->kind == VAL_slice;
}

// Python's hash of the flat arguments, as far as it takes different ones for equal: -1 for -2, and
// it sees neither nesting nor names of keywords. Of the calls of one hash only the first is kept in
// the table, so that the others are not found equal to one another.
static uint64_t flat_hash(const Cse *c, uint64_t h, const Value *v) {
    if (has_items(v)) {
        for (int i = 0; i < v->n; i++)
            h = flat_hash(c, h, &v->at[i]);
        return h;
    }
    h = hash_mix(h, v->kind);
    double f = v->kind == VAL_float ? v->f == -1 ? -2 : v->f : 0;
    switch (v->kind) {
    case VAL_node:
        return hash_mix(h, (uint64_t)c->same[v->node->id]->id);
    case VAL_bool:
        return hash_mix(h, v->b);
    case VAL_int:
        return hash_mix(h, (uint64_t)(v->i == -1 ? -2 : v->i));
    case VAL_float:
        return hash_mix(h, hash_bytes(&f, sizeof f));
    case VAL_sym:
        return hash_mix(h, expr_id(v->sym));
    case VAL_str:
    case VAL_symfloat:
    case VAL_target:
    case VAL_opaque:
        return hash_mix(h, hash_text(v->s));
    case VAL_dtype:
        return hash_mix(h, v->dtype);
    default:
        return h;
    }
}

static uint64_t call_hash(const Cse *c, const Node *n) {
    uint64_t h = n->def ? (uint64_t)n->def->id : 0;
    if (!h)
        h = hash_text(n->target);
    for (int i = 0; i < n->n_args; i++)
        h = flat_hash(c, h, &n->args[i]);
    h = hash_mix(h, 0x6b77);
    for (int i = 0; i < n->n_kwargs; i++)
        h = flat_hash(c, h, &n->kwargs[i].value);
    return h;
}

static bool same_argument(const Cse *c, const Value *a, const Value *b) {
    if (a->kind != b->kind)
        return false;
    if (a->kind == VAL_node)
        return c->same[a->node->id] == c->same[b->node->id];
    if (!has_items(a)) // two NaNs are two objects in Python, not the same
        return val_equal(a, b) && !(a->kind == VAL_float && isnan(a->f));
    bool same = a->n == b->n;
    for (int i = 0; same && i < a->n; i++)
        same = same_argument(c, &a->at[i], &b->at[i]);
    return same;
}

static bool same_call(const Cse *c, const Node *a, const Node *b) {
    bool same = a->def == b->def && !strcmp(a->target, b->target) && a->n_args == b->n_args &&
                a->n_kwargs == b->n_kwargs;
    for (int i = 0; same && i < a->n_args; i++)
        same = same_argument(c, &a->args[i], &b->args[i]);
    for (int i = 0; same && i < a->n_kwargs; i++)
        same = !strcmp(a->kwargs[i].name, b->kwargs[i].name) &&
               same_argument(c, &a->kwargs[i].value, &b->kwargs[i].value);
    return same;
}

// Memory that nothing was written to is never the same.
static bool may_merge(const Cse *c, const Node *n) {
    bool draws = n->def && n->def->tags & OPT_random &&
                 fault(c->p->rq->decisions, FAULT_cse_of_random, n->name);
    return n->op == FX_call_function && (draws || !node_is_impure(n)) && !c->shared[n->id] &&
           !(n->def && !strcmp(n->def->ns, "aten") && !strcmp(n->def->name, "empty"));
}

// The node that stands for n from now on: n itself, or an earlier one that computes the same.
static Node *merge(Cse *c, Node *n) {
    if (writes(n))
        c->region++;
    if (!may_merge(c, n))
        return n;
    MapEntry *e = map_at_id(&c->seen, call_hash(c, n));
    Known *k = e->ptr;
    if (k && !same_call(c, k->n, n))
        return n;
    if (k && k->region == c->region)
        return k->n;
    if (!k)
        e->ptr = k = ARENA_NEW(c->p->tmp, Known);
    *k = (Known){n, c->region};
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
    // By op, plus one once it is known.
    unsigned *of_op = ARENA_ARRAY(p->tmp, OP_count, unsigned);
    p->cls = ARENA_ARRAY(p->tmp, p->n, unsigned);
    p->flags = ARENA_ARRAY(p->tmp, p->n, unsigned);
    p->bytes = ARENA_ARRAY(p->tmp, p->n, int64_t);
    p->storage = ARENA_ARRAY(p->tmp, p->n, int);
    p->pin = ARENA_ARRAY(p->tmp, p->n, unsigned char);
    p->refused = ARENA_ARRAY(p->tmp, p->n, bool);
    p->why = ARENA_ARRAY(p->tmp, p->n, const char *);
    for (int i = 0; i < p->n; i++) {
        const Op *op = p->at[i]->def;
        unsigned own = 0, *cls = op && op->id != OP_none ? &of_op[op->id] : &own;
        if (!*cls)
            *cls = find_class(p->at[i]) + 1;
        p->cls[i] = *cls - 1;
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
    int *storage = graph_storages(p->tmp, p->g);
    Cse c = {.p = p,
             .same = ARENA_ARRAY(p->tmp, n_ids, Node *),
             .shared = ARENA_ARRAY(p->tmp, n_ids, bool),
             .seen.arena = p->tmp};
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
        else
            vec_push(p->tmp, &p->merged, n->id);
        p->index[n->id] = same == n ? p->n - 1 : p->index[same->id];
    }
    collect_edges(p);
    fill(p, storage);
    find_outputs(p);
    return true;
}
