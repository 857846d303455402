// sizes.c: whether the tensors of a graph can exist at all. Later stages multiply sizes, strides
// and item sizes freely; what they may rely on is checked here, once a graph.
#include "core/fx/graph.h"

// A tensor's bytes, and its elements even where a stride is 0: far beyond any machine, far below
// what a few additions and products of such numbers could overflow.
static const int64_t limit = INT64_C(1) << 50;

typedef struct Sizes {
    const Graph *g;
    const Node *node;
    Diag *d;
    bool ok;
} Sizes;

static void fail(Sizes *s, const TensorMeta *t, const char *what) {
    Buf text = {.arena = s->d->arena};
    sym_print_list(&text, t->size, t->ndim);
    if (t->stride) {
        buf_puts(&text, ", strides ");
        sym_print_list(&text, t->stride, t->ndim);
    }
    diag_error(s->d, node_place(s->node), "node %s: %s: sizes %s", s->node->name, what,
               buf_str(&text));
    s->ok = false;
}

// Its value or hint; false if it has none, which is no fault of the graph.
static bool number(const Sizes *s, const Expr *e, int64_t *v) {
    return expr_int(e, v) || sym_hint(s->g->sym, e, v);
}

static bool impossible(const Expr *e) {
    return expr_kind(e) == SYM_overflow;
}

static void check_tensor(Sizes *s, const TensorMeta *t) {
    int64_t elements = 1, last = 0, v = 0, step = 0;
    bool empty = false, too_large = t->offset && impossible(t->offset);
    for (int i = 0; i < t->ndim; i++) {
        too_large |=
            impossible(t->size[i]) || (t->stride && t->stride[i] && impossible(t->stride[i]));
        if (too_large || !number(s, t->size[i], &v))
            continue;
        if (v < 0) {
            fail(s, t, "a negative size");
            return;
        }
        empty |= v == 0;
        too_large |= __builtin_mul_overflow(elements, v ? v : 1, &elements);
        if (!t->stride || !t->stride[i] || !number(s, t->stride[i], &step))
            continue;
        if (step < 0) {
            fail(s, t, "a negative stride");
            return;
        }
        if (v > 1)
            too_large |= __builtin_mul_overflow(v - 1, step, &step) ||
                         __builtin_add_overflow(last, step, &last);
    }
    if (t->offset && !too_large && number(s, t->offset, &v))
        too_large |= v < 0 || __builtin_add_overflow(last, v, &last);
    int64_t most = limit / (dtype_info[t->dtype].bytes ? dtype_info[t->dtype].bytes : 1);
    if (too_large || (!empty && (elements > most || last >= most)))
        fail(s, t, "storage size calculation overflowed");
}

static void check_value(Sizes *s, const Value *v) {
    if (v->kind == VAL_tensor && v->tensor)
        check_tensor(s, v->tensor);
    if (v->kind == VAL_list || v->kind == VAL_tuple)
        for (int i = 0; i < v->n; i++)
            check_value(s, &v->at[i]);
}

bool graph_check_sizes(const Graph *g, Diag *d) {
    Sizes s = {.g = g, .d = d, .ok = true};
    GRAPH_EACH (g, n) {
        s.node = n;
        if (s.ok)
            check_value(&s, &n->val);
    }
    return s.ok;
}
