// loops.c: loop IR before and after fusion: a scheduler node a fold, with what it reads and writes
// and its body, one operation a line. The brief spelling writes `mul = load * 0.5` for ops.mul; the
// full one is ir_pre_fusion.txt or ir_post_fusion.txt to the byte.
#include "views/brief.h"

#include <string.h>

enum { OPEN_NODES = 12, NAME_MAX = 22 };

typedef enum RowKind { ROW_node, ROW_single, ROW_reads, ROW_writes, ROW_op, ROW_block } RowKind;

typedef struct Row {
    RowKind kind;
    const SchedNode *node; // that the row is about; a fused node's member if ROW_single
    int top;               // position in schedule->nodes
    int block, op;         // ROW_op: of its body
    int depth;             // 1 inside a fused node's member
} Row;

typedef struct Body {
    const char ***name; // by block and op: what its value is called
    int *uses;          // by FX node id: operations of the body with that origin
} Body;

typedef struct Doc {
    VEC(Row) rows;
    bool *open;  // by op number (single nodes) and, after them, by position (fused ones)
    Body *body;  // by op number; name NULL until first opened
    int *row_of; // by op number
    int n_ops;
    const char **full; // the full text's lines
    IntVec full_items; // op number of each
    int n_full;
} Doc;

// ---- names of values, as loop_body.py's tracer gives them: the op's name, numbered from its
// second use

static const char *base_name(const LoopOp *op) {
    if (op->kind == LOOP_getitem)
        return "getitem";
    return loop_op_info[op->kind].name;
}

static void name_values(ViewCtx *c, Doc *d, const SchedNode *n) {
    Body *b = &d->body[n->op->number];
    const LoopBody *body = n->body;
    int n_graph =
        n->op && c->art->schedule->module->graph ? c->art->schedule->module->graph->by_id.n : 0;
    if (b->name || !body)
        return;
    b->name = ARENA_ARRAY(c->arena, body->blocks.n, const char **);
    b->uses = ARENA_ARRAY(c->arena, n_graph + 1, int);
    for (int k = 0; k < body->blocks.n; k++) {
        const LoopBlock *block = &body->blocks.at[k];
        Map seen = {.arena = c->arena};
        b->name[k] = ARENA_ARRAY(c->arena, block->ops.n + 1, const char *);
        for (int i = 0; i < block->ops.n; i++) {
            const LoopOp *op = &block->ops.at[i];
            const char *base = base_name(op);
            int64_t used = map_get_int(&seen, base, 0);
            b->name[k][i] = used ? arena_printf(c->arena, "%s_%lld", base, (long long)used) : base;
            map_put_int(&seen, base, used + 1);
            for (int o = 0; o < op->n_origins; o++)
                if (op->origins[o] >= 0 && op->origins[o] < n_graph && op->kind != LOOP_constant)
                    b->uses[op->origins[o]]++;
        }
    }
}

// ---- rows

static bool is_silent(const LoopOp *op) {
    return op->kind == LOOP_constant; // written where it is used
}

static void add_body(ViewCtx *c, Doc *d, const SchedNode *n, int top, int depth) {
    if (!n->body)
        return;
    name_values(c, d, n);
    for (int k = 0; k < n->body->blocks.n; k++) {
        if (k)
            vec_push(c->arena, &d->rows, (Row){ROW_block, n, top, k, 0, depth});
        for (int i = 0; i < n->body->blocks.at[k].ops.n; i++)
            if (!is_silent(&n->body->blocks.at[k].ops.at[i]))
                vec_push(c->arena, &d->rows, (Row){ROW_op, n, top, k, i, depth + (k > 0)});
    }
}

static bool *is_open(Doc *d, const SchedNode *n, int top) {
    return &d->open[n->op && !n->snodes.n ? n->op->number : d->n_ops + top];
}

static void add_deps(ViewCtx *c, Doc *d, const SchedNode *n, int top) {
    if (n->reads.n)
        vec_push(c->arena, &d->rows, (Row){ROW_reads, n, top, 0, 0, 0});
    if (n->writes.n)
        vec_push(c->arena, &d->rows, (Row){ROW_writes, n, top, 0, 0, 0});
}

