// random.c: PyTorch's CPU generator (MT19937) and the ops that draw from it, in PyTorch's order.
#include "core/eager/kernel.h"

#include <math.h>
#include <string.h>

enum { N = 624, M = 397 };

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
    return mix(u, v) >> 1 ^ (v & 1 ? 0x9908b0dfu : 0);
}

static void next_round(Generator *g) {
    uint32_t *p = g->state;
    g->left = N;
    g->next = 0;
    for (int j = N - M; j > 0; j--, p++)
        *p = p[M] ^ twist(p[0], p[1]);
    for (int j = M - 1; j > 0; j--, p++)
        *p = p[M - N] ^ twist(p[0], p[1]);
    *p = p[M - N] ^ twist(p[0], g->state[0]);
}

uint32_t generator_u32(Generator *g) {
    if (--g->left == 0)
        next_round(g);
    uint32_t y = g->state[g->next++];
    y ^= y >> 11;
    y ^= y << 7 & 0x9d2c5680u;
    y ^= y << 15 & 0xefc60000u;
    return y ^ y >> 18;
}

uint64_t generator_u64(Generator *g) {
    uint64_t hi = generator_u32(g), lo = generator_u32(g);
    return hi << 32 | lo;
}

static Generator *generator_of(K *k) {
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
        x = (double)(generator_u64(g) & ((1ull << 53) - 1)) * 0x1p-53;
    else if (d == DT_bf16 || d == DT_f16)
        x = (double)(generator_u32(g) & (d == DT_bf16 ? 0xffu : 0x7ffu)) *
            (d == DT_bf16 ? 0x1p-8 : 0x1p-11);
    else
        x = (double)((float)(generator_u32(g) & ((1u << 24) - 1)) * 0x1p-24f);
    return d == DT_f64 ? x * (to - from) + from
                       : round_to(d, (double)((float)x * (float)(to - from) + (float)from));
}

static void fill_uniform(Generator *g, const Tensor *t, double from, double to) {
    WALK (w, walk_tensors(&t, 1))
        put_d(t, w.at[0], uniform(g, t->dtype, from, to));
}

// at::normal_distribution<double>, which keeps the second of a pair.
static double normal_pair(Generator *g, double mean, double std) {
    if (g->has_normal) {
        g->has_normal = false;
        return g->next_normal * std + mean;
    }
    double u1 = (double)(generator_u64(g) & ((1ull << 53) - 1)) * 0x1p-53;
    double u2 = (double)(generator_u64(g) & ((1ull << 53) - 1)) * 0x1p-53;
    double r = sqrt(-2 * log1p(-u2)), theta = 2 * M_PI * u1;
    g->next_normal = r * sin(theta);
    g->has_normal = true;
    return r * cos(theta) * std + mean;
}

// Sixteen uniform numbers into as many normal ones: Box and Muller's transform of halves.
static void normal_16(const Tensor *t, int64_t at, double mean, double std) {
    for (int j = 0; j < 8; j++) {
        double u1 = 1 - get_d(t, at + j), u2 = get_d(t, at + j + 8);
        double r, theta;
        if (t->dtype == DT_f64) {
            r = sqrt(-2 * log(u1));
            theta = 2 * M_PI * u2;
        } else {
            r = (double)sqrtf(-2 * logf((float)u1));
            theta = (double)(2.0f * (float)M_PI * (float)u2);
        }
        put_d(t, at + j, r * cos(theta) * std + mean);
        put_d(t, at + j + 8, r * sin(theta) * std + mean);
    }
}

