// interp_index.c: index expressions made into steps, each step a row of numbers over a strip of
// iterations. Equal subexpressions are one step; what does not change along the strip is worked out
// once.
#include "core/inductor/interp_impl.h"

typedef struct Compiler {
    InterpRun *run;
    IndexCode *out;
    const Expr *const *vars;
    int n_vars;
    Map known; // expr id -> step + 1
} Compiler;

static int emit(Compiler *c, IndexStep s) {
    vec_push(c->run->arena, &c->out->steps, s);
    return c->out->steps.n - 1;
}

static int compile(Compiler *c, const Expr *e);

static int compile_symbol(Compiler *c, const Expr *e) {
    for (int i = 0; i < c->n_vars; i++)
        if (c->vars[i] == e)
            return emit(c, (IndexStep){.kind = SYM_symbol, .slot = i});
    IndexStep s = {.kind = SYM_int};
    return interp_size(c->run, e, &s.value) ? emit(c, s) : -1;
}

static int compile_call(Compiler *c, const Expr *e) {
    SymKind kind = expr_kind(e);
    int n = expr_n_args(e), at = n ? compile(c, expr_arg(e, 0)) : -1;
    if (at < 0)
        return -1;
    if (kind == SYM_identity)
        return at;
    if (n == 1)
        return emit(c, (IndexStep){.kind = kind, .a = at, .b = at});
    if (kind == SYM_modular || kind == SYM_where) {
        int b = compile(c, expr_arg(e, 1)), m = compile(c, expr_arg(e, 2));
        if (b < 0 || m < 0)
            return -1;
        // (a // b) % m; a choice has its two values in a step of its own before it.
        if (kind == SYM_where)
            emit(c, (IndexStep){.kind = SYM_where, .a = b, .b = m, .slot = -1});
        else
            at = emit(c, (IndexStep){.kind = SYM_floordiv, .a = at, .b = b});
        return emit(c, (IndexStep){.kind = kind, .a = at, .b = m});
    }
    for (int i = 1; i < n; i++) {
        int b = compile(c, expr_arg(e, i));
        if (b < 0)
            return -1;
        at = emit(c, (IndexStep){.kind = kind, .a = at, .b = b});
    }
    return at;
}

static int compile(Compiler *c, const Expr *e) {
    MapEntry *known = map_find_id(&c->known, expr_id(e));
    if (known)
        return (int)known->i;
    int at;
    int64_t v;
    switch (expr_kind(e)) {
    case SYM_int:
        expr_int(e, &v);
        at = emit(c, (IndexStep){.kind = SYM_int, .value = v});
        break;
    case SYM_true:
    case SYM_false:
        at = emit(c, (IndexStep){.kind = SYM_int, .value = expr_kind(e) == SYM_true});
        break;
    case SYM_symbol:
        at = compile_symbol(c, e);
        break;
    default:
        at = compile_call(c, e);
        break;
    }
    map_at_id(&c->known, expr_id(e))->i = at;
    return at;
}

static bool is_known(SymKind k) {
    switch (k) {
    case SYM_add:
    case SYM_mul:
    case SYM_pow:
    case SYM_powint:
    case SYM_floordiv:
    case SYM_cleandiv:
    case SYM_ceildiv:
    case SYM_modular:
    case SYM_pymod:
    case SYM_mod:
    case SYM_min:
    case SYM_max:
    case SYM_where:
    case SYM_lshift:
    case SYM_rshift:
    case SYM_eq:
    case SYM_ne:
    case SYM_lt:
    case SYM_le:
    case SYM_gt:
    case SYM_ge:
    case SYM_and:
    case SYM_or:
    case SYM_not:
    case SYM_abs:
    case SYM_int:
    case SYM_symbol:
        return true;
    default:
        return false;
    }
}

