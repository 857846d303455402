// c_nest.c: loop nests. The members of a nest share its loops; a reduction's members come first inside the reduction
// loops, what uses its result behind them. Where the last iteration variable walks memory and the reduction variable
// does not, a block of iterations is reduced at once ("lanes"), so that the inner loop runs along memory.
#include <string.h>

#include "core/inductor/cgen.h"

enum { LANES = 256, PARALLEL_WORK = 32768, MATH_WORK = 8 };

typedef enum AccKind { ACC_sum, ACC_prod, ACC_max, ACC_min, ACC_any, ACC_xor, ACC_argmax, ACC_argmin, ACC_welford, ACC_n } AccKind;
static const char *const acc_mode[ACC_n] = {"sum", "prod", "max", "min", "any", "xor_sum", "argmax", "argmin", "welford_reduce"};

typedef struct Acc {
    AccKind kind;
    DType src;              // type of what is reduced
    DType out;              // of the result
    const char *type;       // C type of the accumulator
    const char *name;       // acc0
    const LoopOp *op;
} Acc;

struct Nest {
    KernelGen *k;
    int position;           // in schedule->nodes
    const SchedNode **members;
    int n;
    int first;              // loops that are open already (outer-loop fusion)
    int n_iter, n_red;
    const Expr **sizes;     // (n_iter + n_red)
    const Expr **vars;      // (n_iter + n_red) symbols x0 …
    VEC(Acc) accs;
    bool lanes, serial, checked;
    CText body, suffix;
    Scope in, behind;       // scopes of body and suffix
    Map reductions;         // text of a reduction -> number in accs + 1
};

void nest_to_suffix(Emit *e) {
    e->out = &e->nest->suffix;
    e->scope = &e->nest->behind;
    e->sink = SINK_suffix;
}

// --- memory

static const char *local_name(Emit *e, const char *buf, const char **index) {
    KernelGen *k = e->k;
    Nest *n = e->nest;
    CLocal *l = map_get(&k->locals, buf);
    if (!l) {
        l = ARENA_NEW(k->g->arena, CLocal);
        l->name = arena_printf(k->g->arena, "local_buffer_data_%d", k->n_local++);
        l->dtype = kernel_dtype(k, buf);
        map_put(&k->locals, buf, l);
    }
    (void)n;
    (void)index;
    return l->name;
}

// The index of a local buffer: outer loops see one row of it at a time.
static const char *local_index(Emit *e, const LoopOp *op, int64_t *elems) {
    CGen *g = e->k->g;
    const Expr *vars[64];
    SymRange ranges[64];
    int n = e->body->n_vars < 64 ? e->body->n_vars : 64;
    for (int i = 0; i < n; i++) {
        vars[i] = i < e->nest->first ? sym_int(g->sym, 0) : e->vars[i];
        ranges[i] = (SymRange){0, sym_size_hint(g->sym, e->body->sizes[i], 4096) - 1};
    }
    const Expr *x = sym_subst(g->sym, e->body->index.at[op->index], e->body->vars, vars, n);
    SymRange r = sym_range_with(g->sym, x, e->vars, ranges, n);
    *elems = r.hi == SYM_POS_INF ? 0 : r.hi + 1;
    Emit at = *e;
    LoopBody one = *e->body;
    one.index.at = ARENA_ARRAY(g->arena, 1, const Expr *);
    one.index.at[0] = x;
    one.index.n = 1;
    one.vars = e->vars;
    at.body = &one;
    return emit_index(&at, 0);
}

static const char *place(Emit *e, const LoopOp *op, const char *index, bool write) {
    Arena *a = e->k->g->arena;
    if (kernel_has_memory(e->k, op->buf))
        return arena_printf(a, "%s[%s]", kernel_ptr(e->k, op->buf, write), index);
    int64_t elems;
    const char *local = local_name(e, op->buf, NULL), *at = local_index(e, op, &elems);
    CLocal *l = map_get(&e->k->locals, op->buf);
    if (l->elems < elems)
        l->elems = elems;
    return arena_printf(a, "%s[%s]", local, at);
}

