// aot_derive_linear.c: gradients of products, convolution, pooling, resampling, norms and attention
// against finite differences.
#include "tests/unit/grad_check.h"
#include "tests/unit/unit.h"

static void check_all(const GradCase *cases, int n) {
    for (int i = 0; i < n; i++)
        grad_check(&cases[i]);
}

#define CHECK_ALL(cases) check_all(cases, (int)(sizeof cases / sizeof cases[0]))

START_TEST(products) {
    static const GradCase cases[] = {
        {.params = "a f64[3, 4][4, 1]; b f64[4, 2][2, 1]",
         .body = "r = A.mm.default(a, b)\nreturn (r,)\n"},
        {.params = "a f64[3, 4][1, 3]; b f64[4, 2][1, 4]",
         .body = "r = A.mm.default(a, b)\nreturn (r,)\n"},
        {.params = "a f64[3, 4][4, 1]; b f64[4, 2][2, 1]",
         .body = "r = A.mm.default(a, b)\nreturn (r,)\n",
         .needs = "01"},
        {.params = "c f64[2][1]; a f64[3, 4][4, 1]; b f64[4, 2][2, 1]",
         .body = "r = A.addmm.default(c, a, b, beta = 2, alpha = 0.5)\nreturn (r,)\n"},
        {.params = "a f64[5, 3, 4][12, 4, 1]; b f64[5, 4, 2][8, 2, 1]",
         .body = "r = A.bmm.default(a, b)\nreturn (r,)\n"},
        {.params = "c f64[5, 3, 2][6, 2, 1]; a f64[5, 3, 4][12, 4, 1]; b f64[5, 4, 2][8, 2, 1]",
         .body = "r = A.baddbmm.default(c, a, b, beta = 0.5, alpha = 3)\nreturn (r,)\n"},
        {.params = "c f64[3, 2][2, 1]; a f64[5, 3, 4][12, 4, 1]; b f64[5, 4, 2][8, 2, 1]",
         .body = "r = A.addbmm.default(c, a, b, beta = 0.5, alpha = 3)\nreturn (r,)\n"},
        {.params = "a f64[3, 4][4, 1]; v f64[4][1]",
         .body = "r = A.mv.default(a, v)\nreturn (r,)\n"},
        {.params = "c f64[3][1]; a f64[3, 4][4, 1]; v f64[4][1]",
         .body = "r = A.addmv.default(c, a, v, beta = 2, alpha = 3)\nreturn (r,)\n"},
        {.params = "c f64[3, 4][4, 1]; u f64[3][1]; v f64[4][1]",
         .body = "r = A.addr.default(c, u, v, beta = 2, alpha = 3)\nreturn (r,)\n"},
        {.params = "u f64[4][1]; v f64[4][1]", .body = "r = A.dot.default(u, v)\nreturn (r,)\n"},
        {.params = "u f64[4][1]; v f64[4][1]", .body = "r = A.vdot.default(u, v)\nreturn (r,)\n"},
        {.params = "u f64[4, 3][3, 1]; v f64[4, 3][3, 1]",
         .body = "r = A.linalg_cross.default(u, v)\nreturn (r,)\n"},
        {.params = "x f64[5, 3][3, 1]; w f64[4, 3, 2][6, 2, 1]; y f64[5, 2][2, 1]",
         .body = "r = A._trilinear.default(x, w, y, [1, 3], [0], [1, 2], [2, 3])\nreturn (r,)\n"},
        {.params = "a f64[0, 4][4, 1]; b f64[4, 2][2, 1]",
         .body = "r = A.mm.default(a, b)\nreturn (r,)\n"},
    };
    CHECK_ALL(cases);
}
END_TEST

START_TEST(distances) {
    static const GradCase cases[] = {
        {.params = "x f64[4, 3][3, 1]; y f64[5, 3][3, 1]",
         .body = "r = A._cdist_forward.default(x, y, 0.0, None)\nreturn (r,)\n"},
        {.params = "x f64[4, 3][3, 1]; y f64[5, 3][3, 1]",
         .body = "r = A._cdist_forward.default(x, y, 0.5, None)\nreturn (r,)\n"},
        {.params = "x f64[4, 3][3, 1]; y f64[5, 3][3, 1]",
         .body = "r = A._cdist_forward.default(x, y, 1.0, None)\nreturn (r,)\n"},
        {.params = "x f64[4, 3][3, 1]; y f64[5, 3][3, 1]",
         .body = "r = A._cdist_forward.default(x, y, 1.5, None)\nreturn (r,)\n"},
        {.params = "x f64[4, 3][3, 1]; y f64[5, 3][3, 1]",
         .body = "r = A._cdist_forward.default(x, y, 2.0, None)\nreturn (r,)\n"},
        {.params = "x f64[4, 3][3, 1]; y f64[5, 3][3, 1]",
         .body = "r = A._cdist_forward.default(x, y, 3.0, None)\nreturn (r,)\n"},
        {.params = "x f64[4, 3][3, 1]; y f64[5, 3][3, 1]",
         .body = "r = A._cdist_forward.default(x, y, inf, None)\nreturn (r,)\n"},
        {.params = "x f64[2, 1, 4, 3][12, 12, 3, 1]; y f64[3, 5, 3][15, 3, 1]",
         .body = "r = A._cdist_forward.default(x, y, 2.0, None)\nreturn (r,)\n"},
        {.params = "x f64[4, 3][3, 1]",
         .body = "r = A._pdist_forward.default(x, 0.0)\nreturn (r,)\n"},
        {.params = "x f64[4, 3][3, 1]",
         .body = "r = A._pdist_forward.default(x, 0.5)\nreturn (r,)\n"},
        {.params = "x f64[4, 3][3, 1]",
         .body = "r = A._pdist_forward.default(x, 1.0)\nreturn (r,)\n"},
        {.params = "x f64[4, 3][3, 1]",
         .body = "r = A._pdist_forward.default(x, 1.5)\nreturn (r,)\n"},
        {.params = "x f64[4, 3][3, 1]",
         .body = "r = A._pdist_forward.default(x, 2.0)\nreturn (r,)\n"},
        {.params = "x f64[4, 3][3, 1]",
         .body = "r = A._pdist_forward.default(x, 3.0)\nreturn (r,)\n"},
        {.params = "x f64[4, 3][3, 1]",
         .body = "r = A._pdist_forward.default(x, inf)\nreturn (r,)\n"},
    };
    CHECK_ALL(cases);
}
END_TEST

