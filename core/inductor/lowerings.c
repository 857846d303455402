// lowerings.c: the table of lowerings, by op.
#include "core/inductor/lowerings.h"

#include <string.h>

static const Lowering table[OP_count] = {
#define LOWER(op, fn_, kind_, promote_, realized_)                                                 \
    [OP_##op] = {.fn = lower_##fn_,                                                                \
                 .kind = LOOP_##kind_,                                                             \
                 .promote = PK_##promote_,                                                         \
                 .needs_realized_inputs = realized_},
#include "core/inductor/lowerings.def"
#undef LOWER
};

const Lowering *lowering_of(OpId id) {
    return id > OP_none && id < OP_count && table[id].fn ? &table[id] : NULL;
}

bool op_is_fallback(const Op *op) {
    static const struct {
        const char *name, *overload;
    } known[] = {
#define FALLBACK(name, overload) {name, overload},
#include "core/inductor/fallbacks.def"
#undef FALLBACK
    };
    for (int i = 0; i < COUNT(known); i++)
        if (strcmp(op->name, known[i].name) == 0 &&
            (!*known[i].overload || strcmp(op->overload, known[i].overload) == 0))
            return true;
    return false;
}

bool op_needs_realized_inputs(const Op *op) {
    const Lowering *w = lowering_of(op->id);
    return w ? w->needs_realized_inputs : op_is_fallback(op);
}

bool node_needs_realized_inputs(const Lower *l, const Node *n) {
    if (n->def && (lowering_of(n->def->id) || op_is_fallback(n->def)))
        return op_needs_realized_inputs(n->def);
    return n->target && map_get_int(&l->fell_back, n->target, 0);
}
