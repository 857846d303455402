// composite_linear.c: CompositeImplicit ops that end in matrix products and convolutions. linear
// and conv* follow ATen's C++, matmul the Python dispatcher's kernel (torch/_decomp), which the
// tracer uses.
#include "core/aot/composite.h"
#include "core/aot/tape.h"

#include <math.h>
#include <string.h>

static Value row_t(Trace *t, Value w) {
    return CALL(t, aten_t_default, w);
}

// All rows of x in one addmm.
static Value flat_linear(Trace *t, const Value *a) {
    const TensorMeta *m = meta_of(a[0]);
    const Expr *rows = sym_int(t->sym, 1);
    Value size = sizes_of(t, a[0]);
    for (int i = 0; i + 1 < m->ndim; i++)
        rows = sym_mul(t->sym, rows, m->size[i]);
    Value x = CALL(t, aten_view_default, a[0],
                   list_of(t, val_sym(rows), val_sym(m->size[m->ndim - 1]), END));
    Value w = row_t(t, a[1]);
    Value r = CALL(t, aten_addmm_default, a[2], x, w);
    size.at[m->ndim - 1] = val_sym(size_of(t, r, 1));
    return CALL(t, aten_view_default, r, size);
}

bool rule_linear(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    const TensorMeta *x = meta_of(a[0]);
    bool bias = a[2].kind == VAL_tensor;
    if (x->ndim == 2 && bias) {
        Value w = row_t(t, a[1]);
        *out = CALL(t, aten_addmm_default, a[2], a[0], w);
        return true;
    }
    bool flat = bias && x->ndim && (x->ndim == 3 || dim_of(a[2]) == 1);
    if (flat && meta_is_contiguous(t->sym, x, MF_contiguous)) {
        *out = flat_linear(t, a);
        return true;
    }
    Value w = row_t(t, a[1]);
    Value r = CALL(t, aten_matmul_default, a[0], w);
    *out = bias ? CALL(t, aten_add_Tensor, r, a[2]) : r;
    return true;
}

// May the batch of the larger operand be folded into its rows? Without a copy, unless the smaller
// one needs a gradient, which would otherwise be summed over the batch.
static bool should_fold(Trace *t, Value a, Value b) {
    bool first = dim_of(a) >= dim_of(b);
    const TensorMeta *big = meta_of(first ? a : b), *small = meta_of(first ? b : a);
    if (big->ndim < 3 || small->ndim > 2)
        return false;
    if (tape_requires_grad(t, first ? b : a))
        return true;
    if (dim_of(a) == 2)
        return false;
    if (expr_known_is(t, meta_numel(t->sym, big), 0))
        return true;
    for (int i = 0; i + 2 < big->ndim; i++)
        if (!sym_known_eq(t->sym, big->stride[i],
                          sym_mul(t->sym, big->stride[i + 1], big->size[i + 1])))
            return false;
    return true;
}

static Value folded_matmul(Trace *t, Value a, Value b) {
    bool transpose = dim_of(b) > dim_of(a);
    Value big = transpose ? CALL(t, aten_transpose_int, b, INT(-2), INT(-1)) : a;
    Value small = !transpose ? b : dim_of(a) == 2 ? CALL(t, aten_t_default, a) : a;
    const TensorMeta *m = meta_of(big);
    if (t->failed || !m)
        return NONE;
    int n = m->ndim;
    bool matrix = dim_of(small) == 2;
    Value shape = val_list(t->arena, VAL_list, n - 1 + matrix);
    const Expr *rows = sym_int(t->sym, 1);
    for (int i = 0; i + 1 < n; i++) {
        shape.at[i] = val_sym(m->size[i]);
        rows = sym_mul(t->sym, rows, m->size[i]);
    }
    if (matrix)
        shape.at[n - 1] = val_sym(size_of(t, small, 1));
    Value flat = reshape(t, big, list_of(t, val_sym(rows), val_sym(m->size[n - 1]), END));
    Value r =
        matrix ? CALL(t, aten_mm_default, flat, small) : CALL(t, aten_mv_default, flat, small);
    r = CALL(t, aten__unsafe_view_default, r, shape);
    if (!matrix || !transpose)
        return r;
    r = CALL(t, aten_transpose_int, r, INT(-2), INT(-1));
    return contiguous(t, r, MF_contiguous);
}

