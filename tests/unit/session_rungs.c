// session_rungs.c: graphs on which a rung once gave other numbers than eager, found at random by
// tests/random and made small; each runs on all of them.
#include "tests/unit/unit.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/base/file.h"
#include "core/session.h"

static const struct Found {
    const char *about;
    const char *grad, *hints;
    const char *inputs, *body; // parted by "; "
} found[] = {
    {"resampling to a given size from one that is a symbol", "none", "s0=4",
     "s0 Sym(s0); x f32[1, 2, s0, 5][10*s0, 5*s0, 5, 1]",
     "y = torch.nn.functional.interpolate(x, size = (7, 9)); "
     "z = torch.nn.functional.interpolate(x, size = (7, 9), mode = 'bilinear', align_corners = "
     "True); w = torch.nn.functional.interpolate(x, scale_factor = 2.0); return (y, z, w)"},
    {"an LSTM, batch first", "params", NULL,
     "x f32[2, 3, 4][12, 4, 1]; h f32[1, 2, 5][10, 5, 1]; c f32[1, 2, 5][10, 5, 1]; "
     "p_w f32[20, 4][4, 1]; p_u f32[20, 5][5, 1]; p_a f32[20][1]; p_b f32[20][1]",
     "y = torch.ops.aten.lstm.input(x, [h, c], [p_w, p_u, p_a, p_b], True, 1, 0.0, False, False, "
     "True); o = y[0]; n = y[2]; return (o, n)"},
    {"a GRU in both directions", "params", NULL,
     "x f32[3, 2, 4][8, 4, 1]; h f32[2, 2, 5][10, 5, 1]; p_w f32[15, 4][4, 1]; p_u f32[15, "
     "5][5, 1]; p_v f32[15, 4][4, 1]; p_z f32[15, 5][5, 1]",
     "y = torch.ops.aten.gru.input(x, h, [p_w, p_u, p_v, p_z], False, 1, 0.0, False, True, "
     "False); o = y[0]; n = y[1]; return (o, n)"},
    {"truth values divided by a number are integers", "none", NULL, "x b8[3][1]",
     "y = torch.ops.aten.floor_divide.Scalar(x, 2); return (y,)"},
    {"a part of nothing is a part", "none", NULL, "x f64[4, 3, 0][6, 2, 2]",
     "s = torch.ops.aten.split.Tensor(x, 2, 2); g = s[0]; return (g,)"},
    {"dimensions of a number move", "none", NULL, "x i64[][]",
     "y = torch.ops.aten.movedim.int(x, 0, 0); return (y,)"},
    {"a number that follows from a size", "params", "s0=5",
     "s0 Sym(s0); p_w f64[s0][1]; x f64[s0][1]",
     "y = torch.ops.aten.mse_loss.default(p_w, x); return (y,)"},
    {"two over a size less one", "params", "s0=5", "s0 Sym(s0); p_w f32[8, s0, 4][s0, 1, 8*s0]",
     "y = torch.ops.aten.var.correction(p_w, [1, 2]); return (y,)"},
    {"a number that follows from a size, negated", "params", "s0=5",
     "s0 Sym(s0); p_w f32[s0][1]; x f32[s0][1]",
     "y = torch.ops.aten.huber_loss.default(p_w, x); return (y,)"},
    {"a sum in integers of real numbers", "none", NULL, "x f64[17, 1, 4][8, 8, 2]",
     "y = torch.ops.aten.sum.dim_IntList(x, [1, 2], True, dtype = torch.int32); return (y,)"},
    {"a square of booleans is a number", "none", NULL, "x b8[4][1]",
     "y = torch.ops.aten.square.default(x); z = y + x; return (y, z)"},
    {"positive is the tensor itself", "none", NULL, "x i8[3][1]; y i8[3][1]",
     "p = torch.ops.aten.positive.default(x); u = torch.ops.aten.add_.Tensor(x, y); return (p,)"},
    {"positive keeps strides", "none", NULL, "x f64[3, 6, 6][48, 8, 1]",
     "p = torch.ops.aten.positive.default(x); y = p * 2; return (y, p)"},
    {"a view by reshape of an input with gaps is not written", "none", NULL,
     "x f32[17, 2, 4][16, 8, 2]; i i64[3][1]; v f32[][]",
     "r = torch.ops.aten.reshape.default(x, [17, 2, 2, -1]); "
     "y = torch.ops.aten.index_put.default(r, [i], v, True); return (y,)"},
    {"what a nest writes twice is in memory", "none", "s0=5,s2=2",
     "s0 Sym(s0); s2 Sym(s2); x f64[s2, 1, 1, s0][1, 1, s2, s2]",
     "m = torch.ops.aten.mul.Scalar(x, 5.0); t = torch.ops.aten.to.dtype(m, torch.int64); "
     "r = torch.ops.aten.remainder.Scalar(t, 1); "
     "s = torch.ops.aten.scatter_.value(x, -3, r, -1.25); "
     "e = torch.ops.aten.softmax.int(m, 0); y = torch.ops.aten.slice_scatter.default(s, e, 2); "
     "return (y,)"},
    {"a diagonal of symbolic size is written", "params", "s0=3,s1=4",
     "s0 Sym(s0); s1 Sym(s1); p_w f64[s0, s1, 1][s1, 1, 1]",
     "d = torch.ops.aten.diagonal.default(p_w); y = d * 2; return (y,)"},
    {"elements that are one in memory", "none", NULL, "x f64[1, 3][3, 1]; v f64[][]",
     "m = x * 2; u = torch.ops.aten.unfold.default(m, 1, 2, 1); i = "
     "torch.ops.aten.arange.default(1); "
     "y = torch.ops.aten.index_put.default(u, [i], v, True); return (y,)"},
    {"a part of a cat is not written", "none", NULL, "x f64[32][1]; i i64[3][1]; v f64[][]",
     "m = x * 0.5; s = torch.ops.aten.stack.default([x, m]); "
     "y = torch.ops.aten.index_put.default(m, [i], v, True); return (y, s)"},
    {"values computed from what is written", "none", NULL, "x i8[3, 2][1, 12]; i i64[2][1]",
     "s = torch.ops.aten.sigmoid.default(x); z = i * 0; "
     "v = torch.ops.aten.index_select.default(s, 1, z); "
     "y = torch.ops.aten.index_add.default(s, 1, z, v); return (y,)"},
    {"a sum of booleans is a boolean", "none", NULL, "x b8[16][1]; y b8[16][1]",
     "a = torch.ops.aten.add.Scalar(y, True); b = torch.ops.aten.bitwise_and.Tensor(x, a); "
     "return (a, b)"},
    {"the place of the largest counts in the order as written", "none", NULL, "x f64[6, 17][1, 6]",
     "y = torch.ops.aten.argmax.default(x); return (y,)"},
    {"a tensor without elements has none that are one", "params", NULL,
     "p_w f64[8, 3, 0][3, 1, 1]; i i64[8, 3, 0][3, 1, 1]",
     "l = torch.ops.aten.log10.default(p_w); y = torch.ops.aten.gather.default(l, 0, i); return "
     "(y,)"},
    {"what is written twice is copied back once", "none", NULL,
     "x f64[17, 1][1, 1]; i i64[1][1]; k i64[3][1]; v f64[][]",
     "z = i * 0; f = torch.ops.aten.index_fill_.int_Scalar(x, 1, z, 0.5); n = k * 0; "
     "y = torch.ops.aten.index_put.default(f, [n], v, True); return (y,)"},
    {"an index computed from what is written", "none", NULL,
     "x f64[1, 8, 4][32, 4, 1]; y i64[6][1]",
     "r = torch.ops.aten.reshape.default(x, [-1]); s = torch.ops.aten.slice.Tensor(r, 0, 0, 3); "
     "m = torch.ops.aten.mul.Scalar(s, 5.0); t = torch.ops.aten.to.dtype(m, torch.int64); "
     "i = torch.ops.aten.remainder.Scalar(t, 4); "
     "f = torch.ops.aten.index_fill_.int_Scalar(x, 2, i, -1.25); return (y,)"},
    {"an index that is what is written", "none", NULL, "v i64[][]; x f64[3][1]",
     "a = torch.ops.aten.arange.default(1); b = torch.ops.aten.arange.default(1); "
     "p = torch.ops.aten.index_put_.default(a, [b], v, True); return (a,)"},
    {"a cumulated product of many: more arguments than tcc passes", "params", NULL,
     "p_w f64[260][1]", "y = torch.ops.aten.cumprod.default(p_w, 0); return (y,)"},
    {"a half float that never reaches memory", "params", NULL,
     "p_w bf16[2, 1, 6][6, 6, 1]; x bf16[2, 1, 6][6, 6, 1]",
     "a = torch.ops.aten.atan2.default(p_w, x); b = torch.ops.aten.abs.default(a); "
     "c = torch.ops.aten.reshape.default(b, [-1]); d = torch.ops.aten.repeat.default(c, [4]); "
     "e = torch.ops.aten.reshape.default(d, [1, 2, 4, 6]); "
     "y = torch.ops.aten.max_pool2d.default(e, [2, 2]); return (y,)"},
    {"a sum as a truth value", "none", NULL, "x f64[3][1]",
     "s = torch.ops.aten.sum.dim_IntList(x, [0], dtype = torch.bool); "
     "y = torch.ops.aten.where.ScalarOther(s, s, 0.75); "
     "p = torch.ops.aten.prod.dim_int(x, 0, dtype = torch.bool); z = p + 1; return (y, z)"},
    {"a view behind a sum with zeros that is gone", "params", NULL,
     "p_w f64[1, 2, 3, 4][24, 12, 4, 1]; x f64[24][1]",
     "r = torch.ops.aten.reshape.default(x, [1, 2, 3, 4]); "
     "s = torch.ops.aten.scaled_dot_product_attention.default(p_w, p_w, r); "
     "c = torch.ops.aten.copysign.Tensor(p_w, r); return (c, s)"},
    {"a hundred indirect loads in one loop", "none", NULL, "x f64[1, 2, 8, 12][192, 96, 12, 1]",
     "v = torch.ops.aten.var.correction(x, []); r = torch.ops.aten.reshape.default(v, [-1]); "
     "t = torch.ops.aten.repeat.default(r, [48]); "
     "i = torch.ops.aten.reshape.default(t, [1, 2, 4, 6]); "
     "u = torch.ops.aten.upsample_bilinear2d.vec(i, None, False, [2.0, 2.0]); "
     "y = torch.ops.aten.smooth_l1_loss.default(x, u); return (y,)"},
    {"the whole cat over a part of it", "none", NULL, "x f64[6][1]; y i64[6][1]",
     "t = torch.ops.aten.to.dtype(x, torch.int64); c = torch.ops.aten.cat.default([y, t]); "
     "p = torch.ops.aten.chunk.default(c, 2); g = p[0]; h = p[1]; "
     "a = torch.ops.aten.add_.Tensor(g, t); return (h,)"},
    {"a part of symbolic size that ends where the whole does", "none", "s0=2",
     "s0 Sym(s0); x f32[s0, 1][1, 1]; y f32[s0, 1][1, 1]",
     "n = torch.ops.aten.narrow.default(x, 0, 1, 1); z = y + n; return (z,)"},
    {"the slope of elu where it is no number", "params", NULL, "p_w f64[3][1]",
     "l = torch.ops.aten.log.default(p_w); s = torch.ops.aten.sum.default(l); "
     "n = s * nan; y = torch.ops.aten.elu.default(n); return (y,)"},
    {"an input copied to another, then written", "none", NULL, "x f64[3][1]; y f64[3][1]",
     "c = torch.ops.aten.copy_.default(y, x); n = torch.ops.aten.neg_.default(x); z = y * 2; "
     "return (z,)"},
    {"an input copied to what is returned, then written", "none", NULL, "x f64[3][1]; y f64[3][1]",
     "t = torch.ops.aten.zeros_like.default(y); c = torch.ops.aten.copy_.default(t, x); "
     "n = torch.ops.aten.neg_.default(x); return (t, c)"},
    {"a stack of symbolic size that is nothing", "none", "s0=2,s1=8",
     "s0 Sym(s0); s1 Sym(s1); x f64[s0 - 2, s1, 1][2*s1, 2, 2]; y f64[s0 - 2, s1, 1][s1, 1, 1]",
     "s = torch.ops.aten.stack.default([x, y, y], 1); return (s,)"},
    {"a scatter read by what shares its loops with another", "none", NULL,
     "x f64[3, 16][16, 1]; i i64[4][1]",
     "m = torch.ops.aten.mul.Scalar(x, 5.0); t = torch.ops.aten.to.dtype(m, torch.int64); "
     "r = torch.ops.aten.remainder.Scalar(t, 16); "
     "s = torch.ops.aten.scatter.value(x, 1, r, 0.75); "
     "l = torch.ops.aten.layer_norm.default(m, [16]); "
     "f = torch.ops.aten.index_fill.int_Scalar(l, 1, i, 2.0); g = torch.ops.aten.sgn.default(x); "
     "n = torch.ops.aten.minimum.default(s, g); return (n, f)"},
    {"a part of a cat is not what is returned", "params", "s0=3",
     "s0 Sym(s0); p_w f64[s0][1]; y i32[1][1]",
     "s = torch.ops.aten.sum.dim_IntList(p_w, [0], True, dtype = torch.int32); "
     "m = torch.ops.aten.max.default(s); n = torch.ops.aten.mul.Scalar(m, 1); "
     "r = torch.ops.aten.rsub.Scalar(p_w, 3.0); c = torch.ops.aten.stack.default([s, y]); "
     "k = torch.ops.aten.mul.Scalar(c, 1); return (k, r, n)"},
    {"sizes merged across channels that come last, written", "none", NULL,
     "x f64[2, 3, 5, 5][75, 25, 5, 1]; w f64[4, 3, 3, 3][27, 9, 3, 1]; b f64[4][1]; i i64[2][1]; v "
     "f64[][]",
     "c = torch.ops.aten.convolution.default(x, w, b, [1, 1], [0, 0], [1, 1], False, [0, 0], 1); "
     "r = torch.ops.aten.view.default(c, [2, -1, 3]); n = i * 0; "
     "y = torch.ops.aten.index_put_.default(r, [n], v, True); return (y,)"},
    {"what is computed from a part of a cat that is written later", "none", NULL,
     "x i32[4, 1, 3][3, 1, 1]",
     "n = torch.ops.aten.neg.default(x); c = torch.ops.aten.cat.default([x, n], 1); "
     "p = torch.ops.aten.pow.Tensor_Scalar(n, 2); r = torch.ops.aten.reshape.default(p, [-1]); "
     "s = torch.ops.aten.slice.Tensor(r, 0, 0, 3); t = torch.ops.aten.to.dtype(s, torch.int64); "
     "i = torch.ops.aten.remainder.Scalar(t, 3); "
     "f = torch.ops.aten.index_fill_.int_Scalar(c, 2, i, 0); "
     "a = torch.ops.aten.argmax.default(i); return (a, f)"},
    {"a constant of symbolic size made after its size", "none", "s0=3,s1=4",
     "s0 Sym(s0); s1 Sym(s1); x i8[s0, s1][s1, 1]; y i8[s0*s1][1]",
     "z = torch.ops.aten.zeros_like.default(x); v = torch.ops.aten.view.default(z, [-1]); "
     "s = torch.ops.aten.stack.default([v, y, y]); return (s,)"},
    {"a half float stored over what has been read", "params", NULL, "p_w f16[1][1]",
     "r = torch.ops.aten.repeat.default(p_w, [48]); "
     "s = torch.ops.aten.reshape.default(r, [1, 2, 4, 6]); "
     "a = torch.ops.aten.avg_pool2d.default(s, [2, 2]); "
     "b = torch.ops.aten.slice.Tensor(a, 2, 0, None, 2); "
     "c = torch.ops.aten.reflection_pad2d.default(s, [1, 0, 1, 1]); return (c, b)"},
    {"loops of s0 and of s0 squared", "params", "s0=4,s2=8",
     "s0 Sym(s0); s2 Sym(s2); p_w f64[s0, s0, s2][s0*s2, s2, 1]",
     "v = torch.ops.aten.var.correction(p_w, [2]); u = torch.ops.aten.var.correction(v, [1]); "
     "s = torch.ops.aten.slice.Tensor(v, 1, 2); a = torch.ops.aten.abs.default(v); "
     "b = torch.ops.aten.add.Scalar(a, 0.5); p = torch.ops.aten.pow.Tensor_Scalar(b, 0.25); "
     "return (p, s, u)"},
    {"one element read by all while all are written", "none", NULL, "x f64[2, 5][5, 1]",
     "r = torch.ops.aten.reshape.default(x, [-1]); s = torch.ops.aten.slice.Tensor(r, 0, 0, 1); "
     "p = torch.ops.aten.prelu.default(x, s); a = torch.ops.aten.add_.Tensor(x, x); "
     "t = torch.ops.aten.triu.default(a, 1); return (t, p)"},
    {"a copy onto itself", "none", NULL, "x f32[1, 2, 3][3, 3, 1]",
     "r = torch.ops.aten.reshape.default(x, [-1]); c = torch.ops.aten.copy_.default(r, r); "
     "y = c * 2; return (y,)"},
    // Lists of tensors: as an optimizer writes parameters, and one item read for another one.
    {"the step of an optimizer", "none", NULL,
     "p f32[3, 4][4, 1]; q f32[5][1]; g f32[3, 4][4, 1]; h f32[5][1]; m f32[3, 4][4, 1]; "
     "n f32[5][1]",
     "a = torch._foreach_mul_([m, n], 0.9); b = torch._foreach_add_([m, n], [g, h], alpha = 0.1); "
     "c = torch._foreach_abs([m, n]); d = c[0]; e = c[1]; f = torch._foreach_add_([d, e], 1.0); "
     "i = torch._foreach_addcdiv_([p, q], [m, n], [d, e], value = -0.01); "
     "j = torch._foreach_lerp_([g, h], [m, n], 0.3); k = torch._foreach_norm([g, h]); l = k[1]; "
     "o = torch._foreach_mul([p, q], [2.0, 3]); r = o[0]; s = p.sum(); return (l, r, s)"},
    {"an item is read for another one, both are written", "none", NULL,
     "x f32[3][1]; y f32[3][1]; z f32[3][1]",
     "a = torch._foreach_add_([x, y], [y, z]); b = torch._foreach_copy_([z], [x]); return (y,)"},
    {"gradients of lists", "all", NULL, "x f32[3, 4][4, 1]; y f32[5][1]",
     "a = torch._foreach_exp([x, y]); b = a[0]; c = a[1]; d = torch._foreach_mul([b, c], [b, c]); "
     "e = d[0]; f = d[1]; g = torch._foreach_neg_([e, f]); "
     "h = torch._foreach_maximum([e, f], -2.0); i = h[0]; j = h[1]; return (i, j)"},
    // Sizes and numbers that only the run can tell.
    {"places that are not zero", "none", NULL, "x f32[6, 5][5, 1]",
     "m = torch.ops.aten.gt.Scalar(x, 0); i = torch.ops.aten.nonzero.default(m); "
     "a = torch.ops.aten.select.int(i, 1, 0); b = torch.ops.aten.select.int(i, 1, 1); "
     "v = torch.ops.aten.index.Tensor(x, [a, b]); r = v * 2; s = torch.ops.aten.sum.default(r); "
     "return (i, r, s)"},
    {"nothing is not zero", "none", NULL, "x f32[4][1]",
     "z = x * 0; i = torch.ops.aten.nonzero.default(z); y = i + 1; return (i, y)"},
    {"two unknown sizes joined", "none", NULL, "x f32[8, 4][4, 1]; y f64[9][1]",
     "m = torch.ops.aten.gt.Scalar(x, 0); a = torch.ops.aten.masked_select.default(x, m); "
     "n = torch.ops.aten.lt.Scalar(y, 0.5); b = torch.ops.aten.masked_select.default(y, n); "
     "c = torch.ops.aten.cat.default([a, b]); e = torch.ops.aten.exp.default(c); "
     "s = torch.ops.aten.sum.default(c); return (e, s)"},
    {"the gradient of a selection", "params", NULL, "p_w f64[4, 5][5, 1]; x f64[5][1]",
     "m = torch.ops.aten.gt.Scalar(x, 0); q = p_w * p_w; "
     "y = torch.ops.aten.masked_select.default(q, m); w = y * y; "
     "z = torch.ops.aten.sum.default(w); return (z,)"},
    {"a whole number of a tensor", "none", NULL, "x f32[3, 4][4, 1]; i i64[5][1]",
     "a = torch.ops.aten.abs.default(i); t = torch.ops.aten.sum.default(a); "
     "n = torch.ops.aten.item.default(t); y = x * n; f = torch.ops.aten.full.default([n], 2.5); "
     "g = f + n; return (y, g)"},
    {"a whole number out of a view", "none", NULL, "x i32[3, 4][4, 1]; y f32[2][1]",
     "v = torch.ops.aten.select.int(x, 1, 2); w = torch.ops.aten.select.int(v, 0, 1); "
     "n = torch.ops.aten.item.default(w); z = y + n; return (z,)"},
    {"a real number of a tensor, before it is written", "none", NULL, "x f32[7][1]; y f32[][]",
     "f = torch.ops.aten.item.default(y); u = torch.ops.aten.add_.Tensor(y, 1); z = x * f; "
     "w = torch.ops.aten.clamp.default(z, f); return (z, w)"},
    {"two real numbers", "none", NULL, "x f32[7][1]; y f32[][]; z f64[1][1]",
     "f = torch.ops.aten.item.default(y); g = torch.ops.aten.item.default(z); a = x * f; "
     "b = a + g; c = torch.ops.aten.histc.default(x, 4, f, 9.0); return (b, c)"},
    {"a truth out of a tensor", "none", NULL, "x f32[7][1]; y b8[][]",
     "t = torch.ops.aten.item.default(y); z = x * t; return (z,)"},
    {"values that occur, and how often", "none", NULL, "x i64[40][1]",
     "r = torch.ops.aten.remainder.Scalar(x, 7); "
     "u = torch.ops.aten._unique2.default(r, True, True, True); a = u[0]; b = u[1]; c = u[2]; "
     "m = a * c; e = torch.ops.aten.index.Tensor(m, [b]); return (a, c, e)"},
    {"as often as a tensor says", "none", NULL, "x i64[5][1]; y f32[5][1]",
     "r = torch.ops.aten.remainder.Scalar(x, 4); "
     "i = torch.ops.aten.repeat_interleave.Tensor(r); "
     "z = torch.ops.aten.index.Tensor(y, [i]); w = torch.ops.aten.cumsum.default(z, 0); "
     "return (i, w)"},
    {"rows by a mask", "none", NULL, "x f32[6, 3][3, 1]; y f32[6][1]",
     "m = torch.ops.aten.gt.Scalar(y, 0); r = torch.ops.aten.index.Tensor(x, [m]); "
     "s = torch.ops.aten.softmax.int(r, 1); t = torch.ops.aten.t.default(s); "
     "p = torch.ops.aten.mm.default(t, s); return (s, p)"},
};

