// aot_partition_flow.c: minimum cuts and knapsacks against all subsets, and the partitioner's cut
// on random joint graphs against all sets of kept values, with bans as PyTorch words them.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/aot/partition_flow.h"
#include "core/base/work.h"
#include "core/aot/partition_impl.h"
#include "tests/unit/unit.h"

static unsigned next_random(unsigned *seed, unsigned below) {
    *seed = *seed * 1664525u + 1013904223u;
    return (*seed >> 8) % below;
}

// ---- flow

// Capacity of the edges from outside the set to inside; FLOW_INF if an endless one is among them.
static int64_t cut_value(const Flow *f, unsigned sink_side) {
    int64_t sum = 0;
    for (int i = 0; i < f->edges.n; i++) {
        const FlowEdge *e = &f->edges.at[i];
        if ((sink_side >> e->from & 1) || !(sink_side >> e->to & 1))
            continue;
        if (e->cap == FLOW_INF)
            return FLOW_INF;
        sum += e->cap;
    }
    return sum;
}

START_TEST(cuts_agree_with_all_subsets) {
    unsigned seed = 7;
    int unbounded = 0, ties = 0;
    for (int round = 0; round < 400; round++) {
        Arena a = {0};
        int n = 2 + (int)next_random(&seed, 8), m = (int)next_random(&seed, 24);
        Flow f = {.arena = &a, .n = n};
        for (int i = 0; i < m; i++)
            flow_add(&f, (int)next_random(&seed, (unsigned)n), (int)next_random(&seed, (unsigned)n),
                     next_random(&seed, 8) ? (int64_t)next_random(&seed, 4) : FLOW_INF);
        int64_t best = FLOW_INF;
        unsigned nearest = 0, count = 0;
        for (unsigned t = 0; t < 1u << n; t++) {
            if ((t & 1) || !(t >> (n - 1) & 1))
                continue;
            int64_t v = cut_value(&f, t);
            count = v < best ? 1 : count + (v == best);
            nearest = v < best ? t : v == best ? nearest & t : nearest; // the intersection
            best = v < best ? v : best;
        }
        bool side[16] = {0};
        int64_t got = flow_min_cut(&f, 0, n - 1, side, NULL);
        if (best == FLOW_INF) {
            int path[16];
            ck_assert_int_eq(got, -1);
            ck_assert_int_ge(flow_infinite_path(&f, 0, n - 1, path), 2);
            unbounded++;
        } else {
            ck_assert_int_eq(got, best);
            for (int v = 0; v < n; v++)
                ck_assert_int_eq(side[v], nearest >> v & 1);
            ties += count > 1;
        }
        arena_free(&a);
    }
    ck_assert_int_gt(unbounded, 5);
    ck_assert_int_gt(ties, 50);
}
END_TEST

static bool stop_at_once(void *ctx, const char *what, double done) {
    (void)what;
    ck_assert(done < 0); // nobody knows how many phases there will be
    ++*(int *)ctx;
    return false;
}

START_TEST(a_long_search_is_stopped) {
    enum { LONG = 40000 };
    Arena a = {0};
    Diag d = {.arena = &a};
    Flow f = {.arena = &a, .n = LONG};
    bool *side = ARENA_ARRAY(&a, LONG, bool);
    int asked = 0;
    for (int i = 0; i + 1 < LONG; i++)
        flow_add(&f, i, i + 1, 3 + i % 5);
    ck_assert_int_eq(flow_min_cut(&f, 0, LONG - 1, side, &d), 3);
    work_watch(stop_at_once, &asked);
    ck_assert_int_eq(flow_min_cut(&f, 0, LONG - 1, side, &d), FLOW_STOPPED);
    ck_assert_int_eq(asked, 1);
    ck_assert_str_eq(diag_first(&d), "stopped");
    work_watch(NULL, NULL);
    arena_free(&a);
}
END_TEST

START_TEST(the_cut_nearest_the_sink) {
    Arena a = {0};
    Flow f = {.arena = &a, .n = 4};
    bool side[4];
    for (int i = 0; i < 3; i++)
        flow_add(&f, i, i + 1, 5);
    ck_assert_int_eq(flow_min_cut(&f, 0, 3, side, NULL), 5);
    ck_assert(!side[0] && !side[1] && !side[2] && side[3]);
    flow_add(&f, 2, 3, 1); // parallel edges add up
    ck_assert_int_eq(flow_min_cut(&f, 0, 3, side, NULL), 5);
    ck_assert(!side[1] && side[2] && side[3]);
    arena_free(&a);
}
END_TEST

