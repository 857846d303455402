// watch.c: the watched values through all stages that are built: what each is there, how strong
// the link is, its type, and how many it became. Enter goes there.
#include "views/watch.h"

#include "views/doc.h"

#include <string.h>

static int item_named(const Artifact *a, const char *name) {
    const Node *n = a->kind == ART_graph ? graph_find(a->graph, name) : NULL;
    if (n)
        return n->id;
    for (int i = 0; a->kind == ART_schedule && i < a->schedule->module->ops.n; i++) {
        const IrOp *op = a->schedule->module->ops.at[i];
        if (!strcmp(op->name, name))
            return op->number;
        for (int k = 0; k < op->outputs.n; k++)
            if (!strcmp(op->outputs.at[k]->name, name))
                return op->number;
    }
    return -1;
}

const Artifact *watch_find(Pipeline *p, const Watched *w, int *item) {
    if (w->unit >= pipeline_n_units(p))
        return NULL;
    for (int k = 0; k < STAGE_count; k++) { // its own stage first
        int stage = k ? k - 1 : w->stage;
        const Artifact *a = pipeline_at(p, w->unit, (StageId)stage);
        if (a && (*item = item_named(a, w->name)) >= 0)
            return a;
    }
    return NULL;
}

static const char *name_in(const ViewCtx *c, const Artifact *a, int item, const char **type) {
    *type = "";
    if (a->kind == ART_graph) {
        const Node *n = item < a->graph->by_id.n ? graph_by_id(a->graph, item) : NULL;
        *type = n ? brief_value_type(c->arena, &n->val) : "";
        return n ? n->name : "";
    }
    if (a->kind == ART_schedule) {
        const IrOp *op = ir_op(a->schedule->module, item);
        if (op && op->outputs.n)
            *type = brief_layout(c->arena, op->outputs.at[0]->layout);
        return op ? op->name : "";
    }
    for (int i = 0; a->kind == ART_code && i < a->code->kernels.n; i++)
        if (item + 1 >= a->code->kernels.at[i].first_line &&
            item + 1 <= a->code->kernels.at[i].last_line)
            return a->code->kernels.at[i].name;
    return arena_printf(c->arena, "line %d", item + 1);
}

static void stage_row(ViewCtx *c, Page *p, const Watched *w, const Artifact *from, int item,
                      const Artifact *to) {
    static const char *const marks[] = {"○", "◐", "●"};
    static const StyleId inks[] = {ST_link_kin, ST_link_part, ST_link_same};
    Link self = {item, LINK_same}, *links = &self;
    int n = from == to
                ? 1
                : pipeline_links(session_pipeline(c->session), from, item, to, c->arena, &links);
    DocLine *l = page_line(p);
    l->sign = n ? marks[links[0].strength] : " ";
    l->sign_style = n && links[0].strength != LINK_same ? inks[links[0].strength] : ST_link_part;
    page_cell(p, ST_dim, 15, "%c %s", stage_info[to->stage].key, stage_info[to->stage].name);
    if (!n) {
        page_add(p, ST_dim, "nothing comes from it here");
        return;
    }
    const char *type, *name = name_in(c, to, links[0].item, &type);
    page_cell(p, to == from ? ST_name : ST_text, 24, "%s", name);
    page_cell(p, ST_type, 24, "%s", type);
    if (n > 1)
        page_add(p, ST_dim, "and %d more", n - 1);
    vec_last(&p->lines).item = (Item){to->id, links[0].item};
    vec_last(&p->lines).enter =
        arena_printf(c->arena, "stage %s graph %d ; goto %s", stage_info[to->stage].name, w->unit,
                     to->kind == ART_code || to->kind == ART_text
                         ? arena_printf(c->arena, "%d", links[0].item + 1)
                         : name);
}

static bool watch_open(ViewCtx *c, Buf *why) {
    const WatchList *list = c->watches;
    if (!list || !list->at.n) {
        buf_puts(why, "nothing is watched: W watches what the cursor is on");
        return false;
    }
    Page *p = page_new(c);
    Pipeline *pl = session_pipeline(c->session);
    for (int i = 0; i < list->at.n; i++) {
        const Watched *w = &list->at.at[i];
        int item;
        const Artifact *from = watch_find(pl, w, &item);
        page_section(p, "%s%s", w->name, from ? "" : "   is not there now");
        for (int stage = 0; from && stage < STAGE_count; stage++) {
            const Artifact *to = pipeline_at(pl, w->unit, (StageId)stage);
            if (to && to->kind != ART_none)
                stage_row(c, p, w, from, item, to);
        }
    }
    return true;
}

static void watch_title(ViewCtx *c, Buf *left, Buf *right) {
    int n = c->watches ? c->watches->at.n : 0;
    buf_printf(left, "watch · %d value%s", n, n == 1 ? "" : "s");
    (void)right;
}

const View view_watch = {
    .name = "watch",
    .doc = "the watched values at every stage",
    .flags = VIEW_live,
    .stage = -1,
    .open = watch_open,
    .count = page_count,
    .line = page_line_of,
    .title = watch_title,
    .node = page_node,
    .enter = page_enter,
    .start = page_start,
};
