// partition_cut.c: which values to keep: a minimum cut of a graph of bytes. A node X of the joint
// graph is an edge X_in -> X_out as wide as its value; users hang on X_out by endless edges. The
// source feeds what must not be computed again, the sink is what backward computes. What the cut
// goes through is kept.
#include "core/aot/partition_flow.h"
#include "core/aot/partition_impl.h"
#include "core/base/work.h"

#include <math.h>
#include <string.h>

typedef struct Cut {
    Part *p;
    const CutOptions *options;
    const bool *dont_ban;        // (n), or NULL
    bool *materialized_backward; // (n)
    bool *banned;                // (n)
    PartList *list;              // in order of banning
    Flow flow;
    int source, sink;
} Cut;

static int in_of(int i) {
    return 2 * i;
}
static int out_of(int i) {
    return 2 * i + 1;
}

static bool is_collective(const Node *n) {
    return n->op == FX_call_function && str_starts(n->target, "torch.ops._c10d_functional.");
}

static bool ban(Cut *c, int i, const char *why) {
    Part *p = c->p;
    if (p->cls[i] & PART_view || (c->dont_ban && c->dont_ban[i] && !is_collective(p->at[i])) ||
        p->flags[i] & NODE_must_recompute || p->pin[i] == PIN_recompute ||
        p->at[i]->val.kind == VAL_symfloat)
        return false;
    if (!c->banned[i]) {
        c->banned[i] = true;
        vec_push(p->tmp, c->list, i);
        p->why[i] = why;
    }
    flow_add(&c->flow, c->source, in_of(i), FLOW_INF);
    return true;
}

// ---- whether a node may be computed again

// Is there a user in backward, behind views at most, that does not fuse with it? Then backward
// would have to store it in any case.
static void find_materialized_backward(Cut *c) {
    const Part *p = c->p;
    for (int i = p->n - 1; i >= 0; i--)
        for (int k = p->users_at[i]; k < p->users_at[i + 1] && !c->materialized_backward[i]; k++) {
            int u = p->users[k];
            c->materialized_backward[i] = (!p->required_fw[u] && !part_fusible(p, i, u)) ||
                                          (p->cls[u] & PART_view && c->materialized_backward[u]);
        }
}

static bool is_reduction(const Part *p, int i) {
    const Node *n = p->at[i];
    int64_t read = 0;
    for (int k = 0; k < n->n_args; k++)
        if (n->args[k].kind == VAL_node)
            read += p->bytes[p->index[n->args[k].node->id]];
    return p->bytes[i] * 4 < read;
}

// Why it must not be computed again; NULL: it may. In the order in which PyTorch asks.
static const char *reason_to_ban(const Cut *c, int i) {
    const Part *p = c->p;
    const Node *n = p->at[i];
    if (n->op != FX_call_function || node_is_item(n))
        return NULL;
    if (p->flags[i] & NODE_must_save)
        return "marked MUST_SAVE";
    if ((p->config->recompute_views && p->cls[i] & PART_view) ||
        node_is(n, OP_aten_lift_fresh_copy_default) || node_is(n, OP_aten_lift_fresh_default))
        return NULL;
    if (c->options->not_in_allowlist) {
        if (!(p->cls[i] & PART_cheap))
            return "not in recomputable ops";
    } else if (part_is_random(p, i)) {
        return "random op";
    } else if (p->cls[i] & PART_heavy) {
        return "compute intensive op";
    }
    if (c->options->materialized_backward && !(p->cls[i] & PART_view) &&
        c->materialized_backward[i])
        return "materialized in backward";
    return c->options->reductions && is_reduction(p, i) ? "reduction op" : NULL;
}

// ---- what it costs to keep a node

static bool is_materialized(const Part *p, int i) {
    if (p->at[i]->op == FX_placeholder)
        return true;
    for (int k = p->users_at[i]; k < p->users_at[i + 1]; k++)
        if (!part_fusible(p, i, p->users[k]))
            return true;
    return false;
}

static int64_t weight(const Part *p, int i, int primal) {
    const Node *n = p->at[i];
    if (n->val.kind == VAL_sym)
        return 1;
    if (n->val.kind == VAL_symfloat)
        return 4;
    if (n->val.kind != VAL_tensor)
        return FLOW_INF;
    if (p->config->treat_parameters_as_free_to_save && primal >= 0 && p->is_static &&
        p->is_static[primal])
        return 0;
    if (p->config->recompute_views && p->cls[i] & PART_view)
        return FLOW_INF;
    // Nodes nearer to backward come cheaper.
    int far = p->dist_from_bw[i] > 100 ? 100 : p->dist_from_bw[i] < 1 ? 1 : p->dist_from_bw[i];
    double bytes = floor((double)p->bytes[i] * pow(1.1, far));
    const double most = ldexp(1, 61) / (p->n + 1);
    bytes = is_materialized(p, i) ? bytes : bytes * 2;
    return (int64_t)(bytes < most ? bytes : most);
}

