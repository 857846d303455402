// session_twin.c: what stands on record about derivatives and writes, and the way from forward to
// backward and back.
#include "core/session.h"
#include "tests/unit/unit.h"

#include <string.h>

static Session *open_model(const char *path, const char *grad, Arena *a) {
    Diag d = {.arena = a};
    SessionOptions o = {.grad = grad};
    Session *s = session_open(path, &o, &d);
    ck_assert_msg(s != NULL, "%s: %s", path, diag_first(&d));
    return s;
}

static const Node *node_of(const Artifact *a, const char *name) {
    const Node *n = graph_find(a->graph, name);
    ck_assert_msg(n != NULL, "no node %s", name);
    return n;
}

// Every call of backward was made by some function of the tape: PyTorch gives each a seq_nr.
START_TEST(all_of_backward_is_on_record) {
    Arena a = {0};
    Session *s = open_model("tests/corpus/layernorm_gelu/graph_code.txt", "params", &a);
    pipeline_build(session_pipeline(s), 0, STAGE_partition);
    const Artifact *trace = session_trace(s, 0);
    ck_assert(trace && trace->log);
    int n_backward = 0;
    GRAPH_EACH (trace->graph, n) {
        const AotDerived *d = aot_derived_find(trace->log, n->id);
        if (n->op != FX_call_function || !(n->flags & NODE_backward)) {
            ck_assert_msg(!d, "%s is of forward", n->name);
            continue;
        }
        n_backward++;
        ck_assert_msg(d != NULL, "%s is of nobody", n->name);
        ck_assert_int_eq(d->seq, n->seq_nr);
    }
    ck_assert_int_eq(n_backward, 36); // of the 59 that the corpus has
    const AotDerived *gelu = aot_derived_find(trace->log, node_of(trace, "mul_11")->id);
    ck_assert_str_eq(gelu->op->qualname, "torch.ops.aten.gelu.default");
    ck_assert_str_eq(gelu->formula, "self: gelu_backward(grad, self, approximate)");
    session_close(s);
    arena_free(&a);
}
END_TEST

static bool has_link(const Twins *t, int item) {
    for (int i = 0; i < t->n; i++)
        if (t->links[i].item == item)
            return true;
    return false;
}

// Who is a twin of whom holds both ways.
START_TEST(twins_are_mutual) {
    Arena a = {0};
    Session *s = open_model("tests/corpus/layernorm_gelu/graph_code.txt", "params", &a);
    pipeline_build(session_pipeline(s), 0, STAGE_partition);
    const Artifact *trace = session_trace(s, 0);
    int pairs = 0;
    GRAPH_EACH (trace->graph, n) {
        if (n->op != FX_call_function)
            continue;
        Twins t = session_twins(s, 0, trace, n->id, trace, &a);
        ck_assert_int_eq(t.of_backward, (n->flags & NODE_backward) != 0);
        for (int i = 0; i < t.n; i++, pairs++) {
            Twins back = session_twins(s, 0, trace, t.links[i].item, trace, &a);
            ck_assert_msg(has_link(&back, n->id), "%s", n->name);
        }
    }
    ck_assert_int_gt(pairs, 60);
    Twins erf = session_twins(s, 0, trace, node_of(trace, "erf")->id, trace, &a);
    ck_assert(has_link(&erf, node_of(trace, "mul_11")->id));
    session_close(s);
    arena_free(&a);
}
END_TEST

