// writes.c: what functionalization took out: each write in place with the view it goes through and
// what puts it back into the base, the inputs that are written back at the end, and what outputs
// are to inputs and to each other (ViewAndMutationMeta, in words).
#include "views/doc.h"

#include <string.h>

enum { NAME_COLS = 16 };

typedef struct Names {
    const Graph *fx, *low; // before and after
} Names;

static const char *name_in(const Graph *g, int id) {
    const Node *n = g && id >= 0 ? graph_by_id(g, id) : NULL;
    return n ? n->name : NULL;
}

static const char *named(const Graph *g, int id, const char *fallback) {
    const char *name = name_in(g, id);
    return name ? name : fallback;
}

// The tensor that the user's call writes: `y` of y.mul_(2).
static const char *written(const Names *g, const AotWrite *w) {
    if (w->backward)
        return "a gradient";
    const Node *n = g->fx && w->at >= 0 ? graph_by_id(g->fx, w->at) : NULL;
    return n && n->n_args && n->args[0].kind == VAL_node ? n->args[0].node->name : "it";
}

// Nodes that are left of those that put the value back.
static const char *made(Arena *a, const Graph *g, const AotWrite *w) {
    Buf b = {.arena = a};
    for (int id = w->from; id < w->to; id++)
        if (name_in(g, id))
            buf_printf(&b, "%s%s", b.len ? " " : "", name_in(g, id));
    return buf_str(&b);
}

static Item item_of(const ViewCtx *c, const AotWrite *w) {
    const int ids[] = {w->value, w->new_base, w->base};
    for (int i = 0; i < COUNT(ids); i++)
        if (name_in(c->art->graph, ids[i]))
            return (Item){c->art->id, ids[i]};
    return ITEM_NONE;
}

static void write_lines(ViewCtx *c, Page *p, const Names *g, const AotWrite *w) {
    Arena *a = c->arena;
    const char *base = named(g->low, w->base, "a value nobody reads any more");
    const char *value = named(g->low, w->value, "a value nobody reads");
    const char *back = made(a, g->low, w);
    const Node *at = g->fx && w->at >= 0 ? graph_by_id(g->fx, w->at) : NULL;
    Item item = item_of(c, w);
    const char *enter = item.id >= 0 ? arena_printf(a, "stage functional ; goto %s",
                                                    named(c->art->graph, item.id, ""))
                                     : NULL;
    DocLine *l = page_line(p);
    l->item = item;
    l->enter = enter;
    l->sign = "~";
    l->sign_style = ST_diff_alter;
    l->frozen = NAME_COLS;
    l->node = arena_printf(a, "%s writes %s: %s holds its new value%s%s", at ? at->name : "a call",
                           written(g, w), value, at && at->stack ? "  │ " : "",
                           at && at->stack ? brief_place(a, at->stack) : "");
    page_cell(p, ST_name, NAME_COLS, "%s", at ? at->name : "");
    page_add(p, ST_text, "%s ", w->op ? w->op->qualname + strlen("torch.ops.") : "");
    page_add(p, ST_dim, "writes ");
    page_add(p, ST_text, "%s", written(g, w));
    if (*w->chain)
        page_add(p, ST_dim, " = %s of %s", w->chain, base);
    else
        page_add(p, ST_dim, ", a whole storage");
    l = page_line(p);
    l->item = item;
    l->enter = enter;
    l->frozen = NAME_COLS;
    page_cell(p, ST_dim, NAME_COLS, "%s", "");
    page_add(p, ST_dim, "became ");
    page_add(p, ST_text, "%s", value);
    if (*w->chain) {
        page_add(p, ST_dim, "; into the base by ");
        page_add(p, ST_text, "%s", *back ? back : "nodes that nobody needs");
    }
    page_add(p, ST_dim, "; the base is now ");
    page_add(p, ST_text, "%s", named(g->low, w->new_base, "not needed"));
}

// ---- inputs and outputs

