// saved.c: what passes from forward to backward: bytes, why, what it would cost to compute it
// again, and what is computed again. Space, + and ! choose for one value; the lines above tell what
// the last choice changed.
#include "views/doc.h"
#include "views/launch.h"

#include <stdlib.h>
#include <string.h>

typedef struct Doc {
    Page page; // first: the functions of a page work on it
    Saved saved;
} Doc;

enum { NAME_COLS = 18, TYPE_COLS = 17, BYTES_COLS = 11, BAR_COLS = 8, COST_COLS = 21, WIDE = 104 };

// ---- the head: totals, budget, peaks, and the same before

// What it was, and by how much that has changed.
static void was_cells(Page *p, const char *label, const char *text, int64_t was, int64_t now) {
    page_add(p, ST_dim, "%s %s", label, text);
    if (was == now)
        page_add(p, ST_dim, " same");
    else if (was)
        page_add(p, now > was ? ST_warn : ST_ok, " → %+.1f%%",
                 100.0 * ((double)now / (double)was - 1));
}

static void change_line(ViewCtx *c, Page *p, const char *label, const char *what,
                        const SavedMark *was, const Saved *s, int64_t ns) {
    const SavedTotals *b = &was->totals, *t = &s->totals;
    page_line(p)->node = arena_printf(
        c->arena, "%s%s%s: saved %s → %s, forward peak %s → %s, backward peak %s → %s", label,
        *what ? " " : "", what, text_bytes(c->arena, b->bytes), text_bytes(c->arena, t->bytes),
        text_bytes(c->arena, b->forward_peak), text_bytes(c->arena, t->forward_peak),
        text_bytes(c->arena, b->backward_peak), text_bytes(c->arena, t->backward_peak));
    page_cell(p, ST_edited, 8, "%s", label);
    was_cells(p, "saved", text_bytes(c->arena, b->bytes), b->bytes, t->bytes);
    if (b->forward_peak >= 0 && b->backward_peak >= 0) {
        was_cells(p, "  fw", text_bytes(c->arena, b->forward_peak), b->forward_peak,
                  t->forward_peak);
        was_cells(p, "  bw", text_bytes(c->arena, b->backward_peak), b->backward_peak,
                  t->backward_peak);
    }
    if (was->ns)
        was_cells(p, "  time", view_time(c, c->arena, (double)was->ns),
                  ns && !c->opt.hide_times ? was->ns : 0, ns);
}

static void budget_line(ViewCtx *c, Page *p, const int64_t bytes[3]) {
    static const char *const labels[] = {"inputs only", "plain cut", "taken"};
    int64_t most = 1;
    for (int i = 0; i < 3; i++)
        most = bytes[i] > most ? bytes[i] : most;
    page_line(p)->node = arena_printf(
        c->arena,
        "activation_memory_budget=%s: 0 saves inputs only, %s; 1 the plain cut, %s; taken %s",
        session_setting(c->session, "activation_memory_budget", c->arena),
        text_bytes(c->arena, bytes[0]), text_bytes(c->arena, bytes[1]),
        text_bytes(c->arena, bytes[2]));
    page_cell(p, ST_dim, 8, "budget");
    for (int i = 0; i < 3; i++) {
        page_add(p, ST_dim, "%s%s ", i ? "  " : "", labels[i]);
        page_bar(p, ST_bar, (double)bytes[i], (double)most, c->opt.cols >= WIDE ? 8 : 4);
        page_add(p, i == 2 ? ST_number : ST_text, " %s", text_bytes(c->arena, bytes[i]));
    }
}

static void head(ViewCtx *c, Page *p, const Saved *s) {
    const SavedTotals *t = &s->totals;
    const RunRow *run = launch_training_run(c->session, c->runs, s->unit);
    int64_t ns = run ? run->timing.median_ns : 0;
    page_line(p)->node = arena_printf(
        c->arena, "%s pass to backward in %d values; %s of them are inputs, which are there anyway",
        text_bytes(c->arena, t->bytes), t->n_saved, text_bytes(c->arena, t->input_bytes));
    page_cell(p, ST_dim, 8, "saved");
    page_add(p, ST_number, "%s B", text_count(c->arena, t->bytes));
    page_add(p, ST_dim, "   %s of inputs, %s made by forward   %d recomputed",
             text_count(c->arena, t->input_bytes), text_count(c->arena, t->bytes - t->input_bytes),
             t->n_recomputed);
    const int64_t *budget = s->art->partition->budget_bytes;
    if (budget[1] || budget[2])
        budget_line(c, p, budget);
    if (t->forward_peak >= 0 && t->backward_peak >= 0) {
        page_line(p)->node = "highest memory of buffers in each half, by the memory plan: without "
                             "inputs; saved values are outputs of forward and inputs of backward";
        page_cell(p, ST_dim, 8, "peak");
        page_add(p, ST_dim, "forward ");
        page_add(p, ST_number, "%s", text_bytes(c->arena, t->forward_peak));
        page_add(p, ST_dim, "   backward ");
        page_add(p, ST_number, "%s", text_bytes(c->arena, t->backward_peak));
        page_add(p, ST_dim, "   time ");
        page_add(p, run ? ST_number : ST_dim, "%s",
                 run ? view_time(c, c->arena, (double)ns) : "r runs it");
    }
    for (int i = 0; c->runs && i < c->runs->saved.n; i++) {
        const SavedNote *n = &c->runs->saved.at[i];
        if (n->unit != s->unit->index || !n->before.known)
            continue;
        change_line(c, p, "before", n->what, &n->before, s, ns);
        if (n->first.totals.bytes != n->before.totals.bytes ||
            n->first.totals.backward_peak != n->before.totals.backward_peak)
            change_line(c, p, "at first", "", &n->first, s, ns);
    }
}

