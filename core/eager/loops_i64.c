// loops_i64.c: elementwise loops in int64, for all integers and bool: results wrap when they are
// stored.
#include <stdint.h>

typedef int64_t T;
typedef uint64_t UT;
#define TABLE loops_i64
#include "core/eager/loops_int.inc"
