// realize.c: when a lazy value becomes a buffer, which layout the buffer gets, and what library
// kernels and graph outputs ask of it (strides, copies). Source: torch/_inductor/ir.py StorageBox,
// ComputedBuffer, ExternKernel.require_strides, MutationLayoutSHOULDREMOVE.
#include "core/inductor/lower.h"

#include <assert.h>

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

// Loop variables, 0 where the size is 1.
static const Expr **loop_vars(Lower *l, const char *prefix, int n, const Expr *const *size,
                              int *next) {
    const Expr **v = ARENA_ARRAY(&l->tmp, n, const Expr *);
    for (int i = 0; i < n; i++)
        v[i] = size_is_one(l, size[i])
                   ? sym_int(l->sym, 0)
                   : sym_symbol(l->sym, arena_printf(&l->tmp, "%s%d", prefix, (*next)++));
    return v;
}

static void count_into(Lower *l, Loops *p, OpCount *out) {
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

static void ask(Lower *l, Box *b, const char *reason) {
    Loops *p = lazy_loops(b);
    Decide q = {.kind = DECIDE_realize,
                .key = node_name(l, p),
                .by_default = true,
                .reason = reason,
                .score = loops_count(l, p)->n_ops};
    if (decide(l->req->decisions, &q))
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

void box_mark_reuse(Lower *l, Box *b, int64_t users) {
    Loops *p = lazy_loops(b);
    if (users < 2 || !p)
        return;
    const InductorConfig *c = l->req->config;
    if (p->device.type == DEV_cpu && loops_count(l, p)->heavy)
        ask(l, b, "several users, and exp or sigmoid is expensive on a CPU");
    else if (exceeds(l, p, c->realize_reads_threshold, c->realize_opcount_threshold))
        ask(l, b, "several users, and too many reads or operations to repeat");
}

void box_realize_hint(Lower *l, Box *b) {
    Loops *p = lazy_loops(b);
    if (p && loops_count(l, p)->n_nontrivial > 1)
        ask(l, b, "a user needs its inputs in memory");
}

void box_too_large(Lower *l, Box *b) {
    Loops *p = lazy_loops(b);
    const InductorConfig *c = l->req->config;
    if (p && p->kind == LK_pointwise &&
        exceeds(l, p, c->realize_acc_reads_threshold, c->realize_opcount_threshold))
        if (loops_count(l, p)->n_nontrivial > 1)
            ask(l, b, "too many accumulated reads");
    p = b->data->kind == D_store ? lazy_loops(b) : NULL;
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
static void freeze_same_order(Lower *l, LBuf *b, const Expr *const *stride) {
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

// ---- inputs of library kernels

Data *data_copy(Lower *l, Data *d) {
    Box *b = clone_box(l, &(Box){d});
    box_realize(l, b, "copied for a kernel");
    return b->data;
}

// Index into the storage below a chain of views.
static const Expr *chain_index(Lower *l, Data *d, Index idx) {
    const Expr *out[64];
    if (d->kind == D_view) {
        d->reindex(l, d->ctx, idx, out);
        return chain_index(l, d->base, out);
    }
    return layout_index(l, data_layout(d), idx);
}

static Data *reinterpret(Lower *l, Data *d, bool bounded) {
    if (d->kind == D_reinterpret)
        return d;
    Data *store = data_unwrap(d);
    LBuf *b = store->buf;
    const Node *origin = b->node >= 0 ? graph_by_id(l->g, b->node) : NULL;
    const TensorMeta *m = origin ? node_meta(l, origin) : NULL;
    IrLayout *y = b->ir->layout;
    MemoryFormat last = y->ndim == 5 ? MF_channels_last_3d : MF_channels_last;
    if (y->kind == IRL_flexible && m && m->ndim == y->ndim && (y->ndim == 4 || y->ndim == 5) &&
        meta_is_contiguous(l->sym, m, last)) // also of one channel
        freeze_same_order(l, b, strides_channels_last(l, y->ndim, y->size));
    buf_freeze(l, b);
    int n = data_ndim(d), next = 0;
    const Expr *const *size = data_size(d);
    const Expr **idx = loop_vars(l, "r", n, size, &next);
    const Expr **vars = ARENA_ARRAY(&l->tmp, n, const Expr *),
               **sizes = ARENA_ARRAY(&l->tmp, n, const Expr *);
    const Expr **s = ARENA_ARRAY(&l->tmp, n, const Expr *),
               **stride = ARENA_ARRAY(&l->tmp, n, const Expr *);
    for (int i = 0, j = 0; i < n; i++)
        if (!expr_is(idx[i], 0)) {
            vars[j] = idx[i];
            sizes[j++] = size[i];
        }
    const Expr *e = sym_simplify_with_ranges(l->sym, chain_index(l, d, idx), vars, sizes, next);
    if (bounded)
        e = sym_simplify_bounded(l->sym, e, vars, sizes, next);
    sym_stride_vars(l->sym, e, vars, next, vars, next, s);
    const Expr *offset = sym_offset_of(l->sym, e, vars, next), *want = offset;
    for (int i = 0, j = 0; i < n; i++) {
        stride[i] = expr_is(idx[i], 0) ? sym_int(l->sym, 0) : s[j];
        if (!expr_is(idx[i], 0))
            want = sym_add(l->sym, want, sym_mul(l->sym, vars[j], s[j])), j++;
    }
    if (want != e && sym_expand(l->sym, want) != sym_expand(l->sym, e))
        return NULL;
    return view_strided(
        l, store, layout_new(l, IRL_fixed, y->device, data_dtype(d), n, size, stride, offset));
}

Data *data_reinterpret(Lower *l, Data *d) {
    return reinterpret(l, d, false);
}

Data *data_as_place(Lower *l, Data *d) {
    return reinterpret(l, d, true);
}

Data *data_as_input(Lower *l, Data *d) {
    if (d->kind == D_const || d->kind == D_index)
        return data_copy(l, d);
    data_realize(l, d, "input of a kernel");
    if (d->kind != D_view)
        return d;
    Data *r = is_storage_and_layout(data_unwrap(d)) ? data_reinterpret(l, d) : NULL;
    return r ? r : data_copy(l, d);
}

// ---- strides asked for

static bool significant_equal(Lower *l, int n, const Expr *const *a, const Expr *const *b,
                              const Expr *const *size) {
    for (int i = 0; i < n; i++)
        if (!size_is_one(l, size[i]) && a[i] != b[i] && !sym_known_eq(l->sym, a[i], b[i]))
            return false;
    return true;
}

static bool fits(Lower *l, const IrLayout *y, const int *order, const Expr *const *exact) {
    assert(order || exact);
    return order ? layout_is_stride_ordered(l, y, order)
                 : significant_equal(l, y->ndim, exact, y->stride, y->size);
}

// Strides of dimensions of size 1 as asked.
static Box *match_insignificant(Lower *l, Box *b, const Expr *const *exact) {
    const IrLayout *y = data_layout(b->data);
    if (sizes_equal(l, y->ndim, y->stride, exact))
        return b;
    IrLayout *v = layout_new(l, IRL_fixed, y->device, y->dtype, y->ndim, y->size, y->stride,
                             layout_offset(l, y));
    for (int i = 0; i < y->ndim; i++)
        if (size_is_one(l, y->size[i]))
            v->stride[i] = exact[i];
    Data *s = b->data->kind == D_reinterpret ? b->data->base : b->data;
    return box_new(l, view_strided(l, s, v));
}

static void freeze_as(Lower *l, LBuf *b, const int *order, const Expr *const *exact) {
    if (order)
        buf_freeze_order(l, b, order);
    else
        buf_freeze_strides(l, b, exact);
}

static Box *require_strides(Lower *l, Box *b, const int *order, const Expr *const *exact) {
    Data *d = b->data;
    int n = data_ndim(d), current[64];
    const Expr *numel = sym_product(l->sym, data_size(d), n);
    if (!exact && (expr_is(numel, 0) || expr_is(numel, 1)))
        return b;
    if (is_storage_and_layout(d)) {
        IrLayout *y = data_layout(d);
        if (y->kind == IRL_flexible) {
            if (order && layout_is_stride_ordered(l, y, order)) {
                strides_order(l, n, y->stride, current);
                order = current;
            }
            freeze_as(l, d->buf, order, exact);
            return b;
        }
        if (y->kind == IRL_fixed && fits(l, y, order, exact))
            return exact ? match_insignificant(l, b, exact) : b;
        if (y->kind == IRL_mutation && fits(l, d->buf->into, order, exact))
            return b;
    }
    Data *store = data_unwrap(d);
    if (d->kind == D_view && is_storage_and_layout(store) && !store->buf->is_extern_alloc) {
        Data *r = data_reinterpret(l, d);
        if (r) {
            b->data = r;
            return require_strides(l, b, order, exact);
        }
    }
    Box *copy = box_new(l, data_copy(l, d));
    freeze_as(l, copy->data->buf, order, exact);
    return copy;
}

Box *box_require_order(Lower *l, Box *b, const int *order) {
    return require_strides(l, b, order, NULL);
}

// A dimension of stride 0 is copied once and expanded again.
Box *box_require_exact(Lower *l, Box *b, const Expr *const *stride) {
    int n = data_ndim(b->data);
    const Expr *const *size = data_size(b->data);
    bool expanded = false;
    for (int i = 0; i < n; i++)
        expanded |= expr_is(stride[i], 0) && !size_is_one(l, size[i]);
    if (!expanded || (is_storage_and_layout(b->data) && data_layout(b->data)->kind == IRL_fixed &&
                      fits(l, data_layout(b->data), NULL, stride)))
        return require_strides(l, b, NULL, stride);
    Data *d = b->data;
    for (int i = 0; i < n; i++)
        if (expr_is(stride[i], 0) && !size_is_one(l, size[i]))
            d = view_slice(l, d, i, sym_int(l->sym, 0), sym_int(l->sym, 1), sym_int(l->sym, 1),
                           true);
    Data *copy = data_copy(l, d);
    buf_freeze_strides(l, copy->buf, stride);
    return box_new(l, view_expand(l, copy, n, size));
}

Box *box_require_contiguous(Lower *l, Box *b) {
    int order[64], n = data_ndim(b->data);
    for (int i = 0; i < n; i++)
        order[i] = n - 1 - i;
    return box_require_order(l, b, order);
}

Box *box_require_channels_last(Lower *l, Box *b) {
    static const int nhwc[] = {3, 0, 2, 1};
    return box_require_order(l, b, nhwc);
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
