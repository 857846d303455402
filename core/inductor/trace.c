// trace.c: what happens when a lowered closure runs. A tracer either counts distinct operations
// (the realization rules ask for that; PyTorch's OpCounterCSE) or records a LoopBody. While
// recording, constants and integers made of loop variables stay symbolic until an operation needs
// them as a value, so that arithmetic on them is done here (PyTorch's IndexPropagation).
#include "core/inductor/lower.h"

#include <assert.h>
#include <math.h>
#include <string.h>

void tracer_count(Tracer *t, Lower *l, OpCount *out) {
    *t = (Tracer){.l = l,
                  .arena = l->arena,
                  .sym = l->sym,
                  .count = out,
                  .cse = {.arena = &l->tmp},
                  .origin = -1};
}

void tracer_record(Tracer *t, Lower *l, LoopBody *body) {
    *t = (Tracer){.l = l,
                  .arena = l->arena,
                  .sym = l->sym,
                  .recording = true,
                  .body = body,
                  .n_submodules = 1,
                  .index_of = {.arena = &l->tmp},
                  .origin = -1};
    vec_push(t->arena, &body->blocks, (LoopBlock){.result = -1});
    vec_push(t->arena, &body->block_number, 0);
    t->block = &body->blocks.at[0];
}

TVal t_call(Tracer *t, Fn f, Index idx, Index red) {
    return f.fn(t, f.ctx, idx, red);
}

// ---- constants

static Value wrap_int(int64_t v, DType dtype) {
    int bits = dtype_info[dtype].bytes * 8;
    if (bits < 64) {
        uint64_t mask = ((uint64_t)1 << bits) - 1;
        bool is_signed = dtype == DT_i8 || dtype == DT_i16 || dtype == DT_i32;
        uint64_t u = (uint64_t)v & mask;
        v = is_signed && u >> (bits - 1) ? (int64_t)(u | ~mask) : (int64_t)u;
    }
    return val_int(v);
}

// A Python scalar as the dtype's own kind: bool, int or float.
static Value normal_const(Value v, DType dtype) {
    double f = 0;
    switch (dtype_info[dtype].cls) {
    case DTC_BOOL:
        return val_bool(v.kind == VAL_bool ? v.b : v.kind == VAL_int ? v.i != 0 : v.f != 0);
    case DTC_INT:
        if (v.kind == VAL_bool)
            return val_int(v.b);
        if (v.kind == VAL_int)
            return wrap_int(v.i, dtype);
        return wrap_int(v.kind == VAL_float && fabs(v.f) < 9e18 ? (int64_t)v.f : 0, dtype);
    case DTC_FLOAT:
    case DTC_COMPLEX:
        return val_as_float(&v, &f) ? val_float(f) : v;
    case DTC_none:
        break;
    }
    return v;
}

static uint64_t value_hash(uint64_t h, Value v) {
    double f = 0;
    int64_t i = 0;
    h = hash_mix(h, (uint64_t)v.kind);
    if (v.kind == VAL_bool || v.kind == VAL_int)
        return hash_mix(h, v.kind == VAL_bool ? v.b : (uint64_t)v.i);
    if (val_as_int(&v, &i))
        return hash_mix(h, (uint64_t)i);
    if (val_as_float(&v, &f))
        memcpy(&i, &f, sizeof i);
    return hash_mix(h, (uint64_t)i);
}

// ---- counting

static TVal count_value(Tracer *t, uint64_t key, DType dtype, bool *fresh) {
    t->count->n_calls++;
    MapEntry *e = map_at_id(&t->cse, key);
    *fresh = e->i == 0;
    if (*fresh)
        e->i = ++t->count->n_ops;
    return (TVal){.id = (int)e->i, .dtype = dtype};
}

static uint64_t op_key(LoopOpKind kind, const TVal *args, int n) {
    uint64_t h = hash_mix(17, (uint64_t)kind);
    for (int i = 0; i < n; i++)
        h = hash_mix(h, (uint64_t)args[i].id);
    return h;
}

// ---- recording