static bool fill_normal(K *k, Tensor *t, double mean, double std) {
    Generator *g = generator_of(k);
    int64_t n = tensor_numel(t);
    if (!g)
        return false;
    if (n < 16 || !tensor_is_contiguous(t)) {
        const Tensor *c = t;
        WALK (w, walk_tensors(&c, 1))
            put_d(t, w.at[0], normal_pair(g, mean, std));
        return true;
    }
    // Uniforms of the low floats are drawn as floats too.
    Tensor *u = t->dtype == DT_f64 || t->dtype == DT_f32 ? t : eager_like(k->x, t, t->dtype);
    if (!u)
        return false;
    fill_uniform(g, u, 0, 1);
    for (int64_t i = 0; i + 16 <= n; i += 16)
        normal_16(u, i, mean, std);
    if (n % 16) {
        for (int64_t i = n - 16; i < n; i++)
            put_d(u, i, uniform(g, u->dtype, 0, 1));
        normal_16(u, n - 16, mean, std);
    }
    return u == t || copy_into(k->x, t, u);
}

static bool fill_random(K *k, const Tensor *t, int64_t low, uint64_t range) {
    Generator *g = generator_of(k);
    if (!g)
        return false;
    WALK (w, walk_tensors(&t, 1)) {
        uint64_t r = range >= 1ull << 32 ? generator_u64(g) : generator_u32(g);
        int64_t v = (int64_t)(r % range + (uint64_t)low);
        if (dtype_is_float(t->dtype))
            put_d(t, w.at[0], (double)v);
        else
            put_i(t, w.at[0], v);
    }
    return true;
}

// rand, rand_like
bool kern_rand(K *k) {
    Generator *g = generator_of(k);
    if (g)
        fill_uniform(g, k->res[0], 0, 1);
    return g != NULL;
}

bool kern_randn(K *k) {
    return fill_normal(k, k->res[0], 0, 1);
}

// randint(high, size), (low, high, size), and their likes
bool kern_randint(K *k) {
    int low = op_arg_index(k->op, "low");
    int64_t from = low >= 0 ? ki(k, low, 0) : 0, to = ki(k, karg(k, "high"), 0);
    if (to <= from)
        return k_fail(k,
                      "RuntimeError: random_ expects 'from' to be less than 'to', but got "
                      "from=%lld >= to=%lld",
                      (long long)from, (long long)to);
    return fill_random(k, k->res[0], from, (uint64_t)to - (uint64_t)from);
}

bool kern_randperm(K *k) {
    Generator *g = generator_of(k);
    const Tensor *t = k->res[0];
    int64_t n = tensor_numel(t);
    if (!g)
        return false;
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
    Generator *g = generator_of(k);
    if (!g)
        return false;
    if (which == 0) {
        fill_uniform(g, t, kf(k, 1, 0), kf(k, 2, 1));
        return true;
    }
    if (which == 1)
        return fill_normal(k, t, kf(k, 1, 0), kf(k, 2, 1));
    const Tensor *c = t;
    WALK (w, walk_tensors(&c, 1)) {
        double a = kf(k, 1, 0), b = k->op->n_args > 2 ? kf(k, 2, 1) : 1;
        if (which == 4) {
            put_d(t, w.at[0], exp(normal_pair(g, a, b)));
            continue;
        }
        double u = (double)(generator_u64(g) & ((1ull << 53) - 1)) * 0x1p-53;
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
        int64_t lo = from ? ki(k, 1, 0) : 0, hi = ki(k, from ? 2 : 1, 0);
        if (hi <= lo)
            return k_fail(k,
                          "RuntimeError: random_ expects 'from' to be less than 'to', but got "
                          "from=%lld >= to=%lld",
                          (long long)lo, (long long)hi);
        return fill_random(k, t, lo, (uint64_t)hi - (uint64_t)lo);
    }
    return t->dtype < COUNT(ranges) && fill_random(k, t, 0, ranges[t->dtype]);
}

// One number a draw: at::bernoulli_distribution<double>.
static bool fill_bernoulli(K *k, const Tensor *t, const Tensor *p, double fixed) {
    Generator *g = generator_of(k);
    const Tensor *both[2] = {t, p ? p : t};
    if (!g)
        return false;
    WALK (w, walk_tensors(both, 2)) {
        double chance = p ? get_d(p, w.at[1]) : fixed;
        if (!(chance >= 0 && chance <= 1))
            return k_fail(k, "RuntimeError: bernoulli_ expects p to be in [0, 1], but got p=%g",
                          chance);
        double u = p && p->dtype != DT_f64
                       ? (double)((float)(generator_u32(g) & ((1u << 24) - 1)) * 0x1p-24f)
                       : (double)(generator_u64(g) & ((1ull << 53) - 1)) * 0x1p-53;
        put_i(t, w.at[0], u < chance);
    }
    return true;
}

