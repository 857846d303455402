// joint_scatter.c: scatter_upon_const_tensor: a number written into a tensor of one value, at one
// place along a dimension, becomes where(position == place, number, value), which fuses. It is what
// the backward of a cross entropy does.
#include "core/aot/joint.h"

#include <string.h>

static const Node *full_of(const Node *scatter) {
    const Value *v = node_arg(scatter, 0, "self");
    const Node *full = v && v->kind == VAL_node ? v->node : NULL;
    return full && node_is(full, OP_aten_full_default) && full->n_users == 1 && full->n_args == 2 &&
                   node_arg(full, -1, "dtype")
               ? full
               : NULL;
}

static bool is_number(const Value *v) {
    return v->kind == VAL_bool || v->kind == VAL_int || v->kind == VAL_float;
}

// torch.result_type of two Python numbers.
static DType number_type(const Value *a, const Value *b) {
    if (a->kind == VAL_float || b->kind == VAL_float)
        return DT_f32;
    return a->kind == VAL_int || b->kind == VAL_int ? DT_i64 : DT_b8;
}

bool scatter_upon_const(const Node *n) {
    const Node *full = full_of(n);
    int64_t dim;
    if (!full || n->n_args != 4 || n->n_kwargs || !val_as_int(&n->args[1], &dim) ||
        n->args[2].kind != VAL_node || !is_number(&n->args[3]) || !is_number(&full->args[1]))
        return false;
    const TensorMeta *out = node_tensor(full), *place = node_tensor(n->args[2].node);
    // The replacement's type is that of the two numbers; elsewhere it would change the result's.
    if (!out || !place || out->ndim != place->ndim || !out->ndim ||
        out->dtype != number_type(&n->args[3], &full->args[1]))
        return false;
    Sym *s = n->graph->sym;
    dim = dim < 0 ? dim + out->ndim : dim;
    if (dim < 0 || dim >= out->ndim)
        return false;
    for (int i = 0; i < out->ndim; i++)
        if (i != dim && !sym_known_le(s, out->size[i], place->size[i]))
            return false;
    return sym_known_eq(s, place->size[dim], sym_int(s, 1));
}

static Value device_of(const TensorMeta *m) {
    return (Value){.kind = VAL_device, .device = m->device};
}

static Node *number(PassCtx *ctx, Node *at, Value v, DType dtype, const TensorMeta *like) {
    Kwarg kw[3] = {{"dtype", val_dtype(dtype)},
                   {"layout", {.kind = VAL_layout, .layout = LAYOUT_strided}},
                   {"device", device_of(like)}};
    return joint_put(ctx, at, OP_aten_scalar_tensor_default, &v, 1, kw, 3);
}

void scatter_by_where(PassCtx *ctx, Node *n) {
    Node *full = n->args[0].node;
    const TensorMeta *out = node_tensor(full), *place = node_tensor(n->args[2].node);
    int64_t dim = node_int(n, 1, "dim", 0);
    dim = dim < 0 ? dim + out->ndim : dim;
    Value shape = full->args[0], length = shape.at[dim];
    Kwarg kw[5] = {{"start", val_int(0)},
                   {"step", val_int(1)},
                   {"dtype", val_dtype(DT_i64)},
                   {"device", device_of(place)},
                   {"requires_grad", val_bool(false)}};
    Node *iota = joint_put(ctx, n, OP_prims_iota_default, &length, 1, kw, 5);
    iota->original_aten = "aten.arange.default"; // which it is a decomposition of
    Value sizes = val_list(n->graph->arena, VAL_list, out->ndim);
    for (int i = 0; i < out->ndim; i++)
        sizes.at[i] = i == dim ? length : val_int(1);
    Value along[2] = {val_node(iota), sizes};
    Node *view = joint_put(ctx, n, OP_aten_view_default, along, 2, NULL, 0);
    Value widen[2] = {n->args[2], shape};
    Node *expand = joint_put(ctx, n, OP_aten_expand_default, widen, 2, NULL, 0);
    Value compared[2] = {val_node(expand), val_node(view)};
    Node *eq = joint_put(ctx, n, OP_aten_eq_Tensor, compared, 2, NULL, 0);
    DType dtype = number_type(&n->args[3], &full->args[1]);
    Value chosen[3] = {val_node(eq)};
    chosen[2] = val_node(number(ctx, n, full->args[1], dtype, place));
    chosen[1] = val_node(number(ctx, n, n->args[3], dtype, place));
    Node *where = joint_put(ctx, n, OP_aten_where_self, chosen, 3, NULL, 0);
    node_replace_uses(n, where);
    node_erase(n);
    node_erase(full);
}
