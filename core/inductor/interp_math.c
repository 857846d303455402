// interp_math.c: one operation of the loop IR on numbers, with PyTorch's rules for NaN, division
// and overflow.
#include <math.h>
#include <string.h>

#include "core/inductor/interp_impl.h"

static double quiet_nan(void) {
    return NAN;
}

Scalar scalar_round(Scalar v, DType d) {
    switch (d) {
    case DT_f32:
        v.f = (double)(float)v.f;
        break;
    case DT_bf16:
        v.f = (double)bf16_to_f32(f32_to_bf16((float)v.f));
        break;
    case DT_f16:
        v.f = (double)f16_to_f32(f32_to_f16((float)v.f));
        break;
    case DT_i32:
        v.i = (int32_t)(uint32_t)v.i;
        break;
    case DT_i16:
        v.i = (int16_t)(uint16_t)v.i;
        break;
    case DT_i8:
        v.i = (int64_t)(((uint64_t)v.i & 0xff) ^ 0x80) - 0x80; // the sign of bit 7
        break;
    case DT_u8:
        v.i = (uint8_t)v.i;
        break;
    case DT_u16:
        v.i = (uint16_t)v.i;
        break;
    case DT_u32:
        v.i = (uint32_t)v.i;
        break;
    case DT_b8:
        v.i = v.i != 0;
        break;
    default:
        break;
    }
    return v;
}

// What does not fit becomes the smallest number, as the processor has it.
static int64_t to_int(double f, DType to) {
    double limit = to == DT_i32 ? 0x1p31 : 0x1p63;
    int64_t least = to == DT_i32 ? INT32_MIN : INT64_MIN;
    return f >= -limit && f < limit ? (int64_t)f : least;
}

Scalar scalar_convert(Scalar v, DType from, DType to) {
    Scalar out = v;
    if (dtype_is_float(to))
        out.f = dtype_is_float(from) ? v.f : from == DT_u64 ? (double)(uint64_t)v.i : (double)v.i;
    else if (to == DT_b8)
        out.i = dtype_is_float(from) ? v.f != 0 : v.i != 0;
    else if (dtype_is_float(from))
        out.i = to_int(v.f, to);
    // An integer of 64 bits reaches float32 in one rounding.
    if (to == DT_f32 && !dtype_is_float(from))
        out.f = from == DT_u64 ? (double)(float)(uint64_t)v.i : (double)(float)v.i;
    return scalar_round(out, to);
}

Scalar scalar_load(const void *base, int64_t at, DType d) {
    const char *p = (const char *)base + at * dtype_info[d].bytes;
    Scalar v = {.i = 0};
    float f;
    uint16_t h;
    switch (dtype_info[d].bytes) {
    case 1:
        v.i = *(const uint8_t *)p;
        if (d == DT_i8 && v.i > 127)
            v.i -= 256;
        break;
    case 2:
        memcpy(&h, p, 2);
        v.i = d == DT_i16 ? (int16_t)h : h;
        if (dtype_is_float(d))
            v.f = (double)(d == DT_bf16 ? bf16_to_f32(h) : f16_to_f32(h));
        break;
    case 4:
        memcpy(&f, p, 4);
        if (d == DT_f32) {
            v.f = (double)f;
        } else {
            int32_t i;
            memcpy(&i, p, 4);
            v.i = d == DT_u32 ? (int64_t)(uint32_t)i : i;
        }
        break;
    default:
        memcpy(&v, p, 8);
        break;
    }
    if (d == DT_b8)
        v.i = v.i != 0;
    return v;
}

void scalar_store(void *base, int64_t at, DType d, Scalar v) {
    char *p = (char *)base + at * dtype_info[d].bytes;
    float f = (float)v.f;
    uint16_t h = d == DT_bf16 ? f32_to_bf16(f) : d == DT_f16 ? f32_to_f16(f) : (uint16_t)v.i;
    if (d == DT_f32)
        memcpy(p, &f, 4);
    else if (dtype_info[d].bytes == 2)
        memcpy(p, &h, 2);
    else
        memcpy(p, &v, (size_t)dtype_info[d].bytes); // the low bytes come first
}

Scalar scalar_bits(Scalar v, DType from, DType to) {
    char raw[8] = {0};
    scalar_store(raw, 0, from, v);
    return scalar_load(raw, 0, to);
}

Scalar scalar_of_value(const Value *v, DType d) {
    Scalar s = {.i = 0};
    double f;
    if (v->kind == VAL_bool)
        return scalar_convert((Scalar){.i = v->b}, DT_b8, d);
    if (val_as_int(v, &s.i))
        return scalar_convert(s, DT_i64, d);
    if (val_as_float(v, &f))
        return scalar_convert((Scalar){.f = f}, DT_f64, d);
    return s;
}

