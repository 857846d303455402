// partition_classify.c: what each node of a joint graph is to forward and to backward, and the
// policies of activation checkpointing.
#include "core/aot/partition_impl.h"

#include <string.h>

// ---- policies

static bool must_recompute(const Part *p, int i) {
    return (p->flags[i] & NODE_must_recompute) != 0;
}

static void must_save(Part *p, int i) {
    p->flags[i] = (p->flags[i] & ~(unsigned)NODE_must_recompute) | NODE_must_save;
}

// What passes from one checkpointed region into a later one is kept; under the default partitioner
// so is what enters a region.
static void keep_at_borders(Part *p) {
    for (int i = 0; i < p->n; i++) {
        int region = p->at[i]->ac_graph_id;
        bool used_again = false, into_later = false;
        for (int k = p->users_at[i]; k < p->users_at[i + 1]; k++) {
            int u = p->users[k];
            used_again = used_again || must_recompute(p, u);
            into_later =
                into_later || (must_recompute(p, u) && region && p->at[u]->ac_graph_id > region);
        }
        bool item_inside = node_is_item(p->at[i]) && p->at[i]->args[0].node->ac_graph_id;
        if (must_recompute(p, i)
                ? into_later
                : p->rq->partitioner == PARTITION_default && !region && used_again && !item_inside)
            must_save(p, i);
    }
}

static void keep_items(Part *p, int i) {
    for (int k = p->users_at[i]; k < p->users_at[i + 1]; k++) {
        int u = p->users[k];
        if (!node_is_item(p->at[u]))
            continue;
        keep_items(p, u);
        if (p->at[u]->val.kind != VAL_tuple && p->at[u]->val.kind != VAL_list)
            must_save(p, u);
    }
}

// A value that forward writes into an input which backward writes as well must not be made twice.
static void keep_written_twice(Part *p) {
    bool *written = ARENA_ARRAY(p->tmp, p->n, bool);
    for (int i = p->n - 2; i >= 0; i--) {
        const Node *n = p->at[i];
        if (!node_is(n, OP_aten_copy__default) || n->n_args < 2 || n->args[0].kind != VAL_node ||
            n->args[1].kind != VAL_node)
            return;
        int into = p->index[n->args[0].node->id];
        if (n->flags & NODE_must_be_in_backward)
            written[into] = true;
        if (n->flags & NODE_must_be_in_forward && written[into])
            must_save(p, p->index[n->args[1].node->id]);
    }
}

static void settle_policies(Part *p) {
    bool any = false;
    for (int i = 0; i < p->n; i++)
        any = any || must_recompute(p, i);
    if (any)
        keep_at_borders(p);
    for (int i = 0; i < p->n; i++) {
        const Node *n = p->at[i];
        if (n->op != FX_call_function || must_recompute(p, i))
            continue;
        if (str_starts(n->target, "torch.ops._c10d_functional."))
            must_save(p, i);
        if (!strcmp(n->target, "torch.ops.higher_order.with_effects") &&
            !(n->flags & NODE_backward))
            keep_items(p, i);
    }
    keep_written_twice(p);
}

// ---- which graph needs what

int part_output(const Part *p, int i, const bool *valid) {
    if (i < 0 || valid[i])
        return i;
    const Node *n = p->at[i];
    if (node_is(n, OP_aten_copy__default) && part_must_be_in_backward(n) && n->n_args &&
        n->args[0].kind == VAL_node && valid[p->index[n->args[0].node->id]])
        return p->index[n->args[0].node->id];
    return -1;
}

static bool is_valid(const Part *p, int i, const bool *is_input, bool backward, const bool *valid) {
    const Node *n = p->at[i];
    if (is_input[i])
        return true;
    if (n->op == FX_get_attr)
        return true;
    if (n->op == FX_placeholder || n->op == FX_output ||
        (backward ? part_must_be_in_forward(n) : part_must_be_in_backward(n)))
        return false;
    for (int k = p->inputs_at[i]; k < p->inputs_at[i + 1]; k++)
        if (!valid[p->inputs[k]])
            return false;
    return true;
}

void part_extract(const Part *p, const bool *is_input, const int *out, int n_out, bool backward,
                  bool *valid, bool *live) {
    memset(live, 0, (size_t)p->n * sizeof *live);
    for (int i = 0; i < p->n; i++)
        valid[i] = is_valid(p, i, is_input, backward, valid);
    for (int i = 0; i < n_out; i++) {
        int x = part_output(p, out[i], valid);
        if (x >= 0)
            live[x] = true;
    }
    for (int i = p->n - 1; i >= 0; i--) {
        if (!valid[i] || is_input[i] || (!live[i] && !node_has_effects(p->at[i])))
            continue;
        live[i] = true;
        for (int k = p->inputs_at[i]; k < p->inputs_at[i + 1]; k++)
            live[p->inputs[k]] = true;
    }
}

static void find_required_bw(Part *p) {
    for (int i = 0; i < p->n; i++) {
        if (part_is_tangent(p->at[i]) || part_must_be_in_backward(p->at[i]))
            p->tangents[i] = true;
        if (p->tangents[i])
            for (int k = p->users_at[i]; k < p->users_at[i + 1]; k++)
                p->tangents[p->users[k]] = true;
    }
    memcpy(p->required_bw, p->tangents, (size_t)p->n * sizeof *p->tangents);
    for (int i = 0; i < p->n_bwd_out; i++)
        if (p->bwd_out[i] >= 0)
            p->required_bw[p->bwd_out[i]] = true;
    for (int i = 0; i < p->n; i++)
        p->n_required_bw += p->required_bw[i];
}

static void find_distances(Part *p) {
    for (int i = p->n - 1; i >= 0; i--) {
        p->dist_from_bw[i] = i == p->n - 1 || p->required_fw[i] ? PART_FAR : 0;
        if (!p->required_fw[i])
            continue;
        for (int k = p->users_at[i]; k < p->users_at[i + 1]; k++) {
            int d = p->dist_from_bw[p->users[k]] + 1;
            if (d < p->dist_from_bw[i])
                p->dist_from_bw[i] = d;
        }
    }
}

void part_classify(Part *p) {
    p->required_fw = ARENA_ARRAY(p->tmp, p->n, bool);
    p->required_bw = ARENA_ARRAY(p->tmp, p->n, bool);
    p->tangents = ARENA_ARRAY(p->tmp, p->n, bool);
    p->fw_order = ARENA_ARRAY(p->tmp, p->n, int);
    p->dist_from_bw = ARENA_ARRAY(p->tmp, p->n, int);
    settle_policies(p);
    find_required_bw(p);
    bool *is_input = ARENA_ARRAY(p->tmp, p->n, bool), *valid = ARENA_ARRAY(p->tmp, p->n, bool);
    for (int i = 0; i < p->n; i++)
        is_input[i] = part_is_primal(p->at[i]);
    part_extract(p, is_input, p->fwd_out, p->n_fwd_out, false, valid, p->required_fw);
    for (int i = 0, order = 0; i < p->n; i++) {
        p->required_fw[i] = p->required_fw[i] || is_input[i];
        if (p->required_fw[i])
            p->fw_order[i] = order++;
    }
    find_distances(p);
}