static const char *input_name(const Graph *fx, int i) {
    int k = 0;
    for (const Node *n = fx->first; n; n = n->next)
        if (n->op == FX_placeholder && k++ == i)
            return n->name;
    return "?";
}

// The copy_ that writes an input back at the end of the graph.
static const Node *epilogue(const Graph *g, int input) {
    int k = 0;
    const Node *p = g->first;
    for (; p && !(p->op == FX_placeholder && k++ == input); p = p->next)
        ;
    for (int i = 0; p && i < p->n_users; i++)
        if (node_is(p->users[i], OP_aten_copy__default) && p->users[i]->args[0].kind == VAL_node &&
            p->users[i]->args[0].node == p)
            return p->users[i];
    return NULL;
}

// Inputs that share memory: what is known of each, and what the trace takes in their place.
static void shared_lines(ViewCtx *c, Page *p) {
    const Unit *u = pipeline_unit(session_pipeline(c->session), c->unit);
    Buf text = {.arena = c->arena};
    u = u->parent ? u->parent : u;
    session_alias_lines(c->session, u, &text, "");
    if (!text.len)
        return;
    page_section(p, "inputs that share memory");
    for (const char *line = buf_str(&text); *line;) {
        size_t n = strcspn(line, "\n");
        page_line(p);
        page_add(p, *line == ' ' ? ST_text : ST_dim, "%.*s", (int)n, line);
        line += n + (line[n] == '\n');
    }
}

static void input_lines(ViewCtx *c, Page *p, const Names *g, const AotMeta *m) {
    int out = 0;
    bool any = false;
    for (int i = 0; i < m->n_inputs; i++) {
        const AotInput *in = &m->inputs[i];
        if (!in->mutates_data && !in->mutates_metadata)
            continue;
        if (!any)
            page_section(p, "inputs that are written");
        any = true;
        DocLine *l = page_line(p);
        l->frozen = NAME_COLS;
        const Node *copy = in->in_graph ? epilogue(g->low, i) : NULL;
        if (copy && name_in(c->art->graph, copy->id)) {
            l->item = (Item){c->art->id, copy->id};
            l->enter = arena_printf(c->arena, "stage functional ; goto %s", copy->name);
        }
        page_cell(p, ST_name, NAME_COLS, "%s", input_name(g->fx, i));
        page_add(p, ST_text, "%s%s%s", in->mutates_data ? "data" : "",
                 in->mutates_data && in->mutates_metadata ? " and " : "",
                 in->mutates_metadata ? "metadata" : "");
        if (copy)
            page_add(p, ST_dim, ": written back in the graph by %s at its end", copy->name);
        else if (in->in_graph)
            page_add(p, ST_dim, ": written back in the graph");
        else
            page_add(p, ST_dim, ": its new value is output %d, copied back by the wrapper", out);
        out += !in->in_graph;
    }
}

static const struct {
    const char *name; // OutputType.…
    const char *words, *rest; // before and behind what it is a view of
} output_types[] = {
    [OUTPUT_non_alias] = {"non_alias", "a value of its own", ""},
    [OUTPUT_alias_of_input] = {"alias_of_input", "a view of input ", ": made anew from it"},
    [OUTPUT_is_input] = {"is_input", "input ", " itself"},
    [OUTPUT_alias_of_intermediate_save_as_output] =
        {"alias_of_intermediate_save_as_output",
         "a view of intermediate base ", ", which is returned behind the outputs"},
    [OUTPUT_alias_of_intermediate] = {"alias_of_intermediate",
                                      "a view of intermediate base ", ", as an output before it"},
    [OUTPUT_alias_of_intermediate_base_is_user_output] =
        {"alias_of_intermediate_base_is_user_output", "a view of output ",
         ": made anew from it"},
    [OUTPUT_unsafe_view_alias] = {"unsafe_view_alias",
                                  "a view of what nobody else sees: as a value of its own", ""},
};

