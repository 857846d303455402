// session_look.c: finds a value in a helper: the model is built there as far as needed, the rung
// that runs the value's step is run with a tap, and what it stands beside likewise: by links that
// say `same`, never by name alone, except between loops and the code made from them.
#include <string.h>

#include "core/base/file.h"
#include "core/debug/look.h"
#include "core/inductor/ir.h"
#include "core/session_private.h"
#include "core/session_probe.h"

typedef struct Sight {
    HelperCall *call;
    ProbeSession *probe;
    const LookQuery *q;
} Sight;

// A value in this process: the artifact, and what its maker calls it.
typedef struct Where {
    const Artifact *art;
    int half; // 1: of backward, or of a joint graph, which is run as one
    const char *name;
    bool in_f64;
} Where;

typedef struct Catch {
    const char *name;
    int half; // -1: any
    Tensor got;
    bool seen;
} Catch;

static void catch_value(void *ctx, int half, const char *name, const Tensor *t) {
    Catch *c = ctx;
    Arena tmp = {0};
    Diag quiet = {.arena = &tmp};
    if (!c->seen && (c->half < 0 || c->half == half) && !strcmp(name, c->name))
        c->seen = tensor_to(&c->got, t, t->dtype, &quiet);
    arena_free(&tmp);
}

// The rung that runs an artifact, itself or a graph in its place.
static CaseRung rung_of(const Sight *s, const Artifact *a, const Artifact **at) {
    StageId first = pipeline_first_stage(probe_session_pipeline(s->probe), 0);
    *at = a->kind == ART_graph && a->stage > first ? a : NULL;
    switch (a->stage) {
    case STAGE_pre_fusion:
        return RUNG_ir_pre_fusion;
    case STAGE_post_fusion:
        return RUNG_ir;
    case STAGE_kernels:
        return RUNG_full;
    default:
        return a->stage <= first              ? RUNG_eager
               : a->stage == STAGE_functional ? RUNG_aot_eager
                                              : RUNG_aot_eager_decomp_partition;
    }
}

static const char *rung_label(const Sight *s, CaseRung rung, bool in_f64) {
    const Toolchain *t = s->q->probe.toolchain;
    return in_f64                   ? "float64"
           : rung == RUNG_full && t ? arena_printf(s->call->arena, "full %s", t->name)
                                    : backend_info[rung].name;
}

static bool value_of(const Sight *s, const Where *w, Tensor *out, const char **rung, Diag *d) {
    const Artifact *at;
    ProbeRun run = {
        .rung = rung_of(s, w->art, &at), .toolchain = s->q->probe.toolchain, .in_f64 = w->in_f64};
    Catch found = {.name = w->name, .half = probe_session_unit(s->probe)->forward ? w->half : -1};
    HelperCall tapped = *s->call;
    StageId failed;
    run.at = at;
    tapped.tap = catch_value;
    tapped.tap_ctx = &found;
    bool ok = probe_session_build(s->probe, run.rung, false, &failed, d) &&
              probe_session_run(s->probe, &run, &tapped, s->call->arena, d);
    for (int i = 0; i < run.values.n; i++)
        rt_drop(&run.values.at[i].v);
    *rung = rung_label(s, run.rung, w->in_f64);
    *out = found.got;
    return ok && found.seen;
}

// ---- places

static const Unit *unit_of(const Sight *s, int half) {
    const Unit *u = probe_session_unit(s->probe);
    return !u->forward || half == 2 ? u : half ? u->backward : u->forward;
}

// A joint graph that was parted is not run as one: its halves are.
static const Artifact *half_with(const Unit *half, const char *name) {
    for (int i = 0; i < half->steps.n; i++) {
        const Artifact *a = half->steps.at[i];
        if (a->stage == STAGE_partition && graph_find(a->graph, name))
            return a;
    }
    return NULL;
}