static const char *memory_key(Emit *e, const char *buf, const char *index) {
    const char *ptr = kernel_has_memory(e->k, buf) ? kernel_ptr(e->k, buf, false) : buf;
    return arena_printf(e->k->g->arena, "%s[%s]", ptr, index);
}

// Within a nest without memory for a buffer, its value is known: no argument is made for it.
static const char *forward_key(Emit *e, const char *buf, const char *index) {
    return arena_printf(e->k->g->arena, "%s at %s", buf, index);
}

CVal nest_load(Emit *e, const LoopOp *op, const char *index) {
    Arena *a = e->k->g->arena;
    CVal *known = scope_find(e->scope, forward_key(e, op->buf, index));
    if (known)
        return *known;
    DType d = kernel_dtype(e->k, op->buf);
    const char *at = place(e, op, index, false), *key = memory_key(e, op->buf, index);
    known = scope_find(e->scope, key);
    if (known)
        return *known;
    CVal v = {arena_printf(a, "tmp%d", e->k->n_tmp++), d};
    const char *text = dtype_is_low(d) ? arena_printf(a, "fx_%s_to_f32(%s)", dtype_info[d].abbr, at) : at;
    c_line(e->out, op, e->position, "const %s %s = %s;", c_value_type(d), v.text, text);
    scope_put(e->scope, a, key, v);
    return v;
}

static const char *stored_text(Arena *a, CVal v, DType to) {
    if (to == DT_b8)
        return v.dtype == DT_b8 ? v.text : arena_printf(a, "%s != 0", v.text);
    if (dtype_is_low(to))
        return arena_printf(a, "fx_f32_to_%s(%s)", dtype_info[to].abbr, v.text);
    return v.dtype == to ? v.text : arena_printf(a, "(%s)%s", c_type(to), v.text);
}

static bool read_later(Emit *e, const char *buf) {
    const Nest *n = e->nest;
    return n->first > 0 || kernel_has_memory(e->k, buf);
}

void nest_store(Emit *e, const LoopOp *op, const char *index, CVal v) {
    Arena *a = e->k->g->arena;
    DType d = kernel_dtype(e->k, op->buf);
    if (op->mode) {
        e->nest->serial = true;
        const char *at = place(e, op, index, true);
        const char *old = dtype_is_low(d) ? arena_printf(a, "fx_%s_to_f32(%s)", dtype_info[d].abbr, at) : at;
        CVal sum = {arena_printf(a, "(%s + %s)", old, v.text), dtype_is_low(d) ? DT_f32 : d};
        c_line(e->out, op, e->position, "%s = %s;", at, stored_text(a, sum, d));
        return;
    }
    if (read_later(e, op->buf))
        c_line(e->out, op, e->position, "%s = %s;", place(e, op, index, true), stored_text(a, v, d));
    // What a reader gets is what memory would hold: of the stored type, rounded if that is a small float.
    CVal kept = {v.text, d};
    if (d != v.dtype && !(d == DT_f32 && dtype_is_low(v.dtype)))
        return;
    scope_put(e->scope, a, forward_key(e, op->buf, index), kept);
}

// --- accumulators

static AccKind acc_kind(const char *mode) {
    int i = str_index(mode, acc_mode, ACC_n);
    return i < 0 ? ACC_n : (AccKind)i;
}

static int64_t reduced_elems(const Nest *n) {
    int64_t total = 1;
    for (int i = n->n_iter; i < n->n_iter + n->n_red; i++)
        total *= sym_size_hint(n->k->g->sym, n->sizes[i], 4096);
    return total;
}

// Sums of many floats run in double, as do the moments; PyTorch takes cascades and Welford's recurrence there.
static const char *acc_type(const Nest *n, AccKind kind, DType src, DType out) {
    if (kind == ACC_welford)
        return "double";
    if (kind == ACC_sum && dtype_is_float(out) && reduced_elems(n) > 4096)
        return "double";
    return c_value_type(kind == ACC_argmax || kind == ACC_argmin ? src : out);
}