START_TEST(convolutions) {
    static const GradCase cases[] = {
        {.params = "x f64[2, 4, 9][36, 9, 1]; w f64[6, 4, 3][12, 3, 1]; b f64[6][1]",
         .body = "r = A.convolution.default(x, w, b, [2], [1], [2], False, [0], 1)\nreturn (r,)\n"},
        {.params = "x f64[2, 4, 5, 6][120, 30, 6, 1]; w f64[6, 2, 3, 2][12, 6, 2, 1]; b f64[6][1]",
         .body = "r = A.convolution.default(x, w, b, [2, 1], [1, 0], [1, 2], False, [0, 0], "
                 "2)\nreturn (r,)\n"},
        {.params = "x f64[2, 4, 5, 6][120, 30, 6, 1]; w f64[4, 1, 3, 3][9, 9, 3, 1]",
         .body = "r = A.convolution.default(x, w, None, [1, 1], [1, 1], [1, 1], False, [0, 0], "
                 "4)\nreturn (r,)\n",
         .needs = "10"},
        {.params = "x f64[2, 4, 5, 6][120, 1, 24, 4]; w f64[3, 4, 2, 2][16, 1, 8, 4]; b f64[3][1]",
         .body = "r = A.convolution.default(x, w, b, [1, 1], [0, 0], [1, 1], False, [0, 0], "
                 "1)\nreturn (r,)\n",
         .needs = "011"},
        {.params = "x f64[1, 2, 4, 4, 3][96, 48, 12, 3, 1]; w f64[2, 2, 2, 2, 2][16, 8, 4, 2, 1]; "
                   "b f64[2][1]",
         .body = "r = A.convolution.default(x, w, b, [2, 1, 1], [1, 1, 0], [1, 1, 1], False, [0, "
                 "0, 0], 1)\nreturn (r,)\n"},
        {.params = "x f64[2, 4, 5][20, 5, 1]; w f64[4, 3, 3][9, 3, 1]; b f64[3][1]",
         .body = "r = A.convolution.default(x, w, b, [2], [1], [1], True, [1], 1)\nreturn (r,)\n"},
        {.params = "x f64[2, 4, 3, 4][48, 12, 4, 1]; w f64[4, 3, 3, 2][18, 6, 2, 1]; b f64[6][1]",
         .body = "r = A.convolution.default(x, w, b, [3, 2], [1, 0], [2, 1], True, [2, 1], "
                 "2)\nreturn (r,)\n"},
        {.params = "x f64[1, 2, 3, 3, 2][36, 18, 6, 2, 1]; w f64[2, 2, 2, 2, 2][16, 8, 4, 2, 1]",
         .body = "r = A.convolution.default(x, w, None, [2, 2, 2], [0, 1, 0], [1, 1, 1], True, [0, "
                 "0, 1], 1)\nreturn (r,)\n"},
        {.params = "x f64[0, 4, 5, 6][120, 30, 6, 1]; w f64[3, 4, 2, 2][16, 4, 2, 1]; b f64[3][1]",
         .body = "r = A.convolution.default(x, w, b, [1, 1], [0, 0], [1, 1], False, [0, 0], "
                 "1)\nreturn (r,)\n"},
        {.params = "x f64[2, 3, 5, 6][90, 30, 6, 1]",
         .body = "r = A.im2col.default(x, [2, 3], [1, 2], [1, 0], [2, 1])\nreturn (r,)\n"},
        {.params = "x f64[2, 12, 12][144, 12, 1]",
         .body = "r = A.col2im.default(x, [4, 5], [2, 2], [1, 1], [0, 0], [1, 1])\nreturn (r,)\n"},
    };
    CHECK_ALL(cases);
}
END_TEST

