// graph.c: an FX graph, one node a line: the name first, in a column of its own, then the op and
// its arguments in the brief spelling, the type at the right. Sections tell the line of the model
// that the nodes come from. The full spelling is PyTorch's text. Of a training graph the halves are
// set apart by a rule, and the gutter tells what is of backward, saved for it, or computed again.
#include "views/brief.h"

#include <string.h>

enum {
    FOLD_PLACEHOLDERS = 4,
    NAME_MAX = 16,
    TYPE_ROOM = 62,    // columns from which on there is a type
    TYPE_COLS = 22,
    TYPE_AT = 64,      // its column at most
    NUMBERS_ROOM = 94, // columns from which on bytes and operations stand behind it
    BYTES_COLS = 10,
    FLOPS_COLS = 12,
    TIGHT = 2,         // columns less for bytes where there is no room for a type
};
// What stands behind the name.
enum { FORM_call, FORM_numbers, FORMS };

typedef enum RowKind { ROW_node, ROW_place, ROW_inputs, ROW_nested, ROW_half } RowKind;

typedef struct Row {
    RowKind kind;
    const Node *node; // the node; of a place or fold, its first one
    int hidden;       // nodes folded away under it
    int depth;        // of a node of a nested graph: how many graphs it lies in
} Row;

typedef struct Doc {
    VEC(Row) rows;
    int *row_of;  // by node id: the row that shows it, -1
    bool *closed; // by node id of a section's first node
    Map open;     // nodes that hold a nested graph which is shown
    bool inputs_open;
    int n_inputs, n_tangents;
    int name_cols;
    const uint8_t *half; // Half by node id; NULL: no training
    int of_half[3];      // calls in each
    bool ruled;          // both stand in this graph, one behind the other
    const uint8_t *kept; // by node id, of the graph that is parted: KEPT_*; NULL
} Doc;

enum { KEPT_not, KEPT_saved, KEPT_again };

static bool same_place(const StackFrame *a, const StackFrame *b) {
    if (a == b)
        return true;
    return a && b && a->line == b->line && a->file && b->file && !strcmp(a->file, b->file);
}

static const Graph *nested_in(const Node *n) {
    return n->op == FX_get_attr ? value_graph(&n->val) : NULL;
}

// The nodes of the graph that an attribute holds, under it.
static void nested_rows(ViewCtx *c, Doc *d, const Node *holder, int depth) {
    const Graph *g = nested_in(holder);
    if (!g || !map_find_id(&d->open, (uintptr_t)holder))
        return;
    for (const Node *n = g->first; n; n = n->next) {
        vec_push(c->arena, &d->rows, (Row){ROW_nested, n, 0, depth});
        nested_rows(c, d, n, depth + 1);
    }
}

static void build_rows(ViewCtx *c, Doc *d) {
    const Graph *g = c->art->graph;
    const StackFrame *place = NULL;
    bool closed = false;
    uint8_t half = HALF_none;
    d->rows.n = 0;
    for (const Node *n = g->first; n; n = n->next) {
        if (n->op == FX_placeholder && !d->inputs_open && d->n_inputs > FOLD_PLACEHOLDERS) {
            if (!d->rows.n)
                vec_push(c->arena, &d->rows, (Row){ROW_inputs, n, d->n_inputs, 0});
            d->row_of[n->id] = 0;
            continue;
        }
        if (n->op == FX_placeholder && n == g->first && d->n_inputs > FOLD_PLACEHOLDERS)
            vec_push(c->arena, &d->rows, (Row){ROW_inputs, n, 0, 0});
        if (d->half && n->op != FX_placeholder && n->op != FX_output && d->half[n->id] != half &&
            d->ruled) {
            half = d->half[n->id];
            place = NULL;
            closed = false;
            vec_push(c->arena, &d->rows, (Row){ROW_half, n, 0, 0});
        }
        if (n->op != FX_placeholder && n->op != FX_output && n->stack &&
            !same_place(n->stack, place)) {
            place = n->stack;
            closed = d->closed[n->id];
            vec_push(c->arena, &d->rows, (Row){ROW_place, n, 0, 0});
        }
        if (closed && n->op != FX_output) {
            vec_last(&d->rows).hidden++;
            d->row_of[n->id] = d->rows.n - 1;
            continue;
        }
        d->row_of[n->id] = d->rows.n;
        vec_push(c->arena, &d->rows, (Row){ROW_node, n, 0, 0});
        nested_rows(c, d, n, 1);
    }
}

