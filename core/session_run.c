// session_run.c: runs go to a helper as text and tensors and come back as tensors and times.
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "core/inductor/program.h"
#include "core/session_private.h"

Helpers *session_helpers(Session *s) {
    if (!s->helpers) {
        Diag d = {.arena = &s->arena};
        s->helpers = helpers_new(2, session_call, &d);
    }
    return s->helpers;
}

void session_add_value(Message *m, const char *name, const RtValue *v) {
    switch (v->kind) {
    case RT_tensor:
        message_tensor(m, name, &v->tensor);
        break;
    case RT_int:
        message_int(m, name, v->i);
        break;
    case RT_bool:
        message_int(m, name, v->b);
        break;
    case RT_float:
        message_float(m, name, v->f);
        break;
    case RT_none:
    case RT_list:
    case RT_other:
        break;
    }
}

// Generated code takes the constants of its graph as further inputs.
int session_add_module_consts(Session *s, Message *m, const IrModule *module, const char *name,
                              int from) {
    for (int i = 0; i < module->constants.n; i++) {
        const char *path = module->constants.at[i]->name;
        const Tensor *t = map_get(&s->model->state, path);
        for (int k = 0; !t && k < module->graph->consts.n; k++)
            if (!strcmp(module->graph->consts.at[k].name, path))
                t = module->graph->consts.at[k].tensor;
        if (t)
            message_tensor(m, arena_printf(m->arena, "%s%d", name, from + i), t);
    }
    return module->constants.n;
}

// Those of nested graphs stand under the names of these.
static void add_consts(Session *s, Message *m, const Graph *g, const char *prefix) {
    for (int i = 0; i < g->consts.n; i++) {
        const GraphConst *c = &g->consts.at[i];
        const Tensor *t = c->tensor ? c->tensor : map_get(&s->model->state, c->name);
        if (t)
            message_tensor(m, arena_printf(m->arena, "const.%s%s", prefix, c->name), t);
    }
    for (int i = 0; i < g->children.n; i++)
        add_consts(s, m, g->children.at[i].graph,
                   arena_printf(m->arena, "%s%s.", prefix, g->children.at[i].name));
}

void session_add_consts(Session *s, Message *m, const Graph *g) {
    add_consts(s, m, g, "");
}

static void add_values(Message *m, const char *name, const RtValue *v, int n) {
    for (int i = 0; i < n; i++)
        session_add_value(m, arena_printf(m->arena, "%s%d", name, i), &v[i]);
}

static void drop_values(RtValue *v, int n) {
    for (int i = 0; i < n; i++)
        rt_drop(&v[i]);
}

// By input the argument: aN it is, rN it is all of a base, wN part of a base that is no input and
// so has a part of its gradient, vN part of a base that is one.
void session_add_argument_map(Message *m, const Unit *u, int n) {
    Buf map = {.arena = m->arena};
    for (int i = 0; i < n; i++) {
        int arg = u->merged->arg_of[i];
        const InputAlias *at = &u->aliases->of[i];
        int root = at->storage < 0 ? -1 : u->aliases->storages[at->storage].input;
        bool view = u->merged->is_view[i], whole = i == root || (at->same >= 0 && at->same == root);
        buf_printf(&map, "%c%d ", !view ? 'a' : whole ? 'r' : root < 0 ? 'w' : 'v', arg);
    }
    message_text(m, "arg_of", buf_str(&map));
}

void session_add_outer(Message *m, const Unit *u, const RtValue *in, int n) {
    if (!u->merged)
        return;
    Buf reshaped = {.arena = m->arena};
    for (int i = 0; i < u->merged->n_reshaped; i++)
        buf_printf(&reshaped, "%d ", u->merged->reshaped[i]);
    add_values(m, "x", in, n);
    message_int(m, "n_x", n);
    message_text(m, "reshaped", buf_str(&reshaped));
    session_add_argument_map(m, u, n);
}

void session_add_same(Message *m, const Unit *u) {
    Buf same = {.arena = m->arena};
    for (int i = 0; u->merged && i < u->aliases->n; i++)
        buf_printf(&same, "%d ", u->aliases->of[i].same);
    message_text(m, "same", buf_str(&same));
}

// New values of inputs, which a traced graph returns before its results.
void session_add_mutated(Message *m, const AotMeta *meta) {
    Buf text = {.arena = m->arena};
    for (int i = 0; meta && i < meta->n_mutated; i++)
        buf_printf(&text, "%d%s ", meta->mutated[i],
                   meta->inputs[meta->mutated[i]].mutates_metadata ? "m" : "");
    message_text(m, "mutated", buf_str(&text));
}

