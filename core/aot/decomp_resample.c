// decomp_resample.c: decompositions of resampling: upsampling, im2col and col2im, affine grids and
// sampling by a grid.
#include "core/aot/composite.h"
#include "core/aot/decomp.h"

bool decomp_upsample_linear(Trace *t, const Op *op, const Value *a, Value *out) {
    Value scales = val_list(t->arena, VAL_list, op->n_args - 3);
    for (int i = 0; i < scales.n; i++)
        scales.at[i] = a[3 + i];
    if (!upsample_ratio_known(t, a[0], a[1], scales, bool_arg(&a[2])))
        return false;
    *out = upsample_linear(t, a[0], a[1], scales, bool_arg(&a[2]));
    return true;
}

bool decomp_upsample_linear_vec(Trace *t, const Op *op, const Value *a, Value *out) {
    return rule_upsample_linear_vec(t, op, a, out);
}

// Rows or columns of each window: start of the block plus place in the kernel.
static Value window_places(Trace *t, Value x, int64_t len, int64_t k, int64_t dilation,
                           int64_t padding, int64_t stride) {
    Value dev = device_of_tensor(x);
    int64_t blocks = len + padding * 2 - dilation * (k - 1);
    Value start = CALL(t, aten_arange_start_step, INT(0), INT(blocks), INT(stride), DTY(DT_i64),
                       NONE, dev, BOOL(false));
    start = CALL(t, aten_unsqueeze_default, start, INT(0));
    Value in = CALL(t, aten_arange_start_step, INT(0), INT(k * dilation), INT(dilation),
                    DTY(DT_i64), NONE, dev, BOOL(false));
    in = CALL(t, aten_unsqueeze_default, in, INT(-1));
    return CALL(t, aten_add_Tensor, start, in);
}

bool decomp_im2col(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    bool single = dim_of(a[0]) == 3;
    Value x = single ? CALL(t, aten_unsqueeze_default, a[0], INT(0)) : a[0], at[2];
    int64_t v[4][2];
    for (int i = 0; i < 2; i++)
        for (int k = 0; k < 4; k++) {
            Value e = item_of(spread(t, a[1 + k], 2, NONE), i);
            v[k][i] = int_arg(&e, k == 2 ? 0 : 1);
        }
    for (int i = 0; i < 2; i++) {
        int64_t len = expr_int_or(size_of(t, x, 2 + i), -1);
        if (len < 0)
            return false;
        at[i] = window_places(t, x, len, v[0][i], v[1][i], v[2][i], v[3][i]);
    }
    Value pad = list_of(t, INT(v[2][1]), INT(v[2][1]), INT(v[2][0]), INT(v[2][0]), END);
    Value p = CALL(t, aten_constant_pad_nd_default, x, pad, FLT(0));
    at[0] = unsqueeze_to(t, at[0], 4);
    Value index = val_list(t->arena, VAL_list, 4);
    index.at[2] = at[0];
    index.at[3] = at[1];
    Value r = CALL(t, aten_index_Tensor, p, index);
    r = CALL(t, aten_permute_default, r,
             list_of(t, INT(0), INT(1), INT(2), INT(4), INT(3), INT(5), END));
    Value rows = val_sym(sym_mul_int(t->sym, size_of(t, x, 1), v[0][0] * v[0][1]));
    Value cols = val_sym(sym_mul(t->sym, size_of(t, r, -2), size_of(t, r, -1)));
    r = reshape(t, r, list_of(t, val_sym(size_of(t, x, 0)), rows, cols, END));
    *out = single ? CALL(t, aten_squeeze_dim, r, INT(0)) : r;
    return true;
}

