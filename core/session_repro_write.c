// session_repro_write.c: what a minification leaves behind: a folder with the graph in PyTorch's
// text, its inputs and results, scripts for fxray, PyTorch and a C compiler, the settings and the
// log. Before it is written the graph is opened as any model is, and must fail as before.
#include <stdlib.h>
#include <string.h>

#include "core/base/file.h"
#include "core/debug/minify.h"
#include "core/record/fault.h"
#include "core/session_private.h"

typedef struct Repro {
    const Minify *m;
    const Session *s; // that was searched
    Diag *diag;
    Arena arena;
    const char *dir; // written to
    ProbeQuery q;    // of the last step
    Graph *graph;    // of it, as it is printed
    const char *grad, *binds, *hints;
    const char **faults; // ends with NULL
    const char **sets;   // likewise: settings, and inputs that share memory
    ProbeAnswer answer;  // with values
    const char *no_c;    // why there is no repro.c; NULL
} Repro;

static bool write_text(Repro *r, const char *name, const Buf *b) {
    return file_write(path_join(&r->arena, r->dir, name), buf_str(b), b->len, r->diag);
}

// ---- the graph as a file that opens as what it is

static bool looks_like_parameter(const char *name) {
    return str_starts(name, "p_") || strstr(name, "_parameters_");
}

// Text says nothing of gradients: where some float inputs need one and some do not, those that do
// are called parameters.
static void choose_grad(Repro *r) {
    int floats = 0, needed = 0, i = 0;
    GRAPH_EACH (r->graph, p) {
        if (p->op != FX_placeholder)
            continue;
        const RtValue *v = &r->q.inputs[i];
        floats += v->kind == RT_tensor && dtype_is_float(v->tensor.dtype);
        needed += r->q.needs_grad[i++];
    }
    r->grad = !needed ? "none" : needed == floats ? "all" : "params";
    i = 0;
    GRAPH_EACH (r->graph, p) {
        if (p->op != FX_placeholder)
            continue;
        bool needs = r->q.needs_grad[i++];
        if (strcmp(r->grad, "params") != 0 || needs == looks_like_parameter(p->target))
            continue;
        p->target = arena_printf(&r->arena, needs ? "p_%s" : "x_%s", p->name);
    }
}

static void choose_title(Repro *r) {
    static const char *const titles[] = {
        [LEVEL_torch] = "__compiled_fn_0",
        [LEVEL_export] = NULL,
        [LEVEL_aot] = "Forward graph 0",
        [LEVEL_compiler] = "BEFORE POST GRAD",
        [LEVEL_post_grad] = "AFTER POST GRAD",
    };
    r->graph->title = titles[r->q.level];
}

static void note_hint(Repro *r, Buf *hints, Map *told, const Expr *e, int64_t v) {
    if (!expr_name(e) || map_find(told, expr_name(e)))
        return;
    map_put(told, expr_name(e), r);
    buf_printf(hints, "%s%s=%lld", hints->len ? "," : "", expr_name(e), (long long)v);
}

static void choose_names(Repro *r) {
    Buf binds = {.arena = &r->arena}, hints = {.arena = &r->arena};
    Map told = {.arena = &r->arena};
    int i = 0;
    GRAPH_EACH (r->graph, p) {
        if (p->op != FX_placeholder)
            continue;
        const RtValue *v = &r->q.inputs[i];
        const TensorMeta *t = node_tensor(p);
        if (v->kind == RT_tensor)
            buf_printf(&binds, "%s%s=in%d", binds.len ? "," : "", p->target, i);
        if (v->kind == RT_int && p->val.kind == VAL_sym)
            note_hint(r, &hints, &told, p->val.sym, v->i);
        for (int k = 0; t && v->kind == RT_tensor && k < t->ndim && k < v->tensor.ndim; k++)
            note_hint(r, &hints, &told, t->size[k], v->tensor.size[k]);
        i++;
    }
    r->binds = binds.len ? buf_str(&binds) : NULL;
    r->hints = hints.len ? buf_str(&hints) : NULL;
}

static bool write_graph(Repro *r) {
    Buf b = {.arena = &r->arena};
    if (r->graph->title)
        graph_print_log(&b, r->graph, &fx_style_log, NULL, NULL);
    else
        graph_print(&b, r->graph, &fx_style_log, NULL);
    return write_text(r, "graph.txt", &b);
}

