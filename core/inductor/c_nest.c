// c_nest.c: the shape of a loop nest and what its members put into it. The members share the loops;
// a reduction's members come first inside the reduction loops, what uses its result behind them. A
// statement stands in the outermost loop in which all that it needs is known.
#include <string.h>

#include "core/inductor/c_nest.h"
#include "core/record/fault.h"

void nest_to_suffix(Emit *e) {
    e->out = &e->nest->suffix;
    e->scope = &e->nest->behind;
    e->sink = SINK_suffix;
    e->pinned = true;
}

// --- sizes

const char *c_size(Emit *e, const Expr *size) {
    return emit_expr(e, size);
}

const char *nest_size(Nest *n, int loop) {
    static const LoopBody none;
    Emit e = {.k = n->k, .nest = n, .position = n->position, .body = &none};
    return c_size(&e, n->sizes[loop]);
}

int64_t nest_hint(const Nest *n, int loop) {
    return sym_size_hint(n->k->g->sym, n->sizes[loop], 4096);
}

static int place_in_order(const Nest *n, int loop) {
    for (int i = 0; i < n->n_iter + n->n_red; i++)
        if (n->order[i] == loop)
            return i;
    return loop;
}

int nest_level(const Nest *n, uint64_t vars) {
    int level = n->first, all = n->n_iter + n->n_red;
    if (vars == ALL_VARS)
        return all;
    for (int i = n->first; i < all; i++)
        if (vars >> i & 1 && place_in_order(n, i) + 1 > level)
            level = place_in_order(n, i) + 1;
    // Nothing may stand between loops that the threads share as one.
    bool between = level > 0 && level < n->parallel && !n->inside && n->tiled < 0;
    return between ? n->parallel : level;
}

CText *emit_to(Emit *e, uint64_t vars) {
    return e->pinned ? e->out : &e->nest->level[nest_level(e->nest, vars)];
}

bool nest_is_wide(const Nest *n) {
    return !n->serial && !n->checked && n->k->g->r->config->cpp_simdlen > 0;
}

// --- what the members do to memory

typedef void OpVisit(void *ctx, const LoopBody *b, const LoopOp *op);

static void each_op(const Nest *n, OpVisit *visit, void *ctx) {
    for (int m = 0; m < n->n; m++) {
        const LoopBody *b = n->members[m]->body;
        BODY_EACH (b, op)
            visit(ctx, b, op);
    }
}

static void note_effects(void *ctx, const LoopBody *b, const LoopOp *op) {
    Nest *n = ctx;
    bool store = op->kind == LOOP_store || op->kind == LOOP_store_reduction;
    n->serial |= store && op->mode;
    n->checked |= op->kind == LOOP_check_bounds || b->indirect_size.n;
    n->places |= op->kind == LOOP_reduction && op->mode && str_starts(op->mode, "arg");
    n->recurrent |= op->kind == LOOP_reduction && op->dtype == DT_f64 && op->mode &&
                    str_starts(op->mode, "welford");
    if (store)
        map_put_int(&n->written, kernel_memory(n->k, op->buf), 1);
    // Its value in the second pass would be another if the first has stored over what it reads.
    n->two_passes &= op->kind != LOOP_store;
}

// Accesses of 1 element a step along a loop, and those that jump along it.
typedef struct Steps {
    const Nest *n;
    int loop;
    int ones, jumps, stores; // stores: of the ones
} Steps;

static void note_step(void *ctx, const LoopBody *b, const LoopOp *op) {
    Steps *s = ctx;
    bool store = op->kind == LOOP_store;
    if ((op->kind != LOOP_load && !store) || s->loop >= b->n_vars)
        return;
    const Expr *step = sym_stride_of(s->n->k->g->sym, b->index.at[op->index], b->vars[s->loop]);
    s->ones += expr_is(step, 1);
    s->stores += store && expr_is(step, 1);
    s->jumps += !expr_is(step, 1) && !expr_is(step, 0);
}

static Steps steps_of(const Nest *n, int loop) {
    Steps s = {.n = n, .loop = loop};
    each_op(n, note_step, &s);
    return s;
}

// --- shape

// Reductions whose memory runs along the last iteration loop: how much of it is done at once. Many
// lanes read memory in longer runs, as long as there are enough of them for the threads.
static int wants_lanes(const Nest *n) {
    if (!n->n_red || n->n_iter <= n->first || nest_hint(n, n->n_iter - 1) < 8)
        return 0;
    if (steps_of(n, n->n_iter - 1).ones <= steps_of(n, n->n_iter + n->n_red - 1).ones)
        return 0;
    int64_t size = nest_hint(n, n->n_iter - 1), known = expr_int_or(n->sizes[n->n_iter - 1], -1);
    if (size >= (int64_t)MORE_LANES * n->k->g->r->config->threads)
        return MORE_LANES;
    return known < 0 || known > LANES ? LANES : (int)(known + 15) / 16 * 16;
}

