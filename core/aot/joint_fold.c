// joint_fold.c: constant_fold_uniform_value: tensors known to hold one value everywhere become one
// `full`, then additions of zeros and multiplications by ones go. Values are followed through views
// and pointwise ops.
#include "core/aot/joint.h"
#include "core/tensor/tensor.h"
#include "core/record/fault.h"

#include <math.h>
#include <string.h>

typedef struct Uniform {
    Value value;   // bool, int or float; none: unknown
    int data;      // node that made it: views share it
    bool replaced; // a candidate for a `full`
} Uniform;

typedef struct Fold {
    PassCtx *ctx;
    Graph *g;
    Uniform *at;     // by node id
    Map sizes;       // expression id -> node that yields it, of those gone by
    Map zeros, ones; // ids of the new nodes
    int *storage;    // by id, if something is written: the node that owns the memory; else NULL
} Fold;

// What of an integer is left in a type of fewer bits.
static int64_t wrapped(int64_t v, DType d) {
    return d == DT_u8    ? (uint8_t)v
           : d == DT_i8  ? (int8_t)v
           : d == DT_i16 ? (int16_t)v
           : d == DT_i32 ? (int32_t)v
                         : v;
}

static Value cast(Value v, DType d) {
    double f = 0;
    if (!val_as_float(&v, &f))
        return val_none();
    switch (dtype_info[d].cls) {
    case DTC_BOOL:
        return val_bool(f != 0);
    case DTC_INT:
        return v.kind == VAL_float ? val_int(isfinite(f) ? wrapped((int64_t)f, d) : 0)
                                   : val_int(v.kind == VAL_bool ? v.b : wrapped(v.i, d));
    case DTC_FLOAT:
        return val_float(d == DT_f32    ? (double)(float)f
                         : d == DT_bf16 ? bf16_to_f32(f32_to_bf16((float)f))
                         : d == DT_f16  ? f16_to_f32(f64_to_f16(f))
                                        : f);
    case DTC_none:
    case DTC_COMPLEX:
        break;
    }
    return val_none();
}

typedef double Unary(double);
typedef double Binary(double, double);

static double neg(double a) {
    return -a;
}
static double reciprocal(double a) {
    return 1 / a;
}
static double rsqrt_(double a) {
    return 1 / sqrt(a);
}
static double relu(double a) {
    return a > 0 || isnan(a) ? a : 0;
}
static double sigmoid(double a) {
    return 1 / (1 + exp(-a));
}
static double not_(double a) {
    return a == 0;
}
static double isnan_(double a) {
    return isnan(a);
}
static double isinf_(double a) {
    return isinf(a);
}
static double same(double a) {
    return a;
}
static double add(double a, double b) {
    return a + b;
}
static double sub(double a, double b) {
    return a - b;
}
static double mul(double a, double b) {
    return a * b;
}
static double divide(double a, double b) {
    return a / b;
}
static double eq(double a, double b) {
    return a == b;
}
static double ne(double a, double b) {
    return a != b;
}
static double lt(double a, double b) {
    return a < b;
}
static double le(double a, double b) {
    return a <= b;
}
static double gt(double a, double b) {
    return a > b;
}
static double ge(double a, double b) {
    return a >= b;
}
static double maximum(double a, double b) {
    return isnan(a) || isnan(b) ? NAN : a > b ? a : b;
}
static double minimum(double a, double b) {
    return isnan(a) || isnan(b) ? NAN : a < b ? a : b;
}
static double and_(double a, double b) {
    return a != 0 && b != 0;
}
static double or_(double a, double b) {
    return a != 0 || b != 0;
}

static const struct {
    OpId op;
    Unary *fn;
} unary[] = {
    {OP_aten_neg_default, neg},
    {OP_aten_abs_default, fabs},
    {OP_aten_exp_default, exp},
    {OP_aten_log_default, log},
    {OP_aten_log1p_default, log1p},
    {OP_aten_expm1_default, expm1},
    {OP_aten_sqrt_default, sqrt},
    {OP_aten_rsqrt_default, rsqrt_},
    {OP_aten_reciprocal_default, reciprocal},
    {OP_aten_relu_default, relu},
    {OP_aten_sigmoid_default, sigmoid},
    {OP_aten_tanh_default, tanh},
    {OP_aten_sin_default, sin},
    {OP_aten_cos_default, cos},
    {OP_aten_erf_default, erf},
    {OP_aten_floor_default, floor},
    {OP_aten_ceil_default, ceil},
    {OP_aten_trunc_default, trunc},
    {OP_aten_logical_not_default, not_},
    {OP_aten_isnan_default, isnan_},
    {OP_aten_isinf_default, isinf_},
    {OP_aten_clone_default, same},
    {OP_prims_convert_element_type_default, same},
    {OP_aten_scalar_tensor_default, same},
};

