// realize.c: when a lazy value becomes a buffer and which layout the buffer gets. Source:
// torch/_inductor/ir.py StorageBox, ComputedBuffer, Reduction.num_splits.
#include "core/inductor/lower.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { CALLS_MAX = 2000 }; // operations in a body, repeated ones counted each time

// ---- lazy loops

Loops *loops_new(Lower *l, LoopsKind kind, DType dtype, Device dev, int ndim,
                 const Expr *const *ranges, Fn inner) {
    Loops *p = ARENA_NEW(l->arena, Loops);
    *p = (Loops){.kind = kind,
                 .dtype = dtype,
                 .device = dev,
                 .ndim = ndim,
                 .inner = inner,
                 .origins = l->origins,
                 .node = l->node ? l->node->id : -1};
    p->ranges = ARENA_ARRAY(l->arena, ndim, const Expr *);
    for (int i = 0; i < ndim; i++)
        p->ranges[i] = ranges[i];
    return p;
}

Box *pointwise_new(Lower *l, DType dtype, Device dev, int ndim, const Expr *const *ranges,
                   Fn inner) {
    return box_new(l, data_loops(l, loops_new(l, LK_pointwise, dtype, dev, ndim, ranges, inner)));
}

static TVal call_loops(Tracer *t, const void *ctx, Index idx, Index red) {
    const Loops *p = ctx;
    int outer = t->origin;
    t->origin = p->node;
    TVal v = t_call(t, p->inner, idx, red);
    t->origin = outer;
    return v;
}

Fn loops_fn(Loops *p) {
    return (Fn){call_loops, p};
}

const Expr **loop_vars(Lower *l, const char *prefix, int n, const Expr *const *size, int *next) {
    const Expr **v = ARENA_ARRAY(&l->tmp, n, const Expr *);
    for (int i = 0; i < n; i++)
        v[i] = size_is_one(l, size[i])
                   ? sym_int(l->sym, 0)
                   : sym_symbol(l->sym, arena_printf(&l->tmp, "%s%d", prefix, (*next)++));
    return v;
}

static void count_into(Lower *l, const Loops *p, OpCount *out) {
    ArenaMark mark = arena_mark(&l->tmp);
    int next = 0;
    const Expr **idx = loop_vars(l, "d", p->ndim, p->ranges, &next),
               **red = loop_vars(l, "d", p->n_red, p->red, &next);
    Tracer t;
    tracer_count(&t, l, out);
    if (p->scatter) {
        const Expr *ignored[64];
        p->scatter(&t, p->scatter_ctx, idx, ignored);
    }
    call_loops(&t, p, idx, red);
    arena_rewind(&l->tmp, mark);
}

OpCount *loops_count(Lower *l, Loops *p) {
    if (!p->count) {
        p->count = ARENA_NEW(l->arena, OpCount);
        count_into(l, p, p->count);
    }
    return p->count;
}

// ---- buffers

LBuf *buffer_new(Lower *l, IrLayout *layout) {
    LBuf *b = ARENA_NEW(l->arena, LBuf);
    b->ir = ARENA_NEW(l->arena, IrBuffer);
    b->ir->layout = layout;
    b->node = l->node ? l->node->id : -1;
    return b;
}

LBuf *buffer_register(Lower *l, IrLayout *layout, IrClass cls) {
    LBuf *b = buffer_new(l, layout);
    buffer_name(l, b, cls);
    return b;
}

void buffer_name(Lower *l, LBuf *b, IrClass cls) {
    b->ir->name = arena_printf(l->arena, "%sbuf%d", l->prefix, l->n_bufs++);
    IrOp *op = ARENA_NEW(l->arena, IrOp);
    op->number = l->m->ops.n;
    op->name = arena_printf(l->arena, "%sop%d", l->prefix, op->number);
    op->cls = cls;
    op->cls_name = ir_class_name[cls];
    op->origin_node = b->node;
    for (int i = 0; i < l->origins.n; i++)
        vec_push(l->arena, &op->origins, l->origins.ids[i]);
    vec_push(l->arena, &op->outputs, b->ir);
    b->ir->op = op;
    vec_push(l->arena, &l->m->ops, op);
    vec_push(l->arena, &l->bufs, b);
    map_put(&l->by_name, b->ir->name, b);
    map_put(&l->m->buffers, b->ir->name, b->ir);
}

