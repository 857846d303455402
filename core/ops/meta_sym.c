// meta_sym.c: arithmetic on sizes, questions about a tensor, assertions: results that are no
// tensors.
#include "core/ops/meta.h"

#include <math.h>
#include <string.h>

bool meta_size(MetaCtx *m, const Op *op, const Value *args, Value *out) {
    const TensorMeta *self = meta_self(m, op, args);
    int dim;
    if (!self)
        return false;
    bool strides = strstr(op->name, "stride") != NULL;
    const Expr *const *list = strides ? self->stride : self->size;
    if (op->n_args < 2) {
        *out = val_exprs(m->arena, list, self->ndim);
        return true;
    }
    if (self->ndim == 0)
        return meta_fail(m, "IndexError: dimension specified as %lld but tensor has no dimensions",
                         (long long)meta_arg_int(op, args, "dim", 0));
    if (!meta_dim(m, meta_arg_int(op, args, "dim", 0), self->ndim, &dim))
        return false;
    *out = val_sym(list[dim]);
    return true;
}

bool meta_numel_call(MetaCtx *m, const Op *op, const Value *args, Value *out) {
    const TensorMeta *self = meta_self(m, op, args);
    if (self)
        *out = val_sym(meta_numel(m->sym, self));
    return self != NULL;
}

bool meta_offset(MetaCtx *m, const Op *op, const Value *args, Value *out) {
    const TensorMeta *self = meta_self(m, op, args);
    if (self)
        *out = self->offset ? val_sym(self->offset) : val_int(0);
    return self != NULL;
}

bool meta_rank(MetaCtx *m, const Op *op, const Value *args, Value *out) {
    const TensorMeta *self = meta_self(m, op, args);
    if (self)
        *out = val_int(self->ndim);
    return self != NULL;
}

// is_floating_point, is_complex, is_signed, is_conj, …: known from the dtype, or never so.
bool meta_question(MetaCtx *m, const Op *op, const Value *args, Value *out) {
    const TensorMeta *self = meta_self(m, op, args);
    if (!self)
        return false;
    DTypeClass c = dtype_info[self->dtype].cls;
    bool is_unsigned = dtype_info[self->dtype].abbr[0] == 'u' || c == DTC_BOOL;
    bool yes = strcmp(op->name, "is_floating_point") == 0 ? c == DTC_FLOAT
               : strcmp(op->name, "is_complex") == 0      ? c == DTC_COMPLEX
               : strcmp(op->name, "is_signed") == 0       ? !is_unsigned
                                                          : false;
    *out = val_bool(yes);
    return true;
}

bool meta_same_size(MetaCtx *m, const Op *op, const Value *args, Value *out) {
    const TensorMeta *a = meta_self(m, op, args), *b = meta_arg_tensor(op, args, "other");
    if (!a || !b)
        return false;
    bool same = a->ndim == b->ndim;
    for (int i = 0; same && i < a->ndim; i++)
        same = meta_eq(m, a->size[i], b->size[i]);
    *out = val_bool(same);
    return true;
}

// Assertions yield nothing.
bool meta_nothing(MetaCtx *m, const Op *op, const Value *args, Value *out) {
    (void)m;
    (void)op;
    (void)args;
    *out = val_none();
    return true;
}

// item: an unknown integer, or a real number known by its name only.
bool meta_item(MetaCtx *m, const Op *op, const Value *args, Value *out) {
    const TensorMeta *self = meta_self(m, op, args);
    if (!self)
        return false;
    if (dtype_info[self->dtype].cls == DTC_INT)
        *out = val_sym(sym_create_unbacked(m->sym));
    else if (self->dtype == DT_b8)
        *out = val_sym(sym_cmp(m->sym, SYM_eq, sym_create_unbacked(m->sym), sym_int(m->sym, 1)));
    else
        *out = (Value){.kind = VAL_symfloat, .s = sym_create_unbacked_real(m->sym)};
    return true;
}