// The loop that most loads which jump along the innermost loop walk along; -1 if none, or not worth
// it.
static int tiled_loop(const Nest *n) {
    int last = n->n_iter - 1;
    if (n->n_red || n->first || last < 1 || !nest_is_wide(n) || nest_hint(n, last) < TILE / 2)
        return -1;
    if (!steps_of(n, last).jumps || !steps_of(n, last).ones)
        return -1;
    int best = -1;
    for (int i = 0; i < last; i++)
        if (nest_hint(n, i) >= TILE / 2 &&
            steps_of(n, i).ones > (best < 0 ? 0 : steps_of(n, best).ones))
            best = i;
    return best;
}

static void set_order(Nest *n) {
    int all = n->n_iter + n->n_red, at = 0, last = n->n_iter - 1;
    int moved = n->lanes ? last : n->tiled; // goes to the end, or before the last
    n->order = ARENA_ARRAY(n->k->g->arena, all + 1, int);
    for (int i = 0; i < all; i++)
        if (moved < 0 || (i != moved && (n->lanes || i != last)))
            n->order[at++] = i;
    if (moved >= 0)
        n->order[at++] = moved;
    if (moved >= 0 && !n->lanes)
        n->order[at] = last;
}

static int64_t iterations(const Nest *n) {
    int64_t share = 1;
    for (int i = n->first; i < n->n_iter; i++) {
        int64_t size = nest_hint(n, i);
        if (n->lanes && i == n->n_iter - 1)
            size = (size + n->lanes - 1) / n->lanes;
        if (__builtin_mul_overflow(share, size, &share))
            return INT64_MAX;
    }
    return share;
}

static void set_parallel(Nest *n) {
    int threads = n->k->g->r->config->threads;
    n->parallel = n->first ? 0 : loops_parallel(n, n->n_iter + (n->n_red > 0));
    // Few results of many elements each: the threads share the reduction.
    n->inside = n->parallel && n->n_red && !n->checked && !n->places && !n->recurrent &&
                iterations(n) < threads;
    int most = n->tiled >= 0 ? n->n_iter - 1 : n->n_iter;
    if (!n->inside && n->parallel > most)
        n->parallel = most;
}

static const Expr **loop_vars(KernelGen *k, int n) {
    const Expr **vars = ARENA_ARRAY(k->g->arena, n + 1, const Expr *);
    for (int i = 0; i < n; i++)
        vars[i] = sym_symbol(k->g->sym, arena_printf(k->g->arena, "x%d", i));
    return vars;
}

// The member with the most loops to reduce over gives its loops.
static const SchedNode *shape_of(const SchedNode **members, int n) {
    const SchedNode *shape = members[0];
    for (int i = 1; i < n; i++) {
        const LoopBody *b = members[i]->body, *most = shape->body;
        int red = b->n_vars - b->n_iter, most_red = most->n_vars - most->n_iter;
        if (red > most_red || (red == most_red && b->n_vars > most->n_vars))
            shape = members[i];
    }
    return shape;
}

static void text_init(CText *t, Arena *a) {
    t->arena = t->buf.arena = a;
}

static Nest nest_new(KernelGen *k, const SchedNode **members, int n_members, int position,
                     int first) {
    Arena *a = k->g->arena;
    const LoopBody *shape = shape_of(members, n_members)->body;
    Nest n = {.k = k,
              .position = position,
              .members = members,
              .n = n_members,
              .first = first,
              .tiled = -1};
    n.n_iter = shape->n_iter;
    n.n_red = shape->n_vars - shape->n_iter;
    n.sizes = shape->sizes;
    n.vars = loop_vars(k, shape->n_vars);
    n.in.values.arena = n.behind.values.arena = n.reductions.arena = n.written.arena = a;
    n.two_passes = true;
    each_op(&n, note_effects, &n);
    n.lanes = wants_lanes(&n);
    n.two_passes &= n.places && !n.lanes && !n.serial && !n.checked;
    n.chunked = n.n_red && !n.checked && !n.serial && nest_hint(&n, n.n_iter + n.n_red - 1) > CHUNK;
    n.tiled = tiled_loop(&n);
    set_order(&n);
    set_parallel(&n);
    text_init(&n.suffix, a);
    text_init(&n.taken, a);
    n.level = ARENA_ARRAY(a, shape->n_vars + 1, CText);
    for (int i = 0; i <= shape->n_vars; i++)
        text_init(&n.level[i], a);
    return n;
}

// --- members