static const char *const loop_kind_name[] = {
    [LK_pointwise] = "Pointwise", [LK_reduction] = "Reduction", [LK_welford] = "WelfordReduction",
    [LK_scatter] = "Scatter",     [LK_random] = "Pointwise",
};

LBuf *computed_buffer(Lower *l, Loops *p, IrLayout *layout) {
    OriginSet outer = l->origins;
    l->origins = p->origins;
    LBuf *b = buffer_register(l, layout, IR_computed);
    l->origins = outer;
    b->loops = p;
    b->node = p->node;
    IrOp *op = b->ir->op;
    op->origin_node = p->node;
    op->loop_kind = loop_kind_name[p->kind];
    op->reduction = p->reduction;
    op->n_ranges = p->ndim;
    op->ranges = p->ranges;
    return b;
}

void data_realize(Lower *l, Data *d, const char *why) {
    d = data_unwrap(d);
    if (d->kind != D_store || d->buf)
        return;
    Loops *p = d->loops;
    IrLayout *y = layout_new(l, IRL_flexible, p->device, p->dtype, p->ndim, p->ranges, NULL, NULL);
    d->buf = computed_buffer(l, p, y);
    d->loops = NULL;
    (void)why;
}

void box_realize(Lower *l, Box *b, const char *why) {
    data_realize(l, b->data, why);
}

// ---- heuristics, each of them asked for

static const char *node_name(const Lower *l, const Loops *p) {
    const Node *n = p->node >= 0 ? graph_by_id(l->g, p->node) : NULL;
    return n ? n->name : "output";
}

static Loops *lazy_loops(const Box *b) {
    const Data *d = b->data;
    while (d->kind == D_view)
        d = d->base;
    return d->kind == D_store && !d->buf ? d->loops : NULL;
}

bool box_asked(Lower *l, const Box *b, const char *reason) {
    Loops *p = lazy_loops(b);
    Decide q = {.kind = DECIDE_realize,
                .key = node_name(l, p),
                .by_default = true,
                .reason = reason,
                .score = loops_count(l, p)->n_ops};
    return decide(l->req->decisions, &q);
}

static void ask(Lower *l, Box *b, const char *reason) {
    if (box_asked(l, b, reason))
        box_realize(l, b, reason);
}

// A value that stays lazy: the user may want it realized all the same.
void box_ask_lazy(Lower *l, Box *b) {
    Loops *p = lazy_loops(b);
    if (!p)
        return;
    Decide q = {.kind = DECIDE_realize,
                .key = node_name(l, p),
                .reason = "cheap to compute again in each user"};
    if (decide(l->req->decisions, &q))
        box_realize(l, b, "asked for");
}

static bool exceeds(Lower *l, Loops *p, int reads, int ops) {
    const OpCount *c = loops_count(l, p);
    return c->reads.n > reads || c->n_ops > ops;
}

const char *box_reuse_reason(Lower *l, const Box *b, int64_t users) {
    Loops *p = lazy_loops(b);
    if (users < 2 || !p)
        return NULL;
    const InductorConfig *c = l->req->config;
    if (p->device.type == DEV_cpu && loops_count(l, p)->heavy)
        return "several users, and exp or sigmoid is expensive on a CPU";
    if (exceeds(l, p, c->realize_reads_threshold, c->realize_opcount_threshold))
        return "several users, and too many reads or operations to repeat";
    return NULL;
}

const char *box_reads_reason(Lower *l, const Box *b) {
    Loops *p = lazy_loops(b);
    const InductorConfig *c = l->req->config;
    bool many = p && p->kind == LK_pointwise &&
                exceeds(l, p, c->realize_acc_reads_threshold, c->realize_opcount_threshold);
    return many && loops_count(l, p)->n_nontrivial > 1 ? "too many accumulated reads" : NULL;
}

void box_mark_reuse(Lower *l, Box *b, int64_t users) {
    const char *reason = box_reuse_reason(l, b, users);
    if (reason)
        ask(l, b, reason);
}

void box_realize_hint(Lower *l, Box *b) {
    Loops *p = lazy_loops(b);
    if (p && loops_count(l, p)->n_nontrivial > 1)
        ask(l, b, "a user needs its inputs in memory");
}

