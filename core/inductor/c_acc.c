// c_acc.c: accumulators of reductions: what they start with, how they take a value, what comes out.
#include <string.h>

#include "core/inductor/c_nest.h"
#include "core/record/fault.h"

static const char *const acc_mode[ACC_n] = {
    [ACC_sum] = "sum",       [ACC_prod] = "prod",     [ACC_max] = "max",
    [ACC_min] = "min",       [ACC_any] = "any",       [ACC_xor] = "xor_sum",
    [ACC_argmax] = "argmax", [ACC_argmin] = "argmin", [ACC_welford] = "welford_reduce"};

static bool is_arg(const Acc *acc) {
    return acc->kind == ACC_argmax || acc->kind == ACC_argmin;
}

static bool wants_most(const Acc *acc) {
    return acc->kind == ACC_max || acc->kind == ACC_argmax;
}

static bool is_extreme(const Acc *acc) {
    return is_arg(acc) || acc->kind == ACC_max || acc->kind == ACC_min;
}

static int64_t reduced_elems(const Nest *n) {
    int64_t total = 1;
    for (int i = n->n_iter; i < n->n_iter + n->n_red; i++)
        if (__builtin_mul_overflow(total, nest_hint(n, i), &total))
            return INT64_MAX;
    return total;
}

// Sums of many floats run in double, as do the moments; PyTorch takes cascades and Welford's
// recurrence there. Moments of doubles have no wider type and follow the recurrence.
static const char *type_of(const Nest *n, AccKind kind, DType src, DType out) {
    if (kind == ACC_welford)
        return "double";
    if (kind == ACC_sum && dtype_is_float(out) && reduced_elems(n) > 4096)
        return "double";
    return c_value_type(kind == ACC_argmax || kind == ACC_argmin ? src : out);
}

// A sum that runs in float within a chunk, where the compiler makes vectors of it.
static bool has_part(const Nest *n, const Acc *acc) {
    return n->chunked && acc->kind == ACC_sum && acc->src != DT_f64 && !strcmp(acc->type, "double");
}

bool acc_any_part(const Nest *n) {
    for (int i = 0; i < n->accs.n; i++)
        if (has_part(n, &n->accs.at[i]))
            return true;
    return false;
}

static const char *at(const Nest *n, const char *name, const char *part) {
    return arena_printf(n->k->g->arena, n->lanes ? "%s%s[lane]" : "%s%s", name, part);
}

// The number of an iteration in the reduction loops.
static const char *linear_index(Nest *n) {
    Arena *a = n->k->g->arena;
    const char *text = "";
    for (int i = n->n_iter; i < n->n_iter + n->n_red; i++) {
        const char *x = expr_name(n->vars[i]);
        text = i > n->n_iter ? arena_printf(a, "(%s) * (%s) + %s", text, nest_size(n, i), x) : x;
    }
    return text;
}

static void take_extreme(Emit *e, const Acc *acc, const char *x) {
    const char *s = at(e->nest, acc->name, "");
    c_line(&e->nest->taken, acc->op, e->position, "%s = %s %c %s ? %s : %s;", s, x,
           wants_most(acc) ? '>' : '<', s, x, s);
    if (dtype_is_float(acc->src))
        c_line(&e->nest->taken, acc->op, e->position, "%s |= %s != %s;",
               at(e->nest, acc->name, "_nan"), x, x);
}

// The first NaN wins over all, else the first of the best.
static void take_place(Emit *e, const Acc *acc, const char *x) {
    Nest *n = e->nest;
    const char *i = at(n, acc->name, "_index"), *s = at(n, acc->name, ""), *test;
    char sign = wants_most(acc) ? '>' : '<';
    if (dtype_is_float(acc->src))
        test = arena_printf(n->k->g->arena, "((%s %c %s || %s != %s) && %s == %s)", x, sign, s, x,
                            x, s, s);
    else
        test = arena_printf(n->k->g->arena, "%s %c %s", x, sign, s);
    c_line(&n->taken, acc->op, e->position, "if (%s < 0 || %s) { %s = %s; %s = %s; }", i, test, s,
           x, i, linear_index(n));
}

static bool is_recurrent(const Acc *acc) {
    return acc->kind == ACC_welford && acc->out == DT_f64;
}

static void take_moments(Emit *e, const Acc *acc) {
    Nest *n = e->nest;
    const char *x = acc->value, *s = at(n, acc->name, ""), *sq = at(n, acc->name, "_sq"),
               *seen = at(n, acc->name, "_n");
    int p = e->position;
    if (!is_recurrent(acc)) {
        c_line(&n->taken, acc->op, p, "%s += (double)%s;", s, x);
        c_line(&n->taken, acc->op, p, "%s += (double)%s * (double)%s;", sq, x, x);
        return;
    }
    const char *off = arena_printf(e->k->g->arena, "%s_off", acc->name);
    c_line(&n->taken, acc->op, p, "const double %s = %s - %s;", off, x, s);
    c_line(&n->taken, acc->op, p, "%s += 1;", seen);
    c_line(&n->taken, acc->op, p, "%s += %s / %s;", s, off, seen);
    c_line(&n->taken, acc->op, p, "%s += %s * (%s - %s);", sq, off, x, s);
}

