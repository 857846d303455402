// aot_derive_pointwise.c: derivatives of elementwise ops, activations, losses: against differences
// in float64, against recorded gradients, and the calls that a formula makes, in their order.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/aot/derive.h"
#include "core/base/file.h"
#include "core/base/json.h"
#include "tests/unit/aot_grads.h"
#include "tests/unit/unit.h"

#define A(op)    "y = torch.ops.aten." op "(a)"
#define AB(op)   "y = torch.ops.aten." op "(a, b)"
#define ABC(op)  "y = torch.ops.aten." op "(a, b, c)"
#define F34      "f64[3, 4]"
#define UNARY(op, low, high) {op, {F34}, A(op), low, high}
#define BINARY(op, low, high)                                                                      \
    {op, {F34, F34}, AB(op), low, high}, {op " broadcast", {"f64[3, 1]", "f64[4]"}, AB(op), low, high}, \
        {op " 0-dim", {"f64[]", F34}, AB(op), low, high}, {op " empty", {"f64[0, 4]", "f64[4]"}, AB(op), low, high}

static const Difference arithmetic[] = {
    BINARY("add.Tensor", -2, 2),
    {"add.Tensor alpha", {F34, F34}, "y = torch.ops.aten.add.Tensor(a, b, alpha = 2.5)", -2, 2},
    {"add.Scalar", {F34}, "y = torch.ops.aten.add.Scalar(a, 2.5)", -2, 2},
    BINARY("sub.Tensor", -2, 2),
    {"sub.Tensor alpha", {F34, F34}, "y = torch.ops.aten.sub.Tensor(a, b, alpha = 3)", -2, 2},
    {"sub.Scalar", {F34}, "y = torch.ops.aten.sub.Scalar(a, 2)", -2, 2},
    BINARY("rsub.Tensor", -2, 2),
    {"rsub.Scalar", {F34}, "y = torch.ops.aten.rsub.Scalar(a, 2, 3)", -2, 2},
    BINARY("mul.Tensor", -2, 2),
    {"mul.Tensor same", {F34}, "y = torch.ops.aten.mul.Tensor(a, a)", -2, 2},
    {"mul.Tensor by integers", {F34, "-i64[4]"}, AB("mul.Tensor"), -3, 3},
    {"mul.Scalar", {F34}, "y = torch.ops.aten.mul.Scalar(a, 2.5)", -2, 2},
    BINARY("div.Tensor", 0.5, 2),
    {"div.Scalar", {F34}, "y = torch.ops.aten.div.Scalar(a, 3)", -2, 2},
    {"div.Tensor_mode none", {F34, F34}, "y = torch.ops.aten.div.Tensor_mode(a, b, rounding_mode = None)", 0.5, 2},
    {"div.Tensor_mode floor", {F34, F34}, "y = torch.ops.aten.div.Tensor_mode(a, b, rounding_mode = 'floor')", 0.5, 2},
    {"div.Scalar_mode trunc", {F34}, "y = torch.ops.aten.div.Scalar_mode(a, 0.3, rounding_mode = 'trunc')", 0.5, 2},
    {"div.Scalar_mode none", {F34}, "y = torch.ops.aten.div.Scalar_mode(a, 0.3, rounding_mode = None)", 0.5, 2},
    BINARY("fmod.Tensor", 0.5, 3),
    {"fmod.Scalar", {F34}, "y = torch.ops.aten.fmod.Scalar(a, 0.7)", -3, 3},
    BINARY("remainder.Tensor", 0.5, 3),
    {"remainder.Scalar", {F34}, "y = torch.ops.aten.remainder.Scalar(a, 0.7)", -3, 3},
    UNARY("neg.default", -2, 2),
    UNARY("reciprocal.default", 0.5, 2),
    {"addcmul", {F34, "f64[4]", F34}, "y = torch.ops.aten.addcmul.default(a, b, c, value = 1.5)", -2, 2},
    {"addcdiv", {F34, F34, "f64[3, 1]"}, "y = torch.ops.aten.addcdiv.default(a, b, c, value = 2)", 0.5, 2},
    {"lerp.Scalar", {F34, "f64[4]"}, "y = torch.ops.aten.lerp.Scalar(a, b, 0.3)", -2, 2},
    {"lerp.Tensor", {F34, "f64[4]", F34}, ABC("lerp.Tensor"), -2, 2},
    BINARY("hypot.default", 0.5, 2),
    BINARY("ldexp.Tensor", -2, 2),
    {"frexp", {F34}, "f = torch.ops.aten.frexp.Tensor(a)\ny = f[0]", 0.51, 0.99},
    BINARY("atan2.default", 0.5, 2),
    BINARY("copysign.Tensor", 0.5, 2),
    {"copysign.Scalar", {F34}, "y = torch.ops.aten.copysign.Scalar(a, -1)", 0.5, 2},
};

