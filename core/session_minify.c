// session_minify.c: `fxray minify`: what a search starts from: the captured graph, or what the
// compiler gets of it, as repro_after says (torch/_dynamo/config.py); and what is done if it is
// over, as repro_level says.
#include <string.h>
#include <unistd.h>

#include "core/base/file.h"
#include "core/debug/minify.h"
#include "core/session_private.h"

enum { MOST_HELPERS = 8 };

// ---- what the compiler gets

static const RtValue *value_of(const Map *values, const char *name) {
    return map_get(values, name);
}

// Inputs of a graph behind AOTAutograd: values that a run showed, sizes by their hints.
static bool fill_inputs(Session *s, const Graph *g, const Map *values, Arena *a, ProbeQuery *out,
                        Diag *d) {
    Node **p;
    int n = graph_placeholders(g, &p, a);
    RtValue *in = ARENA_ARRAY(a, n + 1, RtValue);
    InputKind *kinds = ARENA_ARRAY(a, n + 1, InputKind);
    bool *needs = ARENA_ARRAY(a, n + 1, bool);
    for (int i = 0; i < n; i++) {
        const RtValue *v = value_of(values, p[i]->name);
        if (v) {
            in[i] = (RtValue){.kind = RT_tensor, .tensor = tensor_keep(&v->tensor)};
        } else if (p[i]->val.kind == VAL_sym || p[i]->val.kind == VAL_int) {
            int64_t size = p[i]->val.kind == VAL_int
                               ? p[i]->val.i
                               : sym_size_hint(s->model->sym, p[i]->val.sym, 4096);
            in[i] = (RtValue){.kind = RT_int, .i = size};
        } else {
            diag_fail(d, "input %s of the compiled graph: no value is known", p[i]->name);
            return false;
        }
    }
    out->inputs = in;
    out->n_inputs = n;
    out->kinds = kinds;
    out->needs_grad = needs;
    return true;
}

bool session_aot_query(Session *s, int unit, Arena *a, ProbeQuery *out, Diag *d) {
    const Unit *u = pipeline_unit(s->pipeline, unit);
    const Artifact *art = pipeline_build(s->pipeline, unit, STAGE_partition);
    if (!art || art->kind != ART_graph) {
        session_copy_errors(d, &u->diag, "stage partition could not be built");
        return false;
    }
    if (!session_helpers(s) || !session_probe_query(s, unit, a, out, d))
        return false;
    ProbeQuery q = *out;
    q.rung = RUNG_aot_eager_decomp_partition;
    Request *r = values_send(s->helpers, &q, u->parent && u->parent->backward == u, NULL);
    request_wait(s->helpers, r, NULL);
    Map values = {.arena = a};
    values_take(r, a, &values);
    bool ok = request_state(r) == REQ_done;
    if (!ok)
        session_copy_errors(d, request_diag(r), "the values of the compiled graph are not known");
    for (int i = 0; i < q.n_inputs; i++) {
        RtValue v = q.inputs[i];
        rt_drop(&v);
    }
    out->n_inputs = out->n_aliases = 0;
    out->graph = art->graph;
    out->level = LEVEL_compiler;
    out->kind = u->kind;
    out->state = &s->model->state;
    ok = ok && fill_inputs(s, art->graph, &values, a, out, d);
    request_free(r);
    return ok;
}

// ---- starting

typedef enum ReproAfter { AFTER_none, AFTER_dynamo, AFTER_aot } ReproAfter;

static Minify *start(Session *s, const ProbeQuery *q, const MinifyOptions *o, Diag *d) {
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    MinifyOptions options = *o;
    if (!options.parallel)
        options.parallel = cores < 1 ? 1 : cores > MOST_HELPERS ? MOST_HELPERS : (int)cores;
    options.one_rung = s->given.backend != NULL;
    Helpers *h = helpers_new(options.parallel, session_call, d);
    if (!h)
        return NULL;
    Minify *m = minify_new(h, true, q, &options);
    if (!minify_start(m, d)) {
        minify_free(m);
        return NULL;
    }
    return m;
}