static int push_op(Tracer *t, LoopOp op) {
    if (t->origin >= 0) {
        int *o = ARENA_NEW(t->arena, int);
        *o = t->origin;
        op.origins = o;
        op.n_origins = 1;
    }
    vec_push(t->arena, &t->block->ops, op);
    return t->block->ops.n - 1;
}

static int index_number(Tracer *t, const Expr *e) {
    MapEntry *at = map_at_id(&t->index_of, expr_id(e));
    if (!at->i) {
        vec_push(t->arena, &t->body->index, e);
        at->i = t->body->index.n;
    }
    return (int)at->i - 1;
}

static const Expr *simplify(Tracer *t, const Expr *e) {
    return sym_simplify_with_ranges(t->sym, e, t->body->vars, t->body->sizes, t->body->n_vars);
}

static LoopOp blank_op(LoopOpKind kind, DType dtype) {
    return (LoopOp){
        .kind = kind, .dtype = dtype, .index = -1, .index2 = -1, .arg = {-1, -1, -1, -1}};
}

// A symbolic value becomes an operation: where it is needed, each time anew.
static TVal materialize(Tracer *t, TVal v) {
    if (!t->recording || !v.symbolic)
        return v;
    LoopOp op = blank_op(LOOP_constant, v.dtype);
    int64_t k = 0;
    const Expr *e = v.expr ? simplify(t, v.expr) : NULL;
    if (e && !expr_int(e, &k)) {
        op.kind = LOOP_index_expr;
        op.index = index_number(t, e);
    } else {
        op.value = normal_const(e ? val_int(k) : v.k, v.dtype);
    }
    return (TVal){.id = push_op(t, op), .dtype = v.dtype};
}

TVal t_const(Tracer *t, Value v, DType dtype) {
    if (t->recording)
        return (TVal){.id = -1, .dtype = dtype, .symbolic = true, .k = normal_const(v, dtype)};
    bool fresh = false;
    uint64_t h = hash_mix(hash_mix(17, LOOP_constant), (uint64_t)dtype);
    return count_value(t, value_hash(h, v), dtype, &fresh);
}

TVal t_literal(Tracer *t, Value v, DType dtype) {
    if (!t->recording) // not counted; told apart by its value
        return (TVal){.id = -(int)(value_hash(17, v) % INT32_MAX), .dtype = dtype};
    LoopOp op = blank_op(LOOP_constant, dtype);
    op.value = v;
    op.literal = true;
    return (TVal){.id = push_op(t, op), .dtype = dtype};
}

TVal t_int(Tracer *t, int64_t v, DType dtype) {
    return t_const(t, val_int(v), dtype);
}

TVal t_float(Tracer *t, double v, DType dtype) {
    return t_const(t, val_float(v), dtype);
}

// In a type that a size may not fit it is an operation at once: expressions do not wrap.
static TVal symbolic(Tracer *t, const Expr *e, DType dtype) {
    int64_t k = 0;
    if (expr_int(e, &k))
        return t_const(t, val_int(k), dtype);
    TVal v = {.id = -1, .dtype = dtype, .symbolic = true, .expr = e};
    return dtype_is_int(dtype) && dtype_info[dtype].bytes < 4 ? materialize(t, v) : v;
}

TVal t_index(Tracer *t, const Expr *e, DType dtype) {
    if (t->recording)
        return symbolic(t, e, dtype);
    bool fresh = false;
    uint64_t h = hash_mix(hash_mix(17, LOOP_index_expr), (uint64_t)dtype);
    return count_value(t, hash_mix(h, expr_id(e)), dtype, &fresh);
}

static TVal converted(Tracer *t, LoopOpKind kind, TVal a, DType dtype, DType src) {
    LoopOp op = blank_op(kind, dtype);
    op.src_dtype = src;
    op.arg[0] = a.id;
    return (TVal){.id = push_op(t, op), .dtype = dtype};
}

static TVal count_converted(Tracer *t, LoopOpKind kind, TVal a, DType dtype) {
    bool fresh = false;
    return count_value(t, hash_mix(op_key(kind, &a, 1), (uint64_t)dtype), dtype, &fresh);
}

