// loop_parse.c: a loop body back from the text under `class opN_loop_body:`. Names of values are
// only names: the body numbers them, and printing derives them again.
#include "core/inductor/sched_read.h"

#include <stdlib.h>
#include <string.h>

typedef struct Block {
    Reader *r;
    LoopBody *body;
    LoopBlock *block;
    Map values;  // name -> number of the op + 1
    Map indexes; // get_index… -> number of the index expression + 1
    Map *blocks; // number of a masked block -> its place in body->blocks + 1
} Block;

static double special_float(Reader *r, bool *found) {
    static const struct {
        const char *text;
        double v;
    } special[] = {
        {"inf", __builtin_inf()}, {"-inf", -__builtin_inf()}, {"nan", __builtin_nan("")}};
    for (int i = 0; i < COUNT(special); i++)
        if (read_try(r, special[i].text)) {
            *found = true;
            return special[i].v;
        }
    *found = false;
    return 0;
}

// A Python scalar.
static Value scalar(Reader *r) {
    if (read_try(r, "True"))
        return val_bool(true);
    if (read_try(r, "False"))
        return val_bool(false);
    if (read_try(r, "None"))
        return val_none();
    bool found;
    double special = special_float(r, &found);
    if (found)
        return val_float(special);
    const char *end;
    double f = str_double(r->p, &end);
    if (end == r->p) {
        read_fail(r, "expected a number");
        return val_none();
    }
    bool is_float = false;
    for (const char *p = r->p; p < end; p++)
        is_float = is_float || *p == '.' || *p == 'e' || *p == 'E';
    Value v = is_float ? val_float(f) : val_int(strtoll(r->p, NULL, 10));
    r->p = end;
    return v;
}

static int value(Block *b) {
    if (*b->r->p == '-' || (*b->r->p >= '0' && *b->r->p <= '9')) { // a number as it is
        LoopOp op = {.kind = LOOP_constant, .index = -1, .index2 = -1, .literal = true};
        op.value = scalar(b->r);
        op.dtype = op.value.kind == VAL_float ? DT_f32 : DT_i64;
        vec_push(b->r->arena, &b->block->ops, op);
        return b->block->ops.n - 1;
    }
    const char *name = read_word(b->r);
    int64_t at = map_get_int(&b->values, name, 0);
    if (!at && !b->r->failed)
        read_fail(b->r, "value '%s' is not defined in this block", name);
    return (int)at - 1;
}

static int index_of(Block *b) {
    const char *name = read_word(b->r);
    int64_t at = map_get_int(&b->indexes, name, 0);
    if (!at && !b->r->failed)
        read_fail(b->r, "'%s' is not an index of this block", name);
    return at ? (int)at - 1 : 0;
}

static void comma(Reader *r) {
    read_want(r, ", ");
}

static const char *mode(Reader *r) {
    return read_try(r, "None") ? NULL : read_quoted(r);
}

static void check_bounds(Block *b, LoopOp *op) {
    op->index = index_of(b);
    comma(b->r);
    op->index2 = index_of(b);
    comma(b->r);
    op->lower = read_bool(b->r);
    comma(b->r);
    op->upper = read_bool(b->r);
}

static void reduction(Block *b, LoopOp *op) {
    op->dtype = read_dtype(b->r);
    comma(b->r);
    op->src_dtype = read_dtype(b->r);
    comma(b->r);
    op->mode = read_quoted(b->r);
    comma(b->r);
    // welford_combine and the like take a tuple.
    bool tuple = read_try(b->r, "(");
    for (int i = 0; i < 4; i++) {
        op->arg[i] = value(b);
        if (!tuple || read_try(b->r, ")") || b->r->failed)
            break;
        comma(b->r);
    }
}

static void load_or_store(Block *b, LoopOp *op) {
    op->buf = read_quoted(b->r);
    comma(b->r);
    op->index = index_of(b);
    if (op->kind == LOOP_load)
        return;
    comma(b->r);
    op->arg[0] = value(b);
    if (op->kind == LOOP_store) {
        comma(b->r);
        op->mode = mode(b->r);
    }
}

