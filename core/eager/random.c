// random.c: PyTorch's CPU generator (MT19937) and the ops that draw from it, in PyTorch's order.
#include "core/eager/kernel.h"

#include <math.h>
#include <string.h>

#include "core/eager/loops.h"

enum { N = 624, M = 397, WIDE_FROM = 1 << 28 };

void generator_seed(Generator *g, uint64_t seed) {
    *g = (Generator){.left = 1, .seeded = true};
    g->state[0] = (uint32_t)seed;
    for (int i = 1; i < N; i++)
        g->state[i] = 1812433253u * (g->state[i - 1] ^ (g->state[i - 1] >> 30)) + (uint32_t)i;
}

static uint32_t mix(uint32_t u, uint32_t v) {
    return (u & 0x80000000u) | (v & 0x7fffffffu);
}

static uint32_t twist(uint32_t u, uint32_t v) {
    return mix(u, v) >> 1 ^ (-(v & 1) & 0x9908b0dfu);
}

VECTORED static void next_state(uint32_t *p) {
    for (int j = 0; j < N - M; j++)
        p[j] = p[j + M] ^ twist(p[j], p[j + 1]);
    for (int j = N - M; j < N - 1; j++)
        p[j] = p[j + M - N] ^ twist(p[j], p[j + 1]);
    p[N - 1] = p[M - 1] ^ twist(p[N - 1], p[0]);
}

static inline uint32_t temper(uint32_t y) {
    y ^= y >> 11;
    y ^= y << 7 & 0x9d2c5680u;
    y ^= y << 15 & 0xefc60000u;
    return y ^ y >> 18;
}

// As many are drawn at once.
enum { DRAWN = 128 };

VECTORED static void temper_all(int n, const uint32_t *state, uint32_t *out) {
    for (int i = 0; i < n; i++)
        out[i] = temper(state[i]);
}

static void draw_many(Generator *g, int n, uint32_t *out) {
    while (n > 0) {
        if (g->left == 1) {
            next_state(g->state);
            g->left = N + 1;
            g->next = 0;
        }
        int m = n < g->left - 1 ? n : g->left - 1;
        temper_all(m, g->state + g->next, out);
        g->left -= m;
        g->next += m;
        out += m;
        n -= m;
    }
}

static inline uint32_t draw(Generator *g) {
    if (--g->left == 0) {
        next_state(g->state);
        g->left = N;
        g->next = 0;
    }
    return temper(g->state[g->next++]);
}

uint32_t generator_u32(Generator *g) {
    return draw(g);
}

uint64_t generator_u64(Generator *g) {
    uint64_t hi = generator_u32(g), lo = generator_u32(g);
    return hi << 32 | lo;
}

double random_unit(Generator *g) {
    return (double)(generator_u64(g) & ((1ull << 53) - 1)) * 0x1p-53;
}

Generator *random_generator(K *k) {
    Generator *g = k->x->c->generator;
    if (!g || !g->seeded)
        k_fail(k, "RuntimeError: %s draws random numbers, and there is no generator",
               k->op->qualname);
    return g && g->seeded ? g : NULL;
}

// In [from, to): 24 bits for float, 53 for double, 8 and 11 for bf16 and f16.
static double uniform(Generator *g, DType d, double from, double to) {
    double x;
    if (d == DT_f64)
        x = random_unit(g);
    else if (d == DT_bf16 || d == DT_f16)
        x = (double)(generator_u32(g) & (d == DT_bf16 ? 0xffu : 0x7ffu)) *
            (d == DT_bf16 ? 0x1p-8 : 0x1p-11);
    else
        x = (double)((float)(generator_u32(g) & ((1u << 24) - 1)) * 0x1p-24f);
    return d == DT_f64 ? x * (to - from) + from
                       : round_to(d, (double)((float)x * (float)(to - from) + (float)from));
}