static void build_rows(ViewCtx *c, Doc *d) {
    const Schedule *s = c->art->schedule;
    d->rows.n = 0;
    for (int i = 0; i < d->n_ops; i++)
        d->row_of[i] = -1;
    for (int i = 0; i < s->nodes.n; i++) {
        const SchedNode *n = s->nodes.at[i];
        int head = d->rows.n;
        vec_push(c->arena, &d->rows, (Row){ROW_node, n, i, 0, 0, 0});
        bool open = *is_open(d, n, i);
        if (n->op)
            d->row_of[n->op->number] = head;
        if (open)
            add_deps(c, d, n, i);
        for (int k = 0; k < n->snodes.n; k++) {
            const SchedNode *m = n->snodes.at[k];
            d->row_of[m->op->number] = open ? d->rows.n : head;
            if (!open)
                continue;
            vec_push(c->arena, &d->rows, (Row){ROW_single, m, i, 0, 0, 0});
            if (*is_open(d, m, i))
                add_body(c, d, m, i, 1);
        }
        if (open && !n->snodes.n)
            add_body(c, d, n, i, 0);
    }
}

static void read_full(ViewCtx *c, Doc *d) {
    Buf b = {.arena = c->arena};
    d->full_items.arena = c->arena;
    schedule_print(&b, c->art->schedule, &d->full_items);
    d->full = split_lines(c->arena, buf_str(&b), &d->n_full);
    for (int i = d->n_full - 1; i >= 0; i--)
        if (i < d->full_items.n && d->full_items.at[i] >= 0 && d->full_items.at[i] < d->n_ops)
            d->row_of[d->full_items.at[i]] = i;
}

static bool loops_open(ViewCtx *c, Buf *why) {
    if (!c->art || c->art->kind != ART_schedule) {
        buf_puts(why, "this stage has no loop IR");
        return false;
    }
    const Schedule *s = c->art->schedule;
    Doc *d = ARENA_NEW(c->arena, Doc);
    c->doc = d;
    d->n_ops = c->art->n_items > s->module->ops.n ? c->art->n_items : s->module->ops.n;
    for (int i = 0; i < s->module->ops.n; i++)
        if (s->module->ops.at[i]->number >= d->n_ops)
            d->n_ops = s->module->ops.at[i]->number + 1;
    d->open = ARENA_ARRAY(c->arena, d->n_ops + s->nodes.n + 1, bool);
    d->body = ARENA_ARRAY(c->arena, d->n_ops + 1, Body);
    d->row_of = ARENA_ARRAY(c->arena, d->n_ops + 1, int);
    for (int i = 0; i < s->nodes.n && s->nodes.n <= OPEN_NODES; i++)
        *is_open(d, s->nodes.at[i], i) = s->nodes.at[i]->kind != SCHED_extern;
    if (c->opt.full)
        read_full(c, d);
    else
        build_rows(c, d);
    return true;
}

static int loops_count(ViewCtx *c) {
    const Doc *d = c->doc;
    return c->opt.full ? d->n_full : d->rows.n;
}

static int loops_row_of(ViewCtx *c, Item item) {
    const Doc *d = c->doc;
    if (!c->art || item.artifact != c->art->id || item.id < 0 || item.id >= d->n_ops)
        return -1;
    return d->row_of[item.id];
}

// ---- text of one operation

static const char *value_name(const Doc *d, const Row *r, int i, Arena *a) {
    const LoopBlock *block = &r->node->body->blocks.at[r->block];
    if (i < 0 || i >= block->ops.n)
        return "?";
    const LoopOp *op = &block->ops.at[i];
    if (op->kind != LOOP_constant)
        return d->body[r->node->op->number].name[r->block][i];
    Buf b = {.arena = a};
    val_print(&b, &op->value, NULL, NULL);
    return buf_str(&b);
}

