// constant.c: tensors that Python makes of numbers while it is traced: torch.tensor(data), and the
// number in x[i] = 0.5. Each is an attribute of the graph, _tensor_constantN, that lift_fresh_copy
// hands to the trace.
#include "core/aot/torchlevel.h"
#include "core/tensor/tensor.h"

#include <string.h>

enum { MOST_ELEMENTS = 1 << 16 };

typedef struct Data {
    int ndim;
    int64_t size[TENSOR_DIMS];
    int64_t n;                  // numbers seen
    DTypeClass cls;             // widest among them
    bool ragged;                // no array, or too large
} Data;

static void measure(const Value *v, int depth, Data *d) {
    if (v->kind == VAL_list || v->kind == VAL_tuple) {
        bool known = depth < d->ndim;
        if (depth >= TENSOR_DIMS || (!known && d->n) || (known && d->size[depth] != v->n)) {
            d->ragged = true;
            return;
        }
        if (!known)
            d->size[d->ndim++] = v->n;
        for (int i = 0; i < v->n && !d->ragged; i++)
            measure(&v->at[i], depth + 1, d);
        return;
    }
    DTypeClass cls = v->kind == VAL_bool ? DTC_BOOL : v->kind == VAL_int ? DTC_INT : DTC_FLOAT;
    d->ragged |= depth != d->ndim || ++d->n > MOST_ELEMENTS ||
                 (cls == DTC_FLOAT && v->kind != VAL_float);
    d->cls = cls > d->cls || d->n == 1 ? cls : d->cls;
}

static void fill(Tensor *x, const Value *v, int64_t *at) {
    if (v->kind == VAL_list || v->kind == VAL_tuple) {
        for (int i = 0; i < v->n; i++)
            fill(x, &v->at[i], at);
        return;
    }
    if (v->kind == VAL_float)
        tensor_set_f64(x, (*at)++, v->f);
    else
        tensor_set_i64(x, (*at)++, v->kind == VAL_bool ? v->b : v->i);
}

static Tensor *make(Trace *t, const Value *v, DType dtype, const Data *d) {
    Tensor *x = ARENA_NEW(t->arena, Tensor);
    int64_t numel = 1, at = 0;
    *x = (Tensor){.dtype = dtype, .ndim = d->ndim};
    for (int i = 0; i < d->ndim; i++)
        numel *= x->size[i] = d->size[i];
    contiguous_strides(d->ndim, x->size, x->stride);
    size_t bytes = (size_t)numel * (size_t)dtype_info[dtype].bytes;
    x->storage = storage_borrow(arena_alloc(t->arena, bytes + 1), bytes);
    fill(x, v, &at);
    return x;
}

static bool is_taken(const Trace *t, const char *name) {
    const Graph *graphs[2] = {t->graph, t->req->graph};
    for (int k = 0; k < 2; k++)
        for (int i = 0; i < graphs[k]->consts.n; i++)
            if (strcmp(graphs[k]->consts.at[i].name, name) == 0)
                return true;
    return false;
}

static Value attribute(Trace *t, const Tensor *x) {
    const char *name = NULL;
    for (int i = 0; !name || is_taken(t, name); i++)
        name = arena_printf(t->arena, "_tensor_constant%d", i);
    const Expr *size[TENSOR_DIMS];
    for (int i = 0; i < x->ndim; i++)
        size[i] = sym_int(t->sym, x->size[i]);
    GraphConst c = {.name = name, .tensor = x};
    c.meta = meta_contiguous(t->arena, t->sym, x->dtype, x->ndim, size, (Device){DEV_cpu, -1});
    vec_push(t->arena, &t->graph->consts, c);
    Node *node = graph_get_attr(t->graph, name, NULL);
    node->stack = t->stack;
    if (t->at)
        origins_add(t->origins, node->id, t->at->id, LINK_part);
    Traced *low = trace_tensor(t, c.meta, node);
    node->val = val_tensor(&low->meta);
    return node->val;
}

bool constant_tensor(Trace *t, const Value *data, DType dtype, Value *out) {
    Data d = {0};
    measure(data, 0, &d);
    if (d.ragged)
        return false;
    if (dtype == DT_none)
        dtype = !d.n || d.cls == DTC_FLOAT ? DT_f32 : d.cls == DTC_INT ? DT_i64 : DT_b8;
    if (dtype_info[dtype].cls == DTC_COMPLEX)
        return false;
    bool below = t->below;
    const char *original = t->original;
    Value args[1] = {attribute(t, make(t, data, dtype, &d))};
    t->below = true;
    t->original = "aten.lift_fresh.default";
    *out = trace_lower(t, op_at(OP_aten_lift_fresh_copy_default), args);
    t->original = original;
    t->below = below;
    if (!below)
        *out = functional_wrap(t, out);
    return !t->failed;
}

bool fn_tensor(Trace *t, const TorchCall *c, Value *out) {
    Value data = call_arg(c, 0, "data", NONE), dtype = call_arg(c, -1, "dtype", NONE);
    Value device = call_arg(c, -1, "device", NONE);
    if (device.kind == VAL_device && device.device.type != DEV_cpu)
        return false;
    return constant_tensor(t, &data, dtype.kind == VAL_dtype ? dtype.dtype : DT_none, out);
}