START_TEST(pools) {
    static const GradCase cases[] = {
        {.params = "x f64[2, 3, 5, 6][90, 30, 6, 1]",
         .body = "r = A.avg_pool2d.default(x, [3, 2])\nreturn (r,)\n"},
        {.params = "x f64[2, 3, 5, 6][90, 30, 6, 1]",
         .body = "r = A.avg_pool2d.default(x, [3, 2], [2, 1], [1, 1], True, False)\nreturn (r,)\n"},
        {.params = "x f64[3, 5, 6][30, 6, 1]",
         .body =
             "r = A.avg_pool2d.default(x, [2, 2], [2, 2], [0, 0], False, True, 3)\nreturn (r,)\n"},
        {.params = "x f64[2, 2, 4, 5, 3][120, 60, 15, 3, 1]",
         .body = "r = A.avg_pool3d.default(x, [2, 2, 2], [2, 1, 1], [1, 1, 0], True, "
                 "False)\nreturn (r,)\n"},
        {.params = "x f64[2, 3, 7, 5][105, 35, 5, 1]",
         .body = "r = A._adaptive_avg_pool2d.default(x, [3, 2])\nreturn (r,)\n"},
        {.params = "x f64[2, 2, 5, 4, 3][120, 60, 12, 3, 1]",
         .body = "r = A._adaptive_avg_pool3d.default(x, [3, 2, 2])\nreturn (r,)\n"},
        {.params = "x f64[2, 3, 6, 7][126, 42, 7, 1]",
         .body = "t = A.max_pool2d_with_indices.default(x, [3, 2], [2, 1], [1, 1], [1, 2], "
                 "True)\nr = t[0]\nreturn (r,)\n"},
        {.params = "x f64[2, 3, 6, 6][108, 1, 18, 3]",
         .body = "t = A.max_pool2d_with_indices.default(x, [2, 2])\nr = t[0]\nreturn (r,)\n"},
        {.params = "x f64[3, 6, 7][42, 7, 1]",
         .body =
             "t = A.max_pool2d_with_indices.default(x, [2, 2], [1, 1])\nr = t[0]\nreturn (r,)\n"},
        {.params = "x f64[1, 2, 4, 5, 4][160, 80, 20, 4, 1]",
         .body = "t = A.max_pool3d_with_indices.default(x, [2, 3, 2], [1, 2, 2], [1, 1, 0])\nr = "
                 "t[0]\nreturn (r,)\n"},
        {.params = "x f64[2, 3, 7, 5][105, 35, 5, 1]",
         .body = "t = A.adaptive_max_pool2d.default(x, [3, 2])\nr = t[0]\nreturn (r,)\n"},
        {.params = "x f64[2, 2, 5, 4, 3][120, 60, 12, 3, 1]",
         .body = "t = A.adaptive_max_pool3d.default(x, [3, 2, 2])\nr = t[0]\nreturn (r,)\n"},
        {.params = "x f64[2, 3, 7, 8][168, 56, 8, 1]; pos f64[2, 3, 2][6, 2, 1]",
         .body = "u = A.sub.Tensor(pos, 0.5)\nt = A.fractional_max_pool2d.default(x, [2, 3], [3, "
                 "4], u)\nr = t[0]\nreturn (r,)\n",
         .needs = "10"},
        {.params = "x f64[1, 2, 6, 7, 5][420, 210, 35, 5, 1]; pos f64[1, 2, 3][6, 3, 1]",
         .body = "u = A.sub.Tensor(pos, 0.5)\nt = A.fractional_max_pool3d.default(x, [2, 3, 2], "
                 "[3, 3, 2], u)\nr = t[0]\nreturn (r,)\n",
         .needs = "10"},
        {.params = "x f64[2, 3, 6, 8][144, 48, 8, 1]",
         .body = "t = A.max_pool2d_with_indices.default(x, [2, 2])\nv = t[0]\ni = t[1]\nr = "
                 "A.max_unpool2d.default(v, i, [6, 8])\nreturn (r,)\n"},
        {.params = "x f64[1, 2, 4, 4, 6][192, 96, 24, 6, 1]",
         .body = "t = A.max_pool3d_with_indices.default(x, [2, 2, 2])\nv = t[0]\ni = t[1]\nr = "
                 "A.max_unpool3d.default(v, i, [4, 4, 6], [2, 2, 2], [0, 0, 0])\nreturn (r,)\n"},
        {.params = "x f64[0, 3, 6, 7][126, 42, 7, 1]",
         .body = "t = A.max_pool2d_with_indices.default(x, [2, 2])\nr = t[0]\nreturn (r,)\n"},
    };
    CHECK_ALL(cases);
}
END_TEST

START_TEST(backward_of_backward) {
    static const GradCase cases[] = {
        {.params = "g f64[2, 3, 3, 5][45, 15, 5, 1]; x f64[2, 3, 5, 6][90, 30, 6, 1]",
         .body = "r = A.avg_pool2d_backward.default(g, x, [3, 2], [1, 1], [0, 0], False, True, "
                 "None)\nreturn (r,)\n"},
        {.params = "g f64[2, 3, 3, 2][18, 6, 2, 1]; x f64[2, 3, 7, 5][105, 35, 5, 1]",
         .body = "r = A._adaptive_avg_pool2d_backward.default(g, x)\nreturn (r,)\n"},
        {.params = "g f64[2, 3, 3, 4][36, 12, 4, 1]; x f64[2, 3, 6, 8][144, 48, 8, 1]",
         .body = "t = A.max_pool2d_with_indices.default(x, [2, 2])\ni = t[1]\nr = "
                 "A.max_pool2d_with_indices_backward.default(g, x, [2, 2], [2, 2], [0, 0], [1, 1], "
                 "False, i)\nreturn (r,)\n"},
        {.params = "g f64[2, 3, 8][24, 8, 1]",
         .body =
             "r = A.upsample_linear1d_backward.default(g, [8], [2, 3, 5], True)\nreturn (r,)\n"},
        {.params = "g f64[2, 3, 8, 6][144, 48, 6, 1]",
         .body = "r = A.upsample_bicubic2d_backward.default(g, [8, 6], [2, 3, 5, 4], "
                 "False)\nreturn (r,)\n"},
    };
    CHECK_ALL(cases);
}
END_TEST