// The inverse of im2col: windows are added up.
bool decomp_col2im(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    Wide w = decomp_widen(t, a, 1);
    int64_t v[5][2], cols[2];
    for (int i = 0; i < 2; i++) {
        for (int k = 0; k < 5; k++) {
            Value e = item_of(spread(t, a[1 + k], 2, NONE), i);
            v[k][i] = int_arg(&e, k == 3 ? 0 : 1);
        }
        cols[i] = 1 + (v[0][i] + 2 * v[3][i] - v[2][i] * (v[1][i] - 1) - 1) / v[4][i];
    }
    bool single = dim_of(a[0]) == 2;
    Value x = single ? py_unsqueeze(t, w.a[0], 0) : w.a[0], at[2];
    Value n = val_sym(size_of(t, x, 0));
    Value c = val_sym(sym_floordiv(t->sym, size_of(t, x, 1), sym_int(t->sym, v[1][0] * v[1][1])));
    x = reshape(t, x,
                list_of(t, n, c, INT(v[1][0]), INT(v[1][1]), INT(cols[0]), INT(cols[1]), END));
    x = CALL(t, aten_permute_default, x,
             list_of(t, INT(0), INT(1), INT(2), INT(4), INT(3), INT(5), END));
    for (int i = 0; i < 2; i++) {
        at[i] = window_places(t, x, v[0][i], v[1][i], v[2][i], v[3][i], v[4][i]);
        if (i == 0)
            at[i] = unsqueeze_to(t, at[i], 4);
    }
    Value shape = list_of(t, n, c, INT(v[0][0] + 2 * v[3][0]), INT(v[0][1] + 2 * v[3][1]), END);
    Value r = CALL(t, aten_new_zeros_default, x, shape);
    r = CALL(t, aten__unsafe_index_put_default, r, list_of(t, NONE, NONE, at[0], at[1], END), x,
             BOOL(true));
    Value pad = list_of(t, INT(-v[3][1]), INT(-v[3][1]), INT(-v[3][0]), INT(-v[3][0]), END);
    r = CALL(t, aten_constant_pad_nd_default, r, pad, FLT(0));
    return decomp_narrow(t, &w, single ? CALL(t, aten_squeeze_dim, r, INT(0)) : r, out);
}

// affine grids

// From -1 to 1, or to the middles of the first and last place.
static Value from_neg_one(Trace *t, int64_t steps, bool align, Value like) {
    Value d = DTY(dtype_of(like)), dev = device_of_tensor(like);
    if (steps <= 1)
        return full_of(t, no_sizes(t), INT(0), dtype_of(like), like.tensor->device);
    double a = (double)(steps - 1) / (double)steps;
    Value low = align ? INT(-1) : FLT(-a), high = align ? INT(1) : FLT(a);
    return CALL(t, aten_linspace_default, low, high, INT(steps), d, NONE, dev, BOOL(false));
}

// Homogeneous coordinates of an image's places, as sums of padded rows: x, y, (z,) 1 side by side.
static Value base_grid(Trace *t, Value theta, const int64_t *size, int n, bool align) {
    Value part[4], shape = val_list(t->arena, VAL_list, n + 1);
    for (int k = 0; k <= n; k++) {
        for (int i = 0; i <= n; i++)
            shape.at[i] = INT(k < n && i == n - 1 - k ? size[i] : 1);
        Value own = val_list(t->arena, VAL_list, n + 1);
        for (int i = 0; i <= n; i++)
            own.at[i] = shape.at[i];
        if (k < n) {
            part[k] = from_neg_one(t, size[n - 1 - k], align, theta);
            part[k] = CALL(t, aten_view_default, part[k], own);
        } else {
            part[k] = CALL(t, aten_ones_default, own, DTY(dtype_of(theta)), NONE,
                           device_of_tensor(theta), BOOL(false));
        }
    }
    for (int k = 0; k <= n; k++)
        part[k] = CALL(t, aten_constant_pad_nd_default, part[k],
                       list_of(t, INT(k), INT(n - k), END), FLT(0));
    for (int k = 1; k <= n; k++)
        part[0] = py_add(t, part[0], part[k]);
    return part[0];
}

bool decomp_affine_grid(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    int n = a[1].n - 2;
    int64_t size[3];
    Value shape = val_list(t->arena, VAL_list, n + 2);
    if (n < 2 || n > 3)
        return false;
    shape.at[0] = item_of(a[1], 0);
    for (int i = 0; i < n; i++) {
        Value e = item_of(a[1], i + 2);
        if (!val_as_int(&e, &size[i]))
            return false;
        shape.at[i + 1] = e;
    }
    shape.at[n + 1] = INT(n);
    Wide w = decomp_widen(t, a, 1);
    Value g = base_grid(t, w.a[0], size, n, bool_arg(&a[2]));
    g = CALL(t, aten_view_default, g, list_of(t, INT(-1), INT(n + 1), INT(1), END));
    Value theta = CALL(t, aten_mT_default, w.a[0]);
    theta = py_unsqueeze(t, theta, 1);
    g = py_mul(t, g, theta);
    g = py_sum(t, g, list_of(t, INT(-2), END), false);
    return decomp_narrow(t, &w, CALL(t, aten_view_default, g, shape), out);
}