bool index_compile(InterpRun *run, IndexCode *out, const Expr *e, const Expr *const *vars,
                   int n_vars) {
    Compiler c = {
        .run = run, .out = out, .vars = vars, .n_vars = n_vars, .known = {.arena = run->arena}};
    int at = compile(&c, e);
    if (at < 0)
        return false;
    for (int i = 0; i < out->steps.n; i++)
        if (!is_known(out->steps.at[i].kind)) {
            diag_fail(run->diag, "cannot evaluate the index expression %s", sym_str(run->arena, e));
            return false;
        }
    if (at != out->steps.n - 1) // the last step is the value
        emit(&c, (IndexStep){.kind = SYM_max, .a = at, .b = at});
    return true;
}

static int64_t floor_div(int64_t a, int64_t b) {
    if (b == 0)
        return 0;
    if (b == -1)
        return (int64_t)(0 - (uint64_t)a);
    return a / b - (a % b != 0 && (a % b < 0) != (b < 0));
}

static int64_t power(int64_t a, int64_t n) {
    uint64_t r = 1;
    for (int64_t i = 0; i < n && i < 64; i++)
        r *= (uint64_t)a;
    return (int64_t)r;
}

static int64_t apply(SymKind kind, int64_t a, int64_t b) {
    switch (kind) {
    case SYM_add:
        return (int64_t)((uint64_t)a + (uint64_t)b);
    case SYM_mul:
        return (int64_t)((uint64_t)a * (uint64_t)b);
    case SYM_pow:
    case SYM_powint:
        return power(a, b);
    case SYM_floordiv:
    case SYM_cleandiv:
        return floor_div(a, b);
    case SYM_ceildiv:
        return -floor_div(-a, b);
    case SYM_modular:
    case SYM_pymod:
    case SYM_mod:
        return (int64_t)((uint64_t)a - (uint64_t)floor_div(a, b) * (uint64_t)b);
    case SYM_abs:
        return a < 0 ? (int64_t)(0 - (uint64_t)a) : a;
    case SYM_not:
        return !a;
    case SYM_min:
        return a < b ? a : b;
    case SYM_max:
        return a > b ? a : b;
    case SYM_lshift:
        return b >= 0 && b < 64 ? (int64_t)((uint64_t)a << b) : 0;
    case SYM_rshift:
        return b >= 0 && b < 63 ? a / ((int64_t)1 << b) - (a < 0 && a % ((int64_t)1 << b)) : 0;
    case SYM_eq:
        return a == b;
    case SYM_ne:
        return a != b;
    case SYM_lt:
        return a < b;
    case SYM_le:
        return a <= b;
    case SYM_gt:
        return a > b;
    case SYM_ge:
        return a >= b;
    case SYM_and:
        return a && b;
    case SYM_or:
        return a || b;
    default:
        return a;
    }
}

static void eval_step(const IndexStep *s, const IndexStep *before, const IndexLanes *const *slot,
                      IndexLanes *room, IndexLanes *out, int n) {
    if (s->kind == SYM_int) {
        out->uniform = true;
        out->at[0] = s->value;
        return;
    }
    const IndexLanes *a = s->kind == SYM_symbol ? slot[s->slot] : &room[s->a];
    const IndexLanes *b = s->kind == SYM_symbol ? a : &room[s->b];
    const IndexLanes *yes =
        s->kind == SYM_where && s->slot >= 0 && before ? &room[before->a] : NULL;
    out->uniform = a->uniform && b->uniform && (!yes || yes->uniform);
    for (int i = 0; i < (out->uniform ? 1 : n); i++) {
        int64_t x = a->at[a->uniform ? 0 : i], y = b->at[b->uniform ? 0 : i];
        if (s->kind == SYM_symbol)
            out->at[i] = x;
        else if (yes)
            out->at[i] = x ? yes->at[yes->uniform ? 0 : i] : y;
        else
            out->at[i] = apply(s->kind, x, y);
    }
}

const IndexLanes *index_eval(const IndexCode *c, const IndexLanes *const *slot, IndexLanes *room,
                             int n) {
    for (int i = 0; i < c->steps.n; i++)
        eval_step(&c->steps.at[i], i ? &c->steps.at[i - 1] : NULL, slot, room, &room[i], n);
    return &room[c->steps.n - 1];
}