bool meta_result_type(MetaCtx *m, const Op *op, const Value *args, Value *out) {
    (void)m;
    *out = val_dtype(ops_result_type(args, op->n_args));
    return true;
}

bool meta_promote_types(MetaCtx *m, const Op *op, const Value *args, Value *out) {
    (void)op;
    if (args[0].kind != VAL_dtype || args[1].kind != VAL_dtype)
        return meta_fail(m, "TypeError: promote_types expects two dtypes");
    *out = val_dtype(dtype_promote(args[0].dtype, args[1].dtype));
    return true;
}

// Python's: the remainder has the sign of the divisor, the quotient is what fits it.
static double float_mod(double a, double b) {
    double r = fmod(a, b);
    if (r == 0)
        return copysign(0, b);
    return (r < 0) != (b < 0) ? r + b : r;
}

static double float_floordiv(double a, double b) {
    double r = fmod(a, b), q = (a - r) / b;
    q -= r != 0 && (r < 0) != (b < 0);
    if (q == 0)
        return copysign(0, a / b);
    double whole = floor(q);
    return q - whole > 0.5 ? whole + 1 : whole;
}

static bool float_pow(MetaCtx *m, double a, double b, Value *out) {
    *out = val_float(pow(a, b));
    if (a == 0 && b < 0)
        return meta_fail(m, "ZeroDivisionError: 0.0 cannot be raised to a negative power");
    if (a < 0 && isfinite(a) && isfinite(b) && b != floor(b))
        return meta_fail(m, "TypeError: %g ** %g is a complex number", a, b);
    return !isinf(out->f) || isinf(a) || isinf(b) ||
           meta_fail(m, "OverflowError: (34, 'Numerical result out of range')");
}

// int(), math.floor and their like, of a whole number.
static bool float_to_int(MetaCtx *m, double whole, Value *out) {
    if (isnan(whole))
        return meta_fail(m, "ValueError: cannot convert float NaN to integer");
    if (isinf(whole))
        return meta_fail(m, "OverflowError: cannot convert float infinity to integer");
    if (fabs(whole) >= 0x1p63)
        return meta_fail(m, "OverflowError: %g is beyond 64 bits", whole);
    *out = val_int((int64_t)whole);
    return true;
}

// Real arithmetic: numbers if both are, else a text for the reader.
static bool real(MetaCtx *m, const Op *op, const Value *args, Value *out) {
    double a = 0, b = 0;
    bool known = val_as_float(&args[0], &a) && (op->n_args < 2 || val_as_float(&args[1], &b));
    if (!known) {
        Buf text = {.arena = m->arena};
        val_print(&text, &args[0], NULL, NULL);
        buf_printf(&text, op->n_args > 1 ? " %s " : " %s", op->name);
        if (op->n_args > 1)
            val_print(&text, &args[1], NULL, NULL);
        *out = (Value){.kind = VAL_symfloat, .s = buf_str(&text)};
        return true;
    }
    bool divides = op->id == OP_operator_truediv || op->id == OP_operator_floordiv ||
                   op->id == OP_operator_mod;
    if (divides && b == 0)
        return meta_fail(m, "ZeroDivisionError: float division by zero");
    switch (op->id) {
    case OP_operator_add: *out = val_float(a + b); return true;
    case OP_operator_sub: *out = val_float(a - b); return true;
    case OP_operator_mul: *out = val_float(a * b); return true;
    case OP_operator_truediv: *out = val_float(a / b); return true;
    case OP_operator_floordiv: *out = val_float(float_floordiv(a, b)); return true;
    case OP_operator_mod: *out = val_float(float_mod(a, b)); return true;
    case OP_operator_pow: return float_pow(m, a, b, out);
    case OP_operator_eq: *out = val_bool(a == b); return true;
    case OP_operator_ne: *out = val_bool(a != b); return true;
    case OP_operator_lt: *out = val_bool(a < b); return true;
    case OP_operator_le: *out = val_bool(a <= b); return true;
    case OP_operator_gt: *out = val_bool(a > b); return true;
    case OP_operator_ge: *out = val_bool(a >= b); return true;
    case OP_operator_neg: *out = val_float(-a); return true;
    case OP_operator_abs: *out = val_float(fabs(a)); return true;
    case OP_torch_sym_float: *out = val_float(a); return true;
    case OP_torch_sym_sqrt: case OP_torch__sym_sqrt:
        *out = val_float(sqrt(a));
        return !(a < 0) || meta_fail(m, "ValueError: math domain error");
    case OP_torch_sym_max: *out = val_float(a > b ? a : b); return true;
    case OP_torch_sym_min: *out = val_float(a < b ? a : b); return true;
    case OP_torch_sym_int: case OP_math_trunc: return float_to_int(m, trunc(a), out);
    case OP_math_ceil: return float_to_int(m, ceil(a), out);
    case OP_math_floor: return float_to_int(m, floor(a), out);
    default: break;
    }
    return meta_fail(m, "TypeError: %s is not defined for floats", op->qualname);
}