static const Difference powers[] = {
    {"pow 3", {F34}, "y = torch.ops.aten.pow.Tensor_Scalar(a, 3)", -2, 2},
    {"pow 2.5", {F34}, "y = torch.ops.aten.pow.Tensor_Scalar(a, 2.5)", 0.5, 2},
    {"pow -1", {F34}, "y = torch.ops.aten.pow.Tensor_Scalar(a, -1)", 0.5, 2},
    {"pow 0", {F34}, "y = torch.ops.aten.pow.Tensor_Scalar(a, 0)", 0.5, 2},
    {"pow 1", {F34}, "y = torch.ops.aten.pow.Tensor_Scalar(a, 1)", -2, 2},
    BINARY("pow.Tensor_Tensor", 0.5, 2),
    {"pow of integers", {F34, "-i64[4]"}, AB("pow.Tensor_Tensor"), 1, 3},
    {"pow by an integer base", {"-i64[4]", F34}, AB("pow.Tensor_Tensor"), 1, 3},
    {"pow.Scalar", {F34}, "y = torch.ops.aten.pow.Scalar(2.5, a)", -2, 2},
    {"pow.Scalar 0", {F34}, "y = torch.ops.aten.pow.Scalar(0, a)", 0.5, 2},
    UNARY("exp.default", -2, 2),
    UNARY("exp2.default", -2, 2),
    UNARY("expm1.default", -2, 2),
    UNARY("log.default", 0.5, 2),
    UNARY("log10.default", 0.5, 2),
    UNARY("log1p.default", -0.5, 2),
    UNARY("log2.default", 0.5, 2),
    BINARY("logaddexp.default", -2, 2),
    BINARY("logaddexp2.default", -2, 2),
    UNARY("sqrt.default", 0.5, 2),
    UNARY("rsqrt.default", 0.5, 2),
    BINARY("xlogy.Tensor", 0.5, 2),
    {"xlogy.Scalar_Self", {F34}, "y = torch.ops.aten.xlogy.Scalar_Self(1.5, a)", 0.5, 2},
    {"xlogy.Scalar_Other", {F34}, "y = torch.ops.aten.xlogy.Scalar_Other(a, 1.5)", 0.5, 2},
    BINARY("special_xlog1py.default", 0.5, 2),
    {"special_xlog1py.self_scalar", {F34}, "y = torch.ops.aten.special_xlog1py.self_scalar(1.5, a)", 0.5, 2},
    {"special_xlog1py.other_scalar", {F34}, "y = torch.ops.aten.special_xlog1py.other_scalar(a, 1.5)", 0.5, 2},
};

