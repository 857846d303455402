// joint_random.c: replace_random: aten.rand, randn and randint become the compiler's own generator,
// each with a seed looked up in one vector of seeds a device.
#include "core/aot/joint.h"

#include <string.h>

typedef struct Draw {
    Node *n;    // rand, randn or randint.low
    Node *made; // inductor_random or inductor_randint
} Draw;

static bool is_random(const Node *n) {
    bool known = node_is(n, OP_aten_rand_default) || node_is(n, OP_aten_randn_default) ||
                 node_is(n, OP_aten_randint_low);
    return known && n->n_args >= (node_is(n, OP_aten_randint_low) ? 3 : 1) && node_tensor(n) &&
           !node_arg(n, -1, "generator");
}

static Value device_of(const Node *n) {
    const TensorMeta *m = node_tensor(n);
    return (Value){.kind = VAL_device, .device = m ? m->device : (Device){DEV_cpu, -1}};
}

static Node *insert_before(Node *at, OpId op, const Value *args, int n_args) {
    graph_set_insert(at->graph, at);
    Node *n = graph_call(at->graph, op_at(op), NULL, args, n_args, NULL, 0);
    graph_set_insert(at->graph, NULL);
    return n;
}

static const TensorMeta *vector(Graph *g, int64_t n, int ndim, Device device) {
    const Expr *size[1] = {sym_int(g->sym, n)};
    return meta_contiguous(g->arena, g->sym, DT_i64, ndim, size, device);
}

// The generator's call in place of n; its seed is filled in later.
static Node *draw(PassCtx *ctx, Node *n) {
    bool ints = node_is(n, OP_aten_randint_low);
    const TensorMeta *m = node_tensor(n);
    Value mode = val_str(node_is(n, OP_aten_randn_default) ? "randn" : "rand");
    Value args[4] = {n->args[0], val_none(), mode};
    for (int i = 1; ints && i < 3; i++)
        args[i] = n->args[i];
    args[3] = val_none();
    Node *made = ints ? insert_before(n, OP_prims_inductor_randint_default, args, 4)
                      : insert_before(n, OP_prims_inductor_random_default, args, 3);
    node_copy_meta(made, n);
    TensorMeta *own = meta_copy(n->graph->arena, m);
    own->dtype = ints ? DT_i64 : DT_f32;
    made->val = val_tensor(own);
    Node *result = made;
    if (own->dtype != m->dtype) {
        Value cast[2] = {val_node(made), val_dtype(m->dtype)};
        result = insert_before(n, OP_prims_convert_element_type_default, cast, 2);
        node_copy_meta(result, n);
    }
    if (ctx->origins) {
        origins_add(ctx->origins, made->id, n->id, LINK_same);
        origins_add(ctx->origins, result->id, n->id, LINK_same);
    }
    node_replace_uses(n, result);
    return made;
}

static void seed(PassCtx *ctx, Graph *g, const Draw *draws, int n_draws, Device device) {
    int count = 0;
    Node *first = NULL;
    for (int i = 0; i < n_draws; i++)
        if (device_equal(device_of(draws[i].made).device, device) && !count++)
            first = draws[i].made;
    Value args[2] = {val_int(count), {.kind = VAL_device, .device = device}};
    Node *seeds = insert_before(first, OP_prims_inductor_seeds_default, args, 2);
    seeds->val = val_tensor(vector(g, count, 1, device));
    for (int i = 0, at = 0; i < n_draws; i++) {
        Node *made = draws[i].made;
        if (!device_equal(device_of(made).device, device))
            continue;
        Value look[2] = {val_node(seeds), val_int(at++)};
        Node *s = insert_before(made, OP_prims_inductor_lookup_seed_default, look, 2);
        s->val = val_tensor(vector(g, 1, 0, device));
        s->stack = made->stack;
        s->original_aten = made->original_aten;
        s->flags |= made->flags & (NODE_forward | NODE_backward);
        if (ctx->origins) {
            origins_add(ctx->origins, seeds->id, draws[i].n->id, LINK_kin);
            origins_add(ctx->origins, s->id, draws[i].n->id, LINK_kin);
        }
        Value *call = ARENA_ARRAY(g->arena, made->n_args, Value);
        memcpy(call, made->args, (size_t)made->n_args * sizeof *call);
        call[node_is(made, OP_prims_inductor_random_default) ? 1 : 3] = val_node(s);
        node_set_args(made, call, made->n_args, made->kwargs, made->n_kwargs);
    }
}

static Graph *replace_random(PassCtx *ctx, const Graph *given) {
    bool any = false;
    GRAPH_EACH (given, n)
        any = any || is_random(n);
    ctx->matches = 0;
    if (!any)
        return (Graph *)(uintptr_t)given;
    Graph *g = graph_copy(ctx->arena, given);
    VEC(Draw) draws = {0};
    GRAPH_EACH (g, n)
        if (is_random(n) && joint_wants(ctx, "replace_random", n, "the compiler's own generator"))
            vec_push(g->arena, &draws, (Draw){.n = n});
    for (int i = draws.n - 1; i >= 0; i--)
        draws.at[i].made = draw(ctx, draws.at[i].n);
    VEC(Device) devices = {0};
    for (int i = 0; i < draws.n; i++) {
        Device device = device_of(draws.at[i].made).device;
        bool seen = false;
        for (int k = 0; k < devices.n; k++)
            seen = seen || device_equal(devices.at[k], device);
        if (seen)
            continue;
        vec_push(g->arena, &devices, device);
        seed(ctx, g, draws.at, draws.n, device);
    }
    for (int i = 0; i < draws.n; i++)
        node_erase(draws.at[i].n);
    ctx->matches = draws.n;
    return draws.n ? g : (Graph *)(uintptr_t)given;
}

const GraphPass pass_replace_random = {
    "replace_random", "random ops of the compiler's own generator", replace_random};
