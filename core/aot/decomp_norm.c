// decomp_norm.c: decompositions of layer, group and RMS normalization and their backward: means,
// variances and a scale (torch/_refs, torch/_decomp).
#include "core/aot/decomp.h"
#include "core/record/fault.h"

bool decomp_layer_norm(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    DType d = dtype_of(a[0]);
    int n = dim_of(a[0]);
    Value x = contiguous(t, a[0], MF_contiguous), dims = dims_range(t, n - a[1].n, n);
    Value weight = contiguous(t, a[2], MF_contiguous);
    Value bias = contiguous(t, a[3], MF_contiguous);
    x = to_dtype(t, x, dtype_compute(d));
    int64_t correction = fault(t->req->decisions, FAULT_layer_norm_unbiased, trace_op_key(op));
    Value both = CALL(t, aten_var_mean_correction, x, dims, INT(correction), BOOL(true));
    Value rstd = CALL(t, aten_add_Tensor, item_of(both, 0), a[4]);
    rstd = CALL(t, aten_rsqrt_default, rstd);
    Value mean = item_of(both, 1);
    Value r = CALL(t, aten_sub_Tensor, x, mean);
    r = CALL(t, aten_mul_Tensor, r, rstd);
    if (weight.kind == VAL_tensor)
        r = CALL(t, aten_mul_Tensor, r, weight);
    if (bias.kind == VAL_tensor)
        r = CALL(t, aten_add_Tensor, r, bias);
    r = to_dtype(t, r, d);
    if (on_cpu(a[0])) {
        mean = to_dtype(t, mean, d);
        rstd = to_dtype(t, rstd, d);
    }
    *out = tuple_of(t, r, mean, rstd, END);
    return true;
}

static Value unsqueeze_at(Trace *t, Value x, int from, int to) {
    for (int i = from; i < to; i++)
        x = CALL(t, aten_unsqueeze_default, x, INT(i));
    return x;
}

// On the CPU scale and shift are folded per channel first.
static Value group_scaled(Trace *t, const Value *a, Value x, Value mean, Value rstd, Value group) {
    Value per = list_of(t, INT(1), a[6], group, INT(1), END), two = list_of(t, a[3], a[4], END);
    Value w = reshape(t, a[1], per);
    w = CALL(t, aten_mul_Tensor, rstd, w);
    Value b = CALL(t, aten_neg_default, mean);
    b = CALL(t, aten_mul_Tensor, b, w);
    if (a[2].kind == VAL_tensor) {
        Value shift = reshape(t, a[2], per);
        b = CALL(t, aten_add_Tensor, b, shift);
    }
    w = contiguous(t, w, MF_contiguous);
    w = CALL(t, aten_as_strided_default, w, two, list_of(t, a[4], INT(1), END));
    b = contiguous(t, b, MF_contiguous);
    b = CALL(t, aten_as_strided_default, b, two, list_of(t, a[4], INT(1), END));
    w = unsqueeze_at(t, w, 2, dim_of(a[0]));
    b = unsqueeze_at(t, b, 2, dim_of(a[0]));
    x = CALL(t, aten_mul_Tensor, x, w);
    return CALL(t, aten_add_Tensor, x, b);
}

bool decomp_group_norm(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    DType d = dtype_of(a[0]);
    const Expr *c, *g;
    if (!val_as_expr(t->sym, &a[4], &c) || !val_as_expr(t->sym, &a[6], &g))
        return false;
    Value group = val_sym(sym_floordiv(t->sym, c, g)), dims = list_of(t, INT(2), INT(3), END);
    Value acc = to_dtype(t, a[0], dtype_compute(d));
    Value x = reshape(t, acc, list_of(t, a[3], a[6], group, a[5], END));
    Value both = CALL(t, aten_var_mean_correction, x, dims, INT(0), BOOL(true));
    Value rstd = CALL(t, aten_add_Tensor, item_of(both, 0), a[7]), mean = item_of(both, 1), r;
    rstd = CALL(t, aten_rsqrt_default, rstd);
    if (on_cpu(a[0]) && a[1].kind == VAL_tensor) {
        r = group_scaled(t, a, acc, mean, rstd, group);
    } else {
        r = CALL(t, aten_sub_Tensor, x, mean);
        r = CALL(t, aten_mul_Tensor, r, rstd);
        r = CALL(t, aten_view_default, r, sizes_of(t, a[0]));
        for (int k = 1; k <= 2; k++) {
            if (a[k].kind != VAL_tensor)
                continue;
            Value w = CALL(t, aten_unsqueeze_default, a[k], INT(0));
            w = unsqueeze_at(t, w, 2, dim_of(a[0]));
            r = k == 1 ? CALL(t, aten_mul_Tensor, r, w) : CALL(t, aten_add_Tensor, r, w);
        }
    }
    r = to_dtype(t, r, d);
    mean = to_dtype(t, mean, d);
    rstd = to_dtype(t, rstd, d);
    mean = CALL(t, aten_squeeze_dims, mean, dims);
    rstd = CALL(t, aten_squeeze_dims, rstd, dims);
    *out = tuple_of(t, r, mean, rstd, END);
    return true;
}