// Graphs that PyTorch refuses, with what it says: no rung takes them.
static const struct Found refused[] = {
    {"output with shape [] doesn't match the broadcast shape [1]", "none", NULL,
     "x f64[][]; m b8[1][1]", "y = torch.ops.aten.masked_fill_.Scalar(x, m, 2.0); return (y,)"},
    {"some elements of the input tensor and the written-to tensor refer to a single memory "
     "location",
     "none", NULL, "x i8[2][1]",
     "n = torch.ops.aten.narrow.default(x, 0, 1, 1); y = torch.ops.aten.sub_.Tensor(x, n); "
     "return (y,)"},
    {"some elements of the input tensor and the written-to tensor refer to a single memory "
     "location",
     "none", NULL, "x f64[3, 3][3, 1]",
     "t = torch.ops.aten.t.default(x); y = torch.ops.aten.copy_.default(x, t); return (y,)"},
    {"some elements of the input tensor and the written-to tensor refer to a single memory "
     "location",
     "none", NULL, "x i64[4][1]", "y = torch.ops.aten.index_put_.default(x, [x], x); return (y,)"},
    {"output with shape [] doesn't match the broadcast shape [1]", "none", NULL,
     "x f32[][]; y f64[1][1]", "c = torch.ops.aten.copy_.default(x, y); return (c,)"},
    {"Subtraction, the `-` operator, with a bool tensor is not supported", "none", NULL,
     "x b8[4][1]; v f64[4][1]", "y = torch.ops.aten.sub.Tensor(v, x); return (y,)"},
    {"to be divisible by the square of upscale_factor", "none", NULL,
     "x f64[1, 2, 3, 3][18, 9, 3, 1]",
     "y = torch.ops.aten.pixel_shuffle.default(x, 2); return (y,)"},
    {"expected src to have a size equal to the slice of self", "none", NULL,
     "x f64[3, 4][4, 1]; v f64[3][1]",
     "y = torch.ops.aten.select_scatter.default(x, v, 0, 0); return (y,)"},
};

