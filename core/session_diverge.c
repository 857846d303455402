// session_diverge.c: where the pipeline first goes wrong, inside a helper. Each step of the
// compilation is run with all its values shown: graphs op by op, loops by their interpreter, code
// with taps. The first step whose results are wrong is at fault; within it the first value that
// differs from what it equals in the step before, by links that say `same`.
#include <stdlib.h>
#include <string.h>

#include "core/ops/foreach.h"
#include "core/session_diverge.h"

enum { MOST_ELEMENTS = 1 << 26 }; // of the values that are kept of a step

// ---- traces

static const char *trace_key(Arena *a, int half, const char *name) {
    return arena_printf(a, "%d %s", half, name);
}

static void see(void *ctx, int half, const char *name, const Tensor *t) {
    Trace *x = ctx;
    Diag quiet = {.arena = x->arena};
    if (strchr(name, ' ')) // of a library call
        return;
    const char *key = trace_key(x->arena, half, name);
    x->elements += tensor_numel(t);
    if (x->elements > MOST_ELEMENTS || map_find(&x->by_name, key))
        return;
    Shown s = {.half = half, .name = arena_strdup(x->arena, name)};
    if (!tensor_to(&s.t, t, t->dtype, &quiet))
        return;
    vec_push(x->arena, &x->at, s);
    map_put_int(&x->by_name, key, x->at.n);
}

const Shown *diverge_seen(const Trace *x, int half, const char *name) {
    Arena tmp = {0};
    int64_t place = map_get_int(&x->by_name, trace_key(&tmp, half, name), 0);
    arena_free(&tmp);
    return place ? &x->at.at[place - 1] : NULL;
}

static void drop_levels(Search *x) {
    for (int i = 0; i < x->levels.n; i++)
        for (int k = 0; k < x->levels.at[i]->trace.at.n; k++)
            tensor_drop(&x->levels.at[i]->trace.at.at[k].t);
}

// ---- running a step

// The first result that is wrong; NULL.
static const char *bad_result(Search *x, const ProbeRun *got) {
    for (int i = 0; i < x->want.values.n; i++) {
        const char *name = x->want.values.at[i].name;
        const RtValue *v = probe_value(got, name);
        Judged j;
        if (!v && str_starts(name, "after"))
            v = &x->q->inputs[atoi(name + strlen("after"))];
        const RtValue *want = &x->want.values.at[i].v;
        Tolerance tolerance = x->q->tolerance;
        judge_value(v, want, probe_value(&x->exact, name), &tolerance, &j);
        if (verdict_info[j.verdict].bad && want->kind == RT_tensor) {
            tolerance.computed_in =
                probe_session_computed_in(x->probe, name, want->tensor.dtype);
            judge_value(v, want, probe_value(&x->exact, name), &tolerance, &j);
        }
        if (verdict_info[j.verdict].bad)
            return name;
    }
    return NULL;
}

static void drop_run(ProbeRun *r) {
    for (int i = 0; i < r->values.n; i++)
        rt_drop(&r->values.at[i].v);
    r->values.n = 0;
}

static Level *run_level(Search *x, const Artifact *art, CaseRung rung, bool plain) {
    Level *l = ARENA_NEW(x->arena, Level);
    Diag quiet = {.arena = x->arena};
    ProbeRun got = {.rung = rung,
                    .toolchain = x->q->toolchain,
                    .at = art,
                    .plain = plain,
                    .poison = rung == RUNG_full ? 0xff : 0};
    *l = (Level){.art = art, .rung = rung};
    l->trace.arena = l->trace.by_name.arena = x->arena;
    x->tapped.tap_ctx = &l->trace;
    l->ok = probe_session_run(x->probe, &got, &x->tapped, x->arena, &quiet);
    l->bad = l->ok ? bad_result(x, &got) : NULL;
    drop_run(&got);
    vec_push(x->arena, &x->levels, l);
    return l;
}

// ---- what was found