static const char *acc_at(const Nest *n, const char *name, const char *part) {
    return arena_printf(n->k->g->arena, n->lanes ? "%s%s[lane]" : "%s%s", name, part);
}

static const char *linear_index(Emit *e) {
    Buf b = {.arena = e->k->g->arena};
    Nest *n = e->nest;
    for (int i = n->n_iter; i < n->n_iter + n->n_red; i++) {
        const char *x = expr_name(n->vars[i]);
        if (i > n->n_iter) {
            Buf old = b;
            b = (Buf){.arena = e->k->g->arena};
            Emit at = *e;
            buf_printf(&b, "(%s) * (%s) + %s", buf_str(&old), c_size(&at, n->sizes[i]), x);
        } else {
            buf_puts(&b, x);
        }
    }
    return buf_str(&b);
}

static void accumulate(Emit *e, const Acc *acc, CVal v) {
    Nest *n = e->nest;
    const char *x = v.text, *s = acc_at(n, acc->name, "");
    CText *o = e->out;
    bool is_float = dtype_is_float(v.dtype);
    switch (acc->kind) {
    case ACC_sum:
        c_line(o, acc->op, e->position, "%s += %s;", s, x);
        break;
    case ACC_prod:
        c_line(o, acc->op, e->position, "%s *= %s;", s, x);
        break;
    case ACC_any:
        c_line(o, acc->op, e->position, "%s |= %s != 0;", s, x);
        break;
    case ACC_xor:
        c_line(o, acc->op, e->position, "%s ^= %s;", s, x);
        break;
    case ACC_max:
    case ACC_min:
        c_line(o, acc->op, e->position, "%s = %s %c %s ? %s : %s;", s, x, acc->kind == ACC_max ? '>' : '<', s, x, s);
        if (is_float)
            c_line(o, acc->op, e->position, "%s |= %s != %s;", acc_at(n, acc->name, "_nan"), x, x);
        break;
    case ACC_argmax:
    case ACC_argmin: {
        const char *i = acc_at(n, acc->name, "_index");
        const char sign = acc->kind == ACC_argmax ? '>' : '<';
        // The first NaN wins over all, else the first of the best.
        if (is_float)
            c_line(o, acc->op, e->position, "if (%s < 0 || ((%s %c %s || %s != %s) && %s == %s)) { %s = %s; %s = %s; }", i, x, sign, s,
                   x, x, s, s, s, x, i, linear_index(e));
        else
            c_line(o, acc->op, e->position, "if (%s < 0 || %s %c %s) { %s = %s; %s = %s; }", i, x, sign, s, s, x, i, linear_index(e));
        break;
    }
    case ACC_welford:
        c_line(o, acc->op, e->position, "%s += (double)%s;", s, x);
        c_line(o, acc->op, e->position, "%s += (double)%s * (double)%s;", acc_at(n, acc->name, "_sq"), x, x);
        break;
    case ACC_n:
        break;
    }
}

static const char *lowest(DType d, bool low) {
    switch (d) {
    case DT_i64: return low ? "(-9223372036854775807LL - 1)" : "9223372036854775807LL";
    case DT_i32: return low ? "(-2147483647 - 1)" : "2147483647";
    case DT_i16: return low ? "(-32768)" : "32767";
    case DT_i8: return low ? "(-128)" : "127";
    case DT_u8: return low ? "0" : "255";
    case DT_b8: return low ? "0" : "1";
    case DT_f64: return low ? "(-1.0 / 0.0)" : "(1.0 / 0.0)";
    default: return low ? "(-1.0f / 0.0f)" : "(1.0f / 0.0f)";
    }
}

static const char *acc_init(const Acc *acc) {
    switch (acc->kind) {
    case ACC_prod: return "1";
    case ACC_max: return lowest(acc->out, true);
    case ACC_min: return lowest(acc->out, false);
    default: return "0";
    }
}

