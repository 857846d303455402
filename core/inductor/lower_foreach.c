// lower_foreach.c: operators on lists of tensors. On a CPU each item is lowered by itself, as the
// op on one tensor is; only a GPU's are put into one kernel side by side
// (ForeachKernelSchedulerNode, torch/_inductor/lowering.py make_foreach_pointwise).
#include "core/inductor/lower.h"
#include "core/inductor/lowerings.h"
#include "core/ops/foreach.h"

#include <string.h>

static LVal items(Lower *l, const Op *op, const Value *args) {
    const Op *each = foreach_each(op);
    const Lowering *w = lowering_of(each->id);
    const char *why;
    int n = foreach_items(op, args, &why);
    if (n < 0 || !w) {
        diag_fail(l->req->diag, "cannot lower %s: %s", l->node->name, w ? why : op->qualname);
        l->failed = true;
        return (LVal){0};
    }
    LVal out = lv_list(l, n);
    for (int i = 0; i < n; i++) {
        Value *one = ARENA_ARRAY(l->arena, each->n_args + 1, Value);
        foreach_args(op, each, args, i, one);
        l->promote = w->promote;
        l->each = each;
        out.at[i] = w->fn(l, one, w->kind);
        l->each = NULL;
    }
    return out;
}

LVal lower_foreach(Lower *l, const Value *args, LoopOpKind kind) {
    (void)kind;
    return items(l, l->node->def, args);
}

static const char *buffer_of(const Box *b) {
    const LBuf *buf = data_unwrap(b->data)->buf;
    return buf ? buf->ir->name : NULL;
}

static bool reads(Lower *l, const Box *b, const char *buffer) {
    const Data *d = data_unwrap(b->data);
    if (d->buf || d->kind != D_store)
        return d->buf && d->buf->ir->name == buffer;
    const OpCount *c = loops_count(l, d->loops);
    for (int i = 0; i < c->reads.n; i++)
        if (c->reads.at[i].buf == buffer)
            return true;
    return false;
}

// Is an item read for the result of another one?
static bool crossed(Lower *l, const LVal *results, const LVal *targets) {
    for (int i = 0; i < results->n; i++)
        for (int k = 0; k < results->n; k++)
            if (i != k && reads(l, results->at[i].box, buffer_of(targets->at[k].box)))
                return true;
    return false;
}

// Each result is computed into its target; where it is read for another one as well, all are
// computed first and then copied.
LVal lower_foreach_(Lower *l, const Value *args, LoopOpKind kind) {
    const Op *op = l->node->def;
    const char *name = arena_strndup(l->arena, op->name, strlen(op->name) - 1);
    (void)kind;
    LVal out = items(l, op_find_overload(op->ns, name, op->overload), args);
    if (l->failed)
        return out;
    LVal targets = lv_list(l, out.n);
    for (int i = 0; i < out.n; i++) {
        targets.at[i] = l_of(l, &args[0].at[i]);
        data_realize(l, targets.at[i].box->data, "written in place");
    }
    bool copied = crossed(l, &out, &targets);
    for (int i = 0; i < out.n && copied; i++)
        box_realize(l, out.at[i].box, "read and written by one operator on lists");
    for (int i = 0; i < out.n && !l->failed; i++)
        (copied ? data_write_into : data_compute_into)(l, out.at[i].box->data,
                                                       targets.at[i].box->data);
    return targets;
}
