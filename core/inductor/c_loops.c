// c_loops.c: the loops of a nest. Three forms: plain loops; reductions inside iteration loops; and,
// where the last iteration variable walks memory and the reduction variable does not, reductions of
// many iterations at once, so that the inner loop runs along memory, ROWS rows of it together.
// Plain loops whose loads go across the grain are cut into square tiles.
#include <string.h>

#include "core/inductor/c_nest.h"
#include "core/record/fault.h"

enum { PARALLEL_WORK = 32768, MATH_WORK = 8 };

void loops_open(Nest *n, CText *t, int loop, const char *pragma) {
    const char *x = expr_name(n->vars[loop]);
    const char *end = nest_size(n, loop);
    if (*pragma)
        c_line(t, NULL, n->position, "%s", pragma);
    if (strstr(pragma, " simd") && nest_hint(n, loop) % 8 &&
        fault(n->k->g->r->decisions, FAULT_tail_off_by_one, n->members[0]->name))
        end = arena_printf(n->k->g->arena, "(%s) - 1", end);
    c_line(t, NULL, n->position, "for (int64_t %s = 0; %s < %s; %s++) {", x, x, end, x);
    t->indent++;
}

void loops_close(Nest *n, CText *t) {
    t->indent--;
    c_line(t, NULL, n->position, "}");
}

static int64_t saturating(int64_t a, int64_t b) {
    int64_t r;
    return __builtin_mul_overflow(a, b, &r) ? INT64_MAX : r;
}

static bool has_math(const Nest *n) {
    for (int m = 0; m < n->n; m++) {
        const LoopBlock *b = &n->members[m]->body->blocks.at[0];
        for (int i = 0; i < b->ops.n; i++)
            if (loop_op_info[b->ops.at[i].kind].cls == LC_MATH)
                return true;
    }
    return false;
}

// Work of a nest in units of one cheap operation on one element.
int64_t loops_work(const Nest *n) {
    int64_t elems = 1;
    for (int i = 0; i < n->n_iter + n->n_red; i++)
        elems = saturating(elems, nest_hint(n, i));
    return saturating(elems, has_math(n) ? MATH_WORK : 1);
}

int loops_parallel(const Nest *n, int loops) {
    CGen *g = n->k->g;
    int threads = g->r->config->threads;
    int64_t work = loops_work(n),
            floor_work = saturating(g->r->config->cpp_min_chunk_size, threads);
    bool worth =
        threads > 1 && work >= PARALLEL_WORK && work >= floor_work && !n->serial && loops > 0;
    Decide q = {.kind = DECIDE_parallel,
                .key = n->members[0]->name,
                .by_default = worth,
                .score = (double)work,
                .reason = n->serial ? "adds to memory in order"
                                    : "work against the cost of a parallel region"};
    if (!decide(g->r->decisions, &q) || n->serial || loops < 1 || threads < 2)
        return 0;
    int64_t share = 1;
    int depth = 0;
    while (depth < loops && share < 2 * threads)
        share = saturating(share, nest_hint(n, n->order ? n->order[depth++] : depth++));
    return depth;
}

const char *loops_pragma(Arena *a, int parallel, bool simd, const char *clause) {
    const char *vector = simd ? " simd" : "";
    if (parallel > 1)
        return arena_printf(a, "#pragma omp parallel for%s collapse(%d) schedule(static)%s", vector,
                            parallel, clause);
    if (parallel == 1)
        return arena_printf(a, "#pragma omp parallel for%s schedule(static)%s", vector, clause);
    return simd ? arena_printf(a, "#pragma omp simd%s", clause) : "";
}

static bool wants_vectors(const Nest *n) {
    Decide q = {.kind = DECIDE_tile,
                .key = n->members[0]->name,
                .by_default = nest_is_wide(n),
                .fixed = !nest_is_wide(n),
                .reason = nest_is_wide(n) ? "the innermost loop is vector code"
                                          : "it writes in order, or tells of bad indexes"};
    return decide(n->k->g->r->decisions, &q);
}

// --- plain loops

