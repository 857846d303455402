// partition.c: the two partitioners, and what the user pins. The plain result is found first: it is
// what happens without pins. Pins then are constraints of a second cut; one that cannot hold is
// refused.
#include "core/aot/partition_impl.h"

#include <string.h>

const PartitionConfig partition_config_default = {
    .cse = true,
    .treat_parameters_as_free_to_save = true,
    .ban_recompute_used_far_apart = true,
    .ban_recompute_long_fusible_chains = true,
    .ban_recompute_materialized_backward = true,
    .ban_recompute_not_in_allowlist = true,
    .ban_recompute_reductions = true,
    .activation_memory_budget = 1,
    .solver = KNAPSACK_dp,
};

enum { MOST_CUTS = 16 };

// ---- pins

static void refuse(const Part *p, int i, const char *why) {
    diag_warning(p->rq->diag, (Place){0}, "cannot %s '%s': %s",
                 p->pin[i] == PIN_save ? "save" : "recompute", p->at[i]->name, why);
    p->pin[i] = PIN_none;
    p->refused[i] = true;
}

// What computes a node: of an item of a tuple the op that makes the tuple.
static int maker(const Part *p, int i) {
    while (node_is_item(p->at[i]))
        i = p->index[p->at[i]->args[0].node->id];
    return i;
}

// Why a wish can never hold; NULL: it may.
static const char *impossible(const Part *p, int i, bool keep) {
    const Node *n = p->at[i], *m = p->at[maker(p, i)];
    if (keep && n->val.kind != VAL_tensor && !part_is_sym(n))
        return "it is no tensor: expected one of its items";
    if (!keep && m->op == FX_placeholder)
        return "it is an input of the graph";
    if (!keep && m->op == FX_call_function && node_is_impure(m))
        return m->def && m->def->tags & OPT_random ? "a random op would draw other numbers"
                                                   : "it has effects beyond its result";
    return p->dist_from_bw[i] >= PART_FAR ? "backward does not need it" : NULL;
}

// Of an item its op as well.
static void pin_recompute(Part *p, int i) {
    p->pin[i] = PIN_recompute;
    for (; node_is_item(p->at[i]); p->pin[i] = PIN_recompute)
        i = p->index[p->at[i]->args[0].node->id];
}

// The wishes on record, as pins; is there any that may hold?
static bool read_pins(Part *p) {
    bool any = false;
    for (int i = 0; i < p->n; i++) {
        const bool *wish = p->required_fw[i]
                               ? decisions_wish(p->rq->decisions, DECIDE_save, p->at[i]->name)
                               : NULL;
        if (!wish)
            continue;
        const char *why = impossible(p, i, *wish);
        p->pin[i] = *wish ? PIN_save : PIN_recompute;
        if (why)
            refuse(p, i, why);
        else if (!*wish)
            pin_recompute(p, i);
        any = any || !why;
    }
    return any;
}

// ---- choosing

// Until no pin stands in the way; false: an error is on record.
static bool solve(Part *p, PartList *saved, int64_t budget_bytes[3]) {
    saved->n = 0;
    if (p->rq->partitioner == PARTITION_default || !p->n_required_bw) {
        part_default(p, saved);
        return true;
    }
    bool *keep = ARENA_ARRAY(p->tmp, p->n, bool);
    int errors = p->rq->diag->errors;
    while (!part_choose_saved(p, keep, budget_bytes))
        if (p->rq->diag->errors > errors)
            return false;
    for (int i = 0; i < p->n; i++)
        if (keep[i])
            vec_push(p->tmp, saved, i);
    return true;
}

// Asks for every value that passes to backward or is recomputed there, unless there is no choice;
// true if an answer differs from what was done (a bisection's limit).
static bool ask(Part *p, const PartitionResult *r, const bool *plain, bool pinned) {
    bool changed = false;
    for (int k = 0; k < r->n_values; k++) {
        const SavedValue *v = &r->values[k];
        int i = p->index[v->node];
        if (v->is_size || v->is_input || p->refused[i] || impossible(p, i, false))
            continue;
        Decide q = {.kind = DECIDE_save,
                    .key = p->at[i]->name,
                    .by_default = pinned && p->pin[i] ? plain[i] : !v->recomputed,
                    .bytes = v->bytes,
                    .reason = v->why};
        bool answer = decide(p->rq->decisions, &q);
        if (answer == !v->recomputed || p->pin[i])
            continue;
        if (!answer)
            pin_recompute(p, i);
        changed = changed || !answer;
    }
    return changed;
}

static bool has_recompute_tags(const Part *p) {
    for (int i = 0; i < p->n; i++)
        if (p->flags[i] & NODE_must_recompute)
            return true;
    return false;
}

static void make(Part *p, const PartList *saved, PartitionResult *out) {
    bool min_cut = p->rq->partitioner == PARTITION_min_cut && p->n_required_bw;
    bool pinned = false;
    for (int i = 0; i < p->n; i++)
        pinned = pinned || p->pin[i] == PIN_recompute;
    *out = (PartitionResult){
        .budget_bytes = {out->budget_bytes[0], out->budget_bytes[1], out->budget_bytes[2]}};
    part_graphs(p, saved, min_cut || pinned || has_recompute_tags(p), out);
}

static void partition(Part *p, PartitionResult *out) {
    PartList saved = {0};
    bool *plain = ARENA_ARRAY(p->tmp, p->n, bool);
    part_classify(p);
    if (!solve(p, &saved, out->budget_bytes))
        return;
    for (int k = 0; k < saved.n; k++)
        plain[saved.at[k]] = true;
    bool pinned = read_pins(p);
    if (pinned && !solve(p, &saved, out->budget_bytes))
        return;
    make(p, &saved, out);
    Decisions *log = p->rq->decisions;
    int from = log ? decisions_count(log) : 0;
    // Where an answer differs, another cut saves other values: they are asked for in their turn.
    for (int i = 0; i < MOST_CUTS && out->forward && ask(p, out, plain, pinned); i++) {
        if (!solve(p, &saved, out->budget_bytes))
            return;
        decisions_rewind(log, from);
        make(p, &saved, out);
    }
}

PartitionResult aot_partition(const PartitionRequest *request) {
    Arena tmp = {0};
    PartitionResult out = {0};
    Part p = {.rq = request,
              .config = request->config ? request->config : &partition_config_default,
              .tmp = &tmp,
              .g = request->joint,
              .is_static = request->is_static};
    if (part_prepare(&p))
        partition(&p, &out);
    arena_free(&tmp);
    return out;
}