static void emit_member(Nest *n, const SchedNode *m) {
    Emit e = {.k = n->k,
              .nest = n,
              .member = m,
              .position = n->position,
              .body = m->body,
              .vars = n->vars};
    e.scope = &n->in;
    e.indirect = ARENA_ARRAY(n->k->g->arena, m->body->indirect.n + 1, CVal);
    if (n->n_red && m->body->n_vars == n->n_iter)
        nest_to_suffix(&e);
    Buf note = {.arena = n->k->g->arena};
    kernel_note(n->k, m, &note);
    if (note.len)
        c_line(emit_to(&e, ALL_VARS), NULL, n->position, "// %s", buf_str(&note));
    emit_block(&e, 0, NULL);
}

static bool is_empty(const Nest *n) {
    for (int i = n->first; i < n->n_iter; i++)
        if (expr_is(n->sizes[i], 0))
            return true;
    return false;
}

static void print_nest(KernelGen *k, const SchedNode **members, int n_members, int position,
                       int first, CText *t) {
    Nest n = nest_new(k, members, n_members, position, first);
    n.racy = n.inside && fault(k->g->r->decisions, FAULT_race_in_reduction, members[0]->name);
    for (int i = 0; i < n_members; i++)
        emit_member(&n, members[i]);
    n.chunked &= acc_any_part(&n);
    if (!is_empty(&n))
        loops_print(&n, t);
}

static const SchedNode **singles(const SchedNode *node, int *n) {
    *n = node->snodes.n ? node->snodes.n : 1;
    return node->snodes.n ? (const SchedNode **)node->snodes.at : (const SchedNode **)&node->self;
}

// --- nests under common outer loops

static bool has_rows(const KernelGen *k, const SchedNode *node) {
    for (int i = 0; i < node->outputs.n; i++)
        if (!kernel_has_memory(k, node->outputs.at[i]->ir->name))
            return true;
    return false;
}

// The plan wants it so, or a reduction would have to walk memory across the grain. Each nest alone
// is right as long as none hands a row to the next.
static bool prints_apart(KernelGen *k, const SchedNode *node, int position) {
    const MemoryPlan *plan = k->g->r->plan;
    if (plan && map_find(&plan->split, node->name))
        return true;
    bool lanes = false;
    for (int i = 0; i < node->outer.n && !has_rows(k, node); i++) {
        int count;
        const SchedNode **part = singles(node->outer.at[i], &count);
        lanes |= nest_new(k, part, count, position, 0).lanes > 0;
    }
    return lanes;
}

static void print_apart(KernelGen *k, const SchedNode *node, int position, CText *t) {
    for (int i = 0; i < node->outer.n; i++) {
        int count;
        const SchedNode **part = singles(node->outer.at[i], &count);
        print_nest(k, part, count, position, 0, t);
    }
}

static Nest outer_nest(KernelGen *k, const SchedNode *node, int position) {
    int n;
    const SchedNode **members = singles(node, &n);
    Nest shape = {.k = k, .position = position, .members = members, .n = n, .tiled = -1};
    shape.n_iter = node->outer_depth;
    shape.n_red = members[0]->body->n_vars - node->outer_depth;
    shape.sizes = members[0]->body->sizes;
    shape.vars = loop_vars(k, members[0]->body->n_vars);
    return shape;
}

static void print_outer(KernelGen *k, const SchedNode *node, int position, CText *t) {
    Nest shape = outer_nest(k, node, position);
    int depth = loops_parallel(&shape, node->outer_depth);
    for (int i = 0; i < node->outer_depth; i++)
        loops_open(&shape, t, i,
                   i == 0 && depth ? loops_pragma(k->g->arena, depth, false, "") : "");
    CText inner = {.arena = t->arena, .buf.arena = t->arena};
    for (int i = 0; i < node->outer.n; i++) {
        int count;
        const SchedNode **part = singles(node->outer.at[i], &count);
        print_nest(k, part, count, position, node->outer_depth, &inner);
    }
    for (MapEntry *e = map_first(&k->locals); e; e = map_next(&k->locals, e)) {
        const CLocal *l = e->ptr;
        c_line(t, NULL, position, "%s %s[%lld];", c_type(l->dtype), l->name,
               (long long)(l->elems ? l->elems : 1));
    }
    c_append(t, &inner);
    for (int i = 0; i < node->outer_depth; i++)
        loops_close(&shape, t);
}

void kernel_node(KernelGen *k, const SchedNode *node, int position) {
    k->locals = (Map){.arena = k->g->arena};
    int n;
    const SchedNode **members = singles(node, &n);
    if (node->kind != SCHED_outer_loop)
        print_nest(k, members, n, position, 0, &k->body);
    else if (prints_apart(k, node, position))
        print_apart(k, node, position, &k->body);
    else
        print_outer(k, node, position, &k->body);
}
