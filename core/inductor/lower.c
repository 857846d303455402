// lower.c: lowering walks the FX graph in order, as torch/_inductor/graph.py GraphLowering.run_node
// does: each call through the table of lowerings (or to a library kernel), then the rules of
// realization and of output strides; at the end every layout is decided and every loop body traced.
#include "core/inductor/lower.h"

#include <stdlib.h>
#include <string.h>

#include "core/tensor/tensor.h"
#include "core/base/work.h"

static int compare_ints(const void *a, const void *b) {
    return (*(const int *)a > *(const int *)b) - (*(const int *)a < *(const int *)b);
}

typedef VEC(int) Ids;

static void add_origins(Arena *a, Ids *ids, const LVal *v) {
    if (v->kind == L_list)
        for (int i = 0; i < v->n; i++)
            add_origins(a, ids, &v->at[i]);
    if (v->kind != L_box)
        return;
    // What lies in memory has its own; a view hands on those that it was made with, also over
    // memory (torch/_inductor/ir.py, gather_origins).
    const Data *d = v->box->data;
    if (d->kind == D_store && d->buf)
        return;
    for (int i = 0; i < d->origins.n; i++)
        vec_push(a, ids, d->origins.ids[i]);
}

typedef struct OriginCtx {
    Lower *l;
    Ids ids;
} OriginCtx;

static void visit_input(Node *input, void *ctx) {
    OriginCtx *c = ctx;
    add_origins(&c->l->tmp, &c->ids, &c->l->env[input->id]);
}

// This node and those of its arguments that are not in memory.
static OriginSet origins_of(Lower *l, const Node *n) {
    ArenaMark mark = arena_mark(&l->tmp);
    OriginCtx c = {.l = l};
    vec_push(&l->tmp, &c.ids, n->id);
    node_each_input(n, visit_input, &c);
    qsort(c.ids.at, (size_t)c.ids.n, sizeof *c.ids.at, compare_ints);
    int k = 0;
    int *out = ARENA_ARRAY(l->arena, c.ids.n, int);
    for (int i = 0; i < c.ids.n; i++)
        if (!k || out[k - 1] != c.ids.at[i])
            out[k++] = c.ids.at[i];
    arena_rewind(&l->tmp, mark);
    return (OriginSet){out, k};
}

// ---- inputs

static LVal input_tensor(Lower *l, const char *name, const TensorMeta *m) {
    LBuf *b = ARENA_NEW(l->arena, LBuf);
    b->ir = ARENA_NEW(l->arena, IrBuffer);
    b->ir->name = name;
    b->ir->layout =
        layout_new(l, IRL_fixed, m->device, m->dtype, m->ndim, m->size, m->stride, NULL);
    b->is_input = true;
    b->node = -1;
    map_put(&l->by_name, name, b);
    map_put(&l->m->buffers, name, b->ir);
    Data *d = ARENA_NEW(l->arena, Data);
    d->kind = D_store;
    d->buf = b;
    return lv_box(box_new(l, d));
}

static void placeholder(Lower *l, const Node *n) {
    const char *name = *l->prefix ? arena_printf(l->arena, "%s%s", l->prefix, n->name) : n->name;
    IrInput in = {.name = name};
    LVal *v = &l->env[n->id];
    if (node_meta(l, n)) {
        *v = input_tensor(l, in.name, node_meta(l, n));
        in.buf = v->box->data->buf->ir;
        for (int i = 0; i < in.buf->layout->ndim; i++)
            unbacked_is_given(l, in.buf->layout->size[i]);
    } else if (n->val.kind == VAL_symfloat) {
        // A real number comes as a tensor without dimensions.
        Device cpu = {DEV_cpu, -1};
        *v = input_tensor(l, name, meta_contiguous(l->arena, l->sym, DT_f64, 0, NULL, cpu));
        *v = (LVal){.kind = L_value, .v = n->val, .box = v->box};
        in.buf = v->box->data->buf->ir;
        map_put(&l->reals, n->val.s, (void *)(uintptr_t)n);
    } else if (n->val.kind == VAL_sym || n->val.kind == VAL_int) {
        *v = (LVal){.kind = L_value, .v = n->val};
        if (val_as_expr(l->sym, &n->val, &in.sym))
            unbacked_is_given(l, in.sym);
    }
    vec_push(l->arena, &l->m->inputs, in);
}