// Numbers are drawn in the order of t's memory, as TensorIterator walks it: a transposed matrix
// gets them column by column. p is broadcast to t, or NULL.
static Walk walk_drawn(const Tensor *t, const Tensor *p) {
    int64_t size[TENSOR_DIMS], stride[2][TENSOR_DIMS], wide[TENSOR_DIMS] = {0};
    int order[TENSOR_DIMS]; // innermost first
    if (p)
        broadcast_strides(p, t->ndim, t->size, wide);
    for (int i = 0; i < t->ndim; i++) {
        order[i] = t->ndim - 1 - i;
        for (int k = i; k > 0; k--) {
            int64_t in = t->stride[order[k]], out = t->stride[order[k - 1]];
            if (!in || !out || in >= out)
                break;
            int swap = order[k];
            order[k] = order[k - 1];
            order[k - 1] = swap;
        }
    }
    for (int i = 0; i < t->ndim; i++) {
        int from = order[t->ndim - 1 - i];
        size[i] = t->size[from];
        stride[0][i] = t->stride[from];
        stride[1][i] = wide[from];
    }
    const int64_t *const both[2] = {stride[0], stride[1]};
    return walk_dims(t->ndim, size, both, 2);
}

// Dense floats, in the order of memory.
VECTORED static void scale_drawn(int n, const uint32_t *drawn, float *p, float from, float to) {
    for (int i = 0; i < n; i++)
        p[i] = (float)(int32_t)(drawn[i] & ((1u << 24) - 1)) * 0x1p-24f * (to - from) + from;
}

static void fill_uniform_f32(Generator *g, float *p, int64_t n, float from, float to) {
    uint32_t drawn[DRAWN];
    for (int64_t i = 0; i < n; i += DRAWN) {
        int m = n - i < DRAWN ? (int)(n - i) : DRAWN;
        draw_many(g, m, drawn);
        scale_drawn(m, drawn, p + i, from, to);
    }
}

static void fill_uniform(Generator *g, const Tensor *t, double from, double to) {
    if (t->dtype == DT_f32 && tensor_is_contiguous(t)) {
        fill_uniform_f32(g, tensor_data(t), tensor_numel(t), (float)from, (float)to);
        return;
    }
    WALK (w, walk_drawn(t, NULL))
        put_d(t, w.at[0], uniform(g, t->dtype, from, to));
}

// at::normal_distribution<double>, which keeps the second of a pair.
static double normal_pair(Generator *g, double mean, double std) {
    if (g->has_normal) {
        g->has_normal = false;
        return g->next_normal * std + mean;
    }
    double u1 = random_unit(g);
    double u2 = random_unit(g);
    double r = sqrt(-2 * log1p(-u2)), theta = 2 * M_PI * u1;
    g->next_normal = r * sin(theta);
    g->has_normal = true;
    return r * cos(theta) * std + mean;
}

// Sixteen uniform numbers into as many normal ones: Box and Muller's transform of halves. Every
// step is rounded to the tensor's dtype.
static void normal_16(const Tensor *t, int64_t at, double mean, double std) {
    DType d = t->dtype;
    double two_pi = d == DT_f32 ? (double)(2.0f * (float)M_PI) : 2 * M_PI;
    mean = round_to(d, mean);
    std = round_to(d, std);
    for (int j = 0; j < 8; j++) {
        double u1 = round_to(d, 1 - get_d(t, at + j)), u2 = get_d(t, at + j + 8);
        double r = round_to(d, -2 * round_to(d, log(u1))), theta = round_to(d, two_pi * u2);
        r = round_to(d, sqrt(r));
        double x = round_to(d, r * round_to(d, cos(theta))),
               y = round_to(d, r * round_to(d, sin(theta)));
        if (d != DT_f32) { // there the product is added unrounded
            x = round_to(d, x * std);
            y = round_to(d, y * std);
        }
        put_d(t, at + j, d == DT_f32 ? fma(x, std, mean) : x + mean);
        put_d(t, at + j + 8, d == DT_f32 ? fma(y, std, mean) : y + mean);
    }
}

// Each function over a row of its own: sine and cosine of one angle would become one call.
VECTORED static void logs(int64_t n, const float *x, float *y) {
    for (int64_t i = 0; i < n; i++)
        y[i] = (float)log((double)x[i]);
}

VECTORED static void cosines(int64_t n, const float *x, float *y) {
    for (int64_t i = 0; i < n; i++)
        y[i] = (float)cos((double)x[i]);
}

VECTORED static void sines(int64_t n, const float *x, float *y) {
    for (int64_t i = 0; i < n; i++)
        y[i] = (float)sin((double)x[i]);
}