static double epsilon_of(DType d) {
    return d == DT_f64 ? 2.220446049250313e-16 : 1.1920928955078125e-07;
}

bool decomp_rms_norm(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    DType d = dtype_of(a[0]), c = dtype_compute(d);
    int n = dim_of(a[0]);
    Value dims = val_list(t->arena, VAL_list, a[1].n);
    for (int i = 0; i < dims.n; i++)
        dims.at[i] = INT(n - i - 1);
    Value x = to_dtype(t, a[0], c);
    Value r = CALL(t, aten_pow_Tensor_Scalar, x, INT(2));
    r = CALL(t, aten_mean_dim, r, dims, BOOL(true));
    r = CALL(t, aten_add_Scalar, r, a[3].kind == VAL_none ? FLT(epsilon_of(c)) : a[3]);
    r = CALL(t, aten_rsqrt_default, r);
    Value y = CALL(t, aten_mul_Tensor, x, r);
    if (a[2].kind == VAL_tensor)
        y = CALL(t, aten_mul_Tensor, y, a[2]);
    if (suggest_memory_format(t, a[0]) == MF_contiguous) {
        y = contiguous(t, y, MF_contiguous);
        r = contiguous(t, r, MF_contiguous);
    }
    y = to_dtype(t, y, d);
    *out = tuple_of(t, y, r, END);
    return true;
}

// backward

// x.to(d, memory_format=torch.contiguous_format)
static Value plain(Trace *t, Value x, DType d) {
    return x.kind == VAL_tensor ? CALL(t, aten_to_dtype, x, DTY(d), BOOL(false), BOOL(false),
                                       memory_format_of(MF_contiguous))
                                : x;
}

static Value cast_or_none(Trace *t, Value x, DType d) {
    return x.kind == VAL_tensor ? to_dtype(t, x, d) : x;
}

static const Expr *product(Trace *t, const Expr *const *e, int n) {
    const Expr *p = sym_int(t->sym, 1);
    for (int i = 0; i < n; i++)
        p = sym_mul(t->sym, p, e[i]);
    return p;
}

// What layer and RMS norm share: which dimensions are normalized, and the gradients of nothing.
typedef struct Normalized {
    int axis;           // the first of them
    Value inner, outer; // dimensions: normalized ones, the others
    const Expr *n, *m;  // elements of each
} Normalized;

static Normalized normalized(Trace *t, Value x, const Value *shape) {
    const TensorMeta *m = meta_of(x);
    Normalized r = {.axis = m->ndim - shape->n};
    r.inner = dims_range(t, r.axis, m->ndim);
    r.outer = dims_range(t, 0, r.axis);
    r.n = product(t, m->size + r.axis, shape->n);
    r.m = product(t, m->size, r.axis);
    return r;
}

static Value zeros_of(Trace *t, Value x, int from, const Value *mask) {
    if (!bool_arg(mask))
        return NONE;
    const TensorMeta *m = meta_of(x);
    return CALL(t, aten_new_zeros_default, x, size_list(t, m->size + from, m->ndim - from));
}

static Value summed_or_same(Trace *t, Value x, const Normalized *r) {
    return r->outer.n ? py_sum(t, x, r->outer, false) : x;
}