// The value of a constant; NULL if it is not known.
static const Tensor *known_value(const Lower *l, const Node *n) {
    const Graph *g = l->req->graph;
    for (int i = 0; i < g->consts.n; i++)
        if (!strcmp(g->consts.at[i].name, n->target) && g->consts.at[i].tensor)
            return g->consts.at[i].tensor;
    return NULL;
}

static Value element(const Tensor *t, int64_t i) {
    return dtype_is_float(t->dtype) ? val_float(tensor_get_f64(t, i))
                                    : val_int(tensor_get_i64(t, i));
}

// Items start … end - 1 of a short constant, chosen by the index: halves are told apart by `<`.
static TVal pick_element(Tracer *t, const Tensor *x, const Expr *at, int64_t start, int64_t end) {
    if (end - start == 1)
        return t_const(t, element(x, start), x->dtype);
    int64_t mid = (end - start) / 2 + start;
    TVal below = t_op2(t, LOOP_lt, t_index(t, at, DT_i64), t_int(t, mid, DT_i64));
    TVal low = pick_element(t, x, at, start, mid);
    return t_op3(t, LOOP_where, below, low, pick_element(t, x, at, mid, end));
}

static TVal run_short_constant(Tracer *t, const void *ctx, Index idx, Index red) {
    const Tensor *x = ctx;
    (void)red;
    return x->size[0] ? pick_element(t, x, idx[0], 0, x->size[0]) : t_int(t, 0, x->dtype);
}

// Scalars and lists of up to 8 numbers become part of the code that reads them.
static bool inlined_constant(Lower *l, const Node *n, const Tensor *x, LVal *out) {
    Device cpu = {DEV_cpu, -1};
    if (!x || x->ndim > 1 || (x->ndim == 1 && x->size[0] > 8))
        return false;
    if (x->ndim == 0)
        *out = lv_box(box_new(l, data_const(l, element(x, 0), x->dtype, cpu)));
    else
        *out = lv_box(pointwise_new(l, x->dtype, cpu, 1, node_meta(l, n)->size,
                                    (Fn){run_short_constant, x}));
    return true;
}

static void get_attr(Lower *l, const Node *n) {
    if (!node_meta(l, n) || inlined_constant(l, n, known_value(l, n), &l->env[n->id]))
        return;
    if (*l->prefix) {
        diag_fail(l->req->diag, "cannot lower %s: a nested graph has a constant of its own",
                  n->name);
        l->failed = true;
        return;
    }
    LVal v = input_tensor(l, n->target, node_meta(l, n));
    l->env[n->id] = v;
    vec_push(l->arena, &l->m->constants, v.box->data->buf->ir);
}

// ---- calls

static bool is_getitem(const Node *n) {
    return n->op == FX_call_function && n->n_args == 2 &&
           (str_ends(n->target, "getitem") ||
            (n->def && !n->def->schema && str_ends(n->target, "getitem")));
}

// Where a tensor must stand there is one (elementwise operations take plain numbers, too).
static bool has_tensors(Lower *l, const Node *n, const Value *args, const Lowering *w) {
    bool numbers = w && (w->promote != PK_none || w->kind == LOOP_where);
    for (int i = 0; i < n->def->n_args; i++) {
        const SchemaArg *a = &n->def->args[i];
        LVal v = l_of(l, &args[i]);
        if (a->type != AT_tensor || a->optional || v.kind == L_box ||
            (numbers && v.kind == L_value))
            continue;
        diag_fail(l->req->diag, "%s: argument %s of %s is no tensor", n->name, a->name, n->target);
        l->failed = true;
        return false;
    }
    return true;
}