// erf is computed in forward and again in backward: from both there is a way to its gradient.
START_TEST(twins_in_the_halves) {
    Arena a = {0};
    Session *s = open_model("tests/corpus/layernorm_gelu/graph_code.txt", "params", &a);
    Pipeline *p = session_pipeline(s);
    const Artifact *fw = pipeline_build(p, 1, STAGE_post_grad);
    const Artifact *bw = pipeline_build(p, 2, STAGE_post_grad);
    int grad = node_of(bw, "mul_11")->id;
    Twins t = session_twins(s, 1, fw, node_of(fw, "erf")->id, bw, &a);
    ck_assert(!t.of_backward && has_link(&t, grad));
    t = session_twins(s, 2, bw, node_of(bw, "erf")->id, bw, &a);
    ck_assert(!t.of_backward && has_link(&t, grad));
    t = session_twins(s, 2, bw, grad, fw, &a);
    ck_assert(t.of_backward && has_link(&t, node_of(fw, "erf")->id));
    session_close(s);
    arena_free(&a);
}
END_TEST

START_TEST(inference_has_no_twins) {
    Arena a = {0};
    Session *s = open_model("tests/corpus/layernorm_gelu/graph_code.txt", "none", &a);
    const Artifact *art = pipeline_build(session_pipeline(s), 0, STAGE_joint);
    ck_assert(!session_joint(s, 0) && !session_trace(s, 0));
    ck_assert_int_eq(session_twins(s, 0, art, node_of(art, "erf")->id, art, &a).n, 0);
    ck_assert(!session_halves(art->graph, &a));
    session_close(s);
    arena_free(&a);
}
END_TEST

// x.add_(1), x.relu_(), y = x.view(2, 3), y.mul_(2).
START_TEST(writes_are_on_record) {
    Arena a = {0};
    Session *s = open_model("tests/corpus/inplace_view/graph_code.txt", "none", &a);
    const Artifact *art = pipeline_build(session_pipeline(s), 0, STAGE_functional);
    ck_assert(art && art->log && art->meta);
    ck_assert_int_eq(art->log->n_writes, 3);
    const AotWrite *w = &art->log->writes[2];
    ck_assert_str_eq(w->op->qualname, "torch.ops.aten.mul_.Tensor");
    ck_assert_str_eq(w->chain, "view([2, 3])");
    ck_assert_str_eq(graph_by_id(art->graph, w->value)->name, "mul");
    ck_assert_str_eq(graph_by_id(art->graph, w->base)->name, "relu");
    const Node *back = graph_by_id(art->graph, w->new_base);
    ck_assert_str_eq(back->target, "torch.ops.aten.view.default"); // the inverse of a view
    ck_assert(back->id >= w->from && back->id < w->to);
    ck_assert_str_eq(art->log->writes[0].chain, "");
    session_close(s);
    arena_free(&a);
}
END_TEST

// The cost of computing a value again counts what backward does not have.
START_TEST(costs_of_recomputing) {
    Arena a = {0};
    Diag d = {.arena = &a};
    Session *s = open_model("tests/corpus/layernorm_gelu/graph_code.txt", "params", &a);
    Saved saved;
    ck_assert(session_saved(s, 2, &a, &saved, &d)); // from any graph of the tree
    ck_assert_int_eq(saved.totals.n_saved, 8);
    ck_assert_int_eq(saved.totals.bytes, 32576);
    ck_assert_int_eq(saved.totals.input_bytes, 13056);
    for (int i = 0; i < saved.n; i++) {
        const SavedRow *r = &saved.rows[i];
        if (!strcmp(r->node->name, "addmm")) { // [40, 24] by [24, 48], from a saved view
            ck_assert_int_eq(r->cost.ops, 1);
            ck_assert(r->cost.flops == 2.0 * 40 * 24 * 48);
        }
        if (!strcmp(r->node->name, "view_1"))
            ck_assert_int_eq(r->cost.ops, 0);
        ck_assert_int_eq(r->cost.input, r->value->is_input);
    }
    session_close(s);
    arena_free(&a);
}
END_TEST

Suite *suite_session_twin(void) {
    const TTest *const tests[] = {
        all_of_backward_is_on_record, twins_are_mutual,     twins_in_the_halves,
        inference_has_no_twins,       writes_are_on_record, costs_of_recomputing,
    };
    return unit_suite("session_twin", tests, COUNT(tests));
}
