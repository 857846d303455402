// session_train.c: a step of training as a request: which graphs or kernels a rung runs forward and
// backward, and the tangents. The loss is that of PyTorch's recordings: the sum over all float
// outputs of (i mod 7 - 3) * out[i], i the flat index, so that the tangent of an output is that
// pattern. What aliases something else gives its tangent there.
#include <stdlib.h>
#include <string.h>

#include "core/session_private.h"

typedef struct Step {
    Session *s;
    Message *m;
    Unit *joint;
    const RunRequest *run;
    const AotMeta *meta; // NULL: the file held a joint graph
    Node **placeholders; // of the loaded graph
    RtValue *inputs;     // one a placeholder
    int n_inputs;
    RtValue *args;       // one a placeholder of the traced graph
    int n_args;
    const Graph *whole; // with the tangents among its placeholders
    Diag *diag;
} Step;

// A tensor's place in memory, in elements.
typedef struct Box {
    int ndim;
    int64_t size[TENSOR_DIMS], stride[TENSOR_DIMS], offset;
    int64_t numel;
} Box;

// ---- sizes

// A symbol's value as the inputs show it, else its hint.
static bool symbol_value(void *ctx, const Expr *symbol, int64_t *v) {
    const Step *t = ctx;
    for (int i = 0; i < t->n_inputs; i++) {
        const Node *p = t->placeholders[i];
        const TensorMeta *m = node_tensor(p);
        if (p->val.kind == VAL_sym && p->val.sym == symbol && t->inputs[i].kind == RT_int) {
            *v = t->inputs[i].i;
            return true;
        }
        for (int k = 0; m && t->inputs[i].kind == RT_tensor && k < m->ndim; k++)
            if (m->size[k] == symbol) {
                *v = t->inputs[i].tensor.size[k];
                return true;
            }
    }
    *v = sym_size_hint(t->s->model->sym, symbol, -1);
    return *v >= 0;
}

static bool box_of(Step *t, const TensorMeta *m, Box *out) {
    *out = (Box){.ndim = m->ndim, .numel = 1};
    bool ok = m->ndim <= TENSOR_DIMS;
    for (int i = 0; ok && i < m->ndim; i++)
        ok = sym_eval(m->size[i], symbol_value, t, &out->size[i]) &&
             sym_eval(m->stride[i], symbol_value, t, &out->stride[i]) && out->size[i] >= 0 &&
             !__builtin_mul_overflow(out->numel, out->size[i], &out->numel);
    if (ok && m->offset)
        ok = sym_eval(m->offset, symbol_value, t, &out->offset);
    if (!ok)
        diag_fail(t->diag, "the size of a tangent is not known")->hint =
            "give sizes with --hint SYMBOL=SIZE";
    return ok;
}

// Storage position of a flat index, from the box's own offset.
static int64_t position(const Box *b, int64_t flat) {
    int64_t at = 0;
    for (int i = b->ndim - 1; i >= 0; i--) {
        at += flat % b->size[i] * b->stride[i];
        flat /= b->size[i];
    }
    return at;
}

static int64_t extent(const Box *b) {
    int64_t last = 0;
    for (int i = 0; i < b->ndim; i++)
        last += (b->size[i] - 1) * b->stride[i];
    return b->numel ? last + 1 : 0;
}

// ---- tangents

static double pattern(int64_t i) {
    return (double)(i % 7 - 3);
}

static void add_own(double *sum, const Box *b) {
    for (int64_t i = 0; i < b->numel; i++)
        sum[i] += pattern(i);
}

// What a view gives to each element of what it is a view of.
static bool add_view(Step *t, double *sum, const Box *base, const TensorMeta *view) {
    Box b;
    if (!box_of(t, view, &b))
        return false;
    int64_t n = extent(base), *element = ARENA_ARRAY(t->m->arena, n + 1, int64_t);
    for (int64_t i = 0; i < base->numel; i++)
        element[position(base, i)] = i + 1;
    for (int64_t i = 0; i < b.numel; i++) {
        int64_t at = position(&b, i) + b.offset - base->offset;
        if (at >= 0 && at < n && element[at])
            sum[element[at] - 1] += pattern(i);
    }
    return true;
}