static void put_text(Buf *b, const struct Found *f) {
    buf_puts(b, "class GraphModule(torch.nn.Module):\n    def forward(self");
    for (const char *p = f->inputs; *p;) {
        size_t name = strcspn(p, " "), all = strcspn(p, ";");
        const char *prefix = str_starts(p, "p_") ? "L_self_parameters_" : "";
        bool symbol = str_starts(p + name + 1, "Sym");
        buf_printf(b, ", %s%.*s: \"%.*s%s\"", prefix, (int)name, p, (int)(all - name - 1),
                   p + name + 1, symbol ? "" : "cpu");
        p += all + strspn(p + all, "; ");
    }
    buf_puts(b, "):\n");
    for (const char *p = f->inputs; p; p = strchr(p, ';')) {
        p += strspn(p, "; ");
        int n = (int)strcspn(p, " ");
        if (str_starts(p, "p_"))
            buf_printf(b, "        %.*s = L_self_parameters_%.*s\n", n, p, n, p);
    }
    for (const char *p = f->body; *p;) {
        size_t n = strcspn(p, ";");
        buf_printf(b, "        %.*s\n", (int)n, p);
        p += n + strspn(p + n, "; ");
    }
}

static double at(const Tensor *x, int64_t i) {
    return dtype_is_float(x->dtype) ? tensor_get_f64(x, i) : (double)tensor_get_i64(x, i);
}