static bool is_tangent(const Node *n) {
    return n->op == FX_placeholder && n->target && str_starts(n->target, "tangents_");
}

// Of the graph that is parted: what is saved, what is computed again.
static const uint8_t *kept_of(ViewCtx *c) {
    const PartitionResult *r = c->art->partition;
    if (!r)
        return NULL;
    uint8_t *kept = ARENA_ARRAY(c->arena, c->art->graph->by_id.n + 1, uint8_t);
    for (int i = 0; i < r->n_values; i++)
        kept[r->values[i].node] = r->values[i].recomputed ? KEPT_again : KEPT_saved;
    return kept;
}

static void find_halves(ViewCtx *c, Doc *d) {
    const Unit *u = pipeline_owner(session_pipeline(c->session), c->unit, c->art->stage);
    bool training = u->forward || u->parent;
    d->half = training ? session_halves(c->art->graph, c->arena) : NULL;
    d->kept = kept_of(c);
    GRAPH_EACH (c->art->graph, n)
        if (d->half && n->op != FX_placeholder && n->op != FX_output)
            d->of_half[d->half[n->id]]++;
    d->ruled = u->forward && d->of_half[HALF_forward] && d->of_half[HALF_backward];
}

static bool graph_view_open(ViewCtx *c, Buf *why) {
    if (!c->art || c->art->kind != ART_graph) {
        buf_puts(why, "this stage has no graph");
        return false;
    }
    const Graph *g = c->art->graph;
    Doc *d = ARENA_NEW(c->arena, Doc);
    c->doc = d;
    d->row_of = ARENA_ARRAY(c->arena, g->by_id.n + 1, int);
    d->closed = ARENA_ARRAY(c->arena, g->by_id.n + 1, bool);
    d->open.arena = c->arena;
    d->inputs_open = c->opt.full;
    for (int i = 0; i < g->by_id.n; i++)
        d->row_of[i] = -1;
    find_halves(c, d);
    for (const Node *n = g->first; n; n = n->next) {
        d->n_inputs += n->op == FX_placeholder;
        d->n_tangents += is_tangent(n);
        int w = utf8_columns(n->name);
        if (w > d->name_cols && n->op != FX_placeholder)
            d->name_cols = w;
    }
    if (d->name_cols > NAME_MAX)
        d->name_cols = NAME_MAX;
    build_rows(c, d);
    return true;
}

static int graph_view_count(ViewCtx *c) {
    return ((Doc *)c->doc)->rows.n;
}

static int graph_view_row_of(ViewCtx *c, Item item) {
    const Doc *d = c->doc;
    if (!c->art || item.artifact != c->art->id || item.id < 0 || item.id >= c->art->graph->by_id.n)
        return -1;
    return d->row_of[item.id];
}

static StyleId ink_of(const Node *n) {
    if (n->flags & NODE_opaque)
        return ST_warn;
    return n->flags & NODE_backward ? ST_bw : ST_text;
}

// Space unfolds what it holds.
static void nested_line(const Node *n, Line *l) {
    const Graph *g = nested_in(n);
    int ops = graph_ops(g);
    line_printf(l, ST_text, "graph  %d op%s", ops, ops == 1 ? "" : "s");
}

// The type, bytes of what it makes, and operations.
static void put_numbers(const Node *n, const char *type, Line *l) {
    int64_t bytes = bytes_of_meta(n->graph->sym, node_tensor(n));
    double flops = session_flops(n);
    int at = line_columns(l), tight = *type ? 0 : TIGHT;
    line_add(l, ST_type, type);
    if (!bytes && flops <= 0)
        return;
    if (!tight)
        line_pad(l, at + TYPE_COLS - 1, false);
    line_right(l, ST_number, bytes ? text_bytes(l->arena, bytes) : "", BYTES_COLS - tight);
    if (flops > 0)
        line_right(l, ST_dim, text_flops(l->arena, flops), FLOPS_COLS);
}