static void add_node(Cut *c, int i, int primal) {
    Part *p = c->p;
    if (p->tangents[i]) {
        flow_add(&c->flow, in_of(i), c->sink, FLOW_INF);
        return;
    }
    if (p->required_bw[i])
        flow_add(&c->flow, out_of(i), c->sink, FLOW_INF);
    if (p->flags[i] & NODE_must_recompute) {
        flow_add(&c->flow, in_of(i), c->sink, FLOW_INF);
        return;
    }
    if (primal >= 0)
        ban(c, i, "primal input");
    const char *why = p->required_fw[i] ? reason_to_ban(c, i) : NULL;
    if (why)
        ban(c, i, why);
    int64_t w = p->pin[i] == PIN_recompute ? FLOW_INF : weight(p, i, primal);
    if (p->pin[i] == PIN_save) {
        flow_add(&c->flow, c->source, in_of(i), FLOW_INF);
        flow_add(&c->flow, out_of(i), c->sink, FLOW_INF);
    }
    flow_add(&c->flow, in_of(i), out_of(i), w);
    for (int k = p->users_at[i]; k < p->users_at[i + 1]; k++)
        flow_add(&c->flow, out_of(i), in_of(p->users[k]), FLOW_INF);
}

// ---- bans that look further

// Of a value used near and far, the far users are not computed again: in between lies a node that
// does not fuse, so that they could not share one kernel. `unfusible[i]` is the place of the first
// node behind i that is reached over an edge that does not fuse; walking i's users in order, as
// PyTorch does, ends there.
static void ban_used_far_apart(Cut *c) {
    Part *p = c->p;
    int *unfusible = ARENA_ARRAY(p->tmp, p->n, int);
    for (int i = p->n - 1; i >= 0; i--) {
        unfusible[i] = PART_FAR;
        for (int k = p->users_at[i]; p->required_fw[i] && k < p->users_at[i + 1]; k++) {
            int u = p->users[k];
            if (!p->required_fw[u])
                continue;
            int at = part_fusible(p, i, u) ? unfusible[u] : p->fw_order[u];
            unfusible[i] = at < unfusible[i] ? at : unfusible[i];
        }
    }
    for (int i = 0; i < p->n; i++) {
        int first = PART_FAR, last = -1;
        for (int k = p->users_at[i]; p->required_fw[i] && k < p->users_at[i + 1]; k++) {
            int u = p->users[k];
            if (!p->required_fw[u])
                continue;
            first = unfusible[u] < first ? unfusible[u] : first;
            last = p->fw_order[u] > last ? p->fw_order[u] : last;
        }
        first = first < last ? first : last;
        for (int k = p->users_at[i]; last >= 0 && k < p->users_at[i + 1]; k++) {
            int u = p->users[k];
            if (p->required_fw[u] && p->fw_order[u] > first && part_fusible(p, i, u) &&
                !c->banned[u])
                ban(c, u, "used far apart");
        }
    }
}

// A heap of nodes by their place in forward.
typedef VEC(int) Heap;

static void heap_push(const Part *p, Heap *h, int i) {
    vec_push(p->tmp, h, i);
    for (int k = h->n - 1; k > 0;) {
        int up = (k - 1) / 2;
        if (p->fw_order[h->at[up]] <= p->fw_order[h->at[k]])
            break;
        int t = h->at[up];
        h->at[up] = h->at[k];
        h->at[k] = t;
        k = up;
    }
}

static int heap_pop(const Part *p, Heap *h) {
    int top = h->at[0], k = 0;
    h->at[0] = h->at[--h->n];
    for (;;) {
        int least = k;
        for (int child = 2 * k + 1; child <= 2 * k + 2 && child < h->n; child++)
            if (p->fw_order[h->at[child]] < p->fw_order[h->at[least]])
                least = child;
        if (least == k)
            return top;
        int t = h->at[least];
        h->at[least] = h->at[k];
        h->at[k] = t;
        k = least;
    }
}

