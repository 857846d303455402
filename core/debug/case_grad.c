// case_grad.c: gradients: the sample's graph goes through the joint trace and a partitioner, its
// forward and backward halves are run with the recorded inputs and cotangents, outputs and
// gradients compared. What AOTAutograd leaves outside of its graphs, the views that outputs are of
// inputs or of intermediates, gets a clone, so that the whole gradient is in the graph.
#include <stdlib.h>
#include <string.h>

#include "core/debug/case.h"
#include "core/ops/out.h"
#include "core/ops/torch.h"

// What PyTorch's operator samples seed the generator with before an op that draws from it
// (wrapper_set_seed of torch/testing/_internal/common_methods_invocations.py).
enum { SAMPLE_SEED = 42 };

struct CaseGradient {
    const Graph *graph;
    RtValue inputs, outputs, cotangents, grads; // lists
    bool *needs;                                // by input
    bool *differentiable;                       // by output
    bool *cloned;                               // by output
    const AotMeta *meta;                        // NULL: nothing needs a gradient
    const Graph *forward;                       // whose output names what backward gets
};

static bool read_bools(Case *c, const char *name, bool **out, int *n) {
    const Json *list = json_get(c->line, name);
    *n = 0;
    *out = ARENA_ARRAY(&c->arena, list ? list->n + 1 : 1, bool);
    for (const Json *j = list ? list->child : NULL; j; j = j->next) {
        if (j->kind != JSON_bool)
            return false;
        (*out)[(*n)++] = j->b;
    }
    return list && list->kind == JSON_array;
}

static int count(const bool *v, int n) {
    int some = 0;
    for (int i = 0; i < n; i++)
        some += v[i];
    return some;
}

static bool read_list(Case *c, const char *name, RtValue *out) {
    case_own(c, out);
    if (!case_value(&c->arena, json_get(c->line, name), out, &c->diag))
        case_settle(c, CASE_bad, "\"%s\": %s", name, diag_first(&c->diag));
    else if (out->kind != RT_list)
        case_settle(c, CASE_bad, "\"%s\" must be a list of tensors", name);
    for (int i = 0; !c->settled && i < out->n; i++)
        if (out->at[i].kind != RT_tensor && out->at[i].kind != RT_none)
            case_settle(c, CASE_bad, "\"%s\" must be a list of tensors", name);
    return !c->settled;
}

static bool read_graph(Case *c, CaseGradient *g) {
    const char *code = json_str(json_get(c->line, "code"), "");
    FxDoc doc = {.arena = &c->arena};
    if (!fx_parse(&doc, sym_new(&c->arena), (Str){code, strlen(code)}, "code", &c->diag)) {
        case_settle_error(c, CASE_bad);
        return false;
    }
    g->graph = doc.at[0].graph;
    return true;
}

static bool stands_for(const Node *placeholder, const RtValue *v) {
    const TensorMeta *m = node_tensor(placeholder);
    if (v->kind != RT_tensor || !m || m->dtype != v->tensor.dtype || m->ndim != v->tensor.ndim)
        return false;
    for (int i = 0; i < m->ndim; i++)
        if (sym_size_hint(placeholder->graph->sym, m->size[i], -1) != v->tensor.size[i])
            return false;
    return true;
}

static bool read_case(Case *c, CaseGradient *g) {
    int n_needs, n_diff;
    if (!read_graph(c, g) || !read_list(c, "inputs", &g->inputs) ||
        !read_list(c, "outputs", &g->outputs) || !read_list(c, "cotangents", &g->cotangents) ||
        !read_list(c, "grads", &g->grads))
        return false;
    Node **p;
    int n_in = graph_placeholders(g->graph, &p, &c->arena);
    const Value *out = &graph_output_node(g->graph)->args[0];
    bool listed = out->kind == VAL_list || out->kind == VAL_tuple;
    if (!read_bools(c, "needs_grad", &g->needs, &n_needs) ||
        !read_bools(c, "differentiable", &g->differentiable, &n_diff))
        case_settle(c, CASE_bad, "\"needs_grad\" and \"differentiable\" must be lists of booleans");
    else if (n_in != g->inputs.n || n_needs != n_in || !listed || out->n != g->outputs.n ||
             n_diff != g->outputs.n)
        case_settle(c, CASE_bad,
                    "the graph has %d inputs and %d outputs; given are %d and %d values, %d of "
                    "\"needs_grad\", %d of \"differentiable\"",
                    n_in, listed ? out->n : 1, g->inputs.n, g->outputs.n, n_needs, n_diff);
    else if (count(g->needs, n_needs) != g->grads.n ||
             count(g->differentiable, n_diff) != g->cotangents.n)
        case_settle(c, CASE_bad, "%d gradients and %d cotangents, expected %d and %d", g->grads.n,
                    g->cotangents.n, count(g->needs, n_needs), count(g->differentiable, n_diff));
    for (int i = 0; !c->settled && i < n_in; i++)
        if (!stands_for(p[i], &g->inputs.at[i]))
            case_settle(c, CASE_bad, "input %d is not the tensor that %s stands for", i,
                        p[i]->name);
    for (int i = 0; !c->settled && i < g->cotangents.n; i++)
        if (g->cotangents.at[i].kind != RT_tensor)
            case_settle(c, CASE_bad, "cotangent %d is no tensor", i);
    return !c->settled;
}