TVal t_cast(Tracer *t, TVal a, DType dtype, DType src) {
    if (!t->recording)
        return count_converted(t, LOOP_to_dtype, a, dtype);
    if (!a.symbolic)
        return converted(t, LOOP_to_dtype, a, dtype, src);
    if (a.expr && dtype == DT_b8)
        return t_op2(t, LOOP_ne, a, t_int(t, 0, a.dtype));
    if (a.expr)
        return symbolic(t, a.expr, dtype);
    a.dtype = dtype;
    a.k = normal_const(a.k, dtype);
    return a;
}

TVal t_bitcast(Tracer *t, TVal a, DType dtype, DType src) {
    if (!t->recording)
        return count_converted(t, LOOP_to_dtype_bitcast, a, dtype);
    return converted(t, LOOP_to_dtype_bitcast, materialize(t, a), dtype, src);
}

static DType result_dtype(LoopOpKind kind, const TVal *a, int n) {
    LoopClass cls = loop_op_info[kind].cls;
    if (cls == LC_COMPARE || cls == LC_LOGIC)
        return DT_b8;
    if (cls == LC_SELECT)
        return dtype_promote(a[1].dtype, a[2].dtype);
    if (cls == LC_RANDOM)
        return kind == LOOP_randint64 ? DT_i64 : DT_f32;
    DType d = a[0].dtype;
    for (int i = 1; i < n; i++)
        d = dtype_promote(d, a[i].dtype);
    bool to_float = cls == LC_MATH || kind == LOOP_truediv || kind == LOOP_reciprocal;
    return to_float && !dtype_is_float(d) && dtype_info[d].cls != DTC_COMPLEX ? DT_f32 : d;
}

// ---- arithmetic on symbolic values, where an integer expression or a constant comes out

static bool fold_float(LoopOpKind kind, double a, double b, double *out) {
    switch ((int)kind) {
    case LOOP_add:
        *out = a + b;
        return true;
    case LOOP_sub:
        *out = a - b;
        return true;
    case LOOP_mul:
        *out = a * b;
        return true;
    case LOOP_minimum:
        *out = a < b ? a : b;
        return !isnan(a) && !isnan(b);
    case LOOP_maximum:
        *out = a > b ? a : b;
        return !isnan(a) && !isnan(b);
    default:
        return false;
    }
}

static int64_t floor_mod(int64_t a, int64_t b) {
    int64_t r = a % b;
    return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}

static bool fold_int(LoopOpKind kind, int64_t a, int64_t b, int64_t *out) {
    switch ((int)kind) {
    case LOOP_add:
        return !__builtin_add_overflow(a, b, out);
    case LOOP_sub:
        return !__builtin_sub_overflow(a, b, out);
    case LOOP_mul:
        return !__builtin_mul_overflow(a, b, out);
    case LOOP_minimum:
        *out = a < b ? a : b;
        return true;
    case LOOP_maximum:
        *out = a > b ? a : b;
        return true;
    case LOOP_floordiv:
        *out = b != 0 && b != -1 ? a / b - (floor_mod(a, b) != a % b) : 0;
        return b != 0 && b != -1;
    case LOOP_remainder:
        *out = b != 0 && b != -1 ? floor_mod(a, b) : 0;
        return b != 0;
    default:
        return false;
    }
}

static bool fold_exprs(Sym *s, LoopOpKind kind, const Expr *a, const Expr *b, const Expr **out) {
    switch ((int)kind) {
    case LOOP_add:
        *out = sym_add(s, a, b);
        return true;
    case LOOP_sub:
        *out = sym_sub(s, a, b);
        return true;
    case LOOP_mul:
        *out = sym_mul(s, a, b);
        return true;
    case LOOP_minimum:
        *out = sym_min(s, a, b);
        return true;
    case LOOP_maximum:
        *out = sym_max(s, a, b);
        return true;
    case LOOP_floordiv:
        *out = sym_floordiv(s, a, b);
        return true;
    case LOOP_mod: // of C: a negative number leaves a negative one
        if (sym_range(s, a).lo < 0 || sym_range(s, b).lo <= 0)
            return false;
        *out = sym_modular(s, a, sym_int(s, 1), b);
        return true;
    case LOOP_remainder:
        if (sym_range(s, a).lo >= 0 && sym_range(s, b).lo > 0)
            *out = sym_modular(s, a, sym_int(s, 1), b);
        else
            *out = sym_mod(s, a, b);
        return true;
    default:
        return false;
    }
}

