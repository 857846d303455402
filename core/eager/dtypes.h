// dtypes.h: sets of dtypes, as masks: what kernels are made for (dtypes.def).
#ifndef CORE_EAGER_DTYPES_H
#define CORE_EAGER_DTYPES_H

#include "core/tensor/dtype.h"

typedef enum DtypeSet {
#define BIT(id) (1u << DT_##id)
    DTYPES_BOOLS = BIT(b8),
    DTYPES_BYTE = BIT(u8),
    DTYPES_LONG = BIT(i64),
    DTYPES_INDEX = BIT(i32) | BIT(i64),
    DTYPES_LOW = BIT(bf16) | BIT(f16),
    DTYPES_WIDE = BIT(f32) | BIT(f64),
    DTYPES_FLOATS = DTYPES_WIDE | DTYPES_LOW,
    DTYPES_INTEGERS = BIT(i64) | BIT(i32) | BIT(i16) | BIT(i8) | BIT(u8) | BIT(u16) | BIT(u32) |
                      BIT(u64),
    DTYPES_BITS = DTYPES_INTEGERS | DTYPES_BOOLS,
    DTYPES_NUMBERS = DTYPES_FLOATS | DTYPES_INTEGERS,
    DTYPES_NOT_LOW = DTYPES_WIDE | DTYPES_BITS,
    DTYPES_FIRST = 1 << 29, // no dtype: looked at before sizes
    DTYPES_EMPTY = 1 << 30, // no dtype: empty tensors are refused too
#undef BIT
} DtypeSet;

#endif
