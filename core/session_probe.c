// session_probe.c: what the debugger asks of a session. In a helper: the graph of a question
// becomes a session of its own whose runs are made in that process. Here: the session's state as a
// question.
#include <string.h>

#include "core/debug/minify.h"
#include "core/session_private.h"
#include "core/session_probe.h"

// ---- in the helper

typedef enum ProbeCall { CALL_probe, CALL_diverge, CALL_list, CALL_text } ProbeCall;

struct ProbeSession {
    HelperCall *call;
    const ProbeQuery *q;
    Session *s, *plain; // plain NULL: nothing is overridden or set
};

static void say_step(void *ctx, StageId stage, const char *pass) {
    const ProbeSession *o = ctx;
    char *phase = o->call->phase;
    if (!str_starts(phase, "rung"))
        return;
    Arena tmp = {0};
    const char *text = arena_printf(&tmp, "rung %s%s%s", stage_info[stage].name, pass ? " " : "",
                                    pass ? pass : "");
    strncpy(phase, text, EXEC_WHERE_BYTES - 1);
    arena_free(&tmp);
}

static void give_consts(Graph *g, const Map *state, const char *prefix) {
    for (MapEntry *e = map_first(state); e; e = map_next(state, e)) {
        const char *name = e->key;
        if (!str_starts(name, prefix))
            continue;
        name += strlen(prefix);
        GraphConst *known = NULL;
        for (int i = 0; i < g->consts.n; i++)
            if (!strcmp(g->consts.at[i].name, name))
                known = &g->consts.at[i];
        if (known)
            known->tensor = e->ptr;
        else if (!strchr(name, '.') || !g->children.n)
            vec_push(g->arena, &g->consts, (GraphConst){.name = name, .tensor = e->ptr});
    }
    for (int i = 0; i < g->children.n; i++)
        give_consts(g->children.at[i].graph, state,
                    arena_printf(g->arena, "%s%s.", prefix, g->children.at[i].name));
}

static void give_hints(Session *s, Node *const *p, int n) {
    for (int i = 0; i < n; i++) {
        const TensorMeta *m = node_tensor(p[i]);
        const RtValue *v = &s->real[i];
        if (p[i]->val.kind == VAL_sym && v->kind == RT_int &&
            expr_kind(p[i]->val.sym) == SYM_symbol)
            sym_set_hint(s->model->sym, p[i]->val.sym, v->i);
        for (int k = 0; m && v->kind == RT_tensor && k < m->ndim && k < v->tensor.ndim; k++)
            sym_learn_hint(s->model->sym, m->size[k], v->tensor.size[k]);
    }
    sym_hint_rest(s->model->sym, 4096);
}

static bool load_graph(Session *s, const ProbeQuery *q, Diag *d) {
    LoadedModel *m = ARENA_NEW(&s->arena, LoadedModel);
    FxDoc doc = {.arena = &s->arena};
    *m = (LoadedModel){.arena = &s->arena,
                       .sym = sym_new(&s->arena),
                       .path = "",
                       .name = "probe",
                       .form = "probe"};
    m->state.arena = &s->arena;
    if (!fx_parse(&doc, m->sym, q->text, "graph", d) || !doc.n) {
        if (!d->errors)
            diag_fail(d, "the question holds no graph");
        return false;
    }
    Graph *g = doc.at[0].graph;
    give_consts(g, q->state, "");
    Node **p;
    int n = graph_placeholders(g, &p, &s->arena);
    if (n != q->n_inputs) {
        diag_fail(d, "%d inputs are given, the graph takes %d", q->n_inputs, n);
        return false;
    }
    InputSpec *inputs = ARENA_ARRAY(&s->arena, n + 1, InputSpec);
    for (int i = 0; i < n; i++)
        inputs[i] = (InputSpec){.kind = q->kinds[i], .user = -1};
    LoadedGraph loaded = {.graph = g,
                          .title = "probe",
                          .kind = q->kind,
                          .level = q->level,
                          .inputs = inputs,
                          .n_inputs = n,
                          .needs_grad = q->needs_grad};
    vec_push(&s->arena, &m->graphs, loaded);
    s->model = m;
    s->real = q->inputs;
    s->n_real = n;
    give_hints(s, p, n);
    return true;
}

