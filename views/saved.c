// saved.c: what forward keeps for backward: each value with its bytes and why it is saved, then what
// backward computes again instead. Space pins a value: save, recompute, or as the rule says.
#include "views/doc.h"

#include <string.h>

static const PartitionResult *result(const ViewCtx *c) {
    return c->art ? c->art->partition : NULL;
}

static const SavedValue *value_at(ViewCtx *c, int row) {
    const Page *p = c->doc;
    const PartitionResult *r = result(c);
    for (int i = 0; r && row < p->lines.n && i < r->n_values; i++)
        if (p->lines.at[row].item.id == r->values[i].node)
            return &r->values[i];
    return NULL;
}

static const char *name_of(const ViewCtx *c, const SavedValue *v) {
    const Node *n = graph_by_id(c->art->graph, v->node);
    return n ? n->name : "?";
}

static const char *shape_of(const ViewCtx *c, const SavedValue *v) {
    const Node *n = graph_by_id(c->art->graph, v->node);
    return n && node_tensor(n) ? brief_type(c->arena, node_tensor(n)) : "a size";
}

static int64_t most_bytes(const PartitionResult *r) {
    int64_t most = 1;
    for (int i = 0; i < r->n_values; i++)
        if (!r->values[i].is_input && r->values[i].bytes > most)
            most = r->values[i].bytes;
    return most;
}

static void value_line(ViewCtx *c, Page *p, const SavedValue *v, int64_t most) {
    bool wide = c->opt.cols >= 100;
    const char *name = name_of(c, v);
    DocLine *l = page_line(p);
    l->item = (Item){c->art->id, v->node};
    l->sign = v->pinned ? v->recomputed ? "R" : "S" : NULL;
    l->sign_style = ST_edited;
    l->frozen = wide ? 30 : 16;
    l->enter = arena_printf(c->arena, "stage partition graph %d ; goto %s",
                            pipeline_owner(session_pipeline(c->session), c->unit, STAGE_joint)->index,
                            name);
    page_cell(p, ST_name, wide ? 30 : 16, "%s", name);
    page_cell(p, ST_type, wide ? 20 : 15, "%s", shape_of(c, v));
    page_cell(p, ST_number, -9, "%s", v->is_size ? "·" : text_count(c->arena, v->bytes));
    page_add(p, ST_text, " ");
    if (v->is_input)
        page_cell(p, ST_dim, 11, "input");
    else
        page_bar(p, ST_bar, (double)v->bytes, (double)most, wide ? 16 : 10);
    page_add(p, v->pinned ? ST_edited : ST_dim, " %s",
             v->pinned ? "pinned by you" : v->why ? v->why : "");
}

static void budget_line(Page *p, const PartitionResult *r) {
    int64_t inputs = 0;
    for (int i = 0; i < r->n_saved; i++)
        inputs += r->values[i].is_input ? r->values[i].bytes : 0;
    page_section(p, "saved %s   %s of inputs, %s new", text_bytes(p->arena, r->saved_bytes),
                 text_bytes(p->arena, inputs), text_bytes(p->arena, r->saved_bytes - inputs));
}

static bool saved_open(ViewCtx *c, Buf *why) {
    const Unit *u = pipeline_owner(session_pipeline(c->session), c->unit, STAGE_joint);
    if (!u->forward) {
        buf_puts(why, "nothing is saved: no input needs a gradient.  set grad=params");
        return false;
    }
    c->art = pipeline_build(session_pipeline(c->session), u->index, STAGE_partition);
    const PartitionResult *r = result(c);
    if (!r) {
        buf_puts(why, "the joint graph could not be parted");
        return false;
    }
    Page *p = page_new(c);
    int64_t most = most_bytes(r);
    for (int i = 0; i < r->n_saved; i++)
        value_line(c, p, &r->values[i], most);
    budget_line(p, r);
    bool any = false;
    for (int i = r->n_saved; i < r->n_values; i++) {
        if (!r->values[i].recomputed)
            continue;
        if (!any)
            page_section(p, "recomputed in backward");
        any = true;
        value_line(c, p, &r->values[i], most);
    }
    return true;
}

static void saved_title(ViewCtx *c, Buf *left, Buf *right) {
    Arena *a = c->tmp;
    buf_puts(left, "7 partition · saved for backward");
    buf_printf(right, "%s  budget %s", session_setting(c->session, "partitioner", a),
               session_setting(c->session, "activation_memory_budget", a));
}

static void saved_node(ViewCtx *c, int row, Buf *out) {
    const SavedValue *v = value_at(c, row);
    const PartitionResult *r = result(c);
    if (!v)
        return;
    buf_printf(out, "%s: %s%s.", name_of(c, v),
               v->recomputed ? "computed again in backward" : "saved for backward",
               v->is_input ? ", an input that is there anyway" : "");
    if (v->why)
        buf_printf(out, "  %s.", v->why);
    if (!v->is_input && !v->is_size)
        buf_printf(out, "  Space %s   %d saved of %d values",
                   v->pinned ? "lets the rule decide"
                   : v->recomputed ? "saves it"
                                   : "recomputes it",
                   r->n_saved, r->n_values);
}

static bool saved_toggle(ViewCtx *c, int row, const char **command) {
    const SavedValue *v = value_at(c, row);
    if (!v || v->is_size || v->is_input)
        return false;
    const char *verb = v->pinned ? "rule" : v->recomputed ? "keep" : "recompute";
    *command = arena_printf(c->tmp, "%s %s", verb, name_of(c, v));
    return true;
}

const View view_saved = {
    .name = "saved",
    .doc = "what forward saves for backward, with bytes and why, and what is recomputed",
    .flags = VIEW_width,
    .stage = STAGE_partition,
    .open = saved_open,
    .count = page_count,
    .line = page_line_of,
    .row_of = page_row_of,
    .title = saved_title,
    .node = saved_node,
    .enter = page_enter,
    .toggle = saved_toggle,
    .start = page_start,
};