// The same of dense floats, groups of sixteen together.
VECTORED static void normal_f32(float *p, int64_t n, double mean, double std) {
    enum { GROUPS = 32, HALF = 8 * GROUPS };
    double m = (double)(float)mean, s = (double)(float)std;
    float r[HALF], theta[HALF], c[HALF], z[HALF];
    for (int64_t at = 0; at + 16 <= n; at += 2 * HALF) {
        int64_t groups = (n - at) / 16 < GROUPS ? (n - at) / 16 : GROUPS, half = 8 * groups;
        for (int64_t i = 0; i < half; i++) {
            const float *u = p + at + i / 8 * 16 + i % 8;
            r[i] = 1 - u[0];
            theta[i] = (2.0f * (float)M_PI) * u[8];
        }
        logs(half, r, r);
        cosines(half, theta, c);
        sines(half, theta, z);
        for (int64_t i = 0; i < half; i++) {
            float *to = p + at + i / 8 * 16 + i % 8, root = sqrtf(-2 * r[i]);
            to[0] = (float)__builtin_fma((double)(root * c[i]), s, m);
            to[8] = (float)__builtin_fma((double)(root * z[i]), s, m);
        }
    }
}

static bool fill_normal(K *k, Tensor *t, double mean, double std) {
    Generator *g = random_generator(k);
    int64_t n = tensor_numel(t);
    if (!g)
        return false;
    if (n < 16 || !tensor_is_contiguous(t)) {
        WALK (w, walk_drawn(t, NULL))
            put_d(t, w.at[0], normal_pair(g, mean, std));
        return true;
    }
    fill_uniform(g, t, 0, 1);
    if (t->dtype == DT_f32)
        normal_f32(tensor_data(t), n, mean, std);
    else
        for (int64_t i = 0; i + 16 <= n; i += 16)
            normal_16(t, i, mean, std);
    if (n % 16) { // the last sixteen are drawn again
        for (int64_t i = n - 16; i < n; i++)
            put_d(t, i, uniform(g, t->dtype, 0, 1));
        normal_16(t, n - 16, mean, std);
    }
    return true;
}

// Integers in [low, low + range); from `wide` on they are made of 64 bits.
static bool fill_random(K *k, const Tensor *t, int64_t low, uint64_t range, uint64_t wide) {
    Generator *g = random_generator(k);
    if (!g)
        return false;
    if (t->dtype == DT_i64 && tensor_is_contiguous(t) && range && range < wide &&
        range <= UINT32_MAX) {
        int64_t *p = tensor_data(t), n = tensor_numel(t);
        uint32_t drawn[DRAWN];
        for (int64_t i = 0; i < n; i += DRAWN) {
            int m = n - i < DRAWN ? (int)(n - i) : DRAWN;
            draw_many(g, m, drawn);
            for (int j = 0; j < m; j++)
                p[i + j] = (int64_t)(uint64_t)(drawn[j] % (uint32_t)range) + low;
        }
        return true;
    }
    WALK (w, walk_drawn(t, NULL)) {
        uint64_t r = range >= wide || !range ? generator_u64(g) : generator_u32(g);
        // A range of 0 is that of all numbers.
        int64_t v = (int64_t)(range ? r % range + (uint64_t)low : r);
        if (dtype_is_float(t->dtype))
            put_d(t, w.at[0], (double)v);
        else
            put_i(t, w.at[0], v);
    }
    return true;
}

// In [from, to). What a float cannot hold moves the ends inwards, by one step there.
static bool fill_from_to(K *k, const Tensor *t, int64_t from, int64_t to) {
    static const int digits[DT_count] = {
        [DT_f32] = 24, [DT_f64] = 53, [DT_bf16] = 8, [DT_f16] = 11};
    int bits = digits[t->dtype];
    if (to <= from)
        return k_fail(k,
                      "RuntimeError: random_ expects 'from' to be less than 'to', but got "
                      "from=%lld >= to=%lld",
                      (long long)from, (long long)to);
    if (bits && from > -(1LL << 62) && to < 1LL << 62) {
        double low = round_to(t->dtype, (double)(from + 1)),
               high = round_to(t->dtype, (double)(to - 1));
        if (isfinite(low) && low < (double)from)
            from = (int64_t)low + (1LL << (ilogb(fabs((double)(from + 1))) - bits + 1));
        if (isfinite(high) && high >= (double)to)
            to = (int64_t)high - (1LL << (ilogb(fabs((double)(to - 1))) - bits + 1));
    }
    return fill_random(k, t, from, (uint64_t)to - (uint64_t)from, WIDE_FROM);
}