// Parts of an accumulator beside the main one: name suffix, C type, first value.
static void each_part(const Acc *acc, void (*fn)(void *ctx, const char *part, const char *type, const char *init), void *ctx) {
    fn(ctx, "", acc->type, acc_init(acc));
    if ((acc->kind == ACC_max || acc->kind == ACC_min) && dtype_is_float(acc->src))
        fn(ctx, "_nan", "int", "0");
    if (acc->kind == ACC_argmax || acc->kind == ACC_argmin)
        fn(ctx, "_index", "int64_t", "-1");
    if (acc->kind == ACC_welford)
        fn(ctx, "_sq", "double", "0");
}

CVal nest_reduce(Emit *e, const LoopOp *op, CVal v, int id) {
    (void)id;
    Arena *a = e->k->g->arena;
    Nest *n = e->nest;
    AccKind kind = acc_kind(op->mode ? op->mode : "");
    if (kind == ACC_n) {
        diag_fail(e->k->g->r->diag, "no C for the reduction '%s' in %s", op->mode ? op->mode : "", e->member->name);
        return (CVal){"0", op->dtype};
    }
    const char *key = arena_printf(a, "%s %s %s", acc_mode[kind], dtype_info[op->dtype].abbr, v.text);
    MapEntry *known = map_at(&n->reductions, key);
    if (!known->i) {
        Acc acc = {.kind = kind, .src = v.dtype, .out = op->dtype, .type = acc_type(n, kind, v.dtype, op->dtype), .op = op};
        acc.name = arena_printf(a, "tmp_acc%d", e->k->n_acc++);
        vec_push(a, &n->accs, acc);
        known->i = n->accs.n;
        accumulate(e, &acc, v);
        return (CVal){arena_printf(a, "%s_out", acc.name), op->dtype};
    }
    return (CVal){arena_printf(a, "%s_out", n->accs.at[known->i - 1].name), op->dtype};
}

// --- loops

const char *c_size(Emit *e, const Expr *size) {
    LoopBody none = {0};
    Emit at = *e;
    at.body = &none;
    none.index.at = &size;
    none.index.n = 1;
    return emit_index(&at, 0);
}

static const char *nest_size(Nest *n, int i) {
    Emit e = {.k = n->k, .nest = n, .position = n->position};
    return c_size(&e, n->sizes[i]);
}

static void open_loop(Nest *n, CText *t, int i, const char *pragma) {
    const char *x = expr_name(n->vars[i]);
    if (*pragma)
        c_line(t, NULL, n->position, "%s", pragma);
    c_line(t, NULL, n->position, "for (int64_t %s = 0; %s < %s; %s++) {", x, x, nest_size(n, i), x);
    t->indent++;
}

static void close_loop(Nest *n, CText *t) {
    t->indent--;
    c_line(t, NULL, n->position, "}");
}

typedef struct Parts {
    Nest *n;
    const Acc *acc;
    CText *t;
    Buf *clause;
    const char *sign;
} Parts;

static void declare_part(void *ctx, const char *part, const char *type, const char *init) {
    Parts *p = ctx;
    if (!p->n->lanes) {
        c_line(p->t, p->acc->op, p->n->position, "%s %s%s = %s;", type, p->acc->name, part, init);
        return;
    }
    c_line(p->t, p->acc->op, p->n->position, "%s %s%s[%d];", type, p->acc->name, part, LANES);
    c_line(p->t, p->acc->op, p->n->position, "for (int64_t lane = 0; lane < lanes; lane++) %s%s[lane] = %s;", p->acc->name, part, init);
}

static void clause_part(void *ctx, const char *part, const char *type, const char *init) {
    (void)type;
    (void)init;
    static const char *const sign[ACC_n] = {"+", "*", "max", "min", "|", "^", "", "", "+"};
    Parts *p = ctx;
    const char *s = !strcmp(part, "_nan") ? "|" : sign[p->acc->kind];
    buf_printf(p->clause, " reduction(%s:%s%s)", s, p->acc->name, part);
}

