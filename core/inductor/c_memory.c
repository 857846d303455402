// c_memory.c: loads and stores of a nest. What a nest has just stored is known; a buffer without
// memory of its own lives in a row that the nests under common outer loops share; a load across the
// grain comes out of a turned tile.
#include <string.h>

#include "core/inductor/c_nest.h"
#include "core/record/fault.h"

// The row of a local buffer: nests of one node that do not need it at the same time share one.
static CLocal *local_at(Emit *e, const char *buf) {
    KernelGen *k = e->k;
    const MemoryPlan *plan = k->g->r->plan;
    int64_t row = plan ? map_get_int(&plan->local, buf, -1) : -1;
    const char *key = row >= 0 ? arena_printf(k->g->arena, "row %lld", (long long)row) : buf;
    CLocal *l = map_get(&k->locals, key);
    if (!l) {
        l = ARENA_NEW(k->g->arena, CLocal);
        l->name = arena_printf(k->g->arena, "local_buffer_data_%d", k->n_local++);
        l->dtype = kernel_dtype(k, buf);
        map_put(&k->locals, key, l);
    }
    return l;
}

// The index of a local buffer: outer loops see one row of it at a time.
static const char *local_index(Emit *e, const LoopOp *op, int64_t *elems) {
    CGen *g = e->k->g;
    const Expr *vars[MAX_LOOPS];
    SymRange ranges[MAX_LOOPS];
    int n = e->body->n_vars;
    for (int i = 0; i < n; i++) {
        vars[i] = i < e->nest->first ? sym_int(g->sym, 0) : e->vars[i];
        ranges[i] = (SymRange){0, sym_size_hint(g->sym, e->body->sizes[i], 4096) - 1};
    }
    const Expr *x = sym_subst(g->sym, e->body->index.at[op->index], e->body->vars, vars, n);
    SymRange r = sym_range_with(g->sym, x, e->vars, ranges, n);
    *elems = r.hi == SYM_POS_INF ? 0 : r.hi + 1;
    return emit_expr(e, x);
}

static const char *place(Emit *e, const LoopOp *op, const char *index, bool write) {
    Arena *a = e->k->g->arena;
    if (kernel_has_memory(e->k, op->buf))
        return arena_printf(a, "%s[%s]", kernel_ptr(e->k, op->buf, write), index);
    int64_t elems;
    CLocal *l = local_at(e, op->buf);
    const char *at = local_index(e, op, &elems);
    if (l->elems < elems)
        l->elems = elems;
    return arena_printf(a, "%s[%s]", l->name, at);
}

static const char *memory_key(Emit *e, const char *buf, const char *index) {
    const char *ptr = kernel_has_memory(e->k, buf) ? kernel_ptr(e->k, buf, false) : buf;
    return arena_printf(e->k->g->arena, "%s[%s]", ptr, index);
}

// Within a nest without memory for a buffer, its value is known: no argument is made for it.
static const char *forward_key(Emit *e, const char *buf, const char *index) {
    return arena_printf(e->k->g->arena, "%s at %s", kernel_real(e->k, buf), index);
}

// Another element may be the one that is written: what is known of the buffer is not any more.
static void forget(Emit *e, const char *buf) {
    Arena *a = e->k->g->arena;
    const char *memory = memory_key(e, buf, ""), *value = forward_key(e, buf, "");
    memory = arena_strndup(a, memory, strlen(memory) - 1); // without the closing bracket
    for (int i = 0; i < e->scope->order.n; i++) {
        const char *key = e->scope->order.at[i];
        if (str_starts(key, memory) || str_starts(key, value))
            map_remove(&e->scope->values, key);
    }
}

static const char *widened(Arena *a, const char *at, DType d) {
    return dtype_is_low(d) ? arena_printf(a, "fx_%s_to_f32(%s)", dtype_info[d].abbr, at) : at;
}

// --- turned tiles

// The number of a tile for a load whose index walks one by one along n->tiled; -1 if it is none.
static int tile_of(Emit *e, const LoopOp *op) {
    Nest *n = e->nest;
    Sym *sym = e->k->g->sym;
    int last = n->n_iter - 1;
    if (n->tiled < 0 || e->pinned || kernel_dtype(e->k, op->buf) != DT_f32 ||
        map_find(&n->written, kernel_memory(e->k, op->buf)))
        return -1;
    const Expr *x = emit_index_of(e, op->index);
    const Expr *across = sym_stride_of(sym, x, n->vars[n->tiled]);
    const Expr *along = sym_stride_of(sym, x, n->vars[last]);
    if (!expr_is(across, 1) || expr_int_or(along, 0) <= 1)
        return -1;
    const Expr *zero[2] = {sym_int(sym, 0), sym_int(sym, 0)};
    const Expr *from[2] = {n->vars[n->tiled], n->vars[last]};
    const Expr *start = sym_subst(sym, x, from, zero, 2);
    const Expr *plane = sym_add(sym, n->vars[n->tiled], sym_mul(sym, along, n->vars[last]));
    if (sym_add(sym, start, plane) != x)
        return -1;
    const char *corner = emit_expr(e, start), *ptr = kernel_ptr(e->k, op->buf, false);
    for (int i = 0; i < n->tiles.n; i++)
        if (!strcmp(n->tiles.at[i].corner, corner) && !strcmp(n->tiles.at[i].ptr, ptr))
            return i;
    Arena *a = e->k->g->arena;
    Tile t = {.name = arena_printf(a, "tile%d", n->tiles.n),
              .ptr = ptr,
              .corner = corner,
              .pitch = emit_expr(e, along),
              .op = op};
    vec_push(a, &n->tiles, t);
    return n->tiles.n - 1;
}

