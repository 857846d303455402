// trace.c: runs the nodes of a captured graph over tensors without data, so that what reaches the
// bottom of the tracer (trace.h) is the ATen graph; writes mutated inputs back, collects the
// outputs and drops what nobody uses.
#include "core/aot/refuse.h"
#include "core/aot/run.h"
#include "core/base/work.h"

#include <stdlib.h>
#include <string.h>

// inputs

void run_learn_symbols(Trace *t, const TensorMeta *m, Node *node) {
    for (int k = 0; k < 2; k++)
        for (int i = 0; i < m->ndim; i++) {
            const Expr *e = k ? m->stride[i] : m->size[i];
            if (expr_kind(e) != SYM_symbol || map_find_id(&t->symbols, expr_id(e)))
                continue;
            SymbolSource *src = ARENA_NEW(t->arena, SymbolSource);
            *src = (SymbolSource){node, i, k ? OP_aten_sym_stride_int : OP_aten_sym_size_int};
            map_put_id(&t->symbols, expr_id(e), src);
        }
}

static void add_input(Run *r, const Node *n, bool primals) {
    Trace *t = &r->t;
    int i = r->n_inputs++;
    const char *name = primals ? arena_printf(t->arena, "primals_%d", i + 1)
                               : arena_printf(t->arena, "arg%d_1", i);
    Node *p = graph_placeholder(t->graph, name, name);
    origins_add(t->origins, p->id, n->id, LINK_same);
    r->placeholders[i] = p;
    p->val = n->val;
    if (n->val.kind == VAL_sym) {
        map_put_id(&t->proxies, expr_id(n->val.sym), p);
        r->env[n->id] = n->val;
    } else if (n->val.kind == VAL_tensor) {
        Traced *low = trace_tensor(t, n->val.tensor, p);
        Value v = val_tensor(&low->meta);
        r->env[n->id] = functional_wrap(t, &v);
        r->inputs[i] = traced(&r->env[n->id]);
    } else {
        if (n->val.kind == VAL_symfloat)
            map_put_id(&t->floats, (uintptr_t)n->val.s, p);
        r->env[n->id] = n->val.kind == VAL_none ? val_node(p) : n->val;
    }
}

static Node *dead(Trace *t, OpId op, Node *a, int64_t b) {
    Value args[2] = {val_node(a), INT(b)};
    return graph_call(t->graph, op_at(op), op_at(op)->name, args, 2, NULL, 0);
}

// Wrapping an input computes the bytes of its storage. With symbolic sizes each step is traced;
// nobody uses them, but they take their numbers: `sub_1` is then the first subtraction of the
// model.
static void storage_names(Trace *t, const TensorMeta *m, Node *p) {
    bool symbolic = false;
    for (int i = 0; i < m->ndim; i++) {
        bool size = expr_has_symbols(m->size[i]), stride = expr_has_symbols(m->stride[i]);
        if (size)
            dead(t, OP_operator_sub, p, 1);
        bool term = size || (stride && !expr_is(m->size[i], 1));
        bool plain = expr_is(m->stride[i], 1) || (!size && expr_is(m->size[i], 2));
        if (term && !plain)
            dead(t, OP_operator_mul, p, 1);
        symbolic = symbolic || term;
        if (symbolic)
            dead(t, OP_operator_add, p, 1);
    }
    if (symbolic) {
        dead(t, OP_operator_add, p, 0);
        if (dtype_info[m->dtype].bytes > 1)
            dead(t, OP_operator_mul, p, dtype_info[m->dtype].bytes);
    }
}

// All inputs first: a size that is an input wins over reading it off a tensor.
void run_inputs(Run *r, bool primals) {
    GRAPH_EACH (r->t.req->graph, n)
        if (n->op == FX_placeholder)
            add_input(r, n, primals);
    for (int i = 0; i < r->n_inputs; i++)
        if (r->inputs[i]) {
            run_learn_symbols(&r->t, &r->inputs[i]->meta, r->placeholders[i]);
            storage_names(&r->t, &r->inputs[i]->meta, r->placeholders[i]);
        }
}

