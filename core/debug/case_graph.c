// case_graph.c: a single op with its arguments as a graph, as torch.export would hold it.
#include <string.h>

#include "core/debug/case.h"

static bool is_leaf(const RtValue *v) {
    return v->kind == RT_tensor || v->kind == RT_int || v->kind == RT_float || v->kind == RT_bool;
}

void case_flatten(Arena *a, const RtValue *v, CaseFlat *into, bool inputs) {
    if (v->kind == RT_list)
        for (int i = 0; i < v->n; i++)
            case_flatten(a, &v->at[i], into, inputs);
    else if (inputs && v->kind == RT_tensor)
        vec_push(a, &into->inputs, v);
    else if (!inputs && is_leaf(v))
        vec_push(a, &into->wanted, v);
}

static Value placeholder(Case *c, Graph *g, const Tensor *t, int i) {
    TensorMeta *m = meta_new(&c->arena, t->dtype, t->ndim);
    m->device = (Device){DEV_cpu, -1};
    m->offset = sym_int(g->sym, t->offset);
    for (int k = 0; k < t->ndim; k++) {
        m->size[k] = sym_int(g->sym, t->size[k]);
        m->stride[k] = sym_int(g->sym, t->stride[k]);
    }
    const char *name = arena_printf(&c->arena, "arg%d_1", i);
    Node *n = graph_placeholder(g, name, name);
    n->val = val_tensor(m);
    return val_node(n);
}

// Placeholders stand before all calls: tensors get their nodes here, in the order of case_flatten.
static Value argument(Case *c, Graph *g, const RtValue *v, int *n_inputs) {
    switch (v->kind) {
    case RT_none:
        break;
    case RT_tensor:
        return placeholder(c, g, &v->tensor, (*n_inputs)++);
    case RT_int:
        return val_int(v->i);
    case RT_float:
        return val_float(v->f);
    case RT_bool:
        return val_bool(v->b);
    case RT_other:
        return *v->other;
    case RT_list: {
        Value list = val_list(&c->arena, VAL_list, v->n);
        for (int i = 0; i < v->n; i++)
            list.at[i] = argument(c, g, &v->at[i], n_inputs);
        return list;
    }
    }
    return val_none();
}

// The items of a result that the case has a value for, each taken out by itself.
static void take_out(Case *c, Graph *g, Node *from, const RtValue *want, Value *outputs, int *n) {
    if (is_leaf(want))
        outputs[(*n)++] = val_node(from);
    for (int i = 0; want->kind == RT_list && i < want->n; i++) {
        if (want->at[i].kind == RT_none)
            continue;
        Value args[2] = {val_node(from), val_int(i)};
        Node *item =
            graph_node(g, FX_call_function, "_operator.getitem", "getitem", args, 2, NULL, 0);
        take_out(c, g, item, &want->at[i], outputs, n);
    }
}

static bool is_default(const SchemaArg *arg, const Value *v) {
    return arg->has_default && val_equal(v, &arg->dflt);
}

const Graph *case_graph(Case *c, CaseFlat *flat) {
    Arena *a = &c->arena;
    const Op *op = c->op;
    Graph *g = graph_new(a, sym_new(a));
    g->class_name = "GraphModule";
    Value *args = ARENA_ARRAY(a, op->n_args + 1, Value);
    Kwarg *kwargs = ARENA_ARRAY(a, op->n_args + 1, Kwarg);
    int n_inputs = 0, n_args = 0, n_kwargs = 0;
    for (int i = 0; i < op->n_args; i++) {
        case_flatten(a, &c->args[i], flat, true);
        args[i] = argument(c, g, &c->args[i], &n_inputs);
        bool given = !is_default(&op->args[i], &args[i]);
        if (given && op->args[i].kwarg_only)
            kwargs[n_kwargs++] = (Kwarg){op->args[i].name, args[i]};
        else if (given)
            n_args = i + 1;
    }
    Node *call = graph_call(g, op, op_to_name(a, op), args, n_args, kwargs, n_kwargs);
    case_flatten(a, c->want, flat, false);
    Value outputs = val_list(a, VAL_tuple, flat->wanted.n);
    int n = 0;
    take_out(c, g, call, c->want, outputs.at, &n);
    graph_output(g, outputs);
    return g;
}