static const char *aliased(Arena *a, const Names *g, const AotOutput *o) {
    if (o->type == OUTPUT_alias_of_input || o->type == OUTPUT_is_input)
        return input_name(g->fx, o->base);
    return arena_printf(a, "%d", o->base);
}

static void output_lines(ViewCtx *c, Page *p, const Names *g, const AotMeta *m) {
    page_section(p, "outputs");
    for (int i = 0; i < m->n_outputs; i++) {
        const AotOutput *o = &m->outputs[i];
        DocLine *l = page_line(p);
        l->frozen = NAME_COLS;
        l->node = arena_printf(c->arena, "output %d: OutputType.%s%s", i,
                               output_types[o->type].name,
                               o->requires_grad ? ", requires_grad" : "");
        page_cell(p, ST_name, NAME_COLS, "output %d", i);
        page_cell(p, ST_type, 16, "%s", brief_type(c->arena, o->meta));
        page_add(p, ST_text, " ");
        page_add(p, o->type == OUTPUT_non_alias ? ST_dim : ST_text, "%s%s%s",
                 output_types[o->type].words, o->base >= 0 ? aliased(c->arena, g, o) : "",
                 output_types[o->type].rest);
        if (o->requires_grad)
            page_add(p, ST_dim, ", has a gradient");
    }
    for (int i = 0; i < m->n_bases; i++) {
        page_line(p);
        page_cell(p, ST_name, NAME_COLS, "base %d", i);
        page_cell(p, ST_type, 16, "%s", brief_type(c->arena, m->bases[i]));
        page_add(p, ST_dim, " an intermediate value of which outputs are views");
    }
    for (int i = 0; i < m->n_tangents; i++) {
        int of = m->tangents[i];
        page_line(p);
        page_cell(p, ST_name, NAME_COLS, "tangents_%d", i + 1);
        if (of < m->n_mutated)
            page_add(p, ST_dim, "the gradient of input %s as written",
                     input_name(g->fx, m->mutated[of]));
        else if (of < m->n_mutated + m->n_outputs)
            page_add(p, ST_dim, "the gradient of output %d", of - m->n_mutated);
        else
            page_add(p, ST_dim, "the gradient of base %d", of - m->n_mutated - m->n_outputs);
    }
}

static bool writes_open(ViewCtx *c, Buf *why) {
    const AotLog *log = c->art ? c->art->log : NULL;
    if (!log || !c->art->meta || !c->art->parent || c->art->parent->kind != ART_graph) {
        buf_puts(why, "this graph was not functionalized here: it came so");
        return false;
    }
    Names g = {c->art->parent->graph, c->art->whole ? c->art->whole : c->art->graph};
    Page *p = page_new(c);
    page_section(p, "writes in place, and what became of them");
    for (int i = 0; i < log->n_writes; i++) {
        if (log->writes[i].backward && (i == 0 || !log->writes[i - 1].backward))
            page_section(p, "writes of backward: gradients of bases written through views");
        write_lines(c, p, &g, &log->writes[i]);
    }
    if (!log->n_writes) {
        page_line(p);
        page_add(p, ST_dim, "none: the model writes nothing in place");
    }
    shared_lines(c, p);
    input_lines(c, p, &g, c->art->meta);
    output_lines(c, p, &g, c->art->meta);
    return true;
}

static void writes_title(ViewCtx *c, Buf *left, Buf *right) {
    buf_puts(left, "4 functional · writes and aliases");
    buf_printf(right, "%d write%s", c->art->log->n_writes, c->art->log->n_writes == 1 ? "" : "s");
}

const View view_writes = {
    .name = "writes",
    .doc = "writes in place and how each was taken out; what outputs are views of",
    .stage = STAGE_functional,
    .open = writes_open,
    .count = page_count,
    .line = page_line_of,
    .row_of = page_row_of,
    .title = writes_title,
    .node = page_node,
    .enter = page_enter,
    .start = page_start,
};
