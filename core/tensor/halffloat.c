// halffloat.c: bf16 and f16 against f32 and f64. Rounding is to nearest, ties to even; a NaN stays
// a quiet NaN.
#include "core/tensor/dtype.h"

#include <string.h>

static uint32_t f32_bits(float v) {
    uint32_t b;
    memcpy(&b, &v, sizeof b);
    return b;
}

static float f32_of(uint32_t b) {
    float v;
    memcpy(&v, &b, sizeof v);
    return v;
}

float bf16_to_f32(uint16_t bits) {
    return f32_of((uint32_t)bits << 16);
}

uint16_t f32_to_bf16(float v) {
    uint32_t b = f32_bits(v);
    if ((b & 0x7fffffff) > 0x7f800000)
        return 0x7fc0;      // as PyTorch has every NaN
    return (uint16_t)((b + 0x7fff + (b >> 16 & 1)) >> 16);
}

float f16_to_f32(uint16_t bits) {
    uint32_t sign = (uint32_t)(bits & 0x8000) << 16, exp = bits >> 10 & 31, frac = bits & 0x3ff;
    if (exp == 31)
        return f32_of(sign | 0x7f800000 | frac << 13);
    if (exp)
        return f32_of(sign | (exp + 112) << 23 | frac << 13);
    float small = (float)frac * 0x1p-24f;       // denormal or zero, exact
    return sign ? -small : small;
}

// Shifts right, rounding to nearest even; shift in 1..63.
static uint64_t round_shift(uint64_t v, int shift) {
    uint64_t half = 1ull << (shift - 1), rest = v & ((1ull << shift) - 1);
    v >>= shift;
    return v + (rest > half || (rest == half && (v & 1)));
}

// A magnitude frac * 2^(exp - bits) with its leading one at position `bits`, to half precision.
static uint16_t to_half(uint16_t sign, int exp, uint64_t frac, int bits) {
    if (exp > 15)
        return sign | 0x7c00;
    int shift = bits - 10;
    uint64_t base = 0;
    if (exp < -14) {
        shift += -14 - exp;             // denormal: no implicit one
        if (shift > bits + 1)
            return sign;                // below half the smallest
    } else {
        base = (uint64_t)(exp + 14) << 10; // the leading one adds the last step of the exponent
    }
    return (uint16_t)(sign | (base + round_shift(frac, shift)));
}

uint16_t f32_to_f16(float v) {
    uint32_t b = f32_bits(v), mag = b & 0x7fffffff;
    uint16_t sign = b >> 16 & 0x8000;
    if (mag > 0x7f800000)
        return sign | 0x7e00 | (mag >> 13 & 0x3ff);
    if (mag < 0x00800000)
        return sign;                    // f32 denormals are far below f16's
    return to_half(sign, (int)(mag >> 23) - 127, (mag & 0x7fffff) | 0x800000, 23);
}

uint16_t f64_to_f16(double v) {
    uint64_t b;
    memcpy(&b, &v, sizeof b);
    uint64_t mag = b & 0x7fffffffffffffff;
    uint16_t sign = b >> 48 & 0x8000;
    if (mag > 0x7ff0000000000000)
        return sign | 0x7e00;
    if (mag < 0x0010000000000000)
        return sign;
    return to_half(sign, (int)(mag >> 52) - 1023, (mag & 0xfffffffffffff) | 0x10000000000000, 52);
}