static const char *index_text(const Row *r, int i, Arena *a) {
    return i >= 0 && i < r->node->body->index.n ? sym_str(a, r->node->body->index.at[i]) : "";
}

static const char *call_text(const Doc *d, const Row *r, const LoopOp *op, Arena *a) {
    Buf b = {.arena = a};
    const LoopOpInfo *info = &loop_op_info[op->kind];
    bool simple = info->cls == LC_ARITH || info->cls == LC_COMPARE || info->cls == LC_LOGIC;
    if (simple && info->c_expr[0] && !strstr(info->c_expr, "_T") && !strstr(info->c_expr, "fx_")) {
        for (const char *p = info->c_expr; *p; p++)
            if (*p == '$' && p[1] >= '0' && p[1] <= '2')
                buf_puts(&b, value_name(d, r, op->arg[*++p - '0'], a));
            else
                buf_putc(&b, *p);
        return buf_str(&b);
    }
    buf_printf(&b, "%s(", info->name);
    for (int i = 0; i < info->n_args; i++)
        buf_printf(&b, "%s%s", i ? ", " : "", value_name(d, r, op->arg[i], a));
    buf_putc(&b, ')');
    return buf_str(&b);
}

// `name = text`, or a store's `buf[index] = value`.
static void op_text(const Doc *d, const Row *r, const LoopOp *op, Arena *a, const char **left,
                    const char **right) {
    *left = value_name(d, r, r->op, a);
    switch (op->kind) {
    case LOOP_load:
        *right = arena_printf(a, "%s[%s]", op->buf, index_text(r, op->index, a));
        return;
    case LOOP_store:
    case LOOP_store_reduction:
        *left = arena_printf(a, "%s[%s]", op->buf, index_text(r, op->index, a));
        *right = arena_printf(a, "%s%s%s", op->mode ? op->mode : "", op->mode ? " " : "",
                              value_name(d, r, op->arg[0], a));
        return;
    case LOOP_reduction:
        *right = arena_printf(a, "%s(%s)", op->mode ? op->mode : "reduce",
                              value_name(d, r, op->arg[0], a));
        return;
    case LOOP_index_expr:
        *right = index_text(r, op->index, a);
        return;
    case LOOP_to_dtype:
        *right =
            arena_printf(a, "%s(%s)", dtype_info[op->dtype].abbr, value_name(d, r, op->arg[0], a));
        return;
    case LOOP_getitem:
        *right = arena_printf(a, "%s[%d]", value_name(d, r, op->arg[0], a), op->number);
        return;
    case LOOP_set_indirect:
        *left = arena_printf(a, "indirect%d", op->number);
        *right = value_name(d, r, op->arg[0], a);
        return;
    case LOOP_check_bounds:
        *left = "check";
        *right =
            arena_printf(a, "%s%s%s", op->lower ? "0 <= " : "", index_text(r, op->index, a),
                         op->upper ? arena_printf(a, " < %s", index_text(r, op->index2, a)) : "");
        return;
    case LOOP_masked:
        *right =
            arena_printf(a, "%s ? block %d : other", value_name(d, r, op->arg[0], a), op->number);
        return;
    default:
        *right = call_text(d, r, op, a);
    }
}

// How the operation is linked to the cursor's thing, through the FX nodes that it came from.
static int op_strength(const ViewCtx *c, const Doc *d, const Row *r, const LoopOp *op) {
    int best = 0;
    const int *uses = d->body[r->node->op->number].uses;
    bool moves = loop_op_info[op->kind].cls == LC_MEMORY;
    for (int i = 0; i < op->n_origins && c->lit; i++) {
        int id = op->origins[i];
        if (id < 0 || id >= c->n_lit || !c->lit[id])
            continue;
        int s = c->lit[id];
        if (s == 3 && (uses[id] > 1 || op->n_origins > 1 || moves))
            s = 2; // one of several operations of that node
        best = s > best ? s : best;
    }
    return best;
}

// ---- lines