static void same(const struct Found *f, const char *rung, const char *what, const RtValue *want,
                 int n_want, const RtValue *got, int n_got) {
    ck_assert_msg(n_want == n_got, "%s: %s: %d %ss", f->about, rung, n_got, what);
    for (int k = 0; k < n_want; k++) {
        ck_assert_msg(want[k].kind == got[k].kind, "%s: %s: %s %d", f->about, rung, what, k);
        if (want[k].kind != RT_tensor)
            continue;
        const Tensor *x = &want[k].tensor, *y = &got[k].tensor;
        ck_assert_msg(x->dtype == y->dtype && tensor_numel(x) == tensor_numel(y),
                      "%s: %s: %s %d has another form", f->about, rung, what, k);
        double room = dtype_is_low(x->dtype) ? 2e-2 : 1e-5;
        for (int64_t i = 0; i < tensor_numel(x); i++) {
            double a = at(x, i), b = at(y, i);
            ck_assert_msg((isnan(a) && isnan(b)) || fabs(a - b) <= room * (1 + fabs(a)),
                          "%s: %s: %s %d at %d: %g, not %g", f->about, rung, what, k, (int)i, b, a);
        }
    }
}

static void run_all(Session *s, const struct Found *f, Arena *a) {
    RunResult eager = {0};
    for (int b = BACKEND_eager; b < BACKEND_count; b++) {
        Diag d = {.arena = a};
        RunResult r;
        RunRequest q = {.backend = (Backend)b, .toolchain = toolchain_find("tcc")};
        const char *rung = backend_info[b].name;
        ck_assert_msg(session_run(s, &q, &r, a, &d), "%s: %s: %s", f->about, rung, diag_first(&d));
        if (b == BACKEND_eager) {
            eager = r;
            continue;
        }
        same(f, rung, "output", eager.outputs, eager.n_outputs, r.outputs, r.n_outputs);
        same(f, rung, "input", eager.inputs, eager.n_inputs, r.inputs, r.n_inputs);
        same(f, rung, "gradient", eager.grads, eager.n_grads, r.grads, r.n_grads);
        session_run_free(&r);
    }
    session_run_free(&eager);
}

