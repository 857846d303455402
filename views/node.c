// node.c: all there is to say about the thing under the cursor: op, type, bytes, where from,
// arguments and users, what decisions were about it, and its history through the stages.
#include "views/tensor.h"

#include <string.h>

static void input_name(Node *input, void *ctx) {
    Buf *b = ctx;
    buf_printf(b, "%s%s", b->len ? " " : "", input->name);
}

static const char *joined_users(Arena *a, const Node *n) {
    Buf b = {.arena = a};
    for (int i = 0; i < n->n_users && i < 12; i++)
        buf_printf(&b, "%s%s", i ? " " : "", n->users[i]->name);
    if (n->n_users > 12)
        buf_printf(&b, " and %d more", n->n_users - 12);
    return buf_str(&b);
}

static void stack_fields(Page *p, const StackFrame *f) {
    const char *label = "from";
    for (int i = 0; f && i < 6; f = f->outer, i++, label = "") {
        page_field(p, label, "%s", brief_place(p->arena, f));
        if (f->code && *f->code)
            page_field(p, "", "%s", f->code);
    }
}

// The graphs that it gets or holds, line by line.
static void nested_sections(Page *p, const Node *n) {
    const Graph *graphs[4];
    int k = node_graphs(n, graphs, COUNT(graphs));
    if (n->op == FX_get_attr && value_graph(&n->val))
        graphs[k++] = value_graph(&n->val);
    if (k && node_higher(n))
        page_field(p, "is", "%s", higher_info(node_higher(n))->doc);
    for (int i = 0; i < k; i++) {
        page_section(p, "%s", graphs[i]->class_name);
        for (const Node *m = graphs[i]->first; m; m = m->next) {
            Buf b = {.arena = p->arena};
            node_print(&b, m, &fx_style_log);
            page_field(p, "", "%s", buf_str(&b));
        }
    }
}

// A formula of several gradients, one a line.
static void formula_fields(Page *p, const char *formula) {
    const char *label = "formula";
    while (formula && *formula) {
        const char *end = formula;
        int depth = 0;
        for (; *end && (depth || (*end != ';' && *end != '\n')); end++)
            depth += (*end == '(') - (*end == ')');
        page_field(p, label, "%.*s", (int)(end - formula), formula);
        label = "";
        formula = end + (*end != 0);
        formula += strspn(formula, " ");
    }
}

static const char *twin_names(Arena *a, const Artifact *art, const Twins *t) {
    Buf b = {.arena = a};
    for (int i = 0; i < t->n && i < 10; i++) {
        const Node *n = graph_by_id(art->graph, t->links[i].item);
        buf_printf(&b, "%s%s", i ? " " : "", n ? n->name : "?");
    }
    if (t->n > 10)
        buf_printf(&b, " and %d more", t->n - 10);
    return buf_str(&b);
}

static void derived_fields(ViewCtx *c, Page *p, const AotDerived *d) {
    static const char *const kinds[] = {"derivative of", "derivative of a write to a view by",
                                        "gradients add up behind the derivative of"};
    const Artifact *trace = session_trace(c->session, c->unit);
    const Node *at = NULL;
    if (trace && trace->parent && trace->parent->kind == ART_graph)
        at = graph_by_id(trace->parent->graph, d->at);
    const char *op = d->op ? d->op->qualname + strlen("torch.ops.") : "the call";
    page_field(p, "gradient", "%s %s%s%s", kinds[d->kind], op,
               !at     ? ""
               : d->op ? ", called by "
                       : " ",
               at ? at->name : "");
    if (d->kind != DERIVED_sum)
        formula_fields(p, d->formula);
}