static const char *kind_text(Arena *a, const SchedNode *n) {
    if (n->kind == SCHED_outer_loop)
        return arena_printf(a, "outer loop %s", n->n_iter ? sym_str(a, n->iter[0]) : "");
    if (n->snodes.n)
        return "fused";
    if (n->kind == SCHED_extern)
        return arena_printf(a, "extern %s", brief_kernel(n->op ? n->op->kernel : NULL));
    if (n->kind == SCHED_nop)
        return "no code";
    if (n->op && n->op->loop_kind && !strcmp(n->op->loop_kind, "WelfordReduction"))
        return "Welford";
    if (n->op && n->op->reduction)
        return arena_printf(a, "Reduction %s", n->op->reduction);
    return n->op && n->op->loop_kind ? n->op->loop_kind : "";
}

static const char *shape_text(Arena *a, const SchedNode *n) {
    Buf b = {.arena = a};
    if (n->kind == SCHED_extern && n->outputs.n)
        return brief_layout(a, n->outputs.at[0]->ir->layout);
    if (n->n_iter || n->n_red)
        sym_print_list(&b, n->iter, n->n_iter);
    if (n->n_red) {
        buf_puts(&b, " r");
        sym_print_list(&b, n->red, n->n_red);
    }
    return buf_str(&b);
}

static void head_line(ViewCtx *c, Doc *d, const Row *r, Line *l) {
    const SchedNode *n = r->node;
    bool single = r->kind == ROW_single;
    if (n->snodes.n || n->body)
        l->fold = *is_open(d, n, r->top) ? FOLD_open : FOLD_closed;
    int number = n->op ? n->op->number : n->snodes.n ? n->snodes.at[0]->op->number : -1;
    l->item = (Item){c->art->id, number};
    if (single)
        line_add(l, ST_text, "  ");
    l->name = l->n;
    int width = utf8_columns(n->name);
    if (width > NAME_MAX)
        line_cell(l, single ? ST_text : ST_name, n->name, NAME_MAX);
    else
        line_add(l, single ? ST_text : ST_name, n->name);
    line_pad(l, single ? 10 : 8, true);
    line_printf(l, ST_dim, " %s", kind_text(l->arena, n));
    line_printf(l, ST_type, " %s", shape_text(l->arena, n));
    const char *what = brief_what(l->arena, c->art->schedule, n);
    if (!single)
        line_printf(l, ST_text, "  %s", what);
    else
        line_printf(l, ST_dim, "  %s", what);
}

// A fused node marks the strongest link of its members.
static int fused_strength(const ViewCtx *c, const SchedNode *n) {
    int best = 0;
    for (int k = 0; k < n->snodes.n && c->lit && best < 2; k++)
        for (int i = 0; n->snodes.at[k]->op && i < n->snodes.at[k]->op->origins.n; i++) {
            int id = n->snodes.at[k]->op->origins.at[i];
            if (id >= 0 && id < c->n_lit && c->lit[id] > best)
                best = c->lit[id] > 2 ? 2 : c->lit[id];
        }
    return best;
}

static void deps_line(ViewCtx *c, const Row *r, Line *l) {
    const DepVec *deps = r->kind == ROW_reads ? &r->node->reads : &r->node->writes;
    Sym *sym = c->art->schedule->module->sym;
    int64_t total = 0;
    line_add(l, ST_dim, r->kind == ROW_reads ? "  reads  " : "  writes ");
    l->frozen = 9;
    for (int i = 0; i < deps->n; i++) {
        line_add(l, ST_text, deps->at[i].buf);
        line_add(l, ST_text, " ");
        const IrBuffer *b = map_get(&c->art->schedule->module->buffers, deps->at[i].buf);
        total += b ? bytes_of_layout(sym, b->layout) : 0;
    }
    if (total)
        line_printf(l, ST_dim, "  %s", text_bytes(l->arena, total));
    l->passive = true;
}