// rand, rand_like
bool kern_rand(K *k) {
    Generator *g = random_generator(k);
    if (g)
        fill_uniform(g, k->res[0], 0, 1);
    return g != NULL;
}

bool kern_randn(K *k) {
    return fill_normal(k, k->res[0], 0, 1);
}

bool kern_prims_normal(K *k) {
    return fill_normal(k, k->res[0], kf(k, karg(k, "mean"), 0), kf(k, karg(k, "std"), 1));
}

// randint(high, size), (low, high, size), and their likes
bool kern_randint(K *k) {
    int low = op_arg_index(k->op, "low");
    int64_t from = low >= 0 ? ki(k, low, 0) : 0, to = ki(k, karg(k, "high"), 0);
    return fill_from_to(k, k->res[0], from, to);
}

bool kern_randperm(K *k) {
    Generator *g = random_generator(k);
    const Tensor *t = k->res[0];
    int64_t n = tensor_numel(t);
    if (!g)
        return false;
    if (t->dtype == DT_i64 && (t->stride[0] == 1 || n < 2)) {
        int64_t *p = tensor_data(t);
        for (int64_t i = 0; i < n; i++)
            p[i] = i;
        for (int64_t i = 0; i < n - 1; i++) {
            int64_t z = i + (int64_t)(draw(g) % (uint64_t)(n - i)), a = p[i];
            p[i] = p[z];
            p[z] = a;
        }
        return true;
    }
    for (int64_t i = 0; i < n; i++)
        put_i(t, i * t->stride[0], i);
    for (int64_t i = 0; i < n - 1; i++) {
        int64_t z = (int64_t)(generator_u32(g) % (uint64_t)(n - i)), a = get_i(t, i * t->stride[0]);
        put_i(t, i * t->stride[0], get_i(t, (z + i) * t->stride[0]));
        put_i(t, (z + i) * t->stride[0], a);
    }
    return true;
}

// What a random op writes: its argument (`uniform_`), else its result.
static Tensor *target_of(K *k) {
    if (k->n_res)
        return k->res[0];
    k->out = k->args[0];
    return k->in[0];
}

// uniform, normal, exponential, … and their in-place forms: (self, parameters …, generator)
bool kern_fill_random(K *k) {
    static const char *const names[] = {"uniform", "normal",     "exponential",
                                        "cauchy",  "log_normal", "geometric"};
    int which = 0;
    while (which < COUNT(names) - 1 && !str_starts(k->op->name, names[which]))
        which++;
    Tensor *t = target_of(k);
    Generator *g = random_generator(k);
    if (!g)
        return false;
    if (which == 0) {
        fill_uniform(g, t, kf(k, 1, 0), kf(k, 2, 1));
        return true;
    }
    if (which == 1)
        return fill_normal(k, t, kf(k, 1, 0), kf(k, 2, 1));
    WALK (w, walk_drawn(t, NULL)) {
        double a = kf(k, 1, 0), b = k->op->n_args > 2 ? kf(k, 2, 1) : 1;
        if (which == 4) {
            put_d(t, w.at[0], exp(normal_pair(g, a, b)));
            continue;
        }
        double u = random_unit(g);
        put_d(t, w.at[0],
              which == 2   ? -1 / a * log1p(-u)
              : which == 3 ? a + b * tan(M_PI * (u - 0.5))
                           : ceil(log(u) / log1p(-a)));
    }
    return true;
}