static const Artifact *step_at(const Sight *s, const LookPlace *p, const Unit **owner) {
    const Unit *u = unit_of(s, p->half);
    int nth = p->nth;
    *owner = u;
    if (!pipeline_build(probe_session_pipeline(s->probe), u->index, p->stage))
        return NULL;
    if (u->forward && p->stage == STAGE_partition) {
        const Artifact *forward = half_with(u->forward, p->name);
        *owner = forward ? u->forward : u->backward;
        return forward ? forward : half_with(u->backward, p->name);
    }
    for (int i = 0; i < unit_n_steps(u); i++) {
        const Artifact *a = unit_step(u, i);
        if (a->stage == p->stage && !strcmp(a->pass ? a->pass : "", p->pass) && nth-- == 0)
            return a;
    }
    return NULL;
}

// In which half of a training request the values of an artifact show.
static int half_of(const Artifact *a, const Unit *u) {
    return a->stage <= STAGE_fx ? 0 : !u->parent || u == u->parent->backward;
}

static const IrOp *op_of_buffer(const Schedule *s, const char *buf) {
    for (int i = 0; i < s->module->ops.n; i++)
        for (int k = 0; k < s->module->ops.at[i]->outputs.n; k++)
            if (!strcmp(s->module->ops.at[i]->outputs.at[k]->name, buf))
                return s->module->ops.at[i];
    return NULL;
}

// The artifact that carries the links of a place, and its item there; code has those of its loops.
static int item_of(const Sight *s, const Where *w, const Unit *u, const Artifact **art) {
    Pipeline *p = probe_session_pipeline(s->probe);
    *art = w->art->kind == ART_code ? pipeline_at(p, u->index, STAGE_post_fusion) : w->art;
    if (*art && (*art)->kind == ART_graph) {
        const Node *n = graph_find((*art)->graph, w->name);
        return n ? n->id : -1;
    }
    const IrOp *op = *art ? op_of_buffer((*art)->schedule, w->name) : NULL;
    return op ? op->number : -1;
}

static const char *name_of(const Artifact *a, int item) {
    if (a->kind == ART_graph)
        return graph_by_id(a->graph, item) ? graph_by_id(a->graph, item)->name : NULL;
    return ir_op_buffer(a->schedule->module, item);
}

// ---- the same value elsewhere

// The node of the lowered graph that an operation's buffer holds: the last of its origins.
static int node_of_op(const Artifact *loops, int number) {
    const IrModule *m = loops->schedule->module;
    const IrOp *op = ir_op(m, number);
    int last = -1;
    if (op && m->graph)
        GRAPH_EACH (m->graph, n)
            for (int k = 0; k < op->origins.n; k++)
                if (op->origins.at[k] == n->id)
                    last = n->id;
    return last;
}

static int op_of_node(const Artifact *loops, int node) {
    const IrModule *m = loops->schedule->module;
    for (int i = 0; i < m->ops.n; i++)
        if (m->ops.at[i]->outputs.n && node_of_op(loops, m->ops.at[i]->number) == node)
            return m->ops.at[i]->number;
    return -1;
}

// Between graphs: by a link that says `same`.
static int same_node(const Sight *s, const Artifact *from, int item, const Artifact *to) {
    Link *links = NULL;
    if (from == to)
        return item;
    int n = item < 0 ? 0
                     : pipeline_links(probe_session_pipeline(s->probe), from, item, to,
                                      s->call->arena, &links);
    return n && links[0].strength == LINK_same ? links[0].item : -1;
}

// The same value in an artifact of a unit. Between graphs and loops the way goes through the graph
// that was lowered.
static bool same_in(const Sight *s, const Artifact *from, int item, const Unit *u, StageId stage,
                    Where *out) {
    Pipeline *p = probe_session_pipeline(s->probe);
    const Artifact *to = pipeline_build(p, u->index, stage);
    if (!to)
        return false;
    const Artifact *target =
        to->kind == ART_code ? pipeline_at(p, u->index, STAGE_post_fusion) : to;
    const Artifact *lowered = pipeline_at(p, u->index, STAGE_post_grad);
    bool from_graph = from->kind == ART_graph, to_graph = target->kind == ART_graph;
    if (!from_graph && !to_graph) {
        // Operations keep their numbers.
    } else if (!from_graph) {
        item = lowered ? same_node(s, lowered, node_of_op(from, item), target) : -1;
    } else {
        item = same_node(s, from, item, to_graph ? target : lowered);
        item = to_graph || item < 0 ? item : op_of_node(target, item);
    }
    *out =
        (Where){.art = to, .half = half_of(to, u), .name = item < 0 ? NULL : name_of(target, item)};
    return out->name != NULL;
}