typedef enum Target { TO_input, TO_output, TO_base } Target;

static bool points_to(const AotOutput *o, Target target, int k) {
    static const Target of[] = {
        [OUTPUT_alias_of_input] = TO_input,
        [OUTPUT_is_input] = TO_input,
        [OUTPUT_alias_of_intermediate_save_as_output] = TO_base,
        [OUTPUT_alias_of_intermediate] = TO_base,
        [OUTPUT_alias_of_intermediate_base_is_user_output] = TO_output,
    };
    bool aliases = o->type != OUTPUT_non_alias && o->type != OUTPUT_unsafe_view_alias;
    return aliases && of[o->type] == target && o->base == k && o->requires_grad && o->meta &&
           dtype_is_float(o->meta->dtype);
}

// The user's: behind them may stand inputs whose metadata was written.
static int user_outputs(const Step *t) {
    return t->meta->n_outputs - (t->joint->merged ? t->joint->merged->n_reshaped : 0);
}

static int count_views(const Step *t, Target target, int k) {
    int n = 0;
    for (int i = 0; i < user_outputs(t); i++)
        n += points_to(&t->meta->outputs[i], target, k);
    return n;
}

static bool add_views(Step *t, double *sum, const Box *base, DType dtype, Target target, int k) {
    for (int i = 0; i < user_outputs(t); i++) {
        const AotOutput *o = &t->meta->outputs[i];
        if (points_to(o, target, k) && o->meta->dtype == dtype && !add_view(t, sum, base, o->meta))
            return false;
    }
    return true;
}

static bool put_tensor(Step *t, const char *name, const TensorMeta *layout, const double *sum) {
    Box b;
    Tensor x;
    if (!box_of(t, layout, &b) ||
        !tensor_new_strided(&x, layout->dtype, b.ndim, b.size, b.stride, t->diag))
        return false;
    for (int64_t i = 0; i < b.numel; i++)
        tensor_set_f64(&x, i, sum[i]);
    message_tensor(t->m, name, &x);
    tensor_drop(&x);
    return true;
}

// The tangent of a forward output: of the new value of an input, of a user output, of a base.
static bool fill_tangent(Step *t, int output, double *sum, const Box *b, const TensorMeta *own) {
    const AotMeta *m = t->meta;
    Box place;
    if (!m) {
        add_own(sum, b);
        return true;
    }
    if (output < m->n_mutated) {
        int input = m->mutated[output];
        return box_of(t, m->inputs[input].meta, &place) &&
               add_views(t, sum, &place, own->dtype, TO_input, input);
    }
    int k = output - m->n_mutated;
    if (k < m->n_outputs) {
        add_own(sum, b);
        return box_of(t, m->outputs[k].meta, &place) &&
               add_views(t, sum, &place, own->dtype, TO_output, k);
    }
    k -= m->n_outputs;
    return box_of(t, m->bases[k], &place) && add_views(t, sum, &place, own->dtype, TO_base, k);
}

static bool add_tangents(Step *t) {
    int n = 0;
    GRAPH_EACH (t->whole, p) {
        const TensorMeta *m = node_tensor(p);
        Box b;
        if (p->op != FX_placeholder || !str_starts(p->target, "tangents_"))
            continue;
        if (!m || !box_of(t, m, &b))
            return false;
        double *sum = ARENA_ARRAY(t->m->arena, b.numel + 1, double);
        int output = t->meta ? t->meta->tangents[n] : -1;
        if (!fill_tangent(t, output, sum, &b, m) ||
            !put_tensor(t, arena_printf(t->m->arena, "t%d", n), m, sum))
            return false;
        n++;
    }
    return true;
}