// nodes

static Value evaluate(Run *r, const Value *v) {
    switch (v->kind) {
    case VAL_node:
        return r->env[v->node->id];
    case VAL_list:
    case VAL_tuple:
    case VAL_dict:
    case VAL_slice: {
        Value out = *v;
        out.at = v->n ? ARENA_ARRAY(r->t.arena, v->n, Value) : NULL;
        for (int i = 0; i < v->n; i++)
            out.at[i] = evaluate(r, &v->at[i]);
        return out;
    }
    case VAL_none:
    case VAL_bool:
    case VAL_int:
    case VAL_float:
    case VAL_complex:
    case VAL_sym:
    case VAL_symfloat:
    case VAL_str:
    case VAL_dtype:
    case VAL_device:
    case VAL_layout:
    case VAL_memory_format:
    case VAL_tensor:
    case VAL_ellipsis:
    case VAL_target:
    case VAL_graph:
    case VAL_opaque:
        break;
    }
    return *v;
}

// A graph that is an argument of an opaque call, copied as it is.
static Node *child_node(Run *r, const Graph *child) {
    Trace *t = &r->t;
    const char *name = child->class_name;
    for (int i = 0; i < r->here->children.n; i++)
        if (r->here->children.at[i].graph == child)
            name = r->here->children.at[i].name;
    return run_add_child(t, graph_copy(t->arena, child), name);
}

Value run_node_of(Run *r, const Value *v) {
    Trace *t = &r->t;
    if (v->kind == VAL_tensor) {
        Node *n = functional_sync(t, traced(v))->node;
        return n ? val_node(n) : NONE;
    }
    if (v->kind == VAL_graph)
        return val_node(child_node(r, v->graph));
    if (v->kind == VAL_list || v->kind == VAL_tuple || v->kind == VAL_dict ||
        v->kind == VAL_slice) {
        Value out = *v;
        out.at = v->n ? ARENA_ARRAY(t->arena, v->n, Value) : NULL;
        for (int i = 0; i < v->n; i++)
            out.at[i] = run_node_of(r, &v->at[i]);
        return out;
    }
    return trace_node_value(t, v);
}

// node does what n does, or a part of the call that n is run for.
static void same_as(Trace *t, const Node *node, const Node *n) {
    origins_add(t->origins, node->id, t->home ? t->home->id : n->id,
                t->home ? LINK_part : LINK_same);
}

// A call that we do not know: kept, clearly marked, with what the input graph says of its result.
static Value opaque(Run *r, const Node *n, const Value *args, const Value *kwargs) {
    Trace *t = &r->t;
    Value *a = ARENA_ARRAY(t->arena, n->n_args + 1, Value);
    Kwarg *k = ARENA_ARRAY(t->arena, n->n_kwargs + 1, Kwarg);
    for (int i = 0; i < n->n_args; i++)
        a[i] = run_node_of(r, &args[i]);
    for (int i = 0; i < n->n_kwargs; i++)
        k[i] = (Kwarg){n->kwargs[i].name, run_node_of(r, &kwargs[i])};
    if (t->failed)
        return NONE;
    const char *hint = n->def ? op_to_name(t->arena, n->def) : NULL;
    Node *node = graph_node(t->graph, n->op, n->target, hint, a, n->n_args, k, n->n_kwargs);
    node->def = n->def;
    node->val = n->val;
    node->stack = n->stack;
    node->modules = n->modules;
    if (!n->def && !node_higher(n))
        node->flags |= NODE_opaque;
    node->flags |= t->flags;
    same_as(t, node, n);
    if (n->val.kind == VAL_tensor) {
        Value v = val_tensor(&trace_tensor(t, n->val.tensor, node)->meta);
        return functional_wrap(t, &v);
    }
    return val_node(node);
}

static bool has_const(const Graph *g, const char *name) {
    for (int i = 0; i < g->consts.n; i++)
        if (!strcmp(g->consts.at[i].name, name))
            return true;
    return false;
}