// bernoulli(self), bernoulli.p(self, p)
bool kern_bernoulli(K *k) {
    bool fixed = k->op->n_args > 1 && k->args[1].kind == VAL_float;
    return fill_bernoulli(k, k->res[0], fixed ? NULL : k->in[0], kf(k, 1, 0.5));
}

// bernoulli_.float, bernoulli_.Tensor
bool kern_bernoulli_(K *k) {
    k->out = k->args[0];
    return fill_bernoulli(k, k->in[0], k->args[1].kind == VAL_tensor ? k->in[1] : NULL,
                          kf(k, 1, 0.5));
}

// dropout(input, p, train): the mask is drawn in the input's dtype and divided by the share that
// stays.
static Value dropped(K *k, Value t, Value noise_like, double p) {
    if (p == 0)
        return t;
    if (p == 1)
        return CALL(k, aten_mul_Tensor, t, CALL(k, aten_zeros_like_default, noise_like));
    Value noise = CALL(k, aten_empty_like_default, noise_like);
    noise = CALL(k, aten_bernoulli__float, noise, FLT(1 - p));
    noise = CALL(k, aten_div__Scalar, noise, FLT(1 - p));
    return CALL(k, aten_mul_Tensor, t, noise);
}

bool kern_dropout(K *k) {
    double p = kf(k, 1, 0.5);
    const Tensor *t = k->in[0];
    if (!(p >= 0 && p <= 1))
        return k_fail(k, "RuntimeError: dropout probability has to be between 0 and 1, but got %g",
                      p);
    k->out = k->args[0];
    if (!kb(k, 2) || p == 0 || tensor_numel(t) == 0) {
        k->out = eager_view(k->x, t);
        return true;
    }
    Value like = k->args[0];
    if (str_starts(k->op->name, "feature")) {
        int64_t size[TENSOR_DIMS];
        for (int i = 0; i < t->ndim; i++)
            size[i] = i < 2 ? t->size[i] : 1;
        like = CALL(k, aten_new_empty_default, k->args[0], ints_value(k->x, size, t->ndim));
    }
    k->out = dropped(k, k->args[0], like, p);
    return eager_ok(k->x);
}

// native_dropout(input, p, train) -> (output, mask)
bool kern_native_dropout(K *k) {
    double p = kf(k, 1, 0.5), scale = p == 1 ? 0 : 1 / (1 - p);
    if (k_given(k, 2) && !kb(k, 2)) {
        Value one = number_tensor(k->x, &(Value){.kind = VAL_bool, .b = true}, DT_b8);
        return copy_into(k->x, k->res[0], k->in[0]) && one.kind == VAL_tensor &&
               copy_into(k->x, k->res[1], tensor_at(&one));
    }
    if (!fill_bernoulli(k, k->res[1], NULL, 1 - p))
        return false;
    Value r = CALL(k, aten_mul_Scalar,
                   CALL(k, aten_mul_Tensor, k->args[0], tensor_value(k->x, k->res[1])), FLT(scale));
    return r.kind == VAL_tensor && copy_into(k->x, k->res[0], tensor_at(&r));
}

// (grad_output, mask, scale)
bool kern_native_dropout_backward(K *k) {
    Value r =
        CALL(k, aten_mul_Scalar, CALL(k, aten_mul_Tensor, k->args[0], k->args[1]), k->args[2]);
    return r.kind == VAL_tensor && copy_into(k->x, k->res[0], tensor_at(&r));
}

