// bessel.c: Bessel and Airy functions in double. I by its series and its asymptotic expansion, K by
// the trapezoidal rule on its integral, which converges exponentially. J, Y and Ai by the rational
// forms of Cephes with PyTorch's reading of them: it leaves out the leading 1 of some denominators,
// so that its values are 1e-6 and more from the functions' for arguments over 5 (below -2.09 for
// Ai); results have to be its own.
#include <math.h>

#include "core/eager/loops.h"

// e^-|x| I_n(x) for n = 0, 1.
static double scaled_i(int n, double x) {
    double a = fabs(x), sign = n && x < 0 ? -1 : 1;
    if (isnan(x))
        return x;
    if (isinf(a))
        return sign * 0;
    if (a < 25) {
        double q = a * a / 4, term = n ? a / 2 : 1, sum = term;
        for (int k = 1; k < 200 && term > 1e-18 * sum; k++) {
            term *= q / ((double)k * (k + n));
            sum += term;
        }
        return sign * sum * exp(-a);
    }
    double mu = 4.0 * n * n, term = 1, sum = 1;
    for (int k = 1; k < 30; k++) {
        double odd = 2 * k - 1, next = term * -(mu - odd * odd) / (k * 8 * a);
        if (fabs(next) > fabs(term) || fabs(next) < 1e-17)
            break;
        term = next;
        sum += term;
    }
    return sign * sum / sqrt(2 * M_PI * a);
}

double special_i0e(double x) {
    return scaled_i(0, x);
}

double special_i1e(double x) {
    return scaled_i(1, x);
}

static double unscaled(double scaled, double x) {
    double a = fabs(x);
    return scaled * exp(a / 2) * exp(a / 2);
}

// At infinity PyTorch divides infinities.
double special_i0(double x) {
    return isinf(x) ? (double)NAN : unscaled(scaled_i(0, x), x);
}

double special_i1(double x) {
    return isinf(x) ? (double)NAN : unscaled(scaled_i(1, x), x);
}

// e^x K_nu(x) = integral over t >= 0 of e^(-x (cosh t - 1)) cosh(nu t).
static double scaled_k(double nu, double x) {
    const double h = 0.125;
    if (x == 0)
        return INFINITY;
    if (!(x > 0))
        return (double)NAN;
    if (x > 40) { // the asymptotic series: the integrand is too narrow for the rule
        double mu = 4 * nu * nu, term = 1, sum = 1;
        for (int k = 1; k < 30 && fabs(term) > 1e-17; k++)
            sum += term *= (mu - (2 * k - 1) * (2 * k - 1)) / (k * 8 * x);
        return sum * sqrt(M_PI / (2 * x));
    }
    double sum = 0.5;
    for (int i = 1; i < 8000; i++) {
        double t = i * h, s = sinh(t / 2), e = 2 * x * s * s, term = exp(-e) * cosh(nu * t);
        sum += term;
        if (e > 745 || (term < 1e-18 * sum && e > 1))
            break;
    }
    return sum * h;
}

double special_k0e(double x) {
    return scaled_k(0, x);
}

double special_k1e(double x) {
    return scaled_k(1, x);
}

double special_k0(double x) {
    return isinf(x) && x > 0 ? 0 : scaled_k(0, x) * exp(-x);
}

double special_k1(double x) {
    return isinf(x) && x > 0 ? 0 : scaled_k(1, x) * exp(-x);
}

#define POLY(x, ...)                                                                               \
    horner((x), (const double[]){__VA_ARGS__}, COUNT(((const double[]){__VA_ARGS__})))

static double horner(double x, const double *c, int n) {
    double sum = 0;
    for (int i = 0; i < n; i++)
        sum = sum * x + c[i];
    return sum;
}

// Amplitudes of the waves far out: of the part in phase, and of the one a quarter behind.
static void waves_0(double x, double *p, double *q) {
    double z = 25 / (x * x);
    *p = POLY(z, 7.96936729297347051624e-04, 8.28352392107440799803e-02, 1.23953371646414299388e+00,
              5.44725003058768775090e+00, 8.74716500199817011941e+00, 5.30324038235394892183e+00,
              9.99999999999999997821e-01) /
         POLY(z, 9.24408810558863637013e-04, 8.56288474354474431428e-02, 1.25352743901058953537e+00,
              5.47097740330417105182e+00, 8.76190883237069594232e+00, 5.30605288235394617618e+00,
              1.00000000000000000218e+00);
    *q = 5 / x *
         (POLY(z, -1.13663838898469149931e-02, -1.28252718670509318512e+00,
               -1.95539544257735972385e+01, -9.32060152123768231369e+01,
               -1.77681167980488050595e+02, -1.47077505154951170175e+02,
               -5.14105326766599330220e+01, -6.05014350600728481186e+00) /
          POLY(z, 6.43178256118178023184e+01, 8.56430025976980587198e+02,
               3.88240183605401609683e+03, 7.24046774195652478189e+03, 5.93072701187316984827e+03,
               2.06209331660327847417e+03, 2.42005740240291393179e+02));
}

