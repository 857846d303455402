// lower_index.c: indexing by tensors. Reads load the index, make it a variable (set_indirect) and
// load; writes become a Scatter into the target, or a library call where adding needs more than one
// thread. Source: torch/_inductor/lowering.py index_impl, index_put_impl_, scatter_reduce_.
#include "core/inductor/lower.h"
#include "core/inductor/lowerings.h"

#include <string.h>

typedef struct IndexCtx {
    Fn x;
    int n_x;              // dimensions of x
    const Expr *size[64]; // of x
    int n_indices;
    bool given[64];
    Fn index[64];    // where given
    int rank;        // dimensions of the (broadcast) indices
    int first, last; // first and last given index
    int start;       // where the indices' dimensions stand in the result
    bool check, wrap;
} IndexCtx;

static void index_expressions(Tracer *t, const IndexCtx *c, Index idx, const Expr **out) {
    int next = 0;
    for (int i = 0; i <= c->last; i++) {
        if (i == c->start)
            next += c->rank;
        if (!c->given[i])
            out[i] = idx[next++];
        else
            out[i] = t_indirect(t, t_call(t, c->index[i], idx + c->start, NULL), c->size[i],
                                c->check, c->wrap);
    }
    if (c->last < c->start)
        next += c->rank;
    for (int i = c->last + 1; i < c->n_x; i++)
        out[i] = idx[next++];
}

static TVal run_index(Tracer *t, const void *ctx, Index idx, Index red) {
    const IndexCtx *c = ctx;
    const Expr *at[64];
    (void)red;
    index_expressions(t, c, idx, at);
    return t_call(t, c->x, at, NULL);
}

static void run_index_out(Tracer *t, const void *ctx, Index idx, const Expr **out) {
    index_expressions(t, ctx, idx, out);
}

// Fills c from x's size and a list of index tensors, and the result's size; false if a mask is
// among them.
static bool index_ctx(Lower *l, IndexCtx *c, Box *x, const LVal *list, int *n_out,
                      const Expr **out) {
    Box *in[64];
    int where[64], n = 0;
    bool apart = false;
    c->n_x = data_ndim(x->data);
    for (int i = 0; i < c->n_x; i++)
        c->size[i] = data_size(x->data)[i];
    c->n_indices = list->n;
    for (int i = 0; i < list->n; i++) {
        if (list->at[i].kind != L_box)
            continue;
        DType d = data_dtype(list->at[i].box->data);
        if (d == DT_b8 || d == DT_u8)
            return false;
        apart |= n > 0 && where[n - 1] != i - 1;
        where[n] = i;
        in[n++] = list->at[i].box;
    }
    if (!n)
        return false;
    broadcast_boxes(l, in, n);
    for (int i = 0; i < n; i++) {
        c->given[where[i]] = true;
        c->index[where[i]] = data_loader(l, in[i]->data);
    }
    c->rank = data_ndim(in[0]->data);
    c->first = where[0];
    c->last = where[n - 1];
    c->start = apart ? 0 : c->first;
    int k = 0;
    for (int i = 0; i < c->n_x; i++) {
        if (k == c->start && i == (apart ? 0 : c->first))
            for (int d = 0; d < c->rank; d++)
                out[k++] = data_size(in[0]->data)[d];
        if (!c->given[i])
            out[k++] = c->size[i];
    }
    *n_out = k;
    return true;
}

LVal lower_index(Lower *l, const Value *args, LoopOpKind kind) {
    Box *x = arg_box(l, args, 0);
    LVal list = l_of(l, &args[1]);
    const Expr *size[128];
    int n = 0;
    IndexCtx *c = ARENA_NEW(l->arena, IndexCtx);
    c->check = kind == LOOP_check_bounds;
    c->wrap = true;
    if (!index_ctx(l, c, x, &list, &n, size))
        return lower_fallback(l, l->node->def, args);
    c->x = data_loader(l, x->data);
    return lv_box(
        pointwise_new(l, data_dtype(x->data), data_device(x->data), n, size, (Fn){run_index, c}));
}

typedef struct MaskedCtx {
    IndexCtx *at;
    Fn mask;
    Value fill;
    DType dtype, mask_dtype;
} MaskedCtx;