static const Difference functions[] = {
    UNARY("sin.default", -2, 2),
    UNARY("cos.default", -2, 2),
    UNARY("tan.default", -1, 1),
    UNARY("asin.default", -0.8, 0.8),
    UNARY("acos.default", -0.8, 0.8),
    UNARY("atan.default", -2, 2),
    UNARY("sinh.default", -2, 2),
    UNARY("cosh.default", -2, 2),
    UNARY("tanh.default", -2, 2),
    UNARY("asinh.default", -2, 2),
    UNARY("acosh.default", 1.5, 3),
    UNARY("atanh.default", -0.8, 0.8),
    UNARY("sinc.default", 0.2, 2),
    UNARY("rad2deg.default", -2, 2),
    UNARY("deg2rad.default", -2, 2),
    UNARY("erf.default", -1, 1),
    UNARY("erfc.default", -1, 1),
    UNARY("special_erfcx.default", -1, 1),
    UNARY("erfinv.default", -0.7, 0.7),
    UNARY("lgamma.default", 0.5, 3),
    UNARY("digamma.default", 0.5, 3),
    {"polygamma 0", {F34}, "y = torch.ops.aten.polygamma.default(0, a)", 1, 3},
    {"polygamma 2", {F34}, "y = torch.ops.aten.polygamma.default(2, a)", 1, 3},
    {"mvlgamma", {F34}, "y = torch.ops.aten.mvlgamma.default(a, 3)", 2, 4},
    {"mvlgamma 0-dim", {"f64[]"}, "y = torch.ops.aten.mvlgamma.default(a, 1)", 2, 4},
    {"igamma", {"-f64[3, 1]", F34}, AB("igamma.default"), 0.5, 2},
    {"igammac", {"-f64[3, 1]", F34}, AB("igammac.default"), 0.5, 2},
    UNARY("i0.default", -2, 2),
    UNARY("special_i0e.default", 0.2, 2),
    UNARY("special_i1.default", -2, 2),
    UNARY("special_i1e.default", 0.2, 2),
    UNARY("special_entr.default", 0.2, 2),
    UNARY("special_ndtri.default", 0.2, 0.8),
    UNARY("special_log_ndtr.default", -2, 2),
    {"special_zeta", {"-f64[4]", F34}, AB("special_zeta.default"), 1.5, 3},
    {"special_zeta.self_scalar", {F34}, "y = torch.ops.aten.special_zeta.self_scalar(2.5, a)", 1.5, 3},
    UNARY("logit.default", 0.2, 0.8),
    {"logit eps", {F34}, "y = torch.ops.aten.logit.default(a, 0.3)", 0.01, 0.99},
};

static const Difference bounds[] = {
    UNARY("abs.default", -2, 2),
    UNARY("ceil.default", -2, 2),
    UNARY("floor.default", -2, 2),
    UNARY("round.default", -2, 2),
    UNARY("trunc.default", -2, 2),
    UNARY("sign.default", -2, 2),
    UNARY("sgn.default", -2, 2),
    UNARY("frac.default", -2, 2),
    UNARY("nan_to_num.default", -2, 2),
    {"clamp", {F34}, "y = torch.ops.aten.clamp.default(a, -0.5, 0.7)", -2, 2},
    {"clamp above", {F34}, "y = torch.ops.aten.clamp.default(a, None, 0.7)", -2, 2},
    {"clamp below", {F34}, "y = torch.ops.aten.clamp.default(a, 0.1)", -2, 2},
    {"clamp.Tensor", {F34, "f64[4]", "f64[3, 1]"}, ABC("clamp.Tensor"), -2, 2},
    {"clamp.Tensor max", {F34, "f64[4]"}, "y = torch.ops.aten.clamp.Tensor(a, None, b)", -2, 2},
    {"clamp.Tensor min", {F34, "f64[4]"}, "y = torch.ops.aten.clamp.Tensor(a, b)", -2, 2},
    {"clamp_min", {F34}, "y = torch.ops.aten.clamp_min.default(a, 0.1)", -2, 2},
    {"clamp_max", {F34}, "y = torch.ops.aten.clamp_max.default(a, 0.1)", -2, 2},
    BINARY("clamp_min.Tensor", -2, 2),
    BINARY("clamp_max.Tensor", -2, 2),
    BINARY("maximum.default", -2, 2),
    BINARY("minimum.default", -2, 2),
    BINARY("fmax.default", -2, 2),
    BINARY("fmin.default", -2, 2),
    {"where.self", {"-b8[4]", F34, "f64[3, 1]"}, ABC("where.self"), -2, 2},
    {"masked_fill.Scalar", {F34, "-b8[4]"}, "y = torch.ops.aten.masked_fill.Scalar(a, b, 2)", -2, 2},
    {"masked_fill.Tensor", {F34, "-b8[4]", "f64[]"}, ABC("masked_fill.Tensor"), -2, 2},
    {"masked_scatter", {F34, "-b8[3, 4]", "f64[13]"}, ABC("masked_scatter.default"), -2, 2},
};