static void waves_1(double x, double *p, double *q) {
    double z = 5 / x * (5 / x);
    *p = POLY(z, 7.62125616208173112003e-04, 7.31397056940917570436e-02, 1.12719608129684925192e+00,
              5.11207951146807644818e+00, 8.42404590141772420927e+00, 5.21451598682361504063e+00,
              1.00000000000000000254e+00) /
         POLY(z, 5.71323128072548699714e-04, 6.88455908754495404082e-02, 1.10514232634061696926e+00,
              5.07386386128601488557e+00, 8.39985554327604159757e+00, 5.20982848682361821619e+00,
              9.99999999999999997461e-01);
    *q = 5 / x *
         (POLY(z, 5.10862594750176621635e-02, 4.98213872951233449420e+00,
               7.58238284132545283818e+01, 3.66779609360150777800e+02, 7.10856304998926107277e+02,
               5.97489612400613639965e+02, 2.11688757100572135698e+02, 2.52070205858023719784e+01) /
          POLY(z, 7.42373277035675149943e+01, 1.05644886038262816351e+03,
               4.98641058337653607651e+03, 9.56231892404756170795e+03, 7.99704160447350683650e+03,
               2.82619278517639096600e+03, 3.36093607810698293419e+02));
}

static const double two_over_pi = 0.636619772367581343076, root_of_it = 0.797884560802865355880;

double special_j0(double x) {
    double z = x * x, p, q, phase = fabs(x) - M_PI / 4;
    x = fabs(x);
    if (x < 1e-5)
        return 1 - z / 4;
    if (x <= 5)
        return (z - 5.78318596294678452118e+00) * (z - 3.04712623436620863991e+01) *
               POLY(z, -4.79443220978201773821e+09, 1.95617491946556577543e+12,
                    -2.49248344360967716204e+14, 9.70862251047306323952e+15) /
               POLY(z, 4.99563147152651017219e+02, 1.73785401676374683123e+05,
                    4.84409658339962045305e+07, 1.11855537045356834862e+10,
                    2.11277520115489217587e+12, 3.10518229857422583814e+14,
                    3.18121955943204943306e+16, 1.71086294081043136091e+18);
    waves_0(x, &p, &q);
    return (p * cos(phase) - q * sin(phase)) * root_of_it / sqrt(x);
}

double special_j1(double x) {
    double z = x * x, p, q, phase = x - 3 * M_PI / 4;
    if (x < 0)
        return -special_j1(-x);
    if (x <= 5)
        return POLY(z, -8.99971225705559398224e+08, 4.52228297998194034323e+11,
                    -7.27494245221818276015e+13, 3.68295732863852883286e+15) /
               POLY(z, 6.20836478118054335476e+02, 2.56987256757748830383e+05,
                    8.35146791431949253037e+07, 2.21511595479792499675e+10,
                    4.74914122079991414898e+12, 7.84369607876235854894e+14,
                    8.95222336184627338078e+16, 5.32278620332680085395e+18) *
               x * (z - 1.46819706421238932572e+01) * (z - 4.92184563216946036703e+01);
    waves_1(x, &p, &q);
    return (p * cos(phase) - q * sin(phase)) * root_of_it / sqrt(x);
}

double special_y0(double x) {
    double z = x * x, p, q, phase = x - M_PI / 4;
    if (x == 0)
        return -(double)INFINITY;
    if (x <= 5)
        return POLY(z, 1.55924367855235737965e+04, -1.46639295903971606143e+07,
                    5.43526477051876500413e+09, -9.82136065717911466409e+11,
                    8.75906394395366999549e+13, -3.46628303384729719441e+15,
                    4.42733268572569800351e+16, -1.84950800436986690637e+16) /
                   POLY(z, 1.04128353664259848412e+03, 6.26107330137134956842e+05,
                        2.68919633393814121987e+08, 8.64002487103935000337e+10,
                        2.02979612750105546709e+13, 3.17157752842975028269e+15,
                        2.50596256172653059228e+17) +
               two_over_pi * log(x) * special_j0(x);
    waves_0(x, &p, &q);
    return (p * sin(phase) + q * cos(phase)) * root_of_it / sqrt(x);
}