static void print_pointwise(Nest *n, CText *t) {
    Arena *a = n->k->g->arena;
    int loops = n->n_iter;
    bool simd = wants_vectors(n);
    c_append(t, &n->level[n->first]);
    for (int i = n->first; i < loops; i++) {
        bool inner = i == loops - 1;
        const char *pragma = "";
        if (i == 0 && n->parallel)
            pragma = loops_pragma(a, n->parallel, simd && n->parallel == loops, "");
        else if (inner && n->parallel < loops)
            pragma = loops_pragma(a, 0, simd, "");
        loops_open(n, t, n->order[i], pragma);
        c_append(t, &n->level[i + 1]);
    }
    for (int i = n->first; i < loops; i++)
        loops_close(n, t);
}

// for (x_tile …), with x_end behind it.
static void open_tiles(Nest *n, CText *t, int loop, const char *pragma) {
    const char *x = expr_name(n->vars[loop]);
    if (*pragma)
        c_line(t, NULL, n->position, "%s", pragma);
    c_line(t, NULL, n->position, "for (int64_t %s_tile = 0; %s_tile < %s; %s_tile += %d) {", x, x,
           nest_size(n, loop), x, TILE);
    t->indent++;
}

static void open_within_tile(Nest *n, CText *t, int loop, const char *pragma) {
    const char *x = expr_name(n->vars[loop]);
    if (*pragma)
        c_line(t, NULL, n->position, "%s", pragma);
    c_line(t, NULL, n->position, "for (int64_t %s = %s_tile; %s < %s_end; %s++) {", x, x, x, x, x);
    t->indent++;
}

static void print_tile_ends(Nest *n, CText *t, int loop) {
    const char *x = expr_name(n->vars[loop]), *size = nest_size(n, loop);
    c_line(t, NULL, n->position, "const int64_t %s_end = %s - %s_tile < %d ? %s : %s_tile + %d;", x,
           size, x, TILE, size, x, TILE);
}

static void print_tiled(Nest *n, CText *t) {
    Arena *a = n->k->g->arena;
    int loops = n->n_iter, outer = loops - 2, last = n->order[loops - 1];
    const char *x = expr_name(n->vars[n->tiled]), *y = expr_name(n->vars[last]);
    for (int i = 0; i < outer; i++)
        loops_open(n, t, n->order[i],
                   i == 0 && n->parallel ? loops_pragma(a, n->parallel, false, "") : "");
    open_tiles(n, t, n->tiled,
               outer == 0 && n->parallel ? loops_pragma(a, n->parallel, false, "") : "");
    open_tiles(n, t, last, "");
    for (int i = 0; i <= outer; i++)
        c_append(t, &n->level[i]);
    print_tile_ends(n, t, n->tiled);
    print_tile_ends(n, t, last);
    for (int i = 0; i < n->tiles.n; i++) {
        const Tile *tile = &n->tiles.at[i];
        c_line(t, tile->op, n->position, "float %s[%d];", tile->name, TILE * TILE);
        c_line(t, tile->op, n->position,
               "fx_turn_f32(%s, %s + (%s) + %s_tile + (%s) * %s_tile, %s, %s_end - %s_tile, %s_end "
               "- %s_tile);",
               tile->name, tile->ptr, tile->corner, x, tile->pitch, y, tile->pitch, x, x, y, y);
    }
    open_within_tile(n, t, n->tiled, "");
    c_append(t, &n->level[loops - 1]);
    open_within_tile(n, t, last, loops_pragma(a, 0, nest_is_wide(n), ""));
    c_append(t, &n->level[loops]);
    for (int i = 0; i < outer + 4; i++)
        loops_close(n, t);
}

// --- reductions

// A loop in chunks: `for (x_chunk …)`, with x_stop behind it.
static void open_chunks(Nest *n, CText *t, int loop, const char *pragma) {
    const char *x = expr_name(n->vars[loop]), *size = nest_size(n, loop);
    int chunk = n->lanes ? LANES_CHUNK : CHUNK;
    if (*pragma)
        c_line(t, NULL, n->position, "%s", pragma);
    c_line(t, NULL, n->position, "for (int64_t %s_chunk = 0; %s_chunk < %s; %s_chunk += %d) {", x,
           x, size, x, chunk);
    t->indent++;
    c_line(t, NULL, n->position, "const int64_t %s_stop = %s - %s_chunk < %d ? %s : %s_chunk + %d;",
           x, size, x, chunk, size, x, chunk);
    acc_part_declare(n, t);
}