// Names of attributes of nested graphs are free in those, not here.
static GraphConst const_here(Trace *t, GraphConst c) {
    const char *name = c.name;
    for (int i = 1; t->home && has_const(t->graph, c.name); i++)
        c.name = arena_printf(t->arena, "%s_%d", name, i);
    return c;
}

static Value constant(Run *r, const Graph *g, const Node *n) {
    Trace *t = &r->t;
    if (n->val.kind == VAL_graph)
        return n->val;
    const char *name = n->target;
    for (int i = 0; i < g->consts.n; i++)
        if (strcmp(g->consts.at[i].name, n->target) == 0) {
            GraphConst c = const_here(t, g->consts.at[i]);
            name = c.name;
            vec_push(t->arena, &t->graph->consts, c);
        }
    Node *node = graph_get_attr(t->graph, name, NULL);
    node->val = n->val;
    same_as(t, node, n);
    if (n->val.kind != VAL_tensor)
        return val_node(node);
    Value v = val_tensor(&trace_tensor(t, n->val.tensor, node)->meta);
    return functional_wrap(t, &v);
}

// A number where a tensor is asked for is one of no dimensions. Where types are promoted it stays a
// number; these take it as it is.
static void number_as_tensor(Trace *t, const Op *op, Value *bound) {
    static const OpId ops[] = {OP_aten__to_copy_default, OP_aten_copy_default,
                               OP_aten_copy__default};
    for (int i = 0; i < COUNT(ops); i++)
        for (int k = 0; op->id == ops[i] && k < op->n_args; k++) {
            ValueKind kind = op->args[k].type == AT_tensor ? bound[k].kind : VAL_none;
            DType d = kind == VAL_bool                            ? DT_b8
                      : kind == VAL_int || kind == VAL_sym        ? DT_i64
                      : kind == VAL_float || kind == VAL_symfloat ? DT_f64
                                                                  : DT_none;
            if (d != DT_none)
                bound[k] = CALL(t, aten_scalar_tensor_default, bound[k], DTY(d));
        }
}

static bool call_op(Run *r, const Node *n, const Value *args, const Value *kwargs, Value *out) {
    Trace *t = &r->t;
    const char **kw = ARENA_ARRAY(t->arena, n->n_kwargs + 1, const char *);
    for (int i = 0; i < n->n_kwargs; i++)
        kw[i] = n->kwargs[i].name;
    const Op *op = n->def;
    if (op && !(op->tags & OPT_sym) && str_starts(n->target, "torch.ops.")) {
        Value *bound = ARENA_ARRAY(t->arena, op->n_args + 1, Value);
        MetaCtx m = trace_meta_ctx(t);
        if (!op_bind(op, args, n->n_args, kw, kwargs, n->n_kwargs, bound, t->arena, t->diag,
                     m.at)) {
            t->failed = true;
            return true;
        }
        number_as_tensor(t, op, bound);
        *out = trace_dispatch(t, op, bound);
        return true;
    }
    TorchCall call = {.target = n->target,
                      .method = n->op == FX_call_method,
                      .args = args,
                      .n_args = n->n_args,
                      .kw = kw,
                      .kwargs = kwargs,
                      .n_kwargs = n->n_kwargs};
    return torch_call(t, &call, out);
}

// `with torch.autocast(…)` as Dynamo writes it: enter yields what exit goes back to.
static bool switch_autocast(Trace *t, const Node *n, const Value *args, Value *out) {
    if (n->op != FX_call_function || n->n_args < 1)
        return false;
    if (autocast_is_exit(n->target)) {
        *out = NONE;
        return autocast_from(&args[0], &t->autocast);
    }
    *out = autocast_value(t->autocast);
    return autocast_is_enter(n->target) && autocast_enter(&t->autocast, args, n->n_args);
}

