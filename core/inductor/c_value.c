// c_value.c: one operation of the loop IR to one C statement. Equal computations are made once in a
// scope; a load of what was just stored takes the stored value.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/eager/eager.h"
#include "core/inductor/cgen.h"
#include "core/record/fault.h"

CVal *scope_find(Scope *s, const char *key) {
    return map_get(&s->values, key);
}

void scope_put(Scope *s, Arena *a, const char *key, CVal v) {
    CVal *kept = ARENA_NEW(a, CVal);
    *kept = v;
    map_put(&s->values, key, kept);
    vec_push(a, &s->order, key);
}

void scope_rewind(Scope *s, int n) {
    while (s->order.n > n)
        map_remove(&s->values, vec_pop(&s->order));
}

static const char *symbol_text(void *ctx, const Expr *symbol) {
    Emit *e = ctx;
    for (int i = 0; i < e->body->indirect.n; i++)
        if (symbol == e->body->indirect.at[i])
            return e->indirect[i].text ? e->indirect[i].text : "0";
    for (int i = 0; i < e->body->n_vars; i++)
        if (symbol == e->vars[i])
            return expr_name(symbol);
    return kernel_size(e->k, symbol);
}

const Expr *emit_index_of(Emit *e, int index) {
    return sym_subst(e->k->g->sym, e->body->index.at[index], e->body->vars, e->vars,
                     e->body->n_vars);
}

const char *emit_expr(Emit *e, const Expr *x) {
    return c_expr(e->k->g, x, symbol_text, e);
}

const char *emit_index(Emit *e, int index) {
    return emit_expr(e, emit_index_of(e, index));
}

uint64_t emit_vars(Emit *e, int index) {
    const Expr *x = e->body->index.at[index];
    uint64_t vars = 0;
    for (int i = 0; i < e->body->n_vars; i++)
        if (expr_has(x, e->body->vars[i]))
            vars |= UINT64_C(1) << i;
    for (int i = 0; i < e->body->indirect.n; i++)
        if (expr_has(x, e->body->indirect.at[i]))
            vars |= e->indirect[i].vars;
    return vars;
}

// A variable for an expression, or the one that holds it already.
static CVal define(Emit *e, const LoopOp *op, DType d, const char *expr, uint64_t vars) {
    Arena *a = e->k->g->arena;
    const char *key = arena_printf(a, "%s %s", c_value_type(d), expr);
    CVal *known = scope_find(e->scope, key);
    if (known)
        return (CVal){known->text, d, known->vars};
    CVal v = {arena_printf(a, "tmp%d", e->k->n_tmp++), d, vars};
    c_line(emit_to(e, vars), op, e->position, "const %s %s = %s;", c_value_type(d), v.text, expr);
    scope_put(e->scope, a, key, v);
    return v;
}

// `exp_T` is expf or exp; `fx_relu_T` is fx_relu_f32 …
static void put_helper(Buf *out, const char *name, size_t len, DType d) {
    buf_add(out, name, len);
    if (!strncmp(name, "fx_", 3))
        buf_printf(out, "_%s", c_suffix(d));
    else if (d != DT_f64)
        buf_putc(out, 'f');
}

