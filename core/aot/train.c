// train.c: forward and backward in one trace (create_joint of
// torch/_functorch/_aot_autograd/graph_capture_wrappers.py). The model is run twice: once into
// nothing, to see which inputs it writes and which outputs need gradients (metadata.c), then for
// good, with primals as leaves and one tangent for each output that needs one.
#include "core/aot/run.h"

#include <string.h>

#include "core/ops/meta.h"
#include "core/base/work.h"

// NULL: the trace failed.
static AotMeta *find_meta(const AotRequest *req) {
    Arena scratch = {0};
    Run r;
    int asked = req->decisions ? decisions_count(req->decisions) : 0;
    int first = sym_count_unbacked(req->graph->sym);
    run_begin(&r, req, &scratch, &scratch);
    if (req->requires_grad)
        tape_new(&r.t);
    run_inputs(&r, true);
    for (int i = 0; i < r.n_inputs; i++)
        if (r.inputs[i] && req->requires_grad && req->requires_grad[i])
            tape_make_leaf(&r.t, r.inputs[i]);
    run_nodes(&r);
    AotMeta *m = NULL;
    if (!r.t.failed) {
        if (r.t.tape)
            tape_enable(&r.t, true);
        m = run_describe(&r, req->arena);
        m->first_unbacked = first;
    }
    decisions_rewind(req->decisions, asked); // the second run asks again
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

static const TensorMeta *tangent_meta(const AotMeta *m, int out) {
    if (out < m->n_mutated)
        return m->inputs[m->mutated[out]].meta;
    out -= m->n_mutated;
    return out < m->n_outputs ? m->outputs[out].meta : m->bases[out - m->n_outputs];
}

// An input that the model writes is cloned first if it needs a gradient then: what it writes is no
// leaf, and the primal stays as it was. What is written under no_grad stays the leaf.
static void clone_written(Run *r, const AotInput *in, const Node *placeholder, int i) {
    Trace *t = &r->t;
    Value x = val_tensor(&r->inputs[i]->meta);
    if (in->in_graph || (!in->mutates_data && !in->mutates_metadata))
        return;
    if (in->mutates_data && in->grad_after)
        x = CALL(t, aten_clone_default, x);
    else if (in->mutates_metadata)
        x = CALL(t, aten_view_default, x, sizes_of(t, x));
    else
        return;
    if (t->failed)
        return;
    r->env[placeholder->id] = x;
    r->inputs[i] = traced(&x);
}

static void make_leaves(Run *r, const AotMeta *m, Traced **leaves) {
    int i = 0;
    GRAPH_EACH (r->t.req->graph, n) {
        if (n->op != FX_placeholder)
            continue;
        leaves[i] = r->inputs[i];
        if (r->inputs[i] && m->inputs[i].requires_grad)
            tape_make_leaf(&r->t, r->inputs[i]);
        if (r->inputs[i])
            clone_written(r, &m->inputs[i], n, i);
        i++;
    }
}

// The upper value of a forward output: a mutated input, a user output, a base of one.
static Value forward_output(Run *r, const AotMeta *m, int k) {
    if (k < m->n_mutated)
        return val_tensor(&r->inputs[m->mutated[k]]->meta);
    k -= m->n_mutated;
    if (k < m->n_outputs)
        return r->outputs.at[k];
    k -= m->n_outputs;
    for (int i = 0; i < m->n_outputs; i++)
        if (m->outputs[i].type == OUTPUT_alias_of_intermediate_save_as_output &&
            m->outputs[i].base == k)
            return val_tensor(&traced(&r->outputs.at[i])->tape->base->meta);
    return val_none();
}

static bool run_backward(Run *r, const AotMeta *m, Traced *const *leaves, const Value *tangents,
                         Value *grads) {
    Trace *t = &r->t;
    Value *outputs = ARENA_ARRAY(t->arena, m->n_tangents + 1, Value);
    Value *seeds = ARENA_ARRAY(t->arena, m->n_tangents + 1, Value);
    int n = 0;
    for (int i = 0; i < m->n_tangents; i++) {
        Value v = forward_output(r, m, m->tangents[i]);
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
    t->flags = 0; // views made anew here stand behind backward: they are in neither half
    run_write_back(r, in_graph, &outs);
    t->stack = NULL;
    for (int i = m->n_mutated; i < m->n_fwd_outputs && !t->failed; i++) {
        Value v = forward_output(r, m, i);
        run_append(r, &outs, run_output_of(r, in_graph, &v));
    }
    t->flags = NODE_backward;
    for (int i = 0; i < r->n_inputs && !t->failed; i++)
        run_append(r, &outs, run_node_of(r, &grads[i]));
    return outs;
}

static bool trace_both(Run *r, const AotRequest *req, const AotMeta *m, Arena *arena,
                       Arena *of_graph) {
    run_begin(r, req, arena, of_graph);
    Trace *t = &r->t;
    t->origins = origins_new(req->arena);
    t->regions = run_count_regions(req->graph);
    t->graph->class_name = "inner_f";
    t->graph->title = "Joint graph 0";
    t->graph->tree_args = "primals, tangents";
    t->graph->tree_spec = "[primals, tangents]";
    t->flags = NODE_forward;
    int errors = req->diag->errors;
    run_inputs(r, true);
    Value *tangents = ARENA_ARRAY(t->arena, m->n_tangents + 1, Value);
    for (int i = 0; i < m->n_tangents; i++)
        tangents[i] = tangent_like(r, tangent_meta(m, m->tangents[i]), i);
    tape_new(t);
    Traced **leaves = ARENA_ARRAY(t->arena, r->n_inputs + 1, Traced *);
    make_leaves(r, m, leaves);
    WorkPart part = work_enter(NULL, 0.2, 0.4);
    run_nodes(r);
    work_leave(part);
    tape_enable(t, true);
    Value *grads = ARENA_ARRAY(t->arena, r->n_inputs + 1, Value);
    part = work_enter(NULL, 0.4, 1);
    if (!t->failed)
        run_backward(r, m, leaves, tangents, grads);
    work_leave(part);
    if (t->failed || req->diag->errors > errors)
        return false;
    Value outs = joint_outputs(r, m, grads);
    if (t->failed || req->diag->errors > errors)
        return false;
    run_finish(r, outs);
    return true;
}

const AotMeta *aot_find_meta(const AotRequest *req) {
    return find_meta(req);
}

// The nodes hold much that the trace made: the graph is copied out of it.
AotResult aot_trace_joint(const AotRequest *req) {
    WorkPart part = work_enter(NULL, 0, 0.2);
    const AotMeta *m = req->meta             ? req->meta
                       : req->requires_grad ? aot_find_meta(req)
                                            : NULL;
    work_leave(part);
    if (req->requires_grad && !m)
        return (AotResult){0};
    if (!m || !m->training) {
        AotResult result = aot_trace_inference(req);
        result.meta = m;
        return result;
    }
    Arena scratch = {0}, of_graph = {0};
    Run r;
    AotResult result = {0};
    // What only a run can tell has the same symbols as when the tangents were described.
    Sym *sym = req->graph->sym;
    int next = sym_set_next_unbacked(sym, m->first_unbacked);
    bool traced = trace_both(&r, req, m, &scratch, &of_graph);
    if (sym_count_unbacked(sym) < next)
        sym_set_next_unbacked(sym, next);
    if (traced)
        result = (AotResult){.graph = graph_copy(req->arena, r.t.graph),
                             .origins = r.t.origins,
                             .meta = m,
                             .log = r.t.log};
    arena_free(&scratch);
    arena_free(&of_graph);
    return result;
}
