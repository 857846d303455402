// decomp_factory.c: decompositions of ops that make tensors: all end in full, prims.iota or empty.
#include "core/aot/decomp.h"

#include <math.h>

static Device device_of(const Value *v, Device fallback) {
    return v->kind == VAL_device ? v->device : fallback;
}

static const Device cpu = {DEV_cpu, -1};

static DType dtype_or(const Value *v, DType fallback) {
    return v->kind == VAL_dtype ? v->dtype : fallback;
}

static Value zero_of(DType d) {
    return d == DT_b8 ? BOOL(false) : INT(0);
}

static Value one_of(DType d) {
    return d == DT_b8 ? BOOL(true) : INT(1);
}

bool decomp_arange_default(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    *out = arange_of(t, INT(0), a[0], INT(1), dtype_or(&a[1], DT_none), device_of(&a[3], cpu));
    return true;
}

bool decomp_arange_start(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    *out = arange_of(t, a[0], a[1], INT(1), dtype_or(&a[2], DT_none), device_of(&a[4], cpu));
    return true;
}

static bool is_integer(const Value *v) {
    return v->kind == VAL_int || v->kind == VAL_sym || v->kind == VAL_bool;
}

static Value iota(Trace *t, Value length, Value start, Value step, DType d, Device dev) {
    return CALL(t, prims_iota_default, length, start, step, DTY(d),
                (Value){.kind = VAL_device, .device = dev}, BOOL(false));
}

// Number of steps of integers: rounded up without a ceil.
static const Expr *int_length(Trace *t, const Value *a) {
    const Expr *start, *end, *step;
    if (!val_as_expr(t->sym, &a[0], &start) || !val_as_expr(t->sym, &a[1], &end) ||
        !val_as_expr(t->sym, &a[2], &step))
        return NULL;
    int64_t s = expr_int_or(step, 1), sign = s > 0 ? 1 : s < 0 ? -1 : 0;
    const Expr *span =
        sym_add_int(t->sym, sym_add(t->sym, sym_sub(t->sym, end, start), step), -sign);
    return sym_floordiv(t->sym, span, step);
}

bool decomp_arange(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    bool ints = is_integer(&a[0]) && is_integer(&a[1]) && is_integer(&a[2]);
    DType d = dtype_or(&a[3], ints ? DT_i64 : DT_f32);
    Device dev = device_of(&a[5], cpu);
    Value length;
    if (ints || d == DT_i64) {
        Value whole[3];
        for (int i = 0; i < 3; i++)
            whole[i] = is_integer(&a[i]) ? a[i] : INT((int64_t)float_arg(&a[i], 0));
        const Expr *n = int_length(t, whole);
        if (!n || value_is_zero(&whole[2]))
            return false;
        length = val_sym(n);
        if (dtype_is_int(d)) {
            *out = iota(t, length, whole[0], whole[2], d, dev);
            return true;
        }
    } else {
        double step = float_arg(&a[2], 1);
        length = INT((int64_t)ceil((float_arg(&a[1], 0) - float_arg(&a[0], 0)) / step));
        if (dtype_is_int(d)) {
            *out = iota(t, length, INT((int64_t)float_arg(&a[0], 0)), INT((int64_t)step), d, dev);
            return true;
        }
    }
    Value i = iota(t, length, INT(0), INT(1), DT_i64, dev);
    if (!ints) {
        DType acc = dev.type == DEV_cpu ? DT_f64 : dtype_compute(d);
        i = CALL(t, prims_convert_element_type_default, i, DTY(acc));
    }
    i = CALL(t, aten_mul_Tensor, i, a[2]);
    i = CALL(t, aten_add_Tensor, i, a[0]);
    *out = dtype_of(i) == d ? i : CALL(t, prims_convert_element_type_default, i, DTY(d));
    return true;
}

bool decomp_zeros(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    DType d = dtype_or(&a[1], DT_f32);
    *out = full_of(t, a[0], zero_of(d), d, device_of(&a[3], cpu));
    return true;
}

bool decomp_ones(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    DType d = dtype_or(&a[1], DT_f32);
    *out = full_of(t, a[0], one_of(d), d, device_of(&a[3], cpu));
    return true;
}

static bool like(Trace *t, const Value *a, Value fill, Value *out) {
    *out = CALL(t, aten_full_like_default, a[0], fill, a[1], a[2], a[3], a[4], a[5]);
    return true;
}

bool decomp_zeros_like(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    return like(t, a, zero_of(dtype_or(&a[1], dtype_of(a[0]))), out);
}

bool decomp_ones_like(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    return like(t, a, one_of(dtype_or(&a[1], dtype_of(a[0]))), out);
}

