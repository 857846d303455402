// deps.c: dependencies between scheduler nodes (torch/_inductor/dependencies.py): what they are,
// how they print, and how they are read off a loop body. Two accesses are the same element for
// element exactly if their normalised deps are equal, so normalisation decides what can be fused.
#include "core/inductor/scheduler.h"

#include <string.h>

static uint64_t hash_name(uint64_t h, const char *text) {
    return hash_mix(h, text ? hash_text(text) : 0);
}

static Dep seal(Dep d) {
    uint64_t h = hash_mix(0x5eed, (uint64_t)d.kind);
    h = hash_name(h, d.buf);
    h = hash_name(h, d.mode);
    h = hash_name(h, d.mutating_buf);
    h = hash_mix(h, d.is_fake);
    if (d.kind == DEP_memory) {
        h = hash_mix(h, expr_id(d.index));
        for (int i = 0; i < d.n_vars; i++)
            h = hash_mix(hash_mix(h, expr_id(d.vars[i])), expr_id(d.sizes[i]));
    }
    d.hash = h;
    return d;
}

Dep dep_star(const char *buf, const char *mode) {
    return seal((Dep){.kind = DEP_star, .buf = buf, .mode = mode});
}

Dep dep_weak(const char *buf, const char *mutating_buf, bool is_fake) {
    return seal(
        (Dep){.kind = DEP_weak, .buf = buf, .mutating_buf = mutating_buf, .is_fake = is_fake});
}

static bool has_tmp(const Expr *index) {
    if (!expr_has_symbols(index))
        return false;
    Arena tmp = {0};
    const Expr **symbols;
    int n = expr_symbols(&tmp, index, &symbols);
    bool found = false;
    for (int i = 0; i < n && !found; i++)
        found = str_starts(expr_name(symbols[i]), "tmp");
    arena_free(&tmp);
    return found;
}

Dep dep_memory(const char *buf, const Expr *index, const Expr **vars, const Expr **sizes,
               int n_vars, const char *mode) {
    return seal((Dep){.kind = DEP_memory,
                      .buf = buf,
                      .index = index,
                      .n_vars = n_vars,
                      .vars = vars,
                      .sizes = sizes,
                      .mode = mode,
                      .indirect = has_tmp(index)});
}

Dep dep_rename(const Dep *d, const char *buf) {
    Dep out = *d;
    out.buf = buf;
    out.ir = NULL;
    out.made = NULL;
    return seal(out);
}

static bool same_text(const char *a, const char *b) {
    return a == b || (a && b && strcmp(a, b) == 0);
}

bool dep_equal(const Dep *a, const Dep *b) {
    if (a->hash != b->hash || a->kind != b->kind || !same_text(a->buf, b->buf))
        return false;
    if (!same_text(a->mode, b->mode) || !same_text(a->mutating_buf, b->mutating_buf) ||
        a->is_fake != b->is_fake)
        return false;
    if (a->index != b->index || a->n_vars != b->n_vars)
        return false;
    for (int i = 0; i < a->n_vars; i++)
        if (a->vars[i] != b->vars[i] || a->sizes[i] != b->sizes[i])
            return false;
    return true;
}

bool deps_have(const DepVec *v, const Dep *d) {
    for (int i = 0; i < v->n; i++)
        if (v->at[i].hash == d->hash && dep_equal(&v->at[i], d))
            return true;
    return false;
}

void deps_add(Arena *a, DepVec *v, const Dep *d) {
    if (!deps_have(v, d))
        vec_push(a, v, *d);
}

DepVec deps_copy(Arena *a, const DepVec *v) {
    DepVec out = {.at = v->n ? ARENA_ARRAY(a, v->n, Dep) : NULL, .n = v->n, .cap = v->n};
    if (v->n)
        memcpy(out.at, v->at, (size_t)v->n * sizeof *out.at);
    return out;
}

static void print_mode(Buf *out, const char *mode) {
    if (mode)
        buf_py_str(out, mode);
    else
        buf_puts(out, "None");
}