static const Expr *as_expr(Tracer *t, TVal v) {
    if (v.expr)
        return v.expr;
    if (v.k.kind == VAL_int)
        return sym_int(t->sym, v.k.i);
    return v.k.kind == VAL_bool ? sym_int(t->sym, v.k.b) : NULL;
}

static bool propagate2(Tracer *t, LoopOpKind kind, TVal a, TVal b, TVal *out) {
    DType d = dtype_promote(a.dtype, b.dtype);
    if ((kind == LOOP_floordiv || kind == LOOP_mod || kind == LOOP_remainder) && !dtype_is_int(d))
        return false;
    if (!a.expr && !b.expr) {
        double fa = 0, fb = 0, f = 0;
        int64_t i = 0;
        if (a.k.kind == VAL_float || b.k.kind == VAL_float) {
            if (!val_as_float(&a.k, &fa) || !val_as_float(&b.k, &fb) ||
                !fold_float(kind, fa, fb, &f))
                return false;
            *out = t_const(t, val_float(f), d);
            return true;
        }
        int64_t ia = a.k.kind == VAL_bool ? a.k.b : a.k.i,
                ib = b.k.kind == VAL_bool ? b.k.b : b.k.i;
        if (!fold_int(kind, ia, ib, &i))
            return false;
        *out = t_const(t, val_int(i), d);
        return true;
    }
    // An expression plus 0.0 is the expression itself, of the wider type.
    bool zero = b.k.kind == VAL_float && b.k.f == 0;
    if (a.expr && !b.expr && zero && (kind == LOOP_add || kind == LOOP_sub)) {
        *out = symbolic(t, a.expr, d);
        return true;
    }
    const Expr *ea = as_expr(t, a), *eb = as_expr(t, b), *e = NULL;
    if (!ea || !eb || !fold_exprs(t->sym, kind, ea, eb, &e))
        return false;
    *out = symbolic(t, e, d);
    return true;
}

// Wraps, as the op does.
static int64_t negated(int64_t v) {
    return (int64_t)(0 - (uint64_t)v);
}

static bool propagate1(Tracer *t, LoopOpKind kind, TVal a, TVal *out) {
    if (kind == LOOP_identity) {
        *out = a;
        return true;
    }
    int64_t i = a.k.kind == VAL_bool ? a.k.b : a.k.i;
    bool real = a.k.kind == VAL_float;
    if (kind == LOOP_neg) {
        *out = a.expr ? symbolic(t, sym_neg(t->sym, a.expr), a.dtype)
                      : t_const(t, real ? val_float(-a.k.f) : val_int(negated(i)), a.dtype);
        return true;
    }
    if (kind == LOOP_abs) {
        *out = a.expr ? symbolic(t, sym_abs(t->sym, a.expr), a.dtype)
                      : t_const(t, real ? val_float(fabs(a.k.f)) : val_int(i < 0 ? negated(i) : i),
                                a.dtype);
        return true;
    }
    if (kind == LOOP_square)
        return propagate2(t, LOOP_mul, a, a, out);
    return false;
}