static Session *opened(const struct Found *f, Arena *a, Diag *d) {
    Buf text = {.arena = a};
    put_text(&text, f);
    char *folder = dir_temp(a, d), *path = path_join(a, folder, "model.txt");
    ck_assert(file_write(path, buf_str(&text), text.len, d));
    SessionOptions o = {
        .grad = f->grad, .hints = f->hints, .toolchain = "tcc", .backend = "eager", .threads = 1};
    Session *s = session_open(path, &o, d);
    Diag quiet = {.arena = a};
    dir_remove(folder, &quiet);
    return s;
}

START_TEST(every_rung_gives_eager_s_numbers) {
    const struct Found *f = &found[_i];
    Arena a = {0};
    Diag d = {.arena = &a};
    Session *s = opened(f, &a, &d);
    ck_assert_msg(s != NULL, "%s: %s", f->about, diag_first(&d));
    run_all(s, f, &a);
    session_close(s);
    arena_free(&a);
}
END_TEST

START_TEST(no_rung_takes_what_pytorch_refuses) {
    const struct Found *f = &refused[_i];
    Arena a = {0};
    Diag d = {.arena = &a};
    Session *s = opened(f, &a, &d);
    ck_assert_msg(s != NULL, "%s: %s", f->about, diag_first(&d));
    for (int b = BACKEND_eager; b < BACKEND_count; b++) {
        Diag why = {.arena = &a};
        RunResult r;
        RunRequest q = {.backend = (Backend)b, .toolchain = toolchain_find("tcc")};
        ck_assert_msg(!session_run(s, &q, &r, &a, &why), "%s: %s takes it", f->about,
                      backend_info[b].name);
        ck_assert_msg(strstr(diag_first(&why), f->about) != NULL, "%s: %s says: %s", f->about,
                      backend_info[b].name, diag_first(&why));
    }
    session_close(s);
    arena_free(&a);
}
END_TEST