static TVal run_masked_index(Tracer *t, const void *ctx, Index idx, Index red) {
    const MaskedCtx *c = ctx;
    (void)red;
    TVal mask = t_call(t, c->mask, idx, NULL);
    if (c->mask_dtype != DT_b8)
        mask = t_cast(t, mask, DT_b8, c->mask_dtype);
    return t_masked(t, mask, (Fn){run_index, c->at}, idx, c->fill, c->dtype);
}

// Indexes that no bounds are checked for, read only where the mask holds.
LVal lower_masked_index(Lower *l, const Value *args, LoopOpKind kind) {
    Box *x = arg_box(l, args, 0), *mask = arg_box(l, args, 1);
    LVal list = l_of(l, &args[2]);
    const Expr *size[128];
    int n = 0;
    MaskedCtx *c = ARENA_NEW(l->arena, MaskedCtx);
    (void)kind;
    c->at = ARENA_NEW(l->arena, IndexCtx);
    if (!index_ctx(l, c->at, x, &list, &n, size))
        return lower_fallback(l, l->node->def, args);
    c->at->x = data_loader(l, x->data);
    c->mask = data_loader(l, expand_box(l, mask, n, size)->data);
    c->mask_dtype = data_dtype(mask->data);
    c->fill = args[3];
    c->dtype = data_dtype(x->data);
    return lv_box(
        pointwise_new(l, c->dtype, data_device(x->data), n, size, (Fn){run_masked_index, c}));
}

// ---- embedding and gather

typedef struct GatherCtx {
    Fn x, index;
    int n, dim;       // dimensions of the index
    int n_index;      // embedding: dimensions of the indices
    const Expr *size; // of the dimension indexed
} GatherCtx;

static TVal run_embedding(Tracer *t, const void *ctx, Index idx, Index red) {
    const GatherCtx *c = ctx;
    const Expr *at[64];
    (void)red;
    at[0] = t_indirect(t, t_call(t, c->index, idx, NULL), c->size, true, true);
    for (int i = c->n_index; i < c->n; i++)
        at[i - c->n_index + 1] = idx[i];
    return t_call(t, c->x, at, NULL);
}

LVal lower_embedding(Lower *l, const Value *args, LoopOpKind kind) {
    Box *w = arg_box(l, args, 0), *ids = arg_box(l, args, 1);
    const Expr *size[64];
    GatherCtx *c = ARENA_NEW(l->arena, GatherCtx);
    (void)kind;
    *c = (GatherCtx){.x = data_loader(l, w->data),
                     .index = data_loader(l, ids->data),
                     .n_index = data_ndim(ids->data),
                     .size = data_size(w->data)[0]};
    c->n = c->n_index + data_ndim(w->data) - 1;
    for (int i = 0; i < c->n; i++)
        size[i] = i < c->n_index ? data_size(ids->data)[i] : data_size(w->data)[i - c->n_index + 1];
    return lv_box(pointwise_new(l, data_dtype(w->data), data_device(w->data), c->n, size,
                                (Fn){run_embedding, c}));
}

static TVal run_gather(Tracer *t, const void *ctx, Index idx, Index red) {
    const GatherCtx *c = ctx;
    const Expr *at[64];
    (void)red;
    const Expr *v = t_indirect(t, t_call(t, c->index, idx, NULL), c->size, true, true);
    for (int i = 0; i < c->n; i++)
        at[i] = idx[i];
    at[c->n ? c->dim : 0] = v;
    return t_call(t, c->x, at, NULL);
}

LVal lower_gather(Lower *l, const Value *args, LoopOpKind kind) {
    Box *x = arg_box(l, args, 0), *index = arg_box(l, args, 2);
    int n = data_ndim(x->data);
    int64_t dim = arg_int(l, args, 1);
    (void)kind;
    if (n == 0) {
        const Expr *one = sym_int(l->sym, 1);
        x = expand_box(l, x, 1, &one);
    }
    GatherCtx *c = ARENA_NEW(l->arena, GatherCtx);
    *c = (GatherCtx){.n = data_ndim(index->data), .dim = (int)(dim < 0 ? dim + n : dim)};
    c->size = data_size(x->data)[n ? c->dim : 0];
    c->x = data_loader(l, x->data);
    c->index = data_loader(l, index->data);
    return lv_box(pointwise_new(l, data_dtype(x->data), data_device(x->data), c->n,
                                data_size(index->data), (Fn){run_gather, c}));
}