bool decomp_zero(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    *out = CALL(t, aten_zeros_like_default, a[0]);
    return true;
}

// Sizes in the order in which x lies in memory, and the permutation back.
Value layout_sizes(Trace *t, Value x, Value *back) {
    Value order = layout_order(t, x), size = val_list(t->arena, VAL_list, order.n);
    *back = val_list(t->arena, VAL_list, order.n);
    bool same = true;
    for (int i = 0; i < order.n; i++) {
        size.at[i] = val_sym(size_of(t, x, (int)order.at[i].i));
        back->at[order.at[i].i] = INT(i);
        same = same && order.at[i].i == i;
    }
    if (same)
        *back = NONE;
    return size;
}

static bool keeps_layout(Value mf) {
    return mf.kind != VAL_memory_format || mf.mf == MF_preserve;
}

Value laid_out(Trace *t, Value x, Value back) {
    if (back.kind == VAL_none)
        return x;
    x = CALL(t, aten_permute_default, x, back);
    return CALL(t, aten_clone_default, x);
}

bool decomp_full_like(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    DType d = dtype_or(&a[2], dtype_of(a[0]));
    Device dev = device_of(&a[4], a[0].tensor->device);
    if (!keeps_layout(a[6])) {
        Value x = full_of(t, sizes_of(t, a[0]), a[1], d, dev);
        *out = CALL(t, aten_to_dtype_layout, x, NONE, NONE, NONE, NONE, BOOL(false), BOOL(false),
                    a[6]);
        return true;
    }
    Value back, size = layout_sizes(t, a[0], &back);
    *out = laid_out(t, full_of(t, size, a[1], d, dev), back);
    return true;
}

bool decomp_full(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    if (!out)
        return trace_accepts(t, a[2].kind == VAL_none, "its dtype is given");
    DType d = a[1].kind == VAL_bool                          ? DT_b8
              : a[1].kind == VAL_int || a[1].kind == VAL_sym ? DT_i64
                                                             : DT_f32;
    *out = CALL(t, aten_full_default, a[0], a[1], DTY(d), a[3], a[4], a[5]);
    return true;
}

bool decomp_new_full(Trace *t, const Op *op, const Value *a, Value *out) {
    bool given = op->id == OP_aten_new_full_default;
    int at = given ? 3 : 2;
    DType d = dtype_or(&a[at], dtype_of(a[0]));
    Value fill = given ? a[2] : op->id == OP_aten_new_zeros_default ? zero_of(d) : one_of(d);
    *out = full_of(t, a[1], fill, d, device_of(&a[at + 2], a[0].tensor->device));
    return true;
}

static Value empty_of(Trace *t, Value size, DType d, Device dev) {
    return CALL(t, aten_empty_memory_format, size, DTY(d), strided(),
                (Value){.kind = VAL_device, .device = dev}, BOOL(false));
}

bool decomp_new_empty(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    *out =
        empty_of(t, a[1], dtype_or(&a[2], dtype_of(a[0])), device_of(&a[4], a[0].tensor->device));
    return true;
}

bool decomp_empty_like(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    DType d = dtype_or(&a[1], dtype_of(a[0]));
    Device dev = device_of(&a[3], a[0].tensor->device);
    if (a[5].kind == VAL_memory_format && a[5].mf != MF_preserve) {
        *out = CALL(t, aten_empty_memory_format, sizes_of(t, a[0]), DTY(d), strided(),
                    (Value){.kind = VAL_device, .device = dev}, BOOL(false), a[5]);
        return true;
    }
    Value order = layout_order(t, a[0]);
    *out = CALL(t, aten_empty_permuted_default, sizes_of(t, a[0]), order, DTY(d), strided(),
                (Value){.kind = VAL_device, .device = dev}, BOOL(false));
    return true;
}

bool decomp_empty_permuted(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    int n = a[1].n;
    Value size = val_list(t->arena, VAL_list, n), back = val_list(t->arena, VAL_list, n);
    bool same = true;
    for (int i = 0; i < n; i++) {
        int64_t l = int_arg(&a[1].at[i], i);
        if (l < 0 || l >= n || l >= a[0].n)
            return false;
        size.at[i] = a[0].at[l];
        back.at[l] = INT(i);
        same = same && l == i;
    }
    Value x = empty_of(t, size, dtype_or(&a[2], DT_f32), device_of(&a[4], cpu));
    *out = same ? x : CALL(t, aten_permute_default, x, back);
    return true;
}

// The smallest type that holds v.
static DType counter_type(const Expr *a, const Expr *b) {
    int64_t x, y;
    if (!expr_int(a, &x) || !expr_int(b, &y))
        return DT_i64;
    int64_t v = x > y ? x : y;
    return v <= 255 ? DT_u8 : v <= 65535 ? DT_u16 : v <= INT32_MAX ? DT_i32 : DT_i64;
}