static bool has_tangent(const AotMeta *m, int input) {
    for (int i = 0; i < m->n_tangents; i++)
        if (m->tangents[i] < m->n_mutated && m->mutated[m->tangents[i]] == input)
            return true;
    return false;
}

// An output that is an input, or a view of one, gives its tangent straight to the gradient.
static bool add_direct(Step *t) {
    for (int i = 0; t->meta && i < t->meta->n_inputs; i++) {
        const AotInput *in = &t->meta->inputs[i];
        Box b;
        if (!in->requires_grad || has_tangent(t->meta, i) || !count_views(t, TO_input, i))
            continue;
        if (!box_of(t, in->meta, &b))
            return false;
        double *sum = ARENA_ARRAY(t->m->arena, b.numel + 1, double);
        if (!add_views(t, sum, &b, in->meta->dtype, TO_input, i) ||
            !put_tensor(t, arena_printf(t->m->arena, "d%d", i), in->meta, sum))
            return false;
    }
    return true;
}

// ---- graphs

// Number of the placeholder of that name that forward writes; -1: none. Backward wants it as it
// was.
static int written_input(const Graph *forward, const char *name) {
    int i = 0;
    GRAPH_EACH (forward, p) {
        if (p->op != FX_placeholder)
            break;
        if (!strcmp(p->name, name))
            for (int k = 0; k < p->n_users; k++)
                if (node_is(p->users[k], OP_aten_copy__default) && p->users[k]->args[0].node == p)
                    return i;
        i++;
    }
    return -1;
}

static void put_map(Step *t, const Graph *forward, const Graph *backward, int n_consts) {
    Buf map = {.arena = t->m->arena};
    GRAPH_EACH (backward, p) {
        if (p->op != FX_placeholder)
            continue;
        int written = written_input(forward, p->name);
        if (str_starts(p->target, "tangents_"))
            buf_printf(&map, "t%d ", atoi(p->target + strlen("tangents_")) - 1);
        else if (written >= 0)
            buf_printf(&map, "i%d ", written);
        else
            buf_printf(&map, "o%d ", graph_output_index(forward, p->name));
    }
    for (int i = 0; i < n_consts; i++)
        buf_printf(&map, "k%d ", i);
    message_text(t->m, "inputs2", buf_str(&map));
}

// Forward's outputs: new values of inputs, the user's, and what is saved.
static void put_outputs(Step *t, int n_fwd) {
    session_add_mutated(t->m, t->meta);
    message_int(t->m, "user", t->meta ? user_outputs(t) : n_fwd);
}

// The captured graph for the outputs, the whole joint one op by op for the gradients.
static void fill_eager(Step *t, StageId of) {
    Buf map = {.arena = t->m->arena};
    session_add_graph(t->s, t->m, "graph",
                      pipeline_at(t->s->pipeline, t->joint->index, STAGE_fx)->graph, STAGE_fx);
    session_add_graph(t->s, t->m, "graph2", t->whole, of);
    int inputs = 0, tangents = 0;
    GRAPH_EACH (t->whole, p)
        if (p->op == FX_placeholder && str_starts(p->target, "tangents_"))
            buf_printf(&map, "t%d ", tangents++);
        else if (p->op == FX_placeholder)
            buf_printf(&map, "i%d ", inputs++);
    message_text(t->m, "inputs2", buf_str(&map));
    message_int(t->m, "whole", 1);
    message_int(t->m, "grad_from", t->meta->n_fwd_outputs);
}

static void fill_parts(Step *t, const Graph *forward, const Graph *backward, StageId of,
                       int n_fwd) {
    session_add_graph(t->s, t->m, "graph", forward, of);
    session_add_graph(t->s, t->m, "graph2", backward, of);
    put_map(t, forward, backward, 0);
    put_outputs(t, n_fwd);
}