static const struct {
    OpId op;
    Binary *fn;
} binary[] = {
    {OP_aten_add_Tensor, add},
    {OP_aten_sub_Tensor, sub},
    {OP_aten_mul_Tensor, mul},
    {OP_aten_div_Tensor, divide},
    {OP_aten_pow_Tensor_Scalar, pow},
    {OP_aten_pow_Tensor_Tensor, pow},
    {OP_aten_eq_Tensor, eq},
    {OP_aten_eq_Scalar, eq},
    {OP_aten_ne_Tensor, ne},
    {OP_aten_ne_Scalar, ne},
    {OP_aten_lt_Tensor, lt},
    {OP_aten_lt_Scalar, lt},
    {OP_aten_le_Tensor, le},
    {OP_aten_le_Scalar, le},
    {OP_aten_gt_Tensor, gt},
    {OP_aten_gt_Scalar, gt},
    {OP_aten_ge_Tensor, ge},
    {OP_aten_ge_Scalar, ge},
    {OP_aten_maximum_default, maximum},
    {OP_aten_minimum_default, minimum},
    {OP_aten_clamp_min_default, maximum},
    {OP_aten_clamp_max_default, minimum},
    {OP_aten_logical_and_default, and_},
    {OP_aten_logical_or_default, or_},
};

// The value of an argument: a number, or a node's; none if it is unknown.
static Value known(const Fold *f, const Value *v) {
    if (v->kind == VAL_node)
        return f->at[v->node->id].value;
    return v->kind == VAL_bool || v->kind == VAL_int || v->kind == VAL_float ? *v : val_none();
}

static bool bitwise(OpId op, const Value *a, const Value *b, Value *out) {
    bool bools = a->kind == VAL_bool && b->kind == VAL_bool;
    int64_t x = a->kind == VAL_bool ? a->b : a->i, y = b->kind == VAL_bool ? b->b : b->i, r;
    if (a->kind == VAL_float || b->kind == VAL_float)
        return false;
    if (op == OP_aten_bitwise_and_Tensor || op == OP_aten_bitwise_and_Scalar)
        r = x & y;
    else if (op == OP_aten_bitwise_or_Tensor || op == OP_aten_bitwise_or_Scalar)
        r = x | y;
    else
        return false;
    *out = bools ? val_bool(r != 0) : val_int(r);
    return true;
}

// A pointwise op on known values, in the result's type.
static Value evaluate(const Fold *f, const Node *n) {
    const TensorMeta *m = node_tensor(n);
    Value a = n->n_args ? known(f, &n->args[0]) : val_none(),
          b = n->n_args > 1 ? known(f, &n->args[1]) : val_none();
    double x, y;
    if (!m || n->kwargs == NULL ? !m : false)
        return val_none();
    for (int i = 0; i < n->n_kwargs; i++)
        if (strcmp(n->kwargs[i].name, "alpha") == 0 ||
            strcmp(n->kwargs[i].name, "rounding_mode") == 0)
            return val_none();
    if (n->def->id == OP_aten_where_self && n->n_args == 3) {
        Value c = known(f, &n->args[2]);
        if (a.kind == VAL_none || b.kind == VAL_none || c.kind == VAL_none)
            return val_none();
        return cast(a.b ? b : c, m->dtype);
    }
    if (n->def->id == OP_aten_bitwise_not_default && a.kind == VAL_bool)
        return val_bool(!a.b);
    for (int i = 0; i < COUNT(unary); i++)
        if (unary[i].op == n->def->id && val_as_float(&a, &x)) {
            bool plain = unary[i].fn == same;
            return cast(plain ? a : val_float(unary[i].fn(x)), m->dtype);
        }
    if (a.kind == VAL_none || b.kind == VAL_none)
        return val_none();
    Value r;
    if (bitwise(n->def->id, &a, &b, &r))
        return cast(r, m->dtype);
    for (int i = 0; i < COUNT(binary); i++)
        if (binary[i].op == n->def->id && val_as_float(&a, &x) && val_as_float(&b, &y))
            return cast(val_float(binary[i].fn(x, y)), m->dtype);
    return val_none();
}

static bool is_view(const Node *n) {
    static const char *const packets[] = {
        "squeeze", "unsqueeze",        "alias",  "view",       "slice",
        "t",       "broadcast_in_dim", "expand", "as_strided", "permute"};
    return n->def && str_index(n->def->name, packets, COUNT(packets)) >= 0;
}