// ---- knapsack

START_TEST(knapsack_agrees_with_all_subsets) {
    unsigned seed = 3;
    for (int round = 0; round < 200; round++) {
        int n = (int)next_random(&seed, 11);
        double memory[12], runtime[12], budget = next_random(&seed, 10000) / 10000.0;
        bool take[12];
        for (int i = 0; i < n; i++) {
            memory[i] = next_random(&seed, 6000) / 10000.0;
            runtime[i] = 1 + next_random(&seed, 1000);
        }
        double best = 0, got = 0, used = 0;
        for (unsigned set = 0; set < 1u << n; set++) {
            double m = 0, r = 0;
            for (int i = 0; i < n; i++)
                if (set >> i & 1) {
                    m += nearbyint(memory[i] * 10000);
                    r += runtime[i];
                }
            if (m <= nearbyint(budget * 10000) && r > best)
                best = r;
        }
        knapsack_dp(memory, runtime, n, budget, take);
        for (int i = 0; i < n; i++) {
            got += take[i] ? runtime[i] : 0;
            used += take[i] ? nearbyint(memory[i] * 10000) : 0;
        }
        ck_assert_double_eq(got, best);
        ck_assert_double_le(used, nearbyint(budget * 10000));
        knapsack_greedy(memory, runtime, n, budget, take);
        used = 0;
        for (int i = 0; i < n; i++)
            used += take[i] ? memory[i] : 0;
        ck_assert_double_le(used, budget + 1e-12);
    }
}
END_TEST

START_TEST(knapsack_rounds_as_torch_does) {
    // 0.00005 * 10000 = 0.5 goes to the even 0: nothing weighs it, so it is always kept.
    double memory[3] = {0.00005, 0.00015, 0.9}, runtime[3] = {1, 1, 5};
    bool take[3];
    knapsack_dp(memory, runtime, 3, 0, take);
    ck_assert(take[0] && !take[1] && !take[2]);
    // A gain that a 32-bit float cannot hold is none.
    double zero[2] = {0, 0}, time[2] = {1e9, 1};
    knapsack_dp(zero, time, 2, 1, take);
    ck_assert(take[0] && !take[1]);
    // Greedy: most time a byte first; what does not fit is passed over.
    double bytes[3] = {0.6, 0.5, 0.4}, flops[3] = {6, 50, 8};
    knapsack_greedy(bytes, flops, 3, 0.9, take);
    ck_assert(!take[0] && take[1] && take[2]);
}
END_TEST

// ---- random joint graphs

enum { FW = 9, BW = 5 };

typedef struct World {
    Graph *g;
    Node *fw[FW], *fw_out; // computed in forward; one of them is what forward returns
    Node *primals[3];
    bool is_static[4];
} World;

static Node *call(Graph *g, OpId op, const Node *x, const Node *y) {
    Value args[2] = {val_node((Node *)(uintptr_t)x), val_none()};
    if (y)
        args[1] = val_node((Node *)(uintptr_t)y);
    const char *name = op_to_name(g->arena, op_at(op));
    return graph_call(g, op_at(op), name, args, y ? 2 : 1, NULL, 0);
}

static Node *square(Graph *g, const char *name, int n) {
    const Expr *size[2] = {sym_int(g->sym, n), sym_int(g->sym, n)};
    Node *p = graph_placeholder(g, name, NULL);
    p->val = val_tensor(meta_contiguous(g->arena, g->sym, DT_f32, 2, size, (Device){DEV_cpu, -1}));
    return p;
}

static Node *random_forward(Graph *g, unsigned *seed, Node *const *pool, int n) {
    Node *x = pool[next_random(seed, (unsigned)n)], *y = pool[next_random(seed, (unsigned)n)];
    switch (next_random(seed, 7)) {
    case 0:
    case 1:
        return call(g, OP_aten_sin_default, x, NULL);
    case 2:
        return call(g, OP_aten_add_Tensor, x, y);
    case 3:
        return call(g, OP_aten_mm_default, x, y);
    case 4:
        return call(g, OP_aten_alias_default, x, NULL);
    case 5:
        return call(g, OP_aten_mul_Tensor, x, y);
    default:
        return call(g, OP_aten_cumsum_default, x, NULL);
    }
}

