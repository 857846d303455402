// out.h: out= overloads: ops that store what another one gives (Op.functional). They are no row of
// ops.def and have no OpId.
#ifndef CORE_OPS_OUT_H
#define CORE_OPS_OUT_H

#include "core/ops/ops.h"

// The out= overloads of an op.
int op_outs(const Op *base, const Op *out[], int max);
// The out= overload of that name, NULL if the op has none.
const Op *out_find(const Op *base, const char *overload);
// The row of the tables by op that holds for it: its functional op's if it is an out= overload.
OpId op_row(const Op *op);
// The first argument that is written; those behind it are written too.
int op_first_out(const Op *op);
// Arguments of the functional op. Options of a factory are those of the tensor written.
Value *op_functional_args(Arena *a, const Op *op, const Value *args);
// NULL if a tensor may be written with what the functional op gave, else why it may not.
const char *op_out_error(Arena *a, const Op *op, DType result, DType out);

#endif