// The number in a constant of one element.
static Value attribute_value(const Fold *f, const Node *n) {
    for (int i = 0; i < f->g->consts.n; i++) {
        const GraphConst *c = &f->g->consts.at[i];
        const Tensor *x = c->tensor;
        if (!x || strcmp(c->name, n->target) != 0 || tensor_numel(x) != 1)
            continue;
        return dtype_is_float(x->dtype) ? val_float(tensor_get_f64(x, 0))
               : x->dtype == DT_b8      ? val_bool(tensor_get_i64(x, 0) != 0)
                                        : val_int(tensor_get_i64(x, 0));
    }
    return val_none();
}

static void deduce(Fold *f, Node *n) {
    Uniform *u = &f->at[n->id];
    if (n->op == FX_get_attr)
        u->value = attribute_value(f, n);
    if (n->op != FX_call_function || !n->def || !node_tensor(n) ||
        n->def->tags & (OPT_random | OPT_mutates))
        return;
    if (node_is(n, OP_aten_full_default) && n->n_args == 2) {
        Value v = n->args[1];
        if (v.kind != VAL_bool && v.kind != VAL_int && v.kind != VAL_float)
            return;
        *u = (Uniform){cast(v, node_tensor(n)->dtype), n->id, true};
    } else if (node_is(n, OP_aten_lift_fresh_copy_default)) {
        Value v = n->n_args ? known(f, &n->args[0]) : val_none();
        if (v.kind != VAL_none)
            *u = (Uniform){v, n->id, true};
    } else if (is_view(n) && !node_is(n, OP_aten_view_dtype)) {
        if (n->n_args && n->args[0].kind == VAL_node)
            *u = f->at[n->args[0].node->id];
        u->replaced = u->value.kind != VAL_none;
    } else if ((n->def->tags & OPT_pointwise) || node_is(n, OP_aten_scalar_tensor_default) ||
               node_is(n, OP_aten_clone_default)) {
        Value v = evaluate(f, n);
        if (v.kind != VAL_none)
            *u = (Uniform){v, n->id, true};
    }
}

// A constant whose every user became a constant itself is not made again.
static bool only_feeds_constants(const Fold *f, const Node *n) {
    for (int i = 0; i < n->n_users; i++)
        if (n->users[i]->op == FX_output || !f->at[n->users[i]->id].replaced)
            return false;
    return n->n_users > 0;
}

static bool shape_values(Fold *f, const TensorMeta *m, Value *out) {
    *out = val_list(f->g->arena, VAL_list, m->ndim);
    for (int i = 0; i < m->ndim; i++) {
        int64_t v;
        if (expr_int(m->size[i], &v)) {
            out->at[i] = val_int(v);
            continue;
        }
        Node *size = map_get_id(&f->sizes, expr_id(m->size[i]));
        if (!size)
            return false;
        out->at[i] = val_node(size);
    }
    return true;
}

static bool replace(Fold *f, Node *n) {
    const TensorMeta *m = node_tensor(n);
    const Uniform *u = &f->at[n->id];
    Value args[2];
    if (!meta_is_contiguous(f->g->sym, m, MF_contiguous) || m->dtype == DT_u8 ||
        !shape_values(f, m, &args[0]))
        return false;
    args[1] = node_is(n, OP_aten_full_default) ? n->args[1] : u->value;
    const Value *pin = node_arg(n, -1, "pin_memory");
    Kwarg kw[4] = {{"dtype", val_dtype(m->dtype)},
                   {"layout", {.kind = VAL_layout, .layout = LAYOUT_strided}},
                   {"device", {.kind = VAL_device, .device = m->device}},
                   {"pin_memory", pin ? *pin : val_bool(false)}};
    if (!joint_wants(f->ctx, "constant_fold_uniform_value", n, "one value everywhere"))
        return false;
    double v = NAN;
    if (val_as_float(&args[1], &v) && dtype_is_float(m->dtype) &&
        fault(f->ctx->decisions, FAULT_folded_wrong, n->name))
        args[1] = val_float(v + 1);
    Node *full = joint_insert_after(f->ctx, n, op_at(OP_aten_full_default), NULL, args, 2, kw, 4);
    v = NAN;
    val_as_float(&args[1], &v);
    if (v == 0)
        map_at_id(&f->zeros, (uint64_t)full->id)->i = 1;
    else if (v == 1)
        map_at_id(&f->ones, (uint64_t)full->id)->i = 1;
    node_replace_uses(n, full);
    node_erase(n);
    f->ctx->matches++;
    return true;
}

static bool in(const Map *set, const Value *v) {
    return v->kind == VAL_node && map_find_id(set, (uint64_t)v->node->id);
}