// Of the captured graph, or of what is traced with its inputs merged.
static bool add_inputs(Session *s, Message *m, const RunRequest *r, bool captured, int *n,
                       Diag *d) {
    const Unit *u = pipeline_unit(s->pipeline, r->unit);
    RtValue *inputs, *args = NULL;
    int n_inputs, n_args = 0;
    if (!session_inputs(s, r->unit, m->arena, &inputs, &n_inputs, d))
        return false;
    bool ok = (!r->in_f64 || session_widen(inputs, n_inputs, d)) &&
              (captured || session_args(s, u, inputs, n_inputs, m->arena, &args, &n_args, d));
    *n = captured ? n_inputs : n_args;
    if (ok)
        add_values(m, "in", captured ? inputs : args, *n);
    if (ok)
        session_add_memory(m, u, inputs);
    if (ok)
        session_add_same(m, u);
    if (ok && !captured)
        session_add_outer(m, u, inputs, n_inputs);
    drop_values(inputs, n_inputs);
    if (!captured)
        drop_values(args, n_args);
    return ok;
}

// The stage that a rung runs, or the first one that this form of model has.
static StageId stage_to_run(const Session *s, const RunRequest *r) {
    StageId stage = backend_info[r->backend].executes,
            first = pipeline_first_stage(s->pipeline, r->unit);
    return stage < first ? first : stage;
}

// The request that the text came with will be gone.
static const char *copied(const Diag *to, const char *text) {
    return text ? arena_strdup(to->arena, text) : NULL;
}

void session_copy_errors(Diag *to, const Diag *from, const char *what) {
    for (int i = 0; i < from->n; i++) {
        DiagItem *item = diag_error(to,
                                    (Place){copied(to, from->at[i].file), from->at[i].line,
                                            from->at[i].col, copied(to, from->at[i].source)},
                                    "%s", from->at[i].text);
        item->kind = from->at[i].kind;
        item->hint = copied(to, from->at[i].hint);
        item->cause = from->at[i].cause;
    }
    if (!from->errors)
        diag_fail(to, "%s", what);
}

static void fill_code(Session *s, Message *m, const RunRequest *r, const Artifact *a, int n_in) {
    const Toolchain *t = r->toolchain ? r->toolchain : s->toolchain;
    message_text(m, "code", a->code->text);
    message_text(m, "toolchain", t->name);
    message_int(m, "n_out", graph_n_outputs(unit_last_graph(s->pipeline, r->unit)));
    const Artifact *fused = pipeline_at(s->pipeline, r->unit, STAGE_post_fusion);
    session_add_module_consts(s, m, fused->schedule->module, "in", n_in);
}

void session_add_program(Message *m, const char *name, const RunRequest *r, int unit,
                         const Artifact *own) {
    Buf text = {.arena = m->arena};
    const Schedule *other = r->loops ? r->loops[unit] : NULL;
    program_print(&text, other ? other : own->schedule, other ? NULL : own->plan);
    message_text(m, name, buf_str(&text));
}

static void fill_loops(Session *s, Message *m, const RunRequest *r, const Artifact *a, int n_in) {
    session_add_program(m, "loops", r, r->unit, a);
    session_add_module_consts(s, m, a->schedule->module, "in", n_in);
}

void session_add_graph(Session *s, Message *m, const char *name, const Graph *g, StageId of) {
    Buf text = {.arena = m->arena};
    if (of >= STAGE_joint_passes) {
        Graph *loose = graph_copy(m->arena, g);
        GRAPH_EACH (loose, n)
            if (n->def && n->def->id == OP_aten_view_default) {
                n->def = op_at(OP_aten_reshape_default);
                n->target = n->def->qualname;
            }
        g = loose;
    }
    graph_print(&text, g, &fx_style_log, NULL);
    message_text(m, name, buf_str(&text));
    session_add_consts(s, m, g);
}

static bool fill_inference(Session *s, Message *m, const RunRequest *r, Diag *d) {
    StageId stage = r->at ? r->at->stage : stage_to_run(s, r);
    const Artifact *a = r->at ? r->at : pipeline_build(s->pipeline, r->unit, stage);
    int n_in;
    if (!a) {
        session_copy_errors(d, &pipeline_unit(s->pipeline, r->unit)->diag,
                            "the stage could not be built");
        return false;
    }
    if (!add_inputs(s, m, r, stage <= STAGE_fx, &n_in, d))
        return false;
    if (a->kind == ART_code)
        fill_code(s, m, r, a, n_in);
    else if (a->kind == ART_schedule)
        fill_loops(s, m, r, a, n_in);
    else
        session_add_graph(s, m, "graph", a->graph, a->stage);
    const Artifact *traced = pipeline_at(
        s->pipeline, r->unit, stage == STAGE_functional ? STAGE_functional : STAGE_joint);
    if (stage > STAGE_fx && traced && traced->meta &&
        graph_n_outputs(a->kind == ART_graph ? a->graph : unit_last_graph(s->pipeline, r->unit)) ==
            traced->meta->n_mutated + traced->meta->n_outputs)
        session_add_mutated(m, traced->meta);
    return true;
}

