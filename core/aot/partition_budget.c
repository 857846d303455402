// partition_budget.c: activation_memory_budget: between 0 (keep inputs only) and 1 (the plain cut)
// the partitioner bans less and less from being computed again; if that is not enough, a knapsack
// picks among the costly values those that are worth their bytes.
#include "core/aot/partition_impl.h"

#include <string.h>

static int64_t saved_bytes(const Part *p, const bool *saved) {
    int64_t sum = 0;
    for (int i = 0; i < p->n; i++)
        sum += saved[i] ? p->bytes[i] : 0;
    return sum;
}

static int64_t dim(Sym *sym, const TensorMeta *m, int i) {
    i = i < 0 ? i + m->ndim : i;
    return i >= 0 && i < m->ndim ? sym_size_hint(sym, m->size[i], 4096) : 1;
}

static const TensorMeta *tensor_arg(const Node *n, int i) {
    return i < n->n_args && n->args[i].kind == VAL_node ? node_tensor(n->args[i].node) : NULL;
}

static double product(Sym *sym, const TensorMeta *m, int from, int to) {
    double r = 1;
    for (int i = from; i < to; i++)
        r *= (double)dim(sym, m, i);
    return r;
}

// Rows, columns and inner size of the last two dimensions, times what lies before them.
static double matmul_flops(const Node *n, int first) {
    const TensorMeta *a = tensor_arg(n, first), *b = tensor_arg(n, first + 1);
    if (!a || !b || a->ndim < 2 || b->ndim < 2)
        return 0;
    return 2 * product(n->graph->sym, a, 0, a->ndim) * (double)dim(n->graph->sym, b, -1);
}

static double conv_flops(const Node *n) {
    const TensorMeta *x = tensor_arg(n, 0), *w = tensor_arg(n, 1), *out = node_tensor(n);
    bool transposed = n->n_args > 6 && n->args[6].kind == VAL_bool && n->args[6].b;
    if (!x || !w || !out || x->ndim < 2)
        return 0;
    const TensorMeta *moved = transposed ? x : out;
    Sym *sym = n->graph->sym;
    return 2 * product(sym, moved, 2, moved->ndim) * product(sym, w, 0, w->ndim) *
           (double)dim(sym, x, 0);
}

// Two batched products: queries by keys, and the result by values.
static double attention_flops(const Node *n) {
    const TensorMeta *q = tensor_arg(n, 0), *k = tensor_arg(n, 1), *v = tensor_arg(n, 2);
    if (!q || !k || !v || q->ndim < 4 || k->ndim < 4 || v->ndim < 4)
        return 0;
    Sym *sym = n->graph->sym;
    double pairs = product(sym, q, 0, 3) * (double)dim(sym, k, 2);
    return 2 * pairs * ((double)dim(sym, q, 3) + (double)dim(sym, v, 3));
}

static const struct {
    const char *packet;
    int first; // of the two factors; -1: a convolution, -2: attention
} counted[] = {
    {"aten.mm", 0},
    {"aten.addmm", 1},
    {"aten.bmm", 0},
    {"aten.baddbmm", 1},
    {"aten._scaled_mm", 0},
    {"aten.convolution", -1},
    {"aten._convolution", -1},
    {"aten._scaled_dot_product_flash_attention", -2},
    {"aten._scaled_dot_product_efficient_attention", -2},
    {"aten._scaled_dot_product_cudnn_attention", -2},
};

double aot_flops(const Node *n) {
    char packet[128];
    if (!part_packet(n, packet, sizeof packet))
        return 0;
    for (int k = 0; k < COUNT(counted); k++)
        if (!strcmp(packet, counted[k].packet))
            return counted[k].first >= 0    ? matmul_flops(n, counted[k].first)
                   : counted[k].first == -1 ? conv_flops(n)
                                            : attention_flops(n);
    return 0;
}

// As torch.utils.flop_counter counts: products, convolutions and attention; all else is 1.
static double runtime(const Part *p, int i) {
    double flops = aot_flops(p->at[i]);
    return flops > 1 ? flops : 1;
}