static World random_world(Arena *a, unsigned *seed) {
    World w = {.g = graph_new(a, sym_new(a))};
    Node *pool[3 + FW + BW];
    int n = 0;
    for (int i = 0; i < 3; i++) {
        w.primals[i] = pool[n++] = square(w.g, arena_printf(a, "primals_%d", i + 1), 4);
        w.is_static[i] = !next_random(seed, 3);
    }
    Node *grad = square(w.g, "tangents_1", 4);
    for (int i = 0; i < FW; i++)
        w.fw[i] = pool[n] = random_forward(w.g, seed, pool, n), n++;
    w.fw_out = w.fw[FW - 1];
    for (int i = 0; i < BW; i++) {
        Node *x = pool[next_random(seed, 3 + FW)];
        grad = call(w.g, next_random(seed, 2) ? OP_aten_mul_Tensor : OP_aten_mm_default, grad, x);
    }
    Value out = val_list(a, VAL_tuple, 4);
    out.at[0] = val_node(w.fw_out);
    out.at[1] = val_node(grad);
    graph_output(w.g, out);
    GRAPH_EACH (w.g, x)
        if (node_is(x, OP_aten_cumsum_default)) {
            Value args[2] = {x->args[0], val_int(0)};
            node_set_args(x, args, 2, NULL, 0);
        }
    graph_dce(w.g);
    Diag d = {.arena = a};
    ck_assert_int_eq(graph_infer(w.g, &d), 0);
    return w;
}

static bool is_cheap(const Node *n) {
    return node_is(n, OP_aten_sin_default) || node_is(n, OP_aten_add_Tensor) ||
           node_is(n, OP_aten_mul_Tensor) || node_is(n, OP_aten_alias_default);
}

static bool is_view(const Node *n) {
    return node_is(n, OP_aten_alias_default);
}

static bool fusible(const Node *x, const Node *y) {
    return is_cheap(x) && is_cheap(y);
}

// What forward needs, by id.
static void mark_forward(const Node *n, bool *fw) {
    fw[n->id] = true;
    for (int i = 0; i < n->n_args; i++)
        if (n->args[i].kind == VAL_node)
            mark_forward(n->args[i].node, fw);
}

// Walks as PyTorch words it: through views, is there a user in backward that does not fuse?
static bool materialized_backward(const Node *n, const bool *fw) {
    for (int i = 0; i < n->n_users; i++) {
        const Node *u = n->users[i];
        if ((!fw[u->id] && !fusible(n, u)) || (is_view(u) && materialized_backward(u, fw)))
            return true;
    }
    return false;
}

// The users in order, then theirs, as a sorted list: where the first is reached over an edge that
// does not fuse.
static int first_unfusible(const Node *used, const bool *fw, int max) {
    bool waiting[64][2] = {0};
    for (int i = 0; i < used->n_users; i++)
        if (fw[used->users[i]->id])
            waiting[used->users[i]->id][1] = true;
    for (int id = 0; id < 64; id++)
        for (int fuses = 0; fuses < 2; fuses++) {
            if (!waiting[id][fuses])
                continue;
            if (!fuses)
                return id;
            const Node *n = graph_by_id(used->graph, id);
            for (int i = 0; i < n->n_users; i++)
                if (fw[n->users[i]->id] && n->users[i]->id <= max)
                    waiting[n->users[i]->id][fusible(n, n->users[i])] = true;
        }
    return max;
}

static void find_bans(const World *w, const bool *fw, bool *banned) {
    for (int i = 0; i < 3; i++)
        banned[w->primals[i]->id] = true;
    for (int i = 0; i < FW; i++) {
        const Node *n = w->fw[i];
        if (fw[n->id] && !is_view(n))
            banned[n->id] = !is_cheap(n) || materialized_backward(n, fw);
    }
    GRAPH_EACH (w->g, n) {
        int max = -1;
        for (int i = 0; i < n->n_users; i++)
            if (fw[n->users[i]->id] && n->users[i]->id > max)
                max = n->users[i]->id;
        if (!fw[n->id] || max < 0)
            continue;
        int first = first_unfusible(n, fw, max);
        for (int i = 0; i < n->n_users; i++) {
            const Node *u = n->users[i];
            if (fw[u->id] && u->id > first && fusible(n, u) && !is_view(u))
                banned[u->id] = true;
        }
    }
}

static int distance(const Node *n, const bool *fw) {
    if (n->op == FX_output)
        return 1000;
    if (!fw[n->id])
        return 0;
    int d = 1000;
    for (int i = 0; i < n->n_users; i++) {
        int x = distance(n->users[i], fw) + 1;
        d = x < d ? x : d;
    }
    return d;
}