void box_too_large(Lower *l, Box *b) {
    Loops *p = b->data->kind == D_store ? lazy_loops(b) : NULL;
    if (p && p->kind == LK_pointwise && loops_count(l, p)->n_ops > 100)
        ask(l, b, "more than 100 operations");
    // Each use of a lazy value repeats it: y = y + y doubles the body. Nobody may choose that.
    p = lazy_loops(b);
    if (p && p->kind == LK_pointwise && loops_count(l, p)->n_calls > CALLS_MAX)
        box_realize(l, b, "repeated too often");
}

// ---- layouts

void buf_freeze(Lower *l, LBuf *b) {
    (void)l;
    if (b->ir->layout->kind == IRL_flexible)
        b->ir->layout->kind = IRL_fixed;
}

void buf_freeze_strides(Lower *l, LBuf *b, const Expr *const *stride) {
    IrLayout *y = b->ir->layout;
    (void)l;
    if (y->kind != IRL_flexible)
        return;
    for (int i = 0; i < y->ndim; i++)
        y->stride[i] = stride[i];
    y->kind = IRL_fixed;
}

static void freeze_fill(Lower *l, LBuf *b, const int *fill) {
    buf_freeze_strides(l, b, strides_filled(l, b->ir->layout->ndim, b->ir->layout->size, fill));
}

void buf_freeze_order(Lower *l, LBuf *b, const int *order) {
    int fill[64];
    assert(b->ir->layout->ndim <= 64);
    strides_order_to_fill(b->ir->layout->ndim, order, fill);
    freeze_fill(l, b, fill);
}

// The order of given strides, equal ones from the left.
void buf_freeze_same_order(Lower *l, LBuf *b, const Expr *const *stride) {
    int fill[64], n = b->ir->layout->ndim;
    assert(n <= 64);
    for (int i = 0; i < n; i++) {
        int rank = 0;
        for (int j = 0; j < n; j++)
            rank += j < i ? size_hint(l, stride[j]) <= size_hint(l, stride[i])
                          : size_hint(l, stride[j]) < size_hint(l, stride[i]);
        fill[rank] = i;
    }
    freeze_fill(l, b, fill);
}

// The order in which its reads would like it to be written; false: no reads say anything.
static bool fill_order(Lower *l, LBuf *b, int *fill) {
    Loops *p = b->loops;
    Arena *a = &l->tmp;
    int n = p->ndim, next = 0;
    OpCount *c = ARENA_NEW(l->arena, OpCount);
    count_into(l, p, c);
    if (!c->reads.n)
        return false;
    const Expr **idx = loop_vars(l, "d", n, p->ranges, &next),
               **red = loop_vars(l, "d", p->n_red, p->red, &next);
    const Expr **zero = ARENA_ARRAY(a, p->n_red, const Expr *),
               **s = ARENA_ARRAY(a, n, const Expr *);
    const Expr **vars = ARENA_ARRAY(a, n, const Expr *);
    int n_vars = 0, n_red = 0;
    for (int i = 0; i < p->n_red; i++)
        if (!expr_is(red[i], 0))
            red[n_red++] = red[i];
    for (int i = 0; i < n_red; i++)
        zero[i] = sym_int(l->sym, 0);
    for (int i = 0; i < n; i++)
        if (!expr_is(idx[i], 0))
            vars[n_vars++] = idx[i];
    const int64_t **strides = ARENA_ARRAY(a, c->reads.n, const int64_t *);
    for (int k = 0; k < c->reads.n; k++) {
        const Expr *e = n_red ? sym_subst(l->sym, c->reads.at[k].index, red, zero, n_red)
                              : c->reads.at[k].index;
        int64_t *row = ARENA_ARRAY(a, n, int64_t);
        sym_stride_vars(l->sym, e, vars, n_vars, vars, n_vars, s);
        for (int i = 0, j = 0; i < n; i++)
            if (!expr_is(idx[i], 0)) {
                row[i] = size_hint(l, s[j]);
                j++;
            }
        strides[k] = row;
    }
    int64_t *sizes = ARENA_ARRAY(a, n, int64_t);
    for (int i = 0; i < n; i++)
        sizes[i] = size_hint(l, p->ranges[i]);
    pick_loop_order(n, strides, c->reads.n, sizes, fill);
    return true;
}

