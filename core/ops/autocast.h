// autocast.h: torch.autocast on the CPU: which op wants its floats in which type (autocast.def),
// and the calls that switch it.
#ifndef CORE_OPS_AUTOCAST_H
#define CORE_OPS_AUTOCAST_H

#include "core/ops/ops.h"

typedef struct Autocast {
    bool on;
    DType dtype; // lower precision
} Autocast;

// The type that the op's tensors are cast to; DT_none: they stay as they are. Only those that
// autocast_casts says so of.
DType autocast_dtype(const Autocast *a, const Op *op, const Value *args);
bool autocast_casts(const TensorMeta *m, DType to);

// The arguments of `_enter_autocast` and `wrap_with_autocast`: device, dtype or None, enabled.
// false if it is about something else than the CPU: then nothing changes.
bool autocast_enter(Autocast *a, const Value *args, int n_args);
// The two functions of Python, by the target of their calls.
bool autocast_is_enter(const char *target);
bool autocast_is_exit(const char *target);
// A state as the value that enter yields and exit takes.
Value autocast_value(Autocast a);
bool autocast_from(const Value *v, Autocast *out);

#endif
