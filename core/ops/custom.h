// custom.h: ops that a person declares: a schema in PyTorch's syntax, what the op writes or
// aliases, and rules for the shapes and dtypes of its results. Their OpId is OP_none: no table
// knows them.
#ifndef CORE_OPS_CUSTOM_H
#define CORE_OPS_CUSTOM_H

#include "core/base/map.h"
#include "core/base/vec.h"
#include "core/ops/ops.h"

typedef struct OpSet {
    Arena *arena;
    VEC(const Op *) ops; // in order of declaration
    Map by_key;          // mylib.foo.default -> Op *
} OpSet;

// Adds an op. NULL and an error whose column is that of the text, from 1: a broken schema, an op
// that is built in or was declared before, a type of result that has no rule.
Op *opset_declare(OpSet *s, const char *schema, Diag *d);
// What follows belongs to the op declared last. Each takes the text behind its keyword; false and
// an error with its column.
//   shape  same x | [x.size(0), 2 * w.size(-1)] | []     of the next result
//   dtype  x | float32                                   of the next result
//   alias  x                                             the (first) result is a view of x
//   mutates x y                                          writes them
bool op_set_shape(Op *op, const char *text, Diag *d);
bool op_set_dtype(Op *op, const char *text, Diag *d);
bool op_set_alias(Op *op, const char *text, Diag *d);
bool op_set_mutates(Op *op, const char *text, Diag *d);
// By `torch.ops.mylib.foo.default`, with or without `torch.ops.`; a packet `mylib.foo` is its
// default overload, or its only one. NULL if it is not declared.
const Op *opset_find(const OpSet *s, const char *target);
bool op_is_custom(const Op *op);

#endif
