// graph.c: an FX graph, one node a line: the name first, in a column of its own, then the op and
// its arguments in the brief spelling, the type at the right. Sections tell the line of the model
// that the nodes come from. The full spelling is PyTorch's text.
#include "views/brief.h"

#include <string.h>

enum { FOLD_PLACEHOLDERS = 4, NAME_MAX = 16, TYPE_ROOM = 62, TYPE_COLS = 22, TYPE_AT = 64 };

typedef enum RowKind { ROW_node, ROW_place, ROW_inputs, ROW_nested } RowKind;

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
    int n_inputs;
    int name_cols;
} Doc;

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
    for (const Node *n = g->first; n; n = n->next) {
        d->n_inputs += n->op == FX_placeholder;
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

static void brief_line(ViewCtx *c, const Doc *d, const Node *n, int depth, Line *l) {
    const char *type = nested_in(n) ? "" : brief_value_type(l->arena, &n->val);
    bool typed = c->opt.cols >= TYPE_ROOM && *type;
    if (depth)
        line_printf(l, ST_dim, "%*s", 2 * depth, "");
    line_cell(l, ink_of(n), n->name, d->name_cols);
    l->name = depth ? 1 : 0;
    line_add(l, ST_text, "  ");
    l->frozen = 2 * depth + d->name_cols + 2;
    if (n->op == FX_placeholder) {
        line_add(l, ST_dim, "input");
    } else if (nested_in(n)) {
        nested_line(n, l);
    } else {
        line_add(l, ink_of(n), n->op == FX_output ? "return" : brief_target(l->arena, n));
        line_printf(l, ST_dim, " %s", brief_args(l->arena, n));
    }
    if (n->flags & NODE_opaque)
        line_add(l, ST_warn, "  unknown op: shown, not run");
    if (!typed && n->op != FX_placeholder)
        return;
    // The types stand in a column of their own, not at the far edge of a wide pane.
    int column = c->opt.cols - TYPE_COLS < TYPE_AT ? c->opt.cols - TYPE_COLS : TYPE_AT;
    line_pad(l, n->op == FX_placeholder && !typed ? d->name_cols + 9 : column, true);
    line_add(l, ST_text, " ");
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

static void graph_view_line(ViewCtx *c, int row, Line *l) {
    const Doc *d = c->doc;
    const Row *r = &d->rows.at[row];
    if (r->kind == ROW_node || r->kind == ROW_nested) {
        if (r->kind == ROW_node)
            l->item = (Item){c->art->id, r->node->id};
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
        line_printf(l, ST_dim, "%d inputs", d->n_inputs);
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
    const Unit *u = pipeline_owner(session_pipeline(c->session), c->unit, c->art->stage);
    if (pipeline_n_units(session_pipeline(c->session)) > 1)
        buf_printf(left, " · %s", u->kind);
    buf_printf(right, "%d ops", graph_ops(g));
}

static void graph_view_node(ViewCtx *c, int row, Buf *out) {
    const Row *r = &((Doc *)c->doc)->rows.at[row];
    const Node *n = r->node;
    if (r->kind == ROW_inputs) {
        buf_printf(out, "%d inputs of the graph; Space unfolds them", ((Doc *)c->doc)->n_inputs);
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
    }
    buf_printf(out, "  %d user%s", n->n_users, n->n_users == 1 ? "" : "s");
    for (int i = 0; i < n->n_users && i < 3; i++)
        buf_printf(out, "%s%s", i ? ", " : ": ", n->users[i]->name);
    if (n->n_users > 3)
        buf_printf(out, ", …");
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
        while (row > 0 && d->rows.at[row].kind != ROW_place)
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
};