static void add_row(Repro *r, Map *rows, const char *name, const RtValue *v) {
    Tensor *t = ARENA_NEW(&r->arena, Tensor);
    if (v->kind != RT_tensor)
        return;
    *t = v->tensor;
    map_put(rows, name, t);
}

static void add_consts(Repro *r, Map *rows, const Graph *g) {
    for (int i = 0; i < g->consts.n; i++) {
        const Tensor *t = g->consts.at[i].tensor;
        if (!t && r->q.state)
            t = map_get(r->q.state, g->consts.at[i].name);
        if (t)
            map_put(rows, arena_printf(&r->arena, "const.%s", g->consts.at[i].name), (void *)t);
    }
    for (int i = 0; i < g->children.n; i++)
        add_consts(r, rows, g->children.at[i].graph);
}

// in0 … by placeholder, what eager gives as want.out0 …, and what the rung gave as got.out0 …
static bool write_rows(Repro *r) {
    Map rows = {.arena = &r->arena};
    for (int i = 0; i < r->q.n_inputs; i++)
        add_row(r, &rows, arena_printf(&r->arena, "in%d", i), &r->q.inputs[i]);
    for (int i = 0; i < r->answer.n_rows; i++) {
        const ProbeRow *row = &r->answer.rows[i];
        add_row(r, &rows, arena_printf(&r->arena, "want.%s", row->name), &row->want);
        add_row(r, &rows, arena_printf(&r->arena, "got.%s", row->name), &row->got);
    }
    add_consts(r, &rows, r->graph);
    return safetensors_write(path_join(&r->arena, r->dir, "inputs.safetensors"), &rows, r->diag);
}

// ---- opened as any model

static void take_fault(void *ctx, DecisionKind kind, const char *key, bool result) {
    Repro *r = ctx;
    if (kind != DECIDE_fault || !result)
        return;
    int n = 0;
    while (r->faults[n])
        n++;
    r->faults[n] = key;
}

static void take_override(void *ctx, DecisionKind kind, const char *key, bool result) {
    if (kind != DECIDE_fault)
        decide_override(ctx, kind, key, result);
}

static SessionOptions options_of(Repro *r) {
    static const char *const rungs[RUNG_count] = {
#define BACKEND(id, name, ...) [RUNG_##id] = name,
#include "core/pipeline/backends.def"
#undef BACKEND
    };
    return (SessionOptions){
        .grad = r->grad,
        .hints = r->hints,
        .values = path_join(&r->arena, r->dir, "inputs.safetensors"),
        .binds = r->binds,
        .backend = rungs[r->q.rung],
        .toolchain = r->q.toolchain ? r->q.toolchain->name : NULL,
        .faults = r->faults,
        .sets = r->sets,
        .seed = r->q.seed,
        .threads = r->s->given.threads,
    };
}

static Session *open_written(Repro *r, const char *name, const SessionOptions *o) {
    Session *s = session_open(path_join(&r->arena, r->dir, name), o, r->diag);
    if (s && r->q.overrides) {
        decide_override_each(r->q.overrides, take_override, s->overrides);
        session_changed(s, STAGE_functional);
    }
    return s;
}

static void drop_inputs(ProbeQuery *q) {
    for (int i = 0; i < q->n_inputs; i++) {
        RtValue v = q->inputs[i];
        rt_drop(&v);
    }
    q->n_inputs = 0;
}

// The written graph through the ordinary path: does it fail as before?
static bool run_again(Repro *r, Session *s) {
    ProbeQuery q;
    ProbeAnswer answer;
    const MinifyStep *best = minify_best(r->m);
    if (!session_probe_query(s, 0, &r->arena, &q, r->diag))
        return false;
    q.rung = r->q.rung;
    q.toolchain = r->q.toolchain;
    q.tolerance = r->q.tolerance;
    q.threads = r->q.threads;
    q.twice = r->q.twice;
    q.poison = r->q.poison;
    q.limit_ms = r->q.limit_ms;
    probe_ask(minify_helpers(r->m), &q, &r->arena, &answer);
    if (best->failure.kind == FAIL_none && answer.random) { // in eager's order, as compare does
        probe_free(&answer);
        q.sets = sets_with(&r->arena, q.sets, "fallback_random=on");
        probe_ask(minify_helpers(r->m), &q, &r->arena, &answer);
    }
    bool same = answer.valid && failure_same(&best->failure, &answer.failure);
    if (!same) {
        Buf got = {.arena = &r->arena};
        failure_print(&got, &answer.failure);
        diag_fail(r->diag,
                  "the graph that is left, opened as any model, does not fail in the same way: %s",
                  buf_str(&got))
            ->cause = CAUSE_check;
    }
    probe_free(&answer);
    drop_inputs(&q);
    return same;
}