static bool is_word(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

// An op's C template with arguments, T their type and R the result's.
static const char *expand(Arena *a, const char *template, const CVal *arg, DType in,
                          DType out_type) {
    Buf out = {.arena = a};
    for (const char *s = template; *s;) {
        const char *end = s;
        while (is_word(*end))
            end++;
        size_t len = (size_t)(end - s);
        if (*s == '$') {
            buf_puts(&out, arg[s[1] - '0'].text);
            s += 2;
        } else if (!len) {
            buf_putc(&out, *s++);
        } else {
            if (len > 2 && !strncmp(end - 2, "_T", 2))
                put_helper(&out, s, len - 2, in);
            else if (len == 1 && *s == 'R')
                buf_puts(&out, c_value_type(out_type));
            else
                buf_add(&out, s, len);
            s = end;
        }
    }
    return buf_str(&out);
}

// Signed overflow wraps, as it does in PyTorch; C has that only for unsigned numbers.
static const char *wrap(Arena *a, LoopOpKind kind, const CVal *arg, DType d, const char *plain) {
    static const char *const sign[LOOP_n_kinds] = {
        [LOOP_add] = "+", [LOOP_sub] = "-", [LOOP_mul] = "*", [LOOP_square] = "*"};
    bool wide = d == DT_i32 || d == DT_i64;
    const char *u = d == DT_i64 ? "uint64_t" : "uint32_t";
    if (d == DT_b8)
        return kind == LOOP_bitwise_not ? arena_printf(a, "!%s", arg[0].text)
                                        : arena_printf(a, "(%s) != 0", plain);
    if (wide && sign[kind])
        return arena_printf(a, "(%s)((%s)%s %s (%s)%s)", c_type(d), u, arg[0].text, sign[kind], u,
                            arg[kind == LOOP_square ? 0 : 1].text);
    if (wide && kind == LOOP_neg)
        return arena_printf(a, "(%s)(0 - (%s)%s)", c_type(d), u, arg[0].text);
    return dtype_is_int(d) ? arena_printf(a, "(%s)(%s)", c_type(d), plain) : plain;
}

static DType result_type(const LoopOp *op, DType in) {
    switch (loop_op_info[op->kind].cls) {
    case LC_COMPARE:
    case LC_LOGIC:
        return DT_b8;
    case LC_ROUND:
        return op->dtype != DT_none && dtype_is_int(op->dtype) ? op->dtype : in;
    default:
        return in;
    }
}

// The type that arguments are brought to: what they promote to; functions of real numbers want
// floats.
static DType common_type(const LoopOp *op, const CVal *arg) {
    const LoopOpInfo *info = &loop_op_info[op->kind];
    int first = op->kind == LOOP_where;
    DType in = info->n_args > first ? arg[first].dtype : DT_f32;
    for (int i = first + 1; i < info->n_args; i++)
        in = dtype_promote(in, arg[i].dtype);
    bool real = info->cls == LC_MATH || op->kind == LOOP_reciprocal;
    return real && !dtype_is_float(in) ? DT_f32 : in;
}

static const char *special_form(Emit *e, const LoopOpInfo *info, DType in) {
    e->k->g->calls_special = true;
    return arena_printf(e->k->g->arena, "fx_special_T(%d /* %s */, $0, %s)",
                        eager_special(info->name, in != DT_f64), info->name,
                        info->n_args > 1 ? "$1" : "0");
}

static CVal emit_plain(Emit *e, const LoopOp *op, const CVal *arg) {
    Arena *a = e->k->g->arena;
    const LoopOpInfo *info = &loop_op_info[op->kind];
    DType in = common_type(op, arg), d = result_type(op, in);
    uint64_t vars = 0;
    for (int i = 0; i < info->n_args; i++)
        vars |= arg[i].vars;
    const char *form = info->c_expr[0] == '@' ? special_form(e, info, in) : info->c_expr;
    const char *text = expand(a, form, arg, in, d);
    if (info->cls != LC_COMPARE && info->cls != LC_LOGIC && info->cls != LC_SELECT)
        text = wrap(a, op->kind, arg, d, text);
    return define(e, op, d, text, vars);
}

static const char *convert(Arena *a, const char *v, DType from, DType to) {
    if (to == DT_b8)
        return arena_printf(a, "%s != 0", v);
    if (dtype_is_low(to))
        return from == to ? v : arena_printf(a, "fx_round_%s((float)%s)", dtype_info[to].abbr, v);
    if (dtype_is_float(to))
        return from == to || (to == DT_f32 && dtype_is_low(from))
                   ? v
                   : arena_printf(a, "(%s)%s", c_type(to), v);
    // Narrow integers of a float go through 64 bits, so that what is out of range wraps.
    bool narrow = dtype_info[to].bytes < 4 && dtype_is_float(from);
    return arena_printf(a, narrow ? "(%s)(int64_t)%s" : "(%s)%s", c_type(to), v);
}

// Low floats are float in registers; integers of one width are cast.
static const char *bits_text(Arena *a, DType from, DType to, const char *v) {
    if (!dtype_is_float(from) && !dtype_is_float(to))
        return arena_printf(a, "(%s)%s", c_type(to), v);
    if (dtype_is_low(from))
        v = arena_printf(a, "fx_f32_to_%s(%s)", dtype_info[from].abbr, v);
    if (dtype_is_low(to))
        return arena_printf(a, "fx_%s_to_f32((fx_%s)%s)", dtype_info[to].abbr, dtype_info[to].abbr,
                            v);
    if (dtype_is_low(from))
        return arena_printf(a, "(%s)%s", c_type(to), v);
    return arena_printf(a, "fx_bits_%s_%s(%s)", c_suffix(from), c_suffix(to), v);
}

static CVal emit_cast(Emit *e, const LoopOp *op, const CVal *arg) {
    Arena *a = e->k->g->arena;
    if (op->kind == LOOP_to_dtype_bitcast) {
        const char *text = bits_text(a, arg->dtype, op->dtype, arg->text);
        return define(e, op, op->dtype, text, arg->vars);
    }
    CVal from = *arg;
    if (dtype_is_int(op->dtype) && dtype_is_float(from.dtype) &&
        fault(e->k->g->r->decisions, FAULT_cast_rounds, e->member->name))
        from.text = arena_printf(a, "rint((double)%s)", from.text);
    if (op->dtype == DT_bf16 && from.dtype == DT_f32 &&
        fault(e->k->g->r->decisions, FAULT_bf16_rounding_lost, e->member->name))
        from.text = arena_printf(a, "fx_bits_i32_f32(fx_bits_f32_i32(%s) & ~0xffff)", from.text);
    const char *text = convert(a, from.text, from.dtype, op->dtype);
    return text == arg->text ? (CVal){text, op->dtype, arg->vars}
                             : define(e, op, op->dtype, text, arg->vars);
}

static CVal emit_index_expr(Emit *e, const LoopOp *op) {
    const char *text = emit_index(e, op->index);
    text = arena_printf(e->k->g->arena, "(%s)(%s)", c_value_type(op->dtype), text);
    return define(e, op, op->dtype, text, emit_vars(e, op->index));
}

// The size that an indirect index goes into; NULL if the body does not tell (a dump's text).
static const char *indirect_size(Emit *e, int number) {
    const LoopBody *b = e->body;
    return number < b->indirect_size.n && b->indirect_size.at[number]
               ? c_size(e, b->indirect_size.at[number])
               : NULL;
}

// An index out of bounds is told after the kernel: nothing can leave a parallel loop. It reads
// element 0.
static void emit_check(Emit *e, const LoopOp *op, CVal index, const char *size, bool lower,
                       bool upper) {
    Arena *a = e->k->g->arena;
    const char *i = index.text, *test = arena_printf(a, "%s < 0", i);
    if (upper)
        test = lower ? arena_printf(a, "(uint64_t)%s >= (uint64_t)(%s)", i, size)
                     : arena_printf(a, "%s >= (%s)", i, size);
    c_line(emit_to(e, index.vars), op, e->position,
           "if (FX_UNLIKELY(%s)) { fx_oob = \"index out of bounds: 0 <= index < %s\"; %s = 0; }",
           test, size, i);
}

static CVal emit_indirect(Emit *e, const LoopOp *op, const CVal *arg) {
    Arena *a = e->k->g->arena;
    int number = op->number >= 0 && op->number < e->body->indirect.n ? op->number : 0;
    const char *size = indirect_size(e, number), *t = arg->text;
    bool wraps = size && number < e->body->indirect_wrap.n && e->body->indirect_wrap.at[number];
    const char *key = arena_printf(a, "indirect %s %s %d", t, size ? size : "", wraps);
    CVal *known = scope_find(e->scope, key);
    CVal v = known ? *known : (CVal){arena_printf(a, "tmp%d", e->k->n_tmp++), DT_i64, arg->vars};
    if (!known) {
        const char *text = wraps ? arena_printf(a, "%s < 0 ? %s + (%s) : %s", t, t, size, t) : t;
        c_line(emit_to(e, v.vars), op, e->position, "int64_t %s = %s;", v.text, text);
        if (size)
            emit_check(e, op, v, size, true, true);
        scope_put(e->scope, a, key, v);
    }
    e->indirect[number] = v;
    return v;
}

static void emit_check_bounds(Emit *e, const LoopOp *op) {
    CVal v = {arena_printf(e->k->g->arena, "tmp%d", e->k->n_tmp++), DT_i64,
              emit_vars(e, op->index)};
    c_line(emit_to(e, v.vars), op, e->position, "int64_t %s = %s;", v.text,
           emit_index(e, op->index));
    emit_check(e, op, v, emit_index(e, op->index2), op->lower, op->upper);
}

static CVal emit_masked(Emit *e, const LoopOp *op, const CVal *arg) {
    Arena *a = e->k->g->arena;
    const LoopBlock *block = &e->body->blocks.at[op->number];
    DType d = op->dtype;
    if (d == DT_none)
        d = block->result >= 0 ? block->ops.at[block->result].dtype : DT_f32;
    // The block's value tells the type; its text is made first, into a piece of its own.
    CText inner = {.arena = a, .indent = 1, .buf.arena = a}, *out = emit_to(e, ALL_VARS);
    Emit sub = *e;
    sub.out = &inner;
    sub.pinned = true;
    int mark = e->scope->order.n;
    CVal v = {"0", d, 0};
    emit_block(&sub, op->number, &v);
    scope_rewind(e->scope, mark);
    CVal r = {arena_printf(a, "tmp%d", e->k->n_tmp++), v.dtype, ALL_VARS};
    c_line(out, op, e->position, "%s %s = %s;", c_value_type(r.dtype), r.text,
           c_constant(a, &op->value, r.dtype));
    c_line(out, op, e->position, "if (%s) {", arg->text);
    c_line(&inner, op, e->position, "%s = %s;", r.text, v.text);
    c_append(out, &inner);
    c_line(out, op, e->position, "}");
    return r;
}

static CVal emit_seed(Emit *e, const LoopOp *op) {
    const char *ptr = kernel_ptr(e->k, op->buf, false);
    return define(e, op, DT_i64, arena_printf(e->k->g->arena, "%s[%d]", ptr, op->number), 0);
}

static CVal emit_item(Emit *e, const LoopOp *op, const CVal *arg) {
    static const char *const part[] = {"_mean", "_m2", "_weight"};
    return (CVal){arena_printf(e->k->g->arena, "%s%s", arg->text, part[op->number % 3]), arg->dtype,
                  ALL_VARS};
}

static CVal emit_random(Emit *e, const LoopOp *op, const CVal *arg) {
    DType d = op->kind == LOOP_randint64 ? DT_i64 : DT_f32;
    uint64_t vars = 0;
    for (int i = 0; i < loop_op_info[op->kind].n_args; i++)
        vars |= arg[i].vars;
    return define(e, op, d, expand(e->k->g->arena, loop_op_info[op->kind].c_expr, arg, d, d), vars);
}

// The same as faults: 0 none, or what the setting would be.
static int injected_fault(const Emit *e, const LoopOp *op) {
    static const FaultId relu[] = {FAULT_relu_compile_error, FAULT_relu_runtime_error,
                                   FAULT_relu_accuracy};
    Decisions *d = e->k->g->r->decisions;
    for (int i = 0; i < COUNT(relu) && op->kind == LOOP_relu; i++)
        if (fault(d, relu[i], e->member->name))
            return i + 1;
    return op->kind == LOOP_log1p && fault(d, FAULT_log1p_accuracy, e->member->name) ? 3 : 0;
}

// PyTorch's own injected bugs (torch/_inductor/codegen/cpp.py, relu and log1p).
static CVal injected(Emit *e, const LoopOp *op, CVal v) {
    const InductorConfig *c = e->k->g->r->config;
    Arena *a = e->k->g->arena;
    int bug = op->kind == LOOP_relu    ? c->cpp_inject_relu_bug
              : op->kind == LOOP_log1p ? c->cpp_inject_log1p_bug * 3
                                       : 0;
    bug = bug ? bug : injected_fault(e, op);
    if (bug == 1)
        c_line(emit_to(e, v.vars), op, e->position, "compile error!;");
    if (bug == 2)
        c_line(emit_to(e, v.vars), op, e->position, "fx_oob = \"injected: relu throws\";");
    return bug == 3 ? define(e, op, v.dtype, arena_printf(a, "(%s + 1)", v.text), v.vars) : v;
}

static CVal emit_constant(Emit *e, const LoopOp *op) {
    Arena *a = e->k->g->arena;
    Value v = op->value;
    double brief = v.kind == VAL_float ? strtod(arena_printf(a, "%.3g", v.f), NULL) : 0;
    if (v.kind == VAL_float && fabs(brief - v.f) > 1e-4 * fabs(v.f) &&
        fault(e->k->g->r->decisions, FAULT_constant_rounded, e->member->name))
        v.f = brief;
    return (CVal){c_constant(a, &v, op->dtype), op->dtype, 0};
}

static CVal emit_op(Emit *e, const LoopOp *op, const CVal *arg) {
    switch (op->kind) {
    case LOOP_load:
        return nest_load(e, op, emit_index(e, op->index));
    case LOOP_store:
    case LOOP_store_reduction:
        nest_store(e, op, emit_index(e, op->index), arg[0]);
        return arg[0];
    case LOOP_reduction:
        return nest_reduce(e, op, arg[0]);
    case LOOP_constant:
        return emit_constant(e, op);
    case LOOP_index_expr:
        return emit_index_expr(e, op);
    case LOOP_to_dtype:
    case LOOP_to_dtype_bitcast:
        return emit_cast(e, op, arg);
    case LOOP_masked:
        return emit_masked(e, op, arg);
    case LOOP_set_indirect:
        return emit_indirect(e, op, arg);
    case LOOP_check_bounds:
        emit_check_bounds(e, op);
        return (CVal){"0", DT_i64, 0};
    case LOOP_getitem:
        return emit_item(e, op, arg);
    case LOOP_load_seed:
        return emit_seed(e, op);
    case LOOP_rand:
    case LOOP_randn:
    case LOOP_randint64:
        return emit_random(e, op, arg);
    case LOOP_scan:
    case LOOP_sort:
    case LOOP_bucketize:
        diag_fail(e->k->g->r->diag, "no C for ops.%s in %s", loop_op_info[op->kind].name,
                  e->member->name);
        return (CVal){"0", DT_f32, 0};
    default:
        return injected(e, op, emit_plain(e, op, arg));
    }
}

// What follows a reduction's result belongs behind the reduction loops.
static bool is_after_reduction(const LoopOp *op, const bool *after) {
    if (op->kind == LOOP_store_reduction)
        return true;
    for (int i = 0; i < loop_op_info[op->kind].n_args; i++)
        if (op->arg[i] >= 0 && after[op->arg[i]])
            return true;
    return false;
}

void emit_block(Emit *e, int block, CVal *result) {
    Arena *a = e->k->g->arena;
    const LoopBlock *b = &e->body->blocks.at[block];
    CVal *values = ARENA_ARRAY(a, b->ops.n + 1, CVal);
    bool *after = ARENA_ARRAY(a, b->ops.n + 1, bool);
    for (int i = 0; i < b->ops.n; i++) {
        const LoopOp *op = &b->ops.at[i];
        CVal arg[4] = {{0}};
        for (int k = 0; k < loop_op_info[op->kind].n_args; k++)
            arg[k] = op->arg[k] >= 0 ? values[op->arg[k]] : (CVal){"0", DT_f32, 0};
        after[i] = op->kind == LOOP_reduction || is_after_reduction(op, after);
        Emit behind = *e;
        bool moved = after[i] && op->kind != LOOP_reduction;
        if (moved && e->sink == SINK_body)
            nest_to_suffix(&behind);
        values[i] = emit_op(moved ? &behind : e, op, arg);
    }
    if (result && b->result >= 0)
        *result = values[b->result];
}