static void take(Emit *e, const Acc *acc) {
    static const char sign[ACC_n] = {[ACC_sum] = '+', [ACC_prod] = '*', [ACC_xor] = '^'};
    Nest *n = e->nest;
    const char *x = acc->value, *s = at(n, acc->name, has_part(n, acc) ? "_part" : "");
    switch (acc->kind) {
    case ACC_sum:
    case ACC_prod:
    case ACC_xor:
        c_line(&n->taken, acc->op, e->position, "%s %c= %s;", s, sign[acc->kind], x);
        break;
    case ACC_any:
        c_line(&n->taken, acc->op, e->position, "%s |= %s != 0;", s, x);
        break;
    case ACC_max:
    case ACC_min:
        take_extreme(e, acc, x);
        break;
    case ACC_argmax:
    case ACC_argmin:
        if (n->two_passes)
            take_extreme(e, acc, x);
        else
            take_place(e, acc, x);
        break;
    case ACC_welford:
        take_moments(e, acc);
        break;
    case ACC_n:
        break;
    }
}

CVal nest_reduce(Emit *e, const LoopOp *op, CVal v) {
    Arena *a = e->k->g->arena;
    Nest *n = e->nest;
    int kind = op->mode ? str_index(op->mode, acc_mode, ACC_n) : -1;
    if (op->dtype == DT_b8 && (kind == ACC_sum || kind == ACC_prod)) // of truth values
        kind = kind == ACC_sum ? ACC_any : ACC_min;
    if (kind < 0) {
        diag_fail(e->k->g->r->diag, "no C for the reduction '%s' in %s", op->mode ? op->mode : "",
                  e->member->name);
        return (CVal){"0", op->dtype, ALL_VARS};
    }
    const char *key =
        arena_printf(a, "%s %s %s", acc_mode[kind], dtype_info[op->dtype].abbr, v.text);
    MapEntry *known = map_at(&n->reductions, key);
    if (!known->i) {
        Acc acc = {
            .kind = (AccKind)kind, .src = v.dtype, .out = op->dtype, .value = v.text, .op = op,
            .member = e->member->name};
        acc.type = type_of(n, acc.kind, v.dtype, op->dtype);
        acc.name = arena_printf(a, "tmp_acc%d", e->k->n_acc++);
        vec_push(a, &n->accs, acc);
        known->i = n->accs.n;
        take(e, &acc);
    }
    return (CVal){arena_printf(a, "%s_out", n->accs.at[known->i - 1].name), op->dtype, ALL_VARS};
}

// --- first values

static const char *end_of_range(DType d, bool low) {
    switch (d) {
    case DT_i64:
        return low ? "(-9223372036854775807LL - 1)" : "9223372036854775807LL";
    case DT_i32:
        return low ? "(-2147483647 - 1)" : "2147483647";
    case DT_i16:
        return low ? "(-32768)" : "32767";
    case DT_i8:
        return low ? "(-128)" : "127";
    case DT_u8:
        return low ? "0" : "255";
    case DT_b8:
        return low ? "0" : "1";
    case DT_f64:
        return low ? "(-1.0 / 0.0)" : "(1.0 / 0.0)";
    default:
        return low ? "(-1.0f / 0.0f)" : "(1.0f / 0.0f)";
    }
}

static const char *first_value(const Nest *n, const Acc *acc) {
    if (acc->kind == ACC_prod)
        return "1";
    if (is_extreme(acc) && (!is_arg(acc) || n->two_passes))
        return end_of_range(is_arg(acc) ? acc->src : acc->out, wants_most(acc));
    return "0";
}

// An accumulator's variables: name suffix, C type, first value, the operator that joins two of
// them.
typedef struct Part {
    const char *suffix, *type, *init, *join;
} Part;

static int parts_of(const Nest *n, const Acc *acc, Part out[3]) {
    static const char *const join[ACC_n] = {
        [ACC_sum] = "+",      [ACC_prod] = "*",     [ACC_max] = "max",
        [ACC_min] = "min",    [ACC_any] = "|",      [ACC_xor] = "^",
        [ACC_argmax] = "max", [ACC_argmin] = "min", [ACC_welford] = "+"};
    int count = 0;
    out[count++] = (Part){"", acc->type, first_value(n, acc), join[acc->kind]};
    if (is_extreme(acc) && dtype_is_float(acc->src) && (!is_arg(acc) || n->two_passes))
        out[count++] = (Part){"_nan", "int", "0", "|"};
    if (is_arg(acc) && !n->two_passes)
        out[count++] = (Part){"_index", "int64_t", "-1", ""};
    if (acc->kind == ACC_welford)
        out[count++] = (Part){"_sq", "double", "0", "+"};
    if (is_recurrent(acc))
        out[count++] = (Part){"_n", "double", "0", "+"};
    return count;
}