static LVal call(Lower *l, const Node *n) {
    if (is_getitem(n)) {
        LVal list = l_of(l, &n->args[0]);
        int64_t i = arg_int(l, n->args, 1);
        i = i < 0 ? i + list.n : i;
        if (list.kind == L_list && i >= 0 && i < list.n)
            return list.at[i];
        diag_fail(l->req->diag, "%s: there is no item %lld of %s", n->name, (long long)i,
                  n->args[0].kind == VAL_node ? n->args[0].node->name : "its argument");
        l->failed = true;
        return (LVal){0};
    }
    if (unbacked_is_made_by(l, n))
        return lower_number(l, n);
    if (n->val.kind == VAL_sym || n->val.kind == VAL_int || n->val.kind == VAL_bool)
        return (LVal){.kind = L_value, .v = n->val};
    if (node_higher(n) != HIGHER_none)
        return lower_higher(l, n);
    if (n->val.kind == VAL_symfloat)
        return lower_real(l, n);
    if (!n->def && str_starts(n->target, "torch.ops.") && node_val(l, n)->kind != VAL_none) {
        map_put_int(&l->fell_back, n->target, 1);
        return lower_opaque(l, n);
    }
    if (!n->def) {
        diag_fail(l->req->diag, "cannot lower %s: %s is not an operator that is known here",
                  n->name, n->target);
        l->failed = true;
        return (LVal){0};
    }
    if (node_val(l, n)->kind == VAL_none && n->def->n_returns > 0 && !(n->def->tags & OPT_impure)) {
        diag_fail(l->req->diag, "cannot lower %s: the result of %s is not known", n->name,
                  n->target);
        l->failed = true;
        return (LVal){0};
    }
    Value *args = node_bound(n, l->arena);
    if (!args) {
        diag_fail(l->req->diag, "%s: the arguments do not fit %s", n->name, n->def->schema);
        l->failed = true;
        return (LVal){0};
    }
    const Lowering *w = lowering_of(n->def->id);
    if (!has_tensors(l, n, args, w))
        return (LVal){0};
    Decide q = {.kind = DECIDE_lowering,
                .key = n->name,
                .by_default = w != NULL,
                .reason = w ? "it has a lowering" : "no lowering: a library kernel is called"};
    if (w && decide(l->req->decisions, &q)) {
        l->promote = w->promote;
        return w->fn(l, args, w->kind);
    }
    if (!w)
        map_put_int(&l->fell_back, n->target, 1);
    return lower_fallback(l, n->def, args);
}

// ---- after each node

static bool used_by_output(const Node *n) {
    for (int i = 0; i < n->n_users; i++)
        if (n->users[i]->op == FX_output)
            return true;
    return false;
}

static bool used_by_as_strided(const Node *n) {
    for (int i = 0; i < n->n_users; i++)
        if (node_is(n->users[i], OP_aten_as_strided_default) ||
            node_is(n->users[i], OP_aten_as_strided_scatter_default) ||
            node_is(n->users[i], OP_aten_as_strided__default))
            return true;
    return false;
}

// Outputs of a forward graph are the user's first, then what is saved for backward: placeholders
// lead those.
static int visible_outputs(Lower *l, const Value *list) {
    bool forward = false, backward = false;
    if (l->req->n_visible > 0)
        return l->req->n_visible;
    GRAPH_EACH (l->g, n) {
        forward |= n->op == FX_placeholder && str_starts(n->name, "primals_");
        backward |= n->op == FX_placeholder && str_starts(n->name, "tangents_");
    }
    int k = 0;
    while (k < list->n && !(forward && !backward && list->at[k].kind == VAL_node &&
                            list->at[k].node->op == FX_placeholder))
        k++;
    return k;
}

static bool is_visible(Lower *l, const Node *n) {
    const Node *out = graph_output_node(l->g);
    const Value *list = &out->args[0];
    if (list->kind != VAL_tuple && list->kind != VAL_list)
        return true;
    if (l->n_visible < 0)
        l->n_visible = visible_outputs(l, list);
    for (int i = 0; i < l->n_visible; i++)
        if (list->at[i].kind == VAL_node && list->at[i].node == n)
            return true;
    return false;
}

