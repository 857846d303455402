// loops_f64.c: elementwise loops in double.
#define T          double
#define SUFFIX(fn) fn
#define TABLE      loops_f64
#include "core/eager/loops_float.inc"