static bool apply_sets(Session *s, const char *const *sets, Diag *d) {
    for (int i = 0; sets && sets[i]; i++) {
        const char *eq = strchr(sets[i], '=');
        // Custom passes run in helpers, and this is one.
        if (!eq || strstr(sets[i], "custom_p"))
            continue;
        if (!session_set(s, arena_strndup(&s->arena, sets[i], (size_t)(eq - sets[i])), eq + 1, d))
            return false;
    }
    return true;
}

static bool apply_aliases(Session *s, const ProbeQuery *q, Diag *d) {
    const Graph *g = s->model->graphs.at[0].graph;
    for (int i = 0; i < q->n_aliases; i++)
        if (probe_alias_is_met(&q->aliases[i], g) &&
            !session_alias(s, q->aliases[i].input, probe_alias_text(&q->aliases[i], &s->arena), d))
            return false;
    return true;
}

static Session *open_query(ProbeSession *o, bool plain, bool taps, Diag *d) {
    Arena arena = {0};
    Session *s = ARENA_NEW(&arena, Session);
    s->arena = arena;
    s->options = pipeline_options_default();
    s->options.device = (Device){DEV_cpu, -1};
    s->options.on_step = say_step;
    s->options.step_ctx = o;
    s->options.taps = taps;
    s->here = o->call;
    s->given = (SessionOptions){.seed = o->q->seed, .threads = o->q->threads};
    s->toolchain = o->q->toolchain;
    s->overrides = overrides_new(&s->arena);
    s->options.overrides = plain ? NULL : o->q->overrides;
    if (!load_graph(s, o->q, d) || !apply_aliases(s, o->q, d) ||
        (!plain && !apply_sets(s, o->q->sets, d))) {
        s->model = NULL; // its tensors are the message's
        session_close(s);
        return NULL;
    }
    s->options.grad = GRAD_none; // the question says which
    s->pipeline = pipeline_new(s->model, &s->options);
    return s;
}

static bool has_limit(const Overrides *o) {
    for (int k = 0; k < DECIDE_n_kinds; k++)
        if (decide_limit_at(o, (DecisionKind)k) >= 0)
            return true;
    return false;
}

ProbeSession *probe_session_open(HelperCall *c, const ProbeQuery *q, bool taps, Diag *d) {
    ProbeSession *o = ARENA_NEW(c->arena, ProbeSession);
    *o = (ProbeSession){.call = c, .q = q};
    o->s = open_query(o, false, taps, d);
    bool changed =
        (q->sets && q->sets[0]) || overrides_count(q->overrides) || has_limit(q->overrides);
    if (o->s && changed)
        o->plain = open_query(o, true, taps, d);
    return o->s ? o : NULL;
}

void probe_session_close(ProbeSession *o) {
    Session *both[2] = {o->s, o->plain};
    for (int i = 0; i < 2; i++)
        if (both[i]) {
            both[i]->model = NULL; // its tensors are the message's
            session_close(both[i]);
        }
}

static Session *session_for(const ProbeSession *o, bool plain) {
    return plain && o->plain ? o->plain : o->s;
}

const Unit *probe_session_unit(const ProbeSession *o) {
    return pipeline_unit(o->s->pipeline, 0);
}

Pipeline *probe_session_pipeline(const ProbeSession *o) {
    return o->s->pipeline;
}

const Session *probe_session_session(const ProbeSession *o) {
    return o->s;
}

StageId probe_rung_stage(CaseRung rung) {
    return backend_info[rung].executes;
}

const Artifact *probe_session_plain(ProbeSession *o, StageId stage) {
    return o->plain ? pipeline_build(o->plain->pipeline, 0, stage) : NULL;
}

static StageId stage_of(const Session *s, CaseRung rung) {
    StageId stage = backend_info[rung].executes, first = pipeline_first_stage(s->pipeline, 0);
    return stage < first ? first : stage;
}