static const Expr *product(Trace *t, const Value *list, int n) {
    const Expr *p = sym_int(t->sym, 1), *e;
    for (int i = 0; i < n; i++)
        if (val_as_expr(t->sym, &list->at[i], &e))
            p = sym_mul(t->sym, p, e);
    return p;
}

// x broadcast to the batch and flattened to three dimensions (two and a one for a vector).
static Value batched(Trace *t, Value x, const Expr *const *batch, int n_batch, bool vector_rhs) {
    const TensorMeta *m = meta_of(x);
    int keep = vector_rhs ? 1 : 2, have = m->ndim < keep ? m->ndim : keep;
    Value size = val_list(t->arena, VAL_list, n_batch + keep),
          flat = val_list(t->arena, VAL_list, 1 + keep);
    for (int i = 0; i < n_batch; i++)
        size.at[i] = val_sym(batch[i]);
    flat.at[0] = val_sym(product(t, &size, n_batch));
    for (int i = 0; i < keep; i++) {
        int d = m->ndim - have + i - (keep - have);
        Value v = i < keep - have ? INT(1) : val_sym(m->size[d]);
        size.at[n_batch + i] = flat.at[1 + i] = v;
    }
    x = CALL(t, aten_expand_default, x, size);
    x = reshape(t, x, flat);
    return vector_rhs ? CALL(t, aten_unsqueeze_default, x, INT(2)) : x;
}

static Value batch_matmul(Trace *t, Value a, Value b) {
    const TensorMeta *ma = meta_of(a), *mb = meta_of(b);
    int na = ma->ndim > 2 ? ma->ndim - 2 : 0, nb = mb->ndim > 2 ? mb->ndim - 2 : 0, n = 0;
    TensorMeta ba = *ma, bb = *mb;
    ba.ndim = na;
    bb.ndim = nb;
    const TensorMeta *pair[2] = {&ba, &bb};
    MetaCtx ctx = trace_meta_ctx(t);
    const Expr **batch = ops_broadcast(&ctx, pair, 2, &n);
    if (!batch) {
        t->failed = true;
        return NONE;
    }
    bool vector = mb->ndim == 1;
    Value x = batched(t, a, batch, n, false);
    Value y = batched(t, b, batch, n, vector);
    Value shape = val_list(t->arena, VAL_list, n + (ma->ndim > 1) + (mb->ndim > 1));
    for (int i = 0; i < n; i++)
        shape.at[i] = val_sym(batch[i]);
    int k = n;
    if (ma->ndim > 1)
        shape.at[k++] = val_sym(ma->size[ma->ndim - 2]);
    if (mb->ndim > 1)
        shape.at[k++] = val_sym(mb->size[mb->ndim - 1]);
    Value r = CALL(t, aten_bmm_default, x, y);
    if (vector)
        r = CALL(t, aten_squeeze_dim, r, INT(-1));
    return CALL(t, aten_view_default, r, shape);
}

bool rule_matmul(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    const TensorMeta *x = meta_of(a[0]), *y = meta_of(a[1]);
    if (!x || !y || !x->ndim || !y->ndim) {
        trace_fail(t, "both arguments to matmul need to be at least 1D");
    } else if (x->ndim == 1 && y->ndim == 1) {
        *out = CALL(t, aten_dot_default, a[0], a[1]);
    } else if (x->ndim == 2 && y->ndim == 1) {
        *out = CALL(t, aten_mv_default, a[0], a[1]);
    } else if (x->ndim == 1 && y->ndim == 2) {
        Value row = CALL(t, aten_unsqueeze_default, a[0], INT(0));
        Value r = CALL(t, aten_mm_default, row, a[1]);
        *out = CALL(t, aten_squeeze_dim, r, INT(0));
    } else if (x->ndim == 2 && y->ndim == 2) {
        *out = CALL(t, aten_mm_default, a[0], a[1]);
    } else {
        *out =
            should_fold(t, a[0], a[1]) ? folded_matmul(t, a[0], a[1]) : batch_matmul(t, a[0], a[1]);
    }
    return true;
}