// x + 0, x - 0, x * 1, x / 1 of tensors. PyTorch 2.11 drops x + 0 as this does (remove_no_ops),
// though of x = -0.0 eager makes 0.0; later versions keep it for floats.
static void drop_neutral(Fold *f, Node *n) {
    if (!n->def || n->n_args != 2 || n->args[0].kind != VAL_node || n->args[1].kind != VAL_node ||
        n->n_kwargs)
        return;
    OpId id = n->def->id;
    const Map *set = id == OP_aten_add_Tensor || id == OP_aten_sub_Tensor   ? &f->zeros
                     : id == OP_aten_mul_Tensor || id == OP_aten_div_Tensor ? &f->ones
                                                                            : NULL;
    bool ones = in(&f->ones, &n->args[0]) || in(&f->ones, &n->args[1]);
    if (id == OP_aten_add_Tensor && ones &&
        fault(f->ctx->decisions, FAULT_neutral_mixed_up, n->name))
        set = &f->ones;
    bool commutes = id == OP_aten_add_Tensor || id == OP_aten_mul_Tensor;
    if (!set || !((commutes && in(set, &n->args[0])) || in(set, &n->args[1])))
        return;
    Node *keep = commutes && in(set, &n->args[0]) ? n->args[1].node : n->args[0].node;
    const TensorMeta *a = node_tensor(n), *b = node_tensor(keep);
    if (!a || !b || !same_sizes(f->g->sym, a, b) || !device_equal(a->device, b->device) ||
        (f->storage && node_outlives(n, keep, f->storage)) ||
        !joint_wants(f->ctx, "constant_fold_uniform_value", n, "neutral element"))
        return;
    if (a->dtype != b->dtype) {
        Value args[2] = {val_node(keep), val_dtype(a->dtype)};
        keep = joint_insert_after(f->ctx, n, op_at(OP_prims_convert_element_type_default), NULL,
                                  args, 2, NULL, 0);
    }
    for (int i = 0; f->storage && a->dtype == b->dtype && i < f->g->by_id.n; i++)
        if (f->storage[i] == n->id)
            f->storage[i] = f->storage[keep->id];
    node_replace_uses(n, keep);
    node_erase(n);
    f->ctx->matches++;
}

static int *storages_if_written(Arena *a, const Graph *g) {
    bool written = false;
    GRAPH_EACH (g, n)
        written = written || (n->def && n->def->tags & OPT_mutates);
    if (!written)
        return NULL;
    int n_ids = g->by_id.n, *storage = ARENA_ARRAY(a, 2 * n_ids + 1, int);
    for (int i = 0; i <= 2 * n_ids; i++) // nodes may come, at most one for each that goes
        storage[i] = i;
    memcpy(storage, graph_storages(a, g), (size_t)n_ids * sizeof *storage);
    return storage;
}

static bool has_candidates(const Graph *g) {
    GRAPH_EACH (g, n)
        if (node_is(n, OP_aten_full_default) || node_is(n, OP_aten_scalar_tensor_default) ||
            node_is(n, OP_aten_lift_fresh_copy_default))
            return true;
    return false;
}

static Graph *constant_fold_uniform_value(PassCtx *ctx, const Graph *given) {
    ctx->matches = 0;
    if (!has_candidates(given))
        return (Graph *)(uintptr_t)given;
    Arena *a = ctx->arena;
    Fold f = {
        .ctx = ctx, .g = graph_copy(a, given), .sizes.arena = a, .zeros.arena = a, .ones.arena = a};
    int n_ids = f.g->by_id.n;
    f.at = ARENA_ARRAY(a, n_ids + 1, Uniform);
    GRAPH_EACH (f.g, n)
        deduce(&f, n);
    int *shared = ARENA_ARRAY(a, n_ids + 1, int);
    bool *gone = ARENA_ARRAY(a, n_ids + 1, bool);
    GRAPH_EACH (f.g, n) {
        gone[n->id] = f.at[n->id].replaced && only_feeds_constants(&f, n);
        if (f.at[n->id].replaced && !gone[n->id])
            shared[f.at[n->id].data]++;
    }
    for (Node *n = f.g->first, *next; n; n = next) {
        next = n->next;
        if (n->val.kind == VAL_sym && !map_find_id(&f.sizes, expr_id(n->val.sym)))
            map_put_id(&f.sizes, expr_id(n->val.sym), n);
        if (n->id < n_ids && f.at[n->id].replaced && !gone[n->id] && shared[f.at[n->id].data] == 1)
            replace(&f, n);
    }
    f.storage = storages_if_written(a, f.g);
    for (Node *n = f.g->first, *next; n; n = next) {
        next = n->next;
        if (n->op == FX_call_function)
            drop_neutral(&f, n);
    }
    return ctx->matches ? f.g : (Graph *)(uintptr_t)given;
}

const GraphPass pass_constant_fold_uniform_value = {
    "constant_fold_uniform_value",
    "tensors of one value become full; x + 0, x - 0, x * 1, x / 1 go", constant_fold_uniform_value};