bool kern_multinomial(K *k) {
    const Tensor *p = k->in[0];
    Generator *g = generator_of(k);
    int64_t n = p->ndim ? p->size[p->ndim - 1] : 1, draws = ki(k, 1, 1),
            rows = p->ndim == 2 ? p->size[0] : 1;
    bool again = kb(k, 2);
    Tensor *cum = eager_contiguous(k->x, p, DT_f64);
    if (!g || !cum || (!again && draws > n))
        return k_fail(k, "RuntimeError: cannot sample n_sample > prob_dist.size(-1) samples "
                         "without replacement");
    double *weight = ARENA_ARRAY(k->x->arena, n + 1, double);
    for (int64_t r = 0; r < rows; r++) {
        for (int64_t i = 0; i < n; i++)
            weight[i] = get_d(cum, r * n + i);
        for (int64_t j = 0; j < draws; j++) {
            double sum = 0, at = 0, u = (double)(generator_u64(g) & ((1ull << 53) - 1)) * 0x1p-53;
            for (int64_t i = 0; i < n; i++)
                sum += weight[i];
            if (!(sum > 0) || isinf(sum))
                return k_fail(
                    k,
                    "RuntimeError: invalid multinomial distribution (sum of probabilities <= 0)");
            int64_t pick = n - 1;
            for (int64_t i = 0; i < n; i++)
                if ((at += weight[i]) >= u * sum && weight[i] > 0) {
                    pick = i;
                    break;
                }
            put_i(k->res[0], r * draws + j, pick);
            if (!again)
                weight[pick] = 0;
        }
    }
    return true;
}

// prims of compiled graphs: seeds from the generator, and streams from a seed of their own

// inductor_seeds(count, device), inductor_seed(device)
bool kern_seeds(K *k) {
    Generator *g = generator_of(k);
    for (int64_t i = 0; g && i < tensor_numel(k->res[0]); i++)
        put_i(k->res[0], i, (int64_t)generator_u64(g));
    return g != NULL;
}

// inductor_lookup_seed(seeds, index)
bool kern_lookup_seed(K *k) {
    int64_t i = ki(k, 1, 0);
    if (i < 0 || i >= tensor_numel(k->in[0]))
        return k_fail(k, "IndexError: seed %lld of %lld", (long long)i,
                      (long long)tensor_numel(k->in[0]));
    put_i(k->res[0], 0, tensor_get_i64(k->in[0], i));
    return true;
}

// inductor_random(size, seed, mode): rand or randn
bool kern_seeded_random(K *k) {
    Generator g, *outer = k->x->c->generator;
    generator_seed(&g, (uint64_t)ki(k, 1, 0));
    k->x->c->generator = &g;
    bool normal = strcmp(ks(k, 2, "rand"), "randn") == 0, ok = true;
    if (normal)
        ok = fill_normal(k, k->res[0], 0, 1);
    else
        fill_uniform(&g, k->res[0], 0, 1);
    k->x->c->generator = outer;
    return ok;
}

// inductor_randint(low, high, size, seed)
bool kern_seeded_randint(K *k) {
    Generator g, *outer = k->x->c->generator;
    int64_t low = ki(k, 0, 0), high = ki(k, 1, 0);
    if (high <= low)
        return k_fail(k, "RuntimeError: random_ expects 'from' to be less than 'to'");
    generator_seed(&g, (uint64_t)ki(k, 3, 0));
    k->x->c->generator = &g;
    bool ok = fill_random(k, k->res[0], low, (uint64_t)high - (uint64_t)low);
    k->x->c->generator = outer;
    return ok;
}

// normal(mean, std): tensors or numbers
bool kern_normal(K *k) {
    Value mean = k->args[0], std = k->args[1];
    if (!fill_normal(k, k->res[0], 0, 1))
        return false;
    Value z = tensor_value(k->x, k->res[0]);
    z = CALL(k, aten_mul_Tensor, z, std);
    z = CALL(k, aten_add_Tensor, z, mean);
    return z.kind == VAL_tensor && copy_into(k->x, k->res[0], tensor_at(&z));
}
