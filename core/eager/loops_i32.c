// loops_i32.c: elementwise loops in int32, for operands that are int32 throughout: int64's results
// wrapped.
#include <stdint.h>

typedef int32_t T;
typedef uint32_t UT;
#define TABLE loops_i32
#include "core/eager/loops_int.inc"