static void open_in_chunk(Nest *n, CText *t, int loop, const char *pragma) {
    const char *x = expr_name(n->vars[loop]);
    if (*pragma)
        c_line(t, NULL, n->position, "%s", pragma);
    c_line(t, NULL, n->position, "for (int64_t %s = %s_chunk; %s < %s_stop; %s++) {", x, x, x, x,
           x);
    t->indent++;
}

// The second pass of argmax.
static void print_find_loops(Nest *n, CText *t) {
    int end = n->n_iter + n->n_red;
    const char *type = acc_find_is_narrow(n) ? "int32_t" : "int64_t";
    for (int i = n->n_iter; i < end; i++) {
        const char *x = expr_name(n->vars[i]);
        if (i == end - 1)
            c_line(t, NULL, n->position, "%s",
                   loops_pragma(n->k->g->arena, 0, true, acc_find_clause(n)));
        c_line(t, NULL, n->position, "for (%s %s = 0; %s < %s; %s++) {", type, x, x,
               nest_size(n, i), x);
        t->indent++;
        c_append(t, &n->level[i + 1]);
    }
    acc_find(n, t);
    for (int i = n->n_iter; i < end; i++)
        loops_close(n, t);
}

// The reduction loops; what follows them is the caller's.
static void print_reduction_loops(Nest *n, CText *t) {
    Arena *a = n->k->g->arena;
    bool simd = (!n->places || n->two_passes) && !n->recurrent && wants_vectors(n);
    int end = n->n_iter + n->n_red, last = end - 1;
    for (int i = n->n_iter; i < end; i++) {
        bool shared = i == n->n_iter && n->inside;
        const char *pragma =
            shared ? loops_pragma(a, 1, simd && i == last && !n->chunked, acc_shared_clause(n))
                   : "";
        const char *vector =
            loops_pragma(a, 0, simd, n->chunked ? acc_part_clause(n) : acc_clause(n));
        if (i == last && n->chunked) {
            open_chunks(n, t, i, pragma);
            open_in_chunk(n, t, i, vector);
        } else {
            loops_open(n, t, i, i == last && !shared ? vector : pragma);
        }
        c_append(t, &n->level[i + 1]);
    }
    c_append(t, &n->taken);
    for (int i = n->n_iter; i < end; i++) {
        loops_close(n, t);
        if (i == n->n_iter && n->chunked) {
            acc_part_add(n, t);
            loops_close(n, t);
        }
    }
}

static void print_reduction(Nest *n, CText *t) {
    Arena *a = n->k->g->arena;
    c_append(t, &n->level[n->first]);
    for (int i = n->first; i < n->n_iter; i++) {
        bool shared = i == 0 && n->parallel && !n->inside;
        loops_open(n, t, i, shared ? loops_pragma(a, n->parallel, false, "") : "");
        c_append(t, &n->level[i + 1]);
    }
    if (n->n_iter == n->first) {
        c_line(t, NULL, n->position, "{");
        t->indent++;
    }
    acc_declare(n, t);
    print_reduction_loops(n, t);
    if (n->two_passes) {
        acc_find_declare(n, t);
        print_find_loops(n, t);
    }
    acc_finish(n, t);
    c_append(t, &n->suffix);
    for (int i = n->first; i < n->n_iter || i == n->first; i++)
        loops_close(n, t);
}

static void open_lanes(Nest *n, CText *t, const char *pragma) {
    const char *x = expr_name(n->vars[n->n_iter - 1]);
    if (*pragma)
        c_line(t, NULL, n->position, "%s", pragma);
    c_line(t, NULL, n->position, "for (int64_t lane = 0; lane < lanes; lane++) {");
    t->indent++;
    c_line(t, NULL, n->position, "const int64_t %s = %s_block + lane;", x, x);
}

