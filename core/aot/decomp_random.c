// decomp_random.c: decompositions of random ops: all end in rand, randn, randint or uniform.
#include "core/aot/decomp.h"

#include <math.h>
#include <string.h>

// What a rand_like op draws: sizes in the order in which the tensor lies in memory, permuted back.
typedef struct Draw {
    const Value *a; // dtype, layout, device, pin_memory, memory_format
    Value x, low, high;
    OpId op; // rand, randn, randint.low
} Draw;

static Value drawn(Trace *t, const Draw *d, Value size) {
    Value dtype = d->a[0].kind == VAL_dtype ? d->a[0] : DTY(dtype_of(d->x));
    Value dev = d->a[2].kind == VAL_device ? d->a[2] : device_of_tensor(d->x);
    if (d->op == OP_aten_randint_low)
        return CALL(t, aten_randint_low, d->low, d->high, size, dtype, NONE, dev, BOOL(false));
    return d->op == OP_aten_rand_default
               ? CALL(t, aten_rand_default, size, dtype, NONE, dev, BOOL(false))
               : CALL(t, aten_randn_default, size, dtype, NONE, dev, BOOL(false));
}

static bool draw_like(Trace *t, const Draw *d, Value *out) {
    Value mf = d->a[4], back, size;
    if (mf.kind == VAL_memory_format && mf.mf != MF_preserve) {
        Value x = drawn(t, d, sizes_of(t, d->x));
        *out =
            CALL(t, aten_to_dtype_layout, x, NONE, NONE, NONE, NONE, BOOL(false), BOOL(false), mf);
        return true;
    }
    size = layout_sizes(t, d->x, &back);
    *out = laid_out(t, drawn(t, d, size), back);
    return true;
}

bool decomp_rand_like(Trace *t, const Op *op, const Value *a, Value *out) {
    bool normal = op->id == OP_aten_randn_like_default;
    Draw d = {.a = a + 1, .x = a[0], .op = normal ? OP_aten_randn_default : OP_aten_rand_default};
    return draw_like(t, &d, out);
}

bool decomp_randint_like(Trace *t, const Op *op, const Value *a, Value *out) {
    bool low = op->id == OP_aten_randint_like_low_dtype;
    Draw d = {.a = a + (low ? 3 : 2), .x = a[0], .op = OP_aten_randint_low};
    d.low = low ? a[1] : INT(0);
    d.high = low ? a[2] : a[1];
    return draw_like(t, &d, out);
}

bool decomp_randint(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    *out = CALL(t, aten_randint_low, INT(0), a[0], a[1], a[2], a[3], a[4], a[5]);
    return true;
}

bool decomp_native_dropout(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    double p = float_arg(&a[1], 0);
    if (!bool_arg(&a[2]) || p == 0) {
        *out = tuple_of(t, a[0], CALL(t, aten_ones_like_default, a[0], DTY(DT_b8)), END);
        return true;
    }
    if (p == 1) {
        Value zero = CALL(t, aten_zeros_like_default, a[0]);
        Value mask = CALL(t, aten_zeros_like_default, a[0], DTY(DT_b8));
        *out = tuple_of(t, zero, mask, END);
        return true;
    }
    Value mask = CALL(t, aten_rand_like_default, a[0]);
    mask = py_gt(t, mask, FLT(p));
    Value r = py_mul(t, mask, a[0]);
    r = py_mul(t, r, FLT(1 / (1 - p)));
    *out = tuple_of(t, r, mask, END);
    return true;
}

bool decomp_bernoulli(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    Value r = CALL(t, aten_rand_default, sizes_of(t, a[0]), DTY(DT_f32), NONE,
                   device_of_tensor(a[0]), BOOL(false));
    r = py_lt(t, r, a[0]);
    *out = to_dtype(t, r, dtype_of(a[0]));
    return true;
}

// The CPU draws with its own generator.
bool decomp_bernoulli_p(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    if (!out)
        return !on_cpu(a[0]);
    Value r = CALL(t, aten_rand_like_default, a[0], DTY(DT_f32));
    *out = py_lt(t, r, a[1]);
    return true;
}

static Value plain_rand(Trace *t, Value x) {
    return CALL(t, aten_rand_like_default, x);
}