// Chains of fusible ops are cut after a hundred nodes.
static void ban_long_fusible_chains(Cut *c) {
    Part *p = c->p;
    bool *visited = ARENA_ARRAY(p->tmp, p->n, bool);
    Heap heap = {0};
    for (int start = 0; start < p->n; start++) {
        if (!p->required_fw[start])
            continue;
        heap.n = 0;
        heap_push(p, &heap, start);
        while (heap.n) {
            int cur = heap_pop(p, &heap);
            if (visited[cur])
                continue;
            visited[cur] = true;
            if (p->fw_order[cur] > p->fw_order[start] + 100 && !heap.n) {
                ban(c, cur, "end of a long fusible chain");
                break;
            }
            for (int k = p->users_at[cur]; k < p->users_at[cur + 1]; k++) {
                int u = p->users[k];
                if (p->required_fw[u] && part_fusible(p, cur, u) && !c->banned[u])
                    heap_push(p, &heap, u);
            }
        }
    }
}

// ---- the cut

// An endless path: something can neither be kept nor computed again. Pins on it are dropped.
static void explain_conflict(Cut *c) {
    Part *p = c->p;
    int *path = ARENA_ARRAY(p->tmp, 2 * p->n + 2, int);
    int n = flow_infinite_path(&c->flow, c->source, c->sink, path), dropped = 0;
    for (int k = 0; k < n; k++) {
        int i = path[k] / 2;
        if (path[k] >= 2 * p->n || !p->pin[i])
            continue;
        int first = path[1] / 2;
        if (first == i)
            diag_warning(p->rq->diag, (Place){0},
                         "cannot %s '%s': it can neither be saved nor be "
                         "computed in backward",
                         p->pin[i] == PIN_save ? "save" : "recompute", p->at[i]->name);
        else
            diag_warning(p->rq->diag, (Place){0}, "cannot recompute '%s': it needs '%s' (%s)",
                         p->at[i]->name, p->at[first]->name,
                         p->why[first] ? p->why[first] : "not recomputable");
        p->pin[i] = PIN_none;
        p->refused[i] = true;
        dropped++;
    }
    if (dropped)
        return;
    Buf b = {.arena = p->tmp};
    for (int k = 1, last = -1; k + 1 < n; k++) {
        if (path[k] / 2 != last)
            buf_printf(&b, "%s%s", b.len ? " -> " : "", p->at[path[k] / 2]->name);
        last = path[k] / 2;
    }
    diag_fail(p->rq->diag,
              "the joint graph cannot be partitioned: a value is required for backward, "
              "but cannot be saved and cannot be recomputed: %s",
              buf_str(&b));
}

bool part_min_cut(Part *p, const CutOptions *options, const bool *dont_ban, bool *saved,
                  PartList *banned) {
    PartList own = {0};
    Cut c = {.p = p,
             .options = options,
             .dont_ban = dont_ban,
             .materialized_backward = ARENA_ARRAY(p->tmp, p->n, bool),
             .banned = ARENA_ARRAY(p->tmp, p->n, bool),
             .list = banned ? banned : &own,
             .flow = {.arena = p->tmp, .n = 2 * p->n + 2},
             .source = 2 * p->n,
             .sink = 2 * p->n + 1};
    c.list->n = 0;
    memset(p->why, 0, (size_t)p->n * sizeof *p->why);
    if (options->materialized_backward)
        find_materialized_backward(&c);
    WorkPart part = work_enter(NULL, 0, 0.5); // of about three quick passes, and the flow
    for (int i = 0, primal = 0; i + 1 < p->n; i++) {
        add_node(&c, i, part_is_primal(p->at[i]) ? primal++ : -1);
        if (!work_goes_on(p->rq->diag, i, p->n))
            break;
    }
    work_leave(part);
    if (options->used_far_apart)
        ban_used_far_apart(&c);
    if (options->long_fusible_chains)
        ban_long_fusible_chains(&c);
    bool *sink_side = ARENA_ARRAY(p->tmp, c.flow.n, bool);
    part = work_enter(NULL, 0.5, 1);
    int64_t flow = work_stopped()
                       ? FLOW_STOPPED
                       : flow_min_cut(&c.flow, c.source, c.sink, sink_side, p->rq->diag);
    work_leave(part);
    if (flow < 0) {
        if (flow != FLOW_STOPPED)
            explain_conflict(&c);
        return false;
    }
    for (int i = 0; i < p->n; i++)
        saved[i] = i + 1 < p->n && !sink_side[in_of(i)] && sink_side[out_of(i)];
    return true;
}