// What the comparison of rungs takes for exact: a written input as it is after the run, not before.
START_TEST(float64_tells_what_was_written) {
    static const struct Found f = {NULL, "none", NULL, "x f32[3][1]; y f32[2][1]",
                                   "a = x.mul_(0.9); b = y.sum(); return (b,)"};
    Arena a = {0};
    Diag d = {.arena = &a};
    Session *s = opened(&f, &a, &d);
    ck_assert_msg(s != NULL, "%s", diag_first(&d));
    RunResult r[2];
    for (int i = 0; i < 2; i++) {
        RunRequest q = {.backend = BACKEND_eager, .in_f64 = i == 1};
        ck_assert_msg(session_run(s, &q, &r[i], &a, &d), "%s", diag_first(&d));
    }
    const Tensor *exact = &r[1].inputs[0].tensor;
    ck_assert_int_eq(exact->dtype, DT_f64);
    for (int i = 0; i < 3; i++) {
        double rounded = tensor_get_f64(&r[0].inputs[0].tensor, i), x = tensor_get_f64(exact, i);
        ck_assert(x != 0 && fabs(x - rounded) <= 1e-7 * fabs(x));
    }
    session_run_free(&r[0]);
    session_run_free(&r[1]);
    session_close(s);
    arena_free(&a);
}
END_TEST

Suite *suite_session_rungs(void) {
    Suite *s = suite_create("session_rungs");
    TCase *t = tcase_create("found");
    tcase_set_timeout(t, 60);
    tcase_add_loop_test(t, every_rung_gives_eager_s_numbers, 0, COUNT(found));
    tcase_add_loop_test(t, no_rung_takes_what_pytorch_refuses, 0, COUNT(refused));
    tcase_add_test(t, float64_tells_what_was_written);
    suite_add_tcase(s, t);
    return s;
}