static bool compared(OpId id, SymKind *kind) {
    switch (id) {
    case OP_operator_eq: *kind = SYM_eq; return true;
    case OP_operator_ne: *kind = SYM_ne; return true;
    case OP_operator_lt: *kind = SYM_lt; return true;
    case OP_operator_le: *kind = SYM_le; return true;
    case OP_operator_gt: *kind = SYM_gt; return true;
    case OP_operator_ge: *kind = SYM_ge; return true;
    default: return false;
    }
}

static bool integer2(MetaCtx *m, const Op *op, const Expr *a, const Expr *b, Value *out) {
    Sym *s = m->sym;
    SymKind kind;
    int64_t n;
    if (compared(op->id, &kind)) {
        *out = val_sym(sym_cmp(s, kind, a, b));
        return true;
    }
    bool divides = op->id == OP_operator_floordiv || op->id == OP_operator_mod;
    if (divides && expr_is(b, 0))
        return meta_fail(m, "ZeroDivisionError: integer division or modulo by zero");
    switch (op->id) {
    case OP_operator_add: *out = val_sym(sym_add(s, a, b)); return true;
    case OP_operator_sub: *out = val_sym(sym_sub(s, a, b)); return true;
    case OP_operator_mul: *out = val_sym(sym_mul(s, a, b)); return true;
    case OP_operator_floordiv: *out = val_sym(sym_floordiv(s, a, b)); return true;
    case OP_operator_mod: *out = val_sym(sym_mod(s, a, b)); return true;
    case OP_torch_sym_max: *out = val_sym(sym_max(s, a, b)); return true;
    case OP_torch_sym_min: *out = val_sym(sym_min(s, a, b)); return true;
    case OP_operator_and_: *out = val_sym(sym_and(s, a, b)); return true;
    case OP_operator_or_: *out = val_sym(sym_or(s, a, b)); return true;
    case OP_operator_lshift: case OP_operator_rshift: {
        const Expr *both[2] = {a, b};
        *out =
            val_sym(sym_make(s, op->id == OP_operator_lshift ? SYM_lshift : SYM_rshift, both, 2));
        return true;
    }
    case OP_operator_pow:
        if (!expr_int(b, &n) || n < 0)
            return meta_fail(m, "TypeError: a size to the power %s is not modelled",
                             sym_str(m->arena, b));
        *out = val_sym(sym_pow(s, a, n));
        return true;
    case OP_operator_truediv: {
        Buf text = {.arena = m->arena};
        int64_t x, y;
        if (expr_int(a, &x) && expr_int(b, &y) && y) {
            *out = val_float((double)x / (double)y);
            return true;
        }
        const Expr *both[2] = {a, b};
        sym_print(&text, sym_make(s, SYM_inttruediv, both, 2));
        *out = (Value){.kind = VAL_symfloat, .s = buf_str(&text)};
        return true;
    }
    default: break;
    }
    return meta_fail(m, "TypeError: %s is not defined for sizes", op->qualname);
}