static bool dense_meta(Lower *l, const TensorMeta *m) {
    int order[64];
    if (m->ndim > 64)
        return false;
    strides_order(l, m->ndim, m->stride, order);
    const Expr *next = sym_int(l->sym, 1);
    for (int k = 0; k < m->ndim; k++)
        for (int i = 0; i < m->ndim; i++)
            if (order[i] == k && !size_is_one(l, m->size[i])) {
                if (m->stride[i] != next && !sym_known_eq(l->sym, m->stride[i], next))
                    return false;
                next = sym_mul(l->sym, next, m->size[i]);
            }
    return true;
}

static bool is_written(const Node *n) {
    bool written = false;
    for (int i = 0; i < n->n_users && !written; i++) {
        const Node *u = n->users[i];
        written = u->def && u->def->tags & OPT_mutates && u->n_args &&
                  u->args[0].kind == VAL_node && u->args[0].node == n;
    }
    return written;
}

// An output that only the backward pass sees may keep the layout that convolutions like. Not an
// input that is written: a copy would get the write.
static bool prefers_channels_last(Lower *l, const Node *n, const Box *b, const TensorMeta *m) {
    return l->channels_last && l->channels_last[n->id] && data_ndim(b->data) == 4 &&
           !is_visible(l, n) && !used_by_as_strided(n) && dense_meta(l, m) &&
           !(n->op == FX_placeholder && is_written(n));
}

// Some view of it is copied into.
static bool written_through_view(const Node *n, int depth) {
    for (int i = 0; i < n->n_users && depth < 16; i++) {
        const Node *u = n->users[i];
        bool first = u->n_args && u->args[0].kind == VAL_node && u->args[0].node == n;
        if (first && depth && node_is(u, OP_aten_copy__default))
            return true;
        bool view = u->def && (u->def->tags & OPT_view || u->def->id == OP_aten_reshape_default);
        if (first && view && written_through_view(u, depth + 1))
            return true;
    }
    return false;
}

// The steps of a symbolic view of memory are known; those of a view of a value, which would be
// stored when the view is written, may not be told from its index.
static void realize_written(Lower *l, const Node *n, Box *b, const TensorMeta *m) {
    bool symbolic = false;
    for (int i = 0; m && i < m->ndim; i++)
        symbolic = symbolic || expr_has_symbols(m->size[i]);
    if (symbolic && b->data->kind == D_store && written_through_view(n, 0)) {
        box_realize(l, b, "a view of it is written");
        buf_freeze(l, b->data->buf);
    }
}

static Box *output_strides(Lower *l, const Node *n, Box *b) {
    const TensorMeta *m = node_meta(l, n);
    bool output = used_by_output(n);
    realize_written(l, n, b, m);
    if (output && (b->data->kind == D_view || b->data->kind == D_reinterpret))
        box_realize(l, b, "a view of it is an output");
    if (!m || !(output || used_by_as_strided(n)) || m->ndim == 0 || m->ndim != data_ndim(b->data))
        return b;
    const Expr *const *stride = m->stride;
    if (prefers_channels_last(l, n, b, m))
        stride = strides_channels_last(l, 4, data_size(b->data));
    if (b->data->kind == D_view || b->data->kind == D_reinterpret ||
        (n->def && n->def->tags & OPT_view)) {
        int order[64];
        strides_order(l, m->ndim, stride, order);
        return box_require_order(l, b, order);
    }
    return box_require_exact(l, b, stride);
}

static bool is_call_of(const Node *n, OpId a, OpId b, OpId c) {
    return node_is(n, a) || node_is(n, b) || node_is(n, c);
}

// b in memory if there is a reason, laid out as convolutions like it if they are near.
static Box *realized_for(Lower *l, const Node *n, Box *b, const char *reason) {
    const TensorMeta *m = node_meta(l, n);
    if (!reason || !box_asked(l, b, reason))
        return b;
    if (m && prefers_channels_last(l, n, b, m)) {
        int order[4];
        strides_order(l, 4, strides_channels_last(l, 4, m->size), order);
        b = box_require_order(l, b, order);
    }
    box_realize(l, b, reason);
    return b;
}

