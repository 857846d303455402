// random_seeded.c: random numbers of compiled graphs: seeds drawn from the generator, and streams
// that are functions of a seed and a place, so that they can be computed anywhere in any order
// (torch/_inductor/inductor_prims.py). The stream is Philox 4x32 with ten rounds (J. Salmon et al.,
// "Parallel random numbers: as easy as 1, 2, 3", 2011), keyed as generated code for a CPU keys it:
// by the low 32 bits of seed and place.
#include "core/eager/kernel.h"

#include <math.h>
#include <string.h>

static void philox(uint32_t seed, uint32_t place, uint32_t out[4]) {
    uint32_t key[2] = {seed, 0};
    memcpy(out, (uint32_t[4]){place}, 4 * sizeof *out);
    for (int round = 0; round < 10; round++) {
        uint64_t a = UINT64_C(0xd2511f53) * out[0], b = UINT64_C(0xcd9e8d57) * out[2];
        out[0] = (uint32_t)(b >> 32) ^ out[1] ^ key[0];
        out[2] = (uint32_t)(a >> 32) ^ out[3] ^ key[1];
        out[1] = (uint32_t)b;
        out[3] = (uint32_t)a;
        key[0] += 0x9e3779b9u;
        key[1] += 0xbb67ae85u;
    }
}

// 31 bits in [0, 1).
static float unit(uint32_t bits) {
    return (float)(bits & 0x7fffffffu) * 4.6566127342e-10f;
}

// inductor_seeds(count, device), inductor_seed(device): randint over all of int64 but its last
bool kern_seeds(K *k) {
    Generator *g = random_generator(k);
    for (int64_t i = 0; g && i < tensor_numel(k->res[0]); i++)
        put_i(k->res[0], i, (int64_t)(generator_u64(g) % UINT64_MAX + (uint64_t)INT64_MIN));
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
    uint32_t seed = (uint32_t)ki(k, 1, 0), bits[4];
    bool normal = strcmp(ks(k, 2, "rand"), "randn") == 0;
    for (int64_t i = 0, n = tensor_numel(k->res[0]); i < n; i++) {
        philox(seed, (uint32_t)i, bits);
        double v = (double)unit(bits[0]);
        if (normal)
            v = sqrt(-2.0 * (double)logf(1 - unit(bits[0]))) *
                cos(2 * M_PI * (double)(1 - unit(bits[1])));
        put_d(k->res[0], i, v);
    }
    return true;
}

// inductor_randint(low, high, size, seed)
bool kern_seeded_randint(K *k) {
    int64_t low = ki(k, 0, 0), high = ki(k, 1, 0);
    uint32_t seed = (uint32_t)ki(k, 3, 0), bits[4];
    if (high <= low)
        return k_fail(k, "RuntimeError: random_ expects 'from' to be less than 'to'");
    for (int64_t i = 0, n = tensor_numel(k->res[0]); i < n; i++) {
        philox(seed, (uint32_t)i, bits);
        uint64_t v = ((uint64_t)bits[1] << 32 | bits[0]) % ((uint64_t)high - (uint64_t)low);
        put_i(k->res[0], i, (int64_t)(v + (uint64_t)low));
    }
    return true;
}