static void found(Search *x, const Shown *got, const Shown *want, const Judged *j) {
    Divergence *o = x->out;
    Buf at = {.arena = x->arena}, type = {.arena = x->arena};
    double rtol, atol;
    int64_t n = tensor_numel(&got->t);
    bool *wrong = ARENA_ARRAY(x->arena, n + 1, bool);
    dtype_tolerance(got->t.dtype, &rtol, &atol);
    for (int64_t i = 0; i < n; i++) {
        double a = tensor_get_f64(&got->t, i), b = tensor_get_f64(&want->t, i), d = a - b;
        d = d < 0 ? -d : d;
        wrong[i] = !(a == b || (a != a && b != b) || d <= 20 * (atol + rtol * (b < 0 ? -b : b)));
    }
    o->node = got->name;
    o->against = want->name;
    o->judged = *j;
    if (j->element >= 0)
        print_element(&at, &got->t, j->element);
    o->at = buf_str(&at);
    buf_printf(&type, "%s[", dtype_info[got->t.dtype].abbr);
    for (int i = 0; i < got->t.ndim; i++)
        buf_printf(&type, "%s%lld", i ? "," : "", (long long)got->t.size[i]);
    buf_putc(&type, ']');
    o->type = buf_str(&type);
    o->pattern = element_pattern(x->arena, &got->t, wrong);
    o->got = (RtValue){.kind = RT_tensor, .tensor = tensor_keep(&got->t)};
    o->want = (RtValue){.kind = RT_tensor, .tensor = tensor_keep(&want->t)};
}

bool diverge_judged(Search *x, const Shown *got, const Shown *want) {
    Judged j;
    if (!want)
        return false;
    x->out->nodes++;
    if (!judge_apart(&got->t, &want->t, &j))
        return false;
    found(x, got, want, &j);
    return true;
}

// The nodes of the graph asked about that items of an artifact come from, each once.
void diverge_origins(Search *x, const Artifact *from, const int *items, int n) {
    Pipeline *p = probe_session_pipeline(x->probe);
    int root = probe_session_unit(x->probe)->index;
    const Artifact *first = pipeline_at(p, root, pipeline_first_stage(p, root));
    Buf out = {.arena = x->arena};
    Map told = {.arena = x->arena};
    for (int i = 0; first && first->kind == ART_graph && i < n; i++) {
        Link itself = {items[i], LINK_same}, *links = &itself;
        int k = from == first ? 1 : pipeline_links(p, from, items[i], first, x->arena, &links);
        for (int q = 0; q < k && links[q].strength == links[0].strength; q++) {
            const Node *node = graph_by_id(first->graph, links[q].item);
            if (node && !map_find(&told, node->name)) {
                map_put(&told, node->name, x);
                buf_printf(&out, "%s%s", out.len ? " " : "", node->name);
            }
        }
    }
    x->out->origins = buf_str(&out);
}

// ---- graphs

static const Artifact *unchanged_from(const Artifact *a) {
    while (a && !a->changed && a->parent)
        a = a->parent;
    return a;
}

const Level *diverge_level(const Search *x, const Artifact *a) {
    for (int i = 0; i < x->levels.n; i++)
        if (x->levels.at[i]->art && unchanged_from(x->levels.at[i]->art) == unchanged_from(a))
            return x->levels.at[i];
    return NULL;
}

// In which half of a request the nodes of an artifact's graph ran.
int diverge_half(const Search *x, const Artifact *a) {
    const Unit *u = probe_session_unit(x->probe);
    if (!u->forward || a->stage == STAGE_fx)
        return 0;
    if (a->stage < STAGE_partition)
        return 1;
    for (int i = 0; i < u->backward->steps.n; i++)
        if (u->backward->steps.at[i] == a)
            return 1;
    return a->stage == STAGE_partition && u->steps.n && a == u->steps.at[u->steps.n - 1];
}

static const Node *node_named(const Graph *g, const char *name) {
    GRAPH_EACH (g, n)
        if (!strcmp(n->name, name))
            return n;
    return NULL;
}

// The value in the step before that a node equals.
static const Shown *counterpart(const Search *x, const Artifact *a, const Node *n) {
    // The step of the joint graph that says how it was parted ran nowhere: it holds the same graph.
    bool parted = a->parent && a->parent->partition;
    const Artifact *parent = unchanged_from(parted ? a->parent->parent : a->parent);
    const Level *before = parent ? diverge_level(x, parent) : NULL;
    int count = 0;
    const Link *links = a->origins ? origins_from(a->origins, n->id, &count) : NULL;
    const Graph *g =
        parent && parent->kind == ART_graph ? parent->whole ? parent->whole : parent->graph : NULL;
    for (int i = 0; before && g && i < count; i++) {
        const Node *from = links[i].strength == LINK_same ? graph_by_id(g, links[i].item) : NULL;
        const Shown *s =
            from ? diverge_seen(&before->trace, diverge_half(x, parent), from->name) : NULL;
        if (s)
            return s;
    }
    return NULL;
}

typedef struct Inputs {
    Arena *arena;
    VEC(const Node *) at;
} Inputs;