static Box *reused(Lower *l, const Node *n, Box *b) {
    for (int i = 0; i < n->n_users; i++) {
        const Node *u = n->users[i];
        if (u->op == FX_output) {
            Data *d = b->data;
            if (d->kind == D_store)
                data_realize(l, d, "output with several users");
        } else if (node_needs_realized_inputs(l, u)) {
            box_realize_hint(l, b);
            const TensorMeta *m = node_meta(l, n);
            bool fixed = is_call_of(u, OP_aten_convolution_backward_default, OP_aten_mm_default,
                                    OP_aten__int_mm_default) ||
                         (!l->layout_opt && node_is(u, OP_aten_convolution_default));
            if (fixed && m && m->ndim && m->ndim == data_ndim(b->data)) {
                int order[64];
                strides_order(l, m->ndim, m->stride, order);
                b = box_require_order(l, b, order);
            }
        }
    }
    return realized_for(l, n, b, box_reuse_reason(l, b, n->n_users));
}

static void register_read(Lower *l, const char *buf, Box *b) {
    MapEntry *e = map_at(&l->users, buf);
    if (!e->ptr)
        e->ptr = ARENA_NEW(l->arena, BoxVec);
    BoxVec *v = e->ptr;
    if (!v->n || vec_last(v) != b)
        vec_push(l->arena, v, b);
}

static void register_reads(Lower *l, Box *b) {
    Data *d = data_unwrap(b->data);
    if (d->kind != D_store)
        return;
    if (d->buf) {
        register_read(l, d->buf->ir->name, b);
        return;
    }
    const OpCount *c = loops_count(l, d->loops);
    for (int i = 0; i < c->reads.n; i++)
        register_read(l, c->reads.at[i].buf, b);
}

static void after(Lower *l, const Node *n, LVal *v) {
    if (v->kind == L_list)
        for (int i = 0; i < v->n; i++)
            if (v->at[i].kind == L_box)
                register_reads(l, v->at[i].box);
    if (v->kind != L_box)
        return;
    v->box = output_strides(l, n, v->box);
    if (n->n_users > 1)
        v->box = reused(l, n, v->box);
    v->box = realized_for(l, n, v->box, box_reads_reason(l, v->box));
    box_too_large(l, v->box);
    box_ask_lazy(l, v->box);
    register_reads(l, v->box);
}

// ---- the end

// A view that is returned has the strides that are expected of it also where they mean nothing, in
// dimensions of one element or none (ir.try_match_insignificant_strides).
static const TensorMeta *with_expected_strides(Lower *l, const TensorMeta *view,
                                               const TensorMeta *want) {
    const Expr *one = sym_int(l->sym, 1), *zero = sym_int(l->sym, 0);
    bool empty = false, changed = false;
    if (view->ndim != want->ndim)
        return view;
    for (int i = 0; i < view->ndim; i++)
        empty = empty || view->size[i] == zero;
    TensorMeta *fixed = meta_copy(l->arena, view);
    for (int i = 0; i < view->ndim; i++) {
        bool same = sym_known_eq(l->sym, want->stride[i], view->stride[i]);
        if (!same && !empty && !sym_known_le(l->sym, view->size[i], one))
            return view;
        fixed->stride[i] = same ? view->stride[i] : want->stride[i];
        changed = changed || !same;
    }
    return changed ? fixed : view;
}

static IrArg output_arg(Lower *l, const Value *v) {
    LVal r = l_of(l, v);
    if (r.kind == L_value && r.v.kind == VAL_symfloat) {
        IrArg arg = real_arg(l, &r);
        arg.number = false; // handed out as a tensor
        return arg;
    }
    if (r.kind == L_value)
        return (IrArg){.value = r.v};
    if (r.kind != L_box)
        return (IrArg){.value = val_none()};
    IrArg arg = data_arg(l, r.box->data);
    const TensorMeta *want = v->kind == VAL_node ? node_meta(l, v->node) : NULL;
    if (arg.view && want)
        arg.view = with_expected_strides(l, arg.view, want);
    return arg;
}