static void to_dtype(Block *b, LoopOp *op) {
    op->arg[0] = value(b);
    comma(b->r);
    op->dtype = read_dtype(b->r);
    if (read_try(b->r, ", src_dtype = ") || read_try(b->r, ", "))
        op->src_dtype = read_dtype(b->r);
}

static void plain_args(Block *b, LoopOp *op) {
    for (int i = 0; i < loop_op_info[op->kind].n_args; i++) {
        if (i)
            comma(b->r);
        op->arg[i] = value(b);
    }
}

static void op_args(Block *b, LoopOp *op) {
    switch (op->kind) {
    case LOOP_load:
    case LOOP_store:
    case LOOP_store_reduction:
        load_or_store(b, op);
        break;
    case LOOP_reduction:
        reduction(b, op);
        break;
    case LOOP_constant:
        op->value = scalar(b->r);
        comma(b->r);
        op->dtype = read_dtype(b->r);
        break;
    case LOOP_index_expr:
        op->index = index_of(b);
        comma(b->r);
        op->dtype = read_dtype(b->r);
        break;
    case LOOP_to_dtype:
    case LOOP_to_dtype_bitcast:
        to_dtype(b, op);
        break;
    case LOOP_load_seed:
        op->buf = read_quoted(b->r);
        comma(b->r);
        op->number = read_int(b->r);
        break;
    case LOOP_check_bounds:
        check_bounds(b, op);
        break;
    case LOOP_scan:
    case LOOP_sort:
    case LOOP_bucketize:
        read_fail(b->r, "ops.%s is not read yet; C code has no use for it",
                  loop_op_info[op->kind].name);
        break;
    default:
        plain_args(b, op);
    }
}

static LoopOpKind kind_of(const char *name) {
    for (int k = 1; k < LOOP_n_kinds; k++)
        if (strcmp(loop_op_info[k].name, name) == 0)
            return (LoopOpKind)k;
    return LOOP_none;
}

// `ops.NAME(…)`
static void ops_call(Block *b, LoopOp *op) {
    const char *name = read_word(b->r);
    op->kind = kind_of(name);
    if (op->kind == LOOP_none && !b->r->failed) {
        read_fail(b->r, "ops.%s is not an operation of the loop IR", name);
        return;
    }
    read_want(b->r, "(");
    op_args(b, op);
    read_want(b->r, ")");
}

// `self.set_indirect0(v)`, `self.masked_subblock1(mask, other)`; get_index is no op and is handled
// before.
static void self_call(Block *b, LoopOp *op) {
    if (read_try(b->r, "set_indirect")) {
        op->kind = LOOP_set_indirect;
        op->number = read_int(b->r);
        read_want(b->r, "(");
        op->arg[0] = value(b);
    } else if (read_try(b->r, "masked_subblock")) {
        op->kind = LOOP_masked;
        int number = read_int(b->r);
        op->number = (int)map_get_int(b->blocks, arena_printf(b->r->arena, "%d", number), 0) - 1;
        if (op->number < 0)
            read_fail(b->r, "masked_subblock%d is not defined in this body", number);
        read_want(b->r, "(");
        op->arg[0] = value(b);
        comma(b->r);
        op->value = scalar(b->r);
    } else {
        read_fail(b->r, "expected set_indirect or masked_subblock after 'self.'");
    }
    read_want(b->r, ")");
}

static void statement(Block *b) {
    Reader *r = b->r;
    const char *name = read_word(r);
    read_want(r, " = ");
    if (read_try(r, "self.get_index('index")) {
        int k = read_int(r);
        if (k >= b->body->index.n)
            read_fail(r, "index%d is not defined in this body", k);
        read_want(r, "')\n");
        map_put_int(&b->indexes, name, k + 1);
        return;
    }
    LoopOp op = {.index = -1, .index2 = -1};
    if (read_try(r, "ops.")) {
        ops_call(b, &op);
    } else if (read_try(r, "self.")) {
        self_call(b, &op);
    } else {
        op.kind = LOOP_getitem;
        op.arg[0] = value(b);
        read_want(r, "[");
        op.number = read_int(r);
        read_want(r, "]");
    }
    read_want(r, "\n");
    if (r->failed)
        return;
    vec_push(r->arena, &b->block->ops, op);
    map_put_int(&b->values, name, b->block->ops.n);
}

