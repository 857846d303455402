// lower_extern.c: calls of library kernels: matrix products, convolutions, and every op without a
// lowering (a FallbackKernel and one MultiOutput a result). Source: torch/_inductor/kernel/mm.py,
// bmm.py, conv.py; ir.py ExternKernelOut, FallbackKernel.
#include "core/inductor/lower.h"
#include "core/inductor/lowerings.h"
#include "core/ops/custom.h"

#include <assert.h>
#include <string.h>

// ---- arguments

IrArg data_arg(Lower *l, Data *d) {
    d = data_as_input(l, d);
    IrArg a = {.buf = data_unwrap(d)->buf->ir->name};
    if (d->kind == D_reinterpret) {
        const IrLayout *y = d->layout;
        TensorMeta *m = meta_new(l->arena, y->dtype, y->ndim);
        for (int i = 0; i < m->ndim; i++) {
            m->size[i] = y->size[i];
            m->stride[i] = y->stride[i];
        }
        m->offset = y->offset;
        m->device = y->device;
        a.view = m;
    }
    return a;
}

static bool has_box(const LVal *v) {
    if (v->kind == L_box)
        return true;
    for (int i = 0; v->kind == L_list && i < v->n; i++)
        if (has_box(&v->at[i]))
            return true;
    return false;
}

IrArg extern_lval(Lower *l, const LVal *v) {
    if (v->kind == L_box) {
        IrArg a = data_arg(l, v->box->data);
        LBuf *b = map_get(&l->by_name, a.buf);
        buf_decide(l, b);
        return a;
    }
    if (v->kind != L_list || !has_box(v))
        return (IrArg){.value = v->kind == L_value ? v->v : val_none()};
    IrArg a = {.n_items = v->n, .items = ARENA_ARRAY(l->arena, v->n, IrArg)};
    for (int i = 0; i < v->n; i++)
        a.items[i] = extern_lval(l, &v->at[i]);
    return a;
}

// Symbols inside lists are put in; other plain values stay as they are.
static Value plain_value(Lower *l, const Value *v) {
    if (v->kind == VAL_node)
        return l_of(l, v).v;
    if (v->kind != VAL_list && v->kind != VAL_tuple)
        return *v;
    Value list = val_list(l->arena, v->kind, v->n);
    for (int i = 0; i < v->n; i++)
        list.at[i] = plain_value(l, &v->at[i]);
    return list;
}

IrArg extern_arg(Lower *l, const Value *v) {
    LVal x = l_of(l, v);
    if (has_box(&x))
        return extern_lval(l, &x);
    if (x.kind == L_value && x.v.kind == VAL_symfloat)
        return real_arg(l, &x);
    return (IrArg){.value = plain_value(l, v)};
}

static void reads_of(Lower *l, IrOp *op, const IrArg *a) {
    if (a->buf)
        vec_push(l->arena, &op->reads_star, a->buf);
    for (int i = 0; i < a->n_items; i++)
        reads_of(l, op, &a->items[i]);
}

void extern_set_args(Lower *l, IrOp *op, const IrArg *args, int n) {
    for (int i = 0; i < n; i++) {
        vec_push(l->arena, &op->args, args[i]);
        reads_of(l, op, &args[i]);
    }
}

LVal lower_extern(Lower *l, const char *kernel, const Op *op, IrClass cls, IrLayout *layout,
                  const IrArg *args, int n) {
    LBuf *b = buffer_register(l, layout, cls);
    b->is_extern = true;
    b->is_extern_alloc = cls == IR_extern_alloc;
    b->ir->op->kernel = kernel;
    b->ir->op->def = op;
    extern_set_args(l, b->ir->op, args, n);
    Data *d = data_loops(l, NULL);
    d->buf = b;
    return lv_box(box_new(l, d));
}

// An operand of a matrix product is in memory, with a dimension of stride 1, or it is copied
// (realize_inputs of select_algorithm.py, ExternKernel.require_stride1).
static Box *realized(Lower *l, Box *b) {
    Data *d = data_as_input(l, b->data);
    int n = data_ndim(d);
    bool steps = n > 0 && is_storage_and_layout(d);
    for (int i = 0; steps && i < n; i++)
        steps = !expr_is(data_layout(d)->stride[i], 1);
    return box_new(l, steps ? data_copy(l, d) : d);
}

// ---- matrix products