START_TEST(upsampling) {
    static const GradCase cases[] = {
        {.params = "x f64[2, 3, 5][15, 5, 1]",
         .body = "r = A.upsample_nearest1d.default(x, [8])\nreturn (r,)\n"},
        {.params = "x f64[2, 3, 5][15, 5, 1]",
         .body = "r = A._upsample_nearest_exact1d.default(x, [7])\nreturn (r,)\n"},
        {.params = "x f64[2, 3, 5, 4][60, 20, 4, 1]",
         .body = "r = A.upsample_nearest2d.default(x, [8, 3])\nreturn (r,)\n"},
        {.params = "x f64[2, 3, 5, 4][60, 20, 4, 1]",
         .body = "r = A._upsample_nearest_exact2d.default(x, [8, 3])\nreturn (r,)\n"},
        {.params = "x f64[1, 2, 3, 4, 3][72, 36, 12, 3, 1]",
         .body = "r = A.upsample_nearest3d.default(x, [5, 2, 6])\nreturn (r,)\n"},
        {.params = "x f64[1, 2, 3, 4, 3][72, 36, 12, 3, 1]",
         .body = "r = A._upsample_nearest_exact3d.default(x, [5, 2, 6])\nreturn (r,)\n"},
        {.params = "x f64[2, 3, 5][15, 5, 1]",
         .body = "r = A.upsample_linear1d.default(x, [8], False)\nreturn (r,)\n"},
        {.params = "x f64[2, 3, 5][15, 5, 1]",
         .body = "r = A.upsample_linear1d.default(x, [8], True)\nreturn (r,)\n"},
        {.params = "x f64[2, 3, 5, 4][60, 20, 4, 1]",
         .body = "r = A.upsample_bilinear2d.default(x, [8, 3], False)\nreturn (r,)\n"},
        {.params = "x f64[2, 3, 5, 4][60, 20, 4, 1]",
         .body = "r = A.upsample_bilinear2d.default(x, [8, 3], True)\nreturn (r,)\n"},
        {.params = "x f64[2, 3, 5, 4][60, 20, 4, 1]",
         .body = "r = A.upsample_bicubic2d.default(x, [8, 3], False)\nreturn (r,)\n"},
        {.params = "x f64[2, 3, 5, 4][60, 20, 4, 1]",
         .body = "r = A.upsample_bicubic2d.default(x, [8, 3], True)\nreturn (r,)\n"},
        {.params = "x f64[1, 2, 3, 4, 3][72, 36, 12, 3, 1]",
         .body = "r = A.upsample_trilinear3d.default(x, [5, 2, 6], False)\nreturn (r,)\n"},
        {.params = "x f64[1, 2, 3, 4, 3][72, 36, 12, 3, 1]",
         .body = "r = A.upsample_trilinear3d.default(x, [5, 2, 6], True)\nreturn (r,)\n"},
        {.params = "x f64[2, 3, 5, 4][60, 20, 4, 1]",
         .body = "r = A._upsample_bilinear2d_aa.default(x, [8, 3], False)\nreturn (r,)\n"},
        {.params = "x f64[2, 3, 5, 4][60, 20, 4, 1]",
         .body = "r = A._upsample_bilinear2d_aa.default(x, [8, 3], True)\nreturn (r,)\n"},
        {.params = "x f64[2, 3, 9, 4][108, 36, 4, 1]",
         .body = "r = A._upsample_bicubic2d_aa.default(x, [4, 7], False)\nreturn (r,)\n"},
        {.params = "x f64[2, 3, 9, 4][108, 36, 4, 1]",
         .body = "r = A._upsample_bicubic2d_aa.default(x, [4, 7], True)\nreturn (r,)\n"},
    };
    CHECK_ALL(cases);
}
END_TEST

