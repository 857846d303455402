// tensor_dtype.c: promotion against PyTorch's table, small floats against independent slow
// rounding, names.
#include "tests/unit/unit.h"

#include <math.h>
#include <string.h>

#include "core/base/vec.h"
#include "core/tensor/dtype.h"

// c10's table: columns and rows u1 i1 i2 i4 i8 f2 f4 f8 c2 c4 c8 b1 bf.
static const DType order[] = {DT_u8,  DT_i8,  DT_i16, DT_i32,  DT_i64, DT_f16, DT_f32,
                              DT_f64, DT_c32, DT_c64, DT_c128, DT_b8,  DT_bf16};
static const char *const table[] = {
    "u1 i2 i2 i4 i8 f2 f4 f8 c2 c4 c8 u1 bf", "i2 i1 i2 i4 i8 f2 f4 f8 c2 c4 c8 i1 bf",
    "i2 i2 i2 i4 i8 f2 f4 f8 c2 c4 c8 i2 bf", "i4 i4 i4 i4 i8 f2 f4 f8 c2 c4 c8 i4 bf",
    "i8 i8 i8 i8 i8 f2 f4 f8 c2 c4 c8 i8 bf", "f2 f2 f2 f2 f2 f2 f4 f8 c2 c4 c8 f2 f4",
    "f4 f4 f4 f4 f4 f4 f4 f8 c4 c4 c8 f4 f4", "f8 f8 f8 f8 f8 f8 f8 f8 c8 c8 c8 f8 f8",
    "c2 c2 c2 c2 c2 c2 c4 c8 c2 c4 c8 c2 c4", "c4 c4 c4 c4 c4 c4 c4 c8 c4 c4 c8 c4 c4",
    "c8 c8 c8 c8 c8 c8 c8 c8 c8 c8 c8 c8 c8", "u1 i1 i2 i4 i8 f2 f4 f8 c2 c4 c8 b1 bf",
    "bf bf bf bf bf f4 f4 f8 c4 c4 c8 bf bf",
};
static const char names[] = "u1i1i2i4i8f2f4f8c2c4c8b1bf";

START_TEST(promotion) {
    for (int i = 0; i < COUNT(order); i++)
        for (int j = 0; j < COUNT(order); j++) {
            DType want = DT_none;
            for (int k = 0; k < COUNT(order); k++)
                if (memcmp(names + 2 * k, table[i] + 3 * j, 2) == 0)
                    want = order[k];
            ck_assert_msg(dtype_promote(order[i], order[j]) == want, "%s + %s is %s",
                          dtype_info[order[i]].abbr, dtype_info[order[j]].abbr,
                          dtype_info[dtype_promote(order[i], order[j])].abbr);
        }
    ck_assert_int_eq(dtype_promote(DT_u16, DT_i32), DT_none);
    ck_assert_int_eq(dtype_promote(DT_u16, DT_f32), DT_f32);
    ck_assert_int_eq(dtype_promote(DT_u16, DT_b8), DT_u16);
    ck_assert_int_eq(dtype_promote(DT_f8e5m2, DT_f32), DT_none);
    ck_assert_int_eq(dtype_promote(DT_none, DT_i8), DT_i8);
}
END_TEST

// The value of a pattern by its definition: sign, `exp_bits` of exponent, the rest fraction.
static double value_of(uint32_t bits, int exp_bits, int frac_bits) {
    int bias = (1 << (exp_bits - 1)) - 1, exp = (int)(bits >> frac_bits) & ((1 << exp_bits) - 1);
    uint32_t frac = bits & ((1u << frac_bits) - 1);
    double sign = bits >> (exp_bits + frac_bits) & 1 ? -1 : 1;
    if (exp == (1 << exp_bits) - 1)
        return frac ? (double)NAN : sign * (double)INFINITY;
    if (!exp)
        return sign * ldexp((double)frac, 1 - bias - frac_bits);
    return sign * ldexp((double)(frac + (1u << frac_bits)), exp - bias - frac_bits);
}

START_TEST(widening) {
    for (uint32_t b = 0; b < 65536; b++) {
        double h = value_of(b, 5, 10), f = value_of(b, 8, 7);
        float gh = f16_to_f32((uint16_t)b), gf = bf16_to_f32((uint16_t)b);
        if (isnan(h))
            ck_assert(isnan(gh));
        else
            ck_assert_msg((double)gh == h && !signbit(gh) == !signbit(h), "f16 %04x", b);
        if (isnan(f))
            ck_assert(isnan(gf));
        else
            ck_assert_msg((double)gf == f && !signbit(gf) == !signbit(f), "bf16 %04x", b);
        // There and back.
        if (!isnan(h))
            ck_assert_uint_eq(f32_to_f16(gh), b);
        if (!isnan(f))
            ck_assert_uint_eq(f32_to_bf16(gf), b);
    }
}
END_TEST

