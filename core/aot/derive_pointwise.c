// derive_pointwise.c: derivatives of elementwise ops.
#include "core/aot/derive.h"

void derive_relu(Back *b) {
    OUT(0) = CALL(b->t, aten_threshold_backward_default, GRAD, RES(0), INT(0));
}