// ---- writes

static bool adds_by_fallback(DType d) {
    return d == DT_i64 || d == DT_b8 || d == DT_bf16;
}

static bool index_put_by_loops(Lower *l, Box *self, const LVal *list, Box *values, bool accumulate,
                               bool check) {
    const Expr *size[128];
    int n = 0;
    IndexCtx *c = ARENA_NEW(l->arena, IndexCtx);
    c->check = check;
    c->wrap = true;
    if (accumulate && adds_by_fallback(data_dtype(self->data)))
        return false;
    if (!index_ctx(l, c, self, list, &n, size))
        return false;
    values = box_to_dtype(l, values, data_dtype(self->data));
    box_realize(l, self, "written in place");
    values = expand_box(l, values, n, size);
    Loops *p = loops_new(l, LK_scatter, data_dtype(self->data), data_device(self->data), n, size,
                         data_loader(l, values->data));
    p->scatter = run_index_out;
    p->scatter_ctx = c;
    p->mode = accumulate ? "atomic_add" : NULL;
    buf_scatter_into(l, p, self->data);
    return true;
}

// One boolean mask and one value: a choice.
static bool put_masked(Lower *l, Box *self, const LVal *list, Box *values, bool accumulate) {
    if (list->n != 1 || list->at[0].kind != L_box || accumulate)
        return false;
    Box *mask = list->at[0].box;
    DType d = data_dtype(mask->data);
    const Expr *numel = sym_product(l->sym, data_size(values->data), data_ndim(values->data));
    if ((d != DT_b8 && d != DT_u8) || !expr_is(numel, 1))
        return false;
    while (data_ndim(mask->data) < data_ndim(self->data))
        mask = unsqueeze_box(l, mask, data_ndim(mask->data));
    if (data_ndim(values->data) > data_ndim(self->data))
        values = box_new(l, view_reshape(l, values->data, 0, NULL));
    Box *in[3] = {mask, box_to_dtype(l, values, data_dtype(self->data)), self};
    broadcast_boxes(l, in, 3);
    Box *r = pointwise_op(l, LOOP_where, data_dtype(self->data), in, 3);
    box_mutate(l, self, r->data);
    return true;
}

static void index_put_fallback(Lower *l, Box *self, const LVal *list, Box *values, bool adds) {
    const LVal v = lv_box(values);
    IrArg arg[4] = {data_arg(l, self->data), extern_lval(l, list), extern_lval(l, &v),
                    {.value = val_bool(adds)}};
    LBuf *target = data_unwrap(self->data)->buf;
    buf_mark_mutated(l, target);
    LBuf *b = buffer_register(l,
                              layout_new(l, IRL_none, data_device(self->data),
                                         data_dtype(self->data), 0, NULL, NULL, NULL),
                              IR_index_put_fallback);
    b->ir->op->kernel = "aten.index_put_";
    b->ir->op->def = op_at(OP_aten_index_put__default);
    vec_push(l->arena, &b->ir->mutations, target->ir->name);
    vec_push(l->arena, &l->m->mutated_buffers, target->ir->name);
    extern_set_args(l, b->ir->op, arg, 4);
}

// No index occurs twice in what randperm gave.
static bool is_from_randperm(const Lower *l, const LVal *index) {
    const Data *d = index->kind == L_box ? index->box->data : NULL;
    if (!d || (d->kind != D_view && d->kind != D_reinterpret))
        return false;
    const LBuf *b = data_unwrap((Data *)d)->buf;
    const Node *n = b && b->node >= 0 ? graph_by_id(l->g, b->node) : NULL;
    return n && node_is(n, OP_aten_randperm_default);
}

static bool reads_from(Lower *l, const Data *d, const LBuf *buf) {
    const OpCount *c = loops_count(l, d->loops);
    for (int i = 0; i < c->reads.n; i++)
        if (buf_memory(map_get(&l->by_name, c->reads.at[i].buf)) == buf_memory(buf))
            return true;
    return false;
}