static const Difference activations[] = {
    UNARY("relu.default", -2, 2),
    {"threshold", {F34}, "y = torch.ops.aten.threshold.default(a, 0.1, 20)", -2, 2},
    UNARY("sigmoid.default", -2, 2),
    UNARY("hardsigmoid.default", -5, 5),
    UNARY("hardswish.default", -5, 5),
    {"hardtanh", {F34}, "y = torch.ops.aten.hardtanh.default(a, -0.7, 0.9)", -2, 2},
    UNARY("hardshrink.default", -2, 2),
    UNARY("softshrink.default", -2, 2),
    {"softplus", {F34}, "y = torch.ops.aten.softplus.default(a, 2, 3)", -2, 2.5},
    UNARY("silu.default", -2, 2),
    UNARY("mish.default", -2, 2),
    UNARY("gelu.default", -2, 2),
    {"gelu tanh", {F34}, "y = torch.ops.aten.gelu.default(a, approximate = 'tanh')", -2, 2},
    {"glu", {F34}, "y = torch.ops.aten.glu.default(a, -1)", -2, 2},
    {"elu", {F34}, "y = torch.ops.aten.elu.default(a, 1.5, 1.1, 0.8)", -2, 2},
    {"celu", {F34}, "y = torch.ops.aten.celu.default(a, 1.5)", -2, 2},
    {"leaky_relu", {F34}, "y = torch.ops.aten.leaky_relu.default(a, 0.2)", -2, 2},
    {"log_sigmoid", {F34}, "f = torch.ops.aten.log_sigmoid_forward.default(a)\ny = f[0]", -2, 2},
    {"prelu", {"f64[2, 3, 4]", "f64[1, 3, 1]"}, AB("_prelu_kernel.default"), -2, 2},
    {"rrelu", {F34, "-f64[3, 4]"}, "y = torch.ops.aten.rrelu_with_noise.default(a, b, 0.1, 0.3, False)", -2, 2},
};

static const Difference losses[] = {
    {"mse_loss", {F34, F34}, AB("mse_loss.default"), -2, 2},
    {"mse_loss none", {F34, F34}, "y = torch.ops.aten.mse_loss.default(a, b, 0)", -2, 2},
    {"smooth_l1_loss", {F34, F34}, "y = torch.ops.aten.smooth_l1_loss.default(a, b, 2, 0.8)", -2, 2},
    {"huber_loss", {F34, F34}, "y = torch.ops.aten.huber_loss.default(a, b, 1, 0.8)", -2, 2},
    {"soft_margin_loss", {F34, "-f64[3, 4]"}, AB("soft_margin_loss.default"), -2, 2},
    {"multi_margin_loss", {F34, "-i64[3]"}, "y = torch.ops.aten.multi_margin_loss.default(a, b, 2, 0.5)", 0, 3.9},
    {"multi_margin_loss weight", {F34, "-i64[3]", "-f64[4]"}, "y = torch.ops.aten.multi_margin_loss.default(a, b, 1, 0.5, c, 0)", 0, 3.9},
    {"multilabel_margin_loss", {F34, "-i64[3, 4]"}, "f = torch.ops.aten.multilabel_margin_loss_forward.default(a, b, 2)\ny = f[0]", -1, 3.9},
    {"nll_loss", {F34, "-i64[3]", "-f64[4]"}, "f = torch.ops.aten.nll_loss_forward.default(a, b, c, 1, -100)\ny = f[0]", 0, 3.9},
    {"nll_loss none", {F34, "-i64[3]"}, "f = torch.ops.aten.nll_loss_forward.default(a, b, None, 0, 2)\ny = f[0]", 0, 3.9},
    {"nll_loss2d", {"f64[2, 4, 3, 2]", "-i64[2, 3, 2]"}, "f = torch.ops.aten.nll_loss2d_forward.default(a, b, None, 2, -100)\ny = f[0]", 0, 3.9},
    {"binary_cross_entropy", {F34, F34, "-f64[4]"}, ABC("binary_cross_entropy.default"), 0.2, 0.8},
    {"binary_cross_entropy none", {F34, F34}, "y = torch.ops.aten.binary_cross_entropy.default(a, b, None, 0)", 0.2, 0.8},
    {"bce with logits", {F34, F34}, AB("binary_cross_entropy_with_logits.default"), -2, 2},
    {"bce with logits, weights", {F34, F34, "-f64[4]", "-f64[4]"}, "y = torch.ops.aten.binary_cross_entropy_with_logits.default(a, b, c, d, 2)", 0.2, 2},
};