static bool integer1(MetaCtx *m, const Op *op, const Expr *a, Value *out) {
    Sym *s = m->sym;
    switch (op->id) {
    case OP_operator_neg: *out = val_sym(sym_neg(s, a)); return true;
    case OP_operator_abs: *out = val_sym(sym_max(s, a, sym_neg(s, a))); return true;
    case OP_operator_not_: case OP_torch_sym_not: *out = val_sym(sym_not(s, a)); return true;
    case OP_operator_pos: case OP_operator_index: case OP_operator_truth: case OP_torch_sym_int:
    case OP_math_ceil: case OP_math_floor: case OP_math_trunc: *out = val_sym(a); return true;
    case OP_operator_invert: *out = val_sym(sym_add_int(s, sym_neg(s, a), -1)); return true;
    case OP_torch_sym_float: {
        Buf text = {.arena = m->arena};
        int64_t x;
        if (expr_int(a, &x)) {
            *out = val_float((double)x);
            return true;
        }
        sym_print(&text, sym_make(s, SYM_tofloat, &a, 1));
        *out = (Value){.kind = VAL_symfloat, .s = buf_str(&text)};
        return true;
    }
    default: break;
    }
    return meta_fail(m, "TypeError: %s is not defined for sizes", op->qualname);
}

static bool truth(MetaCtx *m, const Value *v, const Expr **out) {
    if (v->kind == VAL_bool)
        *out = sym_bool(m->sym, v->b);
    else
        return val_as_expr(m->sym, v, out);
    return true;
}

// Operators of Python on ints, SymInts and floats.
bool meta_number(MetaCtx *m, const Op *op, const Value *args, Value *out) {
    const Expr *a, *b;
    bool logic = op->id == OP_operator_and_ || op->id == OP_operator_or_ ||
                 op->id == OP_operator_not_ || op->id == OP_torch_sym_not;
    bool ints = logic ? truth(m, &args[0], &a) : val_as_expr(m->sym, &args[0], &a);
    if (op->n_args == 1)
        return ints ? integer1(m, op, a, out) : real(m, op, args, out);
    ints = ints && (logic ? truth(m, &args[1], &b) : val_as_expr(m->sym, &args[1], &b));
    return ints ? integer2(m, op, a, b, out) : real(m, op, args, out);
}

bool meta_sym_sum(MetaCtx *m, const Op *op, const Value *args, Value *out) {
    int n;
    (void)op;
    const Expr **e = meta_exprs(m, &args[0], &n);
    if (e)
        *out = val_sym(sym_sum(m->sym, e, n));
    return e != NULL;
}

bool meta_sym_ite(MetaCtx *m, const Op *op, const Value *args, Value *out) {
    const Expr *c, *a, *b;
    (void)op;
    if (!truth(m, &args[0], &c) || !val_as_expr(m->sym, &args[1], &a) ||
        !val_as_expr(m->sym, &args[2], &b))
        return meta_fail(m, "TypeError: sym_ite expects a condition and two ints");
    *out = val_sym(sym_where(m->sym, c, a, b));
    return true;
}

// a[i] of a list, tuple or dict.
bool meta_getitem(MetaCtx *m, const Op *op, const Value *args, Value *out) {
    int64_t i;
    (void)op;
    if (args[0].kind == VAL_dict) {
        for (int k = 0; k + 1 < args[0].n; k += 2)
            if (val_equal(&args[0].at[k], &args[1])) {
                *out = args[0].at[k + 1];
                return true;
            }
        return meta_fail(m, "KeyError: no such key");
    }
    if ((args[0].kind != VAL_list && args[0].kind != VAL_tuple) || !val_as_int(&args[1], &i))
        return meta_fail(m, "TypeError: only a list or tuple is indexed by an int here");
    if (i < -args[0].n || i >= args[0].n)
        return meta_fail(m, "IndexError: index %lld is out of range for %d items", (long long)i,
                         args[0].n);
    *out = args[0].at[i < 0 ? i + args[0].n : i];
    return true;
}