// Nearest pattern by search among the positive ones, ties to even; overflow from the midpoint
// beyond the largest.
static uint16_t slow_round(double v, int exp_bits, int frac_bits) {
    uint16_t sign = signbit(v) ? 0x8000 : 0, lo = 0,
             inf = (uint16_t)(((1 << exp_bits) - 1) << frac_bits);
    double mag = fabs(v);
    if (isinf(v))
        return sign | inf;
    for (uint16_t step = 0x4000; step; step >>= 1)      // the largest pattern not above mag
        if (lo + step < inf && value_of((uint32_t)(lo + step), exp_bits, frac_bits) <= mag)
            lo = (uint16_t)(lo + step);
    double below = value_of(lo, exp_bits, frac_bits);
    double above = lo + 1 == inf ? 2 * below - value_of((uint32_t)(lo - 1), exp_bits, frac_bits)
                                 : value_of((uint32_t)(lo + 1), exp_bits, frac_bits);
    bool up = mag - below > above - mag || (mag - below == above - mag && (lo & 1));
    return (uint16_t)(sign | (lo + up));
}

static float float_of(uint32_t b) {
    float f;
    memcpy(&f, &b, sizeof f);
    return f;
}

static void check_narrowing(uint32_t bits) {
    float f = float_of(bits);
    if (isnan(f)) {
        ck_assert(isnan(f16_to_f32(f32_to_f16(f))) && isnan(bf16_to_f32(f32_to_bf16(f))));
        return;
    }
    ck_assert_msg(f32_to_f16(f) == slow_round((double)f, 5, 10), "f16 of %08x", bits);
    ck_assert_msg(f32_to_bf16(f) == slow_round((double)f, 8, 7), "bf16 of %08x", bits);
    ck_assert_msg(f64_to_f16((double)f) == f32_to_f16(f), "f64 to f16 of %08x", bits);
}

START_TEST(narrowing) {
    uint32_t x = 1;
    for (int i = 0; i < 300000; i++) {
        x = x * 1664525 + 1013904223;
        check_narrowing(x);
    }
    // Every f16 and bf16 value's neighbourhood, and the midpoints between two of them.
    for (uint32_t b = 0; b < 65536; b++) {
        uint32_t at = b << 16;
        for (int k = -1; k <= 1; k++) {
            check_narrowing(at + (uint32_t)k);
            check_narrowing(at + 0x8000 + (uint32_t)k);
        }
        double mid = (value_of(b, 5, 10) + value_of(b + 1, 5, 10)) / 2;
        if (isfinite(mid) && (b & 0x7fff) < 0x7bff) {
            ck_assert_uint_eq(f64_to_f16(mid), slow_round(mid, 5, 10));
            ck_assert_uint_eq(f64_to_f16(nextafter(mid, 1e9)),
                              slow_round(nextafter(mid, 1e9), 5, 10));
            ck_assert_uint_eq(f64_to_f16(nextafter(mid, -1e9)),
                              slow_round(nextafter(mid, -1e9), 5, 10));
        }
    }
    ck_assert_uint_eq(f32_to_bf16(1.7f), f32_to_bf16(1.703125f));
    ck_assert_uint_eq(f32_to_f16(65519.996f), 0x7bff);
    ck_assert_uint_eq(f32_to_f16(65520.0f), 0x7c00);
    // One rounding: through f32 this would tie and go down.
    ck_assert_uint_eq(f64_to_f16(1.0 + 0x1p-11 + 0x1p-40), 0x3c01);
}
END_TEST

START_TEST(spelling) {
    for (int d = DT_none + 1; d < DT_count; d++) {
        ck_assert_int_eq(dtype_from_abbr(dtype_info[d].abbr), d);
        ck_assert_int_eq(dtype_from_torch(dtype_info[d].torch_name), d);
        if (dtype_info[d].scalar_type >= 0)
            ck_assert_int_eq(dtype_from_scalar_type(dtype_info[d].scalar_type), d);
    }
    ck_assert_int_eq(dtype_from_torch("torch.long"), DT_i64);
    ck_assert_int_eq(dtype_from_torch("float"), DT_f32);
    ck_assert_int_eq(dtype_from_torch("floaty"), DT_none);
    ck_assert_int_eq(dtype_from_abbr("f"), DT_none);
    Device d;
    ck_assert(device_parse("cuda:3", &d) && d.type == DEV_cuda && d.index == 3);
    ck_assert(device_parse("cpu", &d) && d.index == -1);
    ck_assert(!device_parse("cuda:", &d) && !device_parse("cpux", &d) &&
              !device_parse("cuda:-1", &d));
}
END_TEST

Suite *suite_tensor_dtype(void) {
    const TTest *tests[] = {promotion, widening, narrowing, spelling};
    return unit_suite("tensor_dtype", tests, COUNT(tests));
}