void acc_declare(Nest *n, CText *t) {
    for (int i = 0; i < n->accs.n; i++) {
        const Acc *acc = &n->accs.at[i];
        Part part[3];
        int count = parts_of(n, acc, part);
        for (int k = 0; k < count; k++) {
            if (!n->lanes) {
                bool kept = !n->parallel && fault(n->k->g->r->decisions, FAULT_accumulator_kept,
                                                  acc->member);
                c_line(t, acc->op, n->position, "%s%s %s%s = %s;", kept ? "static " : "",
                       part[k].type, acc->name, part[k].suffix, part[k].init);
                continue;
            }
            c_line(t, acc->op, n->position, "%s %s%s[%d];", part[k].type, acc->name, part[k].suffix,
                   n->lanes);
            c_line(t, acc->op, n->position,
                   "for (int64_t lane = 0; lane < %d; lane++) %s%s[lane] = %s;", n->lanes,
                   acc->name, part[k].suffix, part[k].init);
        }
    }
}

const char *acc_clause(Nest *n) {
    Buf clause = {.arena = n->k->g->arena};
    for (int i = 0; i < n->accs.n; i++) {
        Part part[3];
        int count = parts_of(n, &n->accs.at[i], part);
        for (int k = 0; k < count; k++)
            buf_printf(&clause, n->lanes ? " reduction(%s:%s%s[:%d])" : " reduction(%s:%s%s)",
                       part[k].join, n->accs.at[i].name, part[k].suffix, n->lanes);
    }
    return buf_str(&clause);
}

const char *acc_shared_clause(Nest *n) {
    Buf clause = {.arena = n->k->g->arena};
    for (int i = 0; n->racy && i < n->accs.n; i++) {
        Part part[3];
        int count = parts_of(n, &n->accs.at[i], part);
        for (int k = 0; k < count; k++) {
            const char *name = n->accs.at[i].name, *suffix = part[k].suffix;
            buf_printf(&clause, " firstprivate(%s%s) lastprivate(%s%s)", name, suffix, name,
                       suffix);
        }
    }
    return n->racy ? buf_str(&clause) : acc_clause(n);
}

// --- chunks

void acc_part_declare(Nest *n, CText *t) {
    for (int i = 0; i < n->accs.n; i++) {
        const Acc *acc = &n->accs.at[i];
        if (!has_part(n, acc))
            continue;
        if (n->lanes)
            c_line(t, acc->op, n->position, "fx_part %s_part[%d] = {0};", acc->name, n->lanes);
        else
            c_line(t, acc->op, n->position, "fx_part %s_part = 0;", acc->name);
    }
}

// The whole is joined outside the chunk, all else in it.
const char *acc_part_clause(Nest *n) {
    Buf clause = {.arena = n->k->g->arena};
    for (int i = 0; i < n->accs.n; i++) {
        const Acc *acc = &n->accs.at[i];
        Part part[3];
        int count = parts_of(n, acc, part);
        for (int k = 0; k < count; k++)
            buf_printf(&clause, " reduction(%s:%s%s)", part[k].join, acc->name,
                       has_part(n, acc) ? "_part" : part[k].suffix);
    }
    return buf_str(&clause);
}

void acc_part_add(Nest *n, CText *t) {
    const char *each = n->lanes ? "[lane]" : "";
    for (int i = 0; i < n->accs.n; i++) {
        const Acc *acc = &n->accs.at[i];
        if (!has_part(n, acc))
            continue;
        if (n->lanes)
            c_line(t, NULL, n->position, "for (int64_t lane = 0; lane < %d; lane++)", n->lanes);
        t->indent += n->lanes > 0;
        c_line(t, acc->op, n->position, "%s%s += %s_part%s;", acc->name, each, acc->name, each);
        t->indent -= n->lanes > 0;
    }
}

// --- results

// Places that fit are held in 32 bits: twice the lanes.
bool acc_find_is_narrow(const Nest *n) {
    for (int i = n->n_iter; i < n->n_iter + n->n_red; i++)
        if (expr_int_or(n->sizes[i], INT64_MAX) > INT32_MAX)
            return false;
    return reduced_elems(n) <= INT32_MAX;
}