void buf_decide(Lower *l, LBuf *b) {
    int fill[64];
    if (b->ir->layout->kind != IRL_flexible)
        return;
    ArenaMark mark = arena_mark(&l->tmp);
    assert(b->ir->layout->ndim <= 64);
    if (b->loops && b->ir->layout->ndim && fill_order(l, b, fill))
        freeze_fill(l, b, fill);
    else
        buf_freeze(l, b);
    arena_rewind(&l->tmp, mark);
}

static bool in_all(const Expr *e, const Expr *const *vars, int n) {
    for (int i = 0; i < n; i++)
        if (!expr_is(vars[i], 0) && !expr_has(e, vars[i]))
            return false;
    return true;
}

static int by_buffer_name(const void *a, const void *b) {
    return strcmp(((const TRead *)a)->buf, ((const TRead *)b)->buf);
}

void loops_decide_reads(Lower *l, const Loops *p) {
    int64_t kept = size_hint(l, sym_product(l->sym, p->ranges, p->ndim)),
            reduced = size_hint(l, sym_product(l->sym, p->red, p->n_red));
    if (kept == 1 || reduced <= 32 || kept >= 64 * l->req->config->multi_processor_count)
        return;
    ArenaMark mark = arena_mark(&l->tmp);
    int next = 0;
    OpCount *c = ARENA_NEW(l->arena, OpCount);
    count_into(l, p, c);
    const Expr **idx = loop_vars(l, "d", p->ndim, p->ranges, &next),
               **red = loop_vars(l, "d", p->n_red, p->red, &next);
    // What is decided first, others may follow.
    if (c->reads.n)
        qsort(c->reads.at, (size_t)c->reads.n, sizeof *c->reads.at, by_buffer_name);
    for (int i = 0; i < c->reads.n; i++) {
        const TRead *r = &c->reads.at[i];
        LBuf *b = map_get(&l->by_name, r->buf);
        if (b && in_all(r->index, idx, p->ndim) && in_all(r->index, red, p->n_red))
            buf_decide(l, b);
    }
    arena_rewind(&l->tmp, mark);
}

// ---- the loop body of a computed buffer

typedef struct BodyVars {
    const Expr **idx, **red;
} BodyVars;

static BodyVars body_vars(Lower *l, const Loops *p, LoopBody *body) {
    BodyVars v;
    int next = 0, k = 0;
    v.idx = loop_vars(l, "q", p->ndim, p->ranges, &next);
    body->n_iter = next;
    v.red = loop_vars(l, "q", p->n_red, p->red, &next);
    body->n_vars = next;
    body->vars = ARENA_ARRAY(l->arena, next, const Expr *);
    body->sizes = ARENA_ARRAY(l->arena, next, const Expr *);
    for (int i = 0; i < p->ndim + p->n_red; i++) {
        const Expr *e = i < p->ndim ? v.idx[i] : v.red[i - p->ndim];
        if (expr_is(e, 0))
            continue;
        body->vars[k] = e;
        body->sizes[k++] = i < p->ndim ? p->ranges[i] : p->red[i - p->ndim];
    }
    return v;
}

void simplify_and_reorder(Lower *l, LBuf *b) {
    ArenaMark mark = arena_mark(&l->tmp);
    Loops *p = b->loops;
    LoopBody *body = ARENA_NEW(l->arena, LoopBody);
    body->keep_order = !l->req->config->pick_loop_orders;
    BodyVars v = body_vars(l, p, body);
    Tracer t;
    tracer_record(&t, l, body);
    t.origin = p->node;
    const char *name = b->ir->name;
    const IrLayout *y = b->ir->layout->kind == IRL_mutation ? b->into : b->ir->layout;
    if (p->scatter) {
        const Expr *out[64];
        p->scatter(&t, p->scatter_ctx, v.idx, out);
        TVal value = call_loops(&t, p, v.idx, NULL);
        t_store(&t, name, layout_index(l, y, out), value, p->mode);
    } else {
        const Expr *at = layout_index(l, y, v.idx);
        TVal value = call_loops(&t, p, v.idx, p->n_red ? v.red : NULL);
        if (p->kind == LK_reduction || p->kind == LK_welford)
            t_reduce_store(&t, name, at, p->dtype, p->src_dtype, p->reduction, p->output, value);
        else
            t_store(&t, name, at, value, NULL);
    }
    b->ir->op->plain = body;
    b->ir->op->body = loop_body_simplify(l->arena, l->sym, body, NULL, 0);
    arena_rewind(&l->tmp, mark);
}
