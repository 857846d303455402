// foreach.h: operators on lists of tensors (torch._foreach_add, as optimizers call it): an op of
// one tensor for each item.
#ifndef CORE_OPS_FOREACH_H
#define CORE_OPS_FOREACH_H

#include "core/ops/ops.h"

// What is done with each item: mul.Tensor of _foreach_mul.List, mul_.Tensor of _foreach_mul_.List
// (maximum of _foreach_maximum_, which nothing does in place); NULL: no op on lists.
const Op *foreach_each(const Op *op);
// The argument that argument k of the op on one tensor comes from, -1: it keeps its default.
// Arguments go by name, else by place.
int foreach_source(const Op *op, const Op *each, int k);
// How many items bound arguments have; -1: lists of different lengths, or none (see *why).
int foreach_items(const Op *op, const Value *args, const char **why);
// The arguments of the op on item i: lists item by item, others as they are. out has each->n_args.
void foreach_args(const Op *op, const Op *each, const Value *args, int i, Value *out);

// A call by that name (torch._foreach_add_, torch.ops.aten._foreach_add_.List) writes the tensors
// of its first list, and gives None.
bool foreach_writes(const char *target);

#endif
