// diff_same.c: whether two lines that are about one thing say the same. Nodes are compared as they
// are, argument by argument, and printed only where that leaves it open: what differs may still
// read alike in the brief spelling.
#include "views/diff_text.h"

#include <string.h>

typedef enum Sameness { DIFFERS, SAME, UNSURE } Sameness;

// Blanks only set things out: under the name of a fused node a line stands further in, and a longer
// name leaves less room behind it.
bool same_words(const char *a, const char *b) {
    for (;;) {
        a += strspn(a, " ");
        b += strspn(b, " ");
        size_t n = strcspn(a, " "), m = strcspn(b, " ");
        if (n != m || memcmp(a, b, n))
            return false;
        if (!n)
            return true;
        a += n;
        b += m;
    }
}

// A text of b with b's names as a has them.
static const char *rename(ViewCtx *c, const DiffMatch *m, const char *text) {
    Buf out = {.arena = c->tmp};
    bool any = false;
    // In the brief spelling the second word is the op, which may be called as some node is.
    const char *op = text + strcspn(text, " ");
    op = c->opt.full ? NULL : op + strspn(op, " ");
    for (const char *p = text; *p;) {
        size_t n = strspn(p, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_");
        const Node *b = NULL, *a = NULL;
        if (n && p != op && (p == text || p[-1] != '.'))
            b = graph_find(m->b, arena_strndup(c->tmp, p, n));
        if (b && (a = m->to[b->id]) && strcmp(a->name, b->name)) {
            buf_puts(&out, a->name);
            any = true;
        } else {
            buf_add(&out, p, n ? n : 1);
        }
        p += n ? n : 1;
    }
    return any ? buf_str(&out) : text;
}

static Sameness both(Sameness x, Sameness y) {
    return x == DIFFERS || y == DIFFERS ? DIFFERS : x == UNSURE || y == UNSURE ? UNSURE : SAME;
}

static Sameness same_value(const DiffMatch *m, const Value *a, const Value *b) {
    if (a->kind != b->kind)
        return UNSURE;
    switch (a->kind) {
    case VAL_int:
        return a->i == b->i ? SAME : DIFFERS;
    case VAL_node: {
        const Node *to = m->to && m->to[b->node->id] ? m->to[b->node->id] : b->node;
        return !strcmp(a->node->name, to->name) ? SAME : DIFFERS;
    }
    case VAL_list:
    case VAL_tuple:
    case VAL_dict:
    case VAL_slice: {
        Sameness all = a->n == b->n ? SAME : DIFFERS;
        for (int i = 0; all != DIFFERS && i < a->n; i++)
            all = both(all, same_value(m, &a->at[i], &b->at[i]));
        return all;
    }
    case VAL_graph:
        return UNSURE;
    default:
        return val_equal(a, b) ? SAME : UNSURE;
    }
}

static Sameness same_target(ViewCtx *c, const Node *a, const Node *b) {
    if (a->op == FX_placeholder || a->op == FX_output || !strcmp(a->target, b->target))
        return SAME;
    return strcmp(brief_target(c->tmp, a), brief_target(c->tmp, b)) ? DIFFERS : UNSURE;
}

static Sameness same_args(const DiffMatch *m, const Node *a, const Node *b) {
    Sameness all = a->n_args == b->n_args && a->n_kwargs == b->n_kwargs ? SAME : UNSURE;
    for (int i = 0; all == SAME && i < a->n_args; i++)
        all = same_value(m, &a->args[i], &b->args[i]);
    for (int i = 0; all == SAME && i < a->n_kwargs; i++)
        if (strcmp(a->kwargs[i].name, b->kwargs[i].name) ||
            same_value(m, &a->kwargs[i].value, &b->kwargs[i].value) != SAME)
            all = UNSURE;
    return all;
}

static Sameness same_type(const ViewCtx *c, const Value *a, const Value *b) {
    bool tensor_a = a->kind == VAL_tensor, tensor_b = b->kind == VAL_tensor;
    if (!tensor_a && !tensor_b && !c->opt.full)
        return SAME; // not compared
    if (!tensor_a || !tensor_b)
        return val_equal(a, b) ? SAME : UNSURE;
    if (a->tensor->dtype != b->tensor->dtype || a->tensor->ndim != b->tensor->ndim)
        return DIFFERS;
    return (c->opt.full ? meta_equal : meta_equal_size)(a->tensor, b->tensor) ? SAME : UNSURE;
}

static Sameness same_node(ViewCtx *c, const DiffMatch *m, const Node *a, const Node *b) {
    if (a->op != b->op)
        return UNSURE;
    Sameness s = same_target(c, a, b);
    s = s == DIFFERS ? s : both(s, same_type(c, &a->val, &b->val));
    return s == DIFFERS ? s : both(s, same_args(m, a, b));
}

bool diff_same(ViewCtx *c, const DiffMatch *m, const DiffText *a, int i, const DiffText *b, int j) {
    bool node_a = a->art->kind == ART_graph, node_b = b->art->kind == ART_graph;
    const Node *na = node_a ? graph_by_id(a->art->graph, a->item[i]) : NULL;
    const Node *nb = node_b ? graph_by_id(b->art->graph, b->item[j]) : NULL;
    ArenaMark mark = arena_mark(c->tmp);
    Sameness s = na && nb ? na == nb ? SAME : same_node(c, m, na, nb) : UNSURE;
    if (s == UNSURE) {
        ViewCtx frame = *c; // what is printed here is not shown
        frame.arena = c->tmp;
        const char *ta = na ? diff_node_text(&frame, na, na->val.kind == VAL_tensor) : NULL;
        const char *tb = nb ? diff_node_text(&frame, nb, nb->val.kind == VAL_tensor) : NULL;
        ta = ta ? ta : a->same[i] ? a->same[i] : a->text[i];
        tb = tb ? tb : b->same[j] ? b->same[j] : b->text[j];
        s = same_words(ta, na && nb && m->to ? rename(c, m, tb) : tb) ? SAME : DIFFERS;
    }
    arena_rewind(c->tmp, mark);
    return s == SAME;
}