void acc_find_declare(Nest *n, CText *t) {
    bool narrow = acc_find_is_narrow(n);
    for (int i = 0; i < n->accs.n; i++)
        if (is_arg(&n->accs.at[i]))
            c_line(t, n->accs.at[i].op, n->position, "%s %s_index = %s;",
                   narrow ? "int32_t" : "int64_t", n->accs.at[i].name,
                   end_of_range(narrow ? DT_i32 : DT_i64, false));
}

const char *acc_find_clause(Nest *n) {
    Buf clause = {.arena = n->k->g->arena};
    for (int i = 0; i < n->accs.n; i++)
        if (is_arg(&n->accs.at[i]))
            buf_printf(&clause, " reduction(min:%s_index)", n->accs.at[i].name);
    return buf_str(&clause);
}

// The second pass of argmax and argmin: the first place where the best stands, or the first NaN.
void acc_find(Nest *n, CText *t) {
    bool narrow = acc_find_is_narrow(n);
    const char *none = end_of_range(narrow ? DT_i32 : DT_i64, false),
               *type = narrow ? "int32_t" : "int64_t";
    for (int i = 0; i < n->accs.n; i++) {
        const Acc *acc = &n->accs.at[i];
        const char *s = acc->name, *x = acc->value,
                   *test = arena_printf(n->k->g->arena, "%s == %s", x, s);
        if (!is_arg(acc))
            continue;
        if (dtype_is_float(acc->src))
            test = arena_printf(n->k->g->arena, "((%s) & !%s_nan) | (%s_nan & (%s != %s))", test, s,
                                s, x, x);
        c_line(t, acc->op, n->position, "const %s %s_place = %s ? %s : %s;", type, s, test,
               linear_index(n), none);
        c_line(t, acc->op, n->position, "%s_index = %s_place < %s_index ? %s_place : %s_index;", s,
               s, s, s, s);
    }
}

static const char *count_text(Nest *n) {
    Buf b = {.arena = n->k->g->arena};
    for (int i = n->n_iter; i < n->n_iter + n->n_red; i++)
        buf_printf(&b, "%s(double)(%s)", i > n->n_iter ? " * " : "", nest_size(n, i));
    return b.len ? buf_str(&b) : "1.0";
}

// Sum and sum of squares in double give mean and squared distances. An infinity makes the mean NaN,
// as it does in Welford's recurrence.
static void finish_welford(Nest *n, CText *t, const Acc *acc, const char *type) {
    const char *s = at(n, acc->name, ""), *sq = at(n, acc->name, "_sq"), *count = count_text(n),
               *o = acc->name;
    int p = n->position;
    bool squares = fault(n->k->g->r->decisions, FAULT_variance_by_squares, acc->member);
    if (is_recurrent(acc)) {
        c_line(t, acc->op, p, "const double %s_mean64 = %s + (%s - %s) / (%s);", o, s, s, s, count);
        c_line(t, acc->op, p, "const double %s_m264 = %s%s;", o, sq,
               squares ? arena_printf(t->arena, " + %s_mean64 * %s_mean64 * (%s)", o, o, count)
                       : "");
    } else {
        c_line(t, acc->op, p, "const double %s_mean64 = %s / (%s) + (%s - %s);", o, s, count, s,
               s);
        c_line(t, acc->op, p, "const double %s_m264 = %s - %s_mean64 * %s;", o, sq, o,
               squares ? "0.0" : s);
    }
    c_line(t, acc->op, p, "const %s %s_out_mean = (%s)%s_mean64;", type, o, type, o);
    c_line(t, acc->op, p, "const %s %s_out_m2 = (%s)(%s_m264 < 0 ? 0 : %s_m264);", type, o, type, o,
           o);
    c_line(t, acc->op, p, "const %s %s_out_weight = (%s)(%s);", type, o, type, count);
}

static void finish(Nest *n, CText *t, const Acc *acc) {
    const char *s = at(n, acc->name, ""), *type = c_value_type(acc->out);
    if (acc->kind == ACC_welford)
        finish_welford(n, t, acc, type);
    else if (is_arg(acc))
        c_line(t, acc->op, n->position, "const %s %s_out = %s;", type, acc->name,
               at(n, acc->name, "_index"));
    else if (is_extreme(acc) && dtype_is_float(acc->src) &&
             !fault(n->k->g->r->decisions, FAULT_nan_dropped, acc->member))
        c_line(t, acc->op, n->position, "const %s %s_out = %s ? (%s)(0.0f / 0.0f) : %s;", type,
               acc->name, at(n, acc->name, "_nan"), type, s);
    else
        c_line(t, acc->op, n->position, "const %s %s_out = (%s)%s;", type, acc->name, type, s);
}

void acc_finish(Nest *n, CText *t) {
    for (int i = 0; i < n->accs.n; i++)
        finish(n, t, &n->accs.at[i]);
}