// mm and addmm take the layout that their user asks for, of batches they do not.
static IrLayout *product_layout(Lower *l, Box *a, Box *b) {
    int n = data_ndim(a->data);
    const Expr **size = ARENA_ARRAY(l->arena, n, const Expr *);
    for (int i = 0; i < n; i++)
        size[i] = i == n - 1 ? data_size(b->data)[n - 1] : data_size(a->data)[i];
    return layout_new(l, n == 2 ? IRL_flexible : IRL_fixed, data_device(a->data),
                      data_dtype(a->data), n, size, NULL, NULL);
}

static LVal product(Lower *l, const char *kernel, Box *a, Box *b) {
    a = realized(l, a);
    b = realized(l, b);
    IrLayout *y = product_layout(l, a, b);
    IrArg args[2] = {data_arg(l, a->data), data_arg(l, b->data)};
    return lower_extern(l, kernel, l->node->def, IR_extern_out, y, args, 2);
}

LVal lower_mm(Lower *l, const Value *args, LoopOpKind kind) {
    (void)kind;
    return product(l, "extern_kernels.mm", arg_box(l, args, 0), arg_box(l, args, 1));
}

// addmm and baddbmm: the summand is realized in its own size.
LVal lower_addmm(Lower *l, const Value *args, LoopOpKind kind) {
    Box *in = arg_box(l, args, 0), *a = realized(l, arg_box(l, args, 1)),
        *b = realized(l, arg_box(l, args, 2));
    IrLayout *y = product_layout(l, a, b);
    Box *wide = expand_box(l, in, y->ndim, y->size);
    data_as_input(l, wide->data);
    IrArg arg[5] = {data_arg(l, in->data),
                    data_arg(l, a->data),
                    data_arg(l, b->data),
                    {.kw = "alpha", .value = plain_value(l, &args[4])},
                    {.kw = "beta", .value = plain_value(l, &args[3])}};
    const char *name = kind == LOOP_mul ? "extern_kernels.baddbmm" : "extern_kernels.addmm";
    return lower_extern(l, name, l->node->def, IR_extern_out, y, arg, 5);
}

static bool may_ask_contiguous(const Data *d) {
    return !is_storage_and_layout(d) || data_layout(d)->kind == IRL_flexible;
}

static bool preferred_for_bmm(Lower *l, const TensorMeta *m) {
    int n = m->ndim;
    if (!m->stride)
        return true;
    const Expr *s1 = m->stride[n - 1], *s2 = m->stride[n - 2], *z1 = m->size[n - 1],
               *z2 = m->size[n - 2];
    return (size_is_one(l, s1) && (size_is_one(l, z2) || size_hint(l, s2) >= size_hint(l, z1))) ||
           (size_is_one(l, s2) && (size_is_one(l, z1) || size_hint(l, s1) >= size_hint(l, z2)));
}

LVal lower_bmm(Lower *l, const Value *args, LoopOpKind kind) {
    Box *in[2] = {arg_box(l, args, 0), arg_box(l, args, 1)};
    (void)kind;
    if (data_device(in[0]->data).type == DEV_cpu) {
        if (size_is_one(l, data_size(in[0]->data)[1]) ||
            size_is_one(l, data_size(in[1]->data)[2])) {
            bool axis[4] = {false, false, true, false};
            Box *a = unsqueeze_box(l, in[0], data_ndim(in[0]->data)),
                *b = unsqueeze_box(l, in[1], 1);
            return lv_box(
                sum_box(l, box_binary(l, LOOP_mul, a, b, PK_default), axis, false,
                        dtype_is_int(data_dtype(a->data)) ? data_dtype(a->data) : DT_none));
        }
        for (int i = 0; i < 2; i++) {
            const TensorMeta *m = arg_meta(l, &args[i]);
            if (m && may_ask_contiguous(in[i]->data) && !preferred_for_bmm(l, m))
                in[i] = box_require_contiguous(l, in[i]);
        }
    }
    return product(l, "extern_kernels.bmm", in[0], in[1]);
}

// ---- convolution

static Value tuple_of(Lower *l, const Value *v, int n) {
    Value t = val_list(l->arena, VAL_tuple, n);
    for (int i = 0; i < n; i++)
        t.at[i] = v->kind == VAL_list || v->kind == VAL_tuple ? v->at[v->n == 1 ? 0 : i] : *v;
    return t;
}

static const TensorMeta *meta_of_data(Lower *l, Data *d) {
    const IrLayout *y = data_layout(d);
    TensorMeta *m = meta_new(l->arena, data_dtype(d), data_ndim(d));
    for (int i = 0; i < m->ndim; i++) {
        m->size[i] = data_size(d)[i];
        m->stride[i] = y ? y->stride[i] : m->size[i];
    }
    m->offset = y ? y->offset : sym_int(l->sym, 0);
    m->device = data_device(d);
    return m;
}

