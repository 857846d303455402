// aot_derive_linalg.c: gradients of factorizations, inverses and solvers against finite differences.
#include "tests/unit/grad_check.h"
#include "tests/unit/unit.h"

static void check_all(const GradCase *cases, int n) {
    for (int i = 0; i < n; i++)
        grad_check(&cases[i]);
}

#define CHECK_ALL(cases) check_all(cases, (int)(sizeof cases / sizeof cases[0]))

START_TEST(factors) {
    static const GradCase cases[] = {
        {.params = "x f64[2, 3, 3][9, 3, 1]",
         .body = "o = A.eye.default(3, dtype = torch.float64)\nh = A.transpose.int(x, -2, -1)\np = "
                 "A.matmul.default(x, h)\na = A.add.Tensor(p, o)\nt = "
                 "A.linalg_cholesky_ex.default(a)\nr = t[0]\nreturn (r,)\n"},
        {.params = "x f64[2, 3, 3][9, 3, 1]",
         .body = "o = A.eye.default(3, dtype = torch.float64)\nh = A.transpose.int(x, -2, -1)\np = "
                 "A.matmul.default(x, h)\na = A.add.Tensor(p, o)\nt = "
                 "A.linalg_cholesky_ex.default(a, upper = True)\nr = t[0]\nreturn (r,)\n"},
        {.params = "x f64[2, 3, 3][9, 3, 1]",
         .body = "o = A.eye.default(3, dtype = torch.float64)\nh = A.transpose.int(x, -2, -1)\np = "
                 "A.matmul.default(x, h)\na = A.add.Tensor(p, o)\nt = "
                 "A.cholesky.default(a)\nreturn (t,)\n"},
        {.params = "x f64[2, 3, 3][9, 3, 1]",
         .body = "o = A.eye.default(3, dtype = torch.float64)\nh = A.transpose.int(x, -2, -1)\np = "
                 "A.matmul.default(x, h)\na = A.add.Tensor(p, o)\nt = "
                 "A.linalg_cholesky_ex.default(a)\nl = t[0]\nr = "
                 "A.cholesky_inverse.default(l)\nreturn (r,)\n"},
        {.params = "x f64[2, 3, 3][9, 3, 1]; y f64[2, 3, 2][6, 2, 1]",
         .body =
             "o = A.eye.default(3, dtype = torch.float64)\nh = A.transpose.int(x, -2, -1)\np = "
             "A.matmul.default(x, h)\na = A.add.Tensor(p, o)\nt = A.linalg_cholesky_ex.default(a, "
             "upper = True)\nl = t[0]\nr = A.cholesky_solve.default(y, l, True)\nreturn (r,)\n"},
        {.params = "x f64[2, 4, 3][12, 3, 1]",
         .body = "t = A.linalg_qr.default(x)\nq = t[0]\nr = t[1]\nreturn (q, r)\n",
         .tolerance = 1e-5},
        {.params = "x f64[3, 5][5, 1]",
         .body = "t = A.linalg_qr.default(x)\nq = t[0]\nr = t[1]\nreturn (q, r)\n",
         .tolerance = 1e-5},
        {.params = "x f64[3, 5][5, 1]",
         .body = "t = A.linalg_qr.default(x)\nq = t[0]\nreturn (q,)\n",
         .tolerance = 1e-5},
        {.params = "x f64[4, 3][3, 1]",
         .body = "t = A.linalg_qr.default(x)\nr = t[1]\nreturn (r,)\n",
         .tolerance = 1e-5},
        {.params = "x f64[2, 3, 3][9, 3, 1]",
         .body = "t = A._linalg_svd.default(x)\nu = t[0]\ns = t[1]\nv = t[2]\nreturn (u, s, v)\n",
         .tolerance = 1e-5},
        {.params = "x f64[5, 3][3, 1]",
         .body = "t = A._linalg_svd.default(x)\nu = t[0]\ns = t[1]\nv = t[2]\nreturn (u, s, v)\n",
         .tolerance = 1e-5},
        {.params = "x f64[3, 5][5, 1]",
         .body = "t = A._linalg_svd.default(x)\nu = t[0]\ns = t[1]\nv = t[2]\nreturn (u, s, v)\n",
         .tolerance = 1e-5},
        {.params = "x f64[4, 3][3, 1]",
         .body = "t = A._linalg_svd.default(x)\nu = t[0]\ns = t[1]\nv = t[2]\nreturn (s,)\n",
         .tolerance = 1e-5},
        {.params = "x f64[3, 4][4, 1]",
         .body = "t = A._linalg_svd.default(x)\nu = t[0]\ns = t[1]\nv = t[2]\nreturn (v,)\n",
         .tolerance = 1e-5},
        {.params = "x f64[4, 3][3, 1]",
         .body = "t = A._linalg_svd.default(x)\nu = t[0]\ns = t[1]\nv = t[2]\nreturn (u,)\n",
         .tolerance = 1e-5},
        {.params = "x f64[2, 3, 3][9, 3, 1]",
         .body = "h = A.transpose.int(x, -2, -1)\na = A.add.Tensor(x, h)\nt = "
                 "A._linalg_eigh.default(a)\nl = t[0]\nv = t[1]\nreturn (l, v)\n",
         .tolerance = 1e-5},
        {.params = "x f64[3, 3][3, 1]",
         .body = "h = A.transpose.int(x, -2, -1)\na = A.add.Tensor(x, h)\nt = "
                 "A._linalg_eigh.default(a)\nl = t[0]\nreturn (l,)\n",
         .tolerance = 1e-5},
        {.params = "x f64[3, 3][3, 1]",
         .body = "t = A.linalg_lu_factor_ex.default(x)\nf = t[0]\nreturn (f,)\n",
         .tolerance = 1e-5},
        {.params = "x f64[5, 3][3, 1]",
         .body = "t = A.linalg_lu_factor_ex.default(x)\nf = t[0]\nreturn (f,)\n",
         .tolerance = 1e-5},
        {.params = "x f64[3, 5][5, 1]",
         .body = "t = A.linalg_lu_factor_ex.default(x)\nf = t[0]\nreturn (f,)\n",
         .tolerance = 1e-5},
        {.params = "x f64[3, 3][3, 1]",
         .body = "t = A.linalg_lu_factor_ex.default(x)\nf = t[0]\ni = t[1]\nu = "
                 "A.lu_unpack.default(f, i)\nl = u[1]\nv = u[2]\nreturn (l, v)\n",
         .tolerance = 1e-5},
        {.params = "x f64[5, 3][3, 1]",
         .body = "t = A.linalg_lu_factor_ex.default(x)\nf = t[0]\ni = t[1]\nu = "
                 "A.lu_unpack.default(f, i)\nl = u[1]\nv = u[2]\nreturn (l,)\n",
         .tolerance = 1e-5},
        {.params = "x f64[3, 5][5, 1]",
         .body = "t = A.linalg_lu_factor_ex.default(x)\nf = t[0]\ni = t[1]\nu = "
                 "A.lu_unpack.default(f, i)\nl = u[1]\nv = u[2]\nreturn (v,)\n",
         .tolerance = 1e-5},
    };
    CHECK_ALL(cases);
}
END_TEST