// What is computed from memory that is about to be written, or lies in it, gets memory of its own:
// else the writes would be read.
static Box *apart(Lower *l, const Data *into, Box *x) {
    Data *d = data_unwrap(x->data);
    if (d == into || (d->buf && into->buf && buf_memory(d->buf) == buf_memory(into->buf)))
        x = clone_box(l, x);
    else if (d->kind != D_store || d->buf || !into->buf || !reads_from(l, d, into->buf))
        return x;
    box_realize(l, x, "reads what is about to be written");
    return x;
}

// Of values PyTorch knows it, not of indexes.
static Box *operands_apart(Lower *l, const Box *self, LVal *list, Box *values) {
    const Data *into = data_unwrap(self->data);
    LVal own = lv_list(l, list->n);
    bool distinct = true;
    for (int i = 0; i < list->n; i++) {
        distinct = distinct && is_from_randperm(l, &list->at[i]);
        own.at[i] = list->at[i].kind == L_box ? lv_box(apart(l, into, list->at[i].box))
                                              : list->at[i];
    }
    *list = own;
    return distinct || !values ? values : apart(l, into, values);
}

LVal lower_index_put(Lower *l, const Value *args, LoopOpKind kind) {
    Box *self = arg_box(l, args, 0), *values = arg_box(l, args, 2);
    LVal list = l_of(l, &args[1]);
    bool accumulate = arg_bool(args, 3);
    // The functional form; or nobody sees the memory again, and the view has no strides there: a
    // convolution's result as channels_last, its sizes merged.
    if (kind == LOOP_identity || !data_is_place(l, self->data))
        self = clone_box(l, self);
    else
        values = operands_apart(l, self, &list, values);
    if (!values)
        values = full_box(l, args[2], data_dtype(self->data), data_device(self->data), 0, NULL);
    Box *given = values;
    if (put_masked(l, self, &list, values, accumulate))
        return lv_box(self);
    if (!l->req->config->deterministic &&
        index_put_by_loops(l, self, &list, values, accumulate, true))
        return lv_box(self);
    box_realize(l, self, "written by a kernel");
    index_put_fallback(l, self, &list, given, accumulate);
    return lv_box(self);
}

// An index kept within -size … size - 1.
static Box *clamped_index(Lower *l, Box *index, const Expr *size) {
    DType d = data_dtype(index->data);
    Device dev = data_device(index->data);
    Box *most = box_new(l, data_index(l, sym_add_int(l->sym, size, -1), d, dev)),
        *least = box_new(l, data_index(l, sym_neg(l->sym, size), d, dev));
    Box *below = pointwise_op(l, LOOP_minimum, d, (Box *[]){most, index}, 2);
    return pointwise_op(l, LOOP_maximum, d, (Box *[]){least, below}, 2);
}

// Adds where the mask holds, zero elsewhere.
LVal lower_masked_index_put(Lower *l, const Value *args, LoopOpKind kind) {
    Box *self = clone_box(l, arg_box(l, args, 0)), *values = arg_box(l, args, 3);
    LVal list = l_of(l, &args[2]);
    (void)kind;
    Value zero = val_int(0);
    DType d = data_dtype(values->data);
    Box *in[3] = {arg_box(l, args, 1), values,
                  box_new(l, data_const(l, zero, d, data_device(values->data)))};
    broadcast_boxes(l, in, 2);
    values = pointwise_op(l, LOOP_where, d, in, 3);
    LVal kept = lv_list(l, list.n);
    for (int i = 0; i < list.n && i < data_ndim(self->data); i++)
        if (list.at[i].kind == L_box)
            kept.at[i] = lv_box(clamped_index(l, list.at[i].box, data_size(self->data)[i]));
    if (!index_put_by_loops(l, self, &kept, values, true, false))
        return lower_fallback(l, l->node->def, args);
    return lv_box(self);
}

typedef struct ScatterCtx {
    Fn index, src;
    int n, dim;
    const Expr *size;
} ScatterCtx;

static void run_scatter_out(Tracer *t, const void *ctx, Index idx, const Expr **out) {
    const ScatterCtx *c = ctx;
    const Expr *v = t_indirect(t, t_call(t, c->index, idx, NULL), c->size, true, false);
    for (int i = 0; i < c->n; i++)
        out[i] = idx[i];
    out[c->dim] = v;
}