// The node's result as the convolution lays it out for its operands as they are in memory.
static IrLayout *conv_layout(Lower *l, const Value *args, Box *x, Box *w) {
    const TensorMeta *m = node_meta(l, l->node);
    Value in[16], out;
    for (int i = 0; i < l->node->def->n_args; i++)
        in[i] = i < 2 ? val_tensor(meta_of_data(l, (i ? w : x)->data)) : plain_value(l, &args[i]);
    Diag quiet = {.arena = l->arena};
    MetaCtx c = {.arena = l->arena, .sym = l->sym, .diag = &quiet, .stage = l->req->stage};
    in[2] = (Value){.kind = VAL_none}; // no bias
    if (op_meta_again(&c, l->node->def, in, node_val(l, l->node), &out) && out.kind == VAL_tensor)
        m = out.tensor;
    return layout_new(l, IRL_fixed, m->device, m->dtype, m->ndim, m->size, m->stride, NULL);
}

LVal lower_convolution(Lower *l, const Value *args, LoopOpKind kind) {
    Box *x = arg_box(l, args, 0), *w = arg_box(l, args, 1), *bias = arg_box(l, args, 2);
    int spatial = data_ndim(w->data) - 2;
    (void)kind;
    const TensorMeta *out = node_meta(l, l->node);
    if (!out || data_ndim(x->data) != data_ndim(w->data) || out->ndim != data_ndim(x->data))
        return lower_fallback(l, l->node->def, args);
    box_realize(l, x, "input of a convolution");
    box_realize(l, w, "weight of a convolution");
    IrLayout *y = NULL;
    if (l->layout_opt && spatial == 2) {
        x = box_require_channels_last(l, x);
        w = box_require_channels_last(l, w);
        y = conv_layout(l, args, x, w);
    } else {
        int order[64];
        y = conv_layout(l, args, x, w);
        strides_order(l, y->ndim, y->stride, order);
        x = box_require_order(l, x, order);
        w = box_require_order(l, w, order);
    }
    IrArg arg[10] = {data_arg(l, x->data), data_arg(l, w->data)};
    int n = 2;
    if (bias) {
        arg[n++] = data_arg(l, bias->data);
        buf_freeze(l, data_unwrap(bias->data)->buf);
    }
    static const char *const kw[] = {"stride",     "padding",        "dilation",
                                     "transposed", "output_padding", "groups"};
    for (int i = 0; i < 6; i++) {
        bool scalar = i == 3 || i == 5;
        arg[n++] = (IrArg){.kw = kw[i],
                           .value = scalar ? args[3 + i] : tuple_of(l, &args[3 + i], spatial)};
    }
    if (!bias)
        arg[n++] = (IrArg){.kw = "bias"};
    return lower_extern(l, "extern_kernels.convolution", l->node->def, IR_extern_alloc, y, arg, n);
}

// ---- fallbacks

static Value meta_value(Lower *l, const Value *v) {
    LVal x = l_of(l, v);
    if (x.kind == L_box)
        return val_tensor(meta_of_data(l, data_as_input(l, x.box->data)));
    if (v->kind == VAL_list || v->kind == VAL_tuple) {
        Value list = val_list(l->arena, v->kind, v->n);
        for (int i = 0; i < v->n; i++)
            list.at[i] = meta_value(l, &v->at[i]);
        return list;
    }
    return plain_value(l, v);
}

// Result metadata with the inputs' real strides; the node's own if the op has no meta function.
static Value result_meta(Lower *l, const Op *op, const Value *args) {
    if (!op->meta)
        return *node_val(l, l->node);
    Value *in = ARENA_ARRAY(l->arena, op->n_args, Value), out = {0};
    for (int i = 0; i < op->n_args; i++)
        in[i] = meta_value(l, &args[i]);
    Diag quiet = {.arena = l->arena};
    MetaCtx c = {.arena = l->arena, .sym = l->sym, .diag = &quiet, .stage = l->req->stage};
    return op_meta_again(&c, op, in, node_val(l, l->node), &out) ? out : *node_val(l, l->node);
}