DType scalar_type(const LoopOp *op, const DType *arg, DType *in) {
    const LoopOpInfo *info = &loop_op_info[op->kind];
    int first = op->kind == LOOP_where ? 1 : 0;
    DType d = info->n_args > first ? arg[first] : DT_f32;
    for (int i = first + 1; i < info->n_args; i++)
        d = dtype_promote(d, arg[i]);
    if ((info->cls == LC_MATH || op->kind == LOOP_reciprocal) && !dtype_is_float(d))
        d = DT_f32;
    *in = d;
    switch (info->cls) {
    case LC_COMPARE:
    case LC_LOGIC:
        return DT_b8;
    case LC_ROUND:
        return str_ends(info->name, "_to_int") ? (dtype_is_int(op->dtype) ? op->dtype : DT_i64) : d;
    default:
        return d;
    }
}

// --- integers

static int bits_of(DType d) {
    return dtype_info[d].bytes * 8;
}

static int64_t int_quotient(int64_t a, int64_t b) {
    return b == 0 ? 0 : b == -1 ? (int64_t)(0 - (uint64_t)a) : a / b;
}

static int64_t int_rest(int64_t a, int64_t b) {
    return b == 0 || b == -1 ? 0 : a % b;
}

static bool rounds_down(int64_t rest, int64_t b) {
    return rest != 0 && (rest < 0) != (b < 0);
}

static int64_t int_power(int64_t a, int64_t b) {
    if (b < 0)
        return a == 1 ? 1 : a == -1 ? (b % 2 ? -1 : 1) : 0;
    uint64_t r = 1, x = (uint64_t)a;
    for (; b; b >>= 1, x *= x)
        if (b & 1)
            r *= x;
    return (int64_t)r;
}

static int64_t int_shift(LoopOpKind kind, int64_t a, int64_t b, DType d) {
    bool in_range = b >= 0 && b < bits_of(d);
    if (kind == LOOP_bitwise_left_shift)
        return in_range ? (int64_t)((uint64_t)a << b) : 0;
    return in_range ? a >> b : a < 0 ? -1 : 0;
}

static int64_t apply_int(LoopOpKind kind, DType d, int64_t a, int64_t b) {
    switch (kind) {
    case LOOP_add:
        return (int64_t)((uint64_t)a + (uint64_t)b);
    case LOOP_sub:
        return (int64_t)((uint64_t)a - (uint64_t)b);
    case LOOP_mul:
        return (int64_t)((uint64_t)a * (uint64_t)b);
    case LOOP_square:
        return (int64_t)((uint64_t)a * (uint64_t)a);
    case LOOP_truediv:
    case LOOP_div:
    case LOOP_truncdiv:
        return int_quotient(a, b);
    case LOOP_floordiv:
        return int_quotient(a, b) - rounds_down(int_rest(a, b), b);
    case LOOP_mod:
    case LOOP_fmod:
        return int_rest(a, b);
    case LOOP_remainder:
        return int_rest(a, b) + (rounds_down(int_rest(a, b), b) ? b : 0);
    case LOOP_pow:
        return int_power(a, b);
    case LOOP_neg:
        return (int64_t)(0 - (uint64_t)a);
    case LOOP_abs:
        return a < 0 ? (int64_t)(0 - (uint64_t)a) : a;
    case LOOP_relu:
        return a < 0 ? 0 : a;
    case LOOP_maximum:
        return a > b ? a : b;
    case LOOP_minimum:
        return a < b ? a : b;
    case LOOP_sign:
        return (a > 0) - (a < 0);
    case LOOP_bitwise_and:
        return a & b;
    case LOOP_bitwise_or:
        return a | b;
    case LOOP_bitwise_xor:
        return a ^ b;
    case LOOP_bitwise_not:
        return d == DT_b8 ? !a : ~a;
    case LOOP_bitwise_left_shift:
    case LOOP_bitwise_right_shift:
        return int_shift(kind, a, b, d);
    default:
        return a; // identity, roundings of what is round
    }
}

// --- floats

static double float_remainder(double a, double b) {
    double r = fmod(a, b);
    return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}

// Python's floor division, in the type's own precision at each step.
static double float_floordiv(double a, double b, DType d) {
    if (b == 0)
        return a / b;
    double r = fmod(a, b);
    double q = scalar_round((Scalar){.f = scalar_round((Scalar){.f = a - r}, d).f / b}, d).f;
    if (r != 0 && (b < 0) != (r < 0))
        q -= 1;
    if (q == 0)
        return copysign(0, a / b);
    double n = floor(q);
    return q - n > 0.5 ? n + 1 : n;
}