// ---- C

// What library calls got and gave in the failing run, for those that are no matrix products: of one
// that died, or never ended, all that it did before. NULL: there are none.
static Request *ask_calls(const Repro *r, const ProbeQuery *q, const Failure *failure, Map *out,
                          ReproC *c) {
    const char *first = strstr(c->code, "fx_call(\""), *body = strstr(c->code, "int call(");
    bool nested = first && body && first < body; // called as often as a loop goes round
    VEC(bool) computed = {0};
    int others = 0;
    for (const char *p = first; p; p = strstr(p, "fx_call(\"")) {
        p += strlen("fx_call(\"");
        bool product = str_starts(p, "extern_kernels.") && !str_starts(p, "extern_kernels.conv");
        vec_push(out->arena, &computed, product && !nested);
        others += !product;
    }
    if (!others)
        return NULL;
    ProbeQuery full = *q;
    full.rung = RUNG_full;
    bool died = failure->kind == FAIL_crash || failure->kind == FAIL_hang;
    Request *request =
        values_send(minify_helpers(r->m), &full, 0, died ? failure->where : "");
    request_wait(minify_helpers(r->m), request, NULL);
    values_take(request, out->arena, out);
    for (MapEntry *e = map_first(out); e; e = map_next(out, e))
        while (str_starts(e->key, "call ") && atoi(e->key + 5) >= computed.n)
            vec_push(out->arena, &computed, false);
    c->computed = computed.at;
    c->n_calls = computed.n;
    return request;
}

// The generated code of an inference graph with its inputs, and what eager gives.
static bool write_c(Repro *r, Session *s, int unit, const ProbeQuery *q, const ProbeAnswer *answer,
                    const Failure *failure, const char *what) {
    const Artifact *code = pipeline_build(s->pipeline, unit, STAGE_kernels);
    const Artifact *fused = pipeline_at(s->pipeline, unit, STAGE_post_fusion);
    const Artifact *traced = pipeline_at(s->pipeline, unit, STAGE_joint);
    const AotMeta *meta = traced ? traced->meta : NULL;
    if (!code || !fused) {
        r->no_c = "it does not come to code: that is what fails";
        return true;
    }
    Message consts = {.arena = &r->arena};
    session_add_module_consts(s, &consts, fused->schedule->module, "in", q->n_inputs);
    int n = q->n_inputs + consts.fields.n;
    RtValue *in = ARENA_ARRAY(&r->arena, n + 1, RtValue);
    for (int i = 0; i < q->n_inputs; i++)
        in[i] = q->inputs[i];
    for (int i = 0; i < consts.fields.n; i++)
        in[q->n_inputs + i] =
            (RtValue){.kind = RT_tensor, .tensor = consts.fields.at[i].tensor};
    const Unit *u = pipeline_unit(s->pipeline, unit);
    int n_out = graph_n_outputs(unit_last_graph(s->pipeline, unit));
    int user = u->parent ? n_out : graph_n_outputs(u->loaded->graph); // a half is asked as it is
    ReproC c = {.what = what,
                .code = code->code->text,
                .in = in,
                .n_in = n,
                .n_out = n_out,
                .mutated = meta && n_out > user ? meta->mutated : NULL,
                .n_mutated = meta && n_out > user ? n_out - user : 0,
                .rows = answer->rows,
                .n_rows = answer->n_rows};
    Buf b = {.arena = &r->arena};
    Map calls = {.arena = &r->arena};
    Request *asked = ask_calls(r, q, failure, &calls, &c);
    c.calls = asked ? &calls : NULL;
    Buf beside = {.arena = &r->arena};
    r->no_c = session_print_repro_c(&b, &beside, &c);
    bool ok = r->no_c || (write_text(r, "repro.c", &b) &&
                          (!beside.len || write_text(r, "repro.bin", &beside)));
    message_drop(&consts);
    if (asked)
        request_free(asked);
    return ok;
}

