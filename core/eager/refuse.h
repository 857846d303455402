// refuse.h: which dtypes are looked at first, and tensors whose elements share memory.
#ifndef CORE_EAGER_REFUSE_H
#define CORE_EAGER_REFUSE_H

#include "core/eager/kernel.h"

// Whether the op's kernel looks at the dtype before anything looks at sizes.
bool refuses_dtype_first(const Op *op);
// False and an error: the op must not write what elements share (ops_shared_error).
bool refuse_shared(K *k, const Tensor *self);

#endif