// In the halves of training: of loops in their own, of graphs in the one that has it.
static bool same_at(const Sight *s, const Artifact *from, int item, const Unit *own, StageId stage,
                    Where *out) {
    const Unit *root = probe_session_unit(s->probe);
    if (!root->forward || stage < STAGE_partition)
        return same_in(s, from, item, root, stage, out);
    if (from->kind != ART_graph)
        return same_in(s, from, item, own, stage, out);
    return same_in(s, from, item, root->forward, stage, out) ||
           same_in(s, from, item, root->backward, stage, out);
}

// What a value stands beside; false: there is nothing, and why.
static bool beside(const Sight *s, const Where *at, const Unit *u, Where *out, const char **why) {
    const char *name = *s->q->against ? s->q->against : look_against(at->art->stage);
    const Artifact *links_of;
    int item = item_of(s, at, u, &links_of);
    bool f64 = !strcmp(name, "float64");
    StageId stage = STAGE_count;
    for (int b = 0; b < BACKEND_count; b++)
        if (!strcmp(backend_info[b].name, name) || !strcmp(backend_info[b].alias, name))
            stage = backend_info[b].executes;
    if (f64 && at->art->kind == ART_graph) {
        *out = *at;
        out->in_f64 = true;
        return true;
    }
    if (stage == STAGE_count && !f64) {
        *why = arena_printf(s->call->arena, "'%s' is neither float64 nor a rung", name);
        return false;
    }
    // Graphs behind the partition are what loops are made from.
    StageId first = pipeline_first_stage(probe_session_pipeline(s->probe), 0);
    if (f64 || (stage == STAGE_partition && at->art->stage > STAGE_post_grad))
        stage = STAGE_post_grad;
    stage = stage < first ? first : stage;
    if (item < 0 || !same_at(s, links_of, item, u, stage, out)) {
        *why = arena_printf(s->call->arena, "no value of %s is the same as this one",
                            stage_info[stage].name);
        return false;
    }
    out->in_f64 = f64;
    return true;
}

static const Tensor *input_named(const Sight *s, const char *name) {
    const Unit *u = probe_session_unit(s->probe);
    int i = 0;
    GRAPH_EACH (u->loaded->graph, n) {
        if (n->op != FX_placeholder || i >= s->q->probe.n_inputs)
            return NULL;
        if (!strcmp(n->name, name))
            return s->q->probe.inputs[i].kind == RT_tensor ? &s->q->probe.inputs[i].tensor : NULL;
        i++;
    }
    return NULL;
}

// ---- results of a rung

static bool result_of(const Sight *s, CaseRung rung, bool in_f64, Tensor *out, Diag *d) {
    ProbeRun run = {.rung = rung,
                    .toolchain = s->q->probe.toolchain,
                    .in_f64 = in_f64,
                    .plain = in_f64 || rung == RUNG_eager};
    StageId failed;
    bool seen = false;
    if (probe_session_build(s->probe, rung, run.plain, &failed, d))
        probe_session_run(s->probe, &run, s->call, s->call->arena, d);
    for (int i = 0; i < run.values.n; i++) {
        const RtValue *v = &run.values.at[i].v;
        if (!seen && v->kind == RT_tensor && !strcmp(run.values.at[i].name, s->q->place.name))
            seen = tensor_to(out, &v->tensor, v->tensor.dtype, d);
        rt_drop(&run.values.at[i].v);
    }
    return seen;
}

