// constant.c: tensors that Python makes of numbers while it is traced: torch.tensor(data), and the
// number in x[i] = 0.5. Each is an attribute of the graph, _tensor_constantN, that lift_fresh_copy
// hands to the trace.
#include "core/aot/torchlevel.h"
#include "core/tensor/tensor.h"

#include <string.h>

// In the result's arena: the trace's own may end before it.
static Tensor *make(Trace *t, const Value *v, const Tensor *shape) {
    Arena *a = t->req->arena;
    Tensor *x = ARENA_NEW(a, Tensor);
    *x = *shape;
    size_t bytes = tensor_bytes(x);
    x->storage = storage_borrow(arena_alloc(a, bytes + 1), bytes);
    ops_literal_fill(x, v);
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
        origins_add(t->origins, node->id, trace_home(t)->id, LINK_part);
    Traced *low = trace_tensor(t, c.meta, node);
    node->val = val_tensor(&low->meta);
    return node->val;
}

bool constant_tensor(Trace *t, const Value *data, DType dtype, Value *out) {
    Tensor shape;
    if (!ops_literal_shape(data, dtype, &shape))
        return false;
    bool below = t->below;
    const char *original = t->original;
    Value args[1] = {attribute(t, make(t, data, &shape))};
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