static bool fill_default_parts(Step *t) {
    PartitionRequest request = {
        .joint = t->whole,
        .n_fwd_outputs = t->meta->n_fwd_outputs,
        .partitioner = PARTITION_default,
        .config = &partition_config_default,
        .forward_arena = t->m->arena,
        .backward_arena = t->m->arena,
        .arena = t->m->arena,
        .diag = t->diag,
    };
    PartitionResult r = aot_partition(&request);
    if (r.forward && r.backward)
        fill_parts(t, r.forward, r.backward, STAGE_functional, t->meta->n_fwd_outputs);
    return r.forward && r.backward;
}

static int put_code(Step *t, const Unit *u, bool second) {
    Pipeline *p = t->s->pipeline;
    StageId stage = backend_info[t->run->backend].executes;
    const Artifact *a = pipeline_at(p, u->index, stage);
    const Artifact *loops = a->kind == ART_code ? pipeline_at(p, u->index, STAGE_post_fusion) : a;
    if (a->kind == ART_code) {
        message_text(t->m, second ? "code2" : "code", a->code->text);
        message_int(t->m, second ? "n_out2" : "n_out",
                    graph_output_node(unit_last_graph(p, u->index))->args[0].n);
    } else {
        session_add_program(t->m, second ? "loops2" : "loops", t->run, u->index, a);
    }
    return session_add_module_consts(t->s, t->m, loops->schedule->module, second ? "k" : "in",
                                     second ? 0 : t->n_args);
}

// Kernels, or loops to be interpreted.
static void fill_kernels(Step *t, int n_fwd) {
    Pipeline *p = t->s->pipeline;
    const Toolchain *with = t->run->toolchain ? t->run->toolchain : t->s->toolchain;
    if (t->run->backend == BACKEND_full)
        message_text(t->m, "toolchain", with->name);
    put_code(t, t->joint->forward, false);
    int consts = put_code(t, t->joint->backward, true);
    put_map(t, pipeline_at(p, t->joint->forward->index, STAGE_partition)->graph,
            pipeline_at(p, t->joint->backward->index, STAGE_partition)->graph, consts);
    put_outputs(t, n_fwd);
}

// ---- the rungs

static bool build(Step *t, int unit, StageId stage) {
    if (pipeline_build(t->s->pipeline, unit, stage))
        return true;
    const Unit *blame = unit_to_blame(pipeline_unit(t->s->pipeline, unit));
    if (!blame || !session_unit_errors(t->s, blame->index, t->diag))
        diag_fail(t->diag, "stage %s could not be built", stage_info[stage].name);
    return false;
}

static int count_primals(const Graph *joint) {
    int n = 0;
    GRAPH_EACH (joint, p)
        n += p->op == FX_placeholder && !str_starts(p->target, "tangents_");
    return n;
}

// The joint graph whose tangents are wanted, and what its outputs mean.
static bool find_joint(Step *t, bool undecomposed) {
    StageId stage = undecomposed ? STAGE_functional : STAGE_joint;
    if (!build(t, t->joint->index, stage))
        return false;
    const Artifact *a = pipeline_at(t->s->pipeline, t->joint->index, stage);
    t->meta = a->meta;
    t->whole = a->whole ? a->whole : a->graph;
    return true;
}

// No output is a view of something, which the user gets made anew behind the graph.
static bool all_plain(const AotMeta *m) {
    for (int i = 0; i < m->n_outputs; i++)
        if (m->outputs[i].type != OUTPUT_non_alias &&
            m->outputs[i].type != OUTPUT_unsafe_view_alias)
            return false;
    return true;
}