static void scatter_by_kernel(Lower *l, Box *self, Box *index, Box *src, const Value *args,
                              const char *reduce, bool include_self) {
    IrArg arg[6] = {data_arg(l, self->data), {.value = args[1]}, data_arg(l, index->data)};
    arg[3] = src ? data_arg(l, src->data) : (IrArg){.value = args[3]};
    arg[4] = (IrArg){.kw = "reduce", .value = val_str(reduce)};
    arg[5] = (IrArg){.kw = "include_self", .value = val_bool(include_self)};
    LBuf *target = data_unwrap(self->data)->buf;
    buf_mark_mutated(l, target);
    LBuf *b = buffer_register(l,
                              layout_new(l, IRL_none, data_device(self->data),
                                         data_dtype(self->data), 0, NULL, NULL, NULL),
                              IR_scatter_fallback);
    b->ir->op->kernel = "aten.scatter_reduce_.two";
    b->ir->op->def = op_find("torch.ops.aten.scatter_reduce_.two");
    vec_push(l->arena, &b->ir->mutations, target->ir->name);
    vec_push(l->arena, &l->m->mutated_buffers, target->ir->name);
    extern_set_args(l, b->ir->op, arg, 6);
}

// A tensor without dimensions as one of one element.
static Box *as_vector(Lower *l, Box *b) {
    const Expr *one = sym_int(l->sym, 1);
    return b && data_ndim(b->data) == 0 ? box_new(l, view_reshape(l, b->data, 1, &one)) : b;
}

// kind: LOOP_add for scatter_add, LOOP_identity for scatter; in place or on a copy by the op's
// name.
LVal lower_scatter(Lower *l, const Value *args, LoopOpKind kind) {
    const Op *op = l->node->def;
    Box *self = arg_box(l, args, 0), *index = arg_box(l, args, 2), *src = arg_box(l, args, 3);
    const char *reduce = kind == LOOP_add ? "sum" : NULL;
    bool include_self = true;
    for (int i = 4; i < op->n_args; i++) {
        if (!strcmp(op->args[i].name, "reduce") && args[i].kind == VAL_str)
            reduce = !strcmp(args[i].s, "add") ? "sum" : args[i].s;
        if (!strcmp(op->args[i].name, "include_self"))
            include_self = arg_bool(args, i);
    }
    if (!(op->tags & OPT_mutates))
        self = clone_box(l, self);
    DType d = data_dtype(self->data);
    bool sums = reduce && !strcmp(reduce, "sum");
    bool by_kernel =
        reduce &&
        (!sums || d == DT_i64 || d == DT_b8 || !include_self ||
         l->req->config->deterministic ||
         (src && l->req->config->cpp_fallback_scatter_reduce_sum &&
          l->req->config->threads != 1 && data_device(self->data).type == DEV_cpu));
    box_realize(l, self, "written in place");
    Box *whole = self;
    self = as_vector(l, self);
    index = as_vector(l, index);
    src = as_vector(l, src);
    if (by_kernel) {
        if (!src)
            src = full_box(l, args[3], d, data_device(self->data), data_ndim(index->data),
                           data_size(index->data));
        scatter_by_kernel(l, self, index, src, args, reduce, include_self);
        return lv_box(whole);
    }
    ScatterCtx *c = ARENA_NEW(l->arena, ScatterCtx);
    int64_t dim = arg_int(l, args, 1);
    c->n = data_ndim(index->data);
    c->dim = (int)(dim < 0 ? dim + c->n : dim);
    c->size = data_size(self->data)[c->dim];
    c->index = data_loader(l, index->data);
    Box *values =
        src ? src : full_box(l, args[3], d, data_device(self->data), c->n, data_size(index->data));
    Loops *p = loops_new(l, LK_scatter, d, data_device(self->data), c->n, data_size(index->data),
                         data_loader(l, values->data));
    p->scatter = run_scatter_out;
    p->scatter_ctx = c;
    p->mode = sums ? "atomic_add" : NULL;
    buf_scatter_into(l, p, self->data);
    return lv_box(whole);
}