static int64_t price(const World *w, const Node *n, const bool *fw) {
    bool stored = n->op == FX_placeholder;
    for (int i = 0; i < n->n_users; i++)
        stored = stored || !fusible(n, n->users[i]);
    for (int i = 0; i < 3; i++)
        if (w->primals[i] == n && w->is_static[i])
            return 0;
    int far = distance(n, fw);
    far = far > 100 ? 100 : far < 1 ? 1 : far;
    return (int64_t)(64 * pow(1.1, far)) * (stored ? 1 : 2);
}

typedef struct Trial {
    const World *w;
    const bool *fw, *banned;
    unsigned kept, again; // by place in World: primals, then fw
    bool possible;
} Trial;

static int place(const World *w, const Node *n) {
    for (int i = 0; i < 3 + FW; i++)
        if ((i < 3 ? w->primals[i] : w->fw[i - 3]) == n)
            return i;
    return -1;
}

static void need(Trial *t, const Node *n) {
    int at = place(t->w, n);
    if (t->kept >> at & 1 || t->again >> at & 1)
        return;
    t->again |= 1u << at;
    t->possible = t->possible && !(t->banned[n->id] && t->fw[n->id]);
    for (int i = 0; i < n->n_args; i++)
        if (n->args[i].kind == VAL_node)
            need(t, n->args[i].node);
}

// What backward takes from forward's half, given what is kept.
static Trial try_kept(const World *w, const bool *fw, const bool *banned, unsigned kept) {
    Trial t = {.w = w, .fw = fw, .banned = banned, .kept = kept, .possible = true};
    const Node *out = graph_output_node(w->g);
    for (const Node *n = w->fw[FW - 1]->next; n != out; n = n->next)
        for (int i = 0; i < n->n_args; i++)
            if (n->args[i].kind == VAL_node && place(w, n->args[i].node) >= 0)
                need(&t, n->args[i].node);
    return t;
}

START_TEST(partition_agrees_with_all_sets) {
    unsigned seed = 11;
    int recomputed = 0;
    for (int round = 0; round < 250; round++) {
        Arena a = {0};
        World w = random_world(&a, &seed);
        bool fw[64] = {0}, banned[64] = {0};
        mark_forward(w.fw_out, fw);
        for (int i = 0; i < 3; i++)
            fw[w.primals[i]->id] = true;
        find_bans(&w, fw, banned);
        int64_t best = INT64_MAX;
        unsigned least = 0;
        for (unsigned kept = 0; kept < 1u << (3 + FW); kept++) {
            Trial t = try_kept(&w, fw, banned, kept);
            int64_t cost = 0;
            for (int i = 0; i < 3 + FW; i++)
                if (kept >> i & 1)
                    cost += price(&w, i < 3 ? w.primals[i] : w.fw[i - 3], fw);
            if (!t.possible || cost > best)
                continue;
            least = cost < best ? t.again : least & t.again;
            best = cost;
        }
        Diag d = {.arena = &a};
        PartitionConfig config = partition_config_default;
        config.cse = false;
        PartitionRequest r = {.joint = w.g,
                              .n_fwd_outputs = 1,
                              .is_static = w.is_static,
                              .partitioner = PARTITION_min_cut,
                              .config = &config,
                              .forward_arena = &a,
                              .backward_arena = &a,
                              .arena = &a,
                              .diag = &d};
        PartitionResult out = aot_partition(&r);
        ck_assert_msg(out.backward != NULL, "%s", diag_first(&d));
        unsigned kept = 0, again = 0;
        int64_t cost = 0;
        for (int k = 0; k < out.n_values; k++) {
            const Node *n = graph_by_id(w.g, out.values[k].node);
            unsigned bit = 1u << place(&w, n);
            if (out.values[k].recomputed && !fw[n->id])
                continue; // not of forward at all
            *(out.values[k].recomputed ? &again : &kept) |= bit;
            cost += out.values[k].recomputed ? 0 : price(&w, n, fw);
        }
        ck_assert_int_eq(cost, best);
        ck_assert(try_kept(&w, fw, banned, kept).possible);
        // Of equal ones the one nearest the sink: what it recomputes, every other one recomputes.
        ck_assert_uint_eq(again & ~least, 0);
        recomputed += again != 0;
        arena_free(&a);
    }
    ck_assert_int_gt(recomputed, 20);
}
END_TEST

Suite *suite_aot_partition_flow(void) {
    const TTest *const tests[] = {cuts_agree_with_all_subsets,   a_long_search_is_stopped,
                                  the_cut_nearest_the_sink,      knapsack_agrees_with_all_subsets,
                                  knapsack_rounds_as_torch_does, partition_agrees_with_all_sets};
    return unit_suite("aot_partition_flow", tests, COUNT(tests));
}