START_TEST(grids) {
    static const GradCase cases[] = {
        {.params = "x f64[2, 3, 4, 5][60, 20, 5, 1]; g f64[2, 3, 4, 2][24, 8, 2, 1]",
         .body = "r = A.grid_sampler_2d.default(x, g, 0, 0, False)\nreturn (r,)\n"},
        {.params = "x f64[2, 3, 4, 5][60, 20, 5, 1]; g f64[2, 3, 4, 2][24, 8, 2, 1]",
         .body = "r = A.grid_sampler_2d.default(x, g, 0, 1, True)\nreturn (r,)\n"},
        {.params = "x f64[2, 3, 4, 5][60, 20, 5, 1]; g f64[2, 3, 4, 2][24, 8, 2, 1]",
         .body = "r = A.grid_sampler_2d.default(x, g, 0, 2, False)\nreturn (r,)\n"},
        {.params = "x f64[2, 3, 4, 5][60, 20, 5, 1]; g f64[2, 3, 4, 2][24, 8, 2, 1]",
         .body = "r = A.grid_sampler_2d.default(x, g, 1, 0, False)\nreturn (r,)\n"},
        {.params = "x f64[2, 3, 4, 5][60, 20, 5, 1]; g f64[2, 3, 4, 2][24, 8, 2, 1]",
         .body = "r = A.grid_sampler_2d.default(x, g, 1, 1, True)\nreturn (r,)\n"},
        {.params = "x f64[2, 3, 4, 5][60, 20, 5, 1]; g f64[2, 3, 4, 2][24, 8, 2, 1]",
         .body = "r = A.grid_sampler_2d.default(x, g, 1, 2, False)\nreturn (r,)\n"},
        {.params = "x f64[2, 3, 4, 5][60, 20, 5, 1]; g f64[2, 3, 4, 2][24, 8, 2, 1]",
         .body = "r = A.grid_sampler_2d.default(x, g, 2, 0, False)\nreturn (r,)\n"},
        {.params = "x f64[2, 3, 4, 5][60, 20, 5, 1]; g f64[2, 3, 4, 2][24, 8, 2, 1]",
         .body = "r = A.grid_sampler_2d.default(x, g, 2, 1, True)\nreturn (r,)\n"},
        {.params = "x f64[2, 3, 4, 5][60, 20, 5, 1]; g f64[2, 3, 4, 2][24, 8, 2, 1]",
         .body = "r = A.grid_sampler_2d.default(x, g, 2, 2, False)\nreturn (r,)\n"},
        {.params = "x f64[1, 2, 3, 4, 3][72, 36, 12, 3, 1]; g f64[1, 2, 3, 2, 3][36, 18, 6, 3, 1]",
         .body = "r = A.grid_sampler_3d.default(x, g, 0, 0, True)\nreturn (r,)\n"},
        {.params = "x f64[1, 2, 3, 4, 3][72, 36, 12, 3, 1]; g f64[1, 2, 3, 2, 3][36, 18, 6, 3, 1]",
         .body = "r = A.grid_sampler_3d.default(x, g, 0, 1, False)\nreturn (r,)\n"},
        {.params = "x f64[1, 2, 3, 4, 3][72, 36, 12, 3, 1]; g f64[1, 2, 3, 2, 3][36, 18, 6, 3, 1]",
         .body = "r = A.grid_sampler_3d.default(x, g, 0, 2, True)\nreturn (r,)\n"},
        {.params = "x f64[1, 2, 3, 4, 3][72, 36, 12, 3, 1]; g f64[1, 2, 3, 2, 3][36, 18, 6, 3, 1]",
         .body = "r = A.grid_sampler_3d.default(x, g, 1, 0, True)\nreturn (r,)\n"},
        {.params = "x f64[1, 2, 3, 4, 3][72, 36, 12, 3, 1]; g f64[1, 2, 3, 2, 3][36, 18, 6, 3, 1]",
         .body = "r = A.grid_sampler_3d.default(x, g, 1, 1, False)\nreturn (r,)\n"},
        {.params = "x f64[1, 2, 3, 4, 3][72, 36, 12, 3, 1]; g f64[1, 2, 3, 2, 3][36, 18, 6, 3, 1]",
         .body = "r = A.grid_sampler_3d.default(x, g, 1, 2, True)\nreturn (r,)\n"},
        {.params = "x f64[2, 3, 4, 5][60, 20, 5, 1]; g f64[2, 3, 4, 2][24, 8, 2, 1]",
         .body = "r = A.grid_sampler_2d.default(x, g, 0, 0, False)\nreturn (r,)\n",
         .needs = "01"},
        {.params = "t f64[2, 2, 3][6, 3, 1]",
         .body = "r = A.affine_grid_generator.default(t, [2, 3, 4, 5], True)\nreturn (r,)\n"},
        {.params = "t f64[2, 3, 4][12, 4, 1]",
         .body = "r = A.affine_grid_generator.default(t, [2, 3, 2, 4, 5], False)\nreturn (r,)\n"},
    };
    CHECK_ALL(cases);
}
END_TEST