// sampling by a grid

enum { MODE_bilinear, MODE_nearest, MODE_bicubic };
enum { PAD_zeros, PAD_border, PAD_reflection };

typedef struct Sampler {
    Trace *t;
    Value x;          // image (n, c, h, w)
    int64_t h, w;     // its sizes
    int64_t padding;  // PAD_*
    bool align;       // corners are middles of places
    Value n_at, c_at; // indices of batch and channel
    Value shape;      // of one sample's weights
} Sampler;

// From [-1, 1] to places.
static Value unnormalized(const Sampler *s, Value v, int64_t size) {
    double half = (double)size * 0.5;
    v = py_mul(s->t, v, FLT(s->align ? half - 0.5 : half));
    return py_add(s->t, v, FLT(half - 0.5));
}

static Value reflected(const Sampler *s, Value v, int64_t twice_low, int64_t twice_high) {
    Trace *t = s->t;
    if (twice_low == twice_high)
        return CALL(t, aten_zeros_like_default, v);
    double low = (double)twice_low / 2, span = (double)(twice_high - twice_low) / 2;
    v = py_sub(t, v, FLT(low));
    v = CALL(t, aten_abs_default, v);
    Value extra = CALL(t, aten_fmod_Scalar, v, FLT(span));
    Value flips = py_div(t, v, FLT(span));
    flips = CALL(t, aten_floor_default, flips);
    flips = to_dtype(t, flips, DT_i8);
    flips = CALL(t, aten_bitwise_and_Scalar, flips, INT(1));
    flips = py_eq(t, flips, INT(0));
    Value there = py_add(t, extra, FLT(low));
    Value back = py_sub(t, FLT(span + low), extra);
    return py_where(t, flips, there, back);
}

static Value bounded(const Sampler *s, Value v, int64_t size) {
    if (s->padding == PAD_zeros)
        return v;
    if (s->padding == PAD_reflection)
        v = s->align ? reflected(s, v, 0, 2 * (size - 1)) : reflected(s, v, -1, 2 * size - 1);
    return CALL(s->t, aten_clamp_default, v, INT(0), INT(size - 1));
}

// The value at a place times a weight; nothing outside of the image.
static Value sample(const Sampler *s, Value x, Value y, Value weight) {
    Trace *t = s->t;
    Value left = py_ge(t, x, INT(0));
    Value right = py_lt(t, x, INT(s->w));
    Value top = py_ge(t, y, INT(0));
    Value bottom = py_lt(t, y, INT(s->h));
    Value in = CALL(t, aten_logical_and_default, top, bottom);
    in = CALL(t, aten_logical_and_default, right, in);
    in = CALL(t, aten_logical_and_default, left, in);
    Value v[3] = {x, y, weight};
    for (int i = 0; i < 2; i++)
        v[i] = to_dtype(t, v[i], DT_i64);
    for (int i = 0; i < 3; i++) {
        v[i] = py_where(t, in, v[i], INT(0));
        v[i] = CALL(t, aten_view_default, v[i], s->shape);
    }
    Value r = CALL(t, aten_index_Tensor, s->x, list_of(t, s->n_at, s->c_at, v[1], v[0], END));
    return py_mul(t, r, v[2]);
}

static Value bilinear(const Sampler *s, Value x, Value y) {
    Trace *t = s->t;
    Value west = CALL(t, aten_floor_default, x), north = CALL(t, aten_floor_default, y);
    Value east = py_add(t, west, INT(1)), south = py_add(t, north, INT(1));
    // Corner by corner the distances to the opposite one.
    const Value across[4][2] = {{east, x}, {x, west}, {east, x}, {x, west}};
    const Value down[4][2] = {{south, y}, {south, y}, {y, north}, {y, north}};
    const Value at[4][2] = {{west, north}, {east, north}, {west, south}, {east, south}};
    Value weight[4], sum = NONE;
    for (int i = 0; i < 4; i++) {
        Value a = py_sub(t, across[i][0], across[i][1]);
        Value b = py_sub(t, down[i][0], down[i][1]);
        weight[i] = py_mul(t, a, b);
    }
    for (int i = 0; i < 4; i++) {
        Value v = sample(s, at[i][0], at[i][1], weight[i]);
        sum = i ? py_add(t, sum, v) : v;
    }
    return sum;
}

