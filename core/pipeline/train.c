// train.c: the stages of a joint unit: forward and backward in one trace, and its two halves.
#include <string.h>

#include "core/base/file.h"
#include "core/pipeline/internal.h"

// An op that the user keeps whole may have other aliases than what it is made of.
static const AotMeta *known_meta(const Pipeline *p, const Unit *u) {
    return p->options.overrides && overrides_count(p->options.overrides) ? NULL : u->meta;
}

static AotResult trace(const Pipeline *p, Unit *u, Artifact *a, DecompTable decomps) {
    AotRequest request = {
        .graph = unit_traced(u)->graph,
        .arena = &a->arena,
        .decisions = u->decisions,
        .decomps = decomps,
        .diag = &u->diag,
        .stage = (int)a->stage,
        .fallback_random = p->options.fallback_random,
        .keep_input_mutations = true,
        .requires_grad = u->merged ? u->merged->requires_grad : u->requires_grad,
        .unhidden = u->merged ? u->merged->unhidden : NULL,
        .meta = known_meta(p, u),
    };
    AotResult result = aot_trace_joint(&request);
    if (result.graph && !graph_check_sizes(result.graph, &u->diag))
        result.graph = NULL;
    if (result.graph && (!result.meta || !result.meta->training)) {
        diag_fail(&u->diag, "no output needs a gradient any more");
        result.graph = NULL;
    }
    if (result.graph)
        result.graph->title = arena_printf(&a->arena, "Joint graph %d", u->number);
    return result;
}

// The part of a joint graph that its forward outputs need.
static Graph *forward_half(const Graph *joint, int n_outputs, Arena *arena) {
    Graph *g = graph_copy(arena, joint);
    Node *output = graph_output_node(g);
    Value kept = val_list(arena, VAL_tuple, n_outputs);
    memcpy(kept.at, output->args[0].at, (size_t)n_outputs * sizeof *kept.at);
    node_set_args(output, &kept, 1, NULL, 0);
    graph_dce(g);
    for (Node *n = g->first, *next; n; n = next) {
        next = n->next;
        if (n->op == FX_placeholder && str_starts(n->target, "tangents_") && !n->n_users)
            node_erase(n);
    }
    g->class_name = "<lambda>";
    g->title = "Forward graph";
    g->tree_args = g->tree_spec = NULL;
    return g;
}

// How many outputs of a joint graph are the forward's: the rest are gradients, one slot a primal.
static int forward_outputs(const Graph *joint, const AotMeta *meta) {
    const Value *all = &graph_output_node(joint)->args[0];
    int primals = 0;
    GRAPH_EACH (joint, n)
        primals += n->op == FX_placeholder && !str_starts(n->target, "tangents_");
    if (meta)
        return meta->n_fwd_outputs;
    return (all->kind == VAL_tuple || all->kind == VAL_list) && all->n >= primals ? all->n - primals
                                                                                  : -1;
}

bool build_joint_trace(Pipeline *p, Unit *u, StageId stage, DecompTable decomps) {
    int64_t start = clock_ns();
    bool functional = stage == STAGE_functional;
    Artifact *a = artifact_new(p, stage, NULL, ART_graph);
    AotResult r = trace(p, u, a, decomps);
    if (!r.graph) {
        artifact_drop(a);
        return false;
    }
    a->whole = functional ? r.graph : NULL;
    artifact_set_graph(a, functional ? forward_half(r.graph, r.meta->n_fwd_outputs, &a->arena)
                                     : r.graph);
    a->meta = r.meta;
    a->log = r.log;
    a->parent = unit_traced(u);
    a->origins = r.origins;
    unit_add(p, u, a, start);
    return true;
}

// By placeholder of the joint graph: a parameter or buffer, which is there before and after.
static const bool *static_inputs(const Unit *u, const Graph *joint, Arena *a) {
    bool *is_static = ARENA_ARRAY(a, joint->n_nodes + 1, bool);
    const LoadedGraph *g = u->loaded;
    int n = u->merged ? u->merged->n_args : g->n_inputs;
    for (int i = 0; i < n && i < joint->n_nodes; i++) {
        int k = u->merged ? u->merged->args[i].input : i;
        is_static[i] = k < g->n_inputs &&
                       (g->inputs[k].kind == IN_parameter || g->inputs[k].kind == IN_buffer);
    }
    return is_static;
}

// ---- what the backward knows of the forward that was compiled