bool rule_outer(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    Value col = reshape(t, a[0], list_of(t, val_sym(size_of(t, a[0], 0)), INT(1), END));
    *out = CALL(t, aten_mul_Tensor, col, a[1]);
    return true;
}

// The order of a vector; matrix orders stay whole.
bool rule_linalg_norm(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    bool matrix = a[2].kind == VAL_none ? dim_of(a[0]) == 2 : a[2].n == 2;
    if (a[1].kind != VAL_none && matrix)
        return false;
    *out = CALL(t, aten_linalg_vector_norm_default, a[0], a[1].kind == VAL_none ? FLT(2) : a[1],
                a[2], a[3], a[4]);
    return true;
}

bool rule_cross(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    Value dim = a[2];
    for (int i = 0; dim.kind == VAL_none && i < dim_of(a[0]); i++)
        if (expr_known_is(t, size_of(t, a[0], i), 3))
            dim = INT(i);
    if (dim.kind == VAL_none)
        return false;
    *out = CALL(t, aten_linalg_cross_default, a[0], a[1], dim);
    return true;
}

bool rule_kron(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    int n = dim_of(a[0]) > dim_of(a[1]) ? dim_of(a[0]) : dim_of(a[1]);
    Value view[2], result = val_list(t->arena, VAL_list, n), x[2];
    for (int k = 0; k < 2; k++)
        view[k] = val_list(t->arena, VAL_list, 2 * n);
    for (int i = 0; i < n; i++) {
        const Expr *size[2], *one = sym_int(t->sym, 1);
        for (int k = 0; k < 2; k++) {
            int d = i - (n - dim_of(a[k]));
            size[k] = d < 0 ? one : size_of(t, a[k], d);
        }
        view[0].at[2 * i] = val_sym(size[0]);
        view[1].at[2 * i + 1] = val_sym(size[1]);
        view[0].at[2 * i + 1] = view[1].at[2 * i] = INT(1);
        result.at[i] = val_sym(sym_mul(t->sym, size[0], size[1]));
    }
    for (int k = 0; k < 2; k++)
        x[k] = reshape(t, a[k], view[k]);
    Value r = CALL(t, aten_mul_Tensor, x[0], x[1]);
    *out = CALL(t, aten__unsafe_view_default, r, result);
    return true;
}

bool rule_inner(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    if (!dim_of(a[0]) || !dim_of(a[1])) {
        *out = CALL(t, aten_mul_Tensor, a[0], a[1]);
        return true;
    }
    Value last = list_of(t, INT(-1), END);
    *out = CALL(t, aten_tensordot_default, a[0], a[1], last, last);
    return true;
}

bool rule_vecdot(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    Value p = CALL(t, aten_mul_Tensor, a[0], a[1]);
    *out = CALL(t, aten_sum_dim_IntList, p, list_of(t, a[2], END));
    return true;
}