START_TEST(norms) {
    static const GradCase cases[] = {
        {.params = "x f64[2, 3, 4][12, 4, 1]; w f64[4][1]; b f64[4][1]",
         .body = "t = A.native_layer_norm.default(x, [4], w, b, 1e-05)\nr = t[0]\nreturn (r,)\n"},
        {.params = "x f64[2, 3, 4][12, 4, 1]; w f64[3, 4][4, 1]",
         .body =
             "t = A.native_layer_norm.default(x, [3, 4], w, None, 1e-05)\nr = t[0]\nreturn (r,)\n"},
        {.params = "x f64[2, 3, 4][12, 4, 1]; w f64[4][1]; b f64[4][1]",
         .body = "t = A.native_layer_norm.default(x, [4], w, b, 1e-05)\nr = t[0]\nreturn (r,)\n",
         .needs = "011"},
        {.params = "x f64[0, 4][4, 1]; w f64[4][1]; b f64[4][1]",
         .body = "t = A.native_layer_norm.default(x, [4], w, b, 1e-05)\nr = t[0]\nreturn (r,)\n"},
        {.params = "x f64[2, 6, 3, 2][36, 6, 2, 1]; w f64[6][1]; b f64[6][1]",
         .body = "t = A.native_group_norm.default(x, w, b, 2, 6, 6, 3, 1e-05)\nr = t[0]\nreturn "
                 "(r,)\n"},
        {.params = "x f64[2, 6, 3, 2][36, 1, 12, 6]; w f64[6][1]; b f64[6][1]",
         .body = "t = A.native_group_norm.default(x, w, b, 2, 6, 6, 3, 1e-05)\nr = t[0]\nreturn "
                 "(r,)\n"},
        {.params = "x f64[2, 6, 5][30, 5, 1]",
         .body = "t = A.native_group_norm.default(x, None, None, 2, 6, 5, 2, 1e-05)\nr = "
                 "t[0]\nreturn (r,)\n"},
        {.params = "x f64[2, 6, 3, 2][36, 6, 2, 1]; w f64[6][1]; b f64[6][1]",
         .body = "t = A.native_group_norm.default(x, w, b, 2, 6, 6, 3, 1e-05)\nr = t[0]\nm = "
                 "t[1]\ns = t[2]\nreturn (r, m, s)\n"},
        {.params = "x f64[2, 6, 3, 2][36, 6, 2, 1]; w f64[6][1]; b f64[6][1]",
         .body =
             "t = A.native_group_norm.default(x, w, b, 2, 6, 6, 3, 1e-05)\ns = t[2]\nreturn (s,)\n",
         .needs = "100"},
        {.params =
             "x f64[3, 4, 2, 2][16, 4, 2, 1]; w f64[4][1]; b f64[4][1]; m f64[4][1]; pos f64[4][1]",
         .body = "t = A.native_batch_norm.default(x, w, b, m, pos, True, 0.1, 1e-05)\nr = "
                 "t[0]\nreturn (r,)\n",
         .needs = "11100"},
        {.params =
             "x f64[3, 4, 2, 2][16, 4, 2, 1]; w f64[4][1]; b f64[4][1]; m f64[4][1]; pos f64[4][1]",
         .body = "t = A.native_batch_norm.default(x, w, b, m, pos, False, 0.1, 1e-05)\nr = "
                 "t[0]\nreturn (r,)\n",
         .needs = "11100"},
        {.params =
             "x f64[3, 4, 2, 2][16, 4, 2, 1]; w f64[4][1]; b f64[4][1]; m f64[4][1]; pos f64[4][1]",
         .body = "t = A._native_batch_norm_legit.default(x, w, b, m, pos, True, 0.1, 1e-05)\nr = "
                 "t[0]\nreturn (r,)\n",
         .needs = "11100"},
        {.params =
             "x f64[3, 4, 2, 2][16, 4, 2, 1]; w f64[4][1]; b f64[4][1]; m f64[4][1]; pos f64[4][1]",
         .body = "t = A._native_batch_norm_legit.default(x, w, b, m, pos, True, 0.1, 1e-05)\nr = "
                 "t[0]\nreturn (r,)\n",
         .needs = "01000"},
        {.params = "x f64[3, 4][4, 1]; w f64[4][1]; b f64[4][1]",
         .body = "t = A._native_batch_norm_legit.no_stats(x, w, b, True, 0.1, 1e-05)\nr = "
                 "t[0]\nreturn (r,)\n"},
        {.params = "x f64[3, 4][4, 1]",
         .body = "t = A._native_batch_norm_legit.no_stats(x, None, None, True, 0.1, 1e-05)\nr = "
                 "t[0]\nreturn (r,)\n"},
        {.params =
             "x f64[3, 4, 2, 2][16, 4, 2, 1]; w f64[4][1]; b f64[4][1]; m f64[4][1]; pos f64[4][1]",
         .body = "t = A._native_batch_norm_legit_no_training.default(x, w, b, m, pos, 0.1, "
                 "1e-05)\nr = t[0]\nreturn (r,)\n",
         .needs = "11100"},
        {.params =
             "x f64[3, 4, 2, 2][16, 4, 2, 1]; w f64[4][1]; b f64[4][1]; m f64[4][1]; pos f64[4][1]",
         .body = "t = A._batch_norm_with_update.default(x, w, b, m, pos, 0.1, 1e-05)\nr = "
                 "t[0]\nreturn (r,)\n",
         .needs = "11100"},
        {.params =
             "x f64[3, 4, 2, 2][16, 4, 2, 1]; w f64[4][1]; b f64[4][1]; m f64[4][1]; pos f64[4][1]",
         .body = "t = A._batch_norm_no_update.default(x, w, b, m, pos, 0.1, 1e-05)\nr = "
                 "t[0]\nreturn (r,)\n",
         .needs = "11100"},
        {.params = "x f64[2, 3, 4][12, 4, 1]; w f64[4][1]",
         .body = "t = A._fused_rms_norm.default(x, [4], w, 1e-05)\nr = t[0]\nreturn (r,)\n"},
        {.params = "x f64[2, 3, 4][12, 4, 1]; w f64[3, 4][4, 1]",
         .body = "t = A._fused_rms_norm.default(x, [3, 4], w, None)\nr = t[0]\ns = t[1]\nreturn "
                 "(r, s)\n"},
        {.params = "v f64[3, 4, 2][8, 2, 1]; g f64[3, 1, 1][1, 1, 1]",
         .body = "t = A._weight_norm_interface.default(v, g)\nr = t[0]\nreturn (r,)\n"},
        {.params = "v f64[3, 4, 2][8, 2, 1]; g f64[1, 1, 2][2, 2, 1]",
         .body = "t = A._weight_norm_interface.default(v, g, 2)\nr = t[0]\nreturn (r,)\n"},
    };
    CHECK_ALL(cases);
}
END_TEST