static void run_node(Run *r, const Graph *g, const Node *n) {
    Trace *t = &r->t;
    t->at = n;
    t->stack = n->stack;
    if (n->op == FX_get_attr) {
        r->env[n->id] = constant(r, g, n);
        return;
    }
    Value *args = ARENA_ARRAY(t->arena, n->n_args + 1, Value);
    Value *kwargs = ARENA_ARRAY(t->arena, n->n_kwargs + 1, Value);
    for (int i = 0; i < n->n_args; i++)
        args[i] = evaluate(r, &n->args[i]);
    for (int i = 0; i < n->n_kwargs; i++)
        kwargs[i] = evaluate(r, &n->kwargs[i].value);
    bool known = n->op != FX_call_module;
    for (int i = 0; i < n->n_args; i++)
        known = known && !trace_has_unknown(&args[i]);
    for (int i = 0; i < n->n_kwargs; i++)
        known = known && !trace_has_unknown(&kwargs[i]);
    Value out = NONE;
    int first = trace_next_id(t);
    bool done = higher_runs_named(r, n, args, kwargs, &out) ||
                (known && (node_higher(n) ? run_higher(r, n, args, kwargs, &out)
                                          : switch_autocast(t, n, args, &out) ||
                                                call_op(r, n, args, kwargs, &out)));
    if (!done && known && !t->failed && !node_higher(n)) {
        MetaCtx m = trace_meta_ctx(t);
        t->failed = !call_may_be_opaque(&m, n, args, kwargs);
    }
    if (!done && !t->failed)
        out = opaque(r, n, args, kwargs);
    if (t->failed && !n->stack)
        diag_note(t->diag, node_place(n), "in node '%s' (%s)", n->name, n->target);
    // An op without a meta function: what the input graph says of its result still holds.
    if (out.kind == VAL_node && out.node->val.kind == VAL_none && n->val.kind == VAL_tensor) {
        out.node->val = n->val;
        Value v = val_tensor(&trace_tensor(t, n->val.tensor, out.node)->meta);
        out = functional_wrap(t, &v);
    }
    const Node *made = out.kind == VAL_tensor && !t->home ? functional_node(traced(&out)) : NULL;
    if (made && made->id >= first)
        r->result[n->id] = made->id;
    r->env[n->id] = out;
}

// nested graphs

enum { MAX_NESTING = 40 }; // of graphs in graphs; parsers take fewer

// The returned structure, evaluated.
static Value body_result(Run *r, const Graph *body) {
    const Node *output = graph_output_node(body);
    return output && output->n_args ? evaluate(r, &output->args[0]) : NONE;
}

bool run_body(Run *r, const Graph *body, const Value *args, int n, Value *out) {
    Trace *t = &r->t;
    Node **inputs;
    int want = graph_placeholders(body, &inputs, t->arena);
    if (want != n) {
        trace_fail(t, "RuntimeError: the nested graph %s takes %d inputs, but %d are given",
                   body->class_name, want, n);
        return false;
    }
    if (t->nesting == MAX_NESTING) {
        trace_fail(t, "graphs nested deeper than %d", MAX_NESTING);
        return false;
    }
    Run saved = *r;
    t->nesting++;
    t->home = trace_home(t);
    r->here = body;
    r->env = ARENA_ARRAY(t->arena, body->by_id.n + 1, Value);
    for (int i = 0; i < n; i++)
        r->env[inputs[i]->id] = args[i];
    GRAPH_EACH (body, m)
        if (m->op != FX_output && m->op != FX_placeholder && !t->failed)
            run_node(r, body, m);
    *out = t->failed ? NONE : body_result(r, body);
    t->nesting = saved.t.nesting;
    t->home = saved.t.home;
    t->at = saved.t.at;
    t->stack = saved.t.stack;
    r->here = saved.here;
    r->env = saved.env;
    return !t->failed;
}

// outputs

// Is a written input written back by a copy_ of the graph? in_graph NULL: there are no gradients.
static bool is_in_graph(const Run *r, const bool *in_graph, int i) {
    return in_graph ? in_graph[i]
                    : !functional_is_reshaped(r->inputs[i]) && r->t.req->keep_input_mutations;
}