bool rule_tensordot(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    Value x[2] = {a[0], a[1]}, dims[2] = {a[2], a[3]}, perm[2], shape;
    const Expr *contracted = sym_int(t->sym, 1), *kept[2] = {contracted, contracted};
    bool *gone[2];
    for (int k = 0; k < 2; k++) {
        gone[k] = ARENA_ARRAY(t->arena, dim_of(x[k]) + 1, bool);
        for (int i = 0; i < dims[k].n; i++)
            gone[k][wrap_dim(t, int_arg(&dims[k].at[i], 0), dim_of(x[k]))] = true;
    }
    for (int i = 0; i < dims[0].n && !t->failed; i++) {
        Value d0 = dims[0].at[i], d1 = dims[1].at[i];
        const Expr *s0 = size_of(t, x[0], (int)int_arg(&d0, 0)),
                   *s1 = size_of(t, x[1], (int)int_arg(&d1, 0));
        if (expr_known_is(t, s1, 1) && !expr_known_is(t, s0, 1))
            x[0] = CALL(t, aten_sum_dim_IntList, x[0], list_of(t, d0, END), BOOL(true));
        else if (expr_known_is(t, s0, 1) && !expr_known_is(t, s1, 1))
            x[1] = CALL(t, aten_sum_dim_IntList, x[1], list_of(t, d1, END), BOOL(true));
        else
            contracted = sym_mul(t->sym, contracted, s0);
    }
    Value rsizes = val_list(t->arena, VAL_list, dim_of(x[0]) + dim_of(x[1]));
    rsizes.n = 0;
    for (int k = 0; k < 2; k++) {
        perm[k] = val_list(t->arena, VAL_list, dim_of(x[k]));
        int at = k ? dims[k].n : 0, end = k ? 0 : dim_of(x[k]) - dims[k].n;
        for (int i = 0; i < dim_of(x[k]); i++)
            if (!gone[k][i]) {
                perm[k].at[at++] = INT(i);
                kept[k] = sym_mul(t->sym, kept[k], size_of(t, x[k], i));
                rsizes.at[rsizes.n++] = val_sym(size_of(t, x[k], i));
            }
        for (int i = 0; i < dims[k].n; i++)
            perm[k].at[end + i] = dims[k].at[i]; // as it was given, negative too
    }
    Value m[2];
    for (int k = 0; k < 2; k++) {
        m[k] = CALL(t, aten_permute_default, x[k], perm[k]);
        shape = k ? list_of(t, val_sym(contracted), val_sym(kept[1]), END)
                  : list_of(t, val_sym(kept[0]), val_sym(contracted), END);
        m[k] = reshape(t, m[k], shape);
    }
    Value r = CALL(t, aten_mm_default, m[0], m[1]);
    *out = reshape(t, r, rsizes);
    return true;
}

bool rule_cosine_similarity(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    Value both = CALL(t, aten_broadcast_tensors_default, list_of(t, a[0], a[1], END));
    Value x[2], dims = list_of(t, a[2], END);
    DType d = ops_result_type(a, 2);
    for (int k = 0; k < 2; k++)
        x[k] = to_dtype(t, item_of(both, k), d);
    Value norm[2];
    for (int k = 0; k < 2; k++) {
        norm[k] = CALL(t, aten_linalg_vector_norm_default, x[k], INT(2), dims, BOOL(true));
        norm[k] = CALL(t, aten_clone_default, norm[k]);
    }
    Value eps = CALL(t, aten_scalar_tensor_default, a[3], DTY(d), NONE,
                     device_value(a[0].tensor->device));
    bool was = tape_enable(t, false);
    for (int k = 0; k < 2; k++)
        norm[k] = CALL(t, aten_clamp_min__Tensor, norm[k], eps);
    tape_enable(t, was);
    for (int k = 1; k >= 0; k--)
        x[k] = CALL(t, aten_div_Tensor, x[k], norm[k]);
    Value p = CALL(t, aten_mul_Tensor, x[0], x[1]);
    *out = CALL(t, aten_sum_dim_IntList, p, dims);
    return true;
}

// convolutions

static Value zeros_list(Trace *t, int n) {
    Value v = val_list(t->arena, VAL_list, n);
    for (int i = 0; i < n; i++)
        v.at[i] = INT(0);
    return v;
}

static Value spread(Trace *t, Value v, int n) {
    if (v.kind != VAL_list && v.kind != VAL_tuple)
        v = list_of(t, v, END);
    if (v.n != 1 || n == 1)
        return v;
    Value out = val_list(t->arena, VAL_list, n);
    for (int i = 0; i < n; i++)
        out.at[i] = v.at[0];
    return out;
}

typedef struct Conv {
    Value x, w, b, stride, padding, dilation, output_padding, groups;
    bool transposed;
} Conv;

static Value convolution(Trace *t, Conv c) {
    int spatial = dim_of(c.w) - 2;
    bool single = dim_of(c.x) == spatial + 1;
    Value x = single ? CALL(t, aten_unsqueeze_default, c.x, INT(0)) : c.x;
    Value r = CALL(t, aten_convolution_default, x, c.w, c.b, spread(t, c.stride, spatial),
                   spread(t, c.padding, spatial), spread(t, c.dilation, spatial),
                   BOOL(c.transposed), spread(t, c.output_padding, spatial), c.groups);
    return single ? CALL(t, aten_squeeze_dim, r, INT(0)) : r;
}