// The banned nodes that backward needs and that are no part of an input, largest first.
static PartList candidates(const Part *p, const PartList *banned) {
    bool *of_input = ARENA_ARRAY(p->tmp, p->g->by_id.n + 1, bool);
    bool no_storage = false; // an input without storage: then nothing without storage is looked at
    for (int i = 0; i < p->n; i++)
        if (part_is_primal(p->at[i])) {
            of_input[p->storage[i]] = true;
            no_storage = no_storage || !node_tensor(p->at[i]);
        }
    PartList out = {0};
    for (int k = 0; k < banned->n; k++) {
        int i = banned->at[k];
        bool apart = node_tensor(p->at[i]) ? !of_input[p->storage[i]] : !no_storage;
        if (p->dist_from_bw[i] < PART_FAR && apart && !(p->flags[i] & NODE_must_save))
            vec_push(p->tmp, &out, i);
    }
    int *space = ARENA_ARRAY(p->tmp, out.n + 1, int);
    for (int width = 1; width < out.n; width *= 2) { // merge sort: stable
        memcpy(space, out.at, (size_t)out.n * sizeof *space);
        for (int from = 0; from < out.n; from += 2 * width) {
            int mid = from + width < out.n ? from + width : out.n;
            int end = mid + width < out.n ? mid + width : out.n;
            for (int a = from, b = mid, k = from; k < end; k++)
                out.at[k] = b == end || (a < mid && p->bytes[space[a]] >= p->bytes[space[b]])
                                ? space[a++]
                                : space[b++];
        }
    }
    return out;
}

static void save_inputs(const Part *p, bool *saved) {
    for (int i = 0; i < p->n; i++)
        saved[i] = part_is_primal(p->at[i]);
}

// By knapsack over the banned nodes; range: bytes between inputs only and the plain cut, in GB.
static bool choose_by_knapsack(Part *p, const CutOptions *options, const PartList *banned,
                               double range, bool *saved) {
    PartList items = candidates(p, banned);
    if (!items.n) {
        save_inputs(p, saved);
        for (int k = 0; k < banned->n; k++)
            if (p->flags[banned->at[k]] & NODE_must_save)
                saved[banned->at[k]] = true;
        return true;
    }
    double *memory = ARENA_ARRAY(p->tmp, items.n, double);
    double *time = ARENA_ARRAY(p->tmp, items.n, double);
    bool *take = ARENA_ARRAY(p->tmp, items.n, bool), *dont_ban = ARENA_ARRAY(p->tmp, p->n, bool);
    for (int k = 0; k < items.n; k++) {
        memory[k] = (double)p->bytes[items.at[k]] / 1e9 / range;
        time[k] = runtime(p, items.at[k]);
    }
    (p->config->solver == KNAPSACK_greedy ? knapsack_greedy : knapsack_dp)(
        memory, time, items.n, p->config->activation_memory_budget, take);
    for (int k = 0; k < items.n; k++)
        dont_ban[items.at[k]] = !take[k];
    return part_min_cut(p, options, dont_ban, saved, NULL);
}

static bool choose(Part *p, bool *saved, int64_t budget_bytes[3]) {
    const PartitionConfig *k = p->config;
    double budget = k->activation_memory_budget;
    bool all = !k->aggressive_recomputation;
    CutOptions o = {.used_far_apart = all && k->ban_recompute_used_far_apart,
                    .long_fusible_chains = all && k->ban_recompute_long_fusible_chains,
                    .materialized_backward = all && k->ban_recompute_materialized_backward,
                    .not_in_allowlist = all && k->ban_recompute_not_in_allowlist,
                    .reductions = k->ban_recompute_reductions};
    PartList banned = {0};
    save_inputs(p, saved);
    budget_bytes[0] = saved_bytes(p, saved);
    if (budget == 0) {
        for (int i = 0; i < p->n; i++)
            saved[i] = saved[i] || (part_is_random(p, i) && p->required_fw[i] &&
                                    p->dist_from_bw[i] < PART_FAR);
        return true;
    }
    if (!part_min_cut(p, &o, NULL, saved, &banned))
        return false;
    budget_bytes[1] = saved_bytes(p, saved);
    double least = (double)budget_bytes[0] / 1e9, most = (double)budget_bytes[1] / 1e9;
    if (budget == 1 || most <= least)
        return true;
    o.used_far_apart = o.long_fusible_chains = o.materialized_backward = false;
    for (int round = 0; round < 2; round++) {
        o.not_in_allowlist = o.not_in_allowlist && !round;
        if (!part_min_cut(p, &o, NULL, saved, &banned))
            return false;
        if (((double)saved_bytes(p, saved) / 1e9 - least) / (most - least) < budget)
            return true;
    }
    return choose_by_knapsack(p, &o, &banned, most - least, saved);
}

bool part_choose_saved(Part *p, bool *saved, int64_t budget_bytes[3]) {
    double budget = p->config->activation_memory_budget;
    if (!(budget >= 0 && budget <= 1)) {
        diag_fail(p->rq->diag, "activation_memory_budget is %g: expected 0 to 1", budget);
        return false;
    }
    if (!choose(p, saved, budget_bytes))
        return false;
    budget_bytes[2] = saved_bytes(p, saved);
    return true;
}