// The strides (ndim) that compiled code gives a saved value; NULL if it is none of its own.
static const Expr *const *saved_strides(const Artifact *lowered, const Graph *forward,
                                        const Node *p, int ndim) {
    const IrModule *m = lowered->schedule->module;
    int i = graph_output_index(forward, p->name);
    const IrArg *out = i >= 0 && i < m->outputs.n ? &m->outputs.at[i] : NULL;
    if (!out || !out->buf)
        return NULL;
    if (out->view)
        return out->view->ndim == ndim ? out->view->stride : NULL;
    const IrBuffer *b = map_get(&m->buffers, out->buf);
    return b && b->layout && b->layout->ndim == ndim ? b->layout->stride : NULL;
}

static bool same_strides(const TensorMeta *m, const Expr *const *stride) {
    for (int i = 0; i < m->ndim; i++)
        if (m->stride[i] != stride[i])
            return false;
    return true;
}

// Saved values come with the strides that the compiled forward chose, as channels_last.
bool build_restrided(Pipeline *p, Unit *u) {
    int64_t start = clock_ns();
    const Unit *forward = u->parent->forward;
    const Artifact *lowered = pipeline_build(p, forward->index, STAGE_pre_fusion);
    const Artifact *from = unit_at(u, STAGE_partition);
    const Artifact *before = unit_at(forward, STAGE_partition);
    Artifact *a = NULL;
    Graph *g = NULL;
    if (!lowered)
        return true;
    GRAPH_EACH (from->graph, n) {
        const TensorMeta *m = n->op == FX_placeholder ? node_tensor(n) : NULL;
        const Expr *const *stride =
            m && m->stride ? saved_strides(lowered, before->graph, n, m->ndim) : NULL;
        if (!stride || same_strides(m, stride))
            continue;
        if (!g) {
            a = artifact_new(p, STAGE_post_grad, "restride_saved", ART_graph);
            g = graph_copy(&a->arena, from->graph);
        }
        TensorMeta *fresh = ARENA_NEW(&a->arena, TensorMeta);
        *fresh = *m;
        fresh->stride = ARENA_ARRAY(&a->arena, m->ndim + 1, const Expr *);
        memcpy(fresh->stride, stride, (size_t)m->ndim * sizeof *stride);
        graph_by_id(g, n->id)->val = val_tensor(fresh);
        a->matches++;
    }
    if (!g)
        return true;
    artifact_set_graph(a, g);
    a->parent = from;
    a->origins = origins_identity(&a->arena, a->n_items);
    unit_add(p, u, a, start);
    return true;
}

static void begin_child(Pipeline *p, Unit *u, Artifact *a, const Artifact *from, Graph *g,
                        Origins *origins, int64_t start) {
    bool forward = !strcmp(u->kind, "forward");
    g->title = arena_printf(&a->arena, "%s graph %d", forward ? "Forward" : "Backward", u->number);
    artifact_set_graph(a, g);
    a->parent = from;
    a->origins = origins;
    unit_add(p, u, a, start);
}

// The joint unit's step holds the graph that was parted and the values saved; the two graphs are
// the first steps of its children.
bool build_parts(Pipeline *p, Unit *u) {
    int64_t start = clock_ns();
    const Artifact *from = u->steps.at[u->steps.n - 1], *traced = unit_at(u, STAGE_joint);
    Artifact *a = artifact_new(p, STAGE_partition, NULL, ART_graph);
    Artifact *forward = artifact_new(p, STAGE_partition, NULL, ART_graph);
    Artifact *backward = artifact_new(p, STAGE_partition, NULL, ART_graph);
    PartitionRequest request = {
        .joint = from->graph,
        .n_fwd_outputs = forward_outputs(from->graph, traced->meta),
        .is_static = static_inputs(u, from->graph, &a->arena),
        .partitioner = p->options.partitioner,
        .config = &p->options.partition,
        .forward_arena = &forward->arena,
        .backward_arena = &backward->arena,
        .arena = &a->arena,
        .decisions = u->decisions,
        .diag = &u->diag,
    };
    PartitionResult *r = ARENA_NEW(&a->arena, PartitionResult);
    if (request.n_fwd_outputs < 0)
        diag_fail(&u->diag, "the joint graph returns fewer values than it has primals");
    else
        *r = aot_partition(&request);
    if (!r->forward || !r->backward) {
        artifact_drop(a);
        artifact_drop(forward);
        artifact_drop(backward);
        return false;
    }
    artifact_set_graph(a, from->graph);
    a->parent = from;
    a->partition = r;
    begin_child(p, u->forward, forward, a, r->forward, r->forward_origins, start);
    begin_child(p, u->backward, backward, a, r->backward, r->backward_origins, start);
    unit_add(p, u, a, start);
    return true;
}