LVal multi_output(Lower *l, LBuf *packed, const TensorMeta *m, int item) {
    const Expr **stride = m->stride;
    IrLayout *y = layout_new(l, IRL_fixed, m->device, m->dtype, m->ndim, m->size, stride, NULL);
    LBuf *b = buffer_register(l, y, IR_multi_output);
    b->is_extern = true;
    b->ir->op->item = item;
    unbacked_bind_sizes(l, packed->ir->op, b->ir);
    vec_push(l->arena, &b->ir->op->reads_star, packed->ir->name);
    vec_push(l->arena, &b->ir->op->args, (IrArg){.buf = packed->ir->name});
    Data *d = data_loops(l, NULL);
    d->buf = b;
    return lv_box(box_new(l, d));
}

static Device first_device(Lower *l, const Value *args, int n) {
    for (int i = 0; i < n; i++) {
        LVal v = l_of(l, &args[i]);
        if (v.kind == L_list && v.n && v.at[0].kind == L_box)
            v = v.at[0];
        if (v.kind == L_box)
            return data_device(v.box->data);
    }
    return (Device){DEV_cpu, -1};
}

// Buffers that a declared op writes: they are in memory when it is called, and change then.
static void note_writes(Lower *l, LBuf *packed, const Op *op, const Value *args) {
    for (int i = 0; i < op->n_args; i++) {
        LVal v = op->args[i].written ? l_of(l, &args[i]) : (LVal){0};
        for (int k = 0; k < (v.kind == L_list ? v.n : v.kind == L_box); k++) {
            const LVal *one = v.kind == L_list ? &v.at[k] : &v;
            LBuf *target = one->kind == L_box ? data_unwrap(one->box->data)->buf : NULL;
            if (!target)
                continue;
            buf_mark_mutated(l, target);
            vec_push(l->arena, &packed->ir->mutations, target->ir->name);
            vec_push(l->arena, &l->m->mutated_buffers, target->ir->name);
        }
    }
}

// The call and, for each tensor that it gives, a MultiOutput.
static LVal packed_call(Lower *l, const char *kernel, const Op *op, const Value *args, Value out,
                        Device dev, const IrArg *arg, int n) {
    if (out.kind == VAL_none && l->node->n_users && !l->failed) {
        diag_fail(l->req->diag, "%s: the shape of its result is not known, so no code can use it",
                  kernel);
        l->failed = true;
    }
    IrLayout *y = layout_new(l, out.kind == VAL_none ? IRL_none : IRL_multi_output, dev, DT_none, 0,
                             NULL, NULL, NULL);
    LBuf *packed = buffer_register(l, y, IR_fallback);
    packed->is_extern = true;
    packed->ir->op->kernel = kernel;
    packed->ir->op->def = op;
    packed->ir->op->side_effects =
        !op || op->tags & (OPT_impure | OPT_mutates) || out.kind == VAL_none;
    extern_set_args(l, packed->ir->op, arg, n);
    if (op && op_is_custom(op))
        note_writes(l, packed, op, args);
    if (out.kind == VAL_tensor)
        return multi_output(l, packed, out.tensor, -1);
    if (out.kind != VAL_tuple && out.kind != VAL_list)
        return (LVal){0};
    LVal list = lv_list(l, out.n);
    for (int i = 0; i < out.n; i++)
        if (out.at[i].kind == VAL_tensor)
            list.at[i] = multi_output(l, packed, out.at[i].tensor, i);
    return list;
}

LVal lower_fallback_as(Lower *l, const Op *op, const Value *args, Value out) {
    IrArg *arg = ARENA_ARRAY(l->arena, op->n_args, IrArg);
    int n = 0;
    for (int i = 0; i < op->n_args; i++) {
        const SchemaArg *s = &op->args[i];
        // Defaults at the end are left out, as FX leaves them.
        if (i >= l->node->n_args && s->has_default && val_equal(&args[i], &s->dflt))
            continue;
        arg[n] = extern_arg(l, &args[i]);
        arg[n++].kw = s->kwarg_only || i >= l->node->n_args ? s->name : NULL;
    }
    if (out.kind == VAL_none)
        out = result_meta(l, op, args);
    return packed_call(l, op->qualname, op, args, out, first_device(l, args, op->n_args), arg, n);
}

LVal lower_fallback(Lower *l, const Op *op, const Value *args) {
    if (l->each && op == l->node->def)
        op = l->each;
    return lower_fallback_as(l, op, args, val_none());
}