START_TEST(solvers) {
    static const GradCase cases[] = {
        {.params = "x f64[2, 3, 3][9, 3, 1]",
         .body = "t = A._linalg_det.default(x)\nr = t[0]\nreturn (r,)\n"},
        {.params = "x f64[3, 3][1, 3]",
         .body = "t = A._linalg_det.default(x)\nr = t[0]\nreturn (r,)\n"},
        {.params = "x f64[2, 3, 3][9, 3, 1]",
         .body = "t = A._linalg_slogdet.default(x)\ns = t[0]\nl = t[1]\nreturn (s, l)\n",
         .tolerance = 1e-5},
        {.params = "x f64[2, 3, 3][9, 3, 1]",
         .body = "o = A.eye.default(3, dtype = torch.float64)\nh = A.transpose.int(x, -2, -1)\np = "
                 "A.matmul.default(x, h)\na = A.add.Tensor(p, o)\nt = "
                 "A.linalg_inv_ex.default(a)\nr = t[0]\nreturn (r,)\n"},
        {.params = "x f64[2, 3, 3][9, 3, 1]; y f64[3, 2][2, 1]",
         .body = "o = A.eye.default(3, dtype = torch.float64)\nh = A.transpose.int(x, -2, -1)\np = "
                 "A.matmul.default(x, h)\na = A.add.Tensor(p, o)\nt = "
                 "A._linalg_solve_ex.default(a, y)\nr = t[0]\nreturn (r,)\n"},
        {.params = "x f64[2, 3, 3][9, 3, 1]; y f64[2, 3][3, 1]",
         .body = "o = A.eye.default(3, dtype = torch.float64)\nh = A.transpose.int(x, -2, -1)\np = "
                 "A.matmul.default(x, h)\na = A.add.Tensor(p, o)\nt = "
                 "A._linalg_solve_ex.default(a, y)\nr = t[0]\nreturn (r,)\n"},
        {.params = "x f64[2, 3, 3][9, 3, 1]; y f64[2, 2, 3][6, 3, 1]",
         .body = "o = A.eye.default(3, dtype = torch.float64)\nh = A.transpose.int(x, -2, -1)\np = "
                 "A.matmul.default(x, h)\na = A.add.Tensor(p, o)\nt = "
                 "A._linalg_solve_ex.default(a, y, left = False)\nr = t[0]\nreturn (r,)\n"},
        {.params = "x f64[4, 3][3, 1]",
         .body = "r = A.linalg_pinv.atol_rtol_tensor(x)\nreturn (r,)\n",
         .tolerance = 1e-5},
        {.params = "x f64[2, 3, 4][12, 4, 1]",
         .body = "r = A.linalg_pinv.atol_rtol_tensor(x)\nreturn (r,)\n",
         .tolerance = 1e-5},
        {.params = "x f64[2, 3, 3][9, 3, 1]; y f64[2, 3, 3][9, 3, 1]",
         .body =
             "o = A.eye.default(3, dtype = torch.float64)\nh = A.transpose.int(x, -2, -1)\np = "
             "A.matmul.default(x, h)\na = A.add.Tensor(p, o)\nt = "
             "A.linalg_solve_triangular.default(a, y, upper = True, left = True)\nreturn (t,)\n"},
        {.params = "x f64[2, 3, 3][9, 3, 1]; y f64[2, 3, 3][9, 3, 1]",
         .body =
             "o = A.eye.default(3, dtype = torch.float64)\nh = A.transpose.int(x, -2, -1)\np = "
             "A.matmul.default(x, h)\na = A.add.Tensor(p, o)\nt = "
             "A.linalg_solve_triangular.default(a, y, upper = True, left = False)\nreturn (t,)\n"},
        {.params = "x f64[2, 3, 3][9, 3, 1]; y f64[2, 3, 3][9, 3, 1]",
         .body =
             "o = A.eye.default(3, dtype = torch.float64)\nh = A.transpose.int(x, -2, -1)\np = "
             "A.matmul.default(x, h)\na = A.add.Tensor(p, o)\nt = "
             "A.linalg_solve_triangular.default(a, y, upper = False, left = True)\nreturn (t,)\n"},
        {.params = "x f64[2, 3, 3][9, 3, 1]; y f64[2, 3, 3][9, 3, 1]",
         .body =
             "o = A.eye.default(3, dtype = torch.float64)\nh = A.transpose.int(x, -2, -1)\np = "
             "A.matmul.default(x, h)\na = A.add.Tensor(p, o)\nt = "
             "A.linalg_solve_triangular.default(a, y, upper = False, left = False)\nreturn (t,)\n"},
        {.params = "x f64[2, 3, 3][9, 3, 1]; y f64[2, 3, 2][6, 2, 1]",
         .body = "o = A.eye.default(3, dtype = torch.float64)\nh = A.transpose.int(x, -2, -1)\np = "
                 "A.matmul.default(x, h)\na = A.add.Tensor(p, o)\nt = "
                 "A.linalg_solve_triangular.default(a, y, upper = True, unitriangular = "
                 "True)\nreturn (t,)\n"},
        {.params = "x f64[2, 3, 3][9, 3, 1]; y f64[2, 3, 2][6, 2, 1]",
         .body =
             "o = A.eye.default(3, dtype = torch.float64)\nh = A.transpose.int(x, -2, -1)\np = "
             "A.matmul.default(x, h)\na = A.add.Tensor(p, o)\nt = A.triangular_solve.default(y, a, "
             "True, True)\nr = t[0]\nm = t[1]\nreturn (r, m)\n"},
        {.params = "x f64[2, 3, 3][9, 3, 1]; y f64[2, 3, 2][6, 2, 1]",
         .body = "o = A.eye.default(3, dtype = torch.float64)\nh = A.transpose.int(x, -2, -1)\np = "
                 "A.matmul.default(x, h)\na = A.add.Tensor(p, o)\nt = "
                 "A.triangular_solve.default(y, a, False)\nr = t[0]\nreturn (r,)\n"},
        {.params = "x f64[3, 3][3, 1]; y f64[3, 3][3, 1]",
         .body = "o = A.eye.default(3, dtype = torch.float64)\na = A.add.Tensor(x, o, alpha = "
                 "2)\nt = A.linalg_lu_factor_ex.default(a)\nf = t[0]\ni = t[1]\nr = "
                 "A.linalg_lu_solve.default(f, i, y, left = True, adjoint = True)\nreturn (r,)\n"},
        {.params = "x f64[3, 3][3, 1]; y f64[3, 3][3, 1]",
         .body = "o = A.eye.default(3, dtype = torch.float64)\na = A.add.Tensor(x, o, alpha = "
                 "2)\nt = A.linalg_lu_factor_ex.default(a)\nf = t[0]\ni = t[1]\nr = "
                 "A.linalg_lu_solve.default(f, i, y, left = True, adjoint = False)\nreturn (r,)\n"},
        {.params = "x f64[3, 3][3, 1]; y f64[3, 3][3, 1]",
         .body = "o = A.eye.default(3, dtype = torch.float64)\na = A.add.Tensor(x, o, alpha = "
                 "2)\nt = A.linalg_lu_factor_ex.default(a)\nf = t[0]\ni = t[1]\nr = "
                 "A.linalg_lu_solve.default(f, i, y, left = False, adjoint = True)\nreturn (r,)\n"},
        {.params = "x f64[3, 3][3, 1]; y f64[3, 3][3, 1]",
         .body =
             "o = A.eye.default(3, dtype = torch.float64)\na = A.add.Tensor(x, o, alpha = 2)\nt = "
             "A.linalg_lu_factor_ex.default(a)\nf = t[0]\ni = t[1]\nr = "
             "A.linalg_lu_solve.default(f, i, y, left = False, adjoint = False)\nreturn (r,)\n"},
        {.params = "x f64[2, 3, 3][9, 3, 1]",
         .body = "r = A.linalg_matrix_exp.default(x)\nreturn (r,)\n"},
        {.params = "x f64[2, 4, 3][12, 3, 1]; u f64[2, 3][3, 1]",
         .body = "r = A.linalg_householder_product.default(x, u)\nreturn (r,)\n"},
        {.params = "x f64[4, 3][3, 1]; u f64[2][1]",
         .body = "r = A.linalg_householder_product.default(x, u)\nreturn (r,)\n"},
        {.params = "x f64[4, 3][3, 1]; u f64[3][1]; y f64[4, 4][4, 1]",
         .body = "r = A.ormqr.default(x, u, y, True, True)\nreturn (r,)\n"},
        {.params = "x f64[4, 3][3, 1]; u f64[3][1]; y f64[4, 4][4, 1]",
         .body = "r = A.ormqr.default(x, u, y, True, False)\nreturn (r,)\n"},
        {.params = "x f64[4, 3][3, 1]; u f64[3][1]; y f64[4, 4][4, 1]",
         .body = "r = A.ormqr.default(x, u, y, False, True)\nreturn (r,)\n"},
        {.params = "x f64[4, 3][3, 1]; u f64[3][1]; y f64[4, 4][4, 1]",
         .body = "r = A.ormqr.default(x, u, y, False, False)\nreturn (r,)\n"},
        {.params = "x f64[4, 3][3, 1]; y f64[4, 2][2, 1]",
         .body = "t = A.linalg_lstsq.default(x, y, driver = 'gels')\nr = t[0]\ns = t[1]\nreturn "
                 "(r, s)\n",
         .tolerance = 1e-5},
        {.params = "x f64[2, 4, 3][12, 3, 1]; y f64[2, 4][4, 1]",
         .body = "t = A.linalg_lstsq.default(x, y, driver = 'gelsd')\nr = t[0]\nreturn (r,)\n",
         .tolerance = 1e-5},
        {.params = "x f64[2, 3][3, 1]; y f64[2, 3][3, 1]",
         .body = "t = A.linalg_lstsq.default(x, y)\nr = t[0]\nreturn (r,)\n",
         .tolerance = 1e-5},
    };
    CHECK_ALL(cases);
}
END_TEST