static const char *reduction_clause(Nest *n) {
    Buf clause = {.arena = n->k->g->arena};
    for (int i = 0; i < n->accs.n; i++) {
        Parts p = {.n = n, .acc = &n->accs.at[i], .clause = &clause};
        each_part(&n->accs.at[i], clause_part, &p);
    }
    return buf_str(&clause);
}

static bool has_arg(const Nest *n) {
    for (int i = 0; i < n->accs.n; i++)
        if (n->accs.at[i].kind == ACC_argmax || n->accs.at[i].kind == ACC_argmin)
            return true;
    return false;
}

static const char *count_text(Nest *n) {
    Buf b = {.arena = n->k->g->arena};
    for (int i = n->n_iter; i < n->n_iter + n->n_red; i++)
        buf_printf(&b, "%s(double)(%s)", i > n->n_iter ? " * " : "", nest_size(n, i));
    return buf_str(&b);
}

// The results under the names that the suffix uses.
static void finish_acc(Nest *n, CText *t, const Acc *acc) {
    Arena *a = n->k->g->arena;
    const char *s = acc_at(n, acc->name, ""), *out = arena_printf(a, "%s_out", acc->name), *type = c_value_type(acc->out);
    const LoopOp *op = acc->op;
    switch (acc->kind) {
    case ACC_max:
    case ACC_min:
        if (dtype_is_float(acc->src)) {
            c_line(t, op, n->position, "const %s %s = %s ? (%s)(0.0f / 0.0f) : %s;", type, out, acc_at(n, acc->name, "_nan"), type, s);
            return;
        }
        break;
    case ACC_argmax:
    case ACC_argmin:
        c_line(t, op, n->position, "const %s %s = %s;", type, out, acc_at(n, acc->name, "_index"));
        return;
    case ACC_welford: {
        const char *sq = acc_at(n, acc->name, "_sq"), *count = count_text(n);
        // An infinity makes the mean NaN, as it does in Welford's recurrence.
        c_line(t, op, n->position, "const double %s_mean64 = %s / (%s) + (%s - %s);", out, s, count, s, s);
        c_line(t, op, n->position, "const double %s_m264 = %s - %s_mean64 * %s;", out, sq, out, s);
        c_line(t, op, n->position, "const %s %s_mean = (%s)%s_mean64;", type, out, type, out);
        c_line(t, op, n->position, "const %s %s_m2 = (%s)(%s_m264 < 0 ? 0 : %s_m264);", type, out, type, out, out);
        c_line(t, op, n->position, "const %s %s_weight = (%s)(%s);", type, out, type, count);
        return;
    }
    default:
        break;
    }
    c_line(t, op, n->position, "const %s %s = (%s)%s;", type, out, type, s);
}

static int64_t hint(const Nest *n, int i) {
    return sym_size_hint(n->k->g->sym, n->sizes[i], 4096);
}

static int64_t saturating(int64_t a, int64_t b) {
    int64_t r;
    return __builtin_mul_overflow(a, b, &r) ? INT64_MAX : r;
}

// Work of a nest in units of one cheap operation on one element.
static int64_t work_of(const Nest *n) {
    int64_t elems = 1, weight = 1;
    for (int i = 0; i < n->n_iter + n->n_red; i++)
        elems = saturating(elems, hint(n, i));
    for (int m = 0; m < n->n; m++)
        for (int i = 0; i < n->members[m]->body->blocks.at[0].ops.n; i++)
            if (loop_op_info[n->members[m]->body->blocks.at[0].ops.at[i].kind].cls == LC_MATH)
                weight = MATH_WORK;
    return saturating(elems, weight);
}

// How many of the nest's outer loops the threads share (0: one thread does it all).
static int parallel_depth(const Nest *n, int loops, int64_t work) {
    CGen *g = n->k->g;
    int threads = g->r->config->threads;
    int64_t floor_work = saturating(g->r->config->cpp_min_chunk_size, threads);
    bool worth = threads > 1 && work >= PARALLEL_WORK && work >= floor_work && !n->serial && loops > 0;
    Decide q = {.kind = DECIDE_parallel, .key = n->members[0]->name, .by_default = worth, .score = (double)work,
                .reason = n->serial ? "adds to memory in order" : "work against the cost of a parallel region"};
    if (!decide(g->r->decisions, &q) || n->serial || loops < 1 || threads < 2)
        return 0;
    int64_t share = 1;
    int depth = 0;
    while (depth < loops && share < 2 * threads)
        share = saturating(share, hint(n, depth++));
    return depth;
}