// ---- rows

// Not saved by choice: no command could change it.
static bool is_choice(const SavedRow *r) {
    return !r->value->is_size && !r->value->is_input && !r->cost.random;
}

static const char *cost_text(Arena *a, const SavedCost *k) {
    static const char *const unit[] = {"", "k", "M", "G", "T", "P"};
    double v = k->flops;
    int u = 0;
    if (!k->ops)
        return "a view: free";
    for (; v >= 10000 && u + 1 < COUNT(unit); u++)
        v /= 1000;
    return arena_printf(a, "%d op%s %.0f%s flop", k->ops, k->ops == 1 ? "" : "s", v, unit[u]);
}

static void node_text(ViewCtx *c, const SavedRow *r, Buf *out) {
    const SavedValue *v = r->value;
    buf_printf(out, "%s = %s(%s)  ", r->node->name, brief_target(c->tmp, r->node),
               full_args(c->tmp, r->node));
    if (v->is_input)
        buf_puts(out, "an input: it is there anyway");
    else if (v->recomputed)
        buf_printf(out, "computed again in backward (%s): %s, saves %s", v->why ? v->why : "",
                   cost_text(c->tmp, &r->cost), text_bytes(c->tmp, v->bytes));
    else
        buf_printf(out, "saved (%s)", v->why ? v->why : "");
    if (is_choice(r) && !v->recomputed)
        buf_printf(out, ".  computed again instead: %s, %s less saved",
                   cost_text(c->tmp, &r->cost), text_bytes(c->tmp, v->bytes));
    else if (r->cost.random && !v->is_input)
        buf_puts(out, ".  a random op would draw other numbers: it must be saved");
}

static void row(ViewCtx *c, Page *p, const Saved *s, const SavedRow *r, int64_t most) {
    const SavedValue *v = r->value;
    bool wide = c->opt.cols >= WIDE;
    DocLine *l = page_line(p);
    l->item = (Item){s->art->id, r->node->id};
    l->enter = ""; // made when it is asked for, as is the node line
    l->frozen = NAME_COLS + 1;
    if (r->wish) {
        l->sign = v->pinned ? *r->wish ? "+" : "!" : "✗";
        l->sign_style = v->pinned ? ST_edited : ST_warn;
    }
    page_cell(p, v->recomputed ? ST_bw : ST_text, NAME_COLS, "%s", r->node->name);
    page_add(p, ST_text, " ");
    page_cell(p, ST_type, TYPE_COLS, "%s",
              v->is_size ? "a size" : brief_value_type(c->arena, &r->node->val));
    if (v->is_size)
        page_cell(p, ST_dim, BYTES_COLS, "%*s", BYTES_COLS - 1, "·");
    else
        page_cell(p, ST_number, -(BYTES_COLS - 1), "%s", text_count(c->arena, v->bytes));
    page_add(p, ST_text, " ");
    page_bar(p, v->recomputed ? ST_bar_rest : ST_bar, (double)v->bytes, (double)most,
             wide ? 2 * BAR_COLS : BAR_COLS);
    page_add(p, ST_text, " ");
    if (wide)
        page_cell(p, ST_dim, COST_COLS, "%s",
                  v->is_input || v->is_size ? "·" : cost_text(c->arena, &r->cost));
    page_add(p, v->pinned ? ST_edited : ST_dim, "%s",
             v->is_input ? "an input" : v->why ? v->why : "");
}

static int by_bytes(const void *x, const void *y) {
    const SavedRow *a = *(const SavedRow *const *)x, *b = *(const SavedRow *const *)y;
    if (a->value->bytes != b->value->bytes)
        return a->value->bytes < b->value->bytes ? 1 : -1;
    return (a > b) - (a < b);
}