// Op and arguments, cut in front of the types' column if there is one to keep free: 0: none.
// Scrolled sideways they are whole.
static void call_words(const ViewCtx *c, const Node *n, int column, Line *l) {
    const char *args = arena_printf(l->arena, " %s", brief_args(l->arena, n));
    line_add(l, ink_of(n), n->op == FX_output ? "return" : brief_target(l->arena, n));
    int room = column - 1 - line_columns(l);
    if (column && room > 0 && utf8_columns(args) > room && !c->opt.left && c->opt.cols < VIEW_UNCUT)
        line_cell(l, ST_dim, args, room);
    else
        line_add(l, ST_dim, args);
}

static void brief_line(ViewCtx *c, const Doc *d, const Node *n, int depth, Line *l) {
    const char *type = nested_in(n) ? "" : brief_value_type(l->arena, &n->val);
    bool typed = c->opt.cols >= TYPE_ROOM && *type, counted = c->opt.cols >= NUMBERS_ROOM;
    // The types stand in a column of their own, not at the far edge of a wide pane.
    int behind = TYPE_COLS + (counted ? BYTES_COLS + FLOPS_COLS : 0);
    int column = c->opt.cols - behind < TYPE_AT ? c->opt.cols - behind : TYPE_AT;
    if (depth)
        line_printf(l, ST_dim, "%*s", 2 * depth, "");
    line_cell(l, ink_of(n), n->name, d->name_cols);
    l->name = depth ? 1 : 0;
    bool numbers = c->opt.alter == FORM_numbers && n->op != FX_output && !nested_in(n);
    if (!numbers || typed)
        line_add(l, ST_text, "  ");
    l->frozen = 2 * depth + d->name_cols + 2;
    if (numbers) { // in place of the call
        put_numbers(n, typed ? type : "", l);
        return;
    }
    if (n->op == FX_placeholder) {
        line_add(l, ST_dim, is_tangent(n) ? "tangent" : "input");
    } else if (nested_in(n)) {
        nested_line(n, l);
    } else {
        call_words(c, n, counted && typed ? column : 0, l);
    }
    if (n->flags & NODE_opaque)
        line_add(l, ST_warn, "  unknown op: shown, not run");
    if (!typed && n->op != FX_placeholder)
        return;
    line_pad(l, n->op == FX_placeholder && !typed ? d->name_cols + 9 : column, true);
    line_add(l, ST_text, " ");
    if (counted)
        put_numbers(n, type, l);
    else
        line_add(l, ST_type, type);
}

static void full_line(const Node *n, Line *l) {
    Buf b = {.arena = l->arena};
    node_print(&b, n, &fx_style_log);
    const char *text = buf_str(&b);
    size_t name = strlen(n->name);
    bool named = !strncmp(text, n->name, name);
    if (named) {
        line_add(l, ink_of(n), arena_strdup(l->arena, n->name));
        l->name = 0;
        l->frozen = (int)name;
    }
    for (const char *p = text + (named ? name : 0); *p;) { // one row a node whatever it prints
        size_t len = strcspn(p, "\n");
        line_printf(l, ST_text, "%.*s", (int)len, p);
        p += len + (p[len] == '\n');
    }
}

// S saved for backward, R computed again there, b of backward. In backward's own graph all is of
// backward but what is computed again.
static void put_sign(const ViewCtx *c, const Doc *d, const Node *n, Line *l) {
    const Unit *u = pipeline_owner(session_pipeline(c->session), c->unit, c->art->stage);
    int kept = d->kept ? d->kept[n->id] : KEPT_not;
    bool again = u->parent && u == u->parent->backward;
    if (n->op == FX_output || !d->half)
        return;
    l->sign_style = ST_dim;
    if (kept)
        l->sign = kept == KEPT_saved ? "S" : "R";
    else if (again)
        l->sign = n->op == FX_call_function && n->flags & NODE_forward ? "R" : NULL;
    else if (d->half[n->id] == HALF_backward && d->of_half[HALF_forward])
        l->sign = "b";
}