static bool look_at_result(const Sight *s) {
    HelperCall *c = s->call;
    Diag quiet = {.arena = c->arena};
    Tensor got = {0}, want = {0};
    const char *against = *s->q->against ? s->q->against : "eager";
    int beside = backend_find(against), rung = 0;
    bool f64 = !strcmp(against, "float64");
    for (int b = 0; b < BACKEND_count; b++)
        if (backend_info[b].executes == s->q->place.stage)
            rung = b;
    if (!result_of(s, (CaseRung)rung, false, &got, &quiet)) {
        message_text(c->reply, "why",
                     quiet.errors ? diag_first(&quiet) : "the rung has no such result");
        return true;
    }
    bool has = (f64 || beside >= 0) &&
               result_of(s, f64 ? RUNG_eager : (CaseRung)beside, f64, &want, &quiet) &&
               tensor_numel(&want) == tensor_numel(&got);
    look_reply(c, &got, has ? &want : NULL, &s->q->probe.tolerance);
    message_text(c->reply, "rung", rung_label(s, (CaseRung)rung, false));
    message_text(c->reply, "against",
                 has ? rung_label(s, f64 ? RUNG_eager : (CaseRung)beside, f64) : "");
    message_text(c->reply, "why_not", has ? "" : "it has no such result to hold this against");
    tensor_drop(&got);
    tensor_drop(&want);
    return true;
}

static const char *why_none(const Sight *s, const Where *w, const Diag *d) {
    if (d->errors)
        return diag_first(d);
    const char *const fused =
        "it is not stored anywhere: the kernel that makes it keeps it in a register";
    return w->art->kind == ART_graph
               ? arena_printf(s->call->arena, "no value was seen of %s: it is no tensor", w->name)
               : fused;
}

bool session_look(HelperCall *c, ProbeSession *probe, const LookQuery *q) {
    Sight s = {c, probe, q};
    Diag quiet = {.arena = c->arena}, ref = {.arena = c->arena};
    const Unit *u = NULL;
    Where at = {.art = q->place.result ? NULL : step_at(&s, &q->place, &u), .name = q->place.name},
          by;
    Tensor got = {0}, want = {0};
    const char *rung = "", *ref_rung = "", *why_not = "";
    int64_t start = clock_ns();
    if (q->place.result)
        return look_at_result(&s);
    if (!at.art) {
        message_text(c->reply, "why", "the stage could not be built");
        return true;
    }
    at.half = half_of(at.art, u);
    const Tensor *input = at.art->stage <= STAGE_fx ? input_named(&s, at.name) : NULL;
    bool ok = input ? tensor_to(&got, input, input->dtype, &quiet)
                    : value_of(&s, &at, &got, &rung, &quiet);
    if (!ok) {
        message_text(c->reply, "why", why_none(&s, &at, &quiet));
        return true;
    }
    bool has = false;
    if (input)
        why_not = "an input is what it is: there is nothing to hold it against";
    else if (beside(&s, &at, u, &by, &why_not) &&
             !(has = value_of(&s, &by, &want, &ref_rung, &ref)))
        why_not = why_none(&s, &by, &ref);
    if (has && tensor_numel(&want) != tensor_numel(&got)) {
        has = false;
        why_not = "its number of elements is another one there";
    }
    look_reply(c, &got, has ? &want : NULL, &q->probe.tolerance);
    message_text(c->reply, "rung", input ? "as given" : rung);
    message_text(c->reply, "against",
                 !has                       ? ""
                 : strcmp(by.name, at.name) ? arena_printf(c->arena, "%s: %s", ref_rung, by.name)
                                            : ref_rung);
    message_text(c->reply, "why_not", why_not);
    message_int(c->reply, "ns", clock_ns() - start);
    tensor_drop(&got);
    tensor_drop(&want);
    return true;
}

Request *session_look_start(Session *s, int unit, const LookPlace *place, const char *against,
                            Diag *d) {
    Arena arena = {0};
    LookQuery q = {.place = *place, .against = against};
    Request *r = NULL;
    const Unit *u = pipeline_unit(s->pipeline, unit);
    if (!session_helpers(s))
        diag_tool(d, "no helper process could be started");
    else if ((!u->loaded || session_can_run(s, u->loaded->graph, d)) &&
             session_probe_query(s, unit, &arena, &q.probe, d)) {
        q.probe.tolerance = s->tolerance;
        if (place->toolchain)
            q.probe.toolchain = toolchain_find(place->toolchain);
        r = look_send(s->helpers, &q);
        for (int i = 0; i < q.probe.n_inputs; i++)
            if (q.probe.inputs[i].kind == RT_tensor) {
                Tensor t = q.probe.inputs[i].tensor;
                tensor_drop(&t);
            }
    }
    arena_free(&arena);
    return r;
}