static int by_cost(const void *x, const void *y) {
    const SavedRow *a = *(const SavedRow *const *)x, *b = *(const SavedRow *const *)y;
    if (a->cost.flops != b->cost.flops)
        return a->cost.flops < b->cost.flops ? 1 : -1;
    return (a > b) - (a < b);
}

enum { PART_made, PART_inputs, PART_sizes, PART_recomputed, PARTS };

static int part_of(const SavedValue *v) {
    return v->recomputed ? PART_recomputed
           : v->is_size  ? PART_sizes
           : v->is_input ? PART_inputs
                         : PART_made;
}

static void rows(ViewCtx *c, Page *p, const Saved *s) {
    static const char *const titles[] = {"saved by forward", "inputs, there anyway", "sizes",
                                         "computed again in backward"};
    const SavedRow **at = ARENA_ARRAY(c->arena, s->n + 1, const SavedRow *);
    int64_t most = 1;
    for (int i = 0; i < s->n; i++)
        most = s->rows[i].value->bytes > most ? s->rows[i].value->bytes : most;
    for (int part = 0; part < PARTS; part++) {
        int n = 0;
        int64_t bytes = 0;
        for (int i = 0; i < s->n; i++)
            if (part_of(s->rows[i].value) == part) {
                at[n++] = &s->rows[i];
                bytes += s->rows[i].value->bytes;
            }
        if (!n)
            continue;
        if (c->opt.sort)
            qsort(at, (size_t)n, sizeof *at, c->opt.sort == 1 ? by_bytes : by_cost);
        page_section(p, "%s   %d%s%s", titles[part], n, part == PART_sizes ? "" : "   ",
                     part == PART_sizes ? "" : text_bytes(c->arena, bytes));
        for (int i = 0; i < n; i++)
            row(c, p, s, at[i], most);
    }
    if (!s->n) {
        page_line(p);
        page_add(p, ST_dim, "backward needs nothing of forward");
    }
}

static const SavedRow *row_at(ViewCtx *c, int row) {
    const Doc *d = c->doc;
    int id = d->page.lines.at[row].item.id;
    for (int i = 0; id >= 0 && i < d->saved.n; i++)
        if (d->saved.rows[i].node->id == id)
            return &d->saved.rows[i];
    return NULL;
}

static void saved_node(ViewCtx *c, int row, Buf *out) {
    const SavedRow *r = row_at(c, row);
    if (r)
        node_text(c, r, out);
    else
        page_node(c, row, out);
}

static const char *saved_enter(ViewCtx *c, int row) {
    const SavedRow *r = row_at(c, row);
    return r ? arena_printf(c->tmp, "stage partition graph %d ; goto %s",
                            ((Doc *)c->doc)->saved.unit->index, r->node->name)
             : NULL;
}

static bool saved_open(ViewCtx *c, Buf *why) {
    Diag d = {.arena = c->arena};
    Saved *s = ARENA_NEW(c->arena, Saved);
    if (!session_saved(c->session, c->unit, c->arena, s, &d)) {
        buf_puts(why, diag_first(&d));
        if (d.n && d.at[0].hint)
            buf_printf(why, "   %s", d.at[0].hint);
        return false;
    }
    Doc *doc = ARENA_NEW(c->arena, Doc);
    Page *p = page_new(c);
    doc->page = *p;
    doc->saved = *s;
    c->doc = p = &doc->page;
    head(c, p, s);
    rows(c, p, s);
    return true;
}

static void saved_title(ViewCtx *c, Buf *left, Buf *right) {
    buf_puts(left, "7 partition · saved for backward");
    buf_printf(right, "%s  budget %s", session_setting(c->session, "partitioner", c->tmp),
               session_setting(c->session, "activation_memory_budget", c->tmp));
}

// saved → recomputed, or the other way round; then back to the rule.
static bool saved_toggle(ViewCtx *c, int row, const char **command) {
    const SavedRow *r = row_at(c, row);
    if (!r || r->value->is_input || r->value->is_size)
        return false;
    if (r->wish)
        *command = arena_printf(c->tmp, "unpin %s", r->node->name);
    else
        *command = arena_printf(c->tmp, "pin %s %s", r->node->name,
                                r->value->recomputed ? "saved" : "recomputed");
    return true;
}

static const char *const sorts[] = {"order of forward", "bytes", "cost of computing it again",
                                    NULL};

const View view_saved = {
    .name = "saved",
    .doc = "what passes from forward to backward, why, and what is computed again instead",
    .flags = VIEW_width | VIEW_joint,
    .stage = STAGE_partition,
    .open = saved_open,
    .count = page_count,
    .line = page_line_of,
    .row_of = page_row_of,
    .title = saved_title,
    .node = saved_node,
    .enter = saved_enter,
    .toggle = saved_toggle,
    .start = page_start,
    .sorts = sorts,
};