double special_y1(double x) {
    double z = x * x, p, q, phase = x - 3 * M_PI / 4;
    if (x <= 0)
        return x == 0 ? -(double)INFINITY : (double)NAN;
    if (x <= 5)
        return x * (POLY(z, 1.26320474790178026440e+09, -6.47355876379160291031e+11,
                         1.14509511541823727583e+14, -8.12770255501325109621e+15,
                         2.02439475713594898196e+17, -7.78877196265950026825e+17) /
                    POLY(z, 5.94301592346128195359e+02, 2.35564092943068577943e+05,
                         7.34811944459721705660e+07, 1.87601316108706159478e+10,
                         3.88231277496238566008e+12, 6.20557727146953693363e+14,
                         6.87141087355300489866e+16, 3.97270608116560655612e+18)) +
               two_over_pi * (special_j1(x) * log(x) - 1 / x);
    waves_1(x, &p, &q);
    return (p * sin(phase) + q * cos(phase)) * root_of_it / sqrt(x);
}

double special_spherical_j0(double x) {
    if (isinf(x))
        return 0;
    if (fabs(x) < 0.5) {
        double q = x * x;
        return 1 -
               q / 6 * (1 - q / 20 * (1 - q / 42 * (1 - q / 72 * (1 - q / 110 * (1 - q / 156)))));
    }
    return sin(x) / x;
}

static double airy_waves(double x) {
    double root = sqrt(-x), zeta = -2 * x * root / 3, z = 1 / zeta, zz = z * z;
    double p = 1 + zz *
                       POLY(zz, -1.31696323418331795333e-01, -6.26456544431912369773e-01,
                            -6.93158036036933542233e-01, -2.79779981545119124951e-01,
                            -4.91900132609500318020e-02, -4.06265923594885404393e-03,
                            -1.59276496239262096340e-04, -2.77649108155232920844e-06,
                            -1.67787698489114633780e-08) /
                       POLY(zz, 1.33560420706553243746e+01, 3.26825032795224613948e+01,
                            2.67367040941499554804e+01, 9.18707402907259625840e+00,
                            1.47529146771666414581e+00, 1.15687173795188044134e-01,
                            4.40291641615211203805e-03, 7.54720348287414296618e-05,
                            4.51850092970580378464e-07);
    double q =
        z *
        POLY(zz, 1.97339932091685679179e-02, 3.91103029615688277255e-01, 1.06579897599595591108e+00,
             9.39169229816650230044e-01, 3.51465656105547619242e-01, 6.33888919628925490927e-02,
             5.85804113048388458567e-03, 2.82851600836737019778e-04, 6.98793669997260967291e-06,
             8.11789239554389293311e-08, 3.41551784765923618484e-10) /
        POLY(zz, 9.30892908077441974853e+00, 1.98352928718312140417e+01, 1.55646628932864612953e+01,
             5.47686069422975497931e+00, 9.54293611618961883998e-01, 8.64580826352392193095e-02,
             4.12656523824222607191e-03, 1.01259085116509135510e-04, 1.17166733214413521882e-06,
             4.91834570062930015649e-09);
    double phase = zeta + M_PI / 4;
    return 0.564189583547756286948 / sqrt(root) * (sin(phase) * p - cos(phase) * q);
}

double special_airy(double x) {
    if (isnan(x) || isinf(x))
        return (double)NAN;
    if (x > 103.892)
        return 0;
    if (x > 1) {
        double zeta = 2.0 / 3 * x * sqrt(x);
        return sqrt(x / 3) / M_PI * scaled_k(1.0 / 3, zeta) * exp(-zeta);
    }
    if (x < -2.09)
        return airy_waves(x);
    // Maclaurin's series, in more digits since its terms cancel.
    long double cube = (long double)x * x * x, f = 1, g = x, sf = 1, sg = x;
    for (int k = 1; k < 200; k++) {
        f *= cube / ((3.0L * k - 1) * (3.0L * k));
        g *= cube / ((3.0L * k) * (3.0L * k + 1));
        sf += f;
        sg += g;
    }
    return (double)(0.355028053887817239260063186004L * sf -
                    0.258819403792806798405183560189L * sg);
}