bool decomp_eye(Trace *t, const Op *op, const Value *a, Value *out) {
    bool two = op->id == OP_aten_eye_m;
    int at = two ? 2 : 1;
    const Expr *n, *m;
    Value width = two ? a[1] : a[0];
    if (!val_as_expr(t->sym, &a[0], &n) || !val_as_expr(t->sym, &width, &m))
        return false;
    Value d = DTY(counter_type(n, m)), dev = a[at + 2].kind == VAL_device ? a[at + 2] : NONE;
    Value rows = CALL(t, aten_arange_default, a[0], d, NONE, dev, BOOL(false));
    Value cols = CALL(t, aten_arange_default, width, d, NONE, dev, BOOL(false));
    rows = py_unsqueeze(t, rows, -1);
    Value eq = py_eq(t, rows, cols);
    *out = to_dtype(t, eq, dtype_or(&a[at], DT_f32));
    return true;
}

// linspace and logspace: bounds are numbers or 0-d tensors

static Value minus(Trace *t, Value a, Value b) {
    if (a.kind == VAL_tensor || b.kind == VAL_tensor)
        return py_sub(t, a, b);
    return FLT(float_arg(&a, 0) - float_arg(&b, 0));
}

typedef struct Space {
    Value start, end;
    int64_t steps;
    DType d;
    Device dev;
} Space;

static Value one_place(Trace *t, const Space *s) {
    Value one = list_of(t, INT(s->steps), END);
    if (!s->steps)
        return full_of(t, one, INT(0), s->d, s->dev);
    if (s->start.kind != VAL_tensor)
        return full_of(t, one, s->start, s->d, s->dev);
    Value x = empty_of(t, one, s->d, s->dev);
    return CALL(t, aten_copy_default, x, s->start);
}

static Value spaced(Trace *t, const Space *s) {
    if (s->steps <= 1)
        return one_place(t, s);
    DType compute = dtype_is_int(s->d) || s->d == DT_b8 ? DT_i64 : dtype_compute(s->d);
    Value r = CALL(t, aten_arange_start_step, INT(0), INT(s->steps), INT(1), NONE, NONE,
                   (Value){.kind = VAL_device, .device = s->dev}, BOOL(false));
    Value step = minus(t, s->end, s->start);
    step = step.kind == VAL_tensor ? py_div(t, step, INT(s->steps - 1))
                                   : FLT(step.f / (double)(s->steps - 1));
    Value low = py_lt(t, r, FLT((double)s->steps / 2));
    Value up = to_dtype(t, r, compute);
    up = py_mul(t, step, up);
    up = py_add(t, s->start, up);
    Value down = py_sub(t, INT(s->steps - 1), r);
    down = to_dtype(t, down, compute);
    down = py_mul(t, step, down);
    down = py_sub(t, s->end, down);
    return to_dtype(t, py_where(t, low, up, down), s->d);
}

bool decomp_linspace(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    Space s = {a[0], a[1], int_arg(&a[2], -1), dtype_or(&a[3], DT_f32), device_of(&a[5], cpu)};
    if (s.steps < 0)
        return false;
    s.start = cast_list(t, s.start, DT_f64);
    s.end = cast_list(t, s.end, DT_f64);
    *out = spaced(t, &s);
    return true;
}

bool decomp_logspace(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    DType d = dtype_or(&a[4], DT_f32);
    Space s = {a[0], a[1], int_arg(&a[2], -1), DT_f64, device_of(&a[6], cpu)};
    if (s.steps < 0 || float_arg(&a[3], 10) < 0)
        return false;
    Value *bounds[2] = {&s.start, &s.end};
    for (int i = 0; i < 2; i++) {
        Value *b = bounds[i];
        if (dtype_is_int(d))
            *b = b->kind == VAL_tensor ? to_dtype(t, *b, d) : INT((int64_t)float_arg(b, 0));
        *b = cast_list(t, *b, DT_f64);
    }
    Value x = spaced(t, &s);
    x = CALL(t, aten_pow_Scalar, float_arg(&a[3], 10) == 10 ? INT(10) : a[3], x);
    *out = to_dtype(t, x, d);
    return true;
}

// tril_indices, triu_indices: the places of a triangle, of which one part is a trapezoid (counted
// by a root) and the other a rectangle (counted by division)

typedef struct Triangle {
    int64_t trapezoid, rectangle; // elements of each part
    int64_t first;                // length of the trapezoid's first row
} Triangle;

static int64_t at_least_0(int64_t v) {
    return v > 0 ? v : 0;
}

