// partition_default.c: default_partition: forward is what stands in forward's half of the trace;
// what it made and backward uses is kept, or only its sizes where backward wants no more.
#include "core/aot/partition_impl.h"

#include <string.h>

// The last node of forward: the last tagged so, or the last input. A graph read from text has no
// tags: there it ends before the first node that needs a tangent.
static int last_forward(const Part *p) {
    const unsigned elsewhere = NODE_must_be_in_forward | NODE_must_be_in_backward;
    int last = 0, first_backward = p->n - 1;
    bool tagged = false;
    for (int i = p->n - 1; i >= 0; i--) {
        const Node *n = p->at[i];
        tagged = tagged || n->flags & (NODE_forward | NODE_backward);
        if (p->tangents[i] && n->op == FX_call_function)
            first_backward = i;
        bool forward = n->flags & NODE_forward && !(n->flags & elsewhere);
        if ((forward || part_is_primal(n)) && i > last)
            last = i;
    }
    return tagged || first_backward - 1 < last ? last : first_backward - 1;
}

static bool has_items_only(const Part *p, int i) {
    for (int k = p->users_at[i]; k < p->users_at[i + 1]; k++)
        if (!node_is_item(p->at[p->users[k]]))
            return false;
    return p->users_at[i] < p->users_at[i + 1];
}

static bool is_left_out(const Part *p, int i) {
    const Node *n = p->at[i];
    return n->val.kind == VAL_graph || part_is_tangent(n) ||
           node_is(n, OP_aten__assert_scalar_default) ||
           str_starts(n->target, "torch.ops.profiler.") || has_items_only(p, i);
}

// Does backward use no more than sizes of it? Adds those to the list.
static bool only_sizes_used(Part *p, int i, const bool *forward, PartList *saved) {
    for (int k = p->users_at[i]; k < p->users_at[i + 1]; k++)
        if (!forward[p->users[k]] && !part_is_sym(p->at[p->users[k]]))
            return false;
    for (int k = p->users_at[i]; k < p->users_at[i + 1]; k++)
        if (!forward[p->users[k]])
            vec_push(p->tmp, saved, p->users[k]);
    return true;
}

// What a value pinned as recomputed is made of must be there: kept, or recomputed in turn.
static bool *inputs_of_pinned(const Part *p) {
    bool *needed = ARENA_ARRAY(p->tmp, p->n, bool), *again = ARENA_ARRAY(p->tmp, p->n, bool);
    for (int i = p->n - 1; i >= 0; i--) {
        if (!again[i] && p->pin[i] != PIN_recompute)
            continue;
        for (int k = p->inputs_at[i]; k < p->inputs_at[i + 1]; k++) {
            int x = p->inputs[k];
            bool tuple = p->at[x]->val.kind == VAL_tuple || p->at[x]->val.kind == VAL_list;
            again[x] = again[x] || tuple;
            needed[x] = !tuple;
        }
    }
    return needed;
}

static void drop_twins(Part *p, PartList *list) {
    bool *seen = ARENA_ARRAY(p->tmp, p->n, bool);
    int n = 0;
    for (int k = 0; k < list->n; k++) {
        if (!seen[list->at[k]])
            list->at[n++] = list->at[k];
        seen[list->at[k]] = true;
    }
    list->n = n;
}

void part_default(Part *p, PartList *saved) {
    int last = last_forward(p);
    bool *forward = ARENA_ARRAY(p->tmp, p->n, bool), *needed = inputs_of_pinned(p);
    for (int i = 0; i <= last; i++)
        forward[i] = !part_is_tangent(p->at[i]);
    for (int i = 0; i <= last; i++) {
        const Node *n = p->at[i];
        bool effect = n->op == FX_call_function && node_has_effects(n);
        if (part_is_sym(n)) {
            vec_push(p->tmp, saved, i);
        } else if (is_left_out(p, i) || p->pin[i] == PIN_recompute) {
            continue;
        } else if (p->flags[i] & NODE_must_save || effect || needed[i] || p->pin[i] == PIN_save) {
            p->why[i] = p->flags[i] & NODE_must_save ? "marked MUST_SAVE" : "needed by backward";
            vec_push(p->tmp, saved, i);
        } else if (!only_sizes_used(p, i, forward, saved) && !(p->flags[i] & NODE_must_recompute)) {
            p->why[i] = "made by forward, used by backward";
            vec_push(p->tmp, saved, i);
        }
    }
    drop_twins(p, saved);
}