// An output that is an input written in the graph is the input itself: it has been written back by
// then.
Value run_output_of(Run *r, const bool *in_graph, const Value *e) {
    Traced *x = traced(e);
    if (x && functional_is_mutated(x))
        for (int i = 0; i < r->n_inputs; i++)
            if (r->inputs[i] == x && is_in_graph(r, in_graph, i))
                return val_node(r->placeholders[i]);
    return run_node_of(r, e);
}

void run_append(Run *r, Value *list, Value item) {
    size_t n = (size_t)list->n;
    Value *grown = arena_grow(r->t.arena, list->at, n, n + 1, sizeof *grown);
    grown[list->n++] = item;
    list->at = grown;
}

static void collect_outputs(Run *r, const Value *v) {
    if (v->kind == VAL_list || v->kind == VAL_tuple || v->kind == VAL_dict) {
        for (int i = 0; i < v->n; i++)
            if (v->kind != VAL_dict || i % 2)
                collect_outputs(r, &v->at[i]);
        return;
    }
    Value e = evaluate(r, v);
    if (e.kind == VAL_list || e.kind == VAL_tuple)
        collect_outputs(r, &e);
    else
        run_append(r, &r->outputs, e);
}

static void copy_back(Run *r, int i, Node *value) {
    Trace *t = &r->t;
    Value args[2] = {val_node(r->placeholders[i]), val_node(value)};
    Node *copy = graph_call(t->graph, op_at(OP_aten_copy__default), "copy_", args, 2, NULL, 0);
    copy->val = r->placeholders[i]->val;
    copy->stack = t->stack;
    copy->original_aten = "aten.copy_.default";
    origins_copy(t->origins, copy->id, value->id, LINK_kin);
}

int run_write_back(Run *r, const bool *in_graph, Value *extra) {
    Trace *t = &r->t;
    int n = 0;
    t->at = NULL;
    for (int i = 0; i < r->n_inputs && !t->failed; i++) {
        Traced *x = r->inputs[i];
        if (!x || (!functional_is_mutated(x) && !functional_is_reshaped(x)))
            continue;
        t->stack = t->tape ? NULL : functional_written_at(x);
        Node *value = functional_sync(t, x)->node;
        if (value == r->placeholders[i])
            continue;
        n++;
        if (is_in_graph(r, in_graph, i))
            copy_back(r, i, value);
        else
            run_append(r, extra, val_node(value));
    }
    return n;
}

// What a node's value was is the same as it; the only node that it was traced to, too, unless an
// item of it is.
static void settle_origins(Run *r) {
    Trace *t = &r->t;
    int *made = ARENA_ARRAY(t->arena, r->t.req->graph->by_id.n + 1, int);
    GRAPH_EACH (t->req->graph, n)
        if (r->result[n->id] && graph_by_id(t->graph, r->result[n->id]))
            origins_add(t->origins, r->result[n->id], n->id, LINK_same);
    for (int pass = 0; pass < 2; pass++)
        GRAPH_EACH (t->graph, n) {
            int links;
            const Link *l = origins_from(t->origins, n->id, &links);
            if (links != 1)
                continue;
            if (!pass && l->strength == LINK_same && node_is(n, OP_operator_getitem))
                made[l->item]++;
            if (node_is(n, OP_operator_getitem))
                continue;
            if (!pass)
                made[l->item] += l->strength != LINK_kin;
            else if (made[l->item] == 1 && l->strength == LINK_part)
                origins_add(t->origins, n->id, l->item, LINK_same);
        }
}

// ---- the record: of the whole graph, not of nested ones. It lives as long as the result.

static int node_logged(const Trace *t) {
    return t->at && t->at->graph == t->req->graph ? t->at->id : -1;
}

bool trace_is_logged(const Trace *t) {
    return t->graph == t->logged;
}

AotDerived *log_derived(Trace *t) {
    AotLog *l = t->log;
    size_t n = (size_t)l->n_derived;
    if ((n & (n + 1)) == 0) // room for 1, 3, 7, …
        l->derived = arena_grow(t->req->arena, l->derived, n, 2 * n + 1, sizeof *l->derived);
    l->derived[n] = (AotDerived){.at = node_logged(t)};
    return &l->derived[l->n_derived++];
}