static Value cubic_of(Trace *t, const Value *v, Value at) {
    Value w[4];
    cubic_weights(t, at, w);
    return weighted_sum(t, v, w, 4);
}

static Value bicubic(const Sampler *s, Value x, Value y, bool expanded) {
    Trace *t = s->t;
    Value west = CALL(t, aten_floor_default, x), north = CALL(t, aten_floor_default, y);
    Value tx = py_sub(t, x, west), ty = py_sub(t, y, north), rows[4];
    if (!expanded) {
        tx = py_unsqueeze(t, tx, 1);
        ty = py_unsqueeze(t, ty, 1);
    }
    for (int k = 0; k < 4; k++) {
        Value row = py_add(t, north, INT(k - 1)), v[4];
        for (int i = 0; i < 4; i++) {
            Value at = i == 0   ? py_sub(t, west, INT(1))
                       : i == 1 ? west
                                : py_add(t, west, INT(i - 1));
            at = bounded(s, at, s->w);
            v[i] = sample(s, at, bounded(s, row, s->h), INT(1));
        }
        rows[k] = cubic_of(t, v, tx);
    }
    return cubic_of(t, rows, ty);
}

static Value place_of(const Sampler *s, Value v, int64_t size) {
    return bounded(s, unnormalized(s, v, size), size);
}

// On the CPU a bilinear sampling of a contiguous image keeps one grid for all channels.
bool decomp_grid_sampler_2d(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    Wide w = decomp_widen(t, a, 2);
    int64_t mode = int_arg(&a[2], 0), c = expr_int_or(size_of(t, a[0], 1), -1);
    Sampler s = {.t = t, .x = w.a[0], .padding = int_arg(&a[3], 0), .align = bool_arg(&a[4])};
    s.h = expr_int_or(size_of(t, a[0], 2), -1);
    s.w = expr_int_or(size_of(t, a[0], 3), -1);
    if (s.h < 0 || s.w < 0 || c < 0 || dim_of(a[0]) != 4 || dim_of(a[1]) != 4)
        return false;
    bool expand = !(on_cpu(a[0]) && mode == MODE_bilinear &&
                    meta_is_contiguous(t->sym, w.a[0].tensor, MF_contiguous));
    Value n = val_sym(size_of(t, a[0], 0)), h = val_sym(size_of(t, a[1], 1)),
          v = val_sym(size_of(t, a[1], 2)), grid = w.a[1];
    if (expand) {
        grid = CALL(t, aten_view_default, grid, list_of(t, n, INT(1), h, v, INT(2), END));
        grid = CALL(t, aten_expand_default, grid, list_of(t, n, INT(c), h, v, INT(2), END));
    }
    s.n_at = py_arange(t, n, DT_none, a[0]);
    s.n_at = CALL(t, aten_view_default, s.n_at, list_of(t, n, INT(1), INT(1), INT(1), END));
    s.c_at = py_arange(t, INT(c), DT_none, a[0]);
    s.c_at = CALL(t, aten_view_default, s.c_at, list_of(t, INT(1), INT(c), INT(1), INT(1), END));
    s.shape = list_of(t, n, INT(expand ? c : 1), h, v, END);
    Value x = CALL(t, aten_select_int, grid, INT(dim_of(grid) - 1), INT(0));
    Value y = CALL(t, aten_select_int, grid, INT(dim_of(grid) - 1), INT(1)), r;
    if (mode == MODE_bicubic) {
        x = unnormalized(&s, x, s.w);
        y = unnormalized(&s, y, s.h);
        return decomp_narrow(t, &w, bicubic(&s, x, y, expand), out);
    }
    x = place_of(&s, x, s.w);
    y = place_of(&s, y, s.h);
    if (mode == MODE_bilinear) {
        r = bilinear(&s, x, y);
    } else {
        x = CALL(t, aten_round_default, x);
        y = CALL(t, aten_round_default, y);
        r = sample(&s, x, y, INT(1));
    }
    return decomp_narrow(t, &w, r, out);
}
