// foreach.c: operators on lists of tensors, item by item in order: an item that is written is read
// as written by those that follow.
#include "core/eager/kernel.h"
#include "core/ops/foreach.h"

bool run_foreach(K *k) {
    const Op *each = foreach_each(k->op);
    const char *why;
    int n = foreach_items(k->op, k->args, &why);
    if (n < 0)
        return k_fail(k, "RuntimeError: %s: %s", k->op->qualname, why);
    bool writes = k->op->tags & OPT_mutates, copies = writes && !(each->tags & OPT_mutates);
    Value *one = ARENA_ARRAY(k->x->arena, each->n_args + 1, Value);
    Value out = val_list(k->x->arena, VAL_list, n);
    for (int i = 0; i < n; i++) {
        foreach_args(k->op, each, k->args, i, one);
        bool ok = eager_op(k->x, each, one, &out.at[i]);
        if (!ok)
            return false;
        if (copies)
            CALL(k, aten_copy__default, k->args[0].at[i], out.at[i]);
    }
    k->out = writes ? k->args[0] : out;
    return eager_ok(k->x);
}