// In place on a tensor that is no leaf; the casts and copies; two uses of one saved result.
static const Difference forms[] = {
    {"mul_", {F34, F34}, "x = torch.ops.aten.mul.Tensor(a, 1.5)\ny = torch.ops.aten.mul_.Tensor(x, b)", -2, 2},
    {"sigmoid_", {F34}, "x = torch.ops.aten.mul.Tensor(a, 1.5)\ny = torch.ops.aten.sigmoid_.default(x)", -2, 2},
    {"cos_", {F34}, "x = torch.ops.aten.mul.Tensor(a, 1.5)\ny = torch.ops.aten.cos_.default(x)", -2, 2},
    {"pow_", {F34}, "x = torch.ops.aten.mul.Tensor(a, 1.5)\ny = torch.ops.aten.pow_.Scalar(x, 3)", -2, 2},
    {"div_", {F34, "f64[4]"}, "x = torch.ops.aten.mul.Tensor(a, 1.5)\ny = torch.ops.aten.div_.Tensor(x, b)", 0.5, 2},
    {"elu_", {F34}, "x = torch.ops.aten.mul.Tensor(a, 1.5)\ny = torch.ops.aten.elu_.default(x, 1.5, 1.1, 0.8)", -2, 2},
    {"leaky_relu_", {F34}, "x = torch.ops.aten.mul.Tensor(a, 1.5)\ny = torch.ops.aten.leaky_relu_.default(x, 0.2)", -2, 2},
    {"clamp_", {F34}, "x = torch.ops.aten.mul.Tensor(a, 1.5)\ny = torch.ops.aten.clamp_.default(x, -1, 1)", -2, 2},
    {"xlogy_", {F34, F34}, "x = torch.ops.aten.mul.Tensor(a, 1.5)\ny = torch.ops.aten.xlogy_.Tensor(x, b)", 0.5, 2},
    {"masked_fill_", {F34, "-b8[3, 4]"}, "x = torch.ops.aten.mul.Tensor(a, 1.5)\ny = torch.ops.aten.masked_fill_.Scalar(x, b, 0)", -2, 2},
    {"fill_", {F34, "f64[]"}, "x = torch.ops.aten.mul.Tensor(a, 1.5)\nz = torch.ops.aten.fill_.Tensor(x, b)\ny = torch.ops.aten.mul.Tensor(z, a)", -2, 2},
    {"zero_", {F34}, "x = torch.ops.aten.mul.Tensor(a, 1.5)\nz = torch.ops.aten.zero_.default(x)\ny = torch.ops.aten.add.Tensor(z, a)", -2, 2},
    {"copy_", {F34, "f64[4]"}, "x = torch.ops.aten.mul.Tensor(a, 1.5)\nz = torch.ops.aten.copy_.default(x, b)\ny = torch.ops.aten.mul.Tensor(z, a)", -2, 2},
    {"clone", {F34}, A("clone.default"), -2, 2},
    {"lift_fresh_copy", {F34}, A("lift_fresh_copy.default"), -2, 2},
    {"detach", {F34}, "x = torch.ops.aten.detach.default(a)\nz = torch.ops.aten.mul.Tensor(a, 2)\ny = torch.ops.aten.add.Tensor(z, 1)", -2, 2},
    {"fill.Tensor", {F34, "f64[]"}, "x = torch.ops.aten.fill.Tensor(a, b)\ny = torch.ops.aten.mul.Tensor(x, a)", -2, 2},
    {"exp twice", {F34}, "x = torch.ops.aten.exp.default(a)\nz = torch.ops.aten.exp.default(x)\ny = torch.ops.aten.mul.Tensor(x, z)", -1, 1},
    {"unused branch", {F34, F34}, "x = torch.ops.aten.mul.Tensor(a, b)\ny = torch.ops.aten.sin.default(a)", -1, 1},
    {"native_dropout off", {F34}, "f = torch.ops.aten.native_dropout.default(a, 0.4, False)\ny = f[0]", -1, 1},
    {"mul of two types", {F34, "f32[3, 4]"}, AB("mul.Tensor"), -2, 2},
    {"pow of two types", {"f32[4]", F34}, AB("pow.Tensor_Tensor"), 0.5, 2},
    {"where of two types", {"-b8[4]", "f32[3, 1]", F34}, ABC("where.self"), -2, 2},
    {"copy_ of another type", {F34, "f32[4]"}, "x = torch.ops.aten.mul.Tensor(a, 1.5)\nz = torch.ops.aten.copy_.default(x, b)\ny = torch.ops.aten.mul.Tensor(z, a)", -2, 2},
    {"_to_copy", {"f32[3, 4]"}, "x = torch.ops.aten._to_copy.default(a, dtype = torch.float64)\ny = torch.ops.aten.sin.default(x)", -2, 2},
    {"tanh_backward", {F34, F34}, AB("tanh_backward.default"), -1, 1},
    {"sigmoid_backward", {F34, F34}, AB("sigmoid_backward.default"), -1, 1},
    {"threshold_backward", {F34, F34}, "y = torch.ops.aten.threshold_backward.default(a, b, 0.1)", -1, 1},
    {"hardswish_backward", {F34, F34}, AB("hardswish_backward.default"), -5, 5},
    {"leaky_relu_backward", {F34, F34}, "y = torch.ops.aten.leaky_relu_backward.default(a, b, 0.1, False)", -1, 1},
};

