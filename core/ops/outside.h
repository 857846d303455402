// outside.h: op_check for who knows which dtypes an op's kernel has.
#ifndef CORE_OPS_OUTSIDE_H
#define CORE_OPS_OUTSIDE_H

#include "core/ops/ops.h"

// As op_check, but what PyTorch finds inside the kernel, so after its dtype, is no failure: the
// first such error is left in *inside.
bool op_check_outside(MetaCtx *m, const Op *op, const Value *args, const char **inside);

#endif
