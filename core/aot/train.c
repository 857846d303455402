// train.c: forward and backward in one trace (create_joint of
// torch/_functorch/_aot_autograd/graph_capture_wrappers.py). The model is run twice: once into
// nothing, to see which inputs it writes and which outputs need gradients (collect_metadata_analysis),
// then for good, with primals as leaves and one tangent for each output that needs one.
#include "core/aot/run.h"

#include <string.h>

#include "core/ops/meta.h"

// What the outputs and inputs of the run mean.
static AotMeta *describe(const Run *r, Arena *a) {
    AotMeta *m = ARENA_NEW(a, AotMeta);
    m->n_inputs = r->n_inputs;
    m->inputs = ARENA_ARRAY(a, r->n_inputs + 1, AotInput);
    m->mutated = ARENA_ARRAY(a, r->n_inputs + 1, int);
    m->n_outputs = r->outputs.n;
    m->outputs = ARENA_ARRAY(a, r->outputs.n + 1, AotOutput);
    m->tangents = ARENA_ARRAY(a, r->n_inputs + r->outputs.n + 1, int);
    return m;
}

static void describe_inputs(const Run *r, AotMeta *m) {
    for (int i = 0; i < r->n_inputs; i++) {
        const Traced *x = r->inputs[i];
        AotInput *in = &m->inputs[i];
        if (!x)
            continue;
        in->requires_grad = r->t.req->requires_grad && r->t.req->requires_grad[i];
        in->mutates_data = functional_is_mutated(x);
        in->mutates_metadata = functional_is_reshaped(x);
        in->in_graph = in->mutates_data && !in->mutates_metadata && !in->requires_grad &&
                       r->t.req->keep_input_mutations;
        if ((in->mutates_data || in->mutates_metadata) && !in->in_graph)
            m->mutated[m->n_mutated++] = i;
    }
}

static const TensorMeta *kept(Arena *a, const TensorMeta *x) {
    TensorMeta *m = ARENA_NEW(a, TensorMeta);
    *m = *x;
    m->size = ARENA_ARRAY(a, x->ndim + 1, const Expr *);
    m->stride = ARENA_ARRAY(a, x->ndim + 1, const Expr *);
    memcpy(m->size, x->size, (size_t)x->ndim * sizeof *x->size);
    memcpy(m->stride, x->stride, (size_t)x->ndim * sizeof *x->stride);
    return m;
}

static void describe_outputs(Run *r, AotMeta *m, Arena *a) {
    for (int i = 0; i < r->outputs.n; i++) {
        Value *v = &r->outputs.at[i];
        Traced *x = traced(v);
        AotOutput *out = &m->outputs[i];
        out->base = -1;
        if (!x)
            continue;
        out->meta = kept(a, &x->meta);
        out->requires_grad = tape_requires_grad(&r->t, *v);
        for (int k = 0; k < r->n_inputs; k++)
            if (r->inputs[k] == x) {
                out->type = OUTPUT_is_input;
                out->base = k;
            }
    }
}

static void describe_tangents(AotMeta *m) {
    for (int i = 0; i < m->n_mutated; i++)
        if (m->inputs[m->mutated[i]].requires_grad && m->inputs[m->mutated[i]].mutates_data)
            m->tangents[m->n_tangents++] = i;
    for (int i = 0; i < m->n_outputs; i++)
        if (m->outputs[i].requires_grad && (m->outputs[i].type == OUTPUT_non_alias ||
                                            m->outputs[i].type == OUTPUT_unsafe_view_alias))
            m->tangents[m->n_tangents++] = m->n_mutated + i;
    m->n_fwd_outputs = m->n_mutated + m->n_outputs + m->n_bases;
    m->training = m->n_tangents > 0;
}

// NULL: the trace failed.
static AotMeta *find_meta(const AotRequest *req) {
    Arena scratch = {0};
    Run r;
    run_begin(&r, req, &scratch);
    tape_new(&r.t);
    run_inputs(&r, true);
    for (int i = 0; i < r.n_inputs; i++)
        if (r.inputs[i] && req->requires_grad[i])
            tape_make_leaf(&r.t, r.inputs[i]);
    run_nodes(&r);
    AotMeta *m = NULL;
    if (!r.t.failed) {
        m = describe(&r, req->arena);
        describe_inputs(&r, m);
        describe_outputs(&r, m, req->arena);
        describe_tangents(m);
    }
    arena_free(&scratch);
    return m;
}

// A tangent is dense: in channels_last order where the output is.
static Value tangent_like(Run *r, const TensorMeta *like, int i) {
    Trace *t = &r->t;
    MetaCtx c = trace_meta_ctx(t);
    const TensorMeta *m = meta_like(&c, like, like->dtype, meta_suggest_format(&c, like));
    const char *name = arena_printf(t->arena, "tangents_%d", i + 1);
    Node *p = graph_placeholder(t->graph, name, name);
    p->val = val_tensor(m);
    Value low = val_tensor(&trace_tensor(t, m, p)->meta);
    return functional_wrap(t, &low);
}