TVal t_op(Tracer *t, LoopOpKind kind, const TVal *args) {
    int n = loop_op_info[kind].n_args;
    DType dtype = result_dtype(kind, args, n);
    if (!t->recording) {
        bool fresh = false;
        t->count->heavy |= kind == LOOP_exp || kind == LOOP_sigmoid;
        return count_value(t, op_key(kind, args, n), dtype, &fresh);
    }
    TVal out;
    if (n == 1 && args[0].symbolic && propagate1(t, kind, args[0], &out))
        return out;
    if (n == 2 && args[0].symbolic && args[1].symbolic &&
        propagate2(t, kind, args[0], args[1], &out))
        return out;
    LoopOp op = blank_op(kind, dtype);
    for (int i = 0; i < n; i++)
        op.arg[i] = materialize(t, args[i]).id;
    return (TVal){.id = push_op(t, op), .dtype = dtype};
}

TVal t_op1(Tracer *t, LoopOpKind kind, TVal a) {
    return t_op(t, kind, &a);
}

TVal t_op2(Tracer *t, LoopOpKind kind, TVal a, TVal b) {
    return t_op(t, kind, (TVal[]){a, b});
}

TVal t_op3(Tracer *t, LoopOpKind kind, TVal a, TVal b, TVal c) {
    return t_op(t, kind, (TVal[]){a, b, c});
}

// ---- memory

TVal t_load(Tracer *t, const char *buf, DType dtype, const Expr *index) {
    if (t->recording) {
        LoopOp op = blank_op(LOOP_load, dtype);
        op.buf = buf;
        op.index = index_number(t, simplify(t, index));
        return (TVal){.id = push_op(t, op), .dtype = dtype};
    }
    bool fresh = false;
    uint64_t h = hash_mix(hash_mix(17, LOOP_load), hash_text(buf));
    TVal v = count_value(t, hash_mix(h, expr_id(index)), dtype, &fresh);
    if (fresh) {
        int64_t k = 0;
        vec_push(t->arena, &t->count->reads, (TRead){buf, index});
        t->count->n_nontrivial += !expr_int(index, &k);
    }
    return v;
}

TVal t_load_seed(Tracer *t, const char *buf, int offset) {
    if (t->recording) {
        LoopOp op = blank_op(LOOP_load_seed, DT_i64);
        op.buf = buf;
        op.number = offset;
        index_number(t, sym_int(t->sym, offset)); // takes a number, though no get_index
        return (TVal){.id = push_op(t, op), .dtype = DT_i64};
    }
    bool fresh = false;
    uint64_t h = hash_mix(hash_mix(17, LOOP_load_seed), hash_text(buf));
    TVal v = count_value(t, hash_mix(h, (uint64_t)offset), DT_i64, &fresh);
    if (fresh)
        vec_push(t->arena, &t->count->reads, (TRead){buf, sym_int(t->sym, offset)});
    return v;
}

void t_store(Tracer *t, const char *buf, const Expr *index, TVal v, const char *mode) {
    assert(t->recording);
    v = materialize(t, v);
    LoopOp op = blank_op(LOOP_store, v.dtype);
    op.buf = buf;
    op.mode = mode;
    op.arg[0] = v.id;
    op.index = index_number(t, simplify(t, index));
    t->block->result = push_op(t, op);
}

void t_reduce_store(Tracer *t, const char *buf, const Expr *index, DType dst, DType src,
                    const char *type, int output, TVal v) {
    assert(t->recording);
    LoopOp op = blank_op(LOOP_reduction, dst);
    op.src_dtype = src;
    op.mode = type;
    op.arg[0] = materialize(t, v).id;
    int id = push_op(t, op);
    bool several = !strcmp(type, "welford_reduce");
    int first = -1;
    for (int i = 0; several && i < 3; i++) {
        LoopOp item = blank_op(LOOP_getitem, dst);
        item.arg[0] = id;
        item.number = i;
        int at = push_op(t, item);
        first = i == output ? at : first;
    }
    LoopOp store = blank_op(LOOP_store_reduction, dst);
    store.buf = buf;
    store.arg[0] = several ? first : id;
    store.index = index_number(t, simplify(t, index));
    int at = push_op(t, store);
    t->block->result = several ? at : -1;
}

// ---- blocks and indirect indexes