// Series in 1/x behind the recurrence psi(x) = psi(x + 1) - 1/x (Abramowitz and Stegun 6.3).
static double digamma(double x) {
    if (x == 0)
        return copysign(INFINITY, -x);
    if (x < 0) {
        double whole, part = modf(x, &whole);
        return part == 0
                   ? quiet_nan()
                   : digamma(1 - x) - 3.14159265358979323846 / tan(3.14159265358979323846 * part);
    }
    double sum = 0;
    while (x < 10) {
        sum -= 1 / x;
        x += 1;
    }
    double y = 1 / (x * x);
    double tail =
        y * (1.0 / 12 - y * (1.0 / 120 - y * (1.0 / 252 - y * (1.0 / 240 - y * (1.0 / 132)))));
    return sum + log(x) - 0.5 / x - tail;
}

// Newton's method from a logarithmic start (S. Winitzki).
static double erfinv(double y) {
    if (fabs(y) < 1e-9)
        return y * 0.88622692545275801365;
    if (!(fabs(y) < 1))
        return fabs(y) == 1 ? copysign(INFINITY, y) : quiet_nan();
    double l = log1p(-y * y), t = 2 / (3.14159265358979323846 * 0.147) + l / 2;
    double x = copysign(sqrt(sqrt(t * t - l / 0.147) - t), y);
    for (int i = 0; i < 4; i++)
        x -= (erf(x) - y) / (1.12837916709551257390 * exp(-x * x));
    return x;
}

// Of one argument, by LoopOpKind; NULL: computed below.
static double (*const math_fn[LOOP_n_kinds])(double) = {
    [LOOP_exp] = exp,         [LOOP_exp2] = exp2,   [LOOP_expm1] = expm1,   [LOOP_log] = log,
    [LOOP_log1p] = log1p,     [LOOP_log2] = log2,   [LOOP_log10] = log10,   [LOOP_sqrt] = sqrt,
    [LOOP_sin] = sin,         [LOOP_cos] = cos,     [LOOP_tan] = tan,       [LOOP_asin] = asin,
    [LOOP_acos] = acos,       [LOOP_atan] = atan,   [LOOP_sinh] = sinh,     [LOOP_cosh] = cosh,
    [LOOP_tanh] = tanh,       [LOOP_asinh] = asinh, [LOOP_acosh] = acosh,   [LOOP_atanh] = atanh,
    [LOOP_erf] = erf,         [LOOP_erfc] = erfc,   [LOOP_erfinv] = erfinv, [LOOP_lgamma] = lgamma,
    [LOOP_digamma] = digamma,
};

static double apply_math(LoopOpKind kind, DType d, double a, double b) {
    int exponent = 0;
    if (math_fn[kind])
        return math_fn[kind](a);
    switch (kind) {
    case LOOP_frexp:
        return frexp(a, &exponent);
    case LOOP_frexp_exponent:
        frexp(a, &exponent);
        return exponent;
    case LOOP_rsqrt:
        return 1 / sqrt(a);
    case LOOP_square:
        return a * a;
    case LOOP_atan2:
        return atan2(a, b);
    case LOOP_hypot:
        return hypot(a, b);
    case LOOP_sigmoid:
        return 1 / (1 + exp(-a));
    default:
        if (loop_op_info[kind].c_expr[0] == '@')
            return eager_special_call(eager_special(loop_op_info[kind].name, d != DT_f64), a, b);
        return a;
    }
}

static double apply_float(LoopOpKind kind, DType d, double a, double b, double c) {
    switch (kind) {
    case LOOP_add:
        return a + b;
    case LOOP_sub:
        return a - b;
    case LOOP_mul:
        return a * b;
    case LOOP_truediv:
        return a / b;
    case LOOP_div:
    case LOOP_truncdiv:
        return trunc(scalar_round((Scalar){.f = a / b}, d).f);
    case LOOP_floordiv:
        return float_floordiv(a, b, d);
    case LOOP_mod:
    case LOOP_fmod:
        return fmod(a, b);
    case LOOP_remainder:
        return float_remainder(a, b);
    case LOOP_pow:
        return pow(a, b);
    case LOOP_fma:
        return d == DT_f64 ? fma(a, b, c) : (double)fmaf((float)a, (float)b, (float)c);
    case LOOP_neg:
        return -a;
    case LOOP_abs:
        return fabs(a);
    case LOOP_relu:
        return a < 0 ? 0 : a;
    case LOOP_maximum:
        return a != a || b != b ? quiet_nan() : a > b ? a : b;
    case LOOP_minimum:
        return a != a || b != b ? quiet_nan() : a < b ? a : b;
    case LOOP_reciprocal:
        return 1 / a;
    case LOOP_sign:
        return (a > 0) - (a < 0);
    case LOOP_copysign:
        return copysign(a, b);
    case LOOP_nextafter:
        return d == DT_f64 ? nextafter(a, b) : (double)nextafterf((float)a, (float)b);
    case LOOP_ceil:
    case LOOP_ceil_to_int:
        return ceil(a);
    case LOOP_floor:
    case LOOP_floor_to_int:
        return floor(a);
    case LOOP_trunc:
    case LOOP_trunc_to_int:
        return trunc(a);
    case LOOP_round:
    case LOOP_round_to_int:
        return nearbyint(a);
    default:
        return apply_math(kind, d, a, b);
    }
}

