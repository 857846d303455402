// derive_view.c: derivatives of views: the gradient goes back through the inverse.
#include "core/aot/derive.h"

void derive_t(Back *b) {
    OUT(0) = CALL(b->t, aten_t_default, GRAD);
}