void dep_print(Buf *out, const Dep *d) {
    switch (d->kind) {
    case DEP_memory:
        buf_puts(out, "MemoryDep(");
        buf_py_str(out, d->buf);
        buf_puts(out, ", ");
        sym_print(out, d->index);
        buf_puts(out, ", {");
        for (int i = 0; i < d->n_vars; i++) {
            buf_puts(out, i ? ", " : "");
            sym_print(out, d->vars[i]);
            buf_puts(out, ": ");
            sym_print(out, d->sizes[i]);
        }
        buf_putc(out, '}');
        if (d->mode)
            buf_printf(out, ", %s", d->mode);
        break;
    case DEP_star:
        buf_puts(out, "StarDep(name=");
        buf_py_str(out, d->buf);
        buf_puts(out, ", mode=");
        print_mode(out, d->mode);
        break;
    case DEP_weak:
        buf_puts(out, "WeakDep(name=");
        buf_py_str(out, d->buf);
        buf_puts(out, ", mutating_buf=");
        buf_py_str(out, d->mutating_buf);
        buf_printf(out, ", is_fake=%s", d->is_fake ? "True" : "False");
        break;
    }
    buf_putc(out, ')');
}

// A walk over one body.
typedef struct Walk {
    Arena *arena, *tmp; // what stays, and what goes when the walk is over
    Sym *sym;
    const LoopBody *body;
    DepVec *reads, *writes;
    const Expr **from, **to; // (n_indirect) indirectK and the tmp that stands for it
    int n_indirect;
    bool raw;               // loops stay as they are
    const Expr *contiguous; // row-major index over all loops: keeps loops from being swapped
    Dep *done; // (index.n) normalised form by number of index expression; index NULL: not yet
} Walk;

static const Expr *contiguous_index(Sym *sym, const LoopBody *b) {
    const Expr *sum = sym_int(sym, 0), *stride = sym_int(sym, 1);
    for (int i = b->n_vars - 1; i >= 0; i--) {
        sum = sym_add(sym, sum, sym_mul(sym, b->vars[i], stride));
        stride = sym_mul(sym, stride, b->sizes[i]);
    }
    return sum;
}

static Dep normalise(Walk *w, const Expr *index) {
    Arena *a = w->arena;
    const LoopBody *b = w->body;
    index = sym_subst(w->sym, index, w->from, w->to, w->n_indirect);
    const Expr *formulas[2] = {index, w->contiguous};
    SymLoops l = sym_simplify_loops(w->sym, w->tmp, b->vars, b->sizes, b->n_vars, formulas, 2);
    const Expr **vars = ARENA_ARRAY(w->tmp, l.n + 1, const Expr *);
    const Expr **old = ARENA_ARRAY(w->tmp, b->n_vars + 1, const Expr *);
    for (int i = 0; i < l.n; i++)
        vars[i] = sym_symbol(w->sym, arena_printf(w->tmp, "c%d", i));
    sym_loops_reindex(w->sym, &l, vars, old);
    index = sym_subst(w->sym, sym_expand(w->sym, index), b->vars, old, b->n_vars);
    int n = l.n;
    while (n > 0 && !expr_has(index, vars[n - 1]))
        n--;
    const Expr **kept = n ? ARENA_ARRAY(a, 2 * n, const Expr *) : NULL;
    for (int i = 0; i < n; i++) {
        kept[i] = vars[i];
        kept[n + i] = l.sizes[i];
    }
    return (Dep){.index = index, .n_vars = n, .vars = kept, .sizes = n ? kept + n : NULL};
}