// --- truth

static int order_of(bool is_float, const Scalar *v, LoopOpKind kind) {
    if (is_float) {
        double a = v[0].f, b = v[1].f;
        return kind == LOOP_eq   ? a == b
               : kind == LOOP_ne ? a != b
               : kind == LOOP_lt ? a < b
               : kind == LOOP_le ? a <= b
               : kind == LOOP_gt ? a > b
                                 : a >= b;
    }
    int64_t a = v[0].i, b = v[1].i;
    return kind == LOOP_eq   ? a == b
           : kind == LOOP_ne ? a != b
           : kind == LOOP_lt ? a < b
           : kind == LOOP_le ? a <= b
           : kind == LOOP_gt ? a > b
                             : a >= b;
}

static int64_t apply_truth(LoopOpKind kind, bool is_float, const Scalar *v, int n) {
    bool a = is_float ? v[0].f != 0 : v[0].i != 0;
    bool b = n > 1 && (is_float ? v[1].f != 0 : v[1].i != 0);
    switch (kind) {
    case LOOP_isnan:
        return is_float && v[0].f != v[0].f;
    case LOOP_isinf:
        return is_float && isinf(v[0].f);
    case LOOP_signbit:
        return is_float ? signbit(v[0].f) != 0 : v[0].i < 0;
    case LOOP_and_:
    case LOOP_logical_and:
        return a && b;
    case LOOP_or_:
    case LOOP_logical_or:
        return a || b;
    case LOOP_logical_xor:
        return a != b;
    case LOOP_logical_not:
        return !a;
    default:
        return order_of(is_float, v, kind);
    }
}

Scalar scalar_apply(LoopOpKind kind, DType in, const Scalar *arg) {
    const LoopOpInfo *info = &loop_op_info[kind];
    bool is_float = dtype_is_float(in);
    if (kind == LOOP_where)
        return arg[0].i ? arg[1] : arg[2];
    if (info->cls == LC_COMPARE || info->cls == LC_LOGIC)
        return (Scalar){.i = apply_truth(kind, is_float, arg, info->n_args)};
    if (!is_float)
        return scalar_round(
            (Scalar){.i = apply_int(kind, in, arg[0].i, info->n_args > 1 ? arg[1].i : 0)}, in);
    double b = info->n_args > 1 ? arg[1].f : 0, c = info->n_args > 2 ? arg[2].f : 0;
    Scalar v = {.f = apply_float(kind, in, arg[0].f, b, c)};
    return scalar_round(v, dtype_compute(in));
}

// --- random numbers: Philox 4x32 with ten rounds (J. Salmon et al., SC 2011)

// Generated code for a CPU hands over the low halves of seed and offset.
static void philox(uint32_t key, uint32_t counter, uint32_t out[4]) {
    uint32_t x[4] = {counter, 0, 0, 0};
    uint32_t k[2] = {key, 0};
    for (int round = 0; round < 10; round++) {
        uint64_t a = UINT64_C(0xD2511F53) * x[0], b = UINT64_C(0xCD9E8D57) * x[2];
        uint32_t next[4] = {(uint32_t)(b >> 32) ^ x[1] ^ k[0], (uint32_t)b,
                            (uint32_t)(a >> 32) ^ x[3] ^ k[1], (uint32_t)a};
        memcpy(x, next, sizeof x);
        k[0] += 0x9E3779B9u;
        k[1] += 0xBB67AE85u;
    }
    memcpy(out, x, sizeof x);
}

// 31 bits as a float in [0, 1).
static float unit(uint32_t v) {
    return (float)(v & 0x7fffffffu) * 4.6566127342e-10f;
}

Scalar scalar_random(LoopOpKind kind, const Scalar *arg) {
    uint32_t r[4];
    philox((uint32_t)arg[0].i, (uint32_t)arg[1].i, r);
    if (kind == LOOP_rand)
        return (Scalar){.f = (double)unit(r[0])};
    if (kind == LOOP_randn) {
        double radius = sqrt(-2.0 * (double)logf(1 - unit(r[0])));
        double angle = 2 * 3.14159265358979323846 * (double)(1 - unit(r[1]));
        return scalar_round((Scalar){.f = radius * cos(angle)}, DT_f32);
    }
    uint64_t range = (uint64_t)arg[3].i - (uint64_t)arg[2].i;
    uint64_t v = (uint64_t)r[1] << 32 | r[0];
    return (Scalar){.i = range ? (int64_t)((uint64_t)arg[2].i + v % range) : arg[2].i};
}
