// foreach.c: operators on lists of tensors: which op is meant, and with which arguments.
#include "core/ops/foreach.h"
#include "core/ops/meta.h"

#include <string.h>

static const OpId table[OP_count] = {
#define EACH(op, one) [OP_##op] = OP_##one,
#include "core/ops/foreach_each.def"
#undef EACH
};

const Op *foreach_each(const Op *op) {
    return op && table[op->id] ? op_at(table[op->id]) : NULL;
}

bool foreach_writes(const char *target) {
    const char *name = target ? strstr(target, "_foreach_") : NULL;
    size_t len = name ? strcspn(name, ".") : 0;
    return len && name[len - 1] == '_';
}

int foreach_source(const Op *op, const Op *each, int k) {
    int named = op_arg_index(op, each->args[k].name);
    if (named >= 0)
        return named;
    // Not one that has a place by its name.
    return k < op->n_args && op_arg_index(each, op->args[k].name) < 0 ? k : -1;
}

static bool is_list(const SchemaArg *arg) {
    return arg->type == AT_tensors || arg->type == AT_scalars;
}

int foreach_items(const Op *op, const Value *args, const char **why) {
    int n = -1;
    *why = "no list of tensors";
    for (int i = 0; i < op->n_args; i++) {
        if (!is_list(&op->args[i]))
            continue;
        if (args[i].kind != VAL_list && args[i].kind != VAL_tuple)
            return -1;
        *why = "lists of different lengths";
        if (n >= 0 && args[i].n != n)
            return -1;
        n = args[i].n;
    }
    return n;
}

void foreach_args(const Op *op, const Op *each, const Value *args, int i, Value *out) {
    for (int k = 0; k < each->n_args; k++) {
        int from = foreach_source(op, each, k);
        out[k] = from < 0                   ? each->args[k].dflt
                 : is_list(&op->args[from]) ? args[from].at[i]
                                            : args[from];
    }
}

static bool items(MetaCtx *m, const Op *op, const Value *args, Value *out) {
    const Op *each = foreach_each(op);
    const char *why;
    int n = foreach_items(op, args, &why);
    if (n < 0)
        return meta_fail(m, "RuntimeError: %s: %s", op->qualname, why);
    Value *one = ARENA_ARRAY(m->arena, each->n_args + 1, Value);
    *out = val_list(m->arena, VAL_list, n);
    for (int i = 0; i < n; i++) {
        foreach_args(op, each, args, i, one);
        if (!op_meta(m, each, one, &out->at[i]))
            return false;
    }
    return true;
}

bool meta_foreach(MetaCtx *m, const Op *op, const Value *args, Value *out) {
    return items(m, op, args, out);
}

// The items that were written stand for the result, which is nothing.
bool meta_foreach_(MetaCtx *m, const Op *op, const Value *args, Value *out) {
    if (!items(m, op, args, out))
        return false;
    *out = val_list(m->arena, VAL_list, args[0].n); // the list of arguments may end before
    for (int i = 0; i < args[0].n; i++)
        out->at[i] = args[0].at[i];
    return true;
}