// What ATen takes apart into them.
START_TEST(taken_apart) {
    static const GradCase cases[] = {
        {.params = "x f64[2, 3, 3][9, 3, 1]", .body = "r = A.linalg_det.default(x)\nreturn (r,)\n"},
        {.params = "x f64[2, 3, 3][9, 3, 1]",
         .body = "t = A.linalg_slogdet.default(x)\nl = t[1]\nreturn (l,)\n"},
        {.params = "x f64[3, 3][3, 1]",
         .body = "h = A.transpose.int(x, -2, -1)\np = A.matmul.default(x, h)\nr = "
                 "A.logdet.default(p)\nreturn (r,)\n"},
        {.params = "x f64[3, 3][3, 1]",
         .body = "o = A.eye.default(3, dtype = torch.float64)\na = A.add.Tensor(x, o, alpha = "
                 "3)\nr = A.linalg_inv.default(a)\nreturn (r,)\n"},
        {.params = "x f64[3, 3][3, 1]; y f64[3][1]",
         .body = "o = A.eye.default(3, dtype = torch.float64)\na = A.add.Tensor(x, o, alpha = "
                 "3)\nr = A.linalg_solve.default(a, y)\nreturn (r,)\n"},
        {.params = "x f64[3, 3][3, 1]",
         .body = "h = A.transpose.int(x, -2, -1)\np = A.matmul.default(x, h)\no = A.eye.default(3, "
                 "dtype = torch.float64)\na = A.add.Tensor(p, o)\nr = "
                 "A.linalg_cholesky.default(a)\nreturn (r,)\n"},
        {.params = "x f64[3, 3][3, 1]",
         .body = "h = A.transpose.int(x, -2, -1)\na = A.add.Tensor(x, h)\nr = "
                 "A.linalg_eigvalsh.default(a)\nreturn (r,)\n"},
        {.params = "x f64[4, 3][3, 1]", .body = "r = A.linalg_svdvals.default(x)\nreturn (r,)\n"},
        {.params = "x f64[4, 3][3, 1]; y f64[3, 5][5, 1]; z f64[5][1]",
         .body = "r = A.linalg_multi_dot.default([x, y, z])\nreturn (r,)\n"},
        {.params = "x f64[4, 3][3, 1]; y f64[3, 5][5, 1]; z f64[5, 2][2, 1]; w f64[2, 3][3, 1]",
         .body = "r = A.linalg_multi_dot.default([x, y, z, w])\nreturn (r,)\n"},
        {.params = "x f64[28, 3][3, 1]; y f64[4, 3][3, 1]",
         .body = "r = A.cdist.default(x, y)\nreturn (r,)\n"},
        {.params = "x f64[2, 28, 3][84, 3, 1]; y f64[1, 4, 3][12, 3, 1]",
         .body = "r = A.cdist.default(x, y)\nreturn (r,)\n"},
        {.params = "x f64[4, 3][3, 1]; y f64[5, 3][3, 1]",
         .body = "r = A.cdist.default(x, y, 1.0)\nreturn (r,)\n"},
        {.params = "x f64[4, 3][1, 4]", .body = "r = A.pdist.default(x)\nreturn (r,)\n"},
        {.params = "v f64[3, 4, 2][8, 2, 1]; g f64[3, 1, 1][1, 1, 1]",
         .body = "r = A._weight_norm.default(v, g, 0)\nreturn (r,)\n"},
        {.params = "v f64[3, 4, 2][8, 2, 1]; g f64[1, 4, 1][4, 1, 1]",
         .body = "r = A._weight_norm.default(v, g, 1)\nreturn (r,)\n"},
        {.params = "x f64[2, 5, 3][15, 3, 1]; y f64[2, 5, 2][10, 2, 1]; w f64[4, 3, 2][6, 2, 1]; b "
                   "f64[4][1]",
         .body = "r = A.bilinear.default(x, y, w, b)\nreturn (r,)\n"},
    };
    CHECK_ALL(cases);
}
END_TEST

Suite *suite_aot_derive_linalg(void) {
    static const TTest *tests[3];
    tests[0] = factors;
    tests[1] = solvers;
    tests[2] = taken_apart;
    return unit_suite("aot_derive_linalg", tests, 3);
}