// --- loads and stores

static bool may_move(Emit *e, const LoopOp *op) {
    return kernel_has_memory(e->k, op->buf) &&
           !map_find(&e->nest->written, kernel_memory(e->k, op->buf));
}

CVal nest_load(Emit *e, const LoopOp *op, const char *index) {
    Arena *a = e->k->g->arena;
    Nest *n = e->nest;
    CVal *known = scope_find(e->scope, forward_key(e, op->buf, index));
    if (known && fault(n->k->g->r->decisions, FAULT_fused_too_early, e->member->name))
        return (CVal){arena_printf(a, "(%s)0", c_value_type(known->dtype)), known->dtype,
                      known->vars};
    if (known)
        return *known;
    DType d = kernel_dtype(e->k, op->buf);
    const char *at = place(e, op, index, false), *key = memory_key(e, op->buf, index);
    known = scope_find(e->scope, key);
    if (known)
        return *known;
    CVal v = {arena_printf(a, "tmp%d", e->k->n_tmp++), d,
              may_move(e, op) ? emit_vars(e, op->index) : ALL_VARS};
    int tile = tile_of(e, op);
    if (tile >= 0)
        at = arena_printf(a, "%s[(%s - %s_tile) * %d + %s - %s_tile]", n->tiles.at[tile].name,
                          expr_name(n->vars[n->tiled]), expr_name(n->vars[n->tiled]), TILE,
                          expr_name(n->vars[n->n_iter - 1]), expr_name(n->vars[n->n_iter - 1]));
    c_line(emit_to(e, v.vars), op, e->position, "const %s %s = %s;", c_value_type(d), v.text,
           widened(a, at, d));
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

static void add_to_memory(Emit *e, const LoopOp *op, const char *at, DType d, CVal v) {
    Arena *a = e->k->g->arena;
    CVal sum = {arena_printf(a, "(%s + %s)", widened(a, at, d), v.text),
                dtype_is_low(d) ? DT_f32 : d, ALL_VARS};
    c_line(emit_to(e, ALL_VARS), op, e->position, "%s = %s;", at, stored_text(a, sum, d));
}

// Without a row, only the nest itself reads it, and knows its value.
static bool has_row(const Emit *e, const char *buf) {
    const MemoryPlan *plan = e->k->g->r->plan;
    return e->nest->first > 0 && (!plan || map_get_int(&plan->local, buf, -1) >= 0);
}

void nest_store(Emit *e, const LoopOp *op, const char *index, CVal v) {
    Arena *a = e->k->g->arena;
    DType d = kernel_dtype(e->k, op->buf);
    bool mutates = map_find(&e->k->g->s->mutation_real_name, op->buf) != NULL;
    // What a reader gets is what memory would hold: of the stored type, rounded if that is a small
    // float. Readers of a buffer that is written here know it by its own name.
    bool known = d == v.dtype || (d == DT_f32 && dtype_is_low(v.dtype));
    if (mutates || !known) // it may lie over what has been read
        forget(e, op->buf);
    if (op->mode && !fault(e->k->g->r->decisions, FAULT_scatter_overwrites, e->member->name)) {
        add_to_memory(e, op, place(e, op, index, true), d, v);
        return;
    }
    bool stored = kernel_has_memory(e->k, op->buf) || has_row(e, op->buf);
    if (stored)
        c_line(emit_to(e, ALL_VARS), op, e->position, "%s = %s;", place(e, op, index, true),
               stored_text(a, v, d));
    CVal kept = {v.text, d, v.vars};
    if (!known && !stored) {
        kept = (CVal){arena_printf(a, "tmp%d", e->k->n_tmp++), d, v.vars};
        const char *text = arena_printf(a, "(%s)", stored_text(a, v, d));
        c_line(emit_to(e, v.vars), op, e->position, "const %s %s = %s;", c_value_type(d), kept.text,
               widened(a, text, d));
        known = true;
    }
    if (mutates && known)
        scope_put(e->scope, a, memory_key(e, op->buf, index), kept);
    if (known)
        scope_put(e->scope, a, forward_key(e, op->buf, index), kept);
}