static bool code_has(Session *s, const Unit *u, const char *name) {
    const Artifact *code = pipeline_build(s->pipeline, u->index, STAGE_kernels);
    return code && *name && strstr(code->code->text, name) != NULL;
}

// Where numbers go wrong first, or where what was running is.
static bool fails_in_backward(const Repro *r, Session *s, const Unit *joint) {
    const MinifyStep *best = minify_best(r->m);
    if (best->place.found)
        return !strcmp(best->place.half, "backward");
    return !code_has(s, joint->forward, best->failure.where) &&
           code_has(s, joint->backward, best->failure.where);
}

// Of training the half that goes wrong: a graph of its own, with the inputs that it gets.
static bool write_half_c(Repro *r, Session *s, const Unit *joint) {
    Diag quiet = {.arena = &r->arena};
    bool backward = fails_in_backward(r, s, joint);
    ProbeQuery q;
    ProbeAnswer answer;
    if (!session_aot_query(s, (backward ? joint->backward : joint->forward)->index, &r->arena, &q,
                           &quiet)) {
        r->no_c = arena_printf(&r->arena, "what the %s half gets is not known: %s",
                               backward ? "backward" : "forward", diag_first(&quiet));
        return true;
    }
    q.rung = RUNG_full;
    q.toolchain = r->q.toolchain;
    q.values = true;
    probe_ask(minify_helpers(r->m), &q, &r->arena, &answer);
    int unit = (backward ? joint->backward : joint->forward)->index;
    bool ok = write_c(r, s, unit, &q, &answer, &answer.failure,
                      backward ? "The backward half: what goes wrong before code is generated is "
                                 "in the code alone."
                               : "The forward half: what goes wrong before code is generated is "
                                 "in the code alone.");
    probe_free(&answer);
    drop_inputs(&q);
    return ok;
}

static bool write_code(Repro *r, Session *s) {
    const Unit *u = pipeline_unit(s->pipeline, 0);
    return u->forward ? write_half_c(r, s, u)
                      : write_c(r, s, 0, &r->q, &r->answer, &minify_best(r->m)->failure,
                                "The generated code of graph.txt; main holds its results against "
                                "those of eager.");
}

// ---- settings, command, log

static bool write_settings(Repro *r) {
    Buf b = {.arena = &r->arena};
    buf_puts(&b, "# All settings of the search; --settings takes this file.\n");
    for (int i = 0; i < settings_count(); i++) {
        SettingInfo x = settings_at(r->s, i, &r->arena);
        if (*x.value && strcmp(x.name, "grad") != 0)
            buf_printf(&b, "set %s %s\n", x.name, x.value);
    }
    for (int i = 0; i < r->q.n_aliases; i++)
        if (probe_alias_is_met(&r->q.aliases[i], r->graph))
            buf_printf(&b, "alias %s %s\n", r->q.aliases[i].input,
                       probe_alias_text(&r->q.aliases[i], &r->arena));
    return write_text(r, "settings.txt", &b);
}

static void put_flag(Buf *b, const char *flag, const char *value) {
    if (value)
        buf_printf(b, " \\\n    %s '%s'", flag, value);
}

// What shows the failure again.
static bool write_command(Repro *r, const SessionOptions *o) {
    Buf b = {.arena = &r->arena};
    buf_puts(&b, "#!/bin/sh\ncd \"$(dirname \"$0\")\" &&\n"
                 "exec \"${FXRAY:-fxray}\" compare graph.txt");
    put_flag(&b, "--values", "inputs.safetensors");
    put_flag(&b, "--settings", "settings.txt");
    put_flag(&b, "--grad", o->grad);
    put_flag(&b, "--bind", o->binds);
    put_flag(&b, "--hint", o->hints);
    put_flag(&b, "--toolchain", o->toolchain);
    for (int i = 0; r->faults[i]; i++)
        put_flag(&b, "--fault", r->faults[i]);
    buf_printf(&b, " \\\n    --seed %lld \"$@\"\n", (long long)o->seed);
    return write_text(r, "repro.sh", &b);
}