static const char *loop_pragma(const Nest *n, int depth, bool simd, const char *clause) {
    Arena *a = n->k->g->arena;
    const char *vector = simd ? " simd" : "";
    if (depth > 1)
        return arena_printf(a, "#pragma omp parallel for%s collapse(%d) schedule(static)%s", vector, depth, clause);
    if (depth == 1)
        return arena_printf(a, "#pragma omp parallel for%s schedule(static)%s", vector, clause);
    return simd ? arena_printf(a, "#pragma omp simd%s", clause) : "";
}

static void print_pointwise(Nest *n, CText *t) {
    int loops = n->n_iter;
    int depth = n->first ? 0 : parallel_depth(n, loops, work_of(n));
    bool simd = !n->serial && !n->checked;
    for (int i = n->first; i < loops; i++) {
        bool inner = i == loops - 1;
        const char *pragma = i == 0 && depth ? loop_pragma(n, depth, simd && depth == loops, "")
                             : inner && simd && depth < loops ? loop_pragma(n, 0, true, "") : "";
        open_loop(n, t, i, pragma);
    }
    c_append(t, &n->body);
    for (int i = n->first; i < loops; i++)
        close_loop(n, t);
}

static void print_reduction_loops(Nest *n, CText *t, int depth) {
    bool simd = !n->serial && !n->checked && !has_arg(n);
    const char *clause = simd ? reduction_clause(n) : "";
    int last = n->n_iter + n->n_red - 1;
    for (int i = n->n_iter; i <= last; i++) {
        const char *pragma = "";
        if (i == n->n_iter && depth)
            pragma = loop_pragma(n, 1, simd && i == last, clause);
        else if (i == last && simd)
            pragma = loop_pragma(n, 0, true, clause);
        open_loop(n, t, i, pragma);
    }
    c_append(t, &n->body);
    for (int i = n->n_iter; i <= last; i++)
        close_loop(n, t);
}

static void print_finish(Nest *n, CText *t) {
    for (int i = 0; i < n->accs.n; i++)
        finish_acc(n, t, &n->accs.at[i]);
    c_append(t, &n->suffix);
}

static void declare_accs(Nest *n, CText *t) {
    for (int i = 0; i < n->accs.n; i++) {
        Parts p = {.n = n, .acc = &n->accs.at[i], .t = t};
        each_part(&n->accs.at[i], declare_part, &p);
    }
}

static void print_reduction(Nest *n, CText *t) {
    int64_t outer = 1;
    for (int i = n->first; i < n->n_iter; i++)
        outer = saturating(outer, hint(n, i));
    int64_t work = work_of(n);
    int depth = n->first ? 0 : parallel_depth(n, n->n_iter + 1, work);
    // Few results of many elements each: the threads share the reduction.
    bool inside = depth && outer < n->k->g->r->config->threads && !has_arg(n) && !n->checked;
    if (depth > n->n_iter)
        depth = n->n_iter;
    for (int i = n->first; i < n->n_iter; i++)
        open_loop(n, t, i, i == 0 && depth && !inside ? loop_pragma(n, depth, false, "") : "");
    if (n->n_iter == n->first) {
        c_line(t, NULL, n->position, "{");
        t->indent++;
    }
    declare_accs(n, t);
    print_reduction_loops(n, t, inside ? 1 : 0);
    print_finish(n, t);
    for (int i = n->first; i < n->n_iter || i == n->first; i++)
        close_loop(n, t);
}