bool probe_session_build(ProbeSession *o, CaseRung rung, bool plain, StageId *failed, Diag *d) {
    Session *s = session_for(o, plain);
    Pipeline *p = s->pipeline;
    StageId stage = stage_of(s, rung);
    for (int i = 0; i < pipeline_n_units(p); i++) {
        const Unit *u = pipeline_unit(p, i);
        bool joint = u->forward != NULL;
        if (joint && stage > STAGE_partition)
            continue;
        if (u->parent && stage <= STAGE_partition)
            continue;
        if (pipeline_build(p, i, stage))
            continue;
        const Unit *blame = unit_to_blame(u);
        *failed = blame ? blame->failed : stage;
        if (!blame || !session_unit_errors(s, blame->index, d))
            diag_fail(d, "stage %s could not be built", stage_info[*failed].name);
        return false;
    }
    return true;
}

static void add(ProbeRun *r, Arena *a, const char *name, int i, RtValue *v) {
    if (v->kind != RT_none)
        vec_push(a, &r->values, (ProbeValue){arena_printf(a, "%s%d", name, i), *v});
    *v = (RtValue){0};
}

static bool same_as_given(const RtValue *v, const RtValue *given) {
    TensorDiff diff;
    if (v->kind != RT_tensor || given->kind != RT_tensor)
        return true;
    const Tensor *a = &v->tensor, *b = &given->tensor;
    if (a->dtype != b->dtype || a->ndim != b->ndim || memcmp(a->size, b->size, sizeof a->size) != 0)
        return false;
    tensor_diff(a, b, 0, 0, &diff);
    return diff.same_bits;
}

// New values of inputs that a graph returns stand before what the user gets.
static void name_values(const Session *s, ProbeRun *r, RunResult *got, Arena *a) {
    const Unit *u = pipeline_unit(s->pipeline, 0);
    const Artifact *traced = pipeline_at(s->pipeline, 0, STAGE_joint);
    const AotMeta *meta = traced ? traced->meta : NULL;
    int user = graph_n_outputs(u->loaded->graph), extra = got->n_outputs - user;
    if (u->forward || extra < 0)
        extra = 0;
    for (int i = 0; i < extra; i++)
        if (meta && i < meta->n_mutated && meta->mutated[i] < got->n_inputs) {
            rt_drop(&got->inputs[meta->mutated[i]]);
            got->inputs[meta->mutated[i]] = got->outputs[i];
            got->outputs[i] = (RtValue){0};
        }
    for (int i = extra; i < got->n_outputs; i++)
        add(r, a, "out", i - extra, &got->outputs[i]);
    for (int i = 0; i < got->n_inputs && i < s->n_real; i++)
        if (!same_as_given(&got->inputs[i], &s->real[i]))
            add(r, a, "after", i, &got->inputs[i]);
    for (int i = 0; i < got->n_grads; i++)
        add(r, a, "grad", i, &got->grads[i]);
}

bool probe_session_run(ProbeSession *o, ProbeRun *r, const HelperCall *call, Arena *a, Diag *d) {
    Session *s = session_for(o, r->plain);
    RunRequest request = {.backend = (Backend)r->rung,
                          .toolchain = r->toolchain,
                          .in_f64 = r->in_f64,
                          .jitter = r->jitter,
                          .at = r->at,
                          .poison = r->poison,
                          .until = r->until};
    RunResult got = {0};
    s->here = call;
    bool ok = session_run(s, &request, &got, a, d);
    s->here = o->call;
    if (ok)
        name_values(s, r, &got, a);
    session_run_free(&got);
    return ok;
}

static bool draws(const Graph *g) {
    GRAPH_EACH (g, n)
        if (n->def && n->def->tags & OPT_random)
            return true;
    for (int i = 0; i < g->children.n; i++)
        if (draws(g->children.at[i].graph))
            return true;
    return false;
}

// By the functional graph: dropout of a torch-level graph shows there.
bool probe_session_random(ProbeSession *o) {
    Session *s = session_for(o, true);
    const Artifact *a = pipeline_build(s->pipeline, 0, stage_of(s, RUNG_aot_eager));
    const Graph *g = a && a->kind == ART_graph ? a->whole ? a->whole : a->graph : NULL;
    return draws(g ? g : pipeline_unit(s->pipeline, 0)->loaded->graph);
}

static bool build(void *ctx, CaseRung rung, bool plain, StageId *failed, Diag *d) {
    return probe_session_build(ctx, rung, plain, failed, d);
}

