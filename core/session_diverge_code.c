// session_diverge_code.c: which buffer of loops or compiled code first goes wrong: held against the
// interpreter's, against the graph that was lowered, or against another run of the same code.
#include <stdlib.h>
#include <string.h>

#include "core/session_diverge.h"

static const Artifact *schedule_of(const Search *x, int half, StageId stage) {
    const Unit *u = probe_session_unit(x->probe);
    const Unit *owner = u->forward ? half ? u->backward : u->forward : u;
    return pipeline_at(probe_session_pipeline(x->probe), owner->index, stage);
}

// The node of the lowered graph that a buffer holds: the last of its origins.
static const Node *node_of_buffer(const Search *x, int half, const char *buf, const IrOp **op) {
    const Artifact *a = schedule_of(x, half, STAGE_pre_fusion);
    *op = NULL;
    const IrModule *m = a ? a->schedule->module : NULL;
    for (int i = 0; m && i < m->ops.n && !*op; i++)
        for (int k = 0; k < m->ops.at[i]->outputs.n; k++)
            if (!strcmp(m->ops.at[i]->outputs.at[k]->name, buf))
                *op = m->ops.at[i];
    const Node *last = NULL;
    if (*op && m->graph)
        GRAPH_EACH (m->graph, n)
            for (int i = 0; i < (*op)->origins.n; i++)
                if ((*op)->origins.at[i] == n->id)
                    last = n;
    return last;
}

// The last of the origins first.
static void name_op_origins(Search *x, int half, const IrOp *op, const Node *last) {
    const Artifact *lowered = schedule_of(x, half, STAGE_post_grad);
    int *items = ARENA_ARRAY(x->arena, op ? op->origins.n + 1 : 1, int), n = 0;
    if (!op || !last || !lowered || lowered->kind != ART_graph)
        return;
    items[n++] = last->id;
    for (int i = 0; i < op->origins.n; i++)
        if (op->origins.at[i] != last->id)
            items[n++] = op->origins.at[i];
    diverge_origins(x, lowered, items, n);
}

static const char *kernel_of(const Search *x, int half, const IrOp *op) {
    const Artifact *code = schedule_of(x, half, STAGE_kernels),
                   *fused = schedule_of(x, half, STAGE_post_fusion);
    for (int i = 0; code && fused && op && i < code->code->calls.n; i++) {
        const CCall *c = &code->code->calls.at[i];
        for (int k = 0; k < c->nodes.n; k++) {
            const SchedNode *n = fused->schedule->nodes.at[c->nodes.at[k]];
            for (int q = 0; q < n->outputs.n; q++)
                for (int z = 0; z < op->outputs.n; z++)
                    if (!strcmp(n->outputs.at[q]->ir->name, op->outputs.at[z]->name))
                        return c->name;
        }
    }
    return "";
}

// The buffers of forward are what they should be, and a result is not: call() hands out another.
static bool name_handed(Search *x, const Level *l) {
    const Artifact *a = schedule_of(x, 0, STAGE_pre_fusion);
    const IrModule *m = a && l->bad ? a->schedule->module : NULL;
    int i = m ? diverge_result_place(x, l->bad) : -1;
    const IrOp *op;
    if (i < 0 || i >= m->outputs.n || !m->outputs.at[i].buf)
        return false;
    x->out->node = m->outputs.at[i].buf;
    x->out->half = probe_session_unit(x->probe)->forward ? "forward" : "";
    x->out->pattern =
        arena_printf(x->arena, "it is right, and not what is handed out as %s", l->bad);
    const Node *n = node_of_buffer(x, 0, x->out->node, &op);
    x->out->op = n ? arena_printf(x->arena, "%s: %s", op->name, n->name) : "";
    name_op_origins(x, 0, op, n);
    return true;
}

bool diverge_buffers(Search *x, const Level *l, const Level *before) {
    bool forward = l->rung == RUNG_full; // its results are call()'s
    for (int i = 0; i < l->trace.at.n; i++) {
        const Shown *s = &l->trace.at.at[i];
        const IrOp *op;
        const Node *n = node_of_buffer(x, s->half, s->name, &op);
        const Shown *want =
            before && !before->art ? diverge_seen(&before->trace, s->half, s->name) : NULL;
        if (s->half && forward && name_handed(x, l))
            return true;
        forward = forward && !s->half;
        // Before loops there are graphs: the node's value in the one that is lowered.
        const Artifact *lowered = want || !n ? NULL : schedule_of(x, s->half, STAGE_post_grad);
        const Level *graph = lowered ? diverge_level(x, lowered) : NULL;
        if (graph)
            want = diverge_seen(&graph->trace, diverge_half(x, graph->art), n->name);
        if (!diverge_judged(x, s, want))
            continue;
        x->out->op = n ? arena_printf(x->arena, "%s: %s", op->name, n->name) : "";
        x->out->half =
            probe_session_unit(x->probe)->forward ? s->half ? "backward" : "forward" : "";
        if (l->rung == RUNG_full)
            x->out->kernel = kernel_of(x, s->half, op);
        name_op_origins(x, s->half, op, n);
        return true;
    }
    return forward && name_handed(x, l);
}

// The first buffer that another run of the same code gave other bits.
void diverge_changed(Search *x, const Level *l, const Level *before) {
    for (int i = 0; i < l->trace.at.n; i++) {
        const Shown *s = &l->trace.at.at[i];
        const Shown *was = diverge_seen(&before->trace, s->half, s->name);
        TensorDiff diff;
        if (!was || was->t.dtype != s->t.dtype || tensor_numel(&was->t) != tensor_numel(&s->t))
            continue;
        tensor_diff(&s->t, &was->t, 0, 0, &diff);
        if (diff.same_bits)
            continue;
        const IrOp *op;
        const Node *n = node_of_buffer(x, s->half, s->name, &op);
        bool halves = probe_session_unit(x->probe)->forward != NULL;
        x->out->node = s->name;
        x->out->op = n ? arena_printf(x->arena, "%s: %s", op->name, n->name) : "";
        x->out->half = halves ? s->half ? "backward" : "forward" : "";
        x->out->kernel = kernel_of(x, s->half, op);
        x->out->pattern = "it changes from run to run";
        name_op_origins(x, s->half, op, n);
        return;
    }
}
