// lowerings.c: the table of lowerings, by op.
#include "core/inductor/lowerings.h"

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

// Ops that are always called as library kernels read their inputs from memory.
bool op_needs_realized_inputs(const Op *op) {
    const Lowering *w = lowering_of(op->id);
    return w ? w->needs_realized_inputs : !(op->tags & OPT_sym);
}