static bool run(void *ctx, ProbeRun *r, Arena *a, Diag *d) {
    ProbeSession *o = ctx;
    return probe_session_run(o, r, o->call, a, d);
}

static int fired(void *ctx) {
    const ProbeSession *o = ctx;
    int n = 0;
    for (int i = 0; i < pipeline_n_units(o->s->pipeline); i++) {
        const Decisions *d = pipeline_unit(o->s->pipeline, i)->decisions;
        for (int k = 0; k < decisions_count(d); k++)
            n += decisions_at(d, k)->ask.kind == DECIDE_fault && decisions_at(d, k)->result;
    }
    return n;
}

DType probe_session_computed_in(ProbeSession *o, const char *name, DType own) {
    return session_computed_in(session_for(o, true), name, own);
}

static DType computed_in(void *ctx, const char *name, DType own) {
    return probe_session_computed_in(ctx, name, own);
}

static bool answer_probe(HelperCall *c, ProbeCall what) {
    ProbeQuery q;
    bool search = what == CALL_diverge;
    ProbeSession *o = probe_read(c, &q) ? probe_session_open(c, &q, search, c->diag) : NULL;
    if (!o)
        return false;
    if (what == CALL_list || what == CALL_text) {
        bool done = what == CALL_list ? session_list_states(c, o, &q) : session_text_states(c, o);
        probe_session_close(o);
        return done;
    }
    ProbeRunner runner = {.ctx = o,
                          .build = build,
                          .run = run,
                          .fired = fired,
                          .computed_in = computed_in,
                          .nodes = o->s->model->graphs.at[0].graph->n_nodes,
                          .random = probe_session_random(o)};
    bool ok = search ? session_diverge(c, o, &q) : probe_answer(c, &q, &runner);
    probe_session_close(o);
    return ok;
}

// The graph of a question run on its rung, its values shown.
typedef struct Shown {
    ProbeSession *o;
    HelperCall *call;
    const char *until; // NULL: all of the run, which must not fail
} Shown;

static bool run_shown(void *ctx, HelperCall *tapped) {
    const Shown *x = ctx;
    bool plain = x->o->q->rung == RUNG_eager;
    ProbeRun r = {.rung = x->o->q->rung,
                  .toolchain = x->o->q->toolchain,
                  .plain = plain,
                  .until = x->until};
    StageId failed;
    Diag quiet = {.arena = x->call->arena};
    tapped->diag = x->until ? &quiet : tapped->diag;
    bool ok = probe_session_build(x->o, r.rung, plain, &failed, tapped->diag) &&
              probe_session_run(x->o, &r, tapped, x->call->arena, tapped->diag);
    Buf written = {.arena = x->call->arena};
    for (int i = 0; i < r.values.n; i++) {
        const char *name = r.values.at[i].name;
        if (str_starts(name, "after"))
            buf_printf(&written, "%s ", name + strlen("after"));
        rt_drop(&r.values.at[i].v);
    }
    message_text(x->call->reply, "written", buf_str(&written));
    return ok || x->until;
}

static bool answer_values(HelperCall *c) {
    ProbeQuery q;
    Shown x = {.call = c, .until = message_get_text(c->message, "until", NULL)};
    if (!probe_read(c, &q) || !(x.o = probe_session_open(c, &q, false, c->diag)))
        return false;
    bool ok = minify_values_reply(c, run_shown, &x);
    probe_session_close(x.o);
    return ok;
}

static bool answer_look(HelperCall *c) {
    LookQuery q;
    ProbeSession *o = look_read(c, &q) ? probe_session_open(c, &q.probe, true, c->diag) : NULL;
    bool ok = o && session_look(c, o, &q);
    if (o)
        probe_session_close(o);
    return ok;
}

bool session_call(HelperCall *c) {
    const char *name = message_get_text(c->message, "call", "");
    if (!strcmp(name, "values"))
        return answer_values(c);
    if (!strcmp(name, "command"))
        return minify_command_reply(c);
    if (!strcmp(name, "look"))
        return answer_look(c);
    static const char *const calls[] = {[CALL_probe] = "probe",
                                        [CALL_diverge] = "diverge",
                                        [CALL_list] = "list",
                                        [CALL_text] = "text"};
    int what = str_index(name, calls, COUNT(calls));
    if (what >= 0)
        return answer_probe(c, (ProbeCall)what);
    diag_tool(c->diag, "a request that no helper knows");
    return false;
}