bool kern_random(K *k) {
    const Tensor *t = target_of(k);
    static const uint64_t ranges[] = {[DT_f32] = (1ull << 24) + 1,
                                      [DT_f64] = (1ull << 53) + 1,
                                      [DT_bf16] = 257,
                                      [DT_f16] = 2049,
                                      [DT_i64] = 1ull << 63,
                                      [DT_i32] = 1ull << 31,
                                      [DT_i16] = 1 << 15,
                                      [DT_i8] = 1 << 7,
                                      [DT_u8] = 1 << 8,
                                      [DT_b8] = 2};
    if (strcmp(k->op->overload, "from") == 0 || strcmp(k->op->overload, "to") == 0) {
        bool from = strcmp(k->op->overload, "from") == 0;
        bool open = from && !k_given(k, 2) && t->dtype < COUNT(ranges);
        if (open && ki(k, 1, 0) > (int64_t)(ranges[t->dtype] - 1))
            return k_fail(k, "RuntimeError: from is out of bounds for %s",
                          dtype_info[t->dtype].torch_name);
        if (open)
            return fill_random(k, t, ki(k, 1, 0), ranges[t->dtype] - (uint64_t)ki(k, 1, 0),
                               WIDE_FROM);
        return fill_from_to(k, t, from ? ki(k, 1, 0) : 0, ki(k, from ? 2 : 1, 0));
    }
    return t->dtype < COUNT(ranges) && fill_random(k, t, 0, ranges[t->dtype], 1ull << 32);
}

static void bernoulli_dense(Generator *g, const Tensor *t, double chance) {
    uint8_t *bytes = tensor_data(t);
    float *floats = tensor_data(t);
    uint32_t drawn[DRAWN];
    for (int64_t i = 0, n = tensor_numel(t); i < n; i++) {
        int at = (int)(i % (DRAWN / 2)) * 2;
        if (at == 0)
            draw_many(g, n - i < DRAWN / 2 ? (int)(n - i) * 2 : DRAWN, drawn);
        uint64_t hi = drawn[at], lo = drawn[at + 1];
        bool one = (double)((hi << 32 | lo) & ((1ull << 53) - 1)) * 0x1p-53 < chance;
        if (t->dtype == DT_b8)
            bytes[i] = one;
        else
            floats[i] = one;
    }
}

// One number a draw: at::bernoulli_distribution<double>.
bool random_bernoulli(K *k, const Tensor *t, const Tensor *p, double fixed) {
    Generator *g = random_generator(k);
    if (!g)
        return false;
    if (!p && fixed >= 0 && fixed <= 1 && tensor_is_contiguous(t) &&
        (t->dtype == DT_b8 || t->dtype == DT_f32)) {
        bernoulli_dense(g, t, fixed);
        return true;
    }
    WALK (w, walk_drawn(t, p)) {
        double chance = p ? get_d(p, w.at[1]) : fixed;
        if (!(chance >= 0 && chance <= 1))
            return k_fail(k, "RuntimeError: bernoulli_ expects p to be in [0, 1], but got p=%g",
                          chance);
        double u = p && p->dtype != DT_f64
                       ? (double)((float)(generator_u32(g) & ((1u << 24) - 1)) * 0x1p-24f)
                       : random_unit(g);
        put_i(t, w.at[0], u < chance);
    }
    return true;
}

// bernoulli(self), bernoulli.p(self, p)
bool kern_bernoulli(K *k) {
    bool fixed = k->op->n_args > 1 && strcmp(k->op->overload, "p") == 0;
    return random_bernoulli(k, k->res[0], fixed ? NULL : k->in[0], kf(k, 1, 0.5));
}

// bernoulli_.float, bernoulli_.Tensor
bool kern_bernoulli_(K *k) {
    k->out = k->args[0];
    return random_bernoulli(k, k->in[0], k->args[1].kind == VAL_tensor ? k->in[1] : NULL,
                            kf(k, 1, 0.5));
}

// normal(mean, std): tensors or numbers
bool kern_normal(K *k) {
    Value mean = k->args[0], std = k->args[1];
    const Tensor *spread = std.kind == VAL_tensor ? tensor_at(&std) : NULL;
    if (spread)
        WALK (w, walk_tensors(&spread, 1))
            if (!(get_d(spread, w.at[0]) >= 0))
                return k_fail(k, "RuntimeError: normal expects all elements of std >= 0.0");
    if (!fill_normal(k, k->res[0], 0, 1))
        return false;
    Value z = tensor_value(k->x, k->res[0]);
    z = CALL(k, aten_mul_Tensor, z, std);
    z = CALL(k, aten_add_Tensor, z, mean);
    return z.kind == VAL_tensor && copy_into(k->x, k->res[0], tensor_at(&z));
}