// A graph of some step of the compilation: the whole of a joint one, or one of its halves beside
// the other as it was parted.
static bool fill_step(Step *t, const Artifact *at) {
    Pipeline *p = t->s->pipeline;
    const Unit *forward = t->joint->forward, *backward = t->joint->backward;
    if (at->stage < STAGE_partition) {
        t->whole = at->whole ? at->whole : at->graph;
        fill_eager(t, at->stage);
        if (all_plain(t->meta))
            message_int(t->m, "whole_out", t->meta->n_mutated);
        return true;
    }
    bool first = false;
    for (int i = 0; i < forward->steps.n; i++)
        first = first || forward->steps.at[i] == at;
    if (!build(t, forward->index, STAGE_partition) || !build(t, backward->index, STAGE_partition))
        return false;
    int n_fwd = graph_output_node(t->whole)->args[0].n - count_primals(t->whole);
    fill_parts(t, first ? at->graph : pipeline_at(p, forward->index, STAGE_partition)->graph,
               first ? pipeline_at(p, backward->index, STAGE_partition)->graph : at->graph,
               STAGE_partition, n_fwd);
    return true;
}

static bool fill_rung(Step *t) {
    Pipeline *p = t->s->pipeline;
    bool captured = pipeline_first_stage(p, t->joint->index) <= STAGE_fx;
    bool upper =
        captured && (t->run->backend == BACKEND_eager || t->run->backend == BACKEND_aot_eager);
    if (!find_joint(t, upper))
        return false;
    if (t->run->at)
        return fill_step(t, t->run->at);
    if (upper && t->run->backend == BACKEND_eager) {
        fill_eager(t, STAGE_functional);
        return true;
    }
    if (upper)
        return fill_default_parts(t);
    int n_fwd = graph_output_node(t->whole)->args[0].n - count_primals(t->whole);
    StageId stage = backend_info[t->run->backend].executes;
    if (stage < STAGE_partition)
        stage = STAGE_partition;
    if (!build(t, t->joint->forward->index, stage) || !build(t, t->joint->backward->index, stage))
        return false;
    if (stage > STAGE_partition)
        fill_kernels(t, n_fwd);
    else
        fill_parts(t, pipeline_at(p, t->joint->forward->index, stage)->graph,
                   pipeline_at(p, t->joint->backward->index, stage)->graph, STAGE_partition,
                   n_fwd);
    return true;
}

bool session_fill_train(Session *s, Message *m, const RunRequest *r, Unit *joint, Diag *d) {
    Step t = {.s = s, .m = m, .joint = joint, .run = r, .diag = d};
    int n = graph_placeholders(joint->loaded->graph, &t.placeholders, m->arena);
    if (!session_inputs(s, joint->index, m->arena, &t.inputs, &t.n_inputs, d))
        return false;
    // A joint graph that the file held takes tangents, too; those are made here.
    for (int i = 0; i < n; i++)
        if (i < t.n_inputs && str_starts(t.placeholders[i]->target, "tangents_"))
            t.n_inputs = i;
    bool ok = (!r->in_f64 || session_widen(t.inputs, t.n_inputs, d)) &&
              session_args(s, joint, t.inputs, t.n_inputs, m->arena, &t.args, &t.n_args, d) &&
              fill_rung(&t) && add_tangents(&t) && add_direct(&t);
    bool captured = message_get_int(m, "whole", 0) != 0;
    for (int i = 0; i < (captured ? t.n_inputs : t.n_args); i++)
        session_add_value(m, arena_printf(m->arena, "in%d", i),
                          captured ? &t.inputs[i] : &t.args[i]);
    for (int i = 0; captured && joint->merged && i < t.n_args; i++)
        session_add_value(m, arena_printf(m->arena, "a%d", i), &t.args[i]);
    message_int(m, "n_in", captured ? t.n_inputs : t.n_args);
    if (!captured)
        session_add_outer(m, joint, t.inputs, t.n_inputs);
    session_add_memory(m, joint, t.inputs);
    session_add_same(m, joint);
    if (captured && joint->merged)
        session_add_argument_map(m, joint, t.n_inputs);
    for (int i = 0; i < n; i++)
        rt_drop(&t.inputs[i]);
    for (int i = 0; i < t.n_args; i++)
        rt_drop(&t.args[i]);
    return ok;
}