bool decomp_layer_norm_backward(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    DType d = dtype_of(a[1]), c = dtype_compute(d);
    Value g = plain(t, a[0], c);
    Value x = plain(t, a[1], c);
    Value weight = plain(t, a[5], c);
    Value bias = plain(t, a[6], c);
    Normalized r = normalized(t, a[1], &a[2]);
    Value m0 = item_of(a[7], 0), m1 = item_of(a[7], 1), m2 = item_of(a[7], 2);
    if (expr_known_is(t, r.m, 0) || expr_known_is(t, r.n, 0)) {
        Value x0 = zeros_of(t, a[1], 0, &m0);
        Value x1 = zeros_of(t, a[1], r.axis, &m1);
        Value x2 = zeros_of(t, a[1], r.axis, &m2);
        *out = tuple_of(t, x0, x1, x2, END);
        return true;
    }
    Value mean = unsqueeze_to(t, a[3], dim_of(x)), n = val_sym(r.n);
    Value rstd = unsqueeze_to(t, a[4], dim_of(x));
    Value hat = py_sub(t, x, mean);
    hat = py_mul(t, hat, rstd);
    Value gh = weight.kind == VAL_tensor ? py_mul(t, g, weight) : g;
    Value in = py_mul(t, gh, n);
    Value b = py_sum(t, gh, r.inner, true);
    Value c2 = py_mul(t, gh, hat);
    c2 = py_sum(t, c2, r.inner, true);
    Value c3 = py_mul(t, hat, c2);
    in = py_sub(t, in, b);
    in = py_sub(t, in, c3);
    Value dx = NONE, dw = NONE, db = NONE;
    if (bool_arg(&m0)) {
        dx = py_div(t, rstd, n);
        dx = py_mul(t, dx, in);
    }
    if (bool_arg(&m1) && weight.kind == VAL_tensor)
        dw = summed_or_same(t, py_mul(t, g, hat), &r);
    if (bool_arg(&m2) && bias.kind == VAL_tensor)
        db = r.outer.n ? py_sum(t, g, r.outer, false) : CALL(t, aten_clone_default, g);
    dx = cast_or_none(t, dx, d);
    dw = cast_or_none(t, dw, dtype_of(a[5]));
    db = cast_or_none(t, db, dtype_of(a[6]));
    *out = tuple_of(t, dx, dw, db, END);
    return true;
}

bool decomp_rms_norm_backward(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    DType d = dtype_of(a[1]), c = dtype_compute(d);
    Value g = plain(t, a[0], c);
    Value x = plain(t, a[1], c);
    Value weight = plain(t, a[4], c);
    Normalized r = normalized(t, a[1], &a[2]);
    Value m0 = item_of(a[5], 0), m1 = item_of(a[5], 1);
    if (expr_guard_is(t, r.m, 0) || expr_guard_is(t, r.n, 0)) {
        Value x0 = zeros_of(t, a[1], 0, &m0);
        Value x1 = zeros_of(t, a[1], r.axis, &m1);
        *out = tuple_of(t, x0, x1, END);
        return true;
    }
    Value rstd = unsqueeze_to(t, a[3], dim_of(x));
    Value gh = weight.kind == VAL_tensor ? py_mul(t, g, weight) : g, dx = NONE, dw = NONE;
    Value hat = py_mul(t, x, rstd);
    if (bool_arg(&m0)) {
        Value sum = py_mul(t, hat, gh);
        sum = py_sum(t, sum, r.inner, true);
        dx = py_div(t, hat, val_sym(r.n));
        dx = py_mul(t, dx, sum);
        dx = py_sub(t, gh, dx);
        dx = py_mul(t, dx, rstd);
    }
    if (bool_arg(&m1) && weight.kind == VAL_tensor)
        dw = summed_or_same(t, py_mul(t, g, hat), &r);
    dx = cast_or_none(t, dx, d);
    dw = cast_or_none(t, dw, d);
    *out = tuple_of(t, dx, dw, END);
    return true;
}

// Of group norm: sizes as values, and the sums over each channel's elements.
typedef struct Groups {
    Value n, c, hw, group, per; // batch, channels, elements of one, groups, channels of a group
    Value ds, db;               // (n, c): sums of grad * input and of grad
} Groups;

