// diff_text.c: an artifact as lines for a diff: what a line is about, and its text in the brief
// spelling or in full.
#include "views/diff_text.h"

#include <string.h>

static void push(ViewCtx *c, DiffText *t, const char *name, const char *text, int item) {
    if (t->n == t->cap) {
        int more = t->cap ? t->cap * 2 : 64;
        size_t n = (size_t)t->n, m = (size_t)more;
        t->name = arena_grow(c->arena, t->name, n, m, sizeof *t->name);
        t->text = arena_grow(c->arena, t->text, n, m, sizeof *t->text);
        t->same = arena_grow(c->arena, t->same, n, m, sizeof *t->same);
        t->item = arena_grow(c->arena, t->item, n, m, sizeof *t->item);
        t->cap = more;
    }
    t->name[t->n] = name;
    t->text[t->n] = text;
    t->same[t->n] = NULL;
    t->item[t->n++] = item;
}

static void graph_lines(ViewCtx *c, DiffText *t, const Graph *g) {
    t->text = ARENA_ARRAY(c->arena, g->n_nodes + 1, const char *);
    t->item = ARENA_ARRAY(c->arena, g->n_nodes + 1, int);
    GRAPH_EACH (g, n)
        t->item[t->n++] = n->id;
}

const char *diff_node_text(ViewCtx *c, const Node *n, bool typed) {
    if (c->opt.full) {
        Buf b = {.arena = c->arena};
        node_print(&b, n, &fx_style_readable);
        return buf_str(&b);
    }
    if (n->op == FX_placeholder)
        return arena_printf(c->arena, "%-12s input  %s", n->name,
                            typed ? brief_value_type(c->arena, &n->val) : "");
    return arena_printf(c->arena, "%-12s %s %s  %s", n->name,
                        n->op == FX_output ? "return" : brief_target(c->arena, n),
                        brief_args(c->arena, n), typed ? brief_value_type(c->arena, &n->val) : "");
}

const char *diff_text_at(ViewCtx *c, const DiffText *t, int line) {
    if (!t->text[line])
        t->text[line] = diff_node_text(c, graph_by_id(t->art->graph, t->item[line]), true);
    return t->text[line];
}

static const char *kind_of(const SchedNode *n) {
    if (!n->op)
        return "";
    return n->op->loop_kind ? n->op->loop_kind : n->op->kernel ? n->op->kernel : "";
}

// What it computes counts, shown or not; what it was made of does not: a file does not say that.
static const char *with_body(ViewCtx *c, const SchedNode *n, const char *loops) {
    Buf b = {.arena = c->arena};
    buf_puts(&b, loops);
    if (n->body && n->op)
        loop_body_print(&b, n->op->name, n->body, NULL);
    return buf_str(&b);
}

static void sched_lines(ViewCtx *c, DiffText *t, const Schedule *s) {
    for (int i = 0; i < s->nodes.n; i++) {
        const SchedNode *top = s->nodes.at[i];
        if (top->snodes.n)
            push(c, t, top->name, arena_printf(c->arena, "%s  %d nodes", top->name, top->snodes.n),
                 top->snodes.at[0]->op ? top->snodes.at[0]->op->number : -1);
        for (int k = 0; k < (top->snodes.n ? top->snodes.n : 1); k++) {
            const SchedNode *n = top->snodes.n ? top->snodes.at[k] : top;
            const char *out = n->outputs.n ? n->outputs.at[0]->ir->name : "";
            const char *size =
                n->n_iter || n->n_red ? brief_sizes(c->arena, n->iter, n->n_iter) : "";
            const char *loops = arena_printf(
                c->arena, "%-6s %s %s%s%s  → %s", n->name, kind_of(n), size, n->n_red ? " r" : "",
                n->n_red ? brief_sizes(c->arena, n->red, n->n_red) : "", out);
            push(c, t, n->op ? n->op->name : n->name,
                 arena_printf(c->arena, "%s%s  %s", top->snodes.n ? "  " : "", loops,
                              brief_what(c->arena, s, n)),
                 n->op ? n->op->number : -1);
            t->same[t->n - 1] = with_body(c, n, loops);
        }
    }
}

// Lines of code are about themselves; those of a table about their first word, where no other line
// begins with it.
static void text_lines(ViewCtx *c, DiffText *t, const char *text, bool table) {
    int n;
    const char **lines = split_lines(c->arena, text, &n);
    Map seen = {.arena = c->arena};
    for (int i = 0; i < n; i++) {
        const char *key = lines[i];
        const char *word = lines[i] + strspn(lines[i], " ");
        if (table && *word) {
            const char *first = arena_strndup(c->arena, word, strcspn(word, " "));
            if (!map_find(&seen, first))
                key = first;
            map_put_int(&seen, first, 1);
        }
        push(c, t, key, lines[i], i);
    }
}

DiffText diff_text(ViewCtx *c, const Artifact *art) {
    DiffText t = {.art = art};
    switch (art->kind) {
    case ART_graph:
        graph_lines(c, &t, art->graph);
        break;
    case ART_schedule:
        sched_lines(c, &t, art->schedule);
        break;
    case ART_code:
        text_lines(c, &t, art->code->text, false);
        break;
    case ART_text:
        text_lines(c, &t, art->text, art->id < 0 && art->stage != STAGE_kernels);
        break;
    case ART_none:
        break;
    }
    return t;
}