#define EACH(table, decomps)                                                                       \
    for (int i = 0; i < COUNT(table); i++)                                                         \
    check_differences(&(table)[i], decomps)

START_TEST(test_arithmetic) {
    EACH(arithmetic, DECOMP_none);
    EACH(arithmetic, DECOMP_inductor);
}
END_TEST

START_TEST(test_powers) {
    EACH(powers, DECOMP_none);
    EACH(powers, DECOMP_inductor);
}
END_TEST

START_TEST(test_functions) {
    EACH(functions, DECOMP_none);
    EACH(functions, DECOMP_inductor);
}
END_TEST

START_TEST(test_bounds) {
    EACH(bounds, DECOMP_none);
    EACH(bounds, DECOMP_inductor);
}
END_TEST

START_TEST(test_activations) {
    EACH(activations, DECOMP_none);
    EACH(activations, DECOMP_inductor);
}
END_TEST

START_TEST(test_losses) {
    EACH(losses, DECOMP_none);
    EACH(losses, DECOMP_inductor);
}
END_TEST

START_TEST(test_forms) {
    EACH(forms, DECOMP_none);
    EACH(forms, DECOMP_inductor);
}
END_TEST

// The op of each row, and whether it draws random numbers.
static bool is_row(OpId id) {
    static const bool rows[OP_count] = {
#define DERIVE(op, rule, flags, doc) [OP_##op] = true,
#define NO_DERIVATIVE(op)            [OP_##op] = true,
#include "core/aot/derive_pointwise.def"
#undef DERIVE
#undef NO_DERIVATIVE
    };
    return rows[id];
}

// Do all calls of the graph's text have a row in this family?
static bool all_rows(Arena *a, const char *code) {
    for (const char *p = strstr(code, "torch.ops."); p; p = strstr(p + 1, "torch.ops.")) {
        const Op *op = op_find(arena_strndup(a, p, strcspn(p, "(")));
        if (!op || !is_row(op->id) || op->tags & OPT_random)
            return false;
    }
    return strstr(code, "torch.ops.") != NULL;
}

START_TEST(test_recorded) {
    const char *path = "../shared/opcases/grads.jsonl";
    if (!file_exists(path))
        return;
    Arena a = {0};
    Diag d = {.arena = &a};
    Str text = file_read(&a, path, &d);
    int mine = 0, all = 0, passed = 0;
    for (size_t at = 0; at < text.len;) {
        const char *end = memchr(text.ptr + at, '\n', text.len - at);
        Str line = {text.ptr + at, end ? (size_t)(end - text.ptr) - at : text.len - at};
        at += line.len + 1;
        Arena tmp = {0};
        Json *j = json_parse(&tmp, line, "case", &d);
        bool rows = all_rows(&tmp, json_str(json_get(j, "code"), ""));
        if (rows || getenv("FX_REPORT")) {
            const char *opinfo;
            const char *wrong = check_recorded(&tmp, line, DECOMP_none, &opinfo);
            if (wrong && getenv("FX_REPORT"))
                printf("%s: %s\n", opinfo, wrong);
            ck_assert_msg(!rows || !wrong, "%s: %s", opinfo, wrong);
            passed += !wrong;
        }
        mine += rows;
        all++;
        arena_free(&tmp);
    }
    if (getenv("FX_REPORT"))
        printf("%d of %d\n", passed, all);
    ck_assert_int_ge(mine, 200);
    arena_free(&a);
}
END_TEST