bool rule_conv(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    *out = convolution(t, (Conv){a[0], a[1], a[2], a[3], a[4], a[5],
                                 zeros_list(t, dim_of(a[1]) - 2), a[6], false});
    return true;
}

bool rule_conv_transpose(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    *out = convolution(t, (Conv){a[0], a[1], a[2], a[3], a[4], a[7], a[5], a[6], true});
    return true;
}

// `same`: as much in front as behind if possible, the odd one is padded apart.
bool rule_conv_padding(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    int n = dim_of(a[1]) - 2;
    Value padding = zeros_list(t, n), stride = spread(t, a[3], n), dilation = spread(t, a[5], n),
          x = a[0];
    if (a[4].kind != VAL_str)
        return false;
    if (strcmp(a[4].s, "same") == 0) {
        Value extra = zeros_list(t, 2 * n);
        bool uneven = false;
        for (int i = 0; i < n; i++) {
            int64_t k = expr_int_or(size_of(t, a[1], i + 2), 1), s = int_arg(&stride.at[i], 1);
            int64_t total = int_arg(&dilation.at[i], 1) * (k - 1),
                    len = expr_int_or(size_of(t, x, i - n), 0);
            if (s > 2 && total % 2 && len % s - 1 > 0)
                total--;
            padding.at[i] = INT(total / 2);
            if (total % 2) {
                extra.at[2 * (n - 1 - i) + 1] = INT(1);
                uneven = true;
            }
        }
        if (uneven)
            x = CALL(t, aten_constant_pad_nd_default, x, extra, INT(0));
    } else if (strcmp(a[4].s, "valid") != 0) {
        return false;
    }
    *out = convolution(
        t, (Conv){x, a[1], a[2], stride, padding, dilation, zeros_list(t, n), a[6], false});
    return true;
}

// attention

// A mask of what may be seen becomes one of what is added.
static Value additive_mask(Trace *t, Value mask, DType d) {
    if (mask.kind != VAL_tensor || dtype_info[dtype_of(mask)].cls != DTC_BOOL)
        return mask;
    Value inf = CALL(t, aten_scalar_tensor_default, FLT(-INFINITY), DTY(d), NONE,
                     (Value){.kind = VAL_device, .device = mask.tensor->device});
    return CALL(t, aten_where_ScalarSelf, mask, FLT(0), inf);
}

// None, or (…, 1 or queries, 1 or keys), of 2 or 4 dimensions, without a gradient.
static bool mask_fits(Trace *t, const Value *a) {
    const TensorMeta *m = meta_of(a[3]), *q = meta_of(a[0]), *k = meta_of(a[1]);
    if (!m)
        return true;
    if (tape_requires_grad(t, a[3]) || (m->ndim != 2 && m->ndim != 4))
        return false;
    const Expr *want[4] = {q->size[0], q->size[1], q->size[2], k->size[2]};
    for (int i = 0; i < m->ndim; i++) {
        const Expr *have = m->size[i], *need = want[4 - m->ndim + i];
        if (!expr_known_is(t, have, 1) && !sym_known_eq(t->sym, have, need))
            return false;
    }
    return true;
}

// As many heads each, or, if grouped, several of the queries for one of keys and values.
static bool heads_fit(Trace *t, const TensorMeta *q, const TensorMeta *k, const TensorMeta *v,
                      bool grouped) {
    int64_t queries = expr_int_or(q->size[1], 0), keys = expr_int_or(k->size[1], 0);
    return sym_known_eq(t->sym, k->size[1], v->size[1]) &&
           (sym_known_eq(t->sym, q->size[1], k->size[1]) ||
            (grouped && keys > 0 && queries % keys == 0));
}