static bool is_complex(const Value *v) {
    if (v->kind == VAL_tensor)
        return dtype_info[v->tensor->dtype].cls == DTC_COMPLEX;
    for (int i = 0; (v->kind == VAL_list || v->kind == VAL_tuple) && i < v->n; i++)
        if (is_complex(&v->at[i]))
            return true;
    return false;
}

static bool has_constant(const Graph *g, const char *name) {
    for (int i = 0; i < g->consts.n; i++)
        if (!strcmp(g->consts.at[i].name, name) && g->consts.at[i].tensor)
            return true;
    return false;
}

// Sizes that depend on values: PyTorch breaks the graph there, or cannot trace it either.
static bool has_unknown_sizes(const Graph *g) {
    return sym_count_unbacked(g->sym) > 0;
}

// What stands in the way before anything is derived.
static void skip_foreign(Case *c, const Graph *graph) {
    GRAPH_EACH (graph, n) {
        bool item = !strcmp(n->target, "_operator.getitem");
        bool known = n->def || ops_knows_torch(false, n->target);
        if (is_complex(&n->val))
            case_settle(c, CASE_skipped, "complex numbers");
        else if (n->op == FX_get_attr && !has_constant(graph, n->target))
            case_settle(c, CASE_skipped, "a constant that the case does not hold");
        else if (n->op == FX_call_function && !known)
            case_settle(c, CASE_skipped, "unknown operator %s", n->target);
        else if (n->def && !item && !eager_has(op_row(n->def)))
            case_settle(c, CASE_skipped, "no reference kernel for %s", n->def->qualname);
    }
}

// Outputs that are views of what is there otherwise, each behind a clone; the same graph if there
// are none.
static const Graph *with_clones(Case *c, CaseGradient *g) {
    const AotMeta *m = g->meta;
    bool any = false;
    for (int i = 0; i < g->outputs.n; i++) {
        OutputType t = i < m->n_outputs ? m->outputs[i].type : OUTPUT_non_alias;
        g->cloned[i] = t != OUTPUT_non_alias && t != OUTPUT_unsafe_view_alias;
        any = any || g->cloned[i];
    }
    if (!any)
        return g->graph;
    Graph *copy = graph_copy(&c->arena, g->graph);
    Node *output = graph_output_node(copy);
    Value all = val_list(&c->arena, VAL_tuple, g->outputs.n);
    graph_set_insert(copy, output);
    for (int i = 0; i < g->outputs.n; i++) {
        all.at[i] = output->args[0].at[i];
        if (g->cloned[i] && all.at[i].kind == VAL_node) {
            Node *n =
                graph_call(copy, op_at(OP_aten_clone_default), "clone", &all.at[i], 1, NULL, 0);
            all.at[i] = val_node(n);
        }
    }
    graph_set_insert(copy, NULL);
    node_set_args(output, &all, 1, NULL, 0);
    return copy;
}

static const AotMeta *find_meta(Case *c, CaseGradient *g, const Graph *graph) {
    AotRequest request = {.graph = graph,
                          .arena = &c->arena,
                          .diag = &c->diag,
                          .stage = STAGE_functional,
                          .keep_input_mutations = true,
                          .requires_grad = g->needs};
    return aot_find_meta(&request);
}

// aot_eager: the joint graph without decompositions, parted by the default partitioner.
static bool part_by_default(Case *c, CaseGradient *g, const Artifact *functional) {
    Arena *a = &c->arena;
    PartitionRequest request = {.joint = functional->whole,
                                .n_fwd_outputs = g->meta->n_fwd_outputs,
                                .partitioner = PARTITION_default,
                                .config = &partition_config_default,
                                .forward_arena = a,
                                .backward_arena = a,
                                .arena = a,
                                .diag = &c->diag};
    PartitionResult r = aot_partition(&request);
    if (!r.forward || !r.backward)
        return false;
    g->forward = r.forward;
    case_add_part(c, NULL, 0, r.forward);
    case_add_part(c, NULL, 0, r.backward);
    return true;
}

