// loops_f32.c: elementwise loops in float, for f32, bf16 and f16.
#include <math.h>

#include "core/eager/single.h"

#define T          float
#define SUFFIX(fn) fn##f
#define TABLE      loops_f32
// The two that networks use most, in no more digits than float has.
#define FAST_exp single_exp
#define FAST_erf single_erf
#include "core/eager/loops_float.inc"