static void loops_line(ViewCtx *c, int row, Line *l) {
    Doc *d = c->doc;
    if (c->opt.full) {
        line_code(l, d->full[row], python_keywords, "#");
        if (row < d->full_items.n && d->full_items.at[row] >= 0)
            l->item = (Item){c->art->id, d->full_items.at[row]};
        return;
    }
    const Row *r = &d->rows.at[row];
    switch (r->kind) {
    case ROW_node:
        head_line(c, d, r, l);
        if (r->node->snodes.n)
            l->strength = fused_strength(c, r->node);
        return;
    case ROW_single:
        head_line(c, d, r, l);
        return;
    case ROW_reads:
    case ROW_writes:
        deps_line(c, r, l);
        break;
    case ROW_block:
        line_printf(l, ST_dim, "%*sblock %d, where the mask holds", 2 + 2 * r->depth, "",
                    r->node->body->block_number.n > r->block
                        ? r->node->body->block_number.at[r->block]
                        : r->block);
        break;
    case ROW_op: {
        const LoopOp *op = &r->node->body->blocks.at[r->block].ops.at[r->op];
        const char *left, *right = "";
        op_text(d, r, op, l->arena, &left, &right);
        line_printf(l, ST_text, "%*s", 2 + 2 * r->depth, "");
        l->name = l->n;
        line_add(l, ST_text, left);
        line_pad(l, 12 + 2 * r->depth, true);
        line_printf(l, ST_dim, "= %s", right);
        l->strength = op_strength(c, d, r, op);
        break;
    }
    }
    int number = r->node->op         ? r->node->op->number
                 : r->node->snodes.n ? r->node->snodes.at[0]->op->number
                                     : -1;
    l->owner = (Item){c->art->id, number};
}

static void loops_title(ViewCtx *c, Buf *left, Buf *right) {
    const Unit *u = pipeline_owner(session_pipeline(c->session), c->unit, c->art->stage);
    buf_printf(left, "%c %s", stage_info[c->art->stage].key, stage_info[c->art->stage].name);
    if (pipeline_n_units(session_pipeline(c->session)) > 1)
        buf_printf(left, " · %s", u->kind);
    int nodes = c->art->schedule->nodes.n;
    buf_printf(right, "%d node%s", nodes, nodes == 1 ? "" : "s");
}

static void loops_node(ViewCtx *c, int row, Buf *out) {
    const Doc *d = c->doc;
    if (c->opt.full) {
        buf_puts(out, d->full[row]);
        return;
    }
    const Row *r = &d->rows.at[row];
    const SchedNode *n = r->node;
    Sym *sym = c->art->schedule->module->sym;
    buf_printf(out, "%s  %s %s  %s", n->name, kind_text(c->tmp, n), shape_text(c->tmp, n),
               brief_what(c->tmp, c->art->schedule, n));
    for (int i = 0; i < n->outputs.n && i < 3; i++) {
        const SchedBuffer *b = n->outputs.at[i];
        buf_printf(out, "  %s %s %s  %d user%s", b->ir->name, brief_layout(c->tmp, b->ir->layout),
                   text_bytes(c->tmp, bytes_of_layout(sym, b->ir->layout)), b->users.n,
                   b->users.n == 1 ? "" : "s");
    }
}

static bool loops_toggle(ViewCtx *c, int row, const char **command) {
    Doc *d = c->doc;
    (void)command;
    if (c->opt.full || row >= d->rows.n)
        return false;
    const Row *r = &d->rows.at[row];
    if (!r->node->snodes.n && !r->node->body)
        return false;
    bool *open = is_open(d, r->node, r->top);
    *open = !*open;
    build_rows(c, d);
    return true;
}

static const char *loops_enter(ViewCtx *c, int row) {
    const Doc *d = c->doc;
    if (c->opt.full)
        return NULL;
    const Row *r = &d->rows.at[row];
    return r->node->snodes.n || r->node->body ? NULL : "view node";
}

const View view_loops = {
    .name = "loops",
    .doc = "loop IR: scheduler nodes with their bodies, before or after fusion",
    .flags = VIEW_stage,
    .stage = -1,
    .open = loops_open,
    .count = loops_count,
    .line = loops_line,
    .row_of = loops_row_of,
    .title = loops_title,
    .node = loops_node,
    .toggle = loops_toggle,
    .enter = loops_enter,
};