static bool fused_on_cpu(Trace *t, const Value *a) {
    const TensorMeta *q = meta_of(a[0]), *k = meta_of(a[1]), *v = meta_of(a[2]);
    DType d = q->dtype;
    if (q->device.type != DEV_cpu || q->ndim != 4 || k->ndim != 4 || v->ndim != 4 ||
        float_arg(&a[4], 0) != 0)
        return false;
    if (d != DT_f32 && d != DT_f64 && d != DT_bf16 && d != DT_f16)
        return false;
    bool same = sym_known_eq(t->sym, q->size[3], k->size[3]) &&
                sym_known_eq(t->sym, q->size[3], v->size[3]) &&
                sym_known_eq(t->sym, q->size[0], k->size[0]) &&
                sym_known_eq(t->sym, q->size[0], v->size[0]) &&
                heads_fit(t, q, k, v, bool_arg(&a[7]));
    bool dense = expr_known_is(t, q->stride[3], 1) && expr_known_is(t, k->stride[3], 1) &&
                 expr_known_is(t, v->stride[3], 1);
    bool empty = expr_known_is(t, q->size[2], 0) || expr_known_is(t, k->size[2], 0);
    return same && dense && !empty && mask_fits(t, a);
}

bool rule_sdpa(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    Value mask = additive_mask(t, a[3], dtype_of(a[0]));
    if (fused_on_cpu(t, a)) {
        *out = item_of(CALL(t, aten__scaled_dot_product_flash_attention_for_cpu_default, a[0], a[1],
                            a[2], a[4], a[5], mask, a[6]),
                       0);
        return true;
    }
    Value all = CALL(t, aten__scaled_dot_product_attention_math_default, a[0], a[1], a[2], mask,
                     a[4], a[5], NONE, a[6], a[7]);
    *out = item_of(all, 0);
    return true;
}

static Value repeat_heads(Trace *t, Value x, Value like) {
    int64_t have = expr_int_or(size_of(t, x, -3), 1), want = expr_int_or(size_of(t, like, -3), 1);
    return have && want != have
               ? CALL(t, aten_repeat_interleave_self_int, x, INT(want / have), INT(-3))
               : x;
}

// The small floats are computed in float.
static Value widened(Trace *t, Value x) {
    return dtype_is_low(dtype_of(x)) ? to_dtype(t, x, DT_f32) : x;
}

bool rule_sdpa_math(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    double head = (double)expr_int_or(size_of(t, a[0], -1), 1);
    double scale = sqrt(a[7].kind == VAL_none ? 1.0 / sqrt(head) : fabs(float_arg(&a[7], 1)));
    bool negative = a[7].kind != VAL_none && float_arg(&a[7], 1) < 0, causal = bool_arg(&a[5]);
    Value mask = a[3],
          q = CALL(t, aten_mul_Scalar, widened(t, a[0]), FLT(negative ? -scale : scale));
    if (causal) {
        Value size = list_of(t, val_sym(size_of(t, q, -2)), val_sym(size_of(t, a[1], -2)), END);
        Value dev = {.kind = VAL_device, .device = a[0].tensor->device};
        mask = CALL(t, aten_ones_default, size, DTY(DT_b8), NONE, dev);
        mask = CALL(t, aten_tril_default, mask);
        mask = additive_mask(t, mask, dtype_of(a[0]));
    }
    bool gqa = bool_arg(&a[8]);
    Value k = gqa ? repeat_heads(t, widened(t, a[1]), q) : widened(t, a[1]);
    Value v = gqa ? repeat_heads(t, widened(t, a[2]), q) : widened(t, a[2]);
    k = CALL(t, aten_transpose_int, k, INT(-2), INT(-1));
    k = CALL(t, aten_mul_Scalar, k, FLT(scale));
    Value w = CALL(t, aten_matmul_default, q, k);
    if (mask.kind == VAL_tensor)
        w = CALL(t, aten_add_Tensor, w, mask);
    w = CALL(t, aten__safe_softmax_default, w, INT(-1));
    if (float_arg(&a[4], 0) > 0)
        w = CALL(t, aten_dropout_default, w, a[4], BOOL(true));
    DType d = dtype_of(a[0]);
    Value narrow_w = to_dtype(t, w, d); // C++ evaluates the last argument first
    Value r = to_dtype(t, CALL(t, aten_matmul_default, w, v), d);
    *out = tuple_of(t, r, narrow_w, END);
    return true;
}
