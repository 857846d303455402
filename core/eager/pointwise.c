// pointwise.c: elementwise ops: a row of pointwise.def says how arguments become operands and
// parameters, the loop is run over chunks of operands brought to the compute type, the result is
// rounded once when stored.
#include <float.h>
#include <math.h>
#include <string.h>

#include "core/eager/iterate.h"
#include "core/eager/loops.h"

typedef enum Rule {
    RULE_PROMOTE,
    RULE_FLOAT,
    RULE_SELF,
    RULE_KEEP, // PROMOTE; numbers are not rounded to bf16 or f16 (mul, div compute in f32)
    RULE_KEEP_FLOAT,
    RULE_MODE // FLOAT without a rounding mode, PROMOTE with one
} Rule;

struct PointRow {
    LoopId loop;
    const char *args; // see pointwise.def
    Rule rule;
};

static const PointRow rows[OP_count] = {
#define POINT(op, name, spec, dtype_rule)                                                          \
    [OP_##op] = {.loop = LOOP_##name, .args = spec, .rule = RULE_##dtype_rule},
#include "core/eager/pointwise.def"
#undef POINT
};

static const bool gives_truth[LOOP_count] = {
#define LOOP(name, ...)
#define CMP(name, ...) [LOOP_##name] = true,
#include "core/eager/loops.def"
#undef LOOP
#undef CMP
};

const PointRow *point_row(OpId id) {
    return rows[id].args ? &rows[id] : NULL;
}

typedef enum Compute { IN_f32, IN_f64, IN_i64, IN_i32, IN_u8 } Compute;
static const DType native[] = {DT_f32, DT_f64, DT_i64, DT_i32, DT_b8}; // in memory, by Compute

enum { OPERANDS = 3, CHUNK = 1024 };

typedef struct Operand {
    const Tensor *t; // NULL: the number
    Value number;    // as given, for numbers
    bool is_condition;
} Operand;

typedef struct Point {
    LoopId loop;
    Operand op[OPERANDS];
    int n; // operands
    Param p;
    Rule rule;
    Compute in;
    DType out;             // dtype of the result
    int at[OPERANDS];      // index of the operand's tensor in the iterator, -1: splat
    DType dtype[OPERANDS]; // of that tensor
    union {
        float f;
        double d;
        int64_t i;
        int32_t w;
        uint8_t b;
    } splat[OPERANDS];
    double (*same)[CHUNK]; // (OPERANDS) rows of the splats, in the compute type
} Point;

static double number_of(const Value *v) {
    double f = 0;
    val_as_float(v, &f);
    return f;
}

static int64_t integer_of(const Value *v) {
    if (v->kind == VAL_float)
        return v->f >= -9223372036854775808.0 && v->f < 9223372036854775808.0 ? (int64_t)v->f
                                                                              : INT64_MIN;
    int64_t i = 0;
    val_as_int(v, &i);
    return i;
}

static void add_param(Point *w, int *n, double f, int64_t i) {
    if (*n < POINT_PARAMS) {
        w->p.f[*n] = f;
        w->p.i[*n] = i;
        (*n)++;
    }
}

// NaN as the only bound of clamp bounds nothing; as one of two it makes all NaN.
static bool bounds_nothing(const K *k, char kind, const Value *v) {
    const Value *other = kind == 'L' ? v + 1 : v - 1;
    bool bound = (kind == 'L' && v == &k->args[1]) || (kind == 'H' && v == &k->args[2]);
    return bound && v->kind == VAL_float && isnan(v->f) && other->kind == VAL_none;
}

static bool add_operand(K *k, Point *w, char kind, const Value *arg) {
    Value v = *arg;
    Operand *o = &w->op[w->n++];
    o->is_condition = kind == 'C';
    o->t = tensor_at(&v);
    o->number = v;
    if ((v.kind == VAL_none || bounds_nothing(k, kind, arg)) && (kind == 'L' || kind == 'H'))
        o->number = val_float(kind == 'L' ? -(double)INFINITY : (double)INFINITY);
    else if (!o->t && v.kind != VAL_int && v.kind != VAL_float && v.kind != VAL_bool)
        return k_fail(k, "TypeError: %s: an argument is none, expected a tensor or a number",
                      k->op->qualname);
    return true;
}

static void nan_to_num_param(Point *w, int *n, const Value *v, DType d) {
    double max = d == DT_f64    ? DBL_MAX
                 : d == DT_f16  ? 65504
                 : d == DT_bf16 ? 0x1.fep127
                                : (double)FLT_MAX;
    double dflt = *n == 0 ? 0 : *n == 1 ? max : -max;
    double f = v->kind == VAL_none ? dflt : number_of(v);
    add_param(w, n, f, 0);
}

static bool read_args(K *k, const PointRow *row, Point *w) {
    static const Value none = {.kind = VAL_none};
    int params = 0, i = 0;
    for (const char *c = row->args; *c; c++, i++) {
        const Value *v = i < k->op->n_args ? &k->args[i] : &none;
        switch (*c) {
        case 't':
        case 's':
        case 'C':
        case 'L':
        case 'H':
            if (!add_operand(k, w, *c, v))
                return false;
            break;
        case 'p':
        case 'P':
        case 'd':
            add_param(w, &params, number_of(v), integer_of(v));
            break;
        case 'e':
            add_param(w, &params, v->kind == VAL_none ? -1 : number_of(v), 0);
            break;
        case 'n':
            nan_to_num_param(w, &params, v, w->op[0].t ? w->op[0].t->dtype : DT_f32);
            break;
        case 'g':
            if (v->kind == VAL_str && strcmp(v->s, "tanh") == 0)
                w->loop = w->loop == LOOP_gelu ? LOOP_gelu_tanh : LOOP_gelu_tanh_backward;
            break;
        case 'm':
            if (v->kind == VAL_str && strcmp(v->s, "floor") == 0)
                w->loop = LOOP_div_floor;
            else if (v->kind == VAL_str && strcmp(v->s, "trunc") == 0)
                w->loop = LOOP_div_trunc;
            else if (v->kind != VAL_none)
                return k_fail(k,
                              "RuntimeError: div expected rounding_mode to be one of None, "
                              "'trunc', or 'floor' but "
                              "found '%s'",
                              v->kind == VAL_str ? v->s : "?");
            break;
        case '1':
            add_param(w, &params, 1, 1);
            break;
        default:
            break;
        }
    }
    return true;
}

static bool is_open_bound(const Point *w, const Operand *o) {
    return !o->t && o->number.kind == VAL_float && isinf(o->number.f) && w->loop == LOOP_clamp;
}

// The dtype that the op is computed in.
static DType common_dtype(K *k, const Point *w) {
    Value values[OPERANDS];
    int n = 0;
    if (w->rule == RULE_SELF && w->op[0].t)
        return w->op[0].t->dtype;
    for (int i = 0; i < w->n; i++) {
        const Operand *o = &w->op[i];
        if (!o->is_condition && !is_open_bound(w, o))
            values[n++] = o->number;
    }
    DType d = ops_result_type(values, n);
    bool to_float = w->rule == RULE_FLOAT || w->rule == RULE_KEEP_FLOAT ||
                    (w->rule == RULE_MODE && w->loop == LOOP_div);
    if (to_float && is_int_like(d))
        d = DT_f32;
    return k->x->in_f64 && dtype_is_float(d) ? DT_f64 : d;
}

// As a conversion to d leaves it: 255 of -1 in u8. f: the same as a float.
static int64_t wrapped(DType d, double f, int64_t v) {
    int spare = 64 - dtype_info[d].bytes * 8;
    bool is_unsigned = d == DT_u8 || d == DT_u16 || d == DT_u32;
    if (d == DT_b8)
        return v != 0 || f != 0;
    if (spare <= 0)
        return v;
    uint64_t top = (uint64_t)v << spare;
    return is_unsigned ? (int64_t)(top >> spare) : (int64_t)top >> spare;
}

static bool is_division(LoopId loop) {
    return loop == LOOP_div_floor || loop == LOOP_div_trunc || loop == LOOP_fmod ||
           loop == LOOP_remainder || loop == LOOP_div_prim;
}

static void make_splat(Point *w, int i) {
    Operand *o = &w->op[i];
    bool second = !o->t || w->n != 2 || i == 1; // a tensor in front is converted as any other
    bool keep = second && (w->rule == RULE_KEEP || w->rule == RULE_KEEP_FLOAT);
    double f = o->t ? get_d(o->t, 0) : number_of(&o->number);
    if (!o->is_condition && !(keep && !(o->t && o->t->dtype == w->p.common)))
        f = round_to(w->p.common, f);
    if (w->in == IN_f32)
        w->splat[i].f = (float)f;
    else if (w->in == IN_f64)
        w->splat[i].d = f;
    else if (o->is_condition)
        w->splat[i].i = f != 0;
    else if (is_open_bound(w, o))
        w->splat[i].i = f > 0 ? INT64_MAX : INT64_MIN;
    else
        // Numbers and 0-d tensors beside a narrower tensor become as narrow first.
        w->splat[i].i = wrapped(w->p.common, f, o->t ? get_i(o->t, 0) : integer_of(&o->number));
}

VECTORED static void fill_row(Compute in, int64_t n, void *row, const void *value) {
    int bytes = dtype_info[native[in]].bytes;
    uint32_t four;
    uint64_t eight;
    if (bytes == 1) {
        memset(row, *(const uint8_t *)value, (size_t)n);
    } else if (bytes == 4) {
        memcpy(&four, value, sizeof four);
        for (int64_t j = 0; j < n; j++)
            ((uint32_t *)row)[j] = four;
    } else {
        memcpy(&eight, value, sizeof eight);
        for (int64_t j = 0; j < n; j++)
            ((uint64_t *)row)[j] = eight;
    }
}

static void gather_row(int bytes, const char *p, int64_t stride, int64_t n, void *row) {
    for (int64_t j = 0; j < n; j++)
        if (bytes == 1)
            ((uint8_t *)row)[j] = ((const uint8_t *)p)[j * stride];
        else
            ((uint32_t *)row)[j] = ((const uint32_t *)(const void *)p)[j * stride];
}

static void scatter_row(int bytes, char *p, int64_t stride, int64_t n, const void *row) {
    for (int64_t j = 0; j < n; j++)
        if (bytes == 1)
            ((uint8_t *)p)[j * stride] = ((const uint8_t *)row)[j];
        else
            ((uint32_t *)(void *)p)[j * stride] = ((const uint32_t *)row)[j];
}

// n elements of operand i as the compute type: in place if they are that already.
static const void *fetch(const Point *w, int i, int64_t n, const char *p, int64_t stride,
                         void *buf) {
    DType d = w->dtype[i];
    if (d == native[w->in] && stride == 1)
        return p;
    if (w->in == IN_i32 || w->in == IN_u8) {
        gather_row(dtype_info[d].bytes, p, stride, n, buf);
        return buf;
    }
    if (w->op[i].is_condition && !is_int_like(d))
        d = DT_b8;
    if (w->in == IN_f32)
        load_f(d, p, stride, n, buf);
    else if (w->in == IN_f64)
        load_d(d, p, stride, n, buf);
    else
        load_i(d, p, stride, n, buf);
    // An operand of another type is first converted to the common one.
    if (w->in == IN_f32 && d != w->p.common && dtype_is_low(w->p.common) && !w->op[i].is_condition)
        for (int64_t j = 0; j < n; j++)
            ((float *)buf)[j] = (float)round_to(w->p.common, (double)((float *)buf)[j]);
    return buf;
}

typedef struct PointRowAt {
    const Point *w;
    char *const *p;        // of the iterator, where the row begins
    const int64_t *stride; // in elements
    double (*bufs)[CHUNK];
} PointRowAt;

// Operands that are one value along the row are made a row of it, once. True if no operand needs
// a buffer at all.
static bool spread(const PointRowAt *r, int64_t n, const void **fixed) {
    const Point *w = r->w;
    bool plain = true;
    for (int i = 0; i < w->n; i++) {
        int j = w->at[i];
        fixed[i] = j < 0 ? w->same[i] : NULL;
        if (j >= 0 && r->stride[j] == 0 && n > 1) {
            const void *one = fetch(w, i, 1, r->p[j], 1, r->bufs[i]);
            uint64_t value;
            memcpy(&value, one, (size_t)dtype_info[native[w->in]].bytes);
            fill_row(w->in, n < CHUNK ? n : CHUNK, r->bufs[i], &value);
            fixed[i] = r->bufs[i];
        }
        plain = plain && !fixed[i] && r->stride[j] == 1 && w->dtype[i] == native[w->in];
    }
    return plain;
}

static void point_row_fn(void *ctx, int64_t n, char *const *p, const int64_t *stride) {
    static LoopFn *const *const tables[] = {loops_f32, loops_f64, loops_i64, loops_i32, loops_u8};
    const Point *w = ctx;
    LoopFn *fn = tables[w->in][w->loop];
    bool truth = gives_truth[w->loop];
    DType loop_out = truth ? DT_b8 : native[w->in];
    _Alignas(64) double bufs[OPERANDS + 1][CHUNK];
    int ob = dtype_info[w->out].bytes;
    bool direct = stride[0] == 1 && w->out == loop_out;
    const void *fixed[OPERANDS] = {NULL};
    PointRowAt row = {w, p, stride, bufs};
    int64_t step = spread(&row, n, fixed) && direct ? n : n < CHUNK ? n : CHUNK;
    for (int64_t at = 0; at < n; at += step) {
        int64_t m = n - at < step ? n - at : step;
        const void *in[OPERANDS] = {NULL};
        for (int i = 0; i < w->n; i++) {
            int j = w->at[i];
            in[i] = fixed[i] ? fixed[i]
                             : fetch(w, i, m, p[j] + at * stride[j] * dtype_info[w->dtype[i]].bytes,
                                     stride[j], bufs[i]);
        }
        for (int i = w->n; i < OPERANDS; i++)
            in[i] = in[0];
        char *dst = p[0] + at * stride[0] * ob;
        void *res = direct ? (void *)dst : bufs[OPERANDS];
        fn(m, res, in, &w->p);
        if (direct)
            continue;
        if (truth)
            store_b(w->out, dst, stride[0], m, res);
        else if (w->in == IN_f32)
            store_f(w->out, dst, stride[0], m, res);
        else if (w->in == IN_f64)
            store_d(w->out, dst, stride[0], m, res);
        else if (w->in == IN_i64)
            store_i(w->out, dst, stride[0], m, res);
        else
            scatter_row(ob, dst, stride[0], m, res);
    }
}

static bool has_zero(const Point *w, int i) {
    if (w->at[i] < 0)
        return w->splat[i].i == 0 && (!w->op[0].t || tensor_numel(w->op[0].t) > 0);
    const Tensor *t = w->op[i].t;
    WALK (walk, walk_tensors(&t, 1))
        if (get_i(t, walk.at[0]) == 0)
            return true;
    return false;
}

static bool check(K *k, const Point *w) {
    if (w->in == IN_i64 && is_division(w->loop) && has_zero(w, 1))
        return k_fail(k, "RuntimeError: ZeroDivisionError");
    if (w->in == IN_i64 && w->loop == LOOP_pow && !w->op[1].t && integer_of(&w->op[1].number) < 0)
        return k_fail(k, "RuntimeError: Integers to negative integer powers are not allowed.");
    if (w->p.common == DT_b8 &&
        (w->loop == LOOP_sub || w->loop == LOOP_rsub || w->loop == LOOP_neg))
        return k_fail(k, "RuntimeError: Subtraction, the `-` operator, and negation, with a bool "
                         "tensor are not supported.");
    bool bits = w->loop == LOOP_bitwise_and || w->loop == LOOP_bitwise_or ||
                w->loop == LOOP_bitwise_xor || w->loop == LOOP_bitwise_not || w->loop == LOOP_gcd ||
                w->loop == LOOP_lcm;
    if (bits && w->in != IN_i64)
        return k_fail(k, "RuntimeError: \"%s_cpu\" not implemented for '%s'", k->op->name,
                      dtype_info[w->p.common].torch_name);
    return true;
}

// Of 0 and 1 these make 0 and 1.
static bool is_closed(LoopId loop) {
    switch ((int)loop) {
    case LOOP_copy:
    case LOOP_mul:
    case LOOP_maximum:
    case LOOP_minimum:
    case LOOP_bitwise_and:
    case LOOP_bitwise_or:
    case LOOP_bitwise_xor:
    case LOOP_where:
    case LOOP_masked_fill:
        return true;
    default:
        return gives_truth[loop];
    }
}

// int32 and truth values throughout are computed as they are: eight or two times as many at once.
static void narrow(Point *w) {
    DType result = gives_truth[w->loop] ? DT_b8 : DT_i32;
    bool bytes = w->out == DT_b8 && w->p.common == DT_b8 && is_closed(w->loop),
         words = w->out == result && w->p.common == DT_i32;
    for (int i = 0; i < w->n; i++) {
        int64_t v = w->splat[i].i;
        DType d = w->at[i] < 0 ? DT_none : w->dtype[i];
        bytes = bytes && (d == DT_b8 || (d == DT_none && (v == 0 || v == 1)));
        words = words && !w->op[i].is_condition &&
                (d == DT_i32 || (d == DT_none && v >= INT32_MIN && v <= INT32_MAX));
    }
    if (w->in != IN_i64 || (!bytes && !words))
        return;
    w->in = bytes ? IN_u8 : IN_i32;
    for (int i = 0; i < w->n; i++) {
        int64_t v = w->splat[i].i;
        if (w->at[i] >= 0)
            continue;
        if (bytes)
            w->splat[i].b = (uint8_t)v;
        else
            w->splat[i].w = (int32_t)v;
    }
}

// The exponents that pow computes without pow; in float16 there are none.
static void quick_power(Point *w) {
    static const struct {
        double exponent;
        LoopId loop;
    } powers[] = {{2, LOOP_square},   {3, LOOP_cube},        {0.5, LOOP_sqrt},      {1, LOOP_copy},
                  {-0.5, LOOP_rsqrt}, {-1, LOOP_reciprocal}, {-2, LOOP_over_square}};
    const Operand *o = &w->op[1];
    if (w->loop != LOOP_pow || w->in == IN_i64 || w->p.common == DT_f16 || o->t)
        return;
    double e = number_of(&o->number);
    for (int i = 0; i < COUNT(powers); i++)
        if (e == powers[i].exponent) {
            w->loop = powers[i].loop;
            w->n = 1;
        }
}

// In the low floats a quotient is rounded before it loses its fraction, except by a single number:
// that divides in float, and is not rounded itself.
static void rounded_division(Point *w) {
    const Operand *o = &w->op[1];
    if (!dtype_is_low(w->p.common) || (w->loop != LOOP_div_trunc && w->loop != LOOP_div_floor))
        return;
    if (!o->t || tensor_numel(o->t) == 1)
        w->rule = RULE_KEEP;
    else
        w->loop = w->loop == LOOP_div_trunc ? LOOP_div_trunc_low : LOOP_div_floor_low;
}

// Bounds that are numbers, as they mostly are, need not be looked at for NaN with every element.
static void quick_clamp(Point *w) {
    bool known = w->loop == LOOP_clamp && w->in != IN_i64;
    for (int i = 1; known && i < w->n; i++)
        known = !w->op[i].t && !isnan(number_of(&w->op[i].number));
    if (known)
        w->loop = LOOP_clamp_known;
}

static bool run(K *k, Point *w, Tensor *out) {
    const Tensor *t[ITER_TENSORS] = {out};
    int64_t longest = tensor_numel(out);
    int n = 1;
    w->out = out->dtype;
    quick_power(w);
    quick_clamp(w);
    rounded_division(w);
    for (int i = 0; i < w->n; i++) {
        const Tensor *o = w->op[i].t;
        w->at[i] = -1;
        if (!o || o->ndim == 0) {
            make_splat(w, i);
            continue;
        }
        // Reading what an earlier element has overwritten: from a copy instead.
        if (overlaps(out, o)) {
            Tensor *apart = eager_like(k->x, o, o->dtype);
            if (!apart || !copy_into(k->x, apart, o))
                return false;
            o = apart;
        }
        w->at[i] = n;
        w->dtype[i] = o->dtype;
        t[n++] = o;
    }
    if (!check(k, w))
        return false;
    narrow(w);
    for (int i = 0; i < w->n; i++)
        if (w->at[i] < 0)
            fill_row(w->in, longest < CHUNK ? longest : CHUNK, w->same[i], &w->splat[i]);
    Iter it;
    if (!iter_init(&it, t, n))
        return k_fail(
            k, "RuntimeError: output with another shape than the broadcast shape of the operands");
    iter_run(&it, k->x->c->threads, point_row_fn, w);
    return true;
}

bool point_run(K *k, const PointRow *row, Tensor *out) {
    _Alignas(64) double same[OPERANDS][CHUNK];
    Point w = {.loop = row->loop, .rule = row->rule, .same = same};
    if (!read_args(k, row, &w))
        return false;
    if (!out) {
        MetaCtx m = eager_meta_ctx(k->x);
        Value meta;
        if (!op_meta(&m, k->op, k->args, &meta))
            return false;
        if (meta.kind != VAL_tensor)
            return k_fail(k, "RuntimeError: %s gives no tensor", k->op->qualname);
        k->out = eager_raw_from_meta(k->x, meta.tensor);
        out = tensor_at(&k->out);
        if (!out)
            return false;
    }
    w.p.common = common_dtype(k, &w);
    // Elementwise functions of floats that the integers do not have, applied to integers by prims.
    if (w.loop == LOOP_copy)
        w.p.common = w.op[0].t ? w.op[0].t->dtype : DT_f32;
    w.p.bits = dtype_info[w.p.common].bytes * 8;
    w.in = w.p.common == DT_f64 ? IN_f64 : is_int_like(w.p.common) ? IN_i64 : IN_f32;
    if (dtype_info[w.p.common].cls == DTC_COMPLEX || w.p.common == DT_none)
        return k_fail(
            k, "NotImplementedError: there is no reference kernel for %s of %s", k->op->qualname,
            dtype_info[w.p.common].torch_name ? dtype_info[w.p.common].torch_name : "these dtypes");
    return run(k, &w, out);
}

// loops by name

static int loop_named(const char *name) {
    static const char *const names[LOOP_count] = {
#define LOOP(id, ...) [LOOP_##id] = #id,
#define CMP(id, ...)  [LOOP_##id] = #id,
#include "core/eager/loops.def"
#undef LOOP
#undef CMP
    };
    return str_index(name, names, LOOP_count);
}

static Value loop_over(K *k, const char *loop, const Value *v, int n, double p0, double p1) {
    _Alignas(64) double same[OPERANDS][CHUNK];
    Point w = {
        .loop = (LoopId)loop_named(loop), .rule = RULE_PROMOTE, .p = {.f = {p0, p1}}, .same = same};
    const TensorMeta *metas[OPERANDS];
    for (int i = 0; i < n; i++) {
        if (v[i].kind != VAL_tensor || !add_operand(k, &w, 't', &v[i]))
            return val_none();
        metas[i] = v[i].tensor;
    }
    MetaCtx m = eager_meta_ctx(k->x);
    int ndim;
    const Expr **size = ops_broadcast(&m, metas, n, &ndim);
    int64_t sizes[TENSOR_DIMS];
    if (!size || ndim > TENSOR_DIMS)
        return val_none();
    for (int i = 0; i < ndim; i++)
        sizes[i] = expr_int_or(size[i], 0);
    w.p.common = common_dtype(k, &w);
    w.in = w.p.common == DT_f64 ? IN_f64 : is_int_like(w.p.common) ? IN_i64 : IN_f32;
    Tensor *out = eager_new(k->x, w.p.common, ndim, sizes);
    return out && run(k, &w, out) ? tensor_value(k->x, out) : val_none();
}

Value point_loop(K *k, const char *loop, Value a, Value b, double parameter) {
    Value v[2] = {a, b};
    return loop_over(k, loop, v, 2, parameter, 0);
}

Value point_loop3(K *k, const char *loop, Value a, Value b, Value c, double p0, double p1) {
    Value v[3] = {a, b, c};
    return loop_over(k, loop, v, 3, p0, p1);
}