static void put_no_c(const Repro *r, Buf *out) {
    if (r->no_c)
        buf_printf(out, "no repro.c     %s\nhint: graph.txt and inputs.safetensors say the same; "
                        "repro.sh runs them\n",
                   r->no_c);
}

static bool write_log(Repro *r) {
    Buf log = {.arena = &r->arena}, json = {.arena = &r->arena}, script = {.arena = &r->arena};
    JsonOut j = {.out = &json, .pretty = true};
    ProbeQuery q = r->q;
    minify_report(r->m, &log);
    put_no_c(r, &log);
    buf_putc(&log, '\n');
    minify_log(r->m, &log);
    minify_json(r->m, &j);
    buf_putc(&json, '\n');
    q.graph = r->graph;
    session_print_repro(&script, r->m, &q);
    return write_text(r, "log.txt", &log) && write_text(r, "minify.json", &json) &&
           write_text(r, "repro.py", &script);
}

// ---- all of it

static void choose_sets(Repro *r) {
    r->sets = sets_with(&r->arena, r->q.sets, NULL);
    for (int i = 0; i < r->q.n_aliases; i++) {
        const ProbeAlias *x = &r->q.aliases[i];
        if (probe_alias_is_met(x, r->graph))
            r->sets = sets_with(&r->arena, r->sets,
                                arena_printf(&r->arena, "alias.%s=%s", x->input,
                                             probe_alias_text(x, &r->arena)));
    }
}

static void begin(Repro *r) {
    int n = overrides_count(r->q.overrides);
    r->graph = minify_graph(r->m, minify_best(r->m), &r->arena);
    r->faults = ARENA_ARRAY(&r->arena, n + 1, const char *);
    if (r->q.overrides)
        decide_override_each(r->q.overrides, take_fault, r);
    choose_grad(r);
    choose_title(r);
    choose_names(r);
    choose_sets(r);
    ProbeQuery q = r->q;
    q.values = true;
    probe_ask(minify_helpers(r->m), &q, &r->arena, &r->answer);
    if (r->answer.n_rows)
        return;
    q.rung = RUNG_eager; // what the rung does not come to
    q.twice = q.poison = false;
    probe_ask(minify_helpers(r->m), &q, &r->arena, &r->answer);
}

static bool write_all(Repro *r) {
    SessionOptions o = options_of(r);
    if (!write_graph(r) || !write_rows(r))
        return false;
    Session *s = open_written(r, "graph.txt", &o);
    bool ok = s && (minify_is_command(r->m) || run_again(r, s)) && write_code(r, s);
    if (s)
        session_close(s);
    return ok && write_settings(r) && write_command(r, &o) && write_log(r);
}

static const char *const files[] = {"graph.txt",    "inputs.safetensors", "repro.c", "repro.bin",
                                    "settings.txt", "repro.sh",           "log.txt",
                                    "minify.json",  "repro.py"};

static bool move_files(Repro *r, const char *to) {
    Diag quiet = {.arena = &r->arena};
    for (int i = 0; i < COUNT(files); i++) {
        const char *from = path_join(&r->arena, r->dir, files[i]);
        if (!file_exists(from))
            continue;
        Str text = file_read(&r->arena, from, r->diag);
        if (!text.ptr ||
            !file_write(path_join(&r->arena, to, files[i]), text.ptr, text.len, r->diag))
            return false;
    }
    dir_remove(r->dir, &quiet);
    return true;
}

bool session_write_repro(Session *s, const Minify *m, const char *dir, Buf *out, Diag *d) {
    Repro r = {.m = m, .s = s, .diag = d};
    r.q = minify_query(m, minify_best(m), &r.arena);
    r.dir = dir_temp(&r.arena, d);
    bool ok = r.dir != NULL;
    if (ok) {
        begin(&r);
        ok = write_all(&r) && move_files(&r, dir);
        Diag quiet = {.arena = &r.arena};
        if (!ok)
            dir_remove(r.dir, &quiet);
        probe_free(&r.answer);
    }
    if (ok && out) {
        buf_printf(out, "written to %s:", dir);
        for (int i = 0; i < COUNT(files); i++)
            if (file_exists(path_join(&r.arena, dir, files[i])))
                buf_printf(out, " %s", files[i]);
        buf_putc(out, '\n');
        put_no_c(&r, out);
    }
    arena_free(&r.arena);
    return ok;
}
