// case_values.h: inside of core/debug: values of recorded cases out of JSON.
#ifndef CORE_DEBUG_CASE_VALUES_H
#define CORE_DEBUG_CASE_VALUES_H

#include "core/base/json.h"
#include "core/eager/eager.h"

// A tensor is {"t": dtype, "shape", "stride", "hex": elements row-major, little-endian}; a float
// {"f": C hex float}; {"dtype"}, {"device"}, {"layout"}, {"memory_format"}.
bool case_value(Arena *a, const Json *j, RtValue *out, Diag *d);
// "args" and "kwargs" of a case in the op's schema order.
bool case_bind(Arena *a, const Op *op, const Json *line, RtValue *args, Diag *d);

#endif