static bool build_halves(Case *c, CaseGradient *g) {
    const Artifact *joint = c->setup->rung == RUNG_aot_eager ? case_build(c, 0) : NULL;
    if (joint)
        return part_by_default(c, g, joint);
    const Artifact *forward = c->diag.errors ? NULL : case_build(c, 1),
                   *backward = forward ? case_build(c, 2) : NULL;
    if (!backward)
        return false;
    g->forward = pipeline_at(c->pipeline, 1, STAGE_partition)->graph;
    case_add_part(c, forward, 1, NULL);
    case_add_part(c, backward, 2, NULL);
    return true;
}

static void prepare(Case *c) {
    CaseGradient *g = c->grad = ARENA_NEW(&c->arena, CaseGradient);
    if (c->setup->rung == RUNG_eager) {
        case_settle(c, CASE_skipped, "eager takes no gradients: give --backend aot_eager");
        return;
    }
    if (!read_case(c, g))
        return;
    c->seed = (uint64_t)json_int(json_get(c->line, "seed"), SAMPLE_SEED);
    g->cloned = ARENA_ARRAY(&c->arena, g->outputs.n + 1, bool);
    skip_foreign(c, g->graph);
    if (c->settled)
        return;
    g->meta = find_meta(c, g, g->graph);
    if (!g->meta && has_unknown_sizes(g->graph))
        case_settle(c, CASE_skipped, CASE_DATA);
    else if (!g->meta)
        case_settle_error(c, CASE_failed);
    if (c->settled)
        return;
    const Graph *graph = with_clones(c, g);
    if (graph != g->graph)
        g->meta = find_meta(c, g, graph);
    case_pipeline(c, graph, g->needs);
    bool training = g->meta && pipeline_n_units(c->pipeline) == 3;
    const Artifact *a = training ? NULL : case_build(c, 0);
    if (a)
        case_add_part(c, a, 0, NULL);
    if (a || (training && build_halves(c, g)))
        return;
    if (has_unknown_sizes(graph))
        case_settle(c, CASE_skipped, CASE_DATA);
    case_settle_error(c, CASE_failed);
}

// A tensor in the layout that a graph was compiled for.
static RtValue laid_out(Case *c, const Node *placeholder, const Tensor *given) {
    const TensorMeta *m = node_tensor(placeholder);
    int64_t stride[TENSOR_DIMS];
    bool same = true;
    for (int i = 0; m && i < given->ndim && i < m->ndim; i++) {
        stride[i] = sym_size_hint(placeholder->graph->sym, m->stride[i], given->stride[i]);
        same = same && stride[i] == given->stride[i];
    }
    RtValue *v = case_own(c, ARENA_NEW(&c->arena, RtValue));
    if (!same && m->ndim == given->ndim &&
        tensor_new_strided(&v->tensor, given->dtype, given->ndim, given->size, stride, &c->diag))
        tensor_copy(&v->tensor, given);
    else
        v->tensor = tensor_keep(given);
    v->kind = RT_tensor;
    return *v;
}

// What a placeholder of backward stands for: a tangent, or what forward gave under that name.
static bool backward_input(Case *c, const Node *p, const RtValue *fwd, RtValue *out) {
    const CaseGradient *g = c->grad;
    const AotMeta *m = g->meta;
    if (str_starts(p->target, "tangents_")) {
        int t = atoi(p->target + strlen("tangents_")) - 1;
        int k = t >= 0 && t < m->n_tangents ? m->tangents[t] - m->n_mutated : -1;
        if (k < 0 || k >= g->outputs.n || !g->differentiable[k])
            return false;
        *out = laid_out(c, p, &g->cotangents.at[count(g->differentiable, k)].tensor);
        return true;
    }
    const Value *all = &graph_output_node(g->forward)->args[0];
    for (int i = m->n_fwd_outputs; i < all->n; i++)
        if (all->at[i].kind == VAL_node && !strcmp(all->at[i].node->name, p->name)) {
            *out = fwd[i];
            return true;
        }
    return false;
}