static void push_input(Node *input, void *ctx) {
    Inputs *in = ctx;
    vec_push(in->arena, &in->at, (const Node *)input);
}

// What a node reads in place of what the node of its name does where nothing is changed.
static void name_reads(Search *x, const Artifact *a, const Node *n, const Node *twin) {
    Inputs got = {.arena = x->arena}, want = got;
    Buf out = {.arena = x->arena};
    node_each_input(n, push_input, &got);
    node_each_input(twin, push_input, &want);
    int *items = ARENA_ARRAY(x->arena, got.at.n + 1, int), k = 0;
    items[k++] = n->id;
    for (int i = 0; got.at.n == want.at.n && i < got.at.n; i++)
        if (strcmp(got.at.at[i]->name, want.at.at[i]->name) != 0) {
            buf_printf(&out, "%s%s, not %s", out.len ? "; " : "", got.at.at[i]->name,
                       want.at.at[i]->name);
            items[k++] = got.at.at[i]->id;
        }
    if (k > 1)
        diverge_origins(x, a, items, k);
    x->out->reads = buf_str(&out);
}

static const Graph *graph_at(const Artifact *a) {
    return a->whole ? a->whole : a->graph;
}

// Inputs whose new values a graph returns stand before what the user gets.
int diverge_result_place(const Search *x, const char *result) {
    const Unit *u = probe_session_unit(x->probe);
    const Artifact *traced = pipeline_at(probe_session_pipeline(x->probe), u->index, STAGE_joint);
    int before = traced && traced->meta ? traced->meta->n_mutated : 0;
    return str_starts(result, "out") ? before + atoi(result + strlen("out")) : -1;
}

// What an item is a result of.
static const Node *whole_of(const Node *n) {
    while (node_is_item(n) && n->args[0].kind == VAL_node && n->args[0].node->op != FX_placeholder)
        n = n->args[0].node;
    return n;
}

// A view shows what another node computed: if nothing is known of that one, it is what is wrong.
static const Node *computing(const Search *x, const Artifact *a, const Node *n) {
    for (n = whole_of(n); n->def && n->def->tags & OPT_view && n->n_args; n = whole_of(n)) {
        const Node *from = n->args[0].kind == VAL_node ? n->args[0].node : NULL;
        if (!from || from->op == FX_placeholder || counterpart(x, a, from))
            break;
        n = from;
    }
    return n;
}

// Every value is what it should be: another one is returned than should.
static void name_returned(Search *x, const Level *l, const Artifact *a, const Artifact *twin) {
    Node **got, **want;
    const Graph *g = graph_at(a), *fx = pipeline_at(probe_session_pipeline(x->probe),
                                                    probe_session_unit(x->probe)->index, STAGE_fx)
                                            ->graph;
    const Node *last = graph_output_node(g);
    if (twin && last && graph_output_node(graph_at(twin)))
        name_reads(x, a, last, graph_output_node(graph_at(twin)));
    if (x->out->reads && *x->out->reads) {
        x->out->node = last->name;
        return;
    }
    int n = graph_results(g, &got, x->arena), n_want = graph_results(fx, &want, x->arena);
    int i = diverge_result_place(x, l->bad), k = str_starts(l->bad, "out") ? atoi(l->bad + 3) : -1;
    if (i < 0 || i >= n || k >= n_want || !got[i] || !want[k])
        return;
    const Node *by = whole_of(got[i]);
    x->out->node = by->name;
    x->out->op = by->target ? by->target : "";
    x->out->against = want[k]->name;
    x->out->pattern = arena_printf(x->arena, "returned as %s", l->bad);
    diverge_origins(x, a, &got[i]->id, 1);
}

// A write through a view after which its base is the node that it was: it is lost.
static void name_lost_writes(Search *x, const Artifact *a) {
    Pipeline *p = probe_session_pipeline(x->probe);
    const Artifact *fx = pipeline_at(p, probe_session_unit(x->probe)->index, STAGE_fx);
    Buf text = {.arena = x->arena}, origins = text;
    buf_puts(&origins, x->out->origins ? x->out->origins : "");
    for (int i = 0; a->log && fx && i < a->log->n_writes; i++) {
        const AotWrite *w = &a->log->writes[i];
        const Node *by = w->at < 0 ? NULL : graph_by_id(fx->graph, w->at);
        if (!by || w->backward || !*w->chain || w->base < 0 || w->new_base != w->base)
            continue;
        buf_printf(&text, "%s %s", text.len ? "," : "nothing of what is written by", by->name);
        buf_printf(&origins, " %s", by->name);
    }
    if (text.len) {
        x->out->reads = buf_str(&text);
        x->out->origins = buf_str(&origins);
    }
}