// Loops of size 1 have no variable of their own.
static Dep keep_loops(Walk *w, const Expr *index) {
    const LoopBody *b = w->body;
    const Expr **vars = ARENA_ARRAY(w->arena, 2 * b->n_vars + 1, const Expr *),
               **sizes = vars + b->n_vars;
    const Expr **old = ARENA_ARRAY(w->tmp, b->n_vars + 1, const Expr *);
    int n = 0;
    for (int i = 0; i < b->n_vars; i++) {
        old[i] = sym_int(w->sym, 0);
        if (expr_is(b->sizes[i], 1))
            continue;
        old[i] = vars[n] = sym_symbol(w->sym, arena_printf(w->tmp, "d%d", n));
        sizes[n++] = b->sizes[i];
    }
    index = sym_subst(w->sym, index, w->from, w->to, w->n_indirect);
    index = sym_subst(w->sym, index, b->vars, old, b->n_vars);
    while (n > 0 && !expr_has(index, vars[n - 1]))
        n--;
    return (Dep){.index = index, .n_vars = n, .vars = vars, .sizes = sizes};
}

static void access(Walk *w, DepVec *v, const char *buf, int index, const char *mode) {
    Dep *done = &w->done[index];
    if (!done->index)
        *done = w->raw ? keep_loops(w, w->body->index.at[index])
                       : normalise(w, w->body->index.at[index]);
    Dep d = dep_memory(buf, done->index, done->vars, done->sizes, done->n_vars, mode);
    deps_add(w->tmp, v, &d);
}

static void walk_block(Walk *w, int block) {
    const LoopBody *b = w->body;
    for (int i = 0; i < b->blocks.at[block].ops.n; i++) {
        const LoopOp *op = &b->blocks.at[block].ops.at[i];
        switch (op->kind) {
        case LOOP_load:
            access(w, w->reads, op->buf, op->index, NULL);
            break;
        case LOOP_load_seed: {
            // Its offset is the index: the seeds are a row of numbers.
            Dep d = dep_memory(op->buf, sym_int(w->sym, op->number), NULL, NULL, 0, NULL);
            deps_add(w->tmp, w->reads, &d);
            break;
        }
        case LOOP_bucketize: {
            Dep d = dep_star(op->buf, NULL);
            deps_add(w->tmp, w->reads, &d);
            break;
        }
        case LOOP_store:
            access(w, w->writes, op->buf, op->index, op->mode);
            break;
        case LOOP_store_reduction:
            access(w, w->writes, op->buf, op->index, NULL);
            break;
        case LOOP_set_indirect:
            w->from[w->n_indirect] =
                sym_symbol(w->sym, arena_printf(w->tmp, "indirect%d", op->number));
            w->to[w->n_indirect] = sym_symbol(w->sym, arena_printf(w->tmp, "tmp%d", w->n_indirect));
            w->n_indirect++;
            break;
        case LOOP_masked:
            walk_block(w, op->number);
            break;
        default:
            break;
        }
    }
}

static void read_body(Arena *a, Sym *sym, const LoopBody *body, bool raw, DepVec *reads,
                      DepVec *writes) {
    Arena tmp = {0};
    DepVec r = {0}, wr = {0};
    int indirect = 0;
    BODY_EACH (body, op)
        indirect += op->kind == LOOP_set_indirect;
    Walk w = {
        .arena = a, .tmp = &tmp, .sym = sym, .body = body, .reads = &r, .writes = &wr, .raw = raw};
    w.from = ARENA_ARRAY(&tmp, indirect + 1, const Expr *);
    w.to = ARENA_ARRAY(&tmp, indirect + 1, const Expr *);
    w.contiguous = contiguous_index(sym, body);
    w.done = ARENA_ARRAY(&tmp, body->index.n + 1, Dep);
    walk_block(&w, 0);
    *reads = deps_copy(a, &r);
    *writes = deps_copy(a, &wr);
    arena_free(&tmp);
}

void deps_of_body(Arena *a, Sym *sym, const LoopBody *body, DepVec *reads, DepVec *writes) {
    read_body(a, sym, body, false, reads, writes);
}

void deps_of_body_raw(Arena *a, Sym *sym, const LoopBody *body, DepVec *reads, DepVec *writes) {
    read_body(a, sym, body, true, reads, writes);
}