static const TensorMeta *tangent_meta(const Run *r, const AotMeta *m, int out) {
    return out < m->n_mutated ? &r->inputs[m->mutated[out]]->meta
                              : m->outputs[out - m->n_mutated].meta;
}

// A leaf that the model writes is cloned first: what it writes is no leaf.
static void clone_written(Run *r, const AotMeta *m, Traced **leaves) {
    Trace *t = &r->t;
    int i = 0;
    GRAPH_EACH (t->req->graph, n) {
        if (n->op != FX_placeholder)
            continue;
        leaves[i] = r->inputs[i];
        if (r->inputs[i] && m->inputs[i].requires_grad) {
            tape_make_leaf(t, r->inputs[i]);
            Value x = val_tensor(&r->inputs[i]->meta);
            if (m->inputs[i].mutates_data)
                r->env[n->id] = CALL(t, aten_clone_default, x);
            else if (m->inputs[i].mutates_metadata)
                r->env[n->id] = CALL(t, aten_view_default, x, sizes_of(t, x));
            if (!t->failed)
                r->inputs[i] = traced(&r->env[n->id]);
        }
        i++;
    }
}

static bool run_backward(Run *r, const AotMeta *m, Traced *const *leaves, const Value *tangents,
                         Value *grads) {
    Trace *t = &r->t;
    Value *outputs = ARENA_ARRAY(t->arena, m->n_tangents + 1, Value);
    Value *seeds = ARENA_ARRAY(t->arena, m->n_tangents + 1, Value);
    int n = 0;
    for (int i = 0; i < m->n_tangents; i++) {
        int k = m->tangents[i];
        Value v = k < m->n_mutated ? val_tensor(&r->inputs[m->mutated[k]]->meta)
                                   : r->outputs.at[k - m->n_mutated];
        if (!tape_requires_grad(t, v))
            continue;
        outputs[n] = v;
        seeds[n++] = tangents[i];
    }
    Traced **wanted = ARENA_ARRAY(t->arena, r->n_inputs + 1, Traced *);
    Value *got = ARENA_ARRAY(t->arena, r->n_inputs + 1, Value);
    int n_wanted = 0;
    for (int i = 0; i < r->n_inputs; i++)
        if (leaves[i] && m->inputs[i].requires_grad)
            wanted[n_wanted++] = leaves[i];
    t->flags = NODE_backward;
    bool done = tape_backward(t, outputs, seeds, n, wanted, n_wanted, got);
    n_wanted = 0;
    for (int i = 0; i < r->n_inputs; i++)
        grads[i] = leaves[i] && m->inputs[i].requires_grad ? got[n_wanted++] : val_none();
    return done;
}

// new values of mutated inputs, user outputs, gradients
static Value joint_outputs(Run *r, const AotMeta *m, const Value *grads) {
    Trace *t = &r->t;
    bool *in_graph = ARENA_ARRAY(t->arena, r->n_inputs + 1, bool);
    for (int i = 0; i < r->n_inputs; i++)
        in_graph[i] = m->inputs[i].in_graph;
    Value outs = val_list(t->arena, VAL_list, 0);
    t->seq_nr = -1;
    t->flags = NODE_forward;
    run_write_back(r, in_graph, &outs);
    t->stack = NULL;
    for (int i = 0; i < r->outputs.n && !t->failed; i++)
        run_append(r, &outs, run_output_of(r, &r->outputs.at[i]));
    t->flags = NODE_backward;
    for (int i = 0; i < r->n_inputs && !t->failed; i++)
        run_append(r, &outs, run_node_of(r, &grads[i]));
    return outs;
}

AotResult aot_trace_joint(const AotRequest *req) {
    AotMeta *m = req->requires_grad ? find_meta(req) : NULL;
    if (req->requires_grad && !m)
        return (AotResult){0};
    if (!m || !m->training) {
        AotResult result = aot_trace_inference(req);
        result.meta = m;
        return result;
    }
    Run r;
    run_begin(&r, req, req->arena);
    Trace *t = &r.t;
    t->graph->class_name = "inner_f";
    t->graph->title = "Joint graph 0";
    t->graph->tree_args = "primals, tangents";
    t->graph->tree_spec = "[primals, tangents]";
    t->flags = NODE_forward;
    int errors = req->diag->errors;
    run_inputs(&r, true);
    Value *tangents = ARENA_ARRAY(t->arena, m->n_tangents + 1, Value);
    for (int i = 0; i < m->n_tangents; i++)
        tangents[i] = tangent_like(&r, tangent_meta(&r, m, m->tangents[i]), i);
    tape_new(t);
    Traced **leaves = ARENA_ARRAY(t->arena, r.n_inputs + 1, Traced *);
    clone_written(&r, m, leaves);
    run_nodes(&r);
    Value *grads = ARENA_ARRAY(t->arena, r.n_inputs + 1, Value);
    if (!t->failed)
        run_backward(&r, m, leaves, tangents, grads);
    if (t->failed || req->diag->errors > errors)
        return (AotResult){0};
    Value outs = joint_outputs(&r, m, grads);
    if (t->failed || req->diag->errors > errors)
        return (AotResult){0};
    run_finish(&r, outs);
    return (AotResult){.graph = t->graph, .origins = t->origins, .meta = m};
}
