// loops_u8.c: elementwise loops in bytes, for truth values throughout.
#include <stdint.h>

typedef uint8_t T;
typedef unsigned UT;
#define TABLE loops_u8
// Expressions for all integers ask for signs.
#pragma GCC diagnostic ignored "-Wtype-limits"
#include "core/eager/loops_int.inc"