// Reduction of LANES iterations at once.
static void print_lanes(Nest *n, CText *t) {
    int last = n->n_iter - 1;
    const char *x = expr_name(n->vars[last]), *size = nest_size(n, last);
    int depth = n->first ? 0 : parallel_depth(n, n->n_iter, work_of(n));
    for (int i = n->first; i < last; i++)
        open_loop(n, t, i, i == 0 && depth ? loop_pragma(n, depth, false, "") : "");
    if (last == 0 && depth)
        c_line(t, NULL, n->position, "%s", loop_pragma(n, 1, false, ""));
    c_line(t, NULL, n->position, "for (int64_t %s_block = 0; %s_block < %s; %s_block += %d) {", x, x, size, x, LANES);
    t->indent++;
    c_line(t, NULL, n->position, "const int64_t lanes = %s - %s_block < %d ? %s - %s_block : %d;", size, x, LANES, size, x, LANES);
    declare_accs(n, t);
    for (int i = n->n_iter; i < n->n_iter + n->n_red; i++)
        open_loop(n, t, i, "");
    const char *vector = !n->serial && !n->checked ? "#pragma omp simd" : "";
    for (int part = 0; part < 2; part++) {
        if (*vector)
            c_line(t, NULL, n->position, "%s", vector);
        c_line(t, NULL, n->position, "for (int64_t lane = 0; lane < lanes; lane++) {");
        t->indent++;
        c_line(t, NULL, n->position, "const int64_t %s = %s_block + lane;", x, x);
        if (part)
            print_finish(n, t);
        else
            c_append(t, &n->body);
        close_loop(n, t);
        for (int i = 0; !part && i < n->n_red; i++)
            close_loop(n, t);
    }
    for (int i = n->first; i <= last; i++)
        close_loop(n, t);
}

// --- members

// Loads that walk memory one by one along a loop.
static int contiguous_loads(const Nest *n, int loop) {
    int count = 0;
    Sym *sym = n->k->g->sym;
    for (int m = 0; m < n->n; m++) {
        const LoopBody *b = n->members[m]->body;
        if (loop >= b->n_vars)
            continue;
        for (int k = 0; k < b->blocks.n; k++)
            for (int i = 0; i < b->blocks.at[k].ops.n; i++) {
                const LoopOp *op = &b->blocks.at[k].ops.at[i];
                if (op->kind == LOOP_load && expr_is(sym_stride_of(sym, b->index.at[op->index], b->vars[loop]), 1))
                    count++;
            }
    }
    return count;
}

static bool wants_lanes(const Nest *n) {
    if (!n->n_red || n->n_iter <= n->first || hint(n, n->n_iter - 1) < 8)
        return false;
    return contiguous_loads(n, n->n_iter - 1) > contiguous_loads(n, n->n_iter + n->n_red - 1);
}

static bool checks_bounds(const LoopBody *b) {
    if (b->indirect_size.n)
        return true;
    for (int k = 0; k < b->blocks.n; k++)
        for (int i = 0; i < b->blocks.at[k].ops.n; i++) {
            if (b->blocks.at[k].ops.at[i].kind == LOOP_check_bounds)
                return true;
        }
    return false;
}

static void emit_member(Nest *n, const SchedNode *m) {
    Emit e = {.k = n->k, .nest = n, .member = m, .position = n->position, .body = m->body};
    e.vars = n->vars;
    e.out = &n->body;
    e.scope = &n->in;
    e.indirect = ARENA_ARRAY(n->k->g->arena, m->body->indirect.n + 1, const char *);
    if (n->n_red && m->body->n_vars == n->n_iter)
        nest_to_suffix(&e);
    Buf note = {.arena = n->k->g->arena};
    kernel_note(n->k, m, &note);
    if (note.len)
        c_line(e.out, NULL, n->position, "// %s", buf_str(&note));
    emit_block(&e, 0, NULL);
}

static const Expr **loop_vars(KernelGen *k, int n) {
    const Expr **vars = ARENA_ARRAY(k->g->arena, n + 1, const Expr *);
    for (int i = 0; i < n; i++)
        vars[i] = sym_symbol(k->g->sym, arena_printf(k->g->arena, "x%d", i));
    return vars;
}