// A node that a write in place left behind.
static void fill_writes(Page *p, const Artifact *art, const Node *n) {
    const Graph *low = art->whole ? art->whole : art->graph;
    for (int i = 0; art->log && i < art->log->n_writes; i++) {
        const AotWrite *w = &art->log->writes[i];
        const char *op = w->op ? w->op->qualname + strlen("torch.ops.") : "";
        const Node *base = graph_by_id(low, w->base), *back = graph_by_id(low, w->new_base);
        if (w->value == n->id)
            page_field(p, "write", "the new value that %s wrote%s%s", op, *w->chain ? " to " : "",
                       w->chain);
        if (w->value == n->id && *w->chain)
            page_field(p, "", "of %s; the base is then %s",
                       base ? base->name : "a value gone since", back ? back->name : "not needed");
        if (n->id >= w->from && n->id < w->to)
            page_field(p, "write", "puts what %s wrote back into its base through %s", op,
                       w->chain);
    }
}

// Of a node of training: is it saved, what is its gradient, or whose gradient is it.
static void fill_training(ViewCtx *c, Page *p, const Artifact *art, const Node *n) {
    const Unit *joint = session_joint(c->session, c->unit);
    if (!joint || n->op == FX_output)
        return;
    const Artifact *parted =
        pipeline_at(session_pipeline(c->session), joint->index, STAGE_partition);
    Link *links = NULL;
    int k = parted ? pipeline_links(session_pipeline(c->session), art, n->id, parted, c->tmp,
                                    &links)
                   : 0;
    const SavedValue *v = k && links[0].strength == LINK_same
                              ? session_saved_value(c->session, c->unit,
                                                    graph_by_id(parted->graph, links[0].item))
                              : NULL;
    if (v)
        page_field(p, "saved", "%s: %s   s lists them",
                   v->recomputed ? "no, computed again in backward" : "yes, for backward",
                   v->why ? v->why : "");
    if (n->op == FX_placeholder && n->target && str_starts(n->target, "tangents_"))
        page_field(p, "tangent", "the gradient of an output, given to backward");
    if (n->op != FX_call_function)
        return;
    Twins t = session_twins(c->session, c->unit, art, n->id, art, c->tmp);
    const Artifact *other = art;
    if (!t.n && art->stage >= STAGE_partition && !art->partition) { // in the other half's graph
        const Unit *u = t.of_backward ? joint->forward : joint->backward;
        other = pipeline_at(session_pipeline(c->session), u->index, art->stage);
        t = session_twins(c->session, c->unit, art, n->id, other ? other : art, c->tmp);
    }
    if (t.of_backward && t.by)
        derived_fields(c, p, t.by);
    if (t.n)
        page_field(p, t.of_backward ? "forward" : "backward", "%s   %% goes there",
                   twin_names(p->arena, other, &t));
}

static void fill_graph(ViewCtx *c, Page *p, const Artifact *art, int id) {
    const Graph *g = art->graph;
    const Node *n = id < g->by_id.n ? graph_by_id(g, id) : NULL;
    if (!n)
        return;
    page_section(p, "%s", n->name);
    page_field(p, "op", "%s", n->target ? n->target : "");
    const TensorMeta *t = node_tensor(n);
    if (t) {
        Buf b = {.arena = p->arena};
        meta_print(&b, t, true, true);
        page_field(p, "type", "%s", buf_str(&b));
        int64_t bytes = bytes_of_meta(g->sym, t);
        page_field(p, "size", "%s elements   %s",
                   text_count(p->arena, bytes / dtype_info[t->dtype].bytes),
                   text_bytes(p->arena, bytes));
        if (session_flops(n) > 0)
            page_field(p, "work", "%s", text_flops(p->arena, session_flops(n)));
    } else if (n->val.kind != VAL_none) {
        page_field(p, "value", "%s", brief_value_type(p->arena, &n->val));
    }
    if (n->def)
        page_field(p, "schema", "%s", n->def->schema);
    if (n->flags & NODE_opaque)
        page_field(p, "", "unknown op: shown, not run");
    stack_fields(p, n->stack);
    if (n->original_aten)
        page_field(p, "traced as", "%s", n->original_aten);
    Buf args = {.arena = p->arena};
    node_each_input(n, input_name, &args);
    page_field(p, "args", "%s", buf_str(&args));
    page_field(p, "users", "%s", n->n_users ? joined_users(p->arena, n) : "none");
    if (n->modules)
        page_field(p, "module", "%s", n->modules);
    if (n->ac_graph_id)
        page_field(p, "region", "%d of activation checkpointing", n->ac_graph_id);
    fill_writes(p, art, n);
    fill_training(c, p, art, n);
    if (t)
        tensor_known(c, p, art, n->name);
    nested_sections(p, n);
}