TVal t_masked(Tracer *t, TVal mask, Fn body, Index idx, Value other, DType dtype) {
    if (!t->recording) {
        bool fresh = false;
        TVal v[2] = {mask, t_call(t, body, idx, NULL)};
        return count_value(t, value_hash(op_key(LOOP_masked, v, 2), other), dtype, &fresh);
    }
    mask = materialize(t, mask);
    int number = t->n_submodules++;
    LoopBlock *outer = t->block, inner = {.result = -1};
    bool root = outer == &t->body->blocks.at[0]; // which moves when blocks are added
    t->block = &inner;
    TVal v = materialize(t, t_call(t, body, idx, NULL));
    inner.result = v.id;
    t->block = outer;
    vec_push(t->arena, &t->body->blocks, inner);
    vec_push(t->arena, &t->body->block_number, number);
    if (root)
        t->block = &t->body->blocks.at[0];
    LoopOp op = blank_op(LOOP_masked, v.dtype);
    op.arg[0] = mask.id;
    op.number = t->body->blocks.n - 1;
    op.value = other;
    return (TVal){.id = push_op(t, op), .dtype = v.dtype};
}

static const Expr *wrap_negative(Sym *s, const Expr *e, const Expr *size, SymRange r) {
    if (r.lo >= 0)
        return e;
    const Expr *shifted = sym_add(s, e, size);
    if (r.hi < 0)
        return shifted;
    return sym_where(s, sym_cmp(s, SYM_lt, e, sym_int(s, 0)), shifted, e);
}

// An index known as an expression is used as it is, with its bounds checked at run time.
static const Expr *direct_index(Tracer *t, const Expr *e, const Expr *size, bool check, bool wrap) {
    LoopBody *b = t->body;
    int n = b->n_vars + b->indirect.n;
    const Expr **vars = ARENA_ARRAY(&t->l->tmp, n, const Expr *);
    SymRange *ranges = ARENA_ARRAY(&t->l->tmp, n, SymRange);
    for (int i = 0; i < n; i++) {
        const Expr *s = i < b->n_vars ? b->sizes[i] : b->indirect_size.at[i - b->n_vars];
        SymRange r = sym_range(t->sym, s);
        vars[i] = i < b->n_vars ? b->vars[i] : b->indirect.at[i - b->n_vars];
        ranges[i] = (SymRange){0, r.hi == SYM_POS_INF ? r.hi : r.hi - 1};
    }
    SymRange r = sym_range_with(t->sym, e, vars, ranges, n);
    SymRange rs = sym_range(t->sym, size);
    SymRange gap = sym_range_with(t->sym, sym_sub(t->sym, size, e), vars, ranges, n);
    bool lower_ok = r.lo >= 0 || (rs.lo != SYM_NEG_INF && r.lo != SYM_NEG_INF && r.lo >= -rs.lo);
    bool upper_ok = gap.lo > 0;
    if (wrap)
        e = wrap_negative(t->sym, e, size, r);
    if (!check)
        return e;
    LoopOp op = blank_op(LOOP_check_bounds, DT_b8);
    op.index = index_number(t, simplify(t, e));
    op.index2 = index_number(t, size);
    op.lower = !lower_ok;
    op.upper = !upper_ok;
    push_op(t, op);
    return e;
}

const Expr *t_indirect(Tracer *t, TVal v, const Expr *size, bool check, bool wrap) {
    if (!t->recording) {
        return sym_symbol(t->sym, arena_printf(t->arena, "tmp%d", v.id));
    }
    const Expr *e = v.symbolic ? as_expr(t, v) : NULL;
    if (e)
        return direct_index(t, e, size, check, wrap);
    LoopBody *body = t->body;
    int k = body->indirect.n;
    const Expr *var = sym_symbol(t->sym, arena_printf(t->arena, "indirect%d", k));
    vec_push(t->arena, &body->indirect, var);
    vec_push(t->arena, &body->indirect_size, size);
    vec_push(t->arena, &body->indirect_wrap, wrap);
    LoopOp op = blank_op(LOOP_set_indirect, DT_i64);
    op.arg[0] = materialize(t, v).id;
    op.number = k;
    push_op(t, op);
    t->n_submodules++;
    return var;
}