static int64_t least(int64_t a, int64_t b) {
    return a < b ? a : b;
}

static Triangle tril_sizes(int64_t row, int64_t col, int64_t offset) {
    Triangle s = {0, 0, 0};
    if (!row || !col)
        return s;
    s.first = offset > 0 ? least(col, 1 + offset) : row + offset > 0;
    int64_t last = at_least_0(least(col, row + offset)), all = at_least_0(least(row, row + offset));
    int64_t rows = last - s.first + 1;
    s.trapezoid = (s.first + last) * rows / 2;
    s.rectangle = at_least_0((all - rows) * col);
    return s;
}

static Triangle triu_sizes(int64_t row, int64_t col, int64_t offset) {
    Triangle s = {0, 0, 0};
    if (!row || !col)
        return s;
    Triangle below = tril_sizes(row, col, offset - 1);
    s.first = offset > 0 ? at_least_0(col - offset) : col;
    s.rectangle = at_least_0(least(row, -offset) * col);
    s.trapezoid = row * col - (below.trapezoid + below.rectangle) - s.rectangle;
    return s;
}

static Value count_to(Trace *t, int64_t n, DType d, const Value *a) {
    return CALL(t, aten_arange_start, INT(0), INT(n), DTY(d), a[4],
                (Value){.kind = VAL_device, .device = device_of(&a[5], cpu)}, BOOL(false));
}

typedef struct Places {
    Value row, col;
} Places;

// Row and column in the trapezoid, of rows that grow (sign 1) or shrink (-1).
static Places trapezoid_places(Trace *t, const Triangle *s, int sign, const Value *a) {
    double b = sign > 0 ? (double)s->first - 0.5 : -0.5 - (double)s->first;
    Value x = count_to(t, s->trapezoid, DT_f64, a);
    Value r = py_mul(t, x, INT(2));
    r = sign > 0 ? py_add(t, FLT(b * b), r) : py_sub(t, FLT(b * b), r);
    r = CALL(t, aten_sqrt_default, r);
    r = sign > 0 ? py_add(t, FLT(-b), r) : py_sub(t, FLT(-b), r);
    r = CALL(t, aten_floor_default, r);
    Value twice = INT(2 * s->first - 1);
    Value c = sign > 0 ? py_add(t, twice, r) : py_sub(t, twice, r);
    c = py_mul(t, c, r);
    c = py_mul(t, c, FLT(0.5));
    c = py_sub(t, x, c);
    return (Places){r, CALL(t, aten_floor_default, c)};
}

static Value stacked(Trace *t, const Places *first, const Places *second) {
    Value rows = CALL(t, aten_cat_default, list_of(t, first->row, second->row, END));
    Value cols = CALL(t, aten_cat_default, list_of(t, first->col, second->col, END));
    return CALL(t, aten_stack_default, list_of(t, rows, cols, END));
}

bool decomp_tril_indices(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    int64_t row = int_arg(&a[0], 0), col = int_arg(&a[1], 0), offset = int_arg(&a[2], 0);
    DType d = dtype_or(&a[3], DT_i64);
    Triangle s = tril_sizes(row, col, offset);
    int64_t down = at_least_0(-offset);
    Places first = trapezoid_places(t, &s, 1, a), second;
    first.row = py_add(t, first.row, INT(down));
    first.row = to_dtype(t, first.row, d);
    first.col = to_dtype(t, first.col, d);
    Value x = count_to(t, s.rectangle, d, a);
    second.row = CALL(t, aten_floor_divide_default, x, INT(col));
    second.row = py_add(t, second.row, INT(col - s.first + 1 + down));
    second.col = CALL(t, aten_remainder_Scalar, x, INT(col));
    *out = stacked(t, &first, &second);
    return true;
}

bool decomp_triu_indices(Trace *t, const Op *op, const Value *a, Value *out) {
    (void)op;
    int64_t row = int_arg(&a[0], 0), col = int_arg(&a[1], 0), offset = int_arg(&a[2], 0);
    DType d = dtype_or(&a[3], DT_i64);
    Triangle s = triu_sizes(row, col, offset);
    Places first, second;
    Value x = count_to(t, s.rectangle, d, a);
    first.row = CALL(t, aten_floor_divide_default, x, INT(col));
    first.col = CALL(t, aten_remainder_Scalar, x, INT(col));
    second = trapezoid_places(t, &s, -1, a);
    second.row = to_dtype(t, second.row, d);
    second.col = to_dtype(t, second.col, d);
    if (col)
        second.row = py_add(t, second.row, INT(s.rectangle / col));
    second.col = py_add(t, second.col, INT(at_least_0(offset)));
    *out = stacked(t, &first, &second);
    return true;
}