// Rows are formulas of arguments in alphabetical order, each of an argument that the op has.
START_TEST(test_order_of_formulas) {
    for (int id = 1; id < OP_count; id++) {
        const Derivative *d = &derivatives[id];
        if (d->rule != derive_formula)
            continue;
        const Op *op = op_at((OpId)id);
        char last[64] = "";
        for (const char *p = d->doc; *p;) {
            size_t n = strcspn(p, ":");
            char name[64];
            ck_assert_msg(n < sizeof name, "%s: %s", op->qualname, d->doc);
            memcpy(name, p, n);
            name[n] = 0;
            ck_assert_msg(op_arg_index(op, name) >= 0, "%s has no argument %s", op->qualname, name);
            ck_assert_msg(strcmp(last, name) < 0, "%s: %s before %s", op->qualname, last, name);
            memcpy(last, name, sizeof last);
            p += strcspn(p, ";");
            p += strspn(p, "; ");
        }
    }
}
END_TEST

// A formula that reads a result saves it.
START_TEST(test_saved_results) {
    for (int id = 1; id < OP_count; id++) {
        const Derivative *d = &derivatives[id];
        if (d->rule != derive_formula)
            continue;
        const Op *op = op_at((OpId)id);
        bool reads = strstr(d->doc, "result)") || strstr(d->doc, "result ") ||
                     strstr(d->doc, "result.") || strstr(d->doc, "result,");
        for (const char *p = d->doc; (p = strstr(p, "result")); p++)
            reads |= !p[6] || p[6] == ';';
        ck_assert_msg(!reads || d->flags & SAVE_r0, "%s: %s", op->qualname, d->doc);
        ck_assert_msg(reads || !(d->flags & SAVE_r0), "%s saves a result in vain", op->qualname);
    }
}
END_TEST

static void expect_calls(const char *graph, const char *want) {
    Arena a = {0};
    const bool needs[4] = {true, true, true, true};
    ck_assert_str_eq(joint_text(&a, graph, needs, DECOMP_none), want);
    arena_free(&a);
}

// What GCC makes of `grad * -self.sin()`, `-0.5 * grad * result.pow(3)` and `1 - self.pow(2)`.
START_TEST(test_order_of_calls) {
    expect_calls("def forward(self, a: \"f64[3]\"):\n"
                 "    y = torch.ops.aten.rsqrt.default(a)\n    return (y,)\n",
                 "torch.ops.aten.rsqrt.default\ntorch.ops.aten.detach.default\n"
                 "torch.ops.aten.detach.default\ntorch.ops.aten.pow.Tensor_Scalar\n"
                 "torch.ops.aten.mul.Scalar\ntorch.ops.aten.mul.Tensor\n");
    expect_calls("def forward(self, a: \"f64[3]\"):\n"
                 "    y = torch.ops.aten.atanh.default(a)\n    return (y,)\n",
                 "torch.ops.aten.atanh.default\ntorch.ops.aten.pow.Tensor_Scalar\n"
                 "torch.ops.aten.empty_like.default\ntorch.ops.aten.fill.Scalar\n"
                 "torch.ops.aten.sub.Tensor\ntorch.ops.aten.mul.Scalar\ntorch.ops.aten.div.Tensor\n");
    expect_calls("def forward(self, a: \"f64[3]\", b: \"f64[3]\"):\n"
                 "    y = torch.ops.aten.maximum.default(a, b)\n    return (y,)\n",
                 "torch.ops.aten.maximum.default\n"
                 "torch.ops.aten.div.Scalar\ntorch.ops.aten.eq.Tensor\ntorch.ops.aten.where.self\n"
                 "torch.ops.aten.gt.Tensor\ntorch.ops.aten.masked_fill.Scalar\n"
                 "torch.ops.aten.div.Scalar\ntorch.ops.aten.eq.Tensor\ntorch.ops.aten.where.self\n"
                 "torch.ops.aten.lt.Tensor\ntorch.ops.aten.masked_fill.Scalar\n");
}
END_TEST

Suite *suite_aot_derive_pointwise(void) {
    const TTest *const tests[] = {test_arithmetic,    test_powers,       test_functions,
                                  test_bounds,        test_activations,  test_losses,
                                  test_forms,         test_recorded,     test_order_of_formulas,
                                  test_saved_results, test_order_of_calls};
    return unit_suite("aot_derive_pointwise", tests, COUNT(tests));
}