static void say_list_write(Search *x, const Node *n, const Node *read) {
    x->out->node = n->name;
    x->out->op = n->target;
    x->out->reads =
        arena_printf(x->arena,
                     "%s as it was before the call; eager writes one tensor of the list after the "
                     "other, and PyTorch's compiled code differs from its eager likewise",
                     read->name);
    x->out->origins = n->name;
}

// A tensor of a list is written, and a later item of the same call reads it: eager takes one item
// after the other, functionalization all of them from what was there before, in PyTorch as here.
static void name_list_writes(Search *x) {
    const Graph *g = probe_session_unit(x->probe)->loaded->graph;
    GRAPH_EACH (g, n) {
        if (n->op != FX_call_function || !foreach_writes(n->target) || !n->n_args)
            continue;
        for (int k = 1; k < n->n_args; k++)
            for (int i = 1; i < n->args[k].n && i < n->args[0].n; i++)
                for (int w = 0; w < i; w++)
                    if (n->args[k].at[i].kind == VAL_node &&
                        n->args[k].at[i].node == n->args[0].at[w].node)
                        say_list_write(x, n, n->args[k].at[i].node);
    }
}

static bool search_graph(Search *x, const Level *l, const Artifact *a, const Level *plain) {
    const Graph *g = graph_at(a);
    int half = diverge_half(x, a);
    for (int i = 0; i < l->trace.at.n; i++) {
        const Shown *s = &l->trace.at.at[i];
        const Node *n = s->half == half ? node_named(g, s->name) : NULL;
        const Shown *want = n && n->op != FX_placeholder ? counterpart(x, a, n) : NULL;
        if (n && n->op != FX_placeholder && !want && plain)
            want = diverge_seen(&plain->trace, half, s->name);
        if (!diverge_judged(x, s, want))
            continue;
        const Node *by = computing(x, a, n);
        x->out->node = by->name;
        x->out->op = by->target ? by->target : "";
        diverge_origins(x, a, &n->id, 1);
        const Node *twin = plain ? node_named(graph_at(plain->art), n->name) : NULL;
        if (twin)
            name_reads(x, a, n, twin);
        return true;
    }
    return false;
}

static void find_nan(Search *x, const Level *l) {
    for (int i = 0; i < l->trace.at.n && !x->out->first_nan; i++) {
        const Shown *s = &l->trace.at.at[i];
        for (int64_t k = 0; dtype_is_float(s->t.dtype) && k < tensor_numel(&s->t); k++) {
            double v = tensor_get_f64(&s->t, k);
            if (v - v != 0) {
                x->out->first_nan = s->name;
                break;
            }
        }
    }
}

// ---- the walk

static void blame(Search *x, Level *l, const Level *before, const Level *plain) {
    Divergence *o = x->out;
    o->found = true;
    o->stage = l->art ? l->art->stage : probe_rung_stage(l->rung);
    o->pass = l->art && l->art->pass ? l->art->pass : "";
    if (l->art) {
        if (!search_graph(x, l, l->art, plain))
            name_returned(x, l, l->art, plain ? plain->art : NULL);
        if (l->art->stage == STAGE_functional) {
            name_lost_writes(x, l->art);
            name_list_writes(x);
        }
        const Unit *u = probe_session_unit(x->probe);
        bool halves = u->forward && l->art->stage >= STAGE_partition;
        o->half = halves ? diverge_half(x, l->art) ? "backward" : "forward" : "";
    } else {
        diverge_buffers(x, l, before);
    }
    find_nan(x, l);
}

// Every value is right in the run that was looked at: what of the code changes from run to run?
static void find_unsteady(Search *x, const Level *before) {
    enum { RUNS = 6 };
    const Level *first = x->levels.at[x->levels.n - 1];
    x->out->found = true;
    x->out->stage = STAGE_kernels;
    x->out->pass = "";
    for (int i = 0; i < RUNS && !x->out->node; i++) {
        Level *l = run_level(x, NULL, RUNG_full, false);
        if (l->bad) {
            blame(x, l, before, NULL);
            return;
        }
        if (l->ok)
            diverge_changed(x, l, first);
    }
}

// Of forward's half of a partition backward's; else NULL.
static const Artifact *partition_of(const Search *x, const Unit *u, const Artifact *a) {
    const Unit *root = probe_session_unit(x->probe);
    return u == root->forward && a->stage == STAGE_partition
               ? pipeline_at(probe_session_pipeline(x->probe), root->backward->index,
                             STAGE_partition)
               : NULL;
}

