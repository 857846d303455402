// derive_foreach.c: derivatives of operators on lists: the formulas of the op on one tensor, for
// one argument after the other (by name, as formulas are sorted), each for all items.
#include "core/aot/derive.h"
#include "core/ops/foreach.h"

#include <string.h>

// Places of the arguments of an op, sorted by name.
static int *by_name(Trace *t, const Op *op) {
    int *order = ARENA_ARRAY(t->arena, op->n_args + 1, int);
    for (int i = 0; i < op->n_args; i++) {
        int k = i;
        for (; k > 0 && strcmp(op->args[order[k - 1]].name, op->args[i].name) > 0; k--)
            order[k] = order[k - 1];
        order[k] = i;
    }
    return order;
}

static Value of_item(Back *b, const Op *each, int item, int arg) {
    Trace *t = b->t;
    Value *args = ARENA_ARRAY(t->arena, each->n_args + 1, Value);
    bool *needs = ARENA_ARRAY(t->arena, each->n_args + 1, bool);
    foreach_args(b->op, each, b->args, item, args);
    needs[arg] = true;
    Back one = {.t = t,
                .op = each,
                .args = args,
                .results = &b->results[item],
                .n_results = 1,
                .grads = &b->grads[item],
                .needs = needs,
                .item_needs = ARENA_ARRAY(t->arena, each->n_args + 1, const bool *),
                .out = ARENA_ARRAY(t->arena, each->n_args + 1, Value)};
    derivative_of(t, each)->rule(&one);
    return one.out[arg];
}

void derive_foreach(Back *b) {
    Trace *t = b->t;
    const Op *each = foreach_each(b->op);
    const int *order = by_name(t, each);
    for (int k = 0; k < each->n_args; k++) {
        int from = foreach_source(b->op, each, order[k]);
        if (from < 0 || !NEEDS(from))
            continue;
        bool list = b->op->args[from].type == AT_tensors;
        if (list)
            OUT(from) = val_list(t->arena, VAL_list, b->n_results);
        for (int i = 0; i < b->n_results && !t->failed; i++) {
            if (!defined(GRADS(i)) || (list && !b->item_needs[from][i]))
                continue;
            Value g = of_item(b, each, i, order[k]);
            if (list) {
                OUT(from).at[i] = g;
            } else if (defined(g)) { // one tensor for all items
                const TensorMeta *m = meta_of(ARG(from));
                OUT(from) = plus(t, OUT(from), sum_to(t, g, m->size, m->ndim));
            }
        }
    }
}