static void dep_fields(Page *p, const char *label, const DepVec *deps) {
    for (int i = 0; i < deps->n && i < 12; i++) {
        Buf b = {.arena = p->arena};
        dep_print(&b, &deps->at[i]);
        page_field(p, i ? "" : label, "%s", buf_str(&b));
    }
}

static void fill_sched(ViewCtx *c, Page *p, const Artifact *art, int number) {
    const Schedule *s = art->schedule;
    (void)c;
    for (int i = 0; i < s->nodes.n; i++) {
        const SchedNode *top = s->nodes.at[i],
                        *n = top->op && top->op->number == number ? top : NULL;
        for (int k = 0; k < top->snodes.n && !n; k++)
            if (top->snodes.at[k]->op && top->snodes.at[k]->op->number == number)
                n = top->snodes.at[k];
        if (!n)
            continue;
        page_section(p, "%s", n->name);
        if (top != n)
            page_field(p, "in", "%s", top->name);
        if (n->op) {
            page_field(p, "kind", "%s %s", n->op->cls_name ? n->op->cls_name : "",
                       n->op->loop_kind ? n->op->loop_kind : "");
            if (n->op->kernel)
                page_field(p, "calls", "%s", n->op->kernel);
        }
        page_field(p, "computes", "%s", brief_what(p->arena, s, n));
        if (n->n_iter || n->n_red)
            page_field(p, "loops", "%s%s%s", brief_sizes(p->arena, n->iter, n->n_iter),
                       n->n_red ? " r" : "",
                       n->n_red ? brief_sizes(p->arena, n->red, n->n_red) : "");
        dep_fields(p, "reads", &n->reads);
        dep_fields(p, "writes", &n->writes);
        for (int k = 0; k < n->outputs.n; k++) {
            Buf b = {.arena = p->arena};
            ir_layout_print(&b, n->outputs.at[k]->ir->layout);
            page_field(p, n->outputs.at[k]->ir->name, "%s", buf_str(&b));
            for (int q = 0; q < n->outputs.at[k]->users.n; q++) {
                const SchedUser *u = &n->outputs.at[k]->users.at[q];
                page_field(p, q ? "" : "  users", "%s%s", u->node ? u->node->name : "OUTPUT",
                           u->can_inplace ? "  may overwrite it" : "");
            }
        }
        return;
    }
}

static void fill_code(ViewCtx *c, Page *p, const Artifact *art, int line) {
    const CModule *m = art->code;
    const Artifact *graph = pipeline_at(session_pipeline(c->session), c->unit, STAGE_post_grad);
    page_section(p, "line %d of output_code.c", line + 1);
    for (int i = 0; i < m->kernels.n; i++)
        if (line + 1 >= m->kernels.at[i].first_line && line + 1 <= m->kernels.at[i].last_line) {
            page_field(p, "kernel", "%s", m->kernels.at[i].name);
            page_field(p, "moves", "%s   %s flops", text_bytes(p->arena, m->kernels.at[i].bytes),
                       text_count(p->arena, m->kernels.at[i].flops));
        }
    if (line >= m->lines.n)
        return;
    Buf b = {.arena = p->arena};
    for (int i = 0; graph && i < m->lines.at[line].n_origins; i++) {
        int id = m->lines.at[line].origins[i];
        const Node *n =
            id >= 0 && id < graph->graph->by_id.n ? graph_by_id(graph->graph, id) : NULL;
        if (n)
            buf_printf(&b, "%s%s", b.len ? " " : "", n->name);
    }
    page_field(p, "from", "%s",
               b.len ? buf_str(&b) : "no node: it belongs to the loop or the call");
}