// Tracing leaves no seed in a graph: the first one begins the run, others are lost.
static void tell_lost_seed(const Graph *g, const RunRequest *r, Diag *d) {
    int seeds = 0;
    GRAPH_EACH (g, n) {
        seeds += node_seeds(n);
        if (!node_seeds(n) || seeds != 2 || r->backend == BACKEND_eager)
            continue;
        diag_warning(d, node_place(n), "%s: a second seed has no effect in a traced graph", n->name)
            ->hint = "PyTorch breaks the graph here; --backend eager follows it";
    }
}

static bool fill(Session *s, Message *m, const RunRequest *r, ServiceId *service, Diag *d) {
    Unit *u = pipeline_unit(s->pipeline, r->unit), *root = u->parent ? u->parent : u;
    if (root->loaded)
        tell_lost_seed(root->loaded->graph, r, d);
    bool full = r->backend == BACKEND_full && !r->at, train = root->forward != NULL;
    if (root->loaded && !session_can_run(s, root->loaded->graph, d))
        return false;
    if (full && !r->toolchain && !s->toolchain) {
        diag_tool(d, "no toolchain works here")->hint = "fxray doctor tells what is missing";
        return false;
    }
    if (!(train ? session_fill_train(s, m, r, root, d) : fill_inference(s, m, r, d)))
        return false;
    *service = train                      ? SERVICE_train
               : full                     ? SERVICE_code
               : message_find(m, "loops") ? SERVICE_loops
                                          : SERVICE_eager;
    message_int(m, "f64", r->in_f64);
    message_int(m, "jitter", r->jitter);
    message_int(m, "threads", session_threads(s));
    message_int(m, "seed",
                root->loaded ? graph_seed(root->loaded->graph, s->given.seed) : s->given.seed);
    message_int(m, "repeat", r->repeat);
    message_int(m, "poison", r->poison);
    message_text(m, "until", r->until ? r->until : "");
    return true;
}

Request *session_run_start(Session *s, const RunRequest *r, Diag *d) {
    Arena arena = {0};
    Message m = {.arena = &arena};
    Request *q = NULL;
    ServiceId service;
    if (!session_helpers(s))
        diag_tool(d, "no helper process could be started");
    else if (fill(s, &m, r, &service, d))
        q = helpers_send(s->helpers, service, &m, (RequestLimits){0});
    message_drop(&m);
    arena_free(&arena);
    return q;
}

static RtValue take_value(const Field *f) {
    RtValue v = {0};
    if (!f)
        return v;
    switch (f->kind) {
    case FIELD_tensor:
        v.kind = RT_tensor;
        v.tensor = tensor_keep(&f->tensor);
        break;
    case FIELD_int:
        v.kind = RT_int;
        v.i = f->i;
        break;
    case FIELD_float:
        v.kind = RT_float;
        v.f = f->f;
        break;
    case FIELD_text:
        break;
    }
    return v;
}

static RtValue *take_values(const Message *m, const char *prefix, int n, Arena *a) {
    RtValue *v = ARENA_ARRAY(a, n + 1, RtValue);
    for (int i = 0; i < n; i++)
        v[i] = take_value(message_find(m, arena_printf(a, "%s%d", prefix, i)));
    return v;
}

// Lines "name median min p90 runs".
static void take_kernels(const char *text, Timing *t, Arena *a) {
    VEC(KernelTime) kernels = {0};
    while (*text) {
        char name[512];
        long long median, min, p90;
        int runs;
        if (sscanf(text, "%511s %lld %lld %lld %d", name, &median, &min, &p90, &runs) == 5)
            vec_push(a, &kernels, (KernelTime){arena_strdup(a, name), median, min, p90, runs});
        text = strchr(text, '\n');
        if (!text)
            break;
        text++;
    }
    t->kernels = kernels.at;
    t->n_kernels = kernels.n;
}

// Of a training run: only the median is known.
static Timing half(int64_t ns, int runs) {
    return (Timing){.median_ns = ns, .min_ns = ns, .p90_ns = ns, .runs = runs};
}