static Value grouped_sum(Trace *t, const Groups *s, Value x, Value gamma) {
    if (gamma.kind == VAL_tensor) {
        Value row = py_unsqueeze(t, gamma, 0);
        x = py_mul(t, x, row);
    }
    x = reshape(t, x, list_of(t, s->n, s->group, s->per, END));
    return py_sum(t, x, list_of(t, INT(2), END), false);
}

static Value group_input_grad(Trace *t, const Groups *s, const Value *a, const Wide *w) {
    Value gamma = w->a[4], mean = w->a[2], rstd = w->a[3], count = NONE;
    const Expr *hw, *per;
    if (val_as_expr(t->sym, &s->hw, &hw) && val_as_expr(t->sym, &s->per, &per))
        count = py_ratio(t, 1, val_sym(sym_mul(t->sym, hw, per)));
    Value ds = grouped_sum(t, s, s->ds, gamma);
    Value db = grouped_sum(t, s, s->db, gamma);
    Value c1 = py_unsqueeze(t, rstd, -1), one = list_of(t, INT(1), s->group, s->per, END);
    Value per_group = gamma.kind == VAL_tensor ? reshape(t, gamma, one)
                                               : CALL(t, aten_ones_default, one, NONE, NONE,
                                                      device_of_tensor(rstd), BOOL(false));
    c1 = py_mul(t, c1, per_group);
    Value c2 = py_mul(t, db, mean);
    c2 = py_sub(t, c2, ds);
    for (int i = 0; i < 3; i++)
        c2 = py_mul(t, c2, rstd);
    c2 = py_mul(t, c2, count);
    Value c3 = CALL(t, aten_neg_default, c2);
    c3 = py_mul(t, c3, mean);
    Value b = py_mul(t, db, rstd);
    b = py_mul(t, b, count);
    c3 = py_sub(t, c3, b);
    c1 = py_unsqueeze(t, c1, -1);
    c2 = unsqueeze_to(t, c2, 4);
    c3 = unsqueeze_to(t, c3, 4);
    Value shape = list_of(t, s->n, s->group, s->per, s->hw, END);
    Value x = reshape(t, w->a[0], shape);
    x = py_mul(t, x, c1);
    Value y = reshape(t, w->a[1], shape);
    y = py_mul(t, y, c2);
    x = py_add(t, x, y);
    x = py_add(t, x, c3);
    x = reshape(t, x, sizes_of(t, a[1]));
    return to_dtype(t, x, dtype_of(w->a[1]));
}

bool decomp_group_norm_backward(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    Wide w = decomp_widen(t, a, 5);
    const Expr *c, *g;
    if (!val_as_expr(t->sym, &a[6], &c) || !val_as_expr(t->sym, &a[8], &g))
        return false;
    Groups s = {a[5], a[6], a[7], a[8], val_sym(sym_floordiv(t->sym, c, g)), NONE, NONE};
    Value shape = list_of(t, s.n, s.c, s.hw, END), last = list_of(t, INT(2), END);
    Value rows = list_of(t, INT(0), END), dx = NONE, dw = NONE, db = NONE;
    s.ds = py_mul(t, w.a[0], w.a[1]);
    s.ds = CALL(t, aten_view_default, s.ds, shape);
    s.ds = py_sum(t, s.ds, last, false);
    s.db = CALL(t, aten_view_default, w.a[0], shape);
    s.db = py_sum(t, s.db, last, false);
    Value m0 = item_of(a[9], 0), m1 = item_of(a[9], 1), m2 = item_of(a[9], 2);
    if (bool_arg(&m0))
        dx = group_input_grad(t, &s, a, &w);
    if (bool_arg(&m1)) {
        Value per = list_of(t, s.n, s.group, s.per, END);
        dw = CALL(t, aten_view_default, s.ds, per);
        Value b = CALL(t, aten_view_default, s.db, per);
        Value mean = py_unsqueeze(t, w.a[2], -1);
        b = py_mul(t, b, mean);
        dw = py_sub(t, dw, b);
        Value rstd = py_unsqueeze(t, w.a[3], -1);
        dw = py_mul(t, dw, rstd);
        dw = py_sum(t, dw, rows, false);
        dw = reshape(t, dw, list_of(t, s.c, END));
    }
    if (bool_arg(&m2))
        db = py_sum(t, s.db, rows, false);
    return decomp_narrow(t, &w, tuple_of(t, dx, dw, db, END), out);
}