static const char *item_label(Arena *a, const Artifact *art, int item) {
    if (art->kind == ART_graph && item < art->graph->by_id.n && graph_by_id(art->graph, item))
        return graph_by_id(art->graph, item)->name;
    if (art->kind == ART_schedule && ir_op(art->schedule->module, item))
        return ir_op(art->schedule->module, item)->name;
    return arena_printf(a, "line %d", item + 1);
}

static void history(ViewCtx *c, Page *p, const Artifact *from, int item) {
    static const char *const mark[] = {"○", "◐", "●"};
    static const StyleId ink[] = {ST_link_kin, ST_link_part, ST_link_part};
    page_section(p, "history   [ ] walk");
    for (int stage = 0; stage < STAGE_count; stage++) {
        const Artifact *to = pipeline_at(session_pipeline(c->session), c->unit, (StageId)stage);
        Link *links = NULL;
        if (!to)
            continue;
        int n = to == from
                    ? 0
                    : pipeline_links(session_pipeline(c->session), from, item, to, c->tmp, &links);
        if (!n && to != from)
            continue;
        DocLine *l = page_line(p);
        l->enter = arena_printf(p->arena, "stage %s", stage_info[stage].name);
        page_cell(p, ST_dim, 15, " %c %s", stage_info[stage].key, stage_info[stage].name);
        if (to == from) {
            page_add(p, ST_key, "▶ %s", item_label(p->arena, to, item));
            continue;
        }
        for (int i = 0; i < n && i < 6; i++) {
            page_add(p, ink[links[i].strength], "%s", mark[links[i].strength]);
            page_add(p, ST_text, "%s ", item_label(p->arena, to, links[i].item));
        }
        if (n > 6)
            page_add(p, ST_dim, "and %d more", n - 6);
    }
}

static void decisions_about(ViewCtx *c, Page *p, const Artifact *art, int item) {
    const Decision *const *list;
    int n = session_decisions_about(c->session, c->unit, art, item, c->tmp, &list);
    if (n)
        page_section(p, "decisions   w why");
    for (int i = 0; i < n; i++) {
        const Decision *d = list[i];
        page_line(p)->enter = "why";
        page_cell(p, ST_dim, 15, "%s", decision_kind_name(d->ask.kind));
        page_cell(p, ST_text, 20, "%s", d->ask.key);
        page_add(p, d->result ? ST_ok : ST_warn, " %s", d->result ? "✓" : "✗");
        page_add(p, ST_dim, " %s", d->ask.reason ? d->ask.reason : "");
    }
}

static bool node_open(ViewCtx *c, Buf *why) {
    const Artifact *art = c->focus_art;
    int item = c->focus.id;
    if (!art || item < 0 || c->focus.artifact != art->id) {
        buf_puts(why, "the cursor is on nothing that has more to tell");
        return false;
    }
    Page *p = page_new(c);
    switch (art->kind) {
    case ART_graph:
        fill_graph(c, p, art, item);
        break;
    case ART_schedule:
        fill_sched(c, p, art, item);
        break;
    case ART_code:
        fill_code(c, p, art, item);
        break;
    case ART_text:
    case ART_none:
        break;
    }
    if (art->kind != ART_code && art->kind != ART_text)
        decisions_about(c, p, art, item);
    history(c, p, art, item);
    return true;
}

static void node_title(ViewCtx *c, Buf *left, Buf *right) {
    buf_printf(left, "node %s", c->focus_art ? item_label(c->tmp, c->focus_art, c->focus.id) : "");
    (void)right;
}

const View view_node = {
    .name = "node",
    .doc = "all about the thing under the cursor, with its history",
    .flags = VIEW_follows | VIEW_work,
    .stage = -1,
    .open = node_open,
    .count = page_count,
    .line = page_line_of,
    .title = node_title,
    .node = page_node,
    .enter = page_enter,
};