static void print_nest(KernelGen *k, const SchedNode **members, int n_members, int position, int first, CText *t) {
    Arena *a = k->g->arena;
    Nest n = {.k = k, .position = position, .members = members, .n = n_members, .first = first};
    n.body.arena = n.suffix.arena = n.body.buf.arena = n.suffix.buf.arena = a;
    n.in.values.arena = n.behind.values.arena = n.reductions.arena = a;
    const SchedNode *shape = members[0];    // the one with the most loops to reduce over
    for (int i = 1; i < n_members; i++)
        if (members[i]->n_red > shape->n_red || (members[i]->n_red == shape->n_red && members[i]->body->n_vars > shape->body->n_vars))
            shape = members[i];
    n.n_iter = shape->body->n_iter;
    n.n_red = shape->body->n_vars - shape->body->n_iter;
    n.sizes = shape->body->sizes;
    n.vars = loop_vars(k, n.n_iter + n.n_red);
    for (int i = 0; i < n_members; i++)
        n.checked |= checks_bounds(members[i]->body);
    n.lanes = wants_lanes(&n);
    for (int i = 0; i < n_members; i++)
        emit_member(&n, members[i]);
    if (!n.n_red)
        print_pointwise(&n, t);
    else if (n.lanes)
        print_lanes(&n, t);
    else
        print_reduction(&n, t);
}

static const SchedNode **singles(const SchedNode *node, int *n) {
    *n = node->snodes.n ? node->snodes.n : 1;
    return node->snodes.n ? (const SchedNode **)node->snodes.at : (const SchedNode **)&node->self;
}

// Nests whose loops differ below the shared names stand one after the other, each with loops of its own.
static bool print_split(KernelGen *k, const SchedNode *node, int position, CText *t) {
    const MemoryPlan *plan = k->g->r->plan;
    if (!plan || !map_find(&plan->split, node->name))
        return false;
    for (int i = 0; i < node->outer.n; i++) {
        int count;
        const SchedNode **part = singles(node->outer.at[i], &count);
        print_nest(k, part, count, position, 0, t);
    }
    return true;
}

static void print_outer(KernelGen *k, const SchedNode *node, int position, CText *t) {
    if (print_split(k, node, position, t))
        return;
    int n;
    const SchedNode **members = singles(node, &n);
    Nest shape = {.k = k, .position = position, .members = members, .n = n};
    shape.n_iter = node->outer_depth;
    shape.n_red = members[0]->body->n_vars - node->outer_depth;
    shape.sizes = members[0]->body->sizes;
    shape.vars = loop_vars(k, members[0]->body->n_vars);
    int depth = parallel_depth(&shape, node->outer_depth, work_of(&shape));
    for (int i = 0; i < node->outer_depth; i++)
        open_loop(&shape, t, i, i == 0 && depth ? loop_pragma(&shape, depth, false, "") : "");
    CText inner = {.arena = t->arena};
    inner.buf.arena = t->arena;
    for (int i = 0; i < node->outer.n; i++) {
        int count;
        const SchedNode **part = singles(node->outer.at[i], &count);
        print_nest(k, part, count, position, node->outer_depth, &inner);
    }
    for (MapEntry *e = map_first(&k->locals); e; e = map_next(&k->locals, e)) {
        const CLocal *l = e->ptr;
        c_line(t, NULL, position, "%s %s[%lld];", c_type(l->dtype), l->name, (long long)(l->elems ? l->elems : 1));
    }
    c_append(t, &inner);
    for (int i = 0; i < node->outer_depth; i++)
        close_loop(&shape, t);
}

void kernel_node(KernelGen *k, const SchedNode *node, int position) {
    k->locals = (Map){.arena = k->g->arena};
    if (node->kind == SCHED_outer_loop) {
        print_outer(k, node, position, &k->body);
        return;
    }
    int n;
    const SchedNode **members = singles(node, &n);
    print_nest(k, members, n, position, 0, &k->body);
}