static void half_line(const Doc *d, const Node *n, Line *l) {
    static const char *const names[] = {"", "forward", "backward"};
    Half h = (Half)d->half[n->id];
    l->kind = LINE_section;
    line_printf(l, ST_head_focus, "%s", names[h]);
    line_printf(l, ST_dim, "  %d ops", d->of_half[h]);
    if (h == HALF_backward)
        line_printf(l, ST_dim, " from %d tangent%s   %% to the forward op", d->n_tangents,
                    d->n_tangents == 1 ? "" : "s");
}

static void graph_view_line(ViewCtx *c, int row, Line *l) {
    const Doc *d = c->doc;
    const Row *r = &d->rows.at[row];
    if (r->kind == ROW_half) {
        half_line(d, r->node, l);
        return;
    }
    if (r->kind == ROW_node || r->kind == ROW_nested) {
        if (r->kind == ROW_node) {
            l->item = (Item){c->art->id, r->node->id};
            put_sign(c, d, r->node, l);
        }
        if (nested_in(r->node))
            l->fold = map_find_id(&d->open, (uintptr_t)r->node) ? FOLD_open : FOLD_closed;
        if (c->opt.full && !r->depth)
            full_line(r->node, l);
        else
            brief_line(c, d, r->node, r->depth, l);
        return;
    }
    l->fold = r->hidden ? FOLD_closed : FOLD_open;
    if (r->kind == ROW_inputs) {
        line_printf(l, ST_dim, "%d inputs", d->n_inputs - d->n_tangents);
        if (d->n_tangents)
            line_printf(l, ST_dim, " and %d tangent%s", d->n_tangents,
                        d->n_tangents == 1 ? "" : "s");
        return;
    }
    l->kind = LINE_section;
    line_add(l, ST_dim, brief_place(l->arena, r->node->stack));
    if (r->hidden)
        line_printf(l, ST_dim, "  %d nodes", r->hidden);
    else if (r->node->stack->code && c->opt.cols >= TYPE_ROOM)
        line_printf(l, ST_comment, "  %s", r->node->stack->code);
}

static void graph_view_title(ViewCtx *c, Buf *left, Buf *right) {
    const Graph *g = c->art->graph;
    buf_printf(left, "%c %s", stage_info[c->art->stage].key, stage_info[c->art->stage].name);
    if (c->art->pass && c->step >= 0)
        buf_printf(left, " · %s%s", c->art->pass, c->art->changed ? "" : " (no change)");
    if (c->rewrite >= 0)
        buf_printf(left, " · rewrite %d", c->rewrite);
    const Unit *u = pipeline_owner(session_pipeline(c->session), c->unit, c->art->stage);
    if (pipeline_n_units(session_pipeline(c->session)) > 1)
        buf_printf(left, " · %s", u->kind);
    int ops = graph_ops(g);
    buf_printf(right, "%d op%s", ops, ops == 1 ? "" : "s");
}

static Half half_at(const ViewCtx *c, const Node *n) {
    const Doc *d = c->doc;
    return d->half && n->graph == c->art->graph ? (Half)d->half[n->id] : HALF_none;
}

// What training has to say of a node: saved, computed again, whose gradient.
static void training_words(ViewCtx *c, const Node *n, Buf *out) {
    const Doc *d = c->doc;
    int kept = d->kept && n->graph == c->art->graph ? d->kept[n->id] : KEPT_not;
    if (kept)
        buf_puts(out, kept == KEPT_saved ? "  │ saved for backward" : "  │ computed again there");
    if (is_tangent(n))
        buf_puts(out, "  │ gradient of an output, given to backward");
    if (half_at(c, n) != HALF_backward || n->op != FX_call_function)
        return;
    Twins t = session_twins(c->session, c->unit, c->art, n->id, c->art, c->tmp);
    if (t.by)
        buf_printf(out, "  │ %s %s", t.by->kind == DERIVED_sum ? "adds up behind" : "derivative of",
                   t.by->op ? t.by->op->name : "a call");
}