AotWrite *log_write(Trace *t) {
    AotLog *l = t->log;
    size_t n = (size_t)l->n_writes;
    if ((n & (n + 1)) == 0)
        l->writes = arena_grow(t->req->arena, l->writes, n, 2 * n + 1, sizeof *l->writes);
    l->writes[n] = (AotWrite){.at = node_logged(t), .value = -1, .base = -1, .new_base = -1};
    return &l->writes[l->n_writes++];
}

int trace_next_id(const Trace *t) {
    return t->graph->by_id.n;
}

const AotDerived *aot_derived_find(const AotLog *log, int node) {
    int lo = 0, hi = log ? log->n_derived : 0;
    while (lo < hi) { // they are in order of their ids
        int mid = (lo + hi) / 2;
        if (node >= log->derived[mid].to)
            lo = mid + 1;
        else
            hi = mid;
    }
    return log && lo < log->n_derived && node >= log->derived[lo].from ? &log->derived[lo] : NULL;
}

void run_begin(Run *r, const AotRequest *req, Arena *arena, Arena *of_graph) {
    const Graph *g = req->graph;
    *r = (Run){.t = {.req = req, .arena = arena, .sym = g->sym, .diag = req->diag, .seq_nr = -1}};
    Trace *t = &r->t;
    t->graph = graph_new(of_graph, g->sym);
    t->graph->ops = g->ops;
    t->origins = origins_new(of_graph);
    t->log = ARENA_NEW(req->arena, AotLog);
    t->logged = t->graph;
    t->proxies.arena = t->floats.arena = t->symbols.arena = arena;
    r->here = g;
    r->env = ARENA_ARRAY(arena, g->by_id.n + 1, Value);
    r->result = ARENA_ARRAY(arena, g->by_id.n + 1, int);
    r->inputs = ARENA_ARRAY(arena, g->n_nodes + 1, Traced *);
    r->placeholders = ARENA_ARRAY(arena, g->n_nodes + 1, Node *);
    r->outputs = val_list(arena, VAL_tuple, 0);
}

void run_nodes(Run *r) {
    const Graph *g = r->t.req->graph;
    int done = 0;
    GRAPH_EACH (g, n) {
        if (!work_goes_on(r->t.diag, done++, g->n_nodes))
            r->t.failed = true;
        if (n->op != FX_output && n->op != FX_placeholder && !r->t.failed)
            run_node(r, g, n);
    }
    const Node *output = graph_output_node(g);
    if (!r->t.failed && output && output->n_args)
        collect_outputs(r, &output->args[0]);
    r->t.at = NULL;
    r->t.stack = NULL;
}

void run_finish(Run *r, Value outputs) {
    Trace *t = &r->t;
    Node *last = graph_output(t->graph, outputs);
    const Node *output = graph_output_node(t->req->graph);
    if (output)
        origins_add(t->origins, last->id, output->id, LINK_same);
    graph_dce(t->graph);
    settle_origins(r);
}

AotResult aot_trace_inference(const AotRequest *req) {
    Run r;
    run_begin(&r, req, req->arena, req->arena);
    Trace *t = &r.t;
    t->regions = run_count_regions(req->graph);
    t->graph->class_name = "<lambda>";
    t->graph->title = "Forward graph 0";
    int errors = req->diag->errors;
    run_inputs(&r, false);
    run_nodes(&r);
    AotResult result = {.meta = t->failed ? NULL : run_describe(&r, req->arena)};
    Value outs = val_list(req->arena, VAL_tuple, 0);
    if (!t->failed)
        result.n_mutated = run_write_back(&r, NULL, &outs);
    t->stack = NULL;
    for (int i = 0; i < r.outputs.n && !t->failed; i++)
        run_append(&r, &outs, run_output_of(&r, NULL, &r.outputs.at[i]));
    if (t->failed || req->diag->errors > errors)
        return (AotResult){0};
    run_finish(&r, outs);
    result.graph = t->graph;
    result.log = t->log;
    result.origins = t->origins;
    return result;
}