// `def body(self, ops):` and its statements up to the return.
static void read_block(Reader *r, LoopBody *body, Map *blocks) {
    read_want(r, "    def ");
    int at = 0;
    if (!read_try(r, "body")) {
        read_want(r, "masked_subblock");
        int number = read_int(r);
        at = (int)map_get_int(blocks, arena_printf(r->arena, "%d", number), 1) - 1;
    }
    read_want(r, "(self, ops):\n");
    if (r->failed)
        return;
    Block b = {.r = r,
               .body = body,
               .block = &body->blocks.at[at],
               .values = {.arena = r->arena},
               .indexes = {.arena = r->arena},
               .blocks = blocks};
    while (!r->failed && !read_try(r, "        return ")) {
        read_want(r, "        ");
        statement(&b);
    }
    b.block->result = read_try(r, "None") ? -1 : value(&b);
    if (*r->p == '\n')
        r->p++;
}

// Masked blocks are called before they are defined: their numbers are collected first.
static void find_blocks(Reader *r, LoopBody *body, Map *blocks) {
    vec_push(r->arena, &body->blocks, (LoopBlock){.result = -1});
    vec_push(r->arena, &body->block_number, 0);
    for (const char *p = r->p; *p == ' ';) {
        static const char head[] = "    def masked_subblock";
        if (strncmp(p, head, sizeof head - 1) == 0) {
            int number = atoi(p + sizeof head - 1);
            vec_push(r->arena, &body->blocks, (LoopBlock){.result = -1});
            vec_push(r->arena, &body->block_number, number);
            map_put_int(blocks, arena_printf(r->arena, "%d", number), body->blocks.n);
        }
        const char *end = strchr(p, '\n');
        if (!end)
            break;
        p = end + 1;
    }
}

// Each masked block belongs to one call, so that the blocks reached from the body form a tree.
static void check_calls(Reader *r, LoopBody *b) {
    bool *called = ARENA_ARRAY(r->arena, b->blocks.n, bool);
    BODY_EACH (b, op) {
        if (op->kind != LOOP_masked)
            continue;
        if (op->number == 0 || called[op->number])
            read_fail(r, "masked_subblock%d is called twice", b->block_number.at[op->number]);
        called[op->number] = true;
    }
}

static void collect_indirect(Reader *r, LoopBody *b) {
    int n = 0;
    BODY_EACH (b, op)
        if (op->kind == LOOP_set_indirect && op->number >= n)
            n = op->number + 1;
    if (n > 4096)
        read_fail(r, "indirect%d: more than 4096 indirect indexes", n - 1);
    for (int i = 0; i < n && !r->failed; i++) {
        const Expr *symbol = sym_symbol(r->sym, arena_printf(r->arena, "indirect%d", i));
        vec_push(r->arena, &b->indirect, symbol);
    }
}

LoopBody *read_loop_body(Reader *r, int n_iter) {
    LoopBody *b = ARENA_NEW(r->arena, LoopBody);
    read_want(r, "    var_ranges = ");
    read_ranges(r, &b->vars, &b->sizes, &b->n_vars);
    read_want(r, "\n");
    b->n_iter = n_iter < b->n_vars ? n_iter : b->n_vars;
    while (read_try(r, "    index")) {
        if (read_int(r) != b->index.n)
            read_fail(r, "expected index%d", b->index.n);
        read_want(r, " = ");
        vec_push(r->arena, &b->index, read_expr(r));
        read_want(r, "\n");
    }
    Map blocks = {.arena = r->arena};
    find_blocks(r, b, &blocks);
    while (!r->failed && read_at(r, "    def "))
        read_block(r, b, &blocks);
    if (!r->failed)
        check_calls(r, b);
    if (!r->failed)
        collect_indirect(r, b);
    return r->failed ? NULL : b;
}