static void graph_view_node(ViewCtx *c, int row, Buf *out) {
    const Row *r = &((Doc *)c->doc)->rows.at[row];
    const Node *n = r->node;
    if (r->kind == ROW_inputs) {
        buf_printf(out, "%d inputs of the graph; Space unfolds them", ((Doc *)c->doc)->n_inputs);
        return;
    }
    if (r->kind == ROW_half) {
        buf_puts(out, half_at(c, n) == HALF_backward
                          ? "here backward begins: what the tangents, gradients of the outputs, "
                            "lead to"
                          : "forward: what the outputs of the model need");
        return;
    }
    if (r->kind == ROW_place) {
        buf_printf(out, "%s  %s", brief_place(c->tmp, n->stack),
                   n->stack->code ? n->stack->code : "");
        return;
    }
    if (n->op == FX_placeholder)
        buf_printf(out, "%s  input %s", n->name,
                   n->target && strcmp(n->target, n->name) ? n->target : "");
    else
        buf_printf(out, "%s = %s(%s)", n->name, n->target ? n->target : "", full_args(c->tmp, n));
    const TensorMeta *t = node_tensor(n);
    if (t) {
        Buf type = {.arena = c->tmp};
        meta_print(&type, t, true, true);
        buf_printf(out, "  %s  %s", buf_str(&type),
                   text_bytes(c->tmp, bytes_of_meta(c->art->graph->sym, t)));
        if (session_flops(n) > 0)
            buf_printf(out, "  %s", text_flops(c->tmp, session_flops(n)));
    }
    buf_printf(out, "  %d user%s", n->n_users, n->n_users == 1 ? "" : "s");
    for (int i = 0; i < n->n_users && i < 3; i++)
        buf_printf(out, "%s%s", i ? ", " : ": ", n->users[i]->name);
    if (n->n_users > 3)
        buf_printf(out, ", …");
    training_words(c, n, out);
    if (n->stack)
        buf_printf(out, "  │ %s", brief_place(c->tmp, n->stack));
}

static const char *graph_view_enter(ViewCtx *c, int row) {
    return ((Doc *)c->doc)->rows.at[row].kind == ROW_node ? "view node" : NULL;
}

// Inside of a nested graph: the row of what holds it.
static int holder_row(const Doc *d, int row) {
    const Row *r = &d->rows.at[row];
    if (nested_in(r->node))
        return row;
    for (int depth = r->depth; depth && d->rows.at[row].depth >= depth;)
        row--;
    return row;
}

static void toggle_nested(Doc *d, const Node *holder) {
    if (map_find_id(&d->open, (uintptr_t)holder))
        map_remove_id(&d->open, (uintptr_t)holder);
    else
        map_put_id(&d->open, (uintptr_t)holder, (void *)(uintptr_t)holder);
}

static bool graph_view_toggle(ViewCtx *c, int row, const char **command) {
    Doc *d = c->doc;
    const Row *r = &d->rows.at[row];
    (void)command;
    if (r->kind == ROW_nested || (r->kind == ROW_node && nested_in(r->node))) {
        toggle_nested(d, d->rows.at[holder_row(d, row)].node);
        build_rows(c, d);
        return true;
    }
    if (r->kind == ROW_node && r->node->op != FX_placeholder) {
        while (row > 0 && (d->rows.at[row].kind == ROW_node || d->rows.at[row].kind == ROW_nested))
            row--;
        r = &d->rows.at[row];
    }
    if (r->kind == ROW_place)
        d->closed[r->node->id] = !d->closed[r->node->id];
    else if (d->n_inputs > FOLD_PLACEHOLDERS)
        d->inputs_open = !d->inputs_open;
    else
        return false;
    build_rows(c, d);
    return true;
}

// The first call: inputs tell little.
static int graph_view_start(ViewCtx *c) {
    const Doc *d = c->doc;
    for (int i = 0; i < d->rows.n; i++)
        if (d->rows.at[i].kind == ROW_node && d->rows.at[i].node->op != FX_placeholder)
            return i;
    return 0;
}

const View view_graph = {
    .name = "graph",
    .doc = "an FX graph, one node a line",
    .flags = VIEW_stage,
    .stage = -1,
    .open = graph_view_open,
    .count = graph_view_count,
    .line = graph_view_line,
    .row_of = graph_view_row_of,
    .title = graph_view_title,
    .node = graph_view_node,
    .enter = graph_view_enter,
    .toggle = graph_view_toggle,
    .start = graph_view_start,
    .alters = FORMS,
};
