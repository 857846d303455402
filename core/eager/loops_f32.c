// loops_f32.c: elementwise loops in float, for f32, bf16 and f16.
#define T          float
#define SUFFIX(fn) fn##f
#define TABLE      loops_f32
#include "core/eager/loops_float.inc"