bool decomp_cauchy(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    Wide w = decomp_widen(t, a, 1);
    Value r = plain_rand(t, w.a[0]);
    r = py_sub(t, r, FLT(0.5));
    r = py_mul(t, r, FLT(3.141592653589793));
    r = CALL(t, aten_tan_default, r);
    r = py_mul(t, r, a[2]);
    return decomp_narrow(t, &w, py_add(t, r, a[1]), out);
}

// -log(u) / rate; near 1 the logarithm is held away from 0.
bool decomp_exponential(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    Wide w = decomp_widen(t, a, 1);
    double eps = (dtype_of(w.a[0]) == DT_f64 ? 0x1p-52 : 0x1p-23) / 2;
    Value u = plain_rand(t, w.a[0]);
    Value near = py_ge(t, u, FLT(1 - eps));
    Value l = CALL(t, aten_log_default, u);
    l = py_where(t, near, FLT(-eps), l);
    return decomp_narrow(t, &w, py_mul(t, l, FLT(-1 / float_arg(&a[1], 1))), out);
}

bool decomp_geometric(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    Wide w = decomp_widen(t, a, 1);
    Value r = plain_rand(t, w.a[0]);
    r = CALL(t, aten_neg_default, r);
    r = CALL(t, aten_log1p_default, r);
    r = py_div(t, r, FLT(log1p(-float_arg(&a[1], 0.5))));
    r = CALL(t, aten_floor_default, r);
    return decomp_narrow(t, &w, py_add(t, r, INT(1)), out);
}

bool decomp_log_normal(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    Wide w = decomp_widen(t, a, 1);
    Value r = CALL(t, aten_randn_like_default, w.a[0]);
    r = py_mul(t, r, a[2]);
    r = py_add(t, r, a[1]);
    return decomp_narrow(t, &w, CALL(t, aten_exp_default, r), out);
}

static Value broadcast_shape(Trace *t, Value a, Value b) {
    MetaCtx m = trace_meta_ctx(t);
    const TensorMeta *both[2] = {meta_of(a), meta_of(b)};
    int n = 0;
    if (!both[0])
        both[0] = both[1];
    const Expr **size = ops_broadcast(&m, both, both[1] ? 2 : 1, &n);
    if (!size)
        t->failed = true;
    return size ? size_list(t, size, n) : no_sizes(t);
}

// mean + std * n of tensors or numbers
bool decomp_normal(Trace *t, const Op *op, const Value *a, Value *out) {
    bool sized = op->id == OP_aten_normal_float_float;
    Wide w = decomp_widen(t, a, 2);
    Value like = w.a[0].kind == VAL_tensor ? w.a[0] : w.a[1], size, dev, d;
    if (sized) {
        size = a[2];
        d = a[4].kind == VAL_dtype ? a[4] : DTY(DT_f32);
        dev = a[6].kind == VAL_device ? a[6] : (Value){.kind = VAL_device, .device = {DEV_cpu, -1}};
    } else {
        size = broadcast_shape(t, w.a[0], w.a[1]);
        d = DTY(dtype_of(like));
        dev = device_of_tensor(like);
    }
    Value r = CALL(t, prims_normal_default, size, FLT(0), FLT(1), d, dev, BOOL(false));
    r = py_mul(t, w.a[1], r);
    r = py_add(t, r, w.a[0]);
    *out = sized ? r : to_dtype(t, r, w.result);
    return true;
}

bool decomp_normal_in_place(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    Value r = CALL(t, aten_normal_float_float, a[1], a[2], sizes_of(t, a[0]), NONE,
                   DTY(dtype_of(a[0])), NONE, device_of_tensor(a[0]));
    *out = CALL(t, aten_copy_default, a[0], r);
    return true;
}

bool decomp_rrelu_functional(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    if (!bool_arg(&a[4])) {
        double slope = (float_arg(&a[2], 0) + float_arg(&a[3], 0)) / 2;
        Value x = CALL(t, aten_leaky_relu_default, a[0], FLT(slope));
        *out = tuple_of(t, x, a[1], END); // PyTorch's second result has no elements; nobody uses it
        return true;
    }
    Value low = py_le(t, a[0], INT(0));
    Value r = CALL(t, aten_uniform_default, a[0], a[2], a[3], a[5]);
    Value x = py_mul(t, a[0], r);
    x = py_where(t, low, x, a[0]);
    *out = tuple_of(t, x, py_where(t, low, r, INT(1)), END);
    return true;
}