// An operator that is only known by name: called with what the graph gives it, in the strides it
// has there.
LVal lower_opaque(Lower *l, const Node *n) {
    const Value out = *node_val(l, n);
    IrArg *arg = ARENA_ARRAY(l->arena, n->n_args + n->n_kwargs, IrArg);
    for (int i = 0; i < n->n_args; i++) {
        const TensorMeta *m = arg_meta(l, &n->args[i]);
        Box *b = m ? arg_box(l, n->args, i) : NULL;
        arg[i] =
            b ? data_arg(l, box_require_exact(l, b, m->stride)->data) : extern_arg(l, &n->args[i]);
    }
    for (int i = 0; i < n->n_kwargs; i++) {
        arg[n->n_args + i] = extern_arg(l, &n->kwargs[i].value);
        arg[n->n_args + i].kw = n->kwargs[i].name;
    }
    return packed_call(l, n->target, NULL, NULL, out, first_device(l, n->args, n->n_args), arg,
                       n->n_args + n->n_kwargs);
}

// ---- fallbacks that ask for strides

typedef void Constrain(Lower *l, const TensorMeta *m, int ndim, int *order);

static void fx_order(Lower *l, const TensorMeta *m, int ndim, int *order) {
    const Expr **s = m->stride ? m->stride : strides_contiguous(l, ndim, m->size);
    strides_order(l, ndim, s, order);
}

// Dense in the last dimension, else contiguous.
static void sdpa_order(Lower *l, const TensorMeta *m, int ndim, int *order) {
    fx_order(l, m, ndim, order);
    if (ndim && order[ndim - 1] != 0)
        for (int i = 0; i < ndim; i++)
            order[i] = ndim - 1 - i;
}

static LVal constrained_call(Lower *l, const Value *args, Constrain *constrain) {
    const Op *op = l->node->def;
    LVal *saved = ARENA_ARRAY(l->arena, op->n_args, LVal);
    for (int i = 0; i < op->n_args; i++) {
        if (args[i].kind != VAL_node)
            continue;
        saved[i] = l->env[args[i].node->id];
        const TensorMeta *m = node_meta(l, args[i].node);
        int order[64];
        if (saved[i].kind != L_box || !m || m->ndim != data_ndim(saved[i].box->data))
            continue;
        constrain(l, m, m->ndim, order);
        // The argument keeps its node; what the node yields is another value during this call.
        l->env[args[i].node->id] = lv_box(box_require_order(l, saved[i].box, order));
    }
    LVal r = lower_fallback(l, op, args);
    for (int i = op->n_args - 1; i >= 0; i--)
        if (args[i].kind == VAL_node)
            l->env[args[i].node->id] = saved[i];
    return r;
}

LVal lower_constrained(Lower *l, const Value *args, LoopOpKind kind) {
    (void)kind;
    return constrained_call(l, args, fx_order);
}

LVal lower_sdpa(Lower *l, const Value *args, LoopOpKind kind) {
    (void)kind;
    return constrained_call(l, args, sdpa_order);
}

// ---- scans and sorts: no loops for them on a CPU

// `args` with another value for the first one, and other arguments of the op called.
static LVal call_with(Lower *l, const Op *op, const Value *args, Box *first) {
    LVal *at = &l->env[args[0].node->id], saved = *at;
    *at = lv_box(first);
    LVal r = lower_fallback(l, op, args);
    l->env[args[0].node->id] = saved;
    return r;
}

// The dimension takes part in promotion: bool becomes int64, and so does the sum of small integers.
LVal lower_scan(Lower *l, const Value *args, LoopOpKind kind) {
    const Op *op = l->node->def;
    Box *x = arg_box(l, args, 0);
    Value *with = ARENA_ARRAY(l->arena, op->n_args, Value);
    (void)kind;
    for (int i = 0; i < op->n_args; i++)
        with[i] = args[i];
    if (data_dtype(x->data) == DT_b8)
        x = box_to_dtype(l, x, DT_i64);
    if (op->n_args > 2 && with[2].kind == VAL_none && dtype_is_int(data_dtype(x->data)))
        with[2] = val_dtype(DT_i64);
    return call_with(l, op, with, x);
}

// sort without `stable` calls the overload that has it.
LVal lower_sort(Lower *l, const Value *args, LoopOpKind kind) {
    const Op *op = op_find("torch.ops.aten.sort.stable");
    (void)kind;
    if (!op || op->n_args != 4)
        return lower_fallback(l, l->node->def, args);
    Value *with = ARENA_ARRAY(l->arena, 4, Value);
    with[0] = args[0];
    with[1] = val_bool(false);
    with[2] = args[1];
    with[3] = args[2];
    return call_with(l, op, with, arg_box(l, args, 0));
}

LVal lower_none(Lower *l, const Value *args, LoopOpKind kind) {
    (void)l, (void)args, (void)kind;
    return (LVal){0};
}