// Steps of a unit that are graphs and were changed, up to a stage; true if one is at fault.
static bool walk_graphs(Search *x, const Unit *u, StageId last) {
    for (int i = 0; i < u->steps.n; i++) {
        const Artifact *a = u->steps.at[i];
        bool parted =
            u->forward && a->stage == STAGE_partition; // its halves are steps of their own
        if (a->kind != ART_graph || a->stage > last || a->stage <= STAGE_fx || parted ||
            (!a->changed && a->stage != STAGE_partition))
            continue;
        CaseRung rung = a->stage == STAGE_functional ? RUNG_aot_eager : RUNG_eager;
        if (a->stage > STAGE_functional)
            rung = RUNG_aot_eager_decomp_partition;
        Level *l = run_level(x, a, rung, false);
        if (!l->bad)
            continue;
        // Nothing of forward is wrong: what backward was made to read of it is.
        const Artifact *other = partition_of(x, u, a);
        if (other && !search_graph(x, l, a, NULL)) {
            Level *back = run_level(x, other, rung, false);
            l = back->bad ? back : l;
        }
        Level *plain = NULL;
        const Artifact *twin = a->stage == STAGE_functional && u->forward
                                   ? probe_session_plain(x->probe, STAGE_functional)
                                   : NULL;
        if (twin)
            plain = run_level(x, twin, RUNG_aot_eager, true);
        blame(x, l, NULL, plain);
        return true;
    }
    return false;
}

static void walk(Search *x) {
    const Unit *u = probe_session_unit(x->probe);
    StageId last = probe_rung_stage(x->q->rung);
    if (last > STAGE_post_grad)
        last = STAGE_post_grad;
    Level *fx = run_level(x, NULL, RUNG_eager, true);
    fx->art = u->steps.n ? pipeline_at(probe_session_pipeline(x->probe), u->index, STAGE_fx) : NULL;
    bool done = walk_graphs(x, u, last);
    for (int i = 0; u->forward && !done && i < 2; i++)
        done = walk_graphs(x, i ? u->backward : u->forward, last);
    Level *before = NULL;
    for (int r = RUNG_aot_eager_decomp_partition + 1; !done && r <= (int)x->q->rung; r++) {
        Level *l = run_level(x, NULL, (CaseRung)r, false);
        done = l->bad != NULL;
        if (done)
            blame(x, l, before, NULL);
        if (!done && r == (int)x->q->rung && r == RUNG_full)
            find_unsteady(x, before);
        before = l;
    }
}

static void reply(Search *x) {
    Message *m = x->call->reply;
    const Divergence *o = x->out;
    message_int(m, "found", o->found);
    message_int(m, "stage", o->stage);
    message_int(m, "nodes", o->nodes);
    const struct {
        const char *name, *text;
    } texts[] = {{"pass", o->pass},       {"half", o->half},
                 {"node", o->node},       {"op", o->op},
                 {"against", o->against}, {"kernel", o->kernel},
                 {"type", o->type},       {"at", o->at},
                 {"pattern", o->pattern}, {"first_nan", o->first_nan},
                 {"reads", o->reads},     {"origins", o->origins}};
    for (int i = 0; i < COUNT(texts); i++)
        message_text(m, texts[i].name, texts[i].text ? texts[i].text : "");
    ProbeRow row = {.name = "", .type = "", .judged = o->judged, .got = o->got, .want = o->want};
    probe_put_row(m, 0, &row);
}

bool session_diverge(HelperCall *c, ProbeSession *s, const ProbeQuery *q) {
    Divergence out = {0};
    Search x = {.call = c, .tapped = *c, .probe = s, .q = q, .arena = c->arena, .out = &out};
    Diag quiet = {.arena = c->arena};
    StageId failed;
    x.tapped.tap = see;
    x.want = (ProbeRun){.rung = q->against, .plain = true};
    x.exact = (ProbeRun){.rung = RUNG_eager, .in_f64 = true, .plain = true};
    if (probe_session_build(s, q->rung, false, &failed, &quiet) &&
        probe_session_run(s, &x.want, c, c->arena, &quiet)) {
        probe_session_run(s, &x.exact, c, c->arena, &quiet);
        walk(&x);
    }
    reply(&x);
    rt_drop(&out.got);
    rt_drop(&out.want);
    drop_run(&x.want);
    drop_run(&x.exact);
    drop_levels(&x);
    return true;
}
