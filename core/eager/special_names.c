// special_names.c: the functions that the C library lacks, by the names that loop IR has for them:
// compiled code calls them by number.
#include <math.h>
#include <string.h>

#include "core/eager/eager.h"
#include "core/eager/loops.h"

#define T              double
#define FABS(x)        fabs(x)
#define M1(f, x)       f(x)
#define FUSED(x, y, z) fma(x, y, z)
#include "core/eager/orthogonal.inc"

#define SHIFTED(name)                                                                              \
    static double shifted_##name(double x, double n) {                                             \
        return name(x + x - 1, n);                                                                 \
    }
SHIFTED(chebyshev_t)
SHIFTED(chebyshev_u)
SHIFTED(chebyshev_v)
SHIFTED(chebyshev_w)

static const struct {
    const char *name;
    double (*one)(double);         // of one argument
    double (*two)(double, double); // of two
} functions[] = {
    {"i0", special_i0, NULL},
    {"i0e", special_i0e, NULL},
    {"i1", special_i1, NULL},
    {"i1e", special_i1e, NULL},
    {"modified_bessel_i0", special_i0, NULL},
    {"modified_bessel_i1", special_i1, NULL},
    {"modified_bessel_k0", special_k0, NULL},
    {"modified_bessel_k1", special_k1, NULL},
    {"scaled_modified_bessel_k0", special_k0e, NULL},
    {"scaled_modified_bessel_k1", special_k1e, NULL},
    {"bessel_j0", special_j0, NULL},
    {"bessel_j1", special_j1, NULL},
    {"bessel_y0", special_y0, NULL},
    {"bessel_y1", special_y1, NULL},
    {"airy_ai", special_airy, NULL},
    {"spherical_bessel_j0", special_spherical_j0, NULL},
    {"erfcx", special_erfcx, NULL},
    {"ndtri", special_ndtri, NULL},
    {"zeta", NULL, special_zeta},
    {"igamma", NULL, special_igamma},
    {"igammac", NULL, special_igammac},
    {"chebyshev_polynomial_t", NULL, chebyshev_t},
    {"chebyshev_polynomial_u", NULL, chebyshev_u},
    {"chebyshev_polynomial_v", NULL, chebyshev_v},
    {"chebyshev_polynomial_w", NULL, chebyshev_w},
    {"shifted_chebyshev_polynomial_t", NULL, shifted_chebyshev_t},
    {"shifted_chebyshev_polynomial_u", NULL, shifted_chebyshev_u},
    {"shifted_chebyshev_polynomial_v", NULL, shifted_chebyshev_v},
    {"shifted_chebyshev_polynomial_w", NULL, shifted_chebyshev_w},
    {"hermite_polynomial_h", NULL, hermite_h},
    {"hermite_polynomial_he", NULL, hermite_he},
    {"laguerre_polynomial_l", NULL, laguerre},
    {"legendre_polynomial_p", NULL, legendre},
    {"polygamma", NULL, special_polygamma},
    {"polygamma", NULL, special_polygamma_f32}, // in float32, where that makes a difference
};

int eager_special(const char *name, bool in_f32) {
    for (int i = 0; i < COUNT(functions); i++)
        if (!strcmp(functions[i].name, name)) {
            bool other = i + 1 < COUNT(functions) && !strcmp(functions[i + 1].name, name);
            return i + (other && in_f32);
        }
    return -1;
}

double eager_special_call(int function, double a, double b) {
    if (function < 0 || function >= COUNT(functions))
        return (double)NAN;
    return functions[function].one ? functions[function].one(a) : functions[function].two(a, b);
}