static void output(Lower *l, const Node *n) {
    const Value *v = &n->args[0];
    bool list = v->kind == VAL_tuple || v->kind == VAL_list;
    for (int i = 0; i < (list ? v->n : 1); i++) {
        IrArg a = output_arg(l, list ? &v->at[i] : v);
        vec_push(l->arena, &l->m->outputs, a);
    }
}

static void finalize(Lower *l) {
    for (int i = 0; i < l->bufs.n; i++)
        buf_decide(l, l->bufs.at[i]);
    for (int i = 0; i < l->bufs.n; i++) {
        LBuf *b = l->bufs.at[i];
        if (b->ir->layout->kind == IRL_non_owning) {
            b->ir->layout->view_of = b->target->ir->name;
            vec_push(l->arena, &b->ir->aliases, b->target->ir->name);
        }
        if (b->ir->layout->kind != IRL_mutation)
            continue;
        // A mutated buffer's layout may have been decided since.
        for (int k = 0; k < b->ir->layout->ndim; k++)
            b->ir->layout->stride[k] = b->into->stride[k];
        b->ir->layout->whole = b->target->ir->layout;
    }
    for (int i = 0; i < l->bufs.n; i++)
        if (l->bufs.at[i]->loops)
            simplify_and_reorder(l, l->bufs.at[i]);
    l->m->origins = origins_new(l->arena);
    for (int i = 0; i < l->m->ops.n; i++) {
        const IrOp *op = l->m->ops.at[i];
        for (int k = 0; k < op->origins.n; k++)
            origins_add(l->m->origins, i, op->origins.at[k],
                        op->origins.n == 1 ? LINK_same : LINK_part);
    }
    for (int i = 0; i < l->m->inputs.n; i++)
        for (int k = 0; k < l->m->mutated_buffers.n; k++)
            if (l->m->inputs.at[i].buf && l->m->inputs.at[i].name == l->m->mutated_buffers.at[k]) {
                vec_push(l->arena, &l->m->mutated_inputs, l->m->inputs.at[i].name);
                break;
            }
}

IrModule *inductor_lower(const LowerRequest *request) {
    return lower_graph(request, "");
}

IrModule *lower_graph(const LowerRequest *request, const char *prefix) {
    Lower l = {.req = request,
               .arena = request->arena,
               .sym = request->graph->sym,
               .g = request->graph,
               .prefix = prefix};
    l.m = ARENA_NEW(l.arena, IrModule);
    *l.m = (IrModule){
        .arena = l.arena, .sym = l.sym, .graph = request->graph, .buffers = {.arena = l.arena}};
    l.by_name.arena = l.bound.arena = l.fell_back.arena = l.arena;
    l.users.arena = l.reals.arena = l.arena;
    l.env = ARENA_ARRAY(l.arena, l.g->by_id.n, LVal);
    l.val = fake_values(l.arena, l.g, request->stage, request->diag);
    if (!l.val)
        return NULL;
    l.layout_opt = layout_opt_decided(&l);
    if (l.layout_opt)
        l.channels_last = layout_prefers_channels_last(&l);
    l.n_visible = -1;
    int done = 0;
    GRAPH_EACH (l.g, n) {
        if (!work_goes_on(request->diag, done++, l.g->n_nodes)) {
            l.failed = true;
            break;
        }
        l.node = n;
        l.origins = n->op == FX_call_function ? origins_of(&l, n) : (OriginSet){0};
        if (n->op == FX_placeholder)
            placeholder(&l, n);
        else if (n->op == FX_get_attr)
            get_attr(&l, n);
        else if (n->op == FX_output)
            output(&l, n);
        else
            l.env[n->id] = call(&l, n);
        if (l.failed)
            break;
        if (n->op != FX_output)
            after(&l, n, &l.env[n->id]);
    }
    if (!l.failed)
        finalize(&l);
    arena_free(&l.tmp);
    return l.failed ? NULL : l.m;
}