static bool run_backward(Case *c, const RtValue *fwd, RtValue **grads) {
    CasePart *part = &c->parts[1];
    Node **p;
    int n = graph_placeholders(part->graph, &p, &c->arena), n_out;
    RtValue *in = ARENA_ARRAY(&c->arena, n + 1, RtValue);
    for (int i = 0; i < n; i++)
        if (!backward_input(c, p[i], fwd, &in[i])) {
            case_settle(c, CASE_failed, "backward wants %s, which nothing gives", p[i]->name);
            return false;
        }
    if (!case_part_run(c, part, in, n, grads, &n_out) || n_out < c->grad->inputs.n) {
        case_settle_error(c, CASE_failed);
        return false;
    }
    return true;
}

static bool all_zero(const RtValue *v) {
    for (int64_t i = 0; v->kind == RT_tensor && i < tensor_numel(&v->tensor); i++)
        if (tensor_get_f64(&v->tensor, i) != 0)
            return false;
    return true;
}

// PyTorch's own lowering of avg_pool2d_backward and avg_pool3d_backward divides by the whole
// kernel where ceil_mode lets a window reach beyond the padding; eager counts the padding's end.
static bool pools_beyond_padding(const Case *c) {
    enum { CEIL_MODE = 5, COUNT_INCLUDE_PAD = 6 };
    GRAPH_EACH (c->parts[c->n_parts - 1].graph, n) {
        bool pools = node_is(n, OP_aten_avg_pool2d_backward_default) ||
                     node_is(n, OP_aten_avg_pool3d_backward_default);
        if (pools && n->n_args > COUNT_INCLUDE_PAD && n->args[CEIL_MODE].b &&
            n->args[COUNT_INCLUDE_PAD].b)
            return true;
    }
    return false;
}

// Unused: none, or zeros, here as there.
static void compare_grads(Case *c, const char *name, const RtValue *got) {
    const CaseGradient *g = c->grad;
    Buf why = {.arena = &c->arena};
    for (int i = 0, k = 0; i < g->inputs.n && !c->settled; i++) {
        static const RtValue none;
        const RtValue *mine = got ? &got[i] : &none, *want = &none;
        if (!g->needs[i])
            continue;
        want = &g->grads.at[k++];
        bool same = mine->kind == RT_none || want->kind == RT_none
                        ? all_zero(mine) && all_zero(want)
                        : case_same(name, mine, want, false, &why);
        if (!same && case_is_lowered(c) && pools_beyond_padding(c))
            case_settle(c, CASE_skipped,
                        "compiled code divides a window beyond the padding by the whole kernel");
        else if (!same)
            case_settle(c, CASE_failed, "gradient of input %d: %s", i,
                        why.len                 ? buf_str(&why)
                        : mine->kind == RT_none ? "none, expected one"
                                                : "there is one, expected none");
    }
}

static bool calls(const Graph *g, OpId id) {
    GRAPH_EACH (g, n)
        if (node_is(n, id))
            return true;
    return false;
}

// Does the rung's forward graph draw from the compiler's own generator, or with an op that the code
// does not have?
static bool draws_anew(const Case *c) {
    GRAPH_EACH (c->parts[0].graph, n)
        if (node_is(n, OP_prims_inductor_seeds_default) ||
            (n->def && n->def->tags & OPT_random && !calls(c->grad->graph, n->def->id)))
            return true;
    return false;
}

static void finish(Case *c) {
    CaseGradient *g = c->grad;
    const char *name = arena_printf(&c->arena, "grad.%s", c->result->name);
    RtValue *fwd, *grads = NULL;
    int n_fwd, first = g->meta->n_mutated;
    RtValue *in = ARENA_ARRAY(&c->arena, g->inputs.n + 1, RtValue);
    for (int i = 0; i < g->inputs.n; i++)
        in[i] = g->inputs.at[i];
    if (!case_part_run(c, &c->parts[0], in, g->inputs.n, &fwd, &n_fwd) ||
        n_fwd < first + g->outputs.n) {
        case_settle_error(c, CASE_failed);
        return;
    }
    for (int i = 0; i < g->outputs.n && !c->settled; i++) {
        Buf why = {.arena = &c->arena};
        if (case_same(name, &fwd[first + i], &g->outputs.at[i], !g->cloned[i], &why))
            continue;
        if (draws_anew(c))
            case_settle(c, CASE_skipped, CASE_DRAWS);
        else
            case_settle(c, CASE_failed, "output %d: %s", i, buf_str(&why));
    }
    if (!c->settled && (c->n_parts < 2 || run_backward(c, fwd, &grads)))
        compare_grads(c, name, grads);
}

const CaseForm case_form_grad = {"code", prepare, finish};