// ---- the session's state as a question

static const char **sets_of(Session *s, Arena *a) {
    VEC(const char *) sets = {0};
    for (int i = 0; i < settings_count(); i++) {
        SettingInfo now = settings_at(s, i, a), plain = settings_at(NULL, i, a);
        if (strcmp(now.value, plain.value) != 0 && strcmp(now.name, "grad") != 0)
            vec_push(a, &sets, (const char *)arena_printf(a, "%s=%s", now.name, now.value));
    }
    vec_push(a, &sets, (const char *)NULL);
    return sets.at;
}

// `4, 4` of a tensor that inputs are views of; of memory that nobody describes what they reach.
static const char *base_sizes(const Session *s, const InputAliases *al, int storage,
                              const RtValue *in, Arena *a) {
    const TensorMeta *m = al->storages[storage].base;
    Buf out = {.arena = a};
    int64_t reach = 0;
    for (int i = 0; m && i < m->ndim; i++)
        buf_printf(&out, "%s%lld", i ? ", " : "",
                   (long long)sym_size_hint(s->model->sym, m->size[i], 1));
    for (int i = 0; i < al->n; i++)
        if (al->of[i].storage == storage && in[i].kind == RT_tensor) {
            const Tensor *t = &in[i].tensor;
            int64_t all = (int64_t)storage_bytes(t->storage) / dtype_info[t->dtype].bytes;
            reach = all > reach ? all : reach;
        }
    if (!m)
        buf_printf(&out, "%lld", (long long)reach);
    return buf_str(&out);
}

static void put_aliases(const Session *s, const Unit *root, const RtValue *in, Arena *a,
                        ProbeQuery *out) {
    const InputAliases *al = root->aliases;
    Node **p;
    int n = graph_placeholders(root->loaded->graph, &p, a);
    VEC(ProbeAlias) all = {0};
    for (int i = 0; al && i < al->n && i < n; i++) {
        const InputAlias *at = &al->of[i];
        const SharedStorage *of = at->storage < 0 ? NULL : &al->storages[at->storage];
        if (!of || of->input == i)
            continue;
        ProbeAlias x = {.input = p[i]->name, .detached = at->detached};
        x.offset = at->offset ? sym_size_hint(s->model->sym, at->offset, 0) : 0;
        if (at->same >= 0) {
            x.of = p[at->same]->name;
            x.offset = -1;
        } else if (of->input >= 0) {
            x.of = p[of->input]->name;
        } else {
            x.of = arena_printf(a, "@%s", *of->name == '@' ? of->name + 1 : of->name);
            x.base = base_sizes(s, al, at->storage, in, a);
        }
        vec_push(a, &all, x);
    }
    out->aliases = all.at;
    out->n_aliases = all.n;
}

bool session_probe_query(Session *s, int unit, Arena *a, ProbeQuery *out, Diag *d) {
    const Unit *u = pipeline_unit(s->pipeline, unit), *root = u->parent ? u->parent : u;
    const LoadedGraph *g = root->loaded;
    RtValue *inputs;
    int n;
    if (!session_inputs(s, root->index, a, &inputs, &n, d))
        return false;
    InputKind *kinds = ARENA_ARRAY(a, n + 1, InputKind);
    bool *needs = ARENA_ARRAY(a, n + 1, bool);
    for (int i = 0; i < n; i++) {
        kinds[i] = i < g->n_inputs ? g->inputs[i].kind : IN_user;
        needs[i] = root->forward && root->requires_grad && root->requires_grad[i];
    }
    *out = (ProbeQuery){
        .graph = g->graph,
        .level = g->level,
        .kind = g->kind,
        .state = &s->model->state,
        .inputs = inputs,
        .n_inputs = n,
        .kinds = kinds,
        .needs_grad = needs,
        .sets = sets_of(s, a),
        .overrides = s->overrides,
        .rung = (CaseRung)s->backend,
        .toolchain = s->toolchain,
        .seed = graph_seed(g->graph, s->given.seed),
        .threads = session_threads(s),
    };
    put_aliases(s, root, inputs, a, out);
    return true;
}