static void take_result(const Message *m, RunResult *out, Arena *a) {
    *out = (RunResult){0};
    out->n_outputs = (int)message_get_int(m, "n_out", 0);
    out->outputs = take_values(m, "out", out->n_outputs, a);
    out->n_inputs = (int)message_get_int(m, "n_in", 0);
    out->inputs = take_values(m, "in", out->n_inputs, a);
    out->compile_ns = message_get_int(m, "compile_ns", 0);
    out->cached = message_get_int(m, "cached", 0) != 0;
    Timing *t = &out->timing;
    t->median_ns = message_get_int(m, "median_ns", 0);
    t->min_ns = message_get_int(m, "min_ns", 0);
    t->p90_ns = message_get_int(m, "p90_ns", 0);
    t->runs = (int)message_get_int(m, "runs", 0);
    t->noisy = (double)t->p90_ns > 1.3 * (double)t->median_ns;
    take_kernels(message_get_text(m, "kernels", ""), t, a);
    out->n_grads = (int)message_get_int(m, "n_grad", 0);
    out->grads = take_values(m, "grad", out->n_grads, a);
    out->forward = half(message_get_int(m, "forward_ns", 0), t->runs);
    out->backward = half(message_get_int(m, "backward_ns", 0), t->runs);
    take_kernels(message_get_text(m, "kernels1", ""), &out->forward, a);
    take_kernels(message_get_text(m, "kernels2", ""), &out->backward, a);
}

bool session_run_result(Session *s, Request *q, RunResult *out, Arena *a, Diag *d) {
    (void)s;
    if (request_state(q) != REQ_done) {
        bool cancelled = request_state(q) == REQ_cancelled;
        session_copy_errors(d, request_diag(q),
                            cancelled ? "cancelled" : "the helper gave no answer");
        return false;
    }
    take_result(request_reply(q), out, a);
    return true;
}

// The memory that inputs share, whole: m0 … of a request. NULL: nobody shares this one.
static const Tensor *shared_memory(const Message *m, const Storage *of) {
    for (int i = 0; i < m->fields.n; i++) {
        const Field *f = &m->fields.at[i];
        bool whole = f->kind == FIELD_tensor && f->name[0] == 'm' && isdigit((uint8_t)f->name[1]);
        if (whole && f->tensor.storage == of)
            return &f->tensor;
    }
    return NULL;
}

// What would reach a helper as a copy is copied; what shares memory there does in the copy.
static bool detach(Message *m, Diag *d) {
    Tensor *fresh = ARENA_ARRAY(m->arena, m->fields.n + 1, Tensor);
    bool *done = ARENA_ARRAY(m->arena, m->fields.n + 1, bool), ok = true;
    for (int i = 0; ok && i < m->fields.n; i++) {
        Tensor copy, *t = &m->fields.at[i].tensor;
        if (m->fields.at[i].kind != FIELD_tensor || done[i])
            continue;
        const Tensor *whole = shared_memory(m, t->storage);
        ok = whole ? tensor_to(&copy, whole, whole->dtype, d)
                   : tensor_new_strided(&copy, t->dtype, t->ndim, t->size, t->stride, d);
        if (!ok)
            break;
        if (!whole)
            tensor_copy(&copy, t);
        for (int k = i; k < m->fields.n; k++) {
            Field *f = &m->fields.at[k];
            if (f->kind != FIELD_tensor || (whole ? f->tensor.storage != whole->storage : k != i))
                continue;
            fresh[k] = whole ? f->tensor : copy;
            fresh[k].storage = storage_keep(copy.storage);
            done[k] = true;
        }
        tensor_drop(&copy);
    }
    for (int i = 0; i < m->fields.n; i++)
        if (done[i]) {
            tensor_drop(&m->fields.at[i].tensor);
            m->fields.at[i].tensor = fresh[i];
        }
    return ok;
}

bool session_run_here(Session *s, const RunRequest *r, RunResult *out, Arena *a, Diag *d) {
    Message m = {.arena = a}, reply = {.arena = a};
    HelperCall call = *s->here;
    ServiceId service;
    call.arena = a;
    call.diag = d;
    bool ok =
        fill(s, &m, r, &service, d) && detach(&m, d) && helper_serve(&call, service, &m, &reply);
    if (ok)
        take_result(&reply, out, a);
    message_drop(&reply);
    message_drop(&m);
    return ok;
}

bool session_run(Session *s, const RunRequest *r, RunResult *out, Arena *a, Diag *d) {
    *out = (RunResult){0};
    if (s->here)
        return session_run_here(s, r, out, a, d);
    Request *q = session_run_start(s, r, d);
    if (!q)
        return false;
    request_wait(s->helpers, q, NULL);
    bool ok = session_run_result(s, q, out, a, d);
    request_free(q);
    return ok;
}

void session_run_free(RunResult *r) {
    for (int i = 0; i < r->n_outputs; i++)
        rt_drop(&r->outputs[i]);
    for (int i = 0; i < r->n_inputs; i++)
        rt_drop(&r->inputs[i]);
    for (int i = 0; i < r->n_grads; i++)
        rt_drop(&r->grads[i]);
    *r = (RunResult){0};
}