Minify *session_minify_start(Session *s, int unit, const MinifyOptions *o, Diag *d) {
    const Unit *u = pipeline_unit(s->pipeline, unit);
    ProbeQuery q;
    bool aot = s->options.repro_after == AFTER_aot;
    if (u->loaded && !session_can_run(s, u->loaded->graph, d))
        return NULL;
    if (aot && u->forward)
        unit = u->forward->index;
    if (!(aot ? session_aot_query(s, unit, &s->arena, &q, d)
              : session_probe_query(s, unit, &s->arena, &q, d)))
        return NULL;
    q.tolerance = s->tolerance;
    Minify *m = start(s, &q, o, d);
    // The search has its own references.
    for (int i = 0; i < q.n_inputs; i++) {
        RtValue v = q.inputs[i];
        rt_drop(&v);
    }
    return m;
}

// ---- to the end

// What PyTorch's levels of dumping mean for a search: 1 writes what raises as it is, 2 makes it
// small, 3 writes whatever is there, 4 makes small what gives wrong numbers, and these alone.
typedef struct Level {
    bool cut;      // nodes may go
    bool healthy;  // what does not fail is written, too
    bool accuracy; // wrong numbers count
    bool errors;   // all else counts
} Level;
static const Level levels[] = {
    [0] = {true, false, true, true}, // repro_after says nothing
    [1] = {false, false, false, true},
    [2] = {true, false, false, true},
    [3] = {false, true, true, true},
    [4] = {true, false, true, false},
};

static const Level *level_of(const Session *s) {
    int i = s->options.repro_after == AFTER_none ? 0 : s->options.repro_level;
    return &levels[i < 0 || i >= COUNT(levels) ? 0 : i];
}

// The graph is searched that fails: of training forward, then backward.
static Minify *search(Session *s, const MinifyOptions *given, const char *dir, const bool *cancel,
                      Arena *a, Diag *d) {
    MinifyOptions o = *given;
    const Unit *root = pipeline_unit(s->pipeline, 0);
    bool halves = s->options.repro_after == AFTER_aot && root->forward;
    Minify *m = NULL;
    for (int i = 0; i < pipeline_n_units(s->pipeline); i++) {
        const Unit *u = pipeline_unit(s->pipeline, i);
        bool searched = halves ? u->parent != NULL : !u->parent;
        if (!searched)
            continue;
        if (m)
            minify_free(m);
        if (dir) // each graph has a record of its own
            o.record = path_join(
                a, dir, i ? arena_printf(a, "state_%s.txt", u->name) : "state.txt");
        m = session_minify_start(s, i, &o, d);
        if (!m)
            return NULL;
        minify_wait(m, cancel);
        if (minify_state(m) == MINIFY_done || (cancel && *cancel))
            break;
    }
    return m;
}

static bool print(const Minify *m, bool json, Buf *out) {
    if (json) {
        JsonOut j = {.out = out, .pretty = true};
        minify_json(m, &j);
        buf_putc(out, '\n');
    } else {
        minify_report(m, out);
    }
    return minify_state(m) == MINIFY_done;
}

int session_report_minify(Session *s, const MinifyOptions *o, const char *dir, Buf *out, bool json,
                          const bool *cancel, Diag *d) {
    MinifyOptions options = *o;
    Arena a = {0};
    const Level *level = level_of(s);
    options.as_it_is = !level->cut;
    options.healthy = level->healthy;
    options.errors_only = !level->accuracy;
    if (!level->errors && options.check == FAIL_none)
        options.check = FAIL_accuracy;
    if (dir && !dir_make(dir, d))
        return diag_exit_code(d);
    Minify *m = search(s, &options, dir, cancel, &a, d);
    bool ok = m != NULL && print(m, json, out);
    if (ok && dir)
        ok = session_write_repro(s, m, dir, json ? NULL : out, d);
    if (m)
        minify_free(m);
    arena_free(&a);
    // That nothing fails is an answer, and no repro.
    return d->errors ? diag_exit_code(d) : ok ? 0 : 1;
}