START_TEST(attention) {
    static const GradCase cases[] = {
        {.params = "q f64[2, 3, 4, 5][60, 20, 5, 1]; k f64[2, 3, 6, 5][90, 30, 5, 1]; v f64[2, 3, "
                   "6, 5][90, 30, 5, 1]",
         .body = "t = A._scaled_dot_product_flash_attention_for_cpu.default(q, k, v)\nr = "
                 "t[0]\nreturn (r,)\n"},
        {.params = "q f64[2, 3, 4, 5][60, 20, 5, 1]; k f64[2, 3, 6, 5][90, 30, 5, 1]; v f64[2, 3, "
                   "6, 5][90, 30, 5, 1]",
         .body = "t = A._scaled_dot_product_flash_attention_for_cpu.default(q, k, v, 0.0, True)\nr "
                 "= t[0]\nreturn (r,)\n"},
        {.params = "q f64[2, 3, 4, 5][60, 20, 5, 1]; k f64[2, 3, 6, 5][90, 30, 5, 1]; v f64[2, 3, "
                   "6, 5][90, 30, 5, 1]; m f64[4, 6][6, 1]",
         .body = "t = A._scaled_dot_product_flash_attention_for_cpu.default(q, k, v, attn_mask = "
                 "m, scale = 0.3)\nr = t[0]\nreturn (r,)\n",
         .needs = "1110"},
        {.params = "q f64[2, 3, 4, 5][60, 20, 5, 1]; k f64[2, 3, 6, 5][90, 30, 5, 1]; v f64[2, 3, "
                   "6, 5][90, 30, 5, 1]",
         .body =
             "r = A.scaled_dot_product_attention.default(q, k, v, None, 0.0, True)\nreturn (r,)\n"},
        {.params = "q f64[2, 3, 4, 5][60, 20, 5, 1]; k f64[2, 3, 6, 5][90, 30, 5, 1]; v f64[2, 3, "
                   "6, 5][90, 30, 5, 1]; m f64[4, 6][6, 1]",
         .body = "r = A.scaled_dot_product_attention.default(q, k, v, m)\nreturn (r,)\n"},
        {.params = "q f64[2, 3, 4, 5][60, 20, 5, 1]; k f64[2, 3, 6, 5][90, 30, 5, 1]; v f64[2, 3, "
                   "6, 5][90, 30, 5, 1]; m b8[4, 6][6, 1]",
         .body = "r = A.scaled_dot_product_attention.default(q, k, v, m)\nreturn (r,)\n"},
        {.params = "q f64[3, 4, 5][20, 5, 1]; k f64[3, 6, 5][30, 5, 1]; v f64[3, 6, 2][12, 2, 1]",
         .body = "r = A.scaled_dot_product_attention.default(q, k, v)\nreturn (r,)\n"},
        {.params = "q f64[3, 4, 5][20, 5, 1]; k f64[3, 6, 5][30, 5, 1]; v f64[3, 6, 2][12, 2, 1]",
         .body =
             "r = A.scaled_dot_product_attention.default(q, k, v, None, 0.0, True)\nreturn (r,)\n"},
        {.params = "q f64[1, 4, 4, 5][80, 20, 5, 1]; k f64[1, 2, 6, 5][60, 30, 5, 1]; v f64[1, 2, "
                   "6, 5][60, 30, 5, 1]",
         .body = "r = A.scaled_dot_product_attention.default(q, k, v, None, 0.0, False, enable_gqa "
                 "= True)\nreturn (r,)\n"},
    };
    CHECK_ALL(cases);
}
END_TEST