// Whole groups of rows: what the accumulators hold is fetched and put back once a group. Compilers
// unroll the rows, so there must be little to do in each.
static bool goes_by_rows(const Nest *n) {
    enum { MOST_OPS = 24 };
    int last = n->n_iter + n->n_red - 1, ops = 0;
    int64_t size = expr_int_or(n->sizes[last], 1);
    for (int m = 0; m < n->n; m++)
        ops += n->members[m]->body->blocks.at[0].ops.n;
    return nest_is_wide(n) && !n->places && size % ROWS == 0 && size > 0 &&
           !n->level[last].buf.len && ops <= MOST_OPS && !has_math(n);
}

static void open_rows(Nest *n, CText *t, int loop, const char *pragma) {
    const char *x = expr_name(n->vars[loop]);
    if (*pragma)
        c_line(t, NULL, n->position, "%s", pragma);
    if (n->chunked)
        c_line(t, NULL, n->position,
               "for (int64_t %s_row = %s_chunk; %s_row < %s_stop; %s_row += %d) {", x, x, x, x, x,
               ROWS);
    else
        c_line(t, NULL, n->position, "for (int64_t %s_row = 0; %s_row < %s; %s_row += %d) {", x, x,
               nest_size(n, loop), x, ROWS);
    t->indent++;
}

static void open_row(Nest *n, CText *t, int loop) {
    const char *x = expr_name(n->vars[loop]);
    c_line(t, NULL, n->position, "for (int64_t %s = %s_row; %s < %s_row + %d; %s++) {", x, x, x, x,
           ROWS, x);
    t->indent++;
}

static void print_lanes(Nest *n, CText *t) {
    Arena *a = n->k->g->arena;
    bool rows = goes_by_rows(n);
    int last = n->n_iter - 1, total = n->n_iter + n->n_red;
    const char *x = expr_name(n->vars[last]), *size = nest_size(n, last);
    int shared = n->inside ? 0 : n->parallel;
    const char *vector = nest_is_wide(n) && !n->places ? "#pragma omp simd" : "";
    for (int i = n->first; i < last; i++)
        loops_open(n, t, i, i == 0 && shared ? loops_pragma(a, shared, false, "") : "");
    if (last == 0 && shared)
        c_line(t, NULL, n->position, "%s", loops_pragma(a, 1, false, ""));
    c_line(t, NULL, n->position, "for (int64_t %s_block = 0; %s_block < %s; %s_block += %d) {", x,
           x, size, x, n->lanes);
    t->indent++;
    if (expr_int_or(n->sizes[last], 1) % n->lanes == 0)
        c_line(t, NULL, n->position, "const int64_t lanes = %d;", n->lanes);
    else
        c_line(t, NULL, n->position,
               "const int64_t lanes = %s - %s_block < %d ? %s - %s_block : %d;", size, x, n->lanes,
               size, x, n->lanes);
    for (int i = n->first; i <= last; i++)
        c_append(t, &n->level[i]);
    acc_declare(n, t);
    for (int i = n->n_iter; i < total; i++) {
        const char *pragma =
            i == n->n_iter && n->inside ? loops_pragma(a, 1, false, acc_shared_clause(n)) : "";
        if (i == total - 1 && n->chunked)
            open_chunks(n, t, i, pragma);
        if (i == total - 1 && rows)
            open_rows(n, t, i, n->chunked ? "" : pragma);
        else if (i == total - 1 && n->chunked)
            open_in_chunk(n, t, i, "");
        else
            loops_open(n, t, i, pragma);
        if (i < total - 1 || !rows)
            c_append(t, &n->level[i]);
    }
    open_lanes(n, t, vector);
    if (rows)
        open_row(n, t, total - 1);
    c_append(t, &n->level[total]);
    c_append(t, &n->taken);
    if (rows)
        loops_close(n, t);
    for (int i = 0; i < n->n_red + 1; i++) {
        loops_close(n, t);
        if (i == 1 && n->chunked) {
            acc_part_add(n, t);
            loops_close(n, t);
        }
    }
    open_lanes(n, t, vector);
    acc_finish(n, t);
    c_append(t, &n->suffix);
    for (int i = n->first; i <= n->n_iter; i++)
        loops_close(n, t);
}

void loops_print(Nest *n, CText *t) {
    if (n->tiled >= 0)
        print_tiled(n, t);
    else if (!n->n_red && !n->accs.n)
        print_pointwise(n, t);
    else if (n->lanes)
        print_lanes(n, t);
    else
        print_reduction(n, t);
}
