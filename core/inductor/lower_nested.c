// lower_nested.c: higher-order ops: each graph among the arguments is lowered like the one around
// it, into a module of its own whose names have the graph's before them; the call is an operation
// that runs them (torch/_inductor/ir.py Conditional, WhileLoop). Operands and results have the
// strides that the traced graph says, since the nested code was made for these.
#include "core/inductor/lower.h"

static const char *const class_of[] = {
    [HIGHER_cond] = "Conditional",
    [HIGHER_while_loop] = "WhileLoop",
    [HIGHER_while_loop_stack_output] = "WhileLoop",
    [HIGHER_scan] = "Scan",
    [HIGHER_map_impl] = "Map",
    [HIGHER_invoke_subgraph] = "InvokeSubgraph",
};

static bool fail(Lower *l, const Node *n, const char *what) {
    diag_fail(l->req->diag, "cannot lower %s: %s", n->name, what);
    l->failed = true;
    return false;
}

// Groups of operands by op: an argument that is a list, or one or all from it on as they are.
typedef struct Group {
    int arg;
    enum { G_none, G_list, G_one, G_rest } how;
} Group;

static const Group groups_of[][IR_GROUPS] = {
    [HIGHER_cond] = {{0, G_one}, {3, G_list}},
    [HIGHER_while_loop] = {{2, G_list}, {3, G_list}},
    [HIGHER_while_loop_stack_output] = {{2, G_list}, {3, G_list}},
    [HIGHER_scan] = {{1, G_list}, {2, G_list}, {3, G_list}},
    [HIGHER_map_impl] = {{0, G_none}, {1, G_list}, {2, G_list}},
    [HIGHER_invoke_subgraph] = {{2, G_rest}},
};

static bool add_operand(Lower *l, const Node *n, LBuf *b, const Value *v) {
    const TensorMeta *m = arg_meta(l, v);
    LVal x = l_of(l, v);
    IrArg a = {.value = x.v};
    if (x.kind == L_box && m && m->ndim == data_ndim(x.box->data))
        x.box = box_require_exact(l, box_new(l, data_as_input(l, x.box->data)), m->stride);
    if (x.kind == L_box)
        a = data_arg(l, x.box->data);
    else if (x.kind != L_value)
        return fail(l, n, "an operand is neither a tensor nor a size");
    if (a.buf)
        buf_decide(l, map_get(&l->by_name, a.buf));
    extern_set_args(l, b->ir->op, &a, 1);
    return true;
}

static bool add_group(Lower *l, const Node *n, LBuf *b, int k, const Group *g) {
    const Value *from = &n->args[g->arg];
    int count = g->how == G_none ? 0 : g->how == G_one ? 1 : n->n_args - g->arg;
    if (g->how != G_none && g->arg >= n->n_args)
        return fail(l, n, "it has too few arguments");
    if (g->how == G_list) {
        if (from->kind != VAL_list && from->kind != VAL_tuple)
            return fail(l, n, "its operands are no list");
        count = from->n;
        from = from->at;
    }
    b->ir->op->groups[k] = count;
    for (int i = 0; i < count; i++)
        if (!add_operand(l, n, b, &from[i]))
            return false;
    return true;
}

static bool add_graphs(Lower *l, const Node *n, IrOp *op) {
    for (int i = 0; i < n->n_args; i++) {
        const Graph *g = value_graph(&n->args[i]);
        if (!g)
            continue;
        const char *name =
            arena_printf(l->arena, "%s%s", l->prefix,
                         n->args[i].kind == VAL_node ? n->args[i].node->target : g->class_name);
        LowerRequest r = *l->req;
        r.graph = g;
        r.n_visible = 0;
        const IrModule *m = lower_graph(&r, arena_printf(l->arena, "%s_", name));
        if (!m) {
            l->failed = true;
            return false;
        }
        vec_push(l->arena, &op->nested, (IrNested){name, m});
    }
    return true;
}

static Device device_of(Lower *l, const IrOp *op) {
    for (int i = 0; i < op->args.n; i++)
        if (op->args.at[i].buf) {
            const LBuf *b = map_get(&l->by_name, op->args.at[i].buf);
            return b->ir->layout->device;
        }
    return (Device){DEV_cpu, -1};
}

LVal lower_higher(Lower *l, const Node *n) {
    HigherId id = node_higher(n);
    const Value out = *node_val(l, n);
    const char *cls = (int)id < COUNT(class_of) ? class_of[id] : NULL;
    if (!cls || (out.kind != VAL_tuple && out.kind != VAL_list)) {
        fail(l, n, cls ? "its results are not known" : "this higher-order op has no lowering");
        return (LVal){0};
    }
    // The operation is registered when its operands are: they come first.
    LBuf operands = {.ir = &(IrBuffer){.op = &(IrOp){0}}};
    for (int k = 0; k < IR_GROUPS; k++)
        if (!add_group(l, n, &operands, k, &groups_of[id][k]))
            return (LVal){0};
    Device dev = device_of(l, operands.ir->op);
    LBuf *b = buffer_register(l, layout_new(l, IRL_multi_output, dev, DT_none, 0, NULL, NULL, NULL),
                              IR_other);
    IrOp *op = b->ir->op;
    b->is_extern = true;
    op->cls_name = cls;
    op->higher = id;
    op->args.at = operands.ir->op->args.at;
    op->args.n = op->args.cap = operands.ir->op->args.n;
    op->reads_star.at = operands.ir->op->reads_star.at;
    op->reads_star.n = op->reads_star.cap = operands.ir->op->reads_star.n;
    for (int k = 0; k < IR_GROUPS; k++)
        op->groups[k] = operands.ir->op->groups[k];
    if (!add_graphs(l, n, op))
        return (LVal){0};
    LVal list = lv_list(l, out.n);
    for (int i = 0; i < out.n; i++)
        if (out.at[i].kind == VAL_tensor)
            list.at[i] = multi_output(l, b, out.at[i].tensor, i);
    return list;
}