START_TEST(composites) {
    static const GradCase cases[] = {
        {.params = "x f64[2, 3, 4][12, 4, 1]; w f64[5, 4][4, 1]; b f64[5][1]",
         .body = "r = A.linear.default(x, w, b)\nreturn (r,)\n"},
        {.params = "x f64[4][1]; w f64[5, 4][4, 1]; b f64[5][1]",
         .body = "r = A.linear.default(x, w, b)\nreturn (r,)\n"},
        {.params = "x f64[0, 4, 3][12, 3, 1]; w f64[4][1]; b f64[4][1]; m f64[4][1]; pos f64[4][1]",
         .body =
             "r = A.batch_norm.default(x, w, b, m, pos, True, 0.1, 1e-05, False)\nreturn (r,)\n",
         .needs = "11100"},
        {.params = "x f64[2, 3, 2, 4][24, 8, 4, 1]; w f64[5, 4][4, 1]; b f64[5][1]",
         .body = "r = A.linear.default(x, w, b)\nreturn (r,)\n"},
        {.params = "x f64[2, 3, 4][12, 4, 1]; y f64[4, 5][5, 1]",
         .body = "r = A.matmul.default(x, y)\nreturn (r,)\n"},
        {.params = "x f64[3, 4][4, 1]; y f64[2, 4, 5][20, 5, 1]",
         .body = "r = A.matmul.default(x, y)\nreturn (r,)\n"},
        {.params = "x f64[2, 3, 4][12, 4, 1]; y f64[4][1]",
         .body = "r = A.matmul.default(x, y)\nreturn (r,)\n"},
        {.params = "x f64[4][1]; y f64[2, 4, 5][20, 5, 1]",
         .body = "r = A.matmul.default(x, y)\nreturn (r,)\n"},
        {.params = "x f64[2, 1, 3, 4][12, 12, 4, 1]; y f64[3, 4, 5][20, 5, 1]",
         .body = "r = A.matmul.default(x, y)\nreturn (r,)\n"},
        {.params = "x f64[3, 4][4, 1]; y f64[4, 5][5, 1]",
         .body = "r = A.einsum.default('ij,jk->ki', [x, y])\nreturn (r,)\n"},
        {.params = "x f64[3][1]; y f64[4][1]", .body = "r = A.outer.default(x, y)\nreturn (r,)\n"},
        {.params = "x f64[2, 3, 6, 6][108, 36, 6, 1]",
         .body = "r = A.max_pool2d.default(x, [2, 2])\nreturn (r,)\n"},
        {.params = "x f64[2, 3, 8][24, 8, 1]",
         .body = "r = A.max_pool1d.default(x, [2])\nreturn (r,)\n"},
        {.params = "x f64[2, 4, 5, 5][100, 25, 5, 1]",
         .body = "r = A.adaptive_avg_pool2d.default(x, [1, 1])\nreturn (r,)\n"},
        {.params = "x f64[2, 4, 5][20, 5, 1]; w f64[4][1]; b f64[4][1]; m f64[4][1]; pos f64[4][1]",
         .body =
             "r = A.instance_norm.default(x, w, b, m, pos, True, 0.1, 1e-05, False)\nreturn (r,)\n",
         .needs = "11100"},
        {.params = "x f64[2, 4, 5][20, 5, 1]; w f64[4][1]; b f64[4][1]",
         .body = "r = A.group_norm.default(x, 2, w, b)\nreturn (r,)\n"},
        {.params = "x f64[2, 4, 5][20, 5, 1]; w f64[5][1]",
         .body = "r = A.rms_norm.default(x, [5], w)\nreturn (r,)\n"},
        {.params = "x f64[2, 4, 5][20, 5, 1]; w f64[5][1]; b f64[5][1]",
         .body = "r = A.layer_norm.default(x, [5], w, b)\nreturn (r,)\n"},
        {.params = "x f64[3, 5][5, 1]; i5 i64[3][1]; posw f64[5][1]",
         .body = "r = A.cross_entropy_loss.default(x, i5, posw)\nreturn (r,)\n",
         .needs = "100"},
        {.params = "x f64[3, 5][5, 1]; i5 i64[3][1]; posw f64[5][1]",
         .body = "r = A.cross_entropy_loss.default(x, i5, posw, 1, -100, 0.1)\nreturn (r,)\n",
         .needs = "100"},
        {.params = "x f64[3, 5][5, 1]; i5 i64[3][1]",
         .body = "r = A.cross_entropy_loss.default(x, i5, None, 0, -100, 0.1)\nreturn (r,)\n",
         .needs = "10"},
        {.params = "w f64[5, 3][3, 1]; i5 i64[2, 4][4, 1]",
         .body = "r = A.embedding.default(w, i5)\nreturn (r,)\n",
         .needs = "10"},
        {.params = "x f64[2, 4, 5][20, 5, 1]; w f64[6, 4, 4][16, 4, 1]",
         .body = "r = A.conv1d.padding(x, w, None, [1], 'same')\nreturn (r,)\n"},
        {.params = "x f64[4, 5][5, 1]; w f64[6, 4, 3][12, 3, 1]; b f64[6][1]",
         .body = "r = A.conv1d.default(x, w, b)\nreturn (r,)\n"},
        {.params = "x f64[28, 3][3, 1]; y f64[4, 3][3, 1]",
         .body = "r = A.cdist.default(x, y)\nreturn (r,)\n"},
        {.params = "x f64[4, 3][3, 1]; y f64[4, 3][3, 1]",
         .body = "r = A.cosine_similarity.default(x, y)\nreturn (r,)\n"},
    };
    CHECK_ALL(cases);
}
END_TEST

Suite *suite_aot_derive_linear(void) {
    static const TTest *tests[10];
    tests[0] = products;
    tests[1] = distances;
    tests[2] = convolutions;
    tests[3] = pools;
    tests[4] = backward_of_backward;
    tests[5] = upsampling;
    tests[6] = grids;
    tests[7] = norms;
    tests[8] = attention;
    tests[9] = composites;
    return unit_suite("aot_derive_linear", tests, 10);
}
